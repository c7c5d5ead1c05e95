/* Loops: statements, printing, hashing, the verifier. */
#include "tensor/loops.h"

#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "tensor/text.h"

static Stmt *stmt(Arena *a, StmtKind kind)
{
    Stmt *s = ARENA_NEW(a, Stmt);
    s->kind = kind;
    return s;
}

Stmt *stmt_block(Arena *a)
{
    return stmt(a, STMT_BLOCK);
}

Stmt *stmt_for(Arena *a, LoopKind kind, const Var *var, int64_t extent,
               Stmt *body)
{
    /* Code generators may rely on every loop without a limit running once at
     * least. */
    if (extent == 0)
        return stmt(a, STMT_BLOCK);
    Stmt *s = stmt(a, STMT_FOR);
    s->loop = kind;
    s->var = var;
    s->extent = extent;
    s->body = body;
    return s;
}

Stmt *stmt_for_limited(Arena *a, LoopKind kind, const Var *var, int64_t extent,
                       const Expr *limit, Stmt *body)
{
    if (limit && limit->kind == EX_INT) {
        if (limit->i < extent)
            extent = limit->i > 0 ? limit->i : 0;
        limit = NULL;
    }
    Stmt *s = stmt_for(a, kind, var, extent, body);
    s->limit = s->kind == STMT_FOR ? limit : NULL;
    return s;
}

Stmt *stmt_store(Arena *a, const Buffer *buffer, const Expr *offset,
                 const Expr *value)
{
    if (value->dtype != buffer->dtype)
        die("store of %s to %s", dtype_name(value->dtype), buffer->name);
    Stmt *s = stmt(a, STMT_STORE);
    s->buffer = buffer;
    s->offset = offset;
    s->value = value;
    return s;
}

Stmt *stmt_prefetch(Arena *a, const Buffer *buffer, const Expr *offset)
{
    Stmt *s = stmt(a, STMT_PREFETCH);
    s->buffer = buffer;
    s->offset = offset;
    return s;
}

Stmt *stmt_if(Arena *a, const Expr *cond, Stmt *body)
{
    Stmt *s = stmt(a, STMT_IF);
    s->cond = cond;
    s->body = body;
    return s;
}

void stmt_bind(Arena *a, Stmt *s, const Var *var, const Expr *value)
{
    const Expr **expr[] = {&s->limit, &s->offset, &s->value, &s->cond};
    for (int i = 0; i < 4; i++)
        if (*expr[i])
            *expr[i] = expr_bind(a, *expr[i], var, value);
    for (int i = 0; i < s->list.count; i++)
        stmt_bind(a, s->list.data[i], var, value);
    if (s->body)
        stmt_bind(a, s->body, var, value);
}

int64_t buffer_size(const Buffer *b)
{
    return layout_size(&b->layout, b->rank, b->dims);
}

const char *loop_kind_name(LoopKind kind)
{
    static const char *const names[] = {
        [LOOP_SERIAL] = "for",
        [LOOP_PARALLEL] = "parallel",
        [LOOP_VECTOR] = "vector",
        [LOOP_UNROLLED] = "unrolled",
    };
    return names[kind];
}

static void print_stmt(Str *out, const Stmt *s, int depth)
{
    if (s->kind == STMT_BLOCK) {
        for (int i = 0; i < s->list.count; i++)
            print_stmt(out, s->list.data[i], depth);
        return;
    }
    str_addf(out, "%*s", depth * 2, "");
    switch (s->kind) {
    case STMT_FOR:
        str_addf(out, "%s %s %lld ", loop_kind_name(s->loop), s->var->name,
                 (long long)s->extent);
        if (s->limit) {
            str_add(out, "limit ");
            expr_print(out, s->limit);
            str_add(out, " ");
        }
        str_add(out, "{\n");
        break;
    case STMT_IF:
        str_add(out, "if ");
        expr_print(out, s->cond);
        str_add(out, " {\n");
        break;
    default:
        str_addf(out, "%s%s[", s->kind == STMT_PREFETCH ? "prefetch " : "",
                 s->buffer->name);
        expr_print(out, s->offset);
        str_add(out, "]");
        if (s->kind == STMT_STORE) {
            str_add(out, " = ");
            expr_print(out, s->value);
        }
        str_add(out, "\n");
        return;
    }
    print_stmt(out, s->body, depth + 1);
    str_addf(out, "%*s}\n", depth * 2, "");
}

static void print_buffer(Str *out, const Buffer *b, bool limits)
{
    static const char *const roles[] = {
        [BUF_INPUT] = "in", [BUF_OUTPUT] = "out", [BUF_TEMP] = "temp"};
    static const char *const scopes[] = {
        [SCOPE_GLOBAL] = "",
        [SCOPE_LOCAL] = " local",
        [SCOPE_REGISTER] = " register",
        [SCOPE_SHARED] = " shared",
    };
    str_addf(out, "  %s%s %s %s[",
             b->is_extents                            ? "extents"
             : b->role == BUF_INPUT && b->is_constant ? "const"
                                                      : roles[b->role],
             scopes[b->scope], b->name, dtype_name(b->dtype));
    for (int i = 0; i < b->rank; i++) {
        str_addf(out, "%s%lld", i ? ", " : "", (long long)b->dims[i]);
        if (limits && b->limit[i]) {
            str_add(out, " limit ");
            expr_print(out, b->limit[i]);
        }
    }
    str_add(out, "]");
    if (!layout_is_row_major(&b->layout, b->rank)) {
        str_add(out, " ");
        layout_print(out, &b->layout);
    }
    str_add(out, "\n");
}

/* Kernels address storage: for them limits are those of their loops. */
void buffer_print(Str *out, const Buffer *b)
{
    print_buffer(out, b, false);
}

void buffer_print_limits(Str *out, const Buffer *b)
{
    print_buffer(out, b, true);
}

static void print_without_name(Str *out, const Kernel *k)
{
    if (k->fused_math)
        str_add(out, "  fused_math\n");
    for (int i = 0; i < k->params.count; i++)
        buffer_print(out, k->params.data[i]);
    for (int i = 0; i < k->temps.count; i++)
        buffer_print(out, k->temps.data[i]);
    print_stmt(out, k->body, 1);
}

void kernel_print(Str *out, const Kernel *k)
{
    str_addf(out, "kernel %s {\n", k->name);
    print_without_name(out, k);
    str_add(out, "}\n");
}

/* Gives the buffers their number as name, or the saved names back. */
static void rename_buffers(Arena *a, const Kernel *k, const char **saved,
                           bool restore)
{
    for (int i = 0; i < k->params.count + k->temps.count; i++) {
        Buffer *b = i < k->params.count ? k->params.data[i]
                                        : k->temps.data[i - k->params.count];
        if (!restore)
            saved[i] = b->name;
        b->name = restore ? saved[i] : arena_printf(a, "b%d", i);
    }
}

/* Buffers are named after the graph's tensors; kernels of the same shape
 * must share code, so the hash sees buffers by number. */
uint64_t kernel_hash(const Kernel *k)
{
    Arena *scratch = arena_new();
    const char **saved = ARENA_ARRAY(scratch, const char *,
                                     k->params.count + k->temps.count + 1);
    Str text = {0};
    rename_buffers(scratch, k, saved, false);
    print_without_name(&text, k);
    rename_buffers(scratch, k, saved, true);
    uint64_t hash = hash_bytes(text.data, text.length, 0);
    str_free(&text);
    arena_free(scratch);
    return hash;
}

typedef struct Check {
    const Kernel *kernel;
    Vec(const Var *) vars;
    int depth;
} Check;

static bool is_own_buffer(const Kernel *k, const Buffer *b)
{
    for (int i = 0; i < k->params.count; i++)
        if (k->params.data[i] == b)
            return true;
    for (int i = 0; i < k->temps.count; i++)
        if (k->temps.data[i] == b)
            return true;
    return false;
}

static void verify_expr(const Check *c, const Expr *x)
{
    if (x->kind == EX_VAR) {
        for (int i = 0; i < c->vars.count; i++)
            if (c->vars.data[i] == x->var)
                return;
        die("%s uses %s outside its loop", c->kernel->name, x->var->name);
    }
    if (x->kind == EX_READ)
        die("%s holds a read of %s; loops load", c->kernel->name,
            x->buffer->name);
    if (x->kind == EX_LOAD && !is_own_buffer(c->kernel, x->buffer))
        die("%s loads from %s, which it does not declare", c->kernel->name,
            x->buffer->name);
    for (int i = 0; i < x->count; i++)
        verify_expr(c, x->arg[i]);
}

/* `around` is the innermost loop's kind: the lanes of a vector loop cannot
 * branch apart into loops of their own. */
static void verify_stmt(Check *c, const Stmt *s, LoopKind around)
{
    switch (s->kind) {
    case STMT_BLOCK:
        for (int i = 0; i < s->list.count; i++)
            verify_stmt(c, s->list.data[i], around);
        return;
    case STMT_STORE:
        if (!is_own_buffer(c->kernel, s->buffer) ||
            s->buffer->role == BUF_INPUT)
            die("%s stores to %s", c->kernel->name, s->buffer->name);
        verify_expr(c, s->offset);
        verify_expr(c, s->value);
        return;
    case STMT_PREFETCH:
        if (!is_own_buffer(c->kernel, s->buffer) || around == LOOP_VECTOR)
            die("%s prefetches %s", c->kernel->name, s->buffer->name);
        verify_expr(c, s->offset);
        return;
    case STMT_IF:
        verify_expr(c, s->cond);
        verify_stmt(c, s->body, around);
        return;
    case STMT_FOR:
        if (around == LOOP_VECTOR)
            die("%s: loop %s inside a vector loop", c->kernel->name,
                s->var->name);
        /* A task calls no other: the pool's threads never wait for each other
         * inside one. */
        if (s->loop == LOOP_PARALLEL && c->depth)
            die("%s: parallel loop %s is not outermost", c->kernel->name,
                s->var->name);
        if (s->extent < 1)
            die("%s: loop %s has extent %lld", c->kernel->name, s->var->name,
                (long long)s->extent);
        if (s->limit && s->limit->dtype != DT_I64)
            die("%s: the limit of loop %s is %s", c->kernel->name,
                s->var->name, dtype_name(s->limit->dtype));
        /* Outside of its own loop: the variable is not in scope yet. */
        if (s->limit)
            verify_expr(c, s->limit);
        vec_push(c->kernel->arena, &c->vars, s->var);
        c->depth++;
        verify_stmt(c, s->body, s->loop);
        c->depth--;
        c->vars.count--;
        return;
    }
}

void kernel_verify(const Kernel *k)
{
    Check c = {.kernel = k};
    verify_stmt(&c, k->body, LOOP_SERIAL);
}
