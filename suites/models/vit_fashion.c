/* A small vision transformer trained on Fashion-MNIST by
 * data/train_fashion.py. */
#include "suites/models/fashion.h"

static const SuiteData data = {METRIC_TOP1, fashion_load, 10000, 0.91};

const SuiteModel model_vit_fashion = {
    .name = "vit_fashion",
    .about = "small vision transformer trained on Fashion-MNIST, 28x28",
    .onnx = "vit_fashion.onnx",
    .defaults = {.batch = 1},
    .data = &data,
};
