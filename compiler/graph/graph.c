/* Building and looking up. Names are unique within tensors and within nodes,
 * kept in maps, so that building a graph of any size is linear. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

Graph *graph_new(Arena *arena, Diag *diag, const char *name,
                 const OpTable *ops)
{
    Graph *g = ARENA_NEW(arena, Graph);
    g->arena = arena;
    g->diag = diag;
    g->name = arena_strdup(arena, name ? name : "graph");
    g->ops = ops;
    map_init(&g->tensor_names, arena);
    map_init(&g->node_names, arena);
    return g;
}

/* `name`, or with a suffix when it is taken. Ids make good suffixes: they
 * do not depend on anything but the order of building, and the first one
 * tried is nearly always free. */
static const char *unique_name(Graph *g, const Map *taken, const char *name)
{
    int suffix = g->next_id;
    const char *unique = arena_strdup(g->arena, name);
    while (map_get(taken, unique))
        unique = arena_printf(g->arena, "%s_%d", name, suffix++);
    return unique;
}

/* `is_given`: the name comes from the source and is remembered as such even
 * when it had to be changed. */
static Tensor *new_tensor(Graph *g, const char *name, bool is_given)
{
    Tensor *tensor = ARENA_NEW(g->arena, Tensor);
    tensor->name = unique_name(g, &g->tensor_names, name);
    tensor->id = g->next_id++;
    tensor->type.rank = -1;
    map_set(&g->tensor_names, tensor->name, tensor);
    vec_push(g->arena, &g->tensors, tensor);
    if (is_given)
        vec_push(g->arena, &tensor->sources, arena_strdup(g->arena, name));
    return tensor;
}

Tensor *graph_add_input(Graph *g, const char *name, TensorType type)
{
    Tensor *tensor = new_tensor(g, name ? name : "input", name != NULL);
    tensor->type = type;
    tensor->is_input = true;
    vec_push(g->arena, &g->inputs, tensor);
    return tensor;
}

Tensor *graph_add_constant(Graph *g, const char *name, const Array *value)
{
    Tensor *tensor = new_tensor(g, name ? name : "const", name != NULL);
    tensor->type = type_of_array(value);
    tensor->value = value;
    return tensor;
}

/* "domain::Name" or "Name". */
static const Op *find_op(Graph *g, const char *text)
{
    const char *colons = strstr(text, "::");
    const char *name = colons ? colons + 2 : text;
    const char *domain =
        colons ? arena_strndup(g->arena, text, (size_t)(colons - text)) : "";
    const Op *op = ops_find(g->ops, domain, name);
    if (!op)
        diag_error(g->diag, "unknown operator %s%s%s", domain,
                   *domain ? "::" : "", name);
    return op;
}

Node *graph_add_node(Graph *g, const char *op_text, const char *name,
                     Tensor *const *inputs, int input_count, int output_count)
{
    const Op *op = find_op(g, op_text);
    if (!op)
        return NULL;
    Node *node = ARENA_NEW(g->arena, Node);
    node->op = op;
    node->name =
        unique_name(g, &g->node_names, name && *name ? name : op_name(op));
    node->id = g->next_id++;
    map_set(&g->node_names, node->name, node);
    vec_push(g->arena, &g->nodes, node);
    if (name && *name)
        vec_push(g->arena, &node->sources, arena_strdup(g->arena, name));
    for (int i = 0; i < input_count; i++) {
        vec_push(g->arena, &node->inputs, inputs[i]);
        if (inputs[i])
            vec_push(g->arena, &inputs[i]->users, node);
    }
    for (int i = 0; i < output_count; i++) {
        const char *wanted =
            i ? arena_printf(g->arena, "%s.%d", node->name, i) : node->name;
        Tensor *tensor = new_tensor(g, wanted, false);
        tensor->producer = node;
        /* The layer's name is what a model written in C knows it by. */
        if (name && *name)
            vec_push(g->arena, &tensor->sources, wanted);
        vec_push(g->arena, &node->outputs, tensor);
    }
    return node;
}

void graph_restore_output(Graph *g, Node *node, int index)
{
    Tensor *tensor = new_tensor(
        g, arena_printf(g->arena, "%s.%d", node->name, index), false);
    tensor->producer = node;
    node->outputs.data[index] = tensor;
}

void graph_mark_output(Graph *g, Tensor *tensor)
{
    if (tensor->is_output)
        return;
    tensor->is_output = true;
    vec_push(g->arena, &g->outputs, tensor);
}

void graph_name_tensor(Graph *g, Tensor *tensor, const char *name)
{
    if (strcmp(tensor->name, name) != 0) {
        map_set(&g->tensor_names, tensor->name, NULL);
        tensor->name = unique_name(g, &g->tensor_names, name);
        map_set(&g->tensor_names, tensor->name, tensor);
    }
    tensor->sources.count = 0;
    vec_push(g->arena, &tensor->sources, arena_strdup(g->arena, name));
}

/* A fault is in g->diag; the output, of unknown type then, is returned all
 * the same, so that a model need not check after each layer. */
Tensor *graph_apply(Graph *g, const char *op, const char *name, Attrs attrs,
                    ...)
{
    Vec(Tensor *) inputs = {0};
    va_list args;
    va_start(args, attrs);
    for (Tensor *t; (t = va_arg(args, Tensor *)) != NULL;)
        vec_push(g->arena, &inputs, t);
    va_end(args);
    Node *node = graph_add_node(g, op, name, inputs.data, inputs.count, 1);
    if (!node)
        return NULL;
    node->attrs = attrs;
    op_infer(g, node);
    return node->outputs.data[0];
}

Tensor *graph_find_tensor(const Graph *g, const char *name)
{
    return map_get(&g->tensor_names, name);
}

Node *graph_find_node(const Graph *g, const char *name)
{
    return map_get(&g->node_names, name);
}

const char *apart_text(Apart apart)
{
    static const char *const texts[APART_COUNT] = {
        [APART_NONE] = "together",
        [APART_OUTPUT] = "output of the graph",
        [APART_READERS] = "has another consumer",
        [APART_ANCHOR] = "second anchor",
        [APART_OPERAND] = "operand of an anchor, which reads it many times",
        [APART_TAKEN] = "already in another group",
        [APART_REDUCTION] = "reduction over a fused axis",
        [APART_MOVED] = "moves elements of a tile or row",
        [APART_SHAPE] = "shape differs",
        [APART_VIEW] = "view, no kernel",
        [APART_REPEATED] = "too costly to recompute",
        [APART_SIZE] = "group is full",
        [APART_EXCLUDED] = "--no-fuse",
        [APART_KIND] = "impure or several results",
        [APART_PROGRAM] = "loop program",
        [APART_CONTROL] = "control flow",
        [APART_LEVEL] = "no fusion at -O0",
    };
    return texts[apart];
}

Tensor *tensor_storage(Tensor *tensor)
{
    while (tensor->within)
        tensor = tensor->within;
    return tensor;
}

int graph_symbol(const Graph *g, const char *name)
{
    for (int i = 0; i < g->symbols.count; i++)
        if (strcmp(g->symbols.data[i].expr->name, name) == 0)
            return i;
    return -1;
}

static void add_symbols(Graph *g, Extent extent)
{
    const DimExpr *expr = extent.expr;
    if (!expr)
        return;
    if (expr->kind != DIM_NAME) {
        add_symbols(g, expr->a);
        add_symbols(g, expr->b);
    } else if (extent.value >= 0 && graph_symbol(g, expr->name) < 0) {
        vec_push(g->arena, &g->symbols, extent);
    }
}

void graph_add_symbols(Graph *g, const TensorType *type)
{
    for (int k = 0; k < type->rank; k++)
        add_symbols(g, type->dims[k]);
}

/* Of its type, and those that its elements are. */
static void add_tensor(Graph *g, const Tensor *t)
{
    int64_t count = t->symbols ? type_count(&t->type) : 0;
    graph_add_symbols(g, &t->type);
    for (int64_t i = 0; i < count; i++)
        add_symbols(g, t->symbols[i]);
}

static void add_nodes(Graph *g, const Graph *of)
{
    for (int i = 0; i < of->nodes.count; i++) {
        const Node *node = of->nodes.data[i];
        for (int k = 0; k < node->outputs.count; k++)
            if (node->outputs.data[k])
                add_tensor(g, node->outputs.data[k]);
        for (int k = 0; k < node->bodies.count; k++)
            add_nodes(g, node->bodies.data[k]);
    }
}

void graph_find_symbols(Graph *g)
{
    g->symbols.count = 0;
    for (int i = 0; i < g->inputs.count; i++)
        graph_add_symbols(g, &g->inputs.data[i]->type);
    g->input_symbols = g->symbols.count;
    add_nodes(g, g);
}

/* An extent with a bound is not static: what runs may be smaller. */
bool type_is_static(const TensorType *type)
{
    if (type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!extent_is_const(type->dims[i]))
            return false;
    return true;
}

/* The smaller of two has a bound when one of them does; what it is can be
 * told only where both are. */
static bool is_bounded(Extent extent)
{
    const DimExpr *e = extent.expr;
    if (extent.value < 0)
        return false;
    return !e || e->kind == DIM_NAME || (is_bounded(e->a) && is_bounded(e->b));
}

bool type_is_bounded(const TensorType *type)
{
    if (type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!is_bounded(type->dims[i]))
            return false;
    return true;
}

int64_t type_count(const TensorType *type)
{
    return type_is_static(type) ? type_most(type) : -1;
}

int64_t type_most(const TensorType *type)
{
    int64_t count = 1;
    if (!type_is_bounded(type))
        return -1;
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i].value == 0)
            return 0; /* however large the other extents are */
    for (int i = 0; i < type->rank; i++)
        if (__builtin_mul_overflow(count, type->dims[i].value, &count))
            return -1;
    return count;
}

bool type_equal(const TensorType *a, const TensorType *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!extent_equal(a->dims[i], b->dims[i]))
            return false;
    return true;
}

/* " quant(AXIS, {SCALES}, {ZERO POINTS})" */
static void print_quant(Str *out, const Quant *quant)
{
    str_addf(out, " quant(%d, {", quant->axis);
    for (int i = 0; i < quant->count; i++) {
        str_add(out, i ? ", " : "");
        str_add_double(out, quant->scales[i]);
    }
    str_add(out, "}, {");
    for (int i = 0; i < quant->count; i++)
        str_addf(out, "%s%lld", i ? ", " : "",
                 (long long)quant->zero_points[i]);
    str_add(out, "})");
}

void type_print(Str *out, const TensorType *type)
{
    if (type->dtype == DT_INVALID || type->rank < 0) {
        str_add(out,
                type->dtype == DT_INVALID ? "?" : dtype_name(type->dtype));
        str_add(out, "[?]");
        return;
    }
    str_addf(out, "%s[", dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++) {
        str_add(out, i ? "," : "");
        extent_print(out, type->dims[i]);
    }
    str_add(out, "]");
    if (type->quant)
        print_quant(out, type->quant);
}

/* Values have constant extents only. */
TensorType type_of_array(const Array *array)
{
    TensorType type = {.dtype = array->dtype, .rank = array->rank};
    for (int i = 0; i < array->rank; i++)
        type.dims[i] = extent_const(array->dims[i]);
    return type;
}
