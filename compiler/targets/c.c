/* Portable C17, compiled by the system compiler for the machine at hand.
 * It assumes nothing of the processor: no FMA (fma() would be a call), 16
 * registers of 16 bytes, which is what the C compiler's own vectorizer can
 * count on everywhere. */
#include "targets/target.h"

static const char *const no_flags[] = {NULL};

extern const Target target_c;

const Target target_c = {
    .name = "c",
    .about = "portable C17 through the system compiler",
    .codegen = CODEGEN_C,
    .triple = NULL,
    .cpu = "",
    .features = "",
    .cpu_flags = no_flags,
    .vector_bytes = 16,
    .vector_registers = 16,
    .tile_registers = 12,
    .l1_bytes = 32 << 10,
    .l2_bytes = 256 << 10,
    .run = RUN_HOST,
    .cc = "cc",
};
