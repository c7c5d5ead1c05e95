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
/* Whether some operator has an algorithm of that name, or it is "auto";
 * otherwise a diagnostic that lists them. */
bool algorithm_check(Diag *diag, const OpTable *ops, const char *wanted);

#endif
