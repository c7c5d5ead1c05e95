/* Statistics of the report: quantiles, ratios of two runs with their
 * interval, the usual difference between runs, steps in a history. */
#ifndef ASSAY_REPORTS_STATS_H
#define ASSAY_REPORTS_STATS_H

#include <stdbool.h>

#include "base/vec.h"
#include "reports/read.h"

/* All times of a case, process after process. On the heap. */
typedef struct Samples {
    double *seconds;
    int *starts; /* of each process, and the end: processes + 1 numbers */
    int processes, total;
} Samples;

/* `samples` of a case; what is no positive time is noted and left out, and
 * a process without any is none. */
Samples samples_read(Reader *r, const json_t *row, const char *place);
void samples_free(Samples *s);

/* Linear interpolation between order statistics, `q` in 0..1; reorders the
 * values. NAN without values. */
double stats_quantile(double *values, int count, double q);

typedef struct Ratio {
    double value, low, high; /* with its 95 % interval */
} Ratio;

/* Median time of `fresh` over that of `base`; above 1, `fresh` is slower. The
 * interval comes from a bootstrap (Efron 1979) that draws processes with
 * replacement, then samples in each. Deterministic. NAN without samples. */
Ratio stats_ratio(const Samples *fresh, const Samples *base);

/* What two runs in a row differ by with nothing changed: 95 % of their
 * differences, as a factor's distance from 1, from the median absolute
 * deviation, which a step does not move. With `logarithmic` false, as a
 * difference of values. NAN for fewer than MIN_DIFFERENCES. NAN values are
 * passed over. */
double stats_usual_difference(const double *values, int count,
                              bool logarithmic);

/* A lasting change: between run `at` - 1 and run `at`. */
typedef struct Step {
    int at;
    double ratio; /* median after over median before */
} Step;
typedef Vec(Step) Steps;

enum {
    STEP_WINDOW = 8, /* runs on either side whose medians are compared */
    STEP_LEAST = 3   /* runs on either side that it takes */
};

/* Steps of positive values, in order. There is a step where the medians of
 * up to STEP_WINDOW runs before and after differ by more than `threshold`
 * (a factor's distance from 1), each median lies beyond the other side's
 * middle half, and the run itself makes at least half of that difference:
 * so a slow drift is none. */
void stats_find_steps(Arena *arena, const double *values, int count,
                      double threshold, Steps *steps);

#endif
