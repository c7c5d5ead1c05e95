#include "base/replace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static void drop_names(Replacement *r)
{
    if (r->temporary)
        cleanup_forget_path(r->temporary);
    free(r->temporary);
    free(r->path);
    *r = (Replacement){0};
}

bool replace_begin(Replacement *r, const char *path)
{
    *r = (Replacement){.path = strdup(path)};
    struct stat info;
    bool direct = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    if (!direct &&
        asprintf(&r->temporary, "%s.%ld.tmp", path, (long)getpid()) < 0)
        r->temporary = NULL;
    if (!r->path || (!direct && !r->temporary)) {
        drop_names(r);
        errno = ENOMEM;
        return false;
    }
    if (r->temporary)
        cleanup_add_path(r->temporary);
    r->file = fopen(direct ? path : r->temporary, "wbe");
    int fault = errno;
    if (!r->file)
        drop_names(r);
    errno = fault;
    return r->path != NULL;
}

bool replace_end(Replacement *r, bool ok)
{
    int fault = errno;
    /* A full disk may show at close only. */
    if (fclose(r->file) && ok) {
        ok = false;
        fault = errno;
    }
    if (ok && r->temporary && rename(r->temporary, r->path)) {
        ok = false;
        fault = errno;
    }
    if (!ok && r->temporary)
        unlink(r->temporary);
    drop_names(r);
    errno = fault;
    return ok;
}

bool replace_file(const char *path, const void *data, size_t size)
{
    Replacement r;
    if (!replace_begin(&r, path))
        return false;
    return replace_end(&r, fwrite(data, 1, size, r.file) == size);
}
