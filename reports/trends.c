/* Trends: a plot a model and metric over all runs, the modes of a model in
 * one plot where their values are near enough. With one run there is no
 * trend: then the cases' values are shown side by side. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/trend_plot.h"

enum {
    NAME_LENGTH = 21,
    ROW = 17,
    MAX_KERNEL_PLOTS = 48 /* of kernels alone, worst first */
};
/* Modes of one plot differ by less than this factor. */
#define NEAR 2.5

/* ---- cases of a model ------------------------------------------------- */

static int compare_series(const void *a, const void *b)
{
    double x = ((const Series *)a)->newest, y = ((const Series *)b)->newest;
    return (x > y) - (x < y);
}

/* Cases with the metric of the model of judgement `first`, lowest first; none
 * when an earlier judgement was of that model. Kernels stand alone. */
static int collect(Page *page, const Judged *j, int metric, int first,
                   Series *all)
{
    const History *h = j->h;
    bool alone = is_kernel_suite(h);
    const char *model = h->cases.data[j->cases[first].c].model;
    int count = 0;
    for (int i = alone ? first : 0; i < (alone ? first + 1 : j->case_count);
         i++) {
        const Case *c = &h->cases.data[j->cases[i].c];
        if (strcmp(c->model, model))
            continue;
        if (i < first)
            return 0;
        double newest = judged_newest_value(j, j->cases[i].c, metric);
        if (!isnan(newest))
            all[count++] =
                (Series){.judgement = &j->cases[i],
                         .c = j->cases[i].c,
                         .colour = alone ? 0 : page_mode(page, c->mode),
                         .newest = newest};
    }
    qsort(all, (size_t)count, sizeof *all, compare_series);
    return count;
}

/* ---- one run ---------------------------------------------------------- */

/* Values of the only run, a row a model. */
typedef struct DotPlot {
    Str dots, ranges, ticks;
    Vec(const char *) tips;
    int rows, range_count;
    Range range;
    double least, largest; /* of the values, not scaled */
    Scale scale;
} DotPlot;

static void add_dots(Page *page, const Judged *j, const Metric *m, DotPlot *d,
                     const Series *s)
{
    const Record *r = data_record(j->h, 0, s->c);
    double divisor = d->scale.divisor, value = s->newest / divisor;
    str_addf(&d->dots, "%.6g %d %d\n", value, -d->rows, 16 + s->colour);
    range_add(&d->range, value);
    vec_push(page->arena, &d->tips,
             (const char *)arena_printf(
                 page->arena, "%s: %s", j->h->cases.data[s->c].name,
                 format_value(page->arena, m->unit, s->newest)));
    if (strcmp(m->name, "p50") || isnan(r->p10) || isnan(r->p90))
        return;
    str_addf(&d->ranges, "%.6g %d %.6g 0 %d\n", r->p10 / divisor, -d->rows,
             (r->p90 - r->p10) / divisor, 16 + s->colour);
    range_add(&d->range, r->p10 / divisor);
    range_add(&d->range, r->p90 / divisor);
    d->range_count++;
}

static void fill_dot_plot(Page *page, const Judged *j, int metric, DotPlot *d)
{
    const Metric *m = &page->data->metrics.data[metric];
    Series *all = ARENA_ARRAY(page->arena, Series, j->case_count);
    for (int c = 0; c < j->case_count; c++) {
        double value = judged_newest_value(j, j->cases[c].c, metric);
        d->largest = value > d->largest ? value : d->largest;
        d->least = value < d->least ? value : d->least;
    }
    d->scale = scale_for(page->arena, m->unit, d->largest);
    for (int first = 0; first < j->case_count; first++) {
        int found = collect(page, j, metric, first, all);
        if (!found)
            continue;
        d->rows++;
        const Case *c = &j->h->cases.data[all[0].c];
        const char *name = is_kernel_suite(j->h) ? c->mode : c->model;
        str_addf(&d->ticks, "%s\"%s\" %d", d->rows > 1 ? ", " : "",
                 plot_label(page->plots, name, NAME_LENGTH), -d->rows);
        for (int i = 0; i < found; i++)
            add_dots(page, j, m, d, &all[i]);
    }
}

static void draw_dot_plot(Page *page, const Metric *m, DotPlot *d)
{
    Str *body = &page->body, *script = &page->plots->script;
    str_add(body, "<figure><figcaption><b>");
    html_add(body, m->title);
    str_add(body, "</b></figcaption>\n");
    Plot *plot = plot_begin(
        page->plots, body, 400, ROW * d->rows + 50, (Margins){140, 20, 8, 40},
        arena_printf(page->arena, "%s of each case", m->title));
    plot_units(page->plots, plot, "", d->scale.unit);
    for (int i = 0; i < d->tips.count; i++)
        plot_tip(page->plots, plot, d->tips.data[i]);
    if (!metric_is_difference(m) && d->least > 0 &&
        d->largest > 8 * d->least) {
        range_pad_log(&d->range, 1.3);
        axis_add_log(script, 'x', d->range, 4);
    } else {
        range_pad(&d->range,
                  strcmp(m->unit, "ratio") ? 0.2 * d->range.high : 1);
        axis_add(script, 'x', d->range, 4);
    }
    str_addf(script,
             "set yrange [%g:-0.3]\nset ytics (%s)\n$dot << EOD\n%sEOD\n"
             "$range << EOD\n%sEOD\nranges = %d\n",
             -d->rows - 0.7, str_text(&d->ticks), str_text(&d->dots),
             str_text(&d->ranges), d->range_count);
    plot_end(page->plots, "dots.gp");
    str_add(body, "</figure>\n");
}

static void add_modes(Page *page, const Judged *j)
{
    for (int i = 0; i < page->modes.count && !is_kernel_suite(j->h); i++) {
        page_add_mode(page, page->modes.data[i]);
        str_add(&page->body, " ");
    }
}

static void add_dot_plots(Page *page, const Judged *j)
{
    str_add(&page->body, "<p class=\"note\">");
    add_modes(page, j);
    str_add(&page->body,
            "One run so far: its values side by side. "
            "Latencies have a line from 10 % to 90 % of their samples.</p>\n"
            "<div class=\"plots\">\n");
    for (int m = 0; m < page->data->metrics.count; m++) {
        const Metric *metric = &page->data->metrics.data[m];
        if (metric->better == BETTER_NONE)
            continue;
        DotPlot d = {.range = range_empty(), .least = INFINITY};
        fill_dot_plot(page, j, m, &d);
        if (d.tips.count)
            draw_dot_plot(page, metric, &d);
        str_free(&d.dots);
        str_free(&d.ranges);
        str_free(&d.ticks);
    }
    str_add(&page->body, "</div>\n");
}

/* ---- many runs -------------------------------------------------------- */

/* Several plots where the values of a model's cases are far apart. */
static void add_model(Page *page, const Judged *j, int metric,
                      const Series *all, int count)
{
    const Metric *m = &page->data->metrics.data[metric];
    for (int i = 0; i < count;) {
        Panel p = {.page = page, .j = j, .metric = m, .number = metric};
        while (i < count && p.count < MAX_SERIES &&
               (!p.count || metric_is_difference(m) ||
                all[i].newest < NEAR * p.series[0].newest))
            p.series[p.count++] = all[i++];
        trend_add_panel(&p);
    }
}

static bool changes(const Judged *j, int metric, const Series *all, int count)
{
    for (int k = 0; k < count; k++)
        for (int i = 0; i < j->h->runs.count; i++) {
            double value = data_value(j->h, i, all[k].c, metric);
            if (!isnan(value) && value != all[k].newest)
                return true;
        }
    return false;
}

static bool any_changes(const Judged *j, int metric)
{
    for (int i = 0; i < j->case_count; i++) {
        Series one = {.c = j->cases[i].c,
                      .newest = judged_newest_value(j, j->cases[i].c, metric)};
        if (changes(j, metric, &one, 1))
            return true;
    }
    return false;
}

/* A kernel's trend is in its row; a plot is for what happened to it. */
static bool is_eventful(const Judgement *v)
{
    return v->verdict == VERDICT_REGRESSED || v->verdict == VERDICT_IMPROVED ||
           v->verdict == VERDICT_BROKEN || v->steps.count > 0;
}

/* Names those left out as nothing changed. */
static void add_metric(Page *page, const Judged *j, int metric)
{
    Series *all = ARENA_ARRAY(page->arena, Series, j->case_count);
    bool latency = metric == data_metric(page->data, "p50");
    Str still = {0};
    int plots = 0;
    str_add(&page->body, "<div class=\"plots\">\n");
    for (int first = 0; first < j->case_count; first++) {
        int count = collect(page, j, metric, first, all);
        if (!count)
            continue;
        const Case *c = &j->h->cases.data[all[0].c];
        bool kernel = is_kernel_suite(j->h);
        if (kernel ? is_eventful(all[0].judgement) && plots < MAX_KERNEL_PLOTS
                   : latency || changes(j, metric, all, count)) {
            add_model(page, j, metric, all, count);
            plots++;
            continue;
        }
        str_add(&still, still.length ? ", " : "");
        html_add(&still, kernel ? c->mode : c->model);
    }
    str_add(&page->body, "</div>\n");
    if (still.length)
        str_addf(&page->body,
                 "<p class=\"note\">%s: <span class=\"names\">%s</span></p>\n",
                 plots == MAX_KERNEL_PLOTS
                     ? "Without a plot, as there are many"
                 : is_kernel_suite(j->h) ? "No step and no change"
                                         : "The same in all runs",
                 str_text(&still));
    str_free(&still);
}

static int count_moves(const Judged *j, int metric, bool *worse)
{
    int count = 0;
    for (int i = 0; i < j->case_count; i++) {
        const Move *move = judgement_move(&j->cases[i], metric);
        count += move != NULL;
        *worse = *worse || (move && move->worse);
    }
    return count;
}

static bool has_values(const Judged *j, int metric)
{
    for (int i = 0; i < j->case_count; i++)
        if (!isnan(judged_newest_value(j, j->cases[i].c, metric)))
            return true;
    return false;
}

/* Open where the newest run brought a change. */
static void add_folded(Page *page, const Judged *j, int metric)
{
    const Metric *m = &page->data->metrics.data[metric];
    bool worse = false;
    int moves = count_moves(j, metric, &worse);
    str_addf(&page->body, "<details class=\"folded\"%s><summary>",
             worse ? " open=\"open\"" : "");
    html_add(&page->body, m->title);
    if (moves)
        str_addf(&page->body, " <span class=\"%s\">%d moved</span>",
                 worse ? "worse" : "better", moves);
    else if (!any_changes(j, metric))
        str_add(&page->body, " <span class=\"muted\">unchanged</span>");
    str_add(&page->body, "</summary>\n");
    add_metric(page, j, metric);
    str_add(&page->body, "</details>\n");
}

static void add_legend(Page *page, const Judged *j)
{
    str_add(&page->body, "<p class=\"note\">");
    add_modes(page, j);
    str_addf(&page->body,
             "By commit, oldest first. Lines are medians, with a band from "
             "10 %% to 90 %% of the samples. <span class=\"bad\">×</span> not "
             "ok. A dashed line marks a step: the medians of up to %d runs "
             "before and after it differ by more than the case's threshold, "
             "and half of that in one run.</p>\n",
             STEP_WINDOW);
}

void page_add_trends(Page *page, const Judged *j)
{
    int p50 = data_metric(page->data, "p50");
    page_begin_section(page, j, "trends", "Trends");
    if (j->h->runs.count == 1) {
        add_dot_plots(page, j);
        page_end_section(page);
        return;
    }
    add_legend(page, j);
    str_add(&page->body, "<h3>");
    html_add(&page->body, page->data->metrics.data[p50].title);
    str_add(&page->body, "</h3>\n");
    add_metric(page, j, p50);
    for (int m = 0; m < page->data->metrics.count; m++)
        if (m != p50 && !is_kernel_suite(j->h) && has_values(j, m) &&
            page->data->metrics.data[m].better != BETTER_NONE)
            add_folded(page, j, m);
    page_end_section(page);
}
