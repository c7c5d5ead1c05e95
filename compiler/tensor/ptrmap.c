/* Open addressing with linear probing, at most half full. */
#include "tensor/ptrmap.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/diag.h"

static size_t slot(const PtrMap *map, const void *key)
{
    uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    /* Pointers are aligned, and the low bits of a product depend on the low
     * bits of its factors only: take higher ones. */
    size_t i = (size_t)(h >> 20) & (map->capacity - 1);
    while (map->keys[i] && map->keys[i] != key)
        i = (i + 1) & (map->capacity - 1);
    return i;
}

const void *ptrmap_get(const PtrMap *map, const void *key)
{
    return map->capacity ? map->values[slot(map, key)] : NULL;
}

void ptrmap_set(PtrMap *map, const void *key, const void *value)
{
    if (map->count * 2 >= map->capacity) {
        PtrMap old = *map;
        map->capacity = old.capacity ? old.capacity * 2 : 64;
        map->keys = calloc(map->capacity, sizeof *map->keys);
        map->values = calloc(map->capacity, sizeof *map->values);
        if (!map->keys || !map->values)
            die("out of memory");
        for (size_t i = 0; i < old.capacity; i++) {
            if (!old.keys[i])
                continue;
            size_t at = slot(map, old.keys[i]);
            map->keys[at] = old.keys[i];
            map->values[at] = old.values[i];
        }
        free(old.keys);
        free(old.values);
    }
    size_t at = slot(map, key);
    if (!map->keys[at]) {
        map->keys[at] = key;
        map->count++;
    }
    map->values[at] = value;
}

void ptrmap_free(PtrMap *map)
{
    free(map->keys);
    free(map->values);
    *map = (PtrMap){0};
}
