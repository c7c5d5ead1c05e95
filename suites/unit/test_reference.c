/* The oracles against values worked out by hand. Each case is text: the
 * operator, its attributes, operands and expected results. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/reference.h"

typedef struct Case {
    const char *op, *attrs;
    const char *in[6];
    const char *out[3];
} Case;

/* "f32[2,2] 1 2 3 nan" */
static Array *parse_array(Arena *arena, const char *text)
{
    char name[8] = {0};
    int64_t dims[MAX_RANK];
    int rank = 0, n = 0;
    char *at;

    while (isalnum((unsigned char)*text))
        name[n++] = *text++;
    assert_int_equal(*text, '[');
    text++;
    while (*text != ']') {
        dims[rank++] = strtoll(text, &at, 10);
        text = *at == ',' ? at + 1 : at;
    }
    text++;
    DType dtype = dtype_parse(name);
    assert_int_not_equal(dtype, DT_INVALID);
    Array *a = array_new(arena, dtype, rank, dims);
    for (int64_t i = 0; i < array_count(a); i++) {
        if (dtype_is_float(dtype))
            array_set(a, i, strtod(text, &at));
        else
            array_set_int(a, i, strtoll(text, &at, 10));
        assert_ptr_not_equal(at, text);
        text = at;
    }
    while (*text == ' ')
        text++;
    assert_int_equal(*text, 0);
    return a;
}

/* "axis=1 alpha=0.5 mode='linear' pads=[1,1]": a point makes a float. */
static void parse_attrs(Arena *arena, const char *text, Attrs *attrs)
{
    while (*text) {
        char name[48] = {0};
        int n = 0;
        char *at;
        while (*text == ' ')
            text++;
        while (*text != '=')
            name[n++] = *text++;
        const char *copy = arena_strdup(arena, name);
        text++;
        if (*text == '\'') {
            const char *end = strchr(text + 1, '\'');
            attrs_set_string(
                arena, attrs, copy,
                arena_strndup(arena, text + 1, (size_t)(end - text - 1)));
            text = end + 1;
        } else if (*text == '[') {
            int64_t values[16];
            int count = 0;
            while (*text != ']') {
                values[count++] = strtoll(text + 1, &at, 10);
                text = at;
            }
            attrs_set_ints(arena, attrs, copy, values, count);
            text++;
        } else {
            size_t length = strcspn(text, " ");
            if (memchr(text, '.', length))
                attrs_set_float(arena, attrs, copy, strtod(text, NULL));
            else
                attrs_set_int(arena, attrs, copy, strtoll(text, NULL, 10));
            text += length;
        }
    }
}

static bool evaluate(Arena *arena, const Case *c, RefCall *call)
{
    const Array **in = ARENA_ARRAY(arena, const Array *, 6);
    Attrs *attrs = ARENA_NEW(arena, Attrs);

    *call = (RefCall){.arena = arena, .domain = "", .op = c->op, .in = in};
    parse_attrs(arena, c->attrs, attrs);
    call->attrs = attrs;
    for (int i = 0; i < 6; i++)
        if (c->in[i]) {
            /* "-": left out */
            in[i] = c->in[i][0] == '-' ? NULL : parse_array(arena, c->in[i]);
            call->in_count = i + 1;
        }
    for (int i = 0; i < 3 && c->out[i]; i++)
        call->out_count = i + 1;
    return reference_eval(call);
}

static void check_equal(const Case *c, int which, const Array *got,
                        const Array *want)
{
    bool same = got->dtype == want->dtype && got->rank == want->rank;

    for (int i = 0; same && i < got->rank; i++)
        same = got->dims[i] == want->dims[i];
    if (!same)
        fail_msg("%s {%s}: output %d has another type than %s", c->op,
                 c->attrs, which, c->out[which]);
    for (int64_t i = 0; i < array_count(got); i++) {
        double g = array_get(got, i), w = array_get(want, i);
        bool ok = isnan(w)   ? isnan(g)
                  : isinf(w) ? g == w
                             : fabs(g - w) <= 2e-7 * fabs(w) + 1e-12;
        if (!ok || (w == 0 && signbit(w) && !signbit(g)))
            fail_msg("%s {%s}: output %d element %lld is %.9g, not %.9g",
                     c->op, c->attrs, which, (long long)i, g, w);
    }
}

static void run_cases(const Case *cases, int count)
{
    for (int i = 0; i < count; i++) {
        Arena *arena = arena_new();
        RefCall call;
        if (!evaluate(arena, &cases[i], &call))
            fail_msg("%s {%s}: %s", cases[i].op, cases[i].attrs, call.error);
        for (int k = 0; k < call.out_count; k++)
            check_equal(&cases[i], k, call.out[k],
                        parse_array(arena, cases[i].out[k]));
        arena_free(arena);
    }
}

#define RUN(cases) run_cases(cases, (int)(sizeof cases / sizeof *cases))

static void test_unary(void **state)
{
    static const Case cases[] = {
        {"Abs", "", {"f32[3] -1 0 2"}, {"f32[3] 1 0 2"}},
        {"Abs", "", {"i64[2] -3 4"}, {"i64[2] 3 4"}},
        {"Ceil", "", {"f32[3] -1.5 1.5 nan"}, {"f32[3] -1 2 nan"}},
        {"Celu", "alpha=2.0", {"f32[2] -2 3"}, {"f32[2] -1.26424112 3"}},
        {"Cos", "", {"f32[2] 0 1"}, {"f32[2] 1 0.540302306"}},
        {"Elu", "", {"f32[2] -1 2"}, {"f32[2] -0.632120559 2"}},
        {"Erf", "", {"f32[3] 0 1 -inf"}, {"f32[3] 0 0.842700793 -1"}},
        {"Exp", "", {"f32[3] 0 1 -inf"}, {"f32[3] 1 2.71828183 0"}},
        {"Floor", "", {"f32[2] -1.5 1.5"}, {"f32[2] -2 1"}},
        {"Gelu", "", {"f32[2] 1 -1"}, {"f32[2] 0.841344746 -0.158655254"}},
        {"Gelu", "approximate='tanh'", {"f32[1] 1"}, {"f32[1] 0.841191991"}},
        {"HardSigmoid", "", {"f32[4] 0 5 -5 1"}, {"f32[4] 0.5 1 0 0.7"}},
        {"HardSigmoid",
         "alpha=1.0 beta=0.25",
         {"f32[1] 0.5"},
         {"f32[1] 0.75"}},
        {"HardSwish", "", {"f32[4] 0 3 -3 1"}, {"f32[4] 0 3 0 0.66666667"}},
        {"LeakyRelu", "alpha=0.5", {"f32[3] -2 4 nan"}, {"f32[3] -1 4 nan"}},
        {"LeakyRelu", "", {"f32[1] -2"}, {"f32[1] -0.02"}},
        {"Log", "", {"f32[3] 1 0 -1"}, {"f32[3] 0 -inf nan"}},
        {"Mish", "", {"f32[1] 1"}, {"f32[1] 0.865098388"}},
        {"Neg", "", {"i64[2] 1 -2"}, {"i64[2] -1 2"}},
        {"Reciprocal", "", {"f32[2] 4 -0.5"}, {"f32[2] 0.25 -2"}},
        {"Relu", "", {"f32[4] -1 0 nan 3"}, {"f32[4] 0 0 nan 3"}},
        {"Round", "", {"f32[4] 0.5 1.5 2.5 -0.5"}, {"f32[4] 0 2 2 -0"}},
        {"Selu", "", {"f32[2] 1 -1"}, {"f32[2] 1.05070102 -1.11133075"}},
        {"SiLU", "", {"f32[1] 1"}, {"f32[1] 0.731058579"}},
        {"Silu", "", {"f32[1] -1"}, {"f32[1] -0.268941421"}},
        {"Sigmoid", "", {"f32[3] 0 1 -inf"}, {"f32[3] 0.5 0.731058579 0"}},
        {"Sign", "", {"f32[3] -3 0 nan"}, {"f32[3] -1 0 nan"}},
        {"Sin", "", {"f32[2] 0 1"}, {"f32[2] 0 0.841470985"}},
        {"Softplus", "", {"f32[2] 0 100"}, {"f32[2] 0.693147181 100"}},
        {"Softsign", "", {"f32[2] 1 -3"}, {"f32[2] 0.5 -0.75"}},
        {"Sqrt", "", {"f32[2] 4 -1"}, {"f32[2] 2 nan"}},
        {"Swish", "alpha=2.0", {"f32[1] 1"}, {"f32[1] 0.880797078"}},
        {"Tanh", "", {"f32[2] 0 1"}, {"f32[2] 0 0.761594156"}},
    };
    (void)state;
    RUN(cases);
}

static void test_binary(void **state)
{
    static const Case cases[] = {
        {"Add",
         "",
         {"f32[2,1] 1 2", "f32[3] 10 20 30"},
         {"f32[2,3] 11 21 31 12 22 32"}},
        {"Add", "", {"i32[1] 2147483647", "i32[1] 1"}, {"i32[1] -2147483648"}},
        {"Add",
         "",
         {"i64[1] 9007199254740993", "i64[] 1"},
         {"i64[1] 9007199254740994"}},
        {"Sub", "", {"f32[] 5", "f32[2] 1 2"}, {"f32[2] 4 3"}},
        {"Mul", "", {"f32[2] 0.5 inf", "f32[2] 4 0"}, {"f32[2] 2 nan"}},
        {"Div", "", {"f32[2] 1 1", "f32[2] 4 0"}, {"f32[2] 0.25 inf"}},
        {"Div", "", {"i64[2] 7 -7", "i64[1] 2"}, {"i64[2] 3 -3"}},
        {"Mod", "", {"i64[2] -7 7", "i64[2] 3 -3"}, {"i64[2] 2 -2"}},
        {"Mod", "fmod=1", {"i64[1] -7", "i64[1] 3"}, {"i64[1] -1"}},
        {"Mod", "fmod=1", {"f32[1] -5.5", "f32[1] 2"}, {"f32[1] -1.5"}},
        {"Pow", "", {"f32[3] 2 4 -8", "f32[3] 3 0.5 2"}, {"f32[3] 8 2 64"}},
        {"Pow", "", {"i64[1] 3", "i64[1] 4"}, {"i64[1] 81"}},
        {"PRelu",
         "",
         {"f32[1,2,2] -1 2 -3 4", "f32[2,1] 0.5 2"},
         {"f32[1,2,2] -0.5 2 -6 4"}},
        {"Max",
         "",
         {"f32[2] 1 nan", "f32[2] 2 0", "f32[1] 1.5"},
         {"f32[2] 2 nan"}},
        {"Min", "", {"i64[2] 1 5", "i64[1] 3"}, {"i64[2] 1 3"}},
        {"Sum",
         "",
         {"f32[2] 1 2", "f32[1] 10", "f32[2] 0.5 0.25"},
         {"f32[2] 11.5 12.25"}},
        {"Mean", "", {"f32[1] 1", "f32[1] 2", "f32[1] 6"}, {"f32[1] 3"}},
        {"Equal", "", {"f32[3] 1 2 nan", "f32[3] 1 3 nan"}, {"bool[3] 1 0 0"}},
        {"Greater", "", {"f32[3] 1 3 nan", "f32[1] 2"}, {"bool[3] 0 1 0"}},
        {"GreaterOrEqual",
         "",
         {"i64[3] 1 2 3", "i64[1] 2"},
         {"bool[3] 0 1 1"}},
        {"Less", "", {"f32[2] 1 3", "f32[1] 2"}, {"bool[2] 1 0"}},
        {"LessOrEqual", "", {"f32[3] 1 2 3", "f32[] 2"}, {"bool[3] 1 1 0"}},
        {"And",
         "",
         {"bool[4] 0 0 1 1", "bool[4] 0 1 0 1"},
         {"bool[4] 0 0 0 1"}},
        {"Or",
         "",
         {"bool[4] 0 0 1 1", "bool[4] 0 1 0 1"},
         {"bool[4] 0 1 1 1"}},
        {"Xor",
         "",
         {"bool[4] 0 0 1 1", "bool[4] 0 1 0 1"},
         {"bool[4] 0 1 1 0"}},
        {"Not", "", {"bool[2] 1 0"}, {"bool[2] 0 1"}},
        {"IsNaN", "", {"f32[3] nan 1 inf"}, {"bool[3] 1 0 0"}},
        {"Clip",
         "",
         {"f32[4] -1 0.5 9 nan", "f32[] 0", "f32[] 6"},
         {"f32[4] 0 0.5 6 nan"}},
        {"Clip", "", {"f32[2] -1 9", "-", "f32[] 6"}, {"f32[2] -1 6"}},
        {"Clip", "", {"i64[2] -1 9", "i64[] 0"}, {"i64[2] 0 9"}},
        {"Where",
         "",
         {"bool[2,1] 1 0", "f32[2] 1 2", "f32[] 9"},
         {"f32[2,2] 1 2 9 9"}},
    };
    (void)state;
    RUN(cases);
}

static void test_convolution(void **state)
{
    static const Case cases[] = {
        /* Padding above and to the right only. */
        {"Conv",
         "pads=[1,0,0,1]",
         {"f32[1,1,3,3] 1 2 3 4 5 6 7 8 9", "f32[1,1,2,2] 1 0 0 1"},
         {"f32[1,1,3,3] 2 3 0 6 8 3 12 14 6"}},
        {"Conv",
         "dilations=[2] strides=[2]",
         {"f32[1,1,5] 1 2 3 4 5", "f32[1,1,2] 1 10", "f32[1] 100"},
         {"f32[1,1,2] 131 153"}},
        {"Conv",
         "group=2",
         {"f32[1,2,1,2] 1 2 3 4", "f32[2,1,1,1] 10 100"},
         {"f32[1,2,1,2] 10 20 300 400"}},
        {"Conv",
         "group=2",
         {"f32[1,4,1,1] 1 2 3 4", "f32[2,2,1,1] 1 1 1 10"},
         {"f32[1,2,1,1] 3 43"}},
        {"Conv",
         "",
         {"f32[2,2,1,1] 1 2 3 4", "f32[1,2,1,1] 10 1"},
         {"f32[2,1,1,1] 12 34"}},
        {"Conv",
         "auto_pad='SAME_UPPER'",
         {"f32[1,1,3] 1 2 3", "f32[1,1,2] 1 1"},
         {"f32[1,1,3] 3 5 3"}},
        {"Conv",
         "auto_pad='SAME_LOWER'",
         {"f32[1,1,3] 1 2 3", "f32[1,1,2] 1 1"},
         {"f32[1,1,3] 1 3 5"}},
        {"Conv",
         "",
         {"f32[1,1,2,1,1] 2 3", "f32[1,1,2,1,1] 10 1"},
         {"f32[1,1,1,1,1] 23"}},
        {"Conv",
         "",
         {"f32[1,1,2] nan 1", "f32[1,1,1] 2"},
         {"f32[1,1,2] nan 2"}},
    };
    (void)state;
    RUN(cases);
}

/* im2col in blocks, with groups, strides and dilation, against the sum
 * written out. */
static void test_convolution_large(void **state)
{
    enum { N = 2, C = 6, H = 11, W = 9, K = 4, G = 2, KH = 3, KW = 2 };
    Arena *arena = arena_new();
    Array *x = array_new(arena, DT_F64, 4, (int64_t[]){N, C, H, W});
    Array *w = array_new(arena, DT_F64, 4, (int64_t[]){K, C / G, KH, KW});
    Attrs attrs = {0};
    (void)state;

    for (int64_t i = 0; i < array_count(x); i++)
        array_set(x, i, (double)(i * 37 % 101) - 50);
    for (int64_t i = 0; i < array_count(w); i++)
        array_set(w, i, (double)(i * 53 % 23) - 11);
    attrs_set_int(arena, &attrs, "group", G);
    attrs_set_ints(arena, &attrs, "strides", (int64_t[]){2, 1}, 2);
    attrs_set_ints(arena, &attrs, "dilations", (int64_t[]){1, 3}, 2);
    attrs_set_ints(arena, &attrs, "pads", (int64_t[]){1, 2, 0, 1}, 4);
    const Array *in[2] = {x, w};
    RefCall call = {.arena = arena,
                    .domain = "",
                    .op = "Conv",
                    .attrs = &attrs,
                    .in_count = 2,
                    .out_count = 1,
                    .in = in};
    assert_true(reference_eval(&call));
    const Array *y = call.out[0];
    assert_int_equal(y->dims[2], (H + 1 - KH) / 2 + 1);
    assert_int_equal(y->dims[3], W + 3 - 4 + 1);
    for (int64_t i = 0; i < array_count(y); i++) {
        int64_t ox = i % y->dims[3], oy = i / y->dims[3] % y->dims[2];
        int64_t k = i / y->dims[3] / y->dims[2] % K;
        int64_t n = i / y->dims[3] / y->dims[2] / K;
        double sum = 0;
        for (int64_t c = 0; c < C / G; c++)
            for (int64_t a = 0; a < KH; a++)
                for (int64_t b = 0; b < KW; b++) {
                    int64_t row = oy * 2 - 1 + a, col = ox - 2 + b * 3;
                    int64_t from = c + k / (K / G) * (C / G);
                    if (row < 0 || row >= H || col < 0 || col >= W)
                        continue;
                    sum += array_get(x, ((n * C + from) * H + row) * W + col) *
                           array_get(w, ((k * (C / G) + c) * KH + a) * KW + b);
                }
        assert_true(array_get(y, i) == sum);
    }
    arena_free(arena);
}

static void test_products(void **state)
{
    static const Case cases[] = {
        {"MatMul",
         "",
         {"f32[2,2] 1 2 3 4", "f32[2,2] 5 6 7 8"},
         {"f32[2,2] 19 22 43 50"}},
        {"MatMul",
         "",
         {"f32[2,1,2] 1 2 3 4", "f32[2,1] 10 1"},
         {"f32[2,1,1] 12 34"}},
        {"MatMul", "", {"f32[2] 1 2", "f32[2] 3 4"}, {"f32[] 11"}},
        {"MatMul", "", {"f32[2] 1 2", "f32[2,2] 1 0 0 10"}, {"f32[2] 1 20"}},
        {"MatMul",
         "",
         {"f32[1,2] 1 2", "f32[2,2,1] 1 2 3 4"},
         {"f32[2,1,1] 5 11"}},
        {"MatMul", "", {"i64[1,2] 3 4", "i64[2,1] 5 -6"}, {"i64[1,1] -9"}},
        {"Gemm",
         "transA=1 transB=1 alpha=2.0 beta=0.5",
         {"f32[2,1] 1 2", "f32[2,2] 1 2 3 4", "f32[2] 10 20"},
         {"f32[1,2] 15 32"}},
        {"Gemm", "", {"f32[1,2] 1 2", "f32[2,1] 3 4"}, {"f32[1,1] 11"}},
        {"Gemm",
         "",
         {"f32[2,1] 1 2", "f32[1,2] 3 4", "f32[2,1] 10 20"},
         {"f32[2,2] 13 14 26 28"}},
    };
    (void)state;
    RUN(cases);
}

static void test_pooling(void **state)
{
    static const Case cases[] = {
        {"MaxPool",
         "kernel_shape=[2,2]",
         {"f32[1,1,3,3] 1 2 3 4 5 6 7 8 9"},
         {"f32[1,1,2,2] 5 6 8 9", "i64[1,1,2,2] 4 5 7 8"}},
        {"MaxPool",
         "kernel_shape=[2] strides=[2] ceil_mode=1",
         {"f32[1,1,5] 1 2 3 4 5"},
         {"f32[1,1,3] 2 4 5"}},
        {"MaxPool",
         "kernel_shape=[2] dilations=[2]",
         {"f32[1,1,4] 1 2 3 4"},
         {"f32[1,1,2] 3 4"}},
        {"MaxPool",
         "kernel_shape=[2]",
         {"f32[1,1,4] 1 nan 3 0"},
         {"f32[1,1,3] nan nan 3"}},
        {"MaxPool",
         "kernel_shape=[2] pads=[1,0]",
         {"f32[1,1,2] -1 -2"},
         {"f32[1,1,2] -1 -1"}},
        {"AveragePool",
         "kernel_shape=[1,2] pads=[0,1,0,1]",
         {"f32[1,1,1,3] 1 2 3"},
         {"f32[1,1,1,4] 1 1.5 2.5 3"}},
        {"AveragePool",
         "kernel_shape=[1,2] pads=[0,1,0,1] "
         "count_include_pad=1",
         {"f32[1,1,1,3] 1 2 3"},
         {"f32[1,1,1,4] 0.5 1.5 2.5 1.5"}},
        {"AveragePool",
         "kernel_shape=[2] strides=[2] ceil_mode=1 "
         "count_include_pad=1",
         {"f32[1,1,3] 1 2 3"},
         {"f32[1,1,2] 1.5 3"}},
        {"GlobalAveragePool",
         "",
         {"f32[1,2,2,1] 1 3 5 9"},
         {"f32[1,2,1,1] 2 7"}},
        {"GlobalMaxPool", "", {"f32[1,2,2] 1 3 nan 9"}, {"f32[1,2,1] 3 nan"}},
    };
    (void)state;
    RUN(cases);
}

static void test_norms(void **state)
{
    static const Case cases[] = {
        {"BatchNormalization",
         "epsilon=0.0",
         {"f32[1,2,1] 3 10", "f32[2] 2 1", "f32[2] 1 0", "f32[2] 1 10",
          "f32[2] 4 1"},
         {"f32[1,2,1] 3 0"}},
        {"LayerNormalization",
         "epsilon=0.0",
         {"f32[1,2] 1 3", "f32[2] 1 2", "f32[2] 0 1"},
         {"f32[1,2] -1 3", "f32[1,1] 2", "f32[1,1] 1"}},
        {"LayerNormalization",
         "epsilon=0.0 axis=-2",
         {"f32[1,2,1] 1 3", "f32[1] 10"},
         {"f32[1,2,1] -10 10"}},
        {"RMSNormalization",
         "epsilon=0.0",
         {"f32[1,2] 3 4", "f32[2] 1 10"},
         {"f32[1,2] 0.848528137 11.3137085"}},
        {"Softmax", "", {"f32[2] 0 1.09861229"}, {"f32[2] 0.25 0.75"}},
        {"Softmax",
         "axis=-2",
         {"f32[2,2] 1000 0 1000 -inf"},
         {"f32[2,2] 0.5 1 0.5 0"}},
        {"Softmax", "", {"f32[2] nan 1"}, {"f32[2] nan nan"}},
        {"LogSoftmax",
         "",
         {"f32[2] 0 1.09861229"},
         {"f32[2] -1.38629436 -0.287682072"}},
    };
    (void)state;
    RUN(cases);
}

static void test_reductions(void **state)
{
    static const Case cases[] = {
        {"ReduceSum",
         "keepdims=0",
         {"f32[2,2] 1 2 3 4", "i64[1] -1"},
         {"f32[2] 3 7"}},
        {"ReduceSum", "", {"i64[2,2] 1 2 3 4", "i64[1] 0"}, {"i64[1,2] 4 6"}},
        {"ReduceSum",
         "noop_with_empty_axes=1",
         {"f32[2] 1 2"},
         {"f32[2] 1 2"}},
        {"ReduceMean", "", {"f32[2,2] 1 2 3 4"}, {"f32[1,1] 2.5"}},
        {"ReduceMax",
         "keepdims=0",
         {"f32[2,2] 1 nan -3 -4", "i64[1] 1"},
         {"f32[2] nan -3"}},
        {"ReduceMin", "keepdims=0", {"i64[3] 4 -2 9"}, {"i64[] -2"}},
        {"ReduceProd", "keepdims=0", {"f32[3] 2 3 -4"}, {"f32[] -24"}},
        {"ReduceSumSquare", "keepdims=0", {"f32[2] 2 3"}, {"f32[] 13"}},
        {"ReduceL1", "keepdims=0", {"f32[2] -1 2"}, {"f32[] 3"}},
        {"ReduceL2", "keepdims=0", {"f32[2] 3 4"}, {"f32[] 5"}},
        {"ReduceLogSum", "keepdims=0", {"f32[2] 3 5"}, {"f32[] 2.07944154"}},
        {"ReduceLogSumExp",
         "keepdims=0",
         {"f32[2] 1000 1000"},
         {"f32[] 1000.69315"}},
        {"ReduceSum",
         "keepdims=0",
         {"f32[2,2,2] 1 2 3 4 5 6 7 8", "i64[2] 0 2"},
         {"f32[2] 14 22"}},
        {"ArgMax",
         "axis=1 keepdims=0",
         {"f32[2,3] 1 5 5 7 0 nan"},
         {"i64[2] 1 2"}},
        {"ArgMax",
         "axis=-1 select_last_index=1",
         {"f32[1,3] 1 5 5"},
         {"i64[1,1] 2"}},
        {"ArgMin", "keepdims=0", {"f32[2,2] 1 0 0 3"}, {"i64[2] 1 0"}},
    };
    (void)state;
    RUN(cases);
}

static void test_shapes(void **state)
{
    static const Case cases[] = {
        {"Identity", "", {"i64[2] 1 2"}, {"i64[2] 1 2"}},
        {"Dropout", "", {"f32[2] 1 2"}, {"f32[2] 1 2", "bool[2] 1 1"}},
        {"Reshape",
         "",
         {"f32[2,3] 1 2 3 4 5 6", "i64[3] 0 -1 1"},
         {"f32[2,3,1] 1 2 3 4 5 6"}},
        {"Flatten",
         "axis=-1",
         {"f32[2,1,3] 1 2 3 4 5 6"},
         {"f32[2,3] 1 2 3 4 5 6"}},
        {"Flatten", "axis=0", {"f32[2,2] 1 2 3 4"}, {"f32[1,4] 1 2 3 4"}},
        {"Squeeze", "", {"f32[1,2,1] 1 2", "i64[1] -1"}, {"f32[1,2] 1 2"}},
        {"Squeeze", "", {"f32[1,2,1] 1 2"}, {"f32[2] 1 2"}},
        {"Unsqueeze", "", {"f32[2] 1 2", "i64[2] -1 0"}, {"f32[1,2,1] 1 2"}},
        {"Transpose",
         "perm=[1,2,0]",
         {"f32[2,1,3] 1 2 3 4 5 6"},
         {"f32[1,3,2] 1 4 2 5 3 6"}},
        {"Transpose", "", {"f32[2,2] 1 2 3 4"}, {"f32[2,2] 1 3 2 4"}},
        {"Concat",
         "axis=-1",
         {"f32[2,1] 1 2", "f32[2,2] 3 4 5 6"},
         {"f32[2,3] 1 3 4 2 5 6"}},
        {"Split",
         "axis=1",
         {"f32[2,3] 1 2 3 4 5 6", "i64[2] 1 2"},
         {"f32[2,1] 1 4", "f32[2,2] 2 3 5 6"}},
        {"Split",
         "num_outputs=2",
         {"f32[3] 1 2 3"},
         {"f32[2] 1 2", "f32[1] 3"}},
        {"Slice",
         "",
         {"f32[5] 0 1 2 3 4", "i64[1] -1", "i64[1] -100", "i64[1] 0",
          "i64[1] -2"},
         {"f32[3] 4 2 0"}},
        {"Slice",
         "",
         {"f32[2,3] 1 2 3 4 5 6", "i64[1] 1", "i64[1] 100", "i64[1] -1"},
         {"f32[2,2] 2 3 5 6"}},
        {"Slice", "", {"f32[2] 1 2", "i64[1] 2", "i64[1] 1"}, {"f32[0]"}},
        {"Pad",
         "",
         {"f32[2] 1 2", "i64[2] 1 2", "f32[] 9"},
         {"f32[5] 9 1 2 9 9"}},
        {"Pad", "", {"f32[3] 1 2 3", "i64[2] -1 1"}, {"f32[3] 2 3 0"}},
        {"Pad",
         "",
         {"f32[1,2] 1 2", "i64[2] 1 0", "f32[] 7", "i64[1] -1"},
         {"f32[1,3] 7 1 2"}},
        {"Pad",
         "mode='reflect'",
         {"f32[3] 1 2 3", "i64[2] 2 1"},
         {"f32[6] 3 2 1 2 3 2"}},
        {"Pad",
         "mode='edge'",
         {"f32[2] 1 2", "i64[2] 2 1"},
         {"f32[5] 1 1 1 2 2"}},
        {"Pad",
         "mode='wrap'",
         {"f32[3] 1 2 3", "i64[2] 1 1"},
         {"f32[5] 3 1 2 3 1"}},
        {"Expand",
         "",
         {"f32[2,1] 1 2", "i64[3] 2 1 2"},
         {"f32[2,2,2] 1 1 2 2 1 1 2 2"}},
        {"Tile",
         "",
         {"f32[1,2] 1 2", "i64[2] 2 2"},
         {"f32[2,4] 1 2 1 2 1 2 1 2"}},
        {"Gather",
         "axis=1",
         {"f32[2,3] 1 2 3 4 5 6", "i64[2] -1 0"},
         {"f32[2,2] 3 1 6 4"}},
        {"Gather", "", {"i64[3] 5 6 7", "i64[] 1"}, {"i64[] 6"}},
        {"Shape", "", {"f32[2,0,3]"}, {"i64[3] 2 0 3"}},
        {"Shape", "start=1 end=-1", {"f32[2,1,1] 1 2"}, {"i64[1] 1"}},
        {"Constant", "value_ints=[3,4]", {NULL}, {"i64[2] 3 4"}},
        {"Constant", "value_float=0.5", {NULL}, {"f32[] 0.5"}},
        {"ConstantOfShape", "", {"i64[2] 1 2"}, {"f32[1,2] 0 0"}},
        {"Range", "", {"i64[] 5", "i64[] 0", "i64[] -2"}, {"i64[3] 5 3 1"}},
        {"Range",
         "",
         {"f32[] 0", "f32[] 1", "f32[] 0.4"},
         {"f32[3] 0 0.4 0.8"}},
    };
    (void)state;
    RUN(cases);
}

static void test_conversions(void **state)
{
    static const Case cases[] = {
        {"Cast",
         "to=7",
         {"f32[4] 2.7 -2.7 nan 1e30"},
         {"i64[4] 2 -2 0 9223372036854775807"}},
        {"Cast",
         "to=6",
         {"f32[2] 3e9 -3e9"},
         {"i32[2] 2147483647 -2147483648"}},
        {"Cast", "to=9", {"f32[3] 0 0.5 nan"}, {"bool[3] 0 1 1"}},
        {"Cast", "to='f32'", {"i64[2] 3 -4"}, {"f32[2] 3 -4"}},
        {"CastLike", "", {"i64[1] 3", "f32[1] 0"}, {"f32[1] 3"}},
        {"DequantizeLinear",
         "",
         {"u8[3] 0 128 255", "f32[] 0.5", "u8[] 128"},
         {"f32[3] -64 0 63.5"}},
        {"DequantizeLinear",
         "axis=0",
         {"i8[2,2] 1 2 -3 4", "f32[2] 1 2"},
         {"f32[2,2] 1 2 -6 8"}},
        {"DequantizeLinear",
         "axis=-1 block_size=2",
         {"i8[1,4] 1 2 3 4", "f32[1,2] 1 10"},
         {"f32[1,4] 1 2 30 40"}},
        {"Resize",
         "coordinate_transformation_mode='asymmetric' "
         "nearest_mode='floor'",
         {"f32[1,2] 1 2", "-", "f32[2] 1 2"},
         {"f32[1,4] 1 1 2 2"}},
        {"Resize",
         "",
         {"f32[1,2] 1 2", "-", "f32[2] 1 2"},
         {"f32[1,4] 1 1 2 2"}},
        {"Resize",
         "mode='linear'",
         {"f32[1,2] 1 2", "-", "f32[2] 1 2"},
         {"f32[1,4] 1 1.25 1.75 2"}},
        {"Resize",
         "mode='linear' "
         "coordinate_transformation_mode='align_corners'",
         {"f32[1,2] 1 2", "-", "-", "i64[2] 1 3"},
         {"f32[1,3] 1 1.5 2"}},
        {"Resize",
         "mode='linear' axes=[1]",
         {"f32[1,4] 1 2 3 4", "-", "-", "i64[1] 2"},
         {"f32[1,2] 1.5 3.5"}},
        {"Resize",
         "mode='linear' "
         "coordinate_transformation_mode='pytorch_half_pixel'",
         {"f32[2,2] 1 2 3 5", "-", "-", "i64[2] 1 2"},
         {"f32[1,2] 1 2"}},
    };
    (void)state;
    RUN(cases);
}

static void test_faults(void **state)
{
    static const Case cases[] = {
        {"Conv", "", {"f32[1,3,1,1] 1 2 3", "f32[1,2,1,1] 1 2"}, {"f32[]"}},
        {"Conv", "", {"f32[1,1,1] 1", "f32[1,1,2] 1 2"}, {"f32[]"}},
        {"MatMul", "", {"f32[1,2] 1 2", "f32[1,1] 1"}, {"f32[]"}},
        {"Add", "", {"f32[2] 1 2", "f32[3] 1 2 3"}, {"f32[]"}},
        {"Softmax", "axis=2", {"f32[2] 1 2"}, {"f32[]"}},
        {"Gather", "", {"f32[2] 1 2", "i64[1] 2"}, {"f32[]"}},
        {"GatherND", "", {"f32[2] 1 2", "i64[1,1] 2"}, {"f32[]"}},
        {"Relu", "", {NULL}, {"f32[]"}},
        {"NoSuchOperator", "", {"f32[1] 1"}, {"f32[]"}},
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *arena = arena_new();
        RefCall call;
        if (evaluate(arena, &cases[i], &call))
            fail_msg("%s {%s} is accepted", cases[i].op, cases[i].attrs);
        assert_non_null(call.error);
        assert_non_null(strstr(call.error, cases[i].op));
        arena_free(arena);
    }
}

static void test_topk(void **state)
{
    static const Case cases[] = {
        {"TopK",
         "",
         {"f32[2,3] 1 3 2 5 5 nan", "i64[1] 2"},
         {"f32[2,2] 3 2 nan 5", "i64[2,2] 1 2 2 0"}},
        {"TopK",
         "largest=0 axis=0",
         {"i32[3,2] 4 -1 2 0 4 -1", "i64[1] 2"},
         {"i32[2,2] 2 -1 4 -1", "i64[2,2] 1 0 0 2"}},
    };
    (void)state;
    RUN(cases);
}

static void test_select(void **state)
{
    static const Case cases[] = {
        {"NonZero", "", {"f32[2,2] 0 3 nan 0"}, {"i64[2,2] 0 1 1 0"}},
        {"Unique",
         "",
         {"f32[5] 2 1 1 3 2"},
         {"f32[3] 1 2 3", "i64[3] 1 0 3", "i64[5] 1 0 0 2 1"}},
        {"Unique",
         "axis=0 sorted=0",
         {"i32[3,2] 4 1 0 9 4 1"},
         {"i32[2,2] 4 1 0 9", "i64[2] 0 1", "i64[3] 0 1 0"}},
        {"NonMaxSuppression",
         "",
         {"f32[1,3,4] 0 0 1 1 0 0.1 1 1.1 0 2 1 3", "f32[1,1,3] 0.7 0.9 0.5",
          "i64[1] 3", "f32[1] 0.5"},
         {"i64[2,3] 0 0 1 0 0 2"}},
        {"TfIdfVectorizer",
         "mode='IDF' min_gram_length=1 max_gram_length=1 max_skip_count=5 "
         "ngram_counts=[0] ngram_indexes=[1,0] pool_int64s=[4,9]",
         {"i64[2,3] 4 4 4 9 4 1"},
         {"f32[2,2] 0 1 1 1"}},
    };
    (void)state;
    RUN(cases);
}

static void test_recurrent(void **state)
{
    static const Case cases[] = {
        {"RNN",
         "",
         {"f32[2,1,1] 1 0", "f32[1,1,1] 0.5", "f32[1,1,1] 2"},
         {"f32[2,1,1,1] 0.462117157 0.727894404", "f32[1,1,1] 0.727894404"}},
        {"RNN",
         "direction='reverse'",
         {"f32[2,2,1] 1 1 0 0", "f32[1,1,1] 0.5", "f32[1,1,1] 2", "-",
          "i32[2] 2 1"},
         {"f32[2,1,2,1] 0.462117157 0.462117157 0 0",
          "f32[1,2,1] 0.462117157 0.462117157"}},
        {"GRU",
         "",
         {"f32[1,1,1] 1", "f32[1,3,1] 0 0 1", "f32[1,3,1] 0 0 1", "-", "-",
          "f32[1,1,1] 2"},
         {"f32[1,1,1,1] 1.48201379", "f32[1,1,1] 1.48201379"}},
        {"GRU",
         "linear_before_reset=1",
         {"f32[1,1,1] 1", "f32[1,3,1] 0 0 1", "f32[1,3,1] 0 0 1",
          "f32[1,6] 0 0 0 0 0 2", "-", "f32[1,1,1] 2"},
         {"f32[1,1,1,1] 1.49752737", "f32[1,1,1] 1.49752737"}},
        {"LSTM",
         "",
         {"f32[1,1,1] 1", "f32[1,4,1] 0 0 0 1", "f32[1,4,1] 0 0 0 0"},
         {"f32[1,1,1,1] 0.181699742", "f32[1,1,1] 0.181699742",
          "f32[1,1,1] 0.380797078"}},
    };
    (void)state;
    RUN(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_convolution_large),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_topk),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_select),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
