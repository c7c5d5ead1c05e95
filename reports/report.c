/* The page: for each machine and configuration the newest run as a table,
 * then plots of latency, arena and accuracy by commit. Plots are SVG files
 * beside the page; their colours read on white and on black. */
#include "reports/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "base/replace.h"
#include "reports/data.h"

typedef struct Report {
    Arena *arena;
    const char *scripts, *out;
    Str page;
    Str *error;
} Report;

/* ---- text ------------------------------------------------------------- */

static void add_escaped(Str *page, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            str_add(page, "&lt;");
            break;
        case '>':
            str_add(page, "&gt;");
            break;
        case '&':
            str_add(page, "&amp;");
            break;
        case '"':
            str_add(page, "&quot;");
            break;
        default:
            str_add_bytes(page, text, 1);
        }
}

static void add_cell(Str *page, const char *text)
{
    str_add(page, "<td>");
    add_escaped(page, text);
    str_add(page, "</td>");
}

/* "-" for what was not measured. */
static const char *scaled(Report *r, double value, double unit,
                          const char *format)
{
    if (isnan(value))
        return "-";
    char text[64];
    snprintf(text, sizeof text, format, value / unit);
    return arena_strdup(r->arena, text);
}

static bool write_text(Report *r, const char *path, const Str *text)
{
    bool ok = replace_file(path, str_text(text), text->length);
    if (!ok)
        str_addf(r->error, "cannot write %s: %s\n", path, strerror(errno));
    return ok;
}

/* ---- plots ------------------------------------------------------------ */

/* What a trend shows: one number of a row, for some modes. */
typedef struct Trend {
    const char *name, *title, *unit;
    const char *key;
    double scale;         /* divides the number */
    const char *modes[2]; /* lines a model; NULL: none */
    bool one_model;       /* a plot for each model, or all in one */
} Trend;

static const Trend trends[] = {
    {"latency",
     "latency (median)",
     "ms",
     "p50",
     1e-3,
     {"fused", "unfused"},
     true},
    {"arena",
     "arena, fused",
     "MiB",
     "arena_bytes",
     1 << 20,
     {"fused", NULL},
     false},
    {"accuracy", "top-1, fused", "%", "top1", 1e-2, {"fused", NULL}, false},
    {"map50", "mAP50, fused", "%", "map50", 1e-2, {"fused", NULL}, false},
};
enum { TREND_COUNT = sizeof trends / sizeof trends[0] };

/* A table for gnuplot: number, commit, then a column a line. Counts the
 * values; a plot of none is not drawn. */
static int add_trend_table(Str *table, const Series *s, const Trend *trend,
                           const char *const *models, int model_count)
{
    str_add(table, "run commit");
    for (int m = 0; m < model_count; m++)
        for (int k = 0; k < 2 && trend->modes[k]; k++)
            str_addf(table, " \"%s\"",
                     trend->one_model ? trend->modes[k] : models[m]);
    str_add(table, "\n");
    int values = 0;
    for (int i = 0; i < s->runs.count; i++) {
        const ReportRun *run = &s->runs.data[i];
        str_addf(table, "%d \"%.7s\"", i + 1, run->commit);
        for (int m = 0; m < model_count; m++)
            for (int k = 0; k < 2 && trend->modes[k]; k++) {
                const json_t *row =
                    data_find_row(run, models[m], trend->modes[k]);
                double value = data_number(row, trend->key);
                if (isnan(value)) {
                    str_add(table, " ?");
                } else {
                    str_addf(table, " %.9g", value / trend->scale);
                    values++;
                }
            }
        str_add(table, "\n");
    }
    return values;
}

/* "err" bars of the newest run: number, model, ratio, low, high. */
static int add_ratio_table(Str *table, const Series *s)
{
    const ReportRun *run = &s->runs.data[s->runs.count - 1];
    int rows = 0;
    for (int i = 0; i < s->models.count; i++) {
        const json_t *row = data_find_ratio(run, s->models.data[i]);
        if (!row || isnan(data_number(row, "ratio")))
            continue;
        str_addf(table, "%d \"%s\" %.6g %.6g %.6g\n", ++rows,
                 s->models.data[i], data_number(row, "ratio"),
                 data_number(row, "low"), data_number(row, "high"));
    }
    return rows;
}

/* Runs a script of reports/ over a table; the SVG goes to OUT/NAME.svg. */
static bool draw(Report *r, const char *script, const char *name,
                 const Str *table, const char *title, const char *unit)
{
    const char *data = arena_printf(r->arena, "%s/%s.dat", r->out, name);
    const char *svg = arena_printf(r->arena, "%s/%s.svg", r->out, name);
    /* A plot that fails leaves the former one. */
    const char *drawn =
        arena_printf(r->arena, "%s.%ld.tmp", svg, (long)getpid());
    if (!write_text(r, data, table))
        return false;
    cleanup_add_path(drawn);
    /* Arguments, not text in the script: names may hold anything. */
    const char *const argv[] = {
        "gnuplot", "-c",  arena_printf(r->arena, "%s/%s", r->scripts, script),
        data,      drawn, title,
        unit,      NULL};
    Str err = {0};
    bool ok = process_ok(argv, &err);
    if (!ok)
        str_addf(r->error, "gnuplot %s: %s\n", script, str_text(&err));
    str_free(&err);
    if (ok && rename(drawn, svg)) {
        str_addf(r->error, "cannot write %s: %s\n", svg, strerror(errno));
        ok = false;
    }
    if (!ok)
        unlink(drawn);
    cleanup_forget_path(drawn);
    return ok;
}

static void add_figure(Report *r, const char *name, const char *title)
{
    str_addf(&r->page, "<figure><img src=\"%s.svg\" alt=\"", name);
    add_escaped(&r->page, title);
    str_add(&r->page, "\" loading=\"lazy\"><figcaption>");
    add_escaped(&r->page, title);
    str_add(&r->page, "</figcaption></figure>\n");
}

static bool add_trend(Report *r, const Series *s, const Trend *trend,
                      const char *const *models, int count, const char *name,
                      const char *title)
{
    Str table = {0};
    bool ok = true;
    if (add_trend_table(&table, s, trend, models, count)) {
        ok = draw(r, "trend.gp", name, &table, title, trend->unit);
        add_figure(r, name, title);
    }
    str_free(&table);
    return ok;
}

static bool add_plots(Report *r, const Series *s, int number)
{
    Str table = {0};
    bool ok = true;
    str_add(&r->page, "<div class=\"plots\">\n");
    if (add_ratio_table(&table, s)) {
        const char *name = arena_printf(r->arena, "s%d-fusion", number);
        const char *title = "fused over unfused, newest run";
        ok = draw(r, "ratio.gp", name, &table, title, "times faster");
        add_figure(r, name, title);
    }
    str_free(&table);
    for (int t = 0; ok && t < TREND_COUNT; t++) {
        const Trend *trend = &trends[t];
        const char *stem =
            arena_printf(r->arena, "s%d-%s", number, trend->name);
        if (!trend->one_model) {
            ok = add_trend(r, s, trend, s->models.data, s->models.count, stem,
                           trend->title);
            continue;
        }
        for (int m = 0; ok && m < s->models.count; m++)
            ok = add_trend(r, s, trend, &s->models.data[m], 1,
                           arena_printf(r->arena, "%s-%d", stem, m),
                           arena_printf(r->arena, "%s: %s", s->models.data[m],
                                        trend->title));
    }
    str_add(&r->page, "</div>\n");
    return ok;
}

/* ---- page ------------------------------------------------------------- */

static const char page_head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, "
    "initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>Assay: results</title>\n<style>\n"
    ":root { color-scheme: light dark; }\n"
    "body { font: 16px/1.5 system-ui, sans-serif; max-width: 75rem;\n"
    "  margin: 0 auto; padding: 1rem; }\n"
    ".scroll { overflow-x: auto; }\n"
    "table { border-collapse: collapse; font-variant-numeric: "
    "tabular-nums; }\n"
    "th, td { padding: .25rem .75rem; text-align: right; white-space: "
    "nowrap;\n"
    "  border-bottom: 1px solid #8886; }\n"
    "th:first-child, td:first-child, th:nth-child(2), td:nth-child(2)\n"
    "  { text-align: left; }\n"
    ".bad { color: #d33; font-weight: 600; }\n"
    ".plots { display: grid; gap: 1rem;\n"
    "  grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), "
    "1fr)); }\n"
    "figure { margin: 0; }\nimg { width: 100%; height: auto; }\n"
    "figcaption { font-size: .875rem; opacity: .75; }\n"
    "dt { font-weight: 600; } dd { margin: 0 0 .5rem; overflow-wrap: "
    "anywhere; }\n"
    "</style>\n</head>\n<body>\n<h1>Assay: results</h1>\n";

static void add_result_row(Report *r, const ReportRun *run, const json_t *row)
{
    const char *model = data_text(row, "model");
    const char *mode = data_text(row, "mode");
    const char *status = data_text(row, "status");
    const json_t *ratio =
        strcmp(mode, "fused") ? NULL : data_find_ratio(run, model);
    double bound = data_number(row, "arena_bound");
    Str *page = &r->page;
    str_add(page, "<tr>");
    add_cell(page, model);
    add_cell(page, mode);
    add_cell(page, scaled(r, data_number(row, "p50"), 1e-3, "%.3g ms"));
    add_cell(page, scaled(r, data_number(row, "p99"), 1e-3, "%.3g ms"));
    add_cell(page, ratio ? arena_printf(r->arena, "%.2f [%.2f, %.2f]",
                                        data_number(ratio, "ratio"),
                                        data_number(ratio, "low"),
                                        data_number(ratio, "high"))
                         : "");
    add_cell(page,
             scaled(r, data_number(row, "arena_bytes"), 1 << 20, "%.2f MiB"));
    add_cell(
        page,
        scaled(r, data_number(row, "arena_bytes") / (bound > 0 ? bound : NAN),
               1, "%.2f"));
    add_cell(page,
             scaled(r, data_number(json_object_get(row, "check"), "max_error"),
                    1, "%.1e"));
    bool boxes = json_is_number(json_object_get(row, "map50"));
    add_cell(page, scaled(r, data_number(row, boxes ? "map50" : "top1"), 1e-2,
                          boxes ? "mAP50 %.2f %%" : "top-1 %.2f %%"));
    add_cell(page, scaled(r, data_number(row, "peak_share"), 1e-2, "%.0f %%"));
    str_add(page, strcmp(status, "ok") ? "<td class=\"bad\">" : "<td>");
    add_escaped(page, status);
    str_add(page, "</td></tr>\n");
}

static void add_table(Report *r, const Series *s)
{
    const ReportRun *run = &s->runs.data[s->runs.count - 1];
    str_add(&r->page,
            "<div class=\"scroll\"><table>\n<tr><th>model</th><th>mode</th>"
            "<th>p50</th><th>p99</th><th>fused/unfused</th><th>arena</th>"
            "<th>/bound</th><th>error</th><th>accuracy</th><th>peak</th>"
            "<th>status</th></tr>\n");
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(run->root, "results"), i, row)
    {
        add_result_row(r, run, row);
    }
    str_add(&r->page, "</table></div>\n");
}

static int compare_steps(const void *a, const void *b)
{
    double x = data_number(*(json_t *const *)a, "seconds");
    double y = data_number(*(json_t *const *)b, "seconds");
    return (x < y) - (x > y);
}

/* Where a model's time goes: the slowest steps of its fused build. */
static void add_steps(Report *r, const json_t *row)
{
    enum { SHOWN = 20 };
    const json_t *steps = json_object_get(row, "steps");
    size_t count = json_array_size(steps);
    if (!count)
        return;
    json_t **sorted = ARENA_ARRAY(r->arena, json_t *, count);
    double total = 0;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = json_array_get(steps, i);
        total += data_number(sorted[i], "seconds");
    }
    qsort(sorted, count, sizeof(json_t *), compare_steps);
    str_add(&r->page, "<details><summary>");
    add_escaped(&r->page, data_text(row, "model"));
    str_addf(&r->page, ": slowest of %zu kernel calls</summary>", count);
    str_add(&r->page, "<div class=\"scroll\"><table>\n<tr><th>kernel</th>"
                      "<th>first node</th><th>time</th><th>share</th>"
                      "<th>GFLOP/s</th><th>peak</th></tr>\n");
    double peak = data_number(row, "fma_gflops");
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        double seconds = data_number(sorted[i], "seconds");
        double rate = data_number(sorted[i], "flops") / seconds * 1e-9;
        str_add(&r->page, "<tr>");
        add_cell(&r->page, data_text(sorted[i], "kernel"));
        add_cell(&r->page, data_text(sorted[i], "node"));
        add_cell(&r->page, scaled(r, seconds, 1e-6, "%.1f us"));
        add_cell(&r->page, scaled(r, seconds / total, 1e-2, "%.1f %%"));
        add_cell(&r->page, scaled(r, rate, 1, "%.1f"));
        add_cell(&r->page, scaled(r, rate / peak, 1e-2, "%.0f %%"));
        str_add(&r->page, "</tr>\n");
    }
    str_add(&r->page, "</table></div></details>\n");
}

static void add_machine(Report *r, const ReportRun *run)
{
    static const char *const keys[] = {"cpu",     "microcode", "governor",
                                       "kernel",  "llvm",      "openblas_core",
                                       "compiler"};
    const json_t *machine = json_object_get(run->root, "machine");
    const json_t *peak = json_object_get(run->root, "peak");
    str_add(&r->page, "<details><summary>machine</summary><dl>\n");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        str_addf(&r->page, "<dt>%s</dt><dd>", keys[i]);
        add_escaped(&r->page, data_text(machine, keys[i]));
        str_add(&r->page, "</dd>\n");
    }
    str_addf(&r->page,
             "<dt>f32 FMA peak</dt><dd>%s</dd>\n"
             "<dt>memory read</dt><dd>%s</dd>\n</dl></details>\n",
             scaled(r, data_number(peak, "fma_gflops"), 1, "%.0f GFLOP/s"),
             scaled(r, data_number(peak, "read_gbps"), 1, "%.1f GB/s"));
}

static bool add_series(Report *r, const Series *s, int number)
{
    const ReportRun *run = &s->runs.data[s->runs.count - 1];
    str_add(&r->page, "<section>\n<h2>");
    add_escaped(&r->page, s->config);
    str_add(&r->page, " on ");
    add_escaped(&r->page, s->machine);
    str_addf(&r->page, "</h2>\n<p>%d run%s; the newest is commit ",
             s->runs.count, s->runs.count == 1 ? "" : "s");
    add_escaped(&r->page, run->commit);
    str_add(&r->page, ", ");
    add_escaped(&r->page, run->time);
    str_add(&r->page, ".</p>\n");
    add_table(r, s);
    for (int i = 0; i < s->models.count; i++)
        add_steps(r, data_find_row(run, s->models.data[i], "fused"));
    bool ok = add_plots(r, s, number);
    add_machine(r, run);
    str_add(&r->page, "</section>\n");
    return ok;
}

static bool write_page(Report *r, const ReportData *data)
{
    str_add(&r->page, page_head);
    str_add(&r->page,
            "<p>fused/unfused: how many times faster fused is, with its "
            "95 % interval. /bound: arena over its live-set lower bound. "
            "error: largest difference from the reference, in units of the "
            "output's rms. peak: share of the f32 FMA peak measured in the "
            "same run.</p>\n");
    for (int i = 0; i < data->series.count; i++)
        if (!add_series(r, &data->series.data[i], i))
            return false;
    str_add(&r->page, "</body>\n</html>\n");
    return write_text(r, arena_printf(r->arena, "%s/index.html", r->out),
                      &r->page);
}

bool report_write(const char *results, const char *scripts, const char *out,
                  Str *notes, Str *error)
{
    Report r = {
        .arena = arena_new(), .scripts = scripts, .out = out, .error = error};
    ReportData data;
    bool ok = data_read(r.arena, results, &data, notes, error);
    ok = ok && write_page(&r, &data);
    data_free(&data);
    str_free(&r.page);
    arena_free(r.arena);
    return ok;
}
