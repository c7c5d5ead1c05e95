/* Convolutions and matrix products of one operand become a single one.
 *
 * Input: a typed graph. Output: nodes that compute sums of products of the
 * same operand with constant weights, under the same attributes, are one
 * node whose output channels are those of all; who read a single result
 * reads a slice. The query, key and value projections of attention are the
 * usual case, and the first layers of a detector's heads.
 *
 * Rule. What follows elementwise (bias, activation) must be the same for all,
 * node by node, with constants or each other's counterparts as further
 * operands: it is merged along, so that it still ends in the product's own
 * kernel. Nobody may need a result in a place of its own: no graph output, and
 * no concatenation, into which it could have been written directly. Slices
 * lie in the merged result and cost nothing, so there is never a kernel more
 * than before; the operand is read once, and narrow channels share vectors.
 * Where a residual sum or another activation follows one of them, as beside
 * the shortcut of a residual block, nothing is merged.
 *
 * Every element is the same sum of the same products in the same order as
 * before, so this keeps every bit and runs at -O1, too. */
#include <string.h>

#include "ops/make.h"
#include "passes/util.h"

enum { MAX_MERGED = 8, MAX_TUPLES = 16 };

/* Where the channels are, which only the weights know. */
typedef struct Channels {
    int out, weights; /* axis of the output and of operand 1 */
} Channels;

/* Counterparts: tensor k is what the k-th of the merged nodes leads to. */
typedef struct Tuple {
    Tensor *tensor[MAX_MERGED];
} Tuple;

/* Elementwise nodes that do the same to tensors of one tuple, or of several.
 */
typedef struct Step {
    Node *node[MAX_MERGED];
    int result; /* tuple */
} Step;

typedef struct Bundle {
    int count; /* of merged nodes */
    Channels channels;
    Tuple tuple[MAX_TUPLES];
    Step step[MAX_TUPLES];
    int tuples, steps;
} Bundle;

static bool reads_operand(const Expr *x, const char *name)
{
    return x->kind == EX_READ && strcmp(x->buffer->name, name) == 0;
}

static bool uses_var(const Expr *x, const Var *var)
{
    bool uses = false;

    for (int i = 0; i < x->count && !uses; i++)
        uses = expr_uses_var(x->arg[i], var);
    return uses;
}

/* A product of operands 0 and 1, summed, where one axis of the output is
 * followed by the weights alone. */
static bool find_channels(Arena *scratch, const Node *node, Channels *c)
{
    const Definition *def = define_node(scratch, node);

    for (int i = 0; def && i < def->stages.count; i++) {
        const Stage *s = def->stages.data[i];
        const Expr *value = s->value[0];
        if (!s->reduce_count)
            continue;
        if (s->value_count != 1 || value->kind != EX_MUL ||
            !reads_operand(value->arg[0], "in0") ||
            !reads_operand(value->arg[1], "in1"))
            return false;
        for (int axis = 0; axis < s->axis_count; axis++)
            for (int d = 0; d < value->arg[1]->count; d++) {
                const Expr *index = value->arg[1]->arg[d];
                if (index->kind != EX_VAR || index->var != s->axis[axis].var ||
                    uses_var(value->arg[0], index->var))
                    continue;
                *c = (Channels){axis, d};
                return true;
            }
        return false;
    }
    return false;
}

/* The only axis of a bias that has an extent, -1 when there are more. */
static int bias_axis(const Array *a, int64_t channels)
{
    int axis = -1;

    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != 1 || (i + 1 == a->rank && axis < 0)) {
            if (axis >= 0 || a->dims[i] != channels)
                return -1;
            axis = i;
        }
    return axis;
}

static bool is_candidate(Arena *scratch, const Node *node, Channels *c)
{
    const Tensor *x = node_input(node, 0), *w = node_input(node, 1);

    if (!(node->op->traits & OP_ANCHOR) || node->no_fuse ||
        node->outputs.count != 1 || !node->outputs.data[0] || !x || x->value ||
        !w || !w->value || node->inputs.count > 3 || w->type.quant ||
        !find_channels(scratch, node, c))
        return false;
    const Tensor *bias = node_input(node, 2);
    int64_t channels = node->outputs.data[0]->type.dims[c->out].value;
    return !bias || (bias->value && bias_axis(bias->value, channels) >= 0);
}

static bool dims_match(const TensorType *a, const TensorType *b, int but)
{
    if (a->rank != b->rank || a->dtype != b->dtype || a->quant != b->quant)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (i != but && !extent_equal(a->dims[i], b->dims[i]))
            return false;
    return true;
}

/* Both multiply the same operand in the same way. */
static bool are_siblings(const Node *a, const Node *b, const Channels *c)
{
    const Tensor *p = node_input(a, 2), *q = node_input(b, 2);

    return a->op == b->op && a->inputs.data[0] == b->inputs.data[0] &&
           attrs_equal(&a->attrs, &b->attrs) &&
           dims_match(&a->inputs.data[1]->type, &b->inputs.data[1]->type,
                      c->weights) &&
           dims_match(&a->outputs.data[0]->type, &b->outputs.data[0]->type,
                      c->out) &&
           !p == !q && (!p || p->type.rank == q->type.rank);
}

/* ---- what follows ---------------------------------------------------- */

static bool is_plain_elementwise(const Node *node)
{
    return (node->op->traits & OP_ELEMENTWISE) &&
           !(node->op->traits & (OP_ANCHOR | OP_IMPURE)) && !node->no_fuse &&
           node->outputs.count == 1 && node->outputs.data[0];
}

static int find_tuple(const Bundle *b, int k, const Tensor *t)
{
    for (int i = 0; i < b->tuples; i++)
        if (b->tuple[i].tensor[k] == t)
            return i;
    return -1;
}

static bool has_step(const Bundle *b, int k, const Node *node)
{
    for (int i = 0; i < b->steps; i++)
        if (b->step[i].node[k] == node)
            return true;
    return false;
}

/* The place of the channels among the axes of a constant that broadcasts
 * against the output; -1: it has no such axis. */
static int constant_axis(const Bundle *b, const Tensor *constant)
{
    return b->channels.out -
           (b->tuple[0].tensor[0]->type.rank - constant->type.rank);
}

/* Constants of the same shape, but for the channels, which may be one. */
static bool constants_match(const Bundle *b, const Tensor *x, const Tensor *y)
{
    return x->value && y->value &&
           dims_match(&x->type, &y->type, constant_axis(b, x));
}

/* Operand by operand, `node` does to counterparts what `first` does. */
static bool is_counterpart(const Bundle *b, const Node *first, int k,
                           const Node *node)
{
    if (node->op != first->op || !is_plain_elementwise(node) ||
        node->inputs.count != first->inputs.count || has_step(b, k, node) ||
        !attrs_equal(&first->attrs, &node->attrs) ||
        !dims_match(&first->outputs.data[0]->type,
                    &node->outputs.data[0]->type, b->channels.out) ||
        !extent_equal(node->outputs.data[0]->type.dims[b->channels.out],
                      b->tuple[0].tensor[k]->type.dims[b->channels.out]))
        return false;
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *x = first->inputs.data[i], *y = node->inputs.data[i];
        int at = x ? find_tuple(b, 0, x) : -1;
        if (!x != !y)
            return false;
        if (x && !(at >= 0 ? b->tuple[at].tensor[k] == y
                           : constants_match(b, x, y)))
            return false;
    }
    return true;
}

/* The counterparts of `first`, which reads tuple `from`; false when one has
 * none. */
static bool match(const Bundle *b, int from, Node *first, Step *step)
{
    step->node[0] = first;
    if (!is_counterpart(b, first, 0, first))
        return false;
    for (int k = 1; k < b->count; k++) {
        const Tensor *t = b->tuple[from].tensor[k];
        step->node[k] = NULL;
        for (int i = 0; i < t->users.count && !step->node[k]; i++)
            if (is_counterpart(b, first, k, t->users.data[i]))
                step->node[k] = t->users.data[i];
        if (!step->node[k])
            return false;
    }
    return true;
}

static bool add_step(Bundle *b, int from)
{
    const Tensor *t = b->tuple[from].tensor[0];

    for (int i = 0; i < t->users.count; i++) {
        Node *user = t->users.data[i];
        Step step;
        if (!is_plain_elementwise(user) || has_step(b, 0, user) ||
            b->tuples == MAX_TUPLES || !match(b, from, user, &step))
            continue;
        step.result = b->tuples;
        for (int k = 0; k < b->count; k++)
            b->tuple[b->tuples].tensor[k] = step.node[k]->outputs.data[0];
        b->tuples++;
        b->step[b->steps++] = step;
        return true;
    }
    return false;
}

/* Nobody is left who would want a result for itself. */
static bool is_settled(Arena *scratch, const Bundle *b, int k, const Tensor *t)
{
    if (t->is_output)
        return false;
    for (int i = 0; i < t->users.count; i++) {
        const Node *user = t->users.data[i];
        int64_t *starts =
            ARENA_ARRAY(scratch, int64_t, user->inputs.count + 1);
        int axis;
        if ((is_plain_elementwise(user) && !has_step(b, k, user)) ||
            node_is_join(scratch, user, &axis, starts))
            return false;
    }
    return true;
}

/* Follows the results as far as elementwise nodes go. */
static bool follow(Arena *scratch, Bundle *b, Node *const *nodes, int count)
{
    b->count = count;
    b->tuples = 1;
    b->steps = 0;
    for (int k = 0; k < count; k++)
        b->tuple[0].tensor[k] = nodes[k]->outputs.data[0];
    for (int i = 0; i < b->tuples; i++)
        /* A later tuple may be the operand an earlier user waits for. */
        if (add_step(b, i))
            i = -1;
    for (int i = 0; i < b->tuples; i++)
        for (int k = 0; k < count; k++)
            if (!is_settled(scratch, b, k, b->tuple[i].tensor[k]))
                return false;
    return true;
}

/* ---- merging --------------------------------------------------------- */

/* Arrays one after the other along `axis`; one with a single element there
 * is repeated extents[k] times. */
static Tensor *join_constants(Graph *g, Tensor *const *parts, int count,
                              int axis, const int64_t *extents)
{
    const Array *first = parts[0]->value;
    int64_t dims[MAX_RANK], outer = 1, inner = 1, total = 0;
    size_t size = dtype_size(first->dtype);

    for (int i = 0; i < first->rank; i++)
        dims[i] = first->dims[i];
    for (int k = 0; k < count; k++)
        total += extents[k];
    dims[axis] = total;
    for (int i = 0; i < axis; i++)
        outer *= dims[i];
    for (int i = axis + 1; i < first->rank; i++)
        inner *= dims[i];
    Array *made = array_new(g->arena, first->dtype, first->rank, dims);
    char *to = made->data;
    size_t row = (size_t)inner * size;
    for (int64_t o = 0; o < outer; o++)
        for (int k = 0; k < count; k++) {
            const Array *a = parts[k]->value;
            int64_t own = a->dims[axis];
            for (int64_t i = 0; i < extents[k]; i++, to += row)
                memcpy(to,
                       (const char *)a->data +
                           (size_t)(o * own + (own == 1 ? 0 : i)) * row,
                       row);
        }
    return graph_add_constant(
        g, arena_printf(g->arena, "%s.merged", parts[0]->name), made);
}

/* One constant that is to the merged tensor what each is to its part. */
static Tensor *merge_constants(Graph *g, const Bundle *b, const Step *step,
                               int operand)
{
    Tensor *parts[MAX_MERGED] = {0};
    int64_t extents[MAX_MERGED];
    int axis = constant_axis(b, step->node[0]->inputs.data[operand]);
    bool same = true;

    for (int k = 0; k < b->count; k++) {
        parts[k] = step->node[k]->inputs.data[operand];
        extents[k] = b->tuple[0].tensor[k]->type.dims[b->channels.out].value;
        same &= array_equal(parts[k]->value, parts[0]->value) &&
                (axis < 0 || parts[k]->value->dims[axis] == 1);
    }
    if (same)
        return parts[0];
    if (axis >= 0)
        return join_constants(g, parts, b->count, axis, extents);
    /* Too few axes to differ by channel: some in front. */
    for (int k = 0; k < b->count; k++) {
        const Array *a = parts[k]->value;
        int64_t dims[MAX_RANK];
        for (int i = 0; i < -axis; i++)
            dims[i] = 1;
        for (int i = 0; i < a->rank; i++)
            dims[i - axis] = a->dims[i];
        Array *wider = array_new(g->arena, a->dtype, a->rank - axis, dims);
        memcpy(wider->data, a->data, array_bytes(a));
        parts[k] = graph_add_constant(g, parts[k]->name, wider);
    }
    return join_constants(g, parts, b->count, 0, extents);
}

static Tensor *add_merged(Graph *g, Node *const *nodes, int count,
                          Tensor *const *inputs, int input_count)
{
    const Op *op = nodes[0]->op;
    const char *name =
        *op->domain ? arena_printf(g->arena, "%s::%s", op->domain, op->name)
                    : op->name;
    Node *node = graph_add_node(
        g, name, arena_printf(g->arena, "%s.merged", nodes[0]->name), inputs,
        input_count, 1);

    for (int i = 0; i < nodes[0]->attrs.list.count; i++)
        attrs_set(g->arena, &node->attrs, nodes[0]->attrs.list.data[i]);
    node->sources.count = 0;
    for (int k = 0; k < count; k++)
        graph_add_source(g, node, nodes[k]);
    if (!op_infer(g, node))
        die("merged node \"%s\" does not type", node->name);
    return node->outputs.data[0];
}

static Tensor *merge_anchors(Graph *g, const Bundle *b, Node *const *nodes)
{
    Tensor *parts[3][MAX_MERGED] = {{0}}, *inputs[3] = {0};
    int64_t extents[MAX_MERGED];
    int operands = node_input(nodes[0], 2) ? 3 : 2;

    for (int k = 0; k < b->count; k++) {
        extents[k] =
            nodes[k]->outputs.data[0]->type.dims[b->channels.out].value;
        for (int i = 0; i < operands; i++)
            parts[i][k] = nodes[k]->inputs.data[i];
    }
    inputs[0] = parts[0][0];
    inputs[1] =
        join_constants(g, parts[1], b->count, b->channels.weights, extents);
    if (operands == 3)
        inputs[2] =
            join_constants(g, parts[2], b->count,
                           bias_axis(parts[2][0]->value, extents[0]), extents);
    return add_merged(g, nodes, b->count, inputs, operands);
}

static Tensor *merge_step(Graph *g, const Bundle *b, const Step *step,
                          Tensor *const *merged)
{
    const Node *first = step->node[0];
    Tensor **inputs = ARENA_ARRAY(g->arena, Tensor *, first->inputs.count + 1);

    for (int i = 0; i < first->inputs.count; i++) {
        Tensor *x = first->inputs.data[i];
        int at = x ? find_tuple(b, 0, x) : -1;
        inputs[i] = !x        ? NULL
                    : at >= 0 ? merged[at]
                              : merge_constants(g, b, step, i);
    }
    return add_merged(g, step->node, b->count, inputs, first->inputs.count);
}

/* Others than the merged steps read the tensor. */
static bool is_read(const Bundle *b, int k, const Tensor *t)
{
    for (int i = 0; i < t->users.count; i++)
        if (!has_step(b, k, t->users.data[i]))
            return true;
    return false;
}

static void merge(Graph *g, const Bundle *b, Node *const *nodes)
{
    Tensor *merged[MAX_TUPLES];
    int axis = b->channels.out;

    merged[0] = merge_anchors(g, b, nodes);
    for (int i = 0; i < b->steps; i++)
        merged[b->step[i].result] = merge_step(g, b, &b->step[i], merged);
    for (int i = 0; i < b->tuples; i++) {
        int64_t at = 0;
        for (int k = 0; k < b->count; k++) {
            Tensor *t = b->tuple[i].tensor[k];
            int64_t extent = t->type.dims[axis].value;
            if (is_read(b, k, t)) {
                Tensor *part = op_make_slice(
                    g, arena_printf(g->arena, "%s.part", t->name), merged[i],
                    axis, at, extent);
                graph_add_source(g, part->producer, t->producer);
                graph_replace(g, t, part);
            }
            at += extent;
        }
    }
}

/* The siblings of `first` that are followed by the same as it is. */
static int gather(Arena *scratch, Bundle *b, const bool *done, Node *first,
                  Node **nodes)
{
    const Tensor *x = first->inputs.data[0];
    int count = 1;

    nodes[0] = first;
    for (int i = 0; i < x->users.count && count < MAX_MERGED; i++) {
        Node *other = x->users.data[i];
        Channels c;
        bool known = done[other->id];
        for (int k = 0; k < count; k++)
            known |= nodes[k] == other;
        if (known || !is_candidate(scratch, other, &c) ||
            c.out != b->channels.out || c.weights != b->channels.weights ||
            !are_siblings(first, other, &c))
            continue;
        Node *pair[] = {first, other};
        if (follow(scratch, b, pair, 2))
            nodes[count++] = other;
    }
    return count;
}

void pass_merge(PassContext *c)
{
    Graph *g = c->graph;
    Arena *scratch = arena_new();
    Bundle *b = ARENA_NEW(scratch, Bundle);
    bool *done = ARENA_ARRAY(scratch, bool, g->next_id + 1);
    bool changed = false;
    /* New nodes come at the end of the list; they have no siblings. */
    int count = g->nodes.count;

    for (int i = 0; i < count; i++) {
        Node *node = g->nodes.data[i], *nodes[MAX_MERGED];
        if (done[node->id] || !is_candidate(scratch, node, &b->channels))
            continue;
        int merged = gather(scratch, b, done, node, nodes);
        for (int k = 0; k < merged; k++)
            done[nodes[k]->id] = true;
        if (merged < 2 || !follow(scratch, b, nodes, merged))
            continue;
        merge(g, b, nodes);
        changed = true;
    }
    arena_free(scratch);
    if (!changed)
        return;
    graph_sort(g);
    graph_sweep(g);
}
