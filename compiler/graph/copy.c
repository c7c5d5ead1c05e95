/* A second graph of the same content: one for the reference to evaluate,
 * one for the passes to change. */
#include "graph/graph.h"

#include <string.h>

Graph *graph_copy(Arena *arena, const Graph *from)
{
    Graph *to = ARENA_NEW(arena, Graph);
    Tensor **tensor = ARENA_ARRAY(arena, Tensor *, from->next_id + 1);
    Node **node = ARENA_ARRAY(arena, Node *, from->next_id + 1);
    *to = *from;
    to->arena = arena;
    map_init(&to->tensor_names, arena);
    map_init(&to->node_names, arena);
    memset(&to->nodes, 0, sizeof to->nodes);
    memset(&to->tensors, 0, sizeof to->tensors);
    memset(&to->inputs, 0, sizeof to->inputs);
    memset(&to->outputs, 0, sizeof to->outputs);
    memset(&to->groups, 0, sizeof to->groups);
    memset(&to->symbols, 0, sizeof to->symbols);
    map_init(&to->tensor_names, arena);
    map_init(&to->node_names, arena);
    for (int i = 0; i < from->nodes.count; i++) {
        const Node *n = from->nodes.data[i];
        node[n->id] = ARENA_NEW(arena, Node);
        vec_push(arena, &to->nodes, node[n->id]);
        map_set(&to->node_names, n->name, node[n->id]);
    }
    for (int i = 0; i < from->tensors.count; i++) {
        const Tensor *t = from->tensors.data[i];
        Tensor *copy = tensor[t->id] = ARENA_NEW(arena, Tensor);
        *copy = *t;
        copy->producer = t->producer ? node[t->producer->id] : NULL;
        memset(&copy->users, 0, sizeof copy->users);
        memset(&copy->sources, 0, sizeof copy->sources);
        for (int k = 0; k < t->users.count; k++)
            vec_push(arena, &copy->users, node[t->users.data[k]->id]);
        for (int k = 0; k < t->sources.count; k++)
            vec_push(arena, &copy->sources, t->sources.data[k]);
        vec_push(arena, &to->tensors, copy);
        map_set(&to->tensor_names, copy->name, copy);
    }
    for (int i = 0; i < to->tensors.count; i++) {
        Tensor *copy = to->tensors.data[i];
        copy->within = copy->within ? tensor[copy->within->id] : NULL;
    }
    for (int i = 0; i < from->nodes.count; i++) {
        const Node *n = from->nodes.data[i];
        Node *copy = node[n->id];
        *copy = *n;
        copy->group = NULL;
        copy->apart = NULL;
        map_set(&to->node_names, copy->name, copy);
        memset(&copy->attrs, 0, sizeof copy->attrs);
        memset(&copy->inputs, 0, sizeof copy->inputs);
        memset(&copy->outputs, 0, sizeof copy->outputs);
        memset(&copy->sources, 0, sizeof copy->sources);
        memset(&copy->bodies, 0, sizeof copy->bodies);
        for (int k = 0; k < n->bodies.count; k++)
            vec_push(arena, &copy->bodies,
                     graph_copy(arena, n->bodies.data[k]));
        for (int k = 0; k < n->attrs.list.count; k++)
            vec_push(arena, &copy->attrs.list, n->attrs.list.data[k]);
        for (int k = 0; k < n->inputs.count; k++) {
            Tensor *t = n->inputs.data[k];
            vec_push(arena, &copy->inputs, t ? tensor[t->id] : NULL);
        }
        for (int k = 0; k < n->outputs.count; k++) {
            Tensor *t = n->outputs.data[k];
            vec_push(arena, &copy->outputs, t ? tensor[t->id] : NULL);
        }
        for (int k = 0; k < n->sources.count; k++)
            vec_push(arena, &copy->sources, n->sources.data[k]);
    }
    for (int i = 0; i < from->inputs.count; i++)
        vec_push(arena, &to->inputs, tensor[from->inputs.data[i]->id]);
    for (int i = 0; i < from->outputs.count; i++)
        vec_push(arena, &to->outputs, tensor[from->outputs.data[i]->id]);
    return to;
}

/* The copy of a body's tensor, NULL for one left out. */
static Tensor *inlined(Graph *g, Tensor **copies, const Tensor *t)
{
    if (t && !copies[t->id] && t->value)
        copies[t->id] = graph_add_constant(g, t->name, t->value);
    return t ? copies[t->id] : NULL;
}

void graph_inline(Graph *g, Node *node, const Graph *body,
                  Tensor *const *inputs, const char *prefix, Tensor **outputs)
{
    Arena *scratch = arena_new();
    Tensor **copies = ARENA_ARRAY(scratch, Tensor *, body->next_id + 1);

    for (int i = 0; i < body->inputs.count; i++)
        copies[body->inputs.data[i]->id] = inputs[i];
    for (int i = 0; i < body->nodes.count; i++) {
        const Node *from = body->nodes.data[i];
        Tensor **in = ARENA_ARRAY(scratch, Tensor *, from->inputs.count + 1);
        for (int k = 0; k < from->inputs.count; k++)
            in[k] = inlined(g, copies, from->inputs.data[k]);
        const char *domain = op_domain(from->op);
        Node *to =
            graph_add_node(g,
                           *domain ? arena_printf(scratch, "%s::%s", domain,
                                                  op_name(from->op))
                                   : op_name(from->op),
                           arena_printf(g->arena, "%s.%s", prefix, from->name),
                           in, from->inputs.count, from->outputs.count);
        graph_move_before(g, to, node);
        graph_add_source(g, to, from);
        to->no_fuse = from->no_fuse || node->no_fuse;
        for (int k = 0; k < from->attrs.list.count; k++)
            attrs_set(g->arena, &to->attrs, from->attrs.list.data[k]);
        for (int k = 0; k < from->bodies.count; k++)
            vec_push(g->arena, &to->bodies,
                     graph_copy(g->arena, from->bodies.data[k]));
        for (int k = 0; k < from->outputs.count; k++) {
            const Tensor *y = from->outputs.data[k];
            if (!y) {
                graph_drop_output(g, to, k);
                continue;
            }
            graph_name_tensor(
                g, to->outputs.data[k],
                arena_printf(g->arena, "%s.%s", prefix, y->name));
            copies[y->id] = to->outputs.data[k];
        }
    }
    for (int i = 0; i < body->outputs.count; i++)
        outputs[i] = inlined(g, copies, body->outputs.data[i]);
    arena_free(scratch);
}
