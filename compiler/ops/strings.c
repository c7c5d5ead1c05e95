/* Constant strings: comparing them and reading them as numbers. There are no
 * kernels for strings, so the result takes the node's place as soon as types
 * are derived. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ops/rules.h"

static const char *text_at(const Array *array, int64_t index)
{
    return ((const char *const *)array->data)[index];
}

/* All of the text, with or without a point or an exponent. Integers are not
 * read by way of a double where they need more than its digits. */
static bool read_number(const char *text, Array *to, int64_t index)
{
    char *end;
    errno = 0;
    if (to->dtype == DT_U64 && text[0] != '-') {
        unsigned long long value = strtoull(text, &end, 10);
        if (end != text && !*end && !errno) {
            array_set_int(to, index, (int64_t)value);
            return true;
        }
    } else if (!dtype_is_float(to->dtype)) {
        long long value = strtoll(text, &end, 10);
        if (end != text && !*end && !errno) {
            array_set_int(to, index, value);
            return true;
        }
    }
    double value = strtod(text, &end);
    if (end == text || *end)
        return false;
    array_set(to, index, value);
    return true;
}

bool infer_strings_as_numbers(InferContext *c, DType to)
{
    const Array *x = infer_constant(c, 0, "input");
    if (!x)
        return false;
    Array *number = array_new(c->graph->arena, to, 0, NULL);
    for (int64_t i = 0; i < array_count(x); i++)
        if (!read_number(text_at(x, i), number, 0))
            return infer_error(c, "element %lld is \"%.40s\", not a number",
                               (long long)i, text_at(x, i));
    return true;
}

/* The value by way of a copy, as it may be an output of the graph. */
static bool replace(Graph *g, Node *node, const Array *value)
{
    Tensor *constant = graph_add_constant(
        g, arena_printf(g->arena, "%s.value", node->name), value);
    Node *copy = graph_add_node(g, "Identity", NULL, &constant, 1, 1);
    graph_add_source(g, copy, node);
    if (!op_infer(g, copy))
        return false;
    graph_move_before(g, copy, node);
    graph_replace(g, node->outputs.data[0], copy->outputs.data[0]);
    graph_remove_node(g, node);
    return true;
}

bool decompose_string_cast(Graph *g, Node *node)
{
    const Array *x = node->inputs.data[0]->value;
    if (!x || x->dtype != DT_STRING)
        return false;
    Array *y = array_new(g->arena, node->outputs.data[0]->type.dtype, x->rank,
                         x->dims);
    for (int64_t i = 0; i < array_count(x); i++)
        read_number(text_at(x, i), y, i);
    return replace(g, node, y);
}

bool infer_strings_known(InferContext *c)
{
    return infer_constant(c, 0, "left side") &&
           infer_constant(c, 1, "right side");
}

/* Where element `index` of a result of these extents reads the operand. */
static int64_t broadcast_place(const Array *operand, int rank,
                               const int64_t *dims, int64_t index)
{
    int64_t place = 0, stride = 1;
    for (int i = rank - 1; i >= rank - operand->rank; i--) {
        int64_t extent = operand->dims[i - (rank - operand->rank)];
        if (extent > 1)
            place += index % dims[i] * stride;
        stride *= extent;
        index /= dims[i];
    }
    return place;
}

bool decompose_string_equal(Graph *g, Node *node)
{
    const Array *x = node->inputs.data[0]->value;
    const Array *y = node->inputs.data[1]->value;
    const TensorType *type = &node->outputs.data[0]->type;
    int64_t dims[MAX_RANK];
    if (!x || !y || x->dtype != DT_STRING)
        return false;
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    Array *equal = array_new(g->arena, DT_BOOL, type->rank, dims);
    for (int64_t i = 0; i < array_count(equal); i++) {
        int64_t a = broadcast_place(x, type->rank, dims, i);
        int64_t b = broadcast_place(y, type->rank, dims, i);
        array_set_int(equal, i, !strcmp(text_at(x, a), text_at(y, b)));
    }
    return replace(g, node, equal);
}
