/* A memory layout for every tensor.
 *
 * Input: a typed graph, simplified. Output: Tensor.layout of every tensor,
 * and copy nodes (relayouts) where a convolution would otherwise read a
 * tensor whose layout is not ours to choose.
 *
 * Rules. Inputs, outputs and constants of the graph are row-major: they
 * are its interface, or are packed by the schedule that reads them.
 * Tensors that convolutions with channels on axis 1 read or write, and
 * those that elementwise, pooling and similar nodes connect to them, are
 * channels last. What a convolution reads with padding gets a zeroed
 * border wide enough for all its readers, so that kernels need no bounds
 * checks. Results of reshapes and transposes get the layout, if there is
 * one, under which they lie exactly as their operand does: the node then
 * is an alias and costs nothing. All else is row-major.
 *
 * At -O0 every tensor is row-major. */
#include "ops/make.h"
#include "passes/util.h"

typedef struct LayoutPass {
    Graph *g;
    Arena *scratch;
    bool *wants; /* by tensor id: channels last */
    bool *fixed; /* by tensor id: not ours to choose */
    int tensor_ids;
    Vec(Tensor *) work;
} LayoutPass;

static Layout channels_last(int rank)
{
    int order[MAX_RANK] = {0};

    for (int i = 1; i < rank - 1; i++)
        order[i] = i + 1;
    order[rank - 1] = 1;
    return layout_permuted(rank, order);
}

/* A convolution with channels on axis 1. */
static bool is_convolution(const Node *node)
{
    const Tensor *x = node_input(node, 0), *y = node->outputs.data[0];

    return (node->op->traits & OP_ANCHOR) &&
           (node->op->traits & OP_LINEAR_WEIGHTS) &&
           node->op->output_channel_axis == 1 && x && y && x->type.rank >= 3 &&
           y->type.rank == x->type.rank;
}

/* Nodes that treat a tensor the same in any layout. */
static bool is_neutral(LayoutPass *p, const Node *node)
{
    int perm[MAX_RANK];
    const Tensor *x = node_input(node, 0), *y = node->outputs.data[0];

    if (!x || !y || x->type.rank != y->type.rank ||
        (node->op->traits & (OP_ANCHOR | OP_RESHAPE)))
        return false;
    if (node->op->traits & (OP_ELEMENTWISE | OP_REDUCTION))
        return true;
    return (node->op->traits & OP_INJECTIVE) &&
           !node_permutation(p->scratch, node, perm);
}

static void want(LayoutPass *p, Tensor *t)
{
    if (!t || t->value || t->type.rank < 3 || p->wants[t->id])
        return;
    p->wants[t->id] = true;
    if (!p->fixed[t->id])
        vec_push(p->scratch, &p->work, t);
}

static void want_operands(LayoutPass *p, const Node *node, int rank)
{
    for (int i = 0; i < node->inputs.count; i++) {
        Tensor *t = node->inputs.data[i];
        if (t && t->type.rank == rank)
            want(p, t);
    }
    for (int i = 0; i < node->outputs.count; i++) {
        Tensor *t = node->outputs.data[i];
        if (t && t->type.rank == rank)
            want(p, t);
    }
}

static void find_channels_last(LayoutPass *p)
{
    Graph *g = p->g;

    for (int i = 0; i < g->tensors.count; i++) {
        Tensor *t = g->tensors.data[i];
        p->fixed[t->id] = t->is_input || t->is_output || t->value;
    }
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (is_convolution(node)) {
            want(p, node->inputs.data[0]);
            want(p, node->outputs.data[0]);
        }
    }
    while (p->work.count > 0) {
        Tensor *t = p->work.data[--p->work.count];
        if (t->producer && is_neutral(p, t->producer))
            want_operands(p, t->producer, t->type.rank);
        for (int i = 0; i < t->users.count; i++)
            if (is_neutral(p, t->users.data[i]))
                want_operands(p, t->users.data[i], t->type.rank);
    }
}

static void alias_layout(LayoutPass *p, const Node *node)
{
    Tensor *y = node->outputs.data[0];
    Layout layout;

    if (y && !p->fixed[y->id] && !p->wants[y->id] &&
        node_alias_layout(p->scratch, node, &layout))
        y->layout = layout;
}

/* Where a transpose keeps the innermost axis and is the only reader, its
 * operand is written in the order of the result, which is then row-major:
 * what follows, a reshape most of all, reads it plainly. */
static void write_in_order(LayoutPass *p, const Node *node)
{
    Tensor *x = node_input(node, 0), *y = node->outputs.data[0];
    int perm[MAX_RANK];

    if (!x || !y || !x->producer || p->fixed[x->id] || p->fixed[y->id] ||
        p->wants[x->id] || p->wants[y->id] || x->users.count != 1 ||
        !(node->op->traits & OP_INJECTIVE) ||
        (node->op->traits & OP_RESHAPE) ||
        (x->producer->op->traits & OP_INJECTIVE) ||
        !layout_is_row_major(&x->layout, x->type.rank) ||
        !node_permutation(p->scratch, node, perm) ||
        perm[x->type.rank - 1] != x->type.rank - 1)
        return;
    x->layout = layout_permuted(x->type.rank, perm);
    y->layout = layout_row_major(y->type.rank);
}

static void widen_border(LayoutPass *p, const Node *node, Layout *layout)
{
    int64_t lo[MAX_RANK], hi[MAX_RANK];

    if (!node_input_border(p->scratch, node, 0, lo, hi))
        return;
    for (int i = 0; i < MAX_RANK; i++) {
        layout->lo[i] = lo[i] > layout->lo[i] ? lo[i] : layout->lo[i];
        layout->hi[i] = hi[i] > layout->hi[i] ? hi[i] : layout->hi[i];
    }
}

/* Channels last with the border its readers need. */
static Layout wanted_layout(LayoutPass *p, const Tensor *t)
{
    Layout layout = channels_last(t->type.rank);

    for (int i = 0; i < t->users.count; i++)
        if (t->users.data[i]->inputs.data[0] == t &&
            is_convolution(t->users.data[i]))
            widen_border(p, t->users.data[i], &layout);
    return layout;
}

/* Convolutions that read a tensor of fixed layout get a copy of it in
 * theirs, one for all of them. */
static void insert_relayout(LayoutPass *p, Tensor *t)
{
    Graph *g = p->g;
    Vec(Node *) readers = {0};
    Layout wanted = wanted_layout(p, t);
    int64_t dims[MAX_RANK];

    tensor_dims(&t->type, dims);
    if (!type_is_static(&t->type) ||
        layouts_same_storage(&t->layout, &wanted, dims))
        return;
    for (int i = 0; i < t->users.count; i++)
        if (is_convolution(t->users.data[i]) &&
            t->users.data[i]->inputs.data[0] == t)
            vec_push(p->scratch, &readers, t->users.data[i]);
    if (readers.count == 0)
        return;
    Tensor *copy =
        op_make_relayout(g, arena_printf(g->arena, "%s.relayout", t->name), t);
    copy->layout = wanted;
    graph_move_before(g, copy->producer, readers.data[0]);
    for (int i = 0; i < readers.count; i++)
        graph_set_input(g, readers.data[i], 0, copy);
}

void pass_layout(PassContext *c)
{
    Graph *g = c->graph;

    graph_layout_row_major(g);
    if (c->opt_level == 0)
        return;
    Arena *scratch = arena_new();
    LayoutPass p = {.g = g, .scratch = scratch, .tensor_ids = g->next_id};
    p.wants = ARENA_ARRAY(scratch, bool, p.tensor_ids + 1);
    p.fixed = ARENA_ARRAY(scratch, bool, p.tensor_ids + 1);
    find_channels_last(&p);
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        for (int k = 0; k < node->outputs.count; k++) {
            Tensor *y = node->outputs.data[k];
            if (y && p.wants[y->id] && !p.fixed[y->id])
                y->layout = wanted_layout(&p, y);
        }
        if (node->outputs.count != 1)
            continue;
        write_in_order(&p, node);
        alias_layout(&p, node);
    }
    int tensors = g->tensors.count;
    for (int i = 0; i < tensors; i++) {
        Tensor *t = g->tensors.data[i];
        if (p.wants[t->id] && p.fixed[t->id] && !t->value)
            insert_relayout(&p, t);
    }
    arena_free(scratch);
}
