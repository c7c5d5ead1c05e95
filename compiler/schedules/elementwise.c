/* Elementwise and injective stages: loops in the order of the output's
 * memory, joined as far as all buffers allow, lanes along the innermost.
 *
 * An operand that lies along another axis (a transpose) is read in blocks of
 * both axes, so that a cache line is used up while it is there. A contiguous
 * axis too short for lanes is copied element by element. */
#include <string.h>

#include "schedules/templates.h"

/* The output axis along which `read` is contiguous; -1 when that is `v`, the
 * output's own, or none. */
static int other_axis(const StageState *st, const Expr *read, int v)
{
    const Layout *l = &read->buffer->layout;
    int d = l->count - 1;
    while (d >= 0 && read->buffer->dims[l->dim[d].axis] == 1)
        d--;
    if (d < 0 || read->buffer->is_constant)
        return -1;
    const Expr *index = read->arg[l->dim[d].axis];
    if (look_uses(st, v, index) || !look_uses(st, v, read))
        return -1;
    for (int i = 0; i < st->stage->axis_count; i++)
        if (i != v && look_uses(st, i, index))
            return i;
    return -1;
}

static int transposed_axis(const StageState *st, const Expr *x, int v)
{
    int axis = x->kind == EX_READ ? other_axis(st, x, v) : -1;
    for (int i = 0; i < x->count && axis < 0; i++)
        axis = transposed_axis(st, x->arg[i], v);
    return axis;
}

/* Blocks of both axes inside all other loops. */
static bool transpose(Look *look, int across, int v)
{
    /* One cache line of the operand, a few of the output. */
    const int64_t line = 16, run = 64;
    Schedule *s = look->s;
    const Stage *stage = look->out->stage;
    const Layout *l = &stage->out[0]->layout;
    const char *names[MAX_LAYOUT + 4];
    int n = 0;
    const char *u = stage->axis[across].var->name;
    const char *w = stage->axis[v].var->name;
    if (!schedule_split(s, stage->name, w, run) ||
        !schedule_split(s, stage->name, u, line))
        return false;
    /* Loops of one iteration go inside, so that the first can be parallel. */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < l->count; i++) {
            int axis = l->dim[i].axis;
            if (l->dim[i].factor == 0 && axis != v && axis != across &&
                (stage->axis[axis].extent > 1) == (pass == 0))
                names[n++] = stage->axis[axis].var->name;
        }
        if (pass == 0) {
            names[n++] = arena_printf(s->arena, "%s.o", w);
            names[n++] = arena_printf(s->arena, "%s.o", u);
        }
    }
    names[n++] = arena_printf(s->arena, "%s.i", u);
    names[n++] = arena_printf(s->arena, "%s.i", w);
    if (!schedule_reorder(s, stage->name, look_order(look, names, n)) ||
        !schedule_vectorize(s, stage->name, names[n - 1]))
        return false;
    look_parallel_outer(look, 2);
    return true;
}

bool template_elementwise(Look *look, bool *fits)
{
    if (look->reductions.count || look->kept.count)
        return true;
    *fits = true;
    look_collapse(look, NULL);
    Schedule *s = look->s;
    StageState *out = look->out;
    const Stage *stage = out->stage;
    if (stage->axis_count == 0)
        return true;
    const Layout *l = &stage->out[0]->layout;
    const char *names[MAX_LAYOUT];
    int n = 0, v = look_contiguous(out);
    if (v < 0)
        return true;
    int across = transposed_axis(out, stage->value[0], v);
    bool is_short = stage->axis[v].extent < look->lanes / 2;
    if (across >= 0 && !is_short && stage->axis[across].extent > 1)
        return transpose(look, across, v);
    for (int i = 0; i < l->count; i++)
        if (l->dim[i].factor == 0 && l->dim[i].axis != v)
            names[n++] = stage->axis[l->dim[i].axis].var->name;
    const char *vector = stage->axis[v].var->name;
    /* Pieces long enough to be worth a task, short enough to share. */
    static const int64_t pieces[] = {1024, 2048, 4096, 8192, 16384};
    const int64_t piece = look_knob(look, "piece", 4096, pieces, 5);
    if (stage->axis[v].extent > piece) {
        if (!schedule_split(s, stage->name, vector, piece))
            return false;
        names[n++] = arena_printf(s->arena, "%s.o", vector);
        vector = arena_printf(s->arena, "%s.i", vector);
    }
    names[n++] = vector;
    if (!schedule_reorder(s, stage->name, look_order(look, names, n)))
        return false;
    if (across >= 0 && is_short) {
        /* The loop over the operand's own axis stays inside. */
        if (!schedule_unroll(s, stage->name, vector))
            return false;
        look_parallel_outer(look, n > 2 ? 2 : 1);
        return true;
    }
    if (!schedule_vectorize(s, stage->name, vector))
        return false;
    look_parallel_outer(look, 1);
    return true;
}
