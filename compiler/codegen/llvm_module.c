/* Wrappers over the LLVM C API, and the program's `run`. */
#include <string.h>

#include "codegen/facts.h"
#include "codegen/llvm.h"
#include "runtime/abi.h"

void module_open(Module *m, const Target *target, const char *name)
{
    memset(m, 0, sizeof *m);
    m->arena = arena_new();
    m->target = target;
    m->context = LLVMContextCreate();
    m->module = LLVMModuleCreateWithNameInContext(name, m->context);
    m->builder = LLVMCreateBuilderInContext(m->context);
    m->ptr = LLVMPointerTypeInContext(m->context, 0);
    m->i64 = LLVMInt64TypeInContext(m->context);
    m->i32 = LLVMInt32TypeInContext(m->context);
    m->i8 = LLVMInt8TypeInContext(m->context);
    m->i1 = LLVMInt1TypeInContext(m->context);
    m->f32 = LLVMFloatTypeInContext(m->context);
    m->f64 = LLVMDoubleTypeInContext(m->context);
    m->void_ = LLVMVoidTypeInContext(m->context);
}

void module_close(Module *m)
{
    LLVMDisposeBuilder(m->builder);
    if (m->module)
        LLVMDisposeModule(m->module);
    LLVMContextDispose(m->context);
    arena_free(m->arena);
}

LLVMTypeRef module_type(const Module *m, DType dtype)
{
    switch (dtype) {
    case DT_F64:
        return m->f64;
    case DT_F32:
        return m->f32;
    /* f16 and bf16 are held as their bits, which is the default. */
    case DT_BOOL:
        return m->i1;
    default:
        return LLVMIntTypeInContext(m->context,
                                    (unsigned)dtype_size(dtype) * 8);
    }
}

LLVMValueRef module_int(const Module *m, int64_t value)
{
    return LLVMConstInt(m->i64, (unsigned long long)value, 1);
}

LLVMValueRef module_intrinsic(Module *m, const char *name, LLVMTypeRef type,
                              LLVMValueRef *args, unsigned count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(m->module, id, &type, 1);
    return LLVMBuildCall2(m->builder, LLVMGlobalGetValueType(fn), fn, args,
                          count, "");
}

void module_text_attribute(Module *m, LLVMValueRef function, const char *key,
                           const char *value)
{
    LLVMAddAttributeAtIndex(
        function, LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(m->context, key, (unsigned)strlen(key),
                                  value, (unsigned)strlen(value)));
}

void module_attribute(Module *m, LLVMValueRef function, int index,
                      const char *name, uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)index,
                            LLVMCreateEnumAttribute(m->context, kind, value));
}

LLVMTypeRef module_kernel_type(const Module *m)
{
    LLVMTypeRef types[] = {m->ptr, m->ptr};
    return LLVMFunctionType(m->void_, types, 2, 0);
}

LLVMValueRef module_run_field(Module *m, LLVMValueRef run, unsigned index)
{
    LLVMValueRef at = module_int(m, index);
    LLVMValueRef p =
        LLVMBuildInBoundsGEP2(m->builder, m->ptr, run, &at, 1, "");
    return LLVMBuildLoad2(m->builder, m->ptr, p, "");
}

/* Calls run->on_step(user, step, is_end) when it is set. */
static void emit_hook(Module *m, LLVMValueRef f, LLVMValueRef run, int step,
                      int is_end)
{
    LLVMBuilderRef b = m->builder;
    LLVMValueRef hook = module_run_field(m, run, 6);
    LLVMBasicBlockRef call =
        LLVMAppendBasicBlockInContext(m->context, f, "hook");
    LLVMBasicBlockRef next =
        LLVMAppendBasicBlockInContext(m->context, f, "step");
    LLVMValueRef none =
        LLVMBuildICmp(b, LLVMIntEQ, hook, LLVMConstNull(m->ptr), "");
    LLVMBuildCondBr(b, none, next, call);
    LLVMPositionBuilderAtEnd(b, call);
    LLVMTypeRef types[] = {m->ptr, m->i32, m->i32};
    LLVMValueRef args[] = {module_run_field(m, run, 7),
                           LLVMConstInt(m->i32, (unsigned)step, 0),
                           LLVMConstInt(m->i32, (unsigned)is_end, 0)};
    LLVMBuildCall2(b, LLVMFunctionType(m->void_, types, 3, 0), hook, args, 3,
                   "");
    LLVMBuildBr(b, next);
    LLVMPositionBuilderAtEnd(b, next);
}

static LLVMValueRef buffer_address(Module *m, const Program *p, int index,
                                   const LLVMValueRef base[5])
{
    const ProgramBuffer *pb = &p->buffers.data[index];
    while (pb->alias_of >= 0 && pb->kind == PB_ARENA &&
           p->buffers.data[pb->alias_of].kind != PB_ARENA)
        pb = &p->buffers.data[pb->alias_of];
    LLVMValueRef at = module_int(m, pb->offset);
    if (pb->kind == PB_EXTENTS)
        return base[4];
    if (pb->kind == PB_INPUT || pb->kind == PB_OUTPUT) {
        LLVMValueRef slot = LLVMBuildInBoundsGEP2(
            m->builder, m->ptr, base[pb->kind == PB_INPUT ? 0 : 1], &at, 1,
            "");
        return LLVMBuildLoad2(m->builder, m->ptr, slot, "");
    }
    return LLVMBuildInBoundsGEP2(
        m->builder, m->i8, base[pb->kind == PB_CONSTANT ? 2 : 3], &at, 1, "");
}

static void emit_facts(Module *m, const Program *program)
{
    Facts facts = program_facts(program);
    LLVMValueRef items[FACT_COUNT];
    for (int i = 0; i < FACT_COUNT; i++)
        items[i] = LLVMConstInt(m->i64, facts.item[i], 0);
    LLVMValueRef global = LLVMAddGlobal(
        m->module, LLVMArrayType2(m->i64, FACT_COUNT), "assay_model_facts");
    LLVMSetInitializer(global, LLVMConstArray2(m->i64, items, FACT_COUNT));
    LLVMSetGlobalConstant(global, 1);
}

/* What emitting steps needs at hand. */
typedef struct Steps {
    Module *m;
    const Program *program;
    LLVMValueRef f, run, base[5], args;
} Steps;

static void emit_call(Steps *s, int index)
{
    Module *m = s->m;
    LLVMBuilderRef b = m->builder;
    const ProgramStep *step = &s->program->steps.data[index];
    const char *name = s->program->kernels.data[step->kernel].kernel->name;
    LLVMValueRef kernel = LLVMGetNamedFunction(m->module, name);
    if (!kernel)
        kernel = LLVMAddFunction(m->module, name, module_kernel_type(m));
    emit_hook(m, s->f, s->run, index, 0);
    for (int k = 0; k < step->arg_count; k++) {
        LLVMValueRef at = module_int(m, k);
        LLVMValueRef slot =
            LLVMBuildInBoundsGEP2(b, m->ptr, s->args, &at, 1, "");
        LLVMBuildStore(
            b, buffer_address(m, s->program, step->args[k], s->base), slot);
    }
    LLVMValueRef pass[] = {s->run, s->args};
    LLVMBuildCall2(b, module_kernel_type(m), kernel, pass, 2, "");
    emit_hook(m, s->f, s->run, index, 1);
}

static LLVMValueRef load_element(Steps *s, int buffer, LLVMTypeRef type)
{
    return LLVMBuildLoad2(s->m->builder, type,
                          buffer_address(s->m, s->program, buffer, s->base),
                          "");
}

static LLVMValueRef load_condition(Steps *s, int buffer)
{
    return LLVMBuildICmp(s->m->builder, LLVMIntNE,
                         load_element(s, buffer, s->m->i8),
                         LLVMConstInt(s->m->i8, 0, 0), "");
}

static LLVMBasicBlockRef add_block(Steps *s, const char *name)
{
    return LLVMAppendBasicBlockInContext(s->m->context, s->f, name);
}

static void emit_block(Steps *s, int parent, bool in_otherwise, int first,
                       int end);

static void emit_branch(Steps *s, int index)
{
    const ProgramRegion *r = &s->program->regions.data[index];
    LLVMBuilderRef b = s->m->builder;
    LLVMBasicBlockRef then = add_block(s, "then");
    LLVMBasicBlockRef otherwise = add_block(s, "else");
    LLVMBasicBlockRef join = add_block(s, "join");

    LLVMBuildCondBr(b, load_condition(s, r->cond), then, otherwise);
    LLVMPositionBuilderAtEnd(b, then);
    emit_block(s, index, false, r->first, r->otherwise);
    LLVMBuildBr(b, join);
    LLVMPositionBuilderAtEnd(b, otherwise);
    emit_block(s, index, true, r->otherwise, r->end);
    LLVMBuildBr(b, join);
    LLVMPositionBuilderAtEnd(b, join);
}

static void emit_loop(Steps *s, int index)
{
    const ProgramRegion *r = &s->program->regions.data[index];
    Module *m = s->m;
    LLVMBuilderRef b = m->builder;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef head = add_block(s, "head");
    LLVMBasicBlockRef body = add_block(s, "body");
    LLVMBasicBlockRef done = add_block(s, "done");
    LLVMValueRef most = r->trips >= 0 ? load_element(s, r->trips, m->i64)
                                      : module_int(m, r->most);
    LLVMValueRef zero = module_int(m, 0);

    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    LLVMValueRef i = LLVMBuildPhi(b, m->i64, "i");
    LLVMAddIncoming(i, &zero, &before, 1);
    LLVMValueRef more = LLVMBuildICmp(b, LLVMIntSLT, i, most, "");
    if (r->cond >= 0)
        more = LLVMBuildAnd(b, more, load_condition(s, r->cond), "");
    LLVMBuildCondBr(b, more, body, done);
    LLVMPositionBuilderAtEnd(b, body);
    if (r->counter >= 0)
        LLVMBuildStore(b, i,
                       buffer_address(m, s->program, r->counter, s->base));
    emit_block(s, index, false, r->first, r->end);
    LLVMValueRef next = LLVMBuildNSWAdd(b, i, module_int(m, 1), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMAddIncoming(i, &next, &latch, 1);
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, done);
}

/* Steps with the regions directly among them. */
static void emit_block(Steps *s, int parent, bool in_otherwise, int first,
                       int end)
{
    int region = -1;

    for (;;) {
        region = program_next_region(s->program, parent, in_otherwise, first,
                                     end, region);
        const ProgramRegion *r =
            region >= 0 ? &s->program->regions.data[region] : NULL;
        for (; first < (r ? r->first : end); first++)
            emit_call(s, first);
        if (!r)
            return;
        if (r->kind == REGION_BRANCH)
            emit_branch(s, region);
        else
            emit_loop(s, region);
        first = r->end;
    }
}

/* Steps `first` to `end` - 1 as a function of their own: LLVM's work on one
 * function grows faster than its size. */
static void emit_steps(Module *m, const Program *program, int first, int end,
                       LLVMValueRef f)
{
    LLVMBuilderRef b = m->builder;
    LLVMPositionBuilderAtEnd(
        b, LLVMAppendBasicBlockInContext(m->context, f, "entry"));
    Steps s = {.m = m, .program = program, .f = f, .run = LLVMGetParam(f, 0)};
    for (unsigned i = 0; i < 4; i++)
        s.base[i] = module_run_field(m, s.run, i);
    if (program->symbols.count)
        s.base[4] = module_run_field(m, s.run, 8);
    int most = 1;
    for (int i = first; i < end; i++)
        if (program->steps.data[i].arg_count > most)
            most = program->steps.data[i].arg_count;
    LLVMTypeRef args_type = LLVMArrayType2(m->ptr, (uint64_t)most);
    s.args = LLVMBuildAlloca(b, args_type, "args");
    emit_block(&s, -1, false, first, end);
    LLVMBuildRetVoid(b);
}

void emit_model(Module *m, const Program *program)
{
    enum { STEPS_A_PART = 64 };
    LLVMBuilderRef b = m->builder;
    LLVMValueRef abi = LLVMAddGlobal(m->module, m->i32, "assay_model_abi");
    LLVMSetInitializer(abi, LLVMConstInt(m->i32, ASSAY_ABI_VERSION, 0));
    LLVMSetGlobalConstant(abi, 1);
    emit_facts(m, program);
    LLVMTypeRef types[] = {m->ptr};
    LLVMTypeRef type = LLVMFunctionType(m->void_, types, 1, 0);
    LLVMValueRef f = LLVMAddFunction(m->module, "assay_model_run", type);
    int count = program->steps.count;
    if (count <= STEPS_A_PART) {
        emit_steps(m, program, 0, count, f);
        return;
    }
    int parts = 0;
    LLVMValueRef *part =
        ARENA_ARRAY(m->arena, LLVMValueRef, count / STEPS_A_PART + 1);
    for (int first = 0, end; first < count; first = end, parts++) {
        end = program_cut(program, first, STEPS_A_PART);
        part[parts] = LLVMAddFunction(
            m->module, arena_printf(m->arena, "assay_model_part%d", parts),
            type);
        LLVMSetLinkage(part[parts], LLVMInternalLinkage);
        emit_steps(m, program, first, end, part[parts]);
    }
    LLVMPositionBuilderAtEnd(
        b, LLVMAppendBasicBlockInContext(m->context, f, "entry"));
    for (int i = 0; i < parts; i++) {
        LLVMValueRef run = LLVMGetParam(f, 0);
        LLVMBuildCall2(b, type, part[i], &run, 1, "");
    }
    LLVMBuildRetVoid(b);
}
