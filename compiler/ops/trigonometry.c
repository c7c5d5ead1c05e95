/* Inverse trigonometric and hyperbolic functions, computed in f64 from what
 * expressions have: an error far below one unit of f32. */
#include "ops/rules.h"

typedef const Expr *Scalar(Arena *a, const Expr *x);

typedef struct TrigOp {
    Op op;
    Scalar *scalar; /* f64 to f64 */
} TrigOp;

static bool infer_trig(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, TYPES_FLOAT))
        return false;
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

static void define_trig(DefineContext *c)
{
    const TrigOp *row = (const TrigOp *)c->node->op;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *x = expr_cast(b.arena, DT_F64, read_same(&b, c->in[0]));
    stage_end(&b,
              expr_cast(b.arena, c->out[0]->dtype, row->scalar(b.arena, x)));
}

static const Expr *num(Arena *a, double value)
{
    return expr_const(a, DT_F64, value);
}

static const Expr *polynomial(Arena *a, const Expr *x, const double *c, int n)
{
    const Expr *p = num(a, c[0]);
    for (int i = 1; i < n; i++)
        p = expr_add(a, expr_mul(a, p, x), num(a, c[i]));
    return p;
}

static const Expr *is_less(Arena *a, const Expr *x, double value)
{
    return expr_binary(a, EX_LT, x, num(a, value));
}

/* The sign of `sign` on a value that is not negative; zero keeps its own. */
static const Expr *with_sign(Arena *a, const Expr *value, const Expr *sign)
{
    const Expr *negated = expr_unary(a, EX_NEG, value);
    const Expr *zero = expr_binary(a, EX_EQ, sign, num(a, 0));
    return expr_select(a, zero, sign,
                       expr_select(a, is_less(a, sign, 0), negated, value));
}

/* Cephes (Moshier): three ranges of |x|, in each a rational function of an
 * argument within 0.66. */
static const Expr *scalar_atan(Arena *a, const Expr *x)
{
    static const double p[] = {
        -8.750608600031904122785e-1, -1.615753718733365076637e1,
        -7.500855792314704667340e1, -1.228866684490136173410e2,
        -6.485021904942025371773e1};
    static const double q[] = {1,
                               2.485846490142306297962e1,
                               1.650270098316988542046e2,
                               4.328810604912902668951e2,
                               4.853903996359136964868e2,
                               1.945506571482613964425e2};
    const double half_pi = 1.57079632679489661923;
    const Expr *m = expr_unary(a, EX_ABS, x);
    const Expr *is_far =
        expr_binary(a, EX_LT, num(a, 2.41421356237309504880), m);
    const Expr *is_near = is_less(a, m, 0.66);
    const Expr *beyond = expr_div(a, num(a, -1), m);
    const Expr *between =
        expr_div(a, expr_sub(a, m, num(a, 1)), expr_add(a, m, num(a, 1)));
    const Expr *t =
        expr_select(a, is_far, beyond, expr_select(a, is_near, m, between));
    const Expr *base =
        expr_select(a, is_far, num(a, half_pi),
                    expr_select(a, is_near, num(a, 0), num(a, half_pi / 2)));
    const Expr *z = expr_mul(a, t, t);
    const Expr *r =
        expr_div(a, polynomial(a, z, p, 5), polynomial(a, z, q, 6));
    r = expr_add(a, t, expr_mul(a, t, expr_mul(a, z, r)));
    return with_sign(a, expr_add(a, base, r), x);
}

/* sqrt((1 - x) (1 + x)): without the cancellation of 1 - x^2. */
static const Expr *other_side(Arena *a, const Expr *x)
{
    const Expr *one = num(a, 1);
    return expr_unary(a, EX_SQRT,
                      expr_mul(a, expr_sub(a, one, x), expr_add(a, one, x)));
}

static const Expr *scalar_asin(Arena *a, const Expr *x)
{
    const Expr *t = expr_div(a, x, expr_add(a, num(a, 1), other_side(a, x)));
    return expr_mul(a, num(a, 2), scalar_atan(a, t));
}

static const Expr *scalar_acos(Arena *a, const Expr *x)
{
    const Expr *one = num(a, 1);
    const Expr *t = expr_div(a, expr_sub(a, one, x), expr_add(a, one, x));
    return expr_mul(a, num(a, 2), scalar_atan(a, expr_unary(a, EX_SQRT, t)));
}

/* Near zero the difference of exponentials has no digits left: the first
 * terms of the series take over, where the next one is below 1e-16. */
static const double near_zero = 1e-5;

static const Expr *near_or(Arena *a, const Expr *x, double cubic,
                           const Expr *formula)
{
    const Expr *square = expr_mul(a, x, x);
    const Expr *series =
        expr_add(a, x, expr_mul(a, x, expr_mul(a, square, num(a, cubic))));
    return expr_select(a, is_less(a, expr_unary(a, EX_ABS, x), near_zero),
                       series, formula);
}

/* exp(|x| / 2), squared last: the result overflows no earlier than it must. */
static const Expr *half_exp(Arena *a, const Expr *x)
{
    const Expr *half = expr_mul(a, expr_unary(a, EX_ABS, x), num(a, 0.5));
    return expr_unary(a, EX_EXP, half);
}

static const Expr *hyperbolic(Arena *a, const Expr *x, bool is_sine)
{
    const Expr *e = half_exp(a, x);
    const Expr *up = expr_mul(a, expr_mul(a, e, num(a, 0.5)), e);
    const Expr *down = expr_div(a, num(a, 0.25), up);
    return is_sine ? expr_sub(a, up, down) : expr_add(a, up, down);
}

static const Expr *scalar_sinh(Arena *a, const Expr *x)
{
    return near_or(a, x, 1.0 / 6, with_sign(a, hyperbolic(a, x, true), x));
}

static const Expr *scalar_cosh(Arena *a, const Expr *x)
{
    return hyperbolic(a, x, false);
}

static const Expr *scalar_asinh(Arena *a, const Expr *x)
{
    const Expr *m = expr_unary(a, EX_ABS, x);
    const Expr *root =
        expr_unary(a, EX_SQRT, expr_add(a, expr_mul(a, m, m), num(a, 1)));
    const Expr *value = expr_unary(a, EX_LOG, expr_add(a, m, root));
    return near_or(a, x, -1.0 / 6, with_sign(a, value, x));
}

static const Expr *scalar_acosh(Arena *a, const Expr *x)
{
    const Expr *root = expr_unary(
        a, EX_SQRT,
        expr_mul(a, expr_sub(a, x, num(a, 1)), expr_add(a, x, num(a, 1))));
    return expr_unary(a, EX_LOG, expr_add(a, x, root));
}

static const Expr *scalar_atanh(Arena *a, const Expr *x)
{
    const Expr *one = num(a, 1);
    const Expr *ratio = expr_div(a, expr_add(a, one, x), expr_sub(a, one, x));
    return near_or(a, x, 1.0 / 3,
                   expr_mul(a, num(a, 0.5), expr_unary(a, EX_LOG, ratio)));
}

#define ROW(field, op_name, first)                                            \
    static const TrigOp row_##field = {{.name = op_name,                      \
                                        .domain = "",                         \
                                        .min_inputs = 1,                      \
                                        .max_inputs = 1,                      \
                                        .min_outputs = 1,                     \
                                        .max_outputs = 1,                     \
                                        .traits = OP_ELEMENTWISE,             \
                                        .infer = infer_trig,                  \
                                        .define = define_trig,                \
                                        .since = first},                      \
                                       scalar_##field}
ROW(acos, "Acos", 7);
ROW(acosh, "Acosh", 9);
ROW(asin, "Asin", 7);
ROW(asinh, "Asinh", 9);
ROW(atan, "Atan", 7);
ROW(atanh, "Atanh", 9);
ROW(cosh, "Cosh", 9);
ROW(sinh, "Sinh", 9);

const Op *const ops_trigonometry[] = {
    &row_acos.op,  &row_acosh.op, &row_asin.op, &row_asinh.op, &row_atan.op,
    &row_atanh.op, &row_cosh.op,  &row_sinh.op, NULL};
