/* Oracles of operators whose result depends on where an element stands. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

bool ref_trilu(RefCall *call)
{
    bool upper = attrs_int(call->attrs, "upper", 1) != 0;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    int64_t k = ref_in(call, 1) ? array_get_int(call->in[1], 0) : 0;
    if (x->rank < 2)
        return ref_fail(call, "rank %d; at least 2 is needed", x->rank);
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    for (int64_t i = 0; i < array_count(x); i++) {
        int64_t distance = i % columns - i / columns % rows;
        if (upper ? distance >= k : distance <= k)
            ref_copy_element(y, i, x, i);
    }
    return true;
}

bool ref_eye_like(RefCall *call)
{
    int64_t k = attrs_int(call->attrs, "k", 0);
    DType dtype;

    if (!ref_need(call, 1) ||
        !ref_dtype(call, "dtype", call->in[0]->dtype, &dtype))
        return false;
    const Array *x = call->in[0];
    if (x->rank != 2)
        return ref_fail(call, "rank %d; a matrix is needed", x->rank);
    Array *y = ref_out(call, 0, dtype, 2, x->dims);
    for (int64_t row = 0; row < x->dims[0]; row++)
        if (row + k >= 0 && row + k < x->dims[1])
            array_set(y, row * x->dims[1] + row + k, 1);
    return true;
}

bool ref_one_hot(RefCall *call)
{
    int64_t dims[MAX_RANK];
    int axis;

    if (!ref_need(call, 3))
        return false;
    const Array *indices = call->in[0], *values = call->in[2];
    int64_t depth = (int64_t)array_get(call->in[1], 0);
    int rank = indices->rank + 1;
    if (rank > MAX_RANK ||
        !ref_axis(call, attrs_int(call->attrs, "axis", -1), rank, &axis))
        return ref_fail(call, "the rank or axis is out of range");
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? depth : indices->dims[i - (i > axis)];
    Array *y = ref_out(call, 0, values->dtype, rank, dims);
    RefLines l = ref_lines(y, axis);
    for (int64_t i = 0; i < array_count(y); i++) {
        int64_t at = i / l.inner / l.n * l.inner + i % l.inner;
        int64_t index = (int64_t)array_get(indices, at);
        index += index < 0 ? depth : 0;
        ref_copy_element(y, i, values, index == i / l.inner % l.n);
    }
    return true;
}

bool ref_hardmax(RefCall *call)
{
    int axis;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (!ref_axis(call, attrs_int(call->attrs, "axis", -1), x->rank, &axis))
        return false;
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    RefLines l = ref_lines(x, axis);
    for (int64_t i = 0; i < l.outer * l.inner && l.n > 0; i++) {
        int64_t start = i / l.inner * l.n * l.inner + i % l.inner, best = 0;
        for (int64_t k = 1; k < l.n; k++)
            if (array_get(x, start + k * l.inner) >
                array_get(x, start + best * l.inner))
                best = k;
        array_set(y, start + best * l.inner, 1);
    }
    return true;
}

bool ref_reverse_sequence(RefCall *call)
{
    int batch, time;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *lengths = call->in[1];
    if (!ref_axis(call, attrs_int(call->attrs, "batch_axis", 1), x->rank,
                  &batch) ||
        !ref_axis(call, attrs_int(call->attrs, "time_axis", 0), x->rank,
                  &time))
        return false;
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    RefLines lt = ref_lines(x, time), lb = ref_lines(x, batch);
    for (int64_t i = 0; i < array_count(x); i++) {
        int64_t length = array_get_int(lengths, i / lb.inner % lb.n);
        int64_t t = i / lt.inner % lt.n;
        int64_t from = t < length ? length - 1 - t : t;
        ref_copy_element(y, i, x, i + (from - t) * lt.inner);
    }
    return true;
}

bool ref_compress(RefCall *call)
{
    int64_t dims[MAX_RANK], count = 0, at = 0;
    int axis = 0, rank = 1;
    RefLines l;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *condition = call->in[1];
    for (int64_t i = 0; i < array_count(condition); i++)
        count += array_get_int(condition, i) != 0;
    if (attrs_find(call->attrs, "axis")) {
        if (!ref_axis(call, attrs_int(call->attrs, "axis", 0), x->rank, &axis))
            return false;
        memcpy(dims, x->dims, sizeof dims);
        rank = x->rank;
        l = ref_lines(x, axis);
    } else {
        l = (RefLines){1, array_count(x), 1};
    }
    if (array_count(condition) > l.n)
        return ref_fail(call, "more conditions than elements");
    dims[axis] = count;
    Array *y = ref_out(call, 0, x->dtype, rank, dims);
    for (int64_t i = 0; i < l.outer; i++)
        for (int64_t k = 0; k < array_count(condition); k++)
            for (int64_t j = 0; j < l.inner && array_get_int(condition, k);
                 j++)
                ref_copy_element(y, at++, x, (i * l.n + k) * l.inner + j);
    return true;
}

bool ref_center_crop_pad(RefCall *call)
{
    int64_t dims[MAX_RANK], shift[MAX_RANK] = {0}, stride[MAX_RANK];
    RefWalk w = {0};
    int count;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *shape = call->in[1];
    const int64_t *axes = attrs_ints(call->attrs, "axes", &count);
    memcpy(dims, x->dims, sizeof dims);
    for (int64_t i = 0; i < array_count(shape); i++) {
        int axis;
        if (!ref_axis(call, axes ? axes[i] : i, x->rank, &axis))
            return false;
        dims[axis] = array_get_int(shape, i);
        int64_t cut = x->dims[axis] - dims[axis];
        shift[axis] = cut / 2; /* towards zero both ways */
    }
    Array *y = ref_out(call, 0, x->dtype, x->rank, dims);
    ref_row_major_strides(x, stride);
    w.rank = x->rank;
    memcpy(w.dims, dims, sizeof dims);
    for (int64_t i = 0; i < array_count(y); i++, ref_walk_next(&w)) {
        int64_t from = 0;
        bool inside = true;
        for (int k = 0; k < x->rank; k++) {
            int64_t at = w.index[k] + shift[k];
            inside &= at >= 0 && at < x->dims[k];
            from += at * stride[k];
        }
        if (inside)
            ref_copy_element(y, i, x, from);
    }
    return true;
}
