#include "harness/score.h"

#include <math.h>

static const char *shape_text(Arena *arena, const Array *a)
{
    Str text = {0};
    for (int i = 0; i < a->rank; i++)
        str_addf(&text, "%s%lld", i ? ", " : "", (long long)a->dims[i]);
    const char *copy = arena_printf(arena, "[%s]", str_text(&text));
    str_free(&text);
    return copy;
}

/* ---- top-1: [n, classes] ---------------------------------------------- */

static bool top1_read(Arena *arena, const Labels *l, const Array *output,
                      Predictions *p, Str *why)
{
    int64_t total = array_count(output);
    if (!total || total % l->count) {
        str_addf(why, "%d labels for scores %s", l->count,
                 shape_text(arena, output));
        return false;
    }
    int64_t classes = total / l->count;
    p->classes = ARENA_ARRAY(arena, int64_t, l->count);
    for (int64_t i = 0; i < l->count; i++) {
        /* The first of equal ones counts, as in ArgMax. */
        int64_t best = -1;
        double largest = NAN;
        for (int64_t k = 0; k < classes; k++) {
            double score = array_get(output, i * classes + k);
            if (best < 0 ? !isnan(score) : score > largest) {
                best = k;
                largest = score;
            }
        }
        p->classes[i] = best;
    }
    return true;
}

static double top1_accuracy(Arena *arena, const Labels *l,
                            const Predictions *p)
{
    (void)arena;
    int hits = 0;
    for (int i = 0; i < l->count; i++)
        hits += p->classes[i] == array_get_int(l->values, i);
    return (double)hits / l->count;
}

static double top1_agreement(Arena *arena, const Labels *l,
                             const Predictions *a, const Predictions *b)
{
    (void)arena;
    int same = 0;
    for (int i = 0; i < l->count; i++)
        same += a->classes[i] == b->classes[i];
    return (double)same / l->count;
}

/* ---- mAP50: [n, 5 + kinds, rows, columns] ----------------------------- */

static bool map50_read(Arena *arena, const Labels *l, const Array *output,
                       Predictions *p, Str *why)
{
    if (output->rank != 4 || output->dims[0] != l->count ||
        output->dims[1] <= 5 || !array_count(output)) {
        str_addf(why,
                 "cells [%d, 5 + kinds, rows, columns] are wanted, not %s",
                 l->count, shape_text(arena, output));
        return false;
    }
    p->kinds = (int)output->dims[1] - 5;
    for (int i = 0; i < l->count; i++) {
        int first = p->found.count;
        detect_decode(arena, output, i, l->width, l->height, &p->found);
        detect_suppress(&p->found, first);
    }
    return true;
}

static double map50_accuracy(Arena *arena, const Labels *l,
                             const Predictions *p)
{
    Detections truth = {0};
    for (int64_t i = 0; i < l->values->dims[0]; i++) {
        double row[SUITE_BOX];
        for (int k = 0; k < SUITE_BOX; k++)
            row[k] = array_get(l->values, i * SUITE_BOX + k);
        Detection d = {
            (int)row[0], (int)row[1], 1, {row[2], row[3], row[4], row[5]}};
        vec_push(arena, &truth, d);
    }
    return detect_map50(arena, &p->found, &truth, p->kinds);
}

static double map50_agreement(Arena *arena, const Labels *l,
                              const Predictions *a, const Predictions *b)
{
    (void)l;
    return detect_agreement(arena, &a->found, &b->found);
}

const Score *score_metric(SuiteMetric metric)
{
    static const Score metrics[] = {
        [METRIC_TOP1] = {"top1", "top-1", top1_read, top1_accuracy,
                         top1_agreement},
        [METRIC_MAP50] = {"map50", "mAP50", map50_read, map50_accuracy,
                          map50_agreement},
    };
    return &metrics[metric];
}
