#include "reports/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

enum {
    REPLICAS = 1000,
    MAX_DRAWN = 100, /* samples drawn of each process */
    MIN_DIFFERENCES = 6
};

static void *must_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        die("no memory for %zu samples", count);
    return memory;
}

/* ---- samples ---------------------------------------------------------- */

static bool is_time(const json_t *value)
{
    double seconds = json_number_value(value);
    return json_is_number(value) && isfinite(seconds) && seconds > 0;
}

Samples samples_read(Reader *r, const json_t *row, const char *place)
{
    const json_t *lists = read_array(r, row, place, "samples");
    size_t most = 0;
    for (size_t i = 0; i < json_array_size(lists); i++)
        most += json_array_size(json_array_get(lists, i));
    Samples s = {must_alloc(most, sizeof(double)),
                 must_alloc(json_array_size(lists) + 1, sizeof(int)), 0, 0};
    int faults = 0;
    for (size_t i = 0; i < json_array_size(lists); i++) {
        const json_t *list = json_array_get(lists, i);
        int before = s.total;
        faults += !json_is_array(list);
        for (size_t k = 0; k < json_array_size(list); k++) {
            const json_t *value = json_array_get(list, k);
            if (is_time(value))
                s.seconds[s.total++] = json_number_value(value);
            else
                faults++;
        }
        if (s.total > before)
            s.starts[++s.processes] = s.total;
    }
    if (faults)
        read_fault(r, place, "samples",
                   arena_printf(r->arena,
                                "%d that are no positive times; left out",
                                faults));
    return s;
}

void samples_free(Samples *s)
{
    free(s->seconds);
    free(s->starts);
    *s = (Samples){0};
}

/* ---- quantiles -------------------------------------------------------- */

/* Hoare's selection: afterwards `values[place]` is what sorting would put
 * there, nothing before it is larger and nothing after it smaller. */
static double select_place(double *values, int count, int place)
{
    int low = 0, high = count - 1;
    while (low < high) {
        double pivot = values[(low + high) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i <= j) {
                double swapped = values[i];
                values[i++] = values[j];
                values[j--] = swapped;
            }
        }
        if (place <= j)
            high = j;
        else if (place >= i)
            low = i;
        else
            break;
    }
    return values[place];
}

double stats_quantile(double *values, int count, double q)
{
    if (count <= 0)
        return NAN;
    double place = q * (count - 1);
    int below = (int)place;
    double low = select_place(values, count, below);
    if (below + 1 >= count || place == below)
        return low;
    double next = values[below + 1];
    for (int i = below + 2; i < count; i++)
        next = values[i] < next ? values[i] : next;
    return low + (place - below) * (next - low);
}

/* ---- ratios ----------------------------------------------------------- */

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

/* `drawn` has room for MAX_DRAWN a process. */
static double resampled_median(const Samples *s, double *drawn,
                               uint64_t *state)
{
    int count = 0;
    for (int p = 0; p < s->processes; p++) {
        int process = pick(state, s->processes);
        int start = s->starts[process];
        int size = s->starts[process + 1] - start;
        for (int k = 0; k < size && k < MAX_DRAWN; k++)
            drawn[count++] = s->seconds[start + pick(state, size)];
    }
    return stats_quantile(drawn, count, 0.5);
}

static double plain_median(const Samples *s, double *room)
{
    memcpy(room, s->seconds, sizeof(double) * (size_t)s->total);
    return stats_quantile(room, s->total, 0.5);
}

Ratio stats_ratio(const Samples *fresh, const Samples *base)
{
    if (!fresh->total || !base->total)
        return (Ratio){NAN, NAN, NAN};
    int most = fresh->total > base->total ? fresh->total : base->total;
    int processes = fresh->processes > base->processes ? fresh->processes
                                                       : base->processes;
    if (most < processes * MAX_DRAWN)
        most = processes * MAX_DRAWN;
    double *room = must_alloc((size_t)most, sizeof(double));
    Ratio ratio = {plain_median(fresh, room) / plain_median(base, room), 0, 0};
    double replicas[REPLICAS];
    uint64_t state = 1;
    for (int i = 0; i < REPLICAS; i++) {
        double x = resampled_median(fresh, room, &state);
        replicas[i] = x / resampled_median(base, room, &state);
    }
    free(room);
    ratio.low = stats_quantile(replicas, REPLICAS, 0.025);
    ratio.high = stats_quantile(replicas, REPLICAS, 0.975);
    return ratio;
}

/* ---- histories -------------------------------------------------------- */

double stats_usual_difference(const double *values, int count,
                              bool logarithmic)
{
    double *steps = must_alloc((size_t)count, sizeof(double));
    double last = NAN;
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (!isfinite(values[i]) || (logarithmic && values[i] <= 0))
            continue;
        if (!isnan(last))
            steps[found++] =
                logarithmic ? log(values[i] / last) : values[i] - last;
        last = values[i];
    }
    double usual = NAN;
    if (found >= MIN_DIFFERENCES) {
        double middle = stats_quantile(steps, found, 0.5);
        for (int i = 0; i < found; i++)
            steps[i] = fabs(steps[i] - middle);
        /* 1.4826 makes it a standard deviation where that is normal. */
        usual = 1.96 * 1.4826 * stats_quantile(steps, found, 0.5);
        usual = logarithmic ? expm1(usual) : usual;
    }
    free(steps);
    return usual;
}

/* The median and the middle half of values [from, to). */
typedef struct Window {
    double low, median, high;
} Window;

static Window window_of(const double *values, int from, int to)
{
    double kept[STEP_WINDOW];
    int count = to - from;
    memcpy(kept, values + from, sizeof(double) * (size_t)count);
    double low = stats_quantile(kept, count, 0.25);
    double median = stats_quantile(kept, count, 0.5);
    return (Window){low, median, stats_quantile(kept, count, 0.75)};
}

/* The logarithm of the step at `at`, or 0. */
static double step_at(const double *values, int count, int at,
                      double threshold)
{
    int from = at - STEP_WINDOW > 0 ? at - STEP_WINDOW : 0;
    int to = at + STEP_WINDOW < count ? at + STEP_WINDOW : count;
    Window before = window_of(values, from, at);
    Window after = window_of(values, at, to);
    double change = log(after.median / before.median);
    double jump = log(values[at] / values[at - 1]);
    bool beyond = change > 0 ? after.low > before.high && jump > change / 2
                             : after.high < before.low && jump < change / 2;
    return beyond && fabs(change) > log1p(threshold) ? change : 0;
}

void stats_find_steps(Arena *arena, const double *values, int count,
                      double threshold, Steps *steps)
{
    double *kept = must_alloc((size_t)count, sizeof(double));
    int *places = must_alloc((size_t)count, sizeof(int));
    int n = 0;
    for (int i = 0; i < count; i++) {
        if (!isfinite(values[i]) || values[i] <= 0)
            continue;
        places[n] = i;
        kept[n++] = values[i];
    }
    /* One step is seen from the runs around it, too: the largest of them
     * within a window is it. */
    double last = 0;
    for (int at = STEP_LEAST; at + STEP_LEAST <= n; at++) {
        double change = step_at(kept, n, at, threshold);
        if (change == 0)
            continue;
        Step *newest = steps->count ? &steps->data[steps->count - 1] : NULL;
        if (newest && places[at] - newest->at < STEP_WINDOW / 2 &&
            change * last > 0) {
            if (fabs(change) > fabs(last))
                *newest = (Step){places[at], exp(change)}, last = change;
            continue;
        }
        Step step = {places[at], exp(change)};
        vec_push(arena, steps, step);
        last = change;
    }
    free(kept);
    free(places);
}
