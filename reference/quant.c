/* Quantized values to real ones: (x - zero_point) * scale. */
#include "reference/internal.h"

bool ref_dequantize(RefCall *call)
{
    int64_t inner = 1, channels = 1;
    int axis = 0;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *scale = call->in[1];
    const Array *zero = ref_in(call, 2);
    int64_t scales = array_count(scale);
    int64_t block = attrs_int(call->attrs, "block_size", 0);
    if (scale->rank > 0 && scales > 1) {
        if (!ref_axis(call, attrs_int(call->attrs, "axis", 1), x->rank, &axis))
            return false;
        channels = x->dims[axis];
        for (int i = axis + 1; i < x->rank; i++)
            inner *= x->dims[i];
        if (block == 0 && scales != channels)
            return ref_fail(call, "%lld scales for %lld channels",
                            (long long)scales, (long long)channels);
    }
    Array *y = ref_out(call, 0, scale->dtype, x->rank, x->dims);
    int64_t count = array_count(x);
    for (int64_t i = 0; i < count; i++) {
        int64_t c = 0;
        if (scales > 1 && block == 0) {
            c = i / inner % channels;
        } else if (scales > 1) {
            /* Blocked: the scales have x's shape, shorter on one axis. */
            int64_t blocks = scale->dims[axis];
            int64_t outer = i / (inner * channels);
            c = (outer * blocks + i / inner % channels / block) * inner +
                i % inner;
        }
        int64_t z = zero ? array_get_int(zero, c) : 0;
        array_set(y, i,
                  (double)(array_get_int(x, i) - z) * array_get(scale, c));
    }
    return true;
}
