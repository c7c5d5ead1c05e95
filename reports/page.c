#include "reports/page.h"

#include <math.h>
#include <string.h>

#include "reports/html.h"

/* ---- pieces ----------------------------------------------------------- */

bool is_kernel_suite(const History *h)
{
    return !strcmp(h->suite, "kernels");
}

void page_begin_section(Page *p, const Judged *j, const char *id,
                        const char *title)
{
    const char *suffix = is_kernel_suite(j->h) ? "-kernels" : "";
    str_addf(&p->body, "<section id=\"%s%s\">\n<h2>%s</h2>\n", id, suffix,
             title);
    str_addf(&p->links, "<a href=\"#%s%s\">%s</a>\n", id, suffix, title);
}

void page_end_section(Page *p)
{
    str_add(&p->body, "</section>\n");
}

int page_mode(Page *p, const char *mode)
{
    for (int i = 0; i < p->modes.count; i++)
        if (!strcmp(p->modes.data[i], mode))
            return i % MODE_COLOURS;
    vec_push(p->arena, &p->modes, mode);
    return (p->modes.count - 1) % MODE_COLOURS;
}

void page_add_mode(Page *p, const char *mode)
{
    str_addf(&p->body, "<span class=\"mode\"><i class=\"key c%d\"></i>",
             page_mode(p, mode));
    html_add_short(&p->body, mode, 24);
    str_add(&p->body, "</span>");
}

/* Classes are of a fixed set, as the name may come from a file. */
void page_add_verdict(Page *p, const char *name)
{
    static const char *const marks[] = {"✕", "–", "▲", "≠",
                                        "?", "=", "○", "▼"};
    if (!*name)
        return;
    const char *mark = "", *class = "unknown";
    for (int v = 0; v < VERDICT_COUNT; v++)
        if (!strcmp(name, judge_verdict_name((Verdict)v))) {
            mark = marks[v];
            class = judge_verdict_name((Verdict)v);
        }
    str_addf(&p->body, "<span class=\"verdict %s\"><i>%s</i> ", class, mark);
    html_add_short(&p->body, name, 20);
    str_add(&p->body, "</span>");
}

double page_wider_span(double span, const Ratio *ratio)
{
    const double most = 5;
    double high = isnan(ratio->high) ? ratio->value : ratio->high;
    double low = isnan(ratio->low) ? ratio->value : ratio->low;
    span = high > span ? high : span;
    span = low > 0 && 1 / low > span ? 1 / low : span;
    return span < most ? span : most;
}

void page_add_interval(Page *p, const Ratio *r, double threshold, double span,
                       const char *class)
{
    enum { WIDTH = 100, HEIGHT = 16, MIDDLE = WIDTH / 2 };
    double pixels = (MIDDLE - 6) / log(span);
    double places[3] = {r->low, r->value, r->high};
    if (isnan(r->value) || r->value <= 0)
        return;
    bool clipped = false;
    for (int i = 0; i < 3; i++) {
        double at = isnan(places[i]) || places[i] <= 0 ? r->value : places[i];
        at = pixels * log(at);
        clipped = clipped || fabs(at) > MIDDLE - 4;
        places[i] = MIDDLE + fmax(-MIDDLE + 4, fmin(MIDDLE - 4, at));
    }
    double band = fmin(pixels * log1p(threshold), MIDDLE);
    str_addf(&p->body,
             "<svg class=\"interval %s%s\" viewBox=\"0 0 %d %d\" "
             "aria-hidden=\"true\"><rect x=\"%.1f\" y=\"0\" width=\"%.1f\" "
             "height=\"%d\"/><path class=\"one\" d=\"M%d 0V%d\"/><path "
             "d=\"M%.1f 8H%.1fM%.1f 5v6M%.1f 5v6\"/><circle cx=\"%.1f\" "
             "cy=\"8\" r=\"3\"/></svg>",
             class, clipped ? " clipped" : "", WIDTH, HEIGHT, MIDDLE - band,
             2 * band, HEIGHT, MIDDLE, HEIGHT, places[0], places[2], places[0],
             places[2], places[1]);
}

/* ---- top -------------------------------------------------------------- */

static void add_fact(Page *p, const char *name, const char *value)
{
    str_addf(&p->body, "<div><dt>%s</dt><dd>", name);
    html_add(&p->body, value);
    str_add(&p->body, "</dd></div>\n");
}

static void add_run_facts(Page *p, const Judged *j)
{
    const History *h = j->h;
    const Run *run = &h->runs.data[history_newest(h)];
    str_add(&p->body, "<dl class=\"facts\">\n");
    str_add(&p->body, "<div><dt>commit</dt><dd><code>");
    html_add_short(&p->body, run->commit, 16);
    str_addf(&p->body, "</code>%s</dd></div>\n",
             run->dirty ? " <span class=\"dirty\">dirty</span>" : "");
    add_fact(
        p, "measured",
        arena_printf(p->arena, "%s UTC", format_time(p->arena, run->time)));
    add_fact(p, "runs", arena_printf(p->arena, "%d", h->runs.count));
    if (j->base >= 0) {
        const Run *base = &h->runs.data[j->base];
        str_add(&p->body, "<div><dt>compared with</dt><dd><code>");
        html_add_short(&p->body, base->commit, 16);
        str_addf(&p->body, "</code>%s</dd></div>\n",
                 base->dirty ? " <span class=\"dirty\">dirty</span>" : "");
    }
    add_fact(p, "suite", h->suite);
    str_add(&p->body, "</dl>\n");
}

void page_add_top(Page *p, const Judged *const *js, int count)
{
    const History *h = js[0]->h;
    str_add(&p->body, "<header>\n<p class=\"brand\">Assay</p>\n<h1>");
    html_add_short(&p->body, h->config, 60);
    str_add(&p->body, "</h1>\n<p class=\"where\">on ");
    const char *cpu = "";
    for (int i = 0; i < js[0]->newest->machine.count; i++)
        if (!strcmp(js[0]->newest->machine.data[i].name, "cpu"))
            cpu = js[0]->newest->machine.data[i].detail;
    if (*cpu) {
        html_add_short(&p->body, cpu, 80);
        str_add(&p->body, ", ");
    }
    str_add(&p->body, "<code>");
    html_add_short(&p->body, h->machine, 80);
    str_add(&p->body, "</code></p>\n");
    for (int i = 0; i < count; i++)
        add_run_facts(p, js[i]);
    str_add(&p->body, "</header>\n");
}

/* ---- machine ---------------------------------------------------------- */

void page_add_machine(Page *p, const Judged *j)
{
    const RunDetail *d = j->newest;
    if (!d->machine.count && !d->levels.count)
        return;
    page_begin_section(p, j, "machine", "Machine");
    str_add(&p->body, "<div class=\"scroll\"><table><tbody>\n<tr><th "
                      "scope=\"row\">FMA peak</th><td class=\"left\">");
    str_addf(&p->body, "%s ", format_value(p->arena, "gflops", d->fma_gflops));
    html_add(&p->body, d->vector_kind);
    str_add(&p->body, "</td></tr>\n");
    if (!isnan(d->dot_gops)) {
        str_addf(&p->body,
                 "<tr><th scope=\"row\">dot-product peak, 8 bits</th><td "
                 "class=\"left\">%s GOP/s ",
                 format_value(p->arena, "", d->dot_gops));
        html_add_short(&p->body, d->dot_kind, 20);
        str_add(&p->body, "</td></tr>\n");
    }
    for (int i = 0; i < d->levels.count; i++) {
        const Level *level = &d->levels.data[i];
        str_add(&p->body, "<tr><th scope=\"row\">reading ");
        html_add_short(&p->body, level->name, 20);
        str_addf(&p->body,
                 "</th><td class=\"left\">%s GB/s, %s a thread</td></tr>\n",
                 format_value(p->arena, "", level->gbps),
                 format_value(p->arena, "bytes", level->bytes));
    }
    for (int i = 0; i < d->machine.count; i++) {
        str_add(&p->body, "<tr><th scope=\"row\">");
        html_add_short(&p->body, d->machine.data[i].name, 40);
        str_add(&p->body, "</th><td class=\"left long\">");
        html_add(&p->body, d->machine.data[i].detail);
        str_add(&p->body, "</td></tr>\n");
    }
    str_add(&p->body, "</tbody></table></div>\n");
    page_end_section(p);
}
