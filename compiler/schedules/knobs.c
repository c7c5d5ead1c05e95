/* Knobs and what templates ask of them; see knobs.h and templates.h. */
#include "schedules/knobs.h"

#include <string.h>

#include "schedules/templates.h"

const Knob *choice_find(const Choice *choice, const char *name)
{
    for (int i = 0; choice && i < choice->count; i++)
        if (!strcmp(choice->knob[i].name, name))
            return &choice->knob[i];
    return NULL;
}

bool choice_set(Choice *choice, const char *name, int64_t value)
{
    Knob *known = (Knob *)choice_find(choice, name);
    if (known) {
        known->value = value;
        return true;
    }
    if (choice->count == MAX_KNOBS)
        return false;
    choice->knob[choice->count++] = (Knob){name, value};
    return true;
}

bool choice_equal(const Choice *a, const Choice *b)
{
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++) {
        const Knob *other = choice_find(b, a->knob[i].name);
        if (!other || other->value != a->knob[i].value)
            return false;
    }
    return true;
}

void choice_print(Str *out, const Choice *choice)
{
    for (int i = 0; i < choice->count; i++)
        str_addf(out, "%s%s=%lld", i ? " " : "", choice->knob[i].name,
                 (long long)choice->knob[i].value);
}

/* ---- templates ask ---------------------------------------------------- */

bool look_allows(const Look *look, const char *name, int64_t value)
{
    const Knob *knob = choice_find(look->choice, name);
    return !knob || knob->value == value;
}

bool look_refuse(Look *look, const char *why)
{
    if (!look->refused)
        look->refused = why;
    return false;
}

int64_t look_knob(Look *look, const char *name, int64_t usual,
                  const int64_t *candidates, int count)
{
    Arena *arena = look->s->arena;
    const Knob *knob = choice_find(look->choice, name);
    KnobRow row = {name, usual, NULL, count};
    int64_t *values = ARENA_ARRAY(arena, int64_t, count + 1);
    if (count)
        memcpy(values, candidates, (size_t)count * sizeof *values);
    row.candidates = values;
    bool is_legal = false;
    for (int i = 0; knob && i < count; i++)
        is_legal |= candidates[i] == knob->value;
    if (is_legal)
        row.value = knob->value;
    vec_push(arena, &look->log.knobs, row);
    if (!knob || is_legal)
        return row.value;
    const char *list = "";
    for (int i = 0; i < count; i++)
        list = arena_printf(arena, "%s %lld", list, (long long)candidates[i]);
    look_refuse(look, arena_printf(arena, "%s=%lld: there are%s", name,
                                   (long long)knob->value, list));
    return usual;
}

int64_t look_knob_range(Look *look, const char *name, int64_t usual,
                        int64_t low, int64_t high)
{
    int count = high < low ? 0 : (int)(high - low + 1);
    int64_t *values = ARENA_ARRAY(look->s->arena, int64_t, count + 1);
    for (int i = 0; i < count; i++)
        values[i] = low + i;
    return look_knob(look, name, usual, values, count);
}

bool look_obeyed(Look *look)
{
    for (int i = 0; look->choice && i < look->choice->count; i++) {
        bool asked = false;
        for (int k = 0; k < look->log.knobs.count; k++)
            asked |= !strcmp(look->log.knobs.data[k].name,
                             look->choice->knob[i].name);
        if (!asked)
            return look_refuse(
                look, arena_printf(look->s->arena,
                                   "%s: this schedule has no such knob",
                                   look->choice->knob[i].name));
    }
    return !look->refused;
}
