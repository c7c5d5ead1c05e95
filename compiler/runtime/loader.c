/* The loader: checks an artifact, brings its weights into memory, allocates
 * its arena and opens its code. After artifact_load nothing is allocated any
 * more. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "runtime/dims.h"
#include "runtime/manifest.h"
#include "runtime/pool.h"
#include "targets/cpu.h"

enum { HUGE_PAGE = 2 << 20 };

typedef struct Mapping {
    void *data; /* NULL: empty */
    size_t size;
} Mapping;

struct Artifact {
    Arena *memory; /* the manifest's contents */
    Manifest manifest;
    Mapping weights;
    Mapping arena_map; /* what was mapped; the arena is aligned inside it */
    void *code;
    AssayModelRun run;
    AssayRun call;
    /* Where a value has extents that a run chooses: storage for the kernels
     * to see, NULL for others; and the pointers of one run. */
    void **staged_in, **staged_out, **in, **out;
    Pool *pool;
    bool owns_pool;
};

/* ---- checks ----------------------------------------------------------- */

static AssayStatus check_machine(const Manifest *m, const char *dir,
                                 AssayError *error)
{
    if (strcmp(m->arch, cpu_architecture()))
        return error_set(error, ASSAY_WRONG_MACHINE,
                         "%s: compiled for %s, this machine is %s; compile "
                         "with another --target",
                         dir, m->arch, cpu_architecture());
    Str missing = {0};
    for (int i = 0; m->cpu_flags[i]; i++)
        if (!cpu_has_flag(m->cpu_flags[i]))
            str_addf(&missing, " %s", m->cpu_flags[i]);
    if (missing.length)
        error_set(error, ASSAY_MISSING_CPU,
                  "%s: compiled for target %s; this processor lacks:%s; "
                  "compile with another --target",
                  dir, m->info.target, str_text(&missing));
    str_free(&missing);
    return error->status;
}

/* Opens a file of the artifact that has the right size; -1 with an error. */
static int open_file(const char *path, const ManifestFile *file,
                     AssayError *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info)) {
        error_set(error, ASSAY_NO_ARTIFACT, "%s: %s", path, strerror(errno));
    } else if (info.st_size != file->bytes) {
        error_set(error, ASSAY_DAMAGED,
                  "%s: %lld bytes instead of %lld; compile the model again",
                  path, (long long)info.st_size, (long long)file->bytes);
    } else {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The bytes that `file` is said to have. */
static AssayStatus check_sum(const char *path, const ManifestFile *file,
                             const void *data, AssayError *error)
{
    if (hash_bytes(data ? data : "", (size_t)file->bytes, 0) == file->hash)
        return ASSAY_OK;
    return error_set(error, ASSAY_DAMAGED,
                     "%s: its checksum is wrong; compile the model again",
                     path);
}

/* Maps a file of the artifact read-only once its size and checksum are
 * right. The checksum also brings its pages into memory. */
static AssayStatus map_file(const char *path, const ManifestFile *file,
                            bool skip_checksum, Mapping *mapping,
                            AssayError *error)
{
    *mapping = (Mapping){0};
    int fd = open_file(path, file, error);
    if (fd < 0)
        return error->status;
    mapping->size = (size_t)file->bytes;
    if (mapping->size)
        mapping->data =
            mmap(NULL, mapping->size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (mapping->data == MAP_FAILED) {
        *mapping = (Mapping){0};
        return error_set(error, ASSAY_NO_MEMORY, "%s: cannot map: %s", path,
                         strerror(errno));
    }
    return skip_checksum ? ASSAY_OK
                         : check_sum(path, file, mapping->data, error);
}

static void unmap(Mapping *mapping)
{
    if (mapping->data)
        munmap(mapping->data, mapping->size);
    *mapping = (Mapping){0};
}

/* Memory of the process at a multiple of `align`, zero; NULL when there is
 * none. In huge pages where `align` says so and the system has them. */
static char *map_memory(size_t bytes, size_t align, Mapping *mapping)
{
    size_t size = (bytes + align - 1) / align * align + align;
    char *data = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    *mapping = (Mapping){data, size};
    char *start =
        (char *)(((uintptr_t)data + align - 1) & ~((uintptr_t)align - 1));
    if (align == HUGE_PAGE)
        madvise(start, size - align, MADV_HUGEPAGE);
    return start;
}

static bool read_whole(int fd, char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t got = read(fd, data, bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        data += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* False where the system has none, or none to be had by asking. */
static bool has_huge_pages(void)
{
    char text[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (!file)
        return false;
    bool known = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    return known && !strstr(text, "[never]");
}

/* Weights that no cache holds are read into huge pages: from small ones a
 * core gets a third of the bandwidth, as prefetchers stop at the end of a page
 * and each new one costs a walk of the page table. What runs through them in
 * one go is most of the time of a layer with few pixels. Others are mapped,
 * and so shared by all processes that run them. */
static AssayStatus load_weights(Artifact *a, const char *path,
                                const ManifestFile *file,
                                const LoadOptions *options, AssayError *error)
{
    size_t bytes = (size_t)file->bytes;
    if (bytes < HUGE_PAGE || !has_huge_pages()) {
        AssayStatus status =
            map_file(path, file, options->skip_checksums, &a->weights, error);
        a->call.weights = a->weights.data;
        return status;
    }
    int fd = open_file(path, file, error);
    if (fd < 0)
        return error->status;
    char *data = map_memory(bytes, HUGE_PAGE, &a->weights);
    bool complete = data && read_whole(fd, data, bytes);
    if (!data)
        error_set(error, ASSAY_NO_MEMORY, "no memory for weights of %zu bytes",
                  bytes);
    else if (!complete)
        error_set(error, ASSAY_NO_ARTIFACT, "%s: cannot be read: %s", path,
                  strerror(errno));
    close(fd);
    if (!complete)
        return error->status;
    a->call.weights = data;
    if (!options->skip_checksums)
        check_sum(path, file, data, error);
    mprotect(a->weights.data, a->weights.size, PROT_READ);
    return error->status;
}

/* ---- loading ---------------------------------------------------------- */

/* Kernels address buffers by what they were compiled for; the manifest only
 * repeats it. */
static AssayStatus check_facts(const Manifest *manifest, const char *dir,
                               const uint64_t *wanted, AssayError *error)
{
    Facts facts = manifest_facts(&manifest->info);
    for (int i = 0; i < FACT_COUNT; i++)
        if (facts.item[i] != wanted[i])
            return error_set(error, ASSAY_DAMAGED,
                             "%s/manifest.json: field \"%s\" is not what %s "
                             "was compiled for; compile the model again",
                             dir, fact_name((Fact)i), manifest->code.name);
    return ASSAY_OK;
}

static AssayStatus load_code(Artifact *a, const char *dir,
                             const LoadOptions *options, AssayError *error)
{
    const ManifestFile *file = &a->manifest.code;
    const char *path = arena_printf(a->memory, "%s/%s", dir, file->name);
    Mapping mapping;
    AssayStatus status =
        map_file(path, file, options->skip_checksums, &mapping, error);
    unmap(&mapping);
    if (status != ASSAY_OK)
        return status;
    a->code = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!a->code)
        return error_set(error, ASSAY_BAD_CODE, "%s: %s", path, dlerror());
    void *run = dlsym(a->code, "assay_model_run");
    const int32_t *abi = dlsym(a->code, "assay_model_abi");
    const uint64_t *facts = dlsym(a->code, "assay_model_facts");
    if (!run || !abi)
        return error_set(error, ASSAY_BAD_CODE,
                         "%s: has no assay_model_run or assay_model_abi",
                         path);
    if (*abi != ASSAY_ABI_VERSION)
        return error_set(error, ASSAY_WRONG_ABI,
                         "%s: ABI version %d, this runtime has %d; compile "
                         "the model again",
                         path, (int)*abi, ASSAY_ABI_VERSION);
    if (!facts)
        return error_set(error, ASSAY_BAD_CODE, "%s: has no assay_model_facts",
                         path);
    status = check_facts(&a->manifest, dir, facts, error);
    if (status != ASSAY_OK)
        return status;
    /* ISO C has no conversion between the two kinds of pointers. */
    memcpy(&a->run, &run, sizeof run);
    return ASSAY_OK;
}

static AssayStatus allocate_arena(Artifact *a, AssayError *error)
{
    size_t bytes = (size_t)a->manifest.info.arena_bytes;
    /* Whole huge pages where there is enough to fill some: fewer TLB
     * misses, and no page faults during the first run. */
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : 4096;
    a->call.arena = map_memory(bytes, align, &a->arena_map);
    if (!a->call.arena)
        return error_set(error, ASSAY_NO_MEMORY,
                         "no memory for an arena of %zu bytes", bytes);
    memset(a->call.arena, 0, bytes);
    return ASSAY_OK;
}

/* Storage for what the kernels see; zeroed, as it is read nowhere else. */
static bool stage(Artifact *a, const ArtifactValue *values, int count,
                  void ***staged, void ***pointers)
{
    *staged = ARENA_ARRAY(a->memory, void *, count + 1);
    *pointers = ARENA_ARRAY(a->memory, void *, count + 1);
    for (int i = 0; i < count; i++) {
        size_t bytes = (size_t)values[i].bytes;
        if (!values[i].extents)
            continue;
        void *data = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
        if (!data)
            return false;
        memset(data, 0, bytes);
        (*staged)[i] = data;
    }
    return true;
}

static AssayStatus prepare_dims(Artifact *a, AssayError *error)
{
    const ArtifactInfo *info = &a->manifest.info;
    if (!info->dim_count)
        return ASSAY_OK;
    a->call.extents = ARENA_ARRAY(a->memory, int64_t, info->dim_count + 1);
    for (int i = 0; i < info->dim_count; i++)
        a->call.extents[i] = info->dims[i].value;
    if (!stage(a, info->inputs, info->input_count, &a->staged_in, &a->in) ||
        !stage(a, info->outputs, info->output_count, &a->staged_out, &a->out))
        return error_set(error, ASSAY_NO_MEMORY,
                         "no memory for the inputs and outputs of the "
                         "largest dimensions");
    return ASSAY_OK;
}

static AssayStatus load(Artifact *a, const char *dir,
                        const LoadOptions *options, AssayError *error)
{
    AssayStatus status = manifest_read(a->memory, dir, &a->manifest, error);
    if (status != ASSAY_OK)
        return status;
    status = check_machine(&a->manifest, dir, error);
    if (status != ASSAY_OK)
        return status;
    const ManifestFile *weights = &a->manifest.weights;
    const char *path = arena_printf(a->memory, "%s/%s", dir, weights->name);
    status = load_weights(a, path, weights, options, error);
    if (status != ASSAY_OK)
        return status;
    if (weights->bytes < a->manifest.info.weight_bytes)
        return error_set(error, ASSAY_BAD_MANIFEST,
                         "%s: shorter than weight_bytes says", path);
    status = load_code(a, dir, options, error);
    if (status == ASSAY_OK)
        status = allocate_arena(a, error);
    if (status == ASSAY_OK)
        status = prepare_dims(a, error);
    if (status != ASSAY_OK)
        return status;
    a->owns_pool = !options->pool;
    a->pool = options->pool ? options->pool : pool_new(options->threads);
    if (!a->pool)
        return error_set(error, ASSAY_NO_MEMORY, "cannot start %d threads",
                         options->threads);
    a->call.pool = a->pool;
    a->call.parallel_for = pool_parallel_for;
    return ASSAY_OK;
}

AssayStatus artifact_load(const char *dir, const LoadOptions *options,
                          Artifact **artifact, AssayError *error)
{
    static const LoadOptions defaults = {0};
    *artifact = NULL;
    *error = (AssayError){0};
    Arena *memory = arena_new();
    Artifact *a = ARENA_NEW(memory, Artifact);
    a->memory = memory;
    if (load(a, dir, options ? options : &defaults, error) != ASSAY_OK) {
        artifact_free(a);
        return error->status;
    }
    *artifact = a;
    return ASSAY_OK;
}

void artifact_free(Artifact *a)
{
    if (!a)
        return;
    if (a->owns_pool)
        pool_free(a->pool);
    if (a->code)
        dlclose(a->code);
    const ArtifactInfo *info = &a->manifest.info;
    for (int i = 0; a->staged_in && i < info->input_count; i++)
        free(a->staged_in[i]);
    for (int i = 0; a->staged_out && i < info->output_count; i++)
        free(a->staged_out[i]);
    unmap(&a->arena_map);
    unmap(&a->weights);
    arena_free(a->memory);
}

/* ---- running ---------------------------------------------------------- */

const ArtifactInfo *artifact_info(const Artifact *a)
{
    return &a->manifest.info;
}

Pool *artifact_pool(const Artifact *a)
{
    return a->pool;
}

void artifact_on_step(Artifact *a,
                      void (*on_step)(void *user, int32_t step,
                                      int32_t is_end),
                      void *user)
{
    a->call.on_step = on_step;
    a->call.user = user;
}

AssayStatus artifact_set_dims(Artifact *a, const int64_t *values,
                              AssayError *error)
{
    const ArtifactInfo *info = &a->manifest.info;
    *error = (AssayError){0};
    for (int i = 0; i < info->input_dims; i++) {
        Extent dim = info->dims[i];
        if (values[i] < extent_lower(dim) || values[i] > dim.value)
            return error_set(error, ASSAY_BAD_SHAPE,
                             "the dimension %s is compiled for %lld to %lld, "
                             "not for %lld",
                             dim.expr->name, (long long)extent_lower(dim),
                             (long long)dim.value, (long long)values[i]);
    }
    for (int i = 0; i < info->input_dims; i++)
        a->call.extents[i] = values[i];
    return ASSAY_OK;
}

void artifact_dims(const Artifact *a, const ArtifactValue *v, int64_t *actual)
{
    artifact_extents(&a->manifest.info, a->call.extents, v->rank, v->dims,
                     v->extents, actual);
}

static void run_staged(Artifact *a, const void *const *inputs,
                       void *const *outputs)
{
    const ArtifactInfo *info = &a->manifest.info;
    int64_t actual[MAX_RANK];
    /* What a kernel has not computed yet is at most this. */
    for (int i = info->input_dims; i < info->dim_count; i++)
        a->call.extents[i] = info->dims[i].value;
    a->call.extents[info->dim_count] = 0;
    for (int i = 0; i < info->input_count; i++) {
        const ArtifactValue *v = &info->inputs[i];
        a->in[i] = (void *)(uintptr_t)inputs[i];
        if (!a->staged_in[i])
            continue;
        artifact_dims(a, v, actual);
        dims_spread(v->rank, v->dims, actual, dtype_size(v->dtype), inputs[i],
                    a->staged_in[i]);
        a->in[i] = a->staged_in[i];
    }
    for (int i = 0; i < info->output_count; i++)
        a->out[i] = a->staged_out[i] ? a->staged_out[i] : outputs[i];
    a->call.inputs = a->in;
    a->call.outputs = a->out;
    a->run(&a->call);
    for (int i = 0; i < info->output_count; i++) {
        const ArtifactValue *v = &info->outputs[i];
        if (!a->staged_out[i])
            continue;
        artifact_dims(a, v, actual);
        dims_gather(v->rank, v->dims, actual, dtype_size(v->dtype),
                    a->staged_out[i], outputs[i]);
    }
}

void artifact_run(Artifact *a, const void *const *inputs, void *const *outputs)
{
    if (a->manifest.info.dim_count) {
        run_staged(a, inputs, outputs);
        return;
    }
    /* The interface says that inputs are not written to; its type predates
     * const because generated code passes all arguments in one list. */
    a->call.inputs = (void *const *)(uintptr_t)inputs;
    a->call.outputs = outputs;
    a->run(&a->call);
}

AssayStatus artifact_outcome(const Artifact *a, AssayError *error)
{
    const ArtifactInfo *info = &a->manifest.info;
    return dims_outcome(
        info, info->dim_count ? a->call.extents[info->dim_count] : 0, error);
}

void artifact_tap(const Artifact *a, const ArtifactTensor *tensor,
                  Array *array)
{
    const char *data = a->call.arena + tensor->offset;
    if (!tensor->extents) {
        layout_unpack(&tensor->layout, data, array);
        return;
    }
    Arena *scratch = arena_new();
    Array *whole =
        array_new(scratch, tensor->dtype, tensor->rank, tensor->dims);
    layout_unpack(&tensor->layout, data, whole);
    dims_gather(tensor->rank, tensor->dims, array->dims,
                dtype_size(tensor->dtype), whole->data, array->data);
    arena_free(scratch);
}

void artifact_fill_arena(Artifact *a, int byte)
{
    memset(a->call.arena, byte, (size_t)a->manifest.info.arena_bytes);
}
