/* The quick tier of the differential fuzzer: random valid graphs from fixed
 * seeds. `ninja fuzz` builds the same target with coverage guidance;
 * `test_fuzz FIRST COUNT` looks at other seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/op.h"
#include "suites/fuzz/ways.h"
#include "suites/random.h"
#include "suites/unit/found_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { GRAPHS = 40, BYTES = 360 };

/* With floats that add up exactly and others, and named dimensions of 9, 6
 * and 1. */
static void found_graphs_agree(void **state)
{
    static const uint8_t dims[][MOST_SYMBOLS] = {
        {8, 8, 8, 8, 8, 8, 8, 8}, {5, 5, 5, 5, 5, 5, 5, 5}, {0}};
    (void)state;
    for (const FoundRow *row = found_rows; row->name; row++)
        for (int k = 0; k < 3; k++) {
            Arena *arena = arena_new();
            Diag *diag = diag_new(arena, row->name);
            RandomGraph about = {.dyadic = k & 1};
            Choices choices = {dims[k], sizeof dims[k], 0};
            Job job;
            Graph *g = graph_parse(
                arena, diag, ops_builtin(),
                arena_printf(arena, "graph \"%s\"\n%s", row->name, row->text));
            if (!g || !ops_infer_graph(g))
                fail_msg("%s: %s", row->name, diag->errors.data[0]);
            if (!job_start(&job, arena, g, &about, &choices))
                fail_msg("%s: the reference refuses it", row->name);
            if (!job_run_all(&job))
                fail_msg("%s: is refused", row->name);
            bool is_open = g->symbols.count > 0;
            arena_free(arena);
            if (k && !is_open)
                break;
        }
}

/* A difference aborts after it has printed the graph. */
static bool try_seed(uint64_t seed)
{
    uint8_t bytes[BYTES];
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)random_bits(seed, (uint64_t)i);
    return LLVMFuzzerTestOneInput(bytes, sizeof bytes) == 0;
}

static void random_graphs_agree(void **state)
{
    (void)state;
    int valid = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++)
        valid += try_seed(seed);
    assert_true(valid > GRAPHS / 2);
}

int main(int count, char **args)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_graphs_agree),
        cmocka_unit_test(random_graphs_agree),
    };
    if (count < 3)
        return cmocka_run_group_tests(tests, NULL, NULL);
    uint64_t first = strtoull(args[1], NULL, 10);
    uint64_t end = first + strtoull(args[2], NULL, 10);
    for (uint64_t seed = first; seed < end; seed++) {
        fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        fprintf(stderr, "%s\n", try_seed(seed) ? "agrees" : "is not valid");
    }
    return 0;
}
