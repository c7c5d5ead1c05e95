#include "tensor/half.h"

bool dtype_is_half(DType dtype)
{
    return dtype == DT_F16 || dtype == DT_BF16;
}

/* ---- short forms: everything here is u32 or f32 ----------------------- */

static const Expr *num(Arena *a, int64_t value)
{
    return expr_const_int(a, DT_U32, value);
}

static const Expr *op(Arena *a, ExprKind kind, const Expr *x, int64_t y)
{
    return expr_binary(a, kind, x, num(a, y));
}

static const Expr *as_float(Arena *a, const Expr *bits)
{
    return expr_bitcast(a, DT_F32, bits);
}

/* ---- wider ------------------------------------------------------------ */

static const Expr *widen_f16(Arena *a, const Expr *h)
{
    const Expr *sign = op(a, EX_SHL, op(a, EX_AND, h, 0x8000), 16);
    const Expr *magnitude = op(a, EX_SHL, op(a, EX_AND, h, 0x7fff), 13);
    /* The exponent's bias differs by 112: multiplying makes subnormal
     * numbers right, too. */
    const Expr *finite =
        expr_mul(a, as_float(a, magnitude), expr_const(a, DT_F32, 0x1p112));
    const Expr *special = op(a, EX_ADD, magnitude, 0x70000000);
    const Expr *is_special =
        expr_binary(a, EX_LE, num(a, (int64_t)0x7c00 << 13), magnitude);
    const Expr *bits =
        expr_select(a, is_special, special, expr_bitcast(a, DT_U32, finite));
    return as_float(a, expr_binary(a, EX_OR, bits, sign));
}

const Expr *half_widen(Arena *a, DType dtype, const Expr *bits)
{
    const Expr *h = expr_cast(a, DT_U32, bits);
    return dtype == DT_F16 ? widen_f16(a, h)
                           : as_float(a, op(a, EX_SHL, h, 16));
}

/* ---- narrower --------------------------------------------------------- */

/* Adds what carries into bit `shift` when the bits below round up, and
 * shifts them out; a tie goes to even. */
static const Expr *rounded_shift(Arena *a, const Expr *bits, int shift)
{
    const Expr *odd = op(a, EX_AND, op(a, EX_SHR, bits, shift), 1);
    const Expr *up = op(a, EX_ADD, odd, ((int64_t)1 << (shift - 1)) - 1);
    return op(a, EX_SHR, expr_add(a, bits, up), shift);
}

static const Expr *narrow_f16(Arena *a, const Expr *magnitude)
{
    enum {
        SMALLEST_NORMAL = 0x38800000, /* 2^-14 */
        OVERFLOW = 0x477ff000,        /* 65520, from where infinity is near */
        INFINITE = 0x7f800000
    };
    /* 0.5 has the last digit of a subnormal number: adding it rounds. */
    const Expr *half = expr_const(a, DT_F32, 0.5);
    const Expr *sum = expr_add(a, as_float(a, magnitude), half);
    const Expr *subnormal =
        op(a, EX_SUB, expr_bitcast(a, DT_U32, sum), 0x3f000000);
    const Expr *normal =
        rounded_shift(a, op(a, EX_SUB, magnitude, 0x38000000), 13);
    const Expr *payload = op(a, EX_AND, op(a, EX_SHR, magnitude, 13), 0x3ff);
    const Expr *nan = op(a, EX_OR, payload, 0x7e00);
    const Expr *result = expr_select(
        a, op(a, EX_LT, magnitude, SMALLEST_NORMAL), subnormal, normal);
    result = expr_select(a, expr_binary(a, EX_LE, num(a, OVERFLOW), magnitude),
                         num(a, 0x7c00), result);
    return expr_select(a, expr_binary(a, EX_LT, num(a, INFINITE), magnitude),
                       nan, result);
}

static const Expr *narrow_bf16(Arena *a, const Expr *magnitude)
{
    const Expr *nan = op(a, EX_OR, op(a, EX_SHR, magnitude, 16), 0x40);
    const Expr *is_nan = expr_binary(a, EX_LT, num(a, 0x7f800000), magnitude);
    return expr_select(a, is_nan, nan, rounded_shift(a, magnitude, 16));
}

const Expr *half_narrow(Arena *a, DType dtype, const Expr *value)
{
    const Expr *bits = expr_bitcast(a, DT_U32, value);
    const Expr *sign = op(a, EX_AND, op(a, EX_SHR, bits, 16), 0x8000);
    const Expr *magnitude = op(a, EX_AND, bits, 0x7fffffff);
    const Expr *result =
        dtype == DT_F16 ? narrow_f16(a, magnitude) : narrow_bf16(a, magnitude);
    return expr_cast(a, DT_U16, expr_binary(a, EX_OR, result, sign));
}
