/* NonZero and Unique: how many results there are depends on the data. Of
 * constants it is known; otherwise the kernel counts them. */
#include <string.h>

#include "ops/loop_program.h"
#include "ops/rules.h"

/* ---- NonZero */

static bool is_zero(const Array *x, int64_t i)
{
    return dtype_is_float(x->dtype) ? array_get(x, i) == 0
                                    : array_get_int(x, i) == 0;
}

static bool infer_non_zero(InferContext *c)
{
    if (!infer_types(c, 0, TYPES_ANY) || !infer_rank(c, 0, 1, MAX_RANK))
        return false;
    const TensorType *type = infer_input(c, 0);
    const Array *x = c->node->inputs.data[0]->value;
    Extent count = infer_counted(c, type_most(type));
    int64_t found = 0;
    for (int64_t i = 0; x && i < array_count(x); i++)
        found += !is_zero(x, i);
    if (x)
        count = extent_const(found);
    infer_set(c, 0, DT_I64, 2, (Extent[]){extent_const(type->rank), count});
    return true;
}

static void program_non_zero(LoopContext *c)
{
    Arena *a = c->arena;
    const Buffer *x = c->in[0], *y = c->out[0];
    const TensorType *type = &c->node->inputs.data[0]->type;
    const Buffer *at = loop_variable(c, "at", DT_I64);
    const Expr *index[MAX_RANK], *i = expr_int(a, 0);

    loop_set(c, at, expr_int(a, 0));
    for (int d = 0; d < x->rank; d++) {
        index[d] = loop_for_extent(c, LOOP_SERIAL, "i", type->dims[d]);
        i = expr_add(a, expr_mul_int(a, i, x->dims[d]), index[d]);
    }
    const Expr *value = loop_load(c, x, i);
    loop_if(c, expr_binary(a, EX_NE, value, expr_const(a, x->dtype, 0)));
    for (int d = 0; d < x->rank; d++)
        loop_store(c, y, expr_add_int(a, loop_get(c, at), d * y->dims[1]),
                   index[d]);
    loop_set(c, at, expr_add_int(a, loop_get(c, at), 1));
    loop_end(c);
    for (int d = 0; d < x->rank; d++)
        loop_end(c);
    loop_set_extent(c, c->node->outputs.data[0]->type.dims[1],
                    loop_get(c, at));
}

/* ---- Unique */

enum { MAX_SLICES = 1 << 14 };

/* The slices that are compared: `count` of them, of `size` elements. */
typedef struct Slices {
    int64_t count, size, inner;
} Slices;

static bool find_slices(InferContext *c, const TensorType *x, Slices *s,
                        int *axis)
{
    const Attr *attr = attrs_find(&c->node->attrs, "axis");
    int64_t all = type_count(x);

    *axis = -1;
    *s = (Slices){all, 1, 1};
    if (!attr)
        return true;
    if (!infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_axis(c, "axis", attr->i, x->rank, axis))
        return false;
    s->count = x->dims[*axis].value;
    s->size = s->count ? all / s->count : 0;
    for (int i = *axis + 1; i < x->rank; i++)
        s->inner *= x->dims[i].value;
    return true;
}

static int64_t slice_offset(const Slices *s, int64_t slice, int64_t element)
{
    return (element / s->inner * s->count + slice) * s->inner +
           element % s->inner;
}

static bool slices_equal(const Array *x, const Slices *s, int64_t p, int64_t q)
{
    size_t size = dtype_size(x->dtype);

    for (int64_t e = 0; e < s->size; e++) {
        int64_t i = slice_offset(s, p, e), k = slice_offset(s, q, e);
        bool same =
            dtype_is_float(x->dtype)
                ? array_get(x, i) == array_get(x, k)
                : !memcmp((const char *)x->data + (size_t)i * size,
                          (const char *)x->data + (size_t)k * size, size);
        if (!same)
            return false;
    }
    return true;
}

static bool infer_unique(InferContext *c)
{
    const TensorType *t = infer_input(c, 0);
    Extent dims[MAX_RANK];
    Slices s;
    int axis;

    if (!infer_types(c, 0, TYPES_ANY))
        return false;
    const Array *x = c->node->inputs.data[0]->value;
    if ((!type_is_static(t) && !infer_constant(c, 0, "X")) ||
        !find_slices(c, t, &s, &axis))
        return false;
    /* Each is compared with each. */
    if (s.count > MAX_SLICES)
        return infer_error(c,
                           "it has %lld elements or slices; at most %d "
                           "are supported",
                           (long long)s.count, MAX_SLICES);
    int64_t found = 0;
    for (int64_t i = 0; x && i < s.count; i++) {
        int64_t k = 0;
        while (k < i && !slices_equal(x, &s, i, k))
            k++;
        found += k == i;
    }
    Extent count = x ? extent_const(found) : infer_counted(c, s.count);
    Extent slices = extent_const(s.count);
    for (int i = 0; i < t->rank; i++)
        dims[i] = i == axis ? count : t->dims[i];
    infer_set(c, 0, t->dtype, axis < 0 ? 1 : t->rank,
              axis < 0 ? &count : dims);
    infer_set(c, 1, DT_I64, 1, &count);
    infer_set(c, 2, DT_I64, 1, &slices);
    infer_set(c, 3, DT_I64, 1, &count);
    return true;
}

static const Expr *slice_element(LoopContext *c, const Slices *s,
                                 const Expr *slice, const Expr *e)
{
    Arena *a = c->arena;
    const Expr *inner = expr_int(a, s->inner);
    const Expr *row =
        expr_add(a, expr_mul_int(a, expr_div(a, e, inner), s->count), slice);

    return expr_add(a, expr_mul_int(a, row, s->inner),
                    expr_binary(a, EX_MOD, e, inner));
}

/* Sets `order` to -1, 0 or 1 as slice p comes before, equals or comes after
 * slice q. */
static void compare_slices(LoopContext *c, const Slices *s, const Expr *p,
                           const Expr *q, const Buffer *order)
{
    Arena *a = c->arena;
    const Expr *zero = expr_int(a, 0);

    loop_set(c, order, zero);
    const Expr *e = loop_for(c, LOOP_SERIAL, "e", s->size);
    const Expr *x = loop_load(c, c->in[0], slice_element(c, s, p, e));
    const Expr *y = loop_load(c, c->in[0], slice_element(c, s, q, e));
    loop_if(c, expr_binary(a, EX_EQ, loop_get(c, order), zero));
    if (x->dtype == DT_BOOL) {
        x = expr_cast(a, DT_I32, x);
        y = expr_cast(a, DT_I32, y);
    }
    /* NaN is neither: it differs from all, and its place is its own. */
    const Expr *after =
        expr_select(a, expr_binary(a, EX_NE, x, y), expr_int(a, 1), zero);
    loop_set(
        c, order,
        expr_select(a, expr_binary(a, EX_LT, x, y), expr_int(a, -1), after));
    loop_end(c);
    loop_end(c);
}

static void put(LoopContext *c, int output, const Expr *at, const Expr *value)
{
    if (output < c->node->outputs.count && c->out[output])
        loop_store(c, c->out[output], at, value);
}

static void program_unique(LoopContext *c)
{
    InferContext ic = {NULL, (Node *)c->node};
    Arena *a = c->arena;
    bool sorted = attrs_int(&c->node->attrs, "sorted", 1) != 0;
    Slices s;
    int axis;

    find_slices(&ic, &c->node->inputs.data[0]->type, &s, &axis);
    if (s.count == 0)
        return;
    /* Of each slice the first that equals it; of those their place. */
    const Buffer *first = loop_workspace(c, "first", DT_I64, s.count);
    const Buffer *place = loop_workspace(c, "place", DT_I64, s.count);
    const Buffer *seen = loop_workspace(c, "seen", DT_I64, s.count);
    const Buffer *order = loop_variable(c, "order", DT_I64);
    const Buffer *number = loop_variable(c, "number", DT_I64);
    const Expr *zero = expr_int(a, 0);
    int64_t found = 0;
    loop_set(c, number, zero);
    const Expr *i = loop_for(c, LOOP_SERIAL, "i", s.count);
    loop_store(c, first, i, i);
    loop_store(c, seen, i, zero);
    const Expr *k = loop_for(c, LOOP_SERIAL, "k", s.count);
    loop_if(c, expr_binary(a, EX_AND, expr_binary(a, EX_LT, k, i),
                           expr_binary(a, EX_EQ, loop_load(c, first, i), i)));
    compare_slices(c, &s, k, i, order);
    loop_if(c, expr_binary(a, EX_EQ, loop_get(c, order), zero));
    loop_store(c, first, i, k);
    loop_end(c);
    loop_end(c);
    loop_end(c);
    loop_store(c, seen, loop_load(c, first, i),
               expr_add_int(a, loop_load(c, seen, loop_load(c, first, i)), 1));
    loop_end(c);
    for (int n = 0; n < 4; n++)
        if (n != 2 && n < c->node->outputs.count && c->out[n])
            found = c->out[n]->dims[n == 0 && axis > 0 ? axis : 0];

    i = loop_for(c, LOOP_SERIAL, "i", s.count);
    loop_if(c, expr_binary(a, EX_EQ, loop_load(c, first, i), i));
    loop_set(c, number, expr_add_int(a, loop_get(c, number), 1));
    loop_store(c, place, i, zero);
    k = loop_for(c, LOOP_SERIAL, "k", s.count);
    loop_if(c, expr_binary(a, EX_EQ, loop_load(c, first, k), k));
    if (sorted)
        compare_slices(c, &s, k, i, order);
    else
        loop_set(c, order, expr_sub(a, k, i));
    loop_if(c, expr_binary(a, EX_LT, loop_get(c, order), zero));
    loop_store(c, place, i, expr_add_int(a, loop_load(c, place, i), 1));
    loop_end(c);
    loop_end(c);
    loop_end(c);
    const Expr *at = loop_load(c, place, i);
    put(c, 1, at, i);
    put(c, 3, at, loop_load(c, seen, i));
    if (c->out[0]) {
        Slices to = {found, s.size, s.inner};
        const Expr *e = loop_for(c, LOOP_SERIAL, "e", s.size);
        put(c, 0, slice_element(c, &to, at, e),
            loop_load(c, c->in[0], slice_element(c, &s, i, e)));
        loop_end(c);
    }
    loop_end(c);
    loop_end(c);
    i = loop_for(c, LOOP_SERIAL, "i", s.count);
    put(c, 2, i, loop_load(c, place, loop_load(c, first, i)));
    loop_end(c);
    for (int n = 0; n < c->node->outputs.count; n++)
        if (n != 2 && c->out[n])
            loop_set_extent(c,
                            c->node->outputs.data[n]
                                ->type.dims[n == 0 && axis > 0 ? axis : 0],
                            loop_get(c, number));
}

static const AttrSpec unique_attrs[] = {
    {"axis", ATTR_INT, false}, {"sorted", ATTR_FLAG, false}, {0}};

static const Op op_non_zero = {.name = "NonZero",
                               .domain = "",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .min_outputs = 1,
                               .max_outputs = 1,
                               .traits = OP_RUNTIME_EXTENTS,
                               .infer = infer_non_zero,
                               .program = program_non_zero,
                               .since = 13};
static const Op op_unique = {.name = "Unique",
                             .domain = "",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .min_outputs = 1,
                             .max_outputs = 4,
                             .traits = OP_RUNTIME_EXTENTS,
                             .attrs = unique_attrs,
                             .infer = infer_unique,
                             .program = program_unique,
                             .since = 11};

const Op *const ops_unique[] = {&op_non_zero, &op_unique, NULL};
