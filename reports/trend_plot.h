/* The plot of a trend: values of a metric by run, a line a case. */
#ifndef ASSAY_REPORTS_TREND_PLOT_H
#define ASSAY_REPORTS_TREND_PLOT_H

#include "reports/html.h"
#include "reports/axis.h"
#include "reports/page.h"

/* A case's values of a metric by run. */
typedef struct Series {
    const Judgement *judgement;
    int c, colour;
    double newest;               /* of the newest run that has one */
    double *values, *low, *high; /* what is drawn; low NULL: no band */
} Series;

enum { MAX_SERIES = MODE_COLOURS };

typedef struct Panel {
    Page *page;
    const Judged *j;
    const Metric *metric;
    int number; /* of the metric */
    Series series[MAX_SERIES];
    int count;
    Scale scale; /* of what is drawn, with the range: set by drawing */
    Range range;
} Panel;

/* Adds a figure, unless no run has a value. `series` have their judgement,
 * case, colour and newest value set. */
void trend_add_panel(Panel *p);

/* Shares and decibels change by differences, all others by factors. */
bool metric_is_difference(const Metric *m);

#endif
