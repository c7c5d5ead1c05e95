/* External data: values in files beside the model. Only files inside the
 * model's folder are opened, wherever links may lead. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/reader.h"

/* External data are described by key and value texts. */
static const char *find_value(const Onnx__TensorProto *proto, const char *key)
{
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = proto->external_data[i];
        if (entry->key && entry->value && strcmp(entry->key, key) == 0)
            return entry->value;
    }
    return NULL;
}

/* Offsets and lengths are texts as well; anything but a plain number is
 * refused. */
static bool read_number(Diag *diag, const Onnx__TensorProto *proto,
                        const char *name, const char *key, uint64_t fallback,
                        uint64_t *value)
{
    const char *text = find_value(proto, key);
    char *end;
    *value = fallback;
    if (!text)
        return true;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || *value > INT64_MAX)
        return diag_error(diag, "tensor %s: external data with the %s \"%s\"",
                          name, key, text);
    return true;
}

/* By its text alone, before any file is touched. */
static bool leaves_folder(const char *location)
{
    if (*location == '/')
        return true;
    for (const char *at = location; *at;) {
        size_t length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.')
            return true;
        at += length;
        at += strspn(at, "/");
    }
    return false;
}

/* The path of the data file with all links resolved, NULL after an error.
 */
static char *resolve(Arena *arena, Diag *diag, const char *name,
                     const char *location, const char *model_path)
{
    if (!location || !*location) {
        diag_error(diag, "tensor %s: external data without a location", name);
        return NULL;
    }
    if (leaves_folder(location)) {
        diag_error(diag,
                   "tensor %s: its data lie in %s, outside the model's "
                   "folder, which is not opened; use a relative path below "
                   "the folder",
                   name, location);
        return NULL;
    }
    const char *slash = strrchr(model_path, '/');
    char *folder = slash ? arena_strndup(arena, model_path,
                                         (size_t)(slash - model_path) + 1)
                         : arena_strdup(arena, "./");
    char *joined = arena_printf(arena, "%s%s", folder, location);
    char *real_folder = realpath(folder, NULL);
    char *real = real_folder ? realpath(joined, NULL) : NULL;
    int error = errno;
    size_t length = real_folder ? strlen(real_folder) : 0;
    if (length == 1)
        length = 0; /* the root folder ends with its slash */
    char *result = NULL;
    if (!real)
        diag_error(diag, "tensor %s: cannot open its data %s: %s", name,
                   joined, strerror(error));
    else if (strncmp(real, real_folder, length) != 0 || real[length] != '/')
        diag_error(diag,
                   "tensor %s: its data %s are a link out of the model's "
                   "folder, which is not followed",
                   name, location);
    else
        result = arena_strdup(arena, real);
    free(real_folder);
    free(real);
    return result;
}

/* Reads may come in pieces. */
static bool read_all(int fd, char *data, size_t size, off_t offset)
{
    while (size) {
        ssize_t got = pread(fd, data, size, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        data += got;
        size -= (size_t)got;
        offset += got;
    }
    return true;
}

bool external_read(Arena *arena, Diag *diag, const Onnx__TensorProto *proto,
                   const char *name, const char *model_path, Array *array)
{
    const char *location = find_value(proto, "location");
    size_t bytes = (size_t)array_count(array) * dtype_size(array->dtype);
    uint64_t offset, length;
    struct stat info;
    if (!model_path)
        return diag_error(diag,
                          "tensor %s: external data in a file of one "
                          "tensor",
                          name);
    char *path = resolve(arena, diag, name, location, model_path);
    if (!path || !read_number(diag, proto, name, "offset", 0, &offset) ||
        !read_number(diag, proto, name, "length", bytes, &length))
        return false;
    if (length != bytes)
        return diag_error(diag,
                          "tensor %s: external data of %llu bytes for a "
                          "shape of %zu bytes",
                          name, (unsigned long long)length, bytes);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        if (fd >= 0)
            close(fd);
        return diag_error(diag, "tensor %s: cannot open its data %s", name,
                          location);
    }
    bool fits = offset <= (uint64_t)info.st_size &&
                bytes <= (uint64_t)info.st_size - offset;
    if (!fits)
        diag_error(diag,
                   "tensor %s: bytes %llu to %llu of %s, which has only "
                   "%lld",
                   name, (unsigned long long)offset,
                   (unsigned long long)(offset + bytes), location,
                   (long long)info.st_size);
    bool ok = fits;
    if (fits) {
        /* Allocated only now that the bytes are known to exist. */
        Array *full = array_new(arena, array->dtype, array->rank, array->dims);
        ok = read_all(fd, full->data, bytes, (off_t)offset);
        *array = *full;
        if (!ok)
            diag_error(diag, "tensor %s: cannot read its data %s", name,
                       location);
    }
    close(fd);
    return ok;
}
