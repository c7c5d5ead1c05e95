/* Running other programs: the linker, the C compiler, the runner. */
#ifndef ASSAY_BASE_PROCESS_H
#define ASSAY_BASE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef struct ProcessLimits {
    double seconds; /* then it is stopped; 0: none */
    /* Of private data of each process, those that it starts included: more
     * is refused to it; 0: none. */
    int64_t memory_bytes;
    /* It leads a group of its own, and whatever it started ends when it
     * does: for programs that are not ours. Only process_run. */
    bool with_children;
} ProcessLimits;

typedef struct ProcessResult {
    int exit_code; /* -1 when a signal ended it */
    int signal;    /* 0 when it exited */
    bool timed_out;
    double seconds;
    long max_rss_kib;
} ProcessResult;

/* Runs argv[0], searched in PATH, with arguments up to a NULL, and waits.
 * `out` and `err` receive its output streams; NULL leaves them where ours
 * go. NULL for `limits`: none. False with errno set when it cannot be
 * started at all. */
bool process_run(const char *const *argv, Str *out, Str *err,
                 const ProcessLimits *limits, ProcessResult *result);
/* Runs `work` in a forked copy of this process and ends it with what it
 * returns; `err` and `limits` as above. For work that may crash on data which
 * only this process has. */
bool process_call(int (*work)(void *user), void *user, Str *err,
                  const ProcessLimits *limits, ProcessResult *result);
/* True when it started and exited with 0. */
bool process_ok(const char *const *argv, Str *err);
/* "exit code 1", "killed by SIGSEGV", "killed after 60 s" */
void process_describe(Str *out, const ProcessResult *result);

#endif
