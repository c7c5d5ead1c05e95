/* Oracles of elementwise operators of one input, in double (integers in
 * int64). */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

/* One signature for all, so that one table serves: a and b are the values of
 * the attributes that UnaryRow names. In double, the rounding of an oracle is
 * far below what its f32 result is compared with. */
typedef double (*Unary)(double x, double a, double b);

static double f_abs(double x, double a, double b)
{
    (void)a, (void)b;
    return fabs(x);
}
static double f_acos(double x, double a, double b)
{
    (void)a, (void)b;
    return acos(x);
}
static double f_acosh(double x, double a, double b)
{
    (void)a, (void)b;
    return acosh(x);
}
static double f_asin(double x, double a, double b)
{
    (void)a, (void)b;
    return asin(x);
}
static double f_asinh(double x, double a, double b)
{
    (void)a, (void)b;
    return asinh(x);
}
static double f_atan(double x, double a, double b)
{
    (void)a, (void)b;
    return atan(x);
}
static double f_atanh(double x, double a, double b)
{
    (void)a, (void)b;
    return atanh(x);
}
static double f_cosh(double x, double a, double b)
{
    (void)a, (void)b;
    return cosh(x);
}
static double f_sinh(double x, double a, double b)
{
    (void)a, (void)b;
    return sinh(x);
}
static double f_ceil(double x, double a, double b)
{
    (void)a, (void)b;
    return ceil(x);
}
/* expm1, not exp - 1, here and below: near zero the difference would lose all
 * digits. */
static double f_celu(double x, double a, double b)
{
    (void)b;
    return x > 0 || isnan(x) ? x : a * expm1(x / a);
}
static double f_cos(double x, double a, double b)
{
    (void)a, (void)b;
    return cos(x);
}
static double f_elu(double x, double a, double b)
{
    (void)b;
    return x > 0 || isnan(x) ? x : a * expm1(x);
}
static double f_erf(double x, double a, double b)
{
    (void)a, (void)b;
    return erf(x);
}
static double f_exp(double x, double a, double b)
{
    (void)a, (void)b;
    return exp(x);
}
static double f_floor(double x, double a, double b)
{
    (void)a, (void)b;
    return floor(x);
}
static double f_gelu(double x, double a, double b)
{
    (void)a, (void)b;
    return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}
static double f_gelu_tanh(double x, double a, double b)
{
    (void)a, (void)b;
    return 0.5 * x *
           (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
/* Comparisons are written so that NaN comes through. */
static double clamp01(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}
static double f_hard_sigmoid(double x, double a, double b)
{
    return clamp01(a * x + b);
}
static double f_hard_swish(double x, double a, double b)
{
    (void)a, (void)b;
    return x * clamp01(x / 6 + 0.5);
}
static double f_leaky(double x, double a, double b)
{
    (void)b;
    return x < 0 ? a * x : x;
}
static double f_log(double x, double a, double b)
{
    (void)a, (void)b;
    return log(x);
}
/* exp only of what is not positive: it cannot overflow. */
static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double f_mish(double x, double a, double b)
{
    (void)a, (void)b;
    return x * tanh(softplus(x));
}
static double f_neg(double x, double a, double b)
{
    (void)a, (void)b;
    return -x;
}
static double f_reciprocal(double x, double a, double b)
{
    (void)a, (void)b;
    return 1 / x;
}
static double f_relu(double x, double a, double b)
{
    (void)a, (void)b;
    return x < 0 ? 0 : x;
}
static double f_round(double x, double a, double b)
{
    (void)a, (void)b;
    return nearbyint(x); /* half to even, the default mode */
}
static double f_selu(double x, double a, double b)
{
    return x > 0 || isnan(x) ? b * x : b * a * expm1(x);
}
/* For very negative x, exp overflows to infinity and the quotient is 0, as it
 * should be. */
static double f_sigmoid(double x, double a, double b)
{
    (void)a, (void)b;
    return 1 / (1 + exp(-x));
}
static double f_sign(double x, double a, double b)
{
    (void)a, (void)b;
    return isnan(x) ? x : (double)((x > 0) - (x < 0));
}
static double f_sin(double x, double a, double b)
{
    (void)a, (void)b;
    return sin(x);
}
static double f_softplus(double x, double a, double b)
{
    (void)a, (void)b;
    return softplus(x);
}
static double f_softsign(double x, double a, double b)
{
    (void)a, (void)b;
    return x / (1 + fabs(x));
}
static double f_sqrt(double x, double a, double b)
{
    (void)a, (void)b;
    return sqrt(x);
}
static double f_swish(double x, double a, double b)
{
    (void)b;
    return x / (1 + exp(-a * x));
}
static double f_tanh(double x, double a, double b)
{
    (void)a, (void)b;
    return tanh(x);
}

static double f_tan(double x, double a, double b)
{
    (void)a, (void)b;
    return tan(x);
}
static double f_thresholded(double x, double a, double b)
{
    (void)b;
    return x > a || isnan(x) ? x : 0;
}

typedef struct UnaryRow {
    const char *op;
    Unary f;
    double alpha, second; /* defaults of the two attributes */
    const char *second_name;
} UnaryRow;

static const UnaryRow unary_rows[] = {
    {"Abs", f_abs, 0, 0, NULL},
    {"Acos", f_acos, 0, 0, NULL},
    {"Acosh", f_acosh, 0, 0, NULL},
    {"Asin", f_asin, 0, 0, NULL},
    {"Asinh", f_asinh, 0, 0, NULL},
    {"Atan", f_atan, 0, 0, NULL},
    {"Atanh", f_atanh, 0, 0, NULL},
    {"Cosh", f_cosh, 0, 0, NULL},
    {"Sinh", f_sinh, 0, 0, NULL},
    {"Ceil", f_ceil, 0, 0, NULL},
    {"Celu", f_celu, 1, 0, NULL},
    {"Cos", f_cos, 0, 0, NULL},
    {"Elu", f_elu, 1, 0, NULL},
    {"Erf", f_erf, 0, 0, NULL},
    {"Exp", f_exp, 0, 0, NULL},
    {"Floor", f_floor, 0, 0, NULL},
    {"Gelu", f_gelu, 0, 0, NULL},
    /* Defaults are floats, as a model file stores attributes: 0.2 in double
     * would be another number than the one that every runtime computes
     * with. */
    {"HardSigmoid", f_hard_sigmoid, 0.2f, 0.5f, "beta"},
    {"HardSwish", f_hard_swish, 0, 0, NULL},
    {"LeakyRelu", f_leaky, 0.01f, 0, NULL},
    {"Log", f_log, 0, 0, NULL},
    {"Mish", f_mish, 0, 0, NULL},
    {"Neg", f_neg, 0, 0, NULL},
    {"Reciprocal", f_reciprocal, 0, 0, NULL},
    {"Relu", f_relu, 0, 0, NULL},
    {"Round", f_round, 0, 0, NULL},
    {"Selu", f_selu, 1.67326319217681884765625f, 1.05070102214813232421875f,
     "gamma"},
    {"SiLU", f_swish, 1, 0, NULL},
    {"Sigmoid", f_sigmoid, 0, 0, NULL},
    {"Sign", f_sign, 0, 0, NULL},
    {"Silu", f_swish, 1, 0, NULL},
    {"Sin", f_sin, 0, 0, NULL},
    {"Softplus", f_softplus, 0, 0, NULL},
    {"Softsign", f_softsign, 0, 0, NULL},
    {"Sqrt", f_sqrt, 0, 0, NULL},
    {"Swish", f_swish, 1, 0, NULL},
    {"Tan", f_tan, 0, 0, NULL},
    {"Tanh", f_tanh, 0, 0, NULL},
    {"ThresholdedRelu", f_thresholded, 1, 0, NULL},
    {NULL, NULL, 0, 0, NULL},
};

/* Integers: the few unary operators that have them. */
static int64_t unary_int(const char *op, int64_t x)
{
    switch (op[0]) {
    case 'A': /* Abs */
        return x < 0 ? -x : x;
    case 'N': /* Neg */
        return -x;
    case 'R': /* Relu */
        return x < 0 ? 0 : x;
    default: /* Sign */
        return (x > 0) - (x < 0);
    }
}

bool ref_unary(RefCall *call)
{
    const UnaryRow *row = unary_rows;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    int64_t count = array_count(x);
    if (!dtype_is_float(x->dtype)) {
        for (int64_t i = 0; i < count; i++)
            array_set_int(y, i, unary_int(call->op, array_get_int(x, i)));
        return true;
    }
    while (strcmp(row->op, call->op) != 0)
        row++;
    Unary f = row->f;
    if (f == f_gelu &&
        strcmp(attrs_string(call->attrs, "approximate", "none"), "tanh") == 0)
        f = f_gelu_tanh;
    double a = attrs_float(call->attrs, "alpha", row->alpha);
    double b = row->second_name
                   ? attrs_float(call->attrs, row->second_name, row->second)
                   : 0;
    double *values = ref_doubles(call, x);
    for (int64_t i = 0; i < count; i++)
        values[i] = f(values[i], a, b);
    ref_store_doubles(y, values);
    return true;
}

/* Integers take the same way: they hold their values in double up to 2^53. */
bool ref_shrink(RefCall *call)
{
    double bias = attrs_float(call->attrs, "bias", 0);
    double lambd = attrs_float(call->attrs, "lambd", 0.5);

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    for (int64_t i = 0; i < array_count(x); i++) {
        double v = array_get(x, i);
        v = v < -lambd ? v + bias : v > lambd ? v - bias : isnan(v) ? v : 0;
        if (dtype_is_float(x->dtype))
            array_set(y, i, v);
        else
            array_set_int(y, i, ref_wrap(x->dtype, (int64_t)v));
    }
    return true;
}

/* Swish of the first operand times the second. */
bool ref_swiglu(RefCall *call)
{
    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0];
    double *gate = ref_doubles(call, x),
           *value = ref_doubles(call, call->in[1]);
    double alpha = attrs_float(call->attrs, "alpha", 1);
    int64_t count = array_count(x);
    for (int64_t i = 0; i < count; i++)
        gate[i] = f_swish(gate[i], alpha, 0) * value[i];
    ref_store_doubles(ref_out(call, 0, x->dtype, x->rank, x->dims), gate);
    return true;
}
