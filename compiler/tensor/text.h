/* Shared by the printers and parsers of definitions and loops. */
#ifndef ASSAY_TENSOR_TEXT_H
#define ASSAY_TENSOR_TEXT_H

#include "tensor/loops.h"

/* "  in x f32[1, 64]\n", with the layout where it is not row-major. */
void buffer_print(Str *out, const Buffer *buffer);
/* "  in x f32[1, 64 limit e[0]]\n" */
void buffer_print_limits(Str *out, const Buffer *buffer);

#endif
