/* What fusion made: the groups of a graph, and for every tensor between two
 * of them why they are apart. */
#ifndef ASSAY_HARNESS_FUSION_H
#define ASSAY_HARNESS_FUSION_H

#include <jansson.h>

#include "program/program.h"

/* A list for people. `program` names the kernels; NULL: there are none. */
void fusion_print(Str *out, const Graph *g, const Program *program);
/* The same as a new JSON array, one object a group. */
json_t *fusion_json(const Graph *g, const Program *program);

#endif
