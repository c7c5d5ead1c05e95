/* TopK: all elements of a slice sorted, the first k of them. */
#include <math.h>
#include <stdlib.h>

#include "reference/internal.h"

typedef struct Element {
    double f; /* of floats */
    int64_t i;
    int64_t place;
    bool is_float, is_unsigned;
} Element;

/* NaN above all numbers. */
static int compare(const Element *a, const Element *b)
{
    if (!a->is_float)
        return a->is_unsigned ? ((uint64_t)a->i > (uint64_t)b->i) -
                                    ((uint64_t)a->i < (uint64_t)b->i)
                              : (a->i > b->i) - (a->i < b->i);
    if (isnan(a->f) || isnan(b->f))
        return !!isnan(a->f) - !!isnan(b->f);
    return (a->f > b->f) - (a->f < b->f);
}

static int by_place(const Element *a, const Element *b)
{
    return (a->place > b->place) - (a->place < b->place);
}

static int smallest_first(const void *x, const void *y)
{
    int order = compare(x, y);
    return order ? order : by_place(x, y);
}

static int largest_first(const void *x, const void *y)
{
    int order = compare(y, x);
    return order ? order : by_place(x, y);
}

bool ref_topk(RefCall *call)
{
    int64_t outer = 1, inner = 1, dims[MAX_RANK];
    int axis;

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0];
    int64_t k = array_get_int(call->in[1], 0);
    if (!ref_axis(call, attrs_int(call->attrs, "axis", -1), x->rank, &axis))
        return false;
    int64_t n = x->dims[axis];
    if (k < 0 || k > n)
        return ref_fail(call, "k is %lld of %lld", (long long)k, (long long)n);
    for (int i = 0; i < x->rank; i++) {
        dims[i] = i == axis ? k : x->dims[i];
        if (i < axis)
            outer *= x->dims[i];
        else if (i > axis)
            inner *= x->dims[i];
    }
    bool is_largest = attrs_int(call->attrs, "largest", 1) != 0;
    Array *values = ref_out(call, 0, x->dtype, x->rank, dims);
    Array *places = ref_out(call, 1, DT_I64, x->rank, dims);
    Element *row = ARENA_ARRAY(call->scratch, Element, n + 1);
    for (int64_t s = 0; s < outer * inner; s++) {
        int64_t from = s / inner * n * inner + s % inner;
        int64_t to = s / inner * k * inner + s % inner;
        for (int64_t i = 0; i < n; i++) {
            row[i] = (Element){.place = i,
                               .is_float = dtype_is_float(x->dtype),
                               .is_unsigned = !dtype_is_signed(x->dtype)};
            if (row[i].is_float)
                row[i].f = array_get(x, from + i * inner);
            else
                row[i].i = array_get_int(x, from + i * inner);
        }
        qsort(row, (size_t)n, sizeof *row,
              is_largest ? largest_first : smallest_first);
        for (int64_t i = 0; i < k; i++) {
            ref_copy_element(values, to + i * inner, x,
                             from + row[i].place * inner);
            array_set_int(places, to + i * inner, row[i].place);
        }
    }
    return true;
}
