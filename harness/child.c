#include "harness/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "harness/common.h"

static const char *const names[CASE_STATUS_COUNT] = {
    "ok",      "failed-check", "crashed", "timed-out", "out-of-memory",
    "refused", "skipped"};

const char *case_status_name(CaseStatus status)
{
    return names[status];
}

CaseStatus case_status_parse(const char *name)
{
    for (int i = 0; name && i < CASE_STATUS_COUNT; i++)
        if (!strcmp(names[i], name))
            return (CaseStatus)i;
    return CASE_CRASHED;
}

/* Our own message, the C++ library's, and that of the system's loader. */
static bool says_no_memory(const char *text)
{
    return strstr(text, "out of memory") || strstr(text, "std::bad_alloc") ||
           strstr(text, "Cannot allocate memory") || strstr(text, "no memory");
}

CaseStatus case_status_of(const ProcessResult *result, const char *text)
{
    if (result->timed_out)
        return CASE_TIMED_OUT;
    if (result->exit_code == EXIT_FINE)
        return CASE_OK;
    /* Nobody but the kernel, short of memory, sends SIGKILL to a child that
     * still has time. */
    if (result->signal == SIGKILL || says_no_memory(text))
        return CASE_OUT_OF_MEMORY;
    if (result->exit_code == EXIT_FAILED_CHECK)
        return CASE_FAILED_CHECK;
    if (result->exit_code == EXIT_BAD_INPUT)
        return CASE_REFUSED;
    return CASE_CRASHED;
}

/* What the program says; its name before that is no help. */
static void add_message(Str *failure, const char *text)
{
    size_t skip = strcspn(text, ":\n");
    if (!strncmp(text, "assay", 5) && text[skip] == ':')
        text += skip + 1 + (text[skip + 1] == ' ');
    str_add(failure, text);
}

void case_describe(Str *failure, const ProcessResult *result, const char *text)
{
    if (result->exit_code == EXIT_BAD_INPUT && *text) {
        add_message(failure, text);
    } else {
        process_describe(failure, result);
        if (!result->exit_code)
            str_add(failure, ", no report");
        if (*text)
            str_addf(failure, ": %s", text);
    }
    while (failure->length && failure->data[failure->length - 1] == '\n')
        failure->data[--failure->length] = 0;
}

json_t *child_json(const char *const *argv, const ProcessLimits *limits,
                   ChildEnd *end, Str *failure)
{
    ChildEnd ignored;
    Str out = {0}, err = {0};
    ProcessResult result;
    json_t *report = NULL;
    end = end ? end : &ignored;
    *end = (ChildEnd){CASE_CRASHED, -1, 0};
    if (!process_run(argv, &out, &err, limits, &result)) {
        str_addf(failure, "%s: %s", argv[0], strerror(errno));
    } else {
        end->exit_code = result.exit_code;
        end->seconds = result.seconds;
        end->status = case_status_of(&result, str_text(&err));
        if (result.exit_code == EXIT_FINE ||
            result.exit_code == EXIT_FAILED_CHECK)
            report = json_loads(str_text(&out), 0, NULL);
        if (!report && end->status == CASE_OK)
            end->status = CASE_CRASHED;
        if (!report || result.exit_code)
            case_describe(failure, &result, str_text(&err));
    }
    str_free(&out);
    str_free(&err);
    return report;
}
