/* Rows: softmax, normalization and other reductions over the contiguous
 * axis, all stages of a row together while it is in cache. Each reduction
 * runs in several vectors of partial results. */
#include <string.h>

#include "schedules/templates.h"

/* `x` reads memory along reduction axis `r`, or a part of a row that was
 * computed just before, which holds nothing but the row. */
static bool reads_along(const StageState *st, int r, const Expr *x)
{
    const Stage *stage = st->stage;
    if (x->kind == EX_READ) {
        const Layout *l = &x->buffer->layout;
        for (int d = 0; d < x->count; d++)
            if (x->arg[d]->kind == EX_VAR &&
                x->arg[d]->var == stage->reduce[r].var &&
                (l->dim[l->count - 1].axis == d ||
                 x->buffer->role == BUF_TEMP))
                return true;
    }
    for (int i = 0; i < x->count; i++)
        if (reads_along(st, r, x->arg[i]))
            return true;
    return false;
}

/* The only reduction axis with more than one element, when memory runs along
 * it; -1 for none. */
static int contiguous_reduction(const StageState *st)
{
    const Stage *stage = st->stage;
    int only = -1;
    for (int i = 0; i < stage->reduce_count; i++) {
        if (stage->reduce[i].extent == 1)
            continue;
        if (only >= 0)
            return -1;
        only = i;
    }
    return only >= 0 && reads_along(st, only, stage->value[0]) ? only : -1;
}

/* Partial results in `sums` vectors of lanes, the axis innermost. */
static bool reduce_in_lanes(Look *look, StageState *r, int axis, int sums)
{
    Schedule *s = look->s;
    const Stage *stage = r->stage;
    const char *names[2 * MAX_RANK];
    int n = 0;
    for (int i = 0; i < r->roots.count; i++)
        if (i != stage->axis_count + axis)
            names[n++] = r->roots.data[i]->name;
    names[n++] = r->roots.data[stage->axis_count + axis]->name;
    return (stage->reduce_count == 1 ||
            schedule_reorder(s, stage->name, look_order(look, names, n))) &&
           schedule_reduce_lanes(s, stage->name, names[n - 1],
                                 sums * look->lanes);
}

static int common_axes(const Stage *stage, const Stage *out, int most)
{
    int n = 0;
    while (n < stage->axis_count && n < most &&
           look_same_extent(&stage->axis[n], &out->axis[n]))
        n++;
    return n;
}

/* Axes of the output that the reductions have, too (rows): those over
 * which every reduction stage has the same extent, up to the first that
 * differs. */
static int row_axes(const Look *look)
{
    const Stage *out = look->out->stage;
    int rows = out->axis_count;
    for (int k = 0; k < look->reductions.count; k++)
        rows = common_axes(look->reductions.data[k]->stage, out, rows);
    /* What is kept of a row may be wider where the reductions leave one
     * element. */
    for (int k = 0; k < look->kept.count; k++) {
        const Stage *kept = look->kept.data[k]->stage;
        if (kept->axis_count < rows)
            return 0;
        for (int i = 0; i < rows; i++)
            if (!look_same_extent(&kept->axis[i], &out->axis[i]) &&
                out->axis[i].extent != 1)
                return 0;
    }
    return rows;
}

bool template_rows(Look *look, bool *fits)
{
    if (look->reductions.count == 0)
        return true;
    Schedule *s = look->s;
    StageState *out = look->out;
    int rows = row_axes(look);
    if (rows == 0)
        return true;
    *fits = true;
    static const int64_t counts[] = {1, 2, 4, 8};
    int sums = (int)look_knob(look, "sums", 4, counts, 4);
    for (int k = 0; k < look->reductions.count; k++) {
        StageState *r = look->reductions.data[k];
        int axis = contiguous_reduction(r);
        if (!look->exact && axis >= 0 && !reduce_in_lanes(look, r, axis, sums))
            return false;
    }
    const char *attach = out->leaves.data[rows - 1]->name;
    int inner = out->leaves.count - rows;
    if (inner > 0) {
        int v = look_contiguous(out);
        const char *last = out->leaves.data[out->leaves.count - 1]->name;
        if (v >= rows && v == out->stage->axis_count - 1 &&
            !schedule_vectorize(s, out->stage->name, last))
            return false;
    }
    const char *joined = look_parallel_outer(look, inner);
    attach = joined ? joined : attach;
    for (int k = 0; k < look->reductions.count; k++)
        if (!schedule_compute_at(s, look->reductions.data[k]->stage->name,
                                 out->stage->name, attach))
            return false;
    for (int k = 0; k < look->kept.count; k++)
        if (!look_keep(look, look->kept.data[k], attach))
            return false;
    return true;
}
