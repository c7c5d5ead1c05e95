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
