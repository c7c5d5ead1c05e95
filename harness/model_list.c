#include "harness/model_list.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "harness/common.h"
#include "harness/measure.h"
#include "suites/suite.h"

void model_list_add(Arena *arena, ModelList *models, int count,
                    char *const *names)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], "all")) {
            vec_push(arena, models, (const char *)names[i]);
            continue;
        }
        for (int m = 0; suite_models()[m]; m++)
            vec_push(arena, models, suite_models()[m]->name);
    }
}

static bool is_there(const char *model, bool has_dims)
{
    Str error = {0};
    SuiteParams params;
    if (suite_is_name(model) && has_dims) {
        bad_input("%s: --dim is for ONNX files; a suite model has "
                  "parameters, as %s@batch=4",
                  model, model);
        return false;
    }
    bool ok = suite_is_name(model) ? suite_find(model, &params, &error) != NULL
                                   : !access(model, R_OK);
    if (!ok && error.length)
        bad_input("%s", str_text(&error));
    else if (!ok)
        bad_input("%s: %s", model, strerror(errno));
    str_free(&error);
    return ok;
}

bool model_list_check(const ModelList *models, bool has_dims)
{
    for (int i = 0; i < models->count; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(model_label(models->data[i]),
                        model_label(models->data[k]))) {
                bad_input("%s and %s: results go by the name %s: give each "
                          "once, under a name of its own",
                          models->data[k], models->data[i],
                          model_label(models->data[i]));
                return false;
            }
    for (int i = 0; i < models->count; i++)
        if (!is_there(models->data[i], has_dims))
            return false;
    return true;
}
