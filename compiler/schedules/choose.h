/* The templates: from target facts and the look of a definition to a
 * schedule. They see expressions and extents, never operator names. */
#ifndef ASSAY_SCHEDULES_CHOOSE_H
#define ASSAY_SCHEDULES_CHOOSE_H

#include "schedules/knobs.h"
#include "schedules/schedule.h"
#include "targets/target.h"

typedef enum ScheduleMode {
    SCHEDULE_NAIVE, /* plain loops in the order of the definition */
    SCHEDULE_EXACT, /* templates; every result has the naive one's bits */
    SCHEDULE_FAST   /* may reassociate and fuse multiply-adds */
} ScheduleMode;

/* Applies the template that fits; `hint` names one to try first: attention,
 * contraction, window, rows or elementwise; NULL or another name: none. `s` is
 * fresh but for the layouts of inputs and outputs that are already fixed by
 * the graph. `choice` has values for knobs of that template; NULL: the cost
 * model decides them all. False with a diagnostic and `s` as it was when the
 * template has no such knob, or not with that value. */
bool schedule_choose(Schedule *s, const Target *target, ScheduleMode mode,
                     const char *hint, const Choice *choice);
/* The same, telling what was decided; `log` is in the schedule's arena, empty
 * without a template. */
bool schedule_choose_logged(Schedule *s, const Target *target,
                            ScheduleMode mode, const char *hint,
                            const Choice *choice, KnobLog *log);

#endif
