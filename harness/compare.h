/* Comparing two sides by their ratio, from interleaved measurements. */
#ifndef ASSAY_HARNESS_COMPARE_H
#define ASSAY_HARNESS_COMPARE_H

#include <stdint.h>

/* Linear interpolation between order statistics; `q` in 0..1. Sorts a copy.
 * NaN without values. */
double stats_percentile(const double *values, int count, double q);
double stats_median(const double *values, int count);

/* Times of one process. */
typedef struct Samples {
    const double *seconds;
    int count;
} Samples;

/* One block A B B A of fresh processes. */
typedef struct CompareBlock {
    Samples a[2], b[2];
} CompareBlock;

typedef struct Ratio {
    double value;     /* time of A over time of B: above 1, B is faster */
    double low, high; /* NaN after a single block */
} Ratio;

/* What a ratio says of B, against A. */
typedef enum Verdict {
    VERDICT_IMPROVED,
    VERDICT_REGRESSED,
    VERDICT_SAME, /* within a margin of 1 % */
    VERDICT_INCONCLUSIVE,
    VERDICT_NOT_COMPARABLE, /* other machine, other benchmark */
    VERDICT_BROKEN,         /* a side does not run */
    VERDICT_MISSING,        /* a side is not there */
    VERDICT_COUNT
} Verdict;

/* "improved", "regressed", ... */
const char *verdict_name(Verdict verdict);
/* One of the first four; VERDICT_BROKEN for NaN. */
Verdict verdict_of(Ratio ratio);

/* Estimates the ratio as the geometric mean over blocks of the ratio of
 * medians; the interval that holds `level` (as 0.95) of what resampling
 * blocks, processes and samples gives, widened for how few blocks there are.
 * Deterministic. All NaN when a process has no samples. */
Ratio compare_ratio(const CompareBlock *blocks, int count, double level);

#endif
