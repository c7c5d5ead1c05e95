/* assay infer: the user's own arrays through a model. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "harness/command.h"
#include "harness/common.h"
#include "harness/launch.h"
#include "harness/npy.h"
#include "harness/options.h"
#include "import/onnx.h"

static const char usage[] =
    "Usage: assay infer MODEL --input NAME=FILE... --output DIR [options]\n"
    "\n"
    "Compiles the model, runs it on your arrays and writes each output to\n"
    "DIR/NAME.npy (unusual characters become _, equal names get .2, .3).\n"
    "FILE is a .npy array or an ONNX tensor (.pb). Several batches along\n"
    "axis 0 run one after the other. NAME= may be left out when the model\n"
    "has one input.\n"
    "\n"
    "  -i, --input NAME=FILE\n"
    "  -o, --output DIR    made when missing\n"
    "  -t, --threads N     (physical cores)\n" COMPILE_HELP "\nExamples:\n"
    "  assay infer model.onnx --input x=cat.npy --output out/\n"
    "  assay infer resnet_fashion --input image=shirts.npy --output "
    "out/\n" EXIT_CODES_HELP;

static const struct option long_options[] = {
    {"input", required_argument, NULL, 'i'},
    {"output", required_argument, NULL, 'o'},
    {"threads", required_argument, NULL, 't'},
    COMPILE_LONG,
    {NULL, 0, NULL, 0},
};

typedef struct Infer {
    Arena *arena;
    AssayCompiler *compiler;
    CompileOptions compile;
    const char *model, *output, *work;
    const char *inputs[MAX_LIST];
    int input_count;
    long threads;
} Infer;

static bool has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && !strcmp(text + length - tail, suffix);
}

/* NAME=FILE with a .npy file: completes the name, converts .pb files. */
static bool stage_input(Infer *f, int index)
{
    const Graph *g = assay_source_graph(f->compiler);
    const char *given = f->inputs[index];
    const char *equals = strchr(given, '=');
    const char *file = equals ? equals + 1 : given;
    const char *name = NULL;
    if (equals)
        name = arena_strndup(f->arena, given, (size_t)(equals - given));
    else if (g->inputs.count == 1)
        name = g->inputs.data[0]->name;
    bool known = false;
    for (int i = 0; name && i < g->inputs.count; i++)
        known = known || !strcmp(g->inputs.data[i]->name, name);
    if (!known) {
        Str names = {0};
        for (int i = 0; i < g->inputs.count; i++)
            str_addf(&names, " %s", g->inputs.data[i]->name);
        bad_input("--input %s: give NAME=FILE with a name of:%s", given,
                  str_text(&names));
        str_free(&names);
        return false;
    }
    if (has_suffix(file, ".pb")) {
        Diag *diag = diag_new(f->arena, file);
        const Array *array = onnx_read_tensor(f->arena, diag, file);
        if (!array) {
            diag_print(diag);
            return false;
        }
        Str error = {0};
        file = arena_printf(f->arena, "%s/input_%d.npy", f->work, index);
        bool ok = npy_write(file, array, &error);
        if (!ok)
            bad_input("%s", str_text(&error));
        str_free(&error);
        if (!ok)
            return false;
    }
    f->inputs[index] = arena_printf(f->arena, "%s=%s", name, file);
    return true;
}

static int infer_in(Infer *f)
{
    if (!open_model(f->compiler, f->model, &f->compile))
        return EXIT_BAD_INPUT;
    const Graph *g = assay_source_graph(f->compiler);
    /* A name that is none of the inputs says more than a wrong count. */
    for (int i = 0; i < f->input_count; i++)
        if (!stage_input(f, i))
            return EXIT_BAD_INPUT;
    if (f->input_count != g->inputs.count)
        return bad_input("%s has %d inputs, %d given", f->model,
                         g->inputs.count, f->input_count);
    const char *dir = arena_printf(f->arena, "%s/artifact", f->work);
    bool ok = assay_compile(f->compiler, &f->compile.assay) &&
              assay_write_artifact(f->compiler, dir);
    fputs(assay_errors(f->compiler), stderr);
    if (!ok)
        return EXIT_BAD_INPUT;
    Launch launch = {.artifact = dir,
                     .inputs = f->inputs,
                     .input_count = f->input_count,
                     .threads = (int)f->threads,
                     .output = f->output};
    Str failure = {0};
    ChildEnd end;
    json_t *report = launch_runner(f->arena, &launch, &end, &failure);
    if (!report)
        bad_input("%s", str_text(&failure));
    str_free(&failure);
    json_decref(report);
    return report ? EXIT_FINE : EXIT_BAD_INPUT;
}

int cmd_infer(int argc, char **argv)
{
    Infer f = {0};
    compile_options_init(&f.compile);
    int c;
    while ((c = getopt_long(argc, argv, COMPILE_SHORT "i:o:t:h", long_options,
                            NULL)) != -1) {
        int taken = compile_options_take(&f.compile, c, optarg);
        if (taken < 0)
            return EXIT_BAD_INPUT;
        if (taken)
            continue;
        if (c == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        if (c == 'i' && f.input_count < MAX_LIST)
            f.inputs[f.input_count++] = optarg;
        else if (c == 'o')
            f.output = optarg;
        else if (c != 't')
            return bad_input("see assay infer --help");
        else if (!parse_count("--threads", optarg, 1, 1024, &f.threads))
            return EXIT_BAD_INPUT;
    }
    if (optind + 1 != argc || !f.output)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    if (!inputs_are_distinct(f.inputs, f.input_count))
        return EXIT_BAD_INPUT;
    f.model = argv[optind];
    f.arena = arena_new();
    f.work = make_temp_folder(f.arena);
    if (!f.work)
        return bad_input("no temporary folder: %s", strerror(errno));
    f.compiler = assay_new();
    int code = infer_in(&f);
    assay_free(f.compiler);
    remove_temp_folder(f.work);
    arena_free(f.arena);
    return code;
}
