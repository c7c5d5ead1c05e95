/* Strings on the heap: printers run often and their results are short-lived,
 * so an arena would only grow. The text is terminated after each addition,
 * which makes str_text free. */
#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

/* Doubling keeps long texts linear to build. */
static void reserve(Str *str, size_t more)
{
    size_t need = str->length + more + 1;
    if (need <= str->capacity)
        return;
    size_t capacity = str->capacity ? str->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    char *data = realloc(str->data, capacity);
    if (!data)
        die("out of memory: a text of %zu bytes", need);
    str->data = data;
    str->capacity = capacity;
}

void str_add_bytes(Str *str, const char *text, size_t length)
{
    reserve(str, length);
    memcpy(str->data + str->length, text, length);
    str->length += length;
    str->data[str->length] = 0;
}

void str_add(Str *str, const char *text)
{
    str_add_bytes(str, text, strlen(text));
}

void str_addf(Str *str, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        die("cannot format \"%s\"", format);
    reserve(str, (size_t)length);
    va_start(args, format);
    vsnprintf(str->data + str->length, (size_t)length + 1, format, args);
    va_end(args);
    str->length += (size_t)length;
}

/* C prints these in ways that differ between libraries ("-nan", "INF"). */
static bool add_special(Str *str, double value)
{
    if (isnan(value))
        str_add(str, "nan");
    else if (isinf(value))
        str_add(str, value < 0 ? "-inf" : "inf");
    else
        return false;
    return true;
}

/* Printed forms are hashed and read back: the text must be exact, and the
 * same everywhere. 17 digits always suffice. */
void str_add_double(Str *str, double value)
{
    char text[40];
    if (add_special(str, value))
        return;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    str_add(str, text);
}

void str_add_float(Str *str, float value)
{
    char text[40];
    if (add_special(str, value))
        return;
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    str_add(str, text);
}

void str_add_quoted(Str *str, const char *text)
{
    str_add(str, "\"");
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\')
            str_addf(str, "\\%c", c);
        else if (c == '\n')
            str_add(str, "\\n");
        else if (c < 32 || c == 127)
            str_addf(str, "\\x%02x", c);
        else
            str_add_bytes(str, at, 1); /* UTF-8 passes through */
    }
    str_add(str, "\"");
}

/* Lower case only, as str_add_quoted writes them. */
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* Escapes that the printer does not write are refused, zero bytes too: the
 * result is a C string. */
bool str_scan_quoted(Str *str, const char **text)
{
    const char *at = *text;
    if (*at++ != '"')
        return false;
    while (*at != '"') {
        char c = *at++;
        if (!c)
            return false;
        if (c == '\\') {
            c = *at++;
            if (c == 'n') {
                c = '\n';
            } else if (c == 'x') {
                int high = hex_digit(*at),
                    low = high < 0 ? -1 : hex_digit(at[1]);
                if (low < 0 || high + low == 0)
                    return false;
                c = (char)(high * 16 + low);
                at += 2;
            } else if (c != '"' && c != '\\') {
                return false;
            }
        }
        str_add_bytes(str, &c, 1);
    }
    *text = at + 1;
    return true;
}

void str_make_plain(char *text)
{
    for (char *c = text; *c; c++)
        if (((unsigned char)*c < 0x20 && *c != '\n') || *c == 0x7f)
            *c = '?';
}

const char *str_text(const Str *str)
{
    return str->data ? str->data : "";
}

void str_free(Str *str)
{
    free(str->data);
    *str = (Str){0};
}
