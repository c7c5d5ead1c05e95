/* Oracles of attention and of the rotation of positions, in double. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

/* An operand as [batch, heads, sequence, size], whichever form it has. */
typedef struct View {
    const Array *array;
    int64_t heads, sequence, size;
} View;

static View view_of(const Array *x, int64_t heads)
{
    View v = {x, heads, 0, 0};
    if (x->rank == 4) {
        v.heads = x->dims[1];
        v.sequence = x->dims[2];
        v.size = x->dims[3];
    } else {
        v.sequence = x->dims[1];
        v.size = heads > 0 ? x->dims[2] / heads : 0;
    }
    return v;
}

static double view_get(const View *v, int64_t n, int64_t h, int64_t i,
                       int64_t d)
{
    int64_t at = v->array->rank == 4
                     ? ((n * v->heads + h) * v->sequence + i) * v->size + d
                     : ((n * v->sequence + i) * v->heads + h) * v->size + d;
    return array_get(v->array, at);
}

typedef struct Attention {
    RefCall *call;
    View q, k, v;
    const Array *mask, *past_key, *past_value, *lengths;
    int64_t past, total;
    double scale, cap;
    bool causal;
    int64_t left, right;
} Attention;

/* Key or value number j, of the past first. */
static double cached(const View *v, const Array *past, int64_t past_rows,
                     int64_t n, int64_t h, int64_t j, int64_t d)
{
    if (j < past_rows)
        return array_get(past,
                         ((n * v->heads + h) * past_rows + j) * v->size + d);
    return view_get(v, n, h, j - past_rows, d);
}

/* What the mask adds; -inf for a key out of reach. */
static double mask_value(const Attention *t, int64_t n, int64_t h, int64_t i,
                         int64_t j)
{
    int64_t offset = t->past, at = 0;
    const int64_t index[4] = {n, h, i, j};

    if (t->lengths) {
        offset = array_get_int(t->lengths, n) - t->q.sequence;
        if (j >= array_get_int(t->lengths, n))
            return -INFINITY;
    }
    if ((t->causal && j > i + offset) ||
        (t->left >= 0 && i + offset - j > t->left) ||
        (t->right >= 0 && j - i - offset > t->right))
        return -INFINITY;
    if (!t->mask)
        return 0;
    int rank = t->mask->rank;
    if (j >= t->mask->dims[rank - 1]) /* a mask for the first keys */
        return -INFINITY;
    for (int k = 0; k < rank; k++)
        at = at * t->mask->dims[k] +
             (t->mask->dims[k] == 1 ? 0 : index[4 - rank + k]);
    if (t->mask->dtype == DT_BOOL)
        return array_get_int(t->mask, at) ? 0 : -INFINITY;
    return array_get(t->mask, at);
}

/* One query: its scores, as `mode` wants them shown, and then their softmax
 * in `weight`. */
static void attend(const Attention *t, int64_t n, int64_t h, int64_t i,
                   int64_t mode, double *shown, double *weight)
{
    double most = -INFINITY, sum = 0;
    int64_t kv = h / (t->q.heads / t->k.heads);

    for (int64_t j = 0; j < t->total; j++) {
        double s = 0, add = mask_value(t, n, h, i, j);
        for (int64_t d = 0; d < t->q.size; d++)
            s += view_get(&t->q, n, h, i, d) *
                 cached(&t->k, t->past_key, t->past, n, kv, j, d);
        s *= t->scale;
        shown[j] = s;
        if (t->cap > 0)
            s = t->cap * tanh(s / t->cap);
        if (mode == 1)
            shown[j] = s;
        /* A key out of reach has no score, not even NaN. */
        s = add == -INFINITY ? add : s + add;
        if (mode == 2)
            shown[j] = s;
        weight[j] = s;
        most = s > most ? s : most;
    }
    for (int64_t j = 0; j < t->total; j++) {
        weight[j] =
            most == -INFINITY && !isnan(weight[j]) ? 0 : exp(weight[j] - most);
        sum += weight[j];
    }
    for (int64_t j = 0; j < t->total; j++) {
        weight[j] = sum == 0 ? 0 : weight[j] / sum;
        if (mode == 3)
            shown[j] = weight[j];
    }
}

static void store_cache(RefCall *call, int output, const View *v,
                        const Array *past, int64_t past_rows, int64_t batch)
{
    int64_t total = past_rows + v->sequence, at = 0;
    int64_t dims[4] = {batch, v->heads, total, v->size};

    if (output >= call->out_count)
        return;
    Array *y = ref_out(call, output, v->array->dtype, 4, dims);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t h = 0; h < v->heads; h++)
            for (int64_t j = 0; j < total; j++)
                for (int64_t d = 0; d < v->size; d++)
                    array_set(y, at++, cached(v, past, past_rows, n, h, j, d));
}

bool ref_attention(RefCall *call)
{
    const Attrs *attrs = call->attrs;
    int64_t kv_heads = attrs_int(attrs, "kv_num_heads", 0);
    int64_t mode = attrs_int(attrs, "qk_matmul_output_mode", 0);

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0];
    Attention t = {call,
                   view_of(x, attrs_int(attrs, "q_num_heads", 0)),
                   view_of(call->in[1], kv_heads),
                   view_of(call->in[2], kv_heads),
                   ref_in(call, 3),
                   ref_in(call, 4),
                   ref_in(call, 5),
                   ref_in(call, 6),
                   0,
                   0,
                   0,
                   attrs_float(attrs, "softcap", 0),
                   attrs_int(attrs, "is_causal", 0) != 0,
                   attrs_int(attrs, "left_window_size", -1),
                   attrs_int(attrs, "right_window_size", -1)};
    if (t.k.heads < 1 || t.q.heads % t.k.heads)
        return ref_fail(call, "heads of queries and keys do not fit");
    t.scale = attrs_float(attrs, "scale", 1 / sqrt((double)t.q.size));
    t.past = t.past_key ? t.past_key->dims[2] : 0;
    t.total = t.past + t.k.sequence;
    int64_t batch = x->dims[0], heads = t.q.heads, rows = t.q.sequence;
    int64_t flat[3] = {batch, rows, heads * t.v.size};
    int64_t deep[4] = {batch, heads, rows, t.v.size};
    int64_t scores[4] = {batch, heads, rows, t.total};
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->rank == 3 ? flat : deep);
    store_cache(call, 1, &t.k, t.past_key, t.past, batch);
    store_cache(call, 2, &t.v, t.past_value, t.past, batch);
    Array *show =
        call->out_count > 3 ? ref_out(call, 3, x->dtype, 4, scores) : NULL;
    double *shown = ARENA_ARRAY(call->scratch, double, t.total + 1);
    double *weight = ARENA_ARRAY(call->scratch, double, t.total + 1);
    for (int64_t n = 0; n < batch; n++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < rows; i++) {
                int64_t row = (n * heads + h) * rows + i;
                attend(&t, n, h, i, mode, shown, weight);
                for (int64_t j = 0; show && j < t.total; j++)
                    array_set(show, row * t.total + j, shown[j]);
                for (int64_t d = 0; d < t.v.size; d++) {
                    double sum = 0;
                    for (int64_t j = 0; j < t.total; j++)
                        sum +=
                            weight[j] * cached(&t.v, t.past_value, t.past, n,
                                               h / (heads / t.k.heads), j, d);
                    array_set(y,
                              x->rank == 3
                                  ? ((n * rows + i) * heads + h) * t.v.size + d
                                  : row * t.v.size + d,
                              sum);
                }
            }
    return true;
}

bool ref_rotary_embedding(RefCall *call)
{
    bool interleaved = attrs_int(call->attrs, "interleaved", 0) != 0;

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0], *ids = ref_in(call, 3);
    View v = view_of(x, attrs_int(call->attrs, "num_heads", 0));
    int64_t turned = attrs_int(call->attrs, "rotary_embedding_dim", 0);
    turned = turned ? turned : v.size;
    if (v.size < 1 || turned > v.size || turned % 2)
        return ref_fail(call, "%lld elements cannot be turned",
                        (long long)turned);
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    for (int64_t i = 0; i < array_count(x); i++) {
        int64_t d = i % v.size, half = turned / 2, rest = i / v.size;
        int64_t place =
            x->rank == 4 ? rest % v.sequence : rest / v.heads % v.sequence;
        int64_t n = rest / v.heads / v.sequence;
        int64_t pair = interleaved ? d / 2 : d % half;
        bool second = interleaved ? d % 2 : d >= half;
        int64_t step = interleaved ? 1 : half;
        if (d >= turned) {
            ref_copy_element(y, i, x, i);
            continue;
        }
        int64_t row = n * v.sequence + place;
        if (ids)
            row = array_get_int(ids, row);
        if (row < 0 || (row + 1) * half > array_count(call->in[1]))
            return ref_fail(call, "position %lld", (long long)row);
        double c = array_get(call->in[1], row * half + pair);
        double s = array_get(call->in[2], row * half + pair);
        double own = array_get(x, i);
        array_set(y, i,
                  second ? own * c + array_get(x, i - step) * s
                         : own * c - array_get(x, i + step) * s);
    }
    return true;
}
