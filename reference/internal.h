/* What the oracles share. */
#ifndef ASSAY_REFERENCE_INTERNAL_H
#define ASSAY_REFERENCE_INTERNAL_H

#include "reference/reference.h"

/* Sets call->error; always false. */
bool ref_fail(RefCall *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Input `index`, NULL when left out. */
const Array *ref_in(const RefCall *call, int index);
/* False with an error when one of the first `count` inputs is missing. */
bool ref_need(RefCall *call, int count);
Array *ref_out(RefCall *call, int index, DType dtype, int rank,
               const int64_t *dims);
/* Brings an axis into 0 .. rank - 1; false with an error otherwise. */
bool ref_axis(RefCall *call, int64_t axis, int rank, int *result);
/* All elements as double or integer, in scratch memory. */
double *ref_doubles(RefCall *call, const Array *array);
int64_t *ref_ints(RefCall *call, const Array *array);
void ref_store_doubles(Array *array, const double *values);
void ref_store_ints(Array *array, const int64_t *values);
/* Integer arithmetic is modulo the width of its type. */
int64_t ref_wrap(DType dtype, int64_t value);

/* Compares integers of that type; int64_t holds the bits of all. */
bool ref_int_less(DType dtype, int64_t x, int64_t y);
/* The type's highest or lowest integer. */
int64_t ref_int_bound(DType dtype, bool highest);

/* NumPy's common shape of several arrays (NULL ones do not count). */
bool ref_broadcast(RefCall *call, const Array *const *arrays, int count,
                   int *rank, int64_t *dims);
/* Element strides of `array` under the broadcast shape: 0 where its extent
 * is 1. */
void ref_broadcast_strides(const Array *array, int rank, int64_t *strides);

/* Walks a shape in row-major order with element offsets of up to three
 * operands beside it. */
enum { WALK_OPERANDS = 3 };
typedef struct RefWalk {
    int rank;
    int64_t dims[MAX_RANK], index[MAX_RANK];
    int64_t stride[WALK_OPERANDS][MAX_RANK];
    int64_t offset[WALK_OPERANDS];
} RefWalk;
void ref_walk_next(RefWalk *walk);

void ref_row_major_strides(const Array *array, int64_t *strides);
/* Element `k` of `from` to element `i` of `to`, bit by bit. */
void ref_copy_element(Array *to, int64_t i, const Array *from, int64_t k);

/* An array as [outer, n, inner] around an axis. */
typedef struct RefLines {
    int64_t outer, n, inner;
} RefLines;
RefLines ref_lines(const Array *x, int axis);

/* ONNX's numbers for element types; DT_INVALID for others. */
DType ref_onnx_dtype(int64_t number);
/* The type that attribute `name` has the number of, or `fallback`; false with
 * an error for one that does not exist. */
bool ref_dtype(RefCall *call, const char *name, DType fallback, DType *dtype);

/* The families' oracles. */
bool ref_shrink(RefCall *call);
bool ref_bitwise(RefCall *call);
bool ref_bitwise_not(RefCall *call);
bool ref_gather_nd(RefCall *call);
bool ref_scatter_nd(RefCall *call);
bool ref_tensor_scatter(RefCall *call);
bool ref_trilu(RefCall *call);
bool ref_eye_like(RefCall *call);
bool ref_one_hot(RefCall *call);
bool ref_hardmax(RefCall *call);
bool ref_reverse_sequence(RefCall *call);
bool ref_compress(RefCall *call);
bool ref_center_crop_pad(RefCall *call);
bool ref_swiglu(RefCall *call);
bool ref_unary(RefCall *call);
bool ref_binary(RefCall *call);
bool ref_compare(RefCall *call);
bool ref_variadic(RefCall *call);
bool ref_clip(RefCall *call);
bool ref_where(RefCall *call);
bool ref_cast(RefCall *call);
bool ref_conv(RefCall *call);
bool ref_conv_transpose(RefCall *call);
bool ref_winograd_weights(RefCall *call);
bool ref_winograd_conv(RefCall *call);
bool ref_matmul(RefCall *call);
bool ref_matmul_integer(RefCall *call);
bool ref_gemm(RefCall *call);
bool ref_pool(RefCall *call);
bool ref_global_pool(RefCall *call);
bool ref_batch_norm(RefCall *call);
bool ref_layer_norm(RefCall *call);
bool ref_rms_norm(RefCall *call);
bool ref_group_norm(RefCall *call);
bool ref_lrn(RefCall *call);
bool ref_softmax(RefCall *call);
bool ref_reduce(RefCall *call);
bool ref_arg(RefCall *call);
bool ref_cumsum(RefCall *call);
bool ref_identity(RefCall *call);
bool ref_reshape(RefCall *call);
bool ref_flatten(RefCall *call);
bool ref_squeeze(RefCall *call);
bool ref_unsqueeze(RefCall *call);
bool ref_transpose(RefCall *call);
bool ref_concat(RefCall *call);
bool ref_split(RefCall *call);
bool ref_slice(RefCall *call);
bool ref_pad(RefCall *call);
bool ref_expand(RefCall *call);
bool ref_tile(RefCall *call);
bool ref_gather(RefCall *call);
bool ref_gather_elements(RefCall *call);
bool ref_scatter_elements(RefCall *call);
bool ref_depth_to_space(RefCall *call);
bool ref_space_to_depth(RefCall *call);
bool ref_shape(RefCall *call);
bool ref_size(RefCall *call);
bool ref_constant(RefCall *call);
bool ref_constant_of_shape(RefCall *call);
bool ref_range(RefCall *call);
bool ref_resize(RefCall *call);
bool ref_dequantize(RefCall *call);
bool ref_quantize(RefCall *call);
bool ref_loss(RefCall *call);
bool ref_einsum(RefCall *call);
bool ref_det(RefCall *call);
bool ref_max_unpool(RefCall *call);
bool ref_col2im(RefCall *call);
bool ref_lp_norm(RefCall *call);
bool ref_mvn(RefCall *call);
bool ref_window(RefCall *call);
bool ref_mel_weight_matrix(RefCall *call);
bool ref_dft(RefCall *call);
bool ref_stft(RefCall *call);
bool ref_affine_grid(RefCall *call);
bool ref_grid_sample(RefCall *call);
bool ref_roi_align(RefCall *call);
bool ref_deform_conv(RefCall *call);
bool ref_attention(RefCall *call);
bool ref_rotary_embedding(RefCall *call);
bool ref_topk(RefCall *call);
bool ref_recurrent(RefCall *call);
bool ref_dynamic_quantize(RefCall *call);
bool ref_qlinear_matmul(RefCall *call);
bool ref_conv_integer(RefCall *call);
bool ref_qlinear_conv(RefCall *call);
bool ref_requantize(RefCall *call);
bool ref_requantize_sum(RefCall *call);
bool ref_non_zero(RefCall *call);
bool ref_unique(RefCall *call);
bool ref_nms(RefCall *call);
bool ref_tfidf(RefCall *call);

#endif
