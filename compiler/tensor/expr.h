/* Expressions: scalar computations inside definitions and loops.
 *
 * Immutable and shared: an Expr may be reached through several parents (a
 * DAG); consumers memoize by pointer where that matters. All live in an
 * arena. Index arithmetic is i64; division and modulo floor and their
 * divisor is positive. */
#ifndef ASSAY_TENSOR_EXPR_H
#define ASSAY_TENSOR_EXPR_H

#include "base/array.h"
#include "base/layout.h"

typedef struct Expr Expr;
typedef struct Buffer Buffer;

/* A loop or reduction variable, i64. Compared by pointer. */
typedef struct Var {
    const char *name;
} Var;

typedef enum Scope {
    SCOPE_GLOBAL,   /* memory; temporaries of this scope are workspace */
    SCOPE_LOCAL,    /* small array on the stack of one thread */
    SCOPE_REGISTER, /* must become SSA values: constant indices only */
    SCOPE_SHARED    /* GPU block memory */
} Scope;

typedef enum BufferRole { BUF_INPUT, BUF_OUTPUT, BUF_TEMP } BufferRole;

/* Logical shape; `layout` says how it lies in memory (a schedule sets it;
 * row-major at first).
 *
 * A dimension whose extent is known at run time only has its upper bound in
 * `dims`, by which storage and strides go, and the extent as `limit`: an i64
 * expression of reads of a buffer `is_extents`. Elements behind a limit are
 * in the storage, hold anything and are not to be relied on. */
struct Buffer {
    const char *name; /* unique in its definition */
    BufferRole role;
    DType dtype;
    int rank;
    int64_t dims[MAX_RANK];
    const Expr *limit[MAX_RANK]; /* NULL: none; definitions only */
    bool is_constant;            /* an input known at compile time (weights) */
    bool is_extents;             /* i64 numbers that the runtime knows */
    bool is_inner;               /* a step of an operator; see stage_end */
    Layout layout;
    Scope scope;
};

typedef enum ExprKind {
    /* leaves */
    EX_INT,   /* i: any integer type or bool */
    EX_FLOAT, /* f */
    EX_VAR,   /* var, i64 */
    EX_READ,  /* buffer at logical indices; arg[0..count-1]; `outside` */
    EX_LOAD,  /* loops only: buffer at one storage offset, arg[0] */
    /* unary: arg[0] */
    EX_NEG,
    EX_ABS,
    EX_NOT,
    EX_FLOOR,
    EX_CEIL,
    EX_ROUND, /* half to even */
    EX_SQRT,
    EX_EXP,
    EX_LOG,
    EX_ERF,
    EX_TANH,
    EX_SIN,
    EX_COS,
    EX_CAST,    /* to dtype; float to integer truncates, saturating */
    EX_BITCAST, /* same size */
    /* binary */
    EX_ADD,
    EX_SUB,
    EX_MUL,
    EX_DIV, /* floats divide; integers floor */
    EX_MOD, /* integers floor; sign of the divisor */
    EX_MIN, /* NaN if either is NaN */
    EX_MAX,
    EX_POW,
    EX_AND, /* bool or bitwise */
    EX_OR,
    EX_XOR,
    EX_SHL,
    EX_SHR, /* logical for unsigned, arithmetic for signed */
    EX_LT,  /* comparisons give DT_BOOL; ordered: false on NaN ... */
    EX_LE,
    EX_EQ,
    EX_NE, /* ... but NE, which is true */
    /* ternary */
    EX_SELECT, /* arg[0] ? arg[1] : arg[2]; the other side is not evaluated */
    EX_FMA,    /* arg[0] * arg[1] + arg[2], rounded once */
    EX_KIND_COUNT
} ExprKind;

struct Expr {
    ExprKind kind;
    DType dtype;
    int count; /* arguments */
    const Expr **arg;
    union {
        int64_t i;
        double f; /* holds the f32 value exactly when dtype is f32 */
        const Var *var;
        const Buffer *buffer;
    };
    /* EX_READ: value where an index lies outside the buffer's logical
     * extents; NULL: the indices are known to be inside. */
    const Expr *outside;
};

/* Builders. They check dtypes (die() on a mismatch) and fold constants and
 * identities that keep every bit. */
const Expr *expr_int(Arena *a, int64_t value); /* i64 */
const Expr *expr_const(Arena *a, DType dtype, double value);
const Expr *expr_const_int(Arena *a, DType dtype, int64_t value);
const Expr *expr_var(Arena *a, const Var *var);
const Expr *expr_unary(Arena *a, ExprKind kind, const Expr *x);
const Expr *expr_binary(Arena *a, ExprKind kind, const Expr *x, const Expr *y);
const Expr *expr_select(Arena *a, const Expr *cond, const Expr *then,
                        const Expr *other);
const Expr *expr_fma(Arena *a, const Expr *x, const Expr *y, const Expr *z);
const Expr *expr_cast(Arena *a, DType dtype, const Expr *x);
const Expr *expr_bitcast(Arena *a, DType dtype, const Expr *x);
/* `index` holds buffer->rank i64 expressions. */
const Expr *expr_read(Arena *a, const Buffer *buffer,
                      const Expr *const *index);
/* Like expr_read, with the value `outside` for indices out of bounds. */
const Expr *expr_read_padded(Arena *a, const Buffer *buffer,
                             const Expr *const *index, const Expr *outside);
const Expr *expr_load(Arena *a, const Buffer *buffer, const Expr *offset);

/* Shorthands. */
#define expr_add(a, x, y) expr_binary((a), EX_ADD, (x), (y))
#define expr_sub(a, x, y) expr_binary((a), EX_SUB, (x), (y))
#define expr_mul(a, x, y) expr_binary((a), EX_MUL, (x), (y))
#define expr_div(a, x, y) expr_binary((a), EX_DIV, (x), (y))
#define expr_max(a, x, y) expr_binary((a), EX_MAX, (x), (y))
#define expr_min(a, x, y) expr_binary((a), EX_MIN, (x), (y))
const Expr *expr_add_int(Arena *a, const Expr *x, int64_t y);
const Expr *expr_mul_int(Arena *a, const Expr *x, int64_t y);

bool expr_equal(const Expr *x, const Expr *y); /* structural */
bool expr_is_int(const Expr *x, int64_t value);
bool expr_uses_var(const Expr *x, const Var *var);
/* The node `x` over other arguments, through the builders above. */
const Expr *expr_rebuild(Arena *a, const Expr *x, const Expr *const *arg,
                         const Expr *outside);
/* Replaces variables and buffers' reads; sharing is kept. */
typedef struct ExprSubst ExprSubst;
struct ExprSubst {
    /* Returns the replacement of a leaf (EX_VAR, EX_READ, EX_LOAD; its
     * arguments already rewritten) or NULL to keep it. */
    const Expr *(*leaf)(ExprSubst *subst, const Expr *leaf);
    Arena *arena;
    void *context;
};
const Expr *expr_rewrite(ExprSubst *subst, const Expr *x);
/* `value` instead of a variable. */
const Expr *expr_bind(Arena *a, const Expr *x, const Var *var,
                      const Expr *value);

/* Index division: rounds down; the divisor is positive. */
int64_t floor_divide(int64_t x, int64_t y);
const char *expr_kind_name(ExprKind kind); /* "add", "exp", ... */
/* Infix text: "max(x[n, c] * 2 + b[c], 0.0)". A DAG prints as a tree. */
void expr_print(Str *out, const Expr *x);

#endif
