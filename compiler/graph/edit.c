/* Edits of a graph: they keep producers, users, names and lists right. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

/* One entry only: a node that reads a tensor twice is listed twice. */
static void drop_user(Tensor *tensor, const Node *node)
{
    for (int i = 0; i < tensor->users.count; i++) {
        if (tensor->users.data[i] == node) {
            vec_remove(&tensor->users, i);
            return;
        }
    }
    die("node %s is not among the users of tensor %s", node->name,
        tensor->name);
}

/* Inputs beyond the list are added, those between are left out: passes give a
 * node its bias that way. */
void graph_set_input(Graph *g, Node *node, int index, Tensor *tensor)
{
    while (node->inputs.count <= index)
        vec_push(g->arena, &node->inputs, NULL);
    Tensor *former = node->inputs.data[index];
    if (former == tensor)
        return;
    if (former)
        drop_user(former, node);
    node->inputs.data[index] = tensor;
    if (tensor)
        vec_push(g->arena, &tensor->users, node);
}

/* Sources are a set: merging twice must not list a name twice. */
static void add_source(Arena *arena, Tensor *to, const char *source)
{
    for (int i = 0; i < to->sources.count; i++)
        if (strcmp(to->sources.data[i], source) == 0)
            return;
    vec_push(arena, &to->sources, source);
}

void graph_replace_uses(Graph *g, Tensor *from, Tensor *to)
{
    for (int i = 0; i < from->users.count; i++) {
        Node *user = from->users.data[i];
        /* One entry a use: each takes the first slot still holding it. */
        for (int k = 0; k < user->inputs.count; k++) {
            if (user->inputs.data[k] == from) {
                user->inputs.data[k] = to;
                vec_push(g->arena, &to->users, user);
                break;
            }
        }
    }
    from->users.count = 0;
}

/* The refused cases are those where the caller must keep a node that copies:
 * an output is delivered in a buffer of its own. */
bool graph_replace(Graph *g, Tensor *from, Tensor *to)
{
    if (from == to)
        return true;
    if (from->is_output) {
        if (to->is_input || to->value || to->is_output)
            return false;
        /* The names change places: both stay unique. */
        const char *name = from->name;
        from->name = to->name;
        to->name = name;
        map_set(&g->tensor_names, from->name, from);
        map_set(&g->tensor_names, to->name, to);
        for (int i = 0; i < g->outputs.count; i++)
            if (g->outputs.data[i] == from)
                g->outputs.data[i] = to;
        from->is_output = false;
        to->is_output = true;
    }
    graph_replace_uses(g, from, to);
    for (int i = 0; i < from->sources.count; i++)
        add_source(g->arena, to, from->sources.data[i]);
    return true;
}

/* Tensors are listed by rising id, which is never changed. */
static void unlist_tensor(Graph *g, const Tensor *tensor)
{
    int lo = 0, hi = g->tensors.count;
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (g->tensors.data[middle]->id < tensor->id)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == g->tensors.count || g->tensors.data[lo] != tensor)
        die("tensor %s is not in the list", tensor->name);
    vec_remove(&g->tensors, lo);
    map_set(&g->tensor_names, tensor->name, NULL);
}

void graph_drop_output(Graph *g, Node *node, int index)
{
    Tensor *tensor = node->outputs.data[index];
    if (!tensor)
        return;
    if (tensor->users.count || tensor->is_output)
        die("output %s of %s is dropped but used", tensor->name, node->name);
    unlist_tensor(g, tensor);
    node->outputs.data[index] = NULL;
}

/* Linear, as is the removal that follows it: passes that remove many nodes
 * rebuild the list instead. */
static int node_index(const Graph *g, const Node *node)
{
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.data[i] == node)
            return i;
    die("node %s is not in the graph", node->name);
}

void graph_remove_node(Graph *g, Node *node)
{
    for (int i = 0; i < node->outputs.count; i++)
        graph_drop_output(g, node, i);
    for (int i = 0; i < node->inputs.count; i++)
        graph_set_input(g, node, i, NULL);
    vec_remove(&g->nodes, node_index(g, node));
    map_set(&g->node_names, node->name, NULL);
}

void graph_move_before(Graph *g, Node *node, Node *before)
{
    if (node == before)
        return;
    vec_remove(&g->nodes, node_index(g, node));
    int at = node_index(g, before);
    vec_push(g->arena, &g->nodes, node);
    for (int i = g->nodes.count - 1; i > at; i--)
        g->nodes.data[i] = g->nodes.data[i - 1];
    g->nodes.data[at] = node;
}

/* A node that stands for several carries the names of all. */
void graph_add_source(Graph *g, Node *to, const Node *from)
{
    for (int i = 0; i < from->sources.count; i++) {
        bool known = false;
        for (int k = 0; k < to->sources.count && !known; k++)
            known = strcmp(to->sources.data[k], from->sources.data[i]) == 0;
        if (!known)
            vec_push(g->arena, &to->sources, from->sources.data[i]);
    }
}

/* A depth-first walk with its own stack; nodes that are in order already
 * stay where they are, which makes it stable. */
typedef struct Frame {
    Node *node;
    int next_input;
} Frame;

enum { UNSEEN, OPEN, DONE };

/* The stack holds the way from the root; the cycle is its part from the node
 * that was met again. */
static bool report_cycle(Graph *g, const Frame *stack, int depth,
                         const Node *back)
{
    Str names = {0};
    int first = 0, shown = 0;
    while (stack[first].node != back)
        first++;
    for (int i = first; i < depth && shown < 8; i++, shown++) {
        const Node *node = stack[i].node;
        const Tensor *out = node->outputs.count ? node->outputs.data[0] : NULL;
        str_addf(&names, "%s%s \"%s\" (output %s)", i > first ? ", " : "",
                 op_name(node->op), node->name, out ? out->name : "left out");
    }
    if (depth - first > shown)
        str_addf(&names, " and %d more", depth - first - shown);
    diag_error(g->diag, "nodes need each other's results: %s; break the cycle",
               str_text(&names));
    str_free(&names);
    return false;
}

bool graph_sort(Graph *g)
{
    int count = g->nodes.count, placed = 0, depth = 0;
    char *state = calloc((size_t)g->next_id + 1, 1);
    Frame *stack = calloc((size_t)count + 1, sizeof *stack);
    Node **order = calloc((size_t)count + 1, sizeof *order);
    if (!state || !stack || !order)
        die("out of memory: sorting %d nodes", count);
    bool ok = true;
    for (int i = 0; i < count && ok; i++) {
        Node *root = g->nodes.data[i];
        if (state[root->id] == DONE)
            continue;
        state[root->id] = OPEN;
        stack[depth++] = (Frame){root, 0};
        while (depth && ok) {
            Frame *top = &stack[depth - 1];
            if (top->next_input == top->node->inputs.count) {
                state[top->node->id] = DONE;
                order[placed++] = top->node;
                depth--;
                continue;
            }
            Tensor *input = top->node->inputs.data[top->next_input++];
            Node *producer = input ? input->producer : NULL;
            if (!producer || state[producer->id] == DONE)
                continue;
            if (state[producer->id] == OPEN) {
                ok = report_cycle(g, stack, depth, producer);
            } else {
                state[producer->id] = OPEN;
                stack[depth++] = (Frame){producer, 0};
            }
        }
    }
    if (ok)
        for (int i = 0; i < count; i++)
            g->nodes.data[i] = order[i];
    free(state);
    free(stack);
    free(order);
    return ok;
}
