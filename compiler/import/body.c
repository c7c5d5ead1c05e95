/* Bodies of control flow: graphs within attributes.
 *
 * A body may read tensors of the graphs around it by name. Here it is closed:
 * each such tensor becomes an input of the body and an operand of the node
 * (ops/control.h); constants are taken in. A scan becomes a loop that picks
 * its slices by number. */
#include <string.h>

#include "import/reader.h"
#include "ops/control.h"

static bool fault(Reader *r, const Onnx__NodeProto *proto, const char *what)
{
    return diag_error(
        r->in.diag, "%s (output %s): %s", text_of(proto->op_type),
        proto->n_output ? text_of(proto->output[0]) : "none", what);
}

static const Onnx__AttributeProto *find_attr(const Onnx__NodeProto *proto,
                                             const char *name)
{
    for (size_t i = 0; i < proto->n_attribute; i++)
        if (strcmp(text_of(proto->attribute[i]->name), name) == 0)
            return proto->attribute[i];
    return NULL;
}

/* Item `i` of a list attribute that may be left out. */
static int64_t list_item(const Onnx__NodeProto *proto, const char *name,
                         size_t i)
{
    const Onnx__AttributeProto *attr = find_attr(proto, name);

    return attr && i < attr->n_ints ? attr->ints[i] : 0;
}

bool body_is_scan(const Onnx__NodeProto *proto)
{
    return strcmp(text_of(proto->op_type), "Scan") == 0 &&
           is_onnx_domain(text_of(proto->domain));
}

bool body_is_in(const Onnx__NodeProto *proto)
{
    for (size_t i = 0; i < proto->n_attribute; i++)
        if (proto->attribute[i]->g)
            return true;
    return false;
}

Tensor *reader_find(Reader *r, const char *name)
{
    Tensor *known = map_get(&r->tensors, name);

    if (known || !r->outer)
        return known;
    Tensor *from = reader_find(r->outer, name);
    if (!from)
        return NULL;
    name = arena_strdup(r->in.arena, name);
    if (from->value) {
        known = graph_add_constant(r->in.g, name, from->value);
    } else {
        int index = 0;
        known = graph_add_input(r->in.g, name, from->type);
        while (index < r->taken->count && r->taken->data[index] != from)
            index++;
        if (index == r->taken->count)
            vec_push(r->in.arena, r->taken, from);
        while (r->taken_as.count <= index)
            vec_push(r->in.arena, &r->taken_as, NULL);
        r->taken_as.data[index] = known;
    }
    map_set(&r->tensors, name, known);
    return known;
}

/* ---- scans ------------------------------------------------------------ */

static int64_t scan_count(const Onnx__NodeProto *proto)
{
    const Onnx__AttributeProto *attr = find_attr(proto, "num_scan_inputs");

    return attr ? attr->i : 0;
}

static Tensor *add_number(Reader *r, int64_t value)
{
    Array *array = array_new(r->in.arena, DT_I64, 0, NULL);

    array_set_int(array, 0, value);
    return graph_add_constant(r->in.g, NULL, array);
}

static Tensor *add_list(Reader *r, int64_t value)
{
    return graph_add_constant(r->in.g, NULL,
                              array_ints(r->in.arena, &value, 1));
}

static Node *add_node(Reader *r, const char *op, const char *name,
                      Tensor *const *inputs, int count)
{
    return graph_add_node(r->in.g, op, name, inputs, count, 1);
}

void body_finish_loop(Reader *r, Node *node)
{
    graph_set_input(r->in.g, node, 1,
                    node->inputs.count > 1 ? node->inputs.data[1] : NULL);
    attrs_set_int(r->in.arena, &node->attrs, "carried",
                  node->inputs.count - 2);
}

/* Results that are made from the last slice to the first are turned round:
 * the name goes to what comes out of that. */
bool body_finish_scan(Reader *r, Node *node, const Onnx__NodeProto *proto)
{
    int64_t scans = scan_count(proto);

    if (scans < 1 || scans > (int64_t)proto->n_input)
        return fault(r, proto, "num_scan_inputs does not fit its inputs");
    int states = (int)((int64_t)proto->n_input - scans);
    while (node->inputs.count)
        vec_remove(&node->inputs, node->inputs.count - 1);
    attrs_set_int(r->in.arena, &node->attrs, "carried", states);
    for (int i = states; i < node->outputs.count; i++) {
        size_t k = (size_t)(i - states);
        if (list_item(proto, "scan_output_axes", k) != 0)
            return fault(r, proto,
                         "scan_output_axes other than 0 are not "
                         "supported");
        Tensor *y = node->outputs.data[i];
        if (!y || !list_item(proto, "scan_output_directions", k))
            continue;
        const char *name = arena_strdup(r->in.arena, y->name);
        graph_name_tensor(r->in.g, y,
                          arena_printf(r->in.arena, "%s.backward", name));
        Tensor *inputs[5] = {y, add_list(r, -1), add_list(r, INT64_MIN),
                             add_list(r, 0), add_list(r, -1)};
        Node *turn = add_node(r, "Slice", name, inputs, 5);
        map_set(&r->tensors, name, NULL);
        if (!reader_claim(r, turn->outputs.data[0], name))
            return false;
    }
    return true;
}

/* The number of slices, from the shape of the first operand that has some,
 * under a name that the body can find; and the last one's number. */
static bool count_slices(Reader *r, Node *node, const Onnx__NodeProto *proto)
{
    size_t first = proto->n_input - (size_t)scan_count(proto);
    Tensor *x = reader_find(r, text_of(proto->input[first]));
    Arena *a = r->in.arena;

    if (!x)
        return fault(r, proto, "reads a tensor that nothing produces");
    Node *shape =
        add_node(r, "Shape", arena_printf(a, "%s.shape", node->name), &x, 1);
    Tensor *pick[2] = {shape->outputs.data[0],
                       add_number(r, list_item(proto, "scan_input_axes", 0))};
    Node *trips = add_node(r, "Gather",
                           arena_printf(a, "%s.trips", node->name), pick, 2);
    Tensor *less[2] = {trips->outputs.data[0], add_number(r, 1)};
    Node *last =
        add_node(r, "Sub", arena_printf(a, "%s.last", node->name), less, 2);
    graph_set_input(r->in.g, node, 0, trips->outputs.data[0]);
    graph_set_input(r->in.g, node, 1, NULL);
    for (size_t i = 0; i < first; i++) {
        Tensor *state = reader_find(r, text_of(proto->input[i]));
        if (!state)
            return fault(r, proto, "reads a tensor that nothing produces");
        graph_set_input(r->in.g, node, 2 + (int)i, state);
    }
    map_set(&r->tensors, last->name, last->outputs.data[0]);
    return true;
}

/* Slice `k` of each iteration as the body's tensor `name`. */
static bool pick_slice(Reader *r, const Node *node,
                       const Onnx__NodeProto *proto, int k, const char *name)
{
    size_t first = proto->n_input - (size_t)scan_count(proto);
    Tensor *x = reader_find(r, text_of(proto->input[first + (size_t)k]));
    Tensor *number = r->in.g->inputs.data[0];
    Arena *a = r->in.arena;

    if (!x)
        return fault(r, proto, "reads a tensor that nothing produces");
    if (list_item(proto, "scan_input_directions", (size_t)k)) {
        Tensor *less[2] = {
            reader_find(r, arena_printf(a, "%s.last", node->name)), number};
        number =
            add_node(r, "Sub", arena_printf(a, "%s.number", name), less, 2)
                ->outputs.data[0];
    }
    Tensor *pick[2] = {x, number};
    Node *slice =
        add_node(r, "Gather", arena_printf(a, "%s.slice", name), pick, 2);
    attrs_set_int(a, &slice->attrs, "axis",
                  list_item(proto, "scan_input_axes", (size_t)k));
    return reader_claim(r, slice->outputs.data[0], name);
}

/* ---- reading ---------------------------------------------------------- */

static bool add_formal(Reader *r, const char *name)
{
    if (!*name || map_get(&r->tensors, name))
        return diag_error(r->in.diag,
                          "an input of a body with the name \"%s\", which is "
                          "empty or taken",
                          name);
    name = arena_strdup(r->in.arena, name);
    map_set(&r->tensors, name,
            graph_add_input(r->in.g, name, (TensorType){.rank = -1}));
    return true;
}

/* Types come from the operands; that they are tensors is said here. */
static bool read_formals(Reader *r, const Node *node,
                         const Onnx__NodeProto *proto)
{
    bool is_scan = body_is_scan(proto), ok = true;
    int plain =
        (int)r->proto->n_input - (is_scan ? (int)scan_count(proto) : 0);

    if (is_scan) {
        graph_add_input(r->in.g, "iteration", (TensorType){.rank = -1});
        graph_add_input(r->in.g, "condition", (TensorType){.rank = -1});
    }
    for (int i = 0; i < (int)r->proto->n_input; i++) {
        const Onnx__ValueInfoProto *input = r->proto->input[i];
        const char *name = text_of(input->name);
        if (input->type &&
            input->type->value_case != ONNX__TYPE_PROTO__VALUE__NOT_SET &&
            input->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
            ok = diag_error(r->in.diag,
                            "input %s of a body is no tensor; sequences and "
                            "optional values are not supported",
                            name);
        else if (i < plain)
            ok &= add_formal(r, name);
        else if (ok)
            ok &= pick_slice(r, node, proto, i - plain, name);
    }
    return ok;
}

static bool read_body(Reader *outer, Node *node, const Onnx__NodeProto *proto,
                      const Onnx__GraphProto *graph, TensorList *taken)
{
    Arena *arena = outer->in.arena;
    Reader *r = ARENA_NEW(arena, Reader);

    *r = (Reader){.in = outer->in,
                  .model = outer->model,
                  .proto = graph,
                  .ops = outer->ops,
                  .outer = outer,
                  .taken = taken};
    r->in.g =
        graph_new(arena, outer->in.diag, text_of(graph->name), outer->ops);
    map_init(&r->tensors, arena);
    if (body_is_scan(proto) && !count_slices(outer, node, proto))
        return false;
    bool ok = reader_initializers(r);
    ok = ok && read_formals(r, node, proto);
    if (!ok || !reader_nodes(r) || !reader_connect(r))
        return false;
    if (body_is_scan(proto)) {
        Tensor *condition = r->in.g->inputs.data[1];
        Node *same = add_node(r, "Identity", NULL, &condition, 1);
        graph_mark_output(r->in.g, same->outputs.data[0]);
    }
    if (!reader_outputs(r) || !graph_sort(r->in.g) || !narrow_check(r->in.g))
        return false;
    vec_push(arena, &node->bodies, r->in.g);
    vec_push(arena, &outer->bodies, ((BodyReader){node, r}));
    return true;
}

/* All bodies of a node take the same operands, read or not. */
static void order_inputs(Reader *r, const TensorList *taken)
{
    Graph *g = r->in.g;
    TensorList formal = {0};

    for (int i = 0; i < g->inputs.count; i++) {
        bool is_taken = false;
        for (int k = 0; k < r->taken_as.count; k++)
            is_taken |= r->taken_as.data[k] == g->inputs.data[i];
        if (!is_taken)
            vec_push(r->in.arena, &formal, g->inputs.data[i]);
    }
    for (int i = 0; i < taken->count; i++) {
        Tensor *t = i < r->taken_as.count ? r->taken_as.data[i] : NULL;
        if (!t)
            t = graph_add_input(g, taken->data[i]->name, taken->data[i]->type);
        vec_push(r->in.arena, &formal, t);
    }
    g->inputs.count = 0;
    for (int i = 0; i < formal.count; i++)
        vec_push(r->in.arena, &g->inputs, formal.data[i]);
}

bool body_read(Reader *r, Node *node, const Onnx__NodeProto *proto)
{
    static const char *const names[] = {"then_branch", "else_branch", "body"};
    TensorList *taken = ARENA_NEW(r->in.arena, TensorList);
    int before = r->bodies.count;

    for (int i = 0; i < 3; i++) {
        const Onnx__AttributeProto *attr = find_attr(proto, names[i]);
        if (attr && attr->g && !read_body(r, node, proto, attr->g, taken))
            return false;
    }
    for (int i = before; i < r->bodies.count; i++)
        if (r->bodies.data[i].node == node)
            order_inputs(r->bodies.data[i].reader, taken);
    int own = node->inputs.count;
    if (own + taken->count > MAX_OP_INPUTS)
        return fault(r, proto,
                     "its bodies read too many tensors from outside");
    for (int i = 0; i < taken->count; i++)
        graph_set_input(r->in.g, node, own + i, taken->data[i]);
    return true;
}

bool body_upgrade(Reader *r, Node *node)
{
    bool ok = true;

    if (node->bodies.count)
        control_bind(node);
    for (int i = 0; i < r->bodies.count; i++) {
        Reader *body = r->bodies.data[i].reader;
        if (r->bodies.data[i].node == node)
            ok &= reader_upgrade(body) && graph_sort(body->in.g);
    }
    return ok;
}
