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

/* The address sanitizer takes huge requests for mistakes. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* A shape too large for any machine is a message, not an abort. */
static void no_memory_is_told(void **state)
{
    (void)state;
    ArtifactValue small = {.name = "in", .dtype = DT_F32};
    ArtifactValue big = {.name = "out",
                         .dtype = DT_F32,
                         .rank = 2,
                         .dims = {INT64_C(1) << 25, INT64_C(1) << 25}};
    const ArtifactInfo infos[] = {
        {.input_count = 1, .inputs = &big},
        {.input_count = 1,
         .output_count = 1,
         .inputs = &small,
         .outputs = &big},
    };
    static const char *const words[] = {"input \"out\"", "output \"out\""};
    for (int i = 0; i < 2; i++) {
        Str error = {0};
        Runner r = {.arena = arena_new(), .info = &infos[i], .error = &error};
        assert_false(runner_set_inputs(&r, NULL, 0, 1));
        assert_non_null(strstr(str_text(&error), "no memory"));
        assert_non_null(strstr(str_text(&error), words[i]));
        assert_non_null(strstr(str_text(&error), "f32[33554432,33554432]"));
        str_free(&error);
        arena_free(r.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_names_are_unique),
        cmocka_unit_test(long_names_fit),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
