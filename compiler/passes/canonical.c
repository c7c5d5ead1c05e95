/* The form in which every level computes a node, and the reference, too.
 *
 * Input: a typed graph. Output: nodes whose operator has a `canonical` rule
 * are rewritten, where it applies. Unlike decomposition this is no matter of
 * optimization: results may differ from those of the nodes as written by a
 * rounding, and no level may differ from another. */
#include "passes/util.h"

bool graph_has_canonical(const Graph *g)
{
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.data[i]->op->canonical)
            return true;
    return false;
}

void pass_canonical(PassContext *c)
{
    Graph *g = c->graph;
    bool changed = false;

    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (!node->op->canonical || !node->op->canonical(g, node))
            continue;
        changed = true;
        /* New nodes came before it, and it went. */
        i--;
    }
    if (changed)
        graph_sweep(g);
}
