/* Arrays whose extents a run chooses. Outside they have no gaps; kernels see
 * storage of the upper bounds, with its strides. */
#ifndef ASSAY_RUNTIME_DIMS_H
#define ASSAY_RUNTIME_DIMS_H

#include "runtime/runtime.h"

/* Copies an array of the extents `actual` into storage of `dims`, and back.
 * `size` is that of an element. */
void dims_spread(int rank, const int64_t *dims, const int64_t *actual,
                 size_t size, const void *array, void *storage);
void dims_gather(int rank, const int64_t *dims, const int64_t *actual,
                 size_t size, const void *storage, void *array);

/* What the number behind a run's extents says (runtime/abi.h). */
AssayStatus dims_outcome(const ArtifactInfo *info, int64_t refused,
                         AssayError *error);

#endif
