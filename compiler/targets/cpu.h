/* What the processor we run on can do, under the names that Linux gives
 * its features in /proc/cpuinfo. Asks the processor itself, so it holds in
 * containers without /proc too. */
#ifndef ASSAY_TARGETS_CPU_H
#define ASSAY_TARGETS_CPU_H

#include <stdbool.h>
#include <stdint.h>

/* True when the processor has the feature and the system saves its
 * registers. False for names that are not known. */
bool cpu_has_flag(const char *name);
/* "x86_64", "aarch64", or what uname says: the architecture this program
 * was compiled for. */
const char *cpu_architecture(void);
/* Bytes of core 0's data cache of a level, 0 when not known. */
int64_t cpu_cache_bytes(int level);

#endif
