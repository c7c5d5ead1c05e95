/* Makers: quantized operators, whose results are exact. */
#include <stddef.h>

#include "suites/fuzz/maker.h"

/* Powers of two, with which no product is rounded, and others. */
static Tensor *scale(Maker *m)
{
    static const double values[] = {0.25, 0.5, 0.1, 0.03, 1};
    return scalar(m, DT_F32, values[choose(m->c, 5)]);
}

static Tensor *zero_point(Maker *m, DType dtype)
{
    return scalar(m, dtype,
                  dtype == DT_U8 ? 120 + choose(m->c, 16)
                                 : choose(m->c, 9) - 4);
}

static DType byte_type(Maker *m)
{
    return flip(m) ? DT_U8 : DT_I8;
}

/* A byte tensor: what there is, or a float one quantized. */
static Tensor *bytes(Maker *m, int lowest, int highest)
{
    if (flip(m))
        return pick(m, BYTES, lowest, highest);
    Tensor *x = cast(m, pick_float(m, lowest, highest), DT_F32);
    return x ? apply(m, "QuantizeLinear", (Attrs){0}, x, scale(m),
                     zero_point(m, byte_type(m)))
             : NULL;
}

/* One scale for all, or one a channel. */
static bool make_quantize(Maker *m)
{
    Tensor *x = cast(m, pick_float(m, 0, 4), DT_F32);
    DType to = byte_type(m);
    if (!x)
        return false;
    if (x->type.rank > 1 && flip(m) && !is_open(x, 1)) { /* by channel */
        int64_t n = dim(x, 1);
        Tensor *s = apply1(m, "Abs", vector(m, DT_F32, n, 0.5, 0.1));
        s = s ? apply(m, "Add", (Attrs){0}, s, scalar(m, DT_F32, 0.125), NULL)
              : NULL;
        return s && apply(m, "QuantizeLinear", attr_int(m, "axis", 1), x, s,
                          flip(m) ? vector(m, to, n, 3, 1) : NULL);
    }
    return apply(m, "QuantizeLinear", (Attrs){0}, x, scale(m),
                 rarely(m, 3) ? NULL : zero_point(m, to)) != NULL;
}

static bool make_dequantize(Maker *m)
{
    Tensor *x = bytes(m, 0, 4);
    return x && apply(m, "DequantizeLinear", (Attrs){0}, x, scale(m),
                      rarely(m, 3) ? NULL : zero_point(m, x->type.dtype));
}

/* There and back, with something that commutes with it between. */
static bool make_fake_quantize(Maker *m)
{
    static const char *const ops[] = {"Relu", "Identity", "Neg"};
    Tensor *x = cast(m, pick_float(m, 0, 4), DT_F32), *s = scale(m);
    Tensor *zero = zero_point(m, byte_type(m));
    Tensor *q = x ? apply(m, "QuantizeLinear", (Attrs){0}, x, s, zero) : NULL;
    Tensor *y =
        q ? apply(m, "DequantizeLinear", (Attrs){0}, q, s, zero) : NULL;
    y = y && flip(m) ? apply1(m, ops[choose(m->c, 3)], y) : y;
    if (y && flip(m))
        return apply(m, "QuantizeLinear", (Attrs){0}, y,
                     flip(m) ? s : scale(m), zero) != NULL;
    return y != NULL;
}

static bool make_dynamic(Maker *m)
{
    Tensor *x = cast(m, pick_float(m, 0, 4), DT_F32);
    return x && apply_list(m, "DynamicQuantizeLinear", (Attrs){0}, &x, 1, 3);
}

/* Around the zero points, so that differences have either sign. */
static Tensor *byte_weights(Maker *m, DType dtype, int rank,
                            const int64_t *dims)
{
    return weights(m, dtype, rank, dims, dtype == DT_U8 ? 100 : -1, 1);
}

static bool make_matmul_integer(Maker *m)
{
    Tensor *x = bytes(m, 1, 4);
    if (!x || is_open(x, x->type.rank - 1))
        return false;
    int64_t dims[] = {dim(x, x->type.rank - 1), extent(m)};
    DType type = byte_type(m);
    Tensor *in[] = {x, byte_weights(m, type, 2, dims),
                    flip(m) ? zero_point(m, x->type.dtype) : NULL,
                    !flip(m)  ? NULL
                    : flip(m) ? vector(m, type, dims[1], 1, 1)
                              : zero_point(m, type)};
    return apply_list(m, "MatMulInteger", (Attrs){0}, in, 4, 1) != NULL;
}

static bool make_qlinear_matmul(Maker *m)
{
    Tensor *x = bytes(m, 1, 4);
    if (!x || is_open(x, x->type.rank - 1))
        return false;
    int64_t dims[] = {dim(x, x->type.rank - 1), extent(m)};
    DType type = byte_type(m);
    Tensor *in[] = {x,
                    scale(m),
                    zero_point(m, x->type.dtype),
                    byte_weights(m, type, 2, dims),
                    scale(m),
                    zero_point(m, type),
                    scale(m),
                    zero_point(m, x->type.dtype)};
    return apply_list(m, "QLinearMatMul", (Attrs){0}, in, 8, 1) != NULL;
}

static Attrs conv_attrs(Maker *m, const Tensor *x, int64_t *dims)
{
    int64_t pads[6], strides[3], spatial = x->type.rank - 2;
    int64_t channels = dim(x, 1);
    bool depthwise = rarely(m, 3);
    dims[0] = depthwise ? channels : extent(m);
    dims[1] = depthwise ? 1 : channels;
    for (int64_t i = 0; i < spatial; i++) {
        dims[2 + i] = 1 + choose(m->c, 3);
        strides[i] = 1 + choose(m->c, 2);
        pads[i] = choose(m->c, 2);
        pads[i + spatial] = choose(m->c, 2);
    }
    Attrs attrs = attr_int(m, "group", depthwise ? channels : 1);
    set_ints(m, &attrs, "pads", pads, (int)(2 * spatial));
    set_ints(m, &attrs, "strides", strides, (int)spatial);
    return attrs;
}

static bool make_conv_integer(Maker *m)
{
    Tensor *x = bytes(m, 3, 5);
    int64_t dims[5];
    if (!x || is_open(x, 1) || !dim(x, 1))
        return false;
    Attrs attrs = conv_attrs(m, x, dims);
    DType type = byte_type(m);
    Tensor *in[] = {x, byte_weights(m, type, x->type.rank, dims),
                    flip(m) ? zero_point(m, x->type.dtype) : NULL,
                    flip(m) ? zero_point(m, type) : NULL};
    return apply_list(m, "ConvInteger", attrs, in, 4, 1) != NULL;
}

static bool make_qlinear_conv(Maker *m)
{
    Tensor *x = bytes(m, 3, 5);
    int64_t dims[5];
    if (!x || is_open(x, 1) || !dim(x, 1))
        return false;
    Attrs attrs = conv_attrs(m, x, dims);
    DType type = byte_type(m);
    Tensor *in[] = {x,
                    scale(m),
                    zero_point(m, x->type.dtype),
                    byte_weights(m, type, x->type.rank, dims),
                    scale(m),
                    zero_point(m, type),
                    scale(m),
                    zero_point(m, x->type.dtype),
                    flip(m) ? vector(m, DT_I32, dims[0], 0, 1) : NULL};
    return apply_list(m, "QLinearConv", attrs, in, 9, 1) != NULL;
}

/* As quantizers of models write it: bytes as floats around a float layer. */
static bool make_qdq_layer(Maker *m)
{
    Tensor *x = bytes(m, 4, 4);
    int64_t dims[5];
    if (!x || is_open(x, 1) || !dim(x, 1))
        return false;
    Tensor *zero = zero_point(m, x->type.dtype);
    Tensor *f = apply(m, "DequantizeLinear", (Attrs){0}, x, scale(m), zero);
    Attrs attrs = conv_attrs(m, x, dims);
    Tensor *w =
        apply(m, "DequantizeLinear", (Attrs){0},
              byte_weights(m, DT_I8, 4, dims), scale(m), scalar(m, DT_I8, 0));
    Tensor *y = f && w
                    ? apply(m, "Conv", attrs, f, w,
                            flip(m) ? vector(m, DT_F32, dims[0], 0, 1) : NULL)
                    : NULL;
    if (y && flip(m))
        y = apply1(m, "Relu", y);
    return y && apply(m, "QuantizeLinear", (Attrs){0}, y, scale(m), zero);
}

const MakerRow makers_quantized[] = {
    {"quantize", make_quantize},
    {"dequantize", make_dequantize},
    {"fake quantize", make_fake_quantize},
    {"qlinear conv", make_qlinear_conv},
    {"qlinear matmul", make_qlinear_matmul},
    {"matmul integer", make_matmul_integer},
    {"conv integer", make_conv_integer},
    {"qdq layer", make_qdq_layer},
    {"dynamic", make_dynamic},
    {NULL, NULL},
};
