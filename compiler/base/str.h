/* Str: a growable string on the heap, for printers. Free with str_free. */
#ifndef ASSAY_BASE_STR_H
#define ASSAY_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

typedef struct Str {
    char *data; /* always terminated once something was added; or NULL */
    size_t length;
    size_t capacity;
} Str;

void str_add(Str *str, const char *text);
void str_add_bytes(Str *str, const char *text, size_t length);
void str_addf(Str *str, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The shortest decimal that reads back as the same value; inf, -inf, nan. */
void str_add_double(Str *str, double value);
void str_add_float(Str *str, float value);
/* `text` between double quotes, with \" \\ \n and \xNN escapes. */
void str_add_quoted(Str *str, const char *text);
/* Reads what str_add_quoted wrote: moves *text past the closing quote and
 * appends the plain text. False, *text unchanged, when it is malformed. */
bool str_scan_quoted(Str *str, const char **text);
/* Control characters but line ends become '?': what is quoted must not steer a
 * terminal. */
void str_make_plain(char *text);
const char *str_text(const Str *str); /* never NULL */
void str_free(Str *str);

#endif
