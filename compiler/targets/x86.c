/* x86-64: the psABI's levels v2, v3 and v4, and the host's own processor.
 *
 * `cpu` stays empty: a name would bring LLVM's tuning for it along, such as
 * a preference for 256-bit vectors on processors with 512-bit ones. */
#include <string.h>

#include "targets/cpu.h"
#include "targets/target.h"

#define TRIPLE "x86_64-unknown-linux-gnu"
#define FEATURES_V2 "+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"
#define FEATURES_V3                                                           \
    FEATURES_V2 ",+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe"
#define FEATURES_V4                                                           \
    FEATURES_V3 ",+evex512,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"

#define FLAGS_V2                                                              \
    "cx16", "lahf_lm", "popcnt", "pni", "ssse3", "sse4_1", "sse4_2"
#define FLAGS_V3                                                              \
    FLAGS_V2, "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"
#define FLAGS_V4                                                              \
    FLAGS_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"

static const char *const flags_v2[] = {FLAGS_V2, NULL};
static const char *const flags_v3[] = {FLAGS_V3, NULL};
static const char *const flags_v4[] = {FLAGS_V4, NULL};

/* The cache sizes of the levels are those of the smallest common
 * processors, so that a tile chosen for them fits everywhere. */
extern const Target target_x86_v2, target_x86_v3, target_x86_v4;

static const Target *detect(Arena *arena);

const Target target_x86_v2 = {
    .name = "x86-64-v2",
    .about = "SSE4.2, 128-bit vectors (2009 on)",
    .codegen = CODEGEN_LLVM,
    .triple = TRIPLE,
    .cpu = "",
    .features = FEATURES_V2,
    .cpu_flags = flags_v2,
    .vector_bytes = 16,
    .vector_registers = 16,
    /* Two-operand multiply and add need copies. */
    .tile_registers = 11,
    .l1_bytes = 32 << 10,
    .l2_bytes = 256 << 10,
    .run = RUN_HOST,
    .cc = "cc",
    .detect = detect,
};

const Target target_x86_v3 = {
    .name = "x86-64-v3",
    .about = "AVX2 and FMA, 256-bit vectors (2013 on)",
    .codegen = CODEGEN_LLVM,
    .triple = TRIPLE,
    .cpu = "",
    .features = FEATURES_V3,
    .cpu_flags = flags_v3,
    .vector_bytes = 32,
    .vector_registers = 16,
    .tile_registers = 14,
    .has_fma = true,
    .l1_bytes = 32 << 10,
    .l2_bytes = 256 << 10,
    .run = RUN_HOST,
    .cc = "cc",
};

const Target target_x86_v4 = {
    .name = "x86-64-v4",
    .about = "AVX-512, 512-bit vectors (2017 on)",
    .codegen = CODEGEN_LLVM,
    .triple = TRIPLE,
    .cpu = "",
    .features = FEATURES_V4,
    .cpu_flags = flags_v4,
    .vector_bytes = 64,
    .vector_registers = 32,
    .tile_registers = 30,
    .has_fma = true,
    .l1_bytes = 32 << 10,
    .l2_bytes = 1 << 20,
    .run = RUN_HOST,
    .cc = "cc",
};

static const Target *const levels[] = {
    &target_x86_v2,
    &target_x86_v3,
    &target_x86_v4,
};

/* Extensions beyond the levels that generated code may use where the
 * processor has them. */
static const struct {
    const char *flag, *feature;
    int level; /* needs at least this level */
} extensions[] = {
    {"avx512_vnni", "+avx512vnni", 4}, {"avx512vbmi", "+avx512vbmi", 4},
    {"avx512_bf16", "+avx512bf16", 4}, {"avx512_fp16", "+avx512fp16", 4},
    {"avx_vnni", "+avxvnni", 3},
};
enum { EXTENSION_COUNT = sizeof extensions / sizeof extensions[0] };

static const Target *detect(Arena *arena)
{
    if (strcmp(cpu_architecture(), "x86_64"))
        return NULL;
    int level = 0;
    for (int i = 0; i < 3; i++)
        if (target_is_runnable(levels[i], NULL))
            level = i + 2;
    Target *t = ARENA_NEW(arena, Target);
    if (level) {
        *t = *levels[level - 2];
    } else { /* the oldest x86-64: what every one of them has */
        static const char *const none[] = {NULL};
        *t = target_x86_v2;
        t->features = "+sse2";
        t->cpu_flags = none;
    }
    t->name = "native";
    t->about = "the processor this runs on";

    Str features = {0};
    str_add(&features, t->features);
    int count = 0;
    while (t->cpu_flags[count])
        count++;
    const char **flags =
        ARENA_ARRAY(arena, const char *, count + EXTENSION_COUNT + 1);
    if (count)
        memcpy(flags, t->cpu_flags, (size_t)count * sizeof *flags);
    for (int i = 0; i < EXTENSION_COUNT; i++) {
        if (level < extensions[i].level || !cpu_has_flag(extensions[i].flag))
            continue;
        str_addf(&features, ",%s", extensions[i].feature);
        flags[count++] = extensions[i].flag;
    }
    t->features = arena_strdup(arena, str_text(&features));
    t->cpu_flags = flags;
    str_free(&features);
    int64_t l1 = cpu_cache_bytes(1), l2 = cpu_cache_bytes(2);
    if (l1)
        t->l1_bytes = l1;
    if (l2)
        t->l2_bytes = l2;
    return t;
}
