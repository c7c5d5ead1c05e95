/* What assay-run does with a loaded artifact. */
#ifndef ASSAY_HARNESS_RUNNER_H
#define ASSAY_HARNESS_RUNNER_H

#include <jansson.h>

#include "base/array.h"
#include "base/str.h"
#include "runtime/runtime.h"

typedef struct Runner {
    Arena *arena;
    Artifact *artifact; /* NULL where another process runs it */
    const ArtifactInfo *info;
    /* With `chunks` above 1, inputs hold that many artifact inputs one
     * after the other, and outputs as many outputs. */
    Array **inputs, **outputs;
    int64_t chunks;
    int64_t *dims;   /* of info->dims, of these inputs */
    const void **in; /* pointers of one run */
    void **out;
    Str *error;
} Runner;

/* Values of dimensions, NAME=VALUE, before the inputs: for those that no file
 * decides. Without one such a dimension is at its upper bound. */
bool runner_set_dims(Runner *r, const char *const *assignments, int count);
/* `assignments` are NAME=FILE, count of them; inputs without one are filled
 * from the seed. */
bool runner_set_inputs(Runner *r, const char *const *assignments, int count,
                       uint64_t seed);
/* The extents of a value with the dimensions of the inputs. */
void runner_dims(const Runner *r, const ArtifactValue *value, int64_t *dims);
/* Runs all chunks. */
void runner_run(Runner *r);
/* False when the last run had a number for a dimension that it cannot have:
 * an error. */
bool runner_outcome(Runner *r);
/* One run of the first chunk; the body of the timing loop. */
void runner_run_first(void *runner);
/* Runs again on an arena full of NaN and compares: adds "repeat_identical"
 * and "inputs_untouched"; false when either is not so. */
bool runner_check_twice(Runner *r, json_t *report);
/* Writes DIR/tensor_NNNN.npy for each tensor of the manifest, in its
 * order. */
bool runner_write_taps(Runner *r, const char *dir);
/* Writes DIR/FILE.npy with FILE of runner_file_names. */
bool runner_write_outputs(Runner *r, const char *dir);
/* "outputs": name, hash. */
void runner_report_outputs(Runner *r, json_t *report);

/* The outputs' file names, without folder and ".npy": unusual characters
 * become '_', what is longer than 200 bytes is cut, and of equal names (in
 * upper or lower case) the second becomes NAME.2, the third NAME.3. */
const char **runner_file_names(Arena *arena, const ArtifactInfo *info);

#endif
