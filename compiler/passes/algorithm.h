/* The choice between algorithms of a node. */
#ifndef ASSAY_PASSES_ALGORITHM_H
#define ASSAY_PASSES_ALGORITHM_H

#include "ops/op.h"
#include "passes/passes.h"

/* What to compute the node by, one of node->op->algorithms (NULL where that
 * is). `wanted` is the name of one, which is taken where it applies; NULL or
 * "auto": the cheapest on the target. */
const OpAlgorithm *algorithm_choose(const Target *target, const Node *node,
                                    const char *wanted);
enum { MAX_ALGORITHMS = 8 };

/* A node with a choice, as the pass met it. */
typedef struct AlgorithmNode {
    uint64_t key; /* hash of operator, attributes and types */
    /* For people: "conv_1x64x56x56", its element type, its operand's shape. */
    const char *kernel, *type, *in;
    const char *const *sources; /* names in the model; source_count */
    int source_count;
    const char *names[MAX_ALGORITHMS]; /* that apply */
    int name_count;
    const char *taken;
} AlgorithmNode;

/* What a log of choices has to say. */
typedef struct AlgorithmChoices {
    /* The name that it has for a key, and the line for diagnostics; NULL:
     * none. */
    const char *(*find)(void *user, uint64_t key, const char **where);
    void *user;
    /* Filled by the pass, in the graph's arena: nodes of two ways or more. */
    Vec(AlgorithmNode) nodes;
} AlgorithmChoices;

/* Whether some operator has an algorithm of that name, or it is "auto";
 * otherwise a diagnostic that lists them. */
bool algorithm_check(Diag *diag, const OpTable *ops, const char *wanted);

#endif
