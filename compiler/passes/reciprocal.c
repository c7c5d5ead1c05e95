/* Division by a constant becomes a product with its reciprocal.
 *
 * Input: a typed graph. Output: where an elementwise node divides floats by a
 * constant whose elements have finite and normal reciprocals, a product with
 * those stands in its place. A processor divides a vector in the time of a
 * dozen products, and a product is cheap enough to be computed again for every
 * reader. The result is rounded once more than the quotient was, hence -O2;
 * and where it is rounded to a whole number or compared before an elementary
 * function is taken of it, the quotient stays: 49 / 49 is 1, and 49 * (1 / 49)
 * is not. */
#include <math.h>
#include <string.h>

#include "ops/make.h"
#include "passes/util.h"

/* The node is in0 / in1 and nothing else. */
static bool is_quotient(Arena *scratch, const Node *node)
{
    Definition *def = define_node(scratch, node);

    if (!def || def->stages.count != 1 || def->stages.data[0]->reduce_count)
        return false;
    const Expr *x = def->stages.data[0]->value[0];
    return x->kind == EX_DIV && x->arg[0]->kind == EX_READ &&
           x->arg[1]->kind == EX_READ &&
           x->arg[0]->buffer == definition_find_buffer(def, "in0") &&
           x->arg[1]->buffer == definition_find_buffer(def, "in1");
}

typedef enum Effect {
    SMOOTH,  /* a last bit moves the result by about as much */
    STEPS,   /* a last bit may decide: roundings, comparisons */
    INEXACT, /* an elementary function: nothing behind it is exact */
} Effect;

static Effect effect_of(const Expr *x)
{
    Effect effect = SMOOTH;

    if (x->kind >= EX_EXP && x->kind <= EX_COS)
        return INEXACT;
    switch (x->kind) {
    case EX_FLOOR:
    case EX_CEIL:
    case EX_ROUND:
    case EX_MOD:
    case EX_BITCAST:
    case EX_LT:
    case EX_LE:
    case EX_EQ:
    case EX_NE:
        return STEPS;
    case EX_CAST:
        if (!dtype_is_float(x->dtype))
            return STEPS;
        break;
    default:
        break;
    }
    for (int i = 0; i < x->count && effect == SMOOTH; i++)
        effect = effect_of(x->arg[i]);
    return effect;
}

static Effect node_effect(Arena *scratch, const Node *node)
{
    Definition *def = define_node(scratch, node);

    for (int k = 0; def && k < def->stages.count; k++)
        for (int v = 0; v < def->stages.data[k]->value_count; v++) {
            const Stage *stage = def->stages.data[k];
            Effect effect = effect_of(stage->value[v]);
            if (effect != SMOOTH)
                return effect;
            /* Which of several is chosen. */
            if (stage->reducer && !strcmp(stage->reducer->name, "custom"))
                return STEPS;
        }
    return def ? SMOOTH : STEPS;
}

/* A whole quotient may matter as one until an elementary function has been
 * taken of it. Sums and maxima keep whole numbers whole. */
static bool is_read_smoothly(Arena *scratch, const Tensor *t, int depth)
{
    for (int i = 0; i < t->users.count; i++) {
        const Node *user = t->users.data[i];
        Tensor *out = node_only_output(user);
        Effect effect = node_effect(scratch, user);
        if (effect == INEXACT)
            continue;
        if (effect == STEPS || !out || depth == 0 ||
            !is_read_smoothly(scratch, out, depth - 1))
            return false;
    }
    return true;
}

/* NULL when an element has no reciprocal that is as exact as others. */
static Array *reciprocals(Arena *arena, const Array *a, bool *exact)
{
    Array *made = array_new(arena, a->dtype, a->rank, a->dims);

    *exact = true;
    for (int64_t i = 0; i < array_count(a); i++) {
        double r = 1 / array_get(a, i);
        if (!(a->dtype == DT_F32 ? isnormal((float)r) : isnormal(r)))
            return NULL;
        int exponent;
        *exact &= fabs(frexp(r, &exponent)) == 0.5;
        array_set(made, i, r);
    }
    return made;
}

static bool replace(Graph *g, Arena *scratch, Node *node)
{
    const unsigned need = OP_ELEMENTWISE | OP_BROADCAST;
    Tensor *out = node_only_output(node);

    if ((node->op->traits & need) != need || node->inputs.count != 2 || !out)
        return false;
    Tensor *x = node_input(node, 0), *by = node_input(node, 1);
    if (!x || !by || !by->value || x->value ||
        (by->type.dtype != DT_F32 && by->type.dtype != DT_F64) ||
        !is_quotient(scratch, node))
        return false;
    const int far = 6;
    bool exact;
    Array *values = reciprocals(g->arena, by->value, &exact);
    if (!values || (!exact && !is_read_smoothly(scratch, out, far)))
        return false;
    Tensor *made =
        op_make_product(g, node->name, x, graph_add_constant(g, NULL, values));
    graph_add_source(g, made->producer, node);
    graph_move_before(g, made->producer, node);
    return graph_replace(g, out, made);
}

void pass_reciprocal(PassContext *c)
{
    Arena *scratch = arena_new();
    int replaced = 0;

    /* The new node goes before the one it replaces, which is seen again,
     * without users. */
    for (int i = 0; i < c->graph->nodes.count; i++)
        replaced += replace(c->graph, scratch, c->graph->nodes.data[i]);
    arena_free(scratch);
    if (replaced > 0)
        graph_sweep(c->graph);
}
