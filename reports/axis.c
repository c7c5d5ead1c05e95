#include "reports/axis.h"

#include <math.h>

Range range_empty(void)
{
    return (Range){INFINITY, -INFINITY};
}

void range_add(Range *range, double value)
{
    if (!isfinite(value))
        return;
    range->low = value < range->low ? value : range->low;
    range->high = value > range->high ? value : range->high;
}

bool range_is_empty(const Range *range)
{
    return range->low > range->high;
}

void range_pad(Range *range, double least)
{
    bool positive = range->low >= 0;
    double room = 0.12 * (range->high - range->low);
    if (range->high - range->low + 2 * room < least)
        room = (least - (range->high - range->low)) / 2;
    /* Nothing but zeros. */
    if (room <= 0)
        room = 1;
    range->low -= room;
    range->high += room;
    if (positive && range->low < 0)
        range->low = 0;
}

void range_pad_log(Range *range, double factor)
{
    range->low /= factor;
    range->high *= factor;
}

/* The smallest of 1, 2 and 5 times a power of ten that is no less. */
static double nice(double step)
{
    double power = pow(10, floor(log10(step)));
    double first = step / power;
    return power * (first <= 1.0001   ? 1
                    : first <= 2.0001 ? 2
                    : first <= 5.0001 ? 5
                                      : 10);
}

void axis_add(Str *script, char axis, Range range, int most)
{
    str_addf(script, "set %crange [%.9g:%.9g]\nset %ctics %.9g\n", axis,
             range.low, range.high, axis,
             nice((range.high - range.low) / most));
}

void axis_add_log(Str *script, char axis, Range range, int most)
{
    str_addf(script, "set logscale %c\nset %crange [%.9g:%.9g]\n", axis, axis,
             range.low, range.high);
    double decades = log10(range.high / range.low);
    if (decades < 2) {
        /* Few powers of ten or none: 1, 2, 5. */
        const char *comma = "";
        str_addf(script, "set %ctics (", axis);
        static const double digits[] = {1, 2, 5};
        for (int e = (int)floor(log10(range.low)); pow(10, e) < range.high;
             e++)
            for (int d = 0; d < 3; d++) {
                double value = digits[d] * pow(10, e);
                if (value < range.low || value > range.high)
                    continue;
                str_addf(script, "%s\"%g\" %.9g", comma, value, value);
                comma = ", ";
            }
        str_add(script, ")\n");
        return;
    }
    str_addf(script, "set %ctics %g\n", axis, pow(10, ceil(decades / most)));
}

double axis_place(Range range, double value, bool logarithmic)
{
    return logarithmic ? log(value / range.low) / log(range.high / range.low)
                       : (value - range.low) / (range.high - range.low);
}
