/* The thread pool. Workers wait for `generation` to change, do their range,
 * and count `pending` down; the caller does range 0 and waits for zero.
 * Both sides sleep on the word itself (futex) once spinning did not help,
 * so that a wake-up cannot be lost between the check and the sleep. */
#include "runtime/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MAX_CPUS = 1024,
    MAX_THREADS = 1024,
    STACK_BYTES = 8 << 20,
    /* About 200 us on current processors: longer than a kernel that one
     * thread runs alone, after which a sleeping one would first have to be
     * woken; shorter than what a waiting process would notice. */
    SPIN_COUNT = 5000
};

typedef struct Worker {
    Pool *pool;
    pthread_t thread;
    int index; /* 1 .. threads - 1 */
    int cpu;   /* to pin to, or -1 */
} Worker;

struct Pool {
    /* What the current parallel loop does; written before `generation`. */
    AssayTask task;
    void *context;
    int64_t count;
    bool stop;

    int threads;
    int caller_cpu; /* -1: no pinning */
    int spin_count; /* 0 when threads outnumber the processors */
    Worker *workers;

    /* On cache lines of their own: each side polls one of them. */
    _Alignas(64) atomic_uint generation;
    atomic_uint sleeping_workers;
    _Alignas(64) atomic_uint pending;
    atomic_uint caller_sleeps;
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake_all(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

/* The ranges differ by at most one iteration. */
static void run_range(Pool *pool, int index)
{
    int64_t whole = pool->count / pool->threads;
    int64_t rest = pool->count % pool->threads;
    int64_t begin = whole * index + (index < rest ? index : rest);
    int64_t end = begin + whole + (index < rest);
    if (begin < end)
        pool->task(pool->context, begin, end);
}

static unsigned wait_for_work(Pool *pool, unsigned seen)
{
    for (int i = 0; i < pool->spin_count; i++) {
        unsigned now =
            atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (now != seen)
            return now;
        relax();
    }
    /* The caller changes `generation`, then looks at `sleeping_workers`;
     * we do the opposite, both sequentially consistent: one of us sees the
     * other. */
    atomic_fetch_add(&pool->sleeping_workers, 1);
    unsigned now;
    while ((now = atomic_load(&pool->generation)) == seen)
        futex_wait(&pool->generation, seen);
    atomic_fetch_sub(&pool->sleeping_workers, 1);
    return now;
}

static void pin_to(pthread_t thread, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    /* Failure costs speed only: a container may forbid it. */
    pthread_setaffinity_np(thread, sizeof set, &set);
}

static void *worker_main(void *argument)
{
    Worker *worker = argument;
    Pool *pool = worker->pool;
    if (worker->cpu >= 0)
        pin_to(pthread_self(), worker->cpu);
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_work(pool, seen);
        if (pool->stop)
            return NULL;
        run_range(pool, worker->index);
        if (atomic_fetch_sub(&pool->pending, 1) == 1 &&
            atomic_load(&pool->caller_sleeps))
            futex_wake_all(&pool->pending);
    }
}

static void release_workers(Pool *pool)
{
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleeping_workers))
        futex_wake_all(&pool->generation);
}

static void wait_for_workers(Pool *pool)
{
    for (int i = 0; i < pool->spin_count; i++) {
        if (!atomic_load_explicit(&pool->pending, memory_order_acquire))
            return;
        relax();
    }
    atomic_store(&pool->caller_sleeps, 1);
    unsigned left;
    while ((left = atomic_load(&pool->pending)) != 0)
        futex_wait(&pool->pending, left);
    atomic_store(&pool->caller_sleeps, 0);
}

void pool_parallel_for(void *handle, AssayTask task, void *context,
                       int64_t count)
{
    Pool *pool = handle;
    if (count <= 0)
        return;
    if (count == 1 || pool->threads == 1) {
        task(context, 0, count);
        return;
    }
    pool->task = task;
    pool->context = context;
    pool->count = count;
    atomic_store_explicit(&pool->pending, (unsigned)pool->threads - 1,
                          memory_order_relaxed);
    release_workers(pool);
    run_range(pool, 0);
    wait_for_workers(pool);
}

/* The lowest CPU number among the hardware threads of `cpu`'s core. */
static int first_sibling(int cpu)
{
    char path[96];
    snprintf(path, sizeof path,
             "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
             cpu);
    FILE *file = fopen(path, "r");
    int first = cpu;
    if (file) {
        if (fscanf(file, "%d", &first) != 1)
            first = cpu;
        fclose(file);
    }
    return first;
}

int pool_physical_cores(int *cpus, int capacity)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set))
        CPU_SET(0, &set);
    bool taken[MAX_CPUS] = {false};
    int count = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && cpu < MAX_CPUS; cpu++) {
        if (!CPU_ISSET(cpu, &set))
            continue;
        /* The first sibling itself may be outside our set: what counts is
         * that no two of the chosen ones share a core. */
        int core = first_sibling(cpu);
        if (core < 0 || core >= MAX_CPUS || taken[core])
            continue;
        taken[core] = true;
        if (cpus && count < capacity)
            cpus[count] = cpu;
        count++;
    }
    return count ? count : 1;
}

static int usable_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

Pool *pool_new(int threads)
{
    int cpus[MAX_CPUS];
    int cores = pool_physical_cores(cpus, MAX_CPUS);
    if (threads <= 0)
        threads = cores;
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    Pool *pool = aligned_alloc(64, sizeof *pool);
    if (!pool)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->threads = threads;
    pool->caller_cpu = threads <= cores ? cpus[0] : -1;
    /* With more threads than processors a spinning thread takes time from
     * the one it waits for. */
    pool->spin_count = threads <= usable_cpus() ? SPIN_COUNT : 0;
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    if (!pool->workers) {
        free(pool);
        return NULL;
    }
    /* As much as the main thread has by default, whatever the limit is:
     * kernels have their scratch there. */
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (int i = 1; i < threads; i++) {
        Worker *worker = &pool->workers[i];
        *worker = (Worker){
            .pool = pool, .index = i, .cpu = threads <= cores ? cpus[i] : -1};
        if (pthread_create(&worker->thread, &attr, worker_main, worker)) {
            pthread_attr_destroy(&attr);
            pool->threads = i; /* pool_free joins those that started */
            pool_free(pool);
            return NULL;
        }
    }
    pthread_attr_destroy(&attr);
    return pool;
}

void pool_free(Pool *pool)
{
    if (!pool)
        return;
    pool->stop = true;
    release_workers(pool);
    for (int i = 1; i < pool->threads; i++)
        pthread_join(pool->workers[i].thread, NULL);
    free(pool->workers);
    free(pool);
}

int pool_threads(const Pool *pool)
{
    return pool->threads;
}

bool pool_pin_caller(const Pool *pool)
{
    if (pool->caller_cpu < 0)
        return false;
    pin_to(pthread_self(), pool->caller_cpu);
    return true;
}
