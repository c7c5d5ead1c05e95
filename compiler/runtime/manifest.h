/* The manifest: what an artifact says of itself. manifest.md describes the
 * fields. Reading belongs to the runtime, writing to the compiler. */
#ifndef ASSAY_RUNTIME_MANIFEST_H
#define ASSAY_RUNTIME_MANIFEST_H

#include "runtime/facts.h"
#include "runtime/runtime.h"

/* A file of the artifact as the manifest describes it. */
typedef struct ManifestFile {
    const char *name; /* in the artifact's folder; NULL: there is none */
    int64_t bytes;
    uint64_t hash; /* XXH3, 64 bits, seed 0 */
} ManifestFile;

typedef struct Manifest {
    int abi;
    const char *arch;             /* "x86_64" */
    const char *const *cpu_flags; /* ends with NULL */
    ManifestFile code, weights;
    ArtifactInfo info;
} Manifest;

/* Fills `manifest`, whose strings and lists live in `arena`. */
AssayStatus manifest_read(Arena *arena, const char *dir, Manifest *manifest,
                          AssayError *error);

/* What the manifest states of the facts that the code carries. */
Facts manifest_facts(const ArtifactInfo *info);

/* Sets and returns error->status. */
AssayStatus error_set(AssayError *error, AssayStatus status,
                      const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
