/* Kernels of a case, as a profile of one run saw them. */
#ifndef ASSAY_REPORTS_KERNELS_H
#define ASSAY_REPORTS_KERNELS_H

#include "reports/page.h"

/* All steps of a case that run one kernel. */
typedef struct KernelSum {
    const char *name;
    Vec(const char *) nodes; /* source names of all its steps */
    int calls;
    double seconds, share, flops, bytes; /* summed */
    double bound_seconds; /* what the roofline allows; NAN: unknown */
    const char *level;    /* that the bytes come from, of the longest step */
    bool is_memory;       /* bound by memory, not by compute */
    double longest;
} KernelSum;
typedef Vec(KernelSum) KernelSums;

/* Largest time first. */
KernelSums kernel_sums(Arena *arena, const CaseDetail *c);
/* "83 % of compute", "41 % of memory (L2)". */
const char *kernel_bound_text(Arena *arena, const KernelSum *k);

/* The case that stands for its model: the fused one, or the first with
 * steps. */
typedef struct MainCase {
    const Case *of;
    const CaseDetail *detail;
} MainCase;
const MainCase *kernel_main_cases(Arena *arena, const Judged *j, int *count);

/* A row a kernel. */
void kernels_add_table(Page *p, const KernelSums *sums);

#endif
