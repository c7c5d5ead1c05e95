/* The processor's features. On x86 from CPUID and XGETBV, as the Intel SDM
 * (volume 2, CPUID) describes them; elsewhere from the ELF auxiliary
 * vector. */
#include "targets/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

enum { EAX, EBX, ECX, EDX };

/* Register state that the system must save for a feature (XCR0 bits). */
enum {
    STATE_NONE = 0,
    STATE_AVX = 0x06,    /* SSE and AVX */
    STATE_AVX512 = 0xe6, /* and opmask, upper halves, registers 16-31 */
    STATE_AMX = 0x60000
};

typedef struct CpuFlag {
    const char *name;
    unsigned leaf, subleaf;
    int reg, bit;
    unsigned state;
} CpuFlag;

static const CpuFlag flags[] = {
    {"pni", 1, 0, ECX, 0, STATE_NONE}, /* SSE3 */
    {"ssse3", 1, 0, ECX, 9, STATE_NONE},
    {"fma", 1, 0, ECX, 12, STATE_AVX},
    {"cx16", 1, 0, ECX, 13, STATE_NONE},
    {"sse4_1", 1, 0, ECX, 19, STATE_NONE},
    {"sse4_2", 1, 0, ECX, 20, STATE_NONE},
    {"movbe", 1, 0, ECX, 22, STATE_NONE},
    {"popcnt", 1, 0, ECX, 23, STATE_NONE},
    {"avx", 1, 0, ECX, 28, STATE_AVX},
    {"f16c", 1, 0, ECX, 29, STATE_AVX},
    {"sse2", 1, 0, EDX, 26, STATE_NONE},
    {"bmi1", 7, 0, EBX, 3, STATE_NONE},
    {"avx2", 7, 0, EBX, 5, STATE_AVX},
    {"bmi2", 7, 0, EBX, 8, STATE_NONE},
    {"avx512f", 7, 0, EBX, 16, STATE_AVX512},
    {"avx512dq", 7, 0, EBX, 17, STATE_AVX512},
    {"avx512ifma", 7, 0, EBX, 21, STATE_AVX512},
    {"avx512cd", 7, 0, EBX, 28, STATE_AVX512},
    {"avx512bw", 7, 0, EBX, 30, STATE_AVX512},
    {"avx512vl", 7, 0, EBX, 31, STATE_AVX512},
    {"avx512vbmi", 7, 0, ECX, 1, STATE_AVX512},
    {"avx512_vbmi2", 7, 0, ECX, 6, STATE_AVX512},
    {"avx512_vnni", 7, 0, ECX, 11, STATE_AVX512},
    {"avx512_bitalg", 7, 0, ECX, 12, STATE_AVX512},
    {"avx512_vpopcntdq", 7, 0, ECX, 14, STATE_AVX512},
    {"avx512_fp16", 7, 0, EDX, 23, STATE_AVX512},
    {"amx_bf16", 7, 0, EDX, 22, STATE_AMX},
    {"amx_tile", 7, 0, EDX, 24, STATE_AMX},
    {"amx_int8", 7, 0, EDX, 25, STATE_AMX},
    {"avx_vnni", 7, 1, EAX, 4, STATE_AVX},
    {"avx512_bf16", 7, 1, EAX, 5, STATE_AVX512},
    {"lahf_lm", 0x80000001, 0, ECX, 0, STATE_NONE},
    {"abm", 0x80000001, 0, ECX, 5, STATE_NONE}, /* LZCNT */
    {NULL, 0, 0, 0, 0, STATE_NONE},
};

static unsigned saved_state(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27)))
        return 0; /* no OSXSAVE */
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

bool cpu_has_flag(const char *name)
{
    for (const CpuFlag *f = flags; f->name; f++) {
        if (strcmp(f->name, name))
            continue;
        unsigned reg[4];
        if (!__get_cpuid_count(f->leaf, f->subleaf, &reg[EAX], &reg[EBX],
                               &reg[ECX], &reg[EDX]))
            return false;
        if (!(reg[f->reg] >> f->bit & 1))
            return false;
        return (saved_state() & f->state) == f->state;
    }
    return false;
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

bool cpu_has_flag(const char *name)
{
    static const struct {
        const char *name;
        int bit; /* of AT_HWCAP */
    } flags[] = {
        {"fp", 0},       {"asimd", 1},     {"atomics", 8},  {"fphp", 9},
        {"asimdhp", 10}, {"asimdrdm", 12}, {"asimddp", 20}, {"sve", 22},
    };
    unsigned long have = getauxval(AT_HWCAP);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (!strcmp(flags[i].name, name))
            return have >> flags[i].bit & 1;
    return false;
}

#else

bool cpu_has_flag(const char *name)
{
    (void)name;
    return false;
}
#endif

const char *cpu_architecture(void)
{
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#elif defined(__riscv)
    return "riscv64";
#else
    return "unknown";
#endif
}

int64_t cpu_cache_bytes(int level)
{
    for (int index = 0; index < 8; index++) {
        char path[96], type[32] = "", size[32] = "";
        int at = 0;
        static const char *const field[] = {"level", "type", "size"};
        for (int i = 0; i < 3; i++) {
            snprintf(path, sizeof path,
                     "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index,
                     field[i]);
            FILE *file = fopen(path, "r");
            if (!file)
                return 0;
            bool ok = i == 0   ? fscanf(file, "%d", &at) == 1
                      : i == 1 ? fscanf(file, "%31s", type) == 1
                               : fscanf(file, "%31s", size) == 1;
            fclose(file);
            if (!ok)
                return 0;
        }
        if (at != level || !strcmp(type, "Instruction"))
            continue;
        char *unit;
        int64_t bytes = strtoll(size, &unit, 10);
        return *unit == 'K' ? bytes << 10 : *unit == 'M' ? bytes << 20 : bytes;
    }
    return 0;
}
