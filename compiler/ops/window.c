/* Windows: strides, dilations and padding, as convolutions and pools
 * have them. */
#include <string.h>

#include "ops/rules.h"

/* What type and definition rules read alike. */
static void read_flags(const Node *node, Window *w)
{
    const char *pad = attrs_string(&node->attrs, "auto_pad", "NOTSET");
    w->same_lower = strcmp(pad, "SAME_LOWER") == 0;
    w->same = w->same_lower || strcmp(pad, "SAME_UPPER") == 0;
    w->ceil_mode = attrs_int(&node->attrs, "ceil_mode", 0) != 0;
}

bool infer_window(InferContext *c, Window *w)
{
    static const char *const known[] = {"NOTSET", "VALID", "SAME_UPPER",
                                        "SAME_LOWER"};
    const char *pad = attrs_string(&c->node->attrs, "auto_pad", "NOTSET");
    int64_t pads[2 * MAX_RANK];
    bool found = false;
    for (int i = 0; i < 4; i++)
        found |= strcmp(pad, known[i]) == 0;
    if (!found)
        return infer_error(c,
                           "auto_pad is \"%s\", it must be NOTSET, VALID, "
                           "SAME_UPPER or SAME_LOWER",
                           pad);
    read_flags(c->node, w);
    if (!infer_ints(c, "strides", w->rank, 1, 1, w->stride) ||
        !infer_ints(c, "dilations", w->rank, 1, 1, w->dilation) ||
        !infer_ints(c, "pads", 2 * w->rank, 0, 0, pads))
        return false;
    bool explicit_pads = strcmp(pad, "NOTSET") == 0;
    for (int i = 0; i < w->rank; i++) {
        if (w->kernel[i] < 1 || w->kernel[i] > INT32_MAX)
            return infer_error(c, "the kernel extent %lld is out of range",
                               (long long)w->kernel[i]);
        w->lo[i] = explicit_pads ? pads[i] : 0;
        w->hi[i] = explicit_pads ? pads[w->rank + i] : 0;
    }
    return true;
}

/* Reach of the dilated kernel. */
static int64_t reach(const Window *w, int axis)
{
    return (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

/* Pads of auto_pad SAME_*: the output has ceil(in / stride) elements. */
static void pad_same(Window *w, int axis, int64_t in)
{
    int64_t out = (in + w->stride[axis] - 1) / w->stride[axis];
    int64_t total = (out - 1) * w->stride[axis] + reach(w, axis) - in;
    if (total < 0)
        total = 0;
    w->lo[axis] = w->same_lower ? total - total / 2 : total / 2;
    w->hi[axis] = total - w->lo[axis];
}

bool infer_window_extent(InferContext *c, Window *w, int axis, Extent in,
                         Extent *out)
{
    Arena *arena = c->graph->arena;
    Extent stride = extent_const(w->stride[axis]);
    int64_t known = extent_known(in), least = extent_lower(in);
    bool is_open = known < 0 && in.value >= 0;
    if (is_open && w->same)
        return infer_error(c,
                           "the pads of auto_pad SAME depend on axis %d, "
                           "whose extent is not known; fix it with --dim "
                           "NAME=VALUE",
                           axis + 2);
    if (w->same) {
        if (known >= 0)
            pad_same(w, axis, known);
        *out = extent_div(
            arena, extent_add(arena, in, extent_const(w->stride[axis] - 1)),
            stride);
        return true;
    }
    int64_t pads = w->lo[axis] + w->hi[axis];
    if (is_open && least + pads < reach(w, axis))
        return infer_error(c,
                           "its kernel reaches over %lld elements of axis "
                           "%d, padding included it may have only %lld; "
                           "raise the lower bound of --dim",
                           (long long)reach(w, axis), axis + 2,
                           (long long)(least + pads));
    if (known >= 0 && known + pads < reach(w, axis))
        return infer_error(c,
                           "its kernel reaches over %lld elements of axis "
                           "%d, padding included it has only %lld",
                           (long long)reach(w, axis), axis + 2,
                           (long long)(known + pads));
    Extent room =
        extent_add(arena, in,
                   extent_const(pads - reach(w, axis) +
                                (w->ceil_mode ? w->stride[axis] - 1 : 0)));
    *out = extent_add(arena, extent_div(arena, room, stride), extent_const(1));
    /* A last window that would start in the padding at the end is left
     * out. */
    if (w->ceil_mode && known >= 0 &&
        (out->value - 1) * w->stride[axis] >= known + w->lo[axis])
        out->value--;
    if (w->ceil_mode && is_open)
        *out = extent_min(
            arena, *out,
            extent_div(
                arena,
                extent_add(arena, in,
                           extent_const(w->lo[axis] + w->stride[axis] - 1)),
                stride));
    return true;
}

/* The definition's view: extents are known, and nothing can fail. */
Window window_of(const Node *node, int rank, const int64_t *kernel,
                 const int64_t *in_dims)
{
    Window w = {.rank = rank};
    int count;
    read_flags(node, &w);
    const int64_t *strides = attrs_ints(&node->attrs, "strides", &count);
    const int64_t *dilations = attrs_ints(&node->attrs, "dilations", &count);
    const int64_t *pads = attrs_ints(&node->attrs, "pads", &count);
    const char *pad = attrs_string(&node->attrs, "auto_pad", "NOTSET");
    if (strcmp(pad, "NOTSET") != 0)
        pads = NULL;
    for (int i = 0; i < rank; i++) {
        w.kernel[i] = kernel[i];
        w.stride[i] = strides ? strides[i] : 1;
        w.dilation[i] = dilations ? dilations[i] : 1;
        w.lo[i] = pads ? pads[i] : 0;
        w.hi[i] = pads ? pads[rank + i] : 0;
        if (w.same)
            pad_same(&w, i, in_dims[i]);
    }
    return w;
}

/* Whether any window reaches outside the input: pads that no window touches
 * need no check. */
bool window_is_padded(const Window *w, const Buffer *x, const Buffer *out)
{
    for (int i = 0; i < w->rank; i++) {
        int64_t last = (out->dims[2 + i] - 1) * w->stride[i] + reach(w, i);
        if (w->lo[i] || last - w->lo[i] > x->dims[2 + i])
            return true;
        /* Which windows reach outside depends on the extent. */
        if (x->limit[2 + i] && (w->hi[i] || w->ceil_mode))
            return true;
    }
    return false;
}
