/* Peak of reading. The loops do nothing but load: with as much as an xor for
 * each load, the arithmetic is what limits the nearest cache. */
#include "harness/peak.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/common.h"
#include "targets/cpu.h"

enum {
    GRAIN = 1024,            /* bytes that a turn of the loops reads */
    MEMORY_LEAST = 64 << 20, /* bytes a thread that no cache holds */
    MEMORY_MOST = 256 << 20,
    HUGE_PAGE = 2 << 20
};

/* Reads `bytes`, a multiple of GRAIN, once. */
typedef void (*ReadLoop)(const char *data, int64_t bytes);

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static void read_avx512(const char *data,
                                                           int64_t bytes)
{
    for (const char *end = data + bytes; data < end; data += GRAIN)
#pragma GCC unroll 16
        for (int k = 0; k < GRAIN / 64; k++) {
            __m512i value;
            const __m512i *from = (const __m512i *)data + k;
            __asm__ volatile("vmovdqa64 %1, %0" : "=v"(value) : "m"(*from));
        }
}

__attribute__((target("avx2"))) static void read_avx2(const char *data,
                                                      int64_t bytes)
{
    for (const char *end = data + bytes; data < end; data += GRAIN)
#pragma GCC unroll 32
        for (int k = 0; k < GRAIN / 32; k++) {
            __m256i value;
            const __m256i *from = (const __m256i *)data + k;
            __asm__ volatile("vmovdqa %1, %0" : "=x"(value) : "m"(*from));
        }
}
#endif

/* An operand that an instruction of no work wants in a register. */
static void read_generic(const char *data, int64_t bytes)
{
    typedef uint64_t Lane __attribute__((vector_size(16)));
    for (const char *end = data + bytes; data < end; data += GRAIN)
#pragma GCC unroll 64
        for (int k = 0; k < GRAIN / 16; k++) {
            Lane value = ((const Lane *)data)[k];
#if defined(__aarch64__)
            __asm__ volatile("" : : "w"(value));
#elif defined(__x86_64__)
            __asm__ volatile("" : : "x"(value));
#else
            __asm__ volatile("" : : "r"(value[0]), "r"(value[1]));
#endif
        }
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
    int64_t stride; /* from a thread's data to the next one's */
    int64_t bytes;  /* a thread */
    int64_t repeat; /* so that starting the threads costs nothing beside it */
} ReadTask;

static void read_task(void *context, int64_t begin, int64_t end)
{
    const ReadTask *task = context;
    for (int64_t t = begin; t < end; t++)
        for (int64_t r = 0; r < task->repeat; r++)
            task->loop(task->data + t * task->stride, task->bytes);
}

/* Huge pages where the system has them, as weights and arena lie in them. */
static char *map_pages(size_t bytes)
{
    char *data = mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    uintptr_t past = (uintptr_t)data % HUGE_PAGE;
    char *start = past ? data + HUGE_PAGE - past : data;
    madvise(start, bytes, MADV_HUGEPAGE);
    memset(start, 1, bytes);
    /* The ends that are not used. */
    if (start > data)
        munmap(data, (size_t)(start - data));
    munmap(start + bytes, (size_t)(data + HUGE_PAGE - start));
    return start;
}

double peak_read_bandwidth(Pool *pool, int64_t bytes, double seconds)
{
    enum { LEAST = 16 << 20 };
    int threads = pool_threads(pool);
    bytes = bytes / GRAIN * GRAIN;
    /* Each thread's in pages of its own. */
    int64_t stride = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    size_t total = (size_t)threads * (size_t)stride;
    char *data = bytes ? map_pages(total) : NULL;
    if (!data)
        return 0;
    ReadTask task = {.loop = choose_read(),
                     .data = data,
                     .stride = stride,
                     .bytes = bytes,
                     .repeat = bytes < LEAST ? LEAST / bytes : 1};
    double best = 0, end = clock_now() + seconds;
    double read = (double)threads * (double)bytes * (double)task.repeat;
    do {
        double start = clock_now();
        pool_parallel_for(pool, read_task, &task, threads);
        double rate = read / (clock_now() - start);
        best = rate > best ? rate : best;
    } while (clock_now() < end);
    munmap(data, total);
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
