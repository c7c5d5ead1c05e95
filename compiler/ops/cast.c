/* Conversions between element types. */
#include "ops/rules.h"

/* Complex numbers and types below 8 bits are not there. */
DType dtype_of_onnx(int64_t number)
{
    static const DType types[] = {
        [1] = DT_F32,  [2] = DT_U8,   [3] = DT_I8,   [4] = DT_U16,
        [5] = DT_I16,  [6] = DT_I32,  [7] = DT_I64,  [8] = DT_STRING,
        [9] = DT_BOOL, [10] = DT_F16, [11] = DT_F64, [12] = DT_U32,
        [13] = DT_U64, [16] = DT_BF16};
    if (number < 0 || number >= (int64_t)(sizeof types / sizeof *types))
        return DT_INVALID;
    return types[number];
}

/* saturate and round_mode are about 8-bit floats only. */
static bool infer_cast(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    int64_t to = attrs_int(&c->node->attrs, "to", 0);
    if (dtype_of_onnx(to) == DT_INVALID)
        return infer_error(c,
                           "casts to element type number %lld, which is "
                           "not supported",
                           (long long)to);
    if (x->dtype == DT_STRING &&
        !infer_strings_as_numbers(c, dtype_of_onnx(to)))
        return false;
    return infer_set_checked(c, 0, dtype_of_onnx(to), x->rank, x->dims);
}

/* Only the type of the second input counts. */
static bool infer_cast_like(InferContext *c)
{
    const TensorType *x = infer_input(c, 0);
    DType to = infer_input(c, 1)->dtype;
    if (x->dtype == DT_STRING && !infer_strings_as_numbers(c, to))
        return false;
    return infer_set_checked(c, 0, to, x->rank, x->dims);
}

static void define_cast(DefineContext *c)
{
    StageBuilder b;
    DType to = c->out[0]->dtype;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *x = read_same(&b, c->in[0]);
    if (to == DT_BOOL && x->dtype != DT_BOOL) /* NaN is true as well */
        x = expr_binary(b.arena, EX_NE, x, const_like(b.arena, x, 0));
    stage_end(&b, expr_cast(b.arena, to, x));
}

static const AttrSpec cast_attrs[] = {{"to", ATTR_INT, true},
                                      {"saturate", ATTR_FLAG, false},
                                      {"round_mode", ATTR_STRING, false},
                                      {0}};
static const AttrSpec like_attrs[] = {
    {"saturate", ATTR_FLAG, false}, {"round_mode", ATTR_STRING, false}, {0}};

static const Op op_cast = {.name = "Cast",
                           .domain = "",
                           .min_inputs = 1,
                           .max_inputs = 1,
                           .min_outputs = 1,
                           .max_outputs = 1,
                           .traits = OP_ELEMENTWISE | OP_STRINGS,
                           .attrs = cast_attrs,
                           .infer = infer_cast,
                           .define = define_cast,
                           .decompose = decompose_string_cast,
                           .since = 13};
static const Op op_cast_like = {.name = "CastLike",
                                .domain = "",
                                .min_inputs = 2,
                                .max_inputs = 2,
                                .min_outputs = 1,
                                .max_outputs = 1,
                                .traits = OP_STRINGS | OP_RUNTIME_EXTENTS,
                                .attrs = like_attrs,
                                .infer = infer_cast_like,
                                .define = define_cast,
                                .decompose = decompose_string_cast,
                                .since = 15};

const Op *const ops_cast[] = {&op_cast, &op_cast_like, NULL};
