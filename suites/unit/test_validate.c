/* Conformance cases: one made here, right and wrong, and the lists of what
 * may fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "harness/common.h"
#include "harness/conformance.h"
#include "harness/validate.h"
#include "import/export.h"
#include "onnx/onnx.pb-c.h"
#include "ops/op.h"

typedef struct Fixture {
    Arena *arena;
    char *folder;
    ValidatePlan plan;
} Fixture;

static int set_up(void **state)
{
    Arena *arena = arena_new();
    Fixture *f = ARENA_NEW(arena, Fixture);
    f->arena = arena;
    f->folder = make_temp_folder(arena);
    f->plan = (ValidatePlan){.levels = {true, true, true, true},
                             .limits = {.seconds = 60}};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    remove_temp_folder(f->folder);
    arena_free(f->arena);
    return 0;
}

static void write_tensor(Fixture *f, const char *name, int type, int64_t count,
                         const void *data, size_t bytes)
{
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT;
    t.n_dims = 1;
    t.dims = &count;
    t.has_data_type = 1;
    t.data_type = type;
    t.has_raw_data = 1;
    t.raw_data.data = (uint8_t *)(uintptr_t)data;
    t.raw_data.len = bytes;
    uint8_t *packed = arena_alloc(f->arena, 1024);
    size_t size = onnx__tensor_proto__pack(&t, packed);
    const char *path = arena_printf(f->arena, "%s/%s", f->folder, name);
    Str error = {0};
    assert_true(write_file(path, (const char *)packed, size, &error));
}

/* y = Reshape(x + x, shape), whose shape is an input: it has to be bound. */
static void write_case(Fixture *f, const float *expected)
{
    static const float x[] = {1, 2, 3, -4};
    static const int64_t shape[] = {4};
    Diag *diag = diag_new(f->arena, NULL);
    Graph *g = graph_new(f->arena, diag, "case", ops_builtin());
    TensorType data = {.dtype = DT_F32, .rank = 1, .dims = {extent_const(4)}};
    TensorType one = {.dtype = DT_I64, .rank = 1, .dims = {extent_const(1)}};
    Tensor *in = graph_add_input(g, "x", data);
    Tensor *to = graph_add_input(g, "shape", one);
    Tensor *sum = graph_apply(g, "Add", "sum", (Attrs){0}, in, in, NULL);
    Node *reshape =
        graph_add_node(g, "Reshape", "reshape", (Tensor *[]){sum, to}, 2, 1);
    reshape->outputs.data[0]->type = data;
    graph_mark_output(g, reshape->outputs.data[0]);
    assert_true(onnx_export(
        diag, g, arena_printf(f->arena, "%s/model.onnx", f->folder)));
    assert_true(
        make_folders(arena_printf(f->arena, "%s/test_data_set_0", f->folder)));
    write_tensor(f, "test_data_set_0/input_0.pb", 1, 4, x, sizeof x);
    write_tensor(f, "test_data_set_0/input_1.pb", 7, 1, shape, sizeof shape);
    write_tensor(f, "test_data_set_0/output_0.pb", 1, 4, expected, 16);
}

static void right_passes(void **state)
{
    Fixture *f = *state;
    static const float expected[] = {2, 4, 6, -8};
    ValidateResult r;
    write_case(f, expected);
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_string_equal(r.reason, "");
    assert_int_equal(r.status, CASE_OK);
    assert_string_equal(r.bound, "shape");
    assert_string_equal(r.op, "Add");
    assert_null(r.level);
    assert_true(r.max_excess == 0);
}

/* The shape stays an input, and is not bound. */
static void open_passes(void **state)
{
    Fixture *f = *state;
    static const float expected[] = {2, 4, 6, -8};
    ValidateResult r;
    write_case(f, expected);
    f->plan.is_open = true;
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_string_equal(r.reason, "");
    assert_int_equal(r.status, CASE_OK);
    assert_string_equal(r.bound, "");
    assert_string_equal(r.open, "shape");
    assert_string_equal(r.why_bound, "");
}

static void wrong_fails(void **state)
{
    Fixture *f = *state;
    static const float expected[] = {2, 4, 6.1f, -8};
    ValidateResult r;
    write_case(f, expected);
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_int_equal(r.status, CASE_FAILED_CHECK);
    assert_string_equal(r.level, "O0");
    assert_non_null(strstr(r.reason, "element 2 is 6 instead of 6.1"));
    assert_true(r.max_excess > 1);
    memset(f->plan.levels, 0, sizeof f->plan.levels);
    f->plan.levels[LEVEL_FUSED] = true;
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_string_equal(r.level, "fused");
}

static void other_shape_fails(void **state)
{
    Fixture *f = *state;
    static const float expected[] = {2, 4, 6, -8};
    ValidateResult r;
    write_case(f, expected);
    write_tensor(f, "test_data_set_0/output_0.pb", 1, 3, expected, 12);
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_int_equal(r.status, CASE_FAILED_CHECK);
    assert_non_null(strstr(r.reason, "type or shape"));
}

/* Writes the model anew with its one constant among its inputs. */
static void list_constant_as_input(Fixture *f, const char *path)
{
    Str error = {0};
    uint8_t *data = arena_alloc(f->arena, 4096);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(data, 1, 4096, file);
    fclose(file);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, size, data);
    assert_non_null(model);
    Onnx__ValueInfoProto *inputs[2] = {model->graph->input[0]};
    Onnx__ValueInfoProto listed = *inputs[0];
    listed.name = model->graph->initializer[0]->name;
    inputs[1] = &listed;
    model->graph->input = inputs;
    model->graph->n_input = 2;
    size = onnx__model_proto__pack(model, data);
    assert_true(write_file(path, (const char *)data, size, &error));
}

/* Two data sets, each with its own value to bind. */
static void sets_bind_anew(void **state)
{
    Fixture *f = *state;
    static const float expected[] = {2, 4, 6, -8};
    static const int64_t shape[] = {-1};
    ValidateResult r;
    write_case(f, expected);
    assert_true(
        make_folders(arena_printf(f->arena, "%s/test_data_set_1", f->folder)));
    write_tensor(f, "test_data_set_1/input_0.pb", 1, 4, expected, 16);
    write_tensor(f, "test_data_set_1/input_1.pb", 7, 1, shape, sizeof shape);
    write_tensor(f, "test_data_set_1/output_0.pb", 1, 4, expected, 16);
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_int_equal(r.status, CASE_FAILED_CHECK);
    assert_non_null(strstr(r.reason, "element 3 is -16 instead of -8"));
    /* A value that is no shape for the elements there are. */
    write_tensor(f, "test_data_set_1/input_1.pb", 7, 1, (int64_t[]){3}, 8);
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_int_equal(r.status, CASE_REFUSED);
}

/* y = x + k with a stored k: the first set replaces it, the second does
 * not. */
static void default_is_replaced(void **state)
{
    Fixture *f = *state;
    static const float x[] = {1, 2}, k[] = {10, 20}, stored[] = {3, 4};
    static const float first[] = {11, 22}, second[] = {4, 6};
    const int64_t two = 2;
    ValidateResult r;
    Diag *diag = diag_new(f->arena, NULL);
    Graph *g = graph_new(f->arena, diag, "case", ops_builtin());
    TensorType type = {.dtype = DT_F32, .rank = 1, .dims = {extent_const(2)}};
    Tensor *in = graph_add_input(g, "x", type);
    Array *value = array_new(f->arena, DT_F32, 1, &two);
    memcpy(value->data, stored, sizeof stored);
    Tensor *constant = graph_add_constant(g, "k", value);
    Tensor *sum = graph_apply(g, "Add", "y", (Attrs){0}, in, constant, NULL);
    graph_mark_output(g, sum);
    const char *path = arena_printf(f->arena, "%s/model.onnx", f->folder);
    assert_true(onnx_export(diag, g, path));
    list_constant_as_input(f, path);
    for (int set = 0; set < 2; set++)
        assert_true(make_folders(
            arena_printf(f->arena, "%s/test_data_set_%d", f->folder, set)));
    write_tensor(f, "test_data_set_0/input_0.pb", 1, 2, x, sizeof x);
    write_tensor(f, "test_data_set_0/input_1.pb", 1, 2, k, sizeof k);
    write_tensor(f, "test_data_set_0/output_0.pb", 1, 2, first, sizeof first);
    write_tensor(f, "test_data_set_1/input_0.pb", 1, 2, x, sizeof x);
    write_tensor(f, "test_data_set_1/output_0.pb", 1, 2, second,
                 sizeof second);
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_string_equal(r.reason, "");
    assert_int_equal(r.status, CASE_OK);
}

static void no_data_is_refused(void **state)
{
    Fixture *f = *state;
    ValidateResult r;
    write_case(f, (const float[4]){0});
    assert_int_equal(
        rename(arena_printf(f->arena, "%s/test_data_set_0", f->folder),
               arena_printf(f->arena, "%s/other", f->folder)),
        0);
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_int_equal(r.status, CASE_REFUSED);
    assert_non_null(strstr(r.reason, "no test_data_set_0"));
}

static void no_model_is_refused(void **state)
{
    Fixture *f = *state;
    Str error = {0};
    ValidateResult r;
    assert_true(write_file(arena_printf(f->arena, "%s/model.onnx", f->folder),
                           "nonsense", 8, &error));
    validate_case(f->arena, f->folder, &f->plan, &r);
    assert_int_equal(r.status, CASE_REFUSED);
    assert_true(*r.reason != 0);
}

static bool read_list(Fixture *f, const char *text, ExpectedList *list,
                      Str *error)
{
    const char *path = arena_printf(f->arena, "%s/list.txt", f->folder);
    *list = (ExpectedList){0};
    assert_true(write_file(path, text, strlen(text), error));
    return expected_read(f->arena, path, list, error);
}

static void lists(void **state)
{
    Fixture *f = *state;
    ExpectedList list;
    Str error = {0};
    assert_true(
        read_list(f, "# a comment\n\na/b: no strings: yet\n", &list, &error));
    assert_string_equal(expected_reason(&list, "a/b"), "no strings: yet");
    assert_null(expected_reason(&list, "a/c"));
    assert_true(read_list(f, "", &list, &error));
    assert_null(expected_reason(&list, "a/b"));
    assert_false(read_list(f, "a/b\n", &list, &error));
    assert_non_null(strstr(str_text(&error), "list.txt:1"));
    error.length = 0;
    assert_false(read_list(f, "a: x\nb: y\na: z\n", &list, &error));
    assert_non_null(strstr(str_text(&error), "list.txt:3"));
    str_free(&error);
    assert_false(expected_read(f->arena, "/no/such/list", &list, &error));
    str_free(&error);
    /* Both ways of not being as listed. */
    CaseRow row = {.folder = "x", .result = {.status = CASE_OK}};
    assert_false(case_differs(&row));
    row.excuse = "why";
    assert_true(case_differs(&row));
    row.result.status = CASE_REFUSED;
    assert_false(case_differs(&row));
    assert_string_equal(case_outcome(&row), "expected");
    row.result.status = CASE_CRASHED;
    assert_true(case_differs(&row));
    assert_string_equal(case_outcome(&row), "crashed");
    row.excuse = NULL;
    assert_true(case_differs(&row));
    row.folder = NULL;
    assert_true(case_differs(&row));
    assert_string_equal(case_outcome(&row), "missing");
}

static void names(void **state)
{
    Fixture *f = *state;
    const char *path = arena_printf(f->arena, "%s/names.txt", f->folder);
    NameList list = {0};
    Str error = {0};
    assert_false(names_have(&list, "a/b"));
    assert_true(write_file(path, "# some\na/b\n\nc\n", 14, &error));
    assert_true(names_read(f->arena, path, &list, &error));
    assert_int_equal(list.names.count, 2);
    assert_true(names_have(&list, "a/b"));
    assert_false(names_have(&list, "a"));
    assert_true(write_file(path, "a\nb: why\n", 9, &error));
    list = (NameList){0};
    assert_false(names_read(f->arena, path, &list, &error));
    assert_non_null(strstr(str_text(&error), "names.txt:2"));
    str_free(&error);
}

/* Names in any encoding, and reasons with what XML has no place for. */
static void junit_is_xml(void **state)
{
    Fixture *f = *state;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    (void)f;
    CaseRow row = {.name = "bad\xff<a>",
                   .folder = "x",
                   .result = {.op = "Relu",
                              .status = CASE_REFUSED,
                              .reason = "\x1b[31m & so on",
                              .bound = ""}};
    conformance_print_junit(file, &row, 1, 1);
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, "name=\"bad?&lt;a&gt;\""));
    assert_non_null(strstr(text, "> [31m &amp; so on</failure>"));
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(right_passes),
        TEST(open_passes),
        TEST(wrong_fails),
        TEST(other_shape_fails),
        TEST(sets_bind_anew),
        TEST(default_is_replaced),
        TEST(no_data_is_refused),
        TEST(no_model_is_refused),
        TEST(lists),
        TEST(names),
        TEST(junit_is_xml),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
