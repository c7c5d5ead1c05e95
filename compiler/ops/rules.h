/* What the type and definition rules of all operator families share.
 * Private to ops/. */
#ifndef ASSAY_OPS_RULES_H
#define ASSAY_OPS_RULES_H

#include "ops/op.h"

/* The families, each ending with NULL; op.c gathers them. */
extern const Op *const ops_unary[];
extern const Op *const ops_bounded[];
extern const Op *const ops_activation[];
extern const Op *const ops_binary[];
extern const Op *const ops_compare[];
extern const Op *const ops_conv[];
extern const Op *const ops_pool[];
extern const Op *const ops_matmul[];
extern const Op *const ops_normalization[];
extern const Op *const ops_reduce[];
extern const Op *const ops_softmax[];
extern const Op *const ops_shape[];
extern const Op *const ops_movement[];
extern const Op *const ops_pad[];
extern const Op *const ops_fill[];
extern const Op *const ops_index[];
extern const Op *const ops_resize[];
extern const Op *const ops_cast[];
extern const Op *const ops_quantize[];
extern const Op *const ops_loss[];
extern const Op *const ops_trigonometry[];
extern const Op *const ops_scatter[];
extern const Op *const ops_position[];
extern const Op *const ops_bitwise[];
extern const Op *const ops_linear[];
extern const Op *const ops_unpool[];
extern const Op *const ops_norm[];
extern const Op *const ops_spectral[];
extern const Op *const ops_sample[];
extern const Op *const ops_deform[];
extern const Op *const ops_attention[];
extern const Op *const ops_rotary[];
extern const Op *const ops_topk[];
extern const Op *const ops_control[];
extern const Op *const ops_unique[];
extern const Op *const ops_nms[];
extern const Op *const ops_tfidf[];
extern const Op *const ops_recurrent[];
extern const Op *const ops_qlinear[];
extern const Op *const ops_requantize[];
extern const Op *const ops_winograd[];

/* Sets of element types. */
enum {
    TYPES_FLOAT = 1 << DT_F64 | 1 << DT_F32 | 1 << DT_F16 | 1 << DT_BF16,
    TYPES_SIGNED =
        TYPES_FLOAT | 1 << DT_I64 | 1 << DT_I32 | 1 << DT_I16 | 1 << DT_I8,
    TYPES_UNSIGNED = 1 << DT_U64 | 1 << DT_U32 | 1 << DT_U16 | 1 << DT_U8,
    TYPES_NUMBER = TYPES_SIGNED | TYPES_UNSIGNED,
    TYPES_INT = TYPES_NUMBER & ~TYPES_FLOAT,
    TYPES_INDEX = 1 << DT_I64 | 1 << DT_I32,
    TYPES_BOOL = 1 << DT_BOOL,
    TYPES_ANY = TYPES_NUMBER | TYPES_BOOL
};

/* ---- strings.c: operands that are constant strings */

/* The first operand is known and its texts are numbers. */
bool infer_strings_as_numbers(InferContext *c, DType to);
/* Both operands are known. */
bool infer_strings_known(InferContext *c);
bool decompose_string_cast(Graph *g, Node *node);
bool decompose_string_equal(Graph *g, Node *node);

/* ---- type rules */

bool node_has_input(const Node *node, int index);
const TensorType *infer_input(const InferContext *c, int index);
/* The element type of input `index` must be in `types`. */
bool infer_types(InferContext *c, int index, unsigned types);
/* Inputs a and b must have the same element type. */
bool infer_same_dtype(InferContext *c, int a, int b);
bool infer_rank(InferContext *c, int index, int lowest, int highest);
/* The value of a constant input; NULL after an error that names it. `what`
 * is the operand's name in ONNX, "axes". */
const Array *infer_constant(InferContext *c, int index, const char *what);
/* The same where extents will do: the elements of a small integer operand, at
 * most `most` of them; -1 after an error that names it. */
int infer_extents(InferContext *c, int index, const char *what, int most,
                  Extent *list);
/* Element `at` of an operand, for definitions of nodes that typed. */
Extent extent_operand(const Node *node, int index, int64_t at);
/* start and end of Shape, cut to the rank. */
void shape_range(const Node *node, int rank, int *first, int *end);
/* The extent of a result that is as large as the data say: a name of the
 * node's own, from 0 to `most`. Its program has to call loop_set_extent. */
Extent infer_counted(InferContext *c, int64_t most);
/* Two extents that must be equal; a name without bounds is checked when it is
 * bound. False (without a message) when they are not, or may not be. */
bool extents_agree(Extent a, Extent b);
/* Elements of a shape. */
Extent extents_product(Arena *arena, const Extent *dims, int count);
/* What the node's small integer results hold, after its type rule. */
void infer_symbols(Graph *g, Node *node);
/* Sets output `index`, if the node has it. */
void infer_set(InferContext *c, int index, DType dtype, int rank,
               const Extent *dims);
bool infer_set_checked(InferContext *c, int index, DType dtype, int rank,
                       const Extent *dims);
/* NumPy broadcasting of all inputs in [first, last]. */
bool infer_broadcast(InferContext *c, int first, int last, int *rank,
                     Extent *dims);
/* Like one step of it: *to becomes the extent of both. */
bool infer_broadcast_dim(InferContext *c, Extent *to, Extent from);
/* An axis in [-rank, rank), made non-negative. */
bool infer_axis(InferContext *c, const char *what, int64_t axis, int rank,
                int *result);
/* Distinct axes of a rank-1 (or scalar) integer constant: sets chosen[]. */
bool infer_axes(InferContext *c, const Array *axes, int rank, bool *chosen);
/* Integer list attribute of `count` items, each at least `lowest`; fills
 * values with `fallback` when it is absent. */
bool infer_ints(InferContext *c, const char *name, int count, int64_t lowest,
                int64_t fallback, int64_t *values);
/* A known extent or -1. */
int64_t extent_known(Extent extent);
/* The only element of a constant integer operand. */
bool infer_number(InferContext *c, int index, const char *what,
                  int64_t *value);
/* Every step-th element of index operand `input`, from `first` on, must be
 * a place on an axis of that extent, as far as both are known. */
bool infer_indices(InferContext *c, int input, int64_t first, int64_t step,
                   Extent extent);

/* ---- windows of convolutions and pools */

typedef struct Window {
    int rank; /* spatial axes */
    int64_t kernel[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK];
    int64_t lo[MAX_RANK], hi[MAX_RANK]; /* padding */
    bool same; /* auto_pad SAME_*: lo and hi follow from the extents */
    bool same_lower, ceil_mode;
} Window;

/* Reads and checks strides, dilations, pads, auto_pad and ceil_mode. */
bool infer_window(InferContext *c, Window *w);
/* The output extent of spatial axis `axis`; fills lo and hi for `same`
 * where the extent is known. */
bool infer_window_extent(InferContext *c, Window *w, int axis, Extent in,
                         Extent *out);
/* For definitions: the window of a node that passed its type rule. */
Window window_of(const Node *node, int rank, const int64_t *kernel,
                 const int64_t *in_dims);
/* `x` and `out` are the node's operand and result, N and C first. */
bool window_is_padded(const Window *w, const Buffer *x, const Buffer *out);

/* ---- definitions */

/* As define_extent, for loops. */
const Expr *load_extent(const DefineContext *c, Extent extent);

/* Reads `buffer`, broadcast to the stage that `b` builds. */
const Expr *read_broadcast(const StageBuilder *b, const Buffer *buffer);
/* Reads `buffer` at the stage's own indices. */
const Expr *read_same(const StageBuilder *b, const Buffer *buffer);
/* A temporary with the element type and shape given. */
Buffer *define_temp(DefineContext *c, const char *name, DType dtype, int rank,
                    const int64_t *dims);
Buffer *define_temp_like(DefineContext *c, const char *name,
                         const Buffer *like);
/* Of the first `rank` extents of a buffer, and of another type. */
Buffer *define_temp_part(DefineContext *c, const char *name, DType dtype,
                         int rank, const Buffer *like);
/* An i64 as a float of the expression's type. */
const Expr *count_like(Arena *a, const Expr *like, const Expr *count);
/* A float constant of the expression's type. */
const Expr *const_like(Arena *a, const Expr *like, double value);
/* The lowest value: -inf or the type's minimum; and the highest. */
const Expr *lowest_of(Arena *a, DType dtype);
const Expr *highest_of(Arena *a, DType dtype);
/* Element 0 of a buffer of one element, whatever its rank. */
const Expr *read_scalar(const StageBuilder *b, const Buffer *buffer);
/* Reads `buffer` at the stage's indices, but at `at` along `axis`. */
const Expr *read_along(const StageBuilder *b, const Buffer *buffer, int axis,
                       const Expr *at);
/* The nearest place on an axis of `length`. */
const Expr *index_clamp(Arena *a, const Expr *index, int64_t length);
/* An index operand as a place on an axis: negative ones count from the end,
 * and those that arrive at run time are clamped. `known` is the operand's
 * value, NULL when it has none. */
const Expr *index_wrap(Arena *a, const Expr *index, const Expr *length,
                       const Array *known);
/* lo <= x < hi */
const Expr *index_within(Arena *a, const Expr *x, int64_t lo, int64_t hi);
const Expr *expr_and(Arena *a, const Expr *x, const Expr *y);
/* Row-major element number of indices in dims, and the way back. */
const Expr *flatten_index(Arena *a, int rank, const int64_t *dims,
                          const Expr *const *index);
void unflatten_index(Arena *a, const Expr *flat, int rank, const int64_t *dims,
                     const Expr **index);
/* max(x, y) etc. over longer forms used by several families. */
const Expr *expr_sigmoid(Arena *a, const Expr *x);
/* What values of a type are computed in where several steps follow each
 * other: f32 for half precision. */
DType work_dtype(DType dtype);
/* Sums `x` over reduction axes; accumulates in double for long sums. */
DType sum_dtype(DType dtype, int64_t count);
/* Bounds of a type that quantized values are stored as: floating point, where
 * no value can wrap. */
double lowest_stored(DType dtype);
double highest_stored(DType dtype);
/* -axis counts from the end. */
int normal_axis(int64_t axis, int rank);

#endif
