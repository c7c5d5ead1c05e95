/* Expressions, loads and stores to LLVM IR, for one element or for all lanes
 * of a vector loop. */
#include <math.h>
#include <string.h>

#include "codegen/llvm_emit.h"

typedef struct Memo Memo;
/* Values of expressions already emitted; a branch gets its own level, as
 * its values do not dominate what follows. */
struct Memo {
    PtrMap scalar, vector;
    const Memo *parent;
};

static LLVMBuilderRef builder(const Emit *e)
{
    return e->m->builder;
}

void emit_bind(Emit *e, const Var *var, LLVMValueRef value)
{
    ptrmap_set(&e->vars, var, value);
}

/* ---- memory -------------------------------------------------------- */

/* A bool is a byte in memory and an i1 in registers; any byte but 0 is
 * true. */
static LLVMTypeRef memory_type(const Emit *e, DType dtype)
{
    return dtype == DT_BOOL ? e->m->i8 : module_type(e->m, dtype);
}

static LLVMValueRef buffer_pointer(Emit *e, const Buffer *b)
{
    const Kernel *k = e->kernel;
    for (int i = 0; i < k->params.count; i++)
        if (k->params.data[i] == b)
            return e->params[i];
    int t = 0;
    while (t < k->temps.count && k->temps.data[t] != b)
        t++;
    if (t == k->temps.count)
        die("kernel %s has no buffer %s", k->name, b->name);
    if (e->temps[t])
        return e->temps[t];
    /* Allocas go to the entry block: SROA takes them from there only, and one
     * in a loop would eat the stack. */
    LLVMBasicBlockRef here = LLVMGetInsertBlock(builder(e));
    LLVMValueRef first = LLVMGetFirstInstruction(e->entry);
    if (first)
        LLVMPositionBuilderBefore(builder(e), first);
    else
        LLVMPositionBuilderAtEnd(builder(e), e->entry);
    LLVMTypeRef type =
        LLVMArrayType2(memory_type(e, b->dtype), (uint64_t)buffer_size(b));
    e->temps[t] = LLVMBuildAlloca(builder(e), type, b->name);
    LLVMSetAlignment(e->temps[t], 64);
    LLVMPositionBuilderAtEnd(builder(e), here);
    return e->temps[t];
}

static LLVMValueRef element_pointer(Emit *e, const Buffer *b,
                                    LLVMValueRef offset)
{
    LLVMValueRef base = buffer_pointer(e, b);
    return LLVMBuildInBoundsGEP2(builder(e), memory_type(e, b->dtype), base,
                                 &offset, 1, "");
}

static LLVMTypeRef with_lanes(LLVMTypeRef type, int lanes)
{
    return lanes ? LLVMVectorType(type, (unsigned)lanes) : type;
}

static LLVMValueRef load_at(Emit *e, const Buffer *b, LLVMValueRef pointer,
                            int lanes)
{
    LLVMTypeRef type = with_lanes(memory_type(e, b->dtype), lanes);
    LLVMValueRef v = LLVMBuildLoad2(builder(e), type, pointer, "");
    /* The element's alignment for vectors, too: a row may start anywhere. */
    LLVMSetAlignment(v, (unsigned)dtype_size(b->dtype));
    if (b->dtype == DT_BOOL)
        v = LLVMBuildICmp(builder(e), LLVMIntNE, v, LLVMConstNull(type), "");
    return v;
}

static void store_at(Emit *e, const Buffer *b, LLVMValueRef pointer,
                     LLVMValueRef value, int lanes)
{
    if (b->dtype == DT_BOOL)
        value =
            LLVMBuildZExt(builder(e), value, with_lanes(e->m->i8, lanes), "");
    LLVMValueRef s = LLVMBuildStore(builder(e), value, pointer);
    LLVMSetAlignment(s, (unsigned)dtype_size(b->dtype));
}

static LLVMValueRef splat(Emit *e, LLVMValueRef v, int lanes)
{
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(v), (unsigned)lanes);
    LLVMValueRef zero = LLVMConstInt(e->m->i32, 0, 0);
    v = LLVMBuildInsertElement(builder(e), LLVMGetPoison(type), v, zero, "");
    LLVMValueRef mask =
        LLVMConstNull(LLVMVectorType(e->m->i32, (unsigned)lanes));
    return LLVMBuildShuffleVector(builder(e), v, LLVMGetPoison(type), mask,
                                  "");
}

/* x == factor * var + rest; false when var is used in another way. */
static bool affine_factor(const Expr *x, const Var *var, int64_t *factor)
{
    int64_t a, b;
    switch (x->kind) {
    case EX_VAR:
        *factor = x->var == var;
        return true;
    case EX_ADD:
    case EX_SUB:
        if (!affine_factor(x->arg[0], var, &a) ||
            !affine_factor(x->arg[1], var, &b))
            return false;
        *factor = x->kind == EX_ADD ? a + b : a - b;
        return true;
    case EX_MUL:
        if (x->arg[1]->kind == EX_INT && affine_factor(x->arg[0], var, &a)) {
            *factor = a * x->arg[1]->i;
            return true;
        }
        break;
    default:
        break;
    }
    *factor = 0;
    return !expr_uses_var(x, var);
}

/* ---- expressions --------------------------------------------------- */

static LLVMValueRef emit_scalar(Emit *e, Memo *memo, const Expr *x);
static LLVMValueRef emit_vector(Emit *e, Memo *memo, const Expr *x);

static LLVMValueRef lookup(const Memo *memo, const Expr *x, bool vector)
{
    for (; memo; memo = memo->parent) {
        const void *v = ptrmap_get(vector ? &memo->vector : &memo->scalar, x);
        if (v)
            return (LLVMValueRef)v;
    }
    return NULL;
}

static LLVMValueRef emit(Emit *e, Memo *memo, const Expr *x, bool vector)
{
    return vector ? emit_vector(e, memo, x) : emit_scalar(e, memo, x);
}

static bool has_load(const Expr *x)
{
    if (x->kind == EX_LOAD)
        return true;
    for (int i = 0; i < x->count; i++)
        if (has_load(x->arg[i]))
            return true;
    return false;
}

static LLVMValueRef const_of(Emit *e, const Expr *x)
{
    LLVMTypeRef type = module_type(e->m, x->dtype);
    return x->kind == EX_INT ? LLVMConstInt(type, (unsigned long long)x->i, 1)
                             : LLVMConstReal(type, x->f);
}

static LLVMValueRef floor_division(Emit *e, bool mod, LLVMValueRef x,
                                   LLVMValueRef y)
{
    /* The divisor is positive: one correction where the rest is negative. */
    LLVMBuilderRef b = builder(e);
    LLVMTypeRef type = LLVMTypeOf(x);
    LLVMValueRef zero = LLVMConstNull(type);
    LLVMValueRef rest = LLVMBuildSRem(b, x, y, "");
    LLVMValueRef low = LLVMBuildICmp(b, LLVMIntSLT, rest, zero, "");
    if (mod)
        return LLVMBuildSelect(b, low, LLVMBuildAdd(b, rest, y, ""), rest, "");
    LLVMValueRef q = LLVMBuildSDiv(b, x, y, "");
    return LLVMBuildAdd(b, q, LLVMBuildSExt(b, low, type, ""), "");
}

static bool is_not_nan(const Expr *x)
{
    return x->kind == EX_FLOAT && !isnan(x->f);
}

/* The result is NaN when either side is. x86's max returns its second
 * operand then, so a constant goes first. */
static LLVMValueRef float_min_max(Emit *e, const Expr *x, LLVMValueRef p,
                                  LLVMValueRef q)
{
    LLVMBuilderRef b = builder(e);
    LLVMRealPredicate wins = x->kind == EX_MAX ? LLVMRealOGT : LLVMRealOLT;
    if (is_not_nan(x->arg[1])) {
        LLVMValueRef swap = p;
        p = q;
        q = swap;
    }
    LLVMValueRef better = LLVMBuildFCmp(b, wins, p, q, "");
    LLVMValueRef best = LLVMBuildSelect(b, better, p, q, "");
    if (is_not_nan(x->arg[0]) || is_not_nan(x->arg[1]))
        return best;
    LLVMValueRef nan = LLVMBuildFCmp(b, LLVMRealUNO, p, p, "");
    return LLVMBuildSelect(b, nan, p, best, "");
}

static LLVMValueRef emit_binary(Emit *e, const Expr *x, LLVMValueRef p,
                                LLVMValueRef q)
{
    LLVMBuilderRef b = builder(e);
    DType dtype = x->arg[0]->dtype;
    bool f = dtype_is_float(dtype), s = dtype_is_signed(dtype);
    switch (x->kind) {
    case EX_ADD:
        return f ? LLVMBuildFAdd(b, p, q, "") : LLVMBuildAdd(b, p, q, "");
    case EX_SUB:
        return f ? LLVMBuildFSub(b, p, q, "") : LLVMBuildSub(b, p, q, "");
    case EX_MUL:
        return f ? LLVMBuildFMul(b, p, q, "") : LLVMBuildMul(b, p, q, "");
    case EX_DIV:
        if (f)
            return LLVMBuildFDiv(b, p, q, "");
        return s ? floor_division(e, false, p, q) : LLVMBuildUDiv(b, p, q, "");
    case EX_MOD:
        if (f)
            break;
        return s ? floor_division(e, true, p, q) : LLVMBuildURem(b, p, q, "");
    case EX_MIN:
    case EX_MAX: {
        if (f)
            return float_min_max(e, x, p, q);
        LLVMIntPredicate less = s ? LLVMIntSLT : LLVMIntULT;
        LLVMValueRef c = x->kind == EX_MIN ? LLVMBuildICmp(b, less, p, q, "")
                                           : LLVMBuildICmp(b, less, q, p, "");
        return LLVMBuildSelect(b, c, p, q, "");
    }
    case EX_AND:
        return LLVMBuildAnd(b, p, q, "");
    case EX_OR:
        return LLVMBuildOr(b, p, q, "");
    case EX_XOR:
        return LLVMBuildXor(b, p, q, "");
    case EX_SHL:
        return LLVMBuildShl(b, p, q, "");
    case EX_SHR:
        return s ? LLVMBuildAShr(b, p, q, "") : LLVMBuildLShr(b, p, q, "");
    case EX_LT:
        return f ? LLVMBuildFCmp(b, LLVMRealOLT, p, q, "")
                 : LLVMBuildICmp(b, s ? LLVMIntSLT : LLVMIntULT, p, q, "");
    case EX_LE:
        return f ? LLVMBuildFCmp(b, LLVMRealOLE, p, q, "")
                 : LLVMBuildICmp(b, s ? LLVMIntSLE : LLVMIntULE, p, q, "");
    case EX_EQ:
        return f ? LLVMBuildFCmp(b, LLVMRealOEQ, p, q, "")
                 : LLVMBuildICmp(b, LLVMIntEQ, p, q, "");
    case EX_NE:
        return f ? LLVMBuildFCmp(b, LLVMRealUNE, p, q, "")
                 : LLVMBuildICmp(b, LLVMIntNE, p, q, "");
    default:
        break;
    }
    die("kernel %s: %s of %s has no LLVM form", e->kernel->name,
        expr_kind_name(x->kind), dtype_name(dtype));
}

static LLVMValueRef emit_cast(Emit *e, const Expr *x, LLVMValueRef p,
                              int lanes)
{
    LLVMBuilderRef b = builder(e);
    DType from = x->arg[0]->dtype, to = x->dtype;
    LLVMTypeRef type = with_lanes(module_type(e->m, to), lanes);
    bool from_float = dtype_is_float(from), to_float = dtype_is_float(to);
    if (to == DT_BOOL)
        return from_float ? LLVMBuildFCmp(b, LLVMRealUNE, p,
                                          LLVMConstNull(LLVMTypeOf(p)), "")
                          : LLVMBuildICmp(b, LLVMIntNE, p,
                                          LLVMConstNull(LLVMTypeOf(p)), "");
    if (from_float && to_float)
        return LLVMBuildFPCast(b, p, type, "");
    if (to_float)
        return dtype_is_signed(from) ? LLVMBuildSIToFP(b, p, type, "")
                                     : LLVMBuildUIToFP(b, p, type, "");
    if (from_float) {
        /* Plain fptosi is poison out of range. */
        const char *name =
            dtype_is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
        LLVMTypeRef types[] = {type, LLVMTypeOf(p)};
        unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
        LLVMValueRef fn =
            LLVMGetIntrinsicDeclaration(e->m->module, id, types, 2);
        return LLVMBuildCall2(b, LLVMGlobalGetValueType(fn), fn, &p, 1, "");
    }
    return LLVMBuildIntCast2(b, p, type, dtype_is_signed(from), "");
}

static LLVMValueRef emit_unary(Emit *e, const Expr *x, LLVMValueRef p,
                               int lanes)
{
    static const char *const intrinsics[EX_KIND_COUNT] = {
        [EX_ABS] = "llvm.fabs",  [EX_FLOOR] = "llvm.floor",
        [EX_CEIL] = "llvm.ceil", [EX_ROUND] = "llvm.roundeven",
        [EX_SQRT] = "llvm.sqrt",
    };
    LLVMBuilderRef b = builder(e);
    bool f = dtype_is_float(x->arg[0]->dtype);
    if (x->kind == EX_CAST)
        return emit_cast(e, x, p, lanes);
    if (x->kind == EX_BITCAST)
        return LLVMBuildBitCast(
            b, p, with_lanes(module_type(e->m, x->dtype), lanes), "");
    if (x->kind == EX_NEG)
        return f ? LLVMBuildFNeg(b, p, "") : LLVMBuildNeg(b, p, "");
    if (x->kind == EX_NOT)
        return LLVMBuildNot(b, p, "");
    if (x->kind == EX_ABS && !f) {
        LLVMValueRef low =
            LLVMBuildICmp(b, LLVMIntSLT, p, LLVMConstNull(LLVMTypeOf(p)), "");
        return LLVMBuildSelect(b, low, LLVMBuildNeg(b, p, ""), p, "");
    }
    if (!intrinsics[x->kind] || !f)
        die("kernel %s: %s of %s has no LLVM form", e->kernel->name,
            expr_kind_name(x->kind), dtype_name(x->dtype));
    return module_intrinsic(e->m, intrinsics[x->kind], LLVMTypeOf(p), &p, 1);
}

/* Both sides in blocks of their own, so that only one is evaluated. */
static LLVMValueRef emit_branch(Emit *e, Memo *memo, const Expr *x,
                                LLVMValueRef cond, bool vector)
{
    LLVMBuilderRef b = builder(e);
    LLVMBasicBlockRef block[2], end[2];
    LLVMValueRef value[2];
    LLVMContextRef c = e->m->context;
    block[0] = LLVMAppendBasicBlockInContext(c, e->function, "then");
    block[1] = LLVMAppendBasicBlockInContext(c, e->function, "else");
    LLVMBasicBlockRef join =
        LLVMAppendBasicBlockInContext(c, e->function, "join");
    LLVMBuildCondBr(b, cond, block[0], block[1]);
    for (int i = 0; i < 2; i++) {
        Memo inner = {.parent = memo};
        LLVMPositionBuilderAtEnd(b, block[i]);
        value[i] = emit(e, &inner, x->arg[1 + i], vector);
        end[i] = LLVMGetInsertBlock(b);
        LLVMBuildBr(b, join);
        ptrmap_free(&inner.scalar);
        ptrmap_free(&inner.vector);
    }
    LLVMPositionBuilderAtEnd(b, join);
    LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(value[0]), "");
    LLVMAddIncoming(phi, value, end, 2);
    return phi;
}

static LLVMValueRef emit_scalar(Emit *e, Memo *memo, const Expr *x)
{
    LLVMValueRef known = lookup(memo, x, false);
    if (known)
        return known;
    LLVMBuilderRef b = builder(e);
    LLVMValueRef v, p[3];
    switch (x->kind) {
    case EX_INT:
    case EX_FLOAT:
        v = const_of(e, x);
        break;
    case EX_VAR:
        v = (LLVMValueRef)ptrmap_get(&e->vars, x->var);
        if (!v)
            die("kernel %s: %s is not bound", e->kernel->name, x->var->name);
        break;
    case EX_LOAD:
        p[0] = emit_scalar(e, memo, x->arg[0]);
        v = load_at(e, x->buffer, element_pointer(e, x->buffer, p[0]), 0);
        break;
    case EX_SELECT:
        p[0] = emit_scalar(e, memo, x->arg[0]);
        if (has_load(x->arg[1]) || has_load(x->arg[2])) {
            v = emit_branch(e, memo, x, p[0], false);
            break;
        }
        p[1] = emit_scalar(e, memo, x->arg[1]);
        p[2] = emit_scalar(e, memo, x->arg[2]);
        v = LLVMBuildSelect(b, p[0], p[1], p[2], "");
        break;
    default:
        for (int i = 0; i < x->count; i++)
            p[i] = emit_scalar(e, memo, x->arg[i]);
        v = x->kind == EX_FMA
                ? module_intrinsic(e->m, "llvm.fma", LLVMTypeOf(p[0]), p, 3)
            : x->count == 1 ? emit_unary(e, x, p[0], 0)
                            : emit_binary(e, x, p[0], p[1]);
    }
    ptrmap_set(&memo->scalar, x, v);
    return v;
}

/* Element pointers of all lanes, from a vector of offsets. */
static LLVMValueRef gather_pointers(Emit *e, const Buffer *b,
                                    LLVMValueRef offsets)
{
    LLVMValueRef base = buffer_pointer(e, b);
    return LLVMBuildInBoundsGEP2(builder(e), memory_type(e, b->dtype), base,
                                 &offsets, 1, "");
}

static LLVMValueRef call_masked(Emit *e, const char *name, LLVMTypeRef type,
                                LLVMValueRef pointer, LLVMValueRef mask,
                                unsigned align)
{
    LLVMTypeRef types[] = {type, LLVMTypeOf(pointer)};
    LLVMValueRef args[] = {pointer, LLVMConstInt(e->m->i32, align, 0), mask,
                           LLVMConstNull(type)};
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(e->m->module, id, types, 2);
    return LLVMBuildCall2(builder(e), LLVMGlobalGetValueType(fn), fn, args, 4,
                          "");
}

static LLVMValueRef all_lanes(Emit *e)
{
    return LLVMConstAllOnes(LLVMVectorType(e->m->i1, (unsigned)e->lanes));
}

static LLVMValueRef emit_vector_load(Emit *e, Memo *memo, const Expr *x)
{
    const Buffer *b = x->buffer;
    int64_t factor;
    bool affine = affine_factor(x->arg[0], e->lane_var, &factor);
    unsigned size = (unsigned)dtype_size(b->dtype);
    LLVMTypeRef type =
        LLVMVectorType(memory_type(e, b->dtype), (unsigned)e->lanes);
    LLVMValueRef v;
    if (affine && factor == 1 && !e->mask) {
        LLVMValueRef at = emit_scalar(e, memo, x->arg[0]);
        return load_at(e, b, element_pointer(e, b, at), e->lanes);
    }
    if (affine && factor == 1) {
        LLVMValueRef at = emit_scalar(e, memo, x->arg[0]);
        v = call_masked(e, "llvm.masked.load", type, element_pointer(e, b, at),
                        e->mask, size);
    } else if (affine && factor == 0 && !e->mask) {
        LLVMValueRef at = emit_scalar(e, memo, x->arg[0]);
        v = load_at(e, b, element_pointer(e, b, at), 0);
        return splat(e, v, e->lanes);
    } else {
        LLVMValueRef at = emit_vector(e, memo, x->arg[0]);
        v = call_masked(e, "llvm.masked.gather", type,
                        gather_pointers(e, b, at),
                        e->mask ? e->mask : all_lanes(e), size);
    }
    if (b->dtype == DT_BOOL)
        v = LLVMBuildICmp(builder(e), LLVMIntNE, v, LLVMConstNull(type), "");
    return v;
}

/* The condition differs by lane: both sides are computed, and loads touch
 * only the lanes that take them. */
static LLVMValueRef emit_masked_select(Emit *e, Memo *memo, const Expr *x)
{
    LLVMBuilderRef b = builder(e);
    LLVMValueRef cond = emit_vector(e, memo, x->arg[0]);
    LLVMValueRef outer = e->mask, side[2];
    for (int i = 0; i < 2; i++) {
        if (!has_load(x->arg[1 + i])) {
            side[i] = emit_vector(e, memo, x->arg[1 + i]);
            continue;
        }
        Memo inner = {.parent = memo};
        LLVMValueRef mask = i ? LLVMBuildNot(b, cond, "") : cond;
        e->mask = outer ? LLVMBuildAnd(b, outer, mask, "") : mask;
        side[i] = emit_vector(e, &inner, x->arg[1 + i]);
        e->mask = outer;
        ptrmap_free(&inner.scalar);
        ptrmap_free(&inner.vector);
    }
    return LLVMBuildSelect(b, cond, side[0], side[1], "");
}

static LLVMValueRef lane_numbers(Emit *e)
{
    LLVMValueRef lane[64];
    for (int i = 0; i < e->lanes; i++)
        lane[i] = module_int(e->m, i);
    LLVMValueRef base = (LLVMValueRef)ptrmap_get(&e->vars, e->lane_var);
    return LLVMBuildAdd(builder(e), splat(e, base, e->lanes),
                        LLVMConstVector(lane, (unsigned)e->lanes), "");
}

static LLVMValueRef emit_vector(Emit *e, Memo *memo, const Expr *x)
{
    LLVMValueRef known = lookup(memo, x, true);
    if (known)
        return known;
    LLVMBuilderRef b = builder(e);
    LLVMValueRef v, p[3];
    if (!expr_uses_var(x, e->lane_var) && (!e->mask || !has_load(x))) {
        /* The same for all lanes: computed once. */
        v = emit_scalar(e, memo, x);
        if (x->kind == EX_INT || x->kind == EX_FLOAT) {
            LLVMValueRef lane[64];
            for (int i = 0; i < e->lanes; i++)
                lane[i] = v;
            v = LLVMConstVector(lane, (unsigned)e->lanes);
        } else {
            v = splat(e, v, e->lanes);
        }
        ptrmap_set(&memo->vector, x, v);
        return v;
    }
    switch (x->kind) {
    case EX_VAR:
        v = lane_numbers(e);
        break;
    case EX_LOAD:
        v = emit_vector_load(e, memo, x);
        break;
    case EX_SELECT: {
        bool loads = has_load(x->arg[1]) || has_load(x->arg[2]);
        bool uniform = !expr_uses_var(x->arg[0], e->lane_var) &&
                       (!e->mask || !has_load(x->arg[0]));
        if (loads && uniform) {
            p[0] = emit_scalar(e, memo, x->arg[0]);
            v = emit_branch(e, memo, x, p[0], true);
        } else if (loads) {
            v = emit_masked_select(e, memo, x);
        } else {
            p[0] = uniform ? emit_scalar(e, memo, x->arg[0])
                           : emit_vector(e, memo, x->arg[0]);
            p[1] = emit_vector(e, memo, x->arg[1]);
            p[2] = emit_vector(e, memo, x->arg[2]);
            v = LLVMBuildSelect(b, p[0], p[1], p[2], "");
        }
        break;
    }
    default:
        for (int i = 0; i < x->count; i++)
            p[i] = emit_vector(e, memo, x->arg[i]);
        v = x->kind == EX_FMA
                ? module_intrinsic(e->m, "llvm.fma", LLVMTypeOf(p[0]), p, 3)
            : x->count == 1 ? emit_unary(e, x, p[0], e->lanes)
                            : emit_binary(e, x, p[0], p[1]);
    }
    ptrmap_set(&memo->vector, x, v);
    return v;
}

/* ---- what statements use --------------------------------------------- */

void emit_store(Emit *e, const Stmt *s)
{
    Memo memo = {0};
    const Expr *value =
        math_expand(e->m->arena, s->value, e->kernel->fused_math);
    const Buffer *b = s->buffer;
    int64_t factor = 0;
    if (!e->lanes) {
        LLVMValueRef v = emit_scalar(e, &memo, value);
        LLVMValueRef at = emit_scalar(e, &memo, s->offset);
        store_at(e, b, element_pointer(e, b, at), v, 0);
    } else {
        LLVMValueRef v = emit_vector(e, &memo, value);
        bool affine = affine_factor(s->offset, e->lane_var, &factor);
        if (affine && factor == 1) {
            LLVMValueRef at = emit_scalar(e, &memo, s->offset);
            store_at(e, b, element_pointer(e, b, at), v, e->lanes);
        } else {
            LLVMValueRef at = emit_vector(e, &memo, s->offset);
            for (int i = 0; i < e->lanes; i++) {
                LLVMValueRef lane = LLVMConstInt(e->m->i32, (unsigned)i, 0);
                LLVMValueRef o =
                    LLVMBuildExtractElement(builder(e), at, lane, "");
                LLVMValueRef x =
                    LLVMBuildExtractElement(builder(e), v, lane, "");
                store_at(e, b, element_pointer(e, b, o), x, 0);
            }
        }
    }
    ptrmap_free(&memo.scalar);
    ptrmap_free(&memo.vector);
}

void emit_prefetch(Emit *e, const Stmt *s)
{
    Memo memo = {0};
    LLVMValueRef at = emit_scalar(e, &memo, s->offset);
    /* Not an inbounds GEP: the line may lie behind the buffer. */
    LLVMValueRef p =
        LLVMBuildGEP2(builder(e), memory_type(e, s->buffer->dtype),
                      buffer_pointer(e, s->buffer), &at, 1, "");
    LLVMTypeRef type = LLVMTypeOf(p);
    unsigned id = LLVMLookupIntrinsicID("llvm.prefetch", 13);
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(e->m->module, id, &type, 1);
    /* For reading, second level, data. */
    LLVMValueRef args[] = {p, LLVMConstInt(e->m->i32, 0, 0),
                           LLVMConstInt(e->m->i32, 2, 0),
                           LLVMConstInt(e->m->i32, 1, 0)};
    LLVMBuildCall2(builder(e), LLVMGlobalGetValueType(fn), fn, args, 4, "");
    ptrmap_free(&memo.scalar);
    ptrmap_free(&memo.vector);
}

LLVMValueRef emit_value(Emit *e, const Expr *x)
{
    Memo memo = {0};
    LLVMValueRef v = emit_scalar(
        e, &memo, math_expand(e->m->arena, x, e->kernel->fused_math));
    ptrmap_free(&memo.scalar);
    ptrmap_free(&memo.vector);
    return v;
}
