/* Operators: a table of types, attributes and constants, and for each row
 * the result: a type, an error text, or the values that the definition
 * gives in the interpreter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "ops/op.h"
#include "ops_run.h"

/* `inputs` are separated by blanks: "TYPE" or "TYPE={VALUES}" for a
 * constant, "-" for one left out. `expected` is one of the following an
 * output, separated by blanks: "TYPE", "TYPE={VALUES}", "-". It starts with
 * "!" for an error that holds the text after it. */
typedef struct Row {
    const char *op, *inputs, *attrs, *expected;
} Row;

static const Row rows[] = {
    /* elementwise, unary */
    {"Abs", "f32[2,3]", "", "f32[2,3]"},
    {"Abs", "i32[3]={-2,0,5}", "", "i32[3]={2,0,5}"},
    {"Neg", "f32[2]={1,-0.5}", "", "f32[2]={-1,0.5}"},
    {"Neg", "u8[2]", "", "!input 0 (a) has the element type u8"},
    {"Not", "bool[2]={1,0}", "", "bool[2]={0,1}"},
    {"Floor", "f32[3]={-1.5,0.5,2}", "", "f32[3]={-2,0,2}"},
    {"Round", "f32[4]={0.5,1.5,-2.5,2.6}", "", "f32[4]={0,2,-2,3}"},
    {"Sign", "f32[4]={-3,0,2,nan}", "", "f32[4]={-1,0,1,nan}"},
    {"Sign", "i64[3]={-3,0,2}", "", "i64[3]={-1,0,1}"},
    {"Reciprocal", "f32[2]={4,-0.5}", "", "f32[2]={0.25,-2}"},
    {"Erf", "f32[2]={0,0.5}", "", "f32[2]={0,0.5204999}"},
    {"Exp", "f32[2]={0,1}", "", "f32[2]={1,2.7182817}"},
    {"IsNaN", "f32[2]={nan,1}", "", "bool[2]={1,0}"},
    {"IsInf", "f32[3]={inf,-inf,1}", "", "bool[3]={1,1,0}"},
    {"IsInf", "f32[3]={inf,-inf,1}", "detect_negative=0", "bool[3]={1,0,0}"},
    {"Sqrt", "i32[2]", "", "!the element type i32"},
    {"Abs", "f32[2] f32[2]", "", "!has 2 inputs, at most 1"},
    {"Abs", "f32[2]", "alpha=0.5", "!unknown attribute alpha"},
    {"Atan", "f32[6]={1,-1,inf,nan,1e-20,0.5}", "",
     "f32[6]={0.7853982,-0.7853982,1.5707964,nan,1e-20,0.4636476}"},
    {"Asin", "f32[4]={0.5,-1,1e-20,2}", "",
     "f32[4]={0.5235988,-1.5707964,1e-20,nan}"},
    {"Acos", "f32[4]={-1,1,0.5,2}", "", "f32[4]={3.1415927,0,1.0471976,nan}"},
    {"Sinh", "f32[4]={1,-1,1e-20,-inf}", "",
     "f32[4]={1.1752012,-1.1752012,1e-20,-inf}"},
    {"Cosh", "f32[3]={0,-1,89.5}", "", "f32[3]={1,1.5430806,inf}"},
    {"Asinh", "f32[3]={1,-1,1e-20}", "",
     "f32[3]={0.8813736,-0.8813736,1e-20}"},
    {"Acosh", "f32[3]={1,2,0.5}", "", "f32[3]={0,1.316958,nan}"},
    {"Atanh", "f32[4]={0.5,-1,1e-20,2}", "",
     "f32[4]={0.5493061,-inf,1e-20,nan}"},
    /* the best along an axis: the lower index first, NaN above all */
    {"TopK", "f32[5]={1,3,2,3,-1} i64[1]={3}", "",
     "f32[3]={3,3,2} i64[3]={1,3,2}"},
    {"TopK", "f32[5]={1,3,2,3,-1} i64[1]={5}", "largest=0",
     "f32[5]={-1,1,2,3,3} i64[5]={4,0,2,1,3}"},
    {"TopK", "f32[6]={1,nan,-inf,nan,inf,0} i64[1]={4}", "sorted=0",
     "f32[4]={nan,nan,inf,1} i64[4]={1,3,4,0}"},
    {"TopK", "f32[4]={nan,0,-0.5,nan} i64[1]={3}", "largest=0",
     "f32[3]={-0.5,0,nan} i64[3]={2,1,0}"},
    {"TopK", "u8[2,3]={255,0,1,7,200,200} i64[1]={1}", "axis=0",
     "u8[1,3]={255,200,200} i64[1,3]={0,1,1}"},
    {"TopK", "f16[2,2]={1,2,4,3} i64[1]={1}", "",
     "f16[2,1]={2,4} i64[2,1]={1,0}"},
    {"TopK", "f32[N,4] i64[1]={0}", "", "f32[N,0] i64[N,0]"},
    {"TopK", "f32[2,4] i64[1]={5}", "", "!K is 5, axis 1 has 4 elements"},
    {"TopK", "f32[2,4] i64[1]", "", "!K"},
    /* as many results as the data say */
    {"NonZero", "f32[2,3]={1,0,nan,0,-2,0}", "", "i64[2,3]={0,0,1,0,2,1}"},
    {"NonZero", "bool[2]={0,0}", "", "i64[1,0]"},
    {"Unique", "f32[5]={2,1,1,3,2}", "",
     "f32[3]={1,2,3} i64[3]={1,0,3} i64[5]={1,0,0,2,1} i64[3]={2,2,1}"},
    {"Unique", "i32[2,2]={5,-1,5,7}", "sorted=0",
     "i32[3]={5,-1,7} i64[3]={0,1,3} i64[4]={0,1,0,2} i64[3]={2,1,1}"},
    {"Unique", "u8[2,3]={1,0,1,1,0,1}", "axis=-1",
     "u8[2,2]={0,1,0,1} i64[2]={1,0} i64[3]={1,0,1} i64[2]={1,2}"},
    {"Unique", "f32[N]", "", "!X"},
    {"NonMaxSuppression",
     "f32[1,3,4]={0,0,1,1,0,0.1,1,1.1,0,2,1,3} f32[1,1,3]={0.7,0.9,0.5} "
     "i64[]={3} f32[]={0.5}",
     "", "i64[2,3]={0,0,1,0,0,2}"},
    {"NonMaxSuppression",
     "f32[1,2,4]={0.5,0.5,1,1,0.6,0.5,1,1} f32[1,2,2]={0.7,0.9,0.5,0.1} "
     "i64[1]={1} f32[1]={0.99} f32[1]={0.6}",
     "center_point_box=1", "i64[1,3]={0,0,1}"},
    {"NonMaxSuppression", "f32[1,N,4] f32[1,1,N]", "", "!boxes"},
    {"NonMaxSuppression", "f32[1,1,4]={0,0,1,1} f32[1,1,2]={1,1} i64[]={1}",
     "", "!scores [images, classes, boxes]"},
    {"TfIdfVectorizer", "i32[6]={1,1,3,3,3,7}",
     "mode=\"TF\", min_gram_length=1, max_gram_length=2, max_skip_count=1, "
     "ngram_counts=[0, 2], ngram_indexes=[0, 2, 1, 3], pool_int64s=[3, 7, 3, "
     "3, 1, 7]",
     "f32[4]={3,3,1,0}"},
    {"TfIdfVectorizer", "i64[2,2]={4,4,9,4}",
     "mode=\"TFIDF\", min_gram_length=1, max_gram_length=1, "
     "max_skip_count=0, ngram_counts=[0], ngram_indexes=[0, 1], "
     "pool_int64s=[4, 9], weights=[0.5, 2.0]",
     "f32[2,2]={1,0,0.5,2}"},
    {"TfIdfVectorizer", "i64[2]",
     "mode=\"TF\", min_gram_length=1, max_gram_length=1, max_skip_count=0, "
     "ngram_counts=[0], ngram_indexes=[0, 1], pool_int64s=[4]",
     "!has 1 n-grams"},
    /* recurrent layers */
    {"RNN", "f32[2,1,1]={1,-2} f32[1,1,1]={2} f32[1,1,1]={-1}",
     "activations=[\"Relu\"]", "f32[2,1,1,1]={2,0} f32[1,1,1]={0}"},
    {"RNN",
     "f32[1,2,1]={1,-2} f32[1,1,1]={2} f32[1,1,1]={-1} f32[1,2]={1,0.5} - "
     "f32[1,1,1]={3}",
     "activations=[\"Affine\"], activation_alpha=[2.0], layout=1, clip=2.0",
     "f32[1,2,1,1]={1,-4} f32[1,1,1]={-4}"},
    {"GRU",
     "f32[1,1,1]={0} f32[1,3,1]={0,0,0} f32[1,3,1]={0,0,1} - - "
     "f32[1,1,1]={2}",
     "activations=[\"Sigmoid\", \"Affine\"]",
     "f32[1,1,1,1]={1.5} f32[1,1,1]={1.5}"},
    {"LSTM",
     "f32[1,1,1]={0} f32[1,4,1]={0,0,0,0} f32[1,4,1]={0,0,0,0} - - "
     "f32[1,1,1]={2} f32[1,1,1]={3}",
     "activations=[\"Sigmoid\", \"Relu\", \"Relu\"]",
     "f32[1,1,1,1]={0.75} f32[1,1,1]={0.75} f32[1,1,1]={1.5}"},
    {"LSTM", "f32[N,B,5] f32[2,12,5] f32[2,12,3]",
     "direction=\"bidirectional\"", "f32[N,2,B,3] f32[2,B,3] f32[2,B,3]"},
    {"LSTM", "f32[4,2,5] f32[1,12,4] f32[1,12,3]", "",
     "!operand W must have the shape [1,12,5]"},
    {"LSTM", "f32[4,2,5] f32[1,12,5] f32[1,12,3]", "hidden_size=4",
     "!hidden_size is 4, R is for 3"},
    {"GRU", "f32[4,2,5] f32[1,9,5] f32[1,9,3]", "direction=\"both\"",
     "!direction must be forward"},
    {"GRU", "f32[4,2,5] f32[1,9,5] f32[1,9,3]",
     "activations=[\"Tanh\", \"Cos\"]", "!none of Affine"},
    {"RNN", "f32[4,2,5] f32[1,3,5] f32[1,3,3] - f32[2]", "",
     "!input 4 (e) has the element type f32"},
    /* losses */
    {"NegativeLogLikelihoodLoss", "f32[2,3]={-1,-2,-3,-4,-5,-6} i64[2]={0,2}",
     "", "f32[]={3.5}"},
    {"NegativeLogLikelihoodLoss",
     "f32[2,3]={-1,-2,-3,-4,-5,-6} i64[2]={0,2} f32[3]={2,1,3}",
     "reduction=\"none\"", "f32[2]={2,18}"},
    {"NegativeLogLikelihoodLoss", "f32[2,3]={-1,-2,-3,-4,-5,inf} i64[2]={0,2}",
     "ignore_index=2", "f32[]={1}"},
    {"NegativeLogLikelihoodLoss", "f32[2,3] i64[3]", "",
     "!the shape of the scores without axis 1"},
    {"SoftmaxCrossEntropyLoss", "f32[1,2]={1,3} i32[1]={1}", "",
     "f32[]={0.12692805}"},
    {"SoftmaxCrossEntropyLoss", "f32[1,2] i32[1]", "reduction=\"all\"",
     "!none, sum or mean"},
    /* activations */
    {"Relu", "f32[4]={-1,2,nan,-0.5}", "", "f32[4]={0,2,nan,0}"},
    {"LeakyRelu", "f32[2]={-2,3}", "alpha=0.5", "f32[2]={-1,3}"},
    {"LeakyRelu", "f32[2]", "alpha=1", "!attribute alpha is an integer"},
    {"PRelu", "f32[1,2,2]={-1,2,-3,4} f32[2,1]={2,3}", "",
     "f32[1,2,2]={-2,2,-9,4}"},
    {"PRelu", "f32[2] f32[3,2]", "", "!slope b does not broadcast"},
    {"Elu", "f32[2]={-1,2}", "", "f32[2]={-0.63212055,2}"},
    {"Sigmoid", "f32[4]={0,-200,200,1}", "", "f32[4]={0.5,0,1,0.7310586}"},
    {"HardSigmoid", "f32[3]={-9,1,9}", "", "f32[3]={0,0.7,1}"},
    {"HardSwish", "f32[3]={-4,1,4}", "", "f32[3]={0,0.6666667,4}"},
    {"Softplus", "f32[3]={0,500,-500}", "", "f32[3]={0.6931472,500,0}"},
    {"Gelu", "f32[2]={1,-3}", "", "f32[2]={0.8413447,-0.00404969}"},
    {"Gelu", "f32[2]={1,-3}", "approximate=\"tanh\"",
     "f32[2]={0.841192,-0.00363739}"},
    {"Gelu", "f32[2]", "approximate=\"fast\"", "!approximate is \"fast\""},
    {"Clip", "f32[4]={-3,2,9,nan} f32[]={0} f32[]={6}", "",
     "f32[4]={0,2,6,nan}"},
    {"Clip", "f32[2]={-3,9} f32[]={5} f32[]={2}", "", "f32[2]={2,2}"},
    {"Clip", "f32[2]={-3,9} - f32[]={2}", "", "f32[2]={-3,2}"},
    {"Clip", "f32[2] f32[2]", "", "!bound b must be a scalar"},
    /* arithmetic */
    {"Add", "f32[2,1,3] f32[4,1]", "", "f32[2,4,3]"},
    {"Add", "f32[2,3] f32[2]", "", "!extents 3 and 2 cannot be broadcast"},
    {"Add", "f32[2] i32[2]", "", "!must have the same element type"},
    {"Add", "f32[2,1]={1,2} f32[2]={10,20}", "", "f32[2,2]={11,21,12,22}"},
    {"Sub", "f32[0,3] f32[3]", "", "f32[0,3]"},
    {"Mul", "f32[N,3] f32[1,3]", "", "f32[N,3]"},
    {"Div", "i32[6]={7,-7,7,-7,6,5} i32[6]={2,2,-2,-2,-3,9}", "",
     "i32[6]={3,-3,-3,3,-2,0}"},
    {"Mod", "i32[4]={-4,4,-4,5} i32[4]={3,-3,-3,3}", "", "i32[4]={2,-2,-1,2}"},
    {"Mod", "i64[4]={-4,4,-4,5} i64[4]={3,-3,-3,3}", "fmod=1",
     "i64[4]={-1,1,-1,2}"},
    {"Mod", "f32[2]={-4.5,5} f32[2]={2,3}", "fmod=1", "f32[2]={-0.5,2}"},
    {"Mod", "f32[2] f32[2]", "", "!needs the attribute fmod=1"},
    {"Pow", "f32[3]={2,-3,4} f32[]={2}", "", "f32[3]={4,9,16}"},
    {"Pow", "f32[2]={2,9} f32[2]={3,0.5}", "", "f32[2]={8,3}"},
    {"Pow", "i32[2]={2,3} i64[2]={10,4}", "", "i32[2]={1024,81}"},
    {"Max", "f32[2]={1,nan} f32[2]={nan,2}", "", "f32[2]={nan,nan}"},
    {"Min", "f32[2]={1,5} f32[1]={3} f32[2]={2,2}", "", "f32[2]={1,2}"},
    {"Sum", "f32[2]={1,2} f32[2]={3,4} f32[1]={5}", "", "f32[2]={9,11}"},
    {"Mean", "f32[2]={1,2} f32[2]={3,4}", "", "f32[2]={2,3}"},
    /* comparison, logic, selection */
    {"Less", "f32[3]={1,2,nan} f32[3]={2,2,1}", "", "bool[3]={1,0,0}"},
    {"GreaterOrEqual", "i64[3]={1,2,3} i64[1]={2}", "", "bool[3]={0,1,1}"},
    {"Equal", "bool[2]={1,0} bool[2]={1,1}", "", "bool[2]={1,0}"},
    {"Xor", "bool[2]={1,0} bool[2]={1,1}", "", "bool[2]={0,1}"},
    {"And", "f32[2] bool[2]", "", "!element type f32"},
    {"Where", "bool[2]={1,0} f32[2,1]={1,2} f32[]={9}", "",
     "f32[2,2]={1,9,2,9}"},
    /* convolution */
    {"Conv", "f32[1,3,224,224] f32[64,3,7,7] f32[64]",
     "pads=[3,3,3,3],strides=[2,2]", "f32[1,64,112,112]"},
    {"Conv", "f32[N,8,16] f32[4,8,3]", "", "f32[N,4,14]"},
    {"Conv", "f32[1,3,H,16] f32[4,3,3,3]", "strides=[2,2]",
     "f32[1,4,(((H-3)/2)+1),7]"},
    {"Conv", "f32[1,3,5,5] f32[4,3,2,2]", "auto_pad=\"SAME_UPPER\"",
     "f32[1,4,5,5]"},
    {"Conv", "f32[1,3,8,8] f32[4,3,3,3]", "group=0",
     "!group is 0, it must be at least 1"},
    {"Conv", "f32[1,3,8,8] f32[4,1,3,3]", "group=2", "!group 2"},
    {"Conv", "f32[1,4,8,8] f32[3,2,3,3]", "group=2",
     "!3 output channels cannot be split"},
    {"Conv", "f32[1,3,8,8] f32[4,2,3,3]", "", "!the input has 3 channels"},
    {"Conv", "f32[1,3,8,8] f32[4,3,3,3]", "dilations=[2]",
     "!dilations has 1 values, it needs 2"},
    {"Conv", "f32[1,3,8,8] f32[4,3,3,3]", "strides=[0,1]", "!strides holds 0"},
    {"Conv", "f32[1,3,8,8] f32[4,3,3,3]", "pads=[-1,0,0,0]", "!pads holds -1"},
    {"Conv", "f32[1,3,8,8] f32[4,3,3,3]", "kernel_shape=[5,5]",
     "!kernel_shape says 5 where the weight has 3"},
    {"Conv", "f32[1,3,2,2] f32[4,3,3,3]", "", "!kernel reaches over 3"},
    {"Conv", "f32[1,3,8,8] f32[4,3,3]", "", "!its weight rank 3"},
    {"Conv", "f32[1,3,8,8] f32[4,3,3,3] f32[3]", "",
     "!bias has 3 elements for 4 channels"},
    {"Conv", "f32[1,3,8,8] f32[4,3,3,3]", "auto_pad=\"SOME\"",
     "!auto_pad is \"SOME\""},
    {"Conv", "f32[1,1,3,3]={1,2,3,4,5,6,7,8,9} f32[1,1,2,2]={1,0,0,1}", "",
     "f32[1,1,2,2]={6,8,12,14}"},
    {"Conv", "f32[1,1,3]={1,2,3} f32[1,1,3]={1,10,100} f32[1]={0.5}",
     "pads=[1,1]", "f32[1,1,3]={210.5,321.5,32.5}"},
    {"Conv", "f32[1,2,2]={1,2,3,4} f32[2,1,2]={1,1,1,-1}", "group=2",
     "f32[1,2,1]={3,-1}"},
    {"Conv", "f32[1,4,1]={1,2,3,4} f32[2,2,1]={1,1,1,-1}", "group=2",
     "f32[1,2,1]={3,-1}"},
    {"Conv", "f32[1,1,4]={1,2,3,4} f32[1,1,2]={1,1}", "dilations=[3]",
     "f32[1,1,1]={5}"},
    {"ConvTranspose", "f32[1,1,2]={1,2} f32[1,1,3]={1,1,1}", "strides=[2]",
     "f32[1,1,5]={1,1,3,2,2}"},
    {"ConvTranspose", "f32[1,4,3,3] f32[4,2,3,3]",
     "group=2,strides=[2,2],pads=[1,1,1,1],output_padding=[1,1]",
     "f32[1,4,6,6]"},
    /* pooling */
    {"MaxPool", "f32[1,1,4]={-4,-1,-3,-2}",
     "kernel_shape=[3],pads=[1,1],strides=[2]", "f32[1,1,2]={-1,-1}"},
    {"MaxPool", "f32[1,1,4]={1,3,3,2}", "kernel_shape=[2],strides=[2]",
     "f32[1,1,2]={3,3} i64[1,1,2]={1,2}"},
    {"MaxPool", "f32[1,1,5]", "kernel_shape=[2],strides=[2],ceil_mode=1",
     "f32[1,1,3]"},
    {"MaxPool", "f32[1,1,4]", "kernel_shape=[2],pads=[2,0]",
     "!leave windows without input"},
    {"MaxPool", "f32[1,1,4]", "", "!attribute kernel_shape is missing"},
    {"AveragePool", "f32[1,1,3]={3,6,9}", "kernel_shape=[3],pads=[1,1]",
     "f32[1,1,3]={4.5,6,7.5}"},
    {"AveragePool", "f32[1,1,3]={3,6,9}",
     "kernel_shape=[3],pads=[1,1],count_include_pad=1", "f32[1,1,3]={3,6,5}"},
    {"AveragePool", "f32[1,1,4]={1,2,3,4}",
     "kernel_shape=[3],strides=[2],ceil_mode=1", "f32[1,1,2]={2,3.5}"},
    {"GlobalAveragePool", "f32[1,2,1,2]={1,3,5,9}", "", "f32[1,2,1,1]={2,7}"},
    {"GlobalMaxPool", "f32[1,1,2,2]={1,7,3,5}", "", "f32[1,1,1,1]={7}"},
    /* products */
    {"MatMul", "f32[5,1,2,3] f32[4,3,6]", "", "f32[5,4,2,6]"},
    {"MatMul", "f32[3] f32[4,3,6]", "", "f32[4,6]"},
    {"MatMul", "f32[2,3] f32[3]", "", "f32[2]"},
    {"MatMul", "f32[3] f32[3]", "", "f32[]"},
    {"MatMul", "f32[2,3] f32[4,5]", "", "!inner extents 3 and 4"},
    {"MatMul", "f32[2,0] f32[0,2]", "", "f32[2,2]"},
    {"MatMul", "f32[2,2]={1,2,3,4} f32[2,2]={5,6,7,8}", "",
     "f32[2,2]={19,22,43,50}"},
    {"MatMul", "f32[2]={1,2} f32[2]={3,4}", "", "f32[]={11}"},
    {"Gemm", "f32[3,2] f32[4,3] f32[4]", "transA=1,transB=1", "f32[2,4]"},
    {"Gemm", "f32[1,2]={1,2} f32[2,2]={1,2,3,4} f32[]={10}",
     "alpha=0.5,beta=2.0", "f32[1,2]={23.5,25}"},
    {"Gemm", "f32[2,2] f32[2,2] f32[3,1,2]", "", "!its rank must be 0 to 2"},
    {"Gemm", "f32[1,2] f32[2,2] f32[2,2]", "", "!does not broadcast"},
    {"MatMulInteger", "u8[1,2]={255,255} i8[2,1]={127,-128} u8[]={128}", "",
     "i32[1,1]={-127}"},
    /* normalization */
    {"BatchNormalization",
     "f32[1,2,1]={1,2} f32[2]={2,3} f32[2]={1,0} f32[2]={0,1} f32[2]={3,0}",
     "epsilon=1.0", "f32[1,2,1]={2,3}"},
    {"BatchNormalization", "f32[1,2,1] f32[2] f32[2] f32[2] f32[2]",
     "training_mode=1", "!training_mode is 1"},
    {"BatchNormalization", "f32[1,2,1] f32[2] f32[3] f32[2] f32[2]", "",
     "!operand c has 3 elements for 2 channels"},
    {"LayerNormalization", "f32[1,2]={1,3} f32[2]={2,1} f32[2]={0,5}",
     "epsilon=0.0", "f32[1,2]={-2,6}"},
    {"LayerNormalization", "f32[2,3,4] f32[4]", "axis=-1",
     "f32[2,3,4] f32[2,3,1] f32[2,3,1]"},
    {"LayerNormalization", "f32[2,3,4] f32[3,4]", "axis=3",
     "!axis 3 is outside the rank 3"},
    {"RMSNormalization", "f32[1,2]={1,7} f32[2]={1,2}", "epsilon=0.0",
     "f32[1,2]={0.2,2.8}"},
    {"InstanceNormalization", "f32[1,1,2]={1,3} f32[1]={2} f32[1]={1}",
     "epsilon=0.0", "f32[1,1,2]={-1,3}"},
    {"GroupNormalization", "f32[1,2,2]={1,1,3,3} f32[2]={1,2} f32[2]={0,1}",
     "epsilon=0.0,num_groups=1", "f32[1,2,2]={-1,-1,3,3}"},
    {"GroupNormalization", "f32[1,3,2] f32[3] f32[3]", "num_groups=2",
     "!num_groups 2 does not divide 3"},
    {"LRN", "f32[1,3,1]={1,2,3}", "size=3,alpha=3.0,beta=1.0",
     "f32[1,3,1]={0.16666667,0.13333334,0.21428572}"},
    /* reduction */
    {"ReduceSum", "f32[2,3,4] i64[2]={0,-1}", "keepdims=0", "f32[3]"},
    {"ReduceSum", "f32[2,3] i64[0]={}", "noop_with_empty_axes=1,keepdims=0",
     "f32[2,3]"},
    {"ReduceSum", "f32[2,3] i64[2]={0,-2}", "", "!axis 0 is listed twice"},
    {"ReduceSum", "f32[2,3] i64[1]={2}", "", "!axis 2 is outside the rank"},
    {"ReduceSum", "f32[2,3] i64[1]", "",
     "!its operand axes (tensor b) is computed at run time"},
    {"ReduceMean", "f32[2,2]={1,2,3,5} i64[1]={1}", "keepdims=0",
     "f32[2]={1.5,4}"},
    {"ReduceMax", "f32[2,2]={1,nan,-3,-5} i64[1]={1}", "keepdims=0",
     "f32[2]={nan,-3}"},
    {"ReduceMax", "bool[2]={0,1}", "keepdims=0", "bool[]={1}"},
    {"ReduceProd", "i32[3]={2,3,-4}", "keepdims=0", "i32[]={-24}"},
    {"ReduceL2", "f32[2]={3,-4}", "keepdims=0", "f32[]={5}"},
    {"ReduceLogSumExp", "f32[2]={1000,1000}", "keepdims=0",
     "f32[]={1000.6931}"},
    {"ReduceSumSquare", "f32[2]={3,-4} i64[0]={}", "noop_with_empty_axes=1",
     "f32[2]={9,16}"},
    {"ArgMax", "f32[2,3]={1,3,3,9,0,1}", "axis=1,keepdims=0", "i64[2]={1,0}"},
    {"ArgMax", "f32[3]={1,3,3}", "select_last_index=1", "i64[1]={2}"},
    {"ArgMin", "i32[3]={4,-1,-1}", "", "i64[1]={1}"},
    {"ArgMax", "f32[2,0]", "axis=1", "!axis 1 has no elements"},
    {"CumSum", "f32[3]={1,2,3} i64[]={0}", "", "f32[3]={1,3,6}"},
    {"CumSum", "f32[3]={1,2,3} i64[]={0}", "exclusive=1,reverse=1",
     "f32[3]={5,3,0}"},
    {"Softmax", "f32[2,2]={1000,1000,0,-inf}", "", "f32[2,2]={0.5,0.5,1,0}"},
    {"Softmax", "f32[2,2]={0,1,0,1}", "axis=0", "f32[2,2]={0.5,0.5,0.5,0.5}"},
    {"LogSoftmax", "f32[3]={0,-1000,-2000}", "", "f32[3]={0,-1000,-2000}"},
    /* shape */
    {"Reshape", "f32[2,3,4] i64[2]={0,-1}", "", "f32[2,12]"},
    {"Reshape", "f32[N,3,4] i64[2]={-1,12}", "", "f32[N,12]"},
    {"Reshape", "f32[N,3,4] i64[2]={0,-1}", "", "f32[N,12]"},
    {"Reshape", "f32[N,6] i64[2]={-1,3}", "", "f32[(N*2),3]"},
    {"Reshape", "f32[0,3] i64[2]={0,-1}", "", "f32[0,0]"},
    {"Reshape", "f32[0,4] i64[3]={0,0,4}", "allowzero=1", "f32[0,0,4]"},
    {"Reshape", "f32[2,3] i64[2]={-5,2}", "", "!shape holds -5"},
    {"Reshape", "f32[2,3] i64[2]={-1,-1}", "", "!shape holds -1 twice"},
    {"Reshape", "f32[2,3] i64[2]={4,2}", "", "!6 elements do not fit"},
    {"Reshape", "f32[2,3] i64[2]={4,-1}", "", "!6 elements cannot be split"},
    {"Reshape", "f32[2,3] i64[2]", "", "!operand shape (tensor b)"},
    {"Reshape", "f32[2,3]={1,2,3,4,5,6} i64[2]={3,2}", "",
     "f32[3,2]={1,2,3,4,5,6}"},
    {"Reshape", "f32[2,2,3]={1,2,3,4,5,6,7,8,9,10,11,12} i64[3]={2,3,-1}", "",
     "f32[2,3,2]={1,2,3,4,5,6,7,8,9,10,11,12}"},
    {"Flatten", "f32[2,3,4]", "axis=2", "f32[6,4]"},
    {"Flatten", "f32[2,3,4]", "axis=0", "f32[1,24]"},
    {"Flatten", "f32[N,3,4]", "", "f32[N,12]"},
    {"Flatten", "f32[2,3]", "axis=3", "!axis 3 is outside"},
    {"Squeeze", "f32[1,3,1]", "", "f32[3]"},
    {"Squeeze", "f32[1,3,1] i64[1]={-1}", "", "f32[1,3]"},
    {"Squeeze", "f32[1,3,1] i64[1]={1}", "", "!axis 1 has 3 elements"},
    {"Unsqueeze", "f32[3] i64[2]={0,-1}", "", "f32[1,3,1]"},
    {"Identity", "bool[2]={1,0}", "", "bool[2]={1,0}"},
    {"Dropout", "f32[2]={1,2} f32[]={0.5}", "", "f32[2]={1,2} bool[2]={1,1}"},
    {"Dropout", "f32[2] f32[] bool[]={1}", "", "!training_mode is true"},
    {"Shape", "f32[2,3,4]", "", "i64[3]"},
    {"Shape", "f32[2,1,2]={1,2,3,4}", "start=-2", "i64[2]={1,2}"},
    {"Size", "f32[2,2]={1,2,3,4}", "", "i64[]={4}"},
    {"ConstantOfShape", "i64[2]={2,1}", "value=i32[1]{7}", "i32[2,1]={7,7}"},
    {"ConstantOfShape", "i64[1]={-2}", "", "!the shape holds -2"},
    {"Range", "i64[]={10} i64[]={4} i64[]={-2}", "", "i64[3]={10,8,6}"},
    {"Range", "f32[]={0} f32[]={1} f32[]={0}", "", "!delta is 0"},
    {"Expand", "f32[2,1]={1,2} i64[3]={2,1,2}", "",
     "f32[2,2,2]={1,1,2,2,1,1,2,2}"},
    {"Expand", "f32[3,1] i64[1]={1}", "", "f32[3,1]"},
    {"Tile", "f32[1,2]={1,2} i64[2]={2,2}", "", "f32[2,4]={1,2,1,2,1,2,1,2}"},
    /* movement */
    {"Transpose", "f32[2,3,4]", "", "f32[4,3,2]"},
    {"Transpose", "f32[2,3]={1,2,3,4,5,6}", "perm=[1,0]",
     "f32[3,2]={1,4,2,5,3,6}"},
    {"Transpose", "f32[2,3]", "perm=[0,0]", "!perm is not a permutation"},
    {"Concat", "f32[1,2]={1,2} f32[1,1]={3} f32[1,0]={} f32[1,1]={4}",
     "axis=1", "f32[1,4]={1,2,3,4}"},
    {"Concat", "f32[2,N] f32[2,3]", "axis=1", "f32[2,(N+3)]"},
    {"Concat", "f32[2,3] f32[3,3]", "axis=1", "!input b has 3 elements"},
    {"Split", "f32[5]={1,2,3,4,5} i64[2]={2,3}", "",
     "f32[2]={1,2} f32[3]={3,4,5}"},
    {"Split", "f32[2,6]", "axis=1", "f32[2,2] f32[2,2] f32[2,2]"},
    {"Split", "f32[7]", "num_outputs=3", "f32[3] f32[3] f32[1]"},
    {"Split", "f32[7] i64[2]={3,3}", "", "!split must be 1 sizes"},
    {"Slice", "f32[10] i64[1]={8} i64[1]={-100} - i64[1]={-3}", "", "f32[3]"},
    {"Slice",
     "f32[4]={1,2,3,4} i64[1]={-1} i64[1]={0} i64[1]={0} "
     "i64[1]={-2}",
     "", "f32[2]={4,2}"},
    {"Slice", "f32[4] i64[1]={-1} i64[1]={9223372036854775807} - i64[1]={-1}",
     "", "f32[0]"},
    {"Slice", "f32[4] i64[1]={0} i64[1]={2} - i64[1]={0}", "", "!a step of 0"},
    {"Slice", "f32[N,4] i64[1]={1} i64[1]={3} i64[1]={1}", "", "f32[N,2]"},
    {"Slice", "f32[N,4] i64[1]={2} i64[1]={0} i64[1]={0} i64[1]={-1}", "",
     "!--dim"},
    {"Pad", "f32[2]={1,2} i64[2]={1,2} f32[]={9}", "", "f32[5]={9,1,2,9,9}"},
    {"Pad", "f32[3]={1,2,3} i64[2]={-1,1}", "", "f32[3]={2,3,0}"},
    {"Pad", "f32[3]={1,2,3} i64[2]={2,2}", "mode=\"reflect\"",
     "f32[7]={3,2,1,2,3,2,1}"},
    {"Pad", "f32[2]={1,2} i64[2]={1,2}", "mode=\"edge\"",
     "f32[5]={1,1,2,2,2}"},
    {"Pad", "f32[3]={1,2,3} i64[2]={1,1}", "mode=\"wrap\"",
     "f32[5]={3,1,2,3,1}"},
    {"Pad", "f32[3] i64[2]={-2,-2}", "", "!leave nothing of axis 0"},
    {"DepthToSpace", "f32[1,4,1,1]={1,2,3,4}", "blocksize=2",
     "f32[1,1,2,2]={1,2,3,4}"},
    {"SpaceToDepth", "f32[1,1,2,2]={1,2,3,4}", "blocksize=2",
     "f32[1,4,1,1]={1,2,3,4}"},
    /* index */
    {"Gather", "f32[3,2]={1,2,3,4,5,6} i64[2]={-1,0}", "",
     "f32[2,2]={5,6,1,2}"},
    {"Gather", "f32[3,2] i32[]", "axis=1", "f32[3]"},
    {"Gather", "f32[3]={1,2,3} i64[1]={3}", "", "!the index 3 of b"},
    {"Gather", "f32[3] f32[1]", "", "!element type f32"},
    {"GatherElements", "f32[2,2]={1,2,3,4} i64[2,1]={1,-2}", "axis=1",
     "f32[2,1]={2,3}"},
    {"ScatterElements", "f32[4]={1,2,3,4} i64[2]={-1,1} f32[2]={9,8}", "",
     "f32[4]={1,8,3,9}"},
    {"ScatterElements", "f32[2] i64[1]={1099511627776} f32[1]", "",
     "!1099511627776"},
    /* resize */
    {"Resize", "f32[1,2]={1,2} - f32[2]={1,2}", "", "f32[1,4]={1,1,2,2}"},
    {"Resize", "f32[4]={1,2,3,4} - - i64[1]={2}",
     "coordinate_transformation_mode=\"asymmetric\"", "f32[2]={1,3}"},
    {"Resize", "f32[2]={0,4} - f32[1]={2}", "mode=\"linear\"",
     "f32[4]={0,1,3,4}"},
    {"Resize", "f32[3]={0,6,12} - - i64[1]={5}",
     "mode=\"linear\",coordinate_transformation_mode=\"align_corners\"",
     "f32[5]={0,3,6,9,12}"},
    {"Resize", "f32[1,1,13,13] - f32[4]={1,1,2,2}", "", "f32[1,1,26,26]"},
    {"Resize", "f32[4] - f32[1]={2}", "mode=\"cubic\"", "!mode \"cubic\""},
    {"Resize", "f32[4]", "", "!needs either scales or sizes"},
    /* types */
    {"Cast", "f32[4]={-1.9,2.5,nan,0}", "to=9", "bool[4]={1,1,1,0}"},
    {"Cast", "f32[2]={-1.9,2.5}", "to=7", "i64[2]={-1,2}"},
    {"Cast", "bool[2]={1,0}", "to=1", "f32[2]={1,0}"},
    {"Cast", "f32[2]", "to=8", "!element type number 8"},
    {"Cast", "f32[2]", "", "!the attribute to is missing"},
    {"DequantizeLinear", "i8[2]={-128,127} f32[]={0.5} i8[]={-1}", "",
     "f32[2]={-63.5,64}"},
    {"DequantizeLinear", "u8[2,2]={1,2,3,4} f32[2]={1,10}", "axis=0",
     "f32[2,2]={1,2,30,40}"},
    {"DequantizeLinear", "u8[2] f32[]={0}", "", "!its scale b holds 0"},
    {"QuantizeLinear", "f32[5]={0.5,1.5,-9,300,2} f32[]={1} u8[]={0}", "",
     "u8[5]={0,2,0,255,2}"},
    {"QuantizeLinear", "f32[2]={-1000,3} f32[]={2} i8[]={1}", "",
     "i8[2]={-128,3}"},
};

static const char *copy_word(Arena *a, const char **text)
{
    size_t length = strcspn(*text, " ");
    const char *word = arena_strndup(a, *text, length);
    *text += length;
    *text += strspn(*text, " ");
    return word;
}

/* The graph of a row, as text for the parser. */
static char *row_text(Arena *a, const Row *row, bool expect_error)
{
    Str text = {0}, call = {0};
    str_add(&text, "graph row\n");
    const char *at = row->inputs;
    for (char name[] = "a"; *at; name[0]++) {
        const char *word = copy_word(a, &at);
        const char *value = strchr(word, '=');
        str_add(&call, call.length ? ", " : "");
        if (strcmp(word, "-") == 0) {
            str_add(&call, "_");
            continue;
        }
        str_add(&call, name);
        /* In f32[N<=8] the sign is no value. */
        if (value && value[1] == '{')
            str_addf(&text, "  const %s: %.*s = %s\n", name,
                     (int)(value - word), word, value + 1);
        else
            str_addf(&text, "  input %s: %s\n", name, word);
    }
    str_add(&text, "  ");
    const char *outputs = expect_error ? "x" : row->expected;
    for (char name[] = "p"; *outputs; name[0]++) {
        copy_word(a, &outputs);
        str_addf(&text, "%s%s: ?[?]", name[0] > 'p' ? ", " : "", name);
    }
    str_addf(&text, " = %s node(%s)", row->op, str_text(&call));
    if (*row->attrs)
        str_addf(&text, " {%s}", row->attrs);
    str_add(&text, "\n");
    char *copy = arena_strdup(a, str_text(&text));
    str_free(&text);
    str_free(&call);
    return copy;
}

static bool is_close(const Array *array, int64_t i, double wanted)
{
    double is = array_get(array, i);
    if (isnan(wanted) || isinf(wanted))
        return isnan(wanted) ? isnan(is) : is == wanted;
    double room = dtype_is_float(array->dtype) ? 2e-6 : 0;
    return fabs(is - wanted) <= room * fmax(1, fabs(wanted));
}

static void check_values(const Row *row, const Array *array,
                         const char *values)
{
    const char *at = values + 1;
    for (int64_t i = 0; i < array_count(array); i++) {
        char *end;
        double wanted = strtod(at, &end);
        if (end == at)
            fail_msg("%s %s: too few expected values", row->op, row->inputs);
        if (!is_close(array, i, wanted))
            fail_msg("%s %s {%s}: element %d is %.9g, not %.9g", row->op,
                     row->inputs, row->attrs, (int)i, array_get(array, i),
                     wanted);
        at = end + (*end == ',');
    }
    assert_string_equal(at, "}");
}

static void check_row(const Row *row)
{
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    bool expect_error = row->expected[0] == '!';
    Graph *g =
        graph_parse(a, diag, ops_builtin(), row_text(a, row, expect_error));
    if (!g)
        fail_msg("%s %s: %s", row->op, row->inputs, diag->errors.data[0]);
    Node *node = g->nodes.data[0];
    bool ok = op_infer(g, node);
    if (expect_error) {
        if (ok)
            fail_msg("%s %s {%s} was accepted", row->op, row->inputs,
                     row->attrs);
        const char *error = diag->errors.data[0];
        if (!strstr(error, row->expected + 1) || !strstr(error, row->op) ||
            !strstr(error, "(output p)"))
            fail_msg("%s %s {%s}: %s", row->op, row->inputs, row->attrs,
                     error);
        arena_free(a);
        return;
    }
    if (!ok)
        fail_msg("%s", diag->errors.data[0]);
    Array *out[MAX_OP_OUTPUTS] = {NULL};
    const Array *in[MAX_OP_INPUTS] = {NULL};
    for (int i = 0; i < node->inputs.count; i++)
        if (node->inputs.data[i])
            in[i] = node->inputs.data[i]->value;
    if (strchr(row->expected, '{') && !ops_run_node(a, diag, node, in, out))
        fail_msg("%s: %s", row->op, diag->errors.data[0]);
    const char *at = row->expected;
    for (int i = 0; i < node->outputs.count; i++) {
        const char *word = copy_word(a, &at);
        const char *value = strstr(word, "={");
        Str type = {0};
        type_print(&type, &node->outputs.data[i]->type);
        size_t length = value ? (size_t)(value - word) : strlen(word);
        if (length != type.length ||
            strncmp(word, str_text(&type), length) != 0)
            fail_msg("%s %s {%s} gives %s, not %s", row->op, row->inputs,
                     row->attrs, str_text(&type), word);
        str_free(&type);
        if (value)
            check_values(row, out[i], value + 1);
    }
    arena_free(a);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_row(&rows[i]);
}

/* Every operator of the tables is sound and has a row above. */
static void test_tables(void **state)
{
    (void)state;
    for (const OpTable *t = ops_builtin(); t; t = t->next) {
        for (const Op *const *op = t->ops; *op; op++) {
            assert_ptr_equal(
                ops_find(ops_builtin(), op_domain(*op), (*op)->name), *op);
            assert_non_null((*op)->infer);
            bool is_control = (*op)->traits & (OP_BRANCH | OP_LOOP);
            assert_int_equal(((*op)->define != NULL) +
                                 ((*op)->program != NULL) + is_control,
                             1);
            assert_true((*op)->since > 0);
        }
    }
    assert_null(ops_find(ops_builtin(), "", "NoSuchThing"));
    assert_non_null(ops_find(ops_builtin(), "ai.onnx", "Conv"));
    assert_null(ops_find(ops_builtin(), "com.example", "Conv"));
}

/* A user's own operator, in a table in front of the built-in ones. */
static bool infer_twice(InferContext *c)
{
    c->node->outputs.data[0]->type = c->node->inputs.data[0]->type;
    return true;
}

static void define_twice(DefineContext *c)
{
    StageBuilder b;
    stage_begin(&b, c->def, c->out[0]);
    const Expr *x = expr_read(b.arena, c->in[0], b.index);
    stage_end(&b, expr_add(b.arena, x, x));
}

static void test_own_operator(void **state)
{
    (void)state;
    static const Op twice = {.name = "Twice",
                             .domain = "com.example",
                             .min_inputs = 1,
                             .max_inputs = 1,
                             .min_outputs = 1,
                             .max_outputs = 1,
                             .traits = OP_ELEMENTWISE,
                             .infer = infer_twice,
                             .define = define_twice,
                             .since = 1};
    static const Op *const own[] = {&twice, NULL};
    OpTable table = {own, ops_builtin()};
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Graph *g = graph_parse(a, diag, &table,
                           "graph g\n"
                           "  const x: f32[2] = {1, 2.5}\n"
                           "  y: ?[?] = com.example::Twice t(x)\n"
                           "  output y\n");
    assert_non_null(g);
    assert_true(ops_infer_graph(g));
    graph_verify(g);
    const Array *in[] = {g->tensors.data[0]->value};
    Array *out[1];
    assert_true(ops_run_node(a, diag, g->nodes.data[0], in, out));
    assert_true(array_get(out[0], 1) == 5);
    arena_free(a);
}

static void test_decompose(void **state)
{
    (void)state;
    Arena *a = arena_new();
    Diag *diag = diag_new(a, NULL);
    Graph *g = graph_parse(
        a, diag, ops_builtin(),
        "graph g\n"
        "  input x: f32[1,2,1,1]\n"
        "  const s: f32[2] = {2, -3}\n"
        "  const b: f32[2] = {1, 0.5}\n"
        "  const m: f32[2] = {4, 1}\n"
        "  const v: f32[2] = {3.5, 0}\n"
        "  y: ?[?] = BatchNormalization bn(x, s, b, m, v) {epsilon=0.5}\n"
        "  s2: ?[?] = Shape shape(y)\n"
        "  z: ?[?] = Cast cast(s2) {to=1}\n"
        "  output y\n  output z\n");
    assert_non_null(g);
    assert_true(ops_infer_graph(g));
    Node *bn = g->nodes.data[0], *shape = g->nodes.data[1];
    assert_true(bn->op->decompose(g, bn));
    assert_true(shape->op->decompose(g, shape));
    assert_int_equal(g->nodes.count, 3);
    graph_verify(g);
    const Node *mul = g->nodes.data[0], *add = g->nodes.data[1];
    assert_string_equal(op_name(mul->op), "Mul");
    assert_string_equal(mul->sources.data[0], "bn");
    assert_string_equal(add->outputs.data[0]->name, "y");
    assert_true(add->outputs.data[0]->is_output);
    const Array *scale = mul->inputs.data[1]->value;
    const Array *shift = add->inputs.data[1]->value;
    assert_int_equal(scale->rank, 3);
    assert_true(array_get(scale, 0) == 1); /* 2 / sqrt(3.5 + 0.5) */
    assert_true(array_get(scale, 1) == (double)(float)(-3 / sqrt(0.5)));
    assert_true(array_get(shift, 0) == -3); /* 1 - 4 * 1 */
    const Array *dims = g->nodes.data[2]->inputs.data[0]->value;
    assert_int_equal(array_count(dims), 4);
    assert_int_equal(array_get_int(dims, 1), 2);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_own_operator),
        cmocka_unit_test(test_decompose),
    };
    return cmocka_run_group_tests_name("ops", tests, NULL, NULL);
}
