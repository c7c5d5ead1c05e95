/* The C backend on kernels built by hand: every kind of expression against
 * the C library and the interpreter, names, laziness, parallel loops. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/c.h"
#include "runtime/abi.h"

typedef struct Fixture {
    Arena *arena;
    Diag *diag;
    Kernel *kernel;
    Stmt *body;
    const Var *i;
    const Expr *at; /* i */
    int64_t count;
} Fixture;

typedef void (*KernelFunction)(const AssayRun *run, void *const *args);

static Fixture fixture(const char *name, int64_t count)
{
    Fixture f = {.arena = arena_new(), .count = count};
    Var *var = ARENA_NEW(f.arena, Var);

    var->name = "i";
    f.i = var;
    f.at = expr_var(f.arena, var);
    f.diag = diag_new(f.arena, NULL);
    f.kernel = ARENA_NEW(f.arena, Kernel);
    f.kernel->arena = f.arena;
    f.kernel->name = name;
    f.kernel->body = stmt_block(f.arena);
    f.body = stmt_block(f.arena);
    return f;
}

static Buffer *add_buffer(Fixture *f, const char *name, BufferRole role,
                          Scope scope, DType dtype, int64_t count)
{
    Buffer *b = ARENA_NEW(f->arena, Buffer);

    b->name = name;
    b->role = role;
    b->scope = scope;
    b->dtype = dtype;
    b->rank = 1;
    b->dims[0] = count;
    b->layout = layout_row_major(1);
    if (scope == SCOPE_GLOBAL)
        vec_push(f->arena, &f->kernel->params, b);
    else
        vec_push(f->arena, &f->kernel->temps, b);
    return b;
}

static Buffer *param(Fixture *f, const char *name, BufferRole role,
                     DType dtype)
{
    return add_buffer(f, name, role, SCOPE_GLOBAL, dtype, f->count);
}

/* Adds an output whose element i is `value`. */
static void store(Fixture *f, const char *name, const Expr *value)
{
    Buffer *out = param(f, name, BUF_OUTPUT, value->dtype);

    vec_push(f->arena, &f->body->list,
             stmt_store(f->arena, out, f->at, value));
}

static void finish(Fixture *f, LoopKind kind)
{
    vec_push(f->arena, &f->kernel->body->list,
             stmt_for(f->arena, kind, f->i, f->count, f->body));
    kernel_verify(f->kernel);
}

/* Through the C compiler without any library, and loaded. */
static KernelFunction load(Fixture *f, const char *dir, void **library)
{
    Program p = {.arena = f->arena, .name = "test"};
    Target target = {.name = "c", .cc = "cc"};
    const char **objects;
    int count;
    KernelFunction function;

    p.target = &target;
    vec_push(f->arena, &p.kernels, ((ProgramKernel){.kernel = f->kernel}));
    if (!codegen_c(&p, f->diag, &(CodegenOptions){.jobs = 1}, dir, &objects,
                   &count))
        fail_msg("%s", f->diag->errors.data[0]);
    assert_int_equal(count, 2);
    const char *path =
        arena_printf(f->arena, "%s/%p.so", dir, (void *)f->arena);
    assert_int_equal(
        system(arena_printf(f->arena,
                            "cc -shared -nostdlib -Wl,-z,defs '%s' -o '%s'",
                            objects[0], path)),
        0);
    *library = dlopen(path, RTLD_NOW);
    if (!*library)
        fail_msg("%s", dlerror());
    void *symbol = dlsym(*library, c_kernel_symbol(f->arena, f->kernel));
    assert_non_null(symbol);
    memcpy(&function, &symbol, sizeof function);
    return function;
}

static void run_backwards(void *pool, AssayTask task, void *context,
                          int64_t count)
{
    (void)pool;
    for (int64_t i = count - 1; i >= 0; i--)
        task(context, i, i + 1);
}

/* Runs compiled and interpreted; both must give the same bits. Returns the
 * storage of all parameters. */
static void **run(Fixture *f, const char *dir, void **inputs)
{
    AssayRun context = {.parallel_for = run_backwards};
    int count = f->kernel->params.count;
    void **data = ARENA_ARRAY(f->arena, void *, count);
    void **other = ARENA_ARRAY(f->arena, void *, count);
    void *library;
    KernelFunction function = load(f, dir, &library);

    for (int i = 0, in = 0; i < count; i++) {
        const Buffer *b = f->kernel->params.data[i];
        size_t bytes = (size_t)buffer_size(b) * dtype_size(b->dtype);
        data[i] =
            b->role == BUF_INPUT ? inputs[in++] : arena_alloc(f->arena, bytes);
        other[i] =
            b->role == BUF_INPUT ? data[i] : arena_alloc(f->arena, bytes);
    }
    function(&context, data);
    if (!kernel_interpret(f->kernel, other, f->diag))
        fail_msg("%s", f->diag->errors.data[0]);
    for (int i = 0; i < count; i++) {
        const Buffer *b = f->kernel->params.data[i];
        Array x = {
            .dtype = b->dtype, .rank = 1, .dims = {f->count}, .data = data[i]};
        Array y = {.dtype = b->dtype,
                   .rank = 1,
                   .dims = {f->count},
                   .data = other[i]};
        for (int64_t k = 0; b->role != BUF_INPUT && k < f->count; k++) {
            double p = array_get(&x, k), q = array_get(&y, k);
            if (!(isnan(p) && isnan(q)) && p != q)
                fail_msg("%s[%lld]: compiled %.17g, interpreted %.17g",
                         b->name, (long long)k, p, q);
        }
    }
    dlclose(library);
    return data;
}

static const Expr *load_of(Fixture *f, const Buffer *b)
{
    return expr_load(f->arena, b, f->at);
}

static const float floats[] = {
    0.0f,       -0.0f,       0.5f, -0.5f,  1.5f,         -1.5f,
    2.5f,       -2.5f,       0.3f, -0.3f,  1e10f,        -1e10f,
    8388607.5f, -8388607.5f, 3e9f, -3e9f,  1e-40f,       0x1.fffffep127f,
    INFINITY,   -INFINITY,   NAN,  255.9f, -0x1.8p-149f, 123456.78f};
enum { FLOATS = sizeof floats / sizeof *floats };

static bool same(float got, float want)
{
    return (isnan(got) && isnan(want)) ||
           (got == want && !signbit(got) == !signbit(want));
}

#define CHECK_F32(which, expression)                                          \
    for (int k = 0; k < FLOATS; k++) {                                        \
        float x = floats[k], y = floats[FLOATS - 1 - k];                      \
        float got = ((float *)data[which])[k];                                \
        (void)y;                                                              \
        if (!same(got, (float)(expression)))                                  \
            fail_msg(#expression " of %a, %a: %a", x, y, got);                \
    }

static char dir[] = "/tmp/assay-c-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", dir);
    return system(command);
}

static void test_floats(void **state)
{
    Fixture f = fixture("floats", FLOATS);
    Arena *a = f.arena;
    float reversed[FLOATS];
    (void)state;

    for (int i = 0; i < FLOATS; i++)
        reversed[i] = floats[FLOATS - 1 - i];
    const Expr *x = load_of(&f, param(&f, "x", BUF_INPUT, DT_F32));
    const Expr *y = load_of(&f, param(&f, "y", BUF_INPUT, DT_F32));
    store(&f, "floor", expr_unary(a, EX_FLOOR, x));
    store(&f, "ceil", expr_unary(a, EX_CEIL, x));
    store(&f, "round", expr_unary(a, EX_ROUND, x));
    store(&f, "abs", expr_unary(a, EX_ABS, x));
    store(&f, "neg", expr_unary(a, EX_NEG, x));
    store(&f, "sqrt", expr_unary(a, EX_SQRT, x));
    store(&f, "fma", expr_fma(a, x, y, expr_const(a, DT_F32, 0.1f)));
    store(&f, "mul_add",
          expr_add(a, expr_mul(a, x, y), expr_const(a, DT_F32, 0.1f)));
    store(&f, "div", expr_div(a, x, y));
    store(&f, "min", expr_min(a, x, y));
    store(&f, "relu", expr_max(a, x, expr_const(a, DT_F32, 0)));
    store(&f, "consts",
          expr_select(a, expr_binary(a, EX_LT, x, y),
                      expr_const(a, DT_F32, -INFINITY),
                      expr_const(a, DT_F32, 0x1.234568p-140f)));
    store(&f, "nan",
          expr_select(a, expr_binary(a, EX_NE, x, x),
                      expr_const(a, DT_F32, NAN),
                      expr_const(a, DT_F32, -0.0)));
    finish(&f, LOOP_VECTOR);
    void *inputs[] = {(void *)floats, reversed};
    void **data = run(&f, dir, inputs);
    CHECK_F32(2, floorf(x));
    CHECK_F32(3, ceilf(x));
    CHECK_F32(4, rintf(x));
    CHECK_F32(5, fabsf(x));
    CHECK_F32(6, -x);
    CHECK_F32(7, sqrtf(x));
    CHECK_F32(8, fmaf(x, y, 0.1f));
    for (int k = 0; k < FLOATS; k++) {
        /* Two roundings: the product must not be contracted. */
        volatile float product = floats[k] * reversed[k];
        float want = product + 0.1f;
        assert_true(same(((float *)data[9])[k], want));
    }
    CHECK_F32(10, x / y);
    for (int k = 0; k < FLOATS; k++) {
        float p = floats[k], q = reversed[k], got = ((float *)data[11])[k];
        assert_true(isnan(p) || isnan(q) ? isnan(got)
                                         : got == (p < q ? p : q));
        float relu = ((float *)data[12])[k];
        assert_true(isnan(p) ? isnan(relu) : relu == (p > 0 ? p : 0));
    }
    CHECK_F32(13, x < y ? -INFINITY : 0x1.234568p-140f);
    CHECK_F32(14, isnan(x) ? NAN : -0.0f);
    arena_free(f.arena);
}

static void add_fma(Fixture *f, DType dtype)
{
    const Expr *x = load_of(f, param(f, "x", BUF_INPUT, dtype));
    const Expr *y = load_of(f, param(f, "y", BUF_INPUT, dtype));
    const Expr *z = load_of(f, param(f, "z", BUF_INPUT, dtype));

    store(f, "r", expr_fma(f->arena, x, y, z));
}

static void test_fma_is_exact(void **state)
{
    enum { N = 20000 };
    Fixture f = fixture("fma", N), g = fixture("fma64", N);
    static float x[N], y[N], z[N];
    static double dx[N], dy[N], dz[N];
    uint32_t seed = 1;
    (void)state;

    for (int i = 0; i < N; i++) {
        float *to[] = {&x[i], &y[i], &z[i]};
        for (int k = 0; k < 3; k++) {
            seed = seed * 1664525u + 1013904223u;
            /* Exponents close together, so that sums cancel and round. */
            *to[k] = ldexpf((float)(int32_t)(seed & 0xfffffe00u),
                            -31 + (int)(seed >> 3 & 7) - 4);
        }
        if (i % 3 == 0)
            z[i] = -x[i] * y[i];
        dx[i] = (double)x[i] + 1e-9 * y[i];
        dy[i] = (double)y[i] - 1e-10 * x[i];
        dz[i] = i % 3 == 0 ? -dx[i] * dy[i] : (double)z[i] * 1.00000001;
    }
    add_fma(&f, DT_F32);
    finish(&f, LOOP_SERIAL);
    float *r = run(&f, dir, (void *[]){x, y, z})[3];
    for (int i = 0; i < N; i++)
        if (r[i] != fmaf(x[i], y[i], z[i]))
            fail_msg("fma(%a, %a, %a) is %a", x[i], y[i], z[i], r[i]);
    add_fma(&g, DT_F64);
    finish(&g, LOOP_SERIAL);
    double *d = run(&g, dir, (void *[]){dx, dy, dz})[3];
    for (int i = 0; i < N; i++)
        if (d[i] != fma(dx[i], dy[i], dz[i]))
            fail_msg("fma(%a, %a, %a) is %a", dx[i], dy[i], dz[i], d[i]);
    arena_free(f.arena);
    arena_free(g.arena);
}

static void test_casts(void **state)
{
    Fixture f = fixture("casts", FLOATS);
    Arena *a = f.arena;
    (void)state;
    const Expr *x = load_of(&f, param(&f, "x", BUF_INPUT, DT_F32));
    store(&f, "i32", expr_cast(a, DT_I32, x));
    store(&f, "i64", expr_cast(a, DT_I64, x));
    store(&f, "u8", expr_cast(a, DT_U8, x));
    store(&f, "bool", expr_cast(a, DT_BOOL, x));
    store(&f, "bits", expr_bitcast(a, DT_I32, x));
    store(&f, "back", expr_bitcast(a, DT_F32, expr_bitcast(a, DT_U32, x)));
    store(&f, "wide", expr_cast(a, DT_F64, x));
    finish(&f, LOOP_SERIAL);
    void **data = run(&f, dir, (void *[]){(void *)floats});
    for (int k = 0; k < FLOATS; k++) {
        float v = floats[k];
        double top = trunc(v);
        int32_t bits, i32 = isnan(v)              ? 0
                            : top > 2147483647.0  ? INT32_MAX
                            : top < -2147483648.0 ? INT32_MIN
                                                  : (int32_t)top;
        assert_int_equal(((int32_t *)data[1])[k], i32);
        if (fabsf(v) < 1e18f)
            assert_int_equal(((int64_t *)data[2])[k], (int64_t)v);
        assert_int_equal(((uint8_t *)data[3])[k], isnan(v) || v < 0 ? 0
                                                  : v > 255         ? 255
                                                                    : (int)v);
        assert_int_equal(((uint8_t *)data[4])[k], v != 0);
        memcpy(&bits, &v, sizeof bits);
        assert_int_equal(((int32_t *)data[5])[k], bits);
        assert_true(same(((float *)data[6])[k], v));
        assert_true(isnan(v) || ((double *)data[7])[k] == v);
    }
    arena_free(f.arena);
}

static void test_integers(void **state)
{
    static const int64_t xs[] = {7, -7, 7, -7, 0, INT64_MAX, INT64_MIN, 100};
    static const int64_t ys[] = {3, 3, 1, 2, 5, 2, 3, 64};
    enum { N = 8 };
    Fixture f = fixture("integers", N);
    Arena *a = f.arena;
    int8_t small[N];
    (void)state;

    for (int i = 0; i < N; i++)
        small[i] = (int8_t)(i * 17 + 60);
    const Expr *x = load_of(&f, param(&f, "x", BUF_INPUT, DT_I64));
    const Expr *y = load_of(&f, param(&f, "y", BUF_INPUT, DT_I64));
    const Expr *s = load_of(&f, param(&f, "s", BUF_INPUT, DT_I8));
    store(&f, "div", expr_div(a, x, y));
    store(&f, "mod", expr_binary(a, EX_MOD, x, y));
    store(&f, "wrap", expr_add(a, x, x));
    store(&f, "narrow", expr_add(a, s, s));
    store(&f, "shl", expr_binary(a, EX_SHL, s, expr_const_int(a, DT_I8, 1)));
    store(&f, "shr", expr_binary(a, EX_SHR, x, expr_int(a, 1)));
    store(&f, "max", expr_max(a, x, y));
    store(&f, "bits",
          expr_binary(a, EX_XOR, expr_binary(a, EX_AND, x, y),
                      expr_unary(a, EX_NOT, x)));
    store(&f, "least", expr_add(a, y, expr_int(a, INT64_MIN)));
    store(&f, "logic",
          expr_binary(a, EX_OR, expr_binary(a, EX_LT, x, y),
                      expr_unary(a, EX_NOT, expr_binary(a, EX_LE, y, x))));
    finish(&f, LOOP_UNROLLED);
    void **data = run(&f, dir, (void *[]){(void *)xs, (void *)ys, small});
    static const int64_t quotients[] = {
        2, -3, 7, -4, 0, INT64_MAX / 2, INT64_MIN / 3 - 1, 1};
    static const int64_t rests[] = {1, 2, 0, 1, 0, 1, 1, 36};
    for (int k = 0; k < N; k++) {
        assert_int_equal(((int64_t *)data[3])[k], quotients[k]);
        assert_int_equal(((int64_t *)data[4])[k], rests[k]);
        assert_int_equal(((int64_t *)data[5])[k],
                         (int64_t)((uint64_t)xs[k] * 2));
        assert_int_equal(((int8_t *)data[6])[k], (int8_t)(small[k] * 2));
        assert_int_equal(((int8_t *)data[7])[k], (int8_t)(small[k] * 2));
        assert_int_equal(((int64_t *)data[8])[k], xs[k] >> 1);
        assert_int_equal(((int64_t *)data[9])[k],
                         xs[k] > ys[k] ? xs[k] : ys[k]);
        assert_int_equal(((int64_t *)data[10])[k], (xs[k] & ys[k]) ^ ~xs[k]);
        assert_int_equal(((int64_t *)data[11])[k], INT64_MIN + ys[k]);
        assert_int_equal(((uint8_t *)data[12])[k], xs[k] < ys[k]);
    }
    arena_free(f.arena);
}

/* A load that would lie far outside is on the side not taken. Shared
 * subexpressions on both sides must not be hoisted out. */
static void test_select_is_lazy(void **state)
{
    enum { N = 5 };
    Fixture f = fixture("lazy", N);
    Arena *a = f.arena;
    static const float x[N] = {1, 2, 3, 4, 5};
    (void)state;
    Buffer *in = param(&f, "x", BUF_INPUT, DT_F32);
    const Expr *far_away = expr_add_int(
        a, expr_mul_int(a, expr_add_int(a, f.at, -1), INT64_C(1) << 40), 1);
    const Expr *wild = expr_load(a, in, far_away);
    const Expr *shared = expr_mul(a, wild, wild);
    const Expr *inside =
        expr_binary(a, EX_EQ, f.at, expr_int(a, 1)); /* offset is 1 there */
    const Expr *guarded = expr_select(a, inside, expr_add(a, shared, shared),
                                      expr_const(a, DT_F32, -1));
    store(&f, "y", expr_add(a, guarded, load_of(&f, in)));
    finish(&f, LOOP_VECTOR);
    float *y = run(&f, dir, (void *[]){(void *)x})[1];
    for (int k = 0; k < N; k++)
        assert_true(y[k] == (k == 1 ? 8 : -1) + x[k]);
    arena_free(f.arena);
}

/* Names that are keywords, no identifiers, or the same once cleaned. */
static void test_names(void **state)
{
    static const char *const names[] = {"int", "a b/c", "9lives", "plain_1"};
    static const float x[] = {1, 2};
    (void)state;
    for (int n = 0; n < 4; n++) {
        Fixture f = fixture(names[n], 2);
        Arena *a = f.arena;
        const Expr *p = load_of(&f, param(&f, "a b", BUF_INPUT, DT_F32));
        const Expr *q = load_of(&f, param(&f, "a_b", BUF_INPUT, DT_F32));
        store(&f, "double", expr_add(a, p, q));
        finish(&f, LOOP_SERIAL);
        float *y = run(&f, dir, (void *[]){(void *)x, (void *)x})[2];
        assert_true(y[0] == 2 && y[1] == 4);
        arena_free(f.arena);
    }
    Arena *arena = arena_new();
    Kernel one = {.name = "a b"}, two = {.name = "a_b"},
           three = {.name = "a-b"};
    const char *s1 = c_kernel_symbol(arena, &one);
    const char *s2 = c_kernel_symbol(arena, &two);
    const char *s3 = c_kernel_symbol(arena, &three);
    assert_string_not_equal(s1, s2);
    assert_string_not_equal(s1, s3);
    arena_free(arena);
}

/* Two parallel loops, the second reading workspace of the first, a local
 * array in each iteration, an if. */
static void test_parallel(void **state)
{
    enum { ROWS = 6, COLS = 4 };
    Fixture f = fixture("parallel", ROWS);
    Arena *a = f.arena;
    static float x[ROWS * COLS];
    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = (float)(i * 7 % 11);
    Buffer *in =
        add_buffer(&f, "x", BUF_INPUT, SCOPE_GLOBAL, DT_F32, ROWS * COLS);
    Buffer *out = param(&f, "y", BUF_OUTPUT, DT_F32);
    Buffer *space = param(&f, "w", BUF_TEMP, DT_F32);
    Buffer *sum = add_buffer(&f, "sum", BUF_TEMP, SCOPE_REGISTER, DT_F32, 1);
    Var *j = ARENA_NEW(a, Var), *k = ARENA_NEW(a, Var);
    j->name = "j";
    k->name = "j";
    const Expr *zero = expr_int(a, 0), *col = expr_var(a, j);
    const Expr *acc = expr_load(a, sum, zero);
    Stmt *row = stmt_block(a);
    vec_push(a, &row->list,
             stmt_store(a, sum, zero, expr_const(a, DT_F32, 0)));
    const Expr *at = expr_add(a, expr_mul_int(a, f.at, COLS), col);
    Stmt *add =
        stmt_store(a, sum, zero, expr_add(a, acc, expr_load(a, in, at)));
    /* Only even columns count. */
    const Expr *even = expr_binary(
        a, EX_EQ, expr_binary(a, EX_MOD, col, expr_int(a, 2)), zero);
    vec_push(a, &row->list,
             stmt_for(a, LOOP_SERIAL, j, COLS, stmt_if(a, even, add)));
    vec_push(a, &row->list, stmt_store(a, space, f.at, acc));
    vec_push(a, &f.kernel->body->list,
             stmt_for(a, LOOP_PARALLEL, f.i, ROWS, row));
    const Expr *back = expr_sub(a, expr_int(a, ROWS - 1), expr_var(a, k));
    vec_push(a, &f.kernel->body->list,
             stmt_for(a, LOOP_PARALLEL, k, ROWS,
                      stmt_store(a, out, expr_var(a, k),
                                 expr_load(a, space, back))));
    kernel_verify(f.kernel);
    float *y = run(&f, dir, (void *[]){x})[1];
    for (int i = 0; i < ROWS; i++) {
        int from = (ROWS - 1 - i) * COLS;
        assert_true(y[i] == x[from] + x[from + 2]);
    }
    arena_free(f.arena);
}

/* Elementary functions need no library, and the text is the same each
 * time. */
static void test_functions(void **state)
{
    static const ExprKind kinds[] = {EX_EXP,  EX_LOG, EX_ERF,
                                     EX_TANH, EX_SIN, EX_COS};
    static double (*const functions[])(double) = {exp,  log, erf,
                                                  tanh, sin, cos};
    enum { N = 64, KINDS = 6 };
    Fixture f = fixture("functions", N);
    Arena *a = f.arena;
    float x[N];
    Str first = {0}, second = {0};
    (void)state;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - 20) * 0.17f;
    const Expr *in = load_of(&f, param(&f, "x", BUF_INPUT, DT_F32));
    for (int k = 0; k < KINDS; k++)
        store(&f, expr_kind_name(kinds[k]), expr_unary(a, kinds[k], in));
    finish(&f, LOOP_VECTOR);
    void **data = run(&f, dir, (void *[]){x});
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < N; i++) {
            double want = functions[k](x[i]), got = ((float *)data[k + 1])[i];
            if (isnan(want) ? !isnan(got)
                            : fabs(got - want) > 1e-6 * fabs(want) + 1e-7)
                fail_msg("%s(%g) is %.9g, not %.9g", expr_kind_name(kinds[k]),
                         x[i], got, want);
        }
    assert_true(codegen_c_text(&first, f.kernel));
    assert_true(codegen_c_text(&second, f.kernel));
    assert_string_equal(str_text(&first), str_text(&second));
    str_free(&first);
    str_free(&second);
    arena_free(f.arena);
}

/* A compiler that is not there, or refuses, is the user's to mend. */
static void test_compiler_faults(void **state)
{
    static const char *const compilers[] = {"no-such-compiler", "false"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        Fixture f = fixture("fault", 1);
        Target target = {.name = "c", .cc = compilers[i]};
        Program p = {.arena = f.arena, .name = "t", .target = &target};
        const char **objects;
        int count;
        store(&f, "y", expr_const(f.arena, DT_F32, 1));
        finish(&f, LOOP_SERIAL);
        vec_push(f.arena, &p.kernels, ((ProgramKernel){.kernel = f.kernel}));
        assert_false(codegen_c(&p, f.diag, &(CodegenOptions){.jobs = 1}, dir,
                               &objects, &count));
        assert_true(f.diag->errors.count > 0);
        arena_free(f.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_fma_is_exact),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_select_is_lazy),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_compiler_faults),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
