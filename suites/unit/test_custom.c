/* A user's own operators: the example from its file to checked outputs, on
 * the LLVM and the C backend, and files that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "assay.h"
#include "harness/check.h"
#include "harness/common.h"
#include "harness/custom.h"
#include "harness/inputs.h"
#include "harness/options.h"
#include "import/export.h"
#include "ops/op.h"
#include "runtime/runtime.h"
#include "targets/cpu.h"

typedef struct Fixture {
    Arena *arena;
    char *folder;
    const AssayCustomOps *custom;
    const char *model; /* y = gelu-free block: custom(x, x W, scale, bias) */
} Fixture;

static Tensor *constant(Graph *g, const char *name, int rank,
                        const int64_t *dims)
{
    Array *array = array_new(g->arena, DT_F32, rank, dims);
    inputs_fill(array, hash_text(name), 0, NULL);
    return graph_add_constant(g, name, array);
}

/* The operator between ones that fuse with it. */
static void write_model(Fixture *f)
{
    Diag *diag = diag_new(f->arena, NULL);
    OpTable table = {f->custom->ops, ops_builtin()};
    Graph *g = graph_new(f->arena, diag, "block", &table);
    TensorType type = {.dtype = DT_F32,
                       .rank = 2,
                       .dims = {extent_const(7), extent_const(33)}};
    int64_t square[] = {33, 33};
    Tensor *x = graph_add_input(g, "x", type);
    Tensor *w = constant(g, "w", 2, square);
    Tensor *y = graph_apply(g, "MatMul", "product", (Attrs){0}, x, w, NULL);
    y = graph_apply(g, "example::ResidualLayerNorm", "norm", (Attrs){0}, y, x,
                    constant(g, "scale", 1, square),
                    constant(g, "bias", 1, square), NULL);
    assert_non_null(y);
    y = graph_apply(g, "Relu", "relu", (Attrs){0}, y, NULL);
    graph_mark_output(g, y);
    assert_true(onnx_export(diag, g, f->model));
}

static int set_up(void **state)
{
    Arena *arena = arena_new();
    Fixture *f = ARENA_NEW(arena, Fixture);
    Str error = {0};
    f->arena = arena;
    f->folder = make_temp_folder(arena);
    f->model = arena_printf(arena, "%s/model.onnx", f->folder);
    f->custom =
        custom_load(arena_printf(arena, "%s/../custom/residual_layernorm.so",
                                 program_folder(arena)),
                    &error);
    if (!f->custom)
        print_message("%s", str_text(&error));
    *state = f;
    return !f->custom;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    remove_temp_folder(f->folder);
    arena_free(f->arena);
    return 0;
}

/* Compiled and run against the oracles; the number of kernels. */
static int check_on(Fixture *f, const char *target, const char *mode)
{
    AssayCompiler *compiler = assay_new();
    CompileOptions o;
    compile_options_init(&o);
    assert_true(compile_options_set_mode(&o, mode));
    o.assay.target = target;
    assay_add_ops(compiler, f->custom->ops);
    const char *dir = arena_printf(f->arena, "%s/%s-%s", f->folder,
                                   target ? target : "native", mode);
    if (!assay_load_onnx(compiler, f->model, NULL) ||
        !assay_compile(compiler, &o.assay) ||
        !assay_write_artifact(compiler, dir))
        fail_msg("%s", assay_errors(compiler));
    Artifact *artifact;
    AssayError error;
    assert_int_equal(artifact_load(dir, NULL, &artifact, &error), ASSAY_OK);
    const Graph *g = assay_source_graph(compiler);
    int64_t dims[] = {7, 33};
    Array *x = array_new(f->arena, DT_F32, 2, dims);
    Array *y = array_new(f->arena, DT_F32, 2, dims);
    inputs_fill(x, 1, 0, NULL);
    const void *in[] = {x->data};
    void *out[] = {y->data};
    artifact_run(artifact, in, out);
    const RefOp *const own[] = {f->custom->oracles, NULL};
    ReferenceValues values;
    Str text = {0};
    if (!reference_run(f->arena, g, &x, own, &values, &text))
        fail_msg("%s", str_text(&text));
    /* Without the user's oracles, it says so. */
    assert_false(reference_run(f->arena, g, &x, NULL, &values, &text));
    assert_non_null(strstr(str_text(&text), "no oracle"));
    str_free(&text);
    assert_true(reference_run(f->arena, g, &x, own, &values, &text));
    Difference d =
        compare_arrays(y, values.by_id[g->outputs.data[0]->id], tolerance_f32);
    assert_true(d.agrees && d.max_excess < 0.1);
    int steps = artifact_info(artifact)->step_count;
    artifact_free(artifact);
    assay_free(compiler);
    return steps;
}

static void every_backend(void **state)
{
    Fixture *f = *state;
    write_model(f);
    assert_int_equal(check_on(f, NULL, "O0"), 3);
    assert_int_equal(check_on(f, NULL, "unfused"), 3);
    /* It takes the activation behind it. */
    assert_true(check_on(f, NULL, "fused") < 3);
    assert_true(check_on(f, "c", "fused") < 3);
}

static void unknown_without_it(void **state)
{
    Fixture *f = *state;
    write_model(f);
    AssayCompiler *compiler = assay_new();
    assert_false(assay_load_onnx(compiler, f->model, NULL));
    assert_non_null(
        strstr(assay_errors(compiler), "ResidualLayerNorm (domain example"));
    assay_free(compiler);
}

static void refused(Fixture *f, const char *path, const char *word)
{
    Str error = {0};
    assert_null(custom_load(path, &error));
    if (!strstr(str_text(&error), word))
        fail_msg("\"%s\" does not say \"%s\"", str_text(&error), word);
    str_free(&error);
    (void)f;
}

static void what_is_none(void **state)
{
    Fixture *f = *state;
    Str error = {0};
    const char *text = arena_printf(f->arena, "%s/text.so", f->folder);
    refused(f, "/no/such/ops.so", "no/such");
    assert_true(write_file(text, "no ELF", 6, &error));
    refused(f, text, "text.so");
    refused(f, "/lib/x86_64-linux-gnu/libm.so.6",
            access("/lib/x86_64-linux-gnu/libm.so.6", R_OK)
                ? "libm"
                : "does not export assay_custom_ops");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_backend),
        TEST(unknown_without_it),
        TEST(what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
