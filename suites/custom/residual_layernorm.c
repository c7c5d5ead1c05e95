/* An operator of one's own: y = LayerNormalization(x + residual) over the
 * last axis, as one row. Domain "example", inputs x, residual, scale and
 * bias, attribute epsilon.
 *
 *     cc -shared -fPIC -O2 -Icompiler -I. -D_GNU_SOURCE \
 *         suites/custom/residual_layernorm.c -o residual_layernorm.so
 *     assay check model.onnx --ops residual_layernorm.so
 */
#include <math.h>

#include "harness/custom.h"
#include "ops/rules.h"
#include "reference/internal.h"

static bool infer(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 1, MAX_RANK))
        return false;
    for (int i = 1; i < 4; i++)
        if (!infer_same_dtype(c, 0, i))
            return false;
    if (!type_equal(x, infer_input(c, 1)))
        return infer_error(c, "x and residual must have the same shape");
    for (int i = 2; i < 4; i++)
        if (!infer_rank(c, i, 1, 1) ||
            !extent_equal(infer_input(c, i)->dims[0], x->dims[x->rank - 1]))
            return infer_error(c,
                               "input %d must be one value for each "
                               "element of the last axis",
                               i);
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* `at` in place of the stage's last index. */
static const Expr *read_row(StageBuilder *b, const Buffer *buffer,
                            const Expr *at)
{
    const Expr *index[MAX_RANK];
    for (int i = 0; i < buffer->rank; i++)
        index[i] = i == buffer->rank - 1 ? at : b->index[i];
    return expr_read(b->arena, buffer, index);
}

/* The mean over a row of `x`, squared or not, as [..., 1]. */
static Buffer *row_mean(DefineContext *c, const char *name, const Buffer *x,
                        bool of_squares)
{
    int64_t dims[MAX_RANK], width = x->dims[x->rank - 1];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == x->rank - 1 ? 1 : x->dims[i];
    Buffer *mean = define_temp(c, name, x->dtype, x->rank, dims);
    StageBuilder b;
    stage_begin(&b, c->def, mean);
    const Expr *value = read_row(&b, x, stage_reduce(&b, width, "k"));
    if (of_squares)
        value = expr_mul(b.arena, value, value);
    stage_end_reduce(&b, "sum",
                     expr_mul(b.arena, value,
                              const_like(b.arena, value, 1 / (double)width)));
    return mean;
}

static void define(DefineContext *c)
{
    const Buffer *x = c->in[0];
    double epsilon = attrs_float(&c->node->attrs, "epsilon", 1e-5);
    StageBuilder b;
    Buffer *sum = define_temp_like(c, "sum", x);
    stage_begin(&b, c->def, sum);
    Arena *a = b.arena;
    const Expr *zero = expr_int(a, 0);
    stage_end(&b, expr_add(a, read_same(&b, x), read_same(&b, c->in[1])));
    Buffer *mean = row_mean(c, "mean", sum, false);
    Buffer *centred = define_temp_like(c, "centred", x);
    stage_begin(&b, c->def, centred);
    stage_end(&b, expr_sub(a, read_same(&b, sum), read_row(&b, mean, zero)));
    Buffer *variance = row_mean(c, "variance", centred, true);
    stage_begin(&b, c->def, c->out[0]);
    const Expr *last = b.index[x->rank - 1];
    const Expr *v = read_row(&b, variance, zero);
    v = expr_unary(a, EX_SQRT, expr_add(a, v, const_like(a, v, epsilon)));
    const Expr *y = expr_div(a, read_same(&b, centred), v);
    y = expr_mul(a, y, expr_read(a, c->in[2], &last));
    stage_end(&b, expr_add(a, y, expr_read(a, c->in[3], &last)));
}

static bool oracle(RefCall *call)
{
    const Array *x = ref_in(call, 0), *residual = ref_in(call, 1);
    double epsilon = attrs_float(call->attrs, "epsilon", 1e-5);
    if (!ref_need(call, 4))
        return false;
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    int64_t width = x->dims[x->rank - 1];
    int64_t rows = width ? array_count(x) / width : 0;
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, variance = 0;
        for (int64_t i = r * width; i < (r + 1) * width; i++)
            mean += array_get(x, i) + array_get(residual, i);
        mean /= (double)width;
        for (int64_t i = r * width; i < (r + 1) * width; i++) {
            double d = array_get(x, i) + array_get(residual, i) - mean;
            variance += d * d / (double)width;
        }
        for (int64_t i = 0; i < width; i++) {
            int64_t at = r * width + i;
            double d = array_get(x, at) + array_get(residual, at) - mean;
            array_set(y, at,
                      d / sqrt(variance + epsilon) *
                              array_get(call->in[2], i) +
                          array_get(call->in[3], i));
        }
    }
    return true;
}

static const AttrSpec attrs[] = {{"epsilon", ATTR_FLOAT, false}, {0}};
static const Op op = {.name = "ResidualLayerNorm",
                      .domain = "example",
                      .min_inputs = 4,
                      .max_inputs = 4,
                      .min_outputs = 1,
                      .max_outputs = 1,
                      .traits = OP_REDUCTION,
                      .attrs = attrs,
                      .infer = infer,
                      .define = define,
                      .schedule = "rows",
                      .since = 1};
static const Op *const ops[] = {&op, NULL};
static const RefOp oracles[] = {{"example", "ResidualLayerNorm", oracle},
                                {NULL, NULL, NULL}};

const AssayCustomOps assay_custom_ops = {ASSAY_CUSTOM_VERSION, ops, oracles};
