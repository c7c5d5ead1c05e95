/* What generated code and manifest say alike of a program. */
#ifndef ASSAY_CODEGEN_FACTS_H
#define ASSAY_CODEGEN_FACTS_H

#include "program/program.h"
#include "runtime/facts.h"

/* The buffer of input or output `number`; NULL when there is none. */
const ProgramBuffer *program_value(const Program *program,
                                   ProgramBufferKind kind, int number);
/* The extents of a tensor's buffer, NULL where all are numbers. */
const Extent *program_extents(const ProgramBuffer *buffer);
/* Whether the manifest lists the buffer among its tensors. */
bool program_lists_tensor(const ProgramBuffer *buffer);
/* The step after which a listed tensor holds its value. */
int program_tensor_step(const ProgramBuffer *buffer);

Facts program_facts(const Program *program);

#endif
