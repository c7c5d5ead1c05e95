/* What the templates share: a look at a definition after inlining. */
#ifndef ASSAY_SCHEDULES_TEMPLATES_H
#define ASSAY_SCHEDULES_TEMPLATES_H

#include "schedules/knobs.h"
#include "schedules/state.h"
#include "targets/target.h"

/* The shape of a definition: one output stage, fed by reductions. */
typedef struct Look {
    Schedule *s;
    const Target *target;
    StageState *out;              /* the only stage that writes outputs */
    Vec(StageState *) reductions; /* live, before `out` */
    /* Elementwise stages too costly to compute again for every reader. */
    Vec(StageState *) kept;
    bool exact;  /* no reassociation, no fused multiply-add */
    int lanes;   /* of 4-byte elements in a register */
    double work; /* flops, or elements without arithmetic */
    /* Values of knobs that are asked for, or NULL; why they were refused; and
     * what was decided. */
    const Choice *choice;
    const char *refused;
    KnobLog log;
} Look;

/* A decision by name: the value that was chosen for the knob, `usual` without
 * one. A value that is no candidate is refused, and `usual` taken. */
int64_t look_knob(Look *look, const char *name, int64_t usual,
                  const int64_t *candidates, int count);
/* The same with all numbers from `low` to `high`. */
int64_t look_knob_range(Look *look, const char *name, int64_t usual,
                        int64_t low, int64_t high);
/* No other value was chosen for the knob: what a search over several knobs at
 * once may try. */
bool look_allows(const Look *look, const char *name, int64_t value);
/* Notes why the chosen values do not go together; always false. */
bool look_refuse(Look *look, const char *why);
/* Every value that was chosen was asked for, and none refused. */
bool look_obeyed(Look *look);

/* Below this work a parallel region costs more than it saves. */
#define PARALLEL_WORK 60000.0

/* Extent of the live stage's axis called `name`; 0 when absent. */
LoopAxis *look_axis(const StageState *st, const char *name);
/* The output axis that is contiguous in memory (the innermost one of the
 * layout whose extent is above 1), -1 when all are 1. */
int look_contiguous(const StageState *st);
/* The same number of elements, and where that is known at run time only, by
 * the same expression. */
bool look_same_extent(const Axis *a, const Axis *b);
/* Splits an axis whose tiles need a number of elements each: of one whose
 * extent is known at run time only, into pieces that are. Reductions take no
 * elements but their own; other axes may compute some for nothing. */
bool look_split_tile(Look *look, const StageState *st, const char *axis,
                     int64_t factor);
/* Every read of `buffer` in `x` is at the stage's own point. */
bool look_reads_own_point(const StageState *st, const Expr *x,
                          const Buffer *buffer);
/* Which index of a read is just the variable; -1 for none. */
int look_index_of(const Expr *read, const Var *var);
bool look_uses(const StageState *st, int axis, const Expr *x);
/* Joins neighbouring axes as far as buffers allow. `except` keeps one axis
 * apart (NULL: none). */
void look_collapse(Look *look, const char *except);
/* Fuses the outer loops (all leaves of `out` but the last `inner` ones)
 * into one and makes it parallel when the work is worth it. Returns the
 * name of the innermost loop of them, NULL when there is none. */
const char *look_parallel_outer(Look *look, int inner);
/* Multiply-accumulate rounds once where that is allowed. */
bool look_contract(Look *look, const StageState *st);
/* True when `x` calls elementary functions or divides: such an epilogue is
 * not repeated for every register of a tile, but loops over the tile in
 * memory. */
bool look_is_costly(const Expr *x);
/* Splits accumulator `acc` in two for that: returns the stage that reduces;
 * `acc` becomes its copy. NULL when a primitive refused. */
StageState *look_split_accumulator(Look *look, StageState *acc);
/* The copy: the whole tile to memory at the loop `attach` of the output.
 * Axes are indices, -1 for none; `vector` is the contiguous one. */
bool look_store_tile(Look *look, const StageState *copy, int row, int pixel,
                     int vector, const char *attach);
/* A copy of an operand of `stage` inside the loop `at` of the output, or of
 * all of it before that (NULL), with lanes along its dimension `lane_dim`. */
bool look_cache_operand(Look *look, const Stage *stage, const Expr *read,
                        int lane_dim, const char *at);
/* Computes a kept stage inside the loop `attach` of the output stage,
 * lanes along its last axis. */
bool look_keep(Look *look, const StageState *st, const char *attach);
/* "a b c" from names. */
const char *look_order(Look *look, const char *const *names, int count);

/* The templates: false when a primitive refused. That of Winograd's tiles
 * comes before stages are inlined, and fills in look->out. */
bool template_winograd(Look *look, bool *fits);
bool template_attention(Look *look, bool *fits);
bool template_contraction(Look *look, bool *fits);
bool template_window(Look *look, bool *fits);
bool template_rows(Look *look, bool *fits);
bool template_elementwise(Look *look, bool *fits);

#endif
