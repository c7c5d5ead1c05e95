/* Why a case got slower or faster: the kernels whose code changed, or the
 * environment; and the metrics besides latency that moved. */
#include <math.h>
#include <string.h>

#include "reports/blame.h"
#include "reports/html.h"
#include "reports/page.h"

enum {
    MAX_PARTS = 8, /* of a case */
    MAX_OPEN = 8,  /* cases that are not folded */
    MAX_MOVES = 60
};

static const char *signed_time(Page *p, double seconds)
{
    return arena_printf(p->arena, "%s%s", seconds < 0 ? "−" : "+",
                        format_value(p->arena, "s", fabs(seconds)));
}

/* Names in one line, cut by the style where they do not fit. */
static void add_names(Page *p, const char *class, const char *const *names,
                      int count)
{
    enum { SHOWN = 16 };
    Str all = {0};
    for (int i = 0; i < count && i < SHOWN; i++)
        str_addf(&all, "%s%s", i ? ", " : "", names[i]);
    if (count > SHOWN)
        str_addf(&all, " and %d more", count - SHOWN);
    str_addf(&p->body, "<td class=\"left %s\">", class);
    html_add_name(&p->body, "span", "", str_text(&all));
    str_add(&p->body, "</td>");
    str_free(&all);
}

/* A part's change matters to the whole. */
static bool is_large(double change, double total)
{
    return fabs(change) > 0.02 * fabs(total);
}

static void add_part(Page *p, const Part *part, double total)
{
    double change = part->now_seconds - part->then_seconds;
    const char *what = !part->then.count     ? "new"
                       : !part->now.count    ? "gone"
                       : part->loops_changed ? "loops"
                       : part->code_changed  ? "code"
                                             : "";
    str_add(&p->body, "<tr>");
    add_names(p, "nodes", part->nodes.data, part->nodes.count);
    if (part->now.count)
        add_names(p, "kernel", part->now.data, part->now.count);
    else
        add_names(p, "kernel", part->then.data, part->then.count);
    html_cell(&p->body, *what ? "changed" : "muted", *what ? what : "same");
    html_cell(&p->body, "", format_value(p->arena, "s", part->then_seconds));
    html_cell(&p->body, "", format_value(p->arena, "s", part->now_seconds));
    html_cell(&p->body,
              !is_large(change, total) ? "muted"
              : change > 0             ? "worse"
                                       : "better",
              signed_time(p, change));
    html_cell(&p->body, "", format_share(p->arena, change / total, 0));
    str_add(&p->body, "</tr>\n");
}

static bool is_changed(const Part *part)
{
    return part->code_changed || part->loops_changed;
}

static void add_parts(Page *p, const Blame *b)
{
    str_add(&p->body, "<div class=\"scroll\"><table>\n");
    html_head(&p->body, "<source nodes|<kernel|changed|before|now|change|"
                        "of all");
    str_add(&p->body, "<tbody>\n");
    int shown = 0;
    /* Those that changed come first: the cause, then what moved besides. */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < b->parts.count && shown < MAX_PARTS; i++)
            if (is_changed(&b->parts.data[i]) == (pass == 0) &&
                (pass == 0 || is_large(b->parts.data[i].now_seconds -
                                           b->parts.data[i].then_seconds,
                                       b->total_seconds))) {
                add_part(p, &b->parts.data[i], b->total_seconds);
                shown++;
            }
    str_add(&p->body, "</tbody></table></div>\n");
    if (b->parts.count > shown)
        str_addf(&p->body,
                 "<p class=\"note\">%d more parts that changed less.</p>\n",
                 b->parts.count - shown);
}

static void add_cause(Page *p, const Blame *b)
{
    str_add(&p->body, "<p class=\"cause\">");
    if (!b->parts.count)
        str_add(&p->body, "No kernels were recorded on both sides.");
    else if (!b->changed)
        str_addf(&p->body,
                 "<b>No code changed: environment.</b> All %d parts have the "
                 "same machine code in both runs.",
                 b->parts.count);
    else if (!b->timed)
        str_addf(&p->body,
                 "<b>Code changed</b> in %d of %d kernels, whose "
                 "times were not recorded on both sides.",
                 b->changed, b->parts.count);
    else
        str_addf(&p->body,
                 "<b>Code changed</b> in %d of %d parts, which make %s of %s "
                 "in all.",
                 b->changed, b->parts.count,
                 signed_time(p, b->changed_seconds),
                 signed_time(p, b->total_seconds));
    str_add(&p->body, "</p>\n");
}

static void add_attribution(Page *p, const Judged *j, const Judgement *v,
                            bool open)
{
    const History *h = j->h;
    const char *name = h->cases.data[v->c].name;
    const Run *then = &h->runs.data[v->base];
    const Run *now = &h->runs.data[history_newest(h)];
    const CaseDetail *after = detail_case(j->newest, name);
    const CaseDetail *before = detail_case(j->details[v->base], name);
    if (!after || !before)
        return;
    str_addf(&p->body, "<details class=\"attribution\"%s><summary>",
             open ? " open=\"open\"" : "");
    html_add_name(&p->body, "b", "", name);
    str_add(&p->body, " ");
    page_add_verdict(p, judge_verdict_name(v->verdict));
    str_addf(&p->body, " <span class=\"ratio\">%s</span> <code>",
             format_interval(p->arena, v->ratio.value, v->ratio.low,
                             v->ratio.high));
    html_add(&p->body, format_commit(p->arena, then->commit, then->dirty));
    str_add(&p->body, "</code> to <code>");
    html_add(&p->body, format_commit(p->arena, now->commit, now->dirty));
    str_add(&p->body, "</code></summary>\n");
    Blame b = blame(p->arena, after, before);
    add_cause(p, &b);
    if (b.timed && b.parts.count)
        add_parts(p, &b);
    str_add(&p->body, "</details>\n");
}

static void add_move(Page *p, const Judged *j, const Judgement *v,
                     const Move *move)
{
    const Metric *m = &j->data->metrics.data[move->metric];
    str_add(&p->body, "<tr><th scope=\"row\">");
    html_add_name(&p->body, "span", "", j->h->cases.data[v->c].name);
    str_add(&p->body, "</th>");
    html_cell(&p->body, "left", m->title);
    html_cell(&p->body, "", format_value(p->arena, m->unit, move->before));
    html_cell(&p->body, "", format_value(p->arena, m->unit, move->after));
    html_cell(&p->body, move->worse ? "worse" : "better",
              format_change(p->arena, m->unit, move->before, move->after));
    str_add(&p->body, "</tr>\n");
}

static void add_moves(Page *p, const Judged *j)
{
    int count = 0;
    for (int i = 0; i < j->case_count; i++)
        count += j->cases[i].moves.count;
    if (!count)
        return;
    str_add(&p->body, "<h3>Besides latency</h3>\n<div class=\"scroll\">"
                      "<table>\n");
    html_head(&p->body, "<case|<metric|before|now|change");
    str_add(&p->body, "<tbody>\n");
    /* What got worse comes first. */
    int shown = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < j->case_count; i++)
            for (int k = 0; k < j->cases[i].moves.count; k++)
                if (j->cases[i].moves.data[k].worse == (pass == 0) &&
                    shown++ < MAX_MOVES)
                    add_move(p, j, &j->cases[i], &j->cases[i].moves.data[k]);
    str_add(&p->body, "</tbody></table></div>\n<p class=\"note\">");
    if (shown > MAX_MOVES)
        str_addf(&p->body, "%d more are left out. ", shown - MAX_MOVES);
    str_add(&p->body,
            "What differs by more "
            "than 1.5 times what two runs usually do, and by more than 0.1 "
            "points (5 for errors), 1 dB, 1 % (bytes), 50 % (errors without "
            "a unit) or 10 % (all else). While the usual difference is not "
            "known, by three times as much; times have to wait for "
            "it.</p>\n");
}

/* The fields of the fingerprint that are not as they were. */
static void add_machine_changes(Page *p, const Judged *j)
{
    if (j->base < 0 || !j->counts[VERDICT_NOT_COMPARABLE] ||
        !j->details[j->base])
        return;
    const RunDetail *now = j->newest, *then = j->details[j->base];
    str_add(&p->body, "<p>The machine is not what it was, so that latencies "
                      "do not compare: ");
    const char *comma = "";
    for (int i = 0; i < now->machine.count; i++) {
        const NamedNumber *field = &now->machine.data[i];
        const char *before = "";
        for (int k = 0; k < then->machine.count; k++)
            if (!strcmp(then->machine.data[k].name, field->name))
                before = then->machine.data[k].detail;
        if (!strcmp(before, field->detail))
            continue;
        str_add(&p->body, comma);
        html_add(&p->body, field->name);
        str_add(&p->body, " was <code>");
        html_add_short(&p->body, before, 60);
        str_add(&p->body, "</code>, is <code>");
        html_add_short(&p->body, field->detail, 60);
        str_add(&p->body, "</code>");
        comma = "; ";
    }
    str_add(&p->body, ".</p>\n");
}

void page_add_changes(Page *p, const Judged *j)
{
    int moves = 0;
    for (int i = 0; i < j->case_count; i++)
        moves += j->cases[i].moves.count;
    int changed = j->counts[VERDICT_REGRESSED] + j->counts[VERDICT_IMPROVED] +
                  j->counts[VERDICT_NOT_COMPARABLE];
    if (!changed && !moves)
        return;
    page_begin_section(p, j, "changes", "What changed");
    add_machine_changes(p, j);
    int opened = 0;
    for (int i = 0; i < j->case_count; i++) {
        bool worse = j->cases[i].verdict == VERDICT_REGRESSED;
        if (worse || j->cases[i].verdict == VERDICT_IMPROVED)
            add_attribution(p, j, &j->cases[i], worse && opened < MAX_OPEN);
        opened += worse;
    }
    add_moves(p, j);
    page_end_section(p);
}
