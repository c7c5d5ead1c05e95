/* Layout: how a buffer's logical axes lie in memory.
 *
 * A list of (axis, factor), outermost first. factor 0 is what is left of
 * the axis above its blocks; factor f > 0 is a block of f. So for axes
 * N C H W: "0 2 3 1" is channels last, "0 1 2 3 1%16" is blocked by 16
 * channels. An axis may have a border: `lo` elements before and `hi` after
 * the logical extent, which hold zero. An extent that its blocks do not
 * divide leaves slack elements of unspecified value.
 *
 * Text form: "[0 2+1+1 3+1+1 1]": axes with their lo and hi borders. */
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
    int64_t lo[MAX_RANK], hi[MAX_RANK]; /* zeroed border by axis */
} Layout;

Layout layout_row_major(int rank);
/* order[i] is the axis at place i, outermost first. */
Layout layout_permuted(int rank, const int *order);
bool layout_equal(const Layout *a, const Layout *b);
bool layout_has_border(const Layout *layout);
bool layout_is_row_major(const Layout *layout, int rank); /* no border */
/* Extent of storage dimension `place`, borders and block rounding in it. */
int64_t layout_extent(const Layout *layout, int place, int64_t const *dims);
/* Elements of storage, slack and border included. */
int64_t layout_size(const Layout *layout, int rank, const int64_t *dims);
/* Element offset of a logical index (may lie in the border). */
int64_t layout_offset(const Layout *layout, int rank, const int64_t *dims,
                      const int64_t *index);
/* Copies between a row-major array and storage in this layout. Packing
 * zeroes border and slack. `storage` holds layout_size elements. */
void layout_pack(const Layout *layout, const Array *array, void *storage);
void layout_unpack(const Layout *layout, const void *storage, Array *array);
void layout_print(Str *out, const Layout *layout);
/* Reads the text form; moves *text past it. False when malformed. */
bool layout_parse(const char **text, int rank, Layout *layout);

#endif
