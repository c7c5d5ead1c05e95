/* Building and measuring for a tuner. */
#include "harness/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/common.h"
#include "harness/launch.h"
#include "harness/values.h"

void tuner_say(const Tune *t, const char *text)
{
    if (t->plan->quiet)
        return;
    bool is_terminal = isatty(STDERR_FILENO);
    fprintf(stderr, "%stune %s: %s%s", is_terminal ? "\r\033[K" : "",
            t->plan->model, text, is_terminal ? "" : "\n");
    fflush(stderr);
}

void tuner_say_end(const Tune *t)
{
    if (!t->plan->quiet && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

typedef struct BuildJob {
    const Tune *tune;
    const char *choices; /* NULL: the usual */
    const char *folder;
} BuildJob;

/* In a process of its own. */
static int build(void *user)
{
    const BuildJob *job = user;
    AssayCompiler *compiler = job->tune->compiler;
    AssayOptions options = job->tune->plan->compile->assay;
    options.choices = job->choices;
    bool ok = assay_compile(compiler, &options) &&
              assay_write_artifact(compiler, job->folder);
    fputs(assay_errors(compiler), stderr);
    return ok ? EXIT_FINE : EXIT_BAD_INPUT;
}

static bool build_in(Tune *t, const char *choices, const char *folder)
{
    BuildJob job = {t, choices, folder};
    ProcessResult result;
    Str text = {0};
    bool ok = process_call(build, &job, &text, &t->limits.limits, &result) &&
              case_status_of(&result, str_text(&text)) == CASE_OK;
    if (!ok) {
        Str why = {0};
        case_describe(&why, &result, str_text(&text));
        t->why = arena_strdup(t->arena, str_text(&why));
        str_free(&why);
    }
    str_free(&text);
    return ok;
}

const char tuner_default[] = "default", tuner_usual[] = "usual",
           tuner_trial[] = "trial";

static const char *folder_path(const Tune *t, const char *folder)
{
    return arena_printf(t->arena, "%s/%s", t->work, folder);
}

static void print_ways(Str *text, const Tune *t, bool with_trials)
{
    for (int i = 0; i < t->ways.count; i++) {
        const Way *w = &t->ways.data[i];
        ChoiceRow row = w->row;
        row.algorithm = with_trials && w->trial ? w->trial : w->best;
        if (row.algorithm)
            choice_row_print(text, &row);
    }
}

static void print_kernels(Str *text, const Tune *t)
{
    for (int i = 0; i < t->kernels.count; i++) {
        const Tuned *k = &t->kernels.data[i];
        ChoiceRow row = k->about->row;
        row.choice = k->is_trying ? k->trial : k->best;
        choice_row_print(text, &row);
    }
}

const char *tuner_choices(Tune *t, const char *folder)
{
    const char *path = arena_printf(t->arena, "%s/%s.log", t->work, folder);
    bool is_trial = folder == tuner_trial;
    Str text = {0}, error = {0};
    for (int i = 0; t->known && i < t->known->rows.count; i++)
        if (t->known->rows.data[i].algorithm || is_trial)
            choice_row_print(&text, &t->known->rows.data[i]);
    print_ways(&text, t, is_trial);
    if (is_trial)
        print_kernels(&text, t);
    bool ok = write_file(path, str_text(&text), text.length, &error);
    if (!ok)
        t->why = arena_strdup(t->arena, str_text(&error));
    str_free(&text);
    str_free(&error);
    return ok ? path : NULL;
}

bool tuner_build(Tune *t, const char *folder)
{
    const char *choices = NULL;
    if (folder != tuner_default) {
        choices = tuner_choices(t, folder);
        if (!choices)
            return false;
    }
    return build_in(t, choices, folder_path(t, folder));
}

/* ---- measuring -------------------------------------------------------- */

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Of the runs `pick`, summed over steps; NULL: of all. */
static double quintile_sum(const double *const *rows, int steps, int runs,
                           const int *pick, double *scratch)
{
    double sum = 0;
    for (int s = 0; s < steps; s++) {
        for (int i = 0; i < runs; i++)
            scratch[i] = rows[s][pick ? pick[i] : i];
        qsort(scratch, (size_t)runs, sizeof *scratch, by_value);
        sum += scratch[(runs - 1) / 5];
    }
    return sum;
}

Ratio tune_ratio(Arena *arena, const double *const *a, const double *const *b,
                 int steps, int runs)
{
    enum { RESAMPLES = 200 };
    double ratio[RESAMPLES];
    double *scratch = ARENA_ARRAY(arena, double, runs + 1);
    int *pick = ARENA_ARRAY(arena, int, runs + 1);
    uint64_t random = 1;
    if (runs < 1 || steps < 1)
        return (Ratio){NAN, NAN, NAN};
    for (int k = 0; k < RESAMPLES; k++) {
        for (int i = 0; i < runs; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            pick[i] = (int)((random >> 33) % (uint64_t)runs);
        }
        ratio[k] = quintile_sum(a, steps, runs, pick, scratch) /
                   quintile_sum(b, steps, runs, pick, scratch);
    }
    qsort(ratio, RESAMPLES, sizeof *ratio, by_value);
    return (Ratio){quintile_sum(a, steps, runs, NULL, scratch) /
                       quintile_sum(b, steps, runs, NULL, scratch),
                   ratio[RESAMPLES / 40],
                   ratio[RESAMPLES - 1 - RESAMPLES / 40]};
}

/* The samples of one side as runs `first` and on of `room`. */
static bool take_side(const json_t *side, int steps, double *seconds,
                      int first, int runs, int room)
{
    const json_t *list = json_object_get(side, "steps");
    if ((int)json_array_size(list) != steps)
        return false;
    for (int s = 0; s < steps; s++) {
        const json_t *samples =
            json_object_get(json_array_get(list, (size_t)s), "samples");
        for (int i = 0; i < runs; i++)
            seconds[s * room + first + i] =
                json_number_value(json_array_get(samples, (size_t)i));
    }
    return true;
}

bool tuner_measure(Tune *t, const char *a, const char *b, int processes,
                   Measured *m)
{
    const char *usual = folder_path(t, a);
    const char *other = b ? folder_path(t, b) : NULL;
    bool ok = true;
    m->steps = t->program->steps.count;
    m->runs = t->runs * processes;
    size_t count = (size_t)m->steps * (size_t)m->runs;
    m->usual = ARENA_ARRAY(t->arena, double, count + 1);
    m->other = ARENA_ARRAY(t->arena, double, count + 1);
    for (int i = 0; i < processes && ok; i++) {
        /* The one that is loaded first alternates. */
        bool swapped = other && i % 2;
        Launch launch = {.artifact = swapped ? other : usual,
                         .pair = swapped ? usual : other,
                         .threads = t->threads,
                         .profile = t->runs,
                         .limits = t->limits.limits};
        ChildEnd end;
        Str failure = {0};
        json_t *report = launch_runner(t->arena, &launch, &end, &failure);
        const json_t *sides = json_object_get(report, "sides");
        const json_t *one = other ? json_array_get(sides, 0) : report;
        const json_t *two = other ? json_array_get(sides, 1) : report;
        ok = report && end.status == CASE_OK &&
             take_side(swapped ? two : one, m->steps, m->usual, i * t->runs,
                       t->runs, m->runs) &&
             take_side(swapped ? one : two, m->steps, m->other, i * t->runs,
                       t->runs, m->runs);
        if (t->threads == t->plan->threads)
            t->own_threads = (int)number_of(one, "threads");
        if (!ok)
            t->why =
                arena_strdup(t->arena, failure.length ? str_text(&failure)
                                                      : "it does not run");
        str_free(&failure);
        json_decref(report);
    }
    return ok;
}

/* The rows of some steps. */
static int rows_of(const Measured *m, const double *seconds, const bool *is_of,
                   const double **rows)
{
    int count = 0;
    for (int s = 0; s < m->steps; s++)
        if (!is_of || is_of[s])
            rows[count++] = seconds + (size_t)s * (size_t)m->runs;
    return count;
}

double tuner_seconds(const Tune *t, const Measured *m, const double *seconds,
                     const bool *is_of)
{
    const double **rows = ARENA_ARRAY(t->arena, const double *, m->steps + 1);
    double *scratch = ARENA_ARRAY(t->arena, double, m->runs + 1);
    int count = rows_of(m, seconds, is_of, rows);
    return quintile_sum(rows, count, m->runs, NULL, scratch);
}

Ratio tuner_ratio(const Tune *t, const Measured *m, const bool *is_of)
{
    const double **a = ARENA_ARRAY(t->arena, const double *, m->steps + 1);
    const double **b = ARENA_ARRAY(t->arena, const double *, m->steps + 1);
    int count = rows_of(m, m->usual, is_of, a);
    rows_of(m, m->other, is_of, b);
    return tune_ratio(t->arena, a, b, count, m->runs);
}

bool tuner_check(Tune *t, const char *folder)
{
    const CompileOptions *o = t->plan->compile;
    Words argv = launch_words(t->arena, "check", t->plan->model, NULL);
    for (int i = 0; i < o->arg_count; i++)
        vec_push(t->arena, &argv, o->args[i]);
    vec_push(t->arena, &argv, "--format");
    vec_push(t->arena, &argv, "json");
    vec_push(t->arena, &argv, "--artifact");
    vec_push(t->arena, &argv, folder_path(t, folder));
    vec_push(t->arena, &argv, NULL);
    Str failure = {0};
    ChildEnd end;
    json_t *report = child_json(argv.data, &t->limits.limits, &end, &failure);
    bool ok = report && end.status == CASE_OK;
    if (!ok)
        t->why = arena_strdup(t->arena, failure.length
                                            ? str_text(&failure)
                                            : "it differs from the reference");
    str_free(&failure);
    json_decref(report);
    return ok;
}
