/* The canonical form of quantized layers; see whole.c. */
#ifndef ASSAY_OPS_WHOLE_H
#define ASSAY_OPS_WHOLE_H

#include "graph/graph.h"

/* Op.canonical of QuantizeLinear: rewrites the layer before it. */
bool canonical_quantize(Graph *g, Node *node);
/* Op.decompose of QLinearConv and QLinearMatMul: the same bits from kernels
 * of floats. */
bool decompose_qlinear(Graph *g, Node *node);

#endif
