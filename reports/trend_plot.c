#include "reports/trend_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/axis.h"
#include "reports/html.h"

enum {
    WIDTH = 400,
    HEIGHT = 208,
    MAX_TICKS = 4,    /* commits named below a plot */
    MAX_POINTS = 200, /* of a line; of more runs, extremes are drawn */
    MAX_DOTTED = 60,  /* runs that get a dot each */
    MAX_STEPS = 4     /* marked in a plot */
};
static const Margins margins = {46, 30, 22, 40};

/* ---- data ------------------------------------------------------------- */

static bool is_latency(const Panel *p)
{
    return !strcmp(p->metric->name, "p50");
}

bool metric_is_difference(const Metric *m)
{
    return !strcmp(m->unit, "ratio") || !strcmp(m->unit, "db");
}

/* The least height of the axis: a tenth of the values, a point, 2 dB. */
static double least_height(const Panel *p)
{
    if (!strcmp(p->metric->unit, "ratio"))
        return 1;
    if (!strcmp(p->metric->unit, "db"))
        return 2;
    return 0.1 * fabs(p->range.high);
}

static void fill_series(Panel *p, Series *s)
{
    const History *h = p->j->h;
    Arena *arena = p->page->arena;
    s->values = ARENA_ARRAY(arena, double, h->runs.count);
    if (is_latency(p)) {
        s->low = ARENA_ARRAY(arena, double, h->runs.count);
        s->high = ARENA_ARRAY(arena, double, h->runs.count);
    }
    for (int i = 0; i < h->runs.count; i++) {
        const Record *r = data_record(h, i, s->c);
        bool ok = record_is_ok(r);
        double value = ok ? data_value(h, i, s->c, p->number) : NAN;
        s->values[i] = value / p->scale.divisor;
        range_add(&p->range, s->values[i]);
        if (!s->low)
            continue;
        s->low[i] = ok ? r->p10 / p->scale.divisor : NAN;
        s->high[i] = ok ? r->p90 / p->scale.divisor : NAN;
    }
}

/* Bands may take as much room as the lines do and a quarter of a value: what
 * a disturbed run's band has beyond is cut off. */
static void widen_for_bands(Panel *p)
{
    Range lines = p->range;
    double room = lines.high - lines.low + 0.25 * fabs(lines.high);
    for (int k = 0; k < p->count; k++)
        for (int i = 0; p->series[k].low && i < p->j->h->runs.count; i++) {
            range_add(&p->range, fmax(p->series[k].low[i], lines.low - room));
            range_add(&p->range,
                      fmin(p->series[k].high[i], lines.high + room));
        }
}

static double largest_of(const Panel *p)
{
    double largest = 0;
    for (int i = 0; i < p->count; i++)
        for (int r = 0; r < p->j->h->runs.count; r++) {
            double value =
                fabs(data_value(p->j->h, r, p->series[i].c, p->number));
            largest = value > largest ? value : largest;
        }
    return largest;
}

/* ---- lines ------------------------------------------------------------ */

/* Runs drawn as one place: all of them up to MAX_POINTS. */
static int bucket_size(const History *h)
{
    return (h->runs.count + MAX_POINTS - 1) / MAX_POINTS;
}

/* One empty line makes a gap; two would begin another block. */
static void add_gap(Str *script)
{
    size_t length = script->length;
    if (length > 1 && strcmp(script->data + length - 2, "\n\n") &&
        !memmem(script->data + length - 4, 4, "EOD\n", 4))
        str_add(script, "\n");
}

/* The extremes of each bucket in their order, so that no spike or step gets
 * lost. A run without a value makes a gap. */
static void add_line(Str *script, const History *h, const double *values)
{
    int size = bucket_size(h);
    for (int i = 0; i < h->runs.count; i += size) {
        int low = -1, high = -1;
        for (int k = i; k < i + size && k < h->runs.count; k++) {
            if (isnan(values[k]))
                continue;
            low = low < 0 || values[k] < values[low] ? k : low;
            high = high < 0 || values[k] >= values[high] ? k : high;
        }
        if (low < 0) {
            add_gap(script);
            continue;
        }
        int first = low < high ? low : high, last = low < high ? high : low;
        str_addf(script, "%d %.6g\n", first + 1, values[first]);
        if (last != first)
            str_addf(script, "%d %.6g\n", last + 1, values[last]);
    }
}

static void add_band(Str *script, const History *h, const Series *s)
{
    int size = bucket_size(h);
    for (int i = 0; i < h->runs.count; i += size) {
        double low = 0, high = 0;
        int count = 0;
        for (int k = i; k < i + size && k < h->runs.count; k++) {
            if (isnan(s->low[k]) || isnan(s->high[k]))
                continue;
            low += s->low[k];
            high += s->high[k];
            count++;
        }
        /* A band of one run alone is a line upwards: as wide as a dot. */
        if (!count)
            add_gap(script);
        else
            str_addf(script, "%g %.6g %.6g\n",
                     size == 1 ? i + 1 : i + (count + 1) / 2.0, low / count,
                     high / count);
    }
}

static int count_values(const double *values, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        found += !isnan(values[i]);
    return found;
}

static void add_lines(Panel *p, Str *script)
{
    const History *h = p->j->h;
    Str band_colours = {0}, line_colours = {0};
    int bands = 0, lines = 0;
    str_add(script, "$band << EOD\n");
    for (int i = 0; i < p->count; i++) {
        const Series *s = &p->series[i];
        if (!s->low || count_values(s->low, h->runs.count) < 2)
            continue;
        add_band(script, h, s);
        str_add(script, "\n\n");
        str_addf(&band_colours, "%d ", s->colour);
        bands++;
    }
    str_add(script, "EOD\n$line << EOD\n");
    for (int i = 0; i < p->count; i++) {
        const Series *s = &p->series[i];
        if (count_values(s->values, h->runs.count) < 2)
            continue;
        add_line(script, h, s->values);
        str_add(script, "\n\n");
        str_addf(&line_colours, "%d ", s->colour);
        lines++;
    }
    str_addf(script,
             "EOD\nbands = %d; lines = %d\nband_colours = '%s'\n"
             "line_colours = '%s'\n",
             bands, lines, str_text(&band_colours), str_text(&line_colours));
    str_free(&band_colours);
    str_free(&line_colours);
}

/* ---- marks ------------------------------------------------------------ */

static const char *run_name(const Panel *p, int run)
{
    const Run *r = &p->j->h->runs.data[run];
    return arena_printf(p->page->arena, "%s, %s",
                        format_commit(p->page->arena, r->commit, r->dirty),
                        format_date(p->page->arena, r->committed));
}

/* A run whose neighbours have no value would not be seen as a line. */
static bool is_alone(const double *values, int count, int i)
{
    return (i == 0 || isnan(values[i - 1])) &&
           (i + 1 == count || isnan(values[i + 1]));
}

static void add_dots(Panel *p, Str *script, Plot *plot)
{
    const History *h = p->j->h;
    int count = h->runs.count, dots = 0;
    str_add(script, "$dot << EOD\n");
    for (int k = 0; k < p->count; k++) {
        const Series *s = &p->series[k];
        for (int i = 0; i < count; i++) {
            bool newest = i == count - 1;
            if (isnan(s->values[i]) || (count > MAX_DOTTED && !newest &&
                                        !is_alone(s->values, count, i)))
                continue;
            const char *colour = "";
            if (newest && is_latency(p))
                colour = s->judgement->verdict == VERDICT_REGRESSED  ? "bad"
                         : s->judgement->verdict == VERDICT_IMPROVED ? "good"
                                                                     : "";
            if (!*colour)
                colour = arena_printf(p->page->arena, "%d", 16 + s->colour);
            else
                colour = *colour == 'b' ? "4" : "5";
            str_addf(script, "%d %.6g %s %s\n", i + 1, s->values[i],
                     newest       ? "0.8"
                     : count > 30 ? "0.35"
                                  : "0.5",
                     colour);
            plot_tip(
                p->page->plots, plot,
                arena_printf(p->page->arena, "%s, %s: %s",
                             h->cases.data[s->c].name, run_name(p, i),
                             format_value(p->page->arena, p->metric->unit,
                                          s->values[i] * p->scale.divisor)));
            dots++;
        }
    }
    str_addf(script, "EOD\ndots = %d\n", dots);
}

/* Crosses at the bottom where a case was not ok. */
static void add_failures(Panel *p, Str *script, Plot *plot)
{
    const History *h = p->j->h;
    int fails = 0;
    double y = p->range.low + 0.04 * (p->range.high - p->range.low);
    str_add(script, "$fail << EOD\n");
    for (int k = 0; k < p->count; k++)
        for (int i = 0; i < h->runs.count; i++) {
            const Record *r = data_record(h, i, p->series[k].c);
            if (!r || record_is_ok(r))
                continue;
            str_addf(script, "%d %.6g\n", i + 1, y);
            plot_tip(p->page->plots, plot,
                     arena_printf(p->page->arena, "%s, %s: %s",
                                  h->cases.data[p->series[k].c].name,
                                  run_name(p, i), r->status));
            fails++;
        }
    str_addf(script, "EOD\nfails = %d\n", fails);
}

/* A label above the line of a step; those too near another's have none. */
static void add_steps(Panel *p, Str *script)
{
    int count = 0, runs = p->j->h->runs.count;
    double last = -INFINITY, low = p->range.low, high = p->range.high;
    str_add(script, "$step << EOD\n");
    Str labels = {0};
    for (int k = 0; k < p->count && is_latency(p); k++) {
        const Judgement *v = p->series[k].judgement;
        for (int i = 0; i < v->steps.count && count < MAX_STEPS; i++) {
            Step step = v->steps.data[i];
            bool worse = step.ratio > 1;
            str_addf(script, "%g %.6g 0 %.6g %d\n", step.at + 0.5, low,
                     high - low, worse ? 4 : 5);
            count++;
            if (fabs(step.at - last) < 0.2 * runs)
                continue;
            bool right = step.at < 0.75 * runs;
            str_addf(&labels,
                     "set label \"%s\" at %g, graph 0.94 %s offset "
                     "%s, 0 tc rgb %s front\n",
                     plot_label(
                         p->page->plots,
                         format_change(p->page->arena, "", 1, step.ratio), 16),
                     step.at + 0.5, right ? "left" : "right",
                     right ? "0.5" : "-0.5", worse ? "bad" : "good");
            last = step.at;
        }
    }
    str_addf(script, "EOD\nsteps = %d\n%s", count, str_text(&labels));
    str_free(&labels);
}

static void add_run_ticks(Panel *p, Str *script)
{
    const History *h = p->j->h;
    int runs = h->runs.count, ticks = runs < MAX_TICKS ? runs : MAX_TICKS;
    str_addf(script, "set xrange [0.5:%g]\nset xtics (", runs + 0.5);
    for (int i = 0; i < ticks; i++) {
        int at =
            ticks > 1 ? (int)((double)i * (runs - 1) / (ticks - 1) + 0.5) : 0;
        const Run *run = &h->runs.data[at];
        str_addf(
            script, "%s\"%s\\n%s\" %d", i ? ", " : "",
            plot_label(p->page->plots,
                       format_commit(p->page->arena, run->commit, run->dirty),
                       8),
            plot_label(p->page->plots,
                       format_date(p->page->arena, run->committed), 10),
            at + 1);
    }
    str_add(script, ")\n");
}

/* ---- panels ----------------------------------------------------------- */

static void add_caption(Panel *p)
{
    Str *body = &p->page->body;
    const History *h = p->j->h;
    str_add(body, "<figcaption>");
    bool kernels = is_kernel_suite(h);
    const Case *first = &h->cases.data[p->series[0].c];
    html_add_name(body, "b", "", kernels ? first->mode : first->model);
    str_add(body, "<span class=\"keys\">");
    for (int i = 0; i < p->count && !kernels; i++) {
        const Series *s = &p->series[i];
        page_add_mode(p->page, h->cases.data[s->c].mode);
        str_addf(body, " <span class=\"now\">%s</span> ",
                 format_value(p->page->arena, p->metric->unit, s->newest));
    }
    str_add(body, "</span></figcaption>\n");
}

static int compare_colours(const void *a, const void *b)
{
    return ((const Series *)a)->colour - ((const Series *)b)->colour;
}

void trend_add_panel(Panel *p)
{
    /* One order of colours in all plots. */
    qsort(p->series, (size_t)p->count, sizeof *p->series, compare_colours);
    p->scale = scale_for(p->page->arena, p->metric->unit, largest_of(p));
    p->range = range_empty();
    for (int i = 0; i < p->count; i++)
        fill_series(p, &p->series[i]);
    if (range_is_empty(&p->range))
        return;
    widen_for_bands(p);
    range_pad(&p->range, least_height(p));
    Str *body = &p->page->body, *script = &p->page->plots->script;
    str_add(body, "<figure>");
    add_caption(p);
    const Case *first = &p->j->h->cases.data[p->series[0].c];
    Plot *plot = plot_begin(p->page->plots, body, WIDTH, HEIGHT, margins,
                            arena_printf(p->page->arena, "%s of %s by commit",
                                         p->metric->title, first->model));
    plot_units(p->page->plots, plot, p->scale.unit, "");
    axis_add(script, 'y', p->range, 6);
    add_run_ticks(p, script);
    add_lines(p, script);
    add_steps(p, script);
    add_failures(p, script, plot);
    add_dots(p, script, plot);
    plot_end(p->page->plots, "trend.gp");
    str_add(body, "</figure>\n");
}
