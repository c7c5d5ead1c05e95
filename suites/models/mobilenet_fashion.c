/* A small MobileNetV2 trained on Fashion-MNIST by data/train_fashion.py. */
#include "suites/models/fashion.h"

static const SuiteData data = {METRIC_TOP1, fashion_load, 10000, 0.91};

const SuiteModel model_mobilenet_fashion = {
    .name = "mobilenet_fashion",
    .about = "small MobileNetV2 trained on Fashion-MNIST, 28x28",
    .onnx = "mobilenet_fashion.onnx",
    .defaults = {.batch = 1},
    .data = &data,
};
