/* assay report: a page with plots from the stored results. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/options.h"
#include "reports/report.h"

static const char usage[] =
    "Usage: assay report [options]\n"
    "\n"
    "Draws what `assay run` and `assay-bench --store` stored: a page for\n"
    "each machine and configuration, which needs no other file and no\n"
    "network. It shows failures first, then each case's change against an\n"
    "earlier run with its interval, the kernels that made it, trends by\n"
    "commit, fused against unfused, accuracy over latency, rooflines and\n"
    "the slowest kernels.\n"
    "\n"
    "  -r, --results DIR   what was stored (results/ of the project)\n"
    "  -o, --output DIR    where to write index.html (reports/out of the\n"
    "                      project), with pages of several run sets beside\n"
    "\n"
    "Files and fields that are damaged or of another format are named and\n"
    "left out. Results are never changed.\n"
    "\nExamples:\n"
    "  assay report && xdg-open reports/out/index.html\n"
    "  assay report --results ~/nightly/results -o /var/www/assay\n"
    "\nExit codes: 0 fine, 2 bad input: no results, or nowhere to write.\n";

static const struct option long_options[] = {
    {"results", required_argument, NULL, 'r'},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

int cmd_report(int argc, char **argv)
{
    Arena *arena = arena_new();
    const char *project = project_folder(arena);
    const char *results = arena_printf(arena, "%s/results", project);
    const char *out = arena_printf(arena, "%s/reports/out", project);
    const char *scripts = arena_printf(arena, "%s/reports", project);
    int c;
    while ((c = getopt_long(argc, argv, "r:o:h", long_options, NULL)) != -1)
        switch (c) {
        case 'r':
            results = optarg;
            break;
        case 'o':
            out = optarg;
            break;
        case 'h':
            return fputs(usage, stdout), EXIT_FINE;
        default:
            return bad_input("see assay report --help");
        }
    if (optind != argc)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    bool fresh = access(out, F_OK) != 0;
    if (!make_folders(out))
        return bad_input("cannot make %s: %s", out, strerror(errno));
    Str notes = {0}, error = {0};
    bool ok = report_write(results, scripts, out, &notes, &error);
    fputs(str_text(&notes), stderr);
    if (ok)
        printf("wrote %s/index.html\n", out);
    else
        bad_input("%s", str_text(&error));
    /* Only when it is empty. */
    if (!ok && fresh)
        rmdir(out);
    str_free(&notes);
    str_free(&error);
    arena_free(arena);
    return ok ? EXIT_FINE : EXIT_BAD_INPUT;
}
