/* From a group of nodes to one definition.
 *
 * The definitions of the nodes are written one after another into the same
 * structure: a tensor between two of them becomes a temporary, which the
 * schedule then inlines or gives a scope. Buffers are named by operator and
 * position, not after tensors, so that equal groups give equal text, and
 * with it the same kernel. */
#include "program/define.h"

#include <ctype.h>
#include <string.h>

#include "ops/loop_program.h"
#include "tensor/ptrmap.h"

typedef struct Composer {
    Arena *arena;
    const Group *group;
    GroupDefinition *out;
    PtrMap buffers; /* tensor to its buffer */
    DefineContext context;
    int inputs;
} Composer;

static const char *lower_name(Arena *arena, const char *name)
{
    char *text = arena_strdup(arena, name);

    for (char *p = text; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p)
                                        : '_';
    return text;
}

static bool is_in_group(const Group *group, const Node *node)
{
    for (int i = 0; i < group->nodes.count; i++)
        if (group->nodes.data[i] == node)
            return true;
    return false;
}

static bool leaves_group(const Group *group, const Tensor *t)
{
    if (t->is_output)
        return true;
    for (int i = 0; i < t->users.count; i++)
        if (!is_in_group(group, t->users.data[i]))
            return true;
    /* A result nobody uses still has to be written somewhere. */
    return t->users.count == 0;
}

static Buffer *buffer_for(Composer *c, Tensor *t, const char *name,
                          BufferRole role)
{
    int64_t dims[MAX_RANK];
    Buffer *b = (Buffer *)ptrmap_get(&c->buffers, t);

    if (b)
        return b;
    for (int i = 0; i < t->type.rank; i++)
        dims[i] = t->type.dims[i].value;
    b = definition_add_buffer(c->out->def, name, role, t->type.dtype,
                              t->type.rank, dims);
    for (int i = 0; i < t->type.rank; i++)
        if (!extent_is_const(t->type.dims[i]))
            b->limit[i] = define_extent(&c->context, t->type.dims[i]);
    b->is_constant = role == BUF_INPUT && t->value;
    ptrmap_set(&c->buffers, t, b);
    if (role != BUF_TEMP)
        vec_push(c->arena, &c->out->bindings, ((Binding){b, t}));
    return b;
}

static bool has_bounded_types(Diag *diag, const Node *node)
{
    for (int i = 0; i < node->inputs.count + node->outputs.count; i++) {
        const Tensor *t = i < node->inputs.count
                              ? node->inputs.data[i]
                              : node->outputs.data[i - node->inputs.count];
        if (!t)
            continue;
        if (!type_is_bounded(&t->type))
            return diag_error(diag,
                              "%s \"%s\": tensor \"%s\" has an extent without "
                              "an upper bound; give its dimension a value "
                              "with --dim NAME=VALUE",
                              node->op->name, node->name, t->name);
    }
    return true;
}

static bool add_node(Composer *c, Diag *diag, const Node *node)
{
    DefineContext ctx = c->context;
    const int max_in = (int)(sizeof ctx.in / sizeof *ctx.in);
    const int max_out = (int)(sizeof ctx.out / sizeof *ctx.out);

    if (!node->op->define)
        return diag_error(diag,
                          "%s \"%s\": no kernel can be made of this operator "
                          "here; its operands are not constant, or passes "
                          "that rewrite it are disabled",
                          node->op->name, node->name);
    if (node->inputs.count > max_in || node->outputs.count > max_out)
        return diag_error(diag,
                          "%s \"%s\": %d inputs and %d outputs; at most %d "
                          "and %d are supported",
                          node->op->name, node->name, node->inputs.count,
                          node->outputs.count, max_in, max_out);
    ctx.node = c->context.node = node;
    if (!has_bounded_types(diag, node))
        return false;
    for (int i = 0; i < node->inputs.count; i++) {
        Tensor *t = node->inputs.data[i];
        if (t)
            ctx.in[i] =
                buffer_for(c, t,
                           arena_printf(c->arena, "%s%d",
                                        t->value ? "w" : "in", c->inputs++),
                           BUF_INPUT);
    }
    for (int i = 0; i < node->outputs.count; i++) {
        Tensor *t = node->outputs.data[i];
        if (t)
            ctx.out[i] =
                buffer_for(c, t, lower_name(c->arena, node->op->name),
                           leaves_group(c->group, t) ? BUF_OUTPUT : BUF_TEMP);
    }
    double before = node->op->flops ? definition_flops(ctx.def) : 0;
    node->op->define(&ctx);
    if (node->op->flops)
        c->out->more_flops +=
            node->op->flops(node) - (definition_flops(ctx.def) - before);
    return true;
}

static void mark_reads(PtrMap *seen, PtrMap *used, const Expr *x)
{
    if (ptrmap_get(seen, x))
        return;
    ptrmap_set(seen, x, x);
    if (x->kind == EX_READ)
        ptrmap_set(used, x->buffer, x->buffer);
    for (int i = 0; i < x->count; i++)
        mark_reads(seen, used, x->arg[i]);
    if (x->kind == EX_READ && x->outside)
        mark_reads(seen, used, x->outside);
}

static void mark_limits(PtrMap *seen, PtrMap *used, const Definition *def)
{
    for (int i = 0; i < def->buffers.count; i++)
        for (int d = 0; d < def->buffers.data[i]->rank; d++)
            if (def->buffers.data[i]->limit[d])
                mark_reads(seen, used, def->buffers.data[i]->limit[d]);
}

/* A sum over a whole axis whose end is not known would take in what lies
 * behind it: a rule that does so must not say that it takes such axes. */
static void check_reads(const Stage *s, const Expr *x)
{
    for (int r = 0; r < s->reduce_count; r++)
        for (int i = 0; x->kind == EX_READ && i < x->count; i++)
            if (x->arg[i]->kind == EX_VAR &&
                x->arg[i]->var == s->reduce[r].var && x->buffer->limit[i] &&
                !s->reduce[r].limit && !x->outside)
                die("stage %s reduces over %s, which has no limit, in %s",
                    s->name, s->reduce[r].var->name, x->buffer->name);
    for (int i = 0; i < x->count; i++)
        check_reads(s, x->arg[i]);
}

static void check_limits(const Definition *def)
{
    for (int i = 0; i < def->stages.count; i++)
        for (int k = 0; k < def->stages.data[i]->value_count; k++)
            check_reads(def->stages.data[i], def->stages.data[i]->value[k]);
}

/* Operands that a rule took as numbers (shapes, pads) are no parameters. */
static void drop_unused(Composer *c)
{
    Definition *def = c->out->def;
    PtrMap seen = {0}, used = {0};
    int kept = 0;

    for (int s = 0; s < def->stages.count; s++)
        for (int v = 0; v < def->stages.data[s]->value_count; v++)
            mark_reads(&seen, &used, def->stages.data[s]->value[v]);
    mark_limits(&seen, &used, def);
    for (int i = 0; i < def->buffers.count; i++) {
        Buffer *b = def->buffers.data[i];
        if (b->role != BUF_INPUT || ptrmap_get(&used, b))
            def->buffers.data[kept++] = b;
    }
    def->buffers.count = kept;
    kept = 0;
    for (int i = 0; i < c->out->bindings.count; i++) {
        Binding b = c->out->bindings.data[i];
        if (b.buffer->role != BUF_INPUT || ptrmap_get(&used, b.buffer))
            c->out->bindings.data[kept++] = b;
    }
    c->out->bindings.count = kept;
    ptrmap_free(&seen);
    ptrmap_free(&used);
}

/* Stable and fit for an identifier: operators and result shape. */
static const char *group_name(Arena *arena, const Group *group)
{
    enum { MAX_NAMED = 4 };
    const Node *last = group->nodes.data[group->nodes.count - 1];
    const char *name = "";

    for (int i = 0; i < group->nodes.count && i < MAX_NAMED; i++)
        name = arena_printf(arena, "%s%s%s", name, i ? "_" : "",
                            lower_name(arena, group->nodes.data[i]->op->name));
    if (group->nodes.count > MAX_NAMED)
        name =
            arena_printf(arena, "%s_%d", name, group->nodes.count - MAX_NAMED);
    for (int i = 0; i < last->outputs.count; i++) {
        const Tensor *t = last->outputs.data[i];
        if (!t)
            continue;
        for (int k = 0; k < t->type.rank; k++)
            name = arena_printf(arena, "%s%s%lld", name, k ? "x" : "_",
                                (long long)t->type.dims[k].value);
        break;
    }
    return name;
}

static bool is_static(const Group *group)
{
    for (int i = 0; i < group->nodes.count; i++)
        if (!node_is_static(group->nodes.data[i]))
            return false;
    return true;
}

bool define_group(Arena *arena, Diag *diag, const Graph *g, const Group *group,
                  GroupDefinition *out)
{
    Composer c = {.arena = arena, .group = group, .out = out};
    bool ok = true;

    *out = (GroupDefinition){0};
    out->def = definition_new(arena, group_name(arena, group));
    c.context = (DefineContext){.def = out->def, .graph = g};
    if (!is_static(group))
        c.context.extents = define_extents_buffer(out->def, g);
    for (int i = 0; i < group->nodes.count; i++) {
        ok &= add_node(&c, diag, group->nodes.data[i]);
        if (!out->hint)
            out->hint = group->nodes.data[i]->op->schedule;
    }
    ptrmap_free(&c.buffers);
    if (ok)
        drop_unused(&c);
    if (ok && c.context.extents)
        check_limits(out->def);
    return ok;
}

static void mark_loads(PtrMap *seen, PtrMap *used, const Expr *x)
{
    if (ptrmap_get(seen, x))
        return;
    ptrmap_set(seen, x, x);
    if (x->kind == EX_LOAD)
        ptrmap_set(used, x->buffer, x->buffer);
    for (int i = 0; i < x->count; i++)
        mark_loads(seen, used, x->arg[i]);
}

static void mark_loops(PtrMap *seen, PtrMap *used, const Stmt *s)
{
    for (int i = 0; i < s->list.count; i++)
        mark_loops(seen, used, s->list.data[i]);
    if (s->offset)
        mark_loads(seen, used, s->offset);
    if (s->value)
        mark_loads(seen, used, s->value);
    if (s->cond)
        mark_loads(seen, used, s->cond);
    if (s->limit)
        mark_loads(seen, used, s->limit);
    if (s->body)
        mark_loops(seen, used, s->body);
}

Kernel *define_program(Arena *arena, Diag *diag, const Graph *g,
                       const Group *group, GroupDefinition *out)
{
    const Node *node = group->nodes.data[0];
    PtrMap seen = {0}, used = {0};
    int kept = 0, at = 0;

    *out = (GroupDefinition){0};
    if (!has_bounded_types(diag, node))
        return NULL;
    Kernel *k = op_program(arena, node, g);
    if (!k) {
        diag_error(diag, "%s \"%s\": too many operands", node->op->name,
                   node->name);
        return NULL;
    }
    for (int i = 0; i < node->inputs.count + node->outputs.count; i++) {
        Tensor *t = i < node->inputs.count
                        ? node->inputs.data[i]
                        : node->outputs.data[i - node->inputs.count];
        if (t)
            vec_push(arena, &out->bindings,
                     ((Binding){k->params.data[at++], t}));
    }
    mark_loops(&seen, &used, k->body);
    for (int i = 0; i < k->params.count; i++)
        if (k->params.data[i]->role != BUF_INPUT ||
            ptrmap_get(&used, k->params.data[i]))
            k->params.data[kept++] = k->params.data[i];
    k->params.count = kept;
    ptrmap_free(&seen);
    ptrmap_free(&used);
    k->hash = kernel_hash(k);
    k->name = arena_printf(arena, "%s_%08x", group_name(arena, group),
                           (unsigned)(k->hash & 0xffffffffu));
    return k;
}

Tensor *binding_find(const GroupDefinition *d, const char *name)
{
    for (int i = 0; i < d->bindings.count; i++)
        if (strcmp(d->bindings.data[i].buffer->name, name) == 0)
            return d->bindings.data[i].tensor;
    return NULL;
}

/* How one stage reads a buffer. */
typedef enum ReadUse { READ_NONE, READ_SAME, READ_OTHER } ReadUse;

static bool is_same_index(const Stage *s, const Expr *read)
{
    if (read->outside || read->count != s->axis_count)
        return false;
    for (int i = 0; i < read->count; i++) {
        bool is_axis = read->arg[i]->kind == EX_VAR &&
                       read->arg[i]->var == s->axis[i].var;
        bool is_unit = s->axis[i].extent == 1 && expr_is_int(read->arg[i], 0);
        if (read->buffer->dims[i] != s->axis[i].extent ||
            (!is_axis && !is_unit))
            return false;
    }
    return true;
}

static ReadUse expr_use(PtrMap *seen, const Stage *s, const Expr *x,
                        const Buffer *b)
{
    ReadUse use = READ_NONE;

    if (ptrmap_get(seen, x))
        return READ_NONE;
    ptrmap_set(seen, x, x);
    if (x->kind == EX_READ && x->buffer == b)
        use = is_same_index(s, x) ? READ_SAME : READ_OTHER;
    for (int i = 0; i < x->count && use != READ_OTHER; i++) {
        ReadUse inner = expr_use(seen, s, x->arg[i], b);
        use = inner > use ? inner : use;
    }
    if (x->kind == EX_READ && x->outside && use != READ_OTHER) {
        ReadUse inner = expr_use(seen, s, x->outside, b);
        use = inner > use ? inner : use;
    }
    return use;
}

static ReadUse stage_use(const Stage *s, const Buffer *b)
{
    PtrMap seen = {0};
    ReadUse use = READ_NONE;

    for (int v = 0; v < s->value_count; v++) {
        ReadUse one = expr_use(&seen, s, s->value[v], b);
        use = one > use ? one : use;
    }
    ptrmap_free(&seen);
    /* A reduction reads an element again for other results. */
    return use != READ_NONE && s->reduce_count ? READ_OTHER : use;
}

/* True when each element of `b` only reaches the final result at the same
 * index: every stage that reads it does so there and is pointwise itself. */
static bool is_pointwise(const Definition *def, const Buffer *b,
                         const bool *stage_ok)
{
    bool read = false;

    for (int i = 0; i < def->stages.count; i++) {
        ReadUse use = stage_use(def->stages.data[i], b);
        if (use == READ_OTHER || (use == READ_SAME && !stage_ok[i]))
            return false;
        read |= use == READ_SAME;
    }
    return read;
}

/* Stages whose results reach the last one index by index. Readers come
 * after what they read, so one walk from the end does. */
static bool *pointwise_stages(Arena *arena, const Definition *def,
                              const Stage *last)
{
    bool *ok = ARENA_ARRAY(arena, bool, def->stages.count + 1);

    for (int i = def->stages.count - 1; i >= 0; i--) {
        const Stage *s = def->stages.data[i];
        ok[i] = s == last ||
                (s->value_count == 1 && is_pointwise(def, s->out[0], ok));
    }
    return ok;
}

bool *define_in_place(Arena *arena, const GroupDefinition *d)
{
    const Definition *def = d->def;
    bool *result = ARENA_ARRAY(arena, bool, def->buffers.count + 1);
    const Stage *last = NULL;
    const Buffer *out = NULL;

    for (int i = 0; i < def->buffers.count; i++)
        if (def->buffers.data[i]->role == BUF_OUTPUT) {
            if (out)
                return result;
            out = def->buffers.data[i];
        }
    if (!out)
        return result;
    last = definition_producer(def, out);
    if (!last || last->value_count != 1)
        return result;
    Tensor *result_tensor = binding_find(d, out->name);
    bool *stage_ok = pointwise_stages(arena, def, last);
    for (int i = 0; i < def->buffers.count; i++) {
        const Buffer *b = def->buffers.data[i];
        if (b->role != BUF_INPUT || b->is_constant)
            continue;
        Tensor *t = binding_find(d, b->name);
        if (!t || dtype_size(b->dtype) != dtype_size(out->dtype) ||
            b->rank != out->rank ||
            !layout_equal(&t->layout, &result_tensor->layout))
            continue;
        result[i] = is_pointwise(def, b, stage_ok);
    }
    return result;
}
