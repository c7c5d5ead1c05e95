/* See found_rows.h. */
#include "found_rows.h"

#include <stddef.h>

const FoundRow found_rows[] = {
    {"a border around nothing",
     "  input x: f32[0,1,5,2]\n"
     "  const w: f32[2,1,3,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, "
     "7, 8, 9}\n"
     "  y: f32[0,2,5,2] = Conv c(x, w) {pads=[1, 1, 1, 1]}\n  output y\n"},
    {"a result left out that the operator always makes",
     "  input x: f32[2,3]\n"
     "  _, s: f32[], z: u8[] = DynamicQuantizeLinear d(x)\n"
     "  const k: i64[1] = {1}\n"
     "  _, i: i64[2,1] = TopK t(x, k)\n"
     "  input p: f32[1,1,4]\n"
     "  _, at: i64[1,1,2] = MaxPool m(p) {kernel_shape=[2], strides=[2]}\n"
     "  output s\n  output z\n  output i\n  output at\n"},
    {"a count of what folding makes a constant",
     "  input x: f32[3]\n"
     "  const w: u8[2,3] = {255, 0, 1, 7, 200, 200}\n"
     "  const k: i64[1] = {1}\n"
     "  v: u8[1,3], i: i64[1,3] = TopK t(w, k) {axis=0}\n"
     "  n: i64[2,n.count<=3] = NonZero n(v)\n"
     "  y: f32[3] = Relu r(x)\n"
     "  output v\n  output n\n  output y\n"},
    {"a limit within a loop that was fused with another",
     "  input x: f32[1,16,1<=S<=9,8]\n"
     "  const w: f32[16,1,1,1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, "
     "14, 15, 16}\n"
     "  h: f16[1,16,S,8] = Cast h(x) {to=10}\n"
     "  f: f32[1,16,S,8] = Cast f(h) {to=1}\n"
     "  s: f32[1,16,S,8] = Softmax s(f) {axis=3}\n"
     "  y: f32[1,16,S,8] = Conv c(f, w) {\"group\"=16}\n"
     "  output s\n  output y\n"},
    {"parts of what a loop carries",
     "  input x: f32[1,2,6,4]\n"
     "  const m: i64[] = {3}\n"
     "  const three: f32[] = {3}\n"
     "  const a: i64[1] = {0}\n  const b: i64[1] = {2}\n"
     "  const c: i64[1] = {6}\n  const axis: i64[1] = {2}\n"
     "  l: f32[1,2,6,4] = Loop l(m, _, x, three) {carried=1}\n"
     "  body {\n"
     "    graph step\n"
     "      input i: i64[]\n"
     "      input go: bool[]\n"
     "      input x: f32[1,2,6,4]\n"
     "      input three: f32[]\n"
     "      y: f32[1,2,6,4] = Tanh t(x)\n"
     "      s: f32[] = ReduceMax s(x) {keepdims=0}\n"
     "      next: bool[] = Less n(s, three)\n"
     "      output next\n"
     "      output y\n"
     "  }\n"
     "  p: f32[1,2,2,4] = Slice p(l, a, b, axis)\n"
     "  q: f32[1,2,4,4] = Slice q(l, b, c, axis)\n"
     "  r: f32[1,2,2,4] = Relu r(p)\n"
     "  n: f32[1,2,4,4] = Neg n(q)\n"
     "  y: f32[1,2,6,4] = Concat y(n, r) {axis=2}\n"
     "  g: f32[1,2,1,1] = GlobalLpPool g(q)\n"
     "  output l\n  output y\n  output g\n"},
    {"a count that is known once a later node asks",
     "  input x: f32[4,6]\n"
     "  const w: f32[6] = {1, 0, 1, 2, 2, 0}\n"
     "  const few: i64[] = {7}\n"
     "  q: f32[6] = Floor q(w)\n"
     "  u: f32[u.count<=6], f: i64[u.count<=6] = Unique u(q)\n"
     "  n: f32[u.count<=6] = Neg n(u)\n"
     "  m: i64[] = ReduceMax m(f) {keepdims=0}\n"
     "  p: bool[] = Less p(m, few)\n"
     "  y: f32[4,6] = If if(p, x)\n"
     "  body {\n"
     "    graph then\n"
     "      input x: f32[4,6]\n"
     "      y: f32[4,6] = Abs t(x)\n"
     "      output y\n"
     "  }\n"
     "  body {\n"
     "    graph else\n"
     "      input x: f32[4,6]\n"
     "      y: f32[4,6] = Neg n(x)\n"
     "      output y\n"
     "  }\n"
     "  output q\n  output u\n  output n\n"},
    {NULL, NULL},
};
