#include "reports/data.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_FORMAT = 1 };

double data_number(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *data_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

const json_t *data_find_row(const ReportRun *run, const char *model,
                            const char *mode)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(run->root, "results"), i, row)
    {
        if (!strcmp(data_text(row, "model"), model) &&
            !strcmp(data_text(row, "mode"), mode))
            return row;
    }
    return NULL;
}

const json_t *data_find_ratio(const ReportRun *run, const char *model)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(run->root, "ratios"), i, row)
    {
        if (!strcmp(data_text(row, "model"), model))
            return row;
    }
    return NULL;
}

static void add_models(Arena *arena, Series *series, const json_t *root)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(root, "results"), i, row)
    {
        const char *model = data_text(row, "model");
        bool known = false;
        for (int k = 0; k < series->models.count; k++)
            known = known || !strcmp(series->models.data[k], model);
        if (!known)
            vec_push(arena, &series->models, model);
    }
}

static Series *find_series(Arena *arena, ReportData *data,
                           const ReportRun *run)
{
    for (int i = 0; i < data->series.count; i++) {
        Series *s = &data->series.data[i];
        if (!strcmp(s->machine, run->machine) &&
            !strcmp(s->config, run->config))
            return s;
    }
    Series fresh = {.machine = run->machine, .config = run->config};
    vec_push(arena, &data->series, fresh);
    return &data->series.data[data->series.count - 1];
}

static void read_run(Arena *arena, ReportData *data, const char *machine,
                     const char *path, Str *notes)
{
    json_error_t fault;
    json_t *root = json_load_file(path, 0, &fault);
    const json_t *format = json_object_get(root, "format");
    if (!root || json_integer_value(format) != KNOWN_FORMAT ||
        !json_is_array(json_object_get(root, "results"))) {
        str_addf(notes, "skipped %s: %s\n", path,
                 root ? "no results of a known format" : fault.text);
        json_decref(root);
        return;
    }
    ReportRun run = {.root = root,
                     .machine = machine,
                     .config = data_text(root, "config"),
                     .commit = data_text(root, "commit"),
                     .time = data_text(root, "time")};
    Series *series = find_series(arena, data, &run);
    vec_push(arena, &series->runs, run);
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
    int count = scandir(home, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (is_result_name(names[i]->d_name))
            read_run(arena, data, machine,
                     arena_printf(arena, "%s/%s", home, names[i]->d_name),
                     notes);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

static int compare_runs(const void *a, const void *b)
{
    return strcmp(((const ReportRun *)a)->time, ((const ReportRun *)b)->time);
}

bool data_read(Arena *arena, const char *folder, ReportData *data, Str *notes,
               Str *error)
{
    *data = (ReportData){0};
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
    for (int i = 0; i < data->series.count; i++) {
        Series *s = &data->series.data[i];
        qsort(s->runs.data, (size_t)s->runs.count, sizeof *s->runs.data,
              compare_runs);
        /* The newest run's models come first. */
        for (int r = s->runs.count - 1; r >= 0; r--)
            add_models(arena, s, s->runs.data[r].root);
    }
    if (!data->series.count)
        str_addf(error, "no results in %s; `assay run` stores some\n", folder);
    return data->series.count > 0;
}

void data_free(ReportData *data)
{
    for (int i = 0; i < data->series.count; i++)
        for (int r = 0; r < data->series.data[i].runs.count; r++)
            json_decref(data->series.data[i].runs.data[r].root);
}
