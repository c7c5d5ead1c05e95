/* What templates ask of a definition, and the steps they share; see
 * templates.h. */
#include <string.h>

#include "schedules/templates.h"

LoopAxis *look_axis(const StageState *st, const char *name)
{
    for (int i = 0; i < st->roots.count; i++)
        if (strcmp(st->roots.data[i]->name, name) == 0)
            return st->roots.data[i];
    return NULL;
}

bool look_same_extent(const Axis *a, const Axis *b)
{
    if (!a->limit || !b->limit)
        return a->extent == b->extent && a->limit == b->limit;
    return a->extent == b->extent && expr_equal(a->limit, b->limit);
}

bool look_split_tile(Look *look, const StageState *st, const char *axis,
                     int64_t factor)
{
    const LoopAxis *a = look_axis(st, axis);
    Schedule *s = look->s;
    const char *name = st->stage->name;
    if (!a || !axis_is_limited(a))
        return schedule_split(s, name, axis, factor);
    return a->is_reduce ? schedule_split_even(s, name, axis, factor)
                        : schedule_split_padded(s, name, axis, factor);
}

int look_contiguous(const StageState *st)
{
    const Stage *stage = st->stage;
    const Layout *l = &stage->out[0]->layout;
    for (int i = l->count - 1; i >= 0; i--)
        if (stage->axis[l->dim[i].axis].extent > 1)
            return l->dim[i].axis;
    return -1;
}

int look_index_of(const Expr *read, const Var *var)
{
    for (int i = 0; i < read->count; i++)
        if (read->arg[i]->kind == EX_VAR && read->arg[i]->var == var)
            return i;
    return -1;
}

bool look_uses(const StageState *st, int axis, const Expr *x)
{
    return expr_uses_var(x, st->stage->axis[axis].var);
}

bool look_reads_own_point(const StageState *st, const Expr *x,
                          const Buffer *buffer)
{
    if (x->kind == EX_READ && x->buffer == buffer) {
        for (int i = 0; i < x->count; i++) {
            bool is_own = x->arg[i]->kind == EX_VAR &&
                          x->arg[i]->var == st->stage->axis[i].var;
            if (!is_own &&
                (buffer->dims[i] != 1 || !expr_is_int(x->arg[i], 0)))
                return false;
        }
        return x->count == st->stage->axis_count;
    }
    for (int i = 0; i < x->count; i++)
        if (!look_reads_own_point(st, x->arg[i], buffer))
            return false;
    return true;
}

static bool try_collapse(Look *look, const char *a, const char *b)
{
    Schedule *s = look->s;
    Diag *diag = s->diag;
    s->diag = diag_new(s->arena, NULL);
    bool ok = schedule_collapse(s, a, b);
    s->diag = diag;
    return ok;
}

void look_collapse(Look *look, const char *except)
{
    bool again = true;
    while (again) {
        again = false;
        const Stage *stage = look->out->stage;
        for (int i = 0; i + 1 < stage->axis_count && !again; i++) {
            const char *a = stage->axis[i].var->name;
            const char *b = stage->axis[i + 1].var->name;
            if (except && (!strcmp(a, except) || !strcmp(b, except)))
                continue;
            again = try_collapse(look, a, b);
        }
    }
}

const char *look_order(Look *look, const char *const *names, int count)
{
    const char *order = "";
    for (int i = 0; i < count; i++)
        order = arena_printf(look->s->arena, "%s%s%s", order, i ? " " : "",
                             names[i]);
    return order;
}

bool look_contract(Look *look, const StageState *st)
{
    return look->exact || !look->target->has_fma ||
           schedule_contract(look->s, st->stage->name);
}

bool look_is_costly(const Expr *x)
{
    bool costly = (x->kind >= EX_EXP && x->kind <= EX_COS) ||
                  x->kind == EX_POW ||
                  (x->kind == EX_DIV && dtype_is_float(x->dtype));
    for (int i = 0; i < x->count && !costly; i++)
        costly = look_is_costly(x->arg[i]);
    return costly;
}

StageState *look_split_accumulator(Look *look, StageState *acc)
{
    const char *name = acc->stage->name;
    if (!schedule_cache(look->s, name))
        return NULL;
    return schedule_stage(look->s,
                          arena_printf(look->s->arena, "%s_acc", name));
}

bool look_store_tile(Look *look, const StageState *copy, int row, int pixel,
                     int vector, const char *attach)
{
    Schedule *s = look->s;
    const Stage *stage = copy->stage;
    const char *names[MAX_RANK];
    int n = 0;
    for (int i = 0; i < stage->axis_count; i++)
        if (i != row && i != pixel && i != vector)
            names[n++] = stage->axis[i].var->name;
    int tile = n;
    if (row >= 0)
        names[n++] = stage->axis[row].var->name;
    if (pixel >= 0)
        names[n++] = stage->axis[pixel].var->name;
    names[n++] = stage->axis[vector].var->name;
    if (!schedule_reorder(s, stage->name, look_order(look, names, n)))
        return false;
    for (int i = tile; i + 1 < n; i++)
        if (!schedule_unroll(s, stage->name, names[i]))
            return false;
    return schedule_vectorize(s, stage->name, names[n - 1]) &&
           schedule_compute_at(s, stage->name, look->out->stage->name, attach);
}

bool look_keep(Look *look, const StageState *st, const char *attach)
{
    const Stage *stage = st->stage, *out = look->out->stage;
    const char *names[MAX_RANK];
    int last = stage->axis_count - 1, n = 0, lanes = last;
    /* Of an axis that the output has as well, one element is wanted here. */
    for (int i = 0; i < last && i < out->axis_count; i++)
        if (out->axis[i].extent == 1 && stage->axis[i].extent > 1 &&
            out->axis_count > last &&
            out->axis[last].extent == stage->axis[last].extent)
            lanes = i;
    for (int i = 0; i <= last; i++)
        if (i != lanes)
            names[n++] = stage->axis[i].var->name;
    if (lanes >= 0)
        names[n++] = stage->axis[lanes].var->name;
    if (lanes != last &&
        !schedule_reorder(look->s, stage->name, look_order(look, names, n)))
        return false;
    if (lanes >= 0 && stage->axis[lanes].extent > 1 &&
        !schedule_vectorize(look->s, stage->name, names[n - 1]))
        return false;
    return schedule_compute_at(look->s, stage->name, look->out->stage->name,
                               attach);
}

const char *look_parallel_outer(Look *look, int inner)
{
    StageState *out = look->out;
    const char *name = out->stage->name;
    while (out->leaves.count - inner > 1)
        if (!schedule_fuse(look->s, name, out->leaves.data[0]->name,
                           out->leaves.data[1]->name))
            break;
    if (out->leaves.count - inner < 1)
        return NULL;
    if (look->work >= PARALLEL_WORK && out->leaves.data[0]->extent > 1)
        schedule_parallel(look->s, name, out->leaves.data[0]->name);
    return out->leaves.data[out->leaves.count - inner - 1]->name;
}

bool look_cache_operand(Look *look, const Stage *stage, const Expr *read,
                        int lane_dim, const char *at)
{
    Schedule *s = look->s;
    const char *name = arena_printf(s->arena, "%s_cached", read->buffer->name);
    if (!schedule_cache_read(s, stage->name, read->buffer->name))
        return false;
    const StageState *copy = schedule_stage(s, name);
    if (!copy)
        return false;
    const char *order[MAX_RANK];
    int n = 0;
    for (int i = 0; i < copy->roots.count; i++)
        if (i != lane_dim)
            order[n++] = copy->roots.data[i]->name;
    order[n++] = copy->roots.data[lane_dim]->name;
    if (!schedule_reorder(s, name, look_order(look, order, n)) ||
        !schedule_vectorize(s, name, order[n - 1]))
        return false;
    if (at)
        return schedule_compute_at(s, name, look->out->stage->name, at);
    /* The loops around the lanes are one, for threads to share. */
    while (copy->leaves.count > 2)
        if (!schedule_fuse(s, name, copy->leaves.data[0]->name,
                           copy->leaves.data[1]->name))
            return false;
    return copy->leaves.count < 2 || look->work < PARALLEL_WORK ||
           schedule_parallel(s, name, copy->leaves.data[0]->name);
}
