/* Accuracy over latency, and kernels under the machine's roofs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/axis.h"
#include "reports/html.h"
#include "reports/kernels.h"
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
    Margins margins = {46, 16, 18, 40};
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

/* ---- roofline --------------------------------------------------------- */

static const Margins roof_margins = {46, 16, 18, 40};
enum { ROOF_WIDTH = 400, ROOF_HEIGHT = 280 };
/* What is slower than this share of the peak is off the plot. */
#define LEAST_SHARE 1e-4

static bool is_drawable(const KernelSum *k, double peak)
{
    double rate = k->flops / k->seconds * 1e-9;
    return k->flops > 0 && k->bytes > 0 && k->seconds > 0 &&
           isfinite(k->flops / k->bytes) && rate > peak * LEAST_SHARE;
}

/* A level's name along its line, near the line's lower end. */
static void add_roof_label(Page *p, Str *labels, const Level *level,
                           double start, double end, Range x, Range y)
{
    double across = ROOF_WIDTH - roof_margins.left - roof_margins.right;
    double down = ROOF_HEIGHT - roof_margins.top - roof_margins.bottom;
    double slope = down / log(y.high / y.low) * log(x.high / x.low) / across;
    const char *text =
        arena_printf(p->arena, "%s %.3g GB/s", level->name, level->gbps);
    double length = across * log(end / start) / log(x.high / x.low);
    if (length < CHARACTER_WIDTH * html_length(text))
        return;
    str_addf(labels,
             "set label \"%s\" at %.6g, %.6g left front rotate by %.1f "
             "offset 0.9, %.2f tc rgb text\n",
             plot_label(p->plots, text, 24), start, level->gbps * start,
             atan(slope) * 180 / 3.14159265, 0.5 + 0.9 * slope);
}

static void add_roofs(Page *p, const RunDetail *d, Range x, Range y)
{
    Str *script = &p->plots->script;
    int roofs = 0;
    str_add(script, "$roof << EOD\n");
    Str labels = {0};
    for (int i = 0; i < d->levels.count; i++) {
        const Level *level = &d->levels.data[i];
        double ridge = d->fma_gflops / level->gbps;
        double start = fmax(y.low / level->gbps, x.low);
        double end = fmin(ridge, x.high);
        if (!(level->gbps > 0) || start >= end)
            continue;
        str_addf(script, "%.6g %.6g\n%.6g %.6g\n\n\n", start,
                 level->gbps * start, end, level->gbps * end);
        roofs++;
        add_roof_label(p, &labels, level, start, end, x, y);
    }
    str_addf(script,
             "%.6g %.6g\n%.6g %.6g\nEOD\nroofs = %d\n%sset label \"%s\" at "
             "%.6g, %.6g right front offset -0.3, 0.6 tc rgb text\n",
             x.low, d->fma_gflops, x.high, d->fma_gflops, roofs + 1,
             str_text(&labels),
             plot_label(p->plots,
                        arena_printf(p->arena, "FMA %.3g", d->fma_gflops), 24),
             x.high, d->fma_gflops);
    str_free(&labels);
}

static void add_kernel_dots(Page *p, Plot *plot, const KernelSums *sums,
                            double peak)
{
    Str *script = &p->plots->script;
    str_add(script, "$dot << EOD\n");
    for (int i = 0; i < sums->count; i++) {
        const KernelSum *k = &sums->data[i];
        if (!is_drawable(k, peak))
            continue;
        double rate = k->flops / k->seconds * 1e-9;
        double share = k->share > 0 ? k->share : 0;
        str_addf(script, "%.6g %.6g %.2f %d\n", k->flops / k->bytes, rate,
                 0.45 + 2.2 * sqrt(share), k->is_memory ? 17 : 16);
        plot_tip(p->plots, plot,
                 arena_printf(p->arena, "%s: %s, %s, %.3g GFLOP/s, %s",
                              k->name, format_value(p->arena, "s", k->seconds),
                              format_share(p->arena, share, 1), rate,
                              kernel_bound_text(p->arena, k)));
    }
    str_add(script, "EOD\n");
}

static bool add_roof_plot(Page *p, const Judged *j, const Case *c,
                          const KernelSums *sums)
{
    const RunDetail *d = j->newest;
    double peak = d->fma_gflops;
    Range x = range_empty(), y = range_empty();
    for (int i = 0; i < sums->count; i++)
        if (is_drawable(&sums->data[i], peak)) {
            range_add(&x, sums->data[i].flops / sums->data[i].bytes);
            range_add(&y, sums->data[i].flops / sums->data[i].seconds * 1e-9);
        }
    if (range_is_empty(&x))
        return false;
    range_add(&y, peak);
    /* At least two decades of intensity, so that the slopes show. */
    range_pad_log(&x, x.high / x.low < 25 ? 4 : 1.8);
    range_pad_log(&y, 1.8);
    str_add(&p->body, "<figure><figcaption>");
    html_add_name(&p->body, "b", "", c->model);
    str_add(&p->body, " ");
    page_add_mode(p, c->mode);
    str_add(&p->body, "</figcaption>\n");
    Plot *plot = plot_begin(
        p->plots, &p->body, ROOF_WIDTH, ROOF_HEIGHT, roof_margins,
        arena_printf(p->arena, "kernels of %s under the roofs", c->name));
    plot_units(p->plots, plot, "GFLOP/s", "flop/byte");
    axis_add_log(&p->plots->script, 'x', x, 5);
    axis_add_log(&p->plots->script, 'y', y, 5);
    add_roofs(p, d, x, y);
    add_kernel_dots(p, plot, sums, peak);
    plot_end(p->plots, "roofline.gp");
    str_add(&p->body, "</figure>\n");
    return true;
}

void page_add_roofline(Page *p, const Judged *j)
{
    if (!(j->newest->fma_gflops > 0))
        return;
    bool begun = false;
    int count;
    const MainCase *mains = kernel_main_cases(p->arena, j, &count);
    for (int i = 0; i < count; i++) {
        KernelSums sums = kernel_sums(p->arena, mains[i].detail);
        if (!sums.count)
            continue;
        if (!begun) {
            page_begin_section(p, j, "roofline", "Roofline");
            str_add(&p->body,
                    "<p class=\"note\">Kernels of the newest run; the area "
                    "tells a kernel's share of the time. "
                    "<i class=\"key c0\"></i>bound by compute "
                    "<i class=\"key c1\"></i>bound by memory. Lines are what "
                    "the machine was measured to do.</p>\n"
                    "<div class=\"plots\">\n");
        }
        begun = true;
        add_roof_plot(p, j, mains[i].of, &sums);
    }
    if (begun) {
        str_add(&p->body, "</div>\n");
        page_end_section(p);
    }
}
