/* schedule_inline and schedule_factor: what one stage computes, written into
 * those that read it. */
#include <string.h>

#include "schedules/schedule.h"
#include "schedules/state.h"

typedef struct InlineMap {
    const Stage *stage;
    const Expr *const *index;
} InlineMap;

static const Expr *inline_var(ExprSubst *subst, const Expr *leaf)
{
    const InlineMap *map = subst->context;
    if (leaf->kind == EX_VAR)
        for (int i = 0; i < map->stage->axis_count; i++)
            if (map->stage->axis[i].var == leaf->var)
                return map->index[i];
    return NULL;
}

/* Read of the inlined buffer at some index: its value there. */
static const Expr *inline_read(ExprSubst *subst, const Expr *leaf)
{
    const Stage *stage = subst->context;
    if (leaf->kind != EX_READ || leaf->buffer != stage->out[0])
        return NULL;
    Arena *a = subst->arena;
    InlineMap map = {stage, leaf->arg};
    ExprSubst inner = {inline_var, a, &map};
    const Expr *value = expr_rewrite(&inner, stage->value[0]);
    if (!leaf->outside)
        return value;
    const Expr *inside = expr_const_int(a, DT_BOOL, 1);
    for (int i = 0; i < leaf->count; i++) {
        const Expr *low = expr_binary(a, EX_LE, expr_int(a, 0), leaf->arg[i]);
        const Expr *high = expr_binary(a, EX_LT, leaf->arg[i],
                                       buffer_extent(a, leaf->buffer, i));
        inside =
            expr_binary(a, EX_AND, inside, expr_binary(a, EX_AND, low, high));
    }
    return expr_select(a, inside, value, leaf->outside);
}

bool schedule_inline(Schedule *s, const char *stage)
{
    StageState *st;
    if (!schedule_find(s, stage, NULL, &st, NULL))
        return false;
    if (st->stage->reduce_count || st->stage->value_count != 1 ||
        st->stage->out[0]->role != BUF_TEMP)
        return diag_error(s->diag,
                          "schedule of %s: %s reduces or is an output and "
                          "cannot be inlined",
                          s->def->name, stage);
    ExprSubst subst = {inline_read, s->arena, st->stage};
    for (int i = 0; i < s->stages.count; i++) {
        Stage *user = s->stages.data[i]->stage;
        if (s->stages.data[i] == st || s->stages.data[i]->is_inlined)
            continue;
        for (int k = 0; k < user->value_count; k++)
            user->value[k] = expr_rewrite(&subst, user->value[k]);
    }
    st->is_inlined = true;
    return schedule_record(s, "inline %s", stage);
}

/* `x` has the same value in all iterations of the reduction. */
static bool is_outside_reduction(const Stage *stage, const Expr *x)
{
    for (int i = 0; i < stage->reduce_count; i++)
        if (expr_uses_var(x, stage->reduce[i].var))
            return false;
    return true;
}

/* The factor or divisor of a summand that its reduction does not change;
 * `rest` gets the summand without it, `kind` how it comes back. */
static const Expr *common_factor(Arena *a, const Stage *stage, const Expr *x,
                                 const Expr **rest, ExprKind *kind)
{
    if (x->kind != EX_MUL && x->kind != EX_DIV)
        return NULL;
    for (int i = x->kind == EX_DIV; i < 2; i++) {
        const Expr *other = x->arg[1 - i];
        if (!is_outside_reduction(stage, x->arg[i]) ||
            is_outside_reduction(stage, other))
            continue;
        *rest = other;
        *kind = x->kind;
        return x->arg[i];
    }
    for (int i = 0; i < (x->kind == EX_DIV ? 1 : 2); i++) {
        const Expr *inner;
        const Expr *factor = common_factor(a, stage, x->arg[i], &inner, kind);
        if (!factor)
            continue;
        *rest = i == 0 ? expr_binary(a, x->kind, inner, x->arg[1])
                       : expr_binary(a, x->kind, x->arg[0], inner);
        return factor;
    }
    return NULL;
}

bool schedule_factor(Schedule *s, const char *stage)
{
    StageState *st;
    if (!schedule_find(s, stage, NULL, &st, NULL))
        return false;
    Stage *sum = st->stage;
    const Expr *rest = NULL, *factor = NULL;
    ExprKind kind = EX_MUL;
    if (sum->reduce_count && sum->value_count == 1 &&
        sum->out[0]->role == BUF_TEMP && !strcmp(sum->reducer->name, "sum") &&
        dtype_is_float(sum->out[0]->dtype))
        factor = common_factor(s->arena, sum, sum->value[0], &rest, &kind);
    if (!factor)
        return diag_error(s->diag,
                          "schedule of %s: %s is no sum of products with a "
                          "factor in common, or an output",
                          s->def->name, stage);
    /* Its readers see the sum times the factor. */
    const Expr *own[MAX_RANK];
    for (int i = 0; i < sum->axis_count; i++)
        own[i] = expr_var(s->arena, sum->axis[i].var);
    Stage whole = *sum;
    whole.value[0] = expr_binary(
        s->arena, kind, expr_read(s->arena, sum->out[0], own), factor);
    ExprSubst subst = {inline_read, s->arena, &whole};
    for (int i = 0; i < s->stages.count; i++) {
        Stage *user = s->stages.data[i]->stage;
        for (int k = 0; k < user->value_count; k++)
            if (user != sum && !s->stages.data[i]->is_inlined)
                user->value[k] = expr_rewrite(&subst, user->value[k]);
    }
    sum->value[0] = rest;
    return schedule_record(s, "factor %s", stage);
}
