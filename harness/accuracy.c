#include "harness/accuracy.h"

#include <errno.h>
#include <string.h>

#include "harness/common.h"
#include "harness/launch.h"
#include "harness/npy.h"
#include "harness/runner.h"

enum { QUICK_EXAMPLES = 2000, ACCURACY_TIMEOUT = 900 };

/* Builds that would need longer than this, in seconds, are not scored: they
 * are there to be compared with the reference, not to be fast. */
static const double patience = 60;

typedef struct Labelled {
    const char *images; /* .npy file */
    const Array *labels;
    int count;
    double min_top1; /* 0: none is stated */
} Labelled;

/* The user's own files. */
static bool open_files(Arena *arena, const MeasurePlan *plan, Labelled *l,
                       Str *why)
{
    const Array *labels = npy_read(arena, plan->labels.labels, why);
    if (!labels)
        return false;
    *l = (Labelled){plan->labels.images, labels, (int)array_count(labels), 0};
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
    double minimum = count == m->data->count ? m->data->min_top1 : 0;
    *l = (Labelled){file, labels, count, minimum};
    return true;
}

/* How many rows of [n, classes] are largest at their label. The first of
 * equal ones counts, as in ArgMax. */
static int count_hits(const Array *scores, const Array *labels)
{
    int64_t rows = array_count(labels), hits = 0;
    int64_t classes = array_count(scores) / rows;
    for (int64_t i = 0; i < rows; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            if (array_get(scores, i * classes + k) >
                array_get(scores, i * classes + best))
                best = k;
        hits += best == array_get_int(labels, i);
    }
    return (int)hits;
}

static bool score_mode(Arena *arena, const MeasurePlan *plan, const char *work,
                       const Labelled *l, ModeResult *m, Str *why)
{
    ArtifactInfo info;
    AssayError error;
    if (artifact_read_info(arena, m->artifact, &info, &error) != ASSAY_OK) {
        str_add(why, error.text);
        return false;
    }
    if (info.input_count != 1 || info.output_count != 1) {
        str_add(why, "accuracy needs a model with one input and one output");
        return false;
    }
    const char *out = arena_printf(arena, "%s/scores", work);
    if (!make_folders(out)) {
        str_addf(why, "%s: %s", out, strerror(errno));
        return false;
    }
    const char *input =
        arena_printf(arena, "%s=%s", info.inputs[0].name, l->images);
    Launch launch = {.artifact = m->artifact,
                     .inputs = &input,
                     .input_count = 1,
                     .threads = plan->threads,
                     .output = out,
                     .timeout = ACCURACY_TIMEOUT};
    int code;
    json_t *report = launch_runner(arena, &launch, &code, why);
    json_decref(report);
    const Array *scores =
        report ? npy_read(arena,
                          arena_printf(arena, "%s/%s.npy", out,
                                       *runner_file_names(arena, &info)),
                          why)
               : NULL;
    if (!scores)
        return false;
    if (array_count(scores) % l->count) {
        str_addf(why, "%d labels for %lld scores", l->count,
                 (long long)array_count(scores));
        return false;
    }
    m->top1 = (double)count_hits(scores, l->labels) / l->count;
    m->examples = l->count;
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
        if (m->status != MODE_OK || !(m->p50 * l.count <= patience))
            continue;
        Str failure = {0};
        if (!score_mode(arena, plan, work, &l, m, &failure)) {
            m->status = MODE_BROKEN;
            m->reason =
                arena_printf(arena, "accuracy: %s", str_text(&failure));
        } else if (m->top1 < l.min_top1) {
            m->status = MODE_WRONG;
            m->reason = arena_printf(arena,
                                     "top-1 %.2f %% is below the stated "
                                     "%.2f %%",
                                     100 * m->top1, 100 * l.min_top1);
        }
        str_free(&failure);
    }
    if (!open && why.length)
        r->labels_missing = arena_strdup(arena, str_text(&why));
    str_free(&why);
}
