/* All that a stored file holds, of the few runs that a page looks into: the
 * newest one and those it is compared with. */
#ifndef ASSAY_REPORTS_DETAIL_H
#define ASSAY_REPORTS_DETAIL_H

#include "reports/data.h"
#include "reports/stats.h"

typedef struct Kernel {
    const char *name, *loops_hash, *code_hash;
    double code_bytes, flops;
} Kernel;

/* A kernel's place in the run; numbers are NAN where unknown. */
typedef struct StepDetail {
    const char *kernel;
    Vec(const char *) nodes; /* source names */
    double seconds, share;   /* of the run */
    double flops, bytes;
    const char *bound, *level; /* "compute" or "memory"; "L2" */
    double bound_share;        /* the roofline's time over the measured */
} StepDetail;

typedef struct NamedNumber {
    const char *name, *detail; /* detail: "" or a second name */
    double value;
} NamedNumber;

typedef struct CaseDetail {
    const char *name; /* of the case */
    Samples samples;
    Vec(Kernel) kernels;
    Vec(StepDetail) steps;
    Vec(NamedNumber) passes;  /* seconds */
    Vec(NamedNumber) buffers; /* bytes: tensor, node; largest first */
    double high_water;        /* bytes; NAN: none */
    const char *high_water_node;
} CaseDetail;

/* A part of two builds that computes the same nodes. */
typedef struct Group {
    const char *name;
    double a_seconds, b_seconds;
    int a_kernels, b_kernels;
    Ratio ratio;
    const char *verdict;
    bool identical; /* same machine code on both sides */
} Group;

typedef struct Comparison {
    const char *model, *a, *b;
    Ratio ratio; /* time of a over time of b: above 1, b is faster */
    const char *verdict;
    double noise; /* NAN: unknown */
    double blocks, repeated, disturbed;
    Vec(Group) groups;
} Comparison;

/* A row of another inference engine against Assay. */
typedef struct PeerDetail {
    const char *model, *engine, *version, *variant, *status;
    double threads, assay_ms, peer_ms;
    Ratio ratio; /* peer over Assay; NAN unless it was measured */
} PeerDetail;

typedef struct PeerMeanDetail {
    const char *engine, *worst; /* worst: the model of the least ratio */
    double threads, models, least;
    Ratio ratio;
} PeerMeanDetail;

typedef struct Level {
    const char *name; /* "L1" ... "memory" */
    double bytes, gbps;
} Level;

typedef struct RunDetail {
    Vec(CaseDetail) cases;
    Vec(Comparison) comparisons;
    Vec(PeerDetail) peers;
    Vec(PeerMeanDetail) peer_means;
    double fma_gflops, dot_gops; /* NAN: not measured */
    const char *vector_kind, *dot_kind;
    Vec(Level) levels;
    Vec(NamedNumber) machine; /* name and detail: the fingerprint's fields */
} RunDetail;

/* Reads a run's file again. An empty one with a note when that fails. */
RunDetail *detail_read(Arena *arena, const Run *run, Str *notes);
void detail_free(RunDetail *d); /* what does not live in the arena */

/* NULL: none of that name. */
const CaseDetail *detail_case(const RunDetail *d, const char *name);
const Kernel *detail_kernel(const CaseDetail *c, const char *name);

#endif
