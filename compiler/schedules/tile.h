/* Register tiles of products: what one costs, and which to take. */
#ifndef ASSAY_SCHEDULES_TILE_H
#define ASSAY_SCHEDULES_TILE_H

#include "schedules/templates.h"

/* The register tile: `rows` rows of `pixels` pixels times `vectors`
 * vectors. */
typedef struct Tile {
    int64_t rows, pixels, vectors;
} Tile;

/* Pieces of an axis as equal as can be. */
typedef struct Pieces {
    int64_t larger, size, smaller; /* `larger` of size + 1, the rest size */
} Pieces;

/* Of at most `most` each. */
Pieces pieces_of(int64_t extent, int64_t most);
/* The tile that costs least over an output of so many rows, pixels and vectors
 * of channels, with sums of `depth` products; knobs may say otherwise. The
 * best ones become proposals. False when chosen values do not go together. */
bool tile_choose(Look *look, double depth, int64_t rows, int64_t pixels,
                 int64_t vectors, Tile *tile);
/* Cycles that a product of `pixels` by `vectors` vectors of channels takes,
 * which sums `depth` terms, in register tiles of at most that size. */
double look_product_cost(const Look *look, double depth, int64_t pixels,
                         int64_t vectors, int64_t tile_pixels,
                         int64_t tile_vectors);

#endif
