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

#include "base/hash.h"
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

static const char *shape_text(Arena *arena, const TensorType *type)
{
    const char *text = "";

    for (int i = 0; i < type->rank; i++)
        text = arena_printf(arena, "%s%s%lld", text, i ? "x" : "",
                            (long long)type->dims[i].value);
    return text;
}

static uint64_t key_of(const Node *node)
{
    Str text = {0};

    str_addf(&text, "%s", op_name(node->op));
    attrs_print(&text, &node->attrs);
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *t = node->inputs.data[i];
        str_add(&text, t ? "\n" : "\n_");
        if (t)
            type_print(&text, &t->type);
    }
    uint64_t key = hash_text(str_text(&text));
    str_free(&text);
    return key;
}

static AlgorithmNode describe(const PassContext *c, const Node *node)
{
    Arena *arena = c->graph->arena;
    const Tensor *y = node->outputs.data[0];
    AlgorithmNode row = {.key = key_of(node),
                         .type = dtype_name(y->type.dtype),
                         .in = shape_text(arena, &node->inputs.data[0]->type),
                         .source_count = node->sources.count};
    int lanes = c->target ? target_lanes(c->target, 4) : 1;
    OpWork work;
    char *op = arena_strdup(arena, op_name(node->op));

    for (char *at = op; *at; at++)
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    row.kernel = arena_printf(arena, "%s_%s", op, shape_text(arena, &y->type));
    /* The node itself goes when it is rewritten. */
    row.sources = arena_copy(arena, node->sources.data,
                             (size_t)node->sources.count * sizeof(char *));
    for (const OpAlgorithm *a = node->op->algorithms; a->name; a++)
        if (row.name_count < MAX_ALGORITHMS && a->work(node, lanes, &work))
            row.names[row.name_count++] = a->name;
    return row;
}

/* The log's name for the node, where the options leave it open. A name that
 * is none of the node's is a fault of that line. */
static const char *named(PassContext *c, const AlgorithmNode *row)
{
    const char *where, *name;

    if (c->algorithm && strcmp(c->algorithm, "auto"))
        return c->algorithm;
    name = c->choices->find(c->choices->user, row->key, &where);
    const char *list = "";
    for (int i = 0; name && i < row->name_count; i++) {
        if (!strcmp(row->names[i], name))
            return name;
        list = arena_printf(c->graph->arena, "%s %s", list, row->names[i]);
    }
    if (name)
        diag_error(c->graph->diag,
                   "%s: %s has no algorithm \"%s\", there are:%s; correct or "
                   "remove the line",
                   where, row->kernel, name, list);
    return c->algorithm;
}

/* What the node is computed by; NULL: there is nothing to choose. */
static const OpAlgorithm *choose(PassContext *c, const Node *node)
{
    const char *wanted = c->algorithm;
    AlgorithmNode row = {0};

    if (!node->op->algorithms)
        return NULL;
    if (c->choices) {
        row = describe(c, node);
        wanted = row.name_count > 1 ? named(c, &row) : wanted;
    }
    const OpAlgorithm *a = algorithm_choose(c->target, node, wanted);
    row.taken = a->name;
    if (row.name_count > 1)
        vec_push(c->graph->arena, &c->choices->nodes, row);
    return a;
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
        const OpAlgorithm *a = choose(c, all.data[i]);
        if (!a || !a->rewrite)
            continue;
        log_debug("%s: %s", all.data[i]->name, a->name);
        a->rewrite(g, all.data[i]);
    }
    arena_free(scratch);
    if (g->next_id > first_id)
        fold_new(c, first_id);
}
