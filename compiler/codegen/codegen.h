/* Code generation: kernels and the program's `run` to target code. */
#ifndef ASSAY_CODEGEN_CODEGEN_H
#define ASSAY_CODEGEN_CODEGEN_H

#include "program/program.h"

typedef struct CodegenOptions {
    bool sanitize;
    bool sanitize_threads;
    int jobs;       /* kernels compiled at once; at least 1 */
    const char *cc; /* C target: the system compiler, NULL: the target's */
} CodegenOptions;

/* Object files, in a fixed order, written into `dir` (which exists):
 * sets *objects to their paths, *count to their number. Fills code_hash
 * and code_bytes of the program's kernels. */
bool codegen_llvm(Program *program, Diag *diag, const CodegenOptions *o,
                  const char *dir, const char ***objects, int *count);
bool codegen_c(Program *program, Diag *diag, const CodegenOptions *o,
               const char *dir, const char ***objects, int *count);
/* What compiles kernels, with the version that measured choices depend on:
 * "llvm19", or "cc". */
const char *codegen_backend(Arena *arena, TargetCodegen codegen);
/* Text of one kernel for `assay inspect`. */
bool codegen_llvm_text(Str *out, Diag *diag, const Kernel *kernel,
                       const Target *target, bool assembly);
bool codegen_c_text(Str *out, const Kernel *kernel);

/* Compiles one kernel for the host's baseline (no FMA, no host features)
 * in memory and runs it: constant folding of large tensors. */
bool codegen_llvm_evaluate(const Kernel *kernel, void *const *data,
                           Diag *diag);
/* One lld run: `objects` to the shared object `path`. */
bool codegen_link_shared(Diag *diag, const char *const *objects, int count,
                         const char *path);
bool codegen_archive(Diag *diag, const char *const *objects, int count,
                     const char *path);

#endif
