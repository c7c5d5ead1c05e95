/* gnuplot's SVG made fit for a page. */
#ifndef ASSAY_REPORTS_SVG_H
#define ASSAY_REPORTS_SVG_H

#include "reports/plot.h"

/* Appends what gnuplot drew as an <svg> without colours, fonts, ids or
 * definitions of its own. A colour 0x0000NN becomes a class: sNN of a line,
 * fNN of an area or point, tNN of a text. Tokens become `labels`; points get
 * the plot's tips. */
void svg_add(Str *out, const char *drawn, const Plot *plot,
             const Plots *plots);

#endif
