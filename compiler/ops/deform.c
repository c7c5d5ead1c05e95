/* DeformConv: a convolution whose taps are moved by offsets that arrive at
 * run time, between elements. */
#include "ops/rules.h"

typedef struct Deform {
    Window w;
    int64_t group, offset_group;
} Deform;

/* One extent of an operand must be `wanted`. */
static bool check_extent(InferContext *c, int input, int axis, int64_t wanted)
{
    int64_t has = extent_known(infer_input(c, input)->dims[axis]);
    if (has < 0 || has == wanted)
        return true;
    return infer_error(c,
                       "operand %s has %lld elements on axis %d, it needs "
                       "%lld",
                       c->node->inputs.data[input]->name, (long long)has, axis,
                       (long long)wanted);
}

static bool read_deform(InferContext *c, Deform *d)
{
    const TensorType *x = infer_input(c, 0), *w = infer_input(c, 1);
    int64_t stated[2];
    d->w.rank = 2;
    d->group = attrs_int(&c->node->attrs, "group", 1);
    d->offset_group = attrs_int(&c->node->attrs, "offset_group", 1);
    if (!infer_ints(c, "kernel_shape", 2, 1, 1, stated))
        return false;
    for (int i = 0; i < 4; i++)
        if (extent_known(w->dims[i]) < 0 ||
            (i && extent_known(x->dims[i]) < 1))
            return infer_error(c, "its shapes must be constant");
    for (int i = 0; i < 2; i++) {
        d->w.kernel[i] = w->dims[2 + i].value;
        if (attrs_find(&c->node->attrs, "kernel_shape") &&
            stated[i] != d->w.kernel[i])
            return infer_error(c,
                               "kernel_shape says %lld where the weight "
                               "has %lld",
                               (long long)stated[i],
                               (long long)d->w.kernel[i]);
    }
    int64_t channels = x->dims[1].value, outputs = w->dims[0].value;
    if (d->group < 1 || d->offset_group < 1 || outputs % d->group != 0 ||
        channels % d->offset_group != 0 ||
        channels != w->dims[1].value * d->group)
        return infer_error(c,
                           "group %lld and offset_group %lld do not fit "
                           "%lld channels and the weight",
                           (long long)d->group, (long long)d->offset_group,
                           (long long)channels);
    return infer_window(c, &d->w);
}

static bool infer_deform(InferContext *c)
{
    Deform d = {0};
    for (int i = 0; i < 5; i++) {
        int rank = i == 3 ? 1 : 4;
        if (node_has_input(c->node, i) &&
            (!infer_types(c, i, TYPES_FLOAT) || !infer_same_dtype(c, 0, i) ||
             !infer_rank(c, i, rank, rank)))
            return false;
    }
    if (!read_deform(c, &d))
        return false;
    const TensorType *x = infer_input(c, 0), *w = infer_input(c, 1);
    Extent dims[4] = {x->dims[0], w->dims[0]};
    for (int i = 0; i < 2; i++)
        if (!infer_window_extent(c, &d.w, i, x->dims[2 + i], &dims[2 + i]))
            return false;
    int64_t taps = d.offset_group * d.w.kernel[0] * d.w.kernel[1];
    bool ok = check_extent(c, 2, 1, 2 * taps);
    for (int i = 0; i < 2; i++)
        ok = ok && check_extent(c, 2, 2 + i, dims[2 + i].value);
    if (node_has_input(c->node, 3))
        ok = ok && check_extent(c, 3, 0, w->dims[0].value);
    for (int i = 0; i < 2 && node_has_input(c->node, 4); i++)
        ok = ok && check_extent(c, 4, 2 + i, dims[2 + i].value);
    if (node_has_input(c->node, 4))
        ok = ok && check_extent(c, 4, 1, taps);
    return ok && infer_set_checked(c, 0, x->dtype, 4, dims);
}

/* The place of a tap along one axis, cut to where padding begins. */
static const Expr *tap_place(StageBuilder *b, const DefineContext *c,
                             const Window *w, int axis, const Expr *k,
                             const Expr *tap, DType type)
{
    Arena *a = b->arena;
    const Expr *at[4] = {b->index[0],
                         expr_add_int(a, expr_mul_int(a, tap, 2), axis),
                         b->index[2], b->index[3]};
    const Expr *offset = expr_cast(a, type, expr_read(a, c->in[2], at));
    const Expr *place =
        expr_add(a, expr_mul_int(a, b->index[2 + axis], w->stride[axis]),
                 expr_mul_int(a, k, w->dilation[axis]));
    place = expr_cast(a, type, expr_add_int(a, place, -w->lo[axis]));
    place = expr_add(a, place, offset);
    double n = (double)c->in[0]->dims[2 + axis];
    place = expr_max(a, place, const_like(a, place, -2));
    return expr_min(a, place, const_like(a, place, n + 1));
}

/* x between four elements; outside of it is zero. */
static const Expr *bilinear(Arena *a, const Buffer *x, const Expr *batch,
                            const Expr *channel, const Expr *const place[2])
{
    const Expr *low[2], *part[2], *sum = NULL;
    DType type = place[0]->dtype;
    for (int i = 0; i < 2; i++) {
        const Expr *floor = expr_unary(a, EX_FLOOR, place[i]);
        low[i] = expr_cast(a, DT_I64, floor);
        part[i] = expr_sub(a, place[i], floor);
    }
    for (int i = 0; i < 4; i++) {
        const Expr *index[4] = {batch, channel,
                                expr_add_int(a, low[0], i >> 1),
                                expr_add_int(a, low[1], i & 1)};
        const Expr *value = expr_cast(
            a, type,
            expr_read_padded(a, x, index, expr_const(a, x->dtype, 0)));
        for (int k = 0; k < 2; k++) {
            bool high = k ? i & 1 : i >> 1;
            const Expr *weight =
                high ? part[k]
                     : expr_sub(a, const_like(a, part[k], 1), part[k]);
            value = expr_mul(a, value, weight);
        }
        sum = sum ? expr_add(a, sum, value) : value;
    }
    return sum;
}

static void define_deform(DefineContext *c)
{
    const Buffer *x = c->in[0], *weight = c->in[1];
    Buffer *out = c->out[0];
    int64_t group = attrs_int(&c->node->attrs, "group", 1);
    int64_t offsets = attrs_int(&c->node->attrs, "offset_group", 1);
    Window w = window_of(c->node, 2, &weight->dims[2], &x->dims[2]);
    DType type = work_dtype(x->dtype);
    Buffer *sum = define_temp_part(c, "sum", type, 4, out);
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    Arena *a = b.arena;
    const Expr *in = stage_reduce(&b, weight->dims[1], "c");
    const Expr *ky = stage_reduce(&b, w.kernel[0], "kh");
    const Expr *kx = stage_reduce(&b, w.kernel[1], "kw");
    const Expr *which =
        expr_div(a, b.index[1], expr_int(a, out->dims[1] / group));
    const Expr *channel =
        expr_add(a, expr_mul_int(a, which, weight->dims[1]), in);
    const Expr *tap = expr_div(a, channel, expr_int(a, x->dims[1] / offsets));
    tap = expr_add(a, expr_mul_int(a, tap, w.kernel[0]), ky);
    tap = expr_add(a, expr_mul_int(a, tap, w.kernel[1]), kx);
    const Expr *place[2] = {tap_place(&b, c, &w, 0, ky, tap, type),
                            tap_place(&b, c, &w, 1, kx, tap, type)};
    const Expr *value = bilinear(a, x, b.index[0], channel, place);
    const Expr *at[4] = {b.index[1], in, ky, kx};
    value = expr_mul(a, value, expr_cast(a, type, expr_read(a, weight, at)));
    if (c->in[4]) {
        const Expr *mask[4] = {b.index[0], tap, b.index[2], b.index[3]};
        value = expr_mul(a, value,
                         expr_cast(a, type, expr_read(a, c->in[4], mask)));
    }
    stage_end_reduce(&b, "sum", value);
    stage_begin(&b, c->def, out);
    value = read_same(&b, sum);
    if (c->in[3])
        value = expr_add(
            a, value, expr_cast(a, type, expr_read(a, c->in[3], &b.index[1])));
    stage_end(&b, expr_cast(a, out->dtype, value));
}

static const AttrSpec deform_attrs[] = {{"dilations", ATTR_INTS, false},
                                        {"group", ATTR_INT, false},
                                        {"kernel_shape", ATTR_INTS, false},
                                        {"offset_group", ATTR_INT, false},
                                        {"pads", ATTR_INTS, false},
                                        {"strides", ATTR_INTS, false},
                                        {0}};

static const Op op_deform = {.name = "DeformConv",
                             .domain = "",
                             .min_inputs = 3,
                             .max_inputs = 5,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                             .attrs = deform_attrs,
                             .infer = infer_deform,
                             .define = define_deform,
                             .since = 19};

const Op *const ops_deform[] = {&op_deform, NULL};
