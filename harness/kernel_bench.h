/* One case of the kernels suite: compiled and checked in a process of its
 * own, then loaded here and timed. */
#ifndef ASSAY_HARNESS_KERNEL_BENCH_H
#define ASSAY_HARNESS_KERNEL_BENCH_H

#include <jansson.h>

#include "harness/child.h"
#include "runtime/runtime.h"
#include "suites/kernels/kernels.h"

typedef struct KernelBench {
    const KernelCase *kernel;
    CaseStatus status;
    const char *reason; /* unless CASE_OK */
    json_t *check;      /* as a row of `assay check` */
    double compile;
    ArtifactKernel about; /* flops and bytes are those of all timed steps */
    /* Every timed run, seconds; the case's own kernels only: changes of
     * layout around it, which a model has elsewhere, do not count. */
    Vec(double) samples;
} KernelBench;

/* At most one case is loaded at a time. */
typedef struct KernelLoader {
    Arena *arena; /* outlives all cases */
    Pool *pool;
    ProcessLimits limits;
    KernelBench *loaded; /* NULL: none */
    struct LoadedKernel *kernel;
} KernelLoader;

/* Makes `bench` the loaded case: nothing is done when it is already. False
 * when it cannot be, with status and reason set. */
bool kernel_bench_load(KernelLoader *loader, KernelBench *bench);
/* Runs the loaded case once; seconds, which are noted in samples. */
double kernel_bench_run(KernelLoader *loader);
void kernel_bench_unload(KernelLoader *loader);

#endif
