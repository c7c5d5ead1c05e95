/* Vec(T): a growable array whose memory comes from an arena.
 *
 *     Vec(Node *) nodes = {0};
 *     vec_push(arena, &nodes, node);
 *     for (int i = 0; i < nodes.count; i++) use(nodes.data[i]);
 */
#ifndef ASSAY_BASE_VEC_H
#define ASSAY_BASE_VEC_H

#include "base/arena.h"

#define Vec(T)                                                                \
    struct {                                                                  \
        T *data;                                                              \
        int count;                                                            \
        int capacity;                                                         \
    }

void *vec_grow(Arena *arena, void *data, int count, int *capacity,
               size_t size);

#define vec_push(arena, vec, item)                                            \
    do {                                                                      \
        if ((vec)->count == (vec)->capacity)                                  \
            (vec)->data = vec_grow((arena), (vec)->data, (vec)->count,        \
                                   &(vec)->capacity, sizeof *(vec)->data);    \
        (vec)->data[(vec)->count++] = (item);                                 \
    } while (0)

/* Removes item `index`, keeping the order of the rest. */
#define vec_remove(vec, index)                                                \
    do {                                                                      \
        for (int vec_i = (index) + 1; vec_i < (vec)->count; vec_i++)          \
            (vec)->data[vec_i - 1] = (vec)->data[vec_i];                      \
        (vec)->count--;                                                       \
    } while (0)

#endif
