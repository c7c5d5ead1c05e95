/* Concatenations without copies: operands that lie in the result's storage.
 *
 * Input: a graph whose tensors have layouts. Output: where all operands of a
 * concatenation can be written straight into the result, they are parts of
 * it (Tensor.within, and a layout that leaves room for the others), and the
 * node is an alias. All or none: a copy of one operand would be a kernel as
 * the concatenation is.
 *
 * An operand can be placed when a node computes it, it is neither output nor
 * constant, it lies nowhere else yet, and its axes are in the order of the
 * result's. What is an alias of it moves along; when an operand is an alias
 * itself, what it is an alias of is placed. Parts of one tensor that come one
 * after the other and make up the whole are placed as that tensor: so the
 * halves of a split may come back in a concatenation. Results are taken from
 * the last to the first, as one may be part of a later one.
 *
 * Left alone: a concatenation of light nodes whose only reader is elementwise.
 * Fusion makes one kernel of all of that. */
#include "passes/util.h"

typedef struct Change {
    Tensor *tensor;
    Layout layout;
    Tensor *within;
} Change;

typedef struct Place {
    Arena *scratch;
    const bool *fixed, *wants; /* by tensor id */
    Vec(Change) log;           /* what was there before, to go back */
} Place;

static void undo(Place *p, int mark)
{
    while (p->log.count > mark) {
        Change c = p->log.data[--p->log.count];
        c.tensor->layout = c.layout;
        c.tensor->within = c.within;
    }
}

/* Gives `x` another layout, and its aliases theirs. False when one of them
 * would have to become a copy. */
static bool move(Place *p, Tensor *x, const Layout *layout, Tensor *within)
{
    Vec(Node *) aliases = {0};

    for (int i = 0; i < x->users.count; i++) {
        Node *user = x->users.data[i];
        if (node_input(user, 0) == x && user->inputs.data[0] == x &&
            node_is_alias(p->scratch, user))
            vec_push(p->scratch, &aliases, user);
    }
    vec_push(p->scratch, &p->log, ((Change){x, x->layout, x->within}));
    x->layout = *layout;
    x->within = within;
    for (int i = 0; i < aliases.count; i++) {
        Layout moved;
        Tensor *y = node_only_output(aliases.data[i]);
        if (!node_alias_layout(p->scratch, aliases.data[i], &moved) ||
            !move(p, y, &moved, x))
            return false;
    }
    return true;
}

static bool has_order_of(const Layout *a, const Layout *b)
{
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (a->dim[i].axis != b->dim[i].axis || a->dim[i].factor)
            return false;
    return true;
}

static bool covers_border(const Layout *layout, const Layout *wanted)
{
    for (int i = 0; i < MAX_RANK; i++)
        if (layout->lo[i] < wanted->lo[i] || layout->hi[i] < wanted->hi[i])
            return false;
    return true;
}

/* Puts `x` into the storage of `whole`. May leave changes behind when it
 * fails. */
static bool place(Place *p, Tensor *x, const Layout *layout, Tensor *whole)
{
    int64_t dims[MAX_RANK];

    if (!x->producer || x->within || p->fixed[x->id] ||
        !covers_border(layout, &x->layout) ||
        (!has_order_of(layout, &x->layout) &&
         (p->wants[x->id] || x->users.count > 1)))
        return false;
    if (!node_is_alias(p->scratch, x->producer))
        return move(p, x, layout, whole);
    Layout operand;
    tensor_dims(&x->type, dims);
    return node_unalias_layout(p->scratch, x->producer, layout, &operand) &&
           place(p, x->producer->inputs.data[0], &operand, whole) &&
           layout_same_storage(&x->layout, layout, x->type.rank, dims);
}

/* The tensor of which `x` is a part along `axis`, cut out at *start, without
 * a copy; NULL when it is none. */
static Tensor *whole_of(Place *p, const Tensor *x, int axis, int64_t *start)
{
    int64_t starts[MAX_RANK];

    if (!x->producer || !x->within ||
        node_input(x->producer, 0) != x->within ||
        !node_is_part(p->scratch, x->producer, 0, starts))
        return NULL;
    for (int i = 0; i < x->type.rank; i++)
        if (i != axis &&
            !extent_equal(x->type.dims[i], x->within->type.dims[i]))
            return NULL;
    *start = starts[axis];
    return x->within;
}

/* Operands from `first` on that make up a whole tensor; how many, and which.
 * 0 when they do not. */
static int take_parts(Place *p, const Node *node, int first, int axis,
                      Tensor **whole)
{
    int64_t start, at = 0;
    int count = 0;

    *whole = whole_of(p, node->inputs.data[first], axis, &start);
    for (int i = first; *whole && i < node->inputs.count; i++) {
        const Tensor *x = node->inputs.data[i];
        if (whole_of(p, x, axis, &start) != *whole || start != at)
            return 0;
        at += x->type.dims[axis].value;
        count++;
        if (at == (*whole)->type.dims[axis].value)
            return count;
    }
    return 0;
}

static bool is_light(const Node *node)
{
    return (node->op->traits & (OP_ELEMENTWISE | OP_INJECTIVE)) &&
           !(node->op->traits & (OP_ANCHOR | OP_REDUCTION));
}

static bool is_for_fusion(const Node *node, const Tensor *y)
{
    if (y->is_output || y->users.count != 1 ||
        !(y->users.data[0]->op->traits & OP_ELEMENTWISE))
        return false;
    for (int i = 0; i < node->inputs.count; i++) {
        const Tensor *x = node->inputs.data[i];
        if (!x->value && (!x->producer || !is_light(x->producer)))
            return false;
    }
    return true;
}

static bool place_operands(Place *p, const Node *node, Tensor *y, int axis,
                           const int64_t *starts)
{
    int64_t dims[MAX_RANK];

    tensor_dims(&y->type, dims);
    for (int i = 0; i < node->inputs.count;) {
        Tensor *whole;
        int count = take_parts(p, node, i, axis, &whole);
        Tensor *x = count ? whole : node->inputs.data[i];
        Layout part = y->layout;
        if (!layout_take_part(&part, dims, axis, starts[i],
                              x->type.dims[axis].value) ||
            !place(p, x, &part, y))
            return false;
        i += count ? count : 1;
    }
    return true;
}

void place_operands_of_joins(Graph *g, const bool *fixed, const bool *wants)
{
    Place p = {.scratch = arena_new(), .fixed = fixed, .wants = wants};

    for (int i = g->nodes.count - 1; i >= 0; i--) {
        const Node *node = g->nodes.data[i];
        int64_t *starts =
            ARENA_ARRAY(p.scratch, int64_t, node->inputs.count + 1);
        int axis;
        if (!node_is_join(p.scratch, node, &axis, starts))
            continue;
        Tensor *y = node->outputs.data[0];
        int mark = p.log.count;
        if (y->layout.count == y->type.rank && !is_for_fusion(node, y) &&
            !place_operands(&p, node, y, axis, starts))
            undo(&p, mark);
    }
    arena_free(p.scratch);
}
