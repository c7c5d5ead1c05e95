/* The cost model of register tiles, and the search for the best. See tile.h.
 */
#include "schedules/tile.h"

#include <math.h>

/* Cycles of one tile. A step of the reduction is bound by multiply-adds,
 * loads, the latency of the chain, or what comes from the second level
 * cache; entering and leaving a tile costs the rest. */
static double tile_cost(const Look *look, double depth, int64_t pixels,
                        int64_t vectors)
{
    const double l2_bytes_per_cycle = 16, chain = 4, loop = 0.5;
    double bytes = (double)(vectors * look->target->vector_bytes + pixels * 4);
    double step = (double)(pixels * vectors) / 2;
    step = fmax(step, (double)(pixels + vectors) / 2);
    if (depth * bytes > (double)look->target->l1_bytes)
        step = fmax(step, bytes / l2_bytes_per_cycle);
    step = fmax(step, chain) + loop;
    return depth * step + 30 + 2.0 * (double)(pixels * vectors);
}

/* A tile that has not all channels ends a stretch of the output's memory
 * with each pixel. Outputs that do not stay in the second level cache take
 * the longer for it. */
static double stretch_cost(const Look *look)
{
    const Stage *out = look->out->stage;
    double bytes = 4;
    for (int i = 0; i < out->axis_count; i++)
        bytes *= (double)out->axis[i].extent;
    return bytes > (double)look->target->l2_bytes ? 8 : 1;
}

Pieces pieces_of(int64_t extent, int64_t most)
{
    int64_t count = (extent + most - 1) / most, size = extent / count;
    return (Pieces){extent % count, size, count - extent % count};
}

/* The whole output, for a tile of at most `t`; `stretch` cycles for each
 * pixel of a tile without all channels. */
static double output_cost(const Look *look, double depth, int64_t rows,
                          int64_t pixels, int64_t vectors, Tile t,
                          double stretch)
{
    Pieces r = pieces_of(rows, t.rows), p = pieces_of(pixels, t.pixels);
    double cost = 0;
    bool is_whole = t.vectors >= vectors;
    for (int64_t at = 0; at < vectors; at += t.vectors) {
        int64_t n = vectors - at < t.vectors ? vectors - at : t.vectors;
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < 2; k++) {
                int64_t count =
                    (i ? r.larger : r.smaller) * (k ? p.larger : p.smaller);
                int64_t in_tile = (r.size + i) * (p.size + k);
                if (count)
                    cost += (double)count *
                            (tile_cost(look, depth, in_tile, n) +
                             (is_whole ? 0 : stretch * (double)in_tile));
            }
    }
    return cost;
}

double look_product_cost(const Look *look, double depth, int64_t pixels,
                         int64_t vectors, int64_t tile_pixels,
                         int64_t tile_vectors)
{
    return output_cost(look, depth, 1, pixels, vectors,
                       (Tile){1, tile_pixels, tile_vectors}, 0);
}

enum { MOST_PROPOSED = 8, MOST_PIXELS = 32, MOST_ROWS = 4, MOST_VECTORS = 8 };

/* The search for a tile. */
typedef struct Search {
    int64_t rows, pixels, vectors; /* of the output */
    Tile best;
    double least;
    /* The best ones by the cost model, in order. */
    Tile tile[MOST_PROPOSED];
    double cost[MOST_PROPOSED];
    int count;
    /* What some tile has. */
    bool has_rows[MOST_ROWS + 1], has_pixels[MOST_PIXELS + 1];
    bool has_vectors[MOST_VECTORS + 1];
} Search;

/* How much longer it takes because threads find too few tiles to share. */
static double sharing_cost(const Look *look, const Search *s, Tile t)
{
    const int64_t enough = 4;
    int64_t tiles = ((s->rows + t.rows - 1) / t.rows) *
                    ((s->pixels + t.pixels - 1) / t.pixels) *
                    ((s->vectors + t.vectors - 1) / t.vectors);
    if (look->work < PARALLEL_WORK || tiles >= enough)
        return 1;
    return (double)enough / (double)tiles;
}

/* Tiles that divide the output alike are one. */
static bool is_same_division(const Search *s, Tile a, Tile b)
{
    return a.vectors == b.vectors &&
           (s->pixels + a.pixels - 1) / a.pixels ==
               (s->pixels + b.pixels - 1) / b.pixels &&
           (s->rows + a.rows - 1) / a.rows == (s->rows + b.rows - 1) / b.rows;
}

static void rank_tile(Search *s, Tile tile, double cost)
{
    if (s->least == 0 || cost < s->least * 0.999) {
        s->least = cost;
        s->best = tile;
    }
    int at = s->count;
    for (int i = 0; i < s->count; i++)
        if (is_same_division(s, tile, s->tile[i]))
            return;
    while (at > 0 && cost < s->cost[at - 1])
        at--;
    if (at == MOST_PROPOSED)
        return;
    if (s->count < MOST_PROPOSED)
        s->count++;
    for (int i = s->count - 1; i > at; i--) {
        s->tile[i] = s->tile[i - 1];
        s->cost[i] = s->cost[i - 1];
    }
    s->tile[at] = tile;
    s->cost[at] = cost;
}

/* Sums and weights. Beside a single vector of weights each element of the data
 * has one use, and with few registers compilers let its product take its
 * place: sums then wander from register to register, and need more of them. */
static int64_t needed_registers(const Look *look, int64_t pixels,
                                int64_t vectors)
{
    const int64_t few = 16;
    bool wanders = vectors == 1 && look->target->vector_registers <= few;
    return pixels * vectors + vectors + (wanders ? pixels / 2 : 0);
}

static void search_tiles(const Look *look, double depth, Search *s)
{
    const double stretch = stretch_cost(look);
    int64_t registers = look->target->tile_registers;
    const int64_t most_joined = 16;
    for (int64_t v = 1; v <= MOST_VECTORS && v <= s->vectors; v++)
        for (int64_t r = 1; r <= MOST_ROWS && r <= s->rows; r++)
            for (int64_t t = 1; t <= MOST_PIXELS && t <= s->pixels; t++) {
                /* Not many pixels of several rows: those of a power-of-two
                 * distance share few sets of the first level cache. */
                if (needed_registers(look, r * t, v) > registers ||
                    (r > 1 && r * t > most_joined))
                    continue;
                s->has_rows[r] = s->has_pixels[t] = s->has_vectors[v] = true;
                Tile tile = {r, t, v};
                if (look_allows(look, "vectors", v) &&
                    look_allows(look, "rows", r) &&
                    look_allows(look, "pixels", t))
                    rank_tile(s, tile,
                              output_cost(look, depth, s->rows, s->pixels,
                                          s->vectors, tile, stretch) *
                                  sharing_cost(look, s, tile));
            }
}

static int64_t ask(Look *look, const char *name, int64_t usual,
                   const bool *has, int most)
{
    int64_t values[MOST_PIXELS + 1];
    int count = 0;
    for (int i = 1; i <= most; i++)
        if (has[i])
            values[count++] = i;
    return look_knob(look, name, usual, values, count);
}

bool tile_choose(Look *look, double depth, int64_t rows, int64_t pixels,
                 int64_t vectors, Tile *tile)
{
    Search s = {
        .rows = rows, .pixels = pixels, .vectors = vectors, .best = {1, 1, 1}};
    search_tiles(look, depth, &s);
    Tile t = s.best;
    tile->rows = ask(look, "rows", t.rows, s.has_rows, MOST_ROWS);
    tile->pixels = ask(look, "pixels", t.pixels, s.has_pixels, MOST_PIXELS);
    tile->vectors =
        ask(look, "vectors", t.vectors, s.has_vectors, MOST_VECTORS);
    if (!s.count)
        return look_refuse(look, "no such tile fits the registers");
    for (int i = 0; i < s.count; i++) {
        Choice choice = {0};
        choice_set(&choice, "rows", s.tile[i].rows);
        choice_set(&choice, "pixels", s.tile[i].pixels);
        choice_set(&choice, "vectors", s.tile[i].vectors);
        vec_push(look->s->arena, &look->log.proposals, choice);
    }
    return !look->refused;
}
