#include "suites/fuzz/random_graph.h"

#include <string.h>

#include "suites/random.h"

int choose(Choices *c, int count)
{
    return c->at < c->size ? c->data[c->at++] % count : 0;
}

typedef struct Maker {
    Graph *g;
    Choices *c;
    Vec(Tensor *) pool; /* f32 results so far */
    int names;
} Maker;

static const int64_t extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31};
enum { EXTENTS = sizeof extents / sizeof *extents, MOST_NODES = 12 };

static int64_t extent(Maker *m)
{
    return extents[choose(m->c, EXTENTS)];
}

static Tensor *pick(Maker *m)
{
    return m->pool.data[m->pool.count - 1 -
                        choose(m->c, m->pool.count < 4 ? m->pool.count : 4)];
}

static const char *fresh(Maker *m, const char *stem)
{
    return arena_printf(m->g->arena, "%s%d", stem, m->names++);
}

static Tensor *weights(Maker *m, int rank, const int64_t *dims, double mean)
{
    Array *array = array_new(m->g->arena, DT_F32, rank, dims);
    double scale = 1;
    for (int i = 1; i < rank; i++)
        scale /= dims[i] > 4 ? 2 : 1;
    for (int64_t i = 0; i < array_count(array); i++)
        array_set(array, i,
                  mean +
                      scale * random_normal((uint64_t)m->names, (uint64_t)i));
    return graph_add_constant(m->g, fresh(m, "w"), array);
}

static Tensor *ints(Maker *m, const int64_t *values, int count)
{
    return graph_add_constant(m->g, fresh(m, "i"),
                              array_ints(m->g->arena, values, count));
}

static Tensor *apply1(Maker *m, const char *op, Attrs attrs, Tensor *x)
{
    return graph_apply(m->g, op, fresh(m, "n"), attrs, x, NULL);
}

static int64_t dim(const Tensor *t, int axis)
{
    return t->type.dims[axis].value;
}

/* ---- one kind of node each; NULL: does not fit ------------------------- */

static Tensor *make_unary(Maker *m)
{
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "Exp",
                                      "Abs",  "Neg",     "Erf",  "HardSwish",
                                      "Clip", "Gelu"};
    const char *op = ops[choose(m->c, 10)];
    Tensor *x = pick(m);
    if (!strcmp(op, "Exp")) /* bounded, so that no tower overflows */
        x = apply1(m, "Tanh", (Attrs){0}, x);
    if (strcmp(op, "Clip"))
        return x ? apply1(m, op, (Attrs){0}, x) : NULL;
    Tensor *low = graph_add_constant(m->g, fresh(m, "lo"),
                                     array_scalar(m->g->arena, DT_F32, -0.5));
    Tensor *high = graph_add_constant(m->g, fresh(m, "hi"),
                                      array_scalar(m->g->arena, DT_F32, 2));
    return graph_apply(m->g, op, fresh(m, "n"), (Attrs){0}, x, low, high,
                       NULL);
}

static Tensor *make_binary(Maker *m)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Max", "Min"};
    const char *op = ops[choose(m->c, 5)];
    Tensor *x = pick(m), *y = pick(m);
    if (!type_equal(&x->type, &y->type)) {
        /* A row, a column or a scalar broadcasts. */
        int64_t dims[MAX_RANK];
        int keep = x->type.rank ? choose(m->c, x->type.rank) : 0;
        for (int i = 0; i < x->type.rank; i++)
            dims[i] = i == keep ? dim(x, i) : 1;
        y = weights(m, x->type.rank, dims, 1);
    }
    return graph_apply(m->g, op, fresh(m, "n"), (Attrs){0}, x, y, NULL);
}

static Tensor *make_matmul(Maker *m)
{
    Tensor *x = pick(m);
    if (x->type.rank < 2)
        return NULL;
    int64_t dims[] = {dim(x, x->type.rank - 1), extent(m)};
    return graph_apply(m->g, "MatMul", fresh(m, "n"), (Attrs){0}, x,
                       weights(m, 2, dims, 0), NULL);
}

static Tensor *make_conv(Maker *m)
{
    Tensor *x = pick(m);
    if (x->type.rank != 4)
        return NULL;
    int64_t k[] = {1 + choose(m->c, 4), 1 + choose(m->c, 4)};
    int64_t stride[] = {1 + choose(m->c, 3), 1 + choose(m->c, 3)};
    int64_t pads[4];
    for (int i = 0; i < 4; i++)
        pads[i] = choose(m->c, 3);
    bool depthwise = choose(m->c, 3) == 0;
    int64_t channels = dim(x, 1);
    int64_t out = depthwise ? channels : extent(m);
    for (int i = 0; i < 2; i++)
        if (dim(x, 2 + i) + pads[i] + pads[2 + i] < k[i])
            return NULL;
    Attrs attrs = {0};
    Arena *a = m->g->arena;
    attrs_set_ints(a, &attrs, "kernel_shape", k, 2);
    attrs_set_ints(a, &attrs, "strides", stride, 2);
    attrs_set_ints(a, &attrs, "pads", pads, 4);
    attrs_set_int(a, &attrs, "group", depthwise ? channels : 1);
    int64_t dims[] = {out, depthwise ? 1 : channels, k[0], k[1]};
    return graph_apply(m->g, "Conv", fresh(m, "n"), attrs, x,
                       weights(m, 4, dims, 0), weights(m, 1, dims, 0), NULL);
}

static Tensor *make_pool(Maker *m)
{
    Tensor *x = pick(m);
    int64_t k[] = {1 + choose(m->c, 3), 1 + choose(m->c, 3)};
    int64_t stride[] = {1 + choose(m->c, 2), 1 + choose(m->c, 2)};
    if (x->type.rank != 4 || dim(x, 2) < k[0] || dim(x, 3) < k[1])
        return NULL;
    Attrs attrs = {0};
    attrs_set_ints(m->g->arena, &attrs, "kernel_shape", k, 2);
    attrs_set_ints(m->g->arena, &attrs, "strides", stride, 2);
    return apply1(m, choose(m->c, 2) ? "MaxPool" : "AveragePool", attrs, x);
}

static Tensor *make_softmax(Maker *m)
{
    Tensor *x = pick(m);
    Attrs attrs = {0};
    if (!x->type.rank)
        return NULL;
    attrs_set_int(m->g->arena, &attrs, "axis", choose(m->c, x->type.rank));
    return apply1(m, "Softmax", attrs, x);
}

static Tensor *make_reduce(Maker *m)
{
    static const char *const ops[] = {"ReduceMean", "ReduceMax", "ReduceSum",
                                      "ReduceL2"};
    const char *op = ops[choose(m->c, 4)];
    Tensor *x = pick(m);
    if (!x->type.rank)
        return NULL;
    int64_t axis = choose(m->c, x->type.rank);
    Attrs attrs = {0};
    attrs_set_int(m->g->arena, &attrs, "keepdims", choose(m->c, 2));
    return graph_apply(m->g, op, fresh(m, "n"), attrs, x, ints(m, &axis, 1),
                       NULL);
}

static Tensor *make_norm(Maker *m)
{
    Tensor *x = pick(m);
    if (!x->type.rank)
        return NULL;
    Attrs attrs = {0};
    int64_t width = dim(x, x->type.rank - 1);
    attrs_set_int(m->g->arena, &attrs, "axis", -1);
    return graph_apply(m->g, "LayerNormalization", fresh(m, "n"), attrs, x,
                       weights(m, 1, &width, 1), weights(m, 1, &width, 0),
                       NULL);
}

static Tensor *make_transpose(Maker *m)
{
    Tensor *x = pick(m);
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
    Attrs attrs = {0};
    attrs_set_ints(m->g->arena, &attrs, "perm", perm, rank);
    return rank ? apply1(m, "Transpose", attrs, x) : NULL;
}

static Tensor *make_reshape(Maker *m)
{
    Tensor *x = pick(m);
    int64_t shape[MAX_RANK], rest = -1;
    int rank = x->type.rank;
    if (rank < 2)
        return graph_apply(m->g, "Reshape", fresh(m, "n"), (Attrs){0}, x,
                           ints(m, &rest, 1), NULL);
    int joined = choose(m->c, rank - 1);
    for (int i = 0, at = 0; i < rank; i++)
        if (i != joined)
            shape[at++] = i == joined + 1 ? -1 : dim(x, i);
    return graph_apply(m->g, "Reshape", fresh(m, "n"), (Attrs){0}, x,
                       ints(m, shape, rank - 1), NULL);
}

static Tensor *make_slice(Maker *m)
{
    Tensor *x = pick(m);
    if (!x->type.rank)
        return NULL;
    int64_t axis = choose(m->c, x->type.rank), length = dim(x, (int)axis);
    if (length < 2)
        return NULL;
    int64_t start = choose(m->c, (int)length - 1);
    int64_t end = start + 1 + choose(m->c, (int)(length - start));
    return graph_apply(m->g, "Slice", fresh(m, "n"), (Attrs){0}, x,
                       ints(m, &start, 1), ints(m, &end, 1), ints(m, &axis, 1),
                       NULL);
}

static Tensor *make_concat(Maker *m)
{
    Tensor *x = pick(m), *y = pick(m);
    if (!x->type.rank || x->type.rank != y->type.rank)
        return NULL;
    int axis = choose(m->c, x->type.rank);
    for (int i = 0; i < x->type.rank; i++)
        if (i != axis && dim(x, i) != dim(y, i))
            return NULL;
    Attrs attrs = {0};
    attrs_set_int(m->g->arena, &attrs, "axis", axis);
    return graph_apply(m->g, "Concat", fresh(m, "n"), attrs, x, y, NULL);
}

/* ---- the graph -------------------------------------------------------- */

static Tensor *(*const makers[])(Maker *) = {
    make_unary,     make_binary,  make_matmul, make_conv,
    make_pool,      make_softmax, make_reduce, make_norm,
    make_transpose, make_reshape, make_slice,  make_concat};

static void add_input(Maker *m)
{
    TensorType type = {.dtype = DT_F32, .rank = 1 + choose(m->c, 4)};
    for (int i = 0; i < type.rank; i++)
        type.dims[i] = extent_const(extent(m));
    /* An image as often as everything else. */
    if (choose(m->c, 2)) {
        type.rank = 4;
        for (int i = 1; i < 4; i++)
            type.dims[i] = extent_const(extent(m));
        type.dims[0] = extent_const(1 + choose(m->c, 2));
    }
    vec_push(m->g->arena, &m->pool,
             graph_add_input(m->g, fresh(m, "x"), type));
}

enum { MOST_ELEMENTS = 1 << 15 };

bool random_graph(Graph *g, Choices *c)
{
    Maker m = {.g = g, .c = c};
    int inputs = 1 + choose(c, 3), nodes = 1 + choose(c, MOST_NODES);
    for (int i = 0; i < inputs; i++)
        add_input(&m);
    for (int i = 0; i < nodes; i++) {
        Tensor *y = makers[choose(c, sizeof makers / sizeof *makers)](&m);
        if (g->diag->errors.count)
            return false;
        if (y && type_count(&y->type) > MOST_ELEMENTS)
            return false;
        if (y)
            vec_push(g->arena, &m.pool, y);
    }
    for (int i = 0; i < g->nodes.count; i++) {
        Tensor *y = g->nodes.data[i]->outputs.data[0];
        if (!y->users.count || choose(c, 8) == 0)
            graph_mark_output(g, y);
    }
    return g->outputs.count > 0 && graph_sort(g);
}
