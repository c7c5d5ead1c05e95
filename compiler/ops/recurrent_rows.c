/* RNN, GRU and LSTM: types, attributes, and the rewriting into one product
 * for the inputs of all steps and a scan over them. */
#include <string.h>
#include <strings.h>

#include "ops/make.h"
#include "ops/recurrent.h"

typedef struct CellRow {
    const char *op;
    int gates, functions;
    const char *defaults[MAX_ACTIVATIONS];
} CellRow;

static const CellRow cells[] = {
    [CELL_RNN] = {"RNN", 1, 1, {"tanh"}},
    [CELL_GRU] = {"GRU", 3, 2, {"sigmoid", "tanh"}},
    [CELL_LSTM] = {"LSTM", 4, 3, {"sigmoid", "tanh", "tanh"}},
};

/* Names in lower case; what alpha and beta are when the node does not say. */
static const struct {
    const char *name;
    bool has_alpha, has_beta;
    double alpha, beta;
} functions[] = {
    {"affine", true, true, 1, 0},
    {"elu", true, false, 1, 0},
    {"hardsigmoid", true, true, 0.2, 0.5},
    {"leakyrelu", true, false, 0.01, 0},
    {"relu", false, false, 0, 0},
    {"scaledtanh", true, true, 1, 1},
    {"sigmoid", false, false, 0, 0},
    {"softplus", false, false, 0, 0},
    {"softsign", false, false, 0, 0},
    {"tanh", false, false, 0, 0},
    {"thresholdedrelu", true, false, 1, 0},
};

/* ---- attributes ------------------------------------------------------ */

/* The next number of the list, which only functions that have one take. */
static double take(const Attr *list, int *at, double fallback)
{
    return list && *at < list->count ? list->floats[(*at)++] : fallback;
}

static bool read_activations(const Node *node, Recurrent *r,
                             const char **error)
{
    const Attr *names = attrs_find(&node->attrs, "activations");
    const Attr *alphas = attrs_find(&node->attrs, "activation_alpha");
    const Attr *betas = attrs_find(&node->attrs, "activation_beta");
    int alpha = 0, beta = 0, wanted = (int)r->directions * r->functions;

    if (names && names->count != wanted) {
        *error = "the attribute activations must name one function a gate "
                 "kind and direction";
        return false;
    }
    for (int i = 0; i < wanted; i++) {
        const char *name = names ? names->strings[i]
                                 : cells[r->kind].defaults[i % r->functions];
        Activation *to = &r->activation[i / r->functions][i % r->functions];
        for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
            if (strcasecmp(name, functions[k].name) != 0)
                continue;
            *to = (Activation){functions[k].name, functions[k].alpha,
                               functions[k].beta};
            if (functions[k].has_alpha)
                to->alpha = take(alphas, &alpha, to->alpha);
            if (functions[k].has_beta)
                to->beta = take(betas, &beta, to->beta);
        }
        if (!to->name) {
            *error = "the attribute activations names a function that is "
                     "none of Affine, Elu, HardSigmoid, LeakyRelu, Relu, "
                     "ScaledTanh, Sigmoid, Softplus, Softsign, Tanh, "
                     "ThresholdedRelu";
            return false;
        }
    }
    return true;
}

bool recurrent_read(const Node *node, CellKind kind, bool is_projected,
                    Recurrent *r, const char **error)
{
    const Attrs *attrs = &node->attrs;
    const char *way = attrs_string(attrs, "direction", "forward");
    const TensorType *x = &node->inputs.data[RECURRENT_X]->type;
    const TensorType *w = &node->inputs.data[RECURRENT_R]->type;

    *r = (Recurrent){.kind = kind,
                     .gates = cells[kind].gates,
                     .functions = cells[kind].functions,
                     .is_projected = is_projected,
                     .directions = 1};
    if (strcmp(way, "bidirectional") == 0) {
        r->directions = 2;
    } else if (strcmp(way, "reverse") == 0) {
        r->is_reverse = true;
    } else if (strcmp(way, "forward") != 0) {
        *error = "the attribute direction must be forward, reverse or "
                 "bidirectional";
        return false;
    }
    r->is_batch_first = attrs_int(attrs, "layout", 0) != 0;
    r->couples_gates = attrs_int(attrs, "input_forget", 0) != 0;
    r->resets_after = attrs_int(attrs, "linear_before_reset", 0) != 0;
    r->clip = attrs_float(attrs, "clip", 0);
    r->step_count = x->dims[r->is_batch_first ? 1 : 0];
    r->sequences = x->dims[r->is_batch_first ? 0 : 1];
    r->steps = r->step_count.value;
    r->batch = r->sequences.value;
    r->input = extent_known(x->dims[2]);
    r->hidden = extent_known(w->dims[2]);
    r->block = is_projected ? extent_known(w->dims[3]) : 0;
    return read_activations(node, r, error);
}

/* ---- types ----------------------------------------------------------- */

/* Extents left at -1 may be anything. */
static bool check_operand(InferContext *c, int index, const char *name,
                          int rank, const int64_t *dims)
{
    if (!node_has_input(c->node, index))
        return true;
    const TensorType *t = infer_input(c, index);
    bool fits = t->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = dims[i] < 0 || extent_known(t->dims[i]) < 0 ||
               extent_known(t->dims[i]) == dims[i];
    if (fits)
        return true;
    Str text = {0};
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            str_addf(&text, "%s?", i ? "," : "");
        else
            str_addf(&text, "%s%lld", i ? "," : "", (long long)dims[i]);
    infer_error(c, "operand %s must have the shape [%s]", name,
                str_text(&text));
    str_free(&text);
    return false;
}

/* An operand of as many sequences as there are, whatever a run brings. */
static bool check_sequences(InferContext *c, int index, int axis,
                            const Recurrent *r)
{
    if (!node_has_input(c->node, index) ||
        extents_agree(infer_input(c, index)->dims[axis], r->sequences))
        return true;
    return infer_error(c,
                       "operand %s is not known to have as many sequences as "
                       "X; fix the dimensions with --dim NAME=VALUE",
                       c->node->inputs.data[index]->name);
}

static bool check_operands(InferContext *c, const Recurrent *r)
{
    int64_t d = r->directions, h = r->hidden, rows = h < 0 ? -1 : r->gates * h;
    int64_t batch = extent_known(r->sequences);
    int64_t first = r->is_batch_first ? batch : d;
    int64_t second = r->is_batch_first ? d : batch;
    int64_t hidden = attrs_int(&c->node->attrs, "hidden_size", h);

    if (h >= 0 && hidden != h)
        return infer_error(c,
                           "the attribute hidden_size is %lld, R is for %lld",
                           (long long)hidden, (long long)h);
    for (int i = RECURRENT_W; i <= RECURRENT_P; i++)
        if (i != RECURRENT_LENGTHS && node_has_input(c->node, i) &&
            !infer_same_dtype(c, 0, i))
            return false;
    if (node_has_input(c->node, RECURRENT_LENGTHS) &&
        !infer_types(c, RECURRENT_LENGTHS, TYPES_INDEX))
        return false;
    return check_operand(c, RECURRENT_W, "W", 3,
                         (int64_t[]){d, rows, r->input}) &&
           check_operand(c, RECURRENT_R, "R", r->is_projected ? 4 : 3,
                         r->is_projected
                             ? (int64_t[]){d,
                                           r->block > 0 && rows >= 0
                                               ? rows / r->block
                                               : -1,
                                           h, r->block}
                             : (int64_t[]){d, rows, h}) &&
           check_operand(c, RECURRENT_B, "B", 2,
                         (int64_t[]){d, rows < 0 ? -1 : 2 * rows}) &&
           check_operand(c, RECURRENT_LENGTHS, "sequence_lens", 1,
                         (int64_t[]){batch}) &&
           check_operand(c, RECURRENT_H, "initial_h", 3,
                         (int64_t[]){first, second, h}) &&
           check_operand(c, RECURRENT_C, "initial_c", 3,
                         (int64_t[]){first, second, h}) &&
           check_operand(c, RECURRENT_P, "P", 2,
                         (int64_t[]){d, h < 0 ? -1 : 3 * h}) &&
           check_sequences(c, RECURRENT_LENGTHS, 0, r) &&
           check_sequences(c, RECURRENT_H, r->is_batch_first ? 0 : 1, r) &&
           check_sequences(c, RECURRENT_C, r->is_batch_first ? 0 : 1, r);
}

static bool infer_recurrent(InferContext *c, CellKind kind, bool is_projected)
{
    const char *error = NULL;
    Recurrent r;

    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, RECURRENT_X, 3, 3) ||
        (!is_projected && !infer_rank(c, RECURRENT_W, 3, 3)) ||
        !infer_rank(c, RECURRENT_R, is_projected ? 4 : 3,
                    is_projected ? 4 : 3))
        return false;
    if (!recurrent_read(c->node, kind, is_projected, &r, &error))
        return infer_error(c, "%s", error);
    if (!check_operands(c, &r))
        return false;
    const TensorType *x = infer_input(c, 0), *w = infer_input(c, RECURRENT_R);
    Extent steps = x->dims[r.is_batch_first ? 1 : 0];
    Extent batch = x->dims[r.is_batch_first ? 0 : 1];
    Extent ways = extent_const(r.directions);
    Extent hidden = w->dims[2];
    Extent all[4] = {steps, ways, batch, hidden};
    Extent state[3] = {ways, batch, hidden};
    if (r.is_batch_first) {
        memcpy(all, (Extent[4]){batch, steps, ways, hidden}, sizeof all);
        memcpy(state, (Extent[3]){batch, ways, hidden}, sizeof state);
    }
    infer_set(c, 0, x->dtype, 4, all);
    infer_set(c, 1, x->dtype, 3, state);
    if (kind == CELL_LSTM)
        infer_set(c, 2, x->dtype, 3, state);
    return true;
}

/* ---- one product for all steps ---------------------------------------- */

static Tensor *transposed(Graph *g, Node *node, const char *what, Tensor *x,
                          const int *perm)
{
    Tensor *y = op_make_transpose(
        g, arena_printf(g->arena, "%s.%s", node->name, what), x, perm);

    graph_add_source(g, y->producer, node);
    graph_move_before(g, y->producer, node);
    return y;
}

/* W of all directions below one another, transposed: the right operand of
 * the product with x. */
static Tensor *input_weights(Graph *g, Node *node, const Recurrent *r)
{
    Tensor *w = node->inputs.data[RECURRENT_W];
    TensorType flat = w->type;

    flat.rank = 2;
    flat.dims[0] = extent_const(r->directions * r->gates * r->hidden);
    flat.dims[1] = extent_const(r->input);
    Tensor *rows = op_make_reshape(
        g, arena_printf(g->arena, "%s.rows", node->name), w, &flat);
    graph_add_source(g, rows->producer, node);
    graph_move_before(g, rows->producer, node);
    return transposed(g, node, "weights", rows, (int[]){1, 0});
}

/* Columns that are summed side by side: several vectors, so that sums do not
 * wait for each other, and few enough for registers. */
static int64_t block_width(int64_t hidden)
{
    enum { LEAST = 16, MOST = 64 };

    for (int64_t width = MOST; width >= LEAST; width--)
        if (hidden % width == 0)
            return width;
    return hidden;
}

static Tensor *blocked(Graph *g, Node *node, const Recurrent *r, Tensor *x)
{
    int64_t width = block_width(r->hidden);
    TensorType type = x->type;

    type.rank = 4;
    type.dims[1] = extent_const(r->gates * r->hidden / width);
    type.dims[2] = extent_const(width);
    type.dims[3] = extent_const(r->hidden);
    Tensor *rows = op_make_reshape(
        g, arena_printf(g->arena, "%s.blocks", node->name), x, &type);
    graph_add_source(g, rows->producer, node);
    graph_move_before(g, rows->producer, node);
    return transposed(g, node, "recurrence", rows, (int[]){0, 1, 3, 2});
}

static bool decompose_recurrent(Graph *g, Node *node, CellKind kind)
{
    const char *error;
    Recurrent r;

    recurrent_read(node, kind, false, &r, &error);
    if (r.steps < 1 || r.batch < 1 || r.input < 1 || r.hidden < 1)
        return false;
    Tensor *factors[2] = {node->inputs.data[RECURRENT_X],
                          input_weights(g, node, &r)};
    Node *product = graph_add_node(
        g, "MatMul", arena_printf(g->arena, "%s.input", node->name), factors,
        2, 1);
    graph_add_source(g, product, node);
    graph_move_before(g, product, node);
    Tensor *inputs[RECURRENT_P + 1] = {NULL};
    for (int i = 0; i < node->inputs.count; i++)
        inputs[i] = node->inputs.data[i];
    inputs[RECURRENT_X] = product->outputs.data[0];
    inputs[RECURRENT_W] = NULL;
    inputs[RECURRENT_R] = blocked(g, node, &r, inputs[RECURRENT_R]);
    Node *scan = graph_add_node(
        g, arena_printf(g->arena, "assay::%sScan", cells[kind].op),
        arena_printf(g->arena, "%s.scan", node->name), inputs,
        node->inputs.count, node->outputs.count);
    for (int i = 0; i < node->attrs.list.count; i++)
        attrs_set(g->arena, &scan->attrs, node->attrs.list.data[i]);
    graph_add_source(g, scan, node);
    graph_move_before(g, scan, node);
    op_infer(g, product);
    op_infer(g, scan);
    for (int i = 0; i < node->outputs.count; i++) {
        Tensor *y = node->outputs.data[i];
        if (y)
            graph_replace(g, y, scan->outputs.data[i]);
        else
            graph_drop_output(g, scan, i);
    }
    graph_remove_node(g, node);
    return true;
}

/* ---- rows ------------------------------------------------------------- */

#define CELL_RULES(name, kind)                                                \
    static bool infer_##name(InferContext *c)                                 \
    {                                                                         \
        return infer_recurrent(c, kind, false);                               \
    }                                                                         \
    static bool infer_##name##_scan(InferContext *c)                          \
    {                                                                         \
        return infer_recurrent(c, kind, true);                                \
    }                                                                         \
    static void program_##name(LoopContext *c)                                \
    {                                                                         \
        recurrent_program(c, kind, false);                                    \
    }                                                                         \
    static void program_##name##_scan(LoopContext *c)                         \
    {                                                                         \
        recurrent_program(c, kind, true);                                     \
    }                                                                         \
    static bool decompose_##name(Graph *g, Node *node)                        \
    {                                                                         \
        return decompose_recurrent(g, node, kind);                            \
    }
CELL_RULES(rnn, CELL_RNN)
CELL_RULES(gru, CELL_GRU)
CELL_RULES(lstm, CELL_LSTM)

#define COMMON_ATTRS                                                          \
    {"activation_alpha", ATTR_FLOATS, false},                                 \
        {"activation_beta", ATTR_FLOATS, false},                              \
        {"activations", ATTR_STRINGS, false}, {"clip", ATTR_FLOAT, false},    \
        {"direction", ATTR_STRING, false}, {"hidden_size", ATTR_INT, false},  \
    {                                                                         \
        "layout", ATTR_FLAG, false                                            \
    }
static const AttrSpec rnn_attrs[] = {COMMON_ATTRS, {0}};
static const AttrSpec gru_attrs[] = {
    COMMON_ATTRS, {"linear_before_reset", ATTR_FLAG, false}, {0}};
static const AttrSpec lstm_attrs[] = {
    COMMON_ATTRS, {"input_forget", ATTR_FLAG, false}, {0}};

/* The scans are made by decomposition only; W is left out there. */
#define CELL_ROWS(low, op, inputs, outputs)                                   \
    static const Op op_##low = {.name = op,                                   \
                                .domain = "",                                 \
                                .min_inputs = 3,                              \
                                .max_inputs = inputs,                         \
                                .min_outputs = 0,                             \
                                .max_outputs = outputs,                       \
                                .traits = OP_RUNTIME_EXTENTS,                 \
                                .attrs = low##_attrs,                         \
                                .infer = infer_##low,                         \
                                .program = program_##low,                     \
                                .decompose = decompose_##low,                 \
                                .since = 14};                                 \
    static const Op op_##low##_scan = {.name = op "Scan",                     \
                                       .domain = "assay",                     \
                                       .min_inputs = 1,                       \
                                       .max_inputs = inputs,                  \
                                       .min_outputs = 0,                      \
                                       .max_outputs = outputs,                \
                                       .traits = OP_RUNTIME_EXTENTS,          \
                                       .attrs = low##_attrs,                  \
                                       .infer = infer_##low##_scan,           \
                                       .program = program_##low##_scan,       \
                                       .since = 14};
CELL_ROWS(rnn, "RNN", 6, 2)
CELL_ROWS(gru, "GRU", 6, 2)
CELL_ROWS(lstm, "LSTM", 8, 3)

const Op *const ops_recurrent[] = {&op_rnn,      &op_gru,      &op_lstm,
                                   &op_rnn_scan, &op_gru_scan, &op_lstm_scan,
                                   NULL};
