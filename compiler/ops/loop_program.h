/* Building the loops of an operator that no tensor expression can say: what
 * it writes, or how often, depends on values (Op.program in ops/op.h).
 *
 * Statements are added in order to the innermost open loop or condition:
 *     const Expr *i = loop_for(c, LOOP_SERIAL, "i", n);
 *     loop_store(c, out, i, loop_load(c, in, i));
 *     loop_end(c);
 * Every buffer is row-major and an offset counts its elements. A parallel
 * loop is outermost; what its iterations write must not overlap. There is no
 * way out of a loop but its end: `loop_if` skips what is left to do. */
#ifndef ASSAY_OPS_LOOP_PROGRAM_H
#define ASSAY_OPS_LOOP_PROGRAM_H

#include "ops/op.h"
#include "tensor/loops.h"

enum { MAX_OPEN_LOOPS = 24 };

struct LoopContext {
    Arena *arena;
    Kernel *kernel;
    const Node *node;
    /* NULL where an operand or result is left out. Constant operands that are
     * needed as numbers are in node->inputs[i]. */
    Buffer *in[MAX_OP_INPUTS];
    Buffer *out[MAX_OP_OUTPUTS];
    /* Extents that are known at run time only; NULL where there are none. A
     * buffer has their upper bounds, by which its offsets go. */
    const Graph *graph;
    Buffer *extents;
    Stmt *open[MAX_OPEN_LOOPS]; /* open[depth] takes the next statement */
    int depth;
    int temps; /* made so far: names are unique */
};

/* Opens a loop from 0 to extent - 1 and returns its variable. */
const Expr *loop_for(LoopContext *c, LoopKind kind, const char *name,
                     int64_t extent);
/* The same up to an extent of the node's types. */
const Expr *loop_for_extent(LoopContext *c, LoopKind kind, const char *name,
                            Extent extent);
/* Opens loops over a type's dimensions in order, but not `skip` (-1: none);
 * index[i] is where they are in dimension i. The outermost runs in parallel
 * if it is one of the first `parallel`. Closed by loop_end_nest. */
void loop_nest(LoopContext *c, int parallel, const TensorType *type, int skip,
               const Expr **index);
void loop_end_nest(LoopContext *c, const TensorType *type, int skip);
/* An extent of the node's types. */
const Expr *loop_extent(LoopContext *c, Extent extent);
/* Says how large an extent is that the type rule made up: a name of its own
 * with an upper bound (infer_counted). Kernels that run later see it. Does
 * nothing where the extent is a number. */
void loop_set_extent(LoopContext *c, Extent name, const Expr *value);
/* Says that the run has a number for it that it was not compiled for: its
 * results are not to be used. */
void loop_refuse_extent(LoopContext *c, Extent name);
void loop_if(LoopContext *c, const Expr *cond);
/* Closes what was opened last. */
void loop_end(LoopContext *c);
/* The value is cast to the buffer's type. */
void loop_store(LoopContext *c, const Buffer *buffer, const Expr *offset,
                const Expr *value);
const Expr *loop_load(LoopContext *c, const Buffer *buffer,
                      const Expr *offset);

/* A small array of each thread; its content is undefined at first. */
Buffer *loop_local(LoopContext *c, const char *name, DType dtype,
                   int64_t size);
/* Memory of the kernel, one for all threads. */
Buffer *loop_workspace(LoopContext *c, const char *name, DType dtype,
                       int64_t size);
/* A local of one element, read and written without an offset. */
Buffer *loop_variable(LoopContext *c, const char *name, DType dtype);
void loop_set(LoopContext *c, const Buffer *variable, const Expr *value);
const Expr *loop_get(LoopContext *c, const Buffer *variable);

/* The kernel of a node whose operator has a program: parameters are all
 * inputs that are there, all outputs that are there, then workspace; last the
 * extents that a run chooses, where `graph` is not NULL and types need them.
 * NULL without a program, or when a type is not static and that will not do.
 */
Kernel *op_program(Arena *arena, const Node *node, const Graph *graph);

#endif
