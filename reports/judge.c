#include "reports/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRIFT_WINDOW = 60, DRIFT_MEDIAN = 5 };

const char *judge_verdict_name(Verdict verdict)
{
    static const char *const names[] = {
        "broken",       "missing", "regressed", "not-comparable",
        "inconclusive", "same",    "new",       "improved"};
    return names[verdict];
}

/* ---- which run to compare with ---------------------------------------- */

/* A tree with changes is another source than its commit. */
static bool is_same_source(const Run *a, const Run *b)
{
    return !strcmp(a->commit, b->commit) && a->dirty == b->dirty;
}

/* How well run `i` serves as the one before the newest; 0 is best. */
static int distance(const History *h, int i)
{
    const Run *newest = &h->runs.data[history_newest(h)];
    const Run *run = &h->runs.data[i];
    return 2 * (run->machine != newest->machine) + is_same_source(run, newest);
}

/* The newest of the best runs before the newest, for one case or, with -1,
 * for all. */
static int find_base(const ReportData *data, const History *h, int c)
{
    int p50 = data_metric(data, "p50");
    int best = -1;
    for (int i = history_newest(h) - 1; i >= 0; i--) {
        if (c >= 0 && (!record_is_ok(data_record(h, i, c)) ||
                       isnan(data_value(h, i, c, p50))))
            continue;
        if (best < 0 || distance(h, i) < distance(h, best))
            best = i;
    }
    return best;
}

/* ---- latency ---------------------------------------------------------- */

const double *history_values(Arena *arena, const History *h, int c, int metric)
{
    double *values = ARENA_ARRAY(arena, double, h->runs.count);
    for (int i = 0; i < h->runs.count; i++)
        values[i] = record_is_ok(data_record(h, i, c))
                        ? data_value(h, i, c, metric)
                        : NAN;
    return values;
}

/* What lies within `same` of 1 is the same; what lies beyond `threshold` has
 * changed. */
static Verdict verdict_of(const Ratio *r, double threshold, double same)
{
    double high = 1 + threshold, low = 1 / high;
    if (isnan(r->low) || isnan(r->high) || isnan(r->value))
        return VERDICT_INCONCLUSIVE;
    if (r->value > high && r->low > 1)
        return VERDICT_REGRESSED;
    if (r->value < low && r->high < 1)
        return VERDICT_IMPROVED;
    return r->low >= 1 / (1 + same) && r->high <= 1 + same
               ? VERDICT_SAME
               : VERDICT_INCONCLUSIVE;
}

static void judge_course(Arena *arena, Judgement *v, const double *values,
                         int count)
{
    double usual = stats_usual_difference(values, count, true);
    v->usual_known = !isnan(usual);
    v->threshold = usual > JUDGE_THRESHOLD ? usual : JUDGE_THRESHOLD;
    stats_find_steps(arena, values, count, v->threshold, &v->steps);
    /* The last runs against as many at the start of the window. */
    double kept[DRIFT_WINDOW];
    int n = 0;
    for (int i = count - 1; i >= 0 && n < DRIFT_WINDOW; i--)
        if (!isnan(values[i]))
            kept[n++] = values[i];
    v->drift = NAN;
    v->drift_runs = n;
    if (n >= 2 * DRIFT_MEDIAN)
        v->drift = stats_quantile(kept, DRIFT_MEDIAN, 0.5) /
                   stats_quantile(kept + n - DRIFT_MEDIAN, DRIFT_MEDIAN, 0.5);
}

/* ---- other metrics ---------------------------------------------------- */

/* What follows from the latency is judged there. */
static bool follows_latency(const char *name)
{
    static const char *const names[] = {"p50", "p90", "p99", "gflops",
                                        "peak_share"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

/* The least change that counts, relative or as a difference. Errors depend
 * on the order of sums, and are far from what is allowed; accuracies are
 * counts of labelled examples. */
static double least_change(const Metric *m, bool *relative)
{
    *relative = strcmp(m->unit, "ratio") && strcmp(m->unit, "db");
    if (!strcmp(m->unit, "ratio"))
        return m->better == BETTER_HIGHER ? 0.001 : 0.05;
    if (!strcmp(m->unit, "db"))
        return 1;
    return !strcmp(m->unit, "bytes") ? 0.01 : *m->unit ? 0.1 : 0.5;
}

static void judge_moves(Arena *arena, const ReportData *data, const History *h,
                        Judgement *v)
{
    int newest = history_newest(h);
    for (int m = 0; m < data->metrics.count; m++) {
        const Metric *metric = &data->metrics.data[m];
        double before = data_value(h, v->base, v->c, m);
        double after = data_value(h, newest, v->c, m);
        if (metric->better == BETTER_NONE || follows_latency(metric->name) ||
            isnan(before) || isnan(after) || before == after)
            continue;
        bool relative;
        double least = least_change(metric, &relative);
        const double *values = history_values(arena, h, v->c, m);
        double usual = stats_usual_difference(values, newest, relative);
        /* There are many metrics of many cases: three deviations, not two. */
        /* A time that a run takes once tells nothing without that. */
        if (isnan(usual) && !strcmp(metric->unit, "s"))
            continue;
        least = isnan(usual) ? 3 * least : fmax(least, 1.5 * usual);
        double change = relative ? fabs(after - before) / fabs(before)
                                 : fabs(after - before);
        Move move = {m, before, after,
                     (after > before) == (metric->better == BETTER_LOWER)};
        if (change > least)
            vec_push(arena, &v->moves, move);
    }
}

const Move *judgement_move(const Judgement *j, int metric)
{
    for (int i = 0; i < j->moves.count; i++)
        if (j->moves.data[i].metric == metric)
            return &j->moves.data[i];
    return NULL;
}

/* ---- cases ------------------------------------------------------------ */

static const RunDetail *details_of(Arena *arena, Judged *j, int run,
                                   Str *notes)
{
    if (!j->details[run])
        j->details[run] = detail_read(arena, &j->h->runs.data[run], notes);
    return j->details[run];
}

static Judgement judge_case(Arena *arena, Judged *j, int c, Str *notes)
{
    const History *h = j->h;
    int newest = history_newest(h);
    const Record *record = data_record(h, newest, c);
    Judgement v = {
        .c = c, .base = find_base(j->data, h, c), .ratio = {NAN, NAN, NAN}};
    int p50 = data_metric(j->data, "p50");
    judge_course(arena, &v, history_values(arena, h, c, p50), h->runs.count);
    for (int i = newest; i >= 0; i--) {
        const Record *before = data_record(h, i, c);
        if (record_is_ok(before))
            break;
        v.failing += before != NULL;
    }
    /* A skipped case did nothing wrong, and was not measured either. */
    if (!record || !strcmp(record->status, "skipped")) {
        v.verdict = VERDICT_MISSING;
        return v;
    }
    if (!record_is_ok(record)) {
        v.verdict = VERDICT_BROKEN;
        return v;
    }
    if (v.base < 0) {
        v.verdict = VERDICT_NEW;
        return v;
    }
    const char *name = h->cases.data[c].name;
    const CaseDetail *now = detail_case(j->newest, name);
    const CaseDetail *then =
        detail_case(details_of(arena, j, v.base, notes), name);
    if (now && then)
        v.ratio = stats_ratio(&now->samples, &then->samples);
    /* One process says nothing about how processes differ. */
    double same = v.threshold;
    if (!v.usual_known && now && then &&
        (now->samples.processes < 2 || then->samples.processes < 2))
        v.threshold = JUDGE_LONE_THRESHOLD;
    if (isnan(v.ratio.value))
        v.ratio.value =
            data_value(h, newest, c, p50) / data_value(h, v.base, c, p50);
    bool comparable =
        h->runs.data[v.base].machine == h->runs.data[newest].machine;
    v.verdict = comparable ? verdict_of(&v.ratio, v.threshold, same)
                           : VERDICT_NOT_COMPARABLE;
    judge_moves(arena, j->data, h, &v);
    return v;
}

static int worse_moves(const Judgement *v)
{
    int count = 0;
    for (int i = 0; i < v->moves.count; i++)
        count += v->moves.data[i].worse;
    return count;
}

/* Worst first: the verdict, then the change, then the file's order. */
static int compare_judgements(const void *a, const void *b)
{
    const Judgement *x = a, *y = b;
    if (x->verdict != y->verdict)
        return (int)x->verdict - (int)y->verdict;
    if (!worse_moves(x) != !worse_moves(y))
        return worse_moves(x) ? -1 : 1;
    double p = isnan(x->ratio.value) ? 1 : x->ratio.value;
    double q = isnan(y->ratio.value) ? 1 : y->ratio.value;
    if (p != q)
        return p > q ? -1 : 1;
    return x->c - y->c;
}

Judged *judge(Arena *arena, const ReportData *data, const History *h,
              Str *notes)
{
    Judged *j = ARENA_NEW(arena, Judged);
    *j = (Judged){.data = data, .h = h, .base = find_base(data, h, -1)};
    int newest = history_newest(h);
    j->details = ARENA_ARRAY(arena, const RunDetail *, h->runs.count);
    j->newest = details_of(arena, j, newest, notes);
    j->cases = ARENA_ARRAY(arena, Judgement, h->cases.count);
    for (int c = 0; c < h->cases.count; c++) {
        bool here = data_record(h, newest, c) != NULL;
        /* A run of some models says nothing of the others. */
        if (!here && !run_requested(&h->runs.data[newest], &h->cases.data[c]))
            continue;
        /* What the run before did not have either is given up. */
        if (!here && (j->base < 0 || !data_record(h, j->base, c)))
            continue;
        j->cases[j->case_count++] = judge_case(arena, j, c, notes);
    }
    qsort(j->cases, (size_t)j->case_count, sizeof *j->cases,
          compare_judgements);
    for (int i = 0; i < j->case_count; i++)
        j->counts[j->cases[i].verdict]++;
    return j;
}

void judged_free(Judged *j)
{
    for (int i = 0; i < j->h->runs.count; i++)
        if (j->details[i])
            detail_free((RunDetail *)j->details[i]);
}

double judged_newest_value(const Judged *j, int c, int metric)
{
    double value = NAN;
    for (int i = history_newest(j->h); i >= 0 && isnan(value); i--)
        if (record_is_ok(data_record(j->h, i, c)))
            value = data_value(j->h, i, c, metric);
    return value;
}
