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

/* A body on values of its inputs; false as reference_run. */
static bool eval_body(Arena *arena, const Graph *body, const Array **inputs,
                      const ReferenceOptions *how, const Array **outputs,
                      Str *error)
{
    ReferenceValues inner;
    if (!reference_run_with(arena, body, (Array *const *)inputs, how, &inner,
                            error))
        return false;
    for (int i = 0; i < body->outputs.count; i++)
        outputs[i] = inner.by_id[body->outputs.data[i]->id];
    return true;
}

/* Slices one after the other along a new first axis. */
static const Array *join_slices(Arena *arena, const Array **slices,
                                int64_t count, const Array *like)
{
    int64_t dims[MAX_RANK] = {count};
    for (int i = 0; i < like->rank; i++)
        dims[i + 1] = like->dims[i];
    Array *whole = array_new(arena, like->dtype, like->rank + 1, dims);
    size_t size = array_bytes(like);
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)whole->data + (size_t)i * size, slices[i]->data, size);
    return whole;
}

enum { MAX_ITERATIONS = 1 << 20 };

static bool eval_loop(Arena *arena, const Node *node, const Array **in,
                      const ReferenceOptions *how, const Array **out,
                      Str *error)
{
    const Graph *body = node->bodies.data[0];
    int carried = (int)attrs_int(&node->attrs, "carried", 0),
        results = node->outputs.count - carried;
    const Array **args =
        ARENA_ARRAY(arena, const Array *, body->inputs.count + 1);
    const Array **made =
        ARENA_ARRAY(arena, const Array *, body->outputs.count + 1);
    typedef Vec(const Array *) Slices;
    Slices *slices = ARENA_ARRAY(arena, Slices, results + 1);
    bool more = !in[1] || array_get_int(in[1], 0);
    int64_t most = in[0] ? array_get_int(in[0], 0) : MAX_ITERATIONS;
    for (int i = 2; i < body->inputs.count; i++)
        args[i] = in[i];
    for (int64_t t = 0; more && t < most; t++) {
        Array *number = array_new(arena, DT_I64, 0, NULL);
        array_set_int(number, 0, t);
        args[0] = number;
        args[1] = array_scalar(arena, DT_BOOL, 1);
        if (t == MAX_ITERATIONS - 1 ||
            !eval_body(arena, body, args, how, made, error)) {
            if (t == MAX_ITERATIONS - 1)
                str_addf(error, "reference: %s \"%s\": does not end\n",
                         node->op->name, node->name);
            return false;
        }
        more = array_get_int(made[0], 0) != 0;
        for (int i = 0; i < carried; i++)
            args[2 + i] = made[1 + i];
        for (int i = 0; i < results; i++)
            vec_push(arena, &slices[i], made[1 + carried + i]);
    }
    for (int i = 0; i < carried; i++)
        out[i] = args[2 + i];
    for (int i = 0; i < results; i++) {
        /* Of no slices, only the compiler's type says the shape. */
        const Array *like = slices[i].count ? slices[i].data[0] : NULL;
        if (!like) {
            str_addf(error, "reference: %s \"%s\": no iteration\n",
                     node->op->name, node->name);
            return false;
        }
        out[carried + i] =
            join_slices(arena, slices[i].data, slices[i].count, like);
    }
    return true;
}

static bool eval_control(Arena *arena, const Node *node,
                         const ReferenceOptions *how, ReferenceValues *values,
                         Str *error)
{
    const Array **in =
        ARENA_ARRAY(arena, const Array *, node->inputs.count + 2);
    const Array **out =
        ARENA_ARRAY(arena, const Array *, node->outputs.count + 1);
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i])
            in[i] = values->by_id[node->inputs.data[i]->id];
    bool ok =
        node->op->traits & OP_LOOP
            ? eval_loop(arena, node, in, how, out, error)
            : eval_body(arena, node->bodies.data[!array_get_int(in[0], 0)],
                        in + 1, how, out, error);
    for (int i = 0; ok && i < node->outputs.count; i++)
        if (node->outputs.data[i])
            values->by_id[node->outputs.data[i]->id] = out[i];
    return ok;
}

static bool eval_node(Arena *arena, const Node *node,
                      const ReferenceOptions *how, ReferenceValues *values,
                      Str *error)
{
    if (node->bodies.count)
        return eval_control(arena, node, how, values, error);
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
                    .own = how->own};
    bool ok = how->eval ? how->eval(how->user, &call) : reference_eval(&call);
    if (!ok) {
        str_addf(error, "reference: %s \"%s\": %s\n", node->op->name,
                 node->name, call.error ? call.error : "failed");
        return false;
    }
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i])
            values->by_id[node->outputs.data[i]->id] = call.out[i];
    return true;
}

bool reference_run_with(Arena *arena, const Graph *g, Array *const *inputs,
                        const ReferenceOptions *how, ReferenceValues *values,
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
        if (!eval_node(arena, g->nodes.data[i], how, values, error))
            return false;
    return true;
}

bool reference_run(Arena *arena, const Graph *g, Array *const *inputs,
                   const RefOp *const *own, ReferenceValues *values,
                   Str *error)
{
    ReferenceOptions how = {.own = own};
    return reference_run_with(arena, g, inputs, &how, values, error);
}
