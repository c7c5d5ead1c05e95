/* Attribution of a change in latency to the kernels whose code changed. */
#ifndef ASSAY_REPORTS_BLAME_H
#define ASSAY_REPORTS_BLAME_H

#include "reports/detail.h"

/* Kernels of both builds that compute the same source nodes: fusion may have
 * split or merged them, and a name ends in a hash of the kernel's loops, so
 * nodes are what both builds share. */
typedef struct Part {
    Vec(const char *) nodes;
    Vec(const char *) now, then; /* kernels' names */
    double now_seconds, then_seconds;
    bool code_changed, loops_changed;
} Part;

typedef struct Blame {
    Vec(Part) parts; /* largest change of time first */
    int changed;     /* parts whose code or loops changed */
    double changed_seconds, total_seconds; /* changes of time */
    bool timed;                            /* steps were timed on both sides */
} Blame;

Blame blame(Arena *arena, const CaseDetail *now, const CaseDetail *then);

#endif
