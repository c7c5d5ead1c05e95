/* Tuning: which schedules of a model's kernels are fastest on this machine,
 * by measuring them where they run.
 *
 * A build with other schedules runs in turns with the usual one in one
 * process, step by step: caches, weights and neighbours are those of a real
 * run, and the ratio of each kernel's times is free of what disturbs both. All
 * kernels that matter try their next schedule in one build. What is kept is
 * measured again, against the noise and against luck, and compared with the
 * reference. */
#ifndef ASSAY_HARNESS_TUNE_H
#define ASSAY_HARNESS_TUNE_H

#include <stdio.h>

#include "harness/child.h"
#include "harness/compare.h"
#include "harness/options.h"
#include "schedules/choices.h"

typedef struct TunePlan {
    const char *model;
    const CompileOptions *compile; /* its own --choices aside */
    const char *log;               /* the file to make or extend */
    int threads;                   /* 0: one a physical core */
    double budget;                 /* seconds to try schedules in, about */
    bool again;                    /* also what the log has a line for */
    bool quiet;                    /* no progress */
} TunePlan;

typedef struct TuneResult {
    int ways;       /* kinds of nodes with several algorithms */
    int other_ways; /* of these, faster by another than the usual one */
    int kernels;    /* that matter */
    int known;      /* of these, in the log before */
    int improved;   /* of the rest */
    int builds;     /* with other schedules, measured */
    Ratio total;    /* of whole runs, default over tuned; NaN: nothing new */
    double seconds;
} TuneResult;

enum { TUNE_BUDGET = 30 }; /* seconds */

/* $XDG_CACHE_HOME/assay/choices.log, or ~/.cache/assay/choices.log. NULL,
 * reported, when there is no such place. */
const char *tune_default_log(Arena *arena);
/* An exit code; faults are reported. The log is extended by what was found
 * even when that is that the usual is best. */
int tune_model(Arena *arena, const TunePlan *plan, TuneResult *result);
/* --tune of commands that compile: "quick"; false on anything else, reported.
 */
bool tune_take(const char *text, bool *tune);
/* Tunes a model before it is compiled: o->assay.choices, or the default
 * place, is the log, and o->assay.choices from then on. An exit code. */
int tune_first(Arena *arena, const char *model, CompileOptions *o, int threads,
               double budget);
/* One line for people. */
void tune_print(FILE *file, const TunePlan *plan, const TuneResult *result);

/* How many times faster b's steps are than a's, from `runs` runs in turns,
 * each row those of a step: by the lower quintiles of each step, as a
 * disturbance only ever makes a run longer. The interval holds 95 % of what
 * resampling the runs gives. Deterministic; NaN without runs. */
Ratio tune_ratio(Arena *arena, const double *const *a, const double *const *b,
                 int steps, int runs);
/* Adds rows to the log at `path`, made when missing: one at a time, however
 * many processes do. False, reported. */
bool tune_store(const char *path, const ChoiceRow *rows, int count);

#endif
