/* A graph as an ONNX model. The graph's form of each operator is that of the
 * newest ONNX version, so that the model's operator set is the newest of
 * those that its operators need.
 *
 * The file is written field by field, and weights from where they lie: a
 * message of the whole model would hold them twice. */
#include "import/export.h"

#include <errno.h>
#include <string.h>

#include "base/replace.h"
#include "onnx/onnx.pb-c.h"
#include "ops/op.h"

typedef struct Export {
    Arena *arena;
    Diag *diag;
    const Graph *g;
    int opset;
} Export;

enum { OLDEST_OPSET = 13 };

/* ---- what has no form ------------------------------------------------- */

/* The compiler's own operators are no one else's; each once, with its
 * nodes. */
static bool check_ops(Export *e)
{
    bool ok = true;
    for (int i = 0; i < e->g->nodes.count; i++) {
        const Node *node = e->g->nodes.data[i];
        bool is_first = !strcmp(op_domain(node->op), "assay");
        Str names = {0};
        int count = 0;
        for (int k = 0; is_first && k < e->g->nodes.count; k++) {
            const Node *other = e->g->nodes.data[k];
            if (other->op != node->op)
                continue;
            is_first = k >= i;
            if (count++ < 4)
                str_addf(&names, "%s%s", count > 1 ? ", " : "", other->name);
        }
        if (is_first)
            ok = diag_error(e->diag,
                            "%s::%s is no standard operator: %d nodes, as "
                            "%s; stop before the pass that makes it "
                            "(--stop-after)",
                            op_domain(node->op), op_name(node->op), count,
                            str_text(&names));
        str_free(&names);
        if (node->bodies.count)
            ok = diag_error(e->diag,
                            "%s \"%s\": control flow is not written; it is "
                            "gone after `infer` where its condition or trip "
                            "count is a constant (--stop-after infer)",
                            op_name(node->op), node->name);
        if (!*op_domain(node->op) && node->op->since > e->opset)
            e->opset = node->op->since;
    }
    return ok;
}

static int64_t ir_version(int opset)
{
    return opset >= 28   ? 14
           : opset >= 25 ? 13
           : opset >= 24 ? 12
           : opset >= 23 ? 11
           : opset >= 21 ? 10
           : opset >= 19 ? 9
                         : 8;
}

/* ---- messages --------------------------------------------------------- */

static int32_t onnx_type(DType dtype)
{
    int32_t number = 1;
    while (dtype_of_onnx(number) != dtype)
        number++;
    return number;
}

static ProtobufCBinaryData text_message(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static Onnx__TensorProto tensor_message(Arena *arena, const Array *value,
                                        const char *name)
{
    Onnx__TensorProto t = ONNX__TENSOR_PROTO__INIT;
    t.name = (char *)name;
    t.n_dims = (size_t)value->rank;
    t.dims = (int64_t *)value->dims;
    t.has_data_type = 1;
    t.data_type = onnx_type(value->dtype);
    if (value->dtype == DT_STRING) {
        int64_t count = array_count(value);
        t.n_string_data = (size_t)count;
        t.string_data = ARENA_ARRAY(arena, ProtobufCBinaryData, count + 1);
        for (int64_t i = 0; i < count; i++)
            t.string_data[i] =
                text_message(((const char *const *)value->data)[i]);
        return t;
    }
    t.has_raw_data = 1;
    t.raw_data.data = value->data;
    t.raw_data.len = array_bytes(value);
    return t;
}

static void set_floats(Export *e, Onnx__AttributeProto *a, const Attr *attr)
{
    a->n_floats = (size_t)attr->count;
    a->floats = ARENA_ARRAY(e->arena, float, attr->count + 1);
    for (int i = 0; i < attr->count; i++)
        a->floats[i] = (float)attr->floats[i];
}

static void set_strings(Export *e, Onnx__AttributeProto *a, const Attr *attr)
{
    a->n_strings = (size_t)attr->count;
    a->strings = ARENA_ARRAY(e->arena, ProtobufCBinaryData, attr->count + 1);
    for (int i = 0; i < attr->count; i++)
        a->strings[i] = text_message(attr->strings[i]);
}

/* The kinds are in the order of AttrKind. */
static Onnx__AttributeProto *attr_message(Export *e, const Attr *attr)
{
    static const Onnx__AttributeProto__AttributeType types[] = {
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS,
        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR};
    Onnx__AttributeProto *a = ARENA_NEW(e->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(a);
    a->name = (char *)attr->name;
    a->has_type = 1;
    a->type = types[attr->kind];
    switch (attr->kind) {
    case ATTR_INT:
        a->has_i = 1;
        a->i = attr->i;
        break;
    case ATTR_FLOAT:
        a->has_f = 1;
        a->f = (float)attr->f;
        break;
    case ATTR_STRING:
        a->has_s = 1;
        a->s.len = strlen(attr->s);
        a->s.data = (uint8_t *)(uintptr_t)attr->s;
        break;
    case ATTR_INTS:
        a->n_ints = (size_t)attr->count;
        a->ints = (int64_t *)(uintptr_t)attr->ints;
        break;
    case ATTR_FLOATS:
        set_floats(e, a, attr);
        break;
    case ATTR_STRINGS:
        set_strings(e, a, attr);
        break;
    case ATTR_TENSOR:
        a->t = ARENA_NEW(e->arena, Onnx__TensorProto);
        *a->t = tensor_message(e->arena, attr->tensor, "");
        break;
    }
    return a;
}

static char **names_of(Export *e, Tensor *const *tensors, int count)
{
    char **names = ARENA_ARRAY(e->arena, char *, count + 1);
    for (int i = 0; i < count; i++)
        names[i] = tensors[i] ? (char *)tensors[i]->name : "";
    return names;
}

static Onnx__NodeProto node_message(Export *e, const Node *node)
{
    Onnx__NodeProto n = ONNX__NODE_PROTO__INIT;
    n.name = (char *)node->name;
    n.op_type = (char *)op_name(node->op);
    n.domain = (char *)op_domain(node->op);
    n.n_input = (size_t)node->inputs.count;
    n.input = names_of(e, node->inputs.data, node->inputs.count);
    n.n_output = (size_t)node->outputs.count;
    n.output = names_of(e, node->outputs.data, node->outputs.count);
    n.n_attribute = (size_t)node->attrs.list.count;
    n.attribute =
        ARENA_ARRAY(e->arena, Onnx__AttributeProto *, n.n_attribute + 1);
    for (int i = 0; i < node->attrs.list.count; i++)
        n.attribute[i] = attr_message(e, &node->attrs.list.data[i]);
    return n;
}

static Onnx__TensorShapeProto__Dimension *dim_message(Export *e, Extent extent)
{
    Onnx__TensorShapeProto__Dimension *d =
        ARENA_NEW(e->arena, Onnx__TensorShapeProto__Dimension);
    onnx__tensor_shape_proto__dimension__init(d);
    if (extent_is_const(extent)) {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = extent.value;
        return d;
    }
    Str text = {0};
    extent_print(&text, extent);
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    d->dim_param = arena_strdup(e->arena, str_text(&text));
    str_free(&text);
    return d;
}

static Onnx__ValueInfoProto value_message(Export *e, const Tensor *t)
{
    Onnx__ValueInfoProto v = ONNX__VALUE_INFO_PROTO__INIT;
    Onnx__TensorShapeProto *shape =
        ARENA_NEW(e->arena, Onnx__TensorShapeProto);
    Onnx__TypeProto__Tensor *tensor =
        ARENA_NEW(e->arena, Onnx__TypeProto__Tensor);
    Onnx__TypeProto *type = ARENA_NEW(e->arena, Onnx__TypeProto);
    onnx__tensor_shape_proto__init(shape);
    onnx__type_proto__tensor__init(tensor);
    onnx__type_proto__init(type);
    int rank = t->type.rank > 0 ? t->type.rank : 0;
    shape->n_dim = (size_t)rank;
    shape->dim =
        ARENA_ARRAY(e->arena, Onnx__TensorShapeProto__Dimension *, rank + 1);
    for (int i = 0; i < rank; i++)
        shape->dim[i] = dim_message(e, t->type.dims[i]);
    tensor->has_elem_type = 1;
    tensor->elem_type = onnx_type(t->type.dtype);
    tensor->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    v.name = (char *)t->name;
    v.type = type;
    return v;
}

/* ---- the file --------------------------------------------------------- */

/* Field numbers of onnx.proto. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_GRAPH = 7,
    MODEL_OPSET = 8,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    TENSOR_RAW_DATA = 9
};

/* Counts bytes without a file: lengths come before what they are of. */
typedef struct Writer {
    FILE *file;
    size_t bytes;
    bool failed;
} Writer;

static void put(Writer *w, const void *data, size_t size)
{
    w->bytes += size;
    if (w->file && size && fwrite(data, 1, size, w->file) != size)
        w->failed = true;
}

static void put_varint(Writer *w, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (uint8_t)(value & 127) | (value > 127 ? 128 : 0);
        value >>= 7;
    } while (value);
    put(w, bytes, count);
}

/* The head of a field that has a length. */
static void put_head(Writer *w, int field, size_t length)
{
    put_varint(w, (uint64_t)field << 3 | 2);
    put_varint(w, length);
}

static void put_text(Writer *w, int field, const char *text)
{
    put_head(w, field, strlen(text));
    put(w, text, strlen(text));
}

static void put_message(Writer *w, Arena *scratch, int field,
                        const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    put_head(w, field, size);
    if (!w->file) {
        w->bytes += size;
        return;
    }
    uint8_t *data = arena_alloc(scratch, size + 1);
    protobuf_c_message_pack(message, data);
    put(w, data, size);
}

/* All but its data as a message, then the data from where it lies. */
static void put_initializer(Writer *w, Arena *scratch, const Tensor *t)
{
    Onnx__TensorProto message = tensor_message(scratch, t->value, t->name);
    size_t bytes = message.raw_data.len;
    bool has_raw = message.has_raw_data; /* strings have none */
    message.has_raw_data = 0;
    size_t head = protobuf_c_message_get_packed_size(&message.base);
    Writer field = {0};
    if (has_raw)
        put_head(&field, TENSOR_RAW_DATA, bytes);
    put_head(w, GRAPH_INITIALIZER, head + field.bytes + bytes);
    uint8_t *data = arena_alloc(scratch, head + 1);
    protobuf_c_message_pack(&message.base, data);
    put(w, data, head);
    if (!has_raw)
        return;
    put_head(w, TENSOR_RAW_DATA, bytes);
    put(w, t->value->data, bytes);
}

static void put_graph(Export *e, Writer *w)
{
    const Graph *g = e->g;
    Arena *keep = e->arena;
    e->arena = arena_new();
    for (int i = 0; i < g->nodes.count; i++) {
        Onnx__NodeProto node = node_message(e, g->nodes.data[i]);
        put_message(w, e->arena, GRAPH_NODE, &node.base);
    }
    put_text(w, GRAPH_NAME, *g->name ? g->name : "graph");
    for (int i = 0; i < g->tensors.count; i++)
        if (g->tensors.data[i]->value)
            put_initializer(w, e->arena, g->tensors.data[i]);
    for (int i = 0; i < g->inputs.count; i++) {
        Onnx__ValueInfoProto input = value_message(e, g->inputs.data[i]);
        put_message(w, e->arena, GRAPH_INPUT, &input.base);
    }
    for (int i = 0; i < g->outputs.count; i++) {
        Onnx__ValueInfoProto output = value_message(e, g->outputs.data[i]);
        put_message(w, e->arena, GRAPH_OUTPUT, &output.base);
    }
    arena_free(e->arena);
    e->arena = keep;
}

static void put_opset(Export *e, Writer *w, const char *domain,
                      int64_t version)
{
    Onnx__OperatorSetIdProto set = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    set.domain = (char *)domain;
    set.has_version = 1;
    set.version = version;
    put_message(w, e->arena, MODEL_OPSET, &set.base);
}

static void put_model(Export *e, Writer *w)
{
    Writer size = {0};
    put_graph(e, &size);
    put_varint(w, MODEL_IR_VERSION << 3);
    put_varint(w, (uint64_t)ir_version(e->opset));
    put_text(w, MODEL_PRODUCER, "assay");
    put_head(w, MODEL_GRAPH, size.bytes);
    put_graph(e, w);
    put_opset(e, w, "", e->opset);
    for (int i = 0; i < e->g->nodes.count; i++) {
        const char *domain = op_domain(e->g->nodes.data[i]->op);
        bool is_new = *domain != 0;
        for (int k = 0; k < i; k++)
            is_new =
                is_new && strcmp(domain, op_domain(e->g->nodes.data[k]->op));
        if (is_new)
            put_opset(e, w, domain, 1);
    }
}

/* What readers of protobuf take at most. */
static const size_t most_bytes = (size_t)INT32_MAX;

bool onnx_export(Diag *diag, const Graph *g, const char *path)
{
    Export e = {
        .arena = arena_new(), .diag = diag, .g = g, .opset = OLDEST_OPSET};
    Replacement file;
    bool ok = check_ops(&e);
    if (ok) {
        Writer size = {0};
        put_model(&e, &size);
        if (size.bytes > most_bytes)
            ok = diag_error(diag,
                            "the model takes %zu bytes, an ONNX file holds "
                            "%zu at most",
                            size.bytes, most_bytes);
    }
    if (ok) {
        ok = replace_begin(&file, path);
        if (ok) {
            Writer w = {.file = file.file};
            put_model(&e, &w);
            ok = replace_end(&file, !w.failed && !fflush(file.file));
        }
        if (!ok)
            diag_error(diag, "cannot write %s: %s", path, strerror(errno));
    }
    arena_free(e.arena);
    return ok;
}
