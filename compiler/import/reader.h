/* What the files of the importer share. Private to import/. */
#ifndef ASSAY_IMPORT_READER_H
#define ASSAY_IMPORT_READER_H

#include "import/onnx.h"
#include "onnx/onnx.pb-c.h"

/* ---- file.c */

/* A whole file, mapped for reading. */
typedef struct FileData {
    const uint8_t *data;
    size_t size;
} FileData;

bool file_open(Diag *diag, const char *path, FileData *file);
void file_close(FileData *file);
/* Checks that the bytes are messages of this kind, all of them complete
 * and nested within reason, before anything is allocated for them. */
bool message_check(Diag *diag, const ProtobufCMessageDescriptor *descriptor,
                   const FileData *file);
/* Unpacks into the arena, so that large fields are used where they lie. */
ProtobufCMessage *message_unpack(Arena *arena,
                                 const ProtobufCMessageDescriptor *descriptor,
                                 const FileData *file);

/* ---- tensor.c */

/* The value of a TensorProto, or NULL after an error. `model_path` is the
 * file beside which external data lie; NULL: none are allowed. */
Array *tensor_value(Arena *arena, Diag *diag, const Onnx__TensorProto *proto,
                    const char *name, const char *model_path);
/* ---- external.c: fills the array from a file in the model's folder. */
bool external_read(Arena *arena, Diag *diag, const Onnx__TensorProto *proto,
                   const char *name, const char *model_path, Array *array);

/* ---- upgrade.c: from the form of older operator sets to the newest. */

typedef struct Importer {
    Arena *arena;
    Diag *diag;
    Graph *g;
    const char *path;
    int64_t opset; /* of ai.onnx */
} Importer;

/* The name that an operator has in the newest set, for those renamed. */
const char *upgrade_name(const char *op, int64_t opset);
/* Rewrites one node; false after an error. Types of its inputs are there
 * as far as they could be derived. */
bool upgrade_node(Importer *in, Node *node, const char *source_op);

#endif
