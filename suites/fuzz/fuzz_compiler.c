/* libFuzzer target: random valid graphs through the compiler. Plain loops in
 * the interpreter, scheduled loops in the interpreter, machine code, and the
 * reference must agree. */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assay.h"
#include "compiler/evaluate.h"
#include "harness/check.h"
#include "harness/common.h"
#include "harness/inputs.h"
#include "ops/op.h"
#include "program/program.h"
#include "runtime/runtime.h"
#include "suites/fuzz/random_graph.h"

typedef struct Job {
    const uint8_t *data;
    size_t size;
} Job;

static bool build(Graph *g, void *user)
{
    const Job *job = user;
    Choices choices = {job->data, job->size, 0};
    return random_graph(g, &choices);
}

/* What a fault needs to be looked at: the graph, then the numbers. */
static _Noreturn void report(const Graph *g, const char *how, const Tensor *t,
                             const Difference *d)
{
    Str text = {0};
    graph_print(&text, g, false);
    fprintf(stderr, "%s\n%s: output %s, element %lld: %g, reference %g\n",
            str_text(&text), how, t->name, (long long)d->worst, d->got,
            d->wanted);
    abort();
}

/* Sums that cancel have no digits left: against the largest value that takes
 * part, which the tolerance does not see, they are still right. */
static const Tolerance loose = {1e-3, 1e-3};

static void compare(const Graph *g, const char *how, Array *const *got,
                    const ReferenceValues *wanted)
{
    for (int i = 0; i < g->outputs.count; i++) {
        const Tensor *t = g->outputs.data[i];
        Difference d = compare_arrays(got[i], wanted->by_id[t->id], loose);
        if (!d.agrees)
            report(g, how, t, &d);
    }
}

static void run_level(Arena *arena, const Job *job, Array *const *inputs,
                      const ReferenceValues *wanted, int level)
{
    static const char *const names[] = {"-O0", "-O1", "-O2"};
    AssayCompiler *compiler = assay_new();
    AssayOptions options = {.opt_level = level, .verify = true, .jobs = 1};
    char *folder = make_temp_folder(arena);
    const char *dir = arena_printf(arena, "%s/artifact", folder);
    if (!assay_build(compiler, "fuzz", build, (void *)job) ||
        !assay_compile(compiler, &options) ||
        !assay_write_artifact(compiler, dir)) {
        fprintf(stderr, "%s: %s\n", names[level], assay_errors(compiler));
        abort();
    }
    const Graph *g = assay_source_graph(compiler);
    Artifact *artifact;
    AssayError error;
    LoadOptions load = {.threads = 1};
    if (artifact_load(dir, &load, &artifact, &error) != ASSAY_OK)
        abort();
    const void **in = ARENA_ARRAY(arena, const void *, g->inputs.count + 1);
    void **out = ARENA_ARRAY(arena, void *, g->outputs.count + 1);
    Array **got = ARENA_ARRAY(arena, Array *, g->outputs.count + 1);
    for (int i = 0; i < g->inputs.count; i++)
        in[i] = inputs[i]->data;
    for (int i = 0; i < g->outputs.count; i++) {
        const Array *like = wanted->by_id[g->outputs.data[i]->id];
        got[i] = array_new(arena, like->dtype, like->rank, like->dims);
        out[i] = got[i]->data;
    }
    artifact_fill_arena(artifact, 0xff);
    artifact_run(artifact, in, out);
    compare(g, names[level], got, wanted);
    artifact_free(artifact);
    assay_free(compiler);
    remove_temp_folder(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new();
    Job job = {data, size};
    Graph *g = graph_new(arena, diag_new(arena, NULL), "fuzz", ops_builtin());
    if (!build(g, &job)) {
        arena_free(arena);
        return -1; /* not to be kept */
    }
    Array **inputs = ARENA_ARRAY(arena, Array *, g->inputs.count + 1);
    for (int i = 0; i < g->inputs.count; i++) {
        int64_t dims[MAX_RANK];
        const TensorType *type = &g->inputs.data[i]->type;
        for (int k = 0; k < type->rank; k++)
            dims[k] = type->dims[k].value;
        inputs[i] = array_new(arena, type->dtype, type->rank, dims);
        inputs_fill(inputs[i], 1, i, NULL);
    }
    ReferenceValues wanted;
    Str error = {0};
    if (!reference_run(arena, g, inputs, NULL, &wanted, &error)) {
        fprintf(stderr, "%s", str_text(&error));
        abort();
    }
    for (int level = 0; level <= 2; level++)
        run_level(arena, &job, inputs, &wanted, level);
    arena_free(arena);
    return 0;
}
