/* assay peers: Assay against other inference engines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/fingerprint.h"
#include "harness/measure.h"
#include "harness/model_list.h"
#include "harness/options.h"
#include "harness/peer_rows.h"
#include "harness/progress.h"
#include "harness/tune.h"
#include "runtime/pool.h"
#include "targets/target.h"

static const char usage[] =
    "Usage: assay peers MODEL... [options]\n"
    "       assay peers --install [--engine E,E...]\n"
    "\n"
    "Measures other inference engines against Assay. Each model is exported\n"
    "to ONNX and compiled; both get the same inputs, threads and processors,\n"
    "in f32. An engine whose outputs differ from Assay's by more than `assay\n"
    "check` allows is wrong, and not timed. Times are of fresh processes in\n"
    "turns, Assay's and the engine's, with the engine's fastest way to run.\n"
    "Results are stored as those of `assay run`.\n"
    "\n"
    "      --engine E,E... onnxruntime, openvino, torch, tvm, ncnn, or a\n"
    "                      program with a '/' that does what harness/peer.py\n"
    "                      says (onnxruntime,openvino,torch)\n"
    "  -t, --threads N,N.. 1 and the physical cores\n"
    "  -q, --quick         one short block: ratios without intervals\n"
    "      --install       make the engines' virtual environments first, "
    "with\n"
    "                      python3 and pip from PyPI (torch and ncnn take\n"
    "                      5 GB of disk each, much less from torch's own\n"
    "                      index: see the examples)\n"
    "      --venvs DIR     where these are ($ASSAY_PEERS, else build/peers)\n"
    "      --seconds S     to measure each row for at most, once the least "
    "is\n"
    "                      done (60)\n"
    "      --timeout S     seconds for each process (900)\n"
    "      --memory MIB    memory of each process (nine tenths of what there\n"
    "                      is)\n"
    "      --format json   print the results as JSON instead of a table\n"
    "      --results DIR   where to store them (results/ of the project)\n"
    "      --target T      native (default), or one of `assay list targets`\n"
    "      --dim NAME=VALUE  a named dimension of an ONNX file\n"
    "      --bind NAME=FILE  an input that decides shapes, as a constant\n"
    "      --choices FILE  schedules that `assay tune` found fastest here\n"
    "      --tune quick    `assay tune` first, with the first number of\n"
    "                      threads: the log is that of --choices, or the\n"
    "                      default one\n"
    "\nExamples:\n"
    "  assay peers --install --engine onnxruntime,openvino\n"
    "  PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu \\\n"
    "    assay peers --install --engine torch\n"
    "  assay peers resnet50 minilm_l6 --engine onnxruntime --threads 1,2\n"
    "  assay peers model.onnx --dim N=1 --engine ./my_engine --quick\n"
    "\nExit codes: 0 fine, 1 a check failed or a side did not run, 2 bad "
    "input.\n";

enum {
    OPT_FORMAT = OPT_COMMAND,
    OPT_ENGINE,
    OPT_INSTALL,
    OPT_VENVS,
    OPT_SECONDS,
    OPT_TIMEOUT,
    OPT_MEMORY,
    OPT_RESULTS,
    OPT_TUNE
};

static const struct option long_options[] = {
    {"engine", required_argument, NULL, OPT_ENGINE},
    {"threads", required_argument, NULL, 't'},
    {"quick", no_argument, NULL, 'q'},
    {"install", no_argument, NULL, OPT_INSTALL},
    {"venvs", required_argument, NULL, OPT_VENVS},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"memory", required_argument, NULL, OPT_MEMORY},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"results", required_argument, NULL, OPT_RESULTS},
    {"target", required_argument, NULL, OPT_TARGET},
    {"dim", required_argument, NULL, OPT_DIM},
    {"bind", required_argument, NULL, OPT_BIND},
    {"choices", required_argument, NULL, OPT_CHOICES},
    {"tune", required_argument, NULL, OPT_TUNE},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

enum { MAX_ENGINES = 16, MAX_THREAD_COUNTS = 8 };

typedef struct Peers {
    Arena *arena;
    PeerPlan plan;
    ModelList models;
    CompileOptions compile;
    const char *engine_list, *venvs, *results;
    Engine engines[MAX_ENGINES];
    int engine_count;
    int threads[MAX_THREAD_COUNTS];
    int thread_counts;
    long seconds;
    bool quick, json, install, tune;
    Progress *progress;
} Peers;

/* ---- options ---------------------------------------------------------- */

static bool add_threads(Peers *p, int threads)
{
    for (int i = 0; i < p->thread_counts; i++)
        if (p->threads[i] == threads) {
            bad_input("--threads: %d is there twice", threads);
            return false;
        }
    if (p->thread_counts == MAX_THREAD_COUNTS) {
        bad_input("--threads: at most %d numbers", MAX_THREAD_COUNTS);
        return false;
    }
    p->threads[p->thread_counts++] = threads;
    return true;
}

static bool set_threads(Peers *p, const char *text)
{
    char *list = arena_strdup(p->arena, text), *rest = NULL;
    p->thread_counts = 0;
    for (char *item = strtok_r(list, ",", &rest); item;
         item = strtok_r(NULL, ",", &rest)) {
        long number;
        if (!parse_count("--threads", item, 1, 1024, &number) ||
            !add_threads(p, (int)number))
            return false;
    }
    if (!p->thread_counts)
        bad_input("--threads: give a number, or several as 1,2");
    return p->thread_counts > 0;
}

static bool add_engine(Peers *p, const char *text)
{
    Str error = {0};
    Engine engine;
    bool ok = engine_find(p->arena, text, p->venvs, &engine, &error);
    for (int i = 0; ok && i < p->engine_count; i++)
        if (!strcmp(p->engines[i].name, engine.name)) {
            str_addf(&error, "--engine: %s is there twice", engine.name);
            ok = false;
        }
    if (ok && p->engine_count == MAX_ENGINES) {
        str_addf(&error, "--engine: at most %d", MAX_ENGINES);
        ok = false;
    }
    if (ok)
        p->engines[p->engine_count++] = engine;
    else
        bad_input("%s", str_text(&error));
    str_free(&error);
    return ok;
}

/* After the options, as they say where virtual environments are. */
static bool set_engines(Peers *p)
{
    char *list = arena_strdup(p->arena, p->engine_list), *rest = NULL;
    for (char *item = strtok_r(list, ",", &rest); item;
         item = strtok_r(NULL, ",", &rest))
        if (!add_engine(p, item))
            return false;
    if (!p->engine_count)
        bad_input("--engine: name at least one");
    return p->engine_count > 0;
}

static bool take_option(Peers *p, int code)
{
    long number;
    switch (code) {
    case OPT_ENGINE:
        p->engine_list = optarg;
        return true;
    case 't':
        return set_threads(p, optarg);
    case 'q':
        return p->quick = true;
    case OPT_INSTALL:
        return p->install = true;
    case OPT_VENVS:
        p->venvs = optarg;
        return true;
    case OPT_SECONDS:
        return parse_count("--seconds", optarg, 1, 100000, &p->seconds);
    case OPT_TIMEOUT:
        if (!parse_count("--timeout", optarg, 1, 1000000, &number))
            return false;
        p->plan.build.limits.seconds = (double)number;
        return true;
    case OPT_MEMORY:
        if (!parse_count("--memory", optarg, 16, 1L << 40, &number))
            return false;
        p->plan.build.limits.memory_bytes = (int64_t)number << 20;
        return true;
    case OPT_FORMAT:
        return take_format(optarg, &p->json);
    case OPT_RESULTS:
        p->results = optarg;
        return true;
    case OPT_TUNE:
        return tune_take(optarg, &p->tune);
    case OPT_TARGET:
    case OPT_DIM:
    case OPT_BIND:
    case OPT_CHOICES:
        return compile_options_take(&p->compile, code, optarg) > 0;
    default:
        bad_input("see assay peers --help");
        return false;
    }
}

static void on_phase(void *user, const char *phase)
{
    progress_phase(((Peers *)user)->progress, phase);
}

static void complete_plan(Peers *p)
{
    p->plan.on_phase = on_phase;
    p->plan.user = p;
    build_plan_init(&p->plan.build, p->quick);
    /* An engine takes seconds to start: as well time it a little longer. */
    p->plan.build.min_time *= 2;
    p->plan.build.pair.most_seconds = (double)p->seconds;
    if (!p->results)
        p->results =
            arena_printf(p->arena, "%s/results", project_folder(p->arena));
    if (!p->thread_counts) {
        add_threads(p, 1);
        if (p->plan.build.threads > 1)
            add_threads(p, p->plan.build.threads);
    }
}

/* ---- before the work -------------------------------------------------- */

static bool install(Peers *p)
{
    for (int i = 0; i < p->engine_count; i++) {
        const Engine *e = &p->engines[i];
        if (engine_is_installed(p->arena, e, p->venvs))
            continue;
        fprintf(stderr, "installing %s in %s\n", e->name, p->venvs);
        Str error = {0};
        bool ok = engine_install(p->arena, e, p->venvs, &error);
        if (!ok)
            bad_input("%s: %s", e->name, str_text(&error));
        str_free(&error);
        if (!ok)
            return false;
    }
    return true;
}

static bool all_installed(Peers *p)
{
    Str missing = {0};
    for (int i = 0; i < p->engine_count; i++)
        if (!engine_is_installed(p->arena, &p->engines[i], p->venvs))
            str_addf(&missing, "%s%s", missing.length ? "," : "",
                     p->engines[i].name);
    bool ok = !missing.length;
    if (!ok)
        bad_input("%s: not in %s, or not in the version that is measured; "
                  "`assay peers --install --engine %s` installs it there "
                  "(--venvs and ASSAY_PEERS name another folder)",
                  str_text(&missing), p->venvs, str_text(&missing));
    str_free(&missing);
    return ok;
}

static bool check_request(Peers *p)
{
    Diag *diag = diag_new(p->arena, NULL);
    const Target *target =
        target_find(p->arena, diag, p->compile.assay.target);
    if (!target) {
        bad_input("%s", diag->errors.data[0]);
        return false;
    }
    Str fault = {0};
    if (target->run != RUN_HOST || !target_is_runnable(target, &fault)) {
        bad_input("target %s does not run on this machine%s%s; engines are "
                  "measured where Assay's code runs, too",
                  target->name, fault.length ? ": " : "", str_text(&fault));
        str_free(&fault);
        return false;
    }
    bool ok = results_can_store(p->arena, p->results, &fault);
    if (!ok)
        bad_input("--results %s: %s", p->results, str_text(&fault));
    str_free(&fault);
    return ok && model_list_check(&p->models, p->compile.dim_count > 0);
}

/* What each child gets to compile a model. */
static void set_compile_args(Peers *p)
{
    const CompileOptions *o = &p->compile;
    Vec(const char *) args = {0};
    for (int i = 0; i < o->arg_count; i++)
        vec_push(p->arena, &args, o->args[i]);
    if (o->assay.choices) {
        vec_push(p->arena, &args, "--choices");
        vec_push(p->arena, &args, o->assay.choices);
    }
    vec_push(p->arena, &args, NULL);
    p->plan.compile_args = args.data;
}

static int tune_models(Peers *p)
{
    int code = EXIT_FINE;
    for (int i = 0; i < p->models.count && p->tune; i++) {
        int of_model = tune_first(p->arena, p->models.data[i], &p->compile,
                                  p->threads[0], TUNE_BUDGET);
        if (of_model == EXIT_BAD_INPUT)
            return of_model;
        code = of_model ? of_model : code;
    }
    set_compile_args(p);
    return check_choices(&p->compile) ? code : EXIT_BAD_INPUT;
}

/* ---- measuring -------------------------------------------------------- */

/* One model with all engines and numbers of threads: `rows` of them. */
static void measure_model_rows(Peers *p, const char *model, PeerRow *rows)
{
    char *work = make_temp_folder(p->arena);
    PeerModel ready = {.label = model_label(model),
                       .status = CASE_CRASHED,
                       .reason = "no temporary folder"};
    if (work)
        peer_model_prepare(p->arena, model, &p->plan, work, &ready);
    for (int e = 0; e < p->engine_count; e++)
        for (int t = 0; t < p->thread_counts; t++)
            peer_measure(p->arena, &p->plan, &ready, &p->engines[e],
                         p->threads[t], rows++);
    if (work)
        remove_temp_folder(work);
}

static const char *outcome_text(Arena *arena, const PeerRow *rows, int count)
{
    const char *text = "";
    for (int i = 0; i < count; i++)
        text = arena_printf(
            arena, "%s%s%s t%d %s", text, i ? ", " : "", rows[i].engine,
            rows[i].threads,
            rows[i].status == PEER_OK
                ? arena_printf(arena, "%.2f", rows[i].pair.ratio.value)
                : peer_status_name(&rows[i]));
    return text;
}

static int exit_code(const PeerRow *rows, int count)
{
    int code = EXIT_FINE;
    for (int i = 0; i < count; i++) {
        if (rows[i].is_ours && rows[i].failure == CASE_REFUSED)
            return EXIT_BAD_INPUT;
        if (rows[i].status != PEER_OK && rows[i].status != PEER_UNSUPPORTED)
            code = EXIT_FAILED_CHECK;
    }
    return code;
}

static void set_requested(const Peers *p, json_t *document)
{
    json_t *models = json_array(), *modes = json_array();
    for (int i = 0; i < p->models.count; i++)
        json_array_append_new(models,
                              json_string(model_label(p->models.data[i])));
    for (int e = 0; e < p->engine_count; e++)
        for (int t = 0; t < p->thread_counts; t++)
            json_array_append_new(
                modes,
                json_sprintf("%s-t%d", p->engines[e].name, p->threads[t]));
    json_t *context = json_object_get(document, "context");
    json_object_set_new(context, "requested", models);
    json_object_set_new(context, "requested_modes", modes);
}

static json_t *new_document(Peers *p)
{
    json_t *machine = fingerprint_machine();
    Str error = {0};
    int most = 1;
    for (int i = 0; i < p->thread_counts; i++)
        most = p->threads[i] > most ? p->threads[i] : most;
    json_t *peak = launch_peak(p->arena, most, &error);
    if (!peak)
        bad_input("assay-run --peak: %s", str_text(&error));
    str_free(&error);
    ResultsContext context = {.suite = "peers",
                              .target = p->compile.assay.target,
                              .threads = most,
                              .quick = p->quick,
                              .machine = machine,
                              .peak = peak};
    json_t *document = results_new(p->arena, &context);
    set_requested(p, document);
    json_decref(machine);
    json_decref(peak);
    return document;
}

/* What is there so far: a run that ends early keeps what it measured. */
static bool store(Peers *p, const char *path, json_t *document,
                  const PeerRow *rows, int count)
{
    PeerMean *means;
    Str error = {0};
    int found = peer_means(p->arena, rows, count, &means);
    results_set_peer_means(document, means, found);
    bool ok = results_store(p->arena, path, document, &error);
    if (!ok)
        bad_input("%s", str_text(&error));
    str_free(&error);
    return ok;
}

static int run_peers(Peers *p)
{
    json_t *document = new_document(p);
    const char *path = results_path(p->arena, p->results, document);
    int each = p->engine_count * p->thread_counts;
    int count = each * p->models.count;
    PeerRow *rows = ARENA_ARRAY(p->arena, PeerRow, count + 1);
    bool stored = false;
    p->progress = progress_new(p->arena, p->models.count);
    for (int i = 0; i < p->models.count; i++) {
        PeerRow *of = rows + i * each;
        progress_begin(p->progress, i, p->models.data[i]);
        measure_model_rows(p, p->models.data[i], of);
        progress_end(p->progress, outcome_text(p->arena, of, each));
        for (int k = 0; k < each; k++)
            results_add_peer(document, &of[k]);
        stored = store(p, path, document, rows, (i + 1) * each);
    }
    if (p->json) {
        json_dumpf(document, stdout, JSON_INDENT(1));
        putchar('\n');
    } else {
        peer_rows_print(p->arena, stdout, rows, count);
    }
    fflush(stdout);
    if (stored)
        fprintf(stderr, "stored %s\n", path);
    int code = exit_code(rows, count);
    for (int i = 0; i < count; i++)
        peer_row_free(&rows[i]);
    json_decref(document);
    return stored ? code : EXIT_BAD_INPUT;
}

static int peers(Peers *p)
{
    if (!set_engines(p))
        return EXIT_BAD_INPUT;
    if (p->models.count && !check_request(p))
        return EXIT_BAD_INPUT;
    if (p->install ? !install(p) : !all_installed(p))
        return EXIT_BAD_INPUT;
    if (!p->models.count)
        return EXIT_FINE;
    int tuned = tune_models(p);
    if (tuned == EXIT_BAD_INPUT)
        return tuned;
    int code = run_peers(p);
    return code ? code : tuned;
}

int cmd_peers(int argc, char **argv)
{
    Peers p = {.arena = arena_new(),
               .engine_list = "onnxruntime,openvino,torch",
               .venvs = getenv("ASSAY_PEERS"),
               .seconds = 60};
    compile_options_init(&p.compile);
    int c;
    while ((c = getopt_long(argc, argv, "t:qh", long_options, NULL)) != -1) {
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        if (!take_option(&p, c))
            return EXIT_BAD_INPUT;
    }
    if (optind == argc && !p.install)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    if (!p.venvs || !*p.venvs)
        p.venvs =
            arena_printf(p.arena, "%s/build/peers", project_folder(p.arena));
    model_list_add(p.arena, &p.models, argc - optind, argv + optind);
    complete_plan(&p);
    int code = peers(&p);
    arena_free(p.arena);
    return code;
}
