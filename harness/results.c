#include "harness/results.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/common.h"
#include "harness/fingerprint.h"
#include "harness/metric.h"
#include "harness/values.h"

/* ---- context ---------------------------------------------------------- */

static json_t *time_json(void)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_string(text);
}

const char *results_config(Arena *arena, const ResultsContext *c)
{
    const char *target = c->target ? c->target : "native";
    const char *quick = c->quick ? "-quick" : "";
    /* A run of peers has several numbers of threads. */
    if (!strcmp(c->suite, "peers"))
        return arena_printf(arena, "peers-%s%s", target, quick);
    return arena_printf(arena, "%s%s-t%d%s",
                        strcmp(c->suite, "kernels") ? "" : "kernels-", target,
                        c->threads, quick);
}

static json_t *peak_json(const json_t *peak)
{
    json_t *copy = json_deep_copy(peak);
    json_object_del(copy, "context");
    return copy ? copy : json_null();
}

static json_t *context_json(Arena *arena, const ResultsContext *c)
{
    Source source = fingerprint_source(arena);
    /* Google Benchmark's own fields first. */
    json_t *o = json_deep_copy(json_object_get(c->peak, "context"));
    o = o ? o : json_object();
    json_object_set_new(o, "assay_schema", json_integer(RESULTS_SCHEMA));
    json_object_set_new(o, "suite", json_string(c->suite));
    json_object_set_new(o, "commit", json_string(source.commit));
    json_object_set_new(o, "commit_time", json_string(source.time));
    json_object_set_new(o, "dirty", json_boolean(source.dirty));
    json_object_set_new(o, "config", json_string(results_config(arena, c)));
    json_object_set_new(o, "target",
                        json_string(c->target ? c->target : "native"));
    json_object_set_new(o, "threads", json_integer(c->threads));
    json_object_set_new(o, "quick", json_boolean(c->quick));
    json_object_set_new(o, "time", time_json());
    json_object_set_new(o, "machine", json_deep_copy(c->machine));
    json_object_set_new(o, "peak", peak_json(c->peak));
    return o;
}

/* Of peers: peer_rows.c fills them. */
static const Metric peer_metrics[] = {
    {"p50", "latency, median", "s", "lower", NULL},
    {"peer_p50", "latency of the peer", "s", "none", NULL},
    {"peer_ratio", "peer over Assay", "", "higher", NULL},
    {0},
};

static json_t *metrics_json(const char *suite)
{
    json_t *list = json_array();
    bool peers = !strcmp(suite, "peers");
    for (const Metric *m = peers ? peer_metrics : metrics(); m->name; m++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s}", "name", m->name, "title",
                            m->title, "unit", m->unit, "better", m->better));
    return list;
}

json_t *results_new(Arena *arena, const ResultsContext *context)
{
    return json_pack("{s:o, s:o, s:[], s:[], s:[]}", "context",
                     context_json(arena, context), "metrics",
                     metrics_json(context->suite), "benchmarks", "cases",
                     "comparisons");
}

/* ---- cases ------------------------------------------------------------ */

/* Sets a value unless it is NULL, keeping the original reference. */
static void set_shared(json_t *object, const char *key, json_t *value)
{
    if (value)
        json_object_set(object, key, value);
}

static json_t *values_json(const ModelResult *r, const ModeResult *m)
{
    json_t *o = json_object();
    for (const Metric *metric = metrics(); metric->name; metric++)
        json_object_set_new(o, metric->name, number_json(metric->probe(r, m)));
    return o;
}

static json_t *samples_json(const ModeResult *m)
{
    json_t *processes = json_array();
    for (int i = 0; i < m->report_count; i++) {
        json_t *list = json_array();
        for (int k = 0; k < m->processes[i].count; k++)
            json_array_append_new(list, json_real(m->processes[i].seconds[k]));
        json_array_append_new(processes, list);
    }
    return processes;
}

static json_t *case_json(const json_t *context, const ModelResult *r,
                         const ModeResult *m)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_sprintf("%s/%s", r->label, m->mode));
    json_object_set_new(o, "model", json_string(r->label));
    json_object_set_new(o, "mode", json_string(m->mode));
    set_shared(o, "target", json_object_get(context, "target"));
    set_shared(o, "threads", json_object_get(context, "threads"));
    json_object_set_new(o, "status", json_string(case_status_name(m->status)));
    if (m->reason)
        json_object_set_new(o, "reason", json_string(m->reason));
    json_object_set_new(o, "seconds", number_json(m->seconds));
    json_object_set_new(o, "values", values_json(r, m));
    json_object_set_new(o, "samples", samples_json(m));
    set_shared(o, "passes", m->passes);
    set_shared(o, "check", m->check);
    set_shared(o, "kernels", m->kernels);
    set_shared(o, "steps", m->steps);
    set_shared(o, "high_water", m->high_water);
    return o;
}

/* ---- Google Benchmark's rows ------------------------------------------ */

static json_t *bench_row(const json_t *the_case, const char *run_type)
{
    const char *name = json_string_value(json_object_get(the_case, "name"));
    json_t *row = json_pack("{s:s, s:s, s:s, s:O, s:O, s:O, s:O, s:O}", "name",
                            name, "run_name", name, "run_type", run_type,
                            "threads", json_object_get(the_case, "threads"),
                            "model", json_object_get(the_case, "model"),
                            "mode", json_object_get(the_case, "mode"),
                            "target", json_object_get(the_case, "target"),
                            "status", json_object_get(the_case, "status"));
    return row;
}

static void set_time(json_t *row, double seconds, int iterations)
{
    json_object_set_new(row, "iterations", json_integer(iterations));
    json_object_set_new(row, "real_time", number_json(seconds * 1e3));
    /* Of one thread that works all the time, the two are the same. */
    json_object_set_new(row, "cpu_time", number_json(seconds * 1e3));
    json_object_set_new(row, "time_unit", json_string("ms"));
}

static void add_aggregate(json_t *rows, const json_t *the_case,
                          const char *aggregate, double seconds, int processes)
{
    json_t *row = bench_row(the_case, "aggregate");
    json_object_set_new(
        row, "name",
        json_sprintf("%s_%s",
                     json_string_value(json_object_get(the_case, "name")),
                     aggregate));
    json_object_set_new(row, "aggregate_name", json_string(aggregate));
    json_object_set_new(row, "repetitions", json_integer(processes));
    set_time(row, seconds, processes);
    json_array_append_new(rows, row);
}

static void add_bench_rows(json_t *rows, const json_t *the_case,
                           const ModeResult *m)
{
    if (m->status != CASE_OK) {
        json_t *row = bench_row(the_case, "iteration");
        json_object_set_new(row, "error_occurred", json_true());
        json_object_set_new(row, "error_message",
                            json_string(m->reason ? m->reason : ""));
        set_time(row, 0, 0);
        json_array_append_new(rows, row);
        return;
    }
    for (int i = 0; i < m->report_count; i++) {
        json_t *row = bench_row(the_case, "iteration");
        json_object_set_new(row, "repetitions", json_integer(m->report_count));
        json_object_set_new(row, "repetition_index", json_integer(i));
        set_time(row,
                 stats_median(m->processes[i].seconds, m->processes[i].count),
                 m->processes[i].count);
        json_array_append_new(rows, row);
    }
    if (!m->report_count)
        return;
    add_aggregate(rows, the_case, "median", m->p50, m->report_count);
    add_aggregate(rows, the_case, "p90", m->p90, m->report_count);
    add_aggregate(rows, the_case, "p99", m->p99, m->report_count);
}

void results_add_model(json_t *results, const ModelResult *r)
{
    const json_t *context = json_object_get(results, "context");
    for (int i = 0; i < r->mode_count; i++) {
        json_t *the_case = case_json(context, r, &r->modes[i]);
        json_array_append_new(json_object_get(results, "cases"), the_case);
        add_bench_rows(json_object_get(results, "benchmarks"), the_case,
                       &r->modes[i]);
    }
    if (r->has_comparison)
        json_array_append_new(json_object_get(results, "comparisons"),
                              comparison_json(r->label, &r->comparison));
}

/* ---- storing ---------------------------------------------------------- */

static bool store(const char *path, const json_t *value, Str *error)
{
    char *text = json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    if (!text) {
        str_addf(error, "cannot print %s\n", path);
        return false;
    }
    bool ok = write_file(path, text, strlen(text), error);
    free(text);
    return ok;
}

static const char *machine_folder(Arena *arena, const char *folder,
                                  const json_t *machine)
{
    return arena_printf(arena, "%s/%s", folder,
                        fingerprint_name(arena, machine));
}

const char *results_path(Arena *arena, const char *folder,
                         const json_t *results)
{
    const json_t *context = json_object_get(results, "context");
    const json_t *machine = json_object_get(context, "machine");
    char stamp[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", gmtime_r(&now, &utc));
    bool dirty = json_is_true(json_object_get(context, "dirty"));
    /* Two runs in one second differ by their process. */
    return arena_printf(arena, "%s/%s%s-%s-%s.%d.json",
                        machine_folder(arena, folder, machine),
                        text_of(context, "commit"), dirty ? "-dirty" : "",
                        text_of(context, "config"), stamp, (int)getpid());
}

bool results_store(Arena *arena, const char *path, const json_t *results,
                   Str *error)
{
    const json_t *context = json_object_get(results, "context");
    const json_t *machine = json_object_get(context, "machine");
    char *home = arena_strdup(arena, path);
    *strrchr(home, '/') = 0;
    if (!make_folders(home)) {
        str_addf(error, "cannot make %s: %s\n", home, strerror(errno));
        return false;
    }
    return store(arena_printf(arena, "%s/machine.json", home), machine,
                 error) &&
           store(path, results, error);
}

bool results_can_store(Arena *arena, const char *folder, Str *error)
{
    const char *probe = arena_printf(arena, "%s/.probe", folder);
    /* As much as a file system takes at least for a file. */
    static const char block[4096];
    if (!make_folders(folder)) {
        str_add(error, strerror(errno));
        return false;
    }
    if (!write_file(probe, block, sizeof block, error))
        return false;
    unlink(probe);
    return true;
}

/* COMMIT- or COMMIT-dirty-: "kernels-native-t1" is no run of "native-t1". */
static bool is_commit(const char *name, const char *end)
{
    size_t length = strcspn(name, "-");
    const char *rest = name + length;
    return length && (rest + 1 == end ||
                      (!strncmp(rest, "-dirty-", 7) && rest + 7 == end));
}

/* The part of a file's name after the configuration, which sorts by time. */
static const char *stamp_of(const char *name, const char *config)
{
    size_t length = strlen(config);
    for (const char *at = strstr(name, config); at;
         at = strstr(at + 1, config))
        if (is_commit(name, at) && at[length] == '-' &&
            strlen(at) > length + 8 && at[length + 9] == 'T')
            return at + length + 1;
    return NULL;
}

json_t *results_newest(Arena *arena, const char *folder,
                       const ResultsContext *context)
{
    const char *home = machine_folder(arena, folder, context->machine);
    const char *config = results_config(arena, context);
    const char *newest = NULL, *best = "";
    DIR *dir = opendir(home);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        const char *stamp = stamp_of(e->d_name, config);
        if (!stamp || strcmp(stamp, best) <= 0)
            continue;
        newest = arena_strdup(arena, e->d_name);
        best = stamp_of(newest, config);
    }
    if (dir)
        closedir(dir);
    return newest ? json_load_file(arena_printf(arena, "%s/%s", home, newest),
                                   0, NULL)
                  : NULL;
}
