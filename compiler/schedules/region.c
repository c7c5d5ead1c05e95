/* Axes while a nest is built, and which region of a stage is needed. */
#include "schedules/region.h"

#include <string.h>

static AxisState *state_of(Instance *in, const LoopAxis *axis)
{
    for (int i = 0; i < in->axes.count; i++)
        if (in->axes.data[i].axis == axis)
            return &in->axes.data[i];
    die("stage %s has no axis %s", in->st->stage->name, axis->name);
}

static void add_axis(Lower *lw, Instance *in, const LoopAxis *axis)
{
    for (int i = 0; i < in->axes.count; i++)
        if (in->axes.data[i].axis == axis)
            return;
    vec_push(lw->arena, &in->axes, ((AxisState){.axis = axis}));
    if (axis->use == AXIS_SPLIT) {
        add_axis(lw, in, axis->outer);
        add_axis(lw, in, axis->inner);
    } else if (axis->use == AXIS_FUSED) {
        add_axis(lw, in, axis->fused);
    }
}

Instance *instance_new(Lower *lw, StageState *st)
{
    Instance *in = ARENA_NEW(lw->arena, Instance);
    in->st = st;
    for (int i = 0; i < st->roots.count; i++)
        add_axis(lw, in, st->roots.data[i]);
    return in;
}

int64_t axis_extent(const Instance *in, const LoopAxis *axis)
{
    if (axis->root) {
        if (axis->is_reduce)
            return axis->extent;
        for (int i = 0; i < in->st->stage->axis_count; i++)
            if (in->st->roots.data[i] == axis)
                return in->extent[i];
        die("stage %s lost its axis %s", in->st->stage->name, axis->name);
    }
    if (axis->fuse_first)
        return axis_extent(in, axis->fuse_first) *
               axis_extent(in, axis->fuse_second);
    const LoopAxis *from = axis->split_from;
    int64_t whole = axis_extent(in, from);
    int64_t size = from->factor < whole ? from->factor : whole;
    if (axis == from->outer)
        return (whole + size - 1) / size;
    const AxisState *outer = state_of((Instance *)in, from->outer);
    return outer->segment.size ? outer->segment.size : size;
}

static const Expr *count_of(Lower *lw, Instance *in, const LoopAxis *axis)
{
    const Expr *limit = axis_limit(lw, in, axis);
    return limit ? limit : expr_int(lw->arena, axis_extent(in, axis));
}

static const Expr *value_of(Lower *lw, Instance *in, const LoopAxis *axis);

/* All loops that the axis comes from are open here. */
static bool is_bound(Instance *in, const LoopAxis *axis)
{
    if (axis->use == AXIS_LEAF)
        return state_of(in, axis)->value != NULL;
    if (axis->use == AXIS_FUSED)
        return is_bound(in, axis->fused);
    return is_bound(in, axis->outer) && is_bound(in, axis->inner);
}

const Expr *axis_limit(Lower *lw, Instance *in, const LoopAxis *axis)
{
    Arena *a = lw->arena;
    if (!axis_is_limited(axis))
        return NULL;
    if (axis->root && axis->is_reduce)
        return lower_limit(lw, axis->limit);
    if (axis->root) {
        for (int i = 0; i < in->st->stage->axis_count; i++)
            if (in->st->roots.data[i] == axis)
                return in->limit[i];
        die("stage %s lost its axis %s", in->st->stage->name, axis->name);
    }
    if (axis->fuse_first)
        return expr_mul(a, count_of(lw, in, axis->fuse_first),
                        count_of(lw, in, axis->fuse_second));
    const LoopAxis *from = axis->split_from;
    const Expr *limit = axis_limit(lw, in, from);
    if (!limit)
        return NULL; /* the region is a whole piece */
    int64_t whole = axis_extent(in, from);
    int64_t size = from->factor < whole ? from->factor : whole;
    if (axis == from->outer)
        return expr_div(a, expr_add_int(a, limit, size - 1),
                        expr_int(a, size));
    if (from->even || from->padded)
        return NULL; /* pieces are whole */
    if (!is_bound(in, from->outer))
        return limit;
    const Expr *outer = value_of(lw, in, from->outer);
    return simplify_index(&lw->ranges,
                          expr_sub(a, limit, expr_mul_int(a, outer, size)));
}

/* Full pieces, then one of half, quarter ... their size where it is needed:
 * each of a known size, and together as many elements as there are. */
static int limited_segments(Lower *lw, const Expr *limit, int64_t whole,
                            int64_t factor, Segment *segment)
{
    Arena *a = lw->arena;
    int count = 0;
    int64_t size = factor < whole ? factor : whole, above = size;
    segment[count++] = (Segment){0, whole / size, size, expr_int(a, 0),
                                 expr_div(a, limit, expr_int(a, size))};
    const Expr *left = expr_binary(a, EX_MOD, limit, expr_int(a, above));
    int64_t piece = 1;
    while (piece * 2 < size)
        piece *= 2;
    for (; piece && size > 1; piece /= 2) {
        const Expr *rest =
            above == size ? left
                          : expr_binary(a, EX_MOD, left, expr_int(a, above));
        if (count == MAX_SEGMENTS)
            die("a tile of %lld rows", (long long)size);
        segment[count++] = (Segment){0, 1, piece, expr_sub(a, limit, rest),
                                     expr_div(a, rest, expr_int(a, piece))};
        above = piece;
    }
    return count;
}

/* Pieces as of an axis without a limit, those behind it left out. */
static int padded_segments(Lower *lw, const Expr *limit, int64_t whole,
                           int64_t factor, Segment *segment)
{
    Arena *a = lw->arena;
    int64_t full = whole / factor, rest = whole % factor;
    int count = 0;
    if (full)
        segment[count++] =
            (Segment){0, full, factor, NULL,
                      expr_div(a, expr_add_int(a, limit, factor - 1),
                               expr_int(a, factor))};
    if (rest)
        segment[count++] = (Segment){full * factor, 1, rest, NULL,
                                     expr_add_int(a, limit, -full * factor)};
    return count;
}

int axis_segments(Lower *lw, Instance *in, const LoopAxis *outer,
                  Segment segment[MAX_SEGMENTS])
{
    const LoopAxis *from = outer->split_from;
    int64_t whole = axis_extent(in, from), factor = from->factor;
    const Expr *limit = axis_limit(lw, in, from);
    int count = 0;
    if (whole == 0)
        return 0;
    if (limit && from->even)
        return limited_segments(lw, limit, whole, factor, segment);
    if (limit && from->padded)
        return padded_segments(lw, limit, whole, factor, segment);
    if (limit) {
        int64_t size = factor < whole ? factor : whole;
        segment[0] =
            (Segment){0, (whole + size - 1) / size, size,
                      expr_int(lw->arena, 0), axis_limit(lw, in, outer)};
        return 1;
    }
    if (from->even) {
        int64_t pieces = (whole + factor - 1) / factor;
        int64_t size = whole / pieces, larger = whole % pieces;
        if (larger)
            segment[count++] = (Segment){0, larger, size + 1, NULL, NULL};
        segment[count++] =
            (Segment){larger * (size + 1), pieces - larger, size, NULL, NULL};
        return count;
    }
    int64_t full = whole / factor, rest = whole % factor;
    if (full)
        segment[count++] = (Segment){0, full, factor, NULL, NULL};
    if (rest)
        segment[count++] = (Segment){full * factor, 1, rest, NULL, NULL};
    return count;
}

void axis_set_segment(Instance *in, const LoopAxis *outer,
                      const Segment *segment)
{
    state_of(in, outer)->segment = segment ? *segment : (Segment){0};
}

void axis_bind(Instance *in, const LoopAxis *axis, const Expr *value)
{
    state_of(in, axis)->value = value;
}

void axis_unbind(Instance *in, const LoopAxis *axis)
{
    state_of(in, axis)->value = NULL;
}

/* Piece size and start of a split axis at this point. */
static Segment split_segment(Instance *in, const LoopAxis *axis)
{
    const AxisState *outer = state_of(in, axis->outer);
    if (outer->segment.size)
        return outer->segment;
    int64_t whole = axis_extent(in, axis);
    int64_t size = axis->factor < whole || !whole ? axis->factor : whole;
    if (whole % size && !axis_is_limited(axis))
        die("stage %s: %s of %lld does not divide by %lld below another "
            "split",
            in->st->stage->name, axis->name, (long long)whole,
            (long long)size);
    return (Segment){0, (whole + size - 1) / size, size, NULL, NULL};
}

static const Expr *segment_start(Arena *a, const Segment *seg,
                                 const Expr *outer)
{
    const Expr *at = expr_mul_int(a, outer, seg->size);
    return seg->start ? expr_add(a, at, seg->start)
                      : expr_add_int(a, at, seg->offset);
}

static const Expr *value_of(Lower *lw, Instance *in, const LoopAxis *axis)
{
    Arena *a = lw->arena;
    if (axis->use == AXIS_LEAF) {
        const Expr *value = state_of(in, axis)->value;
        if (!value)
            die("stage %s: loop %s is not bound", in->st->stage->name,
                axis->name);
        return value;
    }
    if (axis->use == AXIS_FUSED) {
        const Expr *f = value_of(lw, in, axis->fused);
        const LoopAxis *first = axis->fused->fuse_first;
        /* Of one iteration outside, the number of those inside does not
         * matter; it may be known at run time only. */
        if (axis_extent(in, first) == 1 && !axis_is_limited(first))
            return first == axis ? expr_int(a, 0) : f;
        const Expr *inner =
            expr_int(a, axis_extent(in, axis->fused->fuse_second));
        return axis->fused->fuse_first == axis
                   ? expr_div(a, f, inner)
                   : expr_binary(a, EX_MOD, f, inner);
    }
    const Expr *outer = value_of(lw, in, axis->outer);
    const Expr *inner = value_of(lw, in, axis->inner);
    Segment seg = split_segment(in, axis);
    return expr_add(a, segment_start(a, &seg, outer), inner);
}

static int spatial_index(const Instance *in, const LoopAxis *root)
{
    for (int i = 0; i < in->st->stage->axis_count; i++)
        if (in->st->roots.data[i] == root)
            return i;
    return -1;
}

const Expr *axis_value(Lower *lw, Instance *in, const LoopAxis *root)
{
    const Expr *value = value_of(lw, in, root);
    int d = spatial_index(in, root);
    if (d >= 0)
        value = expr_add(lw->arena, in->base[d], value);
    return simplify_index(&lw->ranges, value);
}

/* base .. base + extent - 1, or to base + limit - 1 */
typedef struct Range {
    const Expr *base;
    int64_t extent;
    const Expr *limit; /* NULL: none */
    bool is_inside;    /* of an axis with this many elements: */
    int64_t whole;
} Range;

static bool is_bound_inside(Instance *in, const LoopAxis *axis)
{
    switch (axis->use) {
    case AXIS_LEAF:
        return state_of(in, axis)->value != NULL;
    case AXIS_SPLIT:
        return is_bound_inside(in, axis->outer) ||
               is_bound_inside(in, axis->inner);
    default:
        return is_bound_inside(in, axis->fused);
    }
}

static Range range_of_axis(Lower *lw, Instance *in, const LoopAxis *axis)
{
    Arena *a = lw->arena;
    Range whole = {.base = expr_int(a, 0),
                   .extent = axis_extent(in, axis),
                   .limit = axis_limit(lw, in, axis)};
    /* What is computed of it, with what means nothing. */
    if (axis->use == AXIS_SPLIT && axis->padded && whole.limit) {
        const Expr *size = expr_int(a, axis->factor);
        whole.limit = expr_mul(
            a,
            expr_div(a, expr_add_int(a, whole.limit, axis->factor - 1), size),
            size);
    }
    if (!is_bound_inside(in, axis))
        return whole;
    if (axis->use == AXIS_LEAF)
        return (Range){.base = state_of(in, axis)->value, .extent = 1};
    if (axis->use == AXIS_FUSED) {
        Range f = range_of_axis(lw, in, axis->fused);
        if (f.extent == 1)
            return (Range){.base = value_of(lw, in, axis), .extent = 1};
        return whole;
    }
    Range outer = range_of_axis(lw, in, axis->outer);
    if (!is_bound_inside(in, axis->outer))
        return whole;
    Range inner = range_of_axis(lw, in, axis->inner);
    Segment seg = split_segment(in, axis);
    if (outer.limit)
        return whole;
    return (Range){
        .base = expr_add(a, segment_start(a, &seg, outer.base), inner.base),
        .extent = (outer.extent - 1) * seg.size + inner.extent,
        .limit = outer.extent == 1 ? inner.limit : NULL};
}

/* The limit of a sum of two ranges. */
static const Expr *sum_limit(Arena *a, const Range *p, const Range *q)
{
    if (!p->limit && !q->limit)
        return NULL;
    const Expr *x = p->limit ? p->limit : expr_int(a, p->extent);
    const Expr *y = q->limit ? q->limit : expr_int(a, q->extent);
    return expr_add_int(a, expr_add(a, x, y), -1);
}

static bool is_multiple(Lower *lw, const Expr *x, const Expr *of)
{
    return of->i > 0 &&
           expr_is_int(simplify_index(&lw->ranges,
                                      expr_binary(lw->arena, EX_MOD, x, of)),
                       0);
}

/* The values of an index expression; false when they do not form a range
 * of known size. */
static bool range_of_expr(Lower *lw, Instance *in, const Expr *x, Range *out)
{
    Arena *a = lw->arena;
    Range p, q;
    switch (x->kind) {
    case EX_INT:
        *out = (Range){.base = x, .extent = 1};
        return true;
    case EX_VAR:
        for (int i = 0; i < in->st->roots.count; i++) {
            const LoopAxis *root = in->st->roots.data[i];
            if (root->root != x->var)
                continue;
            *out = range_of_axis(lw, in, root);
            int d = spatial_index(in, root);
            if (d >= 0)
                out->base = expr_add(a, in->base[d], out->base);
            out->is_inside = axis_is_limited(root);
            out->whole = root->extent;
            return true;
        }
        return false;
    case EX_ADD:
        if (!range_of_expr(lw, in, x->arg[0], &p) ||
            !range_of_expr(lw, in, x->arg[1], &q))
            return false;
        *out = (Range){.base = expr_add(a, p.base, q.base),
                       .extent = p.extent + q.extent - 1,
                       .limit = sum_limit(a, &p, &q)};
        return true;
    case EX_MUL:
        if (x->arg[1]->kind != EX_INT || x->arg[1]->i < 1 ||
            !range_of_expr(lw, in, x->arg[0], &p))
            return false;
        *out = (Range){.base = expr_mul(a, p.base, x->arg[1]),
                       .extent = (p.extent - 1) * x->arg[1]->i + 1};
        if (p.limit)
            out->limit = expr_add_int(
                a, expr_mul(a, expr_add_int(a, p.limit, -1), x->arg[1]), 1);
        return true;
    case EX_DIV:
    case EX_MOD:
        if (x->arg[1]->kind != EX_INT || !range_of_expr(lw, in, x->arg[0], &p))
            return false;
        /* Several: tiles that start at a multiple, or a part of one. */
        if (p.extent != 1 && (p.limit || !is_multiple(lw, p.base, x->arg[1]) ||
                              (x->kind == EX_MOD && p.extent > x->arg[1]->i)))
            return false;
        *out = (Range){.base = expr_binary(a, x->kind, p.base, x->arg[1]),
                       .extent =
                           x->kind == EX_MOD
                               ? p.extent
                               : (p.extent + x->arg[1]->i - 1) / x->arg[1]->i};
        return true;
    default:
        return false;
    }
}

/* The limit of two regions of one base together, the second `shift` behind
 * the first, from the lower one of both on. */
static const Expr *union_limit(Arena *a, const Instance *part, int d,
                               const Range *r, int64_t shift)
{
    const Expr *x = part->limit[d], *y = r->limit;
    if (!x && !y)
        return NULL;
    x = x ? x : expr_int(a, part->extent[d]);
    y = y ? y : expr_int(a, r->extent);
    if (shift < 0)
        x = expr_add_int(a, x, -shift);
    else
        y = expr_add_int(a, y, shift);
    return expr_equal(x, y) ? x : expr_max(a, x, y);
}

/* All that there is. */
static void take_whole(Lower *lw, Instance *part, int d)
{
    const Axis *axis = &part->st->stage->axis[d];
    part->base[d] = expr_int(lw->arena, 0);
    part->extent[d] = axis->extent;
    part->limit[d] = axis->limit ? lower_limit(lw, axis->limit) : NULL;
}

static void widen(Lower *lw, Instance *part, int d, bool known, Range r)
{
    int64_t whole = part->st->stage->axis[d].extent, shift;
    bool is_inside = known && r.is_inside && r.whole <= whole;
    if (known)
        r.base = simplify_index(&lw->ranges, r.base);
    if (known && !part->has_region) {
        part->base[d] = r.base;
        part->extent[d] = r.extent;
        part->limit[d] = r.limit;
        part->is_inside[d] = is_inside;
    } else if (known && simplify_difference(&lw->ranges, part->base[d], r.base,
                                            &shift)) {
        part->limit[d] = union_limit(lw->arena, part, d, &r, shift);
        part->is_inside[d] = part->is_inside[d] && is_inside;
        int64_t low = shift < 0 ? shift : 0;
        int64_t end = shift + r.extent;
        if (end < part->extent[d])
            end = part->extent[d];
        if (shift < 0)
            part->base[d] = r.base;
        part->extent[d] = end - low;
    } else {
        take_whole(lw, part, d);
    }
}

static void widen_by_reads(Lower *lw, Instance *part, Instance *user,
                           PtrMap *seen, const Expr *x)
{
    if (ptrmap_get(seen, x))
        return;
    ptrmap_set(seen, x, x);
    for (int i = 0; i < x->count; i++)
        widen_by_reads(lw, part, user, seen, x->arg[i]);
    if (x->outside)
        widen_by_reads(lw, part, user, seen, x->outside);
    if (x->kind != EX_READ)
        return;
    const Stage *stage = part->st->stage;
    for (int k = 0; k < stage->value_count; k++) {
        if (stage->out[k] != x->buffer)
            continue;
        for (int d = 0; d < x->count; d++) {
            Range r = {0};
            bool known = range_of_expr(lw, user, x->arg[d], &r);
            widen(lw, part, d, known, r);
        }
        part->has_region = true;
    }
}

void region_of(Lower *lw, Instance *part, Instance *user)
{
    PtrMap seen = {0};
    for (int k = 0; k < user->st->stage->value_count; k++)
        widen_by_reads(lw, part, user, &seen, user->st->stage->value[k]);
    ptrmap_free(&seen);
}

void region_end(Lower *lw, Instance *part)
{
    const Stage *stage = part->st->stage;
    for (int d = 0; d < stage->axis_count; d++) {
        int64_t whole = stage->axis[d].extent;
        if (!part->has_region) {
            part->base[d] = expr_int(lw->arena, 0);
            part->extent[d] = 1;
            part->limit[d] = NULL;
            continue;
        }
        /* Where a piece starts may be known at run time only. */
        if (part->is_inside[d])
            continue;
        Interval base = interval_of(&lw->ranges, part->base[d]);
        if (!base.known || base.min < 0 || base.max + part->extent[d] > whole)
            take_whole(lw, part, d);
        int64_t lanes = part->st->pad_lanes;
        if (part->st->padded == stage->axis[d].var)
            part->extent[d] = (part->extent[d] + lanes - 1) / lanes * lanes;
    }
}

/* The last loop that moves along the axis. */
static int last_leaf(const StageState *st, const LoopAxis *axis)
{
    if (axis->use == AXIS_LEAF)
        return stage_leaf_index(st, axis);
    if (axis->use == AXIS_FUSED)
        return last_leaf(st, axis->fused);
    int outer = last_leaf(st, axis->outer);
    int inner = last_leaf(st, axis->inner);
    return outer > inner ? outer : inner;
}

void instance_add_temps(Lower *lw, Instance *in)
{
    const Stage *stage = in->st->stage;
    int order[MAX_RANK], n = stage->axis_count;
    int64_t size = 1;
    for (int i = 0; i < n; i++) {
        int leaf = last_leaf(in->st, in->st->roots.data[i]), j = i;
        for (; j > 0 &&
               last_leaf(in->st, in->st->roots.data[order[j - 1]]) > leaf;
             j--)
            order[j] = order[j - 1];
        order[j] = i;
        size *= in->extent[i];
    }
    for (int k = 0; k < stage->value_count; k++) {
        TempInstance t = {.of = stage->out[k]};
        t.buffer = lower_temp(lw, stage->out[k]->name, stage->out[k]->dtype,
                              in->st->scope, size);
        t.buffer->rank = n;
        for (int i = 0; i < n; i++) {
            t.buffer->dims[i] = in->extent[i];
            t.base[i] = in->base[i];
        }
        /* The innermost loop runs along contiguous elements, unless the
         * schedule gave an order. */
        const Layout *given = &stage->out[k]->layout;
        t.buffer->layout =
            layout_is_row_major(given, n) ? layout_permuted(n, order) : *given;
        vec_push(lw->arena, &lw->temps, t);
    }
}
