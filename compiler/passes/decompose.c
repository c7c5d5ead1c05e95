/* Decomposition of composite operators.
 *
 * Input: a typed graph. Output: nodes whose operator has a `decompose`
 * rule are rewritten into simpler ones, so that later passes see plain
 * arithmetic (inference-mode batch normalization becomes a product and a
 * sum, which fold into a convolution). The rules may reassociate, hence
 * level 2; below that only operators that no kernel can be made of are
 * rewritten. Rules may add nodes that decompose again; those are visited
 * too, as the list grows. */
#include "passes/util.h"

void pass_decompose(PassContext *c)
{
    Graph *g = c->graph;
    bool changed = false;

    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (!node->op->decompose)
            continue;
        if (c->opt_level < 2 && (node->op->define || node->op->program))
            continue;
        if (!node->op->decompose(g, node))
            continue;
        changed = true;
        /* The rule may have removed the node or put new ones before it. */
        if (i < g->nodes.count && g->nodes.data[i] != node)
            i--;
    }
    if (!changed)
        return;
    graph_sort(g);
    for (int i = 0; i < g->nodes.count; i++)
        op_infer(g, g->nodes.data[i]);
    graph_sweep(g);
}
