#include "harness/values.h"

#include <math.h>

json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

json_t *hash_json(uint64_t hash)
{
    return json_sprintf("%016llx", (unsigned long long)hash);
}
