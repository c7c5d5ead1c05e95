/* Types and shapes.
 *
 * Input: a sorted graph with typed inputs and constants. Output: every
 * tensor has a type. All faults are reported, each once: a node behind a
 * fault is passed over.
 *
 * Small results whose operands are all known are evaluated on the way and
 * become constants, since the type rules of Reshape, Slice and the like need
 * their values: models compute shapes with ordinary nodes, and by way of
 * floats (the scales of a Resize, the limit of a Range). */
#include "passes/util.h"

enum { MAX_SHAPE_ELEMENTS = 1024, MAX_SHAPE_FLOATS = 2 * MAX_RANK };

static bool has_unknown_input(const Node *node)
{
    for (int i = 0; i < node->inputs.count; i++) {
        Tensor *t = node->inputs.data[i];
        if (t && (t->type.dtype == DT_INVALID || t->type.rank < 0))
            return true;
    }
    return false;
}

static bool is_shape_arithmetic(const Node *node)
{
    if (!node_is_pure(node) || !node_is_constant(node))
        return false;
    for (int i = 0; i < node->outputs.count; i++) {
        const Tensor *t = node->outputs.data[i];
        if (!t)
            continue;
        int64_t count = type_count(&t->type);
        int64_t most = dtype_is_float(t->type.dtype) ? MAX_SHAPE_FLOATS
                                                     : MAX_SHAPE_ELEMENTS;
        if (t->type.rank > 1 || count < 0 || count > most)
            return false;
    }
    return true;
}

void pass_infer(PassContext *c)
{
    Graph *g = c->graph;
    bool changed = false;

    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (has_unknown_input(node) || !op_infer(g, node))
            continue;
        /* The shape of a tensor, whatever its elements are. */
        if ((node->op->traits & OP_TYPE_ONLY) && node->op->decompose &&
            node->op->decompose(g, node)) {
            i--; /* the node is gone */
            changed = true;
            continue;
        }
        if (!c->evaluate || !is_shape_arithmetic(node))
            continue;
        changed |= node_fold(c, node);
    }
    if (changed)
        graph_sweep(g);
}
