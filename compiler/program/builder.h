/* What builds a program: shared by the files that do. Private to program/. */
#ifndef ASSAY_PROGRAM_BUILDER_H
#define ASSAY_PROGRAM_BUILDER_H

#include "program/define.h"
#include "schedules/choose.h"

/* A scheduled definition, for the next group with the same text. */
typedef struct Scheduled {
    const Kernel *kernel; /* as lowered, with this definition's names */
    int index;            /* of the shared kernel in the program */
    int schedule;         /* in Program.schedules; -1: none */
} Scheduled;

typedef struct Builder {
    Program *p;
    Arena *arena;
    Diag *diag;
    Graph *g; /* the model's, or a body while that is built */
    ScheduleMode mode;
    const ProgramChoices *choices; /* or NULL */
    int depth;                     /* of bodies around */
    int *buffer_of;                /* by tensor id of `g`; -1: none */
    int region;                    /* around the steps being built; -1: none */
    bool in_otherwise;
    Map scheduled; /* by definition and layouts */
    Map by_hash;   /* kernels */
    Map constants; /* by value and layout */
    Map names;     /* of constants, to tell copies apart */
    int extents;   /* the buffer of run-time extents; -1: none yet */
} Builder;

/* Sets bytes; live ranges come with the plan. Returns the index. */
int program_add_buffer(Builder *b, ProgramBuffer buffer);
/* The buffer of a tensor that kernels compute, made when first asked for. */
int program_tensor_buffer(Builder *b, const Tensor *t);
/* The same, or the buffer of a constant, row-major. */
int program_operand_buffer(Builder *b, const Tensor *t);
/* The buffer of the dimensions that are known at run time only; `param` is a
 * kernel's. */
int program_extents_buffer(Builder *b, const Buffer *param);
/* The index of a kernel that has no schedule. `in_place`: its result may
 * take the storage of its first parameter. */
int program_add_kernel(Builder *b, const Kernel *kernel, bool in_place);
/* The naive schedule, with the layouts of inputs and outputs. */
Schedule *program_schedule_new(Arena *arena, Diag *diag,
                               const GroupDefinition *d);
/* Schedules a definition whose text and layouts are `key`, by the log of
 * choices where that has a line. The index in Program.schedules. A line that
 * does not fit is a diagnostic, and the usual schedule taken; -1 when there is
 * none. */
int program_choose(Builder *b, Schedule *s, const GroupDefinition *d,
                   const char *key);
bool program_build_groups(Builder *b);
/* A group that is one node with bodies. */
bool program_build_control(Builder *b, const Group *group);

#endif
