/* ONNX's node test cases: a small model, inputs and expected outputs each,
 * in folders CASE/model.onnx and CASE/test_data_set_0/{input,output}_N.pb.
 * Every case goes through the importer; then the reference, and the
 * compiler at -O0 (naive) and -O2 (scheduled) with the interpreter, must
 * give the expected outputs. Each case runs in a process of its own.
 *
 * Many cases pass shapes and axes as inputs, which must be constants here:
 * when a model is refused, its integer inputs are made initializers and it
 * is tried again, then all small inputs but the first. */
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

enum { PASSED = 0, FAILED = 1, REFUSED = 2 };
enum { SECONDS_PER_CASE = 60, MAX_CASES = 4096 };

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

/* Cases whose expected output is not what the operator's text says. */
static const char *const disputed[] = {
    /* Takes 2.4 for the length of an axis of 2 elements. */
    "test_resize_downsample_scales_linear_align_corners",
    /* Written with four digits. */
    "test_averagepool_2d_ceil_last_window_starts_on_pad",
    NULL,
};

static bool is_disputed(const char *name)
{
    for (int i = 0; disputed[i]; i++)
        if (strcmp(disputed[i], name) == 0)
            return true;
    return false;
}

/* Which inputs become initializers when a model is tried again. */
typedef enum Freeze { FREEZE_INTEGERS, FREEZE_SMALL, FREEZE_COUNT } Freeze;

static bool is_frozen(Freeze freeze, size_t index, const Onnx__TensorProto *t)
{
    int64_t count = 1;

    if (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT64 ||
        t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT32)
        return true;
    for (size_t i = 0; i < t->n_dims; i++)
        count *= t->dims[i];
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

    pass_infer(&c);
    if (g->diag->errors.count > source->diag->errors.count)
        return false;
    for (int i = 0; i < g->tensors.count; i++) {
        const TensorType *type = &g->tensors.data[i]->type;
        if (type->dtype == DT_INVALID || !type_is_static(type))
            return false;
    }
    return true;
}

/* A type in the graph that no kernel computes with yet. */
static DType uncomputed_type(Arena *arena, const Graph *source)
{
    Graph *g = graph_copy(arena, source);
    PassContext c = {.graph = g, .evaluate = evaluate_node};

    pass_infer(&c);
    for (int i = 0; i < g->tensors.count; i++) {
        DType t = g->tensors.data[i]->type.dtype;
        if (!g->tensors.data[i]->value && t != DT_F32 && t != DT_I64 &&
            t != DT_I32 && t != DT_BOOL)
            return t;
    }
    return DT_INVALID;
}

/* bfloat16 is written as 16-bit integers in these tests' files. */
static bool has_bfloat(const Graph *g)
{
    for (int i = 0; i < g->tensors.count; i++)
        if (g->tensors.data[i]->type.dtype == DT_BF16)
            return true;
    return false;
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
                    want, want->dtype == DT_F16 ? 2e-3 : 1e-4);
    }
}

static int run_case(const char *folder)
{
    Arena *arena = arena_new();
    const char *path = arena_printf(arena, "%s/model.onnx", folder);
    char frozen[] = "/tmp/assay-node-XXXXXX";
    Diag *diag = diag_new(arena, NULL);
    Graph *g = onnx_import(arena, diag, ops_builtin(), path, NULL, 0);
    const char *reason = diag->errors.count ? diag->errors.data[0] : "";

    for (int f = 0; f < FREEZE_COUNT && (!g || !is_typed(arena, g)); f++) {
        int fd = mkstemp(frozen);
        if (fd < 0)
            return FAILED;
        close(fd);
        diag = diag_new(arena, NULL);
        if (freeze_inputs(arena, folder, (Freeze)f, frozen))
            g = onnx_import(arena, diag, ops_builtin(), frozen, NULL, 0);
        unlink(frozen);
        memcpy(frozen, "/tmp/assay-node-XXXXXX", sizeof frozen);
    }
    if (!g || !is_typed(arena, g) || has_bfloat(g)) {
        printf("%s", g ? "its types are not known, or are bf16" : reason);
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
    DType other = uncomputed_type(arena, g);
    if (other != DT_INVALID) {
        printf("%s is not computed", dtype_name(other));
        return REFUSED;
    }
    for (int level = 0; level <= 2; level += 2) {
        PassOptions options = {.opt_level = level, .verify = true};
        Compiled c =
            compile_graph(arena, g, "x86-64-v3", &options, level == 0);
        c.inputs = inputs;
        check_outputs(level ? "-O2" : "-O0", arena, diag, folder,
                      run_interpreted(&c), count);
    }
    arena_free(arena);
    return PASSED;
}

/* Runs the case in a child; what it prints goes to `message`. */
static int run_guarded(const char *folder, char *message, size_t size)
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
    if (WIFEXITED(status) && WEXITSTATUS(status) <= REFUSED)
        return WEXITSTATUS(status);
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

int main(int argc, char **argv)
{
    Arena *arena = arena_new();
    char **names = ARENA_ARRAY(arena, char *, MAX_CASES);
    static char message[16384];
    int total[3] = {0};
    bool verbose = argc > 1 && strcmp(argv[1], "--verbose") == 0;
    const char *root = argc > 1 + verbose
                           ? argv[1 + verbose]
                           : "/usr/share/libonnx-testdata/data/node";
    const char *only = argc > 2 + verbose ? argv[2 + verbose] : NULL;
    int count = list_folder(arena, root, names);

    if (count == 0) {
        printf("skipped: no test cases in \"%s\" (libonnx-testdata)\n", root);
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if ((only && !strstr(names[i], only)) || is_disputed(names[i]))
            continue;
        int result = run_guarded(arena_printf(arena, "%s/%s", root, names[i]),
                                 message, sizeof message);
        total[result]++;
        if (result == FAILED)
            printf("FAILED %s: %s\n", names[i], message);
        else if (verbose)
            printf("%s %s%s%.200s\n", result ? "refused" : "passed", names[i],
                   *message ? ": " : "", message);
    }
    printf("%d cases: %d passed, %d failed, %d refused\n",
           total[0] + total[1] + total[2], total[PASSED], total[FAILED],
           total[REFUSED]);
    arena_free(arena);
    return total[FAILED] ? 1 : 0;
}
