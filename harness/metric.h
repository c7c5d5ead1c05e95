/* The metrics of a case: one row each, and its probe. Results, tables and
 * the page take names, units and directions from here. */
#ifndef ASSAY_HARNESS_METRIC_H
#define ASSAY_HARNESS_METRIC_H

#include "harness/measure.h"

typedef struct Metric {
    const char *name;   /* key in cases[].values */
    const char *title;  /* for people */
    const char *unit;   /* s, bytes, ratio, gflops, db, count or "" */
    const char *better; /* lower, higher, none */
    /* NaN: not measured. */
    double (*probe)(const ModelResult *model, const ModeResult *mode);
} Metric;

/* All of them; ends with a NULL name. */
const Metric *metrics(void);

#endif
