#include "harness/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/common.h"
#include "harness/npy.h"
#include "suites/suite.h"

void compile_options_init(CompileOptions *o)
{
    *o = (CompileOptions){.mode = "fused"};
    o->assay.opt_level = 2;
    o->assay.disabled = o->disabled;
    o->assay.no_fuse = o->no_fuse;
    o->assay.dims = o->dims;
}

bool take_format(const char *text, bool *json)
{
    *json = !strcmp(text, "json");
    if (*json || !strcmp(text, "table"))
        return true;
    bad_input("--format %s: there are table and json", text);
    return false;
}

bool parse_number(const char *option, const char *text, double low,
                  double high, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && !*end && *value > low && *value <= high)
        return true;
    bad_input("%s %s: give a number above %g, at most %g", option, text, low,
              high);
    return false;
}

bool parse_count(const char *option, const char *text, long low, long high,
                 long *value)
{
    char *end;
    errno = 0;
    *value = strtol(text, &end, 10);
    if (end != text && !*end && !errno && *value >= low && *value <= high)
        return true;
    bad_input("%s %s: give a number from %ld to %ld", option, text, low, high);
    return false;
}

bool inputs_are_distinct(const char *const *inputs, int count)
{
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(inputs[i], "=");
        for (int k = 0; k < i && inputs[i][length]; k++)
            if (!strncmp(inputs[k], inputs[i], length + 1)) {
                bad_input("--input %s: the input has a file already",
                          inputs[i]);
                return false;
            }
    }
    return true;
}

static bool add_text(const char **list, int *count, const char *option,
                     const char *text)
{
    if (*count == MAX_LIST - 1) { /* the last place stays NULL */
        bad_input("more than %d of %s", MAX_LIST - 1, option);
        return false;
    }
    list[(*count)++] = text;
    return true;
}

static bool add_dim(CompileOptions *o, const char *text)
{
    const char *equals = strchr(text, '=');
    long value;
    if (!equals || equals == text) {
        bad_input("--dim %s: give NAME=VALUE, as N=1, or NAME=LOW..HIGH",
                  text);
        return false;
    }
    if (o->dim_count == MAX_LIST) {
        bad_input("more than %d of --dim", MAX_LIST);
        return false;
    }
    size_t length = (size_t)(equals - text);
    for (int i = 0; i < o->dim_count; i++)
        if (strlen(o->dims[i].name) == length &&
            !strncmp(o->dims[i].name, text, length)) {
            bad_input("--dim %s: %s has a value already", text,
                      o->dims[i].name);
            return false;
        }
    char *end;
    errno = 0;
    value = strtol(equals + 1, &end, 10);
    bool ok = end != equals + 1 && !errno;
    long upper = 0;
    if (ok && !strncmp(end, "..", 2)) {
        const char *high = end + 2;
        upper = strtol(high, &end, 10);
        ok = end != high && !errno && upper >= value;
    }
    if (!ok || *end || value < (upper ? 0 : 1) ||
        (upper ? upper : value) >= 1L << 40) {
        bad_input("--dim %s: the value is a number from 1 to %ld, or a range "
                  "from 0 on, as 1..256",
                  text, (1L << 40) - 1);
        return false;
    }
    /* Options live as long as the process. */
    char *name = strndup(text, length);
    o->dims[o->dim_count++] = (AssayDim){name, value, upper};
    o->assay.dim_count = o->dim_count;
    return name != NULL;
}

static bool add_bind(CompileOptions *o, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        bad_input("--bind %s: give NAME=FILE", text);
        return false;
    }
    if (o->bind_count == MAX_LIST) {
        bad_input("more than %d of --bind", MAX_LIST);
        return false;
    }
    o->binds[o->bind_count++] = text;
    return inputs_are_distinct(o->binds, o->bind_count);
}

bool compile_options_add_ops(CompileOptions *o, const char *path)
{
    if (o->ops_count == MAX_LIST) {
        bad_input("more than %d of --ops", MAX_LIST);
        return false;
    }
    Str error = {0};
    const AssayCustomOps *ops = custom_load(path, &error);
    if (!ops)
        bad_input("--ops %s", str_text(&error));
    str_free(&error);
    if (ops)
        o->ops[o->ops_count++] = ops;
    return ops != NULL;
}

/* --mode and -O set the same thing: the last of several would win over what
 * was meant, or half of both would hold. */
static bool take_mode(CompileOptions *o)
{
    if (o->has_mode)
        bad_input("give one --mode or one -O");
    bool first = !o->has_mode;
    o->has_mode = true;
    return first;
}

bool compile_options_set_mode(CompileOptions *o, const char *mode)
{
    if (!take_mode(o))
        return false;
    if (!strcmp(mode, "fused")) {
        o->assay.opt_level = 2;
    } else if (!strcmp(mode, "unfused")) {
        o->assay.opt_level = 2;
        if (!add_text(o->disabled, &o->disabled_count, "--disable", "fuse"))
            return false;
    } else if (!strcmp(mode, "O0")) {
        o->assay.opt_level = 0;
    } else if (!strcmp(mode, "O1")) {
        o->assay.opt_level = 1;
    } else if (!strcmp(mode, "naive")) {
        o->assay.opt_level = 2;
        o->assay.naive = true;
    } else {
        bad_input("unknown mode \"%s\"; there are: fused unfused O0 O1 naive",
                  mode);
        return false;
    }
    o->mode = mode;
    return true;
}

static bool take(CompileOptions *o, int code, const char *value)
{
    long number;
    switch (code) {
    case OPT_TARGET:
        o->assay.target = value;
        return true;
    case OPT_MODE:
        return compile_options_set_mode(o, value);
    case OPT_DIM:
        return add_dim(o, value);
    case OPT_BIND:
        return add_bind(o, value);
    case OPT_OPS:
        return compile_options_add_ops(o, value);
    case OPT_SCHEDULE:
        o->assay.naive = !strcmp(value, "naive");
        if (!o->assay.naive && strcmp(value, "default")) {
            bad_input("--schedule %s: there are naive and default", value);
            return false;
        }
        return true;
    case OPT_DISABLE:
        return add_text(o->disabled, &o->disabled_count, "--disable", value);
    case OPT_NO_FUSE:
        return add_text(o->no_fuse, &o->no_fuse_count, "--no-fuse", value);
    case OPT_ALGORITHM:
        o->assay.algorithm = value;
        return true;
    case OPT_DUMP_AFTER:
        o->assay.dump_after = value;
        return true;
    case OPT_STOP_AFTER:
        o->assay.stop_after = value;
        return true;
    case OPT_TIME_PASSES:
        return o->assay.time_passes = true;
    case OPT_TAPS:
        return o->assay.taps = true;
    case OPT_SANITIZE:
        o->assay.sanitize = !strcmp(value, "address");
        o->assay.sanitize_threads = !strcmp(value, "thread");
        if (o->assay.sanitize || o->assay.sanitize_threads)
            return true;
        bad_input("--sanitize %s: there are address and thread", value);
        return false;
    case OPT_CHOICES:
        if (o->assay.choices) {
            bad_input("give one --choices");
            return false;
        }
        o->assay.choices = value;
        return true;
    case 'O':
        if (!parse_count("-O", value, 0, 2, &number) || !take_mode(o))
            return false;
        o->assay.opt_level = (int)number;
        o->mode = number == 2 ? "fused" : number ? "O1" : "O0";
        return true;
    default: /* 'j' */
        if (!parse_count("--jobs", value, 1, 1024, &number))
            return false;
        o->assay.jobs = (int)number;
        return true;
    }
}

/* Lists of options end before there is no room. */
static void note_args(CompileOptions *o, int code, const char *value)
{
    static const struct option options[] = {COMPILE_LONG, {NULL, 0, NULL, 0}};
    const char *name = code == 'O' ? "-O" : NULL;
    for (const struct option *l = options; l->name && !name; l++)
        if (l->val == code) {
            Arena *arena = arena_new(); /* as long as the process */
            name = arena_printf(arena, "--%s", l->name);
        }
    if (code == OPT_CHOICES || o->arg_count + 2 > 4 * MAX_LIST)
        return;
    o->args[o->arg_count++] = name;
    if (value)
        o->args[o->arg_count++] = value;
}

int compile_options_take(CompileOptions *o, int code, const char *value)
{
    bool known = (code >= OPT_TARGET && code < OPT_COMMAND) || code == 'O' ||
                 code == 'j';
    if (!known)
        return 0;
    if (!take(o, code, value))
        return -1;
    note_args(o, code, value);
    return 1;
}

/* ---- models ----------------------------------------------------------- */

typedef struct BuildJob {
    const SuiteModel *model;
    SuiteParams params;
} BuildJob;

static bool build_suite_model(Graph *g, void *user)
{
    BuildJob *job = user;
    return job->model->build(g, &job->params);
}

static bool open_suite_model(AssayCompiler *compiler, const char *text)
{
    Str error = {0};
    BuildJob job;
    job.model = suite_find(text, &job.params, &error);
    if (!job.model) {
        bad_input("%s", str_text(&error));
        str_free(&error);
        return false;
    }
    if (job.model->build)
        return assay_build(compiler, job.model->name, build_suite_model, &job);
    AssayDim batch = {"N", job.params.batch, 0};
    AssayLoad load = {.dims = &batch, .dim_count = 1};
    Arena *arena = arena_new();
    bool ok =
        assay_load_onnx(compiler, data_path(arena, job.model->onnx), &load);
    arena_free(arena);
    return ok;
}

static const Array *read_bind(AssayCompiler *compiler, const char *path)
{
    size_t length = strlen(path);
    if (length > 3 && !strcmp(path + length - 3, ".pb"))
        return assay_read_tensor(compiler, path);
    Str error = {0};
    const Array *value = npy_read(assay_arena(compiler), path, &error);
    if (!value)
        bad_input("--bind %s: %s", path, str_text(&error));
    str_free(&error);
    return value;
}

/* What is bound is said: it is no input of the artifact any more. */
static bool open_onnx(AssayCompiler *compiler, const char *model,
                      const CompileOptions *o)
{
    AssayBind binds[MAX_LIST];
    for (int i = 0; i < o->bind_count; i++) {
        const char *equals = strchr(o->binds[i], '=');
        Arena *arena = assay_arena(compiler);
        binds[i].name =
            arena_strndup(arena, o->binds[i], (size_t)(equals - o->binds[i]));
        binds[i].value = read_bind(compiler, equals + 1);
        if (!binds[i].value)
            return false;
        fprintf(stderr, "bound %s to %s\n", binds[i].name, equals + 1);
    }
    AssayLoad load = {o->dims, o->dim_count, binds, o->bind_count};
    return assay_load_onnx(compiler, model, &load);
}

bool check_choices(const CompileOptions *o)
{
    if (!o->assay.choices)
        return true;
    AssayCompiler *compiler = assay_new();
    int others;
    bool ok = assay_read_choices(compiler, &o->assay, &others);
    if (!ok)
        fputs(assay_errors(compiler), stderr);
    else if (others)
        fprintf(stderr,
                "assay: %s: %d lines for other targets, features or "
                "compilers are ignored\n",
                o->assay.choices, others);
    assay_free(compiler);
    return ok;
}

bool open_model(AssayCompiler *compiler, const char *model,
                const CompileOptions *o)
{
    bool ok;
    if (!check_choices(o))
        return false;
    for (int i = 0; i < o->ops_count; i++)
        assay_add_ops(compiler, o->ops[i]->ops);
    if (suite_is_name(model) && o->dim_count) {
        bad_input("%s: --dim is for ONNX files; a suite model has "
                  "parameters, as %s@batch=4",
                  model, model);
        return false;
    }
    if (suite_is_name(model) && o->bind_count) {
        bad_input("%s: --bind is for ONNX files", model);
        return false;
    }
    if (suite_is_name(model))
        ok = open_suite_model(compiler, model);
    else
        ok = open_onnx(compiler, model, o);
    if (!ok)
        fputs(assay_errors(compiler), stderr);
    return ok;
}
