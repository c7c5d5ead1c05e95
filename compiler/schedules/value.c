/* Lowering of expressions: logical indices become offsets in storage, reads
 * of stages that are computed nearby become reads of their small buffers, and
 * reads outside an extent a choice, or nothing where a zeroed border is. */
#include "schedules/region.h"

static TempInstance *find_temp(Lower *lw, const Buffer *buffer)
{
    for (int i = lw->temps.count - 1; i >= 0; i--)
        if (lw->temps.data[i].of == buffer)
            return &lw->temps.data[i];
    return NULL;
}

/* Storage offset of a logical index. */
static const Expr *storage_offset(Lower *lw, const Buffer *b,
                                  const Expr *const *index)
{
    Arena *a = lw->arena;
    const Layout *l = &b->layout;
    const Expr *offset = expr_int(a, 0);
    for (int i = l->count - 1; i >= 0; i--) {
        int axis = l->dim[i].axis;
        int64_t inner = 1, stride = layout_stride(l, i, b->dims);
        for (int k = i + 1; k < l->count; k++)
            if (l->dim[k].axis == axis && l->dim[k].factor)
                inner *= l->dim[k].factor;
        const Expr *x = expr_add_int(a, index[axis], l->lo[axis]);
        if (inner > 1)
            x = expr_div(a, x, expr_int(a, inner));
        if (l->dim[i].factor)
            x = expr_binary(a, EX_MOD, x, expr_int(a, l->dim[i].factor));
        else
            offset = expr_add_int(a, offset, l->before[axis]);
        offset = expr_add(a, offset, expr_mul_int(a, x, stride));
    }
    return simplify_index(&lw->ranges, offset);
}

/* True when the zeroed border of the layout holds what a read outside
 * would give. */
static bool is_in_border(const Buffer *b, int axis, Interval range,
                         const Expr *outside)
{
    bool zero =
        (outside->kind == EX_FLOAT || outside->kind == EX_INT) &&
        (outside->kind == EX_INT ? outside->i == 0 : outside->f == 0.0);
    return zero && range.known && range.min >= -b->layout.lo[axis] &&
           range.max < b->dims[axis] + b->layout.hi[axis];
}

/* What is known of a padded read from the definition: how far behind the end
 * of each dimension it gets, with elements that mean something. */
typedef struct Reach {
    bool known[MAX_RANK];
    int64_t excess[MAX_RANK];
} Reach;

static Reach reach_of(Lower *lw, const Instance *in, const Expr *read)
{
    Reach r = {0};
    for (int i = 0; in && i < read->count; i++)
        r.known[i] =
            read->buffer->limit[i] &&
            stage_read_excess(lw->arena, in->st->stage, read, i, &r.excess[i]);
    return r;
}

/* Of a dimension with a limit: no element that means something lies behind
 * what is stored, be it in the border, which starts at the limit; and all are
 * within the storage. */
static bool is_never_behind(const Buffer *b, int axis, Interval range,
                            const Reach *reach, int64_t border)
{
    return reach->known[axis] && reach->excess[axis] <= border &&
           range.known && range.max < b->dims[axis] + b->layout.hi[axis];
}

static const Expr *lower_read(Lower *lw, const Buffer *b,
                              const Expr *const *index, const Expr *outside,
                              const Reach *reach)
{
    Arena *a = lw->arena;
    const Expr *at[MAX_RANK];
    const Expr *inside = expr_const_int(a, DT_BOOL, 1);
    for (int i = 0; i < b->rank; i++)
        at[i] = simplify_index(&lw->ranges, index[i]);
    TempInstance *t = find_temp(lw, b);
    for (int i = 0; outside && i < b->rank; i++) {
        Interval range = interval_of(&lw->ranges, at[i]);
        bool is_border = !t && is_in_border(b, i, range, outside);
        if (is_border && (!b->limit[i] || is_never_behind(b, i, range, reach,
                                                          b->layout.hi[i])))
            continue;
        const Expr *low = expr_binary(a, EX_LE, expr_int(a, 0), at[i]);
        const Expr *extent = b->limit[i] ? lower_limit(lw, b->limit[i])
                                         : expr_int(a, b->dims[i]);
        const Expr *high = expr_binary(a, EX_LT, at[i], extent);
        inside =
            expr_binary(a, EX_AND, inside, simplify_cond(&lw->ranges, low));
        if (!b->limit[i] || !is_never_behind(b, i, range, reach, 0))
            inside = expr_binary(a, EX_AND, inside,
                                 simplify_cond(&lw->ranges, high));
    }
    if (inside->kind == EX_INT && !inside->i)
        return outside;
    const Buffer *storage = b;
    if (t) {
        storage = t->buffer;
        for (int i = 0; i < b->rank; i++)
            at[i] =
                simplify_index(&lw->ranges, expr_sub(a, at[i], t->base[i]));
    }
    const Expr *load = expr_load(a, storage, storage_offset(lw, storage, at));
    return outside ? expr_select(a, inside, load, outside) : load;
}

typedef struct ValueMap {
    Instance *in;
    /* operands of the reducer, when lowering its combination */
    const Reducer *reducer;
    const Expr *const *lhs, *const *rhs;
} ValueMap;

static const Expr *lower_var(Lower *lw, const ValueMap *map, const Var *var)
{
    if (map->reducer)
        for (int i = 0; i < map->reducer->count; i++) {
            if (map->reducer->lhs[i] == var)
                return map->lhs[i];
            if (map->reducer->rhs[i] == var)
                return map->rhs[i];
        }
    const StageState *st = map->in->st;
    for (int i = 0; i < st->roots.count; i++)
        if (st->roots.data[i]->root == var)
            return axis_value(lw, map->in, st->roots.data[i]);
    die("stage %s uses the variable %s of another stage", st->stage->name,
        var->name);
}

static const Expr *lower_expr(Lower *lw, const ValueMap *map, PtrMap *memo,
                              const Expr *x)
{
    const Expr *known = ptrmap_get(memo, x);
    if (known)
        return known;
    const Expr *result = x;
    const Expr *arg[MAX_RANK];
    Reach reach;
    switch (x->kind) {
    case EX_INT:
    case EX_FLOAT:
        break;
    case EX_VAR:
        result = lower_var(lw, map, x->var);
        break;
    case EX_SELECT:
        arg[0] = lower_expr(lw, map, memo, x->arg[0]);
        arg[0] = simplify_cond(&lw->ranges, arg[0]);
        if (arg[0]->kind == EX_INT) {
            result = lower_expr(lw, map, memo, x->arg[arg[0]->i ? 1 : 2]);
            break;
        }
        arg[1] = lower_expr(lw, map, memo, x->arg[1]);
        arg[2] = lower_expr(lw, map, memo, x->arg[2]);
        result = expr_select(lw->arena, arg[0], arg[1], arg[2]);
        break;
    case EX_READ:
        for (int i = 0; i < x->count; i++)
            arg[i] = lower_expr(lw, map, memo, x->arg[i]);
        reach = x->outside ? reach_of(lw, map->in, x) : (Reach){0};
        result = lower_read(
            lw, x->buffer, arg,
            x->outside ? lower_expr(lw, map, memo, x->outside) : NULL, &reach);
        break;
    default:
        for (int i = 0; i < x->count; i++)
            arg[i] = lower_expr(lw, map, memo, x->arg[i]);
        result = expr_rebuild(lw->arena, x, arg, NULL);
        if (result->dtype == DT_BOOL)
            result = simplify_cond(&lw->ranges, result);
        else if (result->dtype == DT_I64 && result->kind >= EX_ADD &&
                 result->kind <= EX_MOD)
            result = simplify_index(&lw->ranges, result);
    }
    ptrmap_set(memo, x, result);
    return result;
}

const Expr *lower_value(Lower *lw, Instance *in, const Expr *x)
{
    PtrMap memo = {0};
    ValueMap map = {.in = in};
    const Expr *result = lower_expr(lw, &map, &memo, x);
    ptrmap_free(&memo);
    return result;
}

const Expr *lower_limit(Lower *lw, const Expr *limit)
{
    PtrMap memo = {0};
    ValueMap map = {0};
    const Expr *result = lower_expr(lw, &map, &memo, limit);
    ptrmap_free(&memo);
    return result;
}

const Expr *lower_own(Lower *lw, Instance *in, int k)
{
    const Stage *stage = in->st->stage;
    const Expr *index[MAX_RANK];
    for (int i = 0; i < stage->axis_count; i++)
        index[i] = axis_value(lw, in, in->st->roots.data[i]);
    return lower_read(lw, stage->out[k], index, NULL, NULL);
}

const Expr *lower_combined(Lower *lw, Instance *in, const Expr *const *lhs,
                           const Expr *const *rhs, int k)
{
    const Reducer *r = in->st->stage->reducer;
    ValueMap map = {in, r, lhs, rhs};
    PtrMap memo = {0};
    const Expr *value = lower_expr(lw, &map, &memo, r->combine[k]);
    ptrmap_free(&memo);
    return value;
}
