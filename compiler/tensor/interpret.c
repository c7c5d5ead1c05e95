/* The interpreter: executes loops without LLVM, one element at a time, and
 * checks every access. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "tensor/loops.h"
#include "tensor/half.h"
#include "tensor/ptrmap.h"

/* f for floats, i for integers and bool; which follows from the dtype. */
typedef struct Cell {
    double f;
    int64_t i;
} Cell;

typedef struct Storage {
    const Buffer *buffer;
    char *data;
    unsigned char *written; /* of temporaries */
    int64_t size;
} Storage;

typedef struct Interp {
    const Kernel *kernel;
    Diag *diag;
    Arena *arena;
    Storage *storage;
    int storage_count;
    PtrMap values; /* Var to int64_t * */
    PtrMap expanded;
    PtrMap slots;   /* Expr to Slot *, where it has several uses */
    uint64_t stamp; /* of the store in progress */
    bool failed;
} Interp;

/* The value of a shared expression, valid during one store: evaluated as a
 * tree, nested elementary functions would take exponential time. */
typedef struct Slot {
    Cell value;
    uint64_t stamp;
} Slot;

static Storage *storage_of(Interp *in, const Buffer *b)
{
    for (int i = 0; i < in->storage_count; i++)
        if (in->storage[i].buffer == b)
            return &in->storage[i];
    die("kernel %s has no buffer %s", in->kernel->name, b->name);
}

static Cell eval(Interp *in, const Expr *x);

static bool check(Interp *in, const Storage *s, int64_t offset,
                  const char *verb)
{
    if (offset >= 0 && offset < s->size)
        return true;
    if (!in->failed)
        diag_error(in->diag,
                   "kernel %s %s %s at %lld, which has %lld "
                   "elements",
                   in->kernel->name, verb, s->buffer->name, (long long)offset,
                   (long long)s->size);
    in->failed = true;
    return false;
}

/* The elements of half precision are held as their bits. */
static DType held_type(const Buffer *buffer)
{
    return dtype_is_half(buffer->dtype) ? DT_U16 : buffer->dtype;
}

static Cell load(Interp *in, const Expr *x)
{
    Storage *s = storage_of(in, x->buffer);
    int64_t at = eval(in, x->arg[0]).i;
    if (!check(in, s, at, "reads"))
        return (Cell){0};
    if (s->written && !s->written[at] && !in->failed) {
        diag_error(in->diag,
                   "kernel %s reads element %lld of %s before it is "
                   "written",
                   in->kernel->name, (long long)at, s->buffer->name);
        in->failed = true;
    }
    Array view = {.dtype = held_type(s->buffer), .data = s->data};
    if (dtype_is_float(view.dtype))
        return (Cell){.f = array_get(&view, at)};
    return (Cell){.i = array_get_int(&view, at)};
}

/* Arithmetic runs in double and is rounded after each operation. For + - * /
 * and the square root that is f32's own result, bit for bit, since a double
 * has more than twice the digits and two to spare. */
static double round_to(DType dtype, double f)
{
    return dtype == DT_F64 ? f : (double)(float)f;
}

static int64_t wrap(DType dtype, uint64_t v)
{
    switch (dtype_size(dtype)) {
    case 1:
        return dtype == DT_BOOL ? (int64_t)(v & 1)
               : dtype == DT_U8 ? (int64_t)(uint8_t)v
                                : (int64_t)(int8_t)v;
    case 2:
        return dtype == DT_I16 ? (int64_t)(int16_t)v : (int64_t)(uint16_t)v;
    case 4:
        return dtype == DT_U32 ? (int64_t)(uint32_t)v : (int64_t)(int32_t)v;
    default:
        return (int64_t)v;
    }
}

/* Saturates, and NaN gives 0, as generated code does on every target: C leaves
 * both undefined. */
static int64_t float_to_int(DType dtype, double f)
{
    int bits = (int)dtype_size(dtype) * 8;
    bool is_signed = dtype_is_signed(dtype);
    double top = ldexp(1, is_signed ? bits - 1 : bits);
    if (isnan(f))
        return 0;
    f = trunc(f);
    if (f >= top)
        return dtype_int_bound(dtype, true);
    if (f <= (is_signed ? -top : 0))
        return dtype_int_bound(dtype, false);
    return f >= 0x1p63 ? (int64_t)(uint64_t)f : (int64_t)f;
}

static Cell cast(Interp *in, const Expr *x)
{
    DType from = x->arg[0]->dtype, to = x->dtype;
    Cell v = eval(in, x->arg[0]);
    bool is_float = dtype_is_float(from);
    if (to == DT_BOOL)
        return (Cell){.i = is_float ? v.f != 0 : v.i != 0};
    if (dtype_is_float(to)) {
        double f = is_float         ? v.f
                   : from == DT_U64 ? (double)(uint64_t)v.i
                   /* One rounding, from the integer itself. */
                   : to == DT_F32 ? (double)(float)v.i
                                  : (double)v.i;
        return (Cell){.f = round_to(to, f)};
    }
    return (Cell){.i = is_float ? float_to_int(to, v.f)
                                : wrap(to, (uint64_t)v.i)};
}

static Cell bitcast(Interp *in, const Expr *x)
{
    Cell v = eval(in, x->arg[0]);
    DType from = x->arg[0]->dtype, to = x->dtype;
    uint64_t bits = (uint64_t)v.i;
    if (from == DT_F32) {
        float f = (float)v.f;
        uint32_t b;
        memcpy(&b, &f, 4);
        bits = b;
    } else if (from == DT_F64) {
        memcpy(&bits, &v.f, 8);
    }
    if (to == DT_F32) {
        uint32_t b = (uint32_t)bits;
        float f;
        memcpy(&f, &b, 4);
        return (Cell){.f = (double)f};
    }
    if (to == DT_F64) {
        memcpy(&v.f, &bits, 8);
        return v;
    }
    return (Cell){.i = wrap(to, bits)};
}

static double float_binary(Interp *in, ExprKind kind, double p, double q)
{
    switch (kind) {
    case EX_ADD:
        return p + q;
    case EX_SUB:
        return p - q;
    case EX_MUL:
        return p * q;
    case EX_DIV:
        return p / q;
    case EX_MIN:
        return isnan(p) || isnan(q) ? NAN : p < q ? p : q;
    case EX_MAX:
        return isnan(p) || isnan(q) ? NAN : p > q ? p : q;
    default:
        die("kernel %s: %s of floats", in->kernel->name, expr_kind_name(kind));
    }
}

static uint64_t int_binary(Interp *in, const Expr *x, int64_t p, int64_t q)
{
    bool s = dtype_is_signed(x->dtype);
    uint64_t up = (uint64_t)p, uq = (uint64_t)q;
    /* Generated code would trap or give anything: a fault of the kernel. */
    if ((x->kind == EX_DIV || x->kind == EX_MOD) && q == 0) {
        if (!in->failed)
            diag_error(in->diag, "kernel %s divides an integer by zero",
                       in->kernel->name);
        in->failed = true;
        return 0;
    }
    switch (x->kind) {
    case EX_ADD:
        return up + uq;
    case EX_SUB:
        return up - uq;
    case EX_MUL:
        return up * uq;
    case EX_DIV: {
        if (!s)
            return up / uq;
        /* The most negative number divided by -1 traps on x86. */
        int64_t d = q == -1 ? (int64_t)(0 - up) : p / q;
        int64_t r = q == -1 ? 0 : p % q;
        return (uint64_t)(r && (r < 0) != (q < 0) ? d - 1 : d);
    }
    case EX_MOD: {
        if (!s)
            return up % uq;
        int64_t r = q == -1 ? 0 : p % q;
        return (uint64_t)(r && (r < 0) != (q < 0) ? r + q : r);
    }
    case EX_MIN:
        return s ? (uint64_t)(p < q ? p : q) : up < uq ? up : uq;
    case EX_MAX:
        return s ? (uint64_t)(p > q ? p : q) : up > uq ? up : uq;
    case EX_AND:
        return up & uq;
    case EX_OR:
        return up | uq;
    case EX_XOR:
        return up ^ uq;
    case EX_SHL:
        return up << (uq & 63);
    case EX_SHR:
        return s ? (uint64_t)(p >> (uq & 63)) : up >> (uq & 63);
    default:
        die("kernel %s: %s of integers", in->kernel->name,
            expr_kind_name(x->kind));
    }
}

static bool compare(const Expr *x, Cell p, Cell q)
{
    DType dtype = x->arg[0]->dtype;
    if (dtype_is_float(dtype))
        switch (x->kind) {
        case EX_LT:
            return p.f < q.f;
        case EX_LE:
            return p.f <= q.f;
        case EX_EQ:
            return p.f == q.f;
        default:
            return p.f != q.f;
        }
    bool less =
        dtype_is_signed(dtype) ? p.i < q.i : (uint64_t)p.i < (uint64_t)q.i;
    switch (x->kind) {
    case EX_LT:
        return less;
    case EX_LE:
        return less || p.i == q.i;
    case EX_EQ:
        return p.i == q.i;
    default:
        return p.i != q.i;
    }
}

static Cell unary(Interp *in, const Expr *x)
{
    Cell v = eval(in, x->arg[0]);
    bool is_float = dtype_is_float(x->dtype);
    switch (x->kind) {
    case EX_NEG:
        return is_float ? (Cell){.f = -v.f}
                        : (Cell){.i = wrap(x->dtype, 0 - (uint64_t)v.i)};
    case EX_ABS:
        return is_float
                   ? (Cell){.f = fabs(v.f)}
                   : (Cell){.i = wrap(x->dtype, v.i < 0 ? 0 - (uint64_t)v.i
                                                        : (uint64_t)v.i)};
    case EX_NOT:
        return (Cell){
            .i = x->dtype == DT_BOOL ? !v.i : wrap(x->dtype, ~(uint64_t)v.i)};
    case EX_FLOOR:
        return (Cell){.f = floor(v.f)};
    case EX_CEIL:
        return (Cell){.f = ceil(v.f)};
    case EX_ROUND:
        return (Cell){.f = nearbyint(v.f)};
    case EX_SQRT:
        return (Cell){.f = round_to(x->dtype, sqrt(v.f))};
    default:
        die("kernel %s: %s is not expanded", in->kernel->name,
            expr_kind_name(x->kind));
    }
}

static Cell eval_anew(Interp *in, const Expr *x);

static Cell eval(Interp *in, const Expr *x)
{
    if (in->failed)
        return (Cell){0};
    Slot *slot =
        x->count && in->slots.count ? (Slot *)ptrmap_get(&in->slots, x) : NULL;
    if (slot && slot->stamp == in->stamp)
        return slot->value;
    Cell value = eval_anew(in, x);
    if (slot)
        *slot = (Slot){value, in->stamp};
    return value;
}

static Cell eval_anew(Interp *in, const Expr *x)
{
    switch (x->kind) {
    case EX_INT:
        return (Cell){.i = x->i};
    case EX_FLOAT:
        return (Cell){.f = x->f};
    case EX_VAR: {
        const int64_t *v = ptrmap_get(&in->values, x->var);
        if (!v)
            die("kernel %s: %s is not bound", in->kernel->name, x->var->name);
        return (Cell){.i = *v};
    }
    case EX_LOAD:
        return load(in, x);
    case EX_CAST:
        return cast(in, x);
    case EX_BITCAST:
        return bitcast(in, x);
    /* Only the side that is taken: the other may load out of bounds. */
    case EX_SELECT:
        return eval(in, x->arg[eval(in, x->arg[0]).i ? 1 : 2]);
    /* With one rounding; through double there would be two. */
    case EX_FMA: {
        double p = eval(in, x->arg[0]).f, q = eval(in, x->arg[1]).f;
        double r = eval(in, x->arg[2]).f;
        return (Cell){.f = x->dtype == DT_F64
                               ? fma(p, q, r)
                               : (double)fmaf((float)p, (float)q, (float)r)};
    }
    /* Lowering turns every read into a load. */
    case EX_READ:
        die("kernel %s holds a read", in->kernel->name);
    default:
        break;
    }
    if (x->count == 1)
        return unary(in, x);
    Cell p = eval(in, x->arg[0]), q = eval(in, x->arg[1]);
    if (x->kind >= EX_LT && x->kind <= EX_NE)
        return (Cell){.i = compare(x, p, q)};
    if (dtype_is_float(x->dtype))
        return (Cell){
            .f = round_to(x->dtype, float_binary(in, x->kind, p.f, q.f))};
    return (Cell){.i = wrap(x->dtype, int_binary(in, x, p.i, q.i))};
}

/* Gives expressions that are reached a second time a slot. */
static void find_shared(Interp *in, PtrMap *seen, const Expr *x)
{
    if (x->count == 0)
        return;
    if (ptrmap_get(seen, x)) {
        if (!ptrmap_get(&in->slots, x))
            ptrmap_set(&in->slots, x, ARENA_NEW(in->arena, Slot));
        return;
    }
    ptrmap_set(seen, x, x);
    for (int i = 0; i < x->count; i++)
        find_shared(in, seen, x->arg[i]);
}

/* The value to evaluate, with elementary functions expanded once. */
static const Expr *expanded(Interp *in, const Stmt *s)
{
    const Expr *x = ptrmap_get(&in->expanded, s);
    if (!x) {
        PtrMap seen = {0};
        x = math_expand(in->arena, s->value, in->kernel->fused_math);
        ptrmap_set(&in->expanded, s, x);
        find_shared(in, &seen, x);
        ptrmap_free(&seen);
    }
    return x;
}

static void execute(Interp *in, const Stmt *s)
{
    if (in->failed)
        return;
    switch (s->kind) {
    case STMT_BLOCK:
        for (int i = 0; i < s->list.count; i++)
            execute(in, s->list.data[i]);
        return;
    case STMT_PREFETCH:
        return;
    case STMT_IF:
        /* What earlier statements computed is out of date. */
        in->stamp++;
        if (eval(in, s->cond).i)
            execute(in, s->body);
        return;
    case STMT_STORE: {
        Storage *to = storage_of(in, s->buffer);
        in->stamp++;
        Cell v = eval(in, expanded(in, s));
        int64_t at = eval(in, s->offset).i;
        if (!check(in, to, at, "writes"))
            return;
        Array view = {.dtype = held_type(to->buffer), .data = to->data};
        if (dtype_is_float(view.dtype))
            array_set(&view, at, v.f);
        else
            array_set_int(&view, at, v.i);
        if (to->written)
            to->written[at] = 1;
        return;
    }
    /* Parallel, vector and unrolled loops mean what a serial one does. */
    case STMT_FOR: {
        int64_t i = 0, end = s->extent;
        if (s->limit) {
            in->stamp++;
            int64_t limit = eval(in, s->limit).i;
            end = limit < end ? limit : end;
        }
        ptrmap_set(&in->values, s->var, &i);
        for (; i < end && !in->failed; i++)
            execute(in, s->body);
        return;
    }
    }
}

bool kernel_interpret(const Kernel *k, void *const *data, Diag *diag)
{
    Interp in = {.kernel = k, .diag = diag, .arena = arena_new()};
    in.storage_count = k->params.count + k->temps.count;
    in.storage = ARENA_ARRAY(in.arena, Storage, in.storage_count + 1);
    for (int i = 0; i < in.storage_count; i++) {
        Storage *s = &in.storage[i];
        bool is_param = i < k->params.count;
        s->buffer =
            is_param ? k->params.data[i] : k->temps.data[i - k->params.count];
        s->size = buffer_size(s->buffer);
        s->data = is_param ? data[i]
                           : arena_alloc_array(in.arena, (size_t)s->size,
                                               dtype_size(s->buffer->dtype));
        /* Temporaries hold garbage at first: a read before the write is a
         * fault. */
        if (s->buffer->role == BUF_TEMP)
            s->written = arena_alloc(in.arena, (size_t)s->size);
    }
    execute(&in, k->body);
    ptrmap_free(&in.values);
    ptrmap_free(&in.expanded);
    ptrmap_free(&in.slots);
    arena_free(in.arena);
    return !in.failed;
}
