/* Peak measurement. The inner loop holds independent chains of FMAs, twice
 * the product of latency and units of current cores, and touches no memory.
 * One function for each vector width, chosen by what the processor has. */
#include "harness/peak.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "targets/cpu.h"

enum { CHAINS = 12, ROUNDS = 20000 };

typedef double (*FmaLoop)(int rounds); /* returns operations done */

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

static FmaLoop choose_loop(const char **kind)
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

const char *peak_kind(void)
{
    const char *kind;
    choose_loop(&kind);
    return kind;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fma_task(void *context, int64_t begin, int64_t end)
{
    FmaLoop loop = *(FmaLoop *)context;
    for (int64_t i = begin; i < end; i++)
        loop(ROUNDS);
}

double peak_fma(Pool *pool, double seconds, double *mean)
{
    const char *kind;
    FmaLoop loop = choose_loop(&kind);
    int threads = pool_threads(pool);
    double operations = loop(1) * ROUNDS * threads;
    double best = 0, total = 0, start = now(), at = start;
    while (at < start + seconds || total == 0) {
        pool_parallel_for(pool, fma_task, &loop, threads);
        double then = now(), rate = operations / (then - at);
        best = rate > best ? rate : best;
        total += operations;
        at = then;
    }
    if (mean)
        *mean = total / (at - start) * 1e-9;
    return best * 1e-9;
}

enum { BLOCK = 64 << 20 }; /* bytes a thread, past any private cache */

typedef struct ReadTask {
    const char *data;
    uint64_t sums[1024];
} ReadTask;

static void read_task(void *context, int64_t begin, int64_t end)
{
    ReadTask *task = context;
    for (int64_t t = begin; t < end; t++) {
        typedef uint64_t Lane __attribute__((vector_size(64)));
        const Lane *lane = (const Lane *)(task->data + t * BLOCK);
        Lane sum[4] = {{0}};
        for (size_t i = 0; i < BLOCK / sizeof(Lane); i += 4)
            for (int k = 0; k < 4; k++)
                sum[k] += lane[i + (size_t)k];
        for (int k = 1; k < 4; k++)
            sum[0] += sum[k];
        task->sums[t] = sum[0][0]; /* so that the reads have a use */
    }
}

double peak_read_bandwidth(Pool *pool, double seconds)
{
    int threads = pool_threads(pool);
    size_t bytes = (size_t)threads * BLOCK;
    char *data = threads <= 1024 ? aligned_alloc(64, bytes) : NULL;
    ReadTask *task = calloc(1, sizeof *task);
    if (!data || !task) {
        free(data);
        free(task);
        return 0;
    }
    memset(data, 1, bytes);
    task->data = data;
    double best = 0, end = now() + seconds;
    do {
        double start = now();
        pool_parallel_for(pool, read_task, task, threads);
        double rate = (double)bytes / (now() - start);
        best = rate > best ? rate : best;
    } while (now() < end);
    free(data);
    free(task);
    return best * 1e-9;
}
