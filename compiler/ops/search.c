/* Operators whose results are as many as the data say: each has a dimension of
 * its own, up to all elements, that its kernel counts. */
#include "ops/loop_program.h"
#include "ops/rules.h"

/* "NODE.count", from none to as many as the operand can have. */
static Extent counted(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Arena *arena = c->graph->arena;
    return extent_ranged(arena, arena_printf(arena, "%s.count", c->node->name),
                         0, type_most(x));
}

/* ---- NonZero: the places of all elements that are not 0, in order */

static bool infer_nonzero(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, TYPES_ANY) || !infer_rank(c, 0, 1, MAX_RANK))
        return false;
    Extent dims[2] = {extent_const(x->rank), counted(c)};
    infer_set(c, 0, DT_I64, 2, dims);
    return true;
}

/* NaN is not 0. */
static void program_nonzero(LoopContext *c)
{
    Arena *a = c->arena;
    const TensorType *x = &c->node->inputs.data[0]->type;
    Extent count = c->node->outputs.data[0]->type.dims[1];
    const Buffer *found = loop_variable(c, "found", DT_I64);
    const Expr *index[MAX_RANK], *at = expr_int(a, 0);
    loop_set(c, found, expr_int(a, 0));
    for (int i = 0; i < x->rank; i++) {
        index[i] = loop_for_extent(c, LOOP_SERIAL, "i", x->dims[i]);
        at = expr_add(a, expr_mul_int(a, at, x->dims[i].value), index[i]);
    }
    const Expr *value = loop_load(c, c->in[0], at);
    const Expr *zero = dtype_is_float(value->dtype)
                           ? expr_const(a, value->dtype, 0)
                           : expr_const_int(a, value->dtype, 0);
    loop_if(c, expr_binary(a, EX_NE, value, zero));
    for (int i = 0; i < x->rank; i++)
        loop_store(c, c->out[0],
                   expr_add_int(a, loop_get(c, found), i * count.value),
                   index[i]);
    loop_set(c, found, expr_add_int(a, loop_get(c, found), 1));
    loop_end(c);
    for (int i = 0; i < x->rank; i++)
        loop_end(c);
    loop_set_extent(c, count, loop_get(c, found));
}

static const Op op_nonzero = {.name = "NonZero",
                              .domain = "",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .traits = OP_RUNTIME_EXTENTS,
                              .infer = infer_nonzero,
                              .program = program_nonzero,
                              .since = 13};

const Op *const ops_search[] = {&op_nonzero, NULL};
