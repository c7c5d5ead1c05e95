/* The models of a command line. */
#ifndef ASSAY_HARNESS_MODEL_LIST_H
#define ASSAY_HARNESS_MODEL_LIST_H

#include <stdbool.h>

#include "base/vec.h"

typedef Vec(const char *) ModelList;

/* `all` stands for every model of the suite. */
void model_list_add(Arena *arena, ModelList *models, int count,
                    char *const *names);
/* Whether there are such models and results can tell them apart; faults are
 * reported. `has_dims`: with --dim, which is for files. */
bool model_list_check(const ModelList *models, bool has_dims);

#endif
