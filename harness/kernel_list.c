#include "harness/kernel_list.h"

#include <stdio.h>
#include <string.h>

#include "assay.h"
#include "harness/options.h"
#include "ops/op.h"

/* The model at hand: keeping all of them would take gigabytes. */
typedef struct OpenModel {
    AssayCompiler *compiler;
    const char *name;
} OpenModel;

typedef struct ModelRow {
    OpenModel *open;
    const char *model;
    int group;
} ModelRow;

static bool open_groups(OpenModel *open, const char *model)
{
    if (open->name && !strcmp(open->name, model))
        return true;
    if (open->compiler)
        assay_free(open->compiler);
    open->compiler = assay_new();
    open->name = NULL;
    CompileOptions o;
    compile_options_init(&o);
    o.assay.stop_after = "fuse";
    if (!open_model(open->compiler, model, &o) ||
        !assay_compile(open->compiler, &o.assay)) {
        fputs(assay_errors(open->compiler), stderr);
        return false;
    }
    open->name = model;
    return true;
}

static bool build_group(Graph *g, const KernelCase *c)
{
    const ModelRow *row = c->row;
    return open_groups(row->open, row->model) &&
           kernel_extract(
               g, assay_canonical_graph(row->open->compiler),
               assay_graph(row->open->compiler)->groups.data[row->group]);
}

static bool is_listed(const KernelList *list, const char *name)
{
    for (int i = 0; i < list->cases.count; i++)
        if (!strcmp(list->cases.data[i].name, name))
            return true;
    return false;
}

static void add_group(KernelList *list, const char *model, int index)
{
    const AssayCompiler *compiler = list->open->compiler;
    const Group *group = assay_graph(compiler)->groups.data[index];
    Arena *scratch = arena_new();
    Graph *g =
        graph_new(scratch, diag_new(scratch, NULL), "kernel", ops_builtin());
    if (kernel_extract(g, assay_source_graph(compiler), group)) {
        const char *name = kernel_name(list->arena, g, group);
        if (!is_listed(list, name)) {
            ModelRow *row = ARENA_NEW(list->arena, ModelRow);
            *row = (ModelRow){list->open, model, index};
            KernelCase c = {name, model, build_group, row};
            vec_push(list->arena, &list->cases, c);
        }
    }
    arena_free(scratch);
}

bool kernel_list_add(KernelList *list, const char *model)
{
    if (!strcmp(model, "awkward")) {
        const KernelCase *rows;
        int count = kernels_awkward(list->arena, &rows);
        for (int i = 0; i < count; i++)
            vec_push(list->arena, &list->cases, rows[i]);
        return true;
    }
    if (!list->open)
        list->open = ARENA_NEW(list->arena, OpenModel);
    if (!open_groups(list->open, model))
        return false;
    int count = assay_graph(list->open->compiler)->groups.count;
    for (int i = 0; i < count; i++)
        add_group(list, model, i);
    return true;
}

void kernel_list_free(KernelList *list)
{
    if (list->open && list->open->compiler)
        assay_free(list->open->compiler);
    list->open = NULL;
}
