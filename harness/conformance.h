/* What conformance cases are expected to do, and reports of what they did. */
#ifndef ASSAY_HARNESS_CONFORMANCE_H
#define ASSAY_HARNESS_CONFORMANCE_H

#include <stdio.h>

#include "base/hash.h"
#include "base/vec.h"
#include "harness/validate.h"

/* Cases that are expected to fail: lines "NAME: reason"; '#' starts a
 * comment. All others must pass. */
typedef struct ExpectedList {
    Map reasons; /* by name */
    int count;
} ExpectedList;

bool expected_read(Arena *arena, const char *path, ExpectedList *list,
                   Str *error);
/* NULL: it must pass. */
const char *expected_reason(const ExpectedList *list, const char *name);

/* Names of cases, one a line; '#' starts a comment. */
typedef struct NameList {
    Map set; /* name -> itself */
    Vec(const char *) names;
} NameList;

bool names_read(Arena *arena, const char *path, NameList *list, Str *error);
bool names_have(const NameList *list, const char *name);

typedef struct CaseRow {
    const char *name;
    const char *folder; /* NULL: a list names it, but it is not there */
    const char *excuse; /* why it may fail, or NULL */
    ValidateResult result;
} CaseRow;

/* A failure that is not listed, or a listed one that passes. One that crashes
 * or does not end is never as listed. */
bool case_differs(const CaseRow *row);
/* "ok", "expected", "unexpected ok", "missing", or the status of a failure. */
const char *case_outcome(const CaseRow *row);

void conformance_print_table(Arena *arena, FILE *file, const CaseRow *rows,
                             int count, double seconds);
void conformance_print_json(FILE *file, const CaseRow *rows, int count,
                            double seconds);
void conformance_print_junit(FILE *file, const CaseRow *rows, int count,
                             double seconds);

#endif
