/* assay list: what there is. */
#include <stdio.h>
#include <string.h>

#include "harness/command.h"
#include "harness/common.h"
#include "harness/metric.h"
#include "ops/op.h"
#include "passes/passes.h"
#include "suites/suite.h"
#include "targets/target.h"

static const char usage[] =
    "Usage: assay list models|ops|passes|targets|metrics\n"
    "\n"
    "Examples:\n"
    "  assay list models\n"
    "  assay list ops\n"
    "\nExit codes: 0 fine, 2 bad input.\n";

static void list_models(void)
{
    for (int i = 0; suite_models()[i]; i++) {
        const SuiteModel *m = suite_models()[i];
        printf("%-18s %s\n", m->name, m->about);
    }
}

static void list_ops(void)
{
    static const struct {
        unsigned trait;
        const char *name;
    } traits[] = {
        {OP_ELEMENTWISE, "elementwise"}, {OP_BROADCAST, "broadcast"},
        {OP_INJECTIVE, "injective"},     {OP_REDUCTION, "reduction"},
        {OP_ANCHOR, "anchor"},
    };
    for (const OpTable *t = ops_builtin(); t; t = t->next)
        for (int i = 0; t->ops[i]; i++) {
            const Op *op = t->ops[i];
            printf("%s%s%-22s opset %d", op->domain, *op->domain ? "." : "",
                   op->name, op->since);
            for (size_t k = 0; k < sizeof traits / sizeof traits[0]; k++)
                if (op->traits & traits[k].trait)
                    printf(" %s", traits[k].name);
            putchar('\n');
        }
}

static void list_passes(void)
{
    for (const Pass *p = pass_list; p->name; p++)
        printf("%-12s -O%d  %s\n", p->name, p->min_level, p->about);
}

static void list_targets(void)
{
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, NULL);
    const Target *native = target_find(arena, diag, NULL);
    if (native)
        printf("%-10s %s: %s\n", "native", native->about, native->features);
    for (const Target *const *t = targets_all(); *t; t++)
        printf("%-10s %s\n", (*t)->name, (*t)->about);
    arena_free(arena);
}

static void list_metrics(void)
{
    for (const Metric *m = metrics(); m->name; m++)
        printf("%-15s %-7s %-7s %s\n", m->name, m->unit, m->better, m->title);
}

int cmd_list(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*list)(void);
    } lists[] = {
        {"models", list_models},   {"ops", list_ops},
        {"passes", list_passes},   {"targets", list_targets},
        {"metrics", list_metrics},
    };
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        return fputs(usage, stdout), EXIT_FINE;
    for (size_t i = 0; argc == 2 && i < sizeof lists / sizeof lists[0]; i++)
        if (!strcmp(argv[1], lists[i].name)) {
            lists[i].list();
            return EXIT_FINE;
        }
    return fputs(usage, stderr), EXIT_BAD_INPUT;
}
