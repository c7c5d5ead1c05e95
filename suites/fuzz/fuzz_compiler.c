/* libFuzzer target: random valid graphs through the compiler. */
#include <stdint.h>

#include "ops/op.h"
#include "suites/fuzz/ways.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena *arena = arena_new();
    Choices choices = {data, size, 0};
    RandomGraph about;
    Job job;
    Graph *g = graph_new(arena, diag_new(arena, NULL), "fuzz", ops_builtin());
    bool ok = random_graph(g, &choices, &about) &&
              job_start(&job, arena, g, &about, &choices);
    if (ok)
        job_run_some(&job, &choices);
    arena_free(arena);
    return ok ? 0 : -1; /* not to be kept */
}
