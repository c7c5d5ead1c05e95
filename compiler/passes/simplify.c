/* Removal of work that changes nothing.
 *
 * Input: a typed graph. Output: no identities (dropout among them), no
 * casts, slices, pads, transposes or reshapes that give back their
 * operand, no transpose of a transpose and no reshape of a reshape. Every
 * bit of every result is kept.
 *
 * What a node does is read off its definition, so that this holds for
 * operators of any table. Operands come before their users in the list and
 * are already simple when a node is looked at: one walk is enough. */
#include "ops/make.h"
#include "passes/util.h"

/* Puts `made` where `node` is and lets the users of the latter use it. */
static bool take_over(Graph *g, Node *node, Tensor *made)
{
    Tensor *out = node_only_output(node);

    graph_add_source(g, made->producer, node);
    graph_move_before(g, made->producer, node);
    if (out->layout.count)
        made->layout = out->layout;
    return graph_replace(g, out, made);
}

/* Permutation of a permutation: one of both, or nothing at all. */
static bool compose_permutations(Graph *g, Arena *scratch, Node *node)
{
    int outer[MAX_RANK], inner[MAX_RANK], both[MAX_RANK];
    Tensor *mid = node_input(node, 0), *out = node_only_output(node);
    bool identity = true;

    if (!mid->producer || (mid->producer->op->traits & OP_RESHAPE) ||
        !(mid->producer->op->traits & OP_INJECTIVE) || mid->is_output ||
        !node_permutation(scratch, node, outer) ||
        !node_permutation(scratch, mid->producer, inner))
        return false;
    Tensor *x = node_input(mid->producer, 0);
    for (int i = 0; i < mid->type.rank; i++) {
        both[i] = inner[outer[i]];
        identity &= both[i] == i;
    }
    if (identity)
        return graph_replace(g, out, x);
    Node *old = mid->producer;
    Tensor *made = op_make_transpose(g, node->name, x, both);
    graph_add_source(g, made->producer, old);
    return take_over(g, node, made);
}

static bool compose_reshapes(Graph *g, Node *node)
{
    Tensor *mid = node_input(node, 0), *out = node_only_output(node);

    if (!mid->producer || !(mid->producer->op->traits & OP_RESHAPE) ||
        mid->is_output || !type_is_static(&out->type))
        return false;
    Node *old = mid->producer;
    Tensor *x = node_input(old, 0);
    if (types_equal(&x->type, &out->type))
        return graph_replace(g, out, x);
    Tensor *made = op_make_reshape(g, node->name, x, &out->type);
    graph_add_source(g, made->producer, old);
    return take_over(g, node, made);
}

static bool simplify_node(Graph *g, Arena *scratch, Node *node)
{
    unsigned traits = node->op->traits;
    Tensor *out = node_only_output(node), *in = node_input(node, 0);

    if (!out || !in || !node_is_pure(node))
        return false;
    if (!(traits & (OP_IDENTITY | OP_INJECTIVE | OP_RESHAPE | OP_ELEMENTWISE)))
        return false;
    /* Cheap test first: most nodes have other operands than one. */
    if (types_equal(&in->type, &out->type) && node_is_copy(scratch, node))
        return graph_replace(g, out, in);
    if (traits & OP_RESHAPE)
        return compose_reshapes(g, node);
    if (traits & OP_INJECTIVE)
        return compose_permutations(g, scratch, node);
    return false;
}

void pass_simplify(PassContext *c)
{
    Graph *g = c->graph;
    Arena *scratch = arena_new();
    int removed = 0;

    /* New nodes go before the one they replace, which shifts the list by
     * one; the replaced one is then seen again, without users. */
    for (int i = 0; i < g->nodes.count; i++)
        removed += simplify_node(g, scratch, g->nodes.data[i]);
    arena_free(scratch);
    if (removed > 0)
        graph_sweep(g);
}
