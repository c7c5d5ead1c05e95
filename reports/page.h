/* The page of a run set, section by section. */
#ifndef ASSAY_REPORTS_PAGE_H
#define ASSAY_REPORTS_PAGE_H

#include "reports/judge.h"
#include "reports/plot.h"

typedef struct Page {
    Arena *arena;
    const ReportData *data;
    Str body;
    Str links; /* to the sections, for the top of the page */
    Plots *plots;
    Vec(const char *) modes; /* by number of their colour */
} Page;

enum { MODE_COLOURS = 6 };

/* <section id="ID"><h2>TITLE</h2>, and a link to it; ID gets the suite's name
 * appended where it is not "models". */
void page_begin_section(Page *p, const Judged *j, const char *id,
                        const char *title);
void page_end_section(Page *p);
/* The colour's number of a mode, the same all over the page. */
int page_mode(Page *p, const char *mode);
/* The mode's name after a dot of its colour. */
void page_add_mode(Page *p, const char *mode);
/* A verdict with its colour. */
void page_add_verdict(Page *p, const char *name);
/* The factor that one scale for a table of ratios goes to, with one more of
 * them: lengths are compared down the column. 5 at most. */
double page_wider_span(double span, const Ratio *ratio);
/* An interval as a line with a dot on a logarithmic scale from 1 / `span` to
 * `span`, with a band of `threshold` around 1, in the colour of a class:
 * "good", "bad" or "even". */
void page_add_interval(Page *p, const Ratio *ratio, double threshold,
                       double span, const char *class);
/* Whether the cases are kernels, not models in modes. */
bool is_kernel_suite(const History *h);
/* Whether they are other engines against Assay. */
bool is_peer_suite(const History *h);

/* The header: what ran where and when. */
void page_add_top(Page *p, const Judged *const *js, int count);
/* Cases that are not ok or missing, if any. */
void page_add_failures(Page *p, const Judged *j);
void page_add_tiles(Str *out, const Judged *j);

/* Sections; each leaves itself out where it has nothing to show. */
/* `explain`: what the columns mean, too. */
void page_add_overview(Page *p, const Judged *j, bool explain);
void page_add_changes(Page *p, const Judged *j);
void page_add_trends(Page *p, const Judged *j);
void page_add_comparisons(Page *p, const Judged *j);
void page_add_accuracy(Page *p, const Judged *j);
void page_add_roofline(Page *p, const Judged *j);
void page_add_kernels(Page *p, const Judged *j);
void page_add_models(Page *p, const Judged *j);
/* All there is of a peers suite. */
void page_add_peers(Page *p, const Judged *j);
void page_add_machine(Page *p, const Judged *j);

#endif
