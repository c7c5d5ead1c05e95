/* Nodes that only rename memory: reshapes, transposes and slices whose
 * result can lie exactly where their operand does, and concatenations whose
 * operands were written into the result. The layout pass asks for the layout
 * that makes it so, the program whether it was chosen. */
#include "passes/util.h"

/* The place of axis `axis` in a layout without blocks. */
static int place_of(const Layout *layout, int axis)
{
    for (int i = 0; i < layout->count; i++)
        if (layout->dim[i].axis == axis)
            return i;
    return -1;
}

/* The layout under which a transpose's result lies as its operand does. */
static Layout permuted_alias(const Layout *in, int rank, const int *perm)
{
    Layout out = *in;

    for (int i = 0; i < rank; i++) {
        int place = place_of(in, perm[i]);
        out.dim[place].axis = i;
        out.lo[i] = in->lo[perm[i]];
        out.hi[i] = in->hi[perm[i]];
        out.before[i] = in->before[perm[i]];
        out.after[i] = in->after[perm[i]];
    }
    return out;
}

/* The layout under which a reshape's result lies as its operand does.
 * Axes of both sides are matched in runs of equal products; a run can
 * change its axes only where they are neighbours in memory and in order,
 * without elements of others between them. False when there is none. */
static bool reshaped_alias(const Layout *in, int in_rank,
                           const int64_t *in_dims, int out_rank,
                           const int64_t *out_dims, Layout *out)
{
    int run_of[MAX_RANK], run_first[MAX_RANK + 1], runs = 0, i = 0, j = 0;
    bool is_unit[MAX_RANK] = {false};

    if (layout_has_border(in) || in->count != in_rank)
        return false;
    while (i < in_rank || j < out_rank) {
        int64_t a = 1, b = 1;
        int first = i;
        run_first[runs] = j;
        /* Axes of extent 1 on both sides belong together. */
        if (i < in_rank && j < out_rank && in_dims[i] == 1 &&
            out_dims[j] == 1) {
            is_unit[runs] = true;
            run_of[i++] = runs++;
            j++;
            if (runs == MAX_RANK && (i < in_rank || j < out_rank))
                return false;
            continue;
        }
        do {
            if (i < in_rank && (a <= b || j == out_rank))
                a *= in_dims[i++];
            else if (j < out_rank)
                b *= out_dims[j++];
            else
                return false;
        } while (a != b);
        /* Trailing ones belong to the last run. */
        if (i == in_rank)
            while (j < out_rank && out_dims[j] == 1)
                j++;
        if (j == out_rank)
            while (i < in_rank && in_dims[i] == 1)
                i++;
        for (int k = first; k < i; k++)
            run_of[k] = runs;
        is_unit[runs] = a == 1;
        if (++runs == MAX_RANK && (i < in_rank || j < out_rank))
            return false;
    }
    run_first[runs] = out_rank;
    *out = (Layout){0};
    int last_axis = -1;
    bool done[MAX_RANK] = {false};
    for (int place = 0; place < in->count; place++) {
        int axis = in->dim[place].axis;
        int run = run_of[axis];
        bool has_others = in->before[axis] || in->after[axis];
        /* Axes of extent 1 lie anywhere: those that are a run of their own
         * stay where they are, the others follow their run. */
        if (in_dims[axis] == 1 && (done[run] || !is_unit[run])) {
            if (has_others)
                return false;
            continue;
        }
        bool follows = last_axis >= 0 && run_of[last_axis] == run;
        if (follows ? axis < last_axis || has_others : done[run])
            return false;
        last_axis = axis;
        if (!follows) {
            /* A run must start with its first axis that is not 1. */
            for (int k = 0; k < axis; k++)
                if (run_of[k] == run && in_dims[k] != 1)
                    return false;
            int first = run_first[run];
            for (int k = first; k < run_first[run + 1]; k++)
                out->dim[out->count++].axis = k;
            done[run] = true;
            if (has_others && first == run_first[run + 1])
                return false;
            if (has_others) {
                out->before[first] = in->before[axis];
                out->after[first] = in->after[axis];
            }
        }
    }
    /* Runs without an axis of the operand. */
    for (int run = 0; run < runs; run++)
        if (!done[run])
            for (int k = run_first[run]; k < run_first[run + 1]; k++)
                out->dim[out->count++].axis = k;
    return true;
}

/* Row-major where the layout pass has not run. */
static Layout layout_of(const Tensor *t)
{
    return t->layout.count ? t->layout : layout_row_major(t->type.rank);
}

/* The layout of a slice's result inside its operand. */
static bool part_alias(const Layout *in, const int64_t *in_dims,
                       const TensorType *y, const int64_t *start, Layout *out)
{
    int64_t dims[MAX_RANK];

    *out = *in;
    for (int i = 0; i < y->rank; i++)
        dims[i] = in_dims[i];
    for (int i = 0; i < y->rank; i++) {
        int64_t extent = y->dims[i].value;
        if (extent == dims[i])
            continue;
        if (!layout_take_part(out, dims, i, start[i], extent))
            return false;
        dims[i] = extent;
    }
    return true;
}

static Extent product(Arena *arena, const Extent *dims, int count)
{
    Extent all = extent_const(1);

    for (int i = 0; i < count; i++)
        all = extent_mul(arena, all, dims[i]);
    return all;
}

/* Of axes that are joined or split, only the outermost may be known at run
 * time only: with others the upper bounds, by which both sides lie, would
 * leave gaps that the elements do not have. */
static bool has_numbers_inside(const Extent *dims, int count)
{
    bool is_first = true;

    for (int i = 0; i < count; i++) {
        if (!extent_is_const(dims[i]) && !is_first)
            return false;
        is_first = is_first && dims[i].value == 1;
    }
    return true;
}

/* Whether a reshape of such types maps elements as it does at the upper
 * bounds. Runs of equal products are looked at one by one. */
static bool reshapes_alike(Arena *arena, const TensorType *x,
                           const TensorType *y)
{
    int i = 0, o = 0;

    if (type_is_static(x) && type_is_static(y))
        return true;
    while (i < x->rank || o < y->rank) {
        bool found = false;
        for (int n = 1; n <= x->rank - i + y->rank - o && !found; n++)
            for (int k = 0; k <= n && !found; k++) {
                if (k > x->rank - i || n - k > y->rank - o ||
                    !extent_equal(product(arena, &x->dims[i], k),
                                  product(arena, &y->dims[o], n - k)))
                    continue;
                if (!has_numbers_inside(&x->dims[i], k) ||
                    !has_numbers_inside(&y->dims[o], n - k))
                    return false;
                i += k;
                o += n - k;
                found = true;
            }
        if (!found)
            return false;
    }
    return true;
}

bool node_alias_layout(Arena *scratch, const Node *node, Layout *layout)
{
    Tensor *x = node_input(node, 0), *y = node_only_output(node);
    int64_t in_dims[MAX_RANK], out_dims[MAX_RANK], start[MAX_RANK];
    int perm[MAX_RANK];

    if (!x || !y || x->value || !node_is_pure(node) ||
        !type_is_bounded(&x->type) || !type_is_bounded(&y->type))
        return false;
    if ((node->op->traits & OP_RESHAPE) &&
        !reshapes_alike(scratch, &x->type, &y->type))
        return false;
    /* No layout was chosen, or one with blocks: nothing to reason about. */
    if (x->layout.count != x->type.rank)
        return false;
    tensor_dims(&x->type, in_dims);
    tensor_dims(&y->type, out_dims);
    Layout from = layout_of(x);
    if (node->op->traits & OP_RESHAPE) {
        if (!reshaped_alias(&from, x->type.rank, in_dims, y->type.rank,
                            out_dims, layout))
            return false;
    } else if ((node->op->traits & OP_INJECTIVE) &&
               node_permutation(scratch, node, perm)) {
        *layout = permuted_alias(&from, x->type.rank, perm);
    } else if (!node_is_part(scratch, node, 0, start) ||
               !part_alias(&from, in_dims, &y->type, start, layout)) {
        return false;
    }
    /* Axes of extent 1 may lie anywhere: prefer the plain form. */
    Layout plain = layout_row_major(y->type.rank);
    if (layout_same_storage(layout, &plain, y->type.rank, out_dims))
        *layout = plain;
    return true;
}

bool node_unalias_layout(Arena *scratch, const Node *node,
                         const Layout *layout, Layout *operand)
{
    Tensor *x = node_input(node, 0), *y = node_only_output(node);
    int64_t in_dims[MAX_RANK], out_dims[MAX_RANK];
    int perm[MAX_RANK], back[MAX_RANK] = {0};

    if (layout->count != y->type.rank ||
        ((node->op->traits & OP_RESHAPE) &&
         !reshapes_alike(scratch, &x->type, &y->type)))
        return false;
    tensor_dims(&x->type, in_dims);
    tensor_dims(&y->type, out_dims);
    if (node->op->traits & OP_RESHAPE)
        return reshaped_alias(layout, y->type.rank, out_dims, x->type.rank,
                              in_dims, operand);
    if (!(node->op->traits & OP_INJECTIVE) ||
        !node_permutation(scratch, node, perm))
        return false;
    for (int i = 0; i < x->type.rank; i++)
        back[perm[i]] = i;
    *operand = permuted_alias(layout, x->type.rank, back);
    return true;
}

bool node_is_joined(Arena *scratch, const Node *node)
{
    int64_t *starts = ARENA_ARRAY(scratch, int64_t, node->inputs.count + 1);
    Tensor *y = node_only_output(node);
    int axis;

    /* Cheap test first: most nodes have operands of their own storage. */
    for (int i = 0; i < node->inputs.count; i++) {
        Tensor *x = node->inputs.data[i];
        if (!x || !y || !x->within || tensor_storage(x) != tensor_storage(y))
            return false;
    }
    if (node->inputs.count == 0 || !node_is_join(scratch, node, &axis, starts))
        return false;
    for (int i = 0; i < node->inputs.count; i++) {
        Tensor *x = node->inputs.data[i];
        Layout part = y->layout;
        int64_t dims[MAX_RANK];
        tensor_dims(&y->type, dims);
        if (!layout_take_part(&part, dims, axis, starts[i],
                              x->type.dims[axis].value))
            return false;
        dims[axis] = x->type.dims[axis].value;
        if (!layout_same_storage(&part, &x->layout, x->type.rank, dims))
            return false;
    }
    return true;
}

bool node_is_alias(Arena *scratch, const Node *node)
{
    Tensor *x = node_input(node, 0), *y = node_only_output(node);
    int64_t dims[MAX_RANK];
    Layout layout;

    if (!x || !y)
        return false;
    if (node_is_joined(scratch, node))
        return true;
    /* What lies in another tensor is no alias of an operand elsewhere. */
    if (y->is_output ||
        (y->within && tensor_storage(y) != tensor_storage(x)) ||
        !node_alias_layout(scratch, node, &layout))
        return false;
    tensor_dims(&y->type, dims);
    Layout chosen = layout_of(y);
    return layout_same_storage(&layout, &chosen, y->type.rank, dims);
}
