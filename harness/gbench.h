/* Google Benchmark from C: times functions, keeps every sample. */
#ifndef ASSAY_HARNESS_GBENCH_H
#define ASSAY_HARNESS_GBENCH_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct BenchCase {
    const char *name;
    void (*body)(void *user);
    void *user;
} BenchCase;

typedef struct BenchOptions {
    double min_seconds;    /* of the timed part of each case */
    double warmup_seconds; /* untimed, before, of each case */
    int iterations;        /* fixed number instead of min_seconds; 0: none */
} BenchOptions;

typedef struct BenchResult {
    int count;
    double *samples; /* seconds of each iteration, in order; free() it */
} BenchResult;

/* Runs all cases under Google Benchmark in real time; two or more in
 * repetitions whose order is random, so that what disturbs the machine for
 * a while hits all of them. Returns 0, or -1 when the library did not run
 * one; results are to be freed in either case. */
int bench_run(const BenchCase *cases, int count, const BenchOptions *options,
              BenchResult *results);

/* The context of the library's JSON, an object as text: date, host, CPUs,
 * caches, load. free() it; NULL without memory. */
char *bench_context(const char *executable);

/* A case of a program whose command line is the library's. */
typedef struct BenchItem {
    const char *name, *label;
    void *user;
    /* Before the case is timed, which the library does several times while
     * it looks for the number of runs. NULL, or why it cannot be: the case
     * shows as failed. */
    const char *(*prepare)(void *user);
    /* Seconds of one run, measured by itself. */
    double (*run)(void *user);
    /* For counters, after prepare: operations of one run, and the largest
     * difference from the reference over what is allowed. */
    double (*flops)(void *user);
    double (*excess)(void *user);
} BenchItem;

/* Takes the library's flags out of argv, and adds `context` (key, value,
 * key, ..., NULL) to what it prints. */
void bench_initialize(int *argc, char **argv, const char *const *context);
/* Runs all that the filter selects; reports go where the flags say. How
 * many ran. */
int bench_main(const BenchItem *items, int count);

#ifdef __cplusplus
}
#endif

#endif
