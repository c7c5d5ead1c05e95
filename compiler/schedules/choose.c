/* Picks the template by the look of the definition. */
#include "schedules/choose.h"

#include <string.h>

#include "schedules/templates.h"

/* Points of all live stages, weighted by their arithmetic. */
static double work_of(const Schedule *s)
{
    double work = definition_flops(s->def), points = 0;
    for (int i = 0; i < s->stages.count; i++) {
        double n = 1;
        const Stage *stage = s->stages.data[i]->stage;
        for (int k = 0; k < stage->axis_count; k++)
            n *= (double)stage->axis[k].extent;
        points += n;
    }
    return work > points ? work : points;
}

static bool reads(const Expr *x, const Buffer *buffer)
{
    if (x->kind == EX_READ && x->buffer == buffer)
        return true;
    for (int i = 0; i < x->count; i++)
        if (reads(x->arg[i], buffer))
            return true;
    return false;
}

/* Costly, and wanted more than once: by a reduction, or by several. */
static bool is_worth_keeping(const Schedule *s, const Stage *stage)
{
    if (!look_is_costly(stage->value[0]))
        return false;
    int readers = 0;
    for (int i = 0; i < s->stages.count; i++) {
        const StageState *st = s->stages.data[i];
        for (int k = 0; k < st->stage->value_count; k++)
            if (!st->is_inlined && reads(st->stage->value[k], stage->out[0]))
                readers += st->stage->reduce_count ? 2 : 1;
    }
    return readers > 1;
}

/* Fills `look`; false when the definition is none of the usual shapes. */
static bool take_look(Look *look)
{
    Schedule *s = look->s;
    for (int i = 0; i < s->stages.count; i++) {
        const Stage *stage = s->stages.data[i]->stage;
        if (!stage->reduce_count && stage->value_count == 1 &&
            stage->out[0]->role == BUF_TEMP && !is_worth_keeping(s, stage))
            if (!schedule_inline(s, stage->name))
                return false;
    }
    for (int i = 0; i < s->stages.count; i++) {
        StageState *st = s->stages.data[i];
        if (st->is_inlined)
            continue;
        if (st->stage->value_count != 1)
            return false;
        if (st->stage->out[0]->role == BUF_OUTPUT) {
            if (look->out)
                return false;
            look->out = st;
        }
    }
    if (!look->out)
        return false;
    if (look->out->stage->reduce_count &&
        !schedule_cache(s, look->out->stage->name))
        return false;
    for (int i = 0; i < s->stages.count; i++) {
        StageState *st = s->stages.data[i];
        for (int k = 0; k < st->stage->axis_count; k++)
            if (st->stage->axis[k].extent == 0)
                return false;
        if (st->is_inlined || st == look->out)
            continue;
        if (st->stage->reduce_count)
            vec_push(s->arena, &look->reductions, st);
        else
            vec_push(s->arena, &look->kept, st);
    }
    return true;
}

static bool calls_math(const Schedule *s)
{
    for (int i = 0; i < s->stages.count; i++)
        for (int k = 0; k < s->stages.data[i]->stage->value_count; k++)
            if (!s->stages.data[i]->is_inlined &&
                look_is_costly(s->stages.data[i]->stage->value[k]))
                return true;
    return false;
}

static const struct Template {
    const char *name;
    bool (*apply)(Look *look, bool *fits);
} templates[] = {{"attention", template_attention},
                 {"contraction", template_contraction},
                 {"window", template_window},
                 {"rows", template_rows},
                 {"elementwise", template_elementwise}};
enum { TEMPLATE_COUNT = sizeof templates / sizeof *templates };

/* The hinted one, then all in order. */
static bool try_templates(Look *look, const char *hint)
{
    bool fits = false, sound = true;
    for (int i = 0; hint && sound && !fits && i < TEMPLATE_COUNT; i++)
        if (!strcmp(templates[i].name, hint))
            sound = templates[i].apply(look, &fits);
    for (int i = 0; sound && !fits && i < TEMPLATE_COUNT; i++)
        sound = templates[i].apply(look, &fits);
    return sound && fits;
}

static bool apply(Look *look, ScheduleMode mode, const char *hint)
{
    Schedule *s = look->s;
    bool fits = false;
    look->exact = mode == SCHEDULE_EXACT;
    look->lanes = target_lanes(look->target, 4);
    look->work = work_of(s);
    if (!template_winograd(look, &fits) || (!fits && !take_look(look)))
        return false;
    if (!look->exact && look->target->has_fma && calls_math(s) &&
        !schedule_fused_math(s))
        return false;
    return fits || try_templates(look, hint);
}

/* Back to the first `given` lines of its trace. */
static bool reset(Schedule *s, int given)
{
    const char **trace = s->trace.data;
    schedule_reset(s);
    for (int i = 0; i < given; i++)
        if (!schedule_replay(s, trace[i]))
            return false;
    return true;
}

static bool refuse(Schedule *s, int given, const Choice *choice,
                   const char *why)
{
    Str text = {0};
    choice_print(&text, choice);
    reset(s, given);
    diag_error(s->diag, "schedule of %s with %s: %s", s->def->name,
               str_text(&text), why);
    str_free(&text);
    return false;
}

bool schedule_choose_logged(Schedule *s, const Target *target,
                            ScheduleMode mode, const char *hint,
                            const Choice *choice, KnobLog *log)
{
    Look look = {.s = s, .target = target, .choice = choice};
    bool asks = choice && choice->count;
    int given = s->trace.count;
    *log = (KnobLog){0};
    if (mode == SCHEDULE_NAIVE)
        return !asks ||
               refuse(s, given, choice, "a naive schedule has no knobs");
    /* A template that meets a refusal leaves the naive schedule, which is
     * always right. */
    Diag *diag = s->diag;
    s->diag = diag_new(s->arena, NULL);
    bool ok = apply(&look, mode, hint);
    const char *first =
        s->diag->errors.count ? s->diag->errors.data[0] : "no template fits";
    for (int i = 0; i < s->diag->errors.count; i++)
        log_debug("%s", s->diag->errors.data[i]);
    s->diag = diag;
    if (asks && !(ok && look_obeyed(&look)))
        return refuse(s, given, choice, look.refused ? look.refused : first);
    if (ok) {
        *log = look.log;
        return true;
    }
    log_debug("schedule of %s: no template fits, naive", s->def->name);
    return reset(s, given);
}

bool schedule_choose(Schedule *s, const Target *target, ScheduleMode mode,
                     const char *hint, const Choice *choice)
{
    KnobLog log;
    return schedule_choose_logged(s, target, mode, hint, choice, &log);
}
