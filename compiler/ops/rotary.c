/* RotaryEmbedding: pairs of elements of each head, turned by an angle that
 * depends on the position in the sequence. */
#include "ops/rules.h"

typedef struct Rotary {
    Extent sequence;
    int64_t heads, size; /* of a head */
    int64_t turned;      /* the first elements of a head */
    bool interleaved;    /* pairs are neighbours, not halves */
} Rotary;

static Rotary read_rotary(const Node *node)
{
    const TensorType *x = &node->inputs.data[0]->type;
    Rotary r = {0};
    if (x->rank == 4) {
        r.heads = extent_known(x->dims[1]);
        r.sequence = x->dims[2];
        r.size = extent_known(x->dims[3]);
    } else {
        r.heads = attrs_int(&node->attrs, "num_heads", 0);
        r.sequence = x->dims[1];
        r.size = r.heads > 0 ? extent_known(x->dims[2]) / r.heads : -1;
    }
    r.turned = attrs_int(&node->attrs, "rotary_embedding_dim", 0);
    if (r.turned == 0)
        r.turned = r.size;
    r.interleaved = attrs_int(&node->attrs, "interleaved", 0) != 0;
    return r;
}

/* Cosines and sines are by position id, or for each batch and place. */
static bool check_table(InferContext *c, int input, const Rotary *r)
{
    const TensorType *x = infer_input(c, 0), *table = infer_input(c, input);
    bool by_id = node_has_input(c->node, 3);
    int rank = by_id ? 2 : 3;
    if (!infer_same_dtype(c, 0, input) || !infer_rank(c, input, rank, rank))
        return false;
    bool fits = extent_known(table->dims[rank - 1]) == r->turned / 2;
    if (by_id)
        fits &= extent_known(table->dims[0]) != 0;
    else
        fits &= extent_equal(table->dims[0], x->dims[0]) &&
                extent_equal(table->dims[1], r->sequence);
    return fits || infer_error(c,
                               "operand %s does not fit %lld turned elements "
                               "of the sequence",
                               c->node->inputs.data[input]->name,
                               (long long)r->turned);
}

static bool infer_rotary(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    if (!infer_types(c, 0, TYPES_FLOAT) || !infer_rank(c, 0, 3, 4))
        return false;
    Rotary r = read_rotary(c->node);
    if (x->rank == 3 &&
        (r.heads < 1 || r.size < 1 || extent_known(x->dims[2]) % r.heads != 0))
        return infer_error(c,
                           "num_heads is %lld, it must divide a known last "
                           "extent",
                           (long long)r.heads);
    if (r.size < 0)
        return infer_error(c, "its last extent must be constant");
    if (r.turned < 0 || r.turned > r.size || r.turned % 2 != 0)
        return infer_error(c,
                           "turns %lld of the %lld elements of a head; the "
                           "number must be even",
                           (long long)r.turned, (long long)r.size);
    if (!check_table(c, 1, &r) || !check_table(c, 2, &r))
        return false;
    if (node_has_input(c->node, 3)) {
        const TensorType *ids = infer_input(c, 3);
        if (!infer_types(c, 3, TYPES_INDEX) || !infer_rank(c, 3, 2, 2))
            return false;
        if (!extent_equal(ids->dims[0], x->dims[0]) ||
            !extent_equal(ids->dims[1], r.sequence))
            return infer_error(c, "position_ids must be one a batch and place "
                                  "of the sequence");
    }
    infer_set(c, 0, x->dtype, x->rank, x->dims);
    return true;
}

/* Element `pair` of a table for the stage's batch and place. */
static const Expr *read_table(StageBuilder *b, const DefineContext *c,
                              int input, const Expr *place, const Expr *pair)
{
    Arena *a = b->arena;
    const Buffer *table = c->in[input];
    const Expr *at[3] = {b->index[0], place, pair};
    if (!c->in[3])
        return expr_read(a, table, at);
    const Expr *id = expr_cast(a, DT_I64, expr_read(a, c->in[3], at));
    const Expr *last = expr_add_int(a, buffer_extent(a, table, 0), -1);
    const Expr *by_id[2] = {expr_max(a, expr_int(a, 0), expr_min(a, id, last)),
                            pair};
    return expr_read(a, table, by_id);
}

/* x cos - y sin for the first of a pair, x sin + y cos for the second. */
static void define_rotary(DefineContext *c)
{
    const Buffer *x = c->in[0];
    Rotary r = read_rotary(c->node);
    DType type = work_dtype(x->dtype);
    int64_t half = r.turned / 2;
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    Arena *a = b.arena;
    int last = x->rank - 1;
    const Expr *place = b.index[x->rank == 4 ? 2 : 1], *at = b.index[last];
    const Expr *base = expr_int(a, 0), *own = read_same(&b, x);
    if (x->rank == 3) { /* the heads lie one after the other */
        const Expr *size = expr_int(a, r.size);
        at = expr_binary(a, EX_MOD, at, size);
        base = expr_sub(a, b.index[last], at);
    }
    if (r.turned == 0) {
        stage_end(&b, own);
        return;
    }
    const Expr *pair, *second, *two = expr_int(a, 2);
    const Expr *step = r.interleaved ? expr_int(a, 1) : expr_int(a, half);
    if (r.interleaved) {
        pair = expr_div(a, at, two);
        second = expr_binary(a, EX_EQ, expr_binary(a, EX_MOD, at, two),
                             expr_int(a, 1));
    } else {
        pair = expr_binary(a, EX_MOD, at, expr_int(a, half));
        second = expr_binary(a, EX_LE, expr_int(a, half), at);
    }
    const Expr *partner =
        expr_select(a, second, expr_sub(a, at, step), expr_add(a, at, step));
    if (r.turned < r.size) {
        /* Elements that stay have no pair. */
        pair = index_clamp(a, pair, half);
        partner = index_clamp(a, partner, r.size);
    }
    const Expr *other = read_along(&b, x, last, expr_add(a, base, partner));
    other = expr_cast(a, type, other);
    const Expr *value = expr_cast(a, type, own);
    const Expr *cosine = expr_cast(a, type, read_table(&b, c, 1, place, pair));
    const Expr *sine = expr_cast(a, type, read_table(&b, c, 2, place, pair));
    sine = expr_select(a, second, sine, expr_unary(a, EX_NEG, sine));
    value = expr_add(a, expr_mul(a, value, cosine), expr_mul(a, other, sine));
    value = expr_cast(a, x->dtype, value);
    if (r.turned < r.size)
        value = expr_select(
            a, expr_binary(a, EX_LT, at, expr_int(a, r.turned)), value, own);
    stage_end(&b, value);
}

static const AttrSpec rotary_attrs[] = {
    {"interleaved", ATTR_FLAG, false},
    {"num_heads", ATTR_INT, false},
    {"rotary_embedding_dim", ATTR_INT, false},
    {0}};

static const Op op_rotary = {.name = "RotaryEmbedding",
                             .domain = "",
                             .min_inputs = 3,
                             .max_inputs = 4,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_RUNTIME_EXTENTS,
                             .attrs = rotary_attrs,
                             .infer = infer_rotary,
                             .define = define_rotary,
                             .since = 23};

const Op *const ops_rotary[] = {&op_rotary, NULL};
