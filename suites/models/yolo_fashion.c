/* A small single-shot detector trained on scenes of Fashion-MNIST's
 * garments by data/train_yolo.py. */
#include "suites/models/scenes.h"

static const SuiteData data = {METRIC_MAP50, scenes_load, 2000, 0.93};

const SuiteModel model_yolo_fashion = {
    .name = "yolo_fashion",
    .about = "small YOLO trained on scenes of Fashion-MNIST, 80x80",
    .onnx = "yolo_fashion.onnx",
    .defaults = {.batch = 1},
    .data = &data,
};
