/* Which element types an operator takes, asked of its type rule. */
#ifndef ASSAY_HARNESS_OP_TYPES_H
#define ASSAY_HARNESS_OP_TYPES_H

#include "base/str.h"
#include "graph/graph.h"

/* A bit for each DType that operand 0 can have; 0: there is no operand. */
unsigned op_element_types(const Op *op);
/* "float int bool": float, int and uint stand for all widths. */
void op_types_print(Str *out, unsigned types);

#endif
