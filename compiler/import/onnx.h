/* Reading ONNX files. */
#ifndef ASSAY_IMPORT_ONNX_H
#define ASSAY_IMPORT_ONNX_H

#include "graph/graph.h"

/* A value for a named dimension (--dim NAME=VALUE). */
typedef struct ImportDim {
    const char *name;
    int64_t value;
} ImportDim;

/* The graph of a model, or NULL with all faults of a kind in `diag`. */
Graph *onnx_import(Arena *arena, Diag *diag, const OpTable *ops,
                   const char *path, const ImportDim *dims, int dim_count);
/* A serialized TensorProto (.pb), as in the ONNX test data. */
Array *onnx_read_tensor(Arena *arena, Diag *diag, const char *path);

#endif
