/* ResNet-50 (He et al. 2015, arXiv 1512.03385), with the stride in the 3x3
 * convolution as torchvision has it ("v1.5"): 4.09 GMAC at 224. */
#include "suites/models/common.h"

/* 1x1 down, 3x3, 1x1 up to four times the channels, and a shortcut. */
static Feature bottleneck(Builder *b, const char *name, Feature x, int inner,
                          int stride)
{
    Arena *a = b->graph->arena;
    int channels = 4 * inner;
    Feature y = builder_conv_bn(b, arena_printf(a, "%s.1", name), x,
                                (ConvSpec){inner, 1, 1, 1, ACT_RELU});
    y = builder_conv_bn(b, arena_printf(a, "%s.2", name), y,
                        (ConvSpec){inner, 3, stride, 1, ACT_RELU});
    y = builder_conv_bn(b, arena_printf(a, "%s.3", name), y,
                        (ConvSpec){channels, 1, 1, 1, ACT_NONE});
    Feature shortcut = x;
    if (stride != 1 || x.channels != channels)
        shortcut =
            builder_conv_bn(b, arena_printf(a, "%s.shortcut", name), x,
                            (ConvSpec){channels, 1, stride, 1, ACT_NONE});
    return builder_add(b, name, shortcut, y, ACT_RELU);
}

static bool build(Graph *g, const SuiteParams *p)
{
    static const int inner[] = {64, 128, 256, 512};
    static const int blocks[] = {3, 4, 6, 3};
    Builder b = builder_new(g, p);
    Feature x = builder_image(&b, p);
    x = builder_conv_bn(
        &b, "stem", x,
        (ConvSpec){scale_channels(64, p->width), 7, 2, 1, ACT_RELU});
    x = builder_max_pool(&b, "stem.pool", x, 3, 2);
    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < blocks[stage]; block++)
            x = bottleneck(
                &b, arena_printf(g->arena, "layer%d.%d", stage + 1, block), x,
                scale_channels(inner[stage], p->width),
                stage && !block ? 2 : 1);
    return builder_classifier(&b, x, 1000);
}

const SuiteModel model_resnet50 = {
    .name = "resnet50",
    .about = "ResNet-50, seeded weights, 4.09 GMAC at 224",
    .build = build,
    .defaults = {224, 1, 1, 1},
};
