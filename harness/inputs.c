#include "harness/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "suites/random.h"

void inputs_fill(Array *array, uint64_t seed, int index,
                 const InputRange *within)
{
    /* A sequence of its own for each input, the same on every machine. */
    uint64_t key = random_bits(seed, (uint64_t)index);
    int64_t count = array_count(array);
    if (dtype_is_float(array->dtype)) {
        for (int64_t i = 0; i < count; i++) {
            double value = random_normal(key, (uint64_t)i);
            if (within)
                value = within->low + (within->high - within->low) *
                                          random_uniform(key, (uint64_t)i);
            array_set(array, i, value);
        }
        return;
    }
    /* Small, as integers often are indices into tables of unknown length. */
    uint64_t range = array->dtype == DT_BOOL ? 2 : 10;
    for (int64_t i = 0; i < count; i++)
        array_set_int(array, i,
                      (int64_t)(random_bits(key, (uint64_t)i) % range));
}

void inputs_bound(Array *array, const char *name, const Extent *bounds,
                  int count)
{
    size_t length = strlen(name);
    for (int i = 0; i < count; i++) {
        const char *of = bounds[i].expr->name, *rest = of + length;
        if (strncmp(of, name, length) || (*rest && *rest != '['))
            continue;
        int64_t only = *rest ? strtoll(rest + 1, NULL, 10) : -1;
        for (int64_t k = 0; k < array_count(array); k++)
            if (!dtype_is_float(array->dtype) && (only < 0 || only == k))
                array_set_int(array, k, bounds[i].value);
    }
}
