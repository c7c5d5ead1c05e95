#include "suites/fuzz/random_graph.h"

#include <stdlib.h>

#include "ops/op.h"
#include "suites/fuzz/maker.h"
#include "suites/random.h"

enum { MOST_NODES = 12, MOST_ELEMENTS = 1 << 14, MOST_CHANGES = 4 };

static const MakerRow *const families[] = {
    makers_elementwise, makers_layers, makers_move,      makers_reduce,
    makers_index,       makers_rows,   makers_quantized, makers_control};
enum { FAMILIES = sizeof families / sizeof *families };

/* ---- steps ------------------------------------------------------------ */

static bool is_small(const Node *node)
{
    for (int i = 0; i < node->outputs.count; i++) {
        const Tensor *t = node->outputs.data[i];
        int64_t count = t ? type_most(&t->type) : 0;
        if (count < 0 || count > MOST_ELEMENTS)
            return false;
    }
    return true;
}

/* Takes away what came after `nodes`, last first. */
static void undo(Maker *m, int nodes, int pool, int errors)
{
    Graph *g = m->g;
    while (g->nodes.count > nodes)
        graph_remove_node(g, g->nodes.data[g->nodes.count - 1]);
    /* Inputs that were added stay, read or not. */
    int kept = pool;
    for (int i = pool; i < m->pool.count; i++)
        if (m->pool.data[i]->is_input || m->pool.data[i]->value)
            m->pool.data[kept++] = m->pool.data[i];
    m->pool.count = kept;
    g->diag->errors.count = errors;
}

bool maker_step(Maker *m)
{
    Graph *g = m->g;
    int nodes = g->nodes.count, pool = m->pool.count;
    int errors = g->diag->errors.count;
    const MakerRow *family =
        families[choose(m->c, FAMILIES - (m->is_body ? 2 : 0))];
    int count = 0;
    while (family[count].name)
        count++;
    bool ok = family[choose(m->c, count)].make(m);
    for (int i = nodes; ok && i < g->nodes.count; i++)
        ok = is_small(g->nodes.data[i]) &&
             op_takes_runtime_extents(g->nodes.data[i]);
    if (!ok || g->diag->errors.count > errors) {
        undo(m, nodes, pool, errors);
        return false;
    }
    for (int i = nodes; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.data[i]->outputs.count; k++) {
            Tensor *t = g->nodes.data[i]->outputs.data[k];
            if (t && t->type.dtype != DT_STRING)
                vec_push(g->arena, &m->pool, t);
        }
    return true;
}

/* ---- the graph -------------------------------------------------------- */

static void add_first_inputs(Maker *m)
{
    static const DType types[] = {DT_F32, DT_F32, DT_F32,  DT_I64,
                                  DT_U8,  DT_F16, DT_BOOL, DT_I32};
    int count = 1 + choose(m->c, 2);
    new_input(m, DT_F32, rarely(m, 3) ? choose(m->c, 6) : 4);
    for (int i = 1; i < count; i++)
        new_input(m, types[choose(m->c, 8)], choose(m->c, 5));
}

/* Results that nothing reads, and some that are read; an input, a constant
 * and a dead node now and then. */
static void mark_outputs(Maker *m)
{
    Graph *g = m->g;
    if (rarely(m, 12) && g->inputs.count)
        apply1(m, "Identity", g->inputs.data[choose(m->c, g->inputs.count)]);
    if (rarely(m, 16))
        apply1(m, "Identity", vector(m, DT_F32, 3, 0, 1));
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.data[i]->outputs.count; k++) {
            Tensor *y = g->nodes.data[i]->outputs.data[k];
            if (!y || y->is_output)
                continue;
            if (y->users.count ? rarely(m, 8) : !rarely(m, 12))
                graph_mark_output(g, y);
        }
}

bool random_graph(Graph *g, Choices *c, RandomGraph *about)
{
    Maker m = {.g = g, .c = c};
    m.dyadic = flip(&m);
    m.open = rarely(&m, 4);
    about->dyadic = m.dyadic;
    add_first_inputs(&m);
    int steps = 1 + choose(c, MOST_NODES);
    for (int i = 0; i < steps; i++)
        maker_step(&m);
    if (!g->nodes.count || !graph_sort(g))
        return false;
    int count = choose(c, MOST_CHANGES + 1);
    for (int i = 0; i < count; i++)
        maker_mutate(&m);
    mark_outputs(&m);
    /* A change that does not type leaves nodes without a type. */
    int errors = g->diag->errors.count;
    if (!graph_sort(g) || g->diag->errors.count > errors)
        return false;
    g->diag->errors.count = 0;
    if (!ops_infer_graph(g))
        return false;
    for (int i = 0; i < g->nodes.count; i++)
        if (!is_small(g->nodes.data[i]))
            return false;
    return g->outputs.count > 0;
}

Array **random_inputs(Arena *arena, const Graph *g, const RandomGraph *about,
                      const ExtentValue *names, int count)
{
    Array **inputs = ARENA_ARRAY(arena, Array *, g->inputs.count + 1);
    for (int i = 0; i < g->inputs.count; i++) {
        const TensorType *type = &g->inputs.data[i]->type;
        int64_t dims[MAX_RANK];
        for (int k = 0; k < type->rank; k++)
            dims[k] = extent_evaluate(type->dims[k], names, count);
        inputs[i] = array_new(arena, type->dtype, type->rank, dims);
        for (int64_t k = 0; k < array_count(inputs[i]); k++) {
            uint64_t key = (uint64_t)i + 1, at = (uint64_t)k;
            int64_t small = (int64_t)(random_bits(key, at) % 21) - 10;
            if (dtype_is_float(type->dtype))
                array_set(inputs[i], k,
                          about->dyadic ? (double)small / 4
                                        : random_normal(key, at));
            else if (type->dtype == DT_BOOL)
                array_set_int(inputs[i], k, small & 1);
            else
                array_set_int(inputs[i], k,
                              dtype_is_signed(type->dtype) ? small
                                                           : llabs(small));
        }
    }
    return inputs;
}
