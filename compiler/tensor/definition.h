/* Definition: a computation as tensor expressions over logical indices.
 *
 * Stages in order; each computes one or more buffers of the same shape:
 *     out[i, j] = value(i, j)                      no reduction axes
 *     out[i, j] = reduce over r of value(i, j, r)
 * A definition says nothing of loops, layout or target. */
#ifndef ASSAY_TENSOR_DEFINITION_H
#define ASSAY_TENSOR_DEFINITION_H

#include "base/diag.h"
#include "base/vec.h"
#include "tensor/expr.h"

enum { MAX_VALUES = 4 };

typedef struct Axis {
    const Var *var;
    int64_t extent;
    const Expr *limit; /* as Buffer.limit */
} Axis;

/* How partial results combine: a tuple of `count` values, each with its
 * start, and the combination as expressions over lhs (so far) and rhs (the
 * new one). Associative; not always commutative. */
typedef struct Reducer {
    const char *name; /* "sum" "prod" "max" "min", or "custom" */
    int count;
    const Expr *start[MAX_VALUES];
    const Var *lhs[MAX_VALUES], *rhs[MAX_VALUES];
    DType dtype[MAX_VALUES];
    const Expr *combine[MAX_VALUES];
} Reducer;

typedef struct Stage {
    const char *name; /* unique; that of its first buffer */
    int axis_count;
    Axis axis[MAX_RANK];
    int reduce_count;
    Axis reduce[MAX_RANK];
    const Reducer *reducer; /* NULL without reduction axes */
    int value_count;
    const Expr *value[MAX_VALUES];
    Buffer *out[MAX_VALUES];
} Stage;

typedef struct Definition {
    Arena *arena;
    const char *name;
    Vec(Buffer *) buffers; /* all: inputs, outputs, temporaries */
    Vec(Stage *) stages;   /* a stage comes after those it reads */
} Definition;

Definition *definition_new(Arena *arena, const char *name);
/* Names are made unique and fit for identifiers. */
Buffer *definition_add_buffer(Definition *def, const char *name,
                              BufferRole role, DType dtype, int rank,
                              const int64_t *dims);

/* Building a stage, in order:
 *     StageBuilder b;
 *     stage_begin(&b, def, out);           spatial axes from out's shape
 *     const Expr *k = stage_reduce(&b, extent, "k");
 *     stage_end_reduce(&b, "sum", value)  or  stage_end(&b, value)
 * b.index[i] is the expression of spatial axis i.
 *
 * Limits follow from the buffers: spatial axes have those of `out`. A
 * reduction axis, or an axis of an `is_inner` buffer, has the limit of the
 * dimension that its variable alone is the index of, in a read that is always
 * evaluated. */
typedef struct StageBuilder {
    Definition *def;
    Arena *arena;
    Stage *stage;
    const Expr *index[MAX_RANK];
} StageBuilder;

void stage_begin(StageBuilder *b, Definition *def, Buffer *out);
const Expr *stage_reduce(StageBuilder *b, int64_t extent, const char *name);
/* Over a dimension of a buffer, with its limit however it is read. */
const Expr *stage_reduce_over(StageBuilder *b, const Buffer *buffer, int axis,
                              const char *name);
void stage_end(StageBuilder *b, const Expr *value);
/* `name`: sum, prod, max or min, in the value's type. max and min start at
 * -inf / inf (or the type's bounds) and let NaN through. */
void stage_end_reduce(StageBuilder *b, const char *name, const Expr *value);
/* Several outputs, for tuple reducers: adds out[1..] of the same shape. */
void stage_end_tuple(StageBuilder *b, const Reducer *reducer,
                     Buffer *const *out, const Expr *const *value);
/* (value, index) of the first largest (smallest) or last, as ArgMax. */
const Reducer *reducer_arg(Arena *arena, DType value, bool is_max,
                           bool select_last);
const Reducer *reducer_simple(Arena *arena, const char *name, DType dtype);

/* The extent of a dimension as an expression: its limit or a number. */
const Expr *buffer_extent(Arena *arena, const Buffer *buffer, int axis);
Buffer *definition_find_buffer(const Definition *def, const char *name);
bool definition_has_limits(const Definition *def);
/* How many elements behind the last one of dimension `axis` a read of `stage`
 * gets at most, whatever the limits are; negative where it stays before it.
 * False when that cannot be told. */
bool stage_read_excess(Arena *arena, const Stage *stage, const Expr *read,
                       int axis, int64_t *excess);
/* The stage that writes `buffer`, NULL for inputs. */
Stage *definition_producer(const Definition *def, const Buffer *buffer);
/* Arithmetic work of one evaluation: floating multiplies and adds. */
double definition_flops(const Definition *def);
/* Bytes one evaluation must move at least: of each input what is read of it,
 * once, and every output. Layout and intermediate values do not count. */
double definition_bytes(const Definition *def);

void definition_print(Str *out, const Definition *def);
Definition *definition_parse(Arena *arena, Diag *diag, const char *text);
void definition_verify(const Definition *def); /* die() on a violation */

#endif
