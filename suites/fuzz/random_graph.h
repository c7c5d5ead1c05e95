/* Valid graphs from arbitrary bytes: each byte is a choice. */
#ifndef ASSAY_SUITES_FUZZ_RANDOM_GRAPH_H
#define ASSAY_SUITES_FUZZ_RANDOM_GRAPH_H

#include "graph/graph.h"

typedef struct Choices {
    const uint8_t *data;
    size_t size, at;
} Choices;

/* In 0 .. count - 1; 0 once the bytes are used up. */
int choose(Choices *c, int count);

/* Inputs "x0", ..., one to three; a chain and branches of operators that
 * fuse, reduce, move and window, with odd shapes; every unused result is an
 * output. False when a choice did not fit the types: the graph is then of no
 * use. */
bool random_graph(Graph *g, Choices *c);

#endif
