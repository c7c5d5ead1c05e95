/* Normalizations and softmax. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

/* Mean and variance of each channel of v, [N, channels, plane]. */
static void channel_moments(const double *v, int64_t n, int64_t channels,
                            int64_t plane, double *mean, double *variance)
{
    double count = (double)(n * plane);

    for (int64_t c = 0; c < channels; c++) {
        mean[c] = variance[c] = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < plane; k++)
                mean[c] += v[(i * channels + c) * plane + k] / count;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < plane; k++) {
                double d = v[(i * channels + c) * plane + k] - mean[c];
                variance[c] += d * d / count;
            }
    }
}

/* Statistics are operands, or in training mode those of the data; then the
 * running ones are results. */
bool ref_batch_norm(RefCall *call)
{
    double epsilon = attrs_float(call->attrs, "epsilon", 1e-5f);
    double momentum = attrs_float(call->attrs, "momentum", 0.9f);
    int64_t plane = 1;

    if (!ref_need(call, 5))
        return false;
    const Array *x = call->in[0];
    if (x->rank < 2)
        return ref_fail(call, "rank %d; at least 2 is needed", x->rank);
    int64_t channels = x->dims[1];
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    double *v = ref_doubles(call, x);
    for (int i = 2; i < x->rank; i++)
        plane *= x->dims[i];
    double *mean = ref_doubles(call, call->in[3]);
    double *variance = ref_doubles(call, call->in[4]);
    if (attrs_int(call->attrs, "training_mode", 0)) {
        channel_moments(v, x->dims[0], channels, plane, mean, variance);
        for (int i = 1; i < call->out_count && i < 3; i++) {
            Array *out = ref_out(call, i, call->in[3]->dtype, 1, &channels);
            for (int64_t c = 0; c < channels; c++)
                array_set(out, c,
                          array_get(call->in[2 + i], c) * momentum +
                              (i == 1 ? mean[c] : variance[c]) *
                                  (1 - momentum));
        }
    }
    for (int64_t i = 0; i < x->dims[0] * channels; i++) {
        int64_t c = i % channels;
        double scale = array_get(call->in[1], c) / sqrt(variance[c] + epsilon);
        double shift = array_get(call->in[2], c);
        for (int64_t k = 0; k < plane; k++)
            v[i * plane + k] = (v[i * plane + k] - mean[c]) * scale + shift;
    }
    ref_store_doubles(y, v);
    return true;
}

/* Rows of all axes from `axis` on, scaled and shifted by operands that
 * broadcast to a row. */
static bool row_norm(RefCall *call, bool centre)
{
    double epsilon = attrs_float(call->attrs, "epsilon", 1e-5f);
    int64_t row = 1, rows = 1, stat_dims[MAX_RANK];
    RefWalk w = {0};
    int axis;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *scale = call->in[1];
    const Array *bias = centre ? ref_in(call, 2) : NULL;
    if (!ref_axis(call, attrs_int(call->attrs, "axis", -1), x->rank, &axis))
        return false;
    w.rank = x->rank - axis;
    for (int i = 0; i < x->rank; i++) {
        stat_dims[i] = i < axis ? x->dims[i] : 1;
        if (i < axis) {
            rows *= x->dims[i];
        } else {
            row *= x->dims[i];
            w.dims[i - axis] = x->dims[i];
        }
    }
    if (scale->rank > w.rank || (bias && bias->rank > w.rank))
        return ref_fail(call, "scale or bias has more axes than a row");
    ref_broadcast_strides(scale, w.rank, w.stride[0]);
    if (bias)
        ref_broadcast_strides(bias, w.rank, w.stride[1]);
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    /* LayerNormalization's optional results, as training wants them. */
    Array *means = call->out_count > 1
                       ? ref_out(call, 1, DT_F32, x->rank, stat_dims)
                       : NULL;
    Array *inverses = call->out_count > 2
                          ? ref_out(call, 2, DT_F32, x->rank, stat_dims)
                          : NULL;
    double *v = ref_doubles(call, x), *vs = ref_doubles(call, scale);
    double *vb = bias ? ref_doubles(call, bias) : NULL;
    for (int64_t r = 0; r < rows; r++) {
        /* Two passes, the mean first: the mean of squares less the square of
         * the mean would cancel where the mean is large. */
        double mean = 0, square = 0;
        double *at = v + r * row;
        for (int64_t i = 0; i < row && centre; i++)
            mean += at[i] / (double)row;
        for (int64_t i = 0; i < row; i++)
            square += (at[i] - mean) * (at[i] - mean) / (double)row;
        double inverse = 1 / sqrt(square + epsilon);
        for (int64_t i = 0; i < row; i++, ref_walk_next(&w))
            at[i] = (at[i] - mean) * inverse * vs[w.offset[0]] +
                    (vb ? vb[w.offset[1]] : 0);
        if (means)
            array_set(means, r, mean);
        if (inverses)
            array_set(inverses, r, inverse);
    }
    ref_store_doubles(y, v);
    return true;
}

bool ref_layer_norm(RefCall *call)
{
    return row_norm(call, true);
}

bool ref_rms_norm(RefCall *call)
{
    return row_norm(call, false);
}

/* GroupNormalization; InstanceNormalization has a group a channel. Scale
 * and bias are by channel. */
bool ref_group_norm(RefCall *call)
{
    double epsilon = attrs_float(call->attrs, "epsilon", 1e-5f);
    int64_t plane = 1;

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0];
    if (x->rank < 2)
        return ref_fail(call, "rank %d; at least 2 is needed", x->rank);
    int64_t channels = x->dims[1];
    int64_t groups = attrs_int(call->attrs, "num_groups", channels);
    if (groups < 1 || channels % groups)
        return ref_fail(call, "%lld groups of %lld channels",
                        (long long)groups, (long long)channels);
    for (int i = 2; i < x->rank; i++)
        plane *= x->dims[i];
    int64_t each = channels / groups, row = each * plane;
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    double *v = ref_doubles(call, x);
    for (int64_t r = 0; r < x->dims[0] * groups; r++) {
        double mean = 0, square = 0, *at = v + r * row;
        for (int64_t i = 0; i < row; i++)
            mean += at[i] / (double)row;
        for (int64_t i = 0; i < row; i++)
            square += (at[i] - mean) * (at[i] - mean) / (double)row;
        for (int64_t i = 0; i < row; i++) {
            int64_t c = r % groups * each + i / plane;
            at[i] = (at[i] - mean) / sqrt(square + epsilon) *
                        array_get(call->in[1], c) +
                    array_get(call->in[2], c);
        }
    }
    ref_store_doubles(y, v);
    return true;
}

bool ref_lp_norm(RefCall *call)
{
    bool squares = attrs_int(call->attrs, "p", 2) == 2;
    int axis;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (!ref_axis(call, attrs_int(call->attrs, "axis", -1), x->rank, &axis))
        return false;
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    double *v = ref_doubles(call, x);
    RefLines l = ref_lines(x, axis);
    for (int64_t i = 0; i < l.outer * l.inner; i++) {
        double *at = v + i / l.inner * l.n * l.inner + i % l.inner, sum = 0;
        for (int64_t k = 0; k < l.n; k++) {
            double e = at[k * l.inner];
            sum += squares ? e * e : fabs(e);
        }
        double norm = squares ? sqrt(sum) : sum;
        for (int64_t k = 0; k < l.n && norm != 0; k++)
            at[k * l.inner] /= norm;
    }
    ref_store_doubles(y, v);
    return true;
}

/* Mean and deviation over chosen axes. */
bool ref_mvn(RefCall *call)
{
    static const int64_t image[] = {0, 2, 3};
    bool chosen[MAX_RANK] = {false};
    RefWalk w = {0};
    int count, axis;
    const int64_t *axes = attrs_ints(call->attrs, "axes", &count);

    if (!axes) {
        axes = image;
        count = 3;
    }
    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    for (int i = 0; i < count; i++) {
        if (!ref_axis(call, axes[i], x->rank, &axis))
            return false;
        chosen[axis] = true;
    }
    /* The walk counts statistics: chosen axes do not move it. */
    int64_t results = 1, all = array_count(x);
    w.rank = x->rank;
    for (int i = x->rank - 1; i >= 0; i--) {
        w.dims[i] = x->dims[i];
        w.stride[0][i] = chosen[i] ? 0 : results;
        results *= chosen[i] ? 1 : x->dims[i];
    }
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    double *v = ref_doubles(call, x);
    double *mean = ARENA_ARRAY(call->scratch, double, results);
    double *variance = ARENA_ARRAY(call->scratch, double, results);
    double each = results ? (double)all / (double)results : 0;
    for (int pass = 0; pass < 3; pass++) {
        RefWalk at = w;
        for (int64_t i = 0; i < all; i++, ref_walk_next(&at)) {
            int64_t r = at.offset[0];
            double d = pass ? v[i] - mean[r] : v[i];
            if (pass == 0)
                mean[r] += d / each;
            else if (pass == 1)
                variance[r] += d * d / each;
            else
                v[i] = d / (sqrt(variance[r]) + 1e-9);
        }
    }
    ref_store_doubles(y, v);
    return true;
}

/* Local response normalization across channels. */
bool ref_lrn(RefCall *call)
{
    int64_t size = attrs_int(call->attrs, "size", 1), plane = 1;
    double alpha = attrs_float(call->attrs, "alpha", 1e-4f);
    double beta = attrs_float(call->attrs, "beta", 0.75);
    double bias = attrs_float(call->attrs, "bias", 1);

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (x->rank < 2)
        return ref_fail(call, "rank %d; at least 2 is needed", x->rank);
    for (int i = 2; i < x->rank; i++)
        plane *= x->dims[i];
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    double *v = ref_doubles(call, x);
    int64_t channels = x->dims[1], count = array_count(x);
    double *out = ARENA_ARRAY(call->scratch, double, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t c = i / plane % channels, first = i - c * plane;
        double sum = 0;
        /* An even window reaches one channel further up than down. */
        for (int64_t k = c - (size - 1) / 2; k <= c + size / 2; k++)
            if (k >= 0 && k < channels)
                sum += v[first + k * plane] * v[first + k * plane];
        out[i] = v[i] / pow(bias + alpha / (double)size * sum, beta);
    }
    ref_store_doubles(y, out);
    return true;
}

/* Softmax and LogSoftmax along one axis. */
bool ref_softmax(RefCall *call)
{
    bool is_log = strcmp(call->op, "LogSoftmax") == 0;
    int64_t inner = 1, outer = 1;
    int axis;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (!ref_axis(call, attrs_int(call->attrs, "axis", -1), x->rank, &axis))
        return false;
    for (int i = 0; i < axis; i++)
        outer *= x->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        inner *= x->dims[i];
    int64_t n = x->dims[axis];
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    double *v = ref_doubles(call, x);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < inner; k++) {
            double *at = v + o * n * inner + k, top = -INFINITY, sum = 0;
            for (int64_t i = 0; i < n; i++)
                top = at[i * inner] > top ? at[i * inner] : top;
            /* Shifted by the largest element, exp cannot overflow, and the sum
             * is at least 1. */
            for (int64_t i = 0; i < n; i++)
                sum += exp(at[i * inner] - top);
            for (int64_t i = 0; i < n; i++)
                at[i * inner] = is_log ? at[i * inner] - top - log(sum)
                                       : exp(at[i * inner] - top) / sum;
        }
    ref_store_doubles(y, v);
    return true;
}
