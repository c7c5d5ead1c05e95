/* The definition of a group, with the tensors its buffers stand for. */
#ifndef ASSAY_PROGRAM_DEFINE_H
#define ASSAY_PROGRAM_DEFINE_H

#include "program/program.h"

typedef struct Binding {
    const Buffer *buffer;
    Tensor *tensor;
} Binding;

/* A buffer `is_extents` of the definition stands for the program's. */
typedef struct GroupDefinition {
    Definition *def;
    Vec(Binding) bindings; /* inputs and outputs that the kernel touches */
    const char *hint;      /* a node's Op.schedule, or NULL */
    /* By which Op.flops of its nodes exceed those of the definition. */
    double more_flops;
} GroupDefinition;

/* False with a diagnostic that names the node when it cannot be defined. */
bool define_group(Arena *arena, Diag *diag, const Graph *g, const Group *group,
                  GroupDefinition *out);
/* The loops of a group that is one node with a loop program, without the
 * operands that it took as numbers; `out` has bindings and no definition.
 * NULL with a diagnostic when a type is not static. */
Kernel *define_program(Arena *arena, Diag *diag, const Graph *g,
                       const Group *group, GroupDefinition *out);
/* The tensor a buffer stands for, NULL for temporaries. */
Tensor *binding_find(const GroupDefinition *d, const char *name);
/* For each buffer of the definition, by index: the result of the group may
 * take its storage, as each element is read only for the element of the
 * same index of the result. */
bool *define_in_place(Arena *arena, const GroupDefinition *d);

#endif
