/* Accuracy on labelled data, of the very artifacts that were timed. */
#ifndef ASSAY_HARNESS_ACCURACY_H
#define ASSAY_HARNESS_ACCURACY_H

#include "harness/measure.h"

/* Scores every mode that is right so far, by the metric of its labels. Sets
 * `accuracy`, or labels_missing; a suite model below its stated accuracy on
 * all examples is MODE_WRONG. */
void accuracy_measure(Arena *arena, const MeasurePlan *plan, const char *work,
                      ModelResult *result);

#endif
