#include "harness/check.h"

#include <math.h>
#include <string.h>

#include "ops/op.h"
#include "reference/reference.h"

const Tolerance tolerance_f32 = {1e-4, 1e-3};

/* ---- differences ------------------------------------------------------ */

/* An element's difference; infinite when only one side is a number. */
static double element_error(double got, double wanted)
{
    if (isnan(got) && isnan(wanted))
        return 0;
    if (got == wanted)
        return 0;
    double error = fabs(got - wanted);
    return isnan(error) ? INFINITY : error;
}

static void note_worst(Difference *d, double excess, int64_t index, double got,
                       double wanted)
{
    /* The first element is noted even when it is right. */
    if (index && !(excess > d->max_excess))
        return;
    d->max_excess = excess;
    d->worst = index;
    d->got = got;
    d->wanted = wanted;
}

static Difference compare_integers(const Array *got, const Array *wanted)
{
    Difference d = {.sqnr = INFINITY};
    int64_t count = array_count(wanted);
    for (int64_t i = 0; i < count; i++) {
        int64_t a = array_get_int(got, i), b = array_get_int(wanted, i);
        double error = fabs((double)a - (double)b);
        if (a != b && error < 1)
            error = 1; /* beyond what a double can tell apart */
        d.max_abs = d.max_error = fmax(d.max_error, error);
        if (b)
            d.max_rel = fmax(d.max_rel, error / fabs((double)b));
        note_worst(&d, a == b ? 0 : INFINITY, i, (double)a, (double)b);
        if (a != b)
            d.sqnr = -INFINITY;
    }
    d.agrees = d.max_error == 0;
    return d;
}

Difference compare_arrays(const Array *got, const Array *wanted,
                          Tolerance tolerance)
{
    if (!dtype_is_float(wanted->dtype))
        return compare_integers(got, wanted);
    Difference d = {0};
    int64_t count = array_count(wanted), finite = 0;
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < count; i++) {
        double b = array_get(wanted, i);
        if (!isfinite(b))
            continue;
        signal += b * b;
        finite++;
    }
    d.rms = finite ? sqrt(signal / (double)finite) : 0;
    for (int64_t i = 0; i < count; i++) {
        double a = array_get(got, i), b = array_get(wanted, i);
        double error = element_error(a, b);
        double allowed = tolerance.atol * d.rms +
                         tolerance.rtol * (isfinite(b) ? fabs(b) : 0);
        noise += error * error;
        d.max_abs = fmax(d.max_abs, error);
        /* Of what is next to nothing, any error is many times as large. */
        if (isfinite(b) && fabs(b) > d.rms / 100)
            d.max_rel = fmax(d.max_rel, error / fabs(b));
        note_worst(&d, error == 0 ? 0 : error / allowed, i, a, b);
    }
    d.agrees = d.max_excess <= 1; /* false for NaN, too */
    d.sqnr = noise == 0 ? INFINITY : 10 * log10(signal / noise);
    d.max_error = d.rms > 0 ? d.max_abs / d.rms : d.max_abs;
    return d;
}

/* ---- reference -------------------------------------------------------- */

static bool eval_node(Arena *arena, const Node *node, const RefOp *const *own,
                      ReferenceValues *values, Str *error)
{
    const Array **in =
        ARENA_ARRAY(arena, const Array *, node->inputs.count + 1);
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i])
            in[i] = values->by_id[node->inputs.data[i]->id];
    RefCall call = {.arena = arena,
                    .domain = node->op->domain,
                    .op = node->op->name,
                    .attrs = &node->attrs,
                    .in_count = node->inputs.count,
                    .out_count = node->outputs.count,
                    .in = in,
                    .own = own};
    if (!reference_eval(&call)) {
        str_addf(error, "reference: %s \"%s\": %s\n", node->op->name,
                 node->name, call.error ? call.error : "failed");
        return false;
    }
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i])
            values->by_id[node->outputs.data[i]->id] = call.out[i];
    return true;
}

bool reference_run(Arena *arena, const Graph *g, Array *const *inputs,
                   const RefOp *const *own, ReferenceValues *values,
                   Str *error)
{
    values->count = g->next_id;
    values->by_id = ARENA_ARRAY(arena, const Array *, g->next_id + 1);
    for (int i = 0; i < g->tensors.count; i++) {
        const Tensor *t = g->tensors.data[i];
        values->by_id[t->id] = t->value;
    }
    for (int i = 0; i < g->inputs.count; i++)
        values->by_id[g->inputs.data[i]->id] = inputs[i];
    for (int i = 0; i < g->nodes.count; i++)
        if (!eval_node(arena, g->nodes.data[i], own, values, error))
            return false;
    return true;
}
