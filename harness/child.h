/* Work in a process of its own, and what became of it: a crash there is a
 * recorded result here. */
#ifndef ASSAY_HARNESS_CHILD_H
#define ASSAY_HARNESS_CHILD_H

#include <jansson.h>

#include "base/process.h"
#include "base/str.h"

typedef enum CaseStatus {
    CASE_OK,
    CASE_FAILED_CHECK, /* outputs or accuracy not as they must be */
    CASE_CRASHED,
    CASE_TIMED_OUT,
    CASE_OUT_OF_MEMORY,
    CASE_REFUSED, /* bad input: it was never tried */
    CASE_SKIPPED,
    CASE_STATUS_COUNT
} CaseStatus;

/* "ok", "failed-check", "crashed", ... */
const char *case_status_name(CaseStatus status);
/* The status of that name; CASE_CRASHED for any other text, or NULL. */
CaseStatus case_status_parse(const char *name);
/* What a finished child stands for, by how it ended and what it wrote to
 * standard error. */
CaseStatus case_status_of(const ProcessResult *result, const char *text);

/* Why it ended so, with what it wrote to standard error. */
void case_describe(Str *reason, const ProcessResult *result, const char *text);

/* How a child ended. */
typedef struct ChildEnd {
    CaseStatus status;
    int exit_code; /* -1 when a signal ended it, or it never started */
    double seconds;
} ChildEnd;

/* Runs argv[0] with its standard output parsed as JSON. NULL without a
 * report: `failure` says why, with what it wrote to standard error. A report
 * that comes with exit code 1 (a check failed) is given out. `end` may be
 * NULL. */
json_t *child_json(const char *const *argv, const ProcessLimits *limits,
                   ChildEnd *end, Str *failure);

#endif
