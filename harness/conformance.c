#include "harness/conformance.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* ---- the list --------------------------------------------------------- */

/* Calls `take` with each line of the file that is no comment; a line that it
 * does not take is an error, which says `form`. */
static bool read_lines(const char *path, const char *form,
                       bool (*take)(void *list, char *line), void *list,
                       Str *error)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        str_addf(error, "%s: %s\n", path, strerror(errno));
        return false;
    }
    char *line = NULL;
    size_t size = 0;
    bool ok = true;
    for (int number = 1; ok && getline(&line, &size, file) >= 0; number++) {
        line[strcspn(line, "\n")] = 0;
        ok = !*line || *line == '#' || take(list, line);
        if (!ok)
            str_addf(error, "%s:%d: %s\n", path, number, form);
    }
    free(line);
    fclose(file);
    return ok;
}

static bool take_expected(void *user, char *line)
{
    ExpectedList *list = user;
    Arena *arena = list->reasons.arena;
    char *colon = strstr(line, ": ");
    if (!colon)
        return false;
    char *name = arena_strndup(arena, line, (size_t)(colon - line));
    if (map_get(&list->reasons, name))
        return false;
    map_set(&list->reasons, name, arena_strdup(arena, colon + 2));
    list->count++;
    return true;
}

bool expected_read(Arena *arena, const char *path, ExpectedList *list,
                   Str *error)
{
    map_init(&list->reasons, arena);
    return read_lines(path, "give each name once, as NAME: reason",
                      take_expected, list, error);
}

const char *expected_reason(const ExpectedList *list, const char *name)
{
    return list->count ? map_get(&list->reasons, name) : NULL;
}

static bool take_name(void *user, char *line)
{
    NameList *list = user;
    Arena *arena = list->set.arena;
    if (strpbrk(line, " \t:") || map_get(&list->set, line))
        return false;
    char *name = arena_strdup(arena, line);
    map_set(&list->set, name, name);
    vec_push(arena, &list->names, name);
    return true;
}

bool names_read(Arena *arena, const char *path, NameList *list, Str *error)
{
    map_init(&list->set, arena);
    return read_lines(path, "give the name of one case, once", take_name, list,
                      error);
}

bool names_have(const NameList *list, const char *name)
{
    return list->names.count && map_get(&list->set, name);
}

bool case_differs(const CaseRow *row)
{
    switch (row->result.status) {
    case CASE_OK:
        return row->excuse != NULL;
    case CASE_REFUSED:
    case CASE_FAILED_CHECK:
        return !row->excuse || !row->folder;
    default:
        return true;
    }
}

const char *case_outcome(const CaseRow *row)
{
    if (!row->folder)
        return "missing";
    if (row->excuse && row->result.status == CASE_OK)
        return "unexpected ok";
    if (row->excuse && !case_differs(row))
        return "expected";
    return case_status_name(row->result.status);
}

/* ---- the table by operator -------------------------------------------- */

typedef struct OpRow {
    const char *op;
    int passed, expected, differ;
    double excess;
} OpRow;

/* Of a case whose model cannot be read: the stem of its name, without the
 * "test_" before it. */
static const char *op_of(Arena *arena, const CaseRow *row)
{
    if (*row->result.op)
        return row->result.op;
    const char *slash = strrchr(row->name, '/');
    const char *name = slash ? slash + 1 : row->name;
    name += strncmp(name, "test_", 5) ? 0 : 5;
    return arena_printf(arena, "(%.*s)", (int)strcspn(name, "_"), name);
}

static int by_op(const void *x, const void *y)
{
    return strcasecmp(((const OpRow *)x)->op, ((const OpRow *)y)->op);
}

void conformance_print_table(Arena *arena, FILE *file, const CaseRow *rows,
                             int count, double seconds)
{
    Vec(OpRow) ops = {0};
    OpRow all = {.op = "all"};
    for (int i = 0; i < count; i++) {
        const char *name = op_of(arena, &rows[i]);
        int at = 0;
        while (at < ops.count && strcmp(ops.data[at].op, name))
            at++;
        if (at == ops.count) {
            OpRow fresh = {.op = name};
            vec_push(arena, &ops, fresh);
        }
        OpRow *to[] = {&ops.data[at], &all};
        bool ok = rows[i].result.status == CASE_OK;
        for (int k = 0; k < 2; k++) {
            to[k]->passed += ok;
            to[k]->expected += !ok && !case_differs(&rows[i]);
            to[k]->differ += case_differs(&rows[i]);
            to[k]->excess = fmax(to[k]->excess, rows[i].result.max_excess);
        }
    }
    if (ops.count)
        qsort(ops.data, (size_t)ops.count, sizeof *ops.data, by_op);
    vec_push(arena, &ops, all);
    fprintf(file, "%-28s %7s %9s %7s %10s\n", "operator", "passed", "expected",
            "differ", "error");
    for (int i = 0; i < ops.count; i++)
        fprintf(file, "%-28s %7d %9d %7d %10.2g\n", ops.data[i].op,
                ops.data[i].passed, ops.data[i].expected, ops.data[i].differ,
                ops.data[i].excess);
    fprintf(file,
            "\n%d cases in %.0f s. expected: failures that are listed with a "
            "reason. differ: failures that\nare not, and listed ones that "
            "pass. error: largest of what is allowed.\n",
            count, seconds);
    for (int i = 0; i < count; i++)
        if (case_differs(&rows[i]))
            fprintf(file, "\n%s%s%s: %s: %s\n", rows[i].name,
                    rows[i].result.level ? " at " : "",
                    rows[i].result.level ? rows[i].result.level : "",
                    case_outcome(&rows[i]),
                    rows[i].excuse && rows[i].result.status == CASE_OK
                        ? "take it off the list"
                        : rows[i].result.reason);
}

/* ---- for programs ----------------------------------------------------- */

/* Messages quote names of models, which may be in any encoding. */
static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);
    return value ? value : json_string("(not UTF-8)");
}

void conformance_print_json(FILE *file, const CaseRow *rows, int count,
                            double seconds)
{
    json_t *list = json_array();
    int passed = 0, differ = 0;
    for (int i = 0; i < count; i++) {
        const ValidateResult *r = &rows[i].result;
        passed += r->status == CASE_OK;
        differ += case_differs(&rows[i]);
        json_t *row = json_pack(
            "{s:o, s:o, s:s, s:s, s:o, s:o, s:b, s:f, s:f}", "name",
            text_json(rows[i].name), "op", text_json(r->op), "outcome",
            case_outcome(&rows[i]), "status", case_status_name(r->status),
            "bound", text_json(r->bound), "open", text_json(r->open),
            "differs", case_differs(&rows[i]), "max_excess",
            isfinite(r->max_excess) ? r->max_excess : -1, "seconds",
            r->seconds);
        if (r->level)
            json_object_set_new(row, "level", json_string(r->level));
        if (*r->reason)
            json_object_set_new(row, "reason", text_json(r->reason));
        if (rows[i].excuse)
            json_object_set_new(row, "excuse", text_json(rows[i].excuse));
        json_array_append_new(list, row);
    }
    json_t *root =
        json_pack("{s:i, s:i, s:i, s:f, s:o}", "cases", count, "passed",
                  passed, "differ", differ, "seconds", seconds, "rows", list);
    json_dumpf(root, file, JSON_INDENT(1));
    fputc('\n', file);
    json_decref(root);
}

/* Control characters are no XML at all, nor is what is not UTF-8. */
static void print_escaped(FILE *file, const char *text)
{
    json_t *valid = json_string(text);
    bool is_text = valid != NULL;
    json_decref(valid);
    for (const char *c = text; *c; c++)
        if (*c == '<')
            fputs("&lt;", file);
        else if (*c == '>')
            fputs("&gt;", file);
        else if (*c == '&')
            fputs("&amp;", file);
        else if (*c == '"')
            fputs("&quot;", file);
        else if (!is_text && (unsigned char)*c >= 0x80)
            fputc('?', file);
        else
            fputc(iscntrl((unsigned char)*c) ? ' ' : *c, file);
}

void conformance_print_junit(FILE *file, const CaseRow *rows, int count,
                             double seconds)
{
    int differ = 0, excused = 0;
    for (int i = 0; i < count; i++) {
        differ += case_differs(&rows[i]);
        excused += rows[i].excuse && !case_differs(&rows[i]);
    }
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"assay validate\" tests=\"%d\" failures=\"%d\" "
            "skipped=\"%d\" time=\"%.3f\">\n",
            count, differ, excused, seconds);
    for (int i = 0; i < count; i++) {
        const ValidateResult *r = &rows[i].result;
        fprintf(file, "<testcase classname=\"");
        print_escaped(file, *r->op ? r->op : "unsupported");
        fprintf(file, "\" name=\"");
        print_escaped(file, rows[i].name);
        fprintf(file, "\" time=\"%.3f\">", r->seconds);
        if (case_differs(&rows[i])) {
            fprintf(file, "<failure message=\"");
            print_escaped(file, case_outcome(&rows[i]));
            fputs("\">", file);
            print_escaped(file, r->reason);
            fputs("</failure>", file);
        } else if (rows[i].excuse) {
            fputs("<skipped message=\"", file);
            print_escaped(file, rows[i].excuse);
            fputs("\"/>", file);
        }
        fputs("</testcase>\n", file);
    }
    fputs("</testsuite>\n", file);
}
