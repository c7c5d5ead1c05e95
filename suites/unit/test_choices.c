/* The log of choices: lines print and read back, what is no line is named,
 * the newest holds, other features do not, and many may write at once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/tune.h"
#include "schedules/choices.h"

static const Target facts = {.name = "wide",
                             .features = "+a,+b",
                             .vector_bytes = 64,
                             .vector_registers = 32,
                             .l1_bytes = 32 << 10,
                             .l2_bytes = 1 << 20};

static ChoiceRow row_of(Arena *arena, const Target *target, uint64_t def,
                        int64_t pixels)
{
    ChoiceRow row = {.kernel = "conv_1x8x9x9",
                     .type = "f32",
                     .in = "1x4x9x9",
                     .layout = "[0,2,3,1]",
                     .scope = choice_scope(arena, target, "llvm19"),
                     .def = def,
                     .ms = 0.125,
                     .usual_ms = 0.15,
                     .ratio = 1.2,
                     .low = 1.1,
                     .high = 1.25,
                     .threads = 2};
    if (pixels)
        choice_set(&row.choice, "pixels", pixels);
    return row;
}

static void test_round_trip(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Str text = {0}, again = {0};
    ChoiceRow rows[] = {row_of(a, &facts, 0xfedcba9876543210u, 9),
                        row_of(a, &facts, 7, 0), row_of(a, &facts, 8, 0)};
    rows[2].algorithm = "winograd4";
    choice_set(&rows[0].choice, "prefetch", 0);
    choice_set(&rows[0].choice, "odd", -3);
    str_add(&text, "# a comment\n\n");
    for (int i = 0; i < 3; i++)
        choice_row_print(&text, &rows[i]);
    ChoiceLog *c = choices_parse(a, diag, "x.log", str_text(&text));
    assert_non_null(c);
    assert_int_equal(c->rows.count, 3);
    assert_null(c->rows.data[1].algorithm);
    assert_string_equal(c->rows.data[2].algorithm, "winograd4");
    assert_int_equal(c->rows.data[0].line, 3);
    assert_true(choice_equal(&c->rows.data[0].choice, &rows[0].choice));
    assert_int_equal(c->rows.data[1].choice.count, 0);
    assert_true(c->rows.data[0].def == rows[0].def);
    assert_true(c->rows.data[0].low == 1.1);
    str_add(&again, "# a comment\n\n");
    for (int i = 0; i < 3; i++)
        choice_row_print(&again, &c->rows.data[i]);
    assert_string_equal(str_text(&text), str_text(&again));
    str_free(&text);
    str_free(&again);
    arena_free(a);
}

/* A line with `from` replaced by `to`. */
static char *edited(Arena *a, const char *from, const char *to)
{
    Str text = {0};
    ChoiceRow row = row_of(a, &facts, 7, 9);
    choice_row_print(&text, &row);
    const char *at = strstr(str_text(&text), from);
    assert_non_null(at);
    char *result = arena_printf(a, "\n%.*s%s%s", (int)(at - str_text(&text)),
                                str_text(&text), to, at + strlen(from));
    str_free(&text);
    return result;
}

static void test_bad_lines(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *why;
    } rows[] = {
        {" | pixels", " pixels", "three parts"},
        {"threads=2", "threads=2 | x=1", "three parts"},
        {"type=f32", "type=", "no NAME=VALUE: \"type=\""},
        {"type=f32", "f32", "no NAME=VALUE: \"f32\""},
        {"type=f32", "kind=f32", "no such field: \"kind\""},
        {"type=f32", "type=f32 type=f32", "twice on the line: \"type\""},
        {"type=f32", "", "missing: \"type\""},
        {"threads=2", "", "missing: \"threads\""},
        {"def=00", "def=0x", "def is no number"},
        {"def=00", "def=-1", "def is no number"},
        {"def=", "def=1", "def is no number"},
        {"ratio=1.2", "ratio=fast", "ratio is no number"},
        {"ratio=1.2", "ratio=nan", "ratio is no number"},
        {"ratio=1.2", "ratio=-1", "ratio is no number"},
        {"threads=2", "threads=2.5", "threads is no number"},
        {"threads=2", "threads=99999999999999999999", "threads is no number"},
        {"pixels=9", "pixels=", "pixels is no number"},
        {"pixels=9", "pixels=9a", "pixels is no number"},
        {"pixels=9", "pixels=99999999999999999999", "pixels is no number"},
        {"pixels=9", "=9", "no KNOB=VALUE"},
        {"pixels=9", "pixels=9 pixels=8", "twice on the line: \"pixels\""},
        {"pixels=9", "usual pixels=9", "beside \"usual\": \"pixels=9\""},
        {"pixels=9", "pixels=9 usual", "no KNOB=VALUE: \"usual\""},
        {"pixels=9", "", "no knob"},
        {"pixels=9", "algorithm=", "algorithm is no number"},
        {"pixels=9", "algorithm=a pixels=9", "beside an algorithm"},
        {"pixels=9", "pixels=9 algorithm=a", "algorithm is no number"},
        {"pixels=9", "a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1",
         "more knobs than there are: \"m\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        Diag *diag = diag_new(a, NULL);
        const char *text = edited(a, rows[i].from, rows[i].to);
        assert_null(choices_parse(a, diag, "x.log", text));
        assert_int_equal(diag->errors.count, 1);
        if (!strstr(diag->errors.data[0], rows[i].why) ||
            strncmp(diag->errors.data[0], "x.log:2: ", 9))
            fail_msg("\"%s\" has no \"x.log:2: \" or \"%s\"",
                     diag->errors.data[0], rows[i].why);
        arena_free(a);
    }
    /* All of them at once. */
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    assert_null(choices_parse(a, diag, "x.log", "a\nb\r\n# c\nd"));
    assert_int_equal(diag->errors.count, 3);
    assert_null(choices_read(a, diag, "/no/such/file"));
    assert_non_null(strstr(diag->errors.data[3], "/no/such/file"));
    assert_null(choices_read(a, diag, "/dev/zero"));
    assert_non_null(strstr(diag->errors.data[4], "a log that assay tune"));
    arena_free(a);
}

static void test_lookup(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Target other = facts, larger = facts, named = facts;
    other.features = "+a";
    larger.l2_bytes *= 2;
    named.name = "wider";
    ChoiceScope scope = choice_scope(a, &facts, "llvm19");
    ChoiceRow rows[] = {
        row_of(a, &facts, 7, 5), row_of(a, &facts, 7, 6),
        row_of(a, &other, 7, 1), row_of(a, &larger, 7, 2),
        row_of(a, &named, 7, 3), row_of(a, &facts, 8, 4),
    };
    ChoiceRow old = row_of(a, &facts, 7, 9);
    old.scope.compiler = "0.llvm19";
    Str text = {0};
    for (int i = 0; i < 6; i++)
        choice_row_print(&text, &rows[i]);
    choice_row_print(&text, &old);
    ChoiceLog *c = choices_parse(a, diag, "x.log", str_text(&text));
    assert_non_null(c);
    /* Of two the later one, of other facts none. */
    assert_int_equal(choices_find(c, &scope, 7)->choice.knob[0].value, 6);
    assert_int_equal(choices_find(c, &scope, 8)->choice.knob[0].value, 4);
    assert_null(choices_find(c, &scope, 9));
    assert_int_equal(choices_count_others(c, &scope), 4);
    str_free(&text);
    arena_free(a);
}

static void test_merge(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    ChoiceRow one = row_of(a, &facts, 1, 1), two = row_of(a, &facts, 2, 2);
    ChoiceRow anew = row_of(a, &facts, 1, 3);
    Str old = {0}, want = {0}, got = {0};
    str_add(&old, "# mine\n");
    choice_row_print(&old, &one);
    str_add(&old, "# more\n");
    choice_row_print(&old, &two);
    str_add(&want, "# mine\n# more\n");
    choice_row_print(&want, &two);
    choice_row_print(&want, &anew);
    assert_true(choices_merge(&got, diag, "x.log", str_text(&old), &anew, 1));
    assert_string_equal(str_text(&got), str_text(&want));
    /* What is no log is not made one. */
    assert_false(choices_merge(&got, diag, "x.log", "a\n", &anew, 1));
    str_free(&old);
    str_free(&want);
    str_free(&got);
    arena_free(a);
}

/* Several processes add to one log, which is in a folder to be made. */
static void test_store(void **state)
{
    (void)state;
    enum { WRITERS = 4, EACH = 5 };
    char dir[] = "/tmp/assay-choices-XXXXXX";
    assert_non_null(mkdtemp(dir));
    Arena *a = arena_new();
    const char *path = arena_printf(a, "%s/deep/er/choices.log", dir);
    for (int w = 0; w < WRITERS; w++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid)
            continue;
        bool ok = true;
        for (int i = 0; i < EACH; i++) {
            ChoiceRow row = row_of(a, &facts, (uint64_t)(w * EACH + i), 1 + i);
            ok = ok && tune_store(path, &row, 1);
        }
        _exit(ok ? 0 : 1);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    Diag *diag = diag_new(a, NULL);
    ChoiceLog *c = choices_read(a, diag, path);
    assert_non_null(c);
    assert_int_equal(c->rows.count, WRITERS * EACH);
    ChoiceScope scope = choice_scope(a, &facts, "llvm19");
    for (int i = 0; i < WRITERS * EACH; i++)
        assert_non_null(choices_find(c, &scope, (uint64_t)i));
    unlink(path);
    unlink(arena_printf(a, "%s.lock", path));
    rmdir(arena_printf(a, "%s/deep/er", dir));
    rmdir(arena_printf(a, "%s/deep", dir));
    rmdir(dir);
    arena_free(a);
}

/* Disturbed runs on either side change nothing; a difference does. */
static void test_ratio(void **state)
{
    (void)state;
    enum { RUNS = 40 };
    Arena *a = arena_new();
    double fast[2][RUNS], slow[2][RUNS];
    const double *f[2] = {fast[0], fast[1]}, *s[2] = {slow[0], slow[1]};
    for (int i = 0; i < RUNS; i++)
        for (int k = 0; k < 2; k++) {
            fast[k][i] = (1 + k) * (1 + 0.001 * (i * 7 % 10));
            slow[k][i] = (1 + k) * 1.1 * (1 + 0.001 * (i * 3 % 10));
            if (i % 3 == k)
                fast[k][i] *= 3;
            if (i % 4 == k)
                slow[k][i] *= 2;
        }
    Ratio r = tune_ratio(a, s, f, 2, RUNS);
    assert_true(fabs(r.value - 1.1) < 0.01);
    assert_true(r.low > 1.08 && r.low <= r.value && r.high >= r.value &&
                r.high < 1.12);
    Ratio same = tune_ratio(a, f, f, 2, RUNS);
    assert_true(same.value == 1 && same.low == 1 && same.high == 1);
    assert_true(isnan(tune_ratio(a, s, f, 2, 0).value));
    arena_free(a);
}

static void test_default_log(void **state)
{
    (void)state;
    Arena *a = arena_new();
    setenv("XDG_CACHE_HOME", "/x", 1);
    setenv("HOME", "/h", 1);
    assert_string_equal(tune_default_log(a), "/x/assay/choices.log");
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    assert_string_equal(tune_default_log(a), "/h/.cache/assay/choices.log");
    unsetenv("HOME");
    assert_null(tune_default_log(a));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_lookup),      cmocka_unit_test(test_merge),
        cmocka_unit_test(test_store),       cmocka_unit_test(test_ratio),
        cmocka_unit_test(test_default_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
