/* Gathering by index operands. Constant indices are checked when types are
 * inferred; indices that arrive at run time are clamped to the axis, so that
 * no index reads outside the data. */
#include "ops/rules.h"

/* What Gather and GatherElements have in common. */
static bool infer_gather_axis(InferContext *c, int *axis)
{
    const TensorType *x = infer_input(c, 0);
    return infer_rank(c, 0, 1, MAX_RANK) && infer_types(c, 1, TYPES_INDEX) &&
           infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 0),
                      x->rank, axis) &&
           infer_indices(c, 1, 0, 1, x->dims[*axis]);
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
        index_wrap(b.arena, at, buffer_extent(b.arena, x, axis), known);
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
    index[axis] = index_wrap(b.arena, read_same(&b, indices),
                             buffer_extent(b.arena, x, axis), known);
    stage_end(&b, expr_read(b.arena, x, index));
}

/* ---- GatherND: the last axis of the indices holds places on as many axes
 * of the data, after `batch_dims` axes that both have. */

static bool infer_gather_nd(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *indices = infer_input(c, 1);
    int64_t batch = attrs_int(&c->node->attrs, "batch_dims", 0);
    Extent dims[2 * MAX_RANK];
    int rank = indices->rank - 1;
    if (!infer_rank(c, 0, 1, MAX_RANK) || !infer_rank(c, 1, 1, MAX_RANK) ||
        !infer_types(c, 1, TYPES_INDEX))
        return false;
    int64_t depth = extent_known(indices->dims[rank]);
    if (batch < 0 || batch > rank || batch >= x->rank)
        return infer_error(c, "batch_dims %lld does not fit ranks %d and %d",
                           (long long)batch, x->rank, indices->rank);
    if (depth < 1 || depth > x->rank - batch)
        return infer_error(c,
                           "the last extent of the indices is %lld, it must "
                           "be 1 to %lld",
                           (long long)depth, (long long)(x->rank - batch));
    for (int i = 0; i < batch; i++)
        if (extent_is_const(x->dims[i]) && extent_is_const(indices->dims[i]) &&
            !extent_equal(x->dims[i], indices->dims[i]))
            return infer_error(c, "data and indices differ on batch axis %d",
                               i);
    for (int i = 0; i < depth; i++)
        if (!infer_indices(c, 1, i, depth, x->dims[batch + i]))
            return false;
    for (int i = 0; i < rank; i++)
        dims[i] = indices->dims[i];
    for (int64_t i = batch + depth; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return infer_set_checked(c, 0, x->dtype, rank, dims);
}

static void define_gather_nd(DefineContext *c)
{
    const Buffer *x = c->in[0], *indices = c->in[1];
    const Array *known = c->node->inputs.data[1]->value;
    int batch = (int)attrs_int(&c->node->attrs, "batch_dims", 0);
    int last = indices->rank - 1, depth = (int)indices->dims[last];
    const Expr *index[MAX_RANK], *at[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    for (int i = 0; i < last; i++)
        at[i] = b.index[i];
    for (int i = 0; i < x->rank; i++) {
        if (i < batch) {
            index[i] = b.index[i];
        } else if (i < batch + depth) {
            at[last] = expr_int(a, i - batch);
            index[i] = index_wrap(a, expr_read(a, indices, at),
                                  buffer_extent(a, x, i), known);
        } else {
            index[i] = b.index[last + i - batch - depth];
        }
    }
    stage_end(&b, expr_read(a, x, index));
}

static const AttrSpec axis_attrs[] = {{"axis", ATTR_INT, false}, {0}};
static const AttrSpec batch_attrs[] = {{"batch_dims", ATTR_INT, false}, {0}};

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
static const Op op_gather_nd = {.name = "GatherND",
                                .domain = "",
                                .min_inputs = 2,
                                .max_inputs = 2,
                                .min_outputs = 1,
                                .max_outputs = 1,
                                .traits = OP_INJECTIVE | OP_RUNTIME_EXTENTS,
                                .attrs = batch_attrs,
                                .infer = infer_gather_nd,
                                .define = define_gather_nd,
                                .since = 13};

const Op *const ops_index[] = {&op_gather, &op_gather_elements, &op_gather_nd,
                               NULL};
