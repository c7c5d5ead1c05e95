#include "harness/op_types.h"

#include <string.h>

#include "ops/op.h"

/* Shapes that the type rules of operators are asked with. */
static const struct Shape {
    int rank;
    int64_t dims[MAX_RANK];
} shapes[] = {
    {4, {2, 2, 2, 2}}, {3, {2, 2, 2}}, {2, {2, 2}},
    {1, {2}},          {0, {0}},       {5, {2, 2, 2, 2, 2}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void set_required(Arena *arena, const Op *op, Attrs *attrs)
{
    static const int64_t ones[] = {1, 1};
    for (const AttrSpec *a = op->attrs; a && a->name; a++) {
        if (!a->required)
            continue;
        if (a->kind == ATTR_INT || a->kind == ATTR_FLAG)
            attrs_set_int(arena, attrs, a->name, 1);
        else if (a->kind == ATTR_FLOAT)
            attrs_set_float(arena, attrs, a->name, 1);
        else if (a->kind == ATTR_INTS)
            attrs_set_ints(arena, attrs, a->name, ones, 2);
        else if (a->kind == ATTR_STRING) /* a direction of BitShift */
            attrs_set_string(arena, attrs, a->name, "LEFT");
    }
}

/* A made-up node: operands of one shape, all but the first, and perhaps the
 * last, of another type, known ones or not. */
typedef struct Probe {
    const Op *op;
    const struct Shape *shape;
    DType first, others;
    bool first_known, others_known, last_is_first;
} Probe;

typedef enum Answer { FITS, OTHER_FAULT, WRONG_TYPE } Answer;

static Tensor *add_operand(Graph *g, const Probe *p, DType dtype, bool known)
{
    TensorType type = {.dtype = dtype, .rank = p->shape->rank};
    for (int k = 0; k < type.rank; k++)
        type.dims[k] = extent_const(p->shape->dims[k]);
    if (!known)
        return graph_add_input(g, NULL, type);
    Array *ones = array_new(g->arena, dtype, type.rank, p->shape->dims);
    for (int64_t i = 0; i < array_count(ones); i++)
        array_set(ones, i, 1);
    return graph_add_constant(g, NULL, ones);
}

static Answer ask(const Probe *p)
{
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, NULL);
    Graph *g = graph_new(arena, diag, "probe", ops_builtin());
    Tensor *inputs[MAX_OP_INPUTS];
    int count = p->op->min_inputs > 0 ? p->op->min_inputs : 1;
    int outputs = p->op->min_outputs > 0 ? p->op->min_outputs : 1;
    for (int i = 0; i < count; i++) {
        bool is_first = i == 0 || (p->last_is_first && i == count - 1);
        inputs[i] = is_first ? add_operand(g, p, p->first, p->first_known)
                             : add_operand(g, p, p->others, p->others_known);
    }
    const char *name =
        arena_printf(arena, "%s::%s", p->op->domain, p->op->name);
    Node *node = graph_add_node(g, *p->op->domain ? name : p->op->name, NULL,
                                inputs, count, outputs);
    set_required(arena, p->op, &node->attrs);
    Answer answer = op_infer(g, node) ? FITS : OTHER_FAULT;
    for (int i = 0; answer && i < diag->errors.count; i++)
        if (strstr(diag->errors.data[i], "has the element type"))
            answer = WRONG_TYPE;
    arena_free(arena);
    return answer;
}

/* The best answer of all shapes and types of the other operands; `worst`, that
 * of the shape with the worst one. */
static Answer ask_all(const Op *op, DType first, Answer *worst)
{
    const DType others[] = {first, DT_I64, DT_F32, DT_BOOL};
    Answer best = WRONG_TYPE;
    *worst = FITS;
    for (int i = 0; i < SHAPES; i++) {
        Answer of_shape = WRONG_TYPE;
        for (int k = 0; k < 4; k++)
            for (int known = 0; known < 8; known++) {
                Probe p = {.op = op,
                           .shape = &shapes[i],
                           .first = first,
                           .others = others[k],
                           .first_known = known & 1,
                           .others_known = known & 2,
                           .last_is_first = known & 4};
                Answer answer = ask(&p);
                of_shape = answer < of_shape ? answer : of_shape;
            }
        best = of_shape < best ? of_shape : best;
        *worst = of_shape > *worst ? of_shape : *worst;
    }
    return best;
}

unsigned op_element_types(const Op *op)
{
    unsigned fitting = 0, possible = 0;
    if (op->max_inputs == 0)
        return 0;
    /* Strings are constants, which no kernel computes. */
    for (int type = DT_INVALID + 1; type < DT_STRING; type++) {
        Answer worst, best = ask_all(op, (DType)type, &worst);
        if (best == FITS)
            fitting |= 1u << type;
        if (worst != WRONG_TYPE)
            possible |= 1u << type;
    }
    /* No made-up node of the operator may be right; then it is all that no
     * shape was refused for. */
    return fitting ? fitting : possible;
}

void op_types_print(Str *out, unsigned types)
{
    static const struct {
        const char *name;
        unsigned types;
    } groups[] = {
        {"float", 1u << DT_F64 | 1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16},
        {"int", 1u << DT_I64 | 1u << DT_I32 | 1u << DT_I16 | 1u << DT_I8},
        {"uint", 1u << DT_U64 | 1u << DT_U32 | 1u << DT_U16 | 1u << DT_U8},
    };
    const char *between = "";
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if ((types & groups[i].types) == groups[i].types) {
            str_addf(out, "%s%s", between, groups[i].name);
            types &= ~groups[i].types;
            between = " ";
        }
    for (int type = DT_INVALID + 1; type < DT_COUNT; type++)
        if (types >> type & 1) {
            str_addf(out, "%s%s", between, dtype_name((DType)type));
            between = " ";
        }
}
