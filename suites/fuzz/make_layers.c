/* Makers: convolutions, pools, products, resizing, and what follows them in
 * models. */
#include <stddef.h>

#include "suites/fuzz/maker.h"

/* ---- windows ---------------------------------------------------------- */

typedef struct Windows {
    int rank; /* spatial axes */
    int64_t kernel[3], stride[3], dilation[3], pads[6];
} Windows;

/* Something with a batch, channels and 1 to 3 more axes. */
static Tensor *image(Maker *m)
{
    Tensor *x = rarely(m, 4) ? pick_float(m, 3, 5) : pick_float(m, 4, 4);
    return x;
}

static Windows choose_windows(Maker *m, const Tensor *x, int largest)
{
    Windows w = {.rank = x->type.rank - 2};
    bool same = flip(m); /* as most windows are: square, one stride */
    for (int i = 0; i < w.rank; i++) {
        bool copy = i && same;
        w.kernel[i] = copy ? w.kernel[0] : 1 + choose(m->c, largest);
        w.stride[i] = copy ? w.stride[0] : 1 + choose(m->c, 3);
        w.dilation[i] = copy ? w.dilation[0] : rarely(m, 4) ? 2 : 1;
    }
    for (int i = 0; i < 2 * w.rank; i++)
        w.pads[i] = i && same ? w.pads[0]
                              : choose(m->c, w.kernel[i % w.rank] < 3 ? 2 : 3);
    return w;
}

static Attrs window_attrs(Maker *m, const Windows *w, bool dilations)
{
    static const char *const same[] = {"SAME_UPPER", "SAME_LOWER", "VALID",
                                       NULL};
    Attrs attrs = {0};
    set_ints(m, &attrs, "kernel_shape", w->kernel, w->rank);
    set_ints(m, &attrs, "strides", w->stride, w->rank);
    if (dilations)
        set_ints(m, &attrs, "dilations", w->dilation, w->rank);
    if (rarely(m, 5))
        choose_text(m, &attrs, "auto_pad", same);
    if (!attrs_find(&attrs, "auto_pad"))
        set_ints(m, &attrs, "pads", w->pads, 2 * w->rank);
    return attrs;
}

/* What often stands behind a convolution, perhaps with a second reader of
 * what it gives, so that nothing can be folded into the weights. */
static Tensor *epilogue(Maker *m, Tensor *y)
{
    static const char *const ends[] = {"Relu", "HardSwish", "Sigmoid",
                                       "LeakyRelu"};
    int how = choose(m->c, 32);
    if (!y)
        return NULL;
    int64_t channels = dim(y, 1);
    DType dtype = y->type.dtype;
    if (how & 1) {
        Tensor *in[] = {y, vector(m, dtype, channels, 1, 0.1),
                        vector(m, dtype, channels, 0, 1),
                        vector(m, dtype, channels, 0, 1),
                        vector(m, dtype, channels, 3, 0.1)};
        Node *node = apply_list(m, "BatchNormalization", (Attrs){0}, in, 5, 1);
        y = node ? node->outputs.data[0] : NULL;
    }
    if (y && how & 2) {
        Tensor *other = pick_like(m, y);
        y = apply(m, "Add", (Attrs){0}, y,
                  other == y ? apply1(m, "Tanh", y) : other, NULL);
    }
    if (y && how & 4)
        y = apply1(m, ends[choose(m->c, 4)], y);
    if (y && (how >> 3) == 3) { /* squeeze and excite */
        Tensor *mean = apply1(m, "GlobalAveragePool", y);
        mean = mean ? apply1(m, "HardSigmoid", mean) : NULL;
        y = mean ? apply(m, "Mul", (Attrs){0}, y, mean, NULL) : NULL;
    }
    return y;
}

static bool make_conv(Maker *m)
{
    Tensor *x = image(m);
    if (is_open(x, 1) || !dim(x, 1))
        return false;
    Windows w = choose_windows(m, x, 4);
    int64_t channels = dim(x, 1), group = 1, out = extent(m);
    int how = choose(m->c, 4);
    if (how == 1) { /* depthwise, perhaps with more results than channels */
        group = channels;
        out = channels * (1 + rarely(m, 3));
    } else if (how == 2 && channels % 2 == 0) {
        group = 2;
        out += out % 2;
    }
    int64_t dims[5] = {out, channels / group};
    for (int i = 0; i < w.rank; i++)
        dims[2 + i] = w.kernel[i];
    Attrs attrs = window_attrs(m, &w, true);
    set_int(m, &attrs, "group", group);
    DType dtype = x->type.dtype;
    Tensor *k = weights(m, dtype, 2 + w.rank, dims, 0, 0.3);
    Tensor *bias = flip(m) ? vector(m, dtype, out, 0, 1) : NULL;
    return epilogue(m, apply(m, "Conv", attrs, x, k, bias)) != NULL;
}

/* Its weights have the channels of the operand first. */
static bool make_conv_transpose(Maker *m)
{
    Tensor *x = image(m);
    if (is_open(x, 1) || !dim(x, 1))
        return false;
    Windows w = choose_windows(m, x, 3);
    int64_t channels = dim(x, 1), group = channels % 2 || flip(m) ? 1 : 2;
    int64_t dims[5] = {channels, 1 + choose(m->c, 5)}, more[3];
    for (int i = 0; i < w.rank; i++) {
        dims[2 + i] = w.kernel[i];
        more[i] = choose(m->c, (int)w.stride[i]);
    }
    Attrs attrs = window_attrs(m, &w, true);
    set_int(m, &attrs, "group", group);
    if (rarely(m, 3))
        set_ints(m, &attrs, "output_padding", more, w.rank);
    DType dtype = x->type.dtype;
    Tensor *k = weights(m, dtype, 2 + w.rank, dims, 0, 0.3);
    Tensor *bias = flip(m) ? vector(m, dtype, dims[1] * group, 0, 1) : NULL;
    return epilogue(m, apply(m, "ConvTranspose", attrs, x, k, bias)) != NULL;
}

/* Windows that lie in the border alone are refused, some of the time. */
static bool make_pool(Maker *m)
{
    static const char *const ops[] = {"MaxPool", "AveragePool", "LpPool"};
    Tensor *x = image(m);
    Windows w = choose_windows(m, x, 3);
    int which = choose(m->c, 3);
    Attrs attrs = window_attrs(m, &w, which != 2);
    set_int(m, &attrs, "ceil_mode", rarely(m, 3));
    if (which == 1)
        set_int(m, &attrs, "count_include_pad", choose(m->c, 2));
    Node *node = apply_list(m, ops[which], attrs, &x, 1,
                            which == 0 && rarely(m, 4) ? 2 : 1);
    return node != NULL;
}

static bool make_global_pool(Maker *m)
{
    static const char *const ops[] = {"GlobalAveragePool", "GlobalMaxPool",
                                      "GlobalLpPool"};
    return apply1(m, ops[choose(m->c, 3)], image(m)) != NULL;
}

/* By scales or by sizes, of which only one may be given. */
static bool make_resize(Maker *m)
{
    static const char *const modes[] = {"linear", "cubic", "nearest", NULL};
    static const char *const places[] = {
        "half_pixel",         "asymmetric",           "align_corners",
        "pytorch_half_pixel", "half_pixel_symmetric", NULL};
    static const char *const rounds[] = {"floor", "ceil", "round_prefer_ceil",
                                         NULL};
    static const double factors[] = {2, 1, 1.5, 0.5, 3};
    Tensor *x = image(m);
    int64_t rank = x->type.rank, sizes[5];
    Attrs attrs = {0};
    choose_text(m, &attrs, "mode", modes);
    choose_text(m, &attrs, "coordinate_transformation_mode", places);
    choose_text(m, &attrs, "nearest_mode", rounds);
    set_int(m, &attrs, "exclude_outside", rarely(m, 4));
    set_int(m, &attrs, "antialias", rarely(m, 6));
    Array *scales = array_new(m->g->arena, DT_F32, 1, &rank);
    for (int i = 0; i < rank; i++) {
        double f = i < 2 ? 1 : factors[choose(m->c, 5)];
        array_set(scales, i, f);
        sizes[i] = (int64_t)((double)dim(x, i) * f);
    }
    bool by_size = is_static(x) && flip(m);
    Tensor *in[] = {x, NULL,
                    by_size ? NULL : graph_add_constant(m->g, NULL, scales),
                    by_size ? ints(m, sizes, (int)rank) : NULL};
    return apply_list(m, "Resize", attrs, in, 4, 1) != NULL;
}

/* ---- products --------------------------------------------------------- */

static bool make_matmul(Maker *m)
{
    Tensor *x = pick_float(m, 1, 5);
    int rank = x->type.rank;
    if (is_open(x, rank - 1))
        return false;
    int64_t dims[] = {dim(x, rank - 1), extent(m)};
    Tensor *y = apply(m, "MatMul", (Attrs){0}, x,
                      weights(m, x->type.dtype, 2, dims, 0, 0.3), NULL);
    if (y && flip(m))
        y = apply(m, "Add", (Attrs){0}, y,
                  vector(m, x->type.dtype, dims[1], 0, 1), NULL);
    if (y && rarely(m, 3))
        y = apply1(m, "Gelu", y);
    return y != NULL;
}

/* Of two results: x times its own transpose, or a batch of columns. */
static bool make_matmul_pair(Maker *m)
{
    Tensor *x = pick_float(m, 2, 4);
    int64_t perm[4];
    int rank = x->type.rank;
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    Tensor *y = transpose(m, pick_like(m, x), perm);
    bool turn = flip(m);
    return apply(m, "MatMul", (Attrs){0}, turn ? y : x, turn ? x : y, NULL) !=
           NULL;
}

/* The third operand is a matrix, a row, a column, a number or left out. */
static bool make_gemm(Maker *m)
{
    Tensor *x = pick_float(m, 2, 2);
    bool turn_a = rarely(m, 3), turn_b = flip(m);
    if (is_open(x, turn_a ? 0 : 1))
        return false;
    int64_t k = dim(x, turn_a ? 0 : 1), n = extent(m);
    int64_t rows = dim(x, turn_a ? 1 : 0);
    int64_t dims[] = {turn_b ? n : k, turn_b ? k : n};
    int64_t bias[] = {is_open(x, turn_a ? 1 : 0) || flip(m) ? 1 : rows,
                      flip(m) ? 1 : n};
    Attrs attrs = attr_int(m, "transA", turn_a);
    set_int(m, &attrs, "transB", turn_b);
    if (flip(m))
        set_float(m, &attrs, "alpha", 0.5);
    if (rarely(m, 3))
        set_float(m, &attrs, "beta", choose(m->c, 2) * 2);
    DType dtype = x->type.dtype;
    int rank = choose(m->c, 3);
    Tensor *c =
        rarely(m, 3) ? NULL : weights(m, dtype, rank, bias + 2 - rank, 0, 1);
    return apply(m, "Gemm", attrs, x, weights(m, dtype, 2, dims, 0, 0.3), c) !=
           NULL;
}

static bool make_einsum(Maker *m)
{
    static const struct {
        const char *equation;
        int rank, operands;
    } rows[] = {{"ij,kj->ik", 2, 2},      {"ij,ij->i", 2, 2},
                {"bij,bkj->bik", 3, 2},   {"bij,bij->j", 3, 2},
                {"ij->ji", 2, 1},         {"bhid,bhjd->bhij", 4, 2},
                {"...i,...i->...", 2, 2}, {"ij,ik->jk", 2, 2},
                {"bchw->bc", 4, 1},       {"i,j->ij", 1, 2}};
    int k = choose(m->c, 10);
    Tensor *x = pick_float(m, rows[k].rank, rows[k].rank);
    Attrs attrs = {0};
    set_text(m, &attrs, "equation", rows[k].equation);
    return apply(m, "Einsum", attrs, x,
                 rows[k].operands > 1 ? pick_like(m, x) : NULL, NULL) != NULL;
}

/* softmax(x y^T * scale + mask) z with all of one shape. */
static bool make_attention(Maker *m)
{
    Tensor *q = pick_float(m, 3, 4), *k = pick_like(m, q);
    Tensor *v = pick_like(m, q);
    DType dtype = q->type.dtype;
    int rank = q->type.rank;
    if (rank == 4 && flip(m)) {
        Attrs attrs = attr_int(m, "is_causal", choose(m->c, 2));
        return apply(m, "Attention", attrs, q, k, v) != NULL;
    }
    int64_t perm[] = {0, 1, 2, 3};
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    Tensor *kt = transpose(m, k, perm);
    Tensor *s = kt ? apply(m, "MatMul", (Attrs){0}, q, kt, NULL) : NULL;
    s = s ? apply(m, "Mul", (Attrs){0}, s, scalar(m, dtype, 0.25), NULL)
          : NULL;
    if (s && flip(m) && is_static(q)) {
        int64_t n = dim(q, rank - 2), dims[] = {n, n};
        Tensor *mask = weights(m, DT_BOOL, 2, dims, 0, 1);
        s = apply(m, "Where", (Attrs){0}, mask, s,
                  scalar(m, dtype, flip(m) ? -1e4 : -1));
    }
    s = s ? apply(m, "Softmax", attr_int(m, "axis", -1), s, NULL, NULL) : NULL;
    return s && apply(m, "MatMul", (Attrs){0}, s, v, NULL);
}

const MakerRow makers_layers[] = {
    {"conv", make_conv},
    {"matmul", make_matmul},
    {"pool", make_pool},
    {"gemm", make_gemm},
    {"conv", make_conv},
    {"conv transpose", make_conv_transpose},
    {"global pool", make_global_pool},
    {"resize", make_resize},
    {"matmul pair", make_matmul_pair},
    {"einsum", make_einsum},
    {"attention", make_attention},
    {NULL, NULL},
};
