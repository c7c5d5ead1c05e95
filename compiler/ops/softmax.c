/* Softmax and LogSoftmax over one axis, in three steps that cannot
 * overflow: maximum, sum of exp(x - maximum), result. */
#include "ops/rules.h"

/* The form since version 13: one axis. The importer brings older ones, over
 * several axes, to it. */
static bool infer_softmax(InferContext *c)
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

/* Halves are taken as f32 until the result: differences to the maximum lose
 * digits that their exponentials need. A row of -inf gives inf - inf, hence
 * NaN, as it must. The logarithm is taken of the sum, not of a quotient that
 * may have rounded to 0. */
static void define_either(DefineContext *c, bool is_log)
{
    const Buffer *x = c->in[0];
    int axis = normal_axis(attrs_int(&c->node->attrs, "axis", -1), x->rank);
    DType inner = work_dtype(x->dtype);
    int64_t dims[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? 1 : x->dims[i];
    Buffer *most = define_temp(c, "max", inner, x->rank, dims);
    Buffer *sum = define_temp(c, "sum", inner, x->rank, dims);
    StageBuilder b;

    stage_begin(&b, c->def, most);
    Arena *a = b.arena;
    const Expr *k = stage_reduce(&b, x->dims[axis], "k");
    stage_end_reduce(&b, "max",
                     expr_cast(a, inner, read_along(&b, x, axis, k)));

    /* The exponentials are a stage of their own, as both the sum and the
     * result need them. */
    Buffer *exponential = define_temp(c, "exp", inner, x->rank, x->dims);
    const Expr *zero = expr_int(a, 0);
    stage_begin(&b, c->def, exponential);
    const Expr *shifted = expr_sub(a, expr_cast(a, inner, read_same(&b, x)),
                                   read_along(&b, most, axis, zero));
    stage_end(&b, expr_unary(a, EX_EXP, shifted));

    stage_begin(&b, c->def, sum);
    k = stage_reduce(&b, x->dims[axis], "k");
    stage_end_reduce(&b, "sum", read_along(&b, exponential, axis, k));

    stage_begin(&b, c->def, c->out[0]);
    shifted = expr_sub(a, expr_cast(a, inner, read_same(&b, x)),
                       read_along(&b, most, axis, zero));
    const Expr *total = read_along(&b, sum, axis, zero);
    const Expr *value =
        is_log ? expr_sub(a, shifted, expr_unary(a, EX_LOG, total))
               : expr_div(a, read_same(&b, exponential), total);
    stage_end(&b, expr_cast(a, x->dtype, value));
}

static void define_softmax(DefineContext *c)
{
    define_either(c, false);
}

static void define_log_softmax(DefineContext *c)
{
    define_either(c, true);
}

static const AttrSpec axis_attrs[] = {{"axis", ATTR_INT, false}, {0}};

static const Op op_softmax = {.name = "Softmax",
                              .domain = "",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                              .attrs = axis_attrs,
                              .infer = infer_softmax,
                              .define = define_softmax,
                              .since = 13};
static const Op op_log_softmax = {.name = "LogSoftmax",
                                  .domain = "",
                                  .min_inputs = 1,
                                  .max_inputs = 1,
                                  .min_outputs = 1,
                                  .max_outputs = 1,
                                  .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                                  .attrs = axis_attrs,
                                  .infer = infer_softmax,
                                  .define = define_log_softmax,
                                  .since = 13};

const Op *const ops_softmax[] = {&op_softmax, &op_log_softmax, NULL};
