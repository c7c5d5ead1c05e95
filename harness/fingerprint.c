#include "harness/fingerprint.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/process.h"
#include "harness/common.h"
#include "runtime/pool.h"
#include "targets/cpu.h"

/* OpenBLAS's own, from its cblas.h: the kernels it chose for this CPU. */
char *openblas_get_corename(void);

/* ---- machine ---------------------------------------------------------- */

/* Value of the first "KEY : VALUE" line of /proc/cpuinfo. */
static json_t *cpuinfo_field(const char *key)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[16384];
    json_t *value = NULL;
    while (file && !value && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)))
            continue;
        char *text = colon + 1 + strspn(colon + 1, " \t");
        text[strcspn(text, "\n")] = 0;
        value = json_string(text);
    }
    if (file)
        fclose(file);
    return value ? value : json_string("unknown");
}

/* First line of a program's output, or of a file through `cat`. */
static json_t *first_line(const char *const *argv)
{
    Str out = {0}, err = {0};
    ProcessResult result;
    json_t *value = NULL;
    ProcessLimits limits = {.seconds = 10};
    if (process_run(argv, &out, &err, &limits, &result) && !result.exit_code &&
        out.length) {
        out.data[strcspn(out.data, "\n")] = 0;
        value = json_string(out.data);
    }
    str_free(&out);
    str_free(&err);
    return value ? value : json_string("unknown");
}

json_t *fingerprint_machine(void)
{
    static const char *const llvm[] = {"llvm-config-19", "--version", NULL};
    static const char *const governor[] = {
        "cat", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", NULL};
    struct utsname system;
    if (uname(&system))
        memset(&system, 0, sizeof system);
    json_t *m = json_object();
    json_object_set_new(m, "cpu", cpuinfo_field("model name"));
    json_object_set_new(m, "family", cpuinfo_field("cpu family"));
    json_object_set_new(m, "model", cpuinfo_field("model\t"));
    json_object_set_new(m, "stepping", cpuinfo_field("stepping"));
    json_object_set_new(m, "microcode", cpuinfo_field("microcode"));
    json_object_set_new(m, "flags", cpuinfo_field("flags"));
    json_object_set_new(m, "architecture", json_string(cpu_architecture()));
    json_object_set_new(m, "cores",
                        json_integer(pool_physical_cores(NULL, 0)));
    json_object_set_new(m, "cpus",
                        json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
    json_object_set_new(m, "memory_mib",
                        json_integer(sysconf(_SC_PHYS_PAGES) /
                                     (1048576 / sysconf(_SC_PAGESIZE))));
    json_object_set_new(m, "governor", first_line(governor));
    json_object_set_new(m, "kernel", json_string(system.release));
    json_object_set_new(m, "llvm", first_line(llvm));
    json_object_set_new(m, "openblas_core",
                        json_string(openblas_get_corename()));
    json_object_set_new(m, "compiler", json_string(__VERSION__));
    return m;
}

const char *fingerprint_name(Arena *arena, const json_t *machine)
{
    char *text = json_dumps(machine, JSON_SORT_KEYS | JSON_COMPACT);
    uint64_t hash = text ? hash_text(text) : 0;
    free(text);
    const char *cpu = json_string_value(json_object_get(machine, "cpu"));
    Str name = {0};
    bool gap = false;
    for (const char *c = cpu ? cpu : "cpu"; *c && name.length < 40; c++) {
        /* "(R)" and the like say nothing. */
        if (*c == '(')
            c += strcspn(c, ")");
        if (isalnum((unsigned char)*c)) {
            if (gap && name.length)
                str_add(&name, "-");
            gap = false;
            str_addf(&name, "%c", tolower((unsigned char)*c));
        } else {
            gap = true;
        }
        if (!*c)
            break;
    }
    const char *result = arena_printf(
        arena, "%s-%dc-%08x", str_text(&name),
        (int)json_integer_value(json_object_get(machine, "cores")),
        (unsigned)(hash >> 32));
    str_free(&name);
    return result;
}

/* ---- sources ---------------------------------------------------------- */

Source fingerprint_source(Arena *arena)
{
    const char *folder = project_folder(arena);
    /* %ct: seconds, whatever the committer's time zone. */
    const char *const head[] = {
        "git", "-C", folder, "log", "-1", "--abbrev=12", "--format=%h %ct",
        NULL};
    /* Results and reports are ignored by git and do not count. */
    const char *const changes[] = {"git",    "-C",          folder,
                                   "status", "--porcelain", NULL};
    json_t *commit = first_line(head), *dirty = first_line(changes);
    char *text = arena_strdup(arena, json_string_value(commit));
    Source source = {.commit = text, .time = ""};
    char *space = strchr(text, ' ');
    if (space) {
        *space = 0;
        time_t seconds = (time_t)strtoll(space + 1, NULL, 10);
        char stamp[32];
        struct tm utc;
        strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ",
                 gmtime_r(&seconds, &utc));
        source.time = arena_strdup(arena, stamp);
        /* No output at all, no changes, reads as unknown. */
        source.dirty = strcmp(json_string_value(dirty), "unknown") != 0;
    }
    json_decref(commit);
    json_decref(dirty);
    return source;
}
