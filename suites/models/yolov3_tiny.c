/* YOLOv3-tiny (Redmon and Farhadi 2018, arXiv 1804.02767, and its published
 * configuration): 2.78 GMAC at 416. The outputs are those of the two heads,
 * three boxes of 85 numbers a cell, before decoding. */
#include "suites/models/common.h"

static Feature conv(Builder *b, const char *name, Feature x, int channels,
                    int kernel, double width)
{
    return builder_conv_bn(
        b, name, x,
        (ConvSpec){scale_channels(channels, width), kernel, 1, 1, ACT_LEAKY});
}

static bool build(Graph *g, const SuiteParams *p)
{
    enum { DOWN = 6, BOXES = 3 * 85 };
    Builder b = builder_new(g, p);
    Feature x = builder_image(&b, p), fine = {0};
    for (int i = 0; i < DOWN; i++) {
        const char *name = arena_printf(g->arena, "layer%d", i + 1);
        x = conv(&b, name, x, 16 << i, 3, p->width);
        if (i == 4)
            fine = x;
        /* The last one keeps its size. */
        x = builder_max_pool(&b, arena_printf(g->arena, "%s.pool", name), x, 2,
                             i + 1 < DOWN ? 2 : 1);
    }
    x = conv(&b, "layer7", x, 1024, 3, p->width);
    x = conv(&b, "layer8", x, 256, 1, p->width);
    Feature coarse = conv(&b, "coarse", x, 512, 3, p->width);
    coarse = builder_predict(&b, "coarse.boxes", coarse, BOXES);
    x = conv(&b, "layer9", x, 128, 1, p->width);
    x = builder_upsample(&b, "upsample", x);
    const Feature both[] = {x, fine};
    x = builder_concat(&b, "concat", both, 2);
    x = conv(&b, "fine", x, 256, 3, p->width);
    fine = builder_predict(&b, "fine.boxes", x, BOXES);
    if (g->diag->errors.count)
        return false;
    graph_mark_output(g, coarse.tensor);
    graph_mark_output(g, fine.tensor);
    return true;
}

const SuiteModel model_yolov3_tiny = {
    .name = "yolov3_tiny",
    .about = "YOLOv3-tiny, seeded weights, 2.78 GMAC at 416",
    .build = build,
    .defaults = {416, 1, 1, 1},
    .step = 32,
};
