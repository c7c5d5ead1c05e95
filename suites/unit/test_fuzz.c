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

#include "suites/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { GRAPHS = 60, BYTES = 360 };

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
