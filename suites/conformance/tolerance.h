/* How far a conformance case's output may be off. */
#ifndef ASSAY_SUITES_TOLERANCE_H
#define ASSAY_SUITES_TOLERANCE_H

#include "base/array.h"

/* |got - wanted| <= atol * rms(wanted) + rtol * |wanted| */
typedef struct ToleranceRow {
    const char *op;     /* NULL: any */
    DType dtype;        /* DT_INVALID: any */
    const char *target; /* NULL: any */
    double atol, rtol;
} ToleranceRow;

/* The first row of the table that fits; integers and bool must be equal
 * unless a row names their type. */
const ToleranceRow *tolerance_find(const char *op, DType dtype,
                                   const char *target);

#endif
