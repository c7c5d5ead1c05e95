/* What the machine can do at most, measured, so that results are a share
 * of it. Both run on all threads of the pool at once. */
#ifndef ASSAY_HARNESS_PEAK_H
#define ASSAY_HARNESS_PEAK_H

#include "runtime/pool.h"

/* f32 multiply-adds, two operations each, with the widest vectors, in
 * stretches for about `seconds`. GFLOP/s of the best stretch; `*mean` (may
 * be NULL) is that of all together: much less on a machine that something
 * else uses too. */
double peak_fma(Pool *pool, double seconds, double *mean);
/* Each thread reads `bytes` of its own over and over. GB/s of all. */
double peak_read_bandwidth(Pool *pool, int64_t bytes, double seconds);

enum { PEAK_LEVELS = 4, PEAK_MAX_THREADS = 1024 };

/* Where data come from, and how fast. */
typedef struct PeakLevel {
    const char *name; /* L1, L2, L3, memory */
    int64_t bytes;    /* that a thread reads: half of its part of a cache */
    double gbps;      /* of all threads */
} PeakLevel;

/* The levels of this machine, nearest first; how many. */
int peak_levels(Pool *pool, PeakLevel levels[PEAK_LEVELS]);
/* "avx512f", "fma", or "generic": which code peak_fma runs. */
const char *peak_kind(void);

#endif
