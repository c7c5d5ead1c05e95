#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

extern char **environ;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A stream of the child that is read into a string. */
typedef struct Capture {
    Str *text; /* NULL: not captured */
    int fd[2]; /* read end, write end; -1 when closed */
} Capture;

static bool open_capture(Capture *c, Str *text)
{
    *c = (Capture){text, {-1, -1}};
    return !text || pipe2(c->fd, O_CLOEXEC) == 0;
}

static void close_end(Capture *c, int end)
{
    if (c->fd[end] >= 0)
        close(c->fd[end]);
    c->fd[end] = -1;
}

static void close_capture(Capture *c)
{
    close_end(c, 0);
    close_end(c, 1);
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    /* It stays a zombie for reap. */
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
           info.si_pid == pid;
}

/* Reads what both pipes hold until they close or time is up. Both at once:
 * a child that fills one pipe while we wait on the other would hang. `pid`:
 * the end of that process is the end, even if others hold the pipes; 0: none.
 */
static bool read_streams(Capture *captures, double deadline, pid_t pid)
{
    const int look = 100; /* ms */

    for (;;) {
        struct pollfd polls[2];
        Capture *of[2];
        nfds_t count = 0;
        for (int i = 0; i < 2; i++) {
            if (captures[i].fd[0] < 0)
                continue;
            of[count] = &captures[i];
            polls[count++] = (struct pollfd){captures[i].fd[0], POLLIN, 0};
        }
        if (!count)
            return true;
        int wait = -1;
        if (deadline > 0) {
            double left = deadline - now();
            if (left <= 0)
                return false;
            wait = (int)(left * 1e3) + 1;
        }
        if (pid && (wait < 0 || wait > look))
            wait = look;
        bool was_over = pid && has_ended(pid);
        int ready = poll(polls, count, was_over ? 0 : wait);
        if ((ready < 0 && errno != EINTR) || (ready == 0 && was_over))
            return true;
        for (nfds_t i = 0; i < count; i++) {
            if (!polls[i].revents)
                continue;
            char block[16384];
            ssize_t size = read(polls[i].fd, block, sizeof block);
            if (size > 0)
                str_add_bytes(of[i]->text, block, (size_t)size);
            else if (size == 0 || errno != EINTR)
                close_end(of[i], 0);
        }
    }
}

/* First a signal that lets the child end its own children and remove its
 * temporary files. */
static void stop(pid_t pid)
{
    kill(pid, SIGTERM);
    for (int i = 0; i < 200; i++) {
        if (has_ended(pid))
            return;
        struct timespec pause = {0, 10000000};
        nanosleep(&pause, NULL);
    }
    kill(pid, SIGKILL);
}

/* Waits for the child itself, which may outlive its streams. */
static void reap(pid_t pid, double deadline, ProcessResult *result)
{
    struct rusage usage;
    int status;
    for (;;) {
        bool bounded = deadline > 0 && !result->timed_out;
        pid_t got = wait4(pid, &status, bounded ? WNOHANG : 0, &usage);
        if (got == pid)
            break;
        if (got < 0 && errno != EINTR) {
            result->exit_code = -1;
            return;
        }
        if (bounded && now() >= deadline) {
            stop(pid);
            result->timed_out = true;
        } else if (bounded) {
            struct timespec pause = {0, 2000000};
            nanosleep(&pause, NULL);
        }
    }
    result->max_rss_kib = usage.ru_maxrss;
    result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Of this process, and of those that it starts. */
static void limit_memory(int64_t bytes)
{
    struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};
    setrlimit(RLIMIT_DATA, &limit);
}

static int spawn(pid_t *pid, const char *const *argv, const Capture *captures,
                 bool leads)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (leads)
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    for (int i = 0; i < 2; i++)
        if (captures[i].fd[1] >= 0)
            posix_spawn_file_actions_adddup2(&actions, captures[i].fd[1],
                                             i + 1);
    int fault = posix_spawnp(pid, argv[0], &actions, &attributes,
                             (char *const *)(argv), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return fault;
}

/* With a limit that holds from the first instruction of the program on: set
 * from outside it could come after the child has started others. */
static int spawn_limited(pid_t *pid, const char *const *argv,
                         const Capture *captures, int64_t bytes, bool leads)
{
    int fault = 0, report[2];
    if (pipe2(report, O_CLOEXEC))
        return errno;
    *pid = fork();
    if (*pid < 0) {
        fault = errno;
    } else if (*pid == 0) {
        for (int i = 0; i < 2; i++)
            if (captures[i].fd[1] >= 0)
                dup2(captures[i].fd[1], i + 1);
        if (leads)
            setpgid(0, 0);
        limit_memory(bytes);
        execvp(argv[0], (char *const *)(argv));
        fault = errno;
        ssize_t written = write(report[1], &fault, sizeof fault);
        _exit(written < 0 ? 126 : 127);
    }
    close(report[1]);
    /* Nothing comes when the program runs: exec closes the other end. */
    if (!fault && read(report[0], &fault, sizeof fault) > 0)
        waitpid(*pid, NULL, 0);
    close(report[0]);
    return fault;
}

static const ProcessLimits no_limits = {0};

/* Reads what a started child writes until it ends. */
static void attend(pid_t pid, Capture *captures, const ProcessLimits *limits,
                   ProcessResult *result)
{
    double start = now();
    double deadline = limits->seconds > 0 ? start + limits->seconds : 0;
    /* A negative number stands for all of its group. */
    pid_t all = limits->with_children ? -pid : pid;
    cleanup_add_child(all);
    close_end(&captures[0], 1);
    close_end(&captures[1], 1);
    if (!read_streams(captures, deadline, limits->with_children ? pid : 0)) {
        stop(pid);
        result->timed_out = true;
    }
    close_capture(&captures[0]);
    close_capture(&captures[1]);
    reap(pid, deadline, result);
    if (limits->with_children)
        kill(all, SIGKILL);
    cleanup_forget_child(all);
    result->seconds = now() - start;
}

bool process_run(const char *const *argv, Str *out, Str *err,
                 const ProcessLimits *limits, ProcessResult *result)
{
    limits = limits ? limits : &no_limits;
    *result = (ProcessResult){.exit_code = -1};
    Capture captures[2] = {{NULL, {-1, -1}}, {NULL, {-1, -1}}};
    if (!open_capture(&captures[0], out) || !open_capture(&captures[1], err)) {
        close_capture(&captures[0]);
        return false;
    }
    pid_t pid;
    int fault = limits->memory_bytes
                    ? spawn_limited(&pid, argv, captures, limits->memory_bytes,
                                    limits->with_children)
                    : spawn(&pid, argv, captures, limits->with_children);
    if (fault) {
        close_capture(&captures[0]);
        close_capture(&captures[1]);
        errno = fault;
        return false;
    }
    attend(pid, captures, limits, result);
    return true;
}

bool process_call(int (*work)(void *user), void *user, Str *err,
                  const ProcessLimits *limits, ProcessResult *result)
{
    limits = limits ? limits : &no_limits;
    *result = (ProcessResult){.exit_code = -1};
    Capture captures[2] = {{NULL, {-1, -1}}, {NULL, {-1, -1}}};
    if (!open_capture(&captures[1], err))
        return false;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        close_capture(&captures[1]);
        return false;
    }
    if (pid == 0) {
        cleanup_restart();
        if (captures[1].fd[1] >= 0)
            dup2(captures[1].fd[1], STDERR_FILENO);
        if (limits->memory_bytes)
            limit_memory(limits->memory_bytes);
        int code = work(user);
        fflush(NULL);
        _exit(code);
    }
    attend(pid, captures, limits, result);
    return true;
}

bool process_ok(const char *const *argv, Str *err)
{
    ProcessResult result;
    if (!process_run(argv, NULL, err, NULL, &result)) {
        str_addf(err, "%s: %s", argv[0], strerror(errno));
        return false;
    }
    return result.exit_code == 0;
}

void process_describe(Str *out, const ProcessResult *result)
{
    if (result->timed_out)
        str_addf(out, "killed after %.0f s", result->seconds);
    else if (result->signal)
        str_addf(out, "killed by SIG%s", sigabbrev_np(result->signal));
    else
        str_addf(out, "exit code %d", result->exit_code);
}
