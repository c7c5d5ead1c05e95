/* Norms of lines and variances over any axes: LpNormalization and
 * MeanVarianceNormalization. */
#include <string.h>

#include "ops/rules.h"

static bool infer_lp(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int64_t p = attrs_int(&c->node->attrs, "p", 2);
    int axis;
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", -1), x->rank,
                    &axis))
        return false;
    if (p != 1 && p != 2)
        return infer_error(c, "p is %lld, it must be 1 or 2", (long long)p);
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* x / (sum of |x|^p)^(1 / p). A line of zeros stays: its norm is 0. */
static void define_lp(DefineContext *c)
{
    const Buffer *x = c->in[0];
    bool squares = attrs_int(&c->node->attrs, "p", 2) == 2;
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", -1), x->rank);
    DType inner = work_dtype(x->dtype);
    int64_t dims[MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = 1;
    Buffer *sum = define_temp(c, "sum", inner, x->rank, dims);
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    Arena *a = b.arena;
    const Expr *k = stage_reduce(&b, x->dims[axis], "k");
    const Expr *value = expr_cast(a, inner, read_along(&b, x, axis, k));
    stage_end_reduce(&b, "sum",
                     squares ? expr_mul(a, value, value)
                             : expr_unary(a, EX_ABS, value));
    stage_begin(&b, c->def, c->out[0]);
    value = expr_cast(a, inner, read_same(&b, x));
    const Expr *norm = read_along(&b, sum, axis, expr_int(a, 0));
    if (squares)
        norm = expr_unary(a, EX_SQRT, norm);
    const Expr *zero = const_like(a, norm, 0);
    value = expr_select(a, expr_binary(a, EX_EQ, norm, zero), value,
                        expr_div(a, value, norm));
    stage_end(&b, expr_cast(a, x->dtype, value));
}

/* ---- MeanVarianceNormalization */

static const int64_t *variance_axes(const Node *node, int *count)
{
    static const int64_t image[] = {0, 2, 3};
    const int64_t *axes = attrs_ints(&node->attrs, "axes", count);
    if (axes)
        return axes;
    *count = 3;
    return image;
}

static bool infer_mvn(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    bool chosen[MAX_RANK] = {false};
    int count;
    const int64_t *axes = variance_axes(c->node, &count);
    if (!infer_types(c, 0, TYPES_FLOAT) ||
        !infer_axes(c, array_ints(c->graph->arena, axes, count), x->rank,
                    chosen))
        return false;
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* The mean over the chosen axes of x, or of its squared distances from
 * `mean`; those axes stay with extent 1. */
static Buffer *mean_over(DefineContext *c, const bool *chosen,
                         const Buffer *mean)
{
    const Buffer *x = c->in[0];
    int64_t dims[MAX_RANK], count = 1; /* at most; `elements` is the number */
    const Expr *elements = expr_int(c->def->arena, 1);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = chosen[i] ? 1 : x->dims[i];
        count *= chosen[i] ? x->dims[i] : 1;
        if (chosen[i])
            elements = expr_mul(c->def->arena, elements,
                                buffer_extent(c->def->arena, x, i));
    }
    DType inner = work_dtype(x->dtype), wide = sum_dtype(inner, count);
    Buffer *sum = define_temp(c, "sum", wide, x->rank, dims);
    Buffer *result =
        define_temp(c, mean ? "variance" : "mean", inner, x->rank, dims);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    Arena *a = b.arena;
    for (int i = 0; i < x->rank; i++)
        index[i] = chosen[i] ? stage_reduce(&b, x->dims[i], "k") : b.index[i];
    const Expr *value = expr_cast(a, wide, expr_read(a, x, index));
    if (mean) {
        value = expr_sub(a, value, expr_cast(a, wide, read_same(&b, mean)));
        value = expr_mul(a, value, value);
    }
    if (b.stage->reduce_count)
        stage_end_reduce(&b, "sum", value);
    else
        stage_end(&b, value);
    stage_begin(&b, c->def, result);
    value = read_same(&b, sum);
    value = expr_div(a, value, count_like(a, value, elements));
    stage_end(&b, expr_cast(a, inner, value));
    return result;
}

/* (x - mean) / (deviation + 1e-9), as the standard's function has it. */
static void define_mvn(DefineContext *c)
{
    const Buffer *x = c->in[0];
    bool chosen[MAX_RANK] = {false};
    int count;
    const int64_t *axes = variance_axes(c->node, &count);
    for (int i = 0; i < count; i++)
        chosen[normal_axis(axes[i], x->rank)] = true;
    Buffer *mean = mean_over(c, chosen, NULL);
    Buffer *variance = mean_over(c, chosen, mean);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *value = expr_cast(a, mean->dtype, read_same(&b, x));
    value = expr_sub(a, value, read_broadcast(&b, mean));
    const Expr *deviation =
        expr_unary(a, EX_SQRT, read_broadcast(&b, variance));
    deviation = expr_add(a, deviation, const_like(a, deviation, 1e-9));
    stage_end(&b, expr_cast(a, x->dtype, expr_div(a, value, deviation)));
}

static const AttrSpec lp_attrs[] = {
    {"axis", ATTR_INT, false}, {"p", ATTR_INT, false}, {0}};
static const AttrSpec mvn_attrs[] = {{"axes", ATTR_INTS, false}, {0}};

static const Op op_lp = {.name = "LpNormalization",
                         .domain = "",
                         .min_inputs = 1,
                         .max_inputs = 1,
                         .min_outputs = 1,
                         .max_outputs = 1,
                         .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                         .attrs = lp_attrs,
                         .infer = infer_lp,
                         .define = define_lp,
                         .since = 1};
static const Op op_mvn = {.name = "MeanVarianceNormalization",
                          .domain = "",
                          .min_inputs = 1,
                          .max_inputs = 1,
                          .min_outputs = 1,
                          .max_outputs = 1,
                          .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                          .attrs = mvn_attrs,
                          .infer = infer_mvn,
                          .define = define_mvn,
                          .since = 13};

const Op *const ops_norm[] = {&op_lp, &op_mvn, NULL};
