#include "harness/validate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assay.h"
#include "graph/graph.h"
#include "harness/check.h"
#include "harness/common.h"
#include "harness/launch.h"
#include "harness/npy.h"
#include "harness/options.h"
#include "harness/runner.h"
#include "suites/conformance/tolerance.h"

static const char *const level_names[LEVEL_COUNT] = {"O0", "O1", "unfused",
                                                     "fused"};

const char *validate_level_name(ValidateLevel level)
{
    return level_names[level];
}

/* ---- in the child ----------------------------------------------------- */

typedef struct Case {
    Arena *arena;
    const char *folder, *work;
    const ValidatePlan *plan;
    AssayCompiler *compiler;
    AssayBind binds[MAX_LIST];
    int bind_count;
    AssayDim dims[MAX_LIST]; /* of inputs that stay open */
    int dim_count;
    Vec(const char *) open;
    bool gave_up; /* on leaving inputs open */
    Str refused;  /* why */
    bool is_noted;
    Vec(AssayModelInput) inputs; /* of the file */
    int set;
    const char *op;
    double max_excess;
    Str reason;
    CaseStatus status;
} Case;

static bool fail(Case *c, CaseStatus status, const char *text)
{
    c->status = status;
    str_add(&c->reason, text);
    return false;
}

static const char *model_path(const Case *c)
{
    return arena_printf(c->arena, "%s/model.onnx", c->folder);
}

/* Of the data set at hand. */
static const char *data_file(const Case *c, const char *kind, int number)
{
    return arena_printf(c->arena, "%s/test_data_set_%d/%s_%d.pb", c->folder,
                        c->set, kind, number);
}

/* Does the data set have a value for each input, also for those that the
 * model stores a default for? */
static bool feeds_fixed(const Case *c)
{
    bool has_fixed = false;
    for (int i = 0; i < c->inputs.count; i++)
        has_fixed |= c->inputs.data[i].is_fixed;
    return has_fixed &&
           !access(data_file(c, "input", c->inputs.count - 1), F_OK);
}

/* What input_N stands for; a bound input keeps its number. */
static int input_number(const Case *c, const char *name)
{
    bool all = feeds_fixed(c);
    int number = 0;
    for (int i = 0; i < c->inputs.count; i++) {
        const AssayModelInput *input = &c->inputs.data[i];
        if (input->is_fixed && !all)
            continue;
        if (!strcmp(input->name, name))
            return number;
        number++;
    }
    return -1;
}

/* The inputs of the file and its first operator. */
static void note_model(Case *c)
{
    const Graph *g = assay_source_graph(c->compiler);
    const AssayModelInput *inputs;
    if (!g || c->is_noted)
        return;
    c->is_noted = true;
    int count = assay_model_inputs(c->compiler, &inputs);
    for (int i = 0; i < count; i++)
        vec_push(c->arena, &c->inputs,
                 ((AssayModelInput){arena_strdup(c->arena, inputs[i].name),
                                    inputs[i].is_fixed}));
    if (g->nodes.count)
        c->op = arena_strdup(c->arena, op_name(g->nodes.data[0]->op));
}

/* Binds the input to its value in the data set. False when there is none. */
static bool bind_input(Case *c, const char *name)
{
    int number = input_number(c, name);
    if (number < 0 || c->bind_count == MAX_LIST)
        return false;
    AssayCompiler *reader = assay_new();
    const Array *value =
        assay_read_tensor(reader, data_file(c, "input", number));
    /* The value belongs to `reader`, which is never freed: this process
     * lives for one case. */
    if (value)
        c->binds[c->bind_count++] =
            (AssayBind){arena_strdup(c->arena, name), value};
    return value != NULL;
}

static bool is_bound(const Case *c, const char *name)
{
    for (int i = 0; i < c->bind_count; i++)
        if (!strcmp(c->binds[i].name, name))
            return true;
    return false;
}

/* The largest extent of the first output that is expected. */
static int64_t largest_extent(Case *c)
{
    const Array *y = assay_read_tensor(c->compiler, data_file(c, "output", 0));
    int64_t most = 1;
    for (int i = 0; y && i < y->rank; i++)
        most = y->dims[i] > most ? y->dims[i] : most;
    return most;
}

/* Leaves the input one that a run brings, each element up to twice its value
 * in the data set; those that are not above 0 stand for an extent of the
 * result. False where that makes no sense, or was tried. */
static bool open_input(Case *c, const char *name)
{
    int number = input_number(c, name);
    for (int i = 0; i < c->open.count; i++)
        if (!strcmp(c->open.data[i], name))
            return false;
    if (!c->plan->is_open || c->gave_up || number < 0)
        return false;
    const Array *value =
        assay_read_tensor(c->compiler, data_file(c, "input", number));
    if (!value || value->rank > 1 ||
        (value->dtype != DT_I64 && value->dtype != DT_I32))
        return false;
    int64_t count = array_count(value), most = largest_extent(c);
    if (count < 1 || c->dim_count + count > MAX_LIST)
        return false;
    const char *own = arena_strdup(c->arena, name);
    for (int64_t i = 0; i < count; i++) {
        int64_t v = array_get_int(value, i);
        const char *element =
            arena_printf(c->arena, "%s[%lld]", own, (long long)i);
        c->dims[c->dim_count++] = v > 0 && v < INT32_MAX / 2
                                      ? (AssayDim){element, 1, 2 * v}
                                      : (AssayDim){element, 0, most};
    }
    vec_push(c->arena, &c->open, own);
    return true;
}

/* Binds what the failed compilation wants, or declares it. False when that is
 * nothing new. */
static bool bind_wanted(Case *c)
{
    const char *const *names;
    int count = assay_wanted_inputs(c->compiler, &names);
    bool added = false;
    for (int i = 0; i < count; i++)
        added |= open_input(c, names[i]) || bind_input(c, names[i]);
    return added;
}

/* Binds the defaults that the data set replaces; likewise. */
static bool bind_fixed(Case *c)
{
    bool added = false;
    for (int i = 0; i < c->inputs.count && feeds_fixed(c); i++)
        if (c->inputs.data[i].is_fixed && !is_bound(c, c->inputs.data[i].name))
            added |= bind_input(c, c->inputs.data[i].name);
    return added;
}

/* Binds all that was left open, as that did not do. */
static bool close_inputs(Case *c)
{
    if (c->gave_up || !c->dim_count)
        return false;
    c->gave_up = true;
    c->dim_count = 0;
    str_add(&c->refused, assay_errors(c->compiler));
    for (int i = 0; i < c->open.count; i++)
        if (!is_bound(c, c->open.data[i]))
            bind_input(c, c->open.data[i]);
    return true;
}

static bool load_model(Case *c)
{
    c->compiler = assay_new();
    const CompileOptions *own = c->plan->ops;
    for (int i = 0; own && i < own->ops_count; i++)
        assay_add_ops(c->compiler, own->ops[i]->ops);
    AssayLoad options = {.dims = c->dims,
                         .dim_count = c->dim_count,
                         .binds = c->binds,
                         .bind_count = c->bind_count};
    return assay_load_onnx(c->compiler, model_path(c), &options);
}

static bool compile(Case *c, ValidateLevel level, const char *artifact)
{
    CompileOptions o;
    compile_options_init(&o);
    compile_options_set_mode(&o, level_names[level]);
    o.assay.target = c->plan->target;
    o.assay.jobs = 1;
    while (true) {
        bool ok = load_model(c);
        note_model(c);
        bool again = ok && bind_fixed(c);
        ok = ok && !again && assay_compile(c->compiler, &o.assay);
        if (again || (!ok && (bind_wanted(c) || close_inputs(c)))) {
            assay_free(c->compiler);
            continue;
        }
        if (!ok || !assay_write_artifact(c->compiler, artifact))
            return fail(c, CASE_REFUSED, assay_errors(c->compiler));
        return true;
    }
}

/* The data set's inputs as .npy files, NAME=FILE. */
static bool write_inputs(Case *c, const ArtifactInfo *info, const char **files)
{
    for (int i = 0; i < info->input_count; i++) {
        int number = input_number(c, info->inputs[i].name);
        const Array *value =
            assay_read_tensor(c->compiler, data_file(c, "input", number));
        if (!value)
            return fail(c, CASE_REFUSED, assay_errors(c->compiler));
        const char *path = arena_printf(c->arena, "%s/in%d.npy", c->work, i);
        if (!npy_write(path, value, &c->reason))
            return fail(c, CASE_CRASHED, "");
        files[i] = arena_printf(c->arena, "%s=%s", info->inputs[i].name, path);
    }
    return true;
}

static bool compare_output(Case *c, const ArtifactInfo *info, int number,
                           const char *file)
{
    const char *name = info->outputs[number].name;
    const Array *wanted =
        assay_read_tensor(c->compiler, data_file(c, "output", number));
    if (!wanted)
        return fail(c, CASE_REFUSED, assay_errors(c->compiler));
    const Array *got = npy_read(c->arena, file, &c->reason);
    if (!got)
        return fail(c, CASE_CRASHED, "");
    bool same = got->dtype == wanted->dtype && got->rank == wanted->rank &&
                !memcmp(got->dims, wanted->dims,
                        (size_t)got->rank * sizeof *got->dims);
    if (!same)
        return fail(c, CASE_FAILED_CHECK,
                    arena_printf(c->arena,
                                 "output \"%s\": another type or shape than "
                                 "expected",
                                 name));
    const ToleranceRow *row =
        tolerance_find(c->op, wanted->dtype, info->target);
    Difference d =
        compare_arrays(got, wanted, (Tolerance){row->atol, row->rtol});
    c->max_excess = fmax(c->max_excess, d.max_excess);
    if (d.agrees)
        return true;
    return fail(c, CASE_FAILED_CHECK,
                arena_printf(c->arena,
                             "output \"%s\": element %lld is %g instead of "
                             "%g",
                             name, (long long)d.worst, d.got, d.wanted));
}

static bool run_set(Case *c, const char *artifact, const ArtifactInfo *info)
{
    const char *out = arena_printf(c->arena, "%s/out", c->work);
    const char **files =
        ARENA_ARRAY(c->arena, const char *, info->input_count + 1);
    if (!make_folders(out) || !write_inputs(c, info, files))
        return c->status != CASE_OK || fail(c, CASE_CRASHED, "no folder");
    Launch launch = {.artifact = artifact,
                     .inputs = files,
                     .input_count = info->input_count,
                     .threads = 1,
                     .output = out,
                     .limits = c->plan->limits};
    ChildEnd end;
    json_t *report = launch_runner(c->arena, &launch, &end, &c->reason);
    json_decref(report);
    if (!report)
        return fail(c, end.status, "");
    const char **names = runner_file_names(c->arena, info);
    for (int i = 0; i < info->output_count; i++)
        if (!compare_output(
                c, info, i,
                arena_printf(c->arena, "%s/%s.npy", out, names[i])))
            return false;
    return true;
}

static bool has_set(const Case *c, int set)
{
    return !access(
        arena_printf(c->arena, "%s/test_data_set_%d", c->folder, set), F_OK);
}

static bool run_level(Case *c, ValidateLevel level)
{
    const char *artifact =
        arena_printf(c->arena, "%s/%s", c->work, level_names[level]);
    for (c->set = 0; has_set(c, c->set); c->set++) {
        ArtifactInfo info;
        AssayError error;
        /* A bound value holds for the set that it is from. */
        if (c->set == 0 || c->bind_count || c->dim_count || feeds_fixed(c)) {
            if (c->compiler)
                assay_free(c->compiler);
            c->bind_count = c->dim_count = c->open.count = 0;
            c->gave_up = false;
            if (!compile(c, level, artifact))
                return false;
        }
        if (artifact_read_info(c->arena, artifact, &info, &error) != ASSAY_OK)
            return fail(c, CASE_CRASHED, error.text);
        if (!run_set(c, artifact, &info))
            return false;
    }
    return c->set > 0 || fail(c, CASE_REFUSED, "there is no test_data_set_0");
}

static const char *bound_text(const Case *c)
{
    const char *text = "";
    for (int i = 0; i < c->bind_count; i++)
        text = arena_printf(c->arena, "%s%s%s", text, i ? ", " : "",
                            c->binds[i].name);
    return text;
}

/* Those that stayed open and were not bound after all. */
static const char *open_text(const Case *c)
{
    const char *text = "";
    for (int i = 0; i < c->open.count; i++)
        if (!is_bound(c, c->open.data[i]))
            text = arena_printf(c->arena, "%s%s%s", text, *text ? ", " : "",
                                c->open.data[i]);
    return text;
}

static void write_result(Case *c, const char *level)
{
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "op", c->op, "status",
        case_status_name(c->status), "level", level, "reason",
        str_text(&c->reason), "bound", bound_text(c), "open", open_text(c),
        "why_bound", str_text(&c->refused), "max_excess",
        isfinite(c->max_excess) ? json_real(c->max_excess) : json_null());
    /* Names of models may be in any encoding. */
    if (!row)
        row = json_pack("{s:s, s:s, s:s}", "op", c->op, "status",
                        case_status_name(c->status), "level", level);
    json_dump_file(row, arena_printf(c->arena, "%s/result.json", c->work),
                   JSON_COMPACT);
    json_decref(row);
}

typedef struct Job {
    const char *folder, *work;
    const ValidatePlan *plan;
} Job;

static int run_case(void *user)
{
    const Job *job = user;
    Case c = {.arena = arena_new(),
              .folder = job->folder,
              .work = job->work,
              .plan = job->plan,
              .op = ""};
    for (int level = 0; level < LEVEL_COUNT; level++) {
        if (!job->plan->levels[level])
            continue;
        if (!run_level(&c, (ValidateLevel)level)) {
            write_result(&c, level_names[level]);
            return EXIT_FAILED_CHECK;
        }
    }
    write_result(&c, "");
    return EXIT_FINE;
}

/* ---- here ------------------------------------------------------------- */

static const char *text_of(Arena *arena, const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? arena_strdup(arena, text) : "";
}

void validate_case(Arena *arena, const char *folder, const ValidatePlan *plan,
                   ValidateResult *r)
{
    *r = (ValidateResult){
        .op = "", .reason = "", .bound = "", .open = "", .why_bound = ""};
    char *work = make_temp_folder(arena);
    if (!work) {
        r->status = CASE_CRASHED;
        r->reason = "no temporary folder";
        return;
    }
    Job job = {folder, work, plan};
    Str text = {0};
    ProcessResult end;
    bool started = process_call(run_case, &job, &text, &plan->limits, &end);
    json_t *row =
        json_load_file(arena_printf(arena, "%s/result.json", work), 0, NULL);
    r->seconds = end.seconds;
    if (row &&
        (end.exit_code == EXIT_FINE || end.exit_code == EXIT_FAILED_CHECK)) {
        const char *level = text_of(arena, row, "level");
        r->op = text_of(arena, row, "op");
        r->status = case_status_parse(text_of(arena, row, "status"));
        r->level = *level ? level : NULL;
        r->reason = text_of(arena, row, "reason");
        r->bound = text_of(arena, row, "bound");
        r->open = text_of(arena, row, "open");
        r->why_bound = text_of(arena, row, "why_bound");
        r->max_excess = json_number_value(json_object_get(row, "max_excess"));
    } else {
        Str reason = {0};
        case_describe(&reason, &end, str_text(&text));
        r->status =
            started ? case_status_of(&end, str_text(&text)) : CASE_CRASHED;
        if (r->status == CASE_OK)
            r->status = CASE_CRASHED;
        r->reason = arena_strdup(arena, str_text(&reason));
        str_free(&reason);
    }
    json_decref(row);
    str_free(&text);
    remove_temp_folder(work);
}
