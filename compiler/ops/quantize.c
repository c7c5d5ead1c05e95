/* Affine quantization: real = (stored - zero_point) * scale, with one scale
 * for the tensor, one a slice of an axis, or one a block along an axis. */
#include <math.h>

#include "ops/rules.h"
#include "ops/whole.h"

enum { TYPES_STORED = 1 << DT_I8 | 1 << DT_U8 | 1 << DT_I16 | 1 << DT_U16 };

/* One scale for the whole tensor, whatever its rank is. */
static bool is_single(const TensorType *scale)
{
    return scale->rank == 0 ||
           (scale->rank == 1 && extent_known(scale->dims[0]) == 1);
}

/* Blocks along the axis: the last one may be shorter. */
static bool check_blocks(InferContext *c, int64_t size)
{
    const TensorType *x = infer_input(c, 0), *scale = infer_input(c, 1);
    int axis;
    if (size < 0)
        return infer_error(c, "block_size is %lld", (long long)size);
    if (!infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 1), x->rank,
                    &axis) ||
        !infer_rank(c, 1, x->rank, x->rank))
        return false;
    for (int i = 0; i < x->rank; i++) {
        int64_t has = extent_known(scale->dims[i]);
        int64_t length = extent_known(x->dims[i]);
        bool fits = i == axis
                        ? length >= 0 && has == (length + size - 1) / size
                        : extents_agree(scale->dims[i], x->dims[i]);
        if (!fits)
            return infer_error(c,
                               "its scales have %lld elements on axis %d, "
                               "which has %lld in blocks of %lld",
                               (long long)has, i, (long long)length,
                               (long long)(i == axis ? size : 1));
    }
    return true;
}

static bool check_axis(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *scale = infer_input(c, 1);
    int axis;
    if (!infer_rank(c, 1, 0, 1))
        return false;
    if (is_single(scale))
        return true;
    if (!infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 1), x->rank,
                    &axis))
        return false;
    if (extent_is_const(x->dims[axis]) &&
        !extent_equal(x->dims[axis], scale->dims[0]))
        return infer_error(c, "%lld scales for %lld elements of axis %d",
                           (long long)extent_known(scale->dims[0]),
                           (long long)x->dims[axis].value, axis);
    return true;
}

/* Scale and zero point (inputs 1 and 2) must fit x. */
static bool check_scale(InferContext *c)
{
    const TensorType *scale = infer_input(c, 1);
    int64_t block = attrs_int(&c->node->attrs, "block_size", 0);
    if (!infer_types(c, 1, TYPES_FLOAT) ||
        !(block ? check_blocks(c, block) : check_axis(c)))
        return false;
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

/* Scale or zero point for the element at the stage's indices. */
static const Expr *read_param(StageBuilder *b, DefineContext *c, int input)
{
    Arena *a = b->arena;
    const Buffer *param = c->in[input];
    int64_t block = attrs_int(&c->node->attrs, "block_size", 0);
    int axis =
        normal_axis(attrs_int(&c->node->attrs, "axis", 1), c->in[0]->rank);
    if (block && param->rank > 0)
        return read_along(b, param, axis,
                          expr_div(a, b->index[axis], expr_int(a, block)));
    if (param->rank == 0 || param->dims[0] == 1)
        return read_scalar(b, param);
    return expr_read(a, param, &b->index[axis]);
}

/* The result has the type of output_dtype, or that of the scale. */
static bool infer_dequantize(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int64_t number = attrs_int(&c->node->attrs, "output_dtype", 0);
    if (!infer_types(c, 0, TYPES_STORED | 1 << DT_I32) || !check_scale(c) ||
        (node_has_input(c->node, 2) && !infer_same_dtype(c, 0, 2)))
        return false;
    DType to = number ? dtype_of_onnx(number) : infer_input(c, 1)->dtype;
    if (!dtype_is_float(to))
        return infer_error(c,
                           "output_dtype %lld is no float type that is "
                           "supported",
                           (long long)number);
    infer_set(c, 0, to, x->rank, x->dims);
    return true;
}

/* In integers that hold the difference of any two stored values, then in
 * f32, rounded once to the result. */
static void define_dequantize(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    DType to = c->out[0]->dtype, inner = work_dtype(c->in[1]->dtype);
    const Expr *x = read_same(&b, c->in[0]);
    if (node_has_input(c->node, 2)) {
        DType wide = x->dtype == DT_I32 ? DT_I64 : DT_I32;
        x = expr_sub(a, expr_cast(a, wide, x),
                     expr_cast(a, wide, read_param(&b, c, 2)));
    } else {
        x = expr_cast(a, DT_I32, x);
    }
    const Expr *scale = expr_cast(a, inner, read_param(&b, c, 1));
    stage_end(&b,
              expr_cast(a, to, expr_mul(a, expr_cast(a, inner, x), scale)));
}

/* The zero point's type decides, then output_dtype, then u8. */
static bool infer_quantize(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    DType to = DT_U8;
    int64_t number = attrs_int(&c->node->attrs, "output_dtype", 0);
    int64_t precision = attrs_int(&c->node->attrs, "precision", 0);
    if (!infer_types(c, 0, TYPES_FLOAT | 1 << DT_I32) || !check_scale(c))
        return false;
    if (number)
        to = dtype_of_onnx(number);
    if (node_has_input(c->node, 2)) {
        if (number && to != infer_input(c, 2)->dtype)
            return infer_error(c,
                               "output_dtype is not the type of its zero "
                               "point %s",
                               c->node->inputs.data[2]->name);
        to = infer_input(c, 2)->dtype;
    }
    if (!(TYPES_STORED >> to & 1))
        return infer_error(c, "quantizes to %s, which is not supported",
                           dtype_name(to));
    if (precision && !dtype_is_float(dtype_of_onnx(precision)))
        return infer_error(c, "precision is no float type");
    infer_set(c, 0, to, x->rank, x->dims);
    return true;
}

double lowest_stored(DType dtype)
{
    return dtype == DT_I8 ? -128 : dtype == DT_I16 ? -32768 : 0;
}

double highest_stored(DType dtype)
{
    return dtype == DT_I8    ? 127
           : dtype == DT_U8  ? 255
           : dtype == DT_I16 ? 32767
                             : 65535;
}

/* x, a whole number, shifted by the zero point, saturated. */
static void end_stored(StageBuilder *b, const Expr *x, const Expr *zero,
                       DType to)
{
    Arena *a = b->arena;
    if (zero)
        x = expr_add(a, x, expr_cast(a, x->dtype, zero));
    x = expr_max(a, x, const_like(a, x, lowest_stored(to)));
    x = expr_min(a, x, const_like(a, x, highest_stored(to)));
    stage_end(b, expr_cast(a, to, x));
}

/* saturate(round(x / scale) + zero_point), halves to even */
static void define_quantize(DefineContext *c)
{
    int64_t precision = attrs_int(&c->node->attrs, "precision", 0);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *scale = read_param(&b, c, 1), *x = read_same(&b, c->in[0]);
    /* Where the operands do not say: integers need all their digits. */
    DType type = precision            ? dtype_of_onnx(precision)
                 : x->dtype == DT_I32 ? DT_F64
                                      : scale->dtype;
    /* A division: a product with 1 / scale would send some ties the other
     * way. */
    x = expr_div(a, expr_cast(a, type, x), expr_cast(a, type, scale));
    x = expr_unary(a, EX_ROUND, x);
    /* Half precision has too few digits for the sum. */
    x = expr_cast(a, work_dtype(type), x);
    end_stored(&b, x, node_has_input(c->node, 2) ? read_param(&b, c, 2) : NULL,
               c->out[0]->dtype);
}

/* ---- DynamicQuantizeLinear: scale and zero point from the data */

static bool infer_dynamic(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, 1 << DT_F32))
        return false;
    infer_set(c, 0, DT_U8, x->rank, x->dims);
    infer_set(c, 1, DT_F32, 0, NULL);
    infer_set(c, 2, DT_U8, 0, NULL);
    return true;
}

/* The range with 0 in it, one end. */
static Buffer *range_end(DefineContext *c, const char *reducer)
{
    const Buffer *x = c->in[0];
    Buffer *end = define_temp(c, reducer, DT_F32, 0, NULL);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, end);
    for (int i = 0; i < x->rank; i++)
        index[i] = stage_reduce(&b, x->dims[i], "k");
    const Expr *value = expr_read(b.arena, x, index);
    if (x->rank)
        stage_end_reduce(&b, reducer, value);
    else
        stage_end(&b, value);
    return end;
}

/* A result that may be left out. */
static Buffer *wanted_or_temp(DefineContext *c, int output, const char *name,
                              DType dtype)
{
    return c->out[output] ? c->out[output]
                          : define_temp(c, name, dtype, 0, NULL);
}

static void define_dynamic(DefineContext *c)
{
    Buffer *most = range_end(c, "max"), *least = range_end(c, "min");
    Buffer *scale = wanted_or_temp(c, 1, "scale", DT_F32);
    Buffer *zero = wanted_or_temp(c, 2, "zero", DT_U8);
    StageBuilder b;
    stage_begin(&b, c->def, scale);
    Arena *a = b.arena;
    const Expr *nil = expr_const(a, DT_F32, 0);
    const Expr *hi = expr_max(a, nil, read_scalar(&b, most));
    const Expr *lo = expr_min(a, nil, read_scalar(&b, least));
    const Expr *step =
        expr_div(a, expr_sub(a, hi, lo), expr_const(a, DT_F32, 255));
    /* Nothing but zeros: any scale does. */
    stage_end(&b, expr_select(a, expr_binary(a, EX_EQ, hi, lo),
                              expr_const(a, DT_F32, 1), step));
    stage_begin(&b, c->def, zero);
    lo = expr_min(a, nil, read_scalar(&b, least));
    const Expr *at = expr_sub(a, nil, expr_div(a, lo, read_scalar(&b, scale)));
    at = expr_max(a, nil, expr_min(a, at, expr_const(a, DT_F32, 255)));
    stage_end(&b, expr_cast(a, DT_U8, expr_unary(a, EX_ROUND, at)));
    stage_begin(&b, c->def, c->out[0]);
    const Expr *x =
        expr_div(a, read_same(&b, c->in[0]), read_scalar(&b, scale));
    end_stored(&b, expr_unary(a, EX_ROUND, x), read_scalar(&b, zero), DT_U8);
}

static const AttrSpec dequantize_attrs[] = {{"axis", ATTR_INT, false},
                                            {"block_size", ATTR_INT, false},
                                            {"output_dtype", ATTR_INT, false},
                                            {0}};
static const AttrSpec quantize_attrs[] = {
    {"axis", ATTR_INT, false},         {"block_size", ATTR_INT, false},
    {"output_dtype", ATTR_INT, false}, {"precision", ATTR_INT, false},
    {"saturate", ATTR_FLAG, false},    {0}};

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
                               .canonical = canonical_quantize,
                               .since = 13};

static const Op op_dynamic = {.name = "DynamicQuantizeLinear",
                              .domain = "",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .min_outputs = 1,
                              .max_outputs = 3,
                              .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                              .infer = infer_dynamic,
                              .define = define_dynamic,
                              .since = 11};

const Op *const ops_quantize[] = {&op_dequantize, &op_quantize, &op_dynamic,
                                  NULL};
