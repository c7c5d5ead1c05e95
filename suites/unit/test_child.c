/* Children: what becomes of one that crashes, hangs, runs out of memory or
 * writes no report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/child.h"

typedef struct Shell {
    json_t *report;
    ChildEnd end;
    Str failure;
} Shell;

static Shell shell(const char *script, ProcessLimits limits)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    Shell s = {0};
    s.report = child_json(argv, &limits, &s.end, &s.failure);
    return s;
}

/* Ends with that status, and the failure says `word`. */
static void check_end(const char *script, ProcessLimits limits,
                      CaseStatus status, bool has_report, const char *word)
{
    Shell s = shell(script, limits);
    assert_int_equal(s.end.status, status);
    assert_int_equal(s.report != NULL, has_report);
    assert_non_null(strstr(str_text(&s.failure), word));
    json_decref(s.report);
    str_free(&s.failure);
}

/* Of a program that is not ours everything ends with it, at once. */
static void what_it_started_ends(void **state)
{
    (void)state;
    ProcessLimits limits = {.seconds = 60, .with_children = true};
    const int64_t memory[] = {0, (int64_t)1 << 30};
    for (int i = 0; i < 2; i++) {
        limits.memory_bytes = memory[i];
        Shell s = shell("sleep 600 & echo \"{\\\"pid\\\": $!}\"", limits);
        assert_int_equal(s.end.status, CASE_OK);
        pid_t pid =
            (pid_t)json_integer_value(json_object_get(s.report, "pid"));
        assert_true(pid > 1);
        /* Killed, and reaped by whoever became its parent. */
        char path[64], line[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        for (int k = 0; k < 500; k++) {
            FILE *file = fopen(path, "r");
            if (!file)
                break;
            if (!fgets(line, sizeof line, file))
                line[0] = 0;
            fclose(file);
            if (strstr(line, ") Z "))
                break;
            struct timespec pause = {0, 10000000};
            nanosleep(&pause, NULL);
        }
        assert_true(kill(pid, 0) || strstr(line, ") Z "));
        json_decref(s.report);
        str_free(&s.failure);
    }
    limits = (ProcessLimits){.seconds = 0.2, .with_children = true};
    check_end("sleep 600 & wait", limits, CASE_TIMED_OUT, false, "");
}

static void statuses(void **state)
{
    (void)state;
    ProcessLimits none = {0};
    check_end("echo '{}'", none, CASE_OK, true, "");
    check_end("echo '{}'; echo differs >&2; exit 1", none, CASE_FAILED_CHECK,
              true, "differs");
    check_end("echo 'assay: no file' >&2; exit 2", none, CASE_REFUSED, false,
              "no file");
    check_end("exit 3", none, CASE_CRASHED, false, "exit code 3");
    check_end("kill -SEGV $$", none, CASE_CRASHED, false, "SIGSEGV");
    check_end("kill -ABRT $$", none, CASE_CRASHED, false, "SIGABRT");
    /* As the kernel does it when memory runs out. */
    check_end("kill -KILL $$", none, CASE_OUT_OF_MEMORY, false, "SIGKILL");
    check_end("echo 'out of memory: 8 bytes' >&2; kill -ABRT $$", none,
              CASE_OUT_OF_MEMORY, false, "8 bytes");
    check_end("echo \"what():  std::bad_alloc\" >&2; kill -ABRT $$", none,
              CASE_OUT_OF_MEMORY, false, "bad_alloc");
    check_end("echo no JSON", none, CASE_CRASHED, false, "no report");
    check_end("", none, CASE_CRASHED, false, "no report");
}

static void time_is_bounded(void **state)
{
    (void)state;
    ProcessLimits limits = {.seconds = 0.2};
    check_end("exec sleep 100", limits, CASE_TIMED_OUT, false, "killed after");
    /* One that does not listen to the first signal. */
    check_end("trap '' TERM; while :; do sleep 0.1; done", limits,
              CASE_TIMED_OUT, false, "killed after");
}

static void memory_is_bounded(void **state)
{
    (void)state;
    /* tail keeps a line that never ends; grandchildren are bound as well. */
    ProcessLimits limits = {.seconds = 60, .memory_bytes = 64 << 20};
    Shell s = shell("(tail -n 1 /dev/zero) >/dev/null || "
                    "{ echo out of memory >&2; exit 9; }",
                    limits);
    assert_int_equal(s.end.status, CASE_OUT_OF_MEMORY);
    assert_int_equal(s.end.exit_code, 9);
    str_free(&s.failure);
}

static void no_program(void **state)
{
    (void)state;
    const char *const argv[] = {"/no/such/program", NULL};
    ChildEnd end;
    Str failure = {0};
    assert_null(child_json(argv, NULL, &end, &failure));
    assert_int_equal(end.status, CASE_CRASHED);
    assert_non_null(strstr(str_text(&failure), "/no/such/program"));
    str_free(&failure);
}

static void names_parse_back(void **state)
{
    (void)state;
    for (int i = 0; i < CASE_STATUS_COUNT; i++)
        assert_int_equal(case_status_parse(case_status_name((CaseStatus)i)),
                         i);
    assert_int_equal(case_status_parse("nonsense"), CASE_CRASHED);
    assert_int_equal(case_status_parse(NULL), CASE_CRASHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses),
        cmocka_unit_test(what_it_started_ends),
        cmocka_unit_test(time_is_bounded),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(no_program),
        cmocka_unit_test(names_parse_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
