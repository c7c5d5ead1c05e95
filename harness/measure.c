#include "harness/measure.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/process.h"
#include "harness/accuracy.h"
#include "harness/common.h"
#include "harness/launch.h"

typedef Vec(const char *) Words;

enum {
    COMPILE_TIMEOUT = 900, /* seconds */
    CHECK_TIMEOUT = 1800,
    RUN_TIMEOUT = 600,
    PROFILE_RUNS = 20, /* at most; as many as fit into a second */
    PROFILE_LEAST = 3,
    BLOCKS = 5, /* of A B B A */
    MAX_BLOCKS = 3 * BLOCKS,
    QUICK_BLOCKS = 1,
    UNDECIDED_SECONDS = 60
};

/* A calibration this much below the best one says that something else used
 * the machine. */
static const double disturbed_below = 0.85;

const char *mode_status_name(ModeStatus status)
{
    static const char *const names[] = {"ok", "wrong", "broken", "refused"};
    return names[status];
}

static void fail_mode(ModeResult *m, ModeStatus status, Arena *arena,
                      const char *reason)
{
    if (m->status != MODE_OK)
        return; /* the first fault is the one to look at */
    m->status = status;
    m->reason = arena_strdup(arena, reason);
}

/* ---- compiling -------------------------------------------------------- */

static void compile_mode(Arena *arena, const char *model,
                         const MeasurePlan *plan, ModeResult *m)
{
    Words argv = {0};
    vec_push(arena, &argv,
             arena_printf(arena, "%s/assay", program_folder(arena)));
    vec_push(arena, &argv, "compile");
    vec_push(arena, &argv, model);
    for (int i = 0; plan->compile_args[i]; i++)
        vec_push(arena, &argv, plan->compile_args[i]);
    vec_push(arena, &argv, "--mode");
    vec_push(arena, &argv, m->mode);
    vec_push(arena, &argv, "-o");
    vec_push(arena, &argv, m->artifact);
    vec_push(arena, &argv, NULL);
    Str err = {0}, reason = {0};
    ProcessResult result;
    bool started =
        process_run(argv.data, NULL, &err, COMPILE_TIMEOUT, &result);
    m->compile_seconds = result.seconds;
    if (!started || result.exit_code) {
        str_addf(&reason, "compiling: ");
        process_describe(&reason, &result);
        str_addf(&reason, ": %s", str_text(&err));
        bool refused = started && result.exit_code == EXIT_BAD_INPUT;
        fail_mode(m, refused ? MODE_REFUSED : MODE_BROKEN, arena,
                  str_text(&reason));
    }
    str_free(&err);
    str_free(&reason);
}

static void read_artifact(Arena *arena, ModeResult *m)
{
    ArtifactInfo info;
    AssayError error;
    if (m->status != MODE_OK)
        return;
    if (artifact_read_info(arena, m->artifact, &info, &error) != ASSAY_OK) {
        fail_mode(m, MODE_BROKEN, arena, error.text);
        return;
    }
    m->arena_bytes = info.arena_bytes;
    m->arena_bound = info.arena_bound;
    m->weight_bytes = info.weight_bytes;
    for (int i = 0; i < info.step_count; i++)
        m->flops += info.kernels[info.steps[i].kernel_index].flops;
    m->kernels = json_array();
    for (int i = 0; i < info.kernel_count; i++) {
        const ArtifactKernel *k = &info.kernels[i];
        m->code_bytes += k->code_bytes;
        json_array_append_new(
            m->kernels,
            json_pack(
                "{s:s, s:o, s:o, s:I, s:f}", "name", k->name, "loops_hash",
                json_sprintf("%016llx", (unsigned long long)k->loops_hash),
                "code_hash",
                json_sprintf("%016llx", (unsigned long long)k->code_hash),
                "code_bytes", (json_int_t)k->code_bytes, "flops", k->flops));
    }
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
    if (!status || strcmp(status, "ok"))
        fail_mode(
            m, status && !strcmp(status, "wrong") ? MODE_WRONG : MODE_BROKEN,
            arena, reason ? reason : "the check says nothing");
}

/* All modes in one process: the reference is evaluated once. */
static void check_modes(Arena *arena, const char *model,
                        const MeasurePlan *plan, ModelResult *r)
{
    Words argv = {0};
    vec_push(arena, &argv,
             arena_printf(arena, "%s/assay", program_folder(arena)));
    vec_push(arena, &argv, "check");
    vec_push(arena, &argv, "--format");
    vec_push(arena, &argv, "json");
    vec_push(arena, &argv, model);
    for (int i = 0; plan->compile_args[i]; i++)
        vec_push(arena, &argv, plan->compile_args[i]);
    if (plan->threads) {
        vec_push(arena, &argv, "--threads");
        vec_push(arena, &argv, arena_printf(arena, "%d", plan->threads));
    }
    int compiled = 0;
    for (int i = 0; i < r->mode_count; i++) {
        if (r->modes[i].status != MODE_OK)
            continue;
        vec_push(arena, &argv, "--artifact");
        vec_push(arena, &argv, r->modes[i].artifact);
        compiled++;
    }
    vec_push(arena, &argv, NULL);
    if (!compiled)
        return;
    Str failure = {0};
    int code;
    json_t *report = run_json(argv.data, CHECK_TIMEOUT, &code, &failure);
    const json_t *rows = json_object_get(report, "artifacts");
    for (int i = 0, row = 0; i < r->mode_count; i++) {
        ModeResult *m = &r->modes[i];
        if (m->status != MODE_OK)
            continue;
        json_t *found = json_array_get(rows, (size_t)row++);
        if (found)
            take_check(arena, m, found);
        else
            fail_mode(m, MODE_BROKEN, arena,
                      arena_printf(arena, "checking: %s", str_text(&failure)));
    }
    json_decref(report);
    str_free(&failure);
}

/* ---- timing ----------------------------------------------------------- */

static double json_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Times one fresh process; false when it failed or computed something else
 * than what was checked. `*rate` gets the lower calibration. */
static bool time_once(Arena *arena, const MeasurePlan *plan, ModelResult *r,
                      ModeResult *m, Samples *samples, double *rate)
{
    Launch launch = {.artifact = m->artifact,
                     .threads = plan->threads,
                     .min_time = plan->quick ? 0.2 : 0.4,
                     .timeout = RUN_TIMEOUT};
    Str failure = {0};
    int code;
    json_t *report = launch_runner(arena, &launch, &code, &failure);
    const json_t *time = json_object_get(report, "time");
    const json_t *list = json_object_get(time, "samples");
    bool ok = code == 0 && json_array_size(list) > 0;
    if (!ok)
        fail_mode(m, MODE_BROKEN, arena,
                  arena_printf(arena, "timing: %s", str_text(&failure)));
    if (ok && !json_equal(json_object_get(report, "outputs"),
                          json_object_get(m->check, "output_hashes"))) {
        fail_mode(m, MODE_WRONG, arena,
                  "the timed run's outputs are not those that were checked");
        ok = false;
    }
    if (ok) {
        int count = (int)json_array_size(list);
        double *seconds = ARENA_ARRAY(arena, double, count);
        for (int i = 0; i < count; i++)
            seconds[i] = json_number_value(json_array_get(list, (size_t)i));
        *samples = (Samples){seconds, count};
        r->fma_gflops = fmax(r->fma_gflops, json_number(time, "fma_gflops"));
        const json_t *rates = json_object_get(time, "fma_beside");
        *rate = fmin(json_number_value(json_array_get(rates, 0)),
                     json_number_value(json_array_get(rates, 1)));
        m->peak_rss_kib = json_number(report, "peak_rss_kib");
        m->load_seconds = json_number(report, "load_seconds");
    }
    json_decref(report);
    str_free(&failure);
    return ok;
}

static void add_process(ModeResult *m, Samples samples)
{
    if (m->process_count < MAX_PROCESSES)
        m->processes[m->process_count++] = samples;
}

/* One block A B B A. Measured again, twice at most, when the calibrations
 * say that the machine was disturbed. */
static bool time_block(Arena *arena, const MeasurePlan *plan, ModelResult *r,
                       ModeResult *a, ModeResult *b, CompareBlock *block)
{
    for (int attempt = 0; attempt < 3; attempt++) {
        double rate[4];
        if (!time_once(arena, plan, r, a, &block->a[0], &rate[0]) ||
            !time_once(arena, plan, r, b, &block->b[0], &rate[1]) ||
            !time_once(arena, plan, r, b, &block->b[1], &rate[2]) ||
            !time_once(arena, plan, r, a, &block->a[1], &rate[3]))
            return false;
        double lowest = rate[0];
        for (int i = 1; i < 4; i++)
            lowest = fmin(lowest, rate[i]);
        if (lowest >= disturbed_below * r->fma_gflops)
            break;
        r->blocks_repeated += attempt < 2;
        r->blocks_disturbed += attempt == 2;
    }
    for (int i = 0; i < 2; i++) {
        add_process(a, block->a[i]);
        add_process(b, block->b[i]);
    }
    return true;
}

static ModeResult *find_mode(ModelResult *r, const char *mode)
{
    for (int i = 0; i < r->mode_count; i++)
        if (!strcmp(r->modes[i].mode, mode))
            return &r->modes[i];
    return NULL;
}

static bool is_emulated(const ModeResult *m)
{
    /* An emulator's report has no hashes of outputs: no times either. */
    return !json_is_array(json_object_get(m->check, "output_hashes"));
}

/* More blocks while the interval holds 1, up to three times as many and
 * for a minute: an undecided ratio is worth the time, a decided one is
 * not. */
static void time_pair(Arena *arena, const MeasurePlan *plan, ModelResult *r,
                      ModeResult *unfused, ModeResult *fused)
{
    CompareBlock blocks[MAX_BLOCKS];
    int least = plan->quick ? QUICK_BLOCKS : BLOCKS;
    int most = plan->quick ? QUICK_BLOCKS : MAX_BLOCKS;
    double start = clock_now();
    for (int i = 0; i < most; i++) {
        if (!time_block(arena, plan, r, unfused, fused, &blocks[i]))
            return;
        r->blocks++;
        if (i + 1 < least)
            continue;
        r->ratio = compare_ratio(blocks, i + 1);
        r->has_ratio = true;
        if (r->ratio.low > 1 || r->ratio.high < 1 ||
            clock_now() - start > UNDECIDED_SECONDS)
            return;
    }
}

static void time_alone(Arena *arena, const MeasurePlan *plan, ModelResult *r,
                       ModeResult *m)
{
    for (int i = 0; i < (plan->quick ? 1 : 2); i++) {
        Samples samples;
        double rate;
        if (!time_once(arena, plan, r, m, &samples, &rate))
            return;
        add_process(m, samples);
    }
}

static void profile_mode(Arena *arena, const MeasurePlan *plan, ModeResult *m)
{
    double fit = m->process_count ? 1 / stats_median(m->processes[0].seconds,
                                                     m->processes[0].count)
                                  : 0;
    int runs = fit > PROFILE_RUNS ? PROFILE_RUNS : (int)fit;
    Launch launch = {.artifact = m->artifact,
                     .threads = plan->threads,
                     .profile = runs < PROFILE_LEAST ? PROFILE_LEAST : runs,
                     .timeout = RUN_TIMEOUT};
    Str failure = {0};
    int code;
    json_t *report = launch_runner(arena, &launch, &code, &failure);
    m->steps = json_incref(json_object_get(report, "steps"));
    json_decref(report);
    str_free(&failure);
}

/* The distribution over all processes' samples. */
static void set_percentiles(Arena *arena, ModeResult *m)
{
    int count = 0;
    for (int i = 0; i < m->process_count; i++)
        count += m->processes[i].count;
    double *all = ARENA_ARRAY(arena, double, count);
    for (int i = 0, at = 0; i < m->process_count; i++) {
        size_t bytes = (size_t)m->processes[i].count * sizeof *all;
        memcpy(all + at, m->processes[i].seconds, bytes);
        at += m->processes[i].count;
    }
    m->p50 = stats_percentile(all, count, 0.5);
    m->p90 = stats_percentile(all, count, 0.9);
    m->p99 = stats_percentile(all, count, 0.99);
}

static void time_modes(Arena *arena, const MeasurePlan *plan, ModelResult *r)
{
    ModeResult *fused = find_mode(r, "fused");
    ModeResult *unfused = find_mode(r, "unfused");
    for (int i = 0; i < r->mode_count; i++)
        if (r->modes[i].status == MODE_OK && is_emulated(&r->modes[i]))
            r->modes[i].reason = "checked under an emulator, hence not timed";
    bool pair = fused && unfused && fused->status == MODE_OK &&
                unfused->status == MODE_OK && !is_emulated(fused);
    if (pair)
        time_pair(arena, plan, r, unfused, fused);
    for (int i = 0; i < r->mode_count; i++) {
        ModeResult *m = &r->modes[i];
        if (m->status != MODE_OK || is_emulated(m))
            continue;
        if (!pair || (m != fused && m != unfused))
            time_alone(arena, plan, r, m);
        profile_mode(arena, plan, m);
    }
    for (int i = 0; i < r->mode_count; i++)
        set_percentiles(arena, &r->modes[i]);
}

/* ---- all of it -------------------------------------------------------- */

void measure_model(Arena *arena, const char *model, const MeasurePlan *plan,
                   const char *work, ModelResult *r)
{
    double start = clock_now();
    const char *slash = strrchr(model, '/');
    *r = (ModelResult){.model = model,
                       .label = slash ? slash + 1 : model,
                       .mode_count = plan->mode_count};
    for (int i = 0; i < plan->mode_count; i++) {
        ModeResult *m = &r->modes[i];
        m->mode = plan->modes[i];
        m->artifact = arena_printf(arena, "%s/%s", work, m->mode);
        m->p50 = m->p90 = m->p99 = NAN;
        compile_mode(arena, model, plan, m);
        read_artifact(arena, m);
    }
    check_modes(arena, model, plan, r);
    time_modes(arena, plan, r);
    accuracy_measure(arena, plan, work, r);
    r->seconds = clock_now() - start;
}
