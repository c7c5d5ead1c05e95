/* RNN, GRU and LSTM in double, one gate element at a time. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "reference/internal.h"

typedef struct Layer {
    RefCall *call;
    char cell; /* 'R', 'G', 'L' */
    int gates;
    int64_t steps, batch, input, hidden, ways;
    bool batch_first, couple, after_reset;
    double clip;
    const double *x, *w, *r, *b, *h0, *c0, *p;
} Layer;

typedef struct Function {
    const char *name;
    double alpha, beta;
} Function;

static double apply(const Layer *l, const Function *f, double x)
{
    const char *n = f->name;

    if (l->clip > 0)
        x = fmax(-l->clip, fmin(l->clip, x));
    if (!strcasecmp(n, "Sigmoid"))
        return 1 / (1 + exp(-x));
    if (!strcasecmp(n, "Tanh"))
        return tanh(x);
    if (!strcasecmp(n, "Relu"))
        return x > 0 ? x : 0;
    if (!strcasecmp(n, "Affine"))
        return f->alpha * x + f->beta;
    if (!strcasecmp(n, "LeakyRelu"))
        return x < 0 ? f->alpha * x : x;
    if (!strcasecmp(n, "ThresholdedRelu"))
        return x > f->alpha ? x : 0;
    if (!strcasecmp(n, "ScaledTanh"))
        return f->alpha * tanh(f->beta * x);
    if (!strcasecmp(n, "HardSigmoid"))
        return fmax(0, fmin(1, f->alpha * x + f->beta));
    if (!strcasecmp(n, "Elu"))
        return x < 0 ? f->alpha * expm1(x) : x;
    if (!strcasecmp(n, "Softsign"))
        return x / (1 + fabs(x));
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* The functions of all directions; numbers go to those that take some. */
static bool read_functions(Layer *l, int each, Function *f)
{
    static const char *const standard[][3] = {
        {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
    static const struct {
        const char *name;
        int numbers;
        double alpha, beta;
    } known[] = {{"Sigmoid", 0, 0, 0},
                 {"Tanh", 0, 0, 0},
                 {"Relu", 0, 0, 0},
                 {"Softsign", 0, 0, 0},
                 {"Softplus", 0, 0, 0},
                 {"Affine", 2, 1, 0},
                 {"HardSigmoid", 2, 0.2, 0.5},
                 {"ScaledTanh", 2, 1, 1},
                 {"LeakyRelu", 1, 0.01, 0},
                 {"Elu", 1, 1, 0},
                 {"ThresholdedRelu", 1, 1, 0}};
    const Attr *names = attrs_find(l->call->attrs, "activations");
    const Attr *alpha = attrs_find(l->call->attrs, "activation_alpha");
    const Attr *beta = attrs_find(l->call->attrs, "activation_beta");
    int a = 0, b = 0, count = each * (int)l->ways;

    if (names && names->count != count)
        return ref_fail(l->call, "%d activations instead of %d", names->count,
                        count);
    for (int i = 0; i < count; i++) {
        f[i].name = names ? names->strings[i] : standard[each - 1][i % each];
        size_t k = 0, n = sizeof known / sizeof *known;
        while (k < n && strcasecmp(known[k].name, f[i].name))
            k++;
        if (k == n)
            return ref_fail(l->call, "activation %s", f[i].name);
        f[i].alpha = known[k].alpha;
        f[i].beta = known[k].beta;
        if (known[k].numbers > 0 && alpha && a < alpha->count)
            f[i].alpha = alpha->floats[a++];
        if (known[k].numbers > 1 && beta && b < beta->count)
            f[i].beta = beta->floats[b++];
    }
    return true;
}

/* Element j of gate g before its activation, in two shares: of the input
 * with its bias, and of the state `h` with the recurrent bias. */
static double of_input(const Layer *l, int64_t way, const double *x, int g,
                       int64_t j)
{
    int64_t rows = l->gates * l->hidden, row = g * l->hidden + j;
    const double *w = l->w + (way * rows + row) * l->input;
    double sum = l->b ? l->b[way * 2 * rows + row] : 0;

    for (int64_t i = 0; i < l->input; i++)
        sum += x[i] * w[i];
    return sum;
}

static double of_state(const Layer *l, int64_t way, const double *h, int g,
                       int64_t j)
{
    int64_t rows = l->gates * l->hidden, row = g * l->hidden + j;
    const double *r = l->r + (way * rows + row) * l->hidden;
    double sum = l->b ? l->b[way * 2 * rows + rows + row] : 0;

    for (int64_t i = 0; i < l->hidden; i++)
        sum += h[i] * r[i];
    return sum;
}

static double peephole(const Layer *l, int64_t way, int which, int64_t j,
                       double cell)
{
    return l->p ? l->p[(way * 3 + which) * l->hidden + j] * cell : 0;
}

static void lstm(const Layer *l, const Function *f, int64_t way,
                 const double *x, const double *h, double *c, double *next)
{
    for (int64_t j = 0; j < l->hidden; j++) {
        double pre[4];
        for (int g = 0; g < 4; g++)
            pre[g] = of_input(l, way, x, g, j) + of_state(l, way, h, g, j);
        double i = apply(l, &f[0], pre[0] + peephole(l, way, 0, j, c[j]));
        double forget =
            l->couple ? 1 - i
                      : apply(l, &f[0], pre[2] + peephole(l, way, 2, j, c[j]));
        c[j] = forget * c[j] + i * apply(l, &f[1], pre[3]);
        double o = apply(l, &f[0], pre[1] + peephole(l, way, 1, j, c[j]));
        next[j] = o * apply(l, &f[2], c[j]);
    }
}

static void gru(const Layer *l, const Function *f, int64_t way,
                const double *x, const double *h, double *next)
{
    int64_t n = l->hidden;
    double *reset = ARENA_ARRAY(l->call->scratch, double, n + 1);
    double *scaled = ARENA_ARRAY(l->call->scratch, double, n + 1);

    for (int64_t j = 0; j < n; j++) {
        reset[j] = apply(
            l, &f[0], of_input(l, way, x, 1, j) + of_state(l, way, h, 1, j));
        scaled[j] = reset[j] * h[j];
    }
    for (int64_t j = 0; j < n; j++) {
        double z = apply(
            l, &f[0], of_input(l, way, x, 0, j) + of_state(l, way, h, 0, j));
        double old = l->after_reset ? reset[j] * of_state(l, way, h, 2, j)
                                    : of_state(l, way, scaled, 2, j);
        double fresh = apply(l, &f[1], of_input(l, way, x, 2, j) + old);
        next[j] = (1 - z) * fresh + z * h[j];
    }
}

/* One sequence in one direction. */
static void scan(const Layer *l, const Function *f, int64_t way, int64_t b,
                 int64_t length, bool reverse, double *y, double *h, double *c)
{
    int64_t n = l->hidden;
    double *next = ARENA_ARRAY(l->call->scratch, double, n + 1);

    for (int64_t s = 0; s < length; s++) {
        int64_t t = reverse ? length - 1 - s : s;
        const double *x =
            l->x +
            (l->batch_first ? b * l->steps + t : t * l->batch + b) * l->input;
        if (l->cell == 'L')
            lstm(l, f, way, x, h, c, next);
        else if (l->cell == 'G')
            gru(l, f, way, x, h, next);
        else
            for (int64_t j = 0; j < n; j++)
                next[j] = apply(l, f,
                                of_input(l, way, x, 0, j) +
                                    of_state(l, way, h, 0, j));
        memcpy(h, next, (size_t)n * sizeof *h);
        int64_t row = l->batch_first ? (b * l->steps + t) * l->ways + way
                                     : (t * l->ways + way) * l->batch + b;
        memcpy(y + row * n, h, (size_t)n * sizeof *h);
    }
}

static const double *operand(RefCall *call, int index)
{
    const Array *a = ref_in(call, index);
    return a ? ref_doubles(call, a) : NULL;
}

static bool run(Layer *l, const Function *f, int each, const char *direction)
{
    RefCall *call = l->call;
    DType dtype = call->in[0]->dtype;
    int64_t d = l->ways, n = l->hidden;
    int64_t y_dims[4] = {l->steps, d, l->batch, n},
            h_dims[3] = {d, l->batch, n};

    if (l->batch_first) {
        memcpy(y_dims, (int64_t[4]){l->batch, l->steps, d, n}, sizeof y_dims);
        memcpy(h_dims, (int64_t[3]){l->batch, d, n}, sizeof h_dims);
    }
    const Array *lengths = ref_in(call, 4);
    Array *out[3] = {ref_out(call, 0, dtype, 4, y_dims),
                     ref_out(call, 1, dtype, 3, h_dims),
                     ref_out(call, 2, dtype, 3, h_dims)};
    double *y = ref_doubles(call, out[0]);
    double *h = ref_doubles(call, out[1]), *c = ref_doubles(call, out[2]);
    for (int64_t way = 0; way < d; way++)
        for (int64_t b = 0; b < l->batch; b++) {
            int64_t at =
                (l->batch_first ? b * d + way : way * l->batch + b) * n;
            int64_t length = lengths ? array_get_int(lengths, b) : l->steps;
            /* As compiled code does, which must not read outside. */
            length = length < 0 ? 0 : length > l->steps ? l->steps : length;
            if (l->h0)
                memcpy(h + at, l->h0 + at, (size_t)n * sizeof *h);
            if (l->c0)
                memcpy(c + at, l->c0 + at, (size_t)n * sizeof *c);
            bool reverse = way == 1 || !strcmp(direction, "reverse");
            scan(l, f + way * each, way, b, length, reverse, y, h + at,
                 c + at);
        }
    ref_store_doubles(out[0], y);
    ref_store_doubles(out[1], h);
    ref_store_doubles(out[2], c);
    return true;
}

bool ref_recurrent(RefCall *call)
{
    const char *direction = attrs_string(call->attrs, "direction", "forward");
    Function f[6];

    if (!ref_need(call, 3))
        return false;
    const Array *x = call->in[0], *w = call->in[1], *r = call->in[2];
    if (x->rank != 3 || w->rank != 3 || r->rank != 3)
        return ref_fail(call, "X, W and R must have rank 3");
    Layer l = {.call = call, .cell = call->op[0]};
    l.gates = l.cell == 'L' ? 4 : l.cell == 'G' ? 3 : 1;
    l.batch_first = attrs_int(call->attrs, "layout", 0) != 0;
    l.couple = attrs_int(call->attrs, "input_forget", 0) != 0;
    l.after_reset = attrs_int(call->attrs, "linear_before_reset", 0) != 0;
    l.clip = attrs_float(call->attrs, "clip", 0);
    l.steps = x->dims[l.batch_first];
    l.batch = x->dims[!l.batch_first];
    l.input = x->dims[2];
    l.hidden = r->dims[2];
    l.ways = r->dims[0];
    if (l.ways != (strcmp(direction, "bidirectional") ? 1 : 2))
        return ref_fail(call, "%lld directions of R for %s", (long long)l.ways,
                        direction);
    int each = l.cell == 'L' ? 3 : l.cell == 'G' ? 2 : 1;
    if (!read_functions(&l, each, f))
        return false;
    l.x = operand(call, 0);
    l.w = operand(call, 1);
    l.r = operand(call, 2);
    l.b = operand(call, 3);
    l.h0 = operand(call, 5);
    l.c0 = l.cell == 'L' ? operand(call, 6) : NULL;
    l.p = l.cell == 'L' ? operand(call, 7) : NULL;
    return run(&l, f, each, direction);
}
