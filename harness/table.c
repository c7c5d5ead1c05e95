#include "harness/table.h"

#include <math.h>
#include <string.h>

#include "harness/common.h"

static const char *ratio_text(Arena *arena, const ModelResult *r,
                              const ModeResult *m)
{
    if (!r->has_comparison || strcmp(m->mode, r->comparison.b))
        return "";
    const Pair *p = &r->comparison.pair;
    if (p->failed || !p->blocks)
        return "broken";
    if (isnan(p->ratio.low))
        return arena_printf(arena, "%.2f", p->ratio.value);
    return arena_printf(arena, "%.2f [%.2f, %.2f]", p->ratio.value,
                        p->ratio.low, p->ratio.high);
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

static const char *bytes_text(Arena *arena, double bytes)
{
    return isnan(bytes) ? "-" : format_bytes(arena, bytes);
}

static const char *const row_format =
    "%-*s %-8s %9s %-18s %9s %6s %9s %8s %-22s %6s  %s\n";

static void print_row(Arena *arena, FILE *file, const ModelResult *r,
                      const ModeResult *m, int width)
{
    double share = m->flops / m->p50 / (r->fma_gflops * 1e9);
    double over = m->arena_bound > 0 ? m->arena_bytes / m->arena_bound : NAN;
    fprintf(file, row_format, width, r->label, m->mode,
            isnan(m->p50) ? "-" : format_seconds(arena, m->p50),
            ratio_text(arena, r, m), bytes_text(arena, m->arena_bytes),
            isnan(over) ? "-" : arena_printf(arena, "%.2f", over),
            bytes_text(arena, m->peak_rss_bytes), error_text(arena, m),
            accuracy_text(arena, r, m),
            isfinite(share) ? arena_printf(arena, "%.0f %%", 100 * share)
                            : "-",
            case_status_name(m->status));
}

static void print_notes(FILE *file, const ModelResult *r)
{
    const Pair *p = &r->comparison.pair;
    if (r->has_comparison && p->disturbed)
        fprintf(file,
                "\n%s: something else used the machine during %d of %d "
                "blocks of measurements\n",
                r->label, p->disturbed, p->blocks);
    if (r->has_comparison && r->comparison.reason)
        fprintf(file, "\n%s, %s with %s: %s\n", r->label, r->comparison.a,
                r->comparison.b, r->comparison.reason);
    if (r->labels_missing)
        fprintf(file, "\n%s: accuracy skipped: %s\n", r->label,
                r->labels_missing);
    for (int k = 0; k < r->mode_count; k++)
        if (r->modes[k].reason)
            fprintf(file, "\n%s %s: %s: %s\n", r->label, r->modes[k].mode,
                    case_status_name(r->modes[k].status), r->modes[k].reason);
}

void table_print(Arena *arena, FILE *file, const ModelResult *models,
                 int count)
{
    int width = 5;
    for (int i = 0; i < count; i++) {
        int length = (int)strlen(models[i].label);
        width = length > width ? length : width;
    }
    fprintf(file, row_format, width, "model", "mode", "p50", "fused/unfused",
            "arena", "/bound", "peak RSS", "error", "accuracy", "peak",
            "status");
    for (int i = 0; i < count; i++)
        for (int k = 0; k < models[i].mode_count; k++)
            print_row(arena, file, &models[i], &models[i].modes[k], width);
    fprintf(file,
            "\nfused/unfused: how many times faster fused is, with its 95 %% "
            "interval (none after one\nblock, as with --quick). /bound: arena "
            "over\nits live-set lower bound. error: "
            "largest difference from the reference, in units of\nthe "
            "output's rms. peak: share of the f32 FMA peak measured in this "
            "run.\n");
    for (int i = 0; i < count; i++)
        print_notes(file, &models[i]);
}
