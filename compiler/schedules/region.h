/* Lowering state: axes bound to loops, and the region of a stage that is
 * needed inside another. */
#ifndef ASSAY_SCHEDULES_REGION_H
#define ASSAY_SCHEDULES_REGION_H

#include "schedules/state.h"
#include "tensor/ptrmap.h"
#include "tensor/simplify.h"

/* Pieces of equal size of a split axis: `count` of `size`, from `offset`
 * on. Of an axis with a limit: as many as `limit` says, from `start`. */
typedef struct Segment {
    int64_t offset, count, size;
    const Expr *start, *limit; /* NULL: offset, count */
} Segment;
enum { MAX_SEGMENTS = 8 };

typedef enum Phase {
    PHASE_VALUE, /* outside any reduction */
    PHASE_START, /* start values of a reduction */
    PHASE_UPDATE /* inside reduction loops */
} Phase;

/* What is known of an axis while its nest is being built. */
typedef struct AxisState {
    const LoopAxis *axis;
    const Expr *value; /* NULL while not bound */
    Segment segment;   /* size 0: none chosen */
} AxisState;

/* One lowering of a stage, over the region base .. base + extent - 1. */
typedef struct Instance {
    StageState *st;
    const Expr *base[MAX_RANK];
    int64_t extent[MAX_RANK];
    const Expr *limit[MAX_RANK]; /* of the region's elements, or NULL */
    bool is_inside[MAX_RANK];    /* the region is part of the reader's axis */
    Phase phase;
    Vec(AxisState) axes;
    int outer_vars; /* loops around it, in Lower.ranges */
    bool has_region;
} Instance;

/* The small buffer that holds a region of a definition's buffer. */
typedef struct TempInstance {
    const Buffer *of;
    Buffer *buffer;
    const Expr *base[MAX_RANK];
} TempInstance;

/* A loop around what is being lowered that is one of several, a piece size
 * each: its iterations are some of all. */
typedef struct PieceLoop {
    int at;                /* the place of its variable in Lower.ranges */
    bool is_single;        /* one iteration, and no variable */
    int64_t before, total; /* iterations of those before it, and of all */
    int axis, axis_count;  /* of its stage, whose axis is in pieces */
} PieceLoop;

/* Iterations of a loop over an axis of a stage that is no part of another, or
 * of each of the loops in a block that do its pieces: independent, all of
 * them. */
typedef struct PieceCounts {
    int count;
    int64_t times[MAX_SEGMENTS];
} PieceCounts;

typedef struct Lower {
    Arena *arena;
    Schedule *schedule;
    Kernel *kernel;
    Ranges ranges;
    Vec(TempInstance) temps;
    Vec(PieceLoop) pieces;
    PtrMap independent; /* of Stmt: PieceCounts */
    int next_var, next_temp;
} Lower;

const Var *lower_new_var(Lower *lw, const char *name);

Instance *instance_new(Lower *lw, StageState *st);
/* Makes the buffers of an instance's outputs and registers them. */
void instance_add_temps(Lower *lw, Instance *in);
Buffer *lower_temp(Lower *lw, const char *name, DType dtype, Scope scope,
                   int64_t size);

int64_t axis_extent(const Instance *in, const LoopAxis *axis);
/* The number of iterations where that is known at run time only, else NULL;
 * the loops around the axis are bound. */
const Expr *axis_limit(Lower *lw, Instance *in, const LoopAxis *axis);
/* A limit of the definition in terms of loads. */
const Expr *lower_limit(Lower *lw, const Expr *limit);
/* An expression of a stage at the point where its loops are. */
const Expr *lower_value(Lower *lw, Instance *in, const Expr *x);
/* The element of output `k` at that point. */
const Expr *lower_own(Lower *lw, Instance *in, int k);
/* Value `k` of what the reducer makes of two tuples of values. */
const Expr *lower_combined(Lower *lw, Instance *in, const Expr *const *lhs,
                           const Expr *const *rhs, int k);
/* Piece sizes of the split whose outer loop is `outer`; at least 1. */
int axis_segments(Lower *lw, Instance *in, const LoopAxis *outer,
                  Segment segment[MAX_SEGMENTS]);
void axis_set_segment(Instance *in, const LoopAxis *outer,
                      const Segment *segment);
void axis_bind(Instance *in, const LoopAxis *axis, const Expr *value);
void axis_unbind(Instance *in, const LoopAxis *axis);
/* Value of a root axis, region base included; all its loops are bound. */
const Expr *axis_value(Lower *lw, Instance *in, const LoopAxis *root);

/* Widens the region of `part` by what `user` reads of it, with the loops
 * of `user` that are bound at this point. */
void region_of(Lower *lw, Instance *part, Instance *user);
/* Clips the region to the stage's extents; a stage that nobody reads here
 * gets one element. */
void region_end(Lower *lw, Instance *part);

/* Spreads the work of the kernel's parallel loop evenly, and with it zeroes
 * the borders of its results. */
void share_work(Lower *lw);

#endif
