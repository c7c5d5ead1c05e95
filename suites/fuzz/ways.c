#include "suites/fuzz/ways.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assay.h"
#include "codegen/codegen.h"
#include "compiler/evaluate.h"
#include "harness/common.h"
#include "ops/op.h"
#include "runtime/runtime.h"
#include "suites/unit/compiled.h"

typedef enum How { INTERPRETED, MACHINE_CODE, IN_C } How;

/* One way of building. */
typedef struct Way {
    const char *name;
    int level;
    const char *target;
    How how;
    const char *disabled[2]; /* a pass */
    bool other_knobs; /* of each kernel one has another value than usual */
    const char *algorithm; /* PassOptions.algorithm */
} Way;

static const Way plain = {"-O0",  0,     "x86-64-v3", INTERPRETED,
                          {NULL}, false, NULL};

/* Those that see the most faults; one of them for each graph. */
static const Way scheduled[] = {
    {"-O2 for v3", 2, "x86-64-v3", INTERPRETED, {NULL}, false, NULL},
    {"-O2 for v4", 2, "x86-64-v4", INTERPRETED, {NULL}, false, NULL},
    {"-O2 for aarch64", 2, "aarch64", INTERPRETED, {NULL}, false, NULL},
    {"-O2 unfused", 2, "x86-64-v4", INTERPRETED, {"fuse"}, false, NULL},
    {"-O1", 1, "x86-64-v3", INTERPRETED, {NULL}, false, NULL},
    {"-O2 with other knobs", 2, "x86-64-v4", INTERPRETED, {NULL}, true, NULL},
    {"-O2 by tiles", 2, "x86-64-v4", INTERPRETED, {NULL}, true, "winograd4"},
};

enum { SCHEDULED = sizeof scheduled / sizeof *scheduled };

static const Way compiled[] = {
    {"-O2 code", 2, "native", MACHINE_CODE, {NULL}, false, NULL},
    {"-O2 code for v2", 2, "x86-64-v2", MACHINE_CODE, {NULL}, false, NULL},
    {"-O2 code for v3", 2, "x86-64-v3", MACHINE_CODE, {NULL}, false, NULL},
    {"-O2 unfused code", 2, "native", MACHINE_CODE, {"fuse"}, false, NULL},
    {"-O1 code", 1, "native", MACHINE_CODE, {NULL}, false, NULL},
    {"-O0 code", 0, "native", MACHINE_CODE, {NULL}, false, NULL},
    {"-O2 in C", 2, "c", IN_C, {NULL}, false, NULL},
    {"-O2 code with other knobs",
     2,
     "native",
     MACHINE_CODE,
     {NULL},
     true,
     NULL},
    {"-O2 code by tiles",
     2,
     "native",
     MACHINE_CODE,
     {NULL},
     false,
     "winograd2"},
};

enum { COMPILED = sizeof compiled / sizeof *compiled };

/* What a fault needs to be looked at: the graph, then what was seen. */
static _Noreturn void report(const Graph *g, const char *how, const char *why)
{
    Str text = {0};
    graph_print(&text, g, true);
    fprintf(stderr, "%s\n%s: %s\n", str_text(&text), how, why);
    abort();
}

typedef struct Dying {
    const Graph *graph;
    const char *how;
    DieHook outer;
} Dying;

static void print_dying(void *context)
{
    const Dying *d = context;
    Str text = {0};
    graph_print(&text, d->graph, true);
    fprintf(stderr, "%s\n%s:\n", str_text(&text), d->how);
    if (d->outer.print)
        d->outer.print(d->outer.context);
}

static void check(Job *job, const char *how, Array *const *got)
{
    Str why = {0};
    for (int i = 0; i < job->graph->outputs.count; i++)
        if (!agree_check(&job->agreement, i, got[i], &why))
            report(job->graph, how, str_text(&why));
}

/* ---- one way ---------------------------------------------------------- */

/* A log with a line for each kernel: which value of which knob depends on
 * its key, so that a graph is always built alike. */
static ChoiceLog *other_knobs(Arena *arena, const Program *p)
{
    ChoiceLog *log = ARENA_NEW(arena, ChoiceLog);
    log->file = "other knobs";
    for (int i = 0; i < p->schedules.count; i++) {
        const ProgramSchedule *s = &p->schedules.data[i];
        if (!s->log.knobs.count)
            continue;
        ChoiceRow row = s->row;
        uint64_t key = row.def;
        const KnobRow *knob =
            &s->log.knobs.data[key % (uint64_t)s->log.knobs.count];
        choice_set(&row.choice, knob->name,
                   knob->candidates[(key >> 32) % (uint64_t)knob->count]);
        vec_push(arena, &log->rows, row);
    }
    return log;
}

/* NULL, with messages in c->diag, when the graph is refused. */
static Program *build_program(Compiled *c, const Way *way)
{
    PassContext context = {
        .graph = c->graph, .target = c->target, .evaluate = evaluate_node};
    PassOptions options = {
        .opt_level = way->level,
        .verify = true,
        .disabled = way->disabled,
        .algorithm = way->algorithm,
    };
    ScheduleMode mode = way->level == 0   ? SCHEDULE_NAIVE
                        : way->level == 1 ? SCHEDULE_EXACT
                                          : SCHEDULE_FAST;
    if (!passes_run(&context, &options, NULL, NULL) ||
        !ops_check_lowerable(c->graph))
        return NULL;
    ProgramChoices choices = {.scope =
                                  choice_scope(c->arena, c->target, "fuzz")};
    Program *p =
        program_build(c->arena, c->diag, c->graph, c->target, mode, &choices);
    if (p && way->other_knobs) {
        choices.log = other_knobs(c->arena, p);
        p = program_build(c->arena, c->diag, c->graph, c->target, mode,
                          &choices);
        if (!p)
            report(c->graph, way->name, c->diag->errors.data[0]);
    }
    if (!p)
        return NULL;
    program_plan_memory(p);
    program_verify(p);
    return p;
}

/* Without the system's linker, which takes longer than everything else. */
static void *load(Compiled *c, const Way *way, const char *dir)
{
    if (way->how == IN_C)
        return load_compiled(c, dir, true);
    CodegenOptions options = {.jobs = 1};
    const char **objects;
    int count;
    const char *path = arena_printf(c->arena, "%s/model.so", dir);
    if (!codegen_llvm(c->program, c->diag, &options, dir, &objects, &count) ||
        !codegen_link_shared(c->diag, objects, count, path))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The numbers of this run, in the order that this program wants them. */
static bool set_dims(const Job *job, Compiled *c, int64_t *dims)
{
    if (c->program->symbols.count > MOST_SYMBOLS)
        return false;
    for (int i = 0; i < c->program->input_symbols; i++) {
        int at =
            graph_symbol(job->graph, c->program->symbols.data[i].expr->name);
        dims[i] = at < 0 ? 1 : job->dims[at];
    }
    c->dims = dims;
    return true;
}

/* False when the graph is refused. */
static bool run_way(Job *job, const Way *way)
{
    Arena *arena = arena_new();
    int64_t dims[MOST_SYMBOLS];
    Dying dying = {job->graph, way->name, {NULL, NULL}};
    dying.outer = die_set_hook((DieHook){print_dying, &dying});
    Compiled c = {.arena = arena, .inputs = job->inputs};
    c.graph = graph_copy(arena, job->graph);
    c.graph->diag = c.diag = diag_new(arena, NULL);
    c.target = target_find(arena, c.diag, way->target);
    c.program = c.target ? build_program(&c, way) : NULL;
    bool ok = c.program && set_dims(job, &c, dims);
    if (c.program && !ok)
        c.diag->errors.count = 0;
    if (!ok && c.diag->errors.count)
        log_debug("%s: %s", way->name, c.diag->errors.data[0]);
    if (ok && way->how == INTERPRETED) {
        check(job, way->name, run_interpreted(&c));
    } else if (ok) {
        char *dir = make_temp_folder(arena);
        void *library = load(&c, way, dir);
        if (!library)
            report(job->graph, way->name,
                   c.diag->errors.count ? c.diag->errors.data[0] : dlerror());
        check(job, way->name, run_loaded(&c, library));
        dlclose(library);
        remove_temp_folder(dir);
    }
    die_set_hook(dying.outer);
    arena_free(arena);
    return ok;
}

/* ---- a whole artifact, with one thread and with two ------------------- */

static bool build_again(Graph *g, void *user)
{
    const Job *job = user;
    return random_graph_copy(g, job->graph);
}

static Array **run_artifact(Job *job, Arena *arena, const char *dir,
                            int threads)
{
    const Graph *g = job->graph;
    Artifact *artifact;
    AssayError error;
    LoadOptions options = {.threads = threads};
    if (artifact_load(dir, &options, &artifact, &error) != ASSAY_OK)
        report(g, "artifact", "does not load");
    const ArtifactInfo *info = artifact_info(artifact);
    const void **in = ARENA_ARRAY(arena, const void *, g->inputs.count + 1);
    void **out = ARENA_ARRAY(arena, void *, g->outputs.count + 1);
    Array **got = ARENA_ARRAY(arena, Array *, g->outputs.count + 1);
    int64_t dims[MAX_DIMS] = {0};
    const int64_t **shapes =
        ARENA_ARRAY(arena, const int64_t *, g->inputs.count + 1);
    for (int i = 0; i < g->inputs.count; i++) {
        in[i] = job->inputs[i]->data;
        shapes[i] = job->inputs[i]->dims;
    }
    if (artifact_find_dims(info, shapes, dims, &error) != ASSAY_OK ||
        artifact_set_dims(artifact, dims, &error) != ASSAY_OK)
        report(g, "artifact", "does not take the dimensions");
    for (int i = 0; i < g->outputs.count; i++)
        out[i] = arena_alloc(arena, (size_t)info->outputs[i].bytes + 1);
    artifact_fill_arena(artifact, 0xff);
    artifact_run(artifact, in, out);
    for (int i = 0; i < g->outputs.count; i++) {
        const ArtifactValue *value = &info->outputs[i];
        int64_t actual[MAX_RANK];
        artifact_dims(artifact, value, actual);
        got[i] = array_new(arena, value->dtype, value->rank, actual);
        memcpy(got[i]->data, out[i], array_bytes(got[i]));
    }
    artifact_free(artifact);
    return got;
}

static void run_whole(Job *job)
{
    Arena *arena = arena_new();
    AssayCompiler *compiler = assay_new();
    AssayOptions options = {.opt_level = 2, .verify = true, .jobs = 1};
    char *folder = make_temp_folder(arena);
    const char *dir = arena_printf(arena, "%s/artifact", folder);
    if (!assay_build(compiler, "fuzz", build_again, job) ||
        !assay_compile(compiler, &options) ||
        !assay_write_artifact(compiler, dir))
        report(job->graph, "artifact", assay_errors(compiler));
    Array **one = run_artifact(job, arena, dir, 1);
    Array **two = run_artifact(job, arena, dir, 2);
    check(job, "artifact", one);
    for (int i = 0; i < job->graph->outputs.count; i++)
        if (!array_equal(one[i], two[i]))
            report(job->graph, "artifact",
                   "two threads give other bits than one");
    assay_free(compiler);
    remove_temp_folder(folder);
    arena_free(arena);
}

/* ---- jobs ------------------------------------------------------------- */

bool job_start(Job *job, Arena *arena, Graph *g, const RandomGraph *about,
               Choices *c)
{
    ExtentValue names[MOST_SYMBOLS];
    job->graph = g;
    graph_find_symbols(g);
    if (g->symbols.count > MOST_SYMBOLS)
        return false;
    for (int i = 0; i < g->symbols.count; i++) {
        Extent symbol = g->symbols.data[i];
        int64_t low = extent_lower(symbol);
        job->dims[i] = low + choose(c, (int)(symbol.value - low + 1));
        names[i] = (ExtentValue){symbol.expr->name, job->dims[i]};
    }
    job->inputs = random_inputs(arena, g, about, names, g->symbols.count);
    Str text = {0};
    graph_print(&text, g, true);
    log_debug("%s", str_text(&text));
    str_free(&text);
    return agree_start(&job->agreement, arena, g, job->inputs);
}

void job_run_some(Job *job, Choices *c)
{
    const Way *way = &scheduled[choose(c, SCHEDULED)];
    const Way *code = &compiled[choose(c, COMPILED)];
    bool is_open = job->graph->symbols.count > 0;
    /* What has no definition for named extents is refused, and what folding
     * alone makes possible at -O0. */
    bool taken = run_way(job, &plain);
    if (!run_way(job, way)) {
        if (taken && !is_open)
            report(job->graph, way->name, "is refused; -O0 takes it");
        return;
    }
    if (run_way(job, code) && choose(c, 6) == 5)
        run_whole(job);
}

bool job_run_all(Job *job)
{
    bool ok = run_way(job, &plain);
    for (int i = 0; ok && i < SCHEDULED; i++)
        ok = run_way(job, &scheduled[i]);
    for (int i = 0; ok && i < COMPILED; i++)
        ok = run_way(job, &compiled[i]);
    if (ok)
        run_whole(job);
    return ok;
}
