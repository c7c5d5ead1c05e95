/* Operators that move elements beside a filling, or between an axis and
 * blocks of two others. */
#include <string.h>

#include "ops/rules.h"

/* ---- Pad */

typedef struct PadAmounts {
    int64_t lo[MAX_RANK], hi[MAX_RANK];
} PadAmounts;

/* All beginnings come first in the list, then all ends. */
static PadAmounts pad_amounts(const Node *node, int rank)
{
    PadAmounts pad = {{0}, {0}};
    const Array *pads = node->inputs.data[1]->value;
    const Array *axes =
        node_has_input(node, 3) ? node->inputs.data[3]->value : NULL;
    int64_t count = array_count(pads) / 2;
    for (int64_t i = 0; i < count; i++) {
        int axis = normal_axis(axes ? array_get_int(axes, i) : i, rank);
        pad.lo[axis] = array_get_int(pads, i);
        pad.hi[axis] = array_get_int(pads, count + i);
    }
    return pad;
}

/* Negative amounts cut elements off: so many of them. */
static int64_t cut(int64_t amount)
{
    return amount < 0 ? -amount : 0;
}

static bool infer_pad(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    const char *mode = attrs_string(&c->node->attrs, "mode", "constant");
    const Array *pads = infer_constant(c, 1, "pads"), *axes = NULL;
    bool chosen[MAX_RANK] = {false};
    Extent dims[MAX_RANK];
    if (!pads)
        return false;
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "reflect") != 0 &&
        strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0)
        return infer_error(c,
                           "mode is \"%s\", it must be constant, reflect, "
                           "edge or wrap",
                           mode);
    if (node_has_input(c->node, 2) &&
        (!infer_same_dtype(c, 0, 2) || type_count(infer_input(c, 2)) != 1))
        return infer_error(c, "constant_value must be one element of the "
                              "input's type");
    if (node_has_input(c->node, 3)) {
        axes = infer_constant(c, 3, "axes");
        if (!axes || !infer_axes(c, axes, x->rank, chosen))
            return false;
    }
    int64_t wanted = 2 * (axes ? array_count(axes) : x->rank);
    if (pads->rank != 1 || pads->dims[0] != wanted ||
        dtype_is_float(pads->dtype))
        return infer_error(c, "pads must be %lld integers", (long long)wanted);
    for (int64_t i = 0; i < wanted; i++)
        if (array_get_int(pads, i) > INT32_MAX ||
            array_get_int(pads, i) < -INT32_MAX)
            return infer_error(c, "pads holds %lld",
                               (long long)array_get_int(pads, i));
    PadAmounts pad = pad_amounts(c->node, x->rank);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = extent_add(c->graph->arena, x->dims[i],
                             extent_const(pad.lo[i] + pad.hi[i]));
        int64_t known = extent_known(dims[i]);
        if (extent_is_const(dims[i]) && known < 0)
            return infer_error(c,
                               "pads of %lld and %lld leave nothing of "
                               "axis %d",
                               (long long)pad.lo[i], (long long)pad.hi[i], i);
        int64_t left =
            extent_known(x->dims[i]) - cut(pad.lo[i]) - cut(pad.hi[i]);
        if (mode[0] != 'c' && extent_is_const(x->dims[i]) && left <= 0 &&
            known > 0)
            return infer_error(c,
                               "axis %d is empty: there is nothing to "
                               "repeat",
                               i);
    }
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

/* The position a place outside [0, length) stands for. */
static const Expr *fold_back(Arena *a, const Expr *at, const Expr *length,
                             char mode)
{
    const Expr *last = expr_add_int(a, length, -1), *one = expr_int(a, 1);
    if (mode == 'e' || expr_is_int(length, 1))
        return expr_min(a, expr_max(a, at, expr_int(a, 0)), last);
    if (mode == 'w')
        return expr_binary(a, EX_MOD, at, length);
    /* Back and forth with the period of both ways. */
    const Expr *period = expr_mul_int(a, last, 2);
    if (period->kind != EX_INT)
        period = expr_max(a, period, one);
    const Expr *phase = expr_binary(a, EX_MOD, at, period);
    return expr_min(a, phase, expr_sub(a, period, phase));
}

/* A filling is a padded read, which schedules know how to split into border
 * and interior; other modes compute the place. */
static void define_pad(DefineContext *c)
{
    const Buffer *x = c->in[0];
    char mode = attrs_string(&c->node->attrs, "mode", "constant")[0];
    PadAmounts pad = pad_amounts(c->node, x->rank);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    bool outside = false;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    for (int i = 0; i < x->rank; i++) {
        index[i] = expr_add_int(a, b.index[i], -pad.lo[i]);
        if (pad.lo[i] <= 0 && pad.hi[i] <= 0)
            continue;
        outside = true;
        if (mode == 'c')
            continue;
        /* What is cut off is not there to be repeated. */
        int64_t before = cut(pad.lo[i]), after = cut(pad.hi[i]);
        const Expr *length =
            expr_add_int(a, buffer_extent(a, x, i), -before - after);
        index[i] = expr_add_int(a, index[i], -before);
        index[i] =
            expr_add_int(a, fold_back(a, index[i], length, mode), before);
    }
    if (mode != 'c' || !outside) {
        stage_end(&b, expr_read(a, x, index));
        return;
    }
    const Expr *fill = dtype_is_float(x->dtype)
                           ? expr_const(a, x->dtype, 0)
                           : expr_const_int(a, x->dtype, 0);
    if (node_has_input(c->node, 2)) {
        const Array *value = c->node->inputs.data[2]->value;
        const Expr *zero[MAX_RANK];
        for (int i = 0; i < c->in[2]->rank; i++)
            zero[i] = expr_int(a, 0);
        if (value && dtype_is_float(value->dtype))
            fill = expr_const(a, x->dtype, array_get(value, 0));
        else if (value)
            fill = expr_const_int(a, x->dtype, array_get_int(value, 0));
        else
            fill = expr_read(a, c->in[2], zero);
    }
    stage_end(&b, expr_read_padded(a, x, index, fill));
}

/* ---- DepthToSpace and SpaceToDepth */

/* The two operators are inverse to each other. */
static bool infer_blocks(InferContext *c, bool to_space)
{
    const TensorType *x = infer_input(c, 0);
    int64_t size = attrs_int(&c->node->attrs, "blocksize", 0);
    const char *mode = attrs_string(&c->node->attrs, "mode", "DCR");
    if (!infer_rank(c, 0, 4, 4))
        return false;
    if (size < 1 || size > 1 << 15)
        return infer_error(c, "blocksize %lld is out of range",
                           (long long)size);
    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
        return infer_error(c, "mode is \"%s\", it must be DCR or CRD", mode);
    Arena *arena = c->graph->arena;
    Extent blocks = extent_const(size), cells = extent_const(size * size);
    Extent dims[4] = {x->dims[0]};
    int64_t channels = extent_known(x->dims[1]);
    if (to_space && channels >= 0 && channels % (size * size) != 0)
        return infer_error(c, "%lld channels are no multiple of %lld",
                           (long long)channels, (long long)(size * size));
    dims[1] = to_space ? extent_div(arena, x->dims[1], cells)
                       : extent_mul(arena, x->dims[1], cells);
    for (int i = 2; i < 4; i++) {
        int64_t known = extent_known(x->dims[i]);
        if (!to_space && known >= 0 && known % size != 0)
            return infer_error(c, "%lld elements are no multiple of %lld",
                               (long long)known, (long long)size);
        dims[i] = to_space ? extent_mul(arena, x->dims[i], blocks)
                           : extent_div(arena, x->dims[i], blocks);
    }
    return infer_set_checked(c, 0, x->dtype, 4, dims);
}

static bool infer_depth_to_space(InferContext *c)
{
    return infer_blocks(c, true);
}

static bool infer_space_to_depth(InferContext *c)
{
    return infer_blocks(c, false);
}

/* DCR: the cell is the outer part of the channel; CRD: the inner. */
static void define_depth_to_space(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int64_t size = attrs_int(&c->node->attrs, "blocksize", 1);
    bool depth_first = attrs_string(&c->node->attrs, "mode", "DCR")[0] == 'D';
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *channels = buffer_extent(a, c->out[0], 1);
    const Expr *by = expr_int(a, size);
    const Expr *row = expr_binary(a, EX_MOD, b.index[2], by);
    const Expr *column = expr_binary(a, EX_MOD, b.index[3], by);
    const Expr *cell = expr_add(a, expr_mul_int(a, row, size), column);
    const Expr *channel =
        depth_first
            ? expr_add(a, expr_mul(a, cell, channels), b.index[1])
            : expr_add(a, expr_mul_int(a, b.index[1], size * size), cell);
    const Expr *index[4] = {b.index[0], channel, expr_div(a, b.index[2], by),
                            expr_div(a, b.index[3], by)};
    stage_end(&b, expr_read(a, x, index));
}

/* Always in the order of DCR. */
static void define_space_to_depth(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int64_t size = attrs_int(&c->node->attrs, "blocksize", 1);
    bool depth_first = attrs_string(&c->node->attrs, "mode", "DCR")[0] == 'D';
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *depth =
        x->dims[1] > 0 ? buffer_extent(a, x, 1) : expr_int(a, 1);
    const Expr *inner = depth_first ? depth : expr_int(a, size * size);
    const Expr *outer = expr_div(a, b.index[1], inner);
    inner = expr_binary(a, EX_MOD, b.index[1], inner);
    const Expr *cell = depth_first ? outer : inner;
    const Expr *channel = depth_first ? inner : outer;
    const Expr *row = expr_div(a, cell, expr_int(a, size));
    const Expr *column = expr_binary(a, EX_MOD, cell, expr_int(a, size));
    const Expr *index[4] = {
        b.index[0], channel,
        expr_add(a, expr_mul_int(a, b.index[2], size), row),
        expr_add(a, expr_mul_int(a, b.index[3], size), column)};
    stage_end(&b, expr_read(a, x, index));
}

static const AttrSpec pad_attrs[] = {{"mode", ATTR_STRING, false}, {0}};
static const AttrSpec block_attrs[] = {
    {"blocksize", ATTR_INT, true}, {"mode", ATTR_STRING, false}, {0}};

#define ROW(field, op_name, least, most, outputs, more, specs, rule,          \
            definition, first)                                                \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "",                              \
                                   .min_inputs = least,                       \
                                   .max_inputs = most,                        \
                                   .min_outputs = 1,                          \
                                   .max_outputs = outputs,                    \
                                   .traits = OP_INJECTIVE | (more),           \
                                   .attrs = specs,                            \
                                   .infer = rule,                             \
                                   .define = definition,                      \
                                   .since = first}
ROW(pad, "Pad", 2, 4, 1, OP_RUNTIME_EXTENTS, pad_attrs, infer_pad, define_pad,
    19);
ROW(depth_to_space, "DepthToSpace", 1, 1, 1, OP_RUNTIME_EXTENTS, block_attrs,
    infer_depth_to_space, define_depth_to_space, 13);
ROW(space_to_depth, "SpaceToDepth", 1, 1, 1, OP_RUNTIME_EXTENTS, block_attrs,
    infer_space_to_depth, define_space_to_depth, 13);

const Op *const ops_pad[] = {&row_pad, &row_depth_to_space,
                             &row_space_to_depth, NULL};
