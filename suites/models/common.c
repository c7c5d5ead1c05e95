#include "suites/models/common.h"

#include <math.h>

#include "base/hash.h"
#include "ops/op.h"
#include "suites/random.h"

Builder builder_new(Graph *g, const SuiteParams *params)
{
    return (Builder){g, random_bits((uint64_t)params->seed, 0)};
}

/* ---- weights ---------------------------------------------------------- */

typedef enum Spread { NORMAL, UNIFORM } Spread;

/* mean + scale * (normal, or uniform in -1..1). The name is the key, so
 * that a tensor's values do not depend on the rest of the model. */
static Tensor *add_weights(Builder *b, const char *name, int rank,
                           const int64_t *dims, Spread spread, double mean,
                           double scale)
{
    Array *array = array_new(b->graph->arena, DT_F32, rank, dims);
    uint64_t key = hash_text(name) ^ b->seed;
    float *data = array->data;
    int64_t count = array_count(array);
    for (int64_t i = 0; i < count; i++) {
        double r = spread == NORMAL ? random_normal(key, (uint64_t)i)
                                    : 2 * random_uniform(key, (uint64_t)i) - 1;
        data[i] = (float)(mean + scale * r);
    }
    return graph_add_constant(b->graph, name, array);
}

static Tensor *add_channel_weights(Builder *b, const char *layer,
                                   const char *part, int channels,
                                   Spread spread, double mean, double scale)
{
    int64_t dims[] = {channels};
    return add_weights(b, arena_printf(b->graph->arena, "%s.%s", layer, part),
                       1, dims, spread, mean, scale);
}

Tensor *builder_weights(Builder *b, const char *name, int rank,
                        const int64_t *dims, double mean, double deviation)
{
    return add_weights(b, name, rank, dims, NORMAL, mean, deviation);
}

/* ---- layers ----------------------------------------------------------- */

static Tensor *apply_activation(Builder *b, const char *name, Tensor *x,
                                Activation activation)
{
    Graph *g = b->graph;
    const char *node = arena_printf(g->arena, "%s.act", name);
    if (activation == ACT_RELU)
        return graph_apply(g, "Relu", node, (Attrs){0}, x, NULL);
    if (activation == ACT_HARD_SWISH)
        return graph_apply(g, "HardSwish", node, (Attrs){0}, x, NULL);
    if (activation == ACT_LEAKY) {
        Attrs slope = {0};
        attrs_set_float(g->arena, &slope, "alpha", 0.1);
        return graph_apply(g, "LeakyRelu", node, slope, x, NULL);
    }
    if (activation == ACT_SILU) {
        Tensor *gate = graph_apply(g, "Sigmoid",
                                   arena_printf(g->arena, "%s.sigmoid", name),
                                   (Attrs){0}, x, NULL);
        return graph_apply(g, "Mul", node, (Attrs){0}, x, gate, NULL);
    }
    /* ReLU6 is Clip with two scalar constants. */
    Tensor *low = graph_add_constant(g, arena_printf(g->arena, "%s.min", name),
                                     array_scalar(g->arena, DT_F32, 0));
    Tensor *high =
        graph_add_constant(g, arena_printf(g->arena, "%s.max", name),
                           array_scalar(g->arena, DT_F32, 6));
    return graph_apply(g, "Clip", node, (Attrs){0}, x, low, high, NULL);
}

/* What is left of the mean square of normal values. Half of a symmetric
 * distribution passes a ReLU. */
static double passed(Activation activation)
{
    switch (activation) {
    case ACT_NONE:
        return 1;
    case ACT_SILU:
        return 0.42;
    case ACT_HARD_SWISH:
        return 0.39;
    default:
        return 0.5;
    }
}

Feature builder_image(Builder *b, const SuiteParams *params)
{
    TensorType type = {.dtype = DT_F32, .rank = 4};
    int64_t dims[] = {params->batch, 3, params->resolution,
                      params->resolution};
    for (int i = 0; i < 4; i++)
        type.dims[i] = extent_const(dims[i]);
    return (Feature){graph_add_input(b->graph, "input", type), 3, 1};
}

static void set_window(Builder *b, Attrs *attrs, int kernel, int stride)
{
    Arena *arena = b->graph->arena;
    int64_t pad = kernel / 2;
    int64_t shape[] = {kernel, kernel}, strides[] = {stride, stride};
    int64_t pads[] = {pad, pad, pad, pad};
    attrs_set_ints(arena, attrs, "kernel_shape", shape, 2);
    attrs_set_ints(arena, attrs, "strides", strides, 2);
    attrs_set_ints(arena, attrs, "pads", pads, 4);
}

Feature builder_conv_bn(Builder *b, const char *name, Feature x, ConvSpec spec)
{
    Graph *g = b->graph;
    Arena *arena = g->arena;
    int in_group = x.channels / spec.groups;
    int64_t dims[] = {spec.channels, in_group, spec.kernel, spec.kernel};
    double fan_in = (double)in_group * spec.kernel * spec.kernel;
    Tensor *w = add_weights(b, arena_printf(arena, "%s.weight", name), 4, dims,
                            NORMAL, 0, sqrt(2 / fan_in));
    Attrs attrs = {0};
    set_window(b, &attrs, spec.kernel, spec.stride);
    attrs_set_int(arena, &attrs, "group", spec.groups);
    Tensor *y = graph_apply(g, "Conv", arena_printf(arena, "%s.conv", name),
                            attrs, x.tensor, w, NULL);

    /* Statistics near what the convolution puts out, not equal to it, and
     * every parameter off its neutral value: a folding that forgets one of
     * them must show. */
    double variance = 2 * x.mean_square;
    int channels = spec.channels;
    Tensor *scale =
        add_channel_weights(b, name, "gamma", channels, UNIFORM, 1, 0.2);
    /* A swish makes small values smaller and large ones larger, the more so
     * the deeper the network; a shift that is no small part of what goes in
     * holds against it. */
    bool swish =
        spec.activation == ACT_SILU || spec.activation == ACT_HARD_SWISH;
    Tensor *shift = add_channel_weights(b, name, "beta", channels, NORMAL, 0,
                                        swish ? 0.35 : 0.1);
    Tensor *mean = add_channel_weights(b, name, "mean", channels, NORMAL, 0,
                                       0.1 * sqrt(variance));
    Tensor *var = add_channel_weights(b, name, "var", channels, UNIFORM,
                                      variance, 0.1 * variance);
    Attrs norm = {0};
    attrs_set_float(arena, &norm, "epsilon", 1e-5);
    y = graph_apply(g, "BatchNormalization",
                    arena_printf(arena, "%s.bn", name), norm, y, scale, shift,
                    mean, var, NULL);
    if (spec.activation != ACT_NONE)
        y = apply_activation(b, name, y, spec.activation);
    return (Feature){y, channels, passed(spec.activation)};
}

Feature builder_add(Builder *b, const char *name, Feature x, Feature y,
                    Activation activation)
{
    Graph *g = b->graph;
    Tensor *sum = graph_apply(g, "Add", arena_printf(g->arena, "%s.add", name),
                              (Attrs){0}, x.tensor, y.tensor, NULL);
    double mean_square = x.mean_square + y.mean_square;
    if (activation != ACT_NONE) {
        sum = apply_activation(b, name, sum, activation);
        /* One side is never negative: about half of the other passes. */
        mean_square -= 0.5;
    }
    return (Feature){sum, x.channels, mean_square};
}

/* A 1x1 convolution with bias. */
static Tensor *gate_layer(Builder *b, const char *name, Tensor *x, int in,
                          int out)
{
    int64_t dims[] = {out, in, 1, 1};
    Tensor *w =
        add_weights(b, arena_printf(b->graph->arena, "%s.weight", name), 4,
                    dims, NORMAL, 0, sqrt(2.0 / in));
    Tensor *bias = add_channel_weights(b, name, "bias", out, NORMAL, 0, 0.1);
    return graph_apply(b->graph, "Conv", name, (Attrs){0}, x, w, bias, NULL);
}

Feature builder_squeeze(Builder *b, const char *name, Feature x, int inner)
{
    Graph *g = b->graph;
    Arena *a = g->arena;
    Attrs gate = {0};
    attrs_set_float(a, &gate, "alpha", 1.0 / 6);
    attrs_set_float(a, &gate, "beta", 0.5);
    Tensor *y =
        graph_apply(g, "GlobalAveragePool", arena_printf(a, "%s.pool", name),
                    (Attrs){0}, x.tensor, NULL);
    y = gate_layer(b, arena_printf(a, "%s.reduce", name), y, x.channels,
                   inner);
    y = graph_apply(g, "Relu", arena_printf(a, "%s.act", name), (Attrs){0}, y,
                    NULL);
    y = gate_layer(b, arena_printf(a, "%s.expand", name), y, inner,
                   x.channels);
    y = graph_apply(g, "HardSigmoid", arena_printf(a, "%s.gate", name), gate,
                    y, NULL);
    y = graph_apply(g, "Mul", arena_printf(a, "%s.mul", name), (Attrs){0},
                    x.tensor, y, NULL);
    /* Gates lie around a half. */
    return (Feature){y, x.channels, x.mean_square / 4};
}

Feature builder_max_pool(Builder *b, const char *name, Feature x, int kernel,
                         int stride)
{
    Attrs attrs = {0};
    set_window(b, &attrs, kernel, stride);
    if (kernel % 2 == 0) {
        int64_t end = stride == 1 ? kernel / 2 : 0, pads[] = {0, 0, end, end};
        attrs_set_ints(b->graph->arena, &attrs, "pads", pads, 4);
    }
    Tensor *y = graph_apply(b->graph, "MaxPool", name, attrs, x.tensor, NULL);
    /* The largest of nine half-normal values: mean square near 2. Further
     * away there is not much larger: neighbours in deep layers are alike. */
    double growth = fmin((kernel * kernel - 1) / 2.0, 4);
    return (Feature){y, x.channels, growth * x.mean_square};
}

Feature builder_predict(Builder *b, const char *name, Feature x, int channels)
{
    int64_t dims[] = {channels, x.channels, 1, 1};
    Tensor *w =
        add_weights(b, arena_printf(b->graph->arena, "%s.weight", name), 4,
                    dims, NORMAL, 0, sqrt(1 / (x.channels * x.mean_square)));
    Tensor *bias =
        add_channel_weights(b, name, "bias", channels, NORMAL, 0, 0.1);
    Tensor *y = graph_apply(b->graph, "Conv", name, (Attrs){0}, x.tensor, w,
                            bias, NULL);
    return (Feature){y, channels, 1};
}

Feature builder_upsample(Builder *b, const char *name, Feature x)
{
    Graph *g = b->graph;
    int64_t count[] = {4};
    Array *scales = array_new(g->arena, DT_F32, 1, count);
    for (int i = 0; i < 4; i++)
        array_set(scales, i, i < 2 ? 1 : 2);
    Attrs attrs = {0};
    attrs_set_string(g->arena, &attrs, "mode", "nearest");
    attrs_set_string(g->arena, &attrs, "nearest_mode", "floor");
    attrs_set_string(g->arena, &attrs, "coordinate_transformation_mode",
                     "asymmetric");
    Tensor *inputs[] = {
        x.tensor, NULL,
        graph_add_constant(g, arena_printf(g->arena, "%s.scales", name),
                           scales)};
    Node *node = graph_add_node(g, "Resize", name, inputs, 3, 1);
    node->attrs = attrs;
    op_infer(g, node);
    return (Feature){node->outputs.data[0], x.channels, x.mean_square};
}

Feature builder_concat(Builder *b, const char *name, const Feature *parts,
                       int count)
{
    Graph *g = b->graph;
    Tensor **inputs = ARENA_ARRAY(g->arena, Tensor *, count);
    Feature all = {0};
    for (int i = 0; i < count; i++) {
        inputs[i] = parts[i].tensor;
        all.channels += parts[i].channels;
        all.mean_square += parts[i].mean_square * parts[i].channels;
    }
    all.mean_square /= all.channels;
    Node *node = graph_add_node(g, "Concat", name, inputs, count, 1);
    attrs_set_int(g->arena, &node->attrs, "axis", 1);
    op_infer(g, node);
    all.tensor = node->outputs.data[0];
    return all;
}

bool builder_classifier(Builder *b, Feature x, int classes)
{
    Graph *g = b->graph;
    Arena *arena = g->arena;
    Tensor *y = graph_apply(g, "GlobalAveragePool", "pool", (Attrs){0},
                            x.tensor, NULL);
    Attrs flatten = {0};
    attrs_set_int(arena, &flatten, "axis", 1);
    y = graph_apply(g, "Flatten", "flatten", flatten, y, NULL);
    int64_t dims[] = {classes, x.channels};
    Tensor *w = add_weights(b, "fc.weight", 2, dims, NORMAL, 0,
                            sqrt(1.0 / x.channels));
    Tensor *bias =
        add_channel_weights(b, "fc", "bias", classes, NORMAL, 0, 0.1);
    Attrs gemm = {0};
    attrs_set_int(arena, &gemm, "transB", 1);
    y = graph_apply(g, "Gemm", "fc", gemm, y, w, bias, NULL);
    if (y)
        graph_mark_output(g, y);
    return !g->diag->errors.count;
}

int scale_channels(int channels, double width)
{
    int scaled = (int)(channels * width / 8 + 0.5) * 8;
    /* Rounding must not take more than a tenth away (MobileNetV2's rule). */
    if (scaled < 0.9 * channels * width)
        scaled += 8;
    return scaled < 8 ? 8 : scaled;
}
