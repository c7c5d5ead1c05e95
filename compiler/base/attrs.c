/* Attributes: lists are short (a dozen at most), so a linear search over a
 * sorted array is both the simplest and the fastest form. Sorted by name,
 * because the printed form, and with it every hash made of it, must not
 * depend on the order in which attributes were set. */
#include "base/attrs.h"

#include <string.h>

const Attr *attrs_find(const Attrs *attrs, const char *name)
{
    for (int i = 0; i < attrs->list.count; i++)
        if (strcmp(attrs->list.data[i].name, name) == 0)
            return &attrs->list.data[i];
    return NULL;
}

/* The getters fall back as well when the attribute has another kind: type
 * rules have refused such a node before anyone reads it. */
int64_t attrs_int(const Attrs *attrs, const char *name, int64_t fallback)
{
    const Attr *attr = attrs_find(attrs, name);
    return attr && attr->kind == ATTR_INT ? attr->i : fallback;
}

double attrs_float(const Attrs *attrs, const char *name, double fallback)
{
    const Attr *attr = attrs_find(attrs, name);
    return attr && attr->kind == ATTR_FLOAT ? attr->f : fallback;
}

const char *attrs_string(const Attrs *attrs, const char *name,
                         const char *fallback)
{
    const Attr *attr = attrs_find(attrs, name);
    return attr && attr->kind == ATTR_STRING ? attr->s : fallback;
}

const int64_t *attrs_ints(const Attrs *attrs, const char *name, int *count)
{
    const Attr *attr = attrs_find(attrs, name);
    bool found = attr && attr->kind == ATTR_INTS;
    *count = found ? attr->count : 0;
    return found ? attr->ints : NULL;
}

/* Strings may come from a file that is unmapped later. */
static const char *const *copy_strings(Arena *arena, const Attr *attr)
{
    const char **copy = ARENA_ARRAY(arena, const char *, attr->count);
    for (int i = 0; i < attr->count; i++)
        copy[i] = arena_strdup(arena, attr->strings[i]);
    return copy;
}

/* Everything an attribute points to is copied, so that the caller may pass
 * locals and literals alike. */
static Attr copy_attr(Arena *arena, Attr attr)
{
    size_t count = (size_t)attr.count;
    attr.name = arena_strdup(arena, attr.name);
    switch (attr.kind) {
    case ATTR_INT:
    case ATTR_FLOAT:
        break;
    case ATTR_STRING:
        attr.s = arena_strdup(arena, attr.s);
        break;
    case ATTR_INTS:
        attr.ints = arena_copy(arena, attr.ints, count * sizeof(int64_t));
        break;
    case ATTR_FLOATS:
        attr.floats = arena_copy(arena, attr.floats, count * sizeof(double));
        break;
    case ATTR_STRINGS:
        attr.strings = copy_strings(arena, &attr);
        break;
    case ATTR_TENSOR: {
        const Array *from = attr.tensor;
        Array *to = array_new(arena, from->dtype, from->rank, from->dims);
        if (array_bytes(from))
            memcpy(to->data, from->data, array_bytes(from));
        attr.tensor = to;
        break;
    }
    }
    return attr;
}

void attrs_set(Arena *arena, Attrs *attrs, Attr attr)
{
    attr = copy_attr(arena, attr);
    int at = 0, order = 1;
    while (at < attrs->list.count) {
        order = strcmp(attrs->list.data[at].name, attr.name);
        if (order >= 0)
            break;
        at++;
    }
    if (at < attrs->list.count && order == 0) {
        attrs->list.data[at] = attr;
        return;
    }
    vec_push(arena, &attrs->list, attr);
    for (int i = attrs->list.count - 1; i > at; i--)
        attrs->list.data[i] = attrs->list.data[i - 1];
    attrs->list.data[at] = attr;
}

void attrs_set_int(Arena *arena, Attrs *attrs, const char *name, int64_t v)
{
    attrs_set(arena, attrs, (Attr){.name = name, .kind = ATTR_INT, .i = v});
}

void attrs_set_float(Arena *arena, Attrs *attrs, const char *name, double v)
{
    attrs_set(arena, attrs, (Attr){.name = name, .kind = ATTR_FLOAT, .f = v});
}

void attrs_set_string(Arena *arena, Attrs *attrs, const char *name,
                      const char *v)
{
    attrs_set(arena, attrs, (Attr){.name = name, .kind = ATTR_STRING, .s = v});
}

void attrs_set_ints(Arena *arena, Attrs *attrs, const char *name,
                    const int64_t *v, int count)
{
    attrs_set(
        arena, attrs,
        (Attr){.name = name, .kind = ATTR_INTS, .count = count, .ints = v});
}

/* Removing what is not there is fine: rewriting rules drop attributes that
 * only some versions have. */
void attrs_remove(Attrs *attrs, const char *name)
{
    for (int i = 0; i < attrs->list.count; i++) {
        if (strcmp(attrs->list.data[i].name, name) == 0) {
            vec_remove(&attrs->list, i);
            return;
        }
    }
}

static bool attr_equal(const Attr *a, const Attr *b)
{
    if (strcmp(a->name, b->name) != 0 || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case ATTR_INT:
        return a->i == b->i;
    case ATTR_FLOAT:
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case ATTR_STRING:
        return strcmp(a->s, b->s) == 0;
    case ATTR_INTS:
        return a->count == b->count &&
               memcmp(a->ints, b->ints, (size_t)a->count * sizeof *a->ints) ==
                   0;
    case ATTR_FLOATS:
        return a->count == b->count &&
               memcmp(a->floats, b->floats,
                      (size_t)a->count * sizeof *a->floats) == 0;
    case ATTR_STRINGS:
        for (int i = 0; i < a->count && a->count == b->count; i++)
            if (strcmp(a->strings[i], b->strings[i]) != 0)
                return false;
        return a->count == b->count;
    case ATTR_TENSOR:
        return array_equal(a->tensor, b->tensor);
    }
    return false;
}

bool attrs_equal(const Attrs *a, const Attrs *b)
{
    bool equal = a->list.count == b->list.count;
    for (int i = 0; equal && i < a->list.count; i++)
        equal = attr_equal(&a->list.data[i], &b->list.data[i]);
    return equal;
}
