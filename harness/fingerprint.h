/* What a result was measured on, and of which sources. */
#ifndef ASSAY_HARNESS_FINGERPRINT_H
#define ASSAY_HARNESS_FINGERPRINT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"

/* Processor, microcode, flags, governor, cores, kernel, LLVM, OpenBLAS's
 * core, the C compiler. Results of machines that differ are not compared. */
json_t *fingerprint_machine(void);
/* A folder name for it: "intel-xeon-processor-2c-1a2b3c4d". */
const char *fingerprint_name(Arena *arena, const json_t *machine);
/* The sources. */
typedef struct Source {
    const char *commit; /* its first 12 digits; "unknown" outside a tree */
    const char *time;   /* when it was committed, UTC, ISO 8601; or "" */
    bool dirty;         /* the tree has changes */
} Source;
Source fingerprint_source(Arena *arena);

#endif
