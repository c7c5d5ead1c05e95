/* Everything the newest run holds of each model, folded: all values, kernels,
 * passes, and what fills the arena. */
#include <math.h>
#include <string.h>

#include "reports/html.h"
#include "reports/kernels.h"

enum { MAX_BUFFERS = 12 };

static void add_passes(Page *p, const CaseDetail *c)
{
    double total = 0;
    for (int i = 0; i < c->passes.count; i++)
        total += isnan(c->passes.data[i].value) ? 0 : c->passes.data[i].value;
    if (!c->passes.count)
        return;
    str_add(&p->body,
            "<div><h4>Compiling</h4><div class=\"scroll\"><table>\n");
    html_head(&p->body, "<pass|time|share");
    str_add(&p->body, "<tbody>\n");
    for (int i = 0; i < c->passes.count; i++) {
        const NamedNumber *pass = &c->passes.data[i];
        str_add(&p->body, "<tr>");
        html_cell(&p->body, "left", pass->name);
        html_cell(&p->body, "", format_value(p->arena, "s", pass->value));
        html_cell(&p->body, "",
                  format_share(p->arena, pass->value / total, 0));
        str_add(&p->body, "</tr>\n");
    }
    str_add(&p->body, "</tbody></table></div></div>\n");
}

static void add_high_water(Page *p, const CaseDetail *c)
{
    if (!c->buffers.count)
        return;
    str_addf(&p->body, "<div><h4>Arena at its fullest: %s, in ",
             format_value(p->arena, "bytes", c->high_water));
    html_add_short(&p->body, c->high_water_node, 40);
    str_add(&p->body, "</h4><div class=\"scroll\"><table>\n");
    html_head(&p->body, "<tensor|<written by|size");
    str_add(&p->body, "<tbody>\n");
    for (int i = 0; i < c->buffers.count && i < MAX_BUFFERS; i++) {
        const NamedNumber *b = &c->buffers.data[i];
        str_add(&p->body, "<tr><td class=\"left\">");
        html_add_name(&p->body, "span", "", b->name);
        str_add(&p->body, "</td><td class=\"left\">");
        html_add_name(&p->body, "span", "", b->detail);
        str_add(&p->body, "</td>");
        html_cell(&p->body, "", format_value(p->arena, "bytes", b->value));
        str_add(&p->body, "</tr>\n");
    }
    str_add(&p->body, "</tbody></table></div></div>\n");
}

static void add_case_kernels(Page *p, const Judged *j, const Case *of)
{
    const CaseDetail *c = detail_case(j->newest, of->name);
    if (!c || (!c->steps.count && !c->passes.count && !c->buffers.count))
        return;
    KernelSums sums = kernel_sums(p->arena, c);
    str_add(&p->body, "<details><summary>");
    page_add_mode(p, of->mode);
    str_addf(&p->body, ": %d kernels, %d steps</summary>\n", sums.count,
             c->steps.count);
    if (sums.count)
        kernels_add_table(p, &sums);
    str_add(&p->body, "<div class=\"beside\">\n");
    add_passes(p, c);
    add_high_water(p, c);
    str_add(&p->body, "</div></details>\n");
}

/* All values of a model's cases, a column a mode. */
static void add_values(Page *p, const Judged *j, const int *cases, int count)
{
    int newest = history_newest(j->h);
    str_add(&p->body, "<div class=\"scroll\"><table class=\"values\"><thead>"
                      "<tr><th class=\"left\">metric</th>");
    for (int i = 0; i < count; i++) {
        str_add(&p->body, "<th>");
        page_add_mode(p, j->h->cases.data[cases[i]].mode);
        str_add(&p->body, "</th>");
    }
    str_add(&p->body, "</tr></thead>\n<tbody>\n");
    for (int m = 0; m < j->data->metrics.count; m++) {
        const Metric *metric = &j->data->metrics.data[m];
        bool any = false;
        for (int i = 0; i < count; i++)
            any = any || !isnan(data_value(j->h, newest, cases[i], m));
        if (!any)
            continue;
        str_add(&p->body, "<tr>");
        html_cell(&p->body, "left", metric->title);
        for (int i = 0; i < count; i++)
            html_cell(&p->body, "",
                      format_value(p->arena, metric->unit,
                                   data_value(j->h, newest, cases[i], m)));
        str_add(&p->body, "</tr>\n");
    }
    str_add(&p->body, "</tbody></table></div>\n");
}

/* Kernels are many and have few metrics: a row a case. */
static void add_kernel_values(Page *p, const Judged *j)
{
    const History *h = j->h;
    int newest = history_newest(h);
    bool *shown = ARENA_ARRAY(p->arena, bool, j->data->metrics.count);
    for (int m = 0; m < j->data->metrics.count; m++)
        for (int c = 0; c < h->cases.count && !shown[m]; c++)
            shown[m] = !isnan(data_value(h, newest, c, m));
    str_add(&p->body, "<details><summary>All values</summary>\n<div class="
                      "\"scroll\"><table class=\"sortable\"><thead><tr><th "
                      "class=\"left\">case</th>");
    for (int m = 0; m < j->data->metrics.count; m++) {
        if (!shown[m])
            continue;
        str_add(&p->body, "<th>");
        html_add(&p->body, j->data->metrics.data[m].title);
        str_add(&p->body, "</th>");
    }
    str_add(&p->body, "</tr></thead>\n<tbody>\n");
    for (int c = 0; c < h->cases.count; c++) {
        if (!data_record(h, newest, c))
            continue;
        str_add(&p->body, "<tr><th scope=\"row\">");
        html_add_name(&p->body, "span", "", h->cases.data[c].mode);
        str_add(&p->body, "</th>");
        for (int m = 0; m < j->data->metrics.count; m++)
            if (shown[m])
                html_cell(&p->body, "",
                          format_value(p->arena, j->data->metrics.data[m].unit,
                                       data_value(h, newest, c, m)));
        str_add(&p->body, "</tr>\n");
    }
    str_add(&p->body, "</tbody></table></div></details>\n");
}

void page_add_models(Page *p, const Judged *j)
{
    const History *h = j->h;
    int *cases = ARENA_ARRAY(p->arena, int, h->cases.count);
    bool *done = ARENA_ARRAY(p->arena, bool, h->cases.count);
    page_begin_section(p, j, "models", "Everything measured");
    if (is_kernel_suite(h)) {
        add_kernel_values(p, j);
        page_end_section(p);
        return;
    }
    for (int c = 0; c < h->cases.count; c++) {
        if (done[c] || !data_record(h, history_newest(h), c))
            continue;
        int count = 0;
        for (int k = c; k < h->cases.count; k++)
            if (!strcmp(h->cases.data[k].model, h->cases.data[c].model) &&
                data_record(h, history_newest(h), k)) {
                cases[count++] = k;
                done[k] = true;
            }
        str_add(&p->body, "<details class=\"model\"><summary>");
        html_add_name(&p->body, "b", "", h->cases.data[c].model);
        str_add(&p->body, "</summary>\n");
        add_values(p, j, cases, count);
        for (int i = 0; i < count; i++)
            add_case_kernels(p, j, &h->cases.data[cases[i]]);
        str_add(&p->body, "</details>\n");
    }
    page_end_section(p);
}
