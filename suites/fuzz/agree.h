/* What every build of a graph has to give, and how far rounding may take it.
 *
 * The reference runs on the graph as it is, then again with every rounding
 * redone: operands and results of each operator are moved by some units in
 * their last place, all up, all down, or at random. What moves an output in
 * those runs may move it in a build; what does not (the sums of small
 * multiples of a power of two, comparisons, moves, integers) must be exact.
 * So no operator needs a bound of its own, sums that cancel and steps that
 * flip included. */
#ifndef ASSAY_SUITES_FUZZ_AGREE_H
#define ASSAY_SUITES_FUZZ_AGREE_H

#include "graph/graph.h"

typedef struct Agreement {
    Arena *arena;
    const Graph *graph;
    Array *const *inputs;
    const Array **wanted; /* by output */
    /* Absolute, by output and element; infinite: anything. NULL: the output's
     * shape is not certain. */
    double **room;
    int runs; /* so far, the exact one aside */
} Agreement;

/* False when the reference refuses the graph, or values are so large that
 * nothing can be said of them. */
bool agree_start(Agreement *a, Arena *arena, const Graph *g,
                 Array *const *inputs);
/* Output `index` of some build. What seems wrong is looked at again with more
 * runs of the reference; then `why` gets a line. */
bool agree_check(Agreement *a, int index, const Array *got, Str *why);

#endif
