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

/* What is not in the graph. */
typedef struct RandomGraph {
    /* Floats are small multiples of 1/4: sums and products are exact. */
    bool dyadic;
} RandomGraph;

/* A chain and branches of operators of all families, of every element type,
 * some with named extents, empty tensors or bodies; then some changes that no
 * family makes. Unused results are outputs, and some that are used. False when
 * nothing came of the choices. */
bool random_graph(Graph *g, Choices *c, RandomGraph *about);
/* The same in an empty graph. */
bool random_graph_copy(Graph *to, const Graph *from);
/* Its inputs, where the names of extents have these values. */
Array **random_inputs(Arena *arena, const Graph *g, const RandomGraph *about,
                      const ExtentValue *names, int count);

#endif
