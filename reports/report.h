/* Report: a static page with plots, from stored results alone. */
#ifndef ASSAY_REPORTS_REPORT_H
#define ASSAY_REPORTS_REPORT_H

#include "base/arena.h"
#include "base/str.h"

/* Reads RESULTS/MACHINE/(all).json and writes OUT/index.html with its SVG
 * plots, drawn by gnuplot from the scripts in `scripts`. Files that are no
 * results of a known format are named in `notes`, and skipped. False with a
 * line in `error` when there is nothing to show or a file cannot be
 * written. */
bool report_write(const char *results, const char *scripts, const char *out,
                  Str *notes, Str *error);

#endif
