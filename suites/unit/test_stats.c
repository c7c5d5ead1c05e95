/* The report's statistics, attribution and text, on cases whose answers are
 * known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "reports/blame.h"
#include "reports/html.h"
#include "reports/stats.h"

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance;
}

/* ---- quantiles and ratios --------------------------------------------- */

static void quantiles(void **state)
{
    (void)state;
    double values[] = {5, 1, 4, 2, 3};
    assert_true(near(stats_quantile(values, 5, 0), 1, 0));
    assert_true(near(stats_quantile(values, 5, 0.5), 3, 0));
    assert_true(near(stats_quantile(values, 5, 0.6), 3.4, 1e-12));
    assert_true(near(stats_quantile(values, 5, 1), 5, 0));
    assert_true(isnan(stats_quantile(values, 0, 0.5)));
    double same[] = {2, 2, 2, 2};
    assert_true(near(stats_quantile(same, 4, 0.3), 2, 0));
    /* Against the definition, for many lengths. */
    for (int n = 1; n < 40; n++) {
        double shuffled[40];
        for (int i = 0; i < n; i++)
            shuffled[i] = i * 7 % n;
        /* 7 and n share no factor, so these are 0 .. n - 1. */
        if (n % 7)
            assert_true(near(stats_quantile(shuffled, n, 0.25), 0.25 * (n - 1),
                             1e-12));
    }
}

static Samples samples_of(double *seconds, int *starts, int processes,
                          int each, double level, double between)
{
    int total = 0;
    starts[0] = 0;
    for (int p = 0; p < processes; p++) {
        for (int k = 0; k < each; k++)
            seconds[total++] =
                level * (1 + between * (p - (processes - 1) / 2.0) +
                         0.001 * (k % 5 - 2));
        starts[p + 1] = total;
    }
    return (Samples){seconds, starts, processes, total};
}

static void ratios_have_intervals(void **state)
{
    (void)state;
    double a[64], b[64];
    int p[9], q[9];
    Samples base = samples_of(a, p, 8, 8, 1e-3, 0.001);
    Samples fresh = samples_of(b, q, 8, 8, 1.1e-3, 0.001);
    Ratio r = stats_ratio(&fresh, &base);
    assert_true(near(r.value, 1.1, 1e-3));
    assert_true(r.low < r.value && r.value < r.high);
    assert_true(r.low > 1.09 && r.high < 1.11);
    /* Spread between processes widens it; many samples do not hide that. */
    fresh = samples_of(b, q, 8, 8, 1.1e-3, 0.02);
    Ratio wide = stats_ratio(&fresh, &base);
    assert_true(wide.high - wide.low > 4 * (r.high - r.low));
    Ratio again = stats_ratio(&fresh, &base);
    assert_memory_equal(&wide, &again, sizeof wide);
    Samples none = {a, p, 0, 0};
    assert_true(isnan(stats_ratio(&none, &base).value));
}

/* ---- histories -------------------------------------------------------- */

enum { RUNS = 60 };

/* Noise within one per cent. */
static double noisy(int i)
{
    double fraction = fmod(fabs(sin(i * 12.9898) * 43758.5453), 1);
    return 1 + 0.01 * (2 * fraction - 1);
}

static void usual_differences(void **state)
{
    (void)state;
    double values[RUNS];
    for (int i = 0; i < RUNS; i++)
        values[i] = noisy(i) * (i < 30 ? 1 : 2);
    double usual = stats_usual_difference(values, RUNS, true);
    assert_true(usual > 0.01 && usual < 0.04);
    /* A step does not make it larger. */
    for (int i = 0; i < RUNS; i++)
        values[i] = noisy(i);
    assert_true(near(stats_usual_difference(values, RUNS, true), usual, 2e-3));
    assert_true(isnan(stats_usual_difference(values, 5, true)));
    for (int i = 0; i < RUNS; i++)
        values[i] = i % 3 ? NAN : 4;
    assert_true(near(stats_usual_difference(values, RUNS, false), 0, 0));
}

static Steps steps_of(Arena *arena, const double *values)
{
    Steps steps = {0};
    stats_find_steps(arena, values, RUNS, 0.03, &steps);
    return steps;
}

static void steps(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    double values[RUNS];
    for (int i = 0; i < RUNS; i++)
        values[i] = noisy(i);
    assert_int_equal(steps_of(arena, values).count, 0);
    for (int i = 0; i < RUNS; i++)
        values[i] = noisy(i) * (i < 20 ? 1 : i < 41 ? 1.1 : 0.95);
    Steps two = steps_of(arena, values);
    assert_int_equal(two.count, 2);
    assert_int_equal(two.data[0].at, 20);
    assert_true(near(two.data[0].ratio, 1.1, 0.01));
    assert_int_equal(two.data[1].at, 41);
    assert_true(near(two.data[1].ratio, 0.95 / 1.1, 0.01));
    /* Neither a drift of 1 % a run nor a single bad run is a step. */
    for (int i = 0; i < RUNS; i++)
        values[i] = exp(0.01 * i);
    assert_int_equal(steps_of(arena, values).count, 0);
    for (int i = 0; i < RUNS; i++)
        values[i] = noisy(i) * (i == 30 ? 1.5 : 1);
    assert_int_equal(steps_of(arena, values).count, 0);
    /* Runs without a value are passed over. */
    for (int i = 0; i < RUNS; i++)
        values[i] = i % 2 ? NAN : noisy(i) * (i < 30 ? 1 : 1.2);
    Steps one = steps_of(arena, values);
    assert_int_equal(one.count, 1);
    assert_int_equal(one.data[0].at, 30);
    arena_free(arena);
}

/* ---- attribution ------------------------------------------------------ */

static void add_step(Arena *arena, CaseDetail *c, const char *kernel,
                     const char *code, double seconds, const char *first,
                     const char *second)
{
    StepDetail step = {.kernel = kernel, .seconds = seconds};
    Kernel k = {.name = kernel, .loops_hash = code, .code_hash = code};
    vec_push(arena, &step.nodes, first);
    if (second)
        vec_push(arena, &step.nodes, second);
    vec_push(arena, &c->steps, step);
    vec_push(arena, &c->kernels, k);
}

static void parts_share_nodes(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    CaseDetail now = {0}, then = {0};
    /* Two kernels became one, and one is as it was. */
    add_step(arena, &then, "conv_1", "aa", 5, "conv", NULL);
    add_step(arena, &then, "relu_1", "bb", 2, "relu", NULL);
    add_step(arena, &then, "pool_1", "cc", 1, "pool", NULL);
    add_step(arena, &now, "conv_relu_2", "dd", 4, "conv", "relu");
    add_step(arena, &now, "pool_1", "cc", 1.5, "pool", NULL);
    Blame b = blame(arena, &now, &then);
    assert_true(b.timed);
    assert_int_equal(b.parts.count, 2);
    assert_int_equal(b.changed, 1);
    assert_true(near(b.changed_seconds, -3, 1e-12));
    assert_true(near(b.total_seconds, -2.5, 1e-12));
    const Part *fused = &b.parts.data[0];
    assert_int_equal(fused->now.count, 1);
    assert_int_equal(fused->then.count, 2);
    assert_int_equal(fused->nodes.count, 2);
    assert_true(fused->code_changed && fused->loops_changed);
    assert_false(b.parts.data[1].code_changed);
    /* Without a profile the kernels' hashes are left. */
    now.steps.count = then.steps.count = 0;
    b = blame(arena, &now, &then);
    assert_false(b.timed);
    assert_int_equal(b.parts.count, 4);
    assert_int_equal(b.changed, 3);
    arena_free(arena);
}

static void order_of_kernels_is_no_change(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    CaseDetail now = {0}, then = {0};
    add_step(arena, &then, "a", "aa", 1, "x", NULL);
    add_step(arena, &then, "b", "bb", 1, "x", NULL);
    add_step(arena, &now, "b", "bb", 1, "x", NULL);
    add_step(arena, &now, "a", "aa", 1, "x", NULL);
    assert_int_equal(blame(arena, &now, &then).changed, 0);
    arena_free(arena);
}

/* ---- text ------------------------------------------------------------- */

static void escapes(const char *text, const char *expected)
{
    Str out = {0};
    html_add(&out, text);
    assert_string_equal(str_text(&out), expected);
    str_free(&out);
}

static void texts_are_escaped(void **state)
{
    (void)state;
    escapes("a<b> & \"c\" 'd'", "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
    escapes("a\nb\tc", "a b c");
    escapes("\x01\x7f", "\xef\xbf\xbd\xef\xbf\xbd");
    escapes("\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80",
            "\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80");
    /* No UTF-8: a lone byte, an overlong slash, a surrogate, a cut one. */
    escapes("\xff", "\xef\xbf\xbd");
    escapes("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd");
    escapes("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    escapes("\xe4\xbd", "\xef\xbf\xbd\xef\xbf\xbd");
    /* A right-to-left override. */
    escapes("\xe2\x80\xae", "\xef\xbf\xbd");
    Str out = {0};
    html_add_short(&out, "\xc3\xa9\xc3\xa9<\xc3\xa9\xc3\xa9", 4);
    assert_string_equal(str_text(&out), "\xc3\xa9\xc3\xa9&lt;\xe2\x80\xa6");
    str_free(&out);
}

static void numbers_have_three_digits(void **state)
{
    (void)state;
    Arena *a = arena_new();
    assert_string_equal(format_value(a, "s", 0.0123456), "12.3 ms");
    assert_string_equal(format_value(a, "s", 55e-6), "55.0 µs");
    assert_string_equal(format_value(a, "s", 61), "61.0 s");
    assert_string_equal(format_value(a, "bytes", 5.03 * 1048576), "5.03 MiB");
    assert_string_equal(format_value(a, "ratio", 0.9374), "93.74 %");
    assert_string_equal(format_value(a, "db", 121.803), "121.8 dB");
    assert_string_equal(format_value(a, "", 4.34e-6), "4.3e-06");
    assert_string_equal(format_value(a, "count", 10000), "10000");
    assert_string_equal(format_value(a, "J", 30), "30.0 J");
    assert_string_equal(format_value(a, "s", NAN), "–");
    assert_string_equal(format_value(a, "ratio", 1e300), "1.00e+302 %");
    assert_string_equal(format_change(a, "s", 2, 2.24), "+12.0 %");
    assert_string_equal(format_change(a, "ratio", 0.94, 0.93), "−1.00 points");
    assert_string_equal(format_change(a, "bytes", 0, 2048), "+2.00 KiB");
    assert_string_equal(format_interval(a, 1.12, 1.1, 1.14),
                        "1.12 [1.10, 1.14]");
    assert_string_equal(format_interval(a, 1.004, 1.001, 1.008),
                        "1.004 [1.001, 1.008]");
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles),
        cmocka_unit_test(ratios_have_intervals),
        cmocka_unit_test(usual_differences),
        cmocka_unit_test(steps),
        cmocka_unit_test(parts_share_nodes),
        cmocka_unit_test(order_of_kernels_is_no_change),
        cmocka_unit_test(texts_are_escaped),
        cmocka_unit_test(numbers_have_three_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
