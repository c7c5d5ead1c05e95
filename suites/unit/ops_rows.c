/* See ops_rows.h. */
#include "ops_rows.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const char *copy_word(Arena *a, const char **text)
{
    size_t length = strcspn(*text, " ");
    const char *word = arena_strndup(a, *text, length);
    *text += length;
    *text += strspn(*text, " ");
    return word;
}

char *ops_row_text(Arena *a, const OpRow *row, bool expect_error)
{
    Str text = {0}, call = {0};
    str_add(&text, "graph row\n");
    const char *at = row->inputs;
    for (char name[] = "a"; *at; name[0]++) {
        const char *word = copy_word(a, &at);
        const char *value = strchr(word, '=');
        str_add(&call, call.length ? ", " : "");
        if (strcmp(word, "-") == 0) {
            str_add(&call, "_");
            continue;
        }
        str_add(&call, name);
        const char *fed = strstr(word, "~{");
        /* In f32[N<=8] the sign is no value. */
        if (value && value[1] == '{')
            str_addf(&text, "  const %s: %.*s = %s\n", name,
                     (int)(value - word), word, value + 1);
        else if (fed) /* its value lies beside it */
            str_addf(&text, "  input %s: %.*s\n  const %s.value: %.*s = %s\n",
                     name, (int)(fed - word), word, name, (int)(fed - word),
                     word, fed + 1);
        else
            str_addf(&text, "  input %s: %s\n", name, word);
    }
    str_add(&text, "  ");
    const char *outputs = expect_error ? "x" : row->expected;
    for (char name[] = "p"; *outputs; name[0]++) {
        copy_word(a, &outputs);
        str_addf(&text, "%s%s: ?[?]", name[0] > 'p' ? ", " : "", name);
    }
    str_addf(&text, " = %s node(%s)", row->op, str_text(&call));
    if (*row->attrs)
        str_addf(&text, " {%s}", row->attrs);
    str_add(&text, "\n");
    char *copy = arena_strdup(a, str_text(&text));
    str_free(&text);
    str_free(&call);
    return copy;
}
