/* See kinds.h. */
#include "passes/kinds.h"

#include <stdlib.h>
#include <string.h>

bool kind_is_fusible(const Node *node)
{
    return !node->no_fuse && node_is_pure(node) && node->outputs.count == 1 &&
           node->outputs.data[0] && node->op->define;
}

bool kind_is_elementwise(const Node *node)
{
    return (node->op->traits & OP_ELEMENTWISE) &&
           !(node->op->traits & OP_ANCHOR) && kind_is_fusible(node);
}

bool kind_is_move(Arena *scratch, const Node *node)
{
    const unsigned other = OP_ANCHOR | OP_REDUCTION | OP_RESHAPE;
    int64_t read = 0;

    if (!(node->op->traits & OP_INJECTIVE) || (node->op->traits & other) ||
        !kind_is_fusible(node))
        return false;
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *x = node->inputs.data[i];
        read += x && !x->value ? type_most(&x->type) : 0;
    }
    if (type_most(&node->outputs.data[0]->type) > read)
        return false;
    const Definition *def = define_node(scratch, node);
    return def && def->stages.count == 1 && !def->stages.data[0]->reduce_count;
}

/* Points of the first stage, its reduction included. */
static int64_t first_points(const Definition *def)
{
    const Stage *s = def->stages.data[0];
    int64_t points = 1;

    for (int i = 0; i < s->axis_count; i++)
        points *= s->axis[i].extent;
    for (int i = 0; i < s->reduce_count; i++)
        points *= s->reduce[i].extent;
    return points;
}

/* The first stage reduces and reads as many elements as operand 0 has; later
 * ones only finish the result (a mean's division, a bias). */
static const Definition *reduces_once(Arena *scratch, const Node *node)
{
    const Tensor *x = node_input(node, 0);
    const Definition *def = x ? define_node(scratch, node) : NULL;

    if (!def || def->stages.count == 0 ||
        def->stages.data[0]->reduce_count == 0 ||
        first_points(def) != type_most(&x->type))
        return NULL;
    for (int i = 1; i < def->stages.count; i++)
        if (def->stages.data[i]->reduce_count)
            return NULL;
    return def;
}

bool kind_is_row_reduction(Arena *scratch, const Node *node)
{
    const Tensor *x = node_input(node, 0);

    if (!(node->op->traits & OP_REDUCTION) || (node->op->traits & OP_ANCHOR) ||
        !kind_is_fusible(node) || !x ||
        x->type.rank != node->outputs.data[0]->type.rank ||
        !reduces_once(scratch, node))
        return false;
    const TensorType *y = &node->outputs.data[0]->type;
    int last = x->type.rank - 1;
    if (last < 0 || y->dims[last].value != 1)
        return false;
    for (int i = 0; i < last; i++)
        if (!extent_equal(x->type.dims[i], y->dims[i]))
            return false;
    return true;
}

bool kind_is_product(Arena *scratch, const Node *node)
{
    if (!(node->op->traits & OP_ANCHOR) || !kind_is_fusible(node))
        return false;
    const Definition *def = define_node(scratch, node);
    if (!def || def->stages.count != 1)
        return false;
    const Stage *s = def->stages.data[0];
    return s->reduce_count == 1 && s->value[0]->kind == EX_MUL &&
           s->value[0]->arg[0]->kind == EX_READ &&
           s->value[0]->arg[1]->kind == EX_READ;
}

int kind_rescaled_axis(Arena *scratch, const Node *node)
{
    const Tensor *x = node_input(node, 0);
    int axis = -1;

    if (!(node->op->traits & OP_REDUCTION) || (node->op->traits & OP_ANCHOR) ||
        !kind_is_fusible(node) || !x || node->inputs.count != 1 ||
        !shapes_equal(&x->type, &node->outputs.data[0]->type))
        return -1;
    const Definition *def = define_node(scratch, node);
    for (int i = 0; def && i < def->stages.count; i++) {
        const Stage *s = def->stages.data[i];
        if (!s->reduce_count)
            continue;
        if (s->axis_count != x->type.rank || s->reduce_count != 1)
            return -1;
        /* Reductions leave one element of that axis and all others. */
        for (int k = 0; k < s->axis_count; k++) {
            if (s->axis[k].extent == x->type.dims[k].value)
                continue;
            if (s->axis[k].extent != 1 || (axis >= 0 && axis != k))
                return -1;
            axis = k;
        }
    }
    return axis;
}

bool kind_reads_once(Arena *scratch, const Node *node)
{
    if (!(node->op->traits & OP_REDUCTION) || !kind_is_fusible(node))
        return false;
    const Definition *def = reduces_once(scratch, node);
    if (!def)
        return false;
    const Expr *value = def->stages.data[0]->value[0];
    return value->kind == EX_MUL && value->arg[0]->kind == EX_READ &&
           !value->arg[0]->outside &&
           strcmp(value->arg[0]->buffer->name, "in0") == 0;
}

typedef struct CostWalk {
    const Node *node;
    const Cost *(*inlined)(void *user, const Node *node, int operand);
    void *user;
    Cost cost;
} CostWalk;

static void add_cost(CostWalk *w, const Expr *x)
{
    w->cost.operations++;
    w->cost.is_costly |= (x->kind >= EX_EXP && x->kind <= EX_COS) ||
                         x->kind == EX_POW ||
                         (x->kind == EX_DIV && dtype_is_float(x->dtype));
    for (int i = 0; i < x->count; i++)
        add_cost(w, x->arg[i]);
    if (x->kind != EX_READ || strncmp(x->buffer->name, "in", 2) != 0)
        return;
    const Cost *operand =
        w->inlined(w->user, w->node, atoi(x->buffer->name + 2));
    if (operand) {
        w->cost.operations += operand->operations;
        w->cost.is_costly |= operand->is_costly;
    }
}

Cost kind_cost(Arena *scratch, const Node *node,
               const Cost *(*inlined)(void *user, const Node *node,
                                      int operand),
               void *user)
{
    CostWalk w = {.node = node, .inlined = inlined, .user = user};
    const Definition *def = define_node(scratch, node);

    if (!def || def->stages.count != 1 || def->stages.data[0]->reduce_count)
        return w.cost;
    for (int v = 0; v < def->stages.data[0]->value_count; v++)
        add_cost(&w, def->stages.data[0]->value[v]);
    return w.cost;
}
