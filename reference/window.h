/* Sliding windows over up to three spatial axes, for convolution and
 * pooling. Unused leading axes have extent 1. */
#ifndef ASSAY_REFERENCE_WINDOW_H
#define ASSAY_REFERENCE_WINDOW_H

#include "reference/reference.h"

typedef struct Window {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
    int64_t lo[3], hi[3]; /* padding */
} Window;

/* From the attributes strides, dilations, pads, auto_pad and ceil_mode;
 * `x` has its spatial axes from 2 on. False with an error. */
bool window_read(RefCall *call, const Array *x, const int64_t *kernel,
                 int spatial, Window *w);

/* Input position of tap `k` of output `o`; may lie outside. */
static inline int64_t window_at(const Window *w, int axis, int64_t o,
                                int64_t k)
{
    return o * w->stride[axis] - w->lo[axis] + k * w->dilation[axis];
}

#endif
