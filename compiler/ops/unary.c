/* Elementwise operators of one input. */
#include "ops/rules.h"

/* A row and the scalar function that defines it. */
typedef struct UnaryOp {
    Op op;
    unsigned types;
    DType result; /* DT_INVALID: that of the input */
    const Expr *(*scalar)(Arena *a, const Node *node, const Expr *x);
} UnaryOp;

/* The rows are the type rule: which types, and what comes out. */
static bool infer_unary(InferContext *c)
{
    const UnaryOp *row = (const UnaryOp *)c->node->op;
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, row->types))
        return false;
    infer_set(c, 0, row->result ? row->result : x->dtype, x->rank, x->dims);
    return true;
}

static void define_unary(DefineContext *c)
{
    const UnaryOp *row = (const UnaryOp *)c->node->op;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, row->scalar(b.arena, c->node, read_same(&b, c->in[0])));
}

/* Operators that are one expression kind. */
#define SIMPLE(name, kind)                                                    \
    static const Expr *scalar_##name(Arena *a, const Node *node,              \
                                     const Expr *x)                           \
    {                                                                         \
        (void)node;                                                           \
        return expr_unary(a, kind, x);                                        \
    }
SIMPLE(abs, EX_ABS)
SIMPLE(neg, EX_NEG)
SIMPLE(not, EX_NOT)
SIMPLE(floor, EX_FLOOR)
SIMPLE(ceil, EX_CEIL)
SIMPLE(round, EX_ROUND)
SIMPLE(sqrt, EX_SQRT)
SIMPLE(exp, EX_EXP)
SIMPLE(log, EX_LOG)
SIMPLE(erf, EX_ERF)
SIMPLE(tanh, EX_TANH)
SIMPLE(sin, EX_SIN)
SIMPLE(cos, EX_COS)

/* A true division: 1 / x rounds once. */
static const Expr *scalar_reciprocal(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    return expr_div(a, const_like(a, x, 1), x);
}

static const Expr *scalar_tan(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    return expr_div(a, expr_unary(a, EX_SIN, x), expr_unary(a, EX_COS, x));
}

/* NaN fails both comparisons and comes through. */
static const Expr *scalar_sign(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    const Expr *zero = const_like(a, x, 0);
    const Expr *negative = dtype_is_signed(x->dtype)
                               ? expr_select(a, expr_binary(a, EX_LT, x, zero),
                                             const_like(a, x, -1), x)
                               : x;
    return expr_select(a, expr_binary(a, EX_LT, zero, x), const_like(a, x, 1),
                       negative);
}

/* NaN alone differs from itself. */
static const Expr *scalar_isnan(Arena *a, const Node *node, const Expr *x)
{
    (void)node;
    return expr_binary(a, EX_NE, x, x);
}

/* Which of the two infinities count is asked by attributes. */
static const Expr *scalar_isinf(Arena *a, const Node *node, const Expr *x)
{
    const double inf = __builtin_inf();
    const Expr *above = expr_binary(a, EX_EQ, x, const_like(a, x, inf));
    const Expr *below = expr_binary(a, EX_EQ, x, const_like(a, x, -inf));
    bool positive = attrs_int(&node->attrs, "detect_positive", 1) != 0;
    bool negative = attrs_int(&node->attrs, "detect_negative", 1) != 0;
    if (positive && negative)
        return expr_binary(a, EX_OR, above, below);
    if (positive || negative)
        return positive ? above : below;
    return expr_const_int(a, DT_BOOL, 0);
}

static const AttrSpec isinf_attrs[] = {{"detect_negative", ATTR_FLAG, false},
                                       {"detect_positive", ATTR_FLAG, false},
                                       {0}};

#define ROW(field, op_name, allowed, result_type, first)                      \
    static const UnaryOp row_##field = {{.name = op_name,                     \
                                         .domain = "",                        \
                                         .min_inputs = 1,                     \
                                         .max_inputs = 1,                     \
                                         .min_outputs = 1,                    \
                                         .max_outputs = 1,                    \
                                         .traits = OP_ELEMENTWISE,            \
                                         .infer = infer_unary,                \
                                         .define = define_unary,              \
                                         .since = first},                     \
                                        allowed,                              \
                                        result_type,                          \
                                        scalar_##field}
ROW(abs, "Abs", TYPES_NUMBER, DT_INVALID, 13);
ROW(neg, "Neg", TYPES_SIGNED, DT_INVALID, 13);
ROW(not, "Not", TYPES_BOOL, DT_BOOL, 1);
ROW(floor, "Floor", TYPES_FLOAT, DT_INVALID, 13);
ROW(ceil, "Ceil", TYPES_FLOAT, DT_INVALID, 13);
ROW(round, "Round", TYPES_FLOAT, DT_INVALID, 11);
ROW(sqrt, "Sqrt", TYPES_FLOAT, DT_INVALID, 13);
ROW(exp, "Exp", TYPES_FLOAT, DT_INVALID, 13);
ROW(log, "Log", TYPES_FLOAT, DT_INVALID, 13);
ROW(erf, "Erf", TYPES_FLOAT, DT_INVALID, 13);
ROW(tanh, "Tanh", TYPES_FLOAT, DT_INVALID, 13);
ROW(sin, "Sin", TYPES_FLOAT, DT_INVALID, 7);
ROW(cos, "Cos", TYPES_FLOAT, DT_INVALID, 7);
ROW(tan, "Tan", TYPES_FLOAT, DT_INVALID, 7);
ROW(reciprocal, "Reciprocal", TYPES_FLOAT, DT_INVALID, 13);
ROW(sign, "Sign", TYPES_NUMBER, DT_INVALID, 13);
ROW(isnan, "IsNaN", TYPES_FLOAT, DT_BOOL, 13);

static const UnaryOp row_isinf = {{.name = "IsInf",
                                   .domain = "",
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .min_outputs = 1,
                                   .max_outputs = 1,
                                   .traits = OP_ELEMENTWISE,
                                   .attrs = isinf_attrs,
                                   .infer = infer_unary,
                                   .define = define_unary,
                                   .since = 10},
                                  TYPES_FLOAT,
                                  DT_BOOL,
                                  scalar_isinf};

/* What op.c lists. */
const Op *const ops_unary[] = {
    &row_abs.op,   &row_neg.op,   &row_not.op,  &row_floor.op,
    &row_ceil.op,  &row_round.op, &row_sqrt.op, &row_exp.op,
    &row_log.op,   &row_erf.op,   &row_tanh.op, &row_sin.op,
    &row_cos.op,   &row_tan.op,   &row_sign.op, &row_reciprocal.op,
    &row_isnan.op, &row_isinf.op, NULL};
