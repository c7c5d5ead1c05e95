/* The report, from results written here: runs come in order of time, what
 * is no result is skipped aloud, and names cannot break the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "reports/report.h"

typedef struct Fixture {
    Arena *arena;
    char dir[64];
    Str notes, error;
} Fixture;

static char *join(Fixture *f, const char *name)
{
    return arena_printf(f->arena, "%s/%s", f->dir, name);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static char *read_text(Fixture *f, const char *name)
{
    FILE *file = fopen(join(f, name), "rb");
    if (!file)
        return NULL;
    char *text = arena_alloc(f->arena, 1 << 20);
    text[fread(text, 1, (1 << 20) - 1, file)] = 0;
    fclose(file);
    return text;
}

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    strcpy(f->dir, "/tmp/assay report XXXXXX");
    if (!mkdtemp(f->dir))
        return -1;
    f->arena = arena_new();
    mkdir(join(f, "results"), 0777);
    mkdir(join(f, "results/box"), 0777);
    mkdir(join(f, "out"), 0777);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    const char *const argv[] = {"rm", "-rf", f->dir, NULL};
    process_ok(argv, NULL);
    str_free(&f->notes);
    str_free(&f->error);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void add_run(Fixture *f, const char *name, const char *commit,
                    const char *time, double fused, const char *status)
{
    write_text(
        join(f, name),
        arena_printf(
            f->arena,
            "{\"format\": 1, \"commit\": \"%s\", \"config\": \"native-t2\", "
            "\"time\": \"%s\", \"machine\": {\"cpu\": \"<b>&\"}, "
            "\"peak\": null, \"results\": ["
            "{\"model\": \"a<i>net\", \"mode\": \"fused\", \"status\": "
            "\"%s\", \"p50\": %g, \"arena_bytes\": 2097152, "
            "\"arena_bound\": 1048576, \"top1\": null},"
            "{\"model\": \"a<i>net\", \"mode\": \"unfused\", \"status\": "
            "\"ok\", \"p50\": 0.004, \"top1\": 0.5}, {\"model\": "
            "\"boxes\", \"mode\": \"fused\", \"status\": \"ok\", "
            "\"map50\": 0.9}], \"ratios\": [{\"model\": "
            "\"a<i>net\", \"ratio\": 2, \"low\": 1.9, \"high\": 2.1}]}",
            commit, time, status, fused));
}

static bool report(Fixture *f)
{
    return report_write(join(f, "results"), "reports", join(f, "out"),
                        &f->notes, &f->error);
}

static void draws_runs_in_order(void **state)
{
    Fixture *f = *state;
    add_run(f, "results/box/z.json", "1111111aaa", "2026-01-01T00:00:00Z",
            0.003, "ok");
    add_run(f, "results/box/a.json", "2222222bbb", "2026-01-02T00:00:00Z",
            0.002, "wrong");
    write_text(join(f, "results/box/machine.json"), "{}");
    if (!report(f))
        fail_msg("%s", str_text(&f->error));
    assert_int_equal(f->notes.length, 0);
    assert_string_equal(read_text(f, "out/s0-latency-0.dat"),
                        "run commit \"fused\" \"unfused\"\n"
                        "1 \"1111111\" 3 4\n2 \"2222222\" 2 4\n");
    assert_string_equal(read_text(f, "out/s0-fusion.dat"),
                        "1 \"a<i>net\" 2 1.9 2.1\n");
    const char *page = read_text(f, "out/index.html");
    assert_non_null(strstr(page, "2 runs; the newest is commit 2222222bbb"));
    assert_non_null(strstr(page, "class=\"bad\">wrong"));
    assert_non_null(strstr(page, "2.00 [1.90, 2.10]"));
    assert_non_null(strstr(page, "a&lt;i&gt;net"));
    assert_null(strstr(page, "<i>net"));
    assert_non_null(strstr(page, "<td>top-1 50.00 %</td>"));
    assert_non_null(strstr(page, "<td>mAP50 90.00 %</td>"));
    assert_non_null(read_text(f, "out/s0-map50.svg"));
    assert_non_null(strstr(page, "&lt;b&gt;&amp;"));
    const char *svg = read_text(f, "out/s0-latency-0.svg");
    assert_non_null(svg);
    assert_non_null(strstr(svg, "</svg>"));
    assert_non_null(strstr(svg, "1111111"));
    /* Nothing was measured for it, so there is no plot of it. */
    assert_null(read_text(f, "out/s0-accuracy.svg"));
}

static void skips_foreign_files(void **state)
{
    Fixture *f = *state;
    add_run(f, "results/box/a.json", "1", "2026-01-01T00:00:00Z", 1, "ok");
    write_text(join(f, "results/box/b.json"), "{\"format\": 99}");
    write_text(join(f, "results/box/c.json"), "{\"format\":");
    assert_true(report(f));
    assert_non_null(strstr(str_text(&f->notes), "b.json: no results"));
    assert_non_null(strstr(str_text(&f->notes), "c.json"));
    assert_null(strstr(str_text(&f->notes), "a.json"));
}

static void nothing_to_show(void **state)
{
    Fixture *f = *state;
    assert_false(report(f));
    assert_non_null(strstr(str_text(&f->error), "assay run"));
    assert_null(read_text(f, "out/index.html"));
}

static void output_cannot_be_written(void **state)
{
    Fixture *f = *state;
    add_run(f, "results/box/a.json", "1", "2026-01-01T00:00:00Z", 1, "ok");
    assert_false(report_write(join(f, "results"), "reports",
                              join(f, "missing"), &f->notes, &f->error));
    assert_non_null(strstr(str_text(&f->error), "missing"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(draws_runs_in_order),
        TEST(skips_foreign_files),
        TEST(nothing_to_show),
        TEST(output_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
