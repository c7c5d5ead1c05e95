/* Peak of arithmetic. The inner loops hold independent chains, more than the
 * product of latency and units of current cores, and touch no memory. One
 * function for each kind of instructions, chosen by what the processor
 * has. */
#include "harness/peak.h"

#include "harness/common.h"
#include "targets/cpu.h"

enum { CHAINS = 12, ROUNDS = 20000 };

typedef double (*PeakLoop)(int rounds); /* returns operations done */

/* Keeps a value in a register and the compiler from knowing it, so that the
 * chains are neither folded nor dropped. */
#define OPAQUE(x) __asm__ volatile("" : "+x"(x))

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static double fma_avx512(int rounds)
{
    __m512 a[CHAINS], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(1e-3f);
    for (int i = 0; i < CHAINS; i++)
        a[i] = _mm512_set1_ps((float)i);
    __asm__ volatile("" : "+v"(x), "+v"(y));
    for (int r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            a[i] = _mm512_fmadd_ps(a[i], x, y);
    }
    for (int i = 0; i < CHAINS; i++)
        __asm__ volatile("" : : "v"(a[i]));
    return 2.0 * 16 * CHAINS * rounds;
}

__attribute__((target("avx2,fma"))) static double fma_avx2(int rounds)
{
    __m256 a[CHAINS], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(1e-3f);
    for (int i = 0; i < CHAINS; i++)
        a[i] = _mm256_set1_ps((float)i);
    OPAQUE(x);
    OPAQUE(y);
    for (int r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            a[i] = _mm256_fmadd_ps(a[i], x, y);
    }
    for (int i = 0; i < CHAINS; i++)
        OPAQUE(a[i]);
    return 2.0 * 8 * CHAINS * rounds;
}
#endif

/* Four lanes of multiply and add, which the compiler fuses where the
 * baseline has FMA (aarch64) and not elsewhere (SSE). */
typedef float Vec4 __attribute__((vector_size(16)));

static double fma_generic(int rounds)
{
    Vec4 a[CHAINS], x = {0.999f, 0.999f, 0.999f, 0.999f}, y = 1e-3f - x + x;
    for (int i = 0; i < CHAINS; i++)
        a[i] = (float)i + x;
    for (int r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            a[i] = a[i] * x + y;
    }
    for (int i = 0; i < CHAINS; i++)
        __asm__ volatile("" : : "m"(a[i]));
    return 2.0 * 4 * CHAINS * rounds;
}

/* ---- dot products ----------------------------------------------------- */

#if defined(__x86_64__)
/* vpdpbusd: four products of 8 bits into each lane of 32. */
__attribute__((target("avx512f,avx512vnni"))) static double
dot_avx512(int rounds)
{
    __m512i a[CHAINS], x = _mm512_set1_epi8(3), y = _mm512_set1_epi8(-2);
    for (int i = 0; i < CHAINS; i++)
        a[i] = _mm512_set1_epi32(i);
    __asm__ volatile("" : "+v"(x), "+v"(y));
    for (int r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            a[i] = _mm512_dpbusd_epi32(a[i], x, y);
    }
    for (int i = 0; i < CHAINS; i++)
        __asm__ volatile("" : : "v"(a[i]));
    return 2.0 * 64 * CHAINS * rounds;
}

__attribute__((target("avx2,avxvnni"))) static double dot_avx2(int rounds)
{
    __m256i a[CHAINS], x = _mm256_set1_epi8(3), y = _mm256_set1_epi8(-2);
    for (int i = 0; i < CHAINS; i++)
        a[i] = _mm256_set1_epi32(i);
    OPAQUE(x);
    OPAQUE(y);
    for (int r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            a[i] = _mm256_dpbusd_avx_epi32(a[i], x, y);
    }
    for (int i = 0; i < CHAINS; i++)
        OPAQUE(a[i]);
    return 2.0 * 32 * CHAINS * rounds;
}
#endif

/* Where there is no such instruction: multiply and add of four lanes of 32
 * bits, to which 8-bit numbers are widened. */
typedef uint32_t Lanes4 __attribute__((vector_size(16)));

static double dot_generic(int rounds)
{
    Lanes4 a[CHAINS], x = {3, 3, 3, 3}, y = {5, 5, 5, 5};
    for (uint32_t i = 0; i < CHAINS; i++)
        a[i] = i + x;
    for (int r = 0; r < rounds; r++) {
        /* Or the compiler finds out that all rounds are one product. */
        __asm__ volatile("" : "+m"(x));
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            a[i] = a[i] * x + y;
    }
    for (int i = 0; i < CHAINS; i++)
        __asm__ volatile("" : : "m"(a[i]));
    return 2.0 * 4 * CHAINS * rounds;
}

/* ---- measuring -------------------------------------------------------- */

static PeakLoop choose_fma(const char **kind)
{
#if defined(__x86_64__)
    if (cpu_has_flag("avx512f")) {
        *kind = "avx512f";
        return fma_avx512;
    }
    if (cpu_has_flag("avx2") && cpu_has_flag("fma")) {
        *kind = "fma";
        return fma_avx2;
    }
#endif
    *kind = "generic";
    return fma_generic;
}

static PeakLoop choose_dot(const char **kind)
{
#if defined(__x86_64__)
    if (cpu_has_flag("avx512_vnni")) {
        *kind = "avx512_vnni";
        return dot_avx512;
    }
    if (cpu_has_flag("avx_vnni")) {
        *kind = "avx_vnni";
        return dot_avx2;
    }
#endif
    *kind = "generic";
    return dot_generic;
}

const char *peak_kind(void)
{
    const char *kind;
    choose_fma(&kind);
    return kind;
}

const char *peak_dot_kind(void)
{
    const char *kind;
    choose_dot(&kind);
    return kind;
}

static void loop_task(void *context, int64_t begin, int64_t end)
{
    PeakLoop loop = *(PeakLoop *)context;
    for (int64_t i = begin; i < end; i++)
        loop(ROUNDS);
}

/* Operations a second of the best stretch; `*mean` that of all. */
static double measure(Pool *pool, PeakLoop loop, double seconds, double *mean)
{
    int threads = pool_threads(pool);
    double operations = loop(1) * ROUNDS * threads;
    double best = 0, total = 0, start = clock_now(), at = start;
    while (at < start + seconds || total == 0) {
        pool_parallel_for(pool, loop_task, &loop, threads);
        double then = clock_now(), rate = operations / (then - at);
        best = rate > best ? rate : best;
        total += operations;
        at = then;
    }
    *mean = total / (at - start) * 1e-9;
    return best * 1e-9;
}

double peak_fma(Pool *pool, double seconds, double *mean)
{
    const char *kind;
    double ignored;
    return measure(pool, choose_fma(&kind), seconds, mean ? mean : &ignored);
}

double peak_dot(Pool *pool, double seconds)
{
    const char *kind;
    double ignored;
    return measure(pool, choose_dot(&kind), seconds, &ignored);
}
