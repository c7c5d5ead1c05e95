/* Dimensions that are known at run time only: each operator that takes them,
 * compiled once and run for every value, against the reference at that value,
 * in the interpreter and in both backends; and those that refuse. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ops/op.h"
#include "suites/unit/compiled.h"
#include "suites/unit/shapes_rows.h"

static char folder[] = "/tmp/assay_shapes_XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static Graph *parse(Arena *arena, const ShapeRow *test)
{
    return graph_from_text(arena, arena_printf(arena, "graph \"%s\"\n%s",
                                               test->name, test->text));
}

enum { INTERPRETED, IN_C, MACHINE_CODE };

/* One way of compiling, all values of the dimensions. */
static void run_values(const ShapeRow *test, int level, bool naive, int how)
{
    Arena *arena = arena_new();
    Graph *source = parse(arena, test);
    PassOptions options = {.opt_level = level, .verify = true};
    Compiled c = compile_graph(arena, source, "x86-64-v3", &options, naive);
    int count = c.program->input_symbols;
    int64_t dims[8];
    ExtentValue names[8];
    void *library =
        how == INTERPRETED ? NULL : load_compiled(&c, folder, how == IN_C);

    assert_in_range(count, 0, 8);
    c.dims = dims;
    for (int i = 0; i < count; i++)
        dims[i] = extent_lower(c.program->symbols.data[i]);
    for (bool more = true; more;) {
        Arena *scratch = arena_new();
        for (int i = 0; i < count; i++)
            names[i] =
                (ExtentValue){c.program->symbols.data[i].expr->name, dims[i]};
        Array **inputs = input_arrays(scratch, source, names, count);
        c.inputs = inputs;
        c.arena = scratch;
        Array **want = run_reference(scratch, source, inputs);
        Array **got = library ? run_loaded(&c, library) : run_interpreted(&c);
        for (int i = 0; i < c.program->output_count; i++)
            check_close(arena_printf(scratch, "%s -O%d %s%d: %s of %d,%d",
                                     test->name, level, naive ? "naive " : "",
                                     how, source->outputs.data[i]->name,
                                     count ? (int)dims[0] : 0,
                                     count > 1 ? (int)dims[1] : 0),
                        got[i], want[i], 2e-5);
        more = false;
        for (int i = 0; i < count && !more; i++) {
            more = ++dims[i] <= c.program->symbols.data[i].value;
            if (!more)
                dims[i] = extent_lower(c.program->symbols.data[i]);
        }
        arena_free(scratch);
    }
    if (library)
        dlclose(library);
    arena_free(arena);
}

static void check(const ShapeRow *test)
{
    run_values(test, 0, true, INTERPRETED);
    run_values(test, 2, false, INTERPRETED);
    run_values(test, 2, false, IN_C);
    run_values(test, 2, false, MACHINE_CODE);
}

#define X "  input x: f32[2,1<=T<=9,4]\n"
static const ShapeRow cases[] = {
    {"relu", X "  y: f32[2,T,4] = Relu n(x)\n  output y\n"},
    {"broadcast", X "  input z: f32[T<=9,1]\n"
                    "  y: f32[2,T,4] = Mul n(x, z)\n  output y\n"},
    {"two names", "  input x: f32[1<=N<=3,1<=T<=9]\n"
                  "  input z: f32[1<=N<=3,1]\n"
                  "  y: f32[N,T] = Add n(x, z)\n  output y\n"},
    {"last axis", "  input x: f32[3,1<=T<=40]\n"
                  "  y: f32[3,T] = Sigmoid n(x)\n  output y\n"},
    {"matmul rows",
     X "  const w: f32[4,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
       "  y: f32[2,T,3] = MatMul n(x, w)\n  output y\n"},
    {"matmul columns and depth",
     "  input x: f32[2,1<=T<=9,4]\n"
     "  xt: f32[2,4,T] = Transpose t(x) {perm=[0, 2, 1]}\n"
     "  s: f32[2,T,T] = MatMul n(x, xt)\n"
     "  y: f32[2,T,4] = MatMul m(s, x)\n  output y\n  output s\n"},
    {"gemm",
     "  input x: f32[1<=T<=9,4]\n"
     "  const w: f32[3,4] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
     "  const b: f32[3] = {1, -1, 2}\n"
     "  y: f32[T,3] = Gemm n(x, w, b) {alpha=0.5, transB=1}\n  output y\n"},
    {"gather rows",
     "  input x: i64[1,1<=T<=9]\n"
     "  const e: f32[5,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "
     "15}\n"
     "  const five: i64[] = {5}\n"
     "  m: i64[1,T] = Mod m(x, five)\n"
     "  y: f32[1,T,3] = Gather n(e, m) {axis=0}\n  output y\n"},
    {"gather the last",
     X "  const last: i64[1] = {-1}\n  const one: i64[] = {0}\n"
       "  y: f32[2,1,4] = Gather n(x, last) {axis=1}\n"
       "  z: f32[2,4] = Gather m(x, one) {axis=1}\n"
       "  output y\n  output z\n"},
    {"softmax over it", "  input x: f32[3,1<=T<=40]\n"
                        "  y: f32[3,T] = Softmax n(x) {axis=-1}\n"
                        "  z: f32[3,T] = LogSoftmax m(x) {axis=1}\n"
                        "  output y\n  output z\n"},
    {"softmax beside it", X "  y: f32[2,T,4] = Softmax n(x) {axis=-1}\n"
                            "  z: f32[2,T,4] = Softmax m(x) {axis=1}\n"
                            "  output y\n  output z\n"},
    {"reductions",
     X "  const a: i64[1] = {1}\n  const b: i64[2] = {1, 2}\n"
       "  s: f32[2,1,4] = ReduceSum s(x, a)\n"
       "  m: f32[2,1,1] = ReduceMean m(x, b)\n"
       "  k: f32[2,4] = ReduceMax k(x, a) {keepdims=0}\n"
       "  l: f32[2,1,4] = ReduceLogSumExp l(x, a)\n"
       "  q: f32[2,1,4] = ReduceL2 q(x, a)\n"
       "  r: i64[2,4] = ArgMax r(x) {axis=1, keepdims=0}\n"
       "  output s\n  output m\n  output k\n  output l\n  output q\n"
       "  output r\n"},
    {"reductions beside it",
     X "  const a: i64[1] = {2}\n"
       "  s: f32[2,T,1] = ReduceSum s(x, a)\n"
       "  m: f32[2,T] = ReduceMean m(x, a) {keepdims=0}\n"
       "  output s\n  output m\n"},
    {"layernorm",
     X "  const g: f32[4] = {1, 2, 0.5, 1}\n  const b: f32[4] = {0, 1, 2, 3}\n"
       "  const o: f32[1] = {2}\n"
       "  y: f32[2,T,4] = LayerNormalization n(x, g, b)\n"
       "  z: f32[2,T,4] = LayerNormalization m(x, o) {axis=1}\n"
       "  r: f32[2,T,4] = RMSNormalization r(x, g)\n"
       "  output y\n  output z\n  output r\n"},
    {"transpose", X "  y: f32[T,4,2] = Transpose n(x) {perm=[1, 2, 0]}\n"
                    "  z: f32[2,4,T] = Transpose m(x) {perm=[0, 2, 1]}\n"
                    "  output y\n  output z\n"},
    {"reshape",
     X "  const a: i64[2] = {-1, 4}\n  const b: i64[4] = {0, 0, 2, 2}\n"
       "  const c: i64[3] = {2, -1, 1}\n  const d: i64[1] = {-1}\n"
       "  p: f32[(T*2),4] = Reshape p(x, a)\n"
       "  q: f32[2,T,2,2] = Reshape q(x, b)\n"
       "  r: f32[2,(T*4),1] = Reshape r(x, c)\n"
       "  s: f32[(T*8)] = Reshape s(p, d)\n"
       "  f: f32[2,(T*4)] = Flatten f(x)\n"
       "  output p\n  output q\n  output r\n  output s\n  output f\n"},
    {"reshape of an expression",
     X "  const one: i64[1] = {1}\n  const zero: i64[1] = {0}\n"
       "  const end: i64[1] = {99}\n  const two: i64[1] = {2}\n"
       "  const a: i64[2] = {-1, 2}\n  const b: i64[1] = {-1}\n"
       "  h: f32[2,((T+1)/2),4] = Slice h(x, zero, end, one, two)\n"
       "  p: f32[(((T+1)/2)*4),2] = Reshape p(h, a)\n"
       "  y: f32[(((T+1)/2)*8)] = Reshape q(p, b)\n"
       "  output y\n"},
    {"unsqueeze and squeeze",
     X "  const a: i64[2] = {0, 3}\n"
       "  u: f32[1,2,T,1,4] = Unsqueeze u(x, a)\n"
       "  y: f32[2,T,4] = Squeeze s(u, a)\n  output u\n  output y\n"},
    {"concat along it",
     X "  input z: f32[2,3,4]\n"
       "  y: f32[2,((T+T)+3),4] = Concat n(x, z, x) {axis=1}\n"
       "  output y\n"},
    {"concat beside it",
     X "  y: f32[2,T,8] = Concat n(x, x) {axis=2}\n  output y\n"},
    {"split beside it",
     X "  a: f32[2,T,2], b: f32[2,T,2] = Split n(x) {axis=2}\n"
       "  y: f32[2,T,2] = Sub m(a, b)\n  output y\n"},
    {"slices", "  input x: f32[2,2<=T<=9,4]\n"
               "  const zero: i64[1] = {0}\n  const one: i64[1] = {1}\n"
               "  const end: i64[1] = {9223372036854775807}\n"
               "  const last: i64[1] = {-1}\n  const two: i64[1] = {2}\n"
               "  const three: i64[1] = {3}\n  const six: i64[1] = {6}\n"
               "  const low: i64[1] = {-9223372036854775807}\n"
               "  a: f32[2,(T-1),4] = Slice a(x, one, end, one)\n"
               "  b: f32[2,(T-1),4] = Slice b(x, zero, last, one)\n"
               "  c: f32[2,((T+1)/2),4] = Slice c(x, zero, end, one, two)\n"
               "  d: f32[2,min(T,3),4] = Slice d(x, zero, three, one)\n"
               "  e: f32[2,T,4] = Slice e(x, last, low, one, last)\n"
               "  f: f32[2,max((T-6),0),4] = Slice f(x, six, end, one)\n"
               "  output a\n  output b\n  output c\n  output d\n  output e\n"
               "  output f\n"},
    {"slice up to it",
     X "  const table: f32[12,1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n"
       "  const zero: i64[1] = {0}\n  const one: i64[1] = {1}\n"
       "  const two: i64[1] = {2}\n"
       "  s: i64[3] = Shape s(x)\n"
       "  t: i64[1] = Slice t(s, one, two, zero)\n"
       "  p: f32[T,1] = Slice p(table, zero, t, zero)\n"
       "  y: f32[2,T,4] = Add y(x, p)\n  output y\n"},
    {"pad", X "  const p: i64[6] = {0, 2, 0, 0, 1, 1}\n"
              "  y: f32[2,(T+3),5] = Pad n(x, p)\n"
              "  z: f32[2,(T+3),5] = Pad m(x, p) {mode=\"edge\"}\n"
              "  output y\n  output z\n"},
    {"expand to a shape", X "  const b: f32[1,4] = {1, 2, 3, 4}\n"
                            "  s: i64[3] = Shape s(x)\n"
                            "  y: f32[2,T,4] = Expand n(b, s)\n  output y\n"},
    {"tile", X "  const r: i64[3] = {1, 2, 3}\n"
               "  y: f32[2,(T*2),12] = Tile n(x, r)\n  output y\n"},
    {"shape chain", X "  const i: i64[] = {1}\n  const z: i64[1] = {0}\n"
                      "  const four: i64[1] = {4}\n  const two: i64[1] = {2}\n"
                      "  s: i64[3] = Shape s(x)\n"
                      "  t: i64[] = Gather t(s, i)\n"
                      "  u: i64[1] = Unsqueeze u(t, z)\n"
                      "  v: i64[1] = Mul v(u, four)\n"
                      "  w: i64[2] = Concat w(two, v) {axis=0}\n"
                      "  y: f32[2,(T*4)] = Reshape y(x, w)\n"
                      "  n: i64[] = Size n(x)\n"
                      "  output y\n  output w\n  output n\n"},
    {"convolution",
     "  input x: f32[2,3,5,3<=T<=11]\n"
     "  const k: f32[1,1,3,3] = {1, -2, 3, -1, 2, 0.5, 1, 2, -3}\n"
     "  const wd: i64[4] = {4, 3, 3, 3}\n"
     "  const bias: f32[4] = {1, 2, 3, 4}\n"
     "  const d: f32[3,1,1,2] = {1, 2, 3, 4, 5, 6}\n"
     "  const p: f32[2,3,1,1] = {1, 2, 3, -1, -2, 0.5}\n"
     "  w: f32[4,3,3,3] = Expand w(k, wd)\n"
     "  a: f32[2,4,5,T] = Conv a(x, w, bias) {pads=[1, 1, 1, 1]}\n"
     "  b: f32[2,4,3,(((T-1)/2)+1)] = Conv b(x, w) {pads=[1, 1, 1, 1], "
     "strides=[2, 2]}\n"
     "  c: f32[2,3,5,(T-1)] = Conv c(x, d) {group=3}\n"
     "  e: f32[2,2,5,T] = Conv e(x, p)\n"
     "  r: f32[2,4,5,T] = Relu r(a)\n"
     "  f: f32[2,4,5,T] = Conv f(x, w) {pads=[2, 2, 2, 2], dilations=[2, 2]}\n"
     "  s: f32[2,4,5,T] = Add s(r, f)\n"
     "  output b\n  output c\n  output e\n  output s\n"},
    {"convolution of an open batch",
     "  input x: f32[1<=N<=4,3,5,6]\n"
     "  const k: f32[1,1,3,3] = {1, -2, 3, -1, 2, 0.5, 1, 2, -3}\n"
     "  const wd: i64[4] = {4, 3, 3, 3}\n"
     "  w: f32[4,3,3,3] = Expand w(k, wd)\n"
     "  a: f32[N,4,5,6] = Conv a(x, w) {pads=[1, 1, 1, 1]}\n"
     "  r: f32[N,4,5,6] = Relu r(a)\n"
     "  m: f32[N,4,2,3] = MaxPool m(r) {kernel_shape=[2, 2], strides=[2, "
     "2]}\n"
     "  g: f32[N,4,1,1] = GlobalAveragePool g(m)\n"
     "  output m\n  output g\n"},
    {"pools",
     "  input x: f32[1,2,3<=H<=6,3<=T<=8]\n"
     "  a: f32[1,2,((H-2)+1),((T-2)+1)] = MaxPool a(x) {kernel_shape=[2, 2]}\n"
     "  b: f32[1,2,(((H-1)/2)+1),(((T-1)/2)+1)] = MaxPool b(x) "
     "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]}\n"
     "  c: f32[1,2,(((H-1)/2)+1),(((T-1)/2)+1)] = AveragePool c(x) "
     "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]}\n"
     "  d: f32[1,2,(((H-1)/2)+1),(((T-1)/2)+1)] = AveragePool d(x) "
     "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], "
     "count_include_pad=1}\n"
     "  e: f32[1,2,1,1] = GlobalAveragePool e(x)\n"
     "  f: f32[1,2,1,1] = GlobalMaxPool f(x)\n"
     "  g: f32[1,2,(((H-1)/2)+1),(((T-1)/2)+1)] = MaxPool g(x) "
     "{kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1}\n"
     "  h: f32[1,2,((H-2)+1),((T-2)+1)], i: i64[1,2,((H-2)+1),((T-2)+1)] = "
     "MaxPool h(x) {kernel_shape=[2, 2]}\n"
     "  output a\n  output b\n  output c\n  output d\n  output e\n"
     "  output f\n  output g\n  output h\n  output i\n"},
    {"range",
     X "  const one: i64[] = {1}\n  const zero: i64[] = {0}\n"
       "  const two: i64[] = {2}\n  const u: i64[1] = {1}\n"
       "  s: i64[3] = Shape s(x)\n  t: i64[] = Gather t(s, one)\n"
       "  r: i64[T] = Range r(zero, t, one)\n"
       "  q: i64[((max((T-1),0)+1)/2)] = Range q(one, t, two)\n"
       "  f: f32[T] = Cast f(r) {to=1}\n  g: f32[T,1] = Unsqueeze g(f, u)\n"
       "  y: f32[2,T,4] = Add y(x, g)\n  output y\n  output q\n"},
    {"places of elements",
     X "  const z: f32[] = {0}\n  const one: i64[] = {1}\n"
       "  const q: i64[1] = {1}\n"
       "  p: f32[2,T,4] = Max p(x, z)\n"
       "  n: i64[3,\"n.count\"<=72] = NonZero n(p)\n"
       "  m: i64[3,\"n.count\"<=72] = Mul m(n, one)\n"
       "  t: i64[\"n.count\"<=72,3] = Transpose t(m)\n"
       "  s: i64[2] = Shape s(n)\n"
       "  k: i64[3] = ReduceSum k(n, q) {keepdims=0}\n"
       "  output n\n  output t\n  output s\n  output k\n"},
    {"distinct elements",
     "  input x: i64[13]\n  input z: f32[4,2]\n  const a: f32[] = {1}\n"
     "  const q: i64[1] = {-1}\n"
     "  i: i32[4,2] = Cast c(z) {to=6}\n"
     "  u: i64[\"u.count\"<=13], f: i64[\"u.count\"<=13], v: i64[13], n: "
     "i64[\"u.count\"<=13] = Unique u(x)\n"
     "  w: i32[\"w.count\"<=4,2] = Unique w(i) {axis=0}\n"
     "  s: i64[1] = ReduceSum s(n, q)\n"
     "  output u\n  output f\n  output v\n  output w\n  output s\n"},
    {"boxes",
     "  input b: f32[1,12,4]\n  input s: f32[1,2,12]\n"
     "  const most: i64[1] = {5}\n  const o: f32[1] = {0.3}\n"
     "  const t: f32[1] = {0.1}\n  const two: i64[1] = {2}\n"
     "  const one: i64[] = {1}\n"
     "  k: i64[\"k.count\"<=10,3] = NonMaxSuppression k(b, s, most, o, t)\n"
     "  g: i64[\"k.count\"<=10] = Gather g(k, one) {axis=1}\n"
     "  output k\n  output g\n"},
    {"fill", X "  s: i64[3] = Shape s(x)\n"
               "  c: f32[2,T,4] = ConstantOfShape c(s) {value=f32[1]{2}}\n"
               "  y: f32[2,T,4] = Add y(x, c)\n  output y\n  output c\n"},
};

static void test_operators(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
    for (const ShapeRow *row = shapes_rows; row->name; row++)
        check(row);
}

/* A head of attention as models write it, with everything in between. */
static void test_attention(void **state)
{
    (void)state;
    static const ShapeRow attention = {
        "attention",
        "  input x: f32[1,1<=T<=37,16]\n"
        "  const w: f32[1,16] = {1, -1, 2, -2, 3, -3, 4, -4, 0.5, -0.5, 0.25, "
        "-0.25, 0.1, -0.1, 0.2, -0.2}\n"
        "  const wd: i64[2] = {16, 16}\n"
        "  const h: i64[4] = {0, -1, 2, 8}\n"
        "  const o: i64[3] = {0, -1, 16}\n"
        "  const c: f32[] = {0.1}\n"
        "  ww: f32[16,16] = Expand ww(w, wd)\n"
        "  q: f32[1,T,16] = MatMul mq(x, ww)\n"
        "  qh: f32[1,T,2,8] = Reshape rq(q, h)\n"
        "  qt: f32[1,2,T,8] = Transpose tq(qh) {perm=[0, 2, 1, 3]}\n"
        "  xh: f32[1,T,2,8] = Reshape rx(x, h)\n"
        "  xt: f32[1,2,T,8] = Transpose tx(xh) {perm=[0, 2, 1, 3]}\n"
        "  kt: f32[1,2,8,T] = Transpose tk(xh) {perm=[0, 2, 3, 1]}\n"
        "  s: f32[1,2,T,T] = MatMul ms(qt, kt)\n"
        "  sc: f32[1,2,T,T] = Mul sc(s, c)\n"
        "  p: f32[1,2,T,T] = Softmax p(sc)\n"
        "  a: f32[1,2,T,8] = MatMul ma(p, xt)\n"
        "  at: f32[1,T,2,8] = Transpose ta(a) {perm=[0, 2, 1, 3]}\n"
        "  ao: f32[1,T,16] = Reshape ra(at, o)\n"
        "  y: f32[1,T,16] = Add res(ao, x)\n"
        "  output y\n"};
    check(&attention);
}

/* Messages name the node, and what is to be done. */
static void refused(const char *text, const char *message)
{
    Arena *arena = arena_new();
    ShapeRow test = {"refused", text};
    Graph *g = parse(arena, &test);
    bool ok = ops_infer_graph(g) && ops_check_lowerable(g);
    assert_false(ok);
    if (!strstr(g->diag->errors.data[0], message) ||
        !strstr(g->diag->errors.data[0], "--dim"))
        fail_msg("\"%s\" lacks \"%s\"", g->diag->errors.data[0], message);
    assert_int_equal(g->diag->errors.count, 1);
    arena_free(arena);
}

static void test_refusals(void **state)
{
    (void)state;
    /* All nodes of a kind in one message. */
    refused("  input x: f32[1<=N<=2,1,2,2]\n  input i: i64[1<=N<=2,1,2,2]\n"
            "  y: f32[N,1,4,4] = MaxUnpool first(x, i) {kernel_shape=[2, 2], "
            "strides=[2, 2]}\n"
            "  z: f32[N,1,4,4] = MaxUnpool second(x, i) {kernel_shape=[2, 2], "
            "strides=[2, 2]}\n  output y\n  output z\n",
            "MaxUnpool \"second\"");
    refused(X "  input s: i64[3]\n  y: f32[2,4] = Reshape r(x, s)\n"
              "  output y\n",
            "--dim s=LOW..HIGH");
    refused(X "  input z: f32[1<=S<=9,4]\n"
              "  y: f32[2,T,4] = Add sum(x, z)\n  output y\n",
            "the extents T and S are not known to be equal");
    refused(X "  input z: f32[9,4]\n"
              "  y: f32[2,T,4] = Add sum(x, z)\n  output y\n",
            "the extents T and 9 are not known to be equal");
    refused(X "  const s: i64[2] = {3, -1}\n"
              "  y: f32[3,T] = Reshape r(x, s)\n  output y\n",
            "whether the elements fit");
    refused(X "  const s: i64[3] = {2, 9, 4}\n"
              "  y: f32[2,9,4] = Reshape r(x, s)\n  output y\n",
            "whether the elements fit");
    refused("  input x: f32[2,T]\n  y: f32[2,T] = Relu r(x)\n  output y\n",
            "x: f32[2,T]");
}

/* What a run brings and shapes cannot have: said, and nothing is read or
 * written outside. */
static void refuses(const char *text, int64_t first, int64_t second, bool does)
{
    for (int how = INTERPRETED; how <= MACHINE_CODE; how++) {
        Arena *arena = arena_new();
        ShapeRow row = {"numbers", text};
        Compiled c = compile_graph(arena, parse(arena, &row), "x86-64-v3",
                                   NULL, how == INTERPRETED);
        Array **inputs = input_arrays(arena, c.source, NULL, 0);
        array_set_int(inputs[1], 0, first);
        array_set_int(inputs[1], 1, second);
        c.inputs = inputs;
        void *library =
            how == INTERPRETED ? NULL : load_compiled(&c, folder, how == IN_C);
        if (library)
            run_loaded(&c, library);
        else
            run_interpreted(&c);
        if (!c.refused == does)
            fail_msg("%lld and %lld: %d", (long long)first, (long long)second,
                     (int)c.refused);
        if (library)
            dlclose(library);
        arena_free(arena);
    }
}

static void test_numbers_of_runs(void **state)
{
    (void)state;
    const char *fill = "  declare 1<=s<=4\n"
                       "  input x: f32[1]\n  input s: i64[2]\n"
                       "  f: f32[\"s[0]\"<=4,\"s[1]\"<=4] = Expand e(x, s)\n"
                       "  y: f32[\"s[0]\"<=4,\"s[1]\"<=4] = Neg n(f)\n"
                       "  output y\n";
    refuses(fill, 4, 1, false);
    refuses(fill, 5, 1, true);
    refuses(fill, 2, 0, true);
    refuses(fill, 2, -3, true);
    refuses(fill, INT64_MAX, INT64_MIN, true);
    const char *shape = "  declare 1<=s<=6\n"
                        "  input x: f32[6]\n  input s: i64[2]\n"
                        "  f: f32[\"r[0]\"<=6,\"r[1]\"<=6] = Reshape r(x, s)\n"
                        "  y: f32[\"r[0]\"<=6,\"r[1]\"<=6] = Neg n(f)\n"
                        "  output y\n";
    refuses(shape, 2, 3, false);
    refuses(shape, -1, 2, false);
    refuses(shape, 6, 6, true);
    refuses(shape, 1, 5, true);
    refuses(shape, -1, 4, true);
    refuses(shape, 7, 1, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_numbers_of_runs),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
