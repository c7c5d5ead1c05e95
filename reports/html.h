/* Text and numbers for the page. All text goes through html_add: names come
 * from files, and files may hold anything. The page is well-formed XML, too:
 * every element is closed, every attribute quoted. */
#ifndef ASSAY_REPORTS_HTML_H
#define ASSAY_REPORTS_HTML_H

#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "reports/data.h"

/* Escaped for text and quoted attributes. White space becomes a space;
 * controls, bytes that are no UTF-8 and marks that change the direction of
 * text become U+FFFD. */
void html_add(Str *out, const char *text);
/* At most `limit` characters, the last one an ellipsis where there are
 * more. */
void html_add_short(Str *out, const char *text, int limit);
/* Characters, not bytes. */
int html_length(const char *text);

/* A name that may be long, shortened with CSS; its title is whole. */
void html_add_name(Str *out, const char *element, const char *class,
                   const char *text);
/* <td class="CLASS">TEXT</td>; an empty class is left out. */
void html_cell(Str *out, const char *class, const char *text);
/* <thead> with a th for each of `names`, separated by '|'; those that start
 * with '<' are aligned to the left. */
void html_head(Str *out, const char *names);

/* Three digits and the unit: "12.3 ms", "5.03 MiB", "93.74 %"; "–" for
 * NAN. */
const char *format_value(Arena *arena, const char *unit, double value);
/* "12 %", with as many decimals as asked for; "–" for what is no number. */
const char *format_share(Arena *arena, double share, int decimals);
/* Of the two values of a metric: "+12.0 %", "−0.11 points", "−3.4 dB". */
const char *format_change(Arena *arena, const char *unit, double before,
                          double after);
/* "1.12"; with an interval "1.12 [1.10, 1.14]", as exact as that is. */
const char *format_ratio(Arena *arena, double ratio);
const char *format_interval(Arena *arena, double ratio, double low,
                            double high);
/* "2026-01-31 12:00", "2026-01-31"; "unknown" for 0. */
const char *format_time(Arena *arena, int64_t time);
const char *format_date(Arena *arena, int64_t time);
/* First seven characters, "+" where the tree had changes. */
const char *format_commit(Arena *arena, const char *commit, bool dirty);

/* What an axis is divided by, and the unit that this makes. */
typedef struct Scale {
    double divisor;
    const char *unit;
} Scale;
Scale scale_for(Arena *arena, const char *unit, double largest);

#endif
