/* assay compare: which of two builds of a model is faster, and where. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/builds.h"
#include "harness/command.h"
#include "harness/common.h"
#include "harness/options.h"
#include "harness/values.h"

static const char usage[] =
    "Usage: assay compare A B [options]\n"
    "\n"
    "Measures two artifact folders of one model (`assay compile` writes\n"
    "them) against each other: both in turns in fresh processes, until the\n"
    "ratio is decided. Says how much faster B is as a whole, and for each\n"
    "group of kernels that compute the same nodes. Groups with the same\n"
    "machine code on both sides are the placebo: their spread is the noise.\n"
    "Both must give the same outputs from run to run; `assay check` says\n"
    "whether they are right.\n"
    "\n"
    "  -t, --threads N     (physical cores)\n"
    "  -q, --quick         one block: a ratio without an interval, which\n"
    "                      decides nothing\n"
    "      --seconds S     to measure for at most, once the least is done "
    "(60)\n"
    "  -n, --top N         groups to show; 0: all (20)\n"
    "      --format json\n"
    "\nExamples:\n"
    "  assay compile resnet50 --mode unfused -o /tmp/a\n"
    "  assay compile resnet50 -o /tmp/b\n"
    "  assay compare /tmp/a /tmp/b\n"
    "\nExit codes: 0 B is not slower, 1 B is slower or does not run, 2 bad "
    "input.\n";

enum { OPT_FORMAT = 256, OPT_SECONDS };

static const struct option long_options[] = {
    {"threads", required_argument, NULL, 't'},
    {"quick", no_argument, NULL, 'q'},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"top", required_argument, NULL, 'n'},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef struct Compare {
    Arena *arena;
    BuildPlan plan;
    long top, threads, seconds;
    bool quick, json;
} Compare;

/* Seconds that B saves or costs; the largest first. */
static int by_change(const void *x, const void *y)
{
    const json_t *a = *(const json_t *const *)x,
                 *b = *(const json_t *const *)y;
    double p = fabs(number_of(a, "a_seconds") - number_of(a, "b_seconds"));
    double q = fabs(number_of(b, "a_seconds") - number_of(b, "b_seconds"));
    if (isnan(p) || isnan(q))
        return isnan(p) - isnan(q);
    return (p < q) - (p > q);
}

static const char *seconds_text(Arena *arena, double seconds)
{
    return isnan(seconds) ? "-" : format_seconds(arena, seconds);
}

static void print_groups(const Compare *c, const json_t *groups)
{
    int count = (int)json_array_size(groups);
    const json_t **rows = ARENA_ARRAY(c->arena, const json_t *, count + 1);
    for (int i = 0; i < count; i++)
        rows[i] = json_array_get(groups, (size_t)i);
    qsort(rows, (size_t)count, sizeof *rows, by_change);
    int shown = c->top && c->top < count ? (int)c->top : count;
    printf("%9s %9s  %-20s %-13s %4s  %s\n", "A", "B", "ratio", "verdict",
           "code", "kernel of B");
    for (int i = 0; i < shown; i++) {
        const json_t *g = rows[i];
        bool same = json_is_true(json_object_get(g, "identical"));
        printf("%9s %9s  %-20s %-13s %4s  %s\n",
               seconds_text(c->arena, number_of(g, "a_seconds")),
               seconds_text(c->arena, number_of(g, "b_seconds")),
               isnan(number_of(g, "ratio")) ? "-"
               : isnan(number_of(g, "low"))
                   ? arena_printf(c->arena, "%.3f", number_of(g, "ratio"))
                   : arena_printf(c->arena, "%.3f [%.3f, %.3f]",
                                  number_of(g, "ratio"), number_of(g, "low"),
                                  number_of(g, "high")),
               text_of(g, "verdict"), same ? "same" : "new",
               text_of(g, "name"));
    }
    if (shown < count)
        printf("%d more; --top 0 shows all\n", count - shown);
}

static void print_comparison(const Compare *c, const Comparison *r)
{
    const Pair *p = &r->pair;
    printf("B is %.3f times as fast as A", p->ratio.value);
    if (!isnan(p->ratio.low))
        printf(" [%.3f, %.3f]", p->ratio.low, p->ratio.high);
    printf(": %s\n", verdict_name(p->verdict));
    printf("%d blocks of four measurements, %d measured again, %d disturbed; "
           "noise ",
           p->blocks, p->repeated, p->disturbed);
    if (isnan(r->noise))
        printf("unknown: no group has the same code on both sides\n\n");
    else
        printf("%.1f %%\n\n", 100 * r->noise);
    print_groups(c, r->groups);
}

static int compare(Compare *c, const char *a, const char *b)
{
    ArtifactInfo info[2];
    AssayError error;
    const char *const paths[] = {a, b};
    for (int i = 0; i < 2; i++)
        if (artifact_read_info(c->arena, paths[i], &info[i], &error))
            return bad_input("%s", error.text);
    if (info[0].source != info[1].source)
        return bad_input("%s is a build of %s, %s of another %s: not "
                         "comparable; give two builds of one model with the "
                         "same weights",
                         a, info[0].model, b, info[1].model);
    Build builds[2] = {{.name = a, .artifact = a}, {.name = b, .artifact = b}};
    json_t *first[2] = {NULL, NULL};
    double about = 0;
    /* What each gives at first, every later run must give as well. */
    for (int i = 0; i < 2; i++) {
        Str failure = {0};
        ChildEnd end;
        first[i] = build_measure(c->arena, &c->plan, &builds[i], 0.05, &end,
                                 &failure);
        if (!first[i]) {
            bad_input("%s: %s", paths[i], str_text(&failure));
            str_free(&failure);
            json_decref(first[0]);
            return end.status == CASE_REFUSED ? EXIT_BAD_INPUT
                                              : EXIT_FAILED_CHECK;
        }
        str_free(&failure);
        builds[i].outputs = json_object_get(first[i], "outputs");
        about =
            fmax(about, number_of(json_object_get(first[i], "time"), "p50"));
    }
    Comparison result;
    builds_compare(c->arena, &c->plan, &builds[0], &builds[1], about, &result);
    bool failed = result.pair.failed || !result.pair.blocks;
    if (failed)
        bad_input("%s", result.reason ? result.reason : "nothing measured");
    if (c->json) {
        json_t *row = comparison_json(info[0].model, &result);
        json_dumpf(row, stdout, JSON_INDENT(1));
        putchar('\n');
        json_decref(row);
    } else if (!failed) {
        print_comparison(c, &result);
    }
    bool slower = result.pair.verdict == VERDICT_REGRESSED;
    comparison_free(&result);
    json_decref(first[0]);
    json_decref(first[1]);
    return failed || slower ? EXIT_FAILED_CHECK : EXIT_FINE;
}

static bool take_option(Compare *c, int code)
{
    switch (code) {
    case 't':
        return parse_count("--threads", optarg, 1, 1024, &c->threads);
    case 'q':
        return c->quick = true;
    case OPT_SECONDS:
        return parse_count("--seconds", optarg, 1, 100000, &c->seconds);
    case 'n':
        return parse_count("--top", optarg, 0, 1000000, &c->top);
    case OPT_FORMAT:
        return take_format(optarg, &c->json);
    default:
        bad_input("see assay compare --help");
        return false;
    }
}

int cmd_compare(int argc, char **argv)
{
    Compare c = {.arena = arena_new(), .top = 20, .seconds = 60};
    int option;
    while ((option = getopt_long(argc, argv, "t:qn:h", long_options, NULL)) !=
           -1) {
        if (option == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        if (!take_option(&c, option))
            return EXIT_BAD_INPUT;
    }
    if (optind + 2 != argc)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    build_plan_init(&c.plan, c.quick);
    c.plan.pair.most_seconds = (double)c.seconds;
    if (c.threads)
        c.plan.threads = (int)c.threads;
    int code = compare(&c, argv[optind], argv[optind + 1]);
    arena_free(c.arena);
    return code;
}
