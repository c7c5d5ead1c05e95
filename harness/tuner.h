/* The inside of tuning, shared by its files. */
#ifndef ASSAY_HARNESS_TUNER_H
#define ASSAY_HARNESS_TUNER_H

#include "harness/builds.h"
#include "harness/tune.h"
#include "program/program.h"

/* A kernel that matters. */
typedef struct Tuned {
    int schedule; /* in Program.schedules */
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

typedef struct Tune {
    Arena *arena;
    const TunePlan *plan;
    TuneResult *result;
    AssayCompiler *compiler;
    const Program *program; /* the usual one */
    const ChoiceLog *known; /* the log before; may be NULL */
    const char *work;       /* folder */
    BuildPlan limits;
    Vec(Tuned) kernels;
    double start, round_seconds;
    int runs, threads;
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

/* Builds the usual schedules, into the folder "usual". Where these and those
 * below are false, t->why says it. */
bool tuner_build_usual(Tune *t);
/* Into "trial": by the log as it was, with the best of each kernel, or with
 * its trial where is_trying. */
bool tuner_build_trial(Tune *t);
/* Runs the usual build and the trial (or the usual one alone) in turns, in
 * `processes` processes. */
bool tuner_measure(Tune *t, bool with_trial, int processes, Measured *m);
/* The trial's outputs agree with the reference. */
bool tuner_check(Tune *t);

/* Seconds of a kernel's steps in one run, of `seconds` in `m`; of all steps
 * with schedule -1. */
double tuner_seconds(const Tune *t, const Measured *m, const double *seconds,
                     int schedule);
/* The usual ones' time over the trial's. */
Ratio tuner_ratio(const Tune *t, const Measured *m, int schedule);

/* Fills the list of what to try for a kernel. */
void tuner_add_moves(Tune *t, Tuned *k);
/* The next of it whose loops were not tried yet becomes `trial`; false when
 * there is none. */
bool tuner_next_trial(Tune *t, Tuned *k);
/* The loops of the usual schedule need no trial. */
void tuner_skip_usual(Tune *t, Tuned *k);

#endif
