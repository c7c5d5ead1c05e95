/* Scattering, seen from the output: each place looks for the entries that
 * name it. Of equal ones the last wins, as if they were written in order, or
 * all are combined. Where there are more than a few entries, loops write them
 * one by one instead, as the search takes as long as both lists multiplied.
 * Constant indices are checked when types are inferred; those that arrive at
 * run time are clamped. */
#include <string.h>

#include "ops/loop_program.h"
#include "ops/rules.h"

/* Searched for rather than written: such a scatter fuses with others. */
enum { FEW_ENTRIES = 4 };

/* How an update joins what is there; `reducer` joins updates first. */
typedef struct Join {
    const char *name, *reducer;
    ExprKind kind;
} Join;

static const Join joins[] = {{"none", NULL, EX_ADD},
                             {"add", "sum", EX_ADD},
                             {"mul", "prod", EX_MUL},
                             {"max", "max", EX_MAX},
                             {"min", "min", EX_MIN}};

static const Join *join_of(const Node *node)
{
    const char *name = attrs_string(&node->attrs, "reduction", "none");
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++)
        if (!strcmp(joins[i].name, name))
            return &joins[i];
    return NULL;
}

/* Data, indices and updates of ScatterElements and ScatterND. */
static bool infer_operands(InferContext *c)
{
    const Join *join = join_of(c->node);
    if (!infer_rank(c, 0, 1, MAX_RANK) || !infer_types(c, 1, TYPES_INDEX) ||
        !infer_same_dtype(c, 0, 2))
        return false;
    if (!join)
        return infer_error(c, "reduction is none, add, mul, max or min");
    if (join->reducer && !infer_types(c, 0, TYPES_NUMBER))
        return false;
    const TensorType *x = infer_input(c, 0);
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* What leaves everything as it is. */
static const Expr *neutral(Arena *a, const Join *join, DType dtype)
{
    if (join->kind == EX_MAX)
        return lowest_of(a, dtype);
    return join->kind == EX_MIN ? highest_of(a, dtype)
                                : expr_const(a, dtype, join->kind == EX_MUL);
}

/* Joins the updates that `b` reduces over with the data. */
static void end_joined(DefineContext *c, StageBuilder *b, const Join *join,
                       const Expr *hit, const Expr *update)
{
    Arena *a = b->arena;
    const Buffer *joined = b->stage->out[0];
    update = expr_select(a, hit, update, neutral(a, join, update->dtype));
    if (b->stage->reduce_count)
        stage_end_reduce(b, join->reducer, update);
    else
        stage_end(b, update);
    stage_begin(b, c->def, c->out[0]);
    stage_end(b, expr_binary(a, join->kind, read_same(b, c->in[0]),
                             read_same(b, joined)));
}

/* Sums of many numbers of few digits need more of them on the way. */
static bool rounds_once(const Node *node)
{
    DType dtype = node->inputs.data[0]->type.dtype;
    return join_of(node)->reducer && dtype_is_float(dtype) &&
           dtype_size(dtype) == 2;
}

/* The data as they are, before anything is written over them. */
static void copy_data(LoopContext *c)
{
    const TensorType *x = &c->node->inputs.data[0]->type;
    const Expr *index[MAX_RANK];
    loop_nest(c, x->rank, x, -1, index);
    const Expr *at = flatten_index(c->arena, x->rank, c->in[0]->dims, index);
    loop_store(c, c->out[0], at, loop_load(c, c->in[0], at));
    loop_end_nest(c, x, -1);
}

static void store_joined(LoopContext *c, const Join *join, const Expr *at,
                         const Expr *update)
{
    if (join->reducer)
        update = expr_binary(c->arena, join->kind, loop_load(c, c->out[0], at),
                             update);
    loop_store(c, c->out[0], at, update);
}

/* ---- ScatterElements: indices along one axis */

static bool infer_scatter_elements(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *indices = infer_input(c, 1);
    int axis;
    if (!infer_operands(c) || !infer_rank(c, 1, x->rank, x->rank) ||
        !infer_rank(c, 2, x->rank, x->rank) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 0), x->rank,
                    &axis) ||
        !infer_indices(c, 1, 0, 1, x->dims[axis]))
        return false;
    for (int i = 0; i < x->rank; i++) {
        if (!extent_equal(indices->dims[i], infer_input(c, 2)->dims[i]))
            return infer_error(c, "indices and updates must have the same "
                                  "shape");
        if (i != axis && extent_is_const(x->dims[i]) &&
            extent_known(indices->dims[i]) > x->dims[i].value)
            return infer_error(c,
                               "the indices are longer than the data on "
                               "axis %d",
                               i);
    }
    return true;
}

/* The entry at k along the axis, and whether it names the stage's place. */
static const Expr *element_hit(StageBuilder *b, const DefineContext *c,
                               int axis, const Expr *k, const Expr **entry)
{
    Arena *a = b->arena;
    const Buffer *x = c->in[0], *indices = c->in[1];
    const TensorType *x_type = &c->node->inputs.data[0]->type;
    const TensorType *type = &c->node->inputs.data[1]->type;
    const Array *known = c->node->inputs.data[1]->value;
    const Expr *inside = expr_const_int(a, DT_BOOL, 1);
    for (int i = 0; i < x->rank; i++) {
        entry[i] = i == axis ? k : b->index[i];
        if (i != axis && !extent_equal(x_type->dims[i], type->dims[i]))
            inside = expr_and(a, inside,
                              expr_binary(a, EX_LT, b->index[i],
                                          buffer_extent(a, indices, i)));
    }
    const Expr *at = expr_read_padded(a, indices, entry,
                                      expr_const_int(a, indices->dtype, 0));
    at = index_wrap(a, at, buffer_extent(a, x, axis), known);
    return expr_and(a, inside, expr_binary(a, EX_EQ, at, b->index[axis]));
}

static void define_scatter_elements(DefineContext *c)
{
    const Buffer *x = c->in[0], *indices = c->in[1], *updates = c->in[2];
    const Join *join = join_of(c->node);
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", 0), x->rank);
    const Expr *entry[MAX_RANK];
    StageBuilder b;
    Buffer *found = join->reducer
                        ? define_temp_like(c, "joined", x)
                        : define_temp_part(c, "winner", DT_I64, x->rank, x);
    stage_begin(&b, c->def, found);
    Arena *a = b.arena;
    const Expr *k = stage_reduce_over(&b, indices, axis, "k");
    const Expr *hit = element_hit(&b, c, axis, k, entry);
    if (join->reducer) {
        const Expr *update = expr_read_padded(
            a, updates, entry, expr_const(a, updates->dtype, 0));
        end_joined(c, &b, join, hit, update);
        return;
    }
    /* -1: no entry names this place. */
    stage_end_reduce(&b, "max", expr_select(a, hit, k, expr_int(a, -1)));
    stage_begin(&b, c->def, c->out[0]);
    const Expr *which = read_same(&b, found);
    stage_end(&b, expr_select(a, expr_binary(a, EX_LE, expr_int(a, 0), which),
                              read_along(&b, updates, axis, which),
                              read_same(&b, x)));
}

static bool elements_prefer_program(const Node *node)
{
    const TensorType *x = &node->inputs.data[0]->type;
    int axis = normal_axis(attrs_int(&node->attrs, "axis", 0), x->rank);
    return node->inputs.data[1]->type.dims[axis].value > FEW_ENTRIES &&
           !rounds_once(node);
}

/* Entries that name one place differ in the axis only: what is outside of it
 * may run in parallel. */
static void program_scatter_elements(LoopContext *c)
{
    const Buffer *x = c->in[0], *indices = c->in[1];
    const TensorType *types[2] = {&c->node->inputs.data[0]->type,
                                  &c->node->inputs.data[1]->type};
    const Array *known = c->node->inputs.data[1]->value;
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", 0), x->rank);
    const Expr *at[MAX_RANK];
    Arena *a = c->arena;
    if (buffer_size(x) == 0)
        return;
    copy_data(c);
    loop_nest(c, axis, types[1], -1, at);
    const Expr *entry = flatten_index(a, x->rank, indices->dims, at);
    at[axis] = index_wrap(a, loop_load(c, indices, entry),
                          loop_extent(c, types[0]->dims[axis]), known);
    store_joined(c, join_of(c->node), flatten_index(a, x->rank, x->dims, at),
                 loop_load(c, c->in[2], entry));
    loop_end_nest(c, types[1], -1);
}

/* ---- ScatterND: the last axis of the indices holds places on the first
 * axes of the data; what follows those is written as a whole. */

static bool infer_scatter_nd(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *indices = infer_input(c, 1);
    const TensorType *updates = infer_input(c, 2);
    if (!infer_operands(c) || !infer_rank(c, 1, 1, MAX_RANK))
        return false;
    int last = indices->rank - 1;
    int64_t depth = extent_known(indices->dims[last]);
    if (depth < 1 || depth > x->rank)
        return infer_error(c,
                           "the last extent of the indices is %lld, it must "
                           "be 1 to %d",
                           (long long)depth, x->rank);
    for (int i = 0; i < depth; i++)
        if (!infer_indices(c, 1, i, depth, x->dims[i]))
            return false;
    int rank = last + x->rank - (int)depth;
    bool fits = updates->rank == rank;
    for (int i = 0; i < rank && fits; i++)
        fits = extent_equal(updates->dims[i],
                            i < last ? indices->dims[i]
                                     : x->dims[i - last + (int)depth]);
    if (!fits)
        return infer_error(c, "the updates must have the shape of the indices "
                              "without their last axis, and then that of what "
                              "each names");
    return true;
}

/* Adds reduction axes over the entries: entry[], and whether one names the
 * stage's place. */
static const Expr *entry_hit(StageBuilder *b, const DefineContext *c,
                             const Expr **entry)
{
    Arena *a = b->arena;
    const Buffer *x = c->in[0], *indices = c->in[1];
    const Array *known = c->node->inputs.data[1]->value;
    int last = indices->rank - 1;
    const Expr *hit = expr_const_int(a, DT_BOOL, 1), *at[MAX_RANK];
    for (int i = 0; i < last; i++)
        at[i] = entry[i] = stage_reduce_over(b, indices, i, "k");
    for (int i = 0; i < indices->dims[last]; i++) {
        at[last] = expr_int(a, i);
        const Expr *place = index_wrap(a, expr_read(a, indices, at),
                                       buffer_extent(a, x, i), known);
        hit = expr_and(a, hit, expr_binary(a, EX_EQ, place, b->index[i]));
    }
    return hit;
}

static void define_scatter_nd(DefineContext *c)
{
    const Buffer *x = c->in[0], *indices = c->in[1], *updates = c->in[2];
    const Join *join = join_of(c->node);
    int last = indices->rank - 1, depth = (int)indices->dims[last];
    const Expr *entry[MAX_RANK];
    StageBuilder b;
    Buffer *found = join->reducer
                        ? define_temp_like(c, "joined", x)
                        : define_temp_part(c, "winner", DT_I64, depth, x);
    stage_begin(&b, c->def, found);
    Arena *a = b.arena;
    const Expr *hit = entry_hit(&b, c, entry);
    if (join->reducer) {
        for (int i = depth; i < x->rank; i++)
            entry[last + i - depth] = b.index[i];
        end_joined(c, &b, join, hit, expr_read(a, updates, entry));
        return;
    }
    const Expr *number = flatten_index(a, last, indices->dims, entry);
    number = expr_select(a, hit, number, expr_int(a, -1));
    if (last)
        stage_end_reduce(&b, "max", number);
    else
        stage_end(&b, number);
    stage_begin(&b, c->def, c->out[0]);
    const Expr *which = expr_read(a, found, b.index);
    const Expr *hits = expr_binary(a, EX_LE, expr_int(a, 0), which);
    unflatten_index(a, which, last, indices->dims, entry);
    for (int i = depth; i < x->rank; i++)
        entry[last + i - depth] = b.index[i];
    stage_end(&b, expr_select(a, hits, expr_read(a, updates, entry),
                              read_same(&b, x)));
}

static bool nd_prefers_program(const Node *node)
{
    const TensorType *indices = &node->inputs.data[1]->type;
    int64_t entries = 1;
    for (int i = 0; i < indices->rank - 1; i++)
        entries *= indices->dims[i].value;
    return entries > FEW_ENTRIES && !rounds_once(node);
}

static void program_scatter_nd(LoopContext *c)
{
    const Buffer *x = c->in[0], *indices = c->in[1], *updates = c->in[2];
    const TensorType *types[2] = {&c->node->inputs.data[0]->type,
                                  &c->node->inputs.data[1]->type};
    const Array *known = c->node->inputs.data[1]->value;
    int last = indices->rank - 1, depth = (int)indices->dims[last];
    TensorType entries = *types[1], block = {.rank = x->rank - depth};
    const Expr *entry[MAX_RANK], *at[MAX_RANK];
    Arena *a = c->arena;
    if (buffer_size(x) == 0)
        return;
    copy_data(c);
    const Buffer *place[MAX_RANK];
    for (int i = 0; i < depth; i++)
        place[i] = loop_variable(c, "place", DT_I64);
    entries.rank = last;
    for (int i = 0; i < block.rank; i++)
        block.dims[i] = types[0]->dims[depth + i];
    loop_nest(c, 0, &entries, -1, entry);
    for (int i = 0; i < depth; i++) {
        entry[last] = expr_int(a, i);
        const Expr *index = loop_load(
            c, indices, flatten_index(a, last + 1, indices->dims, entry));
        loop_set(
            c, place[i],
            index_wrap(a, index, loop_extent(c, types[0]->dims[i]), known));
        at[i] = loop_get(c, place[i]);
    }
    loop_nest(c, 0, &block, -1, &at[depth]);
    for (int i = 0; i < block.rank; i++)
        entry[last + i] = at[depth + i];
    store_joined(
        c, join_of(c->node), flatten_index(a, x->rank, x->dims, at),
        loop_load(c, updates,
                  flatten_index(a, updates->rank, updates->dims, entry)));
    loop_end_nest(c, &block, -1);
    loop_end_nest(c, &entries, -1);
}

/* ---- TensorScatter: a cache and rows to put into it, from a place of its
 * own in each batch */

static bool infer_tensor_scatter(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *update = infer_input(c, 1);
    const char *mode = attrs_string(&c->node->attrs, "mode", "linear");
    int axis;
    if (!infer_rank(c, 0, 2, MAX_RANK) ||
        !infer_rank(c, 1, x->rank, x->rank) || !infer_same_dtype(c, 0, 1) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", -2), x->rank,
                    &axis))
        return false;
    if (axis == 0)
        return infer_error(c, "axis 0 is that of batches");
    if (strcmp(mode, "linear") && strcmp(mode, "circular"))
        return infer_error(c, "mode is linear or circular");
    for (int i = 0; i < x->rank; i++) {
        int64_t has = extent_known(x->dims[i]);
        int64_t adds = extent_known(update->dims[i]);
        if (i == axis ? has >= 0 && adds > has
                      : !extent_equal(x->dims[i], update->dims[i]))
            return infer_error(c,
                               "the update does not fit into axis %d of "
                               "the cache",
                               i);
    }
    if (node_has_input(c->node, 2) &&
        (!infer_types(c, 2, TYPES_INDEX) || !infer_rank(c, 2, 1, 1)))
        return false;
    if (node_has_input(c->node, 2) &&
        !extent_equal(infer_input(c, 2)->dims[0], x->dims[0]))
        return infer_error(c, "write_indices must be one a batch");
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* The row of the update that belongs to the stage's place, if there is. */
static void define_tensor_scatter(DefineContext *c)
{
    const Buffer *x = c->in[0], *update = c->in[1];
    const Attrs *attrs = &c->node->attrs;
    bool circular = attrs_string(attrs, "mode", "linear")[0] == 'c';
    int axis = normal_axis(attrs_int(attrs, "axis", -2), x->rank);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *row = b.index[axis];
    if (c->in[2])
        row = expr_sub(a, row,
                       expr_cast(a, DT_I64, expr_read(a, c->in[2], b.index)));
    if (circular && x->dims[axis] > 0)
        row = expr_binary(a, EX_MOD, row, buffer_extent(a, x, axis));
    const Expr *fresh =
        expr_and(a, expr_binary(a, EX_LE, expr_int(a, 0), row),
                 expr_binary(a, EX_LT, row, buffer_extent(a, update, axis)));
    stage_end(&b, expr_select(a, fresh, read_along(&b, update, axis, row),
                              read_same(&b, x)));
}

static const AttrSpec element_attrs[] = {
    {"axis", ATTR_INT, false}, {"reduction", ATTR_STRING, false}, {0}};
static const AttrSpec nd_attrs[] = {{"reduction", ATTR_STRING, false}, {0}};
static const AttrSpec cache_attrs[] = {
    {"axis", ATTR_INT, false}, {"mode", ATTR_STRING, false}, {0}};

#define ROW(field, op_name, least, specs, loops, preferred, first)            \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "",                              \
                                   .min_inputs = least,                       \
                                   .max_inputs = 3,                           \
                                   .min_outputs = 1,                          \
                                   .max_outputs = 1,                          \
                                   .traits =                                  \
                                       OP_REDUCTION | OP_RUNTIME_EXTENTS,     \
                                   .attrs = specs,                            \
                                   .infer = infer_##field,                    \
                                   .define = define_##field,                  \
                                   .program = loops,                          \
                                   .prefers_program = preferred,              \
                                   .since = first}
ROW(scatter_elements, "ScatterElements", 3, element_attrs,
    program_scatter_elements, elements_prefer_program, 18);
ROW(scatter_nd, "ScatterND", 3, nd_attrs, program_scatter_nd,
    nd_prefers_program, 18);
ROW(tensor_scatter, "TensorScatter", 2, cache_attrs, NULL, NULL, 24);

const Op *const ops_scatter[] = {&row_scatter_elements, &row_scatter_nd,
                                 &row_tensor_scatter, NULL};
