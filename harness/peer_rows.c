#include "harness/peer_rows.h"

#include <math.h>
#include <string.h>

#include "harness/common.h"
#include "harness/values.h"

/* ---- means ------------------------------------------------------------ */

/* Logarithms of independent ratios add, and so do their variances. */
static PeerMean mean_of(const PeerRow *rows, int count, const PeerRow *of)
{
    PeerMean mean = {.engine = of->engine,
                     .threads = of->threads,
                     .worst = "",
                     .least = NAN};
    double sum = 0, low = 0, high = 0;
    for (int i = 0; i < count; i++) {
        const Ratio *r = &rows[i].pair.ratio;
        if (rows[i].status != PEER_OK || rows[i].threads != of->threads ||
            strcmp(rows[i].engine, of->engine))
            continue;
        sum += log(r->value);
        low += pow(log(r->value / r->low), 2);
        high += pow(log(r->high / r->value), 2);
        if (!mean.models || r->value < mean.least) {
            mean.least = r->value;
            mean.worst = rows[i].model;
        }
        mean.models++;
    }
    double n = mean.models;
    mean.ratio = (Ratio){exp(sum / n), exp((sum - sqrt(low)) / n),
                         exp((sum + sqrt(high)) / n)};
    return mean;
}

static bool is_same_mean(const PeerMean *mean, const PeerRow *row)
{
    return mean->threads == row->threads && !strcmp(mean->engine, row->engine);
}

int peer_means(Arena *arena, const PeerRow *rows, int count, PeerMean **means)
{
    int found = 0;
    *means = ARENA_ARRAY(arena, PeerMean, count + 1);
    for (int i = 0; i < count; i++) {
        bool known = rows[i].status != PEER_OK;
        for (int k = 0; k < found && !known; k++)
            known = is_same_mean(&(*means)[k], &rows[i]);
        if (!known)
            (*means)[found++] = mean_of(rows, count, &rows[i]);
    }
    return found;
}

/* ---- JSON ------------------------------------------------------------- */

static json_t *text_or_null(const char *text)
{
    return text && *text ? json_string(text) : json_null();
}

static json_t *row_json(const PeerRow *r)
{
    const Pair *p = &r->pair;
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, "
        "s:i, s:i, s:i}",
        "model", r->model, "engine", r->engine, "version",
        text_or_null(r->version), "variant", text_or_null(r->variant),
        "threads", r->threads, "assay_ms", number_json(1e3 * r->assay),
        "peer_ms", number_json(1e3 * r->peer), "ratio",
        number_json(p->ratio.value), "low", number_json(p->ratio.low), "high",
        number_json(p->ratio.high), "status", peer_status_name(r), "error",
        text_or_null(r->error), "max_error", number_json(r->max_error),
        "blocks", p->blocks, "repeated", p->repeated, "disturbed",
        p->disturbed);
}

static json_t *samples_json(const Pair *pair, bool of_peer)
{
    json_t *processes = json_array();
    for (int i = 0; i < pair->blocks; i++)
        for (int v = 0; v < 2; v++) {
            const Samples *s =
                of_peer ? &pair->visits[i][v].a : &pair->visits[i][v].b;
            json_t *list = json_array();
            for (int k = 0; k < s->count; k++)
                json_array_append_new(list, json_real(s->seconds[k]));
            json_array_append_new(processes, list);
        }
    return processes;
}

/* A case has one of the states that all suites have: an engine that does not
 * take a model is no fault of anybody. */
static CaseStatus case_of(const PeerRow *r)
{
    static const CaseStatus of[] = {CASE_OK, CASE_FAILED_CHECK, CASE_SKIPPED};
    return r->status == PEER_FAILED ? r->failure : of[r->status];
}

static json_t *case_json(const json_t *context, const PeerRow *r)
{
    json_t *values = json_pack("{s:o, s:o, s:o}", "p50", number_json(r->assay),
                               "peer_p50", number_json(r->peer), "peer_ratio",
                               number_json(r->pair.ratio.value));
    json_t *o = json_object();
    json_object_set_new(
        o, "name", json_sprintf("%s/%s-t%d", r->model, r->engine, r->threads));
    json_object_set_new(o, "model", json_string(r->model));
    json_object_set_new(o, "mode",
                        json_sprintf("%s-t%d", r->engine, r->threads));
    json_object_set(o, "target", json_object_get(context, "target"));
    json_object_set_new(o, "threads", json_integer(r->threads));
    json_object_set_new(o, "status",
                        json_string(case_status_name(case_of(r))));
    if (r->error)
        json_object_set_new(o, "reason", json_string(r->error));
    json_object_set_new(o, "seconds", json_real(r->seconds));
    json_object_set_new(o, "values", values);
    json_object_set_new(o, "samples", samples_json(&r->pair, false));
    json_object_set_new(o, "peer_samples", samples_json(&r->pair, true));
    return o;
}

/* The list of that name, made when missing. */
static json_t *list_of(json_t *results, const char *name)
{
    if (!json_object_get(results, name))
        json_object_set_new(results, name, json_array());
    return json_object_get(results, name);
}

void results_add_peer(json_t *results, const PeerRow *row)
{
    json_array_append_new(list_of(results, "rows"), row_json(row));
    json_array_append_new(list_of(results, "cases"),
                          case_json(json_object_get(results, "context"), row));
}

void results_set_peer_means(json_t *results, const PeerMean *means, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(
            list,
            json_pack("{s:s, s:i, s:i, s:o, s:o, s:o, s:s, s:o}", "engine",
                      means[i].engine, "threads", means[i].threads, "models",
                      means[i].models, "ratio",
                      number_json(means[i].ratio.value), "low",
                      number_json(means[i].ratio.low), "high",
                      number_json(means[i].ratio.high), "worst",
                      means[i].worst, "least", number_json(means[i].least)));
    json_object_set_new(results, "summary", list);
}

/* ---- table ------------------------------------------------------------ */

static const char *time_text(Arena *arena, double seconds)
{
    return isnan(seconds) ? "-" : format_seconds(arena, seconds);
}

static const char *ratio_text(Arena *arena, const Ratio *r)
{
    if (isnan(r->value))
        return "-";
    if (isnan(r->low))
        return arena_printf(arena, "%.2f", r->value);
    return arena_printf(arena, "%.2f [%.2f, %.2f]", r->value, r->low, r->high);
}

/* Of the longest, at least `width`. */
static int wider(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

static void print_means(Arena *arena, FILE *file, const PeerRow *rows,
                        int count, int engine_width)
{
    PeerMean *means;
    int found = peer_means(arena, rows, count, &means);
    if (found)
        fprintf(file, "\ngeometric means of peer / Assay:\n");
    for (int i = 0; i < found; i++) {
        const PeerMean *m = &means[i];
        fprintf(file, "%-*s t%-2d %-18s of %d; least %.2f, %s\n", engine_width,
                m->engine, m->threads, ratio_text(arena, &m->ratio), m->models,
                m->least, m->worst);
    }
}

static const char *row_name(Arena *arena, const PeerRow *r)
{
    return arena_printf(arena, "%s with %s, %d thread%s", r->model, r->engine,
                        r->threads, r->threads == 1 ? "" : "s");
}

void peer_rows_print(Arena *arena, FILE *file, const PeerRow *rows, int count)
{
    int model = 5, engine = 6, version = 7;
    for (int i = 0; i < count; i++) {
        model = wider(model, rows[i].model);
        engine = wider(engine, rows[i].engine);
        version = wider(version, rows[i].version);
    }
    fprintf(file, "%-*s %-*s %-*s %7s %9s %9s  %-18s %s\n", model, "model",
            engine, "engine", version, "version", "threads", "Assay", "peer",
            "peer / Assay", "status");
    for (int i = 0; i < count; i++) {
        const PeerRow *r = &rows[i];
        fprintf(file, "%-*s %-*s %-*s %7d %9s %9s  %-18s %s\n", model,
                r->model, engine, r->engine, version, r->version, r->threads,
                time_text(arena, r->assay), time_text(arena, r->peer),
                ratio_text(arena, &r->pair.ratio), peer_status_name(r));
    }
    fprintf(file, "\npeer / Assay: above 1, Assay is faster; with its 95 %% "
                  "interval (none after one\nblock, as with --quick).\n");
    print_means(arena, file, rows, count, engine);
    for (int i = 0; i < count; i++)
        if (rows[i].error)
            fprintf(file, "\n%s: %s: %s\n", row_name(arena, &rows[i]),
                    peer_status_name(&rows[i]), rows[i].error);
        else if (rows[i].pair.disturbed)
            fprintf(file,
                    "\n%s: something else used the machine during %d of %d "
                    "blocks of measurements\n",
                    row_name(arena, &rows[i]), rows[i].pair.disturbed,
                    rows[i].pair.blocks);
}
