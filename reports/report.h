/* Report: static pages with plots, from stored results alone. */
#ifndef ASSAY_REPORTS_REPORT_H
#define ASSAY_REPORTS_REPORT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/* Reads RESULTS/MACHINE/(all).json and writes a page for each machine and
 * configuration into the folder `out`: index.html when there is one of them,
 * else MACHINE-CONFIG.html, with an index.html over all. A page needs no
 * other file. gnuplot draws the plots with the scripts of the folder
 * `scripts`, which also holds the page's style. Files and fields that are
 * not as they should be are named in `notes`, and left out. False with a
 * line in `error` when there is nothing to show or a file cannot be
 * written. */
bool report_write(const char *results, const char *scripts, const char *out,
                  Str *notes, Str *error);

#endif
