/* The paired-measurement engine, on made-up visits whose true ratio is
 * known: when it stops, what it repeats, what it says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdint.h>

#include "harness/pair.h"

enum { SAMPLES = 20, MOST_VISITS = 200 };

typedef struct Machine {
    double a, b;     /* seconds of a run */
    double spread;   /* of samples, relative */
    double drift;    /* each visit is slower by that */
    int slow_visits; /* the first ones see half the calibration */
    int fail_at;     /* visit that fails; 0: none */
    int visits, swapped;
    uint32_t noise;
    double seconds[MOST_VISITS][2][SAMPLES];
} Machine;

static double noise(Machine *m)
{
    m->noise = m->noise * 1664525u + 1013904223u;
    return (double)(m->noise >> 8) / (1 << 23) - 1;
}

static bool visit(void *user, bool swapped, PairVisit *v)
{
    Machine *m = user;
    int n = m->visits++;
    m->swapped += swapped;
    if (m->fail_at && m->visits == m->fail_at)
        return false;
    double drift = 1 + m->drift * n;
    /* The side that comes second feels half a visit more of the drift. */
    double late = 1 + m->drift / 2;
    for (int i = 0; i < SAMPLES; i++) {
        m->seconds[n][0][i] =
            m->a * drift * (swapped ? late : 1) * (1 + m->spread * noise(m));
        m->seconds[n][1][i] =
            m->b * drift * (swapped ? 1 : late) * (1 + m->spread * noise(m));
    }
    v->a = (Samples){m->seconds[n][0], SAMPLES};
    v->b = (Samples){m->seconds[n][1], SAMPLES};
    v->best_gflops = 100;
    v->lowest_gflops = n < m->slow_visits ? 50 : 98;
    v->report = json_pack("{s:i}", "visit", n);
    return true;
}

static const PairPlan plan = {
    .least_blocks = 3, .most_blocks = 10, .most_seconds = 60};

static void stops_when_decided(void **state)
{
    (void)state;
    Machine m = {.a = 1.5, .b = 1, .spread = 0.05};
    Pair p;
    pair_run(&plan, visit, &m, &p);
    assert_int_equal(p.blocks, 3);
    assert_int_equal(m.visits, 6);
    assert_int_equal(m.swapped, 3);
    assert_int_equal(p.verdict, VERDICT_IMPROVED);
    assert_true(p.ratio.low < 1.5 && 1.5 < p.ratio.high);
    assert_true(p.gflops == 100);
    pair_free(&p);
    m = (Machine){.a = 1, .b = 1.2, .spread = 0.05};
    pair_run(&plan, visit, &m, &p);
    assert_int_equal(p.verdict, VERDICT_REGRESSED);
    pair_free(&p);
    m = (Machine){.a = 1, .b = 1, .spread = 0.002};
    pair_run(&plan, visit, &m, &p);
    assert_int_equal(p.blocks, 3);
    assert_int_equal(p.verdict, VERDICT_SAME);
    pair_free(&p);
}

static void goes_on_while_undecided(void **state)
{
    (void)state;
    Machine m = {.a = 1.005, .b = 1, .spread = 0.5};
    Pair p;
    pair_run(&plan, visit, &m, &p);
    assert_int_equal(p.blocks, plan.most_blocks);
    assert_int_equal(p.verdict, VERDICT_INCONCLUSIVE);
    pair_free(&p);
    /* No time left: the least, and no more. */
    PairPlan hasty = plan;
    hasty.most_seconds = -1;
    m = (Machine){.a = 1.005, .b = 1, .spread = 0.5};
    pair_run(&hasty, visit, &m, &p);
    assert_int_equal(p.blocks, plan.least_blocks);
    pair_free(&p);
}

/* One block says nothing of how blocks differ. */
static void one_block_decides_nothing(void **state)
{
    (void)state;
    PairPlan quick = {.least_blocks = 1, .most_blocks = 1};
    Machine m = {.a = 3, .b = 1};
    Pair p;
    pair_run(&quick, visit, &m, &p);
    assert_int_equal(p.blocks, 1);
    assert_true(fabs(p.ratio.value - 3) < 1e-9);
    assert_true(isnan(p.ratio.low) && isnan(p.ratio.high));
    assert_int_equal(p.verdict, VERDICT_INCONCLUSIVE);
    pair_free(&p);
}

static void drift_cancels(void **state)
{
    (void)state;
    /* Each visit 3 % slower than the one before: A B alone would be off by
     * 1.5 %. */
    Machine m = {.a = 1, .b = 1, .drift = 0.03};
    Pair p;
    pair_run(&plan, visit, &m, &p);
    assert_true(fabs(p.ratio.value - 1) < 1e-3);
    pair_free(&p);
}

static void disturbed_blocks_are_repeated(void **state)
{
    (void)state;
    Machine m = {.a = 2, .b = 1, .slow_visits = 1};
    Pair p;
    pair_run(&plan, visit, &m, &p);
    assert_int_equal(p.repeated, 1);
    assert_int_equal(p.disturbed, 0);
    assert_int_equal(p.blocks, 3);
    assert_int_equal(m.visits, 8);
    /* What was measured again is not in the result. */
    assert_int_equal(
        json_integer_value(json_object_get(p.visits[0][0].report, "visit")),
        2);
    pair_free(&p);
    m = (Machine){.a = 2, .b = 1, .slow_visits = MOST_VISITS};
    pair_run(&plan, visit, &m, &p);
    assert_int_equal(p.disturbed, 3);
    assert_int_equal(p.repeated, 6);
    /* However clear the ratio: nobody knows what else was measured. */
    assert_int_equal(p.verdict, VERDICT_INCONCLUSIVE);
    assert_int_equal(p.blocks, 3);
    pair_free(&p);
}

static void failure_ends_it(void **state)
{
    (void)state;
    Machine m = {.a = 2, .b = 1, .fail_at = 1};
    Pair p;
    pair_run(&plan, visit, &m, &p);
    assert_true(p.failed);
    assert_int_equal(p.blocks, 0);
    assert_int_equal(p.verdict, VERDICT_BROKEN);
    assert_true(isnan(p.ratio.value));
    pair_free(&p);
    m = (Machine){.a = 2, .b = 1, .fail_at = 4};
    pair_run(&plan, visit, &m, &p);
    assert_true(p.failed);
    assert_int_equal(p.blocks, 1);
    assert_int_equal(m.visits, 4);
    pair_free(&p);
}

static void verdicts(void **state)
{
    (void)state;
    static const struct {
        Ratio ratio;
        Verdict verdict;
    } rows[] = {
        {{1.2, 1.1, 1.3}, VERDICT_IMPROVED},
        {{0.8, 0.7, 0.9}, VERDICT_REGRESSED},
        {{1.02, 0.9, 1.1}, VERDICT_INCONCLUSIVE},
        {{1, 0.995, 1.005}, VERDICT_SAME},
        {{1.004, 1.002, 1.006}, VERDICT_SAME}, /* real, and of no use */
        {{1.02, 1.001, 1.04}, VERDICT_IMPROVED},
        {{NAN, NAN, NAN}, VERDICT_BROKEN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(verdict_of(rows[i].ratio), rows[i].verdict);
    assert_string_equal(verdict_name(VERDICT_NOT_COMPARABLE),
                        "not-comparable");
    assert_string_equal(verdict_name(VERDICT_MISSING), "missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_when_decided),
        cmocka_unit_test(goes_on_while_undecided),
        cmocka_unit_test(one_block_decides_nothing),
        cmocka_unit_test(drift_cancels),
        cmocka_unit_test(disturbed_blocks_are_repeated),
        cmocka_unit_test(failure_ends_it),
        cmocka_unit_test(verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
