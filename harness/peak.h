/* What the machine can do at most, measured, so that results are a share
 * of it. Both run on all threads of the pool at once. */
#ifndef ASSAY_HARNESS_PEAK_H
#define ASSAY_HARNESS_PEAK_H

#include "runtime/pool.h"

/* f32 multiply-adds, two operations each, with the widest vectors: best
 * of several stretches within about `seconds`. GFLOP/s. */
double peak_fma(Pool *pool, double seconds);
/* Reading from memory, far more than the caches hold. GB/s. */
double peak_read_bandwidth(Pool *pool, double seconds);
/* "avx512f", "fma", or "generic": which code peak_fma runs. */
const char *peak_kind(void);

#endif
