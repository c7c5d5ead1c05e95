/* Common subexpressions.
 *
 * Input: a typed graph. Output: of several nodes with the same operator,
 * attributes and operands only the first is left, and of several equal
 * constants one. Impure nodes are never merged, nor two graph outputs.
 *
 * Value numbering in list order, with a hash table over (operator,
 * attributes, operands): operands are merged before their users, so one
 * walk finds all. Linear time, hashing the constants included. */
#include <string.h>

#include "base/hash.h"
#include "passes/util.h"

typedef struct Table {
    Arena *arena;
    uint64_t *hashes;
    void **items; /* Node or Tensor; NULL: free */
    int mask;
} Table;

static void table_init(Table *t, Arena *arena, int items)
{
    int size = 16;

    while (size < items * 2)
        size *= 2;
    t->arena = arena;
    t->mask = size - 1;
    t->hashes = ARENA_ARRAY(arena, uint64_t, size);
    t->items = ARENA_ARRAY(arena, void *, size);
}

/* The equal item already there, or NULL after adding this one. */
static void *table_find_or_add(Table *t, uint64_t hash, void *item,
                               bool (*equal)(const void *, const void *))
{
    int at = (int)(hash & (uint64_t)t->mask);

    for (; t->items[at]; at = (at + 1) & t->mask)
        if (t->hashes[at] == hash && equal(t->items[at], item))
            return t->items[at];
    t->hashes[at] = hash;
    t->items[at] = item;
    return NULL;
}

static uint64_t attr_hash(const Attr *a, uint64_t h)
{
    h = hash_bytes(a->name, strlen(a->name), h);
    h = hash_bytes(&a->kind, sizeof a->kind, h);
    switch (a->kind) {
    case ATTR_INT:
        return hash_bytes(&a->i, sizeof a->i, h);
    case ATTR_FLOAT:
        return hash_bytes(&a->f, sizeof a->f, h);
    case ATTR_STRING:
        return hash_bytes(a->s, strlen(a->s), h);
    case ATTR_INTS:
        return hash_bytes(a->ints, (size_t)a->count * sizeof *a->ints, h);
    case ATTR_FLOATS:
        return hash_bytes(a->floats, (size_t)a->count * sizeof *a->floats, h);
    case ATTR_STRINGS:
        for (int i = 0; i < a->count; i++)
            h = hash_bytes(a->strings[i], strlen(a->strings[i]) + 1, h);
        return h;
    case ATTR_TENSOR:
        return hash_bytes(a->tensor->data, array_bytes(a->tensor), h);
    }
    return h;
}

static int operand_id(const Node *node, int index)
{
    const Tensor *t = node_input(node, index);

    return t ? t->id : -1;
}

/* The first two operands of a commutative node in order of their ids: sums
 * and products of two values do not depend on their order. */
static void operand_ids(const Node *node, int ids[2])
{
    int a = operand_id(node, 0), b = operand_id(node, 1);
    bool swap = (node->op->traits & OP_COMMUTATIVE) && a > b;

    ids[0] = swap ? b : a;
    ids[1] = swap ? a : b;
}

static uint64_t node_hash(const Node *node)
{
    int ids[2];
    uint64_t h = hash_bytes(&node->op, sizeof node->op, 0);

    operand_ids(node, ids);
    h = hash_bytes(ids, sizeof ids, h);
    for (int i = 2; i < node->inputs.count; i++) {
        int id = operand_id(node, i);
        h = hash_bytes(&id, sizeof id, h);
    }
    for (int i = 0; i < node->attrs.list.count; i++)
        h = attr_hash(&node->attrs.list.data[i], h);
    return h;
}

static bool nodes_equal(const void *x, const void *y)
{
    const Node *a = x, *b = y;
    int ia[2], ib[2];

    operand_ids(a, ia);
    operand_ids(b, ib);
    if (a->op != b->op || a->inputs.count != b->inputs.count ||
        a->outputs.count != b->outputs.count || ia[0] != ib[0] ||
        ia[1] != ib[1] || !attrs_equal(&a->attrs, &b->attrs))
        return false;
    for (int i = 2; i < a->inputs.count; i++)
        if (operand_id(a, i) != operand_id(b, i))
            return false;
    return true;
}

static bool constants_equal(const void *x, const void *y)
{
    const Tensor *a = x, *b = y;

    return a->type.quant == b->type.quant && array_equal(a->value, b->value);
}

static bool merge_constants(Graph *g, Arena *scratch)
{
    Table table;
    bool changed = false;

    table_init(&table, scratch, g->tensors.count);
    for (int i = 0; i < g->tensors.count; i++) {
        Tensor *t = g->tensors.data[i];
        if (!t->value || t->is_output || t->users.count == 0)
            continue;
        uint64_t h = hash_bytes(t->value->data, array_bytes(t->value),
                                (uint64_t)t->value->dtype);
        h = hash_bytes(t->value->dims,
                       (size_t)t->value->rank * sizeof *t->value->dims, h);
        Tensor *same = table_find_or_add(&table, h, t, constants_equal);
        if (same)
            changed |= graph_replace(g, t, same);
    }
    return changed;
}

/* True when every output of `node` now comes from `same`. An output that
 * only one of the two nodes has cannot be replaced. */
static bool merge_node(Graph *g, Node *node, Node *same)
{
    for (int i = 0; i < node->outputs.count; i++) {
        Tensor *from = node->outputs.data[i], *to = same->outputs.data[i];
        if (from && (from->is_output || from->users.count > 0) &&
            (!to || (from->is_output && to->is_output)))
            return false;
    }
    for (int i = 0; i < node->outputs.count; i++) {
        Tensor *from = node->outputs.data[i];
        if (from && (from->is_output || from->users.count > 0))
            graph_replace(g, from, same->outputs.data[i]);
    }
    graph_add_source(g, same, node);
    return true;
}

void pass_cse(PassContext *c)
{
    Graph *g = c->graph;
    Arena *scratch = arena_new();
    bool changed = merge_constants(g, scratch);
    Table table;

    table_init(&table, scratch, g->nodes.count);
    for (int i = 0; i < g->nodes.count; i++) {
        Node *node = g->nodes.data[i];
        if (!node_is_pure(node) || node->bodies.count)
            continue;
        Node *same =
            table_find_or_add(&table, node_hash(node), node, nodes_equal);
        if (same)
            changed |= merge_node(g, node, same);
    }
    arena_free(scratch);
    if (changed)
        graph_sweep(g);
}
