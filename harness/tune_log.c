/* The log of choices on disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "harness/common.h"
#include "harness/tune.h"

static const char header[] =
    "# Schedules that were measured to be fastest: see schedules/choices.h "
    "of\n"
    "# Assay. `assay compile --choices FILE` follows them; `assay tune` adds\n"
    "# to them. A line may be removed.\n";

const char *tune_default_log(Arena *arena)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        return arena_printf(arena, "%s/assay/choices.log", cache);
    if (home && *home == '/')
        return arena_printf(arena, "%s/.cache/assay/choices.log", home);
    bad_input("no place for a log of choices: neither XDG_CACHE_HOME nor HOME "
              "is set; name one with --choices FILE");
    return NULL;
}

static bool make_folder_of(Arena *arena, const char *path)
{
    char *folder = arena_strdup(arena, path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return true;
    *slash = 0;
    return make_folders(folder);
}

/* The file's text; empty when there is none. False with errno set. */
static bool read_log(const char *path, Str *text)
{
    FILE *file = fopen(path, "rb");
    char block[4096];
    size_t n;
    if (!file)
        return errno == ENOENT;
    while ((n = fread(block, 1, sizeof block, file)) > 0)
        str_add_bytes(text, block, n);
    bool ok = !ferror(file) && strlen(str_text(text)) == text->length;
    fclose(file);
    errno = EILSEQ;
    return ok;
}

static bool extend(Arena *arena, const char *path, const ChoiceRow *rows,
                   int count)
{
    Diag *diag = diag_new(arena, NULL);
    Str old = {0}, text = {0}, error = {0};
    bool ok = false;
    if (!read_log(path, &old)) {
        bad_input("choices %s: %s", path, strerror(errno));
    } else if (!choices_merge(&text, diag, path,
                              old.length ? str_text(&old) : header, rows,
                              count)) {
        for (int i = 0; i < diag->errors.count; i++)
            bad_input("%s", diag->errors.data[i]);
    } else {
        ok = write_file(path, str_text(&text), text.length, &error);
        if (!ok)
            bad_input("%s", str_text(&error));
    }
    str_free(&old);
    str_free(&text);
    str_free(&error);
    return ok;
}

bool tune_store(const char *path, const ChoiceRow *rows, int count)
{
    Arena *arena = arena_new();
    /* Beside the log, which is replaced: a lock on it would be lost. */
    const char *lock = arena_printf(arena, "%s.lock", path);
    int fd = -1;
    bool ok = make_folder_of(arena, path) &&
              (fd = open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0666)) >= 0 &&
              !flock(fd, LOCK_EX);
    if (!ok)
        bad_input("choices %s: %s: %s", path, lock, strerror(errno));
    ok = ok && extend(arena, path, rows, count);
    if (fd >= 0)
        close(fd);
    arena_free(arena);
    return ok;
}
