/* Nodes that passes make: the few operators a pass needs to write its
 * result down, so that no pass names an operator. */
#ifndef ASSAY_OPS_MAKE_H
#define ASSAY_OPS_MAKE_H

#include "graph/graph.h"

/* Each adds a node with inferred types at the end of the list and returns
 * its output; the caller moves the node where it belongs. `name` may be
 * NULL. */

/* Output axis i is axis perm[i] of `x`. */
Tensor *op_make_transpose(Graph *g, const char *name, Tensor *x,
                          const int *perm);
/* The elements of `x` in row-major order under the shape of `type`, whose
 * extents are constant. */
Tensor *op_make_reshape(Graph *g, const char *name, Tensor *x,
                        const TensorType *type);
/* `extent` elements of axis `axis` of `x`, from `start` on. */
Tensor *op_make_slice(Graph *g, const char *name, Tensor *x, int axis,
                      int64_t start, int64_t extent);
/* x * y, element by element; shapes broadcast. */
Tensor *op_make_product(Graph *g, const char *name, Tensor *x, Tensor *y);
/* `count` tensors one after the other along `axis`. */
Tensor *op_make_join(Graph *g, const char *name, Tensor *const *parts,
                     int count, int axis);
/* The same operator with the same attributes on other operands; `pads` (may be
 * NULL), first all before, then all behind, of `spatial` axes, take the place
 * of its padding. */
Tensor *op_make_like(Graph *g, const Node *node, Tensor *const *inputs,
                     const int64_t *pads, int spatial);
/* A copy of `x`, which the caller gives another layout. */
Tensor *op_make_relayout(Graph *g, const char *name, Tensor *x);

#endif
