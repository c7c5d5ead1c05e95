/* Losses that exported models keep in their graphs: the negative log
 * likelihood of a class, alone or after a softmax over the classes. */
#include <string.h>

#include "ops/rules.h"

typedef enum Reduction { REDUCE_NONE, REDUCE_SUM, REDUCE_MEAN } Reduction;

static bool reduction_of(const Node *node, Reduction *reduction)
{
    static const char *const names[] = {"none", "sum", "mean"};
    const char *name = attrs_string(&node->attrs, "reduction", "mean");
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], name)) {
            *reduction = (Reduction)i;
            return true;
        }
    return false;
}

/* Scores [N, C, ...], classes [N, ...], weights [C]. */
static bool infer_loss(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *target = infer_input(c, 1);
    Reduction reduction;
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 2, MAX_RANK) ||
        !infer_types(c, 1, TYPES_INDEX) ||
        !infer_rank(c, 1, x->rank - 1, x->rank - 1))
        return false;
    if (node_has_input(c->node, 2) &&
        (!infer_same_dtype(c, 0, 2) || !infer_rank(c, 2, 1, 1)))
        return false;
    if (!reduction_of(c->node, &reduction))
        return infer_error(c, "reduction is none, sum or mean");
    for (int i = 0; i < target->rank; i++)
        if (!extent_equal(target->dims[i], x->dims[i ? i + 1 : 0]))
            return infer_error(c, "the classes must have the shape of the "
                                  "scores without axis 1");
    if (node_has_input(c->node, 2) &&
        !extent_equal(infer_input(c, 2)->dims[0], x->dims[1]))
        return infer_error(c, "the weights must be one a class");
    infer_set(c, 0, x->dtype, reduction == REDUCE_NONE ? target->rank : 0,
              target->dims);
    infer_set(c, 1, x->dtype, x->rank, x->dims); /* log of probabilities */
    return true;
}

/* The class at the stage's place, and whether it counts. */
static const Expr *read_class(StageBuilder *b, const DefineContext *c,
                              const Expr *const *at, const Expr **counts)
{
    Arena *a = b->arena;
    const Expr *target = expr_cast(a, DT_I64, expr_read(a, c->in[1], at));
    *counts = NULL;
    if (attrs_find(&c->node->attrs, "ignore_index")) {
        int64_t ignored = attrs_int(&c->node->attrs, "ignore_index", 0);
        *counts = expr_binary(a, EX_NE, target, expr_int(a, ignored));
    }
    /* No class reads outside of the scores. */
    const Expr *last = expr_add_int(a, buffer_extent(a, c->in[0], 1), -1);
    return expr_max(a, expr_int(a, 0), expr_min(a, target, last));
}

/* The weight of each example, 0 for those that do not count. */
static const Expr *weight_at(StageBuilder *b, const DefineContext *c,
                             const Expr *const *at, DType dtype)
{
    Arena *a = b->arena;
    const Expr *counts;
    const Expr *class = read_class(b, c, at, &counts);
    const Expr *w =
        c->in[2] ? expr_read(a, c->in[2], &class) : expr_const(a, dtype, 1);
    return counts ? expr_select(a, counts, w, expr_const(a, dtype, 0)) : w;
}

static const Expr *loss_at(StageBuilder *b, const DefineContext *c,
                           const Buffer *logs, const Expr *const *at)
{
    Arena *a = b->arena;
    const Expr *counts, *index[MAX_RANK];
    index[1] = read_class(b, c, at, &counts);
    for (int i = 0; i < c->in[1]->rank; i++)
        index[i ? i + 1 : 0] = at[i];
    const Expr *loss = expr_unary(a, EX_NEG, expr_read(a, logs, index));
    loss = expr_mul(a, loss, weight_at(b, c, at, logs->dtype));
    /* A score of infinity that does not count is no loss, either. */
    return counts ? expr_select(a, counts, loss, const_like(a, loss, 0))
                  : loss;
}

/* A sum over all examples, rank 0. */
static Buffer *sum_examples(DefineContext *c, const char *name,
                            const Buffer *logs, bool of_weights, Buffer *out)
{
    const Buffer *target = c->in[1];
    const Expr *at[MAX_RANK];
    StageBuilder b;
    if (!out)
        out = define_temp(c, name, logs->dtype, 0, NULL);
    stage_begin(&b, c->def, out);
    for (int i = 0; i < target->rank; i++)
        at[i] = stage_reduce_over(&b, target, i, "k");
    stage_end_reduce(&b, "sum",
                     of_weights ? weight_at(&b, c, at, logs->dtype)
                                : loss_at(&b, c, logs, at));
    return out;
}

static void define_likelihood(DefineContext *c, const Buffer *logs)
{
    Reduction reduction = REDUCE_MEAN;
    StageBuilder b;
    reduction_of(c->node, &reduction);
    if (reduction == REDUCE_NONE) {
        stage_begin(&b, c->def, c->out[0]);
        stage_end(&b, loss_at(&b, c, logs, b.index));
        return;
    }
    if (reduction == REDUCE_SUM) {
        sum_examples(c, "sum", logs, false, c->out[0]);
        return;
    }
    Buffer *sum = sum_examples(c, "sum", logs, false, NULL);
    Buffer *weight = sum_examples(c, "weight", logs, true, NULL);
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, expr_div(b.arena, expr_read(b.arena, sum, NULL),
                           expr_read(b.arena, weight, NULL)));
}

static void define_nll(DefineContext *c)
{
    define_likelihood(c, c->in[0]);
}

static const Expr *read_scores(StageBuilder *b, const Buffer *x,
                               const Expr *class)
{
    const Expr *index[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        index[i] = i == 1 ? class : b->index[i];
    return expr_read(b->arena, x, index);
}

/* As LogSoftmax over axis 1, then the likelihood. */
static void define_cross_entropy(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int64_t dims[MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[1] = 1;
    Buffer *most = define_temp(c, "max", x->dtype, x->rank, dims);
    Buffer *sum = define_temp(c, "sum_exp", x->dtype, x->rank, dims);
    Buffer *logs = c->out[1] ? c->out[1] : define_temp_like(c, "logs", x);
    StageBuilder b;
    stage_begin(&b, c->def, most);
    Arena *a = b.arena;
    const Expr *k = stage_reduce(&b, x->dims[1], "k");
    stage_end_reduce(&b, "max", read_scores(&b, x, k));
    const Expr *zero = expr_int(a, 0);
    stage_begin(&b, c->def, sum);
    k = stage_reduce(&b, x->dims[1], "k");
    stage_end_reduce(&b, "sum",
                     expr_unary(a, EX_EXP,
                                expr_sub(a, read_scores(&b, x, k),
                                         read_scores(&b, most, zero))));
    stage_begin(&b, c->def, logs);
    const Expr *shifted =
        expr_sub(a, read_same(&b, x), read_scores(&b, most, zero));
    stage_end(&b, expr_sub(a, shifted,
                           expr_unary(a, EX_LOG, read_scores(&b, sum, zero))));
    define_likelihood(c, logs);
}

static const AttrSpec loss_attrs[] = {
    {"ignore_index", ATTR_INT, false}, {"reduction", ATTR_STRING, false}, {0}};

static const Op op_nll = {.name = "NegativeLogLikelihoodLoss",
                          .domain = "",
                          .min_inputs = 2,
                          .max_inputs = 3,
                          .min_outputs = 1,
                          .max_outputs = 1,
                          .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                          .attrs = loss_attrs,
                          .infer = infer_loss,
                          .define = define_nll,
                          .since = 13};
static const Op op_cross_entropy = {.name = "SoftmaxCrossEntropyLoss",
                                    .domain = "",
                                    .min_inputs = 2,
                                    .max_inputs = 3,
                                    .min_outputs = 1,
                                    .max_outputs = 2,
                                    .traits =
                                        OP_REDUCTION | OP_RUNTIME_EXTENTS,
                                    .attrs = loss_attrs,
                                    .infer = infer_loss,
                                    .define = define_cross_entropy,
                                    .since = 13};

const Op *const ops_loss[] = {&op_nll, &op_cross_entropy, NULL};
