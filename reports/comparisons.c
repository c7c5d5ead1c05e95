/* Paired measurements of two builds, as unfused against fused: whole models
 * and the groups that gained or lost most. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/html.h"
#include "reports/page.h"

enum { MAX_GROUPS = 10 }; /* shown at each end */
/* The least that the scale of ratios goes to. */
#define MIN_SPAN 1.15

/* A group with what it is part of. */
typedef struct Part {
    const Comparison *whole;
    const Group *group;
} Part;
typedef Vec(const Comparison *) Wholes;
typedef Vec(Part) Parts;

static int compare_wholes(const void *a, const void *b)
{
    double x = (*(const Comparison *const *)a)->ratio.value;
    double y = (*(const Comparison *const *)b)->ratio.value;
    return (x < y) - (x > y);
}

static int compare_parts(const void *a, const void *b)
{
    double x = ((const Part *)a)->group->ratio.value;
    double y = ((const Part *)b)->group->ratio.value;
    return (x < y) - (x > y);
}

static const char *count_text(Page *p, double count)
{
    return format_value(p->arena, "count", count);
}

static void add_ratio_cells(Page *p, const Ratio *ratio, double noise,
                            double span, const char *verdict)
{
    str_add(&p->body, "<td class=\"change\">");
    page_add_interval(p, ratio, isnan(noise) ? 0 : noise, span,
                      !strcmp(verdict, "improved")    ? "good"
                      : !strcmp(verdict, "regressed") ? "bad"
                                                      : "even");
    str_addf(&p->body, "<span class=\"ratio\">%s</span></td>",
             format_interval(p->arena, ratio->value, ratio->low, ratio->high));
}

static void add_whole(Page *p, const Comparison *c, double span)
{
    str_add(&p->body, "<tr><th scope=\"row\">");
    html_add_name(&p->body, "span", "", c->model);
    str_add(&p->body, "</th>");
    add_ratio_cells(p, &c->ratio, c->noise, span, c->verdict);
    str_add(&p->body, "<td class=\"left\">");
    page_add_verdict(p, c->verdict);
    str_add(&p->body, "</td>");
    html_cell(&p->body, "",
              isnan(c->noise)
                  ? "–"
                  : arena_printf(p->arena, "±%s",
                                 format_share(p->arena, c->noise, 1)));
    html_cell(&p->body, "", count_text(p, c->blocks));
    html_cell(&p->body, "", count_text(p, c->repeated));
    html_cell(&p->body, c->disturbed > 0 ? "worse" : "",
              count_text(p, c->disturbed));
    str_add(&p->body, "</tr>\n");
}

static void add_wholes(Page *p, const Wholes *wholes)
{
    str_add(&p->body, "<div class=\"scroll\"><table class=\"sortable\">\n");
    html_head(&p->body, "<model|<ratio|<verdict|noise floor|blocks|repeated|"
                        "disturbed");
    str_add(&p->body, "<tbody>\n");
    double span = MIN_SPAN;
    for (int i = 0; i < wholes->count; i++)
        span = page_wider_span(span, &wholes->data[i]->ratio);
    for (int i = 0; i < wholes->count; i++)
        add_whole(p, wholes->data[i], span);
    str_add(&p->body, "</tbody></table></div>\n");
}

static void add_group(Page *p, const Part *part, double span)
{
    const Group *g = part->group;
    str_add(&p->body, "<tr><th scope=\"row\">");
    html_add_name(&p->body, "span", "", g->name);
    str_add(&p->body, "</th><td class=\"left\">");
    html_add_name(&p->body, "span", "", part->whole->model);
    str_add(&p->body, "</td>");
    add_ratio_cells(p, &g->ratio, part->whole->noise, span, g->verdict);
    str_add(&p->body, "<td class=\"left\">");
    page_add_verdict(p, g->verdict);
    str_add(&p->body, "</td>");
    html_cell(&p->body, "",
              arena_printf(p->arena, "%d to %d", g->a_kernels, g->b_kernels));
    html_cell(&p->body, "", format_value(p->arena, "s", g->a_seconds));
    html_cell(&p->body, "", format_value(p->arena, "s", g->b_seconds));
    str_add(&p->body, "</tr>\n");
}

/* Groups whose code is the same on both sides tell nothing but the noise. */
static void add_groups(Page *p, const Wholes *wholes)
{
    Parts parts = {0};
    int identical = 0;
    for (int i = 0; i < wholes->count; i++)
        for (int g = 0; g < wholes->data[i]->groups.count; g++) {
            Part part = {wholes->data[i], &wholes->data[i]->groups.data[g]};
            identical += part.group->identical;
            if (!part.group->identical && !isnan(part.group->ratio.value))
                vec_push(p->arena, &parts, part);
        }
    if (!parts.count)
        return;
    qsort(parts.data, (size_t)parts.count, sizeof *parts.data, compare_parts);
    int left_out = parts.count - 2 * MAX_GROUPS;
    str_add(&p->body, "<details><summary>Groups of kernels with the largest "
                      "gains and losses</summary>\n<div class=\"scroll\">"
                      "<table class=\"sortable\">\n");
    html_head(&p->body, "<group|<model|<ratio|<verdict|kernels|before|after");
    str_add(&p->body, "<tbody>\n");
    double span = MIN_SPAN;
    for (int i = 0; i < parts.count; i++)
        span = page_wider_span(span, &parts.data[i].group->ratio);
    for (int i = 0; i < parts.count; i++)
        if (left_out <= 0 || i < MAX_GROUPS || i >= parts.count - MAX_GROUPS)
            add_group(p, &parts.data[i], span);
    str_add(&p->body, "</tbody></table></div>\n<p class=\"note\">");
    if (left_out > 0)
        str_addf(&p->body, "%d groups in between are left out. ", left_out);
    str_addf(&p->body,
             "%d groups have the same machine code on both sides: how far "
             "their ratios lie from 1 is the noise floor, shown as the grey "
             "band.</p></details>\n",
             identical);
}

static void add_pair(Page *p, const RunDetail *d, const Comparison *first)
{
    Wholes wholes = {0};
    for (int i = 0; i < d->comparisons.count; i++) {
        const Comparison *c = &d->comparisons.data[i];
        if (!strcmp(c->a, first->a) && !strcmp(c->b, first->b))
            vec_push(p->arena, &wholes, c);
    }
    qsort(wholes.data, (size_t)wholes.count, sizeof *wholes.data,
          compare_wholes);
    str_add(&p->body, "<h3>");
    html_add(&p->body, first->a);
    str_add(&p->body, " / ");
    html_add(&p->body, first->b);
    str_add(&p->body, "</h3>\n<p class=\"note\">Time of ");
    html_add(&p->body, first->a);
    str_add(&p->body, " over time of ");
    html_add(&p->body, first->b);
    str_add(&p->body, ", measured in turns in fresh processes: above 1, ");
    html_add(&p->body, first->b);
    str_add(&p->body, " is faster.</p>\n");
    add_wholes(p, &wholes);
    add_groups(p, &wholes);
}

void page_add_comparisons(Page *p, const Judged *j)
{
    const RunDetail *d = j->newest;
    if (!d->comparisons.count)
        return;
    page_begin_section(p, j, "comparisons", "Builds compared");
    for (int i = 0; i < d->comparisons.count; i++) {
        const Comparison *c = &d->comparisons.data[i];
        bool known = false;
        for (int k = 0; k < i; k++)
            known = known || (!strcmp(d->comparisons.data[k].a, c->a) &&
                              !strcmp(d->comparisons.data[k].b, c->b));
        if (!known)
            add_pair(p, d, c);
    }
    page_end_section(p);
}
