/* Invariants of a planned program. A violation is a fault of ours, never of
 * the user's: die(). */
#include <stdlib.h>

#include "program/program.h"

static void check_step(const Program *p, int at)
{
    const ProgramStep *step = &p->steps.data[at];

    if (step->kernel < 0 || step->kernel >= p->kernels.count)
        die("program step %d calls kernel %d of %d", at, step->kernel,
            p->kernels.count);
    const Kernel *k = p->kernels.data[step->kernel].kernel;
    if (step->arg_count != k->params.count)
        die("program step %d passes %d arguments to %s, which takes %d", at,
            step->arg_count, k->name, k->params.count);
    for (int a = 0; a < step->arg_count; a++) {
        int i = step->args[a];
        if (i < 0 || i >= p->buffers.count)
            die("program step %d: argument %d is buffer %d of %d", at, a, i,
                p->buffers.count);
        const ProgramBuffer *b = &p->buffers.data[i];
        const Buffer *want = k->params.data[a];
        int64_t need = buffer_size(want) * (int64_t)dtype_size(want->dtype);
        if (b->dtype != want->dtype || b->bytes < need)
            die("program step %d: buffer \"%s\" of %lld bytes for parameter "
                "\"%s\" of %lld",
                at, b->name, (long long)b->bytes, want->name, (long long)need);
        if (want->role == BUF_OUTPUT &&
            (b->kind == PB_CONSTANT || b->kind == PB_INPUT))
            die("program step %d writes \"%s\", which is read only", at,
                b->name);
        /* The range is that of the storage: in-place results share it. */
        const ProgramBuffer *root =
            b->alias_of >= 0 ? &p->buffers.data[b->alias_of] : b;
        if (root->first_step > at || root->last_step < at)
            die("program step %d uses \"%s\" outside its live range %d..%d",
                at, b->name, root->first_step, root->last_step);
    }
}

static void check_control(const Program *p, int region, int index, DType dtype,
                          bool written)
{
    if (index < 0)
        return;
    if (index >= p->buffers.count)
        die("program region %d reads buffer %d of %d", region, index,
            p->buffers.count);
    const ProgramBuffer *b = &p->buffers.data[index];
    if (b->dtype != dtype || b->bytes != (int64_t)dtype_size(dtype))
        die("program region %d: buffer \"%s\" is not one %s", region, b->name,
            dtype_name(dtype));
    if (written && b->kind != PB_ARENA)
        die("program region %d counts in \"%s\", which is read only", region,
            b->name);
    const ProgramBuffer *root =
        b->alias_of >= 0 ? &p->buffers.data[b->alias_of] : b;
    const ProgramRegion *r = &p->regions.data[region];
    if (root->first_step > r->first || root->last_step < r->first)
        die("program region %d uses \"%s\" outside its live range %d..%d",
            region, b->name, root->first_step, root->last_step);
}

/* Steps in order, within the part of the parent, and behind the region that
 * is listed before it there. */
static void check_region(const Program *p, int at)
{
    const ProgramRegion *r = &p->regions.data[at];
    int first = 0, end = p->steps.count;

    if (r->parent >= at || r->parent < -1)
        die("program region %d is within region %d", at, r->parent);
    if (r->parent >= 0) {
        const ProgramRegion *around = &p->regions.data[r->parent];
        first = r->in_otherwise ? around->otherwise : around->first;
        end = r->in_otherwise ? around->end : around->otherwise;
    }
    for (int i = 0; i < at; i++) {
        const ProgramRegion *other = &p->regions.data[i];
        if (other->parent == r->parent &&
            other->in_otherwise == r->in_otherwise)
            first = other->end;
    }
    if (r->first < first || r->otherwise < r->first || r->end < r->otherwise ||
        r->end > end || r->first == r->end)
        die("program region %d holds steps %d %d %d, of %d to %d", at,
            r->first, r->otherwise, r->end, first, end);
    if (r->kind == REGION_LOOP && (r->otherwise != r->end || r->most < 0))
        die("program region %d is no sound loop", at);
    if (r->kind == REGION_BRANCH && r->cond < 0)
        die("program region %d is a branch without a condition", at);
    check_control(p, at, r->cond, DT_BOOL, false);
    check_control(p, at, r->trips, DT_I64, false);
    check_control(p, at, r->counter, DT_I64, true);
}

static void check_buffer(const Program *p, int at)
{
    const ProgramBuffer *b = &p->buffers.data[at];
    int64_t size = layout_size(&b->layout, b->rank, b->dims) *
                   (int64_t)dtype_size(b->dtype);

    if (size > b->bytes)
        die("program buffer \"%s\" has %lld bytes, its layout needs %lld",
            b->name, (long long)b->bytes, (long long)size);
    if (b->alias_of >= 0) {
        const ProgramBuffer *root = &p->buffers.data[b->alias_of];
        if (root->alias_of >= 0 || root->bytes < b->bytes ||
            root->kind != b->kind || root->offset != b->offset)
            die("program buffer \"%s\" is no alias of \"%s\"", b->name,
                root->name);
        return;
    }
    switch (b->kind) {
    case PB_INPUT:
    case PB_OUTPUT: {
        int count = b->kind == PB_INPUT ? p->input_count : p->output_count;
        if (b->offset < 0 || b->offset >= count)
            die("program buffer \"%s\" is number %lld of %d", b->name,
                (long long)b->offset, count);
        break;
    }
    case PB_EXTENTS:
        if (b->rank != 1 || b->dims[0] != p->symbols.count + 1)
            die("program buffer \"%s\" is not for %d dimensions", b->name,
                p->symbols.count);
        break;
    case PB_CONSTANT:
    case PB_ARENA: {
        int64_t end = b->kind == PB_ARENA ? p->arena_bytes : p->weight_bytes;
        if (b->last_step < 0 && b->kind == PB_ARENA)
            break; /* never touched, not placed */
        if (b->offset % 64 || b->offset < 0 || b->offset + b->bytes > end)
            die("program buffer \"%s\" lies at %lld + %lld of %lld", b->name,
                (long long)b->offset, (long long)b->bytes, (long long)end);
        break;
    }
    }
}

static int by_offset(const void *x, const void *y)
{
    const ProgramBuffer *a = *(const ProgramBuffer *const *)x;
    const ProgramBuffer *b = *(const ProgramBuffer *const *)y;

    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static void check_overlaps(const Program *p)
{
    const ProgramBuffer **spans =
        malloc(((size_t)p->buffers.count + 1) * sizeof *spans);
    int count = 0;

    if (!spans)
        die("out of memory");
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (b->kind == PB_ARENA && b->alias_of < 0 && b->last_step >= 0 &&
            b->bytes > 0)
            spans[count++] = b;
    }
    qsort(spans, (size_t)count, sizeof *spans, by_offset);
    for (int i = 0; i < count; i++) {
        const ProgramBuffer *a = spans[i];
        for (int k = i + 1; k < count; k++) {
            const ProgramBuffer *b = spans[k];
            if (b->offset >= a->offset + a->bytes)
                break;
            if (a->first_step <= b->last_step && b->first_step <= a->last_step)
                die("program buffers \"%s\" and \"%s\" overlap at offset "
                    "%lld in steps %d..%d and %d..%d",
                    a->name, b->name, (long long)b->offset, a->first_step,
                    a->last_step, b->first_step, b->last_step);
        }
    }
    free(spans);
}

/* ---- parts of one storage ------------------------------------------- */

/* Goes over the elements of a buffer, border included, and calls `visit` for
 * each with its offset in the storage. */
typedef void (*Visit)(const Program *p, int step, int buffer, int64_t offset,
                      int *writer);

static void for_elements(const Program *p, int step, int buffer, int *writer,
                         Visit visit)
{
    const ProgramBuffer *b = &p->buffers.data[buffer];
    int64_t at[MAX_RANK];
    bool more = true;

    for (int i = 0; i < b->rank; i++) {
        at[i] = -b->layout.lo[i];
        more = more && at[i] < b->dims[i] + b->layout.hi[i];
    }
    while (more) {
        int64_t offset = layout_offset(&b->layout, b->rank, b->dims, at);
        if (offset < 0 || offset * (int64_t)dtype_size(b->dtype) >= b->bytes)
            die("program buffer \"%s\" has an element at %lld, outside",
                b->name, (long long)offset);
        visit(p, step, buffer, offset, writer);
        more = false;
        for (int i = b->rank - 1; i >= 0 && !more; i--) {
            more = ++at[i] < b->dims[i] + b->layout.hi[i];
            if (!more)
                at[i] = -b->layout.lo[i];
        }
    }
}

static void note_written(const Program *p, int step, int buffer,
                         int64_t offset, int *writer)
{
    (void)p, (void)buffer;
    writer[offset] = step;
}

/* Both steps are in one loop: what the later one writes, the earlier one reads
 * in the next iteration. */
static bool share_loop(const Program *p, int step, int other)
{
    for (int i = 0; i < p->regions.count; i++) {
        const ProgramRegion *r = &p->regions.data[i];
        if (r->kind == REGION_LOOP && step >= r->first && step < r->end &&
            other >= r->first && other < r->end)
            return true;
    }
    return false;
}

/* What is read must have been written, and not again since the buffer had
 * its value. */
static void check_read(const Program *p, int step, int buffer, int64_t offset,
                       int *writer)
{
    const ProgramBuffer *b = &p->buffers.data[buffer];

    if (share_loop(p, step, b->ready_step))
        return;
    if (b->ready_step >= step || writer[offset] < 0 ||
        writer[offset] > b->ready_step)
        die("program step %d reads \"%s\", ready after step %d; its element "
            "at %lld is of step %d",
            step, b->name, b->ready_step, (long long)offset, writer[offset]);
}

static bool uses_storage(const Program *p, int buffer, int root)
{
    return buffer == root || p->buffers.data[buffer].alias_of == root;
}

/* Runs the steps on one storage that holds parts: for each element, which
 * step wrote it last. */
static void check_storage(const Program *p, int root)
{
    const ProgramBuffer *r = &p->buffers.data[root];
    int64_t count = r->bytes / (int64_t)dtype_size(r->dtype);
    int *writer = malloc((size_t)count * sizeof *writer + 1);

    if (!writer)
        die("out of memory");
    for (int64_t i = 0; i < count; i++)
        writer[i] = -1;
    for (int s = 0; s < p->steps.count; s++) {
        const ProgramStep *step = &p->steps.data[s];
        const Kernel *k = p->kernels.data[step->kernel].kernel;
        for (int a = 0; a < step->arg_count; a++)
            if (uses_storage(p, step->args[a], root) &&
                k->params.data[a]->role == BUF_INPUT)
                for_elements(p, s, step->args[a], writer, check_read);
        for (int a = 0; a < step->arg_count; a++)
            if (uses_storage(p, step->args[a], root) &&
                k->params.data[a]->role == BUF_OUTPUT)
                for_elements(p, s, step->args[a], writer, note_written);
    }
    free(writer);
}

static void check_parts(const Program *p)
{
    bool *has_parts = calloc((size_t)p->buffers.count + 1, sizeof *has_parts);

    if (!has_parts)
        die("out of memory");
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (!layout_is_part(&b->layout))
            continue;
        if (b->alias_of < 0 || p->buffers.data[b->alias_of].bytes != b->bytes)
            die("program buffer \"%s\" is a part, but not of a buffer of its "
                "size",
                b->name);
        /* Nothing writes to an input. */
        has_parts[b->alias_of] = b->kind != PB_INPUT;
    }
    for (int i = 0; i < p->buffers.count; i++)
        if (has_parts[i])
            check_storage(p, i);
    free(has_parts);
}

void program_verify(const Program *p)
{
    for (int s = 0; s < p->steps.count; s++)
        check_step(p, s);
    for (int i = 0; i < p->regions.count; i++)
        check_region(p, i);
    for (int i = 0; i < p->buffers.count; i++)
        check_buffer(p, i);
    check_overlaps(p);
    check_parts(p);
    if (p->arena_bytes < p->arena_bound)
        die("program arena of %lld bytes is below its bound %lld",
            (long long)p->arena_bytes, (long long)p->arena_bound);
}
