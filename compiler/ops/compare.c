/* Comparisons, logic and selection, with broadcasting. */
#include "ops/rules.h"

typedef struct CompareOp {
    Op op;
    unsigned types;
    ExprKind kind;
    bool swap; /* x > y is y < x */
} CompareOp;

/* Both of one type; the result is always bool. */
static bool infer_compare(InferContext *c)
{
    const CompareOp *row = (const CompareOp *)c->node->op;
    Extent dims[MAX_RANK];
    int rank;
    bool texts = infer_input(c, 0)->dtype == DT_STRING;
    if (!(texts || infer_types(c, 0, row->types)) ||
        !infer_same_dtype(c, 0, 1) || !infer_broadcast(c, 0, 1, &rank, dims) ||
        (texts && !infer_strings_known(c)))
        return false;
    return infer_set_checked(c, 0, DT_BOOL, rank, dims);
}

/* Comparisons are ordered: false where either side is NaN. */
static void define_compare(DefineContext *c)
{
    const CompareOp *row = (const CompareOp *)c->node->op;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *x = read_broadcast(&b, c->in[0]);
    const Expr *y = read_broadcast(&b, c->in[1]);
    stage_end(&b, row->swap ? expr_binary(b.arena, row->kind, y, x)
                            : expr_binary(b.arena, row->kind, x, y));
}

/* All three broadcast against each other. */
static bool infer_where(InferContext *c)
{
    Extent dims[MAX_RANK];
    int rank;
    if (!infer_types(c, 0, TYPES_BOOL) || !infer_same_dtype(c, 1, 2) ||
        !infer_broadcast(c, 0, 2, &rank, dims))
        return false;
    return infer_set_checked(c, 0, infer_input(c, 1)->dtype, rank, dims);
}

/* The side that is not taken is not evaluated, so it may not even be there (a
 * read outside its extents). */
static void define_where(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, expr_select(b.arena, read_broadcast(&b, c->in[0]),
                              read_broadcast(&b, c->in[1]),
                              read_broadcast(&b, c->in[2])));
}

#define ROW(field, op_name, allowed, expr_kind, swapped, more_traits, fold,   \
            first)                                                            \
    static const CompareOp row_##field = {                                    \
        {.name = op_name,                                                     \
         .domain = "",                                                        \
         .min_inputs = 2,                                                     \
         .max_inputs = 2,                                                     \
         .min_outputs = 1,                                                    \
         .max_outputs = 1,                                                    \
         .traits = OP_ELEMENTWISE | OP_BROADCAST | (more_traits),             \
         .infer = infer_compare,                                              \
         .define = define_compare,                                            \
         .decompose = fold,                                                   \
         .since = first},                                                     \
        allowed,                                                              \
        expr_kind,                                                            \
        swapped}
ROW(equal, "Equal", TYPES_ANY, EX_EQ, false, OP_COMMUTATIVE | OP_STRINGS,
    decompose_string_equal, 13);
ROW(less, "Less", TYPES_NUMBER, EX_LT, false, 0, NULL, 13);
ROW(less_equal, "LessOrEqual", TYPES_NUMBER, EX_LE, false, 0, NULL, 16);
ROW(greater, "Greater", TYPES_NUMBER, EX_LT, true, 0, NULL, 13);
ROW(greater_equal, "GreaterOrEqual", TYPES_NUMBER, EX_LE, true, 0, NULL, 16);
ROW(and, "And", TYPES_BOOL, EX_AND, false, OP_COMMUTATIVE, NULL, 7);
ROW(or, "Or", TYPES_BOOL, EX_OR, false, OP_COMMUTATIVE, NULL, 7);
ROW(xor, "Xor", TYPES_BOOL, EX_XOR, false, OP_COMMUTATIVE, NULL, 7);

static const Op op_where = {.name = "Where",
                            .domain = "",
                            .min_inputs = 3,
                            .max_inputs = 3,
                            .min_outputs = 1,
                            .max_outputs = 1,
                            .traits = OP_ELEMENTWISE | OP_BROADCAST,
                            .infer = infer_where,
                            .define = define_where,
                            .since = 16};

const Op *const ops_compare[] = {&row_equal.op,
                                 &row_less.op,
                                 &row_less_equal.op,
                                 &row_greater.op,
                                 &row_greater_equal.op,
                                 &row_and.op,
                                 &row_or.op,
                                 &row_xor.op,
                                 &op_where,
                                 NULL};
