/* Integers of 4 and 2 bits, as weights of language models have them. Each
 * takes a byte once it is read, and is an i8 or u8 from then on: what reads
 * such constants must not depend on where the type ends. */
#include <string.h>

#include "import/reader.h"

/* Numbers of TensorProto.DataType; older descriptions of the format lack
 * them. */
static const struct {
    int32_t number;
    int bits; /* 0: not supported */
    DType dtype;
    const char *name;
} types[] = {{17, 0, DT_INVALID, "float8e4m3fn"},
             {18, 0, DT_INVALID, "float8e4m3fnuz"},
             {19, 0, DT_INVALID, "float8e5m2"},
             {20, 0, DT_INVALID, "float8e5m2fnuz"},
             {21, 4, DT_U8, "uint4"},
             {22, 4, DT_I8, "int4"},
             {23, 0, DT_INVALID, "float4e2m1"},
             {24, 0, DT_INVALID, "float8e8m0"},
             {25, 2, DT_U8, "uint2"},
             {26, 2, DT_I8, "int2"},
             {14, 0, DT_INVALID, "complex64"},
             {15, 0, DT_INVALID, "complex128"}};

const char *narrow_name(Arena *arena, int32_t number)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number)
            return types[i].name;
    return arena_printf(arena, "number %d", number);
}

int narrow_bits(int32_t number, DType *dtype)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].number == number && types[i].bits) {
            *dtype = types[i].dtype;
            return types[i].bits;
        }
    return 0;
}

/* The first number lies in the low bits. */
Array *narrow_unpack(Arena *arena, const Array *packed, const Array *shape)
{
    Array *array = array_new(arena, shape->dtype, shape->rank, shape->dims);
    const uint8_t *from = packed->data;
    uint8_t *to = array->data;
    int bits = shape->bits, each = 8 / bits;
    int64_t count = array_count(array);
    unsigned mask = (1u << bits) - 1, sign = 1u << (bits - 1);
    for (int64_t i = 0; i < count; i++) {
        unsigned value = from[i / each] >> (i % each * bits) & mask;
        if (shape->dtype == DT_I8)
            value = (value ^ sign) - sign;
        to[i] = (uint8_t)value;
    }
    array->bits = bits;
    return array;
}

/* Movement passes them on. Others, QuantizeLinear above all, would take the
 * byte's range for the number's. */
bool narrow_check(Graph *g)
{
    bool ok = true;
    Arena *scratch = arena_new();
    bool *narrow = ARENA_ARRAY(scratch, bool, g->next_id + 1);
    for (int i = 0; i < g->tensors.count; i++) {
        const Tensor *t = g->tensors.data[i];
        narrow[t->id] = t->value && t->value->bits;
    }
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *node = g->nodes.data[i];
        const char *op = op_name(node->op);
        const Attr *fill = attrs_find(&node->attrs, "value");
        bool makes = fill && fill->kind == ATTR_TENSOR && fill->tensor->bits;
        const Tensor *read = NULL;
        for (int k = 0; k < node->inputs.count; k++)
            if (node->inputs.data[k] && narrow[node->inputs.data[k]->id])
                read = node->inputs.data[k];
        if (!makes &&
            (!read || !strcmp(op, "DequantizeLinear") || !strcmp(op, "Cast")))
            continue;
        if (read && !(node->op->traits & OP_INJECTIVE))
            ok = diag_error(g->diag,
                            "%s \"%s\" (output %s): its operand %s has "
                            "integers of less than 8 bits, which only "
                            "DequantizeLinear, Cast and what moves elements "
                            "may read",
                            op, node->name, node->outputs.data[0]->name,
                            read->name);
        for (int k = 0; k < node->outputs.count; k++)
            if (node->outputs.data[k])
                narrow[node->outputs.data[k]->id] = true;
    }
    for (int i = 0; i < g->outputs.count; i++)
        if (narrow[g->outputs.data[i]->id])
            ok = diag_error(g->diag,
                            "output %s has integers of less than 8 bits, "
                            "which is not supported",
                            g->outputs.data[i]->name);
    arena_free(scratch);
    return ok;
}
