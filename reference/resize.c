/* Resize, nearest and linear, separable by axis. Source: the operator's
 * description in ONNX, opset 19. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

typedef struct ResizeAxis {
    int64_t in, out;
    double scale;
} ResizeAxis;

static double source_position(RefCall *call, const ResizeAxis *a, int64_t o)
{
    const char *mode = attrs_string(
        call->attrs, "coordinate_transformation_mode", "half_pixel");
    double x = (double)o;

    if (strcmp(mode, "align_corners") == 0)
        return a->out == 1 ? 0
                           : x * (double)(a->in - 1) / (double)(a->out - 1);
    if (strcmp(mode, "asymmetric") == 0)
        return x / a->scale;
    if (strcmp(mode, "pytorch_half_pixel") == 0)
        return a->out > 1 ? (x + 0.5) / a->scale - 0.5 : 0;
    if (strcmp(mode, "half_pixel_symmetric") == 0) {
        double exact = (double)a->in * a->scale;
        double adjust = (double)a->out / exact, centre = (double)a->in / 2;
        return centre * (1 - adjust) + (x + 0.5) / a->scale - 0.5;
    }
    return (x + 0.5) / a->scale - 0.5;
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
    return ceil(x - 0.5);
}

static int64_t inside(double x, int64_t n)
{
    return x < 0 ? 0 : x > (double)(n - 1) ? n - 1 : (int64_t)x;
}

/* Resizes one axis of a row-major array of doubles. */
static double *resize_axis(RefCall *call, const double *x, int64_t outer,
                           int64_t inner, const ResizeAxis *a, bool linear)
{
    double *y = ARENA_ARRAY(call->scratch, double, outer * a->out * inner);

    for (int64_t o = 0; o < a->out; o++) {
        double at = source_position(call, a, o), part = 0;
        int64_t lo, hi;
        if (linear) {
            /* Beyond the edge both neighbours are the edge. */
            part = at - floor(at);
            lo = inside(floor(at), a->in);
            hi = inside(floor(at) + 1, a->in);
        } else {
            lo = hi = inside(round_nearest(call, at), a->in);
        }
        for (int64_t i = 0; i < outer; i++)
            for (int64_t k = 0; k < inner; k++) {
                double v0 = x[(i * a->in + lo) * inner + k];
                double v1 = x[(i * a->in + hi) * inner + k];
                y[(i * a->out + o) * inner + k] =
                    linear ? v0 * (1 - part) + v1 * part : v0;
            }
    }
    return y;
}

static bool read_axes(RefCall *call, const Array *x, ResizeAxis *axes)
{
    const Array *scales = ref_in(call, 2), *sizes = ref_in(call, 3);
    const char *policy =
        attrs_string(call->attrs, "keep_aspect_ratio_policy", "stretch");
    int count;
    const int64_t *list = attrs_ints(call->attrs, "axes", &count);
    bool by_size = sizes && array_count(sizes) > 0;

    for (int i = 0; i < x->rank; i++)
        axes[i] = (ResizeAxis){x->dims[i], x->dims[i], 1};
    const Array *given = by_size ? sizes : scales;
    if (!given || array_count(given) != (list ? count : x->rank))
        return ref_fail(call, "neither scales nor sizes fit the axes");
    if (by_size && strcmp(policy, "stretch") != 0)
        return ref_fail(call,
                        "keep_aspect_ratio_policy \"%s\" is not "
                        "supported",
                        policy);
    for (int64_t i = 0; i < array_count(given); i++) {
        int axis;
        if (!ref_axis(call, list ? list[i] : i, x->rank, &axis))
            return false;
        ResizeAxis *a = &axes[axis];
        if (by_size) {
            a->out = array_get_int(given, i);
            a->scale = (double)a->out / (double)a->in;
        } else {
            a->scale = array_get(given, i);
            a->out = (int64_t)floor((double)a->in * a->scale);
        }
    }
    return true;
}

bool ref_resize(RefCall *call)
{
    const char *mode = attrs_string(call->attrs, "mode", "nearest");
    bool linear = strcmp(mode, "linear") == 0;
    ResizeAxis axes[MAX_RANK];
    int64_t dims[MAX_RANK];

    if (!ref_need(call, 1) || !read_axes(call, call->in[0], axes))
        return false;
    if (!linear && strcmp(mode, "nearest") != 0)
        return ref_fail(call, "mode \"%s\" is not supported", mode);
    const Array *x = call->in[0];
    double *v = ref_doubles(call, x);
    memcpy(dims, x->dims, sizeof dims);
    for (int i = 0; i < x->rank; i++) {
        int64_t outer = 1, inner = 1;
        if (axes[i].in == axes[i].out && axes[i].scale == 1)
            continue;
        for (int k = 0; k < i; k++)
            outer *= dims[k];
        for (int k = i + 1; k < x->rank; k++)
            inner *= dims[k];
        v = resize_axis(call, v, outer, inner, &axes[i], linear);
        dims[i] = axes[i].out;
    }
    ref_store_doubles(ref_out(call, 0, x->dtype, x->rank, dims), v);
    return true;
}
