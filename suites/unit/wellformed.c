#include "suites/unit/wellformed.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 64, MAX_NAME = 64, MAX_ATTRIBUTES = 32 };

typedef struct Checker {
    const char *at;
    char open[MAX_DEPTH][MAX_NAME];
    int depth;
    bool any; /* an element was there */
    char *fault;
    size_t size;
} Checker;

static bool wrong(Checker *c, const char *what)
{
    snprintf(c->fault, c->size, "%s: %.80s", what, c->at);
    return false;
}

static bool take_name(Checker *c, char *name)
{
    int length = 0;
    while (isalnum((unsigned char)*c->at) || (*c->at && strchr("-:_", *c->at)))
        if (length + 1 < MAX_NAME)
            name[length++] = *c->at++;
        else
            return wrong(c, "a long name");
    name[length] = 0;
    return length || wrong(c, "no name");
}

/* One character of text or of an attribute, or a reference. */
static bool take_character(Checker *c)
{
    static const char *const references[] = {"&lt;", "&gt;", "&amp;", "&quot;",
                                             "&#39;"};
    const unsigned char *s = (const unsigned char *)c->at;
    if (*s == '&') {
        for (size_t i = 0; i < sizeof references / sizeof *references; i++)
            if (!strncmp(c->at, references[i], strlen(references[i]))) {
                c->at += strlen(references[i]);
                return true;
            }
        return wrong(c, "a reference");
    }
    if (*s < 0x80) {
        if ((*s < 0x20 && !strchr("\t\n\r", *s)) || *s == 0x7f)
            return wrong(c, "a control");
        c->at++;
        return true;
    }
    int more = *s >= 0xf0 ? 3 : *s >= 0xe0 ? 2 : 1;
    uint32_t code = *s & (0x3f >> more);
    if (*s < 0xc2 || *s > 0xf4)
        return wrong(c, "no UTF-8");
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return wrong(c, "no UTF-8");
        code = code << 6 | (s[i] & 0x3f);
    }
    if ((code >= 0xd800 && code < 0xe000) || code > 0x10ffff ||
        (code & 0xfffe) == 0xfffe || (code >= 0x202a && code <= 0x202e))
        return wrong(c, "a character that no page should have");
    c->at += more + 1;
    return true;
}

static bool take_attribute(Checker *c, char (*names)[MAX_NAME], int *count)
{
    if (*count == MAX_ATTRIBUTES || !take_name(c, names[*count]))
        return wrong(c, "an attribute");
    for (int i = 0; i < *count; i++)
        if (!strcmp(names[i], names[*count]))
            return wrong(c, "an attribute twice");
    (*count)++;
    if (strncmp(c->at, "=\"", 2))
        return wrong(c, "an attribute without quotes");
    for (c->at += 2; *c->at != '"';) {
        if (!*c->at || *c->at == '<')
            return wrong(c, "an attribute's value");
        if (!take_character(c))
            return false;
    }
    c->at++;
    return true;
}

static bool take_start(Checker *c)
{
    char name[MAX_NAME], names[MAX_ATTRIBUTES][MAX_NAME];
    int count = 0;
    if (!take_name(c, name))
        return false;
    for (;;) {
        const char *before = c->at;
        c->at += strspn(c->at, " \n\t");
        if (!strncmp(c->at, "/>", 2)) {
            c->at += 2;
            c->any = true;
            return true;
        }
        if (*c->at == '>')
            break;
        if (c->at == before || !take_attribute(c, names, &count))
            return wrong(c, "a start tag");
    }
    c->at++;
    if (c->depth == MAX_DEPTH || (!c->depth && c->any))
        return wrong(c, "an element");
    strcpy(c->open[c->depth++], name);
    c->any = true;
    return true;
}

static bool take_end(Checker *c)
{
    char name[MAX_NAME];
    const char *start = c->at;
    if (!take_name(c, name))
        return false;
    if (*c->at != '>' || !c->depth || strcmp(c->open[c->depth - 1], name)) {
        c->at = start;
        return wrong(c, "an end tag");
    }
    c->depth--;
    c->at++;
    return true;
}

bool wellformed(const char *text, char *fault, size_t size)
{
    Checker c = {.at = text, .fault = fault, .size = size};
    if (!strncmp(c.at, "<!DOCTYPE html>", 15))
        c.at += 15;
    while (*c.at) {
        bool ok;
        if (!strncmp(c.at, "</", 2)) {
            c.at += 2;
            ok = take_end(&c);
        } else if (*c.at == '<') {
            c.at++;
            ok = take_start(&c);
        } else {
            if (!c.depth && !isspace((unsigned char)*c.at))
                return wrong(&c, "text outside of the page");
            ok = take_character(&c);
        }
        if (!ok)
            return false;
    }
    return (!c.depth && c.any) || wrong(&c, "an element that is not closed");
}
