/* The C backend, private to codegen/: text of kernels and of `run`. */
#ifndef ASSAY_CODEGEN_C_H
#define ASSAY_CODEGEN_C_H

#include "codegen/codegen.h"

/* Types and functions that every generated file starts with. */
void c_emit_preamble(Str *out);
void c_emit_kernel(Str *out, const Kernel *kernel);
/* assay_model_run, assay_model_abi and assay_model_facts. */
void c_emit_model(Str *out, const Program *program);
/* The kernel's function: its name where that is a plain identifier,
 * otherwise one made from it. */
const char *c_kernel_symbol(Arena *arena, const Kernel *kernel);

#endif
