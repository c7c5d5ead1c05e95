/* The table of `assay run` for people. */
#ifndef ASSAY_HARNESS_TABLE_H
#define ASSAY_HARNESS_TABLE_H

#include <stdio.h>

#include "harness/measure.h"

void table_print(Arena *arena, FILE *file, const ModelResult *models,
                 int count);

#endif
