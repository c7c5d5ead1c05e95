/* Diagnostics: what is wrong with the user's input, collected so that all
 * faults of one kind are reported together, and die() for broken
 * invariants of our own. */
#ifndef ASSAY_BASE_DIAG_H
#define ASSAY_BASE_DIAG_H

#include <stdbool.h>

#include "base/vec.h"

typedef struct Diag {
    Arena *arena;
    const char *file; /* the input that is being read, or NULL */
    Vec(const char *) errors;
    Vec(const char *) warnings;
} Diag;

Diag *diag_new(Arena *arena, const char *file);
/* Both add one line; diag_error returns false so that callers can write
 * `return diag_error(...)`. Say file, node, tensor and field, and what to
 * do about it. */
bool diag_error(Diag *diag, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void diag_warn(Diag *diag, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Error `at` is among those before it: one fault may be met at many nodes, a
 * line of a log, say. Who prints errors leaves it out. */
bool diag_is_repeated(const Diag *diag, int at);
/* Writes "FILE: error: TEXT" lines to standard error. */
void diag_print(const Diag *diag);

/* Log to standard error when ASSAY_LOG=debug. */
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What die() prints before the message, such as the IR at hand. One a
 * thread; `print` must not allocate from a broken structure. Returns the
 * former hook so that scopes nest. */
typedef struct DieHook {
    void (*print)(void *context);
    void *context;
} DieHook;
DieHook die_set_hook(DieHook hook);

/* A broken invariant: prints the hook's IR and the message, then aborts. */
_Noreturn void die(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
