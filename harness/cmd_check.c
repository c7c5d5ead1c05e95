/* assay check: an artifact's outputs against the reference.
 *
 * The reference evaluates the model as loaded, before any pass, node by
 * node. Outputs decide; inner tensors are compared too and reported, so
 * that a wrong output can be followed to where it starts. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/check.h"
#include "harness/command.h"
#include "harness/common.h"
#include "harness/inputs.h"
#include "harness/launch.h"
#include "harness/npy.h"
#include "harness/options.h"
#include "harness/replay.h"
#include "harness/runner.h"
#include "harness/values.h"

static const char usage[] =
    "Usage: assay check MODEL [--artifact DIR]... [options]\n"
    "\n"
    "Runs artifacts of a model on seeded inputs, compares their outputs with\n"
    "the reference. Without --artifact it compiles the model first. Where\n"
    "dimensions have bounds, at the lower, a middle and the upper ones.\n"
    "\n"
    "  -a, --artifact DIR  what to check; may be repeated\n"
    "  -i, --input NAME=FILE  .npy array instead of a seeded input\n"
    "  -s, --seed N        seed of the inputs (1)\n"
    "      --range LOW,HIGH  seeded floats uniform in there instead of\n"
    "                      standard normal, as 0,255 for pixels\n"
    "  -t, --threads N     (physical cores)\n"
    "      --timeout S     seconds a run may take (600)\n"
    "      --format json   the whole report, every layer, instead of a table\n"
    "      --replay        instead: does each kernel's printed definition\n"
    "                      and trace give the same loops?\n" COMPILE_HELP
    "\nExamples:\n"
    "  assay check resnet18@64 --mode unfused\n"
    "  assay check model.onnx --dim N=1 --artifact model/\n" EXIT_CODES_HELP;

enum { OPT_REPLAY = OPT_COMMAND, OPT_FORMAT, OPT_RANGE, OPT_TIMEOUT };

static const struct option long_options[] = {
    {"artifact", required_argument, NULL, 'a'},
    {"input", required_argument, NULL, 'i'},
    {"seed", required_argument, NULL, 's'},
    {"threads", required_argument, NULL, 't'},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"range", required_argument, NULL, OPT_RANGE},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"replay", no_argument, NULL, OPT_REPLAY},
    COMPILE_LONG,
    {NULL, 0, NULL, 0},
};

typedef struct Check {
    Arena *arena;
    AssayCompiler *compiler;
    CompileOptions compile;
    const char *model, *work;
    const char *artifacts[MAX_LIST];
    int artifact_count;
    const char *given[MAX_LIST]; /* --input */
    int given_count;
    long seed, threads, timeout;
    bool json;
    InputRange range;
    bool has_range;
    bool replay;
    const Graph *graph; /* as loaded */
    Array **inputs;
    const char **input_files; /* NAME=FILE */
    /* Dimensions that are known at run time only: what they are now. */
    ExtentValue *dims;
    int dim_count;
    Vec(Extent) symbols; /* with their bounds */
    bool *is_given;      /* an array of --input decides */
    ReferenceValues reference;
    bool failed, unusable; /* an artifact is wrong; or is none */
} Check;

static bool same_type(const Array *a, const Array *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* ---- inputs ----------------------------------------------------------- */

/* The file that --input gives for a name, or NULL. */
static const char *given_file(const Check *c, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < c->given_count; i++)
        if (!strncmp(c->given[i], name, length) && c->given[i][length] == '=')
            return c->given[i] + length + 1;
    return NULL;
}

/* False when an --input has no such name. */
static bool check_names(const Check *c, Str *error)
{
    for (int i = 0; i < c->given_count; i++) {
        bool known = false;
        for (int k = 0; k < c->graph->inputs.count; k++) {
            const char *name = c->graph->inputs.data[k]->name;
            size_t length = strlen(name);
            known = known || (!strncmp(c->given[i], name, length) &&
                              c->given[i][length] == '=');
        }
        if (!known) {
            str_addf(error, "--input %s: there is no such input\n",
                     c->given[i]);
            return false;
        }
    }
    return true;
}

static void add_array_type(Str *text, const Array *array)
{
    str_addf(text, "%s[", dtype_name(array->dtype));
    for (int i = 0; i < array->rank; i++)
        str_addf(text, "%s%lld", i ? "," : "", (long long)array->dims[i]);
    str_add(text, "]");
}

static bool make_input(Check *c, int index, Str *error)
{
    const Tensor *t = c->graph->inputs.data[index];
    if (!type_is_bounded(&t->type)) {
        Str type = {0};
        type_print(&type, &t->type);
        str_addf(error,
                 "input \"%s\" is %s: give each named dimension a value "
                 "with --dim NAME=VALUE, or bounds with --dim NAME=LOW..HIGH"
                 "\n",
                 t->name, str_text(&type));
        str_free(&type);
        return false;
    }
    int64_t dims[MAX_RANK];
    for (int i = 0; i < t->type.rank; i++)
        dims[i] = extent_evaluate(t->type.dims[i], c->dims, c->dim_count);
    Array *array = array_new(c->arena, t->type.dtype, t->type.rank, dims);
    const char *file = given_file(c, t->name);
    if (file) {
        Array *own = npy_read(c->arena, file, error);
        if (own && !same_type(own, array)) {
            str_addf(error, "%s: ", file);
            add_array_type(error, own);
            str_addf(error, " given for input \"%s\", which is ", t->name);
            add_array_type(error, array);
        }
        if (!own || !same_type(own, array))
            return false;
        c->inputs[index] = own;
        c->input_files[index] = arena_printf(c->arena, "%s=%s", t->name, file);
        return true;
    }
    inputs_fill(array, (uint64_t)c->seed, index,
                c->has_range ? &c->range : NULL);
    inputs_bound(array, t->name, c->graph->declared.data,
                 c->graph->declared.count);
    c->inputs[index] = array;
    file = arena_printf(c->arena, "%s/input_%d.npy", c->work, index);
    c->input_files[index] = arena_printf(c->arena, "%s=%s", t->name, file);
    return npy_write(file, array, error);
}

static bool make_inputs(Check *c, Str *error)
{
    int count = c->graph->inputs.count;
    if (!check_names(c, error))
        return false;
    c->inputs = ARENA_ARRAY(c->arena, Array *, count + 1);
    c->input_files = ARENA_ARRAY(c->arena, const char *, count + 1);
    for (int i = 0; i < count; i++)
        if (!make_input(c, i, error))
            return false;
    return true;
}

/* ---- comparing -------------------------------------------------------- */

static json_t *difference_json(const char *name, const Difference *d)
{
    json_t *row = json_object();
    json_object_set_new(row, "name", json_string(name));
    json_object_set_new(row, "agrees", json_boolean(d->agrees));
    json_object_set_new(row, "max_error", number_json(d->max_error));
    json_object_set_new(row, "max_excess", number_json(d->max_excess));
    json_object_set_new(row, "sqnr_db", number_json(d->sqnr));
    json_object_set_new(row, "rms", number_json(d->rms));
    if (!d->agrees) {
        json_object_set_new(row, "element", json_integer(d->worst));
        json_object_set_new(row, "got", number_json(d->got));
        json_object_set_new(row, "wanted", number_json(d->wanted));
    }
    return row;
}

/* Adds rows for the outputs that OUTPUT_DIR holds; false when one differs
 * or is missing. */
static bool check_outputs(Check *c, const ArtifactInfo *info, const char *dir,
                          json_t *report, Str *reason)
{
    bool agrees = true;
    Difference worst = {.sqnr = INFINITY};
    json_t *rows = json_array();
    const char **names = runner_file_names(c->arena, info);
    for (int i = 0; i < c->graph->outputs.count; i++) {
        const Tensor *t = c->graph->outputs.data[i];
        const Array *wanted = c->reference.by_id[t->id];
        const char *file =
            arena_printf(c->arena, "%s/%s.npy", dir,
                         i < info->output_count ? names[i] : t->name);
        Array *got = npy_read(c->arena, file, reason);
        if (!got || !same_type(got, wanted)) {
            str_addf(reason, "output \"%s\": missing, or its type differs",
                     t->name);
            agrees = false;
            continue;
        }
        Difference d = compare_arrays(got, wanted, tolerance_f32);
        json_array_append_new(rows, difference_json(t->name, &d));
        if (!d.agrees)
            str_addf(reason,
                     "output \"%s\": element %lld is %g, reference %g; ",
                     t->name, (long long)d.worst, d.got, d.wanted);
        agrees = agrees && d.agrees;
        worst.max_error = fmax(worst.max_error, d.max_error);
        worst.max_abs = fmax(worst.max_abs, d.max_abs);
        worst.max_rel = fmax(worst.max_rel, d.max_rel);
        worst.max_excess = fmax(worst.max_excess, d.max_excess);
        worst.sqnr = fmin(worst.sqnr, d.sqnr);
    }
    json_object_set_new(report, "max_error", number_json(worst.max_error));
    json_object_set_new(report, "max_abs_error", number_json(worst.max_abs));
    json_object_set_new(report, "max_rel_error", number_json(worst.max_rel));
    json_object_set_new(report, "max_excess", number_json(worst.max_excess));
    json_object_set_new(report, "sqnr_db", number_json(worst.sqnr));
    json_object_set_new(report, "outputs", rows);
    return agrees;
}

/* The reference value of an inner tensor: that of its own name, else of the
 * source that it stands for. A pass that folds a node away leaves both the
 * node's names and those of what it was folded into; the right one is the
 * closest. */
static bool find_layer(Check *c, const ArtifactTensor *t, const Array *got,
                       const char **name, Difference *best)
{
    bool found = false;
    for (int i = -1; i < 0 || t->sources[i]; i++) {
        const char *candidate = i < 0 ? t->name : t->sources[i];
        const Tensor *source = graph_find_tensor(c->graph, candidate);
        const Array *wanted = source ? c->reference.by_id[source->id] : NULL;
        if (!wanted || !same_type(got, wanted))
            continue;
        Difference d = compare_arrays(got, wanted, tolerance_f32);
        if (found && d.max_error >= best->max_error)
            continue;
        found = true;
        *best = d;
        *name = candidate;
    }
    return found;
}

static void check_layers(Check *c, const ArtifactInfo *info, const char *dir,
                         json_t *report)
{
    json_t *rows = json_array();
    double worst = INFINITY;
    for (int i = 0; i < info->tensor_count; i++) {
        const ArtifactTensor *t = &info->tensors[i];
        Str ignored = {0};
        Array *got = npy_read(
            c->arena, arena_printf(c->arena, "%s/tensor_%04d.npy", dir, i),
            &ignored);
        str_free(&ignored);
        const char *name;
        Difference d;
        if (!got || !find_layer(c, t, got, &name, &d))
            continue;
        json_array_append_new(rows, difference_json(name, &d));
        worst = fmin(worst, d.sqnr);
    }
    json_object_set_new(report, "layers_sqnr_db", number_json(worst));
    json_object_set_new(report, "layers", rows);
}

/* ---- one artifact ----------------------------------------------------- */

static void check_artifact(Check *c, const char *dir, json_t *report)
{
    json_object_set_new(report, "artifact", json_string(dir));
    ArtifactInfo info;
    AssayError error;
    Str reason = {0};
    const char *out = arena_printf(c->arena, "%s/out", c->work);
    const char *taps = arena_printf(c->arena, "%s/taps", c->work);
    ChildEnd end = {CASE_CRASHED, -1, 0};
    json_t *ran = NULL;
    if (artifact_read_info(c->arena, dir, &info, &error) != ASSAY_OK) {
        str_add(&reason, error.text);
        end.status = CASE_REFUSED;
    } else if (!make_folders(out) || !make_folders(taps)) {
        str_addf(&reason, "no temporary folder: %s", strerror(errno));
    } else {
        Launch launch = {.artifact = dir,
                         .inputs = c->input_files,
                         .input_count = c->graph->inputs.count,
                         .threads = (int)c->threads,
                         .output = out,
                         .taps = taps,
                         .check_twice = true,
                         .limits = {.seconds = (double)c->timeout}};
        ran = launch_runner(c->arena, &launch, &end, &reason);
    }
    if (ran) {
        /* In place of how the process ended. */
        reason.length = 0;
        if (end.exit_code != 0)
            str_add(&reason, "a second run gives other outputs, or the "
                             "inputs were written to; ");
        if (!check_outputs(c, &info, out, report, &reason))
            end.status = CASE_FAILED_CHECK;
        check_layers(c, &info, taps, report);
        json_object_set(report, "output_hashes",
                        json_object_get(ran, "outputs"));
        json_object_set(report, "repeat_identical",
                        json_object_get(ran, "repeat_identical"));
        json_object_set(report, "inputs_untouched",
                        json_object_get(ran, "inputs_untouched"));
    }
    json_object_set_new(report, "status",
                        json_string(case_status_name(end.status)));
    if (reason.length)
        json_object_set_new(report, "reason", json_string(str_text(&reason)));
    c->failed = c->failed || end.status != CASE_OK;
    c->unusable = c->unusable || end.status == CASE_REFUSED;
    json_decref(ran);
    str_free(&reason);
    /* The next artifact must not find this one's files. */
    remove_temp_folder(out);
    remove_temp_folder(taps);
}

static const RefOp *const *own_oracles(const Check *c)
{
    const CompileOptions *o = &c->compile;
    const RefOp **lists =
        ARENA_ARRAY(c->arena, const RefOp *, o->ops_count + 1);
    int count = 0;
    for (int i = 0; i < o->ops_count; i++)
        if (o->ops[i]->oracles)
            lists[count++] = o->ops[i]->oracles;
    return lists;
}

/* "T=17, N=2" */
static const char *dims_text(const Check *c)
{
    const char *text = "";
    for (int i = 0; i < c->dim_count; i++)
        text = arena_printf(c->arena, "%s%s%s=%lld", text, i ? ", " : "",
                            c->dims[i].name, (long long)c->dims[i].value);
    return text;
}

/* Sets the dimensions of check number `point` of `points`: from the lower
 * bounds to the upper ones. The shapes of given arrays decide for themselves:
 * see find_given_dims. */
static void set_point(Check *c, int point, int points)
{
    for (int i = 0; i < c->dim_count; i++) {
        Extent symbol = c->symbols.data[i];
        int64_t lower = extent_lower(symbol);
        int64_t steps = points > 1 ? points - 1 : 1;
        if (!c->is_given[i])
            c->dims[i].value = symbol.value - (symbol.value - lower) *
                                                  (points - 1 - point) / steps;
    }
}

/* Dimensions that arrays of --input decide. */
static bool find_given_dims(Check *c, Str *error)
{
    for (int i = 0; i < c->graph->inputs.count; i++) {
        const Tensor *t = c->graph->inputs.data[i];
        const char *file = given_file(c, t->name);
        Arena *scratch = arena_new();
        Array *own = file ? npy_read(scratch, file, error) : NULL;
        bool ok = !file || own;
        for (int k = 0; own && own->rank == t->type.rank && k < own->rank;
             k++) {
            const DimExpr *e = t->type.dims[k].expr;
            for (int d = 0; e && d < c->dim_count; d++) {
                Extent s = c->symbols.data[d];
                if (e->kind != DIM_NAME || strcmp(e->name, c->dims[d].name) ||
                    own->dims[k] < extent_lower(s) || own->dims[k] > s.value)
                    continue;
                c->is_given[d] = true;
                c->dims[d].value = own->dims[k];
            }
        }
        arena_free(scratch);
        if (!ok)
            return false;
    }
    return true;
}

static bool find_dims(Check *c, Str *error)
{
    Graph *copy = graph_copy(c->arena, c->graph);
    graph_find_symbols(copy);
    c->dim_count = copy->input_symbols;
    c->dims = ARENA_ARRAY(c->arena, ExtentValue, c->dim_count + 1);
    c->is_given = ARENA_ARRAY(c->arena, bool, c->dim_count + 1);
    for (int i = 0; i < c->dim_count; i++) {
        vec_push(c->arena, &c->symbols, copy->symbols.data[i]);
        c->dims[i] = (ExtentValue){copy->symbols.data[i].expr->name,
                                   copy->symbols.data[i].value};
    }
    return find_given_dims(c, error);
}

/* A row an artifact: that of the last point, or of one that is wrong. */
static bool check_point(Check *c, json_t *rows, double *seconds, Str *error)
{
    double start = clock_now();
    if (!make_inputs(c, error) ||
        !reference_run(c->arena, c->graph, c->inputs, own_oracles(c),
                       &c->reference, error))
        return false;
    *seconds += clock_now() - start;
    for (int i = 0; i < c->artifact_count; i++) {
        const json_t *former = json_array_get(rows, (size_t)i);
        const char *status =
            json_string_value(json_object_get(former, "status"));
        if (status && strcmp(status, case_status_name(CASE_OK)))
            continue;
        json_t *row = json_object();
        check_artifact(c, c->artifacts[i], row);
        if (c->dim_count)
            json_object_set_new(row, "dims", json_string(dims_text(c)));
        if (former)
            json_array_set_new(rows, (size_t)i, row);
        else
            json_array_append_new(rows, row);
    }
    return true;
}

static json_t *check_artifacts(Check *c, Str *error)
{
    double seconds = 0;
    json_t *rows = json_array();
    bool ok = find_dims(c, error), is_open = false;
    for (int i = 0; i < c->dim_count; i++)
        is_open = is_open || !c->is_given[i];
    int points = is_open ? 3 : 1;
    for (int i = 0; ok && i < points; i++) {
        set_point(c, i, points);
        ok = check_point(c, rows, &seconds, error);
    }
    if (!ok) {
        json_decref(rows);
        return NULL;
    }
    json_t *report = json_pack(
        "{s:s, s:f, s:f, s:f}", "model", c->model, "atol", tolerance_f32.atol,
        "rtol", tolerance_f32.rtol, "reference_seconds", seconds);
    json_object_set_new(report, "artifacts", rows);
    return report;
}

/* ---- the table -------------------------------------------------------- */

/* Null stands for infinity, which JSON has not. */
static double ratio_of(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_null(value) ? INFINITY : json_number_value(value);
}

/* The layer with the lowest signal-to-noise ratio, where an error starts. */
static const json_t *worst_layer(const json_t *row)
{
    const json_t *layers = json_object_get(row, "layers"), *worst = NULL;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        if (!worst || ratio_of(layer, "sqnr_db") < ratio_of(worst, "sqnr_db"))
            worst = layer;
    }
    return worst;
}

static void print_table(const Check *c, const json_t *report)
{
    const json_t *rows = json_object_get(report, "artifacts");
    printf("%-24s %-12s %9s %13s %8s  %s\n", "artifact", "status", "error",
           "of tolerance", "SQNR", "worst layer");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *layer = worst_layer(row);
        const char *name = json_string_value(json_object_get(row, "artifact"));
        const char *reason = json_string_value(json_object_get(row, "reason"));
        bool is_own = strncmp(name, c->work, strlen(c->work)) == 0;
        printf("%-24s %-12s", is_own ? c->model : name,
               json_string_value(json_object_get(row, "status")));
        if (json_object_get(row, "max_error"))
            printf(" %9.2g %13.3g %5.1f dB", ratio_of(row, "max_error"),
                   ratio_of(row, "max_excess"), ratio_of(row, "sqnr_db"));
        if (layer)
            printf("  %s (%.1f dB)",
                   json_string_value(json_object_get(layer, "name")),
                   ratio_of(layer, "sqnr_db"));
        putchar('\n');
        const char *dims = json_string_value(json_object_get(row, "dims"));
        if (reason)
            printf("  %s%s%s\n", dims ? dims : "", dims ? ": " : "", reason);
    }
    printf("\nerror: largest difference from the reference, in units of the "
           "output's rms. of\ntolerance: largest difference over what is "
           "allowed, %g rms + %g |value|; above 1\nis wrong.\n",
           tolerance_f32.atol, tolerance_f32.rtol);
}

/* ---- command ---------------------------------------------------------- */

static int check_in(Check *c)
{
    if (!open_model(c->compiler, c->model, &c->compile))
        return EXIT_BAD_INPUT;
    if (c->replay) {
        if (!assay_compile(c->compiler, &c->compile.assay)) {
            fputs(assay_errors(c->compiler), stderr);
            return EXIT_BAD_INPUT;
        }
        return replay_kernels(assay_program(c->compiler)) ? EXIT_FINE
                                                          : EXIT_FAILED_CHECK;
    }
    if (!c->artifact_count) {
        const char *dir = arena_printf(c->arena, "%s/artifact", c->work);
        if (!assay_compile(c->compiler, &c->compile.assay) ||
            !assay_write_artifact(c->compiler, dir)) {
            fputs(assay_errors(c->compiler), stderr);
            return EXIT_BAD_INPUT;
        }
        c->artifacts[c->artifact_count++] = dir;
    }
    c->graph = assay_canonical_graph(c->compiler);
    if (!c->graph) {
        fputs(assay_errors(c->compiler), stderr);
        return EXIT_BAD_INPUT;
    }
    Str error = {0};
    json_t *report = check_artifacts(c, &error);
    if (!report) {
        int code = bad_input("%s: %s", c->model, str_text(&error));
        str_free(&error);
        return code;
    }
    if (c->json) {
        json_dumpf(report, stdout, JSON_INDENT(1));
        putchar('\n');
    } else {
        print_table(c, report);
    }
    json_decref(report);
    return c->unusable ? EXIT_BAD_INPUT
           : c->failed ? EXIT_FAILED_CHECK
                       : EXIT_FINE;
}

static bool take_range(const char *text, InputRange *range)
{
    char *end;
    range->low = strtod(text, &end);
    bool ok = end != text && *end == ',';
    if (ok) {
        const char *high = end + 1;
        range->high = strtod(high, &end);
        ok = end != high && !*end && isfinite(range->low) &&
             isfinite(range->high) && range->low < range->high;
    }
    if (!ok)
        bad_input("--range %s: give two numbers, as 0,255", text);
    return ok;
}

int cmd_check(int argc, char **argv)
{
    Check c = {.seed = 1, .timeout = 600};
    compile_options_init(&c.compile);
    int code;
    while ((code = getopt_long(argc, argv, COMPILE_SHORT "a:i:s:t:h",
                               long_options, NULL)) != -1) {
        int taken = compile_options_take(&c.compile, code, optarg);
        if (taken < 0)
            return EXIT_BAD_INPUT;
        if (taken)
            continue;
        bool ok = true;
        if (code == 'h')
            return fputs(usage, stdout), EXIT_FINE;
        else if (code == 'a' && c.artifact_count < MAX_LIST)
            c.artifacts[c.artifact_count++] = optarg;
        else if (code == 'i' && c.given_count < MAX_LIST)
            c.given[c.given_count++] = optarg;
        else if (code == 's')
            ok = parse_count("--seed", optarg, 0, 1L << 40, &c.seed);
        else if (code == 't')
            ok = parse_count("--threads", optarg, 1, 1024, &c.threads);
        else if (code == OPT_TIMEOUT)
            ok = parse_count("--timeout", optarg, 1, 1 << 30, &c.timeout);
        else if (code == OPT_REPLAY)
            c.replay = true;
        else if (code == OPT_RANGE)
            ok = c.has_range = take_range(optarg, &c.range);
        else if (code == OPT_FORMAT)
            ok = take_format(optarg, &c.json);
        else
            return bad_input("see assay check --help");
        if (!ok)
            return EXIT_BAD_INPUT;
    }
    if (optind + 1 != argc)
        return fputs(usage, stderr), EXIT_BAD_INPUT;
    if (!inputs_are_distinct(c.given, c.given_count))
        return EXIT_BAD_INPUT;
    c.model = argv[optind];
    c.arena = arena_new();
    c.work = make_temp_folder(c.arena);
    if (!c.work)
        return bad_input("no temporary folder: %s", strerror(errno));
    c.compiler = assay_new();
    int result = check_in(&c);
    assay_free(c.compiler);
    remove_temp_folder(c.work);
    arena_free(c.arena);
    return result;
}
