/* Kernels under the roofs of the machine (Williams, Waterman, Patterson 2009):
 * a plot a model, or one of all kernels where they stand alone. */
#include <math.h>
#include <string.h>

#include "reports/axis.h"
#include "reports/html.h"
#include "reports/kernels.h"

static const Margins margins = {46, 16, 18, 40};
/* What is slower than this share of the peak is off the plot. */
#define LEAST_SHARE 1e-4
/* Roofs nearer than this factor share a name. */
#define NEAR_ROOFS 1.5
#define CHARACTER_WIDTH 6.9

typedef struct RoofPlot {
    Page *page;
    const RunDetail *run;
    const KernelSums *sums;
    int width, height;
    Range x, y; /* flop a byte, GFLOP/s */
} RoofPlot;

static double rate_of(const KernelSum *k)
{
    return k->flops / k->seconds * 1e-9;
}

static bool is_drawable(const KernelSum *k, double peak)
{
    return k->flops > 0 && k->bytes > 0 && k->seconds > 0 &&
           isfinite(k->flops / k->bytes) && rate_of(k) > peak * LEAST_SHARE;
}

/* ---- roofs ------------------------------------------------------------ */

/* Where a level's line is inside of the plot. */
static bool line_of(const RoofPlot *r, const Level *level, double *start,
                    double *end)
{
    *start = fmax(r->y.low / level->gbps, r->x.low);
    *end = fmin(r->run->fma_gflops / level->gbps, r->x.high);
    return level->gbps > 0 && *start < *end;
}

static bool is_near(const Level *a, const Level *b)
{
    double ratio = a->gbps / b->gbps;
    return ratio < NEAR_ROOFS && ratio > 1 / NEAR_ROOFS;
}

/* Names along the line of a level, near its lower end; the highest of those
 * that lie close speaks for all of them. */
static void add_roof_label(RoofPlot *r, Str *labels, int number)
{
    const Level *levels = r->run->levels.data, *level = &levels[number];
    Str text = {0};
    for (int i = 0; i < r->run->levels.count; i++) {
        if (!is_near(&levels[i], level))
            continue;
        if (levels[i].gbps > level->gbps ||
            (levels[i].gbps == level->gbps && i < number)) {
            str_free(&text);
            return;
        }
        str_addf(&text, "%s%s %.3g", text.length ? ", " : "", levels[i].name,
                 levels[i].gbps);
    }
    str_add(&text, " GB/s");
    double start, end;
    double across = r->width - margins.left - margins.right;
    double down = r->height - margins.top - margins.bottom;
    double decades = log(r->x.high / r->x.low);
    double slope = down / log(r->y.high / r->y.low) * decades / across;
    double room = 0;
    if (line_of(r, level, &start, &end))
        room = across * log(end / start) / decades * hypot(1, slope);
    if (room > CHARACTER_WIDTH * html_length(str_text(&text)))
        str_addf(labels,
                 "set label \"%s\" at %.6g, %.6g left front rotate by %.1f "
                 "offset 0.9, %.2f tc rgb text\n",
                 plot_label(r->page->plots, str_text(&text), 48), start,
                 level->gbps * start, atan(slope) * 180 / 3.14159265,
                 0.5 + 0.9 * slope);
    str_free(&text);
}

static void add_roofs(RoofPlot *r)
{
    Str *script = &r->page->plots->script, labels = {0};
    double peak = r->run->fma_gflops;
    int roofs = 1;
    str_add(script, "$roof << EOD\n");
    for (int i = 0; i < r->run->levels.count; i++) {
        const Level *level = &r->run->levels.data[i];
        double start, end;
        if (!line_of(r, level, &start, &end))
            continue;
        str_addf(script, "%.6g %.6g\n%.6g %.6g\n\n\n", start,
                 level->gbps * start, end, level->gbps * end);
        roofs++;
        add_roof_label(r, &labels, i);
    }
    const char *name = arena_printf(r->page->arena, "FMA %.3g", peak);
    str_addf(script,
             "%.6g %.6g\n%.6g %.6g\nEOD\nroofs = %d\n%sset label \"%s\" at "
             "%.6g, %.6g right front offset -0.3, 0.6 tc rgb text\n",
             r->x.low, peak, r->x.high, peak, roofs, str_text(&labels),
             plot_label(r->page->plots, name, 24), r->x.high, peak);
    str_free(&labels);
}

/* ---- kernels ---------------------------------------------------------- */

static void add_kernels(RoofPlot *r, Plot *plot)
{
    Page *p = r->page;
    Str *script = &p->plots->script;
    str_add(script, "$dot << EOD\n");
    for (int i = 0; i < r->sums->count; i++) {
        const KernelSum *k = &r->sums->data[i];
        if (!is_drawable(k, r->run->fma_gflops))
            continue;
        double share = k->share > 0 ? fmin(k->share, 1) : 0;
        str_addf(script, "%.6g %.6g %.2f %d\n", k->flops / k->bytes,
                 rate_of(k), 0.45 + 2.2 * sqrt(share), k->is_memory ? 17 : 16);
        plot_tip(p->plots, plot,
                 arena_printf(p->arena, "%s: %s, %s, %.3g GFLOP/s, %s",
                              k->name, format_value(p->arena, "s", k->seconds),
                              format_share(p->arena, share, 1), rate_of(k),
                              kernel_bound_text(p->arena, k)));
    }
    str_add(script, "EOD\n");
}

/* False where there is nothing to draw. */
static bool find_ranges(RoofPlot *r)
{
    double peak = r->run->fma_gflops;
    r->x = r->y = range_empty();
    for (int i = 0; i < r->sums->count; i++) {
        const KernelSum *k = &r->sums->data[i];
        if (!is_drawable(k, peak))
            continue;
        range_add(&r->x, k->flops / k->bytes);
        range_add(&r->y, rate_of(k));
    }
    if (range_is_empty(&r->x))
        return false;
    range_add(&r->y, peak);
    /* At least a decade of intensity, so that the slopes show. */
    range_pad_log(&r->x, r->x.high / r->x.low < 25 ? 4 : 1.8);
    range_pad_log(&r->y, 1.8);
    return true;
}

static void draw(RoofPlot *r, const char *of)
{
    Page *p = r->page;
    Plot *plot = plot_begin(p->plots, &p->body, r->width, r->height, margins,
                            arena_printf(p->arena, "%s under the roofs", of));
    plot_units(p->plots, plot, "GFLOP/s", "flop/byte");
    axis_add_log(&p->plots->script, 'x', r->x, 5);
    axis_add_log(&p->plots->script, 'y', r->y, 5);
    add_roofs(r);
    add_kernels(r, plot);
    plot_end(p->plots, "roofline.gp");
}

/* ---- section ---------------------------------------------------------- */

static void begin(Page *p, const Judged *j)
{
    page_begin_section(p, j, "roofline", "Roofline");
    str_add(&p->body,
            "<p class=\"note\">Kernels of the newest run. "
            "<i class=\"key c0\"></i>bound by compute "
            "<i class=\"key c1\"></i>bound by memory; in models the area "
            "tells a kernel's share of the time. Lines are what the machine "
            "was measured to do.</p>\n");
}

static void add_models(Page *p, const Judged *j)
{
    int count;
    bool begun = false;
    const MainCase *mains = kernel_main_cases(p->arena, j, &count);
    for (int i = 0; i < count; i++) {
        KernelSums sums = kernel_sums(p->arena, mains[i].detail);
        RoofPlot r = {p, j->newest, &sums, 400, 280, {0, 0}, {0, 0}};
        if (!find_ranges(&r))
            continue;
        if (!begun) {
            begin(p, j);
            str_add(&p->body, "<div class=\"plots\">\n");
        }
        begun = true;
        str_add(&p->body, "<figure><figcaption>");
        html_add_name(&p->body, "b", "", mains[i].of->model);
        str_add(&p->body, " ");
        page_add_mode(p, mains[i].of->mode);
        str_add(&p->body, "</figcaption>\n");
        draw(&r, mains[i].of->name);
        str_add(&p->body, "</figure>\n");
    }
    if (begun) {
        str_add(&p->body, "</div>\n");
        page_end_section(p);
    }
}

/* All cases in one plot, each the size of a small share. */
static void add_alone(Page *p, const Judged *j)
{
    KernelSums all = {0};
    for (int i = 0; i < j->newest->cases.count; i++) {
        KernelSums sums = kernel_sums(p->arena, &j->newest->cases.data[i]);
        for (int k = 0; k < sums.count; k++) {
            sums.data[k].share = 0.01;
            vec_push(p->arena, &all, sums.data[k]);
        }
    }
    RoofPlot wide = {p, j->newest, &all, 900, 420, {0, 0}, {0, 0}};
    if (!find_ranges(&wide))
        return;
    RoofPlot narrow = wide;
    narrow.width = 350;
    narrow.height = 320;
    begin(p, j);
    str_add(&p->body, "<figure><div class=\"wide\">");
    draw(&wide, "kernels");
    str_add(&p->body, "</div>\n<div class=\"narrow\">");
    draw(&narrow, "kernels");
    str_add(&p->body, "</div></figure>\n");
    page_end_section(p);
}

void page_add_roofline(Page *p, const Judged *j)
{
    if (!(j->newest->fma_gflops > 0))
        return;
    if (is_kernel_suite(j->h))
        add_alone(p, j);
    else
        add_models(p, j);
}
