/* A user's own operators: a shared object with a table of rows like those of
 * compiler/ops and their oracles, given with --ops FILE. It is compiled with
 * `-shared -fPIC -Icompiler -I.` against this header; the functions of
 * ops/rules.h, tensor/definition.h and reference/internal.h that it calls are
 * the program's. suites/custom has an example. */
#ifndef ASSAY_HARNESS_CUSTOM_H
#define ASSAY_HARNESS_CUSTOM_H

#include "base/str.h"
#include "ops/op.h"
#include "reference/reference.h"

enum { ASSAY_CUSTOM_VERSION = 1 };

/* What the shared object exports under the name `assay_custom_ops`. */
typedef struct AssayCustomOps {
    int version;          /* ASSAY_CUSTOM_VERSION when it was compiled */
    const Op *const *ops; /* ends with NULL; domains of its own, not "" */
    const RefOp *oracles; /* end with a NULL op; an operator without one
                           * compiles, but cannot be checked */
} AssayCustomOps;

/* Loads a file; it stays loaded. NULL with a line in `error` that says what
 * is wrong with it. */
const AssayCustomOps *custom_load(const char *path, Str *error);

#endif
