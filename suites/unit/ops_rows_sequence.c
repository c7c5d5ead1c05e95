/* What is computed in order: TopK, NonZero and the like, recurrent layers,
 * which are loop programs; see ops_rows.h. */
#include "ops_rows.h"

#include <stddef.h>

const OpRow ops_rows_sequence[] = {
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
    {NULL, NULL, NULL, NULL},
};
