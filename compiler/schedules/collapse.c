/* schedule_collapse, schedule_cache, schedule_rfactor and schedule_cache_read:
 * the primitives
 * that change the stages themselves. */
#include <string.h>

#include "schedules/schedule.h"
#include "schedules/state.h"

/* Where a buffer is indexed by the pair of axes. */
typedef struct Collapse {
    const Var *outer, *inner, *joined;
    int64_t extent; /* of the inner axis */
    const Buffer *buffer[32];
    int place[32]; /* of the outer axis; -1: indexed by neither */
    int count;
} Collapse;

static bool note_buffer(Collapse *c, const Buffer *b, int place)
{
    for (int i = 0; i < c->count; i++)
        if (c->buffer[i] == b)
            return c->place[i] == place;
    if (c->count == 32)
        return false;
    c->buffer[c->count] = b;
    c->place[c->count++] = place;
    return true;
}

static bool is_var(const Expr *x, const Var *var)
{
    return x->kind == EX_VAR && x->var == var;
}

/* A limit of the inner axis would leave gaps between its rows; where the
 * outer axis is one row there are none. */
static bool can_join(int64_t outer, const Expr *inner_limit)
{
    return !inner_limit || outer == 1;
}

static const Expr *joined_limit(Arena *a, const Expr *outer,
                                const Expr *inner_limit, int64_t inner)
{
    return inner_limit ? inner_limit
           : outer     ? expr_mul_int(a, outer, inner)
                       : NULL;
}

/* Both axes must appear as neighbouring plain indices or not at all. */
static bool can_collapse(Collapse *c, const Expr *x)
{
    if (x->kind == EX_VAR)
        return x->var != c->outer && x->var != c->inner;
    if (x->kind != EX_READ) {
        for (int i = 0; i < x->count; i++)
            if (!can_collapse(c, x->arg[i]))
                return false;
        return true;
    }
    int place = -1;
    for (int i = 0; i + 1 < x->count && place < 0; i++)
        if (is_var(x->arg[i], c->outer) && is_var(x->arg[i + 1], c->inner))
            place = i;
    /* A part of a longer row does not continue in the next one. */
    if (place >= 0 && (x->outside || x->buffer->dims[place + 1] != c->extent))
        return false;
    for (int i = 0; i < x->count; i++)
        if (place < 0 || (i != place && i != place + 1))
            if (!can_collapse(c, x->arg[i]))
                return false;
    return note_buffer(c, x->buffer, place) &&
           (!x->outside || can_collapse(c, x->outside));
}

/* The axes `d` and `d + 1` are whole and adjacent in memory. What lies
 * around the pair may belong to others. */
static bool is_plain(const Buffer *b, int d)
{
    const Layout *l = &b->layout;
    for (int i = 0; i < l->count; i++)
        if ((l->dim[i].axis == d || l->dim[i].axis == d + 1) &&
            l->dim[i].factor)
            return false;
    for (int i = 0; i + 1 < l->count; i++)
        if (l->dim[i].axis == d && l->dim[i + 1].axis == d + 1)
            return !(l->lo[d] | l->hi[d] | l->lo[d + 1] | l->hi[d + 1] |
                     l->before[d + 1] | l->after[d + 1]);
    return false;
}

static void join_layout(Layout *l, int d)
{
    int n = 0;
    for (int i = 0; i < l->count; i++) {
        LayoutDim dim = l->dim[i];
        if (dim.axis == d + 1)
            continue;
        if (dim.axis > d)
            dim.axis--;
        l->dim[n++] = dim;
    }
    l->count = n;
    for (int i = d + 1; i + 1 < MAX_RANK; i++) {
        l->lo[i] = l->lo[i + 1];
        l->hi[i] = l->hi[i + 1];
        l->before[i] = l->before[i + 1];
        l->after[i] = l->after[i + 1];
    }
    l->lo[MAX_RANK - 1] = l->hi[MAX_RANK - 1] = 0;
    l->before[MAX_RANK - 1] = l->after[MAX_RANK - 1] = 0;
}

static const Expr *join_read(ExprSubst *subst, const Expr *leaf)
{
    const Collapse *c = subst->context;
    if (leaf->kind != EX_READ)
        return NULL;
    for (int i = 0; i + 1 < leaf->count; i++) {
        if (!is_var(leaf->arg[i], c->outer) ||
            !is_var(leaf->arg[i + 1], c->inner))
            continue;
        const Expr *arg[MAX_RANK];
        int n = 0;
        for (int k = 0; k < leaf->count; k++)
            if (k != i + 1)
                arg[n++] =
                    k == i ? expr_var(subst->arena, c->joined) : leaf->arg[k];
        /* The buffer has lost a dimension by now. */
        return expr_read(subst->arena, leaf->buffer, arg);
    }
    return NULL;
}

bool schedule_collapse(Schedule *s, const char *outer, const char *inner)
{
    Vec(Collapse) plans = {0};
    Collapse all = {0};
    int rank = 0;
    for (int i = 0; i < s->stages.count; i++) {
        StageState *st = s->stages.data[i];
        Stage *stage = st->stage;
        if (st->is_inlined)
            continue;
        int d = -1;
        for (int k = 0; k + 1 < stage->axis_count; k++)
            if (!strcmp(stage->axis[k].var->name, outer) &&
                !strcmp(stage->axis[k + 1].var->name, inner))
                d = k;
        bool ok = d >= 0 && st->leaves.count == st->roots.count &&
                  st->leaves.data[0] == st->roots.data[0] && !st->at;
        if (ok) {
            all.outer = stage->axis[d].var;
            all.inner = stage->axis[d + 1].var;
            all.extent = stage->axis[d + 1].extent;
            rank = stage->axis_count;
            ok = can_join(stage->axis[d].extent, stage->axis[d + 1].limit);
            for (int k = 0; k < stage->value_count && ok; k++)
                ok = note_buffer(&all, stage->out[k], d) &&
                     can_collapse(&all, stage->value[k]);
        }
        if (!ok || rank != stage->axis_count)
            return diag_error(s->diag,
                              "schedule of %s: %s and %s do not collapse "
                              "in stage %s",
                              s->def->name, outer, inner, stage->name);
        vec_push(s->arena, &plans, all);
    }
    for (int i = 0; i < all.count; i++)
        if (all.place[i] >= 0 &&
            (!is_plain(all.buffer[i], all.place[i]) ||
             !can_join(all.buffer[i]->dims[all.place[i]],
                       all.buffer[i]->limit[all.place[i] + 1])))
            return diag_error(s->diag,
                              "schedule of %s: %s and %s are not adjacent "
                              "in %s",
                              s->def->name, outer, inner, all.buffer[i]->name);
    Var *joined = ARENA_NEW(s->arena, Var);
    joined->name = arena_printf(s->arena, "%s_%s", outer, inner);
    for (int i = 0; i < all.count; i++) {
        Buffer *b = definition_find_buffer(s->def, all.buffer[i]->name);
        int d = all.place[i];
        if (d < 0)
            continue;
        b->limit[d] = joined_limit(s->arena, b->limit[d], b->limit[d + 1],
                                   b->dims[d + 1]);
        b->dims[d] *= b->dims[d + 1];
        for (int k = d + 1; k + 1 < b->rank; k++) {
            b->dims[k] = b->dims[k + 1];
            b->limit[k] = b->limit[k + 1];
        }
        b->rank--;
        join_layout(&b->layout, d);
    }
    int plan = 0;
    for (int i = 0; i < s->stages.count; i++) {
        StageState *st = s->stages.data[i];
        Stage *stage = st->stage;
        if (st->is_inlined)
            continue;
        Collapse *c = &plans.data[plan++];
        c->joined = joined;
        ExprSubst subst = {join_read, s->arena, c};
        for (int k = 0; k < stage->value_count; k++)
            stage->value[k] = expr_rewrite(&subst, stage->value[k]);
        int d = 0;
        while (stage->axis[d].var != c->outer)
            d++;
        LoopAxis *root = st->roots.data[d];
        root->limit =
            joined_limit(s->arena, root->limit, stage->axis[d + 1].limit,
                         stage->axis[d + 1].extent);
        root->extent *= stage->axis[d + 1].extent;
        root->name = joined->name;
        root->root = joined;
        stage->axis[d].var = joined;
        stage->axis[d].extent = root->extent;
        stage->axis[d].limit = root->limit;
        for (int k = d + 1; k + 1 < stage->axis_count; k++)
            stage->axis[k] = stage->axis[k + 1];
        stage->axis_count--;
        vec_remove(&st->leaves, stage_leaf_index(st, st->roots.data[d + 1]));
        vec_remove(&st->roots, d + 1);
    }
    return schedule_record(s, "collapse %s %s", outer, inner);
}

bool schedule_cache(Schedule *s, const char *stage)
{
    StageState *st = schedule_stage(s, stage);
    if (!st || st->is_inlined || !st->stage->reduce_count ||
        st->stage->value_count != 1 || st->leaves.count != st->roots.count ||
        st->at)
        return diag_error(s->diag, "schedule of %s: %s cannot be cached",
                          s->def->name, stage);
    int at = 0;
    while (s->stages.data[at] != st)
        at++;
    /* The old stage keeps its buffer and becomes the copy; the reduction
     * moves to a temporary. */
    Stage *copy = ARENA_NEW(s->arena, Stage);
    *copy = *st->stage;
    Buffer *out = copy->out[0];
    Buffer *temp =
        definition_add_buffer(s->def, arena_printf(s->arena, "%s_acc", stage),
                              BUF_TEMP, out->dtype, out->rank, out->dims);
    memcpy(temp->limit, out->limit, sizeof temp->limit);
    copy->name = temp->name;
    copy->out[0] = temp;
    const Expr *index[MAX_RANK];
    for (int i = 0; i < copy->axis_count; i++)
        index[i] = expr_var(s->arena, copy->axis[i].var);
    Stage *store = st->stage;
    store->reduce_count = 0;
    store->reducer = NULL;
    store->value[0] = expr_read(s->arena, temp, index);
    st->roots.count = st->leaves.count = store->axis_count;
    vec_push(s->arena, &s->def->stages, copy);
    schedule_add_stage(s, copy, at);
    return schedule_record(s, "cache %s", stage);
}

static const Var *named_var(Arena *a, const char *name)
{
    Var *var = ARENA_NEW(a, Var);
    var->name = name;
    return var;
}

bool schedule_rfactor(Schedule *s, const char *stage, const char *axis,
                      int64_t parts)
{
    Arena *a = s->arena;
    StageState *st = schedule_stage(s, stage);
    if (!st || st->is_inlined || st->at || !st->stage->reduce_count ||
        st->stage->value_count != 1 || st->leaves.count != st->roots.count ||
        strcmp(st->stage->reduce[0].var->name, axis) ||
        st->stage->reduce[0].limit || parts < 1 ||
        st->stage->reduce[0].extent % parts ||
        st->stage->axis_count == MAX_RANK)
        return diag_error(s->diag,
                          "schedule of %s: %s of %s has no %lld parts",
                          s->def->name, axis, stage, (long long)parts);
    Stage *whole = st->stage, *part = ARENA_NEW(a, Stage);
    const Buffer *out = whole->out[0];
    const Var *old = whole->reduce[0].var;
    int64_t size = whole->reduce[0].extent / parts;
    int64_t dims[MAX_RANK] = {parts};
    for (int i = 0; i < out->rank; i++)
        dims[i + 1] = out->dims[i];
    Buffer *temp =
        definition_add_buffer(s->def, arena_printf(a, "%s_part", stage),
                              BUF_TEMP, out->dtype, out->rank + 1, dims);
    *part = *whole;
    part->name = temp->name;
    part->out[0] = temp;
    const char *name = arena_printf(a, "%s_part", old->name);
    const Expr *index[MAX_RANK];
    part->axis[0] = (Axis){named_var(a, name), parts, NULL};
    for (int i = 0; i < whole->axis_count; i++) {
        part->axis[i + 1] = whole->axis[i];
        temp->limit[i + 1] = out->limit[i];
        index[i + 1] = expr_var(a, whole->axis[i].var);
    }
    part->axis_count = whole->axis_count + 1;
    part->reduce[0] = (Axis){named_var(a, old->name), size, NULL};
    const Expr *start = expr_mul_int(a, expr_var(a, part->axis[0].var), size);
    part->value[0] =
        expr_bind(a, whole->value[0], old,
                  expr_add(a, start, expr_var(a, part->reduce[0].var)));

    whole->reduce_count = 1;
    whole->reduce[0] = (Axis){named_var(a, name), parts, NULL};
    index[0] = expr_var(a, whole->reduce[0].var);
    whole->value[0] = expr_read(a, temp, index);
    LoopAxis *root = st->roots.data[whole->axis_count];
    root->name = name;
    root->root = whole->reduce[0].var;
    root->extent = parts;
    st->roots.count = st->leaves.count = whole->axis_count + 1;

    int at = 0;
    while (s->stages.data[at] != st)
        at++;
    vec_push(a, &s->def->stages, part);
    schedule_add_stage(s, part, at);
    return schedule_record(s, "rfactor %s %s %lld", stage, axis,
                           (long long)parts);
}

typedef struct CacheRead {
    const Buffer *from, *to;
} CacheRead;

static const Expr *redirect_read(ExprSubst *subst, const Expr *leaf)
{
    const CacheRead *c = subst->context;
    if (leaf->kind != EX_READ || leaf->buffer != c->from)
        return NULL;
    return expr_read_padded(subst->arena, c->to, leaf->arg, leaf->outside);
}

bool schedule_cache_read(Schedule *s, const char *stage, const char *buffer)
{
    StageState *st = schedule_stage(s, stage);
    const Buffer *from = definition_find_buffer(s->def, buffer);
    if (!st || st->is_inlined || !from)
        return diag_error(s->diag, "schedule of %s: no stage %s or buffer %s",
                          s->def->name, stage, buffer);
    Buffer *temp = definition_add_buffer(
        s->def, arena_printf(s->arena, "%s_cached", buffer), BUF_TEMP,
        from->dtype, from->rank, from->dims);
    memcpy(temp->limit, from->limit, sizeof temp->limit);
    StageBuilder b;
    stage_begin(&b, s->def, temp);
    stage_end(&b, expr_read(s->arena, from, b.index));
    CacheRead c = {from, temp};
    ExprSubst subst = {redirect_read, s->arena, &c};
    for (int k = 0; k < st->stage->value_count; k++)
        st->stage->value[k] = expr_rewrite(&subst, st->stage->value[k]);
    int at = 0;
    while (s->stages.data[at] != st)
        at++;
    schedule_add_stage(s, b.stage, at);
    return schedule_record(s, "cache_read %s %s", stage, buffer);
}
