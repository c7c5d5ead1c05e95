/* Shapes that real models hardly have and schedules get wrong first: fewer
 * channels than a vector, remainders in every direction, odd strides,
 * dilations and groups. One row a case. */
#include <math.h>

#include "base/attrs.h"
#include "suites/kernels/kernels.h"
#include "suites/random.h"

/* ---- building --------------------------------------------------------- */

static Tensor *input(Graph *g, const char *name, int rank, const int64_t *dims)
{
    TensorType type = {.dtype = DT_F32, .rank = rank};
    for (int i = 0; i < rank; i++)
        type.dims[i] = extent_const(dims[i]);
    return graph_add_input(g, name, type);
}

/* Normal values times `scale`, around `mean`. */
static Tensor *weights(Graph *g, const char *name, int rank,
                       const int64_t *dims, double mean, double scale)
{
    Array *array = array_new(g->arena, DT_F32, rank, dims);
    uint64_t key = hash_text(name);
    for (int64_t i = 0; i < array_count(array); i++)
        array_set(array, i, mean + scale * random_normal(key, (uint64_t)i));
    return graph_add_constant(g, name, array);
}

static bool finish(Graph *g, Tensor *y)
{
    if (!y)
        return false;
    graph_mark_output(g, y);
    return true;
}

/* ---- windows ---------------------------------------------------------- */

typedef struct Window {
    const char *name, *op; /* Conv, MaxPool, AveragePool */
    int batch, in, out, height, width;
    int kernel[2], stride[2], pads[4], dilation, groups;
} Window;

static bool build_window(Graph *g, const KernelCase *c)
{
    const Window *w = c->row;
    int64_t dims[] = {w->batch, w->in, w->height, w->width};
    Tensor *x = input(g, "x", 4, dims);
    Attrs attrs = {0};
    int64_t kernel[] = {w->kernel[0], w->kernel[1]};
    int64_t stride[] = {w->stride[0], w->stride[1]};
    int64_t dilation[] = {w->dilation, w->dilation};
    int64_t pads[] = {w->pads[0], w->pads[1], w->pads[2], w->pads[3]};
    attrs_set_ints(g->arena, &attrs, "kernel_shape", kernel, 2);
    attrs_set_ints(g->arena, &attrs, "strides", stride, 2);
    attrs_set_ints(g->arena, &attrs, "pads", pads, 4);
    if (!w->out)
        return finish(g, graph_apply(g, w->op, "pool", attrs, x, NULL));
    attrs_set_ints(g->arena, &attrs, "dilations", dilation, 2);
    attrs_set_int(g->arena, &attrs, "group", w->groups);
    int64_t shape[] = {w->out, w->in / w->groups, kernel[0], kernel[1]};
    double fan_in = (double)(shape[1] * shape[2] * shape[3]);
    Tensor *y = graph_apply(g, w->op, "conv", attrs, x,
                            weights(g, "w", 4, shape, 0, 1 / sqrt(fan_in)),
                            weights(g, "b", 1, shape, 0, 0.1), NULL);
    if (!y)
        return false;
    return finish(g, graph_apply(g, "Relu", "relu", (Attrs){0}, y, NULL));
}

static const Window windows[] = {
    {"conv_c1_o1",
     "Conv",
     1,
     1,
     1,
     31,
     33,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_c3_o7",
     "Conv",
     1,
     3,
     7,
     29,
     29,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_c7_o17",
     "Conv",
     1,
     7,
     17,
     28,
     30,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_c17_o3",
     "Conv",
     1,
     17,
     3,
     27,
     27,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_c17_o33_s2",
     "Conv",
     1,
     17,
     33,
     29,
     31,
     {3, 3},
     {2, 2},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_c64_o65_1x1",
     "Conv",
     1,
     64,
     65,
     13,
     13,
     {1, 1},
     {1, 1},
     {0, 0, 0, 0},
     1,
     1},
    {"conv_c1_o64_1x1",
     "Conv",
     1,
     1,
     64,
     19,
     23,
     {1, 1},
     {1, 1},
     {0, 0, 0, 0},
     1,
     1},
    {"conv_c100_o100_1x1_s2",
     "Conv",
     1,
     100,
     100,
     15,
     15,
     {1, 1},
     {2, 2},
     {0, 0, 0, 0},
     1,
     1},
    {"conv_5x3",
     "Conv",
     1,
     24,
     40,
     21,
     23,
     {5, 3},
     {1, 1},
     {2, 1, 2, 1},
     1,
     1},
    {"conv_1x7_7x1",
     "Conv",
     1,
     24,
     24,
     17,
     17,
     {1, 7},
     {1, 1},
     {0, 3, 0, 3},
     1,
     1},
    {"conv_no_padding",
     "Conv",
     1,
     16,
     16,
     13,
     13,
     {3, 3},
     {1, 1},
     {0, 0, 0, 0},
     1,
     1},
    {"conv_one_sided",
     "Conv",
     1,
     16,
     24,
     14,
     14,
     {3, 3},
     {2, 2},
     {0, 0, 1, 1},
     1,
     1},
    {"conv_dilated",
     "Conv",
     1,
     12,
     20,
     25,
     25,
     {3, 3},
     {1, 1},
     {2, 2, 2, 2},
     2,
     1},
    {"conv_stride_3x1",
     "Conv",
     1,
     12,
     20,
     26,
     25,
     {3, 3},
     {3, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_1_pixel",
     "Conv",
     1,
     512,
     511,
     1,
     1,
     {1, 1},
     {1, 1},
     {0, 0, 0, 0},
     1,
     1},
    {"conv_3x3_on_2x2",
     "Conv",
     1,
     96,
     96,
     2,
     2,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_c64_o72",
     "Conv",
     1,
     64,
     72,
     29,
     30,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_c32_o16_long_row",
     "Conv",
     1,
     32,
     16,
     3,
     500,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_c40_o100_batch_2",
     "Conv",
     2,
     40,
     100,
     15,
     13,
     {3, 3},
     {1, 1},
     {0, 2, 1, 0},
     1,
     1},
    {"conv_batch_3",
     "Conv",
     3,
     17,
     31,
     11,
     13,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"conv_groups_2",
     "Conv",
     1,
     34,
     38,
     15,
     15,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     2},
    {"conv_groups_7",
     "Conv",
     1,
     21,
     35,
     15,
     15,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     7},
    {"depthwise_c1",
     "Conv",
     1,
     1,
     1,
     35,
     35,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     1},
    {"depthwise_c7",
     "Conv",
     1,
     7,
     7,
     35,
     35,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     7},
    {"depthwise_c17",
     "Conv",
     1,
     17,
     17,
     29,
     29,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     17},
    {"depthwise_c33_s2",
     "Conv",
     1,
     33,
     33,
     29,
     31,
     {3, 3},
     {2, 2},
     {1, 1, 1, 1},
     1,
     33},
    {"depthwise_c24_5x5",
     "Conv",
     1,
     24,
     24,
     19,
     19,
     {5, 5},
     {1, 1},
     {2, 2, 2, 2},
     1,
     24},
    {"depthwise_times_2",
     "Conv",
     1,
     24,
     48,
     19,
     19,
     {3, 3},
     {1, 1},
     {1, 1, 1, 1},
     1,
     24},
    {"maxpool_c3",
     "MaxPool",
     1,
     3,
     0,
     33,
     35,
     {3, 3},
     {2, 2},
     {1, 1, 1, 1},
     1,
     1},
    {"maxpool_c17_2x2",
     "MaxPool",
     1,
     17,
     0,
     21,
     23,
     {2, 2},
     {2, 2},
     {0, 0, 0, 0},
     1,
     1},
    {"maxpool_5x5_s1",
     "MaxPool",
     1,
     65,
     0,
     20,
     20,
     {5, 5},
     {1, 1},
     {2, 2, 2, 2},
     1,
     1},
    {"avgpool_c7",
     "AveragePool",
     1,
     7,
     0,
     22,
     22,
     {3, 3},
     {2, 2},
     {1, 1, 1, 1},
     1,
     1},
};

/* ---- matrix products -------------------------------------------------- */

typedef struct Product {
    const char *name;
    int batch, m, n, k;
    bool constant; /* the right side is weights */
} Product;

static bool build_product(Graph *g, const KernelCase *c)
{
    const Product *p = c->row;
    int64_t left[] = {p->batch, p->m, p->k};
    int64_t right[] = {p->batch, p->k, p->n};
    Tensor *x = input(g, "x", 3, left);
    Tensor *w = p->constant
                    ? weights(g, "w", 2, right + 1, 0, 1 / sqrt((double)p->k))
                    : input(g, "w", 3, right);
    Tensor *y = graph_apply(g, "MatMul", "product", (Attrs){0}, x, w, NULL);
    if (!y || !p->constant)
        return finish(g, y);
    Tensor *bias = weights(g, "b", 1, right + 2, 0, 0.1);
    y = graph_apply(g, "Add", "bias", (Attrs){0}, y, bias, NULL);
    return finish(g, y);
}

static const Product products[] = {
    {"matmul_1x1x1", 1, 1, 1, 1, true},
    {"matmul_1x1000x512", 1, 1, 1000, 512, true},
    {"matmul_3x7x17", 1, 3, 7, 17, true},
    {"matmul_17x17x17", 1, 17, 17, 17, true},
    {"matmul_49x65x33", 1, 49, 65, 33, true},
    {"matmul_127x129x131", 1, 127, 129, 131, true},
    {"matmul_197x192x192", 1, 197, 192, 192, true},
    {"matmul_5x3x2048", 1, 5, 3, 2048, true},
    {"matmul_128x1x64", 1, 128, 1, 64, true},
    {"matmul_both_7x17x3", 3, 7, 17, 3, false},
    {"matmul_both_33x31x65", 5, 33, 31, 65, false},
};

/* ---- rows: softmax, layer normalization, reductions ------------------- */

typedef struct Rows {
    const char *name, *op; /* an operator over the last axis */
    int rows, width;
} Rows;

static bool build_rows(Graph *g, const KernelCase *c)
{
    const Rows *r = c->row;
    int64_t dims[] = {r->rows, r->width};
    Tensor *x = input(g, "x", 2, dims);
    Attrs attrs = {0};
    if (r->op[0] == 'R') {
        int64_t one = 1;
        Array *axes = array_new(g->arena, DT_I64, 1, &one);
        array_set_int(axes, 0, 1);
        Tensor *axis = graph_add_constant(g, "axes", axes);
        return finish(g, graph_apply(g, r->op, "rows", attrs, x, axis, NULL));
    }
    attrs_set_int(g->arena, &attrs, "axis", 1);
    if (r->op[0] == 'S')
        return finish(g, graph_apply(g, r->op, "rows", attrs, x, NULL));
    Tensor *scale = weights(g, "scale", 1, dims + 1, 1, 0.1);
    Tensor *shift = weights(g, "shift", 1, dims + 1, 0, 0.1);
    return finish(g,
                  graph_apply(g, r->op, "rows", attrs, x, scale, shift, NULL));
}

static const Rows row_cases[] = {
    {"softmax_3x1", "Softmax", 3, 1},
    {"softmax_7x17", "Softmax", 7, 17},
    {"softmax_1x1001", "Softmax", 1, 1001},
    {"softmax_197x197", "Softmax", 197, 197},
    {"layernorm_1x7", "LayerNormalization", 1, 7},
    {"layernorm_17x17", "LayerNormalization", 17, 17},
    {"layernorm_49x193", "LayerNormalization", 49, 193},
    {"layernorm_3x1023", "LayerNormalization", 3, 1023},
    {"reducemean_7x1", "ReduceMean", 7, 1},
    {"reducemean_17x333", "ReduceMean", 17, 333},
    {"reducemax_3x1001", "ReduceMax", 3, 1001},
};

/* ---- elementwise and moving ------------------------------------------- */

typedef struct Points {
    const char *name, *op;
    int rank;
    int64_t dims[4];
} Points;

static bool build_points(Graph *g, const KernelCase *c)
{
    const Points *p = c->row;
    Tensor *x = input(g, "x", p->rank, p->dims);
    return finish(g, graph_apply(g, p->op, "point", (Attrs){0}, x, NULL));
}

static const Points points[] = {
    {"relu_1", "Relu", 1, {1}},
    {"relu_10007", "Relu", 1, {10007}},
    {"sigmoid_17x31", "Sigmoid", 2, {17, 31}},
    {"tanh_1001", "Tanh", 1, {1001}},
    {"exp_333x3", "Exp", 2, {333, 3}},
    {"erf_7x129", "Erf", 2, {7, 129}},
    {"sqrt_65", "Sqrt", 1, {65}},
    {"transpose_17x31", "Transpose", 2, {17, 31}},
    {"transpose_3x5x7", "Transpose", 3, {3, 5, 7}},
};

/* ---- the list --------------------------------------------------------- */

#define COUNT(rows) ((int)(sizeof(rows) / sizeof(rows)[0]))
enum {
    CASES = COUNT(windows) + COUNT(products) + COUNT(row_cases) + COUNT(points)
};

/* The families' rows have their name as their first field. */
#define ADD(rows, function)                                                   \
    for (int i = 0; i < COUNT(rows); i++)                                     \
        cases[n++] = (KernelCase)                                             \
        {                                                                     \
            rows[i].name, "awkward", function, &rows[i]                       \
        }

int kernels_awkward(Arena *arena, const KernelCase **list)
{
    KernelCase *cases = ARENA_ARRAY(arena, KernelCase, CASES);
    int n = 0;
    ADD(windows, build_window);
    ADD(products, build_product);
    ADD(row_cases, build_rows);
    ADD(points, build_points);
    *list = cases;
    return n;
}
