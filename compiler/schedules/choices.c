#include "schedules/choices.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

ChoiceScope choice_scope(Arena *arena, const Target *t, const char *backend)
{
    ChoiceScope scope = {.target = t->name};
    scope.cpu = arena_printf(
        arena, "%dx%d,%lldK,%lldK,%08x", t->vector_bytes, t->vector_registers,
        (long long)t->l1_bytes >> 10, (long long)t->l2_bytes >> 10,
        (unsigned)(hash_text(t->features ? t->features : "") >> 32));
    scope.compiler = arena_printf(arena, "%d.%s", SCHEDULE_VERSION, backend);
    return scope;
}

/* ---- fields ----------------------------------------------------------- */

typedef enum FieldKind { FIELD_TEXT, FIELD_HASH, FIELD_REAL, FIELD_INT } Kind;

typedef struct Field {
    const char *name;
    Kind kind;
    size_t at; /* in a ChoiceRow */
} Field;

#define AT(member) offsetof(ChoiceRow, member)

/* All of them are on every line, in this order. */
static const Field of_key[] = {
    {"kernel", FIELD_TEXT, AT(kernel)},
    {"type", FIELD_TEXT, AT(type)},
    {"in", FIELD_TEXT, AT(in)},
    {"layout", FIELD_TEXT, AT(layout)},
    {"target", FIELD_TEXT, AT(scope.target)},
    {"cpu", FIELD_TEXT, AT(scope.cpu)},
    {"compiler", FIELD_TEXT, AT(scope.compiler)},
    {"def", FIELD_HASH, AT(def)},
    {NULL, FIELD_TEXT, 0},
};
static const Field of_measurement[] = {
    {"ms", FIELD_REAL, AT(ms)},
    {"usual_ms", FIELD_REAL, AT(usual_ms)},
    {"ratio", FIELD_REAL, AT(ratio)},
    {"low", FIELD_REAL, AT(low)},
    {"high", FIELD_REAL, AT(high)},
    {"threads", FIELD_INT, AT(threads)},
    {NULL, FIELD_TEXT, 0},
};

static void print_fields(Str *out, const ChoiceRow *row, const Field *fields)
{
    for (const Field *f = fields; f->name; f++) {
        const char *at = (const char *)row + f->at;
        str_addf(out, "%s%s=", f == fields ? "" : " ", f->name);
        if (f->kind == FIELD_TEXT)
            str_add(out, *(const char *const *)at);
        else if (f->kind == FIELD_HASH)
            str_addf(out, "%016llx",
                     (unsigned long long)*(const uint64_t *)at);
        else if (f->kind == FIELD_REAL)
            str_addf(out, "%.5g", *(const double *)at);
        else
            str_addf(out, "%d", *(const int *)at);
    }
}

void choice_row_print(Str *out, const ChoiceRow *row)
{
    print_fields(out, row, of_key);
    str_add(out, " | ");
    if (row->algorithm)
        str_addf(out, "algorithm=%s", row->algorithm);
    else if (row->choice.count)
        choice_print(out, &row->choice);
    else
        str_add(out, "usual");
    str_add(out, " | ");
    print_fields(out, row, of_measurement);
    str_add(out, "\n");
}

/* ---- reading ---------------------------------------------------------- */

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    const char *file;
    int line;
} Reader;

static bool fault(const Reader *r, const char *what, const char *text)
{
    return diag_error(r->diag, "%s:%d: %s \"%s\"; correct or remove the line",
                      r->file, r->line, what, text);
}

static bool read_value(const Reader *r, const Field *f, const char *text,
                       ChoiceRow *row)
{
    char *at = (char *)row + f->at, *end = NULL;
    errno = 0;
    if (f->kind == FIELD_TEXT) {
        *(const char **)at = text;
        return true;
    }
    if (f->kind == FIELD_HASH) {
        *(uint64_t *)at = strtoull(text, &end, 16);
        /* Nothing but digits: no sign, no 0x. */
        if (strspn(text, "0123456789abcdef") != strlen(text))
            end = NULL;
    } else if (f->kind == FIELD_REAL) {
        double value = strtod(text, &end);
        *(double *)at = value;
        if (!isfinite(value) || value < 0)
            end = NULL;
    } else {
        long value = strtol(text, &end, 10);
        *(int *)at = (int)value;
        if (value < 0 || value > 1 << 20)
            end = NULL;
    }
    if (!end || end == text || *end || errno)
        return fault(r, arena_printf(r->arena, "%s is no number:", f->name),
                     text);
    return true;
}

/* NAME=VALUE of exactly `fields`, each once. */
static bool read_fields(const Reader *r, char *part, const Field *fields,
                        ChoiceRow *row)
{
    unsigned seen = 0;
    char *rest = NULL;
    for (char *word = strtok_r(part, " \t", &rest); word;
         word = strtok_r(NULL, " \t", &rest)) {
        char *equals = strchr(word, '=');
        if (!equals || !equals[1])
            return fault(r, "no NAME=VALUE:", word);
        *equals = 0;
        const Field *f = fields;
        while (f->name && strcmp(f->name, word))
            f++;
        if (!f->name)
            return fault(r, "no such field:", word);
        if (seen >> (f - fields) & 1)
            return fault(r, "twice on the line:", word);
        seen |= 1u << (f - fields);
        if (!read_value(r, f, equals + 1, row))
            return false;
    }
    for (const Field *f = fields; f->name; f++)
        if (!(seen >> (f - fields) & 1))
            return fault(r, "missing:", f->name);
    return true;
}

static bool read_knobs(const Reader *r, char *part, ChoiceRow *row)
{
    char *rest = NULL;
    int words = 0;
    for (char *word = strtok_r(part, " \t", &rest); word;
         word = strtok_r(NULL, " \t", &rest), words++) {
        char *equals = strchr(word, '='), *end;
        if (!equals && !words && !strcmp(word, "usual")) {
            word = strtok_r(NULL, " \t", &rest);
            return !word || fault(r, "beside \"usual\":", word);
        }
        if (row->algorithm)
            return fault(r, "beside an algorithm:", word);
        if (!words && !strncmp(word, "algorithm=", 10) && word[10]) {
            row->algorithm = word + 10;
            continue;
        }
        if (!equals || equals == word)
            return fault(r, "no KNOB=VALUE:", word);
        *equals = 0;
        errno = 0;
        long long value = strtoll(equals + 1, &end, 10);
        if (end == equals + 1 || *end || errno)
            return fault(r, arena_printf(r->arena, "%s is no number:", word),
                         equals + 1);
        if (choice_find(&row->choice, word))
            return fault(r, "twice on the line:", word);
        if (!choice_set(&row->choice, word, value))
            return fault(r, "more knobs than there are:", word);
    }
    return words || fault(r, "no knob, and not", "usual");
}

static bool is_blank(const char *line)
{
    line += strspn(line, " \t");
    return !*line || *line == '#';
}

static bool read_line(const Reader *r, char *line, ChoiceRow *row)
{
    *row = (ChoiceRow){.line = r->line};
    char *knobs = strchr(line, '|');
    char *measured = knobs ? strchr(knobs + 1, '|') : NULL;
    if (!measured || strchr(measured + 1, '|'))
        return fault(r, "not three parts with | between them:",
                     arena_strndup(r->arena, line, 60));
    *knobs++ = *measured++ = 0;
    return read_fields(r, line, of_key, row) && read_knobs(r, knobs, row) &&
           read_fields(r, measured, of_measurement, row);
}

ChoiceLog *choices_parse(Arena *arena, Diag *diag, const char *file,
                         const char *text)
{
    ChoiceLog *c = ARENA_NEW(arena, ChoiceLog);
    Reader r = {arena, diag, file, 0};
    bool ok = true;
    c->file = arena_strdup(arena, file);
    while (*text) {
        size_t length = strcspn(text, "\n");
        char *line = arena_strndup(arena, text, length);
        ChoiceRow row;
        r.line++;
        text += length + (text[length] != 0);
        if (length && line[length - 1] == '\r')
            line[length - 1] = 0;
        if (is_blank(line))
            continue;
        if (read_line(&r, line, &row))
            vec_push(arena, &c->rows, row);
        else
            ok = false;
    }
    return ok ? c : NULL;
}

/* All of a file as text; NULL with errno set. A byte 0 is no text: what
 * follows would not be seen. */
static char *read_text(Arena *arena, const char *path)
{
    FILE *file = fopen(path, "rb");
    Str text = {0};
    char block[4096];
    size_t n;
    if (!file)
        return NULL;
    /* Some thousand lines are a lot; a device may never end. */
    const size_t most = 64 << 20;
    while (text.length <= most &&
           (n = fread(block, 1, sizeof block, file)) > 0)
        str_add_bytes(&text, block, n);
    int error = ferror(file) ? errno : text.length > most ? EFBIG : 0;
    fclose(file);
    if (!error && strlen(str_text(&text)) != text.length)
        error = EILSEQ;
    char *result = error ? NULL : arena_strdup(arena, str_text(&text));
    str_free(&text);
    errno = error;
    return result;
}

ChoiceLog *choices_read(Arena *arena, Diag *diag, const char *path)
{
    char *text = read_text(arena, path);
    if (text)
        return choices_parse(arena, diag, path, text);
    diag_error(diag, "choices %s: %s%s", path,
               errno == EILSEQ ? "it is no text" : strerror(errno),
               errno == EILSEQ || errno == EFBIG
                   ? "; name a log that assay tune wrote"
                   : "");
    return NULL;
}

/* ---- looking up ------------------------------------------------------- */

static bool same_scope(const ChoiceScope *a, const ChoiceScope *b)
{
    return !strcmp(a->target, b->target) && !strcmp(a->cpu, b->cpu) &&
           !strcmp(a->compiler, b->compiler);
}

const ChoiceRow *choices_find(const ChoiceLog *c, const ChoiceScope *scope,
                              uint64_t def)
{
    for (int i = c->rows.count - 1; i >= 0; i--)
        if (c->rows.data[i].def == def &&
            same_scope(&c->rows.data[i].scope, scope))
            return &c->rows.data[i];
    return NULL;
}

int choices_count_others(const ChoiceLog *c, const ChoiceScope *scope)
{
    int count = 0;
    for (int i = 0; i < c->rows.count; i++)
        count += !same_scope(&c->rows.data[i].scope, scope);
    return count;
}

bool choice_row_same_key(const ChoiceRow *a, const ChoiceRow *b)
{
    return a->def == b->def && same_scope(&a->scope, &b->scope);
}

/* ---- extending -------------------------------------------------------- */

bool choices_merge(Str *out, Diag *diag, const char *file, const char *text,
                   const ChoiceRow *rows, int count)
{
    const ChoiceLog *old = choices_parse(diag->arena, diag, file, text);
    int number = 0, at = 0;
    if (!old)
        return false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        const ChoiceRow *own = NULL;
        bool is_replaced = false;
        number++;
        if (at < old->rows.count && old->rows.data[at].line == number)
            own = &old->rows.data[at++];
        for (int i = 0; own && i < count; i++)
            is_replaced |= choice_row_same_key(own, &rows[i]);
        if (!is_replaced) {
            str_add_bytes(out, text, length);
            str_add(out, "\n");
        }
        text += length + (text[length] != 0);
    }
    for (int i = 0; i < count; i++)
        choice_row_print(out, &rows[i]);
    return true;
}
