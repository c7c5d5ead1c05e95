/* Resize: nearest, linear and cubic interpolation with ONNX's coordinate
 * modes.
 *
 * Of axes whose extents are numbers it is known where each output place comes
 * from when the definition is made. Nearest places are found in double
 * arithmetic, as the standard's reference does, and then written as
 * floor((o * p + q) / r) in integers where such numbers exist: cheap, and
 * friendly to fusion and vectors. Of other axes kernels do the same
 * arithmetic. */
#include <math.h>
#include <string.h>

#include "ops/rules.h"

typedef enum CoordMode {
    COORD_HALF_PIXEL,
    COORD_PYTORCH,
    COORD_ALIGN,
    COORD_ASYMMETRIC,
    COORD_SYMMETRIC,
    COORD_TF_NN,
    COORD_CROP,
    COORD_COUNT
} CoordMode;

static const char *const coord_names[COORD_COUNT] = {
    [COORD_HALF_PIXEL] = "half_pixel",
    [COORD_PYTORCH] = "pytorch_half_pixel",
    [COORD_ALIGN] = "align_corners",
    [COORD_ASYMMETRIC] = "asymmetric",
    [COORD_SYMMETRIC] = "half_pixel_symmetric",
    [COORD_TF_NN] = "tf_half_pixel_for_nn",
    [COORD_CROP] = "tf_crop_and_resize"};

static const char *const nearest_names[] = {
    "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

/* One axis: input position of output place o is alpha * o + beta. */
typedef struct ResizeAxis {
    int64_t in, out;
    double scale, alpha, beta;
    double start, end; /* of a crop, as shares of the extent */
    bool changes;      /* false: the identity */
    /* Where an extent is known at run time only; NULL: they are numbers. */
    const Expr *length, *out_length;
} ResizeAxis;

static int find_name(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* -1 for an unknown name, which the type rule refuses. */
static CoordMode coord_mode(const Node *node)
{
    return (CoordMode)find_name(coord_names, COORD_COUNT,
                                attrs_string(&node->attrs,
                                             "coordinate_transformation_mode",
                                             "half_pixel"));
}

/* An empty operand is as good as none: version 11 had it so. */
static const Array *operand(const Node *node, int index)
{
    const Array *value =
        node_has_input(node, index) ? node->inputs.data[index]->value : NULL;
    return value && array_count(value) ? value : NULL;
}

/* Where axis `axis` is listed among the resized ones, or -1. */
static int resize_entry(const Node *node, int rank, int axis)
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
    const Array *sizes = operand(node, 3);
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
    switch (coord_mode(node)) {
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
static float rounded_position(const Node *node, const ResizeAxis *r,
                              int64_t place)
{
    float o = (float)place, in = (float)r->in, out = (float)r->out;
    float scale = (float)r->scale, start = (float)r->start;
    float span = (float)r->end - start;
    switch (coord_mode(node)) {
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

/* Everything known about one axis. */
static ResizeAxis resize_axis(const Node *node, int rank, const int64_t *in,
                              int axis)
{
    int count, entry = resize_entry(node, rank, axis);
    ResizeAxis r = {.in = in[axis], .out = in[axis], .scale = 1, .alpha = 1};
    const Array *scales = operand(node, 2), *sizes = operand(node, 3);
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
    bool crop = coord_mode(node) == COORD_CROP;
    if (crop) {
        r.start = array_get(operand(node, 1), entry);
        r.end = array_get(operand(node, 1), count + entry);
    }
    /* Without the half that tf_half_pixel_for_nn would add. */
    if (!crop && r.scale == 1 && r.in == r.out)
        return r;
    set_coordinates(node, &r);
    r.changes = r.in != r.out || r.alpha != 1 || r.beta != 0;
    return r;
}

/* ---- axes of open extents */

/* Element `entry` of the sizes; false where there are scales instead. */
static bool open_size(const Node *node, int entry, Extent *size)
{
    const Tensor *t = node_has_input(node, 3) ? node->inputs.data[3] : NULL;
    if (!t || (!t->symbols && !operand(node, 3)))
        return false;
    *size = extent_operand(node, 3, entry);
    return true;
}

/* A scale as p / 2^k: then the result's extent is that of the data times p,
 * over 2^k, without rounding. */
static bool scaled_extent(Arena *arena, Extent in, double scale, Extent *out)
{
    enum { MOST = 1 << 10 };
    int64_t over = 1;
    while (over < MOST && scale * (double)over != floor(scale * (double)over))
        over *= 2;
    *out = extent_div(
        arena,
        extent_mul(arena, in, extent_const((int64_t)(scale * (double)over))),
        extent_const(over));
    return scale * (double)over == floor(scale * (double)over);
}

/* The extent that an open axis gets; or an error. */
static bool infer_open_axis(InferContext *c, int axis, int entry, Extent *out)
{
    const Attrs *attrs = &c->node->attrs;
    Extent in = infer_input(c, 0)->dims[axis];
    const Array *scales = operand(c->node, 2);
    CoordMode mode = coord_mode(c->node);
    if (attrs_string(attrs, "mode", "nearest")[0] == 'c' ||
        attrs_int(attrs, "antialias", 0) || mode == COORD_CROP ||
        mode == COORD_SYMMETRIC ||
        strcmp(attrs_string(attrs, "keep_aspect_ratio_policy", "stretch"),
               "stretch"))
        return infer_error(c,
                           "the extent of resized axis %d must be a number "
                           "for cubic and antialiased filters, crops, "
                           "half_pixel_symmetric and "
                           "keep_aspect_ratio_policy; fix it with --dim "
                           "NAME=VALUE",
                           axis);
    if (open_size(c->node, entry, out))
        return true;
    return scaled_extent(c->graph->arena, in, array_get(scales, entry), out) ||
           infer_error(c,
                       "axis %d of an extent that is no number cannot be "
                       "resized by %g, only by whole numbers and such over a "
                       "power of two",
                       axis, array_get(scales, entry));
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
static const Expr *open_position(Arena *a, const Node *node,
                                 const ResizeAxis *r, const Expr *place,
                                 DType type)
{
    OpenAxis x = open_axis(a, r, type);
    const Expr *o = expr_cast(a, type, place);
    const Expr *edge = expr_div(a, expr_add(a, o, x.half), x.scale);
    const Expr *centred = expr_sub(a, edge, x.half);
    const Expr *has_more = expr_binary(a, EX_LT, x.one, x.out);
    switch (coord_mode(node)) {
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

static ResizeAxis define_axis(DefineContext *c, int axis)
{
    const Buffer *x = c->in[0], *out = c->out[0];
    const Array *scales = operand(c->node, 2);
    int entry = resize_entry(c->node, x->rank, axis);
    bool has_numbers = scales || operand(c->node, 3);
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

static bool check_modes(InferContext *c)
{
    const Attrs *attrs = &c->node->attrs;
    const char *mode = attrs_string(attrs, "mode", "nearest");
    const char *nearest =
        attrs_string(attrs, "nearest_mode", "round_prefer_floor");
    const char *policy =
        attrs_string(attrs, "keep_aspect_ratio_policy", "stretch");
    if (strcmp(mode, "nearest") != 0 && strcmp(mode, "linear") != 0 &&
        strcmp(mode, "cubic") != 0)
        return infer_error(c,
                           "mode is \"%s\", it must be nearest, linear or "
                           "cubic",
                           mode);
    if (coord_mode(c->node) == (CoordMode)-1)
        return infer_error(
            c, "unknown coordinate_transformation_mode \"%s\"",
            attrs_string(attrs, "coordinate_transformation_mode", ""));
    if (find_name(nearest_names, 4, nearest) < 0)
        return infer_error(c, "unknown nearest_mode \"%s\"", nearest);
    if (strcmp(policy, "stretch") != 0 && strcmp(policy, "not_larger") != 0 &&
        strcmp(policy, "not_smaller") != 0)
        return infer_error(c, "unknown keep_aspect_ratio_policy \"%s\"",
                           policy);
    if (attrs_int(attrs, "antialias", 0) != 0 && mode[0] == 'n')
        return infer_error(c, "antialias is for linear and cubic only");
    return true;
}

/* The operands must be constants of the right length. */
static bool check_lists(InferContext *c, int rank, int *entries)
{
    static const char *const names[] = {NULL, "roi", "scales", "sizes"};
    bool chosen[MAX_RANK] = {false};
    int count;
    const int64_t *axes = attrs_ints(&c->node->attrs, "axes", &count);
    *entries = axes ? count : rank;
    for (int i = 0; axes && i < count; i++) {
        int axis = 0;
        if (!infer_axis(c, "axes", axes[i], rank, &axis))
            return false;
        if (chosen[axis])
            return infer_error(c, "axes lists axis %d twice", axis);
        chosen[axis] = true;
    }
    bool crop = coord_mode(c->node) == COORD_CROP;
    for (int i = 1; i <= 3; i++) {
        if (!node_has_input(c->node, i) || (i == 1 && !crop))
            continue;
        Extent sizes[MAX_RANK];
        bool is_known =
            i == 3 ? infer_extents(c, i, names[i], MAX_RANK, sizes) >= 0
                   : infer_constant(c, i, names[i]) != NULL;
        if (!is_known)
            return false;
        int64_t wanted = i == 1 ? 2 * *entries : *entries;
        int64_t listed = type_count(infer_input(c, i));
        if (listed != 0 && listed != wanted)
            return infer_error(c, "%s must have %lld values", names[i],
                               (long long)wanted);
    }
    if (crop && !operand(c->node, 1))
        return infer_error(c, "tf_crop_and_resize needs the operand roi");
    bool has_sizes =
        node_has_input(c->node, 3) && type_count(infer_input(c, 3)) != 0;
    if (!operand(c->node, 2) == !has_sizes)
        return infer_error(c, "needs either scales or sizes");
    return true;
}

static bool infer_resize(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int64_t in[MAX_RANK];
    Extent dims[MAX_RANK];
    int entries;
    if (!infer_types(c, 0, TYPES_NUMBER) || !check_modes(c) ||
        !check_lists(c, x->rank, &entries))
        return false;
    const Array *scales = operand(c->node, 2), *sizes = operand(c->node, 3);
    for (int i = 0; i < x->rank; i++)
        in[i] = extent_known(x->dims[i]);
    for (int i = 0; i < x->rank; i++) {
        int entry = resize_entry(c->node, x->rank, i);
        dims[i] = x->dims[i];
        if (entry < 0)
            continue;
        double scale = scales ? array_get(scales, entry) : 1;
        int64_t size = sizes ? array_get_int(sizes, entry) : 1;
        bool is_open = in[i] < 0 || (!scales && !sizes);
        if (!(scale > 0 && scale < 1e6) || size < 1 || size > INT32_MAX)
            return infer_error(c,
                               "scales and sizes must be positive and "
                               "within reason; entry %d is %g",
                               entry, scales ? scale : (double)size);
        /* Such an axis stays as it is, without its extent being known. */
        if (in[i] < 0 && scales && scale == 1 &&
            coord_mode(c->node) != COORD_CROP)
            continue;
        if (is_open && x->dims[i].value >= 0) {
            if (!infer_open_axis(c, i, entry, &dims[i]))
                return false;
            continue;
        }
        if (in[i] < 1)
            return infer_error(c,
                               "the extent of resized axis %d must be "
                               "known and positive",
                               i);
        dims[i] = extent_const(resize_axis(c->node, x->rank, in, i).out);
    }
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

/* ---- nearest */

/* The four nearest modes. */
static double round_place(double x, int how)
{
    double low = floor(x);
    switch (how) {
    case 0: /* round_prefer_floor: a half goes down */
        return x - low <= 0.5 ? low : low + 1;
    case 1:
        return x - low < 0.5 ? low : low + 1;
    case 2:
        return low;
    default:
        return ceil(x);
    }
}

static int64_t clamp(int64_t value, int64_t hi)
{
    return value < 0 ? 0 : value > hi ? hi : value;
}

/* q such that floor((o * p + q) / r), cut to the axis, is place[o] for all
 * o: each place narrows the interval of q. */
static bool find_offset(const ResizeAxis *axis, const int64_t *place,
                        int64_t p, int64_t r, int64_t *q)
{
    int64_t lo = INT64_MIN, hi = INT64_MAX;
    for (int64_t o = 0; o < axis->out; o++) {
        int64_t base = place[o] * r - o * p;
        if (place[o] > 0 && base > lo)
            lo = base;
        if (place[o] < axis->in - 1 && base + r - 1 < hi)
            hi = base + r - 1;
    }
    if (lo > hi)
        return false;
    *q = lo > 0 ? lo : hi < 0 ? hi : 0; /* the one nearest to 0 */
    return true;
}

static const Expr *resize_position(Arena *a, const Node *node,
                                   const ResizeAxis *r, const Expr *o)
{
    if (r->length)
        return open_position(a, node, r, o, DT_F64);
    const Expr *at = expr_cast(a, DT_F64, o);
    at = expr_mul(a, at, expr_const(a, DT_F64, r->alpha));
    return expr_add(a, at, expr_const(a, DT_F64, r->beta));
}

/* round_place of a position that is found in the kernel. */
static const Expr *open_place(Arena *a, const Node *node, const ResizeAxis *r,
                              int how, const Expr *o)
{
    const Expr *x = open_position(a, node, r, o, DT_F32);
    const Expr *half = expr_const(a, DT_F32, 0.5);
    const Expr *low = expr_unary(a, EX_FLOOR, x);
    const Expr *part = expr_sub(a, x, low);
    const Expr *up = expr_add(a, low, expr_const(a, DT_F32, 1));
    if (how == 0)
        x = expr_select(a, expr_binary(a, EX_LE, part, half), low, up);
    else if (how == 1)
        x = expr_select(a, expr_binary(a, EX_LT, part, half), low, up);
    else
        x = how == 2 ? low : expr_unary(a, EX_CEIL, x);
    return expr_min(a, expr_max(a, expr_cast(a, DT_I64, x), expr_int(a, 0)),
                    expr_add_int(a, r->length, -1));
}

static const Expr *nearest_index(Arena *a, const Node *node,
                                 const ResizeAxis *axis, const Expr *o)
{
    int how = find_name(
        nearest_names, 4,
        attrs_string(&node->attrs, "nearest_mode", "round_prefer_floor"));
    if (axis->length)
        return open_place(a, node, axis, how, o);
    int64_t *place = ARENA_ARRAY(a, int64_t, axis->out);
    for (int64_t i = 0; i < axis->out; i++) {
        double x = rounded_position(node, axis, i);
        place[i] = clamp((int64_t)round_place(x, how), axis->in - 1);
    }
    int64_t whole = (int64_t)(axis->scale + 0.5);
    const int64_t ratio[][2] = {{1, whole > 0 ? whole : 1},
                                {axis->in, axis->out},
                                {axis->in - 1, axis->out - 1}};
    for (int i = 0; i < 3; i++) {
        int64_t p = ratio[i][0] * 2, r = ratio[i][1] * 2, q = 0;
        if (r <= 0 || !find_offset(axis, place, p, r, &q))
            continue;
        /* Halves only where they matter. */
        if (q % 2 == 0) {
            p /= 2;
            r /= 2;
            q /= 2;
        }
        const Expr *at = expr_add_int(a, expr_mul_int(a, o, p), q);
        at = expr_div(a, at, expr_int(a, r));
        if (q < 0)
            at = expr_max(a, at, expr_int(a, 0));
        if ((axis->out - 1) * p + q >= axis->in * r)
            at = expr_min(a, at, expr_int(a, axis->in - 1));
        return at;
    }
    /* An odd scale: a chain of steps, one where the place changes. */
    const Expr *at = expr_int(a, place[axis->out - 1]);
    for (int64_t i = axis->out - 2; i >= 0; i--)
        if (place[i] != place[i + 1])
            at = expr_select(a, expr_binary(a, EX_LE, o, expr_int(a, i)),
                             expr_int(a, place[i]), at);
    return at;
}

/* ---- linear */

/* Interpolates over the axes from `axis` on; index[] is filled before. */
static const Expr *interpolate(StageBuilder *b, const Node *node,
                               const Buffer *x, const ResizeAxis *axes,
                               int axis, const Expr **index, DType type)
{
    Arena *a = b->arena;
    while (axis < x->rank && !axes[axis].changes) {
        index[axis] = b->index[axis];
        axis++;
    }
    if (axis == x->rank)
        return expr_cast(a, type, expr_read(a, x, index));
    const ResizeAxis *r = &axes[axis];
    const Expr *at = resize_position(a, node, r, b->index[axis]);
    const Expr *low = expr_unary(a, EX_FLOOR, at);
    const Expr *part = expr_cast(a, type, expr_sub(a, at, low));
    const Expr *place = expr_cast(a, DT_I64, low);
    const Expr *zero = expr_int(a, 0);
    const Expr *last =
        r->length ? expr_add_int(a, r->length, -1) : expr_int(a, r->in - 1);
    const Expr *next = expr_add_int(a, place, 1);
    index[axis] = expr_min(a, expr_max(a, place, zero), last);
    const Expr *first = interpolate(b, node, x, axes, axis + 1, index, type);
    index[axis] = expr_min(a, expr_max(a, next, zero), last);
    const Expr *second = interpolate(b, node, x, axes, axis + 1, index, type);
    const Expr *rest = expr_sub(a, const_like(a, part, 1), part);
    return expr_add(a, expr_mul(a, first, rest), expr_mul(a, second, part));
}

/* tf_crop_and_resize gives a fixed value outside the input: positions go up
 * or down steadily, so that the places inside follow each other. */
static const Expr *outside_crop(StageBuilder *b, const Node *node,
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
            float at = rounded_position(node, &axes[i], o);
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

/* ---- cubic and antialiased: an axis at a time, by tables of weights */

/* Elements from `first` on, counted from the one before the position, of a
 * kernel that is widened by 1 / scale where that makes fewer elements. */
typedef struct Filter {
    bool is_cubic;
    double scale;
    int64_t first, taps;
} Filter;

static Filter filter_of(const Node *node, const ResizeAxis *r)
{
    Filter f = {.scale = 1};
    f.is_cubic = attrs_string(&node->attrs, "mode", "")[0] == 'c';
    if (attrs_int(&node->attrs, "antialias", 0) != 0 && r->scale < 1)
        f.scale = r->scale;
    f.first = (int64_t)floor(-(f.is_cubic ? 2 : 1) / f.scale) + 1;
    f.taps = 2 - 2 * f.first;
    return f;
}

/* Keys' kernel, or a triangle, at distance d. */
static const Expr *kernel_weight(Arena *a, const Node *node, const Filter *f,
                                 const Expr *d)
{
    const Expr *one = const_like(a, d, 1), *zero = const_like(a, d, 0);
    if (!f->is_cubic)
        return expr_max(a, zero, expr_sub(a, one, d));
    double k =
        (double)(float)attrs_float(&node->attrs, "cubic_coeff_a", -0.75);
    /* ((k + 2) d - (k + 3)) d d + 1 below 1 */
    const Expr *near = expr_sub(a, expr_mul(a, const_like(a, d, k + 2), d),
                                const_like(a, d, k + 3));
    near = expr_add(a, expr_mul(a, expr_mul(a, near, d), d), one);
    /* ((k d - 5 k) d + 8 k) d - 4 k below 2 */
    const Expr *far = expr_sub(a, expr_mul(a, const_like(a, d, k), d),
                               const_like(a, d, 5 * k));
    far = expr_add(a, expr_mul(a, far, d), const_like(a, d, 8 * k));
    far = expr_sub(a, expr_mul(a, far, d), const_like(a, d, 4 * k));
    far = expr_select(a, expr_binary(a, EX_LT, d, const_like(a, d, 2)), far,
                      zero);
    return expr_select(a, expr_binary(a, EX_LE, d, one), near, far);
}

typedef struct FilterTables {
    Buffer *start;  /* [out]: place of the first element */
    Buffer *weight; /* [out, taps] */
} FilterTables;

static FilterTables add_tables(DefineContext *c, const ResizeAxis *r,
                               const Filter *f, DType type)
{
    bool exclude = attrs_int(&c->node->attrs, "exclude_outside", 0) != 0;
    int64_t dims[2] = {r->out, f->taps};
    Buffer *raw = define_temp(c, "raw", DT_F64, 2, dims);
    Buffer *sum = define_temp(c, "weights", DT_F64, 1, dims);
    FilterTables t = {define_temp(c, "start", DT_I64, 1, dims),
                      define_temp(c, "weight", type, 2, dims)};
    StageBuilder b;
    stage_begin(&b, c->def, t.start);
    Arena *a = b.arena;
    const Expr *low =
        expr_unary(a, EX_FLOOR, resize_position(a, c->node, r, b.index[0]));
    stage_end(&b, expr_add_int(a, expr_cast(a, DT_I64, low), f->first));

    stage_begin(&b, c->def, raw);
    const Expr *place =
        expr_add(a, expr_read(a, t.start, b.index), b.index[1]);
    const Expr *distance =
        expr_sub(a, expr_cast(a, DT_F64, place),
                 resize_position(a, c->node, r, b.index[0]));
    distance = expr_mul(a, expr_unary(a, EX_ABS, distance),
                        expr_const(a, DT_F64, f->scale));
    const Expr *weight = kernel_weight(a, c->node, f, distance);
    if (exclude)
        weight = expr_select(a, index_within(a, place, 0, r->in), weight,
                             const_like(a, weight, 0));
    stage_end(&b, weight);

    stage_begin(&b, c->def, sum);
    const Expr *at[2] = {b.index[0], stage_reduce(&b, f->taps, "k")};
    stage_end_reduce(&b, "sum", expr_read(a, raw, at));

    stage_begin(&b, c->def, t.weight);
    weight = expr_div(a, read_same(&b, raw), expr_read(a, sum, b.index));
    stage_end(&b, expr_cast(a, type, weight));
    return t;
}

/* Beyond the edge is the edge. */
static Buffer *filter_axis(DefineContext *c, Buffer *x, int axis,
                           const ResizeAxis *r, DType type)
{
    Filter f = filter_of(c->node, r);
    FilterTables t = add_tables(c, r, &f, type);
    int64_t dims[MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = r->out;
    Buffer *y = define_temp(c, "axis", type, x->rank, dims);
    StageBuilder b;
    stage_begin(&b, c->def, y);
    Arena *a = b.arena;
    const Expr *o = b.index[axis], *k = stage_reduce(&b, f.taps, "k");
    const Expr *place = expr_add(a, expr_read(a, t.start, &o), k);
    const Expr *at[2] = {o, k};
    const Expr *value = read_along(&b, x, axis, index_clamp(a, place, r->in));
    stage_end_reduce(
        &b, "sum",
        expr_mul(a, expr_cast(a, type, value), expr_read(a, t.weight, at)));
    return y;
}

static void define_filtered(DefineContext *c, const ResizeAxis *axes,
                            DType type)
{
    Buffer *x = c->in[0];
    StageBuilder b;
    for (int i = 0; i < c->in[0]->rank; i++)
        if (axes[i].changes)
            x = filter_axis(c, x, i, &axes[i], type);
    stage_begin(&b, c->def, c->out[0]);
    const Expr *value = expr_cast(b.arena, c->out[0]->dtype, read_same(&b, x));
    if (coord_mode(c->node) == COORD_CROP)
        value = outside_crop(&b, c->node, axes, x->rank, value);
    stage_end(&b, value);
}

static void define_resize(DefineContext *c)
{
    const Buffer *x = c->in[0];
    const char *mode = attrs_string(&c->node->attrs, "mode", "nearest");
    DType type = x->dtype == DT_F64 ? DT_F64 : DT_F32;
    ResizeAxis axes[MAX_RANK];
    const Expr *index[MAX_RANK], *value;
    StageBuilder b;
    for (int i = 0; i < x->rank; i++)
        axes[i] = define_axis(c, i);
    if (mode[0] == 'c' || attrs_int(&c->node->attrs, "antialias", 0) != 0) {
        define_filtered(c, axes, type);
        return;
    }
    stage_begin(&b, c->def, c->out[0]);
    if (mode[0] == 'l') {
        value = interpolate(&b, c->node, x, axes, 0, index, type);
        value = expr_cast(b.arena, x->dtype, value);
    } else {
        for (int i = 0; i < x->rank; i++)
            index[i] = axes[i].changes ? nearest_index(b.arena, c->node,
                                                       &axes[i], b.index[i])
                                       : b.index[i];
        value = expr_read(b.arena, x, index);
    }
    if (coord_mode(c->node) == COORD_CROP)
        value = outside_crop(&b, c->node, axes, x->rank, value);
    stage_end(&b, value);
}

static const AttrSpec resize_attrs[] = {
    {"antialias", ATTR_FLAG, false},
    {"axes", ATTR_INTS, false},
    {"coordinate_transformation_mode", ATTR_STRING, false},
    {"cubic_coeff_a", ATTR_FLOAT, false},
    {"exclude_outside", ATTR_FLAG, false},
    {"extrapolation_value", ATTR_FLOAT, false},
    {"keep_aspect_ratio_policy", ATTR_STRING, false},
    {"mode", ATTR_STRING, false},
    {"nearest_mode", ATTR_STRING, false},
    {0}};

static const Op op_resize = {.name = "Resize",
                             .domain = "",
                             .min_inputs = 1,
                             .max_inputs = 4,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_INJECTIVE | OP_RUNTIME_EXTENTS,
                             .attrs = resize_attrs,
                             .infer = infer_resize,
                             .define = define_resize,
                             .since = 19};

const Op *const ops_resize[] = {&op_resize, NULL};
