/* What the files of attention share. Private to ops/. */
#ifndef ASSAY_OPS_ATTENTION_H
#define ASSAY_OPS_ATTENTION_H

#include "ops/op.h"

/* Operands and results by place. */
enum { IN_Q, IN_K, IN_V, IN_MASK, IN_PAST_KEY, IN_PAST_VALUE, IN_LENGTHS };
enum { OUT_Y, OUT_KEY, OUT_VALUE, OUT_SCORES };
/* Everything about shapes; -1: not known, which is refused. */
typedef struct Heads {
    bool flat; /* operands are [batch, sequence, heads * size] */
    int64_t q_heads, kv_heads, size, v_size;
    Extent batch, queries, keys, past, total;
    Extent offset; /* keys before that of the first query */
} Heads;

Heads attention_heads(Arena *arena, const Node *node);
/* To the plain form, for the template. */
bool decompose_attention(Graph *g, Node *node);

#endif
