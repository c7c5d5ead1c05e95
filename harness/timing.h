/* Timing loaded artifacts inside one process: whole runs with Google
 * Benchmark, and step by step. Two of them take turns. */
#ifndef ASSAY_HARNESS_TIMING_H
#define ASSAY_HARNESS_TIMING_H

#include "harness/runner.h"

typedef struct Timed {
    Runner *runner;
    json_t *report; /* what is measured goes here */
} Timed;

typedef struct TimingOptions {
    double min_seconds; /* of whole runs, each side */
    int repeat;         /* or so many runs; 0: not */
    int profile_runs;
} TimingOptions;

enum { TIMING_MOST_SAMPLES = 256 }; /* that a report holds */

/* Seconds: short, as it runs beside every measurement, to tell a disturbed
 * machine. */
#define TIMING_CALIBRATION 0.03

/* Adds "time" to each report: "p50", "p90", "p99", "min" and "samples" in
 * seconds (of many every k-th, evenly), "runs", and the calibration:
 * "fma_gflops", the best, and "fma_beside", means before and after. False
 * with a line in the runner's error. */
bool timing_run(Timed *sides, int count, const TimingOptions *options);
/* Adds "steps", in order: "kernel", "group", "nodes", "seconds" (median),
 * "samples" (by run), "flops", "bytes" and "weight_bytes" (of these). */
void timing_profile(Timed *sides, int count, const TimingOptions *options);

#endif
