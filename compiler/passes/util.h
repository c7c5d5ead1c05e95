/* What several passes need: looking at what a node computes through its
 * definition, so that no pass names an operator, and dropping dead code. */
#ifndef ASSAY_PASSES_UTIL_H
#define ASSAY_PASSES_UTIL_H

#include "graph/graph.h"
#include "ops/op.h"
#include "passes/passes.h"

/* The definition of one node; buffers are named in0, in1, ... and out0,
 * ... NULL when the operator has none for these types, an extent has no bound,
 * or the node has more operands than a definition can take. */
Definition *define_node(Arena *arena, const Node *node);

/* True when output 0 equals input 0 element by element. */
bool node_is_copy(Arena *arena, const Node *node);
/* True when output axis i is input axis perm[i] of input 0 and nothing
 * else happens. */
bool node_permutation(Arena *arena, const Node *node, int perm[MAX_RANK]);
/* How far outside its extents the node reads operand `operand`, by axis,
 * where it takes zero for what it finds there. False when it never reads
 * outside, or takes something else than zero. */
bool node_input_border(Arena *arena, const Node *node, int operand,
                       int64_t lo[MAX_RANK], int64_t hi[MAX_RANK]);

/* True when output `output` is a part of input 0: its element i is the
 * operand's element start + i. */
bool node_is_part(Arena *arena, const Node *node, int output,
                  int64_t start[MAX_RANK]);
/* True when output 0 is the inputs one after the other along `axis`, each
 * with one element at least: input i from starts[i] on. `starts` has room
 * for all inputs. */
bool node_is_join(Arena *arena, const Node *node, int *axis, int64_t *starts);

/* The layout under which the output of a reshape, transpose or slice lies
 * exactly as its operand does; false when there is none. */
bool node_alias_layout(Arena *scratch, const Node *node, Layout *layout);
/* The layout of the operand under which the output of a reshape or transpose,
 * in `layout`, lies exactly as it does; false when there is none. */
bool node_unalias_layout(Arena *scratch, const Node *node,
                         const Layout *layout, Layout *operand);
/* True when all operands of a concatenation lie where the result has them. */
bool node_is_joined(Arena *scratch, const Node *node);
/* True when the layouts are such that no work is left: the output is where
 * the operand is, or the operands were written into it. */
bool node_is_alias(Arena *scratch, const Node *node);

/* Lets operands of concatenations lie in the results; see place.c. By tensor
 * id: `fixed`, the layout is not ours to choose; `wants`, a convolution
 * asked for it. A part of the layout pass. */
void place_operands_of_joins(Graph *g, const bool *fixed, const bool *wants);

/* Operand `index`, NULL when left out. */
Tensor *node_input(const Node *node, int index);
/* The only output in use; NULL when there are several or none. */
Tensor *node_only_output(const Node *node);
bool node_is_pure(const Node *node);
/* All inputs are constants or left out. */
bool node_is_constant(const Node *node);
bool types_equal(const TensorType *a, const TensorType *b);
bool shapes_equal(const TensorType *a, const TensorType *b);
void tensor_dims(const TensorType *type, int64_t dims[MAX_RANK]);
/* The single node that uses the tensor (perhaps several times), or NULL. */
Node *tensor_only_user(const Tensor *tensor);

/* Replaces all uses of each output by a constant. An output that is a
 * graph output keeps its node. */
void node_replace_by_constants(Graph *g, Node *node,
                               const Array *const *values);
/* Evaluates a node of constant operands and replaces its outputs by the
 * values; false when it cannot be evaluated. Needs c->evaluate. */
bool node_fold(PassContext *c, Node *node);

/* Control flow that is known when compiling: a branch whose condition is a
 * constant takes the place of its node, and so do the iterations of a loop
 * that are few. The new nodes come right before where the node was, untyped.
 * False when the node stays. `folded` when operands, or what they come from,
 * became constants: what else reads those was typed without. */
bool control_expand(PassContext *c, Node *node, bool *folded);

/* Removes nodes that no output needs, then constants without users.
 * Linear in the size of the graph. */
void graph_sweep(Graph *g);
/* Makes every node a group of its own, in place of former groups. */
void graph_group_alone(Graph *g);
/* Gives every tensor a row-major layout. */
void graph_layout_row_major(Graph *g);

#endif
