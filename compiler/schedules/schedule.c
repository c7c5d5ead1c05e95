/* The primitives of a schedule and its trace. */
#include "schedules/schedule.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "schedules/state.h"

/* Copies buffers and stages, so that one definition serves many schedules. */
typedef struct CopyMap {
    const Definition *from;
    Definition *to;
} CopyMap;

static const Expr *copy_read(ExprSubst *subst, const Expr *leaf)
{
    if (leaf->kind != EX_READ)
        return NULL;
    const CopyMap *map = subst->context;
    for (int i = 0; i < map->from->buffers.count; i++)
        if (map->from->buffers.data[i] == leaf->buffer)
            return expr_read_padded(subst->arena, map->to->buffers.data[i],
                                    leaf->arg, leaf->outside);
    return NULL;
}

static void copy_limits(ExprSubst *subst, Axis *axis, int count)
{
    for (int i = 0; i < count; i++)
        if (axis[i].limit)
            axis[i].limit = expr_rewrite(subst, axis[i].limit);
}

static Definition *copy_definition(Arena *a, const Definition *def)
{
    Definition *copy = definition_new(a, def->name);
    for (int i = 0; i < def->buffers.count; i++) {
        Buffer *b = ARENA_NEW(a, Buffer);
        *b = *def->buffers.data[i];
        vec_push(a, &copy->buffers, b);
    }
    CopyMap map = {def, copy};
    ExprSubst subst = {copy_read, a, &map};
    for (int i = 0; i < copy->buffers.count; i++) {
        Buffer *b = copy->buffers.data[i];
        for (int d = 0; d < b->rank; d++)
            if (b->limit[d])
                b->limit[d] = expr_rewrite(&subst, b->limit[d]);
    }
    for (int i = 0; i < def->stages.count; i++) {
        Stage *s = ARENA_NEW(a, Stage);
        *s = *def->stages.data[i];
        copy_limits(&subst, s->axis, s->axis_count);
        copy_limits(&subst, s->reduce, s->reduce_count);
        for (int k = 0; k < s->value_count; k++) {
            s->value[k] = expr_rewrite(&subst, s->value[k]);
            s->out[k] = definition_find_buffer(copy, s->out[k]->name);
        }
        vec_push(a, &copy->stages, s);
    }
    return copy;
}

static LoopAxis *new_axis(Schedule *s, const char *name, int64_t extent,
                          bool is_reduce)
{
    LoopAxis *axis = ARENA_NEW(s->arena, LoopAxis);
    axis->name = name;
    axis->extent = extent;
    axis->is_reduce = is_reduce;
    return axis;
}

static void add_root(Schedule *s, StageState *st, const Axis *axis,
                     bool is_reduce)
{
    LoopAxis *root = new_axis(s, axis->var->name, axis->extent, is_reduce);
    root->root = axis->var;
    root->limit = axis->limit;
    vec_push(s->arena, &st->roots, root);
    vec_push(s->arena, &st->leaves, root);
}

StageState *schedule_add_stage(Schedule *s, Stage *stage, int at)
{
    StageState *st = ARENA_NEW(s->arena, StageState);
    st->stage = stage;
    for (int k = 0; k < stage->axis_count; k++)
        add_root(s, st, &stage->axis[k], false);
    for (int k = 0; k < stage->reduce_count; k++)
        add_root(s, st, &stage->reduce[k], true);
    vec_push(s->arena, &s->stages, st);
    for (int i = s->stages.count - 1; i > at; i--)
        s->stages.data[i] = s->stages.data[i - 1];
    s->stages.data[at] = st;
    return st;
}

void schedule_reset(Schedule *s)
{
    s->def = copy_definition(s->arena, s->source);
    s->stages.count = 0;
    s->fused_math = false;
    s->trace.data = NULL;
    s->trace.count = s->trace.capacity = 0;
    for (int i = 0; i < s->def->stages.count; i++)
        schedule_add_stage(s, s->def->stages.data[i], i);
}

Schedule *schedule_new(Arena *arena, Diag *diag, const Definition *def)
{
    Schedule *s = ARENA_NEW(arena, Schedule);
    s->arena = arena;
    s->diag = diag;
    s->source = def;
    schedule_reset(s);
    return s;
}

StageState *schedule_stage(const Schedule *s, const char *name)
{
    for (int i = 0; i < s->stages.count; i++)
        if (strcmp(s->stages.data[i]->stage->name, name) == 0)
            return s->stages.data[i];
    return NULL;
}

static LoopAxis *stage_axis(const StageState *st, const char *name)
{
    for (int i = 0; i < st->leaves.count; i++)
        if (strcmp(st->leaves.data[i]->name, name) == 0)
            return st->leaves.data[i];
    return NULL;
}

bool axis_is_limited(const LoopAxis *axis)
{
    if (axis->fuse_first)
        return axis_is_limited(axis->fuse_first) ||
               axis_is_limited(axis->fuse_second);
    return axis->split_from ? axis_is_limited(axis->split_from)
                            : axis->limit != NULL;
}

int stage_leaf_index(const StageState *st, const LoopAxis *axis)
{
    for (int i = 0; i < st->leaves.count; i++)
        if (st->leaves.data[i] == axis)
            return i;
    return -1;
}

bool schedule_record(Schedule *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vec_push(s->arena, &s->trace, arena_vprintf(s->arena, format, args));
    va_end(args);
    return true;
}

bool schedule_find(Schedule *s, const char *stage, const char *axis,
                   StageState **st, LoopAxis **leaf)
{
    *st = schedule_stage(s, stage);
    if (!*st || (*st)->is_inlined)
        return diag_error(s->diag, "schedule of %s: no stage %s", s->def->name,
                          stage);
    if (!axis)
        return true;
    *leaf = stage_axis(*st, axis);
    if (!*leaf)
        return diag_error(s->diag, "schedule of %s: stage %s has no loop %s",
                          s->def->name, stage, axis);
    return true;
}

typedef enum SplitKind { SPLIT_PLAIN, SPLIT_EVEN, SPLIT_PADDED } SplitKind;

static bool split(Schedule *s, const char *stage, const char *axis,
                  int64_t factor, SplitKind kind)
{
    static const char *const verbs[] = {"split", "split_even", "split_padded"};
    StageState *st;
    LoopAxis *a;
    if (!schedule_find(s, stage, axis, &st, &a))
        return false;
    if (factor < 1)
        return diag_error(s->diag, "schedule of %s: split by %lld",
                          s->def->name, (long long)factor);
    /* An axis without elements has no pieces, but they have a size. */
    int64_t most = a->extent > 0 ? a->extent : 1;
    if (kind == SPLIT_EVEN) {
        int64_t pieces = (most + factor - 1) / factor;
        factor = (most + pieces - 1) / pieces;
    }
    if (factor > most)
        factor = most;
    LoopAxis *outer =
        new_axis(s, arena_printf(s->arena, "%s.o", axis),
                 (a->extent + factor - 1) / factor, a->is_reduce);
    LoopAxis *inner = new_axis(s, arena_printf(s->arena, "%s.i", axis), factor,
                               a->is_reduce);
    outer->split_from = inner->split_from = a;
    a->use = AXIS_SPLIT;
    a->factor = factor;
    a->even = kind == SPLIT_EVEN;
    a->padded = kind == SPLIT_PADDED;
    a->outer = outer;
    a->inner = inner;
    int at = stage_leaf_index(st, a);
    vec_push(s->arena, &st->leaves, inner);
    for (int i = st->leaves.count - 1; i > at + 1; i--)
        st->leaves.data[i] = st->leaves.data[i - 1];
    st->leaves.data[at] = outer;
    st->leaves.data[at + 1] = inner;
    return schedule_record(s, "%s %s %s %lld", verbs[kind], stage, axis,
                           (long long)factor);
}

bool schedule_split(Schedule *s, const char *stage, const char *axis,
                    int64_t factor)
{
    return split(s, stage, axis, factor, SPLIT_PLAIN);
}

bool schedule_split_even(Schedule *s, const char *stage, const char *axis,
                         int64_t factor)
{
    return split(s, stage, axis, factor, SPLIT_EVEN);
}

/* An integer division by what may be 0 where an element means nothing. */
static bool may_trap(const Expr *x)
{
    bool traps = (x->kind == EX_DIV || x->kind == EX_MOD) &&
                 !dtype_is_float(x->dtype) && x->arg[1]->kind != EX_INT;
    for (int i = 0; i < x->count && !traps; i++)
        traps = may_trap(x->arg[i]);
    return traps;
}

bool schedule_split_padded(Schedule *s, const char *stage, const char *axis,
                           int64_t factor)
{
    for (int i = 0; i < s->stages.count; i++) {
        const StageState *st = s->stages.data[i];
        for (int k = 0; k < st->stage->value_count && !st->is_inlined; k++)
            if (may_trap(st->stage->value[k]))
                return diag_error(s->diag,
                                  "schedule of %s: %s divides integers, by 0 "
                                  "perhaps where elements mean nothing",
                                  s->def->name, st->stage->name);
    }
    return split(s, stage, axis, factor, SPLIT_PADDED);
}

/* An outer loop whose pieces differ in size is a loop of its own. Without
 * equal pieces the last one of an axis with a limit just ends earlier. */
static bool is_uneven(const LoopAxis *a)
{
    const LoopAxis *from = a->split_from;
    if (!from || from->outer != a)
        return false;
    return axis_is_limited(from) && !from->padded
               ? from->even
               : from->extent % from->factor != 0;
}

/* An outer loop that its inner one needs to know of. */
static bool decides_inner(const LoopAxis *from)
{
    return axis_is_limited(from) || from->extent % from->factor;
}

bool schedule_fuse(Schedule *s, const char *stage, const char *outer,
                   const char *inner)
{
    StageState *st;
    LoopAxis *a, *b;
    if (!schedule_find(s, stage, outer, &st, &a) ||
        !schedule_find(s, stage, inner, &st, &b))
        return false;
    int at = stage_leaf_index(st, a);
    if (stage_leaf_index(st, b) != at + 1 || a->is_reduce != b->is_reduce ||
        is_uneven(a) || is_uneven(b) || (axis_is_limited(b) && a->extent != 1))
        return diag_error(s->diag,
                          "schedule of %s: %s and %s of %s cannot be fused",
                          s->def->name, outer, inner, stage);
    LoopAxis *f = new_axis(s, arena_printf(s->arena, "%s*%s", outer, inner),
                           a->extent * b->extent, a->is_reduce);
    f->fuse_first = a;
    f->fuse_second = b;
    a->use = b->use = AXIS_FUSED;
    a->fused = b->fused = f;
    st->leaves.data[at] = f;
    vec_remove(&st->leaves, at + 1);
    return schedule_record(s, "fuse %s %s %s", stage, outer, inner);
}

bool schedule_reorder(Schedule *s, const char *stage, const char *order)
{
    StageState *st;
    if (!schedule_find(s, stage, NULL, &st, NULL))
        return false;
    Vec(LoopAxis *) leaves = {0};
    char *copy = arena_strdup(s->arena, order), *save;
    for (char *w = strtok_r(copy, " ", &save); w;
         w = strtok_r(NULL, " ", &save)) {
        LoopAxis *a = stage_axis(st, w);
        if (!a)
            return diag_error(s->diag,
                              "schedule of %s: stage %s has no loop %s",
                              s->def->name, stage, w);
        for (int i = 0; i < leaves.count; i++)
            if (leaves.data[i] == a)
                return diag_error(s->diag,
                                  "schedule of %s: loop %s comes twice",
                                  s->def->name, w);
        /* The outer loop fixes how large a piece the inner one sees. */
        const LoopAxis *from = a->split_from;
        if (from && from->inner == a && decides_inner(from))
            for (int i = 0; i <= leaves.count; i++) {
                if (i == leaves.count && from->outer->use == AXIS_LEAF)
                    return diag_error(s->diag,
                                      "schedule of %s: %s must come after %s",
                                      s->def->name, w, from->outer->name);
                if (i < leaves.count && leaves.data[i] == from->outer)
                    break;
            }
        vec_push(s->arena, &leaves, a);
    }
    if (leaves.count != st->leaves.count)
        return diag_error(s->diag,
                          "schedule of %s: reorder %s names %d of %d loops",
                          s->def->name, stage, leaves.count, st->leaves.count);
    memcpy(st->leaves.data, leaves.data,
           (size_t)leaves.count * sizeof *leaves.data);
    return schedule_record(s, "reorder %s %s", stage, order);
}

static bool annotate(Schedule *s, const char *stage, const char *axis,
                     LoopKind kind, const char *verb)
{
    StageState *st;
    LoopAxis *a;
    if (!schedule_find(s, stage, axis, &st, &a))
        return false;
    if (a->is_reduce && kind != LOOP_UNROLLED)
        return diag_error(s->diag,
                          "schedule of %s: reduction loop %s of %s cannot "
                          "be %s",
                          s->def->name, axis, stage, verb);
    if (kind == LOOP_PARALLEL && (st->at || stage_leaf_index(st, a) != 0))
        return diag_error(s->diag,
                          "schedule of %s: only the outermost loop of a "
                          "nest runs in parallel, not %s of %s",
                          s->def->name, axis, stage);
    if (kind == LOOP_VECTOR && stage_leaf_index(st, a) != st->leaves.count - 1)
        return diag_error(s->diag,
                          "schedule of %s: only the innermost loop can be "
                          "a vector, not %s of %s",
                          s->def->name, axis, stage);
    a->kind = kind;
    return schedule_record(s, "%s %s %s", verb, stage, axis);
}

bool schedule_parallel(Schedule *s, const char *stage, const char *axis)
{
    return annotate(s, stage, axis, LOOP_PARALLEL, "parallel");
}

bool schedule_vectorize(Schedule *s, const char *stage, const char *axis)
{
    return annotate(s, stage, axis, LOOP_VECTOR, "vectorize");
}

bool schedule_unroll(Schedule *s, const char *stage, const char *axis)
{
    return annotate(s, stage, axis, LOOP_UNROLLED, "unroll");
}

bool schedule_compute_at(Schedule *s, const char *stage, const char *at,
                         const char *axis)
{
    StageState *st, *target;
    LoopAxis *a;
    if (!schedule_find(s, stage, NULL, &st, NULL) ||
        !schedule_find(s, at, axis, &target, &a))
        return false;
    for (int k = 0; k < st->stage->value_count; k++)
        if (st->stage->out[k]->role != BUF_TEMP)
            return diag_error(s->diag,
                              "schedule of %s: output %s has its own nest",
                              s->def->name, stage);
    for (const StageState *t = target; t; t = t->at)
        if (t == st)
            return diag_error(s->diag,
                              "schedule of %s: %s would be computed inside "
                              "itself",
                              s->def->name, stage);
    for (int i = 0; i <= stage_leaf_index(target, a); i++)
        if (target->leaves.data[i]->is_reduce)
            return diag_error(s->diag,
                              "schedule of %s: %s of %s is inside a "
                              "reduction",
                              s->def->name, axis, at);
    st->at = target;
    st->at_axis = a;
    if (st->scope == SCOPE_GLOBAL)
        st->scope = SCOPE_LOCAL;
    return schedule_record(s, "compute_at %s %s %s", stage, at, axis);
}

const char *const scope_names[] = {
    [SCOPE_GLOBAL] = "global",
    [SCOPE_LOCAL] = "local",
    [SCOPE_REGISTER] = "register",
    [SCOPE_SHARED] = "shared",
};

bool schedule_set_scope(Schedule *s, const char *stage, Scope scope)
{
    StageState *st;
    if (!schedule_find(s, stage, NULL, &st, NULL))
        return false;
    if (!st->at || (scope != SCOPE_LOCAL && scope != SCOPE_REGISTER))
        return diag_error(s->diag,
                          "schedule of %s: scope %s for %s, which needs "
                          "compute_at first",
                          s->def->name, scope_names[scope], stage);
    st->scope = scope;
    return schedule_record(s, "scope %s %s", stage, scope_names[scope]);
}

bool schedule_pack(Schedule *s, const char *buffer, Layout layout)
{
    Buffer *b = definition_find_buffer(s->def, buffer);
    if (!b)
        return diag_error(s->diag, "schedule of %s: no buffer %s",
                          s->def->name, buffer);
    bool seen[MAX_RANK] = {false};
    for (int i = 0; i < layout.count; i++) {
        if (layout.dim[i].axis < 0 || layout.dim[i].axis >= b->rank)
            return diag_error(s->diag,
                              "schedule of %s: layout of %s names axis %d",
                              s->def->name, buffer, layout.dim[i].axis);
        seen[layout.dim[i].axis] |= layout.dim[i].factor == 0;
    }
    for (int i = 0; i < b->rank; i++)
        if (!seen[i])
            return diag_error(s->diag,
                              "schedule of %s: layout of %s lacks axis %d",
                              s->def->name, buffer, i);
    b->layout = layout;
    Str text = {0};
    layout_print(&text, &layout);
    schedule_record(s, "pack %s %s", buffer, str_text(&text));
    str_free(&text);
    return true;
}

bool schedule_reduce_lanes(Schedule *s, const char *stage, const char *axis,
                           int lanes)
{
    StageState *st;
    LoopAxis *a;
    if (!schedule_find(s, stage, axis, &st, &a))
        return false;
    bool power_of_two = lanes > 1 && (lanes & (lanes - 1)) == 0;
    if (!a->is_reduce || !a->root || !power_of_two ||
        stage_leaf_index(st, a) != st->leaves.count - 1)
        return diag_error(s->diag,
                          "schedule of %s: %d lanes over %s of %s (needs a "
                          "power of two and the innermost reduction loop)",
                          s->def->name, lanes, axis, stage);
    for (int i = 0; i + 1 < st->leaves.count; i++)
        if (st->leaves.data[i]->is_reduce && st->leaves.data[i]->extent > 1)
            return diag_error(s->diag,
                              "schedule of %s: lanes over %s of %s need it "
                              "to be the only reduction loop",
                              s->def->name, axis, stage);
    st->lane_axis = a;
    st->lanes = lanes;
    return schedule_record(s, "reduce_lanes %s %s %d", stage, axis, lanes);
}

/* What is read along the variable lies in blocks of whole vectors. */
static bool is_in_vectors(const Expr *x, const Var *var, int64_t lanes)
{
    for (int i = 0; i < x->count; i++) {
        if (!is_in_vectors(x->arg[i], var, lanes))
            return false;
        if (x->kind != EX_READ || !expr_uses_var(x->arg[i], var))
            continue;
        const Layout *l = &x->buffer->layout;
        const LayoutDim *last = &l->dim[l->count - 1];
        if (!x->buffer->is_constant || x->arg[i]->kind != EX_VAR ||
            last->axis != i || last->factor % lanes ||
            (!last->factor && x->buffer->dims[i] % lanes))
            return false;
    }
    return true;
}

bool schedule_pad(Schedule *s, const char *stage, const char *axis,
                  int64_t lanes)
{
    StageState *st;
    LoopAxis *a;
    if (!schedule_find(s, stage, axis, &st, &a))
        return false;
    bool fits = lanes > 0 && a->root && !a->is_reduce && !a->limit;
    for (int k = 0; k < st->stage->value_count; k++)
        fits = fits && is_in_vectors(st->stage->value[k], a->root, lanes);
    if (!fits)
        return diag_error(
            s->diag, "schedule of %s: %s of %s cannot be in whole vectors",
            s->def->name, axis, stage);
    st->padded = a->root;
    st->pad_lanes = lanes;
    return schedule_record(s, "pad %s %s %lld", stage, axis, (long long)lanes);
}

bool schedule_contract(Schedule *s, const char *stage)
{
    StageState *st;
    if (!schedule_find(s, stage, NULL, &st, NULL))
        return false;
    st->contract = true;
    return schedule_record(s, "contract %s", stage);
}

bool schedule_prefetch(Schedule *s, const char *stage, const char *buffer,
                       const char *axis, int64_t ahead, int64_t step)
{
    StageState *st;
    LoopAxis *a;
    const Buffer *b = definition_find_buffer(s->def, buffer);
    if (!schedule_find(s, stage, axis, &st, &a))
        return false;
    if (!b || b->role != BUF_INPUT || !a->is_reduce || step < 1 || ahead < 0)
        return diag_error(s->diag,
                          "schedule of %s: prefetch of %s along %s of %s",
                          s->def->name, buffer, axis, stage);
    st->prefetch = b;
    st->prefetch_axis = a;
    st->prefetch_ahead = ahead;
    st->prefetch_step = step;
    return schedule_record(s, "prefetch %s %s %s %lld %lld", stage, buffer,
                           axis, (long long)ahead, (long long)step);
}

bool schedule_fused_math(Schedule *s)
{
    s->fused_math = true;
    return schedule_record(s, "fused_math");
}
