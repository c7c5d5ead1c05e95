/* If and Loop; see control.h. */
#include "ops/control.h"

#include "ops/rules.h"

static bool is_loop(const Node *node)
{
    return node->op->traits & OP_LOOP;
}

int loop_carried(const Node *node)
{
    return (int)attrs_int(&node->attrs, "carried", 0);
}

int control_operand(const Node *node, int index)
{
    if (!is_loop(node))
        return index + 1;
    return index < 2 + loop_carried(node) ? -1 : index;
}

static TensorType scalar_type(DType dtype)
{
    return (TensorType){.dtype = dtype};
}

void control_bind(Node *node)
{
    for (int b = 0; b < node->bodies.count; b++) {
        Graph *body = node->bodies.data[b];
        for (int i = 0; i < body->inputs.count; i++) {
            Tensor *to = body->inputs.data[i];
            int k = is_loop(node) ? i : i + 1;
            if (is_loop(node) && i < 2) {
                to->type = scalar_type(i ? DT_BOOL : DT_I64);
                continue;
            }
            const Tensor *from =
                k < node->inputs.count ? node->inputs.data[k] : NULL;
            if (!from)
                continue;
            to->type = from->type;
            if (from->value && control_operand(node, i) >= 0 &&
                to->users.count)
                graph_replace(
                    body, to,
                    graph_add_constant(body, from->name, from->value));
        }
    }
}

/* What a chain of copies begins with. */
static const Tensor *copied_from(const Tensor *t)
{
    while (t->producer && (t->producer->op->traits & OP_IDENTITY) &&
           t->producer->inputs.count && t->producer->inputs.data[0])
        t = t->producer->inputs.data[0];
    return t;
}

static bool is_true(const Tensor *t)
{
    return t->value && array_count(t->value) == 1 &&
           array_get_int(t->value, 0) != 0;
}

/* Every iteration hands on the condition that it got, or a true one. */
static bool keeps_condition(const Node *node)
{
    const Graph *body = node->bodies.count ? node->bodies.data[0] : NULL;

    if (!body || !body->outputs.count || body->inputs.count < 2)
        return false;
    const Tensor *next = copied_from(body->outputs.data[0]);
    return next == body->inputs.data[1] || is_true(next);
}

bool loop_is_counted(const Node *node)
{
    const Tensor *start = node->inputs.count > 1 ? node->inputs.data[1] : NULL;

    return (!start || is_true(start)) && keeps_condition(node);
}

int64_t loop_trips(const Node *node)
{
    const Tensor *m = node->inputs.count > 0 ? node->inputs.data[0] : NULL;
    const Tensor *start = node->inputs.count > 1 ? node->inputs.data[1] : NULL;

    if (start && start->value && !is_true(start))
        return 0;
    if (!m || !m->value || array_count(m->value) != 1)
        return -1;
    int64_t trips = array_get_int(m->value, 0);
    return trips < 0 ? 0 : trips;
}

/* ---- types ----------------------------------------------------------- */

static bool check_scalar(InferContext *c, int index, unsigned types,
                         const char *what)
{
    if (!node_has_input(c->node, index))
        return true;
    if (!infer_types(c, index, types))
        return false;
    const TensorType *t = infer_input(c, index);
    for (int i = 0; i < t->rank; i++)
        if (extent_known(t->dims[i]) != 1)
            return infer_error(c, "%s must have one element", what);
    return true;
}

static bool check_body(InferContext *c, const Graph *body, int inputs,
                       int outputs)
{
    if (body->inputs.count != inputs)
        return infer_error(c, "a body has %d inputs instead of %d",
                           body->inputs.count, inputs);
    if (body->outputs.count != outputs)
        return infer_error(c, "a body has %d outputs instead of %d",
                           body->outputs.count, outputs);
    for (int i = 0; i < outputs; i++)
        if (body->outputs.data[i]->type.rank < 0)
            return infer_error(c,
                               "the type of output %s of a body is not "
                               "known",
                               body->outputs.data[i]->name);
    return true;
}

/* Two types that must be one. */
static bool check_same(InferContext *c, const char *what, const Tensor *a,
                       const Tensor *b)
{
    if (type_equal(&a->type, &b->type))
        return true;
    Str text = {0};
    type_print(&text, &a->type);
    str_add(&text, " and ");
    type_print(&text, &b->type);
    infer_error(c, "%s %s and %s must have one type, they have %s", what,
                a->name, b->name, str_text(&text));
    str_free(&text);
    return false;
}

static bool infer_if(InferContext *c)
{
    Node *node = c->node;

    if (node->bodies.count != 2)
        return infer_error(c, "it has %d branches, it needs 2",
                           node->bodies.count);
    if (!check_scalar(c, 0, TYPES_BOOL, "the condition"))
        return false;
    Graph *then = node->bodies.data[0], *other = node->bodies.data[1];
    if (!check_body(c, then, node->inputs.count - 1, node->outputs.count) ||
        !check_body(c, other, node->inputs.count - 1, node->outputs.count))
        return false;
    for (int i = 0; i < node->outputs.count; i++) {
        if (!type_equal(&then->outputs.data[i]->type,
                        &other->outputs.data[i]->type))
            node->inputs.data[0]->is_wanted = true;
        if (!check_same(c, "the branches' outputs", then->outputs.data[i],
                        other->outputs.data[i]))
            return false;
        const TensorType *t = &then->outputs.data[i]->type;
        infer_set(c, i, t->dtype, t->rank, t->dims);
    }
    return true;
}

Extent loop_slices(Arena *arena, const Node *node)
{
    const Tensor *m = node->inputs.count > 0 ? node->inputs.data[0] : NULL;
    int64_t trips = loop_trips(node);
    Extent most = extent_const(trips);

    if (trips < 0 && m && m->symbols)
        most = extent_max(arena, m->symbols[0], extent_const(0));
    if (trips == 0 || loop_is_counted(node))
        return most;
    /* A condition decides; each iteration counts. */
    return extent_ranged(arena, arena_printf(arena, "%s.count", node->name), 0,
                         most.value);
}

/* How many iterations there may be at most, when their results are joined. */
static bool check_slices(InferContext *c)
{
    Node *node = c->node;
    Extent list[1];

    if (node_has_input(node, 1) && !node->inputs.data[1]->value &&
        keeps_condition(node) && !infer_constant(c, 1, "the condition"))
        return false;
    if (loop_trips(node) >= 0)
        return true;
    if (!node->inputs.data[0])
        return infer_error(c, "how many iterations there are depends on a "
                              "condition: results that grow with each need a "
                              "trip count, the most that there may be");
    return infer_extents(c, 0, "the trip count", 1, list) == 1;
}

/* Results that iterations make together: one slice an iteration. */
static bool infer_slices(InferContext *c, const Graph *body, int carried)
{
    if (carried < c->node->outputs.count && !check_slices(c))
        return false;
    for (int i = carried; i < c->node->outputs.count; i++) {
        const TensorType *slice = &body->outputs.data[i + 1]->type;
        Extent dims[MAX_RANK + 1];
        dims[0] = loop_slices(c->graph->arena, c->node);
        for (int k = 0; k < slice->rank; k++)
            dims[k + 1] = slice->dims[k];
        if (!infer_set_checked(c, i, slice->dtype, slice->rank + 1, dims))
            return false;
    }
    return true;
}

static bool infer_loop(InferContext *c)
{
    Node *node = c->node;
    int carried = loop_carried(node);

    if (node->bodies.count != 1)
        return infer_error(c, "it has %d bodies, it needs 1",
                           node->bodies.count);
    if (carried < 0 || carried > node->inputs.count - 2 ||
        carried > node->outputs.count)
        return infer_error(c,
                           "it has %d inputs and %d outputs for %d carried "
                           "values",
                           node->inputs.count, node->outputs.count, carried);
    if (!node->inputs.data[0] && loop_is_counted(node))
        return infer_error(c, "it never ends: it has no trip count, and its "
                              "condition stays true");
    if (!check_scalar(c, 0, 1 << DT_I64, "the trip count") ||
        !check_scalar(c, 1, TYPES_BOOL, "the condition"))
        return false;
    const Graph *body = node->bodies.data[0];
    if (!check_body(c, body, node->inputs.count, node->outputs.count + 1))
        return false;
    const Tensor *next = body->outputs.data[0];
    if (next->type.dtype != DT_BOOL || type_count(&next->type) != 1)
        return infer_error(c, "the body's condition %s must be one bool",
                           next->name);
    for (int i = 0; i < carried; i++) {
        const Tensor *from = node->inputs.data[2 + i];
        if (!from)
            return infer_error(c, "carried value %d is left out", i);
        if (!check_same(c, "carried values", from, body->outputs.data[1 + i]))
            return false;
        infer_set(c, i, from->type.dtype, from->type.rank, from->type.dims);
    }
    return infer_slices(c, body, carried);
}

static const AttrSpec loop_attrs[] = {{"carried", ATTR_INT, false}, {0}};

static const Op op_if = {.name = "If",
                         .domain = "",
                         .min_inputs = 1,
                         .max_inputs = -1,
                         .min_outputs = 1,
                         .max_outputs = -1,
                         .traits = OP_BRANCH | OP_RUNTIME_EXTENTS,
                         .infer = infer_if,
                         .since = 1};
static const Op op_loop = {.name = "Loop",
                           .domain = "",
                           .min_inputs = 0,
                           .max_inputs = -1,
                           .min_outputs = 1,
                           .max_outputs = -1,
                           .traits = OP_LOOP | OP_RUNTIME_EXTENTS,
                           .attrs = loop_attrs,
                           .infer = infer_loop,
                           .since = 1};

const Op *const ops_control[] = {&op_if, &op_loop, NULL};
