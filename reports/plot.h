/* Plots: gnuplot draws them, all of a page in one go, and what it draws is
 * put into the page with classes in place of colours, so that the page's
 * style decides how they look. Texts never pass through gnuplot: it sees
 * tokens that stand for them. */
#ifndef ASSAY_REPORTS_PLOT_H
#define ASSAY_REPORTS_PLOT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

typedef struct Plot {
    int width, height;
    const char *alt;        /* what it shows, for who cannot see it */
    Vec(const char *) tips; /* of its points, in the order of drawing */
} Plot;

typedef struct Plots {
    Arena *arena;
    Str script;
    Vec(Plot) list;
    Vec(const char *) labels;
    Str *drawn; /* of each plot, once drawn */
} Plots;

/* Pixels around the axes of every plot. */
typedef struct Margins {
    int left, right, top, bottom;
} Margins;

Plots *plots_new(Arena *arena);
/* Starts a plot: what is added to the script from here on, such as ranges
 * and data, is its own. Puts its place into the page. */
Plot *plot_begin(Plots *plots, Str *page, int width, int height,
                 Margins margins, const char *alt);
/* Draws it with a script, as "trend.gp". */
void plot_end(Plots *plots, const char *script);
/* The token of a text, to stand between quotes in the script. It has at
 * most `limit` characters. */
const char *plot_label(Plots *plots, const char *text, int limit);
/* Units of the axes, at the top left and at the bottom right; the x axis may
 * have none: "". */
void plot_units(Plots *plots, const Plot *plot, const char *y, const char *x);
/* What a point says when it is pointed at. */
void plot_tip(Plots *plots, Plot *plot, const char *text);

/* Runs gnuplot with the scripts of a folder. False with a line in `error`. */
bool plots_draw(Plots *plots, const char *scripts, Str *error);
/* Appends a page to `out` with its plots in their places. */
void plots_fill(const Plots *plots, const char *page, Str *out);
void plots_free(Plots *plots);

#endif
