/* Loops to C17.
 *
 * Every expression is a tree or DAG of pure operations: a node with several
 * uses becomes a local constant, the rest is written in place. A select
 * whose sides load becomes an if, so that the side not taken is never
 * evaluated. Floating point must not be contracted or reassociated by the C
 * compiler (see the flags in c.c). Elementary functions are expanded to
 * arithmetic, and floor, ceil, round and fma are plain C functions: the
 * result needs no libm. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "codegen/c.h"
#include "runtime/abi.h"
#include "tensor/half.h"
#include "tensor/ptrmap.h"

/* Longest text written in place; above it a local constant keeps lines
 * readable. */
enum { MAX_INLINE = 96 };

/* Local constants by expression; a branch has a level of its own, since
 * what it computes is not there after it. */
typedef struct Level Level;
struct Level {
    PtrMap names;
    Level *parent;
};

typedef struct Emit {
    Str *out;
    Arena *arena; /* scratch */
    const Kernel *kernel;
    const char *symbol;
    PtrMap uses;    /* of expressions in the current statement */
    PtrMap vars;    /* to their C names */
    PtrMap buffers; /* to their C names */
    Level *level;
    int depth, next_local, next_var, next_task;
    Str *tasks; /* functions of parallel loops */
} Emit;

/* The generated text repeats the struct of abi.h. */
_Static_assert(offsetof(AssayRun, parallel_for) == 4 * sizeof(void *) &&
                   offsetof(AssayRun, on_step) == 6 * sizeof(void *) &&
                   offsetof(AssayRun, extents) == 8 * sizeof(void *) &&
                   sizeof(AssayRun) == 9 * sizeof(void *),
               "c_emit_preamble must match runtime/abi.h");

static const char types_and_casts[] =
    "#include <stdint.h>\n"
    "\n"
    "typedef void (*AssayTask)(void *context, int64_t begin, int64_t end);\n"
    "typedef struct AssayRun {\n"
    "    void *const *inputs;\n"
    "    void *const *outputs;\n"
    "    const char *weights;\n"
    "    char *arena;\n"
    "    void (*parallel_for)(void *pool, AssayTask task, void *context,\n"
    "                         int64_t count);\n"
    "    void *pool;\n"
    "    void (*on_step)(void *user, int32_t step, int32_t is_end);\n"
    "    void *user;\n"
    "    int64_t *extents;\n"
    "} AssayRun;\n"
    "\n"
    "#define LOCAL static inline __attribute__((unused))\n"
    "#define BITCAST(from, from_name, to, to_name)                      \\\n"
    "    LOCAL to assay_bitcast_##from_name##_##to_name(from x)         \\\n"
    "    {                                                              \\\n"
    "        union { from a; to b; } u;                                 \\\n"
    "        u.a = x;                                                   \\\n"
    "        return u.b;                                                \\\n"
    "    }\n"
    "BITCAST(float, f32, int32_t, i32)\n"
    "BITCAST(float, f32, uint32_t, u32)\n"
    "BITCAST(int32_t, i32, float, f32)\n"
    "BITCAST(uint32_t, u32, float, f32)\n"
    "BITCAST(double, f64, int64_t, i64)\n"
    "BITCAST(double, f64, uint64_t, u64)\n"
    "BITCAST(int64_t, i64, double, f64)\n"
    "BITCAST(uint64_t, u64, double, f64)\n"
    "/* Division and modulo that floor; a divisor of 0 gives 0. */\n"
    "#define FLOOR_DIVISION(type, name)                                 \\\n"
    "    LOCAL type assay_div_##name(type x, type y)                    \\\n"
    "    {                                                              \\\n"
    "        if (y == 0 || y == -1)                                     \\\n"
    "            return (type)(y ? -x : 0);                             \\\n"
    "        return (type)(x / y - (x % y != 0 && (x < 0) != (y < 0))); \\\n"
    "    }                                                              \\\n"
    "    LOCAL type assay_mod_##name(type x, type y)                    \\\n"
    "    {                                                              \\\n"
    "        if (y == 0 || y == -1)                                     \\\n"
    "            return 0;                                              \\\n"
    "        type m = (type)(x % y);                                    \\\n"
    "        return (type)(m != 0 && (m < 0) != (y < 0) ? m + y : m);   \\\n"
    "    }\n"
    "FLOOR_DIVISION(int8_t, i8)\n"
    "FLOOR_DIVISION(int16_t, i16)\n"
    "FLOOR_DIVISION(int32_t, i32)\n"
    "FLOOR_DIVISION(int64_t, i64)\n"
    "/* Float to integer: truncates and saturates, NaN gives 0. */\n"
    "#define SATURATE(from, from_name, to, to_name, low, high, top)     \\\n"
    "    LOCAL to assay_cast_##from_name##_##to_name(from x)            \\\n"
    "    {                                                              \\\n"
    "        return x != x ? (to)0                                      \\\n"
    "               : x >= (from)top ? high                             \\\n"
    "               : x <= (from)low ? low : (to)x;                     \\\n"
    "    }\n"
    "#define SATURATE_BOTH(to, name, low, high, top)                    \\\n"
    "    SATURATE(float, f32, to, name, low, high, top)                 \\\n"
    "    SATURATE(double, f64, to, name, low, high, top)\n"
    "SATURATE_BOTH(int8_t, i8, INT8_MIN, INT8_MAX, 0x1p7)\n"
    "SATURATE_BOTH(int16_t, i16, INT16_MIN, INT16_MAX, 0x1p15)\n"
    "SATURATE_BOTH(int32_t, i32, INT32_MIN, INT32_MAX, 0x1p31)\n"
    "SATURATE_BOTH(int64_t, i64, INT64_MIN, INT64_MAX, 0x1p63)\n"
    "SATURATE_BOTH(uint8_t, u8, 0, UINT8_MAX, 0x1p8)\n"
    "SATURATE_BOTH(uint16_t, u16, 0, UINT16_MAX, 0x1p16)\n"
    "SATURATE_BOTH(uint32_t, u32, 0, UINT32_MAX, 0x1p32)\n"
    "SATURATE_BOTH(uint64_t, u64, 0, UINT64_MAX, 0x1p64)\n";

static const char rounding[] =
    "/* From `limit` on every value is whole. Zeros keep their sign. */\n"
    "#define ROUNDING(type, name, whole, limit)                         \\\n"
    "    LOCAL type assay_floor_##name(type x)                          \\\n"
    "    {                                                              \\\n"
    "        if (!(x > -(type)limit && x < (type)limit) || x == 0)      \\\n"
    "            return x;                                              \\\n"
    "        type t = (type)(whole)x;                                   \\\n"
    "        return t > x ? t - 1 : t;                                  \\\n"
    "    }                                                              \\\n"
    "    LOCAL type assay_ceil_##name(type x)                           \\\n"
    "    {                                                              \\\n"
    "        return -assay_floor_##name(-x);                            \\\n"
    "    }                                                              \\\n"
    "    LOCAL type assay_round_##name(type x)                          \\\n"
    "    {                                                              \\\n"
    "        if (!(x > -(type)limit && x < (type)limit) || x == 0)      \\\n"
    "            return x;                                              \\\n"
    "        if (x < 0)                                                 \\\n"
    "            return -((-x + (type)limit) - (type)limit);            \\\n"
    "        return (x + (type)limit) - (type)limit;                    \\\n"
    "    }\n"
    "ROUNDING(float, f32, int32_t, 0x1p23)\n"
    "ROUNDING(double, f64, int64_t, 0x1p52)\n"
    "/* Fused multiply-add by rounding to odd; Boldo and Melquiond, 2008,\n"
    " * \"Emulation of FMA and correctly rounded sums\". */\n"
    "LOCAL double assay_odd_sum(double x, double y)\n"
    "{\n"
    "    double s = x + y, z = s - x, e = (x - (s - z)) + (y - z);\n"
    "    int64_t bits = assay_bitcast_f64_i64(s);\n"
    "    if (e == e && e != 0 && !(bits & 1))\n"
    "        bits += (e > 0) == (s > 0) ? 1 : -1;\n"
    "    return assay_bitcast_i64_f64(bits);\n"
    "}\n"
    "LOCAL float assay_fma_f32(float x, float y, float z)\n"
    "{\n"
    "    return (float)assay_odd_sum((double)x * (double)y, (double)z);\n"
    "}\n"
    "LOCAL double assay_fma_f64(double x, double y, double z)\n"
    "{\n"
    "    double p = x * y, c = 0x1.0000002p27;\n"
    "    if (!(p > -0x1p1000 && p < 0x1p1000) || p == 0)\n"
    "        return p + z;\n"
    "    double a = c * x, b = c * y;\n"
    "    double xh = a - (a - x), yh = b - (b - y);\n"
    "    double xl = x - xh, yl = y - yh;\n"
    "    double pl = xl * yl - (((p - xh * yh) - xl * yh) - xh * yl);\n"
    "    double t = z + pl, v = t - z;\n"
    "    double tl = (z - (t - v)) + (pl - v);\n"
    "    double s = p + t, w = s - p;\n"
    "    double sl = (p - (s - w)) + (t - w);\n"
    "    return s + assay_odd_sum(tl, sl);\n"
    "}\n"
    "\n";

void c_emit_preamble(Str *out)
{
    /* Kernels may stand in one file. */
    str_add(out, "#ifndef ASSAY_KERNEL\n#define ASSAY_KERNEL\n");
    str_add(out, types_and_casts);
    str_add(out, rounding);
    str_add(out, "#endif\n\n");
}

static const char *type_name(const Emit *e, DType dtype)
{
    static const char *const names[DT_COUNT] = {
        [DT_F64] = "double",
        [DT_F32] = "float",
        [DT_I64] = "int64_t",
        [DT_I32] = "int32_t",
        [DT_I16] = "int16_t",
        [DT_I8] = "int8_t",
        [DT_U64] = "uint64_t",
        [DT_U32] = "uint32_t",
        [DT_U16] = "uint16_t",
        [DT_U8] = "uint8_t",
        [DT_BOOL] = "_Bool",
        /* Held as their bits. */
        [DT_F16] = "uint16_t",
        [DT_BF16] = "uint16_t",
    };

    if (!names[dtype])
        die("kernel %s: the C backend has no type %s", e->kernel->name,
            dtype_name(dtype));
    return names[dtype];
}

static const char *memory_type(const Emit *e, DType dtype)
{
    return dtype == DT_BOOL ? "uint8_t" : type_name(e, dtype);
}

/* `text` as part of an identifier; the number in front of it is what makes
 * names unique. */
static const char *name_part(Arena *arena, const char *text)
{
    char *id = arena_strdup(arena, text);

    for (char *p = id; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    return id;
}

static bool is_identifier(const char *name)
{
    static const char *const reserved[] = {
        "auto",     "break",    "case",     "char",   "const",   "continue",
        "default",  "do",       "double",   "else",   "enum",    "extern",
        "float",    "for",      "goto",     "if",     "inline",  "int",
        "long",     "register", "restrict", "return", "short",   "signed",
        "sizeof",   "static",   "struct",   "switch", "typedef", "union",
        "unsigned", "void",     "volatile", "while",  "main",    NULL};

    if (!isalpha((unsigned char)name[0]))
        return false;
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    for (int i = 0; reserved[i]; i++)
        if (strcmp(reserved[i], name) == 0)
            return false;
    return true;
}

const char *c_kernel_symbol(Arena *arena, const Kernel *kernel)
{
    if (is_identifier(kernel->name))
        return kernel->name;
    return arena_printf(arena, "k_%s_%016" PRIx64,
                        name_part(arena, kernel->name),
                        hash_text(kernel->name));
}

static void line(Emit *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void line(Emit *e, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    str_addf(e->out, "%*s%s\n", e->depth * 4, "",
             arena_vprintf(e->arena, format, args));
    va_end(args);
}

/* ---- expressions --------------------------------------------------- */

static void count_uses(Emit *e, const Expr *x)
{
    uintptr_t uses = (uintptr_t)ptrmap_get(&e->uses, x);

    ptrmap_set(&e->uses, x, (const void *)(uses + 1));
    if (uses > 0)
        return;
    for (int i = 0; i < x->count; i++)
        count_uses(e, x->arg[i]);
}

/* True when evaluating the expression where it is not asked for could do
 * harm: a load out of bounds. */
static bool must_not_run(const Expr *x)
{
    if (x->kind == EX_LOAD)
        return true;
    for (int i = 0; i < x->count; i++)
        if (must_not_run(x->arg[i]))
            return true;
    return false;
}

static const char *int_text(Emit *e, DType dtype, int64_t value)
{
    if (dtype == DT_BOOL)
        return value ? "1" : "0";
    if (dtype == DT_U64)
        return arena_printf(e->arena, "UINT64_C(%" PRIu64 ")",
                            (uint64_t)value);
    /* C has no negative literals, and its magnitude is no int64_t. */
    if (value == INT64_MIN)
        return "INT64_MIN";
    if (dtype == DT_I64) {
        bool small = value > -32768 && value < 32768;
        return arena_printf(e->arena,
                            small        ? "%" PRId64
                            : value >= 0 ? "INT64_C(%" PRId64 ")"
                                         : "(-INT64_C(%" PRId64 "))",
                            small || value >= 0 ? value : -value);
    }
    return arena_printf(e->arena, "((%s)%" PRId64 ")", type_name(e, dtype),
                        value);
}

static const char *float_text(Emit *e, DType dtype, double value)
{
    const char *suffix = dtype == DT_F32 ? "f" : "";

    if (isnan(value))
        return arena_printf(e->arena, "__builtin_nan%s(\"\")", suffix);
    if (isinf(value))
        return arena_printf(e->arena, "(%s__builtin_inf%s())",
                            value < 0 ? "-" : "", suffix);
    if (value == floor(value) && fabs(value) < 1e6 && !signbit(value))
        return arena_printf(e->arena, "%.1f%s", value, suffix);
    /* Hexadecimal digits say the exact value. */
    return arena_printf(e->arena, signbit(value) ? "(%a%s)" : "%a%s", value,
                        suffix);
}

static const char *lookup(const Emit *e, const Expr *x)
{
    for (Level *l = e->level; l; l = l->parent) {
        const char *name = ptrmap_get(&l->names, x);
        if (name)
            return name;
    }
    return NULL;
}

static const char *emit_expr(Emit *e, const Expr *x);

static const char *buffer_name(Emit *e, const Buffer *b)
{
    const char *name = ptrmap_get(&e->buffers, b);

    if (!name)
        die("kernel %s has no buffer %s", e->kernel->name, b->name);
    return name;
}

static const char *emit_cast(Emit *e, const Expr *x, const char *a)
{
    DType from = x->arg[0]->dtype, to = x->dtype;

    if (to == DT_BOOL)
        return arena_printf(e->arena, "(%s != 0)", a);
    if (dtype_is_float(from) && !dtype_is_float(to))
        return arena_printf(e->arena, "assay_cast_%s_%s(%s)", dtype_name(from),
                            dtype_name(to), a);
    return arena_printf(e->arena, "((%s)%s)", type_name(e, to), a);
}

static const char *emit_unary(Emit *e, const Expr *x)
{
    const char *a = emit_expr(e, x->arg[0]);
    bool f = dtype_is_float(x->arg[0]->dtype);
    const char *type = dtype_name(x->dtype);
    const char *suffix = x->dtype == DT_F32 ? "f" : "";

    switch (x->kind) {
    case EX_CAST:
        return emit_cast(e, x, a);
    case EX_BITCAST:
        if (dtype_is_half(x->dtype) || dtype_is_half(x->arg[0]->dtype))
            return a;
        if (dtype_is_float(x->dtype) == f)
            return arena_printf(e->arena, "((%s)%s)", type_name(e, x->dtype),
                                a);
        return arena_printf(e->arena, "assay_bitcast_%s_%s(%s)",
                            dtype_name(x->arg[0]->dtype), type, a);
    case EX_NEG:
        return f ? arena_printf(e->arena, "(-%s)", a)
                 : arena_printf(e->arena, "((%s)-%s)", type_name(e, x->dtype),
                                a);
    case EX_NOT:
        return x->dtype == DT_BOOL ? arena_printf(e->arena, "(!%s)", a)
                                   : arena_printf(e->arena, "((%s)~%s)",
                                                  type_name(e, x->dtype), a);
    case EX_ABS:
        if (!f)
            return arena_printf(e->arena, "((%s)(%s < 0 ? -%s : %s))",
                                type_name(e, x->dtype), a, a, a);
        return arena_printf(e->arena, "__builtin_fabs%s(%s)", suffix, a);
    case EX_SQRT:
        return arena_printf(e->arena, "__builtin_sqrt%s(%s)", suffix, a);
    case EX_FLOOR:
    case EX_CEIL:
    case EX_ROUND:
        return arena_printf(e->arena, "assay_%s_%s(%s)",
                            x->kind == EX_FLOOR  ? "floor"
                            : x->kind == EX_CEIL ? "ceil"
                                                 : "round",
                            type, a);
    default:
        die("kernel %s: %s of %s has no C form", e->kernel->name,
            expr_kind_name(x->kind), type);
    }
}

/* NaN when either side is: a comparison with NaN is false, so the operand
 * that may be NaN stands where it is taken then. */
static const char *emit_min_max(Emit *e, const Expr *x, const char *a,
                                const char *b)
{
    const char *sign = x->kind == EX_MAX ? ">" : "<";
    bool f = dtype_is_float(x->dtype);
    const Expr *y = x->arg[1];

    if (f && !(y->kind == EX_FLOAT && !isnan(y->f)))
        return arena_printf(e->arena, "(%s %s %s || %s != %s ? %s : %s)", a,
                            sign, b, a, a, a, b);
    return arena_printf(e->arena, "(%s %s %s ? %s : %s)", b, sign, a, b, a);
}

static const char *emit_binary(Emit *e, const Expr *x)
{
    static const char *const signs[EX_KIND_COUNT] = {
        [EX_ADD] = "+",  [EX_SUB] = "-", [EX_MUL] = "*", [EX_DIV] = "/",
        [EX_MOD] = "%",  [EX_AND] = "&", [EX_OR] = "|",  [EX_XOR] = "^",
        [EX_SHR] = ">>", [EX_LT] = "<",  [EX_LE] = "<=", [EX_EQ] = "==",
        [EX_NE] = "!=",
    };
    const char *a = emit_expr(e, x->arg[0]), *b = emit_expr(e, x->arg[1]);
    DType dtype = x->arg[0]->dtype;
    bool f = dtype_is_float(dtype);

    if (x->kind == EX_MIN || x->kind == EX_MAX)
        return emit_min_max(e, x, a, b);
    if ((x->kind == EX_DIV || x->kind == EX_MOD) && !f &&
        dtype_is_signed(dtype))
        return arena_printf(e->arena, "assay_%s_%s(%s, %s)",
                            x->kind == EX_DIV ? "div" : "mod",
                            dtype_name(dtype), a, b);
    /* Unsigned: C leaves the shift of a negative number undefined. */
    if (x->kind == EX_SHL)
        return arena_printf(e->arena, "((%s)((uint64_t)%s << %s))",
                            type_name(e, dtype), a, b);
    if (!signs[x->kind] || (f && x->kind >= EX_MOD && x->kind <= EX_SHR))
        die("kernel %s: %s of %s has no C form", e->kernel->name,
            expr_kind_name(x->kind), dtype_name(dtype));
    /* Narrow integers were promoted to int. */
    if (!f && x->dtype != DT_BOOL && dtype_size(dtype) < 4)
        return arena_printf(e->arena, "((%s)(%s %s %s))", type_name(e, dtype),
                            a, signs[x->kind], b);
    return arena_printf(e->arena, "(%s %s %s)", a, signs[x->kind], b);
}

static void emit_side(Emit *e, const Expr *x, const char *name)
{
    Level inner = {.parent = e->level};

    e->level = &inner;
    e->depth++;
    const char *value = emit_expr(e, x);
    line(e, "%s = %s;", name, value);
    e->depth--;
    e->level = inner.parent;
    ptrmap_free(&inner.names);
}

static const char *emit_select(Emit *e, const Expr *x)
{
    const char *cond = emit_expr(e, x->arg[0]);

    if (!must_not_run(x->arg[1]) && !must_not_run(x->arg[2])) {
        const char *a = emit_expr(e, x->arg[1]);
        const char *b = emit_expr(e, x->arg[2]);
        return arena_printf(e->arena, "(%s ? %s : %s)", cond, a, b);
    }
    const char *name = arena_printf(e->arena, "t%d", e->next_local++);
    line(e, "%s %s;", type_name(e, x->dtype), name);
    line(e, "if (%s) {", cond);
    emit_side(e, x->arg[1], name);
    line(e, "} else {");
    emit_side(e, x->arg[2], name);
    line(e, "}");
    return name;
}

static const char *emit_expr(Emit *e, const Expr *x)
{
    const char *text = lookup(e, x);

    if (text)
        return text;
    switch (x->kind) {
    case EX_INT:
        return int_text(e, x->dtype, x->i);
    case EX_FLOAT:
        return float_text(e, x->dtype, x->f);
    case EX_VAR:
        text = ptrmap_get(&e->vars, x->var);
        if (!text)
            die("kernel %s: %s is not bound", e->kernel->name, x->var->name);
        return text;
    case EX_LOAD: {
        const char *at = emit_expr(e, x->arg[0]);
        text = arena_printf(e->arena,
                            x->dtype == DT_BOOL ? "(%s[%s] != 0)" : "%s[%s]",
                            buffer_name(e, x->buffer), at);
        break;
    }
    case EX_READ:
        die("kernel %s holds a read of %s; loops load", e->kernel->name,
            x->buffer->name);
    case EX_SELECT:
        text = emit_select(e, x);
        break;
    case EX_FMA: {
        const char *a = emit_expr(e, x->arg[0]);
        const char *b = emit_expr(e, x->arg[1]);
        const char *c = emit_expr(e, x->arg[2]);
        text = arena_printf(e->arena, "assay_fma_%s(%s, %s, %s)",
                            dtype_name(x->dtype), a, b, c);
        break;
    }
    default:
        text = x->count == 1 ? emit_unary(e, x) : emit_binary(e, x);
    }
    /* What ends in a letter or digit is a name already, or a constant. */
    bool is_name = isalnum((unsigned char)text[strlen(text) - 1]);
    if (!is_name && ((uintptr_t)ptrmap_get(&e->uses, x) > 1 ||
                     strlen(text) > MAX_INLINE)) {
        const char *name = arena_printf(e->arena, "t%d", e->next_local++);
        line(e, "const %s %s = %s;", type_name(e, x->dtype), name, text);
        text = name;
    }
    ptrmap_set(&e->level->names, x, text);
    return text;
}

/* ---- statements ---------------------------------------------------- */

static void emit_stmt(Emit *e, const Stmt *s);

static const char *bind_var(Emit *e, const Var *var)
{
    const char *name = arena_printf(e->arena, "v%d_%s", e->next_var++,
                                    name_part(e->arena, var->name));

    ptrmap_set(&e->vars, var, name);
    return name;
}

static void begin_statement(Emit *e, Level *level)
{
    ptrmap_free(&e->uses);
    e->uses = (PtrMap){0};
    *level = (Level){0};
    e->level = level;
}

static void emit_store(Emit *e, const Stmt *s)
{
    const Expr *value = math_expand(e->arena, s->value, e->kernel->fused_math);
    Level level;

    begin_statement(e, &level);
    count_uses(e, value);
    count_uses(e, s->offset);
    const char *text = emit_expr(e, value);
    const char *at = emit_expr(e, s->offset);
    line(e, "%s[%s] = %s;", buffer_name(e, s->buffer), at, text);
    ptrmap_free(&level.names);
}

/* The text of an expression that belongs to no store. */
static const char *emit_value(Emit *e, const Expr *x)
{
    Level level;

    begin_statement(e, &level);
    x = math_expand(e->arena, x, e->kernel->fused_math);
    count_uses(e, x);
    const char *text = emit_expr(e, x);
    ptrmap_free(&level.names);
    return text;
}

/* The number of iterations: a number, or the name of a local constant. */
static const char *loop_count(Emit *e, const Stmt *s)
{
    const char *extent = arena_printf(e->arena, "%" PRId64, s->extent);

    if (!s->limit)
        return extent;
    const char *limit = emit_value(e, s->limit);
    const char *name = arena_printf(e->arena, "n%d", e->next_local++);
    line(e, "const int64_t %s = %s < %s ? %s : %s;", name, limit, extent,
         limit, extent);
    return name;
}

static void emit_if(Emit *e, const Stmt *s)
{
    line(e, "if (%s) {", emit_value(e, s->cond));
    e->depth++;
    emit_stmt(e, s->body);
    e->depth--;
    line(e, "}");
}

static void mark_expr(PtrMap *seen, PtrMap *used, const Expr *x)
{
    if (ptrmap_get(seen, x))
        return;
    ptrmap_set(seen, x, x);
    if (x->kind == EX_LOAD)
        ptrmap_set(used, x->buffer, x->buffer);
    for (int i = 0; i < x->count; i++)
        mark_expr(seen, used, x->arg[i]);
}

/* Buffers that one function touches: those of parallel loops are declared
 * in their own. */
static void mark_stmt(PtrMap *seen, PtrMap *used, const Stmt *s, bool inside)
{
    switch (s->kind) {
    case STMT_BLOCK:
        for (int i = 0; i < s->list.count; i++)
            mark_stmt(seen, used, s->list.data[i], inside);
        return;
    case STMT_FOR:
        if (s->limit)
            mark_expr(seen, used, s->limit);
        if (inside || s->loop != LOOP_PARALLEL)
            mark_stmt(seen, used, s->body, inside);
        return;
    case STMT_PREFETCH:
        return;
    case STMT_IF:
        mark_expr(seen, used, s->cond);
        mark_stmt(seen, used, s->body, inside);
        return;
    case STMT_STORE:
        ptrmap_set(used, s->buffer, s->buffer);
        mark_expr(seen, used, s->offset);
        mark_expr(seen, used, s->value);
        return;
    }
}

/* Declares pointers and local arrays of the function whose body is `s`. */
static void declare_buffers(Emit *e, const Stmt *s, bool inside)
{
    const Kernel *k = e->kernel;
    PtrMap seen = {0}, used = {0};

    mark_stmt(&seen, &used, s, inside);
    for (int i = 0; i < k->params.count; i++) {
        const Buffer *b = k->params.data[i];
        const char *name =
            arena_printf(e->arena, "p%d_%s", i, name_part(e->arena, b->name));
        ptrmap_set(&e->buffers, b, name);
        if (!ptrmap_get(&used, b))
            continue;
        const char *type = memory_type(e, b->dtype);
        const char *qualifier = b->role == BUF_INPUT ? "const " : "";
        /* Not restrict: a result may share an operand's storage. */
        line(e, "%s%s *const %s = args[%d];", qualifier, type, name, i);
    }
    for (int i = 0; i < k->temps.count; i++) {
        const Buffer *b = k->temps.data[i];
        const char *name =
            arena_printf(e->arena, "l%d_%s", i, name_part(e->arena, b->name));
        ptrmap_set(&e->buffers, b, name);
        if (ptrmap_get(&used, b))
            line(e, "_Alignas(64) %s %s[%" PRId64 "];",
                 memory_type(e, b->dtype), name, buffer_size(b));
    }
    ptrmap_free(&seen);
    ptrmap_free(&used);
}

/* A function of its own, which the runtime calls with ranges. */
static void emit_parallel(Emit *e, const Stmt *s)
{
    Str *out = e->out;
    int depth = e->depth, task = e->next_task++;

    /* C functions do not nest: tasks stand before the kernel's own text. */
    e->out = e->tasks;
    e->depth = 0;
    line(e,
         "static void %s_task%d(void *context, int64_t begin, "
         "int64_t end)",
         e->symbol, task);
    line(e, "{");
    e->depth++;
    line(e, "void *const *args = context;");
    declare_buffers(e, s->body, true);
    const char *var = bind_var(e, s->var);
    line(e, "for (int64_t %s = begin; %s < end; %s++) {", var, var, var);
    e->depth++;
    emit_stmt(e, s->body);
    e->depth--;
    line(e, "}");
    e->depth--;
    line(e, "}");
    line(e, "%s", "");
    e->out = out;
    e->depth = depth;
    /* The task has names of its own for the buffers, which are the same. */
    line(e, "run->parallel_for(run->pool, %s_task%d, (void *)args, %s);",
         e->symbol, task, loop_count(e, s));
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
        return; /* a hint that portable C has no word for */
    case STMT_IF:
        emit_if(e, s);
        return;
    case STMT_FOR:
        break;
    }
    if (s->loop == LOOP_PARALLEL) {
        emit_parallel(e, s);
        return;
    }
    const char *count = loop_count(e, s);
    const char *var = bind_var(e, s->var);
    line(e, "for (int64_t %s = 0; %s < %s; %s++) {", var, var, count, var);
    e->depth++;
    emit_stmt(e, s->body);
    e->depth--;
    line(e, "}");
}

void c_emit_kernel(Str *out, const Kernel *kernel)
{
    Str body = {0}, tasks = {0};
    Emit e = {
        .out = &body, .tasks = &tasks, .arena = arena_new(), .kernel = kernel};

    e.symbol = c_kernel_symbol(e.arena, kernel);
    line(&e, "void %s(const AssayRun *run, void *const *args)", e.symbol);
    line(&e, "{");
    e.depth++;
    line(&e, "(void)run, (void)args;");
    declare_buffers(&e, kernel->body, false);
    emit_stmt(&e, kernel->body);
    e.depth--;
    line(&e, "}");
    str_addf(out, "void %s(const AssayRun *run, void *const *args);\n\n",
             e.symbol);
    str_add(out, str_text(&tasks));
    str_add(out, str_text(&body));
    ptrmap_free(&e.uses);
    ptrmap_free(&e.vars);
    ptrmap_free(&e.buffers);
    str_free(&tasks);
    str_free(&body);
    arena_free(e.arena);
}
