/* Dead code elimination.
 *
 * Input: any sorted graph. Output: the graph without nodes whose results
 * reach no graph output, and without constants nobody uses. Graph inputs
 * stay, used or not: they are the model's interface. Nodes that are impure
 * stay.
 *
 * One backward mark and one rebuild of the lists, so linear in the size of
 * the graph; removing nodes one by one would be quadratic. */
#include "passes/util.h"

/* Ids are unique in the graph and dense enough to index an array. */
static bool *mark_live(Graph *g, Arena *arena)
{
    bool *live = ARENA_ARRAY(arena, bool, g->next_id + 1);
    Vec(Node *) work = {0};

#define NEED(tensor)                                                          \
    do {                                                                      \
        Node *p = (tensor)->producer;                                         \
        if (p && !live[p->id]) {                                              \
            live[p->id] = true;                                               \
            vec_push(arena, &work, p);                                        \
        }                                                                     \
    } while (0)

    for (int i = 0; i < g->outputs.count; i++)
        NEED(g->outputs.data[i]);
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (!node_is_pure(node) && !live[node->id]) {
            live[node->id] = true;
            vec_push(arena, &work, node);
        }
    }
    while (work.count > 0) {
        Node *node = work.data[--work.count];
        for (int i = 0; i < node->inputs.count; i++)
            if (node->inputs.data[i])
                NEED(node->inputs.data[i]);
    }
#undef NEED
    return live;
}

void graph_sweep(Graph *g)
{
    Arena *scratch = arena_new();
    bool *live = mark_live(g, scratch);
    int kept = 0;

    for (int i = 0; i < g->tensors.count; i++)
        g->tensors.data[i]->users.count = 0;
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (!live[node->id])
            continue;
        g->nodes.data[kept++] = node;
        for (int k = 0; k < node->inputs.count; k++)
            if (node->inputs.data[k])
                vec_push(g->arena, &node->inputs.data[k]->users, node);
    }
    g->nodes.count = kept;
    kept = 0;
    for (int i = 0; i < g->tensors.count; i++) {
        Tensor *t = g->tensors.data[i];
        bool keep = t->is_input || t->is_output ||
                    (t->producer ? live[t->producer->id] : t->users.count > 0);
        if (keep)
            g->tensors.data[kept++] = t;
    }
    g->tensors.count = kept;
    arena_free(scratch);
}

void pass_dce(PassContext *c)
{
    graph_sweep(c->graph);
}
