#include "reports/data.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/read.h"
#include "reports/stats.h"

/* Numbers in a map of pointers: one more, as NULL stands for absent. */
static int number_of(const Map *map, const char *key)
{
    return (int)(intptr_t)map_get(map, key) - 1;
}

static void set_number_of(Map *map, const char *key, int number)
{
    map_set(map, key, (void *)(intptr_t)(number + 1));
}

/* ---- metrics ---------------------------------------------------------- */

static int metric_of(Arena *arena, ReportData *data, const char *name)
{
    int number = number_of(&data->metric_numbers, name);
    if (number < 0) {
        number = data->metrics.count;
        Metric fresh = {.name = arena_strdup(arena, name), .unit = ""};
        fresh.title = fresh.name;
        vec_push(arena, &data->metrics, fresh);
        set_number_of(&data->metric_numbers, fresh.name, number);
    }
    return number;
}

/* A short word: it goes behind numbers everywhere. */
static const char *read_unit(Reader *r, const json_t *row, const char *place)
{
    const char *unit = read_text(r, row, place, "unit");
    size_t plain = 0;
    while (isalnum((unsigned char)unit[plain]) ||
           (unit[plain] && strchr("%/._- ", unit[plain])))
        plain++;
    if (!unit[plain] && plain <= 16)
        return unit;
    read_fault(r, place, "unit", "more than a short word; left out");
    return "";
}

static void read_metrics(Reader *r, ReportData *data, const json_t *root,
                         int64_t time)
{
    const json_t *rows = read_array(r, root, "", "metrics");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = read_item(r, rows, i, "metrics");
        const char *place = arena_printf(r->arena, "metrics[%zu]", i);
        const char *name = read_text(r, row, place, "name");
        if (!row || !*name)
            continue;
        int number = metric_of(r->arena, data, name);
        Metric *m = &data->metrics.data[number];
        if (time < m->time)
            continue;
        m->time = time;
        const char *title = read_text(r, row, place, "title");
        const char *better = read_text(r, row, place, "better");
        m->title = *title ? title : name;
        m->unit = read_unit(r, row, place);
        m->better = !strcmp(better, "lower")    ? BETTER_LOWER
                    : !strcmp(better, "higher") ? BETTER_HIGHER
                                                : BETTER_NONE;
    }
}

/* ---- cases ------------------------------------------------------------ */

/* The spread of all samples of a case, whatever their process. */
static void read_spread(Reader *r, const json_t *row, const char *place,
                        Record *record, double *median)
{
    record->p10 = record->p90 = *median = NAN;
    Samples s = samples_read(r, row, place);
    if (s.total) {
        record->p10 = stats_quantile(s.seconds, s.total, 0.1);
        *median = stats_quantile(s.seconds, s.total, 0.5);
        record->p90 = stats_quantile(s.seconds, s.total, 0.9);
    }
    samples_free(&s);
}

static void read_values(Reader *r, ReportData *data, const json_t *row,
                        const char *place, Record *record)
{
    json_t *values = json_object_get(row, "values");
    if (values && !read_object(r, row, place, "values"))
        values = NULL;
    const char *key;
    json_t *value;
    json_object_foreach(values, key, value) metric_of(r->arena, data, key);
    double *kept = ARENA_ARRAY(r->arena, double, data->metrics.count);
    for (int i = 0; i < data->metrics.count; i++)
        kept[i] = NAN;
    const char *at = arena_printf(r->arena, "%s.values", place);
    json_object_foreach(values, key, value)
    {
        kept[metric_of(r->arena, data, key)] = read_number(r, values, at, key);
    }
    record->values = kept;
    record->value_count = data->metrics.count;
}

static const Record *read_record(Reader *r, ReportData *data,
                                 const json_t *row, const char *place)
{
    Record *record = ARENA_NEW(r->arena, Record);
    record->status = read_text(r, row, place, "status");
    record->reason = read_text(r, row, place, "reason");
    if (!*record->status)
        record->status = "unknown";
    metric_of(r->arena, data, "p50");
    read_values(r, data, row, place, record);
    double median;
    read_spread(r, row, place, record, &median);
    /* A time of nothing would break ratios and logarithms. */
    double *p50 = (double *)&record->values[data_metric(data, "p50")];
    if (isnan(*p50))
        *p50 = median;
    if (*p50 <= 0) {
        read_fault(r, place, "values.p50", "no positive time; left out");
        *p50 = NAN;
    }
    return record;
}

static int case_of(Arena *arena, History *h, const char *name, Case fresh)
{
    int number = number_of(&h->case_numbers, name);
    if (number < 0) {
        number = h->cases.count;
        fresh.name = name;
        vec_push(arena, &h->cases, fresh);
        set_number_of(&h->case_numbers, name, number);
    }
    return number;
}

/* MODEL/MODE from the name where the fields are missing. */
static Case read_case(Reader *r, const json_t *row, const char *place)
{
    Case c = {.name = read_text(r, row, place, "name"),
              .model = read_text(r, row, place, "model"),
              .mode = read_text(r, row, place, "mode")};
    if (!*c.name && *c.model)
        c.name = arena_printf(r->arena, "%s/%s", c.model, c.mode);
    const char *slash = strrchr(c.name, '/');
    if (!*c.model)
        c.model =
            slash ? arena_strndup(r->arena, c.name, (size_t)(slash - c.name))
                  : c.name;
    if (!*c.mode)
        c.mode = slash ? slash + 1 : "";
    return c;
}

static void read_cases(Reader *r, ReportData *data, History *h, Run *run,
                       const json_t *rows)
{
    Vec(const Record *) records = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = read_item(r, rows, i, "cases");
        if (!row)
            continue;
        const char *place = arena_printf(r->arena, "cases[%zu]", i);
        Case c = read_case(r, row, place);
        if (!*c.name) {
            read_fault(r, place, "name", "no name; case left out");
            continue;
        }
        int number = case_of(r->arena, h, c.name, c);
        while (records.count < h->cases.count)
            vec_push(r->arena, &records, NULL);
        if (records.data[number]) {
            read_fault(r, place, "name", "a case of this name came before");
            continue;
        }
        records.data[number] = read_record(r, data, row, place);
    }
    run->records = records.data;
    run->record_count = records.count;
}

/* ---- files ------------------------------------------------------------ */

static History *find_history(Arena *arena, ReportData *data,
                             const char *machine, const char *config,
                             const char *suite)
{
    for (int i = 0; i < data->histories.count; i++) {
        History *h = data->histories.data[i];
        if (!strcmp(h->machine, machine) && !strcmp(h->config, config) &&
            !strcmp(h->suite, suite))
            return h;
    }
    History *h = ARENA_NEW(arena, History);
    *h = (History){.machine = machine, .config = config, .suite = suite};
    map_init(&h->case_numbers, arena);
    vec_push(arena, &data->histories, h);
    return h;
}

/* Absent in kernel runs, which say so by what they hold. */
static int read_requested(Arena *arena, const json_t *list,
                          const char ***names)
{
    size_t i;
    json_t *item;
    int count = 0;
    if (!json_is_array(list))
        return -1;
    *names = ARENA_ARRAY(arena, const char *, json_array_size(list) + 1);
    json_array_foreach(list, i, item)
    {
        if (json_is_string(item))
            (*names)[count++] = arena_strdup(arena, json_string_value(item));
    }
    return count;
}

static void read_run(Reader *r, ReportData *data, const char *machine)
{
    json_t *root = read_file(r, READ_SUMMARY);
    if (!root)
        return;
    const json_t *context = json_object_get(root, "context");
    const json_t *cases = read_array(r, root, "", "cases");
    if (!json_array_size(cases)) {
        str_addf(r->notes, "%s: left out: no cases\n", r->path);
        json_decref(root);
        return;
    }
    Run run = {.path = r->path,
               .commit = read_text(r, context, "context", "commit"),
               .dirty = read_bool(r, context, "context", "dirty"),
               .committed = read_time(r, context, "context", "commit_time"),
               .time = read_time(r, context, "context", "time")};
    run.requested_count = read_requested(
        r->arena, json_object_get(context, "requested"), &run.requested);
    run.mode_count = read_requested(
        r->arena, json_object_get(context, "requested_modes"), &run.modes);
    if (!*run.commit)
        run.commit = "unknown";
    if (!run.committed)
        run.committed = run.time;
    const json_t *about = read_object(r, context, "context", "machine");
    char *print = json_dumps(about, JSON_SORT_KEYS | JSON_COMPACT);
    run.machine = print ? hash_text(print) : 0;
    free(print);
    History *h = find_history(r->arena, data, machine,
                              read_text(r, context, "context", "config"),
                              read_text(r, context, "context", "suite"));
    read_metrics(r, data, root, run.time);
    read_cases(r, data, h, &run, cases);
    vec_push(r->arena, &h->runs, run);
    json_decref(root);
}

/* A list that is not there has all. */
static bool is_among(const char *const *names, int count, const char *name)
{
    bool found = count < 0;
    for (int i = 0; i < count && !found; i++)
        found = !strcmp(names[i], name);
    return found;
}

bool run_requested(const Run *run, const Case *c)
{
    return is_among(run->requested, run->requested_count, c->model) &&
           is_among(run->modes, run->mode_count, c->mode);
}

static bool is_result_name(const char *name)
{
    size_t length = strlen(name);
    return *name != '.' && length > 5 && !strcmp(name + length - 5, ".json") &&
           strcmp(name, "machine.json");
}

static void read_machine(Arena *arena, ReportData *data, const char *folder,
                         const char *machine, Str *notes)
{
    const char *home = arena_printf(arena, "%s/%s", folder, machine);
    struct dirent **names;
    /* Sorted, so that the page does not depend on the file system. */
    int count = scandir(home, &names, NULL, alphasort), results = 0;
    for (int i = 0; i < count; i++) {
        if (is_result_name(names[i]->d_name)) {
            Reader r = {
                .arena = arena,
                .path = arena_printf(arena, "%s/%s", home, names[i]->d_name),
                .notes = notes};
            read_run(&r, data, machine);
            read_end(&r);
            results++;
        }
        free(names[i]);
    }
    if (count < 0)
        return; /* no folder */
    free(names);
    if (!results)
        str_addf(notes, "%s: no results in this folder\n", home);
}

/* ---- order ------------------------------------------------------------ */

static int compare_runs(const void *a, const void *b)
{
    const Run *x = a, *y = b;
    if (x->committed != y->committed)
        return x->committed < y->committed ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Cases of the newest run come first, in its order. */
static void order_cases(Arena *arena, History *h)
{
    const Run *newest = &h->runs.data[history_newest(h)];
    int *places = ARENA_ARRAY(arena, int, h->cases.count);
    Case *cases = ARENA_ARRAY(arena, Case, h->cases.count);
    int count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int c = 0; c < h->cases.count; c++) {
            bool there = c < newest->record_count && newest->records[c];
            if (there == (pass == 0)) {
                places[c] = count;
                cases[count++] = h->cases.data[c];
            }
        }
    for (int i = 0; i < h->runs.count; i++) {
        Run *run = &h->runs.data[i];
        const Record **records =
            ARENA_ARRAY(arena, const Record *, h->cases.count);
        for (int c = 0; c < run->record_count; c++)
            records[places[c]] = run->records[c];
        run->records = records;
        run->record_count = h->cases.count;
    }
    h->cases.data = cases;
}

static int compare_histories(const void *a, const void *b)
{
    const History *x = *(History *const *)a, *y = *(History *const *)b;
    int order = strcmp(x->machine, y->machine);
    order = order ? order : strcmp(x->config, y->config);
    /* "models" before "kernels". */
    return order ? order : strcmp(y->suite, x->suite);
}

bool data_read(Arena *arena, const char *folder, ReportData *data, Str *notes,
               Str *error)
{
    *data = (ReportData){0};
    map_init(&data->metric_numbers, arena);
    struct dirent **names;
    int count = scandir(folder, &names, NULL, alphasort);
    if (count < 0) {
        str_addf(error, "cannot read %s: %s; `assay run` stores results\n",
                 folder, strerror(errno));
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (*names[i]->d_name != '.')
            read_machine(arena, data, folder,
                         arena_strdup(arena, names[i]->d_name), notes);
        free(names[i]);
    }
    free(names);
    for (int i = 0; i < data->histories.count; i++) {
        History *h = data->histories.data[i];
        qsort(h->runs.data, (size_t)h->runs.count, sizeof *h->runs.data,
              compare_runs);
        order_cases(arena, h);
    }
    if (data->histories.count)
        qsort(data->histories.data, (size_t)data->histories.count,
              sizeof *data->histories.data, compare_histories);
    else
        str_addf(error, "no results in %s; `assay run` stores some\n", folder);
    return data->histories.count > 0;
}

/* ---- access ----------------------------------------------------------- */

int data_metric(const ReportData *data, const char *name)
{
    return number_of(&data->metric_numbers, name);
}

const Record *data_record(const History *h, int run, int c)
{
    return h->runs.data[run].records[c];
}

double data_value(const History *h, int run, int c, int metric)
{
    const Record *record = data_record(h, run, c);
    return record && metric >= 0 && metric < record->value_count
               ? record->values[metric]
               : NAN;
}

bool record_is_ok(const Record *record)
{
    return record && !strcmp(record->status, "ok");
}

int history_newest(const History *h)
{
    return h->runs.count - 1;
}
