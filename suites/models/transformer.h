/* Transformer blocks with seeded weights, as exporters write them: products
 * with [in, out] weights, heads by Reshape and Transpose, GELU and softmax
 * as operators. */
#ifndef ASSAY_SUITES_MODELS_TRANSFORMER_H
#define ASSAY_SUITES_MODELS_TRANSFORMER_H

#include "suites/models/common.h"

typedef struct Transformer {
    Builder builder;
    int batch, tokens, hidden, heads, inner; /* inner: of the feed-forward */
    bool pre_norm;                           /* norm before each part */
    Tensor *mask;                            /* added to the scores, or NULL */
    double epsilon;
} Transformer;

/* Sets heads, and hidden and inner for heads of `size` at width 1: a width
 * scales each head, to a multiple of 4, and `ratio` is inner over hidden. */
void transformer_scale(Transformer *t, int heads, int size, int ratio,
                       double width);
/* x * w + bias: nodes NAME.product and NAME. */
Tensor *transformer_linear(Transformer *t, const char *name, Tensor *x, int in,
                           int out);
Tensor *transformer_norm(Transformer *t, const char *name, Tensor *x);
/* One layer: attention and feed-forward, each with its residual. */
Tensor *transformer_layer(Transformer *t, const char *name, Tensor *x);
/* i64[batch, tokens] token numbers to vectors, plus positions; the sum of
 * word and position tables. */
Tensor *transformer_embed(Transformer *t, int vocabulary);
/* [1, 1, tokens, tokens]: 0 on and below the diagonal, a large negative
 * number above. */
Tensor *transformer_causal_mask(Transformer *t);

#endif
