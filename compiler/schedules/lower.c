/* Lowering: a scheduled definition to loops.
 *
 * Each stage becomes a nest over its leaf axes. A split that does not
 * divide evenly becomes one nest a piece size ("segment"), so that every
 * inner extent is a constant. A stage computed inside another is lowered
 * anew at each such place, for just the region that is read there, into a
 * small buffer of exactly that size. */
#include <ctype.h>
#include <string.h>

#include "base/hash.h"
#include "schedules/region.h"

const Var *lower_new_var(Lower *lw, const char *name)
{
    char *id = arena_strdup(lw->arena, name);
    for (char *p = id; *p; p++)
        if (!isalnum((unsigned char)*p))
            *p = '_';
    Var *var = ARENA_NEW(lw->arena, Var);
    var->name = arena_printf(lw->arena, "%s%d", id, lw->next_var++);
    return var;
}

/* ---- bodies -------------------------------------------------------- */

static Stmt *store_to(Lower *lw, const Expr *load, const Expr *value)
{
    return stmt_store(lw->arena, load->buffer, load->arg[0], value);
}

/* Combines `rhs` into `lhs` (loads); several values go through temporaries
 * so that all are computed before any is stored. */
static Stmt *combine(Lower *lw, Instance *in, const Expr *const *lhs,
                     const Expr *const *rhs)
{
    const Reducer *r = in->st->stage->reducer;
    Stmt *block = stmt_block(lw->arena);
    const Expr *temp[MAX_VALUES];
    for (int k = 0; k < r->count; k++) {
        const Expr *value = lower_combined(lw, in, lhs, rhs, k);
        bool is_sum = value->kind == EX_ADD && value->arg[0] == lhs[k];
        if (in->st->contract && is_sum && dtype_is_float(value->dtype) &&
            rhs[k]->kind == EX_MUL)
            value =
                expr_fma(lw->arena, rhs[k]->arg[0], rhs[k]->arg[1], lhs[k]);
        if (r->count == 1) {
            vec_push(lw->arena, &block->list, store_to(lw, lhs[k], value));
            return block;
        }
        Buffer *t = lower_temp(lw, "next", r->dtype[k], SCOPE_LOCAL, 1);
        temp[k] = expr_load(lw->arena, t, expr_int(lw->arena, 0));
        vec_push(lw->arena, &block->list, store_to(lw, temp[k], value));
    }
    for (int k = 0; k < r->count; k++)
        vec_push(lw->arena, &block->list, store_to(lw, lhs[k], temp[k]));
    return block;
}

/* Sums of products round once: x * y + z and z + x * y. */
static const Expr *contracted(Lower *lw, PtrMap *memo, const Expr *x)
{
    const Expr *known = ptrmap_get(memo, x), *arg[MAX_RANK];
    if (known || x->kind == EX_LOAD || x->kind == EX_READ || !x->count)
        return known ? known : x;
    for (int i = 0; i < x->count; i++)
        arg[i] = contracted(lw, memo, x->arg[i]);
    const Expr *result = NULL;
    for (int i = 0;
         i < 2 && x->kind == EX_ADD && dtype_is_float(x->dtype) && !result;
         i++)
        if (arg[i]->kind == EX_MUL)
            result = expr_fma(lw->arena, arg[i]->arg[0], arg[i]->arg[1],
                              arg[1 - i]);
    if (!result)
        result = expr_rebuild(lw->arena, x, arg, NULL);
    ptrmap_set(memo, x, result);
    return result;
}

static const Expr *stage_value(Lower *lw, Instance *in, int k)
{
    const Expr *value = lower_value(lw, in, in->st->stage->value[k]);
    if (!in->st->contract)
        return value;
    PtrMap memo = {0};
    value = contracted(lw, &memo, value);
    ptrmap_free(&memo);
    return value;
}

static Stmt *body(Lower *lw, Instance *in)
{
    const Stage *stage = in->st->stage;
    const Expr *lhs[MAX_VALUES], *rhs[MAX_VALUES];
    for (int k = 0; k < stage->value_count; k++)
        lhs[k] = lower_own(lw, in, k);
    if (in->phase == PHASE_UPDATE) {
        for (int k = 0; k < stage->value_count; k++)
            rhs[k] = lower_value(lw, in, stage->value[k]);
        return combine(lw, in, lhs, rhs);
    }
    Stmt *block = stmt_block(lw->arena);
    for (int k = 0; k < stage->value_count; k++) {
        const Expr *value = in->phase == PHASE_START ? stage->reducer->start[k]
                                                     : stage_value(lw, in, k);
        vec_push(lw->arena, &block->list, store_to(lw, lhs[k], value));
    }
    return block;
}

/* ---- prefetching ---------------------------------------------------- */

static const Expr *find_read(const Expr *x, const Buffer *buffer)
{
    const Expr *found = x->kind == EX_READ && x->buffer == buffer ? x : NULL;
    for (int i = 0; i < x->count && !found; i++)
        found = find_read(x->arg[i], buffer);
    return found;
}

/* The piece loop with its variable, or with none, at a place of the ranges;
 * NULL: none. */
static const PieceLoop *find_pieces(const Lower *lw, int at, bool is_single)
{
    for (int i = lw->pieces.count - 1; i >= 0; i--)
        if (lw->pieces.data[i].at == at &&
            lw->pieces.data[i].is_single == is_single)
            return &lw->pieces.data[i];
    return NULL;
}

/* Whether what is read depends on the axis that is in pieces; stages with
 * other axes than the reader's may. */
static bool depends(const Instance *in, const Expr *read, const PieceLoop *p)
{
    const Stage *stage = in->st->stage;
    return stage->axis_count != p->axis_count ||
           expr_uses_var(read, stage->axis[p->axis].var);
}

/* Loops around the stage that come back to the element `read` at `offset`, as
 * one index; *times is how often they do. With `whole`, piece loops of one
 * axis are one loop. */
static const Expr *repetition(Lower *lw, const Instance *in, const Expr *read,
                              const Expr *offset, bool whole, int64_t *times)
{
    Arena *a = lw->arena;
    const Expr *index = expr_int(a, 0);
    *times = 1;
    for (int i = in->outer_vars; i >= 0; i--) {
        const PieceLoop *single = whole ? find_pieces(lw, i, true) : NULL;
        if (single && depends(in, read, single))
            break;
        if (single) {
            index = expr_add_int(a, index, single->before * *times);
            *times *= single->total;
        }
        if (i == 0)
            break;
        VarRange v = lw->ranges.vars.data[i - 1];
        const PieceLoop *pieces = whole ? find_pieces(lw, i - 1, false) : NULL;
        if (expr_uses_var(offset, v.var))
            break;
        const Expr *turn =
            expr_add_int(a, expr_var(a, v.var), pieces ? pieces->before : 0);
        index = expr_add(a, expr_mul_int(a, turn, *times), index);
        *times *= pieces ? pieces->total : v.extent;
    }
    return index;
}

/* What one iteration of the axis at `leaf` prefetches, which is bound. */
static void prefetch(Lower *lw, Instance *in, int leaf, Stmt *block)
{
    Arena *a = lw->arena;
    const StageState *st = in->st;
    const Buffer *b = st->prefetch;
    const Expr *read = find_read(st->stage->value[0], b);
    int64_t line = 64 / (int64_t)dtype_size(b->dtype), times;
    if (!read)
        return;
    for (int i = leaf + 1; i < st->leaves.count; i++)
        axis_bind(in, st->leaves.data[i], expr_int(a, 0));
    const Expr *load = lower_value(lw, in, read);
    for (int i = leaf + 1; i < st->leaves.count; i++)
        axis_unbind(in, st->leaves.data[i]);
    if (load->kind != EX_LOAD)
        return;
    const Expr *index = repetition(lw, in, read, load->arg[0], true, &times);
    int64_t lines = (st->prefetch_step + line - 1) / line;
    int64_t share = (lines + times - 1) / times;
    Interval turns = interval_of(&lw->ranges, index);
    /* All was fetched before the last pieces come: they do it once more, as
     * what came early may be gone. */
    if (turns.known && turns.min > (lines - 1) / share) {
        index = repetition(lw, in, read, load->arg[0], false, &times);
        share = (lines + times - 1) / times;
    }
    /* More rounds than shares: the rest would go too far. */
    if (times * share > lines)
        index = expr_min(a, index, expr_int(a, (lines - 1) / share));
    const Expr *at = expr_add_int(
        a, expr_add(a, load->arg[0], expr_mul_int(a, index, share * line)),
        st->prefetch_ahead);
    for (int64_t i = 0; i < share; i++)
        vec_push(a, &block->list,
                 stmt_prefetch(a, b,
                               simplify_index(&lw->ranges,
                                              expr_add_int(a, at, i * line))));
}

/* ---- nests --------------------------------------------------------- */

static Stmt *nest(Lower *lw, Instance *in, int leaf);

/* The variable decides between expressions. */
static bool selects_by(const Expr *x, const Var *var)
{
    bool found = x->kind == EX_SELECT && expr_uses_var(x->arg[0], var);
    for (int i = 0; i < x->count && !found && x->kind != EX_READ; i++)
        found = selects_by(x->arg[i], var);
    return found;
}

/* Iterations of an unrolled loop that differ in more than numbers are written
 * out here, each with just its own expressions. */
static bool is_written_out(const StageState *st, const LoopAxis *axis)
{
    bool found = false;
    for (int k = 0; k < st->stage->value_count && !found; k++)
        found = axis->kind == LOOP_UNROLLED && axis->root &&
                selects_by(st->stage->value[k], axis->root);
    return found;
}

/* A loop over `axis` of `count` iterations (or as many as `limit` says, where
 * it is not NULL) around the rest of the nest. */
static Stmt *loop(Lower *lw, Instance *in, int leaf, int64_t count,
                  const Expr *limit, Stmt *(*inside)(Lower *, Instance *, int))
{
    Arena *a = lw->arena;
    LoopAxis *axis = in->st->leaves.data[leaf];
    if (count == 1) {
        axis_bind(in, axis, expr_int(a, 0));
        Stmt *s = inside(lw, in, leaf);
        axis_unbind(in, axis);
        if (!limit)
            return s;
        return stmt_if(a, expr_binary(a, EX_LT, expr_int(a, 0), limit), s);
    }
    if (!limit && is_written_out(in->st, axis)) {
        Stmt *block = stmt_block(a);
        for (int64_t i = 0; i < count; i++) {
            axis_bind(in, axis, expr_int(a, i));
            vec_push(a, &block->list, inside(lw, in, leaf));
        }
        axis_unbind(in, axis);
        return block;
    }
    const Var *var = lower_new_var(lw, axis->name);
    vec_push(lw->arena, &lw->ranges.vars, ((VarRange){var, count}));
    axis_bind(in, axis, expr_var(lw->arena, var));
    /* What is written out needs a number of times. */
    LoopKind kind =
        limit && axis->kind == LOOP_UNROLLED ? LOOP_SERIAL : axis->kind;
    Stmt *s =
        stmt_for_limited(a, kind, var, count, limit, inside(lw, in, leaf));
    axis_unbind(in, axis);
    lw->ranges.vars.count--;
    return s;
}

/* Stages that are computed at this loop, then the rest of the nest. */
static Stmt *after_loop(Lower *lw, Instance *in, int leaf)
{
    Schedule *s = lw->schedule;
    int temps = lw->temps.count;
    Stmt *block = stmt_block(lw->arena);
    Vec(Instance *) inside = {0};
    if (in->phase == PHASE_VALUE) {
        /* Consumers first: a region follows from who reads it, be it here
         * or in a loop further in, perhaps of a stage in between. */
        Vec(Instance *) readers = {0};
        for (int i = s->stages.count - 1; i >= 0; i--) {
            StageState *st = s->stages.data[i], *direct = st;
            while (direct->at && direct->at != in->st)
                direct = direct->at;
            if (st->is_inlined || !direct->at ||
                stage_leaf_index(in->st, direct->at_axis) < leaf)
                continue;
            Instance *part = instance_new(lw, st);
            region_of(lw, part, in);
            for (int k = 0; k < readers.count; k++)
                region_of(lw, part, readers.data[k]);
            region_end(lw, part);
            vec_push(lw->arena, &readers, part);
            if (st == direct && st->at_axis == in->st->leaves.data[leaf])
                vec_push(lw->arena, &inside, part);
        }
        for (int i = inside.count - 1; i >= 0; i--)
            instance_add_temps(lw, inside.data[i]);
        for (int i = inside.count - 1; i >= 0; i--) {
            inside.data[i]->outer_vars = lw->ranges.vars.count;
            vec_push(lw->arena, &block->list, nest(lw, inside.data[i], 0));
        }
    }
    if (in->phase == PHASE_UPDATE && in->st->prefetch &&
        in->st->prefetch_axis == in->st->leaves.data[leaf])
        prefetch(lw, in, leaf, block);
    Stmt *rest = nest(lw, in, leaf + 1);
    lw->temps.count = temps;
    if (!block->list.count)
        return rest;
    vec_push(lw->arena, &block->list, rest);
    return block;
}

/* Which axis of the stage a loop is a part of; -1: of none, or of several. */
static int place_of_root(const StageState *st, const LoopAxis *axis)
{
    while (axis->split_from)
        axis = axis->split_from;
    for (int i = 0; axis->root && i < st->stage->axis_count; i++)
        if (st->stage->axis[i].var == axis->root)
            return i;
    return -1;
}

/* Notes that the loop, or what a block has for each piece of its axis, may run
 * in any order. */
static void mark_independent(Lower *lw, const Instance *in,
                             const LoopAxis *axis, const Stmt *s,
                             const Segment *segment, int count)
{
    if (in->st->at || in->phase != PHASE_VALUE || axis->is_reduce ||
        (count == 1 && (segment[0].count < 2 || s->kind != STMT_FOR)))
        return;
    PieceCounts *pieces = ARENA_NEW(lw->arena, PieceCounts);
    pieces->count = count;
    for (int i = 0; i < count; i++)
        pieces->times[i] = segment[i].count;
    ptrmap_set(&lw->independent, s, pieces);
}

static Stmt *reduce_lanes(Lower *lw, Instance *in);

static Stmt *nest(Lower *lw, Instance *in, int leaf)
{
    StageState *st = in->st;
    if (leaf == st->leaves.count)
        return body(lw, in);
    LoopAxis *axis = st->leaves.data[leaf];
    if (axis->is_reduce && in->phase == PHASE_VALUE) {
        if (st->lane_axis == axis)
            return reduce_lanes(lw, in);
        if (st->lane_axis) {
            /* Others have a single iteration then. */
            axis_bind(in, axis, expr_int(lw->arena, 0));
            Stmt *inside = nest(lw, in, leaf + 1);
            axis_unbind(in, axis);
            return inside;
        }
        Stmt *block = stmt_block(lw->arena);
        in->phase = PHASE_START;
        vec_push(lw->arena, &block->list, nest(lw, in, leaf));
        in->phase = PHASE_UPDATE;
        vec_push(lw->arena, &block->list, nest(lw, in, leaf));
        in->phase = PHASE_VALUE;
        return block;
    }
    if (axis->is_reduce && in->phase == PHASE_START)
        return nest(lw, in, leaf + 1);
    if (!axis->split_from || axis->split_from->outer != axis) {
        Segment all = {.count = axis_extent(in, axis)};
        Stmt *s = loop(lw, in, leaf, all.count, axis_limit(lw, in, axis),
                       after_loop);
        mark_independent(lw, in, axis, s, &all, 1);
        return s;
    }
    /* One nest a piece size. */
    Segment segment[MAX_SEGMENTS];
    int count = axis_segments(lw, in, axis, segment);
    Stmt *block = stmt_block(lw->arena);
    PieceLoop pieces = {.at = lw->ranges.vars.count,
                        .axis = place_of_root(st, axis),
                        .axis_count = st->stage->axis_count};
    for (int i = 0; i < count; i++)
        pieces.total += segment[i].count;
    bool is_known = pieces.axis >= 0 && count > 1 && !segment[0].limit;
    for (int i = 0; i < count; i++) {
        axis_set_segment(in, axis, &segment[i]);
        pieces.is_single = segment[i].count == 1;
        if (is_known)
            vec_push(lw->arena, &lw->pieces, pieces);
        vec_push(lw->arena, &block->list,
                 loop(lw, in, leaf, segment[i].count, segment[i].limit,
                      after_loop));
        lw->pieces.count -= is_known;
        pieces.before += segment[i].count;
        axis_set_segment(in, axis, NULL);
    }
    Stmt *all = count == 1 ? block->list.data[0] : block;
    mark_independent(lw, in, axis, all, segment, count);
    return all;
}

/* ---- reductions in lanes ------------------------------------------- */

/* One vector loop that combines `rhs` (values of the stage at reduction
 * index base + lane, or lane + `from` of the partial results) into the
 * lanes 0 to count - 1, or to limit - 1 where that is not NULL. */
static Stmt *lane_loop(Lower *lw, Instance *in, Buffer *const *acc,
                       int64_t count, const Expr *limit, const Expr *base,
                       int64_t from)
{
    Arena *a = lw->arena;
    const Stage *stage = in->st->stage;
    const Var *var = lower_new_var(lw, "lane");
    const Expr *lane = expr_var(a, var);
    if (count == 1 && !limit)
        lane = expr_int(a, 0);
    vec_push(a, &lw->ranges.vars, ((VarRange){var, count}));
    const Expr *lhs[MAX_VALUES], *rhs[MAX_VALUES];
    if (base)
        axis_bind(in, in->st->lane_axis, expr_add(a, base, lane));
    for (int k = 0; k < stage->value_count; k++) {
        lhs[k] = expr_load(a, acc[k], lane);
        rhs[k] = base ? lower_value(lw, in, stage->value[k])
                      : expr_load(a, acc[k], expr_add_int(a, lane, from));
    }
    Stmt *s = combine(lw, in, lhs, rhs);
    if (base)
        axis_unbind(in, in->st->lane_axis);
    lw->ranges.vars.count--;
    return count == 1 && !limit
               ? s
               : stmt_for_limited(a, LOOP_VECTOR, var, count, limit, s);
}

static Stmt *reduce_lanes(Lower *lw, Instance *in)
{
    Arena *a = lw->arena;
    const Stage *stage = in->st->stage;
    LoopAxis *axis = in->st->lane_axis;
    const Expr *limit = axis_limit(lw, in, axis);
    int64_t extent = axis_extent(in, axis), lanes = in->st->lanes;
    while (lanes > extent && lanes > 1)
        lanes /= 2;
    Buffer *acc[MAX_VALUES];
    Stmt *block = stmt_block(a);
    for (int k = 0; k < stage->value_count; k++) {
        acc[k] = lower_temp(lw, "lanes", stage->reducer->dtype[k], SCOPE_LOCAL,
                            lanes);
        const Var *var = lower_new_var(lw, "lane");
        vec_push(a, &block->list,
                 stmt_for(a, LOOP_VECTOR, var, lanes,
                          stmt_store(a, acc[k], expr_var(a, var),
                                     stage->reducer->start[k])));
    }
    in->phase = PHASE_UPDATE;
    int64_t full = extent / lanes;
    const Var *var = lower_new_var(lw, axis->name);
    vec_push(a, &lw->ranges.vars, ((VarRange){var, full}));
    const Expr *base = expr_mul_int(a, expr_var(a, var), lanes);
    const Expr *by = expr_int(a, lanes);
    vec_push(a, &block->list,
             stmt_for_limited(a, LOOP_SERIAL, var, full,
                              limit ? expr_div(a, limit, by) : NULL,
                              lane_loop(lw, in, acc, lanes, NULL, base, 0)));
    lw->ranges.vars.count--;
    if (limit) {
        const Expr *rest = expr_binary(a, EX_MOD, limit, by);
        vec_push(
            a, &block->list,
            lane_loop(lw, in, acc, lanes, rest, expr_sub(a, limit, rest), 0));
    } else if (extent % lanes) {
        vec_push(a, &block->list,
                 lane_loop(lw, in, acc, extent % lanes, NULL,
                           expr_int(a, full * lanes), 0));
    }
    for (int64_t half = lanes / 2; half >= 1; half /= 2)
        vec_push(a, &block->list,
                 lane_loop(lw, in, acc, half, NULL, NULL, half));
    in->phase = PHASE_VALUE;
    for (int k = 0; k < stage->value_count; k++)
        vec_push(a, &block->list,
                 store_to(lw, lower_own(lw, in, k),
                          expr_load(a, acc[k], expr_int(a, 0))));
    return block;
}

/* ---- kernels ------------------------------------------------------- */

Buffer *lower_temp(Lower *lw, const char *name, DType dtype, Scope scope,
                   int64_t size)
{
    Buffer *b = ARENA_NEW(lw->arena, Buffer);
    b->name = arena_printf(lw->arena, "%s_%d", name, lw->next_temp++);
    b->role = BUF_TEMP;
    b->dtype = dtype;
    b->rank = 1;
    b->dims[0] = size;
    b->layout = layout_row_major(1);
    b->scope = scope;
    vec_push(lw->arena, &lw->kernel->temps, b);
    return b;
}

static void add_params(Kernel *k, const Schedule *s, BufferRole role)
{
    for (int i = 0; i < s->def->buffers.count; i++) {
        Buffer *b = s->def->buffers.data[i];
        if (b->role != role)
            continue;
        if (role == BUF_TEMP) {
            bool live = false;
            for (int j = 0; j < s->stages.count; j++) {
                const StageState *st = s->stages.data[j];
                for (int v = 0; v < st->stage->value_count; v++)
                    live |=
                        st->stage->out[v] == b && !st->is_inlined && !st->at;
            }
            if (!live)
                continue;
        }
        vec_push(k->arena, &k->params, b);
    }
}

Kernel *schedule_lower(Schedule *s, Arena *arena)
{
    Kernel *k = ARENA_NEW(arena, Kernel);
    k->arena = arena;
    k->fused_math = s->fused_math;
    add_params(k, s, BUF_INPUT);
    add_params(k, s, BUF_OUTPUT);
    add_params(k, s, BUF_TEMP);
    k->body = stmt_block(arena);
    Lower lw = {.arena = arena, .schedule = s, .kernel = k};
    lw.ranges.arena = arena;
    for (int i = 0; i < s->stages.count; i++) {
        StageState *st = s->stages.data[i];
        if (st->is_inlined || st->at)
            continue;
        Instance *in = instance_new(&lw, st);
        for (int d = 0; d < st->stage->axis_count; d++) {
            in->base[d] = expr_int(arena, 0);
            in->extent[d] = st->stage->axis[d].extent;
            const Expr *limit = st->stage->axis[d].limit;
            in->limit[d] = limit ? lower_limit(&lw, limit) : NULL;
        }
        vec_push(arena, &k->body->list, nest(&lw, in, 0));
    }
    share_work(&lw);
    ptrmap_free(&lw.independent);
    k->flops = definition_flops(s->def);
    k->bytes = definition_bytes(s->def);
    k->hash = kernel_hash(k);
    k->name = arena_printf(arena, "%s_%08x", s->def->name,
                           (unsigned)(k->hash >> 32));
    return k;
}
