/* From object files to the artifact's code: a shared object through lld, a
 * static library through llvm-ar. Both are told to leave out time stamps
 * and identifiers, and the objects come in a fixed order, so that the same
 * objects give the same bytes. */
#include "codegen/codegen.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"

/* The first of `names` (ends with NULL) that PATH holds. */
static const char *find_program(const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        const char *const argv[] = {names[i], "--version", NULL};
        Str out = {0}, err = {0};
        ProcessResult result;
        bool found = process_run(argv, &out, &err, NULL, &result);
        str_free(&out);
        str_free(&err);
        if (found && result.exit_code == 0)
            return names[i];
    }
    return NULL;
}

/* Runs `argv`; the program's own messages become the diagnostic. */
static bool run_tool(Diag *diag, const char *const *argv, const char *path)
{
    Str err = {0};
    bool ok = process_ok(argv, &err);
    if (!ok) {
        unlink(path); /* no half-written file stays behind */
        diag_error(diag, "%s could not write %s: %s", argv[0], path,
                   str_text(&err));
    }
    str_free(&err);
    return ok;
}

bool codegen_link_shared(Diag *diag, const char *const *objects, int count,
                         const char *path)
{
    static const char *const linkers[] = {"ld.lld-19", "ld.lld", NULL};
    const char *linker = find_program(linkers);
    if (!linker)
        return diag_error(diag, "neither ld.lld-19 nor ld.lld is in PATH; "
                                "install Debian's lld-19");
    static const char *const options[] = {
        "-shared",
        "--build-id=none",
        "--hash-style=gnu",
        "-z",
        "noexecstack",
        /* One thread a link: many kernels compile beside it. */
        "--threads=1",
        "-o",
    };
    enum { OPTIONS = sizeof options / sizeof options[0] };
    const char **argv =
        ARENA_ARRAY(diag->arena, const char *, count + OPTIONS + 3);
    int n = 0;
    argv[n++] = linker;
    for (int i = 0; i < OPTIONS; i++)
        argv[n++] = options[i];
    argv[n++] = path;
    for (int i = 0; i < count; i++)
        argv[n++] = objects[i];
    return run_tool(diag, argv, path);
}

bool codegen_archive(Diag *diag, const char *const *objects, int count,
                     const char *path)
{
    static const char *const archivers[] = {"llvm-ar-19", "llvm-ar", "ar",
                                            NULL};
    const char *archiver = find_program(archivers);
    if (!archiver)
        return diag_error(diag, "no llvm-ar-19, llvm-ar or ar in PATH; "
                                "install Debian's llvm-19 or binutils");
    const char **argv = ARENA_ARRAY(diag->arena, const char *, count + 4);
    int n = 0;
    argv[n++] = archiver;
    argv[n++] = "rcsD";
    argv[n++] = path;
    for (int i = 0; i < count; i++)
        argv[n++] = objects[i];
    /* ar adds to an archive that is there; we want a fresh one. */
    unlink(path);
    return run_tool(diag, argv, path);
}
