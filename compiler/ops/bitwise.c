/* Bits of integers. */
#include <string.h>

#include "ops/rules.h"

typedef struct BitOp {
    Op op;
    unsigned types;
    ExprKind kind;
} BitOp;

static bool infer_bits(InferContext *c)
{
    const BitOp *row = (const BitOp *)c->node->op;
    int last = row->op.max_inputs - 1, rank;
    const char *direction = attrs_string(&c->node->attrs, "direction", "LEFT");
    Extent dims[MAX_RANK];
    if (!infer_types(c, 0, row->types) || !infer_same_dtype(c, 0, last) ||
        !infer_broadcast(c, 0, last, &rank, dims))
        return false;
    if (strcmp(direction, "LEFT") && strcmp(direction, "RIGHT"))
        return infer_error(c, "direction is LEFT or RIGHT");
    return infer_set_checked(c, 0, infer_input(c, 0)->dtype, rank, dims);
}

static void define_bits(DefineContext *c)
{
    const BitOp *row = (const BitOp *)c->node->op;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *x = read_broadcast(&b, c->in[0]);
    stage_end(&b, c->in[1] ? expr_binary(b.arena, row->kind, x,
                                         read_broadcast(&b, c->in[1]))
                           : expr_unary(b.arena, row->kind, x));
}

/* Processors disagree about shifts by more than there are bits. */
static void define_shift(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const char *direction = attrs_string(&c->node->attrs, "direction", "LEFT");
    const Expr *x = read_broadcast(&b, c->in[0]);
    const Expr *by = read_broadcast(&b, c->in[1]);
    const Expr *bits = const_like(a, by, 8.0 * (double)dtype_size(x->dtype));
    const Expr *most =
        const_like(a, by, 8.0 * (double)dtype_size(x->dtype) - 1);
    const Expr *shifted = expr_binary(a, direction[0] == 'L' ? EX_SHL : EX_SHR,
                                      x, expr_min(a, by, most));
    stage_end(&b, expr_select(a, expr_binary(a, EX_LT, by, bits), shifted,
                              const_like(a, x, 0)));
}

static const AttrSpec shift_attrs[] = {{"direction", ATTR_STRING, true}, {0}};

#define ROW(field, op_name, inputs, allowed, how, more_traits, specs,         \
            definition, first)                                                \
    static const BitOp row_##field = {                                        \
        {.name = op_name,                                                     \
         .domain = "",                                                        \
         .min_inputs = inputs,                                                \
         .max_inputs = inputs,                                                \
         .min_outputs = 1,                                                    \
         .max_outputs = 1,                                                    \
         .traits = OP_ELEMENTWISE | (more_traits),                            \
         .attrs = specs,                                                      \
         .infer = infer_bits,                                                 \
         .define = definition,                                                \
         .since = first},                                                     \
        allowed,                                                              \
        how}
ROW(and, "BitwiseAnd", 2, TYPES_INT, EX_AND, OP_BROADCAST | OP_COMMUTATIVE,
    NULL, define_bits, 18);
ROW(or, "BitwiseOr", 2, TYPES_INT, EX_OR, OP_BROADCAST | OP_COMMUTATIVE, NULL,
    define_bits, 18);
ROW(xor, "BitwiseXor", 2, TYPES_INT, EX_XOR, OP_BROADCAST | OP_COMMUTATIVE,
    NULL, define_bits, 18);
ROW(not, "BitwiseNot", 1, TYPES_INT, EX_NOT, 0, NULL, define_bits, 18);
ROW(shift, "BitShift", 2, TYPES_UNSIGNED, EX_SHL, OP_BROADCAST, shift_attrs,
    define_shift, 11);

const Op *const ops_bitwise[] = {&row_and.op, &row_or.op,    &row_xor.op,
                                 &row_not.op, &row_shift.op, NULL};
