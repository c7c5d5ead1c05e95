/* Control flow: known when compiling, and as regions of steps, in the
 * interpreter and the C backend, beside the oracles; the text forms. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiled.h"
#include "evaluate.h"
#include "graph/graph.h"
#include "ops/op.h"

typedef struct Sample {
    const char *name, *text;
    int regions; /* in the program */
} Sample;

#define BRANCHES                                                              \
    "  body {\n"                                                              \
    "    graph then\n"                                                        \
    "      input a: f32[1,4,5,5]\n"                                           \
    "      input b: f32[1,4,5,5]\n"                                           \
    "      n: f32[1,4,5,5] = Neg neg(a)\n"                                    \
    "      e: f32[1,4,5,5] = Exp exp(n)\n"                                    \
    "      output e\n"                                                        \
    "  }\n"                                                                   \
    "  body {\n"                                                              \
    "    graph else\n"                                                        \
    "      input c: f32[1,4,5,5]\n"                                           \
    "      input d: f32[1,4,5,5]\n"                                           \
    "      const w: f32[4,1,1,1] = {1, 2, 3, 4}\n"                            \
    "      const s: i64[4] = {4, 4, 1, 1}\n"                                  \
    "      x: f32[4,4,1,1] = Expand spread(w, s)\n"                           \
    "      f: f32[1,4,5,5] = Conv conv(c, x)\n"                               \
    "      g: f32[1,4,5,5] = Mul mul(f, d)\n"                                 \
    "      output g\n"                                                        \
    "  }\n"

/* The condition is made from data, so that nothing folds. */
#define CHOICE(operator)                                                      \
    "graph g\n"                                                               \
    "  input x: f32[1,4,5,5]\n"                                               \
    "  const k: f32[4,1,1,1] = {1, -1, 2, 1}\n"                               \
    "  const shape: i64[4] = {4, 4, 1, 1}\n"                                  \
    "  const axes: i64[4] = {0, 1, 2, 3}\n"                                   \
    "  const far: f32[] = {1000000}\n"                                        \
    "  w: f32[4,4,1,1] = Expand expand(k, shape)\n"                           \
    "  h: f32[1,4,5,5] = Conv first(x, w)\n"                                  \
    "  m: f32[] = ReduceMax max(x, axes) {keepdims=0}\n"                      \
    "  p: bool[] = "                                                          \
    operator" test(m, far)\n"                                                 \
            "  y: f32[1,4,5,5] = If choose(p, h, x)\n" BRANCHES               \
            "  z: f32[1,4,5,5] = Relu relu(y)\n"                              \
            "  q: f32[1,4,5,5] = Sub sub(h, y)\n"                             \
            "  output z\n  output q\n"

#define LOOP_BODY                                                             \
    "  body {\n"                                                              \
    "    graph step\n"                                                        \
    "      input i: i64[]\n"                                                  \
    "      input go: bool[]\n"                                                \
    "      input a: f32[6]\n"                                                 \
    "      input b: f32[6]\n"                                                 \
    "      input w: f32[6]\n"                                                 \
    "      const half: f32[] = {0.5}\n"                                       \
    "      next: bool[] = Identity same(go)\n"                                \
    "      f: f32[] = Cast cast(i) {to=1}\n"                                  \
    "      s: f32[6] = Add add(a, w)\n"                                       \
    "      h: f32[6] = Mul mul(s, half)\n"                                    \
    "      t: f32[6] = Identity swap(h)\n"                                    \
    "      u: f32[6] = Identity back(a)\n"                                    \
    "      r: f32[6] = Add slice(b, f)\n"                                     \
    "      output next\n"                                                     \
    "      output t\n"                                                        \
    "      output u\n"                                                        \
    "      output r\n"                                                        \
    "  }\n"

#define REPEAT(trips)                                                         \
    "graph g\n"                                                               \
    "  input x: f32[6]\n"                                                     \
    "  input w: f32[6]\n"                                                     \
    "  const m: i64[] = {" #trips "}\n"                                       \
    "  n: f32[6] = Neg neg(x)\n"                                              \
    "  a: f32[6], b: f32[6], r: f32[" #trips ",6] = Loop loop(m, _, x, n, "   \
    "w) {carried=2}\n" LOOP_BODY "  y: f32[6] = Add both(a, b)\n"             \
    "  output y\n  output r\n"

/* A branch within which a result is as large as the data say; the nodes of
 * these names count. */
#define COUNTED(around, within)                                               \
    "graph g\n"                                                               \
    "  input x: f32[6]\n"                                                     \
    "  const axes: i64[1] = {0}\n"                                            \
    "  const one: i64[1] = {1}\n"                                             \
    "  const far: f32[] = {1000000}\n"                                        \
    "  m: f32[] = ReduceMax max(x, axes) {keepdims=0}\n"                      \
    "  p: bool[] = Less test(m, far)\n"                                       \
    "  n: i64[1," around ".count<=6] = NonZero " around "(x)\n"               \
    "  y: i64[1] = If choose(p, x, n, one)\n"                                 \
    "  body {\n"                                                              \
    "    graph then\n"                                                        \
    "      input a: f32[6]\n"                                                 \
    "      input b: i64[1," around ".count<=6]\n"                             \
    "      input axis: i64[1]\n"                                              \
    "      const zero: f32[] = {0}\n"                                         \
    "      q: bool[6] = Less less(a, zero)\n"                                 \
    "      c: i64[1," within ".count<=6] = NonZero " within "(q)\n"           \
    "      d: i64[1] = ReduceSum sum(c, axis) {keepdims=0}\n"                 \
    "      output d\n"                                                        \
    "  }\n"                                                                   \
    "  body {\n"                                                              \
    "    graph else\n"                                                        \
    "      input a: f32[6]\n"                                                 \
    "      input b: i64[1," around ".count<=6]\n"                             \
    "      input axis: i64[1]\n"                                              \
    "      d: i64[1] = ReduceSum sum(b, axis) {keepdims=0}\n"                 \
    "      output d\n"                                                        \
    "  }\n"                                                                   \
    "  z: i64[1] = ReduceSum sum(n, one) {keepdims=0}\n"                      \
    "  output y\n  output z\n"

static const Sample samples[] = {
    {"a branch that is taken", CHOICE("Less"), 1},
    {"a branch that is not taken", CHOICE("Greater"), 1},
    {"a loop whose number of iterations is large", REPEAT(300), 1},
    {"a loop of few iterations", REPEAT(3), 0},
    {"a loop that ends by its condition",
     "graph g\n"
     "  input x: f32[3]\n"
     "  const limit: f32[] = {50}\n"
     "  const axes: i64[1] = {0}\n"
     "  const m: i64[1] = {1000}\n"
     "  s: f32[3] = Abs abs(x)\n"
     "  y: f32[3] = Loop loop(m, _, s, limit, axes) {carried=1}\n"
     "  body {\n"
     "    graph step\n"
     "      input i: i64[]\n"
     "      input go: bool[]\n"
     "      input a: f32[3]\n"
     "      input limit: f32[]\n"
     "      input axes: i64[1]\n"
     "      const one: f32[] = {1.25}\n"
     "      b: f32[3] = Add add(a, one)\n"
     "      t: f32[] = ReduceSum sum(b, axes) {keepdims=0}\n"
     "      next: bool[] = Less less(t, limit)\n"
     "      output next\n"
     "      output b\n"
     "  }\n"
     "  output y\n",
     1},
    {"a loop whose trip count is data, with a branch and a loop in it",
     "graph g\n"
     "  input x: f32[4]\n"
     "  input c: i64[]\n"
     "  const ten: i64[] = {10}\n"
     "  const seven: i64[] = {70}\n"
     "  const two: i64[] = {2}\n"
     "  r: i64[] = Mod mod(c, ten)\n"
     "  m: i64[] = Add add(r, two)\n"
     "  y: f32[4] = Loop outer(m, _, x, seven) {carried=1}\n"
     "  body {\n"
     "    graph step\n"
     "      input i: i64[]\n"
     "      input go: bool[]\n"
     "      input a: f32[4]\n"
     "      input n: i64[]\n"
     "      const one: i64[] = {1}\n"
     "      next: bool[] = Identity same(go)\n"
     "      const two: i64[] = {2}\n"
     "      odd: i64[] = Mod mod(i, two)\n"
     "      is: bool[] = Equal equal(odd, one)\n"
     "      b: f32[4] = If if(is, a, n)\n"
     "      body {\n"
     "        graph then\n"
     "          input a: f32[4]\n"
     "          input n: i64[]\n"
     "          b: f32[4] = Neg neg(a)\n"
     "          output b\n"
     "      }\n"
     "      body {\n"
     "        graph else\n"
     "          input a: f32[4]\n"
     "          input n: i64[]\n"
     "          b: f32[4] = Loop inner(n, _, a) {carried=1}\n"
     "          body {\n"
     "            graph step\n"
     "              input i: i64[]\n"
     "              input go: bool[]\n"
     "              input a: f32[4]\n"
     "              const small: f32[] = {0.01}\n"
     "              next: bool[] = Identity same(go)\n"
     "              b: f32[4] = Add add(a, small)\n"
     "              c: f32[4] = Abs abs(b)\n"
     "              d: f32[4] = Sqrt sqrt(c)\n"
     "              e: f32[4] = Mul mul(d, c)\n"
     "              f: f32[4] = Add last(e, small)\n"
     "              g: f32[4] = Sin sin(f)\n"
     "              h: f32[4] = Cos cos(g)\n"
     "              output next\n"
     "              output h\n"
     "          }\n"
     "          output b\n"
     "      }\n"
     "      output next\n"
     "      output b\n"
     "  }\n"
     "  output y\n",
     3},
    {"a constant condition, and a body that hands an input on",
     "graph g\n"
     "  input x: f32[4]\n"
     "  const no: bool[1] = {0}\n"
     "  y: f32[4] = If if(no, x)\n"
     "  body {\n"
     "    graph then\n"
     "      input x: f32[4]\n"
     "      y: f32[4] = Neg neg(x)\n"
     "      output y\n"
     "  }\n"
     "  body {\n"
     "    graph else\n"
     "      input x: f32[4]\n"
     "      y: f32[4] = Identity same(x)\n"
     "      output y\n"
     "  }\n"
     "  output y\n",
     0},
    {"a count within a branch", COUNTED("some", "few"), 1},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

static void test_interpreted(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        for (int level = 0; level <= 2; level++) {
            Arena *arena = arena_new();
            PassOptions options = {.opt_level = level, .verify = true};
            Compiled c = compile_text(arena, samples[i].text, "x86-64-v3",
                                      &options, level == 0);
            assert_int_equal(c.program->regions.count, samples[i].regions);
            Array **got = run_interpreted(&c);
            Array **want = run_reference(arena, c.source, NULL);
            for (int k = 0; k < c.program->output_count; k++)
                check_close(samples[i].name, got[k], want[k], 2e-5);
            arena_free(arena);
        }
}

/* Both backends, the iterations of parallel loops in reverse. */
static void test_backends(void **state)
{
    static const char *const targets[] = {"native", "c"};
    char dir[] = "/tmp/assay-test-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < SAMPLES; i++)
        for (int in_c = 0; in_c < 2; in_c++) {
            Arena *arena = arena_new();
            Compiled c = compile_text(arena, samples[i].text, targets[in_c],
                                      NULL, false);
            void *library = load_compiled(&c, dir, in_c);
            Array **got = run_loaded(&c, library);
            Array **want = run_reference(arena, c.source, NULL);
            for (int k = 0; k < c.program->output_count; k++)
                check_close(samples[i].name, got[k], want[k], 2e-5);
            dlclose(library);
            arena_free(arena);
        }
    Str command = {0};
    str_addf(&command, "rm -r '%s'", dir);
    assert_int_equal(system(str_text(&command)), 0);
    str_free(&command);
}

/* Graphs and programs print, parse and print the same. */
static void test_text(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        Arena *arena = arena_new();
        Diag *diag = diag_new(arena, NULL);
        Compiled c =
            compile_text(arena, samples[i].text, "x86-64-v3", NULL, false);
        Str first = {0}, second = {0};
        graph_print(&first, c.source, true);
        Graph *g = graph_parse(arena, diag, ops_builtin(), str_text(&first));
        assert_non_null(g);
        graph_print(&second, g, true);
        assert_string_equal(str_text(&first), str_text(&second));
        str_free(&first);
        str_free(&second);
        program_print(&first, c.program);
        Program *p = program_parse(arena, diag, str_text(&first));
        assert_non_null(p);
        program_verify(p);
        assert_int_equal(p->regions.count, samples[i].regions);
        for (int k = 0; k < p->regions.count; k++)
            assert_memory_equal(&p->regions.data[k],
                                &c.program->regions.data[k],
                                sizeof p->regions.data[k]);
        str_free(&first);
        arena_free(arena);
    }
}

/* What is live around a loop stays so in every iteration. */
static void test_ranges(void **state)
{
    Arena *arena = arena_new();
    (void)state;
    Compiled c =
        compile_text(arena, samples[2].text, "x86-64-v3", NULL, false);
    const Program *p = c.program;
    const ProgramRegion *r = &p->regions.data[0];
    assert_int_equal(r->kind, REGION_LOOP);
    assert_true(r->most == 300);
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (b->alias_of >= 0 || b->last_step < r->first ||
            b->first_step >= r->end)
            continue;
        bool local = b->first_step >= r->first && b->last_step < r->end;
        assert_true(local ||
                    (b->first_step <= r->first && b->last_step >= r->end - 1));
    }
    arena_free(arena);
}

/* Texts of wrong control flow, and what is said. */
static void test_faults(void **state)
{
    static const struct {
        const char *line, *bodies, *message;
    } rows[] = {
        {"y: ?[?] = If f(p, x)", "", "0 branches"},
        {"y: ?[?] = If f(p, x)",
         "  body {\n    graph t\n    input x: f32[2]\n"
         "    y: ?[?] = Neg n(x)\n    output y\n  }\n"
         "  body {\n    graph e\n    input x: f32[2]\n"
         "    const s: i64[2] = {2, 1}\n"
         "    y: ?[?] = Reshape n(x, s)\n    output y\n  }\n",
         "f32[2] and f32[2,1]"},
        {"y: ?[?] = If f(x, x)",
         "  body {\n    graph t\n    input x: f32[2]\n"
         "    y: ?[?] = Neg n(x)\n    output y\n  }\n"
         "  body {\n    graph e\n    input x: f32[2]\n"
         "    y: ?[?] = Abs n(x)\n    output y\n  }\n",
         "the element type f32"},
        {"y: ?[?] = Loop l(_, _, x) {carried=1}",
         "  body {\n    graph b\n    input i: i64[]\n    input c: bool[]\n"
         "    input x: f32[2]\n    d: ?[?] = Identity s(c)\n"
         "    y: ?[?] = Neg n(x)\n    output d\n    output y\n  }\n",
         "never ends"},
        {"y: ?[?] = Loop l(_, p) {carried=0}",
         "  body {\n    graph b\n    input i: i64[]\n    input c: bool[]\n"
         "    d: ?[?] = Not s(c)\n"
         "    y: ?[?] = Cast n(i) {to=1}\n    output d\n    output y\n  }\n",
         "depends on a condition"},
        {"y: ?[?] = Loop l(_, p, x) {carried=1}",
         "  body {\n    graph b\n    input i: i64[]\n    input c: bool[]\n"
         "    input x: f32[2]\n    d: ?[?] = Not s(c)\n"
         "    y: ?[?] = Concat n(x, x) {axis=0}\n"
         "    output d\n    output y\n  }\n",
         "f32[2] and f32[4]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new();
        Diag *diag = diag_new(arena, NULL);
        Graph *g = graph_parse(
            arena, diag, ops_builtin(),
            arena_printf(arena,
                         "graph g\n  input x: f32[2]\n  input p: bool[]\n"
                         "  %s\n%s  output y\n",
                         rows[i].line, rows[i].bodies));
        assert_non_null(g);
        PassContext c = {.graph = g};
        pass_infer(&c);
        assert_int_equal(diag->errors.count, 1);
        if (!strstr(diag->errors.data[0], rows[i].message))
            fail_msg("%s: %s", rows[i].message, diag->errors.data[0]);
        arena_free(arena);
    }
}

/* Two counts of one name would be taken for the same. */
static void test_equal_counts(void **state)
{
    Arena *arena = arena_new();
    (void)state;
    Graph *g = graph_from_text(arena, COUNTED("same", "same"));
    const Target *target = target_find(arena, g->diag, "x86-64-v3");
    PassContext context = {
        .graph = g, .target = target, .evaluate = evaluate_node};
    assert_true(
        passes_run(&context, &(PassOptions){.opt_level = 2}, NULL, NULL));
    assert_null(program_build(arena, g->diag, g, target, SCHEDULE_FAST, NULL));
    assert_int_equal(g->diag->errors.count, 1);
    assert_non_null(strstr(g->diag->errors.data[0],
                           "NonZero \"same\": another node of that name"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interpreted),
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_equal_counts),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
