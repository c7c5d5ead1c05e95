/* No toy route: what is printed of a kernel is all there is to it. */
#ifndef ASSAY_HARNESS_REPLAY_H
#define ASSAY_HARNESS_REPLAY_H

#include "program/program.h"

/* Parses each kernel's printed definition, replays its trace on it, lowers,
 * and compares the hash of the loops. A line a kernel that differs, and a
 * summary, on standard output. True when all agree. */
bool replay_kernels(const Program *program);

#endif
