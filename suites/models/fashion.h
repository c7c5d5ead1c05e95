/* Fashion-MNIST's test images (Xiao et al. 2017), as Debian's package
 * dataset-fashion-mnist installs them. */
#ifndef ASSAY_SUITES_MODELS_FASHION_H
#define ASSAY_SUITES_MODELS_FASHION_H

#include "suites/suite.h"

/* SuiteData.load: f32 [n, 1, 28, 28] in 0..1. */
bool fashion_load(Arena *arena, int limit, Array **inputs, Array **labels,
                  Str *why);

#endif
