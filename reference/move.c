/* Oracles that move elements and compute nothing. They copy bytes, so that
 * every type and every bit comes through. */
#include <stdlib.h>
#include <string.h>

#include "reference/internal.h"

void ref_copy_element(Array *to, int64_t i, const Array *from, int64_t k)
{
    size_t size = dtype_size(from->dtype);

    memcpy((char *)to->data + (size_t)i * size,
           (const char *)from->data + (size_t)k * size, size);
}

/* The elements of input 0 under another shape. */
static bool same_data(RefCall *call, int rank, const int64_t *dims)
{
    const Array *x = call->in[0];
    Array *y = ref_out(call, 0, x->dtype, rank, dims);

    if (array_count(y) != array_count(x))
        return ref_fail(call, "%lld elements do not fill the new shape",
                        (long long)array_count(x));
    memcpy(y->data, x->data, array_bytes(x));
    return true;
}

bool ref_identity(RefCall *call)
{
    if (!ref_need(call, 1) ||
        !same_data(call, call->in[0]->rank, call->in[0]->dims))
        return false;
    if (call->out_count > 1) { /* the mask of a dropout: all kept */
        const Array *x = call->in[0];
        Array *mask = ref_out(call, 1, DT_BOOL, x->rank, x->dims);
        memset(mask->data, 1, array_bytes(mask));
    }
    return true;
}

bool ref_reshape(RefCall *call)
{
    int64_t dims[MAX_RANK], known = 1;
    int unknown = -1;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *shape = call->in[1];
    int rank = (int)array_count(shape);
    bool zero = attrs_int(call->attrs, "allowzero", 0) != 0;
    if (rank > MAX_RANK)
        return ref_fail(call, "rank %d; at most %d is supported", rank,
                        MAX_RANK);
    for (int i = 0; i < rank; i++) {
        dims[i] = array_get_int(shape, i);
        if (dims[i] == 0 && !zero) {
            if (i >= x->rank)
                return ref_fail(call, "extent %d copies a missing axis", i);
            dims[i] = x->dims[i];
        }
        if (dims[i] == -1)
            unknown = i;
        else
            known *= dims[i];
    }
    if (unknown >= 0)
        dims[unknown] = known > 0 ? array_count(x) / known : 0;
    return same_data(call, rank, dims);
}

bool ref_flatten(RefCall *call)
{
    int64_t dims[2] = {1, 1}, axis = attrs_int(call->attrs, "axis", 1);

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (axis < -x->rank || axis > x->rank)
        return ref_fail(call, "axis %lld outside rank %d", (long long)axis,
                        x->rank);
    axis += axis < 0 ? x->rank : 0;
    for (int i = 0; i < x->rank; i++)
        dims[i >= axis] *= x->dims[i];
    return same_data(call, 2, dims);
}

bool ref_squeeze(RefCall *call)
{
    bool drop[MAX_RANK] = {false};
    int64_t dims[MAX_RANK];
    int rank = 0;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0], *axes = ref_in(call, 1);
    for (int i = 0; i < x->rank && !axes; i++)
        drop[i] = x->dims[i] == 1;
    for (int64_t i = 0; axes && i < array_count(axes); i++) {
        int axis;
        if (!ref_axis(call, array_get_int(axes, i), x->rank, &axis))
            return false;
        drop[axis] = true;
    }
    for (int i = 0; i < x->rank; i++)
        if (!drop[i])
            dims[rank++] = x->dims[i];
    return same_data(call, rank, dims);
}

bool ref_unsqueeze(RefCall *call)
{
    bool made[MAX_RANK] = {false};
    int64_t dims[MAX_RANK];

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *axes = call->in[1];
    int rank = x->rank + (int)array_count(axes);
    if (rank > MAX_RANK)
        return ref_fail(call, "rank %d; at most %d is supported", rank,
                        MAX_RANK);
    for (int64_t i = 0; i < array_count(axes); i++) {
        int axis;
        if (!ref_axis(call, array_get_int(axes, i), rank, &axis))
            return false;
        made[axis] = true;
    }
    for (int i = 0, k = 0; i < rank; i++)
        dims[i] = made[i] ? 1 : x->dims[k++];
    return same_data(call, rank, dims);
}

/* Fills the output with elements of input 0 at walk offset 0. */
static void gather_walk(Array *y, const Array *x, RefWalk *w)
{
    int64_t count = array_count(y);

    for (int64_t i = 0; i < count; i++, ref_walk_next(w))
        ref_copy_element(y, i, x, w->offset[0]);
}

void ref_row_major_strides(const Array *x, int64_t *strides)
{
    int64_t stride = 1;

    for (int i = x->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= x->dims[i];
    }
}

bool ref_transpose(RefCall *call)
{
    int64_t strides[MAX_RANK];
    RefWalk w = {0};
    int count;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    const int64_t *perm = attrs_ints(call->attrs, "perm", &count);
    if (perm && count != x->rank)
        return ref_fail(call, "perm has %d axes for rank %d", count, x->rank);
    /* The result is walked in its own order, over the source's strides. */
    ref_row_major_strides(x, strides);
    w.rank = x->rank;
    for (int i = 0; i < x->rank; i++) {
        int from = x->rank - 1 - i;
        if (perm && !ref_axis(call, perm[i], x->rank, &from))
            return false;
        w.dims[i] = x->dims[from];
        w.stride[0][i] = strides[from];
    }
    gather_walk(ref_out(call, 0, x->dtype, x->rank, w.dims), x, &w);
    return true;
}

bool ref_concat(RefCall *call)
{
    int64_t dims[MAX_RANK], outer = 1, inner = 1, at = 0;
    int axis;

    if (!ref_need(call, call->in_count > 0 ? call->in_count : 1))
        return false;
    const Array *first = call->in[0];
    if (!ref_axis(call, attrs_int(call->attrs, "axis", 0), first->rank, &axis))
        return false;
    memcpy(dims, first->dims, sizeof dims);
    dims[axis] = 0;
    for (int i = 0; i < call->in_count; i++) {
        for (int k = 0; k < first->rank; k++)
            if (call->in[i]->rank != first->rank ||
                (k != axis && call->in[i]->dims[k] != first->dims[k]))
                return ref_fail(call, "shape of input %d does not fit", i);
        dims[axis] += call->in[i]->dims[axis];
    }
    for (int k = 0; k < axis; k++)
        outer *= dims[k];
    for (int k = axis + 1; k < first->rank; k++)
        inner *= dims[k];
    Array *y = ref_out(call, 0, first->dtype, first->rank, dims);
    size_t size = dtype_size(first->dtype);
    for (int64_t o = 0; o < outer; o++)
        for (int i = 0; i < call->in_count; i++) {
            int64_t run = call->in[i]->dims[axis] * inner;
            memcpy((char *)y->data + (size_t)at * size,
                   (const char *)call->in[i]->data + (size_t)(o * run) * size,
                   (size_t)run * size);
            at += run;
        }
    return true;
}

/* Parts from the second operand, or num_outputs equal ones, the last of
 * which may be smaller. */
bool ref_split(RefCall *call)
{
    int64_t outer = 1, inner = 1, from = 0;
    int axis;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0], *split = ref_in(call, 1);
    if (!ref_axis(call, attrs_int(call->attrs, "axis", 0), x->rank, &axis))
        return false;
    for (int k = 0; k < axis; k++)
        outer *= x->dims[k];
    for (int k = axis + 1; k < x->rank; k++)
        inner *= x->dims[k];
    int parts = (int)attrs_int(call->attrs, "num_outputs", call->out_count);
    if (call->out_count > REF_MAX_OUTPUTS || parts < 1 ||
        (split && array_count(split) < call->out_count))
        return ref_fail(call, "%d outputs are not supported", call->out_count);
    int64_t each = (x->dims[axis] + parts - 1) / parts;
    size_t size = dtype_size(x->dtype);
    for (int i = 0; i < call->out_count; i++) {
        int64_t dims[MAX_RANK];
        int64_t left = x->dims[axis] - from;
        memcpy(dims, x->dims, sizeof dims);
        dims[axis] = split         ? array_get_int(split, i)
                     : each < left ? each
                                   : left;
        if (dims[axis] < 0 || dims[axis] > left)
            return ref_fail(call, "parts are larger than the axis");
        Array *y = ref_out(call, i, x->dtype, x->rank, dims);
        size_t run = (size_t)(dims[axis] * inner) * size;
        for (int64_t o = 0; o < outer; o++)
            memcpy((char *)y->data + (size_t)o * run,
                   (const char *)x->data +
                       (size_t)((o * x->dims[axis] + from) * inner) * size,
                   run);
        from += dims[axis];
    }
    return true;
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

bool ref_slice(RefCall *call)
{
    int64_t strides[MAX_RANK], offset = 0;
    RefWalk w = {0};

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0], *starts = call->in[1], *ends = call->in[2];
    const Array *axes = ref_in(call, 3), *steps = ref_in(call, 4);
    ref_row_major_strides(x, strides);
    w.rank = x->rank;
    memcpy(w.dims, x->dims, sizeof w.dims);
    memcpy(w.stride[0], strides, sizeof strides);
    for (int64_t i = 0; i < array_count(starts); i++) {
        int axis;
        if (!ref_axis(call, axes ? array_get_int(axes, i) : i, x->rank, &axis))
            return false;
        int64_t n = x->dims[axis], step = steps ? array_get_int(steps, i) : 1;
        int64_t start = array_get_int(starts, i), end = array_get_int(ends, i);
        if (step == 0)
            return ref_fail(call, "a step is 0");
        start += start < 0 ? n : 0;
        end += end < 0 ? n : 0;
        /* Backwards, "before the first" is -1. */
        start =
            step > 0 ? clamp(start, 0, n) : clamp(start, n ? 0 : -1, n - 1);
        end = step > 0 ? clamp(end, 0, n) : clamp(end, -1, n - 1);
        /* From here on a negative step only has the walk go backwards. */
        int64_t span = step > 0 ? end - start : start - end;
        int64_t width = step > 0 ? step : -step;
        w.dims[axis] = span > 0 ? (span + width - 1) / width : 0;
        w.stride[0][axis] = strides[axis] * step;
        offset += start * strides[axis];
    }
    w.offset[0] = offset;
    gather_walk(ref_out(call, 0, x->dtype, x->rank, w.dims), x, &w);
    return true;
}

/* Source index for a padded one; -1: the constant. */
static int64_t pad_source(char mode, int64_t i, int64_t n)
{
    switch (mode) {
    case 'e': /* edge */
        return clamp(i, 0, n - 1);
    case 'r': /* reflect, without repeating the edge */
        /* Pads may be longer than the axis: it is reflected again and
         * again. */
        while (n > 1 && (i < 0 || i >= n))
            i = i < 0 ? -i : 2 * (n - 1) - i;
        return n > 1 ? i : 0;
    case 'w': /* wrap */
        return (i % n + n) % n;
    default:
        return i < 0 || i >= n ? -1 : i;
    }
}

bool ref_pad(RefCall *call)
{
    int64_t lo[MAX_RANK] = {0}, hi[MAX_RANK] = {0};
    int64_t dims[MAX_RANK], strides[MAX_RANK];
    RefWalk w = {0};

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *pads = call->in[1];
    const Array *value = ref_in(call, 2), *axes = ref_in(call, 3);
    const char *mode = attrs_string(call->attrs, "mode", "constant");
    int64_t count = axes ? array_count(axes) : x->rank;
    if (array_count(pads) != 2 * count)
        return ref_fail(call, "%lld pads for %lld axes",
                        (long long)array_count(pads), (long long)count);
    memcpy(dims, x->dims, sizeof dims);
    for (int64_t i = 0; i < count; i++) {
        int axis;
        if (!ref_axis(call, axes ? array_get_int(axes, i) : i, x->rank, &axis))
            return false;
        lo[axis] = array_get_int(pads, i);
        hi[axis] = array_get_int(pads, count + i);
        dims[axis] += lo[axis] + hi[axis];
        if (dims[axis] < 0)
            return ref_fail(call, "negative pads exceed the extent");
    }
    ref_row_major_strides(x, strides);
    Array *y = ref_out(call, 0, x->dtype, x->rank, dims);
    w.rank = x->rank;
    memcpy(w.dims, dims, sizeof dims);
    int64_t total = array_count(y);
    for (int64_t i = 0; i < total; i++, ref_walk_next(&w)) {
        int64_t from = 0;
        bool inside = true;
        for (int k = 0; k < x->rank; k++) {
            /* Only what negative pads leave is repeated. */
            int64_t first = lo[k] < 0 ? -lo[k] : 0;
            int64_t left = x->dims[k] - first + (hi[k] < 0 ? hi[k] : 0);
            int64_t at = pad_source(mode[0], w.index[k] - lo[k] - first, left);
            inside &= at >= 0;
            from += (at + first) * strides[k];
        }
        if (inside)
            ref_copy_element(y, i, x, from);
        /* Without a value the padding is zero, as a new array is. */
        else if (value)
            ref_copy_element(y, i, value, 0);
    }
    return true;
}

bool ref_expand(RefCall *call)
{
    Array want = {0};
    RefWalk w = {0};

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *shape = call->in[1];
    if (array_count(shape) > MAX_RANK)
        return ref_fail(call, "rank above %d", MAX_RANK);
    /* The wanted shape is one operand of a broadcast: an extent of 1 in it
     * keeps the input's extent. */
    want.rank = (int)array_count(shape);
    for (int i = 0; i < want.rank; i++)
        want.dims[i] = array_get_int(shape, i);
    const Array *both[2] = {x, &want};
    if (!ref_broadcast(call, both, 2, &w.rank, w.dims))
        return false;
    ref_broadcast_strides(x, w.rank, w.stride[0]);
    gather_walk(ref_out(call, 0, x->dtype, w.rank, w.dims), x, &w);
    return true;
}

bool ref_tile(RefCall *call)
{
    int64_t dims[MAX_RANK], strides[MAX_RANK];
    RefWalk w = {0};

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *repeats = call->in[1];
    if (array_count(repeats) != x->rank)
        return ref_fail(call, "%lld repeats for rank %d",
                        (long long)array_count(repeats), x->rank);
    ref_row_major_strides(x, strides);
    w.rank = x->rank;
    for (int i = 0; i < x->rank; i++)
        dims[i] = w.dims[i] = x->dims[i] * array_get_int(repeats, i);
    Array *y = ref_out(call, 0, x->dtype, x->rank, dims);
    int64_t total = array_count(y);
    for (int64_t i = 0; i < total; i++, ref_walk_next(&w)) {
        int64_t from = 0;
        for (int k = 0; k < x->rank; k++)
            from += w.index[k] % x->dims[k] * strides[k];
        ref_copy_element(y, i, x, from);
    }
    return true;
}

bool ref_gather(RefCall *call)
{
    int64_t dims[MAX_RANK], outer = 1, inner = 1;
    int axis, rank = 0;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *at = call->in[1];
    if (!ref_axis(call, attrs_int(call->attrs, "axis", 0), x->rank, &axis))
        return false;
    if (x->rank - 1 + at->rank > MAX_RANK)
        return ref_fail(call, "rank above %d", MAX_RANK);
    for (int k = 0; k < axis; k++)
        outer *= dims[rank++] = x->dims[k];
    for (int k = 0; k < at->rank; k++)
        dims[rank++] = at->dims[k];
    for (int k = axis + 1; k < x->rank; k++)
        inner *= dims[rank++] = x->dims[k];
    Array *y = ref_out(call, 0, x->dtype, rank, dims);
    int64_t count = array_count(at), n = x->dims[axis];
    size_t run = (size_t)inner * dtype_size(x->dtype);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < count; i++) {
            int64_t from = array_get_int(at, i);
            if (from < -n || from >= n)
                return ref_fail(call, "index %lld outside extent %lld",
                                (long long)from, (long long)n);
            from += from < 0 ? n : 0;
            memcpy((char *)y->data + (size_t)(o * count + i) * run,
                   (const char *)x->data + (size_t)(o * n + from) * run, run);
        }
    return true;
}

bool ref_shape(RefCall *call)
{
    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    int64_t start = attrs_int(call->attrs, "start", 0);
    int64_t end = attrs_int(call->attrs, "end", x->rank);
    start = clamp(start < 0 ? start + x->rank : start, 0, x->rank);
    end = clamp(end < 0 ? end + x->rank : end, start, x->rank);
    int64_t count = end - start;
    Array *y = ref_out(call, 0, DT_I64, 1, &count);
    for (int64_t i = 0; i < count; i++)
        array_set_int(y, i, x->dims[start + i]);
    return true;
}

bool ref_size(RefCall *call)
{
    if (!ref_need(call, 1))
        return false;
    array_set_int(ref_out(call, 0, DT_I64, 0, NULL), 0,
                  array_count(call->in[0]));
    return true;
}

bool ref_constant(RefCall *call)
{
    const Attr *a;

    if ((a = attrs_find(call->attrs, "value"))) {
        Array *y = ref_out(call, 0, a->tensor->dtype, a->tensor->rank,
                           a->tensor->dims);
        memcpy(y->data, a->tensor->data, array_bytes(y));
    } else if ((a = attrs_find(call->attrs, "value_float"))) {
        array_set(ref_out(call, 0, DT_F32, 0, NULL), 0, a->f);
    } else if ((a = attrs_find(call->attrs, "value_int"))) {
        array_set_int(ref_out(call, 0, DT_I64, 0, NULL), 0, a->i);
    } else if ((a = attrs_find(call->attrs, "value_floats"))) {
        Array *y = ref_out(call, 0, DT_F32, 1, &(int64_t){a->count});
        ref_store_doubles(y, a->floats);
    } else if ((a = attrs_find(call->attrs, "value_ints"))) {
        Array *y = ref_out(call, 0, DT_I64, 1, &(int64_t){a->count});
        ref_store_ints(y, a->ints);
    } else {
        return ref_fail(call, "no value attribute that is supported");
    }
    return true;
}

bool ref_constant_of_shape(RefCall *call)
{
    const Attr *value = attrs_find(call->attrs, "value");
    int64_t dims[MAX_RANK];

    if (!ref_need(call, 1))
        return false;
    int rank = (int)array_count(call->in[0]);
    if (rank > MAX_RANK)
        return ref_fail(call, "rank above %d", MAX_RANK);
    for (int i = 0; i < rank; i++)
        dims[i] = array_get_int(call->in[0], i);
    Array *y =
        ref_out(call, 0, value ? value->tensor->dtype : DT_F32, rank, dims);
    int64_t count = array_count(y);
    for (int64_t i = 0; i < count && value; i++)
        ref_copy_element(y, i, value->tensor, 0);
    return true;
}

bool ref_range(RefCall *call)
{
    if (!ref_need(call, 3))
        return false;
    double start = array_get(call->in[0], 0),
           limit = array_get(call->in[1], 0);
    double delta = array_get(call->in[2], 0);
    if (delta == 0)
        return ref_fail(call, "the step is 0");
    double steps = (limit - start) / delta;
    int64_t count = steps > 0 ? (int64_t)steps : 0;
    /* Rounded up: a last step that ends beyond the limit still starts before
     * it. */
    count += (double)count < steps;
    Array *y = ref_out(call, 0, call->in[0]->dtype, 1, &count);
    for (int64_t i = 0; i < count; i++)
        if (dtype_is_float(y->dtype))
            /* By multiplication: adding up would add up rounding errors. */
            array_set(y, i, start + (double)i * delta);
        else
            array_set_int(y, i,
                          array_get_int(call->in[0], 0) +
                              i * array_get_int(call->in[2], 0));
    return true;
}
