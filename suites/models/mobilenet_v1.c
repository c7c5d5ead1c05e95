/* MobileNetV1 (Howard et al. 2017, arXiv 1704.04861): 0.569 GMAC at 224. */
#include "suites/models/common.h"

static bool build(Graph *g, const SuiteParams *p)
{
    /* Output channels and stride of each depthwise-separable block. */
    static const struct {
        int channels, stride;
    } blocks[] = {{64, 1},  {128, 2},  {128, 1}, {256, 2}, {256, 1},
                  {512, 2}, {512, 1},  {512, 1}, {512, 1}, {512, 1},
                  {512, 1}, {1024, 2}, {1024, 1}};
    Builder b = builder_new(g, p);
    Feature x = builder_image(&b, p);
    x = builder_conv_bn(
        &b, "stem", x,
        (ConvSpec){scale_channels(32, p->width), 3, 2, 1, ACT_RELU});
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const char *name = arena_printf(g->arena, "block%zu", i + 1);
        x = builder_conv_bn(
            &b, arena_printf(g->arena, "%s.depthwise", name), x,
            (ConvSpec){x.channels, 3, blocks[i].stride, x.channels, ACT_RELU});
        x = builder_conv_bn(
            &b, arena_printf(g->arena, "%s.pointwise", name), x,
            (ConvSpec){scale_channels(blocks[i].channels, p->width), 1, 1, 1,
                       ACT_RELU});
    }
    return builder_classifier(&b, x, 1000);
}

const SuiteModel model_mobilenet_v1 = {
    .name = "mobilenet_v1",
    .about = "MobileNetV1, seeded weights, 0.569 GMAC at 224",
    .build = build,
    .defaults = {224, 1, 1, 1},
};
