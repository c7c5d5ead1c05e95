#include "harness/fusion.h"

#include <string.h>

/* One tensor between a group and another, as read by one node. */
typedef struct Edge {
    const Tensor *tensor;
    const Node *reader;
    Apart why;
} Edge;

typedef Vec(Edge) Edges;

/* The step that a group became, -1 for none: a view. */
static int step_of(const Program *program, const Group *group)
{
    for (int i = 0; program && i < program->steps.count; i++)
        if (program->steps.data[i].group == group)
            return i;
    return -1;
}

static const char *kernel_of(const Program *program, int step)
{
    int kernel = program->steps.data[step].kernel;
    return program->kernels.data[kernel].kernel->name;
}

/* Once a tensor, whoever of the group reads it. */
static void add_edge(Arena *arena, Edges *edges, Edge edge, bool by_reader)
{
    for (int i = 0; i < edges->count; i++) {
        const Edge *known = &edges->data[i];
        if (known->tensor == edge.tensor &&
            (!by_reader || known->reader->group == edge.reader->group))
            return;
    }
    vec_push(arena, edges, edge);
}

static Edges inputs_of(Arena *arena, const Group *group)
{
    Edges edges = {0};
    for (int i = 0; i < group->nodes.count; i++) {
        const Node *node = group->nodes.data[i];
        for (int k = 0; k < node->inputs.count; k++) {
            const Tensor *t = node->inputs.data[k];
            if (t && (!t->producer || t->producer->group != group))
                add_edge(
                    arena, &edges,
                    (Edge){t, node, node->apart ? node->apart[k] : APART_NONE},
                    false);
        }
    }
    return edges;
}

static Apart reason(const Tensor *t, const Node *reader)
{
    for (int i = 0; reader->apart && i < reader->inputs.count; i++)
        if (reader->inputs.data[i] == t)
            return reader->apart[i];
    return APART_NONE;
}

/* Who else reads the tensor. */
static Edges readers_of(Arena *arena, const Group *group, const Tensor *t)
{
    Edges edges = {0};
    for (int i = 0; i < t->users.count; i++) {
        const Node *user = t->users.data[i];
        if (user->group != group)
            add_edge(arena, &edges, (Edge){t, user, reason(t, user)}, true);
    }
    return edges;
}

/* Results that leave the group. */
static bool leaves(const Group *group, const Tensor *t)
{
    bool outside = t->is_output;
    for (int i = 0; i < t->users.count; i++)
        outside = outside || t->users.data[i]->group != group;
    return outside;
}

/* Without the pass there is nothing to say. */
static const char *why_text(const Edge *edge)
{
    return edge->why == APART_NONE ? "the fusion pass did not run"
                                   : apart_text(edge->why);
}

/* ---- for people ------------------------------------------------------- */

static void print_tensor(Str *out, const char *role, const Tensor *t)
{
    str_addf(out, "  %-4s %s ", role, t->name);
    type_print(out, &t->type);
}

static void print_node(Str *out, const Group *group, const Node *node)
{
    str_addf(out, "  %-4s %-18s %s", node == group->anchor ? "*" : "",
             op_name(node->op), node->name);
    bool renamed = node->sources.count != 1 ||
                   strcmp(node->sources.data[0], node->name) != 0;
    for (int i = 0; renamed && i < node->sources.count; i++)
        str_addf(out, "%s%s", i ? ", " : "  from ", node->sources.data[i]);
    str_add(out, "\n");
}

static void print_input(Str *out, const Edge *edge)
{
    const Tensor *t = edge->tensor;
    if (t->value)
        return; /* weights have no neighbour */
    print_tensor(out, "in", t);
    if (t->producer)
        str_addf(out, "  from group %d: %s\n", t->producer->group->id,
                 why_text(edge));
    else
        str_add(out, "  input of the graph\n");
}

static void print_output(Str *out, Arena *arena, const Group *group,
                         const Tensor *t)
{
    if (!leaves(group, t))
        return;
    print_tensor(out, "out", t);
    str_add(out, t->is_output ? "  output of the graph\n" : "\n");
    Edges readers = readers_of(arena, group, t);
    for (int i = 0; i < readers.count; i++)
        str_addf(out, "         to group %d, %s: %s\n",
                 readers.data[i].reader->group->id,
                 readers.data[i].reader->name, why_text(&readers.data[i]));
}

void fusion_print(Str *out, const Graph *g, const Program *program)
{
    Arena *arena = arena_new();
    int kernels = 0;
    for (int i = 0; i < g->groups.count; i++) {
        const Group *group = g->groups.data[i];
        int step = step_of(program, group);
        kernels += step >= 0;
        str_addf(out, "group %d", group->id);
        if (step >= 0)
            str_addf(out, ", step %d: %s", step, kernel_of(program, step));
        else if (program)
            str_add(out, ": a view, no kernel");
        str_add(out, "\n");
        for (int k = 0; k < group->nodes.count; k++)
            print_node(out, group, group->nodes.data[k]);
        Edges inputs = inputs_of(arena, group);
        for (int k = 0; k < inputs.count; k++)
            print_input(out, &inputs.data[k]);
        for (int k = 0; k < group->nodes.count; k++)
            for (int o = 0; o < group->nodes.data[k]->outputs.count; o++)
                if (group->nodes.data[k]->outputs.data[o])
                    print_output(out, arena, group,
                                 group->nodes.data[k]->outputs.data[o]);
    }
    str_addf(out, "%d groups", g->groups.count);
    if (program)
        str_addf(out, ", %d kernels a run", kernels);
    str_add(out, ". * is the anchor of a group, which decides its schedule; "
                 "constants are\nnot listed. A neighbour says why it is not "
                 "in the group.\n");
    arena_free(arena);
}

/* ---- JSON ------------------------------------------------------------- */

static json_t *tensor_json(const Tensor *t)
{
    Str type = {0};
    type_print(&type, &t->type);
    json_t *row =
        json_pack("{s:s, s:s}", "name", t->name, "type", str_text(&type));
    str_free(&type);
    return row;
}

static json_t *node_json(const Node *node)
{
    json_t *sources = json_array();
    for (int i = 0; i < node->sources.count; i++)
        json_array_append_new(sources, json_string(node->sources.data[i]));
    return json_pack("{s:s, s:s, s:o}", "name", node->name, "operator",
                     op_name(node->op), "sources", sources);
}

static void set_reason(json_t *row, const Edge *edge)
{
    json_object_set_new(row, "reason",
                        edge->why == APART_NONE
                            ? json_null()
                            : json_string(apart_text(edge->why)));
}

static json_t *input_json(const Edge *edge)
{
    const Tensor *t = edge->tensor;
    json_t *row = tensor_json(t);
    const char *from = t->value      ? "constant"
                       : t->producer ? "group"
                                     : "graph input";
    json_object_set_new(row, "from", json_string(from));
    if (t->producer) {
        json_object_set_new(row, "group",
                            json_integer(t->producer->group->id));
        set_reason(row, edge);
    }
    return row;
}

static json_t *output_json(Arena *arena, const Group *group, const Tensor *t)
{
    json_t *row = tensor_json(t), *rows = json_array();
    Edges readers = readers_of(arena, group, t);
    for (int i = 0; i < readers.count; i++) {
        const Edge *edge = &readers.data[i];
        json_t *reader =
            json_pack("{s:i, s:s}", "group", edge->reader->group->id, "node",
                      edge->reader->name);
        set_reason(reader, edge);
        json_array_append_new(rows, reader);
    }
    json_object_set_new(row, "graph_output", json_boolean(t->is_output));
    json_object_set_new(row, "readers", rows);
    return row;
}

static json_t *group_json(Arena *arena, const Group *group,
                          const Program *program)
{
    json_t *nodes = json_array(), *in = json_array(), *out = json_array();
    Edges inputs = inputs_of(arena, group);
    for (int i = 0; i < inputs.count; i++)
        json_array_append_new(in, input_json(&inputs.data[i]));
    for (int i = 0; i < group->nodes.count; i++) {
        const Node *node = group->nodes.data[i];
        json_array_append_new(nodes, node_json(node));
        for (int k = 0; k < node->outputs.count; k++)
            if (node->outputs.data[k] && leaves(group, node->outputs.data[k]))
                json_array_append_new(
                    out, output_json(arena, group, node->outputs.data[k]));
    }
    json_t *row = json_pack("{s:i, s:o, s:o, s:o}", "id", group->id, "nodes",
                            nodes, "inputs", in, "outputs", out);
    json_object_set_new(row, "anchor",
                        group->anchor ? json_string(group->anchor->name)
                                      : json_null());
    int step = step_of(program, group);
    if (step >= 0) {
        json_object_set_new(row, "step", json_integer(step));
        json_object_set_new(row, "kernel",
                            json_string(kernel_of(program, step)));
    }
    return row;
}

json_t *fusion_json(const Graph *g, const Program *program)
{
    Arena *arena = arena_new();
    json_t *rows = json_array();
    for (int i = 0; i < g->groups.count; i++)
        json_array_append_new(rows,
                              group_json(arena, g->groups.data[i], program));
    arena_free(arena);
    return rows;
}
