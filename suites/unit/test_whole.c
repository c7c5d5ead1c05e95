/* Quantized layers in whole numbers: which are rewritten, the values by hand
 * where roundings decide, and the same bits however they are computed. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/op.h"
#include "suites/unit/compiled.h"

/* What is computed: a layer's operands as bytes, and what they mean. */
#define HEAD                                                                  \
    "graph g\n"                                                               \
    "  const half: f32[] = {0.5}\n"                                           \
    "  const quarter: f32[] = {0.25}\n"                                       \
    "  const eighth: f32[] = {0.125}\n"                                       \
    "  const one: f32[] = {1}\n"                                              \
    "  const z0: u8[] = {0}\n"                                                \
    "  const z1: u8[] = {1}\n"                                                \
    "  const z10: u8[] = {10}\n"                                              \
    "  const s0: i8[] = {0}\n"
/* x: 198, 3; 0, 2; 5, 5 less 1, in halves. */
#define ROWS                                                                  \
    HEAD "  input xs: u8[3,2]\n"                                              \
         "  const ws: i8[2,2] = {2, 1, -3, 0}\n"                              \
         "  x: f32[3,2] = DequantizeLinear dx(xs, half, z1)\n"                \
         "  w: f32[2,2] = DequantizeLinear dw(ws, quarter, s0)\n"

typedef struct Case {
    const char *name, *text;
    double x[8];   /* elements of the input */
    int rewritten; /* nodes that are */
    int count;     /* of the first output */
    double values[8];
} Case;

static const Case cases[] = {
    /* 387, 198; -6, 0; -5, 5 in eighths: half to even, shifted, saturated. */
    {"matmul",
     ROWS "  s: f32[3,2] = MatMul product(x, w)\n"
          "  y: u8[3,2] = QuantizeLinear q(s, half, z10)\n  output y\n",
     {199, 4, 1, 3, 6, 6},
     1,
     6,
     {107, 60, 8, 10, 9, 11}},
    {"relu",
     ROWS "  s: f32[3,2] = MatMul product(x, w)\n"
          "  r: f32[3,2] = Relu relu(s)\n"
          "  y: u8[3,2] = QuantizeLinear q(r, half, z10)\n  output y\n",
     {199, 4, 1, 3, 6, 6},
     1,
     6,
     {107, 60, 10, 10, 10, 11}},
    /* At most 30 / 0.5 more than the zero point, at least 0.5 / 0.5. */
    {"clip",
     ROWS "  const thirty: f32[] = {30}\n"
          "  s: f32[3,2] = MatMul product(x, w)\n"
          "  r: f32[3,2] = Clip clip(s, half, thirty)\n"
          "  y: u8[3,2] = QuantizeLinear q(r, half, z10)\n  output y\n",
     {199, 4, 1, 3, 6, 6},
     1,
     6,
     {70, 60, 11, 11, 11, 11}},
    /* The inner bound holds first. */
    {"bounds in a row",
     ROWS "  const thirty: f32[] = {30}\n"
          "  const forty: f32[] = {40}\n"
          "  s: f32[3,2] = MatMul product(x, w)\n"
          "  r: f32[3,2] = Clip inner(s, thirty)\n"
          "  t: f32[3,2] = Clip outer(r, half, forty)\n"
          "  y: u8[3,2] = QuantizeLinear q(t, half, z10)\n  output y\n",
     {199, 4, 1, 3, 6, 6},
     1,
     6,
     {90, 70, 70, 70, 70, 70}},
    /* A whole bias, in the scale of the products: 8 and -3 more. */
    {"gemm",
     ROWS "  const bs: i32[2] = {8, -3}\n"
          "  b: f32[2] = DequantizeLinear db(bs, eighth)\n"
          "  s: f32[3,2] = Gemm product(x, w, b)\n"
          "  y: u8[3,2] = QuantizeLinear q(s, half, z10)\n  output y\n",
     {199, 4, 1, 3, 6, 6},
     1,
     6,
     {109, 59, 10, 9, 11, 10}},
    {"bias in another scale",
     ROWS "  const bs: i32[2] = {8, -3}\n"
          "  b: f32[2] = DequantizeLinear db(bs, quarter)\n"
          "  s: f32[3,2] = Gemm product(x, w, b)\n"
          "  y: u8[3,2] = QuantizeLinear q(s, half, z10)\n  output y\n",
     {199, 4, 1, 3, 6, 6},
     0,
     6,
     {111, 58, 12, 8, 13, 10}},
    /* A factor for each output channel: 1/8 and 1/4. */
    {"channels",
     HEAD "  input xs: u8[1,1,1,2]\n"
          "  const ws: i8[2,1,1,2] = {1, 2, 3, -1}\n"
          "  const scales: f32[2] = {0.25, 0.5}\n"
          "  const zeros: i8[2] = {0, 0}\n"
          "  x: f32[1,1,1,2] = DequantizeLinear dx(xs, half, z1)\n"
          "  w: f32[2,1,1,2] = DequantizeLinear dw(ws, scales, zeros) "
          "{axis=0}\n"
          "  s: f32[1,2,1,1] = Conv conv(x, w)\n"
          "  y: u8[1,2,1,1] = QuantizeLinear q(s, eighth, z10)\n"
          "  output y\n",
     {5, 3},
     1,
     2,
     {18, 30}},
    /* Padding is 0, whatever stands for it. */
    {"padding",
     HEAD "  input xs: u8[1,1,1,2]\n"
          "  const ws: i8[1,1,1,3] = {1, 1, 1}\n"
          "  x: f32[1,1,1,2] = DequantizeLinear dx(xs, one, z10)\n"
          "  w: f32[1,1,1,3] = DequantizeLinear dw(ws, one, s0)\n"
          "  s: f32[1,1,1,4] = Conv conv(x, w) {pads=[0, 2, 0, 2]}\n"
          "  y: i8[1,1,1,4] = QuantizeLinear q(s, one, s0)\n"
          "  output y\n",
     {5, 3},
     1,
     4,
     {-5, -12, -12, -7}},
    /* The sum is read twice: it stays a tensor of reals. */
    {"shared sum",
     ROWS "  s: f32[3,2] = MatMul product(x, w)\n"
          "  y: u8[3,2] = QuantizeLinear q(s, half, z10)\n"
          "  z: f32[3,2] = Neg neg(s)\n  output y\n  output z\n",
     {199, 4, 1, 3, 6, 6},
     0,
     6,
     {107, 60, 8, 10, 9, 11}},
    {"sum that is an output",
     ROWS "  s: f32[3,2] = MatMul product(x, w)\n"
          "  y: u8[3,2] = QuantizeLinear q(s, half, z10)\n"
          "  output y\n  output s\n",
     {199, 4, 1, 3, 6, 6},
     0,
     6,
     {107, 60, 8, 10, 9, 11}},
    /* 65535 * 300 is no f32 that all whole numbers up to it are. */
    {"sums too large",
     HEAD "  const none: u16[] = {0}\n"
          "  const small: f32[] = {1e-06}\n"
          "  input xs: u16[1,1]\n"
          "  const ws: i16[1,1] = {300}\n"
          "  const i0: i16[] = {0}\n"
          "  x: f32[1,1] = DequantizeLinear dx(xs, small, none)\n"
          "  w: f32[1,1] = DequantizeLinear dw(ws, one, i0)\n"
          "  s: f32[1,1] = MatMul product(x, w)\n"
          "  y: u8[1,1] = QuantizeLinear q(s, one, z0)\n  output y\n",
     {65535},
     0,
     1,
     {20}},
    /* The joint scale is none. */
    {"scales too small",
     HEAD "  const tiny: f32[] = {1e-30}\n"
          "  input xs: u8[1,1]\n"
          "  const ws: i8[1,1] = {3}\n"
          "  x: f32[1,1] = DequantizeLinear dx(xs, tiny, z0)\n"
          "  w: f32[1,1] = DequantizeLinear dw(ws, tiny, s0)\n"
          "  s: f32[1,1] = MatMul product(x, w)\n"
          "  y: u8[1,1] = QuantizeLinear q(s, one, z10)\n  output y\n",
     {2},
     0,
     1,
     {10}},
    /* 1.5 - 0.5 / 4, 1.5 and 1.5 + 0.5 / 4: as quarters and as bytes. */
    {"sum",
     HEAD "  input xs: u8[2]\n"
          "  const ws: u8[3,1] = {0, 1, 2}\n"
          "  x: f32[2] = DequantizeLinear dx(xs, half, z10)\n"
          "  w: f32[3,1] = DequantizeLinear dw(ws, eighth, z1)\n"
          "  s: f32[3,2] = Add sum(x, w)\n"
          "  r: f32[3,2] = Relu relu(s)\n"
          "  y: u8[3,2] = QuantizeLinear q(r, quarter, z1)\n  output y\n",
     {13, 9},
     1,
     6,
     {6, 1, 7, 1, 8, 1}},
    {"product",
     HEAD "  input xs: u8[2]\n"
          "  const ws: u8[2] = {6, 5}\n"
          "  x: f32[2] = DequantizeLinear dx(xs, half, z10)\n"
          "  w: f32[2] = DequantizeLinear dw(ws, half, z1)\n"
          "  s: f32[2] = Mul mul(x, w)\n"
          "  y: u8[2] = QuantizeLinear q(s, one, z10)\n  output y\n",
     {13, 8},
     1,
     2,
     {14, 8}},
    /* A division of its own type. */
    {"precision",
     HEAD "  input xs: u8[2]\n"
          "  const ws: u8[2] = {6, 5}\n"
          "  x: f32[2] = DequantizeLinear dx(xs, half, z10)\n"
          "  w: f32[2] = DequantizeLinear dw(ws, half, z1)\n"
          "  s: f32[2] = Mul mul(x, w)\n"
          "  y: u8[2] = QuantizeLinear q(s, one, z10) {precision=10}\n"
          "  output y\n",
     {13, 8},
     0,
     2,
     {14, 8}},
    /* Terms of which few digits would be left. */
    {"sum of large factors",
     HEAD "  const large: f32[] = {1000}\n"
          "  input xs: u8[2]\n"
          "  x: f32[2] = DequantizeLinear dx(xs, large, z10)\n"
          "  w: f32[2] = DequantizeLinear dw(xs, eighth, z10)\n"
          "  s: f32[2] = Add sum(x, w)\n"
          "  y: u8[2] = QuantizeLinear q(s, one, z10)\n  output y\n",
     {10, 11},
     0,
     2,
     {10, 255}},
    {"QLinearMatMul",
     HEAD "  input xs: u8[3,2]\n"
          "  const ws: i8[2,2] = {2, 1, -3, 0}\n"
          "  y: u8[3,2] = QLinearMatMul q(xs, half, z1, ws, quarter, s0, "
          "half, z10)\n  output y\n",
     {199, 4, 1, 3, 6, 6},
     1,
     6,
     {107, 60, 8, 10, 9, 11}},
    {"QLinearConv",
     HEAD "  input xs: u8[1,1,1,2]\n"
          "  const ws: i8[2,1,1,3] = {1, 1, 1, 2, -2, 1}\n"
          "  const scales: f32[2] = {1, 0.5}\n"
          "  const zeros: i8[2] = {0, 0}\n"
          "  const bias: i32[2] = {1, 7}\n"
          "  y: i8[1,2,1,2] = QLinearConv q(xs, one, z10, ws, scales, zeros, "
          "one, s0, bias) {pads=[0, 1, 0, 1]}\n"
          "  output y\n",
     {5, 3},
     1,
     4,
     {-11, -11, 5, 6}},
};

static int rewritten(const Graph *g)
{
    int count = 0;
    for (int i = 0; i < g->nodes.count; i++) {
        const Op *op = g->nodes.data[i]->op;
        count += !strncmp(op->name, "Requantize", 10);
    }
    return count;
}

static void expect(const Case *test, const char *how, const Array *got)
{
    assert_int_equal(array_count(got), test->count);
    for (int i = 0; i < test->count; i++)
        if (array_get(got, i) != test->values[i])
            fail_msg("%s, %s: element %d is %g and not %g", test->name, how, i,
                     array_get(got, i), test->values[i]);
}

static Array **inputs_of(Arena *arena, const Graph *g, const Case *test)
{
    Array **inputs = ARENA_ARRAY(arena, Array *, 1);
    int64_t dims[MAX_RANK];
    const TensorType *type = &g->inputs.data[0]->type;
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    inputs[0] = array_new(arena, type->dtype, type->rank, dims);
    for (int i = 0; i < array_count(inputs[0]); i++)
        array_set(inputs[0], i, test->x[i]);
    return inputs;
}

/* What the reference evaluates, and -O2 compiles. */
static Graph *canonical(Arena *arena, const Graph *source, bool decomposed)
{
    Graph *g = graph_copy(arena, source);
    PassContext c = {.graph = g, .opt_level = 2};
    pass_infer(&c);
    pass_canonical(&c);
    if (decomposed)
        pass_decompose(&c);
    assert_int_equal(g->diag->errors.count, 0);
    graph_verify(g);
    return g;
}

static void check(const Case *test)
{
    static const struct {
        const char *target;
        int level;
    } ways[] = {
        {"x86-64-v3", 0}, {"x86-64-v3", 1}, {"x86-64-v3", 2},
        {"x86-64-v4", 2}, {"aarch64", 2},
    };
    Arena *arena = arena_new();
    Graph *g = graph_from_text(arena, test->text);
    Array **inputs = inputs_of(arena, g, test);
    if (rewritten(canonical(arena, g, true)) != test->rewritten)
        fail_msg("%s: %d nodes are rewritten", test->name,
                 rewritten(canonical(arena, g, true)));
    expect(test, "reference",
           run_reference(arena, canonical(arena, g, false), inputs)[0]);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        PassOptions options = {.opt_level = ways[i].level, .verify = true};
        Compiled c = compile_graph(arena, graph_copy(arena, g), ways[i].target,
                                   &options, !ways[i].level);
        c.inputs = inputs;
        expect(test, ways[i].target, run_interpreted(&c)[0]);
    }
    arena_free(arena);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

/* As machine code and as C, all in one library after the other. */
static void test_backends(void **state)
{
    char dir[] = "/tmp/assay-test-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int in_c = 0; in_c < 2; in_c++) {
            Arena *arena = arena_new();
            Graph *g = graph_from_text(arena, cases[i].text);
            Compiled c =
                compile_graph(arena, g, in_c ? "c" : "native", NULL, false);
            c.inputs = inputs_of(arena, g, &cases[i]);
            void *library = load_compiled(&c, dir, in_c);
            expect(&cases[i], in_c ? "C" : "native",
                   run_loaded(&c, library)[0]);
            dlclose(library);
            arena_free(arena);
        }
    Str command = {0};
    str_addf(&command, "rm -r '%s'", dir);
    assert_int_equal(system(str_text(&command)), 0);
    str_free(&command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_backends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
