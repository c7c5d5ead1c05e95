/* What passes ask of nodes and tensors; see util.h. */
#include "passes/util.h"

#include <stdio.h>
#include <string.h>

Tensor *node_input(const Node *node, int index)
{
    return index < node->inputs.count ? node->inputs.data[index] : NULL;
}

Tensor *node_only_output(const Node *node)
{
    Tensor *only = NULL;

    for (int i = 0; i < node->outputs.count; i++) {
        Tensor *t = node->outputs.data[i];
        if (!t || (!t->is_output && t->users.count == 0))
            continue;
        if (only)
            return NULL;
        only = t;
    }
    return only;
}

bool node_is_pure(const Node *node)
{
    return !(node->op->traits & OP_IMPURE);
}

bool node_is_constant(const Node *node)
{
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i] && !node->inputs.data[i]->value)
            return false;
    return true;
}

bool shapes_equal(const TensorType *a, const TensorType *b)
{
    if (a->rank != b->rank || a->rank < 0)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!extent_equal(a->dims[i], b->dims[i]))
            return false;
    return true;
}

bool types_equal(const TensorType *a, const TensorType *b)
{
    return a->dtype == b->dtype && a->quant == b->quant && shapes_equal(a, b);
}

void tensor_dims(const TensorType *type, int64_t dims[MAX_RANK])
{
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
}

Node *tensor_only_user(const Tensor *tensor)
{
    Node *only = tensor->users.count ? tensor->users.data[0] : NULL;

    for (int i = 1; i < tensor->users.count; i++)
        if (tensor->users.data[i] != only)
            return NULL;
    return only;
}

static Buffer *add_operand(const DefineContext *c, const char *stem, int index,
                           BufferRole role, const Tensor *tensor)
{
    Definition *def = c->def;
    char name[32];
    int64_t dims[MAX_RANK];

    snprintf(name, sizeof name, "%s%d", stem, index);
    tensor_dims(&tensor->type, dims);
    Buffer *b = definition_add_buffer(def, name, role, tensor->type.dtype,
                                      tensor->type.rank, dims);
    for (int i = 0; i < tensor->type.rank; i++)
        if (!extent_is_const(tensor->type.dims[i]))
            b->limit[i] = define_extent(c, tensor->type.dims[i]);
    b->is_constant = role == BUF_INPUT && tensor->value;
    return b;
}

/* The names that the node's types are about, in a graph of nothing else. */
static const Graph *own_symbols(Arena *arena, const Node *node)
{
    Graph *g = ARENA_NEW(arena, Graph);

    g->arena = arena;
    for (int i = 0; i < node->inputs.count + node->outputs.count; i++) {
        const Tensor *t = i < node->inputs.count
                              ? node->inputs.data[i]
                              : node->outputs.data[i - node->inputs.count];
        if (!t)
            continue;
        graph_add_symbols(g, &t->type);
        int64_t count = t->symbols ? type_count(&t->type) : 0;
        for (int64_t k = 0; k < count; k++) {
            TensorType type = {.rank = 1, .dims = {t->symbols[k]}};
            graph_add_symbols(g, &type);
        }
    }
    return g;
}

Definition *define_node(Arena *arena, const Node *node)
{
    DefineContext c = {.node = node};
    const int max_in = (int)(sizeof c.in / sizeof *c.in);
    const int max_out = (int)(sizeof c.out / sizeof *c.out);

    if (!node->op->define || node->inputs.count > max_in ||
        node->outputs.count > max_out)
        return NULL;
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i] &&
            !type_is_bounded(&node->inputs.data[i]->type))
            return NULL;
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i] &&
            !type_is_bounded(&node->outputs.data[i]->type))
            return NULL;
    if (!op_takes_runtime_extents(node))
        return NULL;
    c.def = definition_new(arena, node->op->name);
    if (!node_is_static(node)) {
        c.graph = own_symbols(arena, node);
        c.extents = define_extents_buffer(c.def, c.graph);
    }
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i])
            c.in[i] =
                add_operand(&c, "in", i, BUF_INPUT, node->inputs.data[i]);
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i])
            c.out[i] =
                add_operand(&c, "out", i, BUF_OUTPUT, node->outputs.data[i]);
    node->op->define(&c);
    return c.def;
}

/* The read of input 0 that the only stage passes on unchanged, or NULL. */
static const Expr *copied_read(Arena *arena, const Node *node,
                               const Stage **stage)
{
    Tensor *in = node_input(node, 0), *out = node_only_output(node);

    if (!in || !out || in->type.dtype != out->type.dtype ||
        in->type.quant != out->type.quant)
        return NULL;
    Definition *def = define_node(arena, node);
    if (!def || def->stages.count != 1)
        return NULL;
    *stage = def->stages.data[0];
    if ((*stage)->reduce_count || (*stage)->value_count != 1)
        return NULL;
    const Expr *value = (*stage)->value[0];
    if (value->kind != EX_READ || strcmp(value->buffer->name, "in0") != 0)
        return NULL;
    return value;
}

/* The spatial axis of the stage that an index expression is, or -1. */
static int index_axis(const Stage *stage, const Expr *index)
{
    if (index->kind != EX_VAR)
        return -1;
    for (int i = 0; i < stage->axis_count; i++)
        if (stage->axis[i].var == index->var)
            return i;
    return -1;
}

bool node_permutation(Arena *arena, const Node *node, int perm[MAX_RANK])
{
    const Stage *stage;
    const Expr *read = copied_read(arena, node, &stage);
    int in_axis_of[MAX_RANK];
    bool used[MAX_RANK] = {false};

    if (!read || read->buffer->rank != stage->axis_count)
        return false;
    for (int i = 0; i < stage->axis_count; i++)
        in_axis_of[i] = -1;
    for (int i = 0; i < read->buffer->rank; i++) {
        int axis = index_axis(stage, read->arg[i]);
        if (axis < 0) {
            /* Axes of extent 1 may be indexed by a plain 0. */
            if (read->buffer->dims[i] == 1 && expr_is_int(read->arg[i], 0))
                continue;
            return false;
        }
        const Expr *a = stage->axis[axis].limit, *b = read->buffer->limit[i];
        if (in_axis_of[axis] >= 0 ||
            stage->axis[axis].extent != read->buffer->dims[i] ||
            (a && b ? !expr_equal(a, b) : a != b))
            return false;
        in_axis_of[axis] = i;
        used[i] = true;
    }
    for (int i = 0, next = 0; i < stage->axis_count; i++) {
        if (in_axis_of[i] < 0) {
            if (stage->axis[i].extent != 1)
                return false;
            while (used[next])
                next++;
            in_axis_of[i] = next;
            used[next] = true;
        }
        perm[i] = in_axis_of[i];
    }
    return true;
}

bool node_is_copy(Arena *arena, const Node *node)
{
    int perm[MAX_RANK];
    Tensor *in = node_input(node, 0), *out = node_only_output(node);

    if (!in || !out || !types_equal(&in->type, &out->type))
        return false;
    if (node->op->traits & (OP_IDENTITY | OP_RESHAPE))
        return true;
    if (!node_permutation(arena, node, perm))
        return false;
    for (int i = 0; i < in->type.rank; i++)
        if (perm[i] != i && in->type.dims[i].value != 1)
            return false;
    return true;
}

/* index == axis `axis` of the stage, plus *start. */
static bool is_shifted(const Stage *stage, const Expr *index, int axis,
                       int64_t *start)
{
    *start = 0;
    if (index->kind == EX_ADD && index->arg[1]->kind == EX_INT) {
        *start = index->arg[1]->i;
        index = index->arg[0];
    }
    if (index->kind == EX_INT && stage->axis[axis].extent == 1) {
        *start = index->i;
        return true;
    }
    return index_axis(stage, index) == axis;
}

bool node_is_part(Arena *arena, const Node *node, int output,
                  int64_t start[MAX_RANK])
{
    char name[32];

    if (!(node->op->traits & OP_INJECTIVE) || !node_input(node, 0) ||
        output >= node->outputs.count || !node->outputs.data[output] ||
        node_input(node, 0)->type.quant !=
            node->outputs.data[output]->type.quant)
        return false;
    const Definition *def = define_node(arena, node);
    snprintf(name, sizeof name, "out%d", output);
    const Stage *s =
        def ? definition_producer(def, definition_find_buffer(def, name))
            : NULL;
    if (!s || s->reduce_count || s->value_count != 1)
        return false;
    const Expr *read = s->value[0];
    if (read->kind != EX_READ || read->outside ||
        strcmp(read->buffer->name, "in0") != 0 || read->count != s->axis_count)
        return false;
    for (int i = 0; i < read->count; i++)
        if (!is_shifted(s, read->arg[i], i, &start[i]))
            return false;
    return true;
}

/* `read` is input `input` at the stage's own index, but for an axis where it
 * is shifted back by *start. */
static bool is_joined_piece(const Stage *stage, const Expr *read, int input,
                            int axis, int64_t *start)
{
    char name[32];

    snprintf(name, sizeof name, "in%d", input);
    if (read->kind != EX_READ || read->outside ||
        strcmp(read->buffer->name, name) != 0 ||
        read->count != stage->axis_count)
        return false;
    for (int i = 0; i < read->count; i++) {
        int64_t shift;
        if (!is_shifted(stage, read->arg[i], i, &shift) ||
            (i != axis && shift != 0))
            return false;
        if (i == axis)
            *start = -shift;
    }
    return true;
}

bool node_is_join(Arena *arena, const Node *node, int *axis, int64_t *starts)
{
    if (!(node->op->traits & OP_INJECTIVE) || node->inputs.count < 2 ||
        node->outputs.count != 1)
        return false;
    const Definition *def = define_node(arena, node);
    if (!def || def->stages.count != 1 ||
        def->stages.data[0]->value_count != 1)
        return false;
    const Stage *s = def->stages.data[0];
    const Expr *x = s->value[0];
    int64_t at = 0;
    *axis = -1;
    for (int i = 0; i < node->inputs.count; i++) {
        const Expr *piece = x;
        bool is_last = i + 1 == node->inputs.count;
        if (!is_last) {
            if (x->kind != EX_SELECT || x->arg[0]->kind != EX_LT ||
                x->arg[0]->arg[1]->kind != EX_INT)
                return false;
            int a = index_axis(s, x->arg[0]->arg[0]);
            if (a < 0 || (i > 0 && a != *axis))
                return false;
            *axis = a;
            piece = x->arg[1];
        }
        if (!is_joined_piece(s, piece, i, *axis, &starts[i]) ||
            starts[i] != at)
            return false;
        at += piece->buffer->dims[*axis];
        if (is_last ? at != s->axis[*axis].extent : at != x->arg[0]->arg[1]->i)
            return false;
        x = is_last ? x : x->arg[2];
    }
    return true;
}

/* Bounds of an index expression; false when they cannot be told. */
typedef struct Range {
    int64_t lo, hi;
} Range;

static bool index_range(const Stage *stage, const Expr *x, Range *r)
{
    Range a, b;

    switch (x->kind) {
    case EX_INT:
        r->lo = r->hi = x->i;
        return true;
    case EX_VAR:
        for (int i = 0; i < stage->axis_count; i++)
            if (stage->axis[i].var == x->var) {
                *r = (Range){0, stage->axis[i].extent - 1};
                return true;
            }
        for (int i = 0; i < stage->reduce_count; i++)
            if (stage->reduce[i].var == x->var) {
                *r = (Range){0, stage->reduce[i].extent - 1};
                return true;
            }
        return false;
    case EX_NEG:
        if (!index_range(stage, x->arg[0], &a))
            return false;
        *r = (Range){-a.hi, -a.lo};
        return true;
    case EX_ADD:
    case EX_SUB:
        if (!index_range(stage, x->arg[0], &a) ||
            !index_range(stage, x->arg[1], &b))
            return false;
        *r = x->kind == EX_ADD ? (Range){a.lo + b.lo, a.hi + b.hi}
                               : (Range){a.lo - b.hi, a.hi - b.lo};
        return true;
    case EX_MUL:
        if (!index_range(stage, x->arg[0], &a) ||
            !index_range(stage, x->arg[1], &b))
            return false;
        if (a.lo != a.hi && b.lo != b.hi)
            return false;
        if (a.lo == a.hi) {
            Range swap = a;
            a = b;
            b = swap;
        }
        *r = b.lo >= 0 ? (Range){a.lo * b.lo, a.hi * b.lo}
                       : (Range){a.hi * b.lo, a.lo * b.lo};
        return true;
    case EX_DIV:
        if (!index_range(stage, x->arg[0], &a) || x->arg[1]->kind != EX_INT ||
            a.lo < 0)
            return false;
        *r = (Range){a.lo / x->arg[1]->i, a.hi / x->arg[1]->i};
        return true;
    case EX_MOD:
        if (x->arg[1]->kind != EX_INT)
            return false;
        *r = (Range){0, x->arg[1]->i - 1};
        return true;
    default:
        return false;
    }
}

typedef struct BorderWalk {
    Arena *arena;
    const Stage *stage;
    const char *buffer;
    int64_t *lo, *hi;
    bool found, bad;
} BorderWalk;

/* Definitions of nodes are small trees: plain recursion does. */
static void border_walk(BorderWalk *w, const Expr *x)
{
    for (int i = 0; i < x->count; i++)
        border_walk(w, x->arg[i]);
    if (x->kind != EX_READ || strcmp(x->buffer->name, w->buffer) != 0 ||
        !x->outside)
        return;
    bool zero = x->outside->kind == EX_FLOAT ? x->outside->f == 0
                                             : expr_is_int(x->outside, 0);
    if (!zero) {
        w->bad = true;
        return;
    }
    for (int i = 0; i < x->count; i++) {
        Range r;
        if (!index_range(w->stage, x->arg[i], &r)) {
            w->bad = true;
            return;
        }
        int64_t past = r.hi - (x->buffer->dims[i] - 1), excess;
        /* Fewer elements may need more border, as windows of a stride do. */
        if (x->buffer->limit[i]) {
            if (!stage_read_excess(w->arena, w->stage, x, i, &excess)) {
                w->bad = true;
                return;
            }
            past = excess > past ? excess : past;
        }
        w->lo[i] = -r.lo > w->lo[i] ? -r.lo : w->lo[i];
        w->hi[i] = past > w->hi[i] ? past : w->hi[i];
        w->found |= r.lo < 0 || past > 0;
    }
}

bool node_input_border(Arena *arena, const Node *node, int operand,
                       int64_t lo[MAX_RANK], int64_t hi[MAX_RANK])
{
    char name[32];
    BorderWalk w = {.arena = arena, .lo = lo, .hi = hi, .buffer = name};
    Definition *def = define_node(arena, node);

    for (int i = 0; i < MAX_RANK; i++)
        lo[i] = hi[i] = 0;
    if (!def)
        return false;
    snprintf(name, sizeof name, "in%d", operand);
    for (int s = 0; s < def->stages.count; s++) {
        w.stage = def->stages.data[s];
        for (int v = 0; v < w.stage->value_count; v++)
            border_walk(&w, w.stage->value[v]);
    }
    return w.found && !w.bad;
}

void node_replace_by_constants(Graph *g, Node *node,
                               const Array *const *values)
{
    for (int i = 0; i < node->outputs.count; i++) {
        Tensor *t = node->outputs.data[i];
        if (!t || !values[i] || t->users.count == 0)
            continue;
        Tensor *constant = graph_add_constant(g, t->name, values[i]);
        /* The node stays for an output, whose other readers need it no
         * more. */
        if (t->is_output)
            graph_replace_uses(g, t, constant);
        else
            graph_replace(g, t, constant);
    }
}

void graph_group_alone(Graph *g)
{
    g->groups.count = 0;
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        Group *group = ARENA_NEW(g->arena, Group);
        group->id = i;
        group->anchor =
            node->op->traits & (OP_ANCHOR | OP_REDUCTION) ? node : NULL;
        vec_push(g->arena, &group->nodes, node);
        node->group = group;
        vec_push(g->arena, &g->groups, group);
    }
}

void graph_layout_row_major(Graph *g)
{
    for (int i = 0; i < g->tensors.count; i++) {
        Tensor *t = g->tensors.data[i];
        if (t->type.rank >= 0)
            t->layout = layout_row_major(t->type.rank);
    }
}

bool node_fold(PassContext *c, Node *node)
{
    Graph *g = c->graph;
    const Array **values =
        ARENA_ARRAY(g->arena, const Array *, node->outputs.count + 1);

    if (!c->evaluate(g->arena, g, node, values))
        return false;
    node_replace_by_constants(g, node, values);
    return true;
}
