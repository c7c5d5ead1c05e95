/* assay tune: which schedules are fastest on this machine. */
#include <stdio.h>
#include <string.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/tune.h"

static const char usage[] =
    "Usage: assay tune MODEL... [options]\n"
    "\n"
    "Measures, for each kernel that matters to a model, the few schedules\n"
    "that may be better than the usual one (and the other algorithms of\n"
    "convolutions that have several), and notes the fastest in a log\n"
    "of choices, a line a kernel. `--choices FILE` of the other commands\n"
    "compiles by it. What the log has a line for is not measured again; a\n"
    "line holds for the target, its features and the compiler it was\n"
    "measured with.\n"
    "\n"
    "      --choices FILE  the log to make or extend\n"
    "                      ($XDG_CACHE_HOME/assay/choices.log, or\n"
    "                      ~/.cache/assay/choices.log)\n"
    "      --budget S      seconds to try schedules of a model, about (30)\n"
    "      --again         also what the log has a line for\n"
    "  -t, --threads N     (physical cores)\n" COMPILE_OPTIONS_HELP
    "\nExamples:\n"
    "  assay tune resnet50 --threads 1\n"
    "  assay tune model.onnx --dim N=1 --choices model.log --budget 120\n"
    "  assay compile model.onnx --dim N=1 --choices model.log -o "
    "model/\n" EXIT_CODES_HELP;

enum { OPT_BUDGET = OPT_COMMAND, OPT_AGAIN };

static const struct option long_options[] = {
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"again", no_argument, NULL, OPT_AGAIN},
    {"threads", required_argument, NULL, 't'},
    COMPILE_LONG,
    {NULL, 0, NULL, 0},
};

static bool take_option(TunePlan *plan, CompileOptions *compile, int code)
{
    long threads;
    int taken = compile_options_take(compile, code, optarg);
    if (taken)
        return taken > 0;
    switch (code) {
    case OPT_BUDGET:
        return parse_number("--budget", optarg, 0, 1e6, &plan->budget);
    case OPT_AGAIN:
        return plan->again = true;
    case 't':
        if (!parse_count("--threads", optarg, 1, 1024, &threads))
            return false;
        plan->threads = (int)threads;
        return true;
    default:
        bad_input("see assay tune --help");
        return false;
    }
}

int cmd_tune(int argc, char **argv)
{
    CompileOptions compile;
    TunePlan plan = {.compile = &compile, .budget = TUNE_BUDGET};
    compile_options_init(&compile);
    int c;
    while ((c = getopt_long(argc, argv, COMPILE_SHORT "t:h", long_options,
                            NULL)) != -1) {
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        if (!take_option(&plan, &compile, c))
            return EXIT_BAD_INPUT;
    }
    if (optind == argc)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    Arena *arena = arena_new();
    plan.log = compile.assay.choices ? compile.assay.choices
                                     : tune_default_log(arena);
    /* The log may be one that is yet to be made. */
    compile.assay.choices = NULL;
    int code = plan.log ? EXIT_FINE : EXIT_BAD_INPUT;
    for (int i = optind; i < argc && code == EXIT_FINE; i++) {
        TuneResult result;
        plan.model = argv[i];
        code = tune_model(arena, &plan, &result);
        if (code == EXIT_FINE)
            tune_print(stdout, &plan, &result);
    }
    arena_free(arena);
    return code;
}
