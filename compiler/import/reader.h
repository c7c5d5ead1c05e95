/* What the files of the importer share. Private to import/. */
#ifndef ASSAY_IMPORT_READER_H
#define ASSAY_IMPORT_READER_H

#include "import/onnx.h"
#include "onnx/onnx.pb-c.h"
#include "ops/op.h"

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

/* ---- narrow.c: element types of less than a byte, which no DType is */

/* "int4", or "number 99" for a type that is not known either. */
const char *narrow_name(Arena *arena, int32_t number);
/* Bits of an integer type that can be unpacked, and the type that then holds
 * it; 0 for other types. */
int narrow_bits(int32_t number, DType *dtype);
/* `packed` has as many bytes as the numbers of `shape` take, which has their
 * type and `bits`. */
Array *narrow_unpack(Arena *arena, const Array *packed, const Array *shape);
/* Whether all that reads unpacked constants is right for them. */
bool narrow_check(Graph *g);

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

/* ---- onnx.c: a graph of the file, the model's or a body */

/* One operator that Assay does not have, with the nodes that use it. */
typedef struct Missing {
    const char *op, *domain;
    int64_t version;
    int count;
    Str nodes;
} Missing;

typedef Vec(Tensor *) TensorList;

typedef struct BodyReader {
    const Node *node;
    struct Reader *reader;
} BodyReader;

typedef struct Reader {
    Importer in;
    const Onnx__ModelProto *model;
    const Onnx__GraphProto *proto;
    ImportOptions options;
    Vec(const char *) dim_names; /* of the model's inputs */
    const OpTable *ops;
    Map tensors; /* by name in the file */
    Vec(Missing) missing;
    Vec(Node *) nodes;                        /* by place in the file, */
    Vec(const Onnx__NodeProto *) node_protos; /* and what they came from */
    /* Of a body: the reader of what is around it, tensors of that which it or
     * another body of its node reads, and its inputs for them (NULL: not read
     * here), by the same number. */
    struct Reader *outer;
    TensorList *taken;
    TensorList taken_as;
    Vec(BodyReader) bodies;
} Reader;

/* Absent strings are null. */
static inline const char *text_of(const char *text)
{
    return text ? text : "";
}

bool is_onnx_domain(const char *domain);
bool reader_initializers(Reader *r);
bool reader_nodes(Reader *r);
/* All tensors are known: nodes get their operands, then bodies are read. */
bool reader_connect(Reader *r);
bool reader_outputs(Reader *r);
/* Older forms to the newest, in topological order. */
bool reader_upgrade(Reader *r);
/* Gives the tensor its name in the file. */
bool reader_claim(Reader *r, Tensor *tensor, const char *name);

/* ---- body.c: branches and bodies of loops */

/* The tensor of that name; one of the graph around becomes an input. */
Tensor *reader_find(Reader *r, const char *name);
bool body_is_in(const Onnx__NodeProto *proto);
/* A scan is read as a loop over slices. */
bool body_is_scan(const Onnx__NodeProto *proto);
/* What the loop that a node is needs besides its attributes. */
void body_finish_loop(Reader *r, Node *node);
bool body_finish_scan(Reader *r, Node *node, const Onnx__NodeProto *proto);
/* Reads the bodies of a node; what they read from outside becomes operands. */
bool body_read(Reader *r, Node *node, const Onnx__NodeProto *proto);
bool body_upgrade(Reader *r, Node *node);

#endif
