#include "harness/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/builds.h"
#include "harness/common.h"
#include "harness/launch.h"
#include "harness/values.h"
#include "program/program.h"
#include "targets/target.h"

/* Kernels that make this share of a run are looked at. */
static const double share_that_matters = 0.9;
/* A schedule is kept when it is faster by this much, and surely. */
static const double least_gain = 1.02;
/* What is tried next starts from the best so far by more than noise. */
static const double search_gain = 1.005;

enum { MOST_RUNS = 100, LEAST_RUNS = 9, CONFIRMATIONS = 2 };

/* A kernel that matters. */
typedef struct Tuned {
    int schedule; /* in Program.schedules */
    const ProgramSchedule *about;
    double seconds; /* of one run */
    Vec(Choice) moves;
    int next_move;
    Vec(uint64_t) tried; /* hashes of loops */
    /* Of the search, and what is being tried; all knobs of the schedule. */
    Choice best, trial;
    double best_ratio;
    bool has_best, is_trying;
    Ratio ratio; /* usual over `best`, as it was last measured */
    double usual_seconds, best_seconds;
} Tuned;

typedef struct Tune {
    Arena *arena;
    const TunePlan *plan;
    TuneResult *result;
    AssayCompiler *compiler;
    const Program *program; /* the usual one */
    const Choices *known;   /* the log before; may be NULL */
    const char *work;       /* folder */
    BuildPlan limits;
    Vec(Tuned) kernels;
    double start, run_seconds, round_seconds;
    int runs, threads;
    const char *why; /* the last build or measurement failed */
} Tune;

/* What is measured of a pair of builds, run by run. */
typedef struct Measured {
    int runs, steps;
    double *usual, *other; /* [step][run] */
} Measured;

static void say(const Tune *t, const char *text)
{
    if (t->plan->quiet)
        return;
    bool is_terminal = isatty(STDERR_FILENO);
    fprintf(stderr, "%stune %s: %s%s", is_terminal ? "\r\033[K" : "",
            t->plan->model, text, is_terminal ? "" : "\n");
    fflush(stderr);
}

static void say_end(const Tune *t)
{
    if (!t->plan->quiet && isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* ---- builds ----------------------------------------------------------- */

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

static bool run_build(Tune *t, const char *choices, const char *folder)
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

/* What this build has instead of the usual: lines of a log. */
static const char *write_choices(Tune *t)
{
    const char *path = arena_printf(t->arena, "%s/trial.log", t->work);
    Str text = {0}, error = {0};
    for (int i = 0; t->known && i < t->known->rows.count; i++)
        choice_row_print(&text, &t->known->rows.data[i]);
    for (int i = 0; i < t->kernels.count; i++) {
        const Tuned *k = &t->kernels.data[i];
        ChoiceRow row = k->about->row;
        row.choice = k->is_trying ? k->trial : k->best;
        if (k->is_trying || k->has_best || t->known)
            choice_row_print(&text, &row);
    }
    bool ok = write_file(path, str_text(&text), text.length, &error);
    if (!ok)
        bad_input("%s", str_text(&error));
    str_free(&text);
    str_free(&error);
    return ok ? path : NULL;
}

/* ---- measuring -------------------------------------------------------- */

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

Ratio tune_ratio(Arena *arena, const double *a, const double *b, int count)
{
    Ratio r = {NAN, NAN, NAN};
    double *each = ARENA_ARRAY(arena, double, count + 1);
    int n = 0;
    for (int i = 0; i < count; i++)
        if (a[i] > 0 && b[i] > 0)
            each[n++] = a[i] / b[i];
    if (!n)
        return r;
    qsort(each, (size_t)n, sizeof *each, by_value);
    r.value = n % 2 ? each[n / 2] : (each[n / 2 - 1] + each[n / 2]) / 2;
    int low = (int)floor(n / 2.0 - 0.98 * sqrt(n));
    r.low = low < 0 ? 0 : each[low];
    r.high = low < 0 ? INFINITY : each[n - 1 - low];
    return r;
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

/* Runs the usual build and another in turns, in `processes` processes;
 * without another, the usual one alone. */
static bool measure(Tune *t, const char *other, int processes, Measured *m)
{
    const char *usual = arena_printf(t->arena, "%s/usual", t->work);
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
                         .threads = t->plan->threads,
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
        t->threads = (int)number_of(one, "threads");
        if (!ok)
            t->why =
                arena_strdup(t->arena, failure.length ? str_text(&failure)
                                                      : "it does not run");
        str_free(&failure);
        json_decref(report);
    }
    return ok;
}

/* Run by run, the time of a kernel's steps; of all with schedule -1. */
static double *sum_of(const Tune *t, const Measured *m, const double *seconds,
                      int schedule)
{
    double *sum = ARENA_ARRAY(t->arena, double, m->runs + 1);
    for (int s = 0; s < m->steps; s++)
        if (schedule < 0 || t->program->steps.data[s].schedule == schedule)
            for (int i = 0; i < m->runs; i++)
                sum[i] += seconds[s * m->runs + i];
    return sum;
}

static Ratio ratio_of(const Tune *t, const Measured *m, int schedule,
                      double *usual, double *other)
{
    double *a = sum_of(t, m, m->usual, schedule);
    double *b = sum_of(t, m, m->other, schedule);
    if (usual)
        *usual = stats_median(a, m->runs);
    if (other)
        *other = stats_median(b, m->runs);
    return tune_ratio(t->arena, a, b, m->runs);
}

/* ---- what to try ------------------------------------------------------ */

static void add_move(Tune *t, Tuned *k, const char *name, int64_t value)
{
    Choice move = {0};
    choice_set(&move, name, value);
    vec_push(t->arena, &k->moves, move);
}

static bool is_proposed(const KnobLog *log, const char *name)
{
    return log->proposals.count && choice_find(&log->proposals.data[0], name);
}

/* Values of a knob, from its own outwards. */
static void add_values(Tune *t, Tuned *k, const KnobRow *row)
{
    enum { MOST = 4 };
    int own = 0, added = 0;
    while (own < row->count && row->candidates[own] != row->value)
        own++;
    for (int away = 1; away < row->count && added < MOST; away++)
        for (int side = -1; side <= 1; side += 2) {
            int at = own + side * away;
            if (at < 0 || at >= row->count || added == MOST)
                continue;
            add_move(t, k, row->name, row->candidates[at]);
            added++;
        }
}

/* The order in which schedules are tried: what changes much first. */
static void add_moves(Tune *t, Tuned *k)
{
    const KnobLog *log = &k->about->log;
    const int first = 3; /* proposals, the usual one among them */
    for (int most = 2; most <= 3; most++) {
        for (int i = 0; i < log->knobs.count; i++)
            if (log->knobs.data[i].count == most &&
                !is_proposed(log, log->knobs.data[i].name))
                add_values(t, k, &log->knobs.data[i]);
        for (int i = most == 2 ? 0 : first; i < log->proposals.count; i++)
            if (most == 3 || i < first)
                vec_push(t->arena, &k->moves, log->proposals.data[i]);
    }
    for (int i = 0; i < log->knobs.count; i++)
        if (log->knobs.data[i].count > 3 &&
            !is_proposed(log, log->knobs.data[i].name))
            add_values(t, k, &log->knobs.data[i]);
}

/* The loops that a choice makes are new ones: then it is what to try. */
static bool is_new(Tune *t, Tuned *k, const Choice *choice)
{
    Arena *scratch = arena_new();
    KnobLog log;
    uint64_t hash;
    bool is = program_try_choice(scratch, diag_new(scratch, NULL), t->program,
                                 k->schedule, choice, &log, &hash);
    for (int i = 0; is && i < k->tried.count; i++)
        is = k->tried.data[i] != hash;
    if (is) {
        vec_push(t->arena, &k->tried, hash);
        k->trial = (Choice){0};
        /* All of them: a line says the whole schedule. */
        for (int i = 0; i < log.knobs.count; i++)
            choice_set(&k->trial, log.knobs.data[i].name,
                       log.knobs.data[i].value);
    }
    arena_free(scratch);
    return is;
}

static bool next_trial(Tune *t, Tuned *k)
{
    k->is_trying = false;
    while (k->next_move < k->moves.count && !k->is_trying) {
        const Choice *move = &k->moves.data[k->next_move++];
        Choice choice = k->best;
        bool fits = true;
        for (int i = 0; i < move->count; i++)
            fits &=
                choice_set(&choice, move->knob[i].name, move->knob[i].value);
        k->is_trying = fits && is_new(t, k, &choice);
    }
    return k->is_trying;
}

/* ---- rounds ----------------------------------------------------------- */

static void skip_trial(Tune *t, Tuned *k)
{
    Str text = {0};
    choice_print(&text, &k->trial);
    say_end(t);
    fprintf(stderr, "assay: tune %s: %s with %s is skipped: %s\n",
            t->plan->model, k->about->row.kernel, str_text(&text), t->why);
    str_free(&text);
    k->is_trying = false;
}

static void take_trials(Tune *t, const Measured *m)
{
    for (int i = 0; i < t->kernels.count; i++) {
        Tuned *k = &t->kernels.data[i];
        if (!k->is_trying)
            continue;
        Ratio r = ratio_of(t, m, k->schedule, NULL, NULL);
        if (r.value > k->best_ratio * search_gain) {
            k->best = k->trial;
            k->best_ratio = r.value;
            k->has_best = true;
        }
    }
}

static const char *trial_folder(const Tune *t)
{
    return arena_printf(t->arena, "%s/trial", t->work);
}

/* All that are being tried in one build; when that does not build or run, in
 * halves, until the ones are found that are to blame. */
static void try_round(Tune *t, Tuned **trying, int count)
{
    Measured m;
    for (int i = 0; i < t->kernels.count; i++)
        t->kernels.data[i].is_trying = false;
    for (int i = 0; i < count; i++)
        trying[i]->is_trying = true;
    const char *choices = write_choices(t);
    t->result->builds++;
    if (choices && run_build(t, choices, trial_folder(t)) &&
        measure(t, trial_folder(t), 1, &m)) {
        take_trials(t, &m);
        return;
    }
    if (count == 1) {
        skip_trial(t, trying[0]);
        return;
    }
    try_round(t, trying, count / 2);
    try_round(t, trying + count / 2, count - count / 2);
}

static double elapsed(const Tune *t)
{
    return clock_now() - t->start;
}

static void search(Tune *t)
{
    Tuned **trying = ARENA_ARRAY(t->arena, Tuned *, t->kernels.count + 1);
    for (int round = 1;; round++) {
        int count = 0;
        double begin = clock_now();
        /* Confirming and checking take about two more. */
        if (elapsed(t) + 2 * t->round_seconds > t->plan->budget && round > 1)
            return;
        for (int i = 0; i < t->kernels.count; i++)
            if (next_trial(t, &t->kernels.data[i]))
                trying[count++] = &t->kernels.data[i];
        if (!count)
            return;
        say(t, arena_printf(t->arena, "build %d, %d of %d kernels, %.0f s",
                            round, count, t->kernels.count, elapsed(t)));
        try_round(t, trying, count);
        t->round_seconds = fmax(t->round_seconds, clock_now() - begin);
    }
}

/* ---- confirming ------------------------------------------------------- */

/* Outputs of the build that is in the trial folder, against the reference. */
static bool check(Tune *t)
{
    Vec(const char *) argv = {0};
    const CompileOptions *o = t->plan->compile;
    vec_push(t->arena, &argv,
             arena_printf(t->arena, "%s/assay", program_folder(t->arena)));
    vec_push(t->arena, &argv, "check");
    vec_push(t->arena, &argv, t->plan->model);
    for (int i = 0; i < o->arg_count; i++)
        vec_push(t->arena, &argv, o->args[i]);
    vec_push(t->arena, &argv, "--format");
    vec_push(t->arena, &argv, "json");
    vec_push(t->arena, &argv, "--artifact");
    vec_push(t->arena, &argv, trial_folder(t));
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

static bool build_best(Tune *t)
{
    for (int i = 0; i < t->kernels.count; i++)
        t->kernels.data[i].is_trying = false;
    const char *choices = write_choices(t);
    return choices && run_build(t, choices, trial_folder(t));
}

static void drop_best(Tuned *k)
{
    k->has_best = false;
    k->best = (Choice){0};
    k->ratio = (Ratio){1, 1, 1};
    k->best_seconds = k->usual_seconds;
}

static int count_best(const Tune *t)
{
    int count = 0;
    for (int i = 0; i < t->kernels.count; i++)
        count += t->kernels.data[i].has_best;
    return count;
}

/* Measures the best again, at length, and drops what was luck. */
static bool confirm(Tune *t, bool *dropped)
{
    Measured m;
    *dropped = false;
    if (!measure(t, trial_folder(t), CONFIRMATIONS, &m))
        return false;
    t->result->total = ratio_of(t, &m, -1, NULL, NULL);
    for (int i = 0; i < t->kernels.count; i++) {
        Tuned *k = &t->kernels.data[i];
        k->ratio =
            ratio_of(t, &m, k->schedule, &k->usual_seconds, &k->best_seconds);
        bool keep =
            k->has_best && k->ratio.value >= least_gain && k->ratio.low > 1;
        *dropped |= k->has_best && !keep;
        if (!keep)
            drop_best(k);
    }
    return true;
}

/* A wrong result is the fault of one kernel most of the time: each alone. */
static void find_wrong(Tune *t)
{
    Choice *best = ARENA_ARRAY(t->arena, Choice, t->kernels.count + 1);
    bool *sound = ARENA_ARRAY(t->arena, bool, t->kernels.count + 1);
    for (int i = 0; i < t->kernels.count; i++) {
        best[i] = t->kernels.data[i].best;
        sound[i] = t->kernels.data[i].has_best;
        t->kernels.data[i].has_best = false;
    }
    for (int i = 0; i < t->kernels.count; i++) {
        Tuned *k = &t->kernels.data[i];
        if (!sound[i])
            continue;
        k->has_best = true;
        k->best = k->trial = best[i];
        sound[i] = build_best(t) && check(t);
        if (!sound[i])
            skip_trial(t, k);
        k->has_best = false;
        k->best = (Choice){0};
    }
    for (int i = 0; i < t->kernels.count; i++) {
        t->kernels.data[i].has_best = sound[i];
        t->kernels.data[i].best = best[i];
        if (!sound[i])
            drop_best(&t->kernels.data[i]);
    }
}

/* What is left is faster, surely, and right. */
static bool settle(Tune *t)
{
    bool dropped = true;
    for (int round = 0; count_best(t) && dropped && round < 2; round++) {
        say(t, arena_printf(t->arena, "measuring %d again, %.0f s",
                            count_best(t), elapsed(t)));
        if (!build_best(t) || !confirm(t, &dropped))
            return bad_input("tune %s: %s", t->plan->model, t->why), false;
    }
    if (!count_best(t))
        return true;
    say(t, "comparing with the reference");
    if (dropped && !build_best(t))
        return bad_input("tune %s: %s", t->plan->model, t->why), false;
    if (check(t))
        return true;
    find_wrong(t);
    if (!count_best(t) || (build_best(t) && check(t)))
        return true;
    return bad_input("tune %s: with all choices: %s", t->plan->model, t->why),
           false;
}

/* ---- the log ---------------------------------------------------------- */

static bool store(Tune *t)
{
    ChoiceRow *rows = ARENA_ARRAY(t->arena, ChoiceRow, t->kernels.count + 1);
    for (int i = 0; i < t->kernels.count; i++) {
        const Tuned *k = &t->kernels.data[i];
        rows[i] = k->about->row;
        rows[i].choice = k->best;
        rows[i].usual_ms = k->usual_seconds * 1e3;
        rows[i].ms = k->best_seconds * 1e3;
        rows[i].ratio = k->ratio.value;
        rows[i].low = k->ratio.low;
        rows[i].high = k->ratio.high;
        rows[i].threads = t->threads;
    }
    return tune_store(t->plan->log, rows, t->kernels.count);
}

/* ---- which kernels ---------------------------------------------------- */

static int by_time(const void *x, const void *y)
{
    const Tuned *a = x, *b = y;
    return a->seconds != b->seconds
               ? (a->seconds < b->seconds) - (a->seconds > b->seconds)
               : a->schedule - b->schedule;
}

/* Those that make most of the time and have something to choose. */
static void find_kernels(Tune *t, const Measured *m)
{
    Vec(Tuned) all = {0};
    double total = stats_median(sum_of(t, m, m->usual, -1), m->runs);
    double sum = 0;
    for (int i = 0; i < t->program->schedules.count; i++) {
        Tuned k = {.schedule = i, .about = &t->program->schedules.data[i]};
        k.seconds = stats_median(sum_of(t, m, m->usual, i), m->runs);
        k.usual_seconds = k.best_seconds = k.seconds;
        k.ratio = (Ratio){1, 1, 1};
        k.best_ratio = 1;
        vec_push(t->arena, &all, k);
    }
    if (all.count)
        qsort(all.data, (size_t)all.count, sizeof *all.data, by_time);
    for (int i = 0; i < all.count; i++) {
        Tuned *k = &all.data[i];
        if (sum >= share_that_matters * total || k->seconds <= 0)
            break;
        sum += k->seconds;
        add_moves(t, k);
        if (!k->moves.count)
            continue;
        t->result->kernels++;
        if (t->known && !t->plan->again &&
            choices_find(t->known, &k->about->row.scope, k->about->row.def)) {
            t->result->known++;
            continue;
        }
        /* The usual one need not be tried. */
        is_new(t, k, &k->best);
        k->trial = (Choice){0};
        vec_push(t->arena, &t->kernels, *k);
    }
}

/* ---- all of it -------------------------------------------------------- */

static bool is_tunable(const Tune *t)
{
    const AssayOptions *o = &t->plan->compile->assay;
    const Target *target = t->program->target;
    Str why = {0};
    bool ok = target->run == RUN_HOST && target_is_runnable(target, &why);
    if (!ok)
        bad_input("tune %s: target %s does not run on this machine%s%s",
                  t->plan->model, target->name, why.length ? ": " : "",
                  str_text(&why));
    str_free(&why);
    if (ok && t->program->mode != SCHEDULE_FAST)
        return bad_input("tune %s: there are choices at -O2 only",
                         t->plan->model),
               false;
    if (ok && (o->sanitize || o->sanitize_threads))
        return bad_input("tune %s: sanitized code is not timed",
                         t->plan->model),
               false;
    return ok;
}

static bool open_program(Tune *t)
{
    const CompileOptions *o = t->plan->compile;
    AssayOptions usual = o->assay;
    usual.choices = NULL;
    if (!open_model(t->compiler, t->plan->model, o))
        return false;
    if (!assay_compile(t->compiler, &usual)) {
        fputs(assay_errors(t->compiler), stderr);
        return false;
    }
    t->program = assay_program(t->compiler);
    if (!t->program)
        return bad_input("tune %s: --stop-after leaves nothing to tune",
                         t->plan->model),
               false;
    return is_tunable(t);
}

static bool open_log(Tune *t)
{
    if (access(t->plan->log, F_OK))
        return true;
    Diag *diag = diag_new(t->arena, NULL);
    t->known = choices_read(t->arena, diag, t->plan->log);
    for (int i = 0; i < diag->errors.count; i++)
        bad_input("%s", diag->errors.data[i]);
    return t->known != NULL;
}

/* As many as take half a second, so that a round is not much more than its
 * build. */
static void set_runs(Tune *t, const Measured *m)
{
    const double *total = sum_of(t, m, m->usual, -1);
    t->run_seconds = stats_median(total, m->runs);
    int runs = (int)(0.5 / fmax(t->run_seconds, 1e-9));
    t->runs = runs > MOST_RUNS    ? MOST_RUNS
              : runs < LEAST_RUNS ? LEAST_RUNS
                                  : runs;
}

static int tune_in(Tune *t)
{
    Measured m;
    t->runs = LEAST_RUNS;
    if (!open_log(t) || !open_program(t))
        return EXIT_BAD_INPUT;
    say(t, "profile");
    if (!run_build(t, NULL, arena_printf(t->arena, "%s/usual", t->work)) ||
        !measure(t, NULL, 1, &m))
        return bad_input("tune %s: %s", t->plan->model, t->why);
    set_runs(t, &m);
    find_kernels(t, &m);
    if (!t->kernels.count)
        return EXIT_FINE;
    search(t);
    if (!settle(t))
        return EXIT_FAILED_CHECK;
    t->result->improved = count_best(t);
    return store(t) ? EXIT_FINE : EXIT_BAD_INPUT;
}

int tune_model(Arena *arena, const TunePlan *plan, TuneResult *result)
{
    *result = (TuneResult){.total = {NAN, NAN, NAN}};
    Tune t = {.arena = arena,
              .plan = plan,
              .result = result,
              .start = clock_now(),
              .compiler = assay_new(),
              .work = make_temp_folder(arena)};
    build_plan_init(&t.limits, true);
    int code = t.work ? tune_in(&t) : bad_input("no temporary folder");
    say_end(&t);
    if (t.work)
        remove_temp_folder(t.work);
    assay_free(t.compiler);
    result->seconds = clock_now() - t.start;
    return code;
}

void tune_print(FILE *file, const TunePlan *plan, const TuneResult *r)
{
    fprintf(file,
            "%s: %d kernels matter, %d were known, %d of %d others got "
            "faster; %d builds, %.0f s",
            plan->model, r->kernels, r->known, r->improved,
            r->kernels - r->known, r->builds, r->seconds);
    if (r->improved)
        fprintf(file, "; usual/tuned %.3f [%.3f, %.3f]", r->total.value,
                r->total.low, r->total.high);
    fprintf(file, "; %s\n", plan->log);
}
