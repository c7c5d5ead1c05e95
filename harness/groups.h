/* What two builds of a model spend on the same nodes. */
#ifndef ASSAY_HARNESS_GROUPS_H
#define ASSAY_HARNESS_GROUPS_H

#include "base/arena.h"
#include "harness/pair.h"

/* Rows of results/README.md's comparisons[].groups, from the steps of each
 * visit's report ({"a": side, "b": side}) and the artifacts' manifests. Steps
 * of both sides belong together when they compute a source node in common.
 * `*noise` gets the placebo: how far from 1 the parts are whose machine code
 * is the same (root mean square by time), NaN without any. A part's verdict
 * is decided only when it clears 1 by twice that. NULL without visits, or when
 * a manifest cannot be read. The caller owns the rows. */
json_t *groups_compare(Arena *arena, const Pair *pair, const char *a,
                       const char *b, double *noise);

#endif
