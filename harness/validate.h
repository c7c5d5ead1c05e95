/* One conformance case: a model with inputs and the outputs they must give,
 * in ONNX's layout (CASE/model.onnx,
 * CASE/test_data_set_N/{input,output}_N.pb), compiled in several ways and run
 * on a target. */
#ifndef ASSAY_HARNESS_VALIDATE_H
#define ASSAY_HARNESS_VALIDATE_H

#include "base/arena.h"
#include "harness/child.h"
#include "harness/options.h"

typedef enum ValidateLevel {
    LEVEL_O0,
    LEVEL_O1,
    LEVEL_UNFUSED,
    LEVEL_FUSED,
    LEVEL_COUNT
} ValidateLevel;

/* "O0", "O1", "unfused", "fused" */
const char *validate_level_name(ValidateLevel level);

typedef struct ValidatePlan {
    const char *target;       /* NULL: native */
    bool levels[LEVEL_COUNT]; /* those to go through */
    ProcessLimits limits;     /* of one case */
    bool is_open; /* inputs that decide shapes stay inputs where they can */
    const CompileOptions *ops; /* its --ops; NULL: none */
} ValidatePlan;

typedef struct ValidateResult {
    const char *op;    /* of the model's first node; "" when it has none */
    CaseStatus status; /* of the first level that is not right */
    const char *level; /* its name; NULL when all are */
    const char *reason;
    const char *bound;     /* inputs that were made constants, or "" */
    const char *why_bound; /* what refused to leave them open, or "" */
    const char *open;      /* those that decide shapes when it runs, or "" */
    double max_excess;     /* largest error over what is allowed, all levels */
    double seconds;
} ValidateResult;

/* Runs the case in a process of its own. Never fails: what went wrong is in
 * the result. May be called by several threads at once, each with an arena
 * of its own. */
void validate_case(Arena *arena, const char *folder, const ValidatePlan *plan,
                   ValidateResult *result);

#endif
