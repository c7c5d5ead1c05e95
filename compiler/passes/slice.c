/* Nodes that cut a tensor into parts, each part by a node of its own.
 *
 * Input: a typed graph. Output: where a node has several results and each is
 * a part of its operand along one axis, every result in use comes from a
 * slice. A single part is what later passes know: it may lie in the operand's
 * storage, or be computed where it is read. Every bit is kept. */
#include "ops/make.h"
#include "passes/util.h"

/* The only axis along which `part` is smaller than `whole`; -1: none, -2:
 * several. */
static int cut_axis(const TensorType *whole, const TensorType *part)
{
    int axis = -1;

    for (int i = 0; i < whole->rank; i++)
        if (!extent_equal(whole->dims[i], part->dims[i]))
            axis = axis == -1 ? i : -2;
    return axis;
}

static bool is_cut(Arena *scratch, const Node *node)
{
    const Tensor *x = node_input(node, 0);
    int64_t start[MAX_RANK];

    if (node->outputs.count < 2 || !node_is_pure(node) || !x || x->value)
        return false;
    for (int i = 0; i < node->outputs.count; i++) {
        const Tensor *y = node->outputs.data[i];
        if (!y)
            continue;
        int axis = cut_axis(&x->type, &y->type);
        if (axis == -2 || !node_is_part(scratch, node, i, start))
            return false;
        /* A slice of an axis that a run chooses takes what there is, where
         * the node says how much there must be. */
        if (axis >= 0 && (!extent_is_const(x->type.dims[axis]) ||
                          !extent_is_const(y->type.dims[axis])))
            return false;
    }
    return true;
}

void pass_slice(PassContext *c)
{
    Graph *g = c->graph;
    Arena *scratch = arena_new();
    bool changed = false;

    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (!is_cut(scratch, node))
            continue;
        /* The new nodes go before this one and move it back in the list. */
        for (int k = 0; k < node->outputs.count; k++) {
            Tensor *x = node->inputs.data[0], *y = node->outputs.data[k];
            int64_t start[MAX_RANK];
            if (!y || (!y->is_output && y->users.count == 0))
                continue;
            node_is_part(scratch, node, k, start);
            int axis = cut_axis(&x->type, &y->type);
            axis = axis < 0 ? 0 : axis;
            Tensor *made = op_make_slice(g, node->name, x, axis, start[axis],
                                         y->type.dims[axis].value);
            graph_add_source(g, made->producer, node);
            graph_move_before(g, made->producer, node);
            graph_replace(g, y, made);
            i++;
        }
        changed = true;
    }
    arena_free(scratch);
    if (changed)
        graph_sweep(g);
}
