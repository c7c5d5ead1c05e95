/* Control flow of the graph as regions of steps.
 *
 * The steps of a body lie where its node was. What it reads from outside are
 * the very buffers there. Both branches write the node's results. A carried
 * value has a buffer of its own, which is the node's result: it is set before
 * the loop, and again, from what the body made of it, at the end of each
 * iteration, when nothing reads the former value any more. */
#include <string.h>

#include "ops/control.h"
#include "program/builder.h"

/* ---- kernels --------------------------------------------------------- */

enum { BLOCK = 1 << 14 }; /* elements that one thread copies at a time */

static Buffer *add_param(Kernel *k, const char *name, BufferRole role,
                         DType dtype, int rank, int64_t size)
{
    Buffer *b = ARENA_NEW(k->arena, Buffer);

    *b = (Buffer){.name = name,
                  .role = role,
                  .dtype = dtype,
                  .rank = rank,
                  .dims = {size},
                  .layout = layout_row_major(rank)};
    vec_push(k->arena, &k->params, b);
    return b;
}

/* out[start + base + i] = in[base + i] for `count` elements. */
static Stmt *copy_loop(Kernel *k, const Expr *base, const Expr *start,
                       int64_t count)
{
    Arena *a = k->arena;
    Var *var = ARENA_NEW(a, Var);
    const Buffer *from = k->params.data[0];
    const Buffer *to = k->params.data[k->params.count - 1];

    var->name = "i";
    const Expr *at = expr_add(a, base, expr_var(a, var));
    return stmt_for(
        a, LOOP_VECTOR, var, count,
        stmt_store(a, to, expr_add(a, start, at), expr_load(a, from, at)));
}

/* Copies `count` elements; with `places`, to place number `counter` of so
 * many. */
static Kernel *copy_kernel(Arena *a, DType dtype, int64_t count,
                           int64_t places)
{
    Kernel *k = ARENA_NEW(a, Kernel);
    const Expr *start = expr_int(a, 0);
    int64_t full = count / BLOCK;
    Var *block = ARENA_NEW(a, Var);

    k->arena = a;
    block->name = "block";
    add_param(k, "in0", BUF_INPUT, dtype, 1, count);
    if (places) {
        const Buffer *counter = add_param(k, "in1", BUF_INPUT, DT_I64, 0, 0);
        start = expr_mul_int(a, expr_load(a, counter, start), count);
    }
    add_param(k, "out0", BUF_OUTPUT, dtype, 1, count * (places ? places : 1));
    k->body = stmt_block(a);
    if (full > 0)
        vec_push(
            a, &k->body->list,
            stmt_for(a, full > 1 ? LOOP_PARALLEL : LOOP_SERIAL, block, full,
                     copy_loop(k, expr_mul_int(a, expr_var(a, block), BLOCK),
                               start, BLOCK)));
    if (count % BLOCK)
        vec_push(
            a, &k->body->list,
            copy_loop(k, expr_int(a, full * BLOCK), start, count % BLOCK));
    k->bytes = 2.0 * (double)count * (double)dtype_size(dtype);
    k->hash = kernel_hash(k);
    k->name = arena_printf(a, "%s_%s_%lld_%08x", places ? "put" : "copy",
                           dtype_name(dtype), (long long)count,
                           (unsigned)(k->hash & 0xffffffffu));
    return k;
}

/* Sets dimension `place` to 0, or to one more than the iteration's number. */
static Kernel *count_kernel(Arena *a, int place, int64_t dims, bool is_start)
{
    Kernel *k = ARENA_NEW(a, Kernel);
    const Expr *zero = expr_int(a, 0), *value = zero;

    k->arena = a;
    if (!is_start) {
        const Buffer *number = add_param(k, "in0", BUF_INPUT, DT_I64, 0, 0);
        value = expr_add_int(a, expr_load(a, number, zero), 1);
    }
    Buffer *extents = add_param(k, "ext", BUF_OUTPUT, DT_I64, 1, dims);
    extents->is_extents = true;
    k->body = stmt_block(a);
    vec_push(a, &k->body->list,
             stmt_store(a, extents, expr_int(a, place), value));
    k->bytes = 16;
    k->hash = kernel_hash(k);
    k->name = arena_printf(a, "count_%08x", (unsigned)(k->hash & 0xffffffffu));
    return k;
}

/* ---- steps ----------------------------------------------------------- */

/* A step that copies buffer `from` to `to`, or to one of `places` in it. */
static void add_copy(Builder *b, const Group *group, int from, int to,
                     int64_t places, int counter)
{
    const ProgramBuffer *source = &b->p->buffers.data[from];
    int64_t count = source->bytes / (int64_t)dtype_size(source->dtype);

    if (count == 0)
        return;
    const Kernel *k = copy_kernel(b->arena, source->dtype, count, places);
    ProgramStep step = {.kernel = program_add_kernel(b, k, !places),
                        .schedule = -1,
                        .arg_count = k->params.count,
                        .group = group};
    step.args = ARENA_ARRAY(b->arena, int, step.arg_count + 1);
    step.args[0] = from;
    if (places)
        step.args[1] = counter;
    step.args[step.arg_count - 1] = to;
    b->p->buffers.data[to].ready_step = b->p->steps.count;
    vec_push(b->arena, &b->p->steps, step);
}

/* A step that counts iterations; `counter` is -1 before the first. */
static void add_count(Builder *b, const Group *group, Extent name, int counter)
{
    int place = graph_symbol(b->g, name.expr->name);
    const Kernel *k =
        count_kernel(b->arena, place, b->g->symbols.count + 1, counter < 0);
    ProgramStep step = {.kernel = program_add_kernel(b, k, false),
                        .schedule = -1,
                        .arg_count = k->params.count,
                        .group = group};
    step.args = ARENA_ARRAY(b->arena, int, step.arg_count + 1);
    step.args[0] = counter;
    step.args[step.arg_count - 1] =
        program_extents_buffer(b, k->params.data[k->params.count - 1]);
    vec_push(b->arena, &b->p->steps, step);
}

/* A buffer of the program's own. */
static int add_storage(Builder *b, const char *name, const TensorType *type)
{
    ProgramBuffer buffer = {
        .name = arena_printf(b->arena, "%s.%d", name, b->p->buffers.count),
        .kind = PB_ARENA,
        .dtype = type->dtype,
        .rank = type->rank,
        .layout = layout_row_major(type->rank)};

    for (int i = 0; i < type->rank; i++)
        buffer.dims[i] = type->dims[i].value;
    return program_add_buffer(b, buffer);
}

static int add_truth(Builder *b)
{
    Tensor *t = ARENA_NEW(b->arena, Tensor);

    t->name = "true";
    t->value = array_scalar(b->arena, DT_BOOL, 1);
    t->type = type_of_array(t->value);
    return program_operand_buffer(b, t);
}

/* Builds a body. inputs[i] is the buffer of its input i; outputs[i] that of
 * its output, which is made, and told, where it is -1. */
static bool build_body(Builder *b, Graph *body, const int *inputs,
                       int *outputs)
{
    Graph *outer = b->g;
    int *buffers = b->buffer_of;

    b->g = body;
    /* One list of numbers for the whole program. */
    body->symbols = outer->symbols;
    body->input_symbols = outer->input_symbols;
    b->depth++;
    b->buffer_of = ARENA_ARRAY(b->arena, int, body->next_id + 1);
    for (int i = 0; i <= body->next_id; i++)
        b->buffer_of[i] = -1;
    for (int i = 0; i < body->inputs.count; i++)
        b->buffer_of[body->inputs.data[i]->id] = inputs[i];
    for (int i = 0; i < body->outputs.count; i++) {
        const Tensor *t = body->outputs.data[i];
        if (outputs[i] >= 0)
            b->buffer_of[t->id] = outputs[i];
        else
            outputs[i] = program_tensor_buffer(b, t);
    }
    bool ok = program_build_groups(b);
    b->g = outer;
    b->depth--;
    b->buffer_of = buffers;
    return ok;
}

/* Regions are listed before those within them. */
static int open_region(Builder *b, ProgramRegion region)
{
    region.first = b->p->steps.count;
    region.parent = b->region;
    region.in_otherwise = b->in_otherwise;
    vec_push(b->arena, &b->p->regions, region);
    b->region = b->p->regions.count - 1;
    b->in_otherwise = false;
    return b->region;
}

static void close_region(Builder *b, int index)
{
    ProgramRegion *r = &b->p->regions.data[index];

    r->end = b->p->steps.count;
    if (r->kind == REGION_LOOP)
        r->otherwise = r->end;
    b->region = r->parent;
    b->in_otherwise = r->in_otherwise;
    /* Without steps it has no effect; then there is none within. */
    if (r->first == r->end)
        b->p->regions.count = index;
}

/* ---- nodes ----------------------------------------------------------- */

static bool is_kept(const Node *node, int output)
{
    const Tensor *t = node->outputs.data[output];

    return t && (t->is_output || t->users.count);
}

/* Results are there when the whole region is done. */
static void finish_outputs(Builder *b, const Node *node, const int *buffers,
                           bool is_tapped)
{
    for (int i = 0; i < node->outputs.count; i++) {
        if (buffers[i] < 0)
            continue;
        ProgramBuffer *to = &b->p->buffers.data[buffers[i]];
        to->ready_step = b->p->steps.count - 1;
        /* The last step of a branch may not run: nothing tells when it is
         * there. Outputs of the program are looked at afterwards. */
        if (!is_tapped && to->kind == PB_ARENA)
            to->tensor = NULL;
    }
}

static int result_buffer(Builder *b, const Node *node, int output,
                         const TensorType *type)
{
    return is_kept(node, output)
               ? program_tensor_buffer(b, node->outputs.data[output])
               : add_storage(b, node->name, type);
}

static bool build_branch(Builder *b, const Group *group)
{
    const Node *node = group->nodes.data[0];
    int count = node->inputs.count, outputs = node->outputs.count;
    int *in = ARENA_ARRAY(b->arena, int, count + 1);
    int *out = ARENA_ARRAY(b->arena, int, outputs + 1);

    for (int i = 1; i < count; i++)
        in[i - 1] = program_operand_buffer(b, node->inputs.data[i]);
    for (int i = 0; i < outputs; i++)
        out[i] = result_buffer(b, node, i,
                               &node->bodies.data[0]->outputs.data[i]->type);
    int index = open_region(b, (ProgramRegion){.kind = REGION_BRANCH,
                                               .cond = program_operand_buffer(
                                                   b, node->inputs.data[0]),
                                               .trips = -1,
                                               .counter = -1,
                                               .most = INT64_MAX});
    bool ok = build_body(b, node->bodies.data[0], in, out);
    b->p->regions.data[index].otherwise = b->p->steps.count;
    b->in_otherwise = true;
    ok &= build_body(b, node->bodies.data[1], in, out);
    close_region(b, index);
    finish_outputs(b, node, out, false);
    return ok;
}

/* Buffers of the body's inputs: number, condition, carried, others. */
static int *loop_inputs(Builder *b, const Group *group, const int *state,
                        bool is_counted)
{
    const Node *node = group->nodes.data[0];
    const Graph *body = node->bodies.data[0];
    int carried = loop_carried(node);
    int *in = ARENA_ARRAY(b->arena, int, body->inputs.count + 1);

    in[0] = add_storage(b, arena_printf(b->arena, "%s.number", node->name),
                        &body->inputs.data[0]->type);
    in[1] = add_truth(b);
    if (!is_counted) {
        int start = node->inputs.data[1]
                        ? program_operand_buffer(b, node->inputs.data[1])
                        : in[1];
        in[1] =
            add_storage(b, arena_printf(b->arena, "%s.condition", node->name),
                        &body->inputs.data[1]->type);
        add_copy(b, group, start, in[1], 0, -1);
    }
    for (int i = 0; i < carried; i++) {
        in[2 + i] = state[i];
        add_copy(b, group, program_operand_buffer(b, node->inputs.data[2 + i]),
                 state[i], 0, -1);
    }
    for (int i = 2 + carried; i < body->inputs.count; i++)
        in[i] = program_operand_buffer(b, node->inputs.data[i]);
    return in;
}

static bool build_loop(Builder *b, const Group *group)
{
    const Node *node = group->nodes.data[0];
    Graph *body = node->bodies.data[0];
    bool is_counted = loop_is_counted(node);
    int carried = loop_carried(node), outputs = node->outputs.count;
    bool has_slices = outputs > carried;
    Extent slices = has_slices ? loop_slices(b->arena, node)
                               : extent_const(loop_trips(node));
    int64_t trips = loop_trips(node);
    bool counts = has_slices && !extent_is_const(slices) && !is_counted;
    int *result = ARENA_ARRAY(b->arena, int, outputs + 1);
    int *made = ARENA_ARRAY(b->arena, int, outputs + 2);
    bool needs_number = body->inputs.data[0]->users.count > 0 || counts;

    for (int i = 0; i < outputs; i++) {
        bool is_slices = i >= carried;
        result[i] =
            is_slices && !is_kept(node, i)
                ? -1
                : result_buffer(b, node, i, &body->outputs.data[i + 1]->type);
        needs_number |= is_slices && result[i] >= 0;
    }
    for (int i = 0; i <= outputs; i++)
        made[i] = -1;
    const int *in = loop_inputs(b, group, result, is_counted);
    if (counts)
        add_count(b, group, slices, -1);
    int index = open_region(
        b, (ProgramRegion){
               .kind = REGION_LOOP,
               .cond = is_counted ? -1 : in[1],
               .trips = trips < 0 && node->inputs.data[0]
                            ? program_operand_buffer(b, node->inputs.data[0])
                            : -1,
               .counter = needs_number ? in[0] : -1,
               .most = trips < 0 ? INT64_MAX : trips});
    bool ok = build_body(b, body, in, made);
    for (int i = carried; i < outputs; i++)
        if (result[i] >= 0 && slices.value > 0)
            add_copy(b, group, made[i + 1], result[i], slices.value, in[0]);
    if (counts)
        add_count(b, group, slices, in[0]);
    if (!is_counted)
        add_copy(b, group, made[0], in[1], 0, -1);
    for (int i = 0; i < carried; i++)
        add_copy(b, group, made[i + 1], result[i], 0, -1);
    close_region(b, index);
    finish_outputs(b, node, result, true);
    return ok;
}

bool program_build_control(Builder *b, const Group *group)
{
    return group->nodes.data[0]->op->traits & OP_LOOP ? build_loop(b, group)
                                                      : build_branch(b, group);
}
