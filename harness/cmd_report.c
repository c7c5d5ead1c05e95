/* assay report: a page with plots from the stored results. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/options.h"
#include "reports/report.h"

static const char usage[] =
    "Usage: assay report [options]\n"
    "\n"
    "Writes a page with tables and plots from all stored results.\n"
    "\n"
    "      --results DIR   what `assay run` stored (results/ of the project)\n"
    "  -o, --output DIR    where to write (reports/out of the project)\n"
    "\nExamples:\n"
    "  assay report && xdg-open reports/out/index.html\n" EXIT_CODES_HELP;

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
    if (!make_folders(out))
        return bad_input("cannot make %s: %s", out, strerror(errno));
    Str notes = {0}, error = {0};
    bool ok = report_write(results, scripts, out, &notes, &error);
    fputs(str_text(&notes), stderr);
    if (ok)
        printf("wrote %s/index.html\n", out);
    else
        bad_input("%s", str_text(&error));
    str_free(&notes);
    str_free(&error);
    arena_free(arena);
    return ok ? EXIT_FINE : EXIT_BAD_INPUT;
}
