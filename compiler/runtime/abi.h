/* The interface between generated code and the runtime. Generated code
 * (LLVM or C) and the loader must agree on it: any change raises
 * ASSAY_ABI_VERSION, and artifacts of another version are refused.
 *
 * An artifact is a folder:
 *   manifest.json  what it is (see runtime/manifest.md)
 *   model.so       position-independent code (host targets); exports
 *                  assay_model_run, assay_model_abi and assay_model_facts
 *   model.a        the same as a static library (cross targets)
 *   weights.bin    constants, each at a multiple of 64 bytes
 */
#ifndef ASSAY_RUNTIME_ABI_H
#define ASSAY_RUNTIME_ABI_H

#include <stdint.h>

#define ASSAY_ABI_VERSION 5

/* A piece of a parallel loop: iterations begin to end - 1. */
typedef void (*AssayTask)(void *context, int64_t begin, int64_t end);

typedef struct AssayRun {
    void *const *inputs;  /* row-major arrays, not written to */
    void *const *outputs; /* row-major arrays of exactly their size */
    const char *weights;  /* 64-byte aligned */
    char *arena;          /* 64-byte aligned, manifest's arena_bytes */
    /* Splits count iterations over the threads and returns when all are
     * done. The split never changes what an iteration computes. */
    void (*parallel_for)(void *pool, AssayTask task, void *context,
                         int64_t count);
    void *pool;
    /* Called before and after each step when not NULL (profiling, taps). */
    void (*on_step)(void *user, int32_t step, int32_t is_end);
    void *user;
    /* The dimensions that are known at run time only, in the order of the
     * manifest's `dims`; NULL where there are none. Inputs and outputs of such
     * extents lie in storage of their upper bounds, with its strides. One more
     * number follows, 0 before the run: 1 + the place of a dimension for which
     * the run had a number outside of its bounds (it was cut), or a shape that
     * does not fit. */
    int64_t *extents;
} AssayRun;

/* Exported by every artifact. Each kernel is a function
 *     void KERNEL(const AssayRun *run, void *const *args);
 * with args in the order of the kernel's parameters. */
typedef void (*AssayModelRun)(const AssayRun *run);
/* const int32_t assay_model_abi: ASSAY_ABI_VERSION at compile time.
 * const uint64_t assay_model_facts[ASSAY_FACT_COUNT]: what the code relies
 * on and the manifest must state, too (runtime/facts.h). */
#define ASSAY_FACT_COUNT 6

#endif
