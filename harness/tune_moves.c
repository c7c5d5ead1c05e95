/* Which schedules a tuner tries, and in which order. */
#include "harness/tuner.h"

static void add_move(Tune *t, Tuned *k, const char *name, int64_t value)
{
    Choice move = {0};
    choice_set(&move, name, value);
    vec_push(t->arena, &k->moves, move);
}

static bool is_proposed(const KnobLog *log, const char *name)
{
    return log->proposals.count && choice_find(&log->proposals.data[0], name);
}

/* Values of a knob, from its own outwards. */
static void add_values(Tune *t, Tuned *k, const KnobRow *row)
{
    enum { MOST = 4 };
    int own = 0, added = 0;
    while (own < row->count && row->candidates[own] != row->value)
        own++;
    for (int away = 1; away < row->count && added < MOST; away++)
        for (int side = -1; side <= 1; side += 2) {
            int at = own + side * away;
            if (at < 0 || at >= row->count || added == MOST)
                continue;
            add_move(t, k, row->name, row->candidates[at]);
            added++;
        }
}

/* The order in which schedules are tried: what changes much first. */
void tuner_add_moves(Tune *t, Tuned *k)
{
    const KnobLog *log = &k->about->log;
    const int first = 3; /* proposals, the usual one among them */
    for (int most = 2; most <= 3; most++) {
        for (int i = 0; i < log->knobs.count; i++)
            if (log->knobs.data[i].count == most &&
                !is_proposed(log, log->knobs.data[i].name))
                add_values(t, k, &log->knobs.data[i]);
        for (int i = most == 2 ? 0 : first; i < log->proposals.count; i++)
            if (most == 3 || i < first)
                vec_push(t->arena, &k->moves, log->proposals.data[i]);
    }
    for (int i = 0; i < log->knobs.count; i++)
        if (log->knobs.data[i].count > 3 &&
            !is_proposed(log, log->knobs.data[i].name))
            add_values(t, k, &log->knobs.data[i]);
}

/* The loops that a choice makes are new ones: then it is what to try. */
static bool is_new(Tune *t, Tuned *k, const Choice *choice)
{
    Arena *scratch = arena_new();
    KnobLog log;
    uint64_t hash;
    bool is = program_try_choice(scratch, diag_new(scratch, NULL), t->program,
                                 k->schedule, choice, &log, &hash);
    for (int i = 0; is && i < k->tried.count; i++)
        is = k->tried.data[i] != hash;
    if (is) {
        vec_push(t->arena, &k->tried, hash);
        k->trial = (Choice){0};
        /* All of them: a line says the whole schedule. */
        for (int i = 0; i < log.knobs.count; i++)
            choice_set(&k->trial, log.knobs.data[i].name,
                       log.knobs.data[i].value);
    }
    arena_free(scratch);
    return is;
}

bool tuner_next_trial(Tune *t, Tuned *k)
{
    k->is_trying = false;
    while (k->next_move < k->moves.count && !k->is_trying) {
        const Choice *move = &k->moves.data[k->next_move++];
        Choice choice = k->best;
        bool fits = true;
        for (int i = 0; i < move->count; i++)
            fits &=
                choice_set(&choice, move->knob[i].name, move->knob[i].value);
        k->is_trying = fits && is_new(t, k, &choice);
    }
    return k->is_trying;
}

void tuner_skip_usual(Tune *t, Tuned *k)
{
    is_new(t, k, &k->best);
    k->trial = (Choice){0};
}
