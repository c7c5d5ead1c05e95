/* assay run: compile, check, measure and record models. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/fingerprint.h"
#include "harness/launch.h"
#include "harness/measure.h"
#include "harness/npy.h"
#include "harness/results.h"
#include "runtime/pool.h"
#include "targets/target.h"

static const char usage[] =
    "Usage: assay run MODEL... [options]\n"
    "\n"
    "Compiles each model, compares its outputs with the reference, measures\n"
    "it, and stores the results. MODEL is a suite model (`assay list\n"
    "models`; NAME@192,width=0.75,batch=4,seed=2 sets parameters), an ONNX\n"
    "file, or `all`.\n"
    "\n"
    "      --mode M,M...   fused,unfused (default), O0, O1, naive\n"
    "  -t, --threads N     (physical cores)\n"
    "  -q, --quick         shorter measurements, fewer test images\n"
    "      --format json   print the results as JSON instead of a table\n"
    "      --results DIR   where to store them (results/ of the project)\n"
    "      --images FILE   your own labelled data for the models: inputs ...\n"
    "      --labels FILE   ... and integer labels, as .npy\n"
    "      --target T      native (default), or one of `assay list targets`\n"
    "      --dim NAME=VALUE  a named dimension of an ONNX file\n"
    "\nExamples:\n"
    "  assay run resnet18 mobilenet_v2 --quick\n"
    "  assay run all --mode fused,unfused,O0\n"
    "  assay run model.onnx --dim N=1 --images x.npy --labels "
    "y.npy\n" EXIT_CODES_HELP;

enum { OPT_FORMAT = OPT_COMMAND, OPT_RESULTS, OPT_IMAGES, OPT_LABELS };

static const struct option long_options[] = {
    {"mode", required_argument, NULL, OPT_MODE},
    {"threads", required_argument, NULL, 't'},
    {"quick", no_argument, NULL, 'q'},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"results", required_argument, NULL, OPT_RESULTS},
    {"images", required_argument, NULL, OPT_IMAGES},
    {"labels", required_argument, NULL, OPT_LABELS},
    {"target", required_argument, NULL, OPT_TARGET},
    {"dim", required_argument, NULL, OPT_DIM},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef struct Run {
    Arena *arena;
    MeasurePlan plan;
    Vec(const char *) models;
    Vec(const char *) compile_args;
    CompileOptions dims; /* --dim only: to see that they are right */
    const char *results, *target;
    bool json;
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
        run->plan.threads = (int)number;
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
    case OPT_TARGET:
        run->target = optarg;
        vec_push(run->arena, &run->compile_args, "--target");
        vec_push(run->arena, &run->compile_args, optarg);
        return true;
    case OPT_DIM:
        vec_push(run->arena, &run->compile_args, "--dim");
        vec_push(run->arena, &run->compile_args, optarg);
        return compile_options_take(&run->dims, OPT_DIM, optarg) > 0;
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
    if (!target_find(run->arena, diag, run->target)) {
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
    for (int i = 0; i < run->models.count; i++) {
        const char *model = run->models.data[i];
        Str error = {0};
        SuiteParams params;
        if (suite_is_name(model) && run->dims.dim_count) {
            bad_input("%s: --dim is for ONNX files; a suite model has "
                      "parameters, as %s@batch=4",
                      model, model);
            return false;
        }
        bool ok = suite_is_name(model)
                      ? suite_find(model, &params, &error) != NULL
                      : !access(model, R_OK);
        if (!ok && error.length)
            bad_input("%s", str_text(&error));
        else if (!ok)
            bad_input("%s: %s", model, strerror(errno));
        str_free(&error);
        if (!ok)
            return false;
    }
    return true;
}

static void add_models(Run *run, int count, char *const *names)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], "all")) {
            vec_push(run->arena, &run->models, names[i]);
            continue;
        }
        for (int m = 0; suite_models()[m]; m++)
            vec_push(run->arena, &run->models, suite_models()[m]->name);
    }
}

/* ---- running ---------------------------------------------------------- */

static void measure_one(Run *run, int index, ModelResult *result)
{
    const char *model = run->models.data[index];
    fprintf(stderr, "[%d/%d] %s ...", index + 1, run->models.count, model);
    fflush(stderr);
    char *work = make_temp_folder(run->arena);
    if (!work) {
        *result =
            (ModelResult){.model = model, .label = model, .mode_count = 1};
        result->modes[0] = (ModeResult){.mode = "-",
                                        .status = MODE_BROKEN,
                                        .reason = "no temporary folder"};
        return;
    }
    measure_model(run->arena, model, &run->plan, work, result);
    remove_temp_folder(work);
    const char *verdict = "ok";
    for (int i = 0; i < result->mode_count; i++)
        if (result->modes[i].status != MODE_OK)
            verdict = mode_status_name(result->modes[i].status);
    fprintf(stderr, " %s, %.1f s\n", verdict, result->seconds);
}

static int exit_code(const ModelResult *models, int count)
{
    int code = EXIT_FINE;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < models[i].mode_count; k++) {
            ModeStatus status = models[i].modes[k].status;
            if (status == MODE_REFUSED)
                return EXIT_BAD_INPUT;
            if (status != MODE_OK)
                code = EXIT_FAILED_CHECK;
        }
    return code;
}

static int run_models(Run *run)
{
    const char *config = arena_printf(
        run->arena, "%s-t%d%s", run->target ? run->target : "native",
        run->plan.threads, run->plan.quick ? "-quick" : "");
    json_t *machine = fingerprint_machine();
    Str error = {0};
    json_t *peak = launch_peak(run->arena, run->plan.threads, &error);
    if (!peak)
        bad_input("assay-run --peak: %s", str_text(&error));
    int count = run->models.count;
    ModelResult *results = ARENA_ARRAY(run->arena, ModelResult, count);
    for (int i = 0; i < count; i++)
        measure_one(run, i, &results[i]);
    json_t *document = results_json(run->arena, &run->plan, config, machine,
                                    peak, results, count);
    if (run->json) {
        json_dumpf(document, stdout, JSON_INDENT(1));
        putchar('\n');
    } else {
        results_print_table(run->arena, stdout, results, count);
    }
    int code = exit_code(results, count);
    error.length = 0;
    const char *path =
        results_store(run->arena, run->results, document, &error);
    if (path)
        fprintf(stderr, "stored %s\n", path);
    else
        code = bad_input("%s", str_text(&error));
    str_free(&error);
    json_decref(document);
    json_decref(machine);
    json_decref(peak);
    return code;
}

int cmd_run(int argc, char **argv)
{
    Run run = {.arena = arena_new()};
    compile_options_init(&run.dims);
    set_modes(&run, "fused,unfused");
    int c;
    while ((c = getopt_long(argc, argv, "t:qh", long_options, NULL)) != -1) {
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        if (!take_option(&run, c))
            return EXIT_BAD_INPUT;
    }
    if (optind == argc)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    add_models(&run, argc - optind, argv + optind);
    vec_push(run.arena, &run.compile_args, NULL);
    run.plan.compile_args = run.compile_args.data;
    if (!run.plan.threads)
        run.plan.threads = pool_physical_cores(NULL, 0);
    if (!run.results)
        run.results =
            arena_printf(run.arena, "%s/results", project_folder(run.arena));
    int code = check_request(&run) ? run_models(&run) : EXIT_BAD_INPUT;
    arena_free(run.arena);
    return code;
}
