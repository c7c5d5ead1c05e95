/* Normalizations. BatchNormalization uses stored statistics; the others
 * take mean and variance of the data, in two passes: the variance is that
 * of (x - mean), which stays accurate far from zero. */
#include <math.h>

#include "ops/rules.h"

/* Attributes are f32 in ONNX: 1e-5 means the float nearest to it. */
static double epsilon_of(const Node *node)
{
    return (double)(float)attrs_float(&node->attrs, "epsilon", 1e-5);
}

/* ---- BatchNormalization */

static bool is_training(const Node *node)
{
    return attrs_int(&node->attrs, "training_mode", 0) != 0;
}

/* In training mode the statistics are those of the data, and new running
 * ones are results. Operands may be of another float type than x. */
static bool infer_batchnorm(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int count = c->node->outputs.count;
    if (count > (is_training(c->node) ? 3 : 1))
        return infer_error(c,
                           "has %d outputs; running statistics, two, are "
                           "outputs of training mode only",
                           count);
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 2, MAX_RANK))
        return false;
    if (is_training(c->node) && !type_is_static(x))
        return infer_error(c, "training_mode is 1: its extents must be "
                              "constant");
    for (int i = 1; i <= 4; i++) {
        if (!infer_types(c, i, TYPES_FLOAT) || !infer_rank(c, i, 1, 1) ||
            !infer_same_dtype(c, i, i % 2 ? i + 1 : i - 1))
            return false;
        Extent length = infer_input(c, i)->dims[0];
        if (extent_is_const(length) && extent_is_const(x->dims[1]) &&
            !extent_equal(length, x->dims[1]))
            return infer_error(c,
                               "operand %s has %lld elements for %lld "
                               "channels",
                               c->node->inputs.data[i]->name,
                               (long long)length.value,
                               (long long)x->dims[1].value);
    }
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    for (int i = 1; i <= 2; i++)
        infer_set(c, i, infer_input(c, 3)->dtype, 1, &x->dims[1]);
    return true;
}

/* A statistic of each channel of x: the mean, or with one that of squared
 * distances from it. */
static Buffer *channel_mean(DefineContext *c, const Buffer *mean, DType inner)
{
    const Buffer *x = c->in[0];
    int64_t count = 1;
    for (int i = 0; i < x->rank; i++)
        count *= i == 1 ? 1 : x->dims[i];
    DType wide = sum_dtype(inner, count);
    Buffer *sum = define_temp(c, "sum", wide, 1, &x->dims[1]);
    Buffer *result =
        define_temp(c, mean ? "variance" : "mean", inner, 1, &x->dims[1]);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    Arena *a = b.arena;
    for (int i = 0; i < x->rank; i++)
        index[i] = i == 1 ? b.index[0] : stage_reduce(&b, x->dims[i], "k");
    const Expr *value = expr_cast(a, wide, expr_read(a, x, index));
    if (mean) {
        value = expr_sub(a, value, expr_cast(a, wide, read_same(&b, mean)));
        value = expr_mul(a, value, value);
    }
    stage_end_reduce(&b, "sum", value);
    stage_begin(&b, c->def, result);
    value = read_same(&b, sum);
    value = expr_div(a, value, const_like(a, value, (double)count));
    stage_end(&b, expr_cast(a, inner, value));
    return result;
}

/* running = running * momentum + statistic * (1 - momentum) */
static void define_running(DefineContext *c, int output, const Buffer *found)
{
    double momentum =
        (double)(float)attrs_float(&c->node->attrs, "momentum", 0.9);
    StageBuilder b;
    if (!c->out[output])
        return;
    stage_begin(&b, c->def, c->out[output]);
    Arena *a = b.arena;
    const Expr *fresh = read_same(&b, found);
    const Expr *old = read_same(&b, c->in[2 + output]);
    old = expr_mul(a, expr_cast(a, fresh->dtype, old),
                   const_like(a, fresh, momentum));
    fresh = expr_mul(a, fresh, const_like(a, fresh, 1 - momentum));
    stage_end(&b,
              expr_cast(a, c->out[output]->dtype, expr_add(a, old, fresh)));
}

/* For the levels that do not decompose: the formula as written. */
static void define_batchnorm(DefineContext *c)
{
    const Buffer *param[5] = {NULL, c->in[1], c->in[2], c->in[3], c->in[4]};
    DType inner = work_dtype(c->in[0]->dtype);
    if (is_training(c->node)) {
        param[3] = channel_mean(c, NULL, inner);
        param[4] = channel_mean(c, param[3], inner);
        define_running(c, 1, param[3]);
        define_running(c, 2, param[4]);
    }
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *x = expr_cast(a, inner, read_same(&b, c->in[0]));
    const Expr *value[5] = {NULL};
    for (int i = 1; i <= 4; i++)
        value[i] = expr_cast(a, inner, expr_read(a, param[i], &b.index[1]));
    const Expr *eps = const_like(a, x, epsilon_of(c->node));
    const Expr *deviation = expr_unary(a, EX_SQRT, expr_add(a, value[4], eps));
    const Expr *centred = expr_sub(a, x, value[3]);
    const Expr *scaled =
        expr_mul(a, expr_div(a, centred, deviation), value[1]);
    stage_end(&b,
              expr_cast(a, c->out[0]->dtype, expr_add(a, scaled, value[2])));
}

/* A node that stands for part of `node`: its sources, its place. */
static Node *add_part(Graph *g, const char *op, const char *suffix, Node *node,
                      Tensor *x, Tensor *y)
{
    Tensor *inputs[2] = {x, y};
    Node *part = graph_add_node(
        g, op, arena_printf(g->arena, "%s.%s", node->name, suffix), inputs, 2,
        1);
    part->sources.count = 0;
    part->outputs.data[0]->sources.count = 0;
    graph_add_source(g, part, node);
    part->no_fuse = node->no_fuse;
    op_infer(g, part);
    graph_move_before(g, part, node);
    return part;
}

/* y = x * scale + shift, with scale = gamma / sqrt(variance + epsilon) and
 * shift = beta - mean * scale, computed in double. */
static bool decompose_batchnorm(Graph *g, Node *node)
{
    const Array *param[5];
    DType dtype = node->inputs.data[0]->type.dtype;
    for (int i = 1; i <= 4; i++) {
        param[i] = node->inputs.data[i]->value;
        if (!param[i] || is_training(node))
            return false;
    }
    int rank = node->inputs.data[0]->type.rank;
    int64_t channels = param[1]->dims[0], dims[MAX_RANK];
    for (int i = 0; i < rank - 1; i++)
        dims[i] = i ? 1 : channels;
    Array *scale = array_new(g->arena, dtype, rank - 1, dims);
    Array *shift = array_new(g->arena, dtype, rank - 1, dims);
    for (int64_t i = 0; i < channels; i++) {
        double factor = array_get(param[1], i) /
                        sqrt(array_get(param[4], i) + epsilon_of(node));
        array_set(scale, i, factor);
        array_set(shift, i,
                  array_get(param[2], i) - array_get(param[3], i) * factor);
    }
    const char *name = node->name;
    Tensor *by =
        graph_add_constant(g, arena_printf(g->arena, "%s.scale", name), scale);
    Tensor *add =
        graph_add_constant(g, arena_printf(g->arena, "%s.shift", name), shift);
    Node *mul = add_part(g, "Mul", "mul", node, node->inputs.data[0], by);
    Node *sum = add_part(g, "Add", "add", node, mul->outputs.data[0], add);
    graph_replace(g, node->outputs.data[0], sum->outputs.data[0]);
    graph_remove_node(g, node);
    return true;
}

/* ---- mean and variance of the data */

/* Reduction axes have no standard names. */
static const char *reduce_name(int number)
{
    static const char *const names[MAX_RANK] = {"r0", "r1", "r2", "r3",
                                                "r4", "r5", "r6", "r7"};
    return names[number];
}

/* Reads x with fresh reduction axes over [first, rank) and the stage's own
 * indices before. */
static const Expr *read_reduced(StageBuilder *b, const Buffer *x, int first,
                                const Expr **index)
{
    for (int i = 0; i < x->rank; i++)
        index[i] = i < first
                       ? b->index[i]
                       : stage_reduce(b, x->dims[i], reduce_name(i - first));
    return expr_read(b->arena, x, index);
}

/* Reads a statistic of shape [.., 1, 1] for the stage over x. */
static const Expr *read_statistic(const StageBuilder *b,
                                  const Buffer *statistic)
{
    const Expr *index[MAX_RANK];
    for (int i = 0; i < statistic->rank; i++)
        index[i] =
            statistic->dims[i] == 1 ? expr_int(b->arena, 0) : b->index[i];
    return expr_read(b->arena, statistic, index);
}

typedef struct Moments {
    Buffer *mean, *inverse; /* 1 / sqrt(variance + epsilon) */
} Moments;

/* Adds the stages of the moments of x over [first, rank). Without
 * `centred` the mean stays out of it: the root mean square. `mean` and
 * `inverse` are buffers to fill or NULL. */
static Moments add_moments(DefineContext *c, const Buffer *x, int first,
                           bool centred, Buffer *mean, Buffer *inverse)
{
    int64_t dims[MAX_RANK], count = 1; /* at most; `elements` is the number */
    const Expr *elements = expr_int(c->def->arena, 1);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = i < first ? x->dims[i] : 1;
        count *= i < first ? 1 : x->dims[i];
        if (i >= first)
            elements = expr_mul(c->def->arena, elements,
                                buffer_extent(c->def->arena, x, i));
    }
    DType inner = work_dtype(x->dtype), wide = sum_dtype(inner, count);
    const Expr *index[MAX_RANK];
    Moments m = {mean, inverse};
    StageBuilder b;
    if (centred) {
        Buffer *sum = define_temp(c, "sum", wide, x->rank, dims);
        if (!m.mean)
            m.mean = define_temp(c, "mean", inner, x->rank, dims);
        stage_begin(&b, c->def, sum);
        const Expr *value = read_reduced(&b, x, first, index);
        stage_end_reduce(&b, "sum", expr_cast(b.arena, wide, value));
        stage_begin(&b, c->def, m.mean);
        value = read_same(&b, sum);
        value = expr_div(b.arena, value, count_like(b.arena, value, elements));
        stage_end(&b, expr_cast(b.arena, inner, value));
    }
    Buffer *squares = define_temp(c, "squares", wide, x->rank, dims);
    if (!m.inverse)
        m.inverse = define_temp(c, "inverse", inner, x->rank, dims);
    stage_begin(&b, c->def, squares);
    Arena *a = b.arena;
    const Expr *value = expr_cast(a, inner, read_reduced(&b, x, first, index));
    if (centred)
        value = expr_sub(a, value, read_statistic(&b, m.mean));
    value = expr_cast(a, wide, value);
    stage_end_reduce(&b, "sum", expr_mul(a, value, value));
    stage_begin(&b, c->def, m.inverse);
    value = read_same(&b, squares);
    value = expr_div(a, value, count_like(a, value, elements));
    value = expr_add(a, value, const_like(a, value, epsilon_of(c->node)));
    value =
        expr_div(a, const_like(a, value, 1), expr_unary(a, EX_SQRT, value));
    stage_end(&b, expr_cast(a, inner, value));
    return m;
}

/* Serves RMSNormalization as well, whose third input cannot be there. */
static bool infer_layernorm(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    int axis, rank;
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", -1), x->rank,
                    &axis))
        return false;
    for (int i = 1; i <= 2; i++) {
        if (!node_has_input(c->node, i))
            continue;
        if (!infer_same_dtype(c, 0, i) ||
            !infer_broadcast(c, 0, i, &rank, dims))
            return false;
        TensorType both = *x;
        both.rank = rank;
        for (int k = 0; k < rank; k++)
            both.dims[k] = dims[k];
        if (!type_equal(&both, x))
            return infer_error(c,
                               "operand %s does not broadcast to the "
                               "shape of %s",
                               c->node->inputs.data[i]->name,
                               c->node->inputs.data[0]->name);
    }
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < axis ? x->dims[i] : extent_const(1);
    for (int i = 1; i <= 2; i++)
        infer_set(c, i, DT_F32, x->rank, dims);
    return true;
}

static Buffer *given_output(const DefineContext *c, int index)
{
    return index < c->node->outputs.count ? c->out[index] : NULL;
}

static void deliver(DefineContext *c, Buffer *out, const Buffer *computed)
{
    StageBuilder b;
    stage_begin(&b, c->def, out);
    stage_end(&b, expr_cast(b.arena, out->dtype, read_same(&b, computed)));
}

/* (x - mean) * inverse deviation * scale + bias */
static void define_over_axes(DefineContext *c, bool centred)
{
    const Buffer *x = c->in[0];
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", -1), x->rank);
    /* Those of f64 are computed in f64, and delivered in f32 as all are. */
    bool is_wide = x->dtype == DT_F64;
    Buffer *mean = given_output(c, 1), *inverse = given_output(c, 2);
    Moments m = add_moments(c, x, axis, centred, is_wide ? NULL : mean,
                            is_wide ? NULL : inverse);
    if (is_wide && mean)
        deliver(c, mean, m.mean);
    if (is_wide && inverse)
        deliver(c, inverse, m.inverse);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    DType inner = work_dtype(x->dtype);
    const Expr *value = expr_cast(a, inner, read_same(&b, x));
    if (centred)
        value = expr_sub(a, value, read_statistic(&b, m.mean));
    value = expr_mul(a, value, read_statistic(&b, m.inverse));
    value =
        expr_mul(a, value, expr_cast(a, inner, read_broadcast(&b, c->in[1])));
    if (node_has_input(c->node, 2))
        value = expr_add(a, value,
                         expr_cast(a, inner, read_broadcast(&b, c->in[2])));
    stage_end(&b, expr_cast(a, x->dtype, value));
}

static void define_layernorm(DefineContext *c)
{
    define_over_axes(c, true);
}

static void define_rmsnorm(DefineContext *c)
{
    define_over_axes(c, false);
}

/* ---- InstanceNormalization and GroupNormalization: statistics over the
 * spatial axes of each channel, or of each group of channels. */

/* InstanceNormalization is the case of a group for each channel. */
static int64_t group_count(const Node *node, int64_t channels)
{
    return attrs_int(&node->attrs, "num_groups", channels);
}

/* Scale and bias are per channel; version 18's per group are spread by the
 * importer. */
static bool infer_groupnorm(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 3, MAX_RANK))
        return false;
    int64_t channels = extent_known(x->dims[1]);
    int64_t groups = group_count(c->node, channels);
    if (channels < 0)
        return infer_error(c, "its channel count must be constant");
    if (groups < 1 || channels % groups != 0)
        return infer_error(c, "num_groups %lld does not divide %lld channels",
                           (long long)groups, (long long)channels);
    if (x->rank == MAX_RANK && groups != channels && !type_is_static(x))
        return infer_error(c, "rank %d needs constant extents", x->rank);
    for (int i = 1; i <= 2; i++) {
        if (!infer_same_dtype(c, 0, i) || !infer_rank(c, i, 1, 1))
            return false;
        if (extent_known(infer_input(c, i)->dims[0]) != channels)
            return infer_error(c,
                               "operand %s must have one element for each "
                               "of the %lld channels",
                               c->node->inputs.data[i]->name,
                               (long long)channels);
    }
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* x as [N, groups, channels of one, ...]. Without an axis to spare the last
 * two are one, which takes their extents as numbers. */
static Buffer *split_groups(DefineContext *c, const Buffer *x, int64_t each)
{
    bool joins = x->rank == MAX_RANK;
    int last = x->rank - 1;
    int64_t dims[MAX_RANK] = {x->dims[0], x->dims[1] / each, each};
    const Expr *index[MAX_RANK];
    for (int i = 2; i < x->rank && i + 1 < MAX_RANK; i++)
        dims[i + 1] = x->dims[i];
    if (joins)
        dims[last] *= x->dims[last];
    Buffer *split =
        define_temp(c, "split", x->dtype, joins ? x->rank : x->rank + 1, dims);
    StageBuilder b;
    stage_begin(&b, c->def, split);
    Arena *a = b.arena;
    index[0] = b.index[0];
    index[1] = expr_add(a, expr_mul_int(a, b.index[1], each), b.index[2]);
    for (int i = 2; i < x->rank && i + 1 < MAX_RANK; i++)
        index[i] = b.index[i + 1];
    if (joins)
        unflatten_index(a, b.index[last], 2, &x->dims[last - 1],
                        &index[last - 1]);
    stage_end(&b, expr_read(a, x, index));
    return split;
}

static void define_groupnorm(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int64_t groups = group_count(c->node, x->dims[1]);
    int64_t each = x->dims[1] / groups;
    const Buffer *split = each == 1 ? x : split_groups(c, x, each);
    StageBuilder b;
    Moments m = add_moments(c, split, 2, true, NULL, NULL);
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *at[MAX_RANK];
    for (int i = 0; i < split->rank; i++)
        at[i] = expr_int(a, 0);
    at[0] = b.index[0];
    at[1] = expr_div(a, b.index[1], expr_int(a, each));
    const Expr *param[3] = {NULL};
    for (int i = 1; i <= 2; i++)
        param[i] =
            expr_cast(a, m.mean->dtype, expr_read(a, c->in[i], &b.index[1]));
    const Expr *value =
        expr_sub(a, expr_cast(a, m.mean->dtype, read_same(&b, x)),
                 expr_read(a, m.mean, at));
    value = expr_mul(a, value, expr_read(a, m.inverse, at));
    value = expr_add(a, expr_mul(a, value, param[1]), param[2]);
    stage_end(&b, expr_cast(a, x->dtype, value));
}

/* ---- LRN: x / (bias + alpha / size * sum of squares nearby)^beta */

static bool infer_lrn(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int64_t size = attrs_int(&c->node->attrs, "size", 0);
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 3, MAX_RANK))
        return false;
    if (size < 1 || size > INT32_MAX)
        return infer_error(c, "size %lld is out of range", (long long)size);
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* The window of `size` channels is cut at the ends: padding reads zero. */
static void define_lrn(DefineContext *c)
{
    const Attrs *attrs = &c->node->attrs;
    const Buffer *x = c->in[0];
    int64_t size = attrs_int(attrs, "size", 1);
    double alpha = attrs_float(attrs, "alpha", 1e-4);
    double beta = attrs_float(attrs, "beta", 0.75);
    double bias = attrs_float(attrs, "bias", 1);
    Buffer *squares = define_temp_like(c, "squares", x);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, squares);
    Arena *a = b.arena;
    for (int i = 0; i < x->rank; i++)
        index[i] = b.index[i];
    index[1] =
        expr_add_int(a, expr_add(a, b.index[1], stage_reduce(&b, size, "c")),
                     -((size - 1) / 2));
    const Expr *value =
        expr_read_padded(a, x, index, expr_const(a, x->dtype, 0));
    stage_end_reduce(&b, "sum", expr_mul(a, value, value));
    stage_begin(&b, c->def, c->out[0]);
    const Expr *base = expr_mul(a, read_same(&b, squares),
                                expr_const(a, x->dtype, alpha / (double)size));
    base = expr_add(a, const_like(a, base, bias), base);
    base = expr_binary(a, EX_POW, base, const_like(a, base, beta));
    stage_end(&b, expr_div(a, read_same(&b, x), base));
}

static const AttrSpec batch_attrs[] = {{"epsilon", ATTR_FLOAT, false},
                                       {"momentum", ATTR_FLOAT, false},
                                       {"training_mode", ATTR_FLAG, false},
                                       {0}};
static const AttrSpec layer_attrs[] = {{"axis", ATTR_INT, false},
                                       {"epsilon", ATTR_FLOAT, false},
                                       {"stash_type", ATTR_INT, false},
                                       {0}};
static const AttrSpec instance_attrs[] = {{"epsilon", ATTR_FLOAT, false}, {0}};
static const AttrSpec group_attrs[] = {{"epsilon", ATTR_FLOAT, false},
                                       {"num_groups", ATTR_INT, true},
                                       {"stash_type", ATTR_INT, false},
                                       {0}};
static const AttrSpec lrn_attrs[] = {{"alpha", ATTR_FLOAT, false},
                                     {"beta", ATTR_FLOAT, false},
                                     {"bias", ATTR_FLOAT, false},
                                     {"size", ATTR_INT, true},
                                     {0}};

static const Op op_batchnorm = {.name = "BatchNormalization",
                                .domain = "",
                                .min_inputs = 5,
                                .max_inputs = 5,
                                .min_outputs = 1,
                                .max_outputs = 5,
                                .traits = OP_ELEMENTWISE,
                                .attrs = batch_attrs,
                                .infer = infer_batchnorm,
                                .define = define_batchnorm,
                                .decompose = decompose_batchnorm,
                                .since = 15};
static const Op op_layernorm = {.name = "LayerNormalization",
                                .domain = "",
                                .min_inputs = 2,
                                .max_inputs = 3,
                                .min_outputs = 1,
                                .max_outputs = 3,
                                .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                                .attrs = layer_attrs,
                                .infer = infer_layernorm,
                                .define = define_layernorm,
                                .since = 17};
static const Op op_rmsnorm = {.name = "RMSNormalization",
                              .domain = "",
                              .min_inputs = 2,
                              .max_inputs = 2,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                              .attrs = layer_attrs,
                              .infer = infer_layernorm,
                              .define = define_rmsnorm,
                              .since = 23};
static const Op op_instancenorm = {.name = "InstanceNormalization",
                                   .domain = "",
                                   .min_inputs = 3,
                                   .max_inputs = 3,
                                   .min_outputs = 1,
                                   .max_outputs = 1,
                                   .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                                   .attrs = instance_attrs,
                                   .infer = infer_groupnorm,
                                   .define = define_groupnorm,
                                   .since = 6};
static const Op op_groupnorm = {.name = "GroupNormalization",
                                .domain = "",
                                .min_inputs = 3,
                                .max_inputs = 3,
                                .min_outputs = 1,
                                .max_outputs = 1,
                                .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                                .attrs = group_attrs,
                                .infer = infer_groupnorm,
                                .define = define_groupnorm,
                                .since = 21};
static const Op op_lrn = {.name = "LRN",
                          .domain = "",
                          .min_inputs = 1,
                          .max_inputs = 1,
                          .min_outputs = 1,
                          .max_outputs = 1,
                          .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                          .attrs = lrn_attrs,
                          .infer = infer_lrn,
                          .define = define_lrn,
                          .since = 13};

const Op *const ops_normalization[] = {
    &op_batchnorm, &op_layernorm, &op_rmsnorm, &op_instancenorm,
    &op_groupnorm, &op_lrn,       NULL};
