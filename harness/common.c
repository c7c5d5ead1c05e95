#include "harness/common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process.h"
#include "base/replace.h"

int bad_input(const char *format, ...)
{
    va_list args;
    char *text;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    /* What comes from elsewhere may end its lines itself. */
    size_t length = text ? strlen(text) : 0;
    while (length && text[length - 1] == '\n')
        length--;
    fprintf(stderr, "assay: %.*s\n", (int)length, text ? text : "");
    free(text);
    return EXIT_BAD_INPUT;
}

double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- folders ---------------------------------------------------------- */

static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = 0;
}

const char *program_folder(Arena *arena)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return ".";
    path[length] = 0;
    cut_last(path);
    return arena_strdup(arena, path);
}

const char *project_folder(Arena *arena)
{
    /* build/assay, or build/san/assay: up to the folder with the suites. */
    char *path = arena_strdup(arena, program_folder(arena));
    while (strrchr(path, '/')) {
        cut_last(path);
        if (!access(arena_printf(arena, "%s/suites/data", path), F_OK))
            return path;
    }
    return ".";
}

const char *data_path(Arena *arena, const char *name)
{
    const char *folder = getenv("ASSAY_DATA");
    if (folder)
        return arena_printf(arena, "%s/%s", folder, name);
    return arena_printf(arena, "%s/suites/data/%s", project_folder(arena),
                        name);
}

bool make_folders(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return false;
    bool ok = true;
    for (char *slash = copy + 1; ok; slash++) {
        slash = strchrnul(slash, '/');
        bool last = !*slash;
        *slash = 0;
        ok = mkdir(copy, 0777) == 0 || errno == EEXIST;
        if (last)
            break;
        *slash = '/';
    }
    int fault = errno;
    struct stat info;
    if (ok && (stat(copy, &info) || !S_ISDIR(info.st_mode))) {
        ok = false;
        fault = ENOTDIR;
    }
    free(copy);
    errno = fault;
    return ok;
}

static int remove_entry(const char *path, const struct stat *info, int flag,
                        struct FTW *ftw)
{
    (void)info, (void)flag, (void)ftw;
    return remove(path);
}

void remove_temp_folder(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    cleanup_forget_path(path);
}

static const char lock_name[] = ".lock";
enum { GRACE = 60 }; /* seconds that a folder may be there without a lock */

/* Its owner holds the lock while it lives, however it ends. */
static int lock_folder(Arena *arena, const char *path)
{
    int fd = open(arena_printf(arena, "%s/%s", path, lock_name),
                  O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Left by a process that was killed. */
static bool is_orphan(Arena *arena, const char *path)
{
    struct stat info;
    if (lstat(path, &info) || !S_ISDIR(info.st_mode) ||
        info.st_uid != geteuid() || time(NULL) - info.st_mtime < GRACE)
        return false;
    int fd = lock_folder(arena, path);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void remove_orphans(Arena *arena, const char *parent)
{
    DIR *dir = opendir(parent);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (strncmp(e->d_name, "assay-", 6))
            continue;
        const char *path = arena_printf(arena, "%s/%s", parent, e->d_name);
        if (is_orphan(arena, path))
            remove_temp_folder(path);
    }
    if (dir)
        closedir(dir);
}

char *make_temp_folder(Arena *arena)
{
    const char *tmp = getenv("TMPDIR");
    const char *parent = tmp && *tmp ? tmp : "/tmp";
    remove_orphans(arena, parent);
    char *path = arena_printf(arena, "%s/assay-XXXXXX", parent);
    if (!mkdtemp(path))
        return NULL;
    cleanup_add_locked(path, lock_folder(arena, path));
    return path;
}

/* ---- files ------------------------------------------------------------ */

bool write_file(const char *path, const char *text, size_t size, Str *error)
{
    Replacement r;
    bool ok = replace_begin(&r, path);
    if (ok) {
        ok = fwrite(text, 1, size, r.file) == size && !fflush(r.file) &&
             (!fsync(fileno(r.file)) || errno == EINVAL);
        ok = replace_end(&r, ok);
    }
    if (!ok)
        str_addf(error, "cannot write %s: %s\n", path, strerror(errno));
    return ok;
}

/* ---- numbers ---------------------------------------------------------- */

/* Three significant digits. */
static const char *format_scaled(Arena *arena, double value, const char *unit)
{
    int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return arena_printf(arena, "%.*f %s", digits, value, unit);
}

const char *format_bytes(Arena *arena, double bytes)
{
    if (bytes < 1024)
        return arena_printf(arena, "%.0f B", bytes);
    if (bytes < 1024 * 1024)
        return format_scaled(arena, bytes / 1024, "KiB");
    return format_scaled(arena, bytes / (1024 * 1024), "MiB");
}

const char *format_seconds(Arena *arena, double seconds)
{
    if (seconds < 1e-3)
        return format_scaled(arena, seconds * 1e6, "us");
    if (seconds < 1)
        return format_scaled(arena, seconds * 1e3, "ms");
    return format_scaled(arena, seconds, "s");
}
