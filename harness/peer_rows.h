/* What is made of rows of peers: JSON, geometric means, a table. */
#ifndef ASSAY_HARNESS_PEER_ROWS_H
#define ASSAY_HARNESS_PEER_ROWS_H

#include <stdio.h>

#include "harness/peers.h"
#include "harness/results.h"

/* Of the ratios of one engine at one number of threads, over the models that
 * were measured. */
typedef struct PeerMean {
    const char *engine;
    int threads;
    int models;        /* measured */
    Ratio ratio;       /* geometric mean; the interval is that of rows that
                        * are independent; NaN where a row has none */
    const char *worst; /* the model of the least ratio */
    double least;      /* that ratio */
} PeerMean;

/* In the order of the rows; those without any measured row are left out.
 * How many; in the arena. */
int peer_means(Arena *arena, const PeerRow *rows, int count, PeerMean **means);

/* Adds a row to `rows` and to the `cases` of a document of results, which
 * results_new made. */
void results_add_peer(json_t *results, const PeerRow *row);
/* Sets its `summary`. */
void results_set_peer_means(json_t *results, const PeerMean *means, int count);

void peer_rows_print(Arena *arena, FILE *file, const PeerRow *rows, int count);

#endif
