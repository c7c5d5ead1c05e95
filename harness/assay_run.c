/* assay-run: loads an artifact and runs, taps, checks or times it. Holds
 * the runtime and Google Benchmark, no compiler, so that what it uses of
 * memory is the model's. Prints a report as JSON. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cleanup.h"
#include "harness/common.h"
#include "harness/compare.h"
#include "harness/gbench.h"
#include "harness/peak.h"
#include "harness/runner.h"

static const char usage[] =
    "Usage: assay-run ARTIFACT [options]\n"
    "       assay-run --peak [--threads N]\n"
    "\n"
    "Loads the artifact folder that `assay compile` wrote, runs it once and\n"
    "prints a report as JSON.\n"
    "\n"
    "  -i, --input NAME=FILE   .npy array of an input; several batches along\n"
    "                          axis 0 run one after the other\n"
    "  -s, --seed N            seed of inputs without a file (1)\n"
    "  -o, --output DIR        write outputs to DIR/NAME.npy, made when "
    "missing; unusual\n"
    "                          characters become _, and equal names get .2, "
    ".3\n"
    "      --taps DIR          write every inner tensor to "
    "DIR/tensor_NNNN.npy\n"
    "  -t, --threads N         1 or more; default: the physical cores\n"
    "      --time              measure with Google Benchmark\n"
    "      --min-time S        seconds to measure for at least (1)\n"
    "      --repeat N          measure exactly N runs instead\n"
    "      --profile N         median time of each step over N runs\n"
    "      --check-twice       run again on a filled arena: same outputs?\n"
    "      --peak              FMA and memory-read peak of this machine\n"
    "  -h, --help\n"
    "\n"
    "Examples:\n"
    "  assay-run out/ --input image=cat.npy --output .\n"
    "  assay-run out/ --time --threads 2\n"
    "\n"
    "Exit codes: 0 fine, 1 a check failed, 2 bad input or artifact.\n";

typedef struct RunOptions {
    const char *artifact, *output, *taps;
    const char *inputs[256];
    int input_count;
    uint64_t seed;
    int threads, repeat, profile;
    double min_time;
    bool time, check_twice, peak;
} RunOptions;

enum {
    OPT_TAPS = 256,
    OPT_TIME,
    OPT_MIN_TIME,
    OPT_REPEAT,
    OPT_PROFILE,
    OPT_CHECK_TWICE,
    OPT_PEAK
};

static const struct option long_options[] = {
    {"input", required_argument, NULL, 'i'},
    {"seed", required_argument, NULL, 's'},
    {"output", required_argument, NULL, 'o'},
    {"taps", required_argument, NULL, OPT_TAPS},
    {"threads", required_argument, NULL, 't'},
    {"time", no_argument, NULL, OPT_TIME},
    {"min-time", required_argument, NULL, OPT_MIN_TIME},
    {"repeat", required_argument, NULL, OPT_REPEAT},
    {"profile", required_argument, NULL, OPT_PROFILE},
    {"check-twice", no_argument, NULL, OPT_CHECK_TWICE},
    {"peak", no_argument, NULL, OPT_PEAK},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static double parse_number(const char *name, const char *text, double low,
                           double high)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= low && value <= high)) {
        fprintf(stderr, "assay-run: --%s %s: give a number from %g to %g\n",
                name, text, low, high);
        exit(EXIT_BAD_INPUT);
    }
    return value;
}

static RunOptions parse_options(int argc, char **argv)
{
    RunOptions o = {.seed = 1, .min_time = 1};
    int c;
    while ((c = getopt_long(argc, argv, "i:s:o:t:h", long_options, NULL)) !=
           -1) {
        switch (c) {
        case 'i':
            if (o.input_count == 256) {
                fputs("assay-run: more than 256 inputs\n", stderr);
                exit(EXIT_BAD_INPUT);
            }
            o.inputs[o.input_count++] = optarg;
            break;
        case 's':
            o.seed = (uint64_t)parse_number("seed", optarg, 0, 1e15);
            break;
        case 'o':
            o.output = optarg;
            break;
        case 't':
            o.threads = (int)parse_number("threads", optarg, 1, 1024);
            break;
        case OPT_TAPS:
            o.taps = optarg;
            break;
        case OPT_TIME:
            o.time = true;
            break;
        case OPT_MIN_TIME:
            o.min_time = parse_number("min-time", optarg, 1e-6, 1e6);
            break;
        case OPT_REPEAT:
            o.repeat = (int)parse_number("repeat", optarg, 1, 1e8);
            break;
        case OPT_PROFILE:
            o.profile = (int)parse_number("profile", optarg, 1, 1e6);
            break;
        case OPT_CHECK_TWICE:
            o.check_twice = true;
            break;
        case OPT_PEAK:
            o.peak = true;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs("Try assay-run --help.\n", stderr);
            exit(EXIT_BAD_INPUT);
        }
    }
    if (optind + !o.peak != argc) {
        fputs(usage, stderr);
        exit(EXIT_BAD_INPUT);
    }
    o.artifact = o.peak ? NULL : argv[optind];
    return o;
}

/* ---- timing ----------------------------------------------------------- */

/* Short: it runs beside every measurement, to tell a disturbed machine. */
static const double calibration_seconds = 0.03;

static bool time_runs(Runner *r, const RunOptions *o, json_t *report)
{
    Pool *pool = artifact_pool(r->artifact);
    BenchOptions options = {.min_seconds = o->min_time,
                            .warmup_seconds = o->min_time / 5,
                            .iterations = o->repeat};
    BenchResult result;
    double before, after;
    double best = peak_fma(pool, calibration_seconds, &before);
    if (bench_run(r->info->model, runner_run_first, r, &options, &result)) {
        str_add(r->error, "Google Benchmark did not run\n");
        return false;
    }
    best = fmax(best, peak_fma(pool, calibration_seconds, &after));
    json_t *samples = json_array();
    for (int i = 0; i < result.count; i++)
        json_array_append_new(samples, json_real(result.samples[i]));
    json_t *time =
        json_pack("{s:f, s:f, s:f, s:f, s:o, s:f, s:[f, f]}", "p50",
                  stats_percentile(result.samples, result.count, 0.5), "p90",
                  stats_percentile(result.samples, result.count, 0.9), "p99",
                  stats_percentile(result.samples, result.count, 0.99), "min",
                  stats_percentile(result.samples, result.count, 0), "samples",
                  samples, "fma_gflops", best, "fma_beside", before, after);
    free(result.samples);
    json_object_set_new(report, "time", time);
    return true;
}

/* ---- what was asked for ----------------------------------------------- */

static int print_report(json_t *report)
{
    int code = json_dumpf(report, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(report);
    if (code || fflush(stdout) || ferror(stdout)) {
        perror("assay-run: standard output");
        return EXIT_BAD_INPUT;
    }
    return 0;
}

static int report_peak(int threads)
{
    Pool *pool = pool_new(threads);
    if (!pool) {
        fputs("assay-run: cannot start the threads\n", stderr);
        return EXIT_BAD_INPUT;
    }
    pool_pin_caller(pool);
    json_t *report =
        json_pack("{s:i, s:s, s:f, s:f}", "threads", pool_threads(pool),
                  "kind", peak_kind(), "fma_gflops", peak_fma(pool, 0.3, NULL),
                  "read_gbps", peak_read_bandwidth(pool, 0.5));
    pool_free(pool);
    return print_report(report);
}

/* Before the run, so that a long one is not in vain. */
static bool open_folder(Runner *r, const char *option, const char *path)
{
    if (!path || make_folders(path))
        return true;
    str_addf(r->error, "%s %s: %s\n", option, path, strerror(errno));
    return false;
}

static int run_all(Runner *r, const RunOptions *o, json_t *report)
{
    if (!runner_set_inputs(r, o->inputs, o->input_count, o->seed))
        return EXIT_BAD_INPUT;
    if (!open_folder(r, "--output", o->output) ||
        !open_folder(r, "--taps", o->taps))
        return EXIT_BAD_INPUT;
    bool same = true;
    if (o->check_twice)
        same = runner_check_twice(r, report);
    else
        runner_run(r);
    runner_report_outputs(r, report);
    if (o->output && !runner_write_outputs(r, o->output))
        return EXIT_BAD_INPUT;
    if (o->taps && !runner_write_taps(r, o->taps))
        return EXIT_BAD_INPUT;
    if (o->profile)
        runner_profile(r, o->profile, report);
    if (o->time && !time_runs(r, o, report))
        return EXIT_BAD_INPUT;
    return same ? 0 : EXIT_FAILED_CHECK;
}

static int run_artifact(const RunOptions *o)
{
    LoadOptions load = {.threads = o->threads};
    Artifact *artifact;
    AssayError error;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    if (artifact_load(o->artifact, &load, &artifact, &error) != ASSAY_OK) {
        fprintf(stderr, "assay-run: %s: %s\n", status_text(error.status),
                error.text);
        return EXIT_BAD_INPUT;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    pool_pin_caller(artifact_pool(artifact));
    Str text = {0};
    Runner r = {.arena = arena_new(),
                .artifact = artifact,
                .info = artifact_info(artifact),
                .error = &text};
    json_t *report =
        json_pack("{s:s, s:s, s:i, s:f, s:I}", "model", r.info->model,
                  "target", r.info->target, "threads",
                  pool_threads(artifact_pool(artifact)), "load_seconds",
                  (double)(end.tv_sec - start.tv_sec) +
                      1e-9 * (double)(end.tv_nsec - start.tv_nsec),
                  "arena_bytes", (json_int_t)r.info->arena_bytes);
    int code = run_all(&r, o, report);
    if (text.length)
        fprintf(stderr, "assay-run: %s", str_text(&text));
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    json_object_set_new(report, "peak_rss_kib", json_integer(usage.ru_maxrss));
    /* Bad input has no report: nothing was computed. */
    int printed = 0;
    if (code == EXIT_BAD_INPUT)
        json_decref(report);
    else
        printed = print_report(report);
    artifact_free(artifact);
    arena_free(r.arena);
    str_free(&text);
    return code ? code : printed;
}

int main(int argc, char **argv)
{
    cleanup_start();
    RunOptions o = parse_options(argc, argv);
    return o.peak ? report_peak(o.threads) : run_artifact(&o);
}
