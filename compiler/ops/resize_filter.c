/* Resize: cubic and antialiased filters, an axis at a time, by tables of
 * weights. */
#include <math.h>
#include <string.h>

#include "ops/resize.h"

/* Elements from `first` on, counted from the one before the position, of a
 * kernel that is widened by 1 / scale where that makes fewer elements. */
typedef struct Filter {
    bool is_cubic;
    double scale;
    int64_t first, taps;
} Filter;

static Filter filter_of(const Node *node, const ResizeAxis *r)
{
    Filter f = {.scale = 1};
    f.is_cubic = attrs_string(&node->attrs, "mode", "")[0] == 'c';
    if (attrs_int(&node->attrs, "antialias", 0) != 0 && r->scale < 1)
        f.scale = r->scale;
    f.first = (int64_t)floor(-(f.is_cubic ? 2 : 1) / f.scale) + 1;
    f.taps = 2 - 2 * f.first;
    return f;
}

/* Keys' kernel, or a triangle, at distance d. */
static const Expr *kernel_weight(Arena *a, const Node *node, const Filter *f,
                                 const Expr *d)
{
    const Expr *one = const_like(a, d, 1), *zero = const_like(a, d, 0);
    if (!f->is_cubic)
        return expr_max(a, zero, expr_sub(a, one, d));
    double k =
        (double)(float)attrs_float(&node->attrs, "cubic_coeff_a", -0.75);
    /* ((k + 2) d - (k + 3)) d d + 1 below 1 */
    const Expr *near = expr_sub(a, expr_mul(a, const_like(a, d, k + 2), d),
                                const_like(a, d, k + 3));
    near = expr_add(a, expr_mul(a, expr_mul(a, near, d), d), one);
    /* ((k d - 5 k) d + 8 k) d - 4 k below 2 */
    const Expr *far = expr_sub(a, expr_mul(a, const_like(a, d, k), d),
                               const_like(a, d, 5 * k));
    far = expr_add(a, expr_mul(a, far, d), const_like(a, d, 8 * k));
    far = expr_sub(a, expr_mul(a, far, d), const_like(a, d, 4 * k));
    far = expr_select(a, expr_binary(a, EX_LT, d, const_like(a, d, 2)), far,
                      zero);
    return expr_select(a, expr_binary(a, EX_LE, d, one), near, far);
}

typedef struct FilterTables {
    Buffer *start;  /* [out]: place of the first element */
    Buffer *weight; /* [out, taps] */
} FilterTables;

static FilterTables add_tables(DefineContext *c, const ResizeAxis *r,
                               const Filter *f, DType type)
{
    bool exclude = attrs_int(&c->node->attrs, "exclude_outside", 0) != 0;
    int64_t dims[2] = {r->out, f->taps};
    Buffer *raw = define_temp(c, "raw", DT_F64, 2, dims);
    Buffer *sum = define_temp(c, "weights", DT_F64, 1, dims);
    FilterTables t = {define_temp(c, "start", DT_I64, 1, dims),
                      define_temp(c, "weight", type, 2, dims)};
    StageBuilder b;
    stage_begin(&b, c->def, t.start);
    Arena *a = b.arena;
    const Expr *low =
        expr_unary(a, EX_FLOOR, resize_position(a, c->node, r, b.index[0]));
    stage_end(&b, expr_add_int(a, expr_cast(a, DT_I64, low), f->first));

    stage_begin(&b, c->def, raw);
    const Expr *place =
        expr_add(a, expr_read(a, t.start, b.index), b.index[1]);
    const Expr *distance =
        expr_sub(a, expr_cast(a, DT_F64, place),
                 resize_position(a, c->node, r, b.index[0]));
    distance = expr_mul(a, expr_unary(a, EX_ABS, distance),
                        expr_const(a, DT_F64, f->scale));
    const Expr *weight = kernel_weight(a, c->node, f, distance);
    if (exclude)
        weight = expr_select(a, index_within(a, place, 0, r->in), weight,
                             const_like(a, weight, 0));
    stage_end(&b, weight);

    stage_begin(&b, c->def, sum);
    const Expr *at[2] = {b.index[0], stage_reduce(&b, f->taps, "k")};
    stage_end_reduce(&b, "sum", expr_read(a, raw, at));

    stage_begin(&b, c->def, t.weight);
    weight = expr_div(a, read_same(&b, raw), expr_read(a, sum, b.index));
    stage_end(&b, expr_cast(a, type, weight));
    return t;
}

/* Beyond the edge is the edge. */
static Buffer *filter_axis(DefineContext *c, Buffer *x, int axis,
                           const ResizeAxis *r, DType type)
{
    Filter f = filter_of(c->node, r);
    FilterTables t = add_tables(c, r, &f, type);
    int64_t dims[MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = r->out;
    Buffer *y = define_temp(c, "axis", type, x->rank, dims);
    StageBuilder b;
    stage_begin(&b, c->def, y);
    Arena *a = b.arena;
    const Expr *o = b.index[axis], *k = stage_reduce(&b, f.taps, "k");
    const Expr *place = expr_add(a, expr_read(a, t.start, &o), k);
    const Expr *at[2] = {o, k};
    const Expr *value = read_along(&b, x, axis, index_clamp(a, place, r->in));
    stage_end_reduce(
        &b, "sum",
        expr_mul(a, expr_cast(a, type, value), expr_read(a, t.weight, at)));
    return y;
}

void resize_define_filtered(DefineContext *c, const ResizeAxis *axes,
                            DType type)
{
    Buffer *x = c->in[0];
    StageBuilder b;
    for (int i = 0; i < c->in[0]->rank; i++)
        if (axes[i].changes)
            x = filter_axis(c, x, i, &axes[i], type);
    stage_begin(&b, c->def, c->out[0]);
    const Expr *value = expr_cast(b.arena, c->out[0]->dtype, read_same(&b, x));
    if (resize_coord_mode(c->node) == COORD_CROP)
        value = resize_outside_crop(&b, c->node, axes, x->rank, value);
    stage_end(&b, value);
}
