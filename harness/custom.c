#include "harness/custom.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a row must have, so that a half-filled one is a message and no
 * crash. */
static bool check_row(const char *path, const Op *op, Str *error)
{
    const char *lacks =
        !op->name || !*op->name       ? "name"
        : !op->domain || !*op->domain ? "domain (that of ONNX itself is taken)"
        : !op->infer                  ? "infer"
        : !op->define && !op->program && !op->decompose ? "define"
                                                        : NULL;
    if (lacks)
        str_addf(error, "%s: operator %s has no %s\n", path,
                 op->name ? op->name : "without a name", lacks);
    return !lacks;
}

const AssayCustomOps *custom_load(const char *path, Str *error)
{
    /* A name without a slash would be searched in the system's folders. */
    char *file = NULL;
    if (!strchr(path, '/') && asprintf(&file, "./%s", path) < 0)
        return NULL;
    void *object = dlopen(file ? file : path, RTLD_NOW | RTLD_LOCAL);
    const char *fault = object ? NULL : dlerror();
    if (fault)
        str_addf(error, "%s: %s\n", path, fault);
    free(file);
    if (!object)
        return NULL;
    const AssayCustomOps *custom = dlsym(object, "assay_custom_ops");
    if (!custom) {
        str_addf(error, "%s: it does not export assay_custom_ops\n", path);
        return NULL;
    }
    if (custom->version != ASSAY_CUSTOM_VERSION) {
        str_addf(error,
                 "%s: made for version %d of harness/custom.h, this "
                 "is %d: compile it again\n",
                 path, custom->version, ASSAY_CUSTOM_VERSION);
        return NULL;
    }
    for (int i = 0; custom->ops[i]; i++)
        if (!check_row(path, custom->ops[i], error))
            return NULL;
    return custom;
}
