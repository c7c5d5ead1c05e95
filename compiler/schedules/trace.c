/* The printed form of a schedule, and its way back. */
#include <stdlib.h>
#include <string.h>

#include "schedules/schedule.h"
#include "schedules/state.h"

void schedule_print_trace(Str *out, const Schedule *s)
{
    for (int i = 0; i < s->trace.count; i++)
        str_addf(out, "%s\n", s->trace.data[i]);
}

static bool replay_line(Schedule *s, char *line)
{
    char *words[4] = {0}, *rest[4] = {0}, *p = line;
    int count = 0;
    for (; count < 4; count++) {
        while (*p == ' ')
            p++;
        if (!*p)
            break;
        words[count] = p;
        /* `rest[i]`: from word i to the end, for operands with spaces. */
        rest[count] = arena_strdup(s->arena, p);
        while (*p && *p != ' ')
            p++;
        if (*p)
            *p++ = 0;
    }
    const char *verb = words[0], *x = words[1], *y = words[2], *z = words[3];
    int64_t number = z ? strtoll(z, NULL, 10) : 0;
    if (!verb)
        return true;
    if (!strcmp(verb, "fused_math"))
        return schedule_fused_math(s);
    if (!x)
        return diag_error(s->diag, "trace: %s lacks its operand", verb);
    if (!strcmp(verb, "inline"))
        return schedule_inline(s, x);
    if (!strcmp(verb, "factor"))
        return schedule_factor(s, x);
    if (!strcmp(verb, "contract"))
        return schedule_contract(s, x);
    if (!strcmp(verb, "cache"))
        return schedule_cache(s, x);
    if (!y)
        return diag_error(s->diag, "trace: %s lacks an operand", verb);
    if (!strcmp(verb, "collapse"))
        return schedule_collapse(s, x, y);
    if (!strcmp(verb, "cache_read"))
        return schedule_cache_read(s, x, y);
    if (!strcmp(verb, "reorder"))
        return schedule_reorder(s, x, rest[2]);
    if (!strcmp(verb, "parallel"))
        return schedule_parallel(s, x, y);
    if (!strcmp(verb, "vectorize"))
        return schedule_vectorize(s, x, y);
    if (!strcmp(verb, "unroll"))
        return schedule_unroll(s, x, y);
    if (!strcmp(verb, "scope")) {
        for (int i = 0; i <= SCOPE_SHARED; i++)
            if (!strcmp(y, scope_names[i]))
                return schedule_set_scope(s, x, (Scope)i);
        return diag_error(s->diag, "trace: no scope %s", y);
    }
    if (!strcmp(verb, "pack")) {
        const Buffer *b = definition_find_buffer(s->def, x);
        Layout layout;
        const char *text = rest[2];
        if (!b || !layout_parse(&text, b->rank, &layout))
            return diag_error(s->diag, "trace: pack %s %s", x, rest[2]);
        return schedule_pack(s, x, layout);
    }
    if (!z)
        return diag_error(s->diag, "trace: %s lacks an operand", verb);
    if (!strcmp(verb, "prefetch")) {
        /* "AXIS AHEAD STEP" */
        char *end = rest[3] + strlen(z);
        int64_t ahead = strtoll(end, &end, 10);
        return schedule_prefetch(s, x, y, z, ahead, strtoll(end, NULL, 10));
    }
    if (!strcmp(verb, "split"))
        return schedule_split(s, x, y, number);
    if (!strcmp(verb, "split_padded"))
        return schedule_split_padded(s, x, y, number);
    if (!strcmp(verb, "split_even"))
        return schedule_split_even(s, x, y, number);
    if (!strcmp(verb, "pad"))
        return schedule_pad(s, x, y, number);
    if (!strcmp(verb, "rfactor"))
        return schedule_rfactor(s, x, y, number);
    if (!strcmp(verb, "fuse"))
        return schedule_fuse(s, x, y, z);
    if (!strcmp(verb, "compute_at"))
        return schedule_compute_at(s, x, y, z);
    if (!strcmp(verb, "reduce_lanes"))
        return schedule_reduce_lanes(s, x, y, (int)number);
    return diag_error(s->diag, "trace: no primitive %s", verb);
}

bool schedule_replay(Schedule *s, const char *trace)
{
    char *copy = arena_strdup(s->arena, trace), *save;
    for (char *line = strtok_r(copy, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        if (!replay_line(s, line))
            return false;
    return true;
}
