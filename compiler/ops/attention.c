/* Scaled dot product attention. The stages are those that matrix products,
 * a scaling, a mask and a softmax would have one by one, so that the template
 * for attention takes them.
 *
 * A masked key has the score -inf whatever its product with the query was,
 * and a query without any key gives zeros. */
#include <math.h>
#include <string.h>

#include "ops/attention.h"
#include "ops/rules.h"

/* What the fourth result is. */
enum { SCORES_PLAIN, SCORES_CAPPED, SCORES_MASKED, SCORES_SOFTMAX };

static int64_t known_dim(const Tensor *t, int axis)
{
    return extent_known(t->type.dims[axis]);
}

/* Keys that hold those of a past, whose number is an attribute of the plain
 * form; -1: all that are more than there are queries. */
static Extent offset_of(Arena *arena, const Node *node, const Heads *h)
{
    int64_t before = attrs_int(&node->attrs, "past_length", 0);
    if (before < 0)
        return extent_sub(arena, h->total, h->queries);
    return extent_add(arena, h->past, extent_const(before));
}

Heads attention_heads(Arena *arena, const Node *node)
{
    const Tensor *q = node->inputs.data[IN_Q], *k = node->inputs.data[IN_K];
    const Tensor *v = node->inputs.data[IN_V];
    Heads h = {.flat = q->type.rank == 3,
               .batch = q->type.dims[0],
               .past = extent_const(0)};
    int sequence = h.flat ? 1 : 2;
    h.queries = q->type.dims[sequence];
    h.keys = k->type.dims[sequence];
    if (h.flat) {
        h.q_heads = attrs_int(&node->attrs, "q_num_heads", 0);
        h.kv_heads = attrs_int(&node->attrs, "kv_num_heads", 0);
        if (h.q_heads > 0 && h.kv_heads > 0) {
            int64_t all = known_dim(q, 2), v_all = known_dim(v, 2);
            h.size = all < 0 ? -1 : all / h.q_heads;
            h.v_size = v_all < 0 ? -1 : v_all / h.kv_heads;
        }
    } else {
        h.q_heads = known_dim(q, 1);
        h.kv_heads = known_dim(k, 1);
        h.size = known_dim(q, 3);
        h.v_size = known_dim(v, 3);
    }
    if (node_has_input(node, IN_PAST_KEY))
        h.past = node->inputs.data[IN_PAST_KEY]->type.dims[2];
    h.total = extent_add(arena, h.past, h.keys);
    h.offset = offset_of(arena, node, &h);
    return h;
}

static bool check_shape(InferContext *c, int input, int rank,
                        const Extent *dims)
{
    const TensorType *type = infer_input(c, input);
    TensorType wanted = {.dtype = type->dtype, .rank = rank};
    bool fits = type->rank == rank;
    for (int i = 0; i < rank; i++) {
        wanted.dims[i] = dims[i];
        fits = fits && extent_equal(type->dims[i], dims[i]);
    }
    if (fits)
        return true;
    Str text = {0};
    type_print(&text, &wanted);
    infer_error(c, "operand %s must be %s", c->node->inputs.data[input]->name,
                str_text(&text));
    str_free(&text);
    return false;
}

/* Of an operand in either form. */
static bool check_operand(InferContext *c, int input, const Heads *h,
                          Extent rows, int64_t heads, int64_t size)
{
    Extent flat[3] = {h->batch, rows, extent_const(heads * size)};
    Extent apart[4] = {h->batch, extent_const(heads), rows,
                       extent_const(size)};
    return check_shape(c, input, h->flat ? 3 : 4, h->flat ? flat : apart);
}

static bool check_heads(InferContext *c, const Heads *h)
{
    if (h->q_heads < 1 || h->kv_heads < 1 || h->q_heads % h->kv_heads != 0)
        return infer_error(c, "%lld heads of queries for %lld of keys%s",
                           (long long)h->q_heads, (long long)h->kv_heads,
                           h->flat ? " (q_num_heads, kv_num_heads)" : "");
    if (h->size < 0 || h->v_size < 0)
        return infer_error(c, "the size of its heads must be constant; bind "
                              "named dimensions with --dim");
    return check_operand(c, IN_Q, h, h->queries, h->q_heads, h->size) &&
           check_operand(c, IN_K, h, h->keys, h->kv_heads, h->size) &&
           check_operand(c, IN_V, h, h->keys, h->kv_heads, h->v_size);
}

/* The mask broadcasts to [batch, heads, queries, keys]; its last axis may be
 * shorter than that. */
static bool check_mask(InferContext *c, const Heads *h)
{
    const Extent full[4] = {h->batch, extent_const(h->q_heads), h->queries,
                            h->total};
    if (!node_has_input(c->node, IN_MASK))
        return true;
    const TensorType *mask = infer_input(c, IN_MASK);
    if (!infer_types(c, IN_MASK, TYPES_ANY) || !infer_rank(c, IN_MASK, 1, 4))
        return false;
    for (int i = 0; i < mask->rank; i++) {
        Extent wants = full[4 - mask->rank + i];
        int64_t has = extent_known(mask->dims[i]);
        bool fits =
            extent_equal(mask->dims[i], wants) ||
            (i == mask->rank - 1 ? has >= 0 && has <= extent_lower(wants)
                                 : has == 1);
        if (fits)
            continue;
        Str text = {0};
        extent_print_plain(&text, mask->dims[i]);
        str_add(&text, " elements on axis ");
        str_addf(&text, "%d, for ", i);
        extent_print_plain(&text, wants);
        infer_error(c, "the mask has %s", str_text(&text));
        str_free(&text);
        return false;
    }
    return true;
}

static bool check_cache(InferContext *c, const Heads *h)
{
    const Extent key[4] = {h->batch, extent_const(h->kv_heads), h->past,
                           extent_const(h->size)};
    const Extent value[4] = {h->batch, extent_const(h->kv_heads), h->past,
                             extent_const(h->v_size)};
    bool has = node_has_input(c->node, IN_PAST_KEY);
    if (has != node_has_input(c->node, IN_PAST_VALUE))
        return infer_error(c,
                           "past_key and past_value must be given together");
    if (has && node_has_input(c->node, IN_LENGTHS))
        return infer_error(c, "nonpad_kv_seqlen is for caches outside of it; "
                              "leave out past_key and past_value");
    if (has && (!infer_same_dtype(c, IN_K, IN_PAST_KEY) ||
                !infer_same_dtype(c, IN_V, IN_PAST_VALUE) ||
                !check_shape(c, IN_PAST_KEY, 4, key) ||
                !check_shape(c, IN_PAST_VALUE, 4, value)))
        return false;
    return !node_has_input(c->node, IN_LENGTHS) ||
           (infer_types(c, IN_LENGTHS, TYPES_INDEX) &&
            check_shape(c, IN_LENGTHS, 1, &h->batch));
}

static bool infer_attention(InferContext *c)
{
    const TensorType *q = infer_input(c, IN_Q);
    int64_t mode = attrs_int(&c->node->attrs, "qk_matmul_output_mode", 0);
    int64_t precision = attrs_int(&c->node->attrs, "softmax_precision", 1);
    if (!infer_types(c, IN_Q, TYPES_FLOAT) ||
        !infer_types(c, IN_V, TYPES_FLOAT) ||
        !infer_same_dtype(c, IN_Q, IN_K) || !infer_rank(c, IN_Q, 3, 4) ||
        !infer_rank(c, IN_K, q->rank, q->rank) ||
        !infer_rank(c, IN_V, q->rank, q->rank) ||
        (node_has_input(c->node, IN_PAST_KEY) &&
         !infer_rank(c, IN_PAST_KEY, 4, 4)))
        return false;
    if (mode < 0 || mode > SCORES_SOFTMAX)
        return infer_error(c,
                           "qk_matmul_output_mode is %lld, it must be 0 to "
                           "3",
                           (long long)mode);
    if (!dtype_is_float(dtype_of_onnx(precision)))
        return infer_error(c, "softmax_precision is no float type");
    Heads h = attention_heads(c->graph->arena, c->node);
    if (!check_heads(c, &h) || !check_cache(c, &h) || !check_mask(c, &h))
        return false;
    Extent y[4] = {q->dims[0], q->dims[1],
                   h.flat ? extent_const(h.q_heads * h.v_size) : q->dims[2],
                   extent_const(h.v_size)};
    Extent cache[4] = {q->dims[0], extent_const(h.kv_heads), h.total,
                       extent_const(h.size)};
    Extent scores[4] = {q->dims[0], extent_const(h.q_heads), h.queries,
                        h.total};
    infer_set(c, OUT_KEY, q->dtype, 4, cache);
    cache[3] = y[3];
    infer_set(c, OUT_VALUE, infer_input(c, IN_V)->dtype, 4, cache);
    infer_set(c, OUT_SCORES, q->dtype, 4, scores);
    return infer_set_checked(c, OUT_Y, q->dtype, q->rank, y);
}

/* ---- stages */

typedef struct Flow {
    DefineContext *c;
    Heads h;
    DType type; /* of scores and sums */
} Flow;

/* An extent as a number where it is one: expressions stay simple. */
static const Expr *extent_limit(const Flow *f, Extent extent)
{
    return extent_is_const(extent) ? NULL : define_extent(f->c, extent);
}

/* [batch, heads, rows, columns] */
static Buffer *add_temp(Flow *f, const char *name, DType dtype, int64_t heads,
                        Extent rows, Extent columns)
{
    const Extent dims[4] = {f->h.batch, extent_const(heads), rows, columns};
    int64_t most[4];
    for (int i = 0; i < 4; i++)
        most[i] = dims[i].value;
    Buffer *b = define_temp(f->c, name, dtype, 4, most);
    for (int i = 0; i < 4; i++)
        b->limit[i] = extent_limit(f, dims[i]);
    return b;
}

/* A reduction over all keys. */
static const Expr *reduce_keys(Flow *f, StageBuilder *b)
{
    const Expr *k = stage_reduce(b, f->h.total.value, "k");
    b->stage->reduce[b->stage->reduce_count - 1].limit =
        extent_limit(f, f->h.total);
    return k;
}

/* Element (batch, head, row, place) of an operand in either form. */
static const Expr *read_head(Arena *a, const Buffer *x, const Expr *batch,
                             const Expr *head, const Expr *row,
                             const Expr *place, int64_t size)
{
    const Expr *flat[3] = {batch, row,
                           expr_add(a, expr_mul_int(a, head, size), place)};
    const Expr *index[4] = {batch, head, row, place};
    return expr_read(a, x, x->rank == 3 ? flat : index);
}

/* Keys or values after those of the past: in a result where one is wanted,
 * the operand itself where nothing has to be done. */
static const Buffer *join_past(Flow *f, int in, int past, int out,
                               int64_t size)
{
    DefineContext *c = f->c;
    Buffer *joined = c->out[out];
    const Buffer *x = c->in[in];
    if (!joined && !c->in[past])
        return x;
    if (!joined)
        joined = add_temp(f, "joined", x->dtype, f->h.kv_heads, f->h.total,
                          extent_const(size));
    StageBuilder b;
    stage_begin(&b, c->def, joined);
    Arena *a = b.arena;
    const Expr *row = expr_sub(a, b.index[2], define_extent(c, f->h.past));
    const Expr *value =
        read_head(a, x, b.index[0], b.index[1], row, b.index[3], size);
    if (c->in[past] && f->h.past.value > 0)
        value = expr_select(a, expr_binary(a, EX_LT, row, expr_int(a, 0)),
                            expr_read(a, c->in[past], b.index), value);
    stage_end(&b, value);
    return joined;
}

static const Expr *kv_head(const StageBuilder *b, const Heads *h)
{
    return expr_div(b->arena, b->index[1],
                    expr_int(b->arena, h->q_heads / h->kv_heads));
}

static Buffer *add_scores(Flow *f, const Buffer *keys)
{
    const Heads *h = &f->h;
    Buffer *scores =
        add_temp(f, "scores", f->type, h->q_heads, h->queries, h->total);
    StageBuilder b;
    stage_begin(&b, f->c->def, scores);
    Arena *a = b.arena;
    const Expr *d = stage_reduce(&b, h->size, "k");
    const Expr *q = read_head(a, f->c->in[IN_Q], b.index[0], b.index[1],
                              b.index[2], d, h->size);
    const Expr *k =
        read_head(a, keys, b.index[0], kv_head(&b, h), b.index[3], d, h->size);
    stage_end_reduce(
        &b, "sum",
        expr_mul(a, expr_cast(a, f->type, q), expr_cast(a, f->type, k)));
    return scores;
}

/* How many keys come before those of the queries, or NULL for none. */
static const Expr *query_offset(Flow *f, const StageBuilder *b)
{
    const Buffer *lengths = f->c->in[IN_LENGTHS];
    if (!lengths)
        return f->h.offset.expr || f->h.offset.value
                   ? define_extent(f->c, f->h.offset)
                   : NULL;
    const Expr *length = expr_read(b->arena, lengths, b->index);
    return expr_sub(b->arena, expr_cast(b->arena, DT_I64, length),
                    define_extent(f->c, f->h.queries));
}

static const Expr *both(Arena *a, const Expr *x, const Expr *y)
{
    return x ? expr_and(a, x, y) : y;
}

/* Keys that causality, windows and lengths leave to the stage's query; NULL
 * for all. */
static const Expr *reachable(Flow *f, const StageBuilder *b)
{
    const Attrs *attrs = &f->c->node->attrs;
    bool causal = attrs_int(attrs, "is_causal", 0) != 0;
    int64_t left = attrs_int(attrs, "left_window_size", -1);
    int64_t right = attrs_int(attrs, "right_window_size", -1);
    Arena *a = b->arena;
    const Expr *query = b->index[2], *key = b->index[3], *allowed = NULL;
    const Expr *offset = query_offset(f, b);
    if (offset)
        query = expr_add(a, query, offset);
    if (causal)
        allowed = expr_binary(a, EX_LE, key, query);
    if (left >= 0)
        allowed = both(
            a, allowed,
            expr_binary(a, EX_LE, query, expr_add(a, key, expr_int(a, left))));
    if (right >= 0)
        allowed = both(a, allowed,
                       expr_binary(a, EX_LE, key,
                                   expr_add(a, query, expr_int(a, right))));
    if (f->c->in[IN_LENGTHS]) {
        const Expr *length = expr_read(a, f->c->in[IN_LENGTHS], b->index);
        allowed =
            both(a, allowed,
                 expr_binary(a, EX_LT, key, expr_cast(a, DT_I64, length)));
    }
    return allowed;
}

/* `score` with the mask: added, or -inf where a key is out of reach. */
static const Expr *mask_score(Flow *f, const StageBuilder *b,
                              const Expr *score)
{
    Arena *a = b->arena;
    const Buffer *mask = f->c->in[IN_MASK];
    const Expr *allowed = reachable(f, b);
    const Expr *never = const_like(a, score, -INFINITY);
    if (mask) {
        const Expr *index[4];
        for (int i = 0; i < mask->rank; i++)
            index[i] = mask->dims[i] == 1 && i < mask->rank - 1
                           ? expr_int(a, 0)
                           : b->index[4 - mask->rank + i];
        const Expr *value;
        const TensorType *type = &f->c->node->inputs.data[IN_MASK]->type;
        if (!extent_equal(type->dims[mask->rank - 1], f->h.total))
            value =
                expr_read_padded(a, mask, index,
                                 dtype_is_float(mask->dtype)
                                     ? expr_const(a, mask->dtype, -INFINITY)
                                     : expr_const_int(a, mask->dtype, 0));
        else
            value = expr_read(a, mask, index);
        if (mask->dtype != DT_BOOL) {
            value = expr_cast(a, f->type, value);
            score = expr_add(a, score, value);
            value = expr_binary(a, EX_NE, value, never);
        }
        allowed = both(a, allowed, value);
    }
    return allowed ? expr_select(a, allowed, score, never) : score;
}

static bool is_masked(const Flow *f)
{
    const Attrs *attrs = &f->c->node->attrs;
    return f->c->in[IN_MASK] || f->c->in[IN_LENGTHS] ||
           attrs_int(attrs, "is_causal", 0) != 0 ||
           attrs_int(attrs, "left_window_size", -1) >= 0 ||
           attrs_int(attrs, "right_window_size", -1) >= 0;
}

/* scale * score, within the soft cap. */
static const Expr *cap_score(Flow *f, Arena *a, const Expr *score, bool caps)
{
    const Attrs *attrs = &f->c->node->attrs;
    double scale = attrs_float(attrs, "scale",
                               1 / sqrt((double)(f->h.size ? f->h.size : 1)));
    double cap = attrs_float(attrs, "softcap", 0);
    score = expr_mul(a, score, const_like(a, score, scale));
    if (!caps || !(cap > 0))
        return score;
    const Expr *most = const_like(a, score, cap);
    return expr_mul(a, expr_unary(a, EX_TANH, expr_div(a, score, most)), most);
}

/* The fourth result, while it is not the softmax. */
static void give_scores(Flow *f, const Buffer *scores, int64_t mode)
{
    StageBuilder b;
    Buffer *out = f->c->out[OUT_SCORES];
    stage_begin(&b, f->c->def, out);
    const Expr *value =
        cap_score(f, b.arena, read_same(&b, scores), mode != SCORES_PLAIN);
    if (mode == SCORES_MASKED)
        value = mask_score(f, &b, value);
    stage_end(&b, expr_cast(b.arena, out->dtype, value));
}

/* Softmax over the keys. */
static Buffer *add_softmax(Flow *f, const Buffer *scores)
{
    const Heads *h = &f->h;
    DefineContext *c = f->c;
    Extent one = extent_const(1);
    Buffer *logits = define_temp_like(c, "logits", scores);
    Buffer *most = add_temp(f, "max", f->type, h->q_heads, h->queries, one);
    Buffer *power = define_temp_like(c, "exp", scores);
    Buffer *sum = add_temp(f, "sum", f->type, h->q_heads, h->queries, one);
    Buffer *weights = define_temp_like(c, "weights", scores);
    bool masked = is_masked(f);
    StageBuilder b;
    stage_begin(&b, c->def, logits);
    Arena *a = b.arena;
    stage_end(&b,
              mask_score(f, &b, cap_score(f, a, read_same(&b, scores), true)));
    stage_begin(&b, c->def, most);
    const Expr *k = reduce_keys(f, &b), *zero = expr_int(a, 0);
    stage_end_reduce(&b, "max", read_along(&b, logits, 3, k));

    stage_begin(&b, c->def, power);
    const Expr *top = read_along(&b, most, 3, zero);
    if (masked) /* -inf - -inf would be NaN */
        top = expr_select(
            a, expr_binary(a, EX_EQ, top, const_like(a, top, -INFINITY)),
            const_like(a, top, 0), top);
    stage_end(&b,
              expr_unary(a, EX_EXP, expr_sub(a, read_same(&b, logits), top)));
    stage_begin(&b, c->def, sum);
    k = reduce_keys(f, &b);
    stage_end_reduce(&b, "sum", read_along(&b, power, 3, k));

    stage_begin(&b, c->def, weights);
    const Expr *total = read_along(&b, sum, 3, zero);
    if (masked)
        total = expr_select(
            a, expr_binary(a, EX_EQ, total, const_like(a, total, 0)),
            const_like(a, total, 1), total);
    stage_end(&b, expr_div(a, read_same(&b, power), total));
    return weights;
}

static void define_attention(DefineContext *c)
{
    const Attrs *attrs = &c->node->attrs;
    int64_t mode = attrs_int(attrs, "qk_matmul_output_mode", 0);
    bool wide = c->in[IN_Q]->dtype == DT_F64 || c->in[IN_V]->dtype == DT_F64 ||
                attrs_int(attrs, "softmax_precision", 1) == 11;
    Flow f = {c, attention_heads(c->def->arena, c->node),
              wide ? DT_F64 : DT_F32};
    const Heads *h = &f.h;
    const Buffer *keys = join_past(&f, IN_K, IN_PAST_KEY, OUT_KEY, h->size);
    const Buffer *values =
        join_past(&f, IN_V, IN_PAST_VALUE, OUT_VALUE, h->v_size);
    Buffer *scores = add_scores(&f, keys), *out = c->out[OUT_Y];
    StageBuilder b;
    if (c->out[OUT_SCORES] && mode != SCORES_SOFTMAX)
        give_scores(&f, scores, mode);
    const Buffer *weights = add_softmax(&f, scores);
    if (c->out[OUT_SCORES] && mode == SCORES_SOFTMAX) {
        stage_begin(&b, c->def, c->out[OUT_SCORES]);
        stage_end(&b, expr_cast(b.arena, out->dtype, read_same(&b, weights)));
    }
    Buffer *result = !h->flat && out->dtype == f.type
                         ? out
                         : add_temp(&f, "result", f.type, h->q_heads,
                                    h->queries, extent_const(h->v_size));
    stage_begin(&b, c->def, result);
    Arena *a = b.arena;
    const Expr *k = reduce_keys(&f, &b);
    const Expr *at[4] = {b.index[0], b.index[1], b.index[2], k};
    const Expr *value = read_head(a, values, b.index[0], kv_head(&b, h), k,
                                  b.index[3], h->v_size);
    stage_end_reduce(
        &b, "sum",
        expr_mul(a, expr_read(a, weights, at), expr_cast(a, f.type, value)));
    if (result == out)
        return;
    stage_begin(&b, c->def, out);
    if (h->flat) {
        const Expr *by = expr_int(a, h->v_size > 0 ? h->v_size : 1);
        at[0] = b.index[0];
        at[1] = expr_div(a, b.index[2], by);
        at[2] = b.index[1];
        at[3] = expr_binary(a, EX_MOD, b.index[2], by);
    }
    stage_end(&b, expr_cast(a, out->dtype,
                            expr_read(a, result, h->flat ? at : b.index)));
}

static const AttrSpec attention_attrs[] = {
    {"is_causal", ATTR_FLAG, false},
    {"kv_num_heads", ATTR_INT, false},
    {"left_window_size", ATTR_INT, false},
    {"q_num_heads", ATTR_INT, false},
    {"qk_matmul_output_mode", ATTR_INT, false},
    {"right_window_size", ATTR_INT, false},
    {"scale", ATTR_FLOAT, false},
    {"softcap", ATTR_FLOAT, false},
    {"softmax_precision", ATTR_INT, false},
    {0}};
static const AttrSpec plain_attrs[] = {
    {"is_causal", ATTR_FLAG, false},
    {"left_window_size", ATTR_INT, false},
    {"past_length", ATTR_INT, false},
    {"qk_matmul_output_mode", ATTR_INT, false},
    {"right_window_size", ATTR_INT, false},
    {"scale", ATTR_FLOAT, false},
    {"softcap", ATTR_FLOAT, false},
    {"softmax_precision", ATTR_INT, false},
    {0}};

static const Op op_attention = {.name = "Attention",
                                .domain = "",
                                .min_inputs = 3,
                                .max_inputs = 7,
                                .min_outputs = 1,
                                .max_outputs = 4,
                                .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                                .attrs = attention_attrs,
                                .infer = infer_attention,
                                .define = define_attention,
                                .decompose = decompose_attention,
                                .since = 23};
static const Op op_plain = {.name = "Attention",
                            .domain = "assay",
                            .min_inputs = 3,
                            .max_inputs = 7,
                            .min_outputs = 1,
                            .max_outputs = 1,
                            .traits = OP_REDUCTION | OP_RUNTIME_EXTENTS,
                            .attrs = plain_attrs,
                            .infer = infer_attention,
                            .define = define_attention,
                            .since = 1};

const Op *const ops_attention[] = {&op_attention, &op_plain, NULL};
