/* Reductions along axes, and the positions of extrema. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

typedef enum ReduceKind {
    R_SUM,
    R_MEAN,
    R_MAX,
    R_MIN,
    R_PROD,
    R_SUM_SQUARE,
    R_L1,
    R_L2,
    R_LOG_SUM,
    R_LOG_SUM_EXP
} ReduceKind;

static ReduceKind kind_of(const char *op)
{
    static const char *const names[] = {
        "ReduceSum",    "ReduceMean",      "ReduceMax", "ReduceMin",
        "ReduceProd",   "ReduceSumSquare", "ReduceL1",  "ReduceL2",
        "ReduceLogSum", "ReduceLogSumExp"};
    int kind = 0;

    while (strcmp(names[kind], op) != 0)
        kind++;
    return (ReduceKind)kind;
}

/* Which axes are reduced: the second operand, all without one. */
static bool read_axes(RefCall *call, const Array *x, bool *reduced)
{
    const Array *axes = ref_in(call, 1);
    int64_t count = axes ? array_count(axes) : 0;

    if (count == 0) {
        bool all = !attrs_int(call->attrs, "noop_with_empty_axes", 0);
        for (int i = 0; i < x->rank; i++)
            reduced[i] = all;
        return true;
    }
    for (int64_t i = 0; i < count; i++) {
        int axis;
        if (!ref_axis(call, array_get_int(axes, i), x->rank, &axis))
            return false;
        reduced[axis] = true;
    }
    return true;
}

/* Max and min keep a NaN once they have met one: comparisons with it are
 * false, and the conditions are written for that. */
static double step(ReduceKind kind, double so_far, double x)
{
    switch (kind) {
    case R_SUM:
    case R_MEAN:
    case R_LOG_SUM:
        return so_far + x;
    case R_MAX:
        return isnan(so_far) || x < so_far ? so_far : x;
    case R_MIN:
        return isnan(so_far) || x > so_far ? so_far : x;
    case R_PROD:
        return so_far * x;
    case R_SUM_SQUARE:
    case R_L2:
        return so_far + x * x;
    case R_L1:
        return so_far + fabs(x);
    case R_LOG_SUM_EXP:
        return so_far + exp(x);
    }
    return 0;
}

static double finish(ReduceKind kind, double value, double count)
{
    switch (kind) {
    case R_MEAN:
        return value / count;
    case R_L2:
        return sqrt(value);
    case R_LOG_SUM:
    case R_LOG_SUM_EXP:
        return log(value);
    default:
        return value;
    }
}

/* Wraps on overflow, hence the unsigned arithmetic. */
static int64_t step_int(ReduceKind kind, DType dtype, int64_t so_far,
                        int64_t x)
{
    uint64_t a = (uint64_t)so_far, b = (uint64_t)x;

    switch (kind) {
    case R_MAX:
        return ref_int_less(dtype, so_far, x) ? x : so_far;
    case R_MIN:
        return ref_int_less(dtype, x, so_far) ? x : so_far;
    case R_PROD:
        return (int64_t)(a * b);
    case R_SUM_SQUARE:
        return (int64_t)(a + b * b);
    case R_L1:
        return (int64_t)(a + (x < 0 ? -b : b));
    default:
        return (int64_t)(a + b);
    }
}

/* A walk over x with the offset of the result beside it. */
static Array *begin(RefCall *call, const Array *x, const bool *reduced,
                    DType dtype, RefWalk *w)
{
    bool keep = attrs_int(call->attrs, "keepdims", 1) != 0;
    int64_t dims[MAX_RANK], stride = 1;
    int rank = 0;

    for (int i = 0; i < x->rank; i++)
        if (!reduced[i])
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    *w = (RefWalk){.rank = x->rank};
    for (int i = x->rank - 1; i >= 0; i--) {
        w->dims[i] = x->dims[i];
        if (reduced[i])
            continue;
        w->stride[0][i] = stride;
        stride *= x->dims[i];
    }
    return ref_out(call, 0, dtype, rank, dims);
}

bool ref_reduce(RefCall *call)
{
    ReduceKind kind = kind_of(call->op);
    bool reduced[MAX_RANK] = {false};
    RefWalk w;

    if (!ref_need(call, 1) || !read_axes(call, call->in[0], reduced))
        return false;
    const Array *x = call->in[0];
    Array *y = begin(call, x, reduced, x->dtype, &w);
    int64_t total = array_count(x), results = array_count(y);
    /* How many elements each result is made of, for means. */
    double per = results > 0 ? (double)total / (double)results : 0;
    if (!dtype_is_float(x->dtype) && kind != R_MEAN && kind < R_L2) {
        int64_t *acc = ARENA_ARRAY(call->scratch, int64_t, results);
        for (int64_t i = 0; i < results; i++)
            acc[i] = kind == R_PROD ? 1
                     : kind == R_MAX || kind == R_MIN
                         ? ref_int_bound(x->dtype, kind == R_MIN)
                         : 0;
        for (int64_t i = 0; i < total; i++, ref_walk_next(&w))
            acc[w.offset[0]] = step_int(kind, x->dtype, acc[w.offset[0]],
                                        array_get_int(x, i));
        ref_store_ints(y, acc);
        return true;
    }
    double *v = ref_doubles(call, x);
    double *acc = ARENA_ARRAY(call->scratch, double, results);
    double *top = ARENA_ARRAY(call->scratch, double, results);
    for (int64_t i = 0; i < results; i++) {
        acc[i] = kind == R_PROD  ? 1
                 : kind == R_MAX ? -INFINITY
                 : kind == R_MIN ? INFINITY
                                 : 0;
        top[i] = 0;
    }
    if (kind == R_LOG_SUM_EXP) {
        /* Shifted by the maximum, so that large values do not overflow. */
        RefWalk t = w;
        for (int64_t i = 0; i < results; i++)
            top[i] = -INFINITY;
        for (int64_t i = 0; i < total; i++, ref_walk_next(&t))
            if (v[i] > top[t.offset[0]])
                top[t.offset[0]] = v[i];
        /* Nothing to shift by in a row of -inf, or with an inf in it. */
        for (int64_t i = 0; i < results; i++)
            top[i] = isfinite(top[i]) ? top[i] : 0;
    }
    for (int64_t i = 0; i < total; i++, ref_walk_next(&w))
        acc[w.offset[0]] =
            step(kind, acc[w.offset[0]], v[i] - top[w.offset[0]]);
    for (int64_t i = 0; i < results; i++)
        acc[i] = finish(kind, acc[i], per) + top[i];
    ref_store_doubles(y, acc);
    return true;
}

/* ArgMax and ArgMin: the first of equals, or the last where asked. NaN
 * counts as the extremum, as in NumPy. */
bool ref_arg(RefCall *call)
{
    bool is_max = strcmp(call->op, "ArgMax") == 0;
    bool last = attrs_int(call->attrs, "select_last_index", 0) != 0;
    bool reduced[MAX_RANK] = {false};
    RefWalk w;
    int axis;

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    if (!ref_axis(call, attrs_int(call->attrs, "axis", 0), x->rank, &axis))
        return false;
    reduced[axis] = true;
    Array *y = begin(call, x, reduced, DT_I64, &w);
    int64_t total = array_count(x), results = array_count(y);
    double *best = ARENA_ARRAY(call->scratch, double, results);
    int64_t *at = ARENA_ARRAY(call->scratch, int64_t, results);
    for (int64_t i = 0; i < results; i++)
        at[i] = -1;
    for (int64_t i = 0; i < total; i++, ref_walk_next(&w)) {
        double v = array_get(x, i), *b = &best[w.offset[0]];
        int64_t *p = &at[w.offset[0]];
        bool wins = is_max ? v > *b : v < *b;
        bool ties = v == *b || (isnan(v) && isnan(*b));
        /* The first element wins whatever it is: best is not set before. */
        if (*p < 0 || (isnan(v) && !isnan(*b)) || wins || (ties && last)) {
            *b = v;
            *p = w.index[axis];
        }
    }
    ref_store_ints(y, at);
    return true;
}

/* Running sums along the axis that operand 1 holds. */
bool ref_cumsum(RefCall *call)
{
    bool product = strcmp(call->op, "CumProd") == 0;
    bool exclusive = attrs_int(call->attrs, "exclusive", 0) != 0;
    bool reverse = attrs_int(call->attrs, "reverse", 0) != 0;
    int64_t inner = 1, outer = 1;
    int axis;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0];
    if (!ref_axis(call, array_get_int(call->in[1], 0), x->rank, &axis))
        return false;
    for (int i = 0; i < axis; i++)
        outer *= x->dims[i];
    for (int i = axis + 1; i < x->rank; i++)
        inner *= x->dims[i];
    int64_t n = x->dims[axis];
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    for (int64_t o = 0; o < outer * inner; o++) {
        double sum = product;
        /* Both run; the type says which one counts. */
        uint64_t int_sum = product;
        for (int64_t i = 0; i < n; i++) {
            int64_t k = reverse ? n - 1 - i : i;
            int64_t at = (o / inner * n + k) * inner + o % inner;
            double v = array_get(x, at), before = sum;
            uint64_t int_before = int_sum;
            uint64_t int_v = (uint64_t)array_get_int(x, at);
            sum = product ? sum * v : sum + v;
            int_sum = product ? int_sum * int_v : int_sum + int_v;
            if (dtype_is_float(x->dtype))
                array_set(y, at, exclusive ? before : sum);
            else
                array_set_int(
                    y, at,
                    ref_wrap(x->dtype,
                             (int64_t)(exclusive ? int_before : int_sum)));
        }
    }
    return true;
}
