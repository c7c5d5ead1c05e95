/* The oracle of DeformConv, in double. */
#include <math.h>

#include "reference/internal.h"
#include "reference/window.h"

/* Between four elements; outside of the plane is zero. */
static double sample(const double *plane, int64_t h, int64_t w, double y,
                     double x)
{
    double sum = 0;

    for (int i = 0; i < 4; i++) {
        double py = floor(y) + i / 2, px = floor(x) + i % 2;
        if (py >= 0 && py < (double)h && px >= 0 && px < (double)w)
            sum += (1 - fabs(y - py)) * (1 - fabs(x - px)) *
                   plane[(int64_t)py * w + (int64_t)px];
    }
    return sum;
}

bool ref_deform_conv(RefCall *call)
{
    Window w;
    int64_t group = attrs_int(call->attrs, "group", 1);
    int64_t offsets = attrs_int(call->attrs, "offset_group", 1);

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0], *k = call->in[1], *offset = call->in[2];
    const Array *bias = ref_in(call, 3), *mask = ref_in(call, 4);
    if (x->rank != 4 || k->rank != 4 ||
        !window_read(call, x, &k->dims[2], 2, &w))
        return call->error || ref_fail(call, "rank");
    int64_t kh = k->dims[2], kw = k->dims[3], each = k->dims[1];
    int64_t dims[4] = {x->dims[0], k->dims[0], w.out[1], w.out[2]};
    int64_t area = dims[2] * dims[3], taps = offsets * kh * kw;
    Array *y = ref_out(call, 0, x->dtype, 4, dims);
    double *vx = ref_doubles(call, x), *vk = ref_doubles(call, k);
    for (int64_t i = 0; i < array_count(y); i++) {
        int64_t p = i % area, o = i / area % dims[1], n = i / area / dims[1];
        double sum = bias ? array_get(bias, o) : 0;
        for (int64_t t = 0; t < each * kh * kw; t++) {
            int64_t in = t / (kh * kw), tap = t % (kh * kw);
            int64_t channel = o / (dims[1] / group) * each + in;
            int64_t at = channel / (x->dims[1] / offsets) * kh * kw + tap;
            double place[2];
            for (int a = 0; a < 2; a++)
                place[a] =
                    (double)window_at(&w, 1 + a, a ? p % dims[3] : p / dims[3],
                                      a ? tap % kw : tap / kw) +
                    array_get(offset, ((n * taps + at) * 2 + a) * area + p);
            const double *plane =
                vx + (n * x->dims[1] + channel) * x->dims[2] * x->dims[3];
            double v =
                vk[o * each * kh * kw + t] *
                sample(plane, x->dims[2], x->dims[3], place[0], place[1]);
            sum += mask ? v * array_get(mask, (n * taps + at) * area + p) : v;
        }
        array_set(y, i, sum);
    }
    return true;
}
