/* The list of tables, lookup, and what is checked of every node before its
 * operator's own type rule runs: counts, attributes, and that the inputs have
 * types. Rules can rely on these. */
#include "ops/op.h"

#include <string.h>

#include "ops/control.h"
#include "ops/rules.h"

/* One table a family; a user's own tables go in front of these. */
#define TABLE(name, family, following)                                        \
    static const OpTable name = {family, following}
TABLE(table_winograd, ops_winograd, NULL);
TABLE(table_qlinear, ops_qlinear, &table_winograd);
TABLE(table_requantize, ops_requantize, &table_qlinear);
TABLE(table_rotary, ops_rotary, &table_requantize);
TABLE(table_attention, ops_attention, &table_rotary);
TABLE(table_deform, ops_deform, &table_attention);
TABLE(table_sample, ops_sample, &table_deform);
TABLE(table_spectral, ops_spectral, &table_sample);
TABLE(table_norm, ops_norm, &table_spectral);
TABLE(table_unpool, ops_unpool, &table_norm);
TABLE(table_linear, ops_linear, &table_unpool);
TABLE(table_bitwise, ops_bitwise, &table_linear);
TABLE(table_position, ops_position, &table_bitwise);
TABLE(table_scatter, ops_scatter, &table_position);
TABLE(table_trigonometry, ops_trigonometry, &table_scatter);
TABLE(table_control, ops_control, &table_trigonometry);
TABLE(table_unique, ops_unique, &table_control);
TABLE(table_nms, ops_nms, &table_unique);
TABLE(table_tfidf, ops_tfidf, &table_nms);
TABLE(table_topk, ops_topk, &table_tfidf);
TABLE(table_recurrent, ops_recurrent, &table_topk);
TABLE(table_loss, ops_loss, &table_recurrent);
TABLE(table_quantize, ops_quantize, &table_loss);
TABLE(table_cast, ops_cast, &table_quantize);
TABLE(table_resize, ops_resize, &table_cast);
TABLE(table_index, ops_index, &table_resize);
TABLE(table_movement, ops_movement, &table_index);
TABLE(table_pad, ops_pad, &table_movement);
TABLE(table_fill, ops_fill, &table_pad);
TABLE(table_shape, ops_shape, &table_fill);
TABLE(table_softmax, ops_softmax, &table_shape);
TABLE(table_reduce, ops_reduce, &table_softmax);
TABLE(table_normalization, ops_normalization, &table_reduce);
TABLE(table_matmul, ops_matmul, &table_normalization);
TABLE(table_pool, ops_pool, &table_matmul);
TABLE(table_conv, ops_conv, &table_pool);
TABLE(table_compare, ops_compare, &table_conv);
TABLE(table_binary, ops_binary, &table_compare);
TABLE(table_activation, ops_activation, &table_binary);
TABLE(table_bounded, ops_bounded, &table_activation);
TABLE(table_unary, ops_unary, &table_bounded);

const OpTable *ops_builtin(void)
{
    return &table_unary;
}

/* Linear: a hundred rows, asked once a node. */
const Op *ops_find(const OpTable *tables, const char *domain, const char *name)
{
    /* ONNX writes its own domain in two ways. */
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (; tables; tables = tables->next)
        for (const Op *const *op = tables->ops; *op; op++)
            if (strcmp((*op)->name, name) == 0 &&
                strcmp((*op)->domain ? (*op)->domain : "", domain) == 0)
                return *op;
    return NULL;
}

const char *op_name(const Op *op)
{
    return op->name;
}

const char *op_domain(const Op *op)
{
    return op->domain ? op->domain : "";
}

/* `Conv "conv1" (output y)`; a node that only has the name of its output
 * is known by operator and output alone. */
static void print_node_title(Str *out, const Node *node)
{
    const Tensor *first = node->outputs.count ? node->outputs.data[0] : NULL;
    str_add(out, node->op->name);
    if (!first || strcmp(first->name, node->name) != 0)
        str_addf(out, " \"%s\"", node->name);
    for (int i = 0; i < node->outputs.count; i++) {
        if (node->outputs.data[i]) {
            str_addf(out, " (output %s)", node->outputs.data[i]->name);
            break;
        }
    }
}

/* All messages about a node start alike, so that they can be searched for. */
static bool node_error(Diag *diag, const Node *node, const char *text)
{
    Str title = {0};
    print_node_title(&title, node);
    diag_error(diag, "%s: %s", str_text(&title), text);
    str_free(&title);
    return false;
}

bool infer_error(InferContext *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(c->graph->arena, format, args);
    va_end(args);
    return node_error(c->graph->diag, c->node, text);
}

/* With the article, as messages use it. */
static const char *kind_name(AttrKind kind)
{
    static const char *const names[] = {[ATTR_INT] = "an integer",
                                        [ATTR_FLOAT] = "a float",
                                        [ATTR_STRING] = "a string",
                                        [ATTR_INTS] = "a list of integers",
                                        [ATTR_FLOATS] = "a list of floats",
                                        [ATTR_STRINGS] = "a list of strings",
                                        [ATTR_TENSOR] = "a tensor"};
    return names[kind];
}

static const AttrSpec *find_spec(const Op *op, const char *name)
{
    for (const AttrSpec *spec = op->attrs; spec && spec->name; spec++)
        if (strcmp(spec->name, name) == 0)
            return spec;
    return NULL;
}

/* An unknown attribute is an error: what it asks for would silently be left
 * out. */
static bool check_attrs(InferContext *c)
{
    const Op *op = c->node->op;
    const Attrs *attrs = &c->node->attrs;
    for (int i = 0; i < attrs->list.count; i++) {
        const Attr *attr = &attrs->list.data[i];
        const AttrSpec *spec = find_spec(op, attr->name);
        if (!spec)
            return infer_error(c, "unknown attribute %s", attr->name);
        AttrKind kind = spec->kind == ATTR_FLAG ? ATTR_INT : spec->kind;
        if (kind != attr->kind)
            return infer_error(c, "attribute %s is %s, it must be %s",
                               attr->name, kind_name(attr->kind),
                               kind_name(kind));
        if (spec->kind == ATTR_FLAG && attr->i != 0 && attr->i != 1)
            return infer_error(c, "attribute %s is %lld, it must be 0 or 1",
                               attr->name, (long long)attr->i);
    }
    for (const AttrSpec *spec = op->attrs; spec && spec->name; spec++)
        if (spec->required && !attrs_find(attrs, spec->name))
            return infer_error(c, "the attribute %s is missing", spec->name);
    return true;
}

/* `highest` below 0: no limit of its own. */
static bool check_count(InferContext *c, const char *what, int count,
                        int lowest, int highest)
{
    if (count < lowest)
        return infer_error(c, "has %d %s, it needs at least %d", count, what,
                           lowest);
    if (highest >= 0 && count > highest)
        return infer_error(c, "has %d %s, at most %d are allowed", count, what,
                           highest);
    return true;
}

/* Beyond any memory. What is computed from extents below stays a number, also
 * where another extent is 0 and the tensor as such empty. */
static const int64_t most_elements = (int64_t)1 << 48;

static bool check_size(InferContext *c, const Tensor *t)
{
    int64_t room = most_elements;
    for (int i = 0; i < t->type.rank; i++)
        if (t->type.dims[i].value > 1)
            room /= t->type.dims[i].value;
    if (room > 0)
        return true;
    Str text = {0};
    type_print(&text, &t->type);
    infer_error(c, "tensor %s is %s: the tensor is too large", t->name,
                str_text(&text));
    str_free(&text);
    return false;
}

/* Operands the operator must have are there, and what is there has a type. */
static bool check_inputs(InferContext *c)
{
    const Node *node = c->node;
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *input = node->inputs.data[i];
        if (!input) {
            if (i < node->op->min_inputs)
                return infer_error(c, "input %d is left out, it is required",
                                   i);
            continue;
        }
        if (input->type.dtype == DT_INVALID || input->type.rank < 0)
            return infer_error(c, "the type of its input %s is not known",
                               input->name);
        if (input->type.dtype == DT_STRING && !(node->op->traits & OP_STRINGS))
            return infer_error(c,
                               "its input %s holds strings, which this "
                               "operator does not take",
                               input->name);
        if (!check_size(c, input))
            return false;
    }
    return true;
}

static bool run_rule(InferContext *c)
{
    if (!c->node->op->infer(c))
        return false;
    for (int i = 0; i < c->node->outputs.count; i++) {
        Tensor *t = c->node->outputs.data[i];
        if (t && t->type.dtype == DT_STRING) {
            t->type = (TensorType){.rank = -1};
            return infer_error(c, "results that are strings are not "
                                  "supported");
        }
        if (t && !check_size(c, t)) {
            t->type = (TensorType){.rank = -1};
            return false;
        }
    }
    infer_symbols(c->graph, c->node);
    return true;
}

/* The order matters: a rule must not see a node that these checks refuse. */
bool op_infer(Graph *g, Node *node)
{
    InferContext c = {g, node};
    const Op *op = node->op;
    int most_in = op->max_inputs < 0 ? MAX_OP_INPUTS : op->max_inputs;
    int most_out = op->max_outputs < 0 ? MAX_OP_OUTPUTS : op->max_outputs;
    /* Definitions make what every node of the operator has. */
    for (int i = 0; i < op->min_outputs && i < node->outputs.count; i++)
        if (!node->outputs.data[i])
            graph_restore_output(g, node, i);
    return check_count(&c, "inputs", node->inputs.count, op->min_inputs,
                       most_in) &&
           check_count(&c, "outputs", node->outputs.count, op->min_outputs,
                       most_out) &&
           check_attrs(&c) && check_inputs(&c) && run_rule(&c);
}

static bool has_untyped_input(const Node *node)
{
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *input = node->inputs.data[i];
        if (input && input->producer && input->type.rank < 0)
            return true;
    }
    return false;
}

/* A type from an earlier run must not hide that the node is at fault now. */
static void forget_types(Node *node)
{
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i]) {
            node->outputs.data[i]->type = (TensorType){.rank = -1};
            node->outputs.data[i]->symbols = NULL;
        }
}

bool ops_infer_graph(Graph *g)
{
    bool ok = true;
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        bool typed = !has_untyped_input(node);
        if (typed && node->bodies.count)
            control_bind(node);
        for (int k = 0; typed && k < node->bodies.count; k++)
            typed &= ops_infer_graph(node->bodies.data[k]);
        if (!typed || !op_infer(g, node)) {
            forget_types(node);
            ok = false;
        }
    }
    return ok;
}

/* Says which of the two things is missing: an extent, or room. */
static bool check_tensor(const Graph *g, const Node *node,
                         const Tensor *tensor)
{
    const TensorType *type = &tensor->type;
    if (type_most(type) >= 0)
        return true;
    Str text = {0};
    type_print(&text, type);
    const char *why =
        type_is_bounded(type)
            ? "the tensor is too large"
            : "every extent must have a bound; give --dim NAME=VALUE or "
              "--dim NAME=LOW..HIGH for each named dimension";
    node_error(g->diag, node,
               arena_printf(g->arena, "tensor %s is %s: %s", tensor->name,
                            str_text(&text), why));
    str_free(&text);
    return false;
}

bool op_check_lowerable(const Graph *g, const Node *node)
{
    if (!node->op->define && !node->op->program && !node->bodies.count)
        return node_error(g->diag, node,
                          "this operator can only be computed on constants; "
                          "make its inputs constant");
    if (node_has_strings(node))
        return node_error(g->diag, node,
                          "there are no kernels for strings; give those that "
                          "are inputs with --bind NAME=FILE");
    for (int i = 0; i < node->bodies.count; i++) {
        const Graph *body = node->bodies.data[i];
        for (int k = 0; k < body->nodes.count; k++)
            if (!op_check_lowerable(body, body->nodes.data[k]))
                return false;
    }
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i] &&
            !check_tensor(g, node, node->inputs.data[i]))
            return false;
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i] &&
            !check_tensor(g, node, node->outputs.data[i]))
            return false;
    return true;
}

/* Names in the extents of the inputs, from which all others come; one
 * message for all of them. */
static bool check_unbound(const Graph *g)
{
    Str list = {0};
    for (int i = 0; i < g->inputs.count; i++) {
        const Tensor *input = g->inputs.data[i];
        if (type_is_bounded(&input->type))
            continue;
        str_addf(&list, "%s%s: ", list.length ? ", " : "", input->name);
        type_print(&list, &input->type);
    }
    if (list.length)
        diag_error(g->diag,
                   "inputs have named dimensions (%s); give each a number "
                   "with --dim NAME=VALUE, or bounds with --dim "
                   "NAME=LOW..HIGH for one artifact that takes all of them",
                   str_text(&list));
    bool ok = list.length == 0;
    str_free(&list);
    return ok;
}

bool op_takes_runtime_extents(const Node *node)
{
    return (node->op->traits & (OP_RUNTIME_EXTENTS | OP_ELEMENTWISE)) ||
           node_is_static(node);
}

bool node_is_program(const Node *node)
{
    const Op *op = node->op;
    return op->program && (!op->define || op->prefers_program(node));
}

bool node_has_strings(const Node *node)
{
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i] &&
            node->inputs.data[i]->type.dtype == DT_STRING)
            return true;
    return false;
}

bool node_is_static(const Node *node)
{
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i] &&
            !type_is_static(&node->inputs.data[i]->type))
            return false;
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i] &&
            !type_is_static(&node->outputs.data[i]->type))
            return false;
    return true;
}

static void list_static_only(const Graph *g, Str *list)
{
    Str type = {0};
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *node = g->nodes.data[i];
        for (int k = 0; k < node->bodies.count; k++)
            list_static_only(node->bodies.data[k], list);
        if (op_takes_runtime_extents(node))
            continue;
        const Tensor *t = node->outputs.data[0];
        type.length = 0;
        for (int k = 0; t && k < t->type.rank; k++) {
            str_add(&type, k ? "," : "");
            extent_print_plain(&type, t->type.dims[k]);
        }
        str_addf(list, "%s%s \"%s\" [%s]", list->length ? ", " : "",
                 node->op->name, node->name, t ? str_text(&type) : "");
    }
    str_free(&type);
}

/* All nodes that need numbers in one message, operator by operator. */
static bool check_runtime_extents(const Graph *g)
{
    Str list = {0};
    list_static_only(g, &list);
    if (list.length)
        diag_error(g->diag,
                   "dimensions with bounds are not supported by: %s; fix "
                   "them with --dim NAME=VALUE",
                   str_text(&list));
    bool ok = list.length == 0;
    str_free(&list);
    return ok;
}

/* Also those that nothing reads: a program has a buffer for each. */
static bool check_input_types(const Graph *g)
{
    bool ok = true;
    for (int i = 0; i < g->inputs.count; i++)
        if (g->inputs.data[i]->type.dtype == DT_STRING)
            ok = diag_error(g->diag,
                            "input %s holds strings, which a program does "
                            "not take; give it with --bind NAME=FILE",
                            g->inputs.data[i]->name);
    return ok;
}

bool ops_check_lowerable(const Graph *g)
{
    if (!check_unbound(g) || !check_input_types(g))
        return false;
    bool ok = check_runtime_extents(g);
    for (int i = 0; i < g->nodes.count; i++)
        ok &= op_check_lowerable(g, g->nodes.data[i]);
    return ok;
}
