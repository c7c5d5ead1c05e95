/* ONNX's node test cases: a small model, inputs and expected outputs each,
 * in folders CASE/model.onnx and CASE/test_data_set_0/{input,output}_N.pb.
 * Every case goes through the importer, then four ways to compute it must
 * each give the expected outputs: the definitions of its nodes one by one,
 * the reference, and the compiler at -O0 (naive) and -O2 (scheduled) with
 * the interpreter; compiled code is for `assay validate`. Each case runs in
 * a process of its own, as a crash must not end the others.
 *
 * Many cases pass shapes and axes as inputs, which must be constants here:
 * when a model is refused, its integer inputs are made initializers and it
 * is tried again, then all small inputs but the first.
 *
 * Output is TAP, a line a case. Cases that cannot be computed at all are one
 * skipped line together; so that none slips among them unseen, the number
 * of passed cases has a floor in each suite.
 *
 *     test_onnx [--verbose] [FOLDER [WORD]]
 *
 * With FOLDER, the cases there, or those with WORD in their names. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "compiler/evaluate.h"
#include "import/onnx.h"
#include "onnx/onnx.pb-c.h"
#include "ops/op.h"
#include "suites/unit/compiled.h"
#include "suites/unit/ops_run.h"

/* PARTLY: the definitions (and the reference, where it could be asked) are
 * right, but the compiler needs shapes that only running the graph tells. */
typedef enum Verdict { PASSED, FAILED, REFUSED, PARTLY, VERDICTS } Verdict;
enum { SECONDS_PER_CASE = 60, MAX_CASES = 4096 };

typedef struct Suite {
    const char *name, *folder;
    int passed, partly; /* at least so many */
} Suite;

typedef struct Tally {
    int tests, failed;
} Tally;

static void report(Tally *tally, bool ok, const char *text)
{
    tally->failed += !ok;
    printf("%sok %d - %s\n", ok ? "" : "not ", ++tally->tests, text);
}

static uint8_t *read_file(Arena *arena, const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");

    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = arena_alloc(arena, *size + 1);
    size_t got = fread(data, 1, *size, file);
    fclose(file);
    return got == *size ? data : NULL;
}

/* Cases that are not run, each with its reason. */
static const struct Exception {
    const char *name, *reason;
} exceptions[] = {
    {"test_resize_downsample_scales_linear_align_corners",
     "expects 2.4 as the length of an axis of 2 elements, which version 19 "
     "of the operator mended"},
    {"test_resize_downsample_scales_cubic_align_corners",
     "expects 3.2 as the length of an axis of 3 elements, likewise"},
    {"test_averagepool_2d_ceil_last_window_starts_on_pad",
     "the expected values are written with four digits"},
    {"test_cast_BFLOAT16_to_FLOAT", "bf16 is stored as 16-bit integers"},
    {"test_cast_FLOAT_to_BFLOAT16", "bf16 is stored as 16-bit integers"},
    {"test_castlike_BFLOAT16_to_FLOAT", "bf16 is stored as 16-bit integers"},
    {"test_castlike_BFLOAT16_to_FLOAT_expanded",
     "bf16 is stored as 16-bit integers"},
    {"test_castlike_FLOAT_to_BFLOAT16", "bf16 is stored as 16-bit integers"},
    {"test_castlike_FLOAT_to_BFLOAT16_expanded",
     "bf16 is stored as 16-bit integers"},
    {"init_as_input", "feeds a fixed input, as only assay validate does"},
};

static const char *why_excepted(const char *name)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (strcmp(exceptions[i].name, name) == 0)
            return exceptions[i].reason;
    return NULL;
}

/* Which inputs become initializers when a model is tried again. */
typedef enum Freeze { FREEZE_INTEGERS, FREEZE_SMALL, FREEZE_COUNT } Freeze;

static bool is_frozen(Freeze freeze, size_t index, const Onnx__TensorProto *t)
{
    /* Some files hold no tensor but a sequence: any numbers come out. */
    double count = 1;

    if (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ||
        t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT32 ||
        t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
        return true;
    for (size_t i = 0; i < t->n_dims; i++)
        count *= (double)t->dims[i];
    return freeze == FREEZE_SMALL && index > 0 && count <= 8;
}

/* Writes the model with some of its inputs as initializers to `to`. */
static bool freeze_inputs(Arena *arena, const char *folder, Freeze freeze,
                          const char *to)
{
    size_t size;
    uint8_t *data =
        read_file(arena, arena_printf(arena, "%s/model.onnx", folder), &size);
    Onnx__ModelProto *model =
        data ? onnx__model_proto__unpack(NULL, size, data) : NULL;

    if (!model || !model->graph)
        return false;
    Onnx__GraphProto *graph = model->graph;
    size_t count = graph->n_initializer;
    Onnx__TensorProto **all =
        ARENA_ARRAY(arena, Onnx__TensorProto *, count + graph->n_input + 1);
    for (size_t i = 0; i < count; i++)
        all[i] = graph->initializer[i];
    for (size_t i = 0; i < graph->n_input; i++) {
        data = read_file(
            arena,
            arena_printf(arena, "%s/test_data_set_0/input_%zu.pb", folder, i),
            &size);
        Onnx__TensorProto *t =
            data ? onnx__tensor_proto__unpack(NULL, size, data) : NULL;
        if (!t || !is_frozen(freeze, i, t))
            continue;
        t->name = graph->input[i]->name;
        all[count++] = t;
    }
    graph->initializer = all;
    graph->n_initializer = count;
    size = onnx__model_proto__get_packed_size(model);
    data = arena_alloc(arena, size);
    onnx__model_proto__pack(model, data);
    FILE *file = fopen(to, "wb");
    bool ok = file && fwrite(data, 1, size, file) == size;
    return file && fclose(file) == 0 && ok;
}

/* What every compiled graph needs: types and shapes are known. A type that
 * comes out unknown depends on the values of inputs. */
static bool is_typed(Arena *arena, const Graph *source)
{
    Graph *g = graph_copy(arena, source);
    PassContext c = {.graph = g, .evaluate = evaluate_node};
    int errors = g->diag->errors.count;

    pass_infer(&c);
    if (g->diag->errors.count > errors)
        return false;
    for (int i = 0; i < g->tensors.count; i++) {
        const TensorType *type = &g->tensors.data[i]->type;
        if (type->dtype == DT_INVALID || !type_is_static(type))
            return false;
    }
    return true;
}

/* The test's array for each graph input, by its place in the model. */
static Array **read_inputs(Arena *arena, Diag *diag, const Graph *g,
                           const char *folder, const char *model_path)
{
    Array **inputs = ARENA_ARRAY(arena, Array *, g->inputs.count + 1);
    size_t size;
    uint8_t *data = read_file(arena, model_path, &size);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, size, data);

    for (int i = 0; i < g->inputs.count; i++)
        for (size_t k = 0; k < model->graph->n_input; k++)
            if (strcmp(model->graph->input[k]->name,
                       g->inputs.data[i]->name) == 0)
                inputs[i] = onnx_read_tensor(
                    arena, diag,
                    arena_printf(arena, "%s/test_data_set_0/input_%zu.pb",
                                 folder, k));
    for (int i = 0; i < g->inputs.count; i++)
        if (!inputs[i])
            return NULL;
    return inputs;
}

/* Any difference ends the process through cmocka's fail_msg. */
static void check_outputs(const char *what, Arena *arena, Diag *diag,
                          const char *folder, Array *const *got, int count)
{
    for (int i = 0; i < count; i++) {
        Array *want = onnx_read_tensor(
            arena, diag,
            arena_printf(arena, "%s/test_data_set_0/output_%d.pb", folder, i));
        if (!want)
            fail_msg("output_%d.pb cannot be read", i);
        bool same = got[i]->rank == want->rank;
        for (int k = 0; same && k < want->rank; k++)
            same = got[i]->dims[k] == want->dims[k];
        if (!same)
            fail_msg("%s: output %d has another shape", what, i);
        check_close(arena_printf(arena, "%s, output %d", what, i), got[i],
                    want,
                    want->dtype == DT_BF16  ? 1e-2
                    : want->dtype == DT_F16 ? 2e-3
                                            : 1e-4);
    }
}

/* Runs all nodes in order, each by its definition; shape arithmetic and
 * small inputs become constants on the way, as the type rules want them. */
static bool run_definitions(Arena *arena, const char *folder)
{
    const char *path = arena_printf(arena, "%s/model.onnx", folder);
    Diag *diag = diag_new(arena, NULL);
    Graph *g = onnx_import(arena, diag, ops_builtin(), path, NULL);
    Array **inputs = g ? read_inputs(arena, diag, g, folder, path) : NULL;

    if (!inputs)
        return false;
    Array **values = ARENA_ARRAY(arena, Array *, g->next_id + 1);
    for (int i = 0; i < g->inputs.count; i++) {
        Tensor *t = g->inputs.data[i];
        values[t->id] = inputs[i];
        t->type = type_of_array(inputs[i]);
        if (t->type.dtype == DT_I64 || t->type.dtype == DT_BOOL ||
            array_count(inputs[i]) <= 8)
            t->value = inputs[i];
    }
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        const Array *in[MAX_OP_INPUTS] = {NULL};
        Array *out[MAX_OP_OUTPUTS] = {NULL};
        if (!op_infer(g, node) || !op_check_lowerable(g, node))
            return false;
        for (int k = 0; k < node->inputs.count; k++) {
            const Tensor *t = node->inputs.data[k];
            if (t)
                in[k] = t->value ? t->value : values[t->id];
        }
        if (!ops_run_node(arena, diag, node, in, out))
            return false;
        for (int k = 0; k < node->outputs.count; k++) {
            Tensor *t = node->outputs.data[k];
            if (!t)
                continue;
            values[t->id] = out[k];
            if (out[k]->dtype == DT_I64 && out[k]->rank <= 1)
                t->value = out[k];
        }
    }
    Array **results = ARENA_ARRAY(arena, Array *, g->outputs.count + 1);
    for (int i = 0; i < g->outputs.count; i++)
        results[i] = values[g->outputs.data[i]->id];
    check_outputs("definitions", arena, diag, folder, results,
                  g->outputs.count);
    return true;
}

static Verdict run_compiler(Arena *arena, const char *folder)
{
    const char *path = arena_printf(arena, "%s/model.onnx", folder);
    char frozen[] = "/tmp/assay-node-XXXXXX";
    Diag *diag = diag_new(arena, NULL);
    Graph *g = onnx_import(arena, diag, ops_builtin(), path, NULL);
    const char *reason = diag->errors.count ? diag->errors.data[0] : "";

    for (int f = 0; f < FREEZE_COUNT && (!g || !is_typed(arena, g)); f++) {
        int fd = mkstemp(frozen);
        if (fd < 0)
            return FAILED;
        close(fd);
        diag = diag_new(arena, NULL);
        if (freeze_inputs(arena, folder, (Freeze)f, frozen))
            g = onnx_import(arena, diag, ops_builtin(), frozen, NULL);
        unlink(frozen);
        memcpy(frozen, "/tmp/assay-node-XXXXXX", sizeof frozen);
    }
    if (!g || !is_typed(arena, g)) {
        printf("%s", g ? "its types are not known" : reason);
        return REFUSED;
    }
    Array **inputs = read_inputs(arena, diag, g, folder, path);
    if (!inputs) {
        printf("inputs are not plain arrays");
        return REFUSED;
    }
    int count = g->outputs.count;
    check_outputs("reference", arena, diag, folder,
                  run_reference(arena, g, inputs), count);
    for (int level = 0; level <= 2; level += 2) {
        PassOptions options = {.opt_level = level, .verify = true};
        Compiled c =
            compile_graph(arena, g, "x86-64-v3", &options, level == 0);
        c.inputs = inputs;
        check_outputs(level ? "-O2" : "-O0", arena, diag, folder,
                      run_interpreted(&c), count);
    }
    return PASSED;
}

static Verdict run_case(const char *folder)
{
    Arena *arena = arena_new();
    bool defined = run_definitions(arena, folder);
    Verdict verdict = run_compiler(arena, folder);

    arena_free(arena);
    return verdict == REFUSED && defined ? PARTLY : verdict;
}

/* Runs the case in a child; what it prints goes to `message`. */
static Verdict run_guarded(const char *folder, char *message, size_t size)
{
    int pipe_ends[2], status;
    size_t at = 0;

    if (pipe(pipe_ends) != 0)
        return FAILED;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(pipe_ends[0]);
        dup2(pipe_ends[1], 1);
        dup2(pipe_ends[1], 2);
        alarm(SECONDS_PER_CASE);
        int result = run_case(folder);
        fflush(NULL);
        _exit(result);
    }
    close(pipe_ends[1]);
    for (;;) {
        char spill[4096];
        bool room = at + 1 < size;
        ssize_t n = read(pipe_ends[0], room ? message + at : spill,
                         room ? size - 1 - at : sizeof spill);
        if (n <= 0)
            break;
        at += room ? (size_t)n : 0;
    }
    close(pipe_ends[0]);
    message[at] = 0;
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return FAILED;
    for (char *c = message; *c; c++)
        *c = *c == '\n' ? ' ' : *c; /* one line of TAP */
    if (WIFEXITED(status) && WEXITSTATUS(status) < VERDICTS)
        return (Verdict)WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        snprintf(message + at, size - at, " (signal %d)", WTERMSIG(status));
    return FAILED;
}

static int by_name(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static int list_folder(Arena *arena, const char *root, char **names)
{
    DIR *dir = opendir(root);
    int count = 0;

    if (!dir)
        return 0;
    for (struct dirent *e; (e = readdir(dir)) && count < MAX_CASES;)
        if (access(arena_printf(arena, "%s/%s/model.onnx", root, e->d_name),
                   R_OK) == 0)
            names[count++] = arena_strdup(arena, e->d_name);
    closedir(dir);
    qsort(names, (size_t)count, sizeof *names, by_name);
    return count;
}

static void run_suite(Tally *tally, const Suite *suite, const char *only,
                      bool verbose)
{
    Arena *arena = arena_new();
    char **names = ARENA_ARRAY(arena, char *, MAX_CASES);
    char message[16384];
    int total[VERDICTS] = {0};
    int count = list_folder(arena, suite->folder, names);

    if (count == 0)
        report(tally, true,
               arena_printf(arena, "%s # SKIP there are none in %s",
                            suite->name, suite->folder));
    for (int i = 0; i < count; i++) {
        const char *name = names[i], *reason = why_excepted(name);
        if (only && !strstr(name, only))
            continue;
        if (reason) {
            report(
                tally, true,
                arena_printf(arena, "%s # SKIP %s: %s", name, name, reason));
            continue;
        }
        Verdict verdict =
            run_guarded(arena_printf(arena, "%s/%s", suite->folder, name),
                        message, sizeof message);
        total[verdict]++;
        if (verdict == FAILED)
            report(tally, false,
                   arena_printf(arena, "%s: %.1000s", name, message));
        else if (verdict == PARTLY)
            report(
                tally, true,
                arena_printf(arena, "%s, uncompiled: %.200s", name, message));
        else if (verdict == PASSED)
            report(tally, true, name);
        else if (verbose)
            printf("# refused: %s: %.200s\n", name, message);
    }
    if (total[REFUSED])
        report(tally, true,
               arena_printf(arena,
                            "%s # SKIP %d cases are beyond Assay's operators "
                            "and types; --verbose lists them",
                            suite->name, total[REFUSED]));
    if (count && !only)
        report(tally,
               total[PASSED] >= suite->passed &&
                   total[PASSED] + total[PARTLY] >=
                       suite->passed + suite->partly,
               arena_printf(arena,
                            "%s: %d passed (at least %d), %d more "
                            "uncompiled (at least %d), %d failed",
                            suite->name, total[PASSED], suite->passed,
                            total[PARTLY], suite->partly, total[FAILED]));
    arena_free(arena);
}

int main(int argc, char **argv)
{
    const char *shared = getenv("ASSAY_SHARED");
    const char *newer = getenv("ASSAY_NEWER_CASES");
    Arena *arena = arena_new();
    const Suite suites[] = {
        {"libonnx-testdata", "/usr/share/libonnx-testdata/data/node", 856, 0},
        {"extra cases",
         arena_printf(arena, "%s/cases/cases", shared ? shared : "../shared"),
         70, 0},
        {"newer cases", newer ? newer : "$ASSAY_NEWER_CASES", 267, 0},
    };
    Tally tally = {0};
    int at = 1;
    bool verbose = at < argc && strcmp(argv[at], "--verbose") == 0;

    at += verbose;
    if (at < argc) {
        const Suite own = {"given cases", argv[at], 0, 0};
        run_suite(&tally, &own, at + 1 < argc ? argv[at + 1] : NULL, verbose);
    } else {
        for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
            run_suite(&tally, &suites[i], NULL, verbose);
    }
    printf("1..%d\n", tally.tests);
    arena_free(arena);
    return tally.failed ? 1 : 0;
}
