/* What the full-size models share: layers with seeded weights.
 *
 * The weights keep every layer's values near unit size. A convolution has
 * He's initialisation, so the variance of its output is twice the mean
 * square of its input; the batch normalization after it carries about that
 * variance as its statistic. `Feature` keeps the estimate of the mean
 * square along. */
#ifndef ASSAY_SUITES_MODELS_COMMON_H
#define ASSAY_SUITES_MODELS_COMMON_H

#include "suites/suite.h"

typedef struct Feature {
    Tensor *tensor;
    int channels;
    double mean_square; /* estimate */
} Feature;

typedef struct Builder {
    Graph *graph;
    uint64_t seed;
} Builder;

typedef enum Activation {
    ACT_NONE,
    ACT_RELU,
    ACT_RELU6,
    ACT_HARD_SWISH,
    ACT_LEAKY, /* 0.1 of what is negative */
    ACT_SILU   /* Sigmoid and Mul, as exporters write it */
} Activation;

typedef struct ConvSpec {
    int channels; /* of the output */
    int kernel, stride, groups;
    Activation activation;
} ConvSpec;

Builder builder_new(Graph *g, const SuiteParams *params);
/* "input": f32[batch, 3, resolution, resolution]. */
Feature builder_image(Builder *b, const SuiteParams *params);
/* Conv without bias, BatchNormalization, activation; nodes NAME.conv,
 * NAME.bn, NAME.act. Padding keeps the size at stride 1. */
Feature builder_conv_bn(Builder *b, const char *name, Feature x,
                        ConvSpec spec);
/* x + y, then the activation: NAME.add and NAME.act. */
Feature builder_add(Builder *b, const char *name, Feature x, Feature y,
                    Activation activation);
/* Squeeze and excitation: each channel times a gate computed from the means
 * of all, through `inner` channels; nodes NAME.*. */
Feature builder_squeeze(Builder *b, const char *name, Feature x, int inner);
/* Padding keeps the size at stride 1 and gives half of it at stride 2; that
 * of an even kernel is behind the last row and column. */
Feature builder_max_pool(Builder *b, const char *name, Feature x, int kernel,
                         int stride);
/* Conv with a bias whose output has about unit size: the last layer of a
 * head. */
Feature builder_predict(Builder *b, const char *name, Feature x, int channels);
/* Twice the height and width, each pixel four times. */
Feature builder_upsample(Builder *b, const char *name, Feature x);
/* The channels of all parts, one after the other. */
Feature builder_concat(Builder *b, const char *name, const Feature *parts,
                       int count);
/* Global average pooling and a fully connected layer, marked as the output
 * "scores". False when the graph has faults. */
bool builder_classifier(Builder *b, Feature x, int classes);
/* NAME: f32 of normal values around `mean`, keyed by the name and seed. */
Tensor *builder_weights(Builder *b, const char *name, int rank,
                        const int64_t *dims, double mean, double deviation);
/* Channels times the width, a multiple of 8, at least 8. */
int scale_channels(int channels, double width);

#endif
