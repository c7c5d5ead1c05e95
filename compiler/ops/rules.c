/* Helpers of the type and definition rules. The infer_ functions report and
 * return false; those for definitions assume a node that passed its type
 * rule. */
#include "ops/rules.h"

#include <string.h>

#include "tensor/half.h"

bool node_has_input(const Node *node, int index)
{
    return index < node->inputs.count && node->inputs.data[index];
}

const TensorType *infer_input(const InferContext *c, int index)
{
    return &c->node->inputs.data[index]->type;
}

/* `types` is a set of element types, as bits. */
bool infer_types(InferContext *c, int index, unsigned types)
{
    DType dtype = infer_input(c, index)->dtype;
    if (types >> dtype & 1)
        return true;
    return infer_error(c,
                       "input %d (%s) has the element type %s, which is "
                       "not allowed there",
                       index, c->node->inputs.data[index]->name,
                       dtype_name(dtype));
}

bool infer_same_dtype(InferContext *c, int a, int b)
{
    const Tensor *x = c->node->inputs.data[a], *y = c->node->inputs.data[b];
    if (x->type.dtype == y->type.dtype)
        return true;
    return infer_error(c,
                       "inputs %s (%s) and %s (%s) must have the same "
                       "element type; add a Cast",
                       x->name, dtype_name(x->type.dtype), y->name,
                       dtype_name(y->type.dtype));
}

bool infer_rank(InferContext *c, int index, int lowest, int highest)
{
    int rank = infer_input(c, index)->rank;
    if (rank >= lowest && rank <= highest)
        return true;
    Str type = {0};
    type_print(&type, infer_input(c, index));
    infer_error(c, "input %d (%s) is %s, its rank must be %d to %d", index,
                c->node->inputs.data[index]->name, str_text(&type), lowest,
                highest);
    str_free(&type);
    return false;
}

/* Shapes must be known when kernels are made, so operands that shapes depend
 * on must be constants by then. */
const Array *infer_constant(InferContext *c, int index, const char *what)
{
    Tensor *input = c->node->inputs.data[index];
    if (!input->value) {
        input->is_wanted = true;
        infer_error(c,
                    "its operand %s (tensor %s) is computed at run time; it "
                    "must be a constant: fix the shapes it comes from, give "
                    "the input it comes from with --bind NAME=FILE, or store "
                    "it as an initializer",
                    what, input->name);
    }
    return input->value;
}

/* Element `at` of a small integer tensor; false when it is not known. */
static bool element(const Tensor *t, int64_t at, Extent *extent)
{
    if (t->symbols)
        *extent = t->symbols[at];
    else if (t->value)
        *extent = extent_const(array_get_int(t->value, at));
    return t->symbols || t->value;
}

Extent infer_counted(InferContext *c, int64_t most)
{
    Arena *arena = c->graph->arena;
    return extent_ranged(arena, op_counted_name(arena, c->node), 0, most);
}

const char *op_counted_name(Arena *arena, const Node *node)
{
    return arena_printf(arena, "%s.count", node->name);
}

bool extents_agree(Extent a, Extent b)
{
    bool unbound = a.value < 0 || b.value < 0;
    return extent_equal(a, b) ||
           (unbound && !(extent_is_const(a) && extent_is_const(b)));
}

int infer_extents(InferContext *c, int index, const char *what, int most,
                  Extent *list)
{
    const Tensor *input = c->node->inputs.data[index];
    if (!input->symbols && !input->value) {
        c->node->inputs.data[index]->is_wanted = true;
        infer_error(c,
                    "its operand %s (tensor %s) is computed at run time; say "
                    "what its elements may be with --dim %s=LOW..HIGH, give "
                    "the input it comes from with --bind NAME=FILE, or store "
                    "it as an initializer",
                    what, input->name, input->name);
        return -1;
    }
    int64_t count = type_count(&input->type);
    if (input->type.rank > 1 || count > most ||
        dtype_is_float(input->type.dtype)) {
        infer_error(c, "%s (%s) must be a list of at most %d integers", what,
                    input->name, most);
        return -1;
    }
    for (int i = 0; i < count; i++)
        element(input, i, &list[i]);
    return (int)count;
}

Extent extent_operand(const Node *node, int index, int64_t at)
{
    Extent extent = extent_const(0);
    element(node->inputs.data[index], at, &extent);
    return extent;
}

static const Expr *extent_expr(const DefineContext *c, Extent extent,
                               bool loads)
{
    static const ExprKind kinds[] = {
        [DIM_ADD] = EX_ADD, [DIM_SUB] = EX_SUB, [DIM_MUL] = EX_MUL,
        [DIM_DIV] = EX_DIV, [DIM_MIN] = EX_MIN, [DIM_MAX] = EX_MAX,
    };
    Arena *a = c->def->arena;
    const DimExpr *e = extent.expr;
    if (!e)
        return expr_int(a, extent.value);
    if (e->kind == DIM_NAME) {
        int place = graph_symbol(c->graph, e->name);
        if (place < 0)
            die("%s \"%s\" needs the dimension %s, which has no bounds",
                c->node->op->name, c->node->name, e->name);
        const Expr *index = expr_int(a, place);
        return loads ? expr_load(a, c->extents, index)
                     : expr_read(a, c->extents, &index);
    }
    const Expr *x = extent_expr(c, e->a, loads);
    const Expr *y = extent_expr(c, e->b, loads);
    /* A divisor that may be 0 would trap. */
    if (e->kind == DIM_DIV && extent_lower(e->b) < 1)
        y = expr_max(a, y, expr_int(a, 1));
    return expr_binary(a, kinds[e->kind], x, y);
}

Buffer *define_extents_buffer(Definition *def, const Graph *graph)
{
    int64_t count = graph->symbols.count + 1;
    Buffer *b =
        definition_add_buffer(def, "ext", BUF_INPUT, DT_I64, 1, &count);
    b->is_extents = true;
    return b;
}

const Expr *define_extent(const DefineContext *c, Extent extent)
{
    return extent_expr(c, extent, false);
}

const Expr *load_extent(const DefineContext *c, Extent extent)
{
    return extent_expr(c, extent, true);
}

/* Outputs that the node leaves out are passed over. */
void infer_set(InferContext *c, int index, DType dtype, int rank,
               const Extent *dims)
{
    if (index >= c->node->outputs.count || !c->node->outputs.data[index])
        return;
    TensorType type = {.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; i++)
        type.dims[i] = dims[i];
    c->node->outputs.data[index]->type = type;
}

/* Sizes are bounded here, where a shape is made, so that no later product of
 * extents can overflow. */
bool infer_set_checked(InferContext *c, int index, DType dtype, int rank,
                       const Extent *dims)
{
    if (rank > MAX_RANK)
        return infer_error(c, "a result of rank %d; at most %d is supported",
                           rank, MAX_RANK);
    int64_t bytes = (int64_t)dtype_size(dtype);
    bool fits = true;
    for (int i = 0; i < rank && fits; i++)
        if (extent_is_const(dims[i]) && dims[i].value > 0)
            fits = !__builtin_mul_overflow(bytes, dims[i].value, &bytes);
    if (!fits)
        return infer_error(c, "the result has more bytes than 64 bits count");
    infer_set(c, index, dtype, rank, dims);
    return true;
}

int64_t extent_known(Extent extent)
{
    return extent_is_const(extent) ? extent.value : -1;
}

/* Expressions of names that have no bounds yet are compared when they do. */
static bool is_open(Extent extent)
{
    return extent.value < 0 && extent.expr;
}

static bool is_name(Extent extent)
{
    return extent.expr && extent.expr->kind == DIM_NAME;
}

bool infer_broadcast_dim(InferContext *c, Extent *to, Extent from)
{
    if (extent_known(*to) == 1) {
        *to = from;
    } else if (extent_known(from) != 1 && !extent_equal(*to, from)) {
        /* A named extent against a number above 1 must be that number (or
         * 1), which is checked when the name is bound. */
        bool unknown = is_open(*to) || is_open(from);
        if (!unknown || (is_name(*to) && is_name(from))) {
            Str a = {0}, b = {0};
            extent_print_plain(&a, *to);
            extent_print_plain(&b, from);
            infer_error(c,
                        extent_is_const(*to) && extent_is_const(from)
                            ? "the extents %s and %s cannot be broadcast"
                            : "the extents %s and %s are not known to be "
                              "equal; fix them with --dim NAME=VALUE",
                        str_text(&a), str_text(&b));
            str_free(&a);
            str_free(&b);
            return false;
        }
        if (extent_is_const(from))
            *to = from;
    }
    return true;
}

Extent extents_product(Arena *arena, const Extent *dims, int count)
{
    Extent all = extent_const(1);
    for (int i = 0; i < count; i++)
        all = extent_mul(arena, all, dims[i]);
    return all;
}

/* Aligned at the last axis; missing axes count as 1. */
bool infer_broadcast(InferContext *c, int first, int last, int *rank,
                     Extent *dims)
{
    *rank = 0;
    for (int i = first; i <= last; i++)
        if (node_has_input(c->node, i) && infer_input(c, i)->rank > *rank)
            *rank = infer_input(c, i)->rank;
    for (int i = 0; i < *rank; i++)
        dims[i] = extent_const(1);
    for (int i = first; i <= last; i++) {
        if (!node_has_input(c->node, i))
            continue;
        const TensorType *type = infer_input(c, i);
        for (int k = 0; k < type->rank; k++)
            if (!infer_broadcast_dim(c, &dims[*rank - type->rank + k],
                                     type->dims[k]))
                return false;
    }
    return true;
}

/* ONNX counts negative axes from the end everywhere. */
bool infer_axis(InferContext *c, const char *what, int64_t axis, int rank,
                int *result)
{
    if (axis < -rank || axis >= rank)
        return infer_error(c, "%s %lld is outside the rank %d", what,
                           (long long)axis, rank);
    *result = normal_axis(axis, rank);
    return true;
}

int normal_axis(int64_t axis, int rank)
{
    return (int)(axis < 0 ? axis + rank : axis);
}

bool infer_axes(InferContext *c, const Array *axes, int rank, bool *chosen)
{
    if (axes->rank > 1 || dtype_is_float(axes->dtype))
        return infer_error(c, "axes must be a list of integers");
    for (int64_t i = 0; i < array_count(axes); i++) {
        int axis = 0;
        if (!infer_axis(c, "axis", array_get_int(axes, i), rank, &axis))
            return false;
        if (chosen[axis])
            return infer_error(c, "axis %d is listed twice", axis);
        chosen[axis] = true;
    }
    return true;
}

bool infer_ints(InferContext *c, const char *name, int count, int64_t lowest,
                int64_t fallback, int64_t *values)
{
    int given;
    const int64_t *ints = attrs_ints(&c->node->attrs, name, &given);
    if (ints && given != count)
        return infer_error(c, "%s has %d values, it needs %d", name, given,
                           count);
    for (int i = 0; i < count; i++) {
        values[i] = ints ? ints[i] : fallback;
        /* Bounded, so that sums and products of them cannot overflow. */
        if (values[i] < lowest || values[i] > INT32_MAX)
            return infer_error(c, "%s holds %lld, outside %lld to %d", name,
                               (long long)values[i], (long long)lowest,
                               INT32_MAX);
    }
    return true;
}

bool infer_number(InferContext *c, int index, const char *what, int64_t *value)
{
    const Array *array = infer_constant(c, index, what);
    if (!array)
        return false;
    if (array_count(array) != 1 || dtype_is_float(array->dtype))
        return infer_error(c, "%s must be one integer", what);
    *value = array_get_int(array, 0);
    return true;
}

bool infer_indices(InferContext *c, int input, int64_t first, int64_t step,
                   Extent extent)
{
    const Tensor *tensor = c->node->inputs.data[input];
    int64_t length = extent_known(extent);
    if (length == 0 && type_count(&tensor->type) != 0)
        return infer_error(c, "%s chooses from an axis without elements",
                           tensor->name);
    if (!tensor->value || length < 0)
        return true;
    for (int64_t i = first; i < array_count(tensor->value); i += step) {
        int64_t value = array_get_int(tensor->value, i);
        if (value < -length || value >= length)
            return infer_error(c,
                               "the index %lld of %s is outside an axis "
                               "of %lld elements",
                               (long long)value, tensor->name,
                               (long long)length);
    }
    return true;
}

const Expr *read_same(const StageBuilder *b, const Buffer *buffer)
{
    return expr_read(b->arena, buffer, b->index);
}

/* Axes of extent 1 read element 0: no modulo, no stride of zero. */
const Expr *read_broadcast(const StageBuilder *b, const Buffer *buffer)
{
    const Expr *index[MAX_RANK];
    const Stage *stage = b->stage;
    int shift = stage->axis_count - buffer->rank;
    for (int i = 0; i < buffer->rank; i++)
        index[i] =
            buffer->dims[i] == 1 ? expr_int(b->arena, 0) : b->index[shift + i];
    return expr_read(b->arena, buffer, index);
}

Buffer *define_temp(DefineContext *c, const char *name, DType dtype, int rank,
                    const int64_t *dims)
{
    Buffer *b =
        definition_add_buffer(c->def, name, BUF_TEMP, dtype, rank, dims);
    b->is_inner = true;
    return b;
}

Buffer *define_temp_part(DefineContext *c, const char *name, DType dtype,
                         int rank, const Buffer *like)
{
    Buffer *b = define_temp(c, name, dtype, rank, like->dims);
    for (int i = 0; i < rank; i++)
        b->limit[i] = like->limit[i];
    return b;
}

Buffer *define_temp_like(DefineContext *c, const char *name,
                         const Buffer *like)
{
    return define_temp_part(c, name, like->dtype, like->rank, like);
}

const Expr *count_like(Arena *a, const Expr *like, const Expr *count)
{
    return count->kind == EX_INT ? const_like(a, like, (double)count->i)
                                 : expr_cast(a, like->dtype, count);
}

const Expr *const_like(Arena *a, const Expr *like, double value)
{
    return expr_const(a, like->dtype, value);
}

/* The start of a maximum, and what padding holds under one. */
const Expr *lowest_of(Arena *a, DType dtype)
{
    switch (dtype) {
    case DT_I64:
        return expr_const_int(a, dtype, INT64_MIN);
    case DT_I32:
        return expr_const_int(a, dtype, INT32_MIN);
    case DT_I16:
        return expr_const_int(a, dtype, INT16_MIN);
    case DT_I8:
        return expr_const_int(a, dtype, INT8_MIN);
    case DT_U64:
    case DT_U32:
    case DT_U16:
    case DT_U8:
    case DT_BOOL:
        return expr_const_int(a, dtype, 0);
    default:
        return expr_const(a, dtype, -__builtin_inf());
    }
}

const Expr *highest_of(Arena *a, DType dtype)
{
    if (dtype_is_float(dtype))
        return expr_const(a, dtype, __builtin_inf());
    if (dtype == DT_BOOL)
        return expr_const_int(a, dtype, 1);
    /* Without a sign all bits are set, with one all but the first. */
    unsigned spare =
        64 - 8 * (unsigned)dtype_size(dtype) + dtype_is_signed(dtype);
    return expr_const_int(a, dtype, (int64_t)(UINT64_MAX >> spare));
}

const Expr *read_scalar(const StageBuilder *b, const Buffer *buffer)
{
    const Expr *zeros[MAX_RANK];
    for (int i = 0; i < buffer->rank; i++)
        zeros[i] = expr_int(b->arena, 0);
    return expr_read(b->arena, buffer, zeros);
}

const Expr *read_along(const StageBuilder *b, const Buffer *buffer, int axis,
                       const Expr *at)
{
    const Expr *index[MAX_RANK];
    for (int i = 0; i < buffer->rank; i++)
        index[i] = i == axis ? at : b->index[i];
    return expr_read(b->arena, buffer, index);
}

const Expr *index_clamp(Arena *a, const Expr *index, int64_t length)
{
    index = expr_min(a, index, expr_int(a, length - 1));
    return expr_max(a, expr_int(a, 0), index);
}

/* Such indices need no wrapping at run time. */
static bool is_never_negative(const Array *indices)
{
    for (int64_t i = 0; i < array_count(indices); i++)
        if (array_get_int(indices, i) < 0)
            return false;
    return true;
}

const Expr *index_wrap(Arena *a, const Expr *index, const Expr *length,
                       const Array *known)
{
    index = expr_cast(a, DT_I64, index);
    if (known && is_never_negative(known))
        return index;
    index = expr_select(a, expr_binary(a, EX_LT, index, expr_int(a, 0)),
                        expr_add(a, index, length), index);
    if (known)
        return index;
    index = expr_min(a, index, expr_add_int(a, length, -1));
    return expr_max(a, expr_int(a, 0), index);
}

const Expr *expr_and(Arena *a, const Expr *x, const Expr *y)
{
    return expr_binary(a, EX_AND, x, y);
}

const Expr *index_within(Arena *a, const Expr *x, int64_t lo, int64_t hi)
{
    return expr_and(a, expr_binary(a, EX_LE, expr_int(a, lo), x),
                    expr_binary(a, EX_LT, x, expr_int(a, hi)));
}

/* Horner's scheme; multiplication by 1 and addition of 0 fold away. */
const Expr *flatten_index(Arena *a, int rank, const int64_t *dims,
                          const Expr *const *index)
{
    const Expr *flat = expr_int(a, 0);
    for (int i = 0; i < rank; i++)
        flat = expr_add(a, expr_mul_int(a, flat, dims[i]), index[i]);
    return flat;
}

/* The way back from a flat number to indices. */
void unflatten_index(Arena *a, const Expr *flat, int rank, const int64_t *dims,
                     const Expr **index)
{
    int64_t inner = 1;
    for (int i = rank - 1; i >= 0; i--) {
        /* Axes of extent 1 stay constant, so that the reads of the common
         * reshapes remain simple; the outermost needs no modulo. */
        int64_t outer = 1;
        for (int k = 0; k < i; k++)
            outer *= dims[k];
        const Expr *part = flat;
        if (dims[i] <= 1) {
            index[i] = expr_int(a, 0);
            continue;
        }
        if (inner > 1)
            part = expr_div(a, part, expr_int(a, inner));
        if (outer > 1)
            part = expr_binary(a, EX_MOD, part, expr_int(a, dims[i]));
        index[i] = part;
        inner *= dims[i];
    }
}

const Expr *expr_sigmoid(Arena *a, const Expr *x)
{
    /* 1 / (1 + exp(-x)): exp overflows to infinity for very negative x,
     * and 1 / inf is the right 0. */
    const Expr *one = const_like(a, x, 1);
    const Expr *e = expr_unary(a, EX_EXP, expr_unary(a, EX_NEG, x));
    return expr_div(a, one, expr_add(a, one, e));
}

DType work_dtype(DType dtype)
{
    return dtype_is_half(dtype) ? DT_F32 : dtype;
}

DType sum_dtype(DType dtype, int64_t count)
{
    /* The error of a running sum grows with its length; past about a
     * thousand terms the mean of equal values would drift visibly. */
    return dtype == DT_F32 && count > 1024 ? DT_F64 : dtype;
}
