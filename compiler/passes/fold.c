/* Constant folding.
 *
 * Input: a typed graph. Output: nodes whose operands are all constants are
 * replaced by their values, through the same definitions that kernels come
 * from, so results do not change. A node is left alone when its result is
 * large and much larger than its operands (a broadcast constant is cheaper
 * to make at run time than to store).
 *
 * At -O0 only what cannot become a kernel is folded: operators without a
 * definition or program and types that no kernel computes with, such as the
 * int8 operand of a dequantized weight. */
#include "passes/util.h"

static const int64_t max_grown_bytes = 64LL << 20;

static bool is_kernel_type(DType dtype)
{
    return dtype == DT_F32 || dtype == DT_I64 || dtype == DT_I32 ||
           dtype == DT_BOOL;
}

static bool can_be_kernel(const Node *node)
{
    if (!node->op->define && !node->op->program)
        return false;
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i] &&
            !is_kernel_type(node->inputs.data[i]->type.dtype))
            return false;
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i] &&
            !is_kernel_type(node->outputs.data[i]->type.dtype))
            return false;
    return true;
}

static int64_t bytes_of(Tensor *const *tensors, int count)
{
    int64_t bytes = 0;

    for (int i = 0; i < count; i++) {
        if (!tensors[i])
            continue;
        int64_t n = type_count(&tensors[i]->type);
        if (n < 0)
            return -1;
        bytes += n * (int64_t)dtype_size(tensors[i]->type.dtype);
    }
    return bytes;
}

static bool is_worth_folding(const Node *node)
{
    int64_t in = bytes_of(node->inputs.data, node->inputs.count);
    int64_t out = bytes_of(node->outputs.data, node->outputs.count);

    return out >= 0 && in >= 0 && (out <= max_grown_bytes || out / 2 <= in);
}

void pass_fold(PassContext *c)
{
    Graph *g = c->graph;
    bool changed = false;

    if (!c->evaluate)
        return;
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (!node_is_pure(node) || !node_is_constant(node) ||
            !is_worth_folding(node))
            continue;
        if (c->opt_level == 0 && can_be_kernel(node))
            continue;
        changed |= node_fold(c, node);
    }
    if (!changed)
        return;
    graph_sweep(g);
    /* A result that is as large as the data say has a size now, if it is an
     * output: then its node stays. */
    pass_infer(c);
}
