/* Oracles of elementwise operators, in double (integers in int64). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/internal.h"

typedef enum BinaryKind {
    B_ADD,
    B_SUB,
    B_MUL,
    B_DIV,
    B_MOD,
    B_FMOD,
    B_POW,
    B_PRELU,
    B_MAX,
    B_MIN
} BinaryKind;

static double binary_double(BinaryKind kind, double x, double y)
{
    switch (kind) {
    case B_ADD:
        return x + y;
    case B_SUB:
        return x - y;
    case B_MUL:
        return x * y;
    case B_DIV:
        return x / y;
    /* Python's modulo: the sign is the divisor's; fmod keeps the
     * dividend's. */
    case B_MOD: {
        double m = fmod(x, y);
        return m != 0 && (m < 0) != (y < 0) ? m + y : m;
    }
    case B_FMOD:
        return fmod(x, y);
    case B_POW:
        return pow(x, y);
    case B_PRELU:
        return x < 0 ? x * y : x;
    case B_MAX:
        /* fmax would drop a NaN; the operator passes it on. */
        return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
    case B_MIN:
        return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
    }
    return 0;
}

/* Two's complement: overflow wraps, hence the unsigned arithmetic. */
static int64_t binary_int(BinaryKind kind, DType dtype, int64_t x, int64_t y)
{
    uint64_t ux = (uint64_t)x, uy = (uint64_t)y;

    if (!dtype_is_signed(dtype) &&
        (kind == B_DIV || kind == B_MOD || kind == B_FMOD))
        return (int64_t)(y == 0 ? 0 : kind == B_DIV ? ux / uy : ux % uy);
    switch (kind) {
    case B_ADD:
        return (int64_t)(ux + uy);
    case B_SUB:
        return (int64_t)(ux - uy);
    case B_MUL:
        return (int64_t)(ux * uy);
    case B_DIV:
        /* C leaves both undefined: division by 0, which gives 0 here, and
         * that of the most negative number by -1, which wraps. */
        return y == 0 ? 0 : y == -1 ? (int64_t)-ux : x / y;
    case B_MOD:
        if (y == 0 || y == -1)
            return 0;
        return x % y != 0 && (x % y < 0) != (y < 0) ? x % y + y : x % y;
    case B_FMOD:
        return y == 0 || y == -1 ? 0 : x % y;
    case B_POW: {
        uint64_t r = 1;
        /* The inverse of a whole number, truncated. */
        if (y < 0)
            return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
        for (; y > 0; y >>= 1, ux *= ux)
            if (y & 1)
                r *= ux;
        return (int64_t)r;
    }
    case B_PRELU:
        return x < 0 ? (int64_t)(ux * uy) : x;
    case B_MAX:
        return ref_int_less(dtype, y, x) ? x : y;
    case B_MIN:
        return ref_int_less(dtype, x, y) ? x : y;
    }
    return 0;
}

static bool apply_binary(RefCall *call, BinaryKind kind, const Array *x,
                         const Array *y, Array **result)
{
    const Array *both[2] = {x, y};
    RefWalk w = {0};

    if (!ref_broadcast(call, both, 2, &w.rank, w.dims))
        return false;
    ref_broadcast_strides(x, w.rank, w.stride[0]);
    ref_broadcast_strides(y, w.rank, w.stride[1]);
    Array *out = array_new(call->arena, x->dtype, w.rank, w.dims);
    int64_t count = array_count(out);
    *result = out;
    /* A float exponent of an integer base: computed as double. */
    if (dtype_is_float(x->dtype) || dtype_is_float(y->dtype)) {
        double *vx = ref_doubles(call, x), *vy = ref_doubles(call, y);
        double *vo = ARENA_ARRAY(call->scratch, double, count);
        for (int64_t i = 0; i < count; i++, ref_walk_next(&w))
            vo[i] = binary_double(kind, vx[w.offset[0]], vy[w.offset[1]]);
        ref_store_doubles(out, vo);
    } else {
        int64_t *vx = ref_ints(call, x), *vy = ref_ints(call, y);
        for (int64_t i = 0; i < count; i++, ref_walk_next(&w))
            array_set_int(
                out, i,
                ref_wrap(x->dtype, binary_int(kind, x->dtype, vx[w.offset[0]],
                                              vy[w.offset[1]])));
    }
    return true;
}

bool ref_binary(RefCall *call)
{
    static const struct {
        const char *op;
        BinaryKind kind;
    } rows[] = {{"Add", B_ADD}, {"Sub", B_SUB},     {"Mul", B_MUL},
                {"Div", B_DIV}, {"PRelu", B_PRELU}, {"Pow", B_POW},
                {"Mod", B_MOD}};
    int row = 0;

    if (!ref_need(call, 2))
        return false;
    while (strcmp(rows[row].op, call->op) != 0)
        row++;
    BinaryKind kind = rows[row].kind;
    if (kind == B_MOD && attrs_int(call->attrs, "fmod", 0))
        kind = B_FMOD;
    return apply_binary(call, kind, call->in[0], call->in[1], &call->out[0]);
}

/* Sum, Mean, Min, Max of any number of arrays. */
bool ref_variadic(RefCall *call)
{
    BinaryKind kind = strcmp(call->op, "Max") == 0   ? B_MAX
                      : strcmp(call->op, "Min") == 0 ? B_MIN
                                                     : B_ADD;
    bool mean = strcmp(call->op, "Mean") == 0;

    if (!ref_need(call, call->in_count > 0 ? call->in_count : 1))
        return false;
    const Array *x = call->in[0];
    bool wide = kind == B_ADD && dtype_is_float(x->dtype);
    /* Sums run in double; rounding between terms is not the oracle's. */
    Array *sum = NULL;
    if (wide) {
        sum = array_new(call->scratch, DT_F64, x->rank, x->dims);
        ref_store_doubles(sum, ref_doubles(call, x));
    }
    const Array *so_far = wide ? sum : x;
    for (int i = 1; i < call->in_count; i++) {
        Array *next;
        if (!apply_binary(call, kind, so_far, call->in[i], &next))
            return false;
        so_far = next;
    }
    Array *out = ref_out(call, 0, x->dtype, so_far->rank, so_far->dims);
    int64_t count = array_count(out);
    for (int64_t i = 0; i < count; i++) {
        if (!dtype_is_float(x->dtype))
            array_set_int(out, i, array_get_int(so_far, i));
        else
            array_set(out, i,
                      array_get(so_far, i) / (mean ? call->in_count : 1));
    }
    return true;
}

/* False for NaN, whichever the order, as IEEE 754 wants it. */
static bool compare_double(char op, bool equal, double x, double y)
{
    switch (op) {
    case 'G':
        return equal ? x >= y : x > y;
    case 'L':
        return equal ? x <= y : x < y;
    default:
        return x == y;
    }
}

static bool compare_int(char op, bool equal, DType dtype, int64_t x, int64_t y)
{
    switch (op) {
    case 'G':
        return equal ? !ref_int_less(dtype, x, y) : ref_int_less(dtype, y, x);
    case 'L':
        return equal ? !ref_int_less(dtype, y, x) : ref_int_less(dtype, x, y);
    case 'A':
        return x && y;
    case 'O':
        return x || y;
    case 'X':
        return !x != !y;
    default:
        return x == y;
    }
}

static const char *ref_text(const Array *x, int64_t index)
{
    return ((const char *const *)x->data)[index];
}

static bool is_inf(RefCall *call, double x)
{
    return (x == INFINITY &&
            attrs_int(call->attrs, "detect_positive", 1) != 0) ||
           (x == -INFINITY &&
            attrs_int(call->attrs, "detect_negative", 1) != 0);
}

/* Everything that gives booleans. The first letter tells them apart. */
bool ref_compare(RefCall *call)
{
    RefWalk w = {0};
    char op = call->op[0];

    if (op == 'N' || op == 'I') { /* Not, IsNaN, IsInf */
        if (!ref_need(call, 1))
            return false;
        const Array *x = call->in[0];
        Array *y = ref_out(call, 0, DT_BOOL, x->rank, x->dims);
        int64_t count = array_count(x);
        for (int64_t i = 0; i < count; i++)
            array_set_int(y, i,
                          op == 'N' ? !array_get_int(x, i)
                          : call->op[2] == 'N'
                              ? isnan(array_get(x, i))
                              : is_inf(call, array_get(x, i)));
        return true;
    }
    if (!ref_need(call, 2) ||
        !ref_broadcast(call, call->in, 2, &w.rank, w.dims))
        return false;
    const Array *x = call->in[0], *y = call->in[1];
    bool equal = strstr(call->op, "OrEqual") != NULL;
    ref_broadcast_strides(x, w.rank, w.stride[0]);
    ref_broadcast_strides(y, w.rank, w.stride[1]);
    Array *out = ref_out(call, 0, DT_BOOL, w.rank, w.dims);
    int64_t count = array_count(out);
    for (int64_t i = 0; i < count; i++, ref_walk_next(&w)) {
        bool r = x->dtype == DT_STRING ? !strcmp(ref_text(x, w.offset[0]),
                                                 ref_text(y, w.offset[1]))
                 : dtype_is_float(x->dtype)
                     ? compare_double(op, equal, array_get(x, w.offset[0]),
                                      array_get(y, w.offset[1]))
                     : compare_int(op, equal, x->dtype,
                                   array_get_int(x, w.offset[0]),
                                   array_get_int(y, w.offset[1]));
        array_set_int(out, i, r);
    }
    return true;
}

/* min(max(x, low), high): NaN stays NaN, and high wins over low. */
bool ref_clip(RefCall *call)
{
    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0], *lo = ref_in(call, 1), *hi = ref_in(call, 2);
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    int64_t count = array_count(x);
    for (int64_t i = 0; i < count; i++) {
        if (dtype_is_float(x->dtype)) {
            double v = array_get(x, i);
            if (lo && v < array_get(lo, 0))
                v = array_get(lo, 0);
            if (hi && v > array_get(hi, 0))
                v = array_get(hi, 0);
            array_set(y, i, v);
        } else {
            int64_t v = array_get_int(x, i);
            if (lo && ref_int_less(x->dtype, v, array_get_int(lo, 0)))
                v = array_get_int(lo, 0);
            if (hi && ref_int_less(x->dtype, array_get_int(hi, 0), v))
                v = array_get_int(hi, 0);
            array_set_int(y, i, v);
        }
    }
    return true;
}

bool ref_where(RefCall *call)
{
    RefWalk w = {0};

    if (!ref_need(call, 3) ||
        !ref_broadcast(call, call->in, 3, &w.rank, w.dims))
        return false;
    for (int i = 0; i < 3; i++)
        ref_broadcast_strides(call->in[i], w.rank, w.stride[i]);
    const Array *c = call->in[0], *x = call->in[1], *y = call->in[2];
    Array *out = ref_out(call, 0, x->dtype, w.rank, w.dims);
    size_t size = dtype_size(x->dtype);
    int64_t count = array_count(out);
    for (int64_t i = 0; i < count; i++, ref_walk_next(&w)) {
        bool first = array_get_int(c, w.offset[0]) != 0;
        const char *from = first ? (const char *)x->data : y->data;
        memcpy((char *)out->data + (size_t)i * size,
               from + (size_t)w.offset[first ? 1 : 2] * size, size);
    }
    return true;
}

DType ref_onnx_dtype(int64_t number)
{
    static const DType types[] = {
        DT_INVALID, DT_F32, DT_U8,      DT_I8,      DT_U16, DT_I16,
        DT_I32,     DT_I64, DT_INVALID, DT_BOOL,    DT_F16, DT_F64,
        DT_U32,     DT_U64, DT_INVALID, DT_INVALID, DT_BF16};

    return number > 0 && number < (int64_t)(sizeof types / sizeof *types)
               ? types[number]
               : DT_INVALID;
}

static int64_t saturate(double x, DType dtype)
{
    int bits = (int)dtype_size(dtype) * 8;
    double top = ldexp(1, dtype_is_signed(dtype) ? bits - 1 : bits);
    double bottom = dtype_is_signed(dtype) ? -top : 0;

    if (isnan(x))
        return 0;
    if (x >= top)
        return (int64_t)(~0ULL >>
                         (dtype_is_signed(dtype) ? 65 - bits : 64 - bits));
    return x <= bottom ? (int64_t)bottom : (int64_t)trunc(x);
}

/* Long double has the digits of all integers. */
static void set_from_text(Array *y, int64_t i, const char *text)
{
    long double value = strtold(text, NULL);

    if (y->dtype == DT_U64 && value > 0)
        ((uint64_t *)y->data)[i] =
            value < 0x1p64L ? (uint64_t)value : UINT64_MAX;
    else if (y->dtype == DT_I64 && fabsl(value) < 0x1p63L)
        array_set_int(y, i, (int64_t)value);
    else
        array_set(y, i, (double)value);
}

/* The type is an attribute, as ONNX's number or by name, or that of the
 * second operand (CastLike). */
bool ref_cast(RefCall *call)
{
    const Attr *to = attrs_find(call->attrs, "to");

    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0], *like = ref_in(call, 1);
    DType dtype = like                            ? like->dtype
                  : to && to->kind == ATTR_STRING ? dtype_parse(to->s)
                  : to                            ? ref_onnx_dtype(to->i)
                                                  : DT_INVALID;
    if (dtype == DT_INVALID)
        return ref_fail(call, "unknown target type");
    Array *y = ref_out(call, 0, dtype, x->rank, x->dims);
    int64_t count = array_count(x);
    for (int64_t i = 0; i < count; i++) {
        if (x->dtype == DT_STRING)
            set_from_text(y, i, ref_text(x, i));
        else if (dtype == DT_BOOL)
            array_set_int(y, i,
                          dtype_is_float(x->dtype) ? array_get(x, i) != 0
                                                   : array_get_int(x, i) != 0);
        else if (!dtype_is_float(x->dtype) && !dtype_is_float(dtype))
            array_set_int(y, i, ref_wrap(dtype, array_get_int(x, i)));
        else if (dtype_is_float(dtype))
            array_set(y, i, array_get(x, i));
        else
            array_set_int(y, i, saturate(array_get(x, i), dtype));
    }
    return true;
}
