/* Oracles of operators on the bits of integers. */
#include <string.h>

#include "reference/internal.h"

/* By the operator's letters: BitwiseAnd, BitwiseOr, BitwiseXor, BitShift. */
static uint64_t combine(const char *op, bool left, int bits, uint64_t x,
                        uint64_t y)
{
    switch (op[7]) {
    case 'A':
        return x & y;
    case 'O':
        return x | y;
    case 'X':
        return x ^ y;
    default:
        /* Nothing is left after a shift by all bits or more. */
        return y >= (uint64_t)bits ? 0 : left ? x << y : x >> y;
    }
}

bool ref_bitwise(RefCall *call)
{
    bool left =
        !strcmp(attrs_string(call->attrs, "direction", "LEFT"), "LEFT");
    RefWalk w = {0};

    if (!ref_need(call, 2))
        return false;
    const Array *x = call->in[0], *y = call->in[1];
    if (!ref_broadcast(call, call->in, 2, &w.rank, w.dims))
        return false;
    ref_broadcast_strides(x, w.rank, w.stride[0]);
    ref_broadcast_strides(y, w.rank, w.stride[1]);
    Array *out = ref_out(call, 0, x->dtype, w.rank, w.dims);
    int bits = 8 * (int)dtype_size(x->dtype);
    for (int64_t i = 0; i < array_count(out); i++, ref_walk_next(&w)) {
        uint64_t v = combine(call->op, left, bits,
                             (uint64_t)array_get_int(x, w.offset[0]),
                             (uint64_t)array_get_int(y, w.offset[1]));
        array_set_int(out, i, ref_wrap(x->dtype, (int64_t)v));
    }
    return true;
}

bool ref_bitwise_not(RefCall *call)
{
    if (!ref_need(call, 1))
        return false;
    const Array *x = call->in[0];
    Array *y = ref_out(call, 0, x->dtype, x->rank, x->dims);
    for (int64_t i = 0; i < array_count(x); i++)
        array_set_int(y, i, ref_wrap(x->dtype, ~array_get_int(x, i)));
    return true;
}
