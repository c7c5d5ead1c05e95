/* Numbers and texts in JSON objects. */
#ifndef ASSAY_HARNESS_VALUES_H
#define ASSAY_HARNESS_VALUES_H

#include <jansson.h>
#include <stdint.h>

/* JSON has no infinity and no NaN: these are null. */
json_t *number_json(double value);
/* A member of an object: NaN when it is absent or no number ... */
double number_of(const json_t *object, const char *key);
/* ... "" when it is absent or no text. */
const char *text_of(const json_t *object, const char *key);
/* 16 hexadecimal digits. */
json_t *hash_json(uint64_t hash);

#endif
