/* The cases of the kernels suite: those of models, found by compiling them
 * up to their groups, and the awkward ones. */
#ifndef ASSAY_HARNESS_KERNEL_LIST_H
#define ASSAY_HARNESS_KERNEL_LIST_H

#include "base/vec.h"
#include "suites/kernels/kernels.h"

typedef struct KernelList {
    Arena *arena;
    Vec(KernelCase) cases; /* equal kernels of several models once */
    struct OpenModel *open;
} KernelList;

/* Adds the groups of a suite model or ONNX file, or of "awkward". False when
 * the model cannot be opened, reported. A case's `build` opens its model
 * again when another was opened since. */
bool kernel_list_add(KernelList *list, const char *model);
void kernel_list_free(KernelList *list);

#endif
