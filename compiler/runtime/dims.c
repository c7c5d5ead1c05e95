/* Dimensions that are known at run time only; see dims.h and runtime.h. */
#include "runtime/dims.h"

#include <stdio.h>
#include <string.h>

#include "runtime/manifest.h"

/* Goes over the rows of the last axis, or whole blocks of them where both
 * sides have no gaps. */
static void copy(int rank, const int64_t *dims, const int64_t *actual,
                 size_t size, const char *from, char *to, bool spreads)
{
    size_t inner = size;
    int last = rank;
    while (last > 0 && (last == rank || actual[last] == dims[last]))
        inner *= (size_t)actual[--last];
    /* What is left of the axes outside, row by row. */
    int64_t at[MAX_RANK] = {0};
    for (int i = 0; i < last; i++)
        if (actual[i] == 0)
            return;
    for (bool more = inner > 0; more;) {
        size_t offset = 0, stride = size;
        for (int i = rank - 1; i >= 0; i--) {
            offset += i < last ? (size_t)at[i] * stride : 0;
            stride *= (size_t)dims[i];
        }
        memcpy(to + (spreads ? offset : 0), from + (spreads ? 0 : offset),
               inner);
        from += spreads ? inner : 0;
        to += spreads ? 0 : inner;
        more = false;
        for (int i = last - 1; i >= 0 && !more; i--) {
            more = ++at[i] < actual[i];
            at[i] = more ? at[i] : 0;
        }
    }
}

void dims_spread(int rank, const int64_t *dims, const int64_t *actual,
                 size_t size, const void *array, void *storage)
{
    copy(rank, dims, actual, size, array, storage, true);
}

void dims_gather(int rank, const int64_t *dims, const int64_t *actual,
                 size_t size, const void *storage, void *array)
{
    copy(rank, dims, actual, size, storage, array, false);
}

void artifact_extents(const ArtifactInfo *info, const int64_t *values,
                      int rank, const int64_t *dims, const Extent *extents,
                      int64_t *actual)
{
    for (int i = 0; i < rank; i++) {
        actual[i] = dims[i];
        if (!extents || extent_is_const(extents[i]))
            continue;
        ExtentValue list[MAX_DIMS];
        for (int k = 0; k < info->dim_count; k++)
            list[k] = (ExtentValue){info->dims[k].expr->name, values[k]};
        int64_t n = extent_evaluate(extents[i], list, info->dim_count);
        /* Never outside of the storage, whatever the numbers are. */
        actual[i] = n < 0 ? 0 : n < dims[i] ? n : dims[i];
    }
}

static int find_dim(const ArtifactInfo *info, Extent extent)
{
    if (!extent.expr || extent.expr->kind != DIM_NAME)
        return -1;
    for (int i = 0; i < info->dim_count; i++)
        if (!strcmp(info->dims[i].expr->name, extent.expr->name))
            return i;
    return -1;
}

static AssayStatus wrong(AssayError *error, const ArtifactValue *v, int axis,
                         int64_t given, const char *why)
{
    return error_set(error, ASSAY_BAD_SHAPE,
                     "input \"%s\": axis %d has %lld elements, %s", v->name,
                     axis, (long long)given, why);
}

AssayStatus artifact_find_dims(const ArtifactInfo *info,
                               const int64_t *const *shapes, int64_t *values,
                               AssayError *error)
{
    const ArtifactValue *said[MAX_DIMS] = {NULL};
    char why[256];
    *error = (AssayError){0};
    for (int i = 0; i < info->input_count; i++) {
        const ArtifactValue *v = &info->inputs[i];
        for (int k = 0; shapes[i] && v->extents && k < v->rank; k++) {
            int at = find_dim(info, v->extents[k]);
            int64_t n = shapes[i][k];
            if (at < 0)
                continue;
            Extent dim = info->dims[at];
            if (n < extent_lower(dim) || n > dim.value) {
                snprintf(why, sizeof why,
                         "the dimension %s is compiled for %lld to %lld",
                         dim.expr->name, (long long)extent_lower(dim),
                         (long long)dim.value);
                return wrong(error, v, k, n, why);
            }
            if (said[at] && values[at] != n) {
                snprintf(why, sizeof why,
                         "input \"%.100s\" says that the dimension %s is %lld",
                         said[at]->name, dim.expr->name,
                         (long long)values[at]);
                return wrong(error, v, k, n, why);
            }
            said[at] = v;
            values[at] = n;
        }
    }
    return ASSAY_OK;
}

AssayStatus dims_outcome(const ArtifactInfo *info, int64_t refused,
                         AssayError *error)
{
    *error = (AssayError){0};
    if (refused < 1 || refused > info->dim_count)
        return ASSAY_OK;
    Extent dim = info->dims[refused - 1];
    return error_set(error, ASSAY_BAD_SHAPE,
                     "the run has another number for the dimension %s than "
                     "those that it was compiled for, %lld to %lld, or a "
                     "shape of another number of elements",
                     dim.expr->name, (long long)extent_lower(dim),
                     (long long)dim.value);
}
