/* From groups to a program: each group is defined, scheduled and lowered (or
 * is a loop program already), and becomes a kernel call. Groups with equal
 * definitions and layouts are scheduled once; equal kernels are kept once. */
#include <string.h>

#include "base/hash.h"
#include "passes/util.h"
#include "program/builder.h"

int program_add_buffer(Builder *b, ProgramBuffer buffer)
{
    buffer.bytes = layout_size(&buffer.layout, buffer.rank, buffer.dims) *
                   (int64_t)dtype_size(buffer.dtype);
    buffer.alias_of = -1;
    buffer.last_step = buffer.ready_step = -1;
    vec_push(b->arena, &b->p->buffers, buffer);
    return b->p->buffers.count - 1;
}

/* Far above any machine's memory, far below overflow. */
static const double most_bytes = (double)((int64_t)1 << 40);

static void check_size(Builder *b, const Tensor *t)
{
    double bytes = (double)dtype_size(t->type.dtype);

    for (int i = 0; i < t->type.rank; i++)
        bytes *= (double)t->type.dims[i].value;
    if (bytes > most_bytes)
        diag_error(b->diag,
                   "tensor \"%s\" would take %.3g bytes; the most is 1 TiB, "
                   "make its dimensions smaller",
                   t->name, bytes);
}

static int add_tensor_buffer(Builder *b, const Tensor *t,
                             ProgramBufferKind kind, int64_t offset)
{
    check_size(b, t);
    ProgramBuffer buffer = {.name = t->name,
                            .kind = kind,
                            .dtype = t->type.dtype,
                            .rank = t->type.rank,
                            .layout = t->layout,
                            .offset = offset,
                            .tensor = t};

    for (int i = 0; i < t->type.rank; i++)
        buffer.dims[i] = t->type.dims[i].value;
    /* What a body computes has other values in each iteration: it is no
     * layer to compare. */
    if (b->depth) {
        buffer.tensor = NULL;
        buffer.name = arena_printf(b->arena, "%s.%s.%d", b->g->name, t->name,
                                   b->p->buffers.count);
    }
    int index = program_add_buffer(b, buffer);
    b->buffer_of[t->id] = index;
    return index;
}

/* The buffer of a tensor that kernels compute, made when it is first asked
 * for: what a part lies in comes before it is whole. */
int program_tensor_buffer(Builder *b, const Tensor *t)
{
    if (b->buffer_of[t->id] >= 0)
        return b->buffer_of[t->id];
    int whole = t->within ? program_tensor_buffer(b, t->within) : -1;
    int index = add_tensor_buffer(b, t, PB_ARENA, 0);
    b->p->buffers.data[index].alias_of = whole;
    return index;
}

/* A constant in the layout that a kernel wants. One value that kernels
 * want in two layouts is stored twice. */
static int constant_buffer(Builder *b, const Tensor *t, const Buffer *param)
{
    Str key = {0};

    str_addf(&key, "%p %d", (const void *)t->value, param->rank);
    for (int i = 0; i < param->rank; i++)
        str_addf(&key, " %lld", (long long)param->dims[i]);
    layout_print(&key, &param->layout);
    const int *known = map_get(&b->constants, str_text(&key));
    if (known) {
        str_free(&key);
        return *known;
    }
    /* A schedule may have joined axes: the elements are the same, in the
     * same order, under the shape that the layout is about. */
    Array *value = arena_copy(b->arena, t->value, sizeof *value);
    value->rank = param->rank;
    memcpy(value->dims, param->dims, sizeof value->dims);
    ProgramBuffer buffer = {.name = t->name,
                            .kind = PB_CONSTANT,
                            .dtype = param->dtype,
                            .rank = param->rank,
                            .layout = param->layout,
                            .value = value,
                            .tensor = t};
    memcpy(buffer.dims, param->dims, sizeof buffer.dims);
    for (int n = 2; map_get(&b->names, buffer.name); n++)
        buffer.name = arena_printf(b->arena, "%s.%d", t->name, n);
    map_set(&b->names, buffer.name, b);
    int *index = ARENA_NEW(b->arena, int);
    *index = program_add_buffer(b, buffer);
    map_set(&b->constants, arena_strdup(b->arena, str_text(&key)), index);
    str_free(&key);
    return *index;
}

int program_operand_buffer(Builder *b, const Tensor *t)
{
    Buffer plain = {.dtype = t->type.dtype,
                    .rank = t->type.rank,
                    .layout = layout_row_major(t->type.rank)};

    if (!t->value)
        return program_tensor_buffer(b, t);
    for (int i = 0; i < plain.rank; i++)
        plain.dims[i] = t->type.dims[i].value;
    return constant_buffer(b, t, &plain);
}

static int workspace_buffer(Builder *b, const Kernel *kernel,
                            const Buffer *param, int step)
{
    ProgramBuffer buffer = {.kind = PB_ARENA,
                            .dtype = param->dtype,
                            .rank = param->rank,
                            .layout = param->layout};

    buffer.name =
        arena_printf(b->arena, "%s.%s.%d", kernel->name, param->name, step);
    memcpy(buffer.dims, param->dims, sizeof buffer.dims);
    return program_add_buffer(b, buffer);
}

/* Text that decides the kernel: definition, layouts, kind of schedule. */
static const char *schedule_key(Builder *b, const GroupDefinition *d)
{
    Str key = {0};

    str_addf(&key, "%d %s\n", b->mode, d->hint ? d->hint : "");
    definition_print(&key, d->def);
    for (int i = 0; i < d->bindings.count; i++) {
        str_addf(&key, "%s ", d->bindings.data[i].buffer->name);
        layout_print(&key, &d->bindings.data[i].tensor->layout);
        str_add(&key, "\n");
    }
    const char *text = arena_strdup(b->arena, str_text(&key));
    str_free(&key);
    return text;
}

/* in_place by kernel parameter instead of by definition buffer. */
static const bool *params_in_place(Builder *b, const GroupDefinition *d,
                                   const Kernel *kernel)
{
    bool *by_buffer = define_in_place(b->arena, d);
    bool *by_param = ARENA_ARRAY(b->arena, bool, kernel->params.count + 1);

    for (int i = 0; i < kernel->params.count; i++)
        for (int k = 0; k < d->def->buffers.count; k++)
            if (strcmp(kernel->params.data[i]->name,
                       d->def->buffers.data[k]->name) == 0)
                by_param[i] = by_buffer[k];
    return by_param;
}

Schedule *program_schedule_new(Arena *arena, Diag *diag,
                               const GroupDefinition *d)
{
    Schedule *s = schedule_new(arena, diag, d->def);

    for (int i = 0; i < d->bindings.count; i++) {
        const Tensor *t = d->bindings.data[i].tensor;
        if (!layout_is_row_major(&t->layout, t->type.rank))
            schedule_pack(s, d->bindings.data[i].buffer->name, t->layout);
    }
    return s;
}

static Scheduled *schedule_group(Builder *b, const GroupDefinition *d)
{
    const char *key = schedule_key(b, d);
    Scheduled *known = map_get(&b->scheduled, key);
    Str trace = {0};

    if (known)
        return known;
    /* Of the definition as it is: a schedule may compute some of it more
     * than once. */
    double flops = definition_flops(d->def) + d->more_flops;
    double bytes = definition_bytes(d->def);
    Schedule *s = program_schedule_new(b->arena, b->diag, d);
    int schedule = program_choose(b, s, d, key);
    if (schedule < 0)
        return NULL;
    Kernel *kernel = schedule_lower(s, b->arena);
    if (!kernel)
        return NULL;
    kernel->flops = flops;
    kernel->bytes = bytes;
    kernel->name = arena_printf(b->arena, "%s_%08x", d->def->name,
                                (unsigned)(kernel->hash & 0xffffffffu));
    known = ARENA_NEW(b->arena, Scheduled);
    known->kernel = kernel;
    known->index = -1;
    known->schedule = schedule;
    map_set(&b->scheduled, key, known);
    const char *hash =
        arena_printf(b->arena, "%016llx", (unsigned long long)kernel->hash);
    Scheduled *same = map_get(&b->by_hash, hash);
    if (same) {
        known->index = same->index;
        return known;
    }
    schedule_print_trace(&trace, s);
    ProgramKernel made = {.kernel = kernel,
                          .def = d->def,
                          .trace = arena_strdup(b->arena, str_text(&trace)),
                          .in_place = params_in_place(b, d, kernel)};
    str_free(&trace);
    known->index = b->p->kernels.count;
    vec_push(b->arena, &b->p->kernels, made);
    map_set(&b->by_hash, hash, known);
    return known;
}

/* One for all kernels. */
int program_extents_buffer(Builder *b, const Buffer *param)
{
    ProgramBuffer buffer = {.name = "extents",
                            .kind = PB_EXTENTS,
                            .dtype = param->dtype,
                            .rank = param->rank,
                            .layout = param->layout};

    memcpy(buffer.dims, param->dims, sizeof buffer.dims);
    if (b->extents < 0)
        b->extents = program_add_buffer(b, buffer);
    return b->extents;
}

static int argument(Builder *b, const Tensor *t, const Kernel *kernel,
                    const Buffer *param)
{
    if (param->is_extents)
        return program_extents_buffer(b, param);
    if (!t)
        return workspace_buffer(b, kernel, param, b->p->steps.count);
    if (t->value)
        return constant_buffer(b, t, param);
    if (b->buffer_of[t->id] < 0 && param->role == BUF_INPUT)
        die("group reads \"%s\" before it is computed", t->name);
    return program_tensor_buffer(b, t);
}

/* No kernel where nothing is left to do: the result has its value as soon as
 * all operands have theirs. False when there is a kernel. */
static bool build_alias(Builder *b, const Node *node)
{
    Arena *scratch = arena_new();
    bool joined = node_is_joined(scratch, node);
    bool alias = joined || node_is_alias(scratch, node);
    arena_free(scratch);
    if (!alias)
        return false;
    /* What is joined has storage of its own, in which its operands lie. */
    int to = program_tensor_buffer(b, node_only_output(node));
    if (!joined)
        b->p->buffers.data[to].alias_of =
            b->buffer_of[node->inputs.data[0]->id];
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *x = node->inputs.data[i];
        int from = x && !x->value ? b->buffer_of[x->id] : -1;
        if (from >= 0 && b->p->buffers.data[from].ready_step >
                             b->p->buffers.data[to].ready_step)
            b->p->buffers.data[to].ready_step =
                b->p->buffers.data[from].ready_step;
    }
    return true;
}

static void add_step(Builder *b, const Group *group, const GroupDefinition *d,
                     const Scheduled *scheduled)
{
    const Kernel *kernel = scheduled->kernel;
    ProgramStep step = {.kernel = scheduled->index,
                        .schedule = scheduled->schedule,
                        .arg_count = kernel->params.count,
                        .group = group};

    step.args = ARENA_ARRAY(b->arena, int, step.arg_count + 1);
    for (int i = 0; i < step.arg_count; i++) {
        const Buffer *param = kernel->params.data[i];
        step.args[i] =
            argument(b, binding_find(d, param->name), kernel, param);
        if (param->role == BUF_OUTPUT)
            b->p->buffers.data[step.args[i]].ready_step = b->p->steps.count;
    }
    vec_push(b->arena, &b->p->steps, step);
}

int program_add_kernel(Builder *b, const Kernel *kernel, bool in_place)
{
    const char *hash =
        arena_printf(b->arena, "%016llx", (unsigned long long)kernel->hash);
    const Scheduled *same = map_get(&b->by_hash, hash);

    if (same)
        return same->index;
    Scheduled *made = ARENA_NEW(b->arena, Scheduled);
    *made = (Scheduled){kernel, b->p->kernels.count, -1};
    bool *may = ARENA_ARRAY(b->arena, bool, kernel->params.count + 1);
    may[0] = in_place;
    ProgramKernel row = {.kernel = kernel, .trace = "", .in_place = may};
    vec_push(b->arena, &b->p->kernels, row);
    map_set(&b->by_hash, hash, made);
    return made->index;
}

/* A loop program has nothing to schedule. */
static bool build_program_node(Builder *b, const Group *group)
{
    GroupDefinition d;
    Kernel *kernel = define_program(b->arena, b->diag, b->g, group, &d);

    if (!kernel)
        return false;
    Scheduled made = {kernel, program_add_kernel(b, kernel, false), -1};
    add_step(b, group, &d, &made);
    return true;
}

static bool build_group(Builder *b, const Group *group)
{
    GroupDefinition d;

    if (group->nodes.count == 1 && build_alias(b, group->nodes.data[0]))
        return true;
    if (group->nodes.count == 1 && node_is_program(group->nodes.data[0]))
        return build_program_node(b, group);
    if (group->nodes.count == 1 && group->nodes.data[0]->bodies.count)
        return program_build_control(b, group);
    if (!define_group(b->arena, b->diag, b->g, group, &d))
        return false;
    Scheduled *scheduled = schedule_group(b, &d);
    if (!scheduled)
        return false;
    add_step(b, group, &d, scheduled);
    return true;
}

/* All groups, so that every fault is reported at once. */
bool program_build_groups(Builder *b)
{
    bool ok = true;

    for (int i = 0; i < b->g->groups.count; i++)
        ok &= build_group(b, b->g->groups.data[i]);
    return ok;
}

static bool add_interface(Builder *b)
{
    Graph *g = b->g;
    bool ok = true;

    for (int i = 0; i < g->inputs.count; i++) {
        const Tensor *t = g->inputs.data[i];
        if (type_is_bounded(&t->type))
            add_tensor_buffer(b, t, PB_INPUT, i);
        else
            ok = diag_error(b->diag,
                            "input \"%s\" has an extent without an upper "
                            "bound; give its dimension a value with --dim "
                            "NAME=VALUE",
                            t->name);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        const Tensor *t = g->outputs.data[i];
        if (t->producer && t->type.rank >= 0)
            add_tensor_buffer(b, t, PB_OUTPUT, i);
        else
            ok = diag_error(b->diag,
                            "output \"%s\" is an input, a constant or of "
                            "unknown type; nothing computes it",
                            t->name);
    }
    b->p->input_count = g->inputs.count;
    b->p->output_count = g->outputs.count;
    return ok;
}

static int root_of(const Program *p, int index)
{
    while (p->buffers.data[index].alias_of >= 0)
        index = p->buffers.data[index].alias_of;
    return index;
}

/* Shape arithmetic that type inference followed has become part of the
 * kernels that use it; what nothing reads any more need not run. */
static void drop_unread_steps(Builder *b)
{
    Program *p = b->p;
    bool *needed = ARENA_ARRAY(b->arena, bool, p->buffers.count + 1);
    bool *kept = ARENA_ARRAY(b->arena, bool, p->steps.count + 1);
    int *moved = ARENA_ARRAY(b->arena, int, p->steps.count + 1);
    int count = 0;

    for (int i = 0; i < p->buffers.count; i++)
        if (p->buffers.data[i].kind == PB_OUTPUT ||
            p->buffers.data[i].kind == PB_EXTENTS)
            needed[root_of(p, i)] = true;
    for (int s = p->steps.count - 1; s >= 0; s--) {
        const ProgramStep *step = &p->steps.data[s];
        const Kernel *k = p->kernels.data[step->kernel].kernel;
        for (int a = 0; a < step->arg_count; a++)
            kept[s] |= k->params.data[a]->role == BUF_OUTPUT &&
                       needed[root_of(p, step->args[a])];
        for (int a = 0; a < step->arg_count && kept[s]; a++)
            needed[root_of(p, step->args[a])] = true;
    }
    for (int s = 0; s < p->steps.count; s++) {
        moved[s] = count;
        if (kept[s])
            p->steps.data[count++] = p->steps.data[s];
    }
    p->steps.count = count;
    for (int i = 0; i < p->buffers.count; i++)
        if (p->buffers.data[i].ready_step >= 0)
            p->buffers.data[i].ready_step =
                moved[p->buffers.data[i].ready_step];
}

/* Nodes of two bodies may have one name. Where both have results that are as
 * large as the data say, the extents would be taken for the same. */
static bool check_counted(Builder *b, const Graph *g, Map *seen)
{
    bool ok = true;
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *node = g->nodes.data[i];
        const char *name = op_counted_name(b->arena, node);
        for (int k = 0; k < node->bodies.count; k++)
            ok &= check_counted(b, node->bodies.data[k], seen);
        if (graph_symbol(b->g, name) < b->g->input_symbols)
            continue;
        if (map_get(seen, name))
            ok = diag_error(b->diag,
                            "%s \"%s\": another node of that name, in a body "
                            "or around it, also has a result that is as large "
                            "as the data say; give it another name",
                            node->op->name, node->name);
        map_set(seen, name, (void *)node);
    }
    return ok;
}

Program *program_build(Arena *arena, Diag *diag, Graph *g,
                       const Target *target, ScheduleMode mode,
                       const ProgramChoices *choices)
{
    Program *p = ARENA_NEW(arena, Program);
    Builder b = {.p = p,
                 .arena = arena,
                 .diag = diag,
                 .g = g,
                 .mode = mode,
                 .choices = choices,
                 .region = -1,
                 .extents = -1};

    p->arena = arena;
    p->mode = mode;
    p->name = g->name;
    p->target = target;
    map_init(&b.scheduled, arena);
    map_init(&b.by_hash, arena);
    map_init(&b.constants, arena);
    map_init(&b.names, arena);
    b.buffer_of = ARENA_ARRAY(arena, int, g->next_id + 1);
    for (int i = 0; i <= g->next_id; i++)
        b.buffer_of[i] = -1;
    graph_find_symbols(g);
    for (int i = 0; i < g->symbols.count; i++)
        vec_push(arena, &p->symbols, g->symbols.data[i]);
    p->input_symbols = g->input_symbols;
    Map counted;
    map_init(&counted, arena);
    if (!check_counted(&b, g, &counted) || !add_interface(&b))
        return NULL;
    bool ok = program_build_groups(&b);
    /* In a loop a later step writes what an earlier one reads. */
    if (p->symbols.count && !p->regions.count)
        drop_unread_steps(&b);
    return ok && !diag->errors.count ? p : NULL;
}
