#include "harness/measure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/accuracy.h"
#include "harness/common.h"
#include "harness/roofline.h"
#include "harness/values.h"

enum { ALONE = 2 }; /* processes that measure one build by itself */

void mode_fail(Arena *arena, ModeResult *m, CaseStatus status,
               const char *reason)
{
    if (m->status != CASE_OK)
        return;
    m->status = status;
    m->reason = arena_strdup(arena, reason);
}

static void say_phase(const MeasurePlan *plan, const char *phase)
{
    if (plan->on_phase)
        plan->on_phase(plan->user, phase);
}

/* ---- compiling -------------------------------------------------------- */

static void compile_mode(Arena *arena, const char *model,
                         const MeasurePlan *plan, ModeResult *m)
{
    Words argv = launch_words(arena, "compile", model, plan->compile_args);
    vec_push(arena, &argv, "--mode");
    vec_push(arena, &argv, m->mode);
    vec_push(arena, &argv, "--format");
    vec_push(arena, &argv, "json");
    vec_push(arena, &argv, "-o");
    vec_push(arena, &argv, m->artifact);
    vec_push(arena, &argv, NULL);
    Str failure = {0};
    ChildEnd end;
    json_t *report =
        child_json(argv.data, &plan->build.limits, &end, &failure);
    m->compile = end.seconds;
    m->passes = json_incref(json_object_get(report, "passes"));
    if (end.status != CASE_OK)
        mode_fail(arena, m, end.status,
                  arena_printf(arena, "compiling: %s", str_text(&failure)));
    json_decref(report);
    str_free(&failure);
}

static void read_kernels(ModeResult *m, const ArtifactInfo *info)
{
    m->flops = m->code_bytes = 0;
    m->kernel_calls = info->step_count;
    m->arena_bytes = (double)info->arena_bytes;
    m->arena_bound = (double)info->arena_bound;
    m->weight_bytes = (double)info->weight_bytes;
    for (int i = 0; i < info->step_count; i++)
        m->flops += info->kernels[info->steps[i].kernel_index].flops;
    m->kernels = json_array();
    for (int i = 0; i < info->kernel_count; i++) {
        const ArtifactKernel *k = &info->kernels[i];
        m->code_bytes += (double)k->code_bytes;
        json_array_append_new(
            m->kernels,
            json_pack("{s:s, s:o, s:o, s:I, s:f}", "name", k->name,
                      "loops_hash", hash_json(k->loops_hash), "code_hash",
                      hash_json(k->code_hash), "code_bytes",
                      (json_int_t)k->code_bytes, "flops", k->flops));
    }
}

static void read_artifact(Arena *arena, ModeResult *m)
{
    ArtifactInfo info;
    AssayError error;
    if (m->status != CASE_OK)
        return;
    if (artifact_read_info(arena, m->artifact, &info, &error) != ASSAY_OK) {
        mode_fail(arena, m, CASE_CRASHED, error.text);
        return;
    }
    read_kernels(m, &info);
    json_t *manifest = json_load_file(
        arena_printf(arena, "%s/manifest.json", m->artifact), 0, NULL);
    m->high_water = json_incref(json_object_get(manifest, "high_water"));
    json_decref(manifest);
}

/* ---- checking --------------------------------------------------------- */

static void take_check(Arena *arena, ModeResult *m, json_t *row)
{
    const char *status = json_string_value(json_object_get(row, "status"));
    const char *reason = json_string_value(json_object_get(row, "reason"));
    m->check = json_incref(row);
    /* What `assay check` says of every layer is for a look, not for each
     * stored result. */
    json_object_del(row, "layers");
    if (case_status_parse(status) != CASE_OK)
        mode_fail(arena, m, case_status_parse(status),
                  reason ? reason : "the check says nothing");
}

/* All modes in one process: the reference is evaluated once. */
static void check_modes(Arena *arena, const char *model,
                        const MeasurePlan *plan, ModelResult *r)
{
    Words argv = launch_words(arena, "check", model, plan->compile_args);
    vec_push(arena, &argv, "--format");
    vec_push(arena, &argv, "json");
    if (plan->build.threads) {
        vec_push(arena, &argv, "--threads");
        vec_push(arena, &argv, arena_printf(arena, "%d", plan->build.threads));
    }
    if (plan->build.limits.seconds > 0) {
        vec_push(arena, &argv, "--timeout");
        vec_push(arena, &argv,
                 arena_printf(arena, "%g", plan->build.limits.seconds));
    }
    int compiled = 0;
    for (int i = 0; i < r->mode_count; i++) {
        if (r->modes[i].status != CASE_OK)
            continue;
        vec_push(arena, &argv, "--artifact");
        vec_push(arena, &argv, r->modes[i].artifact);
        compiled++;
    }
    vec_push(arena, &argv, NULL);
    if (!compiled)
        return;
    /* Each artifact has the time for itself, and the reference as well. */
    ProcessLimits limits = plan->build.limits;
    limits.seconds *= compiled + 1;
    Str failure = {0};
    ChildEnd end;
    json_t *report = child_json(argv.data, &limits, &end, &failure);
    const json_t *rows = json_object_get(report, "artifacts");
    for (int i = 0, row = 0; i < r->mode_count; i++) {
        ModeResult *m = &r->modes[i];
        if (m->status != CASE_OK)
            continue;
        json_t *found = json_array_get(rows, (size_t)row++);
        if (found)
            take_check(arena, m, found);
        else
            mode_fail(arena, m,
                      end.status == CASE_OK ? CASE_CRASHED : end.status,
                      arena_printf(arena, "checking: %s", str_text(&failure)));
    }
    json_decref(report);
    str_free(&failure);
}

/* ---- timing ----------------------------------------------------------- */

static void add_report(Arena *arena, ModelResult *r, ModeResult *m,
                       json_t *report)
{
    if (m->report_count == MAX_REPORTS)
        return;
    double gflops = number_of(json_object_get(report, "time"), "fma_gflops");
    r->fma_gflops = fmax(r->fma_gflops, gflops);
    m->processes[m->report_count] = report_samples(arena, report);
    m->reports[m->report_count++] = json_incref(report);
}

static const json_t *checked_outputs(const ModeResult *m)
{
    return json_object_get(m->check, "output_hashes");
}

static bool is_emulated(const ModeResult *m)
{
    /* An emulator's report has no hashes of outputs: no times either. */
    return !json_is_array(checked_outputs(m));
}

static Build build_of(const ModeResult *m)
{
    return (Build){m->mode, m->artifact, checked_outputs(m)};
}

/* By itself in its process, where peak RSS and the first run are its own. */
static void time_alone(Arena *arena, const MeasurePlan *plan, ModelResult *r,
                       ModeResult *m)
{
    Build build = build_of(m);
    for (int i = 0; i < (plan->quick ? 1 : ALONE); i++) {
        double about =
            m->report_count
                ? number_of(json_object_get(m->reports[0], "time"), "p50")
                : 0.05;
        Str failure = {0};
        ChildEnd end;
        json_t *report =
            build_measure(arena, &plan->build, &build, about, &end, &failure);
        if (report) {
            add_report(arena, r, m, report);
            m->peak_rss_bytes =
                fmax(isnan(m->peak_rss_bytes) ? 0 : m->peak_rss_bytes,
                     number_of(report, "peak_rss_kib") * 1024);
            json_decref(report);
        } else {
            mode_fail(arena, m,
                      end.status == CASE_OK ? CASE_CRASHED : end.status,
                      arena_printf(arena, "timing: %s", str_text(&failure)));
        }
        str_free(&failure);
        if (m->status != CASE_OK)
            return;
    }
}

static ModeResult *find_mode(ModelResult *r, const char *mode)
{
    for (int i = 0; i < r->mode_count; i++)
        if (!strcmp(r->modes[i].mode, mode))
            return &r->modes[i];
    return NULL;
}

static bool is_timed(const ModeResult *m)
{
    return m && m->status == CASE_OK && m->report_count;
}

static void time_pair(Arena *arena, const MeasurePlan *plan, ModelResult *r)
{
    ModeResult *fused = find_mode(r, "fused");
    ModeResult *unfused = find_mode(r, "unfused");
    if (!is_timed(fused) || !is_timed(unfused))
        return;
    say_phase(plan, "comparing fused with unfused");
    Build a = build_of(unfused), b = build_of(fused);
    double about =
        number_of(json_object_get(unfused->reports[0], "time"), "p50");
    builds_compare(arena, &plan->build, &a, &b, about, &r->comparison);
    r->has_comparison = true;
    const Pair *pair = &r->comparison.pair;
    for (int i = 0; i < pair->blocks; i++)
        for (int v = 0; v < 2; v++) {
            const json_t *both = pair->visits[i][v].report;
            add_report(arena, r, unfused, json_object_get(both, "a"));
            add_report(arena, r, fused, json_object_get(both, "b"));
        }
}

static void time_modes(Arena *arena, const MeasurePlan *plan, ModelResult *r)
{
    for (int i = 0; i < r->mode_count; i++) {
        ModeResult *m = &r->modes[i];
        double start = clock_now();
        if (m->status != CASE_OK)
            continue;
        if (is_emulated(m)) {
            m->reason = "checked under an emulator, hence not timed";
            continue;
        }
        say_phase(plan, arena_printf(arena, "timing %s", m->mode));
        time_alone(arena, plan, r, m);
        m->seconds += clock_now() - start;
    }
    time_pair(arena, plan, r);
}

/* ---- what the reports say --------------------------------------------- */

/* The distribution over all processes' samples. */
static void set_percentiles(Arena *arena, ModeResult *m)
{
    int count = 0;
    for (int i = 0; i < m->report_count; i++)
        count += m->processes[i].count;
    double *all = ARENA_ARRAY(arena, double, count + 1);
    for (int i = 0, at = 0; i < m->report_count; i++) {
        size_t bytes = (size_t)m->processes[i].count * sizeof *all;
        memcpy(all + at, m->processes[i].seconds, bytes);
        at += m->processes[i].count;
    }
    m->p50 = stats_percentile(all, count, 0.5);
    m->p90 = stats_percentile(all, count, 0.9);
    m->p99 = stats_percentile(all, count, 0.99);
}

/* Median over the processes that held this build alone. */
static double median_alone(const ModeResult *m, const char *key)
{
    double values[MAX_REPORTS];
    int count = 0;
    for (int i = 0; i < m->report_count; i++)
        if (json_object_get(m->reports[i], "peak_rss_kib"))
            values[count++] = number_of(m->reports[i], key);
    return stats_median(values, count);
}

/* Each step with its median over the processes. */
static json_t *merged_steps(const ModeResult *m)
{
    if (!m->report_count)
        return NULL;
    json_t *steps = json_deep_copy(json_object_get(m->reports[0], "steps"));
    size_t s;
    json_t *step;
    json_array_foreach(steps, s, step)
    {
        double values[MAX_REPORTS];
        for (int i = 0; i < m->report_count; i++)
            values[i] = number_of(
                json_array_get(json_object_get(m->reports[i], "steps"), s),
                "seconds");
        json_object_set_new(step, "seconds",
                            json_real(stats_median(values, m->report_count)));
        json_object_del(step, "samples");
    }
    return steps;
}

static void digest(Arena *arena, const MeasurePlan *plan, ModeResult *m)
{
    set_percentiles(arena, m);
    m->first_run = median_alone(m, "first_run_seconds");
    m->load = median_alone(m, "load_seconds");
    m->steps = merged_steps(m);
    roofline_complete(m->steps, plan->peak);
}

/* ---- all of it -------------------------------------------------------- */

const char *model_label(const char *model)
{
    const char *slash = strrchr(model, '/');
    return slash ? slash + 1 : model;
}

void model_result_init(const char *model, const MeasurePlan *plan,
                       CaseStatus status, const char *reason, ModelResult *r)
{
    *r = (ModelResult){.model = model,
                       .label = model_label(model),
                       .mode_count = plan->mode_count};
    for (int i = 0; i < plan->mode_count; i++)
        r->modes[i] = (ModeResult){.mode = plan->modes[i],
                                   .status = status,
                                   .reason = reason,
                                   .compile = NAN,
                                   .p50 = NAN,
                                   .p90 = NAN,
                                   .p99 = NAN,
                                   .first_run = NAN,
                                   .load = NAN,
                                   .flops = NAN,
                                   .kernel_calls = NAN,
                                   .arena_bytes = NAN,
                                   .arena_bound = NAN,
                                   .weight_bytes = NAN,
                                   .code_bytes = NAN,
                                   .peak_rss_bytes = NAN};
}

void measure_model(Arena *arena, const char *model, const MeasurePlan *plan,
                   const char *work, ModelResult *r)
{
    double start = clock_now();
    model_result_init(model, plan, CASE_OK, NULL, r);
    for (int i = 0; i < plan->mode_count; i++) {
        ModeResult *m = &r->modes[i];
        double begin = clock_now();
        m->artifact = arena_printf(arena, "%s/%s", work, m->mode);
        say_phase(plan, arena_printf(arena, "compiling %s", m->mode));
        compile_mode(arena, model, plan, m);
        read_artifact(arena, m);
        m->seconds += clock_now() - begin;
    }
    say_phase(plan, "checking");
    check_modes(arena, model, plan, r);
    time_modes(arena, plan, r);
    for (int i = 0; i < r->mode_count; i++)
        digest(arena, plan, &r->modes[i]);
    say_phase(plan, "accuracy");
    if (!plan->unscored)
        accuracy_measure(arena, plan, work, r);
    r->seconds = clock_now() - start;
    /* What was done for all modes at once is shared. */
    double own = 0;
    for (int i = 0; i < r->mode_count; i++)
        own += r->modes[i].seconds;
    for (int i = 0; i < r->mode_count; i++)
        r->modes[i].seconds += (r->seconds - own) / r->mode_count;
}

void model_result_free(ModelResult *r)
{
    for (int i = 0; i < r->mode_count; i++) {
        ModeResult *m = &r->modes[i];
        for (int k = 0; k < m->report_count; k++)
            json_decref(m->reports[k]);
        json_decref(m->check);
        json_decref(m->passes);
        json_decref(m->kernels);
        json_decref(m->steps);
        json_decref(m->high_water);
    }
    if (r->has_comparison)
        comparison_free(&r->comparison);
}
