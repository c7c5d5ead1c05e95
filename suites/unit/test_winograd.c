/* Convolutions by Winograd's tiles: which are rewritten, results against the
 * reference on every backend, the error against sums of magnitudes, and
 * traces that replay. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "evaluate.h"
#include "ops/op.h"
#include "passes/algorithm.h"
#include "schedules/choose.h"
#include "schedules/schedule.h"
#include "suites/unit/compiled.h"

typedef enum Tail { TAIL_NONE, TAIL_RELU, TAIL_SILU, TAIL_SUM } Tail;

typedef struct Case {
    const char *name;
    int64_t n, c, o, h, w, pads[4];
    Tail tail;
    bool no_bias, is_bare; /* is_bare: between input and output */
} Case;

static const Case cases[] = {
    {"one pixel", 1, 1, 1, 1, 1, {1, 1, 1, 1}, TAIL_NONE, false, true},
    {"no padding", 1, 16, 16, 6, 6, {0, 0, 0, 0}, TAIL_NONE, true, false},
    {"7x7", 1, 24, 40, 7, 7, {1, 1, 1, 1}, TAIL_RELU, false, false},
    {"13x13", 1, 33, 17, 13, 13, {1, 1, 1, 1}, TAIL_SUM, false, false},
    {"15x9, batch 3", 3, 5, 18, 15, 9, {1, 1, 1, 1}, TAIL_SILU, false, false},
    {"28x31", 1, 32, 48, 28, 31, {1, 1, 1, 1}, TAIL_RELU, true, false},
    {"14x14, batch 2", 2, 64, 32, 14, 14, {1, 1, 1, 1}, TAIL_SUM, false, true},
    {"wide padding", 2, 7, 64, 8, 8, {2, 2, 2, 2}, TAIL_NONE, false, false},
    {"uneven padding", 1, 20, 12, 10, 11, {0, 2, 1, 0}, TAIL_SUM, false, true},
    {"a row", 1, 16, 32, 1, 40, {1, 1, 1, 1}, TAIL_SILU, false, false},
    {"blocks", 2, 48, 96, 40, 36, {1, 1, 1, 1}, TAIL_SUM, false, false},
    /* A row of tiles fills a cache. */
    {"wide", 1, 64, 32, 12, 100, {1, 1, 1, 1}, TAIL_SUM, false, false},
    {"long row", 1, 8, 16, 3, 4000, {1, 1, 1, 1}, TAIL_NONE, false, false},
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

static double uniform(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / 8388608.0 - 1;
}

static Tensor *random_constant(Graph *g, const char *name, int rank,
                               const int64_t *dims, double scale)
{
    uint32_t seed = 77;
    Array *a = array_new(g->arena, DT_F32, rank, dims);
    for (int64_t i = 0; i < array_count(a); i++)
        array_set(a, i, uniform(&seed) * scale);
    return graph_add_constant(g, name, a);
}

static Tensor *image(Graph *g, const char *name, int64_t n, int64_t c,
                     int64_t h, int64_t w)
{
    TensorType type = {.dtype = DT_F32, .rank = 4};
    const int64_t dims[] = {n, c, h, w};
    for (int i = 0; i < 4; i++)
        type.dims[i] = extent_const(dims[i]);
    return graph_add_input(g, name, type);
}

/* A copy in front lets the convolution's input have a layout and a border,
 * one behind does so for its result. */
static Graph *make_graph(Arena *a, const Case *t)
{
    Graph *g = graph_new(a, diag_new(a, "test"), "conv", ops_builtin());
    const int64_t wd[] = {t->o, t->c, 3, 3};
    Attrs pads = {0};
    attrs_set_ints(a, &pads, "pads", t->pads, 4);
    Tensor *x = image(g, "x", t->n, t->c, t->h, t->w);
    if (!t->is_bare)
        x = graph_apply(g, "HardSigmoid", "front", (Attrs){0}, x, NULL);
    Tensor *w = random_constant(g, "w", 4, wd, 1 / sqrt(9.0 * (double)t->c));
    Tensor *bias = t->no_bias ? NULL : random_constant(g, "b", 1, &t->o, 0.3);
    Tensor *y = graph_apply(g, "Conv", "conv", pads, x, w, bias, NULL);
    if (t->tail == TAIL_RELU)
        y = graph_apply(g, "Relu", "act", (Attrs){0}, y, NULL);
    if (t->tail == TAIL_SILU) {
        Tensor *s = graph_apply(g, "Sigmoid", "sigmoid", (Attrs){0}, y, NULL);
        y = graph_apply(g, "Mul", "act", (Attrs){0}, y, s, NULL);
    }
    if (t->tail == TAIL_SUM) {
        Tensor *r = image(g, "r", t->n, t->o, y->type.dims[2].value,
                          y->type.dims[3].value);
        r = graph_apply(g, "Neg", "residual", (Attrs){0}, r, NULL);
        y = graph_apply(g, "Add", "sum", (Attrs){0}, y, r, NULL);
    }
    if (!t->is_bare) {
        const int64_t kernel[] = {1, 2};
        Attrs pool = {0};
        attrs_set_ints(a, &pool, "kernel_shape", kernel, 2);
        y = graph_apply(g, "MaxPool", "back", pool, y, NULL);
    }
    assert_non_null(y);
    graph_mark_output(g, y);
    return g;
}

static int count_nodes(const Graph *g, const char *op)
{
    int count = 0;
    for (int i = 0; i < g->nodes.count; i++)
        count += !strcmp(g->nodes.data[i]->op->name, op);
    return count;
}

static const char *const ways[] = {"winograd2", "winograd4"};

/* ---- results ----------------------------------------------------------- */

typedef enum Backend { IN_LLVM, IN_C, INTERPRETED } Backend;

static void check_case(const Case *t, const char *way, const char *target,
                       bool naive, Backend backend)
{
    Arena *a = arena_new();
    PassOptions options = {.opt_level = 2, .verify = true, .algorithm = way};
    Compiled c = compile_graph(a, make_graph(a, t), target, &options, naive);
    assert_int_equal(count_nodes(c.graph, "Conv"), 0);
    assert_int_equal(count_nodes(c.graph, "WinogradConv"), 1);
    Array **want = run_reference(a, c.source, NULL), **got;
    char dir[] = "/tmp/assay-winograd-XXXXXX";
    void *library = NULL;
    if (backend == INTERPRETED) {
        got = run_interpreted(&c);
    } else {
        assert_non_null(mkdtemp(dir));
        library = load_compiled(&c, dir, backend == IN_C);
        got = run_loaded(&c, library);
    }
    char what[160];
    snprintf(what, sizeof what, "%s by %s for %s%s, backend %d", t->name, way,
             target, naive ? ", naive" : "", (int)backend);
    check_close(what, got[0], want[0], 2e-5);
    if (library) {
        dlclose(library);
        char command[64];
        snprintf(command, sizeof command, "rm -r %s", dir);
        assert_int_equal(system(command), 0);
    }
    arena_free(a);
}

static bool is_runnable(const char *target)
{
    Arena *a = arena_new();
    const Target *t = target_find(a, diag_new(a, NULL), target);
    bool is = t && target_is_runnable(t, NULL);
    arena_free(a);
    return is;
}

static void test_native(void **state)
{
    (void)state;
    for (int i = 0; i < CASE_COUNT; i++)
        for (int k = 0; k < 2; k++)
            check_case(&cases[i], ways[k], "native", false, IN_LLVM);
}

static void test_older_targets(void **state)
{
    static const char *const targets[] = {"x86-64-v2", "x86-64-v3"};
    (void)state;
    for (int t = 0; t < 2; t++)
        for (int i = 2; i < CASE_COUNT && is_runnable(targets[t]); i += 2)
            check_case(&cases[i], ways[i / 2 % 2], targets[t], false, IN_LLVM);
}

static void test_in_c(void **state)
{
    (void)state;
    for (int i = 0; i < CASE_COUNT; i += 3)
        check_case(&cases[i], ways[i % 2], "c", false, IN_C);
}

/* The definition itself, and every access of the schedule checked. */
static void test_interpreted(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        for (int naive = 0; naive < 2; naive++) {
            check_case(&cases[i], ways[i % 2], "native", naive, INTERPRETED);
            check_case(&cases[i], ways[1 - i % 2], "x86-64-v3", naive,
                       INTERPRETED);
        }
}

/* ---- accuracy ---------------------------------------------------------- */

/* Inputs that are hard on differences. */
static double hard_value(int kind, int64_t channel, int64_t pixel,
                         uint32_t *seed)
{
    double x = uniform(seed);
    switch (kind) {
    case 0:
        return x;
    case 1: /* far from zero */
        return 1000 + x;
    case 2: /* alternating */
        return (pixel % 2 ? -1 : 1) * (2 + x);
    case 3: /* channels of six orders of magnitude */
        return x * pow(10, (double)(channel % 7) - 3);
    default: /* few elements that matter */
        return pixel % 11 == 0 ? 1e4 * x : 0.5 * x;
    }
}

/* The largest error in units of the largest sum of |weight| |input| among the
 * pixels near, which share tiles. */
static double worst_error(const Array *got, const Array *want,
                          const Array *sums)
{
    const int reach = 5;
    int64_t h = want->dims[2], w = want->dims[3];
    double worst = 0;
    for (int64_t i = 0; i < array_count(want); i++) {
        int64_t x = i % w, y = i / w % h, plane = i / (w * h) * (w * h);
        double sum = 0;
        for (int64_t v = y - reach; v <= y + reach; v++)
            for (int64_t u = x - reach; u <= x + reach; u++)
                if (v >= 0 && v < h && u >= 0 && u < w)
                    sum = fmax(sum, array_get(sums, plane + v * w + u));
        double error = fabs(array_get(got, i) - array_get(want, i));
        worst = fmax(worst, error / sum);
    }
    return worst;
}

static void test_accuracy(void **state)
{
    const Case t = {"hard",       1,         96,   32,  18, 22,
                    {1, 1, 1, 1}, TAIL_NONE, true, true};
    (void)state;
    for (int way = 0; way < 2; way++) {
        Arena *a = arena_new();
        PassOptions options = {.opt_level = 2, .algorithm = ways[way]};
        Compiled c =
            compile_graph(a, make_graph(a, &t), "native", &options, false);
        char dir[] = "/tmp/assay-winograd-XXXXXX";
        assert_non_null(mkdtemp(dir));
        void *library = load_compiled(&c, dir, false);
        Graph *magnitudes = make_graph(a, &t);
        for (int i = 0; i < magnitudes->tensors.count; i++) {
            const Array *w = magnitudes->tensors.data[i]->value;
            for (int64_t k = 0; w && k < array_count(w); k++)
                array_set((Array *)w, k, fabs(array_get(w, k)));
        }
        for (int kind = 0; kind < 5; kind++) {
            uint32_t seed = 5;
            Array **x = input_arrays(a, c.source, NULL, 0);
            Array **size = input_arrays(a, c.source, NULL, 0);
            for (int64_t i = 0; i < array_count(x[0]); i++) {
                int64_t plane = t.h * t.w;
                double v = hard_value(kind, i / plane, i % plane, &seed);
                array_set(x[0], i, v);
                array_set(size[0], i, fabs(v));
            }
            c.inputs = x;
            Array **got = run_loaded(&c, library);
            Array **want = run_reference(a, c.source, x);
            Array **sums = run_reference(a, magnitudes, size);
            double worst = worst_error(got[0], want[0], sums[0]);
            if (!(worst < 1e-5))
                fail_msg("%s, inputs of kind %d: error %g of sum|w||x|",
                         ways[way], kind, worst);
        }
        dlclose(library);
        char command[64];
        snprintf(command, sizeof command, "rm -r %s", dir);
        assert_int_equal(system(command), 0);
        arena_free(a);
    }
}

/* ---- the pass ---------------------------------------------------------- */

static Graph *after(Arena *a, Graph *source, const PassOptions *options)
{
    Graph *g = graph_copy(a, source);
    PassContext c = {.graph = g,
                     .target = target_find(a, g->diag, "x86-64-v4"),
                     .evaluate = evaluate_node};
    if (!passes_run(&c, options, NULL, NULL))
        fail_msg("%s", g->diag->errors.data[0]);
    return g;
}

typedef struct Kind {
    int64_t weight[4], strides[2], dilations[2], group;
    const char *auto_pad;
    bool is_computed, is_whole, applies;
    float weight_at_0; /* 0: as the others */
} Kind;

static Graph *one_conv(Arena *a, const Kind *k)
{
    Graph *g = graph_new(a, diag_new(a, "test"), "one", ops_builtin());
    Attrs attrs = {0};
    attrs_set_ints(a, &attrs, "strides", k->strides, 2);
    attrs_set_ints(a, &attrs, "dilations", k->dilations, 2);
    attrs_set_int(a, &attrs, "group", k->group);
    if (k->auto_pad)
        attrs_set_string(a, &attrs, "auto_pad", k->auto_pad);
    Tensor *x = image(g, "x", 1, 2, 9, 9);
    Tensor *w = k->is_computed ? image(g, "w", k->weight[0], k->weight[1],
                                       k->weight[2], k->weight[3])
                               : random_constant(g, "w", 4, k->weight, 1);
    for (int i = 0; i < 18 && k->is_whole; i++)
        array_set((Array *)w->value, i, i - 7);
    if (k->weight_at_0 != 0)
        array_set((Array *)w->value, 0, (double)k->weight_at_0);
    graph_mark_output(g, graph_apply(g, "Conv", "conv", attrs, x, w, NULL));
    return g;
}

static void test_which(void **state)
{
    static const Kind kinds[] = {
        {{1, 2, 3, 3}, {1, 1}, {1, 1}, 1, NULL, false, false, true, 0},
        {{1, 2, 3, 3}, {1, 1}, {1, 1}, 1, "SAME_UPPER", false, false, true, 0},
        {{1, 2, 3, 3}, {2, 1}, {1, 1}, 1, NULL, false, false, false, 0},
        {{1, 2, 3, 3}, {1, 1}, {1, 2}, 1, NULL, false, false, false, 0},
        {{2, 1, 3, 3}, {1, 1}, {1, 1}, 2, NULL, false, false, false, 0},
        {{3, 2, 1, 3}, {1, 1}, {1, 1}, 1, NULL, false, false, false, 0},
        {{1, 2, 3, 3}, {1, 1}, {1, 1}, 1, NULL, true, false, false, 0},
        {{1, 2, 3, 3}, {1, 1}, {1, 1}, 1, NULL, false, true, false, 0},
        {{0, 2, 3, 3}, {1, 1}, {1, 1}, 1, NULL, false, false, false, 0},
        {{1, 2, 3, 3}, {1, 1}, {1, 1}, 1, NULL, false, false, false, INFINITY},
        {{1, 2, 3, 3}, {1, 1}, {1, 1}, 1, NULL, false, false, false, NAN},
        {{1, 2, 3, 3}, {1, 1}, {1, 1}, 1, NULL, false, false, false, 3e38f},
        {{1, 2, 3, 3}, {1, 1}, {1, 1}, 1, NULL, false, false, true, 1e20f},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        Arena *a = arena_new();
        Graph *source = one_conv(a, &kinds[i]);
        PassOptions options = {
            .opt_level = 2, .verify = true, .algorithm = "winograd4"};
        Graph *g = after(a, source, &options);
        assert_int_equal(count_nodes(g, "WinogradConv"), kinds[i].applies);
        assert_int_equal(count_nodes(g, "Conv"), !kinds[i].applies);
        assert_int_equal(count_nodes(g, "WinogradWeights"), 0);
        options.algorithm = "direct";
        assert_int_equal(count_nodes(after(a, source, &options), "Conv"), 1);
        options.algorithm = "winograd4";
        options.opt_level = 1;
        assert_int_equal(count_nodes(after(a, source, &options), "Conv"), 1);
        const char *const disabled[] = {"algorithm", NULL};
        options.opt_level = 2;
        options.disabled = disabled;
        assert_int_equal(count_nodes(after(a, source, &options), "Conv"), 1);
        arena_free(a);
    }
}

static void test_unknown_name(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Graph *g = make_graph(a, &cases[0]);
    PassContext c = {.graph = g, .evaluate = evaluate_node};
    PassOptions options = {.opt_level = 2, .algorithm = "fft"};
    assert_false(passes_run(&c, &options, NULL, NULL));
    assert_non_null(
        strstr(g->diag->errors.data[0], "auto, direct, winograd2, winograd4"));
    arena_free(a);
}

/* Two convolutions of one weight transform it once. */
static void test_shared_weights(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Graph *g = graph_new(a, diag_new(a, "test"), "shared", ops_builtin());
    const int64_t wd[] = {8, 8, 3, 3}, ones[] = {1, 1, 1, 1};
    Attrs pads = {0};
    attrs_set_ints(a, &pads, "pads", ones, 4);
    Tensor *w = random_constant(g, "w", 4, wd, 1);
    Tensor *x = image(g, "x", 1, 8, 12, 12);
    x = graph_apply(g, "Conv", "first", pads, x, w, NULL);
    graph_mark_output(g, graph_apply(g, "Conv", "second", pads, x, w, NULL));
    PassOptions options = {
        .opt_level = 2, .verify = true, .algorithm = "winograd2"};
    Graph *done = after(a, g, &options);
    int constants = 0;
    for (int i = 0; i < done->tensors.count; i++)
        constants += done->tensors.data[i]->value != NULL;
    assert_int_equal(count_nodes(done, "WinogradConv"), 2);
    assert_int_equal(constants, 1);
    arena_free(a);
}

/* Extents that a run chooses: computed as they stand. */
static void test_open_extents(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Graph *g = graph_new(a, diag_new(a, "test"), "open", ops_builtin());
    const int64_t wd[] = {8, 8, 3, 3};
    TensorType type = {.dtype = DT_F32, .rank = 4};
    type.dims[0] = extent_ranged(a, "N", 1, 4);
    type.dims[1] = extent_const(8);
    type.dims[2] = type.dims[3] = extent_const(16);
    Tensor *x = graph_add_input(g, "x", type);
    Tensor *w = random_constant(g, "w", 4, wd, 1);
    graph_mark_output(g,
                      graph_apply(g, "Conv", "conv", (Attrs){0}, x, w, NULL));
    PassOptions options = {
        .opt_level = 2, .verify = true, .algorithm = "winograd4"};
    assert_int_equal(count_nodes(after(a, g, &options), "Conv"), 1);
    arena_free(a);
}

/* By cost: large images by tiles, few channels and few pixels as they
 * stand. */
static void test_choice(void **state)
{
    static const struct {
        int64_t c, o, hw;
        const char *name;
    } rows[] = {{64, 64, 56, "winograd4"},   {128, 128, 28, "winograd4"},
                {256, 256, 14, "winograd2"}, {512, 512, 7, "direct"},
                {3, 16, 416, "direct"},      {1, 1, 28, "direct"},
                {32, 32, 80, "winograd4"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        Case t = {.n = 1,
                  .c = rows[i].c,
                  .o = rows[i].o,
                  .h = rows[i].hw,
                  .w = rows[i].hw,
                  .pads = {1, 1, 1, 1},
                  .is_bare = true};
        Graph *g = make_graph(a, &t);
        const Target *v4 = target_find(a, g->diag, "x86-64-v4");
        const Node *conv = graph_find_node(g, "conv");
        assert_string_equal(algorithm_choose(v4, conv, NULL)->name,
                            rows[i].name);
        assert_string_equal(algorithm_choose(v4, conv, "winograd2")->name,
                            "winograd2");
        arena_free(a);
    }
}

/* ---- traces ------------------------------------------------------------ */

/* What a thread has on its stack. */
static int64_t local_bytes(const Kernel *k)
{
    int64_t bytes = 0;
    for (int i = 0; i < k->temps.count; i++)
        if (k->temps.data[i]->scope == SCOPE_LOCAL)
            bytes += 4 * buffer_size(k->temps.data[i]);
    return bytes;
}

static void test_traces(void **state)
{
    static const char *const targets[] = {"x86-64-v4", "x86-64-v3", "aarch64"};
    (void)state;
    for (int i = 0; i < 3 * CASE_COUNT; i++) {
        Arena *a = arena_new();
        const Case *t = &cases[i / 3];
        PassOptions options = {.opt_level = 2, .algorithm = ways[i % 2]};
        Compiled c = compile_graph(a, make_graph(a, t), targets[i % 3],
                                   &options, false);
        int tiled = 0;
        for (int k = 0; k < c.program->kernels.count; k++) {
            const ProgramKernel *pk = &c.program->kernels.data[k];
            if (!strstr(pk->kernel->name, "winogradconv"))
                continue;
            Schedule *s = schedule_new(a, c.diag, pk->def);
            assert_true(schedule_replay(s, pk->trace));
            assert_true(schedule_lower(s, a)->hash == pk->kernel->hash);
            /* Not the naive schedule, which is right as well. */
            assert_non_null(strstr(pk->trace, "cache products"));
            /* Speed is counted as of the plain convolution. */
            int64_t pixels = (t->h + t->pads[0] + t->pads[2] - 2) *
                             (t->w + t->pads[1] + t->pads[3] - 2);
            double plain = 18.0 * (double)(t->n * t->c * t->o * pixels);
            assert_true(pk->kernel->flops >= plain &&
                        pk->kernel->flops < 1.5 * plain + 64 * (double)pixels);
            assert_true(local_bytes(pk->kernel) < c.target->l2_bytes);
            tiled++;
        }
        assert_int_equal(tiled, 1);
        arena_free(a);
    }
}

/* Every decision of the template, as a tuner would ask for it. */
static void test_knobs(void **state)
{
    (void)state;
    Arena *a = arena_new();
    const Case t = {"knobs",      1,         20,    40,  24, 20,
                    {1, 1, 1, 1}, TAIL_RELU, false, true};
    PassOptions options = {.opt_level = 2, .algorithm = "winograd4"};
    Compiled c =
        compile_graph(a, make_graph(a, &t), "native", &options, false);
    const ProgramKernel *pk = NULL;
    for (int k = 0; k < c.program->kernels.count; k++)
        if (strstr(c.program->kernels.data[k].kernel->name, "winogradconv"))
            pk = &c.program->kernels.data[k];
    assert_non_null(pk);
    KnobLog log;
    Schedule *s = schedule_new(a, c.diag, pk->def);
    assert_true(schedule_choose_logged(s, c.target, SCHEDULE_FAST, "winograd",
                                       NULL, &log));
    assert_true(log.proposals.count > 1);
    for (int i = 0; i < log.proposals.count; i++) {
        KnobLog again;
        s = schedule_new(a, c.diag, pk->def);
        assert_true(schedule_choose_logged(s, c.target, SCHEDULE_FAST,
                                           "winograd", &log.proposals.data[i],
                                           &again));
        schedule_lower(s, a);
    }
    Choice wrong = {0};
    choice_set(&wrong, "block", 5);
    s = schedule_new(a, c.diag, pk->def);
    assert_false(
        schedule_choose(s, c.target, SCHEDULE_FAST, "winograd", &wrong));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native),
        cmocka_unit_test(test_older_targets),
        cmocka_unit_test(test_in_c),
        cmocka_unit_test(test_interpreted),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_which),
        cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_shared_weights),
        cmocka_unit_test(test_open_extents),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_knobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
