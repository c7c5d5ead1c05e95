/* Loops: one kernel's loop nest, what code generators emit.
 *
 * Buffers are flat here: every access is a load or store at one storage
 * offset (elements). A vector loop's body is scalar code that runs for all
 * lanes at once; its iterations must be independent. */
#ifndef ASSAY_TENSOR_LOOPS_H
#define ASSAY_TENSOR_LOOPS_H

#include "base/diag.h"
#include "base/vec.h"
#include "tensor/definition.h"

typedef enum LoopKind {
    LOOP_SERIAL,
    LOOP_PARALLEL, /* outermost only: iterations run on any thread */
    LOOP_VECTOR,   /* innermost only */
    LOOP_UNROLLED
} LoopKind;

typedef enum StmtKind {
    STMT_BLOCK,
    STMT_FOR,
    STMT_STORE,
    STMT_IF,
    STMT_PREFETCH /* a hint; the offset may lie outside the buffer */
} StmtKind;

typedef struct Stmt Stmt;
struct Stmt {
    StmtKind kind;
    /* STMT_BLOCK */
    Vec(Stmt *) list;
    /* STMT_FOR: var runs from 0 to extent - 1, or to `limit` - 1 when that is
     * less: an i64 that is known at run time only and may be 0 or below.
     * NULL: none. */
    LoopKind loop;
    const Var *var;
    int64_t extent;
    const Expr *limit;
    Stmt *body; /* STMT_FOR, STMT_IF */
    /* STMT_STORE: buffer[offset] = value; STMT_PREFETCH: buffer[offset] */
    const Buffer *buffer;
    const Expr *offset;
    const Expr *value;
    /* STMT_IF */
    const Expr *cond;
};

typedef struct Kernel {
    Arena *arena;
    const char *name; /* operator, shape, hash: stable across commits */
    /* In call order: inputs, outputs, then global temporaries (workspace),
     * which the memory plan places. */
    Vec(Buffer *) params;
    Vec(Buffer *) temps; /* register and local scope */
    Stmt *body;
    /* Elementary functions expand with fused multiply-adds. */
    bool fused_math;
    uint64_t hash;       /* of the printed form without the name */
    double flops, bytes; /* definition_flops, definition_bytes */
} Kernel;

Stmt *stmt_block(Arena *a);
/* No iterations give an empty block. */
Stmt *stmt_for(Arena *a, LoopKind kind, const Var *var, int64_t extent,
               Stmt *body);
/* With a limit (or NULL), which is dropped where it is a number. */
Stmt *stmt_for_limited(Arena *a, LoopKind kind, const Var *var, int64_t extent,
                       const Expr *limit, Stmt *body);
Stmt *stmt_store(Arena *a, const Buffer *buffer, const Expr *offset,
                 const Expr *value);
/* Brings the cache line of buffer[offset] near. */
Stmt *stmt_prefetch(Arena *a, const Buffer *buffer, const Expr *offset);
Stmt *stmt_if(Arena *a, const Expr *cond, Stmt *body);
/* `value` instead of a variable in every expression, in place. */
void stmt_bind(Arena *a, Stmt *s, const Var *var, const Expr *value);

const char *loop_kind_name(LoopKind kind); /* "for", "parallel", ... */
/* Storage elements of a buffer. */
int64_t buffer_size(const Buffer *buffer);

void kernel_print(Str *out, const Kernel *kernel);
Kernel *kernel_parse(Arena *arena, Diag *diag, const char *text);
void kernel_verify(const Kernel *kernel); /* die() on a violation */
uint64_t kernel_hash(const Kernel *kernel);

/* The interpreter, the oracle without LLVM. `data[i]` is the storage of
 * params[i], in its layout. Every access is checked against the buffer's
 * size: false with a diagnostic on one outside, or a read of an element of
 * a temporary that was never written. */
bool kernel_interpret(const Kernel *kernel, void *const *data, Diag *diag);

/* Exp, log, erf, tanh, sin, cos and pow as arithmetic on f32 or f64 (source
 * and error in tensor/math.c), and f16 and bf16 as f32 that is rounded after
 * each operation (tensor/half.h): what is left of these types is loads, and
 * bitcasts from and to u16. Every backend and the interpreter emit this
 * expansion, so that all agree and none needs libm. */
const Expr *math_expand(Arena *a, const Expr *x, bool fused);

#endif
