/* MobileNetV2 (Sandler et al. 2018, arXiv 1801.04381): 0.30 GMAC at 224. */
#include "suites/models/common.h"

/* Expand by 1x1, depthwise 3x3, project by 1x1 without activation. */
static Feature inverted_residual(Builder *b, const char *name, Feature x,
                                 int expand, int channels, int stride)
{
    Arena *a = b->graph->arena;
    Feature y = x;
    int inner = expand * x.channels;
    if (expand != 1)
        y = builder_conv_bn(b, arena_printf(a, "%s.expand", name), x,
                            (ConvSpec){inner, 1, 1, 1, ACT_RELU6});
    y = builder_conv_bn(b, arena_printf(a, "%s.depthwise", name), y,
                        (ConvSpec){inner, 3, stride, inner, ACT_RELU6});
    y = builder_conv_bn(b, arena_printf(a, "%s.project", name), y,
                        (ConvSpec){channels, 1, 1, 1, ACT_NONE});
    if (stride == 1 && x.channels == channels)
        return builder_add(b, name, x, y, ACT_NONE);
    return y;
}

static bool build(Graph *g, const SuiteParams *p)
{
    /* Table 2 of the paper: expansion, channels, repeats, first stride. */
    static const int rows[][4] = {
        {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2},  {6, 64, 4, 2},
        {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1},
    };
    Builder b = builder_new(g, p);
    Feature x = builder_image(&b, p);
    x = builder_conv_bn(
        &b, "stem", x,
        (ConvSpec){scale_channels(32, p->width), 3, 2, 1, ACT_RELU6});
    int number = 0;
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++)
        for (int i = 0; i < rows[row][2]; i++)
            x = inverted_residual(
                &b, arena_printf(g->arena, "block%d", ++number), x,
                rows[row][0], scale_channels(rows[row][1], p->width),
                i ? 1 : rows[row][3]);
    /* The last convolution does not shrink with the width. */
    double width = p->width > 1 ? p->width : 1;
    x = builder_conv_bn(
        &b, "head", x,
        (ConvSpec){scale_channels(1280, width), 1, 1, 1, ACT_RELU6});
    return builder_classifier(&b, x, 1000);
}

const SuiteModel model_mobilenet_v2 = {
    .name = "mobilenet_v2",
    .about = "MobileNetV2, seeded weights, 0.30 GMAC at 224",
    .build = build,
    .defaults = {224, 1, 1, 1},
};
