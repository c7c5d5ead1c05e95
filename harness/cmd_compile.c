/* assay compile: a model to an artifact. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/options.h"
#include "harness/tune.h"

static const char usage[] =
    "Usage: assay compile MODEL -o DIR [options]\n"
    "       assay compile MODEL --emit onnx -o FILE [--stop-after PASS]\n"
    "\n"
    "Compiles a suite model (see `assay list models`; NAME@PARAMS sets its\n"
    "parameters) or an ONNX file, and writes the artifact folder DIR.\n"
    "\n"
    "  -o, --output DIR    where to write; made when missing\n"
    "      --emit onnx     write the model as an ONNX file instead, as "
    "loaded\n"
    "                      or as it is after a pass\n"
    "      --format json   print what it took, by pass\n"
    "      --tune quick    `assay tune` first: the log is that of --choices,\n"
    "                      or the default one\n"
    "      --tune-budget S seconds for it, about (30)\n"
    "  -t, --threads N     threads to tune with (physical "
    "cores)\n" COMPILE_HELP "\nExamples:\n"
    "  assay compile resnet50@192,width=0.75 -o /tmp/resnet50\n"
    "  assay compile model.onnx --dim N=1 --target x86-64-v3 -o "
    "model/\n"
    "  assay compile resnet50 --tune quick --choices resnet50.log -o "
    "tuned/\n"
    "  assay compile resnet50 --emit onnx -o resnet50.onnx\n" EXIT_CODES_HELP;

enum { OPT_FORMAT = OPT_COMMAND, OPT_EMIT, OPT_TUNE, OPT_TUNE_BUDGET };

static const struct option long_options[] = {
    {"format", required_argument, NULL, OPT_FORMAT},
    {"emit", required_argument, NULL, OPT_EMIT},
    {"tune", required_argument, NULL, OPT_TUNE},
    {"tune-budget", required_argument, NULL, OPT_TUNE_BUDGET},
    {"threads", required_argument, NULL, 't'},
    {"output", required_argument, NULL, 'o'},
    COMPILE_LONG,
    {NULL, 0, NULL, 0},
};

static void print_timings(const AssayCompiler *compiler)
{
    const AssayTiming *rows;
    int count = assay_timings(compiler, &rows);
    /* The passes print their own times as they run. */
    for (int i = 0; i < count; i++)
        if (!rows[i].nodes_before)
            fprintf(stderr, "%-12s %8.1f ms\n", rows[i].phase,
                    rows[i].seconds * 1e3);
}

/* "passes": all phases of the compilation, in order. */
static void print_json(const AssayCompiler *compiler)
{
    const AssayTiming *rows;
    int count = assay_timings(compiler, &rows);
    json_t *passes = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(passes,
                              json_pack("{s:s, s:f}", "pass", rows[i].phase,
                                        "seconds", rows[i].seconds));
    json_t *report = json_pack("{s:o}", "passes", passes);
    json_dumpf(report, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(report);
}

/* The artifact's folder itself appears whole, once all is written. */
static bool make_parent(const char *dir)
{
    char *parent = strdup(dir);
    char *slash = parent ? strrchr(parent, '/') : NULL;
    bool ok = parent;
    if (slash && slash != parent) {
        *slash = 0;
        ok = make_folders(parent);
    }
    free(parent);
    return ok;
}

static int compile(const char *model, const char *dir, bool json,
                   const CompileOptions *o)
{
    AssayCompiler *compiler = assay_new();
    int code = EXIT_BAD_INPUT;
    if (!make_parent(dir)) {
        bad_input("cannot make the folder around %s: %s", dir,
                  strerror(errno));
    } else if (open_model(compiler, model, o)) {
        bool ok = assay_compile(compiler, &o->assay) &&
                  assay_write_artifact(compiler, dir);
        fputs(assay_errors(compiler), stderr);
        if (ok && o->assay.time_passes)
            print_timings(compiler);
        if (ok && json)
            print_json(compiler);
        code = ok ? EXIT_FINE : EXIT_BAD_INPUT;
    }
    assay_free(compiler);
    return code;
}

static int emit_onnx(const char *model, const char *path,
                     const CompileOptions *o)
{
    AssayCompiler *compiler = assay_new();
    bool ok = open_model(compiler, model, o);
    if (ok) {
        ok = (!o->assay.stop_after || assay_compile(compiler, &o->assay)) &&
             assay_export_onnx(compiler, path);
        fputs(assay_errors(compiler), stderr);
    }
    assay_free(compiler);
    return ok ? EXIT_FINE : EXIT_BAD_INPUT;
}

int cmd_compile(int argc, char **argv)
{
    CompileOptions o;
    compile_options_init(&o);
    char *dir = NULL, folder[PATH_MAX];
    bool json = false, emit = false, tune = false;
    double budget = TUNE_BUDGET;
    long threads = 0;
    const char *given = NULL;
    int c;
    while ((c = getopt_long(argc, argv, COMPILE_SHORT "o:t:h", long_options,
                            NULL)) != -1) {
        int taken = compile_options_take(&o, c, optarg);
        if (taken < 0)
            return EXIT_BAD_INPUT;
        if (taken)
            continue;
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        if (c == OPT_FORMAT && take_format(optarg, &json))
            continue;
        if (c == OPT_FORMAT)
            return EXIT_BAD_INPUT;
        if ((c == OPT_TUNE && tune_take(optarg, &tune)) ||
            (c == OPT_TUNE_BUDGET &&
             parse_number("--tune-budget", optarg, 0, 1e6, &budget)) ||
            (c == 't' && parse_count("--threads", optarg, 1, 1024, &threads)))
            continue;
        if (c == OPT_TUNE || c == OPT_TUNE_BUDGET || c == 't')
            return EXIT_BAD_INPUT;
        if (c == OPT_EMIT) {
            emit = true;
            if (strcmp(optarg, "onnx"))
                return bad_input("--emit %s: there is onnx", optarg);
            continue;
        }
        if (c != 'o')
            return bad_input("see assay compile --help");
        given = optarg;
        /* "out/" means "out". */
        for (size_t n = strlen(optarg); n > 1 && optarg[n - 1] == '/'; n--)
            optarg[n - 1] = 0;
        if (!*optarg)
            return bad_input("-o: name the artifact's folder");
        /* A link to a folder stands for the folder. */
        dir = readlink(optarg, folder, 1) > 0 && realpath(optarg, folder)
                  ? folder
                  : optarg;
    }
    if (optind + 1 != argc || !dir)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    if (emit)
        return emit_onnx(argv[optind], given, &o);
    Arena *arena = arena_new();
    int code = tune ? tune_first(arena, argv[optind], &o, (int)threads, budget)
                    : EXIT_FINE;
    if (code == EXIT_FINE)
        code = compile(argv[optind], dir, json, &o);
    arena_free(arena);
    return code;
}
