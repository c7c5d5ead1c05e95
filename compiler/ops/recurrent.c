/* The loops of recurrent layers.
 *
 * Sequences of a batch, and the directions, are independent: each is a task.
 * Its state and the gates before their activation lie in workspace. Where the
 * input's share of the gates was made beforehand, by one product over all
 * steps, a step is a product of the state with a matrix that lies in the order
 * of its use, block by block of columns, and an elementwise update. */
#include <string.h>

#include "ops/recurrent.h"

typedef struct Task {
    LoopContext *c;
    Arena *a;
    const Recurrent *r;
    int direction;
    const Expr *batch;  /* which sequence */
    const Expr *time;   /* of the step, reversed or not */
    const Expr *length; /* steps of the sequence */
    DType work;         /* half precision is summed in f32 */
    const Buffer *state, *cell, *gate, *sum;
    const Expr *state_at, *gate_at; /* of this task */
} Task;

static const Expr *number(const Task *t, double value)
{
    return expr_const(t->a, t->work, value);
}

static const Expr *widened(const Task *t, const Expr *x)
{
    return x->dtype == t->work ? x : expr_cast(t->a, t->work, x);
}

static const Expr *operand(const Task *t, int index, const Expr *offset)
{
    return widened(t, loop_load(t->c, t->c->in[index], offset));
}

/* (((i0 * n1) + i1) * n2 + i2) ...: offsets of row-major elements. */
static const Expr *next(const Task *t, const Expr *i, int64_t extent,
                        const Expr *k)
{
    return expr_add(t->a, expr_mul_int(t->a, i, extent), k);
}

static const Expr *direction(const Task *t)
{
    return expr_int(t->a, t->direction);
}

/* ---- activations ----------------------------------------------------- */

static const Expr *scaled(const Task *t, double alpha, const Expr *x,
                          double beta)
{
    x = alpha == 1 ? x : expr_mul(t->a, number(t, alpha), x);
    return beta == 0 ? x : expr_add(t->a, x, number(t, beta));
}

static const Expr *activated(const Task *t, int which, const Expr *x)
{
    const Activation *f = &t->r->activation[t->direction][which];
    Arena *a = t->a;
    const Expr *zero = number(t, 0), *one = number(t, 1);
    const Expr *is_negative = expr_binary(a, EX_LT, x, zero);

    if (t->r->clip > 0)
        x = expr_max(a, number(t, -t->r->clip),
                     expr_min(a, x, number(t, t->r->clip)));
    if (strcmp(f->name, "sigmoid") == 0)
        return expr_sigmoid(a, x);
    if (strcmp(f->name, "tanh") == 0)
        return expr_unary(a, EX_TANH, x);
    if (strcmp(f->name, "relu") == 0)
        return expr_max(a, x, zero);
    if (strcmp(f->name, "affine") == 0)
        return scaled(t, f->alpha, x, f->beta);
    if (strcmp(f->name, "leakyrelu") == 0)
        return expr_select(a, is_negative, scaled(t, f->alpha, x, 0), x);
    if (strcmp(f->name, "thresholdedrelu") == 0)
        return expr_select(a, expr_binary(a, EX_LT, number(t, f->alpha), x), x,
                           zero);
    if (strcmp(f->name, "scaledtanh") == 0)
        return scaled(t, f->alpha,
                      expr_unary(a, EX_TANH, scaled(t, f->beta, x, 0)), 0);
    if (strcmp(f->name, "hardsigmoid") == 0)
        return expr_max(a, zero,
                        expr_min(a, one, scaled(t, f->alpha, x, f->beta)));
    if (strcmp(f->name, "elu") == 0)
        return expr_select(
            a, is_negative,
            scaled(t, f->alpha, expr_sub(a, expr_unary(a, EX_EXP, x), one), 0),
            x);
    if (strcmp(f->name, "softsign") == 0)
        return expr_div(a, x, expr_add(a, one, expr_unary(a, EX_ABS, x)));
    /* softplus, over exp(-|x|), which cannot overflow */
    const Expr *e =
        expr_unary(a, EX_EXP, expr_unary(a, EX_NEG, expr_unary(a, EX_ABS, x)));
    return expr_add(a, expr_max(a, x, zero),
                    expr_unary(a, EX_LOG, expr_add(a, one, e)));
}

/* ---- products -------------------------------------------------------- */

static const Expr *gate_at(const Task *t, int section, const Expr *j)
{
    return expr_add(t->a,
                    expr_add_int(t->a, t->gate_at, section * t->r->hidden), j);
}

static const Expr *gate(const Task *t, int section, const Expr *j)
{
    return loop_load(t->c, t->gate, gate_at(t, section, j));
}

static const Expr *state(const Task *t, const Expr *j)
{
    return loop_load(t->c, t->state, expr_add(t->a, t->state_at, j));
}

/* One element after the other, from a matrix as it was given. */
static void add_dot_products(const Task *t, int index, int64_t length,
                             const Buffer *from, const Expr *from_at,
                             int first, int section, int64_t count)
{
    LoopContext *c = t->c;
    Arena *a = t->a;
    int64_t rows = t->r->gates * t->r->hidden;
    const Expr *zero = expr_int(a, 0);
    const Expr *j = loop_for(c, LOOP_SERIAL, "j", count);
    const Expr *row = expr_add_int(a, j, first * t->r->hidden);

    loop_store(c, t->sum, zero, gate(t, section, j));
    const Expr *k = loop_for(c, LOOP_SERIAL, "k", length);
    const Expr *weight = operand(
        t, index, next(t, next(t, direction(t), rows, row), length, k));
    const Expr *x = widened(t, loop_load(c, from, expr_add(a, from_at, k)));
    loop_store(
        c, t->sum, zero,
        expr_add(a, loop_load(c, t->sum, zero), expr_mul(a, x, weight)));
    loop_end(c);
    loop_store(c, t->gate, gate_at(t, section, j), loop_load(c, t->sum, zero));
    loop_end(c);
}

/* Block `block` of all columns, in registers, to `at` in a section. */
static void add_block(const Task *t, const Buffer *from, const Expr *from_at,
                      const Expr *block, int section, const Expr *at)
{
    LoopContext *c = t->c;
    Arena *a = t->a;
    int64_t hidden = t->r->hidden, width = t->r->block;
    int64_t blocks = t->r->gates * hidden / width;
    const Expr *j = loop_for(c, LOOP_VECTOR, "j", width);

    loop_store(c, t->sum, j, gate(t, section, expr_add(a, at, j)));
    loop_end(c);
    const Expr *k = loop_for(c, LOOP_SERIAL, "k", hidden);
    j = loop_for(c, LOOP_VECTOR, "j", width);
    const Expr *row = next(t, next(t, direction(t), blocks, block), hidden, k);
    const Expr *weight = operand(t, RECURRENT_R, next(t, row, width, j));
    const Expr *x = loop_load(c, from, expr_add(a, from_at, k));
    loop_store(c, t->sum, j,
               expr_add(a, loop_load(c, t->sum, j), expr_mul(a, x, weight)));
    loop_end(c);
    loop_end(c);
    j = loop_for(c, LOOP_VECTOR, "j", width);
    loop_store(c, t->gate, gate_at(t, section, expr_add(a, at, j)),
               loop_load(c, t->sum, j));
    loop_end(c);
}

/* Adds R `from` to gates: rows of gate `first` on to `count` sections from
 * `section` on. */
static void add_recurrent(const Task *t, const Buffer *from,
                          const Expr *from_at, int first, int section,
                          int count)
{
    LoopContext *c = t->c;
    int64_t columns = count * t->r->hidden;

    if (!t->r->is_projected) {
        add_dot_products(t, RECURRENT_R, t->r->hidden, from, from_at, first,
                         section, columns);
        return;
    }
    int64_t width = t->r->block;
    const Expr *block = loop_for(c, LOOP_SERIAL, "block", columns / width);
    add_block(t, from, from_at,
              expr_add_int(t->a, block, first * t->r->hidden / width), section,
              expr_mul_int(t->a, block, width));
    loop_end(c);
}

static const Expr *input_at(const Task *t)
{
    const Recurrent *r = t->r;
    const Expr *row = r->is_batch_first ? next(t, t->batch, r->steps, t->time)
                                        : next(t, t->time, r->batch, t->batch);

    if (!r->is_projected)
        return expr_mul_int(t->a, row, r->input);
    return expr_mul_int(t->a, next(t, row, r->directions, direction(t)),
                        r->gates * r->hidden);
}

static const Expr *bias(const Task *t, int half, int section, const Expr *j)
{
    int64_t gates = t->r->gates, hidden = t->r->hidden;
    int64_t row = t->direction * 2 * gates + half * gates + section;

    return operand(t, RECURRENT_B, expr_add_int(t->a, j, row * hidden));
}

/* Gates before the recurrent product: the input's share and the biases. With
 * linear_before_reset the recurrent bias of the last gate is within what the
 * reset gate scales, in a section of its own. */
static void start_gates(const Task *t)
{
    const Recurrent *r = t->r;
    LoopContext *c = t->c;
    Arena *a = t->a;
    bool has_bias = c->in[RECURRENT_B] != NULL;
    bool is_apart = r->kind == CELL_GRU && r->resets_after;

    for (int g = 0; g < r->gates + is_apart; g++) {
        bool is_extra = g == r->gates;
        const Expr *j = loop_for(c, LOOP_VECTOR, "j", r->hidden);
        const Expr *x = number(t, 0);
        if (r->is_projected && !is_extra)
            x = operand(
                t, RECURRENT_X,
                expr_add(a, input_at(t), expr_add_int(a, j, g * r->hidden)));
        if (has_bias && !is_extra)
            x = expr_add(a, x, bias(t, 0, g, j));
        if (has_bias && !(is_apart && g == r->gates - 1))
            x = expr_add(a, x, bias(t, 1, is_extra ? g - 1 : g, j));
        loop_store(c, t->gate, gate_at(t, g, j), x);
        loop_end(c);
    }
    if (!r->is_projected)
        add_dot_products(t, RECURRENT_W, r->input, c->in[RECURRENT_X],
                         input_at(t), 0, 0, r->gates * r->hidden);
}

/* ---- cells ----------------------------------------------------------- */

static void set_state(const Task *t, const Buffer *which, const Expr *j,
                      const Expr *value)
{
    loop_store(t->c, which, expr_add(t->a, t->state_at, j), value);
}

static void rnn_step(const Task *t)
{
    add_recurrent(t, t->state, t->state_at, 0, 0, 1);
    const Expr *j = loop_for(t->c, LOOP_VECTOR, "j", t->r->hidden);
    set_state(t, t->state, j, activated(t, 0, gate(t, 0, j)));
    loop_end(t->c);
}

/* Gates z, r, h. */
static void gru_step(const Task *t)
{
    LoopContext *c = t->c;
    Arena *a = t->a;
    const Expr *j;

    add_recurrent(t, t->state, t->state_at, 0, 0, 2);
    if (t->r->resets_after) {
        add_recurrent(t, t->state, t->state_at, 2, 3, 1);
    } else {
        j = loop_for(c, LOOP_VECTOR, "j", t->r->hidden);
        loop_store(c, t->gate, gate_at(t, 3, j),
                   expr_mul(a, activated(t, 0, gate(t, 1, j)), state(t, j)));
        loop_end(c);
        add_recurrent(t, t->gate, gate_at(t, 3, expr_int(a, 0)), 2, 2, 1);
    }
    j = loop_for(c, LOOP_VECTOR, "j", t->r->hidden);
    const Expr *update = activated(t, 0, gate(t, 0, j)),
               *fresh = gate(t, 2, j);
    if (t->r->resets_after)
        fresh = expr_add(
            a, fresh,
            expr_mul(a, activated(t, 0, gate(t, 1, j)), gate(t, 3, j)));
    fresh = activated(t, 1, fresh);
    const Expr *rest = expr_sub(a, number(t, 1), update);
    set_state(t, t->state, j,
              expr_add(a, expr_mul(a, rest, fresh),
                       expr_mul(a, update, state(t, j))));
    loop_end(c);
}

/* The gate plus what it sees of the cell, peephole 0 to 2. */
static const Expr *peeped(const Task *t, int section, int peephole,
                          const Expr *j, const Expr *cell)
{
    const Expr *x = gate(t, section, j);
    int64_t row = t->direction * 3 + peephole;

    if (!t->c->in[RECURRENT_P])
        return x;
    const Expr *weight =
        operand(t, RECURRENT_P, expr_add_int(t->a, j, row * t->r->hidden));
    return expr_add(t->a, x, expr_mul(t->a, weight, cell));
}

/* Gates i, o, f, c; peepholes i, o, f. */
static void lstm_step(const Task *t)
{
    LoopContext *c = t->c;
    Arena *a = t->a;

    add_recurrent(t, t->state, t->state_at, 0, 0, 4);
    const Expr *j = loop_for(c, LOOP_VECTOR, "j", t->r->hidden);
    const Expr *cell = loop_load(c, t->cell, expr_add(a, t->state_at, j));
    const Expr *in = activated(t, 0, peeped(t, 0, 0, j, cell));
    const Expr *forget = t->r->couples_gates
                             ? expr_sub(a, number(t, 1), in)
                             : activated(t, 0, peeped(t, 2, 2, j, cell));
    const Expr *fresh = activated(t, 1, gate(t, 3, j));
    set_state(t, t->cell, j,
              expr_add(a, expr_mul(a, forget, cell), expr_mul(a, in, fresh)));
    loop_end(c);
    j = loop_for(c, LOOP_VECTOR, "j", t->r->hidden);
    /* Of the new cell. */
    cell = loop_load(c, t->cell, expr_add(a, t->state_at, j));
    const Expr *out = activated(t, 0, peeped(t, 1, 1, j, cell));
    set_state(t, t->state, j, expr_mul(a, out, activated(t, 2, cell)));
    loop_end(c);
}

/* ---- the scan -------------------------------------------------------- */

/* Where the sequence's state lies in operands and results. */
static const Expr *outer_state(const Task *t, const Expr *j)
{
    const Recurrent *r = t->r;
    const Expr *row = r->is_batch_first
                          ? next(t, t->batch, r->directions, direction(t))
                          : next(t, direction(t), r->batch, t->batch);
    return next(t, row, r->hidden, j);
}

static void start_state(const Task *t, const Buffer *to, int index)
{
    const Expr *j = loop_for(t->c, LOOP_VECTOR, "j", t->r->hidden);

    set_state(t, to, j,
              t->c->in[index] ? operand(t, index, outer_state(t, j))
                              : number(t, 0));
    loop_end(t->c);
}

static void finish_state(const Task *t, const Buffer *from, int index)
{
    if (!t->c->out[index])
        return;
    const Expr *j = loop_for(t->c, LOOP_VECTOR, "j", t->r->hidden);
    loop_store(t->c, t->c->out[index], outer_state(t, j),
               loop_load(t->c, from, expr_add(t->a, t->state_at, j)));
    loop_end(t->c);
}

/* The state, or zeros past the sequence's end, to the output of `time`. */
static void store_output(const Task *t, const Expr *time, bool is_past)
{
    const Recurrent *r = t->r;

    if (!t->c->out[0])
        return;
    const Expr *j = loop_for(t->c, LOOP_VECTOR, "j", r->hidden);
    const Expr *row = r->is_batch_first
                          ? next(t, next(t, t->batch, r->steps, time),
                                 r->directions, direction(t))
                          : next(t, next(t, time, r->directions, direction(t)),
                                 r->batch, t->batch);
    loop_store(t->c, t->c->out[0], next(t, row, r->hidden, j),
               is_past ? number(t, 0) : state(t, j));
    loop_end(t->c);
}

static void scan(Task *t)
{
    static void (*const steps[])(const Task *) = {
        [CELL_RNN] = rnn_step, [CELL_GRU] = gru_step, [CELL_LSTM] = lstm_step};
    const Recurrent *r = t->r;
    LoopContext *c = t->c;
    Arena *a = t->a;
    const Expr *last = loop_extent(c, r->step_count);

    start_state(t, t->state, RECURRENT_H);
    if (r->kind == CELL_LSTM)
        start_state(t, t->cell, RECURRENT_C);
    if (c->in[RECURRENT_LENGTHS]) {
        const Expr *given = expr_cast(
            a, DT_I64, loop_load(c, c->in[RECURRENT_LENGTHS], t->batch));
        const Buffer *length = loop_variable(c, "length", DT_I64);
        loop_set(c, length,
                 expr_max(a, expr_int(a, 0), expr_min(a, given, last)));
        last = loop_get(c, length);
    }
    const Expr *step = loop_for_extent(c, LOOP_SERIAL, "step", r->step_count);
    bool is_reverse = r->is_reverse || t->direction == 1;
    t->time = is_reverse ? expr_sub(a, expr_add_int(a, last, -1), step) : step;
    if (c->in[RECURRENT_LENGTHS])
        loop_if(c, expr_binary(a, EX_LT, step, last));
    start_gates(t);
    steps[r->kind](t);
    store_output(t, t->time, false);
    if (c->in[RECURRENT_LENGTHS]) {
        loop_end(c);
        loop_if(c, expr_binary(a, EX_LE, last, step));
        store_output(t, step, true);
        loop_end(c);
    }
    loop_end(c);
    finish_state(t, t->state, 1);
    if (r->kind == CELL_LSTM)
        finish_state(t, t->cell, 2);
}

void recurrent_program(LoopContext *c, CellKind kind, bool is_projected)
{
    Recurrent r;
    const char *error;
    Arena *a = c->arena;

    recurrent_read(c->node, kind, is_projected, &r, &error);
    int64_t tasks = r.directions * r.batch;
    int sections = kind == CELL_RNN ? 1 : 4;
    DType dtype = c->in[RECURRENT_X]->dtype;
    if (tasks * r.hidden == 0)
        return;
    Task t = {.c = c,
              .a = a,
              .r = &r,
              .work = dtype_size(dtype) < 4 ? DT_F32 : dtype};
    t.state = loop_workspace(c, "state", t.work, tasks * r.hidden);
    if (kind == CELL_LSTM)
        t.cell = loop_workspace(c, "cell", t.work, tasks * r.hidden);
    t.gate = loop_workspace(c, "gate", t.work, tasks * sections * r.hidden);
    t.sum = loop_local(c, "sum", t.work, is_projected ? r.block : 1);
    const Expr *task =
        loop_for(c, tasks > 1 ? LOOP_PARALLEL : LOOP_SERIAL, "task", tasks);
    const Expr *per = expr_int(a, r.batch);
    t.batch = expr_binary(a, EX_MOD, task, per);
    t.state_at = expr_mul_int(a, task, r.hidden);
    t.gate_at = expr_mul_int(a, task, sections * r.hidden);
    bool is_open = !extent_is_const(r.sequences);
    if (is_open)
        loop_if(c,
                expr_binary(a, EX_LT, t.batch, loop_extent(c, r.sequences)));
    for (t.direction = 0; t.direction < r.directions; t.direction++) {
        if (r.directions == 1) {
            scan(&t);
            continue;
        }
        loop_if(c,
                expr_binary(a, EX_EQ, expr_div(a, task, per), direction(&t)));
        scan(&t);
        loop_end(c);
    }
    if (is_open)
        loop_end(c);
    loop_end(c);
    c->kernel->flops = 2.0 * (double)(r.steps * tasks * r.gates) *
                       (double)r.hidden *
                       (double)(r.hidden + (is_projected ? 0 : r.input));
}
