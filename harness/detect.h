/* Object detection: cells of a single-shot detector to boxes, and how well
 * boxes fit the true ones. Pure functions. */
#ifndef ASSAY_HARNESS_DETECT_H
#define ASSAY_HARNESS_DETECT_H

#include "base/array.h"
#include "base/vec.h"

/* In pixels, x0 <= x1 and y0 <= y1. */
typedef struct Box {
    double x0, y0, x1, y1;
} Box;

/* A box that a model found, or a true one, whose score is not used. */
typedef struct Detection {
    int example, kind; /* image, and class of what is there */
    double score;      /* 0..1 */
    Box box;
} Detection;

/* In the order of the images. */
typedef Vec(Detection) Detections;

/* Area of the intersection over that of the union; 0 for empty boxes. */
double detect_iou(Box a, Box b);

/* Boxes of image `example`, before suppression, in the order of the cells.
 *
 * `cells` is [examples, 5 + kinds, rows, columns] over an image of `width`
 * by `height` pixels: dx, dy, log w, log h, objectness, then a score for
 * each kind. The centre is (column + sigmoid(dx)) cells from the left, the
 * width exp(log w) cells, the score sigmoid(objectness) times the softmax of
 * the kinds. What scores at most 0.01 or is not finite is left out. */
void detect_decode(Arena *arena, const Array *cells, int64_t example,
                   double width, double height, Detections *found);

/* Greedy non-maximum suppression among the boxes of one image, from item
 * `first` on: by falling score, of equal ones the first, a box stays unless
 * one of its kind that stays overlaps it by an IoU of 0.5 or more. */
void detect_suppress(Detections *found, int first);

/* Average precision of detections by falling score, of which `hits` says
 * whether they are right, with `positives` true boxes: precision made
 * monotonous, at COCO's 101 recalls 0, 0.01 ... 1. */
double detect_average_precision(const bool *hits, int count, int positives);

/* Mean of the average precision over the kinds that have true boxes, as
 * COCO's AP50: by falling score, a detection takes the true box of its image
 * and kind that it overlaps most and that none has taken yet, and is right
 * if their IoU is 0.5 or more. NaN without a true box. */
double detect_map50(Arena *arena, const Detections *found,
                    const Detections *truth, int kinds);

/* How much two lists, within an image by falling score, say the same:
 * 2 * pairs / boxes, where a pair are boxes of one image and kind with an
 * IoU of 0.5 or more, and boxes that score at most 0.25 do not count. 1
 * when there is none. */
double detect_agreement(Arena *arena, const Detections *a,
                        const Detections *b);

#endif
