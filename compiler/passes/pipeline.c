/* The passes in the order they run, and what the command line can ask of
 * them: levels, --disable, --dump-after, --stop-after, --time-passes, and
 * the verifier after each. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "passes/algorithm.h"
#include "passes/util.h"

const Pass pass_list[] = {
    {"infer", "types and shapes of every tensor", 0, pass_infer},
    {"canonical", "quantized layers in whole numbers", 0, pass_canonical},
    {"decompose", "composite operators into simple ones", 0, pass_decompose},
    {"fold", "nodes of constants into constants", 0, pass_fold},
    {"slice", "results that are parts of an operand, a node each", 1,
     pass_slice},
    {"simplify", "identities, casts, transposes, reshapes", 1, pass_simplify},
    {"batchnorm", "scale and shift into weights and bias", 2, pass_batchnorm},
    {"reciprocal", "divisions by constants into products", 2, pass_reciprocal},
    {"cse", "common subexpressions and equal constants", 1, pass_cse},
    {"dce", "nodes that no output needs", 1, pass_dce},
    {"merge", "products of one operand into a single one", 1, pass_merge},
    {"algorithm", "ways to compute a convolution", 2, pass_algorithm},
    {"strips", "large results a strip of rows at a time", 2, pass_strips},
    {"layout", "a memory layout for every tensor", 0, pass_layout},
    {"fuse", "groups of nodes that become one kernel", 0, pass_fuse},
    {NULL, NULL, 0, NULL},
};

int pass_count(void)
{
    int count = 0;

    while (pass_list[count].name)
        count++;
    return count;
}

static bool is_listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static bool check_pass_name(Diag *diag, const char *option, const char *name)
{
    Str known = {0};
    bool found = false;

    for (const Pass *p = pass_list; p->name; p++) {
        found |= strcmp(p->name, name) == 0;
        str_addf(&known, "%s%s", p == pass_list ? "" : ", ", p->name);
    }
    if (!found)
        diag_error(diag, "--%s: no pass is called \"%s\"; the passes are: %s",
                   option, name, str_text(&known));
    str_free(&known);
    return found;
}

static bool is_named(const Node *node, const char *name)
{
    if (strcmp(node->name, name) == 0)
        return true;
    for (int i = 0; i < node->sources.count; i++)
        if (strcmp(node->sources.data[i], name) == 0)
            return true;
    return false;
}

/* Source names survive rewrites, so nodes that passes made out of an
 * excluded one are excluded too. Returns how many nodes were marked. */
static int mark_no_fuse(Graph *g, const char *name)
{
    int marked = 0;

    for (int i = 0; i < g->nodes.count; i++)
        if (is_named(g->nodes.data[i], name)) {
            g->nodes.data[i]->no_fuse = true;
            marked++;
        }
    return marked;
}

static bool check_options(Graph *g, const PassOptions *o)
{
    bool ok = true;

    for (const char *const *d = o->disabled; d && *d; d++)
        ok &= check_pass_name(g->diag, "disable", *d);
    if (o->dump_after && strcmp(o->dump_after, "all") != 0)
        ok &= check_pass_name(g->diag, "dump-after", o->dump_after);
    if (o->stop_after)
        ok &= check_pass_name(g->diag, "stop-after", o->stop_after);
    if (o->algorithm)
        ok &= algorithm_check(g->diag, g->ops, o->algorithm);
    for (const char *const *n = o->no_fuse; n && *n; n++)
        if (mark_no_fuse(g, *n) == 0)
            ok = diag_error(g->diag,
                            "--no-fuse: model \"%s\" has no node \"%s\"; "
                            "`assay inspect` prints the names",
                            g->name, *n);
    return ok;
}

static void dump_graph(const Graph *g, const char *pass)
{
    Str text = {0};

    graph_print(&text, g, false);
    fprintf(stderr, "# after %s\n%s", pass, str_text(&text));
    str_free(&text);
}

static void print_graph_hook(void *graph)
{
    dump_graph(graph, "the last pass");
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* What later levels rely on whichever passes were left out. */
static void complete(Graph *g)
{
    for (int i = 0; i < g->tensors.count; i++) {
        Tensor *t = g->tensors.data[i];
        if (t->layout.count == 0 && t->type.rank >= 0)
            t->layout = layout_row_major(t->type.rank);
    }
    if (g->groups.count == 0)
        graph_group_alone(g);
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.data[i]->bodies.count; k++)
            complete(g->nodes.data[i]->bodies.data[k]);
}

/* On the graph, then on the bodies of its control flow. */
static void run_on(PassContext *c, const Pass *pass, Graph *g)
{
    c->graph = g;
    pass->run(c);
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.data[i]->bodies.count; k++)
            run_on(c, pass, g->nodes.data[i]->bodies.data[k]);
    c->graph = g;
}

static void run_pass(PassContext *c, const Pass *pass, const PassOptions *o,
                     PassTime *times, int *time_count)
{
    Graph *g = c->graph;
    int before = g->nodes.count;
    double start = seconds();

    for (const char *const *n = o->no_fuse; n && *n; n++)
        mark_no_fuse(g, *n);
    run_on(c, pass, g);
    if (times)
        times[(*time_count)++] =
            (PassTime){pass->name, seconds() - start, before, g->nodes.count};
    log_debug("pass %s: %d nodes to %d", pass->name, before, g->nodes.count);
    if (o->time_passes)
        fprintf(stderr, "%-10s %9.3f ms %6d -> %d nodes\n", pass->name,
                (seconds() - start) * 1e3, before, g->nodes.count);
    if (o->dump_after && (strcmp(o->dump_after, "all") == 0 ||
                          strcmp(o->dump_after, pass->name) == 0))
        dump_graph(g, pass->name);
}

bool passes_run(PassContext *c, const PassOptions *o, PassTime *times,
                int *time_count)
{
    Graph *g = c->graph;
    int count = 0, errors = g->diag->errors.count;
    bool stopped = false;

    c->opt_level = o->opt_level;
    c->algorithm = o->algorithm;
    if (time_count)
        *time_count = 0;
    if (!check_options(g, o) || !graph_sort(g))
        return false;
    DieHook old = die_set_hook((DieHook){print_graph_hook, g});
    for (const Pass *p = pass_list; p->name && !stopped; p++) {
        if (p->min_level <= o->opt_level && !is_listed(o->disabled, p->name)) {
            run_pass(c, p, o, times, &count);
            if (g->diag->errors.count > errors)
                break;
            if (o->verify)
                graph_verify(g);
        }
        stopped = o->stop_after && strcmp(o->stop_after, p->name) == 0;
    }
    die_set_hook(old);
    if (time_count)
        *time_count = count;
    if (g->diag->errors.count > errors)
        return false;
    if (!stopped)
        complete(g);
    return true;
}
