/* Attributes of an operator: a short list of named values. */
#ifndef ASSAY_BASE_ATTRS_H
#define ASSAY_BASE_ATTRS_H

#include "base/array.h"
#include "base/vec.h"

typedef enum AttrKind {
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_STRING,
    ATTR_INTS,
    ATTR_FLOATS,
    ATTR_STRINGS,
    ATTR_TENSOR
} AttrKind;

typedef struct Attr {
    const char *name;
    AttrKind kind;
    int count; /* of INTS, FLOATS, STRINGS */
    union {
        int64_t i;
        double f;
        const char *s;
        const int64_t *ints;
        const double *floats;
        const char *const *strings;
        const Array *tensor;
    };
} Attr;

typedef struct Attrs {
    Vec(Attr) list; /* sorted by name, so that printing is canonical */
} Attrs;

const Attr *attrs_find(const Attrs *attrs, const char *name);
int64_t attrs_int(const Attrs *attrs, const char *name, int64_t fallback);
double attrs_float(const Attrs *attrs, const char *name, double fallback);
const char *attrs_string(const Attrs *attrs, const char *name,
                         const char *fallback);
/* The integers and their count; NULL and 0 when absent. */
const int64_t *attrs_ints(const Attrs *attrs, const char *name, int *count);
/* The same attributes with the same values, bit for bit. */
bool attrs_equal(const Attrs *a, const Attrs *b);
/* Replaces an attribute of that name. Values are copied to the arena. */
void attrs_set(Arena *arena, Attrs *attrs, Attr attr);
void attrs_set_int(Arena *arena, Attrs *attrs, const char *name, int64_t v);
void attrs_set_float(Arena *arena, Attrs *attrs, const char *name, double v);
void attrs_set_string(Arena *arena, Attrs *attrs, const char *name,
                      const char *v);
void attrs_set_ints(Arena *arena, Attrs *attrs, const char *name,
                    const int64_t *v, int count);
void attrs_remove(Attrs *attrs, const char *name);

#endif
