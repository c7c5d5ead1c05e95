/* Oracles of products and convolutions of bytes: exact sums of integers; the
 * QLinear forms round once, in single floats, half to even. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"
#include "reference/window.h"

/* Element of a scale or zero point for `index` of an operand of `rank` axes:
 * one for all, a list along `axis`, or of the operand's rank. */
static int64_t param_at(const Array *p, int axis, const int64_t *index)
{
    int64_t at = 0;

    if (array_count(p) == 1)
        return 0;
    if (p->rank == 1)
        return index[axis];
    for (int i = 0; i < p->rank; i++)
        at = at * p->dims[i] + (p->dims[i] == 1 ? 0 : index[i]);
    return at;
}

static void unflatten(const Array *x, int64_t flat, int64_t *index)
{
    for (int i = x->rank - 1; i >= 0; i--) {
        index[i] = flat % x->dims[i];
        flat /= x->dims[i];
    }
}

/* x less its zero points, in 32 bits. */
static Array *shifted(RefCall *call, const Array *x, const Array *zero,
                      int axis)
{
    Array *y = array_new(call->scratch, DT_I32, x->rank, x->dims);
    int64_t index[MAX_RANK];

    for (int64_t i = 0; i < array_count(x); i++) {
        unflatten(x, i, index);
        array_set_int(
            y, i,
            array_get_int(x, i) -
                (zero ? array_get_int(zero, param_at(zero, axis, index)) : 0));
    }
    return y;
}

/* The product of two arrays of i32 through the plain oracle. */
static Array *product(RefCall *call, const Array *x, const Array *y)
{
    const Array *in[2] = {x, y};
    RefCall inner = *call;

    inner.in = in;
    inner.in_count = 2;
    inner.out_count = 1;
    if (ref_matmul(&inner))
        return inner.out[0];
    call->error = inner.error;
    return NULL;
}

bool ref_matmul_integer(RefCall *call)
{
    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *y = call->in[1];
    call->out[0] =
        product(call, shifted(call, x, ref_in(call, 2), x->rank - 2),
                shifted(call, y, ref_in(call, 3), y->rank - 1));
    return call->out[0] != NULL;
}

/* sum * (left * right / result) as a byte. */
static int64_t requantize(int64_t sum, double left, double right,
                          double result, int64_t zero, DType dtype)
{
    float scale = (float)left * (float)right / (float)result;
    double v = (double)nearbyintf((float)sum * scale) + (double)zero;
    double lo = (double)ref_int_bound(dtype, false);
    double hi = (double)ref_int_bound(dtype, true);

    return (int64_t)(v < lo ? lo : v > hi ? hi : v);
}

bool ref_qlinear_matmul(RefCall *call)
{
    int64_t index[MAX_RANK], at[2][MAX_RANK];

    if (!ref_need(call, 8))
        return false;
    const Array *x = call->in[0], *y = call->in[3], *zero = call->in[7];
    Array *sum = product(call, shifted(call, x, call->in[2], x->rank - 2),
                         shifted(call, y, call->in[5], y->rank - 1));
    if (!sum)
        return false;
    Array *out = ref_out(call, 0, zero->dtype, sum->rank, sum->dims);
    int row = sum->rank - 1 - (y->rank > 1), column = sum->rank - 1;
    for (int64_t i = 0; i < array_count(out); i++) {
        unflatten(out, i, index);
        /* The row of the left and the column of the right operand. */
        for (int side = 0; side < 2; side++) {
            const Array *operand = side ? y : x;
            int batch = operand->rank - 2,
                batches = sum->rank - (x->rank > 1) - (y->rank > 1);
            for (int k = 0; k < batch; k++)
                at[side][k] =
                    operand->dims[k] == 1 ? 0 : index[batches - batch + k];
            if (batch >= 0) {
                at[side][batch] = side ? 0 : index[row];
                at[side][batch + 1] = side ? index[column] : 0;
            }
        }
        array_set_int(
            out, i,
            requantize(
                array_get_int(sum, i),
                array_get(call->in[1],
                          param_at(call->in[1], x->rank - 2, at[0])),
                array_get(call->in[4],
                          param_at(call->in[4], y->rank - 1, at[1])),
                array_get(call->in[6], param_at(call->in[6], row, index)),
                array_get_int(zero, param_at(zero, row, index)), out->dtype));
    }
    return true;
}

/* The sum of one output element; x and w are less their zero points, so that
 * padding is 0. */
static int64_t conv_sum(const Window *w, const Array *x, const Array *k,
                        int64_t n, int64_t o, int64_t group,
                        const int64_t place[3])
{
    int64_t each = k->dims[1], first = o / (k->dims[0] / group) * each;
    int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2];
    uint64_t sum = 0;

    for (int64_t c = 0; c < each; c++)
        for (int64_t t = 0; t < taps; t++) {
            int64_t at[3] = {t / w->kernel[2] / w->kernel[1],
                             t / w->kernel[2] % w->kernel[1],
                             t % w->kernel[2]};
            int64_t from = n * x->dims[1] + first + c;
            bool inside = true;
            for (int a = 0; a < 3; a++) {
                int64_t p = window_at(w, a, place[a], at[a]);
                inside &= p >= 0 && p < w->in[a];
                from = from * w->in[a] + p;
            }
            if (inside)
                sum += (uint64_t)(array_get_int(x, from) *
                                  array_get_int(k, (o * each + c) * taps + t));
        }
    return ref_wrap(DT_I32, (int64_t)sum);
}

/* Both convolutions: sums, or bytes again with the operands of QLinearConv. */
static bool conv(RefCall *call, const Array *x, const Array *k,
                 const Array *x_zero, const Array *k_zero, bool is_byte)
{
    int64_t dims[MAX_RANK], group = attrs_int(call->attrs, "group", 1);
    Window w;

    if (x->rank != k->rank ||
        !window_read(call, x, &k->dims[2], x->rank - 2, &w))
        return call->error || ref_fail(call, "the ranks differ");
    dims[0] = x->dims[0];
    dims[1] = k->dims[0];
    for (int i = 2; i < x->rank; i++)
        dims[i] = w.out[3 - (x->rank - 2) + i - 2];
    x = shifted(call, x, x_zero, 0);
    k = shifted(call, k, k_zero, 0);
    Array *out =
        ref_out(call, 0, is_byte ? call->in[7]->dtype : DT_I32, x->rank, dims);
    for (int64_t i = 0; i < array_count(out); i++) {
        int64_t area = w.out[1] * w.out[2], plane = w.out[0] * area;
        int64_t place[3] = {i % plane / area, i % area / w.out[2],
                            i % w.out[2]};
        int64_t o = i / plane % dims[1];
        int64_t sum = conv_sum(&w, x, k, i / plane / dims[1], o, group, place);
        if (!is_byte) {
            array_set_int(out, i, sum);
            continue;
        }
        if (ref_in(call, 8))
            sum = ref_wrap(DT_I32, sum + array_get_int(call->in[8], o));
        array_set_int(
            out, i,
            requantize(sum, array_get(call->in[1], 0),
                       array_get(call->in[4], param_at(call->in[4], 0, &o)),
                       array_get(call->in[6], 0),
                       array_get_int(call->in[7], 0), out->dtype));
    }
    return true;
}

bool ref_conv_integer(RefCall *call)
{
    return ref_need(call, 2) && conv(call, call->in[0], call->in[1],
                                     ref_in(call, 2), ref_in(call, 3), false);
}

bool ref_qlinear_conv(RefCall *call)
{
    return ref_need(call, 8) && conv(call, call->in[0], call->in[3],
                                     call->in[2], call->in[5], true);
}

/* ---- whole numbers in f32 to stored values ------------------------------ */

static bool stored_type(RefCall *call, DType *dtype)
{
    return ref_dtype(call, "to", DT_INVALID, dtype);
}

static void store_clipped(const RefCall *call, Array *y, int64_t i, double v)
{
    double low = (double)attrs_int(call->attrs, "low", 0);
    double high = (double)attrs_int(call->attrs, "high", 0);

    array_set_int(y, i, (int64_t)fmin(fmax(v, low), high));
}

bool ref_requantize(RefCall *call)
{
    DType dtype;
    int axis = 0;

    if (!ref_need(call, 3) || !stored_type(call, &dtype))
        return false;
    const Array *x = call->in[0], *factor = call->in[1];
    if (factor->rank &&
        !ref_axis(call, attrs_int(call->attrs, "axis", 1), x->rank, &axis))
        return false;
    Array *y = ref_out(call, 0, dtype, x->rank, x->dims);
    RefLines lines = factor->rank ? ref_lines(x, axis) : (RefLines){1, 1, 1};
    for (int64_t i = 0; i < array_count(x); i++) {
        int64_t c = factor->rank ? i / lines.inner % lines.n : 0;
        float v = (float)array_get(x, i) * (float)array_get(factor, c);
        store_clipped(call, y, i,
                      (double)nearbyintf(v) + array_get(call->in[2], 0));
    }
    return true;
}

bool ref_requantize_sum(RefCall *call)
{
    int64_t dims[MAX_RANK];
    RefWalk walk = {0};
    DType dtype;

    if (!ref_need(call, 5) || !stored_type(call, &dtype))
        return false;
    const Array *const x[2] = {call->in[0], call->in[2]};
    if (!ref_broadcast(call, x, 2, &walk.rank, dims))
        return false;
    Array *y = ref_out(call, 0, dtype, walk.rank, dims);
    memcpy(walk.dims, dims, sizeof dims);
    for (int k = 0; k < 2; k++)
        ref_broadcast_strides(x[k], walk.rank, walk.stride[k]);
    for (int64_t i = 0; i < array_count(y); i++) {
        float v = fmaf((float)array_get(x[1], walk.offset[1]),
                       (float)array_get(call->in[3], 0),
                       (float)array_get(call->in[4], 0));
        v = fmaf((float)array_get(x[0], walk.offset[0]),
                 (float)array_get(call->in[1], 0), v);
        store_clipped(call, y, i, (double)nearbyintf(v));
        ref_walk_next(&walk);
    }
    return true;
}
