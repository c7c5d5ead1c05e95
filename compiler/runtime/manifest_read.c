/* Reads manifest.json with jansson. Every field is checked for presence and
 * type here, so that the loader can rely on them. The first fault is
 * reported: a manifest is written by the compiler, and one fault means that
 * it is damaged or of another version. */
#include "runtime/manifest.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AssayStatus error_set(AssayError *error, AssayStatus status,
                      const char *format, ...)
{
    error->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return status;
}

const char *status_text(AssayStatus status)
{
    static const char *const text[ASSAY_STATUS_COUNT] = {
        [ASSAY_OK] = "ok",
        [ASSAY_NO_ARTIFACT] = "no artifact",
        [ASSAY_BAD_MANIFEST] = "bad manifest",
        [ASSAY_WRONG_ABI] = "wrong ABI version",
        [ASSAY_WRONG_MACHINE] = "wrong machine",
        [ASSAY_MISSING_CPU] = "missing CPU feature",
        [ASSAY_DAMAGED] = "damaged file",
        [ASSAY_BAD_CODE] = "bad code",
        [ASSAY_NO_MEMORY] = "out of memory",
        [ASSAY_BAD_SHAPE] = "wrong shape",
    };
    return status >= 0 && status < ASSAY_STATUS_COUNT ? text[status] : "?";
}

/* Reading stops doing anything once `error` is set, so that the code below
 * lists fields instead of checking each. */
typedef struct Reader {
    const ArtifactInfo *info; /* for its dims */
    Arena *arena;
    const char *path;
    AssayError *error;
} Reader;

static void fault(Reader *r, const char *field, const char *what)
{
    if (r->error->status == ASSAY_OK)
        error_set(r->error, ASSAY_BAD_MANIFEST,
                  "%s: field \"%s\" %s; compile the model again", r->path,
                  field, what);
}

static const char *get_text(Reader *r, const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);
    if (!json_is_string(value)) {
        fault(r, field, "is missing or no string");
        return "";
    }
    return arena_strdup(r->arena, json_string_value(value));
}

static int64_t get_int(Reader *r, const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        fault(r, field, "is missing or no count");
        return 0;
    }
    return json_integer_value(value);
}

/* 64-bit hashes are hexadecimal text: JSON numbers are doubles to many
 * readers. */
static uint64_t get_hash(Reader *r, const json_t *object, const char *field)
{
    const char *text = get_text(r, object, field);
    char *end;
    uint64_t hash = strtoull(text, &end, 16);
    if (strlen(text) != 16 || *end)
        fault(r, field, "is not 16 hexadecimal digits");
    return hash;
}

static const json_t *get_list(Reader *r, const json_t *object,
                              const char *field, int *count)
{
    const json_t *value = json_object_get(object, field);
    *count = 0;
    if (!json_is_array(value)) {
        fault(r, field, "is missing or no list");
        return NULL;
    }
    *count = (int)json_array_size(value);
    return value;
}

static const char *const *get_texts(Reader *r, const json_t *object,
                                    const char *field)
{
    int count;
    const json_t *list = get_list(r, object, field, &count);
    const char **texts = ARENA_ARRAY(r->arena, const char *, count + 1);
    for (int i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        if (!json_is_string(item))
            fault(r, field, "holds something that is no string");
        texts[i] = json_is_string(item)
                       ? arena_strdup(r->arena, json_string_value(item))
                       : "";
    }
    return texts;
}

/* An expression of the manifest's names, with their bounds. */
static bool get_extent(Reader *r, const json_t *item, Extent *extent)
{
    const char *text = json_string_value(item);
    if (!text || !extent_parse(r->arena, &text, extent) || *text)
        return false;
    *extent =
        extent_rebind(r->arena, *extent, r->info->dims, r->info->dim_count);
    return !extent_is_const(*extent);
}

/* dtype, dims; returns the number of bytes of the row-major array. */
static int64_t get_type(Reader *r, const json_t *object, DType *dtype,
                        int *rank, int64_t *dims, const Extent **extents)
{
    Extent found[MAX_RANK];
    bool is_static = true;
    *dtype = dtype_parse(get_text(r, object, "dtype"));
    if (*dtype == DT_INVALID)
        fault(r, "dtype", "is no element type");
    int count;
    const json_t *list = get_list(r, object, "dims", &count);
    if (count > MAX_RANK) {
        fault(r, "dims", "has too many entries");
        count = 0;
    }
    *rank = count;
    int64_t bytes = *dtype == DT_INVALID ? 0 : (int64_t)dtype_size(*dtype);
    for (int i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        dims[i] = json_is_integer(item) ? json_integer_value(item) : -1;
        found[i] = extent_const(dims[i]);
        if (json_is_string(item) && get_extent(r, item, &found[i])) {
            dims[i] = found[i].value;
            is_static = false;
        }
        if (dims[i] < 0 || __builtin_mul_overflow(bytes, dims[i], &bytes)) {
            fault(r, "dims", "holds something that is no extent");
            dims[i] = bytes = 0;
        }
    }
    *extents =
        is_static ? NULL
                  : arena_copy(r->arena, found, (size_t)count * sizeof *found);
    return bytes;
}

static ManifestFile get_file(Reader *r, const json_t *files, const char *field)
{
    ManifestFile file = {0};
    const json_t *value = json_object_get(files, field);
    if (!json_is_object(value)) {
        fault(r, field, "is missing or no object");
        return file;
    }
    file.name = get_text(r, value, "name");
    /* The folder is the artifact: a name must not lead out of it. */
    if (strchr(file.name, '/') || !*file.name)
        fault(r, "name", "is no plain file name");
    file.bytes = get_int(r, value, "bytes");
    file.hash = get_hash(r, value, "xxh3");
    return file;
}

/* The list is there only where there is something in it. */
static void get_dims(Reader *r, const json_t *root, ArtifactInfo *info)
{
    if (!json_object_get(root, "dims"))
        return;
    const json_t *list = get_list(r, root, "dims", &info->dim_count);
    Extent *dims = ARENA_ARRAY(r->arena, Extent, info->dim_count + 1);
    if (info->dim_count > MAX_DIMS) {
        fault(r, "dims", "has too many entries");
        info->dim_count = 0;
    }
    for (int i = 0; i < info->dim_count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        const char *name = get_text(r, item, "name");
        int64_t lower = get_int(r, item, "lower");
        int64_t upper = get_int(r, item, "upper");
        if (upper < lower || !*name)
            fault(r, "dims", "holds bounds in the wrong order");
        dims[i] = extent_ranged(r->arena, name, lower, upper);
        bool computed = json_is_true(json_object_get(item, "computed"));
        if (!computed && info->input_dims < i)
            fault(r, "dims", "has computed ones before others");
        info->input_dims += !computed;
    }
    info->dims = dims;
    r->info = info;
}

static const ArtifactValue *get_values(Reader *r, const json_t *root,
                                       const char *field, int *count)
{
    const json_t *list = get_list(r, root, field, count);
    ArtifactValue *values = ARENA_ARRAY(r->arena, ArtifactValue, *count);
    for (int i = 0; i < *count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        ArtifactValue *v = &values[i];
        v->name = get_text(r, item, "name");
        v->bytes =
            get_type(r, item, &v->dtype, &v->rank, v->dims, &v->extents);
    }
    return values;
}

static void get_tensors(Reader *r, const json_t *root, ArtifactInfo *info)
{
    const json_t *list = get_list(r, root, "tensors", &info->tensor_count);
    ArtifactTensor *tensors =
        ARENA_ARRAY(r->arena, ArtifactTensor, info->tensor_count);
    for (int i = 0; i < info->tensor_count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        ArtifactTensor *t = &tensors[i];
        t->name = get_text(r, item, "name");
        t->sources = get_texts(r, item, "sources");
        get_type(r, item, &t->dtype, &t->rank, t->dims, &t->extents);
        const char *text = get_text(r, item, "layout");
        if (!layout_parse(&text, t->rank, &t->layout) || *text)
            fault(r, "layout", "is no layout");
        t->offset = get_int(r, item, "offset");
        t->bytes = get_int(r, item, "bytes");
        t->step = (int)get_int(r, item, "step");
        if (r->error->status != ASSAY_OK)
            return;
        /* What artifact_tap will read lies inside the arena. */
        int64_t need = layout_size(&t->layout, t->rank, t->dims) *
                       (int64_t)dtype_size(t->dtype);
        if (need > t->bytes || t->offset > info->arena_bytes - t->bytes)
            fault(r, "offset", "leads out of the arena");
        if (t->step >= info->step_count)
            fault(r, "step", "is past the last step");
    }
    info->tensors = tensors;
}

static double get_number(Reader *r, const json_t *item, const char *field)
{
    const json_t *value = json_object_get(item, field);
    if (!json_is_number(value))
        fault(r, field, "is missing or no number");
    return json_number_value(value);
}

static void get_steps(Reader *r, const json_t *root, ArtifactInfo *info)
{
    const json_t *list = get_list(r, root, "kernels", &info->kernel_count);
    ArtifactKernel *kernels =
        ARENA_ARRAY(r->arena, ArtifactKernel, info->kernel_count);
    for (int i = 0; i < info->kernel_count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        ArtifactKernel *k = &kernels[i];
        k->name = get_text(r, item, "name");
        k->loops_hash = get_hash(r, item, "loops_hash");
        k->code_hash = get_hash(r, item, "code_hash");
        k->code_bytes = get_int(r, item, "code_bytes");
        k->flops = get_number(r, item, "flops");
        k->bytes = get_number(r, item, "bytes");
    }
    info->kernels = kernels;

    list = get_list(r, root, "steps", &info->step_count);
    ArtifactStep *steps =
        ARENA_ARRAY(r->arena, ArtifactStep, info->step_count);
    for (int i = 0; i < info->step_count; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        int64_t kernel = get_int(r, item, "kernel");
        if (kernel >= info->kernel_count) {
            fault(r, "kernel", "is no kernel's number");
            return;
        }
        steps[i].kernel_index = (int)kernel;
        steps[i].kernel = kernels[kernel].name;
        steps[i].group = (int)get_number(r, item, "group");
        steps[i].nodes = get_texts(r, item, "nodes");
        /* For readers of profiles; older manifests have none. */
        steps[i].weight_bytes =
            json_number_value(json_object_get(item, "weight_bytes"));
    }
    info->steps = steps;
}

static AssayStatus read_fields(Reader *r, const json_t *root, Manifest *m)
{
    if (!json_is_object(root)) {
        fault(r, "(all)", "is no object");
        return r->error->status;
    }
    /* The version comes first: the rest may look different in another. */
    m->abi = (int)get_int(r, root, "abi");
    if (r->error->status != ASSAY_OK)
        return r->error->status;
    if (m->abi != ASSAY_ABI_VERSION)
        return error_set(r->error, ASSAY_WRONG_ABI,
                         "%s: ABI version %d, this runtime has %d; compile "
                         "the model again",
                         r->path, m->abi, ASSAY_ABI_VERSION);
    m->arch = get_text(r, root, "arch");
    m->cpu_flags = get_texts(r, root, "cpu_flags");
    const json_t *files = json_object_get(root, "files");
    m->code = get_file(r, files, "code");
    m->weights = get_file(r, files, "weights");
    ArtifactInfo *info = &m->info;
    info->model = get_text(r, root, "model");
    info->source = get_hash(r, root, "source");
    info->target = get_text(r, root, "target");
    info->taps = json_is_true(json_object_get(root, "taps"));
    info->arena_bytes = get_int(r, root, "arena_bytes");
    info->arena_bound = get_int(r, root, "arena_bound");
    info->weight_bytes = get_int(r, root, "weight_bytes");
    get_dims(r, root, info);
    info->inputs = get_values(r, root, "inputs", &info->input_count);
    info->outputs = get_values(r, root, "outputs", &info->output_count);
    if (r->error->status == ASSAY_OK)
        get_steps(r, root, info);
    if (r->error->status == ASSAY_OK)
        get_tensors(r, root, info);
    return r->error->status;
}

AssayStatus manifest_read(Arena *arena, const char *dir, Manifest *manifest,
                          AssayError *error)
{
    *manifest = (Manifest){0};
    *error = (AssayError){0};
    const char *path = arena_printf(arena, "%s/manifest.json", dir);
    FILE *file = fopen(path, "rb");
    if (!file)
        return error_set(error, ASSAY_NO_ARTIFACT, "%s: %s", path,
                         strerror(errno));
    json_error_t fault_at;
    json_t *root = json_loadf(file, 0, &fault_at);
    fclose(file);
    if (!root)
        return error_set(error, ASSAY_BAD_MANIFEST,
                         "%s:%d: %s; compile the model again", path,
                         fault_at.line, fault_at.text);
    Reader reader = {
        .info = &manifest->info, .arena = arena, .path = path, .error = error};
    AssayStatus status = read_fields(&reader, root, manifest);
    json_decref(root);
    return status;
}

Facts manifest_facts(const ArtifactInfo *info)
{
    Facts facts = {0};
    facts_add_number(&facts, FACT_ARENA_BYTES, info->arena_bytes);
    facts_add_number(&facts, FACT_WEIGHT_BYTES, info->weight_bytes);
    for (int i = 0; i < info->dim_count; i++)
        facts_add_dim(&facts, info->dims[i], i >= info->input_dims);
    for (int i = 0; i < info->input_count; i++) {
        const ArtifactValue *v = &info->inputs[i];
        facts_add_value(&facts, FACT_INPUTS, v->dtype, v->rank, v->dims,
                        v->extents);
    }
    for (int i = 0; i < info->output_count; i++) {
        const ArtifactValue *v = &info->outputs[i];
        facts_add_value(&facts, FACT_OUTPUTS, v->dtype, v->rank, v->dims,
                        v->extents);
    }
    for (int i = 0; i < info->step_count; i++)
        facts_add_number(&facts, FACT_STEPS, info->steps[i].kernel_index);
    for (int i = 0; i < info->tensor_count; i++) {
        const ArtifactTensor *t = &info->tensors[i];
        facts_add_tensor(&facts, t->dtype, t->rank, t->dims, t->extents,
                         &t->layout, t->offset, t->bytes, t->step);
    }
    return facts;
}

AssayStatus artifact_read_info(Arena *arena, const char *dir,
                               ArtifactInfo *info, AssayError *error)
{
    Manifest manifest;
    AssayStatus status = manifest_read(arena, dir, &manifest, error);
    *info = manifest.info;
    return status;
}
