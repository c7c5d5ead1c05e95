/* Rows: softmax, normalization and other reductions over the contiguous
 * axis, all stages of a row together while it is in cache. Each reduction
 * runs in several vectors of partial results. */
#include <string.h>

#include "schedules/templates.h"

/* The reduction's innermost axis is contiguous in what it reads. */
static int contiguous_reduction(const StageState *st, const Expr *x)
{
    const Stage *stage = st->stage;
    if (x->kind == EX_READ && x->count > 0) {
        const Layout *l = &x->buffer->layout;
        int d = l->dim[l->count - 1].axis;
        for (int i = 0; i < stage->reduce_count; i++)
            if (x->arg[d]->kind == EX_VAR &&
                x->arg[d]->var == stage->reduce[i].var)
                return i;
    }
    for (int i = 0; i < x->count; i++) {
        int r = contiguous_reduction(st, x->arg[i]);
        if (r >= 0)
            return r;
    }
    return -1;
}

static int common_axes(const Stage *stage, const Stage *out, int most)
{
    int n = 0;
    while (n < stage->axis_count && n < most &&
           stage->axis[n].extent == out->axis[n].extent)
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
    for (int k = 0; k < look->kept.count; k++)
        if (common_axes(look->kept.data[k]->stage, out, rows) < rows)
            return 0;
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
    const int lanes = 4 * look->lanes;
    *fits = true;
    for (int k = 0; k < look->reductions.count; k++) {
        StageState *r = look->reductions.data[k];
        int i = contiguous_reduction(r, r->stage->value[0]);
        if (look->exact || r->stage->reduce_count != 1 || i < 0)
            continue;
        if (!schedule_reduce_lanes(s, r->stage->name,
                                   r->roots.data[r->stage->axis_count]->name,
                                   lanes))
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
