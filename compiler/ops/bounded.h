/* Numbers that a run brings and shapes depend on. */
#ifndef ASSAY_OPS_BOUNDED_H
#define ASSAY_OPS_BOUNDED_H

#include "ops/op.h"

/* Operands of the node that its type rule asked for and that are not known,
 * cut to what is declared of them, or to what the node itself allows: then
 * their elements are named dimensions. False where there is nothing to do. */
bool ops_bound_operands(Graph *g, Node *node);
/* The operand is the result of such a node. */
bool operand_is_bounded(const Node *node, int index);
/* What element `i` of the result of such a node is. */
Extent bounded_element(Arena *arena, const Node *node, int64_t i);

#endif
