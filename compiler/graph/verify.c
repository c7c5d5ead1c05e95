/* Checks the invariants that every pass must keep; a violation is our own
 * fault, so it die()s after printing the graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

typedef struct Check {
    const Graph *g;
    const Tensor **tensors; /* by id */
    const Node **nodes;     /* by id, those seen so far */
    int *uses;              /* by tensor id */
} Check;

/* What die() shows first: the graph as it is, broken or not. */
static void print_hook(void *context)
{
    Str text = {0};
    graph_print(&text, context, false);
    fputs(str_text(&text), stderr);
    str_free(&text);
}

/* Compared by pointer: a stray copy with a known id is not the tensor. */
static bool has_tensor(const Check *c, const Tensor *tensor)
{
    return tensor->id >= 0 && tensor->id < c->g->next_id &&
           c->tensors[tensor->id] == tensor;
}

/* A tensor may lie in another only if that leaves room for others: elements
 * of the same type, and storage of the same size by both layouts. */
static void check_within(const Tensor *tensor)
{
    const Tensor *whole = tensor->within;
    int64_t dims[2][MAX_RANK];

    if (!whole) {
        if (layout_is_part(&tensor->layout))
            die("the layout of tensor %s is that of a part, of nothing",
                tensor->name);
        return;
    }
    if (tensor->is_input || tensor->is_output || tensor->value ||
        whole->value || tensor->type.dtype != whole->type.dtype)
        die("tensor %s cannot lie in %s", tensor->name, whole->name);
    for (int i = 0; i < tensor->type.rank; i++)
        dims[0][i] = tensor->type.dims[i].value;
    for (int i = 0; i < whole->type.rank; i++)
        dims[1][i] = whole->type.dims[i].value;
    if (layout_size(&tensor->layout, tensor->type.rank, dims[0]) !=
        layout_size(&whole->layout, whole->type.rank, dims[1]))
        die("tensor %s lies in %s, but not by its layout", tensor->name,
            whole->name);
}

static void check_tensor(Check *c, const Tensor *tensor)
{
    if (tensor->id < 0 || tensor->id >= c->g->next_id ||
        c->tensors[tensor->id])
        die("tensor %s has the id %d, which is taken or out of range",
            tensor->name, tensor->id);
    c->tensors[tensor->id] = tensor;
    if (graph_find_tensor(c->g, tensor->name) != tensor)
        die("the name %s does not lead to its tensor", tensor->name);
    int origins = (tensor->producer != NULL) + tensor->is_input +
                  (tensor->value != NULL);
    if (origins != 1)
        die("tensor %s must be one of input, constant, result of a node",
            tensor->name);
    if (tensor->value) {
        TensorType type = type_of_array(tensor->value);
        if (!type_equal(&type, &tensor->type))
            die("constant %s does not have the type of its value",
                tensor->name);
    }
    if (tensor->layout.count &&
        (tensor->type.rank < 0 || tensor->layout.count < tensor->type.rank))
        die("tensor %s has a layout that does not fit its rank", tensor->name);
    check_within(tensor);
}

/* A list of the graph and the flag of its tensors must agree. */
static void check_listed(Check *c, Tensor *const *list, int count,
                         bool outputs)
{
    int flagged = 0;
    for (int i = 0; i < count; i++) {
        const Tensor *tensor = list[i];
        if (!has_tensor(c, tensor) ||
            !(outputs ? tensor->is_output : tensor->is_input))
            die("%s %s of the graph is not marked as one",
                outputs ? "output" : "input", tensor->name);
    }
    for (int i = 0; i < c->g->tensors.count; i++) {
        const Tensor *tensor = c->g->tensors.data[i];
        flagged += outputs ? tensor->is_output : tensor->is_input;
    }
    if (flagged != count)
        die("%d tensors are marked as %s, %d are listed", flagged,
            outputs ? "outputs" : "inputs", count);
}

/* Nodes are marked as they are passed, so an input whose producer is not yet
 * marked comes too late. */
static void check_node(Check *c, const Node *node)
{
    if (node->id < 0 || node->id >= c->g->next_id || c->nodes[node->id])
        die("node %s is listed twice", node->name);
    if (graph_find_node(c->g, node->name) != node)
        die("the name %s does not lead to its node", node->name);
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *input = node->inputs.data[i];
        if (!input)
            continue;
        if (!has_tensor(c, input))
            die("node %s reads tensor %s, which is not in the graph",
                node->name, input->name);
        if (input->producer &&
            c->nodes[input->producer->id] != input->producer)
            die("node %s reads tensor %s before it is computed", node->name,
                input->name);
        c->uses[input->id]++;
    }
    for (int i = 0; i < node->outputs.count; i++) {
        const Tensor *output = node->outputs.data[i];
        if (output && (!has_tensor(c, output) || output->producer != node))
            die("output %s of node %s has another producer", output->name,
                node->name);
    }
    c->nodes[node->id] = node;
}

/* Counting the uses twice, once from each side, shows lists that disagree:
 * every entry must really be a use, and the totals must match. */
static void check_users(Check *c)
{
    for (int i = 0; i < c->g->tensors.count; i++) {
        const Tensor *tensor = c->g->tensors.data[i];
        if (tensor->users.count != c->uses[tensor->id])
            die("tensor %s lists %d uses, nodes make %d", tensor->name,
                tensor->users.count, c->uses[tensor->id]);
        for (int k = 0; k < tensor->users.count; k++) {
            const Node *user = tensor->users.data[k];
            bool found = false;
            for (int n = 0; n < user->inputs.count && !found; n++)
                found = user->inputs.data[n] == tensor;
            if (!found || c->nodes[user->id] != user)
                die("tensor %s lists the user %s, which does not read it",
                    tensor->name, user->name);
        }
        if (tensor->producer &&
            c->nodes[tensor->producer->id] != tensor->producer)
            die("tensor %s has a producer outside the graph", tensor->name);
    }
}

/* The rules applied again must give the types that are there. op_infer
 * writes into the tensors, so these are put back. */
static void check_types(const Graph *g, Node *node)
{
    TensorType former[32];
    int count = node->outputs.count < 32 ? node->outputs.count : 32;
    for (int i = 0; i < count; i++)
        if (node->outputs.data[i])
            former[i] = node->outputs.data[i]->type;
    bool ok = op_infer((Graph *)g, node);
    if (!ok)
        die("node %s is not valid: %s", node->name,
            g->diag->errors.count
                ? g->diag->errors.data[g->diag->errors.count - 1]
                : "no reason given");
    for (int i = 0; i < count; i++) {
        Tensor *output = node->outputs.data[i];
        if (!output)
            continue;
        if (!type_equal(&former[i], &output->type)) {
            Str is = {0}, should = {0};
            type_print(&is, &former[i]);
            type_print(&should, &output->type);
            die("tensor %s has the type %s, its node %s gives %s",
                output->name, str_text(&is), node->name, str_text(&should));
        }
        output->type = former[i];
    }
}

static void check_groups(const Graph *g)
{
    for (int i = 0; i < g->groups.count; i++) {
        const Group *group = g->groups.data[i];
        bool has_anchor = group->anchor == NULL;
        for (int k = 0; k < group->nodes.count; k++) {
            const Node *node = group->nodes.data[k];
            if (node->group != group)
                die("group %d lists the node %s of another group", group->id,
                    node->name);
            has_anchor |= group->anchor == node;
        }
        if (!has_anchor || !group->nodes.count)
            die("group %d is empty or its anchor is elsewhere", group->id);
    }
}

void graph_verify(const Graph *g)
{
    size_t ids = (size_t)g->next_id + 1;
    Check c = {g, calloc(ids, sizeof *c.tensors), calloc(ids, sizeof *c.nodes),
               calloc(ids, sizeof *c.uses)};
    if (!c.tensors || !c.nodes || !c.uses)
        die("out of memory: checking a graph");
    DieHook former = die_set_hook((DieHook){print_hook, (void *)g});
    for (int i = 0; i < g->tensors.count; i++)
        check_tensor(&c, g->tensors.data[i]);
    check_listed(&c, g->inputs.data, g->inputs.count, false);
    check_listed(&c, g->outputs.data, g->outputs.count, true);
    for (int i = 0; i < g->nodes.count; i++)
        check_node(&c, g->nodes.data[i]);
    check_users(&c);
    for (int i = 0; i < g->nodes.count; i++)
        check_types(g, g->nodes.data[i]);
    check_groups(g);
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.data[i]->bodies.count; k++)
            graph_verify(g->nodes.data[i]->bodies.data[k]);
    die_set_hook(former);
    free(c.tensors);
    free(c.nodes);
    free(c.uses);
}
