/* Layout: how a buffer's logical axes lie in memory.
 *
 * A list of (axis, factor), outermost first. factor 0 is what is left of
 * the axis above its blocks; factor f > 0 is a block of f. So for axes
 * N C H W: "0 2 3 1" is channels last, "0 1 2 3 1%16" is blocked by 16
 * channels. An axis may have a border: `lo` elements before and `hi` after
 * the logical extent, which hold zero. An extent that its blocks do not
 * divide leaves slack elements of unspecified value.
 *
 * A buffer may also be part of a larger one: then `before` and `after`
 * elements around each run along an axis, border included, belong to other
 * parts. They are counted in elements of storage, and nobody who holds this
 * layout reads or writes them.
 *
 * Text form: "[0 2+1+1 3+1+1 1~16~32]": axes with their lo and hi borders,
 * then what lies before and after. */
#ifndef ASSAY_BASE_LAYOUT_H
#define ASSAY_BASE_LAYOUT_H

#include "base/array.h"
#include "base/str.h"

enum { MAX_LAYOUT = 12 };

typedef struct LayoutDim {
    int axis;
    int64_t factor; /* 0: the outer part of the axis */
} LayoutDim;

typedef struct Layout {
    int count;
    LayoutDim dim[MAX_LAYOUT];
    int64_t lo[MAX_RANK], hi[MAX_RANK];        /* zeroed border by axis */
    int64_t before[MAX_RANK], after[MAX_RANK]; /* others' elements */
} Layout;

Layout layout_row_major(int rank);
/* order[i] is the axis at place i, outermost first. */
Layout layout_permuted(int rank, const int *order);
bool layout_equal(const Layout *a, const Layout *b);
bool layout_has_border(const Layout *layout);
bool layout_is_part(const Layout *layout); /* elements of others in it */
bool layout_is_row_major(const Layout *layout, int rank); /* no border */
/* Extent of storage dimension `place`, borders and block rounding in it. */
int64_t layout_extent(const Layout *layout, int place, int64_t const *dims);
/* Distance of neighbours along storage dimension `place`, in elements. */
int64_t layout_stride(const Layout *layout, int place, const int64_t *dims);
/* Elements of storage, slack, border and others' elements included. */
int64_t layout_size(const Layout *layout, int rank, const int64_t *dims);
/* Element offset of a logical index (may lie in the border). */
int64_t layout_offset(const Layout *layout, int rank, const int64_t *dims,
                      const int64_t *index);
/* Makes `layout`, of a buffer with extents `dims`, that of the part whose
 * index along `axis` starts at `start` and has `extent` elements. The first
 * and the last part have the border at their end. False when the axis has
 * blocks: then there is none. */
bool layout_take_part(Layout *layout, const int64_t *dims, int axis,
                      int64_t start, int64_t extent);
/* Both put every element and border at the same offset of storage of the
 * same size. Layouts with blocks must be equal for that. */
bool layout_same_storage(const Layout *a, const Layout *b, int rank,
                         const int64_t *dims);
/* Copies between a row-major array and storage in this layout. Packing
 * zeroes border and slack. `storage` holds layout_size elements. */
void layout_pack(const Layout *layout, const Array *array, void *storage);
void layout_unpack(const Layout *layout, const void *storage, Array *array);
void layout_print(Str *out, const Layout *layout);
/* Reads the text form; moves *text past it. False when malformed. */
bool layout_parse(const char **text, int rank, Layout *layout);

#endif
