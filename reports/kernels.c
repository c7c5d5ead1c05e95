#include "reports/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/html.h"

enum { MAX_SLOWEST = 25, MAX_NODES = 24 };

/* ---- sums ------------------------------------------------------------- */

static int compare_sums(const void *a, const void *b)
{
    double x = ((const KernelSum *)a)->seconds;
    double y = ((const KernelSum *)b)->seconds;
    return (x < y) - (x > y);
}

static double or_zero(double value)
{
    return isnan(value) ? 0 : value;
}

static void add_step(Arena *arena, KernelSum *sum, const StepDetail *step)
{
    double seconds = or_zero(step->seconds);
    sum->calls++;
    sum->seconds += seconds;
    sum->share += or_zero(step->share);
    sum->flops += or_zero(step->flops);
    sum->bytes += or_zero(step->bytes);
    sum->bound_seconds += seconds * step->bound_share;
    if (seconds >= sum->longest) {
        sum->longest = seconds;
        sum->level = step->level;
        sum->is_memory = !strcmp(step->bound, "memory");
    }
    for (int i = 0; i < step->nodes.count; i++)
        vec_push(arena, &sum->nodes, step->nodes.data[i]);
}

KernelSums kernel_sums(Arena *arena, const CaseDetail *c)
{
    KernelSums sums = {0};
    Map numbers;
    map_init(&numbers, arena);
    for (int i = 0; i < c->steps.count; i++) {
        const StepDetail *step = &c->steps.data[i];
        int number = (int)(intptr_t)map_get(&numbers, step->kernel) - 1;
        if (number < 0) {
            number = sums.count;
            KernelSum fresh = {.name = step->kernel, .level = ""};
            vec_push(arena, &sums, fresh);
            map_set(&numbers, step->kernel, (void *)(intptr_t)(number + 1));
        }
        add_step(arena, &sums.data[number], step);
    }
    if (sums.count)
        qsort(sums.data, (size_t)sums.count, sizeof *sums.data, compare_sums);
    return sums;
}

const char *kernel_bound_text(Arena *arena, const KernelSum *k)
{
    double share = k->bound_seconds / k->seconds;
    const char *bound = k->is_memory ? "memory" : "compute";
    const char *level = k->is_memory && *k->level && strcmp(k->level, "memory")
                            ? arena_printf(arena, " (%s)", k->level)
                            : "";
    if (!isfinite(share))
        return arena_printf(arena, "bound by %s%s", bound, level);
    return arena_printf(arena, "%s of %s%s", format_share(arena, share, 0),
                        bound, level);
}

const MainCase *kernel_main_cases(Arena *arena, const Judged *j, int *count)
{
    const History *h = j->h;
    MainCase *mains = ARENA_ARRAY(arena, MainCase, h->cases.count);
    *count = 0;
    for (int c = 0; c < h->cases.count; c++) {
        const Case *of = &h->cases.data[c];
        const CaseDetail *detail = detail_case(j->newest, of->name);
        if (!detail || !detail->steps.count)
            continue;
        int i = 0;
        while (i < *count && strcmp(mains[i].of->model, of->model))
            i++;
        if (i == *count)
            mains[(*count)++] = (MainCase){of, detail};
        else if (!strcmp(of->mode, "fused"))
            mains[i] = (MainCase){of, detail};
    }
    return mains;
}

/* ---- tables ----------------------------------------------------------- */

static void add_nodes(Page *p, const KernelSum *k)
{
    str_add(&p->body, "<td class=\"left nodes\">");
    if (k->nodes.count) {
        Str all = {0};
        for (int i = 0; i < k->nodes.count && i < MAX_NODES; i++)
            str_addf(&all, "%s%s", i ? ", " : "", k->nodes.data[i]);
        if (k->nodes.count > MAX_NODES)
            str_addf(&all, " and %d more", k->nodes.count - MAX_NODES);
        html_add_name(&p->body, "span", "", str_text(&all));
        str_free(&all);
    }
    str_add(&p->body, "</td>");
}

static void add_row(Page *p, const KernelSum *k, const Case *of)
{
    double share = k->bound_seconds / k->seconds;
    double lost = k->seconds - k->bound_seconds;
    str_add(&p->body, "<tr><th scope=\"row\" class=\"kernel\">");
    html_add_name(&p->body, "span", "", k->name);
    str_add(&p->body, "</th>");
    if (of) {
        str_add(&p->body, "<td class=\"left\">");
        html_add_name(&p->body, "span", "", of->model);
        str_add(&p->body, "</td>");
    }
    html_cell(&p->body, "", format_value(p->arena, "s", k->seconds));
    html_cell(&p->body, "", arena_printf(p->arena, "%d", k->calls));
    html_cell(&p->body, "",
              format_share(p->arena, k->share > 0 ? k->share : NAN, 1));
    html_cell(
        &p->body, "",
        k->flops > 0 && k->seconds > 0
            ? arena_printf(p->arena, "%.3g", k->flops / k->seconds * 1e-9)
            : "–");
    html_cell(&p->body, "left",
              !k->is_memory ? "compute"
              : *k->level   ? k->level
                            : "memory");
    html_cell(&p->body, "", format_share(p->arena, share, 0));
    html_cell(&p->body, "",
              lost > 0 ? format_value(p->arena, "s", lost) : "–");
    add_nodes(p, k);
    str_add(&p->body, "</tr>\n");
}

#define SUM_COLUMNS                                                           \
    "time|calls|share|GFLOP/s|<bound by|of bound|above bound|<source "        \
    "nodes"

void kernels_add_table(Page *p, const KernelSums *sums)
{
    str_add(&p->body, "<div class=\"scroll\"><table class=\"sortable\">\n");
    html_head(&p->body, "<kernel|" SUM_COLUMNS);
    str_add(&p->body, "<tbody>\n");
    for (int i = 0; i < sums->count; i++)
        add_row(p, &sums->data[i], NULL);
    str_add(&p->body, "</tbody></table></div>\n");
}

/* ---- slowest ---------------------------------------------------------- */

typedef struct Slow {
    KernelSum sum;
    const Case *of;
} Slow;

static int compare_slow(const void *a, const void *b)
{
    return compare_sums(&((const Slow *)a)->sum, &((const Slow *)b)->sum);
}

void page_add_kernels(Page *p, const Judged *j)
{
    /* Kernels alone have their table on top. */
    if (is_kernel_suite(j->h))
        return;
    int count;
    const MainCase *mains = kernel_main_cases(p->arena, j, &count);
    Vec(Slow) all = {0};
    for (int i = 0; i < count; i++) {
        KernelSums sums = kernel_sums(p->arena, mains[i].detail);
        for (int k = 0; k < sums.count; k++) {
            Slow slow = {sums.data[k], mains[i].of};
            vec_push(p->arena, &all, slow);
        }
    }
    if (!all.count)
        return;
    qsort(all.data, (size_t)all.count, sizeof *all.data, compare_slow);
    page_begin_section(p, j, "kernels", "Slowest kernels");
    str_add(&p->body, "<div class=\"scroll\"><table class=\"sortable\">\n");
    html_head(&p->body, "<kernel|<model|" SUM_COLUMNS);
    str_add(&p->body, "<tbody>\n");
    for (int i = 0; i < all.count && i < MAX_SLOWEST; i++)
        add_row(p, &all.data[i].sum, all.data[i].of);
    str_add(&p->body, "</tbody></table></div>\n");
    str_addf(&p->body,
             "<p class=\"note\">Of %d in all models. <b>of bound</b>: the "
             "roofline's time over the measured one; <b>above bound</b>: what "
             "is left to gain.</p>\n",
             all.count);
    page_end_section(p);
}
