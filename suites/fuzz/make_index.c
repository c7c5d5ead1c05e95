/* Makers: gathering, scattering, sorting, places. */
#include <stddef.h>

#include "suites/fuzz/maker.h"

static bool make_gather(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, 4);
    int axis = choose(m->c, x->type.rank), rank = choose(m->c, 3);
    int64_t dims[] = {extent(m) % 6 + 1, 1 + choose(m->c, 3)};
    if (is_open(x, axis))
        return false;
    Tensor *at = indices(m, rank, dims, dim(x, axis));
    return at &&
           apply(m, "Gather",
                 attr_int(m, "axis", flip(m) ? axis : axis - x->type.rank), x,
                 at, NULL);
}

/* The shape of x, the axis aside, where it is `along`. */
static bool shape_along(Tensor *x, int axis, int64_t along, int64_t *dims)
{
    for (int i = 0; i < x->type.rank; i++)
        dims[i] = i == axis ? along : dim(x, i);
    return is_static(x);
}

static bool make_gather_elements(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, 4);
    int axis = choose(m->c, x->type.rank);
    int64_t dims[MAX_RANK];
    if (!shape_along(x, axis, 1 + choose(m->c, 5), dims))
        return false;
    Tensor *at = indices(m, x->type.rank, dims, dim(x, axis));
    return at &&
           apply(m, "GatherElements", attr_int(m, "axis", axis), x, at, NULL);
}

/* One limit has to serve all axes that a row of indices is about. */
static int64_t smallest(const Tensor *x, int first, int count)
{
    int64_t n = dim(x, first);
    for (int i = first; i < first + count; i++)
        n = dim(x, i) < n ? dim(x, i) : n;
    return n;
}

static bool make_gather_nd(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, 4);
    int batch = choose(m->c, x->type.rank);
    int deep = 1 + choose(m->c, x->type.rank - batch);
    int64_t dims[MAX_RANK];
    if (!is_static(x))
        return false;
    for (int i = 0; i < batch; i++)
        dims[i] = dim(x, i);
    dims[batch] = 1 + choose(m->c, 4);
    dims[batch + 1] = deep;
    Tensor *at = indices(m, batch + 2, dims, smallest(x, batch, deep));
    return at &&
           apply(m, "GatherND", attr_int(m, "batch_dims", batch), x, at, NULL);
}

static const char *const reductions[] = {"add", "mul", "max", "min", NULL};

/* Indices repeat: without a reduction the last update of a place counts, in
 * the order of the updates. */
static bool make_scatter(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, 4);
    int axis = choose(m->c, x->type.rank);
    int64_t dims[MAX_RANK];
    if (!shape_along(x, axis, 1 + choose(m->c, 5), dims))
        return false;
    for (int i = 0; i < x->type.rank; i++)
        if (i != axis && rarely(m, 3))
            dims[i] = dims[i] > 1 ? dims[i] - 1 : dims[i];
    Attrs attrs = attr_int(m, "axis", axis);
    if (x->type.dtype != DT_BOOL)
        choose_text(m, &attrs, "reduction", reductions);
    Tensor *at = indices(m, x->type.rank, dims, dim(x, axis));
    Tensor *updates = weights(m, x->type.dtype, x->type.rank, dims, 1, 1);
    return at && apply(m, "ScatterElements", attrs, x, at, updates);
}

static bool make_scatter_nd(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, 4);
    int deep = 1 + choose(m->c, x->type.rank), rank = 1;
    int64_t dims[] = {1 + choose(m->c, 5), deep}, shape[MAX_RANK] = {dims[0]};
    if (!is_static(x))
        return false;
    for (int i = deep; i < x->type.rank; i++)
        shape[rank++] = dim(x, i);
    Attrs attrs = {0};
    if (x->type.dtype != DT_BOOL)
        choose_text(m, &attrs, "reduction", reductions);
    Tensor *at = indices(m, 2, dims, smallest(x, 0, deep));
    return at && apply(m, "ScatterND", attrs, x, at,
                       weights(m, x->type.dtype, rank, shape, 1, 1));
}

/* What does not fit behind the position is cut off; only a ring goes on. */
static bool make_tensor_scatter(Maker *m)
{
    Tensor *x = pick(m, ANY, 2, 4);
    int64_t dims[MAX_RANK], batch = dim(x, 0);
    if (!shape_along(x, 1, 1 + choose(m->c, 3), dims) || dim(x, 1) < 4)
        return false;
    Attrs attrs = attr_int(m, "axis", 1);
    bool circular = flip(m);
    if (circular)
        set_text(m, &attrs, "mode", "circular");
    int64_t limit = circular ? dim(x, 1) : dim(x, 1) - dims[1] + 1;
    Tensor *at = indices(m, 1, &batch, limit);
    at = at ? apply1(m, "Abs", cast(m, at, DT_I64)) : NULL;
    return at &&
           apply(m, "TensorScatter", attrs, x,
                 weights(m, x->type.dtype, x->type.rank, dims, 0, 1), at);
}

/* Both results: integers, of which many are equal, show the order of ties. */
static bool make_topk(Maker *m)
{
    Tensor *x = pick(m, NUMBERS, 1, 4);
    int axis = choose(m->c, x->type.rank);
    if (is_open(x, axis))
        return false;
    int64_t n = dim(x, axis), k = choose(m->c, (int)n + 1);
    Attrs attrs = attr_int(m, "axis", axis);
    set_int(m, &attrs, "largest", choose(m->c, 2));
    Tensor *in[] = {x, one_int(m, k ? k : n)};
    return apply_list(m, "TopK", attrs, in, 2, 2) != NULL;
}

static bool make_arg(Maker *m)
{
    Tensor *x = pick(m, NUMBERS, 1, 4);
    Attrs attrs = attr_int(m, "axis", choose(m->c, x->type.rank));
    set_int(m, &attrs, "keepdims", choose(m->c, 2));
    set_int(m, &attrs, "select_last_index", choose(m->c, 2));
    return apply(m, flip(m) ? "ArgMax" : "ArgMin", attrs, x, NULL, NULL) !=
           NULL;
}

static bool make_cumsum(Maker *m)
{
    Tensor *x = pick(m, FLOATS | INDICES, 1, 4);
    Attrs attrs = attr_int(m, "reverse", choose(m->c, 2));
    set_int(m, &attrs, "exclusive", choose(m->c, 2));
    return apply(m, "CumSum", attrs, x,
                 scalar(m, DT_I64, choose(m->c, x->type.rank)), NULL) != NULL;
}

/* Indices outside the depth are allowed and give no 1. */
static bool make_onehot(Maker *m)
{
    Tensor *x = pick(m, INDICES, 0, 3);
    int64_t depth = 1 + choose(m->c, 6);
    DType dtype = flip(m) ? DT_F32 : DT_I32;
    return apply(m, "OneHot", attr_int(m, "axis", flip(m) ? -1 : 0), x,
                 scalar(m, DT_I64, (double)depth),
                 vector(m, dtype, 2, 0, 1)) != NULL;
}

/* The condition must be known: the extent follows from it. */
static bool make_compress(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, 4);
    int axis = choose(m->c, x->type.rank);
    if (is_open(x, axis))
        return false;
    return apply(m, "Compress", attr_int(m, "axis", axis), x,
                 vector(m, DT_BOOL, dim(x, axis), 0, 1), NULL) != NULL;
}

static bool make_hardmax(Maker *m)
{
    Tensor *x = pick_float(m, 1, 4);
    return apply(m, "Hardmax", attr_int(m, "axis", choose(m->c, x->type.rank)),
                 x, NULL, NULL) != NULL;
}

/* As many results as the data say. */
static bool make_counted(Maker *m)
{
    Tensor *x = pick(m, INTS | BOOLS, 1, 2);
    if (flip(m))
        return apply1(m, "NonZero", x) != NULL;
    Attrs attrs = attr_int(m, "sorted", choose(m->c, 2));
    Node *node = apply_list(m, "Unique", attrs, &x, 1, 4);
    return node != NULL;
}

static bool make_range(Maker *m)
{
    DType dtype = flip(m) ? DT_I64 : DT_F32;
    return apply(m, "Range", (Attrs){0}, scalar(m, dtype, 1),
                 scalar(m, dtype, 1 + choose(m->c, 9)),
                 scalar(m, dtype, 1 + choose(m->c, 3))) != NULL;
}

const MakerRow makers_index[] = {
    {"gather", make_gather},
    {"gather elements", make_gather_elements},
    {"gather nd", make_gather_nd},
    {"scatter", make_scatter},
    {"scatter nd", make_scatter_nd},
    {"tensor scatter", make_tensor_scatter},
    {"topk", make_topk},
    {"arg", make_arg},
    {"cumsum", make_cumsum},
    {"onehot", make_onehot},
    {"compress", make_compress},
    {"hardmax", make_hardmax},
    {"counted", make_counted},
    {"range", make_range},
    {NULL, NULL},
};
