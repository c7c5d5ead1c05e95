/* Loops that end where a number known at run time says: printed and read
 * back, and the same in the interpreter, as machine code and as C. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "runtime/abi.h"
#include "tensor/loops.h"

/* Every kind of loop, limits in limits, one that depends on a loop around it,
 * and one behind the extent. Outputs start at -1. */
static const char text[] = "kernel limits {\n"
                           "  in e i64[2]\n"
                           "  in x f32[40]\n"
                           "  out y f32[40]\n"
                           "  out z f32[40]\n"
                           "  out s f32[8]\n"
                           "  out u i64[8]\n"
                           "  vector i 40 limit e[0] {\n"
                           "    y[i] = (x[i] * 2.0)\n"
                           "  }\n"
                           "  parallel p 8 limit (e[0] / 2) {\n"
                           "    s[p] = 0.0\n"
                           "    for j 40 limit min((e[0] - p), e[1]) {\n"
                           "      s[p] = (s[p] + x[(p + j)])\n"
                           "    }\n"
                           "  }\n"
                           "  for k 4 limit (e[1] + 2) {\n"
                           "    unrolled l 10 limit e[1] {\n"
                           "      z[((k * 10) + l)] = x[((k * 10) + l)]\n"
                           "    }\n"
                           "  }\n"
                           "  if lt(4, e[0]) {\n"
                           "    for m 8 limit e[0] {\n"
                           "      u[m] = m\n"
                           "    }\n"
                           "  }\n"
                           "}\n";

typedef struct Data {
    int64_t e[2];
    float x[40], y[40], z[40], s[8];
    int64_t u[8];
} Data;

typedef void (*KernelFunction)(const AssayRun *run, void *const *args);

static void fill(Data *d, int64_t first, int64_t second)
{
    memset(d, 0, sizeof *d);
    d->e[0] = first;
    d->e[1] = second;
    for (int i = 0; i < 40; i++) {
        d->x[i] = (float)(i + 1);
        d->y[i] = d->z[i] = -1;
    }
    for (int i = 0; i < 8; i++)
        d->s[i] = -1, d->u[i] = -1;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What the text means. */
static void wanted(Data *d)
{
    for (int64_t i = 0; i < least(40, d->e[0]); i++)
        d->y[i] = d->x[i] * 2;
    for (int64_t p = 0; p < least(8, d->e[0] >> 1); p++) {
        d->s[p] = 0;
        for (int64_t j = 0; j < least(40, least(d->e[0] - p, d->e[1])); j++)
            d->s[p] += d->x[p + j];
    }
    for (int64_t k = 0; k < least(4, d->e[1] + 2); k++)
        for (int64_t l = 0; l < least(10, d->e[1]); l++)
            d->z[k * 10 + l] = d->x[k * 10 + l];
    for (int64_t m = 0; d->e[0] > 4 && m < least(8, d->e[0]); m++)
        d->u[m] = m;
}

static Kernel *parse(Arena *arena)
{
    Diag *diag = diag_new(arena, "test");
    Kernel *kernel = kernel_parse(arena, diag, text);
    if (!kernel)
        fail_msg("%s", diag->errors.data[0]);
    kernel_verify(kernel);
    return kernel;
}

static void test_text(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Str printed = {0};
    kernel_print(&printed, parse(arena));
    assert_string_equal(str_text(&printed), text);
    str_free(&printed);
    static const char *const bad[] = {
        "kernel k {\n  out y f32[4]\n  for i 4 limit 2.0 {\n"
        "    y[i] = 0.0\n  }\n}\n",
        "kernel k {\n  out y f32[4]\n  for i 4 limit i {\n"
        "    y[i] = 0.0\n  }\n}\n",
        "kernel k {\n  out y f32[4]\n  for i 4 limit {\n"
        "    y[i] = 0.0\n  }\n}\n",
    };
    for (int i = 0; i < 3; i++)
        assert_null(kernel_parse(arena, diag_new(arena, "test"), bad[i]));
    arena_free(arena);
}

/* A limit that is a number is an extent. */
static void test_constant_limit(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Var *var = ARENA_NEW(a, Var);
    var->name = "i";
    Stmt *body = stmt_block(a);
    Stmt *s = stmt_for_limited(a, LOOP_SERIAL, var, 8, expr_int(a, 3), body);
    assert_true(s->kind == STMT_FOR && s->extent == 3 && !s->limit);
    s = stmt_for_limited(a, LOOP_SERIAL, var, 8, expr_int(a, 9), body);
    assert_true(s->kind == STMT_FOR && s->extent == 8 && !s->limit);
    s = stmt_for_limited(a, LOOP_SERIAL, var, 8, expr_int(a, -1), body);
    assert_int_equal(s->kind, STMT_BLOCK);
    arena_free(a);
}

static void run_serially(void *pool, AssayTask task, void *context,
                         int64_t count)
{
    (void)pool;
    for (int64_t i = count - 1; i >= 0; i--)
        task(context, i, i + 1);
}

static KernelFunction load_c(Arena *arena, const Kernel *kernel,
                             void **library)
{
    char dir[] = "/tmp/assay_limits_XXXXXX";
    Str source = {0};
    KernelFunction function;
    assert_non_null(mkdtemp(dir));
    const char *c = arena_printf(arena, "%s/k.c", dir);
    const char *so = arena_printf(arena, "%s/k.so", dir);
    assert_true(codegen_c_text(&source, kernel));
    FILE *file = fopen(c, "w");
    assert_non_null(file);
    fputs(str_text(&source), file);
    assert_int_equal(fclose(file), 0);
    str_free(&source);
    assert_int_equal(
        system(arena_printf(arena,
                            "cc -std=c17 -Wall -Wextra -Werror -fPIC -shared "
                            "-ffp-contract=off '%s' -o '%s'",
                            c, so)),
        0);
    *library = dlopen(so, RTLD_NOW);
    assert_non_null(*library);
    void *symbol = dlsym(*library, kernel->name);
    assert_non_null(symbol);
    memcpy(&function, &symbol, sizeof function);
    unlink(c);
    unlink(so);
    rmdir(dir);
    return function;
}

static void test_backends(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, "test");
    Kernel *kernel = parse(arena);
    void *library;
    KernelFunction in_c = load_c(arena, kernel, &library);
    AssayRun run = {.parallel_for = run_serially};
    static const int64_t second[] = {-3, 0, 1, 7, 10, 100};
    for (int64_t first = 0; first <= 40; first++)
        for (int k = 0; k < 6; k++) {
            Data want, got[3];
            fill(&want, first, second[k]);
            wanted(&want);
            for (int i = 0; i < 3; i++) {
                Data *d = &got[i];
                void *args[] = {d->e, d->x, d->y, d->z, d->s, d->u};
                fill(d, first, second[k]);
                if (i == 0)
                    assert_true(kernel_interpret(kernel, args, diag));
                else if (i == 1 && (first % 5 == 0 || first < 10))
                    assert_true(codegen_llvm_evaluate(kernel, args, diag));
                else
                    in_c(&run, args);
                if (memcmp(d, &want, sizeof want))
                    fail_msg("backend %d differs for limits %d, %d", i,
                             (int)first, (int)second[k]);
            }
        }
    dlclose(library);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_constant_limit),
        cmocka_unit_test(test_backends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
