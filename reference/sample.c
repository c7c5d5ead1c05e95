/* Oracles of sampling between elements, in double. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

bool ref_affine_grid(RefCall *call)
{
    bool align = attrs_int(call->attrs, "align_corners", 0) != 0;
    int64_t dims[MAX_RANK];

    if (!ref_need(call, 2))
        return false;
    const Array *theta = call->in[0], *size = call->in[1];
    int axes = (int)array_count(size) - 2;
    if (axes < 2 || axes > 3 || theta->rank != 3)
        return ref_fail(call, "size must be 4 or 5 integers");
    dims[0] = theta->dims[0];
    for (int i = 1; i <= axes; i++)
        dims[i] = array_get_int(size, i + 1);
    dims[axes + 1] = axes;
    Array *y = ref_out(call, 0, theta->dtype, axes + 2, dims);
    for (int64_t i = 0; i < array_count(y); i++) {
        int64_t row = i % axes, rest = i / axes;
        double place[4] = {0, 0, 0, 0}, sum = 0;
        place[axes] = 1;
        for (int k = 0; k < axes; k++) { /* x first, along the last axis */
            int64_t n = dims[axes - k], at = rest % n;
            place[k] = align ? n > 1 ? 2 * (double)at / (double)(n - 1) - 1 : 0
                             : (2 * (double)at + 1) / (double)n - 1;
            rest /= n;
        }
        for (int k = 0; k <= axes; k++)
            sum += place[k] *
                   array_get(theta, (rest * axes + row) * (axes + 1) + k);
        array_set(y, i, sum);
    }
    return true;
}

typedef struct Grid {
    const Array *x;
    const double *values;
    char mode, padding; /* first letters */
    bool align;
    int axes;
} Grid;

static double reflect(double x, double lo, double hi)
{
    if (hi <= lo)
        return lo;
    while (isfinite(x) && (x < lo || x > hi)) {
        double turns = floor((x - lo) / (2 * (hi - lo)));
        x -= turns * 2 * (hi - lo);
        if (x > hi)
            x = 2 * hi - x;
    }
    return x;
}

static double grid_place(const Grid *g, double v, int64_t n)
{
    double lo = g->align ? 0 : -0.5, hi = (double)(n - 1) - lo;
    double x = g->align ? (v + 1) / 2 * (double)(n - 1)
                        : ((v + 1) * (double)n - 1) / 2;

    if (g->mode == 'n')
        x = nearbyint(x);
    if (g->padding == 'r')
        return reflect(x, lo, hi);
    if (g->padding == 'b' && (x < lo || x > hi))
        return x < lo ? 0 : (double)(n - 1);
    return x;
}

/* The element at a whole place; false where it is padding of zeros. */
static bool grid_element(const Grid *g, double at, int64_t n, int64_t *place)
{
    double lo = g->align ? 0 : -0.5;

    if (g->padding == 'r')
        at = reflect(at, lo, (double)(n - 1) - lo);
    if (g->padding != 'z')
        at = at < 0 ? 0 : at > (double)(n - 1) ? (double)(n - 1) : at;
    if (!(at >= 0 && at <= (double)(n - 1)))
        return false;
    *place = (int64_t)at;
    return true;
}

static double keys(double d)
{
    const double a = -0.75;

    d = fabs(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* The value at place[] of the axes from `axis` on; `offset` is the element
 * that the axes before chose. */
static double grid_value(const Grid *g, const double *place, int axis,
                         int64_t offset)
{
    double base, sum = 0;
    int64_t at;

    if (axis == g->axes)
        return g->values[offset];
    int64_t n = g->x->dims[2 + axis];
    if (g->mode == 'n')
        return grid_element(g, place[axis], n, &at)
                   ? grid_value(g, place, axis + 1, offset * n + at)
                   : 0;
    base = floor(place[axis]);
    int first = g->mode == 'l' ? 0 : -1, last = g->mode == 'l' ? 1 : 2;
    for (int i = first; i <= last; i++) {
        double d = place[axis] - base - i;
        double weight = g->mode == 'l' ? 1 - fabs(d) : keys(d);
        if (grid_element(g, base + i, n, &at))
            sum += weight * grid_value(g, place, axis + 1, offset * n + at);
    }
    return sum;
}

bool ref_grid_sample(RefCall *call)
{
    const char *mode = attrs_string(call->attrs, "mode", "linear");
    const char *padding = attrs_string(call->attrs, "padding_mode", "zeros");
    int64_t dims[MAX_RANK], points = 1;
    double place[MAX_RANK];

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *grid = call->in[1];
    Grid g = {x,
              ref_doubles(call, x),
              mode[0],
              padding[0],
              attrs_int(call->attrs, "align_corners", 0) != 0,
              x->rank - 2};
    if (!strncmp(mode, "bi", 2))
        g.mode = mode[2];
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int i = 2; i < x->rank; i++) {
        dims[i] = grid->dims[i - 1];
        points *= dims[i];
    }
    Array *y = ref_out(call, 0, x->dtype, x->rank, dims);
    for (int64_t i = 0; i < array_count(y); i++) {
        int64_t point = i % points, plane = i / points;
        int64_t at = (plane / x->dims[1] * points + point) * g.axes;
        for (int k = 0; k < g.axes; k++)
            place[k] = grid_place(&g, array_get(grid, at + g.axes - 1 - k),
                                  x->dims[2 + k]);
        double v = grid_value(&g, place, 0, plane);
        if (dtype_is_float(x->dtype))
            array_set(y, i, v);
        else
            array_set_int(y, i, (int64_t)v);
    }
    return true;
}

/* The four elements around a place, weighted, and how they join. */
static double bilinear(const double *plane, int64_t h, int64_t w, double y,
                       double x, bool is_max)
{
    int64_t top = (int64_t)y, left = (int64_t)x;
    int64_t bottom = top + 1 < h ? top + 1 : h - 1;
    int64_t right = left + 1 < w ? left + 1 : w - 1;
    double dy = y - (double)top, dx = x - (double)left;
    double v[4] = {(1 - dy) * (1 - dx) * plane[top * w + left],
                   (1 - dy) * dx * plane[top * w + right],
                   dy * (1 - dx) * plane[bottom * w + left],
                   dy * dx * plane[bottom * w + right]};

    if (is_max)
        return fmax(fmax(v[0], v[1]), fmax(v[2], v[3]));
    return v[0] + v[1] + v[2] + v[3];
}

typedef struct Roi {
    double start[2], bin[2];
    int64_t samples[2];
    bool is_max;
} Roi;

static double roi_value(const Roi *r, const double *plane, int64_t h,
                        int64_t w, int64_t oy, int64_t ox)
{
    double result = 0;
    bool any = false;

    for (int64_t i = 0; i < r->samples[0]; i++)
        for (int64_t k = 0; k < r->samples[1]; k++) {
            double y = r->start[0] + (double)oy * r->bin[0] +
                       ((double)i + 0.5) * r->bin[0] / (double)r->samples[0];
            double x = r->start[1] + (double)ox * r->bin[1] +
                       ((double)k + 0.5) * r->bin[1] / (double)r->samples[1];
            double v = 0;
            if (y >= -1 && y <= (double)h && x >= -1 && x <= (double)w) {
                y = fmin(fmax(y, 0), (double)(h - 1));
                x = fmin(fmax(x, 0), (double)(w - 1));
                v = bilinear(plane, h, w, y, x, r->is_max);
            }
            result = !r->is_max ? result + v : any && v < result ? result : v;
            any = true;
        }
    if (r->is_max || r->samples[0] * r->samples[1] < 1)
        return result;
    return result / (double)(r->samples[0] * r->samples[1]);
}

bool ref_roi_align(RefCall *call)
{
    const char *how = attrs_string(
        call->attrs, "coordinate_transformation_mode", "half_pixel");
    bool half = !strcmp(how, "half_pixel");
    double scale = attrs_float(call->attrs, "spatial_scale", 1);
    int64_t ratio = attrs_int(call->attrs, "sampling_ratio", 0);
    Roi r = {.is_max =
                 !strcmp(attrs_string(call->attrs, "mode", "avg"), "max")};

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0], *rois = call->in[1];
    int64_t dims[4] = {rois->dims[0], x->dims[1],
                       attrs_int(call->attrs, "output_height", 1),
                       attrs_int(call->attrs, "output_width", 1)};
    Array *y = ref_out(call, 0, x->dtype, 4, dims);
    double *values = ref_doubles(call, x);
    for (int64_t i = 0; i < array_count(y); i++) {
        int64_t ox = i % dims[3], oy = i / dims[3] % dims[2];
        int64_t channel = i / dims[3] / dims[2] % dims[1];
        int64_t n = i / dims[3] / dims[2] / dims[1];
        int64_t batch = array_get_int(call->in[2], n);
        if (batch < 0 || batch >= x->dims[0])
            return ref_fail(call, "batch %lld", (long long)batch);
        for (int k = 0; k < 2; k++) { /* rois hold x before y */
            double from = array_get(rois, n * 4 + 1 - k) * scale;
            double to = array_get(rois, n * 4 + 3 - k) * scale;
            double size = to - from;
            r.start[k] = from - (half ? 0.5 : 0);
            if (!half && size < 1)
                size = 1;
            r.bin[k] = size / (double)dims[2 + k];
            r.samples[k] = ratio > 0 ? ratio : (int64_t)ceil(r.bin[k]);
        }
        const double *plane =
            values + (batch * x->dims[1] + channel) * x->dims[2] * x->dims[3];
        array_set(y, i, roi_value(&r, plane, x->dims[2], x->dims[3], oy, ox));
    }
    return true;
}
