#include "harness/inputs.h"

/* splitmix64 over a counter: element i does not depend on the others. */
static uint64_t random_at(uint64_t key, uint64_t counter)
{
    uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The sum of twelve uniform numbers less six (Irwin-Hall): close to normal,
 * and without a logarithm or cosine whose last bit differs by machine. */
static double normal_at(uint64_t key, uint64_t counter)
{
    double sum = -6;
    for (uint64_t k = 0; k < 3; k++) {
        uint64_t bits = random_at(key, counter * 3 + k);
        for (int part = 0; part < 4; part++, bits >>= 16)
            sum += ((double)(bits & 0xffff) + 0.5) / 65536;
    }
    return sum;
}

void inputs_fill(Array *array, uint64_t seed, int index)
{
    uint64_t key = random_at(seed, (uint64_t)index);
    int64_t count = array_count(array);
    if (dtype_is_float(array->dtype)) {
        for (int64_t i = 0; i < count; i++)
            array_set(array, i, normal_at(key, (uint64_t)i));
        return;
    }
    uint64_t range = array->dtype == DT_BOOL ? 2 : 10;
    for (int64_t i = 0; i < count; i++)
        array_set_int(array, i,
                      (int64_t)(random_at(key, (uint64_t)i) % range));
}
