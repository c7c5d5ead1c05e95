#include "reports/plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "base/replace.h"
#include "reports/html.h"
#include "reports/svg.h"

/* Marks a plot's place in the page: a control, which no escaped text has. */
#define MARK '\1'

Plots *plots_new(Arena *arena)
{
    Plots *plots = ARENA_NEW(arena, Plots);
    plots->arena = arena;
    str_add(&plots->script, "scripts = ARG2\ncd ARG1\n");
    return plots;
}

Plot *plot_begin(Plots *plots, Str *page, int width, int height,
                 Margins margins, const char *alt)
{
    int number = plots->list.count;
    Plot plot = {.width = width, .height = height, .alt = alt};
    vec_push(plots->arena, &plots->list, plot);
    str_addf(page, "%c%d%c", MARK, number, MARK);
    str_addf(&plots->script,
             "width = %d; height = %d\n"
             "left = %d; right = %d; top = %d; bottom = %d\n"
             "load scripts.'/style.gp'\nset output '%d.svg'\n",
             width, height, margins.left, margins.right, margins.top,
             margins.bottom, number);
    return &plots->list.data[number];
}

void plot_end(Plots *plots, const char *script)
{
    str_addf(&plots->script, "load scripts.'/%s'\n", script);
}

const char *plot_label(Plots *plots, const char *text, int limit)
{
    Str escaped = {0};
    html_add_short(&escaped, text, limit);
    vec_push(plots->arena, &plots->labels,
             (const char *)arena_strdup(plots->arena, str_text(&escaped)));
    str_free(&escaped);
    return arena_printf(plots->arena, "@%d", plots->labels.count - 1);
}

static void add_unit(Plots *plots, const char *text, const char *place,
                     const char *align)
{
    if (*text)
        str_addf(&plots->script, "set label \"%s\" at %s %s tc rgb text\n",
                 plot_label(plots, text, 16), place, align);
}

void plot_units(Plots *plots, const Plot *plot, const char *y, const char *x)
{
    add_unit(plots, y,
             arena_printf(plots->arena, "screen 0.005, screen %.4f",
                          1 - 8.0 / plot->height),
             "left");
    add_unit(plots, x,
             arena_printf(plots->arena, "screen 0.995, screen %.4f",
                          8.0 / plot->height),
             "right");
}

void plot_tip(Plots *plots, Plot *plot, const char *text)
{
    vec_push(plots->arena, &plot->tips, text);
}

/* ---- drawing ---------------------------------------------------------- */

static void remove_folder(const Plots *plots, const char *folder)
{
    for (int i = 0; i < plots->list.count; i++)
        unlink(arena_printf(plots->arena, "%s/%d.svg", folder, i));
    unlink(arena_printf(plots->arena, "%s/page.gp", folder));
    rmdir(folder);
}

static bool read_text(const char *path, Str *text)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return false;
    char block[16384];
    size_t size;
    while ((size = fread(block, 1, sizeof block, file)))
        str_add_bytes(text, block, size);
    bool ok = !ferror(file);
    fclose(file);
    return ok;
}

static bool run_gnuplot(Plots *plots, const char *scripts, const char *folder,
                        Str *error)
{
    const char *page = arena_printf(plots->arena, "%s/page.gp", folder);
    if (!replace_file(page, str_text(&plots->script), plots->script.length)) {
        str_addf(error, "cannot write %s: %s\n", page, strerror(errno));
        return false;
    }
    /* Folders are arguments, as their names may hold anything. */
    const char *const argv[] = {"gnuplot", "-c", page, folder, scripts, NULL};
    Str err = {0};
    bool ok = process_ok(argv, &err);
    if (!ok)
        str_addf(error, "cannot draw plots: %s; ci/setup installs gnuplot\n",
                 err.length ? str_text(&err) : "gnuplot failed");
    str_free(&err);
    return ok;
}

bool plots_draw(Plots *plots, const char *scripts, Str *error)
{
    if (!plots->list.count)
        return true;
    const char *base = getenv("TMPDIR");
    char *folder = arena_printf(plots->arena, "%s/assay-report-XXXXXX",
                                base && *base ? base : "/tmp");
    char *home = realpath(scripts, NULL);
    if (!home || !mkdtemp(folder)) {
        str_addf(error, "cannot use %s: %s\n", home ? folder : scripts,
                 strerror(errno));
        free(home);
        return false;
    }
    cleanup_add_path(folder);
    bool ok = run_gnuplot(plots, home, folder, error);
    free(home);
    plots->drawn = ARENA_ARRAY(plots->arena, Str, plots->list.count);
    for (int i = 0; ok && i < plots->list.count; i++) {
        const char *path = arena_printf(plots->arena, "%s/%d.svg", folder, i);
        Str drawn = {0};
        ok = read_text(path, &drawn);
        if (ok)
            svg_add(&plots->drawn[i], str_text(&drawn), &plots->list.data[i],
                    plots);
        else
            str_addf(error, "cannot read %s: %s\n", path, strerror(errno));
        str_free(&drawn);
    }
    remove_folder(plots, folder);
    cleanup_forget_path(folder);
    return ok;
}

void plots_fill(const Plots *plots, const char *page, Str *out)
{
    const char *mark;
    while ((mark = strchr(page, MARK))) {
        str_add_bytes(out, page, (size_t)(mark - page));
        int number = atoi(mark + 1);
        str_add(out, str_text(&plots->drawn[number]));
        page = strchr(mark + 1, MARK) + 1;
    }
    str_add(out, page);
}

void plots_free(Plots *plots)
{
    for (int i = 0; plots->drawn && i < plots->list.count; i++)
        str_free(&plots->drawn[i]);
    str_free(&plots->script);
}
