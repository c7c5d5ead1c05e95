/* Windows: depthwise convolution, pooling and other single reductions over
 * axes that are not contiguous. Lanes run along the contiguous output axis
 * (channels); a tile of pixels shares the window's weights. */
#include <string.h>

#include "schedules/templates.h"

/* Every read either follows the axis along contiguous memory or does not
 * follow it at all. */
static bool runs_along(const StageState *st, int axis, const Expr *x)
{
    const Var *var = st->stage->axis[axis].var;
    if (x->kind == EX_READ) {
        const Layout *l = &x->buffer->layout;
        for (int i = 0; i < x->count; i++) {
            if (!expr_uses_var(x->arg[i], var))
                continue;
            bool plain = x->arg[i]->kind == EX_VAR;
            bool constant = x->buffer->is_constant;
            if (!plain || (!constant && l->dim[l->count - 1].axis != i))
                return false;
        }
        return true;
    }
    for (int i = 0; i < x->count; i++)
        if (!runs_along(st, axis, x->arg[i]))
            return false;
    return true;
}

/* Constant operands that follow the lanes get a panel of them innermost: what
 * a tile reads is in one piece then, and not in lines at a distance that may
 * share few sets of the first level cache. */
static bool pack_constants(Look *look, const StageState *st, int axis,
                           int64_t panel, const Expr *x)
{
    const Var *var = st->stage->axis[axis].var;
    for (int i = 0; i < x->count; i++)
        if (!pack_constants(look, st, axis, panel, x->arg[i]))
            return false;
    if (x->kind != EX_READ || !x->buffer->is_constant)
        return true;
    for (int d = 0; d < x->count; d++) {
        if (x->arg[d]->kind != EX_VAR || x->arg[d]->var != var)
            continue;
        Layout l = {.count = 1, .dim = {{d, 0}}};
        for (int i = 0; i < x->count; i++)
            if (i != d)
                l.dim[l.count++] = (LayoutDim){i, 0};
        l.dim[l.count++] = (LayoutDim){d, panel};
        return schedule_pack(look->s, x->buffer->name, l);
    }
    return true;
}

static int64_t window_size(const Stage *stage)
{
    int64_t n = 1;
    for (int i = 0; i < stage->reduce_count; i++)
        n *= stage->reduce[i].extent;
    return n;
}

/* Taps that are unrolled, so that weights can stay in registers. */
static const int64_t most_unrolled = 9;

/* The data of the next row of the result is that of the next row. */
static bool moves_by_one(const Stage *stage, int row, const Expr *x)
{
    const Var *var = stage->axis[row].var;
    if (x->kind == EX_READ) {
        for (int i = 0; i < x->count && !x->buffer->is_constant; i++) {
            const Expr *at = x->arg[i];
            if (!expr_uses_var(at, var))
                continue;
            while (at->kind == EX_ADD)
                at = expr_uses_var(at->arg[0], var) ? at->arg[0] : at->arg[1];
            return at->kind == EX_VAR;
        }
        return false;
    }
    for (int i = 0; i < x->count; i++)
        if (moves_by_one(stage, row, x->arg[i]))
            return true;
    return false;
}

/* Vectors and pixels of a tile of one row: accumulators and, for a product,
 * the window's weights fit the registers, with two left for data. */
static int64_t choose_window_tile(Look *look, const Stage *stage,
                                  int64_t channels, int64_t rows,
                                  int64_t *tile)
{
    const int64_t most_vectors = 2, most_pixels = 8;
    static const int64_t pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14};
    int64_t vectors = (channels + look->lanes - 1) / look->lanes;
    int64_t registers = look->target->tile_registers - 2;
    int64_t window = window_size(stage);
    bool is_product = stage->value[0]->kind == EX_MUL;
    int64_t weights = is_product && window <= most_unrolled ? window : 0;
    int64_t nv = vectors < most_vectors ? vectors : most_vectors;
    while (nv > 1 && nv * (weights + most_pixels) > registers)
        nv--;
    if (rows > 1)
        nv = 1;
    nv = look_knob_range(look, "vectors", nv, 1, vectors < 4 ? vectors : 4);
    *tile = registers / nv - weights;
    /* Beside the sums of two rows, the data of two rows. */
    if (rows > 1)
        *tile = (registers / nv - 4) / 4;
    if (*tile > most_pixels)
        *tile = most_pixels;
    if (*tile < 1)
        *tile = 1;
    /* Weights that find no register are read again. */
    int count = 0;
    while (count < 11 && rows * nv * pixels[count] <= registers)
        count++;
    *tile = look_knob(look, "pixels", *tile, pixels, count);
    return nv;
}

/* Rows of a tile: two share most of the data of their windows where these
 * move by one row, and so read a quarter less of what only the second level
 * cache holds. A small odd number of pairs would be hard to share between
 * threads.
 * `row` is the axis; -1: none. */
static int64_t choose_rows(Look *look, const StageState *acc, int row)
{
    static const int64_t candidates[] = {1, 2};
    const Stage *stage = acc->stage;
    if (row < 0 || axis_is_limited(acc->roots.data[row]))
        return 1;
    int64_t rows = stage->axis[row].extent, window = window_size(stage);
    bool shares = stage->value[0]->kind == EX_MUL && window > 1 &&
                  window <= most_unrolled &&
                  moves_by_one(stage, row, stage->value[0]) &&
                  look->target->tile_registers >= 28;
    bool pairs = shares && (rows % 4 == 0 || (rows % 2 == 0 && rows >= 14));
    return look_knob(look, "rows", pairs ? 2 : 1, candidates,
                     rows % 2 == 0 && window <= most_unrolled ? 2 : 1);
}

/* Into tiles of about one size. Where the number of pixels is known at run
 * time only the last tile is whole, too: a tile of one pixel takes hardly less
 * time than one of eight. */
static bool split_pixels(Look *look, const StageState *out, const char *pixel,
                         int64_t tile)
{
    const LoopAxis *axis = look_axis(out, pixel);
    const char *name = out->stage->name;
    if (!axis || !axis_is_limited(axis))
        return schedule_split_even(look->s, name, pixel, tile);
    int64_t tiles = (axis->extent + tile - 1) / tile;
    return schedule_split_padded(look->s, name, pixel,
                                 (axis->extent + tiles - 1) / tiles);
}

/* How many parts of a reduction's first axis threads can share well; 1: none.
 */
static int64_t parts_of(int64_t extent)
{
    const int64_t few = 4, most = 16;
    for (int64_t parts = few; parts <= most; parts += few)
        if (extent % parts == 0)
            return parts;
    return extent <= most ? extent : 1;
}

/* Of whole images only channels are left. Threads that shared these would each
 * read half of every row, of which the one that wrote it has the lines: so
 * rows are summed in parts, each where it is, and then the parts. */
static bool reduce_rows(Look *look, StageState *acc, int vector)
{
    Schedule *s = look->s;
    const Stage *a = acc->stage;
    const char *name = a->name;
    const Layout *l = &look->out->stage->out[0]->layout;
    if (look->exact || look->work < PARALLEL_WORK || a->reduce_count < 2 ||
        a->reduce[0].limit || a->axis_count == MAX_RANK)
        return true;
    for (int i = 0; i < a->axis_count; i++)
        if (i != vector && (a->axis[i].extent > 1 || a->axis[i].limit))
            return true;
    int64_t parts = parts_of(a->reduce[0].extent);
    if (parts == 1)
        return true;
    const char *part = arena_printf(s->arena, "%s_part", name);
    const char *sum = arena_printf(s->arena, "%s_part_acc", name);
    if (!schedule_rfactor(s, name, a->reduce[0].var->name, parts) ||
        !schedule_cache(s, part))
        return false;
    Layout order = {.count = l->count + 1, .dim = {{0, 0}}};
    for (int i = 0; i < l->count; i++)
        order.dim[i + 1] = (LayoutDim){l->dim[i].axis + 1, 0};
    StageState *out = schedule_stage(s, part);
    const char *channel = a->axis[vector].var->name;
    const int64_t most_vectors = 8;
    if (!schedule_pack(s, part, order) ||
        !look_split_tile(look, out, channel, most_vectors * look->lanes))
        return false;
    const char *panel = arena_printf(s->arena, "%s.o", channel);
    const char *lanes = arena_printf(s->arena, "%s.i", channel);
    const char *names[2 * MAX_RANK];
    int n = 0;
    names[n++] = out->stage->axis[0].var->name;
    for (int i = 1; i < out->stage->axis_count; i++)
        if (i != vector + 1)
            names[n++] = out->stage->axis[i].var->name;
    names[n++] = panel;
    names[n++] = lanes;
    if (!schedule_reorder(s, part, look_order(look, names, n)) ||
        !schedule_parallel(s, part, names[0]) ||
        !schedule_vectorize(s, part, lanes))
        return false;
    const Stage *inner = schedule_stage(s, sum)->stage;
    n = 0;
    for (int i = 0; i < inner->axis_count; i++)
        if (i != vector + 1)
            names[n++] = inner->axis[i].var->name;
    for (int i = 0; i < inner->reduce_count; i++)
        names[n++] = inner->reduce[i].var->name;
    names[n++] = channel;
    /* What is left is little. */
    look->work = 0;
    return schedule_reorder(s, sum, look_order(look, names, n)) &&
           schedule_vectorize(s, sum, channel) &&
           schedule_compute_at(s, sum, part, panel) &&
           schedule_set_scope(s, sum, SCOPE_REGISTER);
}

bool template_window(Look *look, bool *fits)
{
    if (look->reductions.count != 1 || look->kept.count)
        return true;
    StageState *acc = look->reductions.data[0], *out = look->out;
    const Stage *a = acc->stage, *o = out->stage;
    int v = look_contiguous(out);
    if (v < 0 || a->axis_count != o->axis_count ||
        !look_reads_own_point(out, o->value[0], a->out[0]) ||
        !runs_along(acc, v, a->value[0]))
        return true;
    for (int i = 0; i < a->axis_count; i++)
        if (!look_same_extent(&a->axis[i], &o->axis[i]))
            return true;
    *fits = true;
    if (!reduce_rows(look, acc, v))
        return false;
    Schedule *s = look->s;
    const char *vector = o->axis[v].var->name;
    int64_t channels = o->axis[v].extent;
    /* The next axes outwards in memory carry the tile: pixels, and rows. */
    int p = -1, r = -1;
    const Layout *l = &o->out[0]->layout;
    for (int i = l->count - 1; i >= 0 && r < 0; i--) {
        int axis = l->dim[i].axis;
        if (axis == v || o->axis[axis].extent == 1)
            continue;
        r = p >= 0 ? axis : -1;
        p = p < 0 ? axis : p;
    }
    int64_t row_tile = choose_rows(look, acc, r);
    int64_t tile, nv = choose_window_tile(look, a, channels, row_tile, &tile);
    int64_t panel = nv * look->lanes;
    if (look->refused)
        return false;
    if (row_tile == 1)
        r = -1;
    const char *names[MAX_RANK + 4];
    int n = 0;
    const char *pixel = p >= 0 ? o->axis[p].var->name : NULL;
    const char *row = r >= 0 ? o->axis[r].var->name : NULL;
    if (!pack_constants(look, acc, v, panel, a->value[0]) ||
        !look_split_tile(look, out, vector, panel) ||
        (pixel && !split_pixels(look, out, pixel, tile)) ||
        (row && !schedule_split(s, o->name, row, row_tile)))
        return false;
    int rows = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < o->axis_count; i++) {
            const char *name = o->axis[i].var->name;
            int64_t extent = o->axis[i].extent / (i == r ? row_tile : 1);
            if (i == v || i == p || (extent > 1) != (pass == 0))
                continue;
            rows += pass == 0;
            names[n++] = i == r ? arena_printf(s->arena, "%s.o", name) : name;
        }
    /* Tiles of pixels outside, all channels of a tile inside: the data of
     * a tile stays in the first level cache and memory is walked in order.
     * Without rows the channels are what threads can share. */
    const char *vector_o = arena_printf(s->arena, "%s.o", vector);
    const char *vector_i = arena_printf(s->arena, "%s.i", vector);
    if (rows == 0) {
        for (int i = n; i > 0; i--)
            names[i] = names[i - 1];
        names[0] = vector_o;
        n++;
    }
    if (pixel)
        names[n++] = arena_printf(s->arena, "%s.o", pixel);
    if (rows > 0)
        names[n++] = vector_o;
    const char *attach = names[n - 1];
    int outer = n;
    if (row)
        names[n++] = arena_printf(s->arena, "%s.i", row);
    if (pixel)
        names[n++] = arena_printf(s->arena, "%s.i", pixel);
    names[n++] = vector_i;
    if (!schedule_reorder(s, o->name, look_order(look, names, n)))
        return false;
    const char *first = names[0];
    for (int i = 1; i < rows; i++) {
        /* How many iterations an inner loop has must be a number. */
        const LoopAxis *next = look_axis(out, names[i]);
        if (next && axis_is_limited(next) && out->leaves.data[0]->extent > 1)
            break;
        if (!schedule_fuse(s, o->name, first, names[i]))
            return false;
        first = arena_printf(s->arena, "%s*%s", first, names[i]);
        if (i == outer - 1)
            attach = first;
    }
    if (look->work >= PARALLEL_WORK && out->leaves.data[0]->extent > 1 &&
        !schedule_parallel(s, o->name, first))
        return false;
    StageState *copy = NULL;
    if (look_is_costly(o->value[0])) {
        copy = acc;
        acc = look_split_accumulator(look, copy);
        if (!acc || !look_store_tile(look, copy, r, p, v, attach))
            return false;
        a = acc->stage;
    } else if ((row && !schedule_unroll(
                           s, o->name, arena_printf(s->arena, "%s.i", row))) ||
               (pixel &&
                !schedule_unroll(s, o->name,
                                 arena_printf(s->arena, "%s.i", pixel)))) {
        return false;
    }

    n = 0;
    for (int i = 0; i < a->axis_count; i++)
        if (i != v && i != p && i != r)
            names[n++] = acc->roots.data[i]->name;
    bool unroll = window_size(a) <= most_unrolled;
    for (int i = 0; i < a->reduce_count; i++) {
        const char *tap = acc->roots.data[a->axis_count + i]->name;
        names[n++] = tap;
        if (unroll && !schedule_unroll(s, a->name, tap))
            return false;
    }
    if (row) {
        names[n++] = acc->roots.data[r]->name;
        if (!schedule_unroll(s, a->name, acc->roots.data[r]->name))
            return false;
    }
    if (pixel) {
        names[n++] = acc->roots.data[p]->name;
        if (!schedule_unroll(s, a->name, acc->roots.data[p]->name))
            return false;
    }
    names[n++] = acc->roots.data[v]->name;
    return schedule_reorder(s, a->name, look_order(look, names, n)) &&
           schedule_vectorize(s, a->name, acc->roots.data[v]->name) &&
           schedule_compute_at(s, a->name, o->name, attach) &&
           schedule_set_scope(s, a->name, SCOPE_REGISTER) &&
           look_contract(look, acc) &&
           schedule_vectorize(s, o->name, vector_i);
}
