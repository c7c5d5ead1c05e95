#include "harness/builds.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "harness/common.h"
#include "harness/groups.h"
#include "harness/values.h"
#include "runtime/pool.h"

enum {
    LEAST_PROFILE_RUNS = 3,
    LEAST_BLOCKS = 4,
    STEP_TIMEOUT = 900 /* seconds */
};

/* Memory that a child may have: the machine must not start to swap, nor
 * the kernel to choose whom to kill. A sanitizer's shadow alone is larger
 * than any memory. */
static int64_t default_memory(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#else
    return (int64_t)sysconf(_SC_PHYS_PAGES) / 10 * 9 * sysconf(_SC_PAGESIZE);
#endif
}

void build_plan_init(BuildPlan *plan, bool quick)
{
    plan->min_time = quick ? 0.1 : 0.25;
    plan->profile_runs = quick ? 5 : 15;
    plan->pair.least_blocks = quick ? 1 : LEAST_BLOCKS;
    plan->pair.most_blocks = quick ? 1 : PAIR_MOST_BLOCKS;
    if (!plan->threads)
        plan->threads = pool_physical_cores(NULL, 0);
    if (plan->limits.seconds <= 0)
        plan->limits.seconds = STEP_TIMEOUT;
    if (!plan->limits.memory_bytes)
        plan->limits.memory_bytes = default_memory();
}

/* ---- one process ------------------------------------------------------ */

/* As many as fit into half a second: the profile is not to take longer than
 * what it explains. */
static int profile_runs(const BuildPlan *plan, double seconds_a_run)
{
    double fit = 0.5 / seconds_a_run;
    int runs = fit < plan->profile_runs ? (int)fit : plan->profile_runs;
    return runs > LEAST_PROFILE_RUNS ? runs : LEAST_PROFILE_RUNS;
}

static bool same_outputs(const json_t *report, const Build *build)
{
    return !build->outputs ||
           json_equal(json_object_get(report, "outputs"), build->outputs);
}

static const char *const other_outputs =
    "the timed run's outputs are not those that were checked";

json_t *build_measure(Arena *arena, const BuildPlan *plan, const Build *build,
                      double seconds_a_run, ChildEnd *end, Str *failure)
{
    Launch launch = {.artifact = build->artifact,
                     .threads = plan->threads,
                     .min_time = plan->min_time,
                     .profile = profile_runs(plan, seconds_a_run),
                     .limits = plan->limits};
    json_t *report = launch_runner(arena, &launch, end, failure);
    if (report && !same_outputs(report, build)) {
        str_add(failure, other_outputs);
        end->status = CASE_FAILED_CHECK;
        json_decref(report);
        report = NULL;
    }
    return report;
}

Samples report_samples(Arena *arena, const json_t *report)
{
    const json_t *list =
        json_object_get(json_object_get(report, "time"), "samples");
    int count = (int)json_array_size(list);
    double *seconds = ARENA_ARRAY(arena, double, count + 1);
    for (int i = 0; i < count; i++)
        seconds[i] = json_number_value(json_array_get(list, (size_t)i));
    return (Samples){seconds, count};
}

/* ---- both ------------------------------------------------------------- */

typedef struct Visits {
    Arena *arena;
    const BuildPlan *plan;
    const Build *a, *b;
    double seconds_a_run;
    Comparison *comparison;
} Visits;

static bool note_failure(Visits *v, CaseStatus status, const char *reason)
{
    v->comparison->status = status;
    v->comparison->reason = arena_strdup(v->arena, reason);
    return false;
}

static void take_calibration(const json_t *side, PairVisit *visit)
{
    const json_t *time = json_object_get(side, "time");
    const json_t *beside = json_object_get(time, "fma_beside");
    visit->best_gflops =
        json_number_value(json_object_get(time, "fma_gflops"));
    visit->lowest_gflops = fmin(json_number_value(json_array_get(beside, 0)),
                                json_number_value(json_array_get(beside, 1)));
}

/* Both builds in one process, in turns; the first of them is loaded first
 * and has the first turn. */
static bool visit_both(void *user, bool swapped, PairVisit *visit)
{
    Visits *v = user;
    const Build *first = swapped ? v->b : v->a;
    const Build *second = swapped ? v->a : v->b;
    Launch launch = {.artifact = first->artifact,
                     .pair = second->artifact,
                     .threads = v->plan->threads,
                     .min_time = v->plan->min_time,
                     .profile = profile_runs(v->plan, v->seconds_a_run),
                     .limits = v->plan->limits};
    Str failure = {0};
    ChildEnd end;
    json_t *report = launch_runner(v->arena, &launch, &end, &failure);
    json_t *sides = json_object_get(report, "sides");
    const json_t *one = json_array_get(sides, 0),
                 *two = json_array_get(sides, 1);
    bool ok = one && two && end.status == CASE_OK;
    if (!ok)
        note_failure(v, end.status == CASE_OK ? CASE_CRASHED : end.status,
                     str_text(&failure));
    else if (!same_outputs(one, first) || !same_outputs(two, second))
        ok = note_failure(v, CASE_FAILED_CHECK, other_outputs);
    str_free(&failure);
    if (!ok) {
        json_decref(report);
        return false;
    }
    /* With both builds in it, the process says nothing of either's memory. */
    json_object_del(json_array_get(sides, 0), "peak_rss_kib");
    json_object_del(json_array_get(sides, 1), "peak_rss_kib");
    visit->report = json_pack("{s:O, s:O}", "a", swapped ? two : one, "b",
                              swapped ? one : two);
    json_decref(report);
    visit->a = report_samples(v->arena, json_object_get(visit->report, "a"));
    visit->b = report_samples(v->arena, json_object_get(visit->report, "b"));
    take_calibration(json_object_get(visit->report, "a"), visit);
    return visit->a.count && visit->b.count;
}

void builds_compare(Arena *arena, const BuildPlan *plan, const Build *a,
                    const Build *b, double seconds_a_run, Comparison *c)
{
    *c = (Comparison){.a = a->name, .b = b->name, .noise = NAN};
    Visits visits = {arena, plan, a, b, seconds_a_run, c};
    pair_run(&plan->pair, visit_both, &visits, &c->pair);
    c->groups =
        groups_compare(arena, &c->pair, a->artifact, b->artifact, &c->noise);
    if (c->noise > 0 && c->pair.ratio.low < 1 + c->noise &&
        c->pair.ratio.high > 1 / (1 + c->noise) &&
        c->pair.verdict != VERDICT_SAME && c->pair.blocks)
        c->pair.verdict = VERDICT_INCONCLUSIVE;
}

void comparison_free(Comparison *c)
{
    pair_free(&c->pair);
    json_decref(c->groups);
    c->groups = NULL;
}

json_t *comparison_json(const char *model, const Comparison *c)
{
    const Pair *p = &c->pair;
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:o, s:i, s:i, s:i, s:O?}",
        "model", model, "a", c->a, "b", c->b, "ratio",
        number_json(p->ratio.value), "low", number_json(p->ratio.low), "high",
        number_json(p->ratio.high), "verdict",
        verdict_name(p->failed ? VERDICT_BROKEN : p->verdict), "noise",
        number_json(c->noise), "blocks", p->blocks, "repeated", p->repeated,
        "disturbed", p->disturbed, "groups", c->groups);
    if (c->reason)
        json_object_set_new(row, "reason", json_string(c->reason));
    return row;
}
