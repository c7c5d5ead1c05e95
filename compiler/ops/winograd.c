/* Winograd's minimal filtering: a 3x3 convolution of stride 1 by tiles of
 * m x m results, each of (m + 2)^2 products a channel instead of 9 m^2.
 *
 *     WinogradWeights(w)   [p, q, O, C] from [O, C, 3, 3]: G w G'
 *     WinogradConv(x, u)   A' (u * B' x B) A, tile by tile
 *
 * Both transforms go over the rows of a tile, then over its columns. m = 2
 * takes the points 0, 1, -1 and infinity; m = 4 takes 0, +-sqrt(1/2),
 * +-sqrt(2) and infinity, whose rounding errors are a fifth of those that
 * whole numbers give: below 1e-6 of the sum of |w| |x|, the largest one among
 * the results of a tile. All inputs of a tile meet in its results: so far goes
 * the error of one that is large, and a NaN. Source: Lavin and Gray, Fast
 * Algorithms for Convolutional Neural Networks, CVPR 2016, section 4; points:
 * Barabasz et al., Error Analysis and Improving the Accuracy of Winograd
 * Convolution, ACM TOMS 2020. */
#include <math.h>

#include "ops/product.h"

enum { MAX_TILE = 4, MAX_POINTS = MAX_TILE + 2 };

/* The points +-NEAR and +-FAR of m = 4; their product is 1. */
#define NEAR 0.70710678118654752440
#define FAR 1.41421356237309504880

static int tile_of(const Node *node)
{
    return (int)attrs_int(&node->attrs, "tile", 0);
}

static bool check_tile(InferContext *c)
{
    int m = tile_of(c->node);
    if (m != 2 && m != 4)
        return infer_error(c, "tile is %d, it must be 2 or 4", m);
    return true;
}

/* ---- the three matrices, as sums -------------------------------------- */

static const Expr *scaled(Arena *a, const Expr *x, double factor)
{
    return expr_mul(a, x, const_like(a, x, factor));
}

/* x factor + y */
static const Expr *plus(Arena *a, const Expr *x, double factor, const Expr *y)
{
    return expr_add(a, scaled(a, x, factor), y);
}

/* B' d, of m + 2 elements */
static void transform_input(Arena *a, int m, const Expr *const *d,
                            const Expr **v)
{
    if (m == 2) {
        v[0] = expr_sub(a, d[0], d[2]);
        v[1] = expr_add(a, d[1], d[2]);
        v[2] = expr_sub(a, d[2], d[1]);
        v[3] = expr_sub(a, d[1], d[3]);
        return;
    }
    const double near = NEAR * NEAR, far = FAR * FAR;
    const Expr *even = plus(a, d[2], -far, d[4]);
    const Expr *odd = plus(a, d[1], -far, d[3]);
    v[0] = expr_add(a, plus(a, d[2], -(near + far), d[0]), d[4]);
    v[1] = plus(a, odd, NEAR, even);
    v[2] = plus(a, odd, -NEAR, even);
    even = plus(a, d[2], -near, d[4]);
    odd = plus(a, d[1], -near, d[3]);
    v[3] = plus(a, odd, FAR, even);
    v[4] = plus(a, odd, -FAR, even);
    v[5] = expr_add(a, plus(a, d[3], -(near + far), d[1]), d[5]);
}

/* A' d: m elements of m + 2 */
static void transform_output(Arena *a, int m, const Expr *const *d,
                             const Expr **y)
{
    const Expr *even = expr_add(a, d[1], d[2]), *odd = expr_sub(a, d[1], d[2]);
    if (m == 2) {
        y[0] = expr_add(a, d[0], even);
        y[1] = expr_sub(a, odd, d[3]);
        return;
    }
    const Expr *evens = expr_add(a, d[3], d[4]);
    const Expr *odds = expr_sub(a, d[3], d[4]);
    y[0] = expr_add(a, expr_add(a, d[0], even), evens);
    y[1] = plus(a, odds, FAR, scaled(a, odd, NEAR));
    y[2] = plus(a, evens, FAR * FAR, scaled(a, even, NEAR * NEAR));
    y[3] =
        plus(a, odds, FAR * FAR * FAR, plus(a, odd, NEAR * NEAR * NEAR, d[5]));
}

/* G g: m + 2 elements of 3 */
static void transform_weights(Arena *a, int m, const Expr *const *g,
                              const Expr **u)
{
    const double points[2] = {m == 2 ? 1 : NEAR, FAR};
    /* The product of the distances from a point to all others. */
    const double scale[2] = {m == 2 ? 0.5 : -2.0 / 3, 1.0 / 6};
    int n = 0;
    u[n++] = g[0];
    for (int k = 0; k < m / 2; k++) {
        double point = points[k];
        const Expr *even = plus(a, g[2], point * point, g[0]);
        for (int sign = 1; sign >= -1; sign -= 2)
            u[n++] = scaled(a, plus(a, g[1], sign * point, even), scale[k]);
    }
    u[n] = g[2];
}

/* values[index] */
static const Expr *pick(Arena *a, const Expr *index, const Expr *const *values,
                        int count)
{
    const Expr *x = values[count - 1];
    for (int i = count - 2; i >= 0; i--)
        x = expr_select(a, expr_binary(a, EX_EQ, index, expr_int(a, i)),
                        values[i], x);
    return x;
}

typedef void (*Transform)(Arena *a, int m, const Expr *const *in,
                          const Expr **out);

/* Element `at` of the transform along dimension `dim` of `from`, of which
 * `in` elements make `out`; the other indices are the stage's. */
static const Expr *transformed(StageBuilder *b, int m, Transform transform,
                               const Buffer *from, int dim, int in, int out)
{
    const Expr *index[MAX_RANK], *d[MAX_POINTS], *v[MAX_POINTS];
    for (int i = 0; i < from->rank; i++)
        index[i] = b->index[i];
    for (int i = 0; i < in; i++) {
        index[dim] = expr_int(b->arena, i);
        d[i] = expr_read(b->arena, from, index);
    }
    transform(b->arena, m, d, v);
    return pick(b->arena, b->index[dim], v, out);
}

/* ---- WinogradWeights --------------------------------------------------- */

static bool infer_weights(InferContext *c)
{
    if (!infer_types(c, 0, 1 << DT_F32) || !infer_rank(c, 0, 4, 4) ||
        !check_tile(c))
        return false;
    const TensorType *w = infer_input(c, 0);
    if (extent_known(w->dims[2]) != 3 || extent_known(w->dims[3]) != 3)
        return infer_error(c, "its kernel must be 3x3");
    Extent points = extent_const(tile_of(c->node) + 2);
    Extent dims[] = {points, points, w->dims[0], w->dims[1]};
    return infer_set_checked(c, 0, w->dtype, 4, dims);
}

/* In double, rounded once. */
static void define_weights(DefineContext *c)
{
    const int m = tile_of(c->node), points = m + 2;
    const Buffer *w = c->in[0];
    int64_t dims[] = {points, 3, w->dims[0], w->dims[1]};
    Buffer *rows = define_temp(c, "rows", DT_F64, 4, dims);
    const Expr *g[3], *u[MAX_POINTS];
    StageBuilder b;
    stage_begin(&b, c->def, rows);
    Arena *a = b.arena;
    for (int i = 0; i < 3; i++) {
        const Expr *index[] = {b.index[2], b.index[3], expr_int(a, i),
                               b.index[1]};
        g[i] = expr_cast(a, DT_F64, expr_read(a, w, index));
    }
    transform_weights(a, m, g, u);
    stage_end(&b, pick(a, b.index[0], u, points));
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, expr_cast(a, DT_F32,
                            transformed(&b, m, transform_weights, rows, 1, 3,
                                        points)));
}

/* ---- WinogradConv ------------------------------------------------------ */

static bool infer_conv(InferContext *c)
{
    if (!infer_types(c, 0, 1 << DT_F32) || !infer_same_dtype(c, 0, 1) ||
        !infer_rank(c, 0, 4, 4) || !infer_rank(c, 1, 4, 4) || !check_tile(c))
        return false;
    const TensorType *x = infer_input(c, 0), *u = infer_input(c, 1);
    int points = tile_of(c->node) + 2;
    if (extent_known(u->dims[0]) != points ||
        extent_known(u->dims[1]) != points)
        return infer_error(c, "its weights must have %d by %d points", points,
                           points);
    if (!extents_agree(x->dims[1], u->dims[3]))
        return infer_error(c,
                           "its weights are for another number of channels");
    Window window = {.rank = 2, .kernel = {3, 3}};
    Extent dims[4] = {x->dims[0], u->dims[2]};
    if (!infer_window(c, &window))
        return false;
    for (int i = 0; i < 2; i++)
        if (!infer_window_extent(c, &window, i, x->dims[2 + i], &dims[2 + i]))
            return false;
    if (node_has_input(c->node, 2) &&
        (!infer_same_dtype(c, 0, 2) || !infer_rank(c, 2, 1, 1) ||
         !extents_agree(infer_input(c, 2)->dims[0], dims[1])))
        return infer_error(c, "its bias must have an element a channel");
    return infer_set_checked(c, 0, x->dtype, 4, dims);
}

/* Tiles of the result: a number for each, image by image, row by row. */
typedef struct Grid {
    int m, points;
    int64_t rows, columns; /* of tiles, of one image */
} Grid;

/* The rows of every tile: [tile, point, column, c]. What a tile reads behind
 * the last row or column of the operand makes results that nothing reads. */
static void define_rows(DefineContext *c, const Grid *g, Buffer *rows)
{
    const int64_t kernel[] = {3, 3};
    const Buffer *x = c->in[0];
    Window w = window_of(c->node, 2, kernel, &x->dims[2]);
    const Expr *d[MAX_POINTS], *v[MAX_POINTS];
    StageBuilder b;
    stage_begin(&b, c->def, rows);
    Arena *a = b.arena;
    const Expr *row = expr_div(a, b.index[0], expr_int(a, g->columns));
    const Expr *column =
        expr_binary(a, EX_MOD, b.index[0], expr_int(a, g->columns));
    const Expr *image = expr_int(a, 0);
    if (x->dims[0] > 1) {
        image = expr_div(a, b.index[0], expr_int(a, g->rows * g->columns));
        row = expr_binary(a, EX_MOD, row, expr_int(a, g->rows));
    }
    const Expr *top = expr_add_int(a, expr_mul_int(a, row, g->m), -w.lo[0]);
    const Expr *left =
        expr_add_int(a, expr_mul_int(a, column, g->m), -w.lo[1]);
    bool is_padded = w.lo[0] || w.lo[1] ||
                     g->rows * g->m + 2 - w.lo[0] > x->dims[2] ||
                     g->columns * g->m + 2 - w.lo[1] > x->dims[3];
    for (int r = 0; r < g->points; r++) {
        const Expr *index[] = {image, b.index[3], expr_add_int(a, top, r),
                               expr_add(a, left, b.index[2])};
        d[r] = is_padded
                   ? expr_read_padded(a, x, index, expr_const(a, x->dtype, 0))
                   : expr_read(a, x, index);
    }
    transform_input(a, g->m, d, v);
    stage_end(&b, pick(a, b.index[1], v, g->points));
}

static void define_conv(DefineContext *c)
{
    const Buffer *x = c->in[0], *u = c->in[1];
    Buffer *out = c->out[0];
    Grid g = {.m = tile_of(c->node)};
    g.points = g.m + 2;
    g.rows = (out->dims[2] + g.m - 1) / g.m;
    g.columns = (out->dims[3] + g.m - 1) / g.m;
    int64_t tiles = x->dims[0] * g.rows * g.columns;
    int64_t channels = x->dims[1], results = u->dims[2];
    int64_t in[] = {tiles, g.points, g.points, channels};
    int64_t product[] = {tiles, g.points, g.points, results};
    int64_t half[] = {tiles, g.m, g.points, results};
    int64_t whole[] = {tiles, g.m, g.m, results};
    Buffer *rows = define_temp(c, "rows", x->dtype, 4, in);
    Buffer *points = define_temp(c, "points", x->dtype, 4, in);
    Buffer *products = define_temp(c, "products", x->dtype, 4, product);
    Buffer *sums = define_temp(c, "sums", x->dtype, 4, half);
    Buffer *pixels = define_temp(c, "pixels", x->dtype, 4, whole);
    StageBuilder b;
    define_rows(c, &g, rows);
    stage_begin(&b, c->def, points);
    stage_end(&b, transformed(&b, g.m, transform_input, rows, 2, g.points,
                              g.points));
    stage_begin(&b, c->def, products);
    Arena *a = b.arena;
    const Expr *channel = stage_reduce(&b, channels, "c");
    const Expr *left[] = {b.index[0], b.index[1], b.index[2], channel};
    const Expr *right[] = {b.index[1], b.index[2], b.index[3], channel};
    stage_end_reduce(
        &b, "sum",
        expr_mul(a, expr_read(a, points, left), expr_read(a, u, right)));
    stage_begin(&b, c->def, sums);
    stage_end(&b, transformed(&b, g.m, transform_output, products, 1, g.points,
                              g.m));
    stage_begin(&b, c->def, pixels);
    stage_end(&b,
              transformed(&b, g.m, transform_output, sums, 2, g.points, g.m));
    stage_begin(&b, c->def, out);
    const Expr *m = expr_int(a, g.m);
    const Expr *row = expr_div(a, b.index[2], m);
    if (x->dims[0] > 1)
        row = expr_add(a, expr_mul_int(a, b.index[0], g.rows), row);
    const Expr *at[] = {expr_add(a, expr_mul_int(a, row, g.columns),
                                 expr_div(a, b.index[3], m)),
                        expr_binary(a, EX_MOD, b.index[2], m),
                        expr_binary(a, EX_MOD, b.index[3], m), b.index[1]};
    const Expr *value = expr_read(a, pixels, at);
    if (node_has_input(c->node, 2))
        value = expr_add(a, value, expr_read(a, c->in[2], &b.index[1]));
    stage_end(&b, value);
}

/* What the convolution takes as it stands. */
static double direct_flops(const Node *node)
{
    const TensorType *u = &node->inputs.data[1]->type;
    return 2.0 * 9 * (double)type_most(&node->outputs.data[0]->type) *
           (double)u->dims[3].value;
}

/* ---- as an algorithm of a convolution ---------------------------------- */

static double rounded(int64_t count, int lanes)
{
    return (double)((count + lanes - 1) / lanes * lanes);
}

static bool all_are(const Node *node, const char *name, int64_t value)
{
    int count;
    const int64_t *list = attrs_ints(&node->attrs, name, &count);
    for (int i = 0; list && i < count; i++)
        if (list[i] != value)
            return false;
    return true;
}

/* As of quantized layers, whose sums are exact and stay so: tiles would
 * divide. */
static bool are_whole(const Array *w)
{
    for (int64_t i = 0; i < array_count(w); i++)
        if (array_get(w, i) != floor(array_get(w, i)))
            return false;
    return true;
}

/* Numbers of which the transform has finite sums: an infinity or NaN would
 * spread over all results of a tile. */
static bool are_moderate(const Array *w)
{
    const double most = 1e30;
    for (int64_t i = 0; i < array_count(w); i++)
        if (!(fabs(array_get(w, i)) <= most))
            return false;
    return true;
}

/* 3x3, all strides 1, of constant weights; extents are numbers. */
static bool is_filter(const Node *node)
{
    const Tensor *x = node->inputs.data[0], *w = node->inputs.data[1];
    return w->value && x->type.dtype == DT_F32 && x->type.rank == 4 &&
           node_is_static(node) && attrs_int(&node->attrs, "group", 1) == 1 &&
           w->type.dims[2].value == 3 && w->type.dims[3].value == 3 &&
           all_are(node, "strides", 1) && all_are(node, "dilations", 1) &&
           type_most(&node->outputs.data[0]->type) > 0 &&
           w->type.dims[1].value > 0 && !are_whole(w->value) &&
           are_moderate(w->value);
}

bool conv_direct_work(const Node *node, int lanes, OpWork *work)
{
    if (!is_filter(node))
        return false;
    const TensorType *y = &node->outputs.data[0]->type;
    const TensorType *w = &node->inputs.data[1]->type;
    double pixels = (double)type_most(y) / (double)y->dims[1].value;
    double taps = (double)(type_most(w) / w->dims[0].value);
    *work =
        (OpWork){.products = pixels * taps * rounded(w->dims[0].value, lanes),
                 .constant_bytes = 4.0 * (double)type_most(w)};
    return true;
}

static bool winograd_work(const Node *node, int lanes, int m, OpWork *work)
{
    if (!is_filter(node))
        return false;
    const TensorType *y = &node->outputs.data[0]->type;
    const TensorType *w = &node->inputs.data[1]->type;
    double points = (m + 2) * (m + 2);
    double tiles = (double)y->dims[0].value *
                   (double)((y->dims[2].value + m - 1) / m) *
                   (double)((y->dims[3].value + m - 1) / m);
    double in = rounded(w->dims[1].value, lanes);
    double out = rounded(w->dims[0].value, lanes);
    *work =
        (OpWork){.products = tiles * points * (double)w->dims[1].value * out,
                 .elements = tiles * points * (in + out),
                 .constant_bytes = 4.0 * points * (double)w->dims[0].value *
                                   (double)w->dims[1].value};
    return true;
}

bool winograd2_work(const Node *node, int lanes, OpWork *work)
{
    return winograd_work(node, lanes, 2, work);
}

bool winograd4_work(const Node *node, int lanes, OpWork *work)
{
    return winograd_work(node, lanes, 4, work);
}

static Node *add_node(Graph *g, const char *op, const Node *from,
                      const char *suffix, Attrs attrs, Tensor *const *inputs,
                      int count)
{
    Node *node = graph_add_node(
        g, op, arena_printf(g->arena, "%s.%s", from->name, suffix), inputs,
        count, 1);
    node->attrs = attrs;
    node->sources.count = 0;
    node->outputs.data[0]->sources.count = 0;
    graph_add_source(g, node, from);
    node->no_fuse = from->no_fuse;
    if (!op_infer(g, node))
        die("the tiles of %s \"%s\" do not type", from->op->name, from->name);
    return node;
}

static void rewrite(Graph *g, Node *node, int m)
{
    Attrs attrs = {0};
    attrs_set_int(g->arena, &attrs, "tile", m);
    Node *u = add_node(g, "assay::WinogradWeights", node, "tiles", attrs,
                       &node->inputs.data[1], 1);
    graph_move_before(g, u, node);
    const int64_t kernel[] = {3, 3};
    const Tensor *x = node->inputs.data[0];
    int64_t in[] = {x->type.dims[2].value, x->type.dims[3].value};
    Window w = window_of(node, 2, kernel, in);
    int64_t pads[] = {w.lo[0], w.lo[1], w.hi[0], w.hi[1]};
    attrs = (Attrs){0};
    attrs_set_int(g->arena, &attrs, "tile", m);
    attrs_set_ints(g->arena, &attrs, "pads", pads, 4);
    Tensor *inputs[3] = {node->inputs.data[0], u->outputs.data[0]};
    int count = 2;
    if (node_has_input(node, 2))
        inputs[count++] = node->inputs.data[2];
    Node *conv = add_node(g, "assay::WinogradConv", node, "winograd", attrs,
                          inputs, count);
    graph_move_before(g, conv, node);
    graph_replace(g, node->outputs.data[0], conv->outputs.data[0]);
    graph_remove_node(g, node);
}

void winograd2_rewrite(Graph *g, Node *node)
{
    rewrite(g, node, 2);
}

void winograd4_rewrite(Graph *g, Node *node)
{
    rewrite(g, node, 4);
}

/* ---- rows -------------------------------------------------------------- */

static const AttrSpec weights_attrs[] = {{"tile", ATTR_INT, true}, {0}};
static const AttrSpec conv_attrs[] = {
    {"pads", ATTR_INTS, false}, {"tile", ATTR_INT, true}, {0}};

static const Op op_weights = {.name = "WinogradWeights",
                              .domain = "assay",
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .attrs = weights_attrs,
                              .infer = infer_weights,
                              .define = define_weights,
                              .since = 1};

static const Op op_conv = {.name = "WinogradConv",
                           .domain = "assay",
                           .min_inputs = 2,
                           .max_inputs = 3,
                           .min_outputs = 1,
                           .max_outputs = 1,
                           .traits =
                               OP_ANCHOR | OP_REDUCTION | OP_LINEAR_WEIGHTS,
                           .attrs = conv_attrs,
                           .infer = infer_conv,
                           .define = define_conv,
                           .flops = direct_flops,
                           .channel_axis = 2,
                           .output_channel_axis = 1,
                           .since = 1,
                           .schedule = "winograd"};

const Op *const ops_winograd[] = {&op_weights, &op_conv, NULL};
