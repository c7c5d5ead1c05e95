/* Arena: memory that lives as long as one compilation, graph or kernel.
 *
 * Nothing is freed singly: the owner frees the arena. Allocation never
 * fails: without memory the process ends through die(), but for
 * arena_try_alloc. */
#ifndef ASSAY_BASE_ARENA_H
#define ASSAY_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *arena);

/* Zeroed memory, aligned to 64 bytes when `size` is 64 or more, to 16
 * otherwise. A size of 0 gives a valid pointer. */
void *arena_alloc(Arena *arena, size_t size);
/* NULL when there is no memory: for sizes that a user's file decides. */
void *arena_try_alloc(Arena *arena, size_t size);
/* arena_alloc of count * size; the product is checked for overflow. */
void *arena_alloc_array(Arena *arena, size_t count, size_t size);
void *arena_copy(Arena *arena, const void *data, size_t size);
char *arena_strdup(Arena *arena, const char *text);
/* At most `length` characters, fewer where the text ends before. */
char *arena_strndup(Arena *arena, const char *text, size_t length);
char *arena_printf(Arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *arena, const char *format, va_list args);
/* Bytes handed out so far. */
size_t arena_used(const Arena *arena);

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count)                                       \
    ((type *)arena_alloc_array((arena), (size_t)(count), sizeof(type)))

#endif
