#include "harness/results.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/common.h"
#include "harness/fingerprint.h"

/* ---- JSON ------------------------------------------------------------- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *samples_json(const ModeResult *m)
{
    json_t *processes = json_array();
    for (int i = 0; i < m->process_count; i++) {
        json_t *list = json_array();
        for (int k = 0; k < m->processes[i].count; k++)
            json_array_append_new(list, json_real(m->processes[i].seconds[k]));
        json_array_append_new(processes, list);
    }
    return processes;
}

/* Sets a value unless it is NULL, keeping the original reference. */
static void set_shared(json_t *object, const char *key, json_t *value)
{
    if (value)
        json_object_set(object, key, value);
}

static json_t *mode_json(const ModelResult *r, const ModeResult *m)
{
    const Accuracy *a = &m->accuracy;
    json_t *o = json_object();
    json_object_set_new(o, "model", json_string(r->label));
    json_object_set_new(o, "mode", json_string(m->mode));
    json_object_set_new(o, "status", json_string(mode_status_name(m->status)));
    if (m->reason)
        json_object_set_new(o, "reason", json_string(m->reason));
    json_object_set_new(o, "compile_seconds", number(m->compile_seconds));
    json_object_set_new(o, "p50", number(m->p50));
    json_object_set_new(o, "p90", number(m->p90));
    json_object_set_new(o, "p99", number(m->p99));
    json_object_set_new(o, "samples", samples_json(m));
    json_object_set_new(o, "flops", number(m->flops));
    json_object_set_new(o, "fma_gflops", number(r->fma_gflops));
    json_object_set_new(o, "peak_share",
                        number(m->flops / m->p50 / (r->fma_gflops * 1e9)));
    json_object_set_new(o, "arena_bytes", json_integer(m->arena_bytes));
    json_object_set_new(o, "arena_bound", json_integer(m->arena_bound));
    json_object_set_new(o, "weight_bytes", json_integer(m->weight_bytes));
    json_object_set_new(o, "code_bytes", json_integer(m->code_bytes));
    json_object_set_new(o, "peak_rss_kib", number(m->peak_rss_kib));
    json_object_set_new(o, "load_seconds", number(m->load_seconds));
    if (a->name) {
        json_object_set_new(o, a->name, number(a->value));
        json_object_set_new(o, "agreement", number(a->agreement));
    }
    json_object_set_new(o, "examples", json_integer(a->examples));
    set_shared(o, "check", m->check);
    set_shared(o, "kernels", m->kernels);
    set_shared(o, "steps", m->steps);
    return o;
}

static json_t *ratio_json(const ModelResult *r)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:i, s:i, s:i}", "model",
                     r->label, "slow", "unfused", "fast", "fused", "ratio",
                     number(r->ratio.value), "low", number(r->ratio.low),
                     "high", number(r->ratio.high), "blocks", r->blocks,
                     "blocks_repeated", r->blocks_repeated, "blocks_disturbed",
                     r->blocks_disturbed);
}

static json_t *time_json(void)
{
    char text[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    return json_string(text);
}

json_t *results_json(Arena *arena, const MeasurePlan *plan, const char *config,
                     const json_t *machine, const json_t *peak,
                     ModelResult *models, int count)
{
    json_t *root = json_object();
    json_object_set_new(root, "format", json_integer(RESULTS_FORMAT));
    json_object_set_new(root, "commit",
                        json_string(fingerprint_commit(arena)));
    json_object_set_new(root, "config", json_string(config));
    json_object_set_new(root, "quick", json_boolean(plan->quick));
    json_object_set_new(root, "time", time_json());
    json_object_set_new(root, "machine", json_deep_copy(machine));
    json_object_set_new(root, "peak",
                        peak ? json_deep_copy(peak) : json_null());
    json_t *rows = json_array(), *ratios = json_array();
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < models[i].mode_count; k++)
            json_array_append_new(rows,
                                  mode_json(&models[i], &models[i].modes[k]));
        if (models[i].has_ratio)
            json_array_append_new(ratios, ratio_json(&models[i]));
    }
    json_object_set_new(root, "results", rows);
    json_object_set_new(root, "ratios", ratios);
    return root;
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

const char *results_store(Arena *arena, const char *folder,
                          const json_t *results, Str *error)
{
    const json_t *machine = json_object_get(results, "machine");
    const char *home =
        arena_printf(arena, "%s/%s", folder, fingerprint_name(arena, machine));
    if (!make_folders(home)) {
        str_addf(error, "cannot make %s: %s\n", home, strerror(errno));
        return NULL;
    }
    char stamp[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", gmtime_r(&now, &utc));
    /* Two runs in one second differ by their process. */
    const char *path =
        arena_printf(arena, "%s/%s-%s-%s.%d.json", home,
                     json_string_value(json_object_get(results, "commit")),
                     json_string_value(json_object_get(results, "config")),
                     stamp, (int)getpid());
    const char *about = arena_printf(arena, "%s/machine.json", home);
    return store(about, machine, error) && store(path, results, error) ? path
                                                                       : NULL;
}

/* ---- table ------------------------------------------------------------ */

static const char *ratio_text(Arena *arena, const ModelResult *r,
                              const ModeResult *m)
{
    if (!r->has_ratio || strcmp(m->mode, "fused"))
        return "";
    return arena_printf(arena, "%.2f [%.2f, %.2f]", r->ratio.value,
                        r->ratio.low, r->ratio.high);
}

static const char *accuracy_text(Arena *arena, const ModelResult *r,
                                 const ModeResult *m)
{
    const Accuracy *a = &m->accuracy;
    if (a->name)
        return arena_printf(arena, "%s %.2f %% of %d", a->title,
                            100 * a->value, a->examples);
    return r->labels_missing ? "skipped" : "";
}

static const char *error_text(Arena *arena, const ModeResult *m)
{
    const json_t *error = json_object_get(m->check, "max_error");
    return json_is_number(error)
               ? arena_printf(arena, "%.1e", json_number_value(error))
               : "";
}

static void print_row(Arena *arena, FILE *file, const ModelResult *r,
                      const ModeResult *m, int width)
{
    bool timed = !isnan(m->p50);
    double share = m->flops / m->p50 / (r->fma_gflops * 1e9);
    double over =
        m->arena_bound ? (double)m->arena_bytes / (double)m->arena_bound : NAN;
    fprintf(file, "%-*s %-8s %9s %-18s %9s %6s %8s %-22s %6s  %s\n", width,
            r->label, m->mode, timed ? format_seconds(arena, m->p50) : "-",
            ratio_text(arena, r, m),
            m->arena_bytes ? format_bytes(arena, (double)m->arena_bytes) : "-",
            isnan(over) ? "-" : arena_printf(arena, "%.2f", over),
            error_text(arena, m), accuracy_text(arena, r, m),
            timed && r->fma_gflops > 0
                ? arena_printf(arena, "%.0f %%", 100 * share)
                : "-",
            mode_status_name(m->status));
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

void results_print_table(Arena *arena, FILE *file, const ModelResult *models,
                         int count)
{
    int width = 5;
    for (int i = 0; i < count; i++) {
        int length = (int)strlen(models[i].label);
        width = length > width ? length : width;
    }
    fprintf(file, "%-*s %-8s %9s %-18s %9s %6s %8s %-22s %6s  %s\n", width,
            "model", "mode", "p50", "fused/unfused", "arena", "/bound",
            "error", "accuracy", "peak", "status");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < models[i].mode_count; k++)
            print_row(arena, file, &models[i], &models[i].modes[k], width);
    fprintf(file,
            "\nfused/unfused: how many times faster fused is, with its 95 %% "
            "interval. /bound: arena over\nits live-set lower bound. error: "
            "largest difference from the reference, in units of\nthe "
            "output's rms. peak: share of the f32 FMA peak measured in this "
            "run.\n");
    for (int i = 0; i < count; i++) {
        const ModelResult *r = &models[i];
        if (r->blocks_disturbed)
            fprintf(file,
                    "\n%s: something else used the machine during %d of %d "
                    "blocks of measurements\n",
                    r->label, r->blocks_disturbed, r->blocks);
        if (r->labels_missing)
            fprintf(file, "\n%s: accuracy skipped: %s\n", r->label,
                    r->labels_missing);
        for (int k = 0; k < r->mode_count; k++)
            if (r->modes[k].reason)
                fprintf(file, "\n%s %s: %s\n", r->label, r->modes[k].mode,
                        r->modes[k].reason);
    }
}
