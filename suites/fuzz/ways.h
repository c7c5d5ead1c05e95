/* A graph through the compiler in many ways: plain and scheduled loops in the
 * interpreter, machine code, C, and whole artifacts. All must give what the
 * reference gives; a fault prints the graph and aborts. */
#ifndef ASSAY_SUITES_FUZZ_WAYS_H
#define ASSAY_SUITES_FUZZ_WAYS_H

#include "suites/fuzz/agree.h"
#include "suites/fuzz/random_graph.h"

enum { MOST_SYMBOLS = 8 };

typedef struct Job {
    Graph *graph;
    Array **inputs;
    Agreement agreement;
    int64_t dims[MOST_SYMBOLS]; /* of graph->symbols, in this run */
} Job;

/* Chooses the dimensions and makes the inputs. False when the reference
 * refuses the graph or says nothing of it. */
bool job_start(Job *job, Arena *arena, Graph *g, const RandomGraph *about,
               Choices *c);
/* Some ways, by choice; a graph takes most of a second in all of them. */
void job_run_some(Job *job, Choices *c);
/* All. False, in silence, when one of them refuses the graph. */
bool job_run_all(Job *job);

#endif
