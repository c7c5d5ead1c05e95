#include "harness/roofline.h"

#include <math.h>

#include "harness/values.h"

/* The row of peak's "bandwidth" that holds `bytes`, spread over the
 * threads; the last one holds anything. */
static const json_t *level_of(const json_t *peak, double bytes)
{
    const json_t *levels = json_object_get(peak, "bandwidth");
    double threads = fmax(number_of(peak, "threads"), 1);
    size_t i, count = json_array_size(levels);
    json_t *level;
    json_array_foreach(levels, i, level)
    {
        if (i + 1 == count || bytes <= number_of(level, "bytes") * threads)
            return level;
    }
    return NULL;
}

static double seconds_of(double bytes, const json_t *level)
{
    return bytes > 0 ? bytes / (number_of(level, "gbps") * 1e9) : 0;
}

static double weights_of(const json_t *step)
{
    double bytes = number_of(step, "weight_bytes");
    return bytes > 0 ? bytes : 0; /* unknown in older artifacts */
}

/* `home`: the level that all weights come from. */
static void complete_step(json_t *step, const json_t *peak, const json_t *home)
{
    double weights = weights_of(step);
    double others = number_of(step, "bytes") - weights;
    const json_t *near = level_of(peak, others);
    double compute =
        number_of(step, "flops") / (number_of(peak, "fma_gflops") * 1e9);
    double of_weights = seconds_of(weights, home);
    double of_others = seconds_of(others, near);
    double memory = of_weights + of_others;
    double share = fmax(compute, memory) / number_of(step, "seconds");
    if (!near || !isfinite(share))
        return;
    /* That which takes most of the time. */
    const json_t *level = of_weights > of_others ? home : near;
    json_object_set_new(step, "bound",
                        json_string(compute >= memory ? "compute" : "memory"));
    json_object_set(step, "level", json_object_get(level, "level"));
    json_object_set_new(step, "bound_share", json_real(share));
}

void roofline_complete(json_t *steps, const json_t *peak)
{
    double total = 0, weights = 0;
    size_t i;
    json_t *step;
    json_array_foreach(steps, i, step)
    {
        total += number_of(step, "seconds");
        weights += weights_of(step);
    }
    const json_t *home = level_of(peak, weights);
    json_array_foreach(steps, i, step)
    {
        if (total > 0)
            json_object_set_new(step, "share",
                                json_real(number_of(step, "seconds") / total));
        if (peak)
            complete_step(step, peak, home);
    }
}
