#include "base/cleanup.h"

#include <ftw.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

typedef struct Entry Entry;
struct Entry {
    Entry *next;
    pid_t pid; /* 0: a path */
    int fd;    /* -1: none */
    char path[];
};

/* A signal belongs to the process and comes with no argument: this is the
 * one place with variables of the process. A handler may do next to
 * nothing, so it only wakes the thread that does the work. */
static struct {
    pthread_mutex_t lock;
    Entry *entries;
    sem_t wake;
    volatile sig_atomic_t signal; /* that ends us; 0: none yet */
    bool stopping;                /* under `lock` */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const int fatal[] = {SIGINT, SIGTERM, SIGHUP};
enum { FATAL_COUNT = sizeof fatal / sizeof fatal[0] };

static void on_signal(int signal)
{
    state.signal = signal;
    sem_post(&state.wake);
}

/* ---- the end ---------------------------------------------------------- */

static void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static int remove_entry(const char *path, const struct stat *info, int flag,
                        struct FTW *ftw)
{
    (void)info, (void)flag, (void)ftw;
    remove(path);
    return 0;
}

/* Threads of ours, and what children leave running, may still be adding
 * files while the folder goes. */
static void remove_path(const char *path)
{
    for (int i = 0; i < 100 && !access(path, F_OK); i++) {
        nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        if (!access(path, F_OK))
            pause_ms(5);
    }
}

/* Whoever started the child reaps it, and then stops in forget. */
static void end_child(pid_t pid)
{
    for (int i = 0; i < 500 && !kill(pid, 0); i++)
        pause_ms(10);
    kill(pid, SIGKILL);
}

static void *clean_up(void *unused)
{
    (void)unused;
    while (sem_wait(&state.wake))
        continue;
    int caught = state.signal;
    /* A second signal does not wait for us. */
    for (int i = 0; i < FATAL_COUNT; i++)
        signal(fatal[i], SIG_DFL);
    pthread_mutex_lock(&state.lock);
    state.stopping = true;
    pthread_mutex_unlock(&state.lock);
    /* Nothing changes the list any more. */
    for (Entry *e = state.entries; e; e = e->next)
        if (e->pid)
            kill(e->pid, caught);
    for (Entry *e = state.entries; e; e = e->next)
        if (e->pid)
            end_child(e->pid);
    for (Entry *e = state.entries; e; e = e->next)
        if (!e->pid)
            remove_path(e->path);
    kill(getpid(), caught);
    return NULL;
}

/* Set in whatever a program of ours starts. */
static const char child_mark[] = "ASSAY_CHILD";

static void follow_parent(void)
{
    if (getenv(child_mark))
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    setenv(child_mark, "1", 1);
}

void cleanup_start(void)
{
    pthread_t thread;
    follow_parent();
    if (sem_init(&state.wake, 0, 0) ||
        pthread_create(&thread, NULL, clean_up, NULL))
        return;
    pthread_detach(thread);
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FATAL_COUNT; i++) {
        /* One that is ignored, as nohup does, stays so. */
        struct sigaction before;
        if (!sigaction(fatal[i], NULL, &before) &&
            before.sa_handler != SIG_IGN)
            sigaction(fatal[i], &action, NULL);
    }
}

void cleanup_restart(void)
{
    /* The lock may have been held by a thread that is not here. */
    pthread_mutex_init(&state.lock, NULL);
    state.entries = NULL;
    state.stopping = false;
    state.signal = 0;
    cleanup_start();
}

/* ---- the list --------------------------------------------------------- */

/* Once the process ends, whoever comes here goes no further: it would only
 * complain of what the signal took away. */
static void lock(void)
{
    pthread_mutex_lock(&state.lock);
    while (state.stopping) {
        pthread_mutex_unlock(&state.lock);
        pause();
        pthread_mutex_lock(&state.lock);
    }
}

static void add(const char *path, pid_t pid, int fd)
{
    Entry *entry = malloc(sizeof *entry + strlen(path) + 1);
    if (!entry)
        return; /* what is left over then is no worse than the shortage */
    entry->pid = pid;
    entry->fd = fd;
    strcpy(entry->path, path);
    lock();
    entry->next = state.entries;
    state.entries = entry;
    pthread_mutex_unlock(&state.lock);
}

static void forget(const char *path, pid_t pid)
{
    lock();
    for (Entry **at = &state.entries; *at; at = &(*at)->next) {
        Entry *entry = *at;
        if (entry->pid != pid || strcmp(entry->path, path))
            continue;
        *at = entry->next;
        if (entry->fd >= 0)
            close(entry->fd);
        free(entry);
        break;
    }
    pthread_mutex_unlock(&state.lock);
}

void cleanup_add_path(const char *path)
{
    add(path, 0, -1);
}

void cleanup_add_locked(const char *path, int fd)
{
    add(path, 0, fd);
}

void cleanup_forget_path(const char *path)
{
    forget(path, 0);
}

void cleanup_add_child(pid_t pid)
{
    add("", pid, -1);
}

void cleanup_forget_child(pid_t pid)
{
    forget("", pid);
}
