/* Affine quantization: real = (stored - zero_point) * scale. */
#include <math.h>

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
    /* One scale is for the whole tensor, whatever the axis says. */
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

static double clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Half to even, then saturated to the type of the zero point, u8 without
 * one. */
bool ref_quantize(RefCall *call)
{
    int64_t inner = 1, channels = 1;
    int axis;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *scale = call->in[1];
    const Array *zero = ref_in(call, 2);
    DType dtype = zero ? zero->dtype : DT_U8;
    /* The type's range; double holds all of it up to 32 bits. */
    int bits = (int)dtype_size(dtype) * 8;
    double lo = dtype_is_signed(dtype) ? -ldexp(1, bits - 1) : 0;
    double hi = ldexp(1, dtype_is_signed(dtype) ? bits - 1 : bits) - 1;
    int64_t scales = array_count(scale);
    if (scales > 1) {
        if (!ref_axis(call, attrs_int(call->attrs, "axis", 1), x->rank, &axis))
            return false;
        channels = x->dims[axis];
        for (int i = axis + 1; i < x->rank; i++)
            inner *= x->dims[i];
        if (scales != channels)
            return ref_fail(call, "%lld scales for %lld channels",
                            (long long)scales, (long long)channels);
    }
    Array *y = ref_out(call, 0, dtype, x->rank, x->dims);
    int64_t count = array_count(x);
    for (int64_t i = 0; i < count; i++) {
        int64_t c = scales > 1 ? i / inner % channels : 0;
        double ratio = array_get(x, i) / array_get(scale, c);
        /* The operator divides in its operands' type: ties depend on it. */
        if (scale->dtype == DT_F32)
            ratio = (float)ratio;
        double v =
            nearbyint(ratio) + (zero ? (double)array_get_int(zero, c) : 0);
        array_set_int(y, i, (int64_t)clamp(v, lo, hi));
    }
    return true;
}
