/* Resize, separable by axis. Source: the operator's description in ONNX,
 * opset 19, and the figures of its test cases. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

typedef struct ResizeAxis {
    int64_t in, out;
    double scale;
    double start, end; /* region of interest, as shares of the extent */
    bool changes;
} ResizeAxis;

typedef enum ResizeMode { NEAREST, LINEAR, CUBIC } ResizeMode;

/* Source elements and their weights. */
typedef struct Taps {
    int64_t count, *at;
    double *weight;
    bool outside; /* the extrapolation value instead */
} Taps;

/* After each step: what is cut to whole elements depends on the last bit, and
 * implementations of the standard have f32. */
static double narrow(bool single, double x)
{
    return single ? (double)(float)x : x;
}

static double half_pixel(const ResizeAxis *a, double x, bool single)
{
    return narrow(single,
                  narrow(single, (x + 0.5) / narrow(single, a->scale)) - 0.5);
}

static double source_position(RefCall *call, const ResizeAxis *a, int64_t o,
                              bool single)
{
    const char *mode = attrs_string(
        call->attrs, "coordinate_transformation_mode", "half_pixel");
    double x = (double)o, in = (double)a->in, out = (double)a->out;
    double scale = narrow(single, a->scale);

    if (strcmp(mode, "align_corners") == 0)
        return a->out == 1
                   ? 0
                   : narrow(single, narrow(single, x * (in - 1)) / (out - 1));
    if (strcmp(mode, "asymmetric") == 0)
        return narrow(single, x / scale);
    if (strcmp(mode, "pytorch_half_pixel") == 0)
        return a->out > 1 ? half_pixel(a, x, single) : 0;
    if (strcmp(mode, "tf_half_pixel_for_nn") == 0)
        return narrow(single, (x + 0.5) / scale);
    if (strcmp(mode, "tf_crop_and_resize") == 0) {
        double span = narrow(single, a->end - a->start);
        if (a->out == 1)
            return 0.5 * (a->start + a->end) * (in - 1);
        span = narrow(single, narrow(single, x * span) * (in - 1));
        return narrow(single, narrow(single, a->start * (in - 1)) +
                                  narrow(single, span / (out - 1)));
    }
    if (strcmp(mode, "half_pixel_symmetric") == 0) {
        /* The length before rounding to whole elements. */
        double adjust = narrow(single, out / narrow(single, in * scale));
        double offset = narrow(single, in / 2 * narrow(single, 1 - adjust));
        double x_scaled = narrow(single, (x + 0.5) / scale);
        return narrow(single, narrow(single, offset + x_scaled) - 0.5);
    }
    return half_pixel(a, x, single);
}

static double round_nearest(RefCall *call, double x)
{
    const char *mode =
        attrs_string(call->attrs, "nearest_mode", "round_prefer_floor");

    if (strcmp(mode, "floor") == 0)
        return floor(x);
    if (strcmp(mode, "ceil") == 0)
        return ceil(x);
    if (strcmp(mode, "round_prefer_ceil") == 0)
        return floor(x + 0.5);
    /* round_prefer_floor: halves go down. */
    return ceil(x - 0.5);
}

static int64_t inside(double x, int64_t n)
{
    return x < 0 ? 0 : x > (double)(n - 1) ? n - 1 : (int64_t)x;
}

/* Keys' kernel at distance d. */
static double cubic_weight(double a, double d)
{
    d = fabs(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static Taps find_taps(RefCall *call, const ResizeAxis *a, ResizeMode mode,
                      int64_t o)
{
    double at = source_position(call, a, o, mode == NEAREST);
    double base = floor(at), sum = 0;
    bool exclude = attrs_int(call->attrs, "exclude_outside", 0) != 0;
    double cubic_a = attrs_float(call->attrs, "cubic_coeff_a", -0.75);
    Taps t = {0};

    if (strcmp(attrs_string(call->attrs, "coordinate_transformation_mode", ""),
               "tf_crop_and_resize") == 0) {
        double place = source_position(call, a, o, true);
        t.outside = place < 0 || place > (double)(a->in - 1);
    }
    /* A kernel as wide as an element of the result, so that every source
     * element counts. */
    double scale = 1, reach = mode == CUBIC ? 2 : 1;
    if (attrs_int(call->attrs, "antialias", 0) && a->scale < 1)
        scale = a->scale;
    int64_t first = mode == NEAREST ? 0 : (int64_t)floor(-reach / scale) + 1;
    t.count = mode == NEAREST ? 1 : 2 - 2 * first;
    t.at = ARENA_ARRAY(call->scratch, int64_t, t.count);
    t.weight = ARENA_ARRAY(call->scratch, double, t.count);
    if (mode == NEAREST) {
        t.at[0] = inside(round_nearest(call, at), a->in);
        t.weight[0] = 1;
        return t;
    }
    for (int64_t i = 0; i < t.count; i++) {
        double place = base + (double)(i + first);
        double distance = fabs(at - place) * scale;
        bool out = place < 0 || place > (double)(a->in - 1);
        /* Beyond the edge is the edge. */
        t.at[i] = inside(place, a->in);
        t.weight[i] = mode == LINEAR ? fmax(0, 1 - distance)
                                     : cubic_weight(cubic_a, distance);
        /* Its weight goes to the others in the division below. */
        if (exclude && out)
            t.weight[i] = 0;
        sum += t.weight[i];
    }
    for (int64_t i = 0; i < t.count; i++)
        t.weight[i] /= sum;
    return t;
}

/* Resizes one axis of a row-major array of doubles. */
static double *resize_axis(RefCall *call, const double *x, int64_t outer,
                           int64_t inner, const ResizeAxis *a, ResizeMode mode)
{
    double *y = ARENA_ARRAY(call->scratch, double, outer * a->out * inner);
    double beyond = attrs_float(call->attrs, "extrapolation_value", 0);

    for (int64_t o = 0; o < a->out; o++) {
        Taps t = find_taps(call, a, mode, o);
        for (int64_t i = 0; i < outer; i++)
            for (int64_t k = 0; k < inner; k++) {
                double v = 0;
                for (int64_t n = 0; n < t.count && !t.outside; n++)
                    v += t.weight[n] * x[(i * a->in + t.at[n]) * inner + k];
                /* A weight of 1 must not turn infinity into NaN. */
                if (t.count == 1)
                    v = x[(i * a->in + t.at[0]) * inner + k];
                y[(i * a->out + o) * inner + k] = t.outside ? beyond : v;
            }
    }
    return y;
}

/* One scale for all resized axes, so that proportions stay. */
static void keep_aspect(const char *policy, ResizeAxis *axes, int rank)
{
    bool larger = strcmp(policy, "not_smaller") == 0;
    double scale = 0;

    for (int i = 0; i < rank; i++)
        if (axes[i].changes &&
            (scale == 0 || (axes[i].scale > scale) == larger))
            scale = axes[i].scale;
    for (int i = 0; i < rank; i++)
        if (axes[i].changes) {
            axes[i].scale = scale;
            axes[i].out = (int64_t)floor(scale * (double)axes[i].in + 0.5);
        }
}

static bool read_axes(RefCall *call, const Array *x, ResizeAxis *axes)
{
    const Array *roi = ref_in(call, 1), *scales = ref_in(call, 2);
    const Array *sizes = ref_in(call, 3);
    const char *policy =
        attrs_string(call->attrs, "keep_aspect_ratio_policy", "stretch");
    int count;
    const int64_t *list = attrs_ints(call->attrs, "axes", &count);
    bool by_size = sizes && array_count(sizes) > 0;

    for (int i = 0; i < x->rank; i++)
        axes[i] = (ResizeAxis){x->dims[i], x->dims[i], 1, 0, 1, false};
    const Array *given = by_size ? sizes : scales;
    int64_t n = given ? array_count(given) : 0;
    if (n == 0 || n != (list ? count : x->rank))
        return ref_fail(call, "neither scales nor sizes fit the axes");
    for (int64_t i = 0; i < n; i++) {
        int axis;
        if (!ref_axis(call, list ? list[i] : i, x->rank, &axis))
            return false;
        ResizeAxis *a = &axes[axis];
        a->changes = true;
        if (roi && array_count(roi) == 2 * n) {
            a->start = array_get(roi, i);
            a->end = array_get(roi, n + i);
        }
        if (by_size) {
            a->out = array_get_int(given, i);
            a->scale = (double)a->out / (double)a->in;
        } else {
            a->scale = array_get(given, i);
            a->out = (int64_t)floorf((float)a->in * (float)a->scale);
        }
    }
    if (by_size && strcmp(policy, "stretch") != 0)
        keep_aspect(policy, axes, x->rank);
    return true;
}

bool ref_resize(RefCall *call)
{
    const char *name = attrs_string(call->attrs, "mode", "nearest");
    const char *coordinates =
        attrs_string(call->attrs, "coordinate_transformation_mode", "");
    bool crop = strcmp(coordinates, "tf_crop_and_resize") == 0;
    ResizeMode mode = strcmp(name, "linear") == 0  ? LINEAR
                      : strcmp(name, "cubic") == 0 ? CUBIC
                                                   : NEAREST;
    ResizeAxis axes[MAX_RANK];
    int64_t dims[MAX_RANK];

    if (!ref_need(call, 1) || !read_axes(call, call->in[0], axes))
        return false;
    const Array *x = call->in[0];
    double *v = ref_doubles(call, x);
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < x->rank; i++) {
        int64_t outer = 1, inner = 1;
        bool same = axes[i].in == axes[i].out && axes[i].scale == 1;
        if (!axes[i].changes || (same && !crop))
            continue;
        for (int k = 0; k < i; k++)
            outer *= dims[k];
        for (int k = i + 1; k < x->rank; k++)
            inner *= dims[k];
        v = resize_axis(call, v, outer, inner, &axes[i], mode);
        dims[i] = axes[i].out;
    }
    ref_store_doubles(ref_out(call, 0, x->dtype, x->rank, dims), v);
    return true;
}
