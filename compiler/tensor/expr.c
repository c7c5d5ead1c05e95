/* Expressions: builders with bit-exact folding, rewriting, printing. */
#include "tensor/expr.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "tensor/ptrmap.h"

static const char *const kind_names[EX_KIND_COUNT] = {
    [EX_INT] = "int",   [EX_FLOAT] = "float",   [EX_VAR] = "var",
    [EX_READ] = "read", [EX_LOAD] = "load",     [EX_NEG] = "neg",
    [EX_ABS] = "abs",   [EX_NOT] = "not",       [EX_FLOOR] = "floor",
    [EX_CEIL] = "ceil", [EX_ROUND] = "round",   [EX_SQRT] = "sqrt",
    [EX_EXP] = "exp",   [EX_LOG] = "log",       [EX_ERF] = "erf",
    [EX_TANH] = "tanh", [EX_SIN] = "sin",       [EX_COS] = "cos",
    [EX_CAST] = "cast", [EX_BITCAST] = "bits",  [EX_ADD] = "add",
    [EX_SUB] = "sub",   [EX_MUL] = "mul",       [EX_DIV] = "div",
    [EX_MOD] = "mod",   [EX_MIN] = "min",       [EX_MAX] = "max",
    [EX_POW] = "pow",   [EX_AND] = "and",       [EX_OR] = "or",
    [EX_XOR] = "xor",   [EX_SHL] = "shl",       [EX_SHR] = "shr",
    [EX_LT] = "lt",     [EX_LE] = "le",         [EX_EQ] = "eq",
    [EX_NE] = "ne",     [EX_SELECT] = "select", [EX_FMA] = "fma",
};

const char *expr_kind_name(ExprKind kind)
{
    return kind_names[kind];
}

static Expr *node(Arena *a, ExprKind kind, DType dtype, int count)
{
    Expr *x = ARENA_NEW(a, Expr);
    x->kind = kind;
    x->dtype = dtype;
    x->count = count;
    if (count)
        x->arg = ARENA_ARRAY(a, const Expr *, count);
    return x;
}

/* Brought into the range of the type here, so that equal constants are equal
 * as int64_t. */
const Expr *expr_const_int(Arena *a, DType dtype, int64_t value)
{
    if (dtype_is_float(dtype))
        return expr_const(a, dtype, (double)value);
    switch (dtype) {
    case DT_I32:
        value = (int32_t)value;
        break;
    case DT_I16:
        value = (int16_t)value;
        break;
    case DT_I8:
        value = (int8_t)value;
        break;
    case DT_U32:
        value = (uint32_t)value;
        break;
    case DT_U16:
        value = (uint16_t)value;
        break;
    case DT_U8:
        value = (uint8_t)value;
        break;
    case DT_BOOL:
        value = value != 0;
        break;
    default:
        break;
    }
    Expr *x = node(a, EX_INT, dtype, 0);
    x->i = value;
    return x;
}

const Expr *expr_int(Arena *a, int64_t value)
{
    return expr_const_int(a, DT_I64, value);
}

const Expr *expr_const(Arena *a, DType dtype, double value)
{
    if (!dtype_is_float(dtype))
        return expr_const_int(a, dtype, (int64_t)value);
    Expr *x = node(a, EX_FLOAT, dtype, 0);
    /* Rounded once, here: from now on the double is exactly that number. */
    x->f = dtype == DT_F64   ? value
           : dtype == DT_F32 ? (double)(float)value
           : dtype == DT_BF16
               ? (double)bfloat_to_float(float_to_bfloat((float)value))
               : (double)half_to_float(float_to_half((float)value));
    return x;
}

const Expr *expr_var(Arena *a, const Var *var)
{
    Expr *x = node(a, EX_VAR, DT_I64, 0);
    x->var = var;
    return x;
}

bool expr_is_int(const Expr *x, int64_t value)
{
    return x->kind == EX_INT && x->i == value;
}

static bool is_float_const(const Expr *x, double value)
{
    return x->kind == EX_FLOAT && x->f == value &&
           signbit(x->f) == signbit(value);
}

int64_t floor_divide(int64_t x, int64_t y)
{
    int64_t q = x / y;
    return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

/* Folds two integer constants; NULL when the result is not defined. */
static const Expr *fold_ints(Arena *a, ExprKind kind, DType dtype, int64_t x,
                             int64_t y)
{
    /* Wrapping arithmetic, as the generated code does. */
    uint64_t ux = (uint64_t)x, uy = (uint64_t)y;
    switch (kind) {
    case EX_ADD:
        return expr_const_int(a, dtype, (int64_t)(ux + uy));
    case EX_SUB:
        return expr_const_int(a, dtype, (int64_t)(ux - uy));
    case EX_MUL:
        return expr_const_int(a, dtype, (int64_t)(ux * uy));
    case EX_DIV:
        return y > 0 ? expr_const_int(a, dtype, floor_divide(x, y)) : NULL;
    case EX_MOD:
        return y > 0 ? expr_const_int(a, dtype, x - floor_divide(x, y) * y)
                     : NULL;
    case EX_MIN:
        return expr_const_int(a, dtype, x < y ? x : y);
    case EX_MAX:
        return expr_const_int(a, dtype, x > y ? x : y);
    case EX_AND:
        return expr_const_int(a, dtype, x & y);
    case EX_OR:
        return expr_const_int(a, dtype, x | y);
    case EX_LT:
        return expr_const_int(a, DT_BOOL, x < y);
    case EX_LE:
        return expr_const_int(a, DT_BOOL, x <= y);
    case EX_EQ:
        return expr_const_int(a, DT_BOOL, x == y);
    case EX_NE:
        return expr_const_int(a, DT_BOOL, x != y);
    default:
        return NULL;
    }
}

/* Identities that hold for every bit pattern; NULL when none applies. */
static const Expr *fold_binary(Arena *a, ExprKind kind, const Expr *x,
                               const Expr *y)
{
    /* Constants are int64_t, which large u64 ones do not fit. */
    if (x->kind == EX_INT && y->kind == EX_INT && x->dtype != DT_U64) {
        const Expr *c = fold_ints(a, kind, x->dtype, x->i, y->i);
        if (c)
            return c;
    }
    if (kind == EX_AND && x->dtype == DT_BOOL) {
        if (x->kind == EX_INT)
            return x->i ? y : x;
        if (y->kind == EX_INT)
            return y->i ? x : y;
    }
    if (kind == EX_OR && x->dtype == DT_BOOL) {
        if (x->kind == EX_INT)
            return x->i ? x : y;
        if (y->kind == EX_INT)
            return y->i ? y : x;
    }
    /* Floats keep x + 0, which is not x for -0, and x * 0, which is not 0 for
     * infinity and NaN; only a factor or divisor of 1 goes. */
    bool ints = !dtype_is_float(x->dtype);
    switch (kind) {
    case EX_ADD:
        if (ints && expr_is_int(x, 0))
            return y;
        if (ints && expr_is_int(y, 0))
            return x;
        if (ints && y->kind == EX_INT && x->kind == EX_ADD &&
            x->arg[1]->kind == EX_INT)
            return expr_binary(a, EX_ADD, x->arg[0],
                               expr_binary(a, EX_ADD, x->arg[1], y));
        break;
    case EX_SUB:
        if (ints && expr_is_int(y, 0))
            return x;
        /* As a sum, whose constants the rule above joins. */
        if (ints && y->kind == EX_INT && y->i != INT64_MIN &&
            x->dtype == DT_I64)
            return expr_binary(a, EX_ADD, x,
                               expr_const_int(a, x->dtype, -y->i));
        break;
    case EX_MUL:
        if (expr_is_int(x, 1) || is_float_const(x, 1.0))
            return y;
        if (expr_is_int(y, 1) || is_float_const(y, 1.0))
            return x;
        if (ints && (expr_is_int(x, 0) || expr_is_int(y, 0)))
            return expr_const_int(a, x->dtype, 0);
        break;
    case EX_DIV:
        if (expr_is_int(y, 1) || is_float_const(y, 1.0))
            return x;
        break;
    case EX_MOD:
        if (expr_is_int(y, 1))
            return expr_const_int(a, x->dtype, 0);
        break;
    case EX_MIN:
    case EX_MAX:
        /* The number that nothing lies beyond decides nothing. */
        if (ints && expr_is_int(x, dtype_int_bound(x->dtype, kind == EX_MIN)))
            return y;
        if (ints && expr_is_int(y, dtype_int_bound(x->dtype, kind == EX_MIN)))
            return x;
        break;
    default:
        break;
    }
    return NULL;
}

const Expr *expr_binary(Arena *a, ExprKind kind, const Expr *x, const Expr *y)
{
    if (x->dtype != y->dtype)
        die("expression %s of %s and %s", kind_names[kind],
            dtype_name(x->dtype), dtype_name(y->dtype));
    const Expr *folded = fold_binary(a, kind, x, y);
    if (folded)
        return folded;
    bool compares = kind >= EX_LT && kind <= EX_NE;
    Expr *e = node(a, kind, compares ? DT_BOOL : x->dtype, 2);
    e->arg[0] = x;
    e->arg[1] = y;
    return e;
}

const Expr *expr_unary(Arena *a, ExprKind kind, const Expr *x)
{
    if (kind == EX_NEG && x->kind == EX_FLOAT)
        return expr_const(a, x->dtype, -x->f);
    if (kind == EX_NEG && x->kind == EX_INT)
        return expr_const_int(a, x->dtype, (int64_t)(0 - (uint64_t)x->i));
    if (kind == EX_NOT && x->kind == EX_INT && x->dtype == DT_BOOL)
        return expr_const_int(a, DT_BOOL, !x->i);
    Expr *e = node(a, kind, x->dtype, 1);
    e->arg[0] = x;
    return e;
}

const Expr *expr_select(Arena *a, const Expr *cond, const Expr *then,
                        const Expr *other)
{
    if (cond->dtype != DT_BOOL || then->dtype != other->dtype)
        die("select(%s, %s, %s)", dtype_name(cond->dtype),
            dtype_name(then->dtype), dtype_name(other->dtype));
    if (cond->kind == EX_INT)
        return cond->i ? then : other;
    Expr *e = node(a, EX_SELECT, then->dtype, 3);
    e->arg[0] = cond;
    e->arg[1] = then;
    e->arg[2] = other;
    return e;
}

const Expr *expr_fma(Arena *a, const Expr *x, const Expr *y, const Expr *z)
{
    if (x->dtype != y->dtype || x->dtype != z->dtype)
        die("fma of mixed types");
    Expr *e = node(a, EX_FMA, x->dtype, 3);
    e->arg[0] = x;
    e->arg[1] = y;
    e->arg[2] = z;
    return e;
}

const Expr *expr_cast(Arena *a, DType dtype, const Expr *x)
{
    if (x->dtype == dtype)
        return x;
    if (x->kind == EX_INT && !dtype_is_float(dtype) && dtype != DT_U64)
        return expr_const_int(a, dtype, x->i);
    /* Where f32 holds the integer exactly. */
    if (x->kind == EX_INT && dtype_is_float(dtype) &&
        llabs((long long)x->i) < 1 << 24)
        return expr_const(a, dtype, (double)x->i);
    Expr *e = node(a, EX_CAST, dtype, 1);
    e->arg[0] = x;
    return e;
}

const Expr *expr_bitcast(Arena *a, DType dtype, const Expr *x)
{
    if (dtype_size(dtype) != dtype_size(x->dtype))
        die("bitcast of %s to %s", dtype_name(x->dtype), dtype_name(dtype));
    if (x->dtype == dtype)
        return x;
    Expr *e = node(a, EX_BITCAST, dtype, 1);
    e->arg[0] = x;
    return e;
}

const Expr *expr_read_padded(Arena *a, const Buffer *buffer,
                             const Expr *const *index, const Expr *outside)
{
    if (outside && outside->dtype != buffer->dtype)
        die("read of %s with an outside value of another type", buffer->name);
    Expr *e = node(a, EX_READ, buffer->dtype, buffer->rank);
    for (int i = 0; i < buffer->rank; i++) {
        if (index[i]->dtype != DT_I64)
            die("index %d of %s is not i64", i, buffer->name);
        e->arg[i] = index[i];
    }
    e->buffer = buffer;
    e->outside = outside;
    return e;
}

const Expr *expr_read(Arena *a, const Buffer *buffer, const Expr *const *index)
{
    return expr_read_padded(a, buffer, index, NULL);
}

const Expr *expr_load(Arena *a, const Buffer *buffer, const Expr *offset)
{
    Expr *e = node(a, EX_LOAD, buffer->dtype, 1);
    e->arg[0] = offset;
    e->buffer = buffer;
    return e;
}

const Expr *expr_add_int(Arena *a, const Expr *x, int64_t y)
{
    return expr_binary(a, EX_ADD, x, expr_const_int(a, x->dtype, y));
}

const Expr *expr_mul_int(Arena *a, const Expr *x, int64_t y)
{
    return expr_binary(a, EX_MUL, x, expr_const_int(a, x->dtype, y));
}

bool expr_equal(const Expr *x, const Expr *y)
{
    if (x == y)
        return true;
    if (x->kind != y->kind || x->dtype != y->dtype || x->count != y->count)
        return false;
    switch (x->kind) {
    case EX_INT:
        return x->i == y->i;
    case EX_FLOAT:
        /* By bits: 0 is not -0, and a NaN equals itself. */
        return memcmp(&x->f, &y->f, sizeof x->f) == 0;
    case EX_VAR:
        return x->var == y->var;
    case EX_READ:
    case EX_LOAD:
        if (x->buffer != y->buffer || !x->outside != !y->outside)
            return false;
        if (x->outside && !expr_equal(x->outside, y->outside))
            return false;
        break;
    default:
        break;
    }
    for (int i = 0; i < x->count; i++)
        if (!expr_equal(x->arg[i], y->arg[i]))
            return false;
    return true;
}

bool expr_uses_var(const Expr *x, const Var *var)
{
    if (x->kind == EX_VAR)
        return x->var == var;
    for (int i = 0; i < x->count; i++)
        if (expr_uses_var(x->arg[i], var))
            return true;
    return x->outside && expr_uses_var(x->outside, var);
}

const Expr *expr_rebuild(Arena *a, const Expr *x, const Expr *const *arg,
                         const Expr *outside)
{
    switch (x->kind) {
    case EX_READ: {
        /* As many indices as before, even while a schedule is changing the
         * buffer's rank. */
        Expr *e = node(a, EX_READ, x->dtype, x->count);
        for (int i = 0; i < x->count; i++)
            e->arg[i] = arg[i];
        e->buffer = x->buffer;
        e->outside = outside;
        return e;
    }
    case EX_LOAD:
        return expr_load(a, x->buffer, arg[0]);
    case EX_CAST:
        return expr_cast(a, x->dtype, arg[0]);
    case EX_BITCAST:
        return expr_bitcast(a, x->dtype, arg[0]);
    case EX_SELECT:
        return expr_select(a, arg[0], arg[1], arg[2]);
    case EX_FMA:
        return expr_fma(a, arg[0], arg[1], arg[2]);
    default:
        return x->count == 1 ? expr_unary(a, x->kind, arg[0])
                             : expr_binary(a, x->kind, arg[0], arg[1]);
    }
}

/* Remembers results: expressions share operands, and a walk of every path
 * through them would take exponential time. */
static const Expr *rewrite(ExprSubst *s, PtrMap *memo, const Expr *x)
{
    const Expr *known = ptrmap_get(memo, x);
    if (known)
        return known;
    const Expr *result = x;
    if (x->count) {
        const Expr *arg[MAX_RANK];
        bool changed = false;
        for (int i = 0; i < x->count; i++) {
            arg[i] = rewrite(s, memo, x->arg[i]);
            changed |= arg[i] != x->arg[i];
        }
        const Expr *outside = x->outside;
        if (outside) {
            outside = rewrite(s, memo, x->outside);
            changed |= outside != x->outside;
        }
        if (changed)
            result = expr_rebuild(s->arena, x, arg, outside);
    }
    bool leaf = result->kind == EX_VAR || result->kind == EX_READ ||
                result->kind == EX_LOAD;
    if (leaf && result->kind == x->kind) {
        const Expr *replaced = s->leaf(s, result);
        if (replaced)
            result = replaced;
    }
    ptrmap_set(memo, x, result);
    return result;
}

const Expr *expr_rewrite(ExprSubst *subst, const Expr *x)
{
    PtrMap memo = {0};
    const Expr *result = rewrite(subst, &memo, x);
    ptrmap_free(&memo);
    return result;
}

typedef struct Binding {
    const Var *var;
    const Expr *value;
} Binding;

static const Expr *bound_var(ExprSubst *subst, const Expr *leaf)
{
    const Binding *b = subst->context;
    return leaf->kind == EX_VAR && leaf->var == b->var ? b->value : NULL;
}

const Expr *expr_bind(Arena *a, const Expr *x, const Var *var,
                      const Expr *value)
{
    Binding binding = {var, value};
    ExprSubst subst = {bound_var, a, &binding};
    return expr_rewrite(&subst, x);
}

static void print_const(Str *out, const Expr *x)
{
    if (x->kind == EX_INT) {
        str_addf(out, "%lld", (long long)x->i);
        if (x->dtype != DT_I64)
            str_addf(out, ":%s", dtype_name(x->dtype));
        return;
    }
    size_t start = out->length;
    if (x->dtype == DT_F64)
        str_add_double(out, x->f);
    else
        str_add_float(out, (float)x->f);
    /* Digits alone would read back as an integer. */
    if (!strpbrk(out->data + start, ".enE"))
        str_add(out, ".0");
    if (x->dtype != DT_F32)
        str_addf(out, ":%s", dtype_name(x->dtype));
}

static void print_args(Str *out, const Expr *x)
{
    for (int i = 0; i < x->count; i++) {
        if (i)
            str_add(out, ", ");
        expr_print(out, x->arg[i]);
    }
}

void expr_print(Str *out, const Expr *x)
{
    static const char *const infix[EX_KIND_COUNT] = {
        [EX_ADD] = "+", [EX_SUB] = "-", [EX_MUL] = "*",
        [EX_DIV] = "/", [EX_MOD] = "%",
    };
    switch (x->kind) {
    case EX_INT:
    case EX_FLOAT:
        print_const(out, x);
        return;
    case EX_VAR:
        str_add(out, x->var->name);
        return;
    case EX_READ:
    case EX_LOAD:
        str_addf(out, "%s[", x->buffer->name);
        print_args(out, x);
        if (x->outside) {
            str_add(out, " | ");
            expr_print(out, x->outside);
        }
        str_add(out, "]");
        return;
    case EX_CAST:
        str_addf(out, "%s(", dtype_name(x->dtype));
        break;
    case EX_BITCAST:
        str_addf(out, "bits_%s(", dtype_name(x->dtype));
        break;
    default:
        if (infix[x->kind]) {
            str_add(out, "(");
            expr_print(out, x->arg[0]);
            str_addf(out, " %s ", infix[x->kind]);
            expr_print(out, x->arg[1]);
            str_add(out, ")");
            return;
        }
        str_addf(out, "%s(", kind_names[x->kind]);
    }
    print_args(out, x);
    str_add(out, ")");
}
