/* Failures first, then a row a case, worst change first. */
#include <math.h>
#include <string.h>

#include "reports/html.h"
#include "reports/page.h"

/* Changes of a latency are shown from 1 / SPAN to SPAN. */
#define SPAN 1.35

/* ---- failures --------------------------------------------------------- */

static void add_failure(Page *p, const Judged *j, const Judgement *v)
{
    const History *h = j->h;
    const Record *r = data_record(h, history_newest(h), v->c);
    str_add(&p->body, "<li>");
    html_add_name(&p->body, "b", "", h->cases.data[v->c].name);
    str_addf(&p->body, " <span class=\"verdict %s\">",
             judge_verdict_name(v->verdict));
    html_add(&p->body, r ? r->status : "missing");
    str_add(&p->body, "</span>");
    if (!r)
        str_addf(&p->body, " <span class=\"since\">not in this run</span>");
    else if (v->failing > 1)
        str_addf(&p->body, " <span class=\"since\">for %d runs</span>",
                 v->failing);
    else if (v->base >= 0)
        str_add(&p->body, " <span class=\"since\">since this run</span>");
    if (r && *r->reason) {
        str_add(&p->body, "<div class=\"reason\">");
        html_add(&p->body, r->reason);
        str_add(&p->body, "</div>");
    }
    str_add(&p->body, "</li>\n");
}

void page_add_failures(Page *p, const Judged *j)
{
    int broken = j->counts[VERDICT_BROKEN];
    int missing = j->counts[VERDICT_MISSING];
    if (!broken && !missing)
        return;
    str_addf(&p->body, "<div class=\"failures%s\" role=\"alert\"><h2>",
             broken ? "" : " absent");
    if (broken)
        str_addf(&p->body, "%d of %d case%s failed", broken,
                 j->case_count - missing,
                 j->case_count - missing == 1 ? "" : "s");
    if (missing)
        str_addf(&p->body, "%s%d case%s not measured", broken ? ", " : "",
                 missing, missing == 1 ? "" : "s");
    str_add(&p->body, "</h2>\n<ul>\n");
    for (int i = 0; i < j->case_count; i++)
        if (j->cases[i].verdict <= VERDICT_MISSING)
            add_failure(p, j, &j->cases[i]);
    str_add(&p->body, "</ul></div>\n");
}

void page_add_tiles(Str *out, const Judged *j)
{
    str_add(out, "<ul class=\"tiles\">\n");
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (j->counts[v])
            str_addf(out, "<li class=\"%s\"><b>%d</b> %s</li>\n",
                     judge_verdict_name((Verdict)v), j->counts[v],
                     judge_verdict_name((Verdict)v));
    str_add(out, "</ul>\n");
}

/* ---- cells ------------------------------------------------------------ */

/* The latency's course over the last runs. */
static void add_sparkline(Page *p, const Judged *j, const Judgement *v)
{
    enum { SHOWN = 48, WIDTH = 96, HEIGHT = 22 };
    const History *h = j->h;
    int p50 = data_metric(j->data, "p50");
    int from = h->runs.count > SHOWN ? h->runs.count - SHOWN : 0;
    double low = INFINITY, high = 0;
    for (int i = from; i < h->runs.count; i++) {
        double value = record_is_ok(data_record(h, i, v->c))
                           ? data_value(h, i, v->c, p50)
                           : NAN;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    /* Noise of a few per cent stays flat. */
    double middle = (low + high) / 2, span = high - low;
    if (span < 0.08 * middle)
        span = 0.08 * middle;
    if (high == 0 || h->runs.count < 2)
        return;
    Str path = {0};
    double x = 0, y = 0;
    bool pen = false;
    for (int i = from; i < h->runs.count; i++) {
        double value = record_is_ok(data_record(h, i, v->c))
                           ? data_value(h, i, v->c, p50)
                           : NAN;
        if (isnan(value)) {
            pen = false;
            continue;
        }
        x = 3 + (WIDTH - 6.0) * (i - from) / (h->runs.count - 1 - from);
        y = HEIGHT / 2.0 - (HEIGHT - 6) * (value - middle) / span;
        str_addf(&path, "%s%.1f %.1f", pen ? " " : "M", x, y);
        /* A pair that follows a move is a line. */
        pen = true;
    }
    str_addf(&p->body,
             "<svg class=\"spark\" viewBox=\"0 0 %d %d\" aria-hidden="
             "\"true\"><path d=\"%s\"/><circle class=\"%s\" cx=\"%.1f\" "
             "cy=\"%.1f\" r=\"2.5\"/></svg>",
             WIDTH, HEIGHT, str_text(&path), judge_verdict_name(v->verdict), x,
             y);
    str_free(&path);
}

static void add_history_cell(Page *p, const Judged *j, const Judgement *v)
{
    str_add(&p->body, "<td class=\"history\">");
    add_sparkline(p, j, v);
    double high = 1 + v->threshold;
    if (v->drift > high || v->drift < 1 / high)
        str_addf(&p->body,
                 "<span class=\"drift %s\" title=\"median of the last 5 runs "
                 "against %d runs ago\">%s</span>",
                 v->drift > 1 ? "worse" : "better", v->drift_runs,
                 format_change(p->arena, "", 1, v->drift));
    str_add(&p->body, "</td>");
}

/* A value, marked where it moved against the run compared with. */
static void add_value_cell(Page *p, const Judged *j, const Judgement *v,
                           const char *name, const char *label,
                           const char *class)
{
    int metric = data_metric(j->data, name);
    int newest = history_newest(j->h);
    double value = data_value(j->h, newest, v->c, metric);
    const char *unit = metric < 0 ? "" : j->data->metrics.data[metric].unit;
    const Move *move = judgement_move(v, metric);
    const char *text = format_value(p->arena, unit, value);
    if (!move) {
        str_addf(&p->body, "<td class=\"%s\" data-label=\"%s\">%s</td>", class,
                 label, text);
        return;
    }
    str_addf(&p->body,
             "<td class=\"%s\" data-label=\"%s\">%s<br/><span class=\"%s\">"
             "%s</span></td>",
             class, label, text, move->worse ? "worse" : "better",
             format_change(p->arena, unit, move->before, move->after));
}

static void add_change_cell(Page *p, const Judgement *v)
{
    str_add(&p->body, "<td class=\"change\">");
    if (!isnan(v->ratio.value)) {
        page_add_interval(p, &v->ratio, v->threshold, SPAN,
                          v->verdict == VERDICT_REGRESSED  ? "bad"
                          : v->verdict == VERDICT_IMPROVED ? "good"
                                                           : "even");
        html_add_name(&p->body, "span", "ratio",
                      format_interval(p->arena, v->ratio.value, v->ratio.low,
                                      v->ratio.high));
    }
    str_add(&p->body, "</td>");
}

/* ---- tables ----------------------------------------------------------- */

static bool has_metric(const Judged *j, const char *name)
{
    int metric = data_metric(j->data, name);
    for (int i = 0; i < j->case_count; i++)
        if (!isnan(
                data_value(j->h, history_newest(j->h), j->cases[i].c, metric)))
            return true;
    return false;
}

/* What the table shows besides latency and its change. */
typedef struct Column {
    const char *metric, *title;
} Column;
static const Column model_columns[] = {
    {"p99", "p99"},    {"arena_bytes", "arena"}, {"max_abs_error", "error"},
    {"top1", "top-1"}, {"map50", "mAP50"},       {"peak_share", "peak"},
};
static const Column kernel_columns[] = {
    {"gflops", "speed"},
    {"peak_share", "peak"},
};

static bool has_column(const char *metric, const Column *columns, int count)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(columns[i].metric, metric))
            return true;
    return false;
}

/* What got worse and has no column of its own. */
static void add_also(Page *p, const Judged *j, const Judgement *v,
                     const Column *columns, int count)
{
    enum { SHOWN = 2 };
    int found = 0;
    for (int i = 0; i < v->moves.count; i++) {
        const Move *move = &v->moves.data[i];
        const Metric *m = &j->data->metrics.data[move->metric];
        if (!move->worse || has_column(m->name, columns, count) ||
            found++ >= SHOWN)
            continue;
        str_add(&p->body, "<br/><span class=\"also worse\">");
        html_add_short(&p->body, m->title, 24);
        str_addf(&p->body, " %s</span>",
                 format_change(p->arena, m->unit, move->before, move->after));
    }
    if (found > SHOWN)
        str_addf(&p->body,
                 "<br/><span class=\"also worse\">and %d more"
                 "</span>",
                 found - SHOWN);
}

static void add_case_cell(Page *p, const Judged *j, const Judgement *v,
                          const Column *columns, int count)
{
    const Case *c = &j->h->cases.data[v->c];
    str_add(&p->body, "<th scope=\"row\">");
    bool kernel = is_kernel_suite(j->h);
    html_add_name(&p->body, "span", "", kernel ? c->mode : c->model);
    if (!kernel) {
        str_add(&p->body, " ");
        page_add_mode(p, c->mode);
    }
    str_add(&p->body, "</th><td class=\"left\">");
    page_add_verdict(p, judge_verdict_name(v->verdict));
    add_also(p, j, v, columns, count);
    str_add(&p->body, "</td>");
}

static void add_row(Page *p, const Judged *j, const Judgement *v,
                    const Column *columns, int count)
{
    str_addf(&p->body, "<tr class=\"%s\">", judge_verdict_name(v->verdict));
    add_case_cell(p, j, v, columns, count);
    add_value_cell(p, j, v, "p50", "p50", "value first");
    if (j->h->runs.count > 1) {
        add_history_cell(p, j, v);
        add_change_cell(p, v);
    }
    for (int i = 0; i < count; i++)
        if (has_metric(j, columns[i].metric))
            add_value_cell(p, j, v, columns[i].metric, columns[i].title,
                           "value");
    str_add(&p->body, "</tr>\n");
}

static void add_explanation(Page *p, const Judged *j)
{
    str_add(&p->body, "<p class=\"note\">");
    if (j->base >= 0) {
        const Run *base = &j->h->runs.data[j->base];
        str_add(&p->body, "<b>now / before</b>: time of this run over that of "
                          "an earlier one, which is <code>");
        html_add(&p->body, format_commit(p->arena, base->commit, base->dirty));
        str_addf(&p->body,
                 "</code> of %s unless a case failed there. Its 95 %% "
                 "interval comes from the raw samples of both runs, processes "
                 "and then samples in them drawn with replacement. A case has "
                 "regressed or improved when the interval leaves out 1 and "
                 "the ratio lies more than %.0f %% from it, or more than two "
                 "runs of the case usually differ by, if that is more (the "
                 "grey band); it is the same when the interval lies within "
                 "the band. With one process a side and too few runs to know "
                 "how they differ, it takes %.0f %%. ",
                 format_date(p->arena, base->committed), 100 * JUDGE_THRESHOLD,
                 100 * JUDGE_LONE_THRESHOLD);
    }
    str_add(&p->body,
            "<b>error</b>: largest difference from the reference. "
            "<b>peak</b>: share of the FMA peak measured in the same "
            "run.</p>\n");
}

void page_add_overview(Page *p, const Judged *j, bool explain)
{
    bool kernels = is_kernel_suite(j->h);
    const Column *columns = kernels ? kernel_columns : model_columns;
    int count = kernels ? sizeof kernel_columns / sizeof *columns
                        : sizeof model_columns / sizeof *columns;
    page_begin_section(p, j, "overview", kernels ? "Kernels alone" : "Cases");
    page_add_tiles(&p->body, j);
    str_addf(&p->body,
             "<div class=\"scroll\"><table class=\"cases sortable%s\">\n",
             kernels ? " alone" : "");
    Str head = {0};
    str_add(&head, "<case|<verdict|p50");
    if (j->h->runs.count > 1)
        str_add(&head, "|<history|<now / before");
    for (int i = 0; i < count; i++)
        if (has_metric(j, columns[i].metric))
            str_addf(&head, "|%s", columns[i].title);
    html_head(&p->body, str_text(&head));
    str_free(&head);
    str_add(&p->body, "<tbody>\n");
    for (int i = 0; i < j->case_count; i++)
        add_row(p, j, &j->cases[i], columns, count);
    str_add(&p->body, "</tbody></table></div>\n");
    if (explain)
        add_explanation(p, j);
    page_end_section(p);
}
