/* Nodes that passes make; see make.h. */
#include "ops/make.h"

#include "ops/op.h"

static Tensor *make(Graph *g, Node *node)
{
    if (!op_infer(g, node))
        die("a node that a pass made does not type: %s \"%s\"", node->op->name,
            node->name);
    return node->outputs.data[0];
}

Tensor *op_make_transpose(Graph *g, const char *name, Tensor *x,
                          const int *perm)
{
    int64_t values[MAX_RANK];
    Node *node = graph_add_node(g, "Transpose", name, &x, 1, 1);

    for (int i = 0; i < x->type.rank; i++)
        values[i] = perm[i];
    attrs_set_ints(g->arena, &node->attrs, "perm", values, x->type.rank);
    return make(g, node);
}

Tensor *op_make_reshape(Graph *g, const char *name, Tensor *x,
                        const TensorType *type)
{
    int64_t dims[MAX_RANK];

    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    Tensor *shape =
        graph_add_constant(g, NULL, array_ints(g->arena, dims, type->rank));
    Tensor *inputs[2] = {x, shape};
    Node *node = graph_add_node(g, "Reshape", name, inputs, 2, 1);
    /* An extent of 0 in the operand then means 0, not "as the input". */
    attrs_set_int(g->arena, &node->attrs, "allowzero", 1);
    return make(g, node);
}

Tensor *op_make_slice(Graph *g, const char *name, Tensor *x, int axis,
                      int64_t start, int64_t extent)
{
    int64_t end = start + extent, at = axis;
    Tensor *inputs[] = {
        x, graph_add_constant(g, NULL, array_ints(g->arena, &start, 1)),
        graph_add_constant(g, NULL, array_ints(g->arena, &end, 1)),
        graph_add_constant(g, NULL, array_ints(g->arena, &at, 1))};

    return make(g, graph_add_node(g, "Slice", name, inputs, 4, 1));
}

Tensor *op_make_product(Graph *g, const char *name, Tensor *x, Tensor *y)
{
    Tensor *inputs[] = {x, y};

    return make(g, graph_add_node(g, "Mul", name, inputs, 2, 1));
}

Tensor *op_make_join(Graph *g, const char *name, Tensor *const *parts,
                     int count, int axis)
{
    Node *node = graph_add_node(g, "Concat", name, parts, count, 1);

    attrs_set_int(g->arena, &node->attrs, "axis", axis);
    return make(g, node);
}

Tensor *op_make_like(Graph *g, const Node *node, Tensor *const *inputs,
                     const int64_t *pads, int spatial)
{
    const char *domain = op_domain(node->op), *op = op_name(node->op);
    if (*domain)
        op = arena_printf(g->arena, "%s::%s", domain, op);
    Node *made = graph_add_node(g, op, NULL, inputs, node->inputs.count, 1);

    for (int i = 0; i < node->attrs.list.count; i++)
        attrs_set(g->arena, &made->attrs, node->attrs.list.data[i]);
    if (pads) {
        attrs_remove(&made->attrs, "auto_pad");
        attrs_set_ints(g->arena, &made->attrs, "pads", pads, 2 * spatial);
    }
    return make(g, made);
}

Tensor *op_make_relayout(Graph *g, const char *name, Tensor *x)
{
    return make(g, graph_add_node(g, "assay::Relayout", name, &x, 1, 1));
}
