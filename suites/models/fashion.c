#include "suites/models/fashion.h"

#include <string.h>
#include <zlib.h>

#define FOLDER "/usr/share/datasets/fashion-mnist/"

static uint32_t big_endian(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
           (uint32_t)bytes[2] << 8 | bytes[3];
}

/* An IDX file: a magic number with the rank in its last byte, the extents,
 * then bytes. Returns `count` items of `size` bytes. */
static unsigned char *read_idx(Arena *arena, const char *path, int rank,
                               int count, int size, Str *why)
{
    gzFile file = gzopen(path, "rb");
    if (!file) {
        str_addf(why, "%s is missing; install dataset-fashion-mnist", path);
        return NULL;
    }
    unsigned char head[16];
    int head_size = 4 + 4 * rank, total = count * size;
    unsigned char *data = arena_alloc(arena, (size_t)total);
    bool ok = gzread(file, head, (unsigned)head_size) == head_size &&
              big_endian(head) == 0x800u + (unsigned)rank &&
              big_endian(head + 4) >= (uint32_t)count &&
              gzread(file, data, (unsigned)total) == total;
    gzclose(file);
    if (!ok)
        str_addf(why, "%s is damaged", path);
    return ok ? data : NULL;
}

bool fashion_load(Arena *arena, int limit, Array **inputs, Array **labels,
                  Str *why)
{
    enum { PIXELS = 28 * 28 };
    unsigned char *image = read_idx(arena, FOLDER "t10k-images-idx3-ubyte.gz",
                                    3, limit, PIXELS, why);
    unsigned char *label =
        image ? read_idx(arena, FOLDER "t10k-labels-idx1-ubyte.gz", 1, limit,
                         1, why)
              : NULL;
    if (!label)
        return false;
    int64_t dims[] = {limit, 1, 28, 28};
    *inputs = array_new(arena, DT_F32, 4, dims);
    *labels = array_new(arena, DT_I64, 1, dims);
    float *pixels = (*inputs)->data;
    for (int i = 0; i < limit * PIXELS; i++)
        pixels[i] = (float)image[i] / 255;
    for (int i = 0; i < limit; i++)
        array_set_int(*labels, i, label[i]);
    return true;
}
