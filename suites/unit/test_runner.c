/* What assay-run does around a run: names of files, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "harness/runner.h"

static void file_names_are_unique(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"t:0", "t_0"},       {"t_0", "t_0.2"},   {"t/0", "t_0.3"},
        {"t_0.2", "t_0.2.2"}, {"T_0", "T_0.4"},   {"", "_"},
        {"../up", "_._up"},   {"größe", "größe"}, {"a b", "a_b"},
    };
    enum { COUNT = sizeof names / sizeof names[0] };
    ArtifactValue outputs[COUNT] = {0};
    for (int i = 0; i < COUNT; i++)
        outputs[i].name = names[i][0];
    ArtifactInfo info = {.output_count = COUNT, .outputs = outputs};
    Arena *arena = arena_new();
    const char **files = runner_file_names(arena, &info);
    for (int i = 0; i < COUNT; i++)
        assert_string_equal(files[i], names[i][1]);
    arena_free(arena);
}

/* Long names are cut between characters, and stay apart. */
static void long_names_fit(void **state)
{
    (void)state;
    char a[401], b[401];
    memset(a, 'a', 400);
    for (int i = 1; i < 400; i += 2)
        memcpy(a + i, "ü", 2);
    a[400] = 0;
    strcpy(b, a);
    strcpy(b + 397, "end");
    ArtifactValue outputs[] = {{.name = a}, {.name = b}};
    ArtifactInfo info = {.output_count = 2, .outputs = outputs};
    Arena *arena = arena_new();
    const char **files = runner_file_names(arena, &info);
    assert_int_equal(strlen(files[0]), 199);
    assert_memory_equal(files[0], a, 199);
    assert_int_equal(strlen(files[1]), 201);
    assert_string_equal(files[1] + 199, ".2");
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_names_are_unique),
        cmocka_unit_test(long_names_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
