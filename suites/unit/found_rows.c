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
    {NULL, NULL},
};
