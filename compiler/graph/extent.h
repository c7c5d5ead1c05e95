/* Extent: the size of one axis, an expression over named dimensions with
 * an upper bound. Constants are the usual case and cost nothing. A name that
 * has a bound is a number that is known when the model runs. */
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
    DIM_DIV, /* floor */
    DIM_MIN,
    DIM_MAX
} DimKind;

typedef struct DimExpr DimExpr;

typedef struct Extent {
    int64_t value;       /* the constant, or the upper bound; -1: none known */
    const DimExpr *expr; /* NULL for a constant */
} Extent;

struct DimExpr {
    DimKind kind;
    int64_t value;    /* DIM_NAME: the lower bound */
    const char *name; /* DIM_NAME */
    Extent a, b;
};

Extent extent_const(int64_t value);
/* A named dimension; `upper` is -1 when it has no bound yet. */
Extent extent_named(Arena *arena, const char *name, int64_t upper);
Extent extent_ranged(Arena *arena, const char *name, int64_t lower,
                     int64_t upper);
bool extent_is_const(Extent extent);
Extent extent_add(Arena *arena, Extent a, Extent b);
Extent extent_sub(Arena *arena, Extent a, Extent b);
Extent extent_mul(Arena *arena, Extent a, Extent b);
Extent extent_div(Arena *arena, Extent a, Extent b); /* floor */
Extent extent_min(Arena *arena, Extent a, Extent b);
Extent extent_max(Arena *arena, Extent a, Extent b);
bool extent_equal(Extent a, Extent b);
/* A value that is never less; extents themselves are not negative, what they
 * are computed from may be. */
int64_t extent_lower(Extent extent);

typedef struct ExtentValue {
    const char *name;
    int64_t value;
} ExtentValue;
/* The number where the names have these values. A name that is not listed
 * counts as its upper bound; saturates. */
int64_t extent_evaluate(Extent extent, const ExtentValue *values, int count);
/* The same expression over other extents of the same names: with their
 * bounds. A name that is not listed stays. */
Extent extent_rebind(Arena *arena, Extent extent, const Extent *names,
                     int count);

/* "N", "(N*49)", "64", "1<=N<=8", "min(N,8)" */
void extent_print(Str *out, Extent extent);
/* The same without the bounds of names: for people and manifests. */
void extent_print_plain(Str *out, Extent extent);
/* Reads the printed form and moves *text past it. */
bool extent_parse(Arena *arena, const char **text, Extent *extent);

#endif
