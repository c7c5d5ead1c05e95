#include "harness/replay.h"

#include <stdio.h>

/* A loop program has no definition: the loops themselves go through text. */
static bool replay_program(const ProgramKernel *pk, Arena *arena, Diag *diag)
{
    Str text = {0};
    kernel_print(&text, pk->kernel);
    Kernel *kernel = kernel_parse(arena, diag, str_text(&text));
    str_free(&text);
    return (kernel && kernel->hash == pk->kernel->hash) ||
           diag_error(diag, "the printed loops do not parse back");
}

static bool replay(const ProgramKernel *pk, Arena *arena, Diag *diag)
{
    if (!pk->def)
        return replay_program(pk, arena, diag);
    /* Through text and back: the printed form must hold all that makes the
     * kernel. */
    Str text = {0};
    definition_print(&text, pk->def);
    Definition *def = definition_parse(arena, diag, str_text(&text));
    str_free(&text);
    if (!def)
        return diag_error(diag, "the printed definition does not parse");
    Schedule *schedule = schedule_new(arena, diag, def);
    if (!schedule_replay(schedule, pk->trace))
        return diag_error(diag, "the trace does not replay");
    Kernel *kernel = schedule_lower(schedule, arena);
    if (kernel->hash != pk->kernel->hash)
        return diag_error(diag, "its loops differ: %016llx, was %016llx",
                          (unsigned long long)kernel->hash,
                          (unsigned long long)pk->kernel->hash);
    return true;
}

bool replay_kernels(const Program *program)
{
    int same = 0;
    for (int i = 0; i < program->kernels.count; i++) {
        const ProgramKernel *pk = &program->kernels.data[i];
        Arena *arena = arena_new();
        Diag *diag = diag_new(arena, NULL);
        if (replay(pk, arena, diag))
            same++;
        else
            for (int k = 0; k < diag->errors.count; k++)
                printf("%s: %s\n", pk->kernel->name, diag->errors.data[k]);
        arena_free(arena);
    }
    printf("%d of %d kernels replay to the same loops\n", same,
           program->kernels.count);
    return same == program->kernels.count;
}
