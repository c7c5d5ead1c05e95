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
 * checks. Results of reshapes, transposes and slices get the layout, if there
 * is one, under which they lie exactly as (a part of) their operand does: the
 * node then is an alias and costs nothing. Where that has the channels
 * innermost, too, it does for a convolution. Concatenations have the order of
 * axes that their operands have, and their operands lie in them where they
 * can (place.c); so these share one border. All else is row-major: operands
 * and results of loop programs and control flow are, if need be through a
 * copy.
 *
 * At -O0 every tensor is row-major. */
#include "ops/make.h"
#include "passes/util.h"

typedef struct LayoutPass {
    Graph *g;
    Arena *scratch;
    bool *wants;    /* by tensor id: channels last */
    bool *fixed;    /* by tensor id: not ours to choose */
    Layout *border; /* by tensor id: lo and hi that its readers need */
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

/* Takes and gives tensors in row-major order. */
static bool is_plain(const Node *node)
{
    return node_is_program(node) || node->bodies.count;
}

static void find_channels_last(LayoutPass *p)
{
    Graph *g = p->g;

    for (int i = 0; i < g->tensors.count; i++) {
        Tensor *t = g->tensors.data[i];
        p->fixed[t->id] = t->is_input || t->is_output || t->value ||
                          (t->producer && is_plain(t->producer));
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

/* The channels are innermost, as far as there are any. */
static bool has_channels_innermost(const Layout *layout, const TensorType *y)
{
    for (int i = layout->count - 1; i >= 0; i--)
        if (y->dims[layout->dim[i].axis].value != 1)
            return layout->dim[i].axis == 1;
    return true;
}

static void alias_layout(LayoutPass *p, const Node *node)
{
    Tensor *x = node_input(node, 0), *y = node->outputs.data[0];
    int64_t start[MAX_RANK];
    Layout layout;

    if (!x || !y || p->fixed[y->id] ||
        !node_alias_layout(p->scratch, node, &layout))
        return;
    bool is_part = !(node->op->traits & OP_RESHAPE) &&
                   node_is_part(p->scratch, node, 0, start);
    if (p->wants[y->id]) {
        /* A slice keeps the border, which both have been given. */
        bool has_border = is_part && p->wants[x->id] && !p->fixed[x->id];
        if ((layout_has_border(&p->border[y->id]) && !has_border) ||
            !has_channels_innermost(&layout, &y->type))
            return;
    }
    y->layout = layout;
    if (is_part || layout_is_part(&layout))
        y->within = x;
}

/* Operands that all have one order of axes hand it on to what they are joined
 * to. */
static void join_layout(LayoutPass *p, const Node *node)
{
    Tensor *x = node_input(node, 0), *y = node->outputs.data[0];
    int64_t *starts = ARENA_ARRAY(p->scratch, int64_t, node->inputs.count + 1);
    int axis, order[MAX_RANK];

    if (!x || !y || p->fixed[y->id] || p->wants[y->id] ||
        !node_is_join(p->scratch, node, &axis, starts))
        return;
    for (int i = 0; i < x->type.rank; i++)
        order[i] = x->layout.dim[i].axis;
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *t = node->inputs.data[i];
        if (t->value || t->layout.count != t->type.rank)
            return;
        for (int k = 0; k < t->type.rank; k++)
            if (t->layout.dim[k].axis != order[k])
                return;
    }
    y->layout = layout_permuted(x->type.rank, order);
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

static bool widen(Layout *to, const Layout *from, int but)
{
    bool changed = false;

    for (int i = 0; i < MAX_RANK; i++) {
        if (i == but)
            continue;
        changed |= from->lo[i] > to->lo[i] || from->hi[i] > to->hi[i];
        to->lo[i] = from->lo[i] > to->lo[i] ? from->lo[i] : to->lo[i];
        to->hi[i] = from->hi[i] > to->hi[i] ? from->hi[i] : to->hi[i];
    }
    return changed;
}

/* Both get the border of either, except along the axis `but`. */
static bool share_border(LayoutPass *p, const Tensor *a, const Tensor *b,
                         int but)
{
    if (!p->wants[a->id] || p->fixed[a->id] || !p->wants[b->id] ||
        p->fixed[b->id])
        return false;
    bool changed = widen(&p->border[a->id], &p->border[b->id], but);
    return widen(&p->border[b->id], &p->border[a->id], but) || changed;
}

/* What may come to lie in one storage has one border. */
static bool share_borders(LayoutPass *p, const Node *node)
{
    Tensor *x = node_input(node, 0), *y = node->outputs.data[0];
    int64_t *starts = ARENA_ARRAY(p->scratch, int64_t, node->inputs.count + 1);
    int64_t start[MAX_RANK];
    bool changed = false;
    int axis;

    if (!x || !y || !(node->op->traits & OP_INJECTIVE))
        return false;
    if (node_is_join(p->scratch, node, &axis, starts)) {
        for (int i = 0; i < node->inputs.count; i++)
            changed |= share_border(p, y, node->inputs.data[i], axis);
    } else if (node_is_part(p->scratch, node, 0, start)) {
        changed = share_border(p, y, x, -1);
    }
    return changed;
}

static void find_borders(LayoutPass *p)
{
    Graph *g = p->g;
    bool changed = true;

    for (int i = 0; i < g->nodes.count; i++) {
        const Node *node = g->nodes.data[i];
        Layout need = {0};
        if (is_convolution(node) &&
            node_input_border(p->scratch, node, 0, need.lo, need.hi))
            widen(&p->border[node->inputs.data[0]->id], &need, -1);
    }
    while (changed) {
        changed = false;
        for (int i = 0; i < g->nodes.count; i++)
            changed |= share_borders(p, g->nodes.data[i]);
    }
}

/* Channels last with the border its readers need. */
static Layout wanted_layout(LayoutPass *p, const Tensor *t)
{
    Layout layout = channels_last(t->type.rank);

    widen(&layout, &p->border[t->id], -1);
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
    if (!type_is_bounded(&t->type) ||
        layout_same_storage(&t->layout, &wanted, t->type.rank, dims))
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

/* Loop programs count in row-major order, and bodies of control flow know
 * nothing of layouts outside. */
static void plain_operands(LayoutPass *p, Node *node)
{
    Graph *g = p->g;

    for (int i = 0; i < node->inputs.count; i++) {
        Tensor *t = node->inputs.data[i];
        if (!t || t->value || layout_is_row_major(&t->layout, t->type.rank))
            continue;
        Tensor *copy = op_make_relayout(
            g, arena_printf(g->arena, "%s.plain", t->name), t);
        copy->layout = layout_row_major(t->type.rank);
        graph_move_before(g, copy->producer, node);
        for (int k = i; k < node->inputs.count; k++)
            if (node->inputs.data[k] == t)
                graph_set_input(g, node, k, copy);
    }
}

void pass_layout(PassContext *c)
{
    Graph *g = c->graph;

    graph_layout_row_major(g);
    if (c->opt_level == 0)
        return;
    Arena *scratch = arena_new();
    LayoutPass p = {.g = g, .scratch = scratch};
    p.wants = ARENA_ARRAY(scratch, bool, g->next_id + 1);
    p.fixed = ARENA_ARRAY(scratch, bool, g->next_id + 1);
    p.border = ARENA_ARRAY(scratch, Layout, g->next_id + 1);
    find_channels_last(&p);
    find_borders(&p);
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
        join_layout(&p, node);
        alias_layout(&p, node);
    }
    place_operands_of_joins(g, p.fixed, p.wants);
    int tensors = g->tensors.count;
    for (int i = 0; i < tensors; i++) {
        Tensor *t = g->tensors.data[i];
        if (p.wants[t->id] && p.fixed[t->id] && !t->value)
            insert_relayout(&p, t);
    }
    for (int i = 0; i < g->nodes.count; i++)
        if (is_plain(g->nodes.data[i]))
            plain_operands(&p, g->nodes.data[i]);
    arena_free(scratch);
}
