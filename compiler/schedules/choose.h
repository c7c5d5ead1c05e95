/* The templates: from target facts and the look of a definition to a
 * schedule. They see expressions and extents, never operator names. */
#ifndef ASSAY_SCHEDULES_CHOOSE_H
#define ASSAY_SCHEDULES_CHOOSE_H

#include "schedules/schedule.h"
#include "targets/target.h"

/* Applies the template that fits. `s` is fresh but for the layouts of
 * inputs and outputs that are already fixed by the graph. */
bool schedule_choose(Schedule *s, const Target *target);

#endif
