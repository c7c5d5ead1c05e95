/* Evaluates nodes with the interpreter: what the tests of operators and of
 * conformance share. */
#ifndef ASSAY_SUITES_OPS_RUN_H
#define ASSAY_SUITES_OPS_RUN_H

#include "graph/graph.h"

/* Runs the node's loop program, or its definition under the naive schedule:
 * whichever it would be compiled from. in[i] is NULL where an input is left
 * out; out[i] is made in the arena. False when the node has neither or the
 * interpreter found a fault (in `diag`). */
bool ops_run_node(Arena *arena, Diag *diag, const Node *node,
                  const Array *const *in, Array **out);
/* The form that is asked for, of an operator that has both. */
bool ops_run_form(Arena *arena, Diag *diag, const Node *node, bool by_program,
                  const Array *const *in, Array **out);

#endif
