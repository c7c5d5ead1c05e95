/* Other inference engines against Assay: geometric means, ratios of the
 * newest run as points and rows, and their course over commits. */
#include <math.h>
#include <string.h>

#include "reports/html.h"
#include "reports/page.h"
#include "reports/trend_plot.h"

enum { NAME_LENGTH = 21, ROW = 17 };
/* The least that the scale of the tables' intervals goes to. */
#define MIN_SPAN 1.15

bool is_peer_suite(const History *h)
{
    return !strcmp(h->suite, "peers");
}

static const char *mode_name(Page *p, const char *engine, double threads)
{
    return arena_printf(p->arena, "%s-t%.0f", engine,
                        isnan(threads) ? 0 : threads);
}

static const char *class_of(const Ratio *r)
{
    double low = isnan(r->low) ? r->value : r->low;
    double high = isnan(r->high) ? r->value : r->high;
    return low > 1 ? "good" : high < 1 ? "bad" : "even";
}

static void add_ratio_cell(Page *p, const Ratio *r, double span)
{
    str_add(&p->body, "<td class=\"change\">");
    if (!isnan(r->value)) {
        page_add_interval(p, r, 0, span, class_of(r));
        str_addf(&p->body, "<span class=\"ratio\">%s</span>",
                 format_interval(p->arena, r->value, r->low, r->high));
    }
    str_add(&p->body, "</td>");
}

/* ---- geometric means -------------------------------------------------- */

static void add_means(Page *p, const RunDetail *d)
{
    if (!d->peer_means.count)
        return;
    double span = MIN_SPAN;
    for (int i = 0; i < d->peer_means.count; i++)
        span = page_wider_span(span, &d->peer_means.data[i].ratio);
    str_add(&p->body, "<div class=\"scroll\"><table class=\"sortable\">\n");
    html_head(&p->body, "<engine|threads|<geometric mean|models|least|<model");
    str_add(&p->body, "<tbody>\n");
    for (int i = 0; i < d->peer_means.count; i++) {
        const PeerMeanDetail *m = &d->peer_means.data[i];
        str_add(&p->body, "<tr><th scope=\"row\">");
        html_add_name(&p->body, "span", "", m->engine);
        str_add(&p->body, "</th>");
        html_cell(&p->body, "", format_value(p->arena, "count", m->threads));
        add_ratio_cell(p, &m->ratio, span);
        html_cell(&p->body, "", format_value(p->arena, "count", m->models));
        html_cell(&p->body, m->least < 1 ? "worse" : "",
                  format_ratio(p->arena, m->least));
        str_add(&p->body, "<td class=\"left\">");
        html_add_name(&p->body, "span", "", m->worst);
        str_add(&p->body, "</td></tr>\n");
    }
    str_add(&p->body, "</tbody></table></div>\n");
}

/* ---- points ----------------------------------------------------------- */

typedef struct RatioPlot {
    Str dots, ranges, ticks;
    Vec(const char *) models; /* a row each */
    Vec(const char *) tips;
    int range_count;
    Range range;
} RatioPlot;

static int row_of(Page *p, RatioPlot *plot, const char *model)
{
    int row = 0;
    while (row < plot->models.count && strcmp(plot->models.data[row], model))
        row++;
    if (row == plot->models.count) {
        vec_push(p->arena, &plot->models, model);
        str_addf(&plot->ticks, "%s\"%s\" %d", row ? ", " : "",
                 plot_label(p->plots, model, NAME_LENGTH), -row - 1);
    }
    return row + 1;
}

static void add_point(Page *p, RatioPlot *plot, const PeerDetail *d)
{
    const Ratio *r = &d->ratio;
    const char *mode = mode_name(p, d->engine, d->threads);
    int row = row_of(p, plot, d->model), colour = 16 + page_mode(p, mode);
    str_addf(&plot->dots, "%.6g %d %d\n", r->value, -row, colour);
    range_add(&plot->range, r->value);
    vec_push(p->arena, &plot->tips,
             (const char *)arena_printf(
                 p->arena, "%s, %s: %s", d->model, mode,
                 format_interval(p->arena, r->value, r->low, r->high)));
    if (!(r->low > 0 && r->low <= r->high) || isinf(r->high))
        return;
    str_addf(&plot->ranges, "%.6g %d %.6g 0 %d\n", r->low, -row,
             r->high - r->low, colour);
    range_add(&plot->range, r->low);
    range_add(&plot->range, r->high);
    plot->range_count++;
}

static void draw(Page *p, RatioPlot *d, double threads)
{
    Str *body = &p->body, *script = &p->plots->script;
    const char *title =
        arena_printf(p->arena, "Peer over Assay, %.0f thread%s", threads,
                     threads == 1 ? "" : "s");
    int rows = d->models.count;
    str_add(body, "<figure><figcaption><b>");
    html_add(body, title);
    str_add(body, "</b></figcaption>\n");
    Plot *plot = plot_begin(p->plots, body, 400, ROW * rows + 50,
                            (Margins){140, 20, 8, 40}, title);
    plot_units(p->plots, plot, "", "times");
    for (int i = 0; i < d->tips.count; i++)
        plot_tip(p->plots, plot, d->tips.data[i]);
    /* As fast as Assay is always to be seen. */
    range_add(&d->range, 1);
    range_pad_log(&d->range, 1.05);
    if (d->range.high > 4 * d->range.low)
        axis_add_log(script, 'x', d->range, 4);
    else
        axis_add(script, 'x', d->range, 4);
    str_addf(script,
             "set yrange [%g:-0.3]\nset ytics (%s)\n"
             "set arrow from 1, graph 0 to 1, graph 1 nohead back lc rgb "
             "roof\n$dot << EOD\n%sEOD\n$range << EOD\n%sEOD\nranges = %d\n",
             -rows - 0.7, str_text(&d->ticks), str_text(&d->dots),
             str_text(&d->ranges), d->range_count);
    plot_end(p->plots, "dots.gp");
    str_add(body, "</figure>\n");
}

static bool is_drawable(const PeerDetail *d)
{
    return d->ratio.value > 0 && isfinite(d->ratio.value) &&
           !isnan(d->threads);
}

/* One for each number of threads, in the order of the rows. */
static void add_plots(Page *p, const RunDetail *d)
{
    str_add(&p->body, "<div class=\"plots\">\n");
    for (int i = 0; i < d->peers.count; i++) {
        double threads = d->peers.data[i].threads;
        bool known = !is_drawable(&d->peers.data[i]);
        for (int k = 0; k < i; k++)
            known = known || (is_drawable(&d->peers.data[k]) &&
                              d->peers.data[k].threads == threads);
        if (known)
            continue;
        RatioPlot plot = {.range = range_empty()};
        for (int k = i; k < d->peers.count; k++)
            if (is_drawable(&d->peers.data[k]) &&
                d->peers.data[k].threads == threads)
                add_point(p, &plot, &d->peers.data[k]);
        draw(p, &plot, threads);
        str_free(&plot.dots);
        str_free(&plot.ranges);
        str_free(&plot.ticks);
    }
    str_add(&p->body, "</div>\n");
}

/* ---- rows ------------------------------------------------------------- */

static void add_value(Page *p, const char *label, double ms)
{
    str_addf(&p->body, "<td class=\"value\" data-label=\"%s\">%s</td>", label,
             format_value(p->arena, "s", ms / 1e3));
}

static void add_row(Page *p, const PeerDetail *d, double span)
{
    str_add(&p->body, "<tr><th scope=\"row\">");
    html_add_name(&p->body, "span", "", d->model);
    str_add(&p->body, "</th><td class=\"left first\">");
    page_add_mode(p, mode_name(p, d->engine, d->threads));
    str_add(&p->body, "</td>");
    add_ratio_cell(p, &d->ratio, span);
    add_value(p, "Assay", d->assay_ms);
    add_value(p, "peer", d->peer_ms);
    html_cell(&p->body, strcmp(d->status, "ok") ? "left worse" : "left",
              d->status);
    str_add(&p->body, "<td class=\"left muted\">");
    html_add_short(&p->body, d->version, 24);
    if (*d->variant) {
        str_add(&p->body, ", ");
        html_add_short(&p->body, d->variant, 32);
    }
    str_add(&p->body, "</td></tr>\n");
}

static void add_rows(Page *p, const RunDetail *d)
{
    double span = MIN_SPAN;
    for (int i = 0; i < d->peers.count; i++)
        span = page_wider_span(span, &d->peers.data[i].ratio);
    str_add(&p->body,
            "<div class=\"scroll\"><table class=\"cases sortable\">\n");
    html_head(&p->body, "<model|<engine, threads|<peer / Assay|Assay|peer|"
                        "<status|<version");
    str_add(&p->body, "<tbody>\n");
    for (int i = 0; i < d->peers.count; i++)
        add_row(p, &d->peers.data[i], span);
    str_add(&p->body, "</tbody></table></div>\n");
}

/* ---- trends ----------------------------------------------------------- */

/* The cases of a model that was not drawn before. */
static void add_model_trend(Page *p, const Judged *j, int metric, int first)
{
    const History *h = j->h;
    const char *model = h->cases.data[j->cases[first].c].model;
    for (int i = 0; i < first; i++)
        if (!strcmp(h->cases.data[j->cases[i].c].model, model))
            return;
    Panel panel = {.page = p,
                   .j = j,
                   .metric = &p->data->metrics.data[metric],
                   .number = metric};
    for (int i = first; i < j->case_count; i++) {
        const Case *c = &h->cases.data[j->cases[i].c];
        double newest = judged_newest_value(j, j->cases[i].c, metric);
        if (strcmp(c->model, model) || isnan(newest))
            continue;
        panel.series[panel.count++] = (Series){.judgement = &j->cases[i],
                                               .c = j->cases[i].c,
                                               .colour = page_mode(p, c->mode),
                                               .newest = newest};
        if (panel.count < MAX_SERIES)
            continue;
        trend_add_panel(&panel);
        panel.count = 0;
    }
    if (panel.count)
        trend_add_panel(&panel);
}

static void add_trends(Page *p, const Judged *j)
{
    int metric = data_metric(p->data, "peer_ratio");
    if (j->h->runs.count < 2 || metric < 0)
        return;
    str_add(&p->body, "<h3>By commit</h3>\n<div class=\"plots\">\n");
    for (int i = 0; i < j->case_count; i++)
        add_model_trend(p, j, metric, i);
    str_add(&p->body, "</div>\n");
}

/* ---- section ---------------------------------------------------------- */

void page_add_peers(Page *p, const Judged *j)
{
    const RunDetail *d = j->newest;
    if (!d->peers.count)
        return;
    page_begin_section(p, j, "peers", "Peers");
    str_add(&p->body, "<p class=\"note\">Time of another engine "
                      "over Assay's, in f32, with the same inputs, threads "
                      "and processors, measured in turns in fresh processes: "
                      "above 1, Assay is faster.</p>\n<p class=\"note\">");
    for (int i = 0; i < p->modes.count; i++) {
        page_add_mode(p, p->modes.data[i]);
        str_add(&p->body, " ");
    }
    str_add(&p->body, "</p>\n");
    add_means(p, d);
    str_add(&p->body, "<h3>Newest run</h3>\n");
    add_plots(p, d);
    add_rows(p, d);
    add_trends(p, j);
    page_end_section(p);
}
