/* Affine quantization: real = (stored - zero_point) * scale, with one
 * scale for the tensor or one a slice of an axis. */
#include <math.h>

#include "ops/rules.h"

enum { TYPES_STORED = 1 << DT_I8 | 1 << DT_U8 | 1 << DT_I16 | 1 << DT_U16 };

/* Scale and zero point (inputs 1 and 2) must fit x. */
static bool check_scale(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *scale = infer_input(c, 1);
    int axis;
    if (attrs_int(&c->node->attrs, "block_size", 0) != 0)
        return infer_error(c, "block_size is not supported; use one scale a "
                              "tensor or axis");
    if (!infer_types(c, 1, TYPES_FLOAT) || !infer_rank(c, 1, 0, 1))
        return false;
    if (scale->rank == 1 && extent_known(scale->dims[0]) != 1) {
        if (!infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 1),
                        x->rank, &axis))
            return false;
        if (extent_is_const(x->dims[axis]) &&
            !extent_equal(x->dims[axis], scale->dims[0]))
            return infer_error(c, "%lld scales for %lld elements of axis %d",
                               (long long)extent_known(scale->dims[0]),
                               (long long)x->dims[axis].value, axis);
    }
    const Array *value = c->node->inputs.data[1]->value;
    for (int64_t i = 0; value && i < array_count(value); i++) {
        double s = array_get(value, i);
        if (!(s > 0) || isinf(s))
            return infer_error(c,
                               "its scale %s holds %g; a scale must be "
                               "positive and finite",
                               c->node->inputs.data[1]->name, s);
    }
    if (node_has_input(c->node, 2)) {
        TensorType zero = *infer_input(c, 2);
        zero.dtype = scale->dtype;
        if (!type_equal(&zero, scale))
            return infer_error(c,
                               "zero point %s does not have the shape of "
                               "the scale",
                               c->node->inputs.data[2]->name);
    }
    return true;
}

/* The result has the type of the scale. */
static bool infer_dequantize(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, TYPES_STORED | 1 << DT_I32) || !check_scale(c) ||
        (node_has_input(c->node, 2) && !infer_same_dtype(c, 0, 2)))
        return false;
    infer_set(c, 0, infer_input(c, 1)->dtype, x->rank, x->dims);
    return true;
}

/* Scale or zero point for the element at the stage's indices. */
static const Expr *read_param(StageBuilder *b, DefineContext *c, int input)
{
    const Buffer *param = c->in[input];
    const Expr *index[1] = {expr_int(b->arena, 0)};
    if (param->rank == 1 && param->dims[0] != 1)
        index[0] = b->index[normal_axis(attrs_int(&c->node->attrs, "axis", 1),
                                        c->in[0]->rank)];
    return expr_read(b->arena, param, index);
}

static void define_dequantize(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    DType to = c->out[0]->dtype;
    /* In i32, where the difference of any two stored values fits. */
    const Expr *x = expr_cast(a, DT_I32, read_same(&b, c->in[0]));
    if (node_has_input(c->node, 2))
        x = expr_sub(a, x, expr_cast(a, DT_I32, read_param(&b, c, 2)));
    stage_end(&b, expr_mul(a, expr_cast(a, to, x), read_param(&b, c, 1)));
}

/* The zero point's type decides, then output_dtype, then u8. */
static bool infer_quantize(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    DType to = DT_U8;
    int64_t number = attrs_int(&c->node->attrs, "output_dtype", 0);
    if (!infer_types(c, 0, TYPES_FLOAT | 1 << DT_I32) || !check_scale(c))
        return false;
    if (number)
        to = dtype_of_onnx(number);
    if (node_has_input(c->node, 2))
        to = infer_input(c, 2)->dtype;
    if (!(TYPES_STORED >> to & 1))
        return infer_error(c, "quantizes to %s, which is not supported",
                           dtype_name(to));
    infer_set(c, 0, to, x->rank, x->dims);
    return true;
}

/* Bounds are applied in floating point, where no value can wrap. */
static double lowest_stored(DType dtype)
{
    return dtype == DT_I8 ? -128 : dtype == DT_I16 ? -32768 : 0;
}

static double highest_stored(DType dtype)
{
    return dtype == DT_I8    ? 127
           : dtype == DT_U8  ? 255
           : dtype == DT_I16 ? 32767
                             : 65535;
}

/* saturate(round(x / scale) + zero_point), halves to even */
static void define_quantize(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    DType to = c->out[0]->dtype;
    const Expr *scale = read_param(&b, c, 1);
    const Expr *x = expr_cast(a, scale->dtype, read_same(&b, c->in[0]));
    /* A division: a product with 1 / scale would send some ties the other
     * way. */
    x = expr_unary(a, EX_ROUND, expr_div(a, x, scale));
    if (node_has_input(c->node, 2))
        x = expr_add(a, x, expr_cast(a, x->dtype, read_param(&b, c, 2)));
    x = expr_max(a, x, const_like(a, x, lowest_stored(to)));
    x = expr_min(a, x, const_like(a, x, highest_stored(to)));
    stage_end(&b, expr_cast(a, to, x));
}

static const AttrSpec dequantize_attrs[] = {{"axis", ATTR_INT, false},
                                            {"block_size", ATTR_INT, false},
                                            {"output_dtype", ATTR_INT, false},
                                            {0}};
static const AttrSpec quantize_attrs[] = {
    {"axis", ATTR_INT, false},         {"block_size", ATTR_INT, false},
    {"output_dtype", ATTR_INT, false}, {"precision", ATTR_INT, false},
    {"saturate", ATTR_INT, false},     {0}};

static const Op op_dequantize = {.name = "DequantizeLinear",
                                 .domain = "",
                                 .min_inputs = 2,
                                 .max_inputs = 3,
                                 .min_outputs = 1,
                                 .max_outputs = 1,
                                 .traits = OP_ELEMENTWISE,
                                 .attrs = dequantize_attrs,
                                 .infer = infer_dequantize,
                                 .define = define_dequantize,
                                 .since = 13};
static const Op op_quantize = {.name = "QuantizeLinear",
                               .domain = "",
                               .min_inputs = 2,
                               .max_inputs = 3,
                               .min_outputs = 1,
                               .max_outputs = 1,
                               .traits = OP_ELEMENTWISE,
                               .attrs = quantize_attrs,
                               .infer = infer_quantize,
                               .define = define_quantize,
                               .since = 13};

const Op *const ops_quantize[] = {&op_dequantize, &op_quantize, NULL};
