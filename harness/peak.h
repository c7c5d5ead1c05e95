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
/* Reading from memory, far more than the caches hold. GB/s. */
double peak_read_bandwidth(Pool *pool, double seconds);
/* "avx512f", "fma", or "generic": which code peak_fma runs. */
const char *peak_kind(void);

#endif
