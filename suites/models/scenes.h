/* Scenes of garments for detectors: Fashion-MNIST's test images put at
 * random places of a larger image. data/train_yolo.py makes its scenes from
 * the training images in the same way. */
#ifndef ASSAY_SUITES_MODELS_SCENES_H
#define ASSAY_SUITES_MODELS_SCENES_H

#include "suites/suite.h"

enum { SCENE_SIDE = 80, SCENE_GARMENTS = 4, SCENE_KINDS = 10 };

/* SuiteData.load for METRIC_MAP50: f32 [n, 1, SCENE_SIDE, SCENE_SIDE] in
 * 0..1. A scene is the same whatever `limit`. */
bool scenes_load(Arena *arena, int limit, Array **inputs, Array **labels,
                 Str *why);

#endif
