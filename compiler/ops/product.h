/* Shapes and indices that products of floats and of quantized numbers share.
 * Private to ops/. */
#ifndef ASSAY_OPS_PRODUCT_H
#define ASSAY_OPS_PRODUCT_H

#include "ops/rules.h"

/* ---- NumPy's matmul */

/* Extents of the product of inputs `left` and `right`. */
bool matmul_extents(InferContext *c, int left, int right, int *rank,
                    Extent *dims);

/* Where the elements of both operands are, for the stage over the result. */
typedef struct MatmulPlaces {
    const Expr *left[MAX_RANK], *right[MAX_RANK];
} MatmulPlaces;

/* For element `k` of a row and a column. */
MatmulPlaces matmul_places(const StageBuilder *b, const Buffer *x,
                           const Buffer *y, const Expr *k);

/* ---- convolutions: input 0 and a weight [out, in / group, kernel...] */

/* Checks group, kernel_shape and windows; extents of the result. */
bool conv_extents(InferContext *c, int weight, Extent *dims);

typedef struct ConvPlaces {
    const Expr *in[MAX_RANK], *weight[MAX_RANK];
    bool padded; /* `in` may lie outside */
} ConvPlaces;

/* Adds the reduction axes of the stage that `b` builds over the sum. */
ConvPlaces conv_places(StageBuilder *b, const Node *node, const Buffer *x,
                       const Buffer *w);

/* ---- 3x3 convolutions as OpAlgorithms; see winograd.c */

bool conv_direct_work(const Node *node, int lanes, OpWork *work);
bool winograd2_work(const Node *node, int lanes, OpWork *work);
bool winograd4_work(const Node *node, int lanes, OpWork *work);
void winograd2_rewrite(Graph *g, Node *node);
void winograd4_rewrite(Graph *g, Node *node);

#endif
