/* assay: the subcommands. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "harness/command.h"
#include "harness/common.h"

static const Command commands[] = {
    {"run", "compile, check, measure and record models", cmd_run},
    {"profile", "time and roofline of each kernel of a model", cmd_profile},
    {"compare", "which of two builds is faster, and where", cmd_compare},
    {"peers", "Assay against other inference engines", cmd_peers},
    {"compile", "compile a model to an artifact", cmd_compile},
    {"tune", "measure which schedules are fastest here", cmd_tune},
    {"infer", "run a model on your own arrays", cmd_infer},
    {"check", "compare an artifact with the reference", cmd_check},
    {"validate", "conformance cases against their expected outputs",
     cmd_validate},
    {"inspect", "look inside: graph, loops, trace, LLVM IR, assembly, ...",
     cmd_inspect},
    {"list", "models, operators, passes, targets, metrics", cmd_list},
    {"report", "draw the stored results", cmd_report},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *file)
{
    fputs("Usage: assay COMMAND [options]\n\nCommands:\n", file);
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(file, "  %-9s %s\n", commands[i].name, commands[i].about);
    fputs("\n`assay COMMAND --help` describes the options.\n"
          "\nExamples:\n"
          "  assay run resnet18 --mode fused,unfused\n"
          "  assay compile model.onnx --dim N=1 -o model/\n"
          "  assay infer model.onnx --input x=x.npy --output out/\n"
          "\nExit codes: 0 fine, 1 a check failed, 2 bad input.\n",
          file);
}

/* Output that is lost, on a full disk, is no success. */
static int finish(int code)
{
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    return bad_input("standard output: %s", strerror(errno));
}

int main(int argc, char **argv)
{
    cleanup_start();
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_BAD_INPUT;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
        !strcmp(argv[1], "help")) {
        print_usage(stdout);
        return EXIT_FINE;
    }
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(argv[1], commands[i].name))
            return finish(commands[i].run(argc - 1, argv + 1));
    bad_input("unknown command \"%s\"", argv[1]);
    print_usage(stderr);
    return EXIT_BAD_INPUT;
}
