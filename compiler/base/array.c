/* Element types and array values. Conversions are defined for every value:
 * out of range saturates, NaN becomes 0 as an integer and true as a bool, so
 * that no compile-time evaluation depends on what the host's C compiler does.
 */
#include "base/array.h"

#include <math.h>
#include <string.h>

#include "base/diag.h"

typedef struct DTypeRow {
    const char *name;
    uint8_t size;
    bool is_float, is_signed;
} DTypeRow;

/* The names are those of the text forms; they must not change, as printed
 * graphs and traces are kept. */
static const DTypeRow dtypes[DT_COUNT] = {
    [DT_INVALID] = {"invalid", 0, false, false},
    [DT_F64] = {"f64", 8, true, true},
    [DT_F32] = {"f32", 4, true, true},
    [DT_F16] = {"f16", 2, true, true},
    [DT_BF16] = {"bf16", 2, true, true},
    [DT_I64] = {"i64", 8, false, true},
    [DT_I32] = {"i32", 4, false, true},
    [DT_I16] = {"i16", 2, false, true},
    [DT_I8] = {"i8", 1, false, true},
    [DT_U64] = {"u64", 8, false, false},
    [DT_U32] = {"u32", 4, false, false},
    [DT_U16] = {"u16", 2, false, false},
    [DT_U8] = {"u8", 1, false, false},
    [DT_BOOL] = {"bool", 1, false, false},
    [DT_STRING] = {"string", sizeof(char *), false, false},
};

/* An element type from a damaged structure must not index past the table. */
static const DTypeRow *row(DType dtype)
{
    if (dtype < 0 || dtype >= DT_COUNT)
        die("bad element type %d", (int)dtype);
    return &dtypes[dtype];
}

const char *dtype_name(DType dtype)
{
    return row(dtype)->name;
}

DType dtype_parse(const char *name)
{
    for (int i = DT_INVALID + 1; i < DT_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (DType)i;
    return DT_INVALID;
}

size_t dtype_size(DType dtype)
{
    return row(dtype)->size;
}

bool dtype_is_float(DType dtype)
{
    return row(dtype)->is_float;
}

bool dtype_is_signed(DType dtype)
{
    return row(dtype)->is_signed;
}

int64_t dtype_int_bound(DType dtype, bool largest)
{
    int bits = (int)dtype_size(dtype) * 8;
    if (dtype == DT_BOOL)
        return largest;
    if (!dtype_is_signed(dtype))
        return largest ? (int64_t)(UINT64_MAX >> (64 - bits)) : 0;
    int64_t top = (int64_t)(UINT64_MAX >> (65 - bits));
    return largest ? top : -top - 1;
}

/* Arrays are made by array_new or by the importer, which both check that the
 * product fits; here it is only multiplied. */
int64_t array_count(const Array *array)
{
    int64_t count = 1;
    for (int i = 0; i < array->rank; i++)
        count *= array->dims[i];
    return count;
}

size_t array_bytes(const Array *array)
{
    return (size_t)array_count(array) * dtype_size(array->dtype);
}

static bool equal_texts(const Array *a, const Array *b)
{
    const char *const *x = a->data, *const *y = b->data;
    for (int64_t i = 0; i < array_count(a); i++)
        if (strcmp(x[i], y[i]) != 0)
            return false;
    return true;
}

bool array_equal(const Array *a, const Array *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0 &&
           (a->data == b->data ||
            (a->dtype == DT_STRING
                 ? equal_texts(a, b)
                 : memcmp(a->data, b->data, array_bytes(a)) == 0));
}

Array *array_try_new(Arena *arena, DType dtype, int rank, const int64_t *dims)
{
    Array *array = ARENA_NEW(arena, Array);
    int64_t bytes = (int64_t)dtype_size(dtype);
    if (rank < 0 || rank > MAX_RANK)
        die("an array of rank %d", rank);
    array->dtype = dtype;
    array->rank = rank;
    for (int i = 0; i < rank; i++) {
        array->dims[i] = dims[i];
        if (dims[i] < 0)
            die("array extent %lld is out of range", (long long)dims[i]);
        if (__builtin_mul_overflow(bytes, dims[i], &bytes))
            return NULL;
    }
    /* Room for a whole cache line gives every array the alignment of one. */
    size_t room = array_bytes(array);
    array->data = arena_try_alloc(arena, room < 64 ? 64 : room);
    return array->data ? array : NULL;
}

Array *array_new(Arena *arena, DType dtype, int rank, const int64_t *dims)
{
    Array *array = array_try_new(arena, dtype, rank, dims);
    if (!array)
        die("out of memory: no room for an array of rank %d", rank);
    return array;
}

Array *array_scalar(Arena *arena, DType dtype, double value)
{
    Array *array = array_new(arena, dtype, 0, NULL);
    array_set(array, 0, value);
    return array;
}

Array *array_ints(Arena *arena, const int64_t *values, int count)
{
    int64_t dims[1] = {count};
    Array *array = array_new(arena, DT_I64, 1, dims);
    if (count)
        memcpy(array->data, values, (size_t)count * sizeof *values);
    return array;
}

/* Integers up to 2^53 pass exactly; callers that need all 64 bits use
 * array_get_int. */
double array_get(const Array *array, int64_t index)
{
    const void *data = array->data;
    switch (array->dtype) {
    case DT_F64:
        return ((const double *)data)[index];
    case DT_F32:
        return ((const float *)data)[index];
    case DT_F16:
        return half_to_float(((const uint16_t *)data)[index]);
    case DT_BF16:
        return bfloat_to_float(((const uint16_t *)data)[index]);
    case DT_U64:
        return (double)((const uint64_t *)data)[index];
    default:
        return (double)array_get_int(array, index);
    }
}

/* A conversion of a double outside the integer type's range is undefined
 * in C: such values saturate, and NaN becomes 0. */
static int64_t to_i64(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value <= -0x1p63)
        return INT64_MIN;
    return (int64_t)value;
}

/* All narrow integer types saturate: -129 as i8 is -128, not 127. */
static int64_t clamp(int64_t value, int64_t lo, int64_t hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* u64 values above 2^63 - 1 come out as their two's complement. */
int64_t array_get_int(const Array *array, int64_t index)
{
    const void *data = array->data;
    switch (array->dtype) {
    case DT_I64:
        return ((const int64_t *)data)[index];
    case DT_I32:
        return ((const int32_t *)data)[index];
    case DT_I16:
        return ((const int16_t *)data)[index];
    case DT_I8:
        return ((const int8_t *)data)[index];
    case DT_U64:
        return (int64_t)((const uint64_t *)data)[index];
    case DT_U32:
        return ((const uint32_t *)data)[index];
    case DT_U16:
        return ((const uint16_t *)data)[index];
    case DT_U8:
        return ((const uint8_t *)data)[index];
    case DT_BOOL:
        return ((const uint8_t *)data)[index] != 0;
    case DT_F64:
    case DT_F32:
    case DT_F16:
    case DT_BF16:
        return to_i64(array_get(array, index));
    default:
        die("an array of element type %s", dtype_name(array->dtype));
    }
}

void array_set(Array *array, int64_t index, double value)
{
    void *data = array->data;
    switch (array->dtype) {
    case DT_F64:
        ((double *)data)[index] = value;
        break;
    case DT_F32:
        ((float *)data)[index] = (float)value;
        break;
    case DT_F16:
        ((uint16_t *)data)[index] = float_to_half((float)value);
        break;
    case DT_BF16:
        ((uint16_t *)data)[index] = float_to_bfloat((float)value);
        break;
    case DT_BOOL: /* NaN is true */
        ((uint8_t *)data)[index] = value != 0;
        break;
    case DT_U64:
        if (value >= 0x1p63 && value < 0x1p64)
            ((uint64_t *)data)[index] = (uint64_t)value;
        else
            ((uint64_t *)data)[index] = value >= 0x1p64 ? UINT64_MAX
                                        : value > 0     ? (uint64_t)value
                                                        : 0;
        break;
    default:
        array_set_int(array, index, to_i64(value));
    }
}

void array_set_int(Array *array, int64_t index, int64_t value)
{
    void *data = array->data;
    switch (array->dtype) {
    case DT_I64:
        ((int64_t *)data)[index] = value;
        break;
    case DT_I32:
        ((int32_t *)data)[index] = (int32_t)clamp(value, INT32_MIN, INT32_MAX);
        break;
    case DT_I16:
        ((int16_t *)data)[index] = (int16_t)clamp(value, INT16_MIN, INT16_MAX);
        break;
    case DT_I8:
        ((int8_t *)data)[index] = (int8_t)clamp(value, INT8_MIN, INT8_MAX);
        break;
    case DT_U64:
        ((uint64_t *)data)[index] = (uint64_t)value;
        break;
    case DT_U32:
        ((uint32_t *)data)[index] = (uint32_t)clamp(value, 0, UINT32_MAX);
        break;
    case DT_U16:
        ((uint16_t *)data)[index] = (uint16_t)clamp(value, 0, UINT16_MAX);
        break;
    case DT_U8:
        ((uint8_t *)data)[index] = (uint8_t)clamp(value, 0, UINT8_MAX);
        break;
    case DT_BOOL:
        ((uint8_t *)data)[index] = value != 0;
        break;
    case DT_F64:
    case DT_F32:
    case DT_F16:
    case DT_BF16:
        array_set(array, index, (double)value);
        break;
    default:
        die("an array of element type %s", dtype_name(array->dtype));
    }
}

/* Through memcpy: reading one type's bytes as another is undefined otherwise.
 */
static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Half: 1 sign, 5 exponent, 10 mantissa bits, bias 15. Every half is a float
 * exactly. */
float half_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
    if (exponent == 31)
        return float_of(sign | 0x7f800000 | mantissa << 13);
    if (exponent)
        return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
    float small = (float)mantissa * 0x1p-24f; /* exact: a denormal or 0 */
    return sign ? -small : small;
}

/* Rounds to nearest, ties to even, in one step from the float's bits: going
 * by way of an intermediate format would round twice. */
uint16_t float_to_half(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t size = bits & 0x7fffffff;
    if (size > 0x7f800000) /* NaN stays one: keep a mantissa bit set */
        return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x477ff000) /* 65520 and above round to infinity */
        return sign | 0x7c00;
    if (size < 0x38800000) /* below 2^-14: in units of 2^-24, to even */
        return (uint16_t)(sign | (uint16_t)rintf(float_of(size) * 0x1p24f));
    uint32_t rounded = size + 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | ((rounded >> 13) - (112u << 10)));
}

/* bfloat16 is the upper half of a float. */
float bfloat_to_float(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

uint16_t float_to_bfloat(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
