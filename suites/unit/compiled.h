/* Test support: a graph through the compiler and run in this process, beside
 * the reference on the source graph. */
#ifndef ASSAY_UNIT_COMPILED_H
#define ASSAY_UNIT_COMPILED_H

#include "passes/passes.h"
#include "program/program.h"

typedef struct Compiled {
    Arena *arena;
    Diag *diag;
    Graph *source; /* as parsed */
    Graph *graph;  /* after the passes */
    Program *program;
    const Target *target;
    Array *const *inputs; /* NULL: made by a fixed sequence */
    /* Of program->symbols, for the next run; NULL: their upper bounds. Then
     * inputs and outputs are arrays of these extents. */
    const int64_t *dims;
    int64_t refused; /* by the last run: AssayRun.extents */
} Compiled;

/* Parses the text; inputs of unknown content get values from a fixed
 * sequence. Fails the test with the diagnostics. */
Graph *graph_from_text(Arena *arena, const char *text);
/* Runs the passes on a copy. `options` may be NULL: -O2, verified. */
Compiled compile_text(Arena *arena, const char *text, const char *target,
                      const PassOptions *options, bool naive);
Compiled compile_graph(Arena *arena, Graph *source, const char *target,
                       const PassOptions *options, bool naive);
/* Inputs of a graph by a fixed sequence, where the names have these values
 * (count of them) or their upper bounds. */
Array **input_arrays(Arena *arena, const Graph *g, const ExtentValue *names,
                     int count);
/* Every step through kernel_interpret; returns the outputs, row-major. */
Array **run_interpreted(Compiled *c);
/* A shared object of the program in `dir`, by the C or the LLVM backend (for
 * the target it was compiled for); dlclose it. */
void *load_compiled(Compiled *c, const char *dir, bool in_c);
/* The same through it. */
Array **run_loaded(Compiled *c, void *library);
Array **run_compiled_c(Compiled *c, const char *dir);
/* Every node of the source graph through its oracle. `inputs` may be NULL:
 * values of a fixed sequence. */
Array **run_reference(Arena *arena, const Graph *source, Array *const *inputs);
/* |a - b| <= tolerance * (rms(b) + |b|), integers exactly. */
void check_close(const char *what, const Array *got, const Array *want,
                 double tolerance);

#endif
