#include "harness/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/common.h"

enum { BAR = 24 }; /* columns */

struct Progress {
    Arena *arena;
    int count, item;
    const char *name;
    double *expected, *taken; /* seconds by item; 0: unknown */
    double start, item_start;
    bool is_terminal;
};

Progress *progress_new(Arena *arena, int count)
{
    Progress *p = ARENA_NEW(arena, Progress);
    p->arena = arena;
    p->count = count;
    p->expected = ARENA_ARRAY(arena, double, count + 1);
    p->taken = ARENA_ARRAY(arena, double, count + 1);
    p->start = clock_now();
    p->is_terminal = isatty(STDERR_FILENO);
    return p;
}

void progress_expect(Progress *p, int item, double seconds)
{
    p->expected[item] = seconds;
}

double progress_elapsed(const Progress *p)
{
    return clock_now() - p->start;
}

/* Of items still to come and the one at hand. What was expected before is
 * scaled by how right it has been so far. Negative: nobody knows. */
static double remaining(const Progress *p, int next)
{
    double taken = 0, foreseen = 0, left = 0;
    int known = 0;
    for (int i = 0; i < p->count; i++)
        if (p->expected[i] > 0) {
            foreseen += p->expected[i];
            known++;
        }
    for (int i = 0; i < next; i++)
        taken += p->taken[i];
    if (!known && !next)
        return -1;
    double average = known ? foreseen / known : taken / next;
    for (int i = next; i < p->count; i++)
        left += p->expected[i] > 0 ? p->expected[i] : average;
    double before = 0;
    for (int i = 0; i < next; i++)
        before += p->expected[i] > 0 ? p->expected[i] : average;
    return before > 0 ? left * taken / before : left;
}

/* "1:05", "2:03:04" */
static const char *clock_text(const Progress *p, double seconds)
{
    int s = (int)(seconds + 0.5);
    return s < 3600 ? arena_printf(p->arena, "%d:%02d", s / 60, s % 60)
                    : arena_printf(p->arena, "%d:%02d:%02d", s / 3600,
                                   s / 60 % 60, s % 60);
}

static const char *left_text(const Progress *p, int next)
{
    double left = remaining(p, next);
    return left < 0 || next == p->count
               ? ""
               : arena_printf(p->arena, ", about %s left",
                              clock_text(p, left));
}

/* Redrawn in place: never on anything but a terminal. */
static void draw_bar(const Progress *p, const char *phase)
{
    if (!p->is_terminal)
        return;
    char bar[BAR + 1];
    int done = p->count ? BAR * p->item / p->count : BAR;
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)done);
    bar[BAR] = 0;
    fprintf(stderr, "\r\033[K[%s] %d/%d %s%s%s  %s elapsed%s", bar,
            p->item + 1, p->count, p->name, *phase ? ": " : "", phase,
            clock_text(p, progress_elapsed(p)), left_text(p, p->item));
    fflush(stderr);
}

void progress_begin(Progress *p, int item, const char *name)
{
    p->item = item;
    p->name = name;
    p->item_start = clock_now();
    draw_bar(p, "");
}

void progress_phase(Progress *p, const char *phase)
{
    draw_bar(p, phase);
}

void progress_end(Progress *p, const char *outcome)
{
    p->taken[p->item] = clock_now() - p->item_start;
    fprintf(stderr, "%s[%*d/%d] %s: %s, %.1f s; %s elapsed%s\n",
            p->is_terminal ? "\r\033[K" : "", p->count > 9 ? 2 : 1,
            p->item + 1, p->count, p->name, outcome, p->taken[p->item],
            clock_text(p, progress_elapsed(p)), left_text(p, p->item + 1));
    fflush(stderr);
}
