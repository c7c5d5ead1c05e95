/* Simplification of index arithmetic (i64) under known variable ranges. */
#ifndef ASSAY_TENSOR_SIMPLIFY_H
#define ASSAY_TENSOR_SIMPLIFY_H

#include "base/vec.h"
#include "tensor/expr.h"

/* Loop variables in scope, outermost first: each runs from 0 to
 * extent - 1. */
typedef struct VarRange {
    const Var *var;
    int64_t extent;
} VarRange;

typedef struct Ranges {
    Arena *arena;
    Vec(VarRange) vars;
} Ranges;

/* Inclusive bounds. `known` is false when a value has none, such as one
 * read from memory. */
typedef struct Interval {
    int64_t min, max;
    bool known;
} Interval;

Interval interval_of(const Ranges *ranges, const Expr *x);
/* Sums of products with variables in loop order, outermost first, so that
 * code motion finds the invariant prefix; divisions and modulos that the
 * ranges decide are gone. */
const Expr *simplify_index(const Ranges *ranges, const Expr *x);
/* Decides comparisons and boolean operators where the ranges allow. */
const Expr *simplify_cond(const Ranges *ranges, const Expr *x);
/* What a variable is at most, as an expression; at least it is 0. */
typedef struct VarLast {
    const Var *var;
    const Expr *last;
} VarLast;
/* A number that `x` never exceeds, whatever the reads in it give; false when
 * none is found. */
bool simplify_most(Arena *arena, const Expr *x, const VarLast *vars, int count,
                   int64_t *most);
/* y - x when that is a constant. */
bool simplify_difference(const Ranges *ranges, const Expr *x, const Expr *y,
                         int64_t *difference);

#endif
