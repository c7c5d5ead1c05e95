/* Control flow that is known when compiling: the branch that is taken, and
 * loops of few iterations, in place of their nodes. Part of `infer`, since
 * shapes follow from it: the number of an iteration is a constant then, and a
 * carried value may change its shape. */
#include "ops/control.h"
#include "passes/util.h"

/* Nodes that a loop may become. */
enum { MAX_UNROLLED_NODES = 512 };

/* Evaluates what a tensor is computed from, if that is all constant; `folded`
 * when some of that was done, if not all. */
static bool make_constant(PassContext *c, Tensor *t, int depth, bool *folded)
{
    enum { MAX_DEPTH = 64 };
    Node *node = t->producer;
    bool inner = false, ok = true;

    if (t->value || !node || !c->evaluate || depth > MAX_DEPTH ||
        !node_is_pure(node) || node->bodies.count || t->type.rank < 0)
        return t->value != NULL;
    for (int i = 0; ok && i < node->inputs.count; i++)
        ok = !node->inputs.data[i] ||
             make_constant(c, node->inputs.data[i], depth + 1, &inner);
    *folded |= inner;
    /* A result that is as large as the data say has a size now. */
    if (!ok || (inner && !op_infer(c->graph, node)) || !node_fold(c, node))
        return false;
    *folded = true;
    return true;
}

/* Operand `index` as a constant, or NULL. */
static const Array *known_operand(PassContext *c, Node *node, int index,
                                  bool *folded)
{
    enum { MAX_ELEMENTS = 1 };
    Tensor *t = node_input(node, index);

    if (t && !t->value && type_count(&t->type) == MAX_ELEMENTS)
        make_constant(c, t, 0, folded);
    t = node_input(node, index);
    return t ? t->value : NULL;
}

/* An input, a constant or an output already cannot be an output: it is
 * copied. */
static void replace_output(Graph *g, Node *node, Tensor *y, Tensor *by)
{
    if (graph_replace(g, y, by))
        return;
    Node *copy = graph_add_node(g, "Identity", NULL, &by, 1, 1);
    graph_move_before(g, copy, node);
    copy->outputs.data[0]->type = by->type;
    graph_replace(g, y, copy->outputs.data[0]);
}

/* A malformed body is left for the type rule to report. */
static bool fits(const Node *node, int which)
{
    const Graph *body = node->bodies.data[which];

    return body->inputs.count == node->inputs.count - 1 &&
           body->outputs.count == node->outputs.count;
}

static void expand_branch(Graph *g, Node *node, bool taken)
{
    const Graph *body = node->bodies.data[taken ? 0 : 1];
    Tensor **out = ARENA_ARRAY(g->arena, Tensor *, body->outputs.count + 1);

    graph_inline(g, node, body, node->inputs.data + 1, node->name, out);
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i])
            replace_output(g, node, node->outputs.data[i], out[i]);
    graph_remove_node(g, node);
}

/* The slices, one after the other along a new first axis. */
static Tensor *joined(Graph *g, Node *node, Tensor **slices, int64_t count)
{
    static const int64_t first = 0;
    const char *name = arena_printf(g->arena, "%s.join", node->name);
    Tensor *axes =
        graph_add_constant(g, NULL, array_ints(g->arena, &first, 1));
    Node *join = graph_add_node(g, "Concat", name, NULL, 0, 1);

    attrs_set_int(g->arena, &join->attrs, "axis", 0);
    for (int64_t i = 0; i < count; i++) {
        Tensor *operands[2] = {slices[i], axes};
        Node *row = graph_add_node(g, "Unsqueeze", name, operands, 2, 1);
        graph_move_before(g, row, node);
        graph_set_input(g, join, (int)i, row->outputs.data[0]);
    }
    graph_move_before(g, join, node);
    return join->outputs.data[0];
}

static void expand_loop(Graph *g, Node *node, int64_t trips)
{
    const Graph *body = node->bodies.data[0];
    int carried = loop_carried(node);
    int results = node->outputs.count - carried;
    Arena *a = g->arena;
    Tensor **in = ARENA_ARRAY(a, Tensor *, body->inputs.count + 1);
    Tensor **out = ARENA_ARRAY(a, Tensor *, body->outputs.count + 1);
    Tensor **slices = ARENA_ARRAY(a, Tensor *, trips * results + 1);

    for (int i = 2; i < body->inputs.count; i++)
        in[i] = node_input(node, i);
    for (int64_t t = 0; t < trips; t++) {
        Array *number = array_new(a, DT_I64, 0, NULL);
        array_set_int(number, 0, t);
        in[0] = graph_add_constant(g, NULL, number);
        in[1] = graph_add_constant(g, NULL, array_scalar(a, DT_BOOL, 1));
        graph_inline(g, node, body, in,
                     arena_printf(a, "%s.%lld", node->name, (long long)t),
                     out);
        for (int i = 0; i < carried; i++)
            in[2 + i] = out[1 + i];
        for (int i = 0; i < results; i++)
            slices[i * trips + t] = out[1 + carried + i];
    }
    for (int i = 0; i < node->outputs.count; i++) {
        Tensor *y = node->outputs.data[i];
        if (!y || (!y->is_output && !y->users.count))
            continue;
        replace_output(
            g, node, y,
            i < carried
                ? in[2 + i]
                : joined(g, node, slices + (i - carried) * trips, trips));
    }
    graph_remove_node(g, node);
}

bool control_expand(PassContext *c, Node *node, bool *folded)
{
    Graph *g = c->graph;

    if (node->op->traits & OP_BRANCH) {
        const Array *cond = known_operand(c, node, 0, folded);
        if (!cond || node->bodies.count != 2 || !fits(node, 0) ||
            !fits(node, 1))
            return false;
        expand_branch(g, node, array_get_int(cond, 0) != 0);
        return true;
    }
    if (!(node->op->traits & OP_LOOP) || node->bodies.count != 1)
        return false;
    known_operand(c, node, 0, folded);
    known_operand(c, node, 1, folded);
    const Graph *body = node->bodies.data[0];
    int64_t trips = loop_trips(node);
    int carried = loop_carried(node), results = node->outputs.count - carried;
    /* No slice says of what type there are none. */
    if (trips < 0 || (trips > 0 && !loop_is_counted(node)) ||
        (results > 0 && (trips == 0 || trips > MAX_OP_INPUTS)) ||
        trips * (body->nodes.count + 1) > MAX_UNROLLED_NODES ||
        body->inputs.count != node->inputs.count ||
        body->outputs.count != node->outputs.count + 1)
        return false;
    expand_loop(g, node, trips);
    return true;
}
