/* The log of choices where a program is built: the line of a definition, and
 * what is noted of each for a tuner. */
#include <string.h>

#include "base/hash.h"
#include "program/builder.h"

/* "1x64x56x56" */
static const char *shape_text(Arena *arena, const Buffer *b)
{
    const char *text = b->rank ? "" : "scalar";
    for (int i = 0; i < b->rank; i++)
        text = arena_printf(arena, "%s%s%lld", text, i ? "x" : "",
                            (long long)b->dims[i]);
    return text;
}

/* A layout's printed form without blanks. */
static const char *layout_text(Arena *arena, const Layout *layout)
{
    Str text = {0};
    layout_print(&text, layout);
    char *result = arena_strdup(arena, str_text(&text));
    str_free(&text);
    for (char *c = result; *c; c++)
        if (*c == ' ')
            *c = ',';
    return result;
}

/* What tells people which kernel it is: its first operand and its last
 * result. */
static ChoiceRow describe(Builder *b, const GroupDefinition *d,
                          const char *key)
{
    ChoiceRow row = {.kernel = d->def->name,
                     .type = "none",
                     .in = "none",
                     .layout = "none",
                     .def = hash_text(key)};
    bool has_input = false;
    if (b->choices)
        row.scope = b->choices->scope;
    for (int i = 0; i < d->bindings.count; i++) {
        const Buffer *buffer = d->bindings.data[i].buffer;
        const Tensor *t = d->bindings.data[i].tensor;
        if (buffer->role == BUF_INPUT && !has_input) {
            row.in = shape_text(b->arena, buffer);
            has_input = true;
        }
        if (buffer->role == BUF_OUTPUT) {
            row.type = dtype_name(buffer->dtype);
            row.layout = layout_text(b->arena, &t->layout);
        }
    }
    return row;
}

/* Which choices an artifact is made of, however the log is ordered. */
static void note_choice(Builder *b, const ChoiceRow *row)
{
    Str text = {0};
    str_addf(&text, "%016llx ", (unsigned long long)row->def);
    choice_print(&text, &row->choice);
    b->p->choices_hash =
        hash_bytes(str_text(&text), text.length, b->p->choices_hash);
    str_free(&text);
}

/* What a line says that does not fit is a fault of that line. */
static void refuse_line(Builder *b, const ChoiceRow *line, int errors)
{
    const char *text = arena_printf(
        b->arena, "%s:%d: %s; correct or remove the line",
        b->choices->log->file, line->line, b->diag->errors.data[errors]);
    b->diag->errors.count = errors;
    diag_error(b->diag, "%s", text);
}

int program_choose(Builder *b, Schedule *s, const GroupDefinition *d,
                   const char *key)
{
    ProgramSchedule made = {.row = describe(b, d, key),
                            .group = arena_copy(b->arena, d, sizeof *d)};
    const ChoiceRow *line = NULL;
    const Target *target = b->p->target;
    int errors = b->diag->errors.count;
    if (b->mode == SCHEDULE_FAST && b->choices && b->choices->log)
        line = choices_find(b->choices->log, &b->choices->scope, made.row.def);
    made.is_chosen =
        line && schedule_choose_logged(s, target, b->mode, d->hint,
                                       &line->choice, &made.log);
    if (made.is_chosen) {
        made.row.choice = line->choice;
        note_choice(b, &made.row);
    } else {
        /* The rest is looked at as well: every fault in one go. */
        if (line)
            refuse_line(b, line, errors);
        if (!schedule_choose_logged(s, target, b->mode, d->hint, NULL,
                                    &made.log))
            return -1;
    }
    vec_push(b->arena, &b->p->schedules, made);
    return b->p->schedules.count - 1;
}

bool program_try_choice(Arena *arena, Diag *diag, const Program *p,
                        int schedule, const Choice *choice, KnobLog *log,
                        uint64_t *hash)
{
    const GroupDefinition *d = p->schedules.data[schedule].group;
    Schedule *s = program_schedule_new(arena, diag, d);
    if (!schedule_choose_logged(s, p->target, p->mode, d->hint, choice, log))
        return false;
    const Kernel *kernel = schedule_lower(s, arena);
    *hash = kernel ? kernel->hash : 0;
    return kernel != NULL;
}
