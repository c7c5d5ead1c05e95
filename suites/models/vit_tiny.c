/* ViT-Ti/16 (Dosovitskiy et al. 2020, arXiv 2010.11929; Touvron et al. 2021):
 * 12 layers of 192 over 16x16 patches and a class token. */
#include <math.h>

#include "suites/models/transformer.h"

enum { PATCH = 16 };

/* f32[batch, tokens, hidden]: the class token, then a token a patch. */
static Tensor *embed(Transformer *t, const SuiteParams *p)
{
    Graph *g = t->builder.graph;
    Arena *a = g->arena;
    Feature image = builder_image(&t->builder, p);
    int64_t shape[] = {t->hidden, 3, PATCH, PATCH}, channels[] = {t->hidden};
    int64_t kernel[] = {PATCH, PATCH};
    Tensor *w = builder_weights(&t->builder, "patch.weight", 4, shape, 0,
                                sqrt(1.0 / (3 * PATCH * PATCH)));
    Tensor *bias =
        builder_weights(&t->builder, "patch.bias", 1, channels, 0, 0.1);
    Attrs conv = {0};
    attrs_set_ints(a, &conv, "kernel_shape", kernel, 2);
    attrs_set_ints(a, &conv, "strides", kernel, 2);
    Tensor *x =
        graph_apply(g, "Conv", "patch", conv, image.tensor, w, bias, NULL);
    int64_t flat[] = {p->batch, t->hidden, t->tokens - 1};
    Tensor *dims = graph_add_constant(g, "patch.flat", array_ints(a, flat, 3));
    x = graph_apply(g, "Reshape", "patch.reshape", (Attrs){0}, x, dims, NULL);
    int64_t perm[] = {0, 2, 1};
    Attrs transpose = {0};
    attrs_set_ints(a, &transpose, "perm", perm, 3);
    x = graph_apply(g, "Transpose", "patch.tokens", transpose, x, NULL);
    int64_t first[] = {p->batch, 1, t->hidden};
    Tensor *token =
        builder_weights(&t->builder, "class.token", 3, first, 0, 1);
    Attrs axis = {0};
    attrs_set_int(a, &axis, "axis", 1);
    x = graph_apply(g, "Concat", "tokens", axis, token, x, NULL);
    int64_t table[] = {1, t->tokens, t->hidden};
    Tensor *places =
        builder_weights(&t->builder, "positions", 3, table, 0, 0.5);
    return graph_apply(g, "Add", "embed", (Attrs){0}, x, places, NULL);
}

static bool build(Graph *g, const SuiteParams *p)
{
    int side = p->resolution / PATCH;
    Transformer t = {.builder = builder_new(g, p),
                     .batch = p->batch,
                     .tokens = side * side + 1,
                     .pre_norm = true,
                     .epsilon = 1e-6};
    transformer_scale(&t, 3, 64, 4, p->width);
    Tensor *x = embed(&t, p);
    for (int i = 0; i < 12; i++)
        x = transformer_layer(&t, arena_printf(g->arena, "layer%d", i), x);
    x = transformer_norm(&t, "norm", x);
    Tensor *zero =
        graph_add_constant(g, "first", array_scalar(g->arena, DT_I64, 0));
    Attrs axis = {0};
    attrs_set_int(g->arena, &axis, "axis", 1);
    x = graph_apply(g, "Gather", "class", axis, x, zero, NULL);
    x = transformer_linear(&t, "head", x, t.hidden, 1000);
    if (x)
        graph_mark_output(g, x);
    return !g->diag->errors.count;
}

const SuiteModel model_vit_tiny = {
    .name = "vit_tiny",
    .about = "ViT-Ti/16, seeded weights, 1.1 GMAC at 224",
    .build = build,
    .defaults = {.resolution = 224, .width = 1, .batch = 1, .seed = 1},
};
