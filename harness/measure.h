/* One model of `assay run`: compiled, checked, timed and scored in child
 * processes, so that a crash is a recorded result. */
#ifndef ASSAY_HARNESS_MEASURE_H
#define ASSAY_HARNESS_MEASURE_H

#include <jansson.h>

#include "harness/compare.h"
#include "harness/options.h"
#include "suites/suite.h"

enum { MAX_MODES = 8, MAX_PROCESSES = 32 };

/* What a user's own labelled data are; both NULL: the suite model's. */
typedef struct LabelFiles {
    const char *images, *labels; /* .npy */
} LabelFiles;

typedef struct MeasurePlan {
    const char *modes[MAX_MODES];
    int mode_count;
    const char *const *compile_args; /* passed on; ends with NULL */
    int threads;
    bool quick;
    LabelFiles labels;
} MeasurePlan;

typedef enum ModeStatus {
    MODE_OK,
    MODE_WRONG,  /* outputs or accuracy not as they must be */
    MODE_BROKEN, /* crashed, or ran out of time */
    MODE_REFUSED /* the model cannot be compiled: bad input */
} ModeStatus;

/* What labelled data say of a mode; all 0: it was not scored. */
typedef struct Accuracy {
    const char *name, *title; /* of the metric: "top1" and "top-1" */
    double value;             /* 0..1 */
    int examples;
    double agreement; /* with the first mode that was scored, 0..1 */
} Accuracy;

typedef struct ModeResult {
    const char *mode, *artifact;
    ModeStatus status;
    const char *reason; /* unless MODE_OK */
    double compile_seconds;
    json_t *check; /* row of `assay check` */
    Samples processes[MAX_PROCESSES];
    int process_count;
    double p50, p90, p99; /* seconds; NaN when not timed */
    double flops;         /* of one run */
    double peak_rss_kib, load_seconds;
    int64_t arena_bytes, arena_bound, weight_bytes, code_bytes;
    json_t *kernels, *steps;
    Accuracy accuracy;
} ModeResult;

typedef struct ModelResult {
    const char *model; /* as asked for */
    const char *label; /* a file's name without its folder */
    ModeResult modes[MAX_MODES];
    int mode_count;
    bool has_ratio;
    Ratio ratio; /* time unfused / time fused */
    int blocks, blocks_repeated;
    int blocks_disturbed;       /* that stayed so when measured again */
    double fma_gflops;          /* best calibration beside the measurements */
    const char *labels_missing; /* why there is no accuracy, or NULL */
    double seconds;
} ModelResult;

const char *mode_status_name(ModeStatus status);

/* Measures one model; `work` is an empty folder. Never fails: what went
 * wrong is in the result. */
void measure_model(Arena *arena, const char *model, const MeasurePlan *plan,
                   const char *work, ModelResult *result);

#endif
