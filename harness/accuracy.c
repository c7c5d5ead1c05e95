#include "harness/accuracy.h"

#include <errno.h>
#include <string.h>

#include "harness/common.h"
#include "harness/launch.h"
#include "harness/npy.h"
#include "harness/runner.h"
#include "harness/score.h"

enum { QUICK_EXAMPLES = 2000 };

/* Builds that would need longer than this, in seconds, are not scored: they
 * are there to be compared with the reference, not to be fast. */
static const double patience = 60;

typedef struct Labelled {
    const char *images; /* .npy file */
    const Score *metric;
    Labels labels;
    double minimum; /* 0: none is stated */
    bool has_first;
    Predictions first; /* of the first mode that was scored */
} Labelled;

/* The user's own files. */
static bool open_files(Arena *arena, const MeasurePlan *plan, Labelled *l,
                       Str *why)
{
    const Array *labels = npy_read(arena, plan->labels.labels, why);
    if (!labels)
        return false;
    *l = (Labelled){
        .images = plan->labels.images,
        .metric = score_metric(METRIC_TOP1),
        .labels = {.values = labels, .count = (int)array_count(labels)}};
    return true;
}

/* The suite model's data, written where the runner can read them. */
static bool open_suite_data(Arena *arena, const MeasurePlan *plan,
                            const char *model, const char *work, Labelled *l,
                            Str *why)
{
    SuiteParams params;
    Str ignored = {0};
    const SuiteModel *m = suite_find(model, &params, &ignored);
    str_free(&ignored);
    if (!m || !m->data)
        return false;
    int count = plan->quick && m->data->count > QUICK_EXAMPLES
                    ? QUICK_EXAMPLES
                    : m->data->count;
    count -= count % params.batch;
    Array *images, *labels;
    if (!m->data->load(arena, count, &images, &labels, why))
        return false;
    const char *file = arena_printf(arena, "%s/images.npy", work);
    if (!npy_write(file, images, why))
        return false;
    /* A part of the examples scatters around the stated value. */
    double minimum = count == m->data->count ? m->data->minimum : 0;
    *l = (Labelled){.images = file,
                    .metric = score_metric(m->data->metric),
                    .labels = {.values = labels,
                               .count = count,
                               .width = (double)images->dims[3],
                               .height = (double)images->dims[2]},
                    .minimum = minimum};
    return true;
}

/* The model's only output for all examples, or NULL. */
static const Array *run_mode(Arena *arena, const MeasurePlan *plan,
                             const char *work, const Labelled *l,
                             const ModeResult *m, CaseStatus *status, Str *why)
{
    ArtifactInfo info;
    *status = CASE_CRASHED;
    AssayError error;
    if (artifact_read_info(arena, m->artifact, &info, &error) != ASSAY_OK) {
        str_add(why, error.text);
        return NULL;
    }
    if (info.input_count != 1 || info.output_count != 1) {
        str_add(why, "accuracy needs a model with one input and one output");
        return NULL;
    }
    const char *out = arena_printf(arena, "%s/scores", work);
    if (!make_folders(out)) {
        str_addf(why, "%s: %s", out, strerror(errno));
        return NULL;
    }
    const char *input =
        arena_printf(arena, "%s=%s", info.inputs[0].name, l->images);
    Launch launch = {.artifact = m->artifact,
                     .inputs = &input,
                     .input_count = 1,
                     .threads = plan->build.threads,
                     .output = out,
                     .limits = plan->build.limits};
    ChildEnd end;
    json_t *report = launch_runner(arena, &launch, &end, why);
    json_decref(report);
    *status = end.status == CASE_OK ? CASE_CRASHED : end.status;
    return report ? npy_read(arena,
                             arena_printf(arena, "%s/%s.npy", out,
                                          *runner_file_names(arena, &info)),
                             why)
                  : NULL;
}

static bool score_mode(Arena *arena, const MeasurePlan *plan, const char *work,
                       Labelled *l, ModeResult *m, CaseStatus *status,
                       Str *why)
{
    const Array *output = run_mode(arena, plan, work, l, m, status, why);
    Predictions p = {0};
    if (!output || !l->metric->read(arena, &l->labels, output, &p, why))
        return false;
    if (!l->has_first)
        l->first = p;
    l->has_first = true;
    m->accuracy = (Accuracy){
        .name = l->metric->name,
        .title = l->metric->title,
        .value = l->metric->accuracy(arena, &l->labels, &p),
        .examples = l->labels.count,
        .agreement = l->metric->agreement(arena, &l->labels, &l->first, &p)};
    return true;
}

void accuracy_measure(Arena *arena, const MeasurePlan *plan, const char *work,
                      ModelResult *r)
{
    Labelled l;
    Str why = {0};
    bool own = plan->labels.images && plan->labels.labels;
    bool open = own ? open_files(arena, plan, &l, &why)
                    : open_suite_data(arena, plan, r->model, work, &l, &why);
    for (int i = 0; open && i < r->mode_count; i++) {
        ModeResult *m = &r->modes[i];
        /* What was not timed (NaN), under an emulator, is not scored. */
        if (m->status != CASE_OK || !(m->p50 * l.labels.count <= patience))
            continue;
        Str failure = {0};
        CaseStatus status;
        if (!score_mode(arena, plan, work, &l, m, &status, &failure))
            mode_fail(arena, m, status,
                      arena_printf(arena, "accuracy: %s", str_text(&failure)));
        else if (!(m->accuracy.value >= l.minimum)) /* or NaN */
            mode_fail(arena, m, CASE_FAILED_CHECK,
                      arena_printf(arena,
                                   "%s %.2f %% is below the stated %.2f %%",
                                   m->accuracy.title, 100 * m->accuracy.value,
                                   100 * l.minimum));
        str_free(&failure);
    }
    if (!open && why.length)
        r->labels_missing = arena_strdup(arena, str_text(&why));
    str_free(&why);
}
