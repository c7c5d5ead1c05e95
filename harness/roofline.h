/* What limits a kernel: arithmetic, or moving its bytes. */
#ifndef ASSAY_HARNESS_ROOFLINE_H
#define ASSAY_HARNESS_ROOFLINE_H

#include <jansson.h>

/* Completes steps ("seconds", "flops", "bytes", "weight_bytes") with "share"
 * of their sum, and, given the report of `assay-run --peak`, "bound", "level"
 * and "bound_share" of results/README.md.
 *
 * A run reads all weights before it comes to the same ones again, so that
 * those of a step come at best from the nearest level that holds the weights
 * of all steps. Its other bytes, which steps just before may have written,
 * come from the nearest level that holds those of this step. Nothing is
 * faster: a share is of what can be reached at best. */
void roofline_complete(json_t *steps, const json_t *peak);

#endif
