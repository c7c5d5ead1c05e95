/* The expansions of elementary functions against double precision, in the
 * units stated at the top of compiler/tensor/math.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "passes/util.h"
#include "schedules/schedule.h"
#include "suites/unit/compiled.h"

enum { COUNT = 1 << 16, FUSED_COUNT = 1 << 11 };

/* out[i] = kind(in[i]) over `count` elements: compiled for the baseline, or
 * with fused multiply-adds, which the baseline lacks, interpreted. */
static void run(ExprKind kind, int count, bool fused, const float *in,
                float *out)
{
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Definition *def = definition_new(a, "math");
    int64_t dims[] = {count};
    Buffer *x = definition_add_buffer(def, "x", BUF_INPUT, DT_F32, 1, dims);
    Buffer *y = definition_add_buffer(def, "y", BUF_OUTPUT, DT_F32, 1, dims);
    StageBuilder b;
    stage_begin(&b, def, y);
    stage_end(&b, expr_unary(a, kind, expr_read(a, x, b.index)));
    Schedule *s = schedule_new(a, diag, def);
    assert_true(schedule_vectorize(s, "y", "i"));
    void *data[] = {(void *)in, out};
    if (fused)
        assert_true(schedule_fused_math(s));
    Kernel *kernel = schedule_lower(s, a);
    assert_true(fused ? kernel_interpret(kernel, data, diag)
                      : codegen_llvm_evaluate(kernel, data, diag));
    arena_free(a);
}

static double ulps(float got, double want)
{
    float rounded = (float)want;
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if (isinf(rounded) || isinf(got))
        return got == rounded ? 0 : INFINITY;
    double unit = ldexp(1, -149);
    if (fabs(want) > 0x1p-126)
        unit = ldexp(1, ilogb(want) - 23);
    return fabs((double)got - want) / unit;
}

static float in[COUNT], out[COUNT];

/* The numbers in `in`, a few special values first. */
static void check_numbers(ExprKind kind, double (*exact)(double), int count,
                          double bound, bool fused)
{
    const float special[] = {0.0f,     -0.0f,     1.0f,    -1.0f,
                             INFINITY, -INFINITY, NAN,     1e-40f,
                             1e-30f,   -1e-30f,   3.4e38f, -3.4e38f};
    memcpy(in, special, sizeof special);
    run(kind, count, fused, in, out);
    double worst = 0;
    int at = 0;
    bool trig = kind == EX_SIN || kind == EX_COS;
    for (int i = 0; i < count; i++) {
        if (trig && !(fabsf(in[i]) < 1e5f))
            continue;
        double want = exact((double)in[i]);
        double e = ulps(out[i], want);
        if (!trig && want == 0 && in[i] == 0 &&
            !signbit(out[i]) != !signbit(want))
            e = INFINITY;
        if (e > worst) {
            worst = e;
            at = i;
        }
    }
    if (worst > bound)
        fail_msg("%s(%.9g) = %.9g is %.2f ulp off, stated are %.2f",
                 expr_kind_name(kind), (double)in[at], (double)out[at], worst,
                 bound);
}

/* Points spread over [low, high], and over all numbers there are: bit patterns
 * at equal distances, so that every exponent of both signs has its share. */
static void check_form(ExprKind kind, double (*exact)(double), double low,
                       double high, double bound, bool fused)
{
    const int count = fused ? FUSED_COUNT : COUNT;
    for (int i = 0; i < count; i++)
        in[i] = (float)(low + (high - low) * i / (count - 1));
    check_numbers(kind, exact, count, bound, fused);
    uint32_t step = UINT32_MAX / (uint32_t)count;
    for (int i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)i * step + (uint32_t)i % 251;
        memcpy(&in[i], &bits, sizeof bits);
    }
    check_numbers(kind, exact, count, bound, fused);
}

static void check(ExprKind kind, double (*exact)(double), double low,
                  double high, double bound)
{
    check_form(kind, exact, low, high, bound, false);
    check_form(kind, exact, low, high, bound, true);
}

static void test_exp(void **state)
{
    (void)state;
    check(EX_EXP, exp, -110, 95, 2);
    check(EX_EXP, exp, -1, 1, 2);
}

static void test_log(void **state)
{
    (void)state;
    check(EX_LOG, log, 0, 4, 2);
    check(EX_LOG, log, 1e-39, 1e-37, 2);
    check(EX_LOG, log, 1, 1e30, 2);
}

static void test_erf(void **state)
{
    (void)state;
    check(EX_ERF, erf, -5, 5, 4);
    check(EX_ERF, erf, -1e-3, 1e-3, 4);
}

static void test_tanh(void **state)
{
    (void)state;
    check(EX_TANH, tanh, -12, 12, 3);
    check(EX_TANH, tanh, -1e-3, 1e-3, 3);
}

static void test_trigonometry(void **state)
{
    (void)state;
    check(EX_SIN, sin, -1e5, 1e5, 2);
    check(EX_COS, cos, -1e5, 1e5, 2);
}

/* ---- activations ----------------------------------------------------- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x * sigmoid(x);
}

static double gelu(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

/* The definition of an operator over in[]. */
static void run_op(const char *op, bool fused, int count)
{
    Arena *a = arena_new();
    Graph *g = graph_from_text(
        a, arena_printf(a,
                        "graph g\n  input x: f32[%d]\n"
                        "  y: f32[%d] = %s op(x)\n  output y\n",
                        count, count, op));
    assert_true(ops_infer_graph(g));
    Definition *def = define_node(a, g->nodes.data[0]);
    Schedule *s = schedule_new(a, g->diag, def);
    void *data[] = {in, out};
    assert_true(schedule_vectorize(s, "out0", "i"));
    if (fused)
        assert_true(schedule_fused_math(s));
    Kernel *kernel = schedule_lower(s, a);
    assert_true(fused ? kernel_interpret(kernel, data, g->diag)
                      : codegen_llvm_evaluate(kernel, data, g->diag));
    arena_free(a);
}

/* Over all numbers: no further off than `relative` times the result, or
 * `absolute` times what goes in, or 1e-36 where results vanish. */
static void check_activation(const char *op, double (*exact)(double),
                             double relative, double absolute)
{
    for (int fused = 0; fused < 2; fused++) {
        const int count = fused ? FUSED_COUNT : COUNT;
        for (int pass = 0; pass < 2; pass++) {
            uint32_t step = UINT32_MAX / (uint32_t)count;
            for (int i = 0; i < count; i++) {
                uint32_t bits = (uint32_t)i * step + (uint32_t)i % 251;
                memcpy(&in[i], &bits, sizeof bits);
                if (pass)
                    in[i] = (float)(-100 + 200.0 * i / (count - 1));
            }
            run_op(op, fused, count);
            for (int i = 0; i < count; i++) {
                double want = exact((double)in[i]);
                double bound = relative * fabs(want) +
                               absolute * fabs((double)in[i]) + 1e-36;
                /* 0 times infinity, where the limit is 0. */
                if (isinf(in[i]) || isnan(in[i]))
                    continue;
                if (!(fabs((double)out[i] - want) <= bound) &&
                    (float)want != out[i])
                    fail_msg("%s(%.9g) = %.9g, not %.9g", op, (double)in[i],
                             (double)out[i], want);
            }
        }
    }
}

static void test_activations(void **state)
{
    (void)state;
    const double ulp = 0x1p-23;
    check_activation("Sigmoid", sigmoid, 4 * ulp, 0);
    check_activation("Swish", silu, 5 * ulp, 0);
    /* 1 + erf cancels where x is negative. */
    check_activation("Gelu", gelu, 4 * ulp, 2.5e-7);
}

/* out[i] = kind(in[i]) in f64, in units of the last place. */
static void check_f64(ExprKind kind, double (*exact)(double), double high,
                      double bound)
{
    enum { N = 4001 };
    static double x[N], y[N];
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Definition *def = definition_new(a, "math");
    int64_t dims[] = {N};
    for (int i = 0; i < N; i++)
        x[i] = high * (2.0 * i / (N - 1) - 1);
    const double special[] = {0.0, -0.0, INFINITY, -INFINITY, 1e-300, 1e300};
    memcpy(x, special, sizeof special);
    Buffer *bx = definition_add_buffer(def, "x", BUF_INPUT, DT_F64, 1, dims);
    Buffer *by = definition_add_buffer(def, "y", BUF_OUTPUT, DT_F64, 1, dims);
    StageBuilder b;
    stage_begin(&b, def, by);
    stage_end(&b, expr_unary(a, kind, expr_read(a, bx, b.index)));
    void *data[] = {x, y};
    Kernel *kernel = schedule_lower(schedule_new(a, diag, def), a);
    assert_true(codegen_llvm_evaluate(kernel, data, diag));
    for (int i = 0; i < N; i++) {
        double want = exact(x[i]);
        double unit = ldexp(1, want == 0 ? -1074 : ilogb(want) - 52);
        if (!(fabs(y[i] - want) <= bound * unit) ||
            signbit(y[i]) != signbit(want))
            fail_msg("%s(%.17g) = %.17g, not %.17g", expr_kind_name(kind),
                     x[i], y[i], want);
    }
    arena_free(a);
}

static void test_f64(void **state)
{
    (void)state;
    check_f64(EX_TANH, tanh, 25, 4);
    check_f64(EX_TANH, tanh, 0.7, 4);
    check_f64(EX_ERF, erf, 7, 4);
    check_f64(EX_ERF, erf, 1.1, 4);
}

/* x to the power of y, by interpretation. */
static void test_pow(void **state)
{
    enum { N = 2000 };
    static float x[N], y[N], z[N];
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = (float)(0.01 + 12.0 * (i % 89) / 89);
        y[i] = (float)(-9.0 + 18.0 * i / N);
        if (i % 3 == 0) {
            x[i] = -x[i];
            y[i] = rintf(y[i]);
        }
    }
    const float special[][2] = {{0, 2},        {0, -1},    {2, 0},
                                {NAN, 0},      {1, NAN},   {-2, 0.5f},
                                {INFINITY, 2}, {-0.0f, 3}, {4, 0.5f}};
    const int specials = sizeof special / sizeof *special;
    for (int i = 0; i < specials; i++) {
        x[i] = special[i][0];
        y[i] = special[i][1];
    }
    Definition *def = definition_new(a, "math");
    int64_t dims[] = {N};
    Buffer *bx = definition_add_buffer(def, "x", BUF_INPUT, DT_F32, 1, dims);
    Buffer *by = definition_add_buffer(def, "y", BUF_INPUT, DT_F32, 1, dims);
    Buffer *bz = definition_add_buffer(def, "z", BUF_OUTPUT, DT_F32, 1, dims);
    StageBuilder b;
    stage_begin(&b, def, bz);
    stage_end(&b, expr_binary(a, EX_POW, expr_read(a, bx, b.index),
                              expr_read(a, by, b.index)));
    void *data[] = {x, y, z};
    Kernel *kernel = schedule_lower(schedule_new(a, diag, def), a);
    assert_true(codegen_llvm_evaluate(kernel, data, diag));
    for (int i = 0; i < N; i++) {
        double e = ulps(z[i], pow((double)x[i], (double)y[i]));
        if (!(e <= 1))
            fail_msg("pow(%.9g, %.9g) = %.9g is %.2f ulp off", (double)x[i],
                     (double)y[i], (double)z[i], e);
    }
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_erf),
        cmocka_unit_test(test_tanh),
        cmocka_unit_test(test_trigonometry),
        cmocka_unit_test(test_pow),
        cmocka_unit_test(test_f64),
        cmocka_unit_test(test_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
