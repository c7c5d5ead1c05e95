/* The text form of a graph, one line an item; parse.c reads it back.
 *
 *     graph net
 *       input x: f32[1,3,8,8]
 *       const w: f32[4,3,3,3] = #0123456789abcdef
 *       const b: f32[4] = {0.5, 1, -2, inf}
 *       y: f32[1,4,6,6] = Conv conv1(x, w, b) {strides=[1, 1]}
 *       output y
 *       group 0: conv1 relu1 = conv1
 *
 * A group ends with its anchor. A tensor may carry a layout after its type
 * and the tensor in whose storage it lies, `[0 1~4~0] in z`, and tensors and
 * nodes the names they had in the source, `from(a, b)`, where
 * these are not just its own name. Names that are not plain words are quoted.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "graph/graph.h"

enum { SHORT_CONSTANT = 16 };

static void print_name(Str *out, const char *name)
{
    static const char *const reserved[] = {"_",      "graph", "input", "const",
                                           "output", "group", "body"};
    bool plain = *name != 0;
    for (const char *at = name; *at; at++)
        plain &= isalnum((unsigned char)*at) || strchr("_./-", *at);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        plain &= strcmp(name, reserved[i]) != 0;
    if (plain)
        str_add(out, name);
    else
        str_add_quoted(out, name);
}

static void print_element(Str *out, const Array *array, int64_t index)
{
    if (array->dtype == DT_STRING)
        str_add_quoted(out, ((const char *const *)array->data)[index]);
    else if (array->dtype == DT_F64)
        str_add_double(out, array_get(array, index));
    else if (dtype_is_float(array->dtype))
        str_add_float(out, (float)array_get(array, index));
    else if (array->dtype == DT_U64)
        str_addf(out, "%llu", (unsigned long long)array_get_int(array, index));
    else
        str_addf(out, "%lld", (long long)array_get_int(array, index));
}

static void print_values(Str *out, const Array *array)
{
    str_add(out, "{");
    for (int64_t i = 0; i < array_count(array); i++) {
        str_add(out, i ? ", " : "");
        print_element(out, array, i);
    }
    str_add(out, "}");
}

static void print_sources(Str *out, const char *const *sources, int count,
                          const char *name)
{
    if (count == 1 && strcmp(sources[0], name) == 0)
        return;
    str_add(out, " from(");
    for (int i = 0; i < count; i++) {
        str_add(out, i ? ", " : "");
        print_name(out, sources[i]);
    }
    str_add(out, ")");
}

static void print_tensor(Str *out, const Tensor *tensor)
{
    print_name(out, tensor->name);
    str_add(out, ": ");
    type_print(out, &tensor->type);
    if (tensor->layout.count) {
        str_add(out, " ");
        layout_print(out, &tensor->layout);
    }
    if (tensor->within) {
        str_add(out, " in ");
        print_name(out, tensor->within->name);
    }
    print_sources(out, tensor->sources.data, tensor->sources.count,
                  tensor->name);
}

/* Floats always show a point, an exponent or a letter, so that they read
 * back as floats. */
static void print_float(Str *out, double value)
{
    size_t start = out->length;
    str_add_double(out, value);
    if (isfinite(value) && !strpbrk(out->data + start, ".e"))
        str_add(out, ".0");
}

static void print_list(Str *out, const Attr *attr)
{
    /* An empty list does not show its kind otherwise. */
    if (!attr->count)
        str_add(out, attr->kind == ATTR_INTS     ? "ints"
                     : attr->kind == ATTR_FLOATS ? "floats"
                                                 : "strings");
    str_add(out, "[");
    for (int i = 0; i < attr->count; i++) {
        str_add(out, i ? ", " : "");
        if (attr->kind == ATTR_INTS)
            str_addf(out, "%lld", (long long)attr->ints[i]);
        else if (attr->kind == ATTR_FLOATS)
            print_float(out, attr->floats[i]);
        else
            str_add_quoted(out, attr->strings[i]);
    }
    str_add(out, "]");
}

static void print_attr(Str *out, const Attr *attr)
{
    print_name(out, attr->name);
    str_add(out, "=");
    switch (attr->kind) {
    case ATTR_INT:
        str_addf(out, "%lld", (long long)attr->i);
        break;
    case ATTR_FLOAT:
        print_float(out, attr->f);
        break;
    case ATTR_STRING:
        str_add_quoted(out, attr->s);
        break;
    case ATTR_INTS:
    case ATTR_FLOATS:
    case ATTR_STRINGS:
        print_list(out, attr);
        break;
    case ATTR_TENSOR: {
        TensorType type = type_of_array(attr->tensor);
        type_print(out, &type);
        print_values(out, attr->tensor);
        break;
    }
    }
}

static void print_constant(Str *out, const Tensor *tensor, bool values)
{
    const Array *value = tensor->value;
    str_add(out, "  const ");
    print_tensor(out, tensor);
    str_add(out, " = ");
    if (values || array_count(value) <= SHORT_CONSTANT ||
        value->dtype == DT_STRING)
        print_values(out, value);
    else
        str_addf(out, "#%016llx",
                 (unsigned long long)hash_bytes(value->data,
                                                array_bytes(value), 0));
    str_add(out, "\n");
}

void attrs_print(Str *out, const Attrs *attrs)
{
    if (attrs->list.count)
        str_add(out, " {");
    for (int i = 0; i < attrs->list.count; i++) {
        str_add(out, i ? ", " : "");
        print_attr(out, &attrs->list.data[i]);
    }
    if (attrs->list.count)
        str_add(out, "}");
}

static void print_node(Str *out, const Node *node)
{
    str_add(out, "  ");
    for (int i = 0; i < node->outputs.count; i++) {
        str_add(out, i ? ", " : "");
        if (node->outputs.data[i])
            print_tensor(out, node->outputs.data[i]);
        else
            str_add(out, "_");
    }
    str_add(out, " = ");
    if (*op_domain(node->op))
        str_addf(out, "%s::", op_domain(node->op));
    str_addf(out, "%s ", op_name(node->op));
    print_name(out, node->name);
    str_add(out, "(");
    for (int i = 0; i < node->inputs.count; i++) {
        str_add(out, i ? ", " : "");
        if (node->inputs.data[i])
            print_name(out, node->inputs.data[i]->name);
        else
            str_add(out, "_");
    }
    str_add(out, ")");
    attrs_print(out, &node->attrs);
    print_sources(out, node->sources.data, node->sources.count, node->name);
    if (node->no_fuse)
        str_add(out, " no_fuse");
    str_add(out, "\n");
}

/* Two columns further in than the node. */
static void print_body(Str *out, const Graph *body, bool values)
{
    Str text = {0};

    graph_print(&text, body, values);
    str_add(out, "  body {\n");
    for (const char *line = str_text(&text); *line;) {
        size_t length = strcspn(line, "\n") + 1;
        str_add(out, "    ");
        str_add_bytes(out, line, length);
        line += length;
    }
    str_add(out, "  }\n");
    str_free(&text);
}

static void print_group(Str *out, const Group *group)
{
    str_addf(out, "  group %d:", group->id);
    for (int i = 0; i < group->nodes.count; i++) {
        str_add(out, " ");
        print_name(out, group->nodes.data[i]->name);
    }
    if (group->anchor) {
        str_add(out, " = "); /* no name is a bare equals sign */
        print_name(out, group->anchor->name);
    }
    str_add(out, "\n");
}

void graph_print(Str *out, const Graph *g, bool values)
{
    str_add(out, "graph ");
    print_name(out, g->name);
    str_add(out, "\n");
    for (int i = 0; i < g->inputs.count; i++) {
        str_add(out, "  input ");
        print_tensor(out, g->inputs.data[i]);
        str_add(out, "\n");
    }
    for (int i = 0; i < g->declared.count; i++) {
        str_add(out, "  declare ");
        extent_print(out, g->declared.data[i]);
        str_add(out, "\n");
    }
    for (int i = 0; i < g->tensors.count; i++)
        if (g->tensors.data[i]->value)
            print_constant(out, g->tensors.data[i], values);
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *node = g->nodes.data[i];
        print_node(out, node);
        for (int k = 0; k < node->bodies.count; k++)
            print_body(out, node->bodies.data[k], values);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        str_add(out, "  output ");
        print_name(out, g->outputs.data[i]->name);
        str_add(out, "\n");
    }
    for (int i = 0; i < g->groups.count; i++)
        print_group(out, g->groups.data[i]);
}
