/* Synthetic histories of results for tests of the report: what `assay run`
 * stores, with latencies that follow a stated course. */
#ifndef ASSAY_SUITES_UNIT_HISTORY_H
#define ASSAY_SUITES_UNIT_HISTORY_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"

/* How a case's latency goes over the runs. */
typedef enum Course {
    COURSE_STEADY,
    COURSE_STEP,        /* 12 % slower from `step_at` on; a kernel changes */
    COURSE_ENVIRONMENT, /* the same, but no kernel's code changes */
    COURSE_GAIN,        /* 10 % faster from `step_at` on */
    COURSE_DRIFT,       /* 15 % slower over the whole history */
} Course;

typedef struct HistoryCase {
    const char *model, *mode;
    double seconds; /* of the first run */
    Course course;
    double top1; /* NAN: no labelled data */
} HistoryCase;

typedef struct HistorySpec {
    const char *suite, *config;
    const HistoryCase *cases;
    int case_count;
    int runs, step_at;
    int processes, samples; /* samples of each process */
    int kernels;            /* of each case */
} HistorySpec;

/* Six models of every course, fused and unfused; step in the last run. */
HistorySpec history_example(int runs);
/* As many models as wanted, each fused and unfused. */
HistorySpec history_large(Arena *arena, int models, int runs);

/* Kernels alone, one of each course. */
HistorySpec history_kernels(int runs);

/* Three models against two engines, at one and two threads; the last row of
 * each run is not supported. */
HistorySpec history_peers(int runs);

/* The contents of run number `run`, from 0; deterministic. The caller may
 * change it, and owns it. */
json_t *history_run(const HistorySpec *spec, int run);
/* A case of a run by name; NULL: none. */
json_t *history_case(json_t *root, const char *name);
/* Stores all runs and machine.json in `folder`, which must exist. Names of
 * files are not in order of time. False with errno set. */
bool history_store(const HistorySpec *spec, const char *folder);
/* Stores one run under the name that it gets there. */
bool history_store_run(const HistorySpec *spec, int run, json_t *root,
                       const char *folder);

#endif
