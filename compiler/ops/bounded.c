/* Numbers that a run brings and shapes depend on.
 *
 * Where a type rule needs the elements of an operand (a shape, the bounds of a
 * slice, a count) and these are computed when the model runs, a node Bounded
 * takes its place: it cuts the elements to bounds, hands them on, and tells
 * the kernels behind it what they are. Each is a named dimension, so that all
 * rules see what they see of the dimensions of inputs.
 *
 * Bounds are declared (Graph.declared) by the tensor's name, for all elements
 * or for one ("s" or "s[1]"), or follow from the node: an axis is not cut
 * outside of itself. */
#include "ops/bounded.h"

#include <string.h>

#include "ops/loop_program.h"
#include "ops/rules.h"

enum { MAX_ELEMENTS = 16 };

/* What an element means. */
enum {
    IS_NUMBER,
    IS_SHAPE, /* of Reshape: 0 and -1 follow from the data's shape */
    IS_PLACE  /* on an axis of the data, or from its end if negative */
};

static const struct Row {
    const char *op;
    int operand, meaning;
    /* Where nothing is declared: at most the extent of the axis that the
     * attribute names (or each operand's own); false: it must be declared. */
    bool within_axis;
} rows[] = {
    {"Reshape", 1, IS_SHAPE, false},
    {"Expand", 1, IS_NUMBER, false},
    {"Tile", 1, IS_NUMBER, false},
    {"ConstantOfShape", 0, IS_NUMBER, false},
    {"Range", 0, IS_NUMBER, false},
    {"Range", 1, IS_NUMBER, false},
    {"Slice", 1, IS_PLACE, true},
    {"Slice", 2, IS_PLACE, true},
    {"Pad", 1, IS_NUMBER, false},
    {"Split", 1, IS_NUMBER, true},
    {"TopK", 1, IS_NUMBER, true},
    {"OneHot", 1, IS_NUMBER, false},
    {"Resize", 3, IS_NUMBER, false},
    {"CenterCropPad", 1, IS_NUMBER, false},
    {"HannWindow", 0, IS_NUMBER, false},
    {"HammingWindow", 0, IS_NUMBER, false},
    {"BlackmanWindow", 0, IS_NUMBER, false},
    {"Loop", 0, IS_NUMBER, false},
};

/* ---- the node --------------------------------------------------------- */

static int64_t listed(const Node *node, const char *name, int64_t i)
{
    int count;
    const int64_t *list = attrs_ints(&node->attrs, name, &count);
    return list && i < count ? list[i] : 0;
}

static bool infer_bounded(InferContext *c)
{
    static const char *const lists[] = {"lower", "upper"};
    const TensorType *t = infer_input(c, 0);
    int64_t count = type_count(t);
    if (!infer_types(c, 0, TYPES_INDEX) || !infer_rank(c, 0, 0, 1))
        return false;
    if (count < 0 || count > MAX_ELEMENTS)
        return infer_error(c, "it takes up to %d numbers", MAX_ELEMENTS);
    for (int i = 0; i < 2; i++) {
        int given;
        if (!attrs_ints(&c->node->attrs, lists[i], &given) || given != count)
            return infer_error(c, "%s has %d values, it needs %lld", lists[i],
                               given, (long long)count);
    }
    for (int64_t i = 0; i < count; i++)
        if (listed(c->node, "lower", i) < 0 ||
            listed(c->node, "upper", i) < listed(c->node, "lower", i) ||
            listed(c->node, "upper", i) > INT32_MAX)
            return infer_error(c, "its bounds are not in order");
    infer_set(c, 0, t->dtype, t->rank, t->dims);
    return true;
}

Extent bounded_element(Arena *arena, const Node *node, int64_t i)
{
    const char *name = attrs_string(&node->attrs, "name", node->name);
    int64_t lower = listed(node, "lower", i), upper = listed(node, "upper", i);
    /* One that can only be one number is. */
    return lower == upper ? extent_const(lower)
                          : extent_ranged(arena,
                                          arena_printf(arena, "%s[%lld]", name,
                                                       (long long)i),
                                          lower, upper);
}

static const Expr *element(LoopContext *c, int64_t i)
{
    return expr_cast(c->arena, DT_I64,
                     loop_load(c, c->in[0], expr_int(c->arena, i)));
}

/* How many elements the data have. */
static const Expr *elements(LoopContext *c)
{
    const TensorType *x = &c->node->inputs.data[1]->type;
    const Expr *total = expr_int(c->arena, 1);
    for (int i = 0; i < x->rank; i++)
        total = expr_mul(c->arena, total, loop_extent(c, x->dims[i]));
    return total;
}

/* Elements of the data over those of the other extents, for -1. */
static const Expr *rest_of_shape(LoopContext *c, int64_t count)
{
    Arena *a = c->arena;
    const TensorType *x = &c->node->inputs.data[1]->type;
    const Expr *one = expr_int(a, 1), *others = one;
    for (int64_t i = 0; i < count; i++) {
        const Expr *v = element(c, i);
        const Expr *same = i < x->rank ? loop_extent(c, x->dims[i]) : one;
        v = expr_select(a, expr_binary(a, EX_EQ, v, expr_int(a, 0)), same, v);
        others = expr_mul(a, others, expr_max(a, v, one));
    }
    return expr_div(a, elements(c), others);
}

static const Expr *shape_element(LoopContext *c, int64_t i, const Expr *rest)
{
    Arena *a = c->arena;
    const TensorType *x = &c->node->inputs.data[1]->type;
    const Expr *v = element(c, i), *zero = expr_int(a, 0);
    if (i < x->rank && !attrs_int(&c->node->attrs, "allowzero", 0))
        v = expr_select(a, expr_binary(a, EX_EQ, v, zero),
                        loop_extent(c, x->dims[i]), v);
    return expr_select(a, expr_binary(a, EX_LT, v, zero), rest, v);
}

static const Expr *place_element(LoopContext *c, int64_t i)
{
    Arena *a = c->arena;
    const TensorType *x = &c->node->inputs.data[1]->type;
    const Expr *v = element(c, i), *zero = expr_int(a, 0);
    const Expr *end = loop_extent(c, x->dims[listed(c->node, "axes", i)]);
    v = expr_select(a, expr_binary(a, EX_LT, v, zero), expr_add(a, v, end), v);
    return expr_min(a, expr_max(a, v, zero), end);
}

static void program_bounded(LoopContext *c)
{
    Arena *a = c->arena;
    int64_t count = type_count(&c->node->outputs.data[0]->type);
    int meaning = (int)attrs_int(&c->node->attrs, "meaning", IS_NUMBER);
    const Expr *rest =
        meaning == IS_SHAPE ? rest_of_shape(c, count) : expr_int(a, 0);
    const Expr *all = expr_int(a, 1);
    for (int64_t i = 0; i < count; i++) {
        const Expr *v = meaning == IS_SHAPE   ? shape_element(c, i, rest)
                        : meaning == IS_PLACE ? place_element(c, i)
                                              : element(c, i);
        const Expr *lower = expr_int(a, listed(c->node, "lower", i));
        const Expr *upper = expr_int(a, listed(c->node, "upper", i));
        Extent name = bounded_element(a, c->node, i);
        loop_if(c, expr_binary(a, EX_OR, expr_binary(a, EX_LT, v, lower),
                               expr_binary(a, EX_LT, upper, v)));
        loop_refuse_extent(c, name);
        loop_end(c);
        v = expr_min(a, expr_max(a, v, lower), upper);
        loop_store(c, c->out[0], expr_int(a, i), v);
        loop_set_extent(c, name, v);
        all = expr_mul(a, all, v);
    }
    if (meaning != IS_SHAPE)
        return;
    loop_if(c, expr_binary(a, EX_NE, all, elements(c)));
    loop_refuse_extent(c, bounded_element(a, c->node, 0));
    loop_end(c);
}

/* ---- taking an operand's place ---------------------------------------- */

/* What is declared of element `i` of a tensor; false: nothing. */
static bool find_declared(const Graph *g, const Tensor *t, int64_t i,
                          int64_t *lower, int64_t *upper)
{
    const char *one =
        arena_printf(g->arena, "%s[%lld]", t->name, (long long)i);
    bool found = false;
    for (int k = 0; k < g->declared.count; k++) {
        Extent e = g->declared.data[k];
        bool is_one = !strcmp(e.expr->name, one);
        if (!is_one && (found || strcmp(e.expr->name, t->name)))
            continue;
        *lower = extent_lower(e);
        *upper = e.value;
        found = true;
    }
    return found;
}

static int axis_of(const Node *node, const struct Row *row, int64_t i,
                   int rank)
{
    int64_t axis =
        attrs_int(&node->attrs, "axis", strcmp(row->op, "TopK") ? 0 : -1);
    if (row->meaning == IS_PLACE) {
        const Tensor *axes =
            node_has_input(node, 3) ? node->inputs.data[3] : NULL;
        if (axes && (!axes->value || i >= array_count(axes->value)))
            return -1;
        axis = axes ? array_get_int(axes->value, i) : i;
    }
    axis += axis < 0 ? rank : 0;
    return axis < 0 || axis >= rank ? -1 : (int)axis;
}

static Node *make_bounded(Graph *g, Node *user, const struct Row *row,
                          const int64_t *lower, const int64_t *upper,
                          const int64_t *axes, int count)
{
    Tensor *t = user->inputs.data[row->operand];
    Tensor *inputs[2] = {t, row->meaning == IS_NUMBER ? NULL
                                                      : user->inputs.data[0]};
    bool is_number = row->meaning == IS_NUMBER;
    const char *name = is_number ? t->name : user->name;
    if (row->meaning == IS_PLACE)
        name = arena_printf(g->arena, "%s.%s", user->name,
                            row->operand == 1 ? "starts" : "ends");
    Node *node = graph_add_node(g, "assay::Bounded",
                                arena_printf(g->arena, "%s.bounded", name),
                                inputs, is_number ? 1 : 2, 1);
    attrs_set_string(g->arena, &node->attrs, "name", name);
    attrs_set_ints(g->arena, &node->attrs, "lower", lower, count);
    attrs_set_ints(g->arena, &node->attrs, "upper", upper, count);
    attrs_set_int(g->arena, &node->attrs, "meaning", row->meaning);
    if (row->meaning == IS_PLACE)
        attrs_set_ints(g->arena, &node->attrs, "axes", axes, count);
    if (row->meaning == IS_SHAPE)
        attrs_set_int(g->arena, &node->attrs, "allowzero",
                      attrs_int(&user->attrs, "allowzero", 0));
    graph_move_before(g, node, user);
    return node;
}

static const struct Row *find_row(const Node *node, int operand)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].operand == operand && !*op_domain(node->op) &&
            !strcmp(rows[i].op, node->op->name))
            return &rows[i];
    return NULL;
}

/* What comes behind sees the numbers, too, through whatever it computes of
 * them; shapes and places of their own meaning take them as they are. */
static void hand_on(Graph *g, const Node *bounded, const Tensor *t)
{
    bool is_behind = false;
    for (int i = 0; i < g->nodes.count; i++) {
        Node *user = g->nodes.data[i];
        is_behind |= user == bounded;
        if (!is_behind || user == bounded)
            continue;
        for (int k = 0; k < user->inputs.count; k++) {
            const struct Row *row = find_row(user, k);
            if (user->inputs.data[k] == t &&
                (!row || row->meaning == IS_NUMBER))
                graph_set_input(g, user, k, bounded->outputs.data[0]);
        }
    }
}

static bool bound_operand(Graph *g, Node *node, const struct Row *row)
{
    int64_t lower[MAX_ELEMENTS], upper[MAX_ELEMENTS], axes[MAX_ELEMENTS];
    Tensor *t = node_has_input(node, row->operand)
                    ? node->inputs.data[row->operand]
                    : NULL;
    if (!t || !t->is_wanted || t->value || t->symbols ||
        !(TYPES_INDEX >> t->type.dtype & 1) || t->type.rank > 1)
        return false;
    int64_t count = type_count(&t->type);
    if (count < 1 || count > MAX_ELEMENTS)
        return false;
    const TensorType *x = &node->inputs.data[0]->type;
    bool is_declared = true;
    for (int64_t i = 0; i < count; i++) {
        int axis = row->within_axis ? axis_of(node, row, i, x->rank) : -1;
        axes[i] = axis < 0 ? 0 : axis;
        if (row->meaning == IS_PLACE && axis < 0)
            return false;
        if (find_declared(g, t, i, &lower[i], &upper[i]))
            continue;
        if (axis < 0 || x->dims[axis].value < 0)
            return false;
        is_declared = false;
        lower[i] = 0;
        upper[i] = x->dims[axis].value;
    }
    Node *bounded = make_bounded(g, node, row, lower, upper, axes, (int)count);
    if (!op_infer(g, bounded))
        return false;
    /* Where nobody said so, its value would be welcome still. */
    t->is_wanted = !is_declared;
    graph_set_input(g, node, row->operand, bounded->outputs.data[0]);
    if (row->meaning == IS_NUMBER)
        hand_on(g, bounded, t);
    return true;
}

bool operand_is_bounded(const Node *node, int index)
{
    const Tensor *t =
        node_has_input(node, index) ? node->inputs.data[index] : NULL;
    return t && t->producer && t->producer->op == ops_bounded[0];
}

bool ops_bound_operands(Graph *g, Node *node)
{
    bool changed = false;
    for (int i = 0; i < node->inputs.count; i++) {
        const struct Row *row = find_row(node, i);
        changed = (row && bound_operand(g, node, row)) || changed;
    }
    return changed;
}

static const AttrSpec bounded_attrs[] = {{"allowzero", ATTR_INT, false},
                                         {"axes", ATTR_INTS, false},
                                         {"lower", ATTR_INTS, true},
                                         {"meaning", ATTR_INT, false},
                                         {"name", ATTR_STRING, false},
                                         {"upper", ATTR_INTS, true},
                                         {0}};

/* Impure: kernels rely on what it says, even where nobody reads its result. */
static const Op op_bounded = {.name = "Bounded",
                              .domain = "assay",
                              .min_inputs = 1,
                              .max_inputs = 2,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .traits = OP_RUNTIME_EXTENTS | OP_IMPURE,
                              .attrs = bounded_attrs,
                              .infer = infer_bounded,
                              .program = program_bounded,
                              .since = 1};

const Op *const ops_bounded[] = {&op_bounded, NULL};
