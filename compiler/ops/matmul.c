/* Matrix products. The sum is one reduction stage over "k"; scaling and
 * the third operand of Gemm follow in an elementwise stage. */
#include "ops/product.h"

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

/* Vectors count as a row on the left, as a column on the right, and leading
 * axes broadcast. */
bool matmul_extents(InferContext *c, int left, int right, int *rank,
                    Extent *dims)
{
    if (!infer_rank(c, left, 1, MAX_RANK) ||
        !infer_rank(c, right, 1, MAX_RANK))
        return false;
    const TensorType *x = infer_input(c, left), *y = infer_input(c, right);
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
        !matmul_extents(c, 0, 1, &rank, dims))
        return false;
    return infer_set_checked(c, 0, infer_input(c, 0)->dtype, rank, dims);
}

MatmulPlaces matmul_places(const StageBuilder *b, const Buffer *x,
                           const Buffer *y, const Expr *k)
{
    MatmulPlaces at;
    int rank = b->stage->axis_count;
    int batch = rank - (x->rank > 1) - (y->rank > 1);
    for (int i = 0; i < x->rank - 2; i++)
        at.left[i] = x->dims[i] == 1 ? expr_int(b->arena, 0)
                                     : b->index[batch - (x->rank - 2) + i];
    for (int i = 0; i < y->rank - 2; i++)
        at.right[i] = y->dims[i] == 1 ? expr_int(b->arena, 0)
                                      : b->index[batch - (y->rank - 2) + i];
    if (x->rank > 1)
        at.left[x->rank - 2] = b->index[batch];
    at.left[x->rank - 1] = k;
    if (y->rank > 1) {
        at.right[y->rank - 2] = k;
        at.right[y->rank - 1] = b->index[rank - 1];
    } else {
        at.right[0] = k;
    }
    return at;
}

/* One stage: the template sees the product alone. */
static void define_matmul(DefineContext *c)
{
    const Buffer *x = c->in[0], *y = c->in[1];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *k = stage_reduce(&b, x->dims[x->rank - 1], "k");
    MatmulPlaces at = matmul_places(&b, x, y, k);
    stage_end_reduce(&b, "sum",
                     expr_mul(b.arena, expr_read(b.arena, x, at.left),
                              expr_read(b.arena, y, at.right)));
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
                                      {"transA", ATTR_FLAG, false},
                                      {"transB", ATTR_FLAG, false},
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

const Op *const ops_matmul[] = {&op_matmul, &op_gemm, NULL};
