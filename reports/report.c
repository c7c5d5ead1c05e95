/* A page is made in memory, with marks for its plots; then gnuplot draws all
 * of them at once, and the whole is written. */
#include "reports/report.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/replace.h"
#include "reports/html.h"
#include "reports/page.h"

/* Histories of one machine and configuration, one a suite. */
typedef struct RunSet {
    const History *const *histories;
    int count;
    const char *file; /* its page */
    Judged **judged;
} RunSet;

typedef struct Report {
    Arena *arena;
    const char *scripts, *out;
    ReportData data;
    Vec(RunSet) sets;
    Str style, script; /* of every page */
    Str *notes, *error;
} Report;

/* ---- files ------------------------------------------------------------ */

static bool read_part(Report *r, const char *name, Str *text)
{
    const char *path = arena_printf(r->arena, "%s/%s", r->scripts, name);
    FILE *file = fopen(path, "rbe");
    if (!file) {
        str_addf(r->error, "cannot read %s: %s\n", path, strerror(errno));
        return false;
    }
    char block[4096];
    size_t size;
    while ((size = fread(block, 1, sizeof block, file)))
        str_add_bytes(text, block, size);
    fclose(file);
    return true;
}

static bool write_page(Report *r, const char *name, const Str *text)
{
    const char *path = arena_printf(r->arena, "%s/%s", r->out, name);
    bool ok = replace_file(path, str_text(text), text->length);
    if (!ok)
        str_addf(r->error, "cannot write %s: %s\n", path, strerror(errno));
    return ok;
}

static void add_head(Report *r, Str *out, const char *title)
{
    str_add(out,
            "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" "
            "lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
            "<meta name=\"viewport\" content=\"width=device-width, "
            "initial-scale=1\"/>\n"
            "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>");
    html_add_short(out, title, 100);
    str_addf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n",
             str_text(&r->style));
}

static void add_foot(Report *r, Str *out)
{
    str_addf(out, "<script>\n%s</script>\n</body>\n</html>\n",
             str_text(&r->script));
}

/* ---- run sets --------------------------------------------------------- */

/* A name of letters, digits and ".-_" that no set before has. */
static const char *file_name(Report *r, const History *h)
{
    char *name = arena_printf(r->arena, "%.80s-%.80s", h->machine, h->config);
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(".-_", *c))
            *c = '_';
    const char *file = arena_printf(r->arena, "%s.html", name);
    for (int copy = 2, i = 0; i < r->sets.count; i++)
        if (!strcmp(r->sets.data[i].file, file)) {
            file = arena_printf(r->arena, "%s-%d.html", name, copy++);
            i = -1;
        }
    return file;
}

static void find_sets(Report *r)
{
    for (int i = 0; i < r->data.histories.count;) {
        History *const *first = &r->data.histories.data[i];
        RunSet set = {.histories = (const History *const *)first};
        while (
            i < r->data.histories.count &&
            !strcmp(r->data.histories.data[i]->machine, (*first)->machine) &&
            !strcmp(r->data.histories.data[i]->config, (*first)->config)) {
            set.count++;
            i++;
        }
        set.judged = ARENA_ARRAY(r->arena, Judged *, set.count);
        set.file = file_name(r, *first);
        vec_push(r->arena, &r->sets, set);
    }
    if (r->sets.count == 1)
        r->sets.data[0].file = "index.html";
}

static const char *set_title(Report *r, const RunSet *set)
{
    return arena_printf(r->arena, "%s on %s", set->histories[0]->config,
                        set->histories[0]->machine);
}

/* ---- pages ------------------------------------------------------------ */

static void add_sections(Page *p, const Judged *j, bool first)
{
    if (is_peer_suite(j->h)) {
        page_add_peers(p, j);
        return;
    }
    page_add_overview(p, j, first);
    page_add_changes(p, j);
    page_add_trends(p, j);
    page_add_comparisons(p, j);
    page_add_accuracy(p, j);
    page_add_roofline(p, j);
    page_add_kernels(p, j);
    page_add_models(p, j);
}

static void add_notes(Report *r, Str *out)
{
    if (!r->notes->length)
        return;
    str_add(out, "<section id=\"notes\"><h2>Left out</h2>\n<p class=\"note\">"
                 "Files and fields that are not as they should be.</p>\n"
                 "<ul class=\"notes\">\n");
    const char *at = str_text(r->notes);
    while (*at) {
        size_t length = strcspn(at, "\n");
        str_add(out, "<li>");
        html_add(out, arena_strndup(r->arena, at, length));
        str_add(out, "</li>\n");
        at += length + (at[length] == '\n');
    }
    str_add(out, "</ul></section>\n");
}

static bool write_set(Report *r, RunSet *set)
{
    Arena *arena = arena_new();
    Page page = {.arena = arena, .data = &r->data, .plots = plots_new(arena)};
    for (int i = 0; i < set->count; i++)
        set->judged[i] = judge(arena, &r->data, set->histories[i], r->notes);
    /* Colours go by the order of the file, not of the verdicts. */
    for (int i = 0; i < set->count; i++)
        for (int c = 0; c < set->histories[i]->cases.count; c++)
            if (!is_kernel_suite(set->histories[i]))
                page_mode(&page, set->histories[i]->cases.data[c].mode);
    const Judged *const *js = (const Judged *const *)set->judged;
    page_add_top(&page, js, set->count);
    for (int i = 0; i < set->count; i++)
        page_add_failures(&page, js[i]);
    str_add(&page.body, "\2"); /* where the links go */
    for (int i = 0; i < set->count; i++)
        add_sections(&page, js[i], i == 0);
    page_add_machine(&page, js[0]);
    if (r->notes->length)
        str_add(&page.links, "<a href=\"#notes\">Left out</a>\n");
    add_notes(r, &page.body);
    bool ok = plots_draw(page.plots, r->scripts, r->error);
    if (ok) {
        Str out = {0};
        add_head(r, &out, set_title(r, set));
        const char *body = str_text(&page.body);
        const char *mark = strchr(body, 2);
        str_add_bytes(&out, body, (size_t)(mark - body));
        str_addf(&out, "<nav>\n%s%s</nav>\n<main>\n",
                 r->sets.count > 1 ? "<a href=\"index.html\">All</a>\n" : "",
                 str_text(&page.links));
        plots_fill(page.plots, mark + 1, &out);
        str_add(&out, "</main>\n");
        add_foot(r, &out);
        ok = write_page(r, set->file, &out);
        str_free(&out);
    }
    /* The index needs the counts. */
    for (int i = 0; i < set->count; i++) {
        judged_free(set->judged[i]);
        set->judged[i] = arena_copy(r->arena, set->judged[i], sizeof(Judged));
    }
    plots_free(page.plots);
    str_free(&page.body);
    str_free(&page.links);
    arena_free(arena);
    return ok;
}

static void add_card(Report *r, Str *out, const RunSet *set)
{
    const History *h = set->histories[0];
    const Run *run = &h->runs.data[history_newest(h)];
    str_addf(out, "<li><a class=\"card\" href=\"%s\"><h2>", set->file);
    html_add_short(out, h->config, 60);
    str_add(out, "</h2>\n<p class=\"where\">");
    html_add_short(out, h->machine, 80);
    str_addf(out, "</p>\n<p>%d run%s, newest <code>", h->runs.count,
             h->runs.count == 1 ? "" : "s");
    html_add_short(out, format_commit(r->arena, run->commit, run->dirty), 12);
    str_addf(out, "</code> of %s</p>\n", format_time(r->arena, run->time));
    for (int i = 0; i < set->count; i++) {
        if (set->count > 1) {
            str_add(out, "<p class=\"suite\">");
            html_add_short(out, set->histories[i]->suite, 40);
            str_add(out, "</p>\n");
        }
        page_add_tiles(out, set->judged[i]);
    }
    str_add(out, "</a></li>\n");
}

static bool write_index(Report *r)
{
    Str out = {0};
    add_head(r, &out, "Assay: results");
    str_addf(&out,
             "<header>\n<p class=\"brand\">Assay</p>\n<h1>Results</h1>\n"
             "<p class=\"where\">%d machines and configurations</p>\n"
             "</header>\n<main>\n<ul class=\"cards\">\n",
             r->sets.count);
    for (int i = 0; i < r->sets.count; i++)
        add_card(r, &out, &r->sets.data[i]);
    str_add(&out, "</ul>\n");
    add_notes(r, &out);
    str_add(&out, "</main>\n");
    add_foot(r, &out);
    bool ok = write_page(r, "index.html", &out);
    str_free(&out);
    return ok;
}

bool report_write(const char *results, const char *scripts, const char *out,
                  Str *notes, Str *error)
{
    Report r = {.arena = arena_new(),
                .scripts = scripts,
                .out = out,
                .notes = notes,
                .error = error};
    bool ok = read_part(&r, "page.css", &r.style) &&
              read_part(&r, "page.js", &r.script) &&
              data_read(r.arena, results, &r.data, notes, error);
    if (ok)
        find_sets(&r);
    for (int i = 0; ok && i < r.sets.count; i++)
        ok = write_set(&r, &r.sets.data[i]);
    if (ok && r.sets.count > 1)
        ok = write_index(&r);
    str_free(&r.style);
    str_free(&r.script);
    arena_free(r.arena);
    return ok;
}
