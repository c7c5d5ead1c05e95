/* assay inspect: every level of the compiler as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "harness/command.h"
#include "harness/common.h"
#include "harness/fusion.h"
#include "harness/options.h"
#include "ops/op.h"
#include "passes/algorithm.h"

static const char usage[] =
    "Usage: assay inspect MODEL --show WHAT [options]\n"
    "       assay inspect MODEL --groups [options]\n"
    "\n"
    "WHAT is one of\n"
    "  graph        the nodes, after all passes or after one (--after)\n"
    "  source       the graph as loaded\n"
    "  groups       what fusion put together, and why the rest is apart\n"
    "  program      kernel calls and buffers\n"
    "  definition   each kernel as tensor expressions\n"
    "  trace        each kernel's schedule\n"
    "  knobs        each kernel's knobs, as lines of a log for --choices\n"
    "  loops        each kernel's loop nest\n"
    "  llvm, asm, c each kernel's code\n"
    "\n"
    "      --groups        the same as --show groups\n"
    "      --format json   groups for programs instead of people\n"
    "      --after PASS    stop the passes there (graph, groups)\n"
    "      --kernel NAME   kernels whose name contains NAME "
    "only\n" COMPILE_HELP "\nExamples:\n"
    "  assay inspect resnet18 --show graph --after batchnorm\n"
    "  assay inspect yolov8n --groups --format json\n"
    "  assay inspect resnet18 --show asm --kernel conv\n" EXIT_CODES_HELP;

enum { OPT_SHOW = OPT_COMMAND, OPT_AFTER, OPT_KERNEL, OPT_GROUPS, OPT_FORMAT };

static const struct option long_options[] = {
    {"show", required_argument, NULL, OPT_SHOW},
    {"after", required_argument, NULL, OPT_AFTER},
    {"kernel", required_argument, NULL, OPT_KERNEL},
    {"groups", no_argument, NULL, OPT_GROUPS},
    {"format", required_argument, NULL, OPT_FORMAT},
    COMPILE_LONG,
    {NULL, 0, NULL, 0},
};

/* ---- kernels ---------------------------------------------------------- */

static bool show_definition(Str *out, Diag *diag, const Program *program,
                            const ProgramKernel *k)
{
    (void)diag, (void)program;
    /* A loop program begins as loops. */
    if (k->def)
        definition_print(out, k->def);
    else
        kernel_print(out, k->kernel);
    return true;
}

static bool show_trace(Str *out, Diag *diag, const Program *program,
                       const ProgramKernel *k)
{
    (void)diag, (void)program;
    str_add(out, k->trace);
    return true;
}

static bool show_loops(Str *out, Diag *diag, const Program *program,
                       const ProgramKernel *k)
{
    (void)diag, (void)program;
    kernel_print(out, k->kernel);
    return true;
}

static bool has_llvm(Diag *diag, const Program *program)
{
    return program->target->codegen == CODEGEN_LLVM ||
           diag_error(diag, "target %s is not compiled by LLVM: --show c",
                      program->target->name);
}

static bool show_llvm(Str *out, Diag *diag, const Program *program,
                      const ProgramKernel *k)
{
    return has_llvm(diag, program) &&
           codegen_llvm_text(out, diag, k->kernel, program->target, false);
}

static bool show_asm(Str *out, Diag *diag, const Program *program,
                     const ProgramKernel *k)
{
    return has_llvm(diag, program) &&
           codegen_llvm_text(out, diag, k->kernel, program->target, true);
}

static bool show_c(Str *out, Diag *diag, const Program *program,
                   const ProgramKernel *k)
{
    (void)diag, (void)program;
    return codegen_c_text(out, k->kernel);
}

typedef bool (*KernelView)(Str *out, Diag *diag, const Program *program,
                           const ProgramKernel *k);

/* Headings are comments of the language. */
static const struct View {
    const char *name;
    KernelView view;
    const char *before, *after; /* of a heading */
} views[] = {
    {"definition", show_definition, "# ", ""},
    {"trace", show_trace, "# ", ""},
    {"loops", show_loops, "# ", ""},
    {"llvm", show_llvm, "; ", ""},
    {"asm", show_asm, "# ", ""},
    {"c", show_c, "/* ", " */"},
};
enum { VIEW_COUNT = sizeof views / sizeof views[0] };

static int show_kernels(Str *out, const Program *program,
                        const struct View *view, const char *filter)
{
    int shown = 0;
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, NULL);
    bool ok = true;
    for (int i = 0; ok && i < program->kernels.count; i++) {
        const ProgramKernel *k = &program->kernels.data[i];
        if (filter && !strstr(k->kernel->name, filter))
            continue;
        str_addf(out, "%s%s%s%s\n", shown++ ? "\n" : "", view->before,
                 k->kernel->name, view->after);
        ok = view->view(out, diag, program, k);
    }
    diag_print(diag);
    arena_free(arena);
    if (!shown) {
        Str names = {0};
        for (int i = 0; i < program->kernels.count; i++)
            str_addf(&names, "\n  %s", program->kernels.data[i].kernel->name);
        bad_input("--kernel %s: there is no such kernel; there are:%s",
                  filter ? filter : "", str_text(&names));
        str_free(&names);
    }
    return shown && ok ? EXIT_FINE : EXIT_BAD_INPUT;
}

/* Lines of a log of choices with what was decided, each under its knobs'
 * values. */
static void show_knobs(Str *out, const AssayCompiler *compiler,
                       const char *filter)
{
    const Program *program = assay_program(compiler);
    const AlgorithmNode *nodes;
    int count = assay_algorithms(compiler, &nodes);
    for (int i = 0; i < count; i++) {
        bool is_first = !filter || strstr(nodes[i].kernel, filter);
        for (int k = 0; k < i && is_first; k++)
            is_first = nodes[k].key != nodes[i].key;
        if (!is_first)
            continue;
        ChoiceRow row;
        str_add(out, "# algorithm:");
        for (int k = 0; k < nodes[i].name_count; k++)
            str_addf(out, " %s", nodes[i].names[k]);
        str_add(out, "\n");
        assay_algorithm_row(compiler, &nodes[i], &row);
        choice_row_print(out, &row);
    }
    for (int i = 0; i < program->schedules.count; i++) {
        const ProgramSchedule *s = &program->schedules.data[i];
        if (filter && !strstr(s->row.kernel, filter))
            continue;
        ChoiceRow row = s->row;
        for (int k = 0; k < s->log.knobs.count; k++) {
            const KnobRow *knob = &s->log.knobs.data[k];
            choice_set(&row.choice, knob->name, knob->value);
            str_addf(out, "# %s:", knob->name);
            for (int v = 0; v < knob->count; v++)
                str_addf(out, " %lld", (long long)knob->candidates[v]);
            str_add(out, "\n");
        }
        choice_row_print(out, &row);
    }
}

/* ---- command ---------------------------------------------------------- */

static void show_groups(Str *out, const AssayCompiler *compiler,
                        const char *model, bool json)
{
    const Graph *g = assay_graph(compiler);
    const Program *program = assay_program(compiler);
    if (!json) {
        fusion_print(out, g, program);
        return;
    }
    json_t *report = json_pack("{s:s, s:i, s:o}", "model", model, "kernels",
                               program ? program->steps.count : 0, "groups",
                               fusion_json(g, program));
    char *text = json_dumps(report, JSON_INDENT(1));
    str_addf(out, "%s\n", text);
    free(text);
    json_decref(report);
}

static int show(Str *out, const AssayCompiler *compiler, const char *what,
                const char *kernel)
{
    if (!strcmp(what, "graph"))
        graph_print(out, assay_graph(compiler), false);
    else if (!strcmp(what, "program"))
        program_print(out, assay_program(compiler));
    else if (!strcmp(what, "knobs"))
        show_knobs(out, compiler, kernel);
    else
        for (int i = 0; i < VIEW_COUNT; i++)
            if (!strcmp(what, views[i].name))
                return show_kernels(out, assay_program(compiler), &views[i],
                                    kernel);
    return EXIT_FINE;
}

static bool is_view(const char *what)
{
    bool known = !strcmp(what, "source") || !strcmp(what, "graph") ||
                 !strcmp(what, "groups") || !strcmp(what, "program") ||
                 !strcmp(what, "knobs");
    for (int i = 0; i < VIEW_COUNT; i++)
        known = known || !strcmp(what, views[i].name);
    return known;
}

static int inspect(const char *model, const char *what, const char *kernel,
                   bool json, const CompileOptions *o)
{
    AssayCompiler *compiler = assay_new();
    Str out = {0};
    int code = EXIT_BAD_INPUT;
    if (!open_model(compiler, model, o)) {
        /* reported */
    } else if (!strcmp(what, "source")) {
        graph_print(&out, assay_source_graph(compiler), false);
        code = EXIT_FINE;
    } else if (!assay_compile(compiler, &o->assay)) {
        fputs(assay_errors(compiler), stderr);
    } else if (!strcmp(what, "groups")) {
        show_groups(&out, compiler, model, json);
        code = EXIT_FINE;
    } else {
        code = show(&out, compiler, what, kernel);
    }
    fputs(str_text(&out), stdout);
    str_free(&out);
    assay_free(compiler);
    return code;
}

int cmd_inspect(int argc, char **argv)
{
    CompileOptions o;
    compile_options_init(&o);
    const char *what = NULL, *kernel = NULL;
    bool json = false, has_format = false;
    int c;
    while ((c = getopt_long(argc, argv, COMPILE_SHORT "h", long_options,
                            NULL)) != -1) {
        int taken = compile_options_take(&o, c, optarg);
        if (taken < 0)
            return EXIT_BAD_INPUT;
        if (taken)
            continue;
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        else if (c == OPT_SHOW)
            what = optarg;
        else if (c == OPT_AFTER)
            o.assay.stop_after = optarg;
        else if (c == OPT_KERNEL)
            kernel = optarg;
        else if (c == OPT_GROUPS)
            what = "groups";
        else if (c == OPT_FORMAT && take_format(optarg, &json))
            has_format = true;
        else if (c == OPT_FORMAT)
            return EXIT_BAD_INPUT;
        else
            return bad_input("see assay inspect --help");
    }
    if (optind + 1 != argc || !what)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    if (!is_view(what))
        return bad_input("--show %s: see assay inspect --help", what);
    if (has_format && strcmp(what, "groups"))
        return bad_input("--format goes with --groups");
    bool graph_only = !strcmp(what, "graph") || !strcmp(what, "groups");
    if (o.assay.stop_after && !graph_only)
        return bad_input("--after and --stop-after go with --show graph or "
                         "groups");
    return inspect(argv[optind], what, kernel, json, &o);
}
