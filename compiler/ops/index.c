/* Gathering and scattering by index operands. Constant indices are checked
 * when types are inferred; indices that arrive at run time are clamped to
 * the axis, so that no index reads outside the data. */
#include <string.h>

#include "ops/rules.h"

/* Constant indices must lie in [-length, length). */
static bool check_indices(InferContext *c, int input, Extent extent)
{
    const Array *indices = c->node->inputs.data[input]->value;
    int64_t length = extent_known(extent);
    if (!indices || length < 0)
        return true;
    for (int64_t i = 0; i < array_count(indices); i++) {
        int64_t value = array_get_int(indices, i);
        if (value < -length || value >= length)
            return infer_error(c,
                               "the index %lld of %s is outside an axis "
                               "of %lld elements",
                               (long long)value,
                               c->node->inputs.data[input]->name,
                               (long long)length);
    }
    return true;
}

/* Such indices need no wrapping at run time. */
static bool is_never_negative(const Array *indices)
{
    for (int64_t i = 0; i < array_count(indices); i++)
        if (array_get_int(indices, i) < 0)
            return false;
    return true;
}

/* An index as a place on an axis of `length`: negative ones count from the
 * end. */
static const Expr *wrap_index(Arena *a, const Expr *index, const Expr *length,
                              const Array *known)
{
    index = expr_cast(a, DT_I64, index);
    if (known && is_never_negative(known))
        return index;
    const Expr *zero = expr_int(a, 0);
    index = expr_select(a, expr_binary(a, EX_LT, index, zero),
                        expr_add(a, index, length), index);
    if (known)
        return index;
    const Expr *last = expr_add_int(a, length, -1);
    return expr_max(a, zero, expr_min(a, index, last));
}

/* What the three operators have in common. */
static bool infer_gather_axis(InferContext *c, int *axis)
{
    const TensorType *x = infer_input(c, 0);
    return infer_rank(c, 0, 1, MAX_RANK) && infer_types(c, 1, TYPES_INDEX) &&
           infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 0),
                      x->rank, axis) &&
           check_indices(c, 1, x->dims[*axis]);
}

/* The axis is replaced by all axes of the indices; a scalar removes it. */
static bool infer_gather(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *indices = infer_input(c, 1);
    Extent dims[2 * MAX_RANK];
    int axis, rank = 0;
    if (!infer_gather_axis(c, &axis))
        return false;
    for (int i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (int i = 0; i < indices->rank; i++)
        dims[rank++] = indices->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return infer_set_checked(c, 0, x->dtype, rank, dims);
}

/* The index is read with the middle axes of the output. */
static void define_gather(DefineContext *c)
{
    const Buffer *x = c->in[0], *indices = c->in[1];
    const Array *known = c->node->inputs.data[1]->value;
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", 0), x->rank);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            index[i] = b.index[i < axis ? i : i - 1 + indices->rank];
    const Expr *at = expr_read(b.arena, indices, &b.index[axis]);
    index[axis] =
        wrap_index(b.arena, at, buffer_extent(b.arena, x, axis), known);
    stage_end(&b, expr_read(b.arena, x, index));
}

/* The result has the shape of the indices. */
static bool infer_gather_elements(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *indices = infer_input(c, 1);
    int axis;
    if (!infer_gather_axis(c, &axis) || !infer_rank(c, 1, x->rank, x->rank))
        return false;
    for (int i = 0; i < x->rank; i++)
        if (i != axis && extent_is_const(x->dims[i]) &&
            extent_is_const(indices->dims[i]) &&
            indices->dims[i].value > x->dims[i].value)
            return infer_error(c,
                               "the indices are longer than the data on "
                               "axis %d",
                               i);
    infer_set(c, 0, x->dtype, x->rank, indices->dims);
    return true;
}

static void define_gather_elements(DefineContext *c)
{
    const Buffer *x = c->in[0], *indices = c->in[1];
    const Array *known = c->node->inputs.data[1]->value;
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", 0), x->rank);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    for (int i = 0; i < x->rank; i++)
        index[i] = b.index[i];
    index[axis] = wrap_index(b.arena, read_same(&b, indices),
                             buffer_extent(b.arena, x, axis), known);
    stage_end(&b, expr_read(b.arena, x, index));
}

/* ---- ScatterElements */

/* Sums and products into places would need a defined order of equal indices:
 * only plain replacement is there. */
static bool infer_scatter(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *indices = infer_input(c, 1);
    const char *how = attrs_string(&c->node->attrs, "reduction", "none");
    int axis;
    if (!infer_gather_axis(c, &axis) || !infer_same_dtype(c, 0, 2) ||
        !infer_rank(c, 1, x->rank, x->rank) ||
        !infer_rank(c, 2, x->rank, x->rank))
        return false;
    if (strcmp(how, "none") != 0)
        return infer_error(c, "reduction \"%s\" is not supported; use none",
                           how);
    for (int i = 0; i < x->rank; i++)
        if (!extent_equal(indices->dims[i], infer_input(c, 2)->dims[i]))
            return infer_error(c, "indices and updates must have the same "
                                  "shape");
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* Seen from the output: the last entry along the axis whose index names
 * this place wins; -1 means that none does. */
static void define_scatter(DefineContext *c)
{
    const Buffer *x = c->in[0], *indices = c->in[1], *updates = c->in[2];
    const Array *known = c->node->inputs.data[1]->value;
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", 0), x->rank);
    Buffer *winner = define_temp(c, "winner", DT_I64, x->rank, x->dims);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, winner);
    Arena *a = b.arena;
    const Expr *k = stage_reduce(&b, indices->dims[axis], "k");
    const Expr *inside = expr_const_int(a, DT_BOOL, 1);
    for (int i = 0; i < x->rank; i++) {
        index[i] = i == axis ? k : b.index[i];
        if (i != axis && indices->dims[i] < x->dims[i])
            inside = expr_binary(a, EX_AND, inside,
                                 expr_binary(a, EX_LT, b.index[i],
                                             expr_int(a, indices->dims[i])));
    }
    const Expr *at = expr_read_padded(a, indices, index,
                                      expr_const_int(a, indices->dtype, 0));
    at = wrap_index(a, at, buffer_extent(a, x, axis), known);
    const Expr *hit = expr_binary(a, EX_AND, inside,
                                  expr_binary(a, EX_EQ, at, b.index[axis]));
    stage_end_reduce(&b, "max", expr_select(a, hit, k, expr_int(a, -1)));
    stage_begin(&b, c->def, c->out[0]);
    for (int i = 0; i < x->rank; i++)
        index[i] = b.index[i];
    const Expr *which = read_same(&b, winner);
    index[axis] = which;
    stage_end(&b, expr_select(a, expr_binary(a, EX_LE, expr_int(a, 0), which),
                              expr_read(a, updates, index), read_same(&b, x)));
}

static const AttrSpec axis_attrs[] = {{"axis", ATTR_INT, false}, {0}};
static const AttrSpec scatter_attrs[] = {
    {"axis", ATTR_INT, false}, {"reduction", ATTR_STRING, false}, {0}};

static const Op op_gather = {.name = "Gather",
                             .domain = "",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_INJECTIVE | OP_RUNTIME_EXTENTS,
                             .attrs = axis_attrs,
                             .infer = infer_gather,
                             .define = define_gather,
                             .since = 13};
static const Op op_gather_elements = {.name = "GatherElements",
                                      .domain = "",
                                      .min_inputs = 2,
                                      .max_inputs = 2,
                                      .min_outputs = 1,
                                      .max_outputs = 1,
                                      .traits =
                                          OP_INJECTIVE | OP_RUNTIME_EXTENTS,
                                      .attrs = axis_attrs,
                                      .infer = infer_gather_elements,
                                      .define = define_gather_elements,
                                      .since = 13};
static const Op op_scatter_elements = {.name = "ScatterElements",
                                       .domain = "",
                                       .min_inputs = 3,
                                       .max_inputs = 3,
                                       .min_outputs = 1,
                                       .max_outputs = 1,
                                       .traits = OP_REDUCTION,
                                       .attrs = scatter_attrs,
                                       .infer = infer_scatter,
                                       .define = define_scatter,
                                       .since = 18};

const Op *const ops_index[] = {&op_gather, &op_gather_elements,
                               &op_scatter_elements, NULL};
