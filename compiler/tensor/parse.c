/* Reads the printed forms of definitions and loops. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/loops.h"
#include "tensor/text.h"

typedef struct Parser {
    Arena *arena;
    Diag *diag;
    const char *start, *p;
    bool failed;
    bool is_loops; /* brackets hold one storage offset */
    Vec(Buffer *) buffers;
    Vec(const Var *) vars; /* in scope */
} Parser;

/* The first failure is the one reported: what follows from it is noise. */
static void fail(Parser *in, const char *expected)
{
    if (in->failed)
        return;
    int line = 1;
    for (const char *q = in->start; q < in->p; q++)
        line += *q == '\n';
    int length = (int)strcspn(in->p, "\n");
    diag_error(in->diag, "line %d: expected %s before \"%.*s\"", line,
               expected, length > 30 ? 30 : length, in->p);
    in->failed = true;
}

static void skip_space(Parser *in)
{
    while (isspace((unsigned char)*in->p))
        in->p++;
}

static bool accept(Parser *in, const char *text)
{
    skip_space(in);
    size_t n = strlen(text);
    if (in->failed || strncmp(in->p, text, n))
        return false;
    /* A word must end where `text` does. */
    if (isalnum((unsigned char)text[n - 1]) &&
        (isalnum((unsigned char)in->p[n]) || in->p[n] == '_'))
        return false;
    in->p += n;
    return true;
}

static void expect(Parser *in, const char *text)
{
    if (!accept(in, text))
        fail(in, text);
}

/* An identifier, or "" after a failure. */
static const char *word(Parser *in)
{
    skip_space(in);
    const char *q = in->p;
    while (isalnum((unsigned char)*q) || *q == '_')
        q++;
    if (q == in->p || isdigit((unsigned char)*in->p)) {
        fail(in, "a name");
        return "";
    }
    const char *text = arena_strndup(in->arena, in->p, (size_t)(q - in->p));
    in->p = q;
    return text;
}

static int64_t integer(Parser *in)
{
    skip_space(in);
    char *end;
    long long v = strtoll(in->p, &end, 10);
    if (end == in->p)
        fail(in, "an integer");
    else
        in->p = end;
    return v;
}

static DType dtype(Parser *in)
{
    const char *name = word(in);
    DType d = in->failed ? DT_INVALID : dtype_parse(name);
    if (d == DT_INVALID)
        fail(in, "an element type");
    return d;
}

static Buffer *find_buffer(Parser *in, const char *name)
{
    for (int i = 0; i < in->buffers.count; i++)
        if (strcmp(in->buffers.data[i]->name, name) == 0)
            return in->buffers.data[i];
    return NULL;
}

/* ---- expressions --------------------------------------------------- */

static const Expr *expression(Parser *in);

/* What a failed parse returns, so that callers may go on and look at `failed`
 * where it suits them. */
static const Expr *zero(Parser *in)
{
    return expr_int(in->arena, 0);
}

static const Expr *number(Parser *in)
{
    /* Numbers without a point, an exponent or a name are integers. */
    const char *q = in->p;
    bool is_float = false;
    if (*q == '-')
        q++;
    if (isalpha((unsigned char)*q)) {
        is_float = true; /* inf, nan */
    } else {
        for (; isalnum((unsigned char)*q) || *q == '.' ||
               ((*q == '-' || *q == '+') && (q[-1] == 'e'));
             q++)
            is_float |= *q == '.' || *q == 'e';
    }
    char *end;
    double f = 0;
    long long i = 0;
    if (is_float)
        f = strtod(in->p, &end);
    else
        i = strtoll(in->p, &end, 10);
    if (end == in->p) {
        fail(in, "a number");
        return zero(in);
    }
    in->p = end;
    DType d = is_float ? DT_F32 : DT_I64;
    if (*in->p == ':') {
        in->p++;
        d = dtype(in);
        if (in->failed)
            return zero(in);
    }
    return is_float ? expr_const(in->arena, d, f)
                    : expr_const_int(in->arena, d, i);
}

static const Expr *access(Parser *in, const Buffer *b)
{
    const Expr *index[MAX_RANK], *outside = NULL;
    int n = 0, want = in->is_loops ? 1 : b->rank;
    if (!accept(in, "]")) {
        do {
            if (n == want) {
                fail(in, "fewer indices");
                return zero(in);
            }
            index[n] = expression(in);
            if (in->failed)
                return zero(in);
            if (index[n++]->dtype != DT_I64) {
                fail(in, "an i64 index");
                return zero(in);
            }
        } while (accept(in, ","));
        if (accept(in, "|"))
            outside = expression(in);
        expect(in, "]");
    }
    if (!in->failed && n != want)
        fail(in, "more indices");
    if (in->failed)
        return zero(in);
    return in->is_loops ? expr_load(in->arena, b, index[0])
                        : expr_read_padded(in->arena, b, index, outside);
}

static const Expr *call(Parser *in, const char *name)
{
    Arena *a = in->arena;
    const Expr *arg[3];
    int n = 0;
    do {
        if (n == 3) {
            fail(in, "at most three arguments");
            return zero(in);
        }
        arg[n++] = expression(in);
    } while (accept(in, ","));
    expect(in, ")");
    if (in->failed)
        return zero(in);
    DType d = dtype_parse(name);
    if (d != DT_INVALID && n == 1)
        return expr_cast(a, d, arg[0]);
    if (strncmp(name, "bits_", 5) == 0 && n == 1) {
        d = dtype_parse(name + 5);
        if (d != DT_INVALID && dtype_size(d) == dtype_size(arg[0]->dtype))
            return expr_bitcast(a, d, arg[0]);
    }
    for (int k = EX_NEG; k < EX_KIND_COUNT; k++) {
        ExprKind kind = (ExprKind)k;
        int arity = k < EX_ADD ? 1 : k < EX_SELECT ? 2 : 3;
        if (strcmp(expr_kind_name(kind), name) || arity != n ||
            kind == EX_CAST || kind == EX_BITCAST)
            continue;
        if (n == 1)
            return expr_unary(a, kind, arg[0]);
        if (n == 2 && arg[0]->dtype == arg[1]->dtype)
            return expr_binary(a, kind, arg[0], arg[1]);
        if (kind == EX_FMA && arg[0]->dtype == arg[1]->dtype &&
            arg[0]->dtype == arg[2]->dtype)
            return expr_fma(a, arg[0], arg[1], arg[2]);
        if (kind == EX_SELECT && arg[0]->dtype == DT_BOOL &&
            arg[1]->dtype == arg[2]->dtype)
            return expr_select(a, arg[0], arg[1], arg[2]);
        fail(in, "arguments of matching types");
        return zero(in);
    }
    fail(in, "a function");
    return zero(in);
}

static const Expr *infix(Parser *in)
{
    static const struct {
        char text;
        ExprKind kind;
    } rows[] = {{'+', EX_ADD},
                {'-', EX_SUB},
                {'*', EX_MUL},
                {'/', EX_DIV},
                {'%', EX_MOD}};
    const Expr *x = expression(in);
    skip_space(in);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (in->failed || *in->p != rows[i].text)
            continue;
        in->p++;
        const Expr *y = expression(in);
        expect(in, ")");
        if (in->failed)
            return zero(in);
        if (x->dtype != y->dtype) {
            fail(in, "operands of one type");
            return zero(in);
        }
        return expr_binary(in->arena, rows[i].kind, x, y);
    }
    fail(in, "an operator");
    return zero(in);
}

static const Expr *expression(Parser *in)
{
    skip_space(in);
    if (in->failed)
        return zero(in);
    if (accept(in, "("))
        return infix(in);
    bool named =
        strncmp(in->p, "inf", 3) == 0 || strncmp(in->p, "nan", 3) == 0;
    bool is_number =
        isdigit((unsigned char)*in->p) || *in->p == '-' ||
        (named && !isalnum((unsigned char)in->p[3]) && in->p[3] != '_');
    if (is_number)
        return number(in);
    const char *name = word(in);
    if (in->failed)
        return zero(in);
    if (*in->p == '(') {
        in->p++;
        return call(in, name);
    }
    if (*in->p == '[') {
        const Buffer *b = find_buffer(in, name);
        if (!b) {
            fail(in, "a buffer");
            return zero(in);
        }
        in->p++;
        return access(in, b);
    }
    for (int i = in->vars.count - 1; i >= 0; i--)
        if (strcmp(in->vars.data[i]->name, name) == 0)
            return expr_var(in->arena, in->vars.data[i]);
    fail(in, "a variable in scope");
    return zero(in);
}

/* ---- declarations -------------------------------------------------- */

/* "limit" and an expression, or NULL. */
static const Expr *limit(Parser *in)
{
    const Expr *x = accept(in, "limit") ? expression(in) : NULL;
    if (!in->failed && x && x->dtype != DT_I64)
        fail(in, "an i64 limit");
    return x;
}

/* One declaration, or false when none follows. */
static bool declaration(Parser *in)
{
    Buffer b = {0};
    if (accept(in, "in"))
        b.role = BUF_INPUT;
    else if (accept(in, "const"))
        b.role = BUF_INPUT, b.is_constant = true;
    else if (accept(in, "extents"))
        b.role = BUF_INPUT, b.is_extents = true;
    else if (accept(in, "out"))
        b.role = BUF_OUTPUT;
    else if (accept(in, "temp"))
        b.role = BUF_TEMP;
    else
        return false;
    if (accept(in, "local"))
        b.scope = SCOPE_LOCAL;
    else if (accept(in, "register"))
        b.scope = SCOPE_REGISTER;
    else if (accept(in, "shared"))
        b.scope = SCOPE_SHARED;
    b.name = word(in);
    b.dtype = dtype(in);
    expect(in, "[");
    if (!accept(in, "]")) {
        do {
            if (b.rank == MAX_RANK) {
                fail(in, "at most eight dimensions");
                return false;
            }
            b.dims[b.rank] = integer(in);
            b.limit[b.rank++] = limit(in);
        } while (accept(in, ","));
        expect(in, "]");
    }
    if (in->failed)
        return false;
    b.layout = layout_row_major(b.rank);
    while (*in->p == ' ')
        in->p++;
    if (*in->p == '[' && !layout_parse(&in->p, b.rank, &b.layout))
        fail(in, "a layout");
    if (find_buffer(in, b.name))
        fail(in, "a name that is not taken");
    Buffer *copy = arena_copy(in->arena, &b, sizeof b);
    vec_push(in->arena, &in->buffers, copy);
    return !in->failed;
}

static const Var *new_var(Parser *in, const char *name)
{
    Var *var = ARENA_NEW(in->arena, Var);
    var->name = name;
    vec_push(in->arena, &in->vars, (const Var *)var);
    return var;
}

static int axes(Parser *in, Axis axis[MAX_RANK])
{
    int n = 0;
    expect(in, "[");
    if (accept(in, "]"))
        return 0;
    do {
        if (n == MAX_RANK) {
            fail(in, "at most eight axes");
            return n;
        }
        axis[n].var = new_var(in, word(in));
        expect(in, ":");
        axis[n].extent = integer(in);
        axis[n++].limit = limit(in);
    } while (accept(in, ","));
    expect(in, "]");
    return n;
}

static const Reducer *reducer(Parser *in, DType d)
{
    const char *name = word(in);
    static const char *const simple[] = {"sum", "prod", "max", "min"};
    for (int i = 0; i < 4; i++)
        if (strcmp(name, simple[i]) == 0)
            return reducer_simple(in->arena, name, d);
    for (int i = 0; i < 4; i++) {
        const char *text =
            arena_printf(in->arena, "arg_%s_%s", i & 1 ? "max" : "min",
                         i & 2 ? "last" : "first");
        if (strcmp(name, text) == 0)
            return reducer_arg(in->arena, d, i & 1, i & 2);
    }
    fail(in, "a reducer");
    return NULL;
}

static void stage(Parser *in, Definition *def)
{
    Stage *s = ARENA_NEW(in->arena, Stage);
    /* Axes are in scope in their own stage. */
    in->vars.count = 0;
    do {
        Buffer *b = find_buffer(in, word(in));
        if (!b || s->value_count == MAX_VALUES) {
            fail(in, "a buffer that was declared");
            return;
        }
        s->out[s->value_count++] = b;
        skip_space(in);
    } while (!in->failed && *in->p != '[');
    s->name = s->out[0]->name;
    s->axis_count = axes(in, s->axis);
    if (!in->failed && !accept(in, "=")) {
        s->reducer = reducer(in, s->out[0]->dtype);
        s->reduce_count = axes(in, s->reduce);
        expect(in, "=");
    }
    for (int k = 0; k < s->value_count && !in->failed; k++) {
        if (k)
            expect(in, ";");
        s->value[k] = expression(in);
        if (!in->failed && s->value[k]->dtype != s->out[k]->dtype)
            fail(in, "a value of the buffer's type");
    }
    vec_push(in->arena, &def->stages, s);
}

Definition *definition_parse(Arena *arena, Diag *diag, const char *text)
{
    Parser in = {.arena = arena, .diag = diag, .start = text, .p = text};
    expect(&in, "definition");
    Definition *def = definition_new(arena, word(&in));
    expect(&in, "{");
    while (declaration(&in))
        ;
    for (int i = 0; i < in.buffers.count; i++)
        vec_push(arena, &def->buffers, in.buffers.data[i]);
    while (accept(&in, "stage"))
        stage(&in, def);
    expect(&in, "}");
    return in.failed ? NULL : def;
}

/* ---- loops --------------------------------------------------------- */

static Stmt *statements(Parser *in);

static Stmt *statement(Parser *in)
{
    for (int k = LOOP_SERIAL; k <= LOOP_UNROLLED; k++) {
        if (!accept(in, loop_kind_name((LoopKind)k)))
            continue;
        const char *name = word(in);
        int64_t extent = integer(in);
        const Expr *end = limit(in);
        const Var *var = new_var(in, name);
        expect(in, "{");
        Stmt *body = statements(in);
        expect(in, "}");
        in->vars.count--;
        return stmt_for_limited(in->arena, (LoopKind)k, var, extent, end,
                                body);
    }
    if (accept(in, "if")) {
        const Expr *cond = expression(in);
        expect(in, "{");
        Stmt *body = statements(in);
        expect(in, "}");
        return stmt_if(in->arena, cond, body);
    }
    bool prefetch = accept(in, "prefetch");
    const Buffer *b = find_buffer(in, word(in));
    if (!b) {
        fail(in, "a buffer that was declared");
        return NULL;
    }
    expect(in, "[");
    const Expr *offset = expression(in);
    expect(in, "]");
    if (prefetch)
        return in->failed ? NULL : stmt_prefetch(in->arena, b, offset);
    expect(in, "=");
    const Expr *value = expression(in);
    if (!in->failed && value->dtype != b->dtype)
        fail(in, "a value of the buffer's type");
    return in->failed ? NULL : stmt_store(in->arena, b, offset, value);
}

static Stmt *statements(Parser *in)
{
    Stmt *block = stmt_block(in->arena);
    skip_space(in);
    while (!in->failed && *in->p != '}' && *in->p) {
        Stmt *s = statement(in);
        if (s)
            vec_push(in->arena, &block->list, s);
        skip_space(in);
    }
    return block;
}

Kernel *kernel_parse(Arena *arena, Diag *diag, const char *text)
{
    Parser in = {.arena = arena,
                 .diag = diag,
                 .start = text,
                 .p = text,
                 .is_loops = true};
    expect(&in, "kernel");
    Kernel *k = ARENA_NEW(arena, Kernel);
    k->arena = arena;
    k->name = word(&in);
    expect(&in, "{");
    k->fused_math = accept(&in, "fused_math");
    while (declaration(&in))
        ;
    for (int i = 0; i < in.buffers.count; i++) {
        Buffer *b = in.buffers.data[i];
        if (b->scope == SCOPE_GLOBAL)
            vec_push(arena, &k->params, b);
        else
            vec_push(arena, &k->temps, b);
    }
    k->body = statements(&in);
    expect(&in, "}");
    if (in.failed)
        return NULL;
    k->hash = kernel_hash(k);
    return k;
}
