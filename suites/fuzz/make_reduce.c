/* Makers: reductions and normalizations. */
#include <stddef.h>

#include "suites/fuzz/maker.h"

/* Over some axes, over all where the list is empty or left out, or over none
 * where the attribute says so. */
static bool make_reduce(Maker *m)
{
    static const struct {
        const char *op;
        unsigned types;
        bool positive;
    } rows[] = {{"ReduceMean", FLOATS, false},
                {"ReduceSum", FLOATS | INDICES, false},
                {"ReduceMax", NUMBERS | BOOLS, false},
                {"ReduceMin", NUMBERS | BOOLS, false},
                {"ReduceL1", FLOATS | INDICES, false},
                {"ReduceL2", FLOATS, false},
                {"ReduceSumSquare", FLOATS | INDICES, false},
                {"ReduceLogSumExp", FLOATS, false},
                {"ReduceLogSum", FLOATS, true},
                {"ReduceProd", FLOATS, false}};
    int k = choose(m->c, 10);
    Tensor *x = flip(m) && rows[k].types & 1 << DT_F32
                    ? pick_float(m, 0, 6)
                    : pick(m, rows[k].types, 0, 6);
    int rank = x->type.rank, count = 0;
    int64_t axes[MAX_RANK];
    Attrs attrs = attr_int(m, "keepdims", choose(m->c, 2));
    if (rows[k].positive)
        x = positive(m, x);
    if (rows[k].op[6] == 'P') /* no towers */
        x = squash(m, x);
    int mask = choose(m->c, 1 << rank);
    for (int i = 0; i < rank; i++)
        if (mask >> i & 1)
            axes[count++] = rarely(m, 4) ? i - rank : i;
    if (!count)
        set_int(m, &attrs, "noop_with_empty_axes", rarely(m, 3));
    Tensor *list = count || flip(m) ? ints(m, axes, count) : NULL;
    return x && apply(m, rows[k].op, attrs, x, list, NULL);
}

static bool make_softmax(Maker *m)
{
    Tensor *x = pick_float(m, 1, 6);
    Attrs attrs = attr_int(m, "axis", choose(m->c, x->type.rank));
    return apply(m, rarely(m, 3) ? "LogSoftmax" : "Softmax", attrs, x, NULL,
                 NULL) != NULL;
}

static bool make_layer_norm(Maker *m)
{
    Tensor *x = pick_float(m, 1, 4);
    int axis = x->type.rank - 1 - rarely(m, 4) * (x->type.rank > 1);
    int rank = x->type.rank - axis;
    int64_t dims[2];
    for (int i = 0; i < rank; i++) {
        if (is_open(x, axis + i))
            return false;
        dims[i] = dim(x, axis + i);
    }
    DType dtype = x->type.dtype;
    Attrs attrs = attr_int(m, "axis", axis);
    set_float(m, &attrs, "epsilon", 0.01);
    Tensor *scale = weights(m, dtype, rank, dims, 1, 0.2);
    if (rarely(m, 3))
        return apply(m, "RMSNormalization", attrs, x, scale, NULL) != NULL;
    Tensor *sum =
        flip(m) ? x : apply(m, "Add", (Attrs){0}, x, pick_like(m, x), NULL);
    Tensor *bias = flip(m) ? weights(m, dtype, rank, dims, 0, 1) : NULL;
    Tensor *in[] = {sum, scale, bias};
    return sum && apply_list(m, "LayerNormalization", attrs, in, 3,
                             rarely(m, 5) ? 3 : 1);
}

/* The same in single nodes. */
static bool make_plain_norm(Maker *m)
{
    Tensor *x = pick_float(m, 2, 4), *axis = one_int(m, -1);
    DType dtype = x->type.dtype;
    Tensor *mean = apply(m, "ReduceMean", (Attrs){0}, x, axis, NULL);
    Tensor *d = mean ? apply(m, "Sub", (Attrs){0}, x, mean, NULL) : NULL;
    Tensor *square = d ? (flip(m) ? apply(m, "Mul", (Attrs){0}, d, d, NULL)
                                  : apply(m, "Pow", (Attrs){0}, d,
                                          scalar(m, dtype, 2), NULL))
                       : NULL;
    Tensor *var = apply(m, "ReduceMean", (Attrs){0}, square, axis, NULL);
    var = var ? apply(m, "Add", (Attrs){0}, var, scalar(m, dtype, 0.01), NULL)
              : NULL;
    var = var ? apply1(m, "Sqrt", var) : NULL;
    return var && apply(m, "Div", (Attrs){0}, d, var, NULL);
}

/* A large epsilon: rows of equal values must not divide by next to nothing. */
static bool make_channel_norm(Maker *m)
{
    Tensor *x = pick_float(m, 3, 4);
    DType dtype = x->type.dtype;
    int64_t channels = dim(x, 1);
    if (is_open(x, 1) || !channels)
        return false;
    Attrs attrs = {0};
    set_float(m, &attrs, "epsilon", 0.01);
    Tensor *scale = vector(m, dtype, channels, 1, 0.2);
    Tensor *bias = vector(m, dtype, channels, 0, 1);
    switch (choose(m->c, 4)) {
    case 0:
        return apply(m, "InstanceNormalization", attrs, x, scale, bias) !=
               NULL;
    case 1:
        set_int(m, &attrs, "num_groups", channels % 2 ? 1 : 2);
        return apply(m, "GroupNormalization", attrs, x, scale, bias) != NULL;
    case 2: {
        Tensor *in[] = {x, scale, bias, vector(m, dtype, channels, 0, 1),
                        vector(m, dtype, channels, 3, 0.1)};
        return apply_list(m, "BatchNormalization", attrs, in, 5, 1) != NULL;
    }
    default:
        return apply(m, "LRN", attr_int(m, "size", 1 + choose(m->c, 3)), x,
                     NULL, NULL) != NULL;
    }
}

static bool make_other_norm(Maker *m)
{
    Tensor *x = pick_float(m, 1, 4);
    int64_t axis = choose(m->c, x->type.rank);
    if (flip(m)) {
        Attrs attrs = attr_int(m, "axis", axis);
        set_int(m, &attrs, "p", 1 + choose(m->c, 2));
        return apply(m, "LpNormalization", attrs, x, NULL, NULL) != NULL;
    }
    Attrs attrs = {0};
    set_ints(m, &attrs, "axes", &axis, 1);
    return apply(m, "MeanVarianceNormalization", attrs, x, NULL, NULL) != NULL;
}

/* Labels count from 0: from the end there are none. */
static bool make_loss(Maker *m)
{
    static const char *const reductions[] = {"none", "sum", NULL};
    Tensor *x = pick_float(m, 2, 3);
    int64_t dims[2] = {dim(x, 0), 0};
    if (!is_static(x))
        return false;
    if (x->type.rank == 3)
        dims[1] = dim(x, 2);
    Attrs attrs = {0};
    choose_text(m, &attrs, "reduction", reductions);
    if (rarely(m, 3))
        set_int(m, &attrs, "ignore_index", 0);
    Tensor *labels = indices(m, x->type.rank - 1, dims, dim(x, 1));
    labels = labels ? apply1(m, "Abs", labels) : NULL;
    Tensor *share =
        flip(m) ? vector(m, x->type.dtype, dim(x, 1), 2, 0.2) : NULL;
    return labels && apply(m,
                           flip(m) ? "SoftmaxCrossEntropyLoss"
                                   : "NegativeLogLikelihoodLoss",
                           attrs, x, labels, share);
}

const MakerRow makers_reduce[] = {
    {"reduce", make_reduce},
    {"softmax", make_softmax},
    {"layer norm", make_layer_norm},
    {"plain norm", make_plain_norm},
    {"channel norm", make_channel_norm},
    {"other norm", make_other_norm},
    {"reduce", make_reduce},
    {"loss", make_loss},
    {NULL, NULL},
};
