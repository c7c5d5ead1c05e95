/* Targets: the rows are complete and consistent, names are found, and the
 * native one names only features that this processor has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "targets/cpu.h"
#include "targets/target.h"

static bool has_text(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static void rows_are_complete(void **state)
{
    (void)state;
    int count = 0;
    for (const Target *const *t = targets_all(); *t; t++, count++) {
        assert_non_null((*t)->name);
        assert_true(strlen((*t)->about) > 10);
        assert_non_null((*t)->cpu);
        assert_non_null((*t)->features);
        assert_non_null((*t)->cpu_flags);
        assert_non_null((*t)->cc);
        assert_true((*t)->vector_bytes >= 16);
        assert_int_equal(target_lanes(*t, 4), (*t)->vector_bytes / 4);
        assert_true((*t)->l1_bytes >= 16 << 10);
        assert_true((*t)->l2_bytes > (*t)->l1_bytes);
        assert_int_equal((*t)->codegen == CODEGEN_LLVM, (*t)->triple != NULL);
        assert_int_equal((*t)->run == RUN_EMULATED, (*t)->emulator != NULL);
        for (const Target *const *u = targets_all(); u != t; u++)
            assert_string_not_equal((*u)->name, (*t)->name);
    }
    assert_int_equal(count, 5);
}

static void levels_grow(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, NULL);
    const Target *v2 = target_find(arena, diag, "x86-64-v2");
    const Target *v3 = target_find(arena, diag, "x86-64-v3");
    const Target *v4 = target_find(arena, diag, "x86-64-v4");
    assert_true(!v2->has_fma && v3->has_fma && v4->has_fma);
    assert_true(has_text(v3->features, v2->features));
    assert_true(has_text(v4->features, v3->features));
    assert_false(has_text(v3->features, "avx512"));
    assert_true(v4->vector_bytes == 64 && v4->vector_registers == 32);
    assert_false(has_text(v4->features, "prefer-256"));
    arena_free(arena);
}

static void unknown_name_lists_all(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, NULL);
    assert_null(target_find(arena, diag, "vax"));
    assert_int_equal(diag->errors.count, 1);
    assert_true(has_text(diag->errors.data[0], "\"vax\""));
    for (const Target *const *t = targets_all(); *t; t++)
        assert_true(has_text(diag->errors.data[0], (*t)->name));
    arena_free(arena);
}

static void native_is_runnable(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, NULL);
    const Target *t = target_find(arena, diag, NULL);
    assert_non_null(t);
    assert_string_equal(t->name, "native");
    assert_true(target_is_runnable(t, NULL));
    assert_int_equal(t->vector_bytes == 64,
                     cpu_has_flag("avx512f") && cpu_has_flag("avx512vl"));
    assert_int_equal(has_text(t->features, "+avx512vnni"),
                     cpu_has_flag("avx512_vnni") && t->vector_bytes == 64);
    /* The detected row must not leak into the shared one. */
    assert_ptr_not_equal(t, target_find(arena, diag, "x86-64-v4"));
    arena_free(arena);
}

/* Our CPUID table against the kernel's own list. */
static void flags_match_proc(void **state)
{
    (void)state;
    static const char *const names[] = {
        "pni",        "ssse3",    "fma",      "cx16",        "sse4_1",
        "sse4_2",     "movbe",    "popcnt",   "avx",         "f16c",
        "bmi1",       "avx2",     "bmi2",     "avx512f",     "avx512dq",
        "avx512bw",   "avx512vl", "avx512cd", "avx512_vnni", "avx512_bf16",
        "avx512vbmi", "avx_vnni", "abm",      "lahf_lm",     "avx512_fp16",
    };
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[8192] = "";
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "flags", 5))
            break;
    if (file)
        fclose(file);
    if (strncmp(line, "flags", 5))
        skip(); /* no /proc, or no x86 */
    line[strcspn(line, "\n")] = ' ';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", names[i]);
        if (cpu_has_flag(names[i]) != has_text(line, word))
            fail_msg("%s: we say %d", names[i], cpu_has_flag(names[i]));
    }
    assert_false(cpu_has_flag("no_such_flag"));
}

static void foreign_is_refused(void **state)
{
    (void)state;
    static const char *const wanted[] = {"no_such_flag", NULL};
    Target t = {.name = "x", .triple = NULL, .cpu_flags = wanted};
    Str why = {0};
    assert_false(target_is_runnable(&t, &why));
    assert_true(has_text(str_text(&why), "no_such_flag"));
    str_free(&why);
    t.triple = "pdp11-dec-unix";
    assert_false(target_is_runnable(&t, &why));
    assert_true(has_text(str_text(&why), "pdp11"));
    str_free(&why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(levels_grow),
        cmocka_unit_test(unknown_name_lists_all),
        cmocka_unit_test(native_is_runnable),
        cmocka_unit_test(flags_match_proc),
        cmocka_unit_test(foreign_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
