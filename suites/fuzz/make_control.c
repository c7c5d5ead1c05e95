/* Makers: branches and loops, whose bodies are random graphs, too, and
 * recurrent layers. */
#include <stddef.h>

#include "ops/op.h"
#include "suites/fuzz/maker.h"

enum { MOST_CAPTURED = 3 };

/* ---- bodies ----------------------------------------------------------- */

static Maker body_maker(Maker *m, const char *name)
{
    Graph *body = graph_new(m->g->arena, m->g->diag, name, m->g->ops);
    return (Maker){.g = body, .c = m->c, .dyadic = m->dyadic, .is_body = true};
}

static Tensor *body_input(Maker *b, const Tensor *like, bool use)
{
    Tensor *t = graph_add_input(b->g, like->name, like->type);
    if (use)
        vec_push(b->g->arena, &b->pool, t);
    return t;
}

/* Of the same type as x, which it is not. */
static Tensor *body_result(Maker *b, Tensor *x)
{
    int steps = 1 + choose(b->c, 3);
    for (int i = 0; i < steps; i++)
        maker_step(b);
    for (int i = b->pool.count - 1; i >= 0; i--) {
        Tensor *t = b->pool.data[i];
        if (t->producer && type_equal(&t->type, &x->type))
            return dtype_is_float(t->type.dtype) ? squash(b, t) : t;
    }
    return dtype_is_float(x->type.dtype) ? squash(b, x)
                                         : apply1(b, "Identity", x);
}

static bool finish_body(Maker *b)
{
    return graph_sort(b->g);
}

/* A condition that is computed from data. */
static Tensor *condition(Maker *m)
{
    Tensor *x = pick(m, FLOATS | INDICES, 0, 4);
    Tensor *sum =
        apply(m, "ReduceMax", attr_int(m, "keepdims", 0), x, NULL, NULL);
    return sum ? apply(m, "Less", (Attrs){0}, sum,
                       scalar(m, x->type.dtype, choose(m->c, 4)), NULL)
               : NULL;
}

/* What a body reads from outside; some of it twice, some not at all. */
static int captured(Maker *m, Tensor **list, int count)
{
    int most = count + 1 + choose(m->c, MOST_CAPTURED);
    for (; count < most; count++)
        list[count] = pick(m, ANY, 0, 4);
    return count;
}

/* Both bodies give the type of the first captured tensor. */
static bool make_if(Maker *m)
{
    Tensor *in[1 + MOST_CAPTURED + 1] = {NULL};
    Tensor *cond =
        rarely(m, 4) ? scalar(m, DT_BOOL, choose(m->c, 2)) : condition(m);
    int count = captured(m, in, 1);
    in[0] = cond;
    if (!cond)
        return false;
    Graph *bodies[2];
    for (int k = 0; k < 2; k++) {
        Maker b = body_maker(m, k ? "else" : "then");
        for (int i = 1; i < count; i++)
            body_input(&b, in[i], true);
        Tensor *y = body_result(&b, b.g->inputs.data[0]);
        if (!y || !finish_body(&b))
            return false;
        graph_mark_output(b.g, y);
        bodies[k] = b.g;
    }
    Node *node = graph_add_node(m->g, "If", NULL, in, count, 1);
    vec_push(m->g->arena, &node->bodies, bodies[0]);
    vec_push(m->g->arena, &node->bodies, bodies[1]);
    return op_infer(m->g, node);
}

/* A few iterations, which are unrolled, or many; their number may be data,
 * and a condition may end them. Slices need a number that is known. */
static bool make_loop(Maker *m)
{
    static const int64_t trips[] = {3, 1, 2, 5, 40};
    Tensor *in[3 + MOST_CAPTURED + 1] = {NULL};
    int64_t most = trips[choose(m->c, 5)];
    bool by_condition = rarely(m, 3), slices = !by_condition && flip(m);
    in[0] = scalar(m, DT_I64, (double)most);
    if (!by_condition && !slices && rarely(m, 3)) { /* of the run */
        int64_t none = 0;
        Tensor *n = indices(m, 0, &none, 6);
        in[0] = n ? apply1(m, "Abs", cast(m, n, DT_I64)) : in[0];
    }
    in[2] = pick(m, FLOATS | INDICES, 0, 4);
    int count = captured(m, in, 3);
    if (!in[0])
        return false;
    Maker b = body_maker(m, "step");
    TensorType number = {.dtype = DT_I64}, truth = {.dtype = DT_BOOL};
    graph_add_input(b.g, "i", number);
    Tensor *go = graph_add_input(b.g, "go", truth);
    for (int i = 2; i < count; i++)
        body_input(&b, in[i], true);
    if (flip(m))
        vec_push(b.g->arena, &b.pool, b.g->inputs.data[0]);
    Tensor *y = body_result(&b, b.g->inputs.data[2]);
    Tensor *next = by_condition ? condition(&b) : apply1(&b, "Identity", go);
    if (!y || !next)
        return false;
    graph_mark_output(b.g,
                      next->is_output ? apply1(&b, "Identity", next) : next);
    graph_mark_output(b.g, y);
    if (slices) {
        Tensor *slice = apply1(&b, "Identity", y);
        graph_mark_output(b.g, slice);
    }
    if (!finish_body(&b))
        return false;
    Node *node = graph_add_node(m->g, "Loop", NULL, in, count, 1 + slices);
    node->attrs = attr_int(m, "carried", 1);
    vec_push(m->g->arena, &node->bodies, b.g);
    return op_infer(m->g, node);
}

/* ---- recurrent layers ------------------------------------------------- */

/* Every operand that may be left out sometimes is. */
static bool make_recurrent(Maker *m)
{
    static const struct {
        const char *op;
        int gates;
    } rows[] = {{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}};
    static const char *const directions[] = {"reverse", "bidirectional", NULL};
    Tensor *x = pick_float(m, 3, 3);
    int k = choose(m->c, 3);
    if (is_open(x, 1) || is_open(x, 2))
        return false;
    Attrs attrs = {0};
    choose_text(m, &attrs, "direction", directions);
    const char *direction = attrs_string(&attrs, "direction", "");
    int64_t dirs = *direction == 'b' ? 2 : 1, hidden = 1 + choose(m->c, 6);
    int64_t gates = rows[k].gates * hidden, batch = dim(x, 1);
    int64_t w[] = {dirs, gates, dim(x, 2)}, r[] = {dirs, gates, hidden};
    int64_t bias[] = {dirs, 2 * gates}, state[] = {dirs, batch, hidden};
    DType dtype = x->type.dtype;
    set_int(m, &attrs, "hidden_size", hidden);
    if (k == 1)
        set_int(m, &attrs, "linear_before_reset", choose(m->c, 2));
    Tensor *lengths = NULL;
    if (rarely(m, 3) && !is_open(x, 0) && batch && dim(x, 0)) {
        Array *array = array_new(m->g->arena, DT_I32, 1, &batch);
        for (int64_t i = 0; i < batch; i++)
            array_set_int(array, i, 1 + choose(m->c, (int)dim(x, 0)));
        lengths = graph_add_constant(m->g, NULL, array);
    }
    Tensor *in[] = {x,
                    weights(m, dtype, 3, w, 0, 0.3),
                    weights(m, dtype, 3, r, 0, 0.3),
                    flip(m) ? weights(m, dtype, 2, bias, 0, 0.3) : NULL,
                    lengths,
                    rarely(m, 3) ? weights(m, dtype, 3, state, 0, 1) : NULL,
                    k == 0 && rarely(m, 4) ? weights(m, dtype, 3, state, 0, 1)
                                           : NULL};
    return apply_list(m, rows[k].op, attrs, in, k ? 6 : 7, k ? 2 : 3) != NULL;
}

const MakerRow makers_control[] = {
    {"if", make_if},
    {"loop", make_loop},
    {"recurrent", make_recurrent},
    {NULL, NULL},
};
