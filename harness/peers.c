#include "harness/peers.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/check.h"
#include "harness/common.h"
#include "harness/inputs.h"
#include "harness/measure.h"
#include "harness/npy.h"
#include "harness/runner.h"
#include "harness/values.h"

enum {
    MOST_SAMPLES = 256, /* kept of a process */
    REASON = 600        /* bytes of a reason that are kept, the last ones */
};

const char *peer_status_name(const PeerRow *row)
{
    static const char *const names[] = {"ok", "wrong", "unsupported"};
    return row->status == PEER_FAILED ? case_status_name(row->failure)
                                      : names[row->status];
}

static void say_phase(const PeerPlan *plan, const char *phase)
{
    if (plan->on_phase)
        plan->on_phase(plan->user, phase);
}

/* A traceback says most at its end. */
static const char *reason_text(Arena *arena, const char *text)
{
    size_t length = strlen(text);
    return length <= REASON
               ? arena_strdup(arena, text)
               : arena_printf(arena, "... %s", text + length - REASON);
}

/* ---- the model -------------------------------------------------------- */

/* `assay compile MODEL ...`, in a process of its own. */
static bool compile(Arena *arena, const char *model, const PeerPlan *plan,
                    const char *const *more, PeerModel *ready)
{
    Words argv = launch_words(arena, "compile", model, plan->compile_args);
    for (int i = 0; more[i]; i++)
        vec_push(arena, &argv, more[i]);
    vec_push(arena, &argv, NULL);
    Str err = {0}, reason = {0};
    ProcessResult result;
    ready->status = CASE_CRASHED;
    if (!process_run(argv.data, NULL, &err, &plan->build.limits, &result)) {
        str_addf(&reason, "%s: %s", argv.data[0], strerror(errno));
    } else {
        ready->status = case_status_of(&result, str_text(&err));
        if (ready->status != CASE_OK)
            case_describe(&reason, &result, str_text(&err));
    }
    if (ready->status != CASE_OK)
        ready->reason = reason_text(arena, str_text(&reason));
    str_free(&err);
    str_free(&reason);
    return ready->status == CASE_OK;
}

static bool write_inputs(Arena *arena, PeerModel *ready)
{
    ArtifactInfo info;
    AssayError error;
    Str text = {0};
    bool ok = !artifact_read_info(arena, ready->artifact, &info, &error);
    if (!ok)
        str_add(&text, error.text);
    for (int i = 0; ok && i < info.input_count; i++) {
        const ArtifactValue *v = &info.inputs[i];
        Array *array = array_new(arena, v->dtype, v->rank, v->dims);
        const char *file =
            arena_printf(arena, "%s/input_%d.npy", ready->work, i);
        inputs_fill(array, 1, i, NULL);
        ok = npy_write(file, array, &text);
        vec_push(arena, &ready->inputs,
                 (const char *)arena_printf(arena, "%s=%s", v->name, file));
    }
    if (!ok) {
        ready->status = CASE_CRASHED;
        ready->reason = arena_strdup(arena, str_text(&text));
    }
    str_free(&text);
    return ok;
}

void peer_model_prepare(Arena *arena, const char *model, const PeerPlan *plan,
                        const char *work, PeerModel *ready)
{
    *ready = (PeerModel){.label = model_label(model),
                         .work = work,
                         .onnx = arena_printf(arena, "%s/model.onnx", work),
                         .artifact = arena_printf(arena, "%s/artifact", work)};
    const char *const emit[] = {"--emit", "onnx", "-o", ready->onnx, NULL};
    const char *const build[] = {"-o", ready->artifact, NULL};
    say_phase(plan, "exporting");
    if (!compile(arena, model, plan, emit, ready))
        return;
    say_phase(plan, "compiling");
    if (compile(arena, model, plan, build, ready))
        write_inputs(arena, ready);
}

/* ---- one process ------------------------------------------------------ */

typedef struct Meeting {
    Arena *arena;
    const PeerPlan *plan;
    const PeerModel *model;
    const Engine *engine;
    PeerRow *row;
    ArtifactInfo info;
    /* What Assay gave: its next runs must have the same bits, and the peer's
     * outputs come near these. */
    Array **outputs;
    json_t *hashes;
} Meeting;

static bool fail(Meeting *m, PeerStatus status, CaseStatus failure,
                 const char *error)
{
    PeerRow *row = m->row;
    row->status = status;
    row->failure = failure;
    row->error = reason_text(m->arena, *error ? error : "no reason given");
    return false;
}

static bool fail_ours(Meeting *m, CaseStatus failure, const char *error)
{
    m->row->is_ours = true;
    return fail(m, PEER_FAILED,
                failure == CASE_OK ? CASE_FAILED_CHECK : failure,
                arena_printf(m->arena, "Assay: %s", error));
}

/* `seconds` 0: a run that is not timed, whose outputs go to `output`. */
static json_t *run_assay(Meeting *m, double seconds, const char *output)
{
    Launch launch = {.artifact = m->model->artifact,
                     .inputs = m->model->inputs.data,
                     .input_count = m->model->inputs.count,
                     .threads = m->row->threads,
                     .output = output,
                     .min_time = seconds,
                     .limits = m->plan->build.limits};
    Str failure = {0};
    ChildEnd end;
    json_t *report = launch_runner(m->arena, &launch, &end, &failure);
    const json_t *outputs = json_object_get(report, "outputs");
    if (!report || end.status != CASE_OK) {
        fail_ours(m, end.status, str_text(&failure));
    } else if (!m->hashes) {
        m->hashes = json_deep_copy(outputs);
    } else if (!json_equal(outputs, m->hashes)) {
        fail_ours(m, CASE_FAILED_CHECK,
                  "the timed run's outputs are not those that were checked");
    }
    str_free(&failure);
    if (m->row->status == PEER_OK)
        return report;
    json_decref(report);
    return NULL;
}

static const char *peer_folder(const Meeting *m)
{
    return arena_printf(m->arena, "%s/engine-%s", m->model->work,
                        m->engine->name);
}

/* The report's own word for why there is nothing to measure. */
static bool is_refused(Meeting *m, const json_t *report)
{
    const json_t *why = json_object_get(report, "unsupported");
    if (!why)
        return false;
    fail(m, PEER_UNSUPPORTED, CASE_OK, text_of(report, "unsupported"));
    return true;
}

static const char *output_path(const Meeting *m, int i)
{
    return arena_printf(m->arena, "%s/%d.npy", peer_folder(m), i);
}

/* What a run does not write is missing, whatever the one before wrote. */
static void forget_outputs(const Meeting *m)
{
    for (int i = 0; i < m->info.output_count; i++)
        unlink(output_path(m, i));
}

/* Reads and compares every output; a peer that leaves one out is wrong. */
static bool outputs_agree(Meeting *m)
{
    Str text = {0};
    bool agree = true;
    double worst = 0;
    for (int i = 0; agree && i < m->info.output_count; i++) {
        const ArtifactValue *v = &m->info.outputs[i];
        const Array *wanted = m->outputs[i];
        const Array *got = npy_read(m->arena, output_path(m, i), &text);
        agree = got && got->dtype == wanted->dtype &&
                got->rank == wanted->rank &&
                !memcmp(got->dims, wanted->dims,
                        (size_t)got->rank * sizeof *got->dims);
        if (!agree) {
            str_addf(&text, "output \"%s\": missing, or its type differs",
                     v->name);
            break;
        }
        Difference d = compare_arrays(got, wanted, tolerance_f32);
        worst = fmax(worst, d.max_error);
        agree = d.agrees;
        if (!agree)
            str_addf(&text,
                     "output \"%s\": element %lld is %g, Assay's %g "
                     "(`assay check` tells whether that is right)",
                     v->name, (long long)d.worst, d.got, d.wanted);
    }
    m->row->max_error = worst;
    if (!agree)
        fail(m, PEER_WRONG, CASE_OK, str_text(&text));
    str_free(&text);
    return agree;
}

static json_t *run_peer(Meeting *m, double seconds)
{
    forget_outputs(m);
    Arena *arena = m->arena;
    PeerRow *row = m->row;
    Words argv = {0};
    for (int i = 0; m->engine->start[i]; i++)
        vec_push(arena, &argv, m->engine->start[i]);
    vec_push(arena, &argv, "--model");
    vec_push(arena, &argv, m->model->onnx);
    for (int i = 0; i < m->model->inputs.count; i++) {
        vec_push(arena, &argv, "--input");
        vec_push(arena, &argv, m->model->inputs.data[i]);
    }
    const char *const more[] = {
        "--output",  peer_folder(m),
        "--threads", arena_printf(arena, "%d", row->threads),
        "--seconds", arena_printf(arena, "%g", seconds)};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        vec_push(arena, &argv, more[i]);
    if (*row->variant) {
        vec_push(arena, &argv, "--variant");
        vec_push(arena, &argv, row->variant);
    }
    vec_push(arena, &argv, NULL);
    Str failure = {0};
    ChildEnd end;
    ProcessLimits limits = m->plan->build.limits;
    limits.with_children = true;
    json_t *report = child_json(argv.data, &limits, &end, &failure);
    /* Its exit codes are not ours: any other than 0 is a failure. */
    bool is_code = end.status == CASE_OK || end.status == CASE_FAILED_CHECK ||
                   end.status == CASE_REFUSED;
    if (!report || end.status != CASE_OK)
        fail(m, PEER_FAILED, is_code ? CASE_CRASHED : end.status,
             str_text(&failure));
    else if (!json_is_object(report))
        fail(m, PEER_FAILED, CASE_CRASHED, "its report is no JSON object");
    else if (!is_refused(m, report))
        outputs_agree(m);
    str_free(&failure);
    if (row->status == PEER_OK)
        return report;
    json_decref(report);
    return NULL;
}

/* ---- checking --------------------------------------------------------- */

/* Arrays of what a run of Assay wrote. */
static bool read_outputs(Meeting *m, const char *dir)
{
    const char **names = runner_file_names(m->arena, &m->info);
    Str text = {0};
    m->outputs = ARENA_ARRAY(m->arena, Array *, m->info.output_count + 1);
    for (int i = 0; i < m->info.output_count; i++) {
        m->outputs[i] = npy_read(
            m->arena, arena_printf(m->arena, "%s/%s.npy", dir, names[i]),
            &text);
        if (!m->outputs[i]) {
            fail_ours(m, CASE_CRASHED, str_text(&text));
            break;
        }
    }
    str_free(&text);
    return m->row->status == PEER_OK;
}

/* The peer's version, for a cell of a table. */
static const char *version_of(Arena *arena, const json_t *report)
{
    enum { MOST = 40 };
    char *text = arena_printf(arena, "%.*s", MOST, text_of(report, "version"));
    str_make_plain(text);
    text[strcspn(text, "\n")] = 0;
    return text;
}

/* Both once; the peer finds its best way to run meanwhile. */
static bool check(Meeting *m)
{
    AssayError error;
    const char *dir = arena_printf(m->arena, "%s/outputs", m->model->work);
    if (artifact_read_info(m->arena, m->model->artifact, &m->info, &error))
        return fail_ours(m, CASE_CRASHED, error.text);
    json_t *ours = run_assay(m, 0, dir);
    json_decref(ours);
    if (!ours || !read_outputs(m, dir))
        return false;
    if (!make_folders(peer_folder(m)))
        return fail(m, PEER_FAILED, CASE_CRASHED, strerror(errno));
    json_t *report = run_peer(m, 0);
    m->row->version = version_of(m->arena, report);
    m->row->variant = arena_strdup(m->arena, text_of(report, "variant"));
    json_decref(report);
    return report;
}

/* ---- timing ----------------------------------------------------------- */

/* Of a process: at most MOST_SAMPLES, evenly; false unless all are times. */
static bool take_samples(Meeting *m, const json_t *report, Samples *samples)
{
    const double least = 1e-9, most = 1e6;
    const json_t *list = json_object_get(report, "samples");
    size_t count = json_array_size(list);
    size_t kept = count < MOST_SAMPLES ? count : MOST_SAMPLES;
    double *seconds = ARENA_ARRAY(m->arena, double, kept + 1);
    for (size_t i = 0; i < kept; i++) {
        seconds[i] = json_number_value(json_array_get(list, i * count / kept));
        if (!(seconds[i] >= least && seconds[i] <= most))
            return fail(m, PEER_FAILED, CASE_CRASHED,
                        "its report has a sample that is no time in seconds");
    }
    if (!kept)
        return fail(m, PEER_FAILED, CASE_CRASHED, "its report has no samples");
    *samples = (Samples){seconds, (int)kept};
    return true;
}

static void take_rate(PairVisit *visit, double best, double mean)
{
    visit->best_gflops = fmax(visit->best_gflops, best);
    visit->lowest_gflops = fmin(visit->lowest_gflops, mean);
}

static bool calibrate(Meeting *m, PairVisit *visit)
{
    Str failure = {0};
    json_t *report = launch_calibrate(m->arena, m->row->threads, &failure);
    if (report)
        take_rate(visit, number_of(report, "fma_gflops"),
                  number_of(report, "fma_mean"));
    else
        fail_ours(m, CASE_CRASHED, str_text(&failure));
    str_free(&failure);
    json_decref(report);
    return report;
}

static bool visit_assay(Meeting *m, PairVisit *visit)
{
    json_t *report = run_assay(m, m->plan->build.min_time, NULL);
    if (!report)
        return false;
    const json_t *time = json_object_get(report, "time");
    const json_t *beside = json_object_get(time, "fma_beside");
    for (size_t i = 0; i < 2; i++)
        take_rate(visit, number_of(time, "fma_gflops"),
                  json_number_value(json_array_get(beside, i)));
    visit->b = report_samples(m->arena, report);
    json_decref(report);
    return visit->b.count || fail_ours(m, CASE_CRASHED, "no samples");
}

static bool visit_peer(Meeting *m, PairVisit *visit)
{
    json_t *report = run_peer(m, m->plan->build.min_time);
    bool ok = report && take_samples(m, report, &visit->a);
    json_decref(report);
    return ok;
}

/* Assay's process has a calibration at either end: with one on the peer's
 * outer side, there is one before and after each. */
static bool visit_both(void *user, bool swapped, PairVisit *visit)
{
    Meeting *m = user;
    visit->lowest_gflops = INFINITY;
    if (swapped)
        return visit_assay(m, visit) && visit_peer(m, visit) &&
               calibrate(m, visit);
    return calibrate(m, visit) && visit_peer(m, visit) &&
           visit_assay(m, visit);
}

/* The geometric mean of the processes' medians, as the ratio is one. */
static double typical(const Pair *pair, bool of_peer)
{
    double sum = 0;
    for (int i = 0; i < pair->blocks; i++)
        for (int v = 0; v < 2; v++) {
            const PairVisit *visit = &pair->visits[i][v];
            const Samples *s = of_peer ? &visit->a : &visit->b;
            sum += log(stats_median(s->seconds, s->count));
        }
    return exp(sum / (2 * pair->blocks));
}

/* Children are bound to as many cores as they have threads, from the last
 * one on: the first has most of the machine's own work. Threads that
 * outnumber the cores have all. */
static bool bind_cores(int threads, cpu_set_t *before)
{
    int cpus[CPU_SETSIZE];
    int count = pool_physical_cores(cpus, CPU_SETSIZE);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof *before, before) || threads > count)
        return false;
    CPU_ZERO(&set);
    for (int i = count - threads; i < count; i++)
        CPU_SET(cpus[i], &set);
    return !sched_setaffinity(0, sizeof set, &set);
}

void peer_measure(Arena *arena, const PeerPlan *plan, const PeerModel *model,
                  const Engine *engine, int threads, PeerRow *row)
{
    *row = (PeerRow){.model = model->label,
                     .engine = engine->name,
                     .version = "",
                     .variant = "",
                     .threads = threads,
                     .max_error = NAN,
                     .pair.ratio = {NAN, NAN, NAN},
                     .assay = NAN,
                     .peer = NAN};
    Meeting m = {.arena = arena,
                 .plan = plan,
                 .model = model,
                 .engine = engine,
                 .row = row};
    if (model->status != CASE_OK) {
        fail_ours(&m, model->status, model->reason);
        return;
    }
    double start = clock_now();
    cpu_set_t before;
    bool bound = bind_cores(threads, &before);
    say_phase(plan, arena_printf(arena, "%s, %d threads: checking",
                                 engine->name, threads));
    if (check(&m)) {
        say_phase(plan, arena_printf(arena, "%s, %d threads: measuring",
                                     engine->name, threads));
        pair_run(&plan->build.pair, visit_both, &m, &row->pair);
    }
    if (bound)
        sched_setaffinity(0, sizeof before, &before);
    /* An engine that fails once is not to be trusted with what it gave
     * before. */
    if (row->status != PEER_OK) {
        pair_free(&row->pair);
        row->pair.ratio = (Ratio){NAN, NAN, NAN};
    } else {
        row->assay = typical(&row->pair, false);
        row->peer = typical(&row->pair, true);
    }
    row->seconds = clock_now() - start;
    json_decref(m.hashes);
}

void peer_row_free(PeerRow *row)
{
    pair_free(&row->pair);
}
