/* Operators that are loop programs: through the passes and the interpreter
 * at every level and target, through the C backend with the iterations of
 * parallel loops in reverse, always beside the oracles. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiled.h"
#include "graph/graph.h"
#include "tensor/loops.h"

typedef struct Sample {
    const char *name, *text;
} Sample;

static const Sample samples[] = {
    {"top k of a convolution, whose layout is another",
     "graph g\n"
     "  input x: f32[1,3,6,6]\n"
     "  input w: f32[20,3,3,3]\n"
     "  input u: f32[2,5,1,1]\n"
     "  const k: i64[1] = {5}\n"
     "  a: f32[1,20,6,6] = Conv conv(x, w) {pads=[1, 1, 1, 1]}\n"
     "  b: f32[1,20,6,6] = Relu relu(a)\n"
     "  y: f32[1,5,6,6], i: i64[1,5,6,6] = TopK top(b, k) {axis=1}\n"
     "  v: f32[1,2,6,6] = Conv next(y, u)\n"
     "  output v\n  output i\n"},
    {"top k with ties, all of an axis, and of one",
     "graph g\n"
     "  input x: f32[4,40]\n"
     "  const half: f32[] = {0.25}\n"
     "  const k: i64[1] = {40}\n"
     "  const one: i64[1] = {1}\n"
     "  s: f32[4,40] = Div scale(x, half)\n"
     "  r: f32[4,40] = Round round(s)\n"
     "  y: f32[4,40], i: i64[4,40] = TopK top(r, k) {largest=0}\n"
     "  z: f32[1,40], j: i64[1,40] = TopK best(r, one) {axis=0}\n"
     "  output y\n  output i\n  output z\n  output j\n"},
    {"top k of integers, without the values",
     "graph g\n"
     "  input x: i64[3,17]\n"
     "  const k: i64[1] = {7}\n"
     "  _, i: i64[3,7] = TopK top(x, k)\n"
     "  output i\n"},
    {"scatters of many entries along an axis",
     "graph g\n"
     "  input x: f32[4,20,2]\n"
     "  input u: f32[3,17,2]\n"
     "  input n: i64[3,17,2]\n"
     "  const twenty: i64[] = {20}\n"
     "  i: i64[3,17,2] = Mod mod(n, twenty)\n"
     "  a: f32[4,20,2] = Relu relu(x)\n"
     "  y: f32[4,20,2] = ScatterElements s(a, i, u) {axis=1}\n"
     "  z: f32[4,20,2] = ScatterElements t(a, i, u) {axis=-2, "
     "reduction=\"add\"}\n"
     "  output y\n  output z\n"},
    {"scatters of many entries along the first axis",
     "graph g\n"
     "  input a: f32[1,5]\n"
     "  input b: f32[1,30]\n"
     "  input m: i64[1,30]\n"
     "  const five: i64[] = {5}\n"
     "  j: i64[1,30] = Mod mod5(m, five)\n"
     "  c: f32[1,5] = ScatterElements r(a, j, b) {axis=1}\n"
     "  output c\n"
     "  input x: f32[4,20]\n"
     "  input u: f32[30,20]\n"
     "  input n: i64[30,20]\n"
     "  const four: i64[] = {4}\n"
     "  i: i64[30,20] = Mod mod(n, four)\n"
     "  y: f32[4,20] = ScatterElements s(x, i, u)\n"
     "  z: f32[4,20] = ScatterElements t(x, i, u) {reduction=\"mul\"}\n"
     "  output y\n  output z\n"},
    {"scatters of many rows and elements",
     "graph g\n"
     "  input x: f32[4,3,5]\n"
     "  input u: f32[9,3,5]\n"
     "  input v: f32[2,12]\n"
     "  input n: i64[9,1]\n"
     "  input m: i64[2,12,3]\n"
     "  const four: i64[] = {4}\n"
     "  const three: i64[] = {3}\n"
     "  i: i64[9,1] = Mod mod(n, four)\n"
     "  j: i64[2,12,3] = Mod mod2(m, three)\n"
     "  y: f32[4,3,5] = ScatterND s(x, i, u)\n"
     "  z: f32[4,3,5] = ScatterND t(x, j, v) {reduction=\"max\"}\n"
     "  w: f32[4,3,5] = Add add(y, z)\n"
     "  output w\n"},
    {"running sums",
     "graph g\n"
     "  input x: f32[3,40,2]\n"
     "  const one: i64[] = {1}\n"
     "  const last: i64[] = {-1}\n"
     "  y: f32[3,40,2] = CumSum s(x, one)\n"
     "  t: f32[3,2,40] = Transpose t(x) {perm=[0, 2, 1]}\n"
     "  z: f32[3,2,40] = CumSum r(t, last) {exclusive=1, reverse=1}\n"
     "  output y\n  output z\n"},
    {"lstm, all operands, both directions",
     "graph g\n"
     "  input x: f32[4,3,5]\n"
     "  input w: f32[2,28,5]\n"
     "  input r: f32[2,28,7]\n"
     "  input b: f32[2,56]\n"
     "  const n: i32[3] = {4, 2, 0}\n"
     "  input h: f32[2,3,7]\n"
     "  input c: f32[2,3,7]\n"
     "  input p: f32[2,21]\n"
     "  y: f32[4,2,3,7], yh: f32[2,3,7], yc: f32[2,3,7] = LSTM lstm(x, w, r, "
     "b, n, h, c, p) {direction=\"bidirectional\", clip=0.5}\n"
     "  output y\n  output yh\n  output yc\n"},
    {"lstm of other functions, reverse, gates coupled, only the last state",
     "graph g\n"
     "  input x: f32[2,6,5]\n"
     "  input w: f32[1,72,5]\n"
     "  input r: f32[1,72,18]\n"
     "  _, yh: f32[2,1,18] = LSTM lstm(x, w, r) {layout=1, "
     "direction=\"reverse\", input_forget=1, activations=[\"HardSigmoid\", "
     "\"softsign\", \"Elu\"], activation_alpha=[0.3, 1.5], "
     "activation_beta=[0.4]}\n"
     "  output yh\n"},
    {"gru, reset before, two directions, constant lengths",
     "graph g\n"
     "  input x: f32[5,2,3]\n"
     "  input w: f32[2,12,3]\n"
     "  input r: f32[2,12,4]\n"
     "  input b: f32[2,24]\n"
     "  const n: i32[2] = {5, 3}\n"
     "  y: f32[5,2,2,4], yh: f32[2,2,4] = GRU gru(x, w, r, b, n) "
     "{direction=\"bidirectional\"}\n"
     "  output y\n  output yh\n"},
    {"gru, reset after, wider than a block",
     "graph g\n"
     "  input x: f32[3,1,8]\n"
     "  input w: f32[1,120,8]\n"
     "  input r: f32[1,120,40]\n"
     "  input b: f32[1,240]\n"
     "  input h: f32[1,1,40]\n"
     "  y: f32[3,1,1,40], yh: f32[1,1,40] = GRU gru(x, w, r, b, _, h) "
     "{linear_before_reset=1, activations=[\"Sigmoid\", \"Softplus\"]}\n"
     "  z: f32[3,1,1,40] = Relu relu(y)\n"
     "  output z\n  output yh\n"},
    {"rnn, functions that take numbers, batch first",
     "graph g\n"
     "  input x: f32[2,4,3]\n"
     "  input w: f32[2,6,3]\n"
     "  input r: f32[2,6,6]\n"
     "  y: f32[2,4,2,6], yh: f32[2,2,6] = RNN rnn(x, w, r) {layout=1, "
     "direction=\"bidirectional\", activations=[\"ScaledTanh\", "
     "\"LeakyRelu\"], activation_alpha=[0.7, 0.2], "
     "activation_beta=[0.5]}\n"
     "  output y\n  output yh\n"},
    {"rnn, the other functions",
     "graph g\n"
     "  input x: f32[2,3,3]\n"
     "  input w: f32[2,6,3]\n"
     "  input r: f32[2,6,6]\n"
     "  _, a: f32[2,3,6] = RNN first(x, w, r) "
     "{direction=\"bidirectional\", activations=[\"Affine\", "
     "\"ThresholdedRelu\"], activation_alpha=[0.5, 0.1], "
     "activation_beta=[0.25]}\n"
     "  _, b: f32[2,3,6] = RNN second(x, w, r) "
     "{direction=\"bidirectional\", activations=[\"Relu\", \"Sigmoid\"]}\n"
     "  output a\n  output b\n"},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

static void compare(const Sample *s, const char *target, int level)
{
    Arena *arena = arena_new();
    PassOptions options = {.opt_level = level, .verify = true};
    Compiled c = compile_text(arena, s->text, target, &options, level == 0);
    Array **got = run_interpreted(&c);
    Array **want = run_reference(arena, c.source, NULL);
    char what[256];

    for (int i = 0; i < c.program->output_count; i++) {
        snprintf(what, sizeof what, "%s, %s, -O%d: output %d", s->name, target,
                 level, i);
        check_close(what, got[i], want[i], 2e-5);
    }
    arena_free(arena);
}

static void test_interpreted(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        for (int level = 0; level <= 2; level++)
            compare(&samples[i], "x86-64-v3", level);
        compare(&samples[i], "x86-64-v4", 2);
        compare(&samples[i], "aarch64", 2);
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

/* Printed loops parse back, and equal nodes share a kernel. */
static void test_kernels(void **state)
{
    Arena *arena = arena_new();
    (void)state;
    Compiled c = compile_text(arena,
                              "graph g\n"
                              "  input x: f32[4,40]\n"
                              "  const k: i64[1] = {3}\n"
                              "  n: f32[4,40] = Neg neg(x)\n"
                              "  y: f32[4,3], i: i64[4,3] = TopK a(x, k)\n"
                              "  z: f32[4,3], j: i64[4,3] = TopK b(n, k)\n"
                              "  output y\n  output i\n"
                              "  output z\n  output j\n",
                              "x86-64-v3", NULL, false);
    int found = 0;
    for (int i = 0; i < c.program->kernels.count; i++) {
        const ProgramKernel *k = &c.program->kernels.data[i];
        if (k->def)
            continue;
        found++;
        Str text = {0};
        kernel_print(&text, k->kernel);
        Kernel *again = kernel_parse(arena, c.diag, str_text(&text));
        str_free(&text);
        assert_non_null(again);
        assert_true(again->hash == k->kernel->hash);
        assert_non_null(strstr(k->kernel->name, "topk_4x3_"));
        /* The data, both results; the number of elements is none. */
        assert_int_equal(k->kernel->params.count, 3);
    }
    assert_int_equal(found, 1);
    arena_free(arena);
}

/* A chain does not go on through a loop program, and says why. */
static void test_apart(void **state)
{
    Arena *arena = arena_new();
    (void)state;
    Compiled c = compile_text(arena,
                              "graph g\n"
                              "  input x: f32[4,40]\n"
                              "  const k: i64[1] = {3}\n"
                              "  n: f32[4,40] = Neg neg(x)\n"
                              "  y: f32[4,3], i: i64[4,3] = TopK top(n, k)\n"
                              "  z: f32[4,3] = Neg last(y)\n"
                              "  output z\n  output i\n",
                              "x86-64-v3", NULL, false);
    const Node *top = graph_find_node(c.graph, "top");
    assert_int_equal(top->group->nodes.count, 1);
    assert_int_equal(top->apart[0], APART_PROGRAM);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interpreted),
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_apart),
    };
    return cmocka_run_group_tests_name("loop programs", tests, NULL, NULL);
}
