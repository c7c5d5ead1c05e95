/* Attention: scores, softmax and the weighted sum of values in one kernel,
 * by blocks of query rows whose scores stay in cache.
 *
 * Both products run in register tiles. Keys are copied once a head so that
 * lanes run along the sequence. */
#include <string.h>

#include "schedules/templates.h"

typedef struct Attention {
    StageState *out, *scores, *result;
    int row, column; /* the last two axes of every stage */
    int64_t block;   /* query rows at once */
    bool few_heads;  /* too few for threads to share */
} Attention;

static bool is_product(const StageState *st)
{
    const Stage *stage = st->stage;
    const Expr *x = stage->value[0];
    return !strcmp(stage->reducer->name, "sum") && x->kind == EX_MUL &&
           dtype_is_float(x->dtype) && x->arg[0]->kind == EX_READ &&
           x->arg[1]->kind == EX_READ && stage->reduce_count == 1;
}

/* The same rows: all axes but the last agree with the output's. */
static bool has_rows_of(const StageState *st, const Stage *out)
{
    const Stage *stage = st->stage;
    if (stage->axis_count != out->axis_count)
        return false;
    for (int i = 0; i + 1 < out->axis_count; i++)
        if (!look_same_extent(&stage->axis[i], &out->axis[i]))
            return false;
    return true;
}

static bool analyse(const Look *look, Attention *t)
{
    const Stage *out = look->out->stage;
    int n = look->reductions.count;
    if (n < 3 || look->kept.count == 0 || out->axis_count < 2)
        return false;
    t->out = look->out;
    t->scores = look->reductions.data[0];
    t->result = look->reductions.data[n - 1];
    t->row = out->axis_count - 2;
    t->column = out->axis_count - 1;
    for (int i = 0; i < n; i++)
        if (!has_rows_of(look->reductions.data[i], out))
            return false;
    for (int i = 0; i < look->kept.count; i++)
        if (!has_rows_of(look->kept.data[i], out))
            return false;
    return is_product(t->scores) && is_product(t->result) &&
           look_reads_own_point(t->out, out->value[0],
                                t->result->stage->out[0]) &&
           look_contiguous(t->out) == t->column;
}

/* Rows whose tile of `result` fits the registers with `vectors` vectors. */
static int64_t block_rows(Look *look, int64_t rows, int64_t vectors)
{
    int64_t most = look->target->tile_registers / vectors - 1;
    if (most < 1)
        most = 1;
    int64_t pieces = (rows + most - 1) / most;
    return look_knob_range(look, "rows", (rows + pieces - 1) / pieces, 1,
                           rows < most ? rows : most);
}

/* The operand of a product that varies along its columns. */
static const Expr *column_operand(const StageState *st, int column)
{
    const Expr *x = st->stage->value[0];
    return look_uses(st, column, x->arg[0]) ? x->arg[0] : x->arg[1];
}

/* A product in register tiles inside `user`, at its loop `at`. */
static bool tile_product(Look *look, StageState *st, const char *user,
                         const char *at)
{
    Schedule *s = look->s;
    const Stage *stage = st->stage;
    const char *names[2 * MAX_RANK];
    int n = 0, spatial = stage->axis_count;
    const char *depth = st->roots.data[spatial]->name;
    const char *row = st->roots.data[spatial - 2]->name;
    const char *column = st->roots.data[spatial - 1]->name;
    const int64_t unroll = 4;
    for (int i = 0; i + 2 < spatial; i++)
        names[n++] = st->roots.data[i]->name;
    const char *inner = depth;
    if (stage->reduce[0].extent > unroll) {
        if (!look_split_tile(look, st, depth, unroll))
            return false;
        names[n++] = arena_printf(s->arena, "%s.o", depth);
        inner = arena_printf(s->arena, "%s.i", depth);
    }
    names[n++] = inner;
    names[n++] = row;
    names[n++] = column;
    return schedule_reorder(s, stage->name, look_order(look, names, n)) &&
           schedule_unroll(s, stage->name, inner) &&
           schedule_unroll(s, stage->name, row) &&
           schedule_vectorize(s, stage->name, column) &&
           schedule_compute_at(s, stage->name, user, at) &&
           schedule_set_scope(s, stage->name, SCOPE_REGISTER) &&
           look_contract(look, st);
}

/* A copy of the keys with lanes along the sequence, when they do not lie
 * so; once for each head, or for all heads first. */
static bool cache_keys(Look *look, const Attention *t, StageState *product,
                       const char *head)
{
    const double most_bytes = 256 * 1024;
    const Expr *keys = column_operand(product, t->column);
    const Layout *l = &keys->buffer->layout;
    const Stage *stage = product->stage;
    int d = look_index_of(keys, stage->axis[t->column].var);
    double bytes = 4.0 * (double)stage->axis[t->column].extent *
                   (double)stage->reduce[0].extent;
    if (d < 0 || l->dim[l->count - 1].axis == d || bytes > most_bytes ||
        (!head && !t->few_heads) || keys->outside)
        return true;
    return look_cache_operand(look, stage, keys, d,
                              t->few_heads ? NULL : head);
}

/* The scores of a block: a local stage with its register tile inside. */
static bool tile_scores(Look *look, const Attention *t, const char *attach,
                        const char *head)
{
    Schedule *s = look->s;
    const char *scores = t->scores->stage->name;
    if (!schedule_cache(s, scores))
        return false;
    StageState *product =
        schedule_stage(s, arena_printf(s->arena, "%s_acc", scores));
    const Stage *stage = t->scores->stage;
    const char *column = stage->axis[t->column].var->name;
    int64_t vectors = look->target->tile_registers / (t->block + 1);
    if (vectors < 1)
        vectors = 1;
    if (!look_split_tile(look, t->scores, column, vectors * look->lanes) ||
        !cache_keys(look, t, product, head))
        return false;
    const char *names[MAX_RANK + 2];
    int n = 0;
    for (int i = 0; i < t->row; i++)
        names[n++] = stage->axis[i].var->name;
    const char *panel = arena_printf(s->arena, "%s.o", column);
    names[n++] = panel;
    names[n++] = stage->axis[t->row].var->name;
    names[n++] = arena_printf(s->arena, "%s.i", column);
    return schedule_reorder(s, scores, look_order(look, names, n)) &&
           schedule_unroll(s, scores, names[n - 2]) &&
           schedule_vectorize(s, scores, names[n - 1]) &&
           schedule_compute_at(s, scores, t->out->stage->name, attach) &&
           tile_product(look, product, scores, panel);
}

/* Rows of weights are not normalized: the row of the result is, which has
 * fewer elements than the sequence. */
static bool normalize_result(Look *look, Attention *t)
{
    const Stage *result = t->result->stage;
    for (int i = 0; i < look->kept.count && !look->exact; i++) {
        const Stage *kept = look->kept.data[i]->stage;
        const Expr *x = kept->value[0], *product = result->value[0];
        bool is_operand = product->arg[0]->buffer == kept->out[0] ||
                          product->arg[1]->buffer == kept->out[0];
        if (!is_operand || x->kind != EX_DIV || x->arg[0]->kind != EX_READ ||
            x->arg[1]->kind != EX_READ ||
            look_uses(look->kept.data[i], t->column, x->arg[1]))
            continue;
        vec_remove(&look->kept, i);
        return schedule_inline(look->s, kept->name) &&
               schedule_factor(look->s, result->name);
    }
    return true;
}

/* Heads in parallel keep the copy of their keys near; with few of them a
 * thread would have one more than another, and blocks of rows are what threads
 * share. */
static bool has_few_heads(const Attention *t)
{
    const int64_t enough = 8;
    const StageState *out = t->out;
    int64_t heads = 1;
    for (int i = 0; i < t->row; i++) {
        if (axis_is_limited(out->roots.data[i]))
            return false;
        heads *= out->stage->axis[i].extent;
    }
    return heads < enough && !axis_is_limited(out->roots.data[t->row]) &&
           out->stage->axis[t->row].extent >= enough * t->block;
}

bool template_attention(Look *look, bool *fits)
{
    Attention t = {0};
    if (!analyse(look, &t))
        return true;
    *fits = true;
    Schedule *s = look->s;
    const Stage *out = t.out->stage;
    if (!normalize_result(look, &t))
        return false;
    int64_t vectors =
        (out->axis[t.column].extent + look->lanes - 1) / look->lanes;
    t.block = block_rows(look, out->axis[t.row].extent, vectors);
    const char *row = out->axis[t.row].var->name;
    const char *column = out->axis[t.column].var->name;
    if (!schedule_split_even(s, out->name, row, t.block))
        return false;
    t.few_heads = has_few_heads(&t);
    /* Heads outside, in parallel, then blocks of rows; or the reverse. */
    const char *block = arena_printf(s->arena, "%s.o", row);
    const char *names[MAX_RANK + 2];
    int n = 0, heads = 0;
    if (t.few_heads)
        names[n++] = block;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < t.row; i++)
            if ((out->axis[i].extent > 1) == (pass == 0)) {
                heads += pass == 0;
                names[n++] = out->axis[i].var->name;
            }
    if (!t.few_heads)
        names[n++] = block;
    const char *attach = names[n - 1];
    names[n++] = arena_printf(s->arena, "%s.i", row);
    names[n++] = column;
    if (!schedule_reorder(s, out->name, look_order(look, names, n)))
        return false;
    const char *const *head_names = &names[t.few_heads];
    const char *head = heads ? head_names[0] : NULL;
    for (int i = 1; i < heads; i++) {
        const char *joined =
            arena_printf(s->arena, "%s*%s", head, head_names[i]);
        if (!schedule_fuse(s, out->name, head, head_names[i]))
            return false;
        if (attach == head_names[i])
            attach = joined;
        head = joined;
    }
    if (look->work >= PARALLEL_WORK && t.out->leaves.data[0]->extent > 1 &&
        !schedule_parallel(s, out->name, t.out->leaves.data[0]->name))
        return false;
    const int lanes = 4 * look->lanes;
    for (int i = 1; i + 1 < look->reductions.count; i++) {
        StageState *r = look->reductions.data[i];
        const char *depth = r->roots.data[r->stage->axis_count]->name;
        if ((!look->exact && r->stage->reduce_count == 1 &&
             !schedule_reduce_lanes(s, r->stage->name, depth, lanes)) ||
            !schedule_compute_at(s, r->stage->name, out->name, attach))
            return false;
    }
    for (int i = 0; i < look->kept.count; i++)
        if (!look_keep(look, look->kept.data[i], attach))
            return false;
    return tile_scores(look, &t, attach, head) &&
           tile_product(look, t.result, out->name, attach) &&
           schedule_unroll(s, out->name,
                           arena_printf(s->arena, "%s.i", row)) &&
           schedule_vectorize(s, out->name, column);
}
