/* Writing an artifact, the compiler's side of runtime/manifest.md. */
#ifndef ASSAY_RUNTIME_ARTIFACT_H
#define ASSAY_RUNTIME_ARTIFACT_H

#include "program/program.h"

/* DIR/manifest.json, last of all files: it holds sizes and checksums of
 * DIR/`code` (model.so or model.a) and DIR/weights.bin. */
bool artifact_write_manifest(Diag *diag, const Program *program,
                             const char *dir, const char *code);

#endif
