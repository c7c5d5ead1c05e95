/* See found_rows.h. */
#include "found_rows.h"

#include <stddef.h>

const FoundRow found_rows[] = {
    {"a border around nothing",
     "  input x: f32[0,1,5,2]\n"
     "  const w: f32[2,1,3,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, "
     "7, 8, 9}\n"
     "  y: f32[0,2,5,2] = Conv c(x, w) {pads=[1, 1, 1, 1]}\n  output y\n"},
    {NULL, NULL},
};
