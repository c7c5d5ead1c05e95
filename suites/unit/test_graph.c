/* The graph: extents, building, edits, sorting, the text form, and the
 * verifier, which must notice what is broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/graph.h"
#include "ops/op.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static void expect_extent(Extent extent, const char *text)
{
    Str printed = {0};
    extent_print(&printed, extent);
    assert_string_equal(str_text(&printed), text);
    str_free(&printed);
}

static void test_extent(void **state)
{
    Arena *a = *state;
    Extent n = extent_named(a, "N", 8), two = extent_const(2);
    Extent three = extent_const(3), m = extent_named(a, "seq len", -1);
    expect_extent(extent_add(a, two, three), "5");
    expect_extent(extent_div(a, extent_const(-7), two), "-4");
    expect_extent(extent_mul(a, n, extent_const(49)), "(N<=8*49)");
    expect_extent(extent_add(a, extent_add(a, n, two), three), "(N<=8+5)");
    expect_extent(extent_add(a, two, n), "(N<=8+2)");
    expect_extent(extent_sub(a, extent_add(a, n, two), two), "N<=8");
    expect_extent(extent_sub(a, n, n), "0");
    expect_extent(extent_div(a, extent_mul(a, n, extent_const(6)), three),
                  "(N<=8*2)");
    expect_extent(extent_div(a, n, n), "1");
    expect_extent(extent_add(a, m, extent_const(-1)), "(\"seq len\"-1)");
    assert_int_equal(extent_mul(a, n, extent_const(49)).value, 8 * 49);
    /* A file may hold any number. */
    Extent least = extent_const(INT64_MIN), most = extent_const(INT64_MAX);
    expect_extent(extent_add(a, n, least), "(N<=8-9223372036854775807)");
    expect_extent(extent_sub(a, least, two), "-9223372036854775808");
    expect_extent(extent_add(a, least, least), "-9223372036854775808");
    expect_extent(extent_mul(a, least, two), "-9223372036854775808");
    expect_extent(extent_add(a, extent_add(a, n, most), most),
                  "(N<=8+9223372036854775807)");
    expect_extent(extent_sub(a, extent_sub(a, n, most), most),
                  "(N<=8-9223372036854775807)");
    expect_extent(
        extent_min(a, extent_add(a, n, most), extent_add(a, n, least)),
        "(N<=8-9223372036854775807)");
    assert_int_equal(extent_add(a, m, two).value, -1);
    assert_true(extent_equal(extent_add(a, n, two), extent_add(a, two, n)));
    assert_false(extent_equal(n, m));
    assert_false(extent_is_const(n));
    /* An absurd product saturates, it does not wrap. */
    Extent huge = extent_const(INT64_MAX / 2);
    assert_true(extent_mul(a, huge, three).value == INT64_MAX);

    const char *texts[] = {"12", "N<=8", "((N<=8*49)+\"seq len\")",
                           "((a.b+15)/16)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *at = texts[i];
        Extent parsed;
        assert_true(extent_parse(a, &at, &parsed));
        assert_int_equal(*at, 0);
        expect_extent(parsed, texts[i]);
    }
    const char *bad[] = {"", "(N+)", "(N%2)", "(N/0)", "N<=", "(1+2", "\"x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *at = bad[i];
        Extent parsed;
        if (extent_parse(a, &at, &parsed))
            assert_int_not_equal(*at, 0);
    }
}

static Graph *new_graph(Arena *a)
{
    return graph_new(a, diag_new(a, NULL), "net", ops_builtin());
}

static TensorType f32(int rank, const int64_t *dims)
{
    TensorType type = {.dtype = DT_F32, .rank = rank};
    for (int i = 0; i < rank; i++)
        type.dims[i] = extent_const(dims[i]);
    return type;
}

static const int64_t image[] = {1, 3, 8, 8};

static Tensor *weights(Graph *g, const char *name, int rank,
                       const int64_t *dims)
{
    Array *array = array_new(g->arena, DT_F32, rank, dims);
    for (int64_t i = 0; i < array_count(array); i++)
        array_set(array, i, (double)(i % 7) - 3);
    return graph_add_constant(g, name, array);
}

/* x -> Conv -> Relu -> Add(x2) -> y */
static Graph *small_net(Arena *a)
{
    Graph *g = new_graph(a);
    const int64_t kernel[] = {3, 3, 3, 3}, pads[] = {1, 1, 1, 1};
    const int64_t bias[] = {3};
    Attrs attrs = {0};
    attrs_set_ints(a, &attrs, "pads", pads, 4);
    Tensor *x = graph_add_input(g, "x", f32(4, image));
    Tensor *w = weights(g, "w", 4, kernel), *b = weights(g, "b", 1, bias);
    Tensor *t = graph_apply(g, "Conv", "conv1", attrs, x, w, b, NULL);
    t = graph_apply(g, "Relu", "relu1", (Attrs){0}, t, NULL);
    t = graph_apply(g, "Add", "add1", (Attrs){0}, t, x, NULL);
    graph_mark_output(g, t);
    assert_int_equal(g->diag->errors.count, 0);
    return g;
}

static void test_build(void **state)
{
    Graph *g = small_net(*state);
    Str text = {0};
    graph_print(&text, g, false);
    assert_string_equal(
        str_text(&text),
        "graph net\n"
        "  input x: f32[1,3,8,8]\n"
        "  const w: f32[3,3,3,3] = #cb5a7d19de2a4db7\n"
        "  const b: f32[3] = {-3, -2, -1}\n"
        "  conv1: f32[1,3,8,8] = Conv conv1(x, w, b) {pads=[1, 1, 1, 1]}\n"
        "  relu1: f32[1,3,8,8] = Relu relu1(conv1)\n"
        "  add1: f32[1,3,8,8] = Add add1(relu1, x)\n"
        "  output add1\n");
    str_free(&text);
    graph_verify(g);
    assert_ptr_equal(graph_find_tensor(g, "relu1")->producer,
                     graph_find_node(g, "relu1"));
    assert_int_equal(graph_find_tensor(g, "x")->users.count, 2);
    assert_null(graph_find_node(g, "nope"));
    /* A taken name gets a suffix, the source keeps it. */
    Tensor *x = g->inputs.data[0];
    Tensor *again = graph_apply(g, "Neg", "relu1", (Attrs){0}, x, NULL);
    assert_string_not_equal(again->name, "relu1");
    assert_ptr_equal(graph_find_tensor(g, again->name), again);
    assert_string_equal(again->producer->sources.data[0], "relu1");
    /* An unknown operator is an error, not a crash. */
    assert_null(graph_apply(g, "Blur", NULL, (Attrs){0}, x, NULL));
    assert_string_equal(g->diag->errors.data[0], "unknown operator Blur");
}

static void test_replace(void **state)
{
    Graph *g = small_net(*state);
    Node *relu = graph_find_node(g, "relu1"),
         *add = graph_find_node(g, "add1");
    Tensor *conv = graph_find_tensor(g, "conv1");
    assert_true(graph_replace(g, relu->outputs.data[0], conv));
    assert_ptr_equal(add->inputs.data[0], conv);
    assert_int_equal(conv->users.count, 2); /* the relu, still, and add */
    assert_string_equal(conv->sources.data[1], "relu1");
    graph_remove_node(g, relu);
    assert_int_equal(conv->users.count, 1);
    assert_null(graph_find_tensor(g, "relu1"));
    graph_verify(g);

    /* An output keeps its name when another tensor takes its place. */
    Tensor *old = g->outputs.data[0];
    assert_false(graph_replace(g, old, g->inputs.data[0]));
    assert_false(graph_replace(g, old, graph_find_tensor(g, "w")));
    assert_true(old->is_output);
    assert_true(graph_replace(g, old, conv));
    assert_string_equal(conv->name, "add1");
    assert_ptr_equal(g->outputs.data[0], conv);
    assert_ptr_equal(graph_find_tensor(g, "add1"), conv);
    assert_ptr_equal(graph_find_tensor(g, "conv1"), old);
    graph_remove_node(g, add);
    graph_verify(g);

    /* A node that reads a tensor twice appears twice among its users. */
    Tensor *square =
        graph_apply(g, "Mul", "square", (Attrs){0}, conv, conv, NULL);
    assert_int_equal(conv->users.count, 2);
    graph_replace(g, conv, square);
    assert_int_equal(conv->users.count, 0);
    assert_int_equal(square->users.count, 2);
    Node *mul = square->producer;
    graph_set_input(g, mul, 0, g->inputs.data[0]);
    graph_set_input(g, mul, 1, g->inputs.data[0]);
    assert_int_equal(square->users.count, 0);
    assert_int_equal(g->inputs.data[0]->users.count, 3);
    graph_verify(g);
}

static void test_order(void **state)
{
    Graph *g = small_net(*state);
    Node *conv = graph_find_node(g, "conv1");
    Node *relu = graph_find_node(g, "relu1");
    graph_move_before(g, relu, conv);
    assert_ptr_equal(g->nodes.data[0], relu);
    assert_true(graph_sort(g));
    assert_ptr_equal(g->nodes.data[0], conv);
    assert_ptr_equal(g->nodes.data[1], relu);
    graph_verify(g);
    /* conv1 reading add1 closes a circle. */
    graph_set_input(g, conv, 0, graph_find_tensor(g, "add1"));
    assert_false(graph_sort(g));
    const char *error = g->diag->errors.data[0];
    assert_non_null(strstr(error, "Conv \"conv1\""));
    assert_non_null(strstr(error, "Add \"add1\""));
    assert_non_null(strstr(error, "Relu \"relu1\""));
}

/* Sorting, printing, parsing and verifying a long chain take neither deep
 * stacks nor quadratic time. */
static void test_chain(void **state)
{
    enum { LENGTH = 20000 };
    Graph *g = new_graph(*state);
    const int64_t dims[] = {2};
    Tensor *x = graph_add_input(g, "x", f32(1, dims)), *t = x;
    Tensor *one = weights(g, "one", 1, dims);
    for (int i = 0; i < LENGTH; i++)
        t = graph_apply(g, "Add", NULL, (Attrs){0}, t, one, NULL);
    graph_mark_output(g, t);
    for (int i = 0; i < LENGTH / 2; i++) {
        Node *swap = g->nodes.data[i];
        g->nodes.data[i] = g->nodes.data[LENGTH - 1 - i];
        g->nodes.data[LENGTH - 1 - i] = swap;
    }
    assert_true(graph_sort(g));
    for (int i = 1; i < LENGTH; i++)
        assert_ptr_equal(g->nodes.data[i]->inputs.data[0],
                         g->nodes.data[i - 1]->outputs.data[0]);
    graph_verify(g);
    Str text = {0};
    graph_print(&text, g, true);
    Graph *copy = graph_parse(*state, g->diag, ops_builtin(), str_text(&text));
    assert_non_null(copy);
    assert_int_equal(copy->nodes.count, LENGTH);
    str_free(&text);
    for (int i = 1; i < LENGTH; i++) { /* take it apart from the front */
        Node *node = g->nodes.data[0];
        graph_replace(g, node->outputs.data[0], x);
        graph_remove_node(g, node);
    }
    graph_verify(g);
    assert_int_equal(one->users.count, 1);
}

static void round_trip(const Graph *g)
{
    Str first = {0}, second = {0};
    Diag *diag = diag_new(g->arena, NULL);
    graph_print(&first, g, true);
    Graph *copy = graph_parse(g->arena, diag, ops_builtin(), str_text(&first));
    for (int i = 0; i < diag->errors.count; i++)
        print_error("%s\n", diag->errors.data[i]);
    assert_non_null(copy);
    graph_print(&second, copy, true);
    assert_string_equal(str_text(&first), str_text(&second));
    str_free(&first);
    str_free(&second);
}

/* All that the text form can hold. */
static void test_text(void **state)
{
    Arena *a = *state;
    Graph *g = small_net(a);
    round_trip(g);

    static const float odd[] = {-0.0f, 1e-45f, 3.4028235e38f, 0.1f};
    const int64_t four[] = {4};
    Array *values = array_new(a, DT_F32, 1, four);
    memcpy(values->data, odd, sizeof odd);
    graph_add_constant(g, "t:0", values);
    graph_add_constant(g, "t_0", array_scalar(a, DT_F32, (double)INFINITY));
    const int64_t longs[] = {INT64_MIN, INT64_MAX};
    graph_add_constant(g, "with \"blank\"\n", array_ints(a, longs, 2));
    graph_add_constant(g, "_", array_scalar(a, DT_BOOL, 1));
    Array *wide = array_scalar(a, DT_U64, 0);
    ((uint64_t *)wide->data)[0] = UINT64_MAX;
    graph_add_constant(g, "input", wide);
    const int64_t none[] = {0, 3};
    graph_add_constant(g, "empty", array_new(a, DT_F16, 2, none));

    static const double scales[] = {0.5, 0.25};
    static const int64_t zeros[] = {0, -3};
    Quant *quant = ARENA_NEW(a, Quant);
    *quant = (Quant){1, 2, scales, zeros};
    TensorType type = {.dtype = DT_I8, .rank = 2, .quant = quant};
    type.dims[0] = extent_named(a, "N", 16);
    type.dims[1] = extent_const(2);
    Tensor *q = graph_add_input(g, "q", type);
    q->layout = layout_row_major(2);
    q->layout.lo[1] = 1;
    vec_push(a, &q->sources, "elsewhere");

    Node *node = graph_add_node(g, "Dropout", "drop", &q, 1, 2);
    graph_drop_output(g, node, 0);
    node->no_fuse = true;
    node->sources.count = 0;
    Attrs *attrs = &node->attrs;
    static const int64_t ints[] = {3, -4};
    static const double floats[] = {2, 0.5};
    static const char *const strings[] = {"a", "b \"c\""};
    attrs_set_float(a, attrs, "f", 3);
    attrs_set_float(a, attrs, "g", -(double)INFINITY);
    attrs_set_int(a, attrs, "i", -3);
    attrs_set_string(a, attrs, "s", "two words");
    attrs_set_ints(a, attrs, "list", ints, 2);
    attrs_set_ints(a, attrs, "none", NULL, 0);
    attrs_set(
        a, attrs,
        (Attr){
            .name = "fs", .kind = ATTR_FLOATS, .count = 2, .floats = floats});
    attrs_set(a, attrs, (Attr){.name = "no_fs", .kind = ATTR_FLOATS});
    attrs_set(a, attrs,
              (Attr){.name = "ss",
                     .kind = ATTR_STRINGS,
                     .count = 2,
                     .strings = strings});
    attrs_set(a, attrs,
              (Attr){.name = "t", .kind = ATTR_TENSOR, .tensor = values});
    Group *group = ARENA_NEW(a, Group);
    group->id = 3;
    for (int i = 0; i < 2; i++) {
        g->nodes.data[i]->group = group;
        vec_push(a, &group->nodes, g->nodes.data[i]);
    }
    group->anchor = g->nodes.data[0];
    vec_push(a, &g->groups, group);
    /* Half of a tensor that comes later in the text. */
    Tensor *part = graph_find_tensor(g, "relu1");
    Tensor *whole = graph_find_tensor(g, "add1");
    part->layout = whole->layout = layout_row_major(4);
    part->layout.after[1] = 64;
    part->within = whole;
    assert_ptr_equal(tensor_storage(part), whole);
    round_trip(g);

    Graph *copy = graph_copy(a, g);
    assert_ptr_equal(graph_find_tensor(copy, "q"), copy->inputs.data[1]);
    assert_ptr_not_equal(graph_find_node(copy, "drop"), node);
    assert_ptr_equal(graph_find_tensor(copy, "relu1")->within,
                     graph_find_tensor(copy, "add1"));
    copy->nodes.data[0]->name = "changed";
    assert_string_equal(g->nodes.data[0]->name, "conv1");
}

static void test_parse_faults(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"", "line 1: expected graph"},
        {"graph g\n  input x f32[1]\n", "line 2: expected :"},
        {"graph g\n  input x: f99[1]\n", "unknown element type \"f99\""},
        {"graph g\n  input x: f32[1]\n  input x: f32[1]\n",
         "line 3: a second tensor \"x\""},
        {"graph g\n  y: f32[1] = Relu r(x)\n", "no tensor above is named"},
        {"graph g\n  input x: f32[1]\n  y: f32[1] = Blur r(x)\n",
         "unknown operator Blur"},
        {"graph g\n  output y\n", "no tensor is named \"y\""},
        {"graph g\n  const k: f32[99999999999] = {1}\n",
         "as many values as the shape holds"},
        {"graph g\n  const k: f32[100] = #00\n", "print with values"},
        {"graph g\n  const k: f32[2] = {1}\n", "expected ,"},
        {"graph g\n  const k: f32[2] = {1, x}\n", "expected a number"},
        {"graph g\n  group 0: r\n", "no node is named \"r\""},
        {"graph g\n  input x: f32[1] rest\n", "expected the end of the line"},
        {"graph g\n  input x: f32[1] [0] in y\n", "no tensor is named \"y\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Diag *diag = diag_new(*state, NULL);
        assert_null(graph_parse(*state, diag, ops_builtin(), rows[i].text));
        assert_int_equal(diag->errors.count, 1);
        if (!strstr(diag->errors.data[0], rows[i].error))
            fail_msg("row %zu: %s", i, diag->errors.data[0]);
    }
}

/* ---- the verifier, in a child that is expected to abort */

typedef void Damage(Graph *g);

static void drop_user(Graph *g)
{
    g->inputs.data[0]->users.count--;
}

static void swap_order(Graph *g)
{
    Node *first = g->nodes.data[0];
    g->nodes.data[0] = g->nodes.data[1];
    g->nodes.data[1] = first;
}

static void wrong_type(Graph *g)
{
    g->nodes.data[1]->outputs.data[0]->type.dims[2] = extent_const(9);
}

static void lose_flag(Graph *g)
{
    g->outputs.data[0]->is_output = false;
}

static void same_name(Graph *g)
{
    g->nodes.data[0]->name = g->nodes.data[1]->name;
}

static void foreign_producer(Graph *g)
{
    g->nodes.data[0]->outputs.data[0]->producer = g->nodes.data[2];
}

static void part_of_none(Graph *g)
{
    g->tensors.data[1]->layout = layout_row_major(4);
    g->tensors.data[1]->layout.before[1] = 8;
}

static void too_small(Graph *g)
{
    Tensor *part = g->nodes.data[0]->outputs.data[0];
    part->within = g->nodes.data[2]->outputs.data[0];
    part->layout = part->within->layout = layout_row_major(4);
    part->layout.before[1] = 8;
}

static void test_verify(void **state)
{
    Damage *const all[] = {drop_user,    swap_order, wrong_type,
                           lose_flag,    same_name,  foreign_producer,
                           part_of_none, too_small};
    graph_verify(small_net(*state));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        Graph *g = small_net(*state);
        int status;
        pid_t child = fork();
        if (child == 0) {
            int null = open("/dev/null", O_WRONLY);
            dup2(null, 2);
            signal(SIGABRT, SIG_DFL);
            all[i](g);
            graph_verify(g);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
            fail_msg("damage %zu went unnoticed", i);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_extent), TEST(test_build),        TEST(test_replace),
        TEST(test_order),  TEST(test_chain),        TEST(test_text),
        TEST(test_verify), TEST(test_parse_faults),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
