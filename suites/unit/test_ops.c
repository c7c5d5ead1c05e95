/* Operators: a table of types, attributes and constants, and for each row
 * the result: a type, an error text, or the values that the definition
 * gives in the interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "ops/op.h"
#include "ops_rows.h"
#include "ops_run.h"
#include "reference/reference.h"

static const char *copy_word(Arena *a, const char **text)
{
    size_t length = strcspn(*text, " ");
    const char *word = arena_strndup(a, *text, length);
    *text += length;
    *text += strspn(*text, " ");
    return word;
}

static bool is_close(const Array *array, int64_t i, double wanted)
{
    double is = array_get(array, i);
    if (isnan(wanted) || isinf(wanted))
        return isnan(wanted) ? isnan(is) : is == wanted;
    double room = dtype_is_float(array->dtype) ? 2e-6 : 0;
    return fabs(is - wanted) <= room * fmax(1, fabs(wanted));
}

static void check_values(const OpRow *row, const char *who, const Array *array,
                         const char *values)
{
    const char *at = values + 1;
    for (int64_t i = 0; i < array_count(array); i++) {
        char *end;
        double wanted = strtod(at, &end);
        if (end == at)
            fail_msg("%s %s: too few expected values", row->op, row->inputs);
        if (!is_close(array, i, wanted))
            fail_msg("%s %s {%s}: element %d is %.9g in the %s, not %.9g",
                     row->op, row->inputs, row->attrs, (int)i,
                     array_get(array, i), who, wanted);
        at = end + (*end == ',');
    }
    assert_string_equal(at, "}");
}

/* The reference must give the same. */
static void check_oracle(Arena *a, const OpRow *row, const Node *node,
                         const Array *const *in)
{
    RefCall call = {.arena = a,
                    .domain = op_domain(node->op),
                    .op = row->op,
                    .attrs = &node->attrs,
                    .in_count = node->inputs.count,
                    .out_count = node->outputs.count,
                    .in = in};
    if (!reference_eval(&call))
        fail_msg("%s %s {%s}: %s", row->op, row->inputs, row->attrs,
                 call.error);
    const char *at = row->expected;
    for (int i = 0; i < node->outputs.count; i++) {
        const char *value = strstr(copy_word(a, &at), "={");
        TensorType type = type_of_array(call.out[i]);
        if (!type_equal(&type, &node->outputs.data[i]->type))
            fail_msg("%s %s {%s}: the oracle gives another type", row->op,
                     row->inputs, row->attrs);
        if (value)
            check_values(row, "oracle", call.out[i], value + 1);
    }
}

static const char *form_name(bool is_program)
{
    return is_program ? "program" : "definition";
}

/* An operator may have a definition and loops: both give the same. */
static void check_other_form(Arena *a, const OpRow *row, const Node *node,
                             const Array *const *in)
{
    bool is_program = !node_is_program(node);
    Array *out[MAX_OP_OUTPUTS] = {NULL};
    Diag *diag = diag_new(a, NULL);
    if (!node->op->define || !node->op->program || !node_is_static(node))
        return;
    if (!ops_run_form(a, diag, node, is_program, in, out))
        fail_msg("%s: %s", row->op, diag->errors.data[0]);
    const char *at = row->expected;
    for (int i = 0; i < node->outputs.count; i++) {
        const char *value = strstr(copy_word(a, &at), "={");
        if (value)
            check_values(row, form_name(is_program), out[i], value + 1);
    }
}

static void check_row(const OpRow *row)
{
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    bool expect_error = row->expected[0] == '!';
    Graph *g =
        graph_parse(a, diag, ops_builtin(), ops_row_text(a, row, expect_error));
    if (!g)
        fail_msg("%s %s: %s", row->op, row->inputs, diag->errors.data[0]);
    Node *node = g->nodes.data[0];
    bool ok = op_infer(g, node);
    if (expect_error) {
        if (ok)
            fail_msg("%s %s {%s} was accepted", row->op, row->inputs,
                     row->attrs);
        const char *error = diag->errors.data[0];
        if (!strstr(error, row->expected + 1) || !strstr(error, row->op) ||
            !strstr(error, "(output p)"))
            fail_msg("%s %s {%s}: %s", row->op, row->inputs, row->attrs,
                     error);
        arena_free(a);
        return;
    }
    if (!ok)
        fail_msg("%s", diag->errors.data[0]);
    Array *out[MAX_OP_OUTPUTS] = {NULL};
    const Array *in[MAX_OP_INPUTS] = {NULL};
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *t = node->inputs.data[i];
        const Tensor *fed =
            t ? graph_find_tensor(g, arena_printf(a, "%s.value", t->name))
              : NULL;
        if (t)
            in[i] = fed ? fed->value : t->value;
    }
    bool has_values = strchr(row->expected, '{') != NULL;
    if (has_values && !strchr(row->inputs, '~'))
        check_oracle(a, row, node, in);
    if (has_values && node_has_strings(node)) {
        assert_true(node->op->decompose(g, node));
        node = g->nodes.data[0]; /* a copy of a constant */
        in[0] = node->inputs.data[0]->value;
        in[1] = NULL;
    }
    if (has_values && !ops_run_node(a, diag, node, in, out))
        fail_msg("%s: %s", row->op, diag->errors.data[0]);
    const char *at = row->expected;
    for (int i = 0; i < node->outputs.count; i++) {
        const char *word = copy_word(a, &at);
        const char *value = strstr(word, "={");
        Str type = {0};
        type_print(&type, &node->outputs.data[i]->type);
        size_t length = value ? (size_t)(value - word) : strlen(word);
        if (length != type.length ||
            strncmp(word, str_text(&type), length) != 0)
            fail_msg("%s %s {%s} gives %s, not %s", row->op, row->inputs,
                     row->attrs, str_text(&type), word);
        str_free(&type);
        if (value)
            check_values(row, form_name(node_is_program(node)), out[i],
                         value + 1);
    }
    if (has_values)
        check_other_form(a, row, node, in);
    arena_free(a);
}

static const OpRow *const tables[] = {
    ops_rows_elementwise, ops_rows_layers,   ops_rows_shape,    ops_rows_index,
    ops_rows_signal,      ops_rows_sequence, ops_rows_quantized};
enum { TABLES = sizeof tables / sizeof *tables };

static void test_rows(void **state)
{
    (void)state;
    for (int t = 0; t < TABLES; t++)
        for (const OpRow *row = tables[t]; row->op; row++)
            check_row(row);
}

static bool has_row(const char *op)
{
    for (int t = 0; t < TABLES; t++)
        for (const OpRow *row = tables[t]; row->op; row++)
            if (!strcmp(row->op, op))
                return true;
    return false;
}

/* Every operator of the tables is sound and has a row. */
static void test_tables(void **state)
{
    (void)state;
    for (const OpTable *t = ops_builtin(); t; t = t->next) {
        for (const Op *const *op = t->ops; *op; op++) {
            assert_ptr_equal(
                ops_find(ops_builtin(), op_domain(*op), (*op)->name), *op);
            assert_non_null((*op)->infer);
            bool is_control = (*op)->traits & (OP_BRANCH | OP_LOOP);
            bool both = (*op)->prefers_program != NULL;
            assert_int_equal(((*op)->define != NULL) +
                                 ((*op)->program != NULL) + is_control,
                             1 + both);
            assert_true((*op)->since > 0);
            if (!is_control && !*op_domain(*op) && !has_row((*op)->name))
                fail_msg("%s has no row", (*op)->name);
        }
    }
    assert_null(ops_find(ops_builtin(), "", "NoSuchThing"));
    assert_non_null(ops_find(ops_builtin(), "ai.onnx", "Conv"));
    assert_null(ops_find(ops_builtin(), "com.example", "Conv"));
}

/* A user's own operator, in a table in front of the built-in ones. */
static bool infer_twice(InferContext *c)
{
    c->node->outputs.data[0]->type = c->node->inputs.data[0]->type;
    return true;
}

static void define_twice(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *x = expr_read(b.arena, c->in[0], b.index);
    stage_end(&b, expr_add(b.arena, x, x));
}

static void test_own_operator(void **state)
{
    (void)state;
    static const Op twice = {.name = "Twice",
                             .domain = "com.example",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_ELEMENTWISE,
                             .infer = infer_twice,
                             .define = define_twice,
                             .since = 1};
    static const Op *const own[] = {&twice, NULL};
    OpTable table = {own, ops_builtin()};
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Graph *g = graph_parse(a, diag, &table,
                           "graph g\n"
                           "  const x: f32[2] = {1, 2.5}\n"
                           "  y: ?[?] = com.example::Twice t(x)\n"
                           "  output y\n");
    assert_non_null(g);
    assert_true(ops_infer_graph(g));
    graph_verify(g);
    const Array *in[] = {g->tensors.data[0]->value};
    Array *out[1];
    assert_true(ops_run_node(a, diag, g->nodes.data[0], in, out));
    assert_true(array_get(out[0], 1) == 5);
    arena_free(a);
}

static void test_decompose(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Graph *g = graph_parse(
        a, diag, ops_builtin(),
        "graph g\n"
        "  input x: f32[1,2,1,1]\n"
        "  const s: f32[2] = {2, -3}\n"
        "  const b: f32[2] = {1, 0.5}\n"
        "  const m: f32[2] = {4, 1}\n"
        "  const v: f32[2] = {3.5, 0}\n"
        "  y: ?[?] = BatchNormalization bn(x, s, b, m, v) {epsilon=0.5}\n"
        "  s2: ?[?] = Shape shape(y)\n"
        "  z: ?[?] = Cast cast(s2) {to=1}\n"
        "  output y\n  output z\n");
    assert_non_null(g);
    assert_true(ops_infer_graph(g));
    Node *bn = g->nodes.data[0], *shape = g->nodes.data[1];
    assert_true(bn->op->decompose(g, bn));
    assert_true(shape->op->decompose(g, shape));
    assert_int_equal(g->nodes.count, 3);
    graph_verify(g);
    const Node *mul = g->nodes.data[0], *add = g->nodes.data[1];
    assert_string_equal(op_name(mul->op), "Mul");
    assert_string_equal(mul->sources.data[0], "bn");
    assert_string_equal(add->outputs.data[0]->name, "y");
    assert_true(add->outputs.data[0]->is_output);
    const Array *scale = mul->inputs.data[1]->value;
    const Array *shift = add->inputs.data[1]->value;
    assert_int_equal(scale->rank, 3);
    assert_true(array_get(scale, 0) == 1); /* 2 / sqrt(3.5 + 0.5) */
    assert_true(array_get(scale, 1) == (double)(float)(-3 / sqrt(0.5)));
    assert_true(array_get(shift, 0) == -3); /* 1 - 4 * 1 */
    const Array *dims = g->nodes.data[2]->inputs.data[0]->value;
    assert_int_equal(array_count(dims), 4);
    assert_int_equal(array_get_int(dims, 1), 2);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_own_operator),
        cmocka_unit_test(test_decompose),
    };
    return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}
