/* Makers: moving elements. Webs of views, which need no copy, above all. */
#include <stddef.h>

#include "suites/fuzz/maker.h"

static bool make_transpose(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, MAX_RANK);
    int64_t perm[MAX_RANK];
    int rank = x->type.rank;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int k = choose(m->c, i + 1);
        int64_t swap = perm[i];
        perm[i] = perm[k];
        perm[k] = swap;
    }
    return transpose(m, x, perm) != NULL;
}

/* Two neighbours become one axis. */
static bool make_join_axes(Maker *m)
{
    Tensor *x = pick(m, ANY, 2, MAX_RANK);
    int64_t shape[MAX_RANK];
    int rank = x->type.rank, joined = choose(m->c, rank - 1), at = 0;
    for (int i = 0; i < rank; i++)
        if (i != joined)
            shape[at++] = i == joined + 1 ? -1 : is_open(x, i) ? 0 : dim(x, i);
    /* A 0 takes the extent of the same place. */
    for (int i = joined + 1; i < rank; i++)
        if (is_open(x, i) && i > joined + 1)
            return false;
    return apply(m, "Reshape", (Attrs){0}, x, ints(m, shape, at), NULL) !=
           NULL;
}

/* One axis becomes two. */
static bool make_split_axis(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, MAX_RANK - 1);
    int64_t shape[MAX_RANK];
    int rank = x->type.rank, axis = choose(m->c, rank);
    if (!is_static(x))
        return false;
    int64_t n = dim(x, axis), factor = 1;
    for (int64_t f = 2; f <= n && factor == 1; f++)
        if (n % f == 0 && (n / f > 1 || rarely(m, 3)))
            factor = f;
    for (int i = 0; i < rank; i++)
        shape[i < axis ? i : i + 1] = dim(x, i);
    bool front = flip(m);
    shape[axis] = front ? factor : n / (factor ? factor : 1);
    shape[axis + 1] = front ? n / (factor ? factor : 1) : factor;
    Attrs attrs = attr_int(m, "allowzero", 1);
    return apply(m, "Reshape", attrs, x, ints(m, shape, rank + 1), NULL) !=
           NULL;
}

static bool make_flatten(Maker *m)
{
    Tensor *x = pick(m, ANY, 0, MAX_RANK);
    int64_t all = -1;
    if (flip(m))
        return apply(m, "Reshape", (Attrs){0}, x, ints(m, &all, 1), NULL) !=
               NULL;
    return apply(m, "Flatten",
                 attr_int(m, "axis", choose(m->c, x->type.rank + 1)), x, NULL,
                 NULL) != NULL;
}

/* Axes from either end. */
static bool make_unsqueeze(Maker *m)
{
    Tensor *x = pick(m, ANY, 0, 5);
    int64_t axis = choose(m->c, x->type.rank + 1);
    if (rarely(m, 3))
        axis -= x->type.rank + 1;
    return apply(m, "Unsqueeze", (Attrs){0}, x, one_int(m, axis), NULL) !=
           NULL;
}

static bool make_squeeze(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, MAX_RANK);
    for (int i = 0; i < x->type.rank; i++)
        if (!is_open(x, i) && dim(x, i) == 1)
            return apply(m, "Squeeze", (Attrs){0}, x, one_int(m, i), NULL) !=
                   NULL;
    return false;
}

/* Steps of either sign; bounds that count from the end or lie outside. */
static bool make_slice(Maker *m)
{
    static const int64_t steps[] = {1, 1, 2, -1, 3, -2};
    Tensor *x = pick(m, ANY, 1, MAX_RANK);
    int rank = x->type.rank, first = choose(m->c, rank), count = 0;
    int64_t start[MAX_RANK], end[MAX_RANK], axes[MAX_RANK], step[MAX_RANK];
    for (int i = first; i < rank && count < 1 + flip(m); i++, count++) {
        int64_t n = dim(x, i), s = steps[choose(m->c, 6)];
        int64_t low = choose(m->c, (int)(n < 8 ? n + 1 : 8));
        int64_t high = n - choose(m->c, (int)(n - low < 4 ? n - low + 1 : 4));
        bool outside = rarely(m, 4);
        axes[count] = rarely(m, 4) ? i - rank : i;
        step[count] = s;
        start[count] = s > 0 ? low : outside ? INT64_MAX : high - 1;
        end[count] = s > 0 ? (outside ? INT64_MAX : high)
                           : (low ? low - 1 : INT64_MIN + 1);
        if (!outside && s > 0 && high < n && high > 0)
            end[count] = high - n;
    }
    Tensor *in[] = {x, ints(m, start, count), ints(m, end, count),
                    ints(m, axes, count), ints(m, step, count)};
    return apply_list(m, "Slice", (Attrs){0}, in, 5, 1) != NULL;
}

static Tensor *part(Maker *m, Tensor *x, int axis, int64_t from, int64_t to)
{
    Tensor *in[] = {x, one_int(m, from), one_int(m, to), one_int(m, axis)};
    Node *node = apply_list(m, "Slice", (Attrs){0}, in, 4, 1);
    return node ? node->outputs.data[0] : NULL;
}

static Tensor *joined(Maker *m, int axis, Tensor *const *list, int count)
{
    for (int i = 0; i < count; i++)
        if (!list[i])
            return NULL;
    Node *node =
        apply_list(m, "Concat", attr_int(m, "axis", axis), list, count, 1);
    return node ? node->outputs.data[0] : NULL;
}

static bool make_concat(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, MAX_RANK);
    int axis = choose(m->c, x->type.rank), count = 2 + choose(m->c, 2);
    Tensor *list[4] = {x};
    for (int i = 1; i < count; i++) {
        list[i] = pick_like(m, x);
        if (rarely(m, 3) && is_static(x)) { /* a constant, or nothing */
            int64_t dims[MAX_RANK];
            for (int d = 0; d < x->type.rank; d++)
                dims[d] = d == axis ? choose(m->c, 4) : dim(x, d);
            list[i] = weights(m, x->type.dtype, x->type.rank, dims, 0, 1);
        }
    }
    if (flip(m)) {
        Tensor *swap = list[0];
        list[0] = list[count - 1];
        list[count - 1] = swap;
    }
    return joined(m, axis, list, count) != NULL;
}

/* Parts of no element are allowed, and the last one may be smaller. */
static bool make_split(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, MAX_RANK);
    int axis = choose(m->c, x->type.rank), count = 2 + choose(m->c, 2);
    Attrs attrs = attr_int(m, "axis", axis);
    int64_t n = dim(x, axis), sizes[3], rest = n;
    if (is_open(x, axis))
        return false;
    for (int i = 0; i < count; i++) {
        sizes[i] = i == count - 1
                       ? rest
                       : choose(m->c, (int)(rest < 5 ? rest + 1 : 5));
        rest -= sizes[i];
    }
    Tensor *in[] = {x, rarely(m, 3) ? NULL : ints(m, sizes, count)};
    if (!in[1])
        set_int(m, &attrs, "num_outputs", count);
    return apply_list(m, "Split", attrs, in, 2, count) != NULL;
}

/* Parts of one tensor, some of them changed, put together again in another
 * order: what should lie in place does not always. */
static bool make_web(Maker *m)
{
    Tensor *x = pick_float(m, 1, 5);
    int axis = choose(m->c, x->type.rank);
    if (is_open(x, axis) || dim(x, axis) < 2)
        return false;
    int64_t n = dim(x, axis), cut = 1 + choose(m->c, (int)(n - 1));
    Tensor *list[4] = {part(m, x, axis, 0, cut), part(m, x, axis, cut, n)};
    int count = 2, how = choose(m->c, 8);
    for (int i = 0; i < 2; i++)
        if (how >> i & 1)
            list[i] = list[i] ? apply1(m, i ? "Neg" : "Relu", list[i]) : NULL;
    if (how >> 2) {
        Tensor *swap = list[0];
        list[0] = list[1];
        list[1] = swap;
    }
    if (rarely(m, 3))
        list[count++] = list[choose(m->c, 2)];
    if (rarely(m, 3))
        list[count++] = apply1(m, "Abs", x);
    return joined(m, axis, list, count) != NULL;
}

/* Negative pads cut off. */
static bool make_pad(Maker *m)
{
    static const char *const modes[] = {"reflect", "edge", "wrap", NULL};
    Tensor *x = pick(m, ANY, 1, 5);
    int rank = x->type.rank;
    int64_t pads[2 * MAX_RANK] = {0};
    Attrs attrs = {0};
    choose_text(m, &attrs, "mode", modes);
    bool constant = !attrs.list.count;
    for (int i = 0; i < rank; i++)
        for (int side = 0; side < 2; side++) {
            int v = choose(m->c, 5) - 1;
            if (is_open(x, i) && v < 0)
                v = 0;
            pads[i + side * rank] = v;
        }
    Tensor *in[] = {x, ints(m, pads, 2 * rank),
                    constant && flip(m) ? scalar(m, x->type.dtype, 1) : NULL};
    return apply_list(m, "Pad", attrs, in, 3, 1) != NULL;
}

/* To a larger rank, too; a 1 in the shape keeps the extent. */
static bool make_expand(Maker *m)
{
    Tensor *x = pick(m, ANY, 0, 5);
    int rank = x->type.rank, more = choose(m->c, 2);
    int64_t shape[MAX_RANK];
    if (!is_static(x))
        return false;
    for (int i = 0; i < rank + more; i++)
        shape[i] = i < more                ? 1 + choose(m->c, 3)
                   : dim(x, i - more) == 1 ? 1 + choose(m->c, 5)
                   : flip(m)               ? 1
                                           : dim(x, i - more);
    return apply(m, "Expand", (Attrs){0}, x, ints(m, shape, rank + more),
                 NULL) != NULL;
}

/* A 0 makes it empty. */
static bool make_tile(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, 4);
    int64_t times[MAX_RANK];
    for (int i = 0; i < x->type.rank; i++)
        times[i] = rarely(m, 3) ? choose(m->c, 4) : 1;
    return apply(m, "Tile", (Attrs){0}, x, ints(m, times, x->type.rank),
                 NULL) != NULL;
}

static bool make_depth(Maker *m)
{
    Tensor *x = pick_float(m, 4, 4);
    Attrs attrs = attr_int(m, "blocksize", 2);
    if (dim(x, 1) % 4 == 0) {
        if (flip(m))
            set_text(m, &attrs, "mode", "CRD");
        return apply(m, "DepthToSpace", attrs, x, NULL, NULL) != NULL;
    }
    return apply(m, "SpaceToDepth", attrs, x, NULL, NULL) != NULL;
}

static bool make_reverse(Maker *m)
{
    Tensor *x = pick(m, ANY, 2, 4);
    Attrs attrs = attr_int(m, "time_axis", 1);
    int64_t batch = dim(x, 0), most = dim(x, 1);
    set_int(m, &attrs, "batch_axis", 0);
    if (is_open(x, 0) || is_open(x, 1) || !most)
        return false;
    int64_t lengths[64];
    for (int64_t i = 0; i < batch && i < 64; i++)
        lengths[i] = 1 + choose(m->c, (int)most);
    return batch <= 64 && apply(m, "ReverseSequence", attrs, x,
                                ints(m, lengths, (int)batch), NULL);
}

/* Cuts or pads, whichever the extent asks for. */
static bool make_crop(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, 4);
    int64_t axis = choose(m->c, x->type.rank);
    Attrs attrs = {0};
    set_ints(m, &attrs, "axes", &axis, 1);
    return apply(m, "CenterCropPad", attrs, x, one_int(m, extent(m)), NULL) !=
           NULL;
}

static bool make_trilu(Maker *m)
{
    Tensor *x = pick(m, ANY, 2, 5);
    Tensor *k = rarely(m, 3) ? NULL : scalar(m, DT_I64, choose(m->c, 5) - 2);
    return apply(m, "Trilu", attr_int(m, "upper", choose(m->c, 2)), x, k,
                 NULL) != NULL;
}

/* A shape as a value: of constants all of it folds, of run-time extents it
 * does not. */
static bool make_shape(Maker *m)
{
    Tensor *x = pick(m, ANY, 1, 4);
    Tensor *shape = apply1(m, "Shape", x);
    if (!shape)
        return false;
    switch (choose(m->c, 3)) {
    case 0:
        return apply(m, "ConstantOfShape", (Attrs){0}, shape, NULL, NULL) !=
               NULL;
    case 1:
        return apply(m, "Expand", (Attrs){0}, scalar(m, x->type.dtype, 2),
                     shape, NULL) != NULL;
    default:
        return apply(m, "Reshape", (Attrs){0}, pick_like(m, x), shape, NULL) !=
               NULL;
    }
}

const MakerRow makers_move[] = {
    {"transpose", make_transpose},
    {"join axes", make_join_axes},
    {"split axis", make_split_axis},
    {"flatten", make_flatten},
    {"slice", make_slice},
    {"concat", make_concat},
    {"split", make_split},
    {"web", make_web},
    {"pad", make_pad},
    {"expand", make_expand},
    {"tile", make_tile},
    {"unsqueeze", make_unsqueeze},
    {"squeeze", make_squeeze},
    {"depth", make_depth},
    {"reverse", make_reverse},
    {"crop", make_crop},
    {"trilu", make_trilu},
    {"shape", make_shape},
    {NULL, NULL},
};
