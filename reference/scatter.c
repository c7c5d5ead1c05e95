/* Elements gathered and scattered by index arrays, and blocks of pixels
 * moved between channels and space. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

/* A walk over `indices` beside the offset of each element's row in an array
 * with the strides of `data`, the axis itself left out. */
static bool begin(RefCall *call, const Array *data, const Array *indices,
                  int *axis, int64_t *stride, RefWalk *w)
{
    int64_t strides[MAX_RANK];

    if (indices->rank != data->rank)
        return ref_fail(call, "indices of rank %d for data of rank %d",
                        indices->rank, data->rank);
    if (!ref_axis(call, attrs_int(call->attrs, "axis", 0), data->rank, axis))
        return false;
    ref_row_major_strides(data, strides);
    *w = (RefWalk){.rank = indices->rank};
    for (int i = 0; i < indices->rank; i++) {
        w->dims[i] = indices->dims[i];
        /* Along the axis the index itself says where. */
        w->stride[0][i] = i == *axis ? 0 : strides[i];
    }
    *stride = strides[*axis];
    return true;
}

static bool read_index(RefCall *call, const Array *indices, int64_t i,
                       int64_t n, int64_t *index)
{
    *index = array_get_int(indices, i);
    if (*index < -n || *index >= n)
        return ref_fail(call, "index %lld outside extent %lld",
                        (long long)*index, (long long)n);
    *index += *index < 0 ? n : 0;
    return true;
}

bool ref_gather_elements(RefCall *call)
{
    int64_t stride, index;
    RefWalk w;
    int axis;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *at = call->in[1];
    if (!begin(call, x, at, &axis, &stride, &w))
        return false;
    Array *y = ref_out(call, 0, x->dtype, at->rank, at->dims);
    int64_t count = array_count(at);
    for (int64_t i = 0; i < count; i++, ref_walk_next(&w)) {
        if (!read_index(call, at, i, x->dims[axis], &index))
            return false;
        ref_copy_element(y, i, x, w.offset[0] + index * stride);
    }
    return true;
}

static double combine(const char *how, double old, double update)
{
    if (strcmp(how, "add") == 0)
        return old + update;
    if (strcmp(how, "mul") == 0)
        return old * update;
    /* fmax and fmin would drop a NaN. */
    if (isnan(old) || isnan(update))
        return NAN;
    return strcmp(how, "max") == 0 ? fmax(old, update) : fmin(old, update);
}

static int64_t combine_int(const char *how, DType dtype, int64_t old,
                           int64_t update)
{
    bool larger = ref_int_less(dtype, update, old);

    if (strcmp(how, "add") == 0)
        return (int64_t)((uint64_t)old + (uint64_t)update);
    if (strcmp(how, "mul") == 0)
        return (int64_t)((uint64_t)old * (uint64_t)update);
    return (strcmp(how, "max") == 0) == larger ? old : update;
}

/* Puts element k of `updates` at element `to`. */
static void join(const char *how, Array *y, int64_t to, const Array *updates,
                 int64_t k)
{
    if (strcmp(how, "none") == 0)
        ref_copy_element(y, to, updates, k);
    else if (dtype_is_float(y->dtype))
        array_set(y, to,
                  combine(how, array_get(y, to), array_get(updates, k)));
    else
        array_set_int(
            y, to,
            ref_wrap(y->dtype, combine_int(how, y->dtype, array_get_int(y, to),
                                           array_get_int(updates, k))));
}

bool ref_scatter_elements(RefCall *call)
{
    const char *how = attrs_string(call->attrs, "reduction", "none");
    int64_t stride, index;
    RefWalk w;
    int axis;

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0], *at = call->in[1], *updates = call->in[2];
    if (!begin(call, x, at, &axis, &stride, &w))
        return false;
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    /* Updates apply one after the other to a copy: of several at one place the
     * last wins, or all are combined. */
    memcpy(y->data, x->data, array_bytes(x));
    int64_t count = array_count(at);
    for (int64_t i = 0; i < count; i++, ref_walk_next(&w)) {
        if (!read_index(call, at, i, x->dims[axis], &index))
            return false;
        join(how, y, w.offset[0] + index * stride, updates, i);
    }
    return true;
}

/* The offset in x, from axis `first` on, of the tuple number k of `indices`,
 * and how many elements it stands for. */
static bool read_tuple(RefCall *call, const Array *x, int first,
                       const Array *indices, int64_t k, int64_t *offset,
                       int64_t *each)
{
    int64_t strides[MAX_RANK], index;
    int depth = (int)indices->dims[indices->rank - 1];

    if (depth > x->rank - first)
        return ref_fail(call, "indices of %d for rank %d", depth, x->rank);
    ref_row_major_strides(x, strides);
    *offset = 0;
    *each = 1;
    for (int i = 0; i < depth; i++) {
        if (!read_index(call, indices, k * depth + i, x->dims[first + i],
                        &index))
            return false;
        *offset += index * strides[first + i];
    }
    for (int i = first + depth; i < x->rank; i++)
        *each *= x->dims[i];
    return true;
}

bool ref_gather_nd(RefCall *call)
{
    int64_t dims[2 * MAX_RANK], batches = 1, offset, each;
    int batch = (int)attrs_int(call->attrs, "batch_dims", 0), rank = 0;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *indices = call->in[1];
    for (int i = 0; i < indices->rank - 1; i++)
        dims[rank++] = indices->dims[i];
    for (int i = batch + (int)indices->dims[indices->rank - 1]; i < x->rank;
         i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < batch; i++)
        batches *= x->dims[i];
    if (rank > MAX_RANK)
        return ref_fail(call, "rank %d", rank);
    Array *y = ref_out(call, 0, x->dtype, rank, dims);
    int64_t tuples = array_count(indices) / indices->dims[indices->rank - 1];
    for (int64_t k = 0; k < tuples; k++) {
        if (!read_tuple(call, x, batch, indices, k, &offset, &each))
            return false;
        offset += k / (tuples / batches) * (array_count(x) / batches);
        for (int64_t j = 0; j < each; j++)
            ref_copy_element(y, k * each + j, x, offset + j);
    }
    return true;
}

bool ref_scatter_nd(RefCall *call)
{
    const char *how = attrs_string(call->attrs, "reduction", "none");
    int64_t offset, each;

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0], *indices = call->in[1];
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    memcpy(y->data, x->data, array_bytes(x));
    int64_t tuples = array_count(indices) / indices->dims[indices->rank - 1];
    for (int64_t k = 0; k < tuples; k++) {
        if (!read_tuple(call, x, 0, indices, k, &offset, &each))
            return false;
        for (int64_t j = 0; j < each; j++)
            join(how, y, offset + j, call->in[2], k * each + j);
    }
    return true;
}

/* Rows of the update go to places of the cache from a start that each batch
 * has; those past the end are dropped, or go round. */
bool ref_tensor_scatter(RefCall *call)
{
    bool circular =
        !strcmp(attrs_string(call->attrs, "mode", "linear"), "circular");
    int axis;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *update = call->in[1];
    if (!ref_axis(call, attrs_int(call->attrs, "axis", -2), x->rank, &axis))
        return false;
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    memcpy(y->data, x->data, array_bytes(x));
    RefLines to = ref_lines(x, axis), from = ref_lines(update, axis);
    int64_t each = array_count(update) / (x->dims[0] ? x->dims[0] : 1);
    for (int64_t i = 0; i < array_count(update); i++) {
        int64_t row = i / from.inner % from.n;
        row += ref_in(call, 2) ? array_get_int(call->in[2], i / each) : 0;
        if (circular)
            row = (row % to.n + to.n) % to.n;
        int64_t outer = i / from.inner / from.n;
        if (row >= 0 && row < to.n)
            ref_copy_element(y,
                             (outer * to.n + row) * to.inner + i % from.inner,
                             update, i);
    }
    return true;
}

/* Where channel c and block offset (by, bx) come from in the deep layout:
 * blocks outermost (DCR) or channels outermost (CRD). */
static int64_t deep_channel(bool blocks_first, int64_t c, int64_t by,
                            int64_t bx, int64_t channels, int64_t b)
{
    return blocks_first ? (by * b + bx) * channels + c : (c * b + by) * b + bx;
}

/* Copies between [N, C b b, H, W] and [N, C, H b, W b]. */
static bool move_blocks(RefCall *call, bool to_space)
{
    int64_t b = attrs_int(call->attrs, "blocksize", 0);
    bool blocks_first =
        strcmp(attrs_string(call->attrs, "mode", "DCR"), "DCR") == 0;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (x->rank != 4 || b < 1 || x->dims[1] % (to_space ? b * b : 1) ||
        (!to_space && (x->dims[2] % b || x->dims[3] % b)))
        return ref_fail(call, "blocks of %lld do not fit", (long long)b);
    int64_t n = x->dims[0];
    int64_t c = to_space ? x->dims[1] / (b * b) : x->dims[1];
    int64_t h = to_space ? x->dims[2] : x->dims[2] / b;
    int64_t w = to_space ? x->dims[3] : x->dims[3] / b;
    int64_t space[4] = {n, c, h * b, w * b}, deep[4] = {n, c * b * b, h, w};
    Array *y = ref_out(call, 0, x->dtype, 4, to_space ? space : deep);
    int64_t count = array_count(x);
    for (int64_t i = 0; i < count; i++) {
        int64_t px = i % (w * b), py = i / (w * b) % (h * b);
        int64_t pc = i / (w * b) / (h * b) % c;
        int64_t pn = i / (w * b) / (h * b) / c;
        int64_t channel = deep_channel(blocks_first, pc, py % b, px % b, c, b);
        int64_t k = ((pn * c * b * b + channel) * h + py / b) * w + px / b;
        if (to_space)
            ref_copy_element(y, i, x, k);
        else
            ref_copy_element(y, k, x, i);
    }
    return true;
}

bool ref_depth_to_space(RefCall *call)
{
    return move_blocks(call, true);
}

bool ref_space_to_depth(RefCall *call)
{
    return move_blocks(call, false);
}
