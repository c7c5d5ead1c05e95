#include "harness/runner.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "harness/inputs.h"
#include "harness/npy.h"

/* ---- inputs and outputs ----------------------------------------------- */

static void add_dims(Str *text, int rank, const int64_t *dims)
{
    str_add(text, "[");
    for (int i = 0; i < rank; i++)
        str_addf(text, "%s%lld", i ? "," : "", (long long)dims[i]);
    str_add(text, "]");
}

/* With the names of the dimensions that may differ. */
static void add_extents(Str *text, const ArtifactValue *v)
{
    if (!v->extents) {
        add_dims(text, v->rank, v->dims);
        return;
    }
    str_add(text, "[");
    for (int i = 0; i < v->rank; i++) {
        str_add(text, i ? "," : "");
        extent_print(text, v->extents[i]);
    }
    str_add(text, "]");
}

static bool mismatch(Runner *r, const char *path, const ArtifactValue *want,
                     const Array *have)
{
    str_addf(r->error, "%s: %s", path, dtype_name(have->dtype));
    add_dims(r->error, have->rank, have->dims);
    str_addf(r->error, " given for input \"%s\", which is %s", want->name,
             dtype_name(want->dtype));
    add_extents(r->error, want);
    str_add(r->error, "\n");
    return false;
}

static bool is_chosen(const ArtifactValue *v, int axis)
{
    return v->extents && !extent_is_const(v->extents[axis]);
}

/* An array of the input's shape, or several of them along axis 0. */
static bool read_input(Runner *r, int index, const char *path)
{
    const ArtifactValue *want = &r->info->inputs[index];
    Array *array = npy_read(r->arena, path, r->error);
    if (!array)
        return false;
    if (array->dtype != want->dtype || array->rank != want->rank)
        return mismatch(r, path, want, array);
    for (int i = 1; i < want->rank; i++)
        if (array->dims[i] != want->dims[i] && !is_chosen(want, i))
            return mismatch(r, path, want, array);
    int64_t chunks = 1;
    if (want->rank && want->dims[0] && array->dims[0] != want->dims[0] &&
        !is_chosen(want, 0)) {
        if (!array->dims[0] || array->dims[0] % want->dims[0])
            return mismatch(r, path, want, array);
        chunks = array->dims[0] / want->dims[0];
    }
    if (r->chunks && r->chunks != chunks) {
        str_addf(r->error, "%s: holds %lld batches, another input %lld\n",
                 path, (long long)chunks, (long long)r->chunks);
        return false;
    }
    r->chunks = chunks;
    r->inputs[index] = array;
    return true;
}

static bool assign_input(Runner *r, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    size_t length = equals ? (size_t)(equals - assignment) : 0;
    for (int i = 0; equals && i < r->info->input_count; i++) {
        const char *name = r->info->inputs[i].name;
        if (strlen(name) != length || strncmp(name, assignment, length))
            continue;
        if (!r->inputs[i])
            return read_input(r, i, equals + 1);
        str_addf(r->error, "--input %s: the input has a file already\n",
                 assignment);
        return false;
    }
    str_addf(r->error,
             "--input %s: there is no such input; use NAME=FILE "
             "with a name of:",
             assignment);
    for (int i = 0; i < r->info->input_count; i++)
        str_addf(r->error, " %s", r->info->inputs[i].name);
    str_add(r->error, "\n");
    return false;
}

/* A model may be larger than the machine it is run on. */
static Array *make_array(Runner *r, const char *kind, const ArtifactValue *v,
                         const int64_t *dims)
{
    Array *array = array_try_new(r->arena, v->dtype, v->rank, dims);
    if (array)
        return array;
    str_addf(r->error, "no memory for %s \"%s\", which is %s", kind, v->name,
             dtype_name(v->dtype));
    add_dims(r->error, v->rank, dims);
    str_add(r->error, "\n");
    return NULL;
}

static void start_dims(Runner *r)
{
    const ArtifactInfo *info = r->info;
    if (r->dims)
        return;
    r->dims = ARENA_ARRAY(r->arena, int64_t, info->dim_count + 1);
    for (int i = 0; i < info->dim_count; i++)
        r->dims[i] = info->dims[i].value;
}

static bool set_dim(Runner *r, const char *assignment)
{
    const ArtifactInfo *info = r->info;
    const char *equals = strchr(assignment, '=');
    size_t length = equals ? (size_t)(equals - assignment) : 0;
    char *end = NULL;
    for (int i = 0; equals && i < info->input_dims; i++) {
        const char *name = info->dims[i].expr->name;
        if (strlen(name) != length || strncmp(name, assignment, length))
            continue;
        errno = 0;
        r->dims[i] = strtoll(equals + 1, &end, 10);
        if (end != equals + 1 && !*end && !errno)
            return true;
        break;
    }
    str_addf(r->error, "--dim %s: give NAME=VALUE with one of:", assignment);
    for (int i = 0; i < info->dim_count; i++) {
        str_add(r->error, " ");
        extent_print(r->error, info->dims[i]);
    }
    str_add(r->error, info->dim_count ? "\n"
                                      : " (the extents of this artifact are "
                                        "fixed)\n");
    return false;
}

bool runner_set_dims(Runner *r, const char *const *assignments, int count)
{
    start_dims(r);
    for (int i = 0; i < count; i++)
        if (!set_dim(r, assignments[i]))
            return false;
    return true;
}

/* From the arrays that were given, and for the artifact. */
static bool find_dims(Runner *r)
{
    const ArtifactInfo *info = r->info;
    const int64_t **shapes =
        ARENA_ARRAY(r->arena, const int64_t *, info->input_count + 1);
    AssayError error;
    for (int i = 0; i < info->input_count; i++)
        shapes[i] = r->inputs[i] ? r->inputs[i]->dims : NULL;
    if (artifact_find_dims(info, shapes, r->dims, &error) == ASSAY_OK &&
        (!r->artifact ||
         artifact_set_dims(r->artifact, r->dims, &error) == ASSAY_OK))
        return true;
    str_addf(r->error, "%s\n", error.text);
    return false;
}

void runner_dims(const Runner *r, const ArtifactValue *v, int64_t *dims)
{
    artifact_extents(r->info, r->dims, v->rank, v->dims, v->extents, dims);
}

static bool is_computed(const ArtifactInfo *info)
{
    return info->input_dims < info->dim_count;
}

bool runner_set_inputs(Runner *r, const char *const *assignments, int count,
                       uint64_t seed)
{
    const ArtifactInfo *info = r->info;
    r->inputs = ARENA_ARRAY(r->arena, Array *, info->input_count);
    r->outputs = ARENA_ARRAY(r->arena, Array *, info->output_count);
    r->in = ARENA_ARRAY(r->arena, const void *, info->input_count);
    r->out = ARENA_ARRAY(r->arena, void *, info->output_count);
    start_dims(r);
    for (int i = 0; i < count; i++)
        if (!assign_input(r, assignments[i]))
            return false;
    if (!find_dims(r))
        return false;
    if (!r->chunks)
        r->chunks = 1;
    if (r->chunks > 1 && is_computed(info)) {
        str_add(r->error, "how large outputs are depends on the data: give "
                          "one batch at a time\n");
        return false;
    }
    for (int i = 0; i < info->input_count; i++) {
        const ArtifactValue *v = &info->inputs[i];
        if (r->inputs[i])
            continue;
        int64_t dims[MAX_RANK];
        runner_dims(r, v, dims);
        r->inputs[i] = make_array(r, "input", v, dims);
        if (!r->inputs[i])
            return false;
        inputs_fill(r->inputs[i], seed, i, NULL);
        inputs_bound(r->inputs[i], v->name, info->dims, info->dim_count);
        if (r->chunks > 1) {
            str_addf(r->error,
                     "input \"%s\": give a file for each input "
                     "when one holds several batches\n",
                     v->name);
            return false;
        }
    }
    for (int i = 0; i < info->output_count; i++) {
        const ArtifactValue *v = &info->outputs[i];
        int64_t dims[MAX_RANK];
        runner_dims(r, v, dims);
        /* Room for whatever the run computes: fewer of one dimension may be
         * more of another. */
        if (is_computed(info))
            memcpy(dims, v->dims, sizeof dims);
        if (r->chunks > 1 && v->rank == 0) {
            str_addf(r->error, "output \"%s\" is a scalar: one batch only\n",
                     v->name);
            return false;
        }
        if (v->rank)
            dims[0] *= r->chunks;
        r->outputs[i] = make_array(r, "output", v, dims);
        if (!r->outputs[i])
            return false;
    }
    return true;
}

/* ---- running ---------------------------------------------------------- */

/* Bytes of one of the runs that an array is for. */
static int64_t chunk_bytes(const Runner *r, const Array *array)
{
    return (int64_t)array_bytes(array) / r->chunks;
}

static void run_chunk(Runner *r, int64_t chunk)
{
    for (int i = 0; i < r->info->input_count; i++)
        r->in[i] = (const char *)r->inputs[i]->data +
                   chunk * chunk_bytes(r, r->inputs[i]);
    for (int i = 0; i < r->info->output_count; i++)
        r->out[i] = (char *)r->outputs[i]->data +
                    chunk * chunk_bytes(r, r->outputs[i]);
    artifact_run(r->artifact, r->in, r->out);
    /* Now it is known how many there are. */
    for (int i = 0; is_computed(r->info) && i < r->info->output_count; i++)
        artifact_dims(r->artifact, &r->info->outputs[i], r->outputs[i]->dims);
}

void runner_run(Runner *r)
{
    for (int64_t chunk = 0; chunk < r->chunks; chunk++)
        run_chunk(r, chunk);
}

bool runner_outcome(Runner *r)
{
    AssayError error;
    if (artifact_outcome(r->artifact, &error) == ASSAY_OK)
        return true;
    str_addf(r->error, "%s\n", error.text);
    return false;
}

void runner_run_first(void *runner)
{
    run_chunk(runner, 0);
}

static uint64_t hash_arrays(Array *const *arrays, int count)
{
    uint64_t hash = 0;
    for (int i = 0; i < count; i++)
        hash = hash_bytes(arrays[i]->data, array_bytes(arrays[i]), hash);
    return hash;
}

bool runner_check_twice(Runner *r, json_t *report)
{
    uint64_t inputs = hash_arrays(r->inputs, r->info->input_count);
    runner_run(r);
    uint64_t first = hash_arrays(r->outputs, r->info->output_count);
    for (int i = 0; i < r->info->output_count; i++)
        memset(r->outputs[i]->data, 0xa5, array_bytes(r->outputs[i]));
    artifact_fill_arena(r->artifact, 0xff);
    runner_run(r);
    bool same = first == hash_arrays(r->outputs, r->info->output_count);
    bool untouched = inputs == hash_arrays(r->inputs, r->info->input_count);
    json_object_set_new(report, "repeat_identical", json_boolean(same));
    json_object_set_new(report, "inputs_untouched", json_boolean(untouched));
    return same && untouched;
}

/* ---- outputs ---------------------------------------------------------- */

/* Room for ".N.npy" and a temporary suffix in the 255 bytes of a file
 * system's names. */
enum { NAME_BYTES = 200 };

static char *plain_name(Arena *arena, const char *name)
{
    size_t length = strlen(name);
    if (length > NAME_BYTES) {
        length = NAME_BYTES;
        /* Not in the middle of a UTF-8 character. */
        while (length && ((unsigned char)name[length] & 0xc0) == 0x80)
            length--;
    }
    char *file =
        length ? arena_strndup(arena, name, length) : arena_strdup(arena, "_");
    for (char *c = file; *c; c++)
        if ((unsigned char)*c < 0x80 && !isalnum((unsigned char)*c) &&
            !strchr("._-", *c))
            *c = '_';
    if (*file == '.')
        *file = '_';
    return file;
}

static bool is_taken(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcasecmp(names[i], name))
            return true;
    return false;
}

const char **runner_file_names(Arena *arena, const ArtifactInfo *info)
{
    const char **names =
        ARENA_ARRAY(arena, const char *, info->output_count + 1);
    for (int i = 0; i < info->output_count; i++) {
        const char *plain = plain_name(arena, info->outputs[i].name);
        names[i] = plain;
        for (int n = 2; is_taken(names, i, names[i]); n++)
            names[i] = arena_printf(arena, "%s.%d", plain, n);
    }
    return names;
}

bool runner_write_outputs(Runner *r, const char *dir)
{
    const char **names = runner_file_names(r->arena, r->info);
    for (int i = 0; i < r->info->output_count; i++) {
        const char *path = arena_printf(r->arena, "%s/%s.npy", dir, names[i]);
        if (!npy_write(path, r->outputs[i], r->error))
            return false;
    }
    return true;
}

void runner_report_outputs(Runner *r, json_t *report)
{
    json_t *list = json_array();
    for (int i = 0; i < r->info->output_count; i++) {
        char text[17];
        snprintf(text, sizeof text, "%016llx",
                 (unsigned long long)hash_bytes(
                     r->outputs[i]->data, array_bytes(r->outputs[i]), 0));
        json_array_append_new(list, json_pack("{s:s, s:s}", "name",
                                              r->info->outputs[i].name, "xxh3",
                                              text));
    }
    json_object_set_new(report, "outputs", list);
}

/* ---- taps ------------------------------------------------------------- */

typedef struct TapRun {
    Runner *runner;
    const char *dir;
    bool ok;
} TapRun;

/* A tensor is written out as soon as its step is done: later steps may
 * reuse its storage. */
static void tap_step(void *user, int32_t step, int32_t is_end)
{
    TapRun *run = user;
    Runner *r = run->runner;
    for (int i = 0; is_end && run->ok && i < r->info->tensor_count; i++) {
        const ArtifactTensor *t = &r->info->tensors[i];
        if (t->step != step)
            continue;
        Arena *arena = arena_new();
        int64_t dims[MAX_RANK];
        ArtifactValue v = {.rank = t->rank, .extents = t->extents};
        memcpy(v.dims, t->dims, sizeof v.dims);
        artifact_dims(r->artifact, &v, dims);
        Array *array = array_try_new(arena, t->dtype, t->rank, dims);
        if (!array) {
            str_addf(r->error, "no memory to write tensor \"%s\"\n", t->name);
            run->ok = false;
            arena_free(arena);
            break;
        }
        artifact_tap(r->artifact, t, array);
        const char *path =
            arena_printf(arena, "%s/tensor_%04d.npy", run->dir, i);
        run->ok = npy_write(path, array, r->error);
        arena_free(arena);
    }
}

bool runner_write_taps(Runner *r, const char *dir)
{
    TapRun run = {r, dir, true};
    artifact_on_step(r->artifact, tap_step, &run);
    run_chunk(r, 0);
    artifact_on_step(r->artifact, NULL, NULL);
    return run.ok;
}
