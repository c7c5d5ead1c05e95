/* NumPy's .npy files, format versions 1 to 3 (numpy.lib.format). */
#ifndef ASSAY_HARNESS_NPY_H
#define ASSAY_HARNESS_NPY_H

#include "base/array.h"
#include "base/str.h"

/* NULL with a line in `error` that names the file, what is wrong, and what
 * to do. Any little-endian C-ordered array of a type in DType. */
Array *npy_read(Arena *arena, const char *path, Str *error);
bool npy_write(const char *path, const Array *array, Str *error);

#endif
