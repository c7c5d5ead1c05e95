/* Types and shapes.
 *
 * Input: a sorted graph with typed inputs and constants. Output: every
 * tensor has a type. All faults are reported, each once: a node behind a
 * fault is passed over.
 *
 * Small integer results whose operands are all known are evaluated on the
 * way and become constants, since the type rules of Reshape, Slice and the
 * like need their values: models compute shapes with ordinary nodes. Floats
 * become constants only where a rule asks for them (the scales of a Resize,
 * the limit of a Range). Control flow that is known then is gone afterwards;
 * bodies of what is left are typed before their node. */
#include "ops/bounded.h"
#include "ops/control.h"
#include "passes/util.h"

enum { MAX_SHAPE_ELEMENTS = 1024, MAX_CHAIN = 256 };

static bool has_unknown_input(const Node *node)
{
    for (int i = 0; i < node->inputs.count; i++) {
        Tensor *t = node->inputs.data[i];
        if (t && (t->type.dtype == DT_INVALID || t->type.rank < 0))
            return true;
    }
    return false;
}

static bool has_small_results(const Node *node)
{
    for (int i = 0; i < node->outputs.count; i++) {
        const Tensor *t = node->outputs.data[i];
        int64_t count = t ? type_count(&t->type) : 0;
        if (count < 0 || count > MAX_SHAPE_ELEMENTS)
            return false;
    }
    return true;
}

static bool is_shape_arithmetic(const Node *node)
{
    if (!node_is_pure(node) || !node_is_constant(node) ||
        !has_small_results(node))
        return false;
    for (int i = 0; i < node->outputs.count; i++) {
        const Tensor *t = node->outputs.data[i];
        if (t && (dtype_is_float(t->type.dtype) || t->type.rank > 1))
            return false;
    }
    return true;
}

static bool has_large_results(const Node *node)
{
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i] &&
            type_count(&node->outputs.data[i]->type) > MAX_SHAPE_ELEMENTS)
            return true;
    return false;
}

/* Makes the tensor a constant, and before it what it comes from; `folded` when
 * some of that was done, if not all. */
static bool fold_chain(PassContext *c, const Tensor *t, int depth,
                       bool *folded)
{
    Node *node = t->producer;
    bool inner = false, ok = true;

    if (t->value)
        return true;
    if (!node || depth > MAX_CHAIN || !node_is_pure(node) ||
        has_large_results(node))
        return false;
    for (int i = 0; ok && i < node->inputs.count; i++)
        ok = !node->inputs.data[i] ||
             fold_chain(c, node->inputs.data[i], depth + 1, &inner);
    *folded |= inner;
    /* A result that is as large as the data say has a size now. */
    if (!ok || (inner && !op_infer(c->graph, node)) ||
        !has_small_results(node) || !node_fold(c, node))
        return false;
    *folded = true;
    return true;
}

/* Folds what the node's type rule asked for; false when there is nothing. */
static bool fold_wanted(PassContext *c, const Node *node, bool *folded)
{
    for (int i = 0; c->evaluate && i < node->inputs.count; i++) {
        Tensor *t = node->inputs.data[i];
        if (!t || !t->is_wanted || t->value || !fold_chain(c, t, 0, folded))
            continue;
        t->is_wanted = false;
        return true;
    }
    return false;
}

/* The type rule, with the values that it asks for as far as they can be
 * had; then its complaints were premature. `folded` where there were some:
 * other nodes that read them may have been typed without. */
static bool infer_node(PassContext *c, Node *node, bool *folded)
{
    Graph *g = c->graph;
    int errors = g->diag->errors.count;

    while (!op_infer(g, node)) {
        if (!fold_wanted(c, node, folded) && !ops_bound_operands(g, node))
            return false;
        g->diag->errors.count = errors;
    }
    return true;
}

static void want_operand(Node *node, int index)
{
    if (node_input(node, index))
        node->inputs.data[index]->is_wanted = true;
}

/* Inputs of a body whose values were asked for within it are asked for
 * outside. What changes from one iteration to the next is known where the
 * iterations are. */
static void want_operands(Node *node, const Graph *body, const Tensor *t,
                          bool *seen)
{
    if (seen[t->id] || t->value)
        return;
    seen[t->id] = true;
    for (int i = 0; t->is_input && i < body->inputs.count; i++) {
        int k = control_operand(node, i);
        if (body->inputs.data[i] != t)
            continue;
        for (int n = 0; k < 0 && n < 2; n++)
            want_operand(node, n);
        want_operand(node, k < 0 ? i : k);
    }
    if (!t->producer || t->producer->op->traits & OP_TYPE_ONLY)
        return;
    for (int i = 0; i < t->producer->inputs.count; i++)
        if (t->producer->inputs.data[i])
            want_operands(node, body, t->producer->inputs.data[i], seen);
}

/* The bodies of control flow from the types of its operands. */
static bool infer_bodies(PassContext *c, Node *node)
{
    int errors = c->graph->diag->errors.count;

    control_bind(node);
    for (int i = 0; i < node->bodies.count; i++) {
        PassContext inner = *c;
        inner.graph = node->bodies.data[i];
        pass_infer(&inner);
        Arena *scratch = arena_new();
        bool *seen = ARENA_ARRAY(scratch, bool, inner.graph->next_id + 1);
        for (int k = 0; k < inner.graph->tensors.count; k++)
            if (inner.graph->tensors.data[k]->is_wanted)
                want_operands(node, inner.graph, inner.graph->tensors.data[k],
                              seen);
        arena_free(scratch);
    }
    return c->graph->diag->errors.count == errors;
}

/* A result that depends on named dimensions no more, such as the batch size
 * taken from a shape. */
static bool fold_symbols(Graph *g, Node *node)
{
    Tensor *t = node->outputs.data[0];
    const Array *value[MAX_OP_OUTPUTS] = {NULL};

    if (!t || !t->symbols || node->outputs.count > MAX_OP_OUTPUTS)
        return false;
    int64_t count = type_count(&t->type);
    for (int64_t i = 0; i < count; i++)
        if (!extent_is_const(t->symbols[i]))
            return false;
    Array *array = array_new(g->arena, t->type.dtype, t->type.rank, &count);
    for (int64_t i = 0; i < count; i++)
        array_set_int(array, i, t->symbols[i].value);
    value[0] = array;
    node_replace_by_constants(g, node, value);
    return true;
}

void pass_infer(PassContext *c)
{
    Graph *g = c->graph;
    bool changed = false, wanted = false;
    int errors = g->diag->errors.count;

    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (has_unknown_input(node))
            continue;
        if (node->bodies.count && control_expand(c, node, &wanted)) {
            i--; /* what took its place comes next */
            changed = true;
            continue;
        }
        if ((node->bodies.count && !infer_bodies(c, node)) ||
            !infer_node(c, node, &wanted))
            continue;
        /* The shape of a tensor, whatever its elements are; and strings,
         * which are gone from here on. */
        if (((node->op->traits & OP_TYPE_ONLY) || node_has_strings(node)) &&
            node->op->decompose && node->op->decompose(g, node)) {
            i--; /* the node is gone */
            changed = true;
            continue;
        }
        changed |= fold_symbols(g, node);
        if (!c->evaluate || !is_shape_arithmetic(node))
            continue;
        changed |= node_fold(c, node);
    }
    if (changed || wanted)
        graph_sweep(g);
    if (wanted && g->diag->errors.count == errors)
        pass_infer(c);
}
