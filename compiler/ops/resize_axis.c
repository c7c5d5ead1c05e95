/* Resize: where the place of an output element is in the input, along one
 * axis, in each of ONNX's coordinate modes. */
#include <math.h>
#include <string.h>

#include "ops/resize.h"

static const char *const coord_names[COORD_COUNT] = {
    [COORD_HALF_PIXEL] = "half_pixel",
    [COORD_PYTORCH] = "pytorch_half_pixel",
    [COORD_ALIGN] = "align_corners",
    [COORD_ASYMMETRIC] = "asymmetric",
    [COORD_SYMMETRIC] = "half_pixel_symmetric",
    [COORD_TF_NN] = "tf_half_pixel_for_nn",
    [COORD_CROP] = "tf_crop_and_resize"};

CoordMode resize_coord_mode(const Node *node)
{
    const char *name = attrs_string(
        &node->attrs, "coordinate_transformation_mode", "half_pixel");
    for (int i = 0; i < COORD_COUNT; i++)
        if (strcmp(coord_names[i], name) == 0)
            return (CoordMode)i;
    return (CoordMode)-1;
}

/* An empty operand is as good as none: version 11 had it so. */
const Array *resize_operand(const Node *node, int index)
{
    const Array *value =
        node_has_input(node, index) ? node->inputs.data[index]->value : NULL;
    return value && array_count(value) ? value : NULL;
}

/* Where axis `axis` is listed among the resized ones, or -1. */
int resize_entry(const Node *node, int rank, int axis)
{
    int count;
    const int64_t *axes = attrs_ints(&node->attrs, "axes", &count);
    if (!axes)
        return axis;
    for (int i = 0; i < count; i++)
        if (normal_axis(axes[i], rank) == axis)
            return i;
    return -1;
}

/* The scale that keep_aspect_ratio_policy makes of the sizes, 0 for none.
 */
static double common_scale(const Node *node, int rank, const int64_t *in)
{
    const char *policy =
        attrs_string(&node->attrs, "keep_aspect_ratio_policy", "stretch");
    const Array *sizes = resize_operand(node, 3);
    double best = 0;
    if (!sizes || strcmp(policy, "stretch") == 0)
        return 0;
    bool smaller = strcmp(policy, "not_larger") == 0;
    for (int axis = 0; axis < rank; axis++) {
        int entry = resize_entry(node, rank, axis);
        if (entry < 0)
            continue;
        double scale = (double)array_get_int(sizes, entry) / (double)in[axis];
        if (best == 0 || (smaller ? scale < best : scale > best))
            best = scale;
    }
    return best;
}

/* The formulas are those of the standard; scale is output over input as
 * given, which need not be the ratio of the rounded extents. */
static void set_coordinates(const Node *node, ResizeAxis *r)
{
    double in = (double)r->in, out = (double)r->out;
    r->alpha = 1 / r->scale;
    r->beta = 0;
    switch (resize_coord_mode(node)) {
    case COORD_HALF_PIXEL:
        r->beta = 0.5 / r->scale - 0.5;
        break;
    case COORD_PYTORCH:
        if (r->out > 1)
            r->beta = 0.5 / r->scale - 0.5;
        else
            r->alpha = 0;
        break;
    case COORD_ALIGN:
        r->alpha = r->out > 1 ? (in - 1) / (out - 1) : 0;
        break;
    case COORD_SYMMETRIC: {
        double adjust = out / (r->scale * in);
        r->beta = in / 2 * (1 - adjust) + 0.5 / r->scale - 0.5;
        break;
    }
    case COORD_TF_NN:
        r->beta = 0.5 / r->scale;
        break;
    case COORD_CROP:
        r->alpha = r->out > 1 ? (r->end - r->start) * (in - 1) / (out - 1) : 0;
        r->beta = r->out > 1 ? r->start * (in - 1)
                             : 0.5 * (r->start + r->end) * (in - 1);
        break;
    case COORD_ASYMMETRIC:
    case COORD_COUNT:
        break;
    }
}

/* The position of place o as implementations of the standard round it: in
 * f32, step by step. Where positions are cut to whole elements the last bit
 * decides. */
float resize_rounded_position(const Node *node, const ResizeAxis *r,
                              int64_t place)
{
    float o = (float)place, in = (float)r->in, out = (float)r->out;
    float scale = (float)r->scale, start = (float)r->start;
    float span = (float)r->end - start;
    switch (resize_coord_mode(node)) {
    case COORD_PYTORCH:
        return r->out > 1 ? (o + 0.5f) / scale - 0.5f : 0;
    case COORD_ALIGN:
        return r->out > 1 ? o * (in - 1) / (out - 1) : 0;
    case COORD_SYMMETRIC: {
        float offset = in / 2 * (1 - out / (scale * in));
        return offset + (o + 0.5f) / scale - 0.5f;
    }
    case COORD_TF_NN:
        return (o + 0.5f) / scale;
    case COORD_CROP:
        if (r->out > 1)
            return start * (in - 1) + o * span * (in - 1) / (out - 1);
        return 0.5f * (start + (float)r->end) * (in - 1);
    case COORD_ASYMMETRIC:
        return o / scale;
    default:
        return (o + 0.5f) / scale - 0.5f;
    }
}

ResizeAxis resize_axis(const Node *node, int rank, const int64_t *in, int axis)
{
    int count, entry = resize_entry(node, rank, axis);
    ResizeAxis r = {.in = in[axis], .out = in[axis], .scale = 1, .alpha = 1};
    const Array *scales = resize_operand(node, 2),
                *sizes = resize_operand(node, 3);
    if (entry < 0)
        return r;
    if (!attrs_ints(&node->attrs, "axes", &count))
        count = rank;
    double common = common_scale(node, rank, in);
    if (common > 0) {
        r.scale = common;
        r.out = (int64_t)floor(common * (double)r.in + 0.5);
    } else if (sizes) {
        r.out = array_get_int(sizes, entry);
        r.scale = (double)r.out / (double)r.in;
    } else {
        /* The product of two f32, as the standard's shape rule has it. */
        r.scale = array_get(scales, entry);
        r.out = (int64_t)floorf((float)r.in * (float)r.scale);
    }
    bool crop = resize_coord_mode(node) == COORD_CROP;
    if (crop) {
        r.start = array_get(resize_operand(node, 1), entry);
        r.end = array_get(resize_operand(node, 1), count + entry);
    }
    /* Without the half that tf_half_pixel_for_nn would add. */
    if (!crop && r.scale == 1 && r.in == r.out)
        return r;
    set_coordinates(node, &r);
    r.changes = r.in != r.out || r.alpha != 1 || r.beta != 0;
    return r;
}

/* The numbers of an open axis in kernels, as floats of a type. */
typedef struct OpenAxis {
    const Expr *in, *out, *scale;
    const Expr *zero, *half, *one;
} OpenAxis;

static OpenAxis open_axis(Arena *a, const ResizeAxis *r, DType type)
{
    OpenAxis x = {.in = expr_cast(a, type, r->length),
                  .out = expr_cast(a, type, r->out_length),
                  .zero = expr_const(a, type, 0),
                  .half = expr_const(a, type, 0.5),
                  .one = expr_const(a, type, 1)};
    x.scale = r->scale > 0
                  ? expr_const(a, type, r->scale)
                  : expr_cast(a, type,
                              expr_div(a, expr_cast(a, DT_F64, r->out_length),
                                       expr_cast(a, DT_F64, r->length)));
    return x;
}

/* As rounded_position, where `type` is f32; as set_coordinates says, where it
 * is f64. */
const Expr *resize_open_position(Arena *a, const Node *node,
                                 const ResizeAxis *r, const Expr *place,
                                 DType type)
{
    OpenAxis x = open_axis(a, r, type);
    const Expr *o = expr_cast(a, type, place);
    const Expr *edge = expr_div(a, expr_add(a, o, x.half), x.scale);
    const Expr *centred = expr_sub(a, edge, x.half);
    const Expr *has_more = expr_binary(a, EX_LT, x.one, x.out);
    switch (resize_coord_mode(node)) {
    case COORD_PYTORCH:
        return expr_select(a, has_more, centred, x.zero);
    case COORD_ALIGN:
        return expr_select(a, has_more,
                           expr_div(a,
                                    expr_mul(a, o, expr_sub(a, x.in, x.one)),
                                    expr_sub(a, x.out, x.one)),
                           x.zero);
    case COORD_TF_NN:
        return edge;
    case COORD_ASYMMETRIC:
        return expr_div(a, o, x.scale);
    default:
        return centred;
    }
}

ResizeAxis resize_define_axis(DefineContext *c, int axis)
{
    const Buffer *x = c->in[0], *out = c->out[0];
    const Array *scales = resize_operand(c->node, 2);
    int entry = resize_entry(c->node, x->rank, axis);
    bool has_numbers = scales || resize_operand(c->node, 3);
    bool is_open = x->limit[axis] || out->limit[axis] || !has_numbers;
    ResizeAxis r = {.in = x->dims[axis], .out = out->dims[axis]};
    if (has_numbers &&
        (!is_open || entry < 0 || (scales && array_get(scales, entry) == 1)))
        return resize_axis(c->node, x->rank, x->dims, axis);
    /* To as many as there are: the identity. */
    if (entry < 0 || extent_equal(c->node->inputs.data[0]->type.dims[axis],
                                  c->node->outputs.data[0]->type.dims[axis]))
        return r;
    r.changes = true;
    r.scale = scales ? array_get(scales, entry) : 0;
    r.length = define_extent(c, c->node->inputs.data[0]->type.dims[axis]);
    r.out_length = define_extent(c, c->node->outputs.data[0]->type.dims[axis]);
    return r;
}

const Expr *resize_position(Arena *a, const Node *node, const ResizeAxis *r,
                            const Expr *o)
{
    if (r->length)
        return resize_open_position(a, node, r, o, DT_F64);
    const Expr *at = expr_cast(a, DT_F64, o);
    at = expr_mul(a, at, expr_const(a, DT_F64, r->alpha));
    return expr_add(a, at, expr_const(a, DT_F64, r->beta));
}

/* tf_crop_and_resize gives a fixed value outside the input: positions go up
 * or down steadily, so that the places inside follow each other. */
const Expr *resize_outside_crop(StageBuilder *b, const Node *node,
                                const ResizeAxis *axes, int rank,
                                const Expr *value)
{
    Arena *a = b->arena;
    const Expr *inside = expr_const_int(a, DT_BOOL, 1);
    double fill = attrs_float(&node->attrs, "extrapolation_value", 0);
    for (int i = 0; i < rank; i++) {
        int64_t first = axes[i].out, end = 0;
        if (!axes[i].changes)
            continue;
        for (int64_t o = axes[i].out - 1; o >= 0; o--) {
            float at = resize_rounded_position(node, &axes[i], o);
            if (!(at >= 0 && at <= (float)(axes[i].in - 1)))
                continue;
            first = o;
            end = end ? end : o + 1;
        }
        inside = expr_binary(a, EX_AND, inside,
                             index_within(a, b->index[i], first, end));
    }
    return expr_select(a, inside, value, const_like(a, value, fill));
}
