/* Axes of plots: ranges and ticks that suit the values. */
#ifndef ASSAY_REPORTS_AXIS_H
#define ASSAY_REPORTS_AXIS_H

#include "base/str.h"
#include "reports/plot.h"

typedef struct Range {
    double low, high; /* low > high: empty */
} Range;

Range range_empty(void);
/* Takes a value in, if it is finite. */
void range_add(Range *range, double value);
bool range_is_empty(const Range *range);
/* Room around the values on a plain axis: at least `least` high in all, so
 * that noise does not look like change, and never below 0 for values that
 * are not. */
void range_pad(Range *range, double least);
/* The same on a logarithmic one, by a factor. */
void range_pad_log(Range *range, double factor);

/* `set xrange` and ticks for axis 'x' or 'y' with at most `most` ticks. */
void axis_add(Str *script, char axis, Range range, int most);
void axis_add_log(Str *script, char axis, Range range, int most);
/* Where a value lies, from 0 at the low end to 1. */
double axis_place(Range range, double value, bool logarithmic);

#endif
