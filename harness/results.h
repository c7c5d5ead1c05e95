/* Results as JSON, and their place on disk: results/README.md. */
#ifndef ASSAY_HARNESS_RESULTS_H
#define ASSAY_HARNESS_RESULTS_H

#include <jansson.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/str.h"

struct ModelResult;

/* Version of the results' format: reports skip what they do not know. */
enum { RESULTS_SCHEMA = 2 };

/* What ran, where: the fields of `context`. */
typedef struct ResultsContext {
    const char *suite;  /* "models", "kernels" or "peers" */
    const char *target; /* NULL: native */
    int threads;
    bool quick;
    const json_t *machine; /* fingerprint_machine */
    const json_t *peak;    /* of `assay-run --peak`, or NULL */
} ResultsContext;

/* "native-t2-quick" */
const char *results_config(Arena *arena, const ResultsContext *context);
/* A document without cases yet. */
json_t *results_new(Arena *arena, const ResultsContext *context);
/* Adds a model's cases, rows and comparison. */
void results_add_model(json_t *results, const struct ModelResult *model);

/* FOLDER/MACHINE/COMMIT-CONFIG-RUNID.json, for one run. */
const char *results_path(Arena *arena, const char *folder,
                         const json_t *results);
/* Stores it there, beside the machine's machine.json: whole each time, so
 * that a run may store what it has so far. False with a line in `error`. */
bool results_store(Arena *arena, const char *path, const json_t *results,
                   Str *error);
/* Whether the folder, made when missing, takes files. */
bool results_can_store(Arena *arena, const char *folder, Str *error);
/* The newest stored run of that machine and configuration, or NULL. */
json_t *results_newest(Arena *arena, const char *folder,
                       const ResultsContext *context);

#endif
