#include "harness/emulate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/vec.h"
#include "harness/common.h"
#include "harness/runner.h"
#include "runtime/dims.h"
#include "runtime/manifest.h"

const Target *emulated_target(Arena *arena, const char *artifact)
{
    ArtifactInfo info;
    AssayError error;
    if (artifact_read_info(arena, artifact, &info, &error) != ASSAY_OK)
        return NULL; /* the loader will say what is wrong */
    const Target *target =
        target_find(arena, diag_new(arena, NULL), info.target);
    return target && target->run == RUN_EMULATED ? target : NULL;
}

/* Links artifact and bare runner to WORK/model. */
static const char *link_bare(Arena *arena, const Target *target,
                             const char *artifact, const char *work,
                             Str *failure)
{
    const char *source = arena_printf(arena, "%s/compiler/runtime/bare.c",
                                      project_folder(arena));
    const char *include =
        arena_printf(arena, "-I%s/compiler", project_folder(arena));
    const char *program = arena_printf(arena, "%s/model", work);
    /* Static: the emulator finds no libraries of the target. The kernels are
     * compiled already, so -O1 is enough for the rest. */
    const char *const argv[] = {target->cc,
                                "-std=c17",
                                "-O1",
                                "-static",
                                include,
                                source,
                                arena_printf(arena, "%s/model.a", artifact),
                                "-o",
                                program,
                                NULL};
    return process_ok(argv, failure) ? program : NULL;
}

static bool write_raw(const char *path, const void *data, int64_t bytes)
{
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(data, 1, (size_t)bytes, file) == (size_t)bytes;
    return file && fclose(file) == 0 && ok;
}

static bool read_raw(const char *path, void *data, int64_t bytes)
{
    FILE *file = fopen(path, "rb");
    bool ok = file && fread(data, 1, (size_t)bytes, file) == (size_t)bytes;
    if (file)
        fclose(file);
    return ok;
}

/* Where the array of one batch starts. */
static char *batch(const Runner *r, const Array *array, int64_t chunk)
{
    return (char *)array->data +
           chunk * ((int64_t)array_bytes(array) / r->chunks);
}

/* One batch's inputs as raw files, as the kernels see them. */
static bool write_inputs(Runner *r, const char *work, int64_t chunk)
{
    for (int i = 0; i < r->info->input_count; i++) {
        const ArtifactValue *v = &r->info->inputs[i];
        const char *raw = arena_printf(r->arena, "%s/in%d", work, i);
        char *data = batch(r, r->inputs[i], chunk);
        Arena *scratch = arena_new();
        if (v->extents) {
            int64_t dims[MAX_RANK];
            void *storage = arena_alloc(scratch, (size_t)v->bytes + 1);
            runner_dims(r, v, dims);
            dims_spread(v->rank, v->dims, dims, dtype_size(v->dtype), data,
                        storage);
            data = storage;
        }
        bool ok = write_raw(raw, data, v->bytes);
        arena_free(scratch);
        if (!ok) {
            str_addf(r->error, "cannot write %s: %s", raw, strerror(errno));
            return false;
        }
    }
    return true;
}

static bool read_outputs(Runner *r, const char *work, int64_t chunk)
{
    for (int i = 0; i < r->info->output_count; i++) {
        const ArtifactValue *v = &r->info->outputs[i];
        const char *raw = arena_printf(r->arena, "%s/out%d", work, i);
        char *data = batch(r, r->outputs[i], chunk);
        Arena *scratch = arena_new();
        char *storage =
            v->extents ? arena_alloc(scratch, (size_t)v->bytes + 1) : data;
        bool ok = read_raw(raw, storage, v->bytes);
        if (ok && v->extents) {
            int64_t dims[MAX_RANK];
            runner_dims(r, v, dims);
            dims_gather(v->rank, v->dims, dims, dtype_size(v->dtype), storage,
                        data);
        }
        arena_free(scratch);
        if (!ok) {
            str_addf(r->error, "output \"%s\" is missing", v->name);
            return false;
        }
    }
    return true;
}

/* As runtime/bare.c compares them. */
static const char *facts_text(Arena *arena, const ArtifactInfo *info)
{
    Facts facts = manifest_facts(info);
    const char *text = "";
    for (int i = 0; i < FACT_COUNT; i++)
        text = arena_printf(arena, "%s%016llx", text,
                            (unsigned long long)facts.item[i]);
    return text;
}

/* The command line of one run, as runtime/bare.c takes it. */
static void add_arguments(Arena *arena, Words *argv, const Target *target,
                          const char *program, const char *artifact,
                          const Runner *r, const char *work)
{
    const ArtifactInfo *info = r->info;
    vec_push(arena, argv, target->emulator);
    vec_push(arena, argv, program);
    vec_push(arena, argv, facts_text(arena, info));
    vec_push(arena, argv, arena_printf(arena, "%s/weights.bin", artifact));
    vec_push(arena, argv,
             arena_printf(arena, "%lld", (long long)info->arena_bytes));
    const char *dims = "";
    for (int i = 0; i < info->dim_count; i++)
        dims = arena_printf(arena, "%s%s%lld", dims, i ? "," : "",
                            (long long)r->dims[i]);
    vec_push(arena, argv, dims);
    vec_push(arena, argv, arena_printf(arena, "%d", info->input_count));
    for (int i = 0; i < info->input_count; i++)
        vec_push(arena, argv, arena_printf(arena, "%s/in%d", work, i));
    for (int i = 0; i < info->output_count; i++) {
        vec_push(arena, argv, arena_printf(arena, "%s/out%d", work, i));
        vec_push(
            arena, argv,
            arena_printf(arena, "%lld", (long long)info->outputs[i].bytes));
    }
    vec_push(arena, argv, NULL);
}

/* What the run computed, for its outputs; false when it had a number that it
 * cannot have. */
static bool take_extents(Runner *r, const json_t *report)
{
    const json_t *list = json_object_get(report, "extents");
    size_t last = (size_t)r->info->dim_count;
    AssayError error;
    if (dims_outcome(r->info, json_integer_value(json_array_get(list, last)),
                     &error)) {
        str_addf(r->error, "%s\n", error.text);
        return false;
    }
    for (int i = r->info->input_dims; i < r->info->dim_count; i++)
        r->dims[i] = json_integer_value(json_array_get(list, (size_t)i));
    for (int i = 0; i < r->info->output_count; i++)
        if (r->info->input_dims < r->info->dim_count)
            runner_dims(r, &r->info->outputs[i], r->outputs[i]->dims);
    return true;
}

/* Batches run one after the other, as assay-run does it. The report is that
 * of the last, or of the one that failed its check. */
static json_t *run_batches(Runner *r, const Launch *launch,
                           const char *const *argv, const char *work,
                           ChildEnd *end)
{
    json_t *report = NULL;
    for (int64_t chunk = 0; chunk < r->chunks; chunk++) {
        json_decref(report);
        report = write_inputs(r, work, chunk)
                     ? child_json(argv, &launch->limits, end, r->error)
                     : NULL;
        if (report &&
            (!take_extents(r, report) || !read_outputs(r, work, chunk))) {
            json_decref(report);
            report = NULL;
        }
        if (!report || end->exit_code)
            break;
    }
    return report;
}

static json_t *run_in(Arena *arena, const Target *target, const Launch *launch,
                      const char *work, ChildEnd *end, Str *failure)
{
    ArtifactInfo info;
    AssayError error;
    if (artifact_read_info(arena, launch->artifact, &info, &error)) {
        str_add(failure, error.text);
        return NULL;
    }
    Runner r = {.arena = arena, .info = &info, .error = failure};
    if (!runner_set_inputs(&r, launch->inputs, launch->input_count, 1))
        return NULL;
    const char *program =
        link_bare(arena, target, launch->artifact, work, failure);
    if (!program)
        return NULL;
    Words argv = {0};
    add_arguments(arena, &argv, target, program, launch->artifact, &r, work);
    json_t *report = run_batches(&r, launch, argv.data, work, end);
    if (!report || !launch->output)
        return report;
    bool made = make_folders(launch->output);
    if (!made)
        str_addf(failure, "--output %s: %s", launch->output, strerror(errno));
    if (made && runner_write_outputs(&r, launch->output))
        return report;
    json_decref(report);
    return NULL;
}

json_t *emulate_runner(Arena *arena, const Target *target,
                       const Launch *launch, ChildEnd *end, Str *failure)
{
    *end = (ChildEnd){CASE_CRASHED, -1, 0};
    char *work = make_temp_folder(arena);
    if (!work) {
        str_addf(failure, "no temporary folder: %s", strerror(errno));
        return NULL;
    }
    json_t *report = run_in(arena, target, launch, work, end, failure);
    remove_temp_folder(work);
    return report;
}
