/* The inside of a Schedule, shared by primitives and lowering. */
#ifndef ASSAY_SCHEDULES_STATE_H
#define ASSAY_SCHEDULES_STATE_H

#include "schedules/schedule.h"

typedef struct LoopAxis LoopAxis;
typedef struct StageState StageState;

typedef enum AxisUse {
    AXIS_LEAF,  /* a loop of the nest */
    AXIS_SPLIT, /* became outer and inner */
    AXIS_FUSED  /* became part of `fused` */
} AxisUse;

struct LoopAxis {
    const char *name;
    const Var *root; /* the definition's variable; NULL for derived axes */
    bool is_reduce;
    LoopKind kind;
    AxisUse use;
    int64_t extent; /* of the full computation, an upper bound for parts */
    /* Of a root: as Axis.limit, over buffers of the schedule's definition. */
    const Expr *limit;
    /* use is AXIS_SPLIT */
    int64_t factor;
    bool even, padded;
    LoopAxis *outer, *inner;
    /* use is AXIS_FUSED */
    LoopAxis *fused;
    /* where it comes from */
    LoopAxis *split_from; /* outer or inner of this axis */
    LoopAxis *fuse_first, *fuse_second;
};

struct StageState {
    Stage *stage; /* own copy */
    bool is_inlined;
    Vec(LoopAxis *) roots; /* spatial axes in order, then reduction axes */
    Vec(LoopAxis *) leaves;
    StageState *at; /* NULL: a nest of its own */
    LoopAxis *at_axis;
    Scope scope;
    LoopAxis *lane_axis; /* schedule_reduce_lanes */
    int lanes;
    bool contract;
    /* schedule_pad */
    const Var *padded;
    int64_t pad_lanes;
    /* schedule_prefetch */
    const Buffer *prefetch;
    LoopAxis *prefetch_axis;
    int64_t prefetch_ahead, prefetch_step; /* elements */
};

struct Schedule {
    Arena *arena;
    Diag *diag;
    const Definition *source;
    Definition *def; /* own copy */
    Vec(StageState *) stages;
    bool fused_math;
    Vec(const char *) trace;
};

extern const char *const scope_names[]; /* by Scope */

StageState *schedule_stage(const Schedule *s, const char *name);
/* Finds a live stage and (when `axis` is not NULL) one of its leaves; a
 * diagnostic when there is none. */
bool schedule_find(Schedule *s, const char *stage, const char *axis,
                   StageState **st, LoopAxis **leaf);
/* The number of iterations is known at run time only. */
bool axis_is_limited(const LoopAxis *axis);
/* Position among the leaves, -1 when not a leaf. */
int stage_leaf_index(const StageState *st, const LoopAxis *axis);
/* Puts a stage (already in s->def) at place `at` of the stage list. */
StageState *schedule_add_stage(Schedule *s, Stage *stage, int at);
/* Back to the naive schedule with an empty trace. */
void schedule_reset(Schedule *s);
/* Adds a line to the trace; always true. */
bool schedule_record(Schedule *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
