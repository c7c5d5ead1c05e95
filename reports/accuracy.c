/* Accuracy over latency, a point a case. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/axis.h"
#include "reports/html.h"
#include "reports/page.h"

/* ---- labels ----------------------------------------------------------- */

/* Pixels from the top left. */
typedef struct Box {
    double left, top, right, bottom;
} Box;
typedef Vec(Box) Boxes;

enum { LABEL_LENGTH = 22 };
/* Of the page's font in a plot, with some room. */
#define CHARACTER_WIDTH 6.9
#define LINE_HEIGHT 13.0

static bool overlaps(const Boxes *boxes, const Box *box)
{
    for (int i = 0; i < boxes->count; i++) {
        const Box *other = &boxes->data[i];
        if (box->left < other->right && other->left < box->right &&
            box->top < other->bottom && other->top < box->bottom)
            return true;
    }
    return false;
}

/* A place for a text near a point that covers nothing placed before: left or
 * right, above or below, then further away. False where there is none. */
static bool place_label(Arena *arena, Boxes *boxes, const Box *inside,
                        double x, double y, const char *text, Box *box)
{
    int length = html_length(text);
    double width =
        CHARACTER_WIDTH * (length < LABEL_LENGTH ? length : LABEL_LENGTH);
    /* Right, left, above, below, and the corners. */
    static const struct {
        double dx, dy; /* in widths from the left edge, and in lines */
    } sides[] = {{0, 0},  {-1, 0}, {-0.5, -1}, {-0.5, 1},
                 {0, -1}, {0, 1},  {-1, -1},   {-1, 1}};
    for (int away = 0; away < 4; away++)
        for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
            double gap = sides[i].dx == 0 ? 8 : sides[i].dx == -1 ? -8 : 0;
            double left = x + sides[i].dx * width + gap;
            double middle = y + sides[i].dy * LINE_HEIGHT * (1.1 + away);
            *box = (Box){left, middle - LINE_HEIGHT / 2, left + width,
                         middle + LINE_HEIGHT / 2};
            if (box->left < inside->left || box->right > inside->right ||
                box->top < inside->top || box->bottom > inside->bottom ||
                overlaps(boxes, box))
                continue;
            vec_push(arena, boxes, *box);
            return true;
        }
    return false;
}

static void add_label(Page *p, int width, int height, const Box *box,
                      const char *text)
{
    str_addf(&p->plots->script,
             "set label \"%s\" at screen %.5f, screen %.5f left front tc rgb "
             "label\n",
             plot_label(p->plots, text, LABEL_LENGTH), box->left / width,
             1 - (box->top + LINE_HEIGHT / 2) / height);
}

/* ---- accuracy --------------------------------------------------------- */

typedef struct Dot {
    const Case *of;
    double x, y;
    int colour;
} Dot;
typedef Vec(Dot) Dots;

/* Models in order, each with its fastest case first. */
static int compare_dots(const void *a, const void *b)
{
    const Dot *x = a, *y = b;
    int order = strcmp(x->of->model, y->of->model);
    return order ? order : (x->x > y->x) - (x->x < y->x);
}

static void find_dots(Page *p, const Judged *j, int metric, Dots *dots)
{
    int newest = history_newest(j->h);
    int p50 = data_metric(j->data, "p50");
    for (int i = 0; i < j->case_count; i++) {
        int c = j->cases[i].c;
        Dot dot = {.of = &j->h->cases.data[c],
                   .x = 1e3 * data_value(j->h, newest, c, p50),
                   .y = 100 * data_value(j->h, newest, c, metric)};
        dot.colour = 16 + page_mode(p, dot.of->mode);
        if (isfinite(dot.x) && isfinite(dot.y))
            vec_push(p->arena, dots, dot);
    }
    if (dots->count)
        qsort(dots->data, (size_t)dots->count, sizeof *dots->data,
              compare_dots);
}

static void add_dot_rows(Page *p, Plot *plot, const Metric *m,
                         const Dots *dots)
{
    Str *script = &p->plots->script;
    int links = 0;
    str_add(script, "$link << EOD\n");
    for (int i = 0; i < dots->count; i++) {
        const Dot *d = &dots->data[i];
        if (i && strcmp(d->of->model, d[-1].of->model))
            str_add(script, "\n\n");
        links += !i || strcmp(d->of->model, d[-1].of->model);
        str_addf(script, "%.6g %.6g\n", d->x, d->y);
    }
    str_addf(script, "EOD\nlinks = %d\n$dot << EOD\n", links);
    for (int i = 0; i < dots->count; i++) {
        const Dot *d = &dots->data[i];
        str_addf(script, "%.6g %.6g %d\n", d->x, d->y, d->colour);
        plot_tip(p->plots, plot,
                 arena_printf(p->arena, "%s: %s, %s %s", d->of->name,
                              format_value(p->arena, "s", d->x / 1e3),
                              m->title,
                              format_share(p->arena, d->y / 100, 2)));
    }
    str_add(script, "EOD\n");
}

/* One of the two aspects: a page shows the one that suits its width. */
static void draw_accuracy(Page *p, const Metric *m, const Dots *dots,
                          const char *class, int width, int height)
{
    Margins margins = {46, 16, 24, 40};
    Range x = range_empty(), y = range_empty();
    for (int i = 0; i < dots->count; i++) {
        range_add(&x, dots->data[i].x);
        range_add(&y, dots->data[i].y);
    }
    range_pad_log(&x, 1.5);
    range_pad(&y, 2);
    str_addf(&p->body, "<div class=\"%s\">", class);
    Plot *plot = plot_begin(
        p->plots, &p->body, width, height, margins,
        arena_printf(p->arena, "%s over latency in milliseconds", m->title));
    plot_units(p->plots, plot, "%", "ms");
    axis_add_log(&p->plots->script, 'x', x, 6);
    axis_add(&p->plots->script, 'y', y, 5);
    Boxes boxes = {0};
    Box inside = {margins.left, margins.top, width - margins.right,
                  height - margins.bottom};
    double across = inside.right - inside.left;
    double down = inside.bottom - inside.top;
    for (int i = 0; i < dots->count; i++) {
        double px =
            inside.left + across * axis_place(x, dots->data[i].x, true);
        double py =
            inside.bottom - down * axis_place(y, dots->data[i].y, false);
        Box dot = {px - 5, py - 5, px + 5, py + 5};
        vec_push(p->arena, &boxes, dot);
    }
    /* Links of a model's modes are nearly level. */
    for (int i = 1; i < dots->count; i++) {
        const Box *a = &boxes.data[i - 1], *b = &boxes.data[i];
        Box link = {fmin(a->left, b->left), fmin(a->top, b->top),
                    fmax(a->right, b->right), fmax(a->bottom, b->bottom)};
        if (!strcmp(dots->data[i].of->model, dots->data[i - 1].of->model) &&
            link.bottom - link.top < 20)
            vec_push(p->arena, &boxes, link);
    }
    for (int i = 0; i < dots->count; i++) {
        const Dot *d = &dots->data[i];
        if (i && !strcmp(d->of->model, d[-1].of->model))
            continue;
        Box own = boxes.data[i], box;
        if (place_label(p->arena, &boxes, &inside, (own.left + own.right) / 2,
                        (own.top + own.bottom) / 2, d->of->model, &box))
            add_label(p, width, height, &box, d->of->model);
    }
    add_dot_rows(p, plot, m, dots);
    plot_end(p->plots, "accuracy.gp");
    str_add(&p->body, "</div>\n");
}

void page_add_accuracy(Page *p, const Judged *j)
{
    static const char *const names[] = {"top1", "map50"};
    bool begun = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int metric = data_metric(j->data, names[i]);
        Dots dots = {0};
        find_dots(p, j, metric, &dots);
        if (!dots.count)
            continue;
        const Metric *m = &j->data->metrics.data[metric];
        if (!begun)
            page_begin_section(p, j, "accuracy", "Accuracy over latency");
        begun = true;
        str_add(&p->body, "<figure><figcaption><b>");
        html_add(&p->body, m->title);
        str_add(&p->body, "</b><span class=\"keys\">");
        for (int k = 0; k < p->modes.count; k++) {
            page_add_mode(p, p->modes.data[k]);
            str_add(&p->body, " ");
        }
        str_add(&p->body, "</span><span class=\"unit\">modes of a model are "
                          "linked</span></figcaption>\n");
        draw_accuracy(p, m, &dots, "wide", 900, 380);
        draw_accuracy(p, m, &dots, "narrow", 350, 360);
        str_add(&p->body, "</figure>\n");
    }
    if (begun)
        page_end_section(p);
}
