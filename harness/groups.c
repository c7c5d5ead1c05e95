#include "harness/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "runtime/runtime.h"
#include "harness/values.h"

typedef struct Groups {
    Arena *arena;
    const Pair *pair;
    ArtifactInfo info[2];
    /* Group of each step, side a's steps first: a union-find forest. */
    int *parent;
    int step_count;
    int group; /* at hand */
} Groups;

static const ArtifactStep *step_of(const Groups *g, int at)
{
    int own = g->info[0].step_count;
    return at < own ? &g->info[0].steps[at] : &g->info[1].steps[at - own];
}

/* ---- which steps belong together -------------------------------------- */

static int root_of(Groups *g, int at)
{
    while (g->parent[at] != at) {
        g->parent[at] = g->parent[g->parent[at]];
        at = g->parent[at];
    }
    return at;
}

typedef struct Mention {
    const char *node;
    int step;
} Mention;

static int by_node(const void *x, const void *y)
{
    const Mention *a = x, *b = y;
    int order = strcmp(a->node, b->node);
    return order ? order : (a->step > b->step) - (a->step < b->step);
}

/* A node that two steps name joins them, be they of one side or of both. */
static void join_steps(Groups *g)
{
    Vec(Mention) mentions = {0};
    for (int s = 0; s < g->step_count; s++) {
        const char *const *nodes = step_of(g, s)->nodes;
        for (int i = 0; nodes[i]; i++) {
            Mention m = {nodes[i], s};
            vec_push(g->arena, &mentions, m);
        }
    }
    if (!mentions.count)
        return;
    qsort(mentions.data, (size_t)mentions.count, sizeof *mentions.data,
          by_node);
    for (int i = 1; i < mentions.count; i++) {
        const Mention *m = &mentions.data[i];
        if (strcmp(m[-1].node, m->node))
            continue;
        int a = root_of(g, m[-1].step), b = root_of(g, m->step);
        /* The first step stands for the group. */
        g->parent[a > b ? a : b] = a > b ? b : a;
    }
}

/* ---- what they take --------------------------------------------------- */

/* Run by run, the sum over the group's steps of one side. */
static Samples side_samples(Groups *g, const PairVisit *visit, int side)
{
    const json_t *steps = json_object_get(
        json_object_get(visit->report, side ? "b" : "a"), "steps");
    int first = side ? g->info[0].step_count : 0;
    int runs = (int)json_array_size(
        json_object_get(json_array_get(steps, 0), "samples"));
    double *seconds = ARENA_ARRAY(g->arena, double, runs + 1);
    bool any = false;
    for (int s = 0; s < g->info[side].step_count; s++) {
        if (root_of(g, first + s) != g->group)
            continue;
        any = true;
        const json_t *samples =
            json_object_get(json_array_get(steps, (size_t)s), "samples");
        for (int i = 0; i < runs; i++)
            seconds[i] +=
                json_number_value(json_array_get(samples, (size_t)i));
    }
    return (Samples){seconds, any ? runs : 0};
}

static PairPart part_of(void *user, const PairVisit *visit)
{
    Groups *g = user;
    return (PairPart){side_samples(g, visit, 0), side_samples(g, visit, 1)};
}

static double median_seconds(Groups *g, int side)
{
    double medians[2 * PAIR_MOST_BLOCKS];
    int count = 0;
    for (int i = 0; i < g->pair->blocks; i++)
        for (int v = 0; v < 2; v++) {
            Samples s = side_samples(g, &g->pair->visits[i][v], side);
            if (s.count)
                medians[count++] = stats_median(s.seconds, s.count);
        }
    return stats_median(medians, count);
}

/* The code hashes of a side's kernels in the group, in order. */
static bool same_code(Groups *g)
{
    int at[2] = {0, g->info[0].step_count};
    for (;;) {
        uint64_t hash[2] = {0, 0};
        for (int side = 0; side < 2; side++) {
            int end = side ? g->step_count : g->info[0].step_count;
            while (at[side] < end && root_of(g, at[side]) != g->group)
                at[side]++;
            if (at[side] < end)
                hash[side] = g->info[side]
                                 .kernels[step_of(g, at[side]++)->kernel_index]
                                 .code_hash;
        }
        if (hash[0] != hash[1])
            return false;
        if (!hash[0])
            return true;
    }
}

/* ---- rows ------------------------------------------------------------- */

static bool lists(const json_t *list, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (!strcmp(json_string_value(item), text))
            return true;
    }
    return false;
}

static json_t *nodes_json(Groups *g)
{
    json_t *list = json_array();
    for (int s = 0; s < g->step_count; s++) {
        if (root_of(g, s) != g->group)
            continue;
        const char *const *nodes = step_of(g, s)->nodes;
        for (int i = 0; nodes[i]; i++)
            if (!lists(list, nodes[i]))
                json_array_append_new(list, json_string(nodes[i]));
    }
    return list;
}

static json_t *kernels_json(Groups *g, int side)
{
    json_t *list = json_array();
    int first = side ? g->info[0].step_count : 0;
    for (int s = 0; s < g->info[side].step_count; s++)
        if (root_of(g, first + s) == g->group)
            json_array_append_new(list,
                                  json_string(step_of(g, first + s)->kernel));
    return list;
}

static json_t *group_row(Groups *g, Ratio *ratio)
{
    *ratio = pair_part_ratio(g->pair, part_of, g, 0.95);
    json_t *a = kernels_json(g, 0), *b = kernels_json(g, 1);
    const json_t *one = json_array_get(json_array_size(b) ? b : a, 0);
    const char *name = json_string_value(one);
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "name",
        name ? name : "", "nodes", nodes_json(g), "a_seconds",
        number_json(median_seconds(g, 0)), "b_seconds",
        number_json(median_seconds(g, 1)), "a_kernels", a, "b_kernels", b,
        "ratio", number_json(ratio->value), "low", number_json(ratio->low),
        "high", number_json(ratio->high), "identical", same_code(g));
}

/* A part whose interval clears 1 by less than twice the placebo's spread is
 * not decided; nor is the placebo itself, whose code is the same. */
static Verdict verdict_beyond(Ratio ratio, bool identical, double noise)
{
    /* Folded away on one side, or never run. */
    if (isnan(ratio.value))
        return VERDICT_MISSING;
    Verdict verdict = verdict_of(ratio);
    double floor = noise > 0 ? 1 + 2 * noise : 1;
    bool clear = !identical && (ratio.low > floor || ratio.high < 1 / floor);
    bool decided = verdict == VERDICT_IMPROVED || verdict == VERDICT_REGRESSED;
    return decided && !clear ? VERDICT_INCONCLUSIVE : verdict;
}

/* Root mean square of the placebo's distances from 1, by the time they
 * take: the shortest kernels scatter most and matter least. */
typedef struct Spread {
    double sum, weight;
} Spread;

static void add_placebo(Spread *spread, const json_t *row, Ratio ratio)
{
    double seconds = json_number_value(json_object_get(row, "b_seconds"));
    double distance = log(ratio.value);
    if (!json_is_true(json_object_get(row, "identical")) ||
        !isfinite(distance))
        return;
    spread->sum += seconds * distance * distance;
    spread->weight += seconds;
}

json_t *groups_compare(Arena *arena, const Pair *pair, const char *a,
                       const char *b, double *noise)
{
    AssayError error;
    Groups g = {.arena = arena, .pair = pair};
    *noise = NAN;
    if (!pair->blocks ||
        artifact_read_info(arena, a, &g.info[0], &error) != ASSAY_OK ||
        artifact_read_info(arena, b, &g.info[1], &error) != ASSAY_OK)
        return NULL;
    g.step_count = g.info[0].step_count + g.info[1].step_count;
    g.parent = ARENA_ARRAY(arena, int, g.step_count + 1);
    for (int s = 0; s < g.step_count; s++)
        g.parent[s] = s;
    join_steps(&g);
    json_t *rows = json_array();
    Vec(Ratio) ratios = {0};
    Spread spread = {0, 0};
    for (g.group = 0; g.group < g.step_count; g.group++) {
        if (root_of(&g, g.group) != g.group)
            continue;
        Ratio ratio;
        json_t *row = group_row(&g, &ratio);
        json_array_append_new(rows, row);
        vec_push(arena, &ratios, ratio);
        add_placebo(&spread, row, ratio);
    }
    if (spread.weight > 0)
        *noise = exp(sqrt(spread.sum / spread.weight)) - 1;
    for (int i = 0; i < ratios.count; i++) {
        json_t *row = json_array_get(rows, (size_t)i);
        bool identical = json_is_true(json_object_get(row, "identical"));
        Verdict verdict = verdict_beyond(ratios.data[i], identical, *noise);
        json_object_set_new(row, "verdict",
                            json_string(verdict_name(verdict)));
    }
    return rows;
}
