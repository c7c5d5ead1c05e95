/* Array: a dense row-major tensor value in memory, the type that compiler,
 * reference and harness exchange, and the element types. */
#ifndef ASSAY_BASE_ARRAY_H
#define ASSAY_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { MAX_RANK = 8 };

typedef enum DType {
    DT_INVALID,
    DT_F64,
    DT_F32,
    DT_F16,
    DT_BF16,
    DT_I64,
    DT_I32,
    DT_I16,
    DT_I8,
    DT_U64,
    DT_U32,
    DT_U16,
    DT_U8,
    DT_BOOL, /* one byte, 0 or 1 */
    /* Constants only: elements are `const char *`, never NULL in what the
     * importer reads. */
    DT_STRING,
    DT_COUNT
} DType;

const char *dtype_name(DType dtype); /* "f32" */
DType dtype_parse(const char *name); /* DT_INVALID when unknown */
size_t dtype_size(DType dtype);      /* bytes an element */
bool dtype_is_float(DType dtype);    /* f64 f32 f16 bf16 */
bool dtype_is_signed(DType dtype);   /* floats and signed integers */
/* The largest or smallest number of an integer type or bool, as its bits. */
int64_t dtype_int_bound(DType dtype, bool largest);

typedef struct Array {
    DType dtype;
    int rank;
    int64_t dims[MAX_RANK];
    void *data; /* row-major, 64-byte aligned when made by array_new */
    int bits;   /* of each integer, where a file has fewer than its type */
} Array;

/* Elements; 1 for a scalar. */
int64_t array_count(const Array *array);
size_t array_bytes(const Array *array);
/* Type, shape and every bit. */
bool array_equal(const Array *a, const Array *b);
/* Zeroed data in the arena. */
Array *array_new(Arena *arena, DType dtype, int rank, const int64_t *dims);
/* NULL when there is no memory for it. */
Array *array_try_new(Arena *arena, DType dtype, int rank, const int64_t *dims);
Array *array_scalar(Arena *arena, DType dtype, double value);
Array *array_ints(Arena *arena, const int64_t *values, int count);
/* Element `index` in row-major order, converted. */
double array_get(const Array *array, int64_t index);
int64_t array_get_int(const Array *array, int64_t index);
void array_set(Array *array, int64_t index, double value);
void array_set_int(Array *array, int64_t index, int64_t value);
/* IEEE conversions, round to nearest even. */
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
float bfloat_to_float(uint16_t bits);
uint16_t float_to_bfloat(float value);

#endif
