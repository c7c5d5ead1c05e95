/* assay profile: where a model's time goes, kernel by kernel. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/launch.h"
#include "harness/measure.h"
#include "harness/metric.h"
#include "harness/values.h"

static const char usage[] =
    "Usage: assay profile MODEL [options]\n"
    "\n"
    "Compiles and checks a model (as `assay run`), then times each of its\n"
    "kernels: time and share of the run, operations, bytes it must move,\n"
    "what bounds it and how much of that bound it reaches, and the nodes of\n"
    "the source that it computes. The bound is arithmetic, or where most of\n"
    "the time for its bytes goes: weights come from the nearest level that\n"
    "holds those of the whole model, as a run reads all before it comes to\n"
    "the same again; other bytes from the nearest that holds the kernel's.\n"
    "\n"
    "  -n, --top N         kernels to show; 0: all (20)\n"
    "      --sort KEY      time (default), slack: seconds above the bound,\n"
    "                      or order: as they run\n"
    "  -t, --threads N     (physical cores)\n"
    "  -q, --quick         shorter measurement\n"
    "      --format json   every kernel\n" COMPILE_HELP "\nExamples:\n"
    "  assay profile resnet50 --threads 1\n"
    "  assay profile model.onnx --dim N=1 --mode unfused --sort "
    "slack\n" EXIT_CODES_HELP;

enum { OPT_SORT = OPT_COMMAND, OPT_FORMAT };

static const struct option long_options[] = {
    {"top", required_argument, NULL, 'n'},
    {"sort", required_argument, NULL, OPT_SORT},
    {"threads", required_argument, NULL, 't'},
    {"quick", no_argument, NULL, 'q'},
    {"format", required_argument, NULL, OPT_FORMAT},
    COMPILE_LONG,
    {NULL, 0, NULL, 0},
};

typedef enum Sort { SORT_TIME, SORT_SLACK, SORT_ORDER } Sort;

typedef struct Profile {
    Arena *arena;
    CompileOptions compile; /* to see that the options are right */
    Vec(const char *) compile_args;
    MeasurePlan plan;
    Sort sort;
    long top;
    bool quick, json;
} Profile;

/* ---- rows ------------------------------------------------------------- */

typedef struct Row {
    const json_t *step;
    double seconds, slack, flops, bytes;
} Row;

static int by_time(const void *x, const void *y)
{
    const Row *a = x, *b = y;
    return (a->seconds < b->seconds) - (a->seconds > b->seconds);
}

static int by_slack(const void *x, const void *y)
{
    const Row *a = x, *b = y;
    return (a->slack < b->slack) - (a->slack > b->slack);
}

static Row *make_rows(const Profile *p, const json_t *steps, int *count)
{
    *count = (int)json_array_size(steps);
    Row *rows = ARENA_ARRAY(p->arena, Row, *count + 1);
    for (int i = 0; i < *count; i++) {
        const json_t *step = json_array_get(steps, (size_t)i);
        double seconds = number_of(step, "seconds");
        double share = number_of(step, "bound_share");
        rows[i] = (Row){.step = step,
                        .seconds = seconds,
                        .slack = isnan(share) ? 0 : seconds * (1 - share),
                        .flops = number_of(step, "flops"),
                        .bytes = number_of(step, "bytes")};
    }
    if (p->sort != SORT_ORDER)
        qsort(rows, (size_t)*count, sizeof *rows,
              p->sort == SORT_TIME ? by_time : by_slack);
    return rows;
}

/* "stem.conv .. stem.act": the first node and the last. */
static const char *nodes_text(Arena *arena, const json_t *nodes)
{
    size_t count = json_array_size(nodes);
    if (!count)
        return "";
    const char *first = json_string_value(json_array_get(nodes, 0));
    const char *last = json_string_value(json_array_get(nodes, count - 1));
    return count == 1
               ? first
               : arena_printf(arena, "%s .. %s (%zu)", first, last, count);
}

static const char *bound_text(Arena *arena, const json_t *step)
{
    const char *bound = json_string_value(json_object_get(step, "bound"));
    const char *level = json_string_value(json_object_get(step, "level"));
    if (!bound)
        return "-";
    return strcmp(bound, "memory") ? bound : arena_printf(arena, "%s", level);
}

static void print_row(Arena *arena, const Row *row)
{
    const json_t *step = row->step;
    double of_bound = number_of(step, "bound_share");
    const char *kernel = json_string_value(json_object_get(step, "kernel"));
    printf("%5.0f %9s %5.1f %% %8.1f %9s %-7s %6s  %-38s %s\n",
           number_of(step, "group"), format_seconds(arena, row->seconds),
           100 * number_of(step, "share"),
           /* A branch that is not taken takes no time. */
           row->seconds > 0 ? row->flops / row->seconds * 1e-9 : 0.0,
           format_bytes(arena, row->bytes), bound_text(arena, step),
           isnan(of_bound) ? "-"
                           : arena_printf(arena, "%.0f %%", 100 * of_bound),
           kernel, nodes_text(arena, json_object_get(step, "nodes")));
}

static void print_peak(const json_t *peak)
{
    size_t i;
    json_t *level;
    if (!peak)
        return;
    printf("machine: %s FMA %.0f GFLOP/s, %s dot products %.0f GOP/s; "
           "reading",
           text_of(peak, "kind"), number_of(peak, "fma_gflops"),
           text_of(peak, "dot_kind"), number_of(peak, "dot_gops"));
    json_array_foreach(json_object_get(peak, "bandwidth"), i, level)
    {
        printf("%s %s %.3g GB/s", i ? "," : "", text_of(level, "level"),
               number_of(level, "gbps"));
    }
    putchar('\n');
}

static void print_table(const Profile *p, const ModelResult *r)
{
    const ModeResult *m = &r->modes[0];
    int count;
    Row *rows = make_rows(p, m->steps, &count);
    printf("%s %s, %d threads: %s a run, %d kernel calls, %.3g GFLOP, "
           "%.0f GFLOP/s, %.0f %% of the FMA peak\n\n",
           r->label, m->mode, p->plan.build.threads,
           format_seconds(p->arena, m->p50), count, m->flops * 1e-9,
           m->flops / m->p50 * 1e-9,
           100 * m->flops / m->p50 / (r->fma_gflops * 1e9));
    printf("%5s %9s %7s %8s %9s %-7s %6s  %-38s %s\n", "group", "time",
           "share", "GFLOP/s", "bytes", "bound", "of it", "kernel", "nodes");
    int shown = p->top && p->top < count ? (int)p->top : count;
    for (int i = 0; i < shown; i++)
        print_row(p->arena, &rows[i]);
    double rest = 0;
    for (int i = shown; i < count; i++)
        rest += number_of(rows[i].step, "share");
    if (shown < count)
        printf("%5s %9s %5.1f %%  in %d more; --top 0 shows all\n", "", "",
               100 * rest, count - shown);
    printf(
        "\ngroup: as in `assay inspect --groups`. bound: compute, or the "
        "level that most of\nthe time for its bytes goes to at best; of it: "
        "the time at that bound over the\nmeasured one. Convolutions by "
        "Winograd's tiles count as computed plainly.\n");
    print_peak(p->plan.peak);
}

static void print_json(const Profile *p, const ModelResult *r)
{
    const ModeResult *m = &r->modes[0];
    json_t *values = json_object();
    for (const Metric *metric = metrics(); metric->name; metric++) {
        double value = metric->probe(r, m);
        json_object_set_new(values, metric->name, number_json(value));
    }
    json_t *report =
        json_pack("{s:s, s:s, s:i, s:s, s:o, s:O?, s:O?}", "model", r->label,
                  "mode", m->mode, "threads", p->plan.build.threads, "status",
                  case_status_name(m->status), "values", values, "peak",
                  p->plan.peak, "steps", m->steps);
    if (m->reason)
        json_object_set_new(report, "reason", json_string(m->reason));
    json_dumpf(report, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(report);
}

/* ---- command ---------------------------------------------------------- */

static int exit_code(const ModeResult *m)
{
    return m->status == CASE_OK        ? EXIT_FINE
           : m->status == CASE_REFUSED ? EXIT_BAD_INPUT
                                       : EXIT_FAILED_CHECK;
}

static int profile_model(Profile *p, const char *model)
{
    Str error = {0};
    json_t *peak = launch_peak(p->arena, p->plan.build.threads, &error);
    if (!peak)
        bad_input("assay-run --peak: %s", str_text(&error));
    str_free(&error);
    p->plan.peak = peak;
    char *work = make_temp_folder(p->arena);
    if (!work) {
        json_decref(peak);
        return bad_input("no temporary folder");
    }
    ModelResult result;
    measure_model(p->arena, model, &p->plan, work, &result);
    remove_temp_folder(work);
    const ModeResult *m = &result.modes[0];
    if (m->reason)
        bad_input("%s: %s: %s", model, case_status_name(m->status), m->reason);
    if (p->json)
        print_json(p, &result);
    else if (m->steps)
        print_table(p, &result);
    int code = exit_code(m);
    model_result_free(&result);
    json_decref(peak);
    return code;
}

static bool take_sort(Profile *p, const char *text)
{
    static const char *const names[] = {"time", "slack", "order"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(names[i], text)) {
            p->sort = (Sort)i;
            return true;
        }
    bad_input("--sort %s: there are time, slack and order", text);
    return false;
}

/* What compiles the model is given on, as it was written. */
static void pass_on(Profile *p, int code, const char *value)
{
    if (code == OPT_MODE) {
        p->plan.modes[0] = value;
        return;
    }
    for (const struct option *o = long_options; o->name; o++)
        if (o->val == code)
            vec_push(p->arena, &p->compile_args,
                     arena_printf(p->arena, "--%s", o->name));
    if (code == 'O')
        vec_push(p->arena, &p->compile_args, "-O");
    if (value)
        vec_push(p->arena, &p->compile_args, value);
}

static bool take_option(Profile *p, int code)
{
    long threads;
    int taken = compile_options_take(&p->compile, code, optarg);
    if (taken) {
        pass_on(p, code, optarg);
        return taken > 0;
    }
    switch (code) {
    case 'n':
        return parse_count("--top", optarg, 0, 1000000, &p->top);
    case OPT_SORT:
        return take_sort(p, optarg);
    case 'q':
        return p->quick = true;
    case 't':
        if (!parse_count("--threads", optarg, 1, 1024, &threads))
            return false;
        p->plan.build.threads = (int)threads;
        return true;
    case OPT_FORMAT:
        return take_format(optarg, &p->json);
    default:
        bad_input("see assay profile --help");
        return false;
    }
}

int cmd_profile(int argc, char **argv)
{
    Profile p = {.arena = arena_new(), .top = 20};
    compile_options_init(&p.compile);
    p.plan.modes[p.plan.mode_count++] = "fused";
    p.plan.unscored = true;
    int c;
    while ((c = getopt_long(argc, argv, COMPILE_SHORT "n:t:qh", long_options,
                            NULL)) != -1) {
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        if (!take_option(&p, c))
            return EXIT_BAD_INPUT;
    }
    if (optind + 1 != argc)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    vec_push(p.arena, &p.compile_args, NULL);
    p.plan.compile_args = p.compile_args.data;
    build_plan_init(&p.plan.build, p.quick);
    int code = check_choices(&p.compile) ? profile_model(&p, argv[optind])
                                         : EXIT_BAD_INPUT;
    arena_free(p.arena);
    return code;
}
