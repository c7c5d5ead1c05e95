/* What a history keeps of every stored run: the numbers of each case. */
#ifndef ASSAY_REPORTS_DATA_H
#define ASSAY_REPORTS_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"

typedef enum Better { BETTER_NONE, BETTER_LOWER, BETTER_HIGHER } Better;

/* A row of the files' `metrics`; the newest file's title and unit hold. */
typedef struct Metric {
    const char *name, *title, *unit;
    Better better;
    int64_t time; /* of the run that it is from */
} Metric;

/* One case in one run. */
typedef struct Record {
    const char *status, *reason;
    const double *values; /* by metric, NAN for none */
    int value_count;      /* metrics known when it was read */
    double p10, p90;      /* of all latency samples; NAN without */
} Record;

typedef struct Case {
    const char *name, *model, *mode; /* MODEL/MODE */
} Case;

/* One stored file. */
typedef struct Run {
    const char *path, *commit;
    bool dirty;
    int64_t committed, time; /* seconds since 1970; 0: unknown */
    uint64_t machine;        /* hash of its fingerprint */
    /* Models that it was to measure; -1: it does not say, hence all. */
    const char **requested;
    int requested_count;
    const char **modes; /* the same of modes */
    int mode_count;
    const Record **records; /* by case; NULL: not in this run */
    int record_count;       /* cases known when it was read */
} Run;

/* Runs that compare with each other: one machine, configuration and suite,
 * in order of commit time, then of time. */
typedef struct History {
    const char *machine; /* the folder's name */
    const char *config, *suite;
    Vec(Run) runs;
    Vec(Case) cases; /* those of the newest run first, in its order */
    Map case_numbers;
} History;

typedef struct ReportData {
    Vec(Metric) metrics;
    Map metric_numbers;
    Vec(History *) histories; /* by machine, config, suite */
} ReportData;

/* Reads FOLDER/MACHINE/(all).json into memory of `arena`. Faults become lines
 * of `notes`, and what they concern is left out. False with a line in
 * `error` when nothing is left. */
bool data_read(Arena *arena, const char *folder, ReportData *data, Str *notes,
               Str *error);

/* -1: none of that name. */
int data_metric(const ReportData *data, const char *name);
const Record *data_record(const History *h, int run, int c);
/* NAN for a metric of -1, a missing case or value. */
double data_value(const History *h, int run, int c, int metric);
bool record_is_ok(const Record *record);
/* Whether a run was to measure the case at all. */
bool run_requested(const Run *run, const Case *c);
/* The newest run; histories have at least one. */
int history_newest(const History *h);

#endif
