/* GPT-2 small (Radford et al. 2019), prefill with a causal mask: 12 layers of
 * 768; the output is the last hidden state. */
#include "suites/models/transformer.h"

static bool build(Graph *g, const SuiteParams *p)
{
    Transformer t = {.builder = builder_new(g, p),
                     .batch = p->batch,
                     .tokens = p->resolution,
                     .pre_norm = true,
                     .epsilon = 1e-5};
    transformer_scale(&t, 12, 64, 4, p->width);
    t.mask = transformer_causal_mask(&t);
    Tensor *x = transformer_embed(&t, 50257);
    for (int i = 0; i < 12; i++)
        x = transformer_layer(&t, arena_printf(g->arena, "layer%d", i), x);
    x = transformer_norm(&t, "norm", x);
    if (x)
        graph_mark_output(g, x);
    return !g->diag->errors.count;
}

const SuiteModel model_gpt2_small = {
    .name = "gpt2_small",
    .about = "GPT-2 small prefill, seeded weights, 128 tokens",
    .build = build,
    .defaults = {.resolution = 128, .width = 1, .batch = 1, .seed = 1},
};
