/* YOLOv8n (Jocher et al. 2023, the published yolov8.yaml at depth 1/3 and
 * width 1/4): 4.37 GMAC at 640. The output is that of the usual ONNX export:
 * for each of the cells of three grids, a box (centre, width and height in
 * pixels) and 80 class scores. */
#include "suites/models/common.h"

enum { CLASSES = 80, BINS = 16, SIDES = 4, LEVELS = 3 };

typedef struct Yolo {
    Builder builder;
    Graph *g;
    const SuiteParams *params;
} Yolo;

static const char *join(Yolo *y, const char *name, const char *part)
{
    return arena_printf(y->g->arena, "%s.%s", name, part);
}

static Feature conv(Yolo *y, const char *name, Feature x, int channels,
                    int kernel, int stride)
{
    return builder_conv_bn(&y->builder, name, x,
                           (ConvSpec){channels, kernel, stride, 1, ACT_SILU});
}

static int channels_of(const Yolo *y, int channels)
{
    return scale_channels(channels, y->params->width);
}

/* Equal parts of the channels. */
static void split(Yolo *y, const char *name, Feature x, Feature parts[2])
{
    int64_t half = x.channels / 2, sizes[] = {half, half};
    Tensor *inputs[] = {x.tensor,
                        graph_add_constant(y->g, join(y, name, "sizes"),
                                           array_ints(y->g->arena, sizes, 2))};
    Node *node = graph_add_node(y->g, "Split", name, inputs, 2, 2);
    attrs_set_int(y->g->arena, &node->attrs, "axis", 1);
    op_infer(y->g, node);
    for (int i = 0; i < 2; i++)
        parts[i] = (Feature){node->outputs.data[i], (int)half, x.mean_square};
}

/* Two halves, one of which goes on through a chain of bottlenecks whose
 * results are all kept. */
static Feature c2f(Yolo *y, const char *name, Feature x, int channels,
                   int depth, bool shortcut)
{
    enum { MAX_DEPTH = 2 };
    Feature parts[2 + MAX_DEPTH];
    x = conv(y, join(y, name, "in"), x, channels, 1, 1);
    split(y, join(y, name, "split"), x, parts);
    for (int i = 0; i < depth; i++) {
        const char *block =
            arena_printf(y->g->arena, "%s.block%d", name, i + 1);
        Feature in = parts[1 + i];
        x = conv(y, join(y, block, "1"), in, in.channels, 3, 1);
        x = conv(y, join(y, block, "2"), x, in.channels, 3, 1);
        if (shortcut)
            x = builder_add(&y->builder, block, in, x, ACT_NONE);
        parts[2 + i] = x;
    }
    x = builder_concat(&y->builder, join(y, name, "concat"), parts, 2 + depth);
    return conv(y, join(y, name, "out"), x, channels, 1, 1);
}

/* Spatial pyramid pooling: three maximum pools in a row. */
static Feature sppf(Yolo *y, const char *name, Feature x)
{
    int channels = x.channels;
    Feature parts[4];
    parts[0] = conv(y, join(y, name, "in"), x, channels / 2, 1, 1);
    for (int i = 1; i < 4; i++) {
        parts[i] = builder_max_pool(
            &y->builder, arena_printf(y->g->arena, "%s.pool%d", name, i),
            parts[i - 1], 5, 1);
        /* What is a maximum already grows little. */
        if (i > 1)
            parts[i].mean_square = parts[i - 1].mean_square * 1.2;
    }
    x = builder_concat(&y->builder, join(y, name, "concat"), parts, 4);
    return conv(y, join(y, name, "out"), x, channels, 1, 1);
}

static Feature concat(Yolo *y, const char *name, Feature a, Feature b)
{
    const Feature parts[] = {a, b};
    return builder_concat(&y->builder, name, parts, 2);
}

/* ---- head ------------------------------------------------------------- */

static Tensor *reshape(Yolo *y, const char *name, Tensor *x,
                       const int64_t *dims, int rank)
{
    Tensor *shape = graph_add_constant(y->g, join(y, name, "shape"),
                                       array_ints(y->g->arena, dims, rank));
    return graph_apply(y->g, "Reshape", name, (Attrs){0}, x, shape, NULL);
}

static Tensor *join_tensors(Yolo *y, const char *name, Tensor *const *parts,
                            int count, int axis)
{
    Node *node = graph_add_node(y->g, "Concat", name, parts, count, 1);
    attrs_set_int(y->g->arena, &node->attrs, "axis", axis);
    op_infer(y->g, node);
    return node->outputs.data[0];
}

/* f32[batch, 64 + 80, cells]: what the head says of each cell of a grid. */
static Tensor *predict(Yolo *y, const char *name, Feature x)
{
    int box = BINS * SIDES, classes = channels_of(y, 64);
    classes = classes > CLASSES ? classes : CLASSES;
    Feature b = conv(y, join(y, name, "box1"), x, box, 3, 1);
    b = conv(y, join(y, name, "box2"), b, box, 3, 1);
    b = builder_predict(&y->builder, join(y, name, "box3"), b, box);
    Feature c = conv(y, join(y, name, "class1"), x, classes, 3, 1);
    c = conv(y, join(y, name, "class2"), c, classes, 3, 1);
    c = builder_predict(&y->builder, join(y, name, "class3"), c, CLASSES);
    Feature both = concat(y, join(y, name, "concat"), b, c);
    int64_t dims[] = {y->params->batch, box + CLASSES, -1};
    return reshape(y, join(y, name, "cells"), both.tensor, dims, 3);
}

/* The middle of every cell, in cells of its grid, and the cells' size in
 * pixels: f32[1, 2, cells] and f32[1, cells]. */
static void make_grid(const Yolo *y, int cells, Tensor **centres,
                      Tensor **strides)
{
    Arena *a = y->g->arena;
    int64_t dims[] = {1, 2, cells}, flat[] = {1, cells}, at = 0;
    Array *centre = array_new(a, DT_F32, 3, dims);
    Array *stride = array_new(a, DT_F32, 2, flat);
    for (int level = 0; level < LEVELS; level++) {
        int size = 8 << level, side = y->params->resolution / size;
        for (int i = 0; i < side * side; i++, at++) {
            array_set(centre, at, i % side + 0.5);
            array_set(centre, cells + at, i / side + 0.5);
            array_set(stride, at, size);
        }
    }
    *centres = graph_add_constant(y->g, "decode.centres", centre);
    *strides = graph_add_constant(y->g, "decode.strides", stride);
}

/* Distances from the middle to the four sides, each the mean of a
 * distribution over 16 bins: f32[batch, 4, cells]. */
static Tensor *distances(Yolo *y, Tensor *x, int cells)
{
    Graph *g = y->g;
    int64_t batch = y->params->batch;
    int64_t bins[] = {batch, SIDES, BINS, cells}, perm[] = {0, 2, 1, 3};
    int64_t shape[] = {1, BINS, 1, 1}, sides[] = {batch, SIDES, cells};
    Attrs order = {0}, axis = {0};
    x = reshape(y, "decode.bins", x, bins, 4);
    attrs_set_ints(g->arena, &order, "perm", perm, 4);
    x = graph_apply(g, "Transpose", "decode.transpose", order, x, NULL);
    attrs_set_int(g->arena, &axis, "axis", 1);
    x = graph_apply(g, "Softmax", "decode.softmax", axis, x, NULL);
    Array *numbers = array_new(g->arena, DT_F32, 4, shape);
    for (int i = 0; i < BINS; i++)
        array_set(numbers, i, i);
    Tensor *w = graph_add_constant(g, "decode.mean.weight", numbers);
    x = graph_apply(g, "Conv", "decode.mean", (Attrs){0}, x, w, NULL);
    return reshape(y, "decode.distances", x, sides, 3);
}

/* Two of the four channels. */
static Tensor *slice(Yolo *y, const char *name, Tensor *x, int64_t start)
{
    Arena *a = y->g->arena;
    int64_t end = start + 2, axis = 1;
    Tensor *from = graph_add_constant(y->g, join(y, name, "start"),
                                      array_ints(a, &start, 1));
    Tensor *to =
        graph_add_constant(y->g, join(y, name, "end"), array_ints(a, &end, 1));
    Tensor *along = graph_add_constant(y->g, join(y, name, "axis"),
                                       array_ints(a, &axis, 1));
    return graph_apply(y->g, "Slice", name, (Attrs){0}, x, from, to, along,
                       NULL);
}

static Tensor *binary(Yolo *y, const char *op, const char *name, Tensor *a,
                      Tensor *b)
{
    return graph_apply(y->g, op, name, (Attrs){0}, a, b, NULL);
}

/* f32[batch, 4, cells]: centre x and y, width and height in pixels. */
static Tensor *decode_boxes(Yolo *y, Tensor *x, int cells)
{
    Tensor *centres, *strides;
    make_grid(y, cells, &centres, &strides);
    x = distances(y, x, cells);
    Tensor *low = binary(y, "Sub", "decode.low", centres,
                         slice(y, "decode.before", x, 0));
    Tensor *high = binary(y, "Add", "decode.high", centres,
                          slice(y, "decode.after", x, 2));
    Tensor *two = graph_add_constant(y->g, "decode.two",
                                     array_scalar(y->g->arena, DT_F32, 2));
    Tensor *sum = binary(y, "Add", "decode.sum", low, high);
    Tensor *const parts[] = {binary(y, "Div", "decode.middle", sum, two),
                             binary(y, "Sub", "decode.size", high, low)};
    x = join_tensors(y, "decode.box", parts, 2, 1);
    return binary(y, "Mul", "decode.pixels", x, strides);
}

static Tensor *detect(Yolo *y, const Feature levels[LEVELS])
{
    Graph *g = y->g;
    Tensor *cells[LEVELS];
    int count = 0;
    for (int i = 0; i < LEVELS; i++) {
        int side = y->params->resolution / (8 << i);
        cells[i] =
            predict(y, arena_printf(g->arena, "head%d", i + 1), levels[i]);
        count += side * side;
    }
    Tensor *all = join_tensors(y, "cells", cells, LEVELS, 2);
    int64_t sizes[] = {BINS * SIDES, CLASSES};
    Tensor *inputs[] = {
        all,
        graph_add_constant(g, "parts.sizes", array_ints(g->arena, sizes, 2))};
    Node *parts = graph_add_node(g, "Split", "parts", inputs, 2, 2);
    attrs_set_int(g->arena, &parts->attrs, "axis", 1);
    op_infer(g, parts);
    Tensor *boxes = decode_boxes(y, parts->outputs.data[0], count);
    Tensor *scores = graph_apply(g, "Sigmoid", "scores", (Attrs){0},
                                 parts->outputs.data[1], NULL);
    Tensor *const both[] = {boxes, scores};
    return join_tensors(y, "detections", both, 2, 1);
}

/* ---- network ---------------------------------------------------------- */

static bool build(Graph *g, const SuiteParams *p)
{
    Yolo y = {builder_new(g, p), g, p};
    static const int depth[] = {1, 2, 2, 1};
    Feature stage[4], x = builder_image(&y.builder, p);
    x = conv(&y, "stem", x, channels_of(&y, 16), 3, 2);
    for (int i = 0; i < 4; i++) {
        const char *name = arena_printf(g->arena, "stage%d", i + 1);
        int channels = channels_of(&y, 32 << i);
        x = conv(&y, join(&y, name, "down"), x, channels, 3, 2);
        stage[i] = x = c2f(&y, name, x, channels, depth[i], true);
    }
    Feature top = sppf(&y, "pyramid", x);
    /* Up: to finer grids, ... */
    x = builder_upsample(&y.builder, "up1.resize", top);
    Feature middle = c2f(&y, "up1", concat(&y, "up1.join", x, stage[2]),
                         channels_of(&y, 128), 1, false);
    x = builder_upsample(&y.builder, "up2.resize", middle);
    Feature fine = c2f(&y, "up2", concat(&y, "up2.join", x, stage[1]),
                       channels_of(&y, 64), 1, false);
    /* ... and down again. */
    x = conv(&y, "down1.conv", fine, fine.channels, 3, 2);
    middle = c2f(&y, "down1", concat(&y, "down1.join", x, middle),
                 channels_of(&y, 128), 1, false);
    x = conv(&y, "down2.conv", middle, middle.channels, 3, 2);
    Feature coarse = c2f(&y, "down2", concat(&y, "down2.join", x, top),
                         channels_of(&y, 256), 1, false);
    const Feature levels[] = {fine, middle, coarse};
    Tensor *boxes = detect(&y, levels);
    if (g->diag->errors.count)
        return false;
    graph_mark_output(g, boxes);
    return true;
}

const SuiteModel model_yolov8n = {
    .name = "yolov8n",
    .about = "YOLOv8n, seeded weights, 4.37 GMAC at 640",
    .build = build,
    .defaults = {640, 1, 1, 1},
    .step = 32,
};
