/* Writing ONNX files. */
#ifndef ASSAY_IMPORT_EXPORT_H
#define ASSAY_IMPORT_EXPORT_H

#include "graph/graph.h"

/* Writes the graph as an ONNX model: to a temporary, then renamed. False
 * with diagnostics when an operator or attribute has no ONNX form, all of
 * them named, or when the file cannot be written. */
bool onnx_export(Diag *diag, const Graph *g, const char *path);

#endif
