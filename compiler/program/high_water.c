/* What fills the arena at its fullest: whoever wants a smaller arena has to
 * shrink one of these buffers, or end its life earlier. */
#include <stdlib.h>

#include "program/program.h"

/* Storage of its own: aliases are counted where their root is. */
static bool is_stored(const ProgramBuffer *b)
{
    return b->kind == PB_ARENA && b->alias_of < 0 && b->last_step >= 0;
}

static bool is_live(const ProgramBuffer *b, int step)
{
    return is_stored(b) && b->first_step <= step && step <= b->last_step;
}

static void sort_by_size(const Program *p, HighWater *water)
{
    /* Few are live at once, and an insertion sort keeps equal ones in the
     * program's order. */
    for (int i = 1; i < water->buffers.count; i++)
        for (int k = i; k > 0; k--) {
            int *at = &water->buffers.data[k];
            if (p->buffers.data[at[0]].bytes <= p->buffers.data[at[-1]].bytes)
                break;
            int swap = at[0];
            at[0] = at[-1];
            at[-1] = swap;
        }
}

void program_high_water(Arena *arena, const Program *p, HighWater *water)
{
    *water = (HighWater){.step = -1};
    int64_t *change = ARENA_ARRAY(arena, int64_t, p->steps.count + 1);
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (!is_stored(b))
            continue;
        change[b->first_step] += b->bytes;
        change[b->last_step + 1] -= b->bytes;
    }
    int64_t live = 0;
    for (int s = 0; s < p->steps.count; s++) {
        live += change[s];
        if (live > water->bytes) {
            water->bytes = live;
            water->step = s;
        }
    }
    for (int i = 0; i < p->buffers.count; i++)
        if (water->step >= 0 && is_live(&p->buffers.data[i], water->step))
            vec_push(arena, &water->buffers, i);
    sort_by_size(p, water);
}
