/* Program: what runs. Ordered kernel calls over placed buffers. */
#ifndef ASSAY_PROGRAM_PROGRAM_H
#define ASSAY_PROGRAM_PROGRAM_H

#include "graph/graph.h"
#include "schedules/choices.h"
#include "schedules/choose.h"
#include "targets/target.h"

typedef enum ProgramBufferKind {
    PB_INPUT,
    PB_OUTPUT,
    PB_CONSTANT, /* offset in the weights blob */
    PB_ARENA,    /* offset in the arena: intermediates and workspace */
    PB_EXTENTS   /* the numbers that a run gives: Program.symbols */
} ProgramBufferKind;

typedef struct ProgramBuffer {
    const char *name; /* the tensor's; "KERNEL.TEMP" for workspace */
    ProgramBufferKind kind;
    DType dtype;
    int rank;
    int64_t dims[MAX_RANK];
    Layout layout;
    int64_t bytes;  /* storage, layout included */
    int64_t offset; /* in its blob; input or output number for those kinds */
    int first_step, last_step; /* live range, steps that touch it */
    int ready_step; /* the step after which it holds its value; -1: before */
    int alias_of;   /* another buffer whose storage it shares, or -1 */
    const Array *value;   /* constants: row-major, packed when written */
    const Tensor *tensor; /* NULL for workspace */
} ProgramBuffer;

/* One distinct kernel; several steps may call it. */
typedef struct ProgramKernel {
    const Kernel *kernel;
    const Definition *def; /* as built; NULL for a loop program */
    const char *trace;     /* replaying it on `def` gives `kernel` */
    /* in_place[i]: the output may share the storage of params[i], because
     * each element is read, at the same offset, before it is written. */
    const bool *in_place;
    uint64_t code_hash; /* of the machine code, after code generation */
    int64_t code_bytes;
} ProgramKernel;

/* A definition with the layouts around it, and what was decided for it: what
 * a log of choices has a line for. */
typedef struct ProgramSchedule {
    /* Key and fields to read; the choice that was taken. */
    ChoiceRow row;
    bool is_chosen; /* by a line of the log */
    KnobLog log;    /* empty for a naive schedule */
    const struct GroupDefinition *group;
} ProgramSchedule;

typedef struct ProgramStep {
    int kernel;   /* index in Program.kernels */
    int schedule; /* index in Program.schedules; -1: a loop program */
    int *args;    /* a buffer index for each kernel parameter */
    int arg_count;
    const Group *group; /* where it came from */
} ProgramStep;

/* Steps that `run` calls on a condition, or repeatedly. Regions nest; none is
 * empty. They come in the order of their first step, an outer one before
 * those within. */
typedef enum RegionKind { REGION_BRANCH, REGION_LOOP } RegionKind;

typedef struct ProgramRegion {
    RegionKind kind;
    /* Of a branch, steps first to otherwise - 1 run when `cond` is true, else
     * steps otherwise to end - 1. Of a loop, steps first to end - 1 run while
     * `cond` is true, if there is one, and at most `trips` and `most` times;
     * otherwise is end. */
    int first, otherwise, end;
    int parent;        /* the region around it, or -1 */
    bool in_otherwise; /* in the second part of the parent */
    /* Buffers of one element, or -1. */
    int cond;     /* bool */
    int trips;    /* i64, read before the first iteration */
    int counter;  /* i64, set to the iteration's number before each */
    int64_t most; /* INT64_MAX: any number */
} ProgramRegion;

typedef struct Program {
    Arena *arena;
    ScheduleMode mode;
    const char *name;
    uint64_t source_hash; /* of the model as loaded, weights included; or 0 */
    const Target *target;
    Vec(ProgramKernel) kernels;
    Vec(ProgramBuffer) buffers;
    Vec(ProgramSchedule) schedules; /* not in the printed form */
    uint64_t choices_hash;          /* of those from a log; 0: none */
    Vec(ProgramStep) steps;
    Vec(ProgramRegion) regions;
    int input_count, output_count;
    int64_t arena_bytes; /* planned */
    int64_t arena_bound; /* live-set lower bound over all steps */
    int64_t weight_bytes;
    bool taps; /* every tensor keeps its own storage, for comparison */
    /* Dimensions that are known at run time only, each a name with bounds.
     * Buffers have the upper bounds. */
    Vec(Extent) symbols;
    int input_symbols; /* the first of them, which inputs decide */
} Program;

/* A log to look schedules up in; `log` may be NULL. */
typedef struct ProgramChoices {
    const ChoiceLog *log;
    ChoiceScope scope;
} ProgramChoices;

/* Groups (or single nodes) to kernels: builds each group's definition,
 * lets `schedule_choose` schedule it, lowers, shares equal kernels. `choices`
 * may be NULL; only fast schedules follow them. */
Program *program_build(Arena *arena, Diag *diag, Graph *g,
                       const Target *target, ScheduleMode mode,
                       const ProgramChoices *choices);
/* What a choice would make of a schedule: the values that it takes, and the
 * hash of the loops. False with a diagnostic when it does not fit. */
bool program_try_choice(Arena *arena, Diag *diag, const Program *program,
                        int schedule, const Choice *choice, KnobLog *log,
                        uint64_t *hash);
/* The regions directly within `parent` (-1: none) and that part of it, among
 * steps first to end - 1, after region `after` (-1: from the start); -1: no
 * more. */
int program_next_region(const Program *program, int parent, bool in_otherwise,
                        int first, int end, int after);
/* Where the steps from `first` on may be cut after about `count`: never
 * within a region. */
int program_cut(const Program *program, int first, int count);
/* Places all buffers: live ranges, aliases (reshapes, in place), then
 * best-fit by size. Sets offsets, arena_bytes and arena_bound. Every
 * offset is a multiple of 64. */
void program_plan_memory(Program *program);
/* The step at which live buffers need the most bytes, with those buffers
 * (indices, largest first; workspace among them). */
typedef struct HighWater {
    int step; /* -1: nothing lies in the arena */
    int64_t bytes;
    Vec(int) buffers;
} HighWater;
void program_high_water(Arena *arena, const Program *program,
                        HighWater *water);
/* Invariants: no two live buffers overlap, all offsets in range. die()s. */
void program_verify(const Program *program);
void program_print(Str *out, const Program *program);
/* Reads the printed form back: all but the kernels' loops, which have a
 * text form of their own (kernel_print). */
Program *program_parse(Arena *arena, Diag *diag, const char *text);
/* Writes the constants to `path`, each packed in its layout at its offset;
 * weight_bytes in all. False with a diagnostic when the file cannot be
 * written. */
bool program_write_weights(const Program *program, Diag *diag,
                           const char *path);

#endif
