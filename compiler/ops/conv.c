/* Convolutions. The sum is one reduction stage over channel and kernel
 * axes; the bias is a stage of its own, so that whatever follows a
 * convolution is elementwise. */
#include "ops/product.h"

/* group first: it is a divisor below. */
static bool check_channels(InferContext *c, int weight, int64_t group)
{
    const TensorType *x = infer_input(c, 0), *w = infer_input(c, weight);
    int64_t in = extent_known(x->dims[1]), out = extent_known(w->dims[0]);
    int64_t each = extent_known(w->dims[1]);
    if (group < 1)
        return infer_error(c, "group is %lld, it must be at least 1",
                           (long long)group);
    if (in >= 0 && each >= 0 && (in % group != 0 || in / group != each))
        return infer_error(c,
                           "the input has %lld channels, but group %lld of a "
                           "weight with %lld channels each needs %lld",
                           (long long)in, (long long)group, (long long)each,
                           (long long)(each > INT32_MAX ? -1 : each * group));
    if (out >= 0 && out % group != 0)
        return infer_error(c,
                           "its %lld output channels cannot be split into "
                           "group %lld",
                           (long long)out, (long long)group);
    return true;
}

/* One element for each output channel. */
static bool check_bias(InferContext *c, Extent channels)
{
    if (!node_has_input(c->node, 2))
        return true;
    const TensorType *bias = infer_input(c, 2);
    if (!infer_same_dtype(c, 0, 2) || !infer_rank(c, 2, 1, 1))
        return false;
    if (extent_is_const(bias->dims[0]) && extent_is_const(channels) &&
        !extent_equal(bias->dims[0], channels))
        return infer_error(c, "the bias has %lld elements for %lld channels",
                           (long long)bias->dims[0].value,
                           (long long)channels.value);
    return true;
}

/* The kernel's extents come from the weight; kernel_shape may repeat them.
 */
static bool read_kernel(InferContext *c, int weight, Window *window)
{
    const TensorType *w = infer_input(c, weight);
    int64_t stated[MAX_RANK];
    if (!infer_ints(c, "kernel_shape", window->rank, 1, 1, stated))
        return false;
    bool is_stated = attrs_find(&c->node->attrs, "kernel_shape") != NULL;
    for (int i = 0; i < window->rank; i++) {
        window->kernel[i] = extent_known(w->dims[2 + i]);
        if (window->kernel[i] < 0)
            return infer_error(c, "the shape of its weight must be constant");
        if (is_stated && stated[i] != window->kernel[i])
            return infer_error(c,
                               "kernel_shape says %lld where the weight "
                               "has %lld",
                               (long long)stated[i],
                               (long long)window->kernel[i]);
    }
    return infer_window(c, window);
}

/* N, C and at least one spatial axis. */
static bool check_ranks(InferContext *c, int weight, Window *window)
{
    if (!infer_rank(c, 0, 3, MAX_RANK))
        return false;
    int rank = infer_input(c, 0)->rank;
    if (infer_input(c, weight)->rank != rank)
        return infer_error(c, "the input has rank %d, its weight rank %d",
                           rank, infer_input(c, weight)->rank);
    window->rank = rank - 2;
    return true;
}

/* x is [N, C, spatial...], w is [O, C / group, kernel...]. */
bool conv_extents(InferContext *c, int weight, Extent *dims)
{
    Window window = {0};
    if (!check_ranks(c, weight, &window) ||
        !check_channels(c, weight, attrs_int(&c->node->attrs, "group", 1)) ||
        !read_kernel(c, weight, &window))
        return false;
    const TensorType *x = infer_input(c, 0);
    dims[0] = x->dims[0];
    dims[1] = infer_input(c, weight)->dims[0];
    for (int i = 0; i < window.rank; i++)
        if (!infer_window_extent(c, &window, i, x->dims[2 + i], &dims[2 + i]))
            return false;
    return true;
}

static bool infer_conv(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    return infer_types(c, 0, TYPES_FLOAT) && infer_same_dtype(c, 0, 1) &&
           conv_extents(c, 1, dims) && check_bias(c, dims[1]) &&
           infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

/* The usual names; schedules look for them in no way, people do. */
static const char *kernel_axis(int rank, int axis)
{
    static const char *const names[] = {"kd", "kh", "kw"};
    return rank <= 3 ? names[3 - rank + axis] : "kx";
}

/* out = sum + bias, or nothing where the sum went to the output. */
static void add_bias(DefineContext *c, Buffer *sum)
{
    StageBuilder b;
    if (sum == c->out[0])
        return;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *bias = expr_read(b.arena, c->in[2], &b.index[1]);
    stage_end(&b, expr_add(b.arena, read_same(&b, sum), bias));
}

/* Without a bias the sum is the output. */
static Buffer *sum_buffer(DefineContext *c, const char *name)
{
    return node_has_input(c->node, 2) ? define_temp_like(c, name, c->out[0])
                                      : c->out[0];
}

/* A plain read where no padding is needed: it costs no comparison and
 * vectorizes at once. */
static const Expr *read_input(StageBuilder *b, const Buffer *x, bool padded,
                              const Expr *const *index)
{
    return padded ? expr_read_padded(b->arena, x, index,
                                     expr_const(b->arena, x->dtype, 0))
                  : expr_read(b->arena, x, index);
}

/* x[n, c, h * stride + kh * dilation - pad, ..] and w[o, c, kh, ..], the axes
 * in the order of the weights in memory. */
ConvPlaces conv_places(StageBuilder *b, const Node *node, const Buffer *x,
                       const Buffer *w)
{
    Arena *a = b->arena;
    int64_t group = attrs_int(&node->attrs, "group", 1);
    int64_t each = w->dims[1], per_group = w->dims[0] / group;
    Window window = window_of(node, x->rank - 2, &w->dims[2], &x->dims[2]);
    ConvPlaces at = {.in = {b->index[0]}, .weight = {b->index[1]}};
    if (group > 1 && each == 1 && per_group == 1) {
        at.in[1] = b->index[1]; /* depthwise: no sum over channels */
        at.weight[1] = expr_int(a, 0);
    } else {
        at.weight[1] = stage_reduce(b, each, "c");
        at.in[1] = at.weight[1];
        if (group > 1) {
            const Expr *which =
                expr_div(a, b->index[1], expr_int(a, per_group));
            at.in[1] = expr_add(a, expr_mul_int(a, which, each), at.weight[1]);
        }
    }
    for (int i = 0; i < window.rank; i++) {
        /* Without a window the pixels of several rows can be one axis. */
        bool is_point = window.kernel[i] == 1 && b->stage->reduce_count > 0;
        const Expr *k = is_point ? expr_int(a, 0)
                                 : stage_reduce(b, window.kernel[i],
                                                kernel_axis(window.rank, i));
        const Expr *place =
            expr_add(a, expr_mul_int(a, b->index[2 + i], window.stride[i]),
                     expr_mul_int(a, k, window.dilation[i]));
        at.in[2 + i] = expr_add_int(a, place, -window.lo[i]);
        at.weight[2 + i] = k;
    }
    at.padded = window_is_padded(&window, x, b->stage->out[0]);
    return at;
}

static void define_conv(DefineContext *c)
{
    const Buffer *x = c->in[0], *w = c->in[1];
    Buffer *sum = sum_buffer(c, "conv");
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    ConvPlaces at = conv_places(&b, c->node, x, w);
    stage_end_reduce(&b, "sum",
                     expr_mul(b.arena, read_input(&b, x, at.padded, at.in),
                              expr_read(b.arena, w, at.weight)));
    add_bias(c, sum);
}

/* ---- ConvTranspose: weight is [input channels, output channels / group,
 * kernel...]. */

/* Fills the window's padding and the output extents. */
static void transpose_extents(const Node *node, Window *w, const int64_t *in,
                              int64_t *out)
{
    int shape_count, extra_count;
    const int64_t *shape =
        attrs_ints(&node->attrs, "output_shape", &shape_count);
    const int64_t *extra =
        attrs_ints(&node->attrs, "output_padding", &extra_count);
    for (int i = 0; i < w->rank; i++) {
        int64_t full = w->stride[i] * (in[i] - 1) + (extra ? extra[i] : 0) +
                       (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (shape || w->same) {
            out[i] = shape ? shape[i] : in[i] * w->stride[i];
            int64_t total = full - out[i];
            if (total < 0)
                total = 0;
            /* The odd cell is cut at the beginning unless SAME_UPPER. */
            bool upper = w->same && !w->same_lower;
            w->lo[i] = upper ? total / 2 : total - total / 2;
            w->hi[i] = total - w->lo[i];
        } else {
            out[i] = full - w->lo[i] - w->hi[i];
        }
    }
}

/* The output's extents may be given (output_shape), wanted as a multiple
 * (SAME), or follow from pads and output_padding. */
static bool infer_conv_transpose(InferContext *c)
{
    Window window = {0};
    int64_t in[MAX_RANK], out[MAX_RANK], list[MAX_RANK];
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_same_dtype(c, 0, 1) ||
        !check_ranks(c, 1, &window))
        return false;
    const TensorType *x = infer_input(c, 0), *w = infer_input(c, 1);
    int64_t group = attrs_int(&c->node->attrs, "group", 1);
    int64_t channels = extent_known(x->dims[1]);
    int64_t rows = extent_known(w->dims[0]);
    if (group < 1)
        return infer_error(c, "group is %lld, it must be at least 1",
                           (long long)group);
    if (channels != rows || rows % group != 0)
        return infer_error(c,
                           "the input has %lld channels, the weight is for "
                           "%lld in group %lld",
                           (long long)channels, (long long)rows,
                           (long long)group);
    Extent dims[MAX_RANK] = {
        x->dims[0],
        extent_mul(c->graph->arena, w->dims[1], extent_const(group))};
    if (!read_kernel(c, 1, &window) || !check_bias(c, dims[1]) ||
        !infer_ints(c, "output_padding", window.rank, 0, 0, list) ||
        !infer_ints(c, "output_shape", window.rank, 0, 0, list))
        return false;
    for (int i = 0; i < window.rank; i++) {
        in[i] = extent_known(x->dims[2 + i]);
        if (in[i] < 0)
            return infer_error(c, "its spatial extents must be constant");
    }
    transpose_extents(c->node, &window, in, out);
    for (int i = 0; i < window.rank; i++) {
        if (out[i] < 0)
            return infer_error(c, "pads leave nothing of axis %d", 2 + i);
        dims[2 + i] = extent_const(out[i]);
    }
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

/* Written as a gather: output position p takes kernel element k of the
 * input position (p + lo - k * dilation) / stride, where that is whole. */
static void define_conv_transpose(DefineContext *c)
{
    const Buffer *x = c->in[0], *w = c->in[1];
    Buffer *sum = sum_buffer(c, "conv");
    int64_t group = attrs_int(&c->node->attrs, "group", 1);
    int64_t each = w->dims[0] / group, per_group = w->dims[1];
    int64_t out[MAX_RANK];
    Window window = window_of(c->node, x->rank - 2, &w->dims[2], &x->dims[2]);
    transpose_extents(c->node, &window, &x->dims[2], out);
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    Arena *a = b.arena;
    const Expr *in[MAX_RANK] = {b.index[0]}, *weight[MAX_RANK];
    const Expr *whole = NULL;
    const Expr *channel = stage_reduce(&b, each, "c");
    in[1] = channel;
    weight[1] = b.index[1];
    if (group > 1) {
        const Expr *which = expr_div(a, b.index[1], expr_int(a, per_group));
        in[1] = expr_add(a, expr_mul_int(a, which, each), channel);
        weight[1] = expr_binary(a, EX_MOD, b.index[1], expr_int(a, per_group));
    }
    weight[0] = in[1];
    for (int i = 0; i < window.rank; i++) {
        const Expr *k =
            stage_reduce(&b, window.kernel[i], kernel_axis(window.rank, i));
        const Expr *stride = expr_int(a, window.stride[i]);
        const Expr *at =
            expr_sub(a, expr_add_int(a, b.index[2 + i], window.lo[i]),
                     expr_mul_int(a, k, window.dilation[i]));
        in[2 + i] = expr_div(a, at, stride);
        weight[2 + i] = k;
        if (window.stride[i] == 1)
            continue;
        const Expr *fits = expr_binary(
            a, EX_EQ, expr_binary(a, EX_MOD, at, stride), expr_int(a, 0));
        whole = whole ? expr_binary(a, EX_AND, whole, fits) : fits;
    }
    const Expr *value = read_input(&b, x, true, in);
    if (whole)
        value = expr_select(a, whole, value, const_like(a, value, 0));
    stage_end_reduce(&b, "sum", expr_mul(a, value, expr_read(a, w, weight)));
    add_bias(c, sum);
}

static const AttrSpec conv_attrs[] = {{"auto_pad", ATTR_STRING, false},
                                      {"dilations", ATTR_INTS, false},
                                      {"group", ATTR_INT, false},
                                      {"kernel_shape", ATTR_INTS, false},
                                      {"pads", ATTR_INTS, false},
                                      {"strides", ATTR_INTS, false},
                                      {0}};
static const AttrSpec transpose_attrs[] = {
    {"auto_pad", ATTR_STRING, false},
    {"dilations", ATTR_INTS, false},
    {"group", ATTR_INT, false},
    {"kernel_shape", ATTR_INTS, false},
    {"output_padding", ATTR_INTS, false},
    {"output_shape", ATTR_INTS, false},
    {"pads", ATTR_INTS, false},
    {"strides", ATTR_INTS, false},
    {0}};

static const OpAlgorithm conv_algorithms[] = {
    {"direct", conv_direct_work, NULL},
    {"winograd2", winograd2_work, winograd2_rewrite},
    {"winograd4", winograd4_work, winograd4_rewrite},
    {0}};

static const Op op_conv = {.name = "Conv",
                           .domain = "",
                           .min_inputs = 2,
                           .max_inputs = 3,
                           .min_outputs = 1,
                           .max_outputs = 1,
                           .traits = OP_ANCHOR | OP_REDUCTION |
                                     OP_LINEAR_WEIGHTS | OP_RUNTIME_EXTENTS,
                           .attrs = conv_attrs,
                           .infer = infer_conv,
                           .define = define_conv,
                           .algorithms = conv_algorithms,
                           .channel_axis = 0,
                           .output_channel_axis = 1,
                           .since = 11};

/* Not OP_LINEAR_WEIGHTS: with groups the output channels are spread over
 * two weight axes. */
static const Op op_conv_transpose = {.name = "ConvTranspose",
                                     .domain = "",
                                     .min_inputs = 2,
                                     .max_inputs = 3,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .traits = OP_ANCHOR | OP_REDUCTION |
                                               OP_RUNTIME_EXTENTS,
                                     .attrs = transpose_attrs,
                                     .infer = infer_conv_transpose,
                                     .define = define_conv_transpose,
                                     .since = 11};

const Op *const ops_conv[] = {&op_conv, &op_conv_transpose, NULL};
