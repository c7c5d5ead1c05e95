/* The report, from synthetic histories: what each verdict rests on, damaged
 * files, names that try to break the page, and a page that is well-formed in
 * every case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "reports/report.h"
#include "suites/unit/history.h"
#include "suites/unit/wellformed.h"

typedef struct Fixture {
    Arena *arena;
    char dir[64];
    const char *box; /* a machine's folder */
    Str notes, error;
    Str page;
} Fixture;

static char *join(Fixture *f, const char *name)
{
    return arena_printf(f->arena, "%s/%s", f->dir, name);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static bool read_text(Str *text, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    char block[65536];
    size_t size;
    while ((size = fread(block, 1, sizeof block, file)))
        str_add_bytes(text, block, size);
    fclose(file);
    return true;
}

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    /* Its name has what a script would have to quote. */
    strcpy(f->dir, "/tmp/assay's report \"XXXXXX");
    strcpy(strrchr(f->dir, '"'), "XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    f->arena = arena_new();
    f->box = join(f, "results/box");
    mkdir(join(f, "results"), 0777);
    mkdir(f->box, 0777);
    mkdir(join(f, "out"), 0777);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    const char *const argv[] = {"rm", "-rf", f->dir, NULL};
    process_ok(argv, NULL);
    str_free(&f->notes);
    str_free(&f->error);
    str_free(&f->page);
    arena_free(f->arena);
    free(f);
    return 0;
}

/* ---- helpers ---------------------------------------------------------- */

static void check_page(Fixture *f, const char *name)
{
    char fault[256];
    str_free(&f->page);
    if (!read_text(&f->page, join(f, name)))
        fail_msg("no %s", name);
    if (!wellformed(str_text(&f->page), fault, sizeof fault))
        fail_msg("%s: %s", name, fault);
    /* It needs no other file, and no number is missing. */
    assert_null(strstr(f->page.data, "src="));
    assert_null(strstr(f->page.data, "url("));
    static const char *const bad[] = {">nan", " nan", "-nan",
                                      "[nan", ">inf", " inf"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (strstr(f->page.data, bad[i]))
            fail_msg("%.80s", strstr(f->page.data, bad[i]));
}

static void report(Fixture *f)
{
    if (!report_write(join(f, "results"), "reports", join(f, "out"), &f->notes,
                      &f->error))
        fail_msg("%s", str_text(&f->error));
    check_page(f, "out/index.html");
}

static void store(Fixture *f, const HistorySpec *spec)
{
    assert_true(history_store(spec, f->box));
}

/* Stores all runs but the newest, which the caller changes and stores. */
static json_t *store_but_newest(Fixture *f, const HistorySpec *spec)
{
    for (int run = 0; run < spec->runs - 1; run++) {
        json_t *root = history_run(spec, run);
        assert_true(history_store_run(spec, run, root, f->box));
        json_decref(root);
    }
    return history_run(spec, spec->runs - 1);
}

static void store_newest(Fixture *f, const HistorySpec *spec, json_t *root)
{
    assert_true(history_store_run(spec, spec->runs - 1, root, f->box));
    json_decref(root);
}

static const char *find(Fixture *f, const char *text)
{
    const char *at = strstr(str_text(&f->page), text);
    if (!at)
        fail_msg("\"%s\" is not on the page", text);
    return at;
}

/* What lies from `start` up to `end`. */
static const char *part(Fixture *f, const char *start, const char *end)
{
    const char *at = find(f, start);
    const char *last = strstr(at, end);
    assert_non_null(last);
    return arena_strndup(f->arena, at, (size_t)(last - at));
}

static const char *section(Fixture *f, const char *id)
{
    return part(f, arena_printf(f->arena, "<section id=\"%s\">", id),
                "</section>");
}

static int count(const char *text, const char *what)
{
    int found = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        found++;
    return found;
}

/* The row of a case in the overview, and its place among the rows. */
static const char *row(Fixture *f, const char *model, const char *mode,
                       int *place)
{
    const char *at = section(f, "overview");
    *place = 0;
    while ((at = strstr(at, "<tr class="))) {
        const char *end = strstr(at, "</tr>");
        const char *text = arena_strndup(f->arena, at, (size_t)(end - at));
        if (strstr(text, arena_printf(f->arena, ">%s</span> <span", model)) &&
            strstr(text, arena_printf(f->arena, "</i>%s</span>", mode)))
            return text;
        (*place)++;
        at = end;
    }
    fail_msg("no row of %s/%s", model, mode);
    return NULL;
}

static void has_verdict(Fixture *f, const char *model, const char *mode,
                        const char *verdict)
{
    int place;
    const char *text = row(f, model, mode, &place);
    if (!strstr(text, arena_printf(f->arena, "class=\"verdict %s\"", verdict)))
        fail_msg("%s/%s is not %s: %s", model, mode, verdict, text);
}

/* ---- verdicts --------------------------------------------------------- */

static void tells_courses_apart(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(40);
    store(f, &spec);
    report(f);
    assert_int_equal(f->notes.length, 0);
    has_verdict(f, "steady_net", "fused", "same");
    has_verdict(f, "steady_net", "unfused", "same");
    has_verdict(f, "step_net", "fused", "regressed");
    has_verdict(f, "step_net", "unfused", "same");
    has_verdict(f, "weather_net", "fused", "regressed");
    has_verdict(f, "gain_net", "fused", "improved");
    /* Run by run a drift is nothing; over the history it is told. */
    has_verdict(f, "drift_net", "fused", "same");
    int place;
    assert_non_null(
        strstr(row(f, "drift_net", "fused", &place), "drift wors"));
    assert_null(
        strstr(row(f, "steady_net", "fused", &place), "class=\"drift"));
    /* Worst first, the gain last. */
    row(f, "step_net", "fused", &place);
    assert_true(place < 2);
    row(f, "weather_net", "fused", &place);
    assert_true(place < 2);
    row(f, "gain_net", "fused", &place);
    assert_int_equal(place, spec.case_count - 1);
    /* 1.12 by construction. */
    const char *ratio =
        strstr(row(f, "step_net", "fused", &place), "ratio\" title=\"");
    double value, low, high;
    assert_int_equal(
        sscanf(ratio, "ratio\" title=\"%lf [%lf, %lf]", &value, &low, &high),
        3);
    assert_true(low <= value && value <= high);
    assert_true(low > 1.1 && high < 1.14);
}

static void blames_kernels(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(12);
    store(f, &spec);
    report(f);
    const char *step =
        part(f, "<b class=\"name\" title=\"step_net/fused\">", "</details>");
    assert_non_null(strstr(step, "Code changed</b> in 1 of 12 parts"));
    /* The first row is the kernel that changed, by all of the change. */
    const char *first = strstr(step, "<tbody>");
    assert_non_null(strstr(first, "layer0.0/conv, layer0.0/relu"));
    assert_true(strstr(first, ">loops<") < strstr(first, "</tr>"));
    assert_true(strstr(first, "100 %") < strstr(first, "</tr>"));
    const char *weather = part(
        f, "<b class=\"name\" title=\"weather_net/fused\">", "</details>");
    assert_non_null(strstr(weather, "No code changed: environment."));
    assert_null(strstr(weather, ">loops<"));
}

static void shows_failures_first(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(6);
    json_t *root = store_but_newest(f, &spec);
    json_t *broken = history_case(root, "steady_net/fused");
    json_object_set_new(broken, "status", json_string("crashed"));
    json_object_set_new(broken, "reason", json_string("killed by SIGSEGV"));
    json_object_set_new(broken, "values", json_object());
    json_object_set_new(broken, "samples", json_array());
    json_array_remove(json_object_get(root, "cases"), 9);
    json_t *skipped = history_case(root, "drift_net/unfused");
    json_object_set_new(skipped, "status", json_string("skipped"));
    json_object_set_new(skipped, "reason", json_string("past the budget"));
    store_newest(f, &spec, root);
    report(f);
    const char *box = part(f, "<div class=\"failures\"", "<nav>");
    assert_non_null(strstr(box, "1 of 8 cases failed, 2 cases not measured"));
    assert_non_null(strstr(box, "steady_net/fused"));
    assert_non_null(strstr(box, "crashed"));
    assert_non_null(strstr(box, "killed by SIGSEGV"));
    assert_non_null(strstr(box, "gain_net/unfused"));
    has_verdict(f, "steady_net", "fused", "broken");
    has_verdict(f, "gain_net", "unfused", "missing");
    has_verdict(f, "drift_net", "unfused", "missing");
    assert_non_null(strstr(box, "past the budget"));
    int place;
    row(f, "steady_net", "fused", &place);
    assert_int_equal(place, 0);
    row(f, "gain_net", "unfused", &place);
    assert_true(place == 1 || place == 2);
}

static void last_good_run_is_compared_with(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(6);
    for (int run = 0; run < spec.runs; run++) {
        json_t *root = history_run(&spec, run);
        if (run == spec.runs - 2)
            json_object_set_new(history_case(root, "step_net/fused"), "status",
                                json_string("timed-out"));
        assert_true(history_store_run(&spec, run, root, f->box));
        json_decref(root);
    }
    report(f);
    has_verdict(f, "step_net", "fused", "regressed");
}

static void other_machines_do_not_compare(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(6);
    json_t *root = store_but_newest(f, &spec);
    json_t *machine =
        json_object_get(json_object_get(root, "context"), "machine");
    json_object_set_new(machine, "microcode", json_string("0x2"));
    store_newest(f, &spec, root);
    report(f);
    has_verdict(f, "step_net", "fused", "not-comparable");
    has_verdict(f, "steady_net", "fused", "not-comparable");
    assert_non_null(strstr(section(f, "changes"),
                           "microcode was <code>0x1</code>, is "
                           "<code>0x2</code>"));
}

static void runs_of_the_same_machine_come_first(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(6);
    for (int run = 0; run < spec.runs; run++) {
        json_t *root = history_run(&spec, run);
        json_t *machine =
            json_object_get(json_object_get(root, "context"), "machine");
        if (run == spec.runs - 2)
            json_object_set_new(machine, "governor", json_string("powersave"));
        assert_true(history_store_run(&spec, run, root, f->box));
        json_decref(root);
    }
    report(f);
    has_verdict(f, "step_net", "fused", "regressed");
}

/* Its interval is narrow, and tells nothing about other processes. */
static void lone_processes_do_not_decide(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(2);
    spec.processes = 1;
    for (int run = 0; run < spec.runs; run++) {
        json_t *root = history_run(&spec, run);
        json_t *list = json_array_get(
            json_object_get(history_case(root, "steady_net/fused"), "samples"),
            0);
        for (size_t i = 0; i < json_array_size(list); i++)
            json_array_set_new(list, i,
                               json_real(run ? 0.0126 : 0.012)); /* 5 % */
        assert_true(history_store_run(&spec, run, root, f->box));
        json_decref(root);
    }
    report(f);
    has_verdict(f, "steady_net", "fused", "inconclusive");
    has_verdict(f, "step_net", "fused", "regressed");
}

static void new_metrics_appear(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(6);
    for (int run = 0; run < spec.runs; run++) {
        json_t *root = history_run(&spec, run);
        json_array_append_new(json_object_get(root, "metrics"),
                              json_pack("{s:s, s:s, s:s, s:s}", "name",
                                        "joules", "title", "energy of a run",
                                        "unit", "J", "better", "lower"));
        json_t *values =
            json_object_get(history_case(root, "steady_net/fused"), "values");
        json_object_set_new(values, "joules",
                            json_real(run == spec.runs - 1 ? 90 : 30));
        assert_true(history_store_run(&spec, run, root, f->box));
        json_decref(root);
    }
    report(f);
    assert_non_null(
        strstr(section(f, "models"), ">energy of a run</td><td>90.0 J</td>"));
    /* Three times as much is worse, and its trend is open. */
    const char *trends = section(f, "trends");
    const char *fold = strstr(trends, "energy of a run");
    assert_non_null(fold);
    assert_non_null(strstr(fold, "class=\"worse\">1 moved"));
    assert_true(strstr(fold, "<svg") < strstr(fold, "</details>"));
    assert_non_null(strstr(section(f, "changes"), "energy of a run"));
}

static void kernels_have_a_table(void **state)
{
    Fixture *f = *state;
    HistorySpec models = history_example(3), kernels = history_kernels(12);
    store(f, &models);
    store(f, &kernels);
    report(f);
    const char *table = section(f, "overview-kernels");
    assert_int_equal(count(table, "<tr class="), 4);
    const char *first = strstr(table, "<tr class=");
    assert_true(strstr(first, "conv1x1_14x14x1024") < strstr(first, "</tr>"));
    assert_non_null(strstr(first, "GFLOP/s"));
    assert_int_equal(count(table, "class=\"verdict regressed\""), 1);
    assert_int_equal(count(table, "class=\"verdict improved\""), 1);
    /* Both suites are on the one page of their machine and config. */
    assert_int_not_equal(access(join(f, "out/box-native-t2.html"), F_OK), 0);
    section(f, "overview");
}

/* ---- peers ------------------------------------------------------------ */

static void peers_have_a_section(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_peers(1);
    store(f, &spec);
    report(f);
    const char *peers = section(f, "peers");
    /* Two plots, one for each number of threads, with a point a ratio; a row
     * a ratio and one for what is not supported; two means. */
    assert_int_equal(count(peers, "<svg class=\"plot\""), 2);
    assert_int_equal(count(peers, "<circle class=\"f"), spec.case_count - 1);
    assert_int_equal(count(peers, "<th scope=\"row\">"), spec.case_count + 2);
    assert_int_equal(count(peers, ">unsupported</td>"), 1);
    assert_non_null(strstr(peers, "a_net, onnxruntime-t1: "));
    assert_non_null(strstr(peers, "1.40 [1.38, 1.42]"));
    assert_non_null(strstr(peers, "<td class=\"worse\">0.90</td>"));
    /* Wide tables scroll in boxes of their own. */
    assert_int_equal(count(peers, "<table"),
                     count(peers, "<div class=\"scroll\"><table"));
    assert_null(strstr(peers, "By commit"));
    /* Latencies are not judged beside it; what was not measured is named. */
    assert_null(strstr(str_text(&f->page), "id=\"overview\""));
    find(f, "1 case not measured");
    find(f, "dot-product peak");
    find(f, "avx512_vnni");
}

static void peers_have_trends(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_peers(4);
    store(f, &spec);
    report(f);
    const char *peers = section(f, "peers");
    const char *trends = strstr(peers, "By commit");
    assert_non_null(trends);
    assert_int_equal(count(trends, "<svg class=\"plot\""), 3);
    assert_int_equal(count(trends, "<figure>"), 3);
}

/* A run of some engines says nothing of the others. */
static void engines_not_asked_for_are_not_missing(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_peers(2);
    json_t *root = store_but_newest(f, &spec);
    json_t *context = json_object_get(root, "context");
    json_t *cases = json_object_get(root, "cases");
    for (size_t i = json_array_size(cases); i-- > 0;)
        if (strcmp(json_string_value(
                       json_object_get(json_array_get(cases, i), "mode")),
                   "onnxruntime-t1"))
            json_array_remove(cases, i);
    json_object_set_new(context, "requested_modes",
                        json_pack("[s, s]", "onnxruntime-t1", "openvino-t2"));
    store_newest(f, &spec, root);
    report(f);
    /* Two of openvino-t2, which was; one model had none before. */
    find(f, "2 cases not measured");
    assert_null(strstr(str_text(&f->page), "a_net/openvino-t1</b>"));
}

/* ---- plots ------------------------------------------------------------ */

static void one_run_has_points(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(1);
    store(f, &spec);
    report(f);
    has_verdict(f, "step_net", "fused", "new");
    const char *trends = section(f, "trends");
    assert_true(count(trends, "<svg") > 5);
    assert_true(count(trends, "<circle class=\"f16\"") > 20);
    /* The lines of latencies are their spread: two points each. */
    for (const char *at = trends; (at = strstr(at, "<path class=\"s16\""));
         at++)
        assert_true(
            count(arena_strndup(f->arena, at, strcspn(at, ">")), "L") <= 12);
    assert_null(strstr(trends, "<path class=\"f32\""));
}

static void runs_come_in_order_of_commits(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(3);
    for (int run = 0; run < spec.runs; run++) {
        /* Measured in the opposite order. */
        json_t *root = history_run(&spec, run);
        json_t *context = json_object_get(root, "context");
        json_object_set_new(
            context, "commit",
            json_string(arena_printf(f->arena, "%d00000000000", run + 1)));
        json_object_set_new(context, "time",
                            json_string(arena_printf(
                                f->arena, "2026-02-0%dT00:00:00Z", 9 - run)));
        assert_true(history_store_run(&spec, run, root, f->box));
        json_decref(root);
    }
    report(f);
    const char *facts = part(f, "<dl class=\"facts\">", "</dl>");
    assert_non_null(strstr(facts, "<code>300000000000</code>"));
    assert_non_null(strstr(facts, "<code>200000000000</code>"));
    const char *plot = strstr(section(f, "trends"), "<svg class=\"plot\"");
    const char *first = strstr(plot, ">1000000<");
    const char *second = strstr(plot, ">2000000<");
    const char *third = strstr(plot, ">3000000<");
    assert_true(first && first < second && second < third);
}

static void long_histories_stay_small(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(500);
    spec.step_at = 300;
    spec.processes = 2;
    spec.samples = 8;
    spec.kernels = 2;
    store(f, &spec);
    report(f);
    assert_non_null(strstr(f->page.data, "<dd>500</dd>"));
    int plots = 0, marked = 0;
    for (const char *at = section(f, "trends");
         (at = strstr(at, "<svg class=\"plot\"")); plots++) {
        const char *end = strstr(at, "</svg>");
        const char *svg = arena_strndup(f->arena, at, (size_t)(end - at));
        assert_true(strlen(svg) < 40000);
        /* Four commits are named, so that names do not overlap. */
        assert_true(count(svg, ">2026-") <= 4);
        marked += strstr(svg, "class=\"t4\"") || strstr(svg, "class=\"t5\"");
        at = end;
    }
    assert_true(plots > 10);
    /* One for each that has a step. */
    assert_int_equal(marked, 3);
    /* A drift is no step. */
    const char *drift = strstr(section(f, "trends"), "title=\"drift_net\"");
    const char *end = strstr(drift, "</figure>");
    assert_null(strstr(arena_strndup(f->arena, drift, (size_t)(end - drift)),
                       "class=\"s4\""));
}

static void gaps_do_not_mix_series(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(12);
    for (int run = 0; run < spec.runs; run++) {
        json_t *root = history_run(&spec, run);
        if (run < 2 || (run > 5 && run < 9))
            json_object_set_new(history_case(root, "steady_net/fused"),
                                "status", json_string("timed-out"));
        assert_true(history_store_run(&spec, run, root, f->box));
        json_decref(root);
    }
    report(f);
    const char *figure = strstr(section(f, "trends"), "title=\"steady_net\"");
    const char *end = strstr(figure, "</figure>");
    figure = arena_strndup(f->arena, figure, (size_t)(end - figure));
    /* One line in two parts, the other whole; five crosses. */
    const char *line = strstr(figure, "<path class=\"s16\"");
    assert_int_equal(
        count(arena_strndup(f->arena, line, strcspn(line, ">")), "M"), 2);
    line = strstr(figure, "<path class=\"s17\"");
    assert_int_equal(
        count(arena_strndup(f->arena, line, strcspn(line, ">")), "M"), 1);
    assert_int_equal(count(figure, "timed-out</title>"), 5);
}

/* ---- run sets --------------------------------------------------------- */

static void several_sets_have_an_index(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(2);
    store(f, &spec);
    spec.config = "aarch64-t1";
    store(f, &spec);
    /* Two names that make the same file name. */
    spec.config = "a/b";
    spec.runs = 0;
    json_t *root = history_run(&spec, 0);
    assert_int_equal(json_dump_file(root, join(f, "results/box/1.json"), 0),
                     0);
    json_object_set_new(json_object_get(root, "context"), "config",
                        json_string("a:b"));
    assert_int_equal(json_dump_file(root, join(f, "results/box/2.json"), 0),
                     0);
    json_decref(root);
    report(f);
    static const char *const pages[] = {"box-native-t2.html",
                                        "box-aarch64-t1.html", "box-a_b.html",
                                        "box-a_b-2.html"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        check_page(f, "out/index.html");
        find(f, arena_printf(f->arena, "href=\"%s\"", pages[i]));
        check_page(f, arena_printf(f->arena, "out/%s", pages[i]));
        find(f, "href=\"index.html\"");
    }
}

/* ---- damage ----------------------------------------------------------- */

static void leaves_out_damaged_files(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(3);
    store(f, &spec);
    json_t *root = history_run(&spec, 2);
    char *text = json_dumps(root, 0);
    json_decref(root);
    write_text(join(f, "results/box/old.json"), "{\"format\": 1}");
    write_text(join(f, "results/box/later.json"),
               "{\"context\": {\"assay_schema\": 3}}");
    write_text(join(f, "results/box/empty.json"), "");
    write_text(join(f, "results/box/list.json"), "[1, 2]");
    write_text(join(f, "results/box/nothing.json"),
               "{\"context\": {\"assay_schema\": 2}, \"cases\": []}");
    write_text(join(f, "results/box/nan.json"), "{\"context\": NaN}");
    mkdir(join(f, "results/box/folder.json"), 0777);
    /* Cut anywhere, in the parts that a summary skips, too. */
    for (int i = 1; i < 20; i++) {
        char *cut = arena_strndup(f->arena, text, strlen(text) * i / 20);
        write_text(arena_printf(f->arena, "%s/cut%d.json", f->box, i), cut);
    }
    free(text);
    report(f);
    const char *notes = str_text(&f->notes);
    static const char *const named[] = {
        "old.json: left out: no context.assay_schema",
        "later.json: left out: assay_schema 3",
        "empty.json: left out: line 1",
        "list.json: left out",
        "nothing.json: left out: no cases",
        "nan.json: left out: line 1",
        "folder.json: left out: Is a directory",
        "cut1.json: left out: line 1",
        "cut19.json: left out: line 1"};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!strstr(notes, named[i]))
            fail_msg("\"%s\" is not in\n%s", named[i], notes);
    assert_int_equal(count(notes, "\n"), 6 + 1 + 19);
    find(f, "<dd>3</dd>");
    find(section(f, "notes") ? f : f, "old.json");
}

/* Every field of a case and below, each in its turn with a value of every
 * type: a case for each of them. */
typedef struct Mutation {
    json_t *cases; /* gets the changed copies */
    json_t *original;
    int made;
} Mutation;

static json_t *wrong_value(int kind)
{
    switch (kind) {
    case 0:
        return json_string("text");
    case 1:
        return json_real(-1e300);
    case 2:
        return json_array();
    case 3:
        return json_object();
    case 4:
        return json_null();
    default:
        return json_true();
    }
}
enum { WRONG_KINDS = 6 };

static json_t *follow(json_t *root, const char *const *path, int depth)
{
    for (int i = 0; i < depth; i++)
        root = json_is_array(root) ? json_array_get(root, 0)
                                   : json_object_get(root, path[i]);
    return root;
}

static void set_last(json_t *parent, const char *key, json_t *value)
{
    if (json_is_array(parent))
        json_array_set_new(parent, 0, value);
    else
        json_object_set_new(parent, key, value);
}

static void mutate(Mutation *m, const char **path, int depth)
{
    json_t *at = follow(m->original, path, depth);
    const char *key;
    json_t *value;
    if (depth) {
        for (int kind = 0; kind < WRONG_KINDS; kind++) {
            json_t *copy = json_deep_copy(m->original);
            char name[32];
            snprintf(name, sizeof name, "m%d/fused", m->made++);
            json_object_set_new(copy, "name", json_string(name));
            set_last(follow(copy, path, depth - 1), path[depth - 1],
                     wrong_value(kind));
            json_array_append_new(m->cases, copy);
        }
    }
    if (json_is_array(at) && json_array_size(at)) {
        path[depth] = "";
        mutate(m, path, depth + 1);
    }
    json_object_foreach(at, key, value)
    {
        path[depth] = key;
        mutate(m, path, depth + 1);
    }
}

static void survives_any_type_in_a_case(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(2);
    spec.kernels = 2;
    spec.processes = 1;
    spec.samples = 2;
    for (int run = 0; run < 2; run++) {
        json_t *root = history_run(&spec, run);
        json_t *cases = json_object_get(root, "cases");
        Mutation m = {json_array(), json_array_get(cases, 2), 0};
        const char *path[16];
        mutate(&m, path, 0);
        assert_true(m.made > 300);
        json_array_extend(cases, m.cases);
        json_decref(m.cases);
        assert_true(history_store_run(&spec, run, root, f->box));
        json_decref(root);
    }
    report(f);
    /* All others are still there. */
    has_verdict(f, "gain_net", "fused", "improved");
    assert_non_null(strstr(str_text(&f->notes), "faults like these"));
    assert_true(count(section(f, "overview"), "<tr class=") > 300);
}

/* The same for what is not in a case: a machine for each. */
static void survives_any_type_beside_cases(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(1);
    static const HistoryCase one = {"net", "fused", 1e-3, COURSE_STEADY, NAN};
    spec.cases = &one;
    spec.case_count = 1;
    spec.kernels = spec.processes = 1;
    spec.samples = 2;
    json_t *root = history_run(&spec, 0);
    HistorySpec pair = history_example(1);
    pair.kernels = 1;
    json_t *donor = history_run(&pair, 0);
    json_t *comparison =
        json_array_get(json_object_get(donor, "comparisons"), 0);
    json_array_append(json_object_get(root, "comparisons"), comparison);
    json_decref(donor);
    json_object_del(root, "benchmarks");
    Mutation m = {json_array(), root, 0};
    const char *path[16];
    /* The cases have had their turn. */
    json_t *cases = json_incref(json_object_get(root, "cases"));
    json_object_del(root, "cases");
    mutate(&m, path, 0);
    assert_true(m.made > 200);
    /* A third of them, a different one for each field: it takes long. */
    for (int i = 0; i < m.made; i += 3) {
        json_t *copy = json_array_get(m.cases, i + i / WRONG_KINDS % 3);
        json_object_set(copy, "cases", cases);
        json_object_del(copy, "name");
        const char *box = arena_printf(f->arena, "%s/results/%d", f->dir, i);
        mkdir(box, 0777);
        assert_int_equal(
            json_dump_file(copy, arena_printf(f->arena, "%s/a.json", box), 0),
            0);
    }
    json_decref(cases);
    json_decref(m.cases);
    json_decref(root);
    report(f);
    assert_non_null(strstr(str_text(&f->notes), "context.peak.fma_gflops: "));
    assert_non_null(strstr(str_text(&f->notes), "comparisons[0].groups: "));
}

/* And for rows of peers. */
static void survives_any_type_in_peers(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_peers(1);
    json_t *root = history_run(&spec, 0);
    json_array_remove(json_object_get(root, "summary"), 1);
    json_t *rows = json_object_get(root, "rows");
    while (json_array_size(rows) > 1)
        json_array_remove(rows, 1);
    json_t *parts = json_pack("{s:O, s:O}", "rows", rows, "summary",
                              json_object_get(root, "summary"));
    Mutation m = {json_array(), parts, 0};
    const char *path[16];
    mutate(&m, path, 0);
    assert_true(m.made > 100);
    for (int i = 0; i < m.made; i++) {
        const json_t *copy = json_array_get(m.cases, (size_t)i);
        json_object_set(root, "rows", json_object_get(copy, "rows"));
        json_object_set(root, "summary", json_object_get(copy, "summary"));
        const char *box = arena_printf(f->arena, "%s/results/%d", f->dir, i);
        mkdir(box, 0777);
        assert_int_equal(
            json_dump_file(root, arena_printf(f->arena, "%s/a.json", box), 0),
            0);
    }
    json_decref(m.cases);
    json_decref(parts);
    json_decref(root);
    report(f);
    assert_non_null(strstr(str_text(&f->notes), "rows[0].ratio: "));
}

static const char hostile[] =
    "<script>alert(1)</script>\"'&amp; \\n@7 $(reboot) `x` %s %n\n\t"
    "\xe4\xbd\xa0\xe5\xa5\xbd \xe2\x80\xae gnp.exe \xef\xbf\xbf ";

static void set_names(json_t *value, const char *name, Arena *arena)
{
    const char *key;
    json_t *item;
    size_t i;
    static const char *const kept[] = {
        "status", "name", "bound", "better", "suite", "time", "commit_time"};
    json_array_foreach(value, i, item)
    {
        if (json_is_string(item))
            json_string_set(item, name);
        set_names(item, name, arena);
    }
    json_object_foreach(value, key, item)
    {
        bool keep = false;
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            keep = keep || !strcmp(key, kept[k]);
        if (json_is_string(item) && !keep)
            json_string_set(item, name);
        set_names(item, name, arena);
    }
}

static void names_are_only_text(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(4);
    Str name = {0};
    str_add(&name, hostile);
    for (int i = 0; i < 200; i++)
        str_add(&name, "very_long_");
    for (int run = 0; run < spec.runs; run++) {
        json_t *root = history_run(&spec, run);
        /* All texts there are, but for those that are read as a choice. */
        set_names(root, str_text(&name), f->arena);
        json_t *cases = json_object_get(root, "cases");
        json_object_set_new(json_array_get(cases, run), "status",
                            json_string(hostile));
        for (size_t i = 0; i < json_array_size(cases); i++) {
            json_t *c = json_array_get(cases, i);
            json_object_set_new(
                c, "name",
                json_string(arena_printf(f->arena, "%zu%s", i, hostile)));
            const json_t *kernels = json_object_get(c, "kernels");
            json_object_set_new(json_array_get(kernels, 0), "name",
                                json_string(str_text(&name)));
        }
        assert_true(history_store_run(&spec, run, root, f->box));
        json_decref(root);
    }
    str_free(&name);
    report(f);
    assert_null(strstr(f->page.data, "<script>alert"));
    assert_null(strstr(f->page.data, "\xe2\x80\xae"));
    find(f, "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;amp; \\n@7");
    find(f, "\xe4\xbd\xa0\xe5\xa5\xbd");
}

/* ---- files ------------------------------------------------------------ */

static void nothing_to_show(void **state)
{
    Fixture *f = *state;
    write_text(join(f, "results/box/machine.json"), "{\"cpu\": \"x\"}");
    write_text(join(f, "results/README.md"), "text");
    assert_false(report_write(join(f, "results"), "reports", join(f, "out"),
                              &f->notes, &f->error));
    assert_non_null(strstr(str_text(&f->notes), "box: no results"));
    assert_non_null(strstr(str_text(&f->error), "assay run"));
    assert_int_not_equal(access(join(f, "out/index.html"), F_OK), 0);
    assert_false(report_write(join(f, "nowhere"), "reports", join(f, "out"),
                              &f->notes, &f->error));
    assert_non_null(strstr(str_text(&f->error), "cannot read"));
}

static void output_cannot_be_written(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(1);
    store(f, &spec);
    assert_false(report_write(join(f, "results"), "reports",
                              join(f, "missing"), &f->notes, &f->error));
    assert_non_null(strstr(str_text(&f->error), "missing/index.html"));
}

static void leaves_only_the_page(void **state)
{
    Fixture *f = *state;
    HistorySpec spec = history_example(2);
    store(f, &spec);
    mkdir(join(f, "tmp"), 0777);
    setenv("TMPDIR", join(f, "tmp"), 1);
    const char *const copy[] = {"cp", "-a", join(f, "results"),
                                join(f, "before"), NULL};
    const char *const same[] = {"diff", "-r", join(f, "results"),
                                join(f, "before"), NULL};
    assert_true(process_ok(copy, NULL));
    report(f);
    unsetenv("TMPDIR");
    assert_true(process_ok(same, NULL));
    const char *const list[] = {"ls", "-A", join(f, "out"), join(f, "tmp"),
                                NULL};
    Str names = {0};
    ProcessResult result;
    assert_true(process_run(list, &names, NULL, 0, &result));
    assert_int_equal(count(str_text(&names), "\n"), 4);
    assert_non_null(strstr(str_text(&names), "index.html"));
    str_free(&names);
    /* The same results make the same page. */
    char *first = arena_strdup(f->arena, str_text(&f->page));
    report(f);
    assert_string_equal(first, str_text(&f->page));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* With arguments it stores a history to look at, instead of testing. */
static int store_history(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[2]) : 40;
    int models = argc > 3 ? atoi(argv[3]) : 0;
    Arena *arena = arena_new();
    HistorySpec spec = models > 0 ? history_large(arena, models, runs)
                                  : history_example(runs);
    bool ok = runs > 0 && history_store(&spec, argv[1]);
    if (!ok)
        fprintf(stderr, "usage: test_report FOLDER [RUNS [MODELS]]\n");
    arena_free(arena);
    return ok ? 0 : 2;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(tells_courses_apart),
        TEST(blames_kernels),
        TEST(shows_failures_first),
        TEST(last_good_run_is_compared_with),
        TEST(other_machines_do_not_compare),
        TEST(runs_of_the_same_machine_come_first),
        TEST(lone_processes_do_not_decide),
        TEST(new_metrics_appear),
        TEST(kernels_have_a_table),
        TEST(peers_have_a_section),
        TEST(peers_have_trends),
        TEST(engines_not_asked_for_are_not_missing),
        TEST(one_run_has_points),
        TEST(runs_come_in_order_of_commits),
        TEST(long_histories_stay_small),
        TEST(gaps_do_not_mix_series),
        TEST(several_sets_have_an_index),
        TEST(leaves_out_damaged_files),
        TEST(survives_any_type_in_a_case),
        TEST(survives_any_type_beside_cases),
        TEST(survives_any_type_in_peers),
        TEST(names_are_only_text),
        TEST(nothing_to_show),
        TEST(output_cannot_be_written),
        TEST(leaves_only_the_page),
    };
    if (argc > 1)
        return store_history(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
