/* Large intermediate results a strip of rows at a time.
 *
 * Input: a typed graph without layouts. Output: a chain of nodes that hands
 * on a tensor which the second-level cache does not hold stands there several
 * times, each for some rows of the chain's result: slices of what it reads,
 * and the results joined, neither of which costs anything under the layouts to
 * come. What a strip hands on stays in cache, and the arena need not hold more
 * of it. Rows that a window reads of its neighbours' strips are computed
 * twice, so that there are only as many strips as that allows.
 *
 * Every element is computed as before, from the same operands: every bit
 * stays. At -O2 because it is there for speed. Source for the idea: Alwani et
 * al., Fused-layer CNN accelerators, MICRO 2016. */
#include <math.h>
#include <string.h>

#include "ops/make.h"
#include "passes/util.h"
#include "tensor/simplify.h"

enum {
    ROWS = 2, /* the axis of N, C, rows, ... */
    MOST_STRIPS = 32,
    MOST_NODES = 12
};
/* Shares of the second-level cache for what a strip hands on, and of the
 * chain's work for what is done twice. */
static const double most_cache = 0.65, most_repeated = 0.08;
/* Operations for each byte that passes by the cache: with more of them a core
 * hardly waits for memory, and strips gain nothing. */
static const double most_intensity = 40;

/* Rows of operand 0 for rows a to b - 1 of the result:
 * a * stride + first to (b - 1) * stride + last. */
typedef struct Window {
    int64_t stride, first, last;
    int64_t lo[MAX_RANK], hi[MAX_RANK]; /* zeros read around the operand */
} Window;

typedef struct Chain {
    Vec(Node *) nodes;
    Vec(Window) windows;
} Chain;

/* The row, times and plus numbers, and what runs over a window. */
static bool is_linear(const Expr *x)
{
    bool all = x->kind == EX_INT || x->kind == EX_VAR || x->kind == EX_ADD ||
               (x->kind == EX_MUL && x->arg[1]->kind == EX_INT);
    for (int i = 0; i < x->count && all; i++)
        all = is_linear(x->arg[i]);
    return all;
}

typedef struct RowWalk {
    Arena *scratch;
    const Node *node;
    const Definition *def;
    const Stage *stage;
    Window *window;
    bool found, bad;
} RowWalk;

static int operand_of(const RowWalk *w, const Buffer *buffer)
{
    for (int i = 0; i < w->node->inputs.count; i++)
        if (buffer == definition_find_buffer(
                          w->def, arena_printf(w->scratch, "in%d", i)))
            return i;
    return -1;
}

/* What the row is for the first and for the second row of the result. */
static Interval rows_of(const RowWalk *w, const Expr *x, int64_t count)
{
    Ranges ranges = {.arena = w->scratch};
    const Stage *s = w->stage;
    vec_push(w->scratch, &ranges.vars, ((VarRange){s->axis[ROWS].var, count}));
    for (int i = 0; i < s->reduce_count; i++)
        vec_push(w->scratch, &ranges.vars,
                 ((VarRange){s->reduce[i].var, s->reduce[i].extent}));
    return interval_of(&ranges, x);
}

static void look_at_read(RowWalk *w, const Expr *x)
{
    const Var *row = w->stage->axis[ROWS].var;
    int operand = operand_of(w, x->buffer);
    for (int i = 0; i < x->count; i++)
        if (i != ROWS && expr_uses_var(x->arg[i], row)) {
            w->bad = true;
            return;
        }
    bool is_own = x->count > ROWS && x->arg[ROWS]->kind == EX_VAR &&
                  x->arg[ROWS]->var == row;
    bool is_fixed = operand >= 0 && w->node->inputs.data[operand]->value;
    if (is_fixed || x->count <= ROWS || x->buffer->dims[ROWS] == 1) {
        w->bad |= x->count > ROWS && expr_uses_var(x->arg[ROWS], row);
        return;
    }
    if (operand != 0) {
        w->bad |= !is_own;
        return;
    }
    Interval one = rows_of(w, x->arg[ROWS], 1);
    Interval two = rows_of(w, x->arg[ROWS], 2);
    if (!is_linear(x->arg[ROWS]) || !one.known || !two.known ||
        two.max <= one.max) {
        w->bad = true;
        return;
    }
    Window *window = w->window;
    int64_t stride = two.max - one.max;
    w->bad |= w->found && stride != window->stride;
    if (!w->found || one.min < window->first)
        window->first = one.min;
    if (!w->found || one.max > window->last)
        window->last = one.max;
    window->stride = stride;
    w->found = true;
}

/* The row of the result matters to nothing but to what is read. */
static void walk(RowWalk *w, const Expr *x)
{
    if (x->kind == EX_READ) {
        look_at_read(w, x);
        return;
    }
    w->bad |= x->kind == EX_VAR && x->var == w->stage->axis[ROWS].var;
    for (int i = 0; i < x->count && !w->bad; i++)
        walk(w, x->arg[i]);
}

static bool takes_padding(const Node *node)
{
    for (const AttrSpec *a = node->op->attrs; a && a->name; a++)
        if (!strcmp(a->name, "pads"))
            return true;
    return false;
}

static bool has_rows(const Tensor *t)
{
    return t && t->type.rank > ROWS && type_is_static(&t->type) &&
           t->type.dims[0].value == 1;
}

/* Each row of the result needs the row of operand 0 of the same number. */
static bool is_point(const Node *node, const Window *w)
{
    const Tensor *in = node->inputs.data[0], *out = node->outputs.data[0];

    return w->stride == 1 && !w->first && !w->last &&
           extent_equal(in->type.dims[ROWS], out->type.dims[ROWS]);
}

/* Whether rows of the result need but some rows of operand 0, and which. */
static bool find_window(Arena *scratch, const Node *node, Window *window)
{
    const Tensor *out = node_only_output(node), *in = node_input(node, 0);

    *window = (Window){0};
    if (!has_rows(out) || !has_rows(in) || in->value || !node_is_pure(node) ||
        node->no_fuse || node->bodies.count ||
        !(node->op->traits & (OP_ANCHOR | OP_ELEMENTWISE)))
        return false;
    RowWalk w = {.scratch = scratch,
                 .node = node,
                 .def = define_node(scratch, node),
                 .window = window};
    if (!w.def)
        return false;
    for (int i = 0; i < w.def->stages.count && !w.bad; i++) {
        w.stage = w.def->stages.data[i];
        if (w.stage->axis_count != out->type.rank)
            return false;
        for (int k = 0; k < w.stage->value_count && !w.bad; k++)
            walk(&w, w.stage->value[k]);
    }
    if (w.bad || !w.found)
        return false;
    return is_point(node, window) ||
           (takes_padding(node) &&
            (node_input_border(scratch, node, 0, window->lo, window->hi) ||
             window->first >= 0));
}

/* ---- the chain ------------------------------------------------------- */

static double bytes_of(const Tensor *t)
{
    return (double)type_count(&t->type) * (double)dtype_size(t->type.dtype);
}

static int64_t rows(const Tensor *t)
{
    return t->type.dims[ROWS].value;
}

static Tensor *result(const Chain *c, int i)
{
    return c->nodes.data[i]->outputs.data[0];
}

static bool append(Arena *scratch, Chain *c, Node *node)
{
    Window window;
    if (c->nodes.count == MOST_NODES || !find_window(scratch, node, &window))
        return false;
    vec_push(scratch, &c->nodes, node);
    vec_push(scratch, &c->windows, window);
    return true;
}

/* From an anchor with a result that is too large for the cache over its
 * readers, as long as a result is too large or the next one costs no row
 * twice. Ends behind an anchor and what follows it point by point. */
static bool find_chain(Arena *scratch, Node *start, double cache, Chain *c)
{
    int anchors = 0;

    if (!(start->op->traits & OP_ANCHOR) || !append(scratch, c, start) ||
        bytes_of(result(c, 0)) <= cache || !node_input(start, 0)->producer)
        return false;
    for (;;) {
        Tensor *t = result(c, c->nodes.count - 1);
        Node *next = t->is_output ? NULL : tensor_only_user(t);
        if (!next || t->users.count != 1 || next->inputs.data[0] != t ||
            !append(scratch, c, next))
            break;
        const Window *w = &c->windows.data[c->nodes.count - 1];
        bool is_anchor = next->op->traits & OP_ANCHOR;
        bool is_single = w->stride == 1 && w->first == w->last;
        if (is_anchor && !is_single && bytes_of(t) <= cache) {
            c->nodes.count--;
            c->windows.count--;
            break;
        }
        anchors += is_anchor;
    }
    return anchors > 0;
}

/* ---- strips ---------------------------------------------------------- */

/* Rows [first, end) of a tensor. */
typedef struct Rows {
    int64_t first, end;
} Rows;

/* What node `i` reads of its operand for these rows, and how many rows of
 * zeros around it. */
static Rows rows_read(const Chain *c, int i, Rows r, Rows *padding)
{
    const Window *w = &c->windows.data[i];
    int64_t whole = rows(node_input(c->nodes.data[i], 0));
    Rows read = {r.first * w->stride + w->first,
                 (r.end - 1) * w->stride + w->last + 1};
    *padding = (Rows){read.first < 0 ? -read.first : 0,
                      read.end > whole ? read.end - whole : 0};
    read.first += padding->first;
    read.end -= padding->end;
    return read;
}

static Rows strip(int64_t whole, int strips, int i)
{
    return (Rows){whole * i / strips, whole * (i + 1) / strips};
}

/* How many, so that what they hand on stays in cache; 0: not worth it. */
static int count_strips(Arena *scratch, const Chain *c, double cache)
{
    int last = c->nodes.count - 1;
    double most = 0, work = 0, repeated = 0, traffic = 0;

    for (int i = 0; i < last; i++) {
        double bytes = bytes_of(result(c, i));
        most = fmax(most, bytes);
        /* Elementwise nodes are done before anything is stored. */
        bool is_stored = c->nodes.data[i + 1]->op->traits & OP_ANCHOR;
        traffic += is_stored && bytes > cache ? 2 * bytes : 0;
    }
    int strips = (int)ceil(most / (most_cache * cache));
    int64_t whole = rows(result(c, last));
    if (strips < 2 || strips > MOST_STRIPS || whole < 2 * (int64_t)strips)
        return 0;
    double by_row[MOST_NODES];
    for (int k = 0; k <= last; k++) {
        double flops =
            definition_flops(define_node(scratch, c->nodes.data[k]));
        by_row[k] = flops / (double)rows(result(c, k));
        work += flops;
    }
    for (int i = 0; i < strips; i++) {
        Rows r = strip(whole, strips, i), padding;
        for (int k = last; k >= 0; k--) {
            repeated += by_row[k] * (double)(r.end - r.first);
            r = rows_read(c, k, r, &padding);
            if (r.first >= r.end)
                return 0; /* nothing but zeros around the operand */
        }
    }
    return repeated <= work * (1 + most_repeated) &&
                   work <= most_intensity * traffic
               ? strips
               : 0;
}

static Tensor *slice_rows(Graph *g, Tensor *x, Rows r, Node *before)
{
    if (!x || x->value || x->type.rank <= ROWS || rows(x) == 1 ||
        (r.first == 0 && r.end == rows(x)))
        return x;
    Tensor *part = op_make_slice(g, NULL, x, ROWS, r.first, r.end - r.first);
    graph_move_before(g, part->producer, before);
    return part;
}

/* Node `i` of the chain for rows `r` of its result. */
static Tensor *make_rows(Graph *g, Chain *c, int i, Rows r, Node *before)
{
    Node *node = c->nodes.data[i];
    const Window *w = &c->windows.data[i];
    Rows padding, read = rows_read(c, i, r, &padding);
    Tensor *inputs[MAX_OP_INPUTS];

    for (int k = 0; k < node->inputs.count; k++)
        inputs[k] = k == 0 && i > 0 ? make_rows(g, c, i - 1, read, before)
                                    : slice_rows(g, node->inputs.data[k],
                                                 k == 0 ? read : r, before);
    int64_t pads[2 * MAX_RANK];
    int rank = node->outputs.data[0]->type.rank, n = rank - ROWS;
    for (int k = 0; k < n; k++) {
        pads[k] = k ? w->lo[ROWS + k] : padding.first;
        pads[n + k] = k ? w->hi[ROWS + k] : padding.end;
    }
    Tensor *made =
        op_make_like(g, node, inputs, is_point(node, w) ? NULL : pads, n);
    graph_add_source(g, made->producer, node);
    graph_move_before(g, made->producer, before);
    return made;
}

static void write_strips(Graph *g, Chain *c, int strips)
{
    Node *end = c->nodes.data[c->nodes.count - 1];
    Tensor *whole = end->outputs.data[0];
    Tensor *parts[MOST_STRIPS];

    for (int i = 0; i < strips; i++)
        parts[i] = make_rows(g, c, c->nodes.count - 1,
                             strip(rows(whole), strips, i), end);
    Tensor *joined = op_make_join(g, NULL, parts, strips, ROWS);
    graph_add_source(g, joined->producer, end);
    graph_move_before(g, joined->producer, end);
    if (!graph_replace(g, whole, joined))
        die("strips: an output that cannot be replaced");
}

void pass_strips(PassContext *c)
{
    Graph *g = c->graph;
    Arena *scratch = arena_new();
    double cache = (double)c->target->l2_bytes;
    int written = 0;

    for (int i = 0; i < g->nodes.count; i++) {
        Chain chain = {0};
        Node *start = g->nodes.data[i];
        if (!find_chain(scratch, start, cache, &chain))
            continue;
        int strips = count_strips(scratch, &chain, cache);
        if (strips == 0)
            continue;
        write_strips(g, &chain, strips);
        written++;
        /* What was written stands before the chain's end, whose old nodes are
         * left without a reader. */
        Node *end = chain.nodes.data[chain.nodes.count - 1];
        while (g->nodes.data[i] != end)
            i++;
    }
    arena_free(scratch);
    if (written > 0)
        graph_sweep(g);
}
