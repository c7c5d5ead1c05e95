/* Products and convolutions of bytes: sums in 32 bits of what is left after
 * the zero points, and for the QLinear forms the sum as a byte again. Bits
 * match those of a computation in integers and single floats: the sum is
 * exact, and is rounded once, half to even. */
#include "ops/product.h"
#include "ops/whole.h"

enum { TYPES_BYTE = 1 << DT_I8 | 1 << DT_U8 };

/* Scale and zero point of an operand, by place among the inputs; -1: the node
 * has none. They may differ along `axis` of the operand, and in each batch of
 * matrices if these have `batches`. */
typedef struct Affine {
    int operand, scale, zero, axis;
    bool batches;
} Affine;

/* ---- type rules */

/* One for all, a list along the axis, or with the operand's rank and extents
 * of 1 elsewhere but in batches. */
static bool check_param(InferContext *c, const char *what, int input,
                        const TensorType *operand, int axis, bool batches)
{
    const TensorType *p = infer_input(c, input);
    bool fits = type_count(p) == 1;
    if (!fits && axis >= 0 && p->rank == 1)
        fits = extent_equal(p->dims[0], operand->dims[axis]);
    if (!fits && batches && p->rank == operand->rank && p->rank > 1) {
        fits = true;
        for (int i = 0; i < p->rank; i++) {
            bool free = i == axis || i < p->rank - 2;
            fits &= extent_known(p->dims[i]) == 1 ||
                    (free && extent_equal(p->dims[i], operand->dims[i]));
        }
    }
    return fits ||
           infer_error(c,
                       "its %s %s is neither one number nor one for each "
                       "element of axis %d",
                       what, c->node->inputs.data[input]->name, axis);
}

/* Scales that are known must be positive. */
static bool check_scale(InferContext *c, int input)
{
    const Tensor *t = c->node->inputs.data[input];
    if (!infer_types(c, input, TYPES_FLOAT))
        return false;
    for (int64_t i = 0; t->value && i < array_count(t->value); i++) {
        double s = array_get(t->value, i);
        if (!(s > 0) || s > 1e38)
            return infer_error(c,
                               "its scale %s holds %g; a scale must be "
                               "positive and finite",
                               t->name, s);
    }
    return true;
}

static bool check_affine(InferContext *c, const Affine *q)
{
    const TensorType *operand = infer_input(c, q->operand);
    if (!infer_types(c, q->operand, TYPES_BYTE))
        return false;
    if (q->scale >= 0 &&
        (!check_scale(c, q->scale) ||
         !check_param(c, "scale", q->scale, operand, q->axis, q->batches)))
        return false;
    return !node_has_input(c->node, q->zero) ||
           (infer_same_dtype(c, q->operand, q->zero) &&
            check_param(c, "zero point", q->zero, operand, q->axis,
                        q->batches));
}

/* Rows of the left operand and columns of the right may differ. */
static Affine left_affine(const Node *node, int operand, int scale, int zero)
{
    int rank = node->inputs.data[operand]->type.rank;
    return (Affine){operand, scale, zero, rank > 1 ? rank - 2 : -1, true};
}

static Affine right_affine(const Node *node, int operand, int scale, int zero)
{
    int rank = node->inputs.data[operand]->type.rank;
    return (Affine){operand, scale, zero, rank > 1 ? rank - 1 : -1, true};
}

static bool infer_matmul_integer(InferContext *c)
{
    Affine x = left_affine(c->node, 0, -1, 2);
    Affine y = right_affine(c->node, 1, -1, 3);
    Extent dims[MAX_RANK];
    int rank;
    return matmul_extents(c, 0, 1, &rank, dims) && check_affine(c, &x) &&
           check_affine(c, &y) && infer_set_checked(c, 0, DT_I32, rank, dims);
}

/* Inputs: a, its scale and zero point; b and its; those of the result. */
static bool infer_qlinear_matmul(InferContext *c)
{
    Affine x = left_affine(c->node, 0, 1, 2);
    Affine y = right_affine(c->node, 3, 4, 5);
    Extent dims[MAX_RANK];
    int rank;
    if (!matmul_extents(c, 0, 3, &rank, dims) || !check_affine(c, &x) ||
        !check_affine(c, &y) || !check_scale(c, 6) ||
        !infer_types(c, 7, TYPES_BYTE))
        return false;
    TensorType out = {.dtype = infer_input(c, 7)->dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        out.dims[i] = dims[i];
    int rows = rank - 1 - (infer_input(c, 3)->rank > 1);
    int axis = infer_input(c, 0)->rank > 1 ? rows : -1;
    return check_param(c, "scale", 6, &out, axis, true) &&
           check_param(c, "zero point", 7, &out, axis, true) &&
           infer_set_checked(c, 0, out.dtype, rank, dims);
}

static bool infer_conv_integer(InferContext *c)
{
    Affine x = {0, -1, 2, -1, false}, w = {1, -1, 3, 0, false};
    Extent dims[MAX_RANK];
    return conv_extents(c, 1, dims) && check_affine(c, &x) &&
           check_affine(c, &w) &&
           infer_set_checked(c, 0, DT_I32, infer_input(c, 0)->rank, dims);
}

static bool infer_qlinear_conv(InferContext *c)
{
    Affine x = {0, 1, 2, -1, false}, w = {3, 4, 5, 0, false};
    Extent dims[MAX_RANK];
    if (!conv_extents(c, 3, dims) || !check_affine(c, &x) ||
        !check_affine(c, &w) || !check_scale(c, 6) ||
        !infer_types(c, 7, TYPES_BYTE) ||
        !check_param(c, "scale", 6, infer_input(c, 0), -1, false) ||
        !check_param(c, "zero point", 7, infer_input(c, 0), -1, false))
        return false;
    if (node_has_input(c->node, 8)) {
        if (!infer_types(c, 8, 1 << DT_I32) || !infer_rank(c, 8, 1, 1))
            return false;
        if (!extents_agree(infer_input(c, 8)->dims[0], dims[1]))
            return infer_error(c, "the bias must have one element for each "
                                  "output channel");
    }
    return infer_set_checked(c, 0, infer_input(c, 7)->dtype,
                             infer_input(c, 0)->rank, dims);
}

/* ---- definitions */

/* The scale or zero point for the element of its operand at `at`. */
static const Expr *read_param(Arena *a, const Buffer *p, int axis,
                              const Expr *const *at)
{
    const Expr *index[MAX_RANK];
    int64_t count = 1;
    for (int i = 0; i < p->rank; i++)
        count *= p->dims[i];
    for (int i = 0; i < p->rank; i++)
        index[i] = count == 1 || (p->rank > 1 && p->dims[i] == 1)
                       ? expr_int(a, 0)
                       : at[p->rank == 1 ? axis : i];
    return expr_read(a, p, index);
}

/* An element less its zero point, in 32 bits; outside is nothing. */
static const Expr *read_element(const DefineContext *c, const Affine *q,
                                const Expr *const *at, bool padded)
{
    Arena *a = c->def->arena;
    const Buffer *x = c->in[q->operand];
    const Buffer *zeros = q->zero >= 0 ? c->in[q->zero] : NULL;
    const Expr *zero = zeros ? read_param(a, zeros, q->axis, at)
                             : expr_const_int(a, x->dtype, 0);
    const Expr *value =
        padded ? expr_read_padded(a, x, at, zero) : expr_read(a, x, at);
    value = expr_cast(a, DT_I32, value);
    return zeros ? expr_sub(a, value, expr_cast(a, DT_I32, zero)) : value;
}

static void add_matmul(DefineContext *c, Buffer *sum, const Affine *x,
                       const Affine *y)
{
    const Buffer *left = c->in[x->operand], *right = c->in[y->operand];
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    const Expr *k = stage_reduce(&b, left->dims[left->rank - 1], "k");
    MatmulPlaces at = matmul_places(&b, left, right, k);
    stage_end_reduce(&b, "sum",
                     expr_mul(b.arena, read_element(c, x, at.left, false),
                              read_element(c, y, at.right, false)));
}

static void add_conv(DefineContext *c, Buffer *sum, const Affine *x,
                     const Affine *w)
{
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    ConvPlaces at =
        conv_places(&b, c->node, c->in[x->operand], c->in[w->operand]);
    stage_end_reduce(&b, "sum",
                     expr_mul(b.arena, read_element(c, x, at.in, at.padded),
                              read_element(c, w, at.weight, false)));
}

/* sum * scale as a byte: rounded, shifted by the zero point, saturated. */
static void end_byte(StageBuilder *b, const Expr *sum, const Expr *scale,
                     const Expr *zero)
{
    Arena *a = b->arena;
    bool is_signed = zero->dtype == DT_I8;
    const Expr *v = expr_mul(a, expr_cast(a, DT_F32, sum), scale);
    v = expr_add(a, expr_unary(a, EX_ROUND, v), expr_cast(a, DT_F32, zero));
    v = expr_max(a, v, const_like(a, v, is_signed ? -128 : 0));
    v = expr_min(a, v, const_like(a, v, is_signed ? 127 : 255));
    stage_end(b, expr_cast(a, zero->dtype, v));
}

/* left * right / result, each rounded to f32. */
static const Expr *joint_scale(Arena *a, const Expr *left, const Expr *right,
                               const Expr *result)
{
    left = expr_cast(a, DT_F32, left);
    right = expr_cast(a, DT_F32, right);
    return expr_div(a, expr_mul(a, left, right), expr_cast(a, DT_F32, result));
}

static Buffer *byte_sum(DefineContext *c)
{
    const Buffer *out = c->out[0];
    return define_temp_part(c, "sum", DT_I32, out->rank, out);
}

static void define_matmul_integer(DefineContext *c)
{
    Affine x = left_affine(c->node, 0, -1, 2);
    Affine y = right_affine(c->node, 1, -1, 3);
    add_matmul(c, c->out[0], &x, &y);
}

static void define_qlinear_matmul(DefineContext *c)
{
    Affine x = left_affine(c->node, 0, 1, 2);
    Affine y = right_affine(c->node, 3, 4, 5);
    Buffer *sum = byte_sum(c);
    add_matmul(c, sum, &x, &y);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    MatmulPlaces at = matmul_places(&b, c->in[0], c->in[3], expr_int(a, 0));
    int rows = sum->rank - 1 - (c->in[3]->rank > 1);
    const Expr *scale =
        joint_scale(a, read_param(a, c->in[1], x.axis, at.left),
                    read_param(a, c->in[4], y.axis, at.right),
                    read_param(a, c->in[6], rows, b.index));
    end_byte(&b, read_same(&b, sum), scale,
             read_param(a, c->in[7], rows, b.index));
}

static void define_conv_integer(DefineContext *c)
{
    Affine x = {0, -1, 2, -1, false}, w = {1, -1, 3, 0, false};
    add_conv(c, c->out[0], &x, &w);
}

static void define_qlinear_conv(DefineContext *c)
{
    Affine x = {0, 1, 2, -1, false}, w = {3, 4, 5, 0, false};
    Buffer *acc = byte_sum(c);
    add_conv(c, acc, &x, &w);
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *sum = read_same(&b, acc), *channel = b.index[1];
    if (c->in[8])
        sum = expr_add(a, sum, expr_read(a, c->in[8], &channel));
    const Expr *scale = joint_scale(a, read_scalar(&b, c->in[1]),
                                    read_param(a, c->in[4], 0, &channel),
                                    read_scalar(&b, c->in[6]));
    end_byte(&b, sum, scale, read_scalar(&b, c->in[7]));
}

static const AttrSpec conv_attrs[] = {{"auto_pad", ATTR_STRING, false},
                                      {"dilations", ATTR_INTS, false},
                                      {"group", ATTR_INT, false},
                                      {"kernel_shape", ATTR_INTS, false},
                                      {"pads", ATTR_INTS, false},
                                      {"strides", ATTR_INTS, false},
                                      {0}};

#define ROW(field, op_name, least, most, specs, rewrite)                      \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "",                              \
                                   .min_inputs = least,                       \
                                   .max_inputs = most,                        \
                                   .min_outputs = 1,                          \
                                   .max_outputs = 1,                          \
                                   .traits = OP_ANCHOR | OP_REDUCTION |       \
                                             OP_RUNTIME_EXTENTS,              \
                                   .attrs = specs,                            \
                                   .infer = infer_##field,                    \
                                   .define = define_##field,                  \
                                   .decompose = rewrite,                      \
                                   .since = 10}
ROW(matmul_integer, "MatMulInteger", 2, 4, NULL, NULL);
ROW(qlinear_matmul, "QLinearMatMul", 8, 8, NULL, decompose_qlinear);
ROW(conv_integer, "ConvInteger", 2, 4, conv_attrs, NULL);
ROW(qlinear_conv, "QLinearConv", 8, 9, conv_attrs, decompose_qlinear);

const Op *const ops_qlinear[] = {&row_matmul_integer, &row_qlinear_matmul,
                                 &row_conv_integer, &row_qlinear_conv, NULL};
