/* Results of extents and few numbers: shapes, fillings, ranges, and operands
 * repeated along axes. */
#include <math.h>

#include "ops/bounded.h"
#include "ops/rules.h"

/* ---- results that depend on types or constants only */

void shape_range(const Node *node, int rank, int *first, int *end)
{
    int64_t from = attrs_int(&node->attrs, "start", 0);
    int64_t to = attrs_int(&node->attrs, "end", rank);
    from += from < 0 ? rank : 0;
    to += to < 0 ? rank : 0;
    *first = (int)(from < 0 ? 0 : from > rank ? rank : from);
    *end = (int)(to < 0 ? 0 : to > rank ? rank : to);
    if (*end < *first)
        *end = *first;
}

static bool infer_shape(InferContext *c)
{
    int first, end;
    shape_range(c->node, infer_input(c, 0)->rank, &first, &end);
    Extent dims[1] = {extent_const(end - first)};
    infer_set(c, 0, DT_I64, 1, dims);
    return true;
}

/* A list of numbers as a chain of selections. */
static const Expr *select_number(StageBuilder *b, const Expr *const *numbers,
                                 int count)
{
    Arena *a = b->arena;
    const Expr *value = count ? numbers[count - 1] : expr_int(a, 0);
    for (int i = count - 2; i >= 0; i--)
        value =
            expr_select(a, expr_binary(a, EX_EQ, b->index[0], expr_int(a, i)),
                        numbers[i], value);
    return value;
}

/* For a type that is only known when the definition is made. */
static void define_shape(DefineContext *c)
{
    int first, end;
    StageBuilder b;
    const Expr *numbers[MAX_RANK];
    const Extent *dims = c->node->inputs.data[0]->type.dims;
    shape_range(c->node, c->in[0]->rank, &first, &end);
    stage_begin(&b, c->def, c->out[0]);
    for (int i = first; i < end; i++)
        numbers[i - first] = define_extent(c, dims[i]);
    stage_end(&b, select_number(&b, numbers, end - first));
}

/* Shape and Size of a known type are constants, whatever the input holds;
 * later operators want them as such. */
static bool decompose_shape(Graph *g, Node *node)
{
    const TensorType *x = &node->inputs.data[0]->type;
    Tensor *output = node->outputs.data[0];
    int first, end;
    if (!type_is_static(x) || (output->is_output && !output->users.count))
        return false;
    shape_range(node, x->rank, &first, &end);
    int64_t numbers[MAX_RANK], count = 1;
    for (int i = first; i < end; i++)
        numbers[i - first] = x->dims[i].value;
    for (int i = 0; i < x->rank; i++)
        count *= x->dims[i].value;
    bool is_size = node->op->name[1] == 'i';
    Array *value = array_ints(g->arena, numbers, end - first);
    if (is_size) {
        value = array_new(g->arena, DT_I64, 0, NULL);
        array_set_int(value, 0, count);
    }
    Tensor *constant = graph_add_constant(
        g, arena_printf(g->arena, "%s.value", node->name), value);
    /* For an output the node stays, all else reads the constant. */
    if (output->is_output) {
        graph_replace_uses(g, output, constant);
        return false;
    }
    graph_replace(g, output, constant);
    graph_remove_node(g, node);
    return true;
}

/* A scalar. */
static bool infer_size(InferContext *c)
{
    infer_set(c, 0, DT_I64, 0, NULL);
    return true;
}

static void define_size(DefineContext *c)
{
    const TensorType *x = &c->node->inputs.data[0]->type;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b,
              define_extent(c, extents_product(b.arena, x->dims, x->rank)));
}

/* Extents from a constant list, each at least 0. */
static bool infer_listed(InferContext *c, int index, const char *what,
                         int *rank, Extent *dims)
{
    *rank = infer_extents(c, index, what, MAX_RANK, dims);
    if (*rank < 0)
        return false;
    if (infer_input(c, index)->rank != 1)
        return infer_error(c,
                           "the shape must be a list of at most %d "
                           "integers",
                           MAX_RANK);
    for (int i = 0; i < *rank; i++)
        if (extent_is_const(dims[i]) && dims[i].value < 0)
            return infer_error(c, "the shape holds %lld",
                               (long long)dims[i].value);
    return true;
}

static const Array *fill_value(const Node *node)
{
    const Attr *attr = attrs_find(&node->attrs, "value");
    return attr ? attr->tensor : NULL;
}

static bool infer_constant_of_shape(InferContext *c)
{
    const Array *value = fill_value(c->node);
    Extent dims[MAX_RANK];
    int rank;
    if (!infer_listed(c, 0, "shape", &rank, dims))
        return false;
    if (value && array_count(value) != 1)
        return infer_error(c, "value must hold one element");
    return infer_set_checked(c, 0, value ? value->dtype : DT_F32, rank, dims);
}

/* The only element of a constant. */
static const Expr *number(Arena *a, const Array *array)
{
    return dtype_is_float(array->dtype)
               ? expr_const(a, array->dtype, array_get(array, 0))
               : expr_const_int(a, array->dtype, array_get_int(array, 0));
}

static void define_constant_of_shape(DefineContext *c)
{
    const Array *value = fill_value(c->node);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b,
              value ? number(b.arena, value) : expr_const(b.arena, DT_F32, 0));
}

/* ---- Range */

/* From and to what named dimensions say, in steps of a constant above 0. */
static bool infer_open_range(InferContext *c)
{
    static const char *const names[] = {"start", "limit", "delta"};
    Arena *arena = c->graph->arena;
    Extent value[3];
    /* No bounds would help. */
    if (!infer_constant(c, 2, names[2]))
        return false;
    for (int i = 0; i < 3; i++)
        if (infer_extents(c, i, names[i], 1, &value[i]) != 1 ||
            !infer_same_dtype(c, 0, i))
            return false;
    if (!extent_is_const(value[2]) || value[2].value < 1)
        return infer_error(c, "its delta must be a constant above 0 where "
                              "start or limit depend on named dimensions");
    Extent room = extent_max(arena, extent_sub(arena, value[1], value[0]),
                             extent_const(0));
    Extent dims[1] = {extent_div(
        arena, extent_add(arena, room, extent_const(value[2].value - 1)),
        value[2])};
    return infer_set_checked(c, 0, infer_input(c, 0)->dtype, 1, dims);
}

/* The count must be known: all three operands are constants, or follow from
 * named dimensions. */
static bool infer_range(InferContext *c)
{
    static const char *const names[] = {"start", "limit", "delta"};
    const Array *value[3];
    for (int i = 0; i < 3; i++)
        if (!c->node->inputs.data[i]->value &&
            !dtype_is_float(infer_input(c, i)->dtype))
            return infer_open_range(c);
    for (int i = 0; i < 3; i++) {
        value[i] = infer_constant(c, i, names[i]);
        if (!value[i] || !infer_same_dtype(c, 0, i))
            return false;
        if (array_count(value[i]) != 1)
            return infer_error(c, "%s must be one number", names[i]);
    }
    double delta = array_get(value[2], 0);
    if (delta == 0)
        return infer_error(c, "delta is 0");
    double steps =
        ceil((array_get(value[1], 0) - array_get(value[0], 0)) / delta);
    if (!(steps < 0x1p40))
        return infer_error(c, "it would have %g elements", steps);
    Extent dims[1] = {extent_const(steps > 0 ? (int64_t)steps : 0)};
    return infer_set_checked(c, 0, value[0]->dtype, 1, dims);
}

/* start + i * delta, which does not accumulate errors. */
static void define_range(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Tensor *first = c->node->inputs.data[0];
    const Expr *start =
        first->value
            ? number(a, first->value)
            : expr_cast(a, first->type.dtype,
                        define_extent(c, extent_operand(c->node, 0, 0)));
    const Expr *delta =
        c->node->inputs.data[2]->value
            ? number(a, c->node->inputs.data[2]->value)
            : expr_cast(a, first->type.dtype,
                        define_extent(c, extent_operand(c->node, 2, 0)));
    const Expr *i = expr_cast(a, start->dtype, b.index[0]);
    stage_end(&b, expr_add(a, start, expr_mul(a, i, delta)));
}

/* ---- Expand and Tile */

/* Like broadcasting with a tensor of that shape: an extent of 1 in the shape
 * leaves the input's. */
static bool infer_expand(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    int rank;
    if (!infer_listed(c, 1, "shape", &rank, dims))
        return false;
    for (int shift = x->rank - rank; shift > 0; shift--) {
        for (int i = rank; i > 0; i--)
            dims[i] = dims[i - 1];
        dims[0] = extent_const(1);
        rank++;
    }
    for (int i = 0; i < x->rank; i++) {
        Extent *to = &dims[rank - x->rank + i];
        /* A number that a run brings must be that of the input or 1: either
         * way there are as many as there are. */
        if (operand_is_bounded(c->node, 1) && extent_known(x->dims[i]) > 1 &&
            !extent_is_const(*to))
            *to = x->dims[i];
        if (!infer_broadcast_dim(c, to, x->dims[i]))
            return false;
    }
    return infer_set_checked(c, 0, x->dtype, rank, dims);
}

static void define_expand(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, read_broadcast(&b, c->in[0]));
}

static bool infer_tile(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    int rank;
    if (!infer_listed(c, 1, "repeats", &rank, dims))
        return false;
    if (rank != x->rank)
        return infer_error(c, "repeats has %d values for rank %d", rank,
                           x->rank);
    for (int i = 0; i < rank; i++)
        dims[i] = extent_mul(c->graph->arena, x->dims[i], dims[i]);
    return infer_set_checked(c, 0, x->dtype, rank, dims);
}

/* The repeated axes wrap around; others keep plain indices. */
static void define_tile(DefineContext *c)
{
    const Buffer *x = c->in[0];
    const Extent *in = c->node->inputs.data[0]->type.dims;
    const Extent *out = c->node->outputs.data[0]->type.dims;
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    for (int i = 0; i < x->rank; i++) {
        index[i] = b.index[i];
        if (x->dims[i] < 2)
            index[i] = expr_int(b.arena, 0);
        else if (!extent_equal(in[i], out[i]))
            index[i] = expr_binary(b.arena, EX_MOD, index[i],
                                   define_extent(c, in[i]));
    }
    stage_end(&b, expr_read(b.arena, x, index));
}

static const AttrSpec shape_attrs[] = {
    {"end", ATTR_INT, false}, {"start", ATTR_INT, false}, {0}};
static const AttrSpec fill_attrs[] = {{"value", ATTR_TENSOR, false}, {0}};

#define ROW(field, op_name, least, most, outputs, mask, specs, rule,          \
            definition, rewrite, first)                                       \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "",                              \
                                   .min_inputs = least,                       \
                                   .max_inputs = most,                        \
                                   .min_outputs = 1,                          \
                                   .max_outputs = outputs,                    \
                                   .traits = mask,                            \
                                   .attrs = specs,                            \
                                   .infer = rule,                             \
                                   .define = definition,                      \
                                   .decompose = rewrite,                      \
                                   .since = first}
ROW(shape, "Shape", 1, 1, 1, OP_TYPE_ONLY | OP_RUNTIME_EXTENTS, shape_attrs,
    infer_shape, define_shape, decompose_shape, 15);
ROW(size, "Size", 1, 1, 1, OP_TYPE_ONLY | OP_RUNTIME_EXTENTS, NULL, infer_size,
    define_size, decompose_shape, 13);
ROW(constant_of_shape, "ConstantOfShape", 1, 1, 1, OP_RUNTIME_EXTENTS,
    fill_attrs, infer_constant_of_shape, define_constant_of_shape, NULL, 9);
ROW(range, "Range", 3, 3, 1, OP_RUNTIME_EXTENTS, NULL, infer_range,
    define_range, NULL, 11);
ROW(expand, "Expand", 2, 2, 1, OP_INJECTIVE | OP_RUNTIME_EXTENTS, NULL,
    infer_expand, define_expand, NULL, 13);
ROW(tile, "Tile", 2, 2, 1, OP_INJECTIVE | OP_RUNTIME_EXTENTS, NULL, infer_tile,
    define_tile, NULL, 13);

const Op *const ops_fill[] = {&row_shape, &row_size,   &row_constant_of_shape,
                              &row_range, &row_expand, &row_tile,
                              NULL};
