/* Assay against another inference engine: one model, one engine, one number
 * of threads. Both get the same model, as an ONNX file and as an artifact
 * that is compiled from it, the same inputs and the same processors; outputs
 * are compared in every process that is timed. */
#ifndef ASSAY_HARNESS_PEERS_H
#define ASSAY_HARNESS_PEERS_H

#include "base/vec.h"
#include "harness/builds.h"
#include "harness/engines.h"

typedef struct PeerPlan {
    BuildPlan build; /* its lengths, limits and pairing; threads are a row's */
    const char *const *compile_args; /* passed on; ends with NULL */
    /* Told what is being done, for progress; may be NULL. */
    void (*on_phase)(void *user, const char *phase);
    void *user;
} PeerPlan;

/* A model made ready, in a folder of its own. */
typedef struct PeerModel {
    const char *label;           /* a file's name without its folder */
    const char *work;            /* the folder */
    const char *onnx, *artifact; /* in it */
    Vec(const char *) inputs;    /* NAME=FILE.npy */
    CaseStatus status;           /* CASE_OK, or why it is not ready */
    const char *reason;          /* unless CASE_OK */
} PeerModel;

typedef enum PeerStatus {
    PEER_OK,
    PEER_WRONG,       /* the outputs differ from Assay's */
    PEER_UNSUPPORTED, /* the engine does not take the model */
    PEER_FAILED       /* `failure` says how */
} PeerStatus;

/* A row of results/README.md's `rows`. */
typedef struct PeerRow {
    const char *model, *engine;
    const char *version, *variant; /* "": it did not say */
    int threads;
    PeerStatus status;
    CaseStatus failure;
    bool is_ours;      /* it is Assay that failed */
    const char *error; /* unless PEER_OK */
    double max_error;  /* of outputs, in units of Assay's rms; NaN */
    /* A is the peer, B is Assay: the ratio is peer over Assay. */
    Pair pair;
    double assay, peer; /* seconds, the mean process's median; NaN */
    double seconds;     /* that the row took */
} PeerRow;

/* "ok", "wrong", "unsupported", "crashed", "timed-out", ... */
const char *peer_status_name(const PeerRow *row);

/* Compiles `model`, exports it and writes seeded inputs, all in the empty
 * folder `work`. What went wrong is in the result. */
void peer_model_prepare(Arena *arena, const char *model, const PeerPlan *plan,
                        const char *work, PeerModel *ready);
/* Checks and times. What went wrong is in the row. */
void peer_measure(Arena *arena, const PeerPlan *plan, const PeerModel *model,
                  const Engine *engine, int threads, PeerRow *row);
void peer_row_free(PeerRow *row);

#endif
