/* Recurrent layers: what their rows and their loop program share. Private to
 * ops/. */
#ifndef ASSAY_OPS_RECURRENT_H
#define ASSAY_OPS_RECURRENT_H

#include "ops/loop_program.h"
#include "ops/rules.h"

typedef enum CellKind { CELL_RNN, CELL_GRU, CELL_LSTM } CellKind;

/* Operands, by position in the node. */
enum {
    RECURRENT_X,
    RECURRENT_W,
    RECURRENT_R,
    RECURRENT_B,
    RECURRENT_LENGTHS,
    RECURRENT_H,
    RECURRENT_C,
    RECURRENT_P
};

typedef struct Activation {
    const char *name;
    double alpha, beta;
} Activation;

enum { MAX_ACTIVATIONS = 3 };

/* A node's shape and attributes. */
typedef struct Recurrent {
    CellKind kind;
    int gates, functions; /* in W and R; activations a direction */
    /* The most that `step_count` and `sequences` are, by which offsets go. */
    int64_t steps, batch;
    Extent step_count, sequences;
    int64_t input, hidden, directions;
    /* With the projection done, X holds W x of all gates and directions, W is
     * left out, and R lies as the scan reads it: blocks of `block` columns of
     * its transpose, [direction, gates * hidden / block, hidden, block]. No
     * block has columns of two gates. */
    bool is_projected;
    int64_t block;
    bool is_reverse; /* direction 0 */
    bool is_batch_first;
    bool couples_gates, resets_after; /* input_forget, linear_before_reset */
    double clip;                      /* 0: none */
    Activation activation[2][MAX_ACTIVATIONS];
} Recurrent;

/* Reads attributes; a message in *error (NULL: fine) when one is wrong.
 * Extents without a bound are -1. */
bool recurrent_read(const Node *node, CellKind kind, bool is_projected,
                    Recurrent *r, const char **error);
void recurrent_program(LoopContext *c, CellKind kind, bool is_projected);

#endif
