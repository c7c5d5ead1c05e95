/* Reductions over chosen axes, ArgMax and ArgMin, running sums. */
#include <string.h>

#include "ops/loop_program.h"
#include "ops/rules.h"

typedef const Expr *Scalar(Arena *a, const Expr *x);

typedef struct ReduceOp {
    Op op;
    unsigned types;
    const char *reducer;
    Scalar *before; /* of each element, or NULL */
    Scalar *after;  /* of the result, or NULL */
    bool is_mean;
} ReduceOp;

/* The chosen axes of a node with its operand `axes` (all when there is
 * none); false after an error. */
static bool infer_chosen(InferContext *c, int rank, bool *chosen)
{
    for (int i = 0; i < rank; i++)
        chosen[i] = false;
    const Array *axes = NULL;
    if (node_has_input(c->node, 1)) {
        axes = infer_constant(c, 1, "axes");
        if (!axes || !infer_axes(c, axes, rank, chosen))
            return false;
    }
    if ((!axes || array_count(axes) == 0) &&
        !attrs_int(&c->node->attrs, "noop_with_empty_axes", 0))
        for (int i = 0; i < rank; i++)
            chosen[i] = true;
    return true;
}

/* keepdims leaves an extent of 1 where an axis was reduced. */
static bool infer_reduced(InferContext *c, const bool *chosen, bool keep,
                          DType dtype)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++)
        if (!chosen[i] || keep)
            dims[rank++] = chosen[i] ? extent_const(1) : x->dims[i];
    infer_set(c, 0, dtype, rank, dims);
    return true;
}

static bool infer_reduce(InferContext *c)
{
    const ReduceOp *row = (const ReduceOp *)c->node->op;
    const TensorType *x = infer_input(c, 0);
    bool chosen[MAX_RANK], keep;
    keep = attrs_int(&c->node->attrs, "keepdims", 1) != 0;
    return infer_types(c, 0, row->types) && infer_chosen(c, x->rank, chosen) &&
           infer_reduced(c, chosen, keep, x->dtype);
}

/* The same for definitions, where it cannot fail. */
static void chosen_of(const Node *node, int rank, bool *chosen)
{
    const Array *axes =
        node_has_input(node, 1) ? node->inputs.data[1]->value : NULL;
    bool all = (!axes || array_count(axes) == 0) &&
               !attrs_int(&node->attrs, "noop_with_empty_axes", 0);
    for (int i = 0; i < rank; i++)
        chosen[i] = all;
    for (int64_t i = 0; axes && i < array_count(axes); i++)
        chosen[normal_axis(array_get_int(axes, i), rank)] = true;
}

static const char *reduce_name(int number)
{
    static const char *const names[MAX_RANK] = {"r0", "r1", "r2", "r3",
                                                "r4", "r5", "r6", "r7"};
    return names[number];
}

/* Indices of x for a stage over the result; chosen axes become reduction
 * axes of the stage. */
static void reduced_indices(StageBuilder *b, const Buffer *x,
                            const bool *chosen, const Expr **index)
{
    int result = b->stage->axis_count, at = 0, number = 0;
    bool keep = result == x->rank;
    for (int i = 0; i < x->rank; i++) {
        if (chosen[i])
            index[i] = stage_reduce(b, x->dims[i], reduce_name(number++));
        else
            index[i] = b->index[keep ? i : at];
        at += !chosen[i];
    }
}

/* Integers are summed as such; what follows is computed in f64 and truncated.
 */
static DType finish_dtype(DType dtype)
{
    return dtype_is_float(dtype) ? dtype : DT_F64;
}

/* before(x) for each element, the sum or extreme, after(result); without
 * chosen axes the two functions alone remain. */
static void define_reduce(DefineContext *c)
{
    const ReduceOp *row = (const ReduceOp *)c->node->op;
    const Buffer *x = c->in[0];
    Buffer *out = c->out[0];
    const Expr *index[MAX_RANK];
    bool chosen[MAX_RANK], any = false;
    int64_t count = 1; /* at most; `elements` is the number */
    const Expr *elements = expr_int(c->def->arena, 1);
    chosen_of(c->node, x->rank, chosen);
    for (int i = 0; i < x->rank; i++) {
        any |= chosen[i];
        count *= chosen[i] ? x->dims[i] : 1;
        if (chosen[i])
            elements = expr_mul(c->def->arena, elements,
                                buffer_extent(c->def->arena, x, i));
    }
    bool is_sum = strcmp(row->reducer, "sum") == 0;
    DType wide = is_sum ? sum_dtype(x->dtype, count) : x->dtype;
    bool direct = !row->after && !row->is_mean && wide == x->dtype;
    Buffer *partial =
        direct ? out : define_temp(c, "partial", wide, out->rank, out->dims);
    StageBuilder b;
    stage_begin(&b, c->def, partial);
    Arena *a = b.arena;
    reduced_indices(&b, x, chosen, index);
    const Expr *value = expr_cast(a, wide, expr_read(a, x, index));
    if (row->before)
        value = row->before(a, value);
    if (any)
        stage_end_reduce(&b, row->reducer, value);
    else
        stage_end(&b, value); /* over no axis: each element by itself */
    if (direct)
        return;
    stage_begin(&b, c->def, out);
    value = read_same(&b, partial);
    value = expr_cast(a, finish_dtype(value->dtype), value);
    if (row->is_mean)
        value = expr_div(a, value, count_like(a, value, elements));
    if (row->after)
        value = row->after(a, value);
    stage_end(&b, expr_cast(a, x->dtype, value));
}

/* log(sum(exp(x))) = m + log(sum(exp(x - m))) with the maximum m, or 0
 * where that is infinite: inf - inf would be NaN. */
static void define_log_sum_exp(DefineContext *c)
{
    const Buffer *x = c->in[0];
    Buffer *out = c->out[0];
    DType type = finish_dtype(x->dtype);
    Buffer *most = define_temp_part(c, "max", type, out->rank, out);
    Buffer *shift = define_temp_part(c, "shift", type, out->rank, out);
    Buffer *sum = define_temp_part(c, "sum", type, out->rank, out);
    const Expr *index[MAX_RANK];
    bool chosen[MAX_RANK], any = false;
    chosen_of(c->node, x->rank, chosen);
    for (int i = 0; i < x->rank; i++)
        any |= chosen[i];
    StageBuilder b;
    stage_begin(&b, c->def, most);
    Arena *a = b.arena;
    reduced_indices(&b, x, chosen, index);
    const Expr *value = expr_cast(a, type, expr_read(a, x, index));
    if (any)
        stage_end_reduce(&b, "max", value);
    else
        stage_end(&b, value);
    stage_begin(&b, c->def, shift);
    value = read_same(&b, most);
    const Expr *infinite = expr_binary(a, EX_EQ, expr_unary(a, EX_ABS, value),
                                       const_like(a, value, __builtin_inf()));
    stage_end(&b, expr_select(a, infinite, const_like(a, value, 0), value));
    stage_begin(&b, c->def, sum);
    reduced_indices(&b, x, chosen, index);
    value = expr_cast(a, type, expr_read(a, x, index));
    value = expr_unary(a, EX_EXP, expr_sub(a, value, read_same(&b, shift)));
    if (any)
        stage_end_reduce(&b, "sum", value);
    else
        stage_end(&b, value);
    stage_begin(&b, c->def, out);
    value = expr_unary(a, EX_LOG, read_same(&b, sum));
    value = expr_add(a, read_same(&b, shift), value);
    stage_end(&b, expr_cast(a, x->dtype, value));
}

/* What the rows put before and after the reduction. */
static const Expr *square(Arena *a, const Expr *x)
{
    return expr_mul(a, x, x);
}

static const Expr *absolute(Arena *a, const Expr *x)
{
    return dtype_is_signed(x->dtype) ? expr_unary(a, EX_ABS, x) : x;
}

static const Expr *root(Arena *a, const Expr *x)
{
    return expr_unary(a, EX_SQRT, x);
}

static const Expr *logarithm(Arena *a, const Expr *x)
{
    return expr_unary(a, EX_LOG, x);
}

/* ---- ArgMax, ArgMin */

/* NaN counts as the reducer has it: never larger, never smaller. */
static bool infer_arg(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    bool chosen[MAX_RANK] = {false};
    int axis;
    if (!infer_types(c, 0, TYPES_NUMBER) || !infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 0), x->rank,
                    &axis))
        return false;
    if (extent_known(x->dims[axis]) == 0)
        return infer_error(c, "axis %d has no elements to choose from", axis);
    chosen[axis] = true;
    return infer_reduced(
        c, chosen, attrs_int(&c->node->attrs, "keepdims", 1) != 0, DT_I64);
}

/* The value that won is a temporary nobody reads. */
static void define_arg(DefineContext *c, bool is_max)
{
    const Attrs *attrs = &c->node->attrs;
    const Buffer *x = c->in[0];
    Buffer *out = c->out[0];
    Buffer *best = define_temp(c, "best", x->dtype, out->rank, out->dims);
    bool chosen[MAX_RANK] = {false};
    int axis = normal_axis(attrs_int(attrs, "axis", 0), x->rank);
    bool last = attrs_int(attrs, "select_last_index", 0) != 0;
    const Expr *index[MAX_RANK];
    chosen[axis] = true;
    StageBuilder b;
    stage_begin(&b, c->def, best);
    reduced_indices(&b, x, chosen, index);
    Buffer *outs[2] = {best, out};
    const Expr *values[2] = {expr_read(b.arena, x, index), index[axis]};
    stage_end_tuple(&b, reducer_arg(b.arena, x->dtype, is_max, last), outs,
                    values);
}

static void define_argmax(DefineContext *c)
{
    define_arg(c, true);
}

static void define_argmin(DefineContext *c)
{
    define_arg(c, false);
}

/* ---- CumSum and CumProd, over the elements up to each place */

static bool is_product(const Node *node)
{
    return strcmp(node->op->name, "CumProd") == 0;
}

/* The axis is an operand here, unlike anywhere else. */
static bool infer_cumsum(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    const Array *where = infer_constant(c, 1, "axis");
    int axis;
    if (!where || !infer_types(c, 0, TYPES_NUMBER) ||
        !infer_rank(c, 0, 1, MAX_RANK))
        return false;
    if (array_count(where) != 1)
        return infer_error(c, "axis must be one number");
    if (!infer_axis(c, "axis", array_get_int(where, 0), x->rank, &axis))
        return false;
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* Quadratic in the axis: for short ones. */
static void define_cumsum(DefineContext *c)
{
    const Attrs *attrs = &c->node->attrs;
    const Buffer *x = c->in[0];
    int axis =
        normal_axis(array_get_int(c->node->inputs.data[1]->value, 0), x->rank);
    bool exclusive = attrs_int(attrs, "exclusive", 0) != 0;
    bool reverse = attrs_int(attrs, "reverse", 0) != 0;
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *k = stage_reduce_over(&b, x, axis, "k");
    for (int i = 0; i < x->rank; i++)
        index[i] = i == axis ? k : b.index[i];
    ExprKind order = exclusive ? EX_LT : EX_LE;
    const Expr *counts = reverse ? expr_binary(a, order, b.index[axis], k)
                                 : expr_binary(a, order, k, b.index[axis]);
    const Expr *value = expr_read(a, x, index);
    bool product = is_product(c->node);
    value = expr_select(a, counts, value, const_like(a, value, product));
    stage_end_reduce(&b, product ? "prod" : "sum", value);
}

static bool cumsum_prefers_program(const Node *node)
{
    const TensorType *x = &node->inputs.data[0]->type;
    int axis =
        normal_axis(array_get_int(node->inputs.data[1]->value, 0), x->rank);
    return x->dims[axis].value > 8;
}

/* A running sum or product of each slice. */
static void program_cumsum(LoopContext *c)
{
    const Attrs *attrs = &c->node->attrs;
    const Buffer *x = c->in[0];
    int axis =
        normal_axis(array_get_int(c->node->inputs.data[1]->value, 0), x->rank);
    bool exclusive = attrs_int(attrs, "exclusive", 0) != 0;
    bool reverse = attrs_int(attrs, "reverse", 0) != 0;
    bool product = is_product(c->node);
    const TensorType *type = &c->node->inputs.data[0]->type;
    const Expr *index[MAX_RANK];
    Arena *a = c->arena;
    if (buffer_size(x) == 0)
        return;
    bool is_short = dtype_is_float(x->dtype) && dtype_size(x->dtype) == 2;
    const Buffer *sum = loop_variable(c, "sum", is_short ? DT_F32 : x->dtype);
    loop_nest(c, type->rank, type, axis, index);
    loop_set(c, sum, expr_const(a, sum->dtype, product));
    index[axis] = loop_for_extent(c, LOOP_SERIAL, "k", type->dims[axis]);
    if (reverse)
        index[axis] =
            expr_sub(a, expr_add_int(a, loop_extent(c, type->dims[axis]), -1),
                     index[axis]);
    const Expr *at = flatten_index(a, x->rank, x->dims, index);
    const Expr *value = expr_cast(a, sum->dtype, loop_load(c, x, at));
    if (exclusive)
        loop_store(c, c->out[0], at, loop_get(c, sum));
    loop_set(
        c, sum,
        expr_binary(a, product ? EX_MUL : EX_ADD, loop_get(c, sum), value));
    if (!exclusive)
        loop_store(c, c->out[0], at, loop_get(c, sum));
    loop_end(c);
    loop_end_nest(c, type, axis);
}

static const AttrSpec reduce_attrs[] = {
    {"keepdims", ATTR_FLAG, false},
    {"noop_with_empty_axes", ATTR_FLAG, false},
    {0}};
static const AttrSpec arg_attrs[] = {{"axis", ATTR_INT, false},
                                     {"keepdims", ATTR_FLAG, false},
                                     {"select_last_index", ATTR_FLAG, false},
                                     {0}};
static const AttrSpec cumsum_attrs[] = {
    {"exclusive", ATTR_FLAG, false}, {"reverse", ATTR_FLAG, false}, {0}};

#define ROW(field, op_name, allowed, how, definition, pre, post, mean)        \
    static const ReduceOp row_##field = {                                     \
        {.name = op_name,                                                     \
         .domain = "",                                                        \
         .min_inputs = 1,                                                     \
         .max_inputs = 2,                                                     \
         .min_outputs = 1,                                                    \
         .max_outputs = 1,                                                    \
         .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,                         \
         .attrs = reduce_attrs,                                               \
         .infer = infer_reduce,                                               \
         .define = definition,                                                \
         .since = 18},                                                        \
        allowed,                                                              \
        how,                                                                  \
        pre,                                                                  \
        post,                                                                 \
        mean}
ROW(sum, "ReduceSum", TYPES_NUMBER, "sum", define_reduce, NULL, NULL, false);
ROW(mean, "ReduceMean", TYPES_NUMBER, "sum", define_reduce, NULL, NULL, true);
ROW(max, "ReduceMax", TYPES_ANY, "max", define_reduce, NULL, NULL, false);
ROW(min, "ReduceMin", TYPES_ANY, "min", define_reduce, NULL, NULL, false);
ROW(prod, "ReduceProd", TYPES_NUMBER, "prod", define_reduce, NULL, NULL,
    false);
ROW(l1, "ReduceL1", TYPES_NUMBER, "sum", define_reduce, absolute, NULL, false);
ROW(l2, "ReduceL2", TYPES_NUMBER, "sum", define_reduce, square, root, false);
ROW(squares, "ReduceSumSquare", TYPES_NUMBER, "sum", define_reduce, square,
    NULL, false);
ROW(log, "ReduceLogSum", TYPES_NUMBER, "sum", define_reduce, NULL, logarithm,
    false);
ROW(logexp, "ReduceLogSumExp", TYPES_NUMBER, "sum", define_log_sum_exp, NULL,
    NULL, false);

static const Op op_argmax = {.name = "ArgMax",
                             .domain = "",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                             .attrs = arg_attrs,
                             .infer = infer_arg,
                             .define = define_argmax,
                             .since = 13};
static const Op op_argmin = {.name = "ArgMin",
                             .domain = "",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                             .attrs = arg_attrs,
                             .infer = infer_arg,
                             .define = define_argmin,
                             .since = 13};
static const Op op_cumsum = {.name = "CumSum",
                             .domain = "",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                             .attrs = cumsum_attrs,
                             .infer = infer_cumsum,
                             .define = define_cumsum,
                             .program = program_cumsum,
                             .prefers_program = cumsum_prefers_program,
                             .since = 14};

static const Op op_cumprod = {.name = "CumProd",
                              .domain = "",
                              .min_inputs = 2,
                              .max_inputs = 2,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                              .attrs = cumsum_attrs,
                              .infer = infer_cumsum,
                              .define = define_cumsum,
                              .program = program_cumsum,
                              .prefers_program = cumsum_prefers_program,
                              .since = 26};

const Op *const ops_reduce[] = {
    &row_sum.op, &row_mean.op, &row_max.op,     &row_min.op, &row_prod.op,
    &row_l1.op,  &row_l2.op,   &row_squares.op, &row_log.op, &row_logexp.op,
    &op_argmax,  &op_argmin,   &op_cumsum,      &op_cumprod, NULL};
