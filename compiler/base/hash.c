/* Hashes go into kernel names, manifests and result files: XXH3 gives the
 * same value on every machine and in every version of the library. */
#include "base/hash.h"

#include <string.h>

/* Inline, so that nothing that links this library needs libxxhash. */
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

uint64_t hash_text(const char *text)
{
    return hash_bytes(text, strlen(text), 0);
}

void map_init(Map *map, Arena *arena)
{
    *map = (Map){.arena = arena};
}

/* Linear probing: the place of `key`, or the free place where it goes. */
static int find_place(const Map *map, const char *key)
{
    unsigned mask = (unsigned)map->capacity - 1;
    unsigned place = (unsigned)hash_text(key) & mask;
    while (map->keys[place] && strcmp(map->keys[place], key) != 0)
        place = (place + 1) & mask;
    return (int)place;
}

void *map_get(const Map *map, const char *key)
{
    if (!map->count)
        return NULL;
    int place = find_place(map, key);
    return map->keys[place] ? map->values[place] : NULL;
}

/* Rehashed in the order of the old table, which follows from the keys alone:
 * maps never bring in an order of their own, as nobody walks them. */
static void grow(Map *map)
{
    Map old = *map;
    map->capacity = old.capacity ? old.capacity * 2 : 16;
    map->keys = ARENA_ARRAY(map->arena, const char *, map->capacity);
    map->values = ARENA_ARRAY(map->arena, void *, map->capacity);
    for (int i = 0; i < old.capacity; i++) {
        if (!old.keys[i])
            continue;
        int place = find_place(map, old.keys[i]);
        map->keys[place] = old.keys[i];
        map->values[place] = old.values[i];
    }
}

void map_set(Map *map, const char *key, void *value)
{
    /* At most half full, so that probing stays short. */
    if (map->count * 2 >= map->capacity)
        grow(map);
    int place = find_place(map, key);
    if (!map->keys[place])
        map->count++;
    map->keys[place] = key;
    map->values[place] = value;
}
