/* What test_ops checks of operators: for each row a type, an error, or values
 * that the definition in the interpreter and the oracle must both give. */
#ifndef ASSAY_SUITES_OPS_ROWS_H
#define ASSAY_SUITES_OPS_ROWS_H

#include <stdbool.h>

#include "base/arena.h"

/* `inputs` are separated by blanks: "TYPE", "TYPE={VALUES}" for a constant,
 * "TYPE~{VALUES}" for values that arrive at run time (where the oracle is not
 * asked, so that they may be wrong), "-" for one left out. `expected` is one
 * of the following an output, separated by blanks: "TYPE", "TYPE={VALUES}",
 * "-". It starts with "!" for an error that holds the text after it. */
typedef struct OpRow {
    const char *op, *inputs, *attrs, *expected;
} OpRow;

/* The graph of a row, as text for the parser: its inputs are a, b, ..., its
 * results p, q, ..., one alone where an error is expected. */
char *ops_row_text(Arena *arena, const OpRow *row, bool expect_error);

/* Each ends with a NULL op. */
extern const OpRow ops_rows_elementwise[];
extern const OpRow ops_rows_layers[];
extern const OpRow ops_rows_shape[];
extern const OpRow ops_rows_index[];
extern const OpRow ops_rows_signal[];
extern const OpRow ops_rows_quantized[];
extern const OpRow ops_rows_sequence[];

#endif
