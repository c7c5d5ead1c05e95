/* Whole numbers in f32 to stored values, in the steps of integer kernels:
 *     Requantize(x, factor, zero)    clip(round(x factor) + zero)
 *     RequantizeSum(x, fx, y, fy, c) clip(round(x fx + (y fy + c)))
 * halves to even, products and sums fused where there are both. `low` and
 * `high` are stored values, `to` ONNX's number of their type. */
#include "ops/rules.h"

static bool infer_result(InferContext *c, int rank, const Extent *dims)
{
    DType to = dtype_of_onnx(attrs_int(&c->node->attrs, "to", 0));
    if (!(1 << to & (1 << DT_I8 | 1 << DT_U8 | 1 << DT_I16 | 1 << DT_U16)))
        return infer_error(c, "its result cannot be %s", dtype_name(to));
    infer_set(c, 0, to, rank, dims);
    return true;
}

static bool infer_floats(InferContext *c)
{
    for (int i = 0; i < c->node->inputs.count; i++)
        if (!infer_types(c, i, 1 << DT_F32))
            return false;
    return true;
}

/* One factor for all, or one for each element of `axis`. */
static bool infer_requantize(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *factor = infer_input(c, 1);
    int axis;
    if (!infer_floats(c) || !infer_rank(c, 1, 0, 1))
        return false;
    if (factor->rank == 1) {
        if (!infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", 1),
                        x->rank, &axis))
            return false;
        if (!extents_agree(factor->dims[0], x->dims[axis]))
            return infer_error(c, "its factors do not fit axis %d", axis);
    }
    return infer_result(c, x->rank, x->dims);
}

static bool infer_requantize_sum(InferContext *c)
{
    Extent dims[MAX_RANK];
    int rank;
    if (!infer_floats(c) || !infer_rank(c, 1, 0, 0) ||
        !infer_rank(c, 3, 0, 0) || !infer_rank(c, 4, 0, 0) ||
        !infer_broadcast(c, 0, 2, &rank, dims))
        return false;
    return infer_result(c, rank, dims);
}

/* round(x) + zero as a stored value, by a sum whose last bits are the whole
 * number: no conversion with its checks is needed, as the bounds, which are
 * whole, hold before the rounding just as behind it. */
static void end_stored(StageBuilder *b, const DefineContext *c, const Expr *x,
                       const Expr *zero)
{
    enum { BITS = 0x4b400000 }; /* of 1.5 * 2^23 */
    Arena *a = b->arena;
    const Attrs *attrs = &c->node->attrs;
    const Expr *low = const_like(a, x, (double)attrs_int(attrs, "low", 0));
    const Expr *high = const_like(a, x, (double)attrs_int(attrs, "high", 0));
    x = expr_max(a, x, zero ? expr_sub(a, low, zero) : low);
    x = expr_min(a, x, zero ? expr_sub(a, high, zero) : high);
    x = expr_add(a, x, const_like(a, x, 12582912));
    x = expr_sub(a, expr_bitcast(a, DT_I32, x),
                 expr_const_int(a, DT_I32, BITS));
    if (zero)
        x = expr_add(a, x, expr_cast(a, DT_I32, zero));
    stage_end(b, expr_cast(a, c->out[0]->dtype, x));
}

static void define_requantize(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    int axis =
        normal_axis(attrs_int(&c->node->attrs, "axis", 1), c->in[0]->rank);
    const Expr *factor = c->in[1]->rank
                             ? expr_read(a, c->in[1], &b.index[axis])
                             : read_scalar(&b, c->in[1]);
    const Expr *x = expr_mul(a, read_same(&b, c->in[0]), factor);
    end_stored(&b, c, x, read_scalar(&b, c->in[2]));
}

static void define_requantize_sum(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *sum = read_scalar(&b, c->in[4]);
    for (int i = 2; i >= 0; i -= 2)
        sum = expr_fma(a, read_broadcast(&b, c->in[i]),
                       read_scalar(&b, c->in[i + 1]), sum);
    end_stored(&b, c, sum, NULL);
}

static const AttrSpec requantize_attrs[] = {{"axis", ATTR_INT, false},
                                            {"high", ATTR_INT, true},
                                            {"low", ATTR_INT, true},
                                            {"to", ATTR_INT, true},
                                            {0}};

#define ROW(field, op_name, inputs, more)                                     \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "assay",                         \
                                   .min_inputs = inputs,                      \
                                   .max_inputs = inputs,                      \
                                   .min_outputs = 1,                          \
                                   .max_outputs = 1,                          \
                                   .traits = OP_ELEMENTWISE | (more),         \
                                   .attrs = requantize_attrs,                 \
                                   .infer = infer_##field,                    \
                                   .define = define_##field,                  \
                                   .since = 1}
ROW(requantize, "Requantize", 3, 0);
ROW(requantize_sum, "RequantizeSum", 5, OP_BROADCAST);

const Op *const ops_requantize[] = {&row_requantize, &row_requantize_sum,
                                    NULL};
