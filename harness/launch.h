/* Starting assay-run, or for artifacts of other machines an emulator, in a
 * process of its own. */
#ifndef ASSAY_HARNESS_LAUNCH_H
#define ASSAY_HARNESS_LAUNCH_H

#include <jansson.h>

#include "base/arena.h"
#include "base/str.h"
#include "runtime/runtime.h"

typedef struct Launch {
    const char *artifact;
    const char *const *inputs; /* NAME=FILE */
    int input_count;
    int threads;        /* 0: the default */
    const char *output; /* folder, or NULL */
    const char *taps;   /* folder, or NULL */
    bool check_twice;
    double min_time; /* above 0: measure for that long ... */
    int repeat;      /* ... or this many runs when above 0 */
    int profile;     /* runs; 0: none */
    double timeout;  /* seconds; 0: none */
} Launch;

/* The runner's report, or NULL with a line in `failure`. A report that
 * comes with exit code 1 (a check failed) is given out. `*code` gets the
 * exit code, -1 when a signal ended it. */
json_t *launch_runner(Arena *arena, const Launch *launch, int *code,
                      Str *failure);
/* FMA and bandwidth peak: the report of `assay-run --peak`. */
json_t *launch_peak(Arena *arena, int threads, Str *failure);

#endif
