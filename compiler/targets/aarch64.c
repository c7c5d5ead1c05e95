/* aarch64 with NEON, which every such processor has. On other machines its
 * artifacts are linked statically and run under qemu-user. */
#include <string.h>

#include "targets/cpu.h"
#include "targets/target.h"

static const char *const flags[] = {"fp", "asimd", NULL};

extern const Target target_aarch64;

static const Target *detect(Arena *arena);

const Target target_aarch64 = {
    .name = "aarch64",
    .about = "ARMv8-A with NEON; emulated on other machines",
    .codegen = CODEGEN_LLVM,
    .triple = "aarch64-unknown-linux-gnu",
    .cpu = "",
    .features = "+neon,+fp-armv8",
    .cpu_flags = flags,
    .vector_bytes = 16,
    .vector_registers = 32,
    /* Data comes in by lanes of whole registers. */
    .tile_registers = 24,
    .has_fma = true,
    .l1_bytes = 32 << 10,
    .l2_bytes = 256 << 10,
#if defined(__aarch64__)
    .run = RUN_HOST,
    .cc = "cc",
#else
    .run = RUN_EMULATED,
    .cc = "aarch64-linux-gnu-gcc",
    .emulator = "qemu-aarch64",
#endif
    .detect = detect,
};

static const Target *detect(Arena *arena)
{
    if (strcmp(cpu_architecture(), "aarch64"))
        return NULL;
    Target *t = ARENA_NEW(arena, Target);
    *t = target_aarch64;
    t->name = "native";
    t->about = "the processor this runs on";
    int64_t l1 = cpu_cache_bytes(1), l2 = cpu_cache_bytes(2);
    if (l1)
        t->l1_bytes = l1;
    if (l2)
        t->l2_bytes = l2;
    return t;
}
