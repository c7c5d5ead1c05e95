#include "suites/fuzz/agree.h"

#include <math.h>
#include <string.h>

#include "harness/check.h"
#include "suites/random.h"

enum { FIRST_RUNS = 4, MORE_RUNS = 40 };

/* ---- which results are the same however they are computed ------------- */

/* Elements of operands, unchanged or chosen, and what is exact by its
 * definition. Ends with NULL. */
static const char *const moves[] = {"Abs",
                                    "Cast",
                                    "CastLike",
                                    "Ceil",
                                    "CenterCropPad",
                                    "Clip",
                                    "Compress",
                                    "Concat",
                                    "ConstantOfShape",
                                    "DepthToSpace",
                                    "Dropout",
                                    "Expand",
                                    "EyeLike",
                                    "Flatten",
                                    "Floor",
                                    "Gather",
                                    "GatherElements",
                                    "GatherND",
                                    "GlobalMaxPool",
                                    "Hardmax",
                                    "Identity",
                                    "Max",
                                    "MaxPool",
                                    "MaxUnpool",
                                    "Min",
                                    "Neg",
                                    "OneHot",
                                    "Pad",
                                    "ReduceMax",
                                    "ReduceMin",
                                    "Relu",
                                    "Reshape",
                                    "ReverseSequence",
                                    "Round",
                                    "Shape",
                                    "Sign",
                                    "Size",
                                    "Slice",
                                    "SpaceToDepth",
                                    "Split",
                                    "Squeeze",
                                    "TensorScatter",
                                    "Tile",
                                    "TopK",
                                    "Transpose",
                                    "Trilu",
                                    "Unique",
                                    "Unsqueeze",
                                    "Where",
                                    NULL};

/* Sums and products, exact while the digits suffice. */
static const char *const sums[] = {"Add",
                                   "Conv",
                                   "ConvTranspose",
                                   "CumSum",
                                   "Einsum",
                                   "Gemm",
                                   "MatMul",
                                   "Mul",
                                   "ReduceL1",
                                   "ReduceSum",
                                   "ReduceSumSquare",
                                   "ScatterElements",
                                   "ScatterND",
                                   "Sub",
                                   "Sum",
                                   NULL};

static bool is_in(const char *const *list, const char *name)
{
    while (*list && strcmp(*list, name))
        list++;
    return *list != NULL;
}

enum { MOST_DIGITS = 60 };

/* How many binary digits, before and behind the point, the values have
 * together; MOST_DIGITS for many. */
static int digits(const Array *array)
{
    int behind = 0;
    double most = 1;
    for (int64_t i = 0; i < array_count(array); i++) {
        double v = array_get(array, i);
        while (behind < 12 && ldexp(v, behind) != floor(ldexp(v, behind)))
            behind++;
        if (!isfinite(v) || ldexp(v, behind) != floor(ldexp(v, behind)))
            return MOST_DIGITS;
        most = fmax(most, fabs(v));
    }
    return behind + ilogb(most) + 1;
}

static int mantissa(DType dtype)
{
    return dtype == DT_F64   ? 53
           : dtype == DT_F32 ? 24
           : dtype == DT_F16 ? 11
                             : 8;
}

static bool has_wide_window(const Array *weights)
{
    /* What Winograd's transforms are for. */
    int wide = 0;
    for (int i = 2; i < weights->rank; i++)
        wide += weights->dims[i] > 1;
    return wide > 1;
}

static bool sum_is_exact(const RefCall *call)
{
    int total = 0;
    bool is_conv = !strncmp(call->op, "Conv", 4);
    const Array *w = call->in_count > 1 ? call->in[1] : NULL;
    if (is_conv && has_wide_window(w))
        return false;
    for (int i = 0; i < call->in_count; i++)
        if (call->in[i])
            total += digits(call->in[i]);
    if (!strcmp(call->op, "ReduceSumSquare"))
        total += digits(call->in[0]);
    for (int i = 0; i < call->attrs->list.count; i++)
        if (call->attrs->list.data[i].kind == ATTR_FLOAT)
            total += 4; /* alpha and beta, as the makers choose them */
    const Array *most = call->in[0];
    for (int i = 1; i < call->in_count; i++)
        if (call->in[i] && array_count(call->in[i]) > array_count(most))
            most = call->in[i];
    bool is_product = is_conv || !strcmp(call->op, "MatMul");
    int64_t terms = 1;
    for (int i = 0; is_product && i < w->rank; i++)
        terms = is_conv ? terms * w->dims[i]
                        : (int64_t)fmax((double)terms, (double)w->dims[i]);
    if (!is_product)
        terms = array_count(most);
    total += ilogb((double)terms + 1) + 1;
    return total <= mantissa(call->out[0]->dtype);
}

/* Subtract a mean, which is rounded as the values are. */
static const char *const centred[] = {
    "GroupNormalization", "InstanceNormalization", "LayerNormalization",
    "MeanVarianceNormalization", NULL};

/* How far a result moves when the mean moves by its own size: |x| over the
 * deviation, as two neighbours and their results tell. Moving operands alone
 * does not show it where there are two of them: those always become +1 and
 * -1. */
static double amplification(const Array *x, const Array *y)
{
    double most = 0;
    int64_t stride = 1, count = array_count(x);
    for (int d = x->rank - 1; d >= 0; d--) {
        for (int64_t i = 0; i + stride < count; i++) {
            double a = array_get(x, i), b = array_get(x, i + stride);
            double by = array_get(y, i) - array_get(y, i + stride);
            double factor = fabs(a) * fabs(by / (a - b));
            most = isfinite(factor) && factor > most ? factor : most;
        }
        stride *= x->dims[d];
    }
    return most;
}

/* Nearly cancel where they are close to 0: what is left is as exact as the
 * operand is. */
static const char *const nearly_zero[] = {
    "Gelu", "LogSoftmax", "ReduceLogSumExp", "SoftmaxCrossEntropyLoss", NULL};

/* Whether two floats are equal, or one is 0, which no bound tells. */
static bool asks_for_equality(const RefCall *call)
{
    static const char *const rows[] = {"Equal", "NonZero", "Unique", NULL};
    const Array *x = call->in_count ? call->in[0] : NULL;
    return x && dtype_is_float(x->dtype) &&
           (is_in(rows, call->op) ||
            (!strcmp(call->op, "Cast") && call->out[0]->dtype == DT_BOOL));
}

/* ---- one run ---------------------------------------------------------- */

typedef struct Run {
    Arena *arena;
    int number;    /* 0: as it is; 1 up, 2 down; then at random */
    uint64_t call; /* counts */
    Vec(const Array *) exact;
    bool is_large; /* or has no meaning */
} Run;

static bool is_exact(const Run *run, const Array *array)
{
    for (int i = 0; i < run->exact.count; i++)
        if (run->exact.data[i] == array)
            return true;
    return false;
}

/* Relative; several times what one operator's result may be off. */
static double unit(DType dtype)
{
    switch (dtype) {
    case DT_F64:
        return 1e-7;
    case DT_F32:
        return 1e-6;
    case DT_F16:
        return 1e-3;
    default:
        return 8e-3;
    }
}

static double largest(const Array *array)
{
    double most = 0;
    for (int64_t i = 0; i < array_count(array); i++) {
        double v = fabs(array_get(array, i));
        most = v < 1e30 && v > most ? v : most;
    }
    return most;
}

/* Even a zero moves by `floor` units. */
static void move(Run *run, Array *array, uint64_t operand, double floor)
{
    int64_t count = array_count(array);
    double step = unit(array->dtype);
    uint64_t key =
        random_bits((uint64_t)run->number, run->call * 64 + operand);
    for (int64_t i = 0; i < count; i++) {
        double v = array_get(array, i);
        double by = run->number == 1                         ? 1
                    : run->number == 2                       ? -1
                    : random_uniform(key, (uint64_t)i) < 0.5 ? 1
                                                             : -1;
        if (isfinite(v))
            array_set(array, i, v + by * step * (fabs(v) + floor));
    }
}

/* What the standard says nothing of. */
static bool has_no_meaning(const RefCall *call)
{
    const Array *x = call->in_count ? call->in[0] : NULL;
    if (!strcmp(call->op, "DynamicQuantizeLinear")) {
        for (int64_t i = 0; i < array_count(x); i++)
            if (!isfinite(array_get(x, i)))
                return true;
    } else if (!strcmp(call->op, "ReverseSequence")) {
        int64_t most = x->dims[attrs_int(call->attrs, "time_axis", 0)];
        for (int64_t i = 0; i < array_count(call->in[1]); i++)
            if (array_get_int(call->in[1], i) < 1 ||
                array_get_int(call->in[1], i) > most)
                return true;
    }
    return false;
}

static void note_large(Run *run, const Array *array)
{
    double most = array->dtype == DT_F16 ? 3e4 : 1e6;
    for (int64_t i = 0; i < array_count(array); i++) {
        double v = fabs(array_get(array, i));
        run->is_large |= v > most && v < 1e300;
    }
}

/* What even a zero among the results moves by. */
static double floor_of(const RefCall *call, int output, bool is_move)
{
    const Array *out = call->out[output];
    if (is_move)
        return 0;
    if (!output && is_in(centred, call->op))
        return amplification(call->in[0], out);
    if (is_in(nearly_zero, call->op))
        return 0.3 * largest(call->in[0]);
    return 0.1 * largest(out);
}

static bool eval(void *user, RefCall *call)
{
    Run *run = user;
    const Array **in =
        ARENA_ARRAY(run->arena, const Array *, call->in_count + 1);
    RefCall inner = *call;
    bool all_exact = true;
    for (int i = 0; i < call->in_count; i++) {
        in[i] = call->in[i];
        if (!in[i] || is_exact(run, in[i]))
            continue;
        all_exact = false;
        if (!run->number || !dtype_is_float(in[i]->dtype))
            continue;
        Array *moved =
            array_new(run->arena, in[i]->dtype, in[i]->rank, in[i]->dims);
        memcpy(moved->data, in[i]->data, array_bytes(moved));
        move(run, moved, (uint64_t)i, 0);
        in[i] = moved;
    }
    inner.in = in;
    run->call++;
    run->is_large |= has_no_meaning(call);
    if (!reference_eval(&inner)) {
        call->error = inner.error;
        return false;
    }
    memcpy(call->out, inner.out, sizeof call->out);
    run->is_large |= !all_exact && asks_for_equality(call);
    bool is_move = is_in(moves, call->op);
    for (int i = 0; i < call->out_count; i++) {
        Array *out = call->out[i];
        if (!out)
            continue;
        bool is_float = dtype_is_float(out->dtype);
        if (all_exact && (!is_float || is_move ||
                          (is_in(sums, call->op) && sum_is_exact(call))))
            vec_push(run->arena, &run->exact, out);
        else if (run->number && is_float)
            move(run, out, 32 + (uint64_t)i, floor_of(call, i, is_move));
        if (!run->number && is_float)
            note_large(run, out);
    }
    return true;
}

static void note_constants(Run *run, const Graph *g)
{
    for (int i = 0; i < g->tensors.count; i++)
        if (g->tensors.data[i]->value)
            vec_push(run->arena, &run->exact, g->tensors.data[i]->value);
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.data[i]->bodies.count; k++)
            note_constants(run, g->nodes.data[i]->bodies.data[k]);
}

static bool run_once(Agreement *a, Run *run, ReferenceValues *values)
{
    Str error = {0};
    ReferenceOptions how = {.eval = eval, .user = run};
    note_constants(run, a->graph);
    for (int i = 0; i < a->graph->inputs.count; i++)
        vec_push(run->arena, &run->exact, a->inputs[i]);
    bool ok = reference_run_with(run->arena, a->graph, a->inputs, &how, values,
                                 &error);
    if (!ok)
        log_debug("%s", str_text(&error));
    str_free(&error);
    return ok;
}

/* ---- all runs --------------------------------------------------------- */

/* What a build may be off beside what rounding can explain. */
static double slack(const Array *wanted, int64_t i, double rms)
{
    /* Down to where numbers have fewer digits. */
    double least = wanted->dtype == DT_F16 ? 6e-5 : 1e-37;
    return 4 * unit(wanted->dtype) *
           (fabs(array_get(wanted, i)) + rms + least);
}

static void widen(Agreement *a, int index, const Array *moved)
{
    const Array *wanted = a->wanted[index];
    double *room = a->room[index];
    bool same_shape = moved->rank == wanted->rank;
    for (int d = 0; same_shape && d < wanted->rank; d++)
        same_shape = moved->dims[d] == wanted->dims[d];
    if (!same_shape)
        a->room[index] = NULL;
    for (int64_t i = 0; room && same_shape && i < array_count(wanted); i++) {
        double v = array_get(moved, i), w = array_get(wanted, i);
        bool is_float = dtype_is_float(wanted->dtype);
        if (!is_float && array_get_int(moved, i) == array_get_int(wanted, i))
            continue;
        double by = 8 * fabs(v - w);
        if (v != w)
            room[i] = fmax(room[i], is_float && by < 1e30 ? by : INFINITY);
    }
}

static void run_more(Agreement *a, int count)
{
    for (int k = 0; k < count; k++) {
        Arena *scratch = arena_new();
        Run run = {.arena = scratch, .number = ++a->runs};
        ReferenceValues values;
        bool ok = run_once(a, &run, &values);
        for (int i = 0; i < a->graph->outputs.count; i++)
            if (ok)
                widen(a, i, values.by_id[a->graph->outputs.data[i]->id]);
            else
                a->room[i] = NULL;
        arena_free(scratch);
    }
}

bool agree_start(Agreement *a, Arena *arena, const Graph *g,
                 Array *const *inputs)
{
    *a = (Agreement){.arena = arena, .graph = g, .inputs = inputs};
    Run run = {.arena = arena};
    ReferenceValues values;
    if (!run_once(a, &run, &values) || run.is_large)
        return false;
    a->wanted = ARENA_ARRAY(arena, const Array *, g->outputs.count + 1);
    a->room = ARENA_ARRAY(arena, double *, g->outputs.count + 1);
    for (int i = 0; i < g->outputs.count; i++) {
        a->wanted[i] = values.by_id[g->outputs.data[i]->id];
        a->room[i] = ARENA_ARRAY(arena, double, array_count(a->wanted[i]) + 1);
        /* The exact ones are moved by nothing. */
        bool exact = is_exact(&run, a->wanted[i]) ||
                     !dtype_is_float(a->wanted[i]->dtype);
        double square = 0;
        int64_t count = array_count(a->wanted[i]);
        for (int64_t k = 0; k < count; k++) {
            double v = array_get(a->wanted[i], k);
            square += isfinite(v) ? v * v : 0;
        }
        for (int64_t k = 0; k < count && !exact; k++)
            a->room[i][k] =
                slack(a->wanted[i], k, sqrt(square / (double)count));
    }
    run_more(a, FIRST_RUNS);
    return true;
}

/* The element that is furthest outside, or -1. */
static int64_t find_fault(const Agreement *a, int index, const Array *got)
{
    const Array *wanted = a->wanted[index];
    const double *room = a->room[index];
    int64_t worst = -1;
    double most = 0;
    for (int64_t i = 0; i < array_count(wanted); i++) {
        double v = array_get(got, i), w = array_get(wanted, i);
        bool is_float = dtype_is_float(wanted->dtype);
        if (is_float ? v == w || (isnan(v) && isnan(w))
                     : array_get_int(got, i) == array_get_int(wanted, i))
            continue;
        /* Where rounding counts, so may the order of what is not finite. */
        if (isinf(room[i]) || (room[i] > 0 && !isfinite(w)))
            continue;
        double excess = is_float ? fabs(v - w) - room[i] : INFINITY;
        if (isnan(excess))
            excess = INFINITY;
        if (excess > most) {
            most = excess;
            worst = i;
        }
    }
    return worst;
}

bool agree_check(Agreement *a, int index, const Array *got, Str *why)
{
    const Array *wanted = a->wanted[index];
    const char *name = a->graph->outputs.data[index]->name;
    if (!a->room[index])
        return true;
    bool same = got->rank == wanted->rank && got->dtype == wanted->dtype;
    for (int d = 0; same && d < wanted->rank; d++)
        same = got->dims[d] == wanted->dims[d];
    int64_t at = same ? find_fault(a, index, got) : 0;
    if (at >= 0 && a->runs < MORE_RUNS) {
        run_more(a, MORE_RUNS);
        return agree_check(a, index, got, why);
    }
    if (!same)
        str_addf(why, "output %s has another shape", name);
    else if (at >= 0)
        str_addf(why, "output %s, element %lld: %.9g, reference %.9g +- %.3g",
                 name, (long long)at, array_get(got, at),
                 array_get(wanted, at), a->room[index][at]);
    return same && at < 0;
}
