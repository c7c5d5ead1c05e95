/* A convolution by tiles: transforms before and behind a batch of matrix
 * products, one for each point of a tile.
 *
 * Where the tiles are many, blocks of rows of them go through all stages
 * while they stay in the second level cache, in parallel over the blocks.
 * Where they are few, the points of all are computed first; then the threads
 * share the panels of channels, so that each reads just its part of the
 * weights, once. In both cases the products of a panel are turned into pixels
 * before those of the next are computed.
 *
 * A transform handles one vector of channels of one tile, in registers. */
#include <math.h>
#include <string.h>

#include "schedules/tile.h"

typedef struct Tiles {
    /* The stages, in order; those of tiles have the axes tile, point or
     * pixel (down, across), channel. */
    StageState *rows, *points, *products, *sums, *pixels, *out;
    const Buffer *weights;
    int image, row, column, channel; /* axes of the output */
    int64_t m, grid_rows, grid_columns;
    int64_t block;  /* rows of tiles at once; 0: all, panels outside */
    int64_t across; /* columns of tiles at once; fewer than all: of one row */
    bool is_costly;
    int64_t tile, panel; /* tiles by channels in registers */
} Tiles;

/* The only buffer computed here that `x` reads; NULL when there are others. */
static const Buffer *only_temp(const Expr *x, const Buffer *found, bool *ok)
{
    if (x->kind == EX_READ && x->buffer->role == BUF_TEMP) {
        *ok &= !found || found == x->buffer;
        found = x->buffer;
    }
    for (int i = 0; i < x->count; i++)
        found = only_temp(x->arg[i], found, ok);
    return found;
}

static StageState *stage_of(const Schedule *s, const Buffer *buffer)
{
    for (int i = 0; buffer && i < s->stages.count; i++)
        if (!s->stages.data[i]->is_inlined &&
            s->stages.data[i]->stage->out[0] == buffer)
            return s->stages.data[i];
    return NULL;
}

/* The stage of four axes and one value that makes what `st` reads, NULL when
 * it reads several. */
static StageState *feeder(const Schedule *s, const StageState *st)
{
    bool ok = true;
    const Buffer *b = only_temp(st->stage->value[0], NULL, &ok);
    StageState *from = ok ? stage_of(s, b) : NULL;
    return from && from->stage->axis_count == 4 &&
                   from->stage->value_count == 1 && !from->stage->reduce_count
               ? from
               : NULL;
}

static StageState *reader(const Schedule *s, const StageState *st)
{
    StageState *found = NULL;
    for (int i = 0; i < s->stages.count; i++) {
        StageState *user = s->stages.data[i];
        if (user->is_inlined || user == st || user->stage->value_count != 1 ||
            user->stage->axis_count != 4)
            continue;
        bool ok = true;
        if (only_temp(user->stage->value[0], NULL, &ok) != st->stage->out[0] ||
            !ok)
            continue;
        if (found)
            return NULL;
        found = user;
    }
    return found;
}

/* sum over c of points[t, p, q, c] * weights[p, q, o, c] */
static bool is_batch_of_products(const StageState *st, Tiles *t)
{
    const Stage *stage = st->stage;
    const Expr *x = stage->value[0];
    if (strcmp(stage->reducer->name, "sum") || x->kind != EX_MUL ||
        stage->axis_count != 4 || stage->reduce_count != 1 ||
        x->arg[0]->kind != EX_READ || x->arg[1]->kind != EX_READ ||
        x->arg[0]->buffer->role != BUF_TEMP || x->arg[0]->count != 4 ||
        !x->arg[1]->buffer->is_constant || x->arg[1]->count != 4)
        return false;
    t->weights = x->arg[1]->buffer;
    for (int i = 0; i < 4; i++) {
        const Var *left = i < 3 ? stage->axis[i].var : stage->reduce[0].var;
        const Var *right =
            i < 3 ? stage->axis[i + 1].var : stage->reduce[0].var;
        if (look_index_of(x->arg[0], left) != i ||
            look_index_of(x->arg[1], right) != i)
            return false;
    }
    return true;
}

static bool find_stages(const Schedule *s, Tiles *t)
{
    for (int i = 0; i < s->stages.count; i++) {
        StageState *st = s->stages.data[i];
        if (!st->stage->reduce_count || st->is_inlined)
            continue;
        if (t->products || !is_batch_of_products(st, t))
            return false;
        t->products = st;
    }
    if (!t->products)
        return false;
    t->points = feeder(s, t->products);
    t->rows = t->points ? feeder(s, t->points) : NULL;
    t->sums = reader(s, t->products);
    t->pixels = t->sums ? reader(s, t->sums) : NULL;
    return t->rows && t->pixels && t->pixels->stage->out[0]->role == BUF_TEMP;
}

static const Expr *read_of(const Expr *x, const Buffer *buffer)
{
    const Expr *found = x->kind == EX_READ && x->buffer == buffer ? x : NULL;
    for (int i = 0; i < x->count && !found; i++)
        found = read_of(x->arg[i], buffer);
    return found;
}

/* The axis of the output that `x` is, or its place in a tile; an index of a
 * single element is just 0, and -1 then. */
static bool find_axis(const Tiles *t, const Expr *x, bool in_tile, int *axis)
{
    const Stage *out = t->out->stage;
    *axis = -1;
    if (expr_is_int(x, 0))
        return true;
    if (in_tile) {
        if (x->kind != EX_MOD || !expr_is_int(x->arg[1], t->m))
            return false;
        x = x->arg[0];
    }
    for (int i = 0; i < out->axis_count; i++)
        if (x->kind == EX_VAR && out->axis[i].var == x->var)
            *axis = i;
    return *axis >= 0;
}

/* Where the output's elements are among the pixels of tiles. */
static bool find_axes(Tiles *t)
{
    const Stage *out = t->out->stage;
    const Expr *read = read_of(out->value[0], t->pixels->stage->out[0]);
    if (!read || out->axis_count != 4)
        return false;
    t->m = t->pixels->stage->axis[1].extent;
    const int64_t *dims = t->pixels->stage->out[0]->dims;
    if (dims[2] != t->m || !find_axis(t, read->arg[1], true, &t->row) ||
        !find_axis(t, read->arg[2], true, &t->column) ||
        !find_axis(t, read->arg[3], false, &t->channel))
        return false;
    int *const axes[] = {&t->row, &t->column, &t->channel};
    for (int k = 0; k < 3; k++)
        for (int i = 3; i >= 0 && *axes[k] < 0; i--)
            if (out->axis[i].extent == 1 && i != t->row && i != t->column &&
                i != t->channel)
                *axes[k] = i;
    t->image = 6 - t->row - t->column - t->channel;
    if (t->row < 0 || t->column < 0 || t->channel < 0)
        return false;
    t->grid_rows = (out->axis[t->row].extent + t->m - 1) / t->m;
    t->grid_columns = (out->axis[t->column].extent + t->m - 1) / t->m;
    return dims[0] ==
           out->axis[t->image].extent * t->grid_rows * t->grid_columns;
}

/* Everything that is no stage of tiles becomes part of the output. */
static bool inline_rest(Schedule *s, const Tiles *t)
{
    for (int i = 0; i < s->stages.count; i++) {
        StageState *st = s->stages.data[i];
        if (st->is_inlined || st == t->rows || st == t->points ||
            st == t->products || st == t->sums || st == t->pixels ||
            st->stage->out[0]->role == BUF_OUTPUT)
            continue;
        if (!schedule_inline(s, st->stage->name))
            return false;
    }
    return true;
}

static bool analyse(Look *look, Tiles *t)
{
    Schedule *s = look->s;
    if (!find_stages(s, t))
        return false;
    for (int i = 0; i < s->stages.count; i++) {
        StageState *st = s->stages.data[i];
        if (st->stage->value_count != 1)
            return false;
        for (int k = 0; k < st->stage->axis_count; k++)
            if (st->stage->axis[k].limit || !st->stage->axis[k].extent)
                return false;
        if (st->stage->out[0]->role != BUF_OUTPUT)
            continue;
        if (t->out)
            return false;
        t->out = look->out = st;
    }
    return t->out && t->out != t->products;
}

/* ---- blocks ------------------------------------------------------------ */

enum { MOST_PIXELS = 28, MOST_VECTORS = 8 };

/* Of the second level cache, what a block may fill. */
static const double most_scratch = 0.7;

/* How much longer two threads take than half the time of one. */
static double imbalance(int64_t pieces)
{
    return (double)((pieces + 1) / 2 * 2) / (double)pieces;
}

typedef struct Costs {
    double depth, point_count;
    int64_t vectors, tiles, images;
    double points_bytes, products_bytes, weight_bytes; /* of a tile, all */
} Costs;

static Costs costs_of(const Look *look, const Tiles *t)
{
    const Stage *products = t->products->stage;
    Costs c = {.depth = (double)products->reduce[0].extent,
               .tiles = products->axis[0].extent,
               .images = t->out->stage->axis[t->image].extent};
    int64_t channels = products->axis[3].extent;
    c.point_count =
        (double)(products->axis[1].extent * products->axis[2].extent);
    c.vectors = (channels + look->lanes - 1) / look->lanes;
    c.points_bytes = 4 * c.point_count * c.depth;
    c.weight_bytes = c.points_bytes * (double)channels;
    c.products_bytes = 4 * c.point_count * (double)look->lanes;
    return c;
}

/* Pieces of two sizes are computed in nests, and in scratch, of their own. */
static int64_t copies(int64_t extent, int64_t piece)
{
    return extent % piece ? 2 : 1;
}

static int64_t row_copies(const Tiles *t, int64_t rows)
{
    return copies(t->out->stage->axis[t->row].extent, rows * t->m);
}

/* Columns of a block of `rows` rows: all, or a part of a single row where a
 * whole one does not fit. */
static int64_t block_columns(const Look *look, const Tiles *t, const Costs *c,
                             int64_t rows)
{
    double tile = (double)row_copies(t, rows) *
                  (c->points_bytes + 2 * c->products_bytes);
    double most = most_scratch * (double)look->target->l2_bytes / tile;
    if (rows > 1 || most >= (double)t->grid_columns)
        return t->grid_columns;
    int64_t pieces =
        (int64_t)ceil((double)t->grid_columns / fmax(most / 2, 1));
    return (t->grid_columns + pieces - 1) / pieces;
}

/* A tile of `pixels` by `vectors` in blocks of `rows` rows of tiles. */
static bool tile_fits(const Look *look, const Tiles *t, const Costs *c,
                      int64_t rows, int64_t pixels, int64_t vectors)
{
    double l2 = (double)look->target->l2_bytes;
    int64_t tiles = rows ? rows * block_columns(look, t, c, rows) : c->tiles;
    /* Panels of one size, which threads can share. */
    if (pixels > tiles || vectors > c->vectors ||
        pixels * vectors + vectors > look->target->tile_registers ||
        (!rows && c->vectors % vectors))
        return false;
    /* Of two pieces that differ, each is straight code in one loop over the
     * points, for which registers do not suffice. */
    if (tiles % 2 && (tiles + pixels - 1) / pixels == 2)
        return false;
    double points = (double)tiles * c->points_bytes;
    double products = (double)(tiles * vectors) * c->products_bytes;
    /* What a thread has on its stack. */
    double local = products * (double)copies(c->vectors, vectors);
    if (rows)
        local = (local + points) * (double)row_copies(t, rows);
    return local <= most_scratch * l2 || (tiles == 1 && vectors == 1);
}

/* Cycles of all products with the tile that is best for blocks of `rows` rows
 * of tiles (0: panels outside), *pixels tiles by *vectors vectors; INFINITY
 * where a block does not fit. */
static double block_cost(const Look *look, const Tiles *t, const Costs *c,
                         int64_t rows, int64_t *pixels, int64_t *vectors)
{
    const double bytes_per_cycle = 6.5;
    double l2 = (double)look->target->l2_bytes, best = INFINITY;
    int64_t tiles = rows ? rows * block_columns(look, t, c, rows) : c->tiles;
    double blocks = (double)c->tiles / (double)tiles;
    for (int64_t v = 1; v <= MOST_VECTORS && v <= c->vectors; v++)
        for (int64_t p = 1; p <= MOST_PIXELS && p <= tiles; p++) {
            if (!tile_fits(look, t, c, rows, p, v) ||
                !look_allows(look, "pixels", p) ||
                !look_allows(look, "vectors", v))
                continue;
            int64_t panels = (c->vectors + v - 1) / v;
            double points = (double)tiles * c->points_bytes;
            double products = (double)(tiles * v) * c->products_bytes;
            double stream = c->weight_bytes;
            if (rows)
                stream = stream > l2 / 2 ? stream * blocks : 0;
            else if (points + products > 0.8 * l2)
                stream += (double)(panels + 1) * points;
            double cycles =
                blocks * c->point_count *
                look_product_cost(look, c->depth, tiles, c->vectors, p, v);
            cycles += stream / bytes_per_cycle;
            /* Even within the cache, less is nearer. */
            cycles *= 1 + 0.3 * fmin((points + products) / l2, 1);
            int64_t shared =
                rows ? t->grid_rows / rows * c->images : c->vectors / v;
            cycles *= 0.5 + 0.5 * imbalance(shared);
            if (cycles < best * 0.999) {
                best = cycles;
                *pixels = p;
                *vectors = v;
            }
        }
    return best;
}

/* Asks for one side of the tile: what some tile has. */
static int64_t ask_side(Look *look, const Tiles *t, const Costs *c,
                        bool is_pixels, int64_t usual)
{
    int64_t values[MOST_PIXELS + MOST_VECTORS];
    int64_t most = is_pixels ? MOST_PIXELS : MOST_VECTORS;
    int64_t most_other = is_pixels ? MOST_VECTORS : MOST_PIXELS;
    int count = 0;
    for (int64_t i = 1; i <= most; i++) {
        bool fits = false;
        for (int64_t k = 1; k <= most_other && !fits; k++)
            for (int64_t r = 0; r <= t->grid_rows && !fits; r++)
                fits = (!r || t->grid_rows % r == 0) &&
                       tile_fits(look, t, c, r, is_pixels ? i : k,
                                 is_pixels ? k : i);
        if (fits)
            values[count++] = i;
    }
    return look_knob(look, is_pixels ? "pixels" : "vectors", usual, values,
                     count);
}

/* Blocks of one size are shared best, and each block reads all weights. */
static bool choose_block(Look *look, Tiles *t)
{
    enum { MOST_CANDIDATES = 16 };
    Costs c = costs_of(look, t);
    int64_t rows[MOST_CANDIDATES], pixels, vectors, usual = 0;
    double best = INFINITY;
    int count = 0;
    for (int64_t r = 0; r <= t->grid_rows && count < MOST_CANDIDATES; r++) {
        if (r && t->grid_rows % r)
            continue;
        double cost = block_cost(look, t, &c, r, &pixels, &vectors);
        if (cost == INFINITY)
            continue;
        rows[count++] = r;
        if (cost < best) {
            best = cost;
            usual = r;
        }
    }
    t->block = look_knob(look, "block", usual, rows, count);
    pixels = vectors = 1;
    double cost = block_cost(look, t, &c, t->block, &pixels, &vectors);
    t->tile = ask_side(look, t, &c, true, pixels);
    t->panel = ask_side(look, t, &c, false, vectors) * look->lanes;
    if (cost == INFINITY)
        return look_refuse(look, "no such tile fits the registers");
    t->across =
        t->block ? block_columns(look, t, &c, t->block) : t->grid_columns;
    for (int i = 0; i < count; i++) {
        Choice choice = {0};
        if (block_cost(look, t, &c, rows[i], &pixels, &vectors) == INFINITY)
            continue;
        choice_set(&choice, "block", rows[i]);
        choice_set(&choice, "pixels", pixels);
        choice_set(&choice, "vectors", vectors);
        vec_push(look->s->arena, &look->log.proposals, choice);
    }
    return !look->refused;
}

/* ---- stages ------------------------------------------------------------ */

static const char *axis_name(const StageState *st, int axis)
{
    return st->roots.data[axis]->name;
}

/* A transform of one vector of channels of a tile: `first` and `second` are
 * its axes within the tile, in this order, written out. */
static bool unroll_transform(Look *look, const StageState *st, int first,
                             int second)
{
    Schedule *s = look->s;
    const char *name = st->stage->name;
    const char *names[] = {axis_name(st, 0), axis_name(st, first),
                           axis_name(st, second), axis_name(st, 3)};
    return schedule_reorder(s, name, look_order(look, names, 4)) &&
           schedule_unroll(s, name, names[1]) &&
           schedule_unroll(s, name, names[2]) &&
           schedule_vectorize(s, name, names[3]) && look_contract(look, st);
}

/* The order of a buffer of tiles: a matrix for each point. */
static bool pack_points(Look *look, const StageState *st)
{
    const int order[] = {1, 2, 0, 3};
    return schedule_pack(look->s, st->stage->out[0]->name,
                         layout_permuted(4, order));
}

static bool schedule_points(Look *look, const Tiles *t)
{
    Schedule *s = look->s;
    const StageState *st = t->points;
    const char *name = st->stage->name;
    const char *channel = axis_name(st, 3);
    if (!pack_points(look, st) ||
        !schedule_split(s, name, channel, look->lanes))
        return false;
    const char *attach = arena_printf(s->arena, "%s.o", channel);
    const char *inner = arena_printf(s->arena, "%s.i", channel);
    const char *names[] = {axis_name(st, 0), attach, axis_name(st, 1),
                           axis_name(st, 2), inner};
    if (!schedule_reorder(s, name, look_order(look, names, 5)) ||
        !schedule_unroll(s, name, names[2]) ||
        !schedule_unroll(s, name, names[3]) ||
        !schedule_vectorize(s, name, inner) || !look_contract(look, st) ||
        !unroll_transform(look, t->rows, 2, 1) ||
        !schedule_compute_at(s, t->rows->stage->name, name, attach) ||
        !schedule_set_scope(s, t->rows->stage->name, SCOPE_REGISTER))
        return false;
    return t->block || look->work < PARALLEL_WORK ||
           st->stage->axis[0].extent < 2 ||
           schedule_parallel(s, name, names[0]);
}

/* The product in registers, for one tile of `products`. */
static bool schedule_register_tile(Look *look, const Tiles *t,
                                   const StageState *acc, const char *attach)
{
    Schedule *s = look->s;
    const char *name = acc->stage->name;
    const char *depth = axis_name(acc, 4);
    const int64_t unroll = 4;
    const char *names[6] = {axis_name(acc, 1), axis_name(acc, 2)};
    int n = 2;
    const char *inner = depth;
    if (acc->stage->reduce[0].extent > unroll) {
        if (!schedule_split(s, name, depth, unroll))
            return false;
        names[n++] = arena_printf(s->arena, "%s.o", depth);
        inner = arena_printf(s->arena, "%s.i", depth);
    }
    names[n++] = inner;
    names[n++] = axis_name(acc, 0);
    names[n++] = axis_name(acc, 3);
    if (!schedule_reorder(s, name, look_order(look, names, n)) ||
        !schedule_unroll(s, name, inner) ||
        !schedule_unroll(s, name, axis_name(acc, 0)) ||
        !schedule_vectorize(s, name, axis_name(acc, 3)))
        return false;
    if (inner != depth &&
        !schedule_prefetch(s, name, t->weights->name, names[2],
                           acc->stage->reduce[0].extent * t->panel,
                           unroll * t->panel))
        return false;
    return schedule_compute_at(s, name, t->products->stage->name, attach) &&
           schedule_set_scope(s, name, SCOPE_REGISTER) &&
           look_contract(look, acc);
}

/* For the channels of a panel of the output: point by point, panels of weights
 * by tiles. */
static bool schedule_products(Look *look, const Tiles *t)
{
    Schedule *s = look->s;
    const StageState *st = t->products;
    const char *name = st->stage->name;
    /* Read from the first to the last weight. */
    Layout order = {.count = 5,
                    .dim = {{2, 0}, {0, 0}, {1, 0}, {3, 0}, {2, t->panel}}};
    if (!schedule_pack(s, t->weights->name, order) ||
        !schedule_cache(s, name) || !pack_points(look, st))
        return false;
    const StageState *acc =
        schedule_stage(s, arena_printf(s->arena, "%s_acc", name));
    const char *tile = axis_name(st, 0);
    if (!schedule_split_even(s, name, tile, t->tile))
        return false;
    const char *attach = arena_printf(s->arena, "%s.o", tile);
    const char *pixel = arena_printf(s->arena, "%s.i", tile);
    const char *names[] = {axis_name(st, 1), axis_name(st, 2), attach, pixel,
                           axis_name(st, 3)};
    return schedule_reorder(s, name, look_order(look, names, 5)) &&
           schedule_unroll(s, name, pixel) &&
           schedule_vectorize(s, name, names[4]) &&
           schedule_register_tile(look, t, acc, attach);
}

/* The loops of the output around its tiles. */
typedef struct Loops {
    const char *block, *panel, *vector; /* `block` is NULL without blocks */
} Loops;

static bool order_output(Look *look, const Tiles *t, Loops *loops)
{
    Schedule *s = look->s;
    const StageState *st = t->out;
    const char *name = st->stage->name;
    const char *image = axis_name(st, t->image);
    const char *row = axis_name(st, t->row);
    const char *column = axis_name(st, t->column);
    const char *channel = axis_name(st, t->channel);
    const char *names[10];
    int n = 0;
    bool has_images = st->stage->axis[t->image].extent > 1;
    loops->panel = arena_printf(s->arena, "%s.o", channel);
    if (!schedule_split(s, name, channel, t->panel))
        return false;
    channel = arena_printf(s->arena, "%s.i", channel);
    if (t->block) {
        loops->block = arena_printf(s->arena, "%s.o", row);
        if (!schedule_split(s, name, row, t->block * t->m))
            return false;
        row = arena_printf(s->arena, "%s.i", row);
        if (has_images)
            names[n++] = image;
        names[n++] = loops->block;
    }
    bool is_cut = t->across < t->grid_columns;
    if (is_cut) {
        if (!schedule_split(s, name, column, t->across * t->m))
            return false;
        names[n++] = loops->block = arena_printf(s->arena, "%s.o", column);
        column = arena_printf(s->arena, "%s.i", column);
    }
    if (!schedule_split(s, name, row, t->m) ||
        !schedule_split(s, name, column, t->m) ||
        !schedule_split(s, name, channel, look->lanes))
        return false;
    names[n++] = loops->panel;
    if (!t->block || !has_images)
        names[n++] = image;
    names[n++] = arena_printf(s->arena, "%s.o", row);
    names[n++] = arena_printf(s->arena, "%s.o", column);
    names[n++] = loops->vector = arena_printf(s->arena, "%s.o", channel);
    int inner = n;
    names[n++] = arena_printf(s->arena, "%s.i", row);
    names[n++] = arena_printf(s->arena, "%s.i", column);
    names[n++] = arena_printf(s->arena, "%s.i", channel);
    if (!schedule_reorder(s, name, look_order(look, names, n)) ||
        !schedule_vectorize(s, name, names[n - 1]))
        return false;
    /* A costly epilogue loops over a tile in memory. */
    for (int i = inner; i < n - 1 && !t->is_costly; i++)
        if (!schedule_unroll(s, name, names[i]))
            return false;
    const char *first = names[0];
    int64_t rows = st->stage->axis[t->row].extent;
    if (t->block && has_images && rows % (t->block * t->m) == 0) {
        if (!schedule_fuse(s, name, image, names[1]))
            return false;
        first = arena_printf(s->arena, "%s*%s", image, names[1]);
        if (!is_cut)
            loops->block = first;
    }
    return look->work < PARALLEL_WORK || st->leaves.data[0]->extent < 2 ||
           schedule_parallel(s, name, first);
}

static bool schedule_output(Look *look, const Tiles *t, const Loops *loops)
{
    Schedule *s = look->s;
    const char *name = t->out->stage->name;
    const char *sums = t->sums->stage->name, *pixels = t->pixels->stage->name;
    return unroll_transform(look, t->sums, 2, 1) &&
           unroll_transform(look, t->pixels, 1, 2) &&
           schedule_compute_at(s, sums, name, loops->vector) &&
           schedule_set_scope(s, sums, SCOPE_REGISTER) &&
           schedule_compute_at(s, pixels, name, loops->vector) &&
           (t->is_costly || schedule_set_scope(s, pixels, SCOPE_REGISTER));
}

bool template_winograd(Look *look, bool *fits)
{
    Tiles t = {0};
    Loops loops = {0};
    Schedule *s = look->s;
    if (!analyse(look, &t)) {
        look->out = NULL;
        return true;
    }
    if (!inline_rest(s, &t) || !find_axes(&t))
        return false;
    *fits = true;
    const char *out = t.out->stage->name;
    t.is_costly = look_is_costly(t.out->stage->value[0]);
    return choose_block(look, &t) && schedule_points(look, &t) &&
           schedule_products(look, &t) && order_output(look, &t, &loops) &&
           schedule_output(look, &t, &loops) &&
           schedule_compute_at(s, t.products->stage->name, out, loops.panel) &&
           (!t.block ||
            schedule_compute_at(s, t.points->stage->name, out, loops.block));
}
