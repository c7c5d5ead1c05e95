/* How good a model's outputs are by labels. One row a metric. */
#ifndef ASSAY_HARNESS_SCORE_H
#define ASSAY_HARNESS_SCORE_H

#include "base/str.h"
#include "harness/detect.h"
#include "suites/suite.h"

/* Labelled examples, without their inputs. */
typedef struct Labels {
    const Array *values;  /* as SuiteMetric says */
    int count;            /* examples */
    double width, height; /* of an image in pixels; for METRIC_MAP50 */
} Labels;

/* What a build of a model says of each example. */
typedef struct Predictions {
    int64_t *classes; /* METRIC_TOP1: the best one, -1 for all NaN */
    Detections found; /* METRIC_MAP50 */
    int kinds;
} Predictions;

typedef struct Score {
    const char *name;  /* field of a result, "top1" */
    const char *title; /* "top-1" */
    /* From the model's output for all examples. False with a line in `why`
     * when its shape is not what the metric needs. */
    bool (*read)(Arena *arena, const Labels *l, const Array *output,
                 Predictions *p, Str *why);
    /* 0..1 */
    double (*accuracy)(Arena *arena, const Labels *l, const Predictions *p);
    /* How much two builds say the same, 0..1. */
    double (*agreement)(Arena *arena, const Labels *l, const Predictions *a,
                        const Predictions *b);
} Score;

const Score *score_metric(SuiteMetric metric);

#endif
