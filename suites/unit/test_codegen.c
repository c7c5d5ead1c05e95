/* Machine code: register tiles stay in registers, and the instructions are
 * the ones the target has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "schedules/choose.h"

static const char convolution[] =
    "definition conv {\n"
    "  in x f32[1, 64, 28, 28]\n  const w f32[128, 64, 3, 3]\n"
    "  const b f32[128]\n  temp t f32[1, 128, 28, 28]\n"
    "  out y f32[1, 128, 28, 28]\n"
    "  stage t[n:1, o:128, h:28, w:28] sum[c:64, kh:3, kw:3] = (x[n, c, "
    "((h + kh) + -1), ((w + kw) + -1) | 0.0] * w[o, c, kh, kw])\n"
    "  stage y[n:1, o:128, h:28, w:28] = max((t[n, o, h, w] + b[o]), "
    "0.0)\n}\n";
static const char *const convolution_layout =
    "pack x [0 2+1+1 3+1+1 1]\npack y [0 2+1+1 3+1+1 1]\n";

/* What becomes of a convolution by tiles of 2 x 2. */
static const char tiles[] =
    "definition wg {\n"
    "  in in0 f32[1, 64, 28, 28]\n"
    "  const w1 f32[4, 4, 64, 64]\n"
    "  const w2 f32[64]\n"
    "  temp winogradconv f32[1, 64, 28, 28]\n"
    "  temp rows f32[196, 4, 4, 64]\n"
    "  temp points f32[196, 4, 4, 64]\n"
    "  temp products f32[196, 4, 4, 64]\n"
    "  temp sums f32[196, 2, 4, 64]\n"
    "  temp pixels f32[196, 2, 2, 64]\n"
    "  out relu f32[1, 64, 28, 28]\n"
    "  stage rows[n:196, o:4, h:4, w:64] = select(eq(o, 0), (in0[0, w, "
    "(((n / 14) * 2) + -1), ((((n % 14) * 2) + -1) + h) | 0.0] - "
    "in0[0, w, (((n / 14) * 2) + 1), ((((n % 14) * 2) + -1) + h) | "
    "0.0]), select(eq(o, 1), (in0[0, w, ((n / 14) * 2), ((((n % 14) * "
    "2) + -1) + h) | 0.0] + in0[0, w, (((n / 14) * 2) + 1), ((((n % "
    "14) * 2) + -1) + h) | 0.0]), select(eq(o, 2), (in0[0, w, (((n / "
    "14) * 2) + 1), ((((n % 14) * 2) + -1) + h) | 0.0] - in0[0, w, ((n "
    "/ 14) * 2), ((((n % 14) * 2) + -1) + h) | 0.0]), (in0[0, w, ((n / "
    "14) * 2), ((((n % 14) * 2) + -1) + h) | 0.0] - in0[0, w, (((n / "
    "14) * 2) + 2), ((((n % 14) * 2) + -1) + h) | 0.0]))))\n"
    "  stage points[n:196, o:4, h:4, w:64] = select(eq(h, 0), (rows[n, "
    "o, 0, w] - rows[n, o, 2, w]), select(eq(h, 1), (rows[n, o, 1, w] "
    "+ rows[n, o, 2, w]), select(eq(h, 2), (rows[n, o, 2, w] - rows[n, "
    "o, 1, w]), (rows[n, o, 1, w] - rows[n, o, 3, w]))))\n"
    "  stage products[n:196, o:4, h:4, w:64] sum[c:64] = (points[n, o, "
    "h, c] * w1[o, h, w, c])\n"
    "  stage sums[n:196, o:2, h:4, w:64] = select(eq(o, 0), "
    "(products[n, 0, h, w] + (products[n, 1, h, w] + products[n, 2, h, "
    "w])), ((products[n, 1, h, w] - products[n, 2, h, w]) - "
    "products[n, 3, h, w]))\n"
    "  stage pixels[n:196, o:2, h:2, w:64] = select(eq(h, 0), (sums[n, "
    "o, 0, w] + (sums[n, o, 1, w] + sums[n, o, 2, w])), ((sums[n, o, "
    "1, w] - sums[n, o, 2, w]) - sums[n, o, 3, w]))\n"
    "  stage winogradconv[n:1, o:64, h:28, w:28] = (pixels[(((h / 2) * "
    "14) + (w / 2)), (h % 2), (w % 2), o] + w2[o])\n"
    "  stage relu[n:1, o:64, h:28, w:28] = max(winogradconv[n, o, h, "
    "w], 0.0)\n"
    "}\n";
static const char *const tiles_layout =
    "pack in0 [0 2+1+1 3+1+1 1]\npack relu [0 2 3 1]\n";

static const char depthwise[] =
    "definition dw {\n"
    "  in x f32[1, 96, 28, 28]\n  const w f32[96, 1, 3, 3]\n"
    "  out y f32[1, 96, 28, 28]\n"
    "  stage y[n:1, o:96, h:28, w:28] sum[kh:3, kw:3] = (x[n, o, "
    "((h + kh) + -1), ((w + kw) + -1) | 0.0] * w[o, 0, kh, kw])\n}\n";
static const char *const depthwise_layout =
    "pack x [0 2+1+1 3+1+1 1]\npack y [0 2 3 1]\n";

static const char product[] =
    "definition mm {\n"
    "  in x f32[128, 384]\n  const w f32[384, 1536]\n"
    "  out y f32[128, 1536]\n"
    "  stage y[i:128, j:1536] sum[k:384] = (x[i, k] * w[k, j])\n}\n";

/* Two and a half vectors of channels. */
static const char partial[] =
    "definition conv {\n"
    "  in x f32[1, 120, 28, 28]\n  const w f32[40, 120, 1, 1]\n"
    "  in r f32[1, 40, 28, 28]\n  temp t f32[1, 40, 28, 28]\n"
    "  out y f32[1, 40, 28, 28]\n"
    "  stage t[n:1, o:40, h:28, w:28] sum[c:120, kh:1, kw:1] = "
    "(x[n, c, (h + kh), (w + kw)] * w[o, c, kh, kw])\n"
    "  stage y[n:1, o:40, h:28, w:28] = (r[n, o, h, w] + t[n, o, h, w])\n}\n";
static const char *const partial_layout =
    "pack x [0 2 3 1]\npack r [0 2 3 1]\npack y [0 2 3 1]\n";

static char *assembly(Arena *a, const char *text, const char *layout,
                      const Target *target)
{
    Diag *diag = diag_new(a, NULL);
    Definition *def = definition_parse(a, diag, text);
    assert_non_null(def);
    Schedule *s = schedule_new(a, diag, def);
    assert_true(schedule_replay(s, layout));
    assert_true(schedule_choose(s, target, SCHEDULE_FAST, NULL, NULL));
    Str out = {0};
    if (!codegen_llvm_text(&out, diag, schedule_lower(s, a), target, true))
        fail_msg("%s", diag->errors.data[0]);
    char *copy = arena_strdup(a, str_text(&out));
    str_free(&out);
    return copy;
}

static int occurrences(const char *text, const char *end, const char *what)
{
    int n = 0;
    for (const char *p = strstr(text, what); p && p < end;
         p = strstr(p + 1, what))
        n++;
    return n;
}

/* The straight piece of code with the most multiply-adds is the inner
 * loop; returns its accesses to the stack and sets *work. */
static int hot_stack_accesses(char *text, const char *fma, const char *stack,
                              int *work)
{
    int accesses = 0;
    *work = 0;
    for (char *start = text; start && *start;) {
        char *end = strstr(start + 1, "\n.L");
        if (!end)
            end = start + strlen(start);
        char *next = *end ? end : NULL;
        /* A loop ends with the branch back to its own label. */
        if (strncmp(start, "\n.L", 3) == 0) {
            char label[64];
            size_t length = strcspn(start + 1, ":");
            assert_true(length + 2 < sizeof label);
            label[0] = '\t';
            memcpy(label + 1, start + 1, length);
            strcpy(label + 1 + length, "\n");
            char *back = strstr(start, label);
            if (back && back < end)
                end = back;
        }
        int n = occurrences(start, end, fma);
        if (n > *work) {
            *work = n;
            accesses = occurrences(start, end, stack);
        }
        start = next;
    }
    return accesses;
}

static void check(const char *name, const char *text, const char *layout,
                  const char *target_name, const char *fma, const char *stack,
                  int least)
{
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    const Target *target = target_find(a, diag, target_name);
    assert_non_null(target);
    int work;
    char *s = assembly(a, text, layout, target);
    int accesses = hot_stack_accesses(s, fma, stack, &work);
    if (work < least)
        fail_msg("%s for %s: %d multiply-adds in the inner loop, not %d", name,
                 target_name, work, least);
    if (accesses)
        fail_msg("%s for %s: the inner loop touches the stack %d times", name,
                 target_name, accesses);
    arena_free(a);
}

static void test_register_tiles(void **state)
{
    (void)state;
    static const struct {
        const char *target, *fma, *stack;
        int least;
    } rows[] = {
        {"x86-64-v4", "vfmadd", "%rsp", 80},
        {"x86-64-v3", "vfmadd", "%rsp", 32},
        {"x86-64-v2", "mulps", "%rsp", 32},
        {"aarch64", "fmla", "[sp", 64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check("convolution", convolution, convolution_layout, rows[i].target,
              rows[i].fma, rows[i].stack, rows[i].least);
        check("matrix product", product, "", rows[i].target, rows[i].fma,
              rows[i].stack, rows[i].least);
        check("tiles", tiles, tiles_layout, rows[i].target, rows[i].fma,
              rows[i].stack, rows[i].least);
        check("partial vector", partial, partial_layout, rows[i].target,
              rows[i].fma, rows[i].stack, rows[i].least);
        check("depthwise", depthwise, depthwise_layout, rows[i].target,
              rows[i].fma, rows[i].stack, 9);
    }
}

/* A compiled kernel calls nothing: no libm, no BLAS. */
static void test_no_calls(void **state)
{
    (void)state;
    static const char softmax[] =
        "definition softmax {\n"
        "  in x f32[64, 77]\n  temp m f32[64, 1]\n  temp s f32[64, 1]\n"
        "  out y f32[64, 77]\n"
        "  stage m[i:64, j:1] max[k:77] = x[i, k]\n"
        "  stage s[i:64, j:1] sum[k:77] = exp((x[i, k] - m[i, 0]))\n"
        "  stage y[i:64, j:77] = tanh(erf(sin(log((exp((x[i, j] - "
        "m[i, 0])) / s[i, 0])))))\n}\n";
    static const char *const targets[] = {"x86-64-v4", "x86-64-v3",
                                          "x86-64-v2", "aarch64"};
    for (size_t i = 0; i < 4; i++) {
        Arena *a = arena_new();
        Diag *diag = diag_new(a, NULL);
        const Target *t = target_find(a, diag, targets[i]);
        char *s = assembly(a, softmax, "", t);
        bool arm = strcmp(targets[i], "aarch64") == 0;
        for (char *p = strstr(s, arm ? "\tbl\t" : "\tcallq\t"); p;
             p = strstr(p + 1, arm ? "\tbl\t" : "\tcallq\t")) {
            char *name = p + strcspn(p + 1, "\t") + 2;
            /* Through a register: parallel_for. Else its own parts. */
            bool own = *name == '*' || strncmp(name, "softmax", 7) == 0 ||
                       strncmp(name, ".Lsoftmax", 9) == 0;
            if (!own)
                fail_msg("%s calls %.40s", targets[i], name);
        }
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_register_tiles),
        cmocka_unit_test(test_no_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
