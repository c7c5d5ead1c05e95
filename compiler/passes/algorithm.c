/* Algorithms that no schedule makes out of each other.
 *
 * Input: a typed graph with constants folded, scales in the weights and
 * products merged. Output: nodes whose operator has several algorithms
 * (OpAlgorithm) are rewritten to the one that costs least on the target, such
 * as a 3x3 convolution by Winograd's tiles. What that makes of constants is
 * computed here, once for all nodes that share them. Results differ by
 * rounding, hence level 2. */
#include "passes/algorithm.h"

#include <math.h>
#include <string.h>

#include "passes/util.h"

/* Cycles: products near the peak, what transforms read and write besides, and
 * constants, which come from beyond the second level cache in a model. */
static double cost_of(const Target *target, const OpWork *work)
{
    const double peak = 0.9, cycles_per_vector = 6, bytes_per_cycle = 4.5;
    double lanes = target_lanes(target, 4);

    return work->products / (2 * lanes * peak) +
           work->elements / lanes * cycles_per_vector +
           work->constant_bytes / bytes_per_cycle;
}

const OpAlgorithm *algorithm_choose(const Target *target, const Node *node,
                                    const char *wanted)
{
    const OpAlgorithm *best = node->op->algorithms;
    int lanes = target ? target_lanes(target, 4) : 1;
    double least = INFINITY;
    OpWork work;
    bool is_auto = !wanted || !strcmp(wanted, "auto");

    for (const OpAlgorithm *a = node->op->algorithms; a && a->name; a++) {
        if (!a->work(node, lanes, &work))
            continue;
        if (!is_auto && !strcmp(a->name, wanted))
            return a;
        double cost = is_auto && target ? cost_of(target, &work) : INFINITY;
        if (cost < least) {
            least = cost;
            best = a;
        }
    }
    return best;
}

bool algorithm_check(Diag *diag, const OpTable *ops, const char *wanted)
{
    Str known = {0};
    bool found = !strcmp(wanted, "auto");

    str_add(&known, "auto");
    for (; ops; ops = ops->next)
        for (int i = 0; ops->ops[i]; i++)
            for (const OpAlgorithm *a = ops->ops[i]->algorithms; a && a->name;
                 a++) {
                found |= !strcmp(a->name, wanted);
                str_addf(&known, ", %s", a->name);
            }
    if (!found)
        diag_error(diag, "--algorithm %s: there is no such; there are: %s",
                   wanted, str_text(&known));
    str_free(&known);
    return found;
}

/* A node that was added before `at` and computes the same as `node`. */
static Node *find_same(const Graph *g, const Node *node, int first_id)
{
    for (int i = 0; g->nodes.data[i] != node; i++) {
        Node *other = g->nodes.data[i];
        if (other->id >= first_id && other->op == node->op &&
            other->inputs.data[0] == node->inputs.data[0] &&
            attrs_equal(&other->attrs, &node->attrs))
            return other;
    }
    return NULL;
}

/* Nodes of constants that the rewrites added. */
static void fold_new(PassContext *c, int first_id)
{
    Graph *g = c->graph;

    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (node->id < first_id || !node_is_constant(node) ||
            node->inputs.count != 1)
            continue;
        Node *same = find_same(g, node, first_id);
        if (same)
            graph_replace(g, node->outputs.data[0], same->outputs.data[0]);
    }
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (node->id >= first_id && node_is_constant(node) &&
            node->outputs.data[0]->users.count)
            node_fold(c, node);
    }
    graph_sweep(g);
}

void pass_algorithm(PassContext *c)
{
    Graph *g = c->graph;
    int first_id = g->next_id, nodes = g->nodes.count;
    Vec(Node *) all = {0};
    Arena *scratch = arena_new();

    for (int i = 0; i < nodes && c->evaluate; i++)
        vec_push(scratch, &all, g->nodes.data[i]);
    for (int i = 0; i < all.count; i++) {
        const OpAlgorithm *a =
            algorithm_choose(c->target, all.data[i], c->algorithm);
        if (!a || !a->rewrite)
            continue;
        log_debug("%s: %s", all.data[i]->name, a->name);
        a->rewrite(g, all.data[i]);
    }
    arena_free(scratch);
    if (g->next_id > first_id)
        fold_new(c, first_id);
}
