/* Which algorithms a tuner takes. They change what is scheduled, so that they
 * come before the schedules: each with its usual one. */
#include "harness/tuner.h"

#include <string.h>

#include "harness/common.h"

/* Better than the usual by this much, and surely. */
static const double least_gain = 1.02;
/* Of a run: what takes less does not matter. */
static const double least_share = 0.005;

static bool computes(const Group *group, const AlgorithmNode *node)
{
    for (int i = 0; group && i < group->nodes.count; i++) {
        const Node *n = group->nodes.data[i];
        for (int s = 0; s < n->sources.count; s++)
            for (int k = 0; k < node->source_count; k++)
                if (!strcmp(n->sources.data[s], node->sources[k]))
                    return true;
    }
    return false;
}

static void mark_steps(const Tune *t, Way *w, const AlgorithmNode *node)
{
    for (int s = 0; s < t->program->steps.count; s++)
        w->is_of[s] |= computes(t->program->steps.data[s].group, node);
}

static Way *find_way(Tune *t, uint64_t key)
{
    for (int i = 0; i < t->ways.count; i++)
        if (t->ways.data[i].about->key == key)
            return &t->ways.data[i];
    return NULL;
}

/* Nodes alike go together; those that the log knows are left out. */
static void find_ways(Tune *t, const Measured *m)
{
    const AlgorithmNode *nodes;
    int count = assay_algorithms(t->compiler, &nodes), kept = 0;
    for (int i = 0; i < count; i++) {
        Way *known = find_way(t, nodes[i].key);
        if (!known) {
            Way w = {.about = &nodes[i], .best_ratio = 1, .ratio = {1, 1, 1}};
            assay_algorithm_row(t->compiler, &nodes[i], &w.row);
            w.is_of = ARENA_ARRAY(t->arena, bool, t->program->steps.count + 1);
            vec_push(t->arena, &t->ways, w);
            known = &t->ways.data[t->ways.count - 1];
        }
        mark_steps(t, known, &nodes[i]);
    }
    double total = tuner_seconds(t, m, m->usual, NULL);
    for (int i = 0; i < t->ways.count; i++) {
        Way *w = &t->ways.data[i];
        w->usual_seconds = tuner_seconds(t, m, m->usual, w->is_of);
        w->best_seconds = w->usual_seconds;
        if (w->usual_seconds < least_share * total)
            continue;
        t->result->ways++;
        if (t->known && !t->plan->again &&
            choices_find(t->known, &w->row.scope, w->row.def))
            continue;
        t->ways.data[kept++] = *w;
    }
    t->ways.count = kept;
}

/* The one after `at` of those that the node is not computed by; NULL: no
 * more. */
static const char *other_name(const AlgorithmNode *node, int at)
{
    for (int i = 0; i < node->name_count; i++)
        if (strcmp(node->names[i], node->taken) && at-- == 0)
            return node->names[i];
    return NULL;
}

static void take_trials(Tune *t, const Measured *m)
{
    for (int i = 0; i < t->ways.count; i++) {
        Way *w = &t->ways.data[i];
        if (!w->trial)
            continue;
        Ratio r = tuner_ratio(t, m, w->is_of);
        log_debug("tried %s algorithm=%s: %.3f [%.3f, %.3f]", w->row.kernel,
                  w->trial, r.value, r.low, r.high);
        if (r.value < least_gain || r.low <= 1 || r.value <= w->best_ratio)
            continue;
        w->best = w->trial;
        w->best_ratio = r.value;
        w->ratio = r;
        w->best_seconds = tuner_seconds(t, m, m->other, w->is_of);
    }
}

static int count_best(const Tune *t)
{
    int count = 0;
    for (int i = 0; i < t->ways.count; i++)
        count += t->ways.data[i].best != NULL;
    return count;
}

/* The other algorithms' time, all nodes at once. */
static void try_ways(Tune *t)
{
    for (int round = 0;; round++) {
        bool any = false;
        Measured m;
        for (int i = 0; i < t->ways.count; i++) {
            t->ways.data[i].trial = other_name(t->ways.data[i].about, round);
            any |= t->ways.data[i].trial != NULL;
        }
        if (!any)
            break;
        tuner_say(t,
                  arena_printf(t->arena, "algorithms, build %d", round + 1));
        t->result->builds++;
        if (tuner_build(t, tuner_trial) &&
            tuner_measure(t, tuner_default, tuner_trial, 1, &m)) {
            take_trials(t, &m);
            continue;
        }
        tuner_say_end(t);
        fprintf(stderr, "assay: tune %s: other algorithms are skipped: %s\n",
                t->plan->model, t->why);
    }
    for (int i = 0; i < t->ways.count; i++)
        t->ways.data[i].trial = NULL;
}

static void drop_best(Tune *t)
{
    tuner_say_end(t);
    fprintf(stderr, "assay: tune %s: other algorithms are skipped: %s\n",
            t->plan->model, t->why);
    for (int i = 0; i < t->ways.count; i++) {
        Way *w = &t->ways.data[i];
        w->best = NULL;
        w->ratio = (Ratio){1, 1, 1};
        w->best_seconds = w->usual_seconds;
    }
}

static bool has_known(const Tune *t)
{
    for (int i = 0; t->known && i < t->known->rows.count; i++)
        if (t->known->rows.data[i].algorithm)
            return true;
    return false;
}

bool tuner_choose_ways(Tune *t, const Measured *m)
{
    const char *given = t->plan->compile->assay.algorithm;
    if (!given || !strcmp(given, "auto"))
        find_ways(t, m);
    try_ways(t);
    if (count_best(t) &&
        !(tuner_build(t, tuner_usual) && tuner_check(t, tuner_usual)))
        drop_best(t);
    t->result->other_ways = count_best(t);
    if (!count_best(t) && !has_known(t))
        return true;
    AssayOptions options = t->plan->compile->assay;
    options.choices = tuner_choices(t, tuner_usual);
    if (!options.choices || !assay_compile(t->compiler, &options))
        return false;
    t->program = assay_program(t->compiler);
    t->base = tuner_usual;
    return tuner_build(t, tuner_usual);
}
