/* Graphs with dimensions that are known at run time only, for test_shapes. */
#ifndef ASSAY_SUITES_SHAPES_ROWS_H
#define ASSAY_SUITES_SHAPES_ROWS_H

typedef struct ShapeRow {
    const char *name;
    const char *text; /* the lines of the graph */
} ShapeRow;

/* Ends with a NULL name. */
extern const ShapeRow shapes_rows[];

#endif
