/* Sampling images at places that arrive at run time: GridSample and RoiAlign;
 * and AffineGrid, which makes such places. No place reads outside of an
 * image, not even NaN. */
#include <math.h>
#include <string.h>

#include "ops/rules.h"

/* ---- AffineGrid */

static bool infer_affine(InferContext *c)
{
    const TensorType *theta = infer_input(c, 0);
    Extent dims[MAX_RANK];
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 3, 3) ||
        !infer_types(c, 1, TYPES_INDEX) || !infer_rank(c, 1, 1, 1))
        return false;
    const Array *size = infer_constant(c, 1, "size");
    if (!size)
        return false;
    int64_t count = array_count(size), axes = count - 2;
    if (axes < 2 || axes > 3)
        return infer_error(c, "size must be 4 or 5 integers");
    if (extent_known(theta->dims[0]) != array_get_int(size, 0) ||
        extent_known(theta->dims[1]) != axes ||
        extent_known(theta->dims[2]) != axes + 1)
        return infer_error(c, "theta must be [%lld,%lld,%lld]",
                           (long long)array_get_int(size, 0), (long long)axes,
                           (long long)axes + 1);
    dims[0] = theta->dims[0];
    for (int i = 1; i <= axes; i++) {
        int64_t extent = array_get_int(size, i + 1);
        if (extent < 1 || extent > INT32_MAX)
            return infer_error(c, "size holds %lld", (long long)extent);
        dims[i] = extent_const(extent);
    }
    dims[axes + 1] = extent_const(axes);
    return infer_set_checked(c, 0, theta->dtype, (int)axes + 2, dims);
}

/* Place i of n in [-1, 1]: of the first and last element, or of their
 * outer edges. */
static const Expr *normal_place(Arena *a, const Expr *i, int64_t n, bool align,
                                DType type)
{
    if (align && n == 1)
        return expr_const(a, type, 0);
    double step = 2 / (double)(align ? n - 1 : n);
    double first = align ? -1 : step / 2 - 1;
    return expr_add(
        a, expr_mul(a, expr_cast(a, type, i), expr_const(a, type, step)),
        expr_const(a, type, first));
}

/* theta times (x, y, z, 1), where x goes along the last axis. */
static void define_affine(DefineContext *c)
{
    const Buffer *theta = c->in[0], *out = c->out[0];
    bool align = attrs_int(&c->node->attrs, "align_corners", 0) != 0;
    int axes = out->rank - 2;
    DType type = work_dtype(out->dtype);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *at[3] = {b.index[0], b.index[axes + 1], NULL}, *sum = NULL;
    for (int i = 0; i <= axes; i++) {
        at[2] = expr_int(a, i);
        const Expr *term = expr_cast(a, type, expr_read(a, theta, at));
        int axis = axes - i;
        if (i < axes)
            term = expr_mul(
                a, term,
                normal_place(a, b.index[axis], out->dims[axis], align, type));
        sum = sum ? expr_add(a, sum, term) : term;
    }
    stage_end(&b, expr_cast(a, out->dtype, sum));
}

/* ---- GridSample */

typedef enum Interpolation { NEAREST, LINEAR, CUBIC } Interpolation;

typedef struct Sampler {
    Interpolation mode;
    char padding; /* first letter of zeros, border, reflection */
    bool align;
    int axes; /* spatial ones */
    DType type;
    const Buffer *x;
} Sampler;

/* Version 16 had names for two axes only. */
static bool read_sampler(const Node *node, Sampler *s)
{
    static const struct {
        const char *name;
        Interpolation mode;
    } modes[] = {{"linear", LINEAR},
                 {"bilinear", LINEAR},
                 {"cubic", CUBIC},
                 {"bicubic", CUBIC},
                 {"nearest", NEAREST}};
    const char *mode = attrs_string(&node->attrs, "mode", "linear");
    const char *padding = attrs_string(&node->attrs, "padding_mode", "zeros");
    bool found = false;
    *s = (Sampler){.padding = padding[0]};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (!strcmp(modes[i].name, mode)) {
            s->mode = modes[i].mode;
            found = true;
        }
    s->align = attrs_int(&node->attrs, "align_corners", 0) != 0;
    return found && (!strcmp(padding, "zeros") || !strcmp(padding, "border") ||
                     !strcmp(padding, "reflection"));
}

static bool infer_grid_sample(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *grid = infer_input(c, 1);
    Extent dims[MAX_RANK];
    Sampler s;
    if (!read_sampler(c->node, &s))
        return infer_error(c, "mode is linear, nearest or cubic, padding_mode "
                              "zeros, border or reflection");
    if (!infer_rank(c, 0, 3, 5) || !infer_rank(c, 1, x->rank, x->rank) ||
        !infer_types(c, 0, s.mode == NEAREST ? TYPES_ANY : TYPES_NUMBER) ||
        !infer_types(c, 1, TYPES_FLOAT))
        return false;
    if (!extent_equal(x->dims[0], grid->dims[0]) ||
        extent_known(grid->dims[x->rank - 1]) != x->rank - 2)
        return infer_error(c,
                           "the grid must have a place of %d coordinates "
                           "for each element, in as many batches",
                           x->rank - 2);
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int i = 2; i < x->rank; i++) {
        if (extent_known(x->dims[i]) < 1)
            return infer_error(c,
                               "axis %d must have a known extent and "
                               "elements",
                               i);
        dims[i] = grid->dims[i - 1];
    }
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

/* Folded at both ends of [lo, hi] until it is inside. */
static const Expr *reflect(Arena *a, const Expr *x, double lo, double hi)
{
    double range = hi - lo;
    if (range <= 0)
        return expr_const(a, x->dtype, lo);
    const Expr *whole = const_like(a, x, 2 * range);
    x = expr_sub(a, x, const_like(a, x, lo));
    const Expr *turns = expr_unary(a, EX_FLOOR, expr_div(a, x, whole));
    x = expr_sub(a, x, expr_mul(a, turns, whole));
    x = expr_min(a, x, expr_sub(a, whole, x));
    return expr_add(a, x, const_like(a, x, lo));
}

/* From [-1, 1] to places of an axis, as far as they matter: padding begins
 * within a few elements of the ends. */
static const Expr *sample_place(Arena *a, const Sampler *s, const Expr *g,
                                int64_t n)
{
    double lo = s->align ? 0 : -0.5;
    double hi = (double)(n - 1) - lo;
    const Expr *one = const_like(a, g, 1), *half = const_like(a, g, 0.5);
    const Expr *x = expr_add(a, g, one);
    if (s->align)
        x = expr_mul(a, expr_mul(a, x, half),
                     const_like(a, g, (double)(n - 1)));
    else
        x = expr_mul(
            a, expr_sub(a, expr_mul(a, x, const_like(a, g, (double)n)), one),
            half);
    if (s->mode == NEAREST)
        x = expr_unary(a, EX_ROUND, x);
    if (s->padding == 'r')
        return reflect(a, x, lo, hi);
    if (s->padding == 'b') {
        const Expr *below = expr_binary(a, EX_LT, x, const_like(a, x, lo));
        const Expr *above = expr_binary(a, EX_LT, const_like(a, x, hi), x);
        x = expr_select(a, below, const_like(a, x, 0), x);
        return expr_select(a, above, const_like(a, x, (double)(n - 1)), x);
    }
    x = expr_max(a, x, const_like(a, x, -4));
    return expr_min(a, x, const_like(a, x, (double)n + 3));
}

/* The element that place `at` of an axis stands for. */
static const Expr *padded_place(Arena *a, const Sampler *s, const Expr *at,
                                int64_t n)
{
    if (s->padding == 'z')
        return at; /* the read gives zero outside */
    if (s->padding == 'r') {
        /* There and back again, with or without the ends twice. */
        int64_t period = s->align ? 2 * (n - 1) : 2 * n;
        int64_t mirror = s->align ? period : period - 1;
        if (period > 0) {
            at = expr_binary(a, EX_MOD, at, expr_int(a, period));
            at = expr_min(a, at, expr_sub(a, expr_int(a, mirror), at));
        }
    }
    return index_clamp(a, at, n);
}

/* Weight of tap i at the distance `part` from the element below. */
static const Expr *tap_weight(Arena *a, Interpolation mode, int i,
                              const Expr *part)
{
    const Expr *one = const_like(a, part, 1);
    if (mode == LINEAR)
        return i ? part : expr_sub(a, one, part);
    const double k = -0.75; /* as in Keys' kernel */
    const Expr *d = i < 2 ? part : expr_sub(a, one, part);
    if (i == 1 || i == 2) {
        const Expr *v = expr_sub(a, expr_mul(a, const_like(a, d, k + 2), d),
                                 const_like(a, d, k + 3));
        return expr_add(a, expr_mul(a, expr_mul(a, v, d), d), one);
    }
    d = expr_add(a, d, one);
    const Expr *v = expr_sub(a, expr_mul(a, const_like(a, d, k), d),
                             const_like(a, d, 5 * k));
    v = expr_add(a, expr_mul(a, v, d), const_like(a, d, 8 * k));
    return expr_sub(a, expr_mul(a, v, d), const_like(a, d, 4 * k));
}

/* The value at places place[] of the axes from `axis` on. */
static const Expr *sample(Arena *a, const Sampler *s, const Expr *const *place,
                          int axis, const Expr **index)
{
    const Buffer *x = s->x;
    if (axis == s->axes) {
        const Expr *value =
            s->padding == 'z'
                ? expr_read_padded(a, x, index, expr_const(a, x->dtype, 0))
                : expr_read(a, x, index);
        return s->mode == NEAREST ? value : expr_cast(a, s->type, value);
    }
    int64_t n = x->dims[2 + axis];
    if (s->mode == NEAREST) {
        index[2 + axis] =
            padded_place(a, s, expr_cast(a, DT_I64, place[axis]), n);
        return sample(a, s, place, axis + 1, index);
    }
    const Expr *low = expr_unary(a, EX_FLOOR, place[axis]), *sum = NULL;
    const Expr *part = expr_sub(a, place[axis], low);
    const Expr *start = expr_cast(a, DT_I64, low);
    int taps = s->mode == LINEAR ? 2 : 4, first = s->mode == LINEAR ? 0 : -1;
    for (int i = 0; i < taps; i++) {
        index[2 + axis] =
            padded_place(a, s, expr_add_int(a, start, first + i), n);
        const Expr *term = expr_mul(a, tap_weight(a, s->mode, i, part),
                                    sample(a, s, place, axis + 1, index));
        sum = sum ? expr_add(a, sum, term) : term;
    }
    return sum;
}

static void define_grid_sample(DefineContext *c)
{
    const Buffer *x = c->in[0], *grid = c->in[1];
    const Expr *at[MAX_RANK], *index[MAX_RANK], *place[MAX_RANK];
    Sampler s;
    StageBuilder b;
    read_sampler(c->node, &s);
    s.x = x;
    s.axes = x->rank - 2;
    s.type = x->dtype == DT_F64 || grid->dtype == DT_F64 ? DT_F64 : DT_F32;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    index[0] = at[0] = b.index[0];
    index[1] = b.index[1];
    for (int i = 0; i < s.axes; i++)
        at[1 + i] = b.index[2 + i];
    for (int i = 0; i < s.axes; i++) {
        /* Coordinates come in the order x, y, z. */
        at[s.axes + 1] = expr_int(a, s.axes - 1 - i);
        const Expr *g = expr_cast(a, s.type, expr_read(a, grid, at));
        place[i] = sample_place(a, &s, g, x->dims[2 + i]);
    }
    stage_end(&b, expr_cast(a, x->dtype, sample(a, &s, place, 0, index)));
}

/* ---- RoiAlign */

static bool half_pixel(const Node *node)
{
    return !strcmp(attrs_string(&node->attrs, "coordinate_transformation_mode",
                                "half_pixel"),
                   "half_pixel");
}

/* Samples along one axis of a bin: the attribute, or where that is 0 as many
 * as elements, of the largest of the constant rois. */
static int64_t roi_samples(const Node *node, int axis, int64_t bins)
{
    int64_t given = attrs_int(&node->attrs, "sampling_ratio", 0), most = 1;
    const Array *rois = node->inputs.data[1]->value;
    double scale = attrs_float(&node->attrs, "spatial_scale", 1);
    if (given > 0)
        return given;
    for (int64_t i = 0; rois && i < array_count(rois) / 4; i++) {
        double size = (array_get(rois, i * 4 + 3 - axis) -
                       array_get(rois, i * 4 + 1 - axis)) *
                      scale;
        /* One more, for rounding: those too many do not count. */
        int64_t samples = (int64_t)ceil(size / (double)bins) + 1;
        if (samples > most)
            most = samples;
    }
    return most;
}

static bool infer_roi_align(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *rois = infer_input(c, 1);
    const Attrs *attrs = &c->node->attrs;
    const char *mode = attrs_string(attrs, "mode", "avg");
    const char *how =
        attrs_string(attrs, "coordinate_transformation_mode", "half_pixel");
    int64_t height = attrs_int(attrs, "output_height", 1);
    int64_t width = attrs_int(attrs, "output_width", 1);
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 4, 4) ||
        !infer_same_dtype(c, 0, 1) || !infer_rank(c, 1, 2, 2) ||
        !infer_types(c, 2, TYPES_INDEX) || !infer_rank(c, 2, 1, 1))
        return false;
    if (strcmp(mode, "avg") && strcmp(mode, "max"))
        return infer_error(c, "mode is avg or max");
    if (strcmp(how, "half_pixel") && strcmp(how, "output_half_pixel"))
        return infer_error(c, "coordinate_transformation_mode is half_pixel "
                              "or output_half_pixel");
    if (height < 1 || width < 1 || height > INT32_MAX || width > INT32_MAX)
        return infer_error(c, "an output of %lld x %lld", (long long)height,
                           (long long)width);
    if (extent_known(rois->dims[1]) != 4 ||
        !extent_equal(rois->dims[0], infer_input(c, 2)->dims[0]))
        return infer_error(c, "rois must be four numbers for each of "
                              "batch_indices");
    for (int i = 0; i < 4; i++)
        if (i != 1 && extent_known(x->dims[i]) < 1)
            return infer_error(c,
                               "axis %d must have a known extent and "
                               "elements",
                               i);
    if (attrs_int(attrs, "sampling_ratio", 0) < 1 &&
        !c->node->inputs.data[1]->value) {
        c->node->inputs.data[1]->is_wanted = true;
        return infer_error(c, "sampling_ratio 0 takes as many samples as rois "
                              "that are computed at run time need; give "
                              "sampling_ratio, or the rois with --bind");
    }
    for (int i = 0; i < 2; i++)
        if (roi_samples(c->node, i, i ? width : height) > 1 << 14)
            return infer_error(c, "too many samples; give sampling_ratio");
    Extent dims[4] = {rois->dims[0], x->dims[1], extent_const(height),
                      extent_const(width)};
    return infer_set_checked(c, 0, x->dtype, 4, dims);
}

/* One axis of a sample: its place, and what decides whether it counts. */
typedef struct RoiAxis {
    const Expr *count; /* samples of this roi along the axis */
    const Expr *low, *high, *part;
    const Expr *inside;
} RoiAxis;

/* Where a roi starts along an axis, and the size of a bin. */
static void roi_bin(StageBuilder *b, const DefineContext *c, int axis,
                    const Expr **start, const Expr **bin)
{
    Arena *a = b->arena;
    DType type = work_dtype(c->in[0]->dtype);
    double scale =
        (double)(float)attrs_float(&c->node->attrs, "spatial_scale", 1);
    double offset = half_pixel(c->node) ? 0.5 : 0;
    const Expr *edge[2];
    for (int i = 0; i < 2; i++) {
        const Expr *at[2] = {b->index[0], expr_int(a, 2 * i + 1 - axis)};
        edge[i] = expr_cast(a, type, expr_read(a, c->in[1], at));
        edge[i] = expr_mul(a, edge[i], const_like(a, edge[i], scale));
        edge[i] = expr_sub(a, edge[i], const_like(a, edge[i], offset));
    }
    const Expr *size = expr_sub(a, edge[1], edge[0]);
    if (!half_pixel(c->node)) /* at least one element */
        size = expr_max(a, size, const_like(a, size, 1));
    *start = edge[0];
    *bin = expr_div(a, size,
                    const_like(a, size, (double)c->out[0]->dims[2 + axis]));
}

/* Samples along an axis of a bin of that size. */
static const Expr *roi_count(StageBuilder *b, const DefineContext *c,
                             const Expr *bin)
{
    int64_t given = attrs_int(&c->node->attrs, "sampling_ratio", 0);
    if (given > 0)
        return const_like(b->arena, bin, (double)given);
    return expr_unary(b->arena, EX_CEIL, bin);
}

/* Sample number k of the stage's bin. */
static RoiAxis roi_axis(StageBuilder *b, const DefineContext *c, int axis,
                        const Expr *k)
{
    Arena *a = b->arena;
    int64_t n = c->in[0]->dims[2 + axis];
    const Expr *start, *bin;
    RoiAxis r;
    roi_bin(b, c, axis, &start, &bin);
    r.count = roi_count(b, c, bin);
    const Expr *place = expr_cast(a, bin->dtype, b->index[2 + axis]);
    place = expr_add(a, start, expr_mul(a, place, bin));
    const Expr *number = expr_cast(a, bin->dtype, k);
    const Expr *step =
        expr_mul(a, expr_add(a, number, const_like(a, number, 0.5)), bin);
    place = expr_add(a, place, expr_div(a, step, r.count));
    const Expr *zero = const_like(a, place, 0);
    r.inside = expr_and(
        a, expr_binary(a, EX_LE, const_like(a, place, -1), place),
        expr_binary(a, EX_LE, place, const_like(a, place, (double)n)));
    r.inside = expr_and(a, r.inside, expr_binary(a, EX_LT, number, r.count));
    place = expr_max(a, place, zero);
    place = expr_min(a, place, const_like(a, place, (double)(n - 1)));
    r.low = index_clamp(a, expr_cast(a, DT_I64, place), n);
    r.high = index_clamp(a, expr_add_int(a, r.low, 1), n);
    r.part = expr_sub(a, place, expr_cast(a, place->dtype, r.low));
    return r;
}

/* A sample: the weighted elements around it, summed or their largest. */
static const Expr *roi_sample(StageBuilder *b, const DefineContext *c,
                              const RoiAxis *y, const RoiAxis *x, bool is_max)
{
    Arena *a = b->arena;
    const Buffer *image = c->in[0];
    const Expr *batch = expr_read(a, c->in[2], b->index), *result = NULL;
    batch = index_clamp(a, expr_cast(a, DT_I64, batch), image->dims[0]);
    for (int i = 0; i < 4; i++) {
        const Expr *index[4] = {batch, b->index[1], i & 2 ? y->high : y->low,
                                i & 1 ? x->high : x->low};
        const Expr *one = const_like(a, y->part, 1);
        const Expr *wy = i & 2 ? y->part : expr_sub(a, one, y->part);
        const Expr *wx = i & 1 ? x->part : expr_sub(a, one, x->part);
        const Expr *term =
            expr_mul(a, expr_mul(a, wy, wx),
                     expr_cast(a, wy->dtype, expr_read(a, image, index)));
        result = !result  ? term
                 : is_max ? expr_max(a, result, term)
                          : expr_add(a, result, term);
    }
    return result;
}

static void define_roi_align(DefineContext *c)
{
    Buffer *out = c->out[0];
    bool is_max = attrs_string(&c->node->attrs, "mode", "avg")[0] == 'm';
    DType type = work_dtype(out->dtype);
    Buffer *joined = define_temp_part(c, "joined", type, 4, out);
    RoiAxis axis[2];
    StageBuilder b;
    stage_begin(&b, c->def, joined);
    Arena *a = b.arena;
    const Expr *k[2];
    for (int i = 0; i < 2; i++)
        k[i] = stage_reduce(&b, roi_samples(c->node, i, out->dims[2 + i]),
                            i ? "kx" : "ky");
    for (int i = 0; i < 2; i++)
        axis[i] = roi_axis(&b, c, i, k[i]);
    const Expr *value = roi_sample(&b, c, &axis[0], &axis[1], is_max);
    const Expr *inside = expr_and(a, axis[0].inside, axis[1].inside);
    const Expr *zero = const_like(a, value, 0);
    if (is_max) {
        /* A sample outside is 0, one too many nothing. */
        const Expr *counts = expr_const_int(a, DT_BOOL, 1);
        for (int i = 0; i < 2; i++)
            counts = expr_and(a, counts,
                              expr_binary(a, EX_LT, expr_cast(a, type, k[i]),
                                          axis[i].count));
        zero = expr_select(a, counts, zero, lowest_of(a, type));
    }
    stage_end_reduce(&b, is_max ? "max" : "sum",
                     expr_select(a, inside, value, zero));
    stage_begin(&b, c->def, out);
    value = read_same(&b, joined);
    const Expr *count = const_like(a, value, 1), *one = count;
    for (int i = 0; i < 2; i++) {
        const Expr *start, *bin;
        roi_bin(&b, c, i, &start, &bin);
        const Expr *samples = roi_count(&b, c, bin);
        count = is_max && i ? expr_min(a, count, samples)
                            : expr_mul(a, count, samples);
    }
    zero = const_like(a, value, 0);
    value = is_max ? expr_select(a, expr_binary(a, EX_LT, zero, count), value,
                                 zero)
                   : expr_div(a, value, expr_max(a, count, one));
    stage_end(&b, expr_cast(a, out->dtype, value));
}

static const AttrSpec affine_attrs[] = {{"align_corners", ATTR_FLAG, false},
                                        {0}};
static const AttrSpec grid_attrs[] = {{"align_corners", ATTR_FLAG, false},
                                      {"mode", ATTR_STRING, false},
                                      {"padding_mode", ATTR_STRING, false},
                                      {0}};
static const AttrSpec roi_attrs[] = {
    {"coordinate_transformation_mode", ATTR_STRING, false},
    {"mode", ATTR_STRING, false},
    {"output_height", ATTR_INT, false},
    {"output_width", ATTR_INT, false},
    {"sampling_ratio", ATTR_INT, false},
    {"spatial_scale", ATTR_FLOAT, false},
    {0}};

#define ROW(field, op_name, inputs, mask, specs, first)                       \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "",                              \
                                   .min_inputs = inputs,                      \
                                   .max_inputs = inputs,                      \
                                   .min_outputs = 1,                          \
                                   .max_outputs = 1,                          \
                                   .traits = OP_REDUCTION | (mask),           \
                                   .attrs = specs,                            \
                                   .infer = infer_##field,                    \
                                   .define = define_##field,                  \
                                   .since = first}
ROW(affine, "AffineGrid", 2, 0, affine_attrs, 20);
ROW(grid_sample, "GridSample", 2, OP_RUNTIME_EXTENTS, grid_attrs, 20);
ROW(roi_align, "RoiAlign", 3, OP_RUNTIME_EXTENTS, roi_attrs, 16);

const Op *const ops_sample[] = {&row_affine, &row_grid_sample, &row_roi_align,
                                NULL};
