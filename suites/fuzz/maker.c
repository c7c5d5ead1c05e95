#include "suites/fuzz/maker.h"

#include <string.h>

#include "ops/op.h"
#include "suites/random.h"

enum { MOST_INPUTS = 6, NEAR = 6 };

int choose(Choices *c, int count)
{
    return count > 0 && c->at < c->size ? c->data[c->at++] % count : 0;
}

bool flip(Maker *m)
{
    return choose(m->c, 2);
}

bool rarely(Maker *m, int times)
{
    return choose(m->c, times) == times - 1;
}

static const char *fresh(Maker *m, const char *stem)
{
    return arena_printf(m->g->arena, "%s%d", stem, m->names++);
}

/* ---- types ------------------------------------------------------------ */

static const int64_t extents[] = {3, 1, 2, 4, 5, 7, 8, 9, 15, 16, 17, 31, 0};
enum { EXTENTS = sizeof extents / sizeof *extents };

int64_t extent(Maker *m)
{
    return extents[choose(m->c, EXTENTS - 1)];
}

int64_t dim(const Tensor *t, int axis)
{
    return t->type.dims[axis].value;
}

bool is_open(const Tensor *t, int axis)
{
    return !extent_is_const(t->type.dims[axis]);
}

bool is_static(const Tensor *t)
{
    return type_is_static(&t->type);
}

bool is_type(const Tensor *t, unsigned types)
{
    return types >> t->type.dtype & 1;
}

/* ---- constants -------------------------------------------------------- */

Tensor *weights(Maker *m, DType dtype, int rank, const int64_t *dims,
                double mean, double size)
{
    Array *array = array_new(m->g->arena, dtype, rank, dims);
    uint64_t key = (uint64_t)m->names + 100;
    for (int64_t i = 0; i < array_count(array); i++) {
        uint64_t bits = random_bits(key, (uint64_t)i);
        int64_t small = (int64_t)(bits % 9) - 4;
        if (dtype == DT_BOOL)
            array_set_int(array, i, (int64_t)(bits & 1));
        else if (dtype_is_float(dtype))
            array_set(array, i,
                      mean + (m->dyadic
                                  ? (double)small * (size < 1 ? 0.25 : 0.5)
                                  : size * random_normal(key, (uint64_t)i)));
        else
            array_set_int(array, i,
                          (int64_t)mean + (dtype_is_signed(dtype)
                                               ? small
                                               : (int64_t)(bits % 5)));
    }
    return graph_add_constant(m->g, fresh(m, "w"), array);
}

Tensor *vector(Maker *m, DType dtype, int64_t count, double mean, double size)
{
    return weights(m, dtype, 1, &count, mean, size);
}

Tensor *scalar(Maker *m, DType dtype, double value)
{
    return graph_add_constant(m->g, fresh(m, "c"),
                              array_scalar(m->g->arena, dtype, value));
}

Tensor *ints(Maker *m, const int64_t *values, int count)
{
    return graph_add_constant(m->g, fresh(m, "i"),
                              array_ints(m->g->arena, values, count));
}

Tensor *one_int(Maker *m, int64_t value)
{
    return ints(m, &value, 1);
}

Tensor *indices(Maker *m, int rank, const int64_t *dims, int64_t limit)
{
    bool ends = flip(m);
    DType dtype = rarely(m, 3) ? DT_I32 : DT_I64;
    if (limit < 1)
        return NULL;
    if (!rarely(m, 3)) {
        Array *array = array_new(m->g->arena, dtype, rank, dims);
        for (int64_t i = 0; i < array_count(array); i++) {
            uint64_t bits = random_bits((uint64_t)m->names, (uint64_t)i);
            int64_t v = (int64_t)(bits % (uint64_t)limit);
            array_set_int(array, i, ends && bits >> 60 < 4 ? v - limit : v);
        }
        return graph_add_constant(m->g, fresh(m, "i"), array);
    }
    /* Of the run, cut to what is there. */
    Tensor *from = NULL;
    for (int i = 0; i < m->pool.count && !from; i++) {
        const Tensor *t = m->pool.data[i];
        bool fits = t->type.dtype == dtype && t->type.rank == rank;
        for (int d = 0; fits && d < rank; d++)
            fits = !is_open(t, d) && dim(t, d) == dims[d];
        from = fits ? m->pool.data[i] : NULL;
    }
    if (!from) {
        TensorType type = {.dtype = dtype, .rank = rank};
        for (int d = 0; d < rank; d++)
            type.dims[d] = extent_const(dims[d]);
        if (m->is_body || m->g->inputs.count >= MOST_INPUTS)
            return NULL;
        from = graph_add_input(m->g, fresh(m, "x"), type);
        vec_push(m->g->arena, &m->pool, from);
    }
    return apply(m, "Mod", (Attrs){0}, from, scalar(m, dtype, (double)limit),
                 NULL);
}

/* ---- operands --------------------------------------------------------- */

/* The extent of that name that the inputs have; a constant where none has. */
static Extent named(const Graph *g, const char *name)
{
    for (int i = 0; i < g->inputs.count; i++) {
        const TensorType *type = &g->inputs.data[i]->type;
        for (int d = 0; d < type->rank; d++)
            if (type->dims[d].expr && type->dims[d].expr->kind == DIM_NAME &&
                !strcmp(type->dims[d].expr->name, name))
                return type->dims[d];
    }
    return extent_const(0);
}

/* A name has the same bounds everywhere. */
static bool names_agree(const Graph *g, const TensorType *type)
{
    for (int d = 0; d < type->rank; d++) {
        const DimExpr *expr = type->dims[d].expr;
        if (!expr)
            continue;
        if (expr->kind != DIM_NAME)
            return false;
        Extent known = named(g, expr->name);
        if (known.expr && (known.value != type->dims[d].value ||
                           extent_lower(known) != expr->value))
            return false;
    }
    return true;
}

Tensor *new_input(Maker *m, DType dtype, int rank)
{
    static const char *const names[] = {"T", "S"};
    TensorType type = {.dtype = dtype, .rank = rank};
    int64_t dims[MAX_RANK];
    int opened = m->open && !m->is_body && rank && !rarely(m, 3)
                     ? choose(m->c, rank < 3 ? rank : 3)
                     : -1;
    for (int i = 0; i < rank; i++) {
        dims[i] = rank == 4 && !i ? 1 + choose(m->c, 2) : extent(m);
        type.dims[i] = extent_const(dims[i]);
    }
    if (opened >= 0) {
        const char *name = names[choose(m->c, 2)];
        type.dims[opened] = named(m->g, name);
        if (!type.dims[opened].expr)
            type.dims[opened] = extent_ranged(m->g->arena, name, 1, 9);
    } else if (rank && rarely(m, 24))
        type.dims[choose(m->c, rank)] = extent_const(0);
    Tensor *t = m->is_body || m->g->inputs.count >= MOST_INPUTS
                    ? weights(m, dtype, rank, dims, 0, 1)
                    : graph_add_input(m->g, fresh(m, "x"), type);
    vec_push(m->g->arena, &m->pool, t);
    return t;
}

/* Mostly f32, where it is allowed. */
static DType first_type(Maker *m, unsigned types)
{
    static const DType order[] = {DT_F32, DT_I64, DT_U8,  DT_BOOL,
                                  DT_I32, DT_I8,  DT_F16, DT_F64,
                                  DT_I16, DT_U32, DT_U16, DT_U64};
    enum { COUNT = sizeof order / sizeof *order };
    int start = types >> DT_F32 & 1 ? 0 : choose(m->c, COUNT);
    for (int i = 0; i < COUNT; i++)
        if (types >> order[(start + i) % COUNT] & 1)
            return order[(start + i) % COUNT];
    return DT_F32;
}

/* Of what came last, so that graphs become deep as well as wide. */
static Tensor *find(Maker *m, unsigned types, int lowest, int highest)
{
    Tensor *near[NEAR];
    int count = 0;
    for (int i = m->pool.count - 1; i >= 0 && count < NEAR; i--) {
        Tensor *t = m->pool.data[i];
        if (is_type(t, types) && t->type.rank >= lowest &&
            t->type.rank <= highest)
            near[count++] = t;
    }
    return count ? near[choose(m->c, count)] : NULL;
}

Tensor *pick(Maker *m, unsigned types, int lowest, int highest)
{
    Tensor *t = find(m, types, lowest, highest);
    int span = highest - lowest < 3 ? highest - lowest : 3;
    return t ? t
             : new_input(m, first_type(m, types),
                         lowest + choose(m->c, span + 1));
}

Tensor *pick_float(Maker *m, int lowest, int highest)
{
    Tensor *t = find(m, FLOATS, lowest, highest);
    if (t)
        return t;
    t = find(m, ANY, lowest, highest);
    return t ? cast(m, t, DT_F32) : pick(m, FLOATS, lowest, highest);
}

Tensor *pick_like(Maker *m, Tensor *x)
{
    int start = choose(m->c, m->pool.count);
    for (int i = 0; i < m->pool.count; i++) {
        Tensor *t = m->pool.data[(start + i) % m->pool.count];
        if (t != x && type_equal(&t->type, &x->type))
            return t;
    }
    return x;
}

/* ---- nodes ------------------------------------------------------------ */

Node *apply_list(Maker *m, const char *op, Attrs attrs, Tensor *const *inputs,
                 int count, int outputs)
{
    while (count && !inputs[count - 1])
        count--;
    Node *node =
        graph_add_node(m->g, op, fresh(m, "n"), inputs, count, outputs);
    if (!node)
        return NULL;
    node->attrs = attrs;
    return op_infer(m->g, node) ? node : NULL;
}

Tensor *apply(Maker *m, const char *op, Attrs attrs, Tensor *a, Tensor *b,
              Tensor *c)
{
    Tensor *inputs[] = {a, b, c};
    if (!a)
        return NULL;
    Node *node = apply_list(m, op, attrs, inputs, 3, 1);
    return node ? node->outputs.data[0] : NULL;
}

Tensor *apply1(Maker *m, const char *op, Tensor *x)
{
    return apply(m, op, (Attrs){0}, x, NULL, NULL);
}

/* ONNX's numbers; see dtype_of_onnx. */
static int64_t onnx_number(DType dtype)
{
    for (int i = 1; i < 24; i++)
        if (dtype_of_onnx(i) == dtype)
            return i;
    return 0;
}

Tensor *cast(Maker *m, Tensor *x, DType to)
{
    if (!x || x->type.dtype == to)
        return x;
    return apply(m, "Cast", attr_int(m, "to", onnx_number(to)), x, NULL, NULL);
}

Tensor *transpose(Maker *m, Tensor *x, const int64_t *perm)
{
    Attrs attrs = {0};
    set_ints(m, &attrs, "perm", perm, x->type.rank);
    return apply(m, "Transpose", attrs, x, NULL, NULL);
}

Tensor *squash(Maker *m, Tensor *x)
{
    return apply1(m, "Tanh", x);
}

Tensor *positive(Maker *m, Tensor *x)
{
    return x ? apply(m, "Add", (Attrs){0}, apply1(m, "Abs", x),
                     scalar(m, x->type.dtype, 0.5), NULL)
             : NULL;
}

/* ---- attributes ------------------------------------------------------- */

Attrs attr_int(Maker *m, const char *name, int64_t value)
{
    Attrs attrs = {0};
    attrs_set_int(m->g->arena, &attrs, name, value);
    return attrs;
}

void set_int(Maker *m, Attrs *attrs, const char *name, int64_t value)
{
    attrs_set_int(m->g->arena, attrs, name, value);
}

void set_float(Maker *m, Attrs *attrs, const char *name, double value)
{
    attrs_set_float(m->g->arena, attrs, name, value);
}

void set_ints(Maker *m, Attrs *attrs, const char *name, const int64_t *v,
              int count)
{
    attrs_set_ints(m->g->arena, attrs, name, v, count);
}

void set_text(Maker *m, Attrs *attrs, const char *name, const char *text)
{
    attrs_set_string(m->g->arena, attrs, name, text);
}

void choose_text(Maker *m, Attrs *attrs, const char *name,
                 const char *const *texts)
{
    int count = 0;
    while (texts[count])
        count++;
    int k = choose(m->c, count + 1);
    if (texts[k])
        set_text(m, attrs, name, texts[k]);
}

/* ---- graphs ----------------------------------------------------------- */

/* An input of the other graph: a result of that type, or an input. */
static Tensor *stand_in(Maker *m, const Tensor *like)
{
    int start = m->pool.count ? choose(m->c, m->pool.count) : 0;
    for (int i = 0; i < m->pool.count; i++) {
        Tensor *t = m->pool.data[(start + i) % m->pool.count];
        if (type_equal(&t->type, &like->type))
            return t;
    }
    if (m->is_body || !names_agree(m->g, &like->type))
        return NULL;
    Tensor *t = graph_add_input(m->g, fresh(m, "x"), like->type);
    vec_push(m->g->arena, &m->pool, t);
    return t;
}

static bool graft_node(Maker *m, const Node *from, const char *as,
                       Tensor **copies)
{
    Arena *arena = m->g->arena;
    Tensor **in = ARENA_ARRAY(arena, Tensor *, from->inputs.count + 1);
    for (int k = 0; k < from->inputs.count; k++) {
        const Tensor *t = from->inputs.data[k];
        if (t && t->value && !copies[t->id])
            copies[t->id] = graph_add_constant(m->g, fresh(m, "w"), t->value);
        in[k] = t ? copies[t->id] : NULL;
    }
    const char *domain = op_domain(from->op), *name = op_name(from->op);
    Node *to = graph_add_node(
        m->g, *domain ? arena_printf(arena, "%s::%s", domain, name) : name, as,
        in, from->inputs.count, from->outputs.count);
    if (!to)
        return false;
    for (int k = 0; k < from->attrs.list.count; k++)
        attrs_set(arena, &to->attrs, from->attrs.list.data[k]);
    for (int k = 0; k < from->bodies.count; k++)
        vec_push(arena, &to->bodies, graph_copy(arena, from->bodies.data[k]));
    for (int k = 0; k < from->outputs.count; k++)
        if (from->outputs.data[k])
            copies[from->outputs.data[k]->id] = to->outputs.data[k];
        else
            graph_drop_output(m->g, to, k);
    return op_infer(m->g, to);
}

bool maker_graft(Maker *m, const Graph *from)
{
    Tensor **copies = ARENA_ARRAY(m->g->arena, Tensor *, from->next_id + 1);
    for (int i = 0; i < from->inputs.count; i++) {
        const Tensor *t = from->inputs.data[i];
        if (t->type.dtype == DT_STRING || !type_is_bounded(&t->type))
            return false;
        copies[t->id] = stand_in(m, t);
        if (!copies[t->id])
            return false;
    }
    for (int i = 0; i < from->nodes.count; i++)
        if (!graft_node(m, from->nodes.data[i], fresh(m, "n"), copies))
            return false;
    return true;
}

bool random_graph_copy(Graph *to, const Graph *from)
{
    Maker m = {.g = to};
    Tensor **copies = ARENA_ARRAY(to->arena, Tensor *, from->next_id + 1);
    for (int i = 0; i < from->inputs.count; i++) {
        const Tensor *t = from->inputs.data[i];
        copies[t->id] = graph_add_input(to, t->name, t->type);
    }
    /* Under their own names, after which extents are named. */
    for (int i = 0; i < from->nodes.count; i++) {
        const Node *node = from->nodes.data[i];
        if (!graft_node(&m, node, node->name, copies))
            return false;
    }
    for (int i = 0; i < from->outputs.count; i++)
        graph_mark_output(to, copies[from->outputs.data[i]->id]);
    return true;
}
