/* Schedule: how a definition becomes loops. Starts as the naive schedule
 * (each stage its own serial nest, temporaries in workspace); primitives
 * refine it and are recorded in a trace that prints and replays. A
 * primitive cannot change a result beyond reassociation. Each returns
 * false with a diagnostic when it does not apply, changing nothing.
 *
 * Stages and axes are named: "conv", "h", "h.o", "h.i", "n*h". */
#ifndef ASSAY_SCHEDULES_SCHEDULE_H
#define ASSAY_SCHEDULES_SCHEDULE_H

#include "tensor/loops.h"

typedef struct Schedule Schedule;

/* Works on its own copy of the stages of `def`. */
Schedule *schedule_new(Arena *arena, Diag *diag, const Definition *def);

/* Substitutes the stage into all that read it. No reductions. */
bool schedule_inline(Schedule *s, const char *stage);
/* A factor or divisor that all summands of the stage have in common is applied
 * to the sum instead, where it is read. */
bool schedule_factor(Schedule *s, const char *stage);
/* Two neighbouring axes of all stages and buffers become one, "A_B": a
 * pixel axis instead of rows and columns. Applies before other loop
 * primitives, where every buffer lets it: both axes whole, plain and next
 * to each other in memory, without border. */
bool schedule_collapse(Schedule *s, const char *outer, const char *inner);
/* Splits an output (or any reduction) stage in two: STAGE_acc holds the
 * reduction and STAGE copies it, so that it can be accumulated in
 * registers and stored once. */
bool schedule_cache(Schedule *s, const char *stage);
/* Reduces in `parts` equal parts of `axis`, the first reduction axis: stage
 * STAGE_part has the results of them, with the axis AXIS_part in front of its
 * own, and STAGE combines them. */
bool schedule_rfactor(Schedule *s, const char *stage, const char *axis,
                      int64_t parts);
/* A copy of what `stage` reads of `buffer`: stage and buffer
 * BUFFER_cached, to be computed inside a loop of the consumer so that the
 * reads become contiguous. */
bool schedule_cache_read(Schedule *s, const char *stage, const char *buffer);
/* axis = outer * factor + inner; a remainder becomes a nest of its own. The
 * new axes are AXIS.o and AXIS.i and take the place of the axis. */
bool schedule_split(Schedule *s, const char *stage, const char *axis,
                    int64_t factor);
/* ceil(extent / factor) pieces as equal as can be: 49 by 14 is 13 12 12 12
 * instead of 14 14 14 7. Of an axis whose extent is known at run time only:
 * pieces of `factor`, then of 8, 4, 2 and 1 as needed. */
bool schedule_split_even(Schedule *s, const char *stage, const char *axis,
                         int64_t factor);
/* As schedule_split. Of an axis whose extent is known at run time only, pieces
 * are whole all the same: elements behind its limit are computed, from and
 * into storage that is there, and mean nothing. */
bool schedule_split_padded(Schedule *s, const char *stage, const char *axis,
                           int64_t factor);
/* Neighbours in the loop order become one axis, named "A*B". */
bool schedule_fuse(Schedule *s, const char *stage, const char *outer,
                   const char *inner);
/* The loops, outermost first: all leaf axes of the stage, separated by
 * spaces. */
bool schedule_reorder(Schedule *s, const char *stage, const char *order);
bool schedule_parallel(Schedule *s, const char *stage, const char *axis);
bool schedule_vectorize(Schedule *s, const char *stage, const char *axis);
bool schedule_unroll(Schedule *s, const char *stage, const char *axis);
/* Computes the part of `stage` that one iteration of `axis` of `at` reads
 * right there, inside the loop. */
bool schedule_compute_at(Schedule *s, const char *stage, const char *at,
                         const char *axis);
bool schedule_set_scope(Schedule *s, const char *stage, Scope scope);
/* Storage of a buffer; all stages see it. Of what is computed inside another
 * stage, the order of axes. */
bool schedule_pack(Schedule *s, const char *buffer, Layout layout);
/* Sums in `lanes` independent partial results over reduction axis `axis`,
 * the innermost and the only one of several elements, and combines them at
 * the end. */
bool schedule_reduce_lanes(Schedule *s, const char *stage, const char *axis,
                           int lanes);
/* Where `stage` is computed inside another, its part along `axis` is rounded up
 * to whole vectors of `lanes`. The elements behind the end mean nothing; what
 * they are computed from is there: constants that are packed in blocks of
 * whole vectors. */
bool schedule_pad(Schedule *s, const char *stage, const char *axis,
                  int64_t lanes);
/* Multiply-accumulate of the stage, or without a reduction its sums of
 * products, round once (needs a target with FMA). */
bool schedule_contract(Schedule *s, const char *stage);

/* While `stage` runs through reduction loop `axis`, of which an iteration
 * reads `step` elements of `buffer` one after the other, the lines that lie
 * `ahead` elements on are brought near. When other loops come back to the
 * same elements, each time a share of them. Changes no value. */
bool schedule_prefetch(Schedule *s, const char *stage, const char *buffer,
                       const char *axis, int64_t ahead, int64_t step);

/* Elementary functions of all stages expand with fused multiply-adds. */
bool schedule_fused_math(Schedule *s);

void schedule_print_trace(Str *out, const Schedule *s);
/* Applies the lines of a printed trace. */
bool schedule_replay(Schedule *s, const char *trace);

/* Lowers to loops. Deterministic: the same definition text and trace give
 * the same hash. */
Kernel *schedule_lower(Schedule *s, Arena *arena);

#endif
