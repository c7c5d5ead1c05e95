/* The list of models, and the parsing of their parameters. */
#include "suites/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const SuiteModel model_resnet18, model_resnet50, model_mobilenet_v2;
extern const SuiteModel model_mobilenet_v1, model_mobilenet_v3_large;
extern const SuiteModel model_minilm_l6, model_bert_base, model_gpt2_small;
extern const SuiteModel model_vit_tiny, model_yolov3_tiny, model_yolov8n;
extern const SuiteModel model_resnet_fashion, model_mobilenet_fashion;
extern const SuiteModel model_vit_fashion, model_yolo_fashion;

static const SuiteModel *const models[] = {
    &model_resnet18,
    &model_resnet50,
    &model_mobilenet_v1,
    &model_mobilenet_v2,
    &model_mobilenet_v3_large,
    &model_minilm_l6,
    &model_bert_base,
    &model_gpt2_small,
    &model_vit_tiny,
    &model_yolov3_tiny,
    &model_yolov8n,
    &model_resnet_fashion,
    &model_mobilenet_fashion,
    &model_vit_fashion,
    &model_yolo_fashion,
    NULL,
};

const SuiteModel *const *suite_models(void)
{
    return models;
}

bool suite_is_name(const char *text)
{
    size_t length = strcspn(text, "@");
    return !memchr(text, '/', length) && !memchr(text, '.', length);
}

enum {
    MIN_RESOLUTION = 32,
    MAX_RESOLUTION = 4096,
    MAX_WIDTH = 16,
    MAX_BATCH = 4096
};

static bool bad_param(Str *error, const SuiteModel *model, const char *item)
{
    const SuiteParams *d = &model->defaults;
    str_addf(error,
             "%s: parameter \"%s\" is not understood or out of range; there "
             "are:",
             model->name, item);
    if (d->resolution)
        str_addf(error, " RESOLUTION from %d to %d", MIN_RESOLUTION,
                 MAX_RESOLUTION);
    if (d->resolution && model->step)
        str_addf(error, ", a multiple of %d", model->step);
    if (d->resolution)
        str_addf(error, " (%d)", d->resolution);
    if (d->width > 0)
        str_addf(error, " width=W above 0, up to %d (%g)", MAX_WIDTH,
                 d->width);
    str_addf(error, " batch=N from 1 to %d (%d)", MAX_BATCH, d->batch);
    if (d->seed)
        str_addf(error, " seed=N from 1 to 1000000000 (%lld)",
                 (long long)d->seed);
    str_add(error, "\n");
    return false;
}

/* One of 192, width=0.75, batch=4, seed=2. */
static bool parse_item(const SuiteModel *model, SuiteParams *p,
                       const char *item, Str *error)
{
    const SuiteParams *d = &model->defaults;
    const char *equals = strchr(item, '=');
    const char *number = equals ? equals + 1 : item;
    size_t length = equals ? (size_t)(equals - item) : 0;
    char *end;
    errno = 0;
    double value = strtod(number, &end);
    if (end == number || *end || errno || !(value > 0))
        return bad_param(error, model, item);
    bool whole = value <= 1e9 && value == (double)(int64_t)value;
    if (!equals && d->resolution && whole && value >= MIN_RESOLUTION &&
        value <= MAX_RESOLUTION &&
        (!model->step || (int)value % model->step == 0))
        p->resolution = (int)value;
    else if (length == 5 && !strncmp(item, "width", 5) && d->width > 0 &&
             value <= MAX_WIDTH)
        p->width = value;
    else if (length == 5 && !strncmp(item, "batch", 5) && whole &&
             value <= MAX_BATCH)
        p->batch = (int)value;
    else if (length == 4 && !strncmp(item, "seed", 4) && d->seed && whole)
        p->seed = (int64_t)value;
    else
        return bad_param(error, model, item);
    return true;
}

static bool parse_params(const SuiteModel *model, SuiteParams *p,
                         const char *text, Str *error)
{
    for (bool more = true; more;) {
        char item[64];
        size_t length = strcspn(text, ",");
        if (length >= sizeof item)
            return bad_param(error, model, text);
        memcpy(item, text, length);
        item[length] = 0;
        if (!parse_item(model, p, item, error))
            return false;
        more = text[length] == ',';
        text += length + more;
    }
    return true;
}

const SuiteModel *suite_find(const char *text, SuiteParams *params, Str *error)
{
    size_t length = strcspn(text, "@");
    for (int i = 0; models[i]; i++) {
        const SuiteModel *model = models[i];
        if (strlen(model->name) != length ||
            strncmp(model->name, text, length))
            continue;
        *params = model->defaults;
        if (!text[length])
            return model;
        return parse_params(model, params, text + length + 1, error) ? model
                                                                     : NULL;
    }
    str_addf(error, "unknown model \"%.*s\"; there are:", (int)length, text);
    for (int i = 0; models[i]; i++)
        str_addf(error, " %s", models[i]->name);
    str_add(error, "; or give an ONNX file\n");
    return NULL;
}
