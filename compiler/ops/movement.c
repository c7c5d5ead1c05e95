/* Operators that move elements: each output element is one input element,
 * or a filling. */
#include "ops/rules.h"

/* ---- Transpose */

/* Without perm the axes are reversed. */
static bool read_perm(InferContext *c, int rank, int64_t *perm)
{
    bool seen[MAX_RANK] = {false};
    int count;
    const int64_t *given = attrs_ints(&c->node->attrs, "perm", &count);
    for (int i = 0; i < rank; i++)
        perm[i] = rank - 1 - i;
    if (!given)
        return true;
    if (count != rank)
        return infer_error(c, "perm has %d axes for rank %d", count, rank);
    for (int i = 0; i < rank; i++) {
        perm[i] = given[i] < 0 ? given[i] + rank : given[i];
        if (perm[i] < 0 || perm[i] >= rank || seen[perm[i]])
            return infer_error(c, "perm is not a permutation of the %d axes",
                               rank);
        seen[perm[i]] = true;
    }
    return true;
}

static bool infer_transpose(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int64_t perm[MAX_RANK];
    Extent dims[MAX_RANK];
    if (!read_perm(c, x->rank, perm))
        return false;
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[perm[i]];
    infer_set(c, 0, x->dtype, x->rank, dims);
    return true;
}

/* Output axis i is input axis perm[i]. */
static void define_transpose(DefineContext *c)
{
    const Buffer *x = c->in[0];
    const Expr *index[MAX_RANK];
    int count;
    const int64_t *perm = attrs_ints(&c->node->attrs, "perm", &count);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    for (int i = 0; i < x->rank; i++)
        index[perm ? normal_axis(perm[i], x->rank) : x->rank - 1 - i] =
            b.index[i];
    stage_end(&b, expr_read(b.arena, x, index));
}

/* ---- Concat */

static const char *extent_text(InferContext *c, Extent extent)
{
    Str text = {0};
    extent_print_plain(&text, extent);
    const char *copy = arena_strdup(c->graph->arena, str_text(&text));
    str_free(&text);
    return copy;
}

/* All extents but those along the axis must agree; the known one of two
 * stands for both. */
static bool infer_concat(InferContext *c)
{
    Extent dims[MAX_RANK];
    int axis;
    if (!node_has_input(c->node, 0) || !infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 0),
                    infer_input(c, 0)->rank, &axis))
        return false;
    const TensorType *x = infer_input(c, 0);
    for (int i = 0; i < x->rank; i++)
        dims[i] = x->dims[i];
    for (int i = 1; i < c->node->inputs.count; i++) {
        if (!node_has_input(c->node, i))
            return infer_error(c, "input %d is left out", i);
        const TensorType *y = infer_input(c, i);
        if (!infer_same_dtype(c, 0, i) || !infer_rank(c, i, x->rank, x->rank))
            return false;
        for (int k = 0; k < x->rank; k++) {
            if (k == axis) {
                dims[k] = extent_add(c->graph->arena, dims[k], y->dims[k]);
            } else if (!extents_agree(dims[k], y->dims[k])) {
                return infer_error(c,
                                   "input %s has %s elements on axis "
                                   "%d, those before it %s",
                                   c->node->inputs.data[i]->name,
                                   extent_text(c, y->dims[k]), k,
                                   extent_text(c, dims[k]));
            } else if (extent_is_const(y->dims[k])) {
                dims[k] = y->dims[k];
            }
        }
    }
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

static const Expr *minus_extent(const DefineContext *c, const Expr *x,
                                Extent extent)
{
    Arena *a = c->def->arena;
    return extent_is_const(extent) ? expr_add_int(a, x, -extent.value)
                                   : expr_sub(a, x, define_extent(c, extent));
}

/* A chain of selections over the position; what is not taken is not read.
 * That inputs may be written right into their part of the result is up to the
 * memory plan. */
static void define_concat(DefineContext *c)
{
    int count = c->node->inputs.count;
    int axis =
        normal_axis(attrs_int(&c->node->attrs, "axis", 0), c->in[0]->rank);
    Extent start[MAX_OP_INPUTS + 1] = {extent_const(0)};
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    for (int i = 0; i < count; i++)
        start[i + 1] =
            extent_add(a, start[i], c->node->inputs.data[i]->type.dims[axis]);
    const Expr *value = NULL;
    /* From the last to the first; inputs without elements drop out. */
    for (int i = count - 1; i >= 0; i--) {
        const Expr *index[MAX_RANK];
        if (c->in[i]->dims[axis] == 0 && (value || i > 0))
            continue;
        for (int k = 0; k < c->in[i]->rank; k++)
            index[k] = b.index[k];
        index[axis] = minus_extent(c, b.index[axis], start[i]);
        const Expr *piece = expr_read(a, c->in[i], index);
        const Expr *end = define_extent(c, start[i + 1]);
        value = value
                    ? expr_select(a, expr_binary(a, EX_LT, b.index[axis], end),
                                  piece, value)
                    : piece;
    }
    stage_end(&b, value);
}

/* ---- Split */

/* Extent of each part: as listed, or equal ones and less at the end. */
static bool split_sizes(InferContext *c, Extent length, Extent *sizes)
{
    Arena *arena = c->graph->arena;
    int count = c->node->outputs.count;
    if (node_has_input(c->node, 1)) {
        int listed = infer_extents(c, 1, "split", MAX_OP_OUTPUTS, sizes);
        if (listed >= 0 && listed != count)
            return infer_error(c, "split must be %d sizes, it has %d", count,
                               listed);
        return listed >= 0;
    }
    Extent parts = extent_const(count);
    Extent each = extent_div(
        arena, extent_add(arena, length, extent_const(count - 1)), parts);
    for (int i = 0; i < count; i++) {
        Extent left = extent_sub(arena, length,
                                 extent_mul(arena, each, extent_const(i)));
        sizes[i] =
            extent_max(arena, extent_min(arena, each, left), extent_const(0));
    }
    return true;
}

/* Whether listed sizes make up the axis, as far as that can be told. */
static bool check_split(InferContext *c, Extent length, const Extent *sizes)
{
    Extent total = extent_const(0);
    int count = c->node->outputs.count;
    bool fits = true, is_known = extent_is_const(length);
    for (int i = 0; i < count && fits; i++) {
        is_known = is_known && extent_is_const(sizes[i]);
        fits = !extent_is_const(sizes[i]) ||
               (sizes[i].value >= 0 && sizes[i].value <= INT32_MAX);
        total = extent_add(c->graph->arena, total, sizes[i]);
    }
    if (fits && (!is_known || total.value == length.value))
        return true;
    return infer_error(c, "split must be %d sizes that add up to %lld", count,
                       (long long)length.value);
}

/* Sizes from the operand, or equal parts. */
static bool infer_split(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent sizes[MAX_OP_OUTPUTS];
    int axis, count = c->node->outputs.count;
    if (!infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 0), x->rank,
                    &axis))
        return false;
    Extent length = x->dims[axis];
    int64_t parts = attrs_int(&c->node->attrs, "num_outputs", count);
    if (parts != count)
        return infer_error(c, "num_outputs is %lld, it has %d outputs",
                           (long long)parts, count);
    /* Parts of unequal size are allowed where num_outputs asks for them. */
    if (!node_has_input(c->node, 1) && extent_is_const(length) &&
        length.value % count != 0 &&
        !attrs_find(&c->node->attrs, "num_outputs"))
        return infer_error(c,
                           "%lld elements cannot be split into %d equal "
                           "parts",
                           (long long)length.value, count);
    if (!split_sizes(c, length, sizes) || !check_split(c, length, sizes))
        return false;
    Extent dims[MAX_RANK];
    for (int k = 0; k < x->rank; k++)
        dims[k] = x->dims[k];
    for (int i = 0; i < count; i++) {
        dims[axis] = sizes[i];
        infer_set(c, i, x->dtype, x->rank, dims);
    }
    return true;
}

/* One stage an output, each a shifted read. What lies behind the end of the
 * data, where sizes that a run brings are wrong, is not read. */
static void define_split(DefineContext *c)
{
    const Buffer *x = c->in[0];
    Graph own = {.arena = c->def->arena};
    InferContext sized = {&own, (Node *)c->node};
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", 0), x->rank);
    Extent sizes[MAX_OP_OUTPUTS], start = extent_const(0);
    split_sizes(&sized, c->node->inputs.data[0]->type.dims[axis], sizes);
    for (int i = 0; i < c->node->outputs.count; i++) {
        const Expr *index[MAX_RANK];
        StageBuilder b;
        if (c->node->outputs.data[i]) {
            stage_begin(&b, c->def, c->out[i]);
            for (int k = 0; k < x->rank; k++)
                index[k] = b.index[k];
            index[axis] =
                expr_add(b.arena, index[axis], define_extent(c, start));
            if (!extent_is_const(start) || !extent_is_const(sizes[i]))
                index[axis] = expr_min(b.arena, index[axis],
                                       expr_int(b.arena, x->dims[axis] - 1));
            stage_end(&b, expr_read(b.arena, x, index));
        }
        start = extent_add(c->def->arena, start, sizes[i]);
    }
}

/* ---- Slice */

typedef struct SliceAxis {
    Extent start, count;
    int64_t step;
} SliceAxis;

static int64_t clamp(int64_t value, int64_t lo, int64_t hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* The standard's rule for one axis of `length` elements. */
static SliceAxis slice_number(int64_t length, int64_t start, int64_t end,
                              int64_t step)
{
    start += start < 0 ? length : 0;
    end += end < 0 ? length : 0;
    if (step > 0) {
        start = clamp(start, 0, length);
        end = clamp(end, 0, length);
        int64_t room = end - start;
        return (SliceAxis){
            extent_const(start),
            extent_const(room > 0 ? (room + step - 1) / step : 0), step};
    }
    /* Backwards: from the last element at most, to before the first. Unlike
     * NumPy's, a start before the axis is its first element. */
    start = clamp(start, length ? 0 : -1, length - 1);
    end = clamp(end, -1, length - 1);
    int64_t room = start - end;
    return (SliceAxis){extent_const(start),
                       extent_const(room > 0 ? (room - step - 1) / -step : 0),
                       step};
}

/* A bound that may count from the end, cut to 0 .. length; false where its
 * sign depends on what the names stand for. */
static bool slice_bound(Arena *arena, Extent length, Extent *bound)
{
    bool is_negative = extent_is_const(*bound) && bound->value < 0;
    if (is_negative)
        *bound = extent_add(arena, length, *bound);
    else if (extent_lower(*bound) < 0)
        return false;
    *bound =
        extent_max(arena, extent_min(arena, *bound, length), extent_const(0));
    return true;
}

/* The same where something is known at run time only. Backwards only the
 * whole axis. */
static bool slice_axis(Arena *arena, Extent length, Extent start, Extent end,
                       int64_t step, SliceAxis *slice)
{
    /* A step beyond the length takes one element whatever its size. */
    step = clamp(step, -INT32_MAX, INT32_MAX);
    if (extent_is_const(length) && extent_is_const(start) &&
        extent_is_const(end)) {
        *slice = slice_number(length.value, start.value, end.value, step);
        return true;
    }
    slice->step = step;
    if (step < 0) {
        slice->start = extent_sub(arena, length, extent_const(1));
        slice->count = extent_div(
            arena, extent_add(arena, length, extent_const(-step - 1)),
            extent_const(-step));
        return extent_is_const(start) && extent_is_const(end) &&
               (start.value == -1 || start.value >= INT32_MAX) &&
               end.value <= -INT32_MAX;
    }
    if (!slice_bound(arena, length, &start) ||
        !slice_bound(arena, length, &end))
        return false;
    slice->start = start;
    Extent room =
        extent_max(arena, extent_sub(arena, end, start), extent_const(0));
    slice->count =
        extent_div(arena, extent_add(arena, room, extent_const(step - 1)),
                   extent_const(step));
    return true;
}

/* The operand `index` of a slice, for entry i. */
static int64_t slice_value(const Node *node, int index, int64_t i)
{
    return array_get_int(node->inputs.data[index]->value, i);
}

/* The four lists have one length, and each axis appears once. */
static bool check_slice(InferContext *c, int rank)
{
    static const char *const names[] = {NULL, "starts", "ends", "axes",
                                        "steps"};
    bool chosen[MAX_RANK] = {false};
    int64_t count = -1;
    for (int i = 1; i <= 4; i++) {
        if (!node_has_input(c->node, i))
            continue;
        Extent list[MAX_RANK];
        const TensorType *type = infer_input(c, i);
        if (i > 2 && !infer_constant(c, i, names[i]))
            return false;
        int listed = infer_extents(c, i, names[i], MAX_RANK, list);
        if (listed < 0)
            return false;
        if (type->rank != 1 || (count >= 0 && listed != count))
            return infer_error(c,
                               "%s must be a list of as many integers as "
                               "starts",
                               names[i]);
        count = listed;
    }
    if (node_has_input(c->node, 3) &&
        !infer_axes(c, c->node->inputs.data[3]->value, rank, chosen))
        return false;
    if (count > rank)
        return infer_error(c, "slices %lld axes of %d", (long long)count,
                           rank);
    for (int64_t i = 0; node_has_input(c->node, 4) && i < count; i++)
        if (slice_value(c->node, 4, i) == 0)
            return infer_error(c, "a step of 0");
    return true;
}

static int slice_entry(const Node *node, int rank, int axis)
{
    int64_t count = type_count(&node->inputs.data[1]->type);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = node_has_input(node, 3) ? slice_value(node, 3, i) : i;
        if (normal_axis(at, rank) == axis)
            return (int)i;
    }
    return -1;
}

/* A named extent may pass whole, as models cut out only other axes. */
static bool infer_slice(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    if (!check_slice(c, x->rank))
        return false;
    for (int axis = 0; axis < x->rank; axis++) {
        int entry = slice_entry(c->node, x->rank, axis);
        dims[axis] = x->dims[axis];
        if (entry < 0)
            continue;
        Extent start = extent_operand(c->node, 1, entry);
        Extent end = extent_operand(c->node, 2, entry);
        int64_t step =
            node_has_input(c->node, 4) ? slice_value(c->node, 4, entry) : 1;
        bool whole = extent_is_const(start) && start.value == 0 && step == 1 &&
                     extent_is_const(end) && end.value >= INT32_MAX;
        SliceAxis slice;
        if (whole && !extent_is_const(x->dims[axis]))
            continue;
        if (!slice_axis(c->graph->arena, x->dims[axis], start, end, step,
                        &slice))
            return infer_error(c,
                               "which part of axis %d it takes is not known; "
                               "fix the named dimensions with --dim "
                               "NAME=VALUE",
                               axis);
        dims[axis] = slice.count;
    }
    infer_set(c, 0, x->dtype, x->rank, dims);
    return true;
}

/* start + i * step, which lies inside by construction. */
static void define_slice(DefineContext *c)
{
    const Buffer *x = c->in[0];
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    for (int axis = 0; axis < x->rank; axis++) {
        int entry = slice_entry(c->node, x->rank, axis);
        index[axis] = b.index[axis];
        if (entry < 0)
            continue;
        int64_t step =
            node_has_input(c->node, 4) ? slice_value(c->node, 4, entry) : 1;
        SliceAxis s;
        slice_axis(a, c->node->inputs.data[0]->type.dims[axis],
                   extent_operand(c->node, 1, entry),
                   extent_operand(c->node, 2, entry), step, &s);
        index[axis] = expr_mul_int(a, b.index[axis], s.step);
        index[axis] =
            extent_is_const(s.start)
                ? expr_add_int(a, index[axis], s.start.value)
                : expr_add(a, index[axis], define_extent(c, s.start));
    }
    stage_end(&b, expr_read(a, x, index));
}

static const AttrSpec perm_attrs[] = {{"perm", ATTR_INTS, false}, {0}};
static const AttrSpec concat_attrs[] = {{"axis", ATTR_INT, true}, {0}};
static const AttrSpec split_attrs[] = {
    {"axis", ATTR_INT, false}, {"num_outputs", ATTR_INT, false}, {0}};

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
ROW(transpose, "Transpose", 1, 1, 1, OP_RUNTIME_EXTENTS, perm_attrs,
    infer_transpose, define_transpose, 13);
ROW(concat, "Concat", 1, -1, 1, OP_RUNTIME_EXTENTS, concat_attrs, infer_concat,
    define_concat, 13);
ROW(split, "Split", 1, 2, -1, OP_RUNTIME_EXTENTS, split_attrs, infer_split,
    define_split, 18);
ROW(slice, "Slice", 3, 5, 1, OP_RUNTIME_EXTENTS, NULL, infer_slice,
    define_slice, 13);
const Op *const ops_movement[] = {&row_transpose, &row_concat, &row_split,
                                  &row_slice, NULL};
