/* assay list: what there is. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/metric.h"
#include "harness/op_types.h"
#include "harness/options.h"
#include "import/onnx.h"
#include "ops/op.h"
#include "passes/passes.h"
#include "suites/suite.h"
#include "targets/target.h"

static const char usage[] =
    "Usage: assay list models|ops|passes|targets|metrics [options]\n"
    "\n"
    "      --format F      table or json\n"
    "\n"
    "ops: `since` is the ONNX operator set whose form of the operator Assay\n"
    "has (older forms become it when a file is read); `types` are the "
    "element\n"
    "types of the first operand, where float, int and uint stand for all\n"
    "widths.\n"
    "\n"
    "Examples:\n"
    "  assay list models\n"
    "  assay list ops --format json\n"
    "\nExit codes: 0 fine, 2 bad input.\n";

/* Each list: rows of texts and numbers, of equal keys. */

static json_t *list_models(void)
{
    json_t *rows = json_array();
    for (int i = 0; suite_models()[i]; i++)
        json_array_append_new(rows, json_pack("{s:s, s:s}", "model",
                                              suite_models()[i]->name, "about",
                                              suite_models()[i]->about));
    return rows;
}

static int by_name(const void *x, const void *y)
{
    const Op *a = *(const Op *const *)x, *b = *(const Op *const *)y;
    int domain = strcmp(a->domain, b->domain);
    return domain ? domain : strcmp(a->name, b->name);
}

static json_t *op_row(const Op *op)
{
    static const struct {
        unsigned trait;
        const char *name;
    } traits[] = {
        {OP_ELEMENTWISE, "elementwise"}, {OP_BROADCAST, "broadcast"},
        {OP_INJECTIVE, "injective"},     {OP_REDUCTION, "reduction"},
        {OP_ANCHOR, "anchor"},
    };
    Str types = {0}, kind = {0};
    op_types_print(&types, op_element_types(op));
    for (size_t k = 0; k < sizeof traits / sizeof *traits; k++)
        if (op->traits & traits[k].trait)
            str_addf(&kind, "%s%s", kind.length ? " " : "", traits[k].name);
    json_t *row =
        json_pack("{s:s, s:s, s:i, s:s, s:s}", "operator", op->name, "domain",
                  *op->domain ? op->domain : "ai.onnx", "since", op->since,
                  "types", str_text(&types), "kind", str_text(&kind));
    str_free(&types);
    str_free(&kind);
    return row;
}

static json_t *list_ops(void)
{
    Arena *arena = arena_new();
    Vec(const Op *) all = {0};
    json_t *rows = json_array();
    for (const OpTable *t = ops_builtin(); t; t = t->next)
        for (int i = 0; t->ops[i]; i++)
            if (strcmp(t->ops[i]->domain, "assay")) /* made by passes */
                vec_push(arena, &all, t->ops[i]);
    qsort(all.data, (size_t)all.count, sizeof *all.data, by_name);
    for (int i = 0; i < all.count; i++)
        json_array_append_new(rows, op_row(all.data[i]));
    arena_free(arena);
    return rows;
}

static json_t *list_passes(void)
{
    json_t *rows = json_array();
    for (const Pass *p = pass_list; p->name; p++)
        json_array_append_new(rows, json_pack("{s:s, s:i, s:s}", "pass",
                                              p->name, "level", p->min_level,
                                              "about", p->about));
    return rows;
}

static json_t *target_row(const char *name, const Target *t, bool featured)
{
    return json_pack("{s:s, s:s, s:s}", "target", name, "about", t->about,
                     "features", featured ? t->features : "");
}

static json_t *list_targets(void)
{
    Arena *arena = arena_new();
    const Target *native = target_find(arena, diag_new(arena, NULL), NULL);
    json_t *rows = json_array();
    if (native)
        json_array_append_new(rows, target_row("native", native, true));
    for (const Target *const *t = targets_all(); *t; t++)
        json_array_append_new(rows, target_row((*t)->name, *t, false));
    arena_free(arena);
    return rows;
}

static json_t *list_metrics(void)
{
    json_t *rows = json_array();
    for (const Metric *m = metrics(); m->name; m++)
        json_array_append_new(
            rows, json_pack("{s:s, s:s, s:s, s:s}", "metric", m->name, "unit",
                            m->unit, "better", m->better, "title", m->title));
    return rows;
}

/* ---- printing --------------------------------------------------------- */

static const char *cell_text(const json_t *value, char number[24])
{
    if (json_is_string(value))
        return json_string_value(value);
    snprintf(number, 24, "%lld", (long long)json_integer_value(value));
    return number;
}

/* The last column is as wide as it is. */
static void print_cell(const char *text, size_t width, bool last)
{
    if (last)
        printf("%s\n", text);
    else
        printf("%-*s  ", (int)width, text);
}

static void print_table(json_t *rows)
{
    enum { MOST = 8 };
    size_t width[MOST] = {0}, i;
    char number[24];
    const char *key;
    json_t *row, *value;
    json_array_foreach(rows, i, row)
    {
        int column = 0;
        json_object_foreach(row, key, value)
        {
            size_t length = strlen(cell_text(value, number));
            length = strlen(key) > length ? strlen(key) : length;
            if (length > width[column])
                width[column] = length;
            column++;
        }
    }
    json_array_foreach(rows, i, row)
    {
        int columns = (int)json_object_size(row), column = 0;
        if (i == 0)
            json_object_foreach(row, key, value)
            {
                print_cell(key, width[column], column == columns - 1);
                column++;
            }
        column = 0;
        json_object_foreach(row, key, value)
        {
            print_cell(cell_text(value, number), width[column],
                       column == columns - 1);
            column++;
        }
    }
}

static void print(const char *name, json_t *rows, bool json)
{
    bool versions = !strcmp(name, "ops");
    if (!json) {
        if (versions)
            printf("Reads ONNX files of IR version %d to %d and operator set "
                   "%d to %d.\n\n",
                   ONNX_OLDEST_IR, ONNX_NEWEST_IR, ONNX_OLDEST_OPSET,
                   ONNX_NEWEST_OPSET);
        print_table(rows);
        json_decref(rows);
        return;
    }
    json_t *root = json_pack("{s:o}", name, rows);
    if (versions) {
        json_object_set_new(
            root, "ir_versions",
            json_pack("[i, i]", ONNX_OLDEST_IR, ONNX_NEWEST_IR));
        json_object_set_new(
            root, "operator_sets",
            json_pack("[i, i]", ONNX_OLDEST_OPSET, ONNX_NEWEST_OPSET));
    }
    json_dumpf(root, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(root);
}

int cmd_list(int argc, char **argv)
{
    static const struct {
        const char *name;
        json_t *(*list)(void);
    } lists[] = {
        {"models", list_models},   {"ops", list_ops},
        {"passes", list_passes},   {"targets", list_targets},
        {"metrics", list_metrics},
    };
    static const struct option options[] = {
        {"format", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool json = false;
    int c;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        if (c != 'f')
            return bad_input("see assay list --help");
        if (!take_format(optarg, &json))
            return EXIT_BAD_INPUT;
    }
    for (size_t i = 0; optind + 1 == argc && i < sizeof lists / sizeof *lists;
         i++)
        if (!strcmp(argv[optind], lists[i].name)) {
            print(lists[i].name, lists[i].list(), json);
            return EXIT_FINE;
        }
    return fputs(usage, stderr), EXIT_BAD_INPUT;
}
