/* Facts: what generated code relies on and the manifest states, as one
 * number a field. Generated code carries them (assay_model_facts), and the
 * runtime compares them with the manifest's: an edited or mixed-up manifest
 * would otherwise have kernels write past the buffers it describes. Names
 * and measurements, which nothing is addressed by, are not among them. */
#ifndef ASSAY_RUNTIME_FACTS_H
#define ASSAY_RUNTIME_FACTS_H

#include <stdint.h>

#include "base/layout.h"
#include "base/str.h"
#include "graph/extent.h"
#include "runtime/abi.h"

/* In the order of assay_model_facts. */
typedef enum Fact {
    FACT_ARENA_BYTES,
    FACT_WEIGHT_BYTES,
    FACT_INPUTS,
    FACT_OUTPUTS,
    FACT_STEPS,
    FACT_TENSORS,
    FACT_COUNT = ASSAY_FACT_COUNT
} Fact;

typedef struct Facts {
    uint64_t item[FACT_COUNT];
} Facts;

/* The manifest's name of the field. */
const char *fact_name(Fact fact);
/* Each adds one item to a field, in the manifest's order. */
void facts_add_number(Facts *facts, Fact fact, int64_t number);
/* `extents` is NULL where all dims are numbers. */
void facts_add_value(Facts *facts, Fact fact, DType dtype, int rank,
                     const int64_t *dims, const Extent *extents);
void facts_add_tensor(Facts *facts, DType dtype, int rank, const int64_t *dims,
                      const Extent *extents, const Layout *layout,
                      int64_t offset, int64_t bytes, int step);
/* The bounds of a name, and whether the run computes it; belongs to the
 * inputs. */
void facts_add_dim(Facts *facts, Extent name, bool is_computed);

#endif
