/* Extent: the size of one axis, an expression over named dimensions with
 * an upper bound. Constants are the usual case and cost nothing. */
#ifndef ASSAY_GRAPH_EXTENT_H
#define ASSAY_GRAPH_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

typedef enum DimKind {
    DIM_CONST,
    DIM_NAME,
    DIM_ADD,
    DIM_SUB,
    DIM_MUL,
    DIM_DIV /* floor */
} DimKind;

typedef struct DimExpr DimExpr;

typedef struct Extent {
    int64_t value;       /* the constant, or the upper bound; -1: none known */
    const DimExpr *expr; /* NULL for a constant */
} Extent;

struct DimExpr {
    DimKind kind;
    int64_t value;    /* DIM_CONST */
    const char *name; /* DIM_NAME */
    Extent a, b;
};

Extent extent_const(int64_t value);
/* A named dimension; `upper` is -1 when it has no bound yet. */
Extent extent_named(Arena *arena, const char *name, int64_t upper);
bool extent_is_const(Extent extent);
Extent extent_add(Arena *arena, Extent a, Extent b);
Extent extent_sub(Arena *arena, Extent a, Extent b);
Extent extent_mul(Arena *arena, Extent a, Extent b);
Extent extent_div(Arena *arena, Extent a, Extent b); /* floor */
bool extent_equal(Extent a, Extent b);
void extent_print(Str *out, Extent extent); /* "N", "(N*49)", "64" */
/* Reads the printed form and moves *text past it. */
bool extent_parse(Arena *arena, const char **text, Extent *extent);

#endif
