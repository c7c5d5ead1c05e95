/* assay-bench: the kernels suite under Google Benchmark. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "harness/builds.h"
#include "harness/common.h"
#include "harness/fingerprint.h"
#include "harness/gbench.h"
#include "harness/kernel_bench.h"
#include "harness/kernel_list.h"
#include "harness/measure.h"
#include "harness/options.h"
#include "harness/results.h"
#include "harness/roofline.h"
#include "harness/timing.h"
#include "harness/values.h"

static const char usage[] =
    "Usage: assay-bench [options] [--benchmark_...]\n"
    "\n"
    "Times single kernels: every fused group of the suite's models, and odd\n"
    "shapes (\"awkward\"). Each is compiled and compared with the reference\n"
    "before it is timed; one that is wrong or crashes shows as failed. The\n"
    "command line and the JSON are Google Benchmark's.\n"
    "\n"
    "  -m, --model M           a suite model, an ONNX file, or awkward; may "
    "be\n"
    "                          repeated (all)\n"
    "  -t, --threads N         (1)\n"
    "      --store             keep the results for `assay report`\n"
    "      --results DIR       where (results/ of the project)\n"
    "      --timeout S         seconds to compile and check one (300)\n"
    "      --benchmark_filter=REGEX\n"
    "      --benchmark_list_tests\n"
    "      --benchmark_min_time=S      seconds a kernel (0.5)\n"
    "      --benchmark_out=FILE --benchmark_out_format=json\n"
    "      --benchmark_format=console|json\n"
    "      --benchmark_repetitions=N\n"
    "      ... and all other flags of Google Benchmark\n"
    "\n"
    "Examples:\n"
    "  assay-bench --model resnet50 --benchmark_filter='^conv.*x14x14'\n"
    "  assay-bench --model awkward --benchmark_min_time=0.05\n"
    "  assay-bench --store --benchmark_min_time=0.05\n"
    "\n"
    "Exit codes: 0 fine, 1 a kernel failed, 2 bad input.\n";

enum { OPT_STORE = 256, OPT_RESULTS, OPT_TIMEOUT };

static const struct option long_options[] = {
    {"model", required_argument, NULL, 'm'},
    {"threads", required_argument, NULL, 't'},
    {"store", no_argument, NULL, OPT_STORE},
    {"results", required_argument, NULL, OPT_RESULTS},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {NULL, 0, NULL, 0},
};

typedef struct Bench {
    Arena *arena;
    KernelList list;
    KernelBench *benches; /* one a case */
    KernelLoader loader;
    Vec(const char *) models; /* none: all */
    const char *results;
    long threads, timeout;
    bool store;
    json_t *machine;
} Bench;

/* What an item of Google Benchmark gets. */
typedef struct Item {
    Bench *bench;
    int index;
} Item;

/* ---- cases ------------------------------------------------------------ */

static const char *prepare(void *user)
{
    const Item *item = user;
    KernelBench *k = &item->bench->benches[item->index];
    return kernel_bench_load(&item->bench->loader, k) ? NULL : k->reason;
}

static double run(void *user)
{
    const Item *item = user;
    return kernel_bench_run(&item->bench->loader);
}

static double flops(void *user)
{
    const Item *item = user;
    return item->bench->benches[item->index].about.flops;
}

static double excess(void *user)
{
    const Item *item = user;
    return json_number_value(json_object_get(
        item->bench->benches[item->index].check, "max_excess"));
}

static bool add_models(Bench *b)
{
    b->list.arena = b->arena;
    for (int i = 0; i < b->models.count; i++)
        if (!kernel_list_add(&b->list, b->models.data[i]))
            return false;
    if (b->models.count)
        return true;
    for (int i = 0; suite_models()[i]; i++)
        if (!kernel_list_add(&b->list, suite_models()[i]->name))
            return false;
    return kernel_list_add(&b->list, "awkward");
}

/* ---- results ---------------------------------------------------------- */

static Samples thinned(Arena *arena, const KernelBench *k)
{
    int count = k->samples.count, kept = count;
    if (kept > TIMING_MOST_SAMPLES)
        kept = TIMING_MOST_SAMPLES;
    double *seconds = ARENA_ARRAY(arena, double, kept + 1);
    for (int i = 0; i < kept; i++)
        seconds[i] = k->samples.data[(int64_t)i * count / kept];
    return (Samples){seconds, kept};
}

/* A case as a model called "kernels" with the case as its mode. */
static void fill_result(Bench *b, const KernelBench *k, const json_t *peak,
                        ModelResult *r)
{
    MeasurePlan plan = {.modes = {k->kernel->name}, .mode_count = 1};
    model_result_init("kernels", &plan, k->status, k->reason, r);
    r->fma_gflops = json_number_value(json_object_get(peak, "fma_gflops"));
    ModeResult *m = &r->modes[0];
    m->compile = k->compile;
    m->check = json_incref(k->check);
    if (k->status != CASE_OK)
        return;
    const double *all = k->samples.data;
    m->processes[0] = thinned(b->arena, k);
    m->reports[0] = json_object();
    m->report_count = 1;
    m->p50 = stats_percentile(all, k->samples.count, 0.5);
    m->p90 = stats_percentile(all, k->samples.count, 0.9);
    m->p99 = stats_percentile(all, k->samples.count, 0.99);
    m->flops = k->about.flops;
    m->code_bytes = (double)k->about.code_bytes;
    m->kernels =
        json_pack("[{s:s, s:o, s:o, s:I, s:f}]", "name", k->about.name,
                  "loops_hash", hash_json(k->about.loops_hash), "code_hash",
                  hash_json(k->about.code_hash), "code_bytes",
                  (json_int_t)k->about.code_bytes, "flops", k->about.flops);
    m->steps =
        json_pack("[{s:s, s:[s], s:f, s:f, s:f}]", "kernel", k->about.name,
                  "nodes", k->kernel->model, "seconds", m->p50, "flops",
                  k->about.flops, "bytes", k->about.bytes);
    roofline_complete(m->steps, peak);
}

static int store_results(Bench *b)
{
    Str error = {0};
    json_t *peak = launch_peak(b->arena, (int)b->threads, &error);
    ResultsContext context = {.suite = "kernels",
                              .threads = (int)b->threads,
                              .machine = b->machine,
                              .peak = peak};
    json_t *document = results_new(b->arena, &context);
    for (int i = 0; i < b->list.cases.count; i++) {
        const KernelBench *k = &b->benches[i];
        if (!k->samples.count && !k->reason)
            continue; /* filtered out */
        ModelResult r;
        fill_result(b, k, peak, &r);
        results_add_model(document, &r);
        model_result_free(&r);
    }
    error.length = 0;
    const char *path = results_path(b->arena, b->results, document);
    bool stored = results_store(b->arena, path, document, &error);
    int code = stored ? EXIT_FINE : bad_input("%s", str_text(&error));
    if (stored)
        fprintf(stderr, "stored %s\n", path);
    str_free(&error);
    json_decref(document);
    json_decref(peak);
    return code;
}

/* ---- command ---------------------------------------------------------- */

static int run_cases(Bench *b)
{
    int count = b->list.cases.count;
    b->benches = ARENA_ARRAY(b->arena, KernelBench, count + 1);
    Item *items = ARENA_ARRAY(b->arena, Item, count + 1);
    BenchItem *rows = ARENA_ARRAY(b->arena, BenchItem, count + 1);
    for (int i = 0; i < count; i++) {
        const KernelCase *c = &b->list.cases.data[i];
        b->benches[i].kernel = c;
        items[i] = (Item){b, i};
        rows[i] = (BenchItem){.name = c->name,
                              .label = c->model,
                              .user = &items[i],
                              .prepare = prepare,
                              .run = run,
                              .flops = flops,
                              .excess = excess};
    }
    int ran = bench_main(rows, count), code = EXIT_FINE;
    kernel_bench_unload(&b->loader);
    for (int i = 0; i < count; i++)
        if (b->benches[i].reason)
            code = EXIT_FAILED_CHECK;
    if (!ran)
        return EXIT_BAD_INPUT; /* which the library has reported */
    bool measured = false;
    for (int i = 0; i < count; i++)
        measured =
            measured || b->benches[i].samples.count || b->benches[i].reason;
    int stored = b->store && measured ? store_results(b) : EXIT_FINE;
    for (int i = 0; i < count; i++)
        json_decref(b->benches[i].check);
    return stored ? stored : code;
}

static bool take_option(Bench *b, int code)
{
    switch (code) {
    case 'm':
        vec_push(b->arena, &b->models, optarg);
        return true;
    case 't':
        return parse_count("--threads", optarg, 1, 1024, &b->threads);
    case OPT_STORE:
        return b->store = true;
    case OPT_RESULTS:
        b->results = optarg;
        return true;
    case OPT_TIMEOUT:
        return parse_count("--timeout", optarg, 1, 1000000, &b->timeout);
    default:
        fputs("Try assay-bench --help.\n", stderr);
        return false;
    }
}

static bool open_store(Bench *b)
{
    if (!b->results)
        b->results =
            arena_printf(b->arena, "%s/results", project_folder(b->arena));
    Str fault = {0};
    bool ok = !b->store || results_can_store(b->arena, b->results, &fault);
    if (!ok)
        bad_input("--results %s: %s", b->results, str_text(&fault));
    str_free(&fault);
    return ok;
}

static int start(Bench *b, int argc, char **argv)
{
    Source source = fingerprint_source(b->arena);
    const char *const context[] = {
        "assay_schema", arena_printf(b->arena, "%d", RESULTS_SCHEMA),
        "commit",       source.commit,
        "dirty",        source.dirty ? "true" : "false",
        NULL,
    };
    bench_initialize(&argc, argv, context);
    int c;
    while ((c = getopt_long(argc, argv, "m:t:", long_options, NULL)) != -1)
        if (!take_option(b, c))
            return EXIT_BAD_INPUT;
    if (optind != argc)
        return bad_input("%s: not an option of assay-bench", argv[optind]);
    if (!open_store(b) || !add_models(b))
        return EXIT_BAD_INPUT;
    b->machine = fingerprint_machine();
    BuildPlan limits = {.limits = {.seconds = (double)b->timeout}};
    build_plan_init(&limits, false);
    b->loader = (KernelLoader){.arena = b->arena,
                               .pool = pool_new((int)b->threads),
                               .limits = limits.limits};
    if (!b->loader.pool)
        return bad_input("cannot start %ld threads", b->threads);
    int code = run_cases(b);
    pool_free(b->loader.pool);
    return code;
}

int main(int argc, char **argv)
{
    cleanup_start();
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return fputs(usage, stdout), EXIT_FINE;
    Bench b = {.arena = arena_new(), .threads = 1, .timeout = 300};
    int code = start(&b, argc, argv);
    kernel_list_free(&b.list);
    json_decref(b.machine);
    arena_free(b.arena);
    return code;
}
