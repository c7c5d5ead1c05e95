/* Operators of fewer uses: a batch that is open, and what else their
 * definitions take from a run. */
#include "shapes_rows.h"

#include <stddef.h>

#define X "  input x: f32[2,1<=T<=9,4]\n"
#define IMAGES "  input x: f32[1<=N<=3,4,5,6]\n"

const ShapeRow shapes_rows[] = {
    {"triangles", "  input x: f32[2,1<=T<=5,1<=S<=6]\n"
                  "  const k: i64[] = {-1}\n"
                  "  u: f32[2,T,S] = Trilu u(x)\n"
                  "  l: f32[2,T,S] = Trilu l(x, k) {upper=0}\n"
                  "  output u\n  output l\n"},
    {"diagonals", "  input x: f32[1<=T<=5,1<=S<=6]\n"
                  "  y: i64[T,S] = EyeLike e(x) {dtype=7, k=1}\n"
                  "  output y\n"},
    {"one-hot rows", "  input x: i64[2,1<=T<=9]\n"
                     "  const five: i64[] = {5}\n"
                     "  const v: f32[2] = {0, 2}\n"
                     "  m: i64[2,T] = Mod m(x, five)\n"
                     "  y: f32[2,T,5] = OneHot o(m, five, v)\n"
                     "  z: f32[2,5,T] = OneHot p(m, five, v) {axis=1}\n"
                     "  output y\n  output z\n"},
    {"hardmax", X "  y: f32[2,T,4] = Hardmax h(x)\n"
                  "  z: f32[2,T,4] = Hardmax i(x) {axis=1}\n"
                  "  output y\n  output z\n"},
    {"reversed sequences", "  input x: f32[1<=T<=7,2,3]\n"
                           "  input n: i64[2]\n"
                           "  y: f32[T,2,3] = ReverseSequence r(x, n)\n"
                           "  output y\n"},
    {"cut around the centre",
     X "  const s: i64[1] = {3}\n  const t: i64[1] = {7}\n"
       "  y: f32[2,T,3] = CenterCropPad c(x, s) {axes=[2]}\n"
       "  z: f32[7,T,4] = CenterCropPad d(x, t) {axes=[0]}\n"
       "  output y\n  output z\n"},
    {"running sum", X "  const a: i64[] = {1}\n  const b: i64[] = {2}\n"
                      "  y: f32[2,T,4] = CumSum s(x, a)\n"
                      "  z: f32[2,T,4] = CumSum r(x, a) {reverse=1, "
                      "exclusive=1}\n"
                      "  w: f32[2,T,4] = CumSum t(x, b)\n"
                      "  output y\n  output z\n  output w\n"},
    {"short running sum", "  input x: f32[2,1<=T<=5]\n"
                          "  const a: i64[] = {1}\n"
                          "  y: f32[2,T] = CumSum s(x, a)\n"
                          "  z: f32[2,T] = CumSum r(x, a) {reverse=1}\n"
                          "  output y\n  output z\n"},
    {"few scattered along it",
     X "  input i: i64[2,1<=S<=3,4]\n  input u: f32[2,1<=S<=3,4]\n"
       "  const zero: i64[] = {0}\n"
       "  j: i64[2,S,4] = Mul j(i, zero)\n"
       "  y: f32[2,T,4] = ScatterElements s(x, j, u) {axis=1}\n"
       "  z: f32[2,T,4] = ScatterElements t(x, j, u) {axis=1, "
       "reduction=\"add\"}\n"
       "  output y\n  output z\n"},
    {"many scattered along it",
     X "  input i: i64[2,1<=S<=6,4]\n  input u: f32[2,1<=S<=6,4]\n"
       "  const zero: i64[] = {0}\n"
       "  j: i64[2,S,4] = Mul j(i, zero)\n"
       "  y: f32[2,T,4] = ScatterElements s(x, j, u) {axis=1}\n"
       "  z: f32[2,T,4] = ScatterElements t(x, j, u) {axis=1, "
       "reduction=\"add\"}\n"
       "  output y\n  output z\n"},
    {"scatter beside it",
     X "  input i: i64[1,1<=S<=9,7]\n  input u: f32[1,1<=S<=9,7]\n"
       "  const four: i64[] = {4}\n"
       "  const start: i64[1] = {0}\n  const end: i64[1] = {1}\n"
       "  const axis: i64[1] = {1}\n"
       "  a: i64[1,min(S,1),7] = Slice a(i, start, end, axis)\n"
       "  b: f32[1,min(S,1),7] = Slice b(u, start, end, axis)\n"
       "  j: i64[1,min(S,1),7] = Mod j(a, four)\n"
       "  y: f32[2,T,4] = ScatterElements s(x, j, b) {axis=2}\n"
       "  output y\n"},
    {"scatter of few rows",
     X "  input i: i64[1<=S<=3,1]\n  input u: f32[1<=S<=3,1<=T<=9,4]\n"
       "  const two: i64[] = {2}\n"
       "  j: i64[S,1] = Mod j(i, two)\n"
       "  y: f32[2,T,4] = ScatterND s(x, j, u)\n"
       "  z: f32[2,T,4] = ScatterND t(x, j, u) {reduction=\"max\"}\n"
       "  output y\n  output z\n"},
    {"scatter of many rows",
     X "  input i: i64[1<=S<=6,1]\n  input u: f32[1<=S<=6,1<=T<=9,4]\n"
       "  const two: i64[] = {2}\n"
       "  j: i64[S,1] = Mod j(i, two)\n"
       "  y: f32[2,T,4] = ScatterND s(x, j, u)\n"
       "  z: f32[2,T,4] = ScatterND t(x, j, u) {reduction=\"max\"}\n"
       "  output y\n  output z\n"},
    {"cache that is filled",
     "  input x: f32[1<=N<=3,8,4]\n  input u: f32[1<=N<=3,1<=S<=3,4]\n"
     "  input w: i64[1<=N<=3]\n  const five: i64[] = {5}\n"
     "  p: i64[N] = Mod m(w, five)\n"
     "  y: f32[N,8,4] = TensorScatter s(x, u, p)\n"
     "  z: f32[N,8,4] = TensorScatter t(x, u, p) {mode=\"circular\"}\n"
     "  output y\n  output z\n"},
    {"sums of products",
     X "  input z: f32[2,1<=T<=9,4]\n"
       "  a: f32[2,T,T] = Einsum a(x, z) {equation=\"bid,bjd->bij\"}\n"
       "  b: f32[4] = Einsum b(x, z) {equation=\"bid,bid->d\"}\n"
       "  c: f32[2,4,4] = Einsum c(x, z) {equation=\"bti,btj->bij\"}\n"
       "  output a\n  output b\n  output c\n"},
    {"determinants", "  input x: f32[1<=N<=4,3,3]\n"
                     "  y: f32[N] = Det d(x)\n  output y\n"},
    {"norms", X "  y: f32[2,T,4] = LpNormalization a(x) {axis=1}\n"
                "  z: f32[2,T,4] = LpNormalization b(x) {p=1}\n"
                "  m: f32[2,T,4] = MeanVarianceNormalization m(x) {axes=[0, "
                "1]}\n"
                "  output y\n  output z\n  output m\n"},
    {"normalized groups",
     "  input x: f32[1<=N<=3,4,1<=H<=3,5]\n"
     "  const s: f32[4] = {1, 2, 3, 4}\n  const b: f32[4] = {0, 1, 0, -1}\n"
     "  y: f32[N,4,H,5] = InstanceNormalization i(x, s, b)\n"
     "  z: f32[N,4,H,5] = GroupNormalization g(x, s, b) {num_groups=2}\n"
     "  l: f32[N,4,H,5] = LRN l(x) {size=3}\n"
     "  output y\n  output z\n  output l\n"},
    {"convolution the other way",
     "  input x: f32[1<=N<=3,2,3,4]\n"
     "  const k: f32[2,1,2,2] = {1, 2, 3, 4, 5, 6, 7, 8}\n"
     "  const bias: f32[1] = {1}\n"
     "  y: f32[N,1,6,8] = ConvTranspose t(x, k, bias) {strides=[2, 2]}\n"
     "  output y\n"},
    {"depth and space",
     "  input x: f32[1<=N<=2,4,1<=H<=3,2]\n"
     "  y: f32[N,1,(H*2),4] = DepthToSpace d(x) {blocksize=2}\n"
     "  z: f32[N,1,(H*2),4] = DepthToSpace e(x) {blocksize=2, "
     "mode=\"CRD\"}\n"
     "  output y\n  output z\n"},
    {"resized images",
     IMAGES "  const s: f32[4] = {1, 1, 2, 1.5}\n"
            "  y: f32[N,4,10,9] = Resize a(x, _, s) {mode=\"linear\"}\n"
            "  z: f32[N,4,10,9] = Resize b(x, _, s)\n"
            "  w: f32[N,4,10,9] = Resize c(x, _, s) {mode=\"cubic\"}\n"
            "  output y\n  output z\n  output w\n"},
    {"sampled images", IMAGES
     "  input g: f32[1<=N<=3,1<=H<=3,2,2]\n"
     "  t: f32[N,H,2,2] = Tanh t(g)\n"
     "  y: f32[N,4,H,2] = GridSample g(x, t) {padding_mode=\"border\"}\n"
     "  z: f32[N,4,H,2] = GridSample h(x, t) {mode=\"nearest\"}\n"
     "  output y\n  output z\n"},
    {"regions of images",
     "  input x: f32[2,3,6,6]\n  input r: f32[1<=N<=4,4]\n"
     "  input b: i64[1<=N<=4]\n  const two: i64[] = {2}\n"
     "  c: i64[N] = Mod c(b, two)\n"
     "  y: f32[N,3,2,2] = RoiAlign r(x, r, c) {output_height=2, "
     "output_width=2, sampling_ratio=2}\n"
     "  output y\n"},
    {"deformed convolution",
     "  input x: f32[1<=N<=3,1,4,4]\n  input o: f32[1<=N<=3,8,3,3]\n"
     "  const w: f32[2,1,2,2] = {1, 2, 3, 4, -1, 1, 2, -2}\n"
     "  y: f32[N,2,3,3] = DeformConv d(x, w, o)\n"
     "  output y\n"},
    {"spectra", "  input x: f32[1<=N<=3,8,1]\n"
                "  const w: f32[4] = {1, 2, 2, 1}\n"
                "  const step: i64[] = {2}\n"
                "  const axis: i64[] = {1}\n"
                "  y: f32[N,8,2] = DFT d(x, _, axis)\n"
                "  z: f32[N,3,3,2] = STFT s(x, step, w)\n"
                "  output y\n  output z\n"},
    {"columns to images",
     "  input x: f32[1<=N<=3,4,4]\n"
     "  const i: i64[2] = {3, 3}\n  const b: i64[2] = {2, 2}\n"
     "  y: f32[N,1,3,3] = Col2Im c(x, i, b)\n  output y\n"},
    {"likelihoods", "  input x: f32[1<=N<=4,5,2]\n  input t: i64[1<=N<=4,2]\n"
                    "  const five: i64[] = {5}\n"
                    "  const w: f32[5] = {1, 2, 0.5, 1, 3}\n"
                    "  c: i64[N,2] = Mod c(t, five)\n"
                    "  y: f32[] = SoftmaxCrossEntropyLoss y(x, c)\n"
                    "  z: f32[] = NegativeLogLikelihoodLoss z(x, c, w) "
                    "{reduction=\"sum\"}\n"
                    "  v: f32[N,2] = NegativeLogLikelihoodLoss v(x, c, w) "
                    "{reduction=\"none\", ignore_index=1}\n"
                    "  output y\n  output z\n  output v\n"},
    {"range of the data",
     X "  q: u8[2,T,4], s: f32[], z: u8[] = DynamicQuantizeLinear d(x)\n"
       "  output q\n  output s\n  output z\n"},
    {"integer convolutions",
     "  input f: f32[1<=N<=2,1,4,3<=W<=6]\n"
     "  const s: f32[] = {0.02}\n  const z: u8[] = {120}\n"
     "  const w: i8[2,1,2,2] = {1, -2, 3, 4, 5, -6, 7, 8}\n"
     "  const wz: i8[] = {1}\n"
     "  const ys: f32[] = {0.5}\n  const yz: u8[] = {100}\n"
     "  q: u8[N,1,4,W] = QuantizeLinear q(f, s, z)\n"
     "  y: i32[N,2,5,(W+1)] = ConvInteger c(q, w, z, wz) {pads=[1, 1, 1, "
     "1]}\n"
     "  p: u8[N,2,3,(W-1)] = QLinearConv p(q, s, z, w, s, wz, ys, yz)\n"
     "  output y\n  output p\n"},
    {"turned pairs", "  input x: f32[1<=N<=2,2,1<=T<=5,4]\n"
                     "  input c: f32[8,2]\n  input s: f32[8,2]\n  input i: "
                     "i64[1<=N<=2,1<=T<=5]\n"
                     "  const eight: i64[] = {8}\n"
                     "  j: i64[N,T] = Mod j(i, eight)\n"
                     "  y: f32[N,2,T,4] = RotaryEmbedding r(x, c, s, j)\n"
                     "  output y\n"},
    {"turned pairs of joined heads",
     "  input x: f32[2,1<=T<=5,8]\n"
     "  input c: f32[2,1<=T<=5,2]\n  input s: f32[2,1<=T<=5,2]\n"
     "  y: f32[2,T,8] = RotaryEmbedding r(x, c, s) {num_heads=2, "
     "interleaved=1}\n"
     "  output y\n"},
    {"attention of open sequences",
     "  input q: f32[1<=N<=2,4,1<=T<=4,8]\n"
     "  input k: f32[1<=N<=2,2,1<=S<=5,8]\n"
     "  input v: f32[1<=N<=2,2,1<=S<=5,6]\n"
     "  input m: f32[1<=T<=4,1<=S<=5]\n"
     "  y: f32[N,4,T,6] = Attention a(q, k, v, m)\n"
     "  z: f32[N,4,T,6], _, _, s: f32[N,4,T,S] = Attention b(q, k, v) "
     "{qk_matmul_output_mode=3}\n"
     "  output y\n  output z\n  output s\n"},
    {"attention of joined heads",
     X "  y: f32[2,T,4] = Attention a(x, x, x) {q_num_heads=2, "
       "kv_num_heads=2, is_causal=1}\n"
       "  output y\n"},
    {"attention with an open past",
     "  input q: f32[1,2,1<=T<=3,4]\n"
     "  input k: f32[1,2,0<=P<=4,4]\n  input v: f32[1,2,0<=P<=4,4]\n"
     "  y: f32[1,2,T,4], c: f32[1,2,(P+T),4], d: f32[1,2,(P+T),4] = "
     "Attention a(q, q, q, _, k, v) {is_causal=1}\n"
     "  output y\n  output c\n  output d\n"},
    {"windows that share a border",
     "  input x: f32[1<=N<=2,3,4,1<=W<=18]\n"
     "  const k: f32[1,1,3,3] = {1, -2, 3, -1, 2, 0.5, 1, 2, -3}\n"
     "  const wd: i64[4] = {16, 3, 3, 3}\n"
     "  const dd: i64[4] = {16, 1, 3, 3}\n"
     "  w: f32[16,3,3,3] = Expand w(k, wd)\n"
     "  d: f32[16,1,3,3] = Expand d(k, dd)\n"
     "  a: f32[N,16,4,W] = Conv a(x, w) {pads=[1, 1, 1, 1]}\n"
     "  b: f32[N,16,4,W] = Conv b(a, d) {group=16, pads=[1, 1, 1, 1]}\n"
     "  e: f32[N,16,2,(((W-1)/2)+1)] = Conv e(a, d) {group=16, pads=[1, 1, "
     "1, 1], strides=[2, 2]}\n"
     "  f: f32[N,16,4,W] = Conv f(b, d) {group=16, pads=[2, 2, 2, 2], "
     "dilations=[2, 2]}\n"
     "  s: f32[N,16,4,W] = Add s(f, a)\n"
     "  u: f32[N,16,4,W] = Relu u(s)\n"
     "  m: f32[N,16,1,1] = GlobalAveragePool m(e)\n"
     "  output u\n  output m\n"},
    {"windows of open rows",
     "  input x: f32[1<=N<=2,16,1<=H<=5,2<=W<=9]\n"
     "  const k: f32[1,1,3,3] = {1, -2, 3, -1, 2, 0.5, 1, 2, -3}\n"
     "  const dd: i64[4] = {16, 1, 3, 3}\n"
     "  d: f32[16,1,3,3] = Expand d(k, dd)\n"
     "  r: f32[N,16,H,W] = Relu r(x)\n"
     "  b: f32[N,16,H,W] = Conv b(r, d) {group=16, pads=[1, 1, 1, 1]}\n"
     "  e: f32[N,16,(((H-1)/3)+1),(((W-2)/3)+1)] = Conv e(b, d) {group=16, "
     "pads=[1, 1, 1, 0], strides=[3, 3]}\n"
     "  m: f32[N,16,H,W] = MaxPool m(b) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1]}\n"
     "  p: f32[N,16,H,W] = AveragePool p(m) {kernel_shape=[3, 3], "
     "pads=[1, 1, 1, 1]}\n"
     "  g: f32[N,16,1,1] = GlobalMaxPool g(p)\n"
     "  output e\n  output p\n  output g\n"},
    {"the best of it",
     "  input x: f32[2,3<=T<=9,4]\n  const k: i64[1] = {3}\n"
     "  v: f32[2,3,4], i: i64[2,3,4] = TopK a(x, k) {axis=1}\n"
     "  w: f32[2,T,3], _ = TopK b(x, k) {largest=0}\n"
     "  _, j: i64[2,T,3] = TopK d(x, k)\n"
     "  output v\n  output i\n  output w\n  output j\n"},
    {"parts of it",
     X "  const s: i64[2] = {1, 3}\n"
       "  a: f32[2,((T+1)/2),4], b: f32[2,min(((T+1)/2),(T-((T+1)/2))),4] = "
       "Split a(x) {axis=1, num_outputs=2}\n"
       "  c: f32[2,T,1], d: f32[2,T,3] = Split b(x, s) {axis=2}\n"
       "  r: f32[2,T,3] = Relu r(d)\n"
       "  output a\n  output b\n  output c\n  output r\n"},
    {"sequences of open length",
     "  input x: f32[1<=T<=5,1<=N<=3,4]\n  input l: i32[1<=N<=3]\n"
     "  const k: f32[1,1] = {0.25}\n  const wd: i64[3] = {1, 32, 4}\n"
     "  const rd: i64[3] = {1, 32, 8}\n"
     "  const gw: i64[3] = {2, 24, 4}\n  const gr: i64[3] = {2, 24, 8}\n"
     "  w: f32[1,32,4] = Expand w(k, wd)\n"
     "  q: f32[1,32,8] = Expand q(k, rd)\n"
     "  g: f32[2,24,4] = Expand g(k, gw)\n"
     "  p: f32[2,24,8] = Expand p(k, gr)\n"
     "  y: f32[T,1,N,8], h: f32[1,N,8], c: f32[1,N,8] = LSTM lstm(x, w, q, _, "
     "l) {hidden_size=8}\n"
     "  z: f32[T,2,N,8], _ = GRU gru(x, g, p) {hidden_size=8, "
     "direction=\"bidirectional\"}\n"
     "  output y\n  output h\n  output c\n  output z\n"},
    {"one cell at a time",
     "  input x: f32[1<=N<=3,1<=T<=4,2]\n  input h: f32[1<=N<=3,1,3]\n"
     "  input w: f32[1,3,2]\n  input r: f32[1,3,3]\n"
     "  y: f32[N,T,1,3], s: f32[N,1,3] = RNN rnn(x, w, r, _, _, h) {"
     "hidden_size=3, layout=1, direction=\"reverse\"}\n"
     "  output y\n  output s\n"},
    {"as many as the data say",
     "  declare 1<=k<=7\n"
     "  input x: f32[2,8,3]\n  input n: i64[1<=T<=6]\n"
     "  const z: i64[1] = {0}\n  const six: i64[] = {6}\n"
     "  const one: i64[] = {1}\n  const o: i64[1] = {1}\n"
     "  m: i64[1] = ReduceSum m(n, z)\n  t: i64[1] = Mod t(m, six)\n"
     "  k: i64[1] = Add k(t, one)\n"
     "  v: f32[2,\"k[0]\"<=7,3], i: i64[2,\"k[0]\"<=7,3] = TopK a(x, k) "
     "{axis=1}\n"
     "  c: f32[2,\"cut.ends[0]\"<=8,3] = Slice cut(x, z, k, o)\n"
     "  f: f32[\"k[0]\"<=7] = ConstantOfShape f(k)\n"
     "  s: i64[] = Squeeze s(k, z)\n"
     "  r: i64[\"k[0]\"<=7] = Range r(one, s, one)\n"
     "  b: f32[\"k[0]\"<=7] = Cos b(f)\n"
     "  output v\n  output i\n  output c\n  output r\n  output b\n"},
    {"a shape of the data",
     "  declare s<=12\n  declare \"s[0]\"<=2\n"
     "  declare e<=9\n  declare \"e[0]\"<=2\n"
     "  input x: f32[12]\n  input y: f32[1,3]\n  input n: i64[1<=T<=6]\n"
     "  const z: i64[1] = {0}\n  const two: i64[] = {2}\n"
     "  const one: i64[] = {1}\n  const rest: i64[1] = {-1}\n"
     "  const three: i64[1] = {3}\n"
     "  m: i64[1] = ReduceSum m(n, z)\n  t: i64[1] = Mod t(m, two)\n"
     "  k: i64[1] = Add k(t, one)\n"
     "  s: i64[2] = Concat s(k, rest) {axis=0}\n"
     "  a: f32[\"a[0]\"<=2,\"a[1]\"<=12] = Reshape a(x, s)\n"
     "  e: i64[2] = Concat e(k, three) {axis=0}\n"
     "  b: f32[\"e[0]\"<=2,3] = Expand b(y, e)\n"
     "  c: f32[\"e[0]\"<=2,9] = Tile c(y, e)\n"
     "  output a\n  output b\n  output c\n"},
    {"branches of open extents",
     X "  input c: f32[1]\n  const z: f32[] = {0}\n"
       "  n: f32[2,T,4] = Neg neg(x)\n  p: bool[1] = Less less(c, z)\n"
       "  y: f32[2,T,4] = If choose(p, x, n)\n"
       "  body {\n    graph then\n"
       "      input a: f32[2,T<=9,4]\n      input b: f32[2,T<=9,4]\n"
       "      s: f32[2,T<=9,4] = Softmax soft(a) {axis=1}\n"
       "      output s\n  }\n"
       "  body {\n    graph else\n"
       "      input a: f32[2,T<=9,4]\n      input b: f32[2,T<=9,4]\n"
       "      const one: i64[] = {1}\n"
       "      s: f32[2,T<=9,4] = CumSum sum(b, one)\n"
       "      output s\n  }\n"
       "  r: f32[2,T,4] = Relu relu(y)\n  output r\n"},
    {"as many iterations as the data say",
     "  declare m<=6\n  input x: f32[1<=N<=3,2]\n  input t: i64[1<=T<=5]\n"
     "  const six: i64[] = {6}\n  const z: i64[1] = {0}\n"
     "  u: i64[] = ReduceSum u(t, z) {keepdims=0}\n"
     "  m: i64[] = Mod m(u, six)\n"
     "  y: f32[N,2], s: f32[\"m[0]\",N,2] = Loop loop(m, _, x) {carried=1}\n"
     "  body {\n    graph step\n"
     "      input i: i64[]\n      input go: bool[]\n"
     "      input a: f32[1<=N<=3,2]\n"
     "      next: bool[] = Identity same(go)\n"
     "      f: f32[] = Cast cast(i) {to=1}\n"
     "      b: f32[N<=3,2] = Add add(a, f)\n"
     "      c: f32[N<=3,2] = Neg neg(b)\n"
     "      output next\n      output b\n      output c\n  }\n"
     "  r: f32[\"m[0]\",N,2] = Relu relu(s)\n  output y\n  output r\n"},
    {"until a condition ends it",
     "  input x: f32[1<=N<=3,2]\n  const m: i64[] = {40}\n"
     "  const least: f32[] = {30}\n  const a: i64[2] = {0, 1}\n"
     "  const yes: bool[] = {1}\n"
     "  s: f32[N,2] = Abs abs(x)\n"
     "  y: f32[N,2], t: f32[\"loop.count\",N] = Loop loop(m, yes, s, least, "
     "a) {carried=1}\n"
     "  body {\n    graph step\n"
     "      input i: i64[]\n      input go: bool[]\n"
     "      input v: f32[1<=N<=3,2]\n      input least: f32[]\n"
     "      input a: i64[2]\n"
     "      const half: f32[] = {1.5}\n      const one: i64[1] = {1}\n"
     "      w: f32[N<=3,2] = Mul mul(v, half)\n"
     "      q: f32[] = ReduceSum sum(w, a) {keepdims=0}\n"
     "      next: bool[] = Less less(q, least)\n"
     "      r: f32[N<=3] = ReduceSum row(w, one) {keepdims=0}\n"
     "      output next\n      output w\n      output r\n  }\n"
     "  z: f32[\"loop.count\",N] = Relu relu(t)\n"
     "  output y\n  output z\n"},
    {"resized by whole numbers and halves",
     "  input x: f32[1,2,2<=H<=5,2<=W<=6]\n"
     "  const s: f32[4] = {1, 1, 2, 3}\n  const t: f32[4] = {1, 1, 0.5, "
     "1.5}\n"
     "  a: f32[1,2,(H*2),(W*3)] = Resize a(x, _, s)\n"
     "  b: f32[1,2,(H/2),((W*3)/2)] = Resize b(x, _, t) {mode=\"linear\"}\n"
     "  c: f32[1,2,(H*2),(W*3)] = Resize c(x, _, s) {"
     "coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"}"
     "\n"
     "  d: f32[1,2,(H*2),(W*3)] = Resize d(x, _, s) {mode=\"linear\", "
     "coordinate_transformation_mode=\"align_corners\"}\n"
     "  e: f32[1,2,(H/2),((W*3)/2)] = Resize e(x, _, t) {"
     "coordinate_transformation_mode=\"pytorch_half_pixel\", "
     "nearest_mode=\"ceil\"}\n"
     "  output a\n  output b\n  output c\n  output d\n  output e\n"},
    {"resized to another's size",
     "  input x: f32[1,2,1<=H<=4,3]\n  input y: f32[1,2,1<=P<=6,1<=Q<=5]\n"
     "  s: i64[4] = Shape s(y)\n"
     "  a: f32[1,2,P,Q] = Resize a(x, _, _, s)\n"
     "  b: f32[1,2,P,Q] = Resize b(x, _, _, s) {mode=\"linear\"}\n"
     "  c: f32[1,2,P,Q] = Add c(a, y)\n"
     "  output b\n  output c\n"},
    {"numbers without a choice",
     "  input x: f32[0,4]\n  input s: i64[2]\n"
     "  const z: i64[] = {0}\n"
     "  t: i64[2] = Mul t(s, z)\n"
     "  a: f32[0,4], b: f32[0,4] = Split p(x, t)\n"
     "  y: f32[0,4] = Concat c(a, b) {axis=0}\n  output y\n"},
    {"a window as long as it",
     "  input x: f32[2<=T<=9]\n  const z: i64[] = {0}\n"
     "  s: i64[1] = Shape s(x)\n  n: i64[] = Squeeze n(s)\n"
     "  h: f32[T] = HannWindow h(n)\n"
     "  b: f32[T] = BlackmanWindow b(n) {periodic=0}\n"
     "  y: f32[T] = Mul y(x, h)\n  output y\n  output b\n"},
    {"the type of another",
     X "  input l: i64[3]\n  y: i64[2,T,4] = CastLike c(x, l)\n"
       "  output y\n"},
    {0},
};
