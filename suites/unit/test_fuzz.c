/* The quick tier of the differential fuzzer: random valid graphs from fixed
 * seeds. `ninja fuzz` builds the same target with coverage guidance. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdint.h>

#include "suites/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { GRAPHS = 40, BYTES = 140 };

static void random_graphs_agree(void **state)
{
    (void)state;
    int valid = 0;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        uint8_t bytes[BYTES];
        for (int i = 0; i < BYTES; i++)
            bytes[i] = (uint8_t)random_bits(seed, (uint64_t)i);
        /* A difference aborts after it has printed the graph. */
        valid += LLVMFuzzerTestOneInput(bytes, sizeof bytes) == 0;
    }
    assert_true(valid > GRAPHS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
