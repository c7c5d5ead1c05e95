/* A runner for targets without an operating system's loader: linked
 * statically with model.a, it runs the model once, on one thread.
 *
 *     PROGRAM FACTS WEIGHTS ARENA_BYTES DIMS INPUTS INPUT...
 *             (OUTPUT BYTES)...
 *
 * FACTS are those of the manifest that the other arguments come from, in
 * hexadecimal; they must be the code's. DIMS are the dimensions of the run,
 * separated by commas; values lie in storage of the upper bounds. INPUTS
 * counts the raw input files; each output goes to a raw file. Runs twice, the
 * second time on an arena full of ones, and reports as JSON whether both gave
 * the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/abi.h"

extern const int32_t assay_model_abi;
extern const uint64_t assay_model_facts[ASSAY_FACT_COUNT];
void assay_model_run(const AssayRun *run);

enum { MAX_VALUES = 256, MAX_EXTENTS = 64 };

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(2);
}

static void *allocate(size_t size)
{
    void *data = aligned_alloc(64, (size + 63) / 64 * 64 + 64);
    if (!data)
        fail("out of memory");
    memset(data, 0, size);
    return data;
}

static void *read_all(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path);
    size_t size = (size_t)ftell(file);
    rewind(file);
    void *data = allocate(size);
    if (fread(data, 1, size, file) != size)
        fail(path);
    fclose(file);
    return data;
}

static void serial_for(void *pool, AssayTask task, void *context,
                       int64_t count)
{
    (void)pool;
    if (count > 0)
        task(context, 0, count);
}

static int has_facts(const char *text)
{
    char own[16 * ASSAY_FACT_COUNT + 1];
    for (int i = 0; i < ASSAY_FACT_COUNT; i++)
        snprintf(own + 16 * i, 17, "%016llx",
                 (unsigned long long)assay_model_facts[i]);
    return !strcmp(own, text);
}

static int read_extents(const char *text, int64_t *extents)
{
    int i = 0;
    for (; *text; i++) {
        char *end;
        if (i == MAX_EXTENTS)
            fail("too many dimensions");
        extents[i] = strtoll(text, &end, 10);
        if (end == text || (*end && *end != ','))
            fail("the dimensions are no numbers");
        text = *end ? end + 1 : end;
    }
    return i;
}

int main(int argc, char **argv)
{
    if (argc < 6 || assay_model_abi != ASSAY_ABI_VERSION)
        fail("wrong arguments or ABI version");
    if (!has_facts(argv[1]))
        fail("damaged file: the manifest is not of this code; compile the "
             "model again");
    /* What follows is counted from the next argument. */
    argv++;
    argc--;
    const char *weights = read_all(argv[1]);
    size_t arena_bytes = (size_t)strtoull(argv[2], NULL, 10);
    int64_t extents[MAX_EXTENTS + 1] = {0};
    int extent_count = read_extents(argv[3], extents);
    argv++;
    argc--;
    int inputs = atoi(argv[3]), outputs = (argc - 4 - inputs) / 2;
    if (inputs < 0 || inputs > MAX_VALUES || outputs < 1 ||
        outputs > MAX_VALUES || 4 + inputs + 2 * outputs != argc)
        fail("wrong number of files");
    void *in[MAX_VALUES], *out[MAX_VALUES], *first[MAX_VALUES];
    size_t bytes[MAX_VALUES];
    for (int i = 0; i < inputs; i++)
        in[i] = read_all(argv[4 + i]);
    for (int i = 0; i < outputs; i++) {
        bytes[i] = (size_t)strtoull(argv[5 + inputs + 2 * i], NULL, 10);
        out[i] = allocate(bytes[i]);
        first[i] = allocate(bytes[i]);
    }
    AssayRun run = {.inputs = in,
                    .outputs = first,
                    .weights = weights,
                    .arena = allocate(arena_bytes),
                    .parallel_for = serial_for,
                    .extents = extents};
    assay_model_run(&run);
    memset(run.arena, 0xff, arena_bytes);
    run.outputs = out;
    assay_model_run(&run);
    int same = 1;
    for (int i = 0; i < outputs; i++) {
        same = same && !memcmp(first[i], out[i], bytes[i]);
        FILE *file = fopen(argv[4 + inputs + 2 * i], "wb");
        if (!file || fwrite(out[i], 1, bytes[i], file) != bytes[i] ||
            fclose(file))
            fail("cannot write an output");
    }
    printf("{\"repeat_identical\": %s, \"extents\": [",
           same ? "true" : "false");
    for (int i = 0; i <= extent_count; i++)
        printf("%s%lld", i ? ", " : "", (long long)extents[i]);
    printf("]}\n");
    return !same;
}
