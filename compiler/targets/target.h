/* Target: facts about a processor that schedules and code generation ask
 * for, and how its programs run. One file a target family. */
#ifndef ASSAY_TARGETS_TARGET_H
#define ASSAY_TARGETS_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

typedef enum TargetCodegen { CODEGEN_LLVM, CODEGEN_C } TargetCodegen;

/* How the harness runs an artifact of this target. */
typedef enum TargetRun {
    RUN_HOST,    /* build/assay-run loads it */
    RUN_EMULATED /* linked statically and run under `emulator` */
} TargetRun;

typedef struct Target Target;
struct Target {
    const char *name;  /* "x86-64-v3" */
    const char *about; /* one line for `assay list targets` */
    TargetCodegen codegen;
    const char *triple;           /* LLVM's; NULL for the C target */
    const char *cpu;              /* LLVM's; empty: generic */
    const char *features;         /* "+avx2,+fma": exactly what code may use */
    const char *const *cpu_flags; /* what load checks, as /proc/cpuinfo
                                     names them; ends with NULL */
    int vector_bytes;             /* widest register */
    int vector_registers;         /* architectural count */
    /* Of these, how many a register tile may fill with accumulators and
     * weights; the rest holds what comes and goes in a step. */
    int tile_registers;
    bool has_fma;
    int64_t l1_bytes, l2_bytes; /* data caches of one core */
    TargetRun run;
    const char *cc;       /* compiler that links or compiles; "cc" */
    const char *emulator; /* NULL, or "qemu-aarch64" */
    /* On one row a family: the host's own processor, as a row refined in
     * the arena; gives NULL when the host is of another family. */
    const Target *(*detect)(Arena *arena);
};

/* All rows, ending with NULL. "native" is resolved by target_find. */
const Target *const *targets_all(void);
/* Finds by name; "native" (or NULL) is the host's own processor, its facts
 * detected. NULL and a diagnostic listing the names otherwise. */
const Target *target_find(Arena *arena, Diag *diag, const char *name);
/* True when this machine can run the target's artifacts in process; `why`
 * (may be NULL) gets what is missing. */
bool target_is_runnable(const Target *target, Str *why);
/* Lanes of `bytes` wide elements in one register. */
int target_lanes(const Target *target, int bytes);

#endif
