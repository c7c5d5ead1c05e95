/* Artifacts of other processors: linked statically with runtime/bare.c by
 * the target's C compiler and run under its emulator. */
#ifndef ASSAY_HARNESS_EMULATE_H
#define ASSAY_HARNESS_EMULATE_H

#include "harness/launch.h"
#include "targets/target.h"

/* The artifact's target when it has to be emulated here, else NULL. */
const Target *emulated_target(Arena *arena, const char *artifact);
/* As launch_runner, for outputs only: times, taps and profiles of an
 * emulator say nothing. */
json_t *emulate_runner(Arena *arena, const Target *target,
                       const Launch *launch, ChildEnd *end, Str *failure);

#endif
