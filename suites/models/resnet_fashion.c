/* A small ResNet trained on Fashion-MNIST by data/train_fashion.py. */
#include "suites/models/fashion.h"

static const SuiteData data = {METRIC_TOP1, fashion_load, 10000, 0.925};

const SuiteModel model_resnet_fashion = {
    .name = "resnet_fashion",
    .about = "small ResNet trained on Fashion-MNIST, 28x28",
    .onnx = "resnet_fashion.onnx",
    .defaults = {.batch = 1},
    .data = &data,
};
