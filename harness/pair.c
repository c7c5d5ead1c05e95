#include "harness/pair.h"

#include <math.h>
#include <string.h>

#include "harness/common.h"

/* A calibration this much below the best one says that something else used
 * the machine. */
static const double disturbed_below = 0.85;
enum { ATTEMPTS = 3 };

/* Sampling stops at the wider interval: looking after every block would
 * make the narrow one lie too often. */
static const double stop_level = 0.99, report_level = 0.95;

static void drop_visit(PairVisit *visit)
{
    json_decref(visit->report);
    *visit = (PairVisit){0};
}

static bool is_disturbed(const Pair *pair, const PairVisit *visits)
{
    return fmin(visits[0].lowest_gflops, visits[1].lowest_gflops) <
           disturbed_below * pair->gflops;
}

static bool measure_block(PairMeasure *measure, void *user, Pair *pair)
{
    PairVisit *visits = pair->visits[pair->blocks];
    for (int attempt = 1;; attempt++) {
        for (int v = 0; v < 2; v++) {
            if (!measure(user, v == 1, &visits[v])) {
                drop_visit(&visits[0]);
                drop_visit(&visits[1]);
                pair->failed = true;
                return false;
            }
            pair->gflops = fmax(pair->gflops, visits[v].best_gflops);
        }
        if (!is_disturbed(pair, visits) || attempt == ATTEMPTS)
            break;
        pair->repeated++;
        drop_visit(&visits[0]);
        drop_visit(&visits[1]);
    }
    pair->blocks++;
    return true;
}

static PairPart whole(void *user, const PairVisit *visit)
{
    (void)user;
    return (PairPart){visit->a, visit->b};
}

void pair_run(const PairPlan *plan, PairMeasure *measure, void *user,
              Pair *pair)
{
    *pair = (Pair){.verdict = VERDICT_BROKEN, .ratio = {NAN, NAN, NAN}};
    double start = clock_now();
    while (pair->blocks < plan->most_blocks) {
        if (pair->blocks >= plan->least_blocks &&
            clock_now() - start > plan->most_seconds)
            break;
        if (!measure_block(measure, user, pair))
            return;
        if (pair->blocks < plan->least_blocks)
            continue;
        Ratio wide = pair_part_ratio(pair, whole, NULL, stop_level);
        if (verdict_of(wide) != VERDICT_INCONCLUSIVE)
            break;
    }
    pair->ratio = pair_part_ratio(pair, whole, NULL, report_level);
    pair->verdict = verdict_of(pair->ratio);
    /* Against the best of all calibrations, which may have come late. */
    for (int i = 0; i < pair->blocks; i++)
        pair->disturbed += is_disturbed(pair, pair->visits[i]);
    if (2 * pair->disturbed > pair->blocks)
        pair->verdict = VERDICT_INCONCLUSIVE;
}

void pair_free(Pair *pair)
{
    for (int i = 0; i < pair->blocks; i++)
        for (int v = 0; v < 2; v++)
            drop_visit(&pair->visits[i][v]);
    pair->blocks = 0;
}

Ratio pair_part_ratio(const Pair *pair,
                      PairPart (*get)(void *user, const PairVisit *visit),
                      void *user, double level)
{
    CompareBlock blocks[PAIR_MOST_BLOCKS];
    for (int i = 0; i < pair->blocks; i++)
        for (int v = 0; v < 2; v++) {
            PairPart part = get(user, &pair->visits[i][v]);
            blocks[i].a[v] = part.a;
            blocks[i].b[v] = part.b;
        }
    return compare_ratio(blocks, pair->blocks, level);
}
