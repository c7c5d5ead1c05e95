#include "reports/read.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    KNOWN_SCHEMA = 2,
    MAX_FAULTS = 8, /* shown of each file */
    MAX_BYTES = 1 << 30
};

/* ---- notes ------------------------------------------------------------ */

void read_fault(Reader *r, const char *place, const char *key,
                const char *text)
{
    if (r->faults++ < MAX_FAULTS)
        str_addf(r->notes, "%s: %s%s%s: %s\n", r->path, place,
                 *place && *key ? "." : "", key, text);
}

void read_end(Reader *r)
{
    if (r->faults > MAX_FAULTS)
        str_addf(r->notes, "%s: %d more faults like these\n", r->path,
                 r->faults - MAX_FAULTS);
    r->faults = 0;
}

/* ---- files ------------------------------------------------------------ */

/* The end of a JSON string that starts at `at`, past its quote, or `end`. */
static char *skip_string(char *at, char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : end;
}

/* The end of the list or object that starts at `at`, or `end`. */
static char *skip_nested(char *at, char *end)
{
    int depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        depth += *at == '[' || *at == '{';
        depth -= *at == ']' || *at == '}';
        at++;
        if (!depth)
            return at;
    }
    return end;
}

static bool is_bulky(const char *key, size_t length)
{
    static const char *const keys[] = {
        "benchmarks", "kernels",    "steps",  "passes",
        "check",      "high_water", "groups", "peer_samples"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strlen(keys[i]) == length && !memcmp(keys[i], key, length))
            return true;
    return false;
}

/* Takes out white space and makes the bulky lists null, in place: a history of
 * hundreds of runs would spend most of its time on parsing what it then
 * drops. What is malformed stays malformed. Returns the new size. */
static size_t trim(char *text, size_t size)
{
    char *end = text + size, *to = text;
    for (char *at = text; at < end;) {
        if (*at && strchr(" \t\r\n", *at)) {
            at++;
            continue;
        }
        if (*at != '"') {
            *to++ = *at++;
            continue;
        }
        char *next = skip_string(at, end);
        size_t length = (size_t)(next - at);
        memmove(to, at, length);
        const char *key = to + 1;
        to += length;
        at = next + strspn(next, " \t\r\n");
        if (*at != ':')
            continue;
        *to++ = *at++;
        at += strspn(at, " \t\r\n");
        if ((*at != '[' && *at != '{') || !is_bulky(key, length - 2))
            continue;
        next = skip_nested(at, end);
        /* "[]" has no room for it. */
        if (next < end && next - to >= 4) {
            memcpy(to, "null", 4);
            to += 4;
            at = next;
        }
    }
    return (size_t)(to - text);
}

/* A terminated text on the heap, or NULL with errno set. */
static char *load(const char *path, size_t *size)
{
    struct stat info;
    if (stat(path, &info))
        return NULL;
    if (!S_ISREG(info.st_mode) || info.st_size > MAX_BYTES) {
        errno = S_ISDIR(info.st_mode) ? EISDIR : EFBIG;
        return NULL;
    }
    FILE *file = fopen(path, "rbe");
    if (!file)
        return NULL;
    char *text = malloc((size_t)info.st_size + 1);
    if (text) {
        *size = fread(text, 1, (size_t)info.st_size, file);
        text[*size] = 0;
        if (ferror(file)) {
            free(text);
            text = NULL;
        }
    }
    int fault = errno;
    fclose(file);
    errno = fault;
    return text;
}

json_t *read_file(Reader *r, ReadExtent extent)
{
    size_t size;
    char *text = load(r->path, &size);
    if (!text) {
        str_addf(r->notes, "%s: left out: %s\n", r->path, strerror(errno));
        return NULL;
    }
    json_error_t fault;
    if (extent == READ_SUMMARY)
        size = trim(text, size);
    json_t *root = json_loadb(text, size, 0, &fault);
    free(text);
    /* Once more as it is, for the line of the fault. */
    if (!root && extent == READ_SUMMARY)
        return read_file(r, READ_ALL);
    if (!root) {
        str_addf(r->notes, "%s: left out: line %d: %s\n", r->path, fault.line,
                 fault.text);
        return NULL;
    }
    const json_t *context = json_object_get(root, "context");
    const json_t *schema = json_object_get(context, "assay_schema");
    if (json_integer_value(schema) == KNOWN_SCHEMA)
        return root;
    if (json_is_integer(schema))
        str_addf(r->notes,
                 "%s: left out: assay_schema %lld; this report reads %d\n",
                 r->path, (long long)json_integer_value(schema), KNOWN_SCHEMA);
    else
        str_addf(r->notes, "%s: left out: no context.assay_schema\n", r->path);
    json_decref(root);
    return NULL;
}

/* ---- fields ----------------------------------------------------------- */

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a truth value";
    case JSON_NULL:
        break;
    }
    return "null";
}

static void wrong_type(Reader *r, const json_t *value, const char *place,
                       const char *key, const char *expected)
{
    read_fault(r, place, key,
               arena_printf(r->arena, "%s where %s belongs; left out",
                            type_name(value), expected));
}

/* A field that is there: absent and null are the same. */
static const json_t *field(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

double read_number(Reader *r, const json_t *object, const char *place,
                   const char *key)
{
    const json_t *value = field(object, key);
    if (!value)
        return NAN;
    if (json_is_number(value))
        return json_number_value(value);
    wrong_type(r, value, place, key, "a number");
    return NAN;
}

const char *read_text(Reader *r, const json_t *object, const char *place,
                      const char *key)
{
    const json_t *value = field(object, key);
    if (!value)
        return "";
    if (json_is_string(value))
        return arena_strdup(r->arena, json_string_value(value));
    wrong_type(r, value, place, key, "a text");
    return "";
}

bool read_bool(Reader *r, const json_t *object, const char *place,
               const char *key)
{
    const json_t *value = field(object, key);
    if (value && !json_is_boolean(value))
        wrong_type(r, value, place, key, "true or false");
    return json_is_true(value);
}

const json_t *read_array(Reader *r, const json_t *object, const char *place,
                         const char *key)
{
    const json_t *value = field(object, key);
    if (!value || json_is_array(value))
        return value;
    wrong_type(r, value, place, key, "a list");
    return NULL;
}

const json_t *read_object(Reader *r, const json_t *object, const char *place,
                          const char *key)
{
    const json_t *value = field(object, key);
    if (!value || json_is_object(value))
        return value;
    wrong_type(r, value, place, key, "an object");
    return NULL;
}

const json_t *read_item(Reader *r, const json_t *list, size_t index,
                        const char *place)
{
    const json_t *value = json_array_get(list, index);
    if (json_is_object(value))
        return value;
    wrong_type(r, value, arena_printf(r->arena, "%s[%zu]", place, index), "",
               "an object");
    return NULL;
}

int64_t read_time(Reader *r, const json_t *object, const char *place,
                  const char *key)
{
    const char *text = read_text(r, object, place, key);
    struct tm tm = {0};
    char sign;
    int hours, minutes, length = 0;
    if (!*text || !strcmp(text, "unknown"))
        return 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon,
               &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec,
               &length) < 6 ||
        tm.tm_year < 1970 || tm.tm_mon < 1 || tm.tm_mon > 12) {
        read_fault(r, place, key, "no time as 2026-01-31T12:00:00Z");
        return 0;
    }
    tm.tm_year -= 1900;
    tm.tm_mon--;
    int64_t seconds = timegm(&tm);
    if (sscanf(text + length, "%c%2d:%2d", &sign, &hours, &minutes) == 3)
        seconds -= (sign == '-' ? -60 : 60) * (hours * 60 + minutes);
    return seconds;
}
