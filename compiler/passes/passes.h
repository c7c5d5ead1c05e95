/* Graph passes. A pass, its file, its dump flag and its test folder share
 * one word. The pipeline in pipeline.c is the readable list. */
#ifndef ASSAY_PASSES_PASSES_H
#define ASSAY_PASSES_PASSES_H

#include "graph/graph.h"
#include "targets/target.h"

typedef struct PassContext {
    Graph *graph;
    const Target *target;
    int opt_level; /* 0, 1, 2 */
    /* Evaluates a node whose inputs are all constants: values for each
     * output, in `arena`. The results do not depend on host features. */
    bool (*evaluate)(Arena *arena, const Graph *g, const Node *node,
                     const Array **outputs);
    const char *algorithm; /* from the options */
    /* For pass algorithm, see algorithm.h; or NULL. */
    struct AlgorithmChoices *choices;
} PassContext;

typedef struct Pass {
    const char *name;
    const char *about;
    int min_level; /* runs at this -O level and above */
    void (*run)(PassContext *context);
} Pass;

/* In the order they run, ending with a NULL name. */
extern const Pass pass_list[];

typedef struct PassOptions {
    int opt_level;
    const char *const *disabled; /* names, ends with NULL; may be NULL */
    const char *dump_after;      /* pass name or "all", or NULL */
    const char *stop_after;
    bool time_passes;
    bool verify;
    const char *const *no_fuse; /* node names, ends with NULL; may be NULL */
    const char *algorithm;      /* of pass algorithm; NULL: "auto" */
} PassOptions;

/* Time spent, for --time-passes and results. */
typedef struct PassTime {
    const char *name;
    double seconds;
    int nodes_before, nodes_after;
} PassTime;

/* Runs the list. `times` (may be NULL) needs room for pass_count(). */
bool passes_run(PassContext *context, const PassOptions *options,
                PassTime *times, int *time_count);
int pass_count(void);

void pass_infer(PassContext *c);     /* types and shapes of every tensor */
void pass_canonical(PassContext *c); /* Op.canonical: quantized layers */
/* Whether there is a node that it might rewrite. */
bool graph_has_canonical(const Graph *g);
void pass_slice(PassContext *c);      /* one node a part of a tensor */
void pass_strips(PassContext *c);     /* large results by rows */
void pass_reciprocal(PassContext *c); /* x / constant into a product */
void pass_simplify(PassContext *c);   /* identities, transposes, dropout */
void pass_fold(PassContext *c);       /* constant folding */
void pass_decompose(PassContext *c);  /* Op.decompose: batch norm to scale */
void pass_batchnorm(PassContext *c);  /* scale and shift into weights */
void pass_cse(PassContext *c);        /* common subexpressions */
void pass_dce(PassContext *c);        /* dead code */
void pass_merge(PassContext *c);      /* products of one operand */
void pass_algorithm(PassContext *c);  /* Op.algorithms: Winograd's tiles */
void pass_layout(PassContext *c);     /* a layout for every tensor */
void pass_fuse(PassContext *c);       /* groups */

#endif
