/* Reading ONNX files. */
#ifndef ASSAY_IMPORT_ONNX_H
#define ASSAY_IMPORT_ONNX_H

#include "graph/graph.h"

/* Versions that are read. */
enum {
    ONNX_OLDEST_IR = 3,
    ONNX_NEWEST_IR = 14,
    ONNX_OLDEST_OPSET = 1,
    ONNX_NEWEST_OPSET = 28
};

/* A value for a named dimension (--dim NAME=VALUE), or bounds of one that is
 * known at run time only (--dim NAME=LOW..HIGH). */
typedef struct ImportDim {
    const char *name;
    int64_t value; /* or the lower bound */
    int64_t upper; /* 0: `value` it is */
} ImportDim;

/* A value for an input, which then is a constant (--bind NAME=FILE). */
typedef struct ImportBind {
    const char *name;
    const Array *value;
} ImportBind;

/* An input as the file lists it. */
typedef struct ImportInput {
    const char *name;
    bool is_fixed; /* the file stores a value for it */
} ImportInput;

typedef Vec(ImportInput) ImportInputs;

typedef struct ImportOptions {
    const ImportDim *dims;
    int dim_count;
    const ImportBind *binds;
    int bind_count;
    /* Gets the inputs in the file's order, bound ones too; or NULL. */
    ImportInputs *inputs;
} ImportOptions;

/* The graph of a model, or NULL with all faults of a kind in `diag`.
 * `options` may be NULL. */
Graph *onnx_import(Arena *arena, Diag *diag, const OpTable *ops,
                   const char *path, const ImportOptions *options);
/* A serialized TensorProto (.pb), as in the ONNX test data. */
Array *onnx_read_tensor(Arena *arena, Diag *diag, const char *path);

#endif
