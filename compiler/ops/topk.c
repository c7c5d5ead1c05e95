/* The k largest or smallest elements along an axis.
 *
 * Each slice keeps a heap of the k best so far, the worst of them on top, and
 * then sorts it in place: n log k comparisons at most, and few where k is
 * small, as most elements only lose against the top. Elements are told apart
 * by index as well as value, the lower index first, so that the order is
 * total and the result is one, whatever the algorithm; NaN counts as greater
 * than all numbers. `sorted` = 0 leaves the order open: it is sorted, too. */
#include "ops/loop_program.h"
#include "ops/rules.h"

static bool infer_topk(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    Extent dims[MAX_RANK];
    int axis;

    if (!infer_types(c, 0, TYPES_NUMBER) || !infer_rank(c, 0, 1, MAX_RANK) ||
        !infer_types(c, 1, TYPES_INDEX) ||
        !infer_axis(c, "axis", attrs_int(&c->node->attrs, "axis", -1), x->rank,
                    &axis))
        return false;
    Extent k;
    int count = infer_extents(c, 1, "K", 1, &k);
    if (count < 0)
        return false;
    if (count != 1)
        return infer_error(c, "K must have one element");
    int64_t known = extent_known(k), n = extent_known(x->dims[axis]);
    if (extent_is_const(k) && (known < 0 || (n >= 0 && known > n)))
        return infer_error(c, "K is %lld, axis %d has %lld elements",
                           (long long)known, axis, (long long)n);
    /* All, where a run has fewer. */
    k = extent_min(c->graph->arena, k, x->dims[axis]);
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? k : x->dims[i];
    infer_set(c, 0, x->dtype, x->rank, dims);
    infer_set(c, 1, DT_I64, x->rank, dims);
    return true;
}

/* One slice of the data, and the heap of indices into it. */
typedef struct Slice {
    LoopContext *c;
    Arena *a;
    const Buffer *x, *heap;
    const Expr *x_base, *heap_base;
    int64_t stride;
    Extent k, n;
    bool is_largest;
    const Buffer *place, *child, *item, *flag;
} Slice;

static const Expr *element(const Slice *s, const Expr *index)
{
    return loop_load(
        s->c, s->x,
        expr_add(s->a, s->x_base, expr_mul_int(s->a, index, s->stride)));
}

static const Expr *heap_at(const Slice *s, const Expr *place)
{
    return expr_add(s->a, s->heap_base, expr_mul_int(s->a, place, s->stride));
}

static const Expr *kept(const Slice *s, const Expr *place)
{
    return loop_load(s->c, s->heap, heap_at(s, place));
}

static const Expr *greater(Arena *a, const Expr *p, const Expr *q)
{
    const Expr *more = expr_binary(a, EX_LT, q, p);
    if (!dtype_is_float(p->dtype))
        return more;
    return expr_binary(a, EX_OR, more,
                       expr_binary(a, EX_AND, expr_binary(a, EX_NE, p, p),
                                   expr_binary(a, EX_EQ, q, q)));
}

/* Sets the flag to whether the element of index p comes after that of q. */
static void set_after(const Slice *s, const Expr *p, const Expr *q)
{
    Arena *a = s->a;
    const Expr *x = element(s, p), *y = element(s, q);
    const Expr *worse = s->is_largest ? greater(a, y, x) : greater(a, x, y);
    const Expr *better = s->is_largest ? greater(a, x, y) : greater(a, y, x);
    const Expr *later = expr_binary(a, EX_LT, q, p);

    loop_set(s->c, s->flag,
             expr_binary(a, EX_OR, worse,
                         expr_binary(a, EX_AND, expr_unary(a, EX_NOT, better),
                                     later)));
}

/* Brings what lies at `from` down to its place among the first `size`. */
static void sift_down(const Slice *s, const Expr *from, const Expr *size)
{
    LoopContext *c = s->c;
    Arena *a = s->a;
    int levels = 0;

    for (int64_t n = s->k.value; n > 1; n /= 2)
        levels++;
    loop_set(c, s->place, from);
    loop_set(c, s->item, kept(s, from));
    loop_for(c, LOOP_SERIAL, "level", levels);
    loop_set(c, s->child,
             expr_add_int(a, expr_mul_int(a, loop_get(c, s->place), 2), 1));
    loop_if(c, expr_binary(a, EX_LT, loop_get(c, s->child), size));
    const Expr *child = loop_get(c, s->child);
    const Expr *other = expr_add_int(a, child, 1);
    loop_if(c, expr_binary(a, EX_LT, other, size));
    set_after(s, kept(s, other), kept(s, child));
    loop_if(c, loop_get(c, s->flag));
    loop_set(c, s->child, other);
    loop_end(c);
    loop_end(c);
    set_after(s, kept(s, child), loop_get(c, s->item));
    loop_if(c, loop_get(c, s->flag));
    loop_store(c, s->heap, heap_at(s, loop_get(c, s->place)), kept(s, child));
    loop_set(c, s->place, child);
    loop_end(c);
    /* In its place: no level further down has a child. */
    loop_if(c, expr_unary(a, EX_NOT, loop_get(c, s->flag)));
    loop_store(c, s->heap, heap_at(s, loop_get(c, s->place)),
               loop_get(c, s->item));
    loop_set(c, s->place, size);
    loop_end(c);
    loop_end(c);
    loop_end(c);
    loop_if(c, expr_binary(a, EX_LT, loop_get(c, s->place), size));
    loop_store(c, s->heap, heap_at(s, loop_get(c, s->place)),
               loop_get(c, s->item));
    loop_end(c);
}

static void select_best(const Slice *s)
{
    LoopContext *c = s->c;
    Arena *a = s->a;
    Extent half = extent_div(a, s->k, extent_const(2));
    const Expr *zero = expr_int(a, 0), *k = loop_extent(c, s->k);
    const Expr *i = loop_for_extent(c, LOOP_SERIAL, "i", s->k);

    loop_store(c, s->heap, heap_at(s, i), i);
    loop_end(c);
    i = loop_for_extent(c, LOOP_SERIAL, "i", half);
    sift_down(s, expr_sub(a, expr_add_int(a, loop_extent(c, half), -1), i), k);
    loop_end(c);
    i = loop_for_extent(c, LOOP_SERIAL, "i", extent_sub(a, s->n, s->k));
    i = expr_add(a, i, k);
    set_after(s, kept(s, zero), i);
    loop_if(c, loop_get(c, s->flag));
    loop_store(c, s->heap, heap_at(s, zero), i);
    sift_down(s, zero, k);
    loop_end(c);
    loop_end(c);
    /* The worst goes to the end of a heap that gets shorter. */
    i = loop_for_extent(c, LOOP_SERIAL, "i",
                        extent_sub(a, s->k, extent_const(1)));
    const Expr *last = expr_sub(a, expr_add_int(a, k, -1), i);
    loop_set(c, s->item, kept(s, last));
    loop_store(c, s->heap, heap_at(s, last), kept(s, zero));
    loop_store(c, s->heap, heap_at(s, zero), loop_get(c, s->item));
    sift_down(s, zero, last);
    loop_end(c);
}

/* Element 0 of the slice at index[], in storage of these upper bounds. */
static const Expr *slice_base(Arena *a, const int64_t *dims, int rank,
                              int axis, const Expr *const *index)
{
    const Expr *at = expr_int(a, 0);

    for (int i = 0; i < rank; i++) {
        at = expr_mul_int(a, at, dims[i]);
        at = i == axis ? at : expr_add(a, at, index[i]);
    }
    return at;
}

static void program_topk(LoopContext *c)
{
    const TensorType *type = &c->node->inputs.data[0]->type;
    const Attrs *attrs = &c->node->attrs;
    int axis = normal_axis(attrs_int(attrs, "axis", -1), type->rank);
    Extent k =
        extent_min(c->arena, extent_operand(c->node, 1, 0), type->dims[axis]);
    int64_t dims[MAX_RANK], count = 1, stride = 1;
    const Expr *index[MAX_RANK];

    for (int i = 0; i < type->rank; i++) {
        dims[i] = i == axis ? k.value : type->dims[i].value;
        count *= dims[i];
        stride *= i > axis ? dims[i] : 1;
    }
    if (count == 0)
        return;
    const Buffer *heap = c->out[1];
    if (c->node->outputs.count < 2 || !heap)
        heap = loop_workspace(c, "heap", DT_I64, count);
    loop_nest(c, type->rank, type, axis, index);
    Slice s = {
        .c = c,
        .a = c->arena,
        .x = c->in[0],
        .heap = heap,
        .x_base =
            slice_base(c->arena, c->in[0]->dims, type->rank, axis, index),
        .heap_base = slice_base(c->arena, dims, type->rank, axis, index),
        .stride = stride,
        .k = k,
        .n = type->dims[axis],
        .is_largest = attrs_int(attrs, "largest", 1) != 0,
        .place = loop_variable(c, "place", DT_I64),
        .child = loop_variable(c, "child", DT_I64),
        .item = loop_variable(c, "item", DT_I64),
        .flag = loop_variable(c, "flag", DT_BOOL),
    };
    select_best(&s);
    if (c->out[0]) {
        const Expr *i = loop_for_extent(c, LOOP_SERIAL, "i", k);
        loop_store(c, c->out[0], heap_at(&s, i), element(&s, kept(&s, i)));
        loop_end(c);
    }
    loop_end_nest(c, type, axis);
}

static const AttrSpec topk_attrs[] = {{"axis", ATTR_INT, false},
                                      {"largest", ATTR_FLAG, false},
                                      {"sorted", ATTR_FLAG, false},
                                      {0}};

static const Op op_topk = {.name = "TopK",
                           .domain = "",
                           .min_inputs = 2,
                           .max_inputs = 2,
                           .min_outputs = 1,
                           .max_outputs = 2,
                           .traits = OP_RUNTIME_EXTENTS,
                           .attrs = topk_attrs,
                           .infer = infer_topk,
                           .program = program_topk,
                           .since = 11};

const Op *const ops_topk[] = {&op_topk, NULL};
