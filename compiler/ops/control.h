/* Control flow in the graph: nodes with bodies.
 *
 * OP_BRANCH: operand 0 is the condition, the others are what both bodies read
 * from outside. Body 0 is taken when the condition is true, else body 1; their
 * outputs are the node's.
 *
 * OP_LOOP: operands are the trip count, the condition (either may be left
 * out), `carried` values, and what the body reads from outside. The body's
 * inputs are the iteration's number, its condition, and the other operands;
 * its outputs are the next condition, the next carried values, and slices of
 * results that all iterations together make. The node's outputs are the last
 * carried values, then those results, the slices one after the other along a
 * new first axis. */
#ifndef ASSAY_OPS_CONTROL_H
#define ASSAY_OPS_CONTROL_H

#include "ops/op.h"

/* The node's operand that input `index` of a body stands for throughout; -1
 * for a loop's number, condition and carried values. */
int control_operand(const Node *node, int index);
/* Gives the inputs of the bodies the types of the operands; what is constant
 * outside is so inside. */
void control_bind(Node *node);

/* Of OP_LOOP. */
int loop_carried(const Node *node);
/* Whether the trip count alone decides: no condition, or one that stays
 * true. */
bool loop_is_counted(const Node *node);
/* The trip count where it is a constant, at least 0; -1: it is not, or there
 * is none. A condition that is false from the start makes it 0. */
int64_t loop_trips(const Node *node);
/* How many slices results of all iterations have: a number, what the trip
 * count is when it runs, or, where a condition decides as well, a name of the
 * node's own, which the loop has to count. */
Extent loop_slices(Arena *arena, const Node *node);

#endif
