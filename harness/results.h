/* Results as JSON, their place on disk, and the table that is printed. */
#ifndef ASSAY_HARNESS_RESULTS_H
#define ASSAY_HARNESS_RESULTS_H

#include <jansson.h>
#include <stdio.h>

#include "harness/measure.h"

/* Version of the results' format: reports skip what they do not know. */
enum { RESULTS_FORMAT = 1 };

/* Everything about one `assay run`. */
json_t *results_json(Arena *arena, const MeasurePlan *plan, const char *config,
                     const json_t *machine, const json_t *peak,
                     ModelResult *models, int count);
/* Stores it as FOLDER/MACHINE/COMMIT-CONFIG-RUNID.json, beside the
 * machine's machine.json. Returns the path, or NULL with a line in
 * `error`. */
const char *results_store(Arena *arena, const char *folder,
                          const json_t *results, Str *error);
/* Whether the folder, made when missing, takes files. */
bool results_can_store(Arena *arena, const char *folder, Str *error);
/* The table for people. */
void results_print_table(Arena *arena, FILE *file, const ModelResult *models,
                         int count);

#endif
