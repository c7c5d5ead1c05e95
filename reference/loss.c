/* Losses, in double. */
#include <math.h>
#include <string.h>

#include "reference/internal.h"

/* Scores are [outer, classes, inner]. */
typedef struct Scores {
    int64_t outer, classes, inner;
    double *x; /* logarithms of probabilities */
} Scores;

static Scores read_scores(RefCall *call, const Array *x)
{
    Scores s = {x->dims[0], x->dims[1], 1, ref_doubles(call, x)};
    for (int i = 2; i < x->rank; i++)
        s.inner *= x->dims[i];
    return s;
}

static double *score(const Scores *s, int64_t n, int64_t class, int64_t i)
{
    return &s->x[(n * s->classes + class) * s->inner + i];
}

static void log_softmax(Scores *s)
{
    for (int64_t n = 0; n < s->outer; n++)
        for (int64_t i = 0; i < s->inner; i++) {
            double most = -INFINITY, sum = 0;
            for (int64_t k = 0; k < s->classes; k++)
                most = fmax(most, *score(s, n, k, i));
            for (int64_t k = 0; k < s->classes; k++)
                sum += exp(*score(s, n, k, i) - most);
            for (int64_t k = 0; k < s->classes; k++)
                *score(s, n, k, i) -= most + log(sum);
        }
}

bool ref_loss(RefCall *call)
{
    const Array *x = ref_in(call, 0), *target = ref_in(call, 1);
    const char *how = attrs_string(call->attrs, "reduction", "mean");
    bool ignores = attrs_find(call->attrs, "ignore_index") != NULL;
    int64_t ignored = attrs_int(call->attrs, "ignore_index", 0);
    if (!ref_need(call, 2))
        return false;
    Scores s = read_scores(call, x);
    if (!strcmp(call->op, "SoftmaxCrossEntropyLoss"))
        log_softmax(&s);
    if (call->out_count > 1)
        ref_store_doubles(ref_out(call, 1, x->dtype, x->rank, x->dims), s.x);
    bool none = !strcmp(how, "none");
    Array *out =
        ref_out(call, 0, x->dtype, none ? target->rank : 0, target->dims);
    double sum = 0, weights = 0;
    for (int64_t n = 0; n < s.outer; n++)
        for (int64_t i = 0; i < s.inner; i++) {
            int64_t at = n * s.inner + i;
            int64_t class = array_get_int(target, at);
            double loss = 0, weight = 0;
            if (!ignores || class != ignored) {
                if (class < 0 || class >= s.classes)
                    return ref_fail(call, "there is no class %lld",
                                    (long long)class);
                weight =
                    ref_in(call, 2) ? array_get(ref_in(call, 2), class) : 1;
                loss = -weight * *score(&s, n, class, i);
            }
            if (none)
                array_set(out, at, loss);
            sum += loss;
            weights += weight;
        }
    if (!none)
        array_set(out, 0, strcmp(how, "mean") ? sum : sum / weights);
    return true;
}
