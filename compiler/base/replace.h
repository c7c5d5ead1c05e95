/* Replacing files: written beside the old one and renamed over it, so that
 * a failed or killed run leaves the old file or the new one, and nothing
 * else. What is no regular file, such as /dev/null, is written to. */
#ifndef ASSAY_BASE_REPLACE_H
#define ASSAY_BASE_REPLACE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct Replacement {
    FILE *file; /* to write to */
    char *path, *temporary;
} Replacement;

/* False with errno set when nothing can be written there. */
bool replace_begin(Replacement *r, const char *path);
/* Puts the new file in place when `ok`, else removes it. False with errno
 * set, that of the failed write when not `ok`. */
bool replace_end(Replacement *r, bool ok);
/* Both, with a whole text. */
bool replace_file(const char *path, const void *data, size_t size);

#endif
