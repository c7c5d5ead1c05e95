/* f16 and bf16 as arithmetic: no processor has to know them.
 *
 * Their values are computed in f32 and rounded after each operation, to
 * nearest even, which gives what an operation of their own would (f32 has
 * more than twice their digits and two to spare). In memory they are 16-bit
 * integers. */
#ifndef ASSAY_TENSOR_HALF_H
#define ASSAY_TENSOR_HALF_H

#include "tensor/expr.h"

bool dtype_is_half(DType dtype); /* f16, bf16 */
/* The f32 value of the number whose bits are `bits`, of type u16. */
const Expr *half_widen(Arena *a, DType dtype, const Expr *bits);
/* The bits, u16, of an f32 value rounded to the type. NaN stays NaN. */
const Expr *half_narrow(Arena *a, DType dtype, const Expr *value);

#endif
