/* Loops that end where a number known at run time says: printed and read
 * back, and the same in the interpreter, as machine code and as C. */
#include <dlfcn.h>
#include <math.h>
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
#include "schedules/schedule.h"
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

/* A product of open rows, columns and depth, and what is made of it. */
static const char product[] =
    "definition mm {\n"
    "  extents e i64[3]\n"
    "  in x f32[13 limit e[0], 10 limit e[2]]\n"
    "  in w f32[10 limit e[2], 19 limit e[1]]\n"
    "  temp t f32[13 limit e[0], 19 limit e[1]]\n"
    "  out y f32[13 limit e[0], 19 limit e[1]]\n"
    "  stage t[i:13 limit e[0], j:19 limit e[1]] sum[k:10 limit e[2]] = (x[i, "
    "k] * w[k, j])\n"
    "  stage y[i:13 limit e[0], j:19 limit e[1]] = (t[i, j] + 1.0)\n}\n";

static const char *const traces[] = {
    "",
    "split y i 4\nsplit y j 8\nreorder y i.o j.o i.i j.i\n"
    "compute_at t y j.o\nvectorize y j.i\nparallel y i.o\n",
    "split_even y i 5\ncompute_at t y i.o\nunroll y i.i\n",
    "split_even y i 6\nsplit_padded y j 8\nreorder y i.o j.o i.i j.i\n"
    "split_even t k 4\nreorder t k.o k.i i j\nunroll t k.i\n"
    "compute_at t y j.o\nvectorize y j.i\nparallel y i.o\n",
    "compute_at t y j\nreduce_lanes t k 4\n",
    "reorder t k i j\nvectorize t j\nsplit y j 7\n",
    "cache_read t w\nreorder t j i k\ncompute_at w_cached y i\n"
    "compute_at t y i\n",
};

/* Every schedule gives the naive one's elements, for all extents, and reads
 * nothing that was not written. */
static void test_schedules(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, "test");
    Definition *def = definition_parse(arena, diag, product);
    assert_non_null(def);
    definition_verify(def);
    Str text = {0};
    definition_print(&text, def);
    assert_string_equal(str_text(&text), product);
    str_free(&text);
    for (size_t t = 0; t < sizeof traces / sizeof *traces; t++) {
        Schedule *s = schedule_new(arena, diag, def);
        if (!schedule_replay(s, traces[t]))
            fail_msg("%s", diag->errors.data[0]);
        Kernel *k = schedule_lower(s, arena);
        kernel_verify(k);
        for (int n = 0; n < 14 * 20 * 11; n++) {
            int64_t e[] = {n % 14, n / 14 % 20, n / 280};
            /* All of a few depths, some of the others. */
            if (e[2] > 5 && n % 7)
                continue;
            float x[130], w[190], y[247], scratch[247];
            for (int i = 0; i < 130; i++)
                x[i] = i % 10 < e[2] && i / 10 < e[0] ? (float)(i % 7) : NAN;
            for (int i = 0; i < 190; i++)
                w[i] = i / 19 < e[2] && i % 19 < e[1] ? (float)(i % 5) : NAN;
            void *args[] = {e, x, w, y, scratch};
            if (!kernel_interpret(k, args, diag))
                fail_msg("%s", diag->errors.data[0]);
            for (int i = 0; i < e[0]; i++)
                for (int j = 0; j < e[1]; j++) {
                    float want = 1;
                    for (int d = 0; d < e[2]; d++)
                        want += x[i * 10 + d] * w[d * 19 + j];
                    if (y[i * 19 + j] != want)
                        fail_msg("trace %d: y[%d, %d] of %d, %d, %d", (int)t,
                                 i, j, (int)e[0], (int)e[1], (int)e[2]);
                }
        }
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_constant_limit),
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
