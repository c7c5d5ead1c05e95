/* The memory plan.
 *
 * Offline and exact: every buffer's live range is known, so that placement
 * is interval packing in two dimensions. Buffers that alias share storage;
 * where a kernel may run in place and its operand dies there, the result
 * takes the operand's storage. What is left is placed best-fit, in several
 * orders, and the smallest arena wins; the buffer that ends highest is then
 * moved forward in the order for a number of rounds. Source for best-fit by
 * size over live ranges: Pisarchyk and Lee, 2020, "Efficient memory
 * management for deep neural net inference". */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

enum { ALIGN = 64, MAX_ROUNDS = 200, MAX_ROUND_ITEMS = 1500 };

typedef struct Item {
    int buffer;
    int64_t bytes; /* rounded up */
    int first, last;
    int64_t offset;
} Item;

static int64_t rounded(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* The buffer whose storage `index` has. */
static int root_of(const Program *p, int index)
{
    while (p->buffers.data[index].alias_of >= 0)
        index = p->buffers.data[index].alias_of;
    return index;
}

static void extend(ProgramBuffer *b, int first, int last)
{
    b->first_step = first < b->first_step ? first : b->first_step;
    b->last_step = last > b->last_step ? last : b->last_step;
}

/* What a region reads to decide is read before its first step; and what a
 * loop has in common with the steps around it is live in all iterations.
 * Inner loops come first, so that the outer ones see their ranges. */
static void extend_ranges(Program *p)
{
    for (int i = p->regions.count - 1; i >= 0; i--) {
        const ProgramRegion *r = &p->regions.data[i];
        const int touched[] = {r->cond, r->trips, r->counter};
        for (int k = 0; k < 3; k++)
            if (touched[k] >= 0) {
                extend(&p->buffers.data[touched[k]], r->first, r->first);
                extend(&p->buffers.data[root_of(p, touched[k])], r->first,
                       r->first);
            }
        if (r->kind != REGION_LOOP)
            continue;
        for (int k = 0; k < p->buffers.count; k++) {
            ProgramBuffer *b = &p->buffers.data[k];
            bool inside = b->first_step < r->end && b->last_step >= r->first;
            if (inside && (b->first_step < r->first || b->last_step >= r->end))
                extend(b, r->first, r->end - 1);
        }
    }
}

/* Live ranges of storage: an alias extends that of its root. */
static void find_ranges(Program *p)
{
    for (int i = 0; i < p->buffers.count; i++) {
        p->buffers.data[i].first_step = p->steps.count;
        p->buffers.data[i].last_step = -1;
    }
    for (int s = 0; s < p->steps.count; s++) {
        const ProgramStep *step = &p->steps.data[s];
        for (int a = 0; a < step->arg_count; a++) {
            int root = root_of(p, step->args[a]);
            for (int i = step->args[a];; i = root) {
                ProgramBuffer *b = &p->buffers.data[i];
                if (s < b->first_step)
                    b->first_step = s;
                b->last_step = s;
                if (i == root)
                    break;
            }
        }
    }
    extend_ranges(p);
    if (!p->taps)
        return;
    /* Tapped values are looked at after the run. Workspace is not. */
    for (int i = 0; i < p->buffers.count; i++)
        if (p->buffers.data[i].tensor && p->buffers.data[i].last_step >= 0) {
            p->buffers.data[i].last_step = p->steps.count - 1;
            p->buffers.data[root_of(p, i)].last_step = p->steps.count - 1;
        }
}

static int uses_of_root(const Program *p, const ProgramStep *step, int root)
{
    int uses = 0;

    for (int a = 0; a < step->arg_count; a++)
        uses += root_of(p, step->args[a]) == root;
    return uses;
}

/* Gives the result of a step the storage of an operand that dies in it. */
static void run_in_place(Program *p, int at)
{
    const ProgramStep *step = &p->steps.data[at];
    const ProgramKernel *kernel = &p->kernels.data[step->kernel];
    int out = -1, operand = -1;

    for (int a = 0; a < step->arg_count; a++)
        if (kernel->kernel->params.data[a]->role == BUF_OUTPUT) {
            if (out >= 0)
                return;
            out = step->args[a];
        }
    if (out < 0 || !kernel->in_place)
        return;
    out = root_of(p, out);
    ProgramBuffer *o = &p->buffers.data[out];
    if (o->kind != PB_ARENA || o->first_step != at)
        return;
    for (int a = 0; a < step->arg_count; a++) {
        int root = root_of(p, step->args[a]);
        ProgramBuffer *b = &p->buffers.data[root];
        if (kernel->in_place[a] && b->kind == PB_ARENA && root != out &&
            b->last_step == at && b->bytes == o->bytes &&
            uses_of_root(p, step, root) == 1) {
            operand = root;
            break;
        }
    }
    if (operand < 0)
        return;
    o->alias_of = operand;
    p->buffers.data[operand].last_step = o->last_step;
}

static bool overlap(const Item *a, const Item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int by_offset(const void *x, const void *y)
{
    const Item *a = *(Item *const *)x, *b = *(Item *const *)y;

    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Places `items` in their order, each in the smallest gap between those
 * live at the same time. Returns the bytes used. */
static int64_t place(Item **items, int count, Item **near)
{
    int64_t top = 0;

    for (int i = 0; i < count; i++) {
        Item *item = items[i];
        int n = 0;
        for (int k = 0; k < i; k++)
            if (overlap(items[k], item))
                near[n++] = items[k];
        qsort(near, (size_t)n, sizeof *near, by_offset);
        int64_t at = 0, best = -1, best_gap = INT64_MAX;
        for (int k = 0; k < n; k++) {
            int64_t gap = near[k]->offset - at;
            if (gap >= item->bytes && gap < best_gap) {
                best_gap = gap;
                best = at;
            }
            int64_t end = near[k]->offset + near[k]->bytes;
            at = end > at ? end : at;
        }
        item->offset = best >= 0 ? best : at;
        if (item->offset + item->bytes > top)
            top = item->offset + item->bytes;
    }
    return top;
}

typedef int (*ItemOrder)(const void *x, const void *y);

#define ITEMS(a, b) const Item *a = *(Item *const *)x, *b = *(Item *const *)y

static int tie(const Item *a, const Item *b)
{
    return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static int by_size(const void *x, const void *y)
{
    ITEMS(a, b);
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return tie(a, b);
}

static int by_lifetime(const void *x, const void *y)
{
    ITEMS(a, b);
    int la = a->last - a->first, lb = b->last - b->first;
    if (la != lb)
        return la > lb ? -1 : 1;
    return by_size(x, y);
}

static int by_area(const void *x, const void *y)
{
    ITEMS(a, b);
    double la = (double)a->bytes * (a->last - a->first + 1);
    double lb = (double)b->bytes * (b->last - b->first + 1);
    if (la != lb)
        return la > lb ? -1 : 1;
    return tie(a, b);
}

static int by_time(const void *x, const void *y)
{
    ITEMS(a, b);
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return by_size(x, y);
}

/* Moves the item that ends highest a step of the way to the front. */
static void promote_highest(Item **items, int count)
{
    int high = 0;

    for (int i = 1; i < count; i++)
        if (items[i]->offset + items[i]->bytes >
            items[high]->offset + items[high]->bytes)
            high = i;
    Item *item = items[high];
    int to = high / 2;
    memmove(items + to + 1, items + to, (size_t)(high - to) * sizeof *items);
    items[to] = item;
}

/* Largest sum of bytes live at one step. */
static int64_t live_bound(const Program *p, const Item *items, int count)
{
    int64_t *change = calloc((size_t)p->steps.count + 2, sizeof *change);
    int64_t live = 0, bound = 0;

    if (!change)
        die("out of memory");
    for (int i = 0; i < count; i++) {
        change[items[i].first] += items[i].bytes;
        change[items[i].last + 1] -= items[i].bytes;
    }
    for (int s = 0; s <= p->steps.count; s++) {
        live += change[s];
        bound = live > bound ? live : bound;
    }
    free(change);
    return bound;
}

static int64_t keep_better(Item *const *items, int count, int64_t used,
                           int64_t best, int64_t *offsets, Item *all)
{
    if (used >= best)
        return best;
    for (int i = 0; i < count; i++)
        offsets[items[i] - all] = items[i]->offset;
    return used;
}

static int64_t place_best(Arena *scratch, Item *all, int count, int64_t bound,
                          int64_t *offsets)
{
    static const ItemOrder orders[] = {by_size, by_area, by_lifetime, by_time};
    Item **order = ARENA_ARRAY(scratch, Item *, count + 1);
    Item **near = ARENA_ARRAY(scratch, Item *, count + 1);
    int64_t best = INT64_MAX;

    for (int o = 0; o < (int)(sizeof orders / sizeof *orders); o++) {
        for (int i = 0; i < count; i++)
            order[i] = &all[i];
        qsort(order, (size_t)count, sizeof *order, orders[o]);
        int rounds = count <= MAX_ROUND_ITEMS ? MAX_ROUNDS : 1;
        for (int r = 0; r < rounds && best > bound; r++) {
            if (r > 0)
                promote_highest(order, count);
            int64_t used = place(order, count, near);
            best = keep_better(order, count, used, best, offsets, all);
        }
    }
    return best;
}

/* An alias lies where its root does. Roots come first in the chain, not in
 * the list. */
static void finish_aliases(Program *p)
{
    for (int i = 0; i < p->buffers.count; i++) {
        ProgramBuffer *b = &p->buffers.data[i];
        if (b->alias_of < 0)
            continue;
        b->alias_of = root_of(p, i);
        b->kind = p->buffers.data[b->alias_of].kind;
        b->offset = p->buffers.data[b->alias_of].offset;
    }
}

static void place_weights(Program *p)
{
    int64_t at = 0;

    for (int i = 0; i < p->buffers.count; i++) {
        ProgramBuffer *b = &p->buffers.data[i];
        if (b->kind != PB_CONSTANT || b->alias_of >= 0)
            continue;
        b->offset = at;
        at += rounded(b->bytes);
    }
    p->weight_bytes = at;
}

void program_plan_memory(Program *p)
{
    Arena *scratch = arena_new();
    int count = 0;

    find_ranges(p);
    if (!p->taps)
        for (int s = 0; s < p->steps.count; s++)
            run_in_place(p, s);
    Item *items = ARENA_ARRAY(scratch, Item, p->buffers.count + 1);
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (b->kind == PB_ARENA && b->alias_of < 0 && b->last_step >= 0)
            items[count++] = (Item){.buffer = i,
                                    .bytes = rounded(b->bytes),
                                    .first = b->first_step,
                                    .last = b->last_step};
    }
    int64_t *offsets = ARENA_ARRAY(scratch, int64_t, count + 1);
    p->arena_bound = live_bound(p, items, count);
    p->arena_bytes = 0;
    if (count > 0)
        p->arena_bytes =
            place_best(scratch, items, count, p->arena_bound, offsets);
    for (int i = 0; i < count; i++)
        p->buffers.data[items[i].buffer].offset = offsets[i];
    place_weights(p);
    finish_aliases(p);
    arena_free(scratch);
}
