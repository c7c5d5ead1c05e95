/* What limits a kernel: arithmetic, or moving its bytes. */
#ifndef ASSAY_HARNESS_ROOFLINE_H
#define ASSAY_HARNESS_ROOFLINE_H

#include <jansson.h>

/* Completes steps ("seconds", "flops", "bytes") with "share" of their sum,
 * and, given the report of `assay-run --peak`, "bound", "level" and
 * "bound_share" of results/README.md. The bytes of a kernel are taken to
 * come from the nearest level that holds them all: nothing is faster, so
 * that a share is of what can be reached at best. */
void roofline_complete(json_t *steps, const json_t *peak);

#endif
