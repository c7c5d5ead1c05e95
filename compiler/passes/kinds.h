/* What kinds of nodes fusion knows, told from traits and definitions. */
#ifndef ASSAY_PASSES_KINDS_H
#define ASSAY_PASSES_KINDS_H

#include "passes/util.h"

/* May take part in fusion at all: pure, one result, not excluded. */
bool kind_is_fusible(const Node *node);
/* One value a point of the result's shape, from values at that point. */
bool kind_is_elementwise(const Node *node);
/* Moves elements without computing: each result element is one operand
 * element, and no operand element is wanted more often than once on
 * average. */
bool kind_is_move(Arena *scratch, const Node *node);
/* A sum or the like over whole rows: each input element is read once, and
 * the reduced axes stay with extent 1, so that results broadcast back. */
bool kind_is_row_reduction(Arena *scratch, const Node *node);
/* A single product summed over one axis, with operands read as they are. */
bool kind_is_product(Arena *scratch, const Node *node);
/* Rescales whole rows: the result has the shape of the operand, and depends
 * on the elements along one axis alone (softmax). That axis, or -1. */
int kind_rescaled_axis(Arena *scratch, const Node *node);
/* A weighted sum that reads each element of operand 0 once. */
bool kind_reads_once(Arena *scratch, const Node *node);

/* What one element of a node's result costs. */
typedef struct Cost {
    double operations;
    bool is_costly; /* division or an elementary function among them */
} Cost;

/* `inlined` gives the cost of an operand that is computed in place, NULL for
 * one that is read. */
Cost kind_cost(Arena *scratch, const Node *node,
               const Cost *(*inlined)(void *user, const Node *node,
                                      int operand),
               void *user);

#endif
