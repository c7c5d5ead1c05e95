/* Oracles of Einsum and Det. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "reference/internal.h"

/* Labels are characters: letters, and from 1 on the axes that "..." stands
 * for, the last one first. */
typedef struct Labels {
    int count;
    char label[4 * MAX_RANK];
} Labels;

/* Reads a term of an operand of `rank` axes; -1: the result, whose "..."
 * stands for `dots` axes. */
static const char *read_term(const char *at, int rank, int dots, Labels *l)
{
    int letters = 0;

    l->count = 0;
    for (const char *c = at; *c && *c != ',' && *c != '-'; c++)
        letters += isalpha((unsigned char)*c) != 0;
    for (; *at && *at != ',' && *at != '-'; at++) {
        if (isalpha((unsigned char)*at)) {
            l->label[l->count++] = *at;
        } else if (*at == '.') {
            int axes = rank < 0 ? dots : rank - letters;
            for (int i = axes; i > 0; i--)
                l->label[l->count++] = (char)i;
            at += 2;
        }
    }
    return at;
}

enum { MAX_OPERANDS = 16, CHARACTERS = 128 };

typedef struct Sum {
    Labels in[MAX_OPERANDS], out;
    int64_t extent[CHARACTERS];
} Sum;

static bool read_equation(RefCall *call, Sum *s)
{
    const char *at = attrs_string(call->attrs, "equation", "");
    int dots = 0, uses[CHARACTERS] = {0};

    for (int i = 0; i < call->in_count; i++) {
        const Array *x = call->in[i];
        at = read_term(at, x->rank, 0, &s->in[i]);
        if (s->in[i].count != x->rank)
            return ref_fail(call, "a term of another rank");
        at += *at == ',';
        for (int k = 0; k < x->rank; k++) {
            int l = s->in[i].label[k];
            uses[l]++;
            if (l < CHARACTERS / 4 && l > dots)
                dots = l;
            if (s->extent[l] < 2)
                s->extent[l] = x->dims[k];
        }
    }
    if (*at == '-') {
        read_term(at + 2, -1, dots, &s->out);
        return true;
    }
    for (int i = dots; i > 0; i--)
        s->out.label[s->out.count++] = (char)i;
    for (int l = 'A'; l < CHARACTERS; l++)
        if (uses[l] == 1)
            s->out.label[s->out.count++] = (char)l;
    return true;
}

/* Walks all labels, those of the result outermost. */
bool ref_einsum(RefCall *call)
{
    int64_t index[CHARACTERS] = {0}, dims[4 * MAX_RANK];
    Sum s = {0};
    Labels order;
    bool seen[CHARACTERS] = {false};

    if (call->in_count > MAX_OPERANDS || !ref_need(call, call->in_count) ||
        !read_equation(call, &s))
        return call->error || ref_fail(call, "too many operands");
    order = s.out;
    for (int k = 0; k < s.out.count; k++) {
        seen[(int)s.out.label[k]] = true;
        dims[k] = s.extent[(int)s.out.label[k]];
    }
    for (int i = 0; i < call->in_count; i++)
        for (int k = 0; k < s.in[i].count; k++)
            if (!seen[(int)s.in[i].label[k]]) {
                seen[(int)s.in[i].label[k]] = true;
                order.label[order.count++] = s.in[i].label[k];
            }
    int64_t points = 1, inner = 1;
    for (int k = 0; k < order.count; k++) {
        points *= s.extent[(int)order.label[k]];
        inner *= k < s.out.count ? 1 : s.extent[(int)order.label[k]];
    }
    Array *y = ref_out(call, 0, call->in[0]->dtype, s.out.count, dims);
    bool is_float = dtype_is_float(y->dtype);
    double sum = 0;
    uint64_t int_sum = 0;
    for (int64_t p = 0; p < points; p++) {
        double product = 1;
        uint64_t int_product = 1;
        for (int64_t k = order.count - 1, rest = p; k >= 0; k--) {
            int l = order.label[k];
            index[l] = rest % s.extent[l];
            rest /= s.extent[l];
        }
        for (int i = 0; i < call->in_count; i++) {
            const Array *x = call->in[i];
            int64_t at = 0;
            for (int k = 0; k < x->rank; k++)
                at = at * x->dims[k] +
                     (x->dims[k] == 1 ? 0 : index[(int)s.in[i].label[k]]);
            if (is_float)
                product *= array_get(x, at);
            else
                int_product *= (uint64_t)array_get_int(x, at);
        }
        bool first = p % inner == 0;
        sum = first ? product : sum + product;
        int_sum = first ? int_product : int_sum + int_product;
        if (is_float)
            array_set(y, p / inner, sum);
        else
            array_set_int(y, p / inner, ref_wrap(y->dtype, (int64_t)int_sum));
    }
    return true;
}

/* The determinant of an n x n matrix, which is overwritten. */
static double determinant(double *m, int64_t n)
{
    double product = 1;

    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t r = k + 1; r < n; r++)
            if (fabs(m[r * n + k]) > fabs(m[pivot * n + k]))
                pivot = r;
        for (int64_t i = 0; i < n && pivot != k; i++) {
            double held = m[k * n + i];
            m[k * n + i] = m[pivot * n + i];
            m[pivot * n + i] = held;
        }
        product *= pivot != k ? -m[k * n + k] : m[k * n + k];
        if (m[k * n + k] == 0)
            return 0;
        for (int64_t r = k + 1; r < n; r++)
            for (int64_t i = n - 1; i >= k; i--)
                m[r * n + i] -= m[r * n + k] / m[k * n + k] * m[k * n + i];
    }
    return product;
}

bool ref_det(RefCall *call)
{
    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return ref_fail(call, "no square matrices");
    int64_t n = x->dims[x->rank - 1];
    Array *y = ref_out(call, 0, x->dtype, x->rank - 2, x->dims);
    double *values = ref_doubles(call, x);
    for (int64_t i = 0; i < array_count(y); i++)
        array_set(y, i, determinant(values + i * n * n, n));
    return true;
}
