/* ResNet-18 (He et al. 2015, arXiv 1512.03385): 1.81 GMAC at 224. */
#include "suites/models/common.h"

/* Two 3x3 convolutions and a shortcut. */
static Feature basic_block(Builder *b, const char *name, Feature x,
                           int channels, int stride)
{
    Arena *a = b->graph->arena;
    Feature y = builder_conv_bn(b, arena_printf(a, "%s.1", name), x,
                                (ConvSpec){channels, 3, stride, 1, ACT_RELU});
    y = builder_conv_bn(b, arena_printf(a, "%s.2", name), y,
                        (ConvSpec){channels, 3, 1, 1, ACT_NONE});
    Feature shortcut = x;
    if (stride != 1 || x.channels != channels)
        shortcut =
            builder_conv_bn(b, arena_printf(a, "%s.shortcut", name), x,
                            (ConvSpec){channels, 1, stride, 1, ACT_NONE});
    return builder_add(b, name, shortcut, y, ACT_RELU);
}

static bool build(Graph *g, const SuiteParams *p)
{
    static const int channels[] = {64, 128, 256, 512};
    Builder b = builder_new(g, p);
    Feature x = builder_image(&b, p);
    x = builder_conv_bn(
        &b, "stem", x,
        (ConvSpec){scale_channels(64, p->width), 7, 2, 1, ACT_RELU});
    x = builder_max_pool(&b, "stem.pool", x, 3, 2);
    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < 2; block++)
            x = basic_block(
                &b, arena_printf(g->arena, "layer%d.%d", stage + 1, block), x,
                scale_channels(channels[stage], p->width),
                stage && !block ? 2 : 1);
    return builder_classifier(&b, x, 1000);
}

const SuiteModel model_resnet18 = {
    .name = "resnet18",
    .about = "ResNet-18, seeded weights, 1.81 GMAC at 224",
    .build = build,
    .defaults = {224, 1, 1, 1},
};
