#include "harness/launch.h"

#include <string.h>
#include <unistd.h>

#include "harness/common.h"
#include "harness/emulate.h"
#include "targets/cpu.h"

enum { PEAK_TIMEOUT = 60 }; /* seconds */

Words launch_words(Arena *arena, const char *command, const char *model,
                   const char *const *args)
{
    Words argv = {0};
    vec_push(arena, &argv,
             arena_printf(arena, "%s/assay", program_folder(arena)));
    vec_push(arena, &argv, command);
    vec_push(arena, &argv, model);
    for (int i = 0; args && args[i]; i++)
        vec_push(arena, &argv, args[i]);
    return argv;
}

static void add_pair(Arena *arena, Words *argv, const char *option,
                     const char *value)
{
    vec_push(arena, argv, option);
    vec_push(arena, argv, value);
}

/* Beside this program, or above it: tests are in a folder of their own. */
static const char *runner_path(Arena *arena)
{
    const char *folder = program_folder(arena);
    const char *beside = arena_printf(arena, "%s/assay-run", folder);
    const char *above = arena_printf(arena, "%s/../assay-run", folder);
    return access(beside, X_OK) && !access(above, X_OK) ? above : beside;
}

static json_t *launch_host(Arena *arena, const Launch *l, ChildEnd *end,
                           Str *failure)
{
    Words argv = {0};
    /* What is 0 or NULL is left to the runner's defaults. */
    vec_push(arena, &argv, runner_path(arena));
    vec_push(arena, &argv, l->artifact);
    for (int i = 0; i < l->input_count; i++)
        add_pair(arena, &argv, "--input", l->inputs[i]);
    if (l->threads)
        add_pair(arena, &argv, "--threads",
                 arena_printf(arena, "%d", l->threads));
    if (l->output)
        add_pair(arena, &argv, "--output", l->output);
    if (l->taps)
        add_pair(arena, &argv, "--taps", l->taps);
    if (l->check_repeat)
        vec_push(arena, &argv, "--check-repeat");
    if (l->pair)
        add_pair(arena, &argv, "--pair", l->pair);
    if (l->min_time > 0 || l->repeat)
        vec_push(arena, &argv, "--time");
    if (l->min_time > 0)
        add_pair(arena, &argv, "--min-time",
                 arena_printf(arena, "%g", l->min_time));
    if (l->repeat)
        add_pair(arena, &argv, "--repeat",
                 arena_printf(arena, "%d", l->repeat));
    if (l->profile)
        add_pair(arena, &argv, "--profile",
                 arena_printf(arena, "%d", l->profile));
    vec_push(arena, &argv, NULL);
    return child_json(argv.data, &l->limits, end, failure);
}

json_t *launch_runner(Arena *arena, const Launch *launch, ChildEnd *end,
                      Str *failure)
{
    const Target *target = emulated_target(arena, launch->artifact);
    if (target)
        return emulate_runner(arena, target, launch, end, failure);
    return launch_host(arena, launch, end, failure);
}

/* A report of the machine, not of an artifact. */
static json_t *launch_about(Arena *arena, const char *option, int threads,
                            Str *failure)
{
    const char *argv[] = {runner_path(arena), option, NULL, NULL, NULL};
    if (threads) {
        argv[2] = "--threads";
        argv[3] = arena_printf(arena, "%d", threads);
    }
    ProcessLimits limits = {.seconds = PEAK_TIMEOUT};
    return child_json(argv, &limits, NULL, failure);
}

json_t *launch_peak(Arena *arena, int threads, Str *failure)
{
    return launch_about(arena, "--peak", threads, failure);
}

json_t *launch_calibrate(Arena *arena, int threads, Str *failure)
{
    return launch_about(arena, "--calibrate", threads, failure);
}
