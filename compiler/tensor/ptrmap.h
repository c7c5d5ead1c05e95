/* PtrMap: pointer to pointer, for memoizing over expression DAGs. On the
 * heap; starts as {0}. */
#ifndef ASSAY_TENSOR_PTRMAP_H
#define ASSAY_TENSOR_PTRMAP_H

#include <stddef.h>

typedef struct PtrMap {
    const void **keys;
    const void **values;
    size_t count, capacity;
} PtrMap;

const void *ptrmap_get(const PtrMap *map, const void *key); /* or NULL */
void ptrmap_set(PtrMap *map, const void *key, const void *value);
void ptrmap_free(PtrMap *map);

#endif
