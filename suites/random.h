/* Seeded random numbers for weights and inputs: number `counter` of a key
 * depends on nothing else, and on no library whose last bit differs. */
#ifndef ASSAY_SUITES_RANDOM_H
#define ASSAY_SUITES_RANDOM_H

#include <stdint.h>

uint64_t random_bits(uint64_t key, uint64_t counter);
/* In 0..1, both excluded. */
double random_uniform(uint64_t key, uint64_t counter);
/* Mean 0, variance 1, within 6. */
double random_normal(uint64_t key, uint64_t counter);

#endif
