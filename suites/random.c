#include "suites/random.h"

/* splitmix64 (Steele, Lea, Flood 2014) over a counter. */
uint64_t random_bits(uint64_t key, uint64_t counter)
{
    uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double random_uniform(uint64_t key, uint64_t counter)
{
    return ((double)(random_bits(key, counter) >> 12) + 0.5) * 0x1p-52;
}

/* The sum of twelve uniform numbers less six (Irwin-Hall): close to normal,
 * and exact in binary, unlike formulas with a logarithm or cosine. */
double random_normal(uint64_t key, uint64_t counter)
{
    double sum = -6;
    for (uint64_t k = 0; k < 3; k++) {
        uint64_t bits = random_bits(key, counter * 3 + k);
        for (int part = 0; part < 4; part++, bits >>= 16)
            sum += ((double)(bits & 0xffff) + 0.5) / 65536;
    }
    return sum;
}
