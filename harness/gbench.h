/* Google Benchmark from C: times one function, keeps every sample. */
#ifndef ASSAY_HARNESS_GBENCH_H
#define ASSAY_HARNESS_GBENCH_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct BenchOptions {
    double min_seconds;    /* of the timed part */
    double warmup_seconds; /* untimed, before */
    int iterations;        /* fixed number instead of min_seconds; 0: none */
} BenchOptions;

typedef struct BenchResult {
    int count;
    double *samples; /* seconds of each iteration, in order; free() it */
} BenchResult;

/* Runs body(user) under Google Benchmark in real time. Returns 0, or -1
 * when the library did not run it. */
int bench_run(const char *name, void (*body)(void *user), void *user,
              const BenchOptions *options, BenchResult *result);

#ifdef __cplusplus
}
#endif

#endif
