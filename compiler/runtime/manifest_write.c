/* Writes manifest.json from a Program. The text depends on the Program and
 * the files' contents only, so that the same input gives the same bytes. */
#include "runtime/artifact.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/layout.h"
#include "codegen/facts.h"
#include "runtime/abi.h"
#include "targets/cpu.h"

static json_t *hash_json(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_string(text);
}

/* Names come from models and may be in any encoding; JSON is UTF-8. */
static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    Str escaped = {0};
    str_add_quoted(&escaped, text);
    for (size_t i = 0; i < escaped.length; i++)
        if ((unsigned char)escaped.data[i] >= 0x80)
            escaped.data[i] = '?';
    value = json_string(str_text(&escaped));
    str_free(&escaped);
    return value;
}

/* Numbers, or expressions of the names among `dims`, as text. */
static json_t *dims_json(const ProgramBuffer *b)
{
    const Extent *extents = program_extents(b);
    json_t *list = json_array();
    for (int i = 0; i < b->rank; i++) {
        Str text = {0};
        if (extents && !extent_is_const(extents[i])) {
            extent_print_plain(&text, extents[i]);
            json_array_append_new(list, text_json(str_text(&text)));
        } else {
            json_array_append_new(list, json_integer(b->dims[i]));
        }
        str_free(&text);
    }
    return list;
}

static json_t *symbols_json(const Program *program)
{
    json_t *list = json_array();
    for (int i = 0; i < program->symbols.count; i++) {
        Extent e = program->symbols.data[i];
        json_t *dim = json_pack(
            "{s:o, s:I, s:I}", "name", text_json(e.expr->name), "lower",
            (json_int_t)extent_lower(e), "upper", (json_int_t)e.value);
        if (i >= program->input_symbols)
            json_object_set_new(dim, "computed", json_true());
        json_array_append_new(list, dim);
    }
    return list;
}

static json_t *file_json(Diag *diag, Arena *arena, const char *dir,
                         const char *name)
{
    const char *path = arena_printf(arena, "%s/%s", dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info)) {
        diag_error(diag, "cannot read %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    size_t size = (size_t)info.st_size;
    void *data = NULL;
    if (size)
        data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (data == MAP_FAILED) {
        diag_error(diag, "cannot map %s: %s", path, strerror(errno));
        return NULL;
    }
    uint64_t hash = hash_bytes(data ? data : "", size, 0);
    if (data)
        munmap(data, size);
    return json_pack("{s:s, s:I, s:o}", "name", name, "bytes",
                     (json_int_t)size, "xxh3", hash_json(hash));
}

static json_t *value_json(const ProgramBuffer *b)
{
    return json_pack("{s:o, s:s, s:o}", "name", text_json(b->name), "dtype",
                     dtype_name(b->dtype), "dims", dims_json(b));
}

/* Inputs or outputs in the order of their numbers. */
static json_t *values_json(const Program *program, ProgramBufferKind kind,
                           int count)
{
    json_t *list = json_array();
    for (int number = 0; number < count; number++) {
        const ProgramBuffer *b = program_value(program, kind, number);
        if (b)
            json_array_append_new(list, value_json(b));
    }
    return list;
}

static json_t *tensor_json(const ProgramBuffer *b)
{
    json_t *sources = json_array();
    for (int i = 0; i < b->tensor->sources.count; i++)
        json_array_append_new(sources, text_json(b->tensor->sources.data[i]));
    Str layout = {0};
    layout_print(&layout, &b->layout);
    json_t *value = value_json(b);
    json_object_set_new(value, "sources", sources);
    json_object_set_new(value, "layout", json_string(str_text(&layout)));
    json_object_set_new(value, "offset", json_integer(b->offset));
    json_object_set_new(value, "bytes", json_integer(b->bytes));
    json_object_set_new(value, "step", json_integer(program_tensor_step(b)));
    str_free(&layout);
    return value;
}

/* Of a lookup no more than the kernel moves at all. */
static double step_weights(const Program *program, const ProgramStep *step)
{
    double bytes = 0;
    for (int i = 0; i < step->arg_count; i++) {
        const ProgramBuffer *b = &program->buffers.data[step->args[i]];
        bytes += b->kind == PB_CONSTANT ? (double)b->bytes : 0;
    }
    double most = program->kernels.data[step->kernel].kernel->bytes;
    return bytes < most ? bytes : most;
}

static json_t *steps_json(const Program *program)
{
    json_t *list = json_array();
    for (int i = 0; i < program->steps.count; i++) {
        const ProgramStep *step = &program->steps.data[i];
        json_t *nodes = json_array();
        for (int n = 0; step->group && n < step->group->nodes.count; n++) {
            const Node *node = step->group->nodes.data[n];
            /* A node made by a pass has the names it came from. */
            for (int s = 0; s < node->sources.count; s++)
                json_array_append_new(nodes, text_json(node->sources.data[s]));
            if (!node->sources.count)
                json_array_append_new(nodes, text_json(node->name));
        }
        json_array_append_new(
            list,
            json_pack("{s:i, s:i, s:f, s:o}", "kernel", step->kernel, "group",
                      step->group ? step->group->id : -1, "weight_bytes",
                      step_weights(program, step), "nodes", nodes));
    }
    return list;
}

/* Which steps run on a condition, or repeatedly. */
static json_t *regions_json(const Program *program)
{
    json_t *list = json_array();
    for (int i = 0; i < program->regions.count; i++) {
        const ProgramRegion *r = &program->regions.data[i];
        json_array_append_new(
            list,
            r->kind == REGION_BRANCH
                ? json_pack("{s:s, s:i, s:i, s:i}", "kind", "branch", "first",
                            r->first, "otherwise", r->otherwise, "end", r->end)
                : json_pack("{s:s, s:i, s:i}", "kind", "loop", "first",
                            r->first, "end", r->end));
    }
    return list;
}

static json_t *kernels_json(const Program *program)
{
    json_t *list = json_array();
    for (int i = 0; i < program->kernels.count; i++) {
        const ProgramKernel *k = &program->kernels.data[i];
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:I, s:f, s:f}", "name",
                            k->kernel->name, "loops_hash",
                            hash_json(k->kernel->hash), "code_hash",
                            hash_json(k->code_hash), "code_bytes",
                            (json_int_t)k->code_bytes, "flops",
                            k->kernel->flops, "bytes", k->kernel->bytes));
    }
    return list;
}

/* The node that computes a step's result: its last one. */
static json_t *step_node_json(const Program *program, int step)
{
    const Group *group = step >= 0 ? program->steps.data[step].group : NULL;
    if (!group || !group->nodes.count)
        return json_string("");
    return text_json(group->nodes.data[group->nodes.count - 1]->name);
}

static json_t *high_water_json(const Program *program)
{
    HighWater water;
    program_high_water(program->arena, program, &water);
    json_t *list = json_array();
    for (int i = 0; i < water.buffers.count; i++) {
        const ProgramBuffer *b = &program->buffers.data[water.buffers.data[i]];
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:I}", "tensor", text_json(b->name),
                            "node", step_node_json(program, b->first_step),
                            "bytes", (json_int_t)b->bytes));
    }
    return json_pack("{s:i, s:o, s:I, s:o}", "step", water.step, "node",
                     step_node_json(program, water.step), "bytes",
                     (json_int_t)water.bytes, "buffers", list);
}

static json_t *manifest_json(Diag *diag, const Program *program,
                             const char *dir, const char *code)
{
    const Target *target = program->target;
    Arena *arena = program->arena;
    json_t *code_file = file_json(diag, arena, dir, code);
    json_t *weights = file_json(diag, arena, dir, "weights.bin");
    if (!code_file || !weights) {
        json_decref(code_file);
        json_decref(weights);
        return NULL;
    }
    /* Without a triple, the system compiler compiled for this machine. */
    char *arch = arena_strdup(arena, target->triple ? target->triple
                                                    : cpu_architecture());
    arch[strcspn(arch, "-")] = 0;
    json_t *flags = json_array();
    for (int i = 0; target->cpu_flags && target->cpu_flags[i]; i++)
        json_array_append_new(flags, json_string(target->cpu_flags[i]));
    json_t *tensors = json_array();
    for (int i = 0; i < program->buffers.count; i++) {
        const ProgramBuffer *b = &program->buffers.data[i];
        if (program_lists_tensor(b))
            json_array_append_new(tensors, tensor_json(b));
    }
    json_t *root = json_object();
    json_object_set_new(root, "abi", json_integer(ASSAY_ABI_VERSION));
    json_object_set_new(root, "model", text_json(program->name));
    json_object_set_new(root, "source", hash_json(program->source_hash));
    json_object_set_new(root, "target", json_string(target->name));
    if (program->choices_hash)
        json_object_set_new(root, "choices", hash_json(program->choices_hash));
    json_object_set_new(root, "arch", json_string(arch));
    json_object_set_new(root, "cpu_flags", flags);
    json_object_set_new(
        root, "files",
        json_pack("{s:o, s:o}", "code", code_file, "weights", weights));
    json_object_set_new(root, "taps", json_boolean(program->taps));
    json_object_set_new(root, "arena_bytes",
                        json_integer(program->arena_bytes));
    json_object_set_new(root, "arena_bound",
                        json_integer(program->arena_bound));
    json_object_set_new(root, "high_water", high_water_json(program));
    json_object_set_new(root, "weight_bytes",
                        json_integer(program->weight_bytes));
    if (program->symbols.count)
        json_object_set_new(root, "dims", symbols_json(program));
    json_object_set_new(root, "inputs",
                        values_json(program, PB_INPUT, program->input_count));
    json_object_set_new(
        root, "outputs",
        values_json(program, PB_OUTPUT, program->output_count));
    json_object_set_new(root, "kernels", kernels_json(program));
    json_object_set_new(root, "steps", steps_json(program));
    if (program->regions.count)
        json_object_set_new(root, "regions", regions_json(program));
    json_object_set_new(root, "tensors", tensors);
    return root;
}

bool artifact_write_manifest(Diag *diag, const Program *program,
                             const char *dir, const char *code)
{
    json_t *root = manifest_json(diag, program, dir, code);
    if (!root)
        return false;
    char *text = json_dumps(root, JSON_INDENT(1));
    json_decref(root);
    if (!text)
        return diag_error(diag, "cannot print the manifest of %s", dir);
    const char *path = arena_printf(program->arena, "%s/manifest.json", dir);
    FILE *file = fopen(path, "wb");
    bool ok = file && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
    free(text);
    if (file && fclose(file) != 0)
        ok = false;
    return ok ||
           diag_error(diag, "cannot write %s: %s", path, strerror(errno));
}
