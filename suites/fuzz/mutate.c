/* Changes to a graph that is there: what no maker thought of. Each keeps the
 * graph valid or takes itself back. */
#include <stddef.h>
#include <string.h>

#include "ops/op.h"
#include "suites/fuzz/maker.h"

/* ---- detours: between a result and one reader of it -------------------- */

static Tensor *detour_transpose(Maker *m, Tensor *x)
{
    int64_t perm[MAX_RANK], back[MAX_RANK];
    int rank = x->type.rank, by = rank ? choose(m->c, rank) : 0;
    for (int i = 0; i < rank; i++) {
        perm[i] = (i + by) % rank;
        back[perm[i]] = i;
    }
    Tensor *y = rank ? transpose(m, x, perm) : NULL;
    return y ? transpose(m, y, back) : NULL;
}

static Tensor *detour_negate(Maker *m, Tensor *x)
{
    Tensor *y = is_type(x, FLOATS) ? apply1(m, "Neg", x) : NULL;
    return y ? apply1(m, "Neg", y) : NULL;
}

static Tensor *detour_identity(Maker *m, Tensor *x)
{
    return apply1(m, flip(m) ? "Identity" : "Dropout", x);
}

static Tensor *detour_cast(Maker *m, Tensor *x)
{
    DType dtype = x->type.dtype;
    DType wide = dtype_is_float(dtype) ? DT_F64 : DT_I64;
    if (dtype == wide || dtype == DT_U64 || dtype == DT_STRING)
        return NULL;
    return cast(m, cast(m, x, wide), dtype);
}

static Tensor *detour_reshape(Maker *m, Tensor *x)
{
    int64_t shape[MAX_RANK], all = -1;
    for (int i = 0; i < x->type.rank; i++)
        shape[i] = dim(x, i);
    if (!is_static(x))
        return NULL;
    Tensor *y = apply(m, "Reshape", (Attrs){0}, x, ints(m, &all, 1), NULL);
    return y ? apply(m, "Reshape", attr_int(m, "allowzero", 1), y,
                     ints(m, shape, x->type.rank), NULL)
             : NULL;
}

static Tensor *detour_unsqueeze(Maker *m, Tensor *x)
{
    Tensor *axis = one_int(m, choose(m->c, x->type.rank + 1));
    Tensor *y = x->type.rank < MAX_RANK
                    ? apply(m, "Unsqueeze", (Attrs){0}, x, axis, NULL)
                    : NULL;
    return y ? apply(m, "Squeeze", (Attrs){0}, y, axis, NULL) : NULL;
}

/* Cut in two and joined; the first part perhaps has a reader of its own. */
static Tensor *detour_split(Maker *m, Tensor *x)
{
    int axis = x->type.rank ? choose(m->c, x->type.rank) : 0;
    if (!x->type.rank || is_open(x, axis))
        return NULL;
    int64_t n = dim(x, axis), cut = choose(m->c, (int)(n < 200 ? n + 1 : 200));
    int64_t sizes[] = {cut, n - cut};
    Tensor *in[] = {x, ints(m, sizes, 2)};
    Node *split = apply_list(m, "Split", attr_int(m, "axis", axis), in, 2, 2);
    if (!split)
        return NULL;
    if (rarely(m, 3)) {
        Tensor *again = apply1(m, "Identity", split->outputs.data[0]);
        if (again)
            graph_mark_output(m->g, again);
    }
    Node *join = apply_list(m, "Concat", attr_int(m, "axis", axis),
                            split->outputs.data, 2, 1);
    return join ? join->outputs.data[0] : NULL;
}

static Tensor *detour_pad(Maker *m, Tensor *x)
{
    int64_t pads[2 * MAX_RANK] = {0}, back[2 * MAX_RANK] = {0};
    int rank = x->type.rank, at = rank ? choose(m->c, 2 * rank) : 0;
    if (!rank || !is_static(x))
        return NULL;
    pads[at] = 1 + choose(m->c, 2);
    back[at] = -pads[at];
    Tensor *y = apply(m, "Pad", (Attrs){0}, x, ints(m, pads, 2 * rank), NULL);
    return y ? apply(m, "Pad", (Attrs){0}, y, ints(m, back, 2 * rank), NULL)
             : NULL;
}

static Tensor *detour_one(Maker *m, Tensor *x)
{
    if (!is_type(x, NUMBERS))
        return NULL;
    return flip(m) ? apply(m, "Mul", (Attrs){0}, x,
                           scalar(m, x->type.dtype, 1), NULL)
                   : apply(m, "Add", (Attrs){0}, x,
                           scalar(m, x->type.dtype, 0), NULL);
}

static Tensor *(*const detours[])(Maker *, Tensor *) = {
    detour_identity,  detour_transpose, detour_split,
    detour_negate,    detour_cast,      detour_reshape,
    detour_unsqueeze, detour_pad,       detour_one};

static Node *choose_node(Maker *m)
{
    int count = m->g->nodes.count;
    return count ? m->g->nodes.data[choose(m->c, count)] : NULL;
}

/* An operand that no type rule needs as a number. */
static Tensor *choose_operand(Maker *m, Node *node, int *index)
{
    int count = node ? node->inputs.count : 0;
    *index = count ? choose(m->c, count) : 0;
    Tensor *t = count ? node->inputs.data[*index] : NULL;
    return t && !t->value ? t : NULL;
}

static bool insert_detour(Maker *m)
{
    int index;
    Node *node = choose_node(m);
    Tensor *x = choose_operand(m, node, &index);
    Tensor *y = x ? detours[choose(m->c, 9)](m, x) : NULL;
    if (!y || !type_equal(&y->type, &x->type))
        return false;
    graph_set_input(m->g, node, index, y);
    return graph_sort(m->g);
}

/* ---- other changes ---------------------------------------------------- */

static int place(const Graph *g, const Node *node)
{
    int i = 0;
    while (i < g->nodes.count && g->nodes.data[i] != node)
        i++;
    return i;
}

/* Another of the same type, from before the node: no cycle can come of it. */
static bool swap_operand(Maker *m)
{
    int index;
    Node *node = choose_node(m);
    Tensor *x = choose_operand(m, node, &index);
    int at = node ? place(m->g, node) : 0;
    for (int i = 0; x && i < m->pool.count; i++) {
        Tensor *t = m->pool.data[i];
        if (t == x || !type_equal(&t->type, &x->type) ||
            (t->producer && place(m->g, t->producer) >= at))
            continue;
        /* An index has to stay one, and a scale positive. */
        if (is_type(t, INTS) || strstr(op_name(node->op), "Linear"))
            return false;
        graph_set_input(m->g, node, index, t);
        return true;
    }
    return false;
}

/* The same computation twice, each with readers. */
static bool repeat_node(Maker *m)
{
    Node *node = choose_node(m);
    if (!node || node->bodies.count || !node->outputs.count ||
        !node->outputs.data[0])
        return false;
    Node *again =
        apply_list(m, op_name(node->op), node->attrs, node->inputs.data,
                   node->inputs.count, node->outputs.count);
    if (!again)
        return false;
    Tensor *from = node->outputs.data[0], *to = again->outputs.data[0];
    if (from->users.count && type_equal(&from->type, &to->type)) {
        Node *user = from->users.data[0];
        for (int i = 0; i < user->inputs.count; i++)
            if (user->inputs.data[i] == from)
                graph_set_input(m->g, user, i, to);
    }
    return graph_sort(m->g);
}

static bool add_reader(Maker *m)
{
    Node *node = choose_node(m);
    Tensor *t = node ? node->outputs.data[0] : NULL;
    return t &&
           apply1(m, is_type(t, FLOATS) && flip(m) ? "Neg" : "Identity", t);
}

/* Results within a chain must then be stored. */
static bool add_output(Maker *m)
{
    Node *node = choose_node(m);
    Tensor *t = node ? node->outputs.data[0] : NULL;
    if (t && !t->is_output)
        graph_mark_output(m->g, t);
    return t != NULL;
}

/* Of several results, one that nothing reads. */
static bool drop_result(Maker *m)
{
    Node *node = choose_node(m);
    if (!node || node->outputs.count < 2)
        return false;
    int at = choose(m->c, node->outputs.count);
    Tensor *t = node->outputs.data[at];
    bool others = false;
    for (int i = 0; i < node->outputs.count; i++)
        others |= i != at && node->outputs.data[i];
    if (!t || t->users.count || t->is_output || !others)
        return false;
    for (int i = 0; i < m->pool.count; i++)
        if (m->pool.data[i] == t)
            vec_remove(&m->pool, i--);
    graph_drop_output(m->g, node, at);
    return true;
}

/* A number one more or less. What follows must still type. */
static bool change_attribute(Maker *m)
{
    Node *node = choose_node(m);
    int count = node ? node->attrs.list.count : 0;
    if (!count || node->op->traits & OP_LOOP)
        return false;
    int at = choose(m->c, count), by = flip(m) ? 1 : -1;
    Attr *attr = &node->attrs.list.data[at], old = *attr;
    if (attr->kind == ATTR_INT) {
        if (!strcmp(attr->name, "to"))
            return false;
        attr->i += by;
    } else if (attr->kind == ATTR_INTS && attr->count) {
        int64_t *copy = arena_copy(m->g->arena, attr->ints,
                                   (size_t)attr->count * sizeof *copy);
        copy[choose(m->c, attr->count)] += by;
        attr->ints = copy;
    } else if (attr->kind == ATTR_FLOAT) {
        attr->f *= 2;
    } else {
        return false;
    }
    int errors = m->g->diag->errors.count;
    if (ops_infer_graph(m->g))
        return true;
    node->attrs.list.data[at] = old;
    m->g->diag->errors.count = errors;
    return ops_infer_graph(m->g);
}

static bool (*const changes[])(Maker *) = {
    insert_detour, insert_detour, swap_operand, change_attribute,
    repeat_node,   add_reader,    add_output,   drop_result};

bool maker_mutate(Maker *m)
{
    return changes[choose(m->c, 8)](m);
}
