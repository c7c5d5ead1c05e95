/* Runtime: loads an artifact and runs it. Links base and jansson; no LLVM,
 * no BLAS.
 *
 * Everything is allocated by artifact_load: artifact_run calls generated
 * code and nothing else. One artifact may be run by one thread at a time.
 * Functions that can fail fill an AssayError and return its status. */
#ifndef ASSAY_RUNTIME_RUNTIME_H
#define ASSAY_RUNTIME_RUNTIME_H

#include "base/array.h"
#include "base/layout.h"
#include "graph/extent.h"
#include "runtime/pool.h"

typedef enum AssayStatus {
    ASSAY_OK,
    ASSAY_NO_ARTIFACT,   /* a file is missing or cannot be read */
    ASSAY_BAD_MANIFEST,  /* not JSON, or a field missing or wrong */
    ASSAY_WRONG_ABI,     /* made for another version of the interface */
    ASSAY_WRONG_MACHINE, /* made for another architecture */
    ASSAY_MISSING_CPU,   /* needs features this processor has not */
    ASSAY_DAMAGED,       /* size or checksum of a file is wrong */
    ASSAY_BAD_CODE,      /* the shared object does not load */
    ASSAY_NO_MEMORY,
    ASSAY_BAD_SHAPE, /* an array that the model does not take */
    ASSAY_STATUS_COUNT
} AssayStatus;

/* "ok", "wrong ABI version", ... */
const char *status_text(AssayStatus status);

typedef struct AssayError {
    AssayStatus status;
    char text[512]; /* file, field, what is wrong and what to do */
} AssayError;

typedef struct Artifact Artifact;

typedef struct LoadOptions {
    int threads; /* 0: one a physical core */
    /* Threads to share with other artifacts instead; must outlive it. */
    Pool *pool;
    bool skip_checksums; /* sizes are still checked */
} LoadOptions;

/* An input or output: a row-major array. `dims` and `bytes` are the most that
 * it can be; where `extents` is not NULL, artifact_dims says what it is with
 * the dimensions that are set. */
typedef struct ArtifactValue {
    const char *name;
    DType dtype;
    int rank;
    int64_t dims[MAX_RANK];
    int64_t bytes;
    const Extent *extents; /* of `rank` axes; NULL: all are numbers */
} ArtifactValue;

/* Where a tensor inside the model lies, for comparison by layer. Its
 * storage is valid from the end of step `step` until it is reused; in an
 * artifact compiled with taps it stays valid until the run ends. */
typedef struct ArtifactTensor {
    const char *name;
    const char *const *sources; /* names in the source model; NULL ends */
    DType dtype;
    int rank;
    int64_t dims[MAX_RANK];
    Layout layout;
    int64_t offset;        /* in the arena */
    int64_t bytes;         /* of storage */
    int step;              /* that writes it */
    const Extent *extents; /* as ArtifactValue.extents */
} ArtifactTensor;

typedef struct ArtifactStep {
    const char *kernel;
    int kernel_index;
    int group; /* its fusion group, as `assay inspect --groups` has it; -1 */
    double weight_bytes; /* of constants that it reads; 0: none, or unknown */
    const char *const *nodes; /* source nodes; NULL ends */
} ArtifactStep;

typedef struct ArtifactKernel {
    const char *name;
    uint64_t loops_hash, code_hash;
    int64_t code_bytes;
    /* Of one call: operations, and bytes that it must move at least. */
    double flops, bytes;
} ArtifactKernel;

/* Dimensions that a run may choose, at most. */
enum { MAX_DIMS = 64 };

typedef struct ArtifactInfo {
    const char *model, *target;
    uint64_t source; /* hash of the model: builds of one have the same */
    int64_t arena_bytes, arena_bound, weight_bytes;
    bool taps;
    /* Names with their bounds: what a run may choose. */
    const Extent *dims;
    int dim_count, input_dims; /* the rest says the run itself */
    int input_count, output_count, tensor_count, step_count, kernel_count;
    const ArtifactValue *inputs, *outputs;
    const ArtifactTensor *tensors;
    const ArtifactStep *steps;
    const ArtifactKernel *kernels;
} ArtifactInfo;

/* Reads the manifest only; nothing is mapped or run. Lives in `arena`. */
AssayStatus artifact_read_info(Arena *arena, const char *dir,
                               ArtifactInfo *info, AssayError *error);

AssayStatus artifact_load(const char *dir, const LoadOptions *options,
                          Artifact **artifact, AssayError *error);
void artifact_free(Artifact *artifact);
const ArtifactInfo *artifact_info(const Artifact *artifact);
/* The threads that run it. */
Pool *artifact_pool(const Artifact *artifact);

/* Called before (is_end 0) and after (1) every step of a run. */
void artifact_on_step(Artifact *artifact,
                      void (*on_step)(void *user, int32_t step,
                                      int32_t is_end),
                      void *user);
/* The dimensions of the next runs, in the order of info->dims; within their
 * bounds. At their upper bounds after loading. Those that the run computes are
 * not taken from here. */
AssayStatus artifact_set_dims(Artifact *artifact, const int64_t *values,
                              AssayError *error);
/* The dimensions that inputs of these shapes have: shapes[i] has the extents
 * of input i, or is NULL for one that takes what the others say. `values` has
 * room for info->dim_count; what no input says is left alone. */
AssayStatus artifact_find_dims(const ArtifactInfo *info,
                               const int64_t *const *shapes, int64_t *values,
                               AssayError *error);
/* The extents that a value or tensor has with these dimensions. */
void artifact_extents(const ArtifactInfo *info, const int64_t *values,
                      int rank, const int64_t *dims, const Extent *extents,
                      int64_t *actual);
/* Those of the artifact's next run; for an output whose extents the run
 * computes, of its last. */
void artifact_dims(const Artifact *artifact, const ArtifactValue *value,
                   int64_t *actual);
/* inputs[i] and outputs[i] are row-major arrays of info->inputs[i].bytes
 * and info->outputs[i].bytes, 64-byte aligned for the best speed; fewer where
 * the dimensions are smaller: the arrays have no gaps. */
void artifact_run(Artifact *artifact, const void *const *inputs,
                  void *const *outputs);
/* Whether the last run had numbers for all dimensions that are within their
 * bounds; otherwise its outputs are not to be used. */
AssayStatus artifact_outcome(const Artifact *artifact, AssayError *error);
/* Copies a tensor out of the arena into row-major order. `array` has its
 * type and shape, with the dimensions of the last run. */
void artifact_tap(const Artifact *artifact, const ArtifactTensor *tensor,
                  Array *array);
/* Fills the arena with a byte: a model that depends on what an earlier run
 * left there is wrong, and this shows it. */
void artifact_fill_arena(Artifact *artifact, int byte);

#endif
