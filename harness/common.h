/* What the subcommands share: exit codes, folders and files. */
#ifndef ASSAY_HARNESS_COMMON_H
#define ASSAY_HARNESS_COMMON_H

#include "base/arena.h"
#include "base/str.h"

/* Documented in every --help. */
enum { EXIT_FINE = 0, EXIT_FAILED_CHECK = 1, EXIT_BAD_INPUT = 2 };

/* Prints "assay: TEXT" to standard error and returns EXIT_BAD_INPUT. */
int bad_input(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds of a clock that only goes forward. */
double clock_now(void);

/* The folder of this executable, and the project's folder around it. */
const char *program_folder(Arena *arena);
const char *project_folder(Arena *arena);
/* A file of suites/data, or of the folder that ASSAY_DATA names. */
const char *data_path(Arena *arena, const char *name);

/* Makes the folder and those above it. False with errno set. */
bool make_folders(const char *path);
/* A fresh folder under TMPDIR, locked while this process lives; those of
 * killed processes are removed. NULL with errno set. */
char *make_temp_folder(Arena *arena);
/* Removes a folder made by make_temp_folder with all that is in it. */
void remove_temp_folder(const char *path);
/* Writes beside `path`, syncs and renames: a killed run leaves the old file
 * or the new one. False with a line in `error`. */
bool write_file(const char *path, const char *text, size_t size, Str *error);

/* "1.23 MiB", "12.3 ms": three digits and a unit. */
const char *format_bytes(Arena *arena, double bytes);
const char *format_seconds(Arena *arena, double seconds);

#endif
