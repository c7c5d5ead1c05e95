/* The public interface: from a source graph to an artifact folder. */
#include "assay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "codegen/codegen.h"
#include "evaluate.h"
#include "import/export.h"
#include "import/onnx.h"
#include "ops/op.h"
#include "passes/algorithm.h"
#include "passes/passes.h"
#include "program/program.h"
#include "runtime/artifact.h"
#include "runtime/runtime.h"

enum { MAX_TIMINGS = 64 };

struct AssayCompiler {
    Arena *arena;
    Diag *diag;
    /* `source` stays as loaded; `graph` is a second copy for the passes. */
    Graph *source, *graph;
    Vec(AssayModelInput) inputs; /* of the file */
    const OpTable *ops;          /* the user's own first */
    const Target *target;
    AssayOptions options;
    ProgramChoices choices;
    AlgorithmChoices algorithms;
    uint64_t algorithms_hash; /* of those that a log named; 0: none */
    Program *program;
    AssayTiming timing[MAX_TIMINGS];
    int timing_count;
    char *errors;
};

AssayCompiler *assay_new(void)
{
    Arena *arena = arena_new();
    AssayCompiler *c = ARENA_NEW(arena, AssayCompiler);
    c->arena = arena;
    c->diag = diag_new(arena, NULL);
    c->ops = ops_builtin();
    return c;
}

void assay_add_ops(AssayCompiler *c, const Op *const *ops)
{
    OpTable *table = ARENA_NEW(c->arena, OpTable);
    *table = (OpTable){ops, c->ops};
    c->ops = table;
}

void assay_free(AssayCompiler *c)
{
    free(c->errors);
    arena_free(c->arena);
}

Arena *assay_arena(AssayCompiler *compiler)
{
    return compiler->arena;
}

const char *assay_errors(const AssayCompiler *compiler)
{
    AssayCompiler *c = (AssayCompiler *)compiler;
    Str text = {0};
    const char *file = c->diag->file;
    for (int i = 0; i < c->diag->errors.count; i++)
        if (!diag_is_repeated(c->diag, i))
            str_addf(&text, "%s%s%s\n", file ? file : "", file ? ": " : "",
                     c->diag->errors.data[i]);
    free(c->errors);
    c->errors = text.data;
    return c->errors ? c->errors : "";
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void add_timing(AssayCompiler *c, const char *phase, double start)
{
    if (c->timing_count < MAX_TIMINGS)
        c->timing[c->timing_count++] =
            (AssayTiming){phase, now() - start, 0, 0};
}

bool assay_load_onnx(AssayCompiler *c, const char *path, const AssayLoad *load)
{
    static const AssayLoad nothing = {0};
    double start = now();
    load = load ? load : &nothing;
    ImportDim *dims = ARENA_ARRAY(c->arena, ImportDim, load->dim_count + 1);
    for (int i = 0; i < load->dim_count; i++)
        dims[i] = (ImportDim){load->dims[i].name, load->dims[i].value,
                              load->dims[i].upper};
    ImportBind *binds =
        ARENA_ARRAY(c->arena, ImportBind, load->bind_count + 1);
    for (int i = 0; i < load->bind_count; i++)
        binds[i] = (ImportBind){load->binds[i].name, load->binds[i].value};
    ImportInputs inputs = {0};
    ImportOptions options = {dims, load->dim_count, binds, load->bind_count,
                             &inputs};
    c->diag->file = arena_strdup(c->arena, path);
    c->source = onnx_import(c->arena, c->diag, c->ops, path, &options);
    c->graph = c->source ? graph_copy(c->arena, c->source) : NULL;
    c->inputs.count = 0;
    for (int i = 0; i < inputs.count; i++)
        vec_push(
            c->arena, &c->inputs,
            ((AssayModelInput){inputs.data[i].name, inputs.data[i].is_fixed}));
    add_timing(c, "import", start);
    return c->graph != NULL;
}

int assay_model_inputs(AssayCompiler *c, const AssayModelInput **rows)
{
    *rows = c->inputs.data;
    return c->inputs.count;
}

const Array *assay_read_tensor(AssayCompiler *c, const char *path)
{
    return onnx_read_tensor(c->arena, c->diag, path);
}

/* Follows a wanted value back to the inputs it is computed from; what needs
 * no more than a tensor's type is no reason to bind that tensor. */
static void want(AssayCompiler *c, const Tensor *t, bool *seen,
                 const char **names, int *count)
{
    if (seen[t->id] || t->value)
        return;
    seen[t->id] = true;
    if (t->is_input)
        names[(*count)++] = t->name;
    if (!t->producer || t->producer->op->traits & OP_TYPE_ONLY)
        return;
    for (int i = 0; i < t->producer->inputs.count; i++)
        if (t->producer->inputs.data[i])
            want(c, t->producer->inputs.data[i], seen, names, count);
}

int assay_wanted_inputs(AssayCompiler *c, const char *const **names)
{
    const Graph *g = c->graph;
    *names = NULL;
    if (!g)
        return 0;
    bool *seen = ARENA_ARRAY(c->arena, bool, g->next_id + 1);
    const char **list =
        ARENA_ARRAY(c->arena, const char *, g->inputs.count + 1);
    int count = 0;
    for (int i = 0; i < g->tensors.count; i++)
        if (g->tensors.data[i]->is_wanted)
            want(c, g->tensors.data[i], seen, list, &count);
    *names = list;
    return count;
}

bool assay_build(AssayCompiler *c, const char *name,
                 bool (*build)(Graph *g, void *user), void *user)
{
    double start = now();
    c->source = graph_new(c->arena, c->diag, name, c->ops);
    if (!build(c->source, user))
        return false;
    c->graph = graph_copy(c->arena, c->source);
    add_timing(c, "build", start);
    return true;
}

const Graph *assay_source_graph(const AssayCompiler *c)
{
    return c->source;
}

const Graph *assay_canonical_graph(AssayCompiler *c)
{
    if (!c->source || !graph_has_canonical(c->source))
        return c->source;
    PassContext context = {.graph = graph_copy(c->arena, c->source),
                           .evaluate = evaluate_node};
    int errors = c->diag->errors.count;
    pass_infer(&context);
    if (c->diag->errors.count > errors)
        return NULL;
    pass_canonical(&context);
    return context.graph;
}

bool assay_export_onnx(AssayCompiler *c, const char *path)
{
    if (!c->source)
        return diag_error(c->diag, "no model is loaded");
    return onnx_export(c->diag, c->options.stop_after ? c->graph : c->source,
                       path);
}

/* The line of the log for a node's algorithm. */
static const char *find_algorithm(void *user, uint64_t key, const char **where)
{
    AssayCompiler *c = user;
    const ProgramChoices *choices = &c->choices;
    const ChoiceRow *line =
        choices->log ? choices_find(choices->log, &choices->scope, key) : NULL;
    if (!line || !line->algorithm)
        return NULL;
    *where = arena_printf(c->arena, "%s:%d", choices->log->file, line->line);
    c->algorithms_hash = hash_bytes(&key, sizeof key, c->algorithms_hash);
    c->algorithms_hash = hash_bytes(line->algorithm, strlen(line->algorithm),
                                    c->algorithms_hash);
    return line->algorithm;
}

static bool run_passes(AssayCompiler *c)
{
    c->algorithms = (AlgorithmChoices){.find = find_algorithm, .user = c};
    c->algorithms_hash = 0;
    PassContext context = {
        .graph = c->graph,
        .target = c->target,
        .opt_level = c->options.opt_level,
        .evaluate = evaluate_node,
        .choices = &c->algorithms,
    };
    PassOptions options = {
        .opt_level = c->options.opt_level,
        .disabled = c->options.disabled,
        .dump_after = c->options.dump_after,
        .stop_after = c->options.stop_after,
        .time_passes = c->options.time_passes,
        .verify = c->options.verify,
        .no_fuse = c->options.no_fuse,
        .algorithm = c->options.naive ? "direct" : c->options.algorithm,
    };
    PassTime *times = ARENA_ARRAY(c->arena, PassTime, pass_count() + 1);
    int count = 0;
    bool ok = passes_run(&context, &options, times, &count);
    for (int i = 0; i < count && c->timing_count < MAX_TIMINGS; i++)
        c->timing[c->timing_count++] =
            (AssayTiming){times[i].name, times[i].seconds,
                          times[i].nodes_before, times[i].nodes_after};
    return ok && c->diag->errors.count == 0;
}

/* The printed graph has a hash of each constant's content. */
static uint64_t source_hash(const Graph *g)
{
    Str text = {0};
    graph_print(&text, g, false);
    uint64_t hash = hash_text(str_text(&text));
    str_free(&text);
    return hash;
}

static bool open_choices(AssayCompiler *c, const AssayOptions *options,
                         const Target *target, ProgramChoices *choices)
{
    choices->log = NULL;
    choices->scope = choice_scope(c->arena, target,
                                  codegen_backend(c->arena, target->codegen));
    if (!options->choices)
        return true;
    choices->log = choices_read(c->arena, c->diag, options->choices);
    return choices->log != NULL;
}

bool assay_read_choices(AssayCompiler *c, const AssayOptions *options,
                        int *others)
{
    const Target *target = target_find(c->arena, c->diag, options->target);
    ProgramChoices choices;
    *others = 0;
    if (!target || !open_choices(c, options, target, &choices))
        return false;
    if (choices.log)
        *others = choices_count_others(choices.log, &choices.scope);
    return true;
}

bool assay_compile(AssayCompiler *c, const AssayOptions *options)
{
    if (!c->graph)
        return diag_error(c->diag, "no model is loaded");
    c->options = *options;
    c->program = NULL;
    c->timing_count = 0;
    c->graph = graph_copy(c->arena, c->source);
    c->target = target_find(c->arena, c->diag, options->target);
    if (!c->target || !open_choices(c, options, c->target, &c->choices) ||
        !run_passes(c))
        return false;
    if (options->stop_after)
        return true;
    if (!ops_check_lowerable(c->graph))
        return false;
    double start = now();
    ScheduleMode mode = options->naive || options->opt_level == 0
                            ? SCHEDULE_NAIVE
                        : options->opt_level == 1 ? SCHEDULE_EXACT
                                                  : SCHEDULE_FAST;
    c->program = program_build(c->arena, c->diag, c->graph, c->target, mode,
                               &c->choices);
    add_timing(c, "schedule", start);
    if (!c->program)
        return false;
    /* Together with what the schedules add. */
    if (c->algorithms_hash)
        c->program->choices_hash =
            hash_bytes(&c->algorithms_hash, sizeof c->algorithms_hash,
                       c->program->choices_hash);
    c->program->taps = options->taps;
    c->program->source_hash = source_hash(c->source);
    start = now();
    program_plan_memory(c->program);
    if (options->verify)
        program_verify(c->program);
    add_timing(c, "plan", start);
    return true;
}

int assay_algorithms(const AssayCompiler *c, const AlgorithmNode **rows)
{
    *rows = c->algorithms.nodes.data;
    return c->algorithms.nodes.count;
}

void assay_algorithm_row(const AssayCompiler *c, const AlgorithmNode *node,
                         ChoiceRow *row)
{
    *row = (ChoiceRow){.kernel = node->kernel,
                       .type = node->type,
                       .in = node->in,
                       .layout = "any",
                       .scope = c->choices.scope,
                       .def = node->key,
                       .algorithm = node->taken};
}

const Graph *assay_graph(const AssayCompiler *c)
{
    return c->graph;
}

const Program *assay_program(const AssayCompiler *c)
{
    return c->program;
}

int assay_timings(const AssayCompiler *c, const AssayTiming **rows)
{
    *rows = c->timing;
    return c->timing_count;
}

/* ---- the artifact folder ------------------------------------------- */

static void remove_folder(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        unlink(path);
    }
    closedir(d);
    rmdir(dir);
}

/* An empty folder, or one that holds an artifact (of any version) and
 * nothing else: all others are not ours to replace. */
static bool is_replaceable(Arena *arena, const char *dir)
{
    static const char *const names[] = {"manifest.json", "model.so", "model.a",
                                        "weights.bin", NULL};
    DIR *d = opendir(dir);
    bool ok = d != NULL, is_empty = true;
    for (struct dirent *e = ok ? readdir(d) : NULL; e; e = readdir(d)) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        bool known = false;
        for (int i = 0; names[i]; i++)
            known |= !strcmp(e->d_name, names[i]);
        ok &= known;
        is_empty = false;
    }
    if (d)
        closedir(d);
    if (!ok || is_empty)
        return ok;
    ArtifactInfo info;
    AssayError error;
    AssayStatus status = artifact_read_info(arena, dir, &info, &error);
    return status != ASSAY_NO_ARTIFACT && status != ASSAY_BAD_MANIFEST;
}

/* Puts the finished folder `temp` where `dir` is or shall be. What was
 * there stays whole until the new one is in its place. */
static bool move_into_place(AssayCompiler *c, char *temp, const char *dir,
                            bool exists)
{
    if (!exists && !rename(temp, dir))
        return true;
    if (exists && !renameat2(AT_FDCWD, temp, AT_FDCWD, dir, RENAME_EXCHANGE)) {
        remove_folder(temp);
        return true;
    }
    /* A file system that cannot exchange: step aside first. */
    char *old = arena_printf(c->arena, "%s.old.%ld", dir, (long)getpid());
    if (exists && !rename(dir, old)) {
        if (!rename(temp, dir)) {
            remove_folder(old);
            return true;
        }
        int error = errno;
        if (rename(old, dir))
            log_debug("%s stays at %s", dir, old);
        errno = error;
    }
    return diag_error(c->diag, "cannot rename %s to %s: %s", temp, dir,
                      strerror(errno));
}

static bool generate(AssayCompiler *c, const char *objects_dir,
                     const char *dir)
{
    double start = now();
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    CodegenOptions o = {
        .sanitize = c->options.sanitize,
        .sanitize_threads = c->options.sanitize_threads,
        .jobs = c->options.jobs > 0 ? c->options.jobs
                                    : (cores > 0 ? (int)cores : 1),
        .cc = c->target->cc,
    };
    const char **objects;
    int count;
    bool ok =
        c->target->codegen == CODEGEN_C
            ? codegen_c(c->program, c->diag, &o, objects_dir, &objects, &count)
            : codegen_llvm(c->program, c->diag, &o, objects_dir, &objects,
                           &count);
    add_timing(c, "codegen", start);
    if (!ok)
        return false;
    start = now();
    const char *code = c->target->run == RUN_EMULATED ? "model.a" : "model.so";
    const char *path = arena_printf(c->arena, "%s/%s", dir, code);
    ok = c->target->run == RUN_EMULATED
             ? codegen_archive(c->diag, objects, count, path)
             : codegen_link_shared(c->diag, objects, count, path);
    ok =
        ok &&
        program_write_weights(c->program, c->diag,
                              arena_printf(c->arena, "%s/weights.bin", dir)) &&
        artifact_write_manifest(c->diag, c->program, dir, code);
    add_timing(c, "link", start);
    return ok;
}

bool assay_write_artifact(AssayCompiler *c, const char *path)
{
    if (c->options.stop_after)
        return diag_error(c->diag,
                          "the passes stopped after \"%s\", an artifact "
                          "needs all of them; assay inspect shows the graph "
                          "at that point",
                          c->options.stop_after);
    if (!c->program)
        return diag_error(c->diag, "nothing is compiled yet");
    if (!*path)
        return diag_error(c->diag, "the artifact's folder has no name; "
                                   "give one with -o");
    struct stat st;
    bool exists = stat(path, &st) == 0;
    /* Behind a link, the folder itself is replaced, not the link. */
    char *real = exists ? realpath(path, NULL) : NULL;
    const char *dir = arena_strdup(c->arena, real ? real : path);
    free(real);
    if (exists && (!S_ISDIR(st.st_mode) || !is_replaceable(c->arena, dir)))
        return diag_error(c->diag,
                          "%s exists and is not an artifact folder; name "
                          "another with -o",
                          dir);
    char *temp = arena_printf(c->arena, "%s.partial.%ld", dir, (long)getpid());
    char *objects =
        arena_printf(c->arena, "%s.objects.%ld", dir, (long)getpid());
    if (mkdir(temp, 0777) || mkdir(objects, 0777)) {
        int error = errno;
        rmdir(temp);
        return diag_error(c->diag, "cannot make a folder beside %s: %s", dir,
                          strerror(error));
    }
    cleanup_add_path(temp);
    cleanup_add_path(objects);
    bool ok =
        generate(c, objects, temp) && move_into_place(c, temp, dir, exists);
    if (!ok)
        remove_folder(temp);
    remove_folder(objects);
    cleanup_forget_path(temp);
    cleanup_forget_path(objects);
    return ok;
}
