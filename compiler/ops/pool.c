/* Pooling over windows and over whole planes.
 *
 * Padding never takes part: under a maximum it holds the lowest value, under
 * an average it is either left out of the count or counts as zero, as
 * count_include_pad says. */
#include "ops/rules.h"

/* The kernel is an attribute here, not an operand's shape. */
static bool read_pool_kernel(InferContext *c, Window *w)
{
    w->rank = infer_input(c, 0)->rank - 2;
    return infer_ints(c, "kernel_shape", w->rank, 1, 1, w->kernel) &&
           infer_window(c, w);
}

/* `second`: element type of the second output, if the operator has one. A
 * window that lies in the padding altogether has no maximum and no average,
 * hence the check. */
static bool infer_pool(InferContext *c, unsigned types, DType second)
{
    Window w = {0};
    if (!infer_types(c, 0, types) || !infer_rank(c, 0, 3, MAX_RANK) ||
        !read_pool_kernel(c, &w))
        return false;
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK] = {x->dims[0], x->dims[1]};
    for (int i = 0; i < w.rank; i++) {
        if (!infer_window_extent(c, &w, i, x->dims[2 + i], &dims[2 + i]))
            return false;
        int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
        if (w.lo[i] >= reach || w.hi[i] >= reach)
            return infer_error(c,
                               "pads of %lld and %lld on axis %d leave "
                               "windows without input: the kernel "
                               "reaches over %lld",
                               (long long)w.lo[i], (long long)w.hi[i], i + 2,
                               (long long)reach);
    }
    if (second)
        infer_set(c, 1, second, x->rank, dims);
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

static bool infer_max_pool(InferContext *c)
{
    bool columns = attrs_int(&c->node->attrs, "storage_order", 0) != 0;
    if (columns && c->node->outputs.count > 1 &&
        !type_is_static(infer_input(c, 0)))
        return infer_error(c, "storage_order 1 needs constant extents; fix "
                              "them with --dim NAME=VALUE");
    return infer_pool(c, TYPES_FLOAT | 1 << DT_I8 | 1 << DT_U8, DT_I64);
}

static bool infer_average_pool(InferContext *c)
{
    return infer_pool(c, TYPES_FLOAT, DT_INVALID);
}

static const char *kernel_axis(int rank, int axis)
{
    static const char *const names[] = {"kd", "kh", "kw"};
    return rank <= 3 ? names[3 - rank + axis] : "kx";
}

/* Indices into the input for the stage being built; adds its reduction
 * axes. */
static void window_indices(StageBuilder *b, const Window *w,
                           const Expr **index)
{
    Arena *a = b->arena;
    index[0] = b->index[0];
    index[1] = b->index[1];
    for (int i = 0; i < w->rank; i++) {
        const Expr *k = stage_reduce(b, w->kernel[i], kernel_axis(w->rank, i));
        const Expr *at =
            expr_add(a, expr_mul_int(a, b->index[2 + i], w->stride[i]),
                     expr_mul_int(a, k, w->dilation[i]));
        index[2 + i] = expr_add_int(a, at, -w->lo[i]);
    }
}

static Window pool_window(const DefineContext *c)
{
    int count;
    const Buffer *x = c->in[0];
    const int64_t *kernel =
        attrs_ints(&c->node->attrs, "kernel_shape", &count);
    return window_of(c->node, x->rank - 2, kernel, &x->dims[2]);
}

/* The position of an element in the whole tensor; -1 for padding, so that it
 * never counts as one. */
static const Expr *position_of(Arena *a, const Buffer *x, bool padded,
                               const Expr *const *index)
{
    const Expr *flat = expr_int(a, 0);
    for (int i = 0; i < x->rank; i++)
        flat =
            expr_add(a, expr_mul(a, flat, buffer_extent(a, x, i)), index[i]);
    const Expr *inside = expr_const_int(a, DT_BOOL, 1);
    for (int i = 2; i < x->rank && padded; i++)
        inside = expr_and(
            a, inside,
            expr_and(a, expr_binary(a, EX_LE, expr_int(a, 0), index[i]),
                     expr_binary(a, EX_LT, index[i], buffer_extent(a, x, i))));
    return expr_select(a, inside, flat, expr_int(a, -1));
}

/* storage_order 1 counts the elements of a plane with the first axis
 * innermost. */
static const Expr *by_column(Arena *a, const Buffer *x, const Expr *flat)
{
    const Expr *index[MAX_RANK], *column = expr_int(a, 0);
    unflatten_index(a, flat, x->rank, x->dims, index);
    for (int i = x->rank - 1; i >= 2; i--)
        column = expr_add(a, expr_mul_int(a, column, x->dims[i]), index[i]);
    for (int i = 2; i < x->rank; i++)
        index[i] = expr_int(a, 0);
    return expr_add(a, flatten_index(a, x->rank, x->dims, index), column);
}

/* With indices it is the same reduction over pairs; the first of equal values
 * wins. */
static void define_max_pool(DefineContext *c)
{
    const Buffer *x = c->in[0];
    Window w = pool_window(c);
    const Expr *index[MAX_RANK];
    bool columns = attrs_int(&c->node->attrs, "storage_order", 0) != 0;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    window_indices(&b, &w, index);
    bool padded = window_is_padded(&w, x, c->out[0]);
    const Expr *value =
        padded ? expr_read_padded(a, x, index, lowest_of(a, x->dtype))
               : expr_read(a, x, index);
    if (!c->out[1]) {
        stage_end_reduce(&b, "max", value);
        return;
    }
    /* The second output counts positions through the whole tensor. */
    Buffer *out[2] = {c->out[0], c->out[1]};
    if (columns)
        out[1] = define_temp_like(c, "row_position", c->out[1]);
    const Expr *values[2] = {value, position_of(a, x, padded, index)};
    stage_end_tuple(&b, reducer_arg(a, x->dtype, true, false), out, values);
    if (!columns)
        return;
    stage_begin(&b, c->def, c->out[1]);
    stage_end(&b, by_column(a, x, read_same(&b, out[1])));
}

/* ---- norms of windows */

/* |x|^p summed, and the root of that. */
static const Expr *power_of(Arena *a, const Expr *x, int64_t p)
{
    x = expr_unary(a, EX_ABS, x);
    return p == 1   ? x
           : p == 2 ? expr_mul(a, x, x)
                    : expr_binary(a, EX_POW, x, const_like(a, x, (double)p));
}

static const Expr *root_of(Arena *a, const Expr *x, int64_t p)
{
    return p == 1 ? x
           : p == 2
               ? expr_unary(a, EX_SQRT, x)
               : expr_binary(a, EX_POW, x, const_like(a, x, 1.0 / (double)p));
}

static bool check_power(InferContext *c)
{
    int64_t p = attrs_int(&c->node->attrs, "p", 2);
    return p >= 1 ||
           infer_error(c, "p is %lld, it must be at least 1", (long long)p);
}

static bool infer_lp_pool(InferContext *c)
{
    return check_power(c) && infer_pool(c, TYPES_FLOAT, DT_INVALID);
}

/* Padding is zero and adds nothing. */
static void define_lp_pool(DefineContext *c)
{
    const Buffer *x = c->in[0], *out = c->out[0];
    Window w = pool_window(c);
    int64_t p = attrs_int(&c->node->attrs, "p", 2);
    Buffer *sum = define_temp_like(c, "sum", out);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    Arena *a = b.arena;
    window_indices(&b, &w, index);
    bool padded = window_is_padded(&w, x, out);
    const Expr *value =
        padded ? expr_read_padded(a, x, index, expr_const(a, x->dtype, 0))
               : expr_read(a, x, index);
    stage_end_reduce(&b, "sum", power_of(a, value, p));
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, root_of(a, read_same(&b, sum), p));
}

/* Cells of the window of output position `out` on one axis that lie in
 * [from, to) of the input, as an expression: the taps k of 0..K-1 with
 * from <= out * stride - lo + k * dilation < to. */
static const Expr *count_cells(Arena *a, const Window *w, int axis,
                               const Expr *out, int64_t from, const Expr *to)
{
    int64_t d = w->dilation[axis];
    const Expr *start =
        expr_add_int(a, expr_mul_int(a, out, w->stride[axis]), -w->lo[axis]);
    /* first = ceil((from - start) / d), end = ceil((to - start) / d) */
    const Expr *first = expr_div(
        a, expr_sub(a, expr_int(a, from + d - 1), start), expr_int(a, d));
    const Expr *end = expr_div(
        a, expr_sub(a, expr_add_int(a, to, d - 1), start), expr_int(a, d));
    first = expr_max(a, first, expr_int(a, 0));
    end = expr_min(a, end, expr_int(a, w->kernel[axis]));
    return expr_sub(a, end, first);
}

/* The count of cells is a constant wherever all windows have the same;
 * elsewhere an expression of the position. */
static void define_average_pool(DefineContext *c)
{
    const Buffer *x = c->in[0], *out = c->out[0];
    Window w = pool_window(c);
    bool include_pad = attrs_int(&c->node->attrs, "count_include_pad", 0);
    bool padded = window_is_padded(&w, x, out);
    const Expr *index[MAX_RANK];
    int64_t cells = 1;
    bool constant = true;
    for (int i = 0; i < w.rank; i++) {
        int64_t last = (out->dims[2 + i] - 1) * w.stride[i] +
                       (w.kernel[i] - 1) * w.dilation[i] + 1;
        int64_t limit = x->dims[2 + i] + w.lo[i] + w.hi[i];
        cells *= w.kernel[i];
        /* Padding counts if it was asked for, cells past it never do. */
        constant &= include_pad ? last <= limit : !padded;
        if (x->limit[2 + i])
            constant &= !padded && !w.ceil_mode;
    }
    Buffer *sum = define_temp_like(c, "sum", out);
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    Arena *a = b.arena;
    window_indices(&b, &w, index);
    stage_end_reduce(
        &b, "sum",
        padded ? expr_read_padded(a, x, index, expr_const(a, x->dtype, 0))
               : expr_read(a, x, index));
    stage_begin(&b, c->def, c->out[0]);
    const Expr *total = read_same(&b, sum);
    if (constant) {
        double scale = x->dtype == DT_F64 ? 1.0 / (double)cells
                                          : (double)(1.0f / (float)cells);
        stage_end(&b, expr_mul(a, total, const_like(a, total, scale)));
        return;
    }
    const Expr *count = expr_int(a, 1);
    for (int i = 0; i < w.rank; i++) {
        int64_t from = include_pad ? -w.lo[i] : 0;
        const Expr *to = expr_add_int(a, buffer_extent(a, x, 2 + i),
                                      include_pad ? w.hi[i] : 0);
        count = expr_mul(a, count,
                         count_cells(a, &w, i, b.index[2 + i], from, to));
    }
    stage_end(&b, expr_div(a, total, expr_cast(a, total->dtype, count)));
}

static bool infer_global(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 2, MAX_RANK))
        return false;
    for (int i = 0; i < x->rank; i++)
        dims[i] = i < 2 ? x->dims[i] : extent_const(1);
    infer_set(c, 0, x->dtype, x->rank, dims);
    return true;
}

/* Reads the input over all its spatial positions. */
static const Expr *read_plane(StageBuilder *b, const Buffer *x)
{
    static const char *const names[] = {"d", "h", "w"};
    const Expr *index[MAX_RANK] = {b->index[0], b->index[1]};
    int rank = x->rank - 2;
    for (int i = 0; i < rank; i++)
        index[2 + i] = stage_reduce(b, x->dims[2 + i],
                                    rank <= 3 ? names[3 - rank + i] : "x");
    return expr_read(b->arena, x, index);
}

static void define_global_max_pool(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    stage_end_reduce(&b, "max", read_plane(&b, c->in[0]));
}

/* Large planes are summed in double (see sum_dtype): this mean often feeds a
 * classifier directly. */
static void define_global_average_pool(DefineContext *c)
{
    const Buffer *x = c->in[0], *out = c->out[0];
    int64_t count = 1; /* at most; `elements` is the number */
    const Expr *elements = expr_int(c->def->arena, 1);
    for (int i = 2; i < x->rank; i++) {
        count *= x->dims[i];
        elements = expr_mul(c->def->arena, elements,
                            buffer_extent(c->def->arena, x, i));
    }
    DType wide = sum_dtype(x->dtype, count);
    Buffer *sum = define_temp(c, "sum", wide, out->rank, out->dims);
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    stage_end_reduce(&b, "sum", expr_cast(b.arena, wide, read_plane(&b, x)));
    stage_begin(&b, c->def, c->out[0]);
    const Expr *total = read_same(&b, sum);
    double scale =
        wide == DT_F64 ? 1.0 / (double)count : (double)(1.0f / (float)count);
    const Expr *factor = const_like(b.arena, total, scale);
    if (elements->kind != EX_INT)
        factor = expr_div(b.arena, const_like(b.arena, total, 1),
                          count_like(b.arena, total, elements));
    total = expr_mul(b.arena, total, factor);
    stage_end(&b, expr_cast(b.arena, x->dtype, total));
}

static bool infer_global_lp(InferContext *c)
{
    return check_power(c) && infer_global(c);
}

static void define_global_lp_pool(DefineContext *c)
{
    const Buffer *out = c->out[0];
    int64_t p = attrs_int(&c->node->attrs, "p", 2);
    Buffer *sum = define_temp_like(c, "sum", out);
    StageBuilder b;
    stage_begin(&b, c->def, sum);
    stage_end_reduce(&b, "sum",
                     power_of(b.arena, read_plane(&b, c->in[0]), p));
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, root_of(b.arena, read_same(&b, sum), p));
}

static const AttrSpec max_attrs[] = {
    {"auto_pad", ATTR_STRING, false}, {"ceil_mode", ATTR_FLAG, false},
    {"dilations", ATTR_INTS, false},  {"kernel_shape", ATTR_INTS, true},
    {"pads", ATTR_INTS, false},       {"storage_order", ATTR_FLAG, false},
    {"strides", ATTR_INTS, false},    {0}};
static const AttrSpec average_attrs[] = {
    {"auto_pad", ATTR_STRING, false},        {"ceil_mode", ATTR_FLAG, false},
    {"count_include_pad", ATTR_FLAG, false}, {"dilations", ATTR_INTS, false},
    {"kernel_shape", ATTR_INTS, true},       {"pads", ATTR_INTS, false},
    {"strides", ATTR_INTS, false},           {0}};

static const AttrSpec lp_attrs[] = {
    {"auto_pad", ATTR_STRING, false}, {"ceil_mode", ATTR_FLAG, false},
    {"dilations", ATTR_INTS, false},  {"kernel_shape", ATTR_INTS, true},
    {"p", ATTR_INT, false},           {"pads", ATTR_INTS, false},
    {"strides", ATTR_INTS, false},    {0}};
static const AttrSpec power_attrs[] = {{"p", ATTR_INT, false}, {0}};

static const Op op_max_pool = {.name = "MaxPool",
                               .domain = "",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .min_outputs = 1,
                               .max_outputs = 2,
                               .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                               .attrs = max_attrs,
                               .infer = infer_max_pool,
                               .define = define_max_pool,
                               .since = 12};
static const Op op_average_pool = {.name = "AveragePool",
                                   .domain = "",
                                   .min_inputs = 1,
                                   .max_inputs = 1,
                                   .min_outputs = 1,
                                   .max_outputs = 1,
                                   .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                                   .attrs = average_attrs,
                                   .infer = infer_average_pool,
                                   .define = define_average_pool,
                                   .since = 19};
static const Op op_global_max_pool = {.name = "GlobalMaxPool",
                                      .domain = "",
                                      .min_inputs = 1,
                                      .max_inputs = 1,
                                      .min_outputs = 1,
                                      .max_outputs = 1,
                                      .traits =
                                          OP_REDUCTION | OP_RUNTIME_EXTENTS,
                                      .infer = infer_global,
                                      .define = define_global_max_pool,
                                      .since = 1};
static const Op op_global_average_pool = {.name = "GlobalAveragePool",
                                          .domain = "",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .min_outputs = 1,
                                          .max_outputs = 1,
                                          .traits = OP_REDUCTION |
                                                    OP_RUNTIME_EXTENTS,
                                          .infer = infer_global,
                                          .define = define_global_average_pool,
                                          .since = 1};

static const Op op_lp_pool = {.name = "LpPool",
                              .domain = "",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                              .attrs = lp_attrs,
                              .infer = infer_lp_pool,
                              .define = define_lp_pool,
                              .since = 18};
static const Op op_global_lp_pool = {.name = "GlobalLpPool",
                                     .domain = "",
                                     .min_inputs = 1,
                                     .max_inputs = 1,
                                     .min_outputs = 1,
                                     .max_outputs = 1,
                                     .traits =
                                         OP_REDUCTION | OP_RUNTIME_EXTENTS,
                                     .attrs = power_attrs,
                                     .infer = infer_global_lp,
                                     .define = define_global_lp_pool,
                                     .since = 2};

const Op *const ops_pool[] = {&op_max_pool,
                              &op_average_pool,
                              &op_lp_pool,
                              &op_global_max_pool,
                              &op_global_average_pool,
                              &op_global_lp_pool,
                              NULL};
