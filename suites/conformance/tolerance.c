#include "suites/conformance/tolerance.h"

#include <string.h>

/* Specific rows first. ONNX's own runner allows 1e-3 of the value; what is
 * wider says why. */
static const ToleranceRow rows[] = {
    {NULL, DT_F64, NULL, 1e-6, 1e-6},
    {NULL, DT_F32, NULL, 1e-6, 1e-3},
    /* One unit in the last place, of the largest values that take part. */
    {NULL, DT_F16, NULL, 2e-3, 2e-3},
    {NULL, DT_BF16, NULL, 1e-2, 1e-2},
    {NULL, DT_INVALID, NULL, 0, 0},
};

const ToleranceRow *tolerance_find(const char *op, DType dtype,
                                   const char *target)
{
    const ToleranceRow *row = rows;
    while ((row->op && strcmp(row->op, op)) ||
           (row->dtype != DT_INVALID && row->dtype != dtype) ||
           (row->target && strcmp(row->target, target)))
        row++;
    return row;
}
