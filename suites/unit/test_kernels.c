/* The kernels suite: what is taken out of a model, and what becomes of a
 * case that cannot be compiled, crashes or hangs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "assay.h"
#include "base/attrs.h"
#include "harness/kernel_bench.h"
#include "harness/kernel_list.h"
#include "harness/options.h"
#include "ops/op.h"

static const char model[] = "resnet18@32,width=0.5";

static const KernelCase *find_case(const KernelList *list, const char *start)
{
    for (int i = 0; i < list->cases.count; i++)
        if (!strncmp(list->cases.data[i].name, start, strlen(start)))
            return &list->cases.data[i];
    return NULL;
}

/* Every node of the source is in some kernel, with its producers and users
 * cut off where the kernel ends. */
static void extracts_every_node(void **state)
{
    (void)state;
    AssayCompiler *compiler = assay_new();
    CompileOptions o;
    compile_options_init(&o);
    o.assay.stop_after = "fuse";
    assert_true(open_model(compiler, model, &o));
    assert_true(assay_compile(compiler, &o.assay));
    const Graph *source = assay_source_graph(compiler);
    const Graph *fused = assay_graph(compiler);
    int nodes = 0, kernels = 0;
    for (int i = 0; i < fused->groups.count; i++) {
        Arena *arena = arena_new();
        Graph *g =
            graph_new(arena, diag_new(arena, NULL), "kernel", ops_builtin());
        if (kernel_extract(g, source, fused->groups.data[i])) {
            graph_verify(g);
            assert_true(g->inputs.count >= 1 && g->outputs.count >= 1);
            nodes += g->nodes.count;
            kernels++;
            /* The same name for the same structure, whatever the weights. */
            const char *name = kernel_name(arena, g, fused->groups.data[i]);
            Graph *again = graph_new(arena, diag_new(arena, NULL), "kernel",
                                     ops_builtin());
            kernel_extract(again, source, fused->groups.data[i]);
            assert_string_equal(
                name, kernel_name(arena, again, fused->groups.data[i]));
        }
        arena_free(arena);
    }
    assert_int_equal(nodes, source->nodes.count);
    assert_true(kernels > 15 && kernels < source->nodes.count / 2);
    assay_free(compiler);
}

static void equal_kernels_are_one_case(void **state)
{
    (void)state;
    KernelList list = {.arena = arena_new()};
    assert_true(kernel_list_add(&list, model));
    int once = list.cases.count;
    assert_true(once > 8);
    /* Other weights, the same shapes. */
    assert_true(kernel_list_add(&list, "resnet18@32,width=0.5,seed=2"));
    assert_int_equal(list.cases.count, once);
    assert_true(kernel_list_add(&list, "resnet18@64,width=0.5"));
    assert_true(list.cases.count > once);
    assert_true(kernel_list_add(&list, "awkward"));
    assert_non_null(find_case(&list, "conv_c7_o17"));
    assert_false(kernel_list_add(&list, "no_such_model"));
    for (int i = 0; i < list.cases.count; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(list.cases.data[i].name,
                                    list.cases.data[k].name);
    kernel_list_free(&list);
    arena_free(list.arena);
}

static KernelLoader loader_new(Arena *arena)
{
    return (KernelLoader){
        .arena = arena, .pool = pool_new(1), .limits = {.seconds = 60}};
}

static void checks_then_times(void **state)
{
    (void)state;
    KernelList list = {.arena = arena_new()};
    KernelLoader loader = loader_new(list.arena);
    assert_true(kernel_list_add(&list, model));
    assert_true(kernel_list_add(&list, "awkward"));
    const KernelCase *cases[] = {find_case(&list, "conv_add_relu_"),
                                 find_case(&list, "depthwise_c17")};
    KernelBench benches[2] = {{.kernel = cases[0]}, {.kernel = cases[1]}};
    for (int i = 0; i < 2; i++) {
        assert_non_null(cases[i]);
        assert_true(kernel_bench_load(&loader, &benches[i]));
        KernelBench bench = benches[i];
        assert_int_equal(bench.status, CASE_OK);
        assert_true(kernel_bench_run(&loader) > 0);
        assert_true(kernel_bench_run(&loader) > 0);
        assert_int_equal(benches[i].samples.count, 2);
        assert_true(bench.about.flops > 0 && bench.about.bytes > 0);
        double excess =
            json_number_value(json_object_get(bench.check, "max_excess"));
        assert_true(excess > 0 && excess < 0.1);
        /* Loaded already. */
        assert_true(kernel_bench_load(&loader, &benches[i]));
        json_decref(bench.check);
    }
    kernel_bench_unload(&loader);
    pool_free(loader.pool);
    kernel_list_free(&list);
    arena_free(list.arena);
}

/* The parent must survive what its child does not. */
typedef struct Fault {
    pid_t parent;
    int signal; /* that the child gets; 0: it hangs */
} Fault;

static bool build_fault(Graph *g, const KernelCase *c)
{
    const Fault *fault = c->row;
    (void)g;
    if (getpid() == fault->parent)
        return false;
    if (fault->signal)
        raise(fault->signal);
    for (;;)
        pause();
}

static bool build_nonsense(Graph *g, const KernelCase *c)
{
    (void)c;
    TensorType type = {.dtype = DT_F32, .rank = 1, .dims = {extent_const(3)}};
    Tensor *x = graph_add_input(g, "x", type);
    Tensor *y = graph_apply(g, "Conv", "bad", (Attrs){0}, x, x, NULL);
    if (y)
        graph_mark_output(g, y);
    return y != NULL;
}

static void faults_are_results(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    KernelLoader loader = loader_new(arena);
    loader.limits.seconds = 0.5;
    Fault crash = {getpid(), SIGABRT}, kill = {getpid(), SIGKILL},
          hang = {getpid(), 0};
    const KernelCase cases[] = {
        {"crash", "test", build_fault, &crash},
        {"kill", "test", build_fault, &kill},
        {"hang", "test", build_fault, &hang},
        {"nonsense", "test", build_nonsense, NULL},
    };
    static const CaseStatus wanted[] = {CASE_CRASHED, CASE_OUT_OF_MEMORY,
                                        CASE_TIMED_OUT, CASE_REFUSED};
    KernelBench benches[4] = {0};
    for (int i = 0; i < 4; i++) {
        KernelBench *bench = &benches[i];
        bench->kernel = &cases[i];
        assert_false(kernel_bench_load(&loader, bench));
        assert_int_equal(bench->status, wanted[i]);
        assert_non_null(bench->reason);
        /* Not tried a second time. */
        assert_false(kernel_bench_load(&loader, bench));
    }
    kernel_bench_unload(&loader);
    pool_free(loader.pool);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extracts_every_node),
        cmocka_unit_test(equal_kernels_are_one_case),
        cmocka_unit_test(checks_then_times),
        cmocka_unit_test(faults_are_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
