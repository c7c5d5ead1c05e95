/* The paired-measurement statistics. In a block A B B A, a drift of the
 * machine that is linear in time cancels; the ratio of a block compares
 * times taken within seconds. The bootstrap (Efron 1979) resamples at each
 * level that varies: blocks, then the samples within each process. Two
 * blocks alone would give an interval that is too narrow, so the spread
 * between the processes of one side widens it as well: each side of a
 * resampled block draws its two processes with replacement. */
#include "harness/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPLICAS = 1000,
    MAX_KEPT = 200 /* samples of a process that are resampled */
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* `sorted` is in order. */
static double percentile_sorted(const double *sorted, int count, double q)
{
    if (count <= 0)
        return NAN;
    double place = q * (count - 1);
    int below = (int)place;
    int above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

double stats_percentile(const double *values, int count, double q)
{
    if (count <= 0)
        return NAN;
    size_t bytes = (size_t)count * sizeof *values;
    double *sorted = malloc(bytes);
    if (!sorted)
        return NAN;
    memcpy(sorted, values, bytes);
    qsort(sorted, (size_t)count, sizeof *sorted, compare_doubles);
    double value = percentile_sorted(sorted, count, q);
    free(sorted);
    return value;
}

double stats_median(const double *values, int count)
{
    return stats_percentile(values, count, 0.5);
}

/* splitmix64 (Steele, Lea, Flood 2014): the same intervals in every run. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int pick(uint64_t *state, int count)
{
    return (int)(next_random(state) % (uint64_t)count);
}

static double resampled_median(const Samples *s, uint64_t *state)
{
    int kept = s->count < MAX_KEPT ? s->count : MAX_KEPT;
    double draw[MAX_KEPT];
    for (int i = 0; i < kept; i++)
        draw[i] = s->seconds[pick(state, s->count)];
    qsort(draw, (size_t)kept, sizeof *draw, compare_doubles);
    return percentile_sorted(draw, kept, 0.5);
}

static double log_ratio(const CompareBlock *block)
{
    double sum = 0;
    for (int i = 0; i < 2; i++)
        sum += log(stats_median(block->a[i].seconds, block->a[i].count)) -
               log(stats_median(block->b[i].seconds, block->b[i].count));
    return sum / 2;
}

static double resampled_log_ratio(const CompareBlock *block, uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 2; i++)
        sum += log(resampled_median(&block->a[pick(state, 2)], state)) -
               log(resampled_median(&block->b[pick(state, 2)], state));
    return sum / 2;
}

/* The bootstrap of few blocks is too narrow: it takes their spread, which is
 * that of a sample, for that of all blocks, and knows no doubt about it.
 * Student's quantile over the normal one, and Bessel's correction. */
static double widening(int blocks, double level)
{
    static const double t95[] = {12.71, 4.303, 3.182, 2.776, 2.571,
                                 2.447, 2.365, 2.306, 2.262, 2.228,
                                 2.201, 2.179, 2.160, 2.145};
    static const double t99[] = {63.66, 9.925, 5.841, 4.604, 4.032,
                                 3.707, 3.499, 3.355, 3.250, 3.169,
                                 3.106, 3.055, 3.012, 2.977};
    enum { LAST = sizeof t95 / sizeof *t95 };
    int at = blocks - 1 < LAST ? blocks - 2 : LAST - 1;
    double t = level > 0.97 ? t99[at] / 2.576 : t95[at] / 1.960;
    return t * sqrt((double)blocks / (blocks - 1));
}

Ratio compare_ratio(const CompareBlock *blocks, int count, double level)
{
    Ratio none = {NAN, NAN, NAN};
    if (count <= 0)
        return none;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 2; k++)
            if (blocks[i].a[k].count < 1 || blocks[i].b[k].count < 1)
                return none;
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += log_ratio(&blocks[i]);
    double replicas[REPLICAS];
    uint64_t state = 1;
    for (int r = 0; r < REPLICAS; r++) {
        double drawn = 0;
        for (int i = 0; i < count; i++)
            drawn += resampled_log_ratio(&blocks[pick(&state, count)], &state);
        replicas[r] = drawn / count;
    }
    /* One block says nothing of how blocks differ. */
    if (count < 2)
        return (Ratio){exp(sum / count), NAN, NAN};
    double low = stats_percentile(replicas, REPLICAS, (1 - level) / 2);
    double high = stats_percentile(replicas, REPLICAS, (1 + level) / 2);
    double centre = sum / count, wider = widening(count, level);
    return (Ratio){exp(centre), exp(centre - wider * (centre - low)),
                   exp(centre + wider * (high - centre))};
}

/* Less than this is of no use to anybody, and near what the layout of a
 * program's memory does. */
static const double margin = 1.01;

const char *verdict_name(Verdict verdict)
{
    static const char *const names[VERDICT_COUNT] = {
        "improved",       "regressed", "same",   "inconclusive",
        "not-comparable", "broken",    "missing"};
    return names[verdict];
}

Verdict verdict_of(Ratio ratio)
{
    if (isnan(ratio.value))
        return VERDICT_BROKEN;
    if (!(ratio.low <= ratio.high))
        return VERDICT_INCONCLUSIVE;
    if (ratio.low >= 1 / margin && ratio.high <= margin)
        return VERDICT_SAME;
    return ratio.low > 1    ? VERDICT_IMPROVED
           : ratio.high < 1 ? VERDICT_REGRESSED
                            : VERDICT_INCONCLUSIVE;
}
