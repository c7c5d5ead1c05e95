/* Pool: the threads that share the iterations of parallel loops.
 *
 * A fixed set of threads; the caller of pool_parallel_for is one of them.
 * Iterations are split once, by their count and the number of threads, so
 * that a thread touches the same data in every run. Waiting threads spin
 * briefly, for the next kernel usually follows at once, then sleep. */
#ifndef ASSAY_RUNTIME_POOL_H
#define ASSAY_RUNTIME_POOL_H

#include <stdbool.h>

#include "runtime/abi.h"

typedef struct Pool Pool;

/* `threads` counts the caller; 0 is the number of physical cores that this
 * process may use. Workers are pinned to a core each when there are enough
 * of them. NULL when a thread cannot be made. */
Pool *pool_new(int threads);
void pool_free(Pool *pool);
int pool_threads(const Pool *pool);

/* Runs task(context, begin, end) over ranges that cover 0 to count - 1.
 * Not to be called from inside a task, nor from two threads at once. */
void pool_parallel_for(void *pool, AssayTask task, void *context,
                       int64_t count);

/* Pins the calling thread to the core that the pool left to it: for
 * programs that own their main thread, such as assay-run. */
bool pool_pin_caller(const Pool *pool);

/* Physical cores this process may use, at least 1. The CPU number of the
 * first hardware thread of each goes to `cpus` (may be NULL). */
int pool_physical_cores(int *cpus, int capacity);

#endif
