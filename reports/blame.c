#include "reports/blame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A step of either side, in a forest of those that share nodes. */
typedef struct Member {
    const StepDetail *step;
    const Kernel *kernel; /* NULL: unknown */
    bool now;
    int parent, part;
} Member;

static int root_of(Member *members, int i)
{
    while (members[i].parent != i)
        i = members[i].parent = members[members[i].parent].parent;
    return i;
}

/* Joins a step to the one that first named `key`. */
static void join(Member *members, int i, Map *owners, const char *key)
{
    int owner = (int)(intptr_t)map_get(owners, key) - 1;
    if (owner < 0)
        map_set(owners, key, (void *)(intptr_t)(i + 1));
    else
        members[root_of(members, i)].parent = root_of(members, owner);
}

static int add_members(Arena *arena, Member *members, int count,
                       const CaseDetail *c, bool now, Map *owners)
{
    for (int i = 0; i < c->steps.count; i++, count++) {
        const StepDetail *step = &c->steps.data[i];
        members[count] =
            (Member){step, detail_kernel(c, step->kernel), now, count, -1};
        bool named = false;
        for (int k = 0; k < step->nodes.count; k++) {
            if (!*step->nodes.data[k])
                continue;
            join(members, count, owners, step->nodes.data[k]);
            named = true;
        }
        if (!named)
            join(members, count, owners,
                 arena_printf(arena, "\nkernel %s", step->kernel));
    }
    return count;
}

static void push_once(Arena *arena, Part *part, const char *node)
{
    for (int i = 0; i < part->nodes.count; i++)
        if (!strcmp(part->nodes.data[i], node))
            return;
    vec_push(arena, &part->nodes, node);
}

static void add_to_part(Arena *arena, Part *part, const Member *m)
{
    double seconds = isnan(m->step->seconds) ? 0 : m->step->seconds;
    if (m->now) {
        vec_push(arena, &part->now, m->step->kernel);
        part->now_seconds += seconds;
    } else {
        vec_push(arena, &part->then, m->step->kernel);
        part->then_seconds += seconds;
    }
    for (int k = 0; k < m->step->nodes.count; k++)
        push_once(arena, part, m->step->nodes.data[k]);
}

/* Whether both sides of a part have the same hashes, however often: the sum
 * of hashed texts does not depend on their order. */
static bool differs(const Member *members, int count, int part, bool loops)
{
    uint64_t sum = 0;
    for (int i = 0; i < count; i++) {
        const Member *m = &members[i];
        if (m->part != part)
            continue;
        const char *hash = !m->kernel ? m->step->kernel
                           : loops    ? m->kernel->loops_hash
                                      : m->kernel->code_hash;
        sum += m->now ? hash_text(hash) : -hash_text(hash);
    }
    return sum != 0;
}

static int compare_parts(const void *a, const void *b)
{
    const Part *x = a, *y = b;
    double p = fabs(x->now_seconds - x->then_seconds);
    double q = fabs(y->now_seconds - y->then_seconds);
    return (p < q) - (p > q);
}

/* Kernels stand for steps where a run was not profiled. */
static const CaseDetail *with_steps(Arena *arena, const CaseDetail *c)
{
    if (c->steps.count)
        return c;
    CaseDetail *copy = ARENA_NEW(arena, CaseDetail);
    *copy = *c;
    for (int i = 0; i < c->kernels.count; i++) {
        StepDetail step = {.kernel = c->kernels.data[i].name, .seconds = NAN};
        vec_push(arena, &copy->steps, step);
    }
    return copy;
}

Blame blame(Arena *arena, const CaseDetail *now, const CaseDetail *then)
{
    Blame b = {.timed = now->steps.count && then->steps.count};
    if (!b.timed) {
        now = with_steps(arena, now);
        then = with_steps(arena, then);
    }
    Member *members =
        ARENA_ARRAY(arena, Member, now->steps.count + then->steps.count);
    Map owners;
    map_init(&owners, arena);
    int count = add_members(arena, members, 0, now, true, &owners);
    count = add_members(arena, members, count, then, false, &owners);
    for (int i = 0; i < count; i++) {
        Member *root = &members[root_of(members, i)];
        if (root->part < 0) {
            root->part = b.parts.count;
            vec_push(arena, &b.parts, (Part){0});
        }
        members[i].part = root->part;
        add_to_part(arena, &b.parts.data[root->part], &members[i]);
    }
    for (int i = 0; i < b.parts.count; i++) {
        Part *part = &b.parts.data[i];
        double change = part->now_seconds - part->then_seconds;
        part->code_changed = differs(members, count, i, false);
        part->loops_changed = differs(members, count, i, true);
        b.total_seconds += change;
        if (part->code_changed || part->loops_changed) {
            b.changed++;
            b.changed_seconds += change;
        }
    }
    if (b.parts.count)
        qsort(b.parts.data, (size_t)b.parts.count, sizeof *b.parts.data,
              compare_parts);
    return b;
}
