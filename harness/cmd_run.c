/* assay run: compile, check, measure and record models. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/fingerprint.h"
#include "harness/launch.h"
#include "harness/model_list.h"
#include "harness/npy.h"
#include "harness/progress.h"
#include "harness/results.h"
#include "harness/table.h"
#include "harness/tune.h"
#include "targets/target.h"

static const char usage[] =
    "Usage: assay run MODEL... [options]\n"
    "\n"
    "Compiles each model, compares its outputs with the reference, measures\n"
    "it, and stores the results. MODEL is a suite model (`assay list\n"
    "models`; NAME@192,width=0.75,batch=4,seed=2 sets parameters), an ONNX\n"
    "file, or `all`. Each case runs in processes of its own: one that\n"
    "crashes, hangs or runs out of memory is a result like any other.\n"
    "\n"
    "      --mode M,M...   fused,unfused (default), O0, O1, naive\n"
    "  -t, --threads N     (physical cores)\n"
    "  -q, --quick         shorter measurements, fewer test images\n"
    "      --budget MIN    minutes for all of it: comparisons are cut short\n"
    "                      to keep it, and models past it are skipped\n"
    "      --timeout S     seconds for each step of a case (900)\n"
    "      --memory MIB    memory of each process (nine tenths of what there\n"
    "                      is)\n"
    "      --format json   print the results as JSON instead of a table\n"
    "      --results DIR   where to store them (results/ of the project)\n"
    "      --images FILE   your own labelled data for the models: inputs ...\n"
    "      --labels FILE   ... and integer labels, as .npy\n"
    "      --target T      native (default), or one of `assay list targets`\n"
    "      --choices FILE  schedules that `assay tune` found fastest here\n"
    "      --tune quick    `assay tune` first: the log is that of --choices,\n"
    "                      or the default one\n"
    "      --tune-budget S seconds a model for it, about (30)\n"
    "      --dim NAME=VALUE  a named dimension of an ONNX file\n"
    "      --bind NAME=FILE  an input that decides shapes, as a constant\n"
    "      --ops FILE      your own operators\n"
    "\nExamples:\n"
    "  assay run resnet18 mobilenet_v2 --quick\n"
    "  assay run all --mode fused,unfused,O0 --budget 20\n"
    "  assay run resnet50 --threads 1 --tune quick\n"
    "  assay run model.onnx --dim N=1 --images x.npy --labels "
    "y.npy\n" EXIT_CODES_HELP;

enum {
    OPT_FORMAT = OPT_COMMAND,
    OPT_RESULTS,
    OPT_IMAGES,
    OPT_LABELS,
    OPT_BUDGET,
    OPT_TIMEOUT,
    OPT_MEMORY,
    OPT_TUNE,
    OPT_TUNE_BUDGET
};

static const struct option long_options[] = {
    {"mode", required_argument, NULL, OPT_MODE},
    {"threads", required_argument, NULL, 't'},
    {"quick", no_argument, NULL, 'q'},
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"memory", required_argument, NULL, OPT_MEMORY},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"results", required_argument, NULL, OPT_RESULTS},
    {"images", required_argument, NULL, OPT_IMAGES},
    {"labels", required_argument, NULL, OPT_LABELS},
    {"tune", required_argument, NULL, OPT_TUNE},
    {"tune-budget", required_argument, NULL, OPT_TUNE_BUDGET},
    {"choices", required_argument, NULL, OPT_CHOICES},
    {"target", required_argument, NULL, OPT_TARGET},
    {"dim", required_argument, NULL, OPT_DIM},
    {"bind", required_argument, NULL, OPT_BIND},
    {"ops", required_argument, NULL, OPT_OPS},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef struct Run {
    Arena *arena;
    MeasurePlan plan;
    ModelList models;
    CompileOptions compile; /* what the models share, to see it is right */
    bool tune;
    double tune_budget;
    const char *results;
    bool json;
    double budget; /* seconds; 0: none */
    Progress *progress;
} Run;

/* ---- options ---------------------------------------------------------- */

static bool set_modes(Run *run, const char *text)
{
    char *list = arena_strdup(run->arena, text), *rest = NULL;
    run->plan.mode_count = 0;
    for (char *mode = strtok_r(list, ",", &rest); mode;
         mode = strtok_r(NULL, ",", &rest)) {
        CompileOptions check;
        compile_options_init(&check);
        if (!compile_options_set_mode(&check, mode))
            return false;
        for (int i = 0; i < run->plan.mode_count; i++)
            if (!strcmp(run->plan.modes[i], mode)) {
                bad_input("--mode %s: %s is there twice", text, mode);
                return false;
            }
        if (run->plan.mode_count == MAX_MODES) {
            bad_input("--mode: at most %d modes", MAX_MODES);
            return false;
        }
        run->plan.modes[run->plan.mode_count++] = mode;
    }
    if (!run->plan.mode_count)
        bad_input("--mode: name at least one");
    return run->plan.mode_count > 0;
}

static bool take_option(Run *run, int code)
{
    long number;
    switch (code) {
    case OPT_MODE:
        return set_modes(run, optarg);
    case 't':
        if (!parse_count("--threads", optarg, 1, 1024, &number))
            return false;
        run->plan.build.threads = (int)number;
        return true;
    case OPT_BUDGET:
        if (!parse_number("--budget", optarg, 0, 1e6, &run->budget))
            return false;
        run->budget *= 60;
        return true;
    case OPT_TIMEOUT:
        if (!parse_count("--timeout", optarg, 1, 1000000, &number))
            return false;
        run->plan.build.limits.seconds = (double)number;
        return true;
    case OPT_MEMORY:
        if (!parse_count("--memory", optarg, 16, 1L << 40, &number))
            return false;
        run->plan.build.limits.memory_bytes = (int64_t)number << 20;
        return true;
    case 'q':
        return run->plan.quick = true;
    case OPT_FORMAT:
        return take_format(optarg, &run->json);
    case OPT_RESULTS:
        run->results = optarg;
        return true;
    case OPT_IMAGES:
        run->plan.labels.images = optarg;
        return true;
    case OPT_LABELS:
        run->plan.labels.labels = optarg;
        return true;
    case OPT_TUNE:
        return tune_take(optarg, &run->tune);
    case OPT_TUNE_BUDGET:
        return parse_number("--tune-budget", optarg, 0, 1e6,
                            &run->tune_budget);
    case OPT_TARGET:
    case OPT_DIM:
    case OPT_BIND:
    case OPT_OPS:
    case OPT_CHOICES:
        return compile_options_take(&run->compile, code, optarg) > 0;
    default:
        bad_input("see assay run --help");
        return false;
    }
}

/* Labels are whole numbers; the images' shape is seen against the model. */
static bool check_labels(const Run *run)
{
    const LabelFiles *l = &run->plan.labels;
    if (!l->images && !l->labels)
        return true;
    if (!l->images || !l->labels) {
        bad_input("--images and --labels go together");
        return false;
    }
    Str error = {0};
    const Array *labels = npy_read(run->arena, l->labels, &error);
    if (labels && (dtype_is_float(labels->dtype) || labels->rank != 1 ||
                   !array_count(labels)))
        str_addf(&error, "--labels %s: one integer an image is wanted",
                 l->labels);
    else if (labels && access(l->images, R_OK))
        str_addf(&error, "--images %s: %s", l->images, strerror(errno));
    bool ok = !error.length;
    if (!ok)
        bad_input("%s", str_text(&error));
    str_free(&error);
    return ok;
}

/* Everything that can be known to be wrong before the first hour of work. */
static bool check_request(Run *run)
{
    Diag *diag = diag_new(run->arena, NULL);
    if (!target_find(run->arena, diag, run->compile.assay.target)) {
        bad_input("%s", diag->errors.data[0]);
        return false;
    }
    Str fault = {0};
    if (!results_can_store(run->arena, run->results, &fault)) {
        bad_input("--results %s: %s", run->results, str_text(&fault));
        str_free(&fault);
        return false;
    }
    if (!check_labels(run))
        return false;
    return model_list_check(&run->models, run->compile.dim_count > 0);
}

/* ---- running ---------------------------------------------------------- */

/* Shorter than a budget needs, so that the last model fits as well. */
static const double budget_share = 0.5;
static const double least_pair_seconds = 5, most_pair_seconds = 60;

/* Of what the budget leaves for each model to come, comparing gets a
 * share. */
static void share_budget(Run *run, int index)
{
    PairPlan *pair = &run->plan.build.pair;
    pair->most_seconds = most_pair_seconds;
    if (run->budget <= 0)
        return;
    double left = run->budget - progress_elapsed(run->progress);
    double each = budget_share * left / (run->models.count - index);
    pair->most_seconds =
        fmax(least_pair_seconds, fmin(each, most_pair_seconds));
}

static bool is_over_budget(const Run *run)
{
    return run->budget > 0 && progress_elapsed(run->progress) > run->budget;
}

static void on_phase(void *user, const char *phase)
{
    progress_phase(((Run *)user)->progress, phase);
}

static void measure_one(Run *run, int index, ModelResult *result)
{
    const char *model = run->models.data[index];
    if (is_over_budget(run)) {
        model_result_init(model, &run->plan, CASE_SKIPPED,
                          arena_printf(run->arena,
                                       "the budget of %g minutes is used up",
                                       run->budget / 60),
                          result);
        return;
    }
    char *work = make_temp_folder(run->arena);
    if (!work) {
        model_result_init(model, &run->plan, CASE_CRASHED,
                          "no temporary folder", result);
        return;
    }
    share_budget(run, index);
    measure_model(run->arena, model, &run->plan, work, result);
    remove_temp_folder(work);
}

static const char *verdict_of_model(Arena *arena, const ModelResult *r)
{
    const char *text = "";
    for (int i = 0; i < r->mode_count; i++)
        text = arena_printf(arena, "%s%s%s %s", text, i ? ", " : "",
                            r->modes[i].mode,
                            case_status_name(r->modes[i].status));
    return text;
}

static int exit_code(const ModelResult *models, int count)
{
    int code = EXIT_FINE;
    for (int i = 0; i < count; i++) {
        if (models[i].has_comparison && models[i].comparison.pair.failed)
            code = EXIT_FAILED_CHECK;
        for (int k = 0; k < models[i].mode_count; k++) {
            CaseStatus status = models[i].modes[k].status;
            if (status == CASE_REFUSED)
                return EXIT_BAD_INPUT;
            if (status != CASE_OK && status != CASE_SKIPPED)
                code = EXIT_FAILED_CHECK;
        }
    }
    return code;
}

/* What each model took when it was last measured here. */
static void expect_times(Run *run, const ResultsContext *context)
{
    json_t *last = results_newest(run->arena, run->results, context);
    size_t k;
    json_t *c;
    for (int i = 0; i < run->models.count; i++) {
        double seconds = 0;
        json_array_foreach(json_object_get(last, "cases"), k, c)
        {
            const char *model = json_string_value(json_object_get(c, "model"));
            if (model && !strcmp(model, model_label(run->models.data[i])))
                seconds += json_number_value(json_object_get(c, "seconds"));
        }
        progress_expect(run->progress, i, seconds);
    }
    json_decref(last);
}

/* What is there so far: a run that ends early keeps what it measured. */
static bool store_results(Run *run, const char *path, const json_t *document)
{
    Str error = {0};
    bool ok = results_store(run->arena, path, document, &error);
    if (!ok)
        bad_input("%s", str_text(&error));
    str_free(&error);
    return ok;
}

static int run_models(Run *run)
{
    json_t *machine = fingerprint_machine();
    Str error = {0};
    int threads = run->plan.build.threads;
    json_t *peak = launch_peak(run->arena, threads, &error);
    if (!peak)
        bad_input("assay-run --peak: %s", str_text(&error));
    str_free(&error);
    ResultsContext context = {.suite = "models",
                              .target = run->compile.assay.target,
                              .threads = threads,
                              .quick = run->plan.quick,
                              .machine = machine,
                              .peak = peak};
    json_t *document = results_new(run->arena, &context);
    int count = run->models.count;
    ModelResult *results = ARENA_ARRAY(run->arena, ModelResult, count);
    const char *path = results_path(run->arena, run->results, document);
    bool stored = false;
    run->plan.peak = peak;
    json_t *requested = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(requested,
                              json_string(model_label(run->models.data[i])));
    json_object_set_new(json_object_get(document, "context"), "requested",
                        requested);
    run->progress = progress_new(run->arena, count);
    expect_times(run, &context);
    for (int i = 0; i < count; i++) {
        progress_begin(run->progress, i, run->models.data[i]);
        measure_one(run, i, &results[i]);
        progress_end(run->progress, verdict_of_model(run->arena, &results[i]));
        results_add_model(document, &results[i]);
        stored = store_results(run, path, document);
    }
    int code = exit_code(results, count);
    if (run->json) {
        json_dumpf(document, stdout, JSON_INDENT(1));
        putchar('\n');
    } else {
        table_print(run->arena, stdout, results, count);
    }
    fflush(stdout);
    if (stored)
        fprintf(stderr, "stored %s\n", path);
    for (int i = 0; i < count; i++)
        model_result_free(&results[i]);
    json_decref(document);
    json_decref(machine);
    json_decref(peak);
    return stored ? code : EXIT_BAD_INPUT;
}

/* What each child gets to compile a model. */
static void set_compile_args(Run *run)
{
    const CompileOptions *o = &run->compile;
    Vec(const char *) args = {0};
    for (int i = 0; i < o->arg_count; i++)
        vec_push(run->arena, &args, o->args[i]);
    if (o->assay.choices) {
        vec_push(run->arena, &args, "--choices");
        vec_push(run->arena, &args, o->assay.choices);
    }
    vec_push(run->arena, &args, NULL);
    run->plan.compile_args = args.data;
}

/* Before the clock starts: a budget is for measuring. */
static int tune_models(Run *run)
{
    int code = EXIT_FINE;
    for (int i = 0; i < run->models.count && run->tune; i++) {
        int of_model =
            tune_first(run->arena, run->models.data[i], &run->compile,
                       run->plan.build.threads, run->tune_budget);
        if (of_model == EXIT_BAD_INPUT)
            return of_model;
        code = of_model ? of_model : code;
    }
    set_compile_args(run);
    return check_choices(&run->compile) ? code : EXIT_BAD_INPUT;
}

static void set_defaults(Run *run)
{
    run->plan.on_phase = on_phase;
    run->plan.user = run;
    set_modes(run, "fused,unfused");
}

/* After the options. */
static void complete_plan(Run *run)
{
    build_plan_init(&run->plan.build, run->plan.quick);
    if (!run->results)
        run->results =
            arena_printf(run->arena, "%s/results", project_folder(run->arena));
}

int cmd_run(int argc, char **argv)
{
    Run run = {.arena = arena_new(), .tune_budget = TUNE_BUDGET};
    compile_options_init(&run.compile);
    set_defaults(&run);
    int c;
    while ((c = getopt_long(argc, argv, "t:qh", long_options, NULL)) != -1) {
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        if (!take_option(&run, c))
            return EXIT_BAD_INPUT;
    }
    if (optind == argc)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    model_list_add(run.arena, &run.models, argc - optind, argv + optind);
    complete_plan(&run);
    int code = check_request(&run) ? tune_models(&run) : EXIT_BAD_INPUT;
    /* A choice that was wrong was dropped: the models run without it. */
    if (code != EXIT_BAD_INPUT) {
        int of_run = run_models(&run);
        code = of_run ? of_run : code;
    }
    arena_free(run.arena);
    return code;
}
