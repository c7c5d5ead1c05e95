#include "harness/kernel_bench.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "assay.h"
#include "base/hash.h"
#include "harness/check.h"
#include "harness/common.h"
#include "harness/inputs.h"
#include "harness/runner.h"
#include "harness/values.h"
#include "ops/op.h"

/* ---- in the child: compiled and checked ------------------------------- */

typedef struct Job {
    const KernelCase *kernel;
    const char *folder; /* gets artifact/ and check.json */
} Job;

static bool build(Graph *g, void *user)
{
    const KernelCase *kernel = user;
    return kernel->build(g, kernel);
}

/* The worst of all outputs. */
static Difference compare_outputs(const Graph *g, const Runner *r,
                                  const ReferenceValues *reference)
{
    Difference worst = {.agrees = true, .sqnr = INFINITY};
    for (int i = 0; i < g->outputs.count; i++) {
        Difference d = compare_arrays(r->outputs[i],
                                      reference->by_id[g->outputs.data[i]->id],
                                      tolerance_f32);
        worst.agrees = worst.agrees && d.agrees;
        worst.max_error = fmax(worst.max_error, d.max_error);
        worst.max_abs = fmax(worst.max_abs, d.max_abs);
        worst.max_rel = fmax(worst.max_rel, d.max_rel);
        worst.max_excess = fmax(worst.max_excess, d.max_excess);
        worst.sqnr = fmin(worst.sqnr, d.sqnr);
    }
    return worst;
}

/* Runs the artifact here and the reference on the same inputs. */
static int check(Arena *arena, const Job *job, const Graph *g,
                 const char *artifact)
{
    Str error = {0};
    AssayError fault;
    Artifact *loaded;
    LoadOptions load = {.threads = 1};
    if (artifact_load(artifact, &load, &loaded, &fault) != ASSAY_OK) {
        fprintf(stderr, "%s\n", fault.text);
        return EXIT_BAD_INPUT;
    }
    Runner r = {.arena = arena,
                .artifact = loaded,
                .info = artifact_info(loaded),
                .error = &error};
    json_t *report = json_object();
    ReferenceValues reference;
    bool ran = runner_set_inputs(&r, NULL, 0, 1);
    bool same = ran && runner_check_repeat(&r, report);
    ran = ran && reference_run(arena, g, r.inputs, NULL, &reference, &error);
    if (!ran) {
        fputs(str_text(&error), stderr);
        return EXIT_BAD_INPUT;
    }
    Difference d = compare_outputs(g, &r, &reference);
    json_object_set_new(report, "max_error", number_json(d.max_error));
    json_object_set_new(report, "max_abs_error", number_json(d.max_abs));
    json_object_set_new(report, "max_rel_error", number_json(d.max_rel));
    json_object_set_new(report, "max_excess", number_json(d.max_excess));
    json_object_set_new(report, "sqnr_db", number_json(d.sqnr));
    const char *path = arena_printf(arena, "%s/check.json", job->folder);
    if (json_dump_file(report, path, JSON_INDENT(1))) {
        fprintf(stderr, "cannot write %s\n", path);
        return EXIT_BAD_INPUT;
    }
    if (!d.agrees)
        fprintf(stderr, "differs by %g times what is allowed\n", d.max_excess);
    if (!same)
        fputs("a second run gives other outputs, or what is no output was "
              "written to\n",
              stderr);
    return d.agrees && same ? EXIT_FINE : EXIT_FAILED_CHECK;
}

static int compile_and_check(void *user)
{
    const Job *job = user;
    Arena *arena = arena_new();
    AssayCompiler *compiler = assay_new();
    AssayOptions options = {.opt_level = 2};
    const char *artifact = arena_printf(arena, "%s/artifact", job->folder);
    if (!assay_build(compiler, job->kernel->name, build,
                     (void *)job->kernel) ||
        !assay_compile(compiler, &options) ||
        !assay_write_artifact(compiler, artifact)) {
        fputs(assay_errors(compiler), stderr);
        return EXIT_BAD_INPUT;
    }
    return check(arena, job, assay_canonical_graph(compiler), artifact);
}

/* ---- here: loaded and timed ------------------------------------------- */

typedef struct LoadedKernel {
    char *folder;
    Arena *arena;
    Runner runner;
    Str error;
    cpu_set_t home; /* of this thread, before it was pinned */
    bool was_pinned;
    const bool *is_timed;  /* by step */
    double start, seconds; /* of the steps that count */
} LoadedKernel;

static void on_step(void *user, int32_t step, int32_t is_end)
{
    LoadedKernel *k = user;
    if (!k->is_timed[step])
        return;
    if (is_end)
        k->seconds += clock_now() - k->start;
    else
        k->start = clock_now();
}

/* Steps that compute a node of the case; others change layouts. */
static bool computes_node(const Graph *g, const ArtifactStep *step)
{
    for (int i = 0; step->nodes[i]; i++)
        if (graph_find_node(g, step->nodes[i]))
            return true;
    return false;
}

static void note_steps(KernelBench *bench, LoadedKernel *k)
{
    const ArtifactInfo *info = k->runner.info;
    bool *timed = ARENA_ARRAY(k->arena, bool, info->step_count + 1);
    Graph *g = graph_new(k->arena, diag_new(k->arena, NULL),
                         bench->kernel->name, ops_builtin());
    bench->kernel->build(g, bench->kernel);
    bench->about = (ArtifactKernel){.name = bench->kernel->name};
    for (int i = 0; i < info->step_count; i++) {
        const ArtifactKernel *kernel =
            &info->kernels[info->steps[i].kernel_index];
        timed[i] = computes_node(g, &info->steps[i]);
        if (!timed[i])
            continue;
        bench->about.flops += kernel->flops;
        bench->about.bytes += kernel->bytes;
        bench->about.code_bytes += kernel->code_bytes;
        uint64_t *own[] = {&bench->about.loops_hash, &bench->about.code_hash};
        const uint64_t hash[] = {kernel->loops_hash, kernel->code_hash};
        /* In order, and of one kernel its own hash. */
        for (int k = 0; k < 2; k++)
            *own[k] = *own[k] ? hash_bytes(&hash[k], sizeof hash[k], *own[k])
                              : hash[k];
    }
    k->is_timed = timed;
}

static bool fail(KernelLoader *loader, KernelBench *bench, CaseStatus status,
                 const char *reason)
{
    bench->status = status;
    bench->reason = arena_strdup(loader->arena, reason);
    kernel_bench_unload(loader);
    return false;
}

/* Compiling takes all cores, timing the pool's own. */
static bool prepare(KernelLoader *loader, KernelBench *bench)
{
    LoadedKernel *k = loader->kernel;
    Job job = {bench->kernel, k->folder};
    ProcessResult result;
    Str text = {0};
    bool started =
        process_call(compile_and_check, &job, &text, &loader->limits, &result);
    bench->compile = result.seconds;
    bench->check = json_load_file(
        arena_printf(k->arena, "%s/check.json", k->folder), 0, NULL);
    CaseStatus status =
        started ? case_status_of(&result, str_text(&text)) : CASE_CRASHED;
    if (status != CASE_OK) {
        Str reason = {0};
        case_describe(&reason, &result, str_text(&text));
        fail(loader, bench, status, str_text(&reason));
        str_free(&reason);
    }
    str_free(&text);
    return status == CASE_OK;
}

bool kernel_bench_load(KernelLoader *loader, KernelBench *bench)
{
    if (loader->loaded == bench || bench->reason)
        return !bench->reason;
    kernel_bench_unload(loader);
    Arena *arena = arena_new();
    LoadedKernel *k = ARENA_NEW(arena, LoadedKernel);
    k->arena = arena;
    k->folder = make_temp_folder(arena);
    loader->kernel = k;
    loader->loaded = bench;
    if (!k->folder)
        return fail(loader, bench, CASE_CRASHED, "no temporary folder");
    if (!prepare(loader, bench))
        return false;
    LoadOptions load = {.pool = loader->pool};
    AssayError error;
    Artifact *artifact;
    if (artifact_load(arena_printf(arena, "%s/artifact", k->folder), &load,
                      &artifact, &error) != ASSAY_OK)
        return fail(loader, bench, CASE_CRASHED, error.text);
    k->runner = (Runner){.arena = arena,
                         .artifact = artifact,
                         .info = artifact_info(artifact),
                         .error = &k->error};
    if (!runner_set_inputs(&k->runner, NULL, 0, 1))
        return fail(loader, bench, CASE_CRASHED, str_text(&k->error));
    note_steps(bench, k);
    artifact_on_step(artifact, on_step, k);
    k->was_pinned = !sched_getaffinity(0, sizeof k->home, &k->home) &&
                    pool_pin_caller(loader->pool);
    return true;
}

double kernel_bench_run(KernelLoader *loader)
{
    LoadedKernel *k = loader->kernel;
    k->seconds = 0;
    runner_run_first(&k->runner);
    vec_push(loader->arena, &loader->loaded->samples, k->seconds);
    return k->seconds;
}

void kernel_bench_unload(KernelLoader *loader)
{
    LoadedKernel *k = loader->kernel;
    if (!k)
        return;
    if (k->was_pinned)
        sched_setaffinity(0, sizeof k->home, &k->home);
    artifact_free(k->runner.artifact);
    if (k->folder)
        remove_temp_folder(k->folder);
    str_free(&k->error);
    arena_free(k->arena);
    loader->kernel = NULL;
    loader->loaded = NULL;
}
