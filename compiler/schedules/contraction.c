/* Contractions (matrix products, convolutions): register tiles of pixels
 * times vectors of channels.
 *
 * One operand (the weights) varies along the contiguous output axis, the
 * other (the data) does not: each step loads `nv` weight vectors, splats
 * one data element a pixel and issues tw * nv multiply-adds.
 *
 * Where the output's contiguous axis is one of pixels, but the data lies
 * channels last, lanes run along the constant weights all the same, and a
 * finished tile is stored transposed. */
#include <math.h>
#include <string.h>

#include "schedules/tile.h"

typedef struct Contraction {
    StageState *acc, *out;
    int vector_axis; /* of both stages, which have the same axes */
    int pixel_axis;  /* -1: none */
    int row_axis;    /* the next one outwards in memory; -1: none */
    bool transposed; /* the output is contiguous along the pixels */
    bool panels_outside;
    double tiles;        /* that read all weights each */
    bool stays;          /* the weights do, in the second level cache */
    const char *deepest; /* reduction loop around what is unrolled, or NULL */
    int64_t unroll;
    Tile tile;
    int64_t block; /* of channels under a window; 0: none */
    const Expr *data, *weights;
} Contraction;

/* The plain read in an operand, converted or not; NULL when it is anything
 * else. */
static const Expr *plain_read(const Expr *x)
{
    if (x->kind == EX_CAST)
        x = x->arg[0];
    return x->kind == EX_READ ? x : NULL;
}

/* The read behind padding and the like; NULL when there is none. */
static const Expr *inner_read(const Expr *x)
{
    while (x->kind != EX_READ && x->count)
        x = x->arg[0];
    return x->kind == EX_READ ? x : NULL;
}

/* The output axis that constant weights follow and the data does not, where
 * the data does not lie along the contiguous axis either; -1 otherwise. */
static int transposed_axis(const Contraction *c, int contiguous,
                           const Expr *value)
{
    const Stage *stage = c->acc->stage;
    const Expr *weights = plain_read(value->arg[0]);
    bool first = weights && weights->buffer->is_constant;
    if (!first)
        weights = plain_read(value->arg[1]);
    const Expr *data = inner_read(value->arg[first ? 1 : 0]);
    if (!weights || !weights->buffer->is_constant || !data ||
        data->buffer->is_constant)
        return -1;
    const Layout *l = &data->buffer->layout;
    const Expr *innermost = data->arg[l->dim[l->count - 1].axis];
    if (expr_uses_var(innermost, stage->axis[contiguous].var))
        return -1;
    int best = -1;
    for (int i = 0; i < stage->axis_count; i++)
        if (i != contiguous && look_uses(c->acc, i, weights) &&
            !look_uses(c->acc, i, data) && stage->axis[i].extent > 1 &&
            (best < 0 || stage->axis[i].extent > stage->axis[best].extent))
            best = i;
    return best;
}

static bool analyse(const Look *look, Contraction *c)
{
    if (look->reductions.count != 1 || look->kept.count)
        return false;
    c->out = look->out;
    c->acc = look->reductions.data[0];
    const Stage *stage = c->acc->stage;
    const Expr *value = stage->value[0];
    if (strcmp(stage->reducer->name, "sum") || value->kind != EX_MUL ||
        stage->axis_count != c->out->stage->axis_count ||
        !dtype_is_float(value->dtype) ||
        !look_reads_own_point(c->out, c->out->stage->value[0], stage->out[0]))
        return false;
    for (int i = 0; i < stage->axis_count; i++)
        if (!look_same_extent(&stage->axis[i], &c->out->stage->axis[i]))
            return false;
    c->vector_axis = look_contiguous(c->out);
    if (c->vector_axis < 0)
        return false;
    int across = transposed_axis(c, c->vector_axis, value);
    c->transposed = across >= 0;
    if (c->transposed)
        c->vector_axis = across;
    bool first = look_uses(c->acc, c->vector_axis, value->arg[0]);
    bool second = look_uses(c->acc, c->vector_axis, value->arg[1]);
    if (first == second)
        return false;
    c->weights = plain_read(value->arg[first ? 0 : 1]);
    c->data = value->arg[first ? 1 : 0];
    return c->weights != NULL;
}

/* The axes tiled together with the vector axis: the innermost two in
 * memory that only the data follows. */
static void find_tile_axes(Contraction *c)
{
    const Layout *l = &c->out->stage->out[0]->layout;
    c->pixel_axis = c->row_axis = -1;
    for (int i = l->count - 1; i >= 0; i--) {
        int axis = l->dim[i].axis;
        if (axis == c->vector_axis || c->acc->stage->axis[axis].extent < 2 ||
            !look_uses(c->acc, axis, c->data) ||
            look_uses(c->acc, axis, c->weights))
            continue;
        if (c->pixel_axis < 0)
            c->pixel_axis = axis;
        else if (c->row_axis < 0)
            c->row_axis = axis;
    }
}

static bool choose_tile(Look *look, Contraction *c, double depth)
{
    const Stage *acc = c->acc->stage;
    int64_t channels = acc->axis[c->vector_axis].extent;
    return tile_choose(look, depth,
                       c->row_axis < 0 ? 1 : acc->axis[c->row_axis].extent,
                       c->pixel_axis < 0 ? 1 : acc->axis[c->pixel_axis].extent,
                       (channels + look->lanes - 1) / look->lanes, &c->tile);
}

static bool is_outer(const LoopAxis *axis)
{
    return axis->split_from && axis->split_from->outer == axis;
}

/* Constant weights lie in the order in which they are read: panel, then
 * the reduction loops, then the channels of the panel. */
static bool pack_weights(Look *look, const Contraction *c, int64_t panel)
{
    const Stage *stage = c->acc->stage;
    const Expr *w = c->weights;
    if (!w->buffer->is_constant || w->outside)
        return true;
    Layout l = {0};
    bool placed[MAX_RANK] = {false};
    int v = look_index_of(w, stage->axis[c->vector_axis].var);
    if (v < 0)
        return true;
    placed[v] = true;
    /* Batch axes outside, then panels, then the reduction. */
    LayoutDim order[MAX_RANK + 1];
    int n = 0;
    for (int i = 0; i < c->acc->leaves.count; i++) {
        const LoopAxis *leaf = c->acc->leaves.data[i];
        if (!leaf->is_reduce)
            continue;
        const LoopAxis *root = leaf;
        while (root->split_from)
            root = root->split_from;
        int d = look_index_of(w, root->root);
        if (d < 0)
            return true;
        if (!placed[d])
            order[n++] = (LayoutDim){d, 0};
        else if (c->block && leaf->split_from != root && is_outer(leaf))
            order[n++] = (LayoutDim){d, c->block};
        placed[d] = true;
    }
    for (int d = 0; d < w->count; d++)
        if (!placed[d])
            l.dim[l.count++] = (LayoutDim){d, 0};
    l.dim[l.count++] = (LayoutDim){v, 0};
    for (int i = 0; i < n; i++)
        l.dim[l.count++] = order[i];
    l.dim[l.count++] = (LayoutDim){v, panel};
    return schedule_pack(look->s, w->buffer->name, l);
}

/* The last vector of channels is whole as well, as its weights are: beside a
 * narrower one each element of the data would take a register of its own, and
 * sums would not stay in theirs. */
static bool pad_channels(Look *look, const Contraction *c)
{
    const Stage *acc = c->acc->stage;
    const Expr *w = c->weights;
    const Layout *l = &w->buffer->layout;
    const LayoutDim *last = &l->dim[l->count - 1];
    const Axis *vector = &acc->axis[c->vector_axis];
    if (vector->extent % look->lanes == 0 || !w->buffer->is_constant ||
        w->outside || !last->factor || vector->limit)
        return true;
    return schedule_pad(look->s, acc->name, vector->var->name, look->lanes);
}

/* The elements of the buffer behind the data, of one batch. */
static double data_bytes(const Contraction *c)
{
    const Expr *data = inner_read(c->data);
    double bytes = 4;
    for (int i = 0; data && i < data->buffer->rank; i++)
        bytes *= (double)data->buffer->dims[i];
    return data ? bytes : INFINITY;
}

/* Whether panels of weights are the outer loop. Weights that do not stay in
 * the second level cache, or are more than the data, are read once, with the
 * panels outside: a model's weights come from far away, and the next panel
 * can be fetched meanwhile. Others go inside, so that the data is read once
 * and the weights come from that cache, which keeps up with a tile. Few tiles
 * leave the threads only the panels to share. */
static void choose_order(Look *look, Contraction *c, int64_t panel,
                         double depth)
{
    static const int64_t either[] = {0, 1};
    const Stage *out = c->out->stage;
    double channels = (double)out->axis[c->vector_axis].extent, tiles = 1;
    for (int i = 0; i < out->axis_count; i++) {
        int64_t extent = out->axis[i].extent;
        int64_t tile = i == c->pixel_axis ? c->tile.pixels
                       : i == c->row_axis ? c->tile.rows
                                          : 1;
        if (i != c->vector_axis)
            tiles *= (double)((extent + tile - 1) / tile);
    }
    double weights = depth * channels * 4;
    double stays = fmax((double)look->target->l2_bytes / 2, 512 * 1024);
    bool heavy = (weights > stays || weights > data_bytes(c)) &&
                 channels > 3 * (double)panel;
    c->panels_outside =
        look_knob(look, "panels_outside", heavy || tiles < 4, either, 2);
    c->stays = weights <= stays;
    c->tiles = tiles;
}

/* Reduction loops: the data's contiguous axis (channels) inside, unrolled
 * by four. Under a window the channels go in blocks, and a block is summed
 * over the whole window before the next: its data stays in cache, and what
 * the taps of a window cancel does not grow first. */
static bool order_accumulator(Look *look, Contraction *c)
{
    Schedule *s = look->s;
    StageState *acc = c->acc;
    const char *name = acc->stage->name;
    const Expr *data = inner_read(c->data);
    int n = acc->stage->reduce_count, spatial = acc->stage->axis_count;
    int last = n - 1;
    if (data && !look->exact) {
        const Layout *l = &data->buffer->layout;
        int d = l->dim[l->count - 1].axis;
        for (int i = 0; i < n; i++)
            if (expr_uses_var(data->arg[d], acc->stage->reduce[i].var))
                last = i;
    }
    const char *names[2 * MAX_RANK + 2];
    int count = 0;
    for (int i = 0; i < spatial; i++)
        if (i != c->pixel_axis && i != c->vector_axis && i != c->row_axis)
            names[count++] = acc->roots.data[i]->name;
    int outside = count;
    for (int i = 0; i < n; i++)
        if (i != last)
            names[count++] = acc->roots.data[spatial + i]->name;
    LoopAxis *deepest = acc->roots.data[spatial + last];
    static const int64_t unrolls[] = {2, 4, 8}, blocks[] = {0, 8, 16, 32, 64};
    /* Beside prefetches a longer step pays, unless there is nothing but
     * weights to wait for. */
    bool is_long = c->panels_outside && c->tile.rows * c->tile.pixels > 1;
    const int64_t unroll =
        look_knob(look, "unroll", is_long ? 8 : 4, unrolls, 3);
    const int64_t usual = 16;
    int64_t window = 1;
    for (int i = 0; i < n; i++)
        if (i != last)
            window *= acc->stage->reduce[i].extent;
    if (!look->exact && window > 1 && deepest->extent >= 2 * usual)
        c->block = look_knob(look, "block", usual, blocks,
                             deepest->extent >= 64 ? 5 : 4);
    if (c->block) {
        if (!schedule_split(s, name, deepest->name, c->block))
            return false;
        for (int i = count; i > outside; i--)
            names[i] = names[i - 1];
        names[outside] = deepest->outer->name;
        count++;
        deepest = deepest->inner;
    }
    const char *pixel =
        c->pixel_axis >= 0 ? acc->roots.data[c->pixel_axis]->name : NULL;
    const char *row =
        c->row_axis >= 0 ? acc->roots.data[c->row_axis]->name : NULL;
    const char *vector = acc->roots.data[c->vector_axis]->name;
    const char *unrolled = deepest->name;
    if (deepest->extent > unroll) {
        if (!look_split_tile(look, acc, deepest->name, unroll))
            return false;
        names[count++] = c->deepest = deepest->outer->name;
        unrolled = deepest->inner->name;
        c->unroll = unroll;
    }
    names[count++] = unrolled;
    if (row)
        names[count++] = row;
    if (pixel)
        names[count++] = pixel;
    names[count++] = vector;
    return schedule_reorder(s, name, look_order(look, names, count)) &&
           schedule_unroll(s, name, unrolled) &&
           (!row || schedule_unroll(s, name, row)) &&
           (!pixel || schedule_unroll(s, name, pixel)) &&
           schedule_vectorize(s, name, vector);
}

/* Weights that are computed at run time and do not run along the vector
 * axis in memory, such as the keys of attention: a copy that does, made
 * once for all tiles that read it. */
static bool cache_weights(Look *look, const Contraction *c, int64_t panel,
                          double depth)
{
    const double most_bytes = 128 * 1024;
    const Stage *acc = c->acc->stage, *out = c->out->stage;
    const Expr *w = c->weights;
    const Layout *l = &w->buffer->layout;
    const Var *vector = acc->axis[c->vector_axis].var;
    int v = look_index_of(w, vector);
    if (w->buffer->is_constant || w->outside || v < 0 ||
        l->dim[l->count - 1].axis == v || w->buffer->role != BUF_INPUT)
        return true;
    /* The innermost loop that selects a batch of the weights, or the panel
     * when there is no batch. */
    const char *at = NULL;
    double columns = (double)acc->axis[c->vector_axis].extent;
    for (int i = 0; i < c->out->leaves.count; i++) {
        const char *name = c->out->leaves.data[i]->name;
        for (int k = 0; k < acc->axis_count; k++)
            if (k != c->vector_axis && k != c->pixel_axis &&
                acc->axis[k].extent > 1 && look_uses(c->acc, k, w) &&
                strstr(name, out->axis[k].var->name) == name)
                at = name;
    }
    const LoopAxis *first = c->out->leaves.data[0];
    if (!at && first->split_from &&
        first->split_from->root == out->axis[c->vector_axis].var) {
        at = first->name;
        columns = (double)panel;
    }
    if (!at || depth * columns * 4 > most_bytes)
        return true;
    return look_cache_operand(look, acc, w, v, at);
}

/* While the tiles of a panel run, a panel to come is brought near; behind the
 * last one lie the weights of what runs next. A single tile reads its weights
 * once and in order, which the processor sees. */
static bool prefetch_weights(Look *look, const Contraction *c, int64_t panel,
                             double depth)
{
    const Expr *w = c->weights;
    static const int64_t distances[] = {0, 1, 2};
    if (!c->deepest || !w->buffer->is_constant || w->outside)
        return true;
    int64_t panels =
        look_knob(look, "prefetch", c->panels_outside && c->tiles > 1 ? 1 : 0,
                  distances, 3);
    return !panels ||
           schedule_prefetch(look->s, c->acc->stage->name, w->buffer->name,
                             c->deepest, panels * (int64_t)depth * panel,
                             c->unroll * panel);
}

typedef struct OuterLoop {
    const char *name;
    int64_t extent;
    bool is_row; /* joins the ones before it: neither pixels nor channels */
} OuterLoop;

/* With the panels outside, threads that share them write channels of all
 * pixels, and what reads the result by rows gets half of it from another
 * core's cache. Weights that every core can hold are better read by each for
 * pixels of its own: the first loop behind the panels goes in pieces, piece by
 * piece around the panels, and both are one loop for threads to share. False
 * when a primitive refused. */
static bool share_pixels(Look *look, const Contraction *c, int64_t panel,
                         OuterLoop *loop, int *count)
{
    static const int64_t candidates[] = {1, 2, 4};
    Schedule *s = look->s;
    const Stage *out = c->out->stage;
    int64_t channels = out->axis[c->vector_axis].extent, pieces = 1;
    OuterLoop *next = NULL;
    for (int i = 1; i < *count && !next; i++)
        if (loop[i].extent > 1)
            next = &loop[i];
    const LoopAxis *axis = NULL;
    for (int i = 0; next && i < c->out->leaves.count; i++)
        if (!strcmp(c->out->leaves.data[i]->name, next->name))
            axis = c->out->leaves.data[i];
    bool divides = axis && !axis_is_limited(axis) && channels % panel == 0 &&
                   (!axis->split_from ||
                    axis->split_from->extent % axis->split_from->factor == 0);
    if (divides && next->extent % 2 == 0)
        pieces = next->extent % 4 == 0 ? 4 : 2;
    pieces = look_knob(look, "pieces", c->stays ? pieces : 1, candidates,
                       pieces == 4   ? 3
                       : pieces == 2 ? 2
                                     : 1);
    if (pieces == 1)
        return true;
    if (!schedule_split(s, out->name, next->name, next->extent / pieces))
        return false;
    const char *name = next->name;
    next->name = arena_printf(s->arena, "%s.i", name);
    next->extent /= pieces;
    next->is_row = false;
    for (int i = *count; i > 0; i--)
        loop[i] = loop[i - 1];
    (*count)++;
    loop[0] = (OuterLoop){arena_printf(s->arena, "%s.o", name), pieces, true};
    loop[1].is_row = true;
    return true;
}

/* Orders the loops of the output stage. `attach` gets the loop in which a
 * tile is computed. */
static bool order_output(Look *look, Contraction *c, int64_t panel,
                         const char **attach)
{
    Schedule *s = look->s;
    const Stage *out = c->out->stage;
    const char *vector = out->axis[c->vector_axis].var->name;
    int64_t channels = out->axis[c->vector_axis].extent;
    int64_t pixels = 1, rows = 1;
    const char *pixel = NULL, *row = NULL;
    OuterLoop loop[MAX_RANK + 3];
    int count = 0;
    for (int i = 0; i < out->axis_count; i++) {
        if (i == c->pixel_axis) {
            pixel = out->axis[i].var->name;
            pixels = out->axis[i].extent;
        } else if (i == c->row_axis) {
            row = out->axis[i].var->name;
            Pieces p = pieces_of(out->axis[i].extent, c->tile.rows);
            loop[count++] = (OuterLoop){arena_printf(s->arena, "%s.o", row),
                                        p.larger + p.smaller, false};
            rows *= p.larger + p.smaller;
        } else if (i != c->vector_axis) {
            loop[count++] =
                (OuterLoop){out->axis[i].var->name, out->axis[i].extent, true};
            rows *= out->axis[i].extent;
        }
    }
    OuterLoop panels = {arena_printf(s->arena, "%s.o", vector),
                        (channels + panel - 1) / panel, false};
    OuterLoop tiles = {pixel ? arena_printf(s->arena, "%s.o", pixel) : NULL,
                       (pixels + c->tile.pixels - 1) / c->tile.pixels, false};
    if (c->panels_outside) {
        for (int i = count; i > 0; i--)
            loop[i] = loop[i - 1];
        loop[0] = panels;
        count++;
        if (pixel)
            loop[count++] = tiles;
        if (panels.extent > 1 && !share_pixels(look, c, panel, loop, &count))
            return false;
    } else if (rows == 1 && pixel) {
        loop[count++] = tiles;
        loop[count++] = panels;
    } else {
        loop[count++] = panels;
        if (pixel)
            loop[count++] = tiles;
    }
    /* Loops of one iteration vanish; they go inside, so that the first
     * real one can be parallel. */
    const char *names[MAX_RANK + 5];
    int n = 0, fusable = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++)
            if ((loop[i].extent > 1) == (pass == 0)) {
                if (pass == 0 && n == fusable && loop[i].is_row)
                    fusable++;
                names[n++] = loop[i].name;
            }
    *attach = names[n - 1];
    if (row)
        names[n++] = arena_printf(s->arena, "%s.i", row);
    if (c->transposed)
        names[n++] = arena_printf(s->arena, "%s.i", vector);
    if (pixel)
        names[n++] = arena_printf(s->arena, "%s.i", pixel);
    if (!c->transposed)
        names[n++] = arena_printf(s->arena, "%s.i", vector);
    if (!schedule_reorder(s, out->name, look_order(look, names, n)))
        return false;
    const char *first = names[0];
    for (int i = 1; i < fusable; i++) {
        /* How many iterations an inner loop has must be a number. */
        const LoopAxis *next = look_axis(c->out, names[i]);
        if (next && axis_is_limited(next) &&
            c->out->leaves.data[0]->extent > 1)
            break;
        if (!schedule_fuse(s, out->name, first, names[i]))
            return false;
        if (*attach == names[i] || *attach == first)
            *attach = arena_printf(s->arena, "%s*%s", first, names[i]);
        first = arena_printf(s->arena, "%s*%s", first, names[i]);
    }
    return look->work < PARALLEL_WORK || c->out->leaves.data[0]->extent < 2 ||
           schedule_parallel(s, out->name, first);
}

bool template_contraction(Look *look, bool *fits)
{
    Contraction c = {0};
    if (!analyse(look, &c))
        return true;
    *fits = true;
    Schedule *s = look->s;
    const char *vector = c.out->stage->axis[c.vector_axis].var->name;
    look_collapse(look, vector);
    if (!analyse(look, &c))
        return false;
    find_tile_axes(&c);
    if (c.transposed && c.pixel_axis != look_contiguous(c.out))
        return false;
    const Stage *acc = c.acc->stage, *out = c.out->stage;
    double depth = 1;
    for (int i = 0; i < acc->reduce_count; i++)
        depth *= (double)acc->reduce[i].extent;
    if (!choose_tile(look, &c, depth))
        return false;
    if (c.tile.rows == 1)
        c.row_axis = -1;
    StageState *copy = NULL;
    /* Through memory: a loop over the tile in an order of its own. */
    if (c.transposed || look_is_costly(out->value[0])) {
        copy = c.acc;
        c.acc = look_split_accumulator(look, copy);
        if (!c.acc)
            return false;
        acc = c.acc->stage;
    }
    int64_t panel = c.tile.vectors * look->lanes;
    if (!look_split_tile(look, c.out, vector, panel))
        return false;
    const char *pixel = NULL, *row = NULL;
    if (c.pixel_axis >= 0) {
        pixel = out->axis[c.pixel_axis].var->name;
        if (!schedule_split_even(s, out->name, pixel, c.tile.pixels))
            return false;
    }
    if (c.row_axis >= 0) {
        row = out->axis[c.row_axis].var->name;
        if (!schedule_split_even(s, out->name, row, c.tile.rows))
            return false;
    }
    choose_order(look, &c, panel, depth);
    if (!order_accumulator(look, &c) || !pack_weights(look, &c, panel) ||
        !pad_channels(look, &c))
        return false;
    const char *attach;
    if (!order_output(look, &c, panel, &attach) ||
        !cache_weights(look, &c, panel, depth) ||
        !prefetch_weights(look, &c, panel, depth))
        return false;
    return schedule_compute_at(s, acc->name, out->name, attach) &&
           schedule_set_scope(s, acc->name, SCOPE_REGISTER) &&
           look_contract(look, c.acc) &&
           (!copy || look_store_tile(look, copy, c.row_axis, c.pixel_axis,
                                     c.vector_axis, attach)) &&
           (copy || !row ||
            schedule_unroll(s, out->name,
                            arena_printf(s->arena, "%s.i", row))) &&
           (copy || !pixel ||
            schedule_unroll(s, out->name,
                            arena_printf(s->arena, "%s.i", pixel))) &&
           schedule_vectorize(
               s, out->name,
               arena_printf(s->arena, "%s.i", c.transposed ? pixel : vector));
}
