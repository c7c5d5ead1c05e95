/* Matrix products. The sum is one reduction stage over "k"; scaling and
 * the third operand of Gemm follow in an elementwise stage. */
#include "ops/rules.h"

/* A named extent is checked when it is bound. */
static bool check_inner(InferContext *c, Extent a, Extent b)
{
    Str x = {0}, y = {0};
    if (extents_agree(a, b))
        return true;
    extent_print_plain(&x, a);
    extent_print_plain(&y, b);
    infer_error(c, "the inner extents %s and %s differ", str_text(&x),
                str_text(&y));
    str_free(&x);
    str_free(&y);
    return false;
}

/* NumPy's matmul: vectors count as a row on the left, as a column on the
 * right, and leading axes broadcast. */
static bool matmul_dims(InferContext *c, int *rank, Extent *dims)
{
    if (!infer_rank(c, 0, 1, MAX_RANK) || !infer_rank(c, 1, 1, MAX_RANK))
        return false;
    const TensorType *x = infer_input(c, 0), *y = infer_input(c, 1);
    int batch_x = x->rank > 2 ? x->rank - 2 : 0;
    int batch_y = y->rank > 2 ? y->rank - 2 : 0;
    int batch = batch_x > batch_y ? batch_x : batch_y;
    if (!check_inner(c, x->dims[x->rank - 1],
                     y->dims[y->rank > 1 ? y->rank - 2 : 0]))
        return false;
    for (int i = 0; i < batch; i++) {
        dims[i] = extent_const(1);
        int at_x = i - (batch - batch_x), at_y = i - (batch - batch_y);
        if ((at_x >= 0 && !infer_broadcast_dim(c, &dims[i], x->dims[at_x])) ||
            (at_y >= 0 && !infer_broadcast_dim(c, &dims[i], y->dims[at_y])))
            return false;
    }
    *rank = batch;
    if (x->rank > 1)
        dims[(*rank)++] = x->dims[x->rank - 2];
    if (y->rank > 1)
        dims[(*rank)++] = y->dims[y->rank - 1];
    return true;
}

/* Integers are allowed, with wrapping sums, as in ONNX. */
static bool infer_matmul(InferContext *c)
{
    Extent dims[MAX_RANK];
    int rank;
    if (!infer_types(c, 0, TYPES_NUMBER) || !infer_same_dtype(c, 0, 1) ||
        !matmul_dims(c, &rank, dims))
        return false;
    return infer_set_checked(c, 0, infer_input(c, 0)->dtype, rank, dims);
}

/* The operands' elements for the product stage being built over `out`. */
static void matmul_operands(StageBuilder *b, const Buffer *x, const Buffer *y,
                            const Expr **left, const Expr **right)
{
    Arena *a = b->arena;
    int rank = b->stage->axis_count;
    int batch = rank - (x->rank > 1) - (y->rank > 1);
    const Expr *at_x[MAX_RANK], *at_y[MAX_RANK];
    const Expr *k = stage_reduce(b, x->dims[x->rank - 1], "k");
    for (int i = 0; i < x->rank - 2; i++)
        at_x[i] = x->dims[i] == 1 ? expr_int(a, 0)
                                  : b->index[batch - (x->rank - 2) + i];
    for (int i = 0; i < y->rank - 2; i++)
        at_y[i] = y->dims[i] == 1 ? expr_int(a, 0)
                                  : b->index[batch - (y->rank - 2) + i];
    if (x->rank > 1)
        at_x[x->rank - 2] = b->index[batch];
    at_x[x->rank - 1] = k;
    if (y->rank > 1) {
        at_y[y->rank - 2] = k;
        at_y[y->rank - 1] = b->index[rank - 1];
    } else {
        at_y[0] = k;
    }
    *left = expr_read(a, x, at_x);
    *right = expr_read(a, y, at_y);
}

/* One stage: the template sees the product alone. */
static void define_matmul(DefineContext *c)
{
    const Expr *left, *right;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    matmul_operands(&b, c->in[0], c->in[1], &left, &right);
    stage_end_reduce(&b, "sum", expr_mul(b.arena, left, right));
}

/* ---- MatMulInteger: bytes with zero points, summed in 32 bits */

/* Signs may be mixed: products of bytes are exact in 32 bits. */
static bool infer_matmul_integer(InferContext *c)
{
    const unsigned bytes = 1 << DT_I8 | 1 << DT_U8;
    Extent dims[MAX_RANK];
    int rank;
    if (!infer_types(c, 0, bytes) || !infer_types(c, 1, bytes) ||
        !matmul_dims(c, &rank, dims))
        return false;
    for (int i = 2; i <= 3; i++) {
        if (!node_has_input(c->node, i))
            continue;
        if (!infer_same_dtype(c, i - 2, i))
            return false;
        if (type_count(infer_input(c, i)) != 1)
            return infer_error(c,
                               "its zero point %s must be a scalar; one "
                               "a row is not supported",
                               c->node->inputs.data[i]->name);
    }
    return infer_set_checked(c, 0, DT_I32, rank, dims);
}

/* Before the product; that the zero points' terms can be moved out of the sum
 * is a matter of schedules. */
static const Expr *subtract_zero(StageBuilder *b, DefineContext *c,
                                 const Expr *value, int index)
{
    const Expr *zeros[MAX_RANK];
    value = expr_cast(b->arena, DT_I32, value);
    if (!node_has_input(c->node, index))
        return value;
    for (int i = 0; i < c->in[index]->rank; i++)
        zeros[i] = expr_int(b->arena, 0);
    const Expr *zero = expr_read(b->arena, c->in[index], zeros);
    return expr_sub(b->arena, value, expr_cast(b->arena, DT_I32, zero));
}

static void define_matmul_integer(DefineContext *c)
{
    const Expr *left, *right;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    matmul_operands(&b, c->in[0], c->in[1], &left, &right);
    left = subtract_zero(&b, c, left, 2);
    right = subtract_zero(&b, c, right, 3);
    stage_end_reduce(&b, "sum", expr_mul(b.arena, left, right));
}

/* ---- Gemm: alpha * op(A) * op(B) + beta * C */

/* C broadcasts to the product's shape and must not enlarge it. */
static bool infer_gemm(InferContext *c)
{
    const Attrs *attrs = &c->node->attrs;
    if (!infer_types(c, 0, TYPES_NUMBER) || !infer_same_dtype(c, 0, 1) ||
        !infer_rank(c, 0, 2, 2) || !infer_rank(c, 1, 2, 2))
        return false;
    const TensorType *x = infer_input(c, 0), *y = infer_input(c, 1);
    int tx = attrs_int(attrs, "transA", 0) != 0;
    int ty = attrs_int(attrs, "transB", 0) != 0;
    Extent dims[2] = {x->dims[tx], y->dims[!ty]};
    if (!check_inner(c, x->dims[!tx], y->dims[ty]))
        return false;
    if (!dtype_is_float(x->dtype) && (attrs_float(attrs, "alpha", 1) != 1 ||
                                      attrs_float(attrs, "beta", 1) != 1))
        return infer_error(c, "alpha and beta of an integer product must "
                              "be 1");
    if (node_has_input(c->node, 2)) {
        const TensorType *z = infer_input(c, 2);
        Extent both[2] = {dims[0], dims[1]};
        if (!infer_same_dtype(c, 0, 2) || !infer_rank(c, 2, 0, 2))
            return false;
        for (int i = 0; i < z->rank; i++) {
            Extent *to = &both[2 - z->rank + i], before = *to;
            if (!infer_broadcast_dim(c, to, z->dims[i]))
                return false;
            if (extent_is_const(before) && !extent_equal(*to, before))
                return infer_error(c,
                                   "C (%s) does not broadcast to the "
                                   "product's shape",
                                   c->node->inputs.data[2]->name);
        }
    }
    return infer_set_checked(c, 0, x->dtype, 2, dims);
}

/* Transposition is a matter of indices only. alpha and beta of 1 leave no
 * trace. */
static void define_gemm(DefineContext *c)
{
    const Attrs *attrs = &c->node->attrs;
    const Buffer *x = c->in[0], *y = c->in[1];
    int tx = attrs_int(attrs, "transA", 0) != 0;
    int ty = attrs_int(attrs, "transB", 0) != 0;
    double alpha = attrs_float(attrs, "alpha", 1);
    double beta = attrs_float(attrs, "beta", 1);
    bool has_c = node_has_input(c->node, 2) && beta != 0;
    Buffer *sum = has_c || alpha != 1 ? define_temp_like(c, "gemm", c->out[0])
                                      : c->out[0];
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    Arena *a = b.arena;
    const Expr *k = stage_reduce(&b, x->dims[!tx], "k");
    const Expr *at_x[2], *at_y[2];
    at_x[tx] = b.index[0];
    at_x[!tx] = k;
    at_y[ty] = k;
    at_y[!ty] = b.index[1];
    stage_end_reduce(
        &b, "sum", expr_mul(a, expr_read(a, x, at_x), expr_read(a, y, at_y)));
    if (sum == c->out[0])
        return;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *value = read_same(&b, sum);
    if (alpha != 1)
        value = expr_mul(a, const_like(a, value, (double)(float)alpha), value);
    if (has_c) {
        const Expr *added = read_broadcast(&b, c->in[2]);
        if (beta != 1)
            added =
                expr_mul(a, const_like(a, value, (double)(float)beta), added);
        value = expr_add(a, value, added);
    }
    stage_end(&b, value);
}

static const AttrSpec gemm_attrs[] = {{"alpha", ATTR_FLOAT, false},
                                      {"beta", ATTR_FLOAT, false},
                                      {"transA", ATTR_INT, false},
                                      {"transB", ATTR_INT, false},
                                      {0}};

static const Op op_matmul = {.name = "MatMul",
                             .domain = "",
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_ANCHOR | OP_REDUCTION |
                                       OP_LINEAR_WEIGHTS | OP_RUNTIME_EXTENTS,
                             .infer = infer_matmul,
                             .define = define_matmul,
                             .channel_axis = -1,
                             .output_channel_axis = -1,
                             .since = 13};
static const Op op_matmul_integer = {.name = "MatMulInteger",
                                     .domain = "",
                                     .min_inputs = 2,
                                     .max_inputs = 4,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .traits = OP_ANCHOR | OP_REDUCTION |
                                               OP_RUNTIME_EXTENTS,
                                     .infer = infer_matmul_integer,
                                     .define = define_matmul_integer,
                                     .since = 10};
/* Not OP_LINEAR_WEIGHTS: the channel axis of the weights depends on transB,
 * and beta scales the third operand. */
static const Op op_gemm = {.name = "Gemm",
                           .domain = "",
                           .min_inputs = 2,
                           .max_inputs = 3,
                           .min_outputs = 1,
                           .max_outputs = 1,
                           .traits =
                               OP_ANCHOR | OP_REDUCTION | OP_RUNTIME_EXTENTS,
                           .attrs = gemm_attrs,
                           .infer = infer_gemm,
                           .define = define_gemm,
                           .since = 13};

const Op *const ops_matmul[] = {&op_matmul, &op_matmul_integer, &op_gemm,
                                NULL};
