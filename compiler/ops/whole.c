/* Quantized sums and products in whole numbers.
 *
 * A file writes a quantized layer as a layer of floats between
 * DequantizeLinear and QuantizeLinear. Taken literally, each sum is of rounded
 * products with the scales, and what lies near the border between two stored
 * values falls on either side by the order of summation. In whole numbers,
 *     sum (x - zx) sx (w - zw) sw / sy  =  (sx sw / sy) sum (x - zx) (w - zw)
 * has an exact sum and is rounded once: any order, target and level gives the
 * same stored values. Sums below 2^24 are exact in f32, too, so that the node
 * stays the one that it was, without the scales; the bound is checked with
 * the weights at hand, and the node stays literal where it does not hold.
 *
 * Integer kernels of other engines compute the same. Source of the form: Jacob
 * et al., "Quantization and training of neural networks for efficient
 * integer-arithmetic-only inference", 2018. */
#include "ops/whole.h"

#include <math.h>
#include <string.h>

#include "ops/rules.h"

/* Whole numbers up to it are f32 values. */
static const double most_exact = 16777216;

/* A tensor of stored values: real = (x - zero) * scale. */
typedef struct Stored {
    Tensor *x;
    const Array *scale, *zero; /* zero: NULL for 0 */
    int axis;                  /* of several scales */
} Stored;

/* What is built of the node at hand. */
typedef struct Whole {
    Graph *g;
    Node *at; /* the QuantizeLinear */
    Node *layer;
    double scale, zero; /* of the result */
    int64_t low, high;  /* stored values that the result can have */
} Whole;

static bool is_op(const Node *node, const char *name)
{
    return node && !*node->op->domain && !strcmp(node->op->name, name);
}

static double zero_at(const Stored *s, int64_t i)
{
    if (!s->zero)
        return 0;
    return array_get(s->zero, array_count(s->zero) == 1 ? 0 : i);
}

static double scale_at(const Stored *s, int64_t i)
{
    return array_get(s->scale, array_count(s->scale) == 1 ? 0 : i);
}

static bool is_single(const Stored *s)
{
    return array_count(s->scale) == 1;
}

static bool read_params(const Node *node, Stored *s)
{
    const Tensor *scale = node->inputs.data[1];
    const Tensor *zero = node_has_input(node, 2) ? node->inputs.data[2] : NULL;
    if (attrs_int(&node->attrs, "block_size", 0) || !scale->value ||
        scale->value->dtype != DT_F32 || (zero && !zero->value))
        return false;
    int rank = node->inputs.data[0]->type.rank;
    *s = (Stored){.x = node->inputs.data[0],
                  .scale = scale->value,
                  .zero = zero ? zero->value : NULL,
                  .axis = normal_axis(attrs_int(&node->attrs, "axis", 1),
                                      rank > 0 ? rank : 1)};
    return true;
}

/* The tensor is the real form of whole numbers. */
static bool read_real(const Tensor *t, Stored *s)
{
    const Node *node = t ? t->producer : NULL;
    return is_op(node, "DequantizeLinear") && t->type.dtype == DT_F32 &&
           read_params(node, s);
}

static bool is_stored(DType dtype)
{
    return dtype == DT_I8 || dtype == DT_U8 || dtype == DT_I16 ||
           dtype == DT_U16;
}

/* Of stored values. */
static bool read_stored(const Tensor *t, Stored *s)
{
    return read_real(t, s) && is_stored(s->x->type.dtype);
}

/* The largest |x - zero| that there can be. */
static double most_of(const Stored *s)
{
    DType dtype = s->x->type.dtype;
    return fmax(zero_at(s, 0) - lowest_stored(dtype),
                highest_stored(dtype) - zero_at(s, 0));
}

/* ---- what stands between the layer and QuantizeLinear ------------------- */

static double stored_of(const Whole *w, double real)
{
    double value = rint((double)((float)real / (float)w->scale)) + w->zero;
    return fmin(fmax(value, (double)w->low), (double)w->high);
}

/* Bounds before the rounding are bounds behind it. */
static bool take_bounds(Whole *w, const Node *node)
{
    double low = -INFINITY, high = INFINITY;
    if (is_op(node, "Relu")) {
        low = 0;
    } else if (is_op(node, "Clip")) {
        for (int i = 1; i <= 2; i++) {
            if (!node_has_input(node, i))
                continue;
            const Array *value = node->inputs.data[i]->value;
            if (!value || isnan(array_get(value, 0)))
                return false;
            *(i == 1 ? &low : &high) = array_get(value, 0);
        }
        if (low > high)
            return false;
    } else {
        return false;
    }
    int64_t least = (int64_t)stored_of(w, low);
    w->high = (int64_t)stored_of(w, high);
    w->low = least;
    return true;
}

static bool is_private(const Tensor *t)
{
    return t && t->users.count == 1 && !t->is_output;
}

static bool find_layer(Whole *w)
{
    const Tensor *t = w->at->inputs.data[0];
    while (is_private(t) && t->producer && take_bounds(w, t->producer))
        t = t->producer->inputs.data[0];
    w->layer = t->producer;
    return is_private(t) && w->layer && t->type.dtype == DT_F32;
}

/* ---- new nodes ---------------------------------------------------------- */

/* Before the QuantizeLinear, with the layer's sources. */
static Tensor *add(Whole *w, const char *op, const char *suffix, Attrs attrs,
                   Tensor *const *inputs, int count)
{
    Node *node = graph_add_node(
        w->g, op, arena_printf(w->g->arena, "%s.%s", w->layer->name, suffix),
        inputs, count, 1);
    node->attrs = attrs;
    node->sources.count = 0;
    node->outputs.data[0]->sources.count = 0;
    graph_add_source(w->g, node, w->layer);
    node->no_fuse = w->layer->no_fuse || w->at->no_fuse;
    if (!op_infer(w->g, node))
        die("the whole form of %s \"%s\" does not type", w->layer->op->name,
            w->layer->name);
    graph_move_before(w->g, node, w->at);
    return node->outputs.data[0];
}

static Tensor *constant(Whole *w, const char *name, const Array *value)
{
    return graph_add_constant(
        w->g, arena_printf(w->g->arena, "%s.%s", w->layer->name, name), value);
}

static Tensor *number(Whole *w, const char *name, double value)
{
    return constant(w, name, array_scalar(w->g->arena, DT_F32, value));
}

/* x as f32, less its zero point where `shifted`. */
static Tensor *as_float(Whole *w, const Stored *s, bool shifted)
{
    Attrs attrs = {0};
    attrs_set_int(w->g->arena, &attrs, "to", 1);
    Tensor *x = s->x;
    x = add(w, "Cast", "whole", attrs, &x, 1);
    if (!shifted || zero_at(s, 0) == 0)
        return x;
    Tensor *inputs[2] = {x, number(w, "zero", zero_at(s, 0))};
    return add(w, "Sub", "shift", (Attrs){0}, inputs, 2);
}

/* ONNX's number of a stored type. */
static int64_t onnx_number(DType dtype)
{
    return dtype == DT_U8 ? 2 : dtype == DT_I8 ? 3 : dtype == DT_U16 ? 4 : 5;
}

static void limit(Whole *w, Attrs *attrs)
{
    attrs_set_int(w->g->arena, attrs, "low", w->low);
    attrs_set_int(w->g->arena, attrs, "high", w->high);
    attrs_set_int(w->g->arena, attrs, "to",
                  onnx_number(w->at->outputs.data[0]->type.dtype));
}

static void deliver(Whole *w, Tensor *y)
{
    graph_add_source(w->g, y->producer, w->at);
    graph_replace(w->g, w->at->outputs.data[0], y);
    graph_remove_node(w->g, w->at);
}

/* sum * factor, rounded, and the zero point. */
static void deliver_product(Whole *w, Tensor *sum, const Array *factor,
                            int axis)
{
    Attrs attrs = {0};
    if (array_count(factor) > 1)
        attrs_set_int(w->g->arena, &attrs, "axis", axis);
    limit(w, &attrs);
    Tensor *inputs[3] = {sum, constant(w, "factor", factor),
                         number(w, "stored_zero", w->zero)};
    deliver(w, add(w, "assay::Requantize", "requantize", attrs, inputs, 3));
}

/* ---- layers with weights ------------------------------------------------ */

/* Weights less their zero points, and per output channel the sum of their
 * absolute values. */
static Array *whole_weights(Whole *w, const Stored *s, int axis, double *sums)
{
    const Array *x = s->x->value;
    Array *y = array_new(w->g->arena, DT_F32, x->rank, x->dims);
    int64_t inner = 1;
    for (int i = axis + 1; i < x->rank; i++)
        inner *= x->dims[i];
    for (int64_t i = 0; i < array_count(x); i++) {
        int64_t channel = i / inner % x->dims[axis];
        double v = (double)array_get_int(x, i) - zero_at(s, channel);
        ((float *)y->data)[i] = (float)v;
        sums[channel] += fabs(v);
    }
    return y;
}

/* sx * sw / sy, each step rounded to f32 as integer kernels do. NULL where
 * that leaves the range of normal numbers. */
static Array *joint_factor(Whole *w, const Stored *x, const Stored *y)
{
    int64_t count = array_count(y->scale);
    Array *factor = array_new(w->g->arena, DT_F32, count == 1 ? 0 : 1, &count);
    for (int64_t i = 0; i < count; i++) {
        float joint = (float)scale_at(x, 0) * (float)scale_at(y, i);
        float value = joint / (float)w->scale;
        if (!isnormal(joint) || !isnormal(value))
            return NULL;
        array_set(factor, i, (double)value);
    }
    return factor;
}

/* What is multiplied: `op` of x and y, and a start of whole numbers. */
typedef struct Product {
    const char *op;
    Stored x, y;
    const Array *start; /* i32 by output channel, or NULL */
} Product;

/* The weights' axis of output channels, -1 for a layer of another form. */
static int weights_axis(const Node *layer, const char *op, int rank)
{
    if (!strcmp(op, "Conv"))
        return 0;
    if (!strcmp(op, "MatMul") && rank == 2)
        return 1;
    bool plain = !strcmp(op, "Gemm") &&
                 attrs_float(&layer->attrs, "alpha", 1) == 1 &&
                 attrs_float(&layer->attrs, "beta", 1) == 1;
    return plain ? !attrs_int(&layer->attrs, "transB", 0) : -1;
}

/* Constant weights: each sum is bounded by its own. */
static bool rewrite_layer(Whole *w, const Product *p)
{
    const Array *y = p->y.x->value, *start = p->start;
    int axis = weights_axis(w->layer, p->op, y->rank);
    if (axis < 0 || (!is_single(&p->y) && p->y.axis != axis))
        return false;
    int64_t channels = y->dims[axis];
    const Array *factor = joint_factor(w, &p->x, &p->y);
    bool fits = is_single(&p->y) || array_count(p->y.scale) == channels;
    if (!factor || !fits ||
        (start && (start->rank != 1 || start->dims[0] != channels)))
        return false;
    double *sums = ARENA_ARRAY(w->g->arena, double, channels + 1);
    Array *whole = whole_weights(w, &p->y, axis, sums);
    for (int64_t i = 0; i < channels; i++) {
        double first = start ? fabs(array_get(start, i)) : 0;
        if (sums[i] * most_of(&p->x) + first >= most_exact)
            return false;
    }
    Tensor *inputs[3] = {as_float(w, &p->x, true),
                         constant(w, "weights", whole)};
    if (start) {
        Array *bias = array_new(w->g->arena, DT_F32, 1, &channels);
        for (int64_t i = 0; i < channels; i++)
            array_set(bias, i, array_get(start, i));
        inputs[2] = constant(w, "bias", bias);
    }
    Tensor *sum = add(w, p->op, "sum", w->layer->attrs, inputs, start ? 3 : 2);
    deliver_product(w, sum, factor,
                    strcmp(p->op, "Conv") ? sum->type.rank - 1 : 1);
    return true;
}

/* Elements that one result of the product sums up; -1: not known. */
static int64_t product_length(const Product *p)
{
    const TensorType *x = &p->x.x->type;
    if (!strcmp(p->op, "Mul"))
        return 1;
    return !strcmp(p->op, "MatMul") && x->rank > 0 ? x->dims[x->rank - 1].value
                                                   : -1;
}

/* Bounded by what the types can hold. */
static bool rewrite_product(Whole *w, const Product *p)
{
    double length = (double)product_length(p);
    if (length < 0 || p->start || !is_single(&p->y) ||
        length * most_of(&p->x) * most_of(&p->y) >= most_exact)
        return false;
    const Array *factor = joint_factor(w, &p->x, &p->y);
    if (!factor)
        return false;
    Tensor *inputs[2] = {as_float(w, &p->x, true), as_float(w, &p->y, true)};
    deliver_product(w, add(w, p->op, "sum", (Attrs){0}, inputs, 2), factor, 0);
    return true;
}

static bool rewrite(Whole *w, const Product *p)
{
    return is_single(&p->x) &&
           ((p->y.x->value && rewrite_layer(w, p)) || rewrite_product(w, p));
}

/* ---- layers between DequantizeLinear and QuantizeLinear ----------------- */

/* A bias of whole numbers: one scale of the products for each channel. */
static bool bias_fits(const Stored *bias, const Product *p)
{
    const Array *value = bias->x->value;
    if (!value || value->dtype != DT_I32 || value->rank != 1)
        return false;
    int64_t channels = value->dims[0];
    if ((!is_single(bias) && array_count(bias->scale) != channels) ||
        (!is_single(&p->y) && array_count(p->y.scale) != channels))
        return false;
    for (int64_t i = 0; i < channels; i++) {
        double wanted = scale_at(&p->x, 0) * scale_at(&p->y, i);
        if (zero_at(bias, i) != 0 ||
            fabs(scale_at(bias, i) - wanted) > 1e-5 * wanted)
            return false;
    }
    return true;
}

static bool rewrite_literal(Whole *w)
{
    static const char *const names[] = {"Conv", "Gemm", "MatMul", "Mul"};
    const Node *layer = w->layer;
    Product p = {0};
    for (int i = 0; i < 4; i++)
        if (is_op(layer, names[i]))
            p.op = names[i];
    if (!p.op || !read_stored(layer->inputs.data[0], &p.x) ||
        !read_stored(layer->inputs.data[1], &p.y) || !is_single(&p.x))
        return false;
    if (node_has_input(layer, 2)) {
        Stored bias;
        if (!read_real(layer->inputs.data[2], &bias) || !bias_fits(&bias, &p))
            return false;
        p.start = bias.x->value;
    }
    return rewrite(w, &p);
}

/* A sum of two: each gets a factor, and the zero points come together. */
static bool rewrite_sum(Whole *w)
{
    Stored s[2];
    float factor[2];
    for (int i = 0; i < 2; i++) {
        if (!read_stored(w->layer->inputs.data[i], &s[i]) || !is_single(&s[i]))
            return false;
        factor[i] = (float)scale_at(&s[i], 0) / (float)w->scale;
        /* Larger terms would cancel with few digits left. */
        if (!isnormal(factor[i]) ||
            (double)factor[i] * 2 * most_of(&s[i]) > 65536)
            return false;
    }
    double fixed = w->zero;
    for (int i = 0; i < 2; i++)
        fixed -= (double)factor[i] * zero_at(&s[i], 0);
    Attrs attrs = {0};
    limit(w, &attrs);
    Tensor *inputs[5];
    for (int i = 0; i < 2; i++) {
        inputs[2 * i] = as_float(w, &s[i], false);
        inputs[2 * i + 1] = number(w, "factor", (double)factor[i]);
    }
    inputs[4] = number(w, "fixed", fixed);
    deliver(w, add(w, "assay::RequantizeSum", "requantize", attrs, inputs, 5));
    return true;
}

/* Scale and zero point of the result, and its range. */
static bool read_result(Whole *w, const Array *scale, const Array *zero)
{
    DType dtype = w->at->outputs.data[0]->type.dtype;
    if (array_count(scale) != 1 || !(array_get(scale, 0) > 0) ||
        !is_stored(dtype))
        return false;
    w->scale = array_get(scale, 0);
    w->zero = zero ? array_get(zero, 0) : 0;
    w->low = (int64_t)lowest_stored(dtype);
    w->high = (int64_t)highest_stored(dtype);
    return true;
}

bool canonical_quantize(Graph *g, Node *node)
{
    Stored y;
    Whole w = {.g = g, .at = node};
    int64_t precision = attrs_int(&node->attrs, "precision", 0);
    if (!read_params(node, &y) || y.x->type.dtype != DT_F32 ||
        (precision && dtype_of_onnx(precision) != DT_F32) ||
        !read_result(&w, y.scale, y.zero) || !find_layer(&w))
        return false;
    return is_op(w.layer, "Add") ? rewrite_sum(&w) : rewrite_literal(&w);
}

/* ---- QLinearConv and QLinearMatMul -------------------------------------- */

/* Operand `first`, with scale and zero point behind it. */
static bool read_operand(const Node *node, int first, int axis, Stored *s)
{
    const Tensor *const *in = (const Tensor *const *)&node->inputs.data[first];
    if (!in[1]->value || !in[2]->value || in[1]->value->dtype != DT_F32 ||
        in[1]->value->rank > 1)
        return false;
    *s = (Stored){.x = node->inputs.data[first],
                  .scale = in[1]->value,
                  .zero = in[2]->value,
                  .axis = axis};
    return array_count(s->zero) == 1 ||
           array_count(s->zero) == array_count(s->scale);
}

bool decompose_qlinear(Graph *g, Node *node)
{
    bool is_conv = is_op(node, "QLinearConv");
    const Tensor *const *in = (const Tensor *const *)node->inputs.data;
    Whole w = {.g = g, .at = node, .layer = node};
    Product p = {.op = is_conv ? "Conv" : "MatMul"};
    if (!in[6]->value || !in[7]->value || in[6]->value->dtype != DT_F32 ||
        array_count(in[7]->value) != 1 ||
        !read_result(&w, in[6]->value, in[7]->value) ||
        !read_operand(node, 0, 0, &p.x) ||
        !read_operand(node, 3, is_conv ? 0 : 1, &p.y))
        return false;
    if (node_has_input(node, 8)) {
        p.start = in[8]->value;
        if (!p.start)
            return false;
    }
    return rewrite(&w, &p);
}
