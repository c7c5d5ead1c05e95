/* Groups of nodes that become one kernel.
 *
 * Input: a typed graph with layouts. Output: Graph.groups, in an order
 * that respects data flow; every node is in exactly one.
 *
 * A group starts at a node and grows forward over elementwise nodes whose
 * result has the shape of the group's, so that the epilogue of an anchor
 * (bias, residual sum, activation) runs before its result is stored.
 * Several ways out of the group are followed for a few nodes: when they
 * meet again (x * sigmoid(x)) the whole is taken, otherwise none of it.
 *
 * Invariant: exactly one tensor leaves a group, that of its last node, and
 * a graph output is never inside. With one way out, and the nodes taken in
 * topological order, no other operand can depend on the group: groups
 * cannot form a cycle. Source for the classes of nodes: Chen et al., TVM,
 * OSDI 2018, section 3.1. */
#include <stdlib.h>
#include <string.h>

#include "passes/util.h"

/* Bounds on work: nodes looked at without a commitment, and nodes of one
 * group, so that endless elementwise chains stay linear. */
enum { MAX_LOOKAHEAD = 24, MAX_GROUP = 48 };
/* Elementwise values are computed anew for each of their readers: operations
 * of one result, so counted, that a group may reach. */
static const double max_operations = 2000;

/* What one element of a node's result costs when its elementwise operands
 * in the group are computed in place. */
typedef struct Cost {
    double operations;
    bool is_costly; /* division or an elementary function among them */
} Cost;

typedef struct FusePass {
    Graph *g;
    Arena *scratch;
    int *position; /* of a node in the list, by id */
    Cost *cost;    /* by node id, of nodes in a group */
} FusePass;

typedef struct Growth {
    Vec(Node *) nodes;
    TensorType shape; /* of the result */
    TensorType wide;  /* of a row before its reduction; rank -1: none */
    Node *anchor;
} Growth;

static bool contains(const Growth *w, const Node *node)
{
    for (int i = w->nodes.count - 1; i >= 0; i--)
        if (w->nodes.data[i] == node)
            return true;
    return false;
}

static bool is_plain_elementwise(const Node *node)
{
    return (node->op->traits & OP_ELEMENTWISE) &&
           !(node->op->traits & (OP_IMPURE | OP_ANCHOR)) && !node->no_fuse &&
           node->outputs.count == 1 && node->outputs.data[0] &&
           node->op->define;
}

/* A sum or the like over whole rows: each input element is read once, and
 * the reduced axes stay with extent 1, so that results broadcast back. */
static bool is_row_reduction(FusePass *p, const Node *node)
{
    const Tensor *x = node_input(node, 0);

    if (!(node->op->traits & OP_REDUCTION) || node->no_fuse ||
        (node->op->traits & (OP_ANCHOR | OP_IMPURE)) || !x ||
        node->outputs.count != 1 || !node->outputs.data[0] ||
        x->type.rank != node->outputs.data[0]->type.rank)
        return false;
    Definition *def = define_node(p->scratch, node);
    if (!def || def->stages.count == 0)
        return false;
    const Stage *s = def->stages.data[0];
    int64_t reads = 1;
    for (int i = 0; i < s->axis_count; i++)
        reads *= s->axis[i].extent;
    for (int i = 0; i < s->reduce_count; i++)
        reads *= s->reduce[i].extent;
    if (s->reduce_count == 0 || reads != type_count(&x->type))
        return false;
    /* Later stages may only finish the result (a mean's division). */
    for (int i = 1; i < def->stages.count; i++)
        if (def->stages.data[i]->reduce_count)
            return false;
    const TensorType *y = &node->outputs.data[0]->type;
    int last = x->type.rank - 1;
    if (last < 0 || y->dims[last].value != 1)
        return false;
    for (int i = 0; i < last; i++)
        if (!extent_equal(x->type.dims[i], y->dims[i]))
            return false;
    return true;
}

/* The node of the group that computes operand `index` in place. */
static const Node *inlined_operand(const Growth *w, const Node *node,
                                   int index)
{
    const Tensor *t = node_input(node, index);
    const Node *from = t ? t->producer : NULL;

    if (!from || !contains(w, from) ||
        (from->op->traits & (OP_ANCHOR | OP_REDUCTION)))
        return NULL;
    return from;
}

static void add_cost(FusePass *p, const Growth *w, const Node *node,
                     const Expr *x, Cost *cost)
{
    cost->operations++;
    cost->is_costly |= (x->kind >= EX_EXP && x->kind <= EX_COS) ||
                       x->kind == EX_POW ||
                       (x->kind == EX_DIV && dtype_is_float(x->dtype));
    for (int i = 0; i < x->count; i++)
        add_cost(p, w, node, x->arg[i], cost);
    if (x->kind != EX_READ || strncmp(x->buffer->name, "in", 2) != 0)
        return;
    const Node *from = inlined_operand(w, node, atoi(x->buffer->name + 2));
    if (from) {
        cost->operations += p->cost[from->id].operations;
        cost->is_costly |= p->cost[from->id].is_costly;
    }
}

static Cost cost_of(FusePass *p, const Growth *w, const Node *node)
{
    Cost cost = {0, false};
    Definition *def = define_node(p->scratch, node);

    if (!def || def->stages.count != 1 || def->stages.data[0]->reduce_count)
        return cost;
    for (int v = 0; v < def->stages.data[0]->value_count; v++)
        add_cost(p, w, node, def->stages.data[0]->value[v], &cost);
    return cost;
}

/* True when the node would be a second reader of a value that is expensive
 * to compute again. Rows keep such values while they are at hand. */
static bool repeats_work(FusePass *p, const Growth *w, const Node *node)
{
    for (int i = 0; i < node->inputs.count && w->wide.rank < 0; i++) {
        const Node *from = inlined_operand(w, node, i);
        if (!from || !p->cost[from->id].is_costly)
            continue;
        const Tensor *t = node->inputs.data[i];
        for (int k = 0; k < t->users.count; k++)
            if (t->users.data[k] != node && contains(w, t->users.data[k]))
                return true;
    }
    return false;
}

static bool can_afford(FusePass *p, const Growth *w, const Node *node)
{
    if (repeats_work(p, w, node))
        return false;
    p->cost[node->id] = cost_of(p, w, node);
    return p->cost[node->id].operations <= max_operations;
}

/* Whether `node`, which reads a tensor of the group, may join it. */
static bool can_join(FusePass *p, const Growth *w, const Node *node)
{
    const Tensor *y = node->outputs.count ? node->outputs.data[0] : NULL;

    if (!y || node->group)
        return false;
    if (is_plain_elementwise(node) && !can_afford(p, w, node))
        return false;
    if (is_plain_elementwise(node))
        return shapes_equal(&y->type, &w->shape) ||
               (w->wide.rank >= 0 && shapes_equal(&y->type, &w->wide));
    /* A second pass over the same rows: variance after mean. */
    return w->wide.rank >= 0 && is_row_reduction(p, node) &&
           shapes_equal(&node->inputs.data[0]->type, &w->wide);
}

/* Tensors of the group that are used outside, or are graph outputs. */
static int count_open(const Growth *w, Node **next, const int *position)
{
    int open = 0;

    *next = NULL;
    for (int i = 0; i < w->nodes.count; i++) {
        const Tensor *t = w->nodes.data[i]->outputs.data[0];
        bool is_open = t->is_output;
        for (int k = 0; k < t->users.count; k++) {
            Node *user = t->users.data[k];
            if (contains(w, user))
                continue;
            is_open = true;
            if (!*next || position[user->id] < position[(*next)->id])
                *next = user;
        }
        open += is_open;
    }
    return open;
}

static bool has_inner_output(const Growth *w)
{
    for (int i = 0; i < w->nodes.count; i++)
        if (w->nodes.data[i]->outputs.data[0]->is_output)
            return true;
    return false;
}

/* Joins nodes in list order while they may, and keeps the longest prefix
 * with a single way out. */
static void grow(FusePass *p, Growth *w)
{
    int good = w->nodes.count;
    Node *next;

    count_open(w, &next, p->position);
    while (next && w->nodes.count - good < MAX_LOOKAHEAD &&
           w->nodes.count < MAX_GROUP && !has_inner_output(w) &&
           can_join(p, w, next)) {
        vec_push(p->scratch, &w->nodes, next);
        if (count_open(w, &next, p->position) == 1)
            good = w->nodes.count;
    }
    w->nodes.count = good;
}

/* Elementwise chains may run into a reduction that reads each element
 * once: the values then need no memory of their own. */
static void grow_into_reduction(FusePass *p, Growth *w)
{
    const Tensor *t = w->nodes.data[w->nodes.count - 1]->outputs.data[0];
    Node *user = tensor_only_user(t);

    if (w->anchor || !user || t->is_output || t->users.count != 1 ||
        user->group || user->inputs.data[0] != t || !is_row_reduction(p, user))
        return;
    for (int i = 0; i < w->nodes.count; i++)
        if (!(w->nodes.data[i]->op->traits & OP_ELEMENTWISE))
            return;
    w->wide = w->shape;
    w->shape = user->outputs.data[0]->type;
    w->anchor = user;
    vec_push(p->scratch, &w->nodes, user);
    grow(p, w);
}

/* A single product summed over one axis, with operands read as they are. */
static bool is_product(FusePass *p, const Node *node)
{
    if (!(node->op->traits & OP_ANCHOR) || node->no_fuse ||
        node->outputs.count != 1 || !node->outputs.data[0])
        return false;
    const Definition *def = define_node(p->scratch, node);
    if (!def || def->stages.count != 1)
        return false;
    const Stage *s = def->stages.data[0];
    return s->reduce_count == 1 && s->value[0]->kind == EX_MUL &&
           s->value[0]->arg[0]->kind == EX_READ &&
           s->value[0]->arg[1]->kind == EX_READ;
}

/* Rescales whole rows: the result has the shape of the operand, and each
 * row of it depends on that row alone (softmax over the last axis). */
static bool is_row_rescaling(FusePass *p, const Node *node)
{
    const Tensor *x = node_input(node, 0);

    if (!(node->op->traits & OP_REDUCTION) || node->no_fuse ||
        (node->op->traits & (OP_ANCHOR | OP_IMPURE)) || !x ||
        node->inputs.count != 1 || node->outputs.count != 1 ||
        !node->outputs.data[0] ||
        !shapes_equal(&x->type, &node->outputs.data[0]->type))
        return false;
    const Definition *def = define_node(p->scratch, node);
    for (int i = 0; def && i < def->stages.count; i++) {
        const Stage *s = def->stages.data[i];
        int last = s->axis_count - 1;
        /* Reductions leave one element of the last axis. */
        if (last < 0 || (s->reduce_count && s->axis[last].extent != 1))
            return false;
    }
    return def != NULL;
}

/* The tensor is only a step to its single user. */
static bool is_private(const Tensor *t, const Node *user)
{
    return t && t->producer && !t->is_output && t->users.count == 1 &&
           t->users.data[0] == user && !t->producer->group;
}

/* Attention ends in a product whose first operand are softmax rows of
 * another product: all of it becomes one kernel, by blocks of rows. Rows
 * too long to keep many of them in cache stay apart. Adds the nodes before
 * `last` to the empty group. */
static void take_attention(FusePass *p, Growth *w, Node *last)
{
    const int64_t most_columns = 2048;
    enum { MOST_BETWEEN = 4 };
    Node *chain[MOST_BETWEEN + 2];
    int n = 0;

    if (!is_product(p, last) || last->inputs.count < 2)
        return;
    Tensor *t = last->inputs.data[0];
    if (!is_private(t, last) || !is_row_rescaling(p, t->producer) ||
        t->type.dims[t->type.rank - 1].value > most_columns)
        return;
    chain[n++] = t->producer;
    const TensorType *shape = &t->type;
    for (;;) {
        Node *node = chain[n - 1];
        Tensor *next = NULL;
        for (int i = 0; i < node->inputs.count && !next; i++) {
            Tensor *x = node->inputs.data[i];
            if (is_private(x, node) && shapes_equal(&x->type, shape))
                next = x;
        }
        if (!next || n == MOST_BETWEEN + 2)
            return;
        chain[n++] = next->producer;
        if (is_product(p, next->producer))
            break;
        if (!is_plain_elementwise(next->producer))
            return;
    }
    while (n > 0)
        vec_push(p->scratch, &w->nodes, chain[--n]);
}

/* Nodes that are aliases stay alone: there they cost nothing, and as the
 * head of a group they would be computed. */
static void start_group(FusePass *p, Node *node)
{
    Graph *g = p->g;
    Growth w = {.wide = {.rank = -1}};
    bool alone = node->no_fuse || !node_is_pure(node) ||
                 node->outputs.count != 1 || !node->outputs.data[0] ||
                 !node->op->define || (node->op->traits & OP_RESHAPE) ||
                 node_is_alias(p->scratch, node);

    if (!alone)
        take_attention(p, &w, node);
    vec_push(p->scratch, &w.nodes, node);
    if (node->op->traits & (OP_ANCHOR | OP_REDUCTION))
        w.anchor = node;
    if (!alone) {
        w.shape = node->outputs.data[0]->type;
        p->cost[node->id] = cost_of(p, &w, node);
        if (is_row_reduction(p, node))
            w.wide = node->inputs.data[0]->type;
        grow(p, &w);
        grow_into_reduction(p, &w);
    }
    Group *group = ARENA_NEW(g->arena, Group);
    group->anchor = w.anchor;
    for (int i = 0; i < w.nodes.count; i++) {
        vec_push(g->arena, &group->nodes, w.nodes.data[i]);
        w.nodes.data[i]->group = group;
    }
}

void pass_fuse(PassContext *c)
{
    Graph *g = c->graph;

    if (c->opt_level == 0) {
        graph_group_alone(g);
        return;
    }
    FusePass p = {.g = g, .scratch = arena_new()};
    p.position = ARENA_ARRAY(p.scratch, int, g->next_id + 1);
    p.cost = ARENA_ARRAY(p.scratch, Cost, g->next_id + 1);
    for (int i = 0; i < g->nodes.count; i++) {
        p.position[g->nodes.data[i]->id] = i;
        g->nodes.data[i]->group = NULL;
    }
    /* Anchors choose first: a sum of two convolutions becomes the epilogue
     * of the later one, whose operands are all there by then. */
    for (int i = g->nodes.count - 1; i >= 0; i--) {
        Node *node = g->nodes.data[i];
        if (!node->group && (node->op->traits & OP_ANCHOR))
            start_group(&p, node);
    }
    for (int i = 0; i < g->nodes.count; i++) {
        if (!g->nodes.data[i]->group)
            start_group(&p, g->nodes.data[i]);
    }
    /* A group runs where its last node stands: its operands are there, and
     * nobody needs its result earlier. */
    g->groups.count = 0;
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        Group *group = node->group;
        if (group->nodes.data[group->nodes.count - 1] != node)
            continue;
        group->id = g->groups.count;
        vec_push(g->arena, &g->groups, group);
    }
    arena_free(p.scratch);
}
