/* Attention in its plain form, for the template: four axes, and keys that hold
 * those of the past, whose number is an attribute. */
#include <string.h>

#include "base/diag.h"
#include "ops/attention.h"
#include "ops/make.h"
#include "ops/rules.h"

static Tensor *place_before(Graph *g, Node *node, Tensor *made)
{
    graph_add_source(g, made->producer, node);
    graph_move_before(g, made->producer, node);
    return made;
}

static Tensor *add_plain(Graph *g, Node *node, const char *op,
                         Tensor *const *inputs, int count)
{
    Node *added = graph_add_node(g, op, NULL, inputs, count, 1);
    if (!strcmp(op, "Concat"))
        attrs_set_int(g->arena, &added->attrs, "axis", 2);
    if (!op_infer(g, added))
        die("a part of %s \"%s\" does not type", node->op->name, node->name);
    return place_before(g, node, added->outputs.data[0]);
}

/* Another split of what follows batch and sequence, which a 0 leaves. */
static Tensor *resplit(Graph *g, Node *node, Tensor *x, int64_t heads,
                       int64_t size)
{
    const int64_t dims[4] = {0, 0, heads ? heads : size, size};
    Tensor *inputs[2] = {
        x, graph_add_constant(g, NULL,
                              array_ints(g->arena, dims, heads ? 4 : 3))};
    return add_plain(g, node, "Reshape", inputs, 2);
}

/* [batch, sequence, heads * size] as [batch, heads, sequence, size]. */
static Tensor *split_heads(Graph *g, Node *node, Tensor *x, int64_t heads)
{
    static const int perm[] = {0, 2, 1, 3};
    x = resplit(g, node, x, heads, x->type.dims[2].value / heads);
    return place_before(g, node, op_make_transpose(g, NULL, x, perm));
}

static Tensor *join_heads(Graph *g, Node *node, Tensor *y)
{
    static const int perm[] = {0, 2, 1, 3};
    int64_t size = y->type.dims[1].value * y->type.dims[3].value;
    y = place_before(g, node, op_make_transpose(g, NULL, y, perm));
    return resplit(g, node, y, 0, size);
}

/* The result `output` of the node becomes `to`, where it is wanted. */
static void deliver(Graph *g, Node *node, int output, Tensor *to)
{
    Tensor *from =
        output < node->outputs.count ? node->outputs.data[output] : NULL;
    if (!from)
        return;
    if (!graph_replace(g, from, to)) /* an input is no output */
        graph_replace(g, from, add_plain(g, node, "Identity", &to, 1));
}

bool decompose_attention(Graph *g, Node *node)
{
    Heads h = attention_heads(g->arena, node);
    int outputs = node->outputs.count;
    bool cached = node_has_input(node, IN_PAST_KEY) ||
                  (outputs > OUT_KEY && node->outputs.data[OUT_KEY]) ||
                  (outputs > OUT_VALUE && node->outputs.data[OUT_VALUE]);
    if ((!h.flat && !cached) ||
        (outputs > OUT_SCORES && node->outputs.data[OUT_SCORES]))
        return false;
    /* A past of any length is what keys are more than queries; and a Reshape
     * has another meaning of 0. */
    if ((!extent_is_const(h.past) && !extent_equal(h.keys, h.queries)) ||
        h.size == 0 || h.v_size == 0)
        return false;
    Tensor *in[IN_LENGTHS + 1] = {NULL};
    for (int i = 0; i < node->inputs.count; i++)
        in[i] = node->inputs.data[i];
    for (int i = IN_Q; i <= IN_V && h.flat; i++)
        in[i] = split_heads(g, node, in[i], i ? h.kv_heads : h.q_heads);
    for (int i = 0; i < 2; i++) {
        Tensor *both[2] = {in[IN_PAST_KEY + i], in[IN_K + i]};
        if (both[0])
            in[IN_K + i] = add_plain(g, node, "Concat", both, 2);
        in[IN_PAST_KEY + i] = NULL;
        deliver(g, node, OUT_KEY + i, in[IN_K + i]);
    }
    Node *plain = graph_add_node(g, "assay::Attention", NULL, in,
                                 in[IN_LENGTHS] ? IN_LENGTHS + 1
                                 : in[IN_MASK]  ? IN_MASK + 1
                                                : IN_V + 1,
                                 1);
    plain->attrs = node->attrs;
    attrs_remove(&plain->attrs, "q_num_heads");
    attrs_remove(&plain->attrs, "kv_num_heads");
    attrs_set_int(g->arena, &plain->attrs, "past_length",
                  extent_is_const(h.past) ? h.past.value : -1);
    if (!op_infer(g, plain))
        die("the plain form of \"%s\" does not type", node->name);
    Tensor *y = place_before(g, node, plain->outputs.data[0]);
    if (h.flat)
        y = join_heads(g, node, y);
    deliver(g, node, OUT_Y, y);
    graph_remove_node(g, node);
    return true;
}
