/* Groups of nodes that become one kernel.
 *
 * Input: a typed graph with layouts. Output: Graph.groups, in an order
 * that respects data flow; every node is in exactly one. Node.apart says for
 * every operand from another group why the two are apart.
 *
 * A group starts at a node and grows forward over elementwise nodes whose
 * result has the shape of the group's, so that the epilogue of an anchor
 * (bias, residual sum, activation) runs before its result is stored. Without
 * an anchor it also takes nodes that move elements. Several ways out of the
 * group are followed for a few nodes: when they meet again (x * sigmoid(x))
 * the whole is taken, otherwise none of it. Last, groups of light nodes whose
 * result only one other group reads go into that: operands of an epilogue, or
 * of a chain that was begun elsewhere.
 *
 * Invariant: exactly one tensor leaves a group, that of its last node, and
 * a graph output is never inside. With one way out, and the nodes taken in
 * topological order, no other operand can depend on the group: groups
 * cannot form a cycle. Source for the classes of nodes: Chen et al., TVM,
 * OSDI 2018, section 3.1. */
#include <stdlib.h>
#include <string.h>

#include "passes/kinds.h"

/* Bounds on work: nodes looked at without a commitment, and nodes of one
 * group, so that endless elementwise chains stay linear. */
enum { MAX_LOOKAHEAD = 24, MAX_GROUP = 48 };
/* Elementwise values are computed anew for each of their readers: operations
 * of one result, so counted, that a group may reach. */
static const double max_operations = 2000;

typedef struct FusePass {
    Graph *g;
    Arena *scratch;
    int *position; /* of a node in the list, by id */
    Cost *cost;    /* by node id, of nodes in a group */
} FusePass;

typedef struct Growth {
    Vec(Node *) nodes;
    Vec(TensorType) shapes; /* of the result, after each node */
    TensorType shape;       /* of the result */
    TensorType wide;        /* of a row before its reduction; rank -1: none */
    Node *anchor;
    FusePass *pass;
} Growth;

static bool contains(const Growth *w, const Node *node)
{
    for (int i = w->nodes.count - 1; i >= 0; i--)
        if (w->nodes.data[i] == node)
            return true;
    return false;
}

static void take(Growth *w, Node *node)
{
    vec_push(w->pass->scratch, &w->nodes, node);
    vec_push(w->pass->scratch, &w->shapes, w->shape);
}

/* ---- reasons --------------------------------------------------------- */

/* Why `user` is not where `t` is computed. The first reason stays. */
static void keep_apart(const Tensor *t, Node *user, Apart why)
{
    for (int i = 0; i < user->inputs.count; i++)
        if (user->inputs.data[i] == t && user->apart[i] == APART_NONE)
            user->apart[i] = why;
}

/* The same for all that `user` reads of the group. */
static void keep_out(const Growth *w, Node *user, Apart why)
{
    for (int i = 0; i < user->inputs.count; i++) {
        const Tensor *t = user->inputs.data[i];
        if (t && t->producer && contains(w, t->producer))
            keep_apart(t, user, why);
    }
}

static void keep_others_out(const Growth *w)
{
    for (int i = 0; i < w->nodes.count; i++) {
        const Node *node = w->nodes.data[i];
        for (int k = 0; k < node->outputs.count; k++) {
            const Tensor *t = node->outputs.data[k];
            for (int u = 0; t && u < t->users.count; u++) {
                Node *user = t->users.data[u];
                if (!contains(w, user))
                    keep_apart(t, user,
                               t->is_output ? APART_OUTPUT
                               : node_is_alias(w->pass->scratch, user)
                                   ? APART_VIEW
                                   : APART_READERS);
            }
        }
    }
}

/* ---- cost ------------------------------------------------------------ */

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

static const Cost *operand_cost(void *growth, const Node *node, int operand)
{
    const Growth *w = growth;
    const Node *from = inlined_operand(w, node, operand);

    return from ? &w->pass->cost[from->id] : NULL;
}

/* True when the node would be a second reader of a value that is expensive
 * to compute again. Rows keep such values while they are at hand. */
static bool repeats_work(const Growth *w, const Node *node)
{
    for (int i = 0; i < node->inputs.count && w->wide.rank < 0; i++) {
        const Node *from = inlined_operand(w, node, i);
        if (!from || !w->pass->cost[from->id].is_costly)
            continue;
        const Tensor *t = node->inputs.data[i];
        for (int k = 0; k < t->users.count; k++)
            if (t->users.data[k] != node && contains(w, t->users.data[k]))
                return true;
    }
    return false;
}

static Apart afford(Growth *w, const Node *node)
{
    if (repeats_work(w, node))
        return APART_REPEATED;
    Cost *cost = &w->pass->cost[node->id];
    *cost = kind_cost(w->pass->scratch, node, operand_cost, w);
    return cost->operations > max_operations ? APART_SIZE : APART_NONE;
}

/* ---- growth ---------------------------------------------------------- */

/* Whether `node`, which reads a tensor of the group, may join it. */
static Apart judge(Growth *w, Node *node)
{
    Arena *scratch = w->pass->scratch;

    if (node->no_fuse)
        return APART_EXCLUDED;
    if (node->op->traits & OP_ANCHOR)
        return w->anchor && (w->anchor->op->traits & OP_ANCHOR)
                   ? APART_ANCHOR
                   : APART_OPERAND;
    if (node->group)
        return APART_TAKEN;
    if (node_is_alias(scratch, node))
        return APART_VIEW;
    if (node_is_program(node))
        return APART_PROGRAM;
    if (node->bodies.count)
        return APART_CONTROL;
    if (!kind_is_fusible(node))
        return APART_KIND;
    const TensorType *y = &node->outputs.data[0]->type;
    if (kind_is_elementwise(node)) {
        Apart cost = afford(w, node);
        if (cost != APART_NONE)
            return cost;
        return shapes_equal(y, &w->shape) ||
                       (w->wide.rank >= 0 && shapes_equal(y, &w->wide))
                   ? APART_NONE
                   : APART_SHAPE;
    }
    /* A second pass over the same rows: variance after mean. */
    if (node->op->traits & OP_REDUCTION)
        return w->wide.rank >= 0 && kind_is_row_reduction(scratch, node) &&
                       shapes_equal(&node->inputs.data[0]->type, &w->wide)
                   ? APART_NONE
                   : APART_REDUCTION;
    if (!(node->op->traits & OP_INJECTIVE))
        return APART_KIND;
    if (w->anchor || (node->op->traits & OP_RESHAPE))
        return APART_MOVED;
    return kind_is_move(scratch, node) ? afford(w, node) : APART_REPEATED;
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
static void grow(Growth *w)
{
    int good = w->nodes.count, all;
    Node *next;

    count_open(w, &next, w->pass->position);
    while (next && !has_inner_output(w)) {
        Apart why = w->nodes.count - good >= MAX_LOOKAHEAD ||
                            w->nodes.count >= MAX_GROUP
                        ? APART_SIZE
                        : judge(w, next);
        if (why != APART_NONE) {
            keep_out(w, next, why);
            break;
        }
        if (!kind_is_elementwise(next) && w->wide.rank < 0)
            w->shape = next->outputs.data[0]->type;
        take(w, next);
        if (count_open(w, &next, w->pass->position) == 1)
            good = w->nodes.count;
    }
    all = w->nodes.count;
    w->nodes.count = w->shapes.count = good;
    w->shape = w->shapes.data[good - 1];
    for (int i = good; i < all; i++)
        keep_out(w, w->nodes.data[i], APART_READERS);
}

/* Elementwise chains may run into a reduction that reads each element
 * once: the values then need no memory of their own. */
static void grow_into_reduction(Growth *w)
{
    const Tensor *t = w->nodes.data[w->nodes.count - 1]->outputs.data[0];
    Node *user = tensor_only_user(t);

    if (w->anchor || !user || t->is_output || t->users.count != 1 ||
        user->group || user->inputs.data[0] != t ||
        !kind_is_row_reduction(w->pass->scratch, user))
        return;
    for (int i = 0; i < w->nodes.count; i++)
        if (!(w->nodes.data[i]->op->traits & OP_ELEMENTWISE))
            return;
    w->wide = w->shape;
    w->shape = user->outputs.data[0]->type;
    w->anchor = user;
    take(w, user);
    grow(w);
}

/* The tensor is only a step to its single user. */
static bool is_private(const Tensor *t, const Node *user)
{
    return t && t->producer && !t->is_output && t->users.count == 1 &&
           t->users.data[0] == user && !t->producer->group;
}

/* Rows that are longer do not stay in cache while they are used. */
static const int64_t most_columns = 2048;

/* Attention ends in a product whose first operand are softmax rows of
 * another product: all of it becomes one kernel, by blocks of rows. Adds the
 * nodes before `last` to the empty group. */
static void take_attention(Growth *w, Node *last)
{
    enum { MOST_BETWEEN = 4 };
    Arena *scratch = w->pass->scratch;
    Node *chain[MOST_BETWEEN + 2];
    int n = 0;

    if (!kind_is_product(scratch, last) || last->inputs.count < 2)
        return;
    Tensor *t = last->inputs.data[0];
    int rows = t->type.rank - 1;
    if (!is_private(t, last) ||
        kind_rescaled_axis(scratch, t->producer) != rows ||
        t->type.dims[rows].value > most_columns)
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
        if (kind_is_product(scratch, next->producer))
            break;
        if (!kind_is_elementwise(next->producer))
            return;
    }
    while (n > 0)
        take(w, chain[--n]);
}

/* A weighted sum over what a softmax made of each row, as of the bins of a
 * distribution: each value is read once, right where it is computed. */
static void take_distribution(Growth *w, Node *last)
{
    Arena *scratch = w->pass->scratch;
    Tensor *t = node_input(last, 0);

    if (w->nodes.count > 0 || !t || !is_private(t, last) ||
        !kind_reads_once(scratch, last))
        return;
    int axis = kind_rescaled_axis(scratch, t->producer);
    if (axis >= 0 && t->type.dims[axis].value <= most_columns &&
        !node_is_alias(scratch, t->producer))
        take(w, t->producer);
}

/* Why a node is a group of its own, whatever its neighbours; a view costs
 * nothing alone, and as the head of a group it would be computed. */
static Apart reason_alone(FusePass *p, const Node *node)
{
    if (node->no_fuse)
        return APART_EXCLUDED;
    if (node_is_alias(p->scratch, node))
        return APART_VIEW;
    if (node_is_program(node))
        return APART_PROGRAM;
    if (node->bodies.count)
        return APART_CONTROL;
    if (!kind_is_fusible(node))
        return APART_KIND;
    return node->op->traits & OP_RESHAPE ? APART_MOVED : APART_NONE;
}

static void close_group(Growth *w)
{
    Graph *g = w->pass->g;
    Group *group = ARENA_NEW(g->arena, Group);

    group->anchor = w->anchor;
    for (int i = 0; i < w->nodes.count; i++) {
        vec_push(g->arena, &group->nodes, w->nodes.data[i]);
        w->nodes.data[i]->group = group;
    }
    keep_others_out(w);
}

static void start_group(FusePass *p, Node *node)
{
    Growth w = {.wide = {.rank = -1}, .pass = p};
    Apart alone = reason_alone(p, node);

    if (alone == APART_NONE) {
        w.shape = node->outputs.data[0]->type;
        take_attention(&w, node);
        take_distribution(&w, node);
    }
    take(&w, node);
    if (node->op->traits & (OP_ANCHOR | OP_REDUCTION))
        w.anchor = node;
    if (alone == APART_NONE) {
        p->cost[node->id] = kind_cost(p->scratch, node, operand_cost, &w);
        if (kind_is_row_reduction(p->scratch, node))
            w.wide = node->inputs.data[0]->type;
        grow(&w);
        grow_into_reduction(&w);
    } else {
        for (int i = 0; i < node->outputs.count; i++) {
            const Tensor *t = node->outputs.data[i];
            for (int k = 0; t && k < t->users.count; k++)
                keep_apart(t, t->users.data[k], alone);
        }
    }
    close_group(&w);
}

/* ---- absorbing ------------------------------------------------------- */

static bool is_light(FusePass *p, const Group *group)
{
    for (int i = 0; i < group->nodes.count; i++) {
        const Node *node = group->nodes.data[i];
        if (reason_alone(p, node) != APART_NONE ||
            (!kind_is_elementwise(node) && !kind_is_move(p->scratch, node)))
            return false;
    }
    return group->anchor == NULL;
}

/* The value can be computed where `user` reads it. */
static bool can_compute_in(FusePass *p, const Tensor *t, const Node *user)
{
    const Group *into = user->group;
    const TensorType *y =
        &into->nodes.data[into->nodes.count - 1]->outputs.data[0]->type;

    if (kind_is_elementwise(user))
        return !into->anchor || ((into->anchor->op->traits & OP_ANCHOR) &&
                                 shapes_equal(&t->type, y));
    return !into->anchor && kind_is_move(p->scratch, user);
}

/* Puts the nodes of `from` into `to`, in list order. */
static void absorb(FusePass *p, Group *from, Group *to)
{
    for (int i = 0; i < from->nodes.count; i++) {
        Node *node = from->nodes.data[i];
        int at = to->nodes.count;
        vec_push(p->g->arena, &to->nodes, node);
        for (; at > 0 &&
               p->position[to->nodes.data[at - 1]->id] > p->position[node->id];
             at--)
            to->nodes.data[at] = to->nodes.data[at - 1];
        to->nodes.data[at] = node;
        node->group = to;
    }
    from->nodes.count = 0;
}

static void try_to_absorb(FusePass *p, Group *group)
{
    const Node *last = group->nodes.data[group->nodes.count - 1];
    const Tensor *t = last->outputs.data[0];

    if (!t || t->is_output || t->users.count == 0 || !is_light(p, group))
        return;
    Group *into = t->users.data[0]->group;
    const Cost *cost = &p->cost[last->id];
    const Node *end = into->nodes.data[into->nodes.count - 1];
    bool is_fit =
        reason_alone(p, end) == APART_NONE &&
        into->nodes.count + group->nodes.count <= MAX_GROUP &&
        cost->operations * t->users.count + p->cost[end->id].operations <=
            max_operations &&
        (!cost->is_costly || t->users.count == 1);
    for (int i = 0; i < t->users.count && is_fit; i++) {
        const Node *user = t->users.data[i];
        is_fit =
            user->group == into && can_compute_in(p, t, user) &&
            (!cost->is_costly ||
             type_most(&user->outputs.data[0]->type) <= type_most(&t->type));
    }
    if (!is_fit)
        return;
    p->cost[end->id].operations += cost->operations * t->users.count;
    p->cost[end->id].is_costly |= cost->is_costly;
    absorb(p, group, into);
}

/* ---- the pass -------------------------------------------------------- */

static void fuse_nothing(Graph *g)
{
    graph_group_alone(g);
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        for (int k = 0; k < node->inputs.count; k++)
            if (node->inputs.data[k] && node->inputs.data[k]->producer)
                node->apart[k] = APART_LEVEL;
    }
}

void pass_fuse(PassContext *c)
{
    Graph *g = c->graph;

    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        node->group = NULL;
        node->apart = ARENA_ARRAY(g->arena, Apart, node->inputs.count + 1);
    }
    if (c->opt_level == 0) {
        fuse_nothing(g);
        return;
    }
    FusePass p = {.g = g, .scratch = arena_new()};
    p.position = ARENA_ARRAY(p.scratch, int, g->next_id + 1);
    p.cost = ARENA_ARRAY(p.scratch, Cost, g->next_id + 1);
    for (int i = 0; i < g->nodes.count; i++)
        p.position[g->nodes.data[i]->id] = i;
    /* Anchors choose first: a sum of two convolutions becomes the epilogue
     * of the later one, whose operands are all there by then. */
    for (int i = g->nodes.count - 1; i >= 0; i--) {
        Node *node = g->nodes.data[i];
        if (!node->group && (node->op->traits & OP_ANCHOR))
            start_group(&p, node);
    }
    for (int i = 0; i < g->nodes.count; i++)
        if (!g->nodes.data[i]->group)
            start_group(&p, g->nodes.data[i]);
    for (int i = g->nodes.count - 1; i >= 0; i--) {
        Group *group = g->nodes.data[i]->group;
        if (group->nodes.data[group->nodes.count - 1] == g->nodes.data[i])
            try_to_absorb(&p, group);
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
