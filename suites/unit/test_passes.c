/* Each pass on small graphs: text in, expected text out, and what the
 * pipeline does with its options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "compiler/evaluate.h"
#include "passes/util.h"
#include "suites/unit/compiled.h"

typedef void (*PassFunction)(PassContext *c);

static Graph *run_pass(Arena *arena, PassFunction pass, int level,
                       const char *text)
{
    Graph *g = graph_from_text(arena, text);
    PassContext c = {.graph = g,
                     .target = target_find(arena, g->diag, "x86-64-v3"),
                     .opt_level = level,
                     .evaluate = evaluate_node};

    pass_infer(&c);
    pass(&c);
    for (int i = 0; i < g->diag->errors.count; i++)
        print_message("%s\n", g->diag->errors.data[i]);
    assert_int_equal(g->diag->errors.count, 0);
    assert_true(graph_sort(g));
    graph_verify(g);
    return g;
}

/* Lines of the printed graph, without the first. */
static void expect(PassFunction pass, int level, const char *text,
                   const char *wanted)
{
    Arena *arena = arena_new();
    Str out = {0};
    Graph *g = run_pass(arena, pass, level, text);

    graph_print(&out, g, true);
    const char *body = strchr(str_text(&out), '\n') + 1;
    if (strcmp(body, wanted) != 0)
        fail_msg("for\n%sthe pass gives\n%sand not\n%s", text, body, wanted);
    str_free(&out);
    arena_free(arena);
}

/* Only the groups that fusion makes. */
static void expect_groups(int level, const char *text, const char *wanted)
{
    Arena *arena = arena_new();
    Str out = {0};
    Graph *g = run_pass(arena, pass_fuse, level, text);

    graph_print(&out, g, true);
    const char *groups = strstr(str_text(&out), "  group 0");
    assert_non_null(groups);
    if (strcmp(groups, wanted) != 0)
        fail_msg("for\n%sthe groups are\n%sand not\n%s", text, groups, wanted);
    str_free(&out);
    arena_free(arena);
}

static void test_infer(void **state)
{
    (void)state;
    /* A shape computed by nodes: its value is known, hence the type. */
    expect(pass_infer, 2,
           "graph g\n"
           "  input x: f32[2,3,4]\n"
           "  const h: i64[1] = {6}\n"
           "  const two: i64[1] = {2}\n"
           "  const r: i64[1] = {-1}\n"
           "  a: i64[1] = Div half(h, two)\n"
           "  s: i64[2] = Concat cat(a, r) {axis=0}\n"
           "  y: f32[3,8] = Reshape reshape(x, s)\n"
           "  output y\n",
           "  input x: f32[2,3,4]\n"
           "  const s_11: i64[2] from(s) = {3, -1}\n"
           "  y: f32[3,8] = Reshape reshape(x, s_11)\n"
           "  output y\n");
    /* So it is where a shape on the way is an output too. */
    expect(pass_infer, 2,
           "graph g\n"
           "  input x: f32[2,3]\n"
           "  const two: i64[2] = {2, 1}\n"
           "  s: i64[2] = Shape shape(x)\n"
           "  t: i64[2] = Mul twice(s, two)\n"
           "  y: f32[8,9] = Tile tile(x, t)\n"
           "  output s\n"
           "  output t\n"
           "  output y\n",
           "  input x: f32[2,3]\n"
           "  const two: i64[2] = {2, 1}\n"
           "  const shape.value: i64[2] = {2, 3}\n"
           "  const t_9: i64[2] from(t) = {4, 3}\n"
           "  s: i64[2] = Shape shape(x)\n"
           "  t: i64[2] = Mul twice(shape.value, two)\n"
           "  y: f32[8,9] = Tile tile(x, t_9)\n"
           "  output s\n"
           "  output t\n"
           "  output y\n");
}

/* Floats that decide a shape become constants, others stay what they are. */
static void test_infer_floats(void **state)
{
    (void)state;
    expect(pass_infer, 0,
           "graph g\n"
           "  const n: i64[] = {3}\n"
           "  const zero: f32[] = {0}\n"
           "  const one: f32[] = {1}\n"
           "  f: f32[] = Cast cast(n) {to=1}\n"
           "  e: f32[] = Add add(f, one)\n"
           "  r: f32[4] = Range range(zero, e, one)\n"
           "  y: f32[4] = Mul mul(r, f)\n"
           "  output y\n",
           "  const zero: f32[] = {0}\n"
           "  const one: f32[] = {1}\n"
           "  const f_11: f32[] from(f) = {3}\n"
           "  const e_12: f32[] from(e) = {4}\n"
           "  r: f32[4] = Range range(zero, e_12, one)\n"
           "  y: f32[4] = Mul mul(r, f_11)\n"
           "  output y\n");
}

static void test_fold(void **state)
{
    (void)state;
    /* A chain of constants. */
    expect(pass_fold, 2,
           "graph g\n"
           "  input x: f32[3]\n"
           "  const a: f32[3] = {1, 2, 3}\n"
           "  const b: f32[1] = {0.5}\n"
           "  c: f32[3] = Mul mul(a, b)\n"
           "  d: f32[3] = Exp exp(c)\n"
           "  y: f32[3] = Add add(x, d)\n"
           "  output y\n",
           "  input x: f32[3]\n"
           "  const d_10: f32[3] from(d) = {1.6487212, 2.7182817, 4.481689}\n"
           "  y: f32[3] = Add add(x, d_10)\n"
           "  output y\n");
    /* At -O0 only what no kernel computes with. */
    expect(pass_fold, 0,
           "graph g\n"
           "  input x: f32[1]\n"
           "  const a: f32[1] = {2}\n"
           "  const q: u8[2] = {100, 200}\n"
           "  const s: f32[] = {0.5}\n"
           "  const z: u8[] = {100}\n"
           "  b: f32[1] = Neg neg(a)\n"
           "  w: f32[2] = DequantizeLinear deq(q, s, z)\n"
           "  c: f32[2] = Mul mul(x, w)\n"
           "  y: f32[2] = Add add(c, b)\n"
           "  output y\n",
           "  input x: f32[1]\n"
           "  const a: f32[1] = {2}\n"
           "  const w_13: f32[2] from(w) = {0, 5e+01}\n"
           "  b: f32[1] = Neg neg(a)\n"
           "  c: f32[2] = Mul mul(x, w_13)\n"
           "  y: f32[2] = Add add(c, b)\n"
           "  output y\n");
    /* Too large for what it is made of. */
    expect(pass_fold, 2,
           "graph g\n"
           "  input x: f32[1]\n"
           "  const a: f32[1] = {2}\n"
           "  const e: i64[2] = {4096, 8192}\n"
           "  b: f32[4096,8192] = Expand expand(a, e)\n"
           "  y: f32[4096,8192] = Add add(x, b)\n"
           "  output y\n",
           "  input x: f32[1]\n"
           "  const a: f32[1] = {2}\n"
           "  const e: i64[2] = {4096, 8192}\n"
           "  b: f32[4096,8192] = Expand expand(a, e)\n"
           "  y: f32[4096,8192] = Add add(x, b)\n"
           "  output y\n");
}

static void test_decompose(void **state)
{
    (void)state;
    expect(pass_decompose, 2,
           "graph g\n"
           "  input x: f32[1,2,3]\n"
           "  const s: f32[2] = {2, 1}\n"
           "  const b: f32[2] = {1, 0}\n"
           "  const m: f32[2] = {1, 10}\n"
           "  const v: f32[2] = {4, 1}\n"
           "  y: f32[1,2,3] = BatchNormalization bn(x, s, b, m, v) "
           "{epsilon=0.0}\n"
           "  output y\n",
           "  input x: f32[1,2,3]\n"
           "  const bn.scale: f32[2,1] = {1, 1}\n"
           "  const bn.shift: f32[2,1] = {0, -1e+01}\n"
           "  bn.mul: f32[1,2,3] from() = Mul bn.mul(x, bn.scale) from(bn)\n"
           "  y: f32[1,2,3] = Add bn.add(bn.mul, bn.shift) from(bn)\n"
           "  output y\n");
}

static void test_simplify(void **state)
{
    (void)state;
    /* Identities of all kinds. */
    expect(pass_simplify, 1,
           "graph g\n"
           "  input x: f32[2,3]\n"
           "  const e: i64[4] = {0, 0, 0, 0}\n"
           "  a: f32[2,3] = Identity id(x)\n"
           "  b: f32[2,3] = Cast cast(a) {to=1}\n"
           "  c: f32[2,3] = Dropout drop(b)\n"
           "  d: f32[2,3] = Pad pad(c, e)\n"
           "  y: f32[2,3] = Relu relu(d)\n"
           "  output y\n",
           "  input x: f32[2,3] from(x, a, b, c, d)\n"
           "  y: f32[2,3] = Relu relu(x)\n"
           "  output y\n");
    /* Transposes: the second composes, the third undoes it. */
    expect(pass_simplify, 1,
           "graph g\n"
           "  input x: f32[2,3,4]\n"
           "  a: f32[3,4,2] = Transpose t1(x) {perm=[1, 2, 0]}\n"
           "  b: f32[2,4,3] = Transpose t2(a) {perm=[2, 1, 0]}\n"
           "  c: f32[2,3,4] = Transpose t3(b) {perm=[0, 2, 1]}\n"
           "  y: f32[2,4,3] = Relu relu1(b)\n"
           "  z: f32[2,3,4] = Relu relu2(c)\n"
           "  output y\n"
           "  output z\n",
           "  input x: f32[2,3,4] from(x, c)\n"
           "  t2_11: f32[2,4,3] from(t2_11, b) = Transpose t2_11(x) {perm=[0, "
           "2, 1]} from(t2, t1)\n"
           "  y: f32[2,4,3] = Relu relu1(t2_11)\n"
           "  z: f32[2,3,4] = Relu relu2(x)\n"
           "  output y\n"
           "  output z\n");
    /* Reshapes, by whichever operator. */
    expect(pass_simplify, 1,
           "graph g\n"
           "  input x: f32[2,3,4]\n"
           "  const s: i64[2] = {0, -1}\n"
           "  const u: i64[3] = {2, 3, 4}\n"
           "  const ax: i64[1] = {0}\n"
           "  a: f32[2,12] = Reshape r1(x, s)\n"
           "  b: f32[1,2,12] = Unsqueeze r2(a, ax)\n"
           "  c: f32[2,3,4] = Reshape r3(b, u)\n"
           "  y: f32[1,2,12] = Relu relu1(b)\n"
           "  z: f32[2,3,4] = Relu relu2(c)\n"
           "  output y\n"
           "  output z\n",
           "  input x: f32[2,3,4] from(x, c)\n"
           "  const \"const\": i64[3] from() = {1, 2, 12}\n"
           "  r2_15: f32[1,2,12] from(r2_15, b) = Reshape r2_15(x, \"const\") "
           "{allowzero=1} from(r2, r1)\n"
           "  y: f32[1,2,12] = Relu relu1(r2_15)\n"
           "  z: f32[2,3,4] = Relu relu2(x)\n"
           "  output y\n"
           "  output z\n");
    /* An input cannot be an output: the copy stays. */
    expect(pass_simplify, 1,
           "graph g\n"
           "  input x: f32[2,3]\n"
           "  y: f32[2,3] = Identity id(x)\n"
           "  output y\n",
           "  input x: f32[2,3]\n"
           "  y: f32[2,3] = Identity id(x)\n"
           "  output y\n");
    /* An output keeps its name. */
    expect(pass_simplify, 1,
           "graph g\n"
           "  input x: f32[2,3]\n"
           "  a: f32[2,3] = Relu relu(x)\n"
           "  y: f32[2,3] = Identity id(a)\n"
           "  output y\n",
           "  input x: f32[2,3]\n"
           "  y: f32[2,3] from(a, y) = Relu relu(x)\n"
           "  output y\n");
}

static void test_reciprocal(void **state)
{
    (void)state;
    expect(pass_reciprocal, 2,
           "graph g\n"
           "  input x: f32[2,3]\n"
           "  const c: f32[3] = {2, 3, -0.5}\n"
           "  a: f32[2,3] = Div div(x, c)\n"
           "  y: f32[2,3] = Softmax s(a) {axis=-1}\n"
           "  output y\n",
           "  input x: f32[2,3]\n"
           "  const \"const\": f32[3] from() = {0.5, 0.33333334, -2}\n"
           "  div_7: f32[2,3] from(div_7, a) = Mul div_7(x, \"const\") "
           "from(div)\n"
           "  y: f32[2,3] = Softmax s(div_7) {axis=-1}\n"
           "  output y\n");
    /* What is rounded to a step, such as 49 / 49, stays; a power of two has
     * an exact reciprocal. */
    static const char *const stay[] = {
        "  const c: f32[1] = {3}\n  a: f32[2,3] = Div div(x, c)\n"
        "  y: f32[2,3] = Floor s(a)\n",
        "  const c: f32[1] = {3}\n  a: f32[2,3] = Div div(x, c)\n"
        "  b: f32[2,3] = Relu r(a)\n  y: i32[2,3] = Cast s(b) {to=6}\n",
        "  const c: f32[3] = {3, 1, 0}\n  a: f32[2,3] = Div div(x, c)\n"
        "  y: f32[2,3] = Softmax s(a) {axis=-1}\n",
        "  const c: f32[1] = {3}\n  a: f32[2,3] = Div div(x, c)\n"
        "  b: f32[2,1] = ReduceMax m(a, one)\n"
        "  y: f32[2,1] = Floor s(b)\n",
        "  const c: f32[1] = {3}\n  a: f32[2,3] = Div div(x, c)\n"
        "  b: f32[2,3] = CumSum m(a, zero)\n  y: f32[2,3] = Ceil s(b)\n",
        "  const c: f32[1] = {1e39}\n  a: f32[2,3] = Div div(x, c)\n"
        "  y: f32[2,3] = Softmax s(a) {axis=-1}\n",
        "  const c: f32[1] = {3}\n  a: f32[2,3] = Div div(c, x)\n"
        "  y: f32[2,3] = Softmax s(a) {axis=-1}\n"};
    for (size_t i = 0; i <= sizeof stay / sizeof *stay; i++) {
        Arena *arena = arena_new();
        bool exact = i == sizeof stay / sizeof *stay;
        const char *body =
            exact ? "  const c: f32[1] = {4}\n  a: f32[2,3] = Div div(x, c)\n"
                    "  y: f32[2,3] = Floor s(a)\n"
                  : stay[i];
        Graph *g = run_pass(arena, pass_reciprocal, 2,
                            arena_printf(arena,
                                         "graph g\n  input x: f32[2,3]\n"
                                         "  const zero: i64[] = {0}\n"
                                         "  const one: i64[1] = {1}\n%s"
                                         "  output y\n",
                                         body));
        assert_string_equal(g->nodes.data[0]->op->name, exact ? "Mul" : "Div");
        arena_free(arena);
    }
}

/* 8 channels are spread over 64, 65 x 40 pixels of which (666 kB) are more
 * than the 256 kB of x86-64-v3's second-level cache, filtered by a window and
 * brought back. */
static const char strip_tail[] =
    "  e: f32[1,64,65,40] = Conv expand(x, we)\n"
    "  f: f32[1,64,65,40] = Relu act(e)\n"
    "  d: f32[1,64,65,40] = Conv depthwise(f, wd) "
    "{group=64, pads=[1, 1, 1, 1]}\n"
    "  o: f32[1,8,65,40] = Conv project(d, wo)\n"
    "  y: f32[1,8,65,40] = Add sum(o, x)\n  output y\n";

static void add_weights(Str *text, const char *name, int out, int in, int rows,
                        int columns)
{
    str_addf(text, "  const %s: f32[%d,%d,%d,%d] = {", name, out, in, rows,
             columns);
    for (int i = 0; i < out * in * rows * columns; i++)
        str_addf(text, "%s%d", i ? ", " : "", i % 7 - 3);
    str_add(text, "}\n");
}

/* A graph of x, of the weights and of `tail`; `input` computes x. */
static const char *strip_graph(Arena *arena, const char *input,
                               int window_rows, const char *tail)
{
    Str text = {0};
    str_addf(&text, "graph g\n%s", input);
    add_weights(&text, "we", 64, 8, 1, 1);
    add_weights(&text, "wd", 64, 1, window_rows, 3);
    add_weights(&text, "wo", 8, 64, 1, 1);
    str_add(&text, tail);
    const char *copy = arena_strdup(arena, str_text(&text));
    str_free(&text);
    return copy;
}

static int count_of(const Graph *g, const char *op)
{
    int count = 0;
    for (int i = 0; i < g->nodes.count; i++)
        count += !strcmp(g->nodes.data[i]->op->name, op);
    return count;
}

static void test_strips(void **state)
{
    (void)state;
    const char *computed_input =
        "  input i: f32[1,8,65,40]\n  x: f32[1,8,65,40] = Relu r(i)\n";
    Arena *arena = arena_new();
    Graph *g = run_pass(arena, pass_strips, 2,
                        strip_graph(arena, computed_input, 3, strip_tail));
    int strips = count_of(g, "Add"), rows = 0, computed = 0;
    assert_in_range(strips, 3, 8);
    assert_int_equal(count_of(g, "Conv"), 3 * strips);
    assert_int_equal(count_of(g, "Concat"), 1);
    /* Every row of the result once; of what the window reads, two more for
     * each border between strips. */
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *node = g->nodes.data[i];
        int n = (int)node->outputs.data[0]->type.dims[2].value;
        if (!strcmp(node->op->name, "Add"))
            rows += n;
        if (!strcmp(node->op->name, "Conv") &&
            node->inputs.data[1] == graph_find_tensor(g, "we"))
            computed += n;
    }
    assert_int_equal(rows, 65);
    assert_int_equal(computed, 65 + 2 * (strips - 1));
    assert_string_equal(g->outputs.data[0]->name, "y");
    arena_free(arena);
    /* Rows of zeros behind the operand belong to the last strip alone. */
    arena = arena_new();
    g = run_pass(arena, pass_strips, 2,
                 strip_graph(arena, computed_input, 3,
                             "  e: f32[1,64,67,40] = Conv expand(x, we) "
                             "{pads=[0, 0, 2, 0]}\n"
                             "  y: f32[1,8,67,40] = Conv project(e, wo)\n"
                             "  output y\n"));
    assert_int_equal(count_of(g, "Concat"), 1);
    assert_int_equal(g->outputs.data[0]->type.dims[2].value, 67);
    arena_free(arena);
    /* Left alone: a result that is an output, or read twice; an input of the
     * graph, which has no layout of ours; too many rows to compute twice. */
    static const struct {
        bool is_input;
        int window_rows;
        const char *tail;
    } alone[] = {
        {false, 3,
         "  e: f32[1,64,65,40] = Conv expand(x, we)\n"
         "  y: f32[1,64,65,40] = Relu act(e)\n  output y\n  output e\n"},
        {false, 3,
         "  e: f32[1,64,65,40] = Conv expand(x, we)\n"
         "  f: f32[1,64,65,40] = Relu act(e)\n"
         "  d: f32[1,64,65,40] = Conv depthwise(f, wd) "
         "{group=64, pads=[1, 1, 1, 1]}\n"
         "  y: f32[1,64,65,40] = Add sum(d, f)\n  output y\n"},
        {true, 3,
         "  e: f32[1,64,65,40] = Conv expand(x, we)\n"
         "  y: f32[1,8,65,40] = Conv project(e, wo)\n  output y\n"},
        {false, 9,
         "  e: f32[1,64,65,40] = Conv expand(x, we)\n"
         "  y: f32[1,64,65,40] = Conv depthwise(e, wd) "
         "{group=64, pads=[4, 1, 4, 1]}\n  output y\n"},
    };
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        arena = arena_new();
        g = run_pass(arena, pass_strips, 2,
                     strip_graph(arena,
                                 alone[i].is_input
                                     ? "  input x: f32[1,8,65,40]\n"
                                     : computed_input,
                                 alone[i].window_rows, alone[i].tail));
        assert_int_equal(count_of(g, "Concat"), 0);
        arena_free(arena);
    }
}

static void test_slice(void **state)
{
    (void)state;
    /* A result that nobody uses is gone; an output keeps its name. */
    expect(pass_slice, 1,
           "graph g\n"
           "  input x: f32[2,6]\n"
           "  const s: i64[3] = {1, 2, 3}\n"
           "  a: f32[2,1], b: f32[2,2], c: f32[2,3] = Split split(x, s) "
           "{axis=1}\n"
           "  y: f32[2,3] = Relu relu(c)\n"
           "  output y\n"
           "  output a\n",
           "  input x: f32[2,6]\n"
           "  const \"const\": i64[1] from() = {0}\n"
           "  const const_9: i64[1] from() = {1}\n"
           "  const const_10: i64[1] from() = {1}\n"
           "  const const_13: i64[1] from() = {3}\n"
           "  const const_14: i64[1] from() = {6}\n"
           "  const const_15: i64[1] from() = {1}\n"
           "  a: f32[2,1] from(split_11, a) = Slice split_11(x, \"const\", "
           "const_9, const_10) from(split)\n"
           "  split_16: f32[2,3] from(split_16, c) = Slice split_16(x, "
           "const_13, const_14, const_15) from(split)\n"
           "  y: f32[2,3] = Relu relu(split_16)\n"
           "  output y\n"
           "  output a\n");
    /* Sizes that are given ask for an extent that a run must have: a slice
     * would take what there is. */
    Arena *arena = arena_new();
    Graph *g = run_pass(arena, pass_slice, 1,
                        "graph g\n"
                        "  input x: f32[2,1<=T<=9]\n"
                        "  const s: i64[2] = {1, 3}\n"
                        "  a: f32[2,1], b: f32[2,3] = Split s(x, s) {axis=1}\n"
                        "  y: f32[2,3] = Relu r(b)\n"
                        "  output y\n  output a\n");
    assert_int_equal(count_of(g, "Split"), 1);
    assert_int_equal(count_of(g, "Slice"), 0);
    arena_free(arena);
}

static void test_batchnorm(void **state)
{
    (void)state;
    /* A chain: ((w x) s + t) / 2, subtracted from 2. */
    expect(pass_batchnorm, 2,
           "graph g\n"
           "  input x: f32[1,2,3,3]\n"
           "  const w: f32[2,2,1,1] = {1, 2, 3, 4}\n"
           "  const s: f32[1,2,1,1] = {10, 0.5}\n"
           "  const t: f32[2,1,1] = {1, -1}\n"
           "  const k: f32[] = {2}\n"
           "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
           "  b: f32[1,2,3,3] = Mul scale(a, s)\n"
           "  c: f32[1,2,3,3] = Add shift(t, b)\n"
           "  d: f32[1,2,3,3] = Div half(c, k)\n"
           "  y: f32[1,2,3,3] = Sub minus(k, d)\n"
           "  output y\n",
           "  input x: f32[1,2,3,3]\n"
           "  const w_15: f32[2,2,1,1] from(w) = {-5, -1e+01, -0.75, -1}\n"
           "  const conv.bias: f32[2] = {1.5, 2.5}\n"
           "  y: f32[1,2,3,3] from(a, b, c, d, y) = Conv conv(x, w_15, "
           "conv.bias) from(conv, scale, shift, half, minus)\n"
           "  output y\n");
    /* A product without a bias takes the factor only. */
    expect(pass_batchnorm, 2,
           "graph g\n"
           "  input x: f32[2,3]\n"
           "  const w: f32[3,2] = {1, 2, 3, 4, 5, 6}\n"
           "  const s: f32[2] = {10, 100}\n"
           "  const t: f32[2] = {1, 2}\n"
           "  a: f32[2,2] = MatMul mat(x, w)\n"
           "  b: f32[2,2] = Mul scale(a, s)\n"
           "  y: f32[2,2] = Add shift(b, t)\n"
           "  output y\n",
           "  input x: f32[2,3]\n"
           "  const t: f32[2] = {1, 2}\n"
           "  const w_10: f32[3,2] from(w) = {1e+01, 2e+02, 3e+01, 4e+02, "
           "5e+01, 6e+02}\n"
           "  a: f32[2,2] from(a, b) = MatMul mat(x, w_10) from(mat, scale)\n"
           "  y: f32[2,2] = Add shift(a, t)\n"
           "  output y\n");
    /* Not: factors by pixel, two users, past a graph output. */
    expect(pass_batchnorm, 2,
           "graph g\n"
           "  input x: f32[1,2,2]\n"
           "  const w: f32[2,2,1] = {1, 2, 3, 4}\n"
           "  const s: f32[1,2,2] = {10, 0.5, 1, 2}\n"
           "  const t: f32[2,1] = {1, -1}\n"
           "  a: f32[1,2,2] = Conv conv(x, w)\n"
           "  b: f32[1,2,2] = Mul by_pixel(a, s)\n"
           "  c: f32[1,2,2] = Conv conv2(b, w)\n"
           "  d: f32[1,2,2] = Add two_users(c, t)\n"
           "  e: f32[1,2,2] = Add other_user(c, d)\n"
           "  f: f32[1,2,2] = Conv conv3(e, w)\n"
           "  g: f32[1,2,2] = Mul after_output(f, t)\n"
           "  output f\n"
           "  output g\n",
           "  input x: f32[1,2,2]\n"
           "  const w: f32[2,2,1] = {1, 2, 3, 4}\n"
           "  const s: f32[1,2,2] = {1e+01, 0.5, 1, 2}\n"
           "  const t: f32[2,1] = {1, -1}\n"
           "  a: f32[1,2,2] = Conv conv(x, w)\n"
           "  b: f32[1,2,2] = Mul by_pixel(a, s)\n"
           "  c: f32[1,2,2] = Conv conv2(b, w)\n"
           "  d: f32[1,2,2] = Add two_users(c, t)\n"
           "  e: f32[1,2,2] = Add other_user(c, d)\n"
           "  f: f32[1,2,2] = Conv conv3(e, w)\n"
           "  g: f32[1,2,2] = Mul after_output(f, t)\n"
           "  output f\n"
           "  output g\n");
}

static void test_cse(void **state)
{
    (void)state;
    /* Commuted operands, equal constants; subtraction does not commute. */
    expect(pass_cse, 1,
           "graph g\n"
           "  input x: f32[2]\n"
           "  input z: f32[2]\n"
           "  const c1: f32[2] = {1, 2}\n"
           "  const c2: f32[2] = {1, 2}\n"
           "  a: f32[2] = Add a1(x, z)\n"
           "  b: f32[2] = Add a2(z, x)\n"
           "  c: f32[2] = Sub s1(x, z)\n"
           "  d: f32[2] = Sub s2(z, x)\n"
           "  e: f32[2] = Mul m1(a, c1)\n"
           "  f: f32[2] = Mul m2(b, c2)\n"
           "  g: f32[2] = Sub s3(c, d)\n"
           "  y: f32[2] = Div div(e, f)\n"
           "  output y\n"
           "  output g\n",
           "  input x: f32[2]\n"
           "  input z: f32[2]\n"
           "  const c1: f32[2] from(c1, c2) = {1, 2}\n"
           "  a: f32[2] from(a, b) = Add a1(x, z) from(a1, a2)\n"
           "  c: f32[2] = Sub s1(x, z)\n"
           "  d: f32[2] = Sub s2(z, x)\n"
           "  e: f32[2] from(e, f) = Mul m1(a, c1) from(m1, m2)\n"
           "  g: f32[2] = Sub s3(c, d)\n"
           "  y: f32[2] = Div div(e, e)\n"
           "  output y\n"
           "  output g\n");
    /* Two outputs stay two; attributes count. */
    expect(pass_cse, 1,
           "graph g\n"
           "  input x: f32[2]\n"
           "  y: f32[2] = Exp e1(x)\n"
           "  z: f32[2] = Exp e2(x)\n"
           "  a: f32[2] = Exp e3(x)\n"
           "  b: f32[2] = LeakyRelu l1(a) {alpha=0.5}\n"
           "  c: f32[2] = LeakyRelu l2(a) {alpha=0.25}\n"
           "  w: f32[2] = Add add(b, c)\n"
           "  output y\n"
           "  output z\n"
           "  output w\n",
           "  input x: f32[2]\n"
           "  y: f32[2] from(y, a) = Exp e1(x) from(e1, e3)\n"
           "  z: f32[2] = Exp e2(x)\n"
           "  b: f32[2] = LeakyRelu l1(y) {alpha=0.5}\n"
           "  c: f32[2] = LeakyRelu l2(y) {alpha=0.25}\n"
           "  w: f32[2] = Add add(b, c)\n"
           "  output y\n"
           "  output z\n"
           "  output w\n");
}

static void test_dce(void **state)
{
    (void)state;
    expect(pass_dce, 1,
           "graph g\n"
           "  input x: f32[2]\n"
           "  input unused: f32[2]\n"
           "  const c: f32[2] = {1, 2}\n"
           "  a: f32[2] = Exp dead1(x)\n"
           "  b: f32[2] = Add dead2(a, c)\n"
           "  y: f32[2] = Exp live(x)\n"
           "  output y\n",
           "  input x: f32[2]\n"
           "  input unused: f32[2]\n"
           "  y: f32[2] = Exp live(x)\n"
           "  output y\n");
}

static void test_layout(void **state)
{
    (void)state;
    /* Borders for the readers that pad; a copy for the input. */
    expect(
        pass_layout, 2,
        "graph g\n"
        "  input x: f32[1,3,8,8]\n"
        "  const w: f32[1,3,3,1] = {1, 2, 3, 4, 5, 6, 7, 8, 9}\n"
        "  const v: f32[2,1,1,1] = {1, 2}\n"
        "  const u: f32[1,2,2,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
        "  a: f32[1,1,8,8] = Conv conv1(x, w) {pads=[1, 0, 1, 0]}\n"
        "  b: f32[1,2,8,8] = Conv conv2(a, v)\n"
        "  c: f32[1,2,8,8] = Relu relu(b)\n"
        "  d: f32[1,1,8,8] = Conv conv3(c, u) {pads=[1, 1, 0, 1]}\n"
        "  e: f32[1,2,1,1] = GlobalAveragePool pool(c)\n"
        "  f: f32[1,2] = Flatten flat(e)\n"
        "  y: f32[1,2] = Softmax soft(f)\n"
        "  output d\n"
        "  output y\n",
        "  input x: f32[1,3,8,8] [0 1 2 3]\n"
        "  const w: f32[1,3,3,1] [0 1 2 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9}\n"
        "  const v: f32[2,1,1,1] [0 1 2 3] = {1, 2}\n"
        "  const u: f32[1,2,2,3] [0 1 2 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, "
        "1e+01, 11, 12}\n"
        "  x.relayout: f32[1,3,8,8] [0 2+1+1 3 1] = assay::Relayout "
        "x.relayout(x)\n"
        "  a: f32[1,1,8,8] [0 2 3 1] = Conv conv1(x.relayout, w) {pads=[1, 0, "
        "1, 0]}\n"
        "  b: f32[1,2,8,8] [0 2 3 1] = Conv conv2(a, v)\n"
        "  c: f32[1,2,8,8] [0 2+1+0 3+1+1 1] = Relu relu(b)\n"
        "  d: f32[1,1,8,8] [0 1 2 3] = Conv conv3(c, u) {pads=[1, 1, 0, 1]}\n"
        "  e: f32[1,2,1,1] [0 2 3 1] = GlobalAveragePool pool(c)\n"
        "  f: f32[1,2] [0 1] = Flatten flat(e)\n"
        "  y: f32[1,2] [0 1] = Softmax soft(f)\n"
        "  output d\n"
        "  output y\n");
    /* Transposes around a convolution become aliases. */
    expect(
        pass_layout, 2,
        "graph g\n"
        "  input x: f32[1,4,6,3]\n"
        "  const v: f32[2,3,1,1] = {1, 2, 3, 4, 5, 6}\n"
        "  a: f32[1,3,4,6] = Transpose nchw(x) {perm=[0, 3, 1, 2]}\n"
        "  b: f32[1,2,4,6] = Conv conv(a, v)\n"
        "  c: f32[1,4,6,2] = Transpose nhwc(b) {perm=[0, 2, 3, 1]}\n"
        "  y: f32[1,4,6,2] = Relu relu(c)\n"
        "  output y\n",
        "  input x: f32[1,4,6,3] [0 1 2 3]\n"
        "  const v: f32[2,3,1,1] [0 1 2 3] = {1, 2, 3, 4, 5, 6}\n"
        "  a: f32[1,3,4,6] [0 2 3 1] = Transpose nchw(x) {perm=[0, 3, 1, 2]}\n"
        "  b: f32[1,2,4,6] [0 2 3 1] = Conv conv(a, v)\n"
        "  c: f32[1,4,6,2] [0 1 2 3] = Transpose nhwc(b) {perm=[0, 2, 3, 1]}\n"
        "  y: f32[1,4,6,2] [0 1 2 3] = Relu relu(c)\n"
        "  output y\n");
    /* Patches to tokens: reshape and transpose are aliases. */
    expect(pass_layout, 2,
           "graph g\n"
           "  input x: f32[1,2,4,4]\n"
           "  const v: f32[2,2,1,1] = {1, 2, 3, 4}\n"
           "  const s: i64[3] = {1, 2, 16}\n"
           "  a: f32[1,2,4,4] = Conv patches(x, v)\n"
           "  b: f32[1,2,16] = Reshape merge(a, s)\n"
           "  c: f32[1,16,2] = Transpose tokens(b) {perm=[0, 2, 1]}\n"
           "  y: f32[1,16,2] = Softmax soft(c)\n"
           "  output y\n",
           "  input x: f32[1,2,4,4] [0 1 2 3]\n"
           "  const v: f32[2,2,1,1] [0 1 2 3] = {1, 2, 3, 4}\n"
           "  const s: i64[3] [0] = {1, 2, 16}\n"
           "  x.relayout: f32[1,2,4,4] [0 2 3 1] = assay::Relayout "
           "x.relayout(x)\n"
           "  a: f32[1,2,4,4] [0 2 3 1] = Conv patches(x.relayout, v)\n"
           "  b: f32[1,2,16] [0 2 1] = Reshape merge(a, s)\n"
           "  c: f32[1,16,2] [0 1 2] = Transpose tokens(b) {perm=[0, 2, 1]}\n"
           "  y: f32[1,16,2] [0 1 2] = Softmax soft(c)\n"
           "  output y\n");
    expect(
        pass_layout, 0,
        "graph g\n"
        "  input x: f32[1,1,4,4]\n"
        "  const v: f32[1,1,3,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9}\n"
        "  a: f32[1,1,4,4] = Conv conv(x, v) {pads=[1, 1, 1, 1]}\n"
        "  y: f32[1,1,4,4] = Relu relu(a)\n"
        "  output y\n",
        "  input x: f32[1,1,4,4] [0 1 2 3]\n"
        "  const v: f32[1,1,3,3] [0 1 2 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9}\n"
        "  a: f32[1,1,4,4] [0 1 2 3] = Conv conv(x, v) {pads=[1, 1, 1, 1]}\n"
        "  y: f32[1,1,4,4] [0 1 2 3] = Relu relu(a)\n"
        "  output y\n");
    /* Heads put together again: written in place, no copy. */
    expect(pass_layout, 2,
           "graph g\n"
           "  input x: f32[2,3,4]\n"
           "  const s: i64[2] = {3, 8}\n"
           "  a: f32[2,3,4] = Exp heads(x)\n"
           "  b: f32[3,2,4] = Transpose back(a) {perm=[1, 0, 2]}\n"
           "  c: f32[3,8] = Reshape joined(b, s)\n"
           "  y: f32[3,8] = Softmax soft(c)\n"
           "  output y\n",
           "  input x: f32[2,3,4] [0 1 2]\n"
           "  const s: i64[2] [0] = {3, 8}\n"
           "  a: f32[2,3,4] [1 0 2] = Exp heads(x)\n"
           "  b: f32[3,2,4] [0 1 2] = Transpose back(a) {perm=[1, 0, 2]}\n"
           "  c: f32[3,8] [0 1] = Reshape joined(b, s)\n"
           "  y: f32[3,8] [0 1] = Softmax soft(c)\n"
           "  output y\n");
}

static void test_fuse(void **state)
{
    (void)state;
    /* The later of two convolutions takes the sum. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[1,2,3,3]\n"
                  "  const w: f32[2,2,1,1] = {1, 2, 3, 4}\n"
                  "  const b: f32[2,1,1] = {1, 2}\n"
                  "  a: f32[1,2,3,3] = Conv conv1(x, w)\n"
                  "  c: f32[1,2,3,3] = Conv conv2(x, w)\n"
                  "  s: f32[1,2,3,3] = Add sum(a, c)\n"
                  "  d: f32[1,2,3,3] = Add bias(s, b)\n"
                  "  y: f32[1,2,3,3] = Relu relu(d)\n"
                  "  output y\n",
                  "  group 0: conv1 = conv1\n"
                  "  group 1: conv2 sum bias relu = conv2\n");
    /* Two users inside the group; then one outside it. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[1,2,3,3]\n"
                  "  const w: f32[2,2,1,1] = {1, 2, 3, 4}\n"
                  "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                  "  s: f32[1,2,3,3] = Sigmoid sig(a)\n"
                  "  m: f32[1,2,3,3] = Mul mul(a, s)\n"
                  "  r: f32[1,2,3,3] = Relu relu(m)\n"
                  "  t: f32[1,2,3,3] = Tanh tanh(r)\n"
                  "  p: f32[1,2,1,1] = GlobalAveragePool pool(r)\n"
                  "  y: f32[1,2,3,3] = Mul gate(t, p)\n"
                  "  output y\n",
                  "  group 0: conv sig mul relu = conv\n"
                  "  group 1: pool = pool\n"
                  "  group 2: tanh gate\n");
    /* A graph output ends a group. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[1,2,3,3]\n"
                  "  const w: f32[2,2,1,1] = {1, 2, 3, 4}\n"
                  "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                  "  r: f32[1,2,3,3] = Relu relu(a)\n"
                  "  y: f32[1,2,3,3] = Exp exp(r)\n"
                  "  output y\n"
                  "  output r\n",
                  "  group 0: conv relu = conv\n"
                  "  group 1: exp\n");
    /* A result of another shape does not join. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[1,2,3,3]\n"
                  "  input z: f32[2,2,3,3]\n"
                  "  const w: f32[2,2,1,1] = {1, 2, 3, 4}\n"
                  "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                  "  y: f32[2,2,3,3] = Add wider(a, z)\n"
                  "  output y\n",
                  "  group 0: conv = conv\n"
                  "  group 1: wider\n");
    /* Into a reduction, and on after it. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[4,8]\n"
                  "  const axes: i64[1] = {-1}\n"
                  "  const eps: f32[] = {0.5}\n"
                  "  a: f32[4,8] = Exp exp(x)\n"
                  "  m: f32[4,1] = ReduceMean mean(a, axes)\n"
                  "  e: f32[4,1] = Add eps(m, eps)\n"
                  "  y: f32[4,1] = Sqrt root(e)\n"
                  "  output y\n",
                  "  group 0: exp mean eps root = mean\n");
    /* Rows: mean and variance in one kernel. */
    expect_groups(
        2,
        "graph g\n"
        "  input x: f32[4,8]\n"
        "  const axes: i64[1] = {-1}\n"
        "  const two: f32[] = {2}\n"
        "  m: f32[4,1] = ReduceMean mean(x, axes)\n"
        "  d: f32[4,8] = Sub centre(x, m)\n"
        "  q: f32[4,8] = Pow square(d, two)\n"
        "  v: f32[4,1] = ReduceMean variance(q, axes)\n"
        "  r: f32[4,1] = Sqrt root(v)\n"
        "  y: f32[4,8] = Div divide(d, r)\n"
        "  output y\n",
        "  group 0: mean centre square variance root divide = mean\n");
    /* Sigmoid twice over would be computed twice: two kernels. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[8]\n"
                  "  s1: f32[8] = Sigmoid n1(x)\n"
                  "  m1: f32[8] = Mul n2(x, s1)\n"
                  "  s2: f32[8] = Sigmoid n3(m1)\n"
                  "  y: f32[8] = Mul n4(m1, s2)\n"
                  "  output y\n",
                  "  group 0: n1 n2\n"
                  "  group 1: n3 n4\n");
    /* Reshapes are alone; a slice may be in a chain. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[2,6]\n"
                  "  const s: i64[2] = {3, 4}\n"
                  "  const st: i64[1] = {1}\n"
                  "  const en: i64[1] = {3}\n"
                  "  a: f32[2,6] = Exp e1(x)\n"
                  "  b: f32[2,6] = Tanh e2(a)\n"
                  "  c: f32[3,4] = Reshape reshape(b, s)\n"
                  "  d: f32[3,4] = Abs e3(c)\n"
                  "  f: f32[2,4] = Slice slice(d, st, en)\n"
                  "  y: f32[2,4] = Neg e4(f)\n"
                  "  output y\n",
                  "  group 0: e1 e2\n"
                  "  group 1: reshape\n"
                  "  group 2: e3 slice e4\n");
    /* What gives more elements than it reads would be computed again. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[1,4]\n"
                  "  const s: i64[2] = {3, 4}\n"
                  "  a: f32[1,4] = Exp e1(x)\n"
                  "  b: f32[3,4] = Expand expand(a, s)\n"
                  "  y: f32[3,4] = Neg e2(b)\n"
                  "  output y\n",
                  "  group 0: e1\n"
                  "  group 1: expand e2\n");
    /* Chains that were begun apart meet in a concatenation; an operand of a
     * convolution's epilogue goes along, unless others read it or it would
     * be computed for every pixel. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[2,3]\n"
                  "  input z: f32[2,3]\n"
                  "  const k: f32[6] = {1, 2, 3, 4, 5, 6}\n"
                  "  a: f32[2,3] = Neg a(x)\n"
                  "  b: f32[2,3] = Abs b(z)\n"
                  "  c: f32[2,3] = Add c(a, b)\n"
                  "  d: f32[2,3] = Sub d(a, b)\n"
                  "  e: f32[2,6] = Concat e(c, d) {axis=1}\n"
                  "  y: f32[2,6] = Mul y(e, k)\n"
                  "  output y\n",
                  "  group 0: a b c d e y\n");
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[1,2,3,3]\n"
                  "  input z: f32[1,2,3,3]\n"
                  "  input v: f32[1,2,1,1]\n"
                  "  const w: f32[2,2,1,1] = {1, 2, 3, 4}\n"
                  "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                  "  r: f32[1,2,3,3] = Exp exp(z)\n"
                  "  t: f32[1,2,1,1] = Exp each(v)\n"
                  "  b: f32[1,2,3,3] = Add add(a, r)\n"
                  "  y: f32[1,2,3,3] = Mul mul(b, t)\n"
                  "  output y\n",
                  "  group 0: each\n"
                  "  group 1: conv exp add mul = conv\n");
    /* The mean of a distribution over bins. */
    expect_groups(2,
                  "graph g\n"
                  "  input x: f32[2,4,5,3]\n"
                  "  const w: f32[1,4,1,1] = {0, 1, 2, 3}\n"
                  "  const v: f32[2,4,1,1] = {0, 1, 2, 3, 4, 5, 6, 7}\n"
                  "  p: f32[2,4,5,3] = Softmax soft(x) {axis=1}\n"
                  "  y: f32[2,1,5,3] = Conv mean(p, w)\n"
                  "  q: f32[2,4,5,3] = Softmax soft2(x) {axis=1}\n"
                  "  z: f32[2,2,5,3] = Conv two(q, v)\n"
                  "  output y\n"
                  "  output z\n",
                  "  group 0: soft mean = mean\n"
                  "  group 1: soft2 = soft2\n"
                  "  group 2: two = two\n");
    expect_groups(0,
                  "graph g\n"
                  "  input x: f32[4]\n"
                  "  a: f32[4] = Exp e1(x)\n"
                  "  y: f32[4] = Abs e2(a)\n"
                  "  output y\n",
                  "  group 0: e1\n"
                  "  group 1: e2\n");
}

/* An operator that passes must not touch. */
static bool infer_noise(InferContext *c)
{
    c->node->outputs.data[0]->type = c->node->inputs.data[0]->type;
    return true;
}

static const Op noise = {.name = "Noise",
                         .domain = "",
                         .min_inputs = 1,
                         .max_inputs = 1,
                         .min_outputs = 1,
                         .max_outputs = 1,
                         .traits = OP_IMPURE,
                         .infer = infer_noise};

/* Each neighbour of a group is out of it for a reason, which the pass gave
 * when it decided. */
static void test_reasons(void **state)
{
    static const struct {
        Apart why;
        const char *body; /* why "node" is not where its operand 0 is */
    } rows[] = {
        {APART_NONE, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                     "  y: f32[1,2,3,3] = Relu node(a)\n"},
        {APART_OUTPUT, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                       "  y: f32[1,2,3,3] = Relu node(a)\n"
                       "  output a\n"},
        {APART_READERS, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                        "  b: f32[1,2,1,1] = GlobalAveragePool pool(a)\n"
                        "  y: f32[1,2,3,3] = Relu node(a)\n"
                        "  output b\n"},
        {APART_ANCHOR, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                       "  y: f32[1,2,3,3] = Conv node(a, w)\n"},
        {APART_OPERAND, "  a: f32[1,2,3,3] = Relu relu(x)\n"
                        "  y: f32[1,2,3,3] = Conv node(a, w)\n"},
        {APART_TAKEN, "  a: f32[1,2,3,3] = Conv conv1(x, w)\n"
                      "  b: f32[1,2,3,3] = Conv conv2(x, w)\n"
                      "  y: f32[1,2,3,3] = Add node(a, b)\n"},
        {APART_REDUCTION, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                          "  y: f32[1,2,1,1] = GlobalAveragePool node(a)\n"},
        {APART_REDUCTION, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                          "  y: f32[1,2,3,3] = Softmax node(a)\n"},
        {APART_MOVED, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                      "  y: f32[1,3,2,3] = Transpose node(a) "
                      "{perm=[0, 2, 1, 3]}\n"},
        {APART_SHAPE, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                      "  y: f32[2,2,3,3] = Add node(a, z)\n"},
        {APART_REPEATED, "  a: f32[1,2,3,3] = Exp exp(x)\n"
                         "  b: f32[1,2,3,3] = Neg neg(a)\n"
                         "  y: f32[1,2,3,3] = Add node(a, b)\n"},
        {APART_REPEATED, "  a: f32[1,2,3,3] = Neg neg(x)\n"
                         "  y: f32[2,2,3,3] = Expand node(a, e)\n"},
        {APART_EXCLUDED, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                         "  y: f32[1,2,3,3] = Relu node(a) no_fuse\n"},
        {APART_EXCLUDED, "  a: f32[1,2,3,3] = Conv conv(x, w) no_fuse\n"
                         "  y: f32[1,2,3,3] = Relu node(a)\n"},
        {APART_KIND, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                     "  y: f32[1,1,3,3], b: f32[1,1,3,3] = Split node(a) "
                     "{axis=1}\n"
                     "  output b\n"},
        {APART_VIEW, "  a: f32[1,2,3,3] = Conv conv(x, w)\n"
                     "  b: f32[1,18] = Flatten flat(a)\n"
                     "  y: f32[1,18] = Relu node(b)\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *arena = arena_new();
        Graph *g = graph_from_text(
            arena, arena_printf(arena,
                                "graph g\n"
                                "  input x: f32[1,2,3,3]\n"
                                "  input z: f32[2,2,3,3]\n"
                                "  const w: f32[2,2,1,1] = {1, 2, 3, 4}\n"
                                "  const e: i64[4] = {2, 2, 3, 3}\n"
                                "%s  output y\n",
                                rows[i].body));
        PassContext c = {.graph = g,
                         .target = target_find(arena, g->diag, "x86-64-v3"),
                         .opt_level = 2,
                         .evaluate = evaluate_node};
        graph_layout_row_major(g);
        pass_fuse(&c);
        const Node *node = graph_find_node(g, "node");
        const Tensor *x = node->inputs.data[0];
        if (node->apart[0] != rows[i].why)
            fail_msg("for\n%sthe reason is \"%s\" and not \"%s\"",
                     rows[i].body, apart_text(node->apart[0]),
                     apart_text(rows[i].why));
        assert_int_equal(x->producer->group == node->group,
                         rows[i].why == APART_NONE);
        arena_free(arena);
    }
}

static void test_impure(void **state)
{
    static const Op *const own[] = {&noise, NULL};
    const OpTable table = {own, ops_builtin()};
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, NULL);
    (void)state;
    Graph *g = graph_parse(arena, diag, &table,
                           "graph g\n"
                           "  const c: f32[2] = {1, 2}\n"
                           "  a: f32[2] = Noise n1(c)\n"
                           "  b: f32[2] = Noise n2(c)\n"
                           "  d: f32[2] = Noise unused(c)\n"
                           "  y: f32[2] = Add add(a, b)\n"
                           "  output y\n");
    PassContext c = {.graph = g, .opt_level = 2, .evaluate = evaluate_node};
    assert_non_null(g);
    pass_infer(&c);
    pass_fold(&c);
    pass_cse(&c);
    pass_dce(&c);
    assert_int_equal(g->nodes.count, 4);
    pass_fuse(&c);
    assert_int_equal(g->groups.count, 4);
    arena_free(arena);
}

/* All faults are reported, each once, by node. */
static void test_infer_faults(void **state)
{
    Arena *arena = arena_new();
    (void)state;
    Graph *g = graph_from_text(arena, "graph g\n"
                                      "  input x: f32[2,3]\n"
                                      "  input z: f32[4]\n"
                                      "  a: f32[2,3] = Add first(x, z)\n"
                                      "  b: f32[2,3] = Relu behind(a)\n"
                                      "  c: f32[2,3] = MatMul second(x, x)\n"
                                      "  output b\n"
                                      "  output c\n");
    PassContext c = {.graph = g};
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.data[i]->outputs.count; k++)
            g->nodes.data[i]->outputs.data[k]->type = (TensorType){.rank = -1};
    pass_infer(&c);
    assert_int_equal(g->diag->errors.count, 2);
    assert_non_null(strstr(g->diag->errors.data[0], "first"));
    assert_non_null(strstr(g->diag->errors.data[1], "second"));
    arena_free(arena);
}

static const char pipeline_text[] = "graph g\n"
                                    "  input x: f32[4]\n"
                                    "  a: f32[4] = Identity id(x)\n"
                                    "  b: f32[4] = Exp e1(a)\n"
                                    "  c: f32[4] = Abs e2(b)\n"
                                    "  y: f32[4] = Neg e3(c)\n"
                                    "  output y\n";

static Graph *pipeline(Arena *arena, const PassOptions *o, bool *ok)
{
    PassTime times[32];
    int count;
    Graph *g = graph_from_text(arena, pipeline_text);
    PassContext c = {.graph = g,
                     .target = target_find(arena, g->diag, "x86-64-v3"),
                     .evaluate = evaluate_node};

    assert_true(pass_count() <= 32);
    *ok = passes_run(&c, o, times, &count);
    for (int i = 0; *ok && i < count; i++) {
        assert_true(times[i].seconds >= 0);
        assert_int_equal(times[i].nodes_before,
                         i ? times[i - 1].nodes_after : 4);
    }
    return g;
}

static void test_options(void **state)
{
    static const char *const fuse[] = {"fuse", NULL};
    static const char *const wrong[] = {"fusion", NULL};
    static const char *const middle[] = {"e2", NULL};
    static const char *const nobody[] = {"e9", NULL};
    Arena *arena = arena_new();
    bool ok;
    (void)state;

    Graph *g = pipeline(arena, &(PassOptions){.opt_level = 2}, &ok);
    assert_true(ok);
    assert_int_equal(g->nodes.count, 3);
    assert_int_equal(g->groups.count, 1);
    /* -O0: nothing but what kernels need. */
    g = pipeline(arena, &(PassOptions){.opt_level = 0}, &ok);
    assert_int_equal(g->nodes.count, 4);
    assert_int_equal(g->groups.count, 4);
    /* Unfused: every other pass, one node a group. */
    g = pipeline(arena, &(PassOptions){.opt_level = 2, .disabled = fuse}, &ok);
    assert_int_equal(g->nodes.count, 3);
    assert_int_equal(g->groups.count, 3);
    g = pipeline(arena, &(PassOptions){.opt_level = 2, .no_fuse = middle},
                 &ok);
    assert_int_equal(g->groups.count, 3);
    g = pipeline(
        arena, &(PassOptions){.opt_level = 2, .stop_after = "simplify"}, &ok);
    assert_true(ok);
    assert_int_equal(g->nodes.count, 3);
    assert_int_equal(g->groups.count, 0);
    g = pipeline(arena, &(PassOptions){.opt_level = 2, .disabled = wrong},
                 &ok);
    assert_false(ok);
    assert_non_null(strstr(g->diag->errors.data[0], "\"fusion\""));
    assert_non_null(strstr(g->diag->errors.data[0], "cse"));
    g = pipeline(arena, &(PassOptions){.stop_after = "nothing"}, &ok);
    assert_false(ok);
    g = pipeline(arena, &(PassOptions){.dump_after = "nothing"}, &ok);
    assert_false(ok);
    g = pipeline(arena, &(PassOptions){.no_fuse = nobody}, &ok);
    assert_false(ok);
    assert_non_null(strstr(g->diag->errors.data[0], "\"e9\""));
    arena_free(arena);
}

/* An extent that has a bound although a name in it has none, as files have
 * them before --dim: no pass may ask for its number. */
static void test_unbounded(void **state)
{
    Arena *arena = arena_new();
    (void)state;
    Graph *g = graph_from_text(
        arena, "graph g\n  input x: f32[3,N,4]\n"
               "  const a: i64[1] = {0}\n  const b: i64[1] = {1}\n"
               "  const axes: i64[1] = {2}\n"
               "  p: f32[3,min(1,N),4] = Slice p(x, a, b, b)\n"
               "  u: f32[3,min(1,N),1,4] = Unsqueeze u(p, axes)\n"
               "  y: f32[3,min(1,N),4] = Squeeze s(u, axes)\n"
               "  z: f32[3,min(1,N),8] = Concat c(y, p) {axis=2}\n"
               "  output z\n");
    PassContext c = {.graph = g,
                     .target = target_find(arena, g->diag, "x86-64-v3"),
                     .evaluate = evaluate_node};
    assert_true(passes_run(&c, &(PassOptions){.opt_level = 2}, NULL, NULL));
    assert_false(ops_check_lowerable(g));
    assert_non_null(strstr(g->diag->errors.data[0], "--dim"));
    arena_free(arena);
}

/* Squares of squares: as a tree, the result has 2^40 operations. */
static void test_doubling(void **state)
{
    Arena *arena = arena_new();
    Str text = {0};
    (void)state;

    str_add(&text, "graph g\n  input x: f32[4]\n  t0: f32[4] = Abs n0(x)\n");
    for (int i = 1; i <= 40; i++)
        str_addf(&text, "  t%d: f32[4] = Mul n%d(t%d, t%d)\n", i, i, i - 1,
                 i - 1);
    str_add(&text, "  output t40\n");
    Compiled c =
        compile_text(arena, str_text(&text), "x86-64-v3", NULL, false);
    assert_in_range(c.graph->groups.count, 4, 8);
    str_free(&text);
    arena_free(arena);
}

/* Time grows with the graph, not with its square: four times the nodes may
 * take no more than eight times as long. */
static double time_of_chain(int nodes)
{
    Arena *arena = arena_new();
    Str text = {0};
    clock_t start;

    str_add(&text, "graph g\n  input x: f32[4]\n  t0: f32[4] = Exp n0(x)\n");
    for (int i = 1; i < nodes; i++)
        str_addf(&text, "  t%d: f32[4] = %s n%d(t%d, %s)\n", i,
                 i % 3 ? "Add" : "Mul", i, i - 1, i % 2 ? "x" : "t0");
    str_addf(&text, "  output t%d\n", nodes - 1);
    Graph *g = graph_from_text(arena, str_text(&text));
    PassContext c = {.graph = g,
                     .target = target_find(arena, g->diag, "x86-64-v3"),
                     .evaluate = evaluate_node};
    start = clock();
    assert_true(passes_run(&c, &(PassOptions){.opt_level = 2}, NULL, NULL));
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    str_free(&text);
    arena_free(arena);
    return seconds;
}

static void test_linear_time(void **state)
{
    (void)state;
    double small = time_of_chain(4000), large = time_of_chain(16000);
    if (large > 8 * small + 0.2)
        fail_msg("4000 nodes take %.3f s, 16000 %.3f s", small, large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infer),
        cmocka_unit_test(test_infer_faults),
        cmocka_unit_test(test_infer_floats),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_decompose),
        cmocka_unit_test(test_simplify),
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_strips),
        cmocka_unit_test(test_reciprocal),
        cmocka_unit_test(test_batchnorm),
        cmocka_unit_test(test_cse),
        cmocka_unit_test(test_dce),
        cmocka_unit_test(test_impure),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_fuse),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_unbounded),
        cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
