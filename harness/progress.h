/* Progress of long work on standard error: a line for each finished item
 * with elapsed and remaining time; on a terminal a bar below them. */
#ifndef ASSAY_HARNESS_PROGRESS_H
#define ASSAY_HARNESS_PROGRESS_H

#include "base/arena.h"

typedef struct Progress Progress;

/* `count` items, in order. The clock starts. */
Progress *progress_new(Arena *arena, int count);
/* Seconds that an item is known to take; 0: unknown, then as long as the
 * others on average. */
void progress_expect(Progress *p, int item, double seconds);
void progress_begin(Progress *p, int item, const char *name);
/* What is being done now, for the bar. */
void progress_phase(Progress *p, const char *phase);
/* `outcome`: "fused ok, unfused crashed" */
void progress_end(Progress *p, const char *outcome);
/* Seconds since progress_new. */
double progress_elapsed(const Progress *p);

#endif
