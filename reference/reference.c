/* The table of oracles and what they share. */
#include "reference/reference.h"

#include <stdarg.h>
#include <string.h>

#include "reference/internal.h"

/* Sorted by name. An operator that has no row cannot be checked, which
 * reference_eval says. */
const RefOp reference_ops[] = {
    {"", "Abs", ref_unary},
    {"", "Acos", ref_unary},
    {"", "Acosh", ref_unary},
    {"", "Add", ref_binary},
    {"", "AffineGrid", ref_affine_grid},
    {"", "And", ref_compare},
    {"", "ArgMax", ref_arg},
    {"", "ArgMin", ref_arg},
    {"", "Asin", ref_unary},
    {"", "Asinh", ref_unary},
    {"", "Atan", ref_unary},
    {"", "Atanh", ref_unary},
    {"", "Attention", ref_attention},
    {"", "AveragePool", ref_pool},
    {"", "BatchNormalization", ref_batch_norm},
    {"", "BitShift", ref_bitwise},
    {"", "BitwiseAnd", ref_bitwise},
    {"", "BitwiseNot", ref_bitwise_not},
    {"", "BitwiseOr", ref_bitwise},
    {"", "BitwiseXor", ref_bitwise},
    {"", "BlackmanWindow", ref_window},
    {"", "Cast", ref_cast},
    {"", "CastLike", ref_cast},
    {"", "Ceil", ref_unary},
    {"", "Celu", ref_unary},
    {"", "CenterCropPad", ref_center_crop_pad},
    {"", "Clip", ref_clip},
    {"", "Col2Im", ref_col2im},
    {"", "Compress", ref_compress},
    {"", "Concat", ref_concat},
    {"", "Constant", ref_constant},
    {"", "ConstantOfShape", ref_constant_of_shape},
    {"", "Conv", ref_conv},
    {"", "ConvInteger", ref_conv_integer},
    {"", "ConvTranspose", ref_conv_transpose},
    {"", "Cos", ref_unary},
    {"", "Cosh", ref_unary},
    {"", "CumProd", ref_cumsum},
    {"", "CumSum", ref_cumsum},
    {"", "DFT", ref_dft},
    {"", "DeformConv", ref_deform_conv},
    {"", "DepthToSpace", ref_depth_to_space},
    {"", "DequantizeLinear", ref_dequantize},
    {"", "Det", ref_det},
    {"", "Div", ref_binary},
    {"", "Dropout", ref_identity},
    {"", "DynamicQuantizeLinear", ref_dynamic_quantize},
    {"", "Einsum", ref_einsum},
    {"", "Elu", ref_unary},
    {"", "Equal", ref_compare},
    {"", "Erf", ref_unary},
    {"", "Exp", ref_unary},
    {"", "Expand", ref_expand},
    {"", "EyeLike", ref_eye_like},
    {"", "Flatten", ref_flatten},
    {"", "Floor", ref_unary},
    {"", "GRU", ref_recurrent},
    {"", "Gather", ref_gather},
    {"", "GatherElements", ref_gather_elements},
    {"", "GatherND", ref_gather_nd},
    {"", "Gelu", ref_unary},
    {"", "Gemm", ref_gemm},
    {"", "GlobalAveragePool", ref_global_pool},
    {"", "GlobalLpPool", ref_global_pool},
    {"", "GlobalMaxPool", ref_global_pool},
    {"", "Greater", ref_compare},
    {"", "GreaterOrEqual", ref_compare},
    {"", "GridSample", ref_grid_sample},
    {"", "GroupNormalization", ref_group_norm},
    {"", "HammingWindow", ref_window},
    {"", "HannWindow", ref_window},
    {"", "HardSigmoid", ref_unary},
    {"", "HardSwish", ref_unary},
    {"", "Hardmax", ref_hardmax},
    {"", "Identity", ref_identity},
    {"", "InstanceNormalization", ref_group_norm},
    {"", "IsInf", ref_compare},
    {"", "IsNaN", ref_compare},
    {"", "LRN", ref_lrn},
    {"", "LSTM", ref_recurrent},
    {"", "LayerNormalization", ref_layer_norm},
    {"", "LeakyRelu", ref_unary},
    {"", "Less", ref_compare},
    {"", "LessOrEqual", ref_compare},
    {"", "Log", ref_unary},
    {"", "LogSoftmax", ref_softmax},
    {"", "LpNormalization", ref_lp_norm},
    {"", "LpPool", ref_pool},
    {"", "MatMul", ref_matmul},
    {"", "MatMulInteger", ref_matmul_integer},
    {"", "Max", ref_variadic},
    {"", "MaxPool", ref_pool},
    {"", "MaxUnpool", ref_max_unpool},
    {"", "Mean", ref_variadic},
    {"", "MeanVarianceNormalization", ref_mvn},
    {"", "MelWeightMatrix", ref_mel_weight_matrix},
    {"", "Min", ref_variadic},
    {"", "Mish", ref_unary},
    {"", "Mod", ref_binary},
    {"", "Mul", ref_binary},
    {"", "Neg", ref_unary},
    {"", "NegativeLogLikelihoodLoss", ref_loss},
    {"", "NonMaxSuppression", ref_nms},
    {"", "NonZero", ref_non_zero},
    {"", "Not", ref_compare},
    {"", "OneHot", ref_one_hot},
    {"", "Or", ref_compare},
    {"", "PRelu", ref_binary},
    {"", "Pad", ref_pad},
    {"", "Pow", ref_binary},
    {"", "QLinearConv", ref_qlinear_conv},
    {"", "QLinearMatMul", ref_qlinear_matmul},
    {"", "QuantizeLinear", ref_quantize},
    {"", "RMSNormalization", ref_rms_norm},
    {"", "RNN", ref_recurrent},
    {"", "Range", ref_range},
    {"", "Reciprocal", ref_unary},
    {"", "ReduceL1", ref_reduce},
    {"", "ReduceL2", ref_reduce},
    {"", "ReduceLogSum", ref_reduce},
    {"", "ReduceLogSumExp", ref_reduce},
    {"", "ReduceMax", ref_reduce},
    {"", "ReduceMean", ref_reduce},
    {"", "ReduceMin", ref_reduce},
    {"", "ReduceProd", ref_reduce},
    {"", "ReduceSum", ref_reduce},
    {"", "ReduceSumSquare", ref_reduce},
    {"", "Relu", ref_unary},
    {"", "Reshape", ref_reshape},
    {"", "Resize", ref_resize},
    {"", "ReverseSequence", ref_reverse_sequence},
    {"", "RoiAlign", ref_roi_align},
    {"", "RotaryEmbedding", ref_rotary_embedding},
    {"", "Round", ref_unary},
    {"", "STFT", ref_stft},
    {"", "ScatterElements", ref_scatter_elements},
    {"", "ScatterND", ref_scatter_nd},
    {"", "Selu", ref_unary},
    {"", "Shape", ref_shape},
    {"", "Shrink", ref_shrink},
    {"", "SiLU", ref_unary},
    {"", "Sigmoid", ref_unary},
    {"", "Sign", ref_unary},
    {"", "Silu", ref_unary},
    {"", "Sin", ref_unary},
    {"", "Sinh", ref_unary},
    {"", "Size", ref_size},
    {"", "Slice", ref_slice},
    {"", "Softmax", ref_softmax},
    {"", "SoftmaxCrossEntropyLoss", ref_loss},
    {"", "Softplus", ref_unary},
    {"", "Softsign", ref_unary},
    {"", "SpaceToDepth", ref_space_to_depth},
    {"", "Split", ref_split},
    {"", "Sqrt", ref_unary},
    {"", "Squeeze", ref_squeeze},
    {"", "Sub", ref_binary},
    {"", "Sum", ref_variadic},
    {"", "SwiGLU", ref_swiglu},
    {"", "Swish", ref_unary},
    {"", "Tan", ref_unary},
    {"", "Tanh", ref_unary},
    {"", "TensorScatter", ref_tensor_scatter},
    {"", "TfIdfVectorizer", ref_tfidf},
    {"", "ThresholdedRelu", ref_unary},
    {"", "Tile", ref_tile},
    {"", "TopK", ref_topk},
    {"", "Transpose", ref_transpose},
    {"", "Trilu", ref_trilu},
    {"", "Unique", ref_unique},
    {"", "Unsqueeze", ref_unsqueeze},
    {"", "Where", ref_where},
    {"", "Xor", ref_compare},
    {"assay", "Requantize", ref_requantize},
    {"assay", "RequantizeSum", ref_requantize_sum},
    {"assay", "WinogradConv", ref_winograd_conv},
    {"assay", "WinogradWeights", ref_winograd_weights},
    {NULL, NULL, NULL},
};

static const RefOp *find_row(const RefOp *rows, const char *domain,
                             const char *op)
{
    for (; rows->op; rows++)
        if (!strcmp(rows->op, op) && !strcmp(rows->domain, domain))
            return rows;
    return NULL;
}

bool reference_eval(RefCall *call)
{
    const char *domain = call->domain ? call->domain : "";
    const RefOp *row = NULL;

    /* Two spellings of ONNX's own domain. */
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (int i = 0; call->own && call->own[i] && !row; i++)
        row = find_row(call->own[i], domain, call->op);
    if (!row)
        row = find_row(reference_ops, domain, call->op);
    if (!row)
        return ref_fail(call, "no oracle for this operator; add a row in "
                              "reference/reference.c");
    for (int i = 0; i < call->in_count; i++)
        if (call->in[i] && call->in[i]->dtype == DT_STRING &&
            row->eval != ref_cast && row->eval != ref_compare)
            return ref_fail(call, "no oracle for strings");
    call->scratch = arena_new();
    bool ok = row->eval(call);
    arena_free(call->scratch);
    call->scratch = NULL;
    return ok;
}

bool ref_fail(RefCall *call, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    call->error = arena_printf(call->arena, "reference %s: %s", call->op,
                               arena_vprintf(call->arena, format, args));
    va_end(args);
    return false;
}

const Array *ref_in(const RefCall *call, int index)
{
    return index < call->in_count ? call->in[index] : NULL;
}

bool ref_need(RefCall *call, int count)
{
    for (int i = 0; i < count; i++)
        if (!ref_in(call, i))
            return ref_fail(call, "input %d is missing", i);
    return true;
}

Array *ref_out(RefCall *call, int index, DType dtype, int rank,
               const int64_t *dims)
{
    call->out[index] = array_new(call->arena, dtype, rank, dims);
    return call->out[index];
}

bool ref_axis(RefCall *call, int64_t axis, int rank, int *result)
{
    if (axis < -rank || axis >= rank)
        return ref_fail(call, "axis %lld outside rank %d", (long long)axis,
                        rank);
    *result = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

double *ref_doubles(RefCall *call, const Array *array)
{
    int64_t count = array_count(array);
    double *values = ARENA_ARRAY(call->scratch, double, count);

    /* A loop of its own, as nearly all arrays are f32: array_get looks at the
     * type for every element. */
    if (array->dtype == DT_F32) {
        const float *from = array->data;
        for (int64_t i = 0; i < count; i++)
            values[i] = from[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            values[i] = array_get(array, i);
    }
    return values;
}

int64_t *ref_ints(RefCall *call, const Array *array)
{
    int64_t count = array_count(array);
    int64_t *values = ARENA_ARRAY(call->scratch, int64_t, count);

    for (int64_t i = 0; i < count; i++)
        values[i] = array_get_int(array, i);
    return values;
}

void ref_store_doubles(Array *array, const double *values)
{
    int64_t count = array_count(array);

    if (array->dtype == DT_F32) {
        float *to = array->data;
        for (int64_t i = 0; i < count; i++)
            to[i] = (float)values[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            array_set(array, i, values[i]);
    }
}

int64_t ref_wrap(DType dtype, int64_t value)
{
    unsigned drop = 64 - 8 * (unsigned)dtype_size(dtype);
    uint64_t high = (uint64_t)value << drop;

    /* Shifting back a negative number keeps its sign with every compiler
     * this builds with. */
    return dtype_is_signed(dtype) ? (int64_t)high >> drop
                                  : (int64_t)(high >> drop);
}

bool ref_int_less(DType dtype, int64_t x, int64_t y)
{
    return dtype_is_signed(dtype) ? x < y : (uint64_t)x < (uint64_t)y;
}

int64_t ref_int_bound(DType dtype, bool highest)
{
    unsigned drop =
        64 - 8 * (unsigned)dtype_size(dtype) + dtype_is_signed(dtype);
    int64_t top = dtype == DT_BOOL ? 1 : (int64_t)(UINT64_MAX >> drop);

    return highest ? top : dtype_is_signed(dtype) ? -top - 1 : 0;
}

void ref_store_ints(Array *array, const int64_t *values)
{
    int64_t count = array_count(array);

    for (int64_t i = 0; i < count; i++)
        array_set_int(array, i, ref_wrap(array->dtype, values[i]));
}

bool ref_broadcast(RefCall *call, const Array *const *arrays, int count,
                   int *rank, int64_t *dims)
{
    *rank = 0;
    for (int i = 0; i < count; i++)
        if (arrays[i] && arrays[i]->rank > *rank)
            *rank = arrays[i]->rank;
    for (int k = 0; k < *rank; k++)
        dims[k] = 1;
    for (int i = 0; i < count; i++) {
        if (!arrays[i])
            continue;
        for (int k = 0; k < arrays[i]->rank; k++) {
            int64_t d = arrays[i]->dims[k];
            int64_t *to = &dims[*rank - arrays[i]->rank + k];
            if (*to == 1)
                *to = d;
            else if (d != 1 && d != *to)
                return ref_fail(call, "extents %lld and %lld do not broadcast",
                                (long long)d, (long long)*to);
        }
    }
    return true;
}

void ref_broadcast_strides(const Array *array, int rank, int64_t *strides)
{
    int64_t stride = 1;

    for (int k = 0; k < rank; k++)
        strides[k] = 0;
    for (int k = array->rank - 1; k >= 0; k--) {
        if (array->dims[k] != 1)
            strides[rank - array->rank + k] = stride;
        stride *= array->dims[k];
    }
}

RefLines ref_lines(const Array *x, int axis)
{
    RefLines l = {1, x->dims[axis], 1};

    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            *(i < axis ? &l.outer : &l.inner) *= x->dims[i];
    return l;
}

bool ref_dtype(RefCall *call, const char *name, DType fallback, DType *dtype)
{
    const Attr *attr = attrs_find(call->attrs, name);

    *dtype = attr ? ref_onnx_dtype(attr->i) : fallback;
    return *dtype != DT_INVALID ||
           ref_fail(call, "%s is no element type", name);
}

void ref_walk_next(RefWalk *w)
{
    for (int k = w->rank - 1; k >= 0; k--) {
        for (int i = 0; i < WALK_OPERANDS; i++)
            w->offset[i] += w->stride[i][k];
        if (++w->index[k] < w->dims[k])
            return;
        /* This axis starts again, the next one further out steps. */
        w->index[k] = 0;
        for (int i = 0; i < WALK_OPERANDS; i++)
            w->offset[i] -= w->stride[i][k] * w->dims[k];
    }
}
