/* MobileNetV3-Large (Howard et al. 2019, arXiv 1905.02244, table 1): 0.219
 * GMAC at 224. */
#include "suites/models/common.h"

typedef struct Bottleneck {
    int kernel, expanded, channels;
    bool squeeze, swish;
    int stride;
} Bottleneck;

static const Bottleneck blocks[] = {
    {3, 16, 16, false, false, 1}, {3, 64, 24, false, false, 2},
    {3, 72, 24, false, false, 1}, {5, 72, 40, true, false, 2},
    {5, 120, 40, true, false, 1}, {5, 120, 40, true, false, 1},
    {3, 240, 80, false, true, 2}, {3, 200, 80, false, true, 1},
    {3, 184, 80, false, true, 1}, {3, 184, 80, false, true, 1},
    {3, 480, 112, true, true, 1}, {3, 672, 112, true, true, 1},
    {5, 672, 160, true, true, 2}, {5, 960, 160, true, true, 1},
    {5, 960, 160, true, true, 1},
};

static Feature bottleneck(Builder *b, const char *name, Feature x,
                          const Bottleneck *s, double width)
{
    Arena *a = b->graph->arena;
    Activation act = s->swish ? ACT_HARD_SWISH : ACT_RELU;
    int expanded = scale_channels(s->expanded, width);
    int channels = scale_channels(s->channels, width);
    Feature y = x;
    if (expanded != x.channels)
        y = builder_conv_bn(b, arena_printf(a, "%s.expand", name), y,
                            (ConvSpec){expanded, 1, 1, 1, act});
    y = builder_conv_bn(
        b, arena_printf(a, "%s.depthwise", name), y,
        (ConvSpec){expanded, s->kernel, s->stride, expanded, act});
    if (s->squeeze)
        y = builder_squeeze(b, arena_printf(a, "%s.squeeze", name), y,
                            scale_channels(expanded / 4, 1));
    y = builder_conv_bn(b, arena_printf(a, "%s.project", name), y,
                        (ConvSpec){channels, 1, 1, 1, ACT_NONE});
    if (s->stride == 1 && x.channels == channels)
        y = builder_add(b, name, x, y, ACT_NONE);
    return y;
}

static bool build(Graph *g, const SuiteParams *p)
{
    Builder b = builder_new(g, p);
    Feature x = builder_image(&b, p);
    x = builder_conv_bn(
        &b, "stem", x,
        (ConvSpec){scale_channels(16, p->width), 3, 2, 1, ACT_HARD_SWISH});
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        x = bottleneck(&b, arena_printf(g->arena, "block%zu", i + 1), x,
                       &blocks[i], p->width);
    x = builder_conv_bn(
        &b, "head", x,
        (ConvSpec){scale_channels(960, p->width), 1, 1, 1, ACT_HARD_SWISH});
    /* The published head has one more layer, between pool and classifier. */
    Tensor *pool = graph_apply(g, "GlobalAveragePool", "features", (Attrs){0},
                               x.tensor, NULL);
    x = builder_conv_bn(
        &b, "wide", (Feature){pool, x.channels, x.mean_square / 4},
        (ConvSpec){scale_channels(1280, p->width), 1, 1, 1, ACT_HARD_SWISH});
    return builder_classifier(&b, x, 1000);
}

const SuiteModel model_mobilenet_v3_large = {
    .name = "mobilenet_v3_large",
    .about = "MobileNetV3-Large, seeded weights, 0.219 GMAC at 224",
    .build = build,
    .defaults = {224, 1, 1, 1},
};
