/* The kernels suite: single kernels to check and time by themselves. Every
 * fused group of the suite's models, and shapes that do not divide into
 * tiles. */
#ifndef ASSAY_SUITES_KERNELS_H
#define ASSAY_SUITES_KERNELS_H

#include "graph/graph.h"

/* One kernel as a graph of its own. */
typedef struct KernelCase {
    const char *name;  /* "conv_relu_1x64x56x56_0a1b2c3d" */
    const char *model; /* where it is from; "awkward" for odd shapes */
    /* Fills an empty graph; faults go to g->diag. */
    bool (*build)(Graph *g, const struct KernelCase *c);
    const void *row; /* what `build` needs */
} KernelCase;

/* Convolutions, matrix products, pools, rows, ... with 1, 3, 7 and 17
 * channels, remainders, odd strides and dilations. */
int kernels_awkward(Arena *arena, const KernelCase **list);

/* The nodes of `source` that a group of `fused` computes, as a graph of its
 * own in `out`: nodes n0, n1, ...; tensors x0, ... given from outside and t0,
 * ... computed. `fused` is `source` after the passes. False, with nothing in
 * `out`, when the group is the compiler's own, such as a change of layout,
 * or one of the nodes is not in `source`. */
bool kernel_extract(Graph *out, const Graph *source, const Group *group);
/* "conv_relu_1x64x56x56_0a1b2c3d" for an extracted graph: operators of the
 * group, its last output, and a hash of what is computed, weights' values
 * aside. */
const char *kernel_name(Arena *arena, const Graph *extracted,
                        const Group *group);

#endif
