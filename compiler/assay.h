/* Assay's public C interface: load a model, compile it, look inside.
 *
 * Errors: functions that can fail return false or NULL and leave one or
 * more messages, which assay_errors returns. Ownership: everything handed
 * out belongs to the AssayCompiler and lives until assay_free. Not thread
 * safe; use one AssayCompiler a thread. */
#ifndef ASSAY_H
#define ASSAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"

typedef struct AssayCompiler AssayCompiler;

typedef struct AssayDim {
    const char *name;
    int64_t value;
    /* Above `value`: what runs may have any number from `value` to this one
     * instead. Otherwise 0. */
    int64_t upper;
} AssayDim;

typedef struct AssayOptions {
    const char *target; /* NULL: native */
    int opt_level;      /* 0, 1, 2 */
    bool naive;         /* --schedule naive */
    bool taps;          /* keep every tensor for comparison */
    /* LLVM's address or thread sanitizer over the kernels; the runner must
     * be built with the same one. */
    bool sanitize, sanitize_threads;
    const char *const *disabled; /* passes; ends with NULL; may be NULL */
    const char *const *no_fuse;  /* node names; ends with NULL */
    /* The way to compute nodes that have several ("direct", "winograd4"),
     * where it applies; NULL or "auto": the cheapest on the target. Below
     * level 2, and with naive schedules, they are computed as they stand. */
    const char *algorithm;
    const char *dump_after, *stop_after;
    bool time_passes, verify;
    int jobs;             /* kernels compiled at once; 0: all cores */
    const AssayDim *dims; /* --dim NAME=VALUE or NAME=LOW..HIGH */
    int dim_count;
    /* A log of choices (schedules/choices.h) to follow, or NULL. */
    const char *choices;
} AssayOptions;

struct Graph;
struct Program;

AssayCompiler *assay_new(void);
void assay_free(AssayCompiler *compiler);
/* Memory that lives as long as the compiler. */
Arena *assay_arena(AssayCompiler *compiler);
/* Adds a user's own operators (rows of ops/op.h, ending with NULL), which
 * are looked up before those that there are. Before a model is loaded. */
struct Op;
void assay_add_ops(AssayCompiler *compiler, const struct Op *const *ops);
/* All messages so far, one a line, or "". */
const char *assay_errors(const AssayCompiler *compiler);

/* A value that makes an input a constant. */
typedef struct AssayBind {
    const char *name;
    const Array *value; /* must outlive the compiler */
} AssayBind;

typedef struct AssayLoad {
    const AssayDim *dims; /* values of named dimensions */
    int dim_count;
    const AssayBind *binds;
    int bind_count;
} AssayLoad;

/* Reads an ONNX file. `load` may be NULL. */
bool assay_load_onnx(AssayCompiler *compiler, const char *path,
                     const AssayLoad *load);
/* An input as the file lists it. */
typedef struct AssayModelInput {
    const char *name;
    bool is_fixed; /* the file stores a value, which only a bind replaces */
} AssayModelInput;

/* The inputs of the file that was loaded last, in its order, bound and fixed
 * ones too. Their number; the rows are the compiler's. */
int assay_model_inputs(AssayCompiler *compiler, const AssayModelInput **rows);
/* A serialized TensorProto (.pb), as ONNX's test data are; or NULL. */
const Array *assay_read_tensor(AssayCompiler *compiler, const char *path);
/* After a compilation that failed: the inputs whose values decide shapes,
 * which have to be bound. Their number; the names are the compiler's. */
int assay_wanted_inputs(AssayCompiler *compiler, const char *const **names);
/* Takes a graph made with graph/graph.h; `build` fills an empty one. */
bool assay_build(AssayCompiler *compiler, const char *name,
                 bool (*build)(struct Graph *g, void *user), void *user);
/* The graph as loaded, before any pass. */
const struct Graph *assay_source_graph(const AssayCompiler *compiler);

/* The same in the form that all levels compute: what the reference evaluates.
 * The graph is the compiler's; NULL when it does not type. */
const struct Graph *assay_canonical_graph(AssayCompiler *compiler);

/* Writes the graph as an ONNX model: as loaded, or, after a compilation with
 * `stop_after`, as it was then. */
bool assay_export_onnx(AssayCompiler *compiler, const char *path);
/* Runs passes, schedules and the memory plan. */
bool assay_compile(AssayCompiler *compiler, const AssayOptions *options);
/* Reads the log options->choices; false when it is none. `*others`: its lines
 * that are for other targets, features or compilers, and ignored. */
bool assay_read_choices(AssayCompiler *compiler, const AssayOptions *options,
                        int *others);
/* Nodes of the last compilation that can be computed in several ways; rows of
 * passes/algorithm.h, the compiler's. Their number. */
struct AlgorithmNode;
int assay_algorithms(const AssayCompiler *compiler,
                     const struct AlgorithmNode **rows);
/* The line of a log of choices for such a node, measurements aside, with the
 * algorithm that was taken. */
struct ChoiceRow;
void assay_algorithm_row(const AssayCompiler *compiler,
                         const struct AlgorithmNode *node,
                         struct ChoiceRow *row);
const struct Graph *assay_graph(const AssayCompiler *compiler);
const struct Program *assay_program(const AssayCompiler *compiler);
/* Generates code and writes the artifact folder `dir`, made when missing:
 * all in a temporary folder beside it first, then renamed. */
bool assay_write_artifact(AssayCompiler *compiler, const char *dir);

/* Seconds of each phase of the last compilation. */
typedef struct AssayTiming {
    const char *phase;
    double seconds;
    int nodes_before, nodes_after; /* passes; 0 otherwise */
} AssayTiming;
int assay_timings(const AssayCompiler *compiler, const AssayTiming **rows);

#endif
