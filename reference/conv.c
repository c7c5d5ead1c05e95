/* Convolution: im2col and a double matrix product, by blocks of output
 * pixels so that memory stays bounded; depthwise ones directly. One, two or
 * three spatial axes; one and two are treated as three with extent 1. */
#include <cblas.h>
#include <string.h>

#include "reference/internal.h"
#include "reference/window.h"

/* 16 MiB of columns: large enough that the product runs at full speed. */
enum { MAX_COLUMN_DOUBLES = 2 << 20 };

bool window_read(RefCall *call, const Array *x, const int64_t *kernel,
                 int spatial, Window *w)
{
    int n_stride, n_dilation, n_pad;
    const int64_t *strides = attrs_ints(call->attrs, "strides", &n_stride);
    const int64_t *dilations =
        attrs_ints(call->attrs, "dilations", &n_dilation);
    const int64_t *pads = attrs_ints(call->attrs, "pads", &n_pad);
    const char *auto_pad = attrs_string(call->attrs, "auto_pad", "NOTSET");
    bool same = strncmp(auto_pad, "SAME", 4) == 0;
    bool valid = strcmp(auto_pad, "VALID") == 0;
    bool ceil_mode = attrs_int(call->attrs, "ceil_mode", 0) != 0;

    if (spatial < 1 || spatial > 3)
        return ref_fail(call, "%d spatial axes; 1 to 3 are supported",
                        spatial);
    for (int a = 0; a < 3; a++) {
        /* The given axes are the last ones of the three; those in front have
         * extent 1, which changes nothing. */
        int i = a - (3 - spatial);
        w->in[a] = w->kernel[a] = w->stride[a] = w->dilation[a] = w->out[a] =
            1;
        w->lo[a] = w->hi[a] = 0;
        if (i < 0)
            continue;
        w->in[a] = x->dims[2 + i];
        w->kernel[a] = kernel[i];
        w->stride[a] = i < n_stride ? strides[i] : 1;
        w->dilation[a] = i < n_dilation ? dilations[i] : 1;
        int64_t span = (w->kernel[a] - 1) * w->dilation[a] + 1;
        if (same) {
            w->out[a] = (w->in[a] + w->stride[a] - 1) / w->stride[a];
            int64_t pad = (w->out[a] - 1) * w->stride[a] + span - w->in[a];
            pad = pad > 0 ? pad : 0;
            /* An odd pixel of padding goes to the end, or to the start for
             * SAME_LOWER. */
            bool upper = strcmp(auto_pad, "SAME_LOWER") != 0;
            w->lo[a] = upper ? pad / 2 : pad - pad / 2;
            w->hi[a] = pad - w->lo[a];
            continue;
        }
        if (!valid && n_pad == 2 * spatial) {
            w->lo[a] = pads[i];
            w->hi[a] = pads[spatial + i];
        }
        int64_t room = w->in[a] + w->lo[a] + w->hi[a] - span;
        if (room < 0)
            return ref_fail(call, "the window is larger than the input");
        w->out[a] = room / w->stride[a] + 1;
        if (ceil_mode && room % w->stride[a] != 0) {
            w->out[a]++;
            /* No window may start in the padding at the end. */
            if ((w->out[a] - 1) * w->stride[a] >= w->in[a] + w->lo[a])
                w->out[a]--;
        }
    }
    return true;
}

/* Columns [first, first + count) of output pixels: one row a tap. */
static void im2col(const Window *w, const double *x, int64_t channels,
                   int64_t first, int64_t count, double *columns)
{
    int64_t plane = w->in[0] * w->in[1] * w->in[2];
    double *to = columns;

    for (int64_t c = 0; c < channels; c++)
        for (int64_t kz = 0; kz < w->kernel[0]; kz++)
            for (int64_t ky = 0; ky < w->kernel[1]; ky++)
                for (int64_t kx = 0; kx < w->kernel[2]; kx++)
                    for (int64_t p = first; p < first + count; p++) {
                        int64_t ox = p % w->out[2];
                        int64_t oy = p / w->out[2] % w->out[1];
                        int64_t oz = p / w->out[2] / w->out[1];
                        int64_t z = window_at(w, 0, oz, kz);
                        int64_t y = window_at(w, 1, oy, ky);
                        int64_t q = window_at(w, 2, ox, kx);
                        bool inside = z >= 0 && z < w->in[0] && y >= 0 &&
                                      y < w->in[1] && q >= 0 && q < w->in[2];
                        *to++ = inside ? x[c * plane +
                                           (z * w->in[1] + y) * w->in[2] + q]
                                       : 0;
                    }
}

/* One channel in, one out. im2col would copy each pixel once a tap for a
 * product with a single row. */
static void direct(const Window *w, const double *x, const double *weights,
                   double *out)
{
    int64_t p = 0;

    for (int64_t oz = 0; oz < w->out[0]; oz++)
        for (int64_t oy = 0; oy < w->out[1]; oy++)
            for (int64_t ox = 0; ox < w->out[2]; ox++, p++) {
                double sum = 0;
                const double *k = weights;
                for (int64_t kz = 0; kz < w->kernel[0]; kz++)
                    for (int64_t ky = 0; ky < w->kernel[1]; ky++)
                        for (int64_t kx = 0; kx < w->kernel[2]; kx++, k++) {
                            int64_t z = window_at(w, 0, oz, kz);
                            int64_t y = window_at(w, 1, oy, ky);
                            int64_t q = window_at(w, 2, ox, kx);
                            if (z >= 0 && z < w->in[0] && y >= 0 &&
                                y < w->in[1] && q >= 0 && q < w->in[2])
                                sum +=
                                    *k * x[(z * w->in[1] + y) * w->in[2] + q];
                        }
                out[p] = sum;
            }
}

bool ref_conv(RefCall *call)
{
    Window w;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *weights = call->in[1];
    const Array *bias = ref_in(call, 2);
    int64_t groups = attrs_int(call->attrs, "group", 1);
    if (x->rank != weights->rank || x->rank < 3)
        return ref_fail(call, "input of rank %d and weights of rank %d",
                        x->rank, weights->rank);
    int64_t batch = x->dims[0], c_in = x->dims[1], c_out = weights->dims[0];
    if (groups < 1 || c_in != weights->dims[1] * groups || c_out % groups)
        return ref_fail(call, "%lld channels do not fit the weights",
                        (long long)c_in);
    if (!window_read(call, x, weights->dims + 2, x->rank - 2, &w))
        return false;
    int64_t dims[MAX_RANK] = {batch, c_out};
    for (int i = 2; i < x->rank; i++)
        dims[i] = w.out[3 - (x->rank - 2) + i - 2];
    Array *y = ref_out(call, 0, x->dtype, x->rank, dims);
    double *vx = ref_doubles(call, x), *vw = ref_doubles(call, weights);
    int64_t plane = w.in[0] * w.in[1] * w.in[2];
    int64_t pixels = w.out[0] * w.out[1] * w.out[2];
    int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
    int64_t g_in = c_in / groups, g_out = c_out / groups;
    int64_t depth = g_in * taps;
    int64_t block = MAX_COLUMN_DOUBLES / (depth > 0 ? depth : 1);
    block = block < 1 ? 1 : block > pixels ? pixels : block;
    double *columns = ARENA_ARRAY(call->scratch, double, block *depth);
    double *out = ARENA_ARRAY(call->scratch, double, array_count(y));
    for (int64_t n = 0; n < batch; n++)
        for (int64_t g = 0; g < groups; g++) {
            const double *gx = vx + (n * c_in + g * g_in) * plane;
            const double *gw = vw + g * g_out * depth;
            double *gy = out + (n * c_out + g * g_out) * pixels;
            /* Depthwise. */
            if (g_in == 1 && g_out <= 2) {
                for (int64_t o = 0; o < g_out; o++)
                    direct(&w, gx, gw + o * depth, gy + o * pixels);
                continue;
            }
            for (int64_t p = 0; p < pixels; p += block) {
                int64_t count = p + block < pixels ? block : pixels - p;
                im2col(&w, gx, g_in, p, count, columns);
                cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans,
                            (int)g_out, (int)count, (int)depth, 1, gw,
                            (int)depth, columns, (int)count, 0, gy + p,
                            (int)pixels);
            }
        }
    if (bias)
        for (int64_t i = 0; i < batch * c_out; i++)
            for (int64_t p = 0; p < pixels; p++)
                out[i * pixels + p] += array_get(bias, i % c_out);
    ref_store_doubles(y, out);
    return true;
}

/* Output extent and padding of a transposed convolution's axis. */
static void transpose_axis(RefCall *call, Window *w, int a, int i, int spatial)
{
    int count;
    const char *auto_pad = attrs_string(call->attrs, "auto_pad", "NOTSET");
    const int64_t *extra = attrs_ints(call->attrs, "output_padding", &count);
    int64_t span = (w->kernel[a] - 1) * w->dilation[a] + 1;
    int64_t full = w->stride[a] * (w->in[a] - 1) + span +
                   (extra && i < count ? extra[i] : 0);
    const int64_t *shape = attrs_ints(call->attrs, "output_shape", &count);
    const int64_t *pads = attrs_ints(call->attrs, "pads", &count);

    if (shape || strncmp(auto_pad, "SAME", 4) == 0) {
        /* The output is fixed, and the padding is what is too much. */
        w->out[a] = shape ? shape[i] : w->in[a] * w->stride[a];
        int64_t total = full - w->out[a] > 0 ? full - w->out[a] : 0;
        bool upper = strcmp(auto_pad, "SAME_UPPER") == 0;
        w->lo[a] = upper ? total / 2 : total - total / 2;
        return;
    }
    w->lo[a] = pads && count == 2 * spatial ? pads[i] : 0;
    w->out[a] = full - w->lo[a] -
                (pads && count == 2 * spatial ? pads[spatial + i] : 0);
}

/* Adds one input channel's plane into one output channel's. A transposed
 * convolution sends each input pixel to where a convolution of the same
 * window would have read it from: written so, it shares nothing with the
 * compiler's definition, which gathers. */
static void scatter(const Window *w, const double *x, const double *k,
                    double *y)
{
    int64_t o[3], in = w->in[0] * w->in[1] * w->in[2];
    int64_t taps = w->kernel[0] * w->kernel[1] * w->kernel[2];

    for (int64_t p = 0; p < in; p++) {
        int64_t at[3] = {p / w->in[2] / w->in[1], p / w->in[2] % w->in[1],
                         p % w->in[2]};
        for (int64_t t = 0; t < taps; t++) {
            int64_t tap[3] = {t / w->kernel[2] / w->kernel[1],
                              t / w->kernel[2] % w->kernel[1],
                              t % w->kernel[2]};
            bool inside = true;
            for (int a = 0; a < 3; a++) {
                o[a] = window_at(w, a, at[a], tap[a]);
                inside &= o[a] >= 0 && o[a] < w->out[a];
            }
            if (inside)
                y[(o[0] * w->out[1] + o[1]) * w->out[2] + o[2]] += x[p] * k[t];
        }
    }
}

/* The adjoint of Conv: weights are [channels in, channels out / groups,
 * kernel]. */
bool ref_conv_transpose(RefCall *call)
{
    int n_stride, n_dilation;
    const int64_t *strides = attrs_ints(call->attrs, "strides", &n_stride);
    const int64_t *dilations =
        attrs_ints(call->attrs, "dilations", &n_dilation);
    int64_t groups = attrs_int(call->attrs, "group", 1);
    Window w;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *weights = call->in[1];
    const Array *bias = ref_in(call, 2);
    int spatial = x->rank - 2;
    if (spatial < 1 || spatial > 3 || weights->rank != x->rank ||
        weights->dims[0] != x->dims[1] || groups < 1 || x->dims[1] % groups)
        return ref_fail(call, "weights do not fit the input");
    int64_t c_in = x->dims[1], g_in = c_in / groups;
    int64_t g_out = weights->dims[1], c_out = g_out * groups;
    int64_t dims[MAX_RANK] = {x->dims[0], c_out};
    for (int a = 0; a < 3; a++) {
        int i = a - (3 - spatial);
        w.in[a] = w.out[a] = w.kernel[a] = w.stride[a] = w.dilation[a] = 1;
        w.lo[a] = w.hi[a] = 0;
        if (i < 0)
            continue;
        w.in[a] = x->dims[2 + i];
        w.kernel[a] = weights->dims[2 + i];
        w.stride[a] = i < n_stride ? strides[i] : 1;
        w.dilation[a] = i < n_dilation ? dilations[i] : 1;
        transpose_axis(call, &w, a, i, spatial);
        dims[2 + i] = w.out[a];
    }
    Array *y = ref_out(call, 0, x->dtype, x->rank, dims);
    double *vx = ref_doubles(call, x), *vw = ref_doubles(call, weights);
    double *out = ARENA_ARRAY(call->scratch, double, array_count(y));
    int64_t in_plane = w.in[0] * w.in[1] * w.in[2];
    int64_t out_plane = w.out[0] * w.out[1] * w.out[2];
    int64_t taps = w.kernel[0] * w.kernel[1] * w.kernel[2];
    for (int64_t n = 0; n < x->dims[0]; n++)
        for (int64_t c = 0; c < c_in; c++)
            for (int64_t k = 0; k < g_out; k++)
                scatter(&w, vx + (n * c_in + c) * in_plane,
                        vw + (c * g_out + k) * taps,
                        out + (n * c_out + c / g_in * g_out + k) * out_plane);
    for (int64_t i = 0; bias && i < array_count(y); i++)
        out[i] += array_get(bias, i / out_plane % c_out);
    ref_store_doubles(y, out);
    return true;
}
