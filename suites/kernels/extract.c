#include <ctype.h>
#include <string.h>

#include "suites/kernels/kernels.h"

typedef struct Extract {
    Graph *out;
    const Graph *source;
    bool *wanted;        /* by Node.id: belongs to the group */
    Tensor **made;       /* by Tensor.id: its counterpart in `out` */
    int inputs, tensors; /* names given so far */
} Extract;

/* Marks the source nodes that the group stands for. */
static bool mark_nodes(Extract *x, const Group *group)
{
    bool any = false;
    for (int i = 0; i < group->nodes.count; i++) {
        const Node *node = group->nodes.data[i];
        for (int s = 0; s < node->sources.count; s++) {
            const Node *own =
                graph_find_node(x->source, node->sources.data[s]);
            if (!own)
                return false;
            x->wanted[own->id] = true;
            any = true;
        }
    }
    return any;
}

static Tensor *import_tensor(Extract *x, Tensor *t)
{
    if (!t || x->made[t->id])
        return t ? x->made[t->id] : NULL;
    Arena *arena = x->out->arena;
    const char *name = arena_printf(arena, "x%d", x->inputs++);
    x->made[t->id] = t->value ? graph_add_constant(x->out, name, t->value)
                              : graph_add_input(x->out, name, t->type);
    return x->made[t->id];
}

static bool copy_node(Extract *x, const Node *node, int number)
{
    Arena *arena = x->out->arena;
    Tensor **inputs = ARENA_ARRAY(arena, Tensor *, node->inputs.count + 1);
    for (int i = 0; i < node->inputs.count; i++)
        inputs[i] = import_tensor(x, node->inputs.data[i]);
    const char *domain = op_domain(node->op);
    const char *op =
        *domain ? arena_printf(arena, "%s::%s", domain, op_name(node->op))
                : op_name(node->op);
    Node *copy =
        graph_add_node(x->out, op, arena_printf(arena, "n%d", number), inputs,
                       node->inputs.count, node->outputs.count);
    if (!copy)
        return false;
    copy->attrs = node->attrs;
    for (int i = 0; i < node->outputs.count; i++) {
        Tensor *t = node->outputs.data[i];
        if (!t) {
            graph_drop_output(x->out, copy, i);
            continue;
        }
        graph_name_tensor(x->out, copy->outputs.data[i],
                          arena_printf(arena, "t%d", x->tensors++));
        x->made[t->id] = copy->outputs.data[i];
    }
    return op_infer(x->out, copy);
}

/* What somebody outside of the group reads, or the model gives out. */
static bool leaves(const Extract *x, const Tensor *t)
{
    bool used_outside = t->is_output;
    for (int i = 0; i < t->users.count; i++)
        used_outside = used_outside || !x->wanted[t->users.data[i]->id];
    return used_outside;
}

static void mark_outputs(Extract *x, const Node *node)
{
    for (int i = 0; i < node->outputs.count; i++) {
        const Tensor *t = node->outputs.data[i];
        if (t && leaves(x, t))
            graph_mark_output(x->out, x->made[t->id]);
    }
}

/* A value that the model knows beforehand is no work of a kernel. */
static bool has_input(const Graph *g)
{
    return g->inputs.count > 0 && g->outputs.count > 0;
}

bool kernel_extract(Graph *out, const Graph *source, const Group *group)
{
    Extract x = {.out = out, .source = source};
    x.wanted = ARENA_ARRAY(out->arena, bool, source->next_id + 1);
    x.made = ARENA_ARRAY(out->arena, Tensor *, source->next_id + 1);
    if (!mark_nodes(&x, group))
        return false;
    int number = 0;
    for (int i = 0; i < source->nodes.count; i++) {
        const Node *node = source->nodes.data[i];
        if (x.wanted[node->id] && !copy_node(&x, node, number++))
            return false;
    }
    for (int i = 0; i < source->nodes.count; i++)
        if (x.wanted[source->nodes.data[i]->id])
            mark_outputs(&x, source->nodes.data[i]);
    return has_input(out);
}

/* ---- names ------------------------------------------------------------ */

enum { MOST_OPS = 4 };

static void add_ops(Str *name, const Group *group)
{
    for (int i = 0; i < group->nodes.count && i < MOST_OPS; i++) {
        const char *op = op_name(group->nodes.data[i]->op);
        for (const char *c = op; *c; c++)
            str_addf(name, "%c", tolower((unsigned char)*c));
        str_add(name, "_");
    }
}

/* The printed graph with the hashes of weights left out: two layers of one
 * shape are one kernel. */
static uint64_t structure_hash(const Graph *g)
{
    Str text = {0};
    graph_print(&text, g, false);
    char *to = text.data;
    for (const char *from = text.data; *from; from++) {
        *to++ = *from;
        if (*from == '#')
            from += strspn(from + 1, "0123456789abcdef");
    }
    *to = 0;
    uint64_t hash = hash_text(text.data);
    str_free(&text);
    return hash;
}

const char *kernel_name(Arena *arena, const Graph *extracted,
                        const Group *group)
{
    Str name = {0};
    add_ops(&name, group);
    const Tensor *out = extracted->outputs.data[extracted->outputs.count - 1];
    for (int i = 0; i < out->type.rank; i++)
        str_addf(&name, "%s%lld", i ? "x" : "",
                 (long long)out->type.dims[i].value);
    str_addf(&name, "_%08x", (unsigned)(structure_hash(extracted) >> 32));
    const char *result = arena_strdup(arena, str_text(&name));
    str_free(&name);
    return result;
}
