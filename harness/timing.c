#include "harness/timing.h"

#include <math.h>
#include <stdlib.h>

#include "harness/common.h"
#include "harness/compare.h"
#include "harness/gbench.h"
#include "harness/peak.h"

/* ---- whole runs ------------------------------------------------------- */

static json_t *samples_json(const double *samples, int count)
{
    json_t *list = json_array();
    int kept = count < TIMING_MOST_SAMPLES ? count : TIMING_MOST_SAMPLES;
    for (int i = 0; i < kept; i++) {
        int64_t at = (int64_t)i * count / kept;
        json_array_append_new(list, json_real(samples[at]));
    }
    return list;
}

static json_t *time_json(const BenchResult *r, double best, double before,
                         double after)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:i, s:o, s:f, s:[f, f]}", "p50",
                     stats_percentile(r->samples, r->count, 0.5), "p90",
                     stats_percentile(r->samples, r->count, 0.9), "p99",
                     stats_percentile(r->samples, r->count, 0.99), "min",
                     stats_percentile(r->samples, r->count, 0), "runs",
                     r->count, "samples", samples_json(r->samples, r->count),
                     "fma_gflops", best, "fma_beside", before, after);
}

bool timing_run(Timed *sides, int count, const TimingOptions *o)
{
    Runner *first = sides[0].runner;
    Pool *pool = artifact_pool(first->artifact);
    BenchCase *cases = ARENA_ARRAY(first->arena, BenchCase, count);
    BenchResult *results = ARENA_ARRAY(first->arena, BenchResult, count);
    for (int i = 0; i < count; i++)
        cases[i] = (BenchCase){sides[i].runner->info->model, runner_run_first,
                               sides[i].runner};
    BenchOptions options = {.min_seconds = o->min_seconds,
                            .warmup_seconds = o->min_seconds / 5,
                            .iterations = o->repeat};
    double before, after;
    double best = peak_fma(pool, TIMING_CALIBRATION, &before);
    bool ok = bench_run(cases, count, &options, results) == 0;
    best = fmax(best, peak_fma(pool, TIMING_CALIBRATION, &after));
    if (!ok)
        str_add(first->error, "Google Benchmark did not run\n");
    for (int i = 0; i < count; i++) {
        if (ok)
            json_object_set_new(sides[i].report, "time",
                                time_json(&results[i], best, before, after));
        free(results[i].samples);
    }
    return ok;
}

/* ---- step by step ----------------------------------------------------- */

typedef struct Profile {
    double *seconds; /* [step][run] */
    int runs, run;
    double start;
} Profile;

static void profile_step(void *user, int32_t step, int32_t is_end)
{
    Profile *p = user;
    if (is_end)
        /* A step in a loop counts with all its iterations. */
        p->seconds[step * p->runs + p->run] += clock_now() - p->start;
    else
        p->start = clock_now();
}

static void profile_run(Runner *r, Profile *profile, int run)
{
    profile->run = run;
    artifact_on_step(r->artifact, profile_step, profile);
    runner_run_first(r);
    artifact_on_step(r->artifact, NULL, NULL);
}

static json_t *step_json(const ArtifactInfo *info, int step,
                         const Profile *profile)
{
    const ArtifactStep *s = &info->steps[step];
    const ArtifactKernel *kernel = &info->kernels[s->kernel_index];
    const double *seconds = profile->seconds + (size_t)step * profile->runs;
    json_t *samples = json_array(), *nodes = json_array();
    for (int i = 0; i < profile->runs; i++)
        json_array_append_new(samples, json_real(seconds[i]));
    for (int i = 0; s->nodes[i]; i++)
        json_array_append_new(nodes, json_string(s->nodes[i]));
    return json_pack("{s:s, s:i, s:o, s:f, s:o, s:f, s:f, s:f}", "kernel",
                     s->kernel, "group", s->group, "nodes", nodes, "seconds",
                     stats_median(seconds, profile->runs), "samples", samples,
                     "flops", kernel->flops, "bytes", kernel->bytes,
                     "weight_bytes", s->weight_bytes);
}

void timing_profile(Timed *sides, int count, const TimingOptions *o)
{
    Arena *arena = sides[0].runner->arena;
    Profile *profiles = ARENA_ARRAY(arena, Profile, count);
    for (int i = 0; i < count; i++) {
        size_t steps = (size_t)sides[i].runner->info->step_count;
        profiles[i].runs = o->profile_runs;
        profiles[i].seconds =
            ARENA_ARRAY(arena, double, steps *(size_t)o->profile_runs);
    }
    /* A B B A ..., as the processes around it. */
    for (int run = 0; run < o->profile_runs; run++)
        for (int k = 0; k < count; k++) {
            int i = run % 2 ? count - 1 - k : k;
            profile_run(sides[i].runner, &profiles[i], run);
        }
    for (int i = 0; i < count; i++) {
        json_t *list = json_array();
        const ArtifactInfo *info = sides[i].runner->info;
        for (int s = 0; s < info->step_count; s++)
            json_array_append_new(list, step_json(info, s, &profiles[i]));
        json_object_set_new(sides[i].report, "steps", list);
    }
}
