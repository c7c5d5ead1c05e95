/* Elementary functions as arithmetic.
 *
 * f32, bound on the error against the exact result (held by dense samples
 * in suites/unit/test_math.c): exp 2 ulp, log 2 ulp, erf 4 ulp, tanh 3 ulp,
 * sin and cos 2 ulp for |x| < 1e5, pow 1 ulp; these three are computed in
 * f64. f64 tanh and erf: 4 ulp. Of what is made of them: sigmoid 4 ulp, SiLU
 * 5, GELU 4 and 2.5e-7 of its operand. Polynomials: Cephes (Moshier) for exp,
 * log and tanh and f64 erf; Taylor for the others of f64. */
#include <math.h>

#include "base/array.h"
#include "base/diag.h"
#include "tensor/half.h"
#include "tensor/loops.h"
#include "tensor/ptrmap.h"

typedef struct Math {
    Arena *a;
    DType dtype; /* of the function being expanded */
    bool fused;  /* multiply-adds round once */
} Math;

static const Expr *num(const Math *m, double v)
{
    return expr_const(m->a, m->dtype, v);
}

static const Expr *mul_add(const Math *m, const Expr *x, const Expr *y,
                           const Expr *z)
{
    return m->fused ? expr_fma(m->a, x, y, z)
                    : expr_add(m->a, expr_mul(m->a, x, y), z);
}

/* c[0] x^(n-1) + ... + c[n-1] */
static const Expr *polynomial(const Math *m, const Expr *x, const double *c,
                              int n)
{
    const Expr *p = num(m, c[0]);
    for (int i = 1; i < n; i++)
        p = mul_add(m, p, x, num(m, c[i]));
    return p;
}

static const Expr *expand_exp(const Math *m, const Expr *x)
{
    static const double c32[] = {1.9875691500e-4, 1.3981999507e-3,
                                 8.3334519073e-3, 4.1665795894e-2,
                                 1.6666665459e-1, 5.0000001201e-1};
    static const double c64[] = {
        1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
        1.0 / 3628800.0,    1.0 / 362880.0,    1.0 / 40320.0,
        1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,
        1.0 / 24.0,         1.0 / 6.0,         0.5};
    Arena *a = m->a;
    bool f64 = m->dtype == DT_F64;
    /* Beyond these the result is 0 or infinity. */
    x = expr_min(a, x, num(m, f64 ? 710.0 : 89.0));
    x = expr_max(a, x, num(m, f64 ? -746.0 : -104.0));
    /* x / log 2 to the nearest integer: next to 1.5 * 2^23 (2^52) a float has
     * no fraction, and its low bits are the integer. No conversion, which
     * would have to saturate. */
    DType type = f64 ? DT_I64 : DT_I32;
    int shift = f64 ? 52 : 23;
    const double magic = f64 ? 0x1.8p52 : 0x1.8p23;
    const int64_t magic_bits = f64 ? 0x4338000000000000 : 0x4b400000;
    const Expr *t =
        mul_add(m, x, num(m, 1.44269504088896340736), num(m, magic));
    const Expr *n = expr_sub(a, t, num(m, magic));
    double high = f64 ? 6.93145751953125e-1 : 0.693359375;
    double low = f64 ? 1.42860682030941723212e-6 : -2.12194440e-4;
    const Expr *r = mul_add(m, n, num(m, -high), x);
    r = mul_add(m, n, num(m, -low), r);
    const Expr *p = f64 ? polynomial(m, r, c64, 12) : polynomial(m, r, c32, 6);
    p = mul_add(m, p, expr_mul(a, r, r), r);
    p = expr_add(a, p, num(m, 1));
    /* Times 2^n in two steps, as 2^n alone may overflow or be subnormal: the
     * biased exponents of both, together n + 254 (2046). */
    const Expr *both =
        expr_sub(a, expr_bitcast(a, type, t),
                 expr_const_int(a, type, magic_bits - (f64 ? 2046 : 254)));
    const Expr *half =
        expr_binary(a, EX_SHR, both, expr_const_int(a, type, 1));
    const Expr *rest = expr_sub(a, both, half);
    const Expr *place = expr_const_int(a, type, shift);
    half = expr_bitcast(a, m->dtype, expr_binary(a, EX_SHL, half, place));
    rest = expr_bitcast(a, m->dtype, expr_binary(a, EX_SHL, rest, place));
    return expr_mul(a, expr_mul(a, p, half), rest);
}

static const Expr *expand_log(const Math *m, const Expr *x)
{
    static const double c32[] = {
        7.0376836292e-2,  -1.1514610310e-1, 1.1676998740e-1,
        -1.2420140846e-1, 1.4249322787e-1,  -1.6668057665e-1,
        2.0000714765e-1,  -2.4999993993e-1, 3.3333331174e-1};
    Arena *a = m->a;
    bool f64 = m->dtype == DT_F64;
    DType bits = f64 ? DT_I64 : DT_I32;
    int shift = f64 ? 52 : 23;
    const Expr *tiny = num(m, f64 ? 0x1p-1022 : 0x1p-126);
    const Expr *is_tiny = expr_binary(a, EX_LT, x, tiny);
    const Expr *scaled = expr_select(
        a, is_tiny, expr_mul(a, x, num(m, f64 ? 0x1p54 : 0x1p25)), x);
    /* Moves the cut between exponents to sqrt(1/2). */
    const Expr *i = expr_bitcast(a, bits, scaled);
    const Expr *cut =
        expr_const_int(a, bits, f64 ? 0x3fe6a09e667f3bcc : 0x3f3504f3);
    const Expr *e = expr_binary(a, EX_SHR, expr_sub(a, i, cut),
                                expr_const_int(a, bits, shift));
    i = expr_sub(a, i,
                 expr_binary(a, EX_SHL, e, expr_const_int(a, bits, shift)));
    const Expr *f = expr_sub(a, expr_bitcast(a, m->dtype, i), num(m, 1));
    const Expr *n = expr_cast(a, m->dtype, e);
    n = expr_sub(a, n,
                 expr_select(a, is_tiny, num(m, f64 ? 54 : 25), num(m, 0)));
    const Expr *result;
    if (f64) {
        const Expr *s = expr_div(a, f, expr_add(a, f, num(m, 2)));
        const Expr *z = expr_mul(a, s, s);
        double c[12];
        for (int k = 0; k < 12; k++)
            c[k] = 2.0 / (2 * (11 - k) + 1);
        result = expr_mul(a, polynomial(m, z, c, 12), s);
        result = mul_add(m, n, num(m, 1.42860682030941723212e-6), result);
        result = mul_add(m, n, num(m, 6.93145751953125e-1), result);
    } else {
        const Expr *z = expr_mul(a, f, f);
        result = expr_mul(a, polynomial(m, f, c32, 9), expr_mul(a, f, z));
        result = mul_add(m, n, num(m, -2.12194440e-4), result);
        result = expr_sub(a, result, expr_mul(a, z, num(m, 0.5)));
        result = expr_add(a, result, f);
        result = mul_add(m, n, num(m, 0.693359375), result);
    }
    const Expr *inf = num(m, INFINITY);
    result = expr_select(a, expr_binary(a, EX_EQ, x, inf), inf, result);
    result = expr_select(a, expr_binary(a, EX_EQ, x, num(m, 0)),
                         num(m, -INFINITY), result);
    const Expr *bad =
        expr_unary(a, EX_NOT, expr_binary(a, EX_LE, num(m, 0), x));
    return expr_select(a, bad, num(m, NAN), result);
}

static const Expr *copy_sign(const Math *m, const Expr *magnitude,
                             const Expr *sign)
{
    Arena *a = m->a;
    bool f64 = m->dtype == DT_F64;
    DType type = f64 ? DT_I64 : DT_I32;
    const Expr *top = expr_const_int(a, type, f64 ? INT64_MIN : INT32_MIN);
    const Expr *bits =
        expr_binary(a, EX_AND, expr_bitcast(a, type, sign), top);
    bits = expr_binary(a, EX_OR, expr_bitcast(a, type, magnitude), bits);
    return expr_bitcast(a, m->dtype, bits);
}

static const Expr *expand_tanh(const Math *m, const Expr *x)
{
    static const double c[] = {-5.70498872745e-3, 2.06390887954e-2,
                               -5.37397155531e-2, 1.33314422036e-1,
                               -3.33332819422e-1};
    static const double p64[] = {-9.64399179425052238628e-1,
                                 -9.92877231001918586564e1,
                                 -1.61468768441708447952e3};
    static const double q64[] = {1, 1.12811678491632931402e2,
                                 2.23548839060100448583e3,
                                 4.84406305325125486048e3};
    Arena *a = m->a;
    const Expr *t = expr_unary(a, EX_ABS, x);
    const Expr *z = expr_mul(a, x, x);
    const Expr *small =
        m->dtype == DT_F64
            ? expr_div(a, polynomial(m, z, p64, 3), polynomial(m, z, q64, 4))
            : polynomial(m, z, c, 5);
    small = mul_add(m, expr_mul(a, small, z), x, x);
    const Expr *e = expand_exp(m, expr_add(a, t, t));
    const Expr *large = expr_sub(
        a, num(m, 1), expr_div(a, num(m, 2), expr_add(a, e, num(m, 1))));
    /* The sign of all, so that -0 keeps its own. */
    return copy_sign(
        m,
        expr_select(a, expr_binary(a, EX_LT, t, num(m, 0.625)), small, large),
        x);
}

/* x * p(x^2): erf(x) / x is smooth, and a polynomial of degree 15 in x^2,
 * brought to [-1, 1], comes within 2e-8 of it up to where erf rounds to 1.
 * Coefficients: least squares on Chebyshev nodes, weighted until the relative
 * error was level, then searched around for the least error in f32. */
static const Expr *expand_erf(const Math *m, const Expr *x)
{
    static const double c[] = {
        -4.979989025741816e-4,  1.2953687692061067e-3,  -1.082007773220539e-3,
        1.7495803767815232e-3,  -5.8092898689210415e-3, 1.1092517524957657e-2,
        -1.7018556594848633e-2, 2.656208537518978e-2,   -3.998832777142525e-2,
        5.557543411850929e-2,   -7.259555906057358e-2,  9.081324189901352e-2,
        -1.1099885404109955e-1, 1.373586505651474e-1,   -1.8505144119262695e-1,
        3.7089022994041443e-1};
    const double most = 3.8125;
    Arena *a = m->a;
    /* Comparisons that are false leave NaN what it is. */
    const Expr *high = num(m, most), *low = num(m, -most);
    const Expr *u = expr_select(a, expr_binary(a, EX_LT, high, x), high, x);
    u = expr_select(a, expr_binary(a, EX_LT, u, low), low, u);
    const Expr *t =
        mul_add(m, expr_mul(a, u, u), num(m, 2 / (most * most)), num(m, -1));
    const Expr *y = expr_mul(a, polynomial(m, t, c, 16), u);
    /* Sums that round twice can end one bit beyond. */
    return m->fused ? y : expr_max(a, expr_min(a, y, num(m, 1)), num(m, -1));
}

/* For f64: x T(x^2) / U(x^2) up to 1, then 1 - exp(-x^2) P(x) / Q(x). */
static const Expr *expand_erf64(const Math *m, const Expr *x)
{
    static const double ts[] = {
        9.60497373987051638749e0, 9.00260197203842689217e1,
        2.23200534594684319226e3, 7.00332514112805075473e3,
        5.55923013010394962768e4};
    static const double us[] = {1,
                                3.35617141647503099647e1,
                                5.21357949780152679795e2,
                                4.59432382970980127987e3,
                                2.26290000613890934246e4,
                                4.92673942608635921086e4};
    static const double ps[] = {
        2.46196981473530512524e-10, 5.64189564831068821977e-1,
        7.46321056442269912687e0,   4.86371970985681366614e1,
        1.96520832956077098242e2,   5.26445194995477358631e2,
        9.34528527171957607540e2,   1.02755188689515710272e3,
        5.57535335369399327526e2};
    static const double qs[] = {1,
                                1.32281951154744992508e1,
                                8.67072140885989742329e1,
                                3.54937778887819891062e2,
                                9.75708501743205489753e2,
                                1.82390916687909736289e3,
                                2.24633760818710981792e3,
                                1.65666309194161350182e3,
                                5.57535340817727675546e2};
    Arena *a = m->a;
    const Expr *t = expr_unary(a, EX_ABS, x);
    const Expr *z = expr_mul(a, x, x);
    const Expr *small = expr_mul(
        a, x, expr_div(a, polynomial(m, z, ts, 5), polynomial(m, z, us, 6)));
    /* Above 6 the result is 1. */
    const Expr *u = expr_min(a, t, num(m, 6));
    const Expr *tail = expr_mul(
        a, expand_exp(m, expr_unary(a, EX_NEG, expr_mul(a, u, u))),
        expr_div(a, polynomial(m, u, ps, 9), polynomial(m, u, qs, 9)));
    const Expr *large = expr_sub(a, num(m, 1), tail);
    const Expr *is_small = expr_binary(a, EX_LE, t, num(m, 1));
    return copy_sign(m, expr_select(a, is_small, small, large), x);
}

/* sin (or cos) of an f64. */
static const Expr *expand_sin(const Math *m, const Expr *x, bool is_cos)
{
    static const double s[] = {-1.0 / 1307674368000.0,
                               1.0 / 6227020800.0,
                               -1.0 / 39916800.0,
                               1.0 / 362880.0,
                               -1.0 / 5040.0,
                               1.0 / 120.0,
                               -1.0 / 6.0};
    static const double c[] = {1.0 / 20922789888000.0,
                               -1.0 / 87178291200.0,
                               1.0 / 479001600.0,
                               -1.0 / 3628800.0,
                               1.0 / 40320.0,
                               -1.0 / 720.0,
                               1.0 / 24.0,
                               -0.5};
    Arena *a = m->a;
    const Expr *n = expr_unary(a, EX_ROUND,
                               expr_mul(a, x, num(m, 0.63661977236758134308)));
    /* pi / 2 in three parts of 33 bits. */
    const Expr *r =
        expr_sub(a, x, expr_mul(a, n, num(m, 1.57079632673412561417e+00)));
    r = expr_sub(a, r, expr_mul(a, n, num(m, 6.07710050630396597660e-11)));
    r = expr_sub(a, r, expr_mul(a, n, num(m, 2.02226624879595063154e-21)));
    const Expr *z = expr_mul(a, r, r);
    const Expr *sine =
        mul_add(m, expr_mul(a, polynomial(m, z, s, 7), z), r, r);
    const Expr *cosine = mul_add(m, polynomial(m, z, c, 8), z, num(m, 1));
    const Expr *quadrant = expr_cast(a, DT_I64, n);
    if (is_cos)
        quadrant = expr_add_int(a, quadrant, 1);
    const Expr *odd =
        expr_binary(a, EX_EQ, expr_binary(a, EX_AND, quadrant, expr_int(a, 1)),
                    expr_int(a, 1));
    const Expr *flip =
        expr_binary(a, EX_EQ, expr_binary(a, EX_AND, quadrant, expr_int(a, 2)),
                    expr_int(a, 2));
    const Expr *v = expr_select(a, odd, cosine, sine);
    return expr_select(a, flip, expr_unary(a, EX_NEG, v), v);
}

/* x^y of f64, by exp(y log|x|). */
static const Expr *expand_pow(const Math *m, const Expr *x, const Expr *y)
{
    Arena *a = m->a;
    const Expr *zero = num(m, 0), *one = num(m, 1);
    const Expr *v =
        expand_exp(m, expr_mul(a, y, expand_log(m, expr_unary(a, EX_ABS, x))));
    const Expr *whole = expr_binary(a, EX_EQ, y, expr_unary(a, EX_FLOOR, y));
    const Expr *half = expr_mul(a, y, num(m, 0.5));
    const Expr *even =
        expr_binary(a, EX_EQ, half, expr_unary(a, EX_FLOOR, half));
    const Expr *negated = expr_select(a, even, v, expr_unary(a, EX_NEG, v));
    negated = expr_select(a, whole, negated, num(m, NAN));
    v = expr_select(a, expr_binary(a, EX_LT, x, zero), negated, v);
    const Expr *is_one = expr_binary(a, EX_OR, expr_binary(a, EX_EQ, y, zero),
                                     expr_binary(a, EX_EQ, x, one));
    return expr_select(a, is_one, one, v);
}

static const Expr *expand(Arena *a, const Expr *x, const Expr *const *arg,
                          bool fused)
{
    Math m = {a, x->dtype, fused};
    Math wide = {a, DT_F64, fused};
    bool f32 = x->dtype == DT_F32;
    switch (x->kind) {
    case EX_EXP:
        return expand_exp(&m, arg[0]);
    case EX_LOG:
        return expand_log(&m, arg[0]);
    case EX_ERF:
        return f32 ? expand_erf(&m, arg[0]) : expand_erf64(&m, arg[0]);
    case EX_TANH:
        return expand_tanh(&m, arg[0]);
    case EX_SIN:
    case EX_COS:
        return expr_cast(a, x->dtype,
                         expand_sin(&wide, expr_cast(a, DT_F64, arg[0]),
                                    x->kind == EX_COS));
    case EX_POW:
        if (arg[1]->kind == EX_FLOAT && arg[1]->f == 2.0)
            return expr_mul(a, arg[0], arg[0]);
        if (arg[1]->kind == EX_FLOAT && arg[1]->f == 3.0)
            return expr_mul(a, expr_mul(a, arg[0], arg[0]), arg[0]);
        return expr_cast(a, x->dtype,
                         expand_pow(&wide, expr_cast(a, DT_F64, arg[0]),
                                    expr_cast(a, DT_F64, arg[1])));
    default:
        return expr_rebuild(a, x, arg, NULL);
    }
}

/* ---- half precision --------------------------------------------------- */

typedef struct Walk {
    Arena *a;
    bool fused;
    PtrMap memo; /* of an f16 or bf16 expression: its value in f32 */
    PtrMap bits; /* of such a value: the u16 it is of, where that is known */
} Walk;

static const Expr *walk(Walk *w, const Expr *x);

static const Expr *widened(Walk *w, DType dtype, const Expr *bits)
{
    const Expr *value = half_widen(w->a, dtype, bits);
    ptrmap_set(&w->bits, value, bits);
    return value;
}

/* Moving a number keeps every bit of it, of a NaN as well. */
static const Expr *narrowed(Walk *w, DType dtype, const Expr *value)
{
    const Expr *bits = ptrmap_get(&w->bits, value);
    return bits ? bits : half_narrow(w->a, dtype, value);
}

static const Expr *constant_bits(Arena *a, DType dtype, double value)
{
    float f = (float)value;
    return expr_const_int(
        a, DT_U16, dtype == DT_F16 ? float_to_half(f) : float_to_bfloat(f));
}

static const Expr *rounded(Walk *w, DType dtype, const Expr *value)
{
    return widened(w, dtype, half_narrow(w->a, dtype, value));
}

/* The f32 value of an f16 or bf16 expression. */
static const Expr *half_value(Walk *w, const Expr *x)
{
    Arena *a = w->a;
    const Expr *arg[3];
    switch (x->kind) {
    case EX_FLOAT: {
        const Expr *value = expr_const(a, DT_F32, x->f);
        ptrmap_set(&w->bits, value, constant_bits(a, x->dtype, x->f));
        return value;
    }
    case EX_LOAD:
        arg[0] = walk(w, x->arg[0]);
        return widened(
            w, x->dtype,
            expr_bitcast(a, DT_U16, expr_load(a, x->buffer, arg[0])));
    case EX_BITCAST:
        return widened(w, x->dtype, walk(w, x->arg[0]));
    case EX_CAST:
        return rounded(w, x->dtype, expr_cast(a, DT_F32, walk(w, x->arg[0])));
    case EX_SELECT: {
        for (int i = 0; i < 3; i++)
            arg[i] = walk(w, x->arg[i]);
        return widened(w, x->dtype,
                       expr_select(a, arg[0], narrowed(w, x->dtype, arg[1]),
                                   narrowed(w, x->dtype, arg[2])));
    }
    default:
        break;
    }
    /* The operation itself in f32. */
    for (int i = 0; i < x->count; i++)
        arg[i] = walk(w, x->arg[i]);
    const Expr *wide = x->kind == EX_FMA ? expr_fma(a, arg[0], arg[1], arg[2])
                       : x->count == 2
                           ? expr_binary(a, x->kind, arg[0], arg[1])
                           : expr_unary(a, x->kind, arg[0]);
    bool exact = x->kind == EX_NEG || x->kind == EX_ABS || x->kind == EX_MIN ||
                 x->kind == EX_MAX;
    wide = walk(w, wide);
    return exact ? wide : rounded(w, x->dtype, wide);
}

/* ---- all expressions -------------------------------------------------- */

static const Expr *full_value(Walk *w, const Expr *x)
{
    const Expr *arg[MAX_RANK], *result = x;
    bool is_call =
        (x->kind >= EX_EXP && x->kind <= EX_COS) || x->kind == EX_POW;
    bool changed = is_call;
    for (int i = 0; i < x->count; i++) {
        arg[i] = walk(w, x->arg[i]);
        changed |= arg[i] != x->arg[i];
    }
    if (x->kind == EX_BITCAST && dtype_is_half(x->arg[0]->dtype))
        return expr_bitcast(w->a, x->dtype,
                            narrowed(w, x->arg[0]->dtype, arg[0]));
    if (changed)
        result = expand(w->a, x, arg, w->fused);
    if (is_call && x->dtype != DT_F32 && x->dtype != DT_F64)
        die("%s of %s has no expansion", expr_kind_name(x->kind),
            dtype_name(x->dtype));
    return result;
}

static const Expr *walk(Walk *w, const Expr *x)
{
    const Expr *known = ptrmap_get(&w->memo, x);
    if (known)
        return known;
    const Expr *result =
        dtype_is_half(x->dtype) ? half_value(w, x) : full_value(w, x);
    ptrmap_set(&w->memo, x, result);
    /* What is expanded already stays as it is. */
    if (!dtype_is_half(x->dtype))
        ptrmap_set(&w->memo, result, result);
    return result;
}

const Expr *math_expand(Arena *a, const Expr *x, bool fused)
{
    Walk w = {.a = a, .fused = fused};
    const Expr *result = walk(&w, x);
    if (dtype_is_half(x->dtype))
        result = expr_bitcast(a, x->dtype, narrowed(&w, x->dtype, result));
    ptrmap_free(&w.memo);
    ptrmap_free(&w.bits);
    return result;
}
