/* The paired-measurement engine: which of two sides is faster, and by how
 * much. Every comparison goes through it: two builds of a model, two
 * commits, two engines.
 *
 * A block holds two visits. A visit measures both sides in fresh processes,
 * one after the other or in turns, the first one A first, the second one B
 * first: A B B A, so that a drift that is linear in time cancels. A
 * calibration beside each visit tells a disturbed machine; the whole block
 * is then measured again. Blocks are added until the interval of the ratio
 * decides, or a bound is reached. */
#ifndef ASSAY_HARNESS_PAIR_H
#define ASSAY_HARNESS_PAIR_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/compare.h"

enum { PAIR_MOST_BLOCKS = 15 };

typedef struct PairPlan {
    int least_blocks, most_blocks; /* 1 to PAIR_MOST_BLOCKS */
    double most_seconds; /* no block is begun later, the least apart */
} PairPlan;

typedef struct PairVisit {
    Samples a, b;
    /* Calibration in GFLOP/s: the lower mean of those beside the visit, and
     * the best stretch of it. */
    double lowest_gflops, best_gflops;
    json_t *report; /* what else was measured; may be NULL */
} PairVisit;

/* One visit, in fresh processes; `swapped`: B first. The memory of samples
 * must last as long as the Pair; `report` becomes its own. False when a
 * side failed: no more visits are made. */
typedef bool PairMeasure(void *user, bool swapped, PairVisit *visit);

typedef struct Pair {
    PairVisit visits[PAIR_MOST_BLOCKS][2];
    int blocks;    /* complete ones */
    int repeated;  /* measured again for a disturbance */
    int disturbed; /* that stayed so */
    bool failed;   /* a visit did */
    double gflops; /* best calibration of all */
    Ratio ratio;   /* 95 % interval */
    /* VERDICT_BROKEN without any block; inconclusive when more than half of
     * them stayed disturbed. */
    Verdict verdict;
} Pair;

void pair_run(const PairPlan *plan, PairMeasure *measure, void *user,
              Pair *pair);
void pair_free(Pair *pair);

/* The samples of a part of each side, such as of some kernels. */
typedef struct PairPart {
    Samples a, b;
} PairPart;
/* The ratio of a part that `get` finds in each visit's report. */
Ratio pair_part_ratio(const Pair *pair,
                      PairPart (*get)(void *user, const PairVisit *visit),
                      void *user, double level);

#endif
