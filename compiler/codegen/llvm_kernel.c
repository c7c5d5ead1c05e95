/* Loops to LLVM IR.
 *
 * A kernel is `void NAME(run, args)`. Each parallel loop becomes a task
 * that the runtime's parallel_for calls with a range; the pointers go to an
 * inner function as parameters, because LLVM takes noalias from there.
 * Register and local temporaries are allocas with constant indices, which
 * SROA turns into SSA values. A vector loop is emitted in chunks of the
 * target's width. */
#include <stdio.h>
#include <string.h>

#include "codegen/llvm_emit.h"

static LLVMBuilderRef builder(const Emit *e)
{
    return e->m->builder;
}

/* ---- statements ---------------------------------------------------- */

static void emit_stmt(Emit *e, const Stmt *s);

typedef void (*LoopBody)(Emit *e, const Stmt *s);

/* A counted loop from `begin` (below `end`) by `step`; the variable of `s`
 * is bound. */
static void counted_loop(Emit *e, const Stmt *s, LLVMValueRef begin,
                         LLVMValueRef end, int64_t step, LoopBody body)
{
    LLVMBuilderRef b = builder(e);
    LLVMContextRef c = e->m->context;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef top =
        LLVMAppendBasicBlockInContext(c, e->function, s->var->name);
    LLVMBasicBlockRef done =
        LLVMAppendBasicBlockInContext(c, e->function, "done");
    LLVMBuildBr(b, top);
    LLVMPositionBuilderAtEnd(b, top);
    LLVMValueRef i = LLVMBuildPhi(b, e->m->i64, s->var->name);
    LLVMAddIncoming(i, &begin, &before, 1);
    emit_bind(e, s->var, i);
    body(e, s);
    /* The test is at the bottom, since no range is empty: stmt_for drops loops
     * of extent 0. */
    LLVMValueRef next = LLVMBuildNSWAdd(b, i, module_int(e->m, step), "");
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntSLT, next, end, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMAddIncoming(i, &next, &latch, 1);
    LLVMBuildCondBr(b, more, top, done);
    LLVMPositionBuilderAtEnd(b, done);
}

static void plain_body(Emit *e, const Stmt *s)
{
    emit_stmt(e, s->body);
}

static void emit_lanes(Emit *e, const Stmt *s, int lanes)
{
    e->lane_var = s->var;
    e->lanes = lanes > 1 ? lanes : 0;
    emit_stmt(e, s->body);
    e->lane_var = NULL;
    e->lanes = 0;
}

static void chunk_body(Emit *e, const Stmt *s)
{
    emit_lanes(e, s, target_lanes(e->m->target, 4));
}

static void emit_vector_loop(Emit *e, const Stmt *s)
{
    int lanes = target_lanes(e->m->target, 4);
    int64_t full = s->extent / lanes, at = 0;
    /* Few full vectors are written out, and so is what is left, in pieces of
     * half, quarter ... the width: no scalar loop at the end. */
    const int64_t most_unrolled = 8;
    if (full > most_unrolled) {
        counted_loop(e, s, module_int(e->m, 0), module_int(e->m, full * lanes),
                     lanes, chunk_body);
        at = full * lanes;
    }
    while (at < s->extent) {
        int piece = lanes;
        while (piece > s->extent - at)
            piece /= 2;
        emit_bind(e, s->var, module_int(e->m, at));
        emit_lanes(e, s, piece);
        at += piece;
    }
}

static void emit_parallel(Emit *e, const Stmt *s);

/* ---- loops whose end is known at run time ---------------------------- */

/* What follows runs when `cond` holds, until end_if of the block returned. */
static LLVMBasicBlockRef begin_if(Emit *e, LLVMValueRef cond)
{
    LLVMContextRef c = e->m->context;
    LLVMBasicBlockRef then =
        LLVMAppendBasicBlockInContext(c, e->function, "if");
    LLVMBasicBlockRef join =
        LLVMAppendBasicBlockInContext(c, e->function, "endif");
    LLVMBuildCondBr(builder(e), cond, then, join);
    LLVMPositionBuilderAtEnd(builder(e), then);
    return join;
}

static void end_if(Emit *e, LLVMBasicBlockRef join)
{
    LLVMBuildBr(builder(e), join);
    LLVMPositionBuilderAtEnd(builder(e), join);
}

/* min(extent, limit): the number of iterations, which may be 0 or below. */
static LLVMValueRef loop_count(Emit *e, const Stmt *s)
{
    LLVMBuilderRef b = builder(e);
    LLVMValueRef extent = module_int(e->m, s->extent);
    if (!s->limit)
        return extent;
    LLVMValueRef limit = emit_value(e, s->limit);
    LLVMValueRef less = LLVMBuildICmp(b, LLVMIntSLT, limit, extent, "");
    return LLVMBuildSelect(b, less, limit, extent, "");
}

static void limited_loop(Emit *e, const Stmt *s, LLVMValueRef end,
                         int64_t step, LoopBody body)
{
    LLVMValueRef zero = module_int(e->m, 0);
    LLVMBasicBlockRef join =
        begin_if(e, LLVMBuildICmp(builder(e), LLVMIntSGT, end, zero, ""));
    counted_loop(e, s, zero, end, step, body);
    end_if(e, join);
}

/* Full vectors in a loop; what is left in pieces of half, quarter ... the
 * width, each of which runs or not. */
static void limited_vector_loop(Emit *e, const Stmt *s, LLVMValueRef count)
{
    LLVMBuilderRef b = builder(e);
    int lanes = target_lanes(e->m->target, 4);
    LLVMValueRef zero = module_int(e->m, 0);
    LLVMValueRef none = LLVMBuildICmp(b, LLVMIntSLT, count, zero, "");
    count = LLVMBuildSelect(b, none, zero, count, "");
    LLVMValueRef at =
        LLVMBuildAnd(b, count, module_int(e->m, -(int64_t)lanes), "");
    if (s->extent >= lanes)
        limited_loop(e, s, at, lanes, chunk_body);
    for (int piece = lanes / 2; piece; piece /= 2) {
        b = builder(e);
        LLVMValueRef size = module_int(e->m, piece);
        LLVMValueRef bit = LLVMBuildAnd(b, count, size, "");
        LLVMBasicBlockRef join =
            begin_if(e, LLVMBuildICmp(b, LLVMIntNE, bit, zero, ""));
        emit_bind(e, s->var, at);
        emit_lanes(e, s, piece);
        end_if(e, join);
        at = LLVMBuildAdd(b, at, bit, "");
    }
}

static void emit_limited(Emit *e, const Stmt *s)
{
    if (s->loop == LOOP_PARALLEL)
        emit_parallel(e, s);
    else if (s->loop == LOOP_VECTOR)
        limited_vector_loop(e, s, loop_count(e, s));
    else
        limited_loop(e, s, loop_count(e, s), 1, plain_body);
}

static void emit_stmt(Emit *e, const Stmt *s)
{
    switch (s->kind) {
    case STMT_BLOCK:
        for (int i = 0; i < s->list.count; i++)
            emit_stmt(e, s->list.data[i]);
        return;
    case STMT_STORE:
        emit_store(e, s);
        return;
    case STMT_PREFETCH:
        emit_prefetch(e, s);
        return;
    case STMT_IF: {
        if (e->lanes)
            die("kernel %s: if inside a vector loop", e->kernel->name);
        LLVMBasicBlockRef join = begin_if(e, emit_value(e, s->cond));
        emit_stmt(e, s->body);
        end_if(e, join);
        return;
    }
    case STMT_FOR:
        break;
    }
    if (s->limit) {
        emit_limited(e, s);
        return;
    }
    switch (s->loop) {
    case LOOP_UNROLLED:
        for (int64_t i = 0; i < s->extent; i++) {
            emit_bind(e, s->var, module_int(e->m, i));
            emit_stmt(e, s->body);
        }
        return;
    case LOOP_VECTOR:
        emit_vector_loop(e, s);
        return;
    case LOOP_PARALLEL:
        emit_parallel(e, s);
        return;
    case LOOP_SERIAL:
        counted_loop(e, s, module_int(e->m, 0), module_int(e->m, s->extent), 1,
                     plain_body);
        return;
    }
}

/* ---- functions ----------------------------------------------------- */

static void common_attributes(Emit *e, LLVMValueRef function)
{
    Module *m = e->m;
    char width[16];
    snprintf(width, sizeof width, "%d", m->target->vector_bytes * 8);
    /* Cores whose tuning prefers narrower vectors would halve the width. */
    module_text_attribute(m, function, "prefer-vector-width", width);
    module_text_attribute(m, function, "min-legal-vector-width", width);
    module_attribute(m, function, LLVMAttributeFunctionIndex, "nounwind", 0);
    if (m->sanitize)
        module_attribute(m, function, LLVMAttributeFunctionIndex,
                         "sanitize_address", 0);
    if (m->sanitize_threads)
        module_attribute(m, function, LLVMAttributeFunctionIndex,
                         "sanitize_thread", 0);
    /* A section of its own keeps an edit of one kernel from moving the
     * others. */
    char *section =
        arena_printf(e->m->arena, ".text.kernel.%s", e->kernel->name);
    LLVMSetSection(function, section);
}

/* An input that may share storage with an output (in place). */
static bool may_alias(const Kernel *k, const Buffer *in)
{
    for (int i = 0; i < k->params.count; i++) {
        const Buffer *out = k->params.data[i];
        if (out->role == BUF_OUTPUT && in->role == BUF_INPUT &&
            !in->is_constant && buffer_size(out) == buffer_size(in) &&
            dtype_size(out->dtype) == dtype_size(in->dtype))
            return true;
    }
    return false;
}

/* Starts `name(pointers..., begin, end)` for the statements of `e`. */
static LLVMValueRef start_inner(Emit *e, const char *name)
{
    Module *m = e->m;
    const Kernel *k = e->kernel;
    int n = k->params.count;
    LLVMTypeRef *types =
        arena_alloc_array(m->arena, (size_t)n + 2, sizeof *types);
    for (int i = 0; i < n; i++)
        types[i] = m->ptr;
    types[n] = types[n + 1] = m->i64;
    LLVMTypeRef type = LLVMFunctionType(m->void_, types, (unsigned)n + 2, 0);
    LLVMValueRef f = LLVMAddFunction(m->module, name, type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    common_attributes(e, f);
    bool aliased = false;
    for (int i = 0; i < n; i++)
        aliased |= may_alias(k, k->params.data[i]);
    for (int i = 0; i < n; i++) {
        const Buffer *b = k->params.data[i];
        bool alone = b->role == BUF_INPUT ? !may_alias(k, b)
                                          : !aliased || b->role == BUF_TEMP;
        if (alone)
            module_attribute(m, f, i + 1, "noalias", 0);
        if (b->role == BUF_INPUT)
            module_attribute(m, f, i + 1, "readonly", 0);
        module_attribute(m, f, i + 1, "nocapture", 0);
        module_attribute(m, f, i + 1, "align", 64);
    }
    return f;
}

/* The statements run by a function of their own; returns a task function
 * `name(args, begin, end)` that unpacks the pointers. */
static LLVMValueRef emit_task(Emit *outer, const Stmt *s, const char *name)
{
    Module *m = outer->m;
    LLVMBuilderRef b = m->builder;
    const Kernel *k = outer->kernel;
    int n = k->params.count;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
    Emit e = {.m = m, .kernel = k};
    const char *inner_name = arena_printf(m->arena, "%s.body", name);
    LLVMValueRef f = e.function = start_inner(&e, inner_name);
    e.params = arena_alloc_array(m->arena, (size_t)n + 2, sizeof *e.params);
    e.temps = arena_alloc_array(m->arena, (size_t)k->temps.count + 1,
                                sizeof *e.temps);
    LLVMGetParams(f, e.params);
    e.entry = LLVMAppendBasicBlockInContext(m->context, f, "entry");
    LLVMBasicBlockRef start =
        LLVMAppendBasicBlockInContext(m->context, f, "start");
    LLVMPositionBuilderAtEnd(b, start);
    if (s->kind == STMT_FOR && s->loop == LOOP_PARALLEL)
        counted_loop(&e, s, e.params[n], e.params[n + 1], 1, plain_body);
    else
        emit_stmt(&e, s);
    LLVMBuildRetVoid(b);
    LLVMPositionBuilderAtEnd(b, e.entry);
    LLVMBuildBr(b, start);
    ptrmap_free(&e.vars);

    LLVMTypeRef types[] = {m->ptr, m->i64, m->i64};
    LLVMValueRef task = LLVMAddFunction(
        m->module, name, LLVMFunctionType(m->void_, types, 3, 0));
    LLVMSetLinkage(task, LLVMInternalLinkage);
    common_attributes(&e, task);
    LLVMPositionBuilderAtEnd(
        b, LLVMAppendBasicBlockInContext(m->context, task, "entry"));
    LLVMValueRef *pass =
        arena_alloc_array(m->arena, (size_t)n + 2, sizeof *pass);
    for (int i = 0; i < n; i++) {
        LLVMValueRef index = module_int(m, i);
        LLVMValueRef at = LLVMBuildInBoundsGEP2(
            b, m->ptr, LLVMGetParam(task, 0), &index, 1, "");
        pass[i] = LLVMBuildLoad2(b, m->ptr, at, "");
    }
    pass[n] = LLVMGetParam(task, 1);
    pass[n + 1] = LLVMGetParam(task, 2);
    LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, pass, (unsigned)n + 2, "");
    LLVMBuildRetVoid(b);
    LLVMPositionBuilderAtEnd(b, here);
    return task;
}

/* The pointers of the outer function, for what it computes itself. */
static void load_params(Emit *e)
{
    Module *m = e->m;
    int n = e->kernel->params.count;
    e->params = arena_alloc_array(m->arena, (size_t)n + 1, sizeof *e->params);
    for (int i = 0; i < n; i++) {
        LLVMValueRef index = module_int(m, i);
        LLVMValueRef at =
            LLVMBuildInBoundsGEP2(m->builder, m->ptr, e->args, &index, 1, "");
        e->params[i] = LLVMBuildLoad2(m->builder, m->ptr, at, "");
    }
}

static void emit_parallel(Emit *e, const Stmt *s)
{
    Module *m = e->m;
    if (s->limit && !e->params)
        load_params(e);
    const char *name =
        arena_printf(e->m->arena, "%s.task%d", e->kernel->name, e->tasks++);
    LLVMValueRef task = emit_task(e, s, name);
    LLVMTypeRef types[] = {m->ptr, m->ptr, m->ptr, m->i64};
    LLVMValueRef args[] = {module_run_field(m, e->run, 5), task, e->args,
                           loop_count(e, s)};
    LLVMBuildCall2(m->builder, LLVMFunctionType(m->void_, types, 4, 0),
                   module_run_field(m, e->run, 4), args, 4, "");
}

static bool has_parallel(const Stmt *s)
{
    if (s->kind == STMT_FOR)
        return s->loop == LOOP_PARALLEL;
    for (int i = 0; i < s->list.count; i++)
        if (has_parallel(s->list.data[i]))
            return true;
    return false;
}

/* Outside any loop: parallel loops become tasks, the rest runs here. */
static void emit_top(Emit *e, const Stmt *s)
{
    if (s->kind == STMT_BLOCK && has_parallel(s)) {
        for (int i = 0; i < s->list.count; i++)
            emit_top(e, s->list.data[i]);
        return;
    }
    if (s->kind == STMT_FOR && s->loop == LOOP_PARALLEL) {
        emit_parallel(e, s);
        return;
    }
    LLVMValueRef none[] = {e->args, module_int(e->m, 0), module_int(e->m, 1)};
    LLVMValueRef t = emit_task(
        e, s,
        arena_printf(e->m->arena, "%s.part%d", e->kernel->name, e->tasks++));
    LLVMBuildCall2(builder(e), LLVMGlobalGetValueType(t), t, none, 3, "");
}

void emit_kernel(Module *m, const Kernel *kernel)
{
    LLVMBuilderRef b = m->builder;
    Emit e = {.m = m, .kernel = kernel};
    LLVMValueRef f = e.function =
        LLVMAddFunction(m->module, kernel->name, module_kernel_type(m));
    common_attributes(&e, f);
    /* On a page of its own, for the same reason as the section. */
    LLVMSetAlignment(f, 4096);
    e.run = LLVMGetParam(f, 0);
    e.args = LLVMGetParam(f, 1);
    LLVMPositionBuilderAtEnd(
        b, LLVMAppendBasicBlockInContext(m->context, f, "entry"));
    emit_top(&e, kernel->body);
    LLVMBuildRetVoid(b);
}
