/* The weights blob: every constant at its offset, packed in the layout its
 * kernels read. Written piece by piece, so that no second copy of a whole
 * model is in memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/program.h"

static bool write_zeros(FILE *file, int64_t count)
{
    static const char zeros[4096];

    while (count > 0) {
        size_t n =
            count < (int64_t)sizeof zeros ? (size_t)count : sizeof zeros;
        if (fwrite(zeros, 1, n, file) != n)
            return false;
        count -= (int64_t)n;
    }
    return true;
}

static bool write_constant(FILE *file, const ProgramBuffer *b)
{
    /* Zeroed, so that slack is the same in every build. */
    void *packed = calloc(1, (size_t)b->bytes + 1);

    if (!packed)
        die("out of memory for constant \"%s\"", b->name);
    layout_pack(&b->layout, b->value, packed);
    bool ok = fwrite(packed, 1, (size_t)b->bytes, file) == (size_t)b->bytes;
    free(packed);
    return ok;
}

bool program_write_weights(const Program *p, Diag *diag, const char *path)
{
    FILE *file = fopen(path, "wb");
    int64_t at = 0;
    bool ok = true;

    if (!file)
        return diag_error(diag, "cannot write \"%s\": %s", path,
                          strerror(errno));
    for (int i = 0; i < p->buffers.count && ok; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (b->kind != PB_CONSTANT || b->alias_of >= 0)
            continue;
        ok = write_zeros(file, b->offset - at) && write_constant(file, b);
        at = b->offset + b->bytes;
    }
    ok = ok && write_zeros(file, p->weight_bytes - at);
    int error = errno;
    if (fclose(file) != 0) {
        error = errno;
        ok = false;
    }
    if (!ok)
        return diag_error(diag, "cannot write \"%s\": %s; is the disk full?",
                          path, strerror(error));
    return true;
}
