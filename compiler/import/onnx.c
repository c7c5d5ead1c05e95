/* Reading ONNX models: from protobuf messages to a graph.
 *
 * All faults of one kind are reported together. Nodes may come in any
 * order; the graph is sorted at the end of the first step, and only then
 * are older operator forms rewritten, as that looks at the types of
 * inputs. */
#include "import/onnx.h"

#include <stdlib.h>
#include <string.h>

#include "import/reader.h"
#include "ops/op.h"

bool is_onnx_domain(const char *domain)
{
    return !*domain || strcmp(domain, "ai.onnx") == 0;
}

/* Refused versions are named with the range that is read, so that the message
 * says what to convert to. */
static bool check_versions(Reader *r)
{
    const Onnx__ModelProto *model = r->model;
    Diag *diag = r->in.diag;
    if (model->ir_version < ONNX_OLDEST_IR ||
        model->ir_version > ONNX_NEWEST_IR)
        return diag_error(diag,
                          "its IR version is %lld; versions %d to %d "
                          "are supported",
                          (long long)model->ir_version, ONNX_OLDEST_IR,
                          ONNX_NEWEST_IR);
    for (size_t i = 0; i < model->n_opset_import; i++)
        if (is_onnx_domain(text_of(model->opset_import[i]->domain)))
            r->in.opset = model->opset_import[i]->version;
    if (r->in.opset < ONNX_OLDEST_OPSET || r->in.opset > ONNX_NEWEST_OPSET)
        return diag_error(diag,
                          "its operator set version is %lld; versions "
                          "%d to %d are supported: convert the model",
                          (long long)r->in.opset, ONNX_OLDEST_OPSET,
                          ONNX_NEWEST_OPSET);
    if (!model->graph)
        return diag_error(diag, "the file holds no graph");
    r->proto = model->graph;
    return true;
}

/* ---- inputs and constants */

/* SSA: each name is defined once in a file. */
static bool add_constant(Reader *r, const char *name, const Array *value)
{
    if (!*name)
        return diag_error(r->in.diag, "a constant without a name");
    if (map_get(&r->tensors, name))
        return diag_error(r->in.diag, "the tensor %s is defined twice", name);
    Tensor *tensor = graph_add_constant(r->in.g, name, value);
    map_set(&r->tensors, tensor->name, tensor);
    return true;
}

static const ImportBind *find_bind(const Reader *r, const char *name)
{
    for (int i = 0; i < r->options.bind_count; i++)
        if (strcmp(r->options.binds[i].name, name) == 0)
            return &r->options.binds[i];
    return NULL;
}

static bool is_listed_input(const Reader *r, const char *name)
{
    for (size_t i = 0; i < r->proto->n_input; i++)
        if (!strcmp(text_of(r->proto->input[i]->name), name))
            return true;
    return false;
}

/* Values are checked before anything refers to them. One that is bound to
 * another value is only a default. */
bool reader_initializers(Reader *r)
{
    bool ok = true;
    if (r->proto->n_sparse_initializer)
        ok = diag_error(r->in.diag, "sparse initializers are not supported");
    for (size_t i = 0; i < r->proto->n_initializer; i++) {
        const Onnx__TensorProto *proto = r->proto->initializer[i];
        const char *name = text_of(proto->name);
        if (find_bind(r, name) && is_listed_input(r, name))
            continue;
        const Array *value =
            tensor_value(r->in.arena, r->in.diag, proto, name, r->in.path);
        ok &= value && add_constant(r, name, value);
    }
    return ok;
}

/* From the command line. */
static const ImportDim *find_bound(const Reader *r, const char *name)
{
    for (int i = 0; i < r->options.dim_count; i++)
        if (strcmp(r->options.dims[i].name, name) == 0)
            return &r->options.dims[i];
    return NULL;
}

/* Unbound names stay names: a graph with them can be looked at, and compiling
 * it says what is missing. */
static bool named_extent(Reader *r, const char *name, Extent *extent)
{
    const ImportDim *bound = find_bound(r, name);
    bool known = false;
    for (int i = 0; i < r->dim_names.count && !known; i++)
        known = strcmp(r->dim_names.data[i], name) == 0;
    if (!known)
        vec_push(r->in.arena, &r->dim_names, name);
    if (!bound)
        *extent = extent_named(r->in.arena, name, -1);
    else if (bound->upper > bound->value)
        *extent = extent_ranged(r->in.arena, name, bound->value, bound->upper);
    else
        *extent = extent_const(bound->value);
    int64_t most = bound && bound->upper ? bound->upper
                   : bound               ? bound->value
                                         : 0;
    if (bound && (bound->value < 0 || most < bound->value || most > INT32_MAX))
        return diag_error(r->in.diag, "--dim %s=%lld is out of range", name,
                          (long long)most);
    return true;
}

/* An extent without a name is known as INPUT.AXIS. */
static bool read_extent(Reader *r, const char *input, int axis,
                        const Onnx__TensorShapeProto__Dimension *dim,
                        Extent *extent)
{
    if (dim->value_case ==
            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
        dim->dim_param && *dim->dim_param)
        return named_extent(r, dim->dim_param, extent);
    if (dim->value_case !=
            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE ||
        dim->dim_value == -1)
        return named_extent(r, arena_printf(r->in.arena, "%s.%d", input, axis),
                            extent);
    if (dim->dim_value < 0)
        return diag_error(r->in.diag, "input %s has a dimension of %lld",
                          input, (long long)dim->dim_value);
    *extent = extent_const(dim->dim_value);
    return true;
}

static bool read_input_type(Reader *r, const Onnx__ValueInfoProto *proto,
                            const char *name, TensorType *type)
{
    Diag *diag = r->in.diag;
    if (!proto->type ||
        proto->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !proto->type->tensor_type)
        return diag_error(diag, "input %s is not a tensor", name);
    const Onnx__TypeProto__Tensor *tensor = proto->type->tensor_type;
    *type = (TensorType){.dtype = dtype_of_onnx(tensor->elem_type)};
    if (type->dtype == DT_INVALID)
        return diag_error(diag,
                          "input %s has the element type %s, which is not "
                          "supported",
                          name, narrow_name(r->in.arena, tensor->elem_type));
    if (!tensor->shape)
        return diag_error(diag,
                          "input %s has no shape; export the model "
                          "with one (extents may be names)",
                          name);
    if (tensor->shape->n_dim > MAX_RANK)
        return diag_error(diag,
                          "input %s has rank %zu; at most %d is "
                          "supported",
                          name, tensor->shape->n_dim, MAX_RANK);
    type->rank = (int)tensor->shape->n_dim;
    bool ok = true;
    for (int i = 0; i < type->rank; i++)
        ok &= read_extent(r, name, i, tensor->shape->dim[i], &type->dims[i]);
    return ok;
}

/* Element type and rank, and the extents that are numbers. */
static bool check_bind(Reader *r, const ImportBind *bind,
                       const TensorType *type)
{
    TensorType given = type_of_array(bind->value);
    bool fits = given.dtype == type->dtype && given.rank == type->rank;
    for (int i = 0; fits && i < type->rank; i++)
        fits = !extent_is_const(type->dims[i]) ||
               type->dims[i].value == given.dims[i].value;
    if (fits)
        return true;
    Str text = {0};
    type_print(&text, &given);
    str_add(&text, " given, the input is ");
    type_print(&text, type);
    diag_error(r->in.diag, "--bind %s: %s", bind->name, str_text(&text));
    str_free(&text);
    return false;
}

/* Every --bind must name an input of the model. */
static bool check_binds(Reader *r)
{
    bool ok = true;
    for (int i = 0; i < r->options.bind_count; i++) {
        const char *name = r->options.binds[i].name;
        if (!is_listed_input(r, name))
            ok = diag_error(r->in.diag, "--bind %s: there is no such input",
                            name);
    }
    return ok;
}

static bool has_initializer(const Reader *r, const char *name)
{
    for (size_t i = 0; i < r->proto->n_initializer; i++)
        if (!strcmp(text_of(r->proto->initializer[i]->name), name))
            return true;
    return false;
}

static void list_input(Reader *r, const char *name, bool is_fixed)
{
    if (r->options.inputs)
        vec_push(r->in.arena, r->options.inputs,
                 ((ImportInput){name, is_fixed}));
}

/* An input that has an initializer is a default that may be overridden, with
 * --bind: compiled code has it built in, and says so. */
static bool read_inputs(Reader *r)
{
    bool ok = true;
    for (size_t i = 0; i < r->proto->n_input; i++) {
        const Onnx__ValueInfoProto *proto = r->proto->input[i];
        const char *name = text_of(proto->name);
        const Tensor *known = map_get(&r->tensors, name);
        const ImportBind *bind = find_bind(r, name);
        TensorType type;
        list_input(r, name,
                   (known && known->value) ||
                       (bind && has_initializer(r, name)));
        if (known && known->value) {
            /* Before IR 4 every initializer had to be an input as well. */
            if (r->model->ir_version >= 4)
                diag_warn(r->in.diag,
                          "input %s has a stored default, which is used: it "
                          "is a fixed input and cannot be fed; --bind gives "
                          "it another value",
                          name);
            continue;
        }
        if (known || !*name) {
            ok = diag_error(r->in.diag,
                            "an input with the name \"%s\", which "
                            "is empty or taken",
                            name);
            continue;
        }
        if (!read_input_type(r, proto, name, &type)) {
            ok = false;
            continue;
        }
        if (bind) {
            ok &= check_bind(r, bind, &type) &&
                  add_constant(r, name, bind->value);
            continue;
        }
        Tensor *input = graph_add_input(r->in.g, name, type);
        map_set(&r->tensors, input->name, input);
    }
    return ok;
}

/* The tensor that NAME or NAME[I] is about. */
static const Tensor *declared_tensor(Reader *r, const char *name)
{
    const char *bracket = strrchr(name, '[');
    const Tensor *t = graph_find_tensor(r->in.g, name);
    if (!t && bracket)
        t = graph_find_tensor(
            r->in.g,
            arena_strndup(r->in.arena, name, (size_t)(bracket - name)));
    return t;
}

/* Every --dim must name a dimension of the model, or a tensor whose elements
 * decide shapes. */
static bool check_dims(Reader *r)
{
    bool ok = true;
    for (int i = 0; i < r->options.dim_count; i++) {
        const ImportDim *dim = &r->options.dims[i];
        int64_t most = dim->upper ? dim->upper : dim->value;
        bool known = false;
        Str names = {0};
        for (int k = 0; k < r->dim_names.count; k++) {
            known |= strcmp(dim->name, r->dim_names.data[k]) == 0;
            str_addf(&names, "%s%s", k ? ", " : "", r->dim_names.data[k]);
        }
        if (!known && declared_tensor(r, dim->name)) {
            known = true;
            if (dim->value < 0 || most < dim->value || most > INT32_MAX)
                ok = diag_error(r->in.diag, "--dim %s=%lld is out of range",
                                dim->name, (long long)most);
            vec_push(r->in.arena, &r->in.g->declared,
                     extent_ranged(r->in.arena, dim->name, dim->value, most));
        }
        if (!known)
            ok = diag_error(r->in.diag,
                            "--dim %s: the model's named dimensions are: %s; "
                            "nor is it a tensor",
                            dim->name,
                            names.length ? str_text(&names) : "none");
        str_free(&names);
    }
    return ok;
}

/* ---- nodes */

/* Names the node, as later messages do. */
static bool attr_fault(Reader *r, const Onnx__NodeProto *node,
                       const char *attr, const char *what)
{
    return diag_error(
        r->in.diag, "%s (output %s): attribute %s %s", text_of(node->op_type),
        node->n_output ? text_of(node->output[0]) : "none", attr, what);
}

/* Bytes as text; NULL when a zero byte is among them. */
static const char *attr_text(Arena *arena, const ProtobufCBinaryData *bytes)
{
    if (bytes->len && memchr(bytes->data, 0, bytes->len))
        return NULL;
    return bytes->len
               ? arena_strndup(arena, (const char *)bytes->data, bytes->len)
               : "";
}

/* IR versions before 2 left the type out. */
static int attr_type(const Onnx__AttributeProto *proto)
{
    if (proto->has_type && proto->type)
        return (int)proto->type;
    if (proto->has_f)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    if (proto->has_i)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    if (proto->has_s)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    if (proto->t)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    if (proto->n_floats)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    if (proto->n_strings)
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
    return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
}

static bool read_attr(Reader *r, const Onnx__NodeProto *node,
                      const Onnx__AttributeProto *proto, Attrs *attrs)
{
    Arena *arena = r->in.arena;
    const char *name = text_of(proto->name);
    Attr attr = {.name = name};
    if (attrs_find(attrs, name))
        return attr_fault(r, node, name, "is there twice");
    if (proto->ref_attr_name && *proto->ref_attr_name)
        return attr_fault(r, node, name, "refers to a function's attribute");
    switch (attr_type(proto)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        attr.kind = ATTR_FLOAT;
        attr.f = (double)proto->f;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        attr.kind = ATTR_INT;
        attr.i = proto->i;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        attr.kind = ATTR_STRING;
        attr.s = attr_text(arena, &proto->s);
        if (!attr.s)
            return attr_fault(r, node, name, "holds a zero byte");
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        attr.kind = ATTR_TENSOR;
        if (!proto->t)
            return attr_fault(r, node, name, "has no value");
        attr.tensor = tensor_value(
            arena, r->in.diag, proto->t,
            node->n_output ? text_of(node->output[0]) : name, r->in.path);
        if (!attr.tensor)
            return false;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        attr.kind = ATTR_INTS;
        attr.count = (int)proto->n_ints;
        attr.ints = proto->ints;
        break;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS: {
        double *floats = ARENA_ARRAY(arena, double, proto->n_floats);
        for (size_t i = 0; i < proto->n_floats; i++)
            floats[i] = (double)proto->floats[i];
        attr.kind = ATTR_FLOATS;
        attr.count = (int)proto->n_floats;
        attr.floats = floats;
        break;
    }
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS: {
        const char **strings =
            ARENA_ARRAY(arena, const char *, proto->n_strings);
        for (size_t i = 0; i < proto->n_strings; i++) {
            strings[i] = attr_text(arena, &proto->strings[i]);
            if (!strings[i])
                return attr_fault(r, node, name, "holds a zero byte");
        }
        attr.kind = ATTR_STRINGS;
        attr.count = (int)proto->n_strings;
        attr.strings = strings;
        break;
    }
    default:
        return attr_fault(r, node, name,
                          "is of a kind that is not "
                          "supported (a graph or sparse "
                          "tensor)");
    }
    attrs_set(arena, attrs, attr);
    return true;
}

/* The value of a Constant node, NULL after an error. */
static const Array *constant_value(Reader *r, const Onnx__NodeProto *node)
{
    Arena *arena = r->in.arena;
    Attrs attrs = {0};
    if (node->n_attribute != 1 ||
        !read_attr(r, node, node->attribute[0], &attrs)) {
        if (node->n_attribute != 1)
            attr_fault(r, node, "value", "must be its only one");
        return NULL;
    }
    const Attr *attr = &attrs.list.data[0];
    int64_t count = attr->count;
    Array *array;
    if (strcmp(attr->name, "value") == 0 && attr->kind == ATTR_TENSOR)
        return attr->tensor;
    if (strcmp(attr->name, "value_int") == 0 && attr->kind == ATTR_INT) {
        array = array_new(arena, DT_I64, 0, NULL);
        array_set_int(array, 0, attr->i);
        return array;
    }
    if (strcmp(attr->name, "value_float") == 0 && attr->kind == ATTR_FLOAT)
        return array_scalar(arena, DT_F32, attr->f);
    if (strcmp(attr->name, "value_ints") == 0 && attr->kind == ATTR_INTS)
        return array_ints(arena, attr->ints, attr->count);
    if (strcmp(attr->name, "value_floats") == 0 && attr->kind == ATTR_FLOATS) {
        array = array_new(arena, DT_F32, 1, &count);
        for (int i = 0; i < attr->count; i++)
            array_set(array, i, attr->floats[i]);
        return array;
    }
    if (strcmp(attr->name, "value_string") == 0 && attr->kind == ATTR_STRING) {
        array = array_new(arena, DT_STRING, 0, NULL);
        *(const char **)array->data = attr->s;
        return array;
    }
    if (strcmp(attr->name, "value_strings") == 0 &&
        attr->kind == ATTR_STRINGS) {
        array = array_new(arena, DT_STRING, 1, &count);
        for (int i = 0; i < attr->count; i++)
            ((const char **)array->data)[i] = attr->strings[i];
        return array;
    }
    attr_fault(r, node, attr->name, "is no constant that is supported");
    return NULL;
}

/* Gathered by operator: a model of a hundred unsupported nodes gives a line
 * an operator. */
static void add_missing(Reader *r, const Onnx__NodeProto *node)
{
    while (r->outer)
        r = r->outer;
    const char *op = text_of(node->op_type), *domain = text_of(node->domain);
    const char *name = text_of(node->name);
    Missing *row = NULL;
    for (int i = 0; i < r->missing.count && !row; i++)
        if (strcmp(r->missing.data[i].op, op) == 0 &&
            strcmp(r->missing.data[i].domain, domain) == 0)
            row = &r->missing.data[i];
    if (!row) {
        Missing fresh = {.op = op, .domain = domain};
        for (size_t i = 0; i < r->model->n_opset_import; i++)
            if (strcmp(text_of(r->model->opset_import[i]->domain), domain) ==
                0)
                fresh.version = r->model->opset_import[i]->version;
        vec_push(r->in.arena, &r->missing, fresh);
        row = &r->missing.data[r->missing.count - 1];
    }
    if (!*name && node->n_output)
        name = text_of(node->output[0]);
    if (row->count < 4)
        str_addf(&row->nodes, "%s%s", row->count ? ", " : "", name);
    row->count++;
}

/* One message for all of them. */
static bool report_missing(Reader *r)
{
    Str text = {0};
    for (int i = 0; i < r->missing.count; i++) {
        Missing *row = &r->missing.data[i];
        str_addf(&text, "\n  %s (domain %s, version %lld), %d node%s: %s%s",
                 row->op, *row->domain ? row->domain : "ai.onnx",
                 (long long)(row->version ? row->version : r->in.opset),
                 row->count, row->count == 1 ? "" : "s", str_text(&row->nodes),
                 row->count > 4 ? ", ..." : "");
        str_free(&row->nodes);
    }
    if (r->missing.count)
        diag_error(r->in.diag, "%d operator%s not supported:%s",
                   r->missing.count, r->missing.count == 1 ? " is" : "s are",
                   str_text(&text));
    str_free(&text);
    return r->missing.count == 0;
}

bool reader_claim(Reader *r, Tensor *tensor, const char *name)
{
    if (map_get(&r->tensors, name))
        return diag_error(r->in.diag, "the tensor %s is produced twice", name);
    graph_name_tensor(r->in.g, tensor, name);
    map_set(&r->tensors, arena_strdup(r->in.arena, name), tensor);
    return true;
}

/* Passes have operators of their own, whose type rules expect what passes
 * make: they are none of a file's. */
static const Op *find_op(const Reader *r, const char *domain, const char *op)
{
    return strcmp(domain, "assay") ? ops_find(r->in.g->ops, domain, op) : NULL;
}

/* Operators within bodies are missed along with those outside. False when
 * any is. */
static bool note_bodies(Reader *r, const Onnx__NodeProto *proto)
{
    bool ok = true;
    for (size_t i = 0; i < proto->n_attribute; i++) {
        const Onnx__GraphProto *body = proto->attribute[i]->g;
        for (size_t k = 0; body && k < body->n_node; k++) {
            const Onnx__NodeProto *node = body->node[k];
            const char *domain = text_of(node->domain);
            const char *op = text_of(node->op_type);
            if (is_onnx_domain(domain)) {
                if (strcmp(op, "Constant") == 0)
                    continue;
                op = upgrade_name(op, r->in.opset);
            }
            bool known = find_op(r, domain, op);
            if (!known)
                add_missing(r, node);
            ok &= known && note_bodies(r, node);
        }
    }
    return ok;
}

/* Inputs are connected later, as nodes may come before what they read. */
static bool add_node(Reader *r, const Onnx__NodeProto *proto)
{
    Graph *g = r->in.g;
    const char *domain = text_of(proto->domain), *name = text_of(proto->name);
    const char *op = text_of(proto->op_type);
    if (is_onnx_domain(domain))
        op = upgrade_name(op, r->in.opset);
    const Op *row = find_op(r, domain, op);
    bool is_known = row && note_bodies(r, proto);
    if (!row)
        add_missing(r, proto);
    if (!is_known)
        return true;
    int inputs = (int)proto->n_input, outputs = (int)proto->n_output;
    if (inputs > MAX_OP_INPUTS || outputs > MAX_OP_OUTPUTS)
        return diag_error(r->in.diag,
                          "%s \"%s\" has %d inputs and %d outputs;"
                          " at most %d and %d are supported",
                          op, name, inputs, outputs, MAX_OP_INPUTS,
                          MAX_OP_OUTPUTS);
    /* Optional operands left out at the end are simply not there. */
    while (inputs && !*text_of(proto->input[inputs - 1]))
        inputs--;
    while (outputs && !*text_of(proto->output[outputs - 1]))
        outputs--;
    /* Where every result may be left out, all of them may be. */
    if (!outputs && !row->min_outputs)
        return true;
    if (!*name && outputs)
        name = text_of(proto->output[0]);
    const char *full = is_onnx_domain(domain)
                           ? op
                           : arena_printf(r->in.arena, "%s::%s", domain, op);
    Tensor *none[MAX_OP_INPUTS] = {NULL};
    Node *node = graph_add_node(g, full, name, none, inputs, outputs);
    bool ok = true;
    /* Names made up for the outputs must not take those in the file. */
    for (int i = 0; i < outputs; i++)
        graph_name_tensor(g, node->outputs.data[i], "");
    for (int i = 0; i < outputs; i++) {
        const char *output = text_of(proto->output[i]);
        if (*output)
            ok &= reader_claim(r, node->outputs.data[i], output);
        else
            graph_drop_output(g, node, i);
    }
    bool is_scan = body_is_scan(proto);
    for (size_t i = 0; i < proto->n_attribute && !is_scan; i++)
        if (!(row->traits & (OP_BRANCH | OP_LOOP)) || !proto->attribute[i]->g)
            ok &= read_attr(r, proto, proto->attribute[i], &node->attrs);
    if (is_scan)
        ok &= body_finish_scan(r, node, proto);
    else if (row->traits & OP_LOOP)
        body_finish_loop(r, node);
    vec_push(r->in.arena, &r->nodes, node);
    vec_push(r->in.arena, &r->node_protos, proto);
    return ok;
}

bool reader_nodes(Reader *r)
{
    bool ok = true;
    for (size_t i = 0; i < r->proto->n_node; i++) {
        const Onnx__NodeProto *proto = r->proto->node[i];
        bool is_constant = strcmp(text_of(proto->op_type), "Constant") == 0 &&
                           is_onnx_domain(text_of(proto->domain));
        if (!is_constant) {
            ok &= add_node(r, proto);
            continue;
        }
        if (proto->n_output != 1) {
            ok = diag_error(r->in.diag, "Constant \"%s\" has %zu outputs",
                            text_of(proto->name), proto->n_output);
            continue;
        }
        const Array *value = constant_value(r, proto);
        ok &= value && add_constant(r, text_of(proto->output[0]), value);
    }
    return ok;
}

/* All tensors are known now; what is missing is reported for every node. */
bool reader_connect(Reader *r)
{
    bool ok = true;
    for (int i = 0; i < r->nodes.count; i++) {
        Node *node = r->nodes.data[i];
        const Onnx__NodeProto *proto = r->node_protos.data[i];
        /* Operands of a scan are not those of the loop that it becomes. */
        int count = body_is_scan(proto) ? 0 : node->inputs.count;
        /* A loop has two operands more than the file may say. */
        for (int k = 0; k < count && (size_t)k < proto->n_input; k++) {
            const char *name = text_of(proto->input[k]);
            Tensor *tensor = *name ? reader_find(r, name) : NULL;
            if (tensor)
                graph_set_input(r->in.g, node, k, tensor);
            else if (*name)
                ok = diag_error(r->in.diag,
                                "%s (output %s) reads the tensor "
                                "%s, which nothing produces",
                                op_name(node->op),
                                proto->n_output ? text_of(proto->output[0])
                                                : "none",
                                name);
        }
    }
    for (int i = 0; ok && i < r->nodes.count; i++)
        if (body_is_in(r->node_protos.data[i]))
            ok &= body_read(r, r->nodes.data[i], r->node_protos.data[i]);
    return ok;
}

/* ---- outputs */

/* A constant, an input or a tensor that is an output already is delivered
 * through an Identity, which takes over the name. */
static bool add_copied_output(Reader *r, Tensor *tensor, const char *name)
{
    Graph *g = r->in.g;
    Node *node = graph_add_node(g, "Identity", name, &tensor, 1, 1);
    if (!node)
        return false;
    Tensor *output = node->outputs.data[0];
    if (tensor->value)
        graph_name_tensor(g, tensor,
                          arena_printf(r->in.arena, "%s.value", name));
    graph_name_tensor(g, output, name);
    output->type = tensor->type;
    graph_mark_output(g, output);
    return true;
}

bool reader_outputs(Reader *r)
{
    bool ok = true;
    if (!r->proto->n_output)
        return diag_error(r->in.diag, "the graph has no outputs");
    for (size_t i = 0; i < r->proto->n_output; i++) {
        const char *name = text_of(r->proto->output[i]->name);
        Tensor *tensor = *name ? reader_find(r, name) : NULL;
        if (!tensor)
            ok = diag_error(r->in.diag, "the output %s is produced by nothing",
                            name);
        else if (tensor->value || tensor->is_input || tensor->is_output)
            ok &= add_copied_output(r, tensor, name);
        else
            graph_mark_output(r->in.g, tensor);
    }
    return ok;
}

/* ---- older forms */

/* Types as far as they follow without evaluating anything, for the rules
 * that need them. What cannot be typed yet is no fault here: inference
 * proper reports those. */
static void infer_quietly(Importer *in, Node *node)
{
    Graph *g = in->g;
    Diag *scratch = diag_new(in->arena, NULL);
    Diag *diag = g->diag;
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *input = node->inputs.data[i];
        if (input && input->type.rank < 0)
            return;
    }
    g->diag = scratch;
    bool ok = op_infer(g, node);
    g->diag = diag;
    for (int i = 0; !ok && i < node->outputs.count; i++)
        if (node->outputs.data[i])
            node->outputs.data[i]->type = (TensorType){.rank = -1};
}

/* In topological order, with types derived on the way. */
bool reader_upgrade(Reader *r)
{
    Graph *g = r->in.g;
    Map source_ops;
    bool ok = true;
    map_init(&source_ops, r->in.arena);
    for (int i = 0; i < r->nodes.count; i++)
        map_set(&source_ops, r->nodes.data[i]->name,
                (void *)r->node_protos.data[i]);
    /* Rewriting may add nodes: walk over those of the file. */
    Vec(Node *) order = {0};
    for (int i = 0; i < g->nodes.count; i++)
        vec_push(r->in.arena, &order, g->nodes.data[i]);
    for (int i = 0; i < order.count; i++) {
        Node *node = order.data[i];
        const Onnx__NodeProto *proto = map_get(&source_ops, node->name);
        if (proto && is_onnx_domain(text_of(proto->domain)))
            ok &= upgrade_node(&r->in, node, text_of(proto->op_type));
        ok &= body_upgrade(r, node);
        infer_quietly(&r->in, node);
    }
    return ok;
}

static Graph *read_model(Reader *r)
{
    if (!check_versions(r))
        return NULL;
    r->in.g =
        graph_new(r->in.arena, r->in.diag, text_of(r->proto->name), r->ops);
    map_init(&r->tensors, r->in.arena);
    bool ok = reader_initializers(r);
    ok &= read_inputs(r);
    ok &= check_binds(r);
    ok &= reader_nodes(r);
    ok &= report_missing(r);
    /* Names that were never defined follow from the faults so far. */
    if (!ok || !reader_connect(r) || !reader_outputs(r) || !check_dims(r) ||
        !graph_sort(r->in.g) || !narrow_check(r->in.g) || !reader_upgrade(r) ||
        !graph_sort(r->in.g))
        return NULL;
    return r->in.g;
}

Graph *onnx_import(Arena *arena, Diag *diag, const OpTable *ops,
                   const char *path, const ImportOptions *options)
{
    const ProtobufCMessageDescriptor *kind = &onnx__model_proto__descriptor;
    FileData file;
    Reader r = {.ops = ops};
    if (options)
        r.options = *options;
    Graph *graph = NULL;
    if (!diag->file)
        diag->file = arena_strdup(arena, path);
    if (!file_open(diag, path, &file))
        return NULL;
    if (message_check(diag, kind, &file)) {
        ProtobufCMessage *message = message_unpack(arena, kind, &file);
        r.in = (Importer){arena, diag, NULL, path, 0};
        r.model = (const Onnx__ModelProto *)message;
        if (message)
            graph = read_model(&r);
        else
            diag_error(diag, "not a sound ONNX file");
    }
    file_close(&file);
    return graph;
}
