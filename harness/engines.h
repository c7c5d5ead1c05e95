/* Inference engines that Assay is measured against: what they are installed
 * from, where, and how one is started. */
#ifndef ASSAY_HARNESS_ENGINES_H
#define ASSAY_HARNESS_ENGINES_H

#include "base/arena.h"
#include "base/str.h"

/* One that harness/peer.py knows. */
typedef struct EngineRow {
    const char *name;
    /* Lines of a pip requirements file: every version is pinned, so that a
     * trend over commits is one of Assay. */
    const char *requirements;
} EngineRow;

/* Ends with a row without a name. */
const EngineRow *engine_rows(void);

/* What is measured: a row's engine, or a program that speaks the protocol of
 * harness/peer.py. */
typedef struct Engine {
    const char *name;     /* a program's without its folder */
    const EngineRow *row; /* NULL: a program */
    /* What it is started with, before the options; ends with NULL. */
    const char *start[4];
} Engine;

/* An engine of the table, or a program where `text` has a '/'. `venvs` is the
 * folder of the virtual environments. False with a line in `error` when there
 * is no such engine or program. */
bool engine_find(Arena *arena, const char *text, const char *venvs,
                 Engine *engine, Str *error);
/* Whether its virtual environment holds what the row pins; programs always
 * are. */
bool engine_is_installed(Arena *arena, const Engine *engine,
                         const char *venvs);
/* Makes the virtual environment anew. One that is left half-done counts as
 * missing. False with a line in `error`. */
bool engine_install(Arena *arena, const Engine *engine, const char *venvs,
                    Str *error);

#endif
