/* Folding of scale and shift into weights and bias.
 *
 * Input: a typed graph where batch normalization has been decomposed into
 * a product and a sum with constants per channel. Output: where such a
 * node follows a convolution or matrix product with constant weights, and
 * nothing else uses the value between, the weights take the factor and
 * the bias takes the summand:
 *     s * (w x + b) + t  =  (s w) x + (s b + t)
 * New constants are computed in double and rounded once. Reassociates,
 * hence -O2. Source: Ioffe and Szegedy, 2015, section 3.1. */
#include "passes/util.h"

/* y = scale * x + shift, by channel; NULL in a single step: 1 or 0. */
typedef struct Affine {
    double *scale, *shift;
    bool has_scale, has_shift; /* of the sum of steps */
} Affine;

/* A constant's value for each channel; NULL when it varies along another
 * axis of the output. */
static double *by_channel(Arena *scratch, const Array *a, int rank, int axis,
                          int64_t channels)
{
    int place = axis - (rank - a->rank);

    if (a->rank > rank)
        return NULL;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != 1 && (i != place || a->dims[i] != channels))
            return NULL;
    double *values = ARENA_ARRAY(scratch, double, channels);
    bool one = array_count(a) == 1;
    for (int64_t i = 0; i < channels; i++)
        values[i] = array_get(a, one ? 0 : i);
    return values;
}

static double *filled(Arena *scratch, int64_t count, double value)
{
    double *values = ARENA_ARRAY(scratch, double, count);

    for (int64_t i = 0; i < count; i++)
        values[i] = value;
    return values;
}

static bool is_read_of(const Expr *x, int operand)
{
    return x->kind == EX_READ && !x->outside &&
           x->buffer->name[2] == '0' + operand && x->buffer->name[3] == 0;
}

/* What `node` does to operand `t`, when that is affine by channel. */
static bool as_affine(Arena *scratch, const Node *node, const Tensor *t,
                      int axis, Affine *affine)
{
    const unsigned need = OP_ELEMENTWISE | OP_BROADCAST;
    int rank = t->type.rank;

    if ((node->op->traits & need) != need || node->inputs.count != 2 ||
        node->outputs.count != 1)
        return false;
    int at = node->inputs.data[0] == t ? 0 : 1;
    const Tensor *other = node->inputs.data[1 - at];
    if (!other || !other->value ||
        !types_equal(&node->outputs.data[0]->type, &t->type))
        return false;
    Definition *def = define_node(scratch, node);
    if (!def || def->stages.count != 1 || def->stages.data[0]->reduce_count)
        return false;
    const Expr *value = def->stages.data[0]->value[0];
    if (value->count != 2 || !is_read_of(value->arg[0], 0) ||
        !is_read_of(value->arg[1], 1))
        return false;
    int64_t channels = t->type.dims[axis].value;
    double *c = by_channel(scratch, other->value, rank, axis, channels);
    if (!c)
        return false;
    *affine = (Affine){0};
    switch (value->kind) {
    case EX_MUL:
        affine->scale = c;
        return true;
    case EX_ADD:
        affine->shift = c;
        return true;
    case EX_SUB:
        if (at == 1)
            affine->scale = filled(scratch, channels, -1);
        else
            for (int64_t i = 0; i < channels; i++)
                c[i] = -c[i];
        affine->shift = c;
        return true;
    case EX_DIV:
        if (at == 1)
            return false;
        for (int64_t i = 0; i < channels; i++)
            c[i] = 1 / c[i];
        affine->scale = c;
        return true;
    default:
        return false;
    }
}

static Tensor *scaled_weights(Graph *g, const Tensor *w, int axis,
                              const double *scale)
{
    const Array *a = w->value;
    Array *made = array_new(g->arena, a->dtype, a->rank, a->dims);
    int64_t outer = 1, inner = 1, channels = a->dims[axis];

    for (int i = 0; i < axis; i++)
        outer *= a->dims[i];
    for (int i = axis + 1; i < a->rank; i++)
        inner *= a->dims[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t at = (o * channels + c) * inner;
            const double s = scale[c];
            /* Weights have millions of elements: no call for each. */
            if (a->dtype == DT_F32) {
                const float *from = (const float *)a->data + at;
                float *to = (float *)made->data + at;
                for (int64_t i = 0; i < inner; i++)
                    to[i] = (float)(from[i] * s);
            } else {
                const double *from = (const double *)a->data + at;
                double *to = (double *)made->data + at;
                for (int64_t i = 0; i < inner; i++)
                    to[i] = from[i] * s;
            }
        }
    return graph_add_constant(g, w->name, made);
}

static Tensor *changed_bias(Graph *g, const Node *anchor, const Tensor *bias,
                            int64_t channels, const Affine *total)
{
    Array *made =
        array_new(g->arena, anchor->outputs.data[0]->type.dtype, 1, &channels);

    for (int64_t i = 0; i < channels; i++) {
        double b = bias ? array_get(bias->value, i) : 0;
        array_set(made, i, b * total->scale[i] + total->shift[i]);
    }
    const char *name =
        bias ? bias->name : arena_printf(g->arena, "%s.bias", anchor->name);
    return graph_add_constant(g, name, made);
}

/* The anchor's weights and bias can take a factor and a summand. */
static bool is_foldable(const Node *anchor, int64_t channels, bool shifts)
{
    const Tensor *w = node_input(anchor, 1), *bias = node_input(anchor, 2);
    int axis = anchor->op->channel_axis;

    if (!w || !w->value ||
        (w->value->dtype != DT_F32 && w->value->dtype != DT_F64))
        return false;
    /* A vector has no axis of output channels: it is summed over. */
    if (w->value->rank < 2)
        return false;
    axis = axis < 0 ? axis + w->value->rank : axis;
    if (axis < 0 || axis >= w->value->rank || w->value->dims[axis] != channels)
        return false;
    if (bias && (!bias->value || bias->value->rank != 1 ||
                 bias->value->dims[0] != channels))
        return false;
    if (shifts && !bias && anchor->op->max_inputs >= 0 &&
        anchor->op->max_inputs < 3)
        return false;
    /* A scaled bias would scale the summand as well. */
    return !shifts || attrs_float(&anchor->attrs, "beta", 1) == 1;
}

/* Takes the node after the anchor out of the graph when it is affine by
 * channel, and adds what it does to `total`. */
static bool absorb_user(Graph *g, Arena *scratch, Node *anchor, int axis,
                        Affine *total)
{
    Tensor *out = anchor->outputs.data[0];
    Node *user = tensor_only_user(out);
    int64_t channels = out->type.dims[axis].value;
    Affine affine;

    if (!user || out->users.count != 1 || out->is_output ||
        !as_affine(scratch, user, out, axis, &affine) ||
        !is_foldable(anchor, channels, affine.shift != NULL))
        return false;
    for (int64_t c = 0; c < channels; c++) {
        double s = affine.scale ? affine.scale[c] : 1;
        total->scale[c] *= s;
        total->shift[c] =
            total->shift[c] * s + (affine.shift ? affine.shift[c] : 0);
    }
    total->has_scale |= affine.scale != NULL;
    total->has_shift |= affine.shift != NULL;
    graph_add_source(g, anchor, user);
    graph_replace(g, user->outputs.data[0], out);
    /* The user's own use of the value goes now, not at the sweep, so that
     * the next node in the chain is the only user. */
    graph_remove_node(g, user);
    return true;
}

static void change_constants(Graph *g, Node *anchor, int64_t channels,
                             const Affine *total)
{
    const Tensor *w = node_input(anchor, 1), *bias = node_input(anchor, 2);
    int axis = anchor->op->channel_axis;

    axis = axis < 0 ? axis + w->value->rank : axis;
    if (total->has_scale)
        graph_set_input(g, anchor, 1,
                        scaled_weights(g, w, axis, total->scale));
    if (!bias && !total->has_shift)
        return;
    while (anchor->inputs.count < 3)
        vec_push(g->arena, &anchor->inputs, NULL);
    graph_set_input(g, anchor, 2,
                    changed_bias(g, anchor, bias, channels, total));
}

static bool fold_users(Graph *g, Arena *scratch, Node *anchor)
{
    const TensorType *type = &anchor->outputs.data[0]->type;
    int axis = anchor->op->output_channel_axis;
    Affine total = {0};

    axis = axis < 0 ? axis + type->rank : axis;
    if (!type_is_static(type) || axis < 0 || axis >= type->rank)
        return false;
    int64_t channels = type->dims[axis].value;
    total.scale = filled(scratch, channels, 1);
    total.shift = filled(scratch, channels, 0);
    while (absorb_user(g, scratch, anchor, axis, &total)) {
    }
    if (!total.has_scale && !total.has_shift)
        return false;
    change_constants(g, anchor, channels, &total);
    return true;
}

void pass_batchnorm(PassContext *c)
{
    Graph *g = c->graph;
    bool changed = false;

    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (!(node->op->traits & OP_ANCHOR) ||
            !(node->op->traits & OP_LINEAR_WEIGHTS) ||
            node->outputs.count != 1)
            continue;
        Arena *scratch = arena_new();
        changed |= fold_users(g, scratch, node);
        arena_free(scratch);
    }
    if (changed)
        graph_sweep(g);
}
