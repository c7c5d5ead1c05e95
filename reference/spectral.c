/* Oracles of Fourier transforms, windows and mel bands. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

static const double pi = 3.14159265358979323846;

bool ref_window(RefCall *call)
{
    bool periodic = attrs_int(call->attrs, "periodic", 1) != 0;
    DType dtype;

    if (!ref_need(call, 1) ||
        !ref_dtype(call, "output_datatype", DT_F32, &dtype))
        return false;
    int64_t size = array_get_int(call->in[0], 0);
    double n = (double)(periodic ? size : size - 1);
    Array *y = ref_out(call, 0, dtype, 1, &size);
    for (int64_t i = 0; i < size; i++) {
        double turn = 2 * pi * (double)i / n, v;
        if (!strcmp(call->op, "HannWindow"))
            v = sin(turn / 2) * sin(turn / 2);
        else if (!strcmp(call->op, "HammingWindow"))
            v = 25.0 / 46 - 21.0 / 46 * cos(turn);
        else
            v = 0.42 - 0.5 * cos(turn) + 0.08 * cos(2 * turn);
        if (dtype_is_float(dtype))
            array_set(y, i, v);
        else
            array_set_int(y, i, ref_wrap(dtype, (int64_t)v));
    }
    return true;
}

static double mel_of(double hertz)
{
    return 2595 * log10(1 + hertz / 700);
}

bool ref_mel_weight_matrix(RefCall *call)
{
    DType dtype;

    if (!ref_need(call, 5) ||
        !ref_dtype(call, "output_datatype", DT_F32, &dtype))
        return false;
    int64_t bands = array_get_int(call->in[0], 0);
    int64_t length = array_get_int(call->in[1], 0);
    double low = mel_of(array_get(call->in[3], 0));
    double high = mel_of(array_get(call->in[4], 0));
    int64_t dims[2] = {length / 2 + 1, bands};
    int64_t *bin = ARENA_ARRAY(call->scratch, int64_t, bands + 2);
    for (int64_t i = 0; i < bands + 2; i++) {
        double mel = low + (double)i * ((high - low) / (double)(bands + 2));
        double hertz = 700 * (pow(10, mel / 2595) - 1);
        bin[i] = (int64_t)floor((double)(length + 1) * hertz /
                                array_get(call->in[2], 0));
    }
    Array *y = ref_out(call, 0, dtype, 2, dims);
    for (int64_t i = 0; i < bands; i++)
        for (int64_t j = 0; j < dims[0]; j++) {
            int64_t from = bin[i], top = bin[i + 1], to = bin[i + 2];
            double v = 0;
            if (j >= from && j <= top)
                v = from == top ? 1
                                : (double)(j - from) / (double)(top - from);
            if (j >= top && j < to)
                v = (double)(to - j) / (double)(to - top);
            array_set(y, j * bands + i, v);
        }
    return true;
}

/* One complex sum: element k of a line turned by k * j of n parts of a turn,
 * forwards or back. */
typedef struct Complex {
    double re, im;
} Complex;

static Complex turn(Complex x, int64_t k, int64_t j, int64_t n, bool inverse)
{
    /* The angle is reduced first, so that long lines lose nothing. */
    double angle = 2 * pi * (double)(k * j % n) / (double)n;
    double c = cos(angle), s = inverse ? sin(angle) : -sin(angle);

    return (Complex){x.re * c - x.im * s, x.re * s + x.im * c};
}

bool ref_dft(RefCall *call)
{
    bool onesided = attrs_int(call->attrs, "onesided", 0) != 0;
    bool inverse = attrs_int(call->attrs, "inverse", 0) != 0;
    int64_t dims[MAX_RANK];
    int axis;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    int last = x->rank - 1;
    if (!ref_axis(call, ref_in(call, 2) ? array_get_int(call->in[2], 0) : -2,
                  x->rank, &axis))
        return false;
    bool folded = inverse && onesided;
    int64_t n = folded ? 2 * (x->dims[axis] - 1) : x->dims[axis];
    if (ref_in(call, 1))
        n = array_get_int(call->in[1], 0);
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = onesided && !inverse ? n / 2 + 1 : n;
    dims[last] = folded ? 1 : 2;
    Array *y = ref_out(call, 0, x->dtype, x->rank, dims);
    RefLines in = ref_lines(x, axis), out = ref_lines(y, axis);
    int64_t parts = x->dims[last], inner = in.inner / parts;
    int64_t used = folded && n / 2 + 1 < in.n ? n / 2 + 1
                   : n < in.n                 ? n
                                              : in.n;
    for (int64_t line = 0; line < in.outer * inner; line++)
        for (int64_t j = 0; j < out.n; j++) {
            Complex sum = {0, 0};
            int64_t o = line / inner, i = line % inner;
            for (int64_t k = 0; k < used; k++) {
                int64_t at = ((o * in.n + k) * inner + i) * parts;
                Complex v = {array_get(x, at),
                             parts == 2 ? array_get(x, at + 1) : 0};
                v = turn(v, k, j, n, inverse);
                /* The other half of the spectrum mirrors this one. */
                double weight = folded && k > 0 && 2 * k != n ? 2 : 1;
                sum.re += weight * v.re;
                sum.im += weight * v.im;
            }
            int64_t to = ((o * out.n + j) * inner + i) * dims[last];
            double scale = inverse ? 1 / (double)n : 1;
            array_set(y, to, sum.re * scale);
            if (!folded)
                array_set(y, to + 1, sum.im * scale);
        }
    return true;
}

bool ref_stft(RefCall *call)
{
    bool onesided = attrs_int(call->attrs, "onesided", 1) != 0;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *window = ref_in(call, 2);
    int64_t step = array_get_int(call->in[1], 0), total = x->dims[1];
    int64_t parts = x->rank == 3 ? x->dims[2] : 1;
    int64_t n = ref_in(call, 3) ? array_get_int(call->in[3], 0)
                : window        ? window->dims[0]
                                : total;
    if (step < 1 || n < 1 || n > total || (window && window->dims[0] != n))
        return ref_fail(call, "frames do not fit the signal or the window");
    int64_t frames = (total - n) / step + 1;
    int64_t bins = onesided ? n / 2 + 1 : n;
    Array *y = ref_out(call, 0, x->dtype, 4,
                       (int64_t[]){x->dims[0], frames, bins, 2});
    for (int64_t i = 0; i < x->dims[0] * frames * bins; i++) {
        int64_t j = i % bins, f = i / bins % frames, b = i / bins / frames;
        Complex sum = {0, 0};
        for (int64_t k = 0; k < n; k++) {
            int64_t at = (b * total + f * step + k) * parts;
            double w = window ? array_get(window, k) : 1;
            Complex v = {w * array_get(x, at),
                         parts == 2 ? w * array_get(x, at + 1) : 0};
            v = turn(v, k, j, n, false);
            sum.re += v.re;
            sum.im += v.im;
        }
        array_set(y, 2 * i, sum.re);
        array_set(y, 2 * i + 1, sum.im);
    }
    return true;
}
