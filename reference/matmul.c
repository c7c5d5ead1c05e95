/* Matrix products over OpenBLAS in double. */
#include <cblas.h>
#include <string.h>

#include "reference/internal.h"

/* Integers: exact, modulo the width of the type. */
static void int_product(const int64_t *a, const int64_t *b, int64_t m,
                        int64_t n, int64_t k, int64_t *c)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            /* Unsigned, since signed overflow is undefined in C. */
            uint64_t sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (uint64_t)a[i * k + l] * (uint64_t)b[l * n + j];
            c[i * n + j] = (int64_t)sum;
        }
}

/* NumPy's matmul: vectors are a row on the left and a column on the right;
 * leading axes broadcast. */
bool ref_matmul(RefCall *call)
{
    Array left, right;
    int64_t dims[MAX_RANK];
    RefWalk w = {0};

    if (!ref_need(call, 2))
        return false;
    const Array *a = call->in[0], *b = call->in[1];
    if (a->rank == 0 || b->rank == 0)
        return ref_fail(call, "an operand is a scalar");
    int64_t m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    int64_t k = a->dims[a->rank - 1];
    int64_t n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    if (k != b->dims[b->rank > 1 ? b->rank - 2 : 0])
        return ref_fail(call, "inner extents differ");
    /* Headers without the two matrix axes, to broadcast what is left; the walk
     * then counts whole matrices. */
    left = *a;
    right = *b;
    left.rank = a->rank > 2 ? a->rank - 2 : 0;
    right.rank = b->rank > 2 ? b->rank - 2 : 0;
    const Array *batch[2] = {&left, &right};
    if (!ref_broadcast(call, batch, 2, &w.rank, w.dims))
        return false;
    ref_broadcast_strides(&left, w.rank, w.stride[0]);
    ref_broadcast_strides(&right, w.rank, w.stride[1]);
    int64_t batches = 1;
    int rank = w.rank;
    for (int i = 0; i < w.rank; i++) {
        dims[i] = w.dims[i];
        batches *= w.dims[i];
    }
    if (a->rank > 1)
        dims[rank++] = m;
    if (b->rank > 1)
        dims[rank++] = n;
    Array *out = ref_out(call, 0, a->dtype, rank, dims);
    if (dtype_is_float(a->dtype)) {
        double *va = ref_doubles(call, a), *vb = ref_doubles(call, b);
        double *vc = ARENA_ARRAY(call->scratch, double, array_count(out));
        for (int64_t i = 0; i < batches; i++, ref_walk_next(&w))
            /* BLAS refuses empty matrices; the result of an empty sum is
             * zero. */
            if (m > 0 && n > 0 && k > 0)
                cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m,
                            (int)n, (int)k, 1, va + w.offset[0] * m * k,
                            (int)k, vb + w.offset[1] * k * n, (int)n, 0,
                            vc + i * m * n, (int)n);
        ref_store_doubles(out, vc);
    } else {
        int64_t *va = ref_ints(call, a), *vb = ref_ints(call, b);
        int64_t *vc = ARENA_ARRAY(call->scratch, int64_t, array_count(out));
        for (int64_t i = 0; i < batches; i++, ref_walk_next(&w))
            int_product(va + w.offset[0] * m * k, vb + w.offset[1] * k * n, m,
                        n, k, vc + i * m * n);
        ref_store_ints(out, vc);
    }
    return true;
}

/* alpha * A' * B' + beta * C, C broadcast to the result. */
bool ref_gemm(RefCall *call)
{
    if (!ref_need(call, 2))
        return false;
    const Array *a = call->in[0], *b = call->in[1], *c = ref_in(call, 2);
    bool ta = attrs_int(call->attrs, "transA", 0) != 0;
    bool tb = attrs_int(call->attrs, "transB", 0) != 0;
    double alpha = attrs_float(call->attrs, "alpha", 1);
    double beta = attrs_float(call->attrs, "beta", 1);
    if (a->rank != 2 || b->rank != 2)
        return ref_fail(call, "operands must be matrices");
    int64_t m = a->dims[ta ? 1 : 0], k = a->dims[ta ? 0 : 1];
    int64_t n = b->dims[tb ? 0 : 1];
    if (k != b->dims[tb ? 1 : 0])
        return ref_fail(call, "inner extents differ");
    Array *out = ref_out(call, 0, a->dtype, 2, (int64_t[]){m, n});
    double *va = ref_doubles(call, a), *vb = ref_doubles(call, b);
    double *vc = ARENA_ARRAY(call->scratch, double, m *n);
    if (c) {
        const Array *both[2] = {out, c};
        RefWalk w = {0};
        double *from = ref_doubles(call, c);
        if (!ref_broadcast(call, both, 2, &w.rank, w.dims))
            return false;
        if (w.rank != 2 || w.dims[0] != m || w.dims[1] != n)
            return ref_fail(call, "C does not broadcast to the result");
        ref_broadcast_strides(c, w.rank, w.stride[0]);
        for (int64_t i = 0; i < m * n; i++, ref_walk_next(&w))
            vc[i] = beta * from[w.offset[0]];
    }
    /* Without terms the BLAS leaves the third matrix as it is. */
    if (m > 0 && n > 0 && k > 0)
        cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans,
                    tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k,
                    alpha, va, (int)a->dims[1], vb, (int)b->dims[1], 1, vc,
                    (int)n);
    ref_store_doubles(out, vc);
    return true;
}
