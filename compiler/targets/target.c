/* The list of targets and what is asked of all of them. */
#include <string.h>

#include "targets/cpu.h"
#include "targets/target.h"

/* One row a target; each lives in its family's file. */
extern const Target target_x86_v2, target_x86_v3, target_x86_v4;
extern const Target target_aarch64;
extern const Target target_c;

static const Target *const all[] = {
    &target_x86_v2,  &target_x86_v3, &target_x86_v4,
    &target_aarch64, &target_c,      NULL,
};

const Target *const *targets_all(void)
{
    return all;
}

static const Target *find_native(Arena *arena, Diag *diag)
{
    for (int i = 0; all[i]; i++) {
        const Target *t = all[i]->detect ? all[i]->detect(arena) : NULL;
        if (t)
            return t;
    }
    diag_error(diag,
               "target native: no code generator for this processor (%s); "
               "use --target c",
               cpu_architecture());
    return NULL;
}

const Target *target_find(Arena *arena, Diag *diag, const char *name)
{
    if (!name || !strcmp(name, "native"))
        return find_native(arena, diag);
    Str names = {0};
    for (int i = 0; all[i]; i++) {
        if (!strcmp(all[i]->name, name)) {
            str_free(&names);
            return all[i];
        }
        str_addf(&names, ", %s", all[i]->name);
    }
    diag_error(diag, "unknown target \"%s\"; there are: native%s", name,
               str_text(&names));
    str_free(&names);
    return NULL;
}

bool target_is_runnable(const Target *target, Str *why)
{
    if (target->triple) {
        const char *ours = cpu_architecture();
        size_t length = strlen(ours);
        if (strncmp(target->triple, ours, length) ||
            target->triple[length] != '-') {
            if (why)
                str_addf(why, "it is for %s and this machine is %s",
                         target->triple, ours);
            return false;
        }
    }
    bool all = true;
    for (const char *const *f = target->cpu_flags; f && *f; f++) {
        if (cpu_has_flag(*f))
            continue;
        if (why)
            str_addf(why, all ? "this processor has no %s" : ", %s", *f);
        all = false;
    }
    return all;
}

int target_lanes(const Target *target, int bytes)
{
    return target->vector_bytes / bytes;
}
