/* Oracles of what lays windows back into planes. */
#include <string.h>

#include "reference/internal.h"

/* Writes each value where its index says, in the extents that the windows
 * were taken from, which may be the corner of a larger result. */
bool ref_max_unpool(RefCall *call)
{
    int64_t dims[MAX_RANK], shape[MAX_RANK], strides[MAX_RANK];
    int n_kernel, n_stride, n_pad;
    const int64_t *kernel = attrs_ints(call->attrs, "kernel_shape", &n_kernel);
    const int64_t *stride = attrs_ints(call->attrs, "strides", &n_stride);
    const int64_t *pads = attrs_ints(call->attrs, "pads", &n_pad);

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *indices = call->in[1];
    if (n_kernel != x->rank - 2)
        return ref_fail(call, "kernel_shape does not fit the rank");
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[i];
        if (i >= 2)
            dims[i] = (x->dims[i] - 1) * (stride ? stride[i - 2] : 1) +
                      kernel[i - 2] - (pads ? pads[i - 2] : 0) -
                      (pads ? pads[i - 2 + n_kernel] : 0);
        shape[i] = ref_in(call, 2) ? array_get_int(call->in[2], i) : dims[i];
    }
    Array *y = ref_out(call, 0, x->dtype, x->rank, shape);
    ref_row_major_strides(y, strides);
    for (int64_t i = 0; i < array_count(x); i++) {
        int64_t at = array_get_int(indices, i), to = 0;
        for (int k = x->rank - 1; k >= 0; k--) {
            to += (k ? at % dims[k] : at) * strides[k];
            at /= dims[k];
        }
        if (to < 0 || to >= array_count(y))
            return ref_fail(call, "an index outside of the result");
        ref_copy_element(y, to, x, i);
    }
    return true;
}

/* Adds each cell of each block to the pixel it was taken from. */
bool ref_col2im(RefCall *call)
{
    int64_t dims[MAX_RANK], cells = 1, blocks = 1, count[MAX_RANK];
    int n;
    const int64_t *stride = attrs_ints(call->attrs, "strides", &n);
    const int64_t *dilation = attrs_ints(call->attrs, "dilations", &n);
    const int64_t *pads = attrs_ints(call->attrs, "pads", &n);

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0], *image = call->in[1], *block = call->in[2];
    int rank = (int)array_count(image);
    for (int i = 0; i < rank; i++) {
        int64_t size = array_get_int(block, i);
        dims[2 + i] = array_get_int(image, i);
        cells *= size;
        count[i] = (dims[2 + i] + (pads ? pads[i] + pads[rank + i] : 0) -
                    (dilation ? dilation[i] : 1) * (size - 1) - 1) /
                       (stride ? stride[i] : 1) +
                   1;
        blocks *= count[i];
    }
    if (x->rank != 3 || x->dims[1] % cells || x->dims[2] != blocks)
        return ref_fail(call, "the columns do not fit the image");
    dims[0] = x->dims[0];
    dims[1] = x->dims[1] / cells;
    Array *y = ref_out(call, 0, x->dtype, 2 + rank, dims);
    double *sum = ref_doubles(call, y);
    for (int64_t i = 0; i < array_count(x); i++) {
        int64_t column = i % blocks, row = i / blocks, cell = row % cells;
        int64_t to = 0, step = 1;
        bool inside = true;
        for (int k = rank - 1; k >= 0; k--) {
            int64_t size = array_get_int(block, k);
            int64_t at = column % count[k] * (stride ? stride[k] : 1) +
                         cell % size * (dilation ? dilation[k] : 1) -
                         (pads ? pads[k] : 0);
            inside &= at >= 0 && at < dims[2 + k];
            to += at * step;
            step *= dims[2 + k];
            column /= count[k];
            cell /= size;
        }
        if (inside)
            sum[row / cells * step + to] += array_get(x, i);
    }
    for (int64_t i = 0; i < array_count(y); i++)
        if (dtype_is_float(y->dtype))
            array_set(y, i, sum[i]);
        else
            array_set_int(y, i, ref_wrap(y->dtype, (int64_t)sum[i]));
    return true;
}
