/* The statistics of paired measurement, on made-up samples whose true ratio
 * is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "harness/compare.h"

static void percentiles(void **state)
{
    (void)state;
    static const double v[] = {5, 1, 4, 2, 3};
    assert_true(stats_median(v, 5) == 3);
    assert_true(stats_median(v, 4) == 3); /* of 1 2 4 5 */
    assert_true(stats_median(v, 2) == 3); /* of 1 5 */
    assert_true(stats_percentile(v, 5, 0) == 1);
    assert_true(stats_percentile(v, 5, 1) == 5);
    assert_true(fabs(stats_percentile(v, 5, 0.9) - 4.6) < 1e-12);
    assert_true(stats_median(v, 1) == 5);
    assert_true(isnan(stats_median(v, 0)));
    assert_true(v[0] == 5); /* the input stays as it is */
}

enum { BLOCKS = 3, SAMPLES = 50 };

typedef struct Data {
    double seconds[BLOCKS][4][SAMPLES];
    CompareBlock blocks[BLOCKS];
} Data;

/* Deterministic noise in -1..1. */
static double noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (1 << 23) - 1;
}

/* Process k of a block runs in order A B B A. `drift` is the slowdown of
 * each further process. */
static void make(Data *d, double a, double b, double spread, double drift)
{
    uint32_t state = 7;
    for (int i = 0; i < BLOCKS; i++) {
        for (int k = 0; k < 4; k++)
            for (int s = 0; s < SAMPLES; s++)
                d->seconds[i][k][s] = (k == 0 || k == 3 ? a : b) *
                                      (1 + drift * k) *
                                      (1 + spread * noise(&state));
        CompareBlock *block = &d->blocks[i];
        block->a[0] = (Samples){d->seconds[i][0], SAMPLES};
        block->b[0] = (Samples){d->seconds[i][1], SAMPLES};
        block->b[1] = (Samples){d->seconds[i][2], SAMPLES};
        block->a[1] = (Samples){d->seconds[i][3], SAMPLES};
    }
}

static void exact_without_noise(void **state)
{
    (void)state;
    Data d;
    make(&d, 3e-3, 2e-3, 0, 0);
    Ratio r = compare_ratio(d.blocks, BLOCKS, 0.95);
    assert_true(fabs(r.value - 1.5) < 1e-12);
    assert_true(fabs(r.low - 1.5) < 1e-12);
    assert_true(fabs(r.high - 1.5) < 1e-12);
}

static void interval_holds_the_truth(void **state)
{
    (void)state;
    Data d;
    make(&d, 1.2, 1.0, 0.1, 0);
    Ratio r = compare_ratio(d.blocks, BLOCKS, 0.95);
    assert_true(r.low < 1.2 && r.high > 1.2);
    assert_true(r.low < r.value && r.value < r.high);
    assert_true(r.low > 1.1 && r.high < 1.3);
    make(&d, 1.0, 1.0, 0.1, 0);
    r = compare_ratio(d.blocks, BLOCKS, 0.95);
    assert_true(r.low < 1 && r.high > 1);
}

static void noise_widens(void **state)
{
    (void)state;
    Data d;
    make(&d, 1.2, 1.0, 0.02, 0);
    Ratio calm = compare_ratio(d.blocks, BLOCKS, 0.95);
    make(&d, 1.2, 1.0, 0.4, 0);
    Ratio wild = compare_ratio(d.blocks, BLOCKS, 0.95);
    assert_true(wild.high - wild.low > 5 * (calm.high - calm.low));
}

/* A B B A: a machine that slows down steadily does not shift the ratio. */
static void drift_cancels(void **state)
{
    (void)state;
    Data d;
    make(&d, 2.0, 1.0, 0, 0.05);
    Ratio r = compare_ratio(d.blocks, BLOCKS, 0.95);
    assert_true(fabs(r.value - 2.0) < 0.005);
    assert_true(r.low < 2.0 && r.high > 2.0);
}

static void is_deterministic(void **state)
{
    (void)state;
    Data d;
    make(&d, 1.2, 1.0, 0.1, 0);
    Ratio r = compare_ratio(d.blocks, BLOCKS, 0.95);
    Ratio s = compare_ratio(d.blocks, BLOCKS, 0.95);
    assert_memory_equal(&r, &s, sizeof r);
}

static void missing_samples_give_nothing(void **state)
{
    (void)state;
    Data d;
    make(&d, 1, 1, 0, 0);
    assert_true(isnan(compare_ratio(d.blocks, 0, 0.95).value));
    d.blocks[1].b[1].count = 0;
    Ratio r = compare_ratio(d.blocks, BLOCKS, 0.95);
    assert_true(isnan(r.value) && isnan(r.low) && isnan(r.high));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles),
        cmocka_unit_test(exact_without_noise),
        cmocka_unit_test(interval_holds_the_truth),
        cmocka_unit_test(noise_widens),
        cmocka_unit_test(drift_cancels),
        cmocka_unit_test(is_deterministic),
        cmocka_unit_test(missing_samples_give_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
