/* One model of `assay run`: compiled, checked, timed and scored in child
 * processes, so that a crash is a recorded result. */
#ifndef ASSAY_HARNESS_MEASURE_H
#define ASSAY_HARNESS_MEASURE_H

#include <jansson.h>

#include "harness/builds.h"
#include "harness/options.h"
#include "suites/suite.h"

enum { MAX_MODES = 8, MAX_REPORTS = 2 * PAIR_MOST_BLOCKS + 4 };

/* What a user's own labelled data are; both NULL: the suite model's. */
typedef struct LabelFiles {
    const char *images, *labels; /* .npy */
} LabelFiles;

typedef struct MeasurePlan {
    const char *modes[MAX_MODES];
    int mode_count;
    const char *const *compile_args; /* passed on; ends with NULL */
    bool quick;
    bool unscored; /* labelled data are not looked at */
    LabelFiles labels;
    BuildPlan build;
    const json_t *peak; /* report of `assay-run --peak`, or NULL */
    /* Told what is being done to which mode, for progress; may be NULL. */
    void (*on_phase)(void *user, const char *phase);
    void *user;
} MeasurePlan;

/* What labelled data say of a mode; all 0: it was not scored. */
typedef struct Accuracy {
    const char *name, *title; /* of the metric: "top1" and "top-1" */
    double value;             /* 0..1 */
    int examples;
    double agreement; /* with the first mode that was scored, 0..1 */
} Accuracy;

typedef struct ModeResult {
    const char *mode, *artifact;
    CaseStatus status;
    const char *reason; /* unless CASE_OK; or a note why it was not timed */
    double seconds;     /* that the case took so far */
    json_t *check;      /* row of `assay check` */
    json_t *passes;     /* compile time by pass */
    /* What each fresh process measured, as timing.h describes it. */
    json_t *reports[MAX_REPORTS];
    int report_count;
    Samples processes[MAX_REPORTS]; /* their whole runs */
    json_t *kernels, *steps, *high_water;
    /* Seconds, bytes, shares; NaN when not measured. */
    double compile, p50, p90, p99, first_run, load;
    double flops, kernel_calls; /* of one run */
    double arena_bytes, arena_bound, weight_bytes, code_bytes, peak_rss_bytes;
    Accuracy accuracy;
} ModeResult;

typedef struct ModelResult {
    const char *model; /* as asked for */
    const char *label; /* a file's name without its folder */
    ModeResult modes[MAX_MODES];
    int mode_count;
    bool has_comparison;
    Comparison comparison;      /* unfused with fused */
    double fma_gflops;          /* best calibration beside the measurements */
    const char *labels_missing; /* why there is no accuracy, or NULL */
    double seconds;
} ModelResult;

/* What results call it: a file's name without its folder. */
const char *model_label(const char *model);
/* The first fault of a case is the one to look at: others are dropped. */
void mode_fail(Arena *arena, ModeResult *mode, CaseStatus status,
               const char *reason);
/* A result whose cases are all `status`, for want of a measurement. */
void model_result_init(const char *model, const MeasurePlan *plan,
                       CaseStatus status, const char *reason,
                       ModelResult *result);
/* Measures one model; `work` is an empty folder. Never fails: what went
 * wrong is in the result. */
void measure_model(Arena *arena, const char *model, const MeasurePlan *plan,
                   const char *work, ModelResult *result);
void model_result_free(ModelResult *result);

#endif
