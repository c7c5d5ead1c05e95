/* Operators about shape: the elements stay as they are, under another
 * shape. */
#include "ops/bounded.h"
#include "ops/rules.h"

static bool infer_like_input(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* The flat number of the indices in dims that are known at run time only, and
 * the way back: as flatten_index and unflatten_index. */
static const Expr *flatten_extents(const DefineContext *c, int rank,
                                   const Extent *dims,
                                   const Expr *const *index)
{
    Arena *a = c->def->arena;
    const Expr *flat = expr_int(a, 0);
    for (int i = 0; i < rank; i++)
        flat = expr_add(a, expr_mul(a, flat, define_extent(c, dims[i])),
                        index[i]);
    return flat;
}

static void unflatten_extents(const DefineContext *c, const Expr *flat,
                              int rank, const Extent *dims, const Expr **index)
{
    Arena *a = c->def->arena;
    const Expr *one = expr_int(a, 1);
    bool is_first = true;
    for (int i = 0; i < rank; i++) {
        const Expr *extent = define_extent(c, dims[i]);
        const Expr *inner =
            define_extent(c, extents_product(a, &dims[i + 1], rank - i - 1));
        /* No iteration runs where an extent is 0, but a divisor may be
         * looked at before. */
        if (inner->kind != EX_INT)
            inner = expr_max(a, inner, one);
        if (extent->kind != EX_INT)
            extent = expr_max(a, extent, one);
        index[i] = expr_int(a, 0);
        if (expr_is_int(extent, 1))
            continue;
        index[i] = expr_div(a, flat, inner);
        if (!is_first)
            index[i] = expr_binary(a, EX_MOD, index[i], extent);
        is_first = false;
    }
}

/* Reads x for an output of another shape with the same elements, where an
 * extent is known at run time only. Runs as in reshape_indices, of products
 * that are the same whatever the names stand for. */
static void reshape_extents(const DefineContext *c, StageBuilder *b,
                            const Expr **index)
{
    Arena *a = b->arena;
    const TensorType *x = &c->node->inputs.data[0]->type;
    const TensorType *y = &c->node->outputs.data[0]->type;
    int i = 0, o = 0;
    while (i < x->rank || o < y->rank) {
        int i_end = i, o_end = o;
        bool found = false;
        /* The shortest run on the input's side, then on the output's. */
        for (i_end = i; i_end <= x->rank && !found; i_end++)
            for (o_end = o; o_end <= y->rank && !found; o_end++)
                found =
                    (i_end > i || o_end > o) &&
                    extent_equal(extents_product(a, &x->dims[i], i_end - i),
                                 extents_product(a, &y->dims[o], o_end - o));
        i_end -= found;
        o_end -= found;
        if (!found) {
            i_end = x->rank;
            o_end = y->rank;
        }
        const Expr *flat =
            flatten_extents(c, o_end - o, &y->dims[o], &b->index[o]);
        if (i_end == i + 1)
            index[i] = flat;
        else
            unflatten_extents(c, flat, i_end - i, &x->dims[i], &index[i]);
        i = i_end;
        o = o_end;
    }
}

/* Reads x for an output of another shape with the same elements in
 * row-major order. Runs of axes with equal products are matched one by
 * one, so that unchanged axes keep their plain index. */
static void reshape_indices(const DefineContext *c, StageBuilder *b,
                            const Expr **index)
{
    Arena *a = b->arena;
    const Buffer *x = c->in[0], *out = c->out[0];
    int i = 0, o = 0;
    for (int k = 0; k < x->rank; k++)
        if (x->dims[k] == 0) {
            for (int n = 0; n < x->rank; n++)
                index[n] = expr_int(a, 0);
            return; /* no element: the stage runs no iteration */
        }
    if (c->extents) {
        reshape_extents(c, b, index);
        return;
    }
    while (i < x->rank || o < out->rank) {
        int i_end = i, o_end = o;
        int64_t in_product = 1, out_product = 1;
        do {
            if (in_product <= out_product && i_end < x->rank)
                in_product *= x->dims[i_end++];
            else if (o_end < out->rank)
                out_product *= out->dims[o_end++];
            else
                in_product *= x->dims[i_end++];
        } while (in_product != out_product);
        if (i_end > i) {
            const Expr *flat =
                flatten_index(a, o_end - o, &out->dims[o], &b->index[o]);
            unflatten_index(a, flat, i_end - i, &x->dims[i], &index[i]);
        }
        i = i_end;
        o = o_end;
    }
}

/* All operators that keep elements and their order share this definition:
 * Reshape, Flatten, Squeeze, Unsqueeze, Identity. */
static void define_reshape(DefineContext *c)
{
    const Expr *index[MAX_RANK];
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    reshape_indices(c, &b, index);
    if (!operand_is_bounded(c->node, 1)) {
        stage_end(&b, expr_read(b.arena, c->in[0], index));
        return;
    }
    /* A shape that does not fit must not lead outside. */
    DType dtype = c->in[0]->dtype;
    const Expr *zero = dtype_is_float(dtype)
                           ? expr_const(b.arena, dtype, 0)
                           : expr_const_int(b.arena, dtype, 0);
    stage_end(&b, expr_read_padded(b.arena, c->in[0], index, zero));
}

/* ---- Reshape */

/* What is left for -1: the elements of x over those of the other extents.
 * Equal named extents cancel first. */
static bool infer_rest(InferContext *c, int rank, const Extent *dims, int rest,
                       Extent *left)
{
    Arena *arena = c->graph->arena;
    const TensorType *x = infer_input(c, 0);
    Extent total = extent_const(1), others = extent_const(1);
    bool cancelled[MAX_RANK] = {false};
    for (int i = 0; i < x->rank; i++) {
        bool found = false;
        for (int k = 0; k < rank && !found; k++) {
            found = k != rest && !cancelled[k] &&
                    extent_known(x->dims[i]) != 0 &&
                    extent_equal(x->dims[i], dims[k]);
            cancelled[k] |= found;
        }
        if (!found)
            total = extent_mul(arena, total, x->dims[i]);
    }
    for (int k = 0; k < rank; k++)
        if (k != rest && !cancelled[k])
            others = extent_mul(arena, others, dims[k]);
    if (extent_known(others) == 0) {
        if (extent_known(total) != 0)
            return infer_error(c, "-1 cannot be found: the other extents "
                                  "hold no elements, the input does");
        *left = extent_const(0);
        return true;
    }
    int64_t all = extent_known(total), each = extent_known(others);
    if (all >= 0 && each > 0 && all % each != 0)
        return infer_error(c,
                           "%lld elements cannot be split into rows of "
                           "%lld",
                           (long long)all, (long long)each);
    *left = extent_div(arena, total, others);
    return true;
}

/* Only where both counts are known; named extents are checked when they are
 * bound. */
static bool check_same_count(InferContext *c, int rank, const Extent *dims)
{
    TensorType type = {.dtype = infer_input(c, 0)->dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        type.dims[i] = dims[i];
    int64_t from = type_count(infer_input(c, 0)), to = type_count(&type);
    Str text = {0};
    if (from < 0 || to < 0) {
        const TensorType *x = infer_input(c, 0);
        Extent all = extents_product(c->graph->arena, x->dims, x->rank);
        Extent those = extents_product(c->graph->arena, dims, rank),
               rest[1] = {all};
        bool same = !type_is_bounded(x) || extent_equal(all, those);
        /* Names in another order. */
        if (!same && infer_rest(c, rank, dims, -1, rest))
            same = extent_known(rest[0]) == 1;
        return same ||
               infer_error(c, "it is not known whether the elements fit the "
                              "shape; fix the dimensions with --dim "
                              "NAME=VALUE");
    }
    if (from == to)
        return true;
    type_print(&text, &type);
    infer_error(c, "%lld elements do not fit the shape %s", (long long)from,
                str_text(&text));
    str_free(&text);
    return false;
}

/* 0 copies an extent (unless allowzero), -1 takes what is left. */
static bool infer_reshape(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    bool allow_zero = attrs_int(&c->node->attrs, "allowzero", 0) != 0;
    Extent dims[MAX_RANK];
    int rest = -1, rank = infer_extents(c, 1, "shape", MAX_RANK, dims);
    if (rank < 0)
        return false;
    if (infer_input(c, 1)->rank != 1)
        return infer_error(c,
                           "shape (%s) must be a list of at most %d "
                           "integers",
                           c->node->inputs.data[1]->name, MAX_RANK);
    for (int i = 0; i < rank; i++) {
        int64_t value = dims[i].value;
        if (!extent_is_const(dims[i]))
            continue;
        if (value < -1)
            return infer_error(c, "shape holds %lld; only -1 may be negative",
                               (long long)value);
        if (value == -1 && rest >= 0)
            return infer_error(c, "shape holds -1 twice");
        if (value == -1)
            rest = i;
        if (value != 0 || allow_zero)
            continue;
        if (i >= x->rank)
            return infer_error(c,
                               "shape copies axis %d of an input of rank "
                               "%d",
                               i, x->rank);
        dims[i] = x->dims[i];
    }
    if (rest >= 0 && !infer_rest(c, rank, dims, rest, &dims[rest]))
        return false;
    /* Whether a shape that a run brings fits is seen then. */
    return (operand_is_bounded(c->node, 1) ||
            check_same_count(c, rank, dims)) &&
           infer_set_checked(c, 0, x->dtype, rank, dims);
}

/* Extents before the axis become one, those from it on another. */
static bool infer_flatten(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int64_t axis = attrs_int(&c->node->attrs, "axis", 1);
    if (axis < -x->rank || axis > x->rank)
        return infer_error(c, "axis %lld is outside the rank %d",
                           (long long)axis, x->rank);
    if (axis < 0)
        axis += x->rank;
    Extent dims[2] = {extent_const(1), extent_const(1)};
    for (int i = 0; i < x->rank; i++)
        dims[i >= axis] =
            extent_mul(c->graph->arena, dims[i >= axis], x->dims[i]);
    return infer_set_checked(c, 0, x->dtype, 2, dims);
}

/* Without axes all extents of 1 go; a named extent never does. */
static bool infer_squeeze(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    bool chosen[MAX_RANK] = {false};
    int rank = 0;
    if (node_has_input(c->node, 1)) {
        const Array *axes = infer_constant(c, 1, "axes");
        if (!axes || !infer_axes(c, axes, x->rank, chosen))
            return false;
    } else {
        for (int i = 0; i < x->rank; i++)
            chosen[i] = extent_known(x->dims[i]) == 1;
    }
    for (int i = 0; i < x->rank; i++) {
        if (!chosen[i])
            dims[rank++] = x->dims[i];
        else if (extent_known(x->dims[i]) != 1 && extent_is_const(x->dims[i]))
            return infer_error(c,
                               "axis %d has %lld elements, only an extent "
                               "of 1 can be squeezed",
                               i, (long long)x->dims[i].value);
    }
    infer_set(c, 0, x->dtype, rank, dims);
    return true;
}

/* Axes count in the result, not in the input. */
static bool infer_unsqueeze(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    const Array *axes = infer_constant(c, 1, "axes");
    Extent dims[MAX_RANK];
    bool chosen[MAX_RANK] = {false};
    if (!axes)
        return false;
    int64_t rank = x->rank + array_count(axes);
    if (rank > MAX_RANK)
        return infer_error(c,
                           "a result of rank %lld; at most %d is "
                           "supported",
                           (long long)rank, MAX_RANK);
    if (!infer_axes(c, axes, (int)rank, chosen))
        return false;
    for (int i = 0, from = 0; i < rank; i++)
        dims[i] = chosen[i] ? extent_const(1) : x->dims[from++];
    infer_set(c, 0, x->dtype, (int)rank, dims);
    return true;
}

/* Inference passes everything: the output is the input, the mask all true.
 * So does training with a ratio of 0; another would need chance. */
static bool infer_dropout(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (node_has_input(c->node, 2)) {
        const Array *mode = infer_constant(c, 2, "training_mode");
        if (!mode)
            return false;
        bool trains = array_count(mode) && array_get_int(mode, 0) != 0;
        const Array *ratio = NULL;
        if (trains && node_has_input(c->node, 1)) {
            ratio = infer_constant(c, 1, "ratio");
            if (!ratio)
                return false;
        }
        if (trains &&
            (!ratio || array_count(ratio) != 1 || array_get(ratio, 0) != 0))
            return infer_error(c, "training_mode is true; only inference is "
                                  "supported, or a ratio of 0");
    }
    infer_set(c, 1, DT_BOOL, x->rank, x->dims);
    return infer_like_input(c);
}

static void define_dropout(DefineContext *c)
{
    StageBuilder b;
    define_reshape(c);
    if (c->node->outputs.count < 2 || !c->node->outputs.data[1])
        return;
    stage_begin(&b, c->def, c->out[1]);
    stage_end(&b, expr_const_int(b.arena, DT_BOOL, 1));
}

static void define_relayout(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, expr_read(b.arena, c->in[0], b.index));
}

static const AttrSpec reshape_attrs[] = {{"allowzero", ATTR_FLAG, false}, {0}};
static const AttrSpec flatten_attrs[] = {{"axis", ATTR_INT, false}, {0}};
static const AttrSpec dropout_attrs[] = {{"seed", ATTR_INT, false}, {0}};

enum { SAME_ELEMENTS = OP_RESHAPE | OP_INJECTIVE | OP_RUNTIME_EXTENTS };

#define ROW(field, op_name, least, most, outputs, mask, specs, rule,          \
            definition, rewrite, first)                                       \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "",                              \
                                   .min_inputs = least,                       \
                                   .max_inputs = most,                        \
                                   .min_outputs = 1,                          \
                                   .max_outputs = outputs,                    \
                                   .traits = mask,                            \
                                   .attrs = specs,                            \
                                   .infer = rule,                             \
                                   .define = definition,                      \
                                   .decompose = rewrite,                      \
                                   .since = first}
ROW(reshape, "Reshape", 2, 2, 1, SAME_ELEMENTS, reshape_attrs, infer_reshape,
    define_reshape, NULL, 14);
ROW(flatten, "Flatten", 1, 1, 1, SAME_ELEMENTS, flatten_attrs, infer_flatten,
    define_reshape, NULL, 13);
ROW(squeeze, "Squeeze", 1, 2, 1, SAME_ELEMENTS, NULL, infer_squeeze,
    define_reshape, NULL, 13);
ROW(unsqueeze, "Unsqueeze", 2, 2, 1, SAME_ELEMENTS, NULL, infer_unsqueeze,
    define_reshape, NULL, 13);
ROW(identity, "Identity", 1, 1, 1,
    OP_IDENTITY | OP_ELEMENTWISE | OP_RESHAPE | OP_INJECTIVE, NULL,
    infer_like_input, define_reshape, NULL, 14);
ROW(dropout, "Dropout", 1, 3, 2, OP_IDENTITY | OP_ELEMENTWISE, dropout_attrs,
    infer_dropout, define_dropout, NULL, 13);
/* A copy into another memory layout; the layout pass makes these. */
static const Op row_relayout = {.name = "Relayout",
                                .domain = "assay",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .min_outputs = 1,
                                .max_outputs = 1,
                                .traits = OP_ELEMENTWISE,
                                .infer = infer_like_input,
                                .define = define_relayout,
                                .since = 1};

const Op *const ops_shape[] = {&row_reshape,   &row_flatten,  &row_squeeze,
                               &row_unsqueeze, &row_identity, &row_dropout,
                               &row_relayout,  NULL};
