/* The inside of tuning, shared by its files. */
#ifndef ASSAY_HARNESS_TUNER_H
#define ASSAY_HARNESS_TUNER_H

#include "harness/builds.h"
#include "harness/tune.h"
#include "passes/algorithm.h"
#include "program/program.h"

/* A kernel that matters. */
typedef struct Tuned {
    int schedule; /* in Program.schedules */
    bool *is_of;  /* by step: calls it */
    const ProgramSchedule *about;
    double seconds; /* of one run */
    Vec(Choice) moves;
    int next_move;
    Vec(uint64_t) tried; /* hashes of loops */
    /* Of the search, and what is being tried; all knobs of the schedule. */
    Choice best, trial;
    double best_ratio;
    bool has_best, is_trying;
    Ratio ratio; /* usual over `best`, as it was last measured */
    double usual_seconds, best_seconds;
} Tuned;

/* Nodes alike that can be computed in several ways. */
typedef struct Way {
    const AlgorithmNode *about; /* the first of them */
    ChoiceRow row;
    bool *is_of;              /* by step: computes one of them */
    const char *trial, *best; /* names; NULL: none, and the usual */
    double best_ratio;
    Ratio ratio; /* usual over `best` */
    double usual_seconds, best_seconds;
} Way;

typedef struct Tune {
    Arena *arena;
    const TunePlan *plan;
    TuneResult *result;
    AssayCompiler *compiler;
    const Program *program; /* of that build */
    const ChoiceLog *known; /* the log before; may be NULL */
    const char *work;       /* folder */
    const char *base;       /* the build to compare with: one of those below */
    BuildPlan limits;
    Vec(Tuned) kernels;
    Vec(Way) ways;
    double start, round_seconds;
    int runs;
    int threads;     /* that builds are measured with; 0: the default */
    int own_threads; /* with which choices are made, as the runner says */
    const char *why; /* the last build or measurement failed */
} Tune;

/* What is measured of a pair of builds, run by run. */
typedef struct Measured {
    int runs, steps;
    double *usual, *other; /* [step][run] */
} Measured;

/* Progress: what is being done now. */
void tuner_say(const Tune *t, const char *text);
/* Clears it, before something else is printed. */
void tuner_say_end(const Tune *t);

/* Folders of builds. */
extern const char tuner_default[]; /* nothing chosen */
extern const char tuner_usual[];   /* the best algorithms, usual schedules */
extern const char tuner_trial[];   /* what is tried */

/* The log that such a build follows: of algorithms those of the log before,
 * and the best so far. For the trial also what is being tried, and schedules:
 * those of the log before, and the best so far, or a kernel's trial where
 * is_trying. NULL where it cannot be written. Where this and those below fail,
 * t->why says it. */
const char *tuner_choices(Tune *t, const char *folder);
/* Builds into a folder by that log. */
bool tuner_build(Tune *t, const char *folder);
/* Runs build `a` and build `b` (or NULL: a alone) in turns, in `processes`
 * processes. */
bool tuner_measure(Tune *t, const char *a, const char *b, int processes,
                   Measured *m);
/* A build's outputs agree with the reference. */
bool tuner_check(Tune *t, const char *folder);

/* Seconds of some steps in one run, of `seconds` in `m`; is_of NULL: of all.
 */
double tuner_seconds(const Tune *t, const Measured *m, const double *seconds,
                     const bool *is_of);
/* The first build's time over the second one's. */
Ratio tuner_ratio(const Tune *t, const Measured *m, const bool *is_of);

/* Finds the best algorithms from what was measured of the default build. When
 * there are better ones, or the log had some, they become t->base and
 * t->program; false when that fails. */
bool tuner_choose_ways(Tune *t, const Measured *m);

/* Fills the list of what to try for a kernel. */
void tuner_add_moves(Tune *t, Tuned *k);
/* The next of it whose loops were not tried yet becomes `trial`; false when
 * there is none. */
bool tuner_next_trial(Tune *t, Tuned *k);
/* The loops of the usual schedule need no trial. */
void tuner_skip_usual(Tune *t, Tuned *k);

#endif
