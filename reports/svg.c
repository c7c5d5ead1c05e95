/* gnuplot writes a small part of SVG: groups with a transform and a text
 * colour, paths, polygons, texts, and points as uses of its definitions. Each
 * element is read, and written anew where there is something to see. */
#include "reports/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/html.h"

/* An element's text from its name to before '>'. */
typedef struct Element {
    const char *text;
    size_t length;
} Element;

/* What a group sets for the texts in it. */
typedef struct TextState {
    double x, y, angle;
    int colour;
    const char *anchor;
} TextState;

enum { MAX_DEPTH = 16 };

typedef struct Converter {
    Str *out;
    const Plot *plot;
    const Plots *plots;
    TextState groups[MAX_DEPTH];
    int depth, points;
} Converter;

/* ---- reading ---------------------------------------------------------- */

static bool is_named(const Element *e, const char *name)
{
    size_t length = strlen(name);
    return e->length >= length && !memcmp(e->text, name, length) &&
           (e->length == length || strchr(" \t\r\n/", e->text[length]));
}

/* The value of an attribute, as 'fill' of " fill = '...'"; NULL: none. */
static const char *attribute(const Element *e, const char *name, size_t *size)
{
    size_t length = strlen(name);
    const char *end = e->text + e->length;
    for (const char *at = e->text; at + length < end; at++) {
        if (!strchr(" \t\n", *at) || memcmp(at + 1, name, length))
            continue;
        const char *value = at + 1 + length;
        value += strspn(value, " =");
        if (value >= end || (*value != '\'' && *value != '"') ||
            value == at + 1 + length)
            continue;
        const char *close =
            memchr(value + 1, *value, (size_t)(end - value) - 1);
        if (!close)
            return NULL;
        *size = (size_t)(close - value) - 1;
        return value + 1;
    }
    return NULL;
}

/* NN of rgb(0,0,NN) in an attribute, or -1. */
static int colour_of(const Element *e, const char *name)
{
    size_t size;
    const char *value = attribute(e, name, &size);
    int red, green, blue;
    return value && sscanf(value, "rgb(%d,%d,%d)", &red, &green, &blue) == 3
               ? blue
               : -1;
}

/* ---- writing ---------------------------------------------------------- */

/* A tenth of a pixel is enough. */
static void add_number(Str *out, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.1f", value);
    size_t length = strlen(text);
    if (length > 2 && !strcmp(text + length - 2, ".0"))
        text[length - 2] = 0;
    str_add(out, !strcmp(text, "-0") ? "0" : text);
}

/* Moves and lines only; points of a polygon are a path without letters. */
static void add_path_data(Str *out, const char *data, size_t size)
{
    const char *end = data + size;
    char last = 0, letter = 'M';
    bool first = true;
    while (data < end) {
        double x, y;
        int used = 0;
        data += strspn(data, " \t\n");
        if (*data == 'M' || *data == 'L')
            letter = *data++;
        if (sscanf(data, "%lf,%lf%n", &x, &y, &used) < 2)
            break;
        data += used;
        if (letter != last || letter == 'M')
            str_add_bytes(out, &letter, 1);
        else if (!first)
            str_add(out, " ");
        last = letter;
        /* Pairs without a letter go on as lines. */
        letter = 'L';
        first = false;
        add_number(out, x);
        str_add(out, " ");
        add_number(out, y);
    }
}

static void add_path(Converter *c, const Element *e)
{
    size_t size;
    int colour = colour_of(e, "stroke");
    const char *data = attribute(e, "d", &size);
    if (colour < 0 || !data)
        return;
    str_addf(c->out, "<path class=\"s%d\" d=\"", colour);
    add_path_data(c->out, data, size);
    str_add(c->out, "\"/>\n");
}

static void add_polygon(Converter *c, const Element *e)
{
    size_t size;
    int colour = colour_of(e, "fill");
    const char *data = attribute(e, "points", &size);
    if (colour < 0 || !data)
        return;
    str_addf(c->out, "<path class=\"f%d\" d=\"", colour);
    add_path_data(c->out, data, size);
    str_add(c->out, "Z\"/>\n");
}

/* Circles, and crosses for point type 2 (gnuplot counts from 1, its names
 * from 0). */
static void add_point(Converter *c, const Element *e)
{
    size_t size;
    const char *shape = attribute(e, "xlink:href", &size);
    const char *place = attribute(e, "transform", &size);
    int colour = colour_of(e, "color");
    double x, y, scale;
    if (colour < 0 || !shape || !place ||
        sscanf(place, "translate(%lf,%lf) scale(%lf", &x, &y, &scale) < 3)
        return;
    Str *out = c->out;
    if (!strncmp(shape, "#gpPt1'", 7)) {
        str_addf(out,
                 "<path class=\"s%d\" d=\"M%.1f %.1fl%.1f %.1fm0 "
                 "%.1fl%.1f %.1f\">",
                 colour, x - scale, y - scale, 2 * scale, 2 * scale,
                 -2 * scale, -2 * scale, 2 * scale);
    } else {
        str_addf(out, "<circle class=\"f%d\" cx=\"", colour);
        add_number(out, x);
        str_add(out, "\" cy=\"");
        add_number(out, y);
        str_add(out, "\" r=\"");
        add_number(out, scale);
        str_add(out, "\">");
    }
    if (c->points < c->plot->tips.count) {
        str_add(out, "<title>");
        html_add(out, c->plot->tips.data[c->points]);
        str_add(out, "</title>");
    }
    c->points++;
    str_add(out, strncmp(shape, "#gpPt1'", 7) ? "</circle>\n" : "</path>\n");
}

/* Texts hold a number of an axis or a token. */
static void add_text(Converter *c, const char *text, size_t size)
{
    const TextState *state = &c->groups[c->depth];
    if (state->colour < 0)
        return;
    str_addf(c->out, "<text class=\"t%d\"", state->colour);
    if (state->angle != 0) {
        str_addf(c->out, " transform=\"translate(%.1f,%.1f) rotate(%.1f)\"",
                 state->x, state->y, state->angle);
    } else {
        str_add(c->out, " x=\"");
        add_number(c->out, state->x);
        str_add(c->out, "\" y=\"");
        add_number(c->out, state->y);
        str_add(c->out, "\"");
    }
    if (*state->anchor)
        str_addf(c->out, " text-anchor=\"%s\"", state->anchor);
    str_add(c->out, ">");
    char plain[64];
    snprintf(plain, sizeof plain, "%.*s", (int)size, text);
    char *at = plain + strspn(plain, " ");
    int number = *at == '@' ? atoi(at + 1) : -1;
    if (number >= 0 && number < c->plots->labels.count)
        str_add(c->out, c->plots->labels.data[number]);
    else
        html_add(c->out, at);
    str_add(c->out, "</text>\n");
}

static void open_group(Converter *c, const Element *e)
{
    TextState state = {.colour = colour_of(e, "fill"), .anchor = ""};
    size_t size;
    const char *place = attribute(e, "transform", &size);
    if (place) {
        sscanf(place, "translate(%lf,%lf) rotate(%lf", &state.x, &state.y,
               &state.angle);
    }
    const char *anchor = attribute(e, "text-anchor", &size);
    if (anchor && *anchor != 's') /* start is the default */
        state.anchor = *anchor == 'm' ? "middle" : "end";
    if (c->depth + 1 < MAX_DEPTH)
        c->groups[++c->depth] = state;
}

/* The end of a text element, whose tspans say nothing new. */
static const char *take_text(Converter *c, const char *at)
{
    const char *close = strstr(at, "</text>");
    if (!close)
        return at + strlen(at);
    const char *text = at;
    if (!strncmp(text, "<tspan", 6))
        text = strchr(text, '>') + 1;
    add_text(c, text, strcspn(text, "<"));
    return close + strlen("</text>");
}

void svg_add(Str *out, const char *drawn, const Plot *plot, const Plots *plots)
{
    Converter c = {.out = out, .plot = plot, .plots = plots};
    c.groups[0] = (TextState){.colour = -1, .anchor = ""};
    str_addf(out,
             "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" "
             "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
             plot->width, plot->height);
    html_add(out, plot->alt);
    str_add(out, "\">\n");
    const char *at = strstr(drawn, "</defs>");
    at = at ? at : drawn + strlen(drawn);
    while ((at = strchr(at, '<'))) {
        const char *close = strchr(at, '>');
        if (!close)
            break;
        Element e = {at + 1, (size_t)(close - at) - 1};
        at = close + 1;
        if (is_named(&e, "g"))
            open_group(&c, &e);
        else if (is_named(&e, "/g"))
            c.depth -= c.depth > 0;
        else if (is_named(&e, "path"))
            add_path(&c, &e);
        else if (is_named(&e, "polygon"))
            add_polygon(&c, &e);
        else if (is_named(&e, "use"))
            add_point(&c, &e);
        else if (is_named(&e, "text"))
            at = take_text(&c, at);
    }
    str_add(out, "</svg>");
}
