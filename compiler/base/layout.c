/* Layouts. The offset of an element is a sum of one term an axis, whatever
 * blocks and borders there are, because each storage dimension belongs to one
 * axis only. So copies use a table of terms an axis instead of dividing for
 * each element. */
#include "base/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

Layout layout_row_major(int rank)
{
    Layout layout = {.count = rank};
    for (int i = 0; i < rank; i++)
        layout.dim[i].axis = i;
    return layout;
}

Layout layout_permuted(int rank, const int *order)
{
    Layout layout = {.count = rank};
    for (int i = 0; i < rank; i++)
        layout.dim[i].axis = order[i];
    return layout;
}

/* Borders of axes that the layout does not have are zero on both sides. */
bool layout_equal(const Layout *a, const Layout *b)
{
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (a->dim[i].axis != b->dim[i].axis ||
            a->dim[i].factor != b->dim[i].factor)
            return false;
    for (int i = 0; i < MAX_RANK; i++)
        if (a->lo[i] != b->lo[i] || a->hi[i] != b->hi[i] ||
            a->before[i] != b->before[i] || a->after[i] != b->after[i])
            return false;
    return true;
}

bool layout_has_border(const Layout *layout)
{
    for (int i = 0; i < MAX_RANK; i++)
        if (layout->lo[i] || layout->hi[i])
            return true;
    return false;
}

bool layout_is_part(const Layout *layout)
{
    for (int i = 0; i < MAX_RANK; i++)
        if (layout->before[i] || layout->after[i])
            return true;
    return false;
}

bool layout_is_row_major(const Layout *layout, int rank)
{
    Layout plain = layout_row_major(rank);
    return layout_equal(layout, &plain);
}

/* Product of the blocks of the axis that lie further in than `place`. */
static int64_t inner_blocks(const Layout *layout, int place)
{
    int64_t product = 1;
    for (int i = place + 1; i < layout->count; i++)
        if (layout->dim[i].axis == layout->dim[place].axis &&
            layout->dim[i].factor)
            product *= layout->dim[i].factor;
    return product;
}

/* Blocks that do not divide the extent round it up: the slack is storage. */
int64_t layout_extent(const Layout *layout, int place, const int64_t *dims)
{
    const LayoutDim *dim = &layout->dim[place];
    if (dim->factor)
        return dim->factor;
    int64_t total =
        layout->lo[dim->axis] + dims[dim->axis] + layout->hi[dim->axis];
    int64_t block = inner_blocks(layout, place);
    return (total + block - 1) / block;
}

/* Elements of everything from `place` inwards. Others' elements lie around
 * the outer part of their axis. */
static int64_t size_from(const Layout *layout, int place, const int64_t *dims)
{
    int64_t size = 1;
    for (int i = layout->count - 1; i >= place; i--) {
        const LayoutDim *dim = &layout->dim[i];
        size *= layout_extent(layout, i, dims);
        if (!dim->factor)
            size += layout->before[dim->axis] + layout->after[dim->axis];
    }
    return size;
}

int64_t layout_stride(const Layout *layout, int place, const int64_t *dims)
{
    return size_from(layout, place + 1, dims);
}

int64_t layout_size(const Layout *layout, int rank, const int64_t *dims)
{
    (void)rank;
    return size_from(layout, 0, dims);
}

/* What index `index` of `axis` adds to the offset: offsets are sums of one
 * such term an axis. */
static int64_t axis_offset(const Layout *layout, const int64_t *dims, int axis,
                           int64_t index)
{
    int64_t at = index + layout->lo[axis], offset = layout->before[axis];
    for (int i = 0; i < layout->count; i++) {
        const LayoutDim *dim = &layout->dim[i];
        if (dim->axis != axis)
            continue;
        int64_t part = at / inner_blocks(layout, i);
        offset += (dim->factor ? part % dim->factor : part) *
                  layout_stride(layout, i, dims);
    }
    return offset;
}

int64_t layout_offset(const Layout *layout, int rank, const int64_t *dims,
                      const int64_t *index)
{
    int64_t offset = 0;
    for (int axis = 0; axis < rank; axis++)
        offset += axis_offset(layout, dims, axis, index[axis]);
    return offset;
}

/* The place of the outer part of an axis, -1 when the axis has blocks. */
static int only_place(const Layout *layout, int axis)
{
    int place = -1;
    for (int i = 0; i < layout->count; i++) {
        if (layout->dim[i].axis != axis)
            continue;
        if (layout->dim[i].factor)
            return -1;
        place = i;
    }
    return place;
}

bool layout_take_part(Layout *layout, const int64_t *dims, int axis,
                      int64_t start, int64_t extent)
{
    int place = only_place(layout, axis);
    if (place < 0)
        return false;
    int64_t stride = layout_stride(layout, place, dims);
    int64_t rest = dims[axis] - start - extent;
    if (start > 0) {
        layout->before[axis] += (layout->lo[axis] + start) * stride;
        layout->lo[axis] = 0;
    }
    if (rest > 0) {
        layout->after[axis] += (layout->hi[axis] + rest) * stride;
        layout->hi[axis] = 0;
    }
    return true;
}

bool layout_same_storage(const Layout *a, const Layout *b, int rank,
                         const int64_t *dims)
{
    const int64_t zero[MAX_RANK] = {0};
    bool plain = true;
    for (int axis = 0; axis < rank; axis++) {
        int p = only_place(a, axis), q = only_place(b, axis);
        plain = plain && p >= 0 && q >= 0;
        if (a->lo[axis] != b->lo[axis] || a->hi[axis] != b->hi[axis])
            return false;
        /* The place of an axis without neighbours says nothing. */
        if (plain && dims[axis] + a->lo[axis] + a->hi[axis] != 1 &&
            layout_stride(a, p, dims) != layout_stride(b, q, dims))
            return false;
    }
    if (!plain)
        return layout_equal(a, b);
    return layout_size(a, rank, dims) == layout_size(b, rank, dims) &&
           layout_offset(a, rank, dims, zero) ==
               layout_offset(b, rank, dims, zero);
}

/* Constant sizes let the compiler turn each into one move. */
static void copy_element(char *to, const char *from, size_t size)
{
    switch (size) {
    case 1:
        *to = *from;
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    default:
        memcpy(to, from, 8);
    }
}

/* Walks the array in row-major order; `pack` copies into the storage,
 * otherwise out of it. */
static void transfer(const Layout *layout, const Array *array, char *storage,
                     bool pack)
{
    size_t size = dtype_size(array->dtype);
    int rank = array->rank;
    int64_t *table[MAX_RANK], index[MAX_RANK] = {0}, entries = 1;
    if (array_count(array) == 0)
        return;
    for (int i = 0; i < rank; i++)
        entries += array->dims[i];
    int64_t *all = malloc((size_t)entries * sizeof *all), *next = all;
    if (!all)
        die("out of memory: layout tables");
    for (int axis = 0; axis < rank; axis++) {
        table[axis] = next;
        for (int64_t i = 0; i < array->dims[axis]; i++)
            *next++ = axis_offset(layout, array->dims, axis, i);
    }
    /* A scalar is one row of one element. */
    const int64_t zero = 0;
    const int64_t *row = rank ? table[rank - 1] : &zero;
    int64_t width = rank ? array->dims[rank - 1] : 1;
    char *dense = array->data;
    bool more = true;
    while (more) {
        int64_t base = 0;
        for (int axis = 0; axis + 1 < rank; axis++)
            base += table[axis][index[axis]];
        for (int64_t i = 0; i < width; i++) {
            char *stored = storage + (size_t)(base + row[i]) * size;
            copy_element(pack ? stored : dense, pack ? dense : stored, size);
            dense += size;
        }
        more = false;
        for (int axis = rank - 2; axis >= 0 && !more; axis--) {
            more = ++index[axis] < array->dims[axis];
            if (!more)
                index[axis] = 0;
        }
    }
    free(all);
}

/* Border and slack are zeroed: a border must be zero, and slack that differs
 * between builds would make artifacts differ. */
void layout_pack(const Layout *layout, const Array *array, void *storage)
{
    int64_t size = layout_size(layout, array->rank, array->dims);
    memset(storage, 0, (size_t)size * dtype_size(array->dtype));
    transfer(layout, array, storage, true);
}

void layout_unpack(const Layout *layout, const void *storage, Array *array)
{
    transfer(layout, array, (char *)storage, false);
}

void layout_print(Str *out, const Layout *layout)
{
    str_add(out, "[");
    for (int i = 0; i < layout->count; i++) {
        const LayoutDim *dim = &layout->dim[i];
        str_addf(out, "%s%d", i ? " " : "", dim->axis);
        if (dim->factor) {
            str_addf(out, "%%%lld", (long long)dim->factor);
            continue;
        }
        if (layout->lo[dim->axis] || layout->hi[dim->axis])
            str_addf(out, "+%lld+%lld", (long long)layout->lo[dim->axis],
                     (long long)layout->hi[dim->axis]);
        if (layout->before[dim->axis] || layout->after[dim->axis])
            str_addf(out, "~%lld~%lld", (long long)layout->before[dim->axis],
                     (long long)layout->after[dim->axis]);
    }
    str_add(out, "]");
}

/* strtoll takes signs and blanks, which the form does not have. */
static bool parse_number(const char **text, int64_t *value)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *value = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0;
}

/* "+1+2" or "~1~2", when it is there. */
static bool parse_pair(const char **text, char mark, int64_t *first,
                       int64_t *second)
{
    if (**text != mark)
        return true;
    (*text)++;
    if (!parse_number(text, first) || *(*text)++ != mark)
        return false;
    return parse_number(text, second);
}

/* Every axis must have exactly one outer part: only then does the layout hold
 * all elements, each once. */
bool layout_parse(const char **text, int rank, Layout *layout)
{
    const char *at = *text;
    bool has_outer[MAX_RANK] = {false};
    *layout = (Layout){0};
    if (*at++ != '[')
        return false;
    while (*at != ']') {
        int64_t axis;
        LayoutDim dim = {0};
        if (layout->count && *at++ != ' ')
            return false;
        if (layout->count == MAX_LAYOUT || !parse_number(&at, &axis) ||
            axis >= rank)
            return false;
        dim.axis = (int)axis;
        if (*at == '%') {
            at++;
            if (!parse_number(&at, &dim.factor) || dim.factor < 1)
                return false;
        } else if (has_outer[axis]) {
            return false;
        } else {
            has_outer[axis] = true;
            if (!parse_pair(&at, '+', &layout->lo[axis], &layout->hi[axis]) ||
                !parse_pair(&at, '~', &layout->before[axis],
                            &layout->after[axis]))
                return false;
        }
        layout->dim[layout->count++] = dim;
    }
    for (int i = 0; i < rank; i++)
        if (!has_outer[i])
            return false;
    *text = at + 1;
    return true;
}
