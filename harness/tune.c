#include "harness/tuner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/common.h"
#include "runtime/pool.h"
#include "targets/target.h"

/* Kernels that make this share of a run are looked at. */
static const double share_that_matters = 0.9;
/* A schedule is kept when it is faster by this much, and surely. */
static const double least_gain = 1.02;
/* What is tried next starts from the best so far by more than noise. */
static const double search_gain = 1.005;

enum { MOST_RUNS = 100, LEAST_RUNS = 10, CONFIRMATIONS = 2 };

/* ---- rounds ----------------------------------------------------------- */

static void skip_trial(Tune *t, Tuned *k)
{
    Str text = {0};
    choice_print(&text, &k->trial);
    tuner_say_end(t);
    fprintf(stderr, "assay: tune %s: %s with %s is skipped: %s\n",
            t->plan->model, k->about->row.kernel, str_text(&text), t->why);
    str_free(&text);
    k->is_trying = false;
}

/* ASSAY_LOG=debug shows every measurement. */
static void log_ratio(const Tuned *k, const char *what, const Choice *choice,
                      Ratio r)
{
    Str text = {0};
    choice_print(&text, choice);
    log_debug("%s %s in %s %s: %.3f [%.3f, %.3f]", what, k->about->row.kernel,
              k->about->row.in, str_text(&text), r.value, r.low, r.high);
    str_free(&text);
}

static void take_trials(Tune *t, const Measured *m)
{
    for (int i = 0; i < t->kernels.count; i++) {
        Tuned *k = &t->kernels.data[i];
        if (!k->is_trying)
            continue;
        Ratio r = tuner_ratio(t, m, k->is_of);
        log_ratio(k, "tried", &k->trial, r);
        if (r.value > k->best_ratio * search_gain) {
            k->best = k->trial;
            k->best_ratio = r.value;
            k->has_best = true;
        }
    }
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
    t->result->builds++;
    if (tuner_build(t, tuner_trial) &&
        tuner_measure(t, t->base, tuner_trial, 1, &m)) {
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
            if (tuner_next_trial(t, &t->kernels.data[i]))
                trying[count++] = &t->kernels.data[i];
        if (!count)
            return;
        tuner_say(t,
                  arena_printf(t->arena, "build %d, %d of %d kernels, %.0f s",
                               round, count, t->kernels.count, elapsed(t)));
        try_round(t, trying, count);
        t->round_seconds = fmax(t->round_seconds, clock_now() - begin);
    }
}

/* ---- confirming ------------------------------------------------------- */

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

/* A choice holds for any number of threads: none is to lose with one where it
 * wins with all cores, or the other way round. */
static bool confirm_other_threads(Tune *t, bool *dropped)
{
    int all = pool_physical_cores(NULL, 0);
    int other = t->own_threads > 1 ? 1 : all;
    Measured m;
    if (other == t->own_threads)
        return true;
    t->threads = other;
    bool ok = tuner_measure(t, t->base, tuner_trial, 1, &m);
    t->threads = t->plan->threads;
    for (int i = 0; i < t->kernels.count && ok; i++) {
        Tuned *k = &t->kernels.data[i];
        if (!k->has_best)
            continue;
        Ratio r = tuner_ratio(t, &m, k->is_of);
        log_ratio(k, "with other threads", &k->best, r);
        if (r.high >= 1)
            continue;
        *dropped = true;
        drop_best(k);
    }
    return ok;
}

/* Measures the best again, at length, and drops what was luck. */
static bool confirm(Tune *t, bool *dropped)
{
    Measured m;
    *dropped = false;
    if (!tuner_measure(t, t->base, tuner_trial, CONFIRMATIONS, &m))
        return false;
    for (int i = 0; i < t->kernels.count; i++) {
        Tuned *k = &t->kernels.data[i];
        k->ratio = tuner_ratio(t, &m, k->is_of);
        log_ratio(k, "again", &k->best, k->ratio);
        k->usual_seconds = tuner_seconds(t, &m, m.usual, k->is_of);
        k->best_seconds = tuner_seconds(t, &m, m.other, k->is_of);
        bool keep =
            k->has_best && k->ratio.value >= least_gain && k->ratio.low > 1;
        *dropped |= k->has_best && !keep;
        if (!keep)
            drop_best(k);
    }
    return confirm_other_threads(t, dropped);
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
        t->kernels.data[i].best = (Choice){0};
    }
    for (int i = 0; i < t->kernels.count; i++) {
        Tuned *k = &t->kernels.data[i];
        if (!sound[i])
            continue;
        k->has_best = true;
        k->best = k->trial = best[i];
        sound[i] = tuner_build(t, tuner_trial) && tuner_check(t, tuner_trial);
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
    for (int i = 0; i < t->kernels.count; i++)
        t->kernels.data[i].is_trying = false;
    bool dropped = true;
    for (int round = 0; count_best(t) && dropped && round < 2; round++) {
        tuner_say(t, arena_printf(t->arena, "measuring %d again, %.0f s",
                                  count_best(t), elapsed(t)));
        if (!tuner_build(t, tuner_trial) || !confirm(t, &dropped))
            return bad_input("tune %s: %s", t->plan->model, t->why), false;
    }
    if (!count_best(t))
        return true;
    tuner_say(t, "comparing with the reference");
    if (dropped && !tuner_build(t, tuner_trial))
        return bad_input("tune %s: %s", t->plan->model, t->why), false;
    if (tuner_check(t, tuner_trial))
        return true;
    find_wrong(t);
    if (!count_best(t) ||
        (tuner_build(t, tuner_trial) && tuner_check(t, tuner_trial)))
        return true;
    return bad_input("tune %s: with all choices: %s", t->plan->model, t->why),
           false;
}

/* ---- the log ---------------------------------------------------------- */

static void add_measurement(ChoiceRow *row, const Tune *t, double usual,
                            double best, Ratio ratio)
{
    row->usual_ms = usual * 1e3;
    row->ms = best * 1e3;
    row->ratio = ratio.value;
    row->low = ratio.low;
    row->high = ratio.high;
    row->threads = t->own_threads;
}

static bool store(Tune *t)
{
    Vec(ChoiceRow) rows = {0};
    for (int i = 0; i < t->ways.count; i++) {
        const Way *w = &t->ways.data[i];
        ChoiceRow row = w->row;
        row.algorithm = w->best ? w->best : w->about->taken;
        add_measurement(&row, t, w->usual_seconds, w->best_seconds, w->ratio);
        vec_push(t->arena, &rows, row);
    }
    for (int i = 0; i < t->kernels.count; i++) {
        const Tuned *k = &t->kernels.data[i];
        ChoiceRow row = k->about->row;
        row.choice = k->best;
        add_measurement(&row, t, k->usual_seconds, k->best_seconds, k->ratio);
        vec_push(t->arena, &rows, row);
    }
    return !rows.count || tune_store(t->plan->log, rows.data, rows.count);
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
    double total = tuner_seconds(t, m, m->usual, NULL);
    double sum = 0;
    for (int i = 0; i < t->program->schedules.count; i++) {
        Tuned k = {.schedule = i, .about = &t->program->schedules.data[i]};
        k.is_of = ARENA_ARRAY(t->arena, bool, m->steps + 1);
        for (int s = 0; s < m->steps; s++)
            k.is_of[s] = t->program->steps.data[s].schedule == i;
        k.seconds = tuner_seconds(t, m, m->usual, k.is_of);
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
        tuner_add_moves(t, k);
        if (!k->moves.count)
            continue;
        t->result->kernels++;
        if (t->known && !t->plan->again &&
            choices_find(t->known, &k->about->row.scope, k->about->row.def)) {
            t->result->known++;
            continue;
        }
        tuner_skip_usual(t, k);
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
    AssayOptions before = o->assay;
    before.choices = t->known ? t->plan->log : NULL;
    if (!open_model(t->compiler, t->plan->model, o))
        return false;
    /* Lines of the log that do not fit are said at once. */
    if ((t->known && !assay_compile(t->compiler, &before)) ||
        !assay_compile(t->compiler, &usual)) {
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

/* As many as take most of a second, so that a round is not much more than its
 * build. */
static void set_runs(Tune *t, const Measured *m)
{
    int runs = (int)(0.7 / fmax(tuner_seconds(t, m, m->usual, NULL), 1e-9));
    t->runs = runs > MOST_RUNS    ? MOST_RUNS
              : runs < LEAST_RUNS ? LEAST_RUNS
                                  : runs;
}

/* Of whole runs, all that was chosen against nothing chosen. */
static bool measure_total(Tune *t)
{
    Measured m;
    if (!t->result->improved && !t->result->other_ways)
        return true;
    /* Without a better schedule nothing was tried last. */
    bool ok = t->result->improved ||
              (tuner_build(t, tuner_trial) && tuner_check(t, tuner_trial));
    ok = ok && tuner_measure(t, tuner_default, tuner_trial, CONFIRMATIONS, &m);
    if (ok)
        t->result->total = tuner_ratio(t, &m, NULL);
    return ok;
}

static bool find_all(Tune *t)
{
    Measured m;
    tuner_say(t, "profile");
    if (!tuner_build(t, tuner_default) ||
        !tuner_measure(t, tuner_default, NULL, 1, &m))
        return false;
    /* From then on a build or a measurement that takes this long hangs. */
    t->limits.limits.seconds = 20 + 10 * elapsed(t);
    set_runs(t, &m);
    if (!tuner_choose_ways(t, &m) ||
        (t->base != tuner_default && !tuner_measure(t, t->base, NULL, 1, &m)))
        return false;
    find_kernels(t, &m);
    return true;
}

static int tune_in(Tune *t)
{
    t->runs = LEAST_RUNS;
    if (!open_log(t) || !open_program(t))
        return EXIT_BAD_INPUT;
    if (!find_all(t))
        return bad_input("tune %s: %s", t->plan->model, t->why);
    if (!t->kernels.count && !t->ways.count)
        return EXIT_FINE;
    search(t);
    if (!settle(t))
        return EXIT_FAILED_CHECK;
    t->result->improved = count_best(t);
    if (!measure_total(t)) {
        bad_input("tune %s: %s", t->plan->model, t->why);
        return EXIT_FAILED_CHECK;
    }
    return store(t) ? EXIT_FINE : EXIT_BAD_INPUT;
}

int tune_model(Arena *arena, const TunePlan *plan, TuneResult *result)
{
    *result = (TuneResult){.total = {NAN, NAN, NAN}};
    Tune t = {.arena = arena,
              .plan = plan,
              .result = result,
              .start = clock_now(),
              .base = tuner_default,
              .threads = plan->threads,
              .compiler = assay_new(),
              .work = make_temp_folder(arena)};
    build_plan_init(&t.limits, true);
    int code = t.work ? tune_in(&t) : bad_input("no temporary folder");
    tuner_say_end(&t);
    if (t.work)
        remove_temp_folder(t.work);
    assay_free(t.compiler);
    result->seconds = clock_now() - t.start;
    return code;
}

void tune_print(FILE *file, const TunePlan *plan, const TuneResult *r)
{
    fprintf(file,
            "%s: %d of %d algorithms changed; of %d kernels %d were known, "
            "%d of the others got faster; %d builds, %.0f s",
            plan->model, r->other_ways, r->ways, r->kernels, r->known,
            r->improved, r->builds, r->seconds);
    if (r->total.value > 0)
        fprintf(file, "; default/tuned %.3f [%.3f, %.3f]", r->total.value,
                r->total.low, r->total.high);
    fprintf(file, "; %s\n", plan->log);
}

bool tune_take(const char *text, bool *tune)
{
    *tune = !strcmp(text, "quick");
    if (!*tune)
        bad_input("--tune %s: there is quick", text);
    return *tune;
}

int tune_first(Arena *arena, const char *model, CompileOptions *o, int threads,
               double budget)
{
    /* The log may be one that is yet to be made. */
    const char *log =
        o->assay.choices ? o->assay.choices : tune_default_log(arena);
    TunePlan plan = {.model = model,
                     .compile = o,
                     .log = log,
                     .threads = threads,
                     .budget = budget};
    TuneResult result;
    o->assay.choices = NULL;
    int code = log ? tune_model(arena, &plan, &result) : EXIT_BAD_INPUT;
    if (code == EXIT_FINE)
        tune_print(stderr, &plan, &result);
    /* A model without anything to choose leaves no log. */
    if (log && !access(log, F_OK))
        o->assay.choices = log;
    return code;
}
