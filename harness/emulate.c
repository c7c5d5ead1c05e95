#include "harness/emulate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/vec.h"
#include "harness/common.h"
#include "harness/npy.h"
#include "harness/runner.h"
#include "runtime/manifest.h"

typedef Vec(const char *) Words;

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

static bool write_raw(const char *path, const Array *array)
{
    FILE *file = fopen(path, "wb");
    size_t bytes = array_bytes(array);
    bool ok = file && fwrite(array->data, 1, bytes, file) == bytes;
    return file && fclose(file) == 0 && ok;
}

static bool read_raw(const char *path, Array *array)
{
    FILE *file = fopen(path, "rb");
    size_t bytes = array_bytes(array);
    bool ok = file && fread(array->data, 1, bytes, file) == bytes;
    if (file)
        fclose(file);
    return ok;
}

/* Each input as a raw file; adds the paths to argv. */
static bool stage_inputs(Arena *arena, const Launch *launch,
                         const ArtifactInfo *info, const char *work,
                         Words *argv, Str *failure)
{
    for (int i = 0; i < info->input_count; i++) {
        const ArtifactValue *v = &info->inputs[i];
        const char *file = NULL;
        size_t length = strlen(v->name);
        for (int k = 0; k < launch->input_count; k++)
            if (!strncmp(launch->inputs[k], v->name, length) &&
                launch->inputs[k][length] == '=')
                file = launch->inputs[k] + length + 1;
        if (!file) {
            str_addf(failure, "input \"%s\" has no file", v->name);
            return false;
        }
        Array *array = npy_read(arena, file, failure);
        if (!array)
            return false;
        if (array->dtype != v->dtype ||
            (int64_t)array_bytes(array) != v->bytes) {
            str_addf(failure, "%s: wrong type or size for input \"%s\"", file,
                     v->name);
            return false;
        }
        const char *raw = arena_printf(arena, "%s/in%d", work, i);
        if (!write_raw(raw, array)) {
            str_addf(failure, "cannot write %s", raw);
            return false;
        }
        vec_push(arena, argv, raw);
    }
    return true;
}

static bool collect_outputs(Arena *arena, const Launch *launch,
                            const ArtifactInfo *info, const char *work,
                            Str *failure)
{
    const char **names = runner_file_names(arena, info);
    if (!make_folders(launch->output)) {
        str_addf(failure, "--output %s: %s", launch->output, strerror(errno));
        return false;
    }
    for (int i = 0; i < info->output_count; i++) {
        const ArtifactValue *v = &info->outputs[i];
        Array *array = array_new(arena, v->dtype, v->rank, v->dims);
        if (!read_raw(arena_printf(arena, "%s/out%d", work, i), array)) {
            str_addf(failure, "output \"%s\" is missing", v->name);
            return false;
        }
        const char *path =
            arena_printf(arena, "%s/%s.npy", launch->output, names[i]);
        if (!npy_write(path, array, failure))
            return false;
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

static json_t *run_in(Arena *arena, const Target *target, const Launch *launch,
                      const char *work, int *code, Str *failure)
{
    ArtifactInfo info;
    AssayError error;
    if (artifact_read_info(arena, launch->artifact, &info, &error)) {
        str_add(failure, error.text);
        return NULL;
    }
    const char *program =
        link_bare(arena, target, launch->artifact, work, failure);
    if (!program)
        return NULL;
    Words argv = {0};
    vec_push(arena, &argv, target->emulator);
    vec_push(arena, &argv, program);
    vec_push(arena, &argv, facts_text(arena, &info));
    vec_push(arena, &argv,
             arena_printf(arena, "%s/weights.bin", launch->artifact));
    vec_push(arena, &argv,
             arena_printf(arena, "%lld", (long long)info.arena_bytes));
    vec_push(arena, &argv, arena_printf(arena, "%d", info.input_count));
    if (!stage_inputs(arena, launch, &info, work, &argv, failure))
        return NULL;
    for (int i = 0; i < info.output_count; i++) {
        vec_push(arena, &argv, arena_printf(arena, "%s/out%d", work, i));
        vec_push(
            arena, &argv,
            arena_printf(arena, "%lld", (long long)info.outputs[i].bytes));
    }
    vec_push(arena, &argv, NULL);
    json_t *report = run_json(argv.data, launch->timeout, code, failure);
    if (report && launch->output &&
        !collect_outputs(arena, launch, &info, work, failure)) {
        json_decref(report);
        return NULL;
    }
    return report;
}

json_t *emulate_runner(Arena *arena, const Target *target,
                       const Launch *launch, int *code, Str *failure)
{
    *code = -1;
    char *work = make_temp_folder(arena);
    if (!work) {
        str_addf(failure, "no temporary folder: %s", strerror(errno));
        return NULL;
    }
    json_t *report = run_in(arena, target, launch, work, code, failure);
    remove_temp_folder(work);
    return report;
}
