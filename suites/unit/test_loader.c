/* The loader, with an artifact made by hand: a Program without compiler,
 * its code from a few lines of C. It runs, gives its tensors away, and what
 * is damaged or foreign is refused for the right reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "codegen/codegen.h"
#include "codegen/facts.h"
#include "harness/runner.h"
#include "runtime/artifact.h"
#include "runtime/runtime.h"
#include "targets/cpu.h"

/* t = x * w, stored transposed; y = t + 1. In two steps, the first of them
 * parallel. */
static const char model_code[] =
    "#include \"runtime/abi.h\"\n"
    "const int32_t assay_model_abi = ASSAY_ABI_VERSION;\n"
    "static void scale(void *context, int64_t begin, int64_t end)\n"
    "{\n"
    "    const AssayRun *run = context;\n"
    "    const float *x = run->inputs[0];\n"
    "    const float *w = (const float *)run->weights;\n"
    "    float *t = (float *)(run->arena + 64);\n"
    "    for (int64_t i = begin; i < end; i++)\n"
    "        for (int j = 0; j < 3; j++)\n"
    "            t[j * 2 + i] = x[i * 3 + j] * w[j];\n"
    "}\n"
    "void assay_model_run(const AssayRun *run)\n"
    "{\n"
    "    if (run->on_step) run->on_step(run->user, 0, 0);\n"
    "    run->parallel_for(run->pool, scale, (void *)run, 2);\n"
    "    if (run->on_step) run->on_step(run->user, 0, 1);\n"
    "    if (run->on_step) run->on_step(run->user, 1, 0);\n"
    "    const float *t = (const float *)(run->arena + 64);\n"
    "    float *y = run->outputs[0];\n"
    "    for (int i = 0; i < 2; i++)\n"
    "        for (int j = 0; j < 3; j++) y[i * 3 + j] = t[j * 2 + i] + 1;\n"
    "    if (run->on_step) run->on_step(run->user, 1, 1);\n"
    "}\n";

typedef struct Fixture {
    char dir[64];
    Arena *arena;
    Diag *diag;
    Program *program;
    Target target;
} Fixture;

static char *join(Fixture *f, const char *name)
{
    return arena_printf(f->arena, "%s/%s", f->dir, name);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static char *read_text(Fixture *f, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = arena_alloc(f->arena, 1 << 20);
    size_t size = fread(text, 1, (1 << 20) - 1, file);
    text[size] = 0;
    fclose(file);
    return text;
}

static void add_buffer(Program *p, const char *name, ProgramBufferKind kind,
                       Layout layout, int64_t offset, const Tensor *tensor,
                       const Array *value)
{
    ProgramBuffer b = {.name = name,
                       .kind = kind,
                       .dtype = DT_F32,
                       .rank = value ? 1 : 2,
                       .dims = {value ? 3 : 2, 3},
                       .layout = layout,
                       .bytes = value ? 12 : 24,
                       .offset = offset,
                       .alias_of = -1,
                       .value = value,
                       .tensor = tensor};
    vec_push(p->arena, &p->buffers, b);
}

static Program *make_program(Fixture *f)
{
    static const char *const no_flags[] = {NULL};
    f->target = (Target){.name = "test", .cpu_flags = no_flags};
    Program *p = ARENA_NEW(f->arena, Program);
    p->arena = f->arena;
    p->name = "größer \"test\"";
    p->target = &f->target;
    p->input_count = p->output_count = 1;
    p->arena_bytes = 128;
    p->arena_bound = 24;
    p->weight_bytes = 64;
    int order[] = {1, 0};
    Array *w = array_new(f->arena, DT_F32, 1, (int64_t[]){3});
    for (int i = 0; i < 3; i++)
        array_set(w, i, 10 * (i + 1));
    Tensor *t = ARENA_NEW(f->arena, Tensor);
    t->name = "t";
    vec_push(f->arena, &t->sources, "source_t");
    Layout row = layout_row_major(2);
    add_buffer(p, "x", PB_INPUT, row, 0, NULL, NULL);
    add_buffer(p, "w", PB_CONSTANT, layout_row_major(1), 0, NULL, w);
    add_buffer(p, "t", PB_ARENA, layout_permuted(2, order), 64, t, NULL);
    add_buffer(p, "y", PB_OUTPUT, row, 0, NULL, NULL);
    Kernel *kernel = ARENA_NEW(f->arena, Kernel);
    kernel->name = "scale";
    kernel->hash = 0xfedcba9876543210u;
    kernel->flops = 6;
    ProgramKernel pk = {.kernel = kernel, .code_bytes = 5};
    vec_push(f->arena, &p->kernels, pk);
    Node *node = ARENA_NEW(f->arena, Node);
    node->name = "mul";
    Group *group = ARENA_NEW(f->arena, Group);
    vec_push(f->arena, &group->nodes, node);
    ProgramStep step = {.group = group};
    vec_push(f->arena, &p->steps, step);
    vec_push(f->arena, &p->steps, step);
    return p;
}

static void build_code(Fixture *f, const char *text)
{
    Facts facts = program_facts(f->program);
    char *carried = arena_strdup(
        f->arena, "\nconst unsigned long assay_model_facts[] = {");
    for (int i = 0; i < FACT_COUNT; i++)
        carried = arena_printf(f->arena, "%s%llu%s", carried,
                               (unsigned long long)facts.item[i],
                               i + 1 < FACT_COUNT ? "u, " : "u};\n");
    write_text(join(f, "model.c"),
               arena_printf(f->arena, "%s%s", text, carried));
    const char *const argv[] = {"cc",    "-O1",
                                "-fPIC", "-Icompiler",
                                "-c",    join(f, "model.c"),
                                "-o",    join(f, "model.o"),
                                NULL};
    assert_true(process_ok(argv, NULL));
    const char *objects[] = {join(f, "model.o")};
    if (!codegen_link_shared(f->diag, objects, 1, join(f, "model.so")))
        fail_msg("%s", f->diag->errors.data[0]);
}

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    strcpy(f->dir, "/tmp/assay loader XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    f->arena = arena_new();
    f->diag = diag_new(f->arena, NULL);
    f->program = make_program(f);
    build_code(f, model_code);
    assert_true(
        program_write_weights(f->program, f->diag, join(f, "weights.bin")));
    assert_true(
        artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    const char *const argv[] = {"rm", "-rf", f->dir, NULL};
    process_ok(argv, NULL);
    arena_free(f->arena);
    free(f);
    return 0;
}

typedef struct Seen {
    Artifact *artifact;
    int steps[4][2];
    int count;
    float tapped[6];
} Seen;

static void on_step(void *user, int32_t step, int32_t is_end)
{
    Seen *seen = user;
    seen->steps[seen->count][0] = step;
    seen->steps[seen->count++][1] = is_end;
    const ArtifactTensor *t = &artifact_info(seen->artifact)->tensors[0];
    if (is_end && step == t->step) {
        Array array = {
            .dtype = DT_F32, .rank = 2, .dims = {2, 3}, .data = seen->tapped};
        artifact_tap(seen->artifact, t, &array);
    }
}

static const float x[6] = {1, 2, 3, 4, 5, 6};

static void loads_and_runs(void **state)
{
    Fixture *f = *state;
    for (int threads = 1; threads <= 3; threads++) {
        Artifact *a;
        AssayError error;
        LoadOptions options = {.threads = threads};
        if (artifact_load(f->dir, &options, &a, &error) != ASSAY_OK)
            fail_msg("%s", error.text);
        assert_int_equal(pool_threads(artifact_pool(a)), threads);
        float y[6] = {0};
        const void *in[] = {x};
        void *out[] = {y};
        artifact_fill_arena(a, 0xff);
        size_t before = mallinfo2().uordblks;
        artifact_run(a, in, out);
        assert_int_equal(mallinfo2().uordblks, before);
        for (int i = 0; i < 6; i++)
            assert_true(y[i] == x[i] * 10 * (float)(i % 3 + 1) + 1);
        artifact_free(a);
    }
}

static void describes_itself(void **state)
{
    Fixture *f = *state;
    ArtifactInfo info;
    AssayError error;
    assert_int_equal(artifact_read_info(f->arena, f->dir, &info, &error),
                     ASSAY_OK);
    assert_string_equal(info.model, "größer \"test\"");
    assert_int_equal(info.input_count, 1);
    assert_string_equal(info.inputs[0].name, "x");
    assert_int_equal(info.inputs[0].bytes, 24);
    assert_int_equal(info.outputs[0].dims[1], 3);
    assert_int_equal(info.step_count, 2);
    assert_string_equal(info.steps[1].kernel, "scale");
    assert_string_equal(info.steps[1].nodes[0], "mul");
    assert_null(info.steps[1].nodes[1]);
    assert_true(info.kernels[0].loops_hash == 0xfedcba9876543210u);
    assert_true(info.kernels[0].flops == 6);
    assert_string_equal(info.tensors[0].sources[0], "source_t");
    assert_int_equal(info.arena_bound, 24);
}

static void taps_in_row_major(void **state)
{
    Fixture *f = *state;
    Artifact *a;
    AssayError error;
    assert_int_equal(artifact_load(f->dir, NULL, &a, &error), ASSAY_OK);
    Seen seen = {.artifact = a};
    artifact_on_step(a, on_step, &seen);
    float y[6];
    const void *in[] = {x};
    void *out[] = {y};
    artifact_run(a, in, out);
    static const int order[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    assert_int_equal(seen.count, 4);
    assert_memory_equal(seen.steps, order, sizeof order);
    for (int i = 0; i < 6; i++)
        assert_true(seen.tapped[i] == x[i] * 10 * (float)(i % 3 + 1));
    artifact_free(a);
}

static void expect_refusal(Fixture *f, AssayStatus status, const char *word)
{
    Artifact *a;
    AssayError error;
    assert_int_equal(artifact_load(f->dir, NULL, &a, &error), status);
    assert_null(a);
    if (!strstr(error.text, word))
        fail_msg("\"%s\" does not say \"%s\"", error.text, word);
    assert_string_not_equal(status_text(status), "?");
}

static void damage_is_refused(void **state)
{
    Fixture *f = *state;
    const char *weights = join(f, "weights.bin");
    FILE *file = fopen(weights, "r+b");
    fputc('!', file);
    fclose(file);
    expect_refusal(f, ASSAY_DAMAGED, "weights.bin: its checksum");
    assert_int_equal(truncate(weights, 63), 0);
    expect_refusal(f, ASSAY_DAMAGED, "63 bytes instead of 64");
    unlink(weights);
    expect_refusal(f, ASSAY_NO_ARTIFACT, "weights.bin");
}

/* Weights that no cache holds come into memory another way. */
static void large_weights(void **state)
{
    Fixture *f = *state;
    const char *weights = join(f, "weights.bin");
    f->program->weight_bytes = (5 << 20) + 64;
    build_code(f, model_code);
    assert_true(program_write_weights(f->program, f->diag, weights));
    assert_true(
        artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
    loads_and_runs(state);
    FILE *file = fopen(weights, "r+b");
    fseek(file, 3 << 20, SEEK_SET);
    fputc('!', file);
    fclose(file);
    expect_refusal(f, ASSAY_DAMAGED, "weights.bin: its checksum");
    Artifact *a;
    AssayError error;
    LoadOptions trusting = {.skip_checksums = true};
    assert_int_equal(artifact_load(f->dir, &trusting, &a, &error), ASSAY_OK);
    artifact_free(a);
    assert_int_equal(truncate(weights, 4 << 20), 0);
    expect_refusal(f, ASSAY_DAMAGED, "4194304 bytes instead of 5242944");
    unlink(weights);
    expect_refusal(f, ASSAY_NO_ARTIFACT, "weights.bin");
}

static void truncated_code_is_refused(void **state)
{
    Fixture *f = *state;
    struct stat info;
    stat(join(f, "model.so"), &info);
    assert_int_equal(truncate(join(f, "model.so"), info.st_size / 2), 0);
    expect_refusal(f, ASSAY_DAMAGED, "model.so");
}

/* Replaces one piece of text in the manifest. */
static void edit_manifest(Fixture *f, const char *from, const char *to)
{
    char *text = read_text(f, join(f, "manifest.json"));
    char *at = strstr(text, from);
    assert_non_null(at);
    char *edited = arena_printf(f->arena, "%.*s%s%s", (int)(at - text), text,
                                to, at + strlen(from));
    write_text(join(f, "manifest.json"), edited);
}

static void foreign_is_refused(void **state)
{
    Fixture *f = *state;
    edit_manifest(f, "\"cpu_flags\": []", "\"cpu_flags\": [\"mips3d\"]");
    expect_refusal(f, ASSAY_MISSING_CPU, "mips3d");
    edit_manifest(f, cpu_architecture(), "s390x");
    expect_refusal(f, ASSAY_WRONG_MACHINE, "s390x");
    edit_manifest(f, "\"abi\": 5", "\"abi\": 99");
    expect_refusal(f, ASSAY_WRONG_ABI, "99");
}

static void other_abi_in_code_is_refused(void **state)
{
    Fixture *f = *state;
    build_code(f, "int assay_model_abi = 7; void assay_model_run(void) {}");
    assert_true(
        artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
    expect_refusal(f, ASSAY_WRONG_ABI, "version 7");
    build_code(f, "int nothing;");
    assert_true(
        artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
    expect_refusal(f, ASSAY_BAD_CODE, "assay_model_run");
}

static void bad_manifest_is_refused(void **state)
{
    Fixture *f = *state;
    static const char *const edits[][3] = {
        {"\"arena_bytes\": 128", "\"arena_bytes\": 80", "offset"},
        {"\"kernel\": 0", "\"kernel\": 7", "kernel"},
        {"\"name\": \"model.so\"", "\"name\": \"../model.so\"", "name"},
        {"\"dtype\": \"f32\"", "\"dtype\": \"f99\"", "dtype"},
        {"\"taps\"", "\"taps", "manifest.json"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        assert_true(
            artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
        edit_manifest(f, edits[i][0], edits[i][1]);
        expect_refusal(f, ASSAY_BAD_MANIFEST, edits[i][2]);
    }
    unlink(join(f, "manifest.json"));
    expect_refusal(f, ASSAY_NO_ARTIFACT, "manifest.json");
}

/* Each would have the kernels read or write elsewhere than the runtime
 * expects, or hide it. */
static void edited_manifest_is_refused(void **state)
{
    Fixture *f = *state;
    static const char input[] = "\"inputs\": [\n  {\n   \"name\": \"x\",\n"
                                "   \"dtype\": \"f32\",\n   \"dims\": [\n"
                                "    2,\n    3\n   ]\n  }\n ]";
    static const char output[] = "\"outputs\": [\n  {\n   \"name\": \"y\",\n"
                                 "   \"dtype\": \"f32\",\n   \"dims\": [\n"
                                 "    2,\n    3\n   ]\n  }\n ]";
#define Y(dtype, dims)                                                        \
    "{\"name\": \"y\", \"dtype\": \"" dtype "\", \"dims\": " dims "}"
    static const char *const edits[][3] = {
        {input, "\"inputs\": []", "inputs"},
        {input, "\"inputs\": [" Y("f32", "[2, 3, 1]") "]", "inputs"},
        {output, "\"outputs\": []", "outputs"},
        {output, "\"outputs\": [" Y("f32", "[1, 1]") "]", "outputs"},
        {output, "\"outputs\": [" Y("f32", "[0]") "]", "outputs"},
        {output, "\"outputs\": [" Y("f32", "[2, 100000]") "]", "outputs"},
        {output, "\"outputs\": [" Y("f64", "[2, 3]") "]", "outputs"},
        {output,
         "\"outputs\": [" Y("f32", "[2, 3]") ", " Y("f32", "[2, 3]") "]",
         "outputs"},
        {"\"weight_bytes\": 64", "\"weight_bytes\": 1", "weight_bytes"},
        {"\"arena_bytes\": 128", "\"arena_bytes\": 256", "arena_bytes"},
        {"\"tensors\": [", "\"tensors\": [], \"former\": [", "tensors"},
        {"\"offset\": 64", "\"offset\": 0", "tensors"},
    };
#undef Y
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        assert_true(
            artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
        edit_manifest(f, edits[i][0], edits[i][1]);
        expect_refusal(f, ASSAY_DAMAGED, edits[i][2]);
    }
}

/* x and y of R rows and C columns, in storage of 2 and 3. */
static const char open_code[] =
    "#include \"runtime/abi.h\"\n"
    "const int32_t assay_model_abi = ASSAY_ABI_VERSION;\n"
    "void assay_model_run(const AssayRun *run)\n"
    "{\n"
    "    const float *x = run->inputs[0];\n"
    "    float *t = (float *)(run->arena + 64), *y = run->outputs[0];\n"
    "    for (int i = 0; i < run->extents[0]; i++)\n"
    "        for (int j = 0; j < run->extents[1]; j++) {\n"
    "            if (run->on_step) run->on_step(run->user, 0, 0);\n"
    "            t[j * 2 + i] = x[i * 3 + j] * 10;\n"
    "            y[i * 3 + j] = t[j * 2 + i] + 1;\n"
    "            if (run->on_step) run->on_step(run->user, 0, 1);\n"
    "        }\n"
    "}\n";

static void open_dims(Fixture *f)
{
    Program *p = f->program;
    Extent rows = extent_ranged(f->arena, "R", 1, 2);
    Extent columns = extent_ranged(f->arena, "C", 1, 3);
    vec_push(f->arena, &p->symbols, rows);
    vec_push(f->arena, &p->symbols, columns);
    p->input_symbols = 2;
    for (int i = 0; i < p->buffers.count; i++) {
        ProgramBuffer *b = &p->buffers.data[i];
        if (b->value)
            continue;
        Tensor *t = ARENA_NEW(f->arena, Tensor);
        if (b->tensor)
            *t = *b->tensor;
        t->type = (TensorType){DT_F32, 2, {rows, columns}, NULL};
        b->tensor = t;
        /* Inputs and outputs are no inner tensors. */
        b->first_step = b->kind == PB_ARENA ? 0 : 1;
    }
    build_code(f, open_code);
    assert_true(
        artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
}

typedef struct OpenSeen {
    Artifact *artifact;
    float tapped[6];
} OpenSeen;

static void on_open_step(void *user, int32_t step, int32_t is_end)
{
    OpenSeen *seen = user;
    const ArtifactTensor *t = &artifact_info(seen->artifact)->tensors[0];
    ArtifactValue v = {.rank = 2, .dims = {2, 3}, .extents = t->extents};
    Array array = {.dtype = DT_F32, .rank = 2, .data = seen->tapped};
    (void)step;
    artifact_dims(seen->artifact, &v, array.dims);
    if (is_end)
        artifact_tap(seen->artifact, t, &array);
}

/* Arrays without gaps outside, whatever the dimensions; nothing is written
 * behind them. */
static void runs_any_dims(void **state)
{
    Fixture *f = *state;
    Artifact *a;
    AssayError error;
    open_dims(f);
    assert_int_equal(artifact_load(f->dir, NULL, &a, &error), ASSAY_OK);
    const ArtifactInfo *info = artifact_info(a);
    assert_int_equal(info->dim_count, 2);
    assert_int_equal(info->inputs[0].bytes, 24);
    for (int64_t rows = 1; rows <= 2; rows++)
        for (int64_t columns = 1; columns <= 3; columns++) {
            float y[7] = {9, 9, 9, 9, 9, 9, 9};
            const void *in[] = {x};
            void *out[] = {y};
            int64_t shape[] = {rows, columns}, values[] = {0, 0}, dims[2];
            const int64_t *shapes[] = {shape};
            OpenSeen seen = {a, {0}};
            assert_int_equal(artifact_find_dims(info, shapes, values, &error),
                             ASSAY_OK);
            assert_int_equal(artifact_set_dims(a, values, &error), ASSAY_OK);
            artifact_on_step(a, on_open_step, &seen);
            artifact_run(a, in, out);
            artifact_dims(a, &info->outputs[0], dims);
            assert_int_equal(dims[0], rows);
            assert_int_equal(dims[1], columns);
            for (int i = 0; i < 7; i++)
                assert_true(y[i] == (i < rows * columns ? x[i] * 10 + 1 : 9));
            for (int i = 0; i < rows * columns; i++)
                assert_true(seen.tapped[i] == x[i] * 10);
        }
    artifact_free(a);
}

static void wrong_dims_are_told(void **state)
{
    Fixture *f = *state;
    Artifact *a;
    AssayError error;
    open_dims(f);
    assert_int_equal(artifact_load(f->dir, NULL, &a, &error), ASSAY_OK);
    ArtifactInfo info = *artifact_info(a);
    int64_t values[] = {2, 4}, many[] = {3, 1}, few[] = {1, 1};
    const int64_t *shapes[] = {many, few};
    assert_int_equal(artifact_set_dims(a, values, &error), ASSAY_BAD_SHAPE);
    assert_non_null(strstr(error.text, "C is compiled for 1 to 3, not for 4"));
    assert_int_equal(artifact_find_dims(&info, shapes, values, &error),
                     ASSAY_BAD_SHAPE);
    assert_non_null(strstr(error.text, "\"x\": axis 0 has 3 elements"));
    assert_non_null(strstr(error.text, "R is compiled for 1 to 2"));
    /* A second input of another mind. */
    ArtifactValue inputs[] = {info.inputs[0], info.inputs[0]};
    info.inputs = inputs;
    info.input_count = 2;
    inputs[1].name = "z";
    many[0] = 2;
    assert_int_equal(artifact_find_dims(&info, shapes, values, &error),
                     ASSAY_BAD_SHAPE);
    assert_non_null(strstr(error.text, "\"z\": axis 0 has 1 elements"));
    assert_non_null(
        strstr(error.text, "\"x\" says that the dimension R is 2"));
    artifact_free(a);
    static const char *const edits[][3] = {
        {"\"upper\": 3", "\"upper\": 2", "inputs"},
        {"\"lower\": 1", "\"lower\": 0", "inputs"},
        {"\"R\",\n    \"C\"", "\"C\",\n    \"R\"", "inputs"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        edit_manifest(f, edits[i][0], edits[i][1]);
        expect_refusal(f, ASSAY_DAMAGED, edits[i][2]);
        assert_true(
            artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
    }
    edit_manifest(f, "\"upper\": 3", "\"upper\": 0");
    expect_refusal(f, ASSAY_BAD_MANIFEST, "dims");
}

static void is_deterministic(void **state)
{
    Fixture *f = *state;
    char *first = read_text(f, join(f, "manifest.json"));
    sleep(1); /* so that a time stamp anywhere would show */
    build_code(f, model_code);
    assert_true(
        artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
    assert_string_equal(read_text(f, join(f, "manifest.json")), first);
}

static void archive_is_deterministic(void **state)
{
    Fixture *f = *state;
    const char *objects[] = {join(f, "model.o")};
    assert_true(codegen_archive(f->diag, objects, 1, join(f, "a.a")));
    sleep(1);
    assert_int_equal(chmod(objects[0], 0600), 0);
    assert_true(codegen_archive(f->diag, objects, 1, join(f, "b.a")));
    const char *const argv[] = {"cmp", join(f, "a.a"), join(f, "b.a"), NULL};
    assert_true(process_ok(argv, NULL));
}

static void link_fault_is_told(void **state)
{
    Fixture *f = *state;
    write_text(join(f, "bad.o"), "not an object");
    const char *objects[] = {join(f, "bad.o")};
    assert_false(codegen_link_shared(f->diag, objects, 1, join(f, "bad.so")));
    assert_int_equal(f->diag->errors.count, 1);
    assert_non_null(strstr(f->diag->errors.data[0], "bad.o"));
    assert_int_not_equal(access(join(f, "bad.so"), F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* A model that does more than it should, each in its own way. */
static void repeats_find_faults(void **state)
{
    static const struct {
        const char *more, *key; /* at the end of the run; what finds it */
    } rows[] = {
        {"", NULL},
        {"y[6] = 1;", "guards_untouched"},
        {"y[-1] = 1;", "guards_untouched"},
        {"((float *)run->inputs[0])[0] = 7;", "inputs_untouched"},
        {"static int calls; y[0] += calls++;", "repeat_identical"},
        {"y[0] += *(float *)run->arena;", "repeat_identical"},
    };
    static const char *const keys[] = {"repeat_identical", "inputs_untouched",
                                       "guards_untouched"};
    Fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *code = arena_strndup(f->arena, model_code,
                                   strlen(model_code) - 2); /* "}\n" */
        build_code(f, arena_printf(f->arena, "%s%s}\n", code, rows[i].more));
        assert_true(
            artifact_write_manifest(f->diag, f->program, f->dir, "model.so"));
        Artifact *a;
        AssayError fault;
        assert_int_equal(artifact_load(f->dir, NULL, &a, &fault), ASSAY_OK);
        Str error = {0};
        Runner r = {.arena = f->arena,
                    .artifact = a,
                    .info = artifact_info(a),
                    .error = &error};
        json_t *report = json_object();
        assert_true(runner_set_inputs(&r, NULL, 0, 1));
        assert_int_equal(runner_check_repeat(&r, report), !rows[i].key);
        for (int k = 0; k < 3; k++)
            if (!rows[i].key)
                assert_true(json_is_true(json_object_get(report, keys[k])));
        if (rows[i].key)
            assert_true(json_is_false(json_object_get(report, rows[i].key)));
        json_decref(report);
        artifact_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(repeats_find_faults),
        TEST(loads_and_runs),
        TEST(describes_itself),
        TEST(taps_in_row_major),
        TEST(damage_is_refused),
        TEST(large_weights),
        TEST(truncated_code_is_refused),
        TEST(foreign_is_refused),
        TEST(other_abi_in_code_is_refused),
        TEST(bad_manifest_is_refused),
        TEST(edited_manifest_is_refused),
        TEST(runs_any_dims),
        TEST(wrong_dims_are_told),
        TEST(is_deterministic),
        TEST(archive_is_deterministic),
        TEST(link_fault_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
