/* Affine quantization: real = (stored - zero_point) * scale. */
#include <math.h>

#include "reference/internal.h"

/* Which scale and zero point an element has. */
typedef struct Params {
    int64_t count, channels, inner, block, blocks;
} Params;

static bool read_params(RefCall *call, Params *p)
{
    const Array *x = call->in[0], *scale = call->in[1];
    int axis = 0;

    *p = (Params){array_count(scale), 1, 1,
                  attrs_int(call->attrs, "block_size", 0), 1};
    /* One scale is for the whole tensor, whatever the axis says. */
    if (p->count == 1)
        return true;
    if (!ref_axis(call, attrs_int(call->attrs, "axis", 1), x->rank, &axis))
        return false;
    p->channels = x->dims[axis];
    for (int i = axis + 1; i < x->rank; i++)
        p->inner *= x->dims[i];
    if (p->block)
        p->blocks = scale->dims[axis];
    else if (p->count != p->channels)
        return ref_fail(call, "%lld scales for %lld channels",
                        (long long)p->count, (long long)p->channels);
    return true;
}

static int64_t param_of(const Params *p, int64_t i)
{
    int64_t channel = i / p->inner % p->channels;

    if (p->count == 1)
        return 0;
    if (!p->block)
        return channel;
    /* The scales have x's shape, shorter on one axis. */
    return (i / p->inner / p->channels * p->blocks + channel / p->block) *
               p->inner +
           i % p->inner;
}

bool ref_dequantize(RefCall *call)
{
    Params p;
    DType dtype;

    if (!ref_need(call, 2) || !read_params(call, &p))
        return false;
    const Array *x = call->in[0], *scale = call->in[1];
    const Array *zero = ref_in(call, 2);
    if (!ref_dtype(call, "output_dtype", scale->dtype, &dtype))
        return false;
    Array *y = ref_out(call, 0, dtype, x->rank, x->dims);
    for (int64_t i = 0; i < array_count(x); i++) {
        int64_t c = param_of(&p, i);
        int64_t z = zero ? array_get_int(zero, c) : 0;
        double v = (double)(array_get_int(x, i) - z) * array_get(scale, c);
        /* By way of f32, as the operator has it. */
        array_set(y, i, scale->dtype == DT_F64 ? v : (double)(float)v);
    }
    return true;
}

static double clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Into the type's range, all of which double holds up to 32 bits; NaN is
 * 0. */
static double saturated(double v, DType dtype)
{
    if (isnan(v))
        return 0;
    return clamp(v, (double)ref_int_bound(dtype, false),
                 (double)ref_int_bound(dtype, true));
}

/* v as a value of that type would be. */
static double rounded(double v, DType dtype)
{
    switch (dtype) {
    case DT_F32:
        return (double)(float)v;
    case DT_F16:
        return (double)half_to_float(float_to_half((float)v));
    case DT_BF16:
        return (double)bfloat_to_float(float_to_bfloat((float)v));
    default:
        return v;
    }
}

/* Half to even, then saturated to the type of the zero point, or the one that
 * an attribute names, or u8. */
bool ref_quantize(RefCall *call)
{
    Params p;
    DType dtype, type;

    if (!ref_need(call, 2) || !read_params(call, &p))
        return false;
    const Array *x = call->in[0], *scale = call->in[1];
    const Array *zero = ref_in(call, 2);
    /* The operator divides in its operands' type: ties depend on it. */
    type = x->dtype == DT_I32 ? DT_F64 : scale->dtype;
    if (!ref_dtype(call, "output_dtype", DT_U8, &dtype) ||
        !ref_dtype(call, "precision", type, &type))
        return false;
    if (zero)
        dtype = zero->dtype;
    Array *y = ref_out(call, 0, dtype, x->rank, x->dims);
    for (int64_t i = 0; i < array_count(x); i++) {
        int64_t c = param_of(&p, i);
        double ratio = rounded(array_get(x, i), type) /
                       rounded(array_get(scale, c), type);
        double v = nearbyint(rounded(ratio, type)) +
                   (zero ? (double)array_get_int(zero, c) : 0);
        array_set_int(y, i, (int64_t)saturated(v, dtype));
    }
    return true;
}

/* Scale and zero point from the range of the data, with 0 in it. */
bool ref_dynamic_quantize(RefCall *call)
{
    float hi = 0, lo = 0, scale, zero;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    for (int64_t i = 0; i < array_count(x); i++) {
        hi = fmaxf(hi, (float)array_get(x, i));
        lo = fminf(lo, (float)array_get(x, i));
    }
    scale = hi == lo ? 1 : (hi - lo) / 255;
    zero = nearbyintf((float)clamp((double)(0 - lo / scale), 0, 255));
    Array *y = ref_out(call, 0, DT_U8, x->rank, x->dims);
    for (int64_t i = 0; i < array_count(x); i++) {
        float v = nearbyintf((float)array_get(x, i) / scale) + zero;
        array_set_int(y, i, (int64_t)saturated((double)v, DT_U8));
    }
    if (call->out_count > 1)
        array_set(ref_out(call, 1, DT_F32, 0, NULL), 0, (double)scale);
    if (call->out_count > 2)
        array_set(ref_out(call, 2, DT_U8, 0, NULL), 0, (double)zero);
    return true;
}
