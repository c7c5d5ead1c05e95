/* Graphs through passes, composition, schedules, lowering and the memory
 * plan, executed by the interpreter and compared with the reference: at
 * every level, naive and scheduled, for several targets. Then the plan
 * itself, and the text form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "suites/unit/compiled.h"

typedef struct Sample {
    const char *name, *text;
} Sample;

/* Constants of 16 elements at most are written out; larger ones come from
 * Expand of small ones, which folding turns into constants. */
static const Sample samples[] = {
    {"conv, batch normalization, relu, residual",
     "graph g\n"
     "  input x: f32[1,4,6,6]\n"
     "  const w: f32[4,4,1,1] = {0.5, -1, 0.25, 2, 1, 0.5, -0.5, 0.75,\n"
     "    -1, 1, 0.125, 0.5, 0.25, 0.5, -2, 1}\n"
     "  const s: f32[4] = {1, 0.5, 2, -1}\n"
     "  const b: f32[4] = {0.1, -0.2, 0.3, 0}\n"
     "  const m: f32[4] = {0.5, 0, -0.5, 1}\n"
     "  const v: f32[4] = {1, 4, 0.25, 2}\n"
     "  c: f32[1,4,6,6] = Conv conv(x, w)\n"
     "  n: f32[1,4,6,6] = BatchNormalization bn(c, s, b, m, v)\n"
     "  a: f32[1,4,6,6] = Add add(n, x)\n"
     "  y: f32[1,4,6,6] = Relu relu(a)\n"
     "  output y\n"},
    {"padded and strided convolutions, depthwise, pool, classifier",
     "graph g\n"
     "  input x: f32[2,3,9,9]\n"
     "  const k1: f32[1,1,3,1] = {0.5, -1, 0.25}\n"
     "  const e1: i64[4] = {8, 3, 3, 3}\n"
     "  const kd: f32[1,1,3,3] = {1, 2, -1, 0.5, 3, 0, 1, -2, 0.25}\n"
     "  const ed: i64[4] = {8, 1, 3, 3}\n"
     "  const r: i64[2] = {40, 1}\n"
     "  const r2: i64[2] = {5, 8}\n"
     "  const bias: f32[5] = {1, 2, 3, 4, 5}\n"
     "  w1: f32[8,3,3,3] = Expand x1(k1, e1)\n"
     "  wd: f32[8,1,3,3] = Expand x2(kd, ed)\n"
     "  const one: f32[1] = {0.125}\n"
     "  wf: f32[40,1] = Expand x3(one, r)\n"
     "  wg: f32[5,8] = Reshape x4(wf, r2)\n"
     "  c1: f32[2,8,5,5] = Conv conv1(x, w1) {pads=[1, 1, 1, 1], "
     "strides=[2, 2]}\n"
     "  a1: f32[2,8,5,5] = HardSwish act1(c1)\n"
     "  c2: f32[2,8,5,5] = Conv conv2(a1, wd) {group=8, pads=[1, 1, 1, 1]}\n"
     "  a2: f32[2,8,5,5] = Sigmoid act2(c2)\n"
     "  g: f32[2,8,5,5] = Mul gate(a2, a1)\n"
     "  p: f32[2,8,1,1] = GlobalAveragePool pool(g)\n"
     "  f: f32[2,8] = Flatten flat(p)\n"
     "  z: f32[2,5] = Gemm fc(f, wg, bias) {transB=1}\n"
     "  y: f32[2,5] = Softmax soft(z)\n"
     "  output y\n"},
    {"silu after a convolution, both users in the group",
     "graph g\n"
     "  input x: f32[1,2,5,7]\n"
     "  const w: f32[4,2,1,1] = {1, -1, 0.5, 0.25, 2, 1, -0.5, 1}\n"
     "  const b: f32[4] = {0.1, 0.2, 0.3, 0.4}\n"
     "  c: f32[1,4,5,7] = Conv conv(x, w, b)\n"
     "  s: f32[1,4,5,7] = Sigmoid sig(c)\n"
     "  y: f32[1,4,5,7] = Mul mul(c, s)\n"
     "  output y\n"},
    {"a convolution that is also an output",
     "graph g\n"
     "  input x: f32[1,2,4,4]\n"
     "  const w: f32[2,2,1,1] = {1, -1, 0.5, 0.25}\n"
     "  const v: f32[2,2,2,1] = {1, 2, 3, 4, -1, -2, -3, -4}\n"
     "  c: f32[1,2,4,4] = Conv conv(x, w)\n"
     "  r: f32[1,2,4,4] = Relu relu(c)\n"
     "  d: f32[1,2,5,4] = Conv conv2(c, v) {pads=[1, 0, 1, 0]}\n"
     "  output c\n"
     "  output r\n"
     "  output d\n"},
    {"two convolutions with different padding share their input",
     "graph g\n"
     "  input x: f32[1,1,6,6]\n"
     "  const w0: f32[2,1,1,1] = {1, -2}\n"
     "  const w1: f32[1,2,3,2] = {1, 2, 3, 4, 5, 6, -1, -2, -3, 1, 2, 3}\n"
     "  const w2: f32[1,2,1,1] = {3, 4}\n"
     "  c0: f32[1,2,6,6] = Conv conv0(x, w0)\n"
     "  r0: f32[1,2,6,6] = Relu relu(c0)\n"
     "  c1: f32[1,1,6,6] = Conv conv1(r0, w1) {pads=[2, 0, 0, 1]}\n"
     "  c2: f32[1,1,6,6] = Conv conv2(r0, w2)\n"
     "  s: f32[1,1,6,6] = Add sum(c1, c2)\n"
     "  y: f32[1,1,6,6] = Tanh tanh(s)\n"
     "  output y\n"},
    {"max pool with padding, concat, slice, transpose",
     "graph g\n"
     "  input x: f32[1,2,6,6]\n"
     "  const w: f32[3,2,1,1] = {1, -1, 0.5, 0.25, 2, 3}\n"
     "  const starts: i64[1] = {1}\n"
     "  const ends: i64[1] = {4}\n"
     "  const axes: i64[1] = {1}\n"
     "  c: f32[1,3,6,6] = Conv conv(x, w)\n"
     "  p: f32[1,3,6,6] = MaxPool pool(c) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1]}\n"
     "  k: f32[1,6,6,6] = Concat cat(c, p) {axis=1}\n"
     "  l: f32[1,3,6,6] = Slice slice(k, starts, ends, axes)\n"
     "  t: f32[1,6,6,3] = Transpose last(l) {perm=[0, 2, 3, 1]}\n"
     "  y: f32[1,6,6,3] = Exp exp(t)\n"
     "  output y\n"},
    {"attention",
     "graph g\n"
     "  input x: f32[1,5,8]\n"
     "  const e: i64[2] = {8, 8}\n"
     "  const h: i64[4] = {1, 5, 2, 4}\n"
     "  const back: i64[3] = {1, 5, 8}\n"
     "  const scale: f32[] = {0.5}\n"
     "  const w3: i64[3] = {2, 4, 8}\n"
     "  const o3: f32[2,4,1] = {0.5, -0.25, 1, 0, 0.75, -1, 0.5, 0.25}\n"
     "  x3: f32[2,4,8] = Expand expand(o3, w3)\n"
     "  w: f32[8,8] = Reshape weights(x3, e)\n"
     "  q: f32[1,5,8] = MatMul query(x, w)\n"
     "  k: f32[1,5,8] = Tanh key(x)\n"
     "  qh: f32[1,5,2,4] = Reshape rq(q, h)\n"
     "  kh: f32[1,5,2,4] = Reshape rk(k, h)\n"
     "  vh: f32[1,5,2,4] = Reshape rv(x, h)\n"
     "  qt: f32[1,2,5,4] = Transpose tq(qh) {perm=[0, 2, 1, 3]}\n"
     "  kt: f32[1,2,4,5] = Transpose tk(kh) {perm=[0, 2, 3, 1]}\n"
     "  vt: f32[1,2,5,4] = Transpose tv(vh) {perm=[0, 2, 1, 3]}\n"
     "  s: f32[1,2,5,5] = MatMul scores(qt, kt)\n"
     "  s2: f32[1,2,5,5] = Mul scaled(s, scale)\n"
     "  p: f32[1,2,5,5] = Softmax soft(s2)\n"
     "  o: f32[1,2,5,4] = MatMul mix(p, vt)\n"
     "  ot: f32[1,5,2,4] = Transpose to(o) {perm=[0, 2, 1, 3]}\n"
     "  y: f32[1,5,8] = Reshape ro(ot, back)\n"
     "  z: f32[1,5,8] = Add residual(y, x)\n"
     "  output z\n"},
    {"layer normalization, decomposed",
     "graph g\n"
     "  input x: f32[3,16]\n"
     "  const axes: i64[1] = {-1}\n"
     "  const two: f32[] = {2}\n"
     "  const eps: f32[] = {0.00001}\n"
     "  const gamma: f32[16] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, "
     "2, 1}\n"
     "  const beta: f32[1] = {0.5}\n"
     "  m: f32[3,1] = ReduceMean mean(x, axes)\n"
     "  d: f32[3,16] = Sub centre(x, m)\n"
     "  q: f32[3,16] = Pow square(d, two)\n"
     "  v: f32[3,1] = ReduceMean variance(q, axes)\n"
     "  e: f32[3,1] = Add add_eps(v, eps)\n"
     "  r: f32[3,1] = Sqrt root(e)\n"
     "  n: f32[3,16] = Div divide(d, r)\n"
     "  s: f32[3,16] = Mul scale(n, gamma)\n"
     "  y: f32[3,16] = Add shift(s, beta)\n"
     "  output y\n"},
    {"elementwise chains, selection, integers",
     "graph g\n"
     "  input x: f32[3,7]\n"
     "  input i: i64[3,1]\n"
     "  const c: f32[7] = {1, -1, 2, -2, 3, -3, 0}\n"
     "  const z: i64[1] = {0}\n"
     "  a: f32[3,7] = Mul mul(x, c)\n"
     "  b: f32[3,7] = Erf erf(a)\n"
     "  g1: bool[3,1] = Greater greater(i, z)\n"
     "  w: f32[3,7] = Where where(g1, b, x)\n"
     "  n: i64[3,1] = Add count(i, i)\n"
     "  f: f32[3,1] = Cast cast(n) {to=1}\n"
     "  y: f32[3,7] = Sub sub(w, f)\n"
     "  output y\n"
     "  output n\n"},
};

enum { SAMPLES = sizeof samples / sizeof *samples };

static void compare(const Sample *s, const char *target, int level, bool naive,
                    const char *const *disabled)
{
    Arena *arena = arena_new();
    PassOptions options = {
        .opt_level = level, .verify = true, .disabled = disabled};
    Compiled c = compile_text(arena, s->text, target, &options, naive);
    Array **got = run_interpreted(&c);
    Array **want = run_reference(arena, c.source, NULL);
    char what[256];

    for (int i = 0; i < c.program->output_count; i++) {
        snprintf(what, sizeof what, "%s, %s, -O%d%s%s: output %d", s->name,
                 target, level, naive ? ", naive" : "",
                 disabled ? ", unfused" : "", i);
        check_close(what, got[i], want[i], 2e-5);
    }
    arena_free(arena);
}

static void test_naive(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        for (int level = 0; level <= 2; level++)
            compare(&samples[i], "x86-64-v3", level, true, NULL);
}

static void test_scheduled(void **state)
{
    static const char *const targets[] = {"x86-64-v2", "x86-64-v3",
                                          "x86-64-v4", "aarch64", "c"};
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        for (int t = 0; t < 5; t++)
            compare(&samples[i], targets[t], 2, false, NULL);
}

/* Each pass can be left out, and the result stays. */
static void test_without_passes(void **state)
{
    static const char *const sets[][2] = {
        {"fuse", NULL},     {"layout", NULL}, {"batchnorm", NULL},
        {"simplify", NULL}, {"cse", NULL},    {"dce", NULL},
        {"decompose", NULL}};
    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
            compare(&samples[i], "x86-64-v3", 2, false, sets[k]);
}

/* The trace of every kernel, replayed on its definition, gives its loops. */
static void test_traces(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        Arena *arena = arena_new();
        Compiled c =
            compile_text(arena, samples[i].text, "x86-64-v4", NULL, false);
        for (int k = 0; k < c.program->kernels.count; k++) {
            const ProgramKernel *kernel = &c.program->kernels.data[k];
            Str text = {0};
            definition_print(&text, kernel->def);
            Definition *def = definition_parse(arena, c.diag, str_text(&text));
            assert_non_null(def);
            Schedule *s = schedule_new(arena, c.diag, def);
            assert_true(schedule_replay(s, kernel->trace));
            assert_true(schedule_lower(s, arena)->hash ==
                        kernel->kernel->hash);
            str_free(&text);
        }
        arena_free(arena);
    }
}

static void test_c_backend(void **state)
{
    char dir[] = "/tmp/assay-test-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < SAMPLES; i++) {
        Arena *arena = arena_new();
        Compiled c = compile_text(arena, samples[i].text, "c", NULL, false);
        Array **got = run_compiled_c(&c, dir);
        Array **want = run_reference(arena, c.source, NULL);
        for (int k = 0; k < c.program->output_count; k++)
            check_close(samples[i].name, got[k], want[k], 2e-5);
        for (int k = 0; k < c.program->kernels.count; k++) {
            assert_true(c.program->kernels.data[k].code_hash != 0);
            assert_true(c.program->kernels.data[k].code_bytes > 0);
        }
        arena_free(arena);
    }
    Str command = {0};
    str_addf(&command, "rm -r '%s'", dir);
    assert_int_equal(system(str_text(&command)), 0);
    str_free(&command);
}

/* ---- structure ------------------------------------------------------ */

static const ProgramBuffer *find_buffer(const Program *p, const char *name)
{
    for (int i = 0; i < p->buffers.count; i++)
        if (strcmp(p->buffers.data[i].name, name) == 0)
            return &p->buffers.data[i];
    return NULL;
}

/* Equal groups, wherever they are, share a kernel; constants in the same
 * layout are stored once. */
static void test_shared_kernels(void **state)
{
    Arena *arena = arena_new();
    (void)state;
    Compiled c = compile_text(arena,
                              "graph g\n"
                              "  input x: f32[1,4,4,4]\n"
                              "  const k: f32[4,1,1,1] = {1, 2, 3, 4}\n"
                              "  const e: i64[4] = {4, 4, 1, 1}\n"
                              "  w: f32[4,4,1,1] = Expand expand(k, e)\n"
                              "  a: f32[1,4,4,4] = Conv first(x, w)\n"
                              "  b: f32[1,4,4,4] = Relu r1(a)\n"
                              "  c: f32[1,4,4,4] = Conv second(b, w)\n"
                              "  d: f32[1,4,4,4] = Relu r2(c)\n"
                              "  f: f32[1,4,4,4] = Conv third(d, w)\n"
                              "  y: f32[1,4,4,4] = Relu r3(f)\n"
                              "  output y\n",
                              "x86-64-v3", NULL, false);
    const Program *p = c.program;
    int last = p->steps.count - 1, constants = 0;
    /* Relayout of the input, and three convolutions; the last one writes
     * the row-major output and is a kernel of its own. */
    assert_int_equal(p->steps.count, 4);
    assert_int_equal(p->steps.data[1].kernel, p->steps.data[2].kernel);
    assert_int_not_equal(p->steps.data[2].kernel, p->steps.data[last].kernel);
    for (int i = 0; i < p->buffers.count; i++)
        constants += p->buffers.data[i].kind == PB_CONSTANT;
    assert_in_range(constants, 1, 2);
    arena_free(arena);
}

static void test_aliases(void **state)
{
    Arena *arena = arena_new();
    (void)state;
    Compiled c = compile_text(arena,
                              "graph g\n"
                              "  input x: f32[2,3,4]\n"
                              "  const s: i64[2] = {6, 4}\n"
                              "  a: f32[2,3,4] = Relu relu(x)\n"
                              "  b: f32[6,4] = Reshape reshape(a, s)\n"
                              "  t: f32[4,6] = Transpose transpose(b)\n"
                              "  y: f32[4,6] = Exp exp(t)\n"
                              "  output y\n",
                              "x86-64-v3", NULL, false);
    const Program *p = c.program;
    /* Neither reshape nor transpose is a kernel. */
    assert_int_equal(p->steps.count, 2);
    const ProgramBuffer *a = find_buffer(p, "a"), *b = find_buffer(p, "b");
    const ProgramBuffer *t = find_buffer(p, "t");
    assert_int_equal(a->alias_of, -1);
    assert_int_equal(b->alias_of, a - p->buffers.data);
    assert_int_equal(t->alias_of, a - p->buffers.data);
    assert_int_equal(b->offset, a->offset);
    assert_int_equal(p->arena_bytes, 128);
    arena_free(arena);
}

/* A chain that fusion may not merge runs in one buffer; with taps every
 * tensor keeps its own. */
static void test_in_place(void **state)
{
    static const char *const unfused[] = {"fuse", NULL};
    static const char text[] = "graph g\n"
                               "  input x: f32[64]\n"
                               "  a: f32[64] = Exp one(x)\n"
                               "  b: f32[64] = Tanh two(a)\n"
                               "  c: f32[64] = Relu three(b)\n"
                               "  d: f32[64] = Add four(b, c)\n"
                               "  y: f32[64] = Sigmoid five(d)\n"
                               "  output y\n";
    PassOptions options = {.opt_level = 2, .disabled = unfused};
    Arena *arena = arena_new();
    (void)state;
    Compiled c = compile_text(arena, text, "x86-64-v3", &options, false);
    Program *p = c.program;
    assert_int_equal(p->steps.count, 5);
    /* a and b share; c needs its own, as b is read again; d shares. */
    assert_int_equal(p->arena_bytes, 512);
    assert_int_equal(p->arena_bound, 512);
    assert_true(find_buffer(p, "b")->alias_of >= 0);
    assert_int_equal(find_buffer(p, "c")->alias_of, -1);
    c = compile_text(arena, text, "x86-64-v3", &options, false);
    c.program->taps = true;
    program_plan_memory(c.program);
    program_verify(c.program);
    arena_free(arena);
}

static void test_text_form(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        Arena *arena = arena_new();
        Str first = {0}, second = {0};
        Compiled c =
            compile_text(arena, samples[i].text, "x86-64-v3", NULL, false);
        /* The nodes of a step are comments, which are not read. */
        for (int s = 0; s < c.program->steps.count; s++)
            c.program->steps.data[s].group = NULL;
        program_print(&first, c.program);
        Program *back = program_parse(arena, c.diag, str_text(&first));
        if (!back)
            fail_msg("%s", c.diag->errors.data[0]);
        program_verify(back);
        program_print(&second, back);
        assert_string_equal(str_text(&first), str_text(&second));
        str_free(&first);
        str_free(&second);
        arena_free(arena);
    }
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena, NULL);
    assert_null(program_parse(arena, diag, "program \"p\" target \"\" in"));
    assert_non_null(strstr(diag->errors.data[0], "line 1"));
    arena_free(arena);
}

static void test_weights_file(void **state)
{
    char path[] = "/tmp/assay-weights-XXXXXX";
    Arena *arena = arena_new();
    Compiled c =
        compile_text(arena, samples[1].text, "x86-64-v3", NULL, false);
    const Program *p = c.program;
    int fd = mkstemp(path);
    (void)state;

    assert_true(fd >= 0);
    close(fd);
    assert_true(program_write_weights(p, c.diag, path));
    FILE *file = fopen(path, "rb");
    char *data = arena_alloc(arena, (size_t)p->weight_bytes + 1);
    assert_int_equal(fread(data, 1, (size_t)p->weight_bytes + 1, file),
                     p->weight_bytes);
    fclose(file);
    unlink(path);
    for (int i = 0; i < p->buffers.count; i++) {
        const ProgramBuffer *b = &p->buffers.data[i];
        if (b->kind != PB_CONSTANT)
            continue;
        Array *back = array_new(arena, b->dtype, b->rank, b->dims);
        layout_unpack(&b->layout, data + b->offset, back);
        assert_memory_equal(back->data, b->value->data, array_bytes(back));
    }
    assert_false(program_write_weights(p, c.diag, "/nowhere/weights.bin"));
    assert_non_null(strstr(c.diag->errors.data[0], "/nowhere/weights.bin"));
    arena_free(arena);
}

/* ---- the plan, on random programs ----------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* A chain of steps, each of which reads up to three recent buffers. */
static Program *random_program(Arena *arena, uint32_t seed, int steps)
{
    Program *p = ARENA_NEW(arena, Program);
    Kernel *kernel = ARENA_NEW(arena, Kernel);
    const int arguments = 4;

    p->arena = arena;
    p->name = "random";
    kernel->name = "k";
    bool *in_place = ARENA_ARRAY(arena, bool, arguments);
    for (int i = 0; i < arguments; i++) {
        Buffer *b = ARENA_NEW(arena, Buffer);
        b->name = arena_printf(arena, "p%d", i);
        b->role = i + 1 < arguments ? BUF_INPUT : BUF_OUTPUT;
        b->dtype = DT_I8;
        b->rank = 1;
        b->dims[0] = 1;
        b->layout = layout_row_major(1);
        in_place[i] = i == 0 && seed % 2;
        vec_push(arena, &kernel->params, b);
    }
    vec_push(arena, &p->kernels,
             ((ProgramKernel){.kernel = kernel, .in_place = in_place}));
    for (int s = 0; s < steps; s++) {
        ProgramBuffer b = {.name = arena_printf(arena, "b%d", s),
                           .kind = PB_ARENA,
                           .dtype = DT_I8,
                           .rank = 1,
                           .alias_of = -1};
        b.bytes = 1 + next_random(&seed) % 5000;
        if (next_random(&seed) % 8 == 0)
            b.bytes *= 40;
        b.dims[0] = b.bytes;
        b.layout = layout_row_major(1);
        vec_push(arena, &p->buffers, b);
        ProgramStep step = {.kernel = 0, .arg_count = arguments};
        step.args = ARENA_ARRAY(arena, int, arguments);
        for (int a = 0; a + 1 < arguments; a++) {
            int back = 1 + (int)(next_random(&seed) % 6);
            step.args[a] = s - back > 0 ? s - back : 0;
        }
        step.args[arguments - 1] = s;
        vec_push(arena, &p->steps, step);
    }
    return p;
}

static void test_random_plans(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        Arena *arena = arena_new();
        Program *p = random_program(arena, seed, 10 + (int)seed * 3);
        program_plan_memory(p);
        program_verify(p); /* no overlap, all in range */
        assert_true(p->arena_bytes >= p->arena_bound);
        if ((double)p->arena_bytes > 1.15 * (double)p->arena_bound)
            fail_msg("seed %u: arena %lld, bound %lld", seed,
                     (long long)p->arena_bytes, (long long)p->arena_bound);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_naive),
        cmocka_unit_test(test_scheduled),
        cmocka_unit_test(test_without_passes),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_c_backend),
        cmocka_unit_test(test_shared_kernels),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_text_form),
        cmocka_unit_test(test_weights_file),
        cmocka_unit_test(test_random_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
