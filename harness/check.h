/* Comparing with the reference: evaluates the source graph node by node
 * with the oracles of reference/, and measures the difference. */
#ifndef ASSAY_HARNESS_CHECK_H
#define ASSAY_HARNESS_CHECK_H

#include "graph/graph.h"
#include "reference/reference.h"

/* |a - b| <= atol * rms(b) + rtol * |b| for every element. */
typedef struct Tolerance {
    double atol, rtol;
} Tolerance;

extern const Tolerance tolerance_f32; /* 1e-4, 1e-3 */

typedef struct Difference {
    bool agrees;
    double max_error;   /* largest |a - b|, in units of rms(b) */
    double max_abs;     /* largest |a - b| */
    double max_rel;     /* largest |a - b| / |b|, where |b| > rms(b) / 100 */
    double max_excess;  /* largest |a - b| over what is allowed */
    double sqnr;        /* decibel; infinite when equal */
    double rms;         /* of the reference */
    int64_t worst;      /* element with the largest excess */
    double got, wanted; /* there */
} Difference;

/* Same type and shape are the caller's business. NaN agrees with NaN, an
 * infinity with itself; integers and bool must be equal. */
Difference compare_arrays(const Array *got, const Array *wanted,
                          Tolerance tolerance);

/* The values of all tensors of a graph, by Tensor.id; NULL where there is
 * none. */
typedef struct ReferenceValues {
    const Array **by_id;
    int count;
} ReferenceValues;

/* `inputs` in the order of g->inputs; `own` are lists of a user's oracles,
 * ending with NULL, or NULL. False with a line in `error` that names the
 * node whose oracle is missing or refused. */
bool reference_run(Arena *arena, const Graph *g, Array *const *inputs,
                   const RefOp *const *own, ReferenceValues *values,
                   Str *error);

/* The same with an evaluator of one's own. */
typedef struct ReferenceOptions {
    const RefOp *const *own;
    /* In place of reference_eval; called for every node, in order, those of
     * bodies as often as they run. NULL: reference_eval. */
    bool (*eval)(void *user, RefCall *call);
    void *user;
} ReferenceOptions;
bool reference_run_with(Arena *arena, const Graph *g, Array *const *inputs,
                        const ReferenceOptions *options,
                        ReferenceValues *values, Str *error);

#endif
