/* Resize: type rules, nearest and linear interpolation.
 *
 * Of axes whose extents are numbers it is known where each output place comes
 * from when the definition is made. Nearest places are found in double
 * arithmetic, as the standard's reference does, and then written as
 * floor((o * p + q) / r) in integers where such numbers exist: cheap, and
 * friendly to fusion and vectors. Of other axes kernels do the same
 * arithmetic. */
#include <math.h>
#include <string.h>

#include "ops/resize.h"

static const char *const nearest_names[] = {
    "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

static int nearest_mode(const Node *node)
{
    const char *name =
        attrs_string(&node->attrs, "nearest_mode", "round_prefer_floor");
    for (int i = 0; i < 4; i++)
        if (strcmp(nearest_names[i], name) == 0)
            return i;
    return -1;
}

/* ---- axes of open extents */

/* Element `entry` of the sizes; false where there are scales instead. */
static bool open_size(const Node *node, int entry, Extent *size)
{
    const Tensor *t = node_has_input(node, 3) ? node->inputs.data[3] : NULL;
    if (!t || (!t->symbols && !resize_operand(node, 3)))
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
    const Array *scales = resize_operand(c->node, 2);
    CoordMode mode = resize_coord_mode(c->node);
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
    if (resize_coord_mode(c->node) == (CoordMode)-1)
        return infer_error(
            c, "unknown coordinate_transformation_mode \"%s\"",
            attrs_string(attrs, "coordinate_transformation_mode", ""));
    if (nearest_mode(c->node) < 0)
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
    bool crop = resize_coord_mode(c->node) == COORD_CROP;
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
    if (crop && !resize_operand(c->node, 1))
        return infer_error(c, "tf_crop_and_resize needs the operand roi");
    bool has_sizes =
        node_has_input(c->node, 3) && type_count(infer_input(c, 3)) != 0;
    if (!resize_operand(c->node, 2) == !has_sizes)
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
    const Array *scales = resize_operand(c->node, 2),
                *sizes = resize_operand(c->node, 3);
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
            resize_coord_mode(c->node) != COORD_CROP)
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

/* round_place of a position that is found in the kernel. */
static const Expr *open_place(Arena *a, const Node *node, const ResizeAxis *r,
                              int how, const Expr *o)
{
    const Expr *x = resize_open_position(a, node, r, o, DT_F32);
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
    int how = nearest_mode(node);
    if (axis->length)
        return open_place(a, node, axis, how, o);
    int64_t *place = ARENA_ARRAY(a, int64_t, axis->out);
    for (int64_t i = 0; i < axis->out; i++) {
        double x = resize_rounded_position(node, axis, i);
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

static void define_resize(DefineContext *c)
{
    const Buffer *x = c->in[0];
    const char *mode = attrs_string(&c->node->attrs, "mode", "nearest");
    DType type = x->dtype == DT_F64 ? DT_F64 : DT_F32;
    ResizeAxis axes[MAX_RANK];
    const Expr *index[MAX_RANK], *value;
    StageBuilder b;
    for (int i = 0; i < x->rank; i++)
        axes[i] = resize_define_axis(c, i);
    if (mode[0] == 'c' || attrs_int(&c->node->attrs, "antialias", 0) != 0) {
        resize_define_filtered(c, axes, type);
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
    if (resize_coord_mode(c->node) == COORD_CROP)
        value = resize_outside_crop(&b, c->node, axes, x->rank, value);
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
