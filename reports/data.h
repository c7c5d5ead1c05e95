/* Stored results in memory. */
#ifndef ASSAY_REPORTS_DATA_H
#define ASSAY_REPORTS_DATA_H

#include <jansson.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

/* One stored file. */
typedef struct ReportRun {
    json_t *root;
    const char *machine; /* the folder's name */
    const char *config, *commit, *time;
} ReportRun;

/* Runs that compare with each other: one machine, one configuration, in
 * order of time. */
typedef struct Series {
    const char *machine, *config;
    Vec(ReportRun) runs;
    Vec(const char *) models; /* in order of first appearance */
} Series;

typedef struct ReportData {
    Vec(Series) series;
} ReportData;

/* Memory of `arena`; the JSON values live until data_free. */
bool data_read(Arena *arena, const char *folder, ReportData *data, Str *notes,
               Str *error);
void data_free(ReportData *data);

/* The row of a model and mode in a run, or NULL. */
const json_t *data_find_row(const ReportRun *run, const char *model,
                            const char *mode);
/* Fused over unfused of a model in a run, or NULL. */
const json_t *data_find_ratio(const ReportRun *run, const char *model);
/* A number of a row, NaN when absent or null. */
double data_number(const json_t *row, const char *key);
const char *data_text(const json_t *row, const char *key);

#endif
