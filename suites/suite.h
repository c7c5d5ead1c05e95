/* The suite's models. One file a model in models/, one line in models.c. */
#ifndef ASSAY_SUITES_SUITE_H
#define ASSAY_SUITES_SUITE_H

#include "graph/graph.h"

/* What `NAME@192,width=0.75,batch=4,seed=2` sets; 0 in a model's defaults
 * means that the model has no such parameter. */
typedef struct SuiteParams {
    int resolution; /* height and width of the image */
    double width;   /* channels, times this */
    int batch;
    int64_t seed; /* of the weights */
} SuiteParams;

/* What labels are, and how outputs are scored by them. */
typedef enum SuiteMetric {
    METRIC_TOP1, /* labels i64 [n]: the class of each example */
    /* Labels f32 [boxes, SUITE_BOX], in the order of the examples: example,
     * class, x0, y0, x1, y1 in pixels. The model's output is the cells that
     * detect_decode reads. */
    METRIC_MAP50
} SuiteMetric;

enum { SUITE_BOX = 6 };

/* Labelled inputs for a model's only input. */
typedef struct SuiteData {
    SuiteMetric metric;
    /* The first `limit` examples: inputs f32 [n, ...] and labels. False with
     * a line in `why` when the data is not on this machine. */
    bool (*load)(Arena *arena, int limit, Array **inputs, Array **labels,
                 Str *why);
    int count;      /* examples there are */
    double minimum; /* what the trained weights must reach on all, 0..1 */
} SuiteData;

typedef struct SuiteModel {
    const char *name, *about;
    /* Trained weights, a file in suites/data, whose dimension N is the
     * batch; or NULL and `build`. */
    const char *onnx;
    /* Fills an empty graph; faults go to g->diag. */
    bool (*build)(Graph *g, const SuiteParams *params);
    SuiteParams defaults;
    int step;              /* the resolution is a multiple of it; 0: any */
    const SuiteData *data; /* NULL: none */
} SuiteModel;

/* All models; ends with NULL. */
const SuiteModel *const *suite_models(void);
/* Parses NAME or NAME@PARAMS. NULL with a line in `error` that says what is
 * wrong and what there is. */
const SuiteModel *suite_find(const char *text, SuiteParams *params,
                             Str *error);
/* True when `text` is meant as a suite model: no file name. */
bool suite_is_name(const char *text);

#endif
