/* Peak measurement. The inner loop holds independent chains of FMAs, twice
 * the product of latency and units of current cores, and touches no memory.
 * One function for each vector width, chosen by what the processor has. */
#include "harness/peak.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "targets/cpu.h"

enum {
    CHAINS = 12,
    ROUNDS = 20000,
    MEMORY_LEAST = 64 << 20, /* bytes a thread that no cache holds */
    MEMORY_MOST = 256 << 20
};

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

/* ---- bandwidth -------------------------------------------------------- */

/* Reads `bytes` (a multiple of 512) once; what comes out depends on all. */
typedef uint64_t (*ReadLoop)(const char *data, int64_t bytes);

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static uint64_t
read_avx512(const char *data, int64_t bytes)
{
    __m512i sum[4] = {_mm512_setzero_si512()};
    for (int k = 1; k < 4; k++)
        sum[k] = sum[0];
    for (int64_t i = 0; i < bytes; i += 512)
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++)
            sum[k % 4] = _mm512_xor_si512(
                sum[k % 4], _mm512_load_si512(data + i + (int64_t)k * 64));
    sum[0] = _mm512_xor_si512(_mm512_xor_si512(sum[0], sum[1]),
                              _mm512_xor_si512(sum[2], sum[3]));
    return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(sum[0]));
}

__attribute__((target("avx2"))) static uint64_t read_avx2(const char *data,
                                                          int64_t bytes)
{
    __m256i sum[4] = {_mm256_setzero_si256()};
    for (int k = 1; k < 4; k++)
        sum[k] = sum[0];
    for (int64_t i = 0; i < bytes; i += 256)
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++)
            sum[k % 4] = _mm256_xor_si256(
                sum[k % 4],
                _mm256_load_si256((const __m256i *)(data + i) + k));
    sum[0] = _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]),
                              _mm256_xor_si256(sum[2], sum[3]));
    return (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(sum[0]));
}
#endif

static uint64_t read_generic(const char *data, int64_t bytes)
{
    typedef uint64_t Lane __attribute__((vector_size(16)));
    const Lane *lane = (const Lane *)data;
    Lane sum[4] = {{0}};
    for (int64_t i = 0; i < bytes / 16; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] ^= lane[i + k];
    sum[0] ^= sum[1] ^ sum[2] ^ sum[3];
    return sum[0][0];
}

static ReadLoop choose_read(void)
{
#if defined(__x86_64__)
    if (cpu_has_flag("avx512f"))
        return read_avx512;
    if (cpu_has_flag("avx2"))
        return read_avx2;
#endif
    return read_generic;
}

typedef struct ReadTask {
    ReadLoop loop;
    const char *data;
    int64_t bytes;  /* a thread */
    int64_t repeat; /* so that starting the threads costs nothing beside it */
    uint64_t sums[PEAK_MAX_THREADS];
} ReadTask;

static void read_task(void *context, int64_t begin, int64_t end)
{
    ReadTask *task = context;
    for (int64_t t = begin; t < end; t++)
        for (int64_t r = 0; r < task->repeat; r++)
            task->sums[t] +=
                task->loop(task->data + t * task->bytes, task->bytes);
}

double peak_read_bandwidth(Pool *pool, int64_t bytes, double seconds)
{
    enum { LEAST = 16 << 20, GRAIN = 512 };
    int threads = pool_threads(pool);
    bytes = bytes / GRAIN * GRAIN;
    size_t total = (size_t)threads * (size_t)bytes;
    char *data =
        threads <= PEAK_MAX_THREADS && total ? aligned_alloc(64, total) : NULL;
    ReadTask *task = calloc(1, sizeof *task);
    if (!data || !task) {
        free(data);
        free(task);
        return 0;
    }
    memset(data, 1, total);
    task->loop = choose_read();
    task->data = data;
    task->bytes = bytes;
    task->repeat = bytes < LEAST ? LEAST / bytes : 1;
    double best = 0, end = now() + seconds;
    do {
        double start = now();
        pool_parallel_for(pool, read_task, task, threads);
        double rate = (double)total * (double)task->repeat / (now() - start);
        best = rate > best ? rate : best;
    } while (now() < end);
    free(data);
    free(task);
    return best * 1e-9;
}

static int64_t cache_bytes(int name)
{
    long bytes = sysconf(name);
    return bytes > 0 ? bytes : 0;
}

int peak_levels(Pool *pool, PeakLevel levels[PEAK_LEVELS])
{
    int64_t threads = pool_threads(pool), last = 0;
    int64_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
    int64_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
    int64_t l3 = cache_bytes(_SC_LEVEL3_CACHE_SIZE) / threads;
    /* Half of a cache: the rest is for what else is live. */
    PeakLevel all[PEAK_LEVELS] = {{"L1", l1 / 2, 0},
                                  {"L2", l2 / 2, 0},
                                  {"L3", l3 / 2, 0},
                                  {"memory", 0, 0}};
    int64_t beyond = 2 * l3 > MEMORY_LEAST ? 2 * l3 : MEMORY_LEAST;
    all[3].bytes = beyond < MEMORY_MOST ? beyond : MEMORY_MOST;
    int count = 0;
    for (int i = 0; i < PEAK_LEVELS; i++) {
        if (all[i].bytes <= last)
            continue; /* a cache that is not there, or does not say so */
        last = all[i].bytes;
        levels[count] = all[i];
        levels[count++].gbps = peak_read_bandwidth(pool, last, 0.1);
    }
    return count;
}
