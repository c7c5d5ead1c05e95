/* f16 and bf16 in definitions: every bit pattern widened, roundings against
 * the conversions of base/array.h, compiled for the baseline and
 * interpreted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "schedules/schedule.h"

enum { PATTERNS = 1 << 16, SAMPLES = 1 << 17 };

static const DType halves[] = {DT_F16, DT_BF16};

/* The scalar that a stage computes from x[i], and y[i] where it has two. */
typedef const Expr *Formula(Arena *a, DType to, const Expr *x, const Expr *y);

static void run(Formula *formula, DType from, DType to, int count,
                const void *x, const void *y, void *out, bool interpret)
{
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Definition *def = definition_new(a, "half");
    int64_t dims[] = {count};
    Buffer *bx = definition_add_buffer(def, "x", BUF_INPUT, from, 1, dims);
    Buffer *by =
        y ? definition_add_buffer(def, "y", BUF_INPUT, from, 1, dims) : NULL;
    Buffer *bo = definition_add_buffer(def, "z", BUF_OUTPUT, to, 1, dims);
    StageBuilder b;
    stage_begin(&b, def, bo);
    stage_end(&b, formula(a, to, expr_read(a, bx, b.index),
                          y ? expr_read(a, by, b.index) : NULL));
    Schedule *s = schedule_new(a, diag, def);
    assert_true(schedule_vectorize(s, "z", "i"));
    Kernel *kernel = schedule_lower(s, a);
    void *two[] = {(void *)x, out}, *three[] = {(void *)x, (void *)y, out};
    void *const *data = y ? three : two;
    assert_true(interpret ? kernel_interpret(kernel, data, diag)
                          : codegen_llvm_evaluate(kernel, data, diag));
    arena_free(a);
}

static const Expr *convert(Arena *a, DType to, const Expr *x, const Expr *y)
{
    (void)y;
    return expr_cast(a, to, x);
}

static const Expr *move(Arena *a, DType to, const Expr *x, const Expr *y)
{
    (void)a, (void)to, (void)y;
    return x;
}

static const Expr *add(Arena *a, DType to, const Expr *x, const Expr *y)
{
    (void)to;
    return expr_add(a, x, y);
}

/* Through f64, as an operator may do it: x - trunc(x / y) y. */
static const Expr *remainder_of(Arena *a, DType to, const Expr *x,
                                const Expr *y)
{
    const Expr *p = expr_cast(a, DT_F64, x), *q = expr_cast(a, DT_F64, y);
    const Expr *ratio = expr_div(a, p, q);
    const Expr *negative =
        expr_binary(a, EX_LT, ratio, expr_const(a, DT_F64, 0));
    const Expr *whole = expr_select(a, negative, expr_unary(a, EX_CEIL, ratio),
                                    expr_unary(a, EX_FLOOR, ratio));
    return expr_cast(a, to, expr_sub(a, p, expr_mul(a, whole, q)));
}

static float to_float(DType dtype, uint16_t bits)
{
    return dtype == DT_F16 ? half_to_float(bits) : bfloat_to_float(bits);
}

static uint16_t from_float(DType dtype, float value)
{
    return dtype == DT_F16 ? float_to_half(value) : float_to_bfloat(value);
}

static bool is_same(DType dtype, uint16_t a, uint16_t b)
{
    return a == b || (isnan(to_float(dtype, a)) && isnan(to_float(dtype, b)));
}

static void every_pattern_widens(void **state)
{
    (void)state;
    static uint16_t in[PATTERNS];
    static float out[PATTERNS];
    for (int i = 0; i < PATTERNS; i++)
        in[i] = (uint16_t)i;
    for (int k = 0; k < 4; k++) {
        DType dtype = halves[k % 2];
        run(convert, dtype, DT_F32, PATTERNS, in, NULL, out, k > 1);
        for (int i = 0; i < PATTERNS; i++) {
            float want = to_float(dtype, in[i]);
            if (isnan(want) ? !isnan(out[i])
                            : memcmp(&out[i], &want, sizeof want) != 0)
                fail_msg("%s %#x is %.9g instead of %.9g", dtype_name(dtype),
                         i, (double)out[i], (double)want);
        }
    }
}

/* Every exponent, and mantissas beside and on the ties. */
static void fill_samples(float *in)
{
    for (int i = 0; i < SAMPLES; i++) {
        uint32_t top = (uint32_t)i >> 1, low = i & 1;
        static const uint32_t near[] = {0x0000, 0x0fff, 0x1000, 0x1001,
                                        0x2000, 0x3000, 0x7fff, 0x8000};
        uint32_t bits = top << 16 | near[(top * 2 + low) % 8];
        memcpy(&in[i], &bits, sizeof bits);
    }
}

static void narrowing_rounds_to_even(void **state)
{
    (void)state;
    static float in[SAMPLES];
    static uint16_t out[SAMPLES];
    fill_samples(in);
    for (int k = 0; k < 4; k++) {
        DType dtype = halves[k % 2];
        run(convert, DT_F32, dtype, SAMPLES, in, NULL, out, k > 1);
        for (int i = 0; i < SAMPLES; i++)
            if (!is_same(dtype, out[i], from_float(dtype, in[i])))
                fail_msg("%.9g is %s %#x instead of %#x", (double)in[i],
                         dtype_name(dtype), out[i], from_float(dtype, in[i]));
    }
}

static void moving_keeps_every_bit(void **state)
{
    (void)state;
    static uint16_t in[PATTERNS], out[PATTERNS];
    for (int i = 0; i < PATTERNS; i++)
        in[i] = (uint16_t)i;
    for (int k = 0; k < 4; k++) {
        run(move, halves[k % 2], halves[k % 2], PATTERNS, in, NULL, out,
            k > 1);
        assert_memory_equal(in, out, sizeof in);
    }
}

static void operations_round_once(void **state)
{
    (void)state;
    static uint16_t x[PATTERNS], y[PATTERNS], out[PATTERNS];
    for (int i = 0; i < PATTERNS; i++) {
        x[i] = (uint16_t)i;
        y[i] = (uint16_t)(i * 40503u + 977);
    }
    for (int k = 0; k < 4; k++) {
        DType t = halves[k % 2];
        run(add, t, t, PATTERNS, x, y, out, k > 1);
        for (int i = 0; i < PATTERNS; i++) {
            uint16_t want =
                from_float(t, to_float(t, x[i]) + to_float(t, y[i]));
            if (!is_same(t, out[i], want))
                fail_msg("%s %#x + %#x is %#x instead of %#x", dtype_name(t),
                         x[i], y[i], out[i], want);
        }
    }
}

static void wider_types_between(void **state)
{
    (void)state;
    static const float pairs[][2] = {
        {-4.3f, 2.1f}, {7.2f, -3.4f}, {5, 8}, {4.3f, -2.1f}};
    uint16_t x[4], y[4], out[4];
    for (int k = 0; k < 4; k++) {
        DType t = halves[k % 2];
        for (int i = 0; i < 4; i++) {
            x[i] = from_float(t, pairs[i][0]);
            y[i] = from_float(t, pairs[i][1]);
        }
        run(remainder_of, t, t, 4, x, y, out, k > 1);
        for (int i = 0; i < 4; i++) {
            double want =
                fmod((double)to_float(t, x[i]), (double)to_float(t, y[i]));
            assert_int_equal(out[i], from_float(t, (float)want));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_widens),
        cmocka_unit_test(narrowing_rounds_to_even),
        cmocka_unit_test(moving_keeps_every_bit),
        cmocka_unit_test(operations_round_once),
        cmocka_unit_test(wider_types_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
