/* Loop programs; see loop_program.h. */
#include "ops/loop_program.h"

#include "ops/rules.h"

static const Expr *as_type(LoopContext *c, DType dtype, const Expr *x)
{
    return x->dtype == dtype ? x : expr_cast(c->arena, dtype, x);
}

static void add(LoopContext *c, Stmt *s)
{
    vec_push(c->arena, &c->open[c->depth]->list, s);
}

/* What is added goes to the body until loop_end. */
static void open_body(LoopContext *c, Stmt *s, Stmt *body)
{
    add(c, s);
    if (++c->depth == MAX_OPEN_LOOPS)
        die("%s \"%s\": loops are nested too deeply", c->node->op->name,
            c->node->name);
    c->open[c->depth] = body;
}

const Expr *loop_for(LoopContext *c, LoopKind kind, const char *name,
                     int64_t extent)
{
    Var *var = ARENA_NEW(c->arena, Var);
    Stmt *body = stmt_block(c->arena);

    var->name = arena_printf(c->arena, "%s%d", name, c->temps++);
    open_body(c, stmt_for(c->arena, kind, var, extent, body), body);
    return expr_var(c->arena, var);
}

const Expr *loop_extent(LoopContext *c, Extent extent)
{
    Definition def = {.arena = c->arena};
    DefineContext context = {.def = &def,
                             .node = c->node,
                             .graph = c->graph,
                             .extents = c->extents};

    return load_extent(&context, extent);
}

const Expr *loop_for_extent(LoopContext *c, LoopKind kind, const char *name,
                            Extent extent)
{
    const Expr *var = loop_for(c, kind, name, extent.value);
    const Vec(Stmt *) *list = (const void *)&c->open[c->depth - 1]->list;
    Stmt *s = list->data[list->count - 1];

    if (!extent_is_const(extent) && s->kind == STMT_FOR)
        s->limit = loop_extent(c, extent);
    return var;
}

/* A dimension of one element needs no loop. */
static bool has_loop(const TensorType *type, int axis, int skip)
{
    return axis != skip &&
           !(extent_is_const(type->dims[axis]) && type->dims[axis].value == 1);
}

void loop_nest(LoopContext *c, int parallel, const TensorType *type, int skip,
               const Expr **index)
{
    for (int i = 0; i < type->rank; i++) {
        if (i == skip)
            continue;
        index[i] = expr_int(c->arena, 0);
        if (!has_loop(type, i, skip))
            continue;
        LoopKind kind = i < parallel ? LOOP_PARALLEL : LOOP_SERIAL;
        index[i] = loop_for_extent(c, kind, "i", type->dims[i]);
        parallel = 0;
    }
}

void loop_end_nest(LoopContext *c, const TensorType *type, int skip)
{
    for (int i = 0; i < type->rank; i++)
        if (has_loop(type, i, skip))
            loop_end(c);
}

void loop_set_extent(LoopContext *c, Extent name, const Expr *value)
{
    if (extent_is_const(name))
        return;
    int place = graph_symbol(c->graph, name.expr->name);
    loop_store(c, c->extents, expr_int(c->arena, place), value);
}

void loop_refuse_extent(LoopContext *c, Extent name)
{
    /* No dimension of the program is open: there is nothing to say it in. */
    if (!c->extents)
        return;
    int place =
        extent_is_const(name) ? 0 : graph_symbol(c->graph, name.expr->name);
    loop_store(c, c->extents, expr_int(c->arena, c->extents->dims[0] - 1),
               expr_int(c->arena, place + 1));
}

void loop_if(LoopContext *c, const Expr *cond)
{
    Stmt *body = stmt_block(c->arena);

    open_body(c, stmt_if(c->arena, cond, body), body);
}

void loop_end(LoopContext *c)
{
    if (--c->depth < 0)
        die("%s \"%s\": no loop is open", c->node->op->name, c->node->name);
}

void loop_store(LoopContext *c, const Buffer *buffer, const Expr *offset,
                const Expr *value)
{
    add(c, stmt_store(c->arena, buffer, offset,
                      as_type(c, buffer->dtype, value)));
}

const Expr *loop_load(LoopContext *c, const Buffer *buffer, const Expr *offset)
{
    return expr_load(c->arena, buffer, offset);
}

static Buffer *add_temp(LoopContext *c, const char *name, DType dtype,
                        int64_t size, Scope scope)
{
    Buffer *b = ARENA_NEW(c->arena, Buffer);

    b->name = arena_printf(c->arena, "%s_%d", name, c->temps++);
    b->role = BUF_TEMP;
    b->dtype = dtype;
    b->rank = 1;
    b->dims[0] = size > 0 ? size : 1;
    b->layout = layout_row_major(1);
    b->scope = scope;
    return b;
}

Buffer *loop_local(LoopContext *c, const char *name, DType dtype, int64_t size)
{
    Buffer *b = add_temp(c, name, dtype, size, SCOPE_LOCAL);

    vec_push(c->arena, &c->kernel->temps, b);
    return b;
}

Buffer *loop_workspace(LoopContext *c, const char *name, DType dtype,
                       int64_t size)
{
    Buffer *b = add_temp(c, name, dtype, size, SCOPE_GLOBAL);

    vec_push(c->arena, &c->kernel->params, b);
    return b;
}

Buffer *loop_variable(LoopContext *c, const char *name, DType dtype)
{
    return loop_local(c, name, dtype, 1);
}

void loop_set(LoopContext *c, const Buffer *variable, const Expr *value)
{
    loop_store(c, variable, expr_int(c->arena, 0), value);
}

const Expr *loop_get(LoopContext *c, const Buffer *variable)
{
    return loop_load(c, variable, expr_int(c->arena, 0));
}

/* ---- the kernel ------------------------------------------------------- */

static Buffer *add_param(LoopContext *c, const char *stem, int index,
                         BufferRole role, const Tensor *t)
{
    Buffer *b = ARENA_NEW(c->arena, Buffer);

    b->name = arena_printf(c->arena, "%s%d", stem, index);
    b->role = role;
    b->dtype = t->type.dtype;
    b->rank = t->type.rank;
    for (int i = 0; i < b->rank; i++)
        b->dims[i] = t->type.dims[i].value;
    b->is_constant = role == BUF_INPUT && t->value;
    b->layout = layout_row_major(b->rank);
    vec_push(c->arena, &c->kernel->params, b);
    return b;
}

static bool has_room(Tensor *const *tensors, int count, int most)
{
    for (int i = 0; i < count; i++)
        if (tensors[i] && type_most(&tensors[i]->type) < 0)
            return false;
    return count <= most;
}

/* Read and written: what the node says of its results comes in here. */
static void add_extents(LoopContext *c)
{
    Buffer *b = ARENA_NEW(c->arena, Buffer);

    b->name = "ext";
    b->role = BUF_OUTPUT;
    b->dtype = DT_I64;
    b->rank = 1;
    b->dims[0] = c->graph->symbols.count + 1;
    b->layout = layout_row_major(1);
    b->is_extents = true;
    vec_push(c->arena, &c->kernel->params, b);
    c->extents = b;
}

/* Results are named dimensions. */
static bool has_symbols(const Node *node)
{
    for (int i = 0; i < node->outputs.count; i++) {
        const Tensor *t = node->outputs.data[i];
        int64_t count = t && t->symbols ? type_count(&t->type) : 0;
        for (int64_t k = 0; k < count; k++)
            if (!extent_is_const(t->symbols[k]))
                return true;
    }
    return false;
}

Kernel *op_program(Arena *arena, const Node *node, const Graph *graph)
{
    LoopContext c = {.arena = arena, .node = node, .graph = graph};
    bool is_open = !node_is_static(node) || has_symbols(node);
    double bytes = 0;

    if (!node->op->program ||
        (is_open && (!graph || !op_takes_runtime_extents(node))) ||
        !has_room(node->inputs.data, node->inputs.count, MAX_OP_INPUTS) ||
        !has_room(node->outputs.data, node->outputs.count, MAX_OP_OUTPUTS))
        return NULL;
    Kernel *k = c.kernel = ARENA_NEW(arena, Kernel);
    k->arena = arena;
    k->name = node->op->name;
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i])
            c.in[i] = add_param(&c, node->inputs.data[i]->value ? "w" : "in",
                                i, BUF_INPUT, node->inputs.data[i]);
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i])
            c.out[i] =
                add_param(&c, "out", i, BUF_OUTPUT, node->outputs.data[i]);
    for (int i = 0; i < k->params.count; i++)
        bytes += (double)buffer_size(k->params.data[i]) *
                 (double)dtype_size(k->params.data[i]->dtype);
    if (is_open)
        add_extents(&c);
    k->body = c.open[0] = stmt_block(arena);
    k->bytes = bytes;
    node->op->program(&c);
    if (c.depth)
        die("%s \"%s\": a loop is left open", node->op->name, node->name);
    k->hash = kernel_hash(k);
    return k;
}
