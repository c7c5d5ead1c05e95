/* assay-run: loads an artifact and runs, taps, checks or times it. Holds
 * the runtime and Google Benchmark, no compiler, so that what it uses of
 * memory is the model's. Prints a report as JSON. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "harness/common.h"
#include "harness/gbench.h"
#include "harness/peak.h"
#include "harness/runner.h"
#include "harness/timing.h"

static const char usage[] =
    "Usage: assay-run ARTIFACT [options]\n"
    "       assay-run ARTIFACT --pair OTHER --time [options]\n"
    "       assay-run --peak [--threads N]\n"
    "       assay-run --calibrate [--threads N]\n"
    "\n"
    "Loads the artifact folder that `assay compile` wrote, runs it once and\n"
    "prints a report as JSON.\n"
    "\n"
    "  -i, --input NAME=FILE   .npy array of an input; several batches along\n"
    "                          axis 0 run one after the other\n"
    "  -s, --seed N            seed of inputs without a file (1)\n"
    "      --dim NAME=VALUE    a dimension that runs may choose, where no "
    "file\n"
    "                          decides it; default: the upper bound\n"
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
    "      --profile N         time of each step over N runs\n"
    "      --pair OTHER        measure another artifact of the model in turns "
    "with it\n"
    "      --check-repeat      run again, after other inputs, on buffers "
    "between guards\n"
    "                          and on a filled arena: the same outputs?\n"
    "      --peak              FMA, dot-product and memory-read peak of this "
    "machine\n"
    "      --calibrate         a short FMA run, to tell a disturbed machine\n"
    "  -h, --help\n"
    "\n"
    "Examples:\n"
    "  assay-run out/ --input image=cat.npy --output .\n"
    "  assay-run out/ --time --threads 2\n"
    "  assay-run out/ --dim T=17 --time\n"
    "  assay-run unfused/ --pair fused/ --time --profile 20\n"
    "\n"
    "Exit codes: 0 fine, 1 a check failed, 2 bad input or artifact.\n";

typedef struct RunOptions {
    const char *artifact, *pair, *output, *taps;
    const char *inputs[256];
    const char *dims[64];
    int input_count, dim_count;
    uint64_t seed;
    int threads, repeat, profile;
    double min_time;
    bool time, check_repeat, peak, calibrate;
} RunOptions;

enum {
    OPT_TAPS = 256,
    OPT_TIME,
    OPT_MIN_TIME,
    OPT_REPEAT,
    OPT_PROFILE,
    OPT_CHECK_REPEAT,
    OPT_PEAK,
    OPT_CALIBRATE,
    OPT_PAIR,
    OPT_DIM
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
    {"check-repeat", no_argument, NULL, OPT_CHECK_REPEAT},
    {"peak", no_argument, NULL, OPT_PEAK},
    {"calibrate", no_argument, NULL, OPT_CALIBRATE},
    {"pair", required_argument, NULL, OPT_PAIR},
    {"dim", required_argument, NULL, OPT_DIM},
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
        case OPT_DIM:
            if (o.dim_count == 64) {
                fputs("assay-run: more than 64 of --dim\n", stderr);
                exit(EXIT_BAD_INPUT);
            }
            o.dims[o.dim_count++] = optarg;
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
        case OPT_CHECK_REPEAT:
            o.check_repeat = true;
            break;
        case OPT_PEAK:
            o.peak = true;
            break;
        case OPT_CALIBRATE:
            o.calibrate = true;
            break;
        case OPT_PAIR:
            o.pair = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs("Try assay-run --help.\n", stderr);
            exit(EXIT_BAD_INPUT);
        }
    }
    bool about_machine = o.peak || o.calibrate;
    if (optind + !about_machine != argc) {
        fputs(usage, stderr);
        exit(EXIT_BAD_INPUT);
    }
    o.artifact = about_machine ? NULL : argv[optind];
    if (o.pair && (o.output || o.taps || o.check_repeat)) {
        fputs("assay-run: --pair measures only: leave --output, --taps and "
              "--check-repeat out\n",
              stderr);
        exit(EXIT_BAD_INPUT);
    }
    return o;
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

static json_t *levels_json(Pool *pool)
{
    PeakLevel levels[PEAK_LEVELS];
    json_t *list = json_array();
    int count = peak_levels(pool, levels);
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s, s:I, s:f}", "level",
                                              levels[i].name, "bytes",
                                              (json_int_t)levels[i].bytes,
                                              "gbps", levels[i].gbps));
    return list;
}

static Pool *start_pool(int threads)
{
    Pool *pool = pool_new(threads);
    if (!pool)
        fputs("assay-run: cannot start the threads\n", stderr);
    else
        pool_pin_caller(pool);
    return pool;
}

static int report_peak(int threads)
{
    Pool *pool = start_pool(threads);
    if (!pool)
        return EXIT_BAD_INPUT;
    char *context = bench_context("assay-run");
    json_t *report = json_pack(
        "{s:i, s:s, s:f, s:s, s:f, s:o, s:o*}", "threads", pool_threads(pool),
        "kind", peak_kind(), "fma_gflops", peak_fma(pool, 0.3, NULL),
        "dot_kind", peak_dot_kind(), "dot_gops", peak_dot(pool, 0.2),
        "bandwidth", levels_json(pool), "context",
        context ? json_loads(context, 0, NULL) : NULL);
    free(context);
    pool_free(pool);
    return print_report(report);
}

static int report_calibration(int threads)
{
    Pool *pool = start_pool(threads);
    if (!pool)
        return EXIT_BAD_INPUT;
    double mean, best = peak_fma(pool, TIMING_CALIBRATION, &mean);
    pool_free(pool);
    return print_report(
        json_pack("{s:f, s:f}", "fma_gflops", best, "fma_mean", mean));
}

/* Before the run, so that a long one is not in vain. */
static bool open_folder(Runner *r, const char *option, const char *path)
{
    if (!path || make_folders(path))
        return true;
    str_addf(r->error, "%s %s: %s\n", option, path, strerror(errno));
    return false;
}

/* Of this program: getrusage's counter starts with that of the process that
 * started it. */
static json_t *peak_rss_json(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib ? json_integer(kib) : json_null();
}

/* The first run, and what is written of it. */
static int run_side(Runner *r, const RunOptions *o, json_t *report)
{
    if (!runner_set_dims(r, o->dims, o->dim_count) ||
        !runner_set_inputs(r, o->inputs, o->input_count, o->seed))
        return EXIT_BAD_INPUT;
    if (!open_folder(r, "--output", o->output) ||
        !open_folder(r, "--taps", o->taps))
        return EXIT_BAD_INPUT;
    bool same = true;
    if (o->check_repeat) {
        same = runner_check_repeat(r, report);
    } else {
        double start = clock_now();
        runner_run(r);
        if (r->chunks == 1)
            json_object_set_new(report, "first_run_seconds",
                                json_real(clock_now() - start));
    }
    if (!runner_outcome(r))
        return EXIT_BAD_INPUT;
    /* Before anything is timed: samples are no part of the model. */
    json_object_set_new(report, "peak_rss_kib", peak_rss_json());
    runner_report_outputs(r, report);
    if (o->output && !runner_write_outputs(r, o->output))
        return EXIT_BAD_INPUT;
    if (o->taps && !runner_write_taps(r, o->taps))
        return EXIT_BAD_INPUT;
    return same ? 0 : EXIT_FAILED_CHECK;
}

/* An artifact that is run here: one, or the two of a pair. */
typedef struct Side {
    Artifact *artifact;
    Runner runner;
    json_t *report;
} Side;

static bool load_side(Side *side, Arena *arena, const char *path,
                      const LoadOptions *load, Str *text)
{
    AssayError error;
    double start = clock_now();
    if (artifact_load(path, load, &side->artifact, &error) != ASSAY_OK) {
        fprintf(stderr, "assay-run: %s: %s\n", status_text(error.status),
                error.text);
        return false;
    }
    const ArtifactInfo *info = artifact_info(side->artifact);
    side->runner = (Runner){.arena = arena,
                            .artifact = side->artifact,
                            .info = info,
                            .error = text};
    side->report = json_pack("{s:s, s:s, s:i, s:f, s:I}", "model", info->model,
                             "target", info->target, "threads",
                             pool_threads(artifact_pool(side->artifact)),
                             "load_seconds", clock_now() - start,
                             "arena_bytes", (json_int_t)info->arena_bytes);
    return true;
}

/* The times of both are put together: they must be of the same thing. */
static int run_sides(Side *sides, int count, const RunOptions *o)
{
    int code = 0;
    for (int i = 0; i < count; i++) {
        int of_side = run_side(&sides[i].runner, o, sides[i].report);
        if (of_side == EXIT_BAD_INPUT)
            return of_side;
        code = of_side ? of_side : code;
    }
    Timed timed[] = {{&sides[0].runner, sides[0].report},
                     {&sides[1].runner, sides[1].report}};
    TimingOptions timing = {.min_seconds = o->min_time,
                            .repeat = o->repeat,
                            .profile_runs = o->profile};
    if (o->profile)
        timing_profile(timed, count, &timing);
    if (o->time && !timing_run(timed, count, &timing))
        return EXIT_BAD_INPUT;
    return code;
}

/* Of a pair: {"sides": [...]}. */
static json_t *join_reports(Side *sides, int count)
{
    return count == 2 ? json_pack("{s:[O, O]}", "sides", sides[0].report,
                                  sides[1].report)
                      : json_incref(sides[0].report);
}

static int run_artifacts(const RunOptions *o)
{
    const char *paths[] = {o->artifact, o->pair};
    int count = o->pair ? 2 : 1, code = 0;
    Str text = {0};
    Arena *arena = arena_new();
    Side sides[2] = {0};
    LoadOptions load = {.threads = o->threads};
    for (int i = 0; i < count && !code; i++) {
        if (!load_side(&sides[i], arena, paths[i], &load, &text))
            code = EXIT_BAD_INPUT;
        else
            load.pool = artifact_pool(sides[0].artifact);
    }
    if (!code) {
        pool_pin_caller(load.pool);
        code = run_sides(sides, count, o);
    }
    if (text.length)
        fprintf(stderr, "assay-run: %s", str_text(&text));
    /* Bad input has no report: nothing was computed. */
    if (code != EXIT_BAD_INPUT && print_report(join_reports(sides, count)))
        code = EXIT_BAD_INPUT;
    for (int i = count - 1; i >= 0; i--) {
        artifact_free(sides[i].artifact);
        json_decref(sides[i].report);
    }
    arena_free(arena);
    str_free(&text);
    return code;
}

int main(int argc, char **argv)
{
    cleanup_start();
    RunOptions o = parse_options(argc, argv);
    return o.peak        ? report_peak(o.threads)
           : o.calibrate ? report_calibration(o.threads)
                         : run_artifacts(&o);
}
