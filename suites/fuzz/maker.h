/* What the makers of random graphs share. Private to suites/fuzz. */
#ifndef ASSAY_SUITES_FUZZ_MAKER_H
#define ASSAY_SUITES_FUZZ_MAKER_H

#include "suites/fuzz/random_graph.h"

enum {
    FLOATS = 1 << DT_F64 | 1 << DT_F32 | 1 << DT_F16,
    INDICES = 1 << DT_I64 | 1 << DT_I32,
    UNSIGNED = 1 << DT_U64 | 1 << DT_U32 | 1 << DT_U16 | 1 << DT_U8,
    BYTES = 1 << DT_U8 | 1 << DT_I8,
    INTS = INDICES | UNSIGNED | 1 << DT_I8 | 1 << DT_I16,
    NUMBERS = FLOATS | INTS,
    BOOLS = 1 << DT_BOOL,
    ANY = NUMBERS | BOOLS
};

typedef struct Maker {
    Graph *g;
    Choices *c;
    Vec(Tensor *) pool; /* what there is so far */
    /* Constants and inputs are small multiples of 1/4, so that sums of
     * products are exact. */
    bool dyadic;
    /* Of the body of an If or Loop, which takes no further inputs. */
    bool is_body;
    /* Inputs may get named extents. */
    bool open;
    int names;
} Maker;

/* One way to add nodes; false when what there is does not fit. Whatever it
 * added that has no type is taken away again. */
typedef struct MakerRow {
    const char *name; /* NULL ends a list */
    bool (*make)(Maker *m);
} MakerRow;

extern const MakerRow makers_elementwise[];
extern const MakerRow makers_layers[];
extern const MakerRow makers_reduce[];
extern const MakerRow makers_move[];
extern const MakerRow makers_index[];
extern const MakerRow makers_quantized[];
extern const MakerRow makers_control[];
extern const MakerRow makers_rows[];

/* Adds nodes by one row of one family; what they give goes to the pool. */
bool maker_step(Maker *m);
/* Changes a graph that is there; see mutate.c. False: it did not fit. */
bool maker_mutate(Maker *m);

/* ---- operands. All return what fits, made anew if need be. */

/* A result with one of the element types and a rank in that range. */
Tensor *pick(Maker *m, unsigned types, int lowest, int highest);
/* A float one, cast if there is none. */
Tensor *pick_float(Maker *m, int lowest, int highest);
/* One of that very type, or x itself. */
Tensor *pick_like(Maker *m, Tensor *x);
Tensor *new_input(Maker *m, DType dtype, int rank);

int64_t extent(Maker *m); /* 1 to 31, rather small */
int64_t dim(const Tensor *t, int axis);
bool is_open(const Tensor *t, int axis);
bool is_static(const Tensor *t);
bool is_type(const Tensor *t, unsigned types);

/* Constants. `size` scales floats; integers are small. */
Tensor *weights(Maker *m, DType dtype, int rank, const int64_t *dims,
                double mean, double size);
Tensor *vector(Maker *m, DType dtype, int64_t count, double mean, double size);
Tensor *scalar(Maker *m, DType dtype, double value);
Tensor *ints(Maker *m, const int64_t *values, int count);
Tensor *one_int(Maker *m, int64_t value); /* i64[1] */
/* In 0 .. limit - 1, of a shape; constant, or computed from what there is.
 * Some constants count from the end. */
Tensor *indices(Maker *m, int rank, const int64_t *dims, int64_t limit);

/* ---- nodes. NULL operands and results propagate. */

Tensor *apply(Maker *m, const char *op, Attrs attrs, Tensor *a, Tensor *b,
              Tensor *c);
/* Operands may be NULL: left out. */
Node *apply_list(Maker *m, const char *op, Attrs attrs, Tensor *const *inputs,
                 int count, int outputs);
Tensor *apply1(Maker *m, const char *op, Tensor *x);
Tensor *cast(Maker *m, Tensor *x, DType to);
Tensor *transpose(Maker *m, Tensor *x, const int64_t *perm);
/* In -1..1. */
Tensor *squash(Maker *m, Tensor *x);
/* At least 1/2. */
Tensor *positive(Maker *m, Tensor *x);

Attrs attr_int(Maker *m, const char *name, int64_t value);
void set_int(Maker *m, Attrs *attrs, const char *name, int64_t value);
void set_float(Maker *m, Attrs *attrs, const char *name, double value);
void set_ints(Maker *m, Attrs *attrs, const char *name, const int64_t *v,
              int count);
void set_text(Maker *m, Attrs *attrs, const char *name, const char *text);
/* One of a list of texts that ends with NULL; NULL itself: left out. */
void choose_text(Maker *m, Attrs *attrs, const char *name,
                 const char *const *texts);
bool flip(Maker *m);
/* Once in `times`. */
bool rarely(Maker *m, int times);

/* Brings the nodes of another graph in. Its inputs become results of that
 * type, or inputs. False when they do not type here. */
bool maker_graft(Maker *m, const Graph *from);

#endif
