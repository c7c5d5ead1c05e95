/* BERT base (Devlin et al. 2018, arXiv 1810.04805): 12 layers of 768, 11.2
 * GMAC at 128 tokens. */
#include "suites/models/transformer.h"

static bool build(Graph *g, const SuiteParams *p)
{
    Transformer t = {.builder = builder_new(g, p),
                     .batch = p->batch,
                     .tokens = p->resolution,
                     .epsilon = 1e-12};
    transformer_scale(&t, 12, 64, 4, p->width);
    Tensor *x = transformer_embed(&t, 30522);
    x = transformer_norm(&t, "embed.norm", x);
    for (int i = 0; i < 12; i++)
        x = transformer_layer(&t, arena_printf(g->arena, "layer%d", i), x);
    if (x)
        graph_mark_output(g, x);
    return !g->diag->errors.count;
}

const SuiteModel model_bert_base = {
    .name = "bert_base",
    .about = "BERT base, seeded weights, 11.2 GMAC at 128 tokens",
    .build = build,
    .defaults = {.resolution = 128, .width = 1, .batch = 1, .seed = 1},
};
