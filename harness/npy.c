#include "harness/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/replace.h"

static const struct {
    const char *descr;
    DType dtype;
} types[] = {
    {"<f8", DT_F64}, {"<f4", DT_F32}, {"<f2", DT_F16}, {"<i8", DT_I64},
    {"<i4", DT_I32}, {"<i2", DT_I16}, {"|i1", DT_I8},  {"<u8", DT_U64},
    {"<u4", DT_U32}, {"<u2", DT_U16}, {"|u1", DT_U8},  {"|b1", DT_BOOL},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

static const char magic[] = "\x93NUMPY";

/* The text behind 'KEY': in the header, a Python dict literal. */
static const char *find_key(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *at = strstr(header, quoted);
    if (!at)
        return NULL;
    at += strlen(quoted);
    at += strspn(at, " :");
    return at;
}

static bool parse_descr(const char *header, Array *array, Str *error,
                        const char *path)
{
    const char *at = find_key(header, "descr");
    char descr[16] = "";
    if (at)
        sscanf(at, "'%15[^']'", descr);
    for (int i = 0; i < TYPE_COUNT; i++)
        if (!strcmp(descr, types[i].descr))
            array->dtype = types[i].dtype;
    if (array->dtype == DT_INVALID)
        str_addf(error,
                 "%s: element type \"%s\" is not supported; save it "
                 "little-endian, as float, integer or bool\n",
                 path, descr);
    return array->dtype != DT_INVALID;
}

static bool parse_shape(const char *header, Array *array, Str *error,
                        const char *path)
{
    const char *at = find_key(header, "shape");
    if (!at || *at++ != '(') {
        str_addf(error, "%s: no shape in the header\n", path);
        return false;
    }
    for (;;) {
        at += strspn(at, " ,");
        if (*at == ')')
            return true;
        char *end;
        errno = 0;
        long long extent = strtoll(at, &end, 10);
        if (end == at || extent < 0 || errno) {
            str_addf(error, "%s: broken shape in the header\n", path);
            return false;
        }
        if (array->rank == MAX_RANK) {
            str_addf(error, "%s: more than %d dimensions\n", path, MAX_RANK);
            return false;
        }
        array->dims[array->rank++] = extent;
        at = end;
    }
}

/* The header's text, terminated; `file` then stands at the data. */
static char *read_header(Arena *arena, FILE *file, const char *path,
                         Str *error)
{
    unsigned char lead[12];
    if (fread(lead, 1, 8, file) != 8 || memcmp(lead, magic, 6)) {
        str_addf(error, "%s: not a .npy file\n", path);
        return NULL;
    }
    size_t width = lead[6] == 1 ? 2 : 4; /* bytes of the length field */
    size_t length = 0;
    if (fread(lead + 8, 1, width, file) == width)
        for (size_t i = width; i-- > 0;)
            length = length << 8 | lead[8 + i];
    if (!length || length > 1 << 20) {
        str_addf(error, "%s: broken header\n", path);
        return NULL;
    }
    char *header = arena_alloc(arena, length + 1);
    if (fread(header, 1, length, file) != length) {
        str_addf(error, "%s: truncated header\n", path);
        return NULL;
    }
    return header;
}

static Array *read_array(Arena *arena, FILE *file, const char *path,
                         Str *error)
{
    const char *header = read_header(arena, file, path, error);
    if (!header)
        return NULL;
    const char *order = find_key(header, "fortran_order");
    if (!order || strncmp(order, "False", 5)) {
        str_addf(error,
                 "%s: not in C order; save numpy.ascontiguousarray(...)\n",
                 path);
        return NULL;
    }
    Array shape = {0};
    if (!parse_descr(header, &shape, error, path) ||
        !parse_shape(header, &shape, error, path))
        return NULL;
    /* Compare with what the file holds before allocating: a header may
     * claim any size. */
    long start = ftell(file);
    fseek(file, 0, SEEK_END);
    int64_t have = ftell(file) - start;
    int64_t need = (int64_t)dtype_size(shape.dtype);
    for (int i = 0; i < shape.rank; i++)
        if (__builtin_mul_overflow(need, shape.dims[i], &need))
            need = INT64_MAX;
    if (have != need) {
        str_addf(error, "%s: holds %lld bytes of data, its shape needs %lld\n",
                 path, (long long)have, (long long)need);
        return NULL;
    }
    fseek(file, start, SEEK_SET);
    Array *array = array_try_new(arena, shape.dtype, shape.rank, shape.dims);
    if (!array) {
        str_addf(error, "%s: no memory for %lld bytes of data\n", path,
                 (long long)need);
        return NULL;
    }
    if (fread(array->data, 1, (size_t)need, file) != (size_t)need) {
        str_addf(error, "%s: %s\n", path, strerror(errno));
        return NULL;
    }
    return array;
}

Array *npy_read(Arena *arena, const char *path, Str *error)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        str_addf(error, "%s: %s\n", path, strerror(errno));
        return NULL;
    }
    Array *array = read_array(arena, file, path, error);
    fclose(file);
    return array;
}

static bool write_header(FILE *file, const Array *array)
{
    const char *descr = NULL;
    for (int i = 0; i < TYPE_COUNT; i++)
        if (types[i].dtype == array->dtype)
            descr = types[i].descr;
    if (!descr) {
        errno = ENOTSUP;
        return false;
    }
    Str header = {0};
    str_addf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
             descr);
    for (int i = 0; i < array->rank; i++)
        str_addf(&header, "%lld,%s", (long long)array->dims[i],
                 i + 1 < array->rank ? " " : "");
    str_add(&header, "), }");
    /* The data starts at a multiple of 64. */
    while ((header.length + 10 + 1) % 64)
        str_add(&header, " ");
    str_add(&header, "\n");
    unsigned char lead[10] = {0};
    memcpy(lead, magic, 6);
    lead[6] = 1;
    lead[8] = (unsigned char)(header.length & 0xff);
    lead[9] = (unsigned char)(header.length >> 8);
    bool ok = fwrite(lead, 1, 10, file) == 10 &&
              fwrite(header.data, 1, header.length, file) == header.length;
    str_free(&header);
    return ok;
}

bool npy_write(const char *path, const Array *array, Str *error)
{
    Replacement r;
    size_t bytes = array_bytes(array);
    bool ok =
        replace_begin(&r, path) &&
        replace_end(&r, write_header(r.file, array) &&
                            fwrite(array->data, 1, bytes, r.file) == bytes);
    if (!ok)
        str_addf(error, "cannot write %s: %s\n", path, strerror(errno));
    return ok;
}
