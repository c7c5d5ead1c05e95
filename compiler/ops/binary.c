/* Arithmetic of two or more inputs that broadcast against each other. */
#include "ops/rules.h"

typedef struct BinaryOp {
    Op op;
    unsigned types;
    const Expr *(*scalar)(Arena *a, const Node *node, const Expr *x,
                          const Expr *y);
} BinaryOp;

/* ONNX does not convert: all inputs have one element type. */
static bool infer_binary(InferContext *c)
{
    const BinaryOp *row = (const BinaryOp *)c->node->op;
    Extent dims[MAX_RANK];
    int rank, last = c->node->inputs.count - 1;
    for (int i = 0; i <= last; i++) {
        if (!node_has_input(c->node, i))
            return infer_error(c, "input %d is left out", i);
        if (!infer_types(c, i, row->types) || !infer_same_dtype(c, 0, i))
            return false;
    }
    if (!infer_broadcast(c, 0, last, &rank, dims))
        return false;
    return infer_set_checked(c, 0, infer_input(c, 0)->dtype, rank, dims);
}

/* Combines any number of inputs from left to right. */
static const Expr *combine_all(StageBuilder *b, DefineContext *c)
{
    const BinaryOp *row = (const BinaryOp *)c->node->op;
    const Expr *value = read_broadcast(b, c->in[0]);
    for (int i = 1; i < c->node->inputs.count; i++)
        value =
            row->scalar(b->arena, c->node, value, read_broadcast(b, c->in[i]));
    return value;
}

static void define_binary(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, combine_all(&b, c));
}

/* A division by the count, not a product with its rounded inverse. */
static void define_mean(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *sum = combine_all(&b, c);
    stage_end(&b, expr_div(b.arena, sum,
                           const_like(b.arena, sum, c->node->inputs.count)));
}

#define SIMPLE(name, kind)                                                    \
    static const Expr *scalar_##name(Arena *a, const Node *node,              \
                                     const Expr *x, const Expr *y)            \
    {                                                                         \
        (void)node;                                                           \
        return expr_binary(a, kind, x, y);                                    \
    }
SIMPLE(add, EX_ADD)
SIMPLE(sub, EX_SUB)
SIMPLE(mul, EX_MUL)
SIMPLE(max, EX_MAX)
SIMPLE(min, EX_MIN)

/* False for NaN and for -0. */
static const Expr *is_negative(Arena *a, const Expr *x)
{
    return expr_binary(a, EX_LT, x, const_like(a, x, 0));
}

/* |y|, or 1 for 0: expressions want a positive divisor, and ONNX leaves a
 * division by zero open. Also 1 for the lowest number, which has no |y|. */
static const Expr *positive_divisor(Arena *a, const Expr *y)
{
    bool is_signed = dtype_is_signed(y->dtype);
    const Expr *size = is_signed ? expr_unary(a, EX_ABS, y) : y;
    const Expr *other =
        expr_binary(a, is_signed ? EX_LE : EX_EQ, size, const_like(a, y, 0));
    return expr_select(a, other, const_like(a, y, 1), size);
}

static const Expr *is_lowest(Arena *a, const Expr *y)
{
    return is_negative(a, expr_unary(a, EX_ABS, y));
}

/* ONNX truncates towards zero, EX_DIV floors. The quotient's sign is changed
 * last: -x need not exist. */
static const Expr *divide_ints(Arena *a, const Expr *x, const Expr *y)
{
    const Expr *by = positive_divisor(a, y);
    if (!dtype_is_signed(x->dtype))
        return expr_div(a, x, by);
    const Expr *floor = expr_div(a, x, by);
    const Expr *inexact = expr_binary(a, EX_NE, expr_mul(a, floor, by), x);
    const Expr *raise = expr_binary(a, EX_AND, is_negative(a, x), inexact);
    const Expr *q = expr_add(a, floor, expr_cast(a, x->dtype, raise));
    q = expr_select(a, is_negative(a, y), expr_unary(a, EX_NEG, q), q);
    const Expr *same = expr_binary(a, EX_EQ, x, y);
    return expr_select(a, is_lowest(a, y), expr_cast(a, x->dtype, same), q);
}

static const Expr *scalar_div(Arena *a, const Node *node, const Expr *x,
                              const Expr *y)
{
    (void)node;
    return dtype_is_float(x->dtype) ? expr_div(a, x, y) : divide_ints(a, x, y);
}

/* C's fmod, by way of double: exact for quotients below 2^53. Python's result
 * is another where its sign is not the divisor's. */
static const Expr *mod_floats(Arena *a, const Expr *x, const Expr *y,
                              bool fmod)
{
    const Expr *wide_x = expr_cast(a, DT_F64, x);
    const Expr *wide_y = expr_cast(a, DT_F64, y);
    const Expr *q = expr_div(a, wide_x, wide_y);
    const Expr *whole =
        expr_select(a, is_negative(a, q), expr_unary(a, EX_CEIL, q),
                    expr_unary(a, EX_FLOOR, q));
    const Expr *zero = const_like(a, q, 0);
    const Expr *rest = expr_sub(a, wide_x, expr_mul(a, whole, wide_y));
    /* Also of an infinite divisor, whose product with 0 is NaN. */
    rest = expr_select(a, expr_binary(a, EX_EQ, whole, zero), wide_x, rest);
    if (!fmod) {
        const Expr *other = expr_binary(a, EX_NE, is_negative(a, rest),
                                        is_negative(a, wide_y));
        other = expr_and(a, other, expr_binary(a, EX_NE, rest, zero));
        rest = expr_select(a, other, expr_add(a, rest, wide_y), rest);
    }
    return expr_cast(a, x->dtype, rest);
}

/* Python's result for fmod 0, C's for fmod 1. */
static const Expr *scalar_mod(Arena *a, const Node *node, const Expr *x,
                              const Expr *y)
{
    bool fmod = attrs_int(&node->attrs, "fmod", 0) != 0;
    if (dtype_is_float(x->dtype))
        return mod_floats(a, x, y, fmod);
    const Expr *by = positive_divisor(a, y);
    if (!dtype_is_signed(x->dtype))
        return expr_binary(a, EX_MOD, x, by);
    /* The sign of the dividend (fmod) or of the divisor decides. */
    const Expr *zero = const_like(a, x, 0);
    const Expr *rest = expr_binary(a, EX_MOD, x, by);
    const Expr *below = expr_binary(a, EX_AND, is_negative(a, fmod ? x : y),
                                    expr_binary(a, EX_NE, rest, zero));
    rest = expr_select(a, below, expr_sub(a, rest, by), rest);
    /* All other numbers are nearer to zero than the lowest. */
    const Expr *left = x;
    if (!fmod)
        left = expr_select(a, expr_binary(a, EX_LT, zero, x),
                           expr_add(a, x, y), x);
    left = expr_select(a, expr_binary(a, EX_EQ, x, y), zero, left);
    return expr_select(a, is_lowest(a, y), left, rest);
}

/* The exponent may have another type; the result has the base's. */
static bool infer_pow(InferContext *c)
{
    Extent dims[MAX_RANK];
    int rank;
    if (!infer_types(c, 0, TYPES_NUMBER) || !infer_types(c, 1, TYPES_NUMBER) ||
        !infer_broadcast(c, 0, 1, &rank, dims))
        return false;
    return infer_set_checked(c, 0, infer_input(c, 0)->dtype, rank, dims);
}

/* The exponent when it is one constant for all elements. */
static bool has_exponent(const Node *node, double *value)
{
    const Array *array = node->inputs.data[1]->value;
    if (!array || array_count(array) != 1)
        return false;
    *value = array_get(array, 0);
    return true;
}

static void define_pow(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *x = read_broadcast(&b, c->in[0]), *value;
    double exponent = 0;
    /* The usual exponents, as products, are exact and fast. */
    bool known = has_exponent(c->node, &exponent);
    if (known && exponent == 1) {
        value = x;
    } else if (known && exponent == 2) {
        value = expr_mul(a, x, x);
    } else if (known && exponent == 3) {
        value = expr_mul(a, expr_mul(a, x, x), x);
    } else {
        const Expr *y = read_broadcast(&b, c->in[1]);
        /* Integers by way of double, which holds them up to 2^53. */
        DType via = dtype_is_float(x->dtype) ? x->dtype : DT_F64;
        const Expr *power =
            expr_binary(a, EX_POW, expr_cast(a, via, x), expr_cast(a, via, y));
        if (via != x->dtype)
            power = expr_unary(a, EX_ROUND, power);
        value = expr_cast(a, x->dtype, power);
    }
    stage_end(&b, value);
}

static const AttrSpec mod_attrs[] = {{"fmod", ATTR_FLAG, false}, {0}};

#define ROW(field, op_name, most, allowed, more_traits, rule, definition,     \
            specs, function, first)                                           \
    static const BinaryOp row_##field = {                                     \
        {.name = op_name,                                                     \
         .domain = "",                                                        \
         .min_inputs = (most) == 2 ? 2 : 1,                                   \
         .max_inputs = most,                                                  \
         .min_outputs = 1,                                                    \
         .max_outputs = 1,                                                    \
         .traits = OP_ELEMENTWISE | OP_BROADCAST | (more_traits),             \
         .attrs = specs,                                                      \
         .infer = rule,                                                       \
         .define = definition,                                                \
         .since = first},                                                     \
        allowed,                                                              \
        function}
ROW(add, "Add", 2, TYPES_NUMBER, OP_COMMUTATIVE, infer_binary, define_binary,
    NULL, scalar_add, 14);
ROW(sub, "Sub", 2, TYPES_NUMBER, 0, infer_binary, define_binary, NULL,
    scalar_sub, 14);
ROW(mul, "Mul", 2, TYPES_NUMBER, OP_COMMUTATIVE, infer_binary, define_binary,
    NULL, scalar_mul, 14);
ROW(div, "Div", 2, TYPES_NUMBER, 0, infer_binary, define_binary, NULL,
    scalar_div, 14);
ROW(mod, "Mod", 2, TYPES_NUMBER, 0, infer_binary, define_binary, mod_attrs,
    scalar_mod, 13);
ROW(pow, "Pow", 2, TYPES_NUMBER, 0, infer_pow, define_pow, NULL, NULL, 15);
ROW(max, "Max", -1, TYPES_NUMBER, 0, infer_binary, define_binary, NULL,
    scalar_max, 13);
ROW(min, "Min", -1, TYPES_NUMBER, 0, infer_binary, define_binary, NULL,
    scalar_min, 13);
ROW(sum, "Sum", -1, TYPES_FLOAT, 0, infer_binary, define_binary, NULL,
    scalar_add, 13);
ROW(mean, "Mean", -1, TYPES_FLOAT, 0, infer_binary, define_mean, NULL,
    scalar_add, 13);

const Op *const ops_binary[] = {&row_add.op,  &row_sub.op, &row_mul.op,
                                &row_div.op,  &row_mod.op, &row_pow.op,
                                &row_max.op,  &row_min.op, &row_sum.op,
                                &row_mean.op, NULL};
