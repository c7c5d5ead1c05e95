/* The ONNX importer: models built in memory with protobuf, malformed ones,
 * and, where extra test data are there, real models and odd files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/export.h"
#include "import/onnx.h"
#include "onnx/onnx.pb-c.h"
#include "ops/op.h"

enum { MOST = 32 };

/* A model under construction. */
typedef struct Builder {
    Arena *arena;
    Diag *diag;
    char folder[64], path[96];
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto opset, *opsets[1];
    Onnx__NodeProto *nodes[MOST];
    Onnx__TensorProto *initializers[MOST];
    Onnx__ValueInfoProto *inputs[MOST], *outputs[MOST];
} Builder;

static int setup(void **state)
{
    Arena *arena = arena_new();
    Builder *b = ARENA_NEW(arena, Builder);
    b->arena = arena;
    b->diag = diag_new(arena, NULL);
    strcpy(b->folder, "/tmp/assay-import-XXXXXX");
    if (!mkdtemp(b->folder))
        return -1;
    snprintf(b->path, sizeof b->path, "%s/model.onnx", b->folder);
    onnx__model_proto__init(&b->model);
    onnx__graph_proto__init(&b->graph);
    onnx__operator_set_id_proto__init(&b->opset);
    b->opset.domain = "";
    b->opset.has_version = 1;
    b->opset.version = 13;
    b->opsets[0] = &b->opset;
    b->model.has_ir_version = 1;
    b->model.ir_version = 8;
    b->model.n_opset_import = 1;
    b->model.opset_import = b->opsets;
    b->model.graph = &b->graph;
    b->graph.name = "test";
    b->graph.node = b->nodes;
    b->graph.initializer = b->initializers;
    b->graph.input = b->inputs;
    b->graph.output = b->outputs;
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    Builder *b = *state;
    remove(b->path);
    rmdir(b->folder);
    arena_free(b->arena);
    return 0;
}

/* Extents: a number, or a name when `names` has one there. */
static Onnx__ValueInfoProto *value_info(Builder *b, const char *name, int rank,
                                        const int64_t *dims,
                                        const char *const *names)
{
    Onnx__ValueInfoProto *info = ARENA_NEW(b->arena, Onnx__ValueInfoProto);
    Onnx__TypeProto *type = ARENA_NEW(b->arena, Onnx__TypeProto);
    Onnx__TypeProto__Tensor *tensor =
        ARENA_NEW(b->arena, Onnx__TypeProto__Tensor);
    Onnx__TensorShapeProto *shape =
        ARENA_NEW(b->arena, Onnx__TensorShapeProto);
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
    info->name = arena_strdup(b->arena, name);
    info->type = type;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = 1;
    tensor->shape = shape;
    shape->n_dim = (size_t)rank;
    shape->dim =
        ARENA_ARRAY(b->arena, Onnx__TensorShapeProto__Dimension *, rank);
    for (int i = 0; i < rank; i++) {
        Onnx__TensorShapeProto__Dimension *dim =
            ARENA_NEW(b->arena, Onnx__TensorShapeProto__Dimension);
        onnx__tensor_shape_proto__dimension__init(dim);
        if (names && names[i]) {
            dim->value_case =
                ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            dim->dim_param = (char *)names[i];
        } else {
            dim->value_case =
                ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            dim->dim_value = dims[i];
        }
        shape->dim[i] = dim;
    }
    return info;
}

static void add_input(Builder *b, const char *name, int rank,
                      const int64_t *dims)
{
    b->inputs[b->graph.n_input++] = value_info(b, name, rank, dims, NULL);
}

static void add_output(Builder *b, const char *name)
{
    b->outputs[b->graph.n_output++] = value_info(b, name, 0, NULL, NULL);
}

/* Names are separated by blanks; "-" is an operand left out. */
static char **split_names(Builder *b, const char *text, size_t *count)
{
    char **names = ARENA_ARRAY(b->arena, char *, MOST);
    *count = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        names[*count] = arena_strndup(b->arena, text, length);
        if (strcmp(names[*count], "-") == 0)
            names[*count] = "";
        (*count)++;
        text += length;
        text += strspn(text, " ");
    }
    return names;
}

static Onnx__NodeProto *add_node(Builder *b, const char *op,
                                 const char *inputs, const char *outputs)
{
    Onnx__NodeProto *node = ARENA_NEW(b->arena, Onnx__NodeProto);
    onnx__node_proto__init(node);
    node->op_type = (char *)op;
    node->input = split_names(b, inputs, &node->n_input);
    node->output = split_names(b, outputs, &node->n_output);
    node->attribute = ARENA_ARRAY(b->arena, Onnx__AttributeProto *, MOST);
    b->nodes[b->graph.n_node++] = node;
    return node;
}

static Onnx__AttributeProto *add_attr(Builder *b, Onnx__NodeProto *node,
                                      const char *name, int type)
{
    Onnx__AttributeProto *attr = ARENA_NEW(b->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(attr);
    attr->name = (char *)name;
    attr->has_type = 1;
    attr->type = (Onnx__AttributeProto__AttributeType)type;
    node->attribute[node->n_attribute++] = attr;
    return attr;
}

static void add_int(Builder *b, Onnx__NodeProto *node, const char *name,
                    int64_t value)
{
    Onnx__AttributeProto *attr = add_attr(b, node, name, 2);
    attr->has_i = 1;
    attr->i = value;
}

static void add_float(Builder *b, Onnx__NodeProto *node, const char *name,
                      float value)
{
    Onnx__AttributeProto *attr = add_attr(b, node, name, 1);
    attr->has_f = 1;
    attr->f = value;
}

static void add_ints(Builder *b, Onnx__NodeProto *node, const char *name,
                     int count, const int64_t *values)
{
    Onnx__AttributeProto *attr = add_attr(b, node, name, 7);
    attr->n_ints = (size_t)count;
    attr->ints = arena_copy(b->arena, values, (size_t)count * 8);
}

static Onnx__TensorProto *add_tensor(Builder *b, const char *name, int type,
                                     int rank, const int64_t *dims,
                                     const void *data, size_t bytes)
{
    Onnx__TensorProto *tensor = ARENA_NEW(b->arena, Onnx__TensorProto);
    onnx__tensor_proto__init(tensor);
    tensor->name = (char *)name;
    tensor->has_data_type = 1;
    tensor->data_type = type;
    tensor->n_dims = (size_t)rank;
    tensor->dims = arena_copy(b->arena, dims, (size_t)rank * 8);
    tensor->has_raw_data = data != NULL;
    tensor->raw_data.len = bytes;
    tensor->raw_data.data = (uint8_t *)data;
    b->initializers[b->graph.n_initializer++] = tensor;
    return tensor;
}

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static Graph *import_options(Builder *b, const ImportOptions *options)
{
    size_t size = onnx__model_proto__get_packed_size(&b->model);
    uint8_t *data = arena_alloc(b->arena, size);
    onnx__model_proto__pack(&b->model, data);
    write_file(b->path, data, size);
    return onnx_import(b->arena, b->diag, ops_builtin(), b->path, options);
}

static Graph *import_with(Builder *b, const ImportDim *dims, int count)
{
    return import_options(b,
                          &(ImportOptions){.dims = dims, .dim_count = count});
}

/* Imports and infers; the result must hold in every respect. */
static Graph *import_sound(Builder *b)
{
    Graph *g = import_with(b, NULL, 0);
    for (int i = 0; i < b->diag->errors.count; i++)
        print_error("%s\n", b->diag->errors.data[i]);
    assert_non_null(g);
    assert_true(ops_infer_graph(g));
    graph_verify(g);
    return g;
}

static bool has_error(const Diag *diag, const char *part)
{
    for (int i = 0; i < diag->errors.count; i++)
        if (strstr(diag->errors.data[i], part))
            return true;
    print_error("no error holds \"%s\":\n", part);
    for (int i = 0; i < diag->errors.count; i++)
        print_error("  %s\n", diag->errors.data[i]);
    return false;
}

static const int64_t shape_2_3[] = {2, 3};

static void expect_type(const Graph *g, const char *name, const char *text)
{
    Str printed = {0};
    const Tensor *tensor = graph_find_tensor(g, name);
    assert_non_null(tensor);
    type_print(&printed, &tensor->type);
    assert_string_equal(str_text(&printed), text);
    str_free(&printed);
}

/* A sound model: values, attributes, names, a node without a name, nodes
 * out of order. */
static void test_plain(void **state)
{
    Builder *b = *state;
    const float weights[] = {1, -2, 0.5f, 4, 5, 6};
    const int64_t dims[] = {3, 2};
    add_input(b, "x", 2, shape_2_3);
    add_tensor(b, "w", 1, 2, dims, weights, sizeof weights);
    add_node(b, "Relu", "p", "y");
    Onnx__NodeProto *gemm = add_node(b, "Gemm", "x w", "p");
    gemm->name = "fc";
    add_float(b, gemm, "alpha", 0.5f);
    add_output(b, "y");
    Graph *g = import_sound(b);
    assert_string_equal(g->name, "test");
    assert_int_equal(g->nodes.count, 2);
    const Node *first = g->nodes.data[0];
    assert_string_equal(op_name(first->op), "Gemm");
    assert_string_equal(first->name, "fc");
    assert_string_equal(first->sources.data[0], "fc");
    assert_true(attrs_float(&first->attrs, "alpha", 1) == 0.5);
    assert_string_equal(g->nodes.data[1]->name, "y");
    expect_type(g, "p", "f32[2,2]");
    const Array *value = graph_find_tensor(g, "w")->value;
    assert_true(array_get(value, 1) == -2 && array_get(value, 5) == 6);
    assert_int_equal((uintptr_t)value->data % 64, 0);
    assert_string_equal(g->outputs.data[0]->name, "y");
}

/* Typed fields of all kinds, and a large raw tensor used in place. */
static void test_tensors(void **state)
{
    Builder *b = *state;
    const int64_t two[] = {2}, many[] = {4096};
    int32_t small[] = {-7, 100}, flags[] = {0, 3}, half[] = {0x3c00, 0xc000};
    double doubles[] = {0.1, -2};
    int64_t longs[] = {INT64_MIN, 5};
    uint64_t wide[] = {UINT32_MAX, 1};
    float *large = ARENA_ARRAY(b->arena, float, 4096);
    for (int i = 0; i < 4096; i++)
        large[i] = (float)i;
    Onnx__TensorProto *t = add_tensor(b, "i8", 3, 1, two, NULL, 0);
    t->n_int32_data = 2;
    t->int32_data = small;
    t = add_tensor(b, "bool", 9, 1, two, NULL, 0);
    t->n_int32_data = 2;
    t->int32_data = flags;
    t = add_tensor(b, "f16", 10, 1, two, NULL, 0);
    t->n_int32_data = 2;
    t->int32_data = half;
    t = add_tensor(b, "f64", 11, 1, two, NULL, 0);
    t->n_double_data = 2;
    t->double_data = doubles;
    t = add_tensor(b, "i64", 7, 1, two, NULL, 0);
    t->n_int64_data = 2;
    t->int64_data = longs;
    t = add_tensor(b, "u32", 12, 1, two, NULL, 0);
    t->n_uint64_data = 2;
    t->uint64_data = wide;
    add_tensor(b, "large", 1, 1, many, large, 4096 * sizeof *large);
    add_input(b, "x", 2, shape_2_3);
    add_node(b, "Relu", "x", "y");
    add_output(b, "y");
    Graph *g = import_sound(b);
    assert_int_equal(array_get_int(graph_find_tensor(g, "i8")->value, 0), -7);
    assert_int_equal(array_get_int(graph_find_tensor(g, "bool")->value, 1), 1);
    assert_true(array_get(graph_find_tensor(g, "f16")->value, 1) == -2);
    assert_true(array_get(graph_find_tensor(g, "f64")->value, 0) == 0.1);
    assert_true(array_get_int(graph_find_tensor(g, "i64")->value, 0) ==
                INT64_MIN);
    assert_true(array_get(graph_find_tensor(g, "u32")->value, 0) ==
                UINT32_MAX);
    const Array *array = graph_find_tensor(g, "large")->value;
    assert_int_equal((uintptr_t)array->data % 64, 0);
    assert_true(array_get(array, 4095) == 4095);
}

static void check_values(Graph *g, const char *name, const char *type,
                         const int *values)
{
    const Array *array = graph_find_tensor(g, name)->value;
    assert_string_equal(dtype_name(array->dtype), type);
    for (int64_t i = 0; i < array_count(array); i++)
        assert_int_equal(array_get_int(array, i), values[i]);
}

/* Integers of 4 and 2 bits: what moves and dequantizes them works on bytes.
 */
static void test_narrow(void **state)
{
    Builder *b = *state;
    const int64_t three[] = {3}, row[] = {1, 3};
    const uint8_t fours[] = {0x8f, 0x07}, twos[] = {0x36};
    const float scale[] = {0.5};
    int32_t typed[] = {0x8f, 0x07};
    add_tensor(b, "i4", 22, 1, three, fours, 2);
    Onnx__TensorProto *t = add_tensor(b, "u4", 21, 1, three, NULL, 0);
    t->n_int32_data = 2;
    t->int32_data = typed;
    add_tensor(b, "i2", 26, 1, three, twos, 1);
    add_tensor(b, "u2", 25, 1, three, twos, 1);
    add_tensor(b, "s", 1, 0, NULL, scale, sizeof scale);
    add_tensor(b, "shape", 7, 1, three, row, sizeof row);
    b->initializers[b->graph.n_initializer - 1]->dims[0] = 2;
    add_input(b, "x", 1, three);
    add_node(b, "Reshape", "i4 shape", "r");
    add_node(b, "DequantizeLinear", "r s", "y");
    add_int(b, add_node(b, "Cast", "u4", "z"), "to", 6);
    add_output(b, "y");
    add_output(b, "z");
    Graph *g = import_sound(b);
    check_values(g, "i4", "i8", (int[]){-1, -8, 7});
    check_values(g, "u4", "u8", (int[]){15, 8, 7});
    check_values(g, "i2", "i8", (int[]){-2, 1, -1});
    check_values(g, "u2", "u8", (int[]){2, 1, 3});
    t->n_int32_data = 3;
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "tensor u4 carries 3 elements"));
}

/* Others would take the byte's range for theirs. */
static void test_narrow_faults(void **state)
{
    Builder *b = *state;
    const int64_t two[] = {2};
    const uint8_t four[] = {0};
    const float scale[] = {0.5};
    add_tensor(b, "z", 22, 0, NULL, four, 1);
    add_tensor(b, "k", 21, 1, two, four, 1);
    add_tensor(b, "s", 1, 0, NULL, scale, sizeof scale);
    add_input(b, "x", 1, two);
    add_node(b, "QuantizeLinear", "x s z", "y");
    add_output(b, "y");
    add_output(b, "k");
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "(output y): its operand z has integers "
                                   "of less than 8 bits"));
    assert_true(has_error(b->diag, "output k has integers of less than"));
    add_tensor(b, "f", 17, 1, two, four, 1);
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "tensor f has the element type "
                                   "float8e4m3fn"));
}

/* Older forms arrive in today's. */
static void test_upgrade(void **state)
{
    Builder *b = *state;
    const int64_t axes[] = {0}, starts[] = {1}, ends[] = {3}, one[] = {1};
    const int64_t pads[] = {0, 1, 0, 2}, dims[] = {1, 2, 3};
    const int64_t split[] = {1, 1};
    b->opset.version = 8;
    add_input(b, "x", 3, dims);
    add_ints(b, add_node(b, "Squeeze", "x", "s"), "axes", 1, axes);
    Onnx__NodeProto *clip = add_node(b, "Clip", "s", "c");
    add_float(b, clip, "min", -1);
    add_float(b, clip, "max", 6);
    Onnx__NodeProto *slice = add_node(b, "Slice", "c", "sl");
    add_ints(b, slice, "starts", 1, starts);
    add_ints(b, slice, "ends", 1, ends);
    add_ints(b, slice, "axes", 1, one);
    Onnx__NodeProto *pad = add_node(b, "Pad", "sl", "p");
    add_ints(b, pad, "pads", 4, pads);
    add_float(b, pad, "value", 2.5f);
    add_ints(b, add_node(b, "ReduceMean", "p", "r"), "axes", 1, one);
    add_ints(b, add_node(b, "Split", "r", "q0 q1"), "split", 2, split);
    Onnx__NodeProto *drop = add_node(b, "Dropout", "q0", "d");
    add_float(b, drop, "ratio", 0.5f);
    add_output(b, "d");
    add_output(b, "q1");
    Graph *g = import_sound(b);
    expect_type(g, "s", "f32[2,3]");
    expect_type(g, "sl", "f32[2,2]");
    expect_type(g, "p", "f32[2,5]");
    expect_type(g, "r", "f32[2,1]");
    expect_type(g, "d", "f32[1,1]");
    const Node *node = graph_find_tensor(g, "c")->producer;
    assert_int_equal(node->inputs.count, 3);
    assert_true(array_get(node->inputs.data[1]->value, 0) == -1);
    assert_true(array_get(node->inputs.data[2]->value, 0) == 6);
    assert_int_equal(node->attrs.list.count, 0);
    node = graph_find_tensor(g, "p")->producer;
    assert_true(array_get(node->inputs.data[2]->value, 0) == 2.5);
}

/* Before version 7 the second operand stood at an axis of the first. */
static void test_old_broadcast(void **state)
{
    Builder *b = *state;
    const int64_t dims[] = {2, 3, 4}, three[] = {3}, four[] = {4};
    const float values[] = {1, 2, 3, 4};
    b->opset.version = 6;
    add_input(b, "x", 3, dims);
    add_tensor(b, "k", 1, 1, three, values, 12);
    add_tensor(b, "m", 1, 1, four, values, 16);
    Onnx__NodeProto *add = add_node(b, "Add", "x k", "a");
    add_int(b, add, "broadcast", 1);
    add_int(b, add, "axis", 1);
    add_int(b, add_node(b, "Mul", "a m", "y"), "broadcast", 1);
    add_node(b, "PRelu", "y k", "z");
    add_output(b, "z");
    Graph *g = import_sound(b);
    expect_type(g, "z", "f32[2,3,4]");
    expect_type(g, "y", "f32[2,3,4]");
    const Node *node = graph_find_tensor(g, "a")->producer;
    assert_int_equal(node->attrs.list.count, 0);
    assert_int_equal(node->inputs.data[1]->type.rank, 2);
    node = graph_find_tensor(g, "y")->producer;
    assert_string_equal(node->inputs.data[1]->name, "m");
    add->attribute[1]->i = 3;
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "Add (output a): its attribute axis"));
}

/* Attributes of the first versions. */
static void test_first_versions(void **state)
{
    Builder *b = *state;
    const int64_t dims[] = {1, 2, 3}, shape[] = {2, 3}, kernel[] = {2};
    b->opset.version = 1;
    add_input(b, "x", 3, dims);
    Onnx__NodeProto *pool = add_node(b, "LpPool", "x", "p");
    add_float(b, pool, "p", 3);
    add_ints(b, pool, "kernel_shape", 1, kernel);
    add_ints(b, add_node(b, "Reshape", "x", "r"), "shape", 2, shape);
    add_int(b, add_node(b, "Hardmax", "r", "h"), "axis", 0);
    add_ints(b, add_node(b, "Relu", "p", "y"), "consumed_inputs", 1, kernel);
    add_output(b, "h");
    add_output(b, "y");
    Graph *g = import_sound(b);
    expect_type(g, "h", "f32[2,3]");
    expect_type(g, "y", "f32[1,2,2]");
    const Node *node = graph_find_tensor(g, "p")->producer;
    assert_int_equal(attrs_int(&node->attrs, "p", 0), 3);
    pool->attribute[0]->f = 1.5f;
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "p must be a whole number"));
}

/* Softmax before 13 takes the axes from 1 on together. */
static void test_softmax(void **state)
{
    Builder *b = *state;
    const int64_t dims[] = {2, 3, 4};
    b->opset.version = 11;
    add_input(b, "x", 3, dims);
    add_node(b, "Softmax", "x", "y");
    add_int(b, add_node(b, "Softmax", "y", "z"), "axis", 2);
    add_output(b, "z");
    Graph *g = import_sound(b);
    assert_int_equal(g->nodes.count, 4);
    assert_string_equal(op_name(g->nodes.data[0]->op), "Flatten");
    assert_string_equal(op_name(g->nodes.data[1]->op), "Softmax");
    assert_int_equal(attrs_int(&g->nodes.data[1]->attrs, "axis", 0), -1);
    assert_string_equal(op_name(g->nodes.data[2]->op), "Reshape");
    expect_type(g, "y", "f32[2,3,4]");
    assert_ptr_equal(g->nodes.data[2]->outputs.data[0],
                     graph_find_tensor(g, "y"));
    assert_string_equal(op_name(g->nodes.data[3]->op), "Softmax");
}

/* An extent of 0 stays one. */
static void test_empty_softmax(void **state)
{
    Builder *b = *state;
    const int64_t dims[] = {2, 3, 0};
    b->opset.version = 11;
    add_input(b, "x", 3, dims);
    add_node(b, "LogSoftmax", "x", "y");
    add_output(b, "y");
    expect_type(import_sound(b), "y", "f32[2,3,0]");
}

static void test_softmax_faults(void **state)
{
    Builder *b = *state;
    const int64_t axes[] = {1, 1};
    b->opset.version = 11;
    add_input(b, "x", 2, shape_2_3);
    add_int(b, add_node(b, "Softmax", "x", "y"), "axis", 3);
    Onnx__NodeProto *node = add_node(b, "Hardmax", "x", "z");
    add_output(b, "y");
    add_output(b, "z");
    add_ints(b, node, "axis", 2, axes);
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "Softmax (output y): its attribute axis "
                                   "is outside"));
    assert_true(has_error(b->diag, "Hardmax (output z): its attribute axis "
                                   "must be an integer"));
    add_int(b, node, "axis", 1);
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "is there twice"));
}

/* Numbers for each element of an image: as many channels. */
static void test_spatial(void **state)
{
    Builder *b = *state;
    const int64_t dims[] = {4, 2, 3};
    b->opset.version = 8;
    add_input(b, "x", 3, dims);
    add_input(b, "s", 2, shape_2_3);
    Onnx__NodeProto *node =
        add_node(b, "BatchNormalization", "x s s s s", "y");
    add_int(b, node, "spatial", 0);
    add_output(b, "y");
    Graph *g = import_sound(b);
    assert_int_equal(g->nodes.count, 7);
    Tensor *y = graph_find_tensor(g, "y");
    assert_string_equal(op_name(y->producer->op), "Reshape");
    expect_type(g, "y", "f32[4,2,3]");
    expect_type(g, y->producer->inputs.data[0]->name, "f32[4,6]");
    const Node *norm = y->producer->inputs.data[0]->producer;
    assert_string_equal(op_name(norm->op), "BatchNormalization");
    expect_type(g, norm->inputs.data[4]->name, "f32[6]");
}

static void test_upsample(void **state)
{
    Builder *b = *state;
    const int64_t dims[] = {1, 1, 2, 3}, four[] = {4};
    const float scales[] = {1, 1, 2, 2};
    b->opset.version = 9;
    add_input(b, "x", 4, dims);
    add_tensor(b, "s", 1, 1, four, scales, sizeof scales);
    add_node(b, "Upsample", "x s", "y");
    add_output(b, "y");
    Graph *g = import_sound(b);
    const Node *node = g->nodes.data[0];
    assert_string_equal(op_name(node->op), "Resize");
    assert_null(node->inputs.data[1]);
    assert_string_equal(attrs_string(&node->attrs, "nearest_mode", ""),
                        "floor");
    expect_type(g, "y", "f32[1,1,4,6]");
}

/* Constants and inputs as outputs; an output listed twice. */
static void test_outputs(void **state)
{
    Builder *b = *state;
    const float value[] = {7};
    const int64_t one[] = {1};
    add_input(b, "x", 2, shape_2_3);
    add_tensor(b, "k", 1, 1, one, value, sizeof value);
    add_node(b, "Relu", "x", "y");
    add_output(b, "k");
    add_output(b, "x");
    add_output(b, "y");
    add_output(b, "y");
    Graph *g = import_sound(b);
    assert_int_equal(g->outputs.count, 4);
    const Tensor *k = g->outputs.data[0];
    assert_string_equal(k->name, "k");
    assert_non_null(k->producer);
    assert_true(array_get(k->producer->inputs.data[0]->value, 0) == 7);
    assert_string_equal(g->outputs.data[1]->sources.data[0], "x");
    assert_ptr_equal(g->outputs.data[1]->producer->inputs.data[0],
                     g->inputs.data[0]);
    assert_ptr_equal(g->outputs.data[3]->producer->inputs.data[0],
                     g->outputs.data[2]);
}

static void test_fixed_input(void **state)
{
    Builder *b = *state;
    const float value[] = {7};
    const int64_t one[] = {1};
    add_input(b, "x", 2, shape_2_3);
    add_input(b, "k", 1, one);
    add_tensor(b, "k", 1, 1, one, value, sizeof value);
    add_node(b, "Add", "x k", "y");
    add_output(b, "y");
    Graph *g = import_sound(b);
    assert_int_equal(g->inputs.count, 1);
    assert_int_equal(b->diag->warnings.count, 1);
    assert_non_null(strstr(b->diag->warnings.data[0], "fixed input"));
}

/* Only constants are strings; their numbers are there before anything is
 * compiled. */
static void test_strings(void **state)
{
    Builder *b = *state;
    ProtobufCBinaryData texts[] = {{4, (uint8_t *)(uintptr_t) "-1.5"},
                                   {3, (uint8_t *)(uintptr_t) "inf"}};
    const int64_t two[] = {2};
    Onnx__TensorProto *s = add_tensor(b, "s", 8, 1, two, NULL, 0);
    s->n_string_data = 2;
    s->string_data = texts;
    add_int(b, add_node(b, "Cast", "s", "y"), "to", 1);
    add_output(b, "y");
    Graph *g = import_sound(b);
    expect_type(g, "s", "string[2]");
    assert_true(onnx_export(b->diag, g, b->path));
    Graph *same = onnx_import(b->arena, b->diag, ops_builtin(), b->path, NULL);
    assert_non_null(same);
    assert_true(array_equal(graph_find_tensor(same, "s")->value,
                            graph_find_tensor(g, "s")->value));
    assert_false(ops_check_lowerable(g));
    assert_true(g->nodes.data[0]->op->decompose(g, g->nodes.data[0]));
    assert_true(ops_check_lowerable(g));
    const Tensor *y = graph_find_tensor(g, "y");
    assert_string_equal(op_name(y->producer->op), "Identity");
    const Array *value = y->producer->inputs.data[0]->value;
    assert_true(array_get(value, 0) == -1.5);
    assert_true(array_get(value, 1) == (double)INFINITY);
    texts[1] = (ProtobufCBinaryData){3, (uint8_t *)(uintptr_t) "1\0"
                                                               "2"};
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "string 1 has a zero byte"));
    s->n_string_data = 1;
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "carries 1 strings"));
}

static void test_string_input(void **state)
{
    Builder *b = *state;
    const int64_t two[] = {2};
    add_input(b, "s", 1, two);
    b->inputs[0]->type->tensor_type->elem_type = 8;
    add_input(b, "unread", 1, two);
    b->inputs[1]->type->tensor_type->elem_type = 8;
    add_node(b, "Equal", "s s", "y");
    add_output(b, "y");
    Graph *g = import_with(b, NULL, 0);
    assert_non_null(g);
    assert_false(ops_infer_graph(g));
    assert_true(
        has_error(b->diag, "give the input it comes from with --bind"));
    assert_true(graph_find_tensor(g, "s")->is_wanted);
    assert_false(ops_check_lowerable(g));
    assert_true(has_error(b->diag, "input unread holds strings"));
    assert_true(has_error(b->diag, "input s holds strings"));
}

/* --bind replaces the stored value, and only by one that fits. */
static void test_bound_fixed_input(void **state)
{
    Builder *b = *state;
    const float value[] = {7}, other[] = {8}, two[] = {8, 9};
    const int64_t dims[] = {1, 2};
    add_input(b, "x", 2, shape_2_3);
    add_input(b, "k", 1, dims);
    add_tensor(b, "k", 1, 1, dims, value, sizeof value);
    add_node(b, "Add", "x k", "y");
    add_output(b, "y");
    ImportInputs inputs = {0};
    Array array = *array_new(b->arena, DT_F32, 1, dims);
    memcpy(array.data, other, sizeof other);
    ImportBind bind = {"k", &array};
    ImportOptions options = {
        .binds = &bind, .bind_count = 1, .inputs = &inputs};
    Graph *g = import_options(b, &options);
    assert_non_null(g);
    assert_int_equal(b->diag->warnings.count, 0);
    const Tensor *k = graph_find_tensor(g, "k");
    assert_true(array_get(k->value, 0) == 8);
    assert_int_equal(inputs.count, 2);
    assert_string_equal(inputs.data[0].name, "x");
    assert_false(inputs.data[0].is_fixed);
    assert_string_equal(inputs.data[1].name, "k");
    assert_true(inputs.data[1].is_fixed);
    array = *array_new(b->arena, DT_F32, 1, dims + 1);
    memcpy(array.data, two, sizeof two);
    assert_null(import_options(b, &options));
    assert_true(has_error(b->diag, "--bind k: f32[2] given"));
}

static void test_dims(void **state)
{
    Builder *b = *state;
    const int64_t dims[] = {0, 3, -1};
    const char *const names[] = {"N", NULL, NULL};
    b->inputs[b->graph.n_input++] = value_info(b, "x", 3, dims, names);
    add_node(b, "Relu", "x", "y");
    add_output(b, "y");
    Graph *g = import_sound(b);
    expect_type(g, "y", "f32[N,3,x.2]");
    assert_false(ops_check_lowerable(g));
    assert_true(has_error(b->diag, "--dim"));
    const ImportDim bound[] = {{"N", 4, 0}, {"x.2", 7, 0}};
    g = import_with(b, bound, 2);
    assert_non_null(g);
    assert_true(ops_infer_graph(g));
    expect_type(g, "y", "f32[4,3,7]");
    assert_true(ops_check_lowerable(g));
    const ImportDim ranged[] = {{"N", 1, 8}, {"x.2", 7, 7}};
    g = import_with(b, ranged, 2);
    assert_non_null(g);
    assert_true(ops_infer_graph(g));
    expect_type(g, "y", "f32[1<=N<=8,3,7]");
    assert_true(ops_check_lowerable(g));
    const ImportDim reversed[] = {{"N", 8, 1}};
    assert_null(import_with(b, reversed, 1));
    assert_true(has_error(b->diag, "--dim N=1 is out of range"));
    const ImportDim unknown[] = {{"M", 4, 0}};
    assert_null(import_with(b, unknown, 1));
    assert_true(has_error(b->diag, "--dim M: the model's named dimensions "
                                   "are: N, x.2"));
}

static void test_unsupported(void **state)
{
    Builder *b = *state;
    add_input(b, "x", 2, shape_2_3);
    add_node(b, "FancyThing", "x", "a")->name = "first";
    add_node(b, "FancyThing", "a", "b");
    add_node(b, "Other", "b", "y")->domain = "com.example";
    add_output(b, "y");
    assert_null(import_with(b, NULL, 0));
    assert_int_equal(b->diag->errors.count, 1);
    assert_true(has_error(b->diag, "2 operators are not supported"));
    assert_true(has_error(b->diag, "FancyThing (domain ai.onnx, version 13), "
                                   "2 nodes: first, b"));
    assert_true(has_error(b->diag, "Other (domain com.example"));
    /* What passes make is no operator of a file. */
    add_node(b, "GRUScan", "x", "z")->domain = "assay";
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "GRUScan (domain assay"));
    /* Names must not steer a terminal. */
    add_node(b, "Red\x1b[31m", "x", "v");
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "Red?[31m (domain"));
}

static void test_faults(void **state)
{
    Builder *b = *state;
    add_input(b, "x", 2, shape_2_3);
    add_node(b, "Relu", "zzz", "y");
    add_node(b, "Add", "x www", "z");
    add_output(b, "y");
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "Relu (output y) reads the tensor zzz"));
    assert_true(has_error(b->diag, "Add (output z) reads the tensor www"));
    b->nodes[1]->output[0] = "y";
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "the tensor y is produced twice"));
    b->opset.version = 99;
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "operator set version is 99"));
}

/* Every operator of every age, with operands and results left out: refused
 * with a message, or typed. */
static void test_left_out(void **state)
{
    static const char *const in[] = {"", "x", "- x", "x x"};
    static const char *const out[] = {"", "-", "y", "- y"};
    static const int64_t opsets[] = {1, 6, 8, 10, 12, 17, 20};
    Builder *b = *state;
    add_input(b, "x", 2, shape_2_3);
    Onnx__NodeProto *node = add_node(b, "Relu", "", "");
    Arena *arena = b->arena;
    for (const OpTable *t = ops_builtin(); t; t = t->next)
        for (int i = 0; t->ops[i]; i++)
            for (int k = 0; k < 7 * 16; k++) {
                if (*op_domain(t->ops[i]))
                    continue;
                b->arena = arena_new();
                b->diag = diag_new(b->arena, NULL);
                b->opset.version = opsets[k / 16];
                node->op_type = (char *)op_name(t->ops[i]);
                node->input = split_names(b, in[k / 4 % 4], &node->n_input);
                node->output = split_names(b, out[k % 4], &node->n_output);
                Graph *g = import_with(b, NULL, 0);
                if (!g || !ops_infer_graph(g))
                    assert_true(b->diag->errors.count > 0);
                arena_free(b->arena);
            }
    b->arena = arena;
}

/* A recurrent layer of whose results none is wanted computes nothing. */
static void test_no_result(void **state)
{
    static const int64_t x[] = {1, 3, 2}, w[] = {1, 15, 2}, r[] = {1, 15, 5};
    Builder *b = *state;
    add_input(b, "x", 3, x);
    add_input(b, "w", 3, w);
    add_input(b, "r", 3, r);
    add_node(b, "GRU", "x w r", "- -");
    add_node(b, "Relu", "x", "y");
    add_output(b, "y");
    assert_int_equal(import_sound(b)->nodes.count, 1);
}

/* Every prefix of a sound file, and every byte of it changed, must be
 * imported or refused, never crash. */
static void test_damaged(void **state)
{
    Builder *b = *state;
    const float weights[] = {1, -2, 0.5f, 4, 5, 6};
    const int64_t dims[] = {3, 2};
    add_input(b, "x", 2, shape_2_3);
    add_tensor(b, "w", 1, 2, dims, weights, sizeof weights);
    add_float(b, add_node(b, "Gemm", "x w", "y"), "alpha", 0.5f);
    add_output(b, "y");
    size_t size = onnx__model_proto__get_packed_size(&b->model);
    uint8_t *data = arena_alloc(b->arena, size);
    onnx__model_proto__pack(&b->model, data);
    for (size_t i = 0; i < 2 * size; i++) {
        Arena *arena = arena_new();
        Diag *diag = diag_new(arena, NULL);
        uint8_t former = data[i % size];
        if (i >= size)
            data[i % size] ^= (uint8_t)(i * 37 + 1);
        write_file(b->path, data, i < size ? i : size);
        Graph *g = onnx_import(arena, diag, ops_builtin(), b->path, NULL);
        if (g)
            ops_infer_graph(g);
        else
            assert_true(diag->errors.count > 0);
        data[i % size] = former;
        arena_free(arena);
    }
}

/* Types nested a hundred thousand times must not exhaust the stack. */
static void test_nesting(void **state)
{
    Builder *b = *state;
    size_t size = 0, room = 1 << 20;
    uint8_t *data = arena_alloc(b->arena, room), *end = data + room;
    /* From the inside out: sequence_type { elem_type { ... } } */
    while (size + 16 < 1 << 19) {
        for (int level = 0; level < 2; level++) {
            uint8_t head[12];
            int length = 0;
            size_t rest = size;
            head[length++] = level ? 0x22 : 0x0a;
            do {
                head[length++] =
                    (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
                rest >>= 7;
            } while (rest);
            size += (size_t)length;
            memcpy(end - size, head, (size_t)length);
        }
    }
    /* model.graph.input[0].type */
    const uint8_t tags[] = {0x12, 0x5a, 0x3a};
    for (int i = 0; i < 3; i++) {
        uint8_t head[12];
        int length = 0;
        size_t rest = size;
        head[length++] = tags[i];
        do {
            head[length++] = (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
            rest >>= 7;
        } while (rest);
        size += (size_t)length;
        memcpy(end - size, head, (size_t)length);
    }
    write_file(b->path, end - size, size);
    assert_null(onnx_import(b->arena, b->diag, ops_builtin(), b->path, NULL));
    assert_true(has_error(b->diag, "not a sound ONNX file"));
}

/* ---- external data */

static void add_external(Builder *b, const char *location)
{
    const int64_t two[] = {2};
    const char *const text[3][2] = {
        {"location", location}, {"offset", "4"}, {"length", "8"}};
    Onnx__TensorProto *t = add_tensor(b, "k", 1, 1, two, NULL, 0);
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->n_external_data = 3;
    t->external_data =
        ARENA_ARRAY(b->arena, Onnx__StringStringEntryProto *, 3);
    for (int i = 0; i < 3; i++) {
        Onnx__StringStringEntryProto *entry =
            ARENA_NEW(b->arena, Onnx__StringStringEntryProto);
        onnx__string_string_entry_proto__init(entry);
        entry->key = (char *)text[i][0];
        entry->value = (char *)text[i][1];
        t->external_data[i] = entry;
    }
    add_input(b, "x", 2, shape_2_3);
    add_node(b, "Relu", "x", "y");
    add_output(b, "y");
}

static void test_external(void **state)
{
    Builder *b = *state;
    const float values[] = {9, 1.5f, -3};
    char path[128];
    snprintf(path, sizeof path, "%s/weights.bin", b->folder);
    write_file(path, values, sizeof values);
    add_external(b, "weights.bin");
    Graph *g = import_sound(b);
    assert_true(array_get(graph_find_tensor(g, "k")->value, 0) == 1.5);
    assert_true(array_get(graph_find_tensor(g, "k")->value, 1) == -3);
    write_file(path, values, 8); /* now too short */
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "bytes 4 to 12 of weights.bin"));
    remove(path);
}

/* Narrow integers are stored as 32 bits, which may hold what they cannot. */
static void test_narrow_range(void **state)
{
    Builder *b = *state;
    int64_t count = 2;
    int32_t values[] = {7, 300};
    Onnx__TensorProto *tensor = add_tensor(
        b, "k", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, 1, &count, NULL, 0);
    tensor->n_int32_data = 2;
    tensor->int32_data = values;
    add_node(b, "Identity", "k", "y");
    add_output(b, "y");
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "tensor k: element 1 is 300, which is no "
                                   "u8"));
}

/* Nobody may ever write to it. */
static void test_external_pipe(void **state)
{
    Builder *b = *state;
    char path[128];
    add_external(b, "pipe");
    snprintf(path, sizeof path, "%s/pipe", b->folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "tensor k: cannot open its data pipe"));
    remove(path);
}

static void test_external_outside(void **state)
{
    Builder *b = *state;
    char path[128];
    add_external(b, "../secret");
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "tensor k: its data lie in ../secret"));
    /* A link inside the folder that leads out of it. */
    snprintf(path, sizeof path, "%s/link", b->folder);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    b->initializers[0]->external_data[0]->value = "link";
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "tensor k: its data link"));
    remove(path);
}

/* ---- extra test data */

/* Skips the test where the data are missing. */
static const char *extra_data(void)
{
    const char *path = getenv("ASSAY_SHARED");
    struct stat info;
    path = path ? path : "../shared";
    if (stat(path, &info) == 0)
        return path;
    print_message("extra test data are not at %s\n", path);
    skip();
    return NULL;
}

typedef struct BadFile {
    const char *name;
    bool works;
    const char *words[2]; /* what the message must hold */
} BadFile;

static const BadFile bad_files[] = {
    {"bad_ir", false, {"99", "3 to 14"}},
    {"collide_names", true, {0}},
    {"conv_dil_len", false, {"Conv (output y)", "dilations"}},
    {"conv_group0", false, {"Conv (output y)", "group"}},
    {"conv_group_bad", false, {"Conv (output y)", "group"}},
    {"cycle", false, {"output a", "output b"}},
    {"deep20000", true, {0}},
    {"empty", false, {"empty", NULL}},
    {"ext_abs", false, {"tensor k", "/etc/passwd"}},
    {"missing_input", false, {"zzz", "Relu"}},
    {"neg_dim", false, {"tensor k", "-4"}},
    {"raw_too_long", false, {"tensor k carries 4096", "holds 8"}},
    {"reshape_neg5", false, {"Reshape (output y)", "-5"}},
    {"scale0", false, {"QuantizeLinear (output y)", "its scale s"}},
    {"scatter_oob", false, {"ScatterElements (output y)", "1099511627776"}},
    {"stale_vi", true, {0}},
    {"trunc", false, {"not a sound ONNX file", NULL}},
};

static void test_bad_files(void **state)
{
    Builder *b = *state;
    const char *shared = extra_data();
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        const BadFile *file = &bad_files[i];
        char *path =
            arena_printf(b->arena, "%s/cases/bad/%s.onnx", shared, file->name);
        Diag *diag = diag_new(b->arena, path);
        Graph *g = onnx_import(b->arena, diag, ops_builtin(), path, NULL);
        bool ok = g && ops_infer_graph(g);
        if (ok != file->works)
            fail_msg("%s: %s", file->name, ok ? "accepted" : "refused");
        for (int k = 0; k < 2 && file->words[k]; k++)
            if (!has_error(diag, file->words[k]))
                fail_msg("%s", file->name);
        for (int k = 0; k < diag->errors.count; k++)
            assert_true(strlen(diag->errors.data[k]) < 1000);
        if (ok)
            graph_verify(g);
    }
}

/* Imports a model and infers its types; prints what is wrong. The text
 * form of small ones must read back. */
static bool try_model(const char *path, bool is_small)
{
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, path);
    Graph *g = onnx_import(arena, diag, ops_builtin(), path, NULL);
    bool ok = g && ops_infer_graph(g);
    if (ok)
        graph_verify(g);
    diag_print(diag);
    if (ok && is_small) {
        Str once = {0}, twice = {0};
        graph_print(&once, g, true);
        Graph *copy = graph_parse(arena, diag, ops_builtin(), str_text(&once));
        diag_print(diag);
        assert_non_null(copy);
        graph_verify(copy);
        graph_print(&twice, copy, true);
        assert_int_equal(once.length, twice.length);
        assert_memory_equal(once.data, twice.data, once.length);
        str_free(&once);
        str_free(&twice);
    }
    arena_free(arena);
    return ok;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void test_cases(void **state)
{
    Builder *b = *state;
    const char *shared = extra_data();
    char *names[256];
    int count = 0, passed = 0;
    DIR *dir = opendir(arena_printf(b->arena, "%s/cases/cases", shared));
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) && count < 256;)
        if (entry->d_name[0] != '.')
            names[count++] = arena_strdup(b->arena, entry->d_name);
    closedir(dir);
    qsort(names, (size_t)count, sizeof *names, compare_names);
    for (int i = 0; i < count; i++) {
        bool ok =
            try_model(arena_printf(b->arena, "%s/cases/cases/%s/model.onnx",
                                   shared, names[i]),
                      true);
        if (!ok)
            print_error("%s is refused\n", names[i]);
        passed += ok;
    }
    print_message("%d of %d cases are imported\n", passed, count);
    assert_int_equal(passed, count);
}

static void test_models(void **state)
{
    Builder *b = *state;
    static const char *const models[] = {"resnet20_cifar10",
                                         "resnet8_mlperftiny_fp32",
                                         "yolox_nano",
                                         "mobilenetv2_imagenet_fp32deq",
                                         "mnist-8",
                                         "dscnn_kws_fp32",
                                         "mobilenetv1_025_vww_fp32"};
    const char *shared = extra_data();
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!try_model(
                arena_printf(b->arena, "%s/models/%s.onnx", shared, models[i]),
                false))
            fail_msg("%s", models[i]);
}

/* The nodes from number `first` on become a body of `node`. */
static void add_body(Builder *b, Onnx__NodeProto *node, const char *attr,
                     size_t first, const char *inputs, const char *outputs)
{
    Onnx__GraphProto *body = ARENA_NEW(b->arena, Onnx__GraphProto);
    onnx__graph_proto__init(body);
    char **in = split_names(b, inputs, &body->n_input);
    char **out = split_names(b, outputs, &body->n_output);
    body->name = (char *)attr;
    body->input = ARENA_ARRAY(b->arena, Onnx__ValueInfoProto *, MOST);
    body->output = ARENA_ARRAY(b->arena, Onnx__ValueInfoProto *, MOST);
    body->node = ARENA_ARRAY(b->arena, Onnx__NodeProto *, MOST);
    for (size_t i = 0; i < body->n_input; i++)
        body->input[i] = value_info(b, in[i], 0, NULL, NULL);
    for (size_t i = 0; i < body->n_output; i++)
        body->output[i] = value_info(b, out[i], 0, NULL, NULL);
    while (first + body->n_node < b->graph.n_node) {
        body->node[body->n_node] = b->nodes[first + body->n_node];
        body->n_node++;
    }
    b->graph.n_node = first;
    Onnx__AttributeProto *a = add_attr(b, node, attr, 5);
    a->g = body;
}

/* A node for later: its bodies' nodes are made first. */
static Onnx__NodeProto *later_node(Builder *b, const char *op,
                                   const char *inputs, const char *outputs)
{
    Onnx__NodeProto *node = add_node(b, op, inputs, outputs);
    b->graph.n_node--;
    return node;
}

/* What bodies read from outside, also from two graphs further out, become
 * operands; constants are taken in; old forms are rewritten there, too. */
static void test_bodies(void **state)
{
    Builder *b = *state;
    static const float weights[3] = {1, 2, 3};
    static const uint8_t yes = 1;
    const int64_t three[] = {3};
    b->opset.version = 8;
    add_input(b, "x", 2, shape_2_3);
    add_input(b, "c", 0, NULL);
    add_tensor(b, "w", 1, 1, three, weights, sizeof weights);
    add_tensor(b, "yes", 9, 0, NULL, &yes, 1);
    add_node(b, "Relu", "x", "r");
    add_node(b, "Cast", "c", "p");
    add_int(b, b->nodes[b->graph.n_node - 1], "to", 9);
    Onnx__NodeProto *choose = later_node(b, "If", "p", "y");
    size_t first = b->graph.n_node;
    add_node(b, "Add", "r w", "then_sum");
    add_float(b, add_node(b, "Clip", "then_sum", "then_y"), "min", -1);
    add_body(b, choose, "then_branch", first, "", "then_y");
    Onnx__NodeProto *inner = later_node(b, "If", "yes", "else_y");
    add_body(b, inner, "then_branch", first, "", "x");
    add_node(b, "Neg", "r", "no_y");
    add_body(b, inner, "else_branch", first, "", "no_y");
    b->nodes[b->graph.n_node++] = inner;
    add_body(b, choose, "else_branch", first, "", "else_y");
    b->nodes[b->graph.n_node++] = choose;
    add_output(b, "y");
    Graph *g = import_sound(b);
    expect_type(g, "y", "f32[2,3]");
    const Node *node = graph_find_tensor(g, "y")->producer;
    assert_int_equal(node->bodies.count, 2);
    assert_int_equal(node->inputs.count, 3);
    assert_string_equal(node->inputs.data[1]->name, "r");
    assert_string_equal(node->inputs.data[2]->name, "x");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(node->bodies.data[i]->inputs.count, 2);
        assert_string_equal(node->bodies.data[i]->inputs.data[0]->name, "r");
    }
    const Node *clip =
        graph_find_tensor(node->bodies.data[0], "then_y")->producer;
    assert_true(array_get(clip->inputs.data[1]->value, 0) == -1);
    assert_non_null(graph_find_tensor(node->bodies.data[0], "w")->value);
}

/* A scan, one operand from the end, one result turned round. */
static void test_scan(void **state)
{
    Builder *b = *state;
    const int64_t dims[] = {2, 5, 3}, state_dims[] = {2, 3};
    const int64_t axes[] = {1, 1}, back[] = {0, 1}, turn[] = {1};
    add_input(b, "s", 2, state_dims);
    add_input(b, "x", 3, dims);
    Onnx__NodeProto *scan = later_node(b, "Scan", "s x x", "t y");
    add_int(b, scan, "num_scan_inputs", 2);
    add_ints(b, scan, "scan_input_axes", 2, axes);
    add_ints(b, scan, "scan_input_directions", 2, back);
    add_ints(b, scan, "scan_output_directions", 1, turn);
    add_node(b, "Add", "a p", "sum");
    add_node(b, "Mul", "sum q", "out");
    add_body(b, scan, "body", 0, "a p q", "sum out");
    b->nodes[b->graph.n_node++] = scan;
    add_node(b, "Relu", "y", "z");
    add_output(b, "t");
    add_output(b, "z");
    Graph *g = import_with(b, NULL, 0);
    assert_non_null(g);
    const Node *loop = graph_find_tensor(g, "t")->producer;
    assert_string_equal(op_name(loop->op), "Loop");
    assert_int_equal(loop->inputs.count,
                     5); /* count, s, x, the last's number */
    const Graph *body = loop->bodies.data[0];
    assert_int_equal(body->inputs.count, 5);
    assert_int_equal(body->outputs.count, 3);
    const Node *slice = graph_find_tensor(body, "q")->producer;
    assert_string_equal(op_name(slice->op), "Gather");
    assert_string_equal(op_name(slice->inputs.data[1]->producer->op), "Sub");
    slice = graph_find_tensor(g, "y")->producer;
    assert_string_equal(op_name(slice->op), "Slice");
    assert_ptr_equal(slice->inputs.data[0]->producer, loop);
}

static void test_body_faults(void **state)
{
    Builder *b = *state;
    add_input(b, "x", 2, shape_2_3);
    Onnx__NodeProto *choose = later_node(b, "If", "x", "y");
    add_node(b, "FancyThing", "x", "a")->name = "inside";
    add_body(b, choose, "then_branch", 0, "", "a");
    add_node(b, "Neg", "x", "c");
    add_body(b, choose, "else_branch", 0, "", "c");
    b->nodes[b->graph.n_node++] = choose;
    add_output(b, "y");
    assert_null(import_with(b, NULL, 0));
    assert_int_equal(b->diag->errors.count, 1);
    assert_true(has_error(b->diag, "1 node: inside"));
    b->diag->errors.count = 0;
    choose->attribute[0]->g->node[0]->op_type = "Neg";
    choose->attribute[0]->g->node[0]->input[0] = "nowhere";
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "nowhere, which nothing produces"));
    b->diag->errors.count = 0;
    choose->attribute[0]->g->node[0]->input[0] = "x";
    choose->attribute[0]->g->output[0]->name = "missing";
    assert_null(import_with(b, NULL, 0));
    assert_true(has_error(b->diag, "missing is produced by nothing"));
}

/* Values of a test tensor of ONNX's own form. */
static void test_read_tensor(void **state)
{
    Builder *b = *state;
    const int64_t dims[] = {2, 2};
    const float values[] = {1, 2, 3, -4};
    Onnx__TensorProto *t =
        add_tensor(b, "t", 1, 2, dims, values, sizeof values);
    size_t size = onnx__tensor_proto__get_packed_size(t);
    uint8_t *data = arena_alloc(b->arena, size);
    onnx__tensor_proto__pack(t, data);
    write_file(b->path, data, size);
    const Array *array = onnx_read_tensor(b->arena, b->diag, b->path);
    assert_non_null(array);
    assert_int_equal(array->rank, 2);
    assert_true(array_get(array, 3) == -4);
    write_file(b->path, data, size - 3);
    assert_null(onnx_read_tensor(b->arena, b->diag, b->path));
    assert_null(onnx_read_tensor(b->arena, b->diag, "/nonexistent.pb"));
    assert_true(has_error(b->diag, "cannot open /nonexistent.pb"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_plain),
        TEST(test_tensors),
        TEST(test_narrow),
        TEST(test_narrow_faults),
        TEST(test_upgrade),
        TEST(test_old_broadcast),
        TEST(test_first_versions),
        TEST(test_softmax),
        TEST(test_empty_softmax),
        TEST(test_softmax_faults),
        TEST(test_spatial),
        TEST(test_upsample),
        TEST(test_outputs),
        TEST(test_fixed_input),
        TEST(test_bound_fixed_input),
        TEST(test_strings),
        TEST(test_string_input),
        TEST(test_dims),
        TEST(test_unsupported),
        TEST(test_faults),
        TEST(test_left_out),
        TEST(test_no_result),
        TEST(test_damaged),
        TEST(test_nesting),
        TEST(test_external),
        TEST(test_external_outside),
        TEST(test_external_pipe),
        TEST(test_narrow_range),
        TEST(test_read_tensor),
        TEST(test_bad_files),
        TEST(test_cases),
        TEST(test_models),
        TEST(test_bodies),
        TEST(test_scan),
        TEST(test_body_faults),
    };
    return cmocka_run_group_tests_name("import", tests, NULL, NULL);
}
