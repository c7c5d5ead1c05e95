/* Graphs on which a compiler once went wrong, for test_fuzz: every way of
 * building must give what the reference gives. */
#ifndef ASSAY_SUITES_FOUND_ROWS_H
#define ASSAY_SUITES_FOUND_ROWS_H

typedef struct FoundRow {
    const char *name;
    const char *text; /* the lines of the graph */
} FoundRow;

/* Ends with a NULL name. */
extern const FoundRow found_rows[];

#endif
