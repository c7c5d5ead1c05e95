/* Evaluation of a node at compile time, for constant folding. */
#ifndef ASSAY_EVALUATE_H
#define ASSAY_EVALUATE_H

#include "graph/graph.h"

/* PassContext.evaluate: runs the node's definition or program, small ones through the
 * interpreter, large ones compiled for the host's baseline. */
bool evaluate_node(Arena *arena, const Graph *g, const Node *node,
                   const Array **outputs);

#endif
