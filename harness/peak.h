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
/* The same for 8-bit products that are added to 32-bit sums, in 10^9
 * operations a second. */
double peak_dot(Pool *pool, double seconds);
/* Each thread reads `bytes` of its own over and over. GB/s of all. */
double peak_read_bandwidth(Pool *pool, int64_t bytes, double seconds);

enum { PEAK_LEVELS = 4 };

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
/* "avx512_vnni", "avx_vnni", or "generic", which has no instruction for it:
 * the same of peak_dot. */
const char *peak_dot_kind(void);

#endif
