/* What the files of Resize share: coordinates of its axes, and its filters. */
#ifndef ASSAY_OPS_RESIZE_H
#define ASSAY_OPS_RESIZE_H

#include "ops/rules.h"

typedef enum CoordMode {
    COORD_HALF_PIXEL,
    COORD_PYTORCH,
    COORD_ALIGN,
    COORD_ASYMMETRIC,
    COORD_SYMMETRIC,
    COORD_TF_NN,
    COORD_CROP,
    COORD_COUNT
} CoordMode;

/* One axis: input position of output place o is alpha * o + beta. */
typedef struct ResizeAxis {
    int64_t in, out;
    double scale, alpha, beta;
    double start, end; /* of a crop, as shares of the extent */
    bool changes;      /* false: the identity */
    /* Where an extent is known at run time only; NULL: they are numbers. */
    const Expr *length, *out_length;
} ResizeAxis;

/* -1 for an unknown name, which the type rule refuses. */
CoordMode resize_coord_mode(const Node *node);
/* The value of a list, NULL where there is none or it is empty. */
const Array *resize_operand(const Node *node, int index);
/* Where axis `axis` is listed among the resized ones, or -1. */
int resize_entry(const Node *node, int rank, int axis);
/* Everything known about one axis of these extents. */
ResizeAxis resize_axis(const Node *node, int rank, const int64_t *in,
                       int axis);
/* The same for a definition, where extents may be a run's. */
ResizeAxis resize_define_axis(DefineContext *c, int axis);
/* The position of place o as implementations of the standard round it: in
 * f32, step by step. Where positions are cut to whole elements the last bit
 * decides. */
float resize_rounded_position(const Node *node, const ResizeAxis *r,
                              int64_t place);
/* The same of an open axis where `type` is f32; exact where it is f64. */
const Expr *resize_open_position(Arena *a, const Node *node,
                                 const ResizeAxis *r, const Expr *place,
                                 DType type);
/* The position in f64, of any axis. */
const Expr *resize_position(Arena *a, const Node *node, const ResizeAxis *r,
                            const Expr *o);
/* tf_crop_and_resize: `value`, or a fixed one outside the input. */
const Expr *resize_outside_crop(StageBuilder *b, const Node *node,
                                const ResizeAxis *axes, int rank,
                                const Expr *value);
/* Cubic and antialiased filters; values are computed in `type`. */
void resize_define_filtered(DefineContext *c, const ResizeAxis *axes,
                            DType type);

#endif
