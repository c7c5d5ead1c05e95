#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/vec.h"

/* Chunks come from calloc and are never reused, so memory handed out is
 * zero without a memset, and large arrays cost no page before they are
 * touched. */
typedef struct Chunk Chunk;
struct Chunk {
    Chunk *next;
    char *at, *end;
};

struct Arena {
    Chunk *chunks; /* the first is the one being filled */
    size_t chunk_size;
    size_t used;
};

enum { FIRST_CHUNK = 16 << 10, LAST_CHUNK = 1 << 20, BIG_ALIGN = 64 };

Arena *arena_new(void)
{
    Arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        die("out of memory");
    arena->chunk_size = FIRST_CHUNK;
    return arena;
}

void arena_free(Arena *arena)
{
    if (!arena)
        return;
    for (Chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(arena);
}

/* Alignments are powers of two. */
static char *align_up(char *at, size_t align)
{
    return at + (-(uintptr_t)at & (align - 1));
}

static Chunk *add_chunk(size_t size)
{
    size_t total = sizeof(Chunk) + size;
    Chunk *chunk = total < size ? NULL : calloc(1, total);
    if (!chunk)
        return NULL;
    chunk->at = (char *)(chunk + 1);
    chunk->end = chunk->at + size;
    return chunk;
}

void *arena_try_alloc(Arena *arena, size_t size)
{
    size_t align = size >= BIG_ALIGN ? BIG_ALIGN : 16;
    if (size > SIZE_MAX / 2)
        return NULL;
    /* Even an empty allocation gets an address of its own. */
    size_t room = size ? size : 1;
    Chunk *chunk = arena->chunks;
    if (chunk) {
        char *at = align_up(chunk->at, align);
        if (at <= chunk->end && room <= (size_t)(chunk->end - at)) {
            chunk->at = at + room;
            arena->used += size;
            return at;
        }
    }
    if (room + BIG_ALIGN > arena->chunk_size / 4) {
        /* A large block gets a chunk of its own, behind the current one,
         * which may still have room for small ones. */
        Chunk *own = add_chunk(room + BIG_ALIGN);
        if (!own)
            return NULL;
        if (chunk) {
            own->next = chunk->next;
            chunk->next = own;
        } else {
            arena->chunks = own;
        }
        char *at = align_up(own->at, align);
        own->at = own->end;
        arena->used += size;
        return at;
    }
    chunk = add_chunk(arena->chunk_size);
    if (!chunk)
        return NULL;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    if (arena->chunk_size < LAST_CHUNK)
        arena->chunk_size *= 2;
    char *at = align_up(chunk->at, align);
    chunk->at = at + room;
    arena->used += size;
    return at;
}

void *arena_alloc(Arena *arena, size_t size)
{
    void *data = arena_try_alloc(arena, size);
    if (!data)
        die("out of memory: cannot allocate %zu bytes", size);
    return data;
}

void *arena_alloc_array(Arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        die("out of memory: %zu items of %zu bytes", count, size);
    return arena_alloc(arena, total);
}

void *arena_copy(Arena *arena, const void *data, size_t size)
{
    void *copy = arena_alloc(arena, size);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

char *arena_strndup(Arena *arena, const char *text, size_t length)
{
    length = strnlen(text, length);
    char *copy = arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(Arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

/* Printed twice: once for the length, once for the text. */
char *arena_vprintf(Arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0)
        die("cannot format \"%s\"", format);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(Arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

size_t arena_used(const Arena *arena)
{
    return arena->used;
}

/* The old block stays in the arena: over the life of a list these add up to
 * less than its final size. */
void *vec_grow(Arena *arena, void *data, int count, int *capacity, size_t size)
{
    if (*capacity > INT32_MAX / 2)
        die("a list grew past %d items", INT32_MAX / 2);
    int grown = *capacity ? *capacity * 2 : 4;
    void *copy = arena_alloc_array(arena, (size_t)grown, size);
    if (count)
        memcpy(copy, data, (size_t)count * size);
    *capacity = grown;
    return copy;
}
