/* What fusion made: the groups of a graph, and for every tensor between two
 * of them why they are apart. */
#ifndef ASSAY_HARNESS_GROUPS_H
#define ASSAY_HARNESS_GROUPS_H

#include <jansson.h>

#include "program/program.h"

/* A list for people. `program` names the kernels; NULL: there are none. */
void groups_print(Str *out, const Graph *g, const Program *program);
/* The same as a new JSON array, one object a group. */
json_t *groups_json(const Graph *g, const Program *program);

#endif
