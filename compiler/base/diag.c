/* Messages are collected rather than printed: the caller may want all of
 * them, to put them into a result file, or none. Only die() and the debug log
 * write by themselves. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* One hook a thread: kernels compile in parallel, and each thread has its
 * own IR at hand. */
static _Thread_local DieHook die_hook;

Diag *diag_new(Arena *arena, const char *file)
{
    Diag *diag = ARENA_NEW(arena, Diag);
    diag->arena = arena;
    diag->file = file ? arena_strdup(arena, file) : NULL;
    return diag;
}

/* A message quotes names of files and models. */
static const char *message(Arena *arena, const char *format, va_list args)
{
    char *text = arena_vprintf(arena, format, args);
    str_make_plain(text);
    return text;
}

bool diag_error(Diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vec_push(diag->arena, &diag->errors, message(diag->arena, format, args));
    va_end(args);
    return false;
}

void diag_warn(Diag *diag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vec_push(diag->arena, &diag->warnings, message(diag->arena, format, args));
    va_end(args);
}

/* "FILE: error: TEXT", the form that editors know. */
static void print_line(const Diag *diag, const char *kind, const char *text)
{
    if (diag->file)
        fprintf(stderr, "%s: ", diag->file);
    fprintf(stderr, "%s: %s\n", kind, text);
}

bool diag_is_repeated(const Diag *diag, int at)
{
    const int near = 64;
    for (int i = at > near ? at - near : 0; i < at; i++)
        if (!strcmp(diag->errors.data[i], diag->errors.data[at]))
            return true;
    return false;
}

void diag_print(const Diag *diag)
{
    for (int i = 0; i < diag->warnings.count; i++)
        print_line(diag, "warning", diag->warnings.data[i]);
    for (int i = 0; i < diag->errors.count; i++)
        if (!diag_is_repeated(diag, i))
            print_line(diag, "error", diag->errors.data[i]);
}

/* Read from the environment each time: that is rare, and needs no state. */
static bool log_is_debug(void)
{
    const char *level = getenv("ASSAY_LOG");
    return level && strcmp(level, "debug") == 0;
}

void log_debug(const char *format, ...)
{
    if (!log_is_debug())
        return;
    va_list args;
    va_start(args, format);
    fputs("debug: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
}

DieHook die_set_hook(DieHook hook)
{
    DieHook former = die_hook;
    die_hook = hook;
    return former;
}

void die(const char *format, ...)
{
    /* Taken off first: a hook that dies itself must not call itself. */
    DieHook hook = die_set_hook((DieHook){0});
    fflush(stdout);
    if (hook.print)
        hook.print(hook.context);
    va_list args;
    va_start(args, format);
    fputs("assay: internal error: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    fflush(stderr);
    abort();
}
