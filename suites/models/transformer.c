#include "suites/models/transformer.h"

#include <math.h>

static const char *join(Transformer *t, const char *name, const char *part)
{
    return arena_printf(t->builder.graph->arena, "%s.%s", name, part);
}

void transformer_scale(Transformer *t, int heads, int size, int ratio,
                       double width)
{
    int scaled = (int)(size * width / 4 + 0.5) * 4;
    t->heads = heads;
    t->hidden = heads * (scaled > 4 ? scaled : 4);
    t->inner = ratio * t->hidden;
}

Tensor *transformer_linear(Transformer *t, const char *name, Tensor *x, int in,
                           int out)
{
    Graph *g = t->builder.graph;
    int64_t dims[] = {in, out}, channels[] = {out};
    Tensor *w = builder_weights(&t->builder, join(t, name, "weight"), 2, dims,
                                0, sqrt(1.0 / in));
    Tensor *bias = builder_weights(&t->builder, join(t, name, "bias"), 1,
                                   channels, 0, 0.1);
    Tensor *y = graph_apply(g, "MatMul", join(t, name, "product"), (Attrs){0},
                            x, w, NULL);
    return graph_apply(g, "Add", name, (Attrs){0}, y, bias, NULL);
}

Tensor *transformer_norm(Transformer *t, const char *name, Tensor *x)
{
    Graph *g = t->builder.graph;
    int64_t dims[] = {t->hidden};
    Attrs attrs = {0};
    attrs_set_int(g->arena, &attrs, "axis", -1);
    attrs_set_float(g->arena, &attrs, "epsilon", t->epsilon);
    Tensor *scale =
        builder_weights(&t->builder, join(t, name, "gamma"), 1, dims, 1, 0.1);
    Tensor *shift =
        builder_weights(&t->builder, join(t, name, "beta"), 1, dims, 0, 0.1);
    return graph_apply(g, "LayerNormalization", name, attrs, x, scale, shift,
                       NULL);
}

static Tensor *reshape(Transformer *t, const char *name, Tensor *x,
                       const int64_t *dims, int rank)
{
    Graph *g = t->builder.graph;
    Tensor *shape = graph_add_constant(g, join(t, name, "shape"),
                                       array_ints(g->arena, dims, rank));
    return graph_apply(g, "Reshape", name, (Attrs){0}, x, shape, NULL);
}

static Tensor *transpose(Transformer *t, const char *name, Tensor *x,
                         const int64_t perm[4])
{
    Attrs attrs = {0};
    attrs_set_ints(t->builder.graph->arena, &attrs, "perm", perm, 4);
    return graph_apply(t->builder.graph, "Transpose", name, attrs, x, NULL);
}

/* [batch, tokens, hidden] to [batch, heads, tokens, size], or with the last
 * two exchanged for keys. */
static Tensor *split_heads(Transformer *t, const char *name, Tensor *x,
                           bool is_key)
{
    static const int64_t plain[] = {0, 2, 1, 3}, key[] = {0, 2, 3, 1};
    int64_t dims[] = {t->batch, t->tokens, t->heads, t->hidden / t->heads};
    Tensor *y = reshape(t, join(t, name, "split"), x, dims, 4);
    return transpose(t, join(t, name, "heads"), y, is_key ? key : plain);
}

static Tensor *attention(Transformer *t, const char *name, Tensor *x)
{
    static const int64_t back[] = {0, 2, 1, 3};
    Graph *g = t->builder.graph;
    int d = t->hidden;
    Tensor *q = transformer_linear(t, join(t, name, "query"), x, d, d);
    Tensor *k = transformer_linear(t, join(t, name, "key"), x, d, d);
    Tensor *v = transformer_linear(t, join(t, name, "value"), x, d, d);
    q = split_heads(t, join(t, name, "q"), q, false);
    k = split_heads(t, join(t, name, "k"), k, true);
    v = split_heads(t, join(t, name, "v"), v, false);
    Tensor *scores = graph_apply(g, "MatMul", join(t, name, "scores"),
                                 (Attrs){0}, q, k, NULL);
    Tensor *size = graph_add_constant(
        g, join(t, name, "size"),
        array_scalar(g->arena, DT_F32, sqrt((double)d / t->heads)));
    scores = graph_apply(g, "Div", join(t, name, "scaled"), (Attrs){0}, scores,
                         size, NULL);
    if (t->mask)
        scores = graph_apply(g, "Add", join(t, name, "masked"), (Attrs){0},
                             scores, t->mask, NULL);
    Attrs axis = {0};
    attrs_set_int(g->arena, &axis, "axis", -1);
    Tensor *weights = graph_apply(g, "Softmax", join(t, name, "softmax"), axis,
                                  scores, NULL);
    Tensor *y = graph_apply(g, "MatMul", join(t, name, "context"), (Attrs){0},
                            weights, v, NULL);
    y = transpose(t, join(t, name, "back"), y, back);
    int64_t dims[] = {t->batch, t->tokens, d};
    y = reshape(t, join(t, name, "joined"), y, dims, 3);
    return transformer_linear(t, join(t, name, "output"), y, d, d);
}

static Tensor *feed_forward(Transformer *t, const char *name, Tensor *x)
{
    Tensor *y =
        transformer_linear(t, join(t, name, "up"), x, t->hidden, t->inner);
    y = graph_apply(t->builder.graph, "Gelu", join(t, name, "gelu"),
                    (Attrs){0}, y, NULL);
    return transformer_linear(t, join(t, name, "down"), y, t->inner,
                              t->hidden);
}

static Tensor *add(Transformer *t, const char *name, Tensor *x, Tensor *y)
{
    return graph_apply(t->builder.graph, "Add", name, (Attrs){0}, x, y, NULL);
}

Tensor *transformer_layer(Transformer *t, const char *name, Tensor *x)
{
    const char *attend = join(t, name, "attention");
    const char *forward = join(t, name, "feed_forward");
    const char *norm1 = join(t, name, "norm1");
    const char *norm2 = join(t, name, "norm2");
    Tensor *y = t->pre_norm ? transformer_norm(t, norm1, x) : x;
    x = add(t, join(t, name, "add1"), x, attention(t, attend, y));
    if (!t->pre_norm)
        x = transformer_norm(t, norm1, x);
    y = t->pre_norm ? transformer_norm(t, norm2, x) : x;
    x = add(t, join(t, name, "add2"), x, feed_forward(t, forward, y));
    return t->pre_norm ? x : transformer_norm(t, norm2, x);
}

Tensor *transformer_embed(Transformer *t, int vocabulary)
{
    Graph *g = t->builder.graph;
    TensorType type = {.dtype = DT_I64, .rank = 2};
    type.dims[0] = extent_const(t->batch);
    type.dims[1] = extent_const(t->tokens);
    Tensor *tokens = graph_add_input(g, "tokens", type);
    int64_t table[] = {vocabulary, t->hidden};
    int64_t positions[] = {t->tokens, t->hidden};
    Tensor *words =
        builder_weights(&t->builder, "embed.words", 2, table, 0, 0.7);
    Tensor *places =
        builder_weights(&t->builder, "embed.positions", 2, positions, 0, 0.7);
    Tensor *x = graph_apply(g, "Gather", "embed.gather", (Attrs){0}, words,
                            tokens, NULL);
    return graph_apply(g, "Add", "embed.add", (Attrs){0}, x, places, NULL);
}

Tensor *transformer_causal_mask(Transformer *t)
{
    Arena *arena = t->builder.graph->arena;
    int64_t dims[] = {1, 1, t->tokens, t->tokens};
    Array *mask = array_new(arena, DT_F32, 4, dims);
    for (int i = 0; i < t->tokens; i++)
        for (int j = i + 1; j < t->tokens; j++)
            array_set(mask, (int64_t)i * t->tokens + j, -1e9);
    return graph_add_constant(t->builder.graph, "mask", mask);
}
