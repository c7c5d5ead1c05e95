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
    if (!isnan(m->top1))
        return arena_printf(arena, "%.2f %% of %d", 100 * m->top1,
                            m->examples);
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
    fprintf(file, "%-*s %-8s %9s %-18s %9s %6s %8s %-18s %6s  %s\n", width,
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
    fprintf(file, "%-*s %-8s %9s %-18s %9s %6s %8s %-18s %6s  %s\n", width,
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
