/* Makers: element by element, every element type. */
#include <stddef.h>

#include "suites/fuzz/maker.h"

/* ---- one operand ------------------------------------------------------ */

/* What has to happen to an operand, so that results stay bounded and lie
 * within the function's domain. */
typedef enum Guard { NONE, SQUASHED, POSITIVE, ABOVE_ONE, INSIDE } Guard;

typedef struct Unary {
    const char *op;
    unsigned types;
    Guard guard;
} Unary;

static const Unary unaries[] = {
    {"Relu", FLOATS | INDICES | 1 << DT_I8, NONE},
    {"Sigmoid", FLOATS, NONE},
    {"Tanh", FLOATS, NONE},
    {"Abs", NUMBERS, NONE},
    {"Neg", FLOATS | INDICES | 1 << DT_I8, NONE},
    {"Erf", FLOATS, NONE},
    {"HardSwish", FLOATS, NONE},
    {"Gelu", FLOATS, NONE},
    {"Exp", FLOATS, SQUASHED},
    {"Log", FLOATS, POSITIVE},
    {"Sqrt", FLOATS, POSITIVE},
    {"Reciprocal", FLOATS, POSITIVE},
    {"Floor", FLOATS, NONE},
    {"Ceil", FLOATS, NONE},
    {"Round", FLOATS, NONE},
    {"Sign", NUMBERS, NONE},
    {"IsNaN", FLOATS, NONE},
    {"IsInf", FLOATS & ~(1 << DT_F16), NONE},
    {"Not", BOOLS, NONE},
    {"BitwiseNot", INTS, NONE},
    {"Sin", FLOATS, SQUASHED},
    {"Cos", FLOATS, NONE},
    {"Tan", FLOATS, SQUASHED},
    {"Sinh", FLOATS, SQUASHED},
    {"Cosh", FLOATS, SQUASHED},
    {"Asin", FLOATS, INSIDE},
    {"Acos", FLOATS, INSIDE},
    {"Atan", FLOATS, NONE},
    {"Asinh", FLOATS, NONE},
    {"Acosh", FLOATS, ABOVE_ONE},
    {"Atanh", FLOATS, INSIDE},
    {"LeakyRelu", FLOATS, NONE},
    {"Elu", FLOATS, NONE},
    {"Selu", FLOATS, NONE},
    {"Celu", FLOATS, NONE},
    {"ThresholdedRelu", FLOATS, NONE},
    {"Shrink", NUMBERS, NONE},
    {"HardSigmoid", FLOATS, NONE},
    {"Softplus", FLOATS, NONE},
    {"Softsign", FLOATS, NONE},
    {"Mish", FLOATS, NONE},
    {"Swish", FLOATS, NONE},
    {"Identity", ANY, NONE},
};
enum { UNARIES = sizeof unaries / sizeof *unaries };

static Tensor *guarded(Maker *m, Tensor *x, Guard guard)
{
    switch (guard) {
    case SQUASHED:
        return squash(m, x);
    case POSITIVE:
        return positive(m, x);
    case ABOVE_ONE:
        x = positive(m, x);
        return x ? apply(m, "Add", (Attrs){0}, x, scalar(m, x->type.dtype, 1),
                         NULL)
                 : NULL;
    case INSIDE:
        x = squash(m, x);
        return x ? apply(m, "Mul", (Attrs){0}, x,
                         scalar(m, x->type.dtype, 0.75), NULL)
                 : NULL;
    case NONE:
        break;
    }
    return x;
}

static bool make_unary(Maker *m)
{
    const Unary *row = &unaries[choose(m->c, UNARIES)];
    Tensor *x = row->types & 1 << DT_F32 && !flip(m)
                    ? pick_float(m, 0, MAX_RANK)
                    : pick(m, row->types, 0, MAX_RANK);
    if (!is_type(x, row->types))
        return false;
    return apply1(m, row->op, guarded(m, x, row->guard)) != NULL;
}

static bool make_clip(Maker *m)
{
    Tensor *x = pick(m, NUMBERS, 0, MAX_RANK);
    DType dtype = x->type.dtype;
    double low = dtype_is_float(dtype)    ? -0.5
                 : dtype_is_signed(dtype) ? -2
                                          : 1;
    int which = choose(m->c, 4);
    return apply(m, "Clip", (Attrs){0}, x,
                 which & 1 ? NULL : scalar(m, dtype, low),
                 which & 2 ? NULL : scalar(m, dtype, 3)) != NULL;
}

static bool make_cast(Maker *m)
{
    static const DType types[] = {DT_F32, DT_I64, DT_I32,  DT_U8,
                                  DT_I8,  DT_F16, DT_BOOL, DT_F64,
                                  DT_I16, DT_U16, DT_U32,  DT_U64};
    Tensor *x = pick(m, ANY, 0, MAX_RANK);
    DType to = types[choose(m->c, 12)];
    /* What is out of range has no value; a byte of a small number has. */
    if (dtype_is_float(x->type.dtype) && !dtype_is_float(to) && to != DT_BOOL)
        x = to == DT_I64 || to == DT_I32 ? x : apply1(m, "Relu", squash(m, x));
    return x && cast(m, x, to) && x->type.dtype != to;
}

/* A float that was narrow for a while. */
static bool make_round_trip(Maker *m)
{
    Tensor *x = pick_float(m, 0, MAX_RANK);
    DType by = flip(m) ? DT_F16 : DT_F64;
    return cast(m, cast(m, x, by), x->type.dtype) != NULL;
}

/* ---- two operands ----------------------------------------------------- */

/* Broadcasts against x: what there is, or a constant with some axes of one
 * element or left out. */
static Tensor *partner(Maker *m, Tensor *x, double mean)
{
    int64_t dims[MAX_RANK];
    int rank = x->type.rank, skip = 0;
    if (!rarely(m, 3)) {
        Tensor *y = pick_like(m, x);
        if (y != x || flip(m))
            return y;
    }
    int mask = choose(m->c, 1 << (rank < 6 ? rank : 6));
    if (rarely(m, 3))
        skip = choose(m->c, rank + 1);
    for (int i = 0; i < rank; i++)
        dims[i] = mask >> i & 1 && !is_open(x, i) ? dim(x, i) : 1;
    return weights(m, x->type.dtype, rank - skip, dims + skip, mean, 1);
}

static bool in_either_order(Maker *m, const char *op, Tensor *x, Tensor *y)
{
    bool turn = flip(m);
    return apply(m, op, (Attrs){0}, turn ? y : x, turn ? x : y, NULL) != NULL;
}

/* Integers wrap around, and agree in that. */
static bool make_arithmetic(Maker *m)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Max",
                                      "Min", "Sum", "Mean"};
    int k = choose(m->c, 7);
    Tensor *x =
        k == 6 ? pick_float(m, 0, MAX_RANK) : pick(m, NUMBERS, 0, MAX_RANK);
    return in_either_order(m, ops[k], x, partner(m, x, 0));
}

/* Three operands, one perhaps twice. */
static bool make_many(Maker *m)
{
    static const char *const ops[] = {"Max", "Min", "Sum", "Mean"};
    Tensor *x = pick_float(m, 0, MAX_RANK);
    return apply(m, ops[choose(m->c, 4)], (Attrs){0}, x, partner(m, x, 1),
                 partner(m, x, 0)) != NULL;
}

/* Nowhere zero, and positive where signs make a difference too many. */
static Tensor *divisor(Maker *m, Tensor *x)
{
    Tensor *y = partner(m, x, 3);
    DType dtype = x->type.dtype;
    if (dtype_is_float(dtype))
        return positive(m, y);
    if (!dtype_is_signed(dtype))
        return apply(m, "Max", (Attrs){0}, y, scalar(m, dtype, 2), NULL);
    /* Odd numbers of either sign: no overflow of MIN / -1, which is none of
     * them once the lowest bits are set. */
    Tensor *odd =
        apply(m, "BitwiseOr", (Attrs){0}, y, scalar(m, dtype, 3), NULL);
    return odd ? apply(m, "Max", (Attrs){0}, odd, scalar(m, dtype, -5), NULL)
               : NULL;
}

static bool make_division(Maker *m)
{
    Tensor *x = pick(m, NUMBERS, 0, MAX_RANK), *y = divisor(m, x);
    if (!y)
        return false;
    if (flip(m))
        return apply(m, "Div", (Attrs){0}, x, y, NULL) != NULL;
    bool fmod = dtype_is_float(x->type.dtype) || flip(m);
    return apply(m, "Mod", attr_int(m, "fmod", fmod), x, y, NULL) != NULL;
}

/* A square may be of anything; other powers want a positive base. */
static bool make_power(Maker *m)
{
    static const double powers[] = {2, 0.5, 1, 3, -1, 0, 1.5};
    Tensor *x = pick_float(m, 0, MAX_RANK);
    double power = powers[choose(m->c, 7)];
    if (power == 2 || power == 3)
        return apply(m, "Pow", (Attrs){0}, flip(m) ? squash(m, x) : x,
                     scalar(m, flip(m) ? DT_I64 : x->type.dtype, power),
                     NULL) != NULL;
    return apply(m, "Pow", (Attrs){0}, positive(m, x),
                 scalar(m, x->type.dtype, power), NULL) != NULL;
}

static bool make_comparison(Maker *m)
{
    static const char *const ops[] = {"Less", "Greater", "Equal",
                                      "LessOrEqual", "GreaterOrEqual"};
    Tensor *x = pick(m, NUMBERS, 0, MAX_RANK);
    return in_either_order(m, ops[choose(m->c, 5)], x, partner(m, x, 0));
}

static bool make_logic(Maker *m)
{
    static const char *const ops[] = {"And", "Or", "Xor", "Equal"};
    Tensor *x = pick(m, BOOLS, 0, MAX_RANK);
    return in_either_order(m, ops[choose(m->c, 4)], x, partner(m, x, 0));
}

static bool make_bitwise(Maker *m)
{
    static const char *const ops[] = {"BitwiseAnd", "BitwiseOr", "BitwiseXor"};
    Tensor *x = pick(m, INTS, 0, MAX_RANK);
    return in_either_order(m, ops[choose(m->c, 3)], x, partner(m, x, 2));
}

/* By less than any width: what is beyond has no value. */
static bool make_shift(Maker *m)
{
    Tensor *x = pick(m, UNSIGNED, 0, MAX_RANK), *y = partner(m, x, 1);
    Attrs attrs = {0};
    set_text(m, &attrs, "direction", flip(m) ? "LEFT" : "RIGHT");
    y = apply(m, "Min", (Attrs){0}, y, scalar(m, x->type.dtype, 7), NULL);
    return apply(m, "BitShift", attrs, x, y, NULL) != NULL;
}

/* The condition has the shape of either operand. */
static bool make_where(Maker *m)
{
    Tensor *x = pick(m, ANY, 0, MAX_RANK), *y = partner(m, x, 0);
    Tensor *shape = rarely(m, 3) ? y : x, *cond;
    DType dtype = shape->type.dtype;
    if (dtype == DT_BOOL)
        cond = shape;
    else
        cond = apply(m, dtype_is_float(dtype) ? "Greater" : "Less", (Attrs){0},
                     pick_like(m, shape), scalar(m, dtype, 1), NULL);
    return cond && apply(m, "Where", (Attrs){0}, cond, x, y);
}

static bool make_prelu(Maker *m)
{
    Tensor *x = pick_float(m, 1, MAX_RANK);
    int64_t dims[MAX_RANK];
    for (int i = 0; i < x->type.rank; i++)
        dims[i] = i == x->type.rank - 1 && !is_open(x, i) ? dim(x, i) : 1;
    return apply(m, "PRelu", (Attrs){0}, x,
                 weights(m, x->type.dtype, x->type.rank, dims, 0, 1),
                 NULL) != NULL;
}

/* x * sigmoid(x), x * tanh(softplus(x)) and the like in single nodes, which
 * simplification and fusion know. */
static bool make_gate(Maker *m)
{
    static const char *const gates[] = {"Sigmoid", "HardSigmoid", "Tanh",
                                        "Erf", "Relu"};
    Tensor *x = pick_float(m, 0, MAX_RANK);
    Tensor *y = apply1(m, gates[choose(m->c, 5)], x);
    if (y && flip(m))
        y = apply(m, "Add", (Attrs){0}, y, scalar(m, x->type.dtype, 1), NULL);
    return y && in_either_order(m, "Mul", x, y);
}

const MakerRow makers_elementwise[] = {
    {"unary", make_unary},
    {"arithmetic", make_arithmetic},
    {"many", make_many},
    {"cast", make_cast},
    {"where", make_where},
    {"comparison", make_comparison},
    {"division", make_division},
    {"clip", make_clip},
    {"power", make_power},
    {"logic", make_logic},
    {"bitwise", make_bitwise},
    {"shift", make_shift},
    {"prelu", make_prelu},
    {"gate", make_gate},
    {"round trip", make_round_trip},
    {"unary", make_unary},
    {NULL, NULL},
};
