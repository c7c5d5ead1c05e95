/* Pooling. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"
#include "reference/window.h"

typedef struct Pool {
    Window w;
    bool is_max, include_pad;
    int64_t power; /* of LpPool, 0 otherwise */
} Pool;

/* One window of one plane. `best` is the position of the maximum. */
static double pool_window(const Pool *p, const double *x, const int64_t o[3],
                          int64_t *best)
{
    const Window *w = &p->w;
    double result = p->is_max ? -INFINITY : 0;
    int64_t inside = 0, padded = 0;

    *best = -1;
    for (int64_t kz = 0; kz < w->kernel[0]; kz++)
        for (int64_t ky = 0; ky < w->kernel[1]; ky++)
            for (int64_t kx = 0; kx < w->kernel[2]; kx++) {
                int64_t z = window_at(w, 0, o[0], kz);
                int64_t y = window_at(w, 1, o[1], ky);
                int64_t q = window_at(w, 2, o[2], kx);
                /* What ceil mode adds beyond the padding never counts. */
                padded += z < w->in[0] + w->hi[0] && y < w->in[1] + w->hi[1] &&
                          q < w->in[2] + w->hi[2];
                if (z < 0 || z >= w->in[0] || y < 0 || y >= w->in[1] ||
                    q < 0 || q >= w->in[2])
                    continue;
                int64_t at = (z * w->in[1] + y) * w->in[2] + q;
                inside++;
                if (p->power) {
                    result += pow(fabs(x[at]), (double)p->power);
                } else if (!p->is_max) {
                    result += x[at];
                } else if (*best < 0 || x[at] > result ||
                           (isnan(x[at]) && !isnan(result))) {
                    /* The first of equals keeps its place; a NaN beats every
                     * number. */
                    result = x[at];
                    *best = at;
                }
            }
    if (p->is_max)
        return result;
    if (p->power)
        return pow(result, 1.0 / (double)p->power);
    return result / (double)(p->include_pad ? padded : inside);
}

bool ref_pool(RefCall *call)
{
    Pool p = {.is_max = strcmp(call->op, "MaxPool") == 0,
              .include_pad = attrs_int(call->attrs, "count_include_pad", 0)};
    int kernel_count;
    const int64_t *kernel =
        attrs_ints(call->attrs, "kernel_shape", &kernel_count);

    if (strcmp(call->op, "LpPool") == 0)
        p.power = attrs_int(call->attrs, "p", 2);
    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (x->rank != kernel_count + 2)
        return ref_fail(call, "kernel_shape has %d extents for rank %d",
                        kernel_count, x->rank);
    if (!window_read(call, x, kernel, kernel_count, &p.w))
        return false;
    int64_t dims[MAX_RANK] = {x->dims[0], x->dims[1]};
    for (int i = 2; i < x->rank; i++)
        dims[i] = p.w.out[3 - kernel_count + i - 2];
    Array *y = ref_out(call, 0, x->dtype, x->rank, dims);
    Array *indices =
        call->out_count > 1 ? ref_out(call, 1, DT_I64, x->rank, dims) : NULL;
    bool by_column = attrs_int(call->attrs, "storage_order", 0) != 0;
    double *vx = ref_doubles(call, x);
    int64_t plane = p.w.in[0] * p.w.in[1] * p.w.in[2], at = 0;
    for (int64_t c = 0; c < x->dims[0] * x->dims[1]; c++)
        for (int64_t oz = 0; oz < p.w.out[0]; oz++)
            for (int64_t oy = 0; oy < p.w.out[1]; oy++)
                for (int64_t ox = 0; ox < p.w.out[2]; ox++, at++) {
                    int64_t o[3] = {oz, oy, ox}, best;
                    double v = pool_window(&p, vx + c * plane, o, &best);
                    array_set(y, at, v);
                    /* The first axis innermost where asked for. */
                    if (by_column) {
                        int64_t q = best % p.w.in[2], r = best / p.w.in[2];
                        best = (q * p.w.in[1] + r % p.w.in[1]) * p.w.in[0] +
                               r / p.w.in[1];
                    }
                    if (indices)
                        array_set_int(indices, at, c * plane + best);
                }
    return true;
}

bool ref_global_pool(RefCall *call)
{
    bool is_max = strcmp(call->op, "GlobalMaxPool") == 0;
    bool is_norm = strcmp(call->op, "GlobalLpPool") == 0;
    double power = (double)attrs_int(call->attrs, "p", 2);
    int64_t dims[MAX_RANK], plane = 1;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (x->rank < 2)
        return ref_fail(call, "rank %d; at least 2 is needed", x->rank);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = i < 2 ? x->dims[i] : 1;
        plane *= i < 2 ? 1 : x->dims[i];
    }
    Array *y = ref_out(call, 0, x->dtype, x->rank, dims);
    double *vx = ref_doubles(call, x);
    for (int64_t c = 0; c < x->dims[0] * x->dims[1]; c++) {
        double result = is_max ? -INFINITY : 0;
        for (int64_t i = 0; i < plane; i++) {
            double v = vx[c * plane + i];
            if (!is_max)
                result += is_norm ? pow(fabs(v), power) : v;
            else if (v > result || isnan(v))
                result = v;
            if (is_max && isnan(result))
                break;
        }
        array_set(y, c,
                  is_max    ? result
                  : is_norm ? pow(result, 1 / power)
                            : result / (double)plane);
    }
    return true;
}
