/* The thread pool: every iteration exactly once, for any count and number
 * of threads, many loops in a row, with sleeps between them. Runs under
 * ThreadSanitizer too (`ninja tsan`). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <time.h>

#include "runtime/pool.h"

enum { MAX_COUNT = 1000 };

typedef struct Counts {
    /* Plain, not atomic: two threads on one element is what TSan and the
     * counts below must show. */
    int hits[MAX_COUNT];
    int64_t bounds;
} Counts;

static void count_hits(void *context, int64_t begin, int64_t end)
{
    Counts *counts = context;
    for (int64_t i = begin; i < end; i++)
        counts->hits[i]++;
}

static void check_counts(int threads)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 64, 999, 1000};
    Pool *pool = pool_new(threads);
    assert_non_null(pool);
    assert_int_equal(pool_threads(pool), threads);
    for (int round = 0; round < 50; round++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            Counts counts = {{0}, 0};
            pool_parallel_for(pool, count_hits, &counts, sizes[s]);
            for (int64_t i = 0; i < MAX_COUNT; i++)
                assert_int_equal(counts.hits[i], i < sizes[s]);
        }
    pool_free(pool);
}

static void each_iteration_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 8; threads++)
        check_counts(threads);
}

typedef struct Ranges {
    int64_t begin[8], end[8];
    int count;
} Ranges;

static void note_range(void *context, int64_t begin, int64_t end)
{
    Ranges *r = context;
    int slot = __atomic_fetch_add(&r->count, 1, __ATOMIC_SEQ_CST);
    r->begin[slot] = begin;
    r->end[slot] = end;
}

/* The same count splits the same way each time, into nearly equal parts. */
static void split_is_static(void **state)
{
    (void)state;
    Pool *pool = pool_new(3);
    for (int round = 0; round < 20; round++) {
        Ranges r = {{0}, {0}, 0};
        pool_parallel_for(pool, note_range, &r, 10);
        assert_int_equal(r.count, 3);
        int seen = 0;
        for (int i = 0; i < 3; i++) {
            if (r.begin[i] == 0 && r.end[i] == 4)
                seen |= 1;
            if (r.begin[i] == 4 && r.end[i] == 7)
                seen |= 2;
            if (r.begin[i] == 7 && r.end[i] == 10)
                seen |= 4;
        }
        assert_int_equal(seen, 7);
    }
    pool_free(pool);
}

/* Pauses longer than the spinning: threads fall asleep and must wake. */
static void wakes_from_sleep(void **state)
{
    (void)state;
    Pool *pool = pool_new(4);
    for (int round = 0; round < 20; round++) {
        struct timespec pause = {0, 3000000};
        nanosleep(&pause, NULL);
        Counts counts = {{0}, 0};
        pool_parallel_for(pool, count_hits, &counts, 100);
        for (int i = 0; i < 100; i++)
            assert_int_equal(counts.hits[i], 1);
    }
    pool_free(pool);
}

static void slow_task(void *context, int64_t begin, int64_t end)
{
    (void)end;
    struct timespec pause = {0, 4000000};
    if (begin) /* the workers, so that the caller has to sleep */
        nanosleep(&pause, NULL);
    ((int *)context)[begin] = 1;
}

static void caller_waits_asleep(void **state)
{
    (void)state;
    Pool *pool = pool_new(2);
    for (int round = 0; round < 10; round++) {
        int done[2] = {0, 0};
        pool_parallel_for(pool, slow_task, done, 2);
        assert_int_equal(done[0] + done[1], 2);
    }
    pool_free(pool);
}

static void starts_and_ends_unused(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        pool_free(pool_new(4));
}

static void default_is_the_cores(void **state)
{
    (void)state;
    int cpus[64];
    int cores = pool_physical_cores(cpus, 64);
    assert_true(cores >= 1);
    for (int i = 1; i < cores && i < 64; i++)
        assert_true(cpus[i] > cpus[i - 1]);
    Pool *pool = pool_new(0);
    assert_int_equal(pool_threads(pool), cores);
    pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_iteration_once),
        cmocka_unit_test(split_is_static),
        cmocka_unit_test(wakes_from_sleep),
        cmocka_unit_test(caller_waits_asleep),
        cmocka_unit_test(starts_and_ends_unused),
        cmocka_unit_test(default_is_the_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
