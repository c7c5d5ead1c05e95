/* Activations: elementwise functions of one input with parameters, and
 * Clip and PRelu, whose parameters are operands. */
#include <string.h>

#include "ops/rules.h"

typedef struct ActivationOp {
    Op op;
    unsigned types;
    const Expr *(*scalar)(Arena *a, const Node *node, const Expr *x);
} ActivationOp;

/* Type and shape stay as they are. */
static bool infer_activation(InferContext *c)
{
    const ActivationOp *row = (const ActivationOp *)c->node->op;
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, row->types))
        return false;
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

static void define_activation(DefineContext *c)
{
    const ActivationOp *row = (const ActivationOp *)c->node->op;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, row->scalar(b.arena, c->node, read_same(&b, c->in[0])));
}

/* An attribute as a constant of x's type; attributes are f32 in ONNX. */
static const Expr *param(Arena *a, const Node *node, const char *name,
                         double fallback, const Expr *x)
{
    float value = (float)attrs_float(&node->attrs, name, fallback);
    return const_like(a, x, (double)value);
}

/* False for NaN and for -0. */
static const Expr *is_negative(Arena *a, const Expr *x)
{
    return expr_binary(a, EX_LT, x, const_like(a, x, 0));
}

static const Expr *scalar_relu(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    return expr_max(a, x, const_like(a, x, 0)); /* lets NaN through */
}

/* NaN is not below 0 and comes through. */
static const Expr *scalar_leaky_relu(Arena *a, const Node *node, const Expr *x)
{
    const Expr *alpha = param(a, node, "alpha", 0.01, x);
    return expr_select(a, is_negative(a, x), expr_mul(a, alpha, x), x);
}

static const Expr *scalar_thresholded_relu(Arena *a, const Node *node,
                                           const Expr *x)
{
    const Expr *alpha = param(a, node, "alpha", 1, x);
    return expr_select(a, expr_binary(a, EX_LE, x, alpha), const_like(a, x, 0),
                       x);
}

/* Integers by way of double, which holds them up to 2^53. */
static const Expr *scalar_shrink(Arena *a, const Node *node, const Expr *x)
{
    const Expr *v = dtype_is_float(x->dtype) ? x : expr_cast(a, DT_F64, x);
    const Expr *lambd = param(a, node, "lambd", 0.5, v);
    const Expr *bias = param(a, node, "bias", 0, v);
    const Expr *zero = const_like(a, v, 0);
    const Expr *low = expr_binary(a, EX_LT, v, expr_unary(a, EX_NEG, lambd));
    const Expr *high = expr_binary(a, EX_LT, lambd, v);
    const Expr *number = expr_binary(a, EX_EQ, v, v); /* not NaN */
    const Expr *value =
        expr_select(a, low, expr_add(a, v, bias),
                    expr_select(a, high, expr_sub(a, v, bias),
                                expr_select(a, number, zero, v)));
    return expr_cast(a, x->dtype, value);
}

/* The difference loses digits near 0; ONNX's own formula does, too, and its
 * tolerance allows for it. */
static const Expr *exp_minus_one(Arena *a, const Expr *x)
{
    return expr_sub(a, expr_unary(a, EX_EXP, x), const_like(a, x, 1));
}

static const Expr *scalar_elu(Arena *a, const Node *node, const Expr *x)
{
    const Expr *alpha = param(a, node, "alpha", 1, x);
    return expr_select(a, is_negative(a, x),
                       expr_mul(a, alpha, exp_minus_one(a, x)), x);
}

static const Expr *scalar_selu(Arena *a, const Node *node, const Expr *x)
{
    const Expr *alpha = param(a, node, "alpha", 1.67326319217681884765625, x);
    const Expr *gamma = param(a, node, "gamma", 1.05070102214813232421875, x);
    const Expr *low = expr_mul(a, alpha, exp_minus_one(a, x));
    return expr_mul(a, gamma, expr_select(a, is_negative(a, x), low, x));
}

static const Expr *scalar_celu(Arena *a, const Node *node, const Expr *x)
{
    const Expr *alpha = param(a, node, "alpha", 1, x);
    const Expr *low =
        expr_mul(a, alpha, exp_minus_one(a, expr_div(a, x, alpha)));
    return expr_select(a, is_negative(a, x), low, x);
}

static const Expr *scalar_sigmoid(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    return expr_sigmoid(a, x);
}

/* x * sigmoid(alpha * x) */
static const Expr *scalar_swish(Arena *a, const Node *node, const Expr *x)
{
    const Expr *alpha = param(a, node, "alpha", 1, x);
    return expr_mul(a, x, expr_sigmoid(a, expr_mul(a, alpha, x)));
}

/* max(0, min(1, alpha * x + beta)): NaN comes through both. */
static const Expr *hard_sigmoid(Arena *a, const Expr *x, const Expr *alpha,
                                const Expr *beta)
{
    const Expr *line = expr_add(a, expr_mul(a, alpha, x), beta);
    return expr_max(a, const_like(a, x, 0),
                    expr_min(a, const_like(a, x, 1), line));
}

static const Expr *scalar_hard_sigmoid(Arena *a, const Node *node,
                                       const Expr *x)
{
    return hard_sigmoid(a, x, param(a, node, "alpha", 0.2, x),
                        param(a, node, "beta", 0.5, x));
}

/* x * hard_sigmoid(x), with alpha 1/6 and beta 1/2. */
static const Expr *scalar_hard_swish(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    const Expr *sixth =
        const_like(a, x, x->dtype == DT_F64 ? 1.0 / 6 : (double)(1.0f / 6.0f));
    return expr_mul(a, x, hard_sigmoid(a, x, sixth, const_like(a, x, 0.5)));
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), which cannot overflow.
 */
static const Expr *softplus(Arena *a, const Expr *x)
{
    const Expr *size = expr_unary(a, EX_ABS, x);
    const Expr *e = expr_unary(a, EX_EXP, expr_unary(a, EX_NEG, size));
    const Expr *low =
        expr_unary(a, EX_LOG, expr_add(a, const_like(a, x, 1), e));
    return expr_add(a, expr_max(a, x, const_like(a, x, 0)), low);
}

static const Expr *scalar_softplus(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    return softplus(a, x);
}

static const Expr *scalar_softsign(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    const Expr *size = expr_unary(a, EX_ABS, x);
    return expr_div(a, x, expr_add(a, const_like(a, x, 1), size));
}

/* x * tanh(softplus(x)) */
static const Expr *scalar_mish(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    return expr_mul(a, x, expr_unary(a, EX_TANH, softplus(a, x)));
}

/* 0.5 x (1 + erf(x / sqrt 2)), or the tanh formula where that is asked for:
 * the two differ visibly and do not stand for each other. */
static const Expr *scalar_gelu(Arena *a, const Node *node, const Expr *x)
{
    const Expr *one = const_like(a, x, 1), *half = const_like(a, x, 0.5);
    const char *kind = attrs_string(&node->attrs, "approximate", "none");
    const Expr *inner;
    if (kind[0] == 't') {
        /* tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) */
        const Expr *cube = expr_mul(a, expr_mul(a, x, x), x);
        cube = expr_mul(a, const_like(a, x, 0.044715), cube);
        inner = expr_mul(a, const_like(a, x, 0.79788456080286536),
                         expr_add(a, x, cube));
        inner = expr_unary(a, EX_TANH, inner);
    } else {
        inner = expr_mul(a, x, const_like(a, x, 0.70710678118654752));
        inner = expr_unary(a, EX_ERF, inner);
    }
    return expr_mul(a, expr_mul(a, half, x), expr_add(a, one, inner));
}

static bool infer_gelu(InferContext *c)
{
    const char *kind = attrs_string(&c->node->attrs, "approximate", "none");
    if (strcmp(kind, "none") != 0 && strcmp(kind, "tanh") != 0)
        return infer_error(c,
                           "approximate is \"%s\", it must be \"none\" or "
                           "\"tanh\"",
                           kind);
    return infer_activation(c);
}

/* Bounds are operands since version 11, scalars of the input's type. */
static bool infer_clip(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, TYPES_NUMBER))
        return false;
    for (int i = 1; i <= 2; i++) {
        if (!node_has_input(c->node, i))
            continue;
        const TensorType *bound = infer_input(c, i);
        if (!infer_same_dtype(c, 0, i))
            return false;
        if (bound->rank != 0 && type_count(bound) != 1)
            return infer_error(c, "its bound %s must be a scalar",
                               c->node->inputs.data[i]->name);
    }
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* Constant bounds become part of the expression, so that a Clip costs two
 * instructions in whatever it is fused into. */
static void define_clip(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *x = read_same(&b, c->in[0]), *bound[3] = {NULL};
    for (int i = 1; i <= 2; i++) {
        const Expr *zero[MAX_RANK];
        if (!node_has_input(c->node, i))
            continue;
        const Array *value = c->node->inputs.data[i]->value;
        for (int k = 0; k < c->in[i]->rank; k++)
            zero[k] = expr_int(b.arena, 0);
        if (value && dtype_is_float(value->dtype))
            bound[i] = expr_const(b.arena, x->dtype, array_get(value, 0));
        else if (value)
            bound[i] =
                expr_const_int(b.arena, x->dtype, array_get_int(value, 0));
        else
            bound[i] = expr_read(b.arena, c->in[i], zero);
    }
    /* Lower first: where the bounds cross, the upper one wins. */
    if (bound[1])
        x = expr_max(b.arena, x, bound[1]);
    if (bound[2])
        x = expr_min(b.arena, x, bound[2]);
    stage_end(&b, x);
}

/* A gate and what it lets through, of one shape. */
static bool infer_swiglu(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_same_dtype(c, 0, 1))
        return false;
    if (!type_equal(x, infer_input(c, 1)))
        return infer_error(c, "%s and %s must have the same shape",
                           c->node->inputs.data[0]->name,
                           c->node->inputs.data[1]->name);
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

static void define_swiglu(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    DType type = c->out[0]->dtype, work = work_dtype(type);
    const Expr *gate = expr_cast(b.arena, work, read_same(&b, c->in[0]));
    const Expr *value = expr_cast(b.arena, work, read_same(&b, c->in[1]));
    gate = scalar_swish(b.arena, c->node, gate);
    stage_end(&b, expr_cast(b.arena, type, expr_mul(b.arena, gate, value)));
}

/* The slope broadcasts to the input, never the other way round. */
static bool infer_prelu(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    int rank;
    if (!infer_types(c, 0, TYPES_NUMBER) || !infer_same_dtype(c, 0, 1) ||
        !infer_broadcast(c, 0, 1, &rank, dims))
        return false;
    TensorType both = {.dtype = x->dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        both.dims[i] = dims[i];
    if (!type_equal(&both, x))
        return infer_error(c, "slope %s does not broadcast to the shape of %s",
                           c->node->inputs.data[1]->name,
                           c->node->inputs.data[0]->name);
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* Like LeakyRelu, with the slope read from memory. */
static void define_prelu(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *x = read_same(&b, c->in[0]);
    const Expr *slope = read_broadcast(&b, c->in[1]);
    stage_end(&b, expr_select(b.arena, is_negative(b.arena, x),
                              expr_mul(b.arena, slope, x), x));
}

static const AttrSpec alpha_attrs[] = {{"alpha", ATTR_FLOAT, false}, {0}};
static const AttrSpec line_attrs[] = {
    {"alpha", ATTR_FLOAT, false}, {"beta", ATTR_FLOAT, false}, {0}};
static const AttrSpec shrink_attrs[] = {
    {"bias", ATTR_FLOAT, false}, {"lambd", ATTR_FLOAT, false}, {0}};
static const AttrSpec selu_attrs[] = {
    {"alpha", ATTR_FLOAT, false}, {"gamma", ATTR_FLOAT, false}, {0}};
static const AttrSpec gelu_attrs[] = {{"approximate", ATTR_STRING, false},
                                      {0}};

#define ROW(field, op_name, allowed, specs, rule, first)                      \
    static const ActivationOp row_##field = {{.name = op_name,                \
                                              .domain = "",                   \
                                              .min_inputs = 1,                \
                                              .max_inputs = 1,                \
                                              .min_outputs = 1,               \
                                              .max_outputs = 1,               \
                                              .traits = OP_ELEMENTWISE,       \
                                              .attrs = specs,                 \
                                              .infer = rule,                  \
                                              .define = define_activation,    \
                                              .since = first},                \
                                             allowed,                         \
                                             scalar_##field}
ROW(relu, "Relu", TYPES_SIGNED, NULL, infer_activation, 14);
ROW(leaky_relu, "LeakyRelu", TYPES_FLOAT, alpha_attrs, infer_activation, 16);
ROW(thresholded_relu, "ThresholdedRelu", TYPES_FLOAT, alpha_attrs,
    infer_activation, 10);
ROW(shrink, "Shrink", TYPES_NUMBER, shrink_attrs, infer_activation, 9);
ROW(elu, "Elu", TYPES_FLOAT, alpha_attrs, infer_activation, 6);
ROW(selu, "Selu", TYPES_FLOAT, selu_attrs, infer_activation, 6);
ROW(celu, "Celu", TYPES_FLOAT, alpha_attrs, infer_activation, 12);
ROW(sigmoid, "Sigmoid", TYPES_FLOAT, NULL, infer_activation, 13);
ROW(swish, "Swish", TYPES_FLOAT, alpha_attrs, infer_activation, 24);
ROW(hard_sigmoid, "HardSigmoid", TYPES_FLOAT, line_attrs, infer_activation, 6);
ROW(hard_swish, "HardSwish", TYPES_FLOAT, NULL, infer_activation, 14);
ROW(softplus, "Softplus", TYPES_FLOAT, NULL, infer_activation, 1);
ROW(softsign, "Softsign", TYPES_FLOAT, NULL, infer_activation, 1);
ROW(mish, "Mish", TYPES_FLOAT, NULL, infer_activation, 18);
ROW(gelu, "Gelu", TYPES_FLOAT, gelu_attrs, infer_gelu, 20);

static const Op op_clip = {.name = "Clip",
                           .domain = "",
                           .min_inputs = 1,
                           .max_inputs = 3,
                           .min_outputs = 1,
                           .max_outputs = 1,
                           .traits = OP_ELEMENTWISE | OP_BROADCAST,
                           .infer = infer_clip,
                           .define = define_clip,
                           .since = 13};

static const Op op_prelu = {.name = "PRelu",
                            .domain = "",
                            .min_inputs = 2,
                            .max_inputs = 2,
                            .min_outputs = 1,
                            .max_outputs = 1,
                            .traits = OP_ELEMENTWISE | OP_BROADCAST,
                            .infer = infer_prelu,
                            .define = define_prelu,
                            .since = 16};

static const Op op_swiglu = {.name = "SwiGLU",
                             .domain = "",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_ELEMENTWISE,
                             .attrs = alpha_attrs,
                             .infer = infer_swiglu,
                             .define = define_swiglu,
                             .since = 28};

const Op *const ops_activation[] = {&row_relu.op,
                                    &row_leaky_relu.op,
                                    &row_thresholded_relu.op,
                                    &row_shrink.op,
                                    &row_elu.op,
                                    &row_selu.op,
                                    &row_celu.op,
                                    &row_sigmoid.op,
                                    &row_swish.op,
                                    &row_hard_sigmoid.op,
                                    &row_hard_swish.op,
                                    &row_softplus.op,
                                    &row_softsign.op,
                                    &row_mish.op,
                                    &row_gelu.op,
                                    &op_clip,
                                    &op_prelu,
                                    &op_swiglu,
                                    NULL};
