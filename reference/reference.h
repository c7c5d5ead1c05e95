/* Reference: one plain oracle an operator, over OpenBLAS or double
 * accumulation. Knows arrays and attributes, nothing of the compiler. */
#ifndef ASSAY_REFERENCE_REFERENCE_H
#define ASSAY_REFERENCE_REFERENCE_H

#include "base/array.h"
#include "base/attrs.h"

/* One evaluation. in[i] is NULL where an optional input was left out. The
 * oracle allocates out[i] in `arena` with the right type and shape. */
enum { REF_MAX_OUTPUTS = 32 };
typedef struct RefCall {
    Arena *arena;
    const char *domain, *op; /* ONNX's names, newest version's form */
    const Attrs *attrs;
    int in_count, out_count;
    const Array *const *in;
    /* Lists of rows like reference_ops, searched first; ends with NULL. */
    const struct RefOp *const *own;
    Array *out[REF_MAX_OUTPUTS];
    const char *error; /* set on failure: what is wrong */
    Arena *scratch;    /* of reference_eval: freed when it returns */
} RefCall;

typedef struct RefOp RefOp;
struct RefOp {
    const char *domain, *op;
    bool (*eval)(RefCall *call);
};

/* Rows, ending with a NULL op. */
extern const RefOp reference_ops[];
/* Finds the row and evaluates; false with call->error set when the
 * operator has no oracle or the arguments are wrong. */
bool reference_eval(RefCall *call);

#endif
