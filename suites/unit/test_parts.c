/* Tensors that lie in others: slices read from where their operand is, and
 * operands of concatenations are written into the result. What the layout
 * pass decides, that kernels and memory plan follow it, and that nothing else
 * changes, on written and on random graphs. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ops/op.h"
#include "suites/unit/compiled.h"

/* By the name that it had in the source. */
static const Tensor *find(const Graph *g, const char *name)
{
    for (int i = 0; i < g->tensors.count; i++) {
        const Tensor *t = g->tensors.data[i];
        for (int k = 0; k < t->sources.count; k++)
            if (strcmp(t->sources.data[k], name) == 0)
                return t;
    }
    fail_msg("there is no tensor %s", name);
    return NULL;
}

/* "LAYOUT in NAME" of a tensor, or just its layout. */
static void expect_layout(const Compiled *c, const char *name,
                          const char *wanted)
{
    const Tensor *t = find(c->graph, name);
    Str text = {0};

    layout_print(&text, &t->layout);
    if (t->within)
        str_addf(&text, " in %s", t->within->name);
    if (strcmp(str_text(&text), wanted) != 0)
        fail_msg("%s has layout %s and not %s", name, str_text(&text), wanted);
    str_free(&text);
}

/* Compiles, runs by the interpreter, and compares with the reference. */
static Compiled check(Arena *arena, const char *text)
{
    Compiled c = compile_text(arena, text, "x86-64-v3", NULL, false);
    Array **got = run_interpreted(&c);
    Array **want = run_reference(arena, c.source, NULL);

    for (int i = 0; i < c.program->output_count; i++)
        check_close(c.source->outputs.data[i]->name, got[i], want[i], 2e-5);
    return c;
}

static const char halves[] =
    "graph g\n"
    "  input x: f32[2,4,6,6]\n"
    "  const k: f32[8,1,1,1] = {1, -2, 3, -4, 0.5, 0.25, -1, 2}\n"
    "  const m: f32[4,1,3,1] = {1, 2, -1, 0.5, 1, 0, 2, 1, -1, 0, 1, 3}\n"
    "  const n: f32[1,12,1,1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
    "  const ed: i64[4] = {8, 4, 1, 1}\n"
    "  const md: i64[4] = {4, 4, 3, 3}\n"
    "  const nd: i64[4] = {3, 12, 1, 1}\n"
    "  u: f32[8,4,1,1] = Expand eu(k, ed)\n"
    "  v: f32[4,4,3,3] = Expand ev(m, md)\n"
    "  w: f32[3,12,1,1] = Expand ew(n, nd)\n"
    "  a: f32[2,8,6,6] = Conv in(x, u)\n"
    "  p: f32[2,4,6,6], q: f32[2,4,6,6] = Split split(a) {axis=1}\n"
    "  r: f32[2,4,6,6] = Conv inner(q, v) {pads=[1, 1, 1, 1]}\n"
    "  t: f32[2,4,6,6] = Relu relu(r)\n"
    "  s: f32[2,4,6,6] = Add add(t, q)\n"
    "  c: f32[2,12,6,6] = Concat concat(p, q, s) {axis=1}\n"
    "  y: f32[2,3,6,6] = Conv out(c, w)\n"
    "  output y\n";

static void test_halves_come_back(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Compiled c = check(arena, halves);
    /* The border is that of the inner convolution, for all. */
    expect_layout(&c, "c", "[0 2+1+1 3+1+1 1]");
    expect_layout(&c, "a", "[0 2+1+1 3+1+1 1~0~4] in c");
    expect_layout(&c, "p", "[0 2+1+1 3+1+1 1~0~8] in a");
    expect_layout(&c, "q", "[0 2+1+1 3+1+1 1~4~4] in a");
    expect_layout(&c, "s", "[0 2+1+1 3+1+1 1~8~0] in c");
    /* Input in our layout, and three convolutions. */
    assert_int_equal(c.program->steps.count, 4);
    /* One storage holds a, its halves, s and c. */
    assert_int_equal(c.program->arena_bytes, 2 * 8 * 8 * 12 * 4 + 2 * 144 * 4);
    arena_free(arena);
}

/* Concatenations in concatenations, along other axes, of reshaped results,
 * and into an output. */
static void test_nested(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Compiled c = check(
        arena, "graph g\n"
               "  input x: f32[2,2,4,4]\n"
               "  const u: f32[2,2,1,1] = {1, 2, 3, 4}\n"
               "  const v: f32[3,2,1,1] = {1, 2, 3, 4, -5, 6}\n"
               "  const s: i64[3] = {0, 0, -1}\n"
               "  const n: i64[2] = {2, 3}\n"
               "  a: f32[2,2,4,4] = Conv a(x, u)\n"
               "  b: f32[2,3,4,4] = Conv b(x, v)\n"
               "  c: f32[2,5,4,4] = Concat c(a, b) {axis=1}\n"
               "  d: f32[2,2,2,2] = Conv d(x, u) {strides=[2, 2]}\n"
               "  e: f32[2,3,2,2] = Conv e(x, v) {strides=[2, 2]}\n"
               "  f: f32[2,5,2,2] = Concat f(d, e) {axis=1}\n"
               "  cr: f32[2,5,16] = Reshape cr(c, s)\n"
               "  fr: f32[2,5,4] = Reshape fr(f, s)\n"
               "  g: f32[2,5,20] = Concat g(cr, fr) {axis=2}\n"
               "  h: f32[2,2,20], i: f32[2,3,20] = Split i(g, n) {axis=1}\n"
               "  j: f32[2,2,20] = Exp j(h)\n"
               "  k: f32[2,3,20] = Sigmoid k(i)\n"
               "  y: f32[2,5,20] = Concat y(j, k) {axis=1}\n"
               "  output y\n");
    expect_layout(&c, "g", "[0 2 1]");
    expect_layout(&c, "cr", "[0 2~0~20 1] in c");
    expect_layout(&c, "c", "[0 2~0~20 3 1] in g");
    expect_layout(&c, "b", "[0 2~0~20 3 1~2~0] in c");
    expect_layout(&c, "f", "[0 2~80~0 3 1] in g");
    expect_layout(&c, "d", "[0 2~80~0 3 1~0~3] in f");
    expect_layout(&c, "k", "[0 1~40~0 2] in y");
    /* Input, four convolutions, two functions. */
    assert_int_equal(c.program->steps.count, 7);
    arena_free(arena);
}

static int kernels_of(const char *text)
{
    Arena *arena = arena_new();
    Compiled c = check(arena, text);
    int count = c.program->steps.count;
    arena_free(arena);
    return count;
}

/* What cannot be placed leaves the concatenation a kernel. */
static void test_copies(void **state)
{
    (void)state;
    /* A constant, an input, an output, one tensor twice. */
    assert_int_equal(kernels_of("graph g\n"
                                "  input x: f32[2,3]\n"
                                "  const k: f32[2,2] = {1, 2, 3, 4}\n"
                                "  a: f32[2,3] = Softmax a(x)\n"
                                "  y: f32[2,5] = Concat y(a, k) {axis=1}\n"
                                "  output y\n"),
                     2);
    assert_int_equal(kernels_of("graph g\n"
                                "  input x: f32[2,3]\n"
                                "  a: f32[2,3] = Softmax a(x)\n"
                                "  y: f32[2,6] = Concat y(a, x) {axis=1}\n"
                                "  output y\n"),
                     2);
    assert_int_equal(kernels_of("graph g\n"
                                "  input x: f32[2,3]\n"
                                "  a: f32[2,3] = Softmax a(x)\n"
                                "  b: f32[2,3] = LogSoftmax b(x)\n"
                                "  y: f32[2,6] = Concat y(a, b) {axis=1}\n"
                                "  output y\n"
                                "  output a\n"),
                     3);
    assert_int_equal(kernels_of("graph g\n"
                                "  input x: f32[2,3]\n"
                                "  a: f32[2,3] = Softmax a(x)\n"
                                "  y: f32[2,6] = Concat y(a, a) {axis=1}\n"
                                "  output y\n"),
                     2);
    /* In the first of two, but not in the second. */
    assert_int_equal(kernels_of("graph g\n"
                                "  input x: f32[2,3]\n"
                                "  a: f32[2,3] = Softmax a(x)\n"
                                "  b: f32[2,3] = LogSoftmax b(x)\n"
                                "  y: f32[2,6] = Concat y(a, b) {axis=1}\n"
                                "  z: f32[2,6] = Concat z(b, a) {axis=1}\n"
                                "  output y\n"
                                "  output z\n"),
                     3);
    /* A part alone is none of the operands that are computed. */
    assert_int_equal(
        kernels_of("graph g\n"
                   "  input x: f32[2,4]\n"
                   "  a: f32[2,4] = Softmax a(x)\n"
                   "  p: f32[2,2], q: f32[2,2] = Split s(a) {axis=1}\n"
                   "  b: f32[2,2] = LogSoftmax b(p)\n"
                   "  y: f32[2,4] = Concat y(q, b) {axis=1}\n"
                   "  output y\n"),
        3);
}

/* Both parts of an input are read where it lies, and so is a part of a part.
 */
static void test_slices(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Compiled c =
        check(arena, "graph g\n"
                     "  input x: f32[3,5,6]\n"
                     "  const from: i64[2] = {1, 2}\n"
                     "  const to: i64[2] = {4, 6}\n"
                     "  const along: i64[2] = {1, 2}\n"
                     "  const three: i64[2] = {1, 3}\n"
                     "  a: f32[3,3,4] = Slice a(x, from, to, along)\n"
                     "  b: f32[3,3,1], d: f32[3,3,3] = Split b(a, three) "
                     "{axis=2}\n"
                     "  y: f32[3,3,1] = Exp y(b)\n"
                     "  z: f32[3,3,3] = Tanh z(d)\n"
                     "  output y\n"
                     "  output z\n");
    expect_layout(&c, "a", "[0 1~6~6 2~2~0] in x");
    expect_layout(&c, "b", "[0 1~6~6 2~2~3] in a");
    expect_layout(&c, "d", "[0 1~6~6 2~3~0] in a");
    assert_int_equal(c.program->steps.count, 2);
    assert_int_equal(c.program->arena_bytes, 0);
    arena_free(arena);
}

/* Elementwise all around: one kernel, and nothing in between. */
static void test_left_to_fusion(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Compiled c = check(arena, "graph g\n"
                              "  input x: f32[2,3]\n"
                              "  const k: f32[6] = {1, 2, 3, 4, 5, 6}\n"
                              "  a: f32[2,3] = Exp a(x)\n"
                              "  b: f32[2,3] = Tanh b(x)\n"
                              "  c: f32[2,6] = Concat c(a, b) {axis=1}\n"
                              "  y: f32[2,6] = Mul y(c, k)\n"
                              "  output y\n");
    expect_layout(&c, "a", "[0 1]");
    arena_free(arena);
}

/* A result takes the place of an operand only where both are whole storages
 * or the same part of one, and never while other parts live. */
static void test_in_place(void **state)
{
    (void)state;
    assert_int_equal(
        kernels_of("graph g\n"
                   "  input x: f32[2,8]\n"
                   "  a: f32[2,8] = Exp a(x)\n"
                   "  p: f32[2,4], q: f32[2,4] = Split s(a) {axis=1}\n"
                   "  b: f32[2,4] = Softmax b(p)\n"
                   "  d: f32[2,4] = Softmax d(q)\n"
                   "  e: f32[2,8] = Concat e(d, b) {axis=1}\n"
                   "  f: f32[2,4], h: f32[2,4] = Split f(e) {axis=1}\n"
                   "  i: f32[2,4] = Softmax i(h)\n"
                   "  j: f32[2,4] = Softmax j(f)\n"
                   "  y: f32[2,4] = Add y(i, j)\n"
                   "  output y\n"),
        5);
}

/* With taps, a tensor is looked at when it has its value: a joined one after
 * the last of its parts. */
static void test_ready(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Compiled c = check(arena, halves);
    const Program *p = c.program;
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (b->tensor == find(c.graph, "a") ||
            b->tensor == find(c.graph, "p") || b->tensor == find(c.graph, "q"))
            assert_int_equal(b->ready_step, 1);
        if (b->tensor == find(c.graph, "s") || b->tensor == find(c.graph, "c"))
            assert_int_equal(b->ready_step, 2);
    }
    c.program->taps = true;
    program_plan_memory(c.program);
    program_verify(c.program);
    arena_free(arena);
}

/* True when the verifier ends the process. */
static bool is_refused(const Program *p)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        signal(SIGABRT, SIG_DFL);
        program_verify(p);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

/* The verifier sees parts that overlap and values that are read too early. */
static void test_verifier(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Compiled c = check(arena, halves);
    ProgramBuffer *s = NULL, *whole = NULL;
    for (int i = 0; i < c.program->buffers.count; i++) {
        ProgramBuffer *b = &c.program->buffers.data[i];
        if (!strcmp(b->name, "s"))
            s = b;
        if (!strcmp(b->name, "c"))
            whole = b;
    }
    assert_true(s && whole && s->alias_of == whole - c.program->buffers.data);
    assert_false(is_refused(c.program));
    s->layout.before[1] -= 4;
    s->layout.after[1] += 4;
    assert_true(is_refused(c.program));
    s->layout.before[1] += 4;
    s->layout.after[1] -= 4;
    whole->ready_step--;
    assert_true(is_refused(c.program));
    whole->ready_step++;
    assert_false(is_refused(c.program));
    arena_free(arena);
}

/* ---- random graphs -------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

typedef struct Maker {
    Arena *arena;
    Graph *g;
    uint32_t seed;
    Vec(Tensor *) tensors;
} Maker;

static int pick(Maker *m, int count)
{
    return (int)(next_random(&m->seed) % (uint32_t)count);
}

/* One of the latest tensors. */
static Tensor *recent(Maker *m)
{
    int count = m->tensors.count, back = count < 6 ? count : 6;
    return m->tensors.data[count - 1 - pick(m, back)];
}

static int64_t channels(const Tensor *t)
{
    return t->type.dims[1].value;
}

static Tensor *convolve(Maker *m, Tensor *x)
{
    int64_t kernel = pick(m, 2) ? 3 : 1;
    int64_t dims[] = {1 + pick(m, 6), channels(x), kernel, kernel};
    int64_t pads[] = {kernel / 2, kernel / 2, kernel / 2, kernel / 2};
    Array *w = array_new(m->arena, DT_F32, 4, dims);
    Attrs attrs = {0};
    for (int64_t i = 0; i < array_count(w); i++)
        array_set(w, i, (pick(m, 200) - 100) / 100.0 / (double)channels(x));
    attrs_set_ints(m->arena, &attrs, "pads", pads, 4);
    return graph_apply(m->g, "Conv", NULL, attrs, x,
                       graph_add_constant(m->g, NULL, w), NULL);
}

static Tensor *concatenate(Maker *m)
{
    Tensor *parts[4];
    int count = 2 + pick(m, 3);
    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        parts[i] = recent(m);
        sum += channels(parts[i]);
    }
    if (sum > 24)
        return NULL;
    Node *node = graph_add_node(m->g, "Concat", NULL, parts, count, 1);
    attrs_set_int(m->arena, &node->attrs, "axis", 1);
    op_infer(m->g, node);
    return node->outputs.data[0];
}

/* Two parts, at times put together again with something in between. */
static Tensor *cut(Maker *m, Tensor *x)
{
    int64_t c = channels(x);
    if (c < 2)
        return NULL;
    int64_t sizes[] = {1 + pick(m, (int)c - 1), 0};
    sizes[1] = c - sizes[0];
    Tensor *inputs[] = {
        x, graph_add_constant(m->g, NULL, array_ints(m->arena, sizes, 2))};
    Node *node = graph_add_node(m->g, "Split", NULL, inputs, 2, 2);
    attrs_set_int(m->arena, &node->attrs, "axis", 1);
    op_infer(m->g, node);
    Tensor *a = node->outputs.data[0], *b = node->outputs.data[1];
    vec_push(m->arena, &m->tensors, a);
    if (pick(m, 2))
        return b;
    Tensor *made = convolve(m, b), *parts[] = {a, b, made};
    Node *join = graph_add_node(m->g, "Concat", NULL, parts, 3, 1);
    attrs_set_int(m->arena, &join->attrs, "axis", 1);
    op_infer(m->g, join);
    return join->outputs.data[0];
}

static Tensor *pool(Maker *m, Tensor *x)
{
    int64_t kernel[] = {3, 3}, pads[] = {1, 1, 1, 1};
    Attrs attrs = {0};
    attrs_set_ints(m->arena, &attrs, "kernel_shape", kernel, 2);
    attrs_set_ints(m->arena, &attrs, "pads", pads, 4);
    return graph_apply(m->g, "MaxPool", NULL, attrs, x, NULL);
}

static Tensor *random_node(Maker *m)
{
    Tensor *x = recent(m), *other = recent(m);
    switch (pick(m, 8)) {
    case 0:
        return graph_apply(m->g, "Relu", NULL, (Attrs){0}, x, NULL);
    case 1:
        return pool(m, x);
    case 2:
        return channels(x) == channels(other)
                   ? graph_apply(m->g, "Add", NULL, (Attrs){0}, x, other, NULL)
                   : NULL;
    case 3:
    case 4:
        return concatenate(m);
    case 5:
        return cut(m, x);
    default:
        return convolve(m, x);
    }
}

static Graph *random_graph(Arena *arena, uint32_t seed)
{
    Maker m = {.arena = arena, .seed = seed};
    TensorType type = {.dtype = DT_F32, .rank = 4};
    int64_t dims[] = {1 + seed % 2, 2 + seed % 5, 4, 5};
    m.g = graph_new(arena, diag_new(arena, NULL), "random", ops_builtin());
    for (int i = 0; i < 4; i++)
        type.dims[i] = extent_const(dims[i]);
    vec_push(arena, &m.tensors, graph_add_input(m.g, "x", type));
    for (int i = 0; i < 14; i++) {
        Tensor *made = random_node(&m);
        if (made)
            vec_push(arena, &m.tensors, made);
    }
    for (int i = 0; i < m.tensors.count; i++) {
        Tensor *t = m.tensors.data[i];
        bool keep = t->users.count == 0 || pick(&m, 12) == 0;
        if (t->producer && keep && !t->is_output)
            graph_mark_output(m.g, t);
    }
    return m.g;
}

/* Groups are apart for a reason, and only groups are. */
static void check_reasons(const Graph *g)
{
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *node = g->nodes.data[i];
        for (int k = 0; k < node->inputs.count; k++) {
            const Node *from = node->inputs.data[k]->producer;
            if (from && from->group != node->group)
                assert_int_not_equal(node->apart[k], APART_NONE);
        }
    }
}

/* Every graph runs at every level, naive and scheduled, fused and not. */
static void test_random_graphs(void **state)
{
    static const char *const unfused[] = {"fuse", NULL};
    (void)state;
    int joined = 0;
    for (uint32_t seed = 1; seed <= 150; seed++) {
        Arena *arena = arena_new();
        Graph *source = random_graph(arena, seed);
        Array **want = run_reference(arena, source, NULL);
        for (int way = 0; way < 4; way++) {
            PassOptions options = {.opt_level = way == 1 ? 1 : 2,
                                   .verify = true,
                                   .disabled = way == 2 ? unfused : NULL};
            Compiled c =
                compile_graph(arena, source, "x86-64-v4", &options, way == 3);
            Array **got = run_interpreted(&c);
            for (int i = 0; i < c.program->output_count; i++) {
                char what[64];
                snprintf(what, sizeof what, "seed %u, way %d, output %d", seed,
                         way, i);
                check_close(what, got[i], want[i], 2e-5);
            }
            if (way != 2)
                check_reasons(c.graph);
            for (int i = 0; i < c.graph->tensors.count; i++)
                joined += c.graph->tensors.data[i]->within != NULL;
        }
        arena_free(arena);
    }
    /* They are about parts. */
    assert_true(joined > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_come_back),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_left_to_fusion),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_verifier),
        cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
