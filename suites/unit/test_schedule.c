/* Schedules: for a list of definitions and several targets' facts, the
 * chosen schedule gives what the naive one gives, its trace replays on the
 * parsed definition to the same loops, and loops parse back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "schedules/choose.h"
#include "schedules/state.h"

typedef struct Case {
    const char *name, *text;
    /* Layouts the graph would fix: "buffer layout", NULL ends. */
    const char *pack[6];
} Case;

static const Case cases[] = {
    {"convolution with residual, odd channels and borders",
     "definition conv {\n"
     "  in x f32[1, 5, 9, 13]\n  const w f32[24, 5, 3, 3]\n"
     "  const b f32[24]\n  temp t f32[1, 24, 9, 13]\n"
     "  in r f32[1, 24, 9, 13]\n  out y f32[1, 24, 9, 13]\n"
     "  stage t[n:1, o:24, h:9, w:13] sum[c:5, kh:3, kw:3] = (x[n, c, "
     "((h + kh) + -1), ((w + kw) + -1) | 0.0] * w[o, c, kh, kw])\n"
     "  stage y[n:1, o:24, h:9, w:13] = max(((t[n, o, h, w] + b[o]) + "
     "r[0, o, h, w]), 0.0)\n}\n",
     {"x [0 2+1+1 3+1+1 1]", "r [0 2 3 1]", "y [0 2+1+1 3+1+1 1]"}},
    {"convolution without borders reads its padding guarded",
     "definition conv {\n"
     "  in x f32[2, 3, 8, 7]\n  const w f32[17, 3, 5, 5]\n"
     "  out y f32[2, 17, 4, 4]\n"
     "  stage y[n:2, o:17, h:4, w:4] sum[c:3, kh:5, kw:5] = (x[n, c, "
     "(((h * 2) + kh) + -2), (((w * 2) + kw) + -2) | 0.0] * "
     "w[o, c, kh, kw])\n}\n",
     {"x [0 2 3 1]", "y [0 2 3 1]"}},
    {"convolution over small rows, several to a tile",
     "definition conv {\n"
     "  in x f32[1, 8, 7, 7]\n  const w f32[40, 8, 3, 3]\n"
     "  out y f32[1, 40, 7, 7]\n"
     "  stage y[n:1, o:40, h:7, w:7] sum[c:8, kh:3, kw:3] = (x[n, c, "
     "((h + kh) + -1), ((w + kw) + -1) | 0.0] * w[o, c, kh, kw])\n}\n",
     {"x [0 2+1+1 3+1+1 1]", "y [0 2+1+1 3+1+1 1]"}},
    {"convolution in row-major layout",
     "definition conv {\n"
     "  in x f32[1, 3, 8, 20]\n  const w f32[4, 3, 3, 3]\n"
     "  out y f32[1, 4, 8, 20]\n"
     "  stage y[n:1, o:4, h:8, w:20] sum[c:3, kh:3, kw:3] = (x[n, c, "
     "((h + kh) + -1), ((w + kw) + -1) | 0.0] * w[o, c, kh, kw])\n}\n",
     {0}},
    {"pointwise convolution over joined pixels, uneven panels",
     "definition conv {\n"
     "  in x f32[1, 33, 7, 7]\n  const w f32[100, 33, 1, 1]\n"
     "  out y f32[1, 100, 7, 7]\n"
     "  stage y[n:1, o:100, h:7, w:7] sum[c:33, kh:1, kw:1] = (x[n, c, "
     "(h + kh), (w + kw)] * w[o, c, kh, kw])\n}\n",
     {"x [0 2 3 1]", "y [0 2 3 1]"}},
    {"depthwise convolution",
     "definition dw {\n"
     "  in x f32[1, 19, 9, 9]\n  const w f32[19, 1, 3, 3]\n"
     "  out y f32[1, 19, 5, 5]\n"
     "  stage y[n:1, o:19, h:5, w:5] sum[kh:3, kw:3] = (x[n, o, "
     "(((h * 2) + kh) + -1), (((w * 2) + kw) + -1) | 0.0] * "
     "w[o, 0, kh, kw])\n}\n",
     {"x [0 2+1+1 3+1+1 1]", "y [0 2 3 1]"}},
    {"max pooling with guarded edges",
     "definition pool {\n"
     "  in x f32[1, 10, 7, 7]\n  out y f32[1, 10, 4, 4]\n"
     "  stage y[n:1, o:10, h:4, w:4] max[kh:3, kw:3] = x[n, o, "
     "(((h * 2) + kh) + -1), (((w * 2) + kw) + -1) | -inf]\n}\n",
     {"x [0 2 3 1]", "y [0 2+1+1 3+1+1 1]"}},
    {"matrix product by a constant, one row",
     "definition mm {\n"
     "  in x f32[1, 70]\n  const w f32[70, 130]\n  out y f32[1, 130]\n"
     "  stage y[i:1, j:130] sum[k:70] = (x[i, k] * w[k, j])\n}\n",
     {0}},
    {"batched product of two tensors",
     "definition mm {\n"
     "  in x f32[2, 3, 11, 9]\n  in w f32[2, 3, 9, 21]\n"
     "  out y f32[2, 3, 11, 21]\n"
     "  stage y[n:2, o:3, h:11, w:21] sum[k:9] = (x[n, o, h, k] * "
     "w[n, o, k, w])\n}\n",
     {0}},
    {"product with the second operand transposed",
     "definition mm {\n"
     "  in x f32[5, 12]\n  in w f32[37, 12]\n  out y f32[5, 37]\n"
     "  stage y[i:5, j:37] sum[k:12] = (x[i, k] * w[j, k])\n}\n",
     {0}},
    {"attention scores, heads interleaved in memory",
     "definition scores {\n"
     "  in q f32[2, 3, 19, 8]\n  in k f32[2, 3, 37, 8]\n"
     "  temp t f32[2, 3, 19, 37]\n  out y f32[2, 3, 19, 37]\n"
     "  stage t[n:2, o:3, h:19, w:37] sum[k_r:8] = (q[n, o, h, k_r] * "
     "k[n, o, w, k_r])\n"
     "  stage y[n:2, o:3, h:19, w:37] = (t[n, o, h, w] * 0.125)\n}\n",
     {"q [0 2 1 3]", "k [0 2 1 3]"}},
    {"mean of an image by rows, odd channels",
     "definition mean {\n"
     "  in x f32[1, 85, 28, 27]\n  temp t f32[1, 85, 1, 1]\n"
     "  out y f32[1, 85, 1, 1]\n"
     "  stage t[n:1, o:85, h:1, w:1] sum[h_r:28, w_r:27] = "
     "x[n, o, h_r, w_r]\n"
     "  stage y[n:1, o:85, h:1, w:1] = (t[n, o, h, w] * 0.00132)\n}\n",
     {"x [0 2 3 1]", "y [0 2 3 1]"}},
    {"largest of an image by rows",
     "definition most {\n"
     "  in x f32[1, 70, 32, 31]\n  out y f32[1, 70, 1, 1]\n"
     "  stage y[n:1, o:70, h:1, w:1] max[h_r:32, w_r:31] = "
     "x[n, o, h_r, w_r]\n}\n",
     {"x [0 2 3 1]", "y [0 2 3 1]"}},
    {"attention in one kernel",
     "definition attention {\n"
     "  in q f32[1, 3, 29, 8]\n  in k f32[1, 3, 8, 37]\n"
     "  in v f32[1, 3, 37, 20]\n  in mask f32[1, 1, 29, 37]\n"
     "  temp qk f32[1, 3, 29, 37]\n  temp s f32[1, 3, 29, 37]\n"
     "  temp m f32[1, 3, 29, 1]\n  temp e f32[1, 3, 29, 37]\n"
     "  temp t f32[1, 3, 29, 1]\n  temp p f32[1, 3, 29, 37]\n"
     "  out y f32[1, 3, 29, 20]\n"
     "  stage qk[n:1, o:3, h:29, w:37] sum[k_r:8] = (q[n, o, h, k_r] * "
     "k[n, o, k_r, w])\n"
     "  stage s[n:1, o:3, h:29, w:37] = ((qk[n, o, h, w] * 0.35) + "
     "mask[n, 0, h, w])\n"
     "  stage m[n:1, o:3, h:29, w:1] max[k_r:37] = s[n, o, h, k_r]\n"
     "  stage e[n:1, o:3, h:29, w:37] = exp((s[n, o, h, w] - "
     "m[n, o, h, 0]))\n"
     "  stage t[n:1, o:3, h:29, w:1] sum[k_r:37] = e[n, o, h, k_r]\n"
     "  stage p[n:1, o:3, h:29, w:37] = (e[n, o, h, w] / "
     "t[n, o, h, 0])\n"
     "  stage y[n:1, o:3, h:29, w:20] sum[k_r:37] = (p[n, o, h, k_r] * "
     "v[n, o, k_r, w])\n}\n",
     {"q [0 2 1 3]", "k [0 3 1 2]", "v [0 2 1 3]", "y [0 2 1 3]"}},
    {"attention of few heads, threads share rows",
     "definition attention {\n"
     "  in q f32[1, 2, 113, 8]\n  in k f32[1, 2, 8, 37]\n"
     "  in v f32[1, 2, 37, 20]\n  in mask f32[1, 1, 113, 37]\n"
     "  temp qk f32[1, 2, 113, 37]\n  temp s f32[1, 2, 113, 37]\n"
     "  temp m f32[1, 2, 113, 1]\n  temp e f32[1, 2, 113, 37]\n"
     "  temp t f32[1, 2, 113, 1]\n  temp p f32[1, 2, 113, 37]\n"
     "  out y f32[1, 2, 113, 20]\n"
     "  stage qk[n:1, o:2, h:113, w:37] sum[k_r:8] = (q[n, o, h, k_r] * "
     "k[n, o, k_r, w])\n"
     "  stage s[n:1, o:2, h:113, w:37] = ((qk[n, o, h, w] * 0.35) + "
     "mask[n, 0, h, w])\n"
     "  stage m[n:1, o:2, h:113, w:1] max[k_r:37] = s[n, o, h, k_r]\n"
     "  stage e[n:1, o:2, h:113, w:37] = exp((s[n, o, h, w] - "
     "m[n, o, h, 0]))\n"
     "  stage t[n:1, o:2, h:113, w:1] sum[k_r:37] = e[n, o, h, k_r]\n"
     "  stage p[n:1, o:2, h:113, w:37] = (e[n, o, h, w] / "
     "t[n, o, h, 0])\n"
     "  stage y[n:1, o:2, h:113, w:20] sum[k_r:37] = (p[n, o, h, k_r] * "
     "v[n, o, k_r, w])\n}\n",
     {"q [0 2 1 3]", "k [0 3 1 2]", "v [0 2 1 3]", "y [0 2 1 3]"}},
    {"attention of one head",
     "definition attention {\n"
     "  in q f32[1, 1, 113, 8]\n  in k f32[1, 1, 8, 37]\n"
     "  in v f32[1, 1, 37, 20]\n  in mask f32[1, 1, 113, 37]\n"
     "  temp qk f32[1, 1, 113, 37]\n  temp s f32[1, 1, 113, 37]\n"
     "  temp m f32[1, 1, 113, 1]\n  temp e f32[1, 1, 113, 37]\n"
     "  temp t f32[1, 1, 113, 1]\n  temp p f32[1, 1, 113, 37]\n"
     "  out y f32[1, 1, 113, 20]\n"
     "  stage qk[n:1, o:1, h:113, w:37] sum[k_r:8] = (q[n, o, h, k_r] * "
     "k[n, o, k_r, w])\n"
     "  stage s[n:1, o:1, h:113, w:37] = ((qk[n, o, h, w] * 0.35) + "
     "mask[n, 0, h, w])\n"
     "  stage m[n:1, o:1, h:113, w:1] max[k_r:37] = s[n, o, h, k_r]\n"
     "  stage e[n:1, o:1, h:113, w:37] = exp((s[n, o, h, w] - "
     "m[n, o, h, 0]))\n"
     "  stage t[n:1, o:1, h:113, w:1] sum[k_r:37] = e[n, o, h, k_r]\n"
     "  stage p[n:1, o:1, h:113, w:37] = (e[n, o, h, w] / "
     "t[n, o, h, 0])\n"
     "  stage y[n:1, o:1, h:113, w:20] sum[k_r:37] = (p[n, o, h, k_r] * "
     "v[n, o, k_r, w])\n}\n",
     {"q [0 2 1 3]", "k [0 3 1 2]", "v [0 2 1 3]", "y [0 2 1 3]"}},
    {"more weights than data: pixels in pieces around the panels",
     "definition conv {\n"
     "  in x f32[1, 24, 8, 6]\n  const w f32[256, 24, 1, 1]\n"
     "  const b f32[256]\n  temp t f32[1, 256, 8, 6]\n"
     "  out y f32[1, 256, 8, 6]\n"
     "  stage t[n:1, o:256, h:8, w:6] sum[c:24] = (x[n, c, h, w] * "
     "w[o, c, 0, 0])\n"
     "  stage y[n:1, o:256, h:8, w:6] = max((t[n, o, h, w] + b[o]), 0.0)\n"
     "}\n",
     {"x [0 2 3 1]", "y [0 2+1+1 3+1+1 1]"}},
    {"softmax of rows",
     "definition softmax {\n"
     "  in x f32[6, 77]\n  temp m f32[6, 1]\n  temp s f32[6, 1]\n"
     "  out y f32[6, 77]\n"
     "  stage m[i:6, j:1] max[k:77] = x[i, k]\n"
     "  stage s[i:6, j:1] sum[k:77] = exp((x[i, k] - m[i, 0]))\n"
     "  stage y[i:6, j:77] = (exp((x[i, j] - m[i, 0])) / s[i, 0])\n}\n",
     {0}},
    {"mean over the last axis",
     "definition mean {\n"
     "  in x f32[4, 5, 100]\n  temp s f32[4, 5]\n  out y f32[4, 5]\n"
     "  stage s[i:4, j:5] sum[k:100] = x[i, j, k]\n"
     "  stage y[i:4, j:5] = (s[i, j] * 0.01)\n}\n",
     {0}},
    {"index of the largest",
     "definition argmax {\n"
     "  in x f32[3, 40]\n  temp v f32[3]\n  out y i64[3]\n"
     "  stage v y[i:3] arg_max_first[k:40] = x[i, k] ; k\n}\n",
     {0}},
    {"elementwise with broadcasting and concatenation",
     "definition cat {\n"
     "  in a f32[2, 3, 5]\n  in b f32[2, 4, 5]\n  in c f32[5]\n"
     "  out y f32[2, 7, 5]\n"
     "  stage y[i:2, j:7, l:5] = (select(lt(j, 3), a[i, j, l], "
     "b[i, (j + -3), l]) * sqrt(abs(c[l])))\n}\n",
     {0}},
    {"a long vector of integers",
     "definition ints {\n"
     "  in a i64[5000]\n  out y i64[5000]\n"
     "  stage y[i:5000] = ((a[i] / 3) + (i % 7))\n}\n",
     {0}},
    {"a scalar",
     "definition scalar {\n"
     "  in a f32[]\n  out y f32[]\n  stage y[] = (a[] + 1.0)\n}\n",
     {0}},
    {"an empty tensor",
     "definition empty {\n"
     "  in a f32[0, 3]\n  out y f32[0, 3]\n"
     "  stage y[i:0, j:3] = (a[i, j] + 1.0)\n}\n",
     {0}},
    {"a sum over nothing",
     "definition nothing {\n"
     "  in a f32[4, 0]\n  in b f32[0, 5]\n  out y f32[4, 5]\n"
     "  stage y[i:4, j:5] sum[k:0] = (a[i, k] * b[k, j])\n}\n",
     {0}},
    {"convolution from one part of a tensor into another",
     "definition conv {\n"
     "  in x f32[2, 6, 9, 9]\n  const w f32[24, 6, 3, 3]\n"
     "  in r f32[2, 24, 9, 9]\n  out y f32[2, 24, 9, 9]\n"
     "  temp t f32[2, 24, 9, 9]\n"
     "  stage t[n:2, o:24, h:9, w:9] sum[c:6, kh:3, kw:3] = (x[n, c, "
     "((h + kh) + -1), ((w + kw) + -1) | 0.0] * w[o, c, kh, kw])\n"
     "  stage y[n:2, o:24, h:9, w:9] = (t[n, o, h, w] + "
     "r[n, o, h, w])\n}\n",
     {"x [0 2+1+1 3+1+1 1~5~7]", "r [0 2+1+1 3+1+1 1~0~9]",
      "y [0 2+1+1 3+1+1 1~12~3]"}},
    {"pointwise convolution over parts, pixels joined",
     "definition conv {\n"
     "  in x f32[2, 8, 7, 7]\n  const w f32[20, 8, 1, 1]\n"
     "  out y f32[2, 20, 7, 7]\n"
     "  stage y[n:2, o:20, h:7, w:7] sum[c:8, kh:1, kw:1] = (x[n, c, "
     "(h + kh), (w + kw)] * w[o, c, kh, kw])\n}\n",
     {"x [0 2 3 1~8~1]", "y [0 2~400~60 3 1]"}},
    {"panels outside few tiles: the next one is fetched",
     "definition conv {\n"
     "  in x f32[1, 33, 5, 5]\n  const w f32[100, 33, 1, 1]\n"
     "  out y f32[1, 100, 5, 5]\n"
     "  stage y[n:1, o:100, h:5, w:5] sum[c:33, kh:1, kw:1] = (x[n, c, "
     "(h + kh), (w + kw)] * w[o, c, kh, kw])\n}\n",
     {"x [0 2 3 1]", "y [0 2 3 1]"}},
    {"a row-major result of channels-last data",
     "definition conv {\n"
     "  in x f32[2, 6, 9, 9]\n  const w f32[21, 6, 3, 3]\n"
     "  const b f32[21]\n  temp t f32[2, 21, 9, 9]\n"
     "  out y f32[2, 21, 9, 9]\n"
     "  stage t[n:2, o:21, h:9, w:9] sum[c:6, kh:3, kw:3] = (x[n, c, "
     "((h + kh) + -1), ((w + kw) + -1) | 0.0] * w[o, c, kh, kw])\n"
     "  stage y[n:2, o:21, h:9, w:9] = (t[n, o, h, w] + b[o])\n}\n",
     {"x [0 2+1+1 3+1+1 1]", NULL}},
    {"a transpose with something to compute",
     "definition transpose {\n"
     "  in x f32[3, 70, 37]\n  out y f32[3, 37, 70]\n"
     "  stage y[i:3, j:37, l:70] = exp(x[i, l, j])\n}\n",
     {0}},
    {"planes to pixels of few channels",
     "definition relayout {\n"
     "  in x f32[2, 3, 7, 9]\n  out y f32[2, 3, 7, 9]\n"
     "  stage y[n:2, o:3, h:7, w:9] = x[n, o, h, w]\n}\n",
     {"y [0 2+1+1 3+1+1 1]"}},
    {"the mean of a distribution, bins innermost in memory",
     "definition mean {\n"
     "  in x f32[2, 16, 3, 5]\n  temp m f32[2, 1, 3, 5]\n"
     "  temp e f32[2, 16, 3, 5]\n  temp s f32[2, 1, 3, 5]\n"
     "  const w f32[1, 16, 1, 1]\n  out y f32[2, 1, 3, 5]\n"
     "  stage m[n:2, o:1, h:3, w:5] max[k:16] = x[n, k, h, w]\n"
     "  stage e[n:2, o:16, h:3, w:5] = exp((x[n, o, h, w] - "
     "m[n, 0, h, w]))\n"
     "  stage s[n:2, o:1, h:3, w:5] sum[k:16] = e[n, k, h, w]\n"
     "  stage y[n:2, o:1, h:3, w:5] sum[c:16, kh:1, kw:1] = "
     "((e[n, c, (h + kh), (w + kw)] / s[n, 0, (h + kh), (w + kw)]) * "
     "w[o, c, kh, kw])\n}\n",
     {"x [0 3 2~0~80 1]"}},
    {"a part of another layout, copied in",
     "definition copy {\n"
     "  in x f32[2, 4, 5, 6]\n  out y f32[2, 4, 5, 6]\n"
     "  stage y[n:2, o:4, h:5, w:6] = x[n, o, h, w]\n}\n",
     {"y [0 2 3+0+2 1~3~1]"}},
};
enum { CASES = sizeof cases / sizeof *cases };

static const Target facts[] = {
    {.name = "wide",
     .vector_bytes = 64,
     .vector_registers = 32,
     .tile_registers = 30,
     .has_fma = true},
    {.name = "middle",
     .vector_bytes = 32,
     .vector_registers = 16,
     .tile_registers = 14,
     .has_fma = true},
    {.name = "narrow",
     .vector_bytes = 16,
     .vector_registers = 16,
     .tile_registers = 11},
};

static void apply_packs(Schedule *s, const Case *c)
{
    for (int i = 0; i < 6 && c->pack[i]; i++)
        assert_true(schedule_replay(
            s, arena_printf(arena_new(), "pack %s", c->pack[i])));
}

/* By element of storage: one of ours, border included? */
static bool *find_own(Arena *a, const Buffer *b)
{
    bool *own = ARENA_ARRAY(a, bool, buffer_size(b) + 1);
    int64_t at[MAX_RANK];
    bool more = true;
    for (int i = 0; i < b->rank; i++) {
        at[i] = -b->layout.lo[i];
        more = more && b->dims[i] > 0;
    }
    while (more) {
        own[layout_offset(&b->layout, b->rank, b->dims, at)] = true;
        more = false;
        for (int i = b->rank - 1; i >= 0 && !more; i--) {
            more = ++at[i] < b->dims[i] + b->layout.hi[i];
            if (!more)
                at[i] = -b->layout.lo[i];
        }
    }
    return own;
}

/* What belongs to other tensors shows when it is read: NaN. */
static void spoil_others(Arena *a, const Buffer *b, void *data)
{
    if (!layout_is_part(&b->layout))
        return;
    const bool *own = find_own(a, b);
    float *f = data;
    for (int64_t i = 0; i < buffer_size(b); i++)
        if (!own[i])
            f[i] = NAN;
}

/* Storage for each parameter; inputs filled, row-major in `arrays`. */
static void **make_data(Arena *a, const Kernel *k)
{
    void **data = ARENA_ARRAY(a, void *, k->params.count + 1);
    for (int i = 0; i < k->params.count; i++) {
        const Buffer *b = k->params.data[i];
        size_t bytes = (size_t)buffer_size(b) * dtype_size(b->dtype);
        data[i] = arena_alloc(a, bytes + 64);
        if (b->role != BUF_INPUT) {
            memset(data[i], 0xff, bytes);
            continue;
        }
        Array *x = array_new(a, b->dtype, b->rank, b->dims);
        uint32_t seed = 77 + (uint32_t)i;
        for (int64_t e = 0; e < array_count(x); e++) {
            seed = seed * 1664525 + 1013904223;
            double v = (double)(int32_t)seed / 2147483648.0;
            array_set(x, e, dtype_is_float(b->dtype) ? v : v * 1000);
        }
        layout_pack(&b->layout, x, data[i]);
        spoil_others(a, b, data[i]);
    }
    return data;
}

static Array *output_of(Arena *a, const Kernel *k, void *const *data)
{
    for (int i = 0; i < k->params.count; i++) {
        const Buffer *b = k->params.data[i];
        if (b->role != BUF_OUTPUT)
            continue;
        /* Dimensions may have been joined; elements keep their order. */
        Array *y = array_new(a, b->dtype, b->rank, b->dims);
        layout_unpack(&b->layout, data[i], y);
        return y;
    }
    return NULL;
}

/* Exact schedules give the naive one's bits. */
static void compare(const Case *c, const char *what, const Array *got,
                    const Array *want, ScheduleMode mode)
{
    assert_int_equal(array_count(got), array_count(want));
    for (int64_t i = 0; i < array_count(want); i++) {
        double g = array_get(got, i), w = array_get(want, i);
        double slack = mode == SCHEDULE_EXACT ? 0 : 1e-5;
        if (!(fabs(g - w) <= slack + slack * fabs(w)))
            fail_msg("%s, %s: element %lld is %g, naive gives %g", c->name,
                     what, (long long)i, g, w);
    }
}

/* The border of an output must hold zeros. */
static void check_border(const Case *c, const Kernel *k, void *const *data)
{
    for (int i = 0; i < k->params.count; i++) {
        const Buffer *b = k->params.data[i];
        if (b->role != BUF_OUTPUT || b->rank != 4 ||
            !layout_has_border(&b->layout))
            continue;
        int64_t at[4] = {0};
        for (at[2] = -b->layout.lo[2]; at[2] < b->dims[2] + b->layout.hi[2];
             at[2]++)
            for (at[3] = -b->layout.lo[3];
                 at[3] < b->dims[3] + b->layout.hi[3]; at[3]++) {
                bool inside = at[2] >= 0 && at[2] < b->dims[2] && at[3] >= 0 &&
                              at[3] < b->dims[3];
                const float *f = data[i];
                if (!inside &&
                    f[layout_offset(&b->layout, 4, b->dims, at)] != 0)
                    fail_msg("%s: the border is not zero", c->name);
            }
    }
}

/* Others' elements are as make_data left them. */
static void check_others(Arena *a, const Case *c, const Kernel *k,
                         void *const *data)
{
    for (int i = 0; i < k->params.count; i++) {
        const Buffer *b = k->params.data[i];
        if (b->role != BUF_OUTPUT || !layout_is_part(&b->layout))
            continue;
        const bool *own = find_own(a, b);
        const uint32_t *word = data[i];
        for (int64_t e = 0; e < buffer_size(b); e++)
            if (!own[e] && word[e] != UINT32_MAX)
                fail_msg("%s: element %lld of another tensor was written",
                         c->name, (long long)e);
    }
}

static void check_case(const Case *c, const Target *target, ScheduleMode mode,
                       const Choice *choice)
{
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Definition *def = definition_parse(a, diag, c->text);
    if (!def)
        fail_msg("%s: %s", c->name, diag->errors.data[0]);
    definition_verify(def);

    Schedule *naive = schedule_new(a, diag, def);
    Kernel *plain = schedule_lower(naive, a);
    kernel_verify(plain);
    void **data = make_data(a, plain);
    if (!kernel_interpret(plain, data, diag))
        fail_msg("%s: %s", c->name, diag->errors.data[0]);
    Array *want = output_of(a, plain, data);

    Schedule *s = schedule_new(a, diag, def);
    apply_packs(s, c);
    if (!schedule_choose(s, target, mode, NULL, choice))
        fail_msg("%s: %s", c->name, diag->errors.data[0]);
    Kernel *k = schedule_lower(s, a);
    kernel_verify(k);
    void **tuned = make_data(a, k);
    if (!kernel_interpret(k, tuned, diag))
        fail_msg("%s for %s: %s", c->name, target->name, diag->errors.data[0]);
    compare(c, target->name, output_of(a, k, tuned), want, mode);
    check_border(c, k, tuned);
    check_others(a, c, k, tuned);

    if (!target->has_fma) {
        void **compiled = make_data(a, k);
        if (!codegen_llvm_evaluate(k, compiled, diag))
            fail_msg("%s: %s", c->name, diag->errors.data[0]);
        compare(c, "compiled", output_of(a, k, compiled), want, mode);
        check_border(c, k, compiled);
        check_others(a, c, k, compiled);
    }

    /* Definition and trace, printed, give the same loops. */
    Str text = {0}, trace = {0}, loops = {0}, again = {0};
    definition_print(&text, def);
    Definition *parsed = definition_parse(a, diag, str_text(&text));
    assert_non_null(parsed);
    schedule_print_trace(&trace, s);
    Schedule *replayed = schedule_new(a, diag, parsed);
    if (!schedule_replay(replayed, str_text(&trace)))
        fail_msg("%s: %s", c->name, diag->errors.data[0]);
    assert_true(schedule_lower(replayed, a)->hash == k->hash);

    kernel_print(&loops, k);
    Kernel *read = kernel_parse(a, diag, str_text(&loops));
    if (!read)
        fail_msg("%s: loops do not parse: %s", c->name, diag->errors.data[0]);
    kernel_print(&again, read);
    assert_string_equal(str_text(&loops), str_text(&again));
    assert_true(read->hash == k->hash);
    str_free(&text);
    str_free(&trace);
    str_free(&loops);
    str_free(&again);
    arena_free(a);
}

static void test_cases(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++)
        for (size_t t = 0; t < sizeof facts / sizeof *facts; t++)
            for (int m = SCHEDULE_EXACT; m <= SCHEDULE_FAST; m++)
                check_case(&cases[i], &facts[t], (ScheduleMode)m, NULL);
}

/* Gives what was decided for a case, with `choice`. */
static bool choose(Arena *a, Diag *diag, const Case *c, const Target *target,
                   ScheduleMode mode, const Choice *choice, KnobLog *log,
                   Str *trace)
{
    Schedule *s = schedule_new(a, diag, definition_parse(a, diag, c->text));
    apply_packs(s, c);
    bool ok = schedule_choose_logged(s, target, mode, NULL, choice, log);
    schedule_print_trace(trace, s);
    return ok;
}

/* Every `step`th value of each knob, the others as usual, and proposal. */
static void check_knobs(const Case *c, const Target *target, int step)
{
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    KnobLog log, other;
    Str usual = {0}, trace = {0};
    assert_true(choose(a, diag, c, target, SCHEDULE_FAST, NULL, &log, &usual));
    Choice all = {0};
    for (int i = 0; i < log.knobs.count; i++) {
        const KnobRow *row = &log.knobs.data[i];
        bool has_own = false;
        choice_set(&all, row->name, row->value);
        for (int k = 0; k < row->count; k++) {
            Choice one = {0};
            choice_set(&one, row->name, row->candidates[k]);
            has_own |= row->candidates[k] == row->value;
            if (k % step == i % step)
                check_case(c, target, SCHEDULE_FAST, &one);
        }
        if (!has_own)
            fail_msg("%s: %s=%lld is no candidate", c->name, row->name,
                     (long long)row->value);
    }
    /* The values that were taken give the same schedule when asked for. */
    assert_true(
        choose(a, diag, c, target, SCHEDULE_FAST, &all, &other, &trace));
    assert_string_equal(str_text(&usual), str_text(&trace));
    for (int i = 0; i < log.proposals.count; i += step)
        check_case(c, target, SCHEDULE_FAST, &log.proposals.data[i]);
    str_free(&usual);
    str_free(&trace);
    arena_free(a);
}

static void test_knobs(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        check_knobs(&cases[i], &facts[0], 3);
        check_knobs(&cases[i], &facts[2], 11); /* these are compiled, too */
    }
}

/* What is no value of a knob, no knob, or does not go together is refused
 * and leaves the schedule as it was. */
static void test_refused_knobs(void **state)
{
    (void)state;
    static const struct {
        int of; /* which case */
        Choice choice;
        ScheduleMode mode;
        const char *why;
    } rows[] = {
        {0,
         {{{"vectors", 99}}, 1},
         SCHEDULE_FAST,
         "vectors=99: there are 1 2"},
        {0, {{{"rows", -1}}, 1}, SCHEDULE_FAST, "rows=-1: there are 1"},
        {0, {{{"panels_outside", 2}}, 1}, SCHEDULE_FAST, "there are 0 1"},
        {0, {{{"unroll", 0}}, 1}, SCHEDULE_FAST, "unroll=0: there are 2 4 8"},
        {0,
         {{{"colour", 3}}, 1},
         SCHEDULE_FAST,
         "colour: this schedule has no"},
        {2,
         {{{"rows", 2}, {"pixels", 7}, {"vectors", 3}}, 3},
         SCHEDULE_EXACT,
         "registers"},
        {0, {{{"pixels", 2}}, 1}, SCHEDULE_NAIVE, "a naive schedule has no"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Case *c = &cases[rows[i].of];
        Arena *a = arena_new();
        Diag *diag = diag_new(a, NULL);
        KnobLog log;
        Str trace = {0}, before = {0};
        Schedule *s =
            schedule_new(a, diag, definition_parse(a, diag, c->text));
        apply_packs(s, c);
        schedule_print_trace(&before, s);
        assert_false(choose(a, diag, c, &facts[0], rows[i].mode,
                            &rows[i].choice, &log, &trace));
        assert_string_equal(str_text(&before), str_text(&trace));
        assert_int_equal(diag->errors.count, 1);
        if (!strstr(diag->errors.data[0], rows[i].why))
            fail_msg("\"%s\" has no \"%s\"", diag->errors.data[0],
                     rows[i].why);
        str_free(&trace);
        str_free(&before);
        arena_free(a);
    }
}

/* The contraction template must fit these, not fall back. */
static void test_templates_fit(void **state)
{
    (void)state;
    for (int i = 0; i < 14; i++) {
        Arena *a = arena_new();
        Diag *diag = diag_new(a, NULL);
        Definition *def = definition_parse(a, diag, cases[i].text);
        Schedule *s = schedule_new(a, diag, def);
        Str trace = {0};
        apply_packs(s, &cases[i]);
        assert_true(schedule_choose(s, &facts[0], SCHEDULE_FAST, NULL, NULL));
        schedule_print_trace(&trace, s);
        if (!strstr(str_text(&trace), "register"))
            fail_msg("%s: no register tile in\n%s", cases[i].name,
                     str_text(&trace));
        str_free(&trace);
        arena_free(a);
    }
}

static bool trace_has(const char *name, const char *word)
{
    Arena *a = arena_new();
    bool found = false, known = false;
    for (int i = 0; i < CASES; i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        known = true;
        Diag *diag = diag_new(a, NULL);
        Schedule *s =
            schedule_new(a, diag, definition_parse(a, diag, cases[i].text));
        apply_packs(s, &cases[i]);
        Str trace = {0};
        assert_true(schedule_choose(s, &facts[0], SCHEDULE_FAST, NULL, NULL));
        schedule_print_trace(&trace, s);
        found = strstr(str_text(&trace), word) != NULL;
        str_free(&trace);
    }
    if (!known)
        fail_msg("there is no case \"%s\"", name);
    arena_free(a);
    return found;
}

/* The templates took the way that the case is about. */
static void test_ways(void **state)
{
    (void)state;
    assert_true(trace_has("panels outside few tiles: the next one is fetched",
                          "prefetch y_acc w "));
    assert_true(trace_has("a row-major result of channels-last data",
                          "vectorize t_acc o"));
    assert_true(
        trace_has("a transpose with something to compute", "split y j 16"));
    assert_true(trace_has("attention in one kernel", "factor y_acc"));
    assert_true(trace_has("attention in one kernel", "parallel y o\n"));
    assert_true(trace_has("attention of few heads, threads share rows",
                          "parallel y h.o\n"));
    assert_true(
        trace_has("more weights than data: pixels in pieces around the panels",
                  "fuse y h.o.o o.o\n"));
    assert_true(trace_has("mean of an image by rows, odd channels",
                          "rfactor t h_r 4"));
    assert_true(
        trace_has("largest of an image by rows", "parallel y_acc_part h_r_part"));
    assert_true(trace_has("pointwise convolution over joined pixels, uneven "
                          "panels",
                          "pad y_acc o 16"));
    assert_true(trace_has("attention of one head", "parallel k_cached"));
    assert_false(trace_has("planes to pixels of few channels", "vectorize"));
    assert_true(
        trace_has("the mean of a distribution, bins innermost in memory",
                  "reduce_lanes y_acc c"));
}

/* A step's lines of the next panel are shared among all tiles, be they of two
 * sizes: four tiles of 13 and 12 pixels fetch a quarter each. */
static void test_prefetch_shares(void **state)
{
    (void)state;
    static const Case c = {
        "49 rows",
        "definition mm {\n"
        "  in x f32[49, 64]\n  const w f32[64, 512]\n  out y f32[49, 512]\n"
        "  stage y[i:49, j:512] sum[k:64] = (x[i, k] * w[k, j])\n}\n",
        {0}};
    Choice choice = {{{"pixels", 13},
                      {"vectors", 2},
                      {"unroll", 8},
                      {"panels_outside", 1},
                      {"prefetch", 1}},
                     5};
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Schedule *s = schedule_new(a, diag, definition_parse(a, diag, c.text));
    apply_packs(s, &c);
    if (!schedule_choose(s, &facts[0], SCHEDULE_FAST, NULL, &choice))
        fail_msg("%s", diag->errors.data[0]);
    Str loops = {0};
    kernel_print(&loops, schedule_lower(s, a));
    int lines = 0;
    for (const char *at = str_text(&loops); (at = strstr(at, "prefetch "));
         at++)
        lines++;
    /* 8 steps of 2 vectors are 16 lines; one nest for each size. */
    assert_int_equal(lines, 2 * 16 / 4);
    str_free(&loops);
    check_case(&c, &facts[0], SCHEDULE_FAST, &choice);
    arena_free(a);
}

static void test_refusals(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Definition *def = definition_parse(a, diag, cases[7].text);
    Schedule *s = schedule_new(a, diag, def);
    assert_false(schedule_split(s, "z", "i", 4));
    assert_false(schedule_split(s, "y", "q", 4));
    assert_false(schedule_split(s, "y", "j", 0));
    assert_false(schedule_inline(s, "y"));
    assert_false(schedule_parallel(s, "y", "j"));
    assert_false(schedule_vectorize(s, "y", "k"));
    assert_false(schedule_reorder(s, "y", "i j"));
    assert_false(schedule_replay(s, "frobnicate y\n"));
    assert_false(schedule_prefetch(s, "y", "w", "j", 0, 1));
    assert_false(schedule_prefetch(s, "y", "y", "k", 0, 1));
    /* Whole vectors need weights in whole vectors, and a place elsewhere is
     * no part; 70 has no 3 equal parts. */
    assert_false(schedule_pad(s, "y", "j", 16));
    assert_false(schedule_pad(s, "y", "i", 16));
    assert_false(schedule_pad(s, "y", "k", 16));
    assert_false(schedule_rfactor(s, "y", "k", 3));
    assert_false(schedule_rfactor(s, "y", "k", 0));
    assert_false(schedule_rfactor(s, "y", "j", 2));
    assert_int_equal(diag->errors.count, 16);
    assert_true(schedule_split(s, "y", "j", 64));
    /* The remainder of 130 by 64 needs its outer loop first. */
    assert_false(schedule_reorder(s, "y", "i j.i j.o k"));
    arena_free(a);
}

static void expect_factor(const char *value, bool possible, const char *sum,
                          const char *result)
{
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Str text = {0};
    str_addf(&text,
             "definition d {\n  in x f32[4, 9]\n  in r f32[4]\n"
             "  temp t f32[4, 3]\n  out y f32[4, 3]\n"
             "  stage t[i:4, j:3] sum[k:9] = %s\n"
             "  stage y[i:4, j:3] = (t[i, j] + 1.0)\n}\n",
             value);
    Schedule *s =
        schedule_new(a, diag, definition_parse(a, diag, str_text(&text)));
    assert_int_equal(schedule_factor(s, "t"), possible);
    assert_int_equal(diag->errors.count, possible ? 0 : 1);
    Str got[2] = {0};
    const char *wanted[] = {sum, result};
    for (int i = 0; i < 2 && possible; i++) {
        const Stage *stage = schedule_stage(s, i ? "y" : "t")->stage;
        expr_print(&got[i], stage->value[0]);
        assert_string_equal(str_text(&got[i]), wanted[i]);
        str_free(&got[i]);
    }
    str_free(&text);
    arena_free(a);
}

static void test_factor(void **state)
{
    (void)state;
    expect_factor("((x[i, k] / r[i]) * x[i, k])", true, "(x[i, k] * x[i, k])",
                  "((t[i, j] / r[i]) + 1.0)");
    expect_factor("((x[i, k] + 1.0) * r[i])", true, "(x[i, k] + 1.0)",
                  "((t[i, j] * r[i]) + 1.0)");
    /* Not a divisor that changes, nor a part of a sum, nor the dividend. */
    expect_factor("(r[i] / x[i, k])", false, NULL, NULL);
    expect_factor("(x[i, k] + r[i])", false, NULL, NULL);
    expect_factor("(x[i, k] / x[i, k])", false, NULL, NULL);
}

/* The number that nothing lies beyond decides nothing; a compiler of C warns
 * of a comparison with it. */
static void test_bounds_fold(void **state)
{
    (void)state;
    Arena *a = arena_new();
    static const struct {
        DType dtype;
        int64_t least, most;
    } rows[] = {{DT_U8, 0, 255},
                {DT_I8, -128, 127},
                {DT_U16, 0, 65535},
                {DT_I32, INT32_MIN, INT32_MAX},
                {DT_I64, INT64_MIN, INT64_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Definition *def = definition_new(a, "d");
        Buffer *b =
            definition_add_buffer(def, "x", BUF_INPUT, rows[i].dtype, 0, NULL);
        const Expr *x = expr_read(a, b, NULL);
        const Expr *least = expr_const_int(a, rows[i].dtype, rows[i].least);
        const Expr *most = expr_const_int(a, rows[i].dtype, rows[i].most);
        assert_ptr_equal(expr_min(a, most, x), x);
        assert_ptr_equal(expr_min(a, x, most), x);
        assert_ptr_equal(expr_max(a, least, x), x);
        assert_ptr_equal(expr_max(a, x, least), x);
        assert_int_equal(expr_min(a, x, least)->kind, EX_MIN);
        assert_int_equal(expr_max(a, most, x)->kind, EX_MAX);
    }
    arena_free(a);
}

static void test_interpreter_checks(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Kernel *k = kernel_parse(a, diag,
                             "kernel k {\n  in x f32[4]\n  out y f32[4]\n"
                             "  for i0 5 {\n    y[i0] = x[i0]\n  }\n}\n");
    float x[5] = {0}, y[5];
    void *data[] = {x, y};
    assert_non_null(k);
    assert_false(kernel_interpret(k, data, diag));
    assert_non_null(strstr(diag->errors.data[0], "x at 4"));
    k = kernel_parse(a, diag,
                     "kernel k {\n  out y f32[1]\n  temp local t f32[1]\n"
                     "  y[0] = t[0]\n}\n");
    void *only[] = {y};
    assert_false(kernel_interpret(k, only, diag));
    assert_non_null(strstr(diag->errors.data[1], "before it is written"));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_knobs),
        cmocka_unit_test(test_refused_knobs),
        cmocka_unit_test(test_templates_fit),
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_prefetch_shares),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_factor),
        cmocka_unit_test(test_bounds_fold),
        cmocka_unit_test(test_interpreter_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
