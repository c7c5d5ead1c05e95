/* Windows laid back into the planes they were taken from: MaxUnpool and
 * Col2Im. Seen from the output, as everything: each place looks for the
 * windows that hold it. */
#include "ops/rules.h"

/* ---- MaxUnpool */

/* The extents that a pool with these windows takes its input from. */
static bool unpooled_extents(InferContext *c, Extent *dims)
{
    const TensorType *x = infer_input(c, 0);
    Window w = {.rank = x->rank - 2};
    int64_t pads[2 * MAX_RANK];
    if (!infer_ints(c, "kernel_shape", w.rank, 1, 1, w.kernel) ||
        !infer_ints(c, "strides", w.rank, 1, 1, w.stride) ||
        !infer_ints(c, "pads", 2 * w.rank, 0, 0, pads))
        return false;
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int i = 0; i < w.rank; i++) {
        int64_t in = extent_known(x->dims[2 + i]);
        if (in < 0)
            return infer_error(c, "its spatial extents must be constant");
        int64_t out =
            (in - 1) * w.stride[i] + w.kernel[i] - pads[i] - pads[w.rank + i];
        if (out < 1)
            return infer_error(c, "pads leave nothing of axis %d", 2 + i);
        dims[2 + i] = extent_const(out);
    }
    return true;
}

/* Positions count in the extents that follow from the windows; output_shape
 * may be larger, with zeros at the end of each axis. */
static bool infer_max_unpool(InferContext *c)
{
    const TensorType *x = infer_input(c, 0), *indices = infer_input(c, 1);
    Extent dims[MAX_RANK];
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 3, MAX_RANK) ||
        !infer_types(c, 1, 1 << DT_I64) ||
        !infer_rank(c, 1, x->rank, x->rank) || !unpooled_extents(c, dims))
        return false;
    for (int i = 0; i < x->rank; i++)
        if (!extent_equal(x->dims[i], indices->dims[i]))
            return infer_error(c, "values and indices must have the same "
                                  "shape");
    if (node_has_input(c->node, 2)) {
        const Array *shape = infer_constant(c, 2, "output_shape");
        if (!shape)
            return false;
        if (array_count(shape) != x->rank || dtype_is_float(shape->dtype))
            return infer_error(c, "output_shape must be %d integers", x->rank);
        for (int i = 0; i < x->rank; i++) {
            int64_t wanted = array_get_int(shape, i);
            if (wanted < extent_known(dims[i]) || wanted > INT32_MAX)
                return infer_error(c,
                                   "output_shape has %lld on axis %d, at "
                                   "least %lld are needed",
                                   (long long)wanted, i,
                                   (long long)extent_known(dims[i]));
            dims[i] = extent_const(wanted);
        }
    }
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

/* The last value of the plane whose index names this place, else 0. */
static void define_max_unpool(DefineContext *c)
{
    const Buffer *x = c->in[0], *out = c->out[0];
    int count, rank = x->rank;
    const int64_t *kernel =
        attrs_ints(&c->node->attrs, "kernel_shape", &count);
    Window w = window_of(c->node, rank - 2, kernel, &x->dims[2]);
    int64_t dims[MAX_RANK] = {x->dims[0], x->dims[1]};
    for (int i = 0; i < w.rank; i++)
        dims[2 + i] = (x->dims[2 + i] - 1) * w.stride[i] + w.kernel[i] -
                      w.lo[i] - w.hi[i];
    Buffer *winner = define_temp(c, "winner", DT_I64, rank, out->dims);
    const Expr *at[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, winner);
    Arena *a = b.arena;
    const Expr *place = flatten_index(a, rank, dims, b.index);
    const Expr *inside = expr_const_int(a, DT_BOOL, 1);
    for (int i = 0; i < rank; i++) {
        /* Beyond the batch and channels of x there is nothing either. */
        at[i] = i < 2 ? index_clamp(a, b.index[i], x->dims[i])
                      : stage_reduce(&b, x->dims[i], "k");
        if (dims[i] < out->dims[i])
            inside = expr_and(
                a, inside,
                expr_binary(a, EX_LT, b.index[i], expr_int(a, dims[i])));
    }
    const Expr *hit = expr_and(
        a, inside, expr_binary(a, EX_EQ, expr_read(a, c->in[1], at), place));
    const Expr *which = flatten_index(a, rank - 2, &x->dims[2], &at[2]);
    stage_end_reduce(&b, "max", expr_select(a, hit, which, expr_int(a, -1)));
    stage_begin(&b, c->def, c->out[0]);
    which = read_same(&b, winner);
    const Expr *found = expr_binary(a, EX_LE, expr_int(a, 0), which);
    at[0] = b.index[0];
    at[1] = b.index[1];
    unflatten_index(a, which, rank - 2, &x->dims[2], &at[2]);
    stage_end(&b, expr_select(a, found, expr_read(a, x, at),
                              expr_const(a, x->dtype, 0)));
}

/* ---- Col2Im: columns of blocks, summed where blocks overlap */

typedef struct Blocks {
    Window w;                /* the block is the kernel */
    int64_t image[MAX_RANK]; /* spatial extents of the result */
    int64_t count[MAX_RANK]; /* of blocks along each axis */
    int64_t cells, blocks;   /* products: of a block, of all blocks */
} Blocks;

static void count_blocks(Blocks *k)
{
    k->cells = k->blocks = 1;
    for (int i = 0; i < k->w.rank; i++) {
        int64_t reach = (k->w.kernel[i] - 1) * k->w.dilation[i] + 1;
        int64_t room = k->image[i] + k->w.lo[i] + k->w.hi[i] - reach;
        k->count[i] = room < 0 ? 0 : room / k->w.stride[i] + 1;
        k->cells *= k->w.kernel[i];
        k->blocks *= k->count[i];
    }
}

static bool infer_col2im(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    const Array *image = infer_constant(c, 1, "image_shape");
    const Array *block = infer_constant(c, 2, "block_shape");
    Extent dims[MAX_RANK];
    Blocks k = {0};
    if (!image || !block || !infer_types(c, 0, TYPES_NUMBER) ||
        !infer_rank(c, 0, 3, 3) || !infer_rank(c, 1, 1, 1) ||
        !infer_types(c, 1, TYPES_INDEX) || !infer_types(c, 2, TYPES_INDEX))
        return false;
    k.w.rank = (int)array_count(image);
    if (k.w.rank < 1 || k.w.rank > MAX_RANK - 2 ||
        array_count(block) != k.w.rank)
        return infer_error(c,
                           "image_shape and block_shape must have as many "
                           "extents, 1 to %d",
                           MAX_RANK - 2);
    for (int i = 0; i < k.w.rank; i++) {
        k.image[i] = array_get_int(image, i);
        k.w.kernel[i] = array_get_int(block, i);
        if (k.image[i] < 1 || k.image[i] > INT32_MAX || k.w.kernel[i] < 1 ||
            k.w.kernel[i] > INT32_MAX)
            return infer_error(c, "an image of %lld in blocks of %lld",
                               (long long)k.image[i],
                               (long long)k.w.kernel[i]);
    }
    if (!infer_window(c, &k.w))
        return false;
    count_blocks(&k);
    int64_t rows = extent_known(x->dims[1]);
    if (rows < 0 || rows % k.cells != 0)
        return infer_error(c, "%lld rows are not blocks of %lld",
                           (long long)rows, (long long)k.cells);
    if (extent_known(x->dims[2]) != k.blocks)
        return infer_error(c, "%lld columns for %lld blocks",
                           (long long)extent_known(x->dims[2]),
                           (long long)k.blocks);
    dims[0] = x->dims[0];
    dims[1] = extent_const(rows / k.cells);
    for (int i = 0; i < k.w.rank; i++)
        dims[2 + i] = extent_const(k.image[i]);
    return infer_set_checked(c, 0, x->dtype, 2 + k.w.rank, dims);
}

/* The cell k of a block covers position p when p + lo - k * dilation is a
 * whole number of strides, that of the block. */
static void define_col2im(DefineContext *c)
{
    const Buffer *x = c->in[0], *out = c->out[0];
    int64_t kernel[MAX_RANK];
    Blocks k = {0};
    for (int i = 0; i < out->rank - 2; i++)
        kernel[i] = array_get_int(c->node->inputs.data[2]->value, i);
    k.w = window_of(c->node, out->rank - 2, kernel, &out->dims[2]);
    for (int i = 0; i < k.w.rank; i++)
        k.image[i] = out->dims[2 + i];
    count_blocks(&k);
    const Expr *cell[MAX_RANK], *block[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *fits = expr_const_int(a, DT_BOOL, 1);
    for (int i = 0; i < k.w.rank; i++) {
        cell[i] = stage_reduce(&b, k.w.kernel[i], "k");
        const Expr *at =
            expr_sub(a, expr_add_int(a, b.index[2 + i], k.w.lo[i]),
                     expr_mul_int(a, cell[i], k.w.dilation[i]));
        const Expr *stride = expr_int(a, k.w.stride[i]);
        const Expr *rest = expr_binary(a, EX_MOD, at, stride);
        block[i] = expr_div(a, at, stride);
        fits = expr_and(a, fits, expr_binary(a, EX_EQ, rest, expr_int(a, 0)));
        fits = expr_and(a, fits, index_within(a, block[i], 0, k.count[i]));
    }
    const Expr *index[3] = {
        b.index[0],
        expr_add(a, expr_mul_int(a, b.index[1], k.cells),
                 flatten_index(a, k.w.rank, k.w.kernel, cell)),
        flatten_index(a, k.w.rank, k.count, block)};
    const Expr *value = expr_read(a, x, index);
    stage_end_reduce(&b, "sum",
                     expr_select(a, fits, value, const_like(a, value, 0)));
}

static const AttrSpec unpool_attrs[] = {{"kernel_shape", ATTR_INTS, true},
                                        {"pads", ATTR_INTS, false},
                                        {"strides", ATTR_INTS, false},
                                        {0}};
static const AttrSpec column_attrs[] = {{"dilations", ATTR_INTS, false},
                                        {"pads", ATTR_INTS, false},
                                        {"strides", ATTR_INTS, false},
                                        {0}};

static const Op op_max_unpool = {.name = "MaxUnpool",
                                 .domain = "",
                                 .min_inputs = 2,
                                 .max_inputs = 3,
                                 .min_outputs = 1,
                                 .max_outputs = 1,
                                 .traits = OP_REDUCTION,
                                 .attrs = unpool_attrs,
                                 .infer = infer_max_unpool,
                                 .define = define_max_unpool,
                                 .since = 11};
static const Op op_col2im = {.name = "Col2Im",
                             .domain = "",
                             .min_inputs = 3,
                             .max_inputs = 3,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                             .attrs = column_attrs,
                             .infer = infer_col2im,
                             .define = define_col2im,
                             .since = 18};

const Op *const ops_unpool[] = {&op_max_unpool, &op_col2im, NULL};
