/* Comparing two builds of one model, as a whole and group by group. */
#ifndef ASSAY_HARNESS_BUILDS_H
#define ASSAY_HARNESS_BUILDS_H

#include "base/arena.h"
#include "harness/launch.h"
#include "harness/pair.h"

typedef struct BuildPlan {
    int threads;      /* 0: the default */
    double min_time;  /* seconds of whole runs, a side and process */
    int profile_runs; /* at most; fewer when a run is long */
    PairPlan pair;
    ProcessLimits limits;
} BuildPlan;

/* Lengths for a trustworthy or a `quick` measurement, bounds on time and
 * memory, all physical cores. What is set already stays. */
void build_plan_init(BuildPlan *plan, bool quick);

typedef struct Build {
    const char *name;     /* of the side: "fused" */
    const char *artifact; /* folder */
    /* "outputs" that a checked run gave; others are wrong. NULL: unchecked,
     * the sides must still agree with themselves from run to run. */
    const json_t *outputs;
} Build;

typedef struct Comparison {
    const char *a, *b;
    Pair pair;          /* its reports hold both sides */
    const char *reason; /* why it failed, or NULL */
    CaseStatus status;
    /* How far from 1 the ratios of parts are whose machine code is the same
     * on both sides; NaN without such parts. */
    double noise;
    json_t *groups; /* rows of results/README.md's comparisons[].groups */
} Comparison;

/* One process that measures one build; NULL with a line in `failure`. */
json_t *build_measure(Arena *arena, const BuildPlan *plan, const Build *build,
                      double seconds_a_run, ChildEnd *end, Str *failure);
/* `seconds_a_run`: about what one run takes, for the length of profiles. */
void builds_compare(Arena *arena, const BuildPlan *plan, const Build *a,
                    const Build *b, double seconds_a_run,
                    Comparison *comparison);
void comparison_free(Comparison *comparison);
/* A row of results/README.md's `comparisons`. */
json_t *comparison_json(const char *model, const Comparison *comparison);
/* The whole runs that a report holds. */
Samples report_samples(Arena *arena, const json_t *report);

#endif
