/* Makers: the rows of the unit tests, which have every operator and
 * attribute, on what else is in the graph. */
#include <string.h>

#include "ops/op.h"
#include "suites/fuzz/maker.h"
#include "suites/unit/ops_rows.h"
#include "suites/unit/shapes_rows.h"

static const OpRow *choose_row(Maker *m)
{
    static const OpRow *const tables[] = {
        ops_rows_elementwise, ops_rows_layers, ops_rows_shape,
        ops_rows_index,       ops_rows_signal, ops_rows_quantized,
        ops_rows_sequence};
    const OpRow *table = tables[choose(m->c, 7)];
    int count = 0, at = choose(m->c, 256);
    while (table[count].op)
        count++;
    /* More rows than a byte has values. */
    return &table[(at + 256 * choose(m->c, 1 + count / 256)) % count];
}

static bool make_row(Maker *m)
{
    const OpRow *row = choose_row(m);
    Diag *diag = diag_new(m->g->arena, NULL);
    /* Faults, and values that only a run may have, are for the unit tests. */
    if (*row->expected == '!' || strchr(row->inputs, '~'))
        return false;
    Graph *from = graph_parse(m->g->arena, diag, m->g->ops,
                              ops_row_text(m->g->arena, row, false));
    return from && maker_graft(m, from);
}

static bool make_shape_row(Maker *m)
{
    int count = 0;
    while (shapes_rows[count].name)
        count++;
    if (m->is_body || !m->open)
        return false;
    const ShapeRow *row = &shapes_rows[choose(m->c, count)];
    Diag *diag = diag_new(m->g->arena, NULL);
    Graph *from = graph_parse(
        m->g->arena, diag, m->g->ops,
        arena_printf(m->g->arena, "graph \"%s\"\n%s", row->name, row->text));
    return from && maker_graft(m, from);
}

const MakerRow makers_rows[] = {
    {"row", make_row},
    {"row", make_row},
    {"shape row", make_shape_row},
    {NULL, NULL},
};
