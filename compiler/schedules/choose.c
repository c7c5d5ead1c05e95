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

static bool apply(Schedule *s, const Target *target, ScheduleMode mode,
                  const char *hint)
{
    Look look = {.s = s, .target = target};
    look.exact = mode == SCHEDULE_EXACT;
    look.lanes = target_lanes(target, 4);
    look.work = work_of(s);
    bool fits = false;
    if (!template_winograd(&look, &fits))
        return false;
    if (!fits && !take_look(&look))
        return false;
    if (!look.exact && target->has_fma && calls_math(s) &&
        !schedule_fused_math(s))
        return false;
    return fits || try_templates(&look, hint);
}

bool schedule_choose(Schedule *s, const Target *target, ScheduleMode mode,
                     const char *hint)
{
    if (mode == SCHEDULE_NAIVE)
        return true;
    /* A template that meets a refusal leaves the naive schedule, which is
     * always right. */
    Diag *diag = s->diag;
    int given = s->trace.count;
    s->diag = diag_new(s->arena, NULL);
    if (apply(s, target, mode, hint)) {
        s->diag = diag;
        return true;
    }
    for (int i = 0; i < s->diag->errors.count; i++)
        log_debug("%s", s->diag->errors.data[i]);
    log_debug("schedule of %s: no template fits, naive", s->def->name);
    s->diag = diag;
    const char **trace = s->trace.data;
    schedule_reset(s);
    for (int i = 0; i < given; i++)
        if (!schedule_replay(s, trace[i]))
            return false;
    return true;
}
