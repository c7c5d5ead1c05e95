/* Operators that move elements: each output element is one input element,
 * or a filling. */
#include <string.h>

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
            } else if (extent_is_const(dims[k]) &&
                       extent_is_const(y->dims[k]) &&
                       !extent_equal(dims[k], y->dims[k])) {
                return infer_error(c,
                                   "input %s has %lld elements on axis "
                                   "%d, those before it %lld",
                                   c->node->inputs.data[i]->name,
                                   (long long)y->dims[k].value, k,
                                   (long long)dims[k].value);
            } else if (extent_is_const(y->dims[k])) {
                dims[k] = y->dims[k];
            }
        }
    }
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

/* A chain of selections over the position; what is not taken is not read.
 * That inputs may be written right into their part of the result is up to the
 * memory plan. */
static void define_concat(DefineContext *c)
{
    int count = c->node->inputs.count;
    int axis =
        normal_axis(attrs_int(&c->node->attrs, "axis", 0), c->in[0]->rank);
    int64_t start[MAX_OP_INPUTS], at = 0;
    for (int i = 0; i < count; i++) {
        start[i] = at;
        at += c->in[i]->dims[axis];
    }
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *value = NULL;
    /* From the last to the first; inputs without elements drop out. */
    for (int i = count - 1; i >= 0; i--) {
        const Expr *index[MAX_RANK];
        if (c->in[i]->dims[axis] == 0 && (value || i > 0))
            continue;
        for (int k = 0; k < c->in[i]->rank; k++)
            index[k] = b.index[k];
        index[axis] = expr_add_int(a, b.index[axis], -start[i]);
        const Expr *piece = expr_read(a, c->in[i], index);
        int64_t end = start[i] + c->in[i]->dims[axis];
        value = value ? expr_select(a,
                                    expr_binary(a, EX_LT, b.index[axis],
                                                expr_int(a, end)),
                                    piece, value)
                      : piece;
    }
    stage_end(&b, value);
}

/* ---- Split */

/* Extent of each part; false (after an error when c is given) when they
 * do not add up. */
static bool split_sizes(InferContext *c, const Node *node, int64_t length,
                        int64_t *sizes)
{
    int count = node->outputs.count;
    const Array *given =
        node_has_input(node, 1) ? node->inputs.data[1]->value : NULL;
    if (!given) {
        int64_t each = (length + count - 1) / count;
        for (int i = 0; i < count; i++) {
            int64_t left = length - each * i;
            sizes[i] = left < 0 ? 0 : left < each ? left : each;
        }
        return true;
    }
    int64_t total = 0;
    bool valid = given->rank == 1 && given->dims[0] == count;
    for (int i = 0; valid && i < count; i++) {
        sizes[i] = array_get_int(given, i);
        valid = sizes[i] >= 0 && sizes[i] <= length;
        total += sizes[i];
    }
    if (valid && total == length)
        return true;
    if (c)
        infer_error(c, "split must be %d sizes that add up to %lld", count,
                    (long long)length);
    return false;
}

/* Sizes from the operand, or equal parts. */
static bool infer_split(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int64_t sizes[MAX_OP_OUTPUTS];
    int axis, count = c->node->outputs.count;
    if (!infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 0), x->rank,
                    &axis) ||
        (node_has_input(c->node, 1) && !infer_constant(c, 1, "split")))
        return false;
    int64_t length = extent_known(x->dims[axis]);
    int64_t parts = attrs_int(&c->node->attrs, "num_outputs", count);
    if (parts != count)
        return infer_error(c, "num_outputs is %lld, it has %d outputs",
                           (long long)parts, count);
    if (length < 0)
        return infer_error(c, "the extent of axis %d must be constant", axis);
    /* Parts of unequal size are allowed where num_outputs asks for them. */
    if (!node_has_input(c->node, 1) && length % count != 0 &&
        !attrs_find(&c->node->attrs, "num_outputs"))
        return infer_error(c,
                           "%lld elements cannot be split into %d equal "
                           "parts",
                           (long long)length, count);
    if (!split_sizes(c, c->node, length, sizes))
        return false;
    Extent dims[MAX_RANK];
    for (int k = 0; k < x->rank; k++)
        dims[k] = x->dims[k];
    for (int i = 0; i < count; i++) {
        dims[axis] = extent_const(sizes[i]);
        infer_set(c, i, x->dtype, x->rank, dims);
    }
    return true;
}

/* One stage an output, each a shifted read. */
static void define_split(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", 0), x->rank);
    int64_t sizes[MAX_OP_OUTPUTS], start = 0;
    if (!split_sizes(NULL, c->node, x->dims[axis], sizes))
        return;
    for (int i = 0; i < c->node->outputs.count; i++) {
        const Expr *index[MAX_RANK];
        StageBuilder b;
        if (c->node->outputs.data[i]) {
            stage_begin(&b, c->def, c->out[i]);
            for (int k = 0; k < x->rank; k++)
                index[k] = b.index[k];
            index[axis] = expr_add_int(b.arena, index[axis], start);
            stage_end(&b, expr_read(b.arena, x, index));
        }
        start += sizes[i];
    }
}

/* ---- Slice */

typedef struct SliceAxis {
    int64_t start, step, count;
} SliceAxis;

static int64_t clamp(int64_t value, int64_t lo, int64_t hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* NumPy's rule for one axis of `length` elements. */
static SliceAxis slice_axis(int64_t length, int64_t start, int64_t end,
                            int64_t step)
{
    /* A step beyond the length takes one element whatever its size. */
    step = clamp(step, -INT32_MAX, INT32_MAX);
    start += start < 0 ? length : 0;
    end += end < 0 ? length : 0;
    if (step > 0) {
        start = clamp(start, 0, length);
        end = clamp(end, 0, length);
        int64_t room = end - start;
        return (SliceAxis){start, step,
                           room > 0 ? (room + step - 1) / step : 0};
    }
    /* Backwards: from the last element at most, to before the first. */
    start = clamp(start, -1, length - 1);
    end = clamp(end, -1, length - 1);
    int64_t room = start - end;
    return (SliceAxis){start, step, room > 0 ? (room - step - 1) / -step : 0};
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
        const Array *list = infer_constant(c, i, names[i]);
        if (!list)
            return false;
        if (list->rank != 1 || dtype_is_float(list->dtype) ||
            (count >= 0 && list->dims[0] != count))
            return infer_error(c,
                               "%s must be a list of as many integers as "
                               "starts",
                               names[i]);
        count = list->dims[0];
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
    int64_t count = array_count(node->inputs.data[1]->value);
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
        int64_t length = extent_known(x->dims[axis]);
        dims[axis] = x->dims[axis];
        if (entry < 0)
            continue;
        int64_t start = slice_value(c->node, 1, entry);
        int64_t end = slice_value(c->node, 2, entry);
        int64_t step =
            node_has_input(c->node, 4) ? slice_value(c->node, 4, entry) : 1;
        bool whole = start == 0 && step == 1 && end >= INT32_MAX;
        if (length >= 0)
            dims[axis] =
                extent_const(slice_axis(length, start, end, step).count);
        else if (!whole)
            return infer_error(c,
                               "axis %d, of which it takes a part, has a "
                               "named extent; bind it with --dim",
                               axis);
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
        SliceAxis s = slice_axis(x->dims[axis], slice_value(c->node, 1, entry),
                                 slice_value(c->node, 2, entry), step);
        index[axis] =
            expr_add_int(a, expr_mul_int(a, b.index[axis], s.step), s.start);
    }
    stage_end(&b, expr_read(a, x, index));
}

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

/* Negative amounts cut elements off. */
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
        if (mode[0] != 'c' && extent_known(x->dims[i]) == 0 && known > 0)
            return infer_error(c,
                               "axis %d is empty: there is nothing to "
                               "repeat",
                               i);
    }
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

/* The position a place outside [0, length) stands for. */
static const Expr *fold_back(Arena *a, const Expr *at, int64_t length,
                             char mode)
{
    const Expr *last = expr_int(a, length - 1);
    if (mode == 'e' || length == 1)
        return expr_min(a, expr_max(a, at, expr_int(a, 0)), last);
    if (mode == 'w')
        return expr_binary(a, EX_MOD, at, expr_int(a, length));
    /* Back and forth with the period of both ways. */
    int64_t period = 2 * (length - 1);
    const Expr *phase = expr_binary(a, EX_MOD, at, expr_int(a, period));
    return expr_min(a, phase, expr_sub(a, expr_int(a, period), phase));
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
        if (mode != 'c')
            index[i] = fold_back(a, index[i], x->dims[i], mode);
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
    int64_t channels = c->out[0]->dims[1];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *by = expr_int(a, size);
    const Expr *row = expr_binary(a, EX_MOD, b.index[2], by);
    const Expr *column = expr_binary(a, EX_MOD, b.index[3], by);
    const Expr *cell = expr_add(a, expr_mul_int(a, row, size), column);
    const Expr *channel =
        depth_first
            ? expr_add(a, expr_mul_int(a, cell, channels), b.index[1])
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
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *depth = expr_int(a, x->dims[1] > 0 ? x->dims[1] : 1);
    const Expr *cell = expr_div(a, b.index[1], depth);
    const Expr *channel = expr_binary(a, EX_MOD, b.index[1], depth);
    const Expr *row = expr_div(a, cell, expr_int(a, size));
    const Expr *column = expr_binary(a, EX_MOD, cell, expr_int(a, size));
    const Expr *index[4] = {
        b.index[0], channel,
        expr_add(a, expr_mul_int(a, b.index[2], size), row),
        expr_add(a, expr_mul_int(a, b.index[3], size), column)};
    stage_end(&b, expr_read(a, x, index));
}

static const AttrSpec perm_attrs[] = {{"perm", ATTR_INTS, false}, {0}};
static const AttrSpec concat_attrs[] = {{"axis", ATTR_INT, true}, {0}};
static const AttrSpec split_attrs[] = {
    {"axis", ATTR_INT, false}, {"num_outputs", ATTR_INT, false}, {0}};
static const AttrSpec pad_attrs[] = {{"mode", ATTR_STRING, false}, {0}};
static const AttrSpec block_attrs[] = {
    {"blocksize", ATTR_INT, true}, {"mode", ATTR_STRING, false}, {0}};
static const AttrSpec space_attrs[] = {{"blocksize", ATTR_INT, true}, {0}};

#define ROW(field, op_name, least, most, outputs, specs, rule, definition,    \
            first)                                                            \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "",                              \
                                   .min_inputs = least,                       \
                                   .max_inputs = most,                        \
                                   .min_outputs = 1,                          \
                                   .max_outputs = outputs,                    \
                                   .traits = OP_INJECTIVE,                    \
                                   .attrs = specs,                            \
                                   .infer = rule,                             \
                                   .define = definition,                      \
                                   .since = first}
ROW(transpose, "Transpose", 1, 1, 1, perm_attrs, infer_transpose,
    define_transpose, 13);
ROW(concat, "Concat", 1, -1, 1, concat_attrs, infer_concat, define_concat, 13);
ROW(split, "Split", 1, 2, -1, split_attrs, infer_split, define_split, 18);
ROW(slice, "Slice", 3, 5, 1, NULL, infer_slice, define_slice, 13);
ROW(pad, "Pad", 2, 4, 1, pad_attrs, infer_pad, define_pad, 19);
ROW(depth_to_space, "DepthToSpace", 1, 1, 1, block_attrs, infer_depth_to_space,
    define_depth_to_space, 13);
ROW(space_to_depth, "SpaceToDepth", 1, 1, 1, space_attrs, infer_space_to_depth,
    define_space_to_depth, 13);

const Op *const ops_movement[] = {
    &row_transpose, &row_concat,         &row_split,          &row_slice,
    &row_pad,       &row_depth_to_space, &row_space_to_depth, NULL};
