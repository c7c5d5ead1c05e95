/* Fourier transforms and what goes with them: windows and the matrix from
 * frequencies to mel bands. */
#include <math.h>
#include <string.h>

#include "ops/rules.h"

static const double two_pi = 6.283185307179586476925286766559;

/* ---- tables made of counts */

/* The element type that attribute output_datatype names, f32 without one. */
static bool infer_output_type(InferContext *c, DType *dtype)
{
    int64_t number = attrs_int(&c->node->attrs, "output_datatype", 1);
    *dtype = dtype_of_onnx(number);
    if (*dtype != DT_INVALID && *dtype != DT_BOOL)
        return true;
    return infer_error(c,
                       "output_datatype is element type number %lld, which "
                       "is not supported",
                       (long long)number);
}

static bool infer_window_function(InferContext *c)
{
    Extent dims[1];
    DType dtype;
    if (!infer_output_type(c, &dtype))
        return false;
    int64_t count = type_count(infer_input(c, 0));
    if (dtype_is_float(infer_input(c, 0)->dtype) || (count >= 0 && count != 1))
        return infer_error(c, "size must be one integer");
    if (infer_extents(c, 0, "size", 1, dims) < 0)
        return false;
    if (extent_is_const(dims[0]) &&
        (dims[0].value < 0 || dims[0].value > INT32_MAX))
        return infer_error(c, "size is %lld", (long long)dims[0].value);
    return infer_set_checked(c, 0, dtype, 1, dims);
}

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n being the size, or one less
 * for a symmetric window. */
static void define_cosines(DefineContext *c, double a0, double a1, double a2)
{
    bool periodic = attrs_int(&c->node->attrs, "periodic", 1) != 0;
    double n = (double)(c->out[0]->dims[0] - (periodic ? 0 : 1));
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *angle = expr_cast(a, DT_F64, b.index[0]);
    const Expr *step = expr_const(a, DT_F64, two_pi / n);
    if (c->out[0]->limit[0]) {
        const Expr *size = buffer_extent(a, c->out[0], 0);
        size = periodic ? size : expr_add_int(a, size, -1);
        step = expr_div(a, expr_const(a, DT_F64, two_pi),
                        expr_cast(a, DT_F64, size));
    }
    angle = expr_mul(a, angle, step);
    const Expr *value =
        expr_mul(a, expr_unary(a, EX_COS, angle), expr_const(a, DT_F64, a1));
    value = expr_sub(a, expr_const(a, DT_F64, a0), value);
    if (a2 != 0) {
        angle = expr_mul(a, angle, expr_const(a, DT_F64, 2));
        value = expr_add(a, value,
                         expr_mul(a, expr_unary(a, EX_COS, angle),
                                  expr_const(a, DT_F64, a2)));
    }
    stage_end(&b, expr_cast(a, c->out[0]->dtype, value));
}

static void define_hann(DefineContext *c)
{
    define_cosines(c, 0.5, 0.5, 0);
}

static void define_hamming(DefineContext *c)
{
    define_cosines(c, 25.0 / 46, 21.0 / 46, 0);
}

static void define_blackman(DefineContext *c)
{
    define_cosines(c, 0.42, 0.5, 0.08);
}

/* ---- MelWeightMatrix */

typedef struct Mel {
    int64_t bands, dft_length, rate;
    double lower, upper; /* Hz */
} Mel;

static bool infer_mel(InferContext *c)
{
    static const char *const edges[] = {"lower_edge_hertz",
                                        "upper_edge_hertz"};
    Extent dims[2];
    DType dtype;
    Mel m;
    if (!infer_output_type(c, &dtype) ||
        !infer_number(c, 0, "num_mel_bins", &m.bands) ||
        !infer_number(c, 1, "dft_length", &m.dft_length) ||
        !infer_number(c, 2, "sample_rate", &m.rate))
        return false;
    if (m.bands < 1 || m.bands > 1 << 16 || m.dft_length < 1 ||
        m.dft_length > INT32_MAX || m.rate < 1)
        return infer_error(c, "its counts must be positive and within reason");
    for (int i = 0; i < 2; i++) {
        const Array *edge = infer_constant(c, 3 + i, edges[i]);
        if (!edge)
            return false;
        if (array_count(edge) != 1 || !(array_get(edge, 0) >= 0) ||
            array_get(edge, 0) > (double)m.rate)
            return infer_error(c, "%s must be a frequency", edges[i]);
    }
    dims[0] = extent_const(m.dft_length / 2 + 1);
    dims[1] = extent_const(m.bands);
    return infer_set_checked(c, 0, dtype, 2, dims);
}

/* The bin where each band starts, as the standard rounds it: `bands` + 2. */
static int64_t *mel_bins(Arena *a, const Node *node, int64_t bands)
{
    int64_t dft_length = array_get_int(node->inputs.data[1]->value, 0);
    double rate = array_get(node->inputs.data[2]->value, 0);
    double mel[2];
    int64_t *bins = ARENA_ARRAY(a, int64_t, bands + 2);
    for (int i = 0; i < 2; i++)
        mel[i] =
            2595 *
            log10(1 + array_get(node->inputs.data[3 + i]->value, 0) / 700);
    double step = (mel[1] - mel[0]) / (double)(bands + 2);
    for (int64_t i = 0; i < bands + 2; i++) {
        double hertz = 700 * (pow(10, ((double)i * step + mel[0]) / 2595) - 1);
        bins[i] = (int64_t)floor((double)(dft_length + 1) * hertz / rate);
    }
    return bins;
}

/* A table by band, as a chain of selections, one where the number changes. */
static const Expr *select_bin(StageBuilder *b, const int64_t *bins,
                              int64_t count)
{
    Arena *a = b->arena;
    const Expr *value = expr_int(a, bins[count - 1]);
    for (int64_t i = count - 2; i >= 0; i--)
        if (bins[i] != bins[i + 1])
            value = expr_select(
                a, expr_binary(a, EX_LE, b->index[0], expr_int(a, i)),
                expr_int(a, bins[i]), value);
    return value;
}

/* A triangle a band: up from its start to the next one's, down to the one
 * after that. */
static void define_mel(DefineContext *c)
{
    int64_t bands = c->out[0]->dims[1], count = bands + 2;
    int64_t *bins = mel_bins(c->def->arena, c->node, bands);
    Buffer *starts = define_temp(c, "starts", DT_I64, 1, &count);
    const Expr *start[3];
    StageBuilder b;
    stage_begin(&b, c->def, starts);
    stage_end(&b, select_bin(&b, bins, count));
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    const Expr *j = b.index[0], *zero = expr_const(a, DT_F64, 0);
    for (int i = 0; i < 3; i++) {
        const Expr *band = expr_add_int(a, b.index[1], i);
        start[i] = expr_read(a, starts, &band);
    }
    const Expr *rise = expr_sub(a, start[1], start[0]);
    const Expr *fall = expr_sub(a, start[2], start[1]);
    const Expr *up =
        expr_div(a, expr_cast(a, DT_F64, expr_sub(a, j, start[0])),
                 expr_cast(a, DT_F64, rise));
    const Expr *down =
        expr_div(a, expr_cast(a, DT_F64, expr_sub(a, start[2], j)),
                 expr_cast(a, DT_F64, fall));
    /* A band without a rise has 1 at its centre. */
    const Expr *flat = expr_binary(a, EX_EQ, rise, expr_int(a, 0));
    up = expr_select(a, flat, expr_const(a, DT_F64, 1), up);
    const Expr *rises = expr_and(a, expr_binary(a, EX_LE, start[0], j),
                                 expr_binary(a, EX_LE, j, start[1]));
    const Expr *falls = expr_and(a, expr_binary(a, EX_LE, start[1], j),
                                 expr_binary(a, EX_LT, j, start[2]));
    const Expr *value =
        expr_select(a, falls, down, expr_select(a, rises, up, zero));
    stage_end(&b, expr_cast(a, c->out[0]->dtype, value));
}

/* ---- DFT and STFT, as sums over a table of the unit circle */

typedef struct Transform {
    int64_t length;  /* of the transform */
    int64_t in_bins; /* elements of a line that take part */
    int64_t out_bins;
    int64_t in_parts, out_parts; /* 1: real; 2: real and imaginary */
    bool inverse;
    bool folded; /* the inverse of a one-sided spectrum, which is real */
} Transform;

/* circle[p, q, m]: what part q of an element adds to part p of the result at
 * the angle 2 pi m / length. */
static Buffer *add_circle(DefineContext *c, const Transform *t, DType dtype)
{
    int64_t dims[3] = {t->out_parts, t->in_parts, t->length};
    Buffer *circle = define_temp(c, "circle", dtype, 3, dims);
    double scale = t->inverse ? 1 / (double)t->length : 1;
    StageBuilder b;
    stage_begin(&b, c->def, circle);
    Arena *a = b.arena;
    const Expr *angle = expr_cast(a, DT_F64, b.index[2]);
    angle =
        expr_mul(a, angle, expr_const(a, DT_F64, two_pi / (double)t->length));
    const Expr *factor = expr_const(a, DT_F64, scale);
    const Expr *cosine = expr_mul(a, expr_unary(a, EX_COS, angle), factor);
    const Expr *sine = expr_mul(a, expr_unary(a, EX_SIN, angle), factor);
    /* exp(-i angle), or exp(i angle) on the way back. */
    const Expr *minus = expr_unary(a, EX_NEG, sine);
    const Expr *to_real = t->inverse ? minus : sine;
    const Expr *to_imaginary = t->inverse ? sine : minus;
    const Expr *crossed =
        expr_select(a, expr_binary(a, EX_EQ, b.index[0], expr_int(a, 0)),
                    to_real, to_imaginary);
    const Expr *value = expr_select(
        a, expr_binary(a, EX_EQ, b.index[0], b.index[1]), cosine, crossed);
    stage_end(&b, expr_cast(a, dtype, value));
    return circle;
}

/* All of a one-sided spectrum but its ends stands for two bins. */
static const Expr *fold_weight(Arena *a, const Transform *t, const Expr *k,
                               DType dtype)
{
    const Expr *single = expr_binary(a, EX_EQ, k, expr_int(a, 0));
    const Expr *middle =
        expr_binary(a, EX_EQ, expr_mul_int(a, k, 2), expr_int(a, t->length));
    return expr_select(a, expr_binary(a, EX_OR, single, middle),
                       expr_const(a, dtype, 1), expr_const(a, dtype, 2));
}

/* sum over k and q of element(k, q) * circle[p, q, j k mod length], for the
 * stage whose last index is p; `j` and `element` belong to it. */
static void end_transform(DefineContext *c, StageBuilder *b,
                          const Transform *t, const Buffer *circle,
                          const Expr *j, const Expr *k, const Expr *q,
                          const Expr *element)
{
    Arena *a = b->arena;
    Buffer *out = c->out[0];
    DType wide = circle->dtype;
    int last = out->rank - 1;
    const Expr *turn =
        expr_binary(a, EX_MOD, expr_mul(a, j, k), expr_int(a, t->length));
    const Expr *at[3] = {b->index[last], q, turn};
    element = expr_cast(a, wide, element);
    if (t->folded)
        element = expr_mul(a, element, fold_weight(a, t, k, wide));
    stage_end_reduce(b, "sum", expr_mul(a, element, expr_read(a, circle, at)));
}

/* The sum, in a wider type where lines are long. */
static Buffer *begin_transform(DefineContext *c, StageBuilder *b,
                               const Transform *t, Buffer **circle)
{
    Buffer *out = c->out[0];
    DType wide = sum_dtype(work_dtype(out->dtype), t->in_bins * t->in_parts);
    *circle = add_circle(c, t, wide);
    Buffer *sum = wide == out->dtype
                      ? out
                      : define_temp_part(c, "sum", wide, out->rank, out);
    stage_begin(b, c->def, sum);
    return sum;
}

static void finish_transform(DefineContext *c, Buffer *sum)
{
    StageBuilder b;
    if (sum == c->out[0])
        return;
    stage_begin(&b, c->def, c->out[0]);
    stage_end(&b, expr_cast(b.arena, c->out[0]->dtype, read_same(&b, sum)));
}

static int dft_axis(const Node *node, int rank)
{
    const Array *axis =
        node_has_input(node, 2) ? node->inputs.data[2]->value : NULL;
    return normal_axis(axis ? array_get_int(axis, 0) : -2, rank);
}

/* For an axis of `extent` elements. */
static Transform dft_of(const Node *node, int64_t extent, int64_t parts)
{
    bool onesided = attrs_int(&node->attrs, "onesided", 0) != 0;
    const Array *given =
        node_has_input(node, 1) ? node->inputs.data[1]->value : NULL;
    Transform t = {.length = extent, .in_parts = parts, .out_parts = 2};
    t.inverse = attrs_int(&node->attrs, "inverse", 0) != 0;
    t.folded = t.inverse && onesided;
    if (t.folded) {
        t.length = 2 * (extent - 1);
        t.out_parts = 1;
    }
    if (given)
        t.length = array_get_int(given, 0);
    int64_t used = t.folded ? t.length / 2 + 1 : t.length;
    t.in_bins = used < extent ? used : extent;
    t.out_bins = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
    return t;
}

static bool infer_dft(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    bool onesided = attrs_int(&c->node->attrs, "onesided", 0) != 0;
    Extent dims[MAX_RANK];
    int64_t number;
    int axis;
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 2, MAX_RANK))
        return false;
    for (int i = 1; i <= 2; i++)
        if (node_has_input(c->node, i) &&
            !infer_number(c, i, i == 1 ? "dft_length" : "axis", &number))
            return false;
    number = node_has_input(c->node, 2)
                 ? array_get_int(c->node->inputs.data[2]->value, 0)
                 : -2;
    if (!infer_axis(c, "axis", number, x->rank, &axis))
        return false;
    int64_t parts = extent_known(x->dims[x->rank - 1]);
    int64_t extent = extent_known(x->dims[axis]);
    if (axis == x->rank - 1 || parts < 1 || parts > 2)
        return infer_error(c, "its last axis must hold 1 or 2 parts of "
                              "complex numbers, and is no axis to transform");
    if (extent < 0)
        return infer_error(c, "the extent of axis %d must be constant", axis);
    Transform t = dft_of(c->node, extent, parts);
    if (onesided && parts != (t.inverse ? 2 : 1))
        return infer_error(c, t.inverse
                                  ? "the inverse of a one-sided spectrum "
                                    "needs complex numbers"
                                  : "a one-sided spectrum needs real numbers");
    if (t.length < 1 || t.length > INT32_MAX)
        return infer_error(c, "a transform of %lld elements",
                           (long long)t.length);
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = extent_const(t.out_bins);
    dims[x->rank - 1] = extent_const(t.out_parts);
    return infer_set_checked(c, 0, x->dtype, x->rank, dims);
}

static void define_dft(DefineContext *c)
{
    const Buffer *x = c->in[0];
    int axis = dft_axis(c->node, x->rank), last = x->rank - 1;
    Transform t = dft_of(c->node, x->dims[axis], x->dims[last]);
    const Expr *index[MAX_RANK];
    StageBuilder b;
    Buffer *circle, *sum = begin_transform(c, &b, &t, &circle);
    for (int i = 0; i < last; i++)
        index[i] = b.index[i];
    index[axis] = stage_reduce(&b, t.in_bins, "k");
    index[last] = stage_reduce(&b, t.in_parts, "q");
    end_transform(c, &b, &t, circle, b.index[axis], index[axis], index[last],
                  expr_read(b.arena, x, index));
    finish_transform(c, sum);
}

/* ---- STFT: transforms of overlapping frames of a signal */

static int64_t stft_length(const Node *node, const int64_t *signal,
                           const int64_t *window)
{
    if (node_has_input(node, 3))
        return array_get_int(node->inputs.data[3]->value, 0);
    return window ? window[0] : signal[1];
}

static bool infer_stft(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    bool onesided = attrs_int(&c->node->attrs, "onesided", 1) != 0;
    int64_t step, length, signal[2], window = -1;
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 2, 3) ||
        !infer_number(c, 1, "frame_step", &step) ||
        (node_has_input(c->node, 3) &&
         !infer_number(c, 3, "frame_length", &length)))
        return false;
    signal[1] = extent_known(x->dims[1]);
    int64_t parts = x->rank == 3 ? extent_known(x->dims[2]) : 1;
    if (signal[1] < 0)
        return infer_error(c, "the length of its signal must be constant");
    if (parts < 1 || parts > 2 || (onesided && parts != 1))
        return infer_error(c, "the signal must be real, or complex with "
                              "onesided 0");
    if (node_has_input(c->node, 2)) {
        if (!infer_same_dtype(c, 0, 2) || !infer_rank(c, 2, 1, 1))
            return false;
        window = extent_known(infer_input(c, 2)->dims[0]);
    }
    length = stft_length(c->node, signal, window >= 0 ? &window : NULL);
    if (step < 1 || length < 1 || length > signal[1])
        return infer_error(c,
                           "frames of %lld every %lld elements of a signal "
                           "of %lld",
                           (long long)length, (long long)step,
                           (long long)signal[1]);
    if (window >= 0 && window != length)
        return infer_error(c, "a window of %lld elements for frames of %lld",
                           (long long)window, (long long)length);
    Extent dims[4] = {
        x->dims[0], extent_const((signal[1] - length) / step + 1),
        extent_const(onesided ? length / 2 + 1 : length), extent_const(2)};
    return infer_set_checked(c, 0, x->dtype, 4, dims);
}

static void define_stft(DefineContext *c)
{
    const Buffer *x = c->in[0], *window = c->in[2];
    int64_t step = array_get_int(c->node->inputs.data[1]->value, 0);
    int64_t length =
        stft_length(c->node, x->dims, window ? window->dims : NULL);
    Transform t = {.length = length,
                   .in_bins = length,
                   .out_bins = c->out[0]->dims[2],
                   .in_parts = x->rank == 3 ? x->dims[2] : 1,
                   .out_parts = 2};
    StageBuilder b;
    Buffer *circle, *sum = begin_transform(c, &b, &t, &circle);
    Arena *a = b.arena;
    const Expr *k = stage_reduce(&b, t.in_bins, "k");
    const Expr *q = stage_reduce(&b, t.in_parts, "q");
    const Expr *index[3] = {
        b.index[0], expr_add(a, expr_mul_int(a, b.index[1], step), k), q};
    const Expr *element = expr_cast(a, circle->dtype, expr_read(a, x, index));
    if (window)
        element = expr_mul(
            a, element, expr_cast(a, circle->dtype, expr_read(a, window, &k)));
    end_transform(c, &b, &t, circle, b.index[2], k, q, element);
    finish_transform(c, sum);
}

static const AttrSpec window_attrs[] = {
    {"output_datatype", ATTR_INT, false}, {"periodic", ATTR_FLAG, false}, {0}};
static const AttrSpec mel_attrs[] = {{"output_datatype", ATTR_INT, false},
                                     {0}};
static const AttrSpec dft_attrs[] = {
    {"inverse", ATTR_FLAG, false}, {"onesided", ATTR_FLAG, false}, {0}};
static const AttrSpec stft_attrs[] = {{"onesided", ATTR_FLAG, false}, {0}};

#define ROW(field, op_name, least, most, mask, specs, rule, definition,       \
            first)                                                            \
    static const Op row_##field = {.name = op_name,                           \
                                   .domain = "",                              \
                                   .min_inputs = least,                       \
                                   .max_inputs = most,                        \
                                   .min_outputs = 1,                          \
                                   .max_outputs = 1,                          \
                                   .traits = mask,                            \
                                   .attrs = specs,                            \
                                   .infer = rule,                             \
                                   .define = definition,                      \
                                   .since = first}
ROW(hann, "HannWindow", 1, 1, OP_RUNTIME_EXTENTS, window_attrs,
    infer_window_function, define_hann, 17);
ROW(hamming, "HammingWindow", 1, 1, OP_RUNTIME_EXTENTS, window_attrs,
    infer_window_function, define_hamming, 17);
ROW(blackman, "BlackmanWindow", 1, 1, OP_RUNTIME_EXTENTS, window_attrs,
    infer_window_function, define_blackman, 17);
ROW(mel, "MelWeightMatrix", 5, 5, 0, mel_attrs, infer_mel, define_mel, 17);
ROW(dft, "DFT", 1, 3, OP_REDUCTION | OP_RUNTIME_EXTENTS, dft_attrs, infer_dft,
    define_dft, 20);
ROW(stft, "STFT", 2, 4, OP_REDUCTION | OP_RUNTIME_EXTENTS, stft_attrs,
    infer_stft, define_stft, 17);

const Op *const ops_spectral[] = {&row_hann, &row_hamming, &row_blackman,
                                  &row_mel,  &row_dft,     &row_stft,
                                  NULL};
