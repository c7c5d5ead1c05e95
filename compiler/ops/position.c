/* Operators whose result depends on where an element stands: triangles and
 * diagonals, one-hot rows, reversed and chosen elements, cuts around the
 * centre. */
#include <string.h>

#include "ops/make.h"
#include "ops/rules.h"

/* ---- Trilu and EyeLike */

static bool infer_trilu(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_rank(c, 0, 2, MAX_RANK))
        return false;
    if (node_has_input(c->node, 1)) {
        if (!infer_types(c, 1, TYPES_INDEX))
            return false;
        if (type_count(infer_input(c, 1)) != 1)
            return infer_error(c, "k must be one integer");
    }
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* The diagonal k may arrive at run time: its distance from it decides about
 * an element. */
static void define_trilu(DefineContext *c)
{
    const Buffer *x = c->in[0];
    bool upper = attrs_int(&c->node->attrs, "upper", 1) != 0;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *diagonal =
        expr_sub(a, b.index[x->rank - 1], b.index[x->rank - 2]);
    const Expr *k = c->in[1] ? expr_cast(a, DT_I64, read_scalar(&b, c->in[1]))
                             : expr_int(a, 0);
    const Expr *stays = upper ? expr_binary(a, EX_LE, k, diagonal)
                              : expr_binary(a, EX_LE, diagonal, k);
    const Expr *value = read_same(&b, x);
    stage_end(&b, expr_select(a, stays, value, const_like(a, value, 0)));
}

/* Only the type of the input counts. */
static bool infer_eye_like(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    DType dtype = x->dtype;
    if (!infer_rank(c, 0, 2, 2))
        return false;
    if (attrs_find(&c->node->attrs, "dtype"))
        dtype = dtype_of_onnx(attrs_int(&c->node->attrs, "dtype", 0));
    if (dtype == DT_INVALID)
        return infer_error(c,
                           "dtype is element type number %lld, which is "
                           "not supported",
                           (long long)attrs_int(&c->node->attrs, "dtype", 0));
    return infer_set_checked(c, 0, dtype, 2, x->dims);
}

static void define_eye_like(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    DType to = c->out[0]->dtype;
    const Expr *diagonal = expr_sub(a, b.index[1], b.index[0]);
    const Expr *k = expr_int(a, attrs_int(&c->node->attrs, "k", 0));
    stage_end(&b, expr_select(a, expr_binary(a, EX_EQ, diagonal, k),
                              expr_const(a, to, 1), expr_const(a, to, 0)));
}

/* ---- OneHot: a new axis of `depth` places */

/* A count, which may be written as a float. */
static bool one_hot_depth(InferContext *c, Extent *depth)
{
    bool is_float = dtype_is_float(infer_input(c, 1)->dtype);
    const Array *given = c->node->inputs.data[1]->value;
    if (is_float && !infer_constant(c, 1, "depth"))
        return false;
    if (given) {
        if (array_count(given) != 1 ||
            !(array_get(given, 0) >= 0 && array_get(given, 0) <= INT32_MAX))
            return infer_error(c, "depth must be one count");
        *depth = extent_const(array_get_int(given, 0));
        return true;
    }
    int count = infer_extents(c, 1, "depth", 1, depth);
    if (count >= 0 && count != 1)
        return infer_error(c, "depth must be one count");
    return count == 1;
}

static bool infer_one_hot(InferContext *c)
{
    const TensorType *indices = infer_input(c, 0);
    const TensorType *values = infer_input(c, 2);
    Extent dims[MAX_RANK + 1], depth;
    int axis;
    if (!one_hot_depth(c, &depth) || !infer_types(c, 0, TYPES_NUMBER) ||
        !infer_rank(c, 2, 1, 1) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", -1),
                    indices->rank + 1, &axis))
        return false;
    if (extent_known(values->dims[0]) != 2)
        return infer_error(c, "values must be two: off and on");
    for (int i = 0; i <= indices->rank; i++)
        dims[i] = i == axis ? depth : indices->dims[i < axis ? i : i - 1];
    return infer_set_checked(c, 0, values->dtype, indices->rank + 1, dims);
}

/* Negative indices count from the end; others outside name no place. */
static void define_one_hot(DefineContext *c)
{
    const Buffer *indices = c->in[0], *out = c->out[0];
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", -1), out->rank);
    const Expr *at[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    for (int i = 0; i < indices->rank; i++)
        at[i] = b.index[i < axis ? i : i + 1];
    const Expr *index = expr_cast(a, DT_I64, expr_read(a, indices, at));
    const Expr *zero = expr_int(a, 0), *one = expr_int(a, 1);
    index =
        expr_select(a, expr_binary(a, EX_LT, index, zero),
                    expr_add(a, index, buffer_extent(a, out, axis)), index);
    stage_end(&b, expr_select(a, expr_binary(a, EX_EQ, index, b.index[axis]),
                              expr_read(a, c->in[2], &one),
                              expr_read(a, c->in[2], &zero)));
}

/* ---- Hardmax: 1 at the first of the largest elements */

static bool infer_hardmax(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int axis;
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", -1), x->rank,
                    &axis))
        return false;
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

static void define_hardmax(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", -1), x->rank);
    int64_t dims[MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = 1;
    Buffer *out[2] = {define_temp(c, "best", x->dtype, x->rank, dims),
                      define_temp(c, "place", DT_I64, x->rank, dims)};
    StageBuilder b;
    stage_begin(&b, c->def, out[0]);
    Arena *a = b.arena;
    const Expr *k = stage_reduce(&b, x->dims[axis], "k");
    const Expr *value[2] = {read_along(&b, x, axis, k), k};
    stage_end_tuple(&b, reducer_arg(a, x->dtype, true, false), out, value);
    stage_begin(&b, c->def, c->out[0]);
    const Expr *place = read_along(&b, out[1], axis, expr_int(a, 0));
    stage_end(&b, expr_select(a, expr_binary(a, EX_EQ, place, b.index[axis]),
                              expr_const(a, x->dtype, 1),
                              expr_const(a, x->dtype, 0)));
}

/* ---- ReverseSequence: the first elements of each row, backwards */

static bool infer_reverse(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *lengths = infer_input(c, 1);
    int batch, time;
    if (!infer_rank(c, 0, 2, MAX_RANK) || !infer_types(c, 1, TYPES_INDEX) ||
        !infer_rank(c, 1, 1, 1) ||
        !infer_axis(c, "batch_axis",
                    attrs_int(&c->node->attrs, "batch_axis", 1), x->rank,
                    &batch) ||
        !infer_axis(c, "time_axis", attrs_int(&c->node->attrs, "time_axis", 0),
                    x->rank, &time))
        return false;
    if (batch == time)
        return infer_error(c, "batch_axis and time_axis are both %d", time);
    if (!extent_equal(lengths->dims[0], x->dims[batch]))
        return infer_error(c,
                           "sequence_lens must have one length for each "
                           "element of axis %d",
                           batch);
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

static void define_reverse(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int batch =
        normal_axis(attrs_int(&c->node->attrs, "batch_axis", 1), x->rank);
    int time =
        normal_axis(attrs_int(&c->node->attrs, "time_axis", 0), x->rank);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *length =
        expr_cast(a, DT_I64, expr_read(a, c->in[1], &b.index[batch]));
    length = expr_max(a, expr_int(a, 0),
                      expr_min(a, length, buffer_extent(a, x, time)));
    const Expr *at = b.index[time];
    const Expr *mirrored = expr_sub(a, expr_add_int(a, length, -1), at);
    at = expr_select(a, expr_binary(a, EX_LT, at, length), mirrored, at);
    stage_end(&b, read_along(&b, x, time, at));
}

/* ---- Compress: the elements whose condition holds */

/* Without an axis the elements count in row-major order. */
static bool compress_axis(const Node *node, int rank, int *axis)
{
    const Attr *attr = attrs_find(&node->attrs, "axis");
    if (attr)
        *axis = normal_axis(attr->i, rank);
    return attr != NULL;
}

/* The condition may be shorter than the axis, never longer. */
static bool infer_compress(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    const Array *condition = infer_constant(c, 1, "condition");
    Extent dims[MAX_RANK];
    int axis = 0, rank = 1;
    int64_t length = type_count(x), count = 0;
    if (!condition || !infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_types(c, 1, TYPES_BOOL) || !infer_rank(c, 1, 1, 1))
        return false;
    if (attrs_find(&c->node->attrs, "axis")) {
        if (!infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 0),
                        x->rank, &axis))
            return false;
        rank = x->rank;
        memcpy(dims, x->dims, sizeof dims);
        length = extent_known(x->dims[axis]);
    }
    if (length >= 0 && array_count(condition) > length)
        return infer_error(c, "%lld conditions for %lld elements",
                           (long long)array_count(condition),
                           (long long)length);
    for (int64_t i = 0; i < array_count(condition); i++)
        count += array_get_int(condition, i) != 0;
    dims[axis] = extent_const(count);
    return infer_set_checked(c, 0, x->dtype, rank, dims);
}

/* The k-th element whose condition holds is the one with k before it. */
static Buffer *chosen_places(DefineContext *c, int64_t count)
{
    const Buffer *condition = c->in[1];
    int64_t length = condition->dims[0];
    Buffer *before = define_temp(c, "before", DT_I64, 1, &length);
    Buffer *place = define_temp(c, "place", DT_I64, 1, &count);
    StageBuilder b;
    stage_begin(&b, c->def, before);
    Arena *a = b.arena;
    const Expr *k = stage_reduce(&b, length, "k"), *zero = expr_int(a, 0);
    const Expr *counts = expr_and(a, expr_read(a, condition, &k),
                                  expr_binary(a, EX_LT, k, b.index[0]));
    stage_end_reduce(&b, "sum", expr_select(a, counts, expr_int(a, 1), zero));
    stage_begin(&b, c->def, place);
    k = stage_reduce(&b, length, "k");
    counts =
        expr_and(a, expr_read(a, condition, &k),
                 expr_binary(a, EX_EQ, expr_read(a, before, &k), b.index[0]));
    stage_end_reduce(&b, "max", expr_select(a, counts, k, zero));
    return place;
}

static void define_compress(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int axis = 0;
    bool along = compress_axis(c->node, x->rank, &axis);
    Buffer *places = chosen_places(c, c->out[0]->dims[axis]);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *at = expr_read(b.arena, places, &b.index[axis]);
    if (along) {
        stage_end(&b, read_along(&b, x, axis, at));
        return;
    }
    unflatten_index(b.arena, at, x->rank, x->dims, index);
    stage_end(&b, expr_read(b.arena, x, index));
}

/* The condition is known: a Gather of places that are counted now. */
static bool decompose_compress(Graph *g, Node *node)
{
    Tensor *x = node->inputs.data[0];
    const Array *condition = node->inputs.data[1]->value;
    int axis = 0;
    int64_t count = 0, elements = type_count(&x->type);
    if (!condition || elements < 0)
        return false;
    int64_t *places = ARENA_ARRAY(g->arena, int64_t, array_count(condition));
    for (int64_t i = 0; i < array_count(condition); i++)
        if (array_get_int(condition, i))
            places[count++] = i;
    if (!compress_axis(node, x->type.rank, &axis)) {
        TensorType flat = {.dtype = x->type.dtype, .rank = 1};
        flat.dims[0] = extent_const(elements);
        x = op_make_reshape(g, NULL, x, &flat);
        graph_move_before(g, x->producer, node);
    }
    Tensor *inputs[2] = {
        x,
        graph_add_constant(g, arena_printf(g->arena, "%s.places", node->name),
                           array_ints(g->arena, places, (int)count))};
    Node *gather = graph_add_node(g, "Gather", NULL, inputs, 2, 1);
    attrs_set_int(g->arena, &gather->attrs, "axis", axis);
    graph_add_source(g, gather, node);
    if (!op_infer(g, gather))
        return false;
    graph_move_before(g, gather, node);
    graph_replace(g, node->outputs.data[0], gather->outputs.data[0]);
    graph_remove_node(g, node);
    return true;
}

/* ---- CenterCropPad */

typedef struct CentredAxis {
    int64_t extent, shift; /* input place = output place + shift */
} CentredAxis;

static CentredAxis centred_axis(const Node *node, int rank, int axis,
                                int64_t in)
{
    const Array *shape = node->inputs.data[1]->value;
    int count;
    const int64_t *axes = attrs_ints(&node->attrs, "axes", &count);
    for (int64_t i = 0; i < array_count(shape); i++) {
        if ((axes ? normal_axis(axes[i], rank) : i) != axis)
            continue;
        int64_t to = array_get_int(shape, i);
        /* The odd element goes, or is added, at the end. */
        return (CentredAxis){to, in >= to ? (in - to) / 2 : -((to - in) / 2)};
    }
    return (CentredAxis){in, 0};
}

static bool infer_center(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    const Array *shape = infer_constant(c, 1, "shape");
    int count;
    const int64_t *axes = attrs_ints(&c->node->attrs, "axes", &count);
    bool chosen[MAX_RANK] = {false};
    Extent dims[MAX_RANK];
    if (!shape || !infer_types(c, 1, TYPES_INDEX) || !infer_rank(c, 1, 1, 1))
        return false;
    if (axes && !infer_axes(c, array_ints(c->graph->arena, axes, count),
                            x->rank, chosen))
        return false;
    if (array_count(shape) != (axes ? count : x->rank))
        return infer_error(c, "shape has %lld extents for %d axes",
                           (long long)array_count(shape),
                           axes ? count : x->rank);
    for (int64_t i = 0; i < array_count(shape); i++)
        if (array_get_int(shape, i) < 0)
            return infer_error(c, "shape holds %lld",
                               (long long)array_get_int(shape, i));
    for (int i = 0; i < x->rank; i++) {
        dims[i] = x->dims[i];
        if (axes && !chosen[i])
            continue;
        if (!extent_is_const(x->dims[i]))
            return infer_error(c,
                               "axis %d has a named extent; bind it with "
                               "--dim",
                               i);
        dims[i] = extent_const(
            centred_axis(c->node, x->rank, i, x->dims[i].value).extent);
    }
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

static void define_center(DefineContext *c)
{
    const Buffer *x = c->in[0];
    const Expr *index[MAX_RANK];
    bool padded = false;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    for (int i = 0; i < x->rank; i++) {
        CentredAxis axis = centred_axis(c->node, x->rank, i, x->dims[i]);
        index[i] = expr_add_int(a, b.index[i], axis.shift);
        padded |= axis.extent > x->dims[i];
    }
    stage_end(
        &b, padded ? expr_read_padded(a, x, index, expr_const(a, x->dtype, 0))
                   : expr_read(a, x, index));
}

static const AttrSpec trilu_attrs[] = {{"upper", ATTR_FLAG, false}, {0}};
static const AttrSpec eye_attrs[] = {
    {"dtype", ATTR_INT, false}, {"k", ATTR_INT, false}, {0}};
static const AttrSpec axis_attrs[] = {{"axis", ATTR_INT, false}, {0}};
static const AttrSpec reverse_attrs[] = {
    {"batch_axis", ATTR_INT, false}, {"time_axis", ATTR_INT, false}, {0}};
static const AttrSpec center_attrs[] = {{"axes", ATTR_INTS, false}, {0}};

#define ROW(field, op_name, least, most, mask, specs, rewrite, first)         \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "",                              \
                                   .min_inputs = least,                       \
                                   .max_inputs = most,                        \
                                   .min_outputs = 1,                          \
                                   .max_outputs = 1,                          \
                                   .traits = mask,                            \
                                   .attrs = specs,                            \
                                   .infer = infer_##field,                    \
                                   .define = define_##field,                  \
                                   .decompose = rewrite,                      \
                                   .since = first}
ROW(trilu, "Trilu", 1, 2, OP_RUNTIME_EXTENTS, trilu_attrs, NULL, 14);
ROW(eye_like, "EyeLike", 1, 1, OP_RUNTIME_EXTENTS, eye_attrs, NULL, 9);
ROW(one_hot, "OneHot", 3, 3, OP_RUNTIME_EXTENTS, axis_attrs, NULL, 11);
ROW(hardmax, "Hardmax", 1, 1, OP_REDUCTION | OP_RUNTIME_EXTENTS, axis_attrs,
    NULL, 13);
ROW(reverse, "ReverseSequence", 2, 2, OP_INJECTIVE | OP_RUNTIME_EXTENTS,
    reverse_attrs, NULL, 10);
ROW(compress, "Compress", 2, 2, OP_REDUCTION, axis_attrs, decompose_compress,
    11);
ROW(center, "CenterCropPad", 2, 2, OP_INJECTIVE | OP_RUNTIME_EXTENTS,
    center_attrs, NULL, 18);

const Op *const ops_position[] = {&row_trilu,   &row_eye_like, &row_one_hot,
                                  &row_hardmax, &row_reverse,  &row_compress,
                                  &row_center,  NULL};
