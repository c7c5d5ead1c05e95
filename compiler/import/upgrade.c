/* Older operator sets: each row brings one operator from the form it had
 * before some version to the newest. Attributes that became operands turn
 * into constants. */
#include <string.h>

#include "import/reader.h"
#include "ops/op.h"

typedef struct Upgrade {
    const char *op;
    int64_t before; /* applies to versions below this one */
    bool (*rewrite)(Importer *in, Node *node);
} Upgrade;

static bool fault(Importer *in, const Node *node, const char *what)
{
    const Tensor *output = node->outputs.count ? node->outputs.data[0] : NULL;
    return diag_error(in->diag, "%s (output %s): %s", op_name(node->op),
                      output ? output->name : "none", what);
}

/* The constant is named after its node, for messages about it. */
static void set_operand(Importer *in, Node *node, int index, const char *what,
                        const Array *value)
{
    Tensor *tensor = graph_add_constant(
        in->g, arena_printf(in->arena, "%s.%s", node->name, what), value);
    graph_set_input(in->g, node, index, tensor);
}

/* The list attribute `name` becomes operand `index`. */
static void move_ints(Importer *in, Node *node, const char *name, int index)
{
    int count;
    const int64_t *ints = attrs_ints(&node->attrs, name, &count);
    if (!ints)
        return;
    set_operand(in, node, index, name, array_ints(in->arena, ints, count));
    attrs_remove(&node->attrs, name);
}

/* A number of the element type of the first input; f32 while that is not
 * known, which is what these old versions were used with. */
static void move_number(Importer *in, Node *node, const char *name, int index)
{
    const Attr *attr = attrs_find(&node->attrs, name);
    DType dtype = DT_F32;
    if (!attr || attr->kind != ATTR_FLOAT)
        return;
    if (node->inputs.count && node->inputs.data[0] &&
        dtype_is_float(node->inputs.data[0]->type.dtype))
        dtype = node->inputs.data[0]->type.dtype;
    set_operand(in, node, index, name,
                array_scalar(in->arena, dtype, attr->f));
    attrs_remove(&node->attrs, name);
}

/* Squeeze, Unsqueeze and the reductions. */
static bool move_axes(Importer *in, Node *node)
{
    move_ints(in, node, "axes", 1);
    return true;
}

static bool move_split(Importer *in, Node *node)
{
    move_ints(in, node, "split", 1);
    return true;
}

/* Without one of the attributes that side stays open. */
static bool move_bounds(Importer *in, Node *node)
{
    move_number(in, node, "min", 1);
    move_number(in, node, "max", 2);
    return true;
}

static bool move_k(Importer *in, Node *node)
{
    const Attr *attr = attrs_find(&node->attrs, "k");
    if (!attr || attr->kind != ATTR_INT)
        return fault(in, node, "the attribute k is missing");
    set_operand(in, node, 1, "k", array_ints(in->arena, &attr->i, 1));
    attrs_remove(&node->attrs, "k");
    return true;
}

static bool move_pads(Importer *in, Node *node)
{
    move_ints(in, node, "pads", 1);
    move_number(in, node, "value", 2);
    return true;
}

static bool move_slice(Importer *in, Node *node)
{
    move_ints(in, node, "starts", 1);
    move_ints(in, node, "ends", 2);
    move_ints(in, node, "axes", 3);
    return true;
}

/* Versions before 7 stated training mode, their default, in is_test. */
static bool drop_is_test(Importer *in, Node *node)
{
    if (in->opset < 7 && attrs_int(&node->attrs, "is_test", 0) == 0)
        return fault(in, node,
                     "is_test is 0: training mode is not "
                     "supported");
    attrs_remove(&node->attrs, "is_test");
    attrs_remove(&node->attrs, "consumed_inputs");
    return true;
}

static bool drop_ratio(Importer *in, Node *node)
{
    attrs_remove(&node->attrs, "ratio");
    return drop_is_test(in, node);
}

/* The third operand has broadcast by itself since version 7. */
static bool drop_broadcast(Importer *in, Node *node)
{
    (void)in;
    attrs_remove(&node->attrs, "broadcast");
    return true;
}

/* Before version 20 the axis was an attribute, 1 without one. */
static bool move_dft_axis(Importer *in, Node *node)
{
    int64_t axis = attrs_int(&node->attrs, "axis", 1);
    attrs_remove(&node->attrs, "axis");
    set_operand(in, node, 2, "axis", array_ints(in->arena, &axis, 1));
    return true;
}

/* Version 10 knew one way, without the half element. */
static bool plain_rois(Importer *in, Node *node)
{
    attrs_set_string(in->arena, &node->attrs, "coordinate_transformation_mode",
                     "output_half_pixel");
    return true;
}

static bool default_axis(Importer *in, Node *node)
{
    if (!attrs_find(&node->attrs, "axis"))
        attrs_set_int(in->arena, &node->attrs, "axis", 1);
    return true;
}

/* Resize-10 and Upsample scaled without offsets and rounded down. */
static void set_plain_scaling(Importer *in, Node *node)
{
    attrs_set_string(in->arena, &node->attrs, "coordinate_transformation_mode",
                     "asymmetric");
    attrs_set_string(in->arena, &node->attrs, "nearest_mode", "floor");
}

/* Two operands became four. */
static bool resize_10(Importer *in, Node *node)
{
    if (node->inputs.count != 2)
        return fault(in, node, "must have the inputs X and scales");
    Tensor *scales = node->inputs.data[1];
    graph_set_input(in->g, node, 2, scales);
    graph_set_input(in->g, node, 1, NULL);
    set_plain_scaling(in, node);
    return true;
}

static bool upsample(Importer *in, Node *node)
{
    const Attr *attr = attrs_find(&node->attrs, "scales");
    if (attr && attr->kind == ATTR_FLOATS) {
        int64_t count = attr->count;
        Array *scales = array_new(in->arena, DT_F32, 1, &count);
        for (int i = 0; i < attr->count; i++)
            array_set(scales, i, attr->floats[i]);
        set_operand(in, node, 1, "scales", scales);
        attrs_remove(&node->attrs, "scales");
    }
    if (strcmp(attrs_string(&node->attrs, "mode", "nearest"), "bilinear") == 0)
        attrs_set_string(in->arena, &node->attrs, "mode", "linear");
    return resize_10(in, node);
}

/* Part of what `node` was, right before it. */
static Node *add_before(Importer *in, const char *op, Node *node,
                        const char *suffix, Tensor *x, Tensor *y)
{
    Tensor *inputs[2] = {x, y};
    Node *added = graph_add_node(
        in->g, op, arena_printf(in->arena, "%s.%s", node->name, suffix),
        inputs, y ? 2 : 1, 1);
    if (added)
        graph_move_before(in->g, added, node);
    return added;
}

/* The shape of x: a constant where it is known, computed otherwise. */
static Tensor *shape_of(Importer *in, Node *node, Tensor *x)
{
    if (!type_is_static(&x->type)) {
        Node *shape = add_before(in, "Shape", node, "shape", x, NULL);
        return shape ? shape->outputs.data[0] : NULL;
    }
    int64_t dims[MAX_RANK];
    for (int i = 0; i < x->type.rank; i++)
        dims[i] = x->type.dims[i].value;
    return graph_add_constant(in->g,
                              arena_printf(in->arena, "%s.shape", node->name),
                              array_ints(in->arena, dims, x->type.rank));
}

/* The node gets its first input as a matrix, axes from `axis` on as one, and
 * its result gets the shape back. */
static bool flatten_around(Importer *in, Node *node, int64_t axis)
{
    Tensor *x = node->inputs.data[0];
    if (!node->outputs.count || !node->outputs.data[0])
        return fault(in, node, "has no output");
    Node *flat = add_before(in, "Flatten", node, "flatten", x, NULL);
    Tensor *shape = shape_of(in, node, x);
    if (!flat || !shape)
        return false;
    attrs_set_int(in->arena, &flat->attrs, "axis", axis);
    Tensor *inputs[2] = {NULL, shape};
    Node *back = graph_add_node(
        in->g, "Reshape", arena_printf(in->arena, "%s.reshape", node->name),
        inputs, 2, 1);
    if (!back)
        return false;
    /* An extent of 0 is meant as one. */
    attrs_set_int(in->arena, &back->attrs, "allowzero", 1);
    Tensor *output = node->outputs.data[0];
    const char *name = output->name;
    /* The users first: the new node must keep reading the old tensor. The
     * name stays with the result of the same shape. */
    graph_replace(in->g, output, back->outputs.data[0]);
    graph_name_tensor(in->g, output, arena_printf(in->arena, "%s.flat", name));
    output->sources.count = 0;
    graph_name_tensor(in->g, back->outputs.data[0], name);
    graph_set_input(in->g, back, 0, output);
    graph_set_input(in->g, node, 0, flat->outputs.data[0]);
    back->outputs.data[0]->type = x->type;
    return x->type.rank < 0 || op_infer(in->g, flat);
}

/* Before version 13 the axes from `axis` on counted as one. Unless that is
 * the last one alone: flatten, apply, and give the shape back. */
static bool flatten_softmax(Importer *in, Node *node)
{
    Tensor *x = node->inputs.count ? node->inputs.data[0] : NULL;
    const Attr *attr = attrs_find(&node->attrs, "axis");
    int64_t axis = attrs_int(&node->attrs, "axis", 1);
    if (!x)
        return fault(in, node, "has no input");
    if (attr && attr->kind != ATTR_INT)
        return fault(in, node, "its attribute axis must be an integer");
    if (x->type.rank >= 0 && (axis < -x->type.rank || axis > x->type.rank))
        return fault(in, node, "its attribute axis is outside the rank");
    attrs_set_int(in->arena, &node->attrs, "axis", -1);
    return axis == -1 || (x->type.rank > 0 && axis == x->type.rank - 1) ||
           flatten_around(in, node, axis);
}

/* With spatial 0 each element of an image was normalized by numbers of its
 * own: a channel each. */
static bool spread_spatial(Importer *in, Node *node)
{
    static const int64_t all = -1;
    if (attrs_int(&node->attrs, "spatial", 1) == 0 && node->inputs.count) {
        for (int i = 1; i < node->inputs.count; i++) {
            const char *name = arena_printf(in->arena, "flatten%d", i);
            Tensor *shape = graph_add_constant(
                in->g, arena_printf(in->arena, "%s.%s", node->name, name),
                array_ints(in->arena, &all, 1));
            Node *flat = add_before(in, "Reshape", node, name,
                                    node->inputs.data[i], shape);
            if (!flat || !op_infer(in->g, flat))
                return false;
            graph_set_input(in->g, node, i, flat->outputs.data[0]);
        }
        if (!node->inputs.data[0] || !flatten_around(in, node, 1))
            return fault(in, node, "spatial 0 needs an input");
    }
    attrs_remove(&node->attrs, "spatial");
    return drop_is_test(in, node);
}

/* Version 18 had one scale and bias a group; later there is one a channel.
 */
static bool spread_groups(Importer *in, Node *node)
{
    int64_t groups = attrs_int(&node->attrs, "num_groups", 0);
    if (node->inputs.count != 3 || !node->inputs.data[0])
        return fault(in, node, "must have three inputs");
    const TensorType *x = &node->inputs.data[0]->type;
    if (x->rank < 2 || !extent_is_const(x->dims[1]) || groups < 1 ||
        x->dims[1].value % groups != 0)
        return fault(in, node, "num_groups does not fit its channels");
    for (int i = 1; i <= 2; i++) {
        const Tensor *tensor = node->inputs.data[i];
        const Array *value = tensor ? tensor->value : NULL;
        if (!value || array_count(value) != groups)
            return fault(in, node,
                         "scale and bias must be constants with "
                         "one element a group");
        int64_t channels = x->dims[1].value, each = channels / groups;
        Array *spread = array_new(in->arena, value->dtype, 1, &channels);
        for (int64_t k = 0; k < channels; k++)
            array_set(spread, k, array_get(value, k / each));
        set_operand(in, node, i, i == 1 ? "scale" : "bias", spread);
    }
    return true;
}

/* ---- broadcasting as it was before version 7 */

/* A trailing axis of extent 1 for each of `count`. */
static Tensor *add_trailing(Importer *in, Node *node, Tensor *x, int count)
{
    int64_t axes[MAX_RANK];
    if (x->type.rank + count > MAX_RANK)
        return NULL;
    for (int i = 0; i < count; i++)
        axes[i] = x->type.rank + i;
    Tensor *list = graph_add_constant(
        in->g, arena_printf(in->arena, "%s.axes", node->name),
        array_ints(in->arena, axes, count));
    Node *added = add_before(in, "Unsqueeze", node, "unsqueeze", x, list);
    return added && op_infer(in->g, added) ? added->outputs.data[0] : NULL;
}

/* The second operand's axes stand from `axis` of the first on; without the
 * attribute they are its last ones, as today. */
static bool align_operand(Importer *in, Node *node)
{
    const Attr *attr = attrs_find(&node->attrs, "axis");
    int64_t axis = attr && attr->kind == ATTR_INT ? attr->i : -1;
    bool wanted = attr && attrs_int(&node->attrs, "broadcast", 0) != 0;
    attrs_remove(&node->attrs, "axis");
    attrs_remove(&node->attrs, "broadcast");
    if (!wanted)
        return true;
    if (node->inputs.count != 2 || !node->inputs.data[0] ||
        !node->inputs.data[1])
        return fault(in, node, "must have two inputs");
    Tensor *y = node->inputs.data[1];
    int rank = node->inputs.data[0]->type.rank;
    if (rank < 0 || y->type.rank < 0)
        return fault(in, node,
                     "broadcasts from an axis an operand whose rank "
                     "is not known: convert the model to operator "
                     "set 7 or later");
    axis += axis < 0 ? rank : 0;
    int64_t trailing = rank - axis - y->type.rank;
    if (axis < 0 || trailing < 0)
        return fault(in, node, "its attribute axis does not fit the ranks");
    if (trailing)
        y = add_trailing(in, node, y, (int)trailing);
    if (!y)
        return fault(in, node, "its second operand cannot be broadcast");
    graph_set_input(in->g, node, 1, y);
    return true;
}

/* A slope for each channel, or one for all. */
static bool align_slope(Importer *in, Node *node)
{
    if (node->inputs.count != 2 || !node->inputs.data[0] ||
        !node->inputs.data[1])
        return fault(in, node, "must have two inputs");
    Tensor *slope = node->inputs.data[1];
    int rank = node->inputs.data[0]->type.rank;
    if (slope->type.rank != 1 || !extent_is_const(slope->type.dims[0]) ||
        slope->type.dims[0].value == 1 || rank < 3)
        return true;
    slope = add_trailing(in, node, slope, rank - 2);
    if (!slope)
        return fault(in, node, "its slope cannot be broadcast");
    graph_set_input(in->g, node, 1, slope);
    return true;
}

/* The type was a word. */
static bool number_type(Importer *in, Node *node)
{
    static const char *const words[] = {
        "UNDEFINED", "FLOAT",  "UINT8",  "INT8",   "UINT16",
        "INT16",     "INT32",  "INT64",  "STRING", "BOOL",
        "FLOAT16",   "DOUBLE", "UINT32", "UINT64"};
    const Attr *attr = attrs_find(&node->attrs, "to");
    if (!attr || attr->kind != ATTR_STRING)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i], attr->s)) {
            attrs_set_int(in->arena, &node->attrs, "to", (int64_t)i);
            return true;
        }
    return fault(in, node, "its attribute to is no element type");
}

static bool move_shape(Importer *in, Node *node)
{
    move_ints(in, node, "shape", 1);
    return true;
}

/* The order of a norm was a float. */
static bool whole_power(Importer *in, Node *node)
{
    const Attr *attr = attrs_find(&node->attrs, "p");
    if (!attr || attr->kind != ATTR_FLOAT)
        return true;
    if (!(attr->f >= 1 && attr->f <= 1000) ||
        attr->f != (double)(int64_t)attr->f)
        return fault(in, node, "p must be a whole number");
    attrs_set_int(in->arena, &node->attrs, "p", (int64_t)attr->f);
    return true;
}

static const Upgrade upgrades[] = {
    {"Add", 7, align_operand},
    {"And", 7, align_operand},
    {"BatchNormalization", 9, spread_spatial},
    {"Cast", 6, number_type},
    {"Clip", 11, move_bounds},
    {"Concat", 4, default_axis},
    {"DFT", 20, move_dft_axis},
    {"Div", 7, align_operand},
    {"Dropout", 12, drop_ratio},
    {"Equal", 7, align_operand},
    {"Gemm", 7, drop_broadcast},
    {"GlobalLpPool", 2, whole_power},
    {"Greater", 7, align_operand},
    {"GroupNormalization", 21, spread_groups},
    {"Hardmax", 13, flatten_softmax},
    {"Less", 7, align_operand},
    {"LogSoftmax", 13, flatten_softmax},
    {"LpPool", 2, whole_power},
    {"Mul", 7, align_operand},
    {"Or", 7, align_operand},
    {"PRelu", 7, align_slope},
    {"Pad", 11, move_pads},
    {"Pow", 7, align_operand},
    {"ReduceL1", 18, move_axes},
    {"ReduceL2", 18, move_axes},
    {"ReduceLogSum", 18, move_axes},
    {"ReduceLogSumExp", 18, move_axes},
    {"ReduceMax", 18, move_axes},
    {"ReduceMean", 18, move_axes},
    {"ReduceMin", 18, move_axes},
    {"ReduceProd", 18, move_axes},
    {"ReduceSum", 13, move_axes},
    {"ReduceSumSquare", 18, move_axes},
    {"Reshape", 5, move_shape},
    {"Resize", 11, resize_10},
    {"RoiAlign", 16, plain_rois},
    {"Slice", 10, move_slice},
    {"Softmax", 13, flatten_softmax},
    {"Split", 13, move_split},
    {"Squeeze", 13, move_axes},
    {"Sub", 7, align_operand},
    {"TopK", 10, move_k},
    {"Unsqueeze", 13, move_axes},
    {"Upsample", 1000, upsample},
    {"Xor", 7, align_operand},
};

/* Before the lookup: the old names are not in the tables. */
const char *upgrade_name(const char *op, int64_t opset)
{
    if (strcmp(op, "Upsample") == 0)
        return "Resize";
    /* Before version 9 it had a batch as well. */
    if (strcmp(op, "Scan") == 0 && opset >= 9)
        return "Loop";
    if (strcmp(op, "Scatter") == 0 && opset < 11)
        return "ScatterElements";
    return op;
}

bool upgrade_node(Importer *in, Node *node, const char *source_op)
{
    /* A hint of the first version, about memory. */
    if (in->opset < 6)
        attrs_remove(&node->attrs, "consumed_inputs");
    for (size_t i = 0; i < sizeof upgrades / sizeof *upgrades; i++) {
        const Upgrade *row = &upgrades[i];
        if (in->opset < row->before && strcmp(row->op, source_op) == 0)
            return row->rewrite(in, node);
    }
    return true;
}
