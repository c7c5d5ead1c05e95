/* libFuzzer target: any bytes as an ONNX file. They must import and pass the
 * graph passes, or be refused with a message; never crash, nor ask for much
 * memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiler/evaluate.h"
#include "import/onnx.h"
#include "ops/op.h"
#include "passes/passes.h"
#include "targets/target.h"

enum { MOST_ELEMENTS = 1 << 20 };

/* Folding computes what constants give: a small file may ask for a lot. */
static bool is_small(const Graph *g)
{
    int64_t total = 0;
    for (int i = 0; i < g->tensors.count; i++) {
        int64_t count = type_most(&g->tensors.data[i]->type);
        if (count > MOST_ELEMENTS)
            return false;
        total += count > 0 ? count : 0;
    }
    return total <= MOST_ELEMENTS;
}

static void run_passes(Arena *arena, Graph *g)
{
    PassOptions options = {.opt_level = 2, .verify = true};
    PassContext context = {.graph = g,
                           .target = target_find(arena, g->diag, "x86-64-v3"),
                           .opt_level = 2,
                           .evaluate = evaluate_node};
    passes_run(&context, &options, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("model.onnx", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, NULL);
    Graph *g = onnx_import(arena, diag, ops_builtin(), path, NULL);
    /* A refusal says why. */
    if (!g && !diag->errors.count)
        abort();
    if (g && is_small(g))
        run_passes(arena, g);
    arena_free(arena);
    close(fd);
    return 0;
}
