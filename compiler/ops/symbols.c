/* Shape arithmetic on named dimensions.
 *
 * Models compute shapes with ordinary operators: Shape, then Gather, Slice,
 * Concat and products on lists of a few integers. Where the elements depend on
 * dimensions that are known at run time only, they are followed here as
 * extents, so that the rules of Reshape, Expand and the like see what they
 * would see as a constant. Results of static operands are left to constant
 * folding. */
#include <string.h>

#include "ops/bounded.h"
#include "ops/rules.h"

enum { MAX_SYMBOLS = 64 };

typedef struct Symbols {
    Graph *g;
    const Node *node;
    Extent out[MAX_SYMBOLS];
    int count;
} Symbols;

/* Elements of operand `index`; -1 when they are not known. */
static int read_list(const Node *node, int index, Extent *list)
{
    if (!node_has_input(node, index))
        return -1;
    const Tensor *t = node->inputs.data[index];
    int64_t count = type_count(&t->type);
    if ((!t->value && !t->symbols) || dtype_is_float(t->type.dtype) ||
        t->type.rank > 1 || count < 0 || count > MAX_SYMBOLS)
        return -1;
    for (int i = 0; i < count; i++)
        list[i] = extent_operand(node, index, i);
    return (int)count;
}

static bool is_number(Extent x, int64_t *value)
{
    *value = x.value;
    return extent_is_const(x);
}

static bool of_shape(Symbols *s)
{
    const TensorType *x = &s->node->inputs.data[0]->type;
    int first, end;
    if (type_is_static(x))
        return false;
    shape_range(s->node, x->rank, &first, &end);
    for (int i = first; i < end; i++)
        s->out[s->count++] = x->dims[i];
    return true;
}

static bool of_size(Symbols *s)
{
    const TensorType *x = &s->node->inputs.data[0]->type;
    if (type_is_static(x))
        return false;
    s->out[0] = extent_const(1);
    for (int i = 0; i < x->rank; i++)
        s->out[0] = extent_mul(s->g->arena, s->out[0], x->dims[i]);
    s->count = 1;
    return true;
}

/* Reshape, Squeeze, Cast and the like: the same elements. */
static bool of_same(Symbols *s)
{
    s->count = read_list(s->node, 0, s->out);
    return s->count >= 0;
}

static bool of_concat(Symbols *s)
{
    for (int i = 0; i < s->node->inputs.count; i++) {
        Extent list[MAX_SYMBOLS];
        int n = read_list(s->node, i, list);
        if (n < 0 || s->count + n > MAX_SYMBOLS)
            return false;
        memcpy(&s->out[s->count], list, (size_t)n * sizeof *list);
        s->count += n;
    }
    return true;
}

static bool of_gather(Symbols *s)
{
    Extent list[MAX_SYMBOLS], index[MAX_SYMBOLS];
    int n = read_list(s->node, 0, list);
    s->count = read_list(s->node, 1, index);
    for (int i = 0; i < s->count; i++) {
        int64_t at;
        if (n < 0 || !is_number(index[i], &at) || at < -n || at >= n)
            return false;
        s->out[i] = list[at < 0 ? at + n : at];
    }
    return n >= 0 && s->count >= 0;
}

/* Along the only axis there is. */
static bool of_slice(Symbols *s)
{
    Extent list[MAX_SYMBOLS], bound[2][MAX_SYMBOLS];
    Extent step = extent_const(1), steps[MAX_SYMBOLS];
    int64_t first, end, by;
    int n = read_list(s->node, 0, list);
    if (n < 0 || read_list(s->node, 1, bound[0]) != 1 ||
        read_list(s->node, 2, bound[1]) != 1)
        return false;
    if (node_has_input(s->node, 4)) {
        if (read_list(s->node, 4, steps) != 1)
            return false;
        step = steps[0];
    }
    if (!is_number(bound[0][0], &first) || !is_number(bound[1][0], &end) ||
        !is_number(step, &by) || by != 1)
        return false;
    first += first < 0 ? n : 0;
    end += end < 0 ? n : 0;
    for (int64_t i = first < 0 ? 0 : first; i < end && i < n; i++)
        s->out[s->count++] = list[i];
    return true;
}

typedef bool Pair(Symbols *s, Extent a, Extent b, Extent *out);

/* Of lists of one length, or with one element for all. */
static bool pairwise(Symbols *s, Pair *pair)
{
    Extent a[MAX_SYMBOLS], b[MAX_SYMBOLS];
    int na = read_list(s->node, 0, a), nb = read_list(s->node, 1, b);
    if (na < 0 || nb < 0 || s->node->inputs.count != 2 ||
        (na != nb && na != 1 && nb != 1))
        return false;
    s->count = na > nb ? na : nb;
    for (int i = 0; i < s->count; i++)
        if (!pair(s, a[na == 1 ? 0 : i], b[nb == 1 ? 0 : i], &s->out[i]))
            return false;
    return true;
}

static bool add(Symbols *s, Extent a, Extent b, Extent *out)
{
    *out = extent_add(s->g->arena, a, b);
    return true;
}

static bool sub(Symbols *s, Extent a, Extent b, Extent *out)
{
    *out = extent_sub(s->g->arena, a, b);
    return true;
}

static bool mul(Symbols *s, Extent a, Extent b, Extent *out)
{
    *out = extent_mul(s->g->arena, a, b);
    return true;
}

/* Extents floor where integers truncate. */
static bool divide(Symbols *s, Extent a, Extent b, Extent *out)
{
    if (extent_lower(a) < 0 || extent_lower(b) < 1)
        return false;
    *out = extent_div(s->g->arena, a, b);
    return true;
}

static bool smaller(Symbols *s, Extent a, Extent b, Extent *out)
{
    *out = extent_min(s->g->arena, a, b);
    return true;
}

static bool larger(Symbols *s, Extent a, Extent b, Extent *out)
{
    *out = extent_max(s->g->arena, a, b);
    return true;
}

/* Only where the bounds decide. */
static bool equal(Symbols *s, Extent a, Extent b, Extent *out)
{
    bool same = extent_equal(a, b);
    (void)s;
    if (!same && !(extent_is_const(a) && extent_is_const(b)) &&
        !(a.value >= 0 && a.value < extent_lower(b)) &&
        !(b.value >= 0 && b.value < extent_lower(a)) &&
        !(extent_is_const(a) && a.value < extent_lower(b)) &&
        !(extent_is_const(b) && b.value < extent_lower(a)))
        return false;
    *out = extent_const(same);
    return true;
}

static bool of_add(Symbols *s)
{
    return pairwise(s, add);
}

static bool of_sub(Symbols *s)
{
    return pairwise(s, sub);
}

static bool of_mul(Symbols *s)
{
    return pairwise(s, mul);
}

static bool of_div(Symbols *s)
{
    return pairwise(s, divide);
}

static bool of_min(Symbols *s)
{
    return pairwise(s, smaller);
}

static bool of_max(Symbols *s)
{
    return pairwise(s, larger);
}

static bool of_equal(Symbols *s)
{
    return pairwise(s, equal);
}

static bool of_where(Symbols *s)
{
    Extent list[3][MAX_SYMBOLS];
    int n[3];
    for (int i = 0; i < 3; i++) {
        n[i] = read_list(s->node, i, list[i]);
        if (n[i] < 0)
            return false;
        s->count = n[i] > s->count ? n[i] : s->count;
    }
    for (int i = 0; i < s->count; i++) {
        int64_t which;
        if (!is_number(list[0][n[0] == 1 ? 0 : i], &which))
            return false;
        int side = which ? 1 : 2;
        s->out[i] = list[side][n[side] == 1 ? 0 : i];
    }
    return true;
}

static bool of_product(Symbols *s)
{
    Extent list[MAX_SYMBOLS];
    int n = read_list(s->node, 0, list);
    s->out[0] = extent_const(1);
    for (int i = 0; i < n; i++)
        s->out[0] = extent_mul(s->g->arena, s->out[0], list[i]);
    s->count = 1;
    return n >= 0;
}

static bool of_bounded(Symbols *s)
{
    s->count = (int)type_count(&s->node->outputs.data[0]->type);
    for (int i = 0; i < s->count; i++)
        s->out[i] = bounded_element(s->g->arena, s->node, i);
    return true;
}

static const struct {
    const char *op;
    bool (*rule)(Symbols *s);
} rules[] = {
    {"Shape", of_shape},     {"Size", of_size},
    {"Reshape", of_same},    {"Squeeze", of_same},
    {"Unsqueeze", of_same},  {"Flatten", of_same},
    {"Identity", of_same},   {"Cast", of_same},
    {"Concat", of_concat},   {"Gather", of_gather},
    {"Slice", of_slice},     {"Add", of_add},
    {"Sub", of_sub},         {"Mul", of_mul},
    {"Div", of_div},         {"Min", of_min},
    {"Max", of_max},         {"Equal", of_equal},
    {"Where", of_where},     {"ReduceProd", of_product},
    {"Bounded", of_bounded},
};

/* Nothing to follow, or all a matter of constants. */
static bool has_symbols(const Node *node)
{
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i] && node->inputs.data[i]->symbols)
            return true;
    return (node->op->traits & OP_TYPE_ONLY) || *op_domain(node->op);
}

void infer_symbols(Graph *g, Node *node)
{
    Tensor *out = node->outputs.count ? node->outputs.data[0] : NULL;
    Symbols s = {.g = g, .node = node};
    for (int i = 0; i < node->outputs.count; i++)
        if (node->outputs.data[i])
            node->outputs.data[i]->symbols = NULL;
    const char *domain = op_domain(node->op);
    if (!out || (*domain && strcmp(domain, "assay")) || !has_symbols(node) ||
        dtype_is_float(out->type.dtype) || out->type.rank > 1)
        return;
    int64_t count = type_count(&out->type);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].op, node->op->name) == 0 && rules[i].rule(&s) &&
            s.count == count)
            out->symbols =
                arena_copy(g->arena, s.out, (size_t)s.count * sizeof *s.out);
}
