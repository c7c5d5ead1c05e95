/* Hashing (xxhash) and a string-keyed map. */
#ifndef ASSAY_BASE_HASH_H
#define ASSAY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);
uint64_t hash_text(const char *text);

/* Map from string to pointer; keys are not copied. */
typedef struct Map {
    Arena *arena;
    const char **keys;
    void **values;
    int count, capacity;
} Map;

void map_init(Map *map, Arena *arena);
void *map_get(const Map *map, const char *key); /* NULL when absent */
void map_set(Map *map, const char *key, void *value);

#endif
