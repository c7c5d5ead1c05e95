/* Seeded inputs: the same array for the same seed, everywhere. */
#ifndef ASSAY_HARNESS_INPUTS_H
#define ASSAY_HARNESS_INPUTS_H

#include "base/array.h"
#include "graph/extent.h"

/* What a model expects of its inputs. */
typedef struct InputRange {
    double low, high;
} InputRange;

/* Floats: uniform over `range`, or standard normal where that is NULL.
 * Integers: 0 to 9. Bool: 0 or 1. `index` is the input's number, so that two
 * inputs differ. */
void inputs_fill(Array *array, uint64_t seed, int index,
                 const InputRange *range);
/* Integers that shapes depend on: those with bounds, NAME for all elements of
 * an input or NAME[I], become the upper ones. */
void inputs_bound(Array *array, const char *name, const Extent *bounds,
                  int count);

#endif
