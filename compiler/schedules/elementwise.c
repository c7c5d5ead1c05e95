/* Elementwise and injective stages: loops in the order of the output's
 * memory, joined as far as all buffers allow, lanes along the innermost. */
#include <string.h>

#include "schedules/templates.h"

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
    for (int i = 0; i < l->count; i++)
        if (l->dim[i].factor == 0 && l->dim[i].axis != v)
            names[n++] = stage->axis[l->dim[i].axis].var->name;
    const char *vector = stage->axis[v].var->name;
    /* Pieces long enough to be worth a task, short enough to share. */
    const int64_t piece = 4096;
    if (stage->axis[v].extent > piece) {
        if (!schedule_split(s, stage->name, vector, piece))
            return false;
        names[n++] = arena_printf(s->arena, "%s.o", vector);
        vector = arena_printf(s->arena, "%s.i", vector);
    }
    names[n++] = vector;
    if (!schedule_reorder(s, stage->name, look_order(look, names, n)) ||
        !schedule_vectorize(s, stage->name, vector))
        return false;
    look_parallel_outer(look, 1);
    return true;
}
