/* Starting assay, assay-run, or for artifacts of other machines an emulator,
 * in a process of its own. */
#ifndef ASSAY_HARNESS_LAUNCH_H
#define ASSAY_HARNESS_LAUNCH_H

#include <jansson.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "harness/child.h"
#include "runtime/runtime.h"

/* The words of a command line. */
typedef Vec(const char *) Words;

/* This program's `assay COMMAND MODEL ARGS...`, for more words to come; `args`
 * ends with NULL, or is NULL. */
Words launch_words(Arena *arena, const char *command, const char *model,
                   const char *const *args);

typedef struct Launch {
    const char *artifact;
    const char *const *inputs; /* NAME=FILE */
    int input_count;
    int threads;        /* 0: the default */
    const char *output; /* folder, or NULL */
    const char *taps;   /* folder, or NULL */
    bool check_repeat;
    double min_time; /* above 0: measure for that long ... */
    int repeat;      /* ... or this many runs when above 0 */
    int profile;     /* runs; 0: none */
    /* Another artifact of the same model, measured in turns with it in the
     * same process; NULL: none. */
    const char *pair;
    ProcessLimits limits;
} Launch;

/* The runner's report, as child_json gives it. */
json_t *launch_runner(Arena *arena, const Launch *launch, ChildEnd *end,
                      Str *failure);
/* FMA and bandwidth peak, Google Benchmark's context: the report of
 * `assay-run --peak`. */
json_t *launch_peak(Arena *arena, int threads, Str *failure);
/* A short FMA run, to tell a disturbed machine: "fma_gflops" of its best
 * stretch, "fma_mean" of all. */
json_t *launch_calibrate(Arena *arena, int threads, Str *failure);

#endif
